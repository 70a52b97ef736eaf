//! One path for the whole flow: ECMP without spraying, as RoCEv2 has it.

use super::{PathId, PathSelector, SelectorContext, SelectorDefinition, SendState};

clearway_units::parameters! {
    /// Settings of [`Single`]: none.
    pub struct SingleParameters {}
}

/// Sends every packet of a flow with the same entropy, drawn once.
#[derive(Debug, Clone)]
pub struct Single {
    path: PathId,
}

impl SelectorDefinition for Single {
    const NAME: &'static str = "single";
    const SUMMARY: &'static str = "one random path for each flow (per-flow ECMP)";
    type Parameters = SingleParameters;

    fn new(_: &SingleParameters, mut context: SelectorContext<'_>) -> Self {
        Self {
            path: context.random.next_u32() as PathId,
        }
    }

    fn most_paths(_: &SingleParameters) -> u32 {
        1
    }
}

impl PathSelector for Single {
    #[inline]
    fn choose(&mut self, _: &SendState) -> PathId {
        self.path
    }
}
