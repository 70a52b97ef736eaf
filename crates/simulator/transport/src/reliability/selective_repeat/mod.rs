//! STrack's reliability (STrack §3.3): selective repeat over a bitmap window.
//!
//! The receiver answers with selective acknowledgements that carry one 64-bit segment of its bitmap; the sender keeps a scoreboard, counts
//! the bytes in flight (Equations 1 and 2) and finds losses on three time scales: by the number of packets that overtook the first missing
//! one (one or two round trips), by probes (a few) and by a timeout (tens).
//!
//! **Architecture invariant:** no per-packet records and no allocation per packet. The payload of a packet follows from its sequence number
//! and its message; a flow keeps three bits for each packet of the window.
//!
//! Decisions where the paper is silent or contradicts itself, by the numbers that the parameters cite:
//! * Q6: Algorithm 1 line 10 compares "delay" with twice the base round trip; the prose speaks of the measured round trip, so the code
//!   compares the measured round trip.
//! * Q7: the same line tests `achievedBDP == 0` for "nothing else came back since the probe". That value keeps the result of the last
//!   period, so the test would almost never hold; an explicit counter of acknowledgements since the probe stands in for it.
//! * Q11: a packet may start while less than the window is in flight, so that up to one packet more than the window is out;
//!   at 1.3 packets, §4.2 wants one or two in flight. `strict-window` is the other reading.
//! * Q14: a "sufficient number of bytes" is one packet, since waiting for more delays the marks that path selection needs.
//! * Q20: "exceeds" is read as `>`. Q21: the highest packet known to have arrived is the highest bit seen in any segment.
//! * Duplicates are acknowledged at once: the acknowledgement that would have prevented them was lost.
//! * A probe's verdict covers packets sent before the probe, not packets sent while it was under way.
//! * New data may be sent during recovery once nothing waits for retransmission, as in the UEC reference simulator.
//!
//! A flow may carry any number of packets: sequence numbers are 64 bits inside and 32 on the wire, which is unambiguous while
//! the window is below 2^31.

mod bitmap;
mod departures;
mod parameters;
mod receiver;
mod scoreboard;
mod sender;
#[cfg(test)]
mod tests;

pub(crate) use parameters::Rules;
pub use parameters::{ProbeClass, Recovery, SelectiveRepeatParameters};
pub(crate) use receiver::{Receiver, late_sack};
pub(crate) use sender::Sender;
