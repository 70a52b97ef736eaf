//! ECN marks of data queues.

use super::parameters::QueueRules;
use crate::link::{Link, Sinks};
use crate::observer::Observation;
use clearway_transport::congestion::telemetry::{IntPacket, Telemetry};
use clearway_units::{RandomStream, Time};

/// Marks a data packet that leaves a data queue or has just come, if the rules and chance say so of `bytes` in the queue. Not inlined:
/// few packets meet so long a queue.
#[inline(never)]
pub(super) fn mark_if_long<T: Telemetry, O: Observation>(
    (rules, random): (&QueueRules, &mut RandomStream),
    link: &mut Link<T>,
    now: Time,
    packet: &mut IntPacket<T>,
    bytes: u64,
    sinks: &mut Sinks<'_, O, T>,
) {
    if packet.class.is_data() && rules.marks(packet.class, bytes, random) {
        link.mark(now, packet, sinks);
    }
}
