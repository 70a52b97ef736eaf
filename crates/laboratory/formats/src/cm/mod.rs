//! htsim's connection matrices (`.cm`).
//!
//! Plain text with one record per line:
//!
//! ```text
//! Nodes 16
//! Connections 2
//! Triggers 1
//! 0->13 id 1 start 0 size 2000000 send_done_trigger 1
//! 13->0 id 2 trigger 1 size 2000000
//! trigger id 1 oneshot
//! ```
//!
//! The reader accepts every valid file of htsim. In these points it is more lenient than htsim:
//! * runs of blanks and tabs may separate words, lines may end in blanks or a carriage return (htsim: exactly one blank);
//! * comments from `#` to the end of the line are allowed anywhere (htsim: only in the header);
//! * sizes, ids and times have 64 bits and times are exact decimals (htsim: 32 bits, and times pass through a 24-bit mantissa);
//! * `id` may be anywhere on its line (htsim: before `trigger`);
//! * `recv_done_trigger` works (`htsim_uec` stores it and never fires it).
//!
//! In other points it is stricter. These are errors: unknown header lines, repeated keywords, a missing `size`, flows that never start and
//! one-shot triggers that are activated too often. (htsim ignores them, reads uninitialised memory, stays silent or aborts in the middle of
//! the run.) Activations of a multishot beyond the number of waiting flows cause a warning.
//!
//! * `prio` is read and ignored, with a warning: only htsim's NDP uses it.
//! * `msg` and `msgid` turn the lines with the same id into messages of one connection, each posted at its start. Triggers of messages and
//!   `addon` are rejected.
//! * `size 0` is an endless flow, with a warning: a petabyte, which no run sends.
//! * `failure` lines become [`CmFile::failures`], for the builder of the topology. htsim itself supports only `AGG` lines.

mod matrix;
mod record_set;
mod records;
mod write;

#[cfg(test)]
mod tests;

pub use matrix::{CmConnection, CmFile, LinkFailure, StartUnit, SwitchLayer};
pub use write::write_cm;

use crate::line_words::Words;
use crate::text::{Line, Source, Token, lines};
use clearway_workload::FileError;
use record_set::CmRecords;
use records::RecordReader;

/// Reads the connection matrix `text`; errors call the file `name`.
///
/// # Errors
/// At the first invalid line, or else where the file as a whole is inconsistent.
pub fn parse_cm(name: &str, text: &str, unit: StartUnit) -> Result<CmFile, FileError> {
    let source = Source { file: name };
    let mut reader = Reader {
        source,
        unit,
        whole: CmRecords::new(source),
    };
    for line in lines(text) {
        reader.whole.last_line = line.number;
        reader.record(&line)?;
    }
    reader.whole.finish(unit)
}

const HEADERS: [&str; 4] = ["Nodes", "Connections", "Triggers", "Failures"];
const FIRST_WORDS: [&str; 6] = [
    "Nodes",
    "Connections",
    "Triggers",
    "Failures",
    "trigger",
    "failure",
];

struct Reader<'a> {
    source: Source<'a>,
    unit: StartUnit,
    whole: CmRecords<'a>,
}

impl Reader<'_> {
    fn record(&mut self, line: &Line<'_>) -> Result<(), FileError> {
        let (first, mut words) = Words::split(self.source, line);
        if let Some(header) = HEADERS.into_iter().find(|&header| header == first.text) {
            return self.header(header, first, &mut words);
        }
        let body = first.text.contains("->") || matches!(first.text, "trigger" | "failure");
        if !body {
            return Err(self.unknown_record(line, first));
        }
        let mut records = RecordReader {
            source: self.source,
            line: line.number,
            unit: self.unit,
            nodes: self.whole.known_nodes(line.number)?,
        };
        match first.text {
            "trigger" => self
                .whole
                .triggers
                .push(records.trigger(first, &mut words)?),
            "failure" => self
                .whole
                .failures
                .push(records.failure(first, &mut words)?),
            _ => self.whole.flows.push(records.flow(first, &mut words)?),
        }
        Ok(())
    }

    fn unknown_record(&self, line: &Line<'_>, first: Token<'_>) -> FileError {
        match line.tokens.get(1) {
            Some(second) if second.text.starts_with("->") => self
                .source
                .fault(line.number, Some(second.column), "a blank before the arrow")
                .fix("write source, arrow and destination as one word: `0->13`"),
            _ => self.source.unknown(line.number, first, &FIRST_WORDS),
        }
    }

    fn header(
        &mut self,
        name: &'static str,
        keyword: Token<'_>,
        words: &mut Words<'_>,
    ) -> Result<(), FileError> {
        let line = words.line;
        let fault = |message| self.source.fault(line, Some(keyword.column), message);
        if self.whole.has_body() {
            return Err(fault(format!("`{name}` stands below the header"))
                .fix("move the line above the first flow, trigger and failure"));
        }
        let least = u64::from(name == "Nodes");
        let value = words.number(keyword, least..=u32::MAX.into())?;
        words.end("the header line")?;
        match self.whole.headers.insert(name, (line, value as u32)) {
            None => Ok(()),
            Some((first, _)) => Err(
                fault(format!("`{name}` stands twice, first on line {first}"))
                    .fix("keep one of them"),
            ),
        }
    }
}
