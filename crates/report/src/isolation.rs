//! `isolation.json`: who gains by attacks on a network, and who loses.
//!
//! Within schema 1 fields are only ever added, at any level; a reader must skip what it does not know. Figures are medians over seeds, each
//! with the least and the greatest of a seed. Both runs of a pair, without and with an attack, have the same seed and the same messages.
//!
//! | field | type, unit | meaning |
//! |---|---|---|
//! | `schema` | 1 | version of this table |
//! | `version`, `revision`, `command` | text | program, source revision and command |
//! | `scenario` | text | name of the scenario |
//! | `attackers` | text | hosts that attack |
//! | `seeds` | integers | seeds of the runs |
//! | `complete` | boolean | false if it was interrupted: `cells` are then of fewer seeds, or fewer |
//! | `cells` | list | a transport with an enforcement scope under an attack each |
//! | `….transport`, `….scope`, `….attack` | text | these |
//! | `….seeds` | integer | number of seeds |
//! | `….gain` | spread | goodput of the mean attacker with the attack, over that without |
//! | `….loss` | spread | goodput of the mean victim with the attack, over that without |
//! | `….goodput_before_bps`, `….goodput_bps` | spread | goodput of the mean attacker without and with the attack |
//! | `….victim_goodput_before_bps`, `….victim_goodput_bps` | spread | the same of the mean victim |
//! | `….p99_slowdown_before`, `….p99_slowdown` | spread | 99th percentile of the slowdown of the victims' messages |
//! | `….p999_slowdown_before`, `….p999_slowdown` | spread | 99.9th percentile |
//! | `….user_fairness_before`, `….user_fairness` | spread | Jain's index over the goodputs of all users, attackers and victims |
//! | `….incomplete` | integer | messages that were not completed in the runs with the attack |
//! | `….verdict` | text | `vulnerable` if `gain` is at least 1.2 with every seed, `secure` if it is less with every seed, else `unsure` |
//!
//! A spread is an object with `median`, `least` and `greatest`. The goodput of a user is that of [`Party`].

use crate::parties::{Parties, Party};
use crate::quantity::{factor, prefixed};
use crate::table::{Align, Table};
use serde::Serialize;

/// The name of the document in the folder of a study.
pub const FILE_NAME: &str = "isolation.json";

/// Gain of attackers from which on a transport is called vulnerable: Table 3.2 of the dissertation has no number.
pub const VULNERABLE: f64 = 1.2;

/// A figure over seeds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct SeedSpread {
    /// The median; of an even number the mean of the two in the middle.
    pub median: f64,
    /// The least.
    pub least: f64,
    /// The greatest.
    pub greatest: f64,
}

impl SeedSpread {
    /// The spread of finite values; `None` without any.
    fn of(values: impl IntoIterator<Item = Option<f64>>) -> Option<Self> {
        let mut values: Vec<f64> = values.into_iter().flatten().collect();
        values.retain(|value| value.is_finite());
        values.sort_unstable_by(f64::total_cmp);
        let (least, greatest) = (*values.first()?, *values.last()?);
        let middle = values.len() / 2;
        let median = match values.len() % 2 {
            1 => values[middle],
            _ => f64::midpoint(values[middle - 1], values[middle]),
        };
        Some(Self {
            median,
            least,
            greatest,
        })
    }
}

/// Verdict on a transport under an attack.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum IsolationVerdict {
    /// Attackers gain with every seed.
    Vulnerable,
    /// Attackers gain with no seed.
    Secure,
    /// Attackers gain with some seeds, or nothing was measured.
    Unsure,
}

impl IsolationVerdict {
    fn of(gain: Option<SeedSpread>) -> Self {
        match gain {
            Some(gain) if gain.least >= VULNERABLE => Self::Vulnerable,
            Some(gain) if gain.greatest < VULNERABLE => Self::Secure,
            _ => Self::Unsure,
        }
    }
}

/// Runs of one seed, without and with an attack.
#[derive(Debug, Clone, PartialEq)]
pub struct AttackPair {
    /// Without the attack.
    pub before: Parties,
    /// With it.
    pub after: Parties,
}

