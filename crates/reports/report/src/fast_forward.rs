//! Remembered calls and skipped time of a run with `fast-forward`.
//!
//! A remembered call takes the transfer times of a simulated one, and no packets: counts of packets, curves and captures have the simulated
//! calls only. Skipped time has no packets either, but the curves and loads of links include it.

use crate::quantity::{count, percent};
use serde::{Deserialize, Serialize};

/// What a run simulated and what it remembered.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
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
    /// Skipped stretches.
    #[serde(default)]
    pub skipped: SkippedStretches,
    /// Reason why no time may be skipped, in a run that remembers no calls.
    #[serde(default)]
    pub no_skips: Option<String>,
    /// Jobs without remembered calls, with the reason.
    pub declined_jobs: Vec<DeclinedJob>,
}

/// Stretches of time in which long flows were steady, and which were skipped.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct SkippedStretches {
    /// Number of stretches.
    pub stretches: u64,
    /// Their time in microseconds, and its part of the simulated time.
    pub time_us: f64,
    /// See `time_us`.
    pub time_share: f64,
    /// Bytes of messages that would have been sent in them, and their part of the bytes of all flows.
    pub bytes: u64,
    /// See `bytes`.
    pub bytes_share: f64,
    /// Number of stretches that were simulated to be compared.
    pub verified: u64,
    /// Largest difference of the bytes that a sender sent in one of these, as a fraction; `None` without one.
    pub found: Option<f64>,
}

/// Warning about runs that are not exact, with the largest of their estimated errors.
pub fn warning(estimated: f64) -> String {
    format!(
        "calls are remembered, or time is skipped: times may be off by an estimated {:.2} %",
        100.0 * estimated
    )
}

impl FastForwardSummary {
    /// True if a call is remembered or time is skipped. Otherwise every packet was simulated.
    pub fn is_inexact(&self) -> bool {
        self.remembered_bytes > 0 || self.skipped.stretches > 0
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
    /// Facts on the accuracy of the run, separated by semicolons.
    pub fn accuracy(&self) -> String {
        let share = |part: f64| percent((part * 1e9).round() as u64, 1_000_000_000);
        let mut facts = Vec::new();
        let skipped = &self.skipped;
        if skipped.stretches > 0 {
            facts.push(format!(
                "{} of the time and {} of the bytes skipped, in {} steady stretches",
                share(skipped.time_share),
                share(skipped.bytes_share),
                count(skipped.stretches)
            ));
        } else if self.remembered_bytes > 0 || !self.calls.is_empty() {
            facts.push(format!(
                "{} of the bytes remembered",
                share(self.remembered_share)
            ));
        } else {
            let reason = self.no_skips.as_deref();
            let reason = reason.unwrap_or("no long steady state was found");
            facts.push(format!("every packet simulated: {reason}"));
        }
        facts.push(format!(
            "estimated error of the time {} ({} allowed)",
            share(self.estimated),
            share(self.wanted)
        ));
        if let Some(found) = self.found {
            let calls = count(self.verified);
            facts.push(format!(
                "calls verified: {calls}, at most {} off",
                share(found)
            ));
        }
        if let Some(found) = skipped.found {
            let stretches = count(skipped.verified);
            facts.push(format!(
                "stretches verified: {stretches}, at most {} off",
                share(found)
            ));
        }
        facts.join("; ")
    }
}
