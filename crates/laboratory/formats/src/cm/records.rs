//! Single lines of a connection matrix.

use super::{LinkFailure, StartUnit, SwitchLayer};
use crate::line_words::Words;
use crate::text::{DecimalFault, Source, Token, exact_decimal, shown, whole_number};
use clearway_units::{Bytes, HostId, Time};
use clearway_workload::{FileError, TriggerKind, TriggerSpec};

pub(super) const FLOW_WORDS: [&str; 9] = [
    "id",
    "start",
    "trigger",
    "size",
    "send_done_trigger",
    "recv_done_trigger",
    "prio",
    "msg",
    "msgid",
];
const TRIGGER_WORDS: [&str; 5] = ["id", "oneshot", "multishot", "barrier", "count"];
const FAILURE_WORDS: [&str; 3] = ["switch_type", "switch_id", "link_id"];
const LAYERS: [&str; 3] = ["TOR", "AGG", "CORE"];

/// Size of an endless flow: no run lasts until the flow is complete.
pub(super) const ENDLESS: Bytes = Bytes::new(1 << 50);

/// A trigger that a flow names; a later line may declare it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reference {
    pub(super) label: u64,
    pub(super) column: usize,
}

/// Start of a flow as in its line.
#[derive(Debug, Clone, Copy)]
pub(super) enum StartRecord {
    At(Time),
    On(Reference),
}

pub(super) struct FlowRecord {
    pub(super) line: usize,
    pub(super) src: HostId,
    pub(super) dst: HostId,
    pub(super) id: Option<u64>,
    pub(super) start: StartRecord,
    pub(super) bytes: Bytes,
    pub(super) on_sent: Option<Reference>,
    pub(super) on_received: Option<Reference>,
    pub(super) has_prio: bool,
    /// True for a message on the connection with its id.
    pub(super) is_message: bool,
}

pub(super) struct TriggerRecord {
    pub(super) line: usize,
    pub(super) spec: TriggerSpec,
    /// True if a trigger that is not a barrier has a `count`.
    pub(super) stray_count: bool,
}

pub(super) struct FailureRecord {
    pub(super) line: usize,
    pub(super) failure: LinkFailure,
}

/// Attributes of a flow that are read so far.
#[derive(Default)]
struct FlowWords {
    id: Option<u64>,
    start: Option<Time>,
    trigger: Option<Reference>,
    bytes: Option<Bytes>,
    on_sent: Option<Reference>,
    on_received: Option<Reference>,
    prio: Option<u64>,
    message: Option<u64>,
}

/// Reads the records of one line.
pub(super) struct RecordReader<'a> {
    pub(super) source: Source<'a>,
    pub(super) line: usize,
    pub(super) unit: StartUnit,
    pub(super) nodes: u32,
}

