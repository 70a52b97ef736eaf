//! The reliability schemes behind one face: an endpoint asks of senders and receivers no more than the methods here.

use crate::cc::Controller;
use crate::flow::{Context, Due, Ends, Reports};
use crate::packet::{Header, Packet};
use crate::profile::{Profile, Reliability};
use crate::{go_back_n, selective_repeat};
use clearway_units::{Bytes, FlowId, MessageId, Span, Time};

use super::{FlowProgress, FlowStatistics};

/// A go-back-N receiver takes a packet of an unknown flow for one of its first, and not for a late copy, below this number.
const FIRST_PACKETS: u32 = 1 << 16;

/// The rules of both schemes, and what is the same for all flows of the one in use.
pub(crate) struct Rules {
    pub(crate) selective_repeat: selective_repeat::Rules,
    pub(crate) go_back_n: go_back_n::Rules,
    pub(crate) queue_pairs: u8,
    /// How long finished receivers are remembered.
    pub(crate) linger: Span,
    /// An unknown flow may begin with a packet below this number.
    pub(crate) first_packets: u32,
    /// Bytes of an acknowledgement or notification on the wire.
    pub(crate) ack: u16,
    /// Receivers have a rule for notifications.
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
        let (sr, gbn) = match &profile.reliability {
            Reliability::SelectiveRepeat(sr) => (sr.clone(), Default::default()),
            Reliability::GoBackN(gbn) => (Default::default(), gbn.clone()),
        };
        let selective_repeat = selective_repeat::Rules::new(&sr, network, largest_window);
        let go_back_n = go_back_n::Rules::new(&gbn, network);
        let (queue_pairs, linger, first_packets) = match &profile.reliability {
            Reliability::SelectiveRepeat(_) => {
                (1, selective_repeat.linger, selective_repeat.window)
            }
            Reliability::GoBackN(_) => (go_back_n.queue_pairs, go_back_n.linger, FIRST_PACKETS),
        };
        Self {
            selective_repeat,
            go_back_n,
            queue_pairs,
            linger,
            first_packets,
            ack: network.ack as u16,
            notifies: profile.feedback.notifies(),
        }
    }
}

/// What senders report to, whatever their scheme.
pub(crate) type AnyContext<'a> = Context<'a, Rules>;

/// The same with the rules of one scheme.
macro_rules! narrow {
    ($cx:ident, $scheme:ident) => {
        &mut Context {
            now: $cx.now,
            rules: &$cx.rules.$scheme,
            events: &mut *$cx.events,
            counters: &mut *$cx.counters,
            tracing: $cx.tracing,
            hops: $cx.hops,
        }
    };
}

/// The sender of one flow, or of one of its queue pairs.
pub(crate) enum Sender {
    SelectiveRepeat(selective_repeat::Sender),
    GoBackN(go_back_n::Sender),
}

macro_rules! of_both {
    ($self:ident, $sender:ident => $what:expr) => {
        match $self {
            Self::SelectiveRepeat($sender) => $what,
            Self::GoBackN($sender) => $what,
        }
    };
}

impl Sender {
    pub(crate) fn new(
        ends: Ends,
        profile: &Profile,
        controller: Controller,
        rules: &Rules,
        seed: u64,
    ) -> Self {
        match profile.reliability {
            Reliability::SelectiveRepeat(_) => {
                Self::SelectiveRepeat(selective_repeat::Sender::new(
                    ends,
                    profile,
                    controller,
                    &rules.selective_repeat,
                    seed,
                ))
            }
            Reliability::GoBackN(_) => Self::GoBackN(go_back_n::Sender::new(
                ends,
                profile,
                controller,
                &rules.go_back_n,
                seed,
            )),
        }
    }

    pub(crate) fn flow(&self) -> FlowId {
        of_both!(self, sender => sender.flow())
    }

    pub(crate) fn acknowledged(&self) -> Bytes {
        of_both!(self, sender => sender.acknowledged())
    }

    pub(crate) fn progress(&self) -> FlowProgress {
        of_both!(self, sender => sender.progress())
    }

    pub(crate) fn statistics(&self) -> &FlowStatistics {
        of_both!(self, sender => sender.statistics())
    }

    #[cfg(test)]
    pub(crate) fn in_flight_exact(&self) -> i64 {
        of_both!(self, sender => sender.in_flight_exact())
    }

    pub(crate) fn post(&mut self, message: MessageId, bytes: Bytes, rules: &Rules) {
        match self {
            Self::SelectiveRepeat(sender) => sender.post(message, bytes, &rules.selective_repeat),
            Self::GoBackN(sender) => sender.post(message, bytes, &rules.go_back_n),
        }
    }

    pub(crate) fn close(&mut self, rules: &Rules) {
        match self {
            Self::SelectiveRepeat(sender) => sender.close(&rules.selective_repeat),
            Self::GoBackN(sender) => sender.close(&rules.go_back_n),
        }
    }

    #[inline]
    pub(crate) fn is_finished(&self) -> bool {
        of_both!(self, sender => sender.is_finished())
    }

    #[inline]
    pub(crate) fn may_send(&self, rules: &Rules) -> bool {
        match self {
            Self::SelectiveRepeat(sender) => sender.may_send(&rules.selective_repeat),
            Self::GoBackN(sender) => sender.may_send(),
        }
    }

    #[inline]
    pub(crate) fn departure(&self) -> Time {
        of_both!(self, sender => sender.departure())
    }

