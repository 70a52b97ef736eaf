//! Tokens of injection rate limiting (IRL, §6.1.3): two leaky buckets for each GPU, for requests and for responses.
//!
//! In each cycle a bucket gets a token with the probability watermark / `WM_MAX`. An operation may be sent while the bucket of its data's
//! class has at least one token: requests for a write, responses for a read. It then costs the flits of its request in the one and of its
//! response in the other, so that buckets go below zero (figure 6.1: a packet of 5 flits that is sent with 1 token leaves -4). With
//! `tokens(c)` at the beginning of cycle `c`,
//! ```text
//! tokens(c + 1) = min(cap, tokens(c) - cost(c) + new(c))
//! ```
//! where `new(c)` depends on the watermark at the end of cycle `c`.
//!
//! # Lazy evaluation
//! A bucket is evaluated up to the cycle of the last call. `new` is a pure function of the watermark and the cycle, so that the outcome
//! equals an evaluation in each cycle. Evenly spaced tokens, and tokens of a full watermark, cost nothing for cycles without a call. Random
//! tokens are drawn once for each cycle in which the bucket is not full, and once again for those cycles that a
//! [question](TokenBuckets::consent) looked ahead when the watermark changes before they come.
//!
//! # Decisions
//! * Both buckets need not have a token (`token-need = "both"`): reads and writes would then always be held up together, and there would
//!   be neither skipped nor starved channels, for which §6.2.5 has its arbiter.
//! * A bucket holds one token at most: both worked examples (figures 6.1 and 6.4) begin with one and have no more. It begins full.
//! * Tokens and watermarks are counted in units of 2^-20, costs and watermarks rounded to the nearest unit, the watermark to at least one.
//!   Sums are exact in any order.
//! * The number that is drawn in cycle `c` is the `c`-th of a SplitMix64 of GPU and class, scaled to `0..WM_MAX` in those units.

use super::{InjectionDecision, InjectionFacts, InjectionGauges, InvalidSetting};
use crate::{Cycle, FlitSizes, OperationKind, PacketClass};
use clearway_units::{Purpose, mix64};
use std::collections::VecDeque;

/// Units of a token, and of a watermark of 1.
const UNIT: i64 = 1 << 20;

/// Cycles for which random tokens are drawn ahead at most: at the paper's least watermark, 41 tokens.
const LOOK_AHEAD: Cycle = 1024;

/// The most cycles that a token takes on average.
const CYCLES_PER_TOKEN: f64 = 1e6;

const CLASSES: [PacketClass; 2] = [PacketClass::Request, PacketClass::Response];

clearway_units::choices! {
    /// Spacing of tokens.
    pub enum TokenArrival {
        /// In each cycle a random number below `wm-max` is drawn: below the watermark it brings a token.
        Random = "random",
        /// The watermark is added up in each cycle: where the sum reaches `wm-max`, that much is taken off, and brings a token.
        Even = "even",
    }
}

clearway_units::choices! {
    /// Classes of which there has to be a token before an operation is sent.
    pub enum TokenNeed {
        /// The class of the operation's data: requests for a write, responses for a read.
        Data = "data",
        /// Both.
        Both = "both",
    }
}

clearway_units::parameters! {
    /// Tokens and watermarks.
    pub struct TokenParameters {
        /// Watermark at which every cycle brings a token (`WM_MAX`), 1 to 1e9.
        pub watermark_max: f64 = 2468.0, "wm-max", "Dissertation §6.1.4";
        /// Smallest watermark (`WM_MIN`), at least a millionth of `wm-max`.
        pub watermark_min: f64 = 100.0, "wm-min", "Dissertation §6.1.4";
        /// Watermark at the start; `"auto"` is `wm-max`.
        pub initial: Option<f64> = None, "wm-initial", "decision: a GPU begins at line rate";
        /// Capacity of a token bucket, at least 1.
        pub cap: f64 = 1.0, "token-cap", "decision: as in the dissertation, figures 6.1 and 6.4";
        /// Token buckets that must hold a token before an operation is sent. The operation takes tokens from both.
        pub need: TokenNeed = TokenNeed::Data, "token-need", "Dissertation §6.2.5: the arbiter skips a channel without tokens, and serves the other; §6.1.3: request tokens throttle writes, response tokens reads";
        /// Spacing of tokens.
        pub arrival: TokenArrival = TokenArrival::Random, "tokens", "Dissertation §6.1.3";
    }
}

impl TokenParameters {
    /// Checks the limits of these settings.
    ///
    /// # Errors
    /// If a bucket would never have a token, or the watermarks are not in order.
    pub fn check(&self) -> Result<(), InvalidSetting> {
        let max = self.watermark_max;
        let range = (1.0..=1e9).contains(&max);
        InvalidSetting::unless(range, "wm-max", "has to be from 1 to 1e9")?;
        let often = self.watermark_min * CYCLES_PER_TOKEN >= max;
        let reason = "has to be at least a millionth of `wm-max`";
        InvalidSetting::unless(often, "wm-min", reason)?;
        let order = self.watermark_min <= max;
        InvalidSetting::unless(order, "wm-min", "must not exceed `wm-max`")?;
        let initial = self.initial.unwrap_or(max);
        let within = (self.watermark_min..=max).contains(&initial);
        InvalidSetting::unless(within, "wm-initial", "has to be from `wm-min` to `wm-max`")?;
        let cap = (1.0..=1e6).contains(&self.cap);
        InvalidSetting::unless(cap, "token-cap", "has to be from 1 to 1e6")
    }
}

