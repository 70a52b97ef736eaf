//! No injection control: the paper's Baseline (§6.1.4).

use super::{
    Completed, InjectionControl, InjectionDecision, InjectionDefinition, InjectionFacts,
    InjectionGauges, OutstandingFlits, Remote, Sent,
};
use crate::{Cycle, GroupId, OperationKind};

clearway_units::parameters! {
    /// Settings of [`NoControl`]: none.
    pub struct NoControlParameters {}
}

/// Consent to everything.
#[derive(Debug, Clone)]
pub struct NoControl {
    outstanding: OutstandingFlits,
}

impl InjectionDefinition for NoControl {
    const NAME: &'static str = "none";
    const SUMMARY: &'static str = "no injection control: only credits limit the traffic of a GPU";
    type Parameters = NoControlParameters;

    fn new(_: &NoControlParameters, facts: &InjectionFacts<'_>) -> Self {
        Self {
            outstanding: OutstandingFlits::new(facts.sizes),
        }
    }
}

impl InjectionControl for NoControl {
    fn consent(&mut self, _: Cycle, _: OperationKind, _: Option<GroupId>) -> InjectionDecision {
        InjectionDecision::Now
    }

    fn on_sent(&mut self, sent: &Sent) {
        self.outstanding.on_sent(sent.kind);
    }

    fn on_remote(&mut self, _: &Remote) {}

    fn on_completed(&mut self, completed: &Completed) {
        self.outstanding.on_completed(completed.kind);
    }

    fn gauges(&mut self, _: Cycle) -> InjectionGauges {
        InjectionGauges {
            outstanding: self.outstanding.flits(),
            ..InjectionGauges::default()
        }
    }
}
