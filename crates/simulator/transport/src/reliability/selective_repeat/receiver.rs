//! The receiving half of a flow: packets that have arrived, and the acknowledgements that are due.

use super::Rules;
use super::bitmap::Bitmap;
use super::parameters::SEGMENT_BITS;
use crate::endpoint::flow::FinalAck;
use crate::endpoint::flow::{Reports, answer};
use crate::exact_push;
use crate::packet::{DataFlags, Header, Packet};
use crate::report::Event;
use clearway_prefetch::{LINE, prefetch_first};
use clearway_units::{Bytes, FlowId, MessageId, Time};
use std::collections::VecDeque;

const NONE: u64 = u64::MAX;

/// A message of which some packets have arrived.
#[derive(Debug, Clone, Copy)]
struct Incoming {
    message: MessageId,
    received: u64,
    /// Length of the message, known once its last packet has arrived.
    total: Option<u64>,
}

/// Selective acknowledgement of a flow that has arrived completely, in answer to a late copy or a probe.
pub(crate) fn late_sack(last: FinalAck, trigger: &Packet, rules: &Rules) -> Packet {
    let header = Header::Sack {
        bitmap: 0,
        bytes_received: last.bytes_received,
        epsn: last.epsn,
        base_offset: 0,
        out_of_order: 0,
        probe: matches!(trigger.header, Header::Probe { .. }),
    };
    Packet {
        ecn: trigger.ecn,
        ..answer(trigger, rules.ack, header)
    }
}

/// The receiver of one flow (STrack §3.3.1).
#[derive(Debug)]
pub(crate) struct Receiver {
    /// Expected sequence number (`EPSN`): all packets below have arrived.
    expected: u64,
    /// Distinct payload bytes that have arrived (`bytes_recvd`).
    bytes_received: u64,
    /// Bytes of these that are not acknowledged yet.
    unacknowledged: u64,
    /// Lowest packet that has arrived since the last acknowledgement, or [`NONE`].
    lowest_since_sack: u64,
    /// Packets that have arrived beyond the expected one (`OOO`).
    out_of_order: u32,
    bitmap: Bitmap,
    /// An acknowledgement was requested while packets were missing.
    request_pending: bool,
    /// Messages that have begun and not ended; nearly always one.
    incoming: Vec<Incoming>,
    /// The last packet of the flow, or [`NONE`].
    last: u64,
    last_arrival: Time,
    flow: FlowId,
}

impl Receiver {
    /// Loads what the next packets will touch into the caches: the bitmap and the messages that have begun.
    #[inline]
    pub(crate) fn prefetch(&self) {
        self.bitmap.prefetch(self.expected);
        prefetch_first(&self.incoming, LINE);
    }

    pub(crate) fn new(flow: FlowId, rules: &Rules) -> Self {
        Self {
            expected: 0,
            bytes_received: 0,
            unacknowledged: 0,
            lowest_since_sack: NONE,
            out_of_order: 0,
            bitmap: Bitmap::new(rules.window),
            request_pending: false,
            incoming: Vec::new(),
            last: NONE,
            last_arrival: Time::ZERO,
            flow,
        }
    }

    /// Starts as if all packets below `psn` had arrived.
    #[cfg(test)]
    pub(crate) fn start_at(&mut self, psn: u64) {
        self.expected = psn;
    }

    /// True if all packets up to the last one of the flow have arrived.
    #[inline]
    pub(crate) fn is_finished(&self) -> bool {
        // `NONE` is never below.
        self.last < self.expected
    }

    pub(crate) fn last_arrival(&self) -> Time {
        self.last_arrival
    }

    /// Final acknowledgement of the flow, once it is finished.
    pub(crate) fn final_ack(&self) -> FinalAck {
        FinalAck {
            epsn: self.expected as u32,
            bytes_received: self.bytes_received as u32,
        }
    }

    /// True if the packet with this number is within the window and has not arrived before.
    #[inline]
    pub(crate) fn accepts(&self, psn: u32, rules: &Rules) -> bool {
        let ahead = psn.wrapping_sub(self.expected as u32) as i32;
        (0..rules.window as i32).contains(&ahead)
            && self.bitmap.segment(self.expected + ahead as u64) & 1 == 0
    }

