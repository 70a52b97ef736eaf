//! Command line of `htsim_uec`, the program of UEC htsim (`main_uec.cpp` in its repository, July 2025).
//!
//! ```text
//! htsim_uec -topo leaf_spine.topo -tm permutation.cm -linkspeed 400000 -sender_cc_algo nscc -paths 128
//! ```
//!
//! Options begin with one dash, and the words after an option are its values. `htsim_uec` reads numbers with `atoi`, which takes `35k`
//! for 35 and `x` for 0; here both are errors. It ignores an unknown value of `-strat`, and so does the reader: the value is in the result.

use crate::text::{DecimalFault, exact_decimal, meant, one_of, shown, whole_number};
use clearway_units::{Rate, Span, suggestion};
use std::fmt;
use std::ops::RangeInclusive;

/// Values that follow an option.
#[derive(Debug, Clone, Copy)]
enum Values {
    /// No value.
    None,
    /// As many whole numbers within limits.
    Whole(usize, u64, u64),
    /// A decimal number of microseconds.
    Microseconds,
    /// A decimal number of Mb/s, above zero.
    Megabits,
    /// A decimal number without unit.
    Decimal,
    /// One of these words.
    Word(&'static [&'static str]),
    /// Any text.
    Text,
}

/// Largest value of htsim's `int`.
const INT: u64 = i32::MAX as u64;

/// The options of `htsim_uec` with their values.
const OPTIONS: &[(&str, Values)] = &[
    ("-topo", Values::Text),
    ("-tm", Values::Text),
    ("-nodes", Values::Whole(1, 1, INT)),
    ("-tiers", Values::Whole(1, 2, 3)),
    ("-planes", Values::Whole(1, 1, 8)),
    ("-linkspeed", Values::Megabits),
    ("-hop_latency", Values::Microseconds),
    ("-switch_latency", Values::Microseconds),
    ("-failed", Values::Whole(1, 0, INT)),
    ("-end", Values::Whole(1, 0, INT)),
    ("-seed", Values::Whole(1, 0, INT)),
    ("-mtu", Values::Whole(1, 65, 65_535)),
    ("-q", Values::Whole(1, 1, INT)),
    ("-queue_size_bdp_factor", Values::Whole(1, 0, INT)),
    (
        "-queue_type",
        Values::Word(&["composite", "composite_ecn", "aeolus", "aeolus_ecn"]),
    ),
    (
        "-host_queue_type",
        Values::Word(&["fair_prio", "prio", "swift"]),
    ),
    ("-ecn", Values::Whole(2, 0, INT)),
    ("-disable_trim", Values::None),
    ("-trimsize", Values::Whole(1, 64, 65_535)),
    ("-strat", Values::Text),
    ("-ar_method", Values::Word(AR_METHODS)),
    ("-ar_granularity", Values::Word(&["packet", "flow"])),
    ("-ar_sticky_delta", Values::Microseconds),
    ("-sender_cc", Values::None),
    ("-sender_cc_only", Values::None),
    (
        "-sender_cc_algo",
        Values::Word(&["nscc", "dctcp", "constant"]),
    ),
    ("-receiver_cc", Values::None),
    ("-receiver_cc_only", Values::None),
    ("-oversubscribed_cc", Values::None),
    ("-force_disable_oversubscribed_cc", Values::None),
    ("-Ai", Values::Decimal),
    ("-Md", Values::Decimal),
    ("-alpha", Values::Decimal),
    ("-cwnd", Values::Whole(1, 0, INT)),
    ("-target_q_delay", Values::Microseconds),
    ("-qa_gate", Values::Whole(1, 0, 30)),
    ("-enable_accurate_base_rtt", Values::None),
    ("-disable_base_rtt_update_on_nack", Values::None),
    ("-sack_threshold", Values::Whole(1, 1, INT)),
    ("-sleek", Values::None),
    ("-conn_reuse", Values::None),
    ("-load_balancing_algo", Values::Word(LOAD_BALANCERS)),
    ("-paths", Values::Whole(1, 1, 10_000)),
    ("-pcie", Values::Decimal),
    ("-o", Values::Text),
    ("-log", Values::Word(LOGS)),
    ("-logtime", Values::Decimal),
    ("-logtime_us", Values::Decimal),
    ("-debug", Values::None),
];

