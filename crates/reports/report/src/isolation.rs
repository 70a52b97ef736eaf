//! `isolation.json`: gains of attackers and losses of victims on a network.
//!
//! Within schema 1 fields are only ever added, at any level. A reader must skip unknown fields. Figures are medians over seeds, with the
//! minimum and maximum over seeds. Both runs of a pair, without and with an attack, have the same seed and the same messages.
//!
//! | field | type, unit | meaning |
//! |---|---|---|
//! | `schema` | 1 | version of this table |
//! | `version`, `revision`, `command` | text | program, source revision and command |
//! | `scenario` | text | name of the scenario |
//! | `attackers` | text | hosts that attack, such as `0-3,8`, or `tenant:NAME`, with `:HOSTS` if only some hosts of the tenant attack |
//! | `seeds` | integers | seeds of the runs |
//! | `complete` | boolean | false if the study was interrupted: then cells or seeds are missing |
//! | `cells` | list | one cell for each transport, enforcement scope and attack |
//! | `….transport`, `….scope`, `….attack` | text | names; several transports of a run, and their scopes, are joined by `+` |
//! | `….seeds` | integer | number of seeds |
//! | `….gain` | spread | goodput of the mean attacker with the attack, over the goodput without it |
//! | `….loss` | spread | goodput of the mean victim with the attack, over the goodput without it |
//! | `….p99_slowdown_ratio`, `….p999_slowdown_ratio` | spread | victims' slowdown with the attack, over the slowdown without it |
//! | `….user_goodput_ratio` | spread | goodput of the mean user, attacker or victim, with the attack, over the goodput without it |
//! | `….goodput_before_bps`, `….goodput_bps` | spread | goodput of the mean attacker without and with the attack |
//! | `….attacker_slowdown_before` | spread | mean slowdown of the attackers' messages without the attack: the cost of contention |
//! | `….victim_goodput_before_bps`, `….victim_goodput_bps` | spread | goodput of the mean victim without and with the attack |
//! | `….p99_slowdown_before`, `….p99_slowdown` | spread | 99th percentile of the slowdown of the victims' messages |
//! | `….p999_slowdown_before`, `….p999_slowdown` | spread | 99.9th percentile of the slowdown of the victims' messages |
//! | `….user_fairness_before`, `….user_fairness` | spread | Jain's index over the goodputs of all users, attackers and victims |
//! | `….incomplete` | integer | messages that did not complete in the runs with the attack |
//! | `….verdict` | text | `vulnerable` if `gain` is at least 1.2 with every seed, `secure` if `gain` is less with every seed, otherwise `unsure`; `not-tested` instead of `secure` if `attacker_slowdown_before` is less than 1.2 with every seed and `harm` is `unharmed` |
//! | `….harm` | text | `harmful` if the victims are harmed with every seed, `unharmed` if with no seed, otherwise `unsure` |
//! | `….harmed_seeds` | integer | number of seeds with harm: `loss` is at most 1/1.2, or one of the ratios of slowdowns is at least 1.2 |
//!
//! A spread is an object with `median`, `least` and `greatest`. [`AttackSide`] defines the goodput of a user.

pub use crate::attack_sides::AttackPair;
pub use crate::harm::{HARMFUL, Harm};
pub use crate::seed_spread::SeedSpread;

use crate::attack_sides::{AttackSide, AttackSides};
use crate::harm::{HarmOverSeeds, mean_goodput, mean_goodput_of_all};
use crate::quantity::{factor, prefixed};
use serde::Serialize;

/// The name of the document in the folder of a study.
pub const FILE_NAME: &str = "isolation.json";

/// Gain of attackers from which on a transport is called vulnerable: Table 3.2 of the dissertation gives no number.
pub const VULNERABLE: f64 = 1.2;

/// Mean slowdown of the attackers' messages without the attack from which on an attack can gain.
///
/// An attack regains at most the cost of contention or of a slow start. If that is less than [`VULNERABLE`], no attack could reach this
/// gain.
pub const CONTENDED: f64 = VULNERABLE;

/// Verdict on a transport under an attack.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum IsolationVerdict {
    /// Attackers gain with every seed.
    Vulnerable,
    /// Attackers gain with no seed.
    Secure,
    /// Attackers gain with some seeds, or nothing was measured.
    Unsure,
    /// Attackers gain with no seed, but met contention without the attack with no seed either, and no victim is harmed.
    NotTested,
}