/// A transport under an attack.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct IsolationCell {
    /// Name of the transport.
    pub transport: String,
    /// Enforcement scope: what one controller governs.
    pub scope: String,
    /// Kind of the attack.
    pub attack: String,
    /// Number of seeds.
    pub seeds: usize,
    /// Goodput of attackers with the attack over that without.
    pub gain: Option<SeedSpread>,
    /// Goodput of victims with the attack over that without.
    pub loss: Option<SeedSpread>,
    /// Goodput of the mean attacker without the attack.
    pub goodput_before_bps: Option<SeedSpread>,
    /// Goodput of the mean attacker with it.
    pub goodput_bps: Option<SeedSpread>,
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
}

/// Study of attacks on a scenario; the fields are described in the [table of the module](self).
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct IsolationRecord {
    /// Always 1.
    pub schema: u32,
    /// Version of the program.
    pub version: String,
    /// Revision of the source.
    pub revision: String,
    /// The command that makes the study again.
    pub command: String,
    /// Name of the scenario.
    pub scenario: String,
    /// Hosts that attack.
    pub attackers: String,
    /// Seeds of the runs.
    pub seeds: Vec<u64>,
    /// False if interrupted.
    pub complete: bool,
    /// Transports under attacks.
    pub cells: Vec<IsolationCell>,
}

fn mean_goodput(party: &Party) -> Option<f64> {
    party.goodput_bps.map(|all| all.mean)
}

impl IsolationCell {
    /// The cell of runs with several seeds.
    pub fn of(transport: &str, scope: &str, attack: &str, pairs: &[AttackPair]) -> Self {
        let spread = |of: &dyn Fn(&AttackPair) -> Option<f64>| SeedSpread::of(pairs.iter().map(of));
        let ratio = |of: fn(&Parties) -> &Party| {
            spread(&|pair| Some(mean_goodput(of(&pair.after))? / mean_goodput(of(&pair.before))?))
        };
        let attackers: fn(&Parties) -> &Party = |parties| &parties.attackers;
        let victims: fn(&Parties) -> &Party = |parties| &parties.victims;
        let gain = ratio(attackers);
        let missing = |party: &Party| party.messages - party.completed;
        let incomplete = pairs
            .iter()
            .map(|pair| missing(&pair.after.attackers) + missing(&pair.after.victims));
        Self {
            transport: transport.into(),
            scope: scope.into(),
            attack: attack.into(),
            seeds: pairs.len(),
            gain,
            loss: ratio(victims),
            goodput_before_bps: spread(&|pair| mean_goodput(&pair.before.attackers)),
            goodput_bps: spread(&|pair| mean_goodput(&pair.after.attackers)),
            victim_goodput_before_bps: spread(&|pair| mean_goodput(&pair.before.victims)),
            victim_goodput_bps: spread(&|pair| mean_goodput(&pair.after.victims)),
            p99_slowdown_before: spread(&|pair| Some(pair.before.victims.slowdown?.p99)),
            p99_slowdown: spread(&|pair| Some(pair.after.victims.slowdown?.p99)),
            p999_slowdown_before: spread(&|pair| Some(pair.before.victims.slowdown?.p999)),
            p999_slowdown: spread(&|pair| Some(pair.after.victims.slowdown?.p999)),
            user_fairness_before: spread(&|pair| pair.before.user_fairness),
            user_fairness: spread(&|pair| pair.after.user_fairness),
            incomplete: incomplete.sum(),
            verdict: IsolationVerdict::of(gain),
        }
    }

    /// The verdict, for people.
    fn verdict_text(&self) -> String {
        match (self.verdict, self.incomplete) {
            (IsolationVerdict::Vulnerable, _) => "VULNERABLE".to_owned(),
            (_, missing) if missing > 0 => format!("{missing} messages incomplete"),
            (IsolationVerdict::Secure, _) => "secure".into(),
            (IsolationVerdict::Unsure, _) => "unsure".into(),
        }
    }

