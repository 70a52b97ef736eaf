//! Recognition of files by their first bytes, so that errors can name the kind of a file in the wrong place.

use crate::format::{TraceFormat, beginning};
use crate::hpcc::begins_with_a_number;
use crate::text::lines;

/// Kind of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KnownFile {
    /// Connection matrix of htsim.
    Matrix,
    /// Topology of htsim.
    Topo,
    /// Topology or flows of the HPCC simulator for ns-3, or of SimAI.
    Hpcc,
    /// Configuration of the HPCC simulator for ns-3, or of SimAI's network.
    HpccConfiguration,
    /// Trace of a job.
    Trace(TraceFormat),
    /// Network of ASTRA-sim.
    AstraNetwork,
    /// System of ASTRA-sim.
    AstraSystem,
    /// Infrastructure as a graph, of infragraph.
    Infragraph,
    /// Topology of a node that NCCL writes.
    NcclTopology,
    /// Rings and trees that NCCL writes.
    NcclGraph,
    /// Algorithm of MSCCL.
    MscclAlgorithm,
}

impl KnownFile {
    /// The kind of a file with this content; the file's [`head`](crate::head) suffices. `None` if the kind is unknown.
    pub fn detect(content: &[u8]) -> Option<Self> {
        // Traces first: the length at the beginning of a binary trace can look like a number of HPCC's files.
        if let Some(format) = TraceFormat::detect(content) {
            return Some(Self::Trace(format));
        }
        let text = beginning(content);
        let text = text.trim_start_matches('\u{feff}').trim_start();
        match text.chars().next() {
            Some('{') => of_json(text),
            Some('<') => of_xml(text),
            _ => of_words(text),
        }
    }

    /// As [`detect`](Self::detect), for a file with a name: Chakra traces without a version are recognized by their name.
    pub fn named(name: &str, content: &[u8]) -> Option<Self> {
        match Self::detect(content) {
            None | Some(Self::Hpcc) if name.ends_with(".et") => {
                Some(Self::Trace(TraceFormat::Chakra))
            }
            known => known,
        }
    }

    /// The kind in words, with an article.
    pub const fn what(self) -> &'static str {
        match self {
            Self::Matrix => "a connection matrix of htsim",
            Self::Topo => "a topology of htsim",
            Self::Hpcc => "a topology or a file of flows of the HPCC simulator or SimAI",
            Self::HpccConfiguration => "a configuration of the HPCC simulator or SimAI",
            Self::Trace(TraceFormat::Goal | TraceFormat::GoalBinary) => "a GOAL schedule",
            Self::Trace(TraceFormat::Chakra) => "a Chakra trace",
            Self::Trace(TraceFormat::Simai) => "a workload of SimAI",
            Self::Trace(TraceFormat::Pytorch) => "a profile or an execution trace of PyTorch",
            Self::AstraNetwork => "a network of ASTRA-sim",
            Self::AstraSystem => "a system of ASTRA-sim",
            Self::Infragraph => "an InfraGraph",
            Self::NcclTopology => "a topology of NCCL",
            Self::NcclGraph => "a graph of NCCL",
            Self::MscclAlgorithm => "an algorithm of MSCCL",
        }
    }

    /// Advice for a file of this kind, called `name`: the way to read it, or that it is not supported.
    pub fn fix(self, name: &str) -> String {
        match self {
            Self::Matrix => format!("`clearway run --set topology.file=TOPO --set workload.file={name}`"),
            Self::Topo => format!("`clearway run --set topology.file={name} --set workload.file=MATRIX`"),
            Self::Hpcc => "`clearway run --set topology.file=TOPOLOGY --set workload.file=FLOWS`".into(),
            Self::HpccConfiguration => format!(
                "`clearway import hpcc {name}` prints its scenario; for SimAI.conf it is \
                 `clearway import simai {name} --topology TOPOLOGY --workload WORKLOAD`"
            ),
            Self::Trace(_) => format!("`clearway run --set workload.kind=trace --set workload.file={name}`"),
            Self::AstraSystem => format!("`clearway run --set workload.kind=trace --set workload.file=TRACE --set workload.system={name}`"),
            Self::AstraNetwork | Self::Infragraph => format!("`clearway run --set topology.file={name}`"),
            Self::NcclTopology => format!("`clearway run --set topology.file={name} --set topology.nodes=2`"),
            Self::NcclGraph => {
                "it is not read: write the topology with NCCL_TOPO_DUMP_FILE, and choose rings or trees by the algorithm of the workload".into()
            }
            Self::MscclAlgorithm => {
                "it is not read: choose an algorithm (`clearway list workloads`), or write a GOAL schedule".into()
            }
        }
    }
}

