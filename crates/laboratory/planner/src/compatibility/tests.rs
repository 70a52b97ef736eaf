//! The paper's figures and tables, and comparison with exhaustive search.

use super::*;
use clearway_units::{Purpose, RandomStream, Rate, Span};

const fn ms(count: u64) -> Span {
    Span::from_ms(count)
}

fn on_off(compute: u64, communication: u64) -> JobProfile {
    JobProfile::on_off(ms(compute), ms(communication)).expect("a profile")
}

fn on_links(profile: JobProfile, links: &[u32]) -> Job {
    Job {
        profile,
        placements: vec![CandidatePlacement {
            links: links.iter().copied().map(Load::whole).collect(),
            gpus: Vec::new(),
        }],
    }
}

/// Jobs on links of 50 Gb/s, numbered up to the highest used link.
fn problem(jobs: Vec<Job>) -> Problem {
    let placements = jobs.iter().flat_map(|job| &job.placements);
    let links = placements.flat_map(|placement| &placement.links);
    let count = links.map(|load| load.link as usize + 1).max().unwrap_or(0);
    Problem::new(vec![Rate::from_gbps(50); count], 0, jobs).expect("a problem")
}

/// All jobs on one link.
fn sharing(profiles: Vec<JobProfile>) -> Problem {
    problem(
        profiles
            .into_iter()
            .map(|profile| on_links(profile, &[0]))
            .collect(),
    )
}

fn exactly() -> PlanParameters {
    PlanParameters {
        tolerance: 0.0,
        budget: 20_000_000,
        ..PlanParameters::default()
    }
}

fn planned(problem: &Problem) -> Plan {
    plan(problem, &exactly()).expect("a plan")
}

/// Time in a turn in which the real phases, without sectors, exceed the capacity of `resource`, weighted by the excess. Independent of
/// circles: it examines each instant at which a phase begins or ends.
fn real_overlap(problem: &Problem, plan: &Plan, resource: Resource) -> f64 {
    let used = plan
        .resources
        .iter()
        .find(|planned| planned.resource == resource)
        .expect("in use");
    let Some(circle) = used.circle else {
        return 0.0;
    };
    let turn = plan.circles[circle].perimeter().as_ps() as f64;
    let mut edges: Vec<(f64, f64)> = Vec::new();
    for &job in &used.jobs {
        let planned = &plan.jobs[job as usize];
        let phases = problem.jobs()[job as usize].profile.phases(resource.kind());
        let shares = problem.shares(job as usize, planned.placement, resource);
        for repeat in 0..planned.repeats {
            let from = turn * f64::from(repeat) / f64::from(planned.repeats);
            for (phase, &share) in phases.iter().zip(&shares) {
                let start = (from + (phase.start + planned.shift).as_ps() as f64) % turn;
                let end = start + phase.length.as_ps() as f64;
                let share = share.as_f64();
                edges.push((start, share));
                edges.push((end.min(turn), -share));
                if end > turn {
                    edges.push((0.0, share));
                    edges.push((end - turn, -share));
                }
            }
        }
    }
    edges.sort_by(|a, b| a.partial_cmp(b).expect("numbers"));
    let (mut load, mut last, mut over) = (0.0, 0.0, 0.0);
    for (at, change) in edges {
        over += f64::max(0.0, load - 1.0) * (at - last);
        (load, last) = (load + change, at);
    }
    over / 1e9
}

#[test]
fn fig_3_vgg16_is_a_circle_of_255_ms_with_an_arc_of_114() {
    let profile = on_off(141, 114);
    assert_eq!(profile.period(), ms(255));
    let arc = profile.phases(PhaseKind::Communication)[0];
    assert_eq!((arc.start, arc.end()), (ms(141), ms(255)));
    assert!((profile.fraction(PhaseKind::Communication) - 114.0 / 255.0).abs() < 1e-12);
    // Two of them fit next to each other.
    let two = sharing(vec![on_off(141, 114), on_off(141, 114)]);
    let plan = planned(&two);
    assert_eq!(plan.verdict(), CompatibilityVerdict::Compatible);
    assert_eq!(plan.jobs[1].shift, ms(114));
    assert!((plan.resources[0].score_before - (1.0 - 114.0 / 255.0)).abs() < 1e-12);
    assert!((plan.resources[0].load - 228.0 / 255.0).abs() < 1e-12);
}

