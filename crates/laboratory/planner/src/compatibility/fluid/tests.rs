//! Comparison with closed forms, with the definition of max-min fairness at every instant, and with another simulator in small steps.

mod small_steps;

use super::simulation::{JobActivity, observed};
use super::*;
use crate::compatibility::{CandidatePlacement, Demand, Job, JobProfile, Phase, Share};
use clearway_units::{Purpose, RandomStream, Rate};
use proptest::prelude::*;

const fn ms(count: u64) -> Span {
    Span::from_ms(count)
}

/// A job that loads the whole of its links.
fn job(compute: Span, communication: Span, links: &[u32], iterations: u32) -> FluidJob {
    FluidJob {
        start: Span::ZERO,
        stretches: vec![Stretch {
            gap: compute,
            length: communication,
            loads: links.iter().copied().map(Load::whole).collect(),
            rate: 1.0,
        }],
        rest: Span::ZERO,
        iterations,
    }
}

/// A job with this profile that loads the whole of links with these rates.
fn of_profile(profile: JobProfile, gbps: &[u64], iterations: u32) -> FluidJob {
    let links = (0..gbps.len() as u32).map(Load::whole).collect();
    let job = Job {
        profile,
        placements: vec![
            CandidatePlacement::default(),
            CandidatePlacement {
                links,
                ..CandidatePlacement::default()
            },
        ],
    };
    let rates = gbps.iter().map(|&gbps| Rate::from_gbps(gbps)).collect();
    let problem = Problem::new(rates, 0, vec![job]).expect("a problem");
    FluidJob::new(&problem, 0, 1, iterations)
}

/// VGG16 as in HotNets'22 §3.
fn vgg16(iterations: u32) -> FluidJob {
    job(ms(141), ms(114), &[0], iterations)
}

fn later(job: FluidJob, start: Span) -> FluidJob {
    FluidJob { start, ..job }
}

fn spans(run: &FluidRun, job: usize) -> Vec<Span> {
    run.jobs[job].iter().map(Iteration::span).collect()
}

/// Lead of job 0's communication over job 1's in each iteration, in ps.
fn leads(run: &FluidRun) -> Vec<f64> {
    let pairs = run.jobs[0].iter().zip(&run.jobs[1]);
    let begun = |iteration: &Iteration| iteration.sending.expect("it communicates").as_ps() as f64;
    pairs.map(|(one, two)| begun(two) - begun(one)).collect()
}

fn near(found: f64, expected: f64, tolerance: f64) {
    assert!(
        (found - expected).abs() <= tolerance,
        "{found} instead of {expected}"
    );
}

#[test]
fn a_job_alone_takes_what_its_profile_says() {
    let quarter = Share::new(0.25).expect("a share");
    let arc = |start, length, demand| Phase {
        start: ms(start),
        length: ms(length),
        demand,
    };
    let arcs = vec![
        arc(60, 20, Demand::Rate(Rate::from_gbps(30))),
        arc(10, 30, Demand::Share(quarter)),
    ];
    let profile = JobProfile::new(ms(100), arcs, Vec::new()).expect("a profile");
    let job = of_profile(profile, &[50, 100], 3);
    let loads = |stretch: usize| {
        let loads = job.stretches[stretch].loads.iter();
        loads
            .map(|load| (load.link, load.part.as_f64()))
            .collect::<Vec<_>>()
    };
    assert_eq!(loads(0), [(0, 0.25), (1, 0.25)]);
    assert_eq!(loads(1), [(0, 0.6), (1, 0.3)]);
    let rates: Vec<f64> = job.stretches.iter().map(|stretch| stretch.rate).collect();
    assert_eq!(rates, [25.0, 30.0]);
    let gaps: Vec<Span> = job.stretches.iter().map(|stretch| stretch.gap).collect();
    assert_eq!((gaps, job.rest), (vec![ms(10), ms(20)], ms(20)));
    let all = [
        Sharing::Fair,
        Sharing::Weights(vec![7.0]),
        Sharing::Adaptive { gain: 1.0 },
        Sharing::Priorities(vec![3]),
        Sharing::Slots(vec![None]),
    ];
    for sharing in all {
        let job = later(job.clone(), ms(5));
        let run = run(2, &[job], &sharing).expect("a run");
        let expected = |number: u64| Iteration {
            begun: Time::ZERO + ms(5 + 100 * number),
            sending: Some(Time::ZERO + ms(15 + 100 * number)),
            over: Time::ZERO + ms(105 + 100 * number),
        };
        assert_eq!(run.jobs, [[0, 1, 2].map(expected).to_vec()]);
    }
}