fn of_json(text: &str) -> Option<KnownFile> {
    let has = |key: &str| text.contains(&format!("\"{key}\""));
    let system = [
        "all-reduce-implementation",
        "all-gather-implementation",
        "preferred-dataset-splits",
        "scheduling-policy",
    ];
    match () {
        () if system.iter().any(|key| has(key)) => Some(KnownFile::AstraSystem),
        () if has("infrastructure")
            || has("devices") && (has("instances") || has("components")) =>
        {
            Some(KnownFile::Infragraph)
        }
        () => None,
    }
}

fn of_xml(text: &str) -> Option<KnownFile> {
    match () {
        () if text.contains("<system") => Some(KnownFile::NcclTopology),
        () if text.contains("<graphs") => Some(KnownFile::NcclGraph),
        () if text.contains("<algo") => Some(KnownFile::MscclAlgorithm),
        () => None,
    }
}

fn of_words(text: &str) -> Option<KnownFile> {
    if begins_with_a_number(text) {
        return Some(KnownFile::Hpcc);
    }
    let text = text.strip_prefix("---").unwrap_or(text);
    let begins = |word: &str| {
        let mut lines = lines(text);
        lines.any(|line| line.tokens[0].text == word)
    };
    let first = lines(text).next()?.tokens[0].text;
    match first {
        "Nodes" | "Podsize" | "Tiers" if begins("Tiers") => Some(KnownFile::Topo),
        "Nodes" | "Connections" | "Triggers" | "Failures" => Some(KnownFile::Matrix),
        "infrastructure:" | "instances:" | "devices:" => Some(KnownFile::Infragraph),
        "name:" | "description:" | "annotations:"
            if begins("devices:") || begins("infrastructure:") =>
        {
            Some(KnownFile::Infragraph)
        }
        _ if begins("npus_count:") || begins("topology:") => Some(KnownFile::AstraNetwork),
        _ if ["ENABLE_QCN", "CC_MODE", "TOPOLOGY_FILE", "FLOW_FILE"]
            .iter()
            .any(|key| begins(key)) =>
        {
            Some(KnownFile::HpccConfiguration)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_known_by_how_they_begin() {
        for (text, known) in [
            ("Nodes 2\nConnections 1\n0->1 size 5\n", KnownFile::Matrix),
            ("# c\nNodes 8\nTiers 2\nPodsize 8\n", KnownFile::Topo),
            ("3 1 2\n2\n", KnownFile::Hpcc),
            ("ENABLE_QCN 1\nCC_MODE 3\n", KnownFile::HpccConfiguration),
            (
                "# a\nUSE_DYNAMIC_PFC_THRESHOLD 1\nTOPOLOGY_FILE t\n",
                KnownFile::HpccConfiguration,
            ),
            ("num_ranks 2\n", KnownFile::Trace(TraceFormat::Goal)),
            ("MICRO\n1\n", KnownFile::Trace(TraceFormat::Simai)),
            (
                "topology: [ Ring ]\nnpus_count: [ 4 ]\n",
                KnownFile::AstraNetwork,
            ),
            ("{\"scheduling-policy\": \"LIFO\"}", KnownFile::AstraSystem),
            ("infrastructure:\n  name: x\n", KnownFile::Infragraph),
            ("---\nname: x\ndevices:\n- name: y\n", KnownFile::Infragraph),
            (
                "{\"devices\": [{\"components\": []}]}",
                KnownFile::Infragraph,
            ),
            (
                "<?xml version=\"1.0\"?>\n<system version=\"1\">",
                KnownFile::NcclTopology,
            ),
            ("<graphs version=\"1\">", KnownFile::NcclGraph),
            ("<algo name=\"ring\">", KnownFile::MscclAlgorithm),
            (
                "{\"schemaVersion\": 1, \"traceEvents\": []}",
                KnownFile::Trace(TraceFormat::Pytorch),
            ),
            (
                "{\"schema\": \"1.1.1\", \"nodes\": []}",
                KnownFile::Trace(TraceFormat::Pytorch),
            ),
        ] {
            assert_eq!(KnownFile::detect(text.as_bytes()), Some(known), "{text}");
            assert!(!known.what().is_empty() && !known.fix("x").is_empty());
        }
        for text in [
            "",
            "name = \"x\"\n[topology]\n",
            "{}",
            "<html>",
            "hello world\n",
        ] {
            assert_eq!(KnownFile::detect(text.as_bytes()), None, "{text}");
        }
        let chakra = Some(KnownFile::Trace(TraceFormat::Chakra));
        // `3` is the length of a message, 51 bytes, whose first field is text.
        for content in [&b""[..], b"3\x0a\x02hi", b"\x05\x0a\xff"] {
            assert_eq!(KnownFile::named("x.0.et", content), chakra, "{content:?}");
        }
        let pytorch = b"{\"schema\": \"1.1.1\", \"nodes\": []}";
        assert_eq!(
            KnownFile::named("x.0.et", pytorch),
            Some(KnownFile::Trace(TraceFormat::Pytorch))
        );
    }
}