/// A number of tokens to be paid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Tokens(i64);

impl Tokens {
    /// A token for each flit.
    pub fn of_flits(flits: u64) -> Self {
        Self(flits as i64 * UNIT)
    }
    /// `scale` tokens for each flit, to the nearest 2^-20 and not below zero.
    pub fn scaled(flits: u64, scale: f64) -> Self {
        Self((flits as f64 * scale * UNIT as f64).round().max(0.0) as i64)
    }
    /// The number, exactly.
    pub fn as_f64(self) -> f64 {
        self.0 as f64 / UNIT as f64
    }
}

/// The two token buckets of a GPU.
#[derive(Debug, Clone)]
pub struct TokenBuckets {
    sizes: FlitSizes,
    need: TokenNeed,
    least: f64,
    most: f64,
    watermarks: [f64; 2],
    buckets: [Bucket; 2],
}

impl TokenBuckets {
    /// Full buckets at cycle 0, with settings that [`TokenParameters::check`] accepts.
    pub fn new(parameters: &TokenParameters, facts: &InjectionFacts<'_>) -> Self {
        let most = parameters.watermark_max;
        let watermark = parameters.initial.unwrap_or(most);
        let bucket = |class: PacketClass| {
            let source = match parameters.arrival {
                TokenArrival::Random => Source::Random(Draws::new(facts, class)),
                TokenArrival::Even => Source::Even { sum: 0 },
            };
            let cap = (parameters.cap * UNIT as f64).round() as i64;
            let full = watermark_units(most, u64::MAX);
            Bucket {
                cap,
                tokens: cap,
                now: 0,
                full,
                watermark: watermark_units(watermark, full),
                source,
            }
        };
        Self {
            sizes: facts.sizes,
            need: parameters.need,
            least: parameters.watermark_min,
            most,
            watermarks: [watermark; 2],
            buckets: CLASSES.map(bucket),
        }
    }

    /// Says whether there is a token for an operation at the beginning of cycle `now`, and if not, when there will be at the earliest.
    pub fn consent(&mut self, now: Cycle, kind: OperationKind) -> InjectionDecision {
        let ready = self.buckets.each_mut().map(|bucket| {
            bucket.advance(now);
            bucket.ready()
        });
        let ready = match (self.need, kind) {
            (TokenNeed::Both, _) => ready[0].max(ready[1]),
            (TokenNeed::Data, OperationKind::Write) => ready[PacketClass::Request as usize],
            (TokenNeed::Data, OperationKind::Read) => ready[PacketClass::Response as usize],
        };
        if ready <= now {
            InjectionDecision::Now
        } else {
            InjectionDecision::NotBefore(ready)
        }
    }

    /// Takes tokens of one class in cycle `now`.
    pub fn spend(&mut self, now: Cycle, class: PacketClass, cost: Tokens) {
        let bucket = &mut self.buckets[class as usize];
        bucket.advance(now);
        bucket.tokens -= cost.0;
    }

    /// Takes the tokens of an operation of the GPU itself: one for each flit of its request and of its response.
    pub fn spend_operation(&mut self, now: Cycle, kind: OperationKind) {
        for class in CLASSES {
            let flits = self.sizes.flits(kind, class);
            self.spend(now, class, Tokens::of_flits(flits.into()));
        }
    }

    /// The watermark of a class.
    pub fn watermark(&self, class: PacketClass) -> f64 {
        self.watermarks[class as usize]
    }

    /// Changes the watermark of a class, within `WM_MIN` and `WM_MAX`; cycle `now` is the first whose token it decides.
    pub fn set_watermark(&mut self, now: Cycle, class: PacketClass, watermark: f64) {
        let watermark = watermark.max(self.least).min(self.most);
        self.watermarks[class as usize] = watermark;
        self.buckets[class as usize].set_watermark(now, watermark);
    }

    /// Tokens and watermarks at the beginning of cycle `now`, after the costs of this cycle, and the flits under way.
    pub fn gauges(&mut self, now: Cycle, outstanding: u64) -> InjectionGauges {
        let tokens = self.buckets.each_mut().map(|bucket| {
            bucket.advance(now);
            Tokens(bucket.tokens).as_f64()
        });
        InjectionGauges {
            tokens: Some(tokens),
            watermarks: Some(self.watermarks),
            outstanding,
        }
    }
}

/// A watermark in units.
fn watermark_units(watermark: f64, most: u64) -> u64 {
    ((watermark * UNIT as f64).round() as u64).clamp(1, most)
}

