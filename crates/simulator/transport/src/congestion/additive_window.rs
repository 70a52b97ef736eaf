//! Additive-increase window of TCP-like controllers: it grows by a packet per round trip and is cut at most once per window.

use super::{AckSample, LossCause, LossSample, NetworkFacts};
use clearway_units::{Bytes, RelativeSize};

/// A window in bytes with additive increase. Sequence numbers are bytes of payload: the acknowledged bytes, and their sum with the bytes in
/// flight (`snd_nxt`).
#[derive(Debug, Clone)]
pub(super) struct AdditiveWindow {
    window: f64,
    max: f64,
    /// One full packet, the least window.
    segment: f64,
    /// Bytes added for each window of acknowledged bytes.
    step: f64,
    /// Window below which it grows by the acknowledged bytes.
    slow_start_below: f64,
    acknowledged: u64,
    /// After a cut: until more than this is acknowledged, the window neither grows nor is cut again.
    reduced_until: Option<u64>,
}

impl AdditiveWindow {
    pub(super) fn new(
        network: &NetworkFacts,
        initial: Option<RelativeSize>,
        max: RelativeSize,
        packets_per_round_trip: f64,
        slow_start: bool,
    ) -> Self {
        let segment = f64::from(network.payload);
        let max = network.size(max).as_f64().max(segment);
        let initial = initial.map_or(segment, |size| network.size(size).as_f64());
        Self {
            window: initial.clamp(segment, max),
            max,
            segment,
            step: packets_per_round_trip * segment,
            slow_start_below: if slow_start { f64::INFINITY } else { 0.0 },
            acknowledged: 0,
            reduced_until: None,
        }
    }

    #[inline]
    pub(super) fn window(&self) -> f64 {
        self.window
    }

    pub(super) fn max(&self) -> f64 {
        self.max
    }

    /// Bytes added for each window of acknowledged bytes.
    pub(super) fn step(&self) -> f64 {
        self.step
    }

    /// Changes the bytes added for each window of acknowledged bytes.
    pub(super) fn set_step(&mut self, step: f64) {
        self.step = step;
    }

    /// Starts over with a window of so many packets.
    pub(super) fn restart(&mut self, packets: f64) {
        self.window = (packets * self.segment).clamp(self.segment, self.max);
    }

    /// Bytes acknowledged so far.
    #[inline]
    pub(super) fn acknowledged(&self) -> u64 {
        self.acknowledged
    }

    /// True from a cut until all bytes in flight at the cut, and more, are acknowledged.
    #[inline]
    pub(super) fn is_reduced(&self) -> bool {
        self.reduced_until.is_some()
    }

    /// Takes note of an acknowledgement.
    #[inline]
    pub(super) fn advance(&mut self, sample: &AckSample<'_>) {
        self.acknowledged += sample.acked.as_u64();
        if self
            .reduced_until
            .is_some_and(|end| self.acknowledged > end)
        {
            self.reduced_until = None;
        }
    }

    #[inline]
    pub(super) fn grow(&mut self, acked: Bytes) {
        let acked = acked.as_f64();
        let step = if self.window < self.slow_start_below {
            acked
        } else {
            self.step * acked / self.window
        };
        self.window = (self.window + step).min(self.max);
    }

    /// Leaves `factor` of the window. `in_flight` are the bytes that were sent with the old one.
    pub(super) fn cut(&mut self, factor: f64, in_flight: Bytes) {
        self.window = (self.window * factor).max(self.segment);
        self.slow_start_below = self.slow_start_below.min(self.window);
        self.reduced_until = Some(self.acknowledged + in_flight.as_u64());
    }

    /// Losses halve the window once; a timeout leaves one packet.
    pub(super) fn on_loss(&mut self, loss: &LossSample) {
        if loss.cause == LossCause::Timeout {
            self.slow_start_below = self.slow_start_below.min(self.window / 2.0);
            self.window = self.segment;
            self.reduced_until = None;
        } else if !self.is_reduced() {
            self.cut(0.5, loss.lost);
        }
    }
}
