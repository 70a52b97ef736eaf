//! Formats of files, each named after its simulator.

use crate::chakra::begins_as_a_trace;
use crate::goal::{begins_as_a_schedule, is_goal_binary};
use crate::hpcc::begins_with_a_number;
use crate::packed::beginning_of_packed;
use crate::simai::begins_with_a_policy;
use clearway_input::{InputError, InputKind};
use clearway_units::choices;
use std::io::Read as _;
use std::path::Path;

choices! {
    /// The format of a file.
    pub enum FileFormat {
        /// Found out from the first word, which is a number in HPCC's files and none in htsim's.
        Auto = "auto",
        /// htsim's `.topo` and `.cm`.
        Htsim = "htsim",
        /// Fabrics and flows of the HPCC simulator for ns-3 and of SimAI.
        Hpcc = "hpcc",
    }
}

impl FileFormat {
    /// True if `text` is to be read as a file of the HPCC simulator.
    ///
    /// `Auto` cannot confuse the formats: no text is valid in both, and the wrong reader would reject the text.
    pub fn is_hpcc(self, text: &str) -> bool {
        match self {
            Self::Auto => begins_with_a_number(text),
            Self::Htsim => false,
            Self::Hpcc => true,
        }
    }
}

choices! {
    /// The format of a trace of a job.
    pub enum TraceFormat {
        /// A schedule of LogGOPSim and ATLAHS, as text.
        Goal = "goal",
        /// The same in its binary form.
        GoalBinary = "goal-binary",
        /// The execution trace of a rank by Chakra, plain or packed.
        Chakra = "chakra",
        /// A workload of SimAI and AICB.
        Simai = "simai",
        /// Profile or execution trace of a rank by PyTorch, plain or packed.
        Pytorch = "pytorch",
    }
}

impl TraceFormat {
    /// The format of a file with this content, from its beginning: a word of the format, or a number that its writers put there. `None` if
    /// the format is unknown.
    pub fn detect(content: &[u8]) -> Option<Self> {
        if is_goal_binary(content) {
            return Some(Self::GoalBinary);
        }
        let packed = beginning_of_packed(content, HEAD);
        if !packed.is_empty() && begins_as_a_profile(beginning(&packed)) {
            return Some(Self::Pytorch);
        }
        if begins_as_a_trace(content) {
            return Some(Self::Chakra);
        }
        let text = beginning(content);
        if begins_as_a_schedule(text) {
            return Some(Self::Goal);
        }
        if begins_as_a_profile(text) {
            return Some(Self::Pytorch);
        }
        begins_with_a_policy(text).then_some(Self::Simai)
    }
}

/// True if `text` begins like a profile or an execution trace of PyTorch.
fn begins_as_a_profile(text: &str) -> bool {
    let text = text.trim_start_matches('\u{feff}').trim_start();
    let has = |key: &str| text.contains(&format!("\"{key}\""));
    text.starts_with('{')
        && (has("traceEvents")
            || (has("schemaVersion") && has("deviceProperties"))
            || (has("schema") && (has("nodes") || has("pid"))))
}

/// Number of bytes that determine the format of a file: comments may come first, but not without limit.
const HEAD: usize = 1 << 16;

/// The first bytes of the file at `path`, which suffice to determine its format.
///
/// # Errors
/// If the file cannot be read.
pub fn head(path: &Path) -> Result<Vec<u8>, InputError> {
    let mut head = Vec::new();
    clearway_input::open(path, InputKind::TRACE)?
        .take(HEAD as u64)
        .read_to_end(&mut head)?;
    Ok(head)
}

