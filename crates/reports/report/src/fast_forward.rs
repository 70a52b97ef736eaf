//! Simulated and remembered calls of a run that may remember calls of collectives.
//!
//! A remembered call takes the transfer times of a simulated one, and no packets: counts of packets, curves and captures have the simulated
//! calls only.

use crate::quantity::{count, percent};
use serde::{Deserialize, Serialize};

/// What a run simulated and what it remembered.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FastForwardSummary {
    /// Error that the user allows, as a fraction.
    pub wanted: f64,
    /// Estimated error of the simulated time, as a fraction.
    pub estimated: f64,
    /// Bytes of messages with packets.
    pub simulated_bytes: u64,
    /// Bytes of messages without packets.
    pub remembered_bytes: u64,
    /// Part of the bytes that is remembered.
    pub remembered_share: f64,
    /// Calls by sort: calls of a sort have as many ranks, messages and bytes.
    pub calls: Vec<CallSort>,
    /// Number of simulated calls that were compared with what is remembered.
    pub verified: u64,
    /// Largest difference of the mean transfer time of a verified call from the remembered one, as a fraction; `None` without one.
    pub found: Option<f64>,
    /// Jobs without remembered calls, with the reason.
    pub declined_jobs: Vec<DeclinedJob>,
}

impl FastForwardSummary {
    /// True if a call is remembered. Otherwise every packet was simulated.
    pub fn has_remembered(&self) -> bool {
        self.remembered_bytes > 0
    }
}

/// Calls of a sort.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallSort {
    /// Ranks of a call.
    pub ranks: u32,
    /// Messages of a call.
    pub messages: u32,
    /// Bytes of a call.
    pub bytes: u64,
    /// Different calls: of other ranks, or with other messages.
    pub kinds: u32,
    /// Kinds whose transfer times do not agree: they are remembered only as far as the run as a whole stays within the error.
    pub disagreeing: u32,
    /// Simulated calls.
    pub simulated: u64,
    /// Remembered calls.
    pub remembered: u64,
    /// Simulated calls that were beside remembered ones, whose packets were missing.
    pub void: u64,
}

/// A job without remembered calls.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeclinedJob {
    /// Name of the job.
    pub label: String,
    /// Reason.
    pub reason: String,
}

impl FastForwardSummary {
    /// Sentence on the accuracy of the run.
    pub fn accuracy(&self) -> String {
        let share = |part: f64| percent((part * 1e9).round() as u64, 1_000_000_000);
        let mut text = format!(
            "{} of the bytes remembered; estimated error of the time {} ({} allowed)",
            share(self.remembered_share),
            share(self.estimated),
            share(self.wanted)
        );
        if let Some(found) = self.found {
            let calls = count(self.verified);
            text += &format!("; calls verified: {calls}, at most {} off", share(found));
        }
        text
    }
}
