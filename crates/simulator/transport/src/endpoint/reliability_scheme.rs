//! Common interface of the reliability schemes: an endpoint uses senders and receivers only by the methods here.

use super::key::Key;
use crate::congestion::Controller;
use crate::congestion::scope::{Account, Shared};
use crate::endpoint::flow::{Context, Due, FinalAck, Paths, Reports, SenderIdentity};
use crate::packet::{Header, Packet};
use crate::profile::{Profile, Reliability};
use crate::reliability::{go_back_n, selective_repeat};
use clearway_units::{Bytes, FlowId, MessageId, Span, Time};

use crate::report::{FlowProgress, FlowStatistics};

/// Sequence number below which a go-back-N receiver takes a packet of an unknown flow for one of its first, and not for a late copy.
const FIRST_PACKETS: u32 = 1 << 16;

/// The rules of one reliability scheme.
pub(crate) enum SchemeRules {
    SelectiveRepeat(selective_repeat::Rules),
    GoBackN(go_back_n::Rules),
}

impl SchemeRules {
    /// True if a full packet may leave with so many bytes in flight in this window.
    pub(crate) fn fits(&self, in_window: i64, window: f64) -> bool {
        match self {
            Self::SelectiveRepeat(rules) => rules.fits(in_window, window),
            Self::GoBackN(_) => (in_window as f64) < window,
        }
    }

    /// True if a sender without anything to send runs the timers of its controller.
    pub(crate) fn idle_senders_keep_time(&self) -> bool {
        matches!(self, Self::SelectiveRepeat(_))
    }

    /// True in SLEEK, whose retransmissions do not wait for room in the window.
    pub(crate) fn has_sleek(&self) -> bool {
        matches!(self, Self::SelectiveRepeat(rules) if rules.sleek.is_some())
    }
}

/// Rules of the reliability scheme of an endpoint, and the values that an endpoint needs of every scheme.
pub(crate) struct Rules {
    pub(crate) scheme: SchemeRules,
    pub(crate) queue_pairs: u8,
    /// Time for which finished receivers are remembered.
    pub(crate) linger: Span,
    /// Sequence number below which a packet may begin an unknown flow.
    pub(crate) first_packets: u32,
    /// Bytes of an acknowledgement or notification on the wire.
    pub(crate) ack: u16,
    /// True if receivers have a rule for notifications.
    pub(crate) notifies: bool,
}

impl Rules {
    /// # Panics
    /// If packets are too large, or full packets have no payload.
    pub(crate) fn new(profile: &Profile, largest_window: f64) -> Self {
        let network = &profile.network;
        assert!(
            network.payload > 0 && network.payload + network.header <= u32::from(u16::MAX),
            "a packet has from 1 to 65535 bytes, headers included"
        );
        assert!(
            (1..=u32::from(u16::MAX)).contains(&network.ack),
            "an acknowledgement has from 1 to 65535 bytes"
        );
        let (scheme, queue_pairs, linger, first_packets) = match &profile.reliability {
            Reliability::SelectiveRepeat(parameters) => {
                let rules = selective_repeat::Rules::new(parameters, network, largest_window);
                let (linger, window) = (rules.linger, rules.window);
                (SchemeRules::SelectiveRepeat(rules), 1, linger, window)
            }
            Reliability::GoBackN(parameters) => {
                let rules = go_back_n::Rules::new(parameters, network);
                let (queue_pairs, linger) = (rules.queue_pairs, rules.linger);
                let scheme = SchemeRules::GoBackN(rules);
                (scheme, queue_pairs, linger, FIRST_PACKETS)
            }
        };
        Self {
            scheme,
            queue_pairs,
            linger,
            first_packets,
            ack: network.ack as u16,
            notifies: profile.feedback.notifies(),
        }
    }

    /// With selective repeat, packets that may be on their way beyond the first missing one of a flow.
    #[cfg(test)]
    pub(crate) fn window(&self) -> Option<u32> {
        match &self.scheme {
            SchemeRules::SelectiveRepeat(rules) => Some(rules.window),
            SchemeRules::GoBackN(_) => None,
        }
    }

