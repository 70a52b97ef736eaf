//! Time and quality of plans for whole clusters: rings of jobs over the racks of a leaf-spine fabric.
//!
//! `cargo run --release -p clearway-planner --example cluster [BUDGET]`

#![allow(clippy::print_stdout, reason = "a program that prints")]

use clearway_planner::compatibility::{
    CandidatePlacement, Job, JobProfile, Load, PlanParameters, Problem, plan,
};
use clearway_units::{Purpose, RandomStream, Rate, Span};

/// Iteration times in ms, as in HotNets'22, Table 1, and the share of each that communicates, in percent.
const MODELS: [(u64, u64); 6] = [
    (157, 20),
    (165, 6),
    (255, 15),
    (273, 8),
    (329, 18),
    (1001, 10),
];

fn main() {
    let mut settings = PlanParameters::default();
    if let Some(budget) = std::env::args().nth(1) {
        settings.budget = budget.parse().expect("a number of sectors");
    }
    for (jobs, racks, spines, per_job) in [
        (50, 16, 8, 4),
        (200, 64, 16, 4),
        (400, 128, 32, 6),
        (800, 128, 32, 6),
    ] {
        let problem = rings(jobs, racks, spines, per_job, |_| MODELS.len());
        measure("mixed models", &problem, &settings);
    }
    for (jobs, racks, spines, per_job) in [(200, 64, 16, 4), (400, 128, 32, 6)] {
        // Only those of 165 and 329 ms, whose circle has 330 sectors.
        let problem = rings(jobs, racks, spines, per_job, |random| {
            [1, 4][random.below(2) as usize]
        });
        measure("two models", &problem, &settings);
    }
    for jobs in [50, 100, 200] {
        let problem = planted(jobs, 4 * jobs);
        measure("a plan is known to exist", &problem, &settings);
    }
}

#[allow(
    clippy::disallowed_methods,
    reason = "this program measures how long plans take"
)]
fn measure(name: &str, problem: &Problem, settings: &PlanParameters) {
    let begin = std::time::Instant::now();
    let plan = plan(problem, settings).expect("a plan");
    let seconds = begin.elapsed().as_secs_f64();
    let contended = plan.resources.iter().filter(|r| r.circle.is_some()).count();
    let before: f64 = plan.resources.iter().map(|r| 1.0 - r.score_before).sum();
    let bound: f64 = plan
        .circles
        .iter()
        .map(|c| c.least_overlap.as_secs() / c.perimeter().as_secs())
        .sum();
    println!(
        "{name}: {} jobs on {} links, {contended} of them contended; largest circle of {} jobs and {} sectors; \
         overlap {before:.3} -> {:.4}, bound {bound:.4}, {seconds:.2} s",
        problem.jobs().len(),
        plan.resources.len(),
        plan.circles.iter().map(|c| c.jobs.len()).max().unwrap_or(0),
        plan.circles.iter().map(|c| c.sectors).max().unwrap_or(0),
        plan.missing(),
    );
}

/// Jobs that are rings over some racks; each step takes the uplink and the downlink of a spine that chance chooses, as ECMP does.
fn rings(
    jobs: u32,
    racks: u32,
    spines: u32,
    per_job: u32,
    model: impl Fn(&mut RandomStream) -> usize,
) -> Problem {
    let mut random = RandomStream::new(1, Purpose::Test, u64::from(jobs));
    let jobs = (0..jobs).map(|_| {
        let mut order: Vec<u32> = (0..racks).collect();
        random.shuffle(&mut order);
        order.truncate(per_job as usize);
        let mut links = Vec::new();
        for (at, &rack) in order.iter().enumerate() {
            let next = order[(at + 1) % order.len()];
            let spine = random.below(spines);
            links.push(rack * spines + spine);
            links.push((racks + next) * spines + spine);
        }
        links.sort_unstable();
        links.dedup();
        let model = match model(&mut random) {
            all if all == MODELS.len() => random.below(all as u32) as usize,
            chosen => chosen,
        };
        let (period, percent) = MODELS[model];
        job(period, period * percent / 100, links)
    });
    let links = vec![Rate::from_gbps(400); (2 * racks * spines) as usize];
    Problem::new(links, 0, jobs.collect()).expect("a problem")
}

/// Jobs with rotations that chance has hidden, on links that were only chosen where these do not collide.
fn planted(jobs: u32, links: u32) -> Problem {
    const TURN: u64 = 360;
    let mut random = RandomStream::new(2, Purpose::Test, u64::from(jobs));
    let mut busy = vec![[false; TURN as usize]; links as usize];
    let jobs = (0..jobs).map(|_| {
        let period = [120, 180, 360][random.below(3) as usize];
        let length = period / 10 + u64::from(random.below(period as u32 / 5));
        let from = u64::from(random.below(period as u32));
        let takes: Vec<usize> = (0..TURN / period)
            .flat_map(|turn| (0..length).map(move |at| turn * period + from + at))
            .map(|at| (at % TURN) as usize)
            .collect();
        let mut used = Vec::new();
        for _ in 0..200 {
            let link = random.below(links);
            let sectors = &mut busy[link as usize];
            if used.len() < 12 && takes.iter().all(|&at| !sectors[at]) {
                takes.iter().for_each(|&at| sectors[at] = true);
                used.push(link);
            }
        }
        job(period, length, used)
    });
    Problem::new(
        vec![Rate::from_gbps(400); links as usize],
        0,
        jobs.collect(),
    )
    .expect("a problem")
}

fn job(period: u64, communication: u64, links: Vec<u32>) -> Job {
    let [compute, communication] = [period - communication, communication].map(Span::from_ms);
    Job {
        profile: JobProfile::on_off(compute, communication).expect("a profile"),
        placements: vec![CandidatePlacement {
            links: links.into_iter().map(Load::whole).collect(),
            gpus: Vec::new(),
        }],
    }
}
