//! Harm of an attack to its victims: a separate verdict, because an attacker can harm others without a gain.
//!
//! Each seed is judged separately, from its runs without and with the attack, which have the same messages. A seed in which the victims
//! do better is a seed without harm: it does not compensate for other seeds.

use crate::attack_sides::{AttackPair, AttackSide, AttackSides};
use crate::seed_spread::SeedSpread;
use serde::Serialize;

/// Factor of lost goodput or of additional slowdown of the victims from which on an attack is called harmful.
///
/// It equals [`VULNERABLE`](crate::isolation::VULNERABLE), the limit of the attackers' gain.
pub const HARMFUL: f64 = 1.2;

/// Verdict on the effect of an attack on its victims.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Harm {
    /// Victims are harmed with every seed.
    Harmful,
    /// Victims are harmed with some seeds, or nothing was measured.
    Unsure,
    /// Victims are harmed with no seed.
    Unharmed,
}

impl Harm {
    /// The verdict over seeds: harmed, unharmed, or unknown for each.
    fn from_seeds(seeds: &[Option<bool>]) -> Self {
        let all = |harmed| !seeds.is_empty() && seeds.iter().all(|seed| *seed == Some(harmed));
        match (all(true), all(false)) {
            (true, _) => Self::Harmful,
            (_, true) => Self::Unharmed,
            _ => Self::Unsure,
        }
    }

    /// The verdict, for people.
    pub(crate) fn text(self) -> &'static str {
        match self {
            Self::Harmful => "HARMFUL",
            Self::Unsure => "unsure",
            Self::Unharmed => "unharmed",
        }
    }
}

/// Figures of the victims with the attack, divided by the figures without it, for one seed.
#[derive(Debug, Clone, Copy, PartialEq)]
struct SeedRatios {
    goodput: Option<f64>,
    p99_slowdown: Option<f64>,
    p999_slowdown: Option<f64>,
    /// Some messages complete only without the attack: percentiles with the attack then cover only the messages that completed.
    truncated: bool,
}

impl SeedRatios {
    fn from_pair(pair: &AttackPair) -> Self {
        let (before, after) = (&pair.before.victims, &pair.after.victims);
        let ratio = |of: &dyn Fn(&AttackSide) -> Option<f64>| {
            let ratio = of(after)? / of(before)?;
            ratio.is_finite().then_some(ratio)
        };
        Self {
            goodput: ratio(&mean_goodput),
            p99_slowdown: ratio(&|party| Some(party.slowdown?.p99)),
            p999_slowdown: ratio(&|party| Some(party.slowdown?.p999)),
            truncated: after.completed < before.completed,
        }
    }

    /// Harm to the victims; `None` if unknown.
    fn is_harmed(&self) -> Option<bool> {
        let goodput = self.goodput.map(|ratio| ratio * HARMFUL <= 1.0);
        let slowdowns = [self.p99_slowdown, self.p999_slowdown];
        let slowdowns = slowdowns.map(|ratio| ratio.map(|ratio| ratio >= HARMFUL));
        let mut known = goodput.into_iter().chain(slowdowns.into_iter().flatten());
        match known.clone().next() {
            Some(_) if known.any(|harmed| harmed) => Some(true),
            Some(_) if !self.truncated => Some(false),
            _ => None,
        }
    }
}

/// Goodput of the mean user of a party.
pub(crate) fn mean_goodput(party: &AttackSide) -> Option<f64> {
    party.goodput_bps.map(|all| all.mean)
}

/// Goodput of the mean user of both parties.
pub(crate) fn mean_goodput_of_all(parties: &AttackSides) -> Option<f64> {
    let both = [&parties.attackers, &parties.victims];
    let known = both.iter().filter_map(|party| {
        let mean = mean_goodput(party)?;
        Some((mean * party.users as f64, party.users))
    });
    let (sum, users) = known.fold((0.0, 0), |(sum, all), (own, users)| {
        (sum + own, all + users)
    });
    (users > 0).then(|| sum / users as f64)
}

/// Harm to the victims over all seeds, with the figures behind it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct HarmOverSeeds {
    pub(crate) goodput: Option<SeedSpread>,
    pub(crate) p99_slowdown: Option<SeedSpread>,
    pub(crate) p999_slowdown: Option<SeedSpread>,
    pub(crate) seeds: usize,
    pub(crate) verdict: Harm,
}

