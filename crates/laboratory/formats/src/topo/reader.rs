//! The lines of a fabric's file.

use super::consistency::consistent;
use super::fabric::{Fabric, GIGABIT, MOST_NODES, NumberAtLine, Tier};
use super::{TierSpec, TopoFile};
use crate::line_words::Words;
use crate::text::{DecimalFault, Line, Source, Token, exact_decimal, lines, shown};
use clearway_units::{Bytes, Rate, Span};
use clearway_workload::{FileError, FileWarning};
use std::ops::RangeInclusive;

const NODES: RangeInclusive<u64> = 1..=MOST_NODES;
const PORTS: RangeInclusive<u64> = 1..=1 << 16;
const MOST_GBPS: u64 = 100_000;
/// Maximum latency: no fabric comes near a second.
const MOST_NS: u64 = 1_000_000_000;
const QUEUE_BYTES: RangeInclusive<u64> = 1..=1 << 40;
const MOST_TIERS: usize = 3;

const FILE_WORDS: [&str; 4] = ["Nodes", "Tiers", "Podsize", "Tier"];
pub(super) const TIER_WORDS: [&str; 10] = [
    "Tier",
    "Downlink_speed_Gbps",
    "Radix_Down",
    "Radix_Up",
    "Downlink_Latency_ns",
    "Switch_Latency_ns",
    "Oversubscribed",
    "Bundle",
    "Queue_Up",
    "Queue_Down",
];

/// Block of a tier that is being read.
#[derive(Default)]
struct TierWords {
    line: usize,
    speed: Option<NumberAtLine>,
    radix_down: Option<NumberAtLine>,
    radix_up: Option<NumberAtLine>,
    downlink_latency: Option<NumberAtLine>,
    switch_latency: Option<NumberAtLine>,
    oversubscribed: Option<NumberAtLine>,
    bundle: Option<NumberAtLine>,
    queue_up: Option<NumberAtLine>,
    queue_down: Option<NumberAtLine>,
}

struct Reader<'a> {
    source: Source<'a>,
    nodes: Option<NumberAtLine>,
    tier_count: Option<NumberAtLine>,
    podsize: Option<NumberAtLine>,
    blocks: [Option<TierWords>; MOST_TIERS],
    /// The tier whose block is being read.
    present: Option<usize>,
    last_line: usize,
}

/// Reads the fabric `text`; errors call the file `name`.
///
/// # Errors
/// At the first invalid line, or else where the numbers are inconsistent.
pub fn parse_topo(name: &str, text: &str) -> Result<TopoFile, FileError> {
    let mut reader = Reader {
        source: Source { file: name },
        nodes: None,
        tier_count: None,
        podsize: None,
        blocks: [None, None, None],
        present: None,
        last_line: 1,
    };
    for line in lines(text) {
        reader.last_line = line.number;
        reader.line(&line)?;
    }
    consistent(reader.fabric()?).map(spec)
}

impl<'a> Reader<'a> {
    fn line(&mut self, line: &Line<'_>) -> Result<(), FileError> {
        let (key, mut words) = Words::split(self.source, line);
        let lower = key.text.to_ascii_lowercase();
        let (slot, range) = match lower.as_str() {
            "tier" => return self.tier(key, &mut words),
            "nodes" => (&mut self.nodes, NODES),
            "tiers" => (&mut self.tier_count, 2..=MOST_TIERS as u64),
            "podsize" => (&mut self.podsize, NODES),
            _ => return self.tier_line(key, &lower, &mut words),
        };
        if self.present.is_some() {
            let message = format!("`{}` stands below a tier", shown(key.text));
            let fault = self.source.fault(line.number, Some(key.column), message);
            return Err(fault.fix("move the line above the first tier"));
        }
        let value = words.number(key, range)?;
        say(self.source, slot, key, value, &mut words)
    }

    /// `Tier 1`: the beginning of a block.
    fn tier(&mut self, key: Token<'_>, words: &mut Words<'_>) -> Result<(), FileError> {
        let index = words.number(key, 0..=MOST_TIERS as u64 - 1)? as usize;
        words.end("the line")?;
        let line = words.line;
        if let Some(first) = &self.blocks[index] {
            let message = format!(
                "tier {index} is described twice, first on line {}",
                first.line
            );
            let fault = self.source.fault(line, Some(key.column), message);
            return Err(fault.fix("keep one of the blocks"));
        }
        self.blocks[index] = Some(TierWords {
            line,
            ..TierWords::default()
        });
        self.present = Some(index);
        Ok(())
    }