const AR_METHODS: &[&str] = &["queue", "pause", "bandwidth", "pqb", "pq", "pb", "qb"];
const LOAD_BALANCERS: &[&str] = &["mixed", "bitmap", "reps", "reps_legacy", "oblivious"];
const LOGS: &[&str] = &[
    "flow_events",
    "sink",
    "nic",
    "tor_downqueue",
    "tor_upqueue",
    "switch",
    "traffic",
    "queue_usage",
];

/// A value of an option.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HtsimValue {
    /// Whole number.
    Whole(u64),
    /// Duration, which htsim counts in microseconds.
    Duration(Span),
    /// Rate, which htsim counts in Mb/s.
    Rate(Rate),
    /// Number, word or path, as given.
    Text(String),
}

/// An option of `htsim_uec` with its values. Displays as on the command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HtsimOption {
    /// Name of the option, with its dash.
    pub name: &'static str,
    /// Values, as many as the option has.
    pub values: Vec<HtsimValue>,
    /// Values as given.
    words: Vec<String>,
}

impl HtsimOption {
    /// The value at `index` if it is a whole number.
    pub fn whole(&self, index: usize) -> Option<u64> {
        match self.values.get(index) {
            Some(HtsimValue::Whole(value)) => Some(*value),
            _ => None,
        }
    }

    /// The value if it is a duration.
    pub fn duration(&self) -> Option<Span> {
        match self.values.first() {
            Some(HtsimValue::Duration(value)) => Some(*value),
            _ => None,
        }
    }

    /// The value if it is a rate.
    pub fn rate(&self) -> Option<Rate> {
        match self.values.first() {
            Some(HtsimValue::Rate(value)) => Some(*value),
            _ => None,
        }
    }

    /// The first value as given; empty for an option without values.
    pub fn text(&self) -> &str {
        self.words.first().map_or("", String::as_str)
    }
}

impl fmt::Display for HtsimOption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)?;
        let mut words = self.words.iter();
        words.try_for_each(|word| write!(f, " {}", clean(word)))
    }
}

/// `text` without line breaks and other control characters.
fn clean(text: &str) -> String {
    let clean = |c: char| match c.is_control() {
        true => c.escape_debug().collect::<String>(),
        false => c.to_string(),
    };
    text.chars().map(clean).collect()
}

/// Command line of `htsim_uec`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct HtsimCommand {
    /// Options in their order, which matters for some of them.
    pub options: Vec<HtsimOption>,
}

impl HtsimCommand {
    /// The last option of this name, which is the one that counts.
    pub fn last(&self, name: &str) -> Option<&HtsimOption> {
        self.options.iter().rev().find(|option| option.name == name)
    }

    /// True if the option is given.
    pub fn has(&self, name: &str) -> bool {
        self.last(name).is_some()
    }

    /// Names of all options that `htsim_uec` knows.
    pub fn option_names() -> impl Iterator<Item = &'static str> {
        OPTIONS.iter().map(|(name, _)| *name)
    }
}

/// Error in the command line of `htsim_uec`.
///
/// Displays as the message and, on a second line, `fix: …`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HtsimCommandError {
    /// Description of the fault, with the option.
    pub message: String,
    /// Advice on how to fix it.
    pub fix: String,
}

impl fmt::Display for HtsimCommandError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}\n  fix: {}", self.message, self.fix)
    }
}

impl std::error::Error for HtsimCommandError {}