    /// Number of queue pairs that carry a part of a message.
    pub(crate) fn carriers(&self, message: MessageId, bytes: Bytes) -> u8 {
        match &self.scheme {
            SchemeRules::SelectiveRepeat(_) => 1,
            SchemeRules::GoBackN(rules) => {
                let carries = |&queue_pair: &u8| rules.part(message, bytes, queue_pair).is_some();
                (0..self.queue_pairs).filter(carries).count() as u8
            }
        }
    }
}

/// Panics: all senders and receivers of an endpoint are of the scheme of its rules.
#[cold]
#[inline(never)]
fn mixed_schemes() -> ! {
    unreachable!("an endpoint has one reliability scheme")
}

/// The sender of one flow, or of one of its queue pairs.
pub(crate) enum Sender {
    SelectiveRepeat(selective_repeat::Sender),
    GoBackN(go_back_n::Sender),
}

macro_rules! of_both {
    ($self:ident, $part:ident => $what:expr) => {
        match $self {
            Self::SelectiveRepeat($part) => $what,
            Self::GoBackN($part) => $what,
        }
    };
}

/// One expression for both schemes, with the rules of the scheme.
macro_rules! with_rules {
    ($self:ident, $all:expr, |$part:ident, $rules:ident| $what:expr) => {
        match ($self, &$all.scheme) {
            (Self::SelectiveRepeat($part), SchemeRules::SelectiveRepeat($rules)) => $what,
            (Self::GoBackN($part), SchemeRules::GoBackN($rules)) => $what,
            _ => mixed_schemes(),
        }
    };
}

impl Sender {
    pub(crate) fn new(
        ends: SenderIdentity,
        paths: Paths,
        controller: &Controller,
        rules: &Rules,
    ) -> Self {
        match &rules.scheme {
            SchemeRules::SelectiveRepeat(rules) => Self::SelectiveRepeat(
                selective_repeat::Sender::new(ends, paths, controller, rules),
            ),
            SchemeRules::GoBackN(rules) => {
                Self::GoBackN(go_back_n::Sender::new(ends, paths, controller, rules))
            }
        }
    }

    pub(crate) fn flow(&self) -> FlowId {
        of_both!(self, sender => sender.flow())
    }

    pub(crate) fn progress(&self) -> FlowProgress {
        of_both!(self, sender => sender.progress())
    }

    pub(crate) fn statistics(&self) -> &FlowStatistics {
        of_both!(self, sender => sender.statistics())
    }

    /// Payload that the receiver has reported, and that was skipped.
    pub(crate) fn progressed(&self) -> Bytes {
        of_both!(self, sender => sender.acknowledged() + sender.messages().skipped())
    }

    /// Departure time of the last packet.
    pub(crate) fn last_departure(&self) -> Time {
        of_both!(self, sender => sender.pacer().last())
    }

    /// Message that is being sent, and its bytes that no packet has carried yet.
    pub(crate) fn rest(&self) -> Option<(MessageId, u64)> {
        of_both!(self, sender => sender.messages().rest())
    }

    /// Takes so many full packets of the message that is being sent for sent, delivered and acknowledged.
    pub(crate) fn skip(&mut self, packets: u64, rules: &Rules) {
        with_rules!(self, rules, |sender, rules| sender
            .messages_mut()
            .skip(packets, rules.payload));
    }

    #[cfg(test)]
    pub(crate) fn in_flight_exact(&self) -> i64 {
        of_both!(self, sender => sender.in_flight_exact())
    }

    pub(crate) fn post(&mut self, message: MessageId, bytes: Bytes, rules: &Rules) {
        with_rules!(self, rules, |sender, rules| sender
            .post(message, bytes, rules));
    }

    pub(crate) fn has_sent_all(&self) -> bool {
        of_both!(self, sender => sender.has_sent_all())
    }