    /// Processes a data packet. Queues the acknowledgement if one is due. Returns true if the packet completes the flow.
    #[inline(always)]
    pub(crate) fn on_data<T: Default>(
        &mut self,
        now: Time,
        packet: &Packet,
        rules: &Rules,
        reports: &mut Reports<'_, T>,
    ) -> bool {
        let Header::Data {
            psn: wire_psn,
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
        let ahead = wire_psn.wrapping_sub(self.expected as u32) as i32;
        if ahead >= rules.window as i32 {
            reports.counters.overflow += 1;
            return false;
        }
        if ahead < 0 || !self.accept(ahead as u64) {
            reports.counters.duplicates += 1;
            self.repeat(packet, rules, reports);
            return false;
        }
        let length = u64::from(payload);
        self.bytes_received += length;
        self.unacknowledged += length;
        self.account_message(packet, reports.events);
        let requested = flags.contains(DataFlags::ACK_REQUEST);
        let due = requested
            || self.unacknowledged >= rules.ack_bytes
            || (packet.ecn && rules.ack_on_ecn)
            || match rules.ack_in_order {
                true => ahead == 0,
                false => self.is_first_or_closes_gap(length),
            };
        if due {
            if !rules.ack_in_order {
                self.request_pending = (requested || self.request_pending) && self.out_of_order > 0;
            }
            let base = self.segment_base();
            let sack = self.sack(packet, base, false, rules);
            reports.answer_as_control(sack);
        }
        self.is_finished()
    }

    /// Acknowledges a packet that brings nothing new.
    #[cold]
    #[inline(never)]
    fn repeat<T: Default>(&mut self, packet: &Packet, rules: &Rules, reports: &mut Reports<'_, T>) {
        let base = self.segment_base();
        let sack = self.sack(packet, base, false, rules);
        reports.answer(sack);
    }

    /// True if the packet that has just been accepted is the first of the flow to arrive, or if nothing is missing any more and an
    /// acknowledgement was requested while something was.
    fn is_first_or_closes_gap(&self, length: u64) -> bool {
        self.bytes_received == length || (self.request_pending && self.out_of_order == 0)
    }

    /// Processes a data packet without its payload, which a switch has cut off: asks for it by a negative acknowledgement, or acknowledges
    /// again if the packet has arrived before.
    #[cold]
    pub(crate) fn on_trimmed<T: Default>(
        &mut self,
        now: Time,
        packet: &Packet,
        rules: &Rules,
        reports: &mut Reports<'_, T>,
    ) {
        let Header::Data { psn, flags, .. } = packet.header else {
            return;
        };
        self.last_arrival = now;
        let ahead = psn.wrapping_sub(self.expected as u32) as i32;
        if ahead >= rules.window as i32 {
            reports.counters.overflow += 1;
            return;
        }
        if !self.accepts(psn, rules) {
            self.repeat(packet, rules, reports);
            return;
        }
        reports.counters.nacks_sent += 1;
        let last_hop = flags.contains(DataFlags::LAST_HOP);
        let nack = Packet {
            ecn: packet.ecn,
            ..answer(packet, rules.ack, Header::Nack { psn, last_hop })
        };
        reports.answer(nack);
    }

    /// Answers a probe at once (§3.3.1, condition 3), with the segment that it asks for.
    pub(crate) fn on_probe(&mut self, now: Time, packet: &Packet, rules: &Rules) -> Option<Packet> {
        let Header::Probe { base, .. } = packet.header else {
            return None;
        };
        self.last_arrival = now;
        let ahead = base.wrapping_sub(self.expected as u32) as i32;
        let furthest = u64::from(rules.window) - SEGMENT_BITS;
        let base = self.expected + u64::from(ahead.max(0) as u32).min(furthest);
        Some(self.sack(packet, base, true, rules))
    }

    /// Marks packet `expected + ahead` as arrived; false if it had arrived before.
    #[inline]
    fn accept(&mut self, ahead: u64) -> bool {
        let psn = self.expected + ahead;
        if ahead > 0 {
            if !self.bitmap.insert(psn) {
                return false;
            }
            self.out_of_order += 1;
        } else {
            self.expected += 1;
            if self.out_of_order > 0 {
                let run = self.bitmap.take_run(self.expected);
                self.expected += run;
                self.out_of_order -= run as u32;
            }
        }
        self.lowest_since_sack = self.lowest_since_sack.min(psn);
        true
    }

    /// Start of the bitmap segment that holds the lowest packet since the last acknowledgement (§3.3.1). Retransmission starts
    /// from the lowest packet, so the sender needs the latest state of that one.
    #[inline]
    fn segment_base(&self) -> u64 {
        if self.out_of_order == 0
            || self.lowest_since_sack == NONE
            || self.lowest_since_sack < self.expected
        {
            return self.expected;
        }
        let ahead = self.lowest_since_sack - self.expected;
        self.expected + (ahead & !(SEGMENT_BITS - 1))
    }

    #[inline(always)]
    fn sack(&mut self, trigger: &Packet, base: u64, probe: bool, rules: &Rules) -> Packet {
        self.unacknowledged = 0;
        self.lowest_since_sack = NONE;
        let bitmap = if self.out_of_order == 0 {
            0
        } else {
            self.bitmap.segment(base)
        };
        let header = Header::Sack {
            bitmap,
            bytes_received: self.bytes_received as u32,
            epsn: self.expected as u32,
            base_offset: (base - self.expected) as u16,
            out_of_order: self.out_of_order as u16,
            probe,
        };
        Packet {
            ecn: trigger.ecn,
            ..answer(trigger, rules.ack, header)
        }
    }

    /// Counts the packet towards its message and reports the message when nothing is missing.
    #[inline]
    fn account_message(&mut self, packet: &Packet, events: &mut VecDeque<Event>) {
        let Header::Data {
            psn,
            message,
            offset,
            payload,
            flags,
            ..
        } = packet.header
        else {
            return;
        };
        let end_of_message = flags.contains(DataFlags::END_OF_MESSAGE);
        if flags.contains(DataFlags::END_OF_FLOW) {
            // The packet was accepted, so it lies at most a window away from the expected packet.
            let ahead = psn.wrapping_sub(self.expected as u32) as i32;
            self.last = self.expected.wrapping_add(i64::from(ahead) as u64);
            if !end_of_message {
                return;
            }
        }
        let length = u64::from(payload);
        let index = match self.incoming.iter().rposition(|m| m.message == message) {
            Some(index) => index,
            None => {
                let incoming = Incoming {
                    message,
                    received: 0,
                    total: None,
                };
                exact_push::push(&mut self.incoming, incoming);
                self.incoming.len() - 1
            }
        };
        let incoming = &mut self.incoming[index];
        incoming.received += length;
        if end_of_message {
            incoming.total = Some(offset.saturating_add(length));
        }
        if incoming.total == Some(incoming.received) {
            let bytes = Bytes::new(incoming.received);
            self.incoming.swap_remove(index);
            events.push_back(Event::Received {
                flow: self.flow,
                message,
                bytes,
            });
        }
    }
}
