//! A controller that reacts to every bit of telemetry, so that two simulators which write different telemetry part.

use clearway_transport::congestion::telemetry::Hop;
use clearway_transport::congestion::{
    AckSample, Allowance, CongestionControl, ControllerDefinition, NetworkFacts,
};
use clearway_units::mix64;

clearway_units::parameters! {
    /// Settings of the sniffer.
    pub struct Settings {
        /// Packets in the largest window.
        pub packets: u32 = 16, "packets", "enough to fill queues";
    }
}

/// A window of one packet or more that follows from all hops of the last acknowledgement and from how many there were.
#[derive(Debug)]
pub(crate) struct Sniffer {
    packets: u64,
    payload: u32,
    scent: u64,
}

impl CongestionControl for Sniffer {
    fn on_ack(&mut self, sample: &AckSample<'_>) {
        let sniff = |scent, hop: &Hop| {
            let words = [
                hop.time.as_ps(),
                hop.rate.as_bps(),
                u64::from(hop.sent) << 32 | u64::from(hop.queue),
            ];
            words.iter().fold(scent, |scent, word| mix64(scent ^ word))
        };
        let hops = sample.hops.len() as u64;
        self.scent = sample.hops.iter().fold(mix64(hops), sniff);
    }

    fn allowance(&self) -> Allowance {
        let packets = self.scent % self.packets + 1;
        Allowance {
            window: (packets * u64::from(self.payload)) as f64,
            rate: None,
        }
    }

    fn largest_window(&self) -> f64 {
        (u64::from(self.payload) * self.packets) as f64
    }

    fn uses_telemetry(&self) -> bool {
        true
    }
}

impl ControllerDefinition for Sniffer {
    const NAME: &'static str = "sniffer";
    const SUMMARY: &'static str = "a window drawn from telemetry";
    type Parameters = Settings;

    fn new(settings: &Settings, network: &NetworkFacts) -> Self {
        Self {
            packets: settings.packets.into(),
            payload: network.payload,
            scent: 0,
        }
    }
}