    pub(crate) fn backlog(&self, limit: u64) -> u64 {
        of_both!(self, sender => sender.backlog(limit))
    }

    /// Payload that waits to be sent, for the first time or again; counting stops above `limit`. For selective repeat alone.
    pub(crate) fn waiting(&self, limit: u64, rules: &Rules) -> u64 {
        match (self, &rules.scheme) {
            (Self::SelectiveRepeat(sender), SchemeRules::SelectiveRepeat(rules)) => {
                sender.waiting(limit, rules)
            }
            _ => 0,
        }
    }

    /// The congestion window in bytes; for selective repeat alone.
    pub(crate) fn window(&self) -> f64 {
        match self {
            Self::SelectiveRepeat(sender) => sender.window(),
            Self::GoBackN(_) => f64::INFINITY,
        }
    }

    /// A probe, where there are any.
    pub(crate) fn probe(&mut self, now: Time, rules: &Rules) -> Option<Packet> {
        match (self, &rules.scheme) {
            (Self::SelectiveRepeat(sender), SchemeRules::SelectiveRepeat(rules)) => {
                Some(sender.probe(now, rules))
            }
            _ => None,
        }
    }

    pub(crate) fn queue_pair(&self) -> u8 {
        of_both!(self, sender => sender.queue_pair())
    }

    pub(crate) fn path_salt(&self) -> u16 {
        of_both!(self, sender => sender.path_salt())
    }

    pub(crate) fn key(&self) -> Key {
        Key::new(self.flow(), self.queue_pair())
    }

    /// True if there is a packet to be sent, for the first time or again, even without room in the window.
    pub(crate) fn has_packets(&self) -> bool {
        of_both!(self, sender => sender.has_packets())
    }

    /// Loads what the sender points to into the caches.
    #[inline]
    pub(crate) fn prefetch(&self) {
        if let Self::SelectiveRepeat(sender) = self {
            sender.prefetch();
        }
    }

    pub(crate) fn sent_end(&self) -> u64 {
        of_both!(self, sender => sender.sent_end())
    }

    /// Sends again from packet `from` on. With selective repeat, loss detection does that.
    pub(crate) fn rewind(&mut self, from: u64, rules: &Rules) {
        if let (Self::GoBackN(sender), SchemeRules::GoBackN(rules)) = (self, &rules.scheme) {
            sender.rewind(from, rules);
        }
    }

    pub(crate) fn control_packet(&mut self, now: Time, size: u16, header: Header) -> Packet {
        of_both!(self, sender => sender.control_packet(now, size, header))
    }

    pub(crate) fn is_busy(&self) -> bool {
        of_both!(self, sender => sender.is_busy())
    }

    pub(crate) fn account(&self) -> Account {
        of_both!(self, sender => sender.account())
    }

