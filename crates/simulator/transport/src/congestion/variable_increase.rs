//! Variable additive increase (VAI): an additive increase that grows for a while after congestion (Snyder §4.1.1).
//!
//! Congestion far beyond the usual says that flows have joined and that bandwidth is shared out unfairly. Each round trip in which it
//! exceeds a threshold pays tokens into a bank; each change of the rate spends some, and each token adds the base increase once more. A
//! dampener that rises with congestion divides the value of the tokens, so that the larger increase does not feed itself.
//!
//! # Decisions where Algorithms 1 and 2 leave room
//! * V1: tokens come from the measure itself, not from its excess: "dividing the difference" names no second operand, and the evaluation
//!   counts a token per KB of queue and per 30 ns of queueing delay.
//! * V3: line 9 of Algorithm 1 can belong to line 6 or to line 7. The text resets the dampener only with an empty bank and no
//!   congestion; the slow decay applies whenever congestion stays below the threshold. The other reading, decay with an empty bank
//!   alone, is `damp-decay-needs-empty-bank`.
//! * V4: line 1 of Algorithm 2 has no effect. V6: the bank holds fractions of tokens.
//! * V5: the code that changes the rate decides how many tokens are spent; a rate that is only tried out spends none.
//! * V7: a new flow starts undamped, as the dissertation accepts (§4.2.1).

use super::round_trip::RoundTrip;
use super::{AckSample, NetworkFacts};
use clearway_units::Span;

clearway_units::parameters! {
    /// Settings of [`VariableIncrease`] that do not depend on how congestion is measured.
    pub struct VariableIncreaseParameters {
        /// Variable additive increase (VAI): the step grows for a while after congestion.
        pub variable_increase: bool = false, "variable-increase", "the controller's own paper has a constant; Snyder §4.1.1";
        /// Maximum number of tokens that one change of the rate spends (`AI_Cap`).
        pub ai_cap: f64 = 100.0, "ai-cap", "Snyder Table 4.1";
        /// Maximum number of tokens in the bank (`Bank_Cap`).
        pub bank_cap: f64 = 1000.0, "bank-cap", "Snyder Table 4.1";
        /// Value of the dampener at which tokens are worth half.
        pub dampener_constant: f64 = 8.0, "dampener-constant", "Snyder §4.3.1";
        /// Low congestion lowers the dampener only while the bank is empty.
        pub decay_needs_empty_bank: bool = false, "damp-decay-needs-empty-bank", "the other reading of Snyder §4.1.1, Algorithm 1 line 9 (V3)";
    }
}

clearway_units::parameters! {
    /// Settings of a [`VariableIncrease`] whose measure is queueing delay, for controllers that neither paper covers.
    pub struct DelayTokenParameters {
        /// Queueing delay above which tokens are made (`Token_Thresh`). `"auto"` is the controller's target, if any, plus the flow's
        /// unloaded round trip: the delay of a queue of one bandwidth-delay product.
        pub token_threshold: Option<Span> = None, "token-threshold", "decision: as Snyder §4.2.1 for Swift";
        /// Queueing delay that makes one token (`AI_DIV`).
        pub ai_div: Span = Span::from_ns(30), "ai-div", "Snyder Table 4.1, for Swift";
        with {
            /// Settings that do not depend on the measure.
            pub increase: VariableIncreaseParameters,
        }
    }
}

impl DelayTokenParameters {
    /// For a controller that aims at a queueing delay of `target`. Congestion is in picoseconds.
    pub fn build(&self, target: Span, network: &NetworkFacts) -> Option<VariableIncrease> {
        let threshold = self
            .token_threshold
            .unwrap_or_else(|| target + network.path.rtt);
        let ps = |span: Span| span.as_ps() as f64;
        VariableIncrease::new(&self.increase, ps(threshold), ps(self.ai_div))
    }
}

