//! Sums of a link over its flows, in two banks, so that errors in them pass.
//!
//! s-PERC keeps no state of a flow at a link: the flow's record holds its part of the sums, and each control packet takes that part out and
//! puts the new one in. A control packet that is lost behind the link breaks this, as does a flow that takes another path or never says
//! that it leaves: its part stays for ever. The dissertation does not speak of losses (§5.1.1 and §5.4 have none), and so the scheme here
//! is a decision of this library, soft state in two banks:
//!
//! * *Active*: the sums that allocate rates. Each visit takes the flow's last part out and puts the new one in.
//! * *Filling*: the same of the flows that have visited since the period began.
//!
//! After each period the filled bank becomes the active one, and an empty one is filled. A flow visits at least once in a period, so
//! that without losses both banks are then equal, bit by bit. A flow that has gone without a word is in the active bank for at most two
//! periods. A record says in which period the link last saw it ([`Visit`]): the part of an older one is in no bank.

use clearway_units::{Span, Time};

/// Weight of a flow of a host with one connection, in the units of `NumB`: 2^24 such flows fit.
pub(super) const UNIT_WEIGHT: u64 = 1 << 40;

/// Units of `SumE` in a byte per second. The sum holds 2^48 bytes per second, 2.2 Pb/s.
pub(super) const RATE_UNITS: f64 = 65536.0;

/// Last visit of a flow at a link: the link's number modulo 2^24, and the period of its sums modulo 2^8.
///
/// A period that is taken for another one 256 later costs as much as a lost control packet, and passes in the same way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Visit(u32);

impl Visit {
    /// No visit. It may look like one of link 0, which the status "new" rules out.
    pub(super) const NONE: Self = Self(0);

    /// A visit as the bits of a record.
    #[cfg(test)]
    pub(super) const fn from_bits(bits: u32) -> Self {
        Self(bits)
    }

    fn new(link: u32, period: u64) -> Self {
        Self(link << 8 | u32::from(period as u8))
    }

    const fn link(self) -> u32 {
        self.0 >> 8
    }

    /// Periods that have begun since, modulo 2^8.
    const fn age(self, period: u64) -> u8 {
        (period as u8).wrapping_sub(self.0 as u8)
    }
}

/// Part of a flow in the sums of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    /// Bottlenecked here, with a weight in [`UNIT_WEIGHT`].
    Weight(u64),
    /// Bottlenecked elsewhere, with a rate in [`RATE_UNITS`].
    Rate(u64),
}

/// `NumB` and `SumE`.
#[derive(Debug, Clone, Copy, Default)]
struct Bank {
    /// Weight of the flows that are bottlenecked here, in [`UNIT_WEIGHT`].
    bottlenecked: u64,
    /// Rates of the flows that are bottlenecked elsewhere, in [`RATE_UNITS`].
    elsewhere: u64,
}

impl Bank {
    fn add(&mut self, part: Part) {
        match part {
            Part::Weight(weight) => self.bottlenecked = self.bottlenecked.saturating_add(weight),
            Part::Rate(rate) => self.elsewhere = self.elsewhere.saturating_add(rate),
        }
    }

    /// Takes a part out; a part that was never put in leaves no sum below zero.
    fn remove(&mut self, part: Part) {
        match part {
            Part::Weight(weight) => self.bottlenecked = self.bottlenecked.saturating_sub(weight),
            Part::Rate(rate) => self.elsewhere = self.elsewhere.saturating_sub(rate),
        }
    }
}

/// Sums of a link.
#[derive(Debug, Clone)]
pub(super) struct Sums {
    /// Number of the link, below 2^24.
    link: u32,
    active: Bank,
    filling: Bank,
    /// Number of the present period.
    period: u64,
    ends: Time,
    length: Span,
}

impl Sums {
    /// Sums of the link with a number, of which the last 24 bits count, with periods of `length`.
    ///
    /// # Panics
    /// If a period has no length.
    pub(super) fn new(link: u32, length: Span) -> Self {
        assert!(!length.is_zero(), "a period has a length");
        Self {
            link: link & 0xff_ffff,
            active: Bank::default(),
            filling: Bank::default(),
            period: 0,
            ends: Time::ZERO + length,
            length,
        }
    }

    /// Changes banks if the period is over. One without a visit leaves nothing.
    pub(super) fn roll_over(&mut self, now: Time) {
        if now < self.ends {
            return;
        }
        let further = now.since(self.ends).as_ps() / self.length.as_ps();
        self.active = match further {
            0 => self.filling,
            _ => Bank::default(),
        };
        self.filling = Bank::default();
        self.period += 1 + further;
        let passed = Span::from_ps(self.length.as_ps().saturating_mul(1 + further));
        self.ends = self.ends.saturating_add(passed);
    }

    /// False if the sums hold nothing of a flow, since its last visit was at another link or too long ago.
    pub(super) fn know(&self, visit: Visit) -> bool {
        visit.link() == self.link && visit.age(self.period) <= 1
    }

    /// Takes out the part that a flow has had since its visit.
    pub(super) fn remove(&mut self, part: Part, visit: Visit) {
        self.active.remove(part);
        if visit.age(self.period) == 0 {
            self.filling.remove(part);
        }
    }

    /// Puts in the part of a flow that visits now, and returns the visit.
    pub(super) fn add(&mut self, part: Option<Part>) -> Visit {
        if let Some(part) = part {
            self.active.add(part);
            self.filling.add(part);
        }
        Visit::new(self.link, self.period)
    }

    /// Rates of the flows that are bottlenecked elsewhere, in bytes per second (`SumE`).
    pub(super) fn elsewhere(&self) -> f64 {
        self.active.elsewhere as f64 / RATE_UNITS
    }

    /// Weight of the flows that are bottlenecked here (`NumB`), with one more of `weight` in [`UNIT_WEIGHT`].
    pub(super) fn bottlenecked_with(&self, weight: u64) -> f64 {
        self.active.bottlenecked.saturating_add(weight) as f64 / UNIT_WEIGHT as f64
    }
}