impl IsolationVerdict {
    /// The verdict on a gain, from the mean slowdown of the attackers' messages without the attack and the harm to victims.
    fn new(gain: Option<SeedSpread>, slowdown_before: Option<SeedSpread>, harm: Harm) -> Self {
        let contended = slowdown_before.is_none_or(|slowdown| slowdown.greatest >= CONTENDED);
        match gain {
            Some(gain) if gain.least >= VULNERABLE => Self::Vulnerable,
            Some(gain) if gain.greatest < VULNERABLE => match contended || harm != Harm::Unharmed {
                true => Self::Secure,
                false => Self::NotTested,
            },
            _ => Self::Unsure,
        }
    }
}

/// A transport under an attack.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct IsolationCell {
    /// Name of the transport.
    pub transport: String,
    /// Enforcement scope: the flows that one controller governs.
    pub scope: String,
    /// Kind of the attack.
    pub attack: String,
    /// Number of seeds.
    pub seeds: usize,
    /// Goodput of attackers with the attack over goodput without.
    pub gain: Option<SeedSpread>,
    /// Goodput of victims with the attack over goodput without.
    pub loss: Option<SeedSpread>,
    /// 99th percentile of the victims' slowdown with the attack over the percentile without.
    pub p99_slowdown_ratio: Option<SeedSpread>,
    /// 99.9th percentile of the victims' slowdown with the attack over the percentile without.
    pub p999_slowdown_ratio: Option<SeedSpread>,
    /// Goodput of all users with the attack over goodput without.
    pub user_goodput_ratio: Option<SeedSpread>,
    /// Goodput of the mean attacker without the attack.
    pub goodput_before_bps: Option<SeedSpread>,
    /// Goodput of the mean attacker with it.
    pub goodput_bps: Option<SeedSpread>,
    /// Mean slowdown of the attackers' messages without the attack.
    pub attacker_slowdown_before: Option<SeedSpread>,
    /// Goodput of the mean victim without the attack.
    pub victim_goodput_before_bps: Option<SeedSpread>,
    /// Goodput of the mean victim with it.
    pub victim_goodput_bps: Option<SeedSpread>,
    /// 99th percentile of the victims' slowdown without the attack.
    pub p99_slowdown_before: Option<SeedSpread>,
    /// 99th percentile of the victims' slowdown with it.
    pub p99_slowdown: Option<SeedSpread>,
    /// 99.9th percentile of the victims' slowdown without the attack.
    pub p999_slowdown_before: Option<SeedSpread>,
    /// 99.9th percentile of the victims' slowdown with it.
    pub p999_slowdown: Option<SeedSpread>,
    /// Jain's index over users without the attack.
    pub user_fairness_before: Option<SeedSpread>,
    /// Jain's index over users with it.
    pub user_fairness: Option<SeedSpread>,
    /// Messages that were not completed with the attack.
    pub incomplete: u64,
    /// Verdict on the transport under the attack.
    pub verdict: IsolationVerdict,
    /// Verdict on the effect of the attack on victims.
    pub harm: Harm,
    /// Seeds with which victims are harmed.
    pub harmed_seeds: usize,
}

/// Study of attacks on a scenario; the [table of the module](self) describes the fields.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct IsolationRecord {
    /// Always 1.
    pub schema: u32,
    /// Version of the program.
    pub version: String,
    /// Revision of the source.
    pub revision: String,
    /// Command that repeats the study.
    pub command: String,
    /// Name of the scenario.
    pub scenario: String,
    /// Hosts or tenant that attacks.
    pub attackers: String,
    /// Seeds of the runs.
    pub seeds: Vec<u64>,
    /// False if the study was interrupted.
    pub complete: bool,
    /// Transports under attacks.
    pub cells: Vec<IsolationCell>,
}