#[test]
fn a_job_that_never_communicates_only_waits() {
    let profile = JobProfile::new(ms(7), Vec::new(), Vec::new()).expect("a profile");
    let job = of_profile(profile, &[], 2);
    let run = run(0, &[job], &Sharing::Adaptive { gain: 1.0 }).expect("a run");
    assert_eq!(spans(&run, 0), [ms(7), ms(7)]);
    assert_eq!(run.jobs[0][1].sending, None);
}

#[test]
fn two_equal_jobs_that_share_fairly_stay_slow_for_ever() {
    let run = run(1, &[vgg16(1000), vgg16(1000)], &Sharing::Fair).expect("a run");
    for job in 0..2 {
        assert!(
            spans(&run, job)
                .iter()
                .all(|&span| span == ms(141 + 2 * 114))
        );
    }
    assert_eq!(run.jobs[0], run.jobs[1]);
}

#[test]
fn three_equal_jobs_have_a_third_each() {
    // A third is not a whole number of grains, but 114 ms times three is still exactly 342 ms.
    let run = run(1, &[vgg16(100), vgg16(100), vgg16(100)], &Sharing::Fair).expect("a run");
    let slow = |span: &Span| *span == ms(141 + 3 * 114);
    assert!((0..3).all(|job| spans(&run, job).iter().all(slow)));
}

/// While the phases of two equal jobs overlap, with V the phase alone, f the share of the job that begins first and d its lead, the next
/// lead is V (2 - 1/f) + d (1/f - 1): the overlap shrinks by the factor 1/f - 1, and the later job always takes 2V - d.
#[test]
fn unfair_shares_let_jobs_slide_apart_as_the_law_says() {
    let phase = ms(114).as_ps() as f64;
    for weight in [1.05, 1.25, 1.5, 2.0, 3.0, 9.0] {
        let share = weight / (weight + 1.0);
        let factor = 1.0 / share - 1.0;
        for start in [0, 10, 60] {
            let jobs = [vgg16(40), later(vgg16(40), ms(start))];
            let sharing = Sharing::Weights(vec![weight, 1.0]);
            let run = run(1, &jobs, &sharing).expect("a run");
            let leads = leads(&run);
            near(leads[0], ms(start).as_ps() as f64, 0.0);
            let mut overlap = phase - leads[0];
            for (at, pair) in leads.windows(2).enumerate() {
                let law = phase * (2.0 - 1.0 / share) + pair[0] * factor;
                near(pair[1], law, 2.0);
                overlap *= factor;
                near(phase - pair[1], overlap, 2.0 / (1.0 - factor));
                let second = run.jobs[1][at].span().as_ps() as f64;
                near(second, 141e9 + 2.0 * phase - pair[0], 2.0);
            }
        }
    }
}

#[test]
fn the_less_aggressive_one_that_is_ahead_loses_its_lead_first() {
    // The law also holds with f = 1/3: the lead of 100 ms shrinks by twice its distance from the whole phase.
    let jobs = [vgg16(20), later(vgg16(20), ms(100))];
    let run = run(1, &jobs, &Sharing::Weights(vec![1.0, 2.0])).expect("a run");
    let leads = leads(&run);
    for (found, expected) in leads.iter().zip([100e9, 86e9, 58e9, 2e9]) {
        near(*found, expected, 20.0);
    }
    // In the end the other job leads, by its phase or by the rest of the iteration.
    let last = leads.last().expect("iterations");
    near(*last, -114e9, 1e7);
    let last = spans(&run, 0)[19].as_ps() as f64;
    near(last, 255e9, 1e7);
}

