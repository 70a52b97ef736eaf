//! Commands that change links during forwarding, one per line.
//!
//! ```text
//! link NAME CHANGE...
//! ```
//!
//! NAME is a cable, `leaf0-spine1`, for both directions, or one direction, `leaf0>spine1`. A `*` matches any text, so `link *spine1 down`
//! takes a whole switch down. [`Change`] lists the changes.

use clearway_fabric::topology::{LinkId, Topology};
use clearway_units::{Rate, Span, nearest, suggestion};
use std::fmt;
use std::str::FromStr;

/// Longest delay of a link.
const LONGEST_DELAY: Span = Span::from_ms(10_000);
/// Slowest rate of a link: a packet of 64 KiB then leaves within a minute.
const LEAST_RATE: Rate = Rate::from_bps(10_000);

/// Probability of an impairment.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Probability(f64);

impl Probability {
    /// A number from 0 to 1.
    pub(crate) fn as_f64(self) -> f64 {
        self.0
    }
}

impl FromStr for Probability {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let (number, scale) = match text.strip_suffix('%') {
            Some(number) => (number, 0.01),
            None => (text, 1.0),
        };
        let value: f64 = number.parse().map_err(|_| ())?;
        let value = value * scale;
        (0.0..=1.0)
            .contains(&value)
            .then_some(Self(value))
            .ok_or(())
    }
}

/// Change of a directed link.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Change {
    /// `down`: packets that leave the queue are lost. Switches do not reroute: the transport has to react.
    Down,
    /// `up`: the end of `down`.
    Up,
    /// `loss 1%`: packets that leave are lost with this probability.
    Loss(Probability),
    /// `duplicate 1%`: packets arrive twice with this probability.
    Duplicate(Probability),
    /// `reorder 5% 200us`: packets arrive this much later with this probability, and others pass them.
    Reorder(Probability, Span),
    /// `delay 1ms`: propagation delay.
    Delay(Span),
    /// `rate 100Mbps`: rate of transmission, from the next packet on.
    Rate(Rate),
    /// `corrupt 0.1%`: a bit behind the IP header flips with this probability.
    Corrupt(Probability),
    /// `mark 100%`: ECN-capable packets are marked with this probability, for any queue length.
    Mark(Probability),
    /// `reset`: back to the scenario's values.
    Reset,
}

/// Keywords of the changes, with their arguments.
const CHANGES: [(&str, &str); 10] = [
    ("down", ""),
    ("up", ""),
    ("loss", " 1%"),
    ("duplicate", " 1%"),
    ("reorder", " 5% 200us"),
    ("delay", " 1ms"),
    ("rate", " 100Mbps"),
    ("corrupt", " 0.1%"),
    ("mark", " 100%"),
    ("reset", ""),
];

/// Parsed command.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Command {
    /// The links that change.
    pub(crate) links: Vec<LinkId>,
    /// Changes to the links, in this order.
    pub(crate) changes: Vec<Change>,
}

/// Fault of a command, and its fix.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandError {
    /// Description of the fault.
    pub message: String,
    /// Suggested fix.
    pub fix: String,
}

impl CommandError {
    fn new(message: impl Into<String>, fix: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            fix: fix.into(),
        }
    }
}

impl fmt::Display for CommandError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}\n  fix: {}", self.message, self.fix)
    }
}

impl std::error::Error for CommandError {}

/// Names of the links that the scenario does not take down.
#[derive(Debug, Clone)]
pub struct ActiveLinks(Vec<(LinkId, String)>);

impl ActiveLinks {
    /// The names of a fabric's links.
    pub fn from_topology(topology: &Topology) -> Self {
        let named = |link| (link, topology.link_name(link));
        Self(topology.links_up().map(named).collect())
    }

