//! The request of the user.

use clearway_lab::Threads;
use std::path::Path;

/// Advice if results cannot be written.
pub(super) const FIX: &str = "see to it that the result folder can be written";

/// Parsed request.
#[derive(Clone, Copy)]
pub(crate) struct WhyRequest<'a> {
    /// The result folder.
    pub(crate) folder: &'a Path,
    /// Flows to explain; the slowest flows if empty.
    pub(crate) flows: &'a [u32],
    /// Number of the slowest flows.
    pub(crate) slowest: usize,
    /// Name of the job whose iteration is explained.
    pub(crate) job: Option<&'a str>,
    /// Number of the iteration that is explained.
    pub(crate) iteration: Option<u32>,
    pub(crate) threads: Threads,
    pub(crate) json: bool,
    pub(crate) quiet: bool,
}
