//! 3CPO (§6.2): tokens that are matched between the members of a group, and watermarks that follow the latency of probes.
//!
//! A multicast operation costs tokens at each member that sends to the group at the same time, so that all together send at the rate of the
//! links ([`matching`]). Where that does not relieve the network, because the traffic is not collective, watermarks do ([`conversion`],
//! Algorithm 6). All of it exists twice, for request and for response flits.
//!
//! # Path of an operation
//! 1. Sent: it costs its own flits, and the matched flits of other members' operations. The first operation after a completed probe is the
//!    next probe.
//! 2. Received from another member: it costs the flits that match the GPU's own operations.
//! 3. Completed: only the GPU's remaining operations can still be matched. If it was the probe, Algorithm 6 runs for the watermarks of both
//!    classes.
//!
//! # Decisions where the paper is silent or contradicts itself
//! Numbers as in the project's reading of the paper.
//! * C1: `md` is the part that a cut removes, from 0 to `base-md`. The text has a factor from 1 to `base_md`, and lines 1 and 2 of the
//!   listing are negative below the threshold. For `base_md` of 0.5 all agree.
//! * C2: the text refers to lines of a longer listing. The `else` of line 18 belongs to line 12, as the text says of its "lines 20-22".
//! * C3: `percent_writes` of line 5 is `percent_mcast_writes` of line 4.
//! * C4: `max_possible` (line 11) bounds the converted tokens. The excess is carried over to the next round trip, up to `carry-cap` times
//!   `max_possible`. The listing does not use the one, nor define the other. Thus the equivalent never exceeds the watermark.
//! * C5: line 14, which the text does not explain, raises the watermark by the growth of the equivalent, which is the cost that collective
//!   traffic has newly begun to take (`handover`). Figures 6.8 and 6.9 agree with it if their watermark of 100 is `WM_MAX`.
//! * C6: the listing is for requests. Responses have the same, with the share of reads and the difference in size of their packets.
//! * C7: the correction for skew (lines 5 to 8) multiplies by up to 9 where no operation was a write, as listed. `skew-correction`
//!   turns it off.
//! * C8: `global_dec` counts the tokens that matches cost, after scaling, and not the tokens of the GPU's own flits: "how many extra tokens
//!   it consumed when sending multicast packets" (§6.2.4). The costs of arrivals are not counted (`equivalent-of-sends`): else the
//!   equivalent is nearly the watermark, and Algorithm 6 can never cut.
//! * C9: any packet can be the [probe](super::Probe).
//! * C10: without matches in a round trip the equivalent is the carry-over, or zero; then only growth is left below the threshold.
//! * C11: only matched flits cost, so that a member that begins early does not take the tokens of others.
//! * C12: the scaling of costs by latency (0.8 to 1) also applies to matches of an own operation with earlier operations of others;
//!   `scale-sends` turns that off. Until the first latency of a collective operation has been measured, the scale is 1.
//! * Each group has separate arrays and a separate *Local Ops* counter: operations to different groups do not match. The paper has one
//!   group.
//! * The scale uses the latest latency of a collective operation of the GPU; expiry uses the latest latency of a collective operation or of
//!   the probe. Before the first, an entry of the remote queue stays for `initial-rtt`.
//! * The delay between packets, which prolongs the stay, is the time that the GPU's last collective operation waited at the head of its
//!   channel.
//!
//! # Cost and memory
//! O(members) for an own operation, O(1) amortised for a remote one, and a bisection of the GPU's groups to find the operation's group. The
//! remote queue has the arrivals of the latest round trip and delay before the latest call: each remote operation expires older ones.

mod conversion;
mod matching;
mod parameters;

use super::{
    Completed, InjectionControl, InjectionDecision, InjectionDefinition, InjectionFacts,
    InjectionGauges, InvalidSetting, OutstandingFlits, Probe, Remote, Sent, TokenBuckets, Tokens,
};
use crate::{Cycle, GroupId, OperationKind, PacketClass};
use conversion::{Conversion, Rules};
use matching::Matching;

pub use parameters::ThreeCpoParameters;

/// 3CPO.
#[derive(Debug, Clone)]
pub struct ThreeCpo {
    parameters: ThreeCpoParameters,
    rules: Rules,
    buckets: TokenBuckets,
    matching: Matching,
    /// Conversions of request and response tokens.
    conversions: [Conversion; 2],
    /// Collective operations sent since the last probe completed, by kind.
    sent: [u64; 2],
    probe: Probe,
    /// Latest latency of a collective operation.
    collective: Option<Cycle>,
    /// Latest latency of a collective operation or of a probe, and delay of the latest collective operation before it was sent.
    rtt: Cycle,
    gap: Cycle,
    outstanding: OutstandingFlits,
}