    pub(crate) fn shared(&mut self) -> Shared<'_> {
        of_both!(self, sender => sender.shared())
    }

    pub(crate) fn take_allowance(&mut self, controller: &Controller, rules: &Rules) {
        with_rules!(self, rules, |sender, rules| sender
            .take_allowance(controller, rules));
    }

    pub(crate) fn close(&mut self, rules: &Rules) {
        with_rules!(self, rules, |sender, rules| sender.close(rules));
    }

    #[inline]
    pub(crate) fn is_finished(&self) -> bool {
        of_both!(self, sender => sender.is_finished())
    }

    /// True if there is a packet to be sent that needs only room in the window and a departure.
    pub(crate) fn waits(&self, rules: &Rules) -> bool {
        match (self, &rules.scheme) {
            (Self::SelectiveRepeat(sender), SchemeRules::SelectiveRepeat(rules)) => {
                sender.waits(rules)
            }
            (Self::GoBackN(sender), _) => sender.waits(),
            _ => mixed_schemes(),
        }
    }

    #[inline(always)]
    pub(crate) fn may_send(&self, rules: &Rules) -> bool {
        match (self, &rules.scheme) {
            (Self::SelectiveRepeat(sender), SchemeRules::SelectiveRepeat(rules)) => {
                sender.may_send(rules)
            }
            (Self::GoBackN(sender), _) => sender.may_send(),
            _ => mixed_schemes(),
        }
    }

    #[inline]
    pub(crate) fn departure(&self) -> Time {
        of_both!(self, sender => sender.departure())
    }

    #[inline(always)]
    pub(crate) fn transmit(&mut self, cx: &mut Context<'_>, rules: &Rules) -> Packet {
        with_rules!(self, rules, |sender, rules| sender.transmit(cx, rules))
    }

    /// True if at most one packet is outstanding.
    #[inline]
    pub(crate) fn is_nearly_idle(&self) -> bool {
        of_both!(self, sender => sender.is_nearly_idle())
    }

    /// Processes a [`Header::Sack`](crate::Header::Sack). Returns the earliest timer that it may have brought forward.
    #[inline(always)]
    pub(crate) fn on_sack(&mut self, packet: &Packet, cx: &mut Context<'_>, rules: &Rules) -> Time {
        match (self, &rules.scheme) {
            (Self::SelectiveRepeat(sender), SchemeRules::SelectiveRepeat(rules)) => {
                sender.on_sack(packet, cx, rules);
                sender.brought_forward(cx.controller, rules)
            }
            _ => {
                cx.counters.invalid += 1;
                Time::NEVER
            }
        }
    }

    /// Processes a [`Header::Nack`](crate::Header::Nack). Returns the earliest timer that it may have brought forward.
    #[cold]
    pub(crate) fn on_nack(&mut self, packet: &Packet, cx: &mut Context<'_>, rules: &Rules) -> Time {
        match (self, &rules.scheme) {
            (Self::SelectiveRepeat(sender), SchemeRules::SelectiveRepeat(rules)) => {
                sender.on_nack(packet, cx, rules);
                sender.deadline(cx.controller, rules)
            }
            _ => {
                cx.counters.invalid += 1;
                Time::NEVER
            }
        }
    }

    /// Processes a [`Header::Ack`](crate::Header::Ack). Returns the earliest timer that it may have brought forward.
    #[inline]
    pub(crate) fn on_ack(&mut self, packet: &Packet, cx: &mut Context<'_>, rules: &Rules) -> Time {
        match (self, &rules.scheme) {
            (Self::GoBackN(sender), SchemeRules::GoBackN(rules)) => {
                sender.on_ack(packet, cx, rules);
                sender.deadline(cx.controller)
            }
            _ => {
                cx.counters.invalid += 1;
                Time::NEVER
            }
        }
    }

    pub(crate) fn on_notification(&mut self, cx: &mut Context<'_>, rules: &Rules) {
        with_rules!(self, rules, |sender, rules| sender
            .on_notification(cx, rules));
    }

    #[inline]
    pub(crate) fn deadline(&self, controller: &Controller, rules: &Rules) -> Time {
        match (self, &rules.scheme) {
            (Self::SelectiveRepeat(sender), SchemeRules::SelectiveRepeat(rules)) => {
                sender.deadline(controller, rules)
            }
            (Self::GoBackN(sender), _) => sender.deadline(controller),
            _ => mixed_schemes(),
        }
    }

    /// Runs the timers that are due. Returns the probe that they ask for, if any.
    pub(crate) fn on_deadline(&mut self, cx: &mut Context<'_>, rules: &Rules) -> Option<Packet> {
        match (self, &rules.scheme) {
            (Self::SelectiveRepeat(sender), SchemeRules::SelectiveRepeat(rules)) => {
                let due = sender.on_deadline(cx, rules);
                (due == Due::Probe).then(|| sender.probe(cx.now, rules))
            }
            (Self::GoBackN(sender), SchemeRules::GoBackN(rules)) => {
                sender.on_deadline(cx, rules);
                None
            }
            _ => mixed_schemes(),
        }
    }

    pub(crate) fn on_probe_sent(&mut self, now: Time, rules: &Rules) {
        if let (Self::SelectiveRepeat(sender), SchemeRules::SelectiveRepeat(rules)) =
            (self, &rules.scheme)
        {
            sender.on_probe_sent(now, rules);
        }
    }
}