impl IsolationCell {
    /// The cell of runs with several seeds.
    pub fn from_pairs(transport: &str, scope: &str, attack: &str, pairs: &[AttackPair]) -> Self {
        let spread =
            |of: &dyn Fn(&AttackPair) -> Option<f64>| SeedSpread::from_values(pairs.iter().map(of));
        let ratio = |of: fn(&AttackSides) -> Option<f64>| {
            spread(&|pair| Some(of(&pair.after)? / of(&pair.before)?))
        };
        let gain = ratio(|parties| mean_goodput(&parties.attackers));
        let harm = HarmOverSeeds::from_pairs(pairs);
        let attacker_slowdown_before = spread(&|pair| Some(pair.before.attackers.slowdown?.mean));
        let missing = |party: &AttackSide| party.messages - party.completed;
        let incomplete = pairs
            .iter()
            .map(|pair| missing(&pair.after.attackers) + missing(&pair.after.victims));
        Self {
            transport: transport.into(),
            scope: scope.into(),
            attack: attack.into(),
            seeds: pairs.len(),
            gain,
            loss: harm.goodput,
            p99_slowdown_ratio: harm.p99_slowdown,
            p999_slowdown_ratio: harm.p999_slowdown,
            user_goodput_ratio: ratio(mean_goodput_of_all),
            goodput_before_bps: spread(&|pair| mean_goodput(&pair.before.attackers)),
            goodput_bps: spread(&|pair| mean_goodput(&pair.after.attackers)),
            attacker_slowdown_before,
            victim_goodput_before_bps: spread(&|pair| mean_goodput(&pair.before.victims)),
            victim_goodput_bps: spread(&|pair| mean_goodput(&pair.after.victims)),
            p99_slowdown_before: spread(&|pair| Some(pair.before.victims.slowdown?.p99)),
            p99_slowdown: spread(&|pair| Some(pair.after.victims.slowdown?.p99)),
            p999_slowdown_before: spread(&|pair| Some(pair.before.victims.slowdown?.p999)),
            p999_slowdown: spread(&|pair| Some(pair.after.victims.slowdown?.p999)),
            user_fairness_before: spread(&|pair| pair.before.user_fairness),
            user_fairness: spread(&|pair| pair.after.user_fairness),
            incomplete: incomplete.sum(),
            verdict: IsolationVerdict::new(gain, attacker_slowdown_before, harm.verdict),
            harm: harm.verdict,
            harmed_seeds: harm.seeds,
        }
    }

    /// The verdict, for people.
    fn verdict_text(&self) -> String {
        match (self.verdict, self.incomplete) {
            (IsolationVerdict::Vulnerable, _) => "VULNERABLE".to_owned(),
            (_, missing) if missing > 0 => format!("{missing} messages incomplete"),
            (IsolationVerdict::Secure, _) => "secure".into(),
            (IsolationVerdict::Unsure, _) => "unsure".into(),
            (IsolationVerdict::NotTested, _) => "not tested".into(),
        }
    }

    /// Reason for the verdict `not-tested`.
    fn reason(&self) -> &'static str {
        match (self.verdict, self.incomplete) {
            (IsolationVerdict::NotTested, 0) => ": nothing was contended",
            _ => "",
        }
    }

    /// Harm, for people. In brackets: the slowdown by which victims are harmed, if their goodput alone does not show it.
    fn harm_text(&self) -> String {
        let median = |spread: Option<SeedSpread>| spread.map(|spread| spread.median);
        let (p99, p999) = (
            median(self.p99_slowdown_ratio),
            median(self.p999_slowdown_ratio),
        );
        let by_goodput = median(self.loss).is_some_and(|loss| loss * HARMFUL <= 1.0);
        let measure = match (self.harm, by_goodput) {
            (Harm::Unharmed, _) | (_, true) => "",
            _ if p99.is_some_and(|ratio| ratio >= HARMFUL) => " (p99)",
            _ if p999.is_some_and(|ratio| ratio >= HARMFUL) => " (p99.9)",
            _ => "",
        };
        self.harm.text().to_owned() + measure
    }

    /// Jain's index without and with the attack. If the index rises while users or victims get less, that is not an improvement, and the
    /// index is left out.
    fn fairness_text(&self) -> String {
        let index = |spread: Option<SeedSpread>| {
            spread.map_or("-".into(), |index| format!("{:.3}", index.median))
        };
        let falls = |ratio: Option<SeedSpread>| ratio.is_some_and(|ratio| ratio.median < 1.0);
        let (before, after) = (self.user_fairness_before, self.user_fairness);
        let rises = before
            .zip(after)
            .is_some_and(|(before, after)| after.median > before.median);
        let poorer = rises && (falls(self.user_goodput_ratio) || falls(self.loss));
        let after = match poorer {
            true => "poorer".into(),
            false => index(after),
        };
        format!("{} -> {after}", index(before))
    }

    /// The cell as a row of texts, under [`HEADINGS`].
    pub fn texts(&self) -> [String; 11] {
        let bits = |value: f64| prefixed(value) + "bit/s";
        let change = |before: Option<SeedSpread>,
                      after: Option<SeedSpread>,
                      print: &dyn Fn(f64) -> String| {
            let print =
                |spread: Option<SeedSpread>| spread.map_or("-".into(), |it| print(it.median));
            format!("{} -> {}", print(before), print(after))
        };
        [
            self.transport.clone(),
            self.scope.clone(),
            self.attack.clone(),
            ratio_text(self.gain),
            change(self.goodput_before_bps, self.goodput_bps, &bits),
            change(
                self.victim_goodput_before_bps,
                self.victim_goodput_bps,
                &bits,
            ),
            change(self.p99_slowdown_before, self.p99_slowdown, &factor),
            change(self.p999_slowdown_before, self.p999_slowdown, &factor),
            self.fairness_text(),
            self.verdict_text() + self.reason(),
            format!("{} {}", ratio_text(self.loss), self.harm_text()),
        ]
    }

    /// The cell in a matrix: gain and verdict, then the victims' ratio of goodputs and harm.
    fn matrix_text(&self) -> String {
        let median =
            |ratio: Option<SeedSpread>| ratio.map_or("-".into(), |it| format!("{:.2}", it.median));
        format!(
            "{} {}, {} {}",
            median(self.gain),
            self.verdict_text(),
            median(self.loss),
            self.harm_text()
        )
    }
}

