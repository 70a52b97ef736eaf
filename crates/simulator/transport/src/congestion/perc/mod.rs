//! s-PERC with weights and 1RC: links compute max-min fair rates, and bound the first round trip of new flows.
//!
//! Snyder §5.1.1 (Algorithm 3, after Jose et al.), §5.2 (1RC), §5.3 (weights) and §5.4 (Algorithms 4 and 5). Each flow keeps one
//! [`ControlRecord`] on its way to the receiver and back. Every egress link on the way there updates it, and with it the two sums that are
//! all the link knows: the weight of bottlenecked flows (`NumB`) and the rate of flows bottlenecked elsewhere (`SumE`).
//!
//! ```text
//!   Source::transmit ──► LinkAgent::on_control ──► ... ──► receiver: sends it back as it is
//!        ▲                                                     │
//!        └──────────────── Source::on_return ◄─────────────────┘
//!   Source::speculate ──► LinkAgent::admits: else dropped before the queue
//! ```
//!
//! With 1RC a flow starts to send with its first control packet, at line rate. Its data packets are [`Speculative`] until that
//! control packet returns. Each link admits as many as a fair share of one round trip holds, which the control packets write into the
//! link's window table once per epoch. Packets are admitted by number: all links together drop the tail of a flow's speculative
//! packets, so order is kept, and the control packet brings back where the tail begins.
//!
//! Nothing here knows a clock, a queue or a packet: the [`Attachment`] travels beside a packet.
//!
//! **Invariants:** without loss of control packets `SumE` stays below the capacity, and both sums return to exactly zero when all flows
//! have left. With losses, duplicates, reordering, changes of paths and flows that vanish, the error that they leave in a sum is gone after
//! two [periods](LinkParameters::period). No record makes a link panic, or leaves a sum that is not finite.
//!
//! # Decisions
//! * A link that a flow has not visited has the status *new*, beside bottlenecked (B) and elsewhere (E). Algorithm 4 starts with E
//!   and tests for `NEW_FLOW`. Read literally it never adds a new flow to `NumB`, yet removes it when the flow leaves. Here a
//!   new flow is added and becomes B (I1, I2).
//! * `flow_weight` of Algorithm 4 is `new_weight` (I3). Both, like `old_weight`, are numbers of connections `k`, and the weight is
//!   `1/k`. Rates in records (`b`, `x`) and `MaxE` are per unit weight; `SumE` adds real rates.
//! * `rate_to_window` is the share of the line (`b` without the headroom) times the longest round trip, in packets, rounded down,
//!   at least 1 and at most the bandwidth-delay product (I4). The headroom is left out because an idle link is to admit a whole
//!   bandwidth-delay product, as in Figure 5.1: with it, its windows of 4 and 2 packets would be 3 and 1.
//! * The window is divided by the connections at the start of the epoch, as the text of §5.3.1 says, not by `new_weight` as in
//!   line 18 (I5): shared numbers and weights of the moment would punish twice (Figure 5.4).
//! * `let_through` is recorded by control packets (Algorithm 4); a packet whose number is equal to the threshold is dropped (I6).
//!   Before the first link it is infinite (I7).
//! * The epoch of `let_through` is the epoch of the flow's first control packet. It is also the epoch of this packet, unless the first one
//!   was lost.
//! * `old_connections` is the number that the flow itself announced with its last control packet (I8).
//! * A flow that starts late in an epoch uses a window from the start of the epoch (I9), and all flows of an epoch that began on an
//!   idle link may send a bandwidth-delay product each (I10). Both are inherent in 1RC: it is fair with the rate that was computed.
//! * The host limit is per flow: it lets each of a host's flows have the whole rate of the host. A host that is to divide its link among
//!   its flows has a [`LinkAgent`] without 1RC for it, as the first egress link.
//! * The host limit is the [demand](HostLimit::Demand) of the flow, or the rate of its host's link if that is less. §5.1.1 compares a
//!   link's rate with the lowest one "at another switch or on the end-host", so that no flow is allocated bandwidth that it will not use.
//!   With the rate of the link alone a flow of a few packets takes a full share of each of its links for a round trip, and flows above
//!   153 KB in Figures 5.5 and 5.6 get a third of the throughput of those figures. Figure 5.1 holds with both, if its flows are as long as
//!   a round trip.
//! * Agents take the present rate of their link. For a NIC's own link it is the line rate, also while the link is degraded.
//! * With 1RC no flow is exempt from control packets (I11). The host's own link is not policed (I12): its rate is the host limit.
//! * §5.4 leaves open how window-table entries are collected. Here it is a ring of 64 epochs with tags. A speculative packet without
//!   an entry is dropped and counted.
//! * A control packet from more than one epoch ahead of the link's clock writes no window: it would hold the ring against all
//!   epochs before.
//! * A link compares `e < b` with a tolerance: with exact ties, rounding would leave a flow on the wrong side for good.
//! * Sums are integers in units fine enough: floating point would drift as flows come and go.
//! * A link that a flow leaves becomes new again in its record, so that the record agrees with the link.
//! * A lost control packet leaves links with a state that its flow does not know, as links have no state per flow. The flow resends the
//!   last record that it got back. The dissertation has neither losses nor changes of paths, and its sums would be wrong for ever. Here
//!   they are soft state in two banks, from which a silent flow falls out (`sums.rs`). Until then links bound the error: no sum falls below
//!   zero, `NumB` not below the weight of a visitor, and no share below a millionth of the capacity, so that a flow always gets on.
//! * Algorithms 3 and 4 index a record by hop. A flow that is rerouted would be taken out of sums that it was never in. Here each entry
//!   has the number of its link: at another link the flow is new, and so it is to a link that has not seen it for a period. Entries
//!   beyond the links of the last trip limit nothing.
//! * `MaxE` is forgotten after two rounds of the longest time between two control packets of a flow, which each record tells, at least of
//!   two round trips.

mod link;
mod record;
mod settings;
mod source;
mod sums;
#[cfg(test)]
mod tests;
mod window_table;

pub use link::{EpochParameters, LinkAgent, LinkParameters};
pub use record::{Attachment, Connections, ControlRecord, MOST_LINKS, Speculative};
pub use settings::{HostLimit, LEAST_HEADROOM, RateAllocation, Speculation};
pub use source::{Returned, Source, SourceParameters, SpeculativeSequence};
