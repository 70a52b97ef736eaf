//! The receiving half of a queue pair: everything in order, or not at all.

use super::parameters::{AckClass, Rules};
use crate::endpoint::flow::FinalAck;
use crate::endpoint::flow::{Reports, answer};
use crate::packet::{DataFlags, Header, Packet};
use crate::report::Event;
use clearway_units::{Bytes, FlowId, Time};

const NONE: u64 = u64::MAX;

/// An acknowledgement of everything below `epsn`, in answer to `trigger`.
#[inline]
fn ack(epsn: u32, nack: bool, trigger: &Packet, rules: &Rules) -> Packet {
    let header = Header::Ack {
        epsn,
        nack,
        marked: trigger.ecn,
    };
    let mut packet = answer(trigger, rules.ack, header);
    if rules.ack_class == AckClass::Data {
        packet.class = trigger.class;
    }
    packet
}

/// The answer to a late copy on a queue pair of which everything has arrived, where duplicates are answered.
pub(crate) fn late_ack(last: FinalAck, trigger: &Packet, rules: &Rules) -> Option<Packet> {
    rules
        .ack_duplicates
        .then(|| ack(last.epsn, false, trigger, rules))
}

/// The receiver of one queue pair.
#[derive(Debug)]
pub(crate) struct Receiver {
    /// Next packet expected; every packet below it has arrived.
    expected: u64,
    /// Payload of the present message that has arrived.
    message_bytes: u64,
    /// Packets since the last acknowledgement.
    unacknowledged: u32,
    /// Packet that the last NACK asked for, or [`NONE`], and the instant at which it was sent.
    nacked: u64,
    nacked_at: Time,
    /// True once the last packet of the flow has arrived.
    finished: bool,
    last_arrival: Time,
    flow: FlowId,
}

impl Receiver {
    pub(crate) fn new(flow: FlowId) -> Self {
        Self {
            expected: 0,
            message_bytes: 0,
            unacknowledged: 0,
            nacked: NONE,
            nacked_at: Time::ZERO,
            finished: false,
            last_arrival: Time::ZERO,
            flow,
        }
    }

    /// True if all packets of the flow have arrived.
    pub(crate) fn is_finished(&self) -> bool {
        self.finished
    }

    pub(crate) fn last_arrival(&self) -> Time {
        self.last_arrival
    }

    /// The acknowledgement of everything that has arrived, once the queue pair is finished.
    pub(crate) fn final_ack(&self) -> FinalAck {
        FinalAck {
            epsn: self.expected as u32,
            bytes_received: 0,
        }
    }

    /// True if the packet with this number is the one expected.
    #[inline]
    pub(crate) fn accepts(&self, psn: u32) -> bool {
        psn == self.expected as u32
    }

    /// A data packet has arrived. Queues the acknowledgement if one is due; true if with it the flow is finished.
    #[inline(never)]
    pub(crate) fn on_data<T: Default>(
        &mut self,
        now: Time,
        packet: &Packet,
        rules: &Rules,
        reports: &mut Reports<'_, T>,
    ) -> bool {
        let Header::Data {
            psn,
            message,
            payload,
            flags,
            ..
        } = packet.header
        else {
            return false;
        };
        self.last_arrival = now;
        reports.counters.data_received += 1;
        reports.counters.marked += u64::from(packet.ecn);
        let ahead = psn.wrapping_sub(self.expected as u32) as i32;
        if ahead > 0 {
            reports.counters.discarded += 1;
            if self.may_nack(now, rules) {
                self.nacked = self.expected;
                self.nacked_at = now;
                self.acknowledge(packet, true, rules, reports);
            }
            return false;
        }
        if ahead < 0 {
            reports.counters.duplicates += 1;
            if rules.ack_duplicates {
                self.acknowledge(packet, false, rules, reports);
            }
            return false;
        }
        self.expected += 1;
        self.unacknowledged += 1;
        self.message_bytes += u64::from(payload);
        let asks = DataFlags::ACK_REQUEST
            .union(DataFlags::END_OF_MESSAGE)
            .union(DataFlags::END_OF_FLOW);
        if self.unacknowledged >= rules.ack_interval || flags.intersects(asks) {
            self.acknowledge(packet, false, rules, reports);
        }
        if flags.contains(DataFlags::END_OF_MESSAGE) {
            reports.events.push_back(Event::Received {
                flow: self.flow,
                message,
                bytes: Bytes::new(self.message_bytes),
            });
            self.message_bytes = 0;
        }
        self.finished = flags.contains(DataFlags::END_OF_FLOW);
        self.finished
    }

    fn may_nack(&self, now: Time, rules: &Rules) -> bool {
        self.nacked != self.expected || now.since(self.nacked_at) >= rules.nack_interval
    }

    #[inline]
    fn acknowledge<T: Default>(
        &mut self,
        trigger: &Packet,
        nack: bool,
        rules: &Rules,
        reports: &mut Reports<'_, T>,
    ) {
        self.unacknowledged = 0;
        reports.counters.nacks_sent += u64::from(nack);
        reports.answer(ack(self.expected as u32, nack, trigger, rules));
    }
}