impl RecordReader<'_> {
    fn fault(
        &self,
        at: Option<Token<'_>>,
        message: impl Into<String>,
        fix: impl Into<String>,
    ) -> FileError {
        let column = at.map(|token| token.column);
        self.source.fault(self.line, column, message).fix(fix)
    }

    pub(super) fn flow(
        &mut self,
        first: Token<'_>,
        words: &mut Words<'_>,
    ) -> Result<FlowRecord, FileError> {
        let (src, dst) = self.ends(first)?;
        let mut said = FlowWords::default();
        while let Some(word) = words.next() {
            self.flow_attribute(&mut said, word, words)?;
        }
        let flow = shown(first.text);
        let start = self.flow_start(&flow, &said)?;
        let bytes = said.bytes.ok_or_else(|| {
            let fix = "add the size in bytes, as in `size 2000000`";
            self.fault(None, format!("{flow} has no `size`"), fix)
        })?;
        Ok(FlowRecord {
            line: self.line,
            src,
            dst,
            id: said.id,
            start,
            bytes,
            on_sent: said.on_sent,
            on_received: said.on_received,
            has_prio: said.prio.is_some(),
            is_message: said.message.is_some(),
        })
    }

    /// The hosts of `0->13`.
    fn ends(&self, token: Token<'_>) -> Result<(HostId, HostId), FileError> {
        let (src, dst) = token.text.split_once("->").unwrap_or((token.text, ""));
        let src = Token { text: src, ..token };
        let dst = Token {
            text: dst,
            column: token.column + src.text.chars().count() + 2,
        };
        let (src, dst) = (self.host(src)?, self.host(dst)?);
        if src == dst {
            let message = format!("host {src} sends to itself");
            return Err(self.fault(Some(token), message, "choose another destination"));
        }
        Ok((src, dst))
    }

    fn host(&self, token: Token<'_>) -> Result<HostId, FileError> {
        let fix = "write the hosts as two numbers with an arrow and no blanks, as in `0->13`";
        if token.text.is_empty() {
            return Err(self.fault(Some(token), "a host is missing next to the arrow", fix));
        }
        if !token.text.bytes().all(|byte| byte.is_ascii_digit()) {
            let message = format!("`{}` is not a host number", shown(token.text));
            return Err(self.fault(Some(token), message, fix));
        }
        let known = |&number: &u64| number < u64::from(self.nodes);
        match whole_number(token.text).filter(known) {
            Some(number) => Ok(HostId(number as u32)),
            None => {
                let (nodes, last) = (self.nodes, self.nodes - 1);
                let host = shown(token.text);
                let message = format!(
                    "host {host} does not exist (the file says `Nodes {nodes}`, so hosts are 0 to {last})"
                );
                Err(self.fault(Some(token), message, "correct the host number, or `Nodes`"))
            }
        }
    }

    fn flow_attribute(
        &self,
        said: &mut FlowWords,
        word: Token<'_>,
        words: &mut Words<'_>,
    ) -> Result<(), FileError> {
        match word.text {
            "id" => {
                let id = words.number(word, 1..=u64::MAX)?;
                words.once(&mut said.id, word, id)
            }
            "start" => {
                let start = self.start(words.value(word)?)?;
                words.once(&mut said.start, word, start)
            }
            "size" => {
                let bytes = self.size(words.value(word)?)?;
                words.once(&mut said.bytes, word, bytes)
            }
            "trigger" => {
                let trigger = reference(word, words)?;
                words.once(&mut said.trigger, word, trigger)
            }
            "send_done_trigger" => {
                let trigger = reference(word, words)?;
                words.once(&mut said.on_sent, word, trigger)
            }
            "recv_done_trigger" => {
                let trigger = reference(word, words)?;
                words.once(&mut said.on_received, word, trigger)
            }
            "prio" => {
                let prio = words.number(word, 0..=u64::MAX)?;
                words.once(&mut said.prio, word, prio)
            }
            // The number is only a name for readers; the starts define the order of messages.
            "msg" => {
                let message = words.number_if_any().unwrap_or(0);
                words.once(&mut said.message, word, message)
            }
            "msgid" => {
                let message = words.number(word, 0..=u64::MAX)?;
                words.once(&mut said.message, word, message)
            }
            _ => Err(self.unfit_attribute(word)),
        }
    }

    fn unfit_attribute(&self, word: Token<'_>) -> FileError {
        let (why, fix) = match word.text {
            "addon" => (
                "htsim itself reads the flag and makes nothing of it",
                "remove the word",
            ),
            _ => return self.source.unknown(self.line, word, &FLOW_WORDS),
        };
        let message = format!("`{}` is not supported because {why}", word.text);
        self.fault(Some(word), message, fix)
    }

    fn start(&self, token: Token<'_>) -> Result<Time, FileError> {
        let unit = self.unit.name();
        let text = shown(token.text);
        let (message, fix) = match exact_decimal(token.text, self.unit.exponent()) {
            Ok(ps) if !Time::from_ps(ps).is_never() => return Ok(Time::from_ps(ps)),
            Ok(_) | Err(DecimalFault::TooLarge) => (
                format!("`start {text}`, read in {unit}, is beyond the longest run of 213 days"),
                "write an earlier start, or read the file with a smaller start unit".to_owned(),
            ),
            Err(DecimalFault::TooFine) => (
                format!("`start {text}`, read in {unit}, is finer than a picosecond"),
                match self.unit.exponent() {
                    0 => "write a whole number".to_owned(),
                    digits => format!("round it to {digits} decimals"),
                },
            ),
            Err(DecimalFault::NotANumber) => (
                format!("`{text}` is not a time"),
                format!("write a number in {unit}, as in `start 5` or `start 0.25`"),
            ),
        };
        Err(self.fault(Some(token), message, fix))
    }

    fn size(&self, token: Token<'_>) -> Result<Bytes, FileError> {
        let text = shown(token.text);
        let digits = token.text.bytes().all(|byte| byte.is_ascii_digit());
        let (message, fix) = match (whole_number(token.text), token.text.parse::<Bytes>()) {
            (Some(0), _) => return Ok(ENDLESS),
            (Some(bytes), _) => return Ok(Bytes::new(bytes)),
            (None, _) if digits => (
                format!("`size {text}` does not fit in 64 bits"),
                format!("write at most {}", u64::MAX),
            ),
            (None, Ok(bytes)) if bytes > Bytes::ZERO => (
                format!("`{text}` is not a plain number of bytes"),
                format!("write `size {}`", bytes.as_u64()),
            ),
            (None, _) => (
                format!("`{text}` is not a size"),
                "write the size in bytes, as in `size 2000000`".to_owned(),
            ),
        };
        Err(self.fault(Some(token), message, fix))
    }

    /// Start of a flow, which has either `start` or `trigger`.
    fn flow_start(&self, flow: &str, said: &FlowWords) -> Result<StartRecord, FileError> {
        match (said.start, said.trigger) {
            (Some(time), None) => Ok(StartRecord::At(time)),
            (None, Some(trigger)) => Ok(StartRecord::On(trigger)),
            (Some(_), Some(_)) => Err(self.fault(
                None,
                format!("{flow} has both `start` and `trigger`"),
                "keep the one that shall start it",
            )),
            (None, None) => Err(self.fault(
                None,
                format!("{flow} has neither `start` nor `trigger`"),
                "add `start 0`, or `trigger` and the id of the trigger that starts it",
            )),
        }
    }

    pub(super) fn trigger(
        &mut self,
        first: Token<'_>,
        words: &mut Words<'_>,
    ) -> Result<TriggerRecord, FileError> {
        let (mut id, mut kind, mut count) = (None, None, None);
        while let Some(word) = words.next() {
            match word.text {
                "id" => {
                    let value = words.number(word, 1..=u64::MAX)?;
                    words.once(&mut id, word, value)?;
                }
                "count" => {
                    let value = words.number_u32(word, 1)?;
                    words.once(&mut count, word, value)?;
                }
                "oneshot" | "multishot" | "barrier" => {
                    if let Some(first) = kind.replace(word.text) {
                        let message = format!("the trigger is a {first} already");
                        return Err(self.fault(Some(word), message, "keep one kind"));
                    }
                }
                _ => return Err(self.source.unknown(self.line, word, &TRIGGER_WORDS)),
            }
        }
        let lacks =
            |what, fix: &str| self.fault(Some(first), format!("the trigger has no {what}"), fix);
        let label = id.ok_or_else(|| lacks("`id`", "add it, as in `trigger id 1 oneshot`"))?;
        let kind = match (kind, count) {
            (Some("oneshot"), _) => TriggerKind::Oneshot,
            (Some("multishot"), _) => TriggerKind::Multishot,
            (Some(_), Some(count)) => TriggerKind::Barrier { count },
            (Some(_), None) => {
                return Err(lacks(
                    "`count`",
                    "add how many activations it waits for, as in `barrier count 2`",
                ));
            }
            (None, _) => return Err(lacks("kind", "add `oneshot`, `multishot` or `barrier`")),
        };
        Ok(TriggerRecord {
            line: self.line,
            spec: TriggerSpec { label, kind },
            stray_count: count.is_some() && !matches!(kind, TriggerKind::Barrier { .. }),
        })
    }

    pub(super) fn failure(
        &mut self,
        first: Token<'_>,
        words: &mut Words<'_>,
    ) -> Result<FailureRecord, FileError> {
        let (mut layer, mut switch, mut uplink) = (None, None, None);
        while let Some(word) = words.next() {
            match word.text {
                "switch_type" => {
                    let value = self.layer(words.value(word)?)?;
                    words.once(&mut layer, word, value)?;
                }
                "switch_id" => {
                    let value = words.number_u32(word, 0)?;
                    words.once(&mut switch, word, value)?;
                }
                "link_id" => {
                    let value = words.number_u32(word, 0)?;
                    words.once(&mut uplink, word, value)?;
                }
                _ => return Err(self.source.unknown(self.line, word, &FAILURE_WORDS)),
            }
        }
        let (Some(layer), Some(switch), Some(uplink)) = (layer, switch, uplink) else {
            let message = "a failure needs `switch_type`, `switch_id` and `link_id`";
            let fix = "write it as `failure switch_type AGG switch_id 0 link_id 0`";
            return Err(self.fault(Some(first), message, fix));
        };
        Ok(FailureRecord {
            line: self.line,
            failure: LinkFailure {
                layer,
                switch,
                uplink,
            },
        })
    }

    fn layer(&self, token: Token<'_>) -> Result<SwitchLayer, FileError> {
        match token.text {
            "TOR" => Ok(SwitchLayer::Leaf),
            "AGG" => Ok(SwitchLayer::Aggregation),
            "CORE" => Ok(SwitchLayer::Core),
            _ => Err(self.source.unknown(self.line, token, &LAYERS)),
        }
    }
}

/// The trigger after `keyword`.
fn reference(keyword: Token<'_>, words: &mut Words<'_>) -> Result<Reference, FileError> {
    let column = words.next_column(keyword);
    let label = words.number(keyword, 1..=u64::MAX)?;
    Ok(Reference { label, column })
}