/// A ratio with its range over seeds.
fn ratio_text(ratio: Option<SeedSpread>) -> String {
    ratio.map_or("-".into(), |ratio| match ratio.least < ratio.greatest {
        true => format!(
            "{:.2} ({:.2} to {:.2})",
            ratio.median, ratio.least, ratio.greatest
        ),
        false => format!("{:.2}", ratio.median),
    })
}

/// Headings of the table of a study.
pub const HEADINGS: [&str; 11] = [
    "transport",
    "scope",
    "attack",
    "gain",
    "goodput of an attacker",
    "goodput of a victim",
    "p99 slowdown of victims",
    "p99.9 slowdown",
    "fairness of users",
    "verdict",
    "harm",
];

impl IsolationRecord {
    /// Kinds of attacks, in the order of the cells.
    pub fn attacks(&self) -> Vec<&str> {
        let mut attacks: Vec<&str> = Vec::new();
        for cell in &self.cells {
            if !attacks.contains(&cell.attack.as_str()) {
                attacks.push(&cell.attack);
            }
        }
        attacks
    }

    /// Headings and rows of the matrix: a row for each transport and scope, a column for each attack, with both verdicts and their ratios.
    pub fn matrix(&self) -> (Vec<&str>, Vec<Vec<String>>) {
        let attacks = self.attacks();
        let mut rows: Vec<Vec<String>> = Vec::new();
        for cell in &self.cells {
            let subject = [cell.transport.as_str(), cell.scope.as_str()];
            if rows.last().is_none_or(|row| row[..2] != subject) {
                let empty = attacks.iter().map(|_| "-");
                rows.push(subject.into_iter().chain(empty).map(Into::into).collect());
            }
            let column = attacks.iter().position(|attack| *attack == cell.attack);
            if let (Some(row), Some(column)) = (rows.last_mut(), column) {
                row[2 + column] = cell.matrix_text();
            }
        }
        ([vec!["transport", "scope"], attacks].concat(), rows)
    }

    /// The attackers, in words.
    pub fn attackers_text(&self) -> String {
        match self.attackers.strip_prefix("tenant:") {
            None => format!("hosts {}", self.attackers),
            Some(tenant) => match tenant.split_once(':') {
                None => format!("tenant {tenant}"),
                Some((tenant, hosts)) => format!("tenant {tenant} on hosts {hosts}"),
            },
        }
    }

    /// Target of the attack, attackers and number of runs.
    pub fn subtitle(&self) -> String {
        format!(
            "{} attacked by {}, {} seed{}",
            self.scenario,
            self.attackers_text(),
            self.seeds.len(),
            if self.seeds.len() == 1 { "" } else { "s" },
        )
    }

    /// The study as JSON with a final line break: the contents of `isolation.json`.
    pub fn to_json(&self) -> String {
        let json = serde_json::to_string_pretty(self).expect("a study holds text and numbers only");
        json + "\n"
    }
}

/// Meaning of the table.
pub const EXPLANATION: &str = "\
Without the attack -> with it: medians over seeds. Goodput of a user: bytes of its messages over the sum of their completion times.
Gain: goodput of an attacker with the attack over that without; vulnerable from 1.2 on with every seed, secure below it with every seed,
not tested if the mean slowdown of the attackers' messages without the attack is below 1.2 with every seed, so that nothing was contended.
Harm: goodput of a victim with the attack over that without. A seed is harmed if that is at most 1/1.2, or if the p99 or p99.9 slowdown of the
victims is at least 1.2 times as great: harmful with every seed, unharmed with none. In brackets: the slowdown that tells where goodput does not.
Fairness: Jain's index over the goodputs of all users; \"poorer\" for one that rises while users or victims get less in the mean.";

#[cfg(test)]
mod tests;
