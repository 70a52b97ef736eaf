//! Systems of ASTRA-sim: the JSON files that say how ranks run collectives.
//!
//! ```json
//! {
//!   "preferred-dataset-splits": 4,
//!   "active-chunks-per-dimension": 1,
//!   "endpoint-delay": 10,
//!   "local-mem-bw": 1600,
//!   "all-reduce-implementation": ["ring", "halvingDoubling"],
//!   "all-to-all-implementation": ["direct", "direct4"]
//! }
//! ```
//!
//! Each item of an implementation is the algorithm of a dimension of the network. `oneRing`, `oneDirect` and `oneHalvingDoubling` are one
//! algorithm over all dimensions at once; a number after `direct` is the most messages in flight. Keys and units are those of ASTRA-sim
//! (`Sys.cc`, `CollectiveImplLookup.cc`).

use crate::text::{Source, shown, whole_number};
use crate::yaml::{Content, Entry, Node, parse_yaml};
use clearway_units::{Rate, Span};
use clearway_workload::{FileError, FileWarning};
use std::num::NonZero;

/// Algorithm of a dimension.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AstraAlgorithm {
    /// Block by block around a ring.
    Ring,
    /// Each rank to each other, with at most this many messages in flight, if there is a limit.
    Direct(Option<NonZero<u32>>),
    /// Pairs of ranks exchange halves.
    HalvingDoubling,
    /// Up and down two trees.
    DoubleBinaryTree,
}

/// Algorithms of an operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AstraImplementation {
    /// One over all dimensions at once.
    Flat(AstraAlgorithm),
    /// One for each dimension, from the inside outwards.
    ByDimension(Vec<AstraAlgorithm>),
}

/// Computation by the roofline model.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AstraRoofline {
    /// Peak performance in TFLOP/s.
    pub peak_tflops: f64,
}

/// Content of a system file.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct AstraSystem {
    /// Algorithms of an all-reduce, if the file has any. Those of other operations follow.
    pub all_reduce: Option<AstraImplementation>,
    /// Of an all-gather.
    pub all_gather: Option<AstraImplementation>,
    /// Of a reduce-scatter.
    pub reduce_scatter: Option<AstraImplementation>,
    /// Of an all-to-all.
    pub all_to_all: Option<AstraImplementation>,
    /// Parts into which the data of a collective is cut (`preferred-dataset-splits`).
    pub splits: Option<NonZero<u32>>,
    /// Most parts in a dimension at a time (`active-chunks-per-dimension`).
    pub active_splits: Option<NonZero<u32>>,
    /// Time before a rank sends a message (`endpoint-delay`, in ns).
    pub endpoint_delay: Option<Span>,
    /// Bandwidth of a rank's memory (`local-mem-bw`, in GB/s of 10^9 bytes).
    pub memory_bandwidth: Option<Rate>,
    /// Peak performance, if computations are estimated (`roofline-enabled`).
    pub roofline: Option<AstraRoofline>,
    /// True if an all-reduce runs as a whole in each dimension (`collective-optimization` is `baseline`).
    pub is_baseline: bool,
    /// Warnings about keys that are not used.
    pub warnings: Vec<FileWarning>,
}

/// Keys that change no time in ASTRA-sim: an account of memory, and what it reads and does not use.
const WITHOUT_EFFECT: [&str; 5] = [
    "boost-mode",
    "local-reduction-delay",
    "local-mem-trace-filename",
    "trace-enabled",
    "track-local-mem",
];
/// Most GB/s, TFLOP/s and nanoseconds: beyond what devices have.
const MOST: f64 = 1e9;

/// Reads the system file `text`, called `name` in errors.
///
/// # Errors
/// If the text is not JSON, or a value is not valid or asks for what is not simulated.
pub fn parse_astra_system(name: &str, text: &str) -> Result<AstraSystem, FileError> {
    let source = Source { file: name };
    let root = parse_yaml(source, text)?;
    let Content::Map(entries) = &root.content else {
        let message = format!("a system is a mapping, but here is {}", root.what());
        let fault = source.fault(root.line, Some(root.column), message);
        return Err(
            fault.fix("write its keys, as in `{\"all-reduce-implementation\": [\"ring\"]}`")
        );
    };
    let mut reader = Reader {
        source,
        system: AstraSystem::default(),
        peak: None,
        has_roofline: None,
    };
    entries.iter().try_for_each(|entry| reader.entry(entry))?;
    if let Some(line) = reader.has_roofline {
        let Some(peak_tflops) = reader.peak else {
            let fault = source.fault(line, None, "there is no `peak-perf` for the roofline");
            return Err(fault.fix("add `peak-perf` in TFLOP/s, or set `roofline-enabled` to 0"));
        };
        reader.system.roofline = Some(AstraRoofline { peak_tflops });
    }
    Ok(reader.system)
}