    /// Parses a command; `None` for a line without a command: empty, or a comment after `#`.
    ///
    /// # Errors
    /// At the first invalid word.
    pub fn read(&self, line: &str) -> Result<Option<Command>, CommandError> {
        let line = line.split('#').next().unwrap_or_default();
        let mut words = line.split_whitespace();
        match words.next() {
            None => return Ok(None),
            Some("link") => {}
            Some(other) => {
                return Err(CommandError::new(
                    format!("there is no command `{other}`"),
                    "write `link NAME CHANGE`, for instance `link leaf0-spine1 down`",
                ));
            }
        }
        let Some(name) = words.next() else {
            return Err(CommandError::new(
                "`link` without a name",
                format!("name one, for instance `link {} down`", self.example()),
            ));
        };
        let links = self.named(name)?;
        let mut changes = Vec::new();
        while let Some(word) = words.next() {
            changes.push(change(word, &mut words)?);
        }
        if changes.is_empty() {
            return Err(CommandError::new(
                format!("nothing about `{name}` is said"),
                known_changes(),
            ));
        }
        Ok(Some(Command { links, changes }))
    }

    fn example(&self) -> &str {
        self.0.last().map_or("leaf0-spine1", |(_, name)| name)
    }

    /// The links that match a name or pattern.
    fn named(&self, pattern: &str) -> Result<Vec<LinkId>, CommandError> {
        let directed = pattern.replace('>', "-");
        let both_ways = directed == pattern;
        let mut found: Vec<LinkId> = Vec::new();
        for (link, name) in &self.0 {
            if matches(&directed, name) {
                found.push(*link);
                if both_ways {
                    // Links 2c and 2c + 1 are the two directions of cable c.
                    found.push(LinkId(link.0 ^ 1));
                }
            }
        }
        found.sort_unstable();
        found.dedup();
        if found.is_empty() {
            let names = self.0.iter().map(|(_, name)| name.as_str());
            let example = format!(
                "links are named after their two ends, for instance `{}`; those that the scenario takes down are not there",
                self.example()
            );
            return Err(CommandError::new(
                format!("no link `{pattern}`"),
                suggestion(nearest(&directed, names), &example),
            ));
        }
        Ok(found)
    }
}

/// True if `text` matches `pattern`, where each `*` matches any text.
fn matches(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = text.strip_prefix(first) else {
        return false;
    };
    let mut parts: Vec<&str> = parts.collect();
    let Some(last) = parts.pop() else {
        return rest.is_empty();
    };
    for part in parts {
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}

fn known_changes() -> String {
    let known = CHANGES.map(|(word, rest)| format!("`{word}{rest}`"));
    format!("say what: {}", known.join(", "))
}

/// The change that begins with `word`.
fn change<'a>(
    word: &str,
    words: &mut impl Iterator<Item = &'a str>,
) -> Result<Change, CommandError> {
    let Some((_, example)) = CHANGES.iter().find(|(known, _)| *known == word) else {
        let names = CHANGES.iter().map(|(known, _)| *known);
        return Err(CommandError::new(
            format!("there is no change `{word}`"),
            suggestion(nearest(word, names), &known_changes()),
        ));
    };
    let mut next = |expected: &str| {
        words.next().ok_or_else(|| {
            CommandError::new(
                format!("`{word}` without {expected}"),
                format!("write it as `{word}{example}`"),
            )
        })
    };
    let is_moderate = |span: &Span| *span <= LONGEST_DELAY;
    Ok(match word {
        "down" => Change::Down,
        "up" => Change::Up,
        "reset" => Change::Reset,
        "loss" => Change::Loss(probability(next("a probability")?)?),
        "duplicate" => Change::Duplicate(probability(next("a probability")?)?),
        "corrupt" => Change::Corrupt(probability(next("a probability")?)?),
        "mark" => Change::Mark(probability(next("a probability")?)?),
        "reorder" => {
            let chance = probability(next("a probability")?)?;
            let later = value(
                next("a time")?,
                is_moderate,
                "a time up to 10s such as `200us`",
            )?;
            Change::Reorder(chance, later)
        }
        "delay" => Change::Delay(value(
            next("a time")?,
            is_moderate,
            "a time up to 10s such as `1ms`",
        )?),
        _ => Change::Rate(value(
            next("a rate")?,
            |rate: &Rate| *rate >= LEAST_RATE,
            "a rate from 10Kbps on such as `100Mbps`",
        )?),
    })
}

fn probability(text: &str) -> Result<Probability, CommandError> {
    value(text, |_| true, "a probability such as `1%` or `0.01`")
}

