//! Which simulator a file was written for.

use crate::hpcc::begins_with_a_number;
use clearway_units::choices;

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
    /// `Auto` cannot take one for the other: no text is sound in both formats, and the wrong reader would refuse it.
    pub fn is_hpcc(self, text: &str) -> bool {
        match self {
            Self::Auto => begins_with_a_number(text),
            Self::Htsim => false,
            Self::Hpcc => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{StartUnit, parse_cm, parse_hpcc_flows, parse_hpcc_topology, parse_topo};

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
        let hpcc_reads = |text: &str| {
            parse_hpcc_flows("x", text, 2).is_ok() || parse_hpcc_topology("x", text).is_ok()
        };
        let flows = "1\n0 1 3 100 5 2\n";
        let fabric = "3 1 2\n2\n0 2 1Gbps 1us 0\n1 2 1Gbps 1us 0\n";
        for text in [flows, fabric, "0\n"] {
            assert!(hpcc_reads(text) && !htsim_reads(text), "{text}");
        }
        let matrix = "Nodes 2\nConnections 1\n0->1 start 0 size 1\n";
        assert!(htsim_reads(matrix) && !hpcc_reads(matrix));
    }
}
