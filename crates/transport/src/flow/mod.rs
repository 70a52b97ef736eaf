//! What the senders and receivers of every reliability scheme share: who they are, what they report to, which packet carries
//! what, and when the next one may leave.

mod messages;
mod pacer;

pub(crate) use messages::{Messages, Part};
pub(crate) use pacer::Pacer;

use crate::endpoint::{EndpointCounters, Event, Outbox};
use crate::packet::{Class, Header, Packet};
use crate::spray::{Selector, SelectorSettings};
use crate::telemetry::{Hop, IntPacket};
use clearway_units::{FlowId, HostId, Purpose, RandomStream, Time};
use std::collections::VecDeque;

/// Who a sender is, and whom it sends to.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ends {
    pub(crate) flow: FlowId,
    pub(crate) source: HostId,
    pub(crate) peer: HostId,
    /// Which of the flow's queue pairs.
    pub(crate) queue_pair: u8,
    /// The class of the flow's data.
    pub(crate) class: Class,
}

impl Ends {
    /// The number by which the sender's random stream is known; that of the flow, for its first queue pair.
    pub(crate) fn entity(&self) -> u64 {
        entity(self.flow, self.queue_pair)
    }

    /// A packet from here, of no size yet.
    #[inline]
    pub(crate) fn packet(&self, stamp: Time, source_port: u16, header: Header) -> Packet {
        Packet {
            stamp,
            flow: self.flow,
            src: self.source,
            dst: self.peer,
            header_hash: 0,
            size: 0,
            source_port,
            class: self.class,
            queue_pair: self.queue_pair,
            ecn: false,
            header,
        }
    }
}

/// The number by which the random streams of a queue pair's sender are known.
pub(crate) fn entity(flow: FlowId, queue_pair: u8) -> u64 {
    u64::from(flow.0) | u64::from(queue_pair) << 32
}

/// The path selector of the sender with the number `entity`, and the salt that makes source ports of its choices.
pub(crate) fn path_selector(
    settings: &SelectorSettings,
    entity: u64,
    seed: u64,
) -> (u16, Selector) {
    let mut random = RandomStream::new(seed, Purpose::Paths, entity);
    let salt = random.next_u32() as u16;
    (salt, settings.build(random))
}

/// What answers `trigger`, in the class of control and with its stamp and port.
#[inline]
pub(crate) fn answer(trigger: &Packet, size: u16, header: Header) -> Packet {
    Packet {
        stamp: trigger.stamp,
        flow: trigger.flow,
        src: trigger.dst,
        dst: trigger.src,
        header_hash: 0,
        size,
        source_port: trigger.source_port,
        class: Class::CONTROL,
        queue_pair: trigger.queue_pair,
        ecn: false,
        header,
    }
}

/// What a sender reports to and takes its bearings from. `R` are the rules of its reliability scheme.
pub(crate) struct Context<'a, R> {
    pub(crate) now: Time,
    pub(crate) rules: &'a R,
    pub(crate) events: &'a mut VecDeque<Event>,
    pub(crate) counters: &'a mut EndpointCounters,
    pub(crate) tracing: bool,
    /// Of the packet whose acknowledgement has come.
    pub(crate) hops: &'a [Hop],
}

/// What a timer of a sender asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Due {
    /// Nothing beyond what the sender did itself.
    Nothing,
    /// A probe.
    Probe,
}

/// Where a receiver puts what it has to say.
pub(crate) struct Reports<'a, T> {
    pub(crate) outbox: &'a mut Outbox<T>,
    pub(crate) events: &'a mut VecDeque<Event>,
    pub(crate) counters: &'a mut EndpointCounters,
    /// Of the packet that has come, to be echoed.
    pub(crate) telemetry: T,
}

impl<T: Copy> Reports<'_, T> {
    /// Answers the packet that has come.
    #[inline]
    pub(crate) fn answer(&mut self, packet: Packet) {
        let telemetry = self.telemetry;
        self.outbox.push(IntPacket { packet, telemetry });
    }

    /// As [`answer`](Self::answer), for a packet that is known to be control.
    #[inline]
    pub(crate) fn answer_as_control(&mut self, packet: Packet) {
        let telemetry = self.telemetry;
        self.outbox.push_control(IntPacket { packet, telemetry });
    }
}