#[test]
fn priorities_keep_compatible_jobs_apart() {
    let both = [vgg16(50), vgg16(50)];
    let run_of = |jobs: &[FluidJob], levels: Vec<u32>| {
        run(1, jobs, &Sharing::Priorities(levels)).expect("a run")
    };
    let found = run_of(&both, vec![0, 1]);
    assert!(spans(&found, 0).iter().all(|&span| span == ms(255)));
    assert_eq!(spans(&found, 1)[0], ms(255 + 114));
    assert!(spans(&found, 1)[1..].iter().all(|&span| span == ms(255)));
    // Urgency depends on the number and not on the order of jobs.
    let swapped = run_of(&both, vec![5, 2]);
    assert_eq!(
        (&swapped.jobs[0], &swapped.jobs[1]),
        (&found.jobs[1], &found.jobs[0])
    );
    // Equal numbers share.
    let equal = run_of(&both, vec![4, 4]);
    assert!(spans(&equal, 0).iter().all(|&span| span == ms(369)));
    // Two jobs with the same period come apart if both phases fit, independent of the start.
    for (first, second, start) in [(10, 90, 3), (50, 50, 0), (30, 40, 99), (70, 30, 45)] {
        let jobs = [
            job(ms(100 - first), ms(first), &[0], 20),
            later(job(ms(100 - second), ms(second), &[0], 20), ms(start)),
        ];
        let found = run_of(&jobs, vec![0, 1]);
        let rest = spans(&found, 1).split_off(10);
        assert!(rest.iter().all(|&span| span == ms(100)), "{rest:?}");
    }
}

#[test]
fn a_starved_job_waits_until_there_is_room() {
    // 60 of every 70 ms are taken, from 10 ms on, which leaves 5 ms at first and then 10 ms of each turn.
    let busy = job(ms(10), ms(60), &[0], 10);
    let jobs = [busy, job(ms(5), ms(25), &[0], 1)];
    let run = run(1, &jobs, &Sharing::Priorities(vec![0, 1])).expect("a run");
    let only = run.jobs[1][0];
    assert_eq!(only.sending, Some(Time::ZERO + ms(5)));
    assert_eq!(only.over, Time::ZERO + ms(150));
}

#[test]
fn slots_keep_compatible_jobs_apart() {
    let slots = |shift, grace| {
        Some(CommunicationSlots {
            period: ms(255),
            shift: ms(shift),
            grace: ms(grace),
        })
    };
    let both = [vgg16(50), vgg16(50)];
    let planned = Sharing::Slots(vec![slots(141, 0), slots(255, 0)]);
    let found = run(1, &both, &planned).expect("a run");
    assert!(spans(&found, 0).iter().all(|&span| span == ms(255)));
    assert_eq!(spans(&found, 1)[0], ms(255 + 114));
    assert!(spans(&found, 1)[1..].iter().all(|&span| span == ms(255)));
    // A job that is late by 1 ms waits for a period each time, unless there is a grace.
    let late = [job(ms(142), ms(113), &[0], 9)];
    let found = run(1, &late, &Sharing::Slots(vec![slots(141, 0)])).expect("a run");
    let waits: Vec<Option<Time>> = found.jobs[0].iter().map(|one| one.sending).collect();
    let slot = |number: u64| Some(Time::ZERO + ms(141 + 255 * number));
    assert_eq!(waits[..3], [slot(1), slot(2), slot(3)]);
    let found = run(1, &late, &Sharing::Slots(vec![slots(141, 1)])).expect("a run");
    assert!(spans(&found, 0).iter().all(|&span| span == ms(255)));
    assert_eq!(found.jobs[0][0].sending, Some(Time::ZERO + ms(142)));
    // Without slots no job waits, and jobs with colliding slots share fairly.
    let shared = Sharing::Slots(vec![slots(141, 0), None]);
    let found = run(1, &both, &shared).expect("a run");
    assert_eq!(spans(&found, 1)[0], ms(141 + 228));
}

#[test]
fn the_next_slot_is_the_first_that_has_not_gone_by() {
    let next = |shift, grace, now| {
        let slots = CommunicationSlots {
            period: Span::from_us(10),
            shift: Span::from_us(shift),
            grace: Span::from_us(grace),
        };
        slots.next(Time::from_us(now)).as_us()
    };
    for (now, expected) in [
        (0, 4.0),
        (4, 4.0),
        (5, 14.0),
        (13, 14.0),
        (14, 14.0),
        (99, 104.0),
    ] {
        assert_eq!(next(24, 0, now), expected, "{now}");
    }
    for (now, expected) in [(3, 4.0), (4, 4.0), (6, 6.0), (7, 14.0), (16, 16.0)] {
        assert_eq!(next(4, 2, now), expected, "{now}");
    }
}