    /// The cell as a row of texts, under [`HEADINGS`].
    pub(crate) fn texts(&self) -> [String; 10] {
        let bits = |value: f64| prefixed(value) + "bit/s";
        let change = |before: Option<SeedSpread>,
                      after: Option<SeedSpread>,
                      print: &dyn Fn(f64) -> String| {
            let print =
                |spread: Option<SeedSpread>| spread.map_or("-".into(), |it| print(it.median));
            format!("{} -> {}", print(before), print(after))
        };
        let gain = self
            .gain
            .map_or("-".into(), |gain| match gain.least < gain.greatest {
                true => format!(
                    "{:.2} ({:.2} to {:.2})",
                    gain.median, gain.least, gain.greatest
                ),
                false => format!("{:.2}", gain.median),
            });
        let index = |value: f64| format!("{value:.3}");
        [
            self.transport.clone(),
            self.scope.clone(),
            self.attack.clone(),
            gain,
            change(self.goodput_before_bps, self.goodput_bps, &bits),
            change(
                self.victim_goodput_before_bps,
                self.victim_goodput_bps,
                &bits,
            ),
            change(self.p99_slowdown_before, self.p99_slowdown, &factor),
            change(self.p999_slowdown_before, self.p999_slowdown, &factor),
            change(self.user_fairness_before, self.user_fairness, &index),
            self.verdict_text(),
        ]
    }
}

/// Headings of the table of a study.
pub(crate) const HEADINGS: [&str; 10] = [
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
];

impl IsolationRecord {
    /// The study as a table for the terminal.
    pub fn to_table(&self) -> String {
        let mut table = Table::new();
        for heading in HEADINGS {
            table = table.column(heading, Align::Left);
        }
        for cell in &self.cells {
            table.row(cell.texts());
        }
        format!("{}\n\n{table}\n{EXPLANATION}\n", self.subtitle())
    }

    /// Kinds of attacks, in the order of the cells.
    pub(crate) fn attacks(&self) -> Vec<&str> {
        let mut attacks: Vec<&str> = Vec::new();
        for cell in &self.cells {
            if !attacks.contains(&cell.attack.as_str()) {
                attacks.push(&cell.attack);
            }
        }
        attacks
    }

    /// Headings and rows of the matrix: a row for each transport and scope, a column for each attack, with gain and verdict.
    pub(crate) fn matrix(&self) -> (Vec<&str>, Vec<Vec<String>>) {
        let attacks = self.attacks();
        let mut rows: Vec<Vec<String>> = Vec::new();
        for cell in &self.cells {
            let subject = [cell.transport.as_str(), cell.scope.as_str()];
            if rows.last().is_none_or(|row| row[..2] != subject) {
                let empty = attacks.iter().map(|_| "-");
                rows.push(subject.into_iter().chain(empty).map(Into::into).collect());
            }
            let column = attacks.iter().position(|attack| *attack == cell.attack);
            if let (Some(row), Some(column), Some(gain)) = (rows.last_mut(), column, cell.gain) {
                row[2 + column] = format!("{:.2} {}", gain.median, cell.verdict_text());
            }
        }
        ([vec!["transport", "scope"], attacks].concat(), rows)
    }

    /// The study as a matrix for the terminal: gain and verdict of each transport and scope under each attack.
    pub fn to_matrix(&self) -> String {
        let (headings, rows) = self.matrix();
        let mut table = Table::new();
        for heading in headings {
            table = table.column(heading, Align::Left);
        }
        rows.into_iter().for_each(|row| table.row(row));
        format!("{}\n\n{table}\n{EXPLANATION}\n", self.subtitle())
    }