#[test]
fn fig_4_equal_circles_are_compatible_if_the_arcs_fit_on_one() {
    for first in 1..40 {
        for second in 1..40 {
            let plan = planned(&sharing(vec![
                on_off(40 - first, first),
                on_off(40 - second, second),
            ]));
            let over = (first + second).saturating_sub(40);
            assert_eq!(plan.circles[0].overlap, ms(over), "{first} and {second}");
            assert!(plan.circles[0].is_optimal());
            let compatible = plan.verdict() == CompatibilityVerdict::Compatible;
            assert_eq!(compatible, over == 0, "{first} and {second}");
        }
    }
}

#[test]
fn fig_5_circles_of_40_and_60_fit_after_a_turn_of_30_degrees() {
    let plan = planned(&sharing(vec![on_off(30, 10), on_off(50, 10)]));
    let circle = &plan.circles[0];
    assert_eq!((circle.sectors, circle.perimeter()), (120, ms(120)));
    assert_eq!((plan.jobs[0].repeats, plan.jobs[1].repeats), (3, 2));
    assert_eq!(circle.verdict, CompatibilityVerdict::Compatible);
    assert_eq!((plan.jobs[0].angle, plan.jobs[0].shift), (30.0, ms(10)));
    assert_eq!((plan.jobs[1].angle, plan.jobs[1].shift), (0.0, ms(0)));
    assert!(plan.resources[0].score_before < 1.0 && plan.resources[0].score == 1.0);
}

/// Arcs of periods with the greatest common divisor d pass each other at every distance modulo d, so two fit if and only if they fit on a
/// circle of d.
#[test]
fn two_periods_fit_where_their_arcs_fit_into_the_common_divisor() {
    for (first, second, divisor) in [(40, 60, 20), (30, 45, 15), (24, 36, 12), (50, 51, 1)] {
        for one in [1, 2, 5, 7, 10, 11] {
            for two in [1, 4, 5, 9, 10, 13] {
                let plan = planned(&sharing(vec![
                    on_off(first - one, one),
                    on_off(second - two, two),
                ]));
                let compatible = plan.verdict() == CompatibilityVerdict::Compatible;
                assert_eq!(
                    compatible,
                    one + two <= divisor,
                    "{first}:{one} {second}:{two}"
                );
                assert!(plan.circles[0].is_optimal());
            }
        }
    }
}

/// Table 1 with the profiles of the built-in plan `table-1` (the paper's own are not published).
#[test]
fn table_1_verdicts() {
    let groups = [
        (
            "1",
            vec![(45, 76), (72, 114)],
            CompatibilityVerdict::Incompatible,
        ),
        (
            "2",
            vec![(701, 300), (719, 300)],
            CompatibilityVerdict::Compatible,
        ),
        (
            "3",
            vec![(45, 76), (84, 114), (70, 130)],
            CompatibilityVerdict::Incompatible,
        ),
        (
            "4",
            vec![(251, 22), (252, 22)],
            CompatibilityVerdict::Compatible,
        ),
        (
            "5",
            vec![(269, 60), (269, 60), (160, 5)],
            CompatibilityVerdict::Compatible,
        ),
    ];
    for (group, jobs, verdict) in groups {
        let jobs = jobs.into_iter().map(|(idle, busy)| on_off(idle, busy));
        let problem = sharing(jobs.collect());
        let settings = PlanParameters {
            tolerance: 0.02,
            ..exactly()
        };
        let plan = plan(&problem, &settings).expect("a plan");
        assert_eq!(plan.verdict(), verdict, "group {group}");
        for (job, planned) in problem.jobs().iter().zip(&plan.jobs) {
            let own = job.profile.period();
            assert!(planned.period >= own && planned.period.as_ps() * 50 <= own.as_ps() * 51);
        }
    }
}

