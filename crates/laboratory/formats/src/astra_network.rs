//! Networks of ASTRA-sim: the YAML files of its analytical back ends.
//!
//! ```yaml
//! topology: [ Ring, FullyConnected, Switch ]
//! npus_count: [ 4, 2, 8 ]
//! bandwidth: [ 200.0, 100.0, 50.0 ]   # GB/s, of 2^30 bytes
//! latency: [ 50.0, 500.0, 2000.0 ]    # ns
//! ```
//!
//! Each item of a list is a dimension, from the inside outwards: NPUs with consecutive numbers differ in the first one. The keys and units
//! are those of astra-network-analytical (`NetworkParser.cpp`, `NetworkFunction.cpp`).

use crate::text::{Source, shown, whole_number};
use crate::yaml::{Content, Entry, Node, parse_yaml};
use clearway_units::{Rate, Span};
use clearway_workload::{FileError, FileWarning};

/// Links between the NPUs of a dimension.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AstraLinks {
    /// Each NPU to the next, and the last to the first.
    Ring,
    /// Each NPU to each other one.
    FullyConnected,
    /// Each NPU to a switch.
    Switch,
}

/// A dimension of a network.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AstraDimension {
    /// Links between its NPUs.
    pub links: AstraLinks,
    /// Number of NPUs.
    pub npus: u32,
    /// Rate of each link: 8 x 2^30 bit/s for each GB/s of the file, rounded to bit/s.
    pub bandwidth: Rate,
    /// Delay of each link, rounded to picoseconds.
    pub latency: Span,
}

/// Content of a network file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AstraNetwork {
    /// The dimensions, from the inside outwards.
    pub dimensions: Vec<AstraDimension>,
    /// Warnings about keys that are not used.
    pub warnings: Vec<FileWarning>,
}

const KEYS: [&str; 4] = ["topology", "npus_count", "bandwidth", "latency"];
/// Bits of a byte, and bytes of a GB.
const BITS_OF_GB: f64 = 8.0 * (1u64 << 30) as f64;
/// Most GB/s and nanoseconds: beyond what links have.
const MOST: f64 = 1e9;

/// Reads the network file `text`, called `name` in errors.
///
/// # Errors
/// If the text is not YAML, a key is missing, its list has another length than the others, or a value is not valid.
pub fn parse_astra_network(name: &str, text: &str) -> Result<AstraNetwork, FileError> {
    let source = Source { file: name };
    let root = parse_yaml(source, text)?;
    let Content::Map(entries) = &root.content else {
        let message = format!("a network is a mapping, but here is {}", root.what());
        let fault = source.fault(root.line, Some(root.column), message);
        return Err(fault.fix("write its keys, as in `topology: [ Ring ]`"));
    };
    let reader = Reader {
        source,
        line: root.line,
        entries,
    };
    let [kinds, npus, bandwidths, latencies] = reader.lists()?;
    let mut dimensions = Vec::new();
    for (index, kind) in kinds.iter().enumerate() {
        dimensions.push(AstraDimension {
            links: reader.links(kind)?,
            npus: reader.npus(npus[index])?,
            bandwidth: reader.bandwidth(bandwidths[index])?,
            latency: reader.latency(latencies[index])?,
        });
    }
    Ok(AstraNetwork {
        dimensions,
        warnings: reader.unused(),
    })
}

struct Reader<'a> {
    source: Source<'a>,
    line: usize,
    entries: &'a [Entry],
}

impl<'a> Reader<'a> {
    /// The items of the four lists, which have the same length. A single value is a list of one.
    fn lists(&self) -> Result<[Vec<&'a Node>; 4], FileError> {
        let mut lists = [const { Vec::new() }; 4];
        for (list, key) in lists.iter_mut().zip(KEYS) {
            *list = self.list(key)?;
        }
        let count = lists[0].len();
        for (list, key) in lists.iter().zip(KEYS) {
            if list.len() != count || list.is_empty() {
                let entry = self.entries.iter().find(|entry| entry.key == key);
                let line = entry.map_or(self.line, |entry| entry.line);
                let message = match list.len() {
                    0 => format!("`{key}` is empty"),
                    own => {
                        format!("the length of `{key}` is {own}, and that of `topology` {count}")
                    }
                };
                let fix = "write one value for each dimension";
                return Err(self.source.fault(line, None, message).fix(fix));
            }
        }
        Ok(lists)
    }