/// Reads the arguments of `htsim_uec`. The name of the program may stand in front of them.
///
/// # Errors
/// At the first unknown option, missing value or malformed value.
pub fn parse_htsim_command(arguments: &[String]) -> Result<HtsimCommand, HtsimCommandError> {
    let mut words = without_program(arguments)?.iter();
    let mut options = Vec::new();
    while let Some(word) = words.next() {
        let known = OPTIONS.iter().find(|(name, _)| name == word);
        let &(name, values) = known.ok_or_else(|| unknown(word))?;
        options.push(option(name, values, &mut words)?);
    }
    Ok(HtsimCommand { options })
}

/// The arguments after the name of the program, if it is there.
fn without_program(arguments: &[String]) -> Result<&[String], HtsimCommandError> {
    let Some((first, rest)) = arguments.split_first() else {
        return Ok(arguments);
    };
    let program = first.rsplit(['/', '\\']).next().unwrap_or(first);
    let program = program.strip_suffix(".exe").unwrap_or(program);
    match program {
        "htsim_uec" => Ok(rest),
        program if program.starts_with("htsim_") => Err(HtsimCommandError {
            message: format!("`{}` has options of its own", shown(program)),
            fix: "give the options of `htsim_uec`; `clearway list transports` has the transports of other programs"
                .into(),
        }),
        _ => Ok(arguments),
    }
}

fn unknown(word: &str) -> HtsimCommandError {
    let names: Vec<&str> = HtsimCommand::option_names().collect();
    let near = meant(word, &names);
    let all = "the options of `htsim_uec` are in its `main_uec.cpp`";
    let fix = match word.starts_with('-') {
        true => suggestion(near, all),
        false => "put quotes around a value with blanks, and remove words that belong to no option"
            .into(),
    };
    HtsimCommandError {
        message: format!("`htsim_uec` has no option `{}`", shown(word)),
        fix,
    }
}

fn option<'a>(
    name: &'static str,
    values: Values,
    words: &mut impl Iterator<Item = &'a String>,
) -> Result<HtsimOption, HtsimCommandError> {
    let count = match values {
        Values::None => 0,
        Values::Whole(count, ..) => count,
        _ => 1,
    };
    let words: Vec<String> = words.take(count).cloned().collect();
    if words.len() < count {
        let (plural, noun) = match count {
            1 => ("", "value"),
            _ => ("s", "values"),
        };
        return Err(HtsimCommandError {
            message: format!("`{name}` lacks its value{plural}"),
            fix: format!("write {count} {noun} after it"),
        });
    }
    let read = words.iter().map(|word| value(name, values, word));
    Ok(HtsimOption {
        name,
        values: read.collect::<Result<_, _>>()?,
        words,
    })
}

fn value(name: &str, values: Values, word: &str) -> Result<HtsimValue, HtsimCommandError> {
    let (value, expected) = match values {
        Values::None => (None, String::new()),
        Values::Whole(_, least, most) => (whole(word, least..=most), whole_text(least, most)),
        Values::Microseconds => {
            let expected = "a number of microseconds such as 1 or 0.5".to_owned();
            let span = exact_decimal(word, 6).map(|ps| HtsimValue::Duration(Span::from_ps(ps)));
            (span.ok(), expected)
        }
        Values::Megabits => {
            let expected = "a number of Mb/s such as 400000".to_owned();
            let rate = exact_decimal(word, 6).ok().filter(|bps| *bps > 0);
            let rate = rate.map(|bps| HtsimValue::Rate(Rate::from_bps(bps)));
            (rate, expected)
        }
        Values::Decimal => {
            // The number need not be exact: it has no counterpart.
            let is_number = matches!(exact_decimal(word, 0), Ok(_) | Err(DecimalFault::TooFine));
            let text = is_number.then(|| HtsimValue::Text(word.to_owned()));
            (text, "a number such as 1 or 0.5".to_owned())
        }
        Values::Word(known) => {
            let text = known
                .contains(&word)
                .then(|| HtsimValue::Text(word.to_owned()));
            (text, one_of(known))
        }
        Values::Text => {
            let text = (!word.is_empty()).then(|| HtsimValue::Text(word.to_owned()));
            (text, "a name".to_owned())
        }
    };
    value.ok_or_else(|| HtsimCommandError {
        message: format!("`{name} {}`: not a valid value", shown(word)),
        fix: format!("write {expected} after `{name}`"),
    })
}

