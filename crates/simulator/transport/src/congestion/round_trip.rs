//! Round trips, told apart by sent and acknowledged bytes.

use super::AckSample;

/// Detector of the end of a round trip: it is over when something that was sent after its start is acknowledged.
#[derive(Debug, Clone, Copy, Default)]
pub struct RoundTrip {
    /// Payload bytes that had been sent at its start; `None` before the first acknowledgement.
    sent: Option<u64>,
}

impl RoundTrip {
    /// True if the round trip is over. The first acknowledgement of all starts one.
    #[inline]
    pub fn is_over(&mut self, sample: &AckSample<'_>) -> bool {
        match self.sent {
            Some(sent) => sample.delivered.as_u64() > sent,
            None => {
                self.restart(sample);
                false
            }
        }
    }

    /// Starts the next round trip with this acknowledgement.
    #[inline]
    pub fn restart(&mut self, sample: &AckSample<'_>) {
        self.sent = Some(sample.sent().as_u64());
    }
}