    fn list(&self, key: &str) -> Result<Vec<&'a Node>, FileError> {
        let Some(entry) = self.entries.iter().find(|entry| entry.key == key) else {
            let message = format!("the network has no `{key}`");
            let fix = format!("add `{key}`; a network has {}", KEYS.join(", "));
            return Err(self.source.fault(self.line, None, message).fix(fix));
        };
        Ok(match &entry.value.content {
            Content::List(items) => items.iter().collect(),
            Content::Null => Vec::new(),
            Content::Scalar(_) | Content::Map(_) => vec![&entry.value],
        })
    }

    fn links(&self, node: &Node) -> Result<AstraLinks, FileError> {
        match &node.content {
            Content::Scalar(text) if text == "Ring" => Ok(AstraLinks::Ring),
            Content::Scalar(text) if text == "FullyConnected" => Ok(AstraLinks::FullyConnected),
            Content::Scalar(text) if text == "Switch" => Ok(AstraLinks::Switch),
            _ => Err(self.wrong(
                node,
                "not a topology of a dimension",
                "write Ring, FullyConnected or Switch",
            )),
        }
    }

    fn npus(&self, node: &Node) -> Result<u32, FileError> {
        let number = match &node.content {
            Content::Scalar(text) => whole_number(text),
            _ => None,
        };
        let number = number.and_then(|number| u32::try_from(number).ok());
        let number = number.filter(|&number| number > 0);
        number.ok_or_else(|| {
            self.wrong(
                node,
                "not a number of NPUs",
                "write a whole number from 1 to 4294967295",
            )
        })
    }

    fn bandwidth(&self, node: &Node) -> Result<Rate, FileError> {
        let bps = self.number(node).map(|gigabytes| gigabytes * BITS_OF_GB);
        let bps = bps.filter(|&bps| bps >= 1.0);
        let fix = "write GB/s above 0 and up to 10^9, as in `50.0`";
        bps.map(|bps| Rate::from_bps(bps.round() as u64))
            .ok_or_else(|| self.wrong(node, "not a bandwidth", fix))
    }

    fn latency(&self, node: &Node) -> Result<Span, FileError> {
        let ps = self.number(node).map(|ns| ns * 1000.0);
        let fix = "write nanoseconds from 0 to 10^9, as in `500.0`";
        ps.map(|ps| Span::from_ps(ps.round() as u64))
            .ok_or_else(|| self.wrong(node, "not a latency", fix))
    }

    /// A number from zero to [`MOST`].
    fn number(&self, node: &Node) -> Option<f64> {
        let Content::Scalar(text) = &node.content else {
            return None;
        };
        let number: f64 = text.parse().ok()?;
        (0.0..=MOST).contains(&number).then_some(number)
    }

    fn wrong(&self, node: &Node, what: &str, fix: &str) -> FileError {
        let message = format!("{} is {what}", node.what());
        self.source
            .fault(node.line, Some(node.column), message)
            .fix(fix)
    }

    /// Warnings about keys that are not used.
    fn unused(&self) -> Vec<FileWarning> {
        let unknown = self
            .entries
            .iter()
            .filter(|entry| !KEYS.contains(&entry.key.as_str()));
        let warning = |entry: &Entry| FileWarning {
            file: self.source.file.into(),
            line: entry.line,
            message: format!("`{}` is not used", shown(&entry.key)),
        };
        unknown.map(warning).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use insta::assert_snapshot;

    #[test]
    fn dimensions_have_the_units_of_astra_sim() {
        let text = "topology: [ Ring, FullyConnected, Switch ]\nnpus_count: [ 4, 2, 8 ]\nbandwidth: [ 50.0, 1, 0.5 ]\nlatency: [ 500.0, 936.25, 0.0004 ]\n";
        let network = parse_astra_network("n.yml", text).unwrap();
        let dimension = |links, npus, bps, ps| AstraDimension {
            links,
            npus,
            bandwidth: Rate::from_bps(bps),
            latency: Span::from_ps(ps),
        };
        let expected = [
            dimension(AstraLinks::Ring, 4, 429_496_729_600, 500_000),
            dimension(AstraLinks::FullyConnected, 2, 8_589_934_592, 936_250),
            dimension(AstraLinks::Switch, 8, 4_294_967_296, 0),
        ];
        assert_eq!(network.dimensions, expected);
        assert_eq!(network.warnings, []);
    }

    #[test]
    fn single_values_and_json_are_read_and_other_keys_warned_of() {
        let text = "{\"topology\": \"Switch\", \"npus_count\": 8, \"bandwidth\": 400, \"latency\": 1, \"scale\": 2}";
        let network = parse_astra_network("n.json", text).unwrap();
        assert_eq!(network.dimensions.len(), 1);
        assert_snapshot!(network.warnings[0], @"n.json:1: `scale` is not used");
    }

    #[test]
    fn faults_name_the_place_and_a_fix() {
        let whole = "topology: [ Ring ]\nnpus_count: [ 4 ]\nbandwidth: [ 50 ]\nlatency: [ 500 ]\n";
        let errors = [
            ("topology: [ Ring ]\n", ""),
            ("[ Ring ]", "[ Ring, Ring ]"),
            ("[ Ring ]", "[ Torus ]"),
            ("[ Ring ]", "[]"),
            ("[ 4 ]", "[ 0 ]"),
            ("[ 4 ]", "[ 4, 4 ]"),
            ("[ 50 ]", "[ -50 ]"),
            ("[ 50 ]", "[ nan ]"),
            ("[ 500 ]", "[ [ 1 ] ]"),
        ]
        .map(|(old, new)| {
            let text = whole.replace(old, new);
            parse_astra_network("n.yml", &text).unwrap_err().to_string()
        });
        assert_snapshot!(errors.join("\n"), @"
        n.yml:1: the network has no `topology`
          fix: add `topology`; a network has topology, npus_count, bandwidth, latency
        n.yml:2: the length of `npus_count` is 1, and that of `topology` 2
          fix: write one value for each dimension
        n.yml:1:13: `Torus` is not a topology of a dimension
          fix: write Ring, FullyConnected or Switch
        n.yml:1: `topology` is empty
          fix: write one value for each dimension
        n.yml:2:15: `0` is not a number of NPUs
          fix: write a whole number from 1 to 4294967295
        n.yml:2: the length of `npus_count` is 2, and that of `topology` 1
          fix: write one value for each dimension
        n.yml:3:14: `-50` is not a bandwidth
          fix: write GB/s above 0 and up to 10^9, as in `50.0`
        n.yml:3:14: `nan` is not a bandwidth
          fix: write GB/s above 0 and up to 10^9, as in `50.0`
        n.yml:4:12: a list is not a latency
          fix: write nanoseconds from 0 to 10^9, as in `500.0`
        ");
    }
}