fn whole(word: &str, range: RangeInclusive<u64>) -> Option<HtsimValue> {
    let value = whole_number(word).filter(|value| range.contains(value));
    value.map(HtsimValue::Whole)
}

fn whole_text(least: u64, most: u64) -> String {
    format!("a whole number from {least} to {most}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<HtsimCommand, HtsimCommandError> {
        let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
        parse_htsim_command(&words)
    }

    #[test]
    fn options_have_typed_values_and_print_as_given() {
        let command = parse(
            "./build/htsim_uec -topo a.topo -tm b.cm -ecn 20 80 -linkspeed 400000 -hop_latency 0.5 -sleek -q 10 -q 35",
        )
        .unwrap();
        assert_eq!(command.last("-q").unwrap().whole(0), Some(35));
        let ecn = command.last("-ecn").unwrap();
        assert_eq!((ecn.whole(0), ecn.whole(1)), (Some(20), Some(80)));
        assert_eq!(ecn.to_string(), "-ecn 20 80");
        let rate = command.last("-linkspeed").unwrap().rate();
        assert_eq!(rate, Some(Rate::from_bps(400_000_000_000)));
        let latency = command.last("-hop_latency").unwrap().duration();
        assert_eq!(latency, Some(Span::from_ns(500)));
        assert_eq!(command.last("-topo").unwrap().text(), "a.topo");
        assert!(command.has("-sleek") && !command.has("-debug"));
        assert_eq!(parse_htsim_command(&[]), Ok(HtsimCommand::default()));
        let odd = parse_htsim_command(&["-o".into(), "a\nb".into()]).unwrap();
        assert_eq!(odd.options[0].to_string(), "-o a\\nb");
    }

    #[test]
    fn mistakes_name_the_option() {
        let refused = |line| parse(line).unwrap_err().to_string();
        let all = [
            "-topoo x",
            "-tm a.cm extra",
            "-q",
            "-ecn 20",
            "-q 35k",
            "-q 0",
            "-mtu 64",
            "-linkspeed 0",
            "-hop_latency 1us",
            "-sender_cc_algo swift",
            "-queue_type lossless",
            "-pcie fast",
            "-seed -1",
            "htsim_roce -topo x",
        ]
        .map(refused)
        .join("\n");
        insta::assert_snapshot!(all, @"
        `htsim_uec` has no option `-topoo`
          fix: did you mean `-topo`? The options of `htsim_uec` are in its `main_uec.cpp`
        `htsim_uec` has no option `extra`
          fix: put quotes around a value with blanks, and remove words that belong to no option
        `-q` lacks its value
          fix: write 1 value after it
        `-ecn` lacks its values
          fix: write 2 values after it
        `-q 35k`: not a valid value
          fix: write a whole number from 1 to 2147483647 after `-q`
        `-q 0`: not a valid value
          fix: write a whole number from 1 to 2147483647 after `-q`
        `-mtu 64`: not a valid value
          fix: write a whole number from 65 to 65535 after `-mtu`
        `-linkspeed 0`: not a valid value
          fix: write a number of Mb/s such as 400000 after `-linkspeed`
        `-hop_latency 1us`: not a valid value
          fix: write a number of microseconds such as 1 or 0.5 after `-hop_latency`
        `-sender_cc_algo swift`: not a valid value
          fix: write `nscc`, `dctcp` or `constant` after `-sender_cc_algo`
        `-queue_type lossless`: not a valid value
          fix: write `composite`, `composite_ecn`, `aeolus` or `aeolus_ecn` after `-queue_type`
        `-pcie fast`: not a valid value
          fix: write a number such as 1 or 0.5 after `-pcie`
        `-seed -1`: not a valid value
          fix: write a whole number from 0 to 2147483647 after `-seed`
        `htsim_roce` has options of its own
          fix: give the options of `htsim_uec`; `clearway list transports` has the transports of other programs
        ");
    }
}
