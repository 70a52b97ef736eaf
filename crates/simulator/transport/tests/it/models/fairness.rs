//! Variable additive increase (VAI) and Sampling Frequency (SF) of Snyder's dissertation, §4.1: parts of the models of HPCC and Swift.
//!
//! Decisions on open points of the text: tokens are made of the whole measure, not of its excess over a threshold; below the threshold the
//! dampener falls by one with or without tokens; tokens are spent when the reference changes; the first round trip begins with the first
//! acknowledgement.

use super::Branches;
use clearway_transport::congestion::AckSample;
use clearway_units::Bytes;

/// Algorithms 1 and 2.
#[derive(Default)]
pub(crate) struct VariableIncrease {
    token_thresh: f64,
    ai_div: f64,
    bank: f64,
    dampener: f64,
    measured: f64,
    congested: bool,
    /// Bytes sent when this round trip began; the first begins with the first acknowledgement.
    round_trip: Option<Bytes>,
}

impl VariableIncrease {
    pub(crate) fn new(token_thresh: f64, ai_div: f64) -> Self {
        Self {
            token_thresh,
            ai_div,
            ..Default::default()
        }
    }

    /// The factor of the additive increase.
    pub(crate) fn factor(&self) -> f64 {
        let tokens = self.bank.min(100.0);
        (tokens / (self.dampener / 8.0 + 1.0)).max(1.0)
    }

    pub(crate) fn spend(&mut self) {
        self.bank = (self.bank - self.bank.min(100.0)).max(0.0);
    }

    pub(crate) fn observe(&mut self, measured: f64, congested: bool) {
        self.measured = self.measured.max(measured);
        self.congested |= congested;
    }

    /// Ends the round trip if the bytes sent at its beginning have arrived.
    pub(crate) fn end_round_trip(&mut self, ack: &AckSample<'_>, taken: &mut Branches) {
        if ack.delivered <= *self.round_trip.get_or_insert(ack.sent()) {
            return;
        }
        self.round_trip = Some(ack.sent());
        if self.measured > self.token_thresh {
            self.bank = (self.bank + self.measured / self.ai_div).min(1000.0);
            self.dampener += self.measured / self.token_thresh;
            taken.either(self.bank < 1000.0, "tokens", "full bank");
        } else if self.bank == 0.0 && !self.congested {
            self.dampener = 0.0;
            taken.take("dampener reset");
        } else if self.measured < self.token_thresh {
            self.dampener = (self.dampener - 1.0).max(0.0);
            taken.take("dampener falls");
        }
        (self.measured, self.congested) = (0.0, false);
    }
}

/// Instants at which a reference may change: an increase once per round trip, a decrease once in so many acknowledgements.
#[derive(Default)]
pub(crate) struct Sampling {
    /// `None` for once per round trip, as without Sampling Frequency.
    acks: Option<u32>,
    count: u32,
    /// Bytes sent at the last increase, or with the first acknowledgement.
    pub(crate) last_update: Option<Bytes>,
}

impl Sampling {
    pub(crate) fn new(acks: Option<u32>) -> Self {
        Self {
            acks,
            ..Default::default()
        }
    }

    pub(crate) fn changes(
        &mut self,
        decreases: bool,
        ack: &AckSample<'_>,
        taken: &mut Branches,
    ) -> bool {
        self.count += 1;
        let round_trip = ack.delivered > *self.last_update.get_or_insert(ack.sent());
        let changes = match self.acks {
            Some(acks) if decreases => self.count >= acks,
            _ => round_trip,
        };
        if changes {
            taken.take_if(decreases && !round_trip, "decrease within a round trip");
            taken.take_if(!decreases, "increase");
            self.count = 0;
            if !(decreases && self.acks.is_some()) {
                self.last_update = Some(ack.sent());
            }
        } else {
            taken.take_if(decreases && round_trip, "decrease waits for samples");
        }
        changes
    }
}
