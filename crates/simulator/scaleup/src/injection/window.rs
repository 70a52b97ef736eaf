//! Static windows of SMMC (§6.1.4): at most so many reads and so many writes of a GPU are under way.
//!
//! Reads and writes are counted apart: "five outstanding write multicasts and five outstanding read reductions each".
//!
//! # Decisions
//! * Unicast operations count as collective ones do. Of the paper's workloads with a window only Multicast-Uni has unicast traffic.
//! * The default is the window for 64 initiators. Table 6.1 has 3, 5, 12, 24, 48, 128 and 128 for 64, 32, 16, 8, 4, 2 and 1 of them.

use super::{
    Completed, InjectionControl, InjectionDecision, InjectionDefinition, InjectionFacts,
    InjectionGauges, OutstandingFlits, Remote, Sent,
};
use crate::{Cycle, GroupId, OperationKind};
use std::num::NonZero;

const DEFAULT_WINDOW: NonZero<u32> = NonZero::new(3).expect("not zero");

clearway_units::parameters! {
    /// Settings of [`Window`].
    pub struct WindowParameters {
        /// Maximum number of outstanding operations of a GPU, separately for reads and for writes.
        pub window: NonZero<u32> = DEFAULT_WINDOW, "window", "Snyder table 6.1: 64 initiators";
    }
}

/// A static window for each kind of operation.
#[derive(Debug, Clone)]
pub struct Window {
    window: u32,
    /// Operations under way, by kind.
    operations: [u32; 2],
    outstanding: OutstandingFlits,
}

impl InjectionDefinition for Window {
    const NAME: &'static str = "window";
    const SUMMARY: &'static str = "static windows of reads and of writes, as in SMMC";
    type Parameters = WindowParameters;

    fn new(parameters: &WindowParameters, facts: &InjectionFacts<'_>) -> Self {
        Self {
            window: parameters.window.get(),
            operations: [0; 2],
            outstanding: OutstandingFlits::new(facts.sizes),
        }
    }
}

impl InjectionControl for Window {
    fn consent(&mut self, _: Cycle, kind: OperationKind, _: Option<GroupId>) -> InjectionDecision {
        if self.operations[kind as usize] < self.window {
            InjectionDecision::Now
        } else {
            InjectionDecision::Wait
        }
    }

    fn on_sent(&mut self, sent: &Sent) {
        self.operations[sent.kind as usize] += 1;
        self.outstanding.on_sent(sent.kind);
    }

    fn on_remote(&mut self, _: &Remote) {}

    fn on_completed(&mut self, completed: &Completed) {
        let operations = &mut self.operations[completed.kind as usize];
        *operations = operations.saturating_sub(1);
        self.outstanding.on_completed(completed.kind);
    }

    fn gauges(&mut self, _: Cycle) -> InjectionGauges {
        InjectionGauges {
            outstanding: self.outstanding.flits(),
            ..InjectionGauges::default()
        }
    }
}
