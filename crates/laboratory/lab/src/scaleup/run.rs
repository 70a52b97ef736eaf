//! Runs of scale-up fabrics.

use super::assembly::ScaleupAssembly;
use crate::job_result::{IterationTimes, JobResult};
use crate::observe::ScaleupTelemetry;
use clearway_fabric::{RunDecision, RunProgress, Stopped, Threads};
use clearway_scaleup::injection::InjectionFacts;
use clearway_scaleup::{
    Finished, IterationLog, RoundState, RunLimits, Setup, Simulation, Watcher, cycles_of, time_of,
};
use clearway_scenario::ScaleupJob;
use clearway_units::{Span, Time};

/// Options of a run.
pub struct ScaleupRunOptions<'a> {
    /// Worker threads.
    pub threads: Threads,
    /// Called between rounds of the engine, with operations instead of flows and flit-hops instead of packet-hops; may stop the run.
    pub on_progress: &'a mut dyn FnMut(RunProgress) -> RunDecision,
}

/// A finished run of a scale-up fabric.
#[derive(Debug, Clone, PartialEq)]
pub struct ScaleupFinished {
    /// Outcome of the fabric.
    pub fabric: Finished,
    /// Time at which the last response had arrived and the last job was over, or the run was stopped.
    pub simulated: Time,
    /// Reason why the run ended early, if it did.
    pub stopped: Option<Stopped>,
    /// Jobs from traces, by section.
    pub jobs: Vec<JobResult>,
}

impl ScaleupAssembly<'_> {
    /// Runs the assembly, sampled by `telemetry` if it is set.
    ///
    /// # Panics
    /// If packets or credits are not conserved, or a reduction is wrong, which is a defect of the program, never of the scenario.
    pub fn run(
        &self,
        options: ScaleupRunOptions<'_>,
        telemetry: Option<&mut ScaleupTelemetry<'_>>,
    ) -> ScaleupFinished {
        let (simulation, jobs) = self.simulation();
        let at_most = cycles_of(self.scenario().general.at_most, self.cycle());
        let limits = RunLimits {
            threads: options.threads,
            at_most: Some(at_most),
        };
        let mut watch = Watch {
            on_progress: options.on_progress,
            telemetry,
            operations: self.operations,
            cycle: self.cycle(),
            is_interrupted: false,
        };
        let fabric = simulation.run(limits, Some(&mut watch));
        if let Some(defect) = &fabric.fault {
            panic!("flits are not conserved: {defect}");
        }
        let stopped = match (fabric.is_stopped, watch.is_interrupted) {
            (_, true) => Some(Stopped::Interrupted),
            (true, false) => Some(Stopped::AtMost),
            (false, false) => (!fabric.is_over).then_some(Stopped::Stuck),
        };
        let jobs: Vec<JobResult> = jobs.iter().map(|job| result(job, self.cycle())).collect();
        let over = jobs.iter().flat_map(|job| &job.times);
        let last = over.filter_map(|times| times.over).max();
        let end = time_of(fabric.end, self.cycle());
        ScaleupFinished {
            simulated: last.map_or(end, |last| last.max(end)),
            stopped,
            fabric,
            jobs,
        }
    }

    fn simulation(&self) -> (Simulation, Vec<ScaleupJob>) {
        let scenario = self.scenario();
        let fit = "the scenario was put together before";
        let traffic = scenario.traffic().expect(fit);
        let control = |facts: &InjectionFacts<'_>| scenario.injection.build(facts);
        let setup = Setup {
            configuration: scenario.fabric.configuration.clone(),
            tree: scenario.fabric.nvlink.tree(),
            groups: traffic.groups,
            seed: scenario.general.seed,
            control: &control,
            programs: traffic.programs,
        };
        (Simulation::new(setup).expect(fit), traffic.jobs)
    }
}

/// Outcome of a job in a finished run.
fn result(job: &ScaleupJob, cycle: Span) -> JobResult {
    let times = IterationLog::merged(&job.logs).into_iter();
    let time = |at| time_of(at, cycle);
    JobResult {
        label: job.label.clone(),
        ranks: job.gpus.len() as u32,
        hosts: job.gpus.clone(),
        section: job.section,
        flows: 0..0,
        iterations: job.iterations,
        volume: None,
        times: times
            .map(|times| IterationTimes {
                begun: time(times.begun),
                sending: times.sending.map(time),
                over: times.over.map(time),
            })
            .collect(),
    }
}

/// Watches a run: reports its progress, and stops it.
struct Watch<'a, 'b> {
    on_progress: &'a mut dyn FnMut(RunProgress) -> RunDecision,
    telemetry: Option<&'a mut ScaleupTelemetry<'b>>,
    operations: u64,
    cycle: Span,
    is_interrupted: bool,
}

impl Watcher for Watch<'_, '_> {
    fn on_round(&mut self, watched: &RoundState<'_, '_>) -> bool {
        if let Some(telemetry) = &mut self.telemetry {
            telemetry.on_round(watched);
        }
        let (done, hops) = watched.progress();
        let verdict = (self.on_progress)(RunProgress {
            now: time_of(watched.now, self.cycle),
            flows_sent: done as usize,
            flows: self.operations as usize,
            hops,
        });
        self.is_interrupted = verdict == RunDecision::Stop;
        !self.is_interrupted
    }
}
