//! A scenario to start from: its most used keys, each with its meaning, as text.
//!
//! Meaning, default and accepted values come from the key's declaration, as in `clearway explain`. This module only lists the most used
//! keys.

use crate::Setting;
use clearway_units::ValueDomain;
use std::fmt::Write as _;

/// Width of a comment in columns.
const WIDTH: usize = 100;

/// The most used keys of each section; a line names all other keys.
const MOST_USED: [(&str, &[&str]); 7] = [
    ("", &["name", "seed", "stop.at-most"]),
    (
        "topology",
        &[
            "hosts",
            "hosts-per-leaf",
            "spines",
            "radix",
            "tiers",
            "oversubscription",
            "pods",
            "leaves-per-pod",
            "aggs-per-pod",
            "cores-per-agg",
            "switch-ports",
            "levels",
            "left",
            "right",
            "bottleneck-rate",
            "gpus",
            "gpus-per-leaf",
            "links-per-spine",
            "link-rate",
            "link-delay",
            "fabric-link-rate",
            "file",
            "links",
        ],
    ),
    (
        "switch",
        &[
            "queue",
            "buffer",
            "ecn.enabled",
            "ecn.kmin",
            "ecn.kmax",
            "ecn.pmax",
            "routing",
            "reduction-table",
        ],
    ),
    (
        "transport",
        &[
            "kind",
            "controller",
            "spray",
            "payload",
            "init-cwnd",
            "max-cwnd",
            "max-paths",
            "target-qdelay",
            "qps",
            "rto",
            "initial-rate",
            "initial-window",
            "max-window",
            "base-delay",
            "target-utilisation",
            "headroom",
        ],
    ),
    (
        "injection",
        &["window", "tokens", "wm-max", "latency-threshold"],
    ),
    (
        "workload",
        &[
            "senders",
            "receiver",
            "placement",
            "from",
            "to",
            "hosts",
            "message",
            "size",
            "sizes",
            "load",
            "duration",
            "flows",
            "file",
            "start",
            "count",
            "period",
            "redraw",
            "ranks",
            "jobs",
            "iterations",
            "compute",
            "chunk",
            "operation",
            "transactions",
            "operations",
            "sets",
            "members",
        ],
    ),
    ("observe", &["series.every", "trace.perfetto", "trace.pcap"]),
];

/// Parts of a transport, which are commented out: an active part would stay when the user chooses another `transport.kind`.
const PARTS: [&str; 4] = ["reliability", "controller", "spray", "feedback"];

/// Text of a scenario with these settings; the settings of a section must be adjacent. Other keys than the most used have separate lines
/// only if they are given. Reading the text gives the same settings.
pub fn starter(settings: &[Setting]) -> String {
    let mut text = String::from(
        "# A scenario: `clearway run FILE` runs it. Every key may be left out; `clearway explain KEY` says what it is then.\n\
         # `clearway show FILE --resolved` prints all keys with their values.\n",
    );
    for section in settings.chunk_by(|a, b| stem(&a.section) == stem(&b.section)) {
        write_section(&mut text, section);
    }
    text
}

/// The file section of a setting: `workload[1].transport` is a part of `workload[1]`.
fn stem(section: &str) -> &str {
    section.split('.').next().unwrap_or(section)
}

fn write_section(text: &mut String, settings: &[Setting]) {
    let Some(first) = settings.first() else {
        return;
    };
    let section = stem(&first.section);
    let name = section.split('[').next().unwrap_or(section);
    text.push('\n');
    let _ = match name {
        "" => Ok(()),
        "workload" | "event" => writeln!(text, "[[{name}]]"),
        name => writeln!(text, "[{name}]"),
    };
    let most_used = MOST_USED.iter().find(|(known, _)| *known == name);
    let most_used = most_used.map_or(&[][..], |(_, keys)| keys);
    let is_shown = |setting: &&Setting| {
        setting.key == "kind" || setting.given || most_used.contains(&setting.key)
    };
    let (shown, rest): (Vec<&Setting>, Vec<&Setting>) = settings.iter().partition(is_shown);
    for (place, setting) in shown.into_iter().enumerate() {
        if place > 0 {
            text.push('\n');
        }
        write_setting(text, name, setting);
    }
    if !rest.is_empty() {
        let keys: Vec<&str> = rest.iter().map(|setting| setting.key).collect();
        text.push('\n');
        write_comment(text, &format!("Further keys: {}.", keys.join(", ")));
    }
}

fn write_setting(text: &mut String, section: &str, setting: &Setting) {
    let is_kind = setting.domain.is_none() && !setting.expected.is_empty();
    let mut comment = match is_kind {
        true => format!("{}.", capitalized(&setting.meaning)),
        false => setting.meaning.clone(),
    };
    if is_kind || matches!(setting.domain, Some(ValueDomain::Words(_))) {
        let _ = write!(comment, " Takes {}.", setting.expected);
    }
    write_comment(text, &comment);
    let (_, below) = setting.section.split_once('.').unwrap_or_default();
    let is_part = section == "transport" && PARTS.contains(&setting.key);
    if is_part && !setting.given {
        text.push_str("# ");
    }
    let dot = if below.is_empty() { "" } else { "." };
    let _ = writeln!(text, "{below}{dot}{} = {}", setting.key, setting.value);
}

fn capitalized(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().map(|first| first.to_ascii_uppercase());
    first.into_iter().chain(letters).collect()
}

/// Writes `comment` in separate lines.
fn write_comment(text: &mut String, comment: &str) {
    let mut line = String::from("#");
    for word in comment.split_whitespace() {
        if line.len() + 1 + word.len() > WIDTH && line.len() > 1 {
            let _ = writeln!(text, "{line}");
            line = String::from("#");
        }
        line.push(' ');
        line.push_str(word);
    }
    let _ = writeln!(text, "{line}");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Catalogue, scaleup_groups};
    use clearway_scaleup::injection::InjectionRegistry;
    use clearway_transport::Registry;

    #[test]
    fn keys_that_are_used_most_exist() {
        let registry = Registry::builtin();
        let groups = scaleup_groups(&InjectionRegistry::builtin());
        let catalogue = groups
            .into_iter()
            .fold(Catalogue::new(&registry), Catalogue::with);
        for (section, key) in MOST_USED
            .iter()
            .flat_map(|(section, keys)| keys.iter().map(move |key| (*section, *key)))
        {
            let full = match section {
                "" => key.to_owned(),
                section => format!("{section}.{key}"),
            };
            let mut found = catalogue.explain(&full).into_iter();
            assert!(found.any(|known| known.name == full), "{full}");
        }
    }
}