impl HarmOverSeeds {
    pub(crate) fn from_pairs(pairs: &[AttackPair]) -> Self {
        let ratios: Vec<SeedRatios> = pairs.iter().map(SeedRatios::from_pair).collect();
        let seeds: Vec<Option<bool>> = ratios.iter().map(SeedRatios::is_harmed).collect();
        let spread =
            |of: fn(&SeedRatios) -> Option<f64>| SeedSpread::from_values(ratios.iter().map(of));
        Self {
            goodput: spread(|seed| seed.goodput),
            p99_slowdown: spread(|seed| seed.p99_slowdown),
            p999_slowdown: spread(|seed| seed.p999_slowdown),
            seeds: seeds.iter().filter(|seed| **seed == Some(true)).count(),
            verdict: Harm::from_seeds(&seeds),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::FlowRow;
    use crate::sample::flow;
    use clearway_units::{Span, Time};

    /// Attacker 0 sends 1 MB within 100 us; victim 1 sends a message for each duration in microseconds, 0 if the message does not complete.
    fn parties(victim: &[u64]) -> AttackSides {
        let row = |number: u32, src: u32, us: u64| FlowRow {
            src,
            bytes: 1_000_000,
            start: Some(Time::ZERO),
            finish: (us > 0).then(|| Time::ZERO + Span::from_us(us)),
            ideal_fct: Span::from_us(50),
            ..flow(number, None)
        };
        let victim = (1..).zip(victim).map(|(number, us)| row(number, 1, *us));
        let rows: Vec<FlowRow> = std::iter::once(row(0, 0, 100)).chain(victim).collect();
        AttackSides::among(&rows, &[], |user| user.host == 0)
    }

    fn pair(before: &[u64], after: &[u64]) -> AttackPair {
        AttackPair {
            before: parties(before),
            after: parties(after),
        }
    }

    fn verdict(pairs: &[AttackPair]) -> Harm {
        HarmOverSeeds::from_pairs(pairs).verdict
    }

    #[test]
    fn every_seed_counts_in_both_directions() {
        let (worse, better, same) = (
            pair(&[100], &[200]),
            pair(&[100], &[20]),
            pair(&[100], &[100]),
        );
        assert_eq!(verdict(&[worse.clone(), worse.clone()]), Harm::Harmful);
        // Five times the speed with one seed does not compensate for half the speed with another.
        let mixed = HarmOverSeeds::from_pairs(&[worse, better.clone()]);
        assert_eq!((mixed.verdict, mixed.seeds), (Harm::Unsure, 1));
        assert!(mixed.goodput.unwrap().median > 2.0);
        assert_eq!(verdict(&[better, same]), Harm::Unharmed);
        assert_eq!(verdict(&[]), Harm::Unsure);
    }

    #[test]
    fn seeds_are_paired_with_themselves() {
        // The victims take twice as long with each seed, although the victims of the fast seed are still faster than the slow seed without
        // the attack.
        let pairs = [pair(&[100], &[200]), pair(&[400], &[800])];
        let harm = HarmOverSeeds::from_pairs(&pairs);
        assert_eq!(harm.verdict, Harm::Harmful);
        let goodput = harm.goodput.unwrap();
        assert_eq!((goodput.least, goodput.greatest), (0.5, 0.5));
    }

    #[test]
    fn the_limits_are_harm() {
        assert_eq!(verdict(&[pair(&[100], &[120])]), Harm::Harmful);
        assert_eq!(verdict(&[pair(&[100], &[119])]), Harm::Unharmed);
    }

    #[test]
    fn a_tail_is_harm_by_itself() {
        // Of a thousand messages two take twenty times as long, which costs 4 % of the goodput and raises the 99.9th percentile.
        let before = vec![100; 1000];
        let mut after = before.clone();
        after[..2].fill(2000);
        let harm = HarmOverSeeds::from_pairs(&[pair(&before, &after)]);
        assert!(harm.goodput.unwrap().median > 0.95);
        assert_eq!(harm.p99_slowdown.unwrap().median, 1.0);
        assert_eq!(harm.p999_slowdown.unwrap().median, 20.0);
        assert_eq!(harm.verdict, Harm::Harmful);
    }

    #[test]
    fn what_does_not_complete_is_not_called_unharmed() {
        let lost = pair(&[100, 100], &[100, 0]);
        assert_eq!(verdict(&[lost]), Harm::Unsure);
        // No message completes: a goodput of zero.
        let starved = HarmOverSeeds::from_pairs(&[pair(&[100], &[0])]);
        assert_eq!(starved.verdict, Harm::Harmful);
        assert_eq!(starved.goodput.unwrap().median, 0.0);
        // Nothing completes without the attack either.
        assert_eq!(verdict(&[pair(&[0], &[0])]), Harm::Unsure);
    }
}