#[test]
fn only_the_first_communication_of_an_iteration_waits_for_a_slot() {
    let phases = vec![Phase::whole(ms(10), ms(10)), Phase::whole(ms(30), ms(10))];
    let profile = JobProfile::new(ms(50), phases, Vec::new()).expect("a profile");
    let job = of_profile(profile, &[], 3);
    let slots = CommunicationSlots {
        period: ms(70),
        shift: ms(25),
        grace: Span::ZERO,
    };
    let run = run(0, &[job], &Sharing::Slots(vec![Some(slots)])).expect("a run");
    assert_eq!(spans(&run, 0), [ms(65), ms(70), ms(70)]);
}

/// The mean iterations of two equal jobs without the first 300 and the last 20 of 400, in ms.
fn adaptive(compute: u64, communication: u64, start: Span) -> [f64; 2] {
    let one = job(ms(compute), ms(communication), &[0], 400);
    let jobs = [one.clone(), later(one, start)];
    let run = run(1, &jobs, &Sharing::Adaptive { gain: 1.0 }).expect("a run");
    // The job that finishes first leaves the link to the other job.
    [0, 1].map(|job| {
        let all: Span = spans(&run, job)[300..380].iter().copied().sum();
        all.as_secs() * 1e3 / 80.0
    })
}

#[test]
fn adaptive_unfairness_parts_compatible_jobs_that_are_not_in_step() {
    for start in [Span::from_us(100), ms(1), ms(30), ms(200)] {
        for found in adaptive(141, 114, start) {
            near(found, 255.0, 0.01);
        }
    }
    // Jobs in step stay in step.
    near(adaptive(141, 114, Span::ZERO)[1], 369.0, 1e-9);
}

#[test]
fn adaptive_unfairness_gives_equal_means_to_jobs_that_do_not_fit() {
    for start in [ms(1), ms(30), ms(90)] {
        // The link is always in use, and each has half of that time.
        for found in adaptive(20, 80, start) {
            near(found, 160.0, 0.1);
        }
    }
    near(adaptive(20, 80, Span::ZERO)[1], 180.0, 1e-9);
}

/// Two jobs in one phase: job 0 has done `lead` of it when job 1 begins. Runge and Kutta's method on da/dt = (1 + a) / (2 + a + b).
#[test]
fn adaptive_weights_follow_their_differential_equation() {
    for lead in [0.0, 0.1, 0.5, 0.9] {
        let slope = |a: f64, b: f64| ((1.0 + a) / (2.0 + a + b), (1.0 + b) / (2.0 + a + b));
        let (mut a, mut b, mut time) = (lead, 0.0, lead);
        let step = 1e-5;
        while a < 1.0 {
            let first = slope(a, b);
            let half = slope(a + first.0 * step / 2.0, b + first.1 * step / 2.0);
            a += half.0 * step;
            b += half.1 * step;
            time += step;
        }
        let begin = Span::from_ps((lead * 1e11) as u64);
        let jobs = [
            job(ms(0) + Span::from_ps(1), ms(100), &[0], 1),
            later(job(Span::from_ps(1), ms(100), &[0], 1), begin),
        ];
        let run = run(1, &jobs, &Sharing::Adaptive { gain: 1.0 }).expect("a run");
        near(run.jobs[0][0].over.as_ps() as f64 / 1e11, time, 2e-5);
        near(run.jobs[1][0].over.as_ps() as f64 / 1e11, 2.0, 1e-9);
    }
}

/// Job 1 is on both links, jobs 0 and 2 on one each.
#[test]
fn a_chain_of_three_jobs_shares_two_links() {
    let once = |links: &[u32], communication| job(ms(10), ms(communication), links, 1);
    let jobs = [once(&[0], 60), once(&[0, 1], 60), once(&[1], 30)];
    let over = |sharing: &Sharing| {
        let run = run(2, &jobs, sharing).expect("a run");
        [0, 1, 2].map(|job: usize| run.jobs[job][0].over.as_ps())
    };
    let ps = |ms: u64| ms * 1_000_000_000;
    // A half each; the last job is over after 60 ms, which helps neither of the other jobs, because link 0 is full until both are over.
    assert_eq!(over(&Sharing::Fair), [ps(130), ps(130), ps(70)]);
    // Weights 1, 1, 2: a third and two thirds on link 1, which leaves two thirds to job 0. After 45 ms job 2 is over, and jobs 0 and 1
    // have 30 and 45 ms to go: halves for 60 ms, then 15 ms alone.
    let found = over(&Sharing::Weights(vec![1.0, 1.0, 2.0]));
    for (found, expected) in found.iter().zip([ps(115), ps(130), ps(55)]) {
        assert!(found.abs_diff(expected) <= 1, "{found}");
    }
    // Job 1 is first, then the other jobs run at the same time.
    assert_eq!(
        over(&Sharing::Priorities(vec![1, 0, 1])),
        [ps(130), ps(70), ps(100)]
    );
    // Job 0 is first. Job 1 waits although link 1 is free; job 2 uses link 1.
    assert_eq!(
        over(&Sharing::Priorities(vec![0, 1, 2])),
        [ps(70), ps(130), ps(40)]
    );
}