impl InjectionDefinition for ThreeCpo {
    const NAME: &'static str = "3cpo";
    const SUMMARY: &'static str =
        "3CPO: members of a group pay for each other's operations, and watermarks follow latency";
    type Parameters = ThreeCpoParameters;

    fn check(parameters: &ThreeCpoParameters) -> Result<(), InvalidSetting> {
        parameters.check()
    }

    fn new(parameters: &ThreeCpoParameters, facts: &InjectionFacts<'_>) -> Self {
        Self {
            rules: Rules::new(parameters, facts.sizes),
            buckets: TokenBuckets::new(&parameters.tokens, facts),
            matching: Matching::new(facts),
            conversions: Default::default(),
            sent: [0; 2],
            probe: Probe::default(),
            collective: None,
            rtt: parameters.initial_rtt,
            gap: 0,
            outstanding: OutstandingFlits::new(facts.sizes),
            parameters: parameters.clone(),
        }
    }
}

impl ThreeCpo {
    /// Expires remote operations that arrived a round trip and a delay ago. Every event calls it first, so that the round trip and the
    /// delay of earlier cycles apply.
    fn expire(&mut self, now: Cycle) {
        self.matching.expire(now, self.rtt.saturating_add(self.gap));
    }

    /// Takes the tokens of matched request and response flits. With `counts` they are part of the equivalent.
    fn spend_matched(&mut self, now: Cycle, matched: [u64; 2], scale: f64, counts: bool) {
        for class in [PacketClass::Request, PacketClass::Response] {
            let cost = Tokens::scaled(matched[class as usize], scale);
            self.buckets.spend(now, class, cost);
            if counts {
                self.conversions[class as usize].on_extra(cost);
            }
        }
    }

    /// Adjusts both watermarks: Algorithm 6.
    fn on_probe(&mut self, now: Cycle, latency: Cycle) {
        for class in [PacketClass::Request, PacketClass::Response] {
            let watermark = self.buckets.watermark(class);
            let share = self.share_of_large(class);
            let conversion = &mut self.conversions[class as usize];
            let watermark = conversion.on_probe(&self.rules, latency, watermark, share);
            self.buckets.set_watermark(now, class, watermark);
        }
        self.sent = [0; 2];
    }

    /// Part of the collective operations sent since the last probe whose packets of `class` have data: writes for requests, reads for
    /// responses. `None` if there were none.
    fn share_of_large(&self, class: PacketClass) -> Option<f64> {
        let kind = match class {
            PacketClass::Request => OperationKind::Write,
            PacketClass::Response => OperationKind::Read,
        };
        let total: u64 = self.sent.iter().sum();
        (total > 0).then(|| self.sent[kind as usize] as f64 / total as f64)
    }
}

impl InjectionControl for ThreeCpo {
    fn consent(
        &mut self,
        now: Cycle,
        kind: OperationKind,
        _: Option<GroupId>,
    ) -> InjectionDecision {
        self.buckets.consent(now, kind)
    }

    fn on_sent(&mut self, sent: &Sent) {
        self.expire(sent.now);
        self.buckets.spend_operation(sent.now, sent.kind);
        self.outstanding.on_sent(sent.kind);
        self.probe.on_sent(sent);
        let Some(group) = sent.group else {
            return;
        };
        let latency = self.collective.filter(|_| self.parameters.scale_sends);
        let matched = self.matching.on_sent(group, sent.kind);
        self.spend_matched(sent.now, matched, self.parameters.scale(latency), true);
        self.sent[sent.kind as usize] += 1;
        self.gap = sent.waited;
    }

    fn on_remote(&mut self, remote: &Remote) {
        self.expire(remote.now);
        let matched = self.matching.on_remote(remote);
        let scale = self.parameters.scale(self.collective);
        let counts = !self.parameters.equivalent_of_sends;
        self.spend_matched(remote.now, matched, scale, counts);
    }

    fn on_completed(&mut self, completed: &Completed) {
        self.expire(completed.now);
        self.outstanding.on_completed(completed.kind);
        if let Some(group) = completed.group {
            self.matching.on_completed(group, completed.kind);
            self.collective = Some(completed.latency);
            self.rtt = completed.latency;
        }
        if let Some(latency) = self.probe.on_completed(completed) {
            self.rtt = latency;
            self.on_probe(completed.now, latency);
        }
    }

    fn gauges(&mut self, now: Cycle) -> InjectionGauges {
        self.buckets.gauges(now, self.outstanding.flits())
    }
}

#[cfg(test)]
mod tests;
