//! AIMD on the watermarks: the paper's comparison (§6.1.4).
//!
//! Once per round trip, when the [`Probe`] completes, both watermarks change. Below the threshold they grow by a constant; above it they
//! are cut by a part that grows linearly with the latency. An operation costs its own flits, independent of others' traffic.
//!
//! # Decisions
//! * At exactly the threshold nothing changes: growth is for latencies below it, and the cut grows from zero there.
//! * The watermarks begin at `wm-max`, and stay within `wm-min` and `wm-max`.

use super::{
    Completed, InjectionControl, InjectionDecision, InjectionDefinition, InjectionFacts,
    InjectionGauges, InvalidSetting, LatencyParameters, OutstandingFlits, Probe, Remote, Sent,
    TokenBuckets, TokenParameters,
};
use crate::{Cycle, GroupId, OperationKind, PacketClass};

clearway_units::parameters! {
    /// Settings of [`Aimd`].
    pub struct AimdParameters {
        with {
            /// Tokens and watermarks.
            pub tokens: TokenParameters,
            /// Response of the watermarks to latency.
            pub latency: LatencyParameters,
        }
    }
}

/// AIMD.
#[derive(Debug, Clone)]
pub struct Aimd {
    latency: LatencyParameters,
    buckets: TokenBuckets,
    probe: Probe,
    outstanding: OutstandingFlits,
}

impl InjectionDefinition for Aimd {
    const NAME: &'static str = "aimd";
    const SUMMARY: &'static str = "AIMD: tokens at a rate that follows the latency of probes";
    type Parameters = AimdParameters;

    fn check(parameters: &AimdParameters) -> Result<(), InvalidSetting> {
        parameters.tokens.check()?;
        parameters.latency.check()
    }

    fn new(parameters: &AimdParameters, facts: &InjectionFacts<'_>) -> Self {
        Self {
            latency: parameters.latency.clone(),
            buckets: TokenBuckets::new(&parameters.tokens, facts),
            probe: Probe::default(),
            outstanding: OutstandingFlits::new(facts.sizes),
        }
    }
}

impl InjectionControl for Aimd {
    fn consent(
        &mut self,
        now: Cycle,
        kind: OperationKind,
        _: Option<GroupId>,
    ) -> InjectionDecision {
        self.buckets.consent(now, kind)
    }

    fn on_sent(&mut self, sent: &Sent) {
        self.buckets.spend_operation(sent.now, sent.kind);
        self.outstanding.on_sent(sent.kind);
        self.probe.on_sent(sent);
    }

    fn on_remote(&mut self, _: &Remote) {}

    fn on_completed(&mut self, completed: &Completed) {
        self.outstanding.on_completed(completed.kind);
        let Some(latency) = self.probe.on_completed(completed) else {
            return;
        };
        let factor = 1.0 - self.latency.decrease(latency);
        let growth = self.latency.growth(latency);
        for class in [PacketClass::Request, PacketClass::Response] {
            let watermark = self.buckets.watermark(class) * factor + growth;
            self.buckets.set_watermark(completed.now, class, watermark);
        }
    }

    fn gauges(&mut self, now: Cycle) -> InjectionGauges {
        self.buckets.gauges(now, self.outstanding.flits())
    }
}

#[cfg(test)]
mod tests;