impl FinalAck {
    /// The answer to a late copy of a data packet, or to a probe, if there is one.
    pub(crate) fn answer(self, packet: &Packet, rules: &Rules) -> Option<Packet> {
        match (&rules.scheme, packet.header) {
            (SchemeRules::SelectiveRepeat(rules), _) => {
                Some(selective_repeat::late_sack(self, packet, rules))
            }
            (SchemeRules::GoBackN(rules), Header::Data { .. }) => {
                go_back_n::late_ack(self, packet, rules)
            }
            (SchemeRules::GoBackN(_), _) => None,
        }
    }
}

/// The receiver of one flow, or of one of its queue pairs.
#[derive(Debug)]
pub(crate) enum Receiver {
    SelectiveRepeat(selective_repeat::Receiver),
    GoBackN(go_back_n::Receiver),
}

impl Receiver {
    /// Loads what the receiver points to into the caches.
    #[inline]
    pub(crate) fn prefetch(&self) {
        if let Self::SelectiveRepeat(receiver) = self {
            receiver.prefetch();
        }
    }

    pub(crate) fn new(flow: FlowId, rules: &Rules) -> Self {
        match &rules.scheme {
            SchemeRules::SelectiveRepeat(rules) => {
                Self::SelectiveRepeat(selective_repeat::Receiver::new(flow, rules))
            }
            SchemeRules::GoBackN(_) => Self::GoBackN(go_back_n::Receiver::new(flow)),
        }
    }

    pub(crate) fn last_arrival(&self) -> Time {
        of_both!(self, receiver => receiver.last_arrival())
    }

    /// True if all packets of the flow have arrived.
    pub(crate) fn is_finished(&self) -> bool {
        of_both!(self, receiver => receiver.is_finished())
    }

    /// Final acknowledgement of a finished flow.
    pub(crate) fn final_ack(&self) -> FinalAck {
        of_both!(self, receiver => receiver.final_ack())
    }

    /// True if a data packet with this number is missing and would be accepted.
    #[inline]
    pub(crate) fn accepts(&self, psn: u32, rules: &Rules) -> bool {
        match (self, &rules.scheme) {
            (Self::SelectiveRepeat(receiver), SchemeRules::SelectiveRepeat(rules)) => {
                receiver.accepts(psn, rules)
            }
            (Self::GoBackN(receiver), _) => receiver.accepts(psn),
            _ => mixed_schemes(),
        }
    }

    /// Processes a data packet. Returns true if it completes the flow.
    #[inline(always)]
    pub(crate) fn on_data<T: Default>(
        &mut self,
        now: Time,
        packet: &Packet,
        rules: &Rules,
        reports: &mut Reports<'_, T>,
    ) -> bool {
        with_rules!(self, rules, |receiver, rules| receiver
            .on_data(now, packet, rules, reports))
    }

    /// Processes a data packet that has come trimmed. Go-back-N takes it for lost, which the next packet shows.
    pub(crate) fn on_trimmed<T: Default>(
        &mut self,
        now: Time,
        packet: &Packet,
        rules: &Rules,
        reports: &mut Reports<'_, T>,
    ) {
        if let (Self::SelectiveRepeat(receiver), SchemeRules::SelectiveRepeat(rules)) =
            (self, &rules.scheme)
        {
            receiver.on_trimmed(now, packet, rules, reports);
        }
    }

    /// The answer to a probe, where there is one.
    pub(crate) fn on_probe(&mut self, now: Time, packet: &Packet, rules: &Rules) -> Option<Packet> {
        match (self, &rules.scheme) {
            (Self::SelectiveRepeat(receiver), SchemeRules::SelectiveRepeat(rules)) => {
                receiver.on_probe(now, packet, rules)
            }
            _ => None,
        }
    }
}
