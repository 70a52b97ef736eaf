//! Parts that the senders and receivers of all reliability schemes share: identity of a sender, contexts of calls, paths, messages
//! and pacing.

mod messages;
mod outbox;
mod pacer;

pub(crate) use messages::{Messages, Part};
pub(crate) use outbox::Outbox;
pub(crate) use pacer::Pacer;

use crate::congestion::telemetry::{Hop, IntPacket};
use crate::congestion::{Controller, LossSample, NetworkFacts};
use crate::packet::{AddressHash, Class, Header, Packet, header_hash};
use crate::paths::{
    PathFeedback, PathId, PathSelector, Selector, SelectorContext, SelectorSettings, SendState,
};
use crate::report::{EndpointCounters, Event};
use clearway_units::{FlowId, HostId, Purpose, RandomStream, Span, Time};
use std::collections::VecDeque;

/// Identity of a sender, and the host that it sends to.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SenderIdentity {
    pub(crate) flow: FlowId,
    pub(crate) source: HostId,
    pub(crate) peer: HostId,
    /// Index of the queue pair in the flow.
    pub(crate) queue_pair: u8,
    /// The class of the flow's data.
    pub(crate) class: Class,
    /// Hash of source and peer.
    pub(crate) addresses: AddressHash,
}

impl SenderIdentity {
    /// Number of the sender's random streams; for the first queue pair, the number of the flow.
    pub(crate) fn entity(&self) -> u64 {
        entity(self.flow, self.queue_pair)
    }

    /// Creates a packet of this sender, with a size of 0 for now.
    #[inline]
    pub(crate) fn packet(&self, stamp: Time, source_port: u16, header: Header) -> Packet {
        Packet {
            stamp,
            flow: self.flow,
            src: self.source,
            dst: self.peer,
            header_hash: self.addresses.with_port(source_port),
            size: 0,
            source_port,
            class: self.class,
            queue_pair: self.queue_pair,
            ecn: false,
            via: 0,
            header,
        }
    }
}

/// Number of the random streams of a queue pair's sender.
pub(crate) fn entity(flow: FlowId, queue_pair: u8) -> u64 {
    u64::from(flow.0) | u64::from(queue_pair) << 32
}

/// The path selector of a sender, and the salt that makes source ports of its paths.
pub(crate) struct Paths {
    salt: u16,
    selector: Selector,
}

impl Paths {
    /// Creates the selector of the sender with the number `entity`.
    pub(crate) fn new(
        settings: &SelectorSettings,
        network: &NetworkFacts,
        (timeout, probe_after): (Span, Option<Span>),
        entity: u64,
        seed: u64,
    ) -> Self {
        let mut random = RandomStream::new(seed, Purpose::Paths, entity);
        let salt = random.next_u32() as u16;
        let selector = settings.build(SelectorContext {
            network,
            timeout,
            probe_after,
            random,
        });
        Self { salt, selector }
    }

    /// Loads what the selector points to into the caches.
    #[inline]
    pub(crate) fn prefetch(&self) {
        if let Selector::Adaptive(selector) = &self.selector {
            selector.prefetch();
        }
    }

    /// Source port of the next data packet.
    #[inline]
    pub(crate) fn next_port(&mut self, state: &SendState) -> u16 {
        self.selector.choose(state) ^ self.salt
    }

    /// Source port of a probe.
    pub(crate) fn probe_port(&mut self, state: &SendState) -> u16 {
        self.selector.choose_for_probe(state) ^ self.salt
    }

    /// Path of a packet with this source port.
    #[inline]
    pub(crate) fn path_of(&self, source_port: u16) -> PathId {
        source_port ^ self.salt
    }

    #[inline]
    pub(crate) fn on_feedback(&mut self, feedback: &PathFeedback) {
        self.selector.on_feedback(feedback);
    }

    pub(crate) fn on_path_timeout(&mut self, path: PathId) {
        self.selector.on_path_timeout(path);
    }

    #[inline]
    pub(crate) fn on_loss(&mut self, loss: &LossSample) {
        self.selector.on_loss(loss);
    }
}

/// Creates the answer to `trigger`: a packet of the control class, with the time stamp and source port of `trigger`.
#[inline]
pub(crate) fn answer(trigger: &Packet, size: u16, header: Header) -> Packet {
    Packet {
        stamp: trigger.stamp,
        flow: trigger.flow,
        src: trigger.dst,
        dst: trigger.src,
        header_hash: header_hash(trigger.dst, trigger.src, trigger.source_port),
        size,
        source_port: trigger.source_port,
        class: Class::CONTROL,
        queue_pair: trigger.queue_pair,
        ecn: false,
        via: 0,
        header,
    }
}

/// Context of a call of a sender: time, controller, event queue, counters and telemetry.
pub(crate) struct Context<'a> {
    pub(crate) now: Time,
    /// The controller that governs the sender, lent for the call.
    pub(crate) controller: &'a mut Controller,
    pub(crate) events: &'a mut VecDeque<Event>,
    pub(crate) counters: &'a mut EndpointCounters,
    pub(crate) tracing: bool,
    /// Telemetry of the packet whose acknowledgement has come.
    pub(crate) hops: &'a [Hop],
}

/// Action that a timer of a sender asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Due {
    /// No action; the sender has already done everything that was due.
    Nothing,
    /// A probe.
    Probe,
}

/// Outputs of a receiver: answers, events and counters.
pub(crate) struct Reports<'a, T> {
    pub(crate) outbox: &'a mut Outbox<T>,
    pub(crate) events: &'a mut VecDeque<Event>,
    pub(crate) counters: &'a mut EndpointCounters,
    /// Telemetry of the packet that has come, to be echoed by its first answer.
    pub(crate) telemetry: T,
}

impl<T: Default> Reports<'_, T> {
    /// Answers the packet that has come.
    #[inline]
    pub(crate) fn answer(&mut self, packet: Packet) {
        let telemetry = std::mem::take(&mut self.telemetry);
        self.outbox.push(IntPacket { packet, telemetry });
    }

    /// As [`answer`](Self::answer), for a packet that is known to be control.
    #[inline(always)]
    pub(crate) fn answer_as_control(&mut self, packet: Packet) {
        let telemetry = std::mem::take(&mut self.telemetry);
        self.outbox.push_control(IntPacket { packet, telemetry });
    }
}

/// Final acknowledgement of a finished flow, or of one of its queue pairs. Nothing else of the flow is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FinalAck {
    /// One more than the sequence number of the last packet.
    pub(crate) epsn: u32,
    /// Payload bytes of the flow modulo 2^32, with selective repeat.
    pub(crate) bytes_received: u32,
}
