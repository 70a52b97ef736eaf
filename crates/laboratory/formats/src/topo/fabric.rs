//! Fabric as its file describes it; its numbers may not fit together.

use crate::text::Source;
use clearway_workload::FileWarning;

/// Most nodes: far above what fits in the memory of one machine, and low enough for every product of these numbers to fit in 64 bits.
pub(super) const MOST_NODES: u64 = 1 << 24;

/// Bit/s of a Gb/s.
pub(super) const GIGABIT: u64 = 1_000_000_000;

/// Number and its line in the file.
#[derive(Debug, Clone, Copy)]
pub(super) struct Said {
    pub(super) value: u64,
    pub(super) line: usize,
}

/// A tier that lacks nothing.
pub(super) struct Tier {
    pub(super) line: usize,
    /// Speed of the links below, in bit/s.
    pub(super) speed: Said,
    pub(super) radix_down: Said,
    /// `None` for the top tier only.
    pub(super) radix_up: Option<Said>,
    pub(super) oversubscribed: Option<Said>,
    pub(super) bundle: Said,
    pub(super) downlink_latency: Said,
    pub(super) switch_latency: u64,
    pub(super) queue_up: Option<Said>,
    pub(super) queue_down: Option<Said>,
}

/// A file that lacks nothing; its numbers may not fit together.
pub(super) struct Fabric<'a> {
    pub(super) source: Source<'a>,
    pub(super) nodes: Said,
    pub(super) podsize: Said,
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