/// The text at the beginning of a file, up to the first byte that is not text.
pub(crate) fn beginning(content: &[u8]) -> &str {
    let head = &content[..content.len().min(HEAD)];
    match std::str::from_utf8(head) {
        Ok(text) => text,
        Err(error) => std::str::from_utf8(&head[..error.valid_up_to()]).unwrap_or(""),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        HpccHosts, SimaiPolicy, SimaiWorkload, StartUnit, parse_cm, parse_hpcc_flows,
        parse_hpcc_topology, parse_topo, write_chakra, write_goal, write_goal_binary, write_simai,
    };
    use clearway_workload::{CollectiveKind, JobProgram};

    #[test]
    fn the_first_word_tells() {
        for (text, is_hpcc) in [
            ("", false),
            ("# 1\n", false),
            ("# a comment\n\n 376 56 480\n", true),
            ("\u{feff}2\r\n", true),
            ("Nodes 2\n", false),
            ("0->1 start 0 size 1\n", false),
            ("-1\n", false),
        ] {
            assert_eq!(FileFormat::Auto.is_hpcc(text), is_hpcc, "{text:?}");
            assert!(FileFormat::Hpcc.is_hpcc(text) && !FileFormat::Htsim.is_hpcc(text));
        }
    }

    #[test]
    fn each_reader_refuses_what_is_not_its_own() {
        let htsim_reads = |text: &str| {
            parse_cm("x", text, StartUnit::Seconds).is_ok() || parse_topo("x", text).is_ok()
        };
        let hosts = HpccHosts {
            count: 2,
            numbers: None,
        };
        let hpcc_reads = |text: &str| {
            parse_hpcc_flows("x", text, hosts).is_ok() || parse_hpcc_topology("x", text).is_ok()
        };
        let flows = "1\n0 1 3 100 5 2\n";
        let fabric = "3 1 2\n2\n0 2 1Gbps 1us 0\n1 2 1Gbps 1us 0\n";
        for text in [flows, fabric, "0\n"] {
            assert!(hpcc_reads(text) && !htsim_reads(text), "{text}");
        }
        let matrix = "Nodes 2\nConnections 1\n0->1 start 0 size 1\n";
        assert!(htsim_reads(matrix) && !hpcc_reads(matrix));
    }

    #[test]
    fn traces_are_told_apart_by_how_they_begin() {
        let operation = clearway_workload::Operation::Collective {
            kind: CollectiveKind::AllReduce,
            bytes: clearway_units::Bytes::new(5),
            group: 0,
        };
        let rank = |operations| clearway_workload::RankProgram::new(operations, Vec::new());
        let collective = JobProgram {
            ranks: vec![rank(vec![operation])],
            groups: vec![vec![clearway_workload::Rank(0)]],
        };
        let program = JobProgram {
            ranks: vec![rank(Vec::new())],
            groups: Vec::new(),
        };
        let mut workload = SimaiWorkload::new(SimaiPolicy::HybridTransformer);
        workload.layers.push(crate::SimaiLayer {
            name: "layer".into(),
            ..crate::SimaiLayer::default()
        });
        let goal = write_goal(&program).unwrap();
        let commented = format!("\u{feff}/* é */\n// c\n{goal}");
        for (content, format) in [
            (goal.into_bytes(), Some(TraceFormat::Goal)),
            (commented.into_bytes(), Some(TraceFormat::Goal)),
            (
                write_goal_binary(&program).unwrap(),
                Some(TraceFormat::GoalBinary),
            ),
            (
                write_chakra(&collective).unwrap().traces.remove(0),
                Some(TraceFormat::Chakra),
            ),
            (vec![0x1f, 0x8b, 8, 0], Some(TraceFormat::Chakra)),
            (
                write_simai(&workload).unwrap().into_bytes(),
                Some(TraceFormat::Simai),
            ),
            (b"# c\nMICRO\n0\n".to_vec(), Some(TraceFormat::Simai)),
            (b"Nodes 2\nConnections 1\n".to_vec(), None),
            (b"376 56 480\n".to_vec(), None),
            (b"\xff\xfe".to_vec(), None),
            (Vec::new(), None),
        ] {
            assert_eq!(TraceFormat::detect(&content), format, "{content:?}");
        }
    }
}