/// Tokens of one class.
#[derive(Debug, Clone)]
struct Bucket {
    /// Most tokens, and tokens at the beginning of cycle `now`, in units.
    cap: i64,
    tokens: i64,
    now: Cycle,
    /// `WM_MAX` and the watermark, in units.
    full: u64,
    watermark: u64,
    source: Source,
}

#[derive(Debug, Clone)]
enum Source {
    /// The sum of watermarks since the last token, in units.
    Even {
        sum: u64,
    },
    Random(Draws),
}

impl Bucket {
    /// Adds the tokens of the cycles before `now`.
    fn advance(&mut self, now: Cycle) {
        let Some(cycles) = now.checked_sub(self.now).filter(|&cycles| cycles > 0) else {
            return;
        };
        let room = (self.cap - self.tokens).max(0);
        let new = match &mut self.source {
            Source::Even { sum } => {
                let total = u128::from(*sum) + u128::from(cycles) * u128::from(self.watermark);
                *sum = (total % u128::from(self.full)) as u64;
                (total / u128::from(self.full)) as u64
            }
            Source::Random(_) if self.watermark == self.full => cycles,
            Source::Random(draws) => {
                let useful = (room as u64).div_ceil(UNIT as u64);
                draws.take(now, useful, self.watermark, self.full)
            }
        };
        let added = i64::try_from(new).unwrap_or(i64::MAX).saturating_mul(UNIT);
        self.tokens += added.min(room);
        self.now = now;
    }

    /// The earliest cycle at whose beginning there is a token, or a lower bound of it beyond the look-ahead.
    fn ready(&mut self) -> Cycle {
        if self.tokens >= UNIT {
            return self.now;
        }
        let missing = ((UNIT - self.tokens) as u64).div_ceil(UNIT as u64);
        match &mut self.source {
            Source::Even { sum } => {
                let distance = u128::from(missing) * u128::from(self.full) - u128::from(*sum);
                let cycles = distance.div_ceil(u128::from(self.watermark));
                self.now
                    .saturating_add(Cycle::try_from(cycles).unwrap_or(Cycle::MAX))
            }
            Source::Random(_) if self.watermark == self.full => self.now + missing,
            Source::Random(draws) => draws.ready(self.now, missing, self.watermark, self.full),
        }
    }

    fn set_watermark(&mut self, now: Cycle, watermark: f64) {
        self.advance(now);
        let watermark = watermark_units(watermark, self.full);
        if watermark == self.watermark {
            return;
        }
        self.watermark = watermark;
        if let Source::Random(draws) = &mut self.source {
            draws.restart(self.now);
        }
    }
}

/// Random tokens: a number for each cycle, and the cycles whose numbers have been looked at.
#[derive(Debug, Clone)]
struct Draws {
    key: u64,
    /// End of the cycles that have been drawn, and those among them, not yet taken, that bring a token.
    drawn: Cycle,
    ahead: VecDeque<Cycle>,
}

impl Draws {
    fn new(facts: &InjectionFacts<'_>, class: PacketClass) -> Self {
        let stream = mix64(mix64(facts.seed) ^ Purpose::Injection as u64);
        let entity = 2 * u64::from(facts.gpu.0) + class as u64;
        Self {
            key: mix64(stream ^ entity),
            drawn: 0,
            ahead: VecDeque::new(),
        }
    }

    /// True if `cycle` brings a token: the number of the cycle, scaled to `0..full`, is below the watermark.
    fn brings_token(&self, cycle: Cycle, watermark: u64, full: u64) -> bool {
        let counter = cycle.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let number = u128::from(mix64(self.key.wrapping_add(counter)));
        ((number * u128::from(full)) >> 64) < u128::from(watermark)
    }

    /// Takes the tokens of the cycles before `now`. The result is exact below `useful`; else it is any number of at least `useful`.
    fn take(&mut self, now: Cycle, useful: u64, watermark: u64, full: u64) -> u64 {
        let mut taken = 0;
        while self.ahead.front().is_some_and(|&cycle| cycle < now) {
            self.ahead.pop_front();
            taken += 1;
        }
        while self.drawn < now && taken < useful {
            taken += u64::from(self.brings_token(self.drawn, watermark, full));
            self.drawn += 1;
        }
        self.drawn = self.drawn.max(now);
        taken
    }

    /// Cycle after the one that brings the `missing`-th token, or a lower bound of it beyond the look-ahead. As tokens are taken, fewer are
    /// missing: there are never more ahead than that.
    fn ready(&mut self, now: Cycle, missing: u64, watermark: u64, full: u64) -> Cycle {
        self.drawn = self.drawn.max(now);
        while (self.ahead.len() as u64) < missing && self.drawn < now + LOOK_AHEAD {
            if self.brings_token(self.drawn, watermark, full) {
                self.ahead.push_back(self.drawn);
            }
            self.drawn += 1;
        }
        // Drawn is up to the cycle of the last of them; those that are still not found come one in a cycle at best.
        self.drawn + (missing - self.ahead.len() as u64)
    }

    /// Drops the tokens that were drawn ahead under another watermark.
    fn restart(&mut self, now: Cycle) {
        self.ahead.clear();
        self.drawn = now;
    }
}

#[cfg(test)]
mod tests;