/// §5: J1 and J2 meet on one link, J2 and J3 on another; each job has one rotation.
#[test]
fn a_chain_of_links_has_one_rotation_for_each_job() {
    let chain = problem(vec![
        on_links(on_off(50, 50), &[0]),
        on_links(on_off(50, 50), &[0, 1]),
        on_links(on_off(50, 50), &[1]),
    ]);
    let plan = planned(&chain);
    assert_eq!(plan.verdict(), CompatibilityVerdict::Compatible);
    assert_eq!(plan.circles.len(), 1);
    assert!(plan.resources.iter().all(|planned| planned.score == 1.0));
    // J1 and J3 never meet, and may communicate at the same time.
    assert_eq!(plan.jobs[0].shift, plan.jobs[2].shift);
    assert_eq!(plan.jobs[0].priority, plan.jobs[2].priority);
    assert_ne!(plan.jobs[0].priority, plan.jobs[1].priority);
    // A triangle of such jobs is incompatible.
    let triangle = problem(vec![
        on_links(on_off(50, 50), &[0, 2]),
        on_links(on_off(50, 50), &[0, 1]),
        on_links(on_off(50, 50), &[1, 2]),
    ]);
    let plan = planned(&triangle);
    assert_eq!(plan.verdict(), CompatibilityVerdict::Incompatible);
    // Three half circles: each point of the circle is covered by 1.5 on average, so all three pairs together overlap by half a turn.
    assert_eq!(plan.circles[0].overlap, ms(50));
    assert!(plan.circles[0].is_optimal());
}

#[test]
fn shared_gpus_keep_computations_apart() {
    let job = |compute, communication| Job {
        profile: on_off(compute, communication),
        placements: vec![CandidatePlacement {
            links: vec![Load::whole(0)],
            gpus: vec![0],
        }],
    };
    let one = |jobs| Problem::new(vec![Rate::from_gbps(50)], 1, jobs).expect("a problem");
    let plan = planned(&one(vec![job(50, 50), job(50, 50)]));
    assert_eq!(plan.verdict(), CompatibilityVerdict::Compatible);
    assert_eq!(plan.jobs[1].shift, ms(50));
    // The links would allow it, the GPU does not: 60 + 60 of 100.
    let both = one(vec![job(60, 40), job(60, 40)]);
    let plan = planned(&both);
    assert_eq!(plan.verdict(), CompatibilityVerdict::Incompatible);
    assert_eq!(plan.circles[0].overlap, ms(20));
    assert_eq!(plan.resources[0].resource, Resource::Link(0));
    assert!(plan.resources[0].is_compatible() && !plan.resources[1].is_compatible());
}

#[test]
fn demands_below_the_whole_add_up() {
    let half = |gbps| {
        let phase = Phase {
            start: ms(0),
            length: ms(80),
            demand: Demand::Rate(Rate::from_gbps(gbps)),
        };
        JobProfile::new(ms(100), vec![phase], Vec::new()).expect("a profile")
    };
    // Two jobs at half rate always share a link, and do not have a circle.
    let plan = planned(&sharing(vec![half(25), half(25)]));
    assert_eq!(plan.verdict(), CompatibilityVerdict::Compatible);
    assert!(plan.circles.is_empty());
    assert!((plan.resources[0].load - 0.8).abs() < 1e-12);
    // With a third job, and with 30 instead of 25, demand is too high: by a fifth during the overlap, which is at least 60 of 100.
    let plan = planned(&sharing(vec![half(30), half(30)]));
    assert_eq!(plan.circles[0].overlap, ms(12));
    assert!(plan.circles[0].is_optimal());
}