/// Variable additive increase of one flow: bank, dampener and the present factor of its additive increase.
#[derive(Debug, Clone)]
pub struct VariableIncrease {
    bank: f64,
    dampener: f64,
    /// The most congestion in this round trip.
    congestion: f64,
    /// True if some acknowledgement in this round trip said that the path is congested.
    congested: bool,
    /// Factor of the additive increase that follows from bank and dampener.
    factor: f64,
    /// `Token_Thresh` and `AI_DIV`, in units of congestion.
    threshold: f64,
    token: f64,
    ai_cap: f64,
    bank_cap: f64,
    dampener_constant: f64,
    decay_needs_empty_bank: bool,
    round_trip: RoundTrip,
}

impl VariableIncrease {
    /// Increase of a new flow, if the parameters ask for it. Congestion above `threshold` (`Token_Thresh`) pays a token for each `token`
    /// (`AI_DIV`) of it; both are in the units of [`observe`](Self::observe).
    pub fn new(
        parameters: &VariableIncreaseParameters,
        threshold: f64,
        token: f64,
    ) -> Option<Self> {
        parameters.variable_increase.then(|| Self {
            bank: 0.0,
            dampener: 0.0,
            congestion: 0.0,
            congested: false,
            factor: 1.0,
            // Neither may be zero: both are divisors.
            threshold: threshold.max(1e-6),
            token: token.max(1e-6),
            ai_cap: parameters.ai_cap,
            bank_cap: parameters.bank_cap,
            dampener_constant: parameters.dampener_constant.max(1e-6),
            decay_needs_empty_bank: parameters.decay_needs_empty_bank,
            round_trip: RoundTrip::default(),
        })
    }

    /// The factor of the additive increase, 1 or more (Snyder §4.1.1, Algorithm 2).
    #[inline]
    pub fn factor(&self) -> f64 {
        self.factor
    }

    /// Tokens in the bank.
    pub fn bank(&self) -> f64 {
        self.bank
    }

    /// The dampener.
    pub fn dampener(&self) -> f64 {
        self.dampener
    }

    /// An acknowledgement tells of so much congestion; `congested` if the controller would slow down for it.
    #[inline]
    pub fn observe(&mut self, congestion: f64, congested: bool) {
        self.congestion = self.congestion.max(congestion);
        self.congested |= congested;
    }

    /// The increase has been applied for good (Algorithm 2 lines 3 and 4).
    pub fn spend(&mut self) {
        self.bank = (self.bank - self.bank.min(self.ai_cap)).max(0.0);
        self.update_factor();
    }

    /// Ends a round trip if with this acknowledgement one is over. The last thing to do with an acknowledgement.
    #[inline]
    pub fn on_ack(&mut self, sample: &AckSample<'_>) {
        if self.round_trip.is_over(sample) {
            self.round_trip.restart(sample);
            self.end_round_trip();
        }
    }

    /// Tokens for the congestion of a round trip that is over (Algorithm 1).
    pub fn end_round_trip(&mut self) {
        let congestion = self.congestion;
        let may_decay = self.bank == 0.0 || !self.decay_needs_empty_bank;
        if congestion > self.threshold {
            self.bank = (self.bank + congestion / self.token).min(self.bank_cap);
            self.dampener += congestion / self.threshold;
        } else if self.bank == 0.0 && !self.congested {
            self.dampener = 0.0;
        } else if congestion < self.threshold && may_decay {
            self.dampener = (self.dampener - 1.0).max(0.0);
        }
        self.congestion = 0.0;
        self.congested = false;
        self.update_factor();
    }

