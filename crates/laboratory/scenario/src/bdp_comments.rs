//! Absolute amounts of relative values, as comments in a resolved scenario.
//!
//! The amounts depend on the network of the run and are not part of the scenario: the hash and the reader ignore them.

use crate::{Scenario, source};
use clearway_units::{Bytes, ParameterInfo, Rate, RelativeSize, Value, ValueDomain};
use std::fmt::Write as _;

/// Separator between a value and its comment.
const COMMENT: &str = "  # ";

/// Bandwidth-delay products of a network.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BdpValues {
    /// Line rate, and the transports' product: the line rate times the longest round trip.
    pub transport: (Rate, Bytes),
    /// Rates of the ports' links, each with its product: the rate times the propagation round trip.
    pub ports: Vec<(Rate, Bytes)>,
}

impl BdpValues {
    /// Comment on `size` in a section; `None` if `size` is absolute.
    fn comment(&self, section: &str, size: RelativeSize) -> Option<String> {
        if let RelativeSize::Absolute(_) = size {
            return None;
        }
        let shown = |(rate, bdp)| format!("{} B", in_groups(size.resolve(rate, bdp).as_u64()));
        Some(match (section, self.ports.as_slice()) {
            ("switch", [alone]) => shown(*alone),
            ("switch", ports) => {
                let ports = ports
                    .iter()
                    .map(|&(rate, bdp)| format!("{} at {rate}", shown((rate, bdp))));
                ports.collect::<Vec<_>>().join(", ")
            }
            _ => shown(self.transport),
        })
    }

    fn of_value(&self, section: &str, value: &Value) -> Option<String> {
        match value {
            Value::Text(text) => self.comment(section, text.parse().ok()?),
            Value::List(values) => {
                let all = values.iter().map(|value| self.of_value(section, value));
                Some(all.collect::<Option<Vec<_>>>()?.join(", ")).filter(|text| !text.is_empty())
            }
            _ => None,
        }
    }
}

impl Scenario {
    /// As [`resolved`](Self::resolved), with a comment after each relative value that gives its amount.
    pub fn resolved_with(&self, amounts: &BdpValues) -> String {
        let relative = self.relative_keys();
        let mut section = String::new();
        let mut text = String::new();
        for line in self.resolved().lines() {
            text += line;
            if line.starts_with('[') {
                section = line.trim_matches(['[', ']']).to_owned();
            } else if let Some((key, value)) = line.split_once(" = ")
                && relative.contains(&(section.as_str(), key.into()))
                && let Some(comment) = amounts.of_value(&section, &source::read_value(value))
            {
                let _ = write!(text, "{COMMENT}{comment}");
            }
            text += "\n";
        }
        text
    }

    /// Keys of sizes that can be relative, each after its section.
    fn relative_keys(&self) -> Vec<(&'static str, String)> {
        let mut keys = Vec::new();
        let mut add = |section, prefix: &str, described: Vec<ParameterInfo>| {
            let relative = described.iter().filter(|known| is_relative(&known.domain));
            keys.extend(relative.map(|known| (section, format!("{prefix}{}", known.key))));
        };
        add("switch", "", self.switch.describe());
        add("transport", "", self.transport.describe());
        for workload in &self.workloads {
            add("workload", "", workload.describe());
            add("workload", "transport.", workload.describe_transport());
        }
        keys
    }
}

/// A resolved scenario without comments on its values.
pub fn without_bdp_comments(resolved: &str) -> String {
    let mut text = String::new();
    for line in resolved.lines() {
        // A comment has no quotes; a text value that contains `COMMENT` ends with a quote.
        let commented = line.rsplit_once(COMMENT);
        let value = commented.filter(|(_, comment)| !comment.contains('"'));
        text += value.map_or(line, |(value, _)| value);
        text += "\n";
    }
    text
}

fn is_relative(domain: &ValueDomain) -> bool {
    match domain {
        ValueDomain::RelativeSize => true,
        ValueDomain::List(items) => is_relative(items),
        ValueDomain::Either(some) => some.iter().any(is_relative),
        _ => false,
    }
}

/// A number in groups of three digits, separated by blanks.
fn in_groups(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(' ');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use clearway_transport::Registry;

    #[test]
    fn relative_values_have_their_amounts_behind_them() {
        let registry = Registry::builtin();
        let text = "name = \"5bdp\"\n[switch]\necn.kmin = \"1KB\"\n[[workload]]\nattack = { kind = \"staggered\", bytes = \"1bdp\" }\ntransport.max-cwnd = \"50%bdp\"\n";
        let scenario = Scenario::read(&registry, "x", text, None, &[]).unwrap();
        let amounts = BdpValues {
            transport: (Rate::from_gbps(400), Bytes::new(1_000_000)),
            ports: vec![(Rate::from_gbps(400), Bytes::new(400_000))],
        };
        let resolved = scenario.resolved_with(&amounts);
        let commented: Vec<&str> = resolved
            .lines()
            .filter(|line| line.contains(COMMENT))
            .collect();
        assert_eq!(
            commented,
            [
                "queue = \"5bdp\"  # 2 000 000 B",
                "ecn.kmax = \"75%bdp\"  # 300 000 B",
                "max-cwnd = \"1.25bdp\"  # 1 250 000 B",
                "attack.bytes = \"1bdp\"  # 1 000 000 B",
                "transport.max-cwnd = \"50%bdp\"  # 500 000 B",
            ]
        );
        assert_eq!(without_bdp_comments(&resolved), scenario.resolved());
        let again = Scenario::read(&registry, "x", &resolved, None, &[]).unwrap();
        assert_eq!(
            (again.hash(), again.resolved()),
            (scenario.hash(), scenario.resolved())
        );
    }

    #[test]
    fn ports_of_several_rates_have_an_amount_each() {
        let amounts = BdpValues {
            transport: (Rate::from_gbps(400), Bytes::ZERO),
            ports: vec![
                (Rate::from_gbps(100), Bytes::new(100)),
                (Rate::from_gbps(400), Bytes::new(400)),
            ],
        };
        let comment = amounts.comment("switch", RelativeSize::percent_of_bdp(500));
        assert_eq!(
            comment.as_deref(),
            Some("500 B at 100Gbps, 2 000 B at 400Gbps")
        );
    }

    #[test]
    fn texts_that_look_like_comments_stay() {
        let text = "name = \"a  # b\"\n";
        assert_eq!(without_bdp_comments(text), text);
    }
}