#[test]
fn traffic_that_spreads_takes_a_part_of_each_link() {
    let job = |part: f64, links: &[u32]| {
        let part = Share::new(part).expect("a share");
        let load = |&link: &u32| Load { link, part };
        Job {
            profile: on_off(20, 80),
            placements: vec![CandidatePlacement {
                links: links.iter().map(load).collect(),
                gpus: Vec::new(),
            }],
        }
    };
    // Two halves are one whole, and never exceed the capacity.
    let plan = planned(&problem(vec![job(0.5, &[0, 1]), job(0.5, &[1, 2])]));
    assert!(plan.circles.is_empty());
    assert!((plan.resources[1].load - 0.8).abs() < 1e-12);
    // 80 + 80 of 100 overlap by at least 60, and then exceed the capacity by a tenth.
    let plan = planned(&problem(vec![job(0.5, &[0]), job(0.6, &[0])]));
    assert_eq!(plan.circles[0].overlap, ms(6));
    assert!(plan.circles[0].is_optimal());
    // The part belongs to the placement.
    let mut moves = vec![job(0.5, &[0]), job(0.6, &[0])];
    let elsewhere = job(0.5, &[0]).placements.remove(0);
    moves[1].placements.push(elsewhere);
    let placed = place(&problem(moves), &PlanParameters::default()).expect("a plan");
    assert_eq!(placed.plan.jobs[1].placement, 1);
    assert_eq!(placed.plan.verdict(), CompatibilityVerdict::Compatible);
}

#[test]
fn what_never_runs_short_connects_nobody() {
    let narrow = |links: &[u32]| {
        let phase = Phase {
            start: ms(0),
            length: ms(90),
            demand: Demand::Share(Share::new(0.3).expect("a share")),
        };
        on_links(
            JobProfile::new(ms(100), vec![phase], Vec::new()).expect("a profile"),
            links,
        )
    };
    // The two jobs on link 0 contend, and so do the two jobs on link 2; link 1 is wide enough for all.
    let full = |links: &[u32]| on_links(on_off(60, 40), links);
    let plan = planned(&problem(vec![
        full(&[0]),
        full(&[0]),
        narrow(&[1]),
        narrow(&[1]),
        narrow(&[1]),
        full(&[2]),
        full(&[2]),
    ]));
    let jobs: Vec<&[u32]> = plan.circles.iter().map(|circle| &circle.jobs[..]).collect();
    assert_eq!(jobs, [&[0, 1][..], &[5, 6]]);
    assert_eq!(plan.verdict(), CompatibilityVerdict::Compatible);
}

fn random_profile(random: &mut RandomStream, multiples: &[u64], levels: bool) -> JobProfile {
    let period = multiples[random.below(multiples.len() as u32) as usize];
    let mut phases = Vec::new();
    let mut at = u64::from(random.below(3));
    while at < period && phases.len() < 3 {
        let most = if levels { 2 } else { 5 };
        let length = 1 + u64::from(random.below(period as u32 / most));
        let length = length.min(period - at);
        let share = match levels {
            true => f64::from(1 + random.below(4)) / 4.0,
            false => 1.0,
        };
        phases.push(Phase {
            start: ms(at),
            length: ms(length),
            demand: Demand::Share(Share::new(share).expect("a share")),
        });
        at += length + 1 + u64::from(random.below(period as u32));
    }
    JobProfile::new(ms(period), phases, Vec::new()).expect("a profile")
}

/// The smallest overlap of three jobs in millionths times milliseconds, by exhaustive search over every millisecond of all rotations.
fn by_looking_at_all(problem: &Problem, turn: u64) -> u64 {
    let asks = |job: usize, at: u64| {
        let profile = &problem.jobs()[job].profile;
        let at = Span::from_ms(at % (profile.period().as_ps() / 1_000_000_000));
        let phases = profile.phases(PhaseKind::Communication).iter();
        let mut now = phases.filter(|phase| (phase.start..phase.end()).contains(&at));
        now.next().map_or(0, |phase| match phase.demand {
            Demand::Share(share) => (share.as_f64() * 1e6) as u64,
            Demand::Rate(_) => unreachable!("the tests have shares"),
        })
    };
    let patterns: Vec<Vec<u64>> = (0..3)
        .map(|job| (0..turn).map(|at| asks(job, at)).collect())
        .collect();
    let links: Vec<&[Load]> = problem
        .jobs()
        .iter()
        .map(|job| &job.placements[0].links[..])
        .collect();
    let mut least = u64::MAX;
    let period = |job: usize| problem.jobs()[job].profile.period().as_ps() / ms(1).as_ps();
    for second in 0..period(1) {
        for third in 0..period(2) {
            let mut over = 0;
            for link in 0..problem.links().len() as u32 {
                for at in 0..turn {
                    let turned = [0, second, third].into_iter().enumerate();
                    let load: u64 = turned
                        .filter(|(job, _)| links[*job].contains(&Load::whole(link)))
                        .map(|(job, by)| patterns[job][((at + turn - by) % turn) as usize])
                        .sum();
                    over += load.saturating_sub(1_000_000);
                }
            }
            least = least.min(over);
        }
    }
    least
}