#[test]
fn fair_sharing_compares_rates_and_not_speeds() {
    let over = |jobs: &[FluidJob]| {
        let run = run(1, jobs, &Sharing::Fair).expect("a run");
        [0, 1].map(|job: usize| run.jobs[job][0].over.as_ps() as f64 / 1e9)
    };
    // One job needs half of the link and gets it; the other job has the rest, and then the whole link.
    let mut half = job(ms(1), ms(50), &[0], 1);
    half.stretches[0].loads[0].part = Share::new(0.5).expect("a share");
    half.stretches[0].rate = 0.5;
    let both = [half.clone(), job(ms(1), ms(50), &[0], 1)];
    assert_eq!(over(&both), [51.0, 76.0]);
    // With equal full rates, both jobs have two thirds of their full rates.
    half.stretches[0].rate = 1.0;
    let found = over(&[half, job(ms(1), ms(50), &[0], 1)]);
    near(found[0], 76.0, 1e-8);
    near(found[1], 76.0, 1e-8);
}

#[test]
fn the_median_is_the_lower_one_in_the_middle() {
    let at = |at| Time::ZERO + ms(at);
    let iteration = |begun, over| Iteration {
        begun: at(begun),
        sending: None,
        over: at(over),
    };
    let run = FluidRun {
        jobs: vec![vec![
            iteration(0, 9),
            iteration(9, 10),
            iteration(10, 14),
            iteration(14, 16),
        ]],
    };
    assert_eq!(
        (run.median(0, 0), run.mean(0, 0)),
        (Some(ms(2)), Some(ms(4)))
    );
    assert_eq!(run.median(0, 1), Some(ms(2)));
    let mean = Span::from_ps(7_000_000_000 / 3);
    assert_eq!((run.mean(0, 1), run.mean(0, 4)), (Some(mean), None));
    assert_eq!(run.median(0, 4), None);
}

#[test]
fn what_makes_no_sense_is_refused() {
    let good = vgg16(1);
    let refused = |change: &dyn Fn(&mut FluidJob)| {
        let mut bad = good.clone();
        change(&mut bad);
        let error = run(1, &[good.clone(), bad], &Sharing::Fair).expect_err("no sense");
        error.to_string()
    };
    let none = refused(&|job| job.iterations = 0);
    assert_eq!(none, "job 1 has no iterations: give at least one");
    let empty = refused(&|job| job.stretches[0].length = Span::ZERO);
    assert_eq!(
        empty,
        "communication phase 1 of job 1 takes no time: leave it out"
    );
    let unknown = refused(&|job| job.stretches[0].loads[0].link = 1);
    assert_eq!(
        unknown,
        "job 1 uses link 1, but there are only 1, numbered from zero"
    );
    let twice = refused(&|job| job.stretches[0].loads.push(Load::whole(0)));
    assert_eq!(twice, "job 1 uses link 0 more than once");
    let rate = refused(&|job| job.stretches[0].rate = f64::INFINITY);
    assert_eq!(
        rate,
        "job 1 has a rate or a weight of inf: give at least 1e-9 and at most 1e9"
    );
    let long = refused(&|job| job.rest = Span::MAX);
    assert_eq!(long, "the run would last more than 213 days");
    let slots = CommunicationSlots {
        period: ms(1),
        shift: ms(0),
        grace: ms(1),
    };
    for (sharing, text) in [
        (
            Sharing::Weights(vec![0.0]),
            "job 0 has a rate or a weight of 0: give at least 1e-9 and at most 1e9",
        ),
        (
            Sharing::Priorities(vec![1, 2]),
            "there are 1 jobs, but 2 entries for them",
        ),
        (
            Sharing::Adaptive { gain: -1.0 },
            "a gain of -1: give at least 0 and at most 1e9",
        ),
        (
            Sharing::Slots(vec![Some(slots)]),
            "the slots of job 0 need a period above zero and a grace below that",
        ),
    ] {
        let error = run(1, std::slice::from_ref(&good), &sharing).expect_err("no sense");
        assert_eq!(error.to_string(), text);
    }
}