    /// Target of the attack, attackers and number of runs.
    fn subtitle(&self) -> String {
        format!(
            "{} attacked by hosts {}, {} seed{}",
            self.scenario,
            self.attackers,
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
pub(crate) const EXPLANATION: &str = "\
Without the attack -> with it: medians over seeds. Gain: goodput of an attacker with the attack over that without;
vulnerable from 1.2 on with every seed, secure below it with every seed. Goodput of a user: bytes of its messages over the sum of their completion times.
Fairness: Jain's index over the goodputs of all users.";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::FlowRow;
    use crate::sample::flow;
    use clearway_units::{Span, Time};

    /// Attacker 0 and victim 1 send 1 MB each, within so many microseconds.
    fn parties(attacker: u64, victim: u64) -> Parties {
        let row = |src: u32, us: u64| FlowRow {
            src,
            bytes: 1_000_000,
            start: Some(Time::ZERO),
            finish: Some(Time::ZERO + Span::from_us(us)),
            ideal_fct: Span::from_us(50),
            ..flow(src, None)
        };
        Parties::among(&[row(0, attacker), row(1, victim)], |user| user == 0)
    }

    fn pair(attacker: u64, victim: u64) -> AttackPair {
        AttackPair {
            before: parties(100, 100),
            after: parties(attacker, victim),
        }
    }

    #[test]
    fn a_gain_is_the_median_over_seeds() {
        let cell = IsolationCell::of(
            "dcqcn",
            "queue-pair",
            "parallel",
            &[pair(50, 200), pair(80, 125), pair(100, 100)],
        );
        let gain = cell.gain.unwrap();
        assert!((gain.median - 1.25).abs() < 1e-9);
        assert_eq!((gain.least, gain.greatest), (1.0, 2.0));
        assert_eq!(cell.loss.unwrap().median, 0.8);
        assert_eq!(cell.p99_slowdown.unwrap().greatest, 4.0);
        assert_eq!(cell.user_fairness_before.unwrap().median, 1.0);
        assert_eq!(cell.verdict, IsolationVerdict::Unsure);
        let [sure, safe] =
            [50, 90].map(|us| IsolationCell::of("dcqcn", "pair", "parallel", &[pair(us, 110)]));
        assert_eq!(sure.verdict, IsolationVerdict::Vulnerable);
        assert_eq!(safe.verdict, IsolationVerdict::Secure);
    }

    #[test]
    fn tables_say_who_gains() {
        let record = IsolationRecord {
            schema: 1,
            version: "0.1.0".into(),
            revision: "abc".into(),
            command: "clearway isolate".into(),
            scenario: "incast".into(),
            attackers: "0".into(),
            seeds: vec![1],
            complete: true,
            cells: [("pair", 110), ("queue-pair", 50)]
                .map(|(scope, us)| IsolationCell::of("dcqcn", scope, "parallel", &[pair(us, 200)]))
                .into(),
        };
        insta::assert_snapshot!(record.to_table(), @"
        incast attacked by hosts 0, 1 seed

        transport  scope       attack    gain  goodput of an attacker    goodput of a victim     p99 slowdown of victims  p99.9 slowdown    fairness of users  verdict
        ---------  ----------  --------  ----  ------------------------  ----------------------  -----------------------  ----------------  -----------------  ----------
        dcqcn      pair        parallel  0.91  80 Gbit/s -> 72.7 Gbit/s  80 Gbit/s -> 40 Gbit/s  2.000x -> 4.000x         2.000x -> 4.000x  1.000 -> 0.922     secure
        dcqcn      queue-pair  parallel  2.00  80 Gbit/s -> 160 Gbit/s   80 Gbit/s -> 40 Gbit/s  2.000x -> 4.000x         2.000x -> 4.000x  1.000 -> 0.735     VULNERABLE

        Without the attack -> with it: medians over seeds. Gain: goodput of an attacker with the attack over that without;
        vulnerable from 1.2 on with every seed, secure below it with every seed. Goodput of a user: bytes of its messages over the sum of their completion times.
        Fairness: Jain's index over the goodputs of all users.
        ");
        let matrix = record.to_matrix();
        let rows: Vec<&str> = matrix.lines().skip(2).take(4).collect();
        insta::assert_snapshot!(rows.join("\n"), @"
        transport  scope       parallel
        ---------  ----------  ---------------
        dcqcn      pair        0.91 secure
        dcqcn      queue-pair  2.00 VULNERABLE
        ");
        assert!(record.to_json().contains("\"verdict\": \"vulnerable\""));
    }
}
