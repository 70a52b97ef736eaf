//! XML with positions for errors, and limits that keep reading fast.

use crate::text::{Source, shown, whole_number};
use clearway_workload::FileError;
use roxmltree::{Attribute, Document, Error, Node, ParsingOptions};
use std::ops::RangeInclusive;

/// Maximum size of a file: NCCL's files have some kB for each GPU.
const MOST_BYTES: usize = 4 << 20;
/// Maximum distance between two `<`. The XML library compares all attributes of an element with each other. NCCL itself allows 16
/// attributes of 255 bytes.
const MOST_BYTES_OF_TAG: usize = 8 << 10;
/// Maximum number of elements, comments and texts between them.
const MOST_NODES: u32 = 1 << 19;

const DUMP_AGAIN: &str = "correct the XML, or write the file again with NCCL_TOPO_DUMP_FILE";

/// A document, with the beginnings of its lines.
pub(super) struct Xml<'a> {
    source: Source<'a>,
    text: &'a str,
    line_starts: Vec<usize>,
    document: Document<'a>,
}

impl<'a> Xml<'a> {
    /// Reads `text`; errors call the file `name`.
    pub(super) fn parse(name: &'a str, text: &'a str) -> Result<Self, FileError> {
        let source = Source { file: name };
        if text.len() > MOST_BYTES {
            let message = format!("the file has more than {MOST_BYTES} bytes");
            let fix = "keep the elements of one node";
            return Err(source.fault(1, None, message).fix(fix));
        }
        let line_starts = std::iter::once(0)
            .chain(text.match_indices('\n').map(|(at, _)| at + 1))
            .collect();
        let mut begin = 0;
        for end in text
            .match_indices('<')
            .map(|(at, _)| at)
            .chain([text.len()])
        {
            if end - begin > MOST_BYTES_OF_TAG {
                let line = text[..begin].matches('\n').count() + 1;
                let message =
                    format!("an element or a comment has more than {MOST_BYTES_OF_TAG} bytes");
                return Err(source.fault(line, None, message).fix("shorten it"));
            }
            begin = end;
        }
        let options = ParsingOptions {
            nodes_limit: MOST_NODES,
            ..ParsingOptions::default()
        };
        let document = Document::parse_with_options(text, options)
            .map_err(|error| broken(source, text, &error))?;
        Ok(Self {
            source,
            text,
            line_starts,
            document,
        })
    }

    pub(super) fn root(&self) -> Node<'_, 'a> {
        self.document.root_element()
    }

    pub(super) fn file(&self) -> &'a str {
        self.source.file
    }

    /// Line that an element begins on, from 1.
    pub(super) fn line(&self, element: Node<'_, '_>) -> usize {
        self.position(element.range().start).0
    }

    /// Line and column of a byte.
    fn position(&self, at: usize) -> (usize, usize) {
        let line = self.line_starts.partition_point(|start| *start <= at);
        let before = &self.text[self.line_starts[line - 1]..at];
        (line, before.chars().count() + 1)
    }

    /// Error about an element.
    pub(super) fn fault(
        &self,
        element: Node<'_, '_>,
        message: impl Into<String>,
        fix: impl Into<String>,
    ) -> FileError {
        self.fault_at(element.range().start, message, fix)
    }

    /// Error about a line.
    pub(super) fn fault_on(
        &self,
        line: usize,
        message: impl Into<String>,
        fix: impl Into<String>,
    ) -> FileError {
        self.source.fault(line, None, message).fix(fix)
    }

    fn fault_at(&self, at: usize, message: impl Into<String>, fix: impl Into<String>) -> FileError {
        let (line, column) = self.position(at);
        self.source.fault(line, Some(column), message).fix(fix)
    }

    /// Error about the value of an attribute.
    pub(super) fn bad_value(
        &self,
        attribute: &Attribute<'_, '_>,
        fix: impl Into<String>,
    ) -> FileError {
        let (key, value) = (shown(attribute.name()), shown(attribute.value()));
        let message = format!("`{value}` is not a valid value for `{key}`");
        self.fault_at(attribute.range().start, message, fix)
    }

    /// The whole number of an attribute; `None` if the element has no such attribute.
    pub(super) fn number(
        &self,
        element: Node<'_, '_>,
        key: &str,
        range: RangeInclusive<u64>,
    ) -> Result<Option<u64>, FileError> {
        let Some(attribute) = element.attribute_node(key) else {
            return Ok(None);
        };
        let value = whole_number(attribute.value()).filter(|value| range.contains(value));
        value.map(Some).ok_or_else(|| {
            let (least, most) = (range.start(), range.end());
            let fix = format!("write a whole number from {least} to {most}");
            self.bad_value(&attribute, fix)
        })
    }
}

/// Error about a text that is not sound XML.
fn broken(source: Source<'_>, text: &str, error: &Error) -> FileError {
    let lines = text.lines().count().max(1);
    let position = error.pos();
    let line = (position.row as usize).clamp(1, lines);
    let column = Some((position.col as usize).max(1));
    match error {
        Error::DtdDetected => {
            let fault = source.fault(1, None, "the file has a document type definition");
            fault.fix("remove `<!DOCTYPE …>`")
        }
        Error::NodesLimitReached => {
            let message = format!("the file has more than {MOST_NODES} elements and texts");
            source
                .fault(1, None, message)
                .fix("keep the elements of one node")
        }
        Error::NoRootNode | Error::UnclosedRootNode => source
            .fault(lines, None, format!("this is not well-formed XML: {error}"))
            .fix(DUMP_AGAIN),
        _ => {
            let what = error.to_string().replace(&format!(" at {position}"), "");
            let what: String = what.chars().filter(|c| !c.is_control()).take(120).collect();
            let message = format!("this is not well-formed XML: {what}");
            source.fault(line, column, message).fix(DUMP_AGAIN)
        }
    }
}
