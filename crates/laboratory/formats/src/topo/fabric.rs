//! Fabric as its file describes it; its numbers may be inconsistent.

use crate::text::Source;
use clearway_workload::FileWarning;

/// Maximum number of nodes: far more than fit in the memory of one machine, and low enough that every product of these numbers fits in 64
/// bits.
pub(super) const MOST_NODES: u64 = 1 << 24;

/// Bit/s of a Gb/s.
pub(super) const GIGABIT: u64 = 1_000_000_000;

/// Number and its line in the file.
#[derive(Debug, Clone, Copy)]
pub(super) struct NumberAtLine {
    pub(super) value: u64,
    pub(super) line: usize,
}

/// A complete tier.
pub(super) struct Tier {
    pub(super) line: usize,
    /// Speed of the links below, in bit/s.
    pub(super) speed: NumberAtLine,
    pub(super) radix_down: NumberAtLine,
    /// `None` for the top tier only.
    pub(super) radix_up: Option<NumberAtLine>,
    pub(super) oversubscribed: Option<NumberAtLine>,
    pub(super) bundle: NumberAtLine,
    pub(super) downlink_latency: NumberAtLine,
    pub(super) switch_latency: u64,
    pub(super) queue_up: Option<NumberAtLine>,
    pub(super) queue_down: Option<NumberAtLine>,
}

/// A complete file; its numbers may be inconsistent.
pub(super) struct Fabric<'a> {
    pub(super) source: Source<'a>,
    pub(super) nodes: NumberAtLine,
    pub(super) podsize: NumberAtLine,
    pub(super) tiers: Vec<Tier>,
    pub(super) warnings: Vec<FileWarning>,
}

impl Fabric<'_> {
    pub(super) fn warn(&mut self, line: usize, message: String) {
        self.warnings.push(FileWarning {
            file: self.source.file.into(),
            line,
            message,
        });
    }
}
