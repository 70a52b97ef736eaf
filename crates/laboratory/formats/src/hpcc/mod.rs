//! Fabrics and flows of the HPCC simulator for ns-3, and of its SimAI variant.
//!
//! A fabric:
//!
//! ```text
//! 5 1 4                          # nodes, switches, links
//! 4                              # the switches; all other nodes are hosts
//! 0 4 100Gbps 1000ns 0           # src dst rate delay error_rate, for each link
//! 1 4 100Gbps 1000ns 0
//! 2 4 100Gbps 1000ns 0
//! 3 4 100Gbps 1000ns 0
//! ```
//!
//! SimAI writes six words on the first line: nodes, GPUs per server, NVSwitches, switches, links, type of GPU. The NVSwitches then come
//! first on the second line.
//!
//! Flows:
//!
//! ```text
//! 2                              # flows
//! 0 3 3 100 2000000 2.0          # src dst pg dport bytes start-in-seconds, for each flow
//! 1 3 3 100 2000000 2.000000025
//! ```
//!
//! The readers accept every valid file with one record per line, as all generators write them; the ns-3 simulator ignores line breaks.
//! Numbers of switches may span several lines. In these points the readers are more lenient:
//! * comments from `#` to the end of the line are allowed anywhere (there: no comments);
//! * sizes have 64 bits (there: 32, so that a flow of 4 GiB has zero bytes), and times are exact decimals;
//! * flows may be in any order (there: sorted by start, else an event is scheduled in the past);
//! * several links may join the same two switches: all are used, with a warning (there: only the last).
//!
//! In other points the readers are stricter. These are errors: fewer records than announced, nodes that do not exist, a switch that is
//! named twice and unreachable hosts (there: ignored, or the run aborts). Records beyond the announced number are ignored, as there, but
//! with a warning.
//!
//! A host may have several links, as in SimAI's files with NVSwitches; the host forwards nothing between them. In a run, hosts have numbers
//! from 0. If switches have lower numbers than hosts in the fabric's file, hosts are renumbered in the same order, with a warning. Files of
//! flows use the numbers of the fabric's file. If the first line has four words, the third is the number of ToR switches and the fourth the
//! number of links, as in PowerTCP's files. If it has seven words, only the first three count.
//!
//! A configuration, `config.txt` or `SimAI.conf`, has a key with its values on each line. [`parse_hpcc_config`] rejects unknown keys, which
//! the simulator ignores.
//!
//! An error rate is the probability that a packet of any size is lost at the end of the link. It applies to all kinds of packets except
//! pause frames (there: to pause frames also).

mod config;
mod flows;
mod graph;
mod quantity;

#[cfg(test)]
mod tests;

pub use config::{HpccConfig, HpccSetting, HpccValue, parse_hpcc_config};
pub use flows::{HpccHosts, parse_hpcc_flows};
pub use graph::{HpccLink, HpccTopology, parse_hpcc_topology};

use crate::text::{Line, Source, Token, lines, shown, whole_number};
use clearway_workload::counted;
use clearway_workload::{FileError, FileWarning};
use std::ops::RangeInclusive;

/// True if `text` begins with a number, as the files of this module do. htsim's files begin with a word or with `0->1`, so no text is valid
/// in both formats.
pub(crate) fn begins_with_a_number(text: &str) -> bool {
    let first = lines(text).next();
    first.is_some_and(|line| line.tokens[0].text.bytes().all(|b| b.is_ascii_digit()))
}

/// A line that is split into the words of its record.
struct Record<'a> {
    source: Source<'a>,
    line: usize,
    tokens: &'a [Token<'a>],
    names: &'static [&'static str],
}

impl<'a> Record<'a> {
    /// Record on `line`; `what` is its name in messages.
    fn split_line(
        source: Source<'a>,
        line: &'a Line<'a>,
        what: &str,
        names: &'static [&'static str],
    ) -> Result<Self, FileError> {
        let (found, needed) = (line.tokens.len(), names.len());
        if found != needed {
            let column = line.tokens.get(needed).map(|token| token.column);
            let message = format!("{what} has {needed} words, but this line has {found}");
            let fix = format!("write `{}`, each on a separate line", names.join(" "));
            return Err(source.fault(line.number, column, message).fix(fix));
        }
        Ok(Self {
            source,
            line: line.number,
            tokens: &line.tokens,
            names,
        })
    }

    /// The whole number at `index`.
    fn number(&self, index: usize, range: RangeInclusive<u64>) -> Result<u64, FileError> {
        let value = whole_number(self.tokens[index].text);
        value.filter(|value| range.contains(value)).ok_or_else(|| {
            let (least, most) = (range.start(), range.end());
            let fix = format!("write a whole number from {least} to {most}");
            self.no_value(index, &fix)
        })
    }

    /// Error about the word at `index`, which is not one of the allowed words.
    fn no_value(&self, index: usize, fix: &str) -> FileError {
        let (text, name) = (shown(self.tokens[index].text), self.names[index]);
        self.fault(
            index,
            format!("`{text}` is not a valid value for `{name}`"),
            fix,
        )
    }

    /// A fault of the word at `index`.
    fn fault(&self, index: usize, message: impl Into<String>, fix: impl Into<String>) -> FileError {
        let column = self.tokens[index].column;
        let fault = self.source.fault(self.line, Some(column), message);
        fault.fix(fix)
    }
}

/// Number of records that a file announces, and the line of the announcement.
#[derive(Clone, Copy)]
struct Announced {
    count: u64,
    line: usize,
    /// `link` or `flow`.
    noun: &'static str,
    /// Name of the number in the file, such as `link_num`.
    name: &'static str,
}

impl Announced {
    fn counted(self) -> String {
        counted(usize::try_from(self.count).unwrap_or(usize::MAX), self.noun)
    }

    /// Warning about `lines` lines from `line` on, after all announced records.
    fn further(self, source: Source<'_>, line: usize, lines: usize) -> FileWarning {
        let message = format!(
            "line {} announces {}: {} from here on {} not used, as in the HPCC simulator; correct `{}` if they should be",
            self.line,
            self.counted(),
            counted(lines, "line"),
            if lines == 1 { "is" } else { "are" },
            self.name
        );
        FileWarning {
            file: source.file.into(),
            line,
            message,
        }
    }

    /// Error about a file that ends on `line` after `found` records.
    fn too_few(self, source: Source<'_>, line: usize, found: u64) -> FileError {
        let message = format!(
            "line {} announces {}, but the file has {found}",
            self.line,
            self.counted()
        );
        let fix = format!(
            "write {found} as `{}`, or restore the missing lines if the file was cut short",
            self.name
        );
        source.fault(line, None, message).fix(fix)
    }
}