    fn update_factor(&mut self) {
        let divisor = self.dampener / self.dampener_constant + 1.0;
        self.factor = (self.bank.min(self.ai_cap) / divisor).max(1.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As in HPCC: bytes of queue.
    fn for_queues(change: impl FnOnce(&mut VariableIncreaseParameters)) -> VariableIncrease {
        let mut parameters = VariableIncreaseParameters {
            variable_increase: true,
            ..Default::default()
        };
        change(&mut parameters);
        VariableIncrease::new(&parameters, 50_000.0, 1000.0).unwrap()
    }

    fn round_trip(increase: &mut VariableIncrease, queue: f64, congested: bool) {
        increase.observe(queue, congested);
        increase.observe(queue / 2.0, false);
        increase.end_round_trip();
    }

    #[test]
    fn it_is_there_only_if_asked_for() {
        assert!(VariableIncrease::new(&Default::default(), 1.0, 1.0).is_none());
        assert_eq!(for_queues(|_| {}).factor(), 1.0);
    }

    #[test]
    fn half_a_megabyte_of_queue_pays_five_hundred_tokens() {
        let mut increase = for_queues(|_| {});
        round_trip(&mut increase, 500_000.0, true);
        assert_eq!((increase.bank(), increase.dampener()), (500.0, 10.0));
        // 100 / (10 / 8 + 1)
        assert!((increase.factor() - 44.444).abs() < 1e-3);
        for left in [400.0, 300.0, 200.0, 100.0] {
            increase.spend();
            assert_eq!(increase.bank(), left);
            assert!((increase.factor() - 44.444).abs() < 1e-3, "the cap rules");
        }
        increase.spend();
        assert_eq!((increase.bank(), increase.factor()), (0.0, 1.0));
        increase.spend();
        assert_eq!((increase.bank(), increase.factor()), (0.0, 1.0));
    }

    #[test]
    fn the_bank_has_a_cap_and_the_dampener_has_none() {
        let mut increase = for_queues(|_| {});
        for _ in 0..3 {
            round_trip(&mut increase, 500_000.0, true);
        }
        assert_eq!((increase.bank(), increase.dampener()), (1000.0, 30.0));
        for _ in 0..30 {
            round_trip(&mut increase, 500_000.0, true);
        }
        // 100 / (330 / 8 + 1) is more than one token, 100 / (930 / 8 + 1) less.
        assert!((increase.factor() - 100.0 / 42.25).abs() < 1e-9);
        for _ in 0..60 {
            round_trip(&mut increase, 500_000.0, true);
        }
        assert_eq!(increase.factor(), 1.0);
    }

    #[test]
    fn the_threshold_itself_pays_nothing_and_changes_nothing() {
        let mut increase = for_queues(|_| {});
        round_trip(&mut increase, 100_000.0, true);
        let before = (increase.bank(), increase.dampener());
        round_trip(&mut increase, 50_000.0, true);
        assert_eq!((increase.bank(), increase.dampener()), before);
    }

    #[test]
    fn the_dampener_resets_only_with_an_empty_bank_after_a_round_trip_without_congestion() {
        let mut increase = for_queues(|_| {});
        round_trip(&mut increase, 200_000.0, true);
        assert_eq!((increase.bank(), increase.dampener()), (200.0, 4.0));
        round_trip(&mut increase, 0.0, false);
        assert_eq!(increase.dampener(), 3.0, "tokens left: it only decays");
        increase.spend();
        increase.spend();
        round_trip(&mut increase, 10_000.0, true);
        assert_eq!(increase.dampener(), 2.0, "congested: it only decays");
        round_trip(&mut increase, 10_000.0, false);
        assert_eq!(increase.dampener(), 0.0);
    }

    #[test]
    fn in_the_other_reading_the_dampener_stays_while_there_are_tokens() {
        let mut increase = for_queues(|p| p.decay_needs_empty_bank = true);
        round_trip(&mut increase, 200_000.0, true);
        round_trip(&mut increase, 0.0, false);
        assert_eq!(increase.dampener(), 4.0);
        increase.spend();
        increase.spend();
        round_trip(&mut increase, 10_000.0, true);
        assert_eq!(increase.dampener(), 3.0);
    }

    #[test]
    fn silly_settings_do_no_harm() {
        let parameters = VariableIncreaseParameters {
            variable_increase: true,
            dampener_constant: 0.0,
            ..Default::default()
        };
        let mut increase = VariableIncrease::new(&parameters, 0.0, 0.0).unwrap();
        for congestion in [0.0, 1e12, 0.0] {
            round_trip(&mut increase, congestion, true);
            assert!(increase.factor() >= 1.0 && increase.factor().is_finite());
        }
    }
}
