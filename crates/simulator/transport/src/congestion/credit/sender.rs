//! The gate of one sender.

use super::{CreditRules, distance};
use clearway_units::Time;

/// Data that a sender wants to send.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Demand {
    /// Payload that waits to be sent, for the first time or again; values above a window's worth may be reported as a window's worth.
    pub(crate) payload: u64,
    /// Packets of that.
    pub(crate) packets: u64,
    /// The controller's window in bytes of payload; may be infinite.
    pub(crate) window: f64,
    /// Flows that wait for the NIC, this one included.
    pub(crate) flows: u64,
}

/// Credit of one flow at its sender.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SenderCredit {
    /// Bytes that may be sent; below zero by less than a packet.
    credit: i64,
    /// All quanta that the receiver has granted, modulo 2^16.
    pull: u16,
    /// True until the receiver has answered: the credit is the first window's.
    speculating: bool,
    /// Time at which the flow last sent, or heard of its receiver.
    pub(crate) active: Time,
    /// Time of the valid timer of the flow.
    pub(crate) armed: Time,
}

impl SenderCredit {
    pub(crate) fn new(rules: &CreditRules) -> Self {
        Self {
            credit: rules.window,
            pull: 0,
            speculating: true,
            active: Time::ZERO,
            armed: Time::NEVER,
        }
    }

    /// True if a packet may be sent.
    #[inline]
    pub(crate) fn may_send(&self) -> bool {
        self.credit > 0
    }

    /// Begins anew: nothing is outstanding, and a message has come.
    pub(crate) fn restart(&mut self, rules: &CreditRules) {
        self.credit = self.credit.max(rules.window);
        self.speculating = true;
    }

    /// A data packet of `wire` bytes leaves.
    pub(crate) fn on_sent(&mut self, now: Time, wire: u16) {
        self.credit -= i64::from(wire);
        self.active = now;
    }

    /// Takes note of any answer of the receiver.
    pub(crate) fn on_answer(&mut self, now: Time) {
        self.active = now;
        if std::mem::take(&mut self.speculating) {
            self.credit = self.credit.min(0);
        }
    }

    /// A pull has come. Returns true if it grants anything.
    pub(crate) fn on_pull(&mut self, now: Time, pull: u16, rules: &CreditRules) -> bool {
        self.on_answer(now);
        let granted = i64::from(distance(self.pull, pull));
        if granted <= 0 {
            return false;
        }
        self.pull = pull;
        self.credit = (self.credit + granted * rules.quantum).min(rules.window);
        true
    }

    /// The pull target of a packet that leaves, once its own bytes are counted as sent.
    pub(crate) fn target(&self, demand: &Demand, rules: &CreditRules) -> u16 {
        let waiting = demand
            .payload
            .saturating_add(demand.packets.saturating_mul(rules.header as u64));
        let mut wanted = waiting.min(rules.window as u64) as i64;
        if demand.window.is_finite() {
            let payload = (rules.packet - rules.header).max(1) as f64;
            let packets = demand.window / payload;
            wanted = wanted.min((packets * rules.packet as f64) as i64 + rules.packet);
        }
        let mut more = wanted.min(rules.window) - self.credit;
        // The first answer voids the first credit, so the sender asks for at least a packet beyond it.
        if self.speculating && waiting > 0 {
            more = more.max(rules.packet);
        }
        // The flows that wait share the NIC: each asks for its part.
        if demand.flows > 1 {
            more /= demand.flows.min(1 << 20) as i64;
        }
        let quanta = more.div_euclid(rules.quantum) + i64::from(more.rem_euclid(rules.quantum) > 0);
        self.pull.wrapping_add(quanta as u16)
    }

    #[cfg(test)]
    pub(crate) fn credit(&self) -> i64 {
        self.credit
    }
}