    /// Reads an attribute of the current tier.
    fn tier_line(
        &mut self,
        key: Token<'_>,
        lower: &str,
        words: &mut Words<'_>,
    ) -> Result<(), FileError> {
        let mut outside = TierWords::default();
        let inside = self.present.and_then(|index| self.blocks[index].as_mut());
        let is_inside = inside.is_some();
        let tier = inside.unwrap_or(&mut outside);
        let (slot, range) = match lower {
            "downlink_speed_gbps" => (&mut tier.speed, None),
            "radix_down" => (&mut tier.radix_down, Some(PORTS)),
            "radix_up" => (&mut tier.radix_up, Some(PORTS)),
            "downlink_latency_ns" => (&mut tier.downlink_latency, Some(1..=MOST_NS)),
            "switch_latency_ns" => (&mut tier.switch_latency, Some(0..=MOST_NS)),
            "oversubscribed" => (&mut tier.oversubscribed, Some(PORTS)),
            "bundle" => (&mut tier.bundle, Some(PORTS)),
            "queue_up" => (&mut tier.queue_up, Some(QUEUE_BYTES)),
            "queue_down" => (&mut tier.queue_down, Some(QUEUE_BYTES)),
            _ => {
                let names = if is_inside {
                    &TIER_WORDS[..]
                } else {
                    &FILE_WORDS[..]
                };
                return Err(self.source.unknown(words.line, key, names));
            }
        };
        if !is_inside {
            let message = format!("`{}` stands above the first tier", shown(key.text));
            let fault = self.source.fault(words.line, Some(key.column), message);
            return Err(fault.fix("put it below the `Tier` line that it belongs to"));
        }
        let value = match range {
            Some(range) => words.number(key, range)?,
            None => bits_per_second(self.source, key, words)?,
        };
        say(self.source, slot, key, value, words)
    }

    fn lacks(&self, line: usize, what: &str, fix: &str) -> FileError {
        let fault = self.source.fault(line, None, format!("there is no {what}"));
        fault.fix(fix)
    }

    /// The file, if it is complete.
    fn fabric(mut self) -> Result<Fabric<'a>, FileError> {
        let end = self.last_line;
        let nodes = self.nodes.ok_or_else(|| {
            self.lacks(
                end,
                "`Nodes` line",
                "add the number of hosts, as in `Nodes 128`",
            )
        })?;
        let count = self
            .tier_count
            .ok_or_else(|| self.lacks(end, "`Tiers` line", "add `Tiers 2` or `Tiers 3`"))?;
        let blocks = std::mem::take(&mut self.blocks);
        let mut tiers = Vec::new();
        let mut warnings = Vec::new();
        for (index, block) in (0u64..).zip(blocks) {
            match block {
                Some(block) if index < count.value => {
                    tiers.push(self.complete(
                        index,
                        index + 1 == count.value,
                        block,
                        &mut warnings,
                    )?);
                }
                Some(block) => {
                    let message =
                        format!("`Tier {index}`, but the file says `Tiers {}`", count.value);
                    let fault = self.source.fault(block.line, None, message);
                    return Err(
                        fault.fix(format!("write `Tiers {}`, or remove the block", index + 1))
                    );
                }
                None if index < count.value => {
                    let fix =
                        format!("describe tier {index} in a block that begins with `Tier {index}`");
                    return Err(self.lacks(count.line, &format!("`Tier {index}`"), &fix));
                }
                None => {}
            }
        }
        let podsize = self.podsize(nodes, count, &mut warnings)?;
        Ok(Fabric {
            source: self.source,
            nodes,
            podsize,
            tiers,
            warnings,
        })
    }

    fn podsize(
        &self,
        nodes: NumberAtLine,
        count: NumberAtLine,
        warnings: &mut Vec<FileWarning>,
    ) -> Result<NumberAtLine, FileError> {
        match self.podsize {
            Some(podsize) => Ok(podsize),
            None if count.value == 2 => {
                warnings.push(FileWarning {
                    file: self.source.file.into(),
                    line: nodes.line,
                    message: format!("there is no `Podsize`: taken as {}, all hosts", nodes.value),
                });
                Ok(nodes)
            }
            None => Err(self.lacks(
                self.last_line,
                "`Podsize` line",
                "add the number of hosts per pod, as in `Podsize 16`",
            )),
        }
    }

    /// The tier of a block, if it is complete.
    fn complete(
        &self,
        index: u64,
        is_top: bool,
        block: TierWords,
        warnings: &mut Vec<FileWarning>,
    ) -> Result<Tier, FileError> {
        let line = block.line;
        let need = |said: Option<NumberAtLine>, key: &str, example: u64| {
            said.ok_or_else(|| {
                let what = format!("`{key}` in tier {index}");
                self.lacks(line, &what, &format!("add it, as in `{key} {example}`"))
            })
        };
        let radix_up = match (block.radix_up, is_top) {
            (said, false) => Some(need(said, "Radix_Up", 32)?),
            (Some(said), true) if index == 2 => {
                let message = "`Radix_Up` in tier 2, which is the top tier";
                return Err(self
                    .source
                    .fault(said.line, None, message)
                    .fix("remove the line"));
            }
            (Some(said), true) => {
                warnings.push(FileWarning {
                    file: self.source.file.into(),
                    line: said.line,
                    message: "`Radix_Up` is ignored: this is the top tier".into(),
                });
                None
            }
            (None, true) => None,
        };
        Ok(Tier {
            line,
            speed: need(block.speed, "Downlink_speed_Gbps", 400)?,
            radix_down: need(block.radix_down, "Radix_Down", 32)?,
            radix_up,
            downlink_latency: need(block.downlink_latency, "Downlink_Latency_ns", 1000)?,
            switch_latency: block.switch_latency.map_or(0, |said| said.value),
            oversubscribed: block.oversubscribed,
            bundle: block.bundle.unwrap_or(NumberAtLine { value: 1, line }),
            queue_up: block.queue_up,
            queue_down: block.queue_down,
        })
    }
}

