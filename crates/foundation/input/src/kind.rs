//! Kinds of files with their limits.

use crate::error::{InputError, LIMIT_VARIABLE};
use clearway_units::Bytes;

/// Kind of file, with its limit in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InputKind {
    /// Kind of file, as messages call it.
    pub name: &'static str,
    most: Bytes,
}

const MB: u64 = 1_000_000;
const GB: u64 = 1000 * MB;

impl InputKind {
    /// Scenario in TOML.
    pub const SCENARIO: Self = Self::new("a scenario", 16 * MB);
    /// Plan of jobs in TOML.
    pub const PLAN: Self = Self::new("a plan", 16 * MB);
    /// Distribution of sizes. The published ones have some 30 lines.
    pub const SIZES: Self = Self::new("a size distribution", 16 * MB);
    /// System of ASTRA-sim, of some 20 lines.
    pub const SYSTEM: Self = Self::new("a system", 16 * MB);
    /// Groups of the ranks of a trace.
    pub const GROUPS: Self = Self::new("a file of groups", 256 * MB);
    /// Fabric. A line of 40 B for each of a million links is 40 MB.
    pub const TOPOLOGY: Self = Self::new("a topology", GB);
    /// Flows. A line of 40 B for each of 100 million flows is 4 GB.
    pub const FLOWS: Self = Self::new("a file of flows", 4 * GB);
    /// Trace of a job or of one of its ranks.
    pub const TRACE: Self = Self::new("a trace", 16 * GB);
    /// `summary.json` of a run.
    pub const SUMMARY: Self = Self::new("a summary", 256 * MB);
    /// Parquet table of a run, which is read by groups of rows.
    pub const TABLE: Self = Self::new("a table", 64 * GB);

    /// Key that two hosts share: 64 digits.
    pub const KEY: Self = Self::new("a key", MB);
    /// Hosts of the ranks of a collective, one per line.
    pub const RANKS: Self = Self::new("a list of ranks", MB);

    const fn new(name: &'static str, most: u64) -> Self {
        Self {
            name,
            most: Bytes::new(most),
        }
    }

    /// Limit in bytes of a file of this kind.
    ///
    /// # Errors
    /// If [`LIMIT_VARIABLE`] is not a size.
    pub fn limit(self) -> Result<Bytes, InputError> {
        self.limit_with(std::env::var_os(LIMIT_VARIABLE).as_deref())
    }

    /// The limit if the variable has the value `value`.
    pub(crate) fn limit_with(self, value: Option<&std::ffi::OsStr>) -> Result<Bytes, InputError> {
        let Some(value) = value else {
            return Ok(self.most);
        };
        let size = value.to_str().and_then(|text| text.parse().ok());
        size.ok_or_else(|| InputError::NoLimit {
            value: value.to_string_lossy().into_owned(),
        })
    }
}
