//! Arguments that name a scenario.

use clap::{Args, ValueHint};

/// The scenario, and changes to it.
#[derive(Debug, Clone, Args)]
pub(crate) struct ScenarioArguments {
    /// A built-in scenario (`clearway list scenarios`) or a TOML file; all defaults if left out
    #[arg(value_hint = ValueHint::FilePath)]
    pub(crate) scenario: Option<String>,
    /// Set any key of the scenario, for instance `transport.spray=oblivious`, `workload.message=16MB`, `topology.file=x.topo`
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub(crate) overrides: Vec<String>,
    /// Seed of all random streams; the same as `--set seed=S`
    #[arg(long, value_name = "S", value_parser = clap::value_parser!(u64).range(..=i64::MAX as u64))]
    pub(crate) seed: Option<u64>,
}

impl ScenarioArguments {
    /// All overrides, the seed included.
    pub(crate) fn all_overrides(&self) -> Vec<String> {
        let seed = self.seed.map(|seed| format!("seed={seed}"));
        self.overrides.iter().cloned().chain(seed).collect()
    }
}
