//! Receiver credits of one endpoint: the gates of its senders, and the pacer of its receivers.

use super::key::Key;
use crate::congestion::credit::{CreditRules, CreditScheme, Pacer, SenderCredit};
use crate::profile::Profile;
use clearway_units::Span;

/// Number of the pacer among timers, where senders are below.
pub(super) const PACER: u32 = 1 << 29;
/// Added to the slot of a sender that waits for credit, among timers.
pub(super) const WAITING: u32 = 1 << 28;

/// Timer of receiver credits.
pub(super) enum CreditTimer {
    Pacer,
    /// The sender in this slot may wait for credit.
    Sender(u32),
}

impl CreditTimer {
    /// The meaning of a number among timers; `None` if it is of something else.
    pub(super) fn from_timer(timer: u32) -> Option<Self> {
        if timer & PACER != 0 {
            return Some(Self::Pacer);
        }
        (timer & WAITING != 0).then_some(Self::Sender(timer & !WAITING))
    }
}

/// Receiver credits of one endpoint.
#[derive(Debug)]
pub(super) struct CreditControl {
    pub(super) rules: CreditRules,
    /// By slot.
    pub(super) senders: Vec<SenderCredit>,
    pub(super) pacer: Pacer<Key>,
    /// Silence after which a sender that has no credit asks again.
    pub(super) timeout: Span,
}

impl CreditControl {
    /// Receiver credits of a profile; `None` if senders need none.
    pub(super) fn new(profile: &Profile) -> Option<Box<Self>> {
        if profile.credit.scheme == CreditScheme::None {
            return None;
        }
        let network = &profile.network;
        let timeout = profile.reliability.timeout_on(network);
        Some(Box::new(Self {
            rules: CreditRules::new(&profile.credit, network),
            senders: Vec::new(),
            pacer: Pacer::new(),
            timeout: timeout.max(network.base_rtt).max(Span::from_ps(1)),
        }))
    }

    /// A flow begins in a slot.
    pub(super) fn open(&mut self, slot: usize) {
        let fresh = SenderCredit::new(&self.rules);
        if self.senders.len() <= slot {
            self.senders.resize(slot + 1, fresh);
        }
        self.senders[slot] = fresh;
    }
}