    #[inline(always)]
    pub(crate) fn transmit(&mut self, cx: &mut AnyContext<'_>) -> Packet {
        match self {
            Self::SelectiveRepeat(sender) => sender.transmit(narrow!(cx, selective_repeat)),
            Self::GoBackN(sender) => sender.transmit(narrow!(cx, go_back_n)),
        }
    }

    #[inline]
    pub(crate) fn has_restarted(&self) -> bool {
        of_both!(self, sender => sender.has_restarted())
    }

    /// A [`Header::Sack`](crate::Header::Sack) has come; returns the earliest timer that it may have brought forward.
    #[inline(always)]
    pub(crate) fn on_sack(&mut self, packet: &Packet, cx: &mut AnyContext<'_>) -> Time {
        match self {
            Self::SelectiveRepeat(sender) => {
                sender.on_sack(packet, narrow!(cx, selective_repeat));
                sender.controller_deadline()
            }
            Self::GoBackN(_) => {
                cx.counters.invalid += 1;
                Time::NEVER
            }
        }
    }

    /// A [`Header::Ack`](crate::Header::Ack) has come; returns the earliest timer that it may have brought forward.
    #[inline]
    pub(crate) fn on_ack(&mut self, packet: &Packet, cx: &mut AnyContext<'_>) -> Time {
        match self {
            Self::SelectiveRepeat(_) => {
                cx.counters.invalid += 1;
                Time::NEVER
            }
            Self::GoBackN(sender) => {
                sender.on_ack(packet, narrow!(cx, go_back_n));
                sender.deadline()
            }
        }
    }

    pub(crate) fn on_notification(&mut self, cx: &mut AnyContext<'_>) {
        match self {
            Self::SelectiveRepeat(sender) => {
                sender.on_notification(narrow!(cx, selective_repeat));
            }
            Self::GoBackN(sender) => sender.on_notification(narrow!(cx, go_back_n)),
        }
    }

    #[inline]
    pub(crate) fn deadline(&self) -> Time {
        of_both!(self, sender => sender.deadline())
    }

    /// A timer may have run out; returns the probe that it asks for.
    pub(crate) fn on_deadline(&mut self, cx: &mut AnyContext<'_>) -> Option<Packet> {
        match self {
            Self::SelectiveRepeat(sender) => {
                let due = sender.on_deadline(narrow!(cx, selective_repeat));
                (due == Due::Probe).then(|| sender.probe(&cx.rules.selective_repeat))
            }
            Self::GoBackN(sender) => {
                sender.on_deadline(narrow!(cx, go_back_n));
                None
            }
        }
    }

    pub(crate) fn on_probe_sent(&mut self, now: Time) {
        if let Self::SelectiveRepeat(sender) = self {
            sender.on_probe_sent(now);
        }
    }
}

/// The last acknowledgement of a finished flow, or of one of its queue pairs: all that stays known of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FinalAck {
    /// One more than the number of its last packet.
    pub(crate) epsn: u32,
    /// With selective repeat, its payload bytes modulo 2^32.
    pub(crate) bytes_received: u32,
}

impl FinalAck {
    /// The answer to a late copy of a data packet, or to a probe, if there is one.
    pub(crate) fn answer(
        self,
        packet: &Packet,
        profile: &Profile,
        rules: &Rules,
    ) -> Option<Packet> {
        match (&profile.reliability, packet.header) {
            (Reliability::SelectiveRepeat(_), _) => Some(selective_repeat::late_sack(
                self,
                packet,
                &rules.selective_repeat,
            )),
            (Reliability::GoBackN(_), Header::Data { .. }) => {
                go_back_n::late_ack(self, packet, &rules.go_back_n)
            }
            (Reliability::GoBackN(_), _) => None,
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
    pub(crate) fn new(flow: FlowId, profile: &Profile, rules: &Rules) -> Self {
        match profile.reliability {
            Reliability::SelectiveRepeat(_) => Self::SelectiveRepeat(
                selective_repeat::Receiver::new(flow, &rules.selective_repeat),
            ),
            Reliability::GoBackN(_) => Self::GoBackN(go_back_n::Receiver::new(flow)),
        }
    }

    pub(crate) fn last_arrival(&self) -> Time {
        of_both!(self, receiver => receiver.last_arrival())
    }

    /// What stays known of a finished flow.
    pub(crate) fn final_ack(&self) -> FinalAck {
        of_both!(self, receiver => receiver.final_ack())
    }

    /// A data packet with this number would bring what is missing, and be taken.
    #[inline]
    pub(crate) fn accepts(&self, psn: u32, rules: &Rules) -> bool {
        match self {
            Self::SelectiveRepeat(receiver) => receiver.accepts(psn, &rules.selective_repeat),
            Self::GoBackN(receiver) => receiver.accepts(psn),
        }
    }

    /// A data packet has come; true if with it the flow is finished.
    #[inline(always)]
    pub(crate) fn on_data<T: Copy>(
        &mut self,
        now: Time,
        packet: &Packet,
        rules: &Rules,
        reports: &mut Reports<'_, T>,
    ) -> bool {
        match self {
            Self::SelectiveRepeat(receiver) => {
                receiver.on_data(now, packet, &rules.selective_repeat, reports)
            }
            Self::GoBackN(receiver) => receiver.on_data(now, packet, &rules.go_back_n, reports),
        }
    }

    /// The answer to a probe, where there is one.
    pub(crate) fn on_probe(&mut self, now: Time, packet: &Packet, rules: &Rules) -> Option<Packet> {
        match self {
            Self::SelectiveRepeat(receiver) => {
                receiver.on_probe(now, packet, &rules.selective_repeat)
            }
            Self::GoBackN(_) => None,
        }
    }
}
