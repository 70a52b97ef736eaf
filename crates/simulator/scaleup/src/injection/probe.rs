//! Probes, and the cut of a watermark by a latency: the common parts of AIMD (§6.1.4) and of the unicast part of 3CPO (§6.2.3).

use super::{Completed, InvalidSetting, Sent};
use crate::Cycle;

/// The operation whose latency is being measured: one at a time.
///
/// The next operation that is sent after a probe's completion is the next probe, of any kind and to any target (C9). A GPU that sends
/// nothing has no probe, and its watermarks stay.
#[derive(Debug, Clone, Default)]
pub struct Probe(Option<u64>);

impl Probe {
    /// Marks the operation as the probe, unless a probe is under way.
    pub fn on_sent(&mut self, sent: &Sent) {
        self.0.get_or_insert(sent.number);
    }
    /// Latency of the probe, if the completed operation was it.
    pub fn on_completed(&mut self, completed: &Completed) -> Option<Cycle> {
        self.0.take_if(|probe| *probe == completed.number)?;
        Some(completed.latency)
    }
}

clearway_units::parameters! {
    /// Response of a watermark to the latency of a probe.
    pub struct LatencyParameters {
        /// Latency in cycles below which the watermark grows, and above which it is cut (`lat_thresh`).
        pub threshold: u64 = 2000, "latency-threshold", "Dissertation §6.1.4";
        /// Latency in cycles from which the cut is largest (`max_lat_thresh`), above `latency-threshold`.
        pub greatest: u64 = 5000, "latency-max", "Dissertation §6.1.4";
        /// Part of the watermark that the largest cut removes (`base_md`), 0 to 1.
        pub base_md: f64 = 0.5, "base-md", "Dissertation §6.1.4";
        /// Growth of the watermark for each probe below the threshold (`WM_AI`).
        pub increase: f64 = 50.0, "wm-increase", "Dissertation §6.1.4";
    }
}

impl LatencyParameters {
    /// Checks the limits of these settings.
    ///
    /// # Errors
    /// If the thresholds are not in order, or a part is not one.
    pub fn check(&self) -> Result<(), InvalidSetting> {
        let order = self.threshold < self.greatest;
        InvalidSetting::unless(order, "latency-max", "has to exceed `latency-threshold`")?;
        let part = (0.0..=1.0).contains(&self.base_md);
        InvalidSetting::unless(part, "base-md", "has to be from 0 to 1")?;
        let finite = (0.0..=1e9).contains(&self.increase);
        InvalidSetting::unless(finite, "wm-increase", "has to be from 0 to 1e9")
    }

    /// Part of the watermark that a probe of this latency removes (`md`): from 0 at the threshold linearly to `base-md`.
    pub fn decrease(&self, latency: Cycle) -> f64 {
        let excess = latency.saturating_sub(self.threshold) as f64;
        let range = (self.greatest - self.threshold) as f64;
        (self.base_md * excess / range).min(self.base_md)
    }
    /// Growth of the watermark with a probe of this latency: nothing from the threshold on.
    pub fn growth(&self, latency: Cycle) -> f64 {
        if latency < self.threshold {
            self.increase
        } else {
            0.0
        }
    }
}