fn compare_with_brute_force(cases: u64, multiples: &[u64], turn: u64, levels: bool) {
    let mut compatible = 0;
    for case in 0..cases {
        let mut random = RandomStream::new(case, Purpose::Test, u64::from(levels));
        let routes: [&[&[u32]]; 3] = [
            &[&[0], &[0], &[0]],
            &[&[0], &[0, 1], &[1]],
            &[&[0, 1], &[1, 2], &[0, 2]],
        ];
        let routes = routes[random.below(3) as usize];
        let jobs = routes
            .iter()
            .map(|links| on_links(random_profile(&mut random, multiples, levels), links));
        let problem = problem(jobs.collect());
        let best = by_looking_at_all(&problem, turn);
        let plan = planned(&problem);
        let repeated = |circle: &UnifiedCircle| ms(turn).as_ps() / circle.perimeter().as_ps();
        let found: u64 = plan
            .circles
            .iter()
            .map(|circle| circle.overlap.as_ps() * repeated(circle))
            .sum();
        // Millionths of a millisecond are nanoseconds.
        assert_eq!(found, best * 1000, "case {case}: {problem:?}");
        assert!(
            plan.circles.iter().all(UnifiedCircle::is_optimal),
            "case {case}"
        );
        assert_eq!(
            plan.verdict() == CompatibilityVerdict::Compatible,
            best == 0,
            "case {case}"
        );
        let real: f64 = plan
            .resources
            .iter()
            .filter_map(|planned| {
                let circle = &plan.circles[planned.circle?];
                Some(real_overlap(&problem, &plan, planned.resource) * repeated(circle) as f64)
            })
            .sum();
        assert!(
            (real - best as f64 / 1e6).abs() < 1e-6,
            "case {case}: {real}"
        );
        compatible += u64::from(best == 0);
    }
    // Both answers occur often.
    assert!(
        compatible * 10 > cases && compatible * 10 < cases * 9,
        "{compatible}"
    );
}

#[test]
fn three_jobs_agree_with_brute_force() {
    compare_with_brute_force(2_000, &[10, 15, 30], 30, false);
}

#[test]
fn three_jobs_with_several_demands_agree_with_brute_force() {
    compare_with_brute_force(1_000, &[10, 12, 15, 20], 60, true);
}

/// Jobs on random links of a small cluster.
fn crowd(seed: u64, jobs: u32, links: u32) -> Problem {
    let mut random = RandomStream::new(seed, Purpose::Test, 7);
    let jobs = (0..jobs).map(|_| {
        let period = [120, 180, 240, 360][random.below(4) as usize];
        let busy = 5 + u64::from(random.below(period as u32 / 3));
        let mut used: Vec<u32> = (0..3).map(|_| random.below(links)).collect();
        used.sort_unstable();
        used.dedup();
        on_links(on_off(period - busy, busy), &used)
    });
    let jobs: Vec<Job> = jobs.collect();
    Problem::new(vec![Rate::from_gbps(50); links as usize], 0, jobs).expect("a problem")
}

