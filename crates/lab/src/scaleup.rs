//! Assembling and running scenarios of scale-up fabrics.

use crate::ScenarioError;
use crate::observe::ScaleupTelemetry;
use clearway_fabric::{Progress, Stopped, Verdict};
use clearway_scaleup::injection::InjectionFacts;
use clearway_scaleup::{
    Cycle, Finished, RunLimits, Setup, Simulation, Watched, Watcher, cycles_of, time_of,
};
use clearway_scenario::ScaleupScenario;
use clearway_units::{Rate, Span, Time};

/// A scenario of a scale-up fabric, put together and checked.
#[derive(Debug)]
pub struct ScaleupAssembly<'a> {
    scenario: &'a ScaleupScenario,
    /// Operations that its programs post.
    pub operations: u64,
}

/// Options of a run.
pub struct ScaleupRunOptions<'a> {
    /// Worker threads.
    pub threads: usize,
    /// Called between rounds of the engine, with operations instead of flows and flit-hops instead of packet-hops; may stop the run.
    pub on_progress: &'a mut dyn FnMut(Progress) -> Verdict,
}

/// A link of a scale-up fabric.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScaleupLink {
    /// Its ends, as in "leaf0-spine2".
    pub name: String,
    /// Number of the node that sends.
    pub from: u32,
    /// Number of the node that receives.
    pub to: u32,
}

/// Bytes of a flit (§6.1.4).
pub(crate) const FLIT_BYTES: u64 = 16;
const PS_PER_SECOND: u64 = 1_000_000_000_000;

/// A finished run of a scale-up fabric.
#[derive(Debug, Clone, PartialEq)]
pub struct ScaleupFinished {
    /// What the fabric leaves.
    pub fabric: Finished,
    /// Time at which the last response was there, or the run was stopped.
    pub simulated: Time,
    /// Reason why the run ended early, if it did.
    pub stopped: Option<Stopped>,
}

impl<'a> ScaleupAssembly<'a> {
    /// Puts a scenario together.
    ///
    /// # Errors
    /// If its parts do not fit together.
    pub fn new(scenario: &'a ScaleupScenario) -> Result<Self, ScenarioError> {
        let operations = scenario.traffic()?.operations;
        Ok(Self {
            scenario,
            operations,
        })
    }

    /// The scenario.
    pub fn scenario(&self) -> &'a ScaleupScenario {
        self.scenario
    }

    /// Length of a cycle.
    pub fn cycle(&self) -> Span {
        self.scenario.fabric.configuration.cycle
    }

    /// Names of the nodes: GPUs, then leaves, then spines.
    pub fn nodes(&self) -> impl Iterator<Item = String> {
        let tree = self.scenario.fabric.nvlink.tree();
        let gpus = (0..tree.gpus).map(|gpu| format!("gpu{gpu}"));
        let leaves = (0..tree.leaves()).map(|leaf| format!("leaf{leaf}"));
        let spines = (0..tree.spines).map(|spine| format!("spine{spine}"));
        gpus.chain(leaves).chain(spines)
    }

    /// The links, in the order of [`Finished::links`]: out of each switch, leaves first, then out of GPUs. Parallel ones share a name.
    pub fn links(&self) -> impl Iterator<Item = ScaleupLink> {
        let tree = self.scenario.fabric.nvlink.tree();
        let names: Vec<String> = self.nodes().collect();
        let (gpus, leaves, spines) = (tree.gpus, tree.leaves(), tree.spines);
        let (below, uplinks, parallel) = (tree.gpus_per_leaf, tree.uplinks(), tree.links_per_spine);
        let first_leaf = gpus;
        let first_spine = first_leaf + leaves;
        let of_leaves = (0..leaves).flat_map(move |leaf| {
            let down = (0..below).map(move |port| leaf * below + port);
            let up = (0..uplinks).map(move |uplink| first_spine + uplink / parallel);
            down.chain(up).map(move |to| (first_leaf + leaf, to))
        });
        let of_spines = (0..spines).flat_map(move |spine| {
            let to = (0..leaves * parallel).map(move |port| first_leaf + port / parallel);
            to.map(move |to| (first_spine + spine, to))
        });
        let of_gpus = (0..gpus).map(move |gpu| (gpu, first_leaf + gpu / below));
        let all = of_leaves.chain(of_spines).chain(of_gpus);
        all.map(move |(from, to)| ScaleupLink {
            name: format!("{}-{}", names[from as usize], names[to as usize]),
            from,
            to,
        })
    }

    /// Rate of each link.
    pub fn link_rate(&self) -> Rate {
        Rate::from_bps(FLIT_BYTES * 8 * PS_PER_SECOND / self.cycle().as_ps())
    }

    /// Runs it, watched by `telemetry` if there is one.
    ///
    /// # Panics
    /// If packets or credits are not conserved, or a reduction is wrong: our defect, never the user's.
    pub fn run(
        &self,
        options: ScaleupRunOptions<'_>,
        telemetry: Option<&mut ScaleupTelemetry<'_>>,
    ) -> ScaleupFinished {
        let simulation = self.simulation();
        let at_most = cycles_of(self.scenario.general.at_most, self.cycle());
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
            now: 0,
        };
        let fabric = simulation.run(limits, Some(&mut watch));
        if let Some(defect) = &fabric.fault {
            panic!("flits are not conserved: {defect}");
        }
        let stopped = match (fabric.is_stopped, watch.is_interrupted) {
            (_, true) => Some(Stopped::Interrupted),
            (true, false) => Some(Stopped::AtMost),
            (false, false) => None,
        };
        let end = match stopped {
            None => fabric.last,
            Some(_) => watch.now.min(at_most).max(fabric.last),
        };
        ScaleupFinished {
            simulated: time_of(end, self.cycle()),
            stopped,
            fabric,
        }
    }

    fn simulation(&self) -> Simulation {
        let scenario = self.scenario;
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
        Simulation::new(setup).expect(fit)
    }
}

/// Watches a run: tells of its progress, and stops it.
struct Watch<'a, 'b> {
    on_progress: &'a mut dyn FnMut(Progress) -> Verdict,
    telemetry: Option<&'a mut ScaleupTelemetry<'b>>,
    operations: u64,
    cycle: Span,
    is_interrupted: bool,
    now: Cycle,
}

impl Watcher for Watch<'_, '_> {
    fn on_round(&mut self, watched: &Watched<'_, '_>) -> bool {
        self.now = watched.now;
        if let Some(telemetry) = &mut self.telemetry {
            telemetry.on_round(watched);
        }
        let (done, hops) = watched.progress();
        let verdict = (self.on_progress)(Progress {
            now: time_of(watched.now, self.cycle),
            flows_sent: done as usize,
            flows: self.operations as usize,
            hops,
        });
        self.is_interrupted = verdict == Verdict::Stop;
        !self.is_interrupted
    }
}