/// A problem without round numbers: up to five jobs with up to three phases on up to four links.
fn any_case(seed: u64) -> (u32, Vec<FluidJob>, Sharing) {
    let mut random = RandomStream::new(seed, Purpose::Test, 12);
    let links = 1 + random.below(4);
    let count = 1 + random.below(5) as usize;
    let mut jobs = Vec::new();
    for _ in 0..count {
        let us = |random: &mut RandomStream, most: u64| {
            Span::from_ps(1 + random.next_u64() % (most * 1_000_000))
        };
        let mut on_links = Vec::new();
        for link in 0..links {
            if random.chance(0.6) {
                on_links.push(link);
            }
        }
        let stretches = (0..1 + random.below(3)).map(|_| Stretch {
            gap: us(&mut random, 20_000),
            length: us(&mut random, 20_000),
            loads: on_links
                .iter()
                .map(|&link| match random.below(2) {
                    0 => Load::whole(link),
                    _ => Load {
                        link,
                        part: Share::new(0.2 + 0.8 * random.unit()).expect("a share"),
                    },
                })
                .collect(),
            rate: 0.5 + random.unit(),
        });
        let stretches = stretches.collect();
        jobs.push(FluidJob {
            start: us(&mut random, 20_000),
            stretches,
            rest: us(&mut random, 10_000),
            iterations: 6,
        });
    }
    let weights = (0..count).map(|_| 1.0 + random.unit()).collect();
    let levels = (0..count).map(|_| random.below(3)).collect();
    let sharing = match random.below(4) {
        0 => Sharing::Fair,
        1 => Sharing::Weights(weights),
        2 => Sharing::Adaptive { gain: 1.0 },
        _ => Sharing::Priorities(levels),
    };
    (links, jobs, sharing)
}

/// Load of the jobs with these speeds on each link.
fn loads(links: u32, jobs: &[FluidJob], speeds: &[Option<(usize, f64)>]) -> Vec<f64> {
    let mut loads = vec![0.0; links as usize];
    for (job, speed) in jobs.iter().zip(speeds) {
        let Some((stretch, speed)) = *speed else {
            continue;
        };
        for load in &job.stretches[stretch].loads {
            loads[load.link as usize] += load.part.as_f64() * speed;
        }
    }
    loads
}

fn level_of(sharing: &Sharing, job: usize) -> u32 {
    match sharing {
        Sharing::Priorities(levels) => levels[job],
        _ => 0,
    }
}

/// Weight of a job with progress `done` in the phases of the iteration.
fn weight_of(sharing: &Sharing, job: usize, done: f64) -> f64 {
    match sharing {
        Sharing::Weights(weights) => weights[job],
        Sharing::Adaptive { gain } => 1.0 + gain * done,
        _ => 1.0,
    }
}