#[test]
fn bounds_hold_whatever_the_budget() {
    for seed in 0..30 {
        let jobs = 4 + (seed % 4) as u32;
        let problem = crowd(seed, jobs, 3);
        let mut last = None;
        // From the largest budget to zero.
        for budget in [3_000_000, 200_000, 5_000, 0] {
            for solver in [Solver::Auto, Solver::Exact, Solver::Local] {
                let settings = PlanParameters {
                    budget,
                    solver,
                    ..exactly()
                };
                let plan = plan(&problem, &settings).expect("a plan");
                for circle in &plan.circles {
                    assert!(circle.least_overlap <= circle.overlap);
                }
                let sum =
                    |of: fn(&UnifiedCircle) -> Span| -> Span { plan.circles.iter().map(of).sum() };
                let (found, least) = (sum(|c| c.overlap), sum(|c| c.least_overlap));
                // No search may exclude a cost that another search finds.
                let (most_bound, least_found) = last.unwrap_or((least, found));
                last = Some((most_bound.max(least), least_found.min(found)));
                assert!(
                    last.is_some_and(|(bound, found)| bound <= found),
                    "seed {seed}"
                );
                let real: f64 = plan
                    .resources
                    .iter()
                    .map(|planned| real_overlap(&problem, &plan, planned.resource))
                    .sum();
                assert!(
                    (real - found.as_us() / 1e3).abs() < 1e-6,
                    "seed {seed}: {real}"
                );
            }
        }
    }
}

/// Sectors are rounded outwards, so a plan that fits in sectors also fits without them.
#[test]
fn what_is_compatible_on_a_coarse_grid_is_compatible_in_truth() {
    let mut compatible = 0;
    for seed in 0..200 {
        let mut random = RandomStream::new(seed, Purpose::Test, 8);
        let jobs = (0..3).map(|_| {
            let period = 20_000 + u64::from(random.below(60_000));
            let busy = 1 + u64::from(random.below(period as u32 / 15));
            let profile = JobProfile::on_off(Span::from_us(period - busy), Span::from_us(busy));
            on_links(profile.expect("a profile"), &[0])
        });
        let problem = problem(jobs.collect());
        let settings = PlanParameters {
            budget: 500_000,
            ..PlanParameters::default()
        };
        let plan = plan(&problem, &settings).expect("a plan");
        let real = real_overlap(&problem, &plan, Resource::Link(0));
        if plan.verdict() == CompatibilityVerdict::Compatible {
            compatible += 1;
            assert!(real < 1e-6, "seed {seed}: {real} ms");
        }
        for (job, planned) in problem.jobs().iter().zip(&plan.jobs) {
            let own = job.profile.period().as_ps();
            assert!(planned.shift < planned.period + Span::from_ms(1));
            assert!(planned.period.as_ps() >= own && planned.period.as_ps() <= own / 50 * 51 + 50);
        }
    }
    assert!((20..190).contains(&compatible), "{compatible}");
}

#[test]
fn plans_are_the_same_every_time_and_depend_on_the_seed_alone() {
    let problem = crowd(3, 30, 12);
    let settings = exactly();
    let first = plan(&problem, &settings).expect("a plan");
    assert_eq!(first, plan(&problem, &settings).expect("a plan"));
    for (index, planned) in first.resources.iter().enumerate() {
        let levels: std::collections::BTreeSet<u32> = planned
            .jobs
            .iter()
            .map(|&job| first.jobs[job as usize].priority)
            .collect();
        assert_eq!(levels.len(), planned.jobs.len(), "link {index}");
    }
}

/// Forty jobs with hidden random rotations, on links that were chosen so that these rotations do not collide.
fn hidden(seed: u64) -> Problem {
    const TURN: u64 = 360;
    const LINKS: u32 = 160;
    let mut random = RandomStream::new(seed, Purpose::Test, 40);
    let mut busy = vec![[false; TURN as usize]; LINKS as usize];
    let jobs = (0..40).map(|_| {
        let period = [120, 180, 360][random.below(3) as usize];
        let length = period / 10 + u64::from(random.below(period as u32 / 5));
        let from = u64::from(random.below(period as u32));
        let turns = (0..TURN).step_by(period as usize);
        let takes: Vec<usize> = turns
            .flat_map(|turn| (turn + from..turn + from + length).map(|at| (at % TURN) as usize))
            .collect();
        let mut used = Vec::new();
        for _ in 0..200 {
            let link = random.below(LINKS);
            let sectors = &mut busy[link as usize];
            if used.len() < 12 && takes.iter().all(|&at| !sectors[at]) {
                takes.iter().for_each(|&at| sectors[at] = true);
                used.push(link);
            }
        }
        on_links(on_off(period - length, length), &used)
    });
    problem(jobs.collect())
}