struct Reader<'a> {
    source: Source<'a>,
    system: AstraSystem,
    peak: Option<f64>,
    /// The line that asks for a roofline.
    has_roofline: Option<usize>,
}

impl Reader<'_> {
    fn entry(&mut self, entry: &Entry) -> Result<(), FileError> {
        let node = &entry.value;
        match entry.key.as_str() {
            "all-reduce-implementation" => self.system.all_reduce = self.implementation(node)?,
            "all-gather-implementation" => self.system.all_gather = self.implementation(node)?,
            "reduce-scatter-implementation" => {
                self.system.reduce_scatter = self.implementation(node)?;
            }
            "all-to-all-implementation" => self.system.all_to_all = self.implementation(node)?,
            "preferred-dataset-splits" => self.system.splits = Some(self.count(node)?),
            "active-chunks-per-dimension" => self.system.active_splits = Some(self.count(node)?),
            "endpoint-delay" => {
                let ps = self.number(node, "nanoseconds, as in 10")? * 1000.0;
                self.system.endpoint_delay = Some(Span::from_ps(ps.round() as u64));
            }
            "local-mem-bw" => {
                let bps = self.number(node, "GB/s above 0, as in 1600")? * 8e9;
                // ASTRA-sim's default of zero stands for none.
                self.system.memory_bandwidth =
                    (bps >= 1.0).then(|| Rate::from_bps(bps.round() as u64));
            }
            "peak-perf" => self.peak = Some(self.number(node, "TFLOP/s, as in 312")?),
            "roofline-enabled" => {
                self.has_roofline = self.flag(node)?.then_some(entry.line);
            }
            "collective-optimization" => {
                self.system.is_baseline = match self.word(node) {
                    "localBWAware" => false,
                    "baseline" => true,
                    _ => {
                        return Err(self.wrong(
                            node,
                            "not an optimization",
                            "write localBWAware or baseline",
                        ));
                    }
                };
            }
            "scheduling-policy" => {
                if !["LIFO", "FIFO", "EXPLICIT"].contains(&self.word(node)) {
                    return Err(self.wrong(node, "not a policy", "write LIFO, FIFO or EXPLICIT"));
                }
                self.warn(
                    entry,
                    "is not used: collectives of a rank that overlap share its links",
                );
            }
            _ => self.further(entry)?,
        }
        Ok(())
    }

    /// Keys that change nothing here.
    fn further(&mut self, entry: &Entry) -> Result<(), FileError> {
        let node = &entry.value;
        match entry.key.as_str() {
            "model-shared-bus" if self.flag(node)? => {
                self.warn(
                    entry,
                    "is not used: the bus between a rank and its memory is not simulated",
                );
            }
            "replay-only" if self.flag(node)? => {
                self.warn(entry, "is not used: collectives are simulated");
            }
            // The parameters of the bus, and switches that are off.
            "L" | "o" | "g" | "G" | "model-shared-bus" | "replay-only" => {}
            key if key.ends_with("-implementation-custom")
                || key == "per-node-custom-implementation" =>
            {
                let message = format!("`{}`: algorithms as traces are not read", shown(key));
                let fix = "name an algorithm by dimension, as in `\"all-reduce-implementation\": [\"ring\"]`, or run the messages as a trace";
                return Err(self
                    .source
                    .fault(entry.line, Some(entry.column), message)
                    .fix(fix));
            }
            key if WITHOUT_EFFECT.contains(&key) => {}
            _ => self.warn(entry, "is not known, and not used"),
        }
        Ok(())
    }

    fn implementation(&self, node: &Node) -> Result<Option<AstraImplementation>, FileError> {
        let items = match &node.content {
            Content::List(items) => items.iter().collect(),
            Content::Scalar(_) => vec![node],
            Content::Null | Content::Map(_) => {
                return Err(self.wrong(
                    node,
                    "not a list of algorithms",
                    "write a list, as in [\"ring\"]",
                ));
            }
        };
        let mut algorithms = Vec::with_capacity(items.len());
        for item in &items {
            let (algorithm, is_flat) = self.algorithm(item)?;
            if is_flat && items.len() > 1 {
                let fix = "write it alone, or one algorithm for each dimension";
                return Err(self.wrong(item, "for all dimensions at once", fix));
            }
            if is_flat {
                return Ok(Some(AstraImplementation::Flat(algorithm)));
            }
            algorithms.push(algorithm);
        }
        Ok((!algorithms.is_empty()).then_some(AstraImplementation::ByDimension(algorithms)))
    }

    /// An algorithm, and whether it is one over all dimensions.
    fn algorithm(&self, node: &Node) -> Result<(AstraAlgorithm, bool), FileError> {
        let word = self.word(node);
        let fix = "write ring, direct, halvingDoubling, doubleBinaryTree, oneRing, oneDirect or oneHalvingDoubling";
        let wrong = || self.wrong(node, "not an algorithm", fix);
        Ok(match word {
            "ring" => (AstraAlgorithm::Ring, false),
            "oneRing" => (AstraAlgorithm::Ring, true),
            "halvingDoubling" => (AstraAlgorithm::HalvingDoubling, false),
            "oneHalvingDoubling" => (AstraAlgorithm::HalvingDoubling, true),
            "doubleBinaryTree" => (AstraAlgorithm::DoubleBinaryTree, false),
            _ => {
                let (window, is_flat) =
                    match (word.strip_prefix("direct"), word.strip_prefix("oneDirect")) {
                        (Some(window), _) => (window, false),
                        (None, Some(window)) => (window, true),
                        (None, None) => return Err(wrong()),
                    };
                let window = match window {
                    "" => None,
                    digits => {
                        let number =
                            whole_number(digits).and_then(|number| u32::try_from(number).ok());
                        Some(number.and_then(NonZero::new).ok_or_else(wrong)?)
                    }
                };
                (AstraAlgorithm::Direct(window), is_flat)
            }
        })
    }

    fn word<'n>(&self, node: &'n Node) -> &'n str {
        match &node.content {
            Content::Scalar(text) => text,
            _ => "",
        }
    }

    fn count(&self, node: &Node) -> Result<NonZero<u32>, FileError> {
        let number = whole_number(self.word(node)).and_then(|number| u32::try_from(number).ok());
        let fix = "write a whole number from 1 to 4294967295";
        number
            .and_then(NonZero::new)
            .ok_or_else(|| self.wrong(node, "not a count", fix))
    }

    fn flag(&self, node: &Node) -> Result<bool, FileError> {
        match self.word(node) {
            "0" | "false" => Ok(false),
            "1" | "true" => Ok(true),
            _ => Err(self.wrong(node, "not 0 or 1", "write 0 or 1")),
        }
    }

    fn number(&self, node: &Node, what: &str) -> Result<f64, FileError> {
        let number = self.word(node).parse().ok();
        let number = number.filter(|number| (0.0..=MOST).contains(number));
        number.ok_or_else(|| {
            self.wrong(
                node,
                "not a number from 0 to 10^9",
                &format!("write {what}"),
            )
        })
    }

    fn warn(&mut self, entry: &Entry, what: &str) {
        self.system.warnings.push(FileWarning {
            file: self.source.file.into(),
            line: entry.line,
            message: format!("`{}` {what}", shown(&entry.key)),
        });
    }

    fn wrong(&self, node: &Node, what: &str, fix: &str) -> FileError {
        let message = format!("{} is {what}", node.what());
        self.source
            .fault(node.line, Some(node.column), message)
            .fix(fix)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use insta::assert_snapshot;

    #[test]
    fn algorithms_and_limits_are_read() {
        let text = r#"{
            "all-reduce-implementation": ["ring", "halvingDoubling", "doubleBinaryTree"],
            "all-gather-implementation": ["oneDirect4"],
            "reduce-scatter-implementation": "direct",
            "all-to-all-implementation": ["direct2", "ring"],
            "preferred-dataset-splits": 4, "active-chunks-per-dimension": 2,
            "endpoint-delay": 10, "local-mem-bw": 1600.5,
            "collective-optimization": "localBWAware",
            "roofline-enabled": 1, "peak-perf": 312,
            "boost-mode": 0, "model-shared-bus": 0, "L": 1
        }"#;
        let system = parse_astra_system("s.json", text).unwrap();
        use AstraAlgorithm::{Direct, DoubleBinaryTree, HalvingDoubling, Ring};
        use AstraImplementation::{ByDimension, Flat};
        let expected = AstraSystem {
            all_reduce: Some(ByDimension(vec![Ring, HalvingDoubling, DoubleBinaryTree])),
            all_gather: Some(Flat(Direct(NonZero::new(4)))),
            reduce_scatter: Some(ByDimension(vec![Direct(None)])),
            all_to_all: Some(ByDimension(vec![Direct(NonZero::new(2)), Ring])),
            splits: NonZero::new(4),
            active_splits: NonZero::new(2),
            endpoint_delay: Some(Span::from_ns(10)),
            memory_bandwidth: Some(Rate::from_bps(12_804_000_000_000)),
            roofline: Some(AstraRoofline { peak_tflops: 312.0 }),
            is_baseline: false,
            warnings: Vec::new(),
        };
        assert_eq!(system, expected);
    }

    #[test]
    fn what_is_not_used_is_a_warning() {
        let text = "{\"scheduling-policy\": \"LIFO\",\n \"model-shared-bus\": 1,\n \"replay-only\": 1,\n \"colour\": 3}";
        let system = parse_astra_system("s.json", text).unwrap();
        let warnings: Vec<String> = system.warnings.iter().map(ToString::to_string).collect();
        assert_snapshot!(warnings.join("\n"), @"
        s.json:1: `scheduling-policy` is not used: collectives of a rank that overlap share its links
        s.json:2: `model-shared-bus` is not used: the bus between a rank and its memory is not simulated
        s.json:3: `replay-only` is not used: collectives are simulated
        s.json:4: `colour` is not known, and not used
        ");
    }

    #[test]
    fn faults_name_the_place_and_a_fix() {
        let errors = [
            "[]",
            "{\"all-reduce-implementation\": [\"rings\"]}",
            "{\"all-reduce-implementation\": [\"direct0\"]}",
            "{\"all-reduce-implementation\": [\"ring\", \"oneRing\"]}",
            "{\"all-reduce-implementation\": {}}",
            "{\"all-reduce-implementation-custom\": [\"a.xml\"]}",
            "{\"preferred-dataset-splits\": 0}",
            "{\"endpoint-delay\": -1}",
            "{\"collective-optimization\": \"none\"}",
            "{\"scheduling-policy\": \"SJF\"}",
            "{\"roofline-enabled\": 1}",
            "{\"roofline-enabled\": 2}",
        ]
        .map(|text| parse_astra_system("s.json", text).unwrap_err().to_string());
        assert_snapshot!(errors.join("\n"), @r#"
        s.json:1:1: a system is a mapping, but here is a list
          fix: write its keys, as in `{"all-reduce-implementation": ["ring"]}`
        s.json:1:32: `rings` is not an algorithm
          fix: write ring, direct, halvingDoubling, doubleBinaryTree, oneRing, oneDirect or oneHalvingDoubling
        s.json:1:32: `direct0` is not an algorithm
          fix: write ring, direct, halvingDoubling, doubleBinaryTree, oneRing, oneDirect or oneHalvingDoubling
        s.json:1:40: `oneRing` is for all dimensions at once
          fix: write it alone, or one algorithm for each dimension
        s.json:1:31: a mapping is not a list of algorithms
          fix: write a list, as in ["ring"]
        s.json:1:2: `all-reduce-implementation-custom`: algorithms as traces are not read
          fix: name an algorithm by dimension, as in `"all-reduce-implementation": ["ring"]`, or run the messages as a trace
        s.json:1:30: `0` is not a count
          fix: write a whole number from 1 to 4294967295
        s.json:1:20: `-1` is not a number from 0 to 10^9
          fix: write nanoseconds, as in 10
        s.json:1:29: `none` is not an optimization
          fix: write localBWAware or baseline
        s.json:1:23: `SJF` is not a policy
          fix: write LIFO, FIFO or EXPLICIT
        s.json:1: there is no `peak-perf` for the roofline
          fix: add `peak-perf` in TFLOP/s, or set `roofline-enabled` to 0
        s.json:1:22: `2` is not 0 or 1
          fix: write 0 or 1
        "#);
    }
}