/// Asserts that no job can gain speed without a loss for a job that has no more by weight, or is more urgent.
fn assert_fair(
    links: u32,
    jobs: &[FluidJob],
    sharing: &Sharing,
    speeds: &[Option<(usize, f64)>],
    weights: &[f64],
) {
    let taken = loads(links, jobs, speeds);
    assert!(taken.iter().all(|&load| load <= 1.0 + 1e-9), "{taken:?}");
    let height = |job: usize| {
        speeds[job].map(|(stretch, speed)| speed * jobs[job].stretches[stretch].rate / weights[job])
    };
    for (one, job) in jobs.iter().enumerate() {
        let Some((stretch, speed)) = speeds[one] else {
            continue;
        };
        if speed > 1.0 - 1e-9 {
            continue;
        }
        let own = height(one).expect("it sends");
        let held = job.stretches[stretch].loads.iter().any(|load| {
            let link = load.link;
            let users = (0..jobs.len()).filter(|&other| {
                jobs[other].stretches[0]
                    .loads
                    .iter()
                    .any(|load| load.link == link)
            });
            let mut others = users.filter(|&other| speeds[other].is_some_and(|at| at.1 > 1e-9));
            taken[link as usize] > 1.0 - 1e-9
                && others.all(|other| {
                    let (mine, its) = (level_of(sharing, one), level_of(sharing, other));
                    its < mine
                        || its == mine && height(other).expect("it sends") <= own * (1.0 + 1e-6)
                })
        });
        assert!(held, "job {one} could have more: {speeds:?}, {taken:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn speeds_are_max_min_fair_at_any_time_and_all_work_is_done(seed in any::<u64>()) {
        let (links, jobs, sharing) = any_case(seed);
        let mut work = vec![0.0; jobs.len()];
        let mut last = Time::ZERO;
        let found = observed(links, &jobs, &sharing, |from, to, runners| {
            assert!(from == last && to > from);
            last = to;
            let speeds: Vec<_> = runners
                .iter()
                .map(|runner| match runner.doing {
                    JobActivity::Sends { stretch, .. } => Some((stretch, runner.speed())),
                    _ => None,
                })
                .collect();
            let weights: Vec<f64> = (0..jobs.len())
                .map(|job| weight_of(&sharing, job, runners[job].progress()))
                .collect();
            assert_fair(links, &jobs, &sharing, &speeds, &weights);
            for (work, speed) in work.iter_mut().zip(&speeds) {
                *work += speed.map_or(0.0, |at| at.1) * (to - from).as_ps() as f64;
            }
        })
        .expect("a run");
        for (job, of) in jobs.iter().enumerate() {
            let asked: Span = of.stretches.iter().map(|stretch| stretch.length).sum();
            let asked = asked.as_ps() as f64 * f64::from(of.iterations);
            // Half a picosecond for each phase, and the rounding of float sums.
            let phases = of.stretches.len() as f64 * f64::from(of.iterations);
            prop_assert!((work[job] - asked).abs() <= phases * 0.5 + 1.0, "{} {}", work[job], asked);
            prop_assert_eq!(found.jobs[job].len(), of.iterations as usize);
            let least: Span = of.stretches.iter().map(|stretch| stretch.gap + stretch.length).sum();
            let rounded = Span::from_ps(of.stretches.len() as u64);
            for pair in found.jobs[job].windows(2) {
                prop_assert_eq!(pair[0].over, pair[1].begun);
            }
            for iteration in &found.jobs[job] {
                prop_assert!(iteration.span() + rounded >= least + of.rest);
            }
        }
        prop_assert_eq!(run(links, &jobs, &sharing).expect("a run"), found);
    }

    #[test]
    fn jobs_without_a_common_link_are_as_if_alone(seed in any::<u64>()) {
        let (_, mut jobs, _) = any_case(seed);
        for (link, job) in (0..).zip(&mut jobs) {
            for stretch in &mut job.stretches {
                stretch.loads = vec![Load::whole(link)];
            }
        }
        let found = run(5, &jobs, &Sharing::Fair).expect("a run");
        for (job, of) in jobs.iter().enumerate() {
            let busy: Span = of.stretches.iter().map(|stretch| stretch.gap + stretch.length).sum();
            prop_assert!(found.jobs[job].iter().all(|one| one.span() == busy + of.rest));
        }
    }
}

#[test]
fn small_steps_come_to_the_same() {
    // An event in the other simulator is late by at most a step, but the delay can affect later events several times.
    let step = Span::from_us(1);
    for seed in 0..40 {
        let (links, jobs, sharing) = any_case(seed);
        let found = run(links, &jobs, &sharing).expect("a run");
        let other = small_steps::run(links, &jobs, &sharing, step);
        for (job, (found, other)) in found.jobs.iter().zip(&other).enumerate() {
            assert_eq!(found.len(), other.len());
            for (one, two) in found.iter().zip(other) {
                let sending = one.sending.expect("it communicates");
                for (one, two) in [(one.begun, two[0]), (sending, two[1]), (one.over, two[2])] {
                    let steps = (one.as_ps() as f64 - two).abs() / step.as_ps() as f64;
                    assert!(steps < 40.0, "case {seed}, job {job}: {one} and {two}");
                }
            }
        }
    }
}