#[test]
fn a_hidden_plan_of_forty_jobs_is_found() {
    for seed in 0..4 {
        let problem = hidden(seed);
        let settings = PlanParameters {
            budget: 200_000_000,
            ..exactly()
        };
        let plan = plan(&problem, &settings).expect("a plan");
        let before: f64 = plan.resources.iter().map(|r| 1.0 - r.score_before).sum();
        assert!(before > 20.0, "seed {seed}: {before}");
        assert_eq!(
            plan.verdict(),
            CompatibilityVerdict::Compatible,
            "seed {seed}"
        );
    }
}

#[test]
fn many_equal_links_cost_no_more_than_one() {
    let pair = |links: Vec<u32>| {
        problem(vec![
            on_links(on_off(50, 60), &links),
            on_links(on_off(50, 60), &links),
        ])
    };
    let one = planned(&pair(vec![0]));
    let many = planned(&pair((0..1000).collect()));
    assert_eq!(one.circles[0].work, many.circles[0].work);
    assert_eq!(one.circles[0].overlap, ms(10));
    assert_eq!(many.circles[0].overlap, ms(10_000));
    assert!(
        many.resources
            .iter()
            .all(|planned| planned.overlap == ms(10))
    );
}

/// Two racks with an uplink each, two pairs of jobs that only fit if the pairs are mixed.
#[test]
fn incompatible_jobs_are_placed_elsewhere() {
    let on_either = |profile: JobProfile, first: u32| Job {
        profile,
        placements: [first, 1 - first]
            .map(|link| CandidatePlacement {
                links: vec![Load::whole(link)],
                gpus: Vec::new(),
            })
            .to_vec(),
    };
    let jobs = vec![
        on_either(on_off(30, 70), 0),
        on_either(on_off(30, 70), 0),
        on_either(on_off(80, 20), 1),
        on_either(on_off(80, 20), 1),
    ];
    let problem = problem(jobs);
    let where_they_are = planned(&problem);
    assert_eq!(where_they_are.verdict(), CompatibilityVerdict::Incompatible);
    let placed = place(&problem, &exactly()).expect("a plan");
    assert_eq!(placed.plan.verdict(), CompatibilityVerdict::Compatible);
    assert!((placed.missing_before - 0.4).abs() < 1e-9);
    assert_eq!(placed.moves.len(), 2, "{:?}", placed.moves);
    assert!(placed.moves.iter().all(|moved| moved.missing_without > 0.0));
    assert_eq!((placed.tried, placed.all_tried), (16, true));
    let of_uplink = |link: u32| {
        let used = placed.plan.resources.iter();
        used.filter(move |planned| planned.resource == Resource::Link(link))
            .flat_map(|planned| planned.jobs.iter().copied())
            .collect::<Vec<u32>>()
    };
    for link in [0, 1] {
        let long = of_uplink(link).iter().filter(|&&job| job < 2).count();
        assert_eq!((long, of_uplink(link).len()), (1, 2));
    }
}

