//! An assembled scenario of a scale-up fabric.

use crate::ScenarioError;
use clearway_scaleup::FLIT_BYTES;
use clearway_scenario::ScaleupScenario;
use clearway_units::{Rate, Span};
use std::fmt::Write as _;

/// An assembled and checked scenario of a scale-up fabric.
#[derive(Debug)]
pub struct ScaleupAssembly<'a> {
    scenario: &'a ScaleupScenario,
    /// Number of operations that the programs post.
    pub operations: u64,
    /// Warnings about the traces.
    pub warnings: Vec<String>,
}

/// A link of a scale-up fabric.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScaleupLink {
    /// Name from both ends, as in "leaf0-gpu2"; parallel links have a number, as in "leaf0-spine2#1".
    pub name: String,
    /// Number of the sending node.
    pub from: u32,
    /// Number of the receiving node.
    pub to: u32,
}

const PS_PER_SECOND: u64 = 1_000_000_000_000;

impl<'a> ScaleupAssembly<'a> {
    /// Assembles a scenario.
    ///
    /// # Errors
    /// If its parts do not fit together.
    pub fn new(scenario: &'a ScaleupScenario) -> Result<Self, ScenarioError> {
        let traffic = scenario.traffic()?;
        Ok(Self {
            scenario,
            operations: traffic.operations,
            warnings: traffic.warnings.iter().map(ToString::to_string).collect(),
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

    /// The links, in the order of [`links`](crate::scaleup_fabric::Finished::links) of a finished run: out of each switch, leaves first,
    /// then out of GPUs. Parallel links have a number after their name: "leaf0-spine2#1".
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
        // Parallel links are adjacent in the order.
        let mut before = None;
        let mut number = 0;
        all.map(move |(from, to)| {
            number = if before == Some((from, to)) {
                number + 1
            } else {
                0
            };
            before = Some((from, to));
            let is_parallel = parallel > 1 && from.max(to) >= first_spine;
            let mut name = format!("{}-{}", names[from as usize], names[to as usize]);
            if is_parallel {
                let _ = write!(name, "#{number}");
            }
            ScaleupLink { name, from, to }
        })
    }

    /// Rate of each link.
    pub fn link_rate(&self) -> Rate {
        Rate::from_bps(FLIT_BYTES * 8 * PS_PER_SECOND / self.cycle().as_ps())
    }
}