/// The value of a word, if it parses and `fits` accepts it.
fn value<T: FromStr>(
    text: &str,
    fits: impl Fn(&T) -> bool,
    expected: &str,
) -> Result<T, CommandError> {
    let value = text.parse().ok().filter(fits);
    value.ok_or_else(|| {
        CommandError::new(
            format!("cannot read `{text}`"),
            format!("expected {expected}"),
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use clearway_fabric::topology::leaf_spine;

    fn names() -> ActiveLinks {
        let wire = (Rate::from_gbps(1), Span::from_us(1));
        ActiveLinks::from_topology(&leaf_spine(4, 2, 2, 1, wire, wire).unwrap())
    }

    fn read(line: &str) -> Command {
        names().read(line).unwrap().unwrap()
    }

    /// The names of the links that match a pattern.
    fn meant(pattern: &str) -> Vec<String> {
        let names = names();
        let links = names.named(pattern).unwrap();
        let name = |link| names.0.iter().find(|(known, _)| *known == link).unwrap();
        links.into_iter().map(|link| name(link).1.clone()).collect()
    }

    #[test]
    fn names_mean_both_directions_or_one() {
        assert_eq!(meant("leaf0-spine1"), ["leaf0-spine1", "spine1-leaf0"]);
        assert_eq!(meant("spine1-leaf0"), ["leaf0-spine1", "spine1-leaf0"]);
        assert_eq!(meant("spine1>leaf0"), ["spine1-leaf0"]);
        assert_eq!(meant("*spine1").len(), 4);
        assert_eq!(meant("leaf*>spine1"), ["leaf0-spine1", "leaf1-spine1"]);
        assert_eq!(meant("*").len(), names().0.len());
        assert!(names().named("leaf1-spine").is_err());
    }

    #[test]
    fn patterns_match_whole_names() {
        for (pattern, text) in [("*", ""), ("a*b*c", "abbc"), ("*b", "ab"), ("a*", "a")] {
            assert!(matches(pattern, text), "{pattern} {text}");
        }
        for (pattern, text) in [("a", "ab"), ("a*a", "a"), ("*b*b", "ab"), ("", "a")] {
            assert!(!matches(pattern, text), "{pattern} {text}");
        }
    }

    #[test]
    fn lines_have_any_number_of_changes() {
        let command = read("  link leaf0>spine1 loss 1% delay 1ms reorder 0.05 200us # as said");
        assert_eq!(
            command.changes,
            [
                Change::Loss(Probability(0.01)),
                Change::Delay(Span::from_ms(1)),
                Change::Reorder(Probability(0.05), Span::from_us(200)),
            ]
        );
        assert_eq!(command.links.len(), 1);
        assert_eq!(names().read(" # nothing"), Ok(None));
        for (word, rest) in CHANGES {
            assert_eq!(
                read(&format!("link * {word}{rest}")).changes.len(),
                1,
                "{word}"
            );
        }
    }

    #[test]
    fn faults_have_fixes() {
        let fault = |line| names().read(line).unwrap_err().to_string();
        for (line, begin) in [
            (
                "link leaf0-spin1 down",
                "no link `leaf0-spin1`\n  fix: did you mean `leaf0-spine1`? Links are named after",
            ),
            (
                "link leaf0-spine1 dwon",
                "there is no change `dwon`\n  fix: did you mean `down`? Say what: `down`, `up`",
            ),
        ] {
            assert!(fault(line).starts_with(begin), "{}", fault(line));
        }
        assert_eq!(
            fault("link leaf0-spine1 loss"),
            "`loss` without a probability\n  fix: write it as `loss 1%`"
        );
        for bad in [
            "lnik leaf0-spine1 down",
            "link",
            "link leaf0-spine1",
            "link leaf0-spine1 loss 101%",
            "link leaf0-spine1 loss nan",
            "link leaf0-spine1 loss -1%",
            "link leaf0-spine1 delay 11s",
            "link leaf0-spine1 rate 0Gbps",
            "link leaf0-spine1 rate 1bps",
            "link leaf0-spine1 reorder 1%",
            "link leaf0-spine1 reorder 1% fast",
        ] {
            let error = names().read(bad).unwrap_err();
            assert!(!error.message.is_empty() && !error.fix.is_empty(), "{bad}");
        }
    }
}