/// A case with so many jobs that not all combinations can be tried.
#[test]
fn many_jobs_move_one_or_two_at_a_time() {
    let jobs = (0..12).map(|index: u32| Job {
        profile: on_off(
            if index < 6 { 30 } else { 80 },
            if index < 6 { 70 } else { 20 },
        ),
        placements: (0..6)
            .map(|place| CandidatePlacement {
                // Long jobs on three links, short jobs on the other three.
                links: vec![Load::whole(match index < 6 {
                    true => (index % 3 + place) % 6,
                    false => (index % 3 + 3 + place) % 6,
                })],
                gpus: Vec::new(),
            })
            .collect(),
    });
    let problem = problem(jobs.collect());
    let placed = place(&problem, &exactly()).expect("a plan");
    assert!(!placed.all_tried);
    assert_eq!(placed.plan.verdict(), CompatibilityVerdict::Compatible);
    assert!((placed.missing_before - 1.2).abs() < 1e-9);
    assert!(placed.moves.len() <= 6, "{:?}", placed.moves);
}

#[test]
fn nonsense_is_refused_with_a_reason_and_a_fix() {
    let new = |period, phases| JobProfile::new(period, phases, Vec::new());
    let half = Demand::Share(Share::new(0.5).expect("a share"));
    let phase = |start, length, demand| Phase {
        start: ms(start),
        length: ms(length),
        demand,
    };
    for (profile, message) in [
        (
            new(ms(0), Vec::new()),
            "an iteration takes no time: give the time that it takes alone, such as \"255ms\"",
        ),
        (
            new(ms(10), vec![phase(5, 0, half)]),
            "communication phase 1 takes no time: leave it out",
        ),
        (
            new(ms(10), vec![phase(0, 5, half), phase(5, 6, half)]),
            "communication phase 2 ends at 11ms, after the iteration of 10ms: lengthen the period, or cut the phase in two where the next iteration begins",
        ),
        (
            new(ms(10), vec![phase(4, 5, half), phase(0, 5, half)]),
            "communication phases 2 and 1 overlap: make them one phase with the sum of their demands, or move one",
        ),
        (
            JobProfile::new(
                ms(10),
                Vec::new(),
                vec![phase(0, 5, Demand::Rate(Rate::from_gbps(1)))],
            ),
            "compute phase 1 asks for a rate: give the share of the GPU that it needs",
        ),
    ] {
        assert_eq!(profile.expect_err("nonsense").to_string(), message);
    }
    let at = |links: &[u32]| on_links(on_off(5, 5), links);
    let fast = JobProfile::new(
        ms(10),
        vec![phase(0, 5, Demand::Rate(Rate::from_gbps(100)))],
        Vec::new(),
    );
    let fast = on_links(fast.expect("a profile"), &[0]);
    let nowhere = Job {
        placements: Vec::new(),
        ..at(&[])
    };
    for (jobs, message) in [
        (Vec::new(), "there are no jobs"),
        (
            vec![at(&[0]), at(&[2])],
            "job 1 uses link 2, but there are only 2, numbered from zero",
        ),
        (
            vec![at(&[0, 0])],
            "job 0 uses link 0 more than once in one placement",
        ),
        (
            vec![nowhere],
            "job 0 has no placement: give it at least one, even if it is empty",
        ),
        (
            vec![fast],
            "communication phase 1 of job 0 asks for 100Gbps of link 0, which has 50Gbps: lower the demand and lengthen the phase",
        ),
    ] {
        let refused = Problem::new(vec![Rate::from_gbps(50); 2], 0, jobs);
        assert_eq!(refused.expect_err("nonsense").to_string(), message);
    }
    let short = sharing(vec![on_off(3, 4), on_off(3, 4)]);
    let coarse = plan(&short, &exactly()).expect_err("too coarse");
    assert!(
        coarse.to_string().contains("set `grid` to 70us"),
        "{coarse}"
    );
    for (settings, key) in [
        (
            PlanParameters {
                grid: Span::ZERO,
                ..exactly()
            },
            "grid",
        ),
        (
            PlanParameters {
                tolerance: f64::NAN,
                ..exactly()
            },
            "tolerance",
        ),
        (
            PlanParameters {
                sectors: 9,
                ..exactly()
            },
            "sectors",
        ),
    ] {
        assert_eq!(settings.check().map_err(|error| error.key()), Err(key));
        assert!(matches!(
            plan(&short, &settings),
            Err(PlanError::Setting(_))
        ));
    }
}