/// The speed after `key`, a decimal number of Gb/s that is a whole number of bit/s.
fn bits_per_second(
    source: Source<'_>,
    key: Token<'_>,
    words: &mut Words<'_>,
) -> Result<u64, FileError> {
    const BITS: RangeInclusive<u64> = 1..=MOST_GBPS * GIGABIT;
    let token = words.value(key)?;
    let text = shown(token.text);
    let fault = |message: String| source.fault(words.line, Some(token.column), message);
    match exact_decimal(token.text, 9) {
        Ok(bits) if BITS.contains(&bits) => Ok(bits),
        Err(DecimalFault::TooFine) => {
            let message = format!("`{text}` Gb/s is not a whole number of bit/s");
            Err(fault(message).fix("write at most nine decimals"))
        }
        _ => {
            let message = format!("`{text}` is not a valid value for `{}`", shown(key.text));
            Err(fault(message).fix(format!(
                "write a number of Gb/s above 0, such as 12.5, up to {MOST_GBPS}"
            )))
        }
    }
}

/// Stores the value of `key`, which may occur only once.
fn say(
    source: Source<'_>,
    slot: &mut Option<NumberAtLine>,
    key: Token<'_>,
    value: u64,
    words: &mut Words<'_>,
) -> Result<(), FileError> {
    words.end("the line")?;
    let line = words.line;
    match slot.replace(NumberAtLine { value, line }) {
        None => Ok(()),
        Some(first) => {
            let message = format!(
                "`{}` stands twice, first on line {}",
                shown(key.text),
                first.line
            );
            let fault = source.fault(line, Some(key.column), message);
            Err(fault.fix("keep one of them"))
        }
    }
}

/// The plain numbers of a consistent fabric.
fn spec(fabric: Fabric<'_>) -> TopoFile {
    let tier = |tier: Tier| TierSpec {
        downlink_speed: Rate::from_bps(tier.speed.value),
        radix_down: tier.radix_down.value as u32,
        radix_up: tier.radix_up.map(|said| said.value as u32),
        downlink_latency: Span::from_ns(tier.downlink_latency.value),
        switch_latency: Span::from_ns(tier.switch_latency),
        oversubscribed: tier.oversubscribed.map_or(1, |said| said.value as u32),
        bundle: tier.bundle.value as u32,
        queue_up: tier.queue_up.map(|said| Bytes::new(said.value)),
        queue_down: tier.queue_down.map(|said| Bytes::new(said.value)),
    };
    let mut warnings = fabric.warnings;
    warnings.sort_by_key(|warning| warning.line);
    TopoFile {
        nodes: fabric.nodes.value as u32,
        podsize: fabric.podsize.value as u32,
        tiers: fabric.tiers.into_iter().map(tier).collect(),
        warnings,
    }
}
