//! `--dry-run`: an estimate of the cost of a run, from its flows and a short calibration run.

use crate::failure::Failure;
use crate::output::print;
use crate::progress::wall_time;
use clearway_lab::units::Span;
use clearway_lab::{
    Assembly, ExpectedWork, Experiment, Laboratory, RunDecision, RunOptions, Watch,
};
use clearway_report::quantity::{bytes, count, prefixed};
use clearway_report_text::{Align, Table};
use clearway_runs::{Stopwatch, peak_rss_bytes};
use clearway_sweep::{PlannedRun, Sweep};

/// Wall seconds of the calibration run.
const CALIBRATION: f64 = 0.3;
/// Shortest calibration run that measures speed.
const SHORTEST: f64 = 0.02;
const WIDTH: usize = 80;

/// Cost of one run.
struct Estimate {
    work: ExpectedWork,
    /// Seconds on one thread.
    seconds: f64,
    /// Packet-hops per second, from which the seconds are computed.
    speed: f64,
    /// Simulated time of the calibration run; `None` if it was the whole run.
    until: Option<Span>,
    /// Peak memory of the process so far, in bytes.
    memory: u64,
}

impl Estimate {
    fn from_assembly(assembly: &Assembly) -> Self {
        let work = assembly.expected_work();
        let stopwatch = Stopwatch::start();
        let (mut hops, mut until) = (0, None);
        let options = RunOptions {
            threads: 1.into(),
            on_progress: &mut |progress| {
                hops = progress.hops;
                let is_over = stopwatch.wall_seconds() > CALIBRATION;
                until = is_over.then(|| progress.now.since(clearway_lab::units::Time::ZERO));
                match is_over {
                    true => RunDecision::Stop,
                    false => RunDecision::Continue,
                }
            },
            on_flow: &mut |_, _, _| (),
        };
        let finished = assembly.run(options, Watch::Off);
        let seconds = stopwatch.wall_seconds();
        until = until.filter(|_| finished.stopped.is_some());
        let speed = hops as f64 / seconds.max(1e-9);
        Self {
            work,
            seconds: match until {
                None => seconds,
                Some(_) => (work.packet_hops as f64 / speed).max(seconds),
            },
            speed,
            until,
            memory: peak_rss_bytes(),
        }
    }
}

/// Prints the estimated cost of a run of this scenario.
///
/// # Errors
/// If its parts do not fit each other.
pub(crate) fn run(assembly: &Assembly) -> Result<(), Failure> {
    let estimate = Estimate::from_assembly(assembly);
    let work = &estimate.work;
    let mut table = Table::new().column("", Align::Left).column("", Align::Left);
    table.row([
        "flows",
        &format!("{}, {} of payload", count(work.flows), bytes(work.payload)),
    ]);
    table.row(["data packets", &count(work.data_packets)]);
    table.row([
        "packet-hops",
        &format!(
            "{} with acknowledgements, if nothing is sent again",
            prefixed(work.packet_hops as f64)
        ),
    ]);
    let memory = match estimate.until {
        None => bytes(estimate.memory),
        Some(span) => format!("{} until {span} of simulated time", bytes(estimate.memory)),
    };
    table.row(["memory", &memory]);
    let time = match (estimate.until, estimate.seconds < SHORTEST) {
        (None, true) => "less than 20 ms".to_owned(),
        (None, false) => format!("{:.2} s: it has just run to its end", estimate.seconds),
        (Some(_), _) => format!(
            "about {} on one thread, at {} packet-hops/s, measured for {CALIBRATION} s",
            cpu_time(estimate.seconds),
            prefixed(estimate.speed),
        ),
    };
    table.row(["CPU time", &time]);
    print(&table.render(WIDTH))
}

/// A variant of a comparison: its label and its runs.
pub(crate) type Variant<'a> = (&'a str, &'a [Experiment]);

/// Prints the estimated cost of a comparison for each variant, from its first seed.
///
/// # Errors
/// If a scenario's parts do not fit each other, or a scenario has a scale-up fabric.
pub(crate) fn compare(variants: &[Variant<'_>]) -> Result<(), Failure> {
    let mut table = Table::new().column("variant", Align::Left);
    for heading in ["runs", "packet-hops", "CPU time"] {
        table = table.column(heading, Align::Right);
    }
    let (mut runs, mut seconds) = (0, 0.0);
    for (label, experiments) in variants {
        let Some(first) = experiments.first() else {
            continue;
        };
        let Experiment::Packets(scenario) = first else {
            return Err(scale_up());
        };
        let estimate = Estimate::from_assembly(&Assembly::streaming(scenario)?);
        let all = experiments.len() as f64;
        table.row([
            (*label).to_owned(),
            count(experiments.len() as u64),
            prefixed(estimate.work.packet_hops as f64 * all),
            cpu_time(estimate.seconds * all),
        ]);
        runs += experiments.len();
        seconds += estimate.seconds * all;
    }
    print(&format!(
        "{}\n{} runs, {} of CPU time, if nothing is sent again\n",
        table.render(WIDTH),
        count(runs as u64),
        cpu_time(seconds)
    ))
}

/// Most runs of a study that the estimate samples.
const MOST_SAMPLES: usize = 8;

/// Indexes of at most [`MOST_SAMPLES`] of `count` runs, spread evenly.
pub(crate) fn sampled(count: usize) -> Vec<usize> {
    let samples = count.min(MOST_SAMPLES);
    (0..samples)
        .map(|number| number * count / samples)
        .collect()
}

/// Sentence on the cost of `count` runs of a sweep, estimated from a sample.
///
/// # Errors
/// If a scenario can no longer be read, or its parts do not fit each other.
pub(crate) fn sweep(
    (sweep, laboratory): (&Sweep, &Laboratory),
    runs: &[&PlannedRun],
    count: u64,
) -> Result<String, Failure> {
    let samples = sampled(runs.len()).into_iter();
    let samples = samples.map(|at| sweep.experiment(laboratory, runs[at]));
    study(&samples.collect::<Result<Vec<_>, _>>()?, count)
}

/// Sentence on the cost of `runs` runs, estimated from `samples`.
///
/// # Errors
/// If a scenario's parts do not fit each other.
pub(crate) fn study(samples: &[Experiment], runs: u64) -> Result<String, Failure> {
    let (mut hops, mut seconds) = (0.0, 0.0);
    for experiment in samples {
        let Experiment::Packets(scenario) = experiment else {
            return Ok("not reckoned: a scale-up fabric has operations and no packets".into());
        };
        let estimate = Estimate::from_assembly(&Assembly::streaming(scenario)?);
        hops += estimate.work.packet_hops as f64;
        seconds += estimate.seconds;
    }
    let each = runs as f64 / samples.len().max(1) as f64;
    Ok(format!(
        "{} packet-hops and {} of CPU time, reckoned by {} of {} runs, if nothing is sent again",
        prefixed(hops * each),
        cpu_time(seconds * each),
        samples.len(),
        count(runs)
    ))
}

/// Refusal for scale-up fabrics, which have operations instead of flows.
pub(crate) fn scale_up() -> Failure {
    Failure::new(
        "`--dry-run` counts packets, and a scale-up fabric (`topology.kind = \"nvlink\"`) has operations\n  fix: leave it out; progress tells how long the run takes",
    )
}

fn cpu_time(seconds: f64) -> String {
    match seconds < 10.0 {
        true => format!("{seconds:.2} s"),
        false => wall_time(seconds),
    }
}
