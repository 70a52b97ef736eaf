//! Packets, acknowledgements and congestion control.

use super::fault::at;
use super::translation::{Import, Mode};
use crate::error::ScenarioError;
use crate::import::draft::Effect;
use clearway_formats::HpccValue;
use clearway_units::{Bytes, Rate, Span};

impl Import<'_> {
    pub(super) fn transport(&mut self, path: &str) -> Result<(), ScenarioError> {
        let source = match self.config.get("CC_MODE") {
            Some(setting) => self.source(setting),
            None => self.default_source().into(),
        };
        let (kind, controller) = match self.mode {
            Mode::Dcqcn => ("rocev2", Some("dcqcn-timer")),
            Mode::Hpcc => ("hpcc", None),
            Mode::Timely => ("timely", None),
            Mode::Dctcp => ("dctcp", Some("dctcp-rate")),
        };
        self.draft.text("transport", "kind", kind, source);
        if let Some(controller) = controller {
            let source = format!("its form {}", self.fixed_source());
            self.draft
                .text("transport", "controller", controller, source);
        }
        if self.mode == Mode::Dcqcn {
            let source = format!("{}: marks on acknowledgements", self.fixed_source());
            self.draft.text("transport", "feedback", "none", source);
        }
        self.packets(path)?;
        match self.mode {
            Mode::Dcqcn => self.dcqcn(path)?,
            Mode::Hpcc => self.hpcc(path)?,
            Mode::Timely => self.timely(path)?,
            Mode::Dctcp => self.dctcp(),
        }
        if let Some(setting) = self.get("RATE_BOUND") {
            let (effect, meaning) = match setting.value {
                HpccValue::Switch(false) => (
                    Effect::Results,
                    "senders always pace at the controller's rate; pacing at the line rate alone is not available",
                ),
                _ => (Effect::None, "senders always pace at the controller's rate"),
            };
            self.note_setting(effect, setting, meaning);
        }
        Ok(())
    }

    fn packets(&mut self, path: &str) -> Result<(), ScenarioError> {
        let (payload, source) = self.whole_of("PACKET_PAYLOAD_SIZE", 1000);
        if payload == 0 {
            let message = "packets without payload carry nothing";
            let fix = "write `PACKET_PAYLOAD_SIZE` in bytes, such as 1000";
            return Err(match self.config.get("PACKET_PAYLOAD_SIZE") {
                Some(setting) => at(path, setting, message, fix),
                None => ScenarioError::about(&[], message, fix),
            });
        }
        self.draft
            .set("transport", "payload", Bytes::new(payload), source);
        // Ethernet 14, IP 20, UDP 8, sequence number and priority 6 B; SimAI's sequence numbers have 4 B more, and TIMELY's packets a time
        // stamp of 8 B. Acknowledgements: Ethernet, IP, and 12 B of ports, flags, priority and sequence number, padded to 60 B.
        let wide = if self.simai.is_some() { 4 } else { 0 };
        let stamp = if self.mode == Mode::Timely { 8 } else { 0 };
        let acknowledgement = match self.mode {
            Mode::Hpcc => 46 + wide,
            _ => (46 + wide + stamp).max(60),
        };
        let fixed = self.fixed_source();
        let source = match self.mode {
            Mode::Timely => format!("{fixed}, with a time stamp of 8 B"),
            _ => fixed.to_owned(),
        };
        self.draft
            .set("transport", "header", Bytes::new(48 + wide + stamp), source);
        let source = match self.mode {
            Mode::Hpcc => format!("{fixed}, without its telemetry"),
            _ => format!("{fixed}, padded"),
        };
        self.draft
            .set("transport", "ack-size", Bytes::new(acknowledgement), source);
        let (interval, source) = self.whole_of("L2_ACK_INTERVAL", 0);
        let packets = interval.div_ceil(payload).max(1).min(u64::from(u32::MAX));
        let source = format!("{source}: bytes, in packets");
        self.draft.set("transport", "ack-interval", packets, source);
        // Hosts send acknowledgements first in any case. Switches never learn of the key, and queue them with data.
        let source = match self.switch_of("ACK_HIGH_PRIO", false) {
            (true, source) => format!("{source}: at hosts alone, switches queue them with data"),
            (false, source) => source,
        };
        self.draft.text("transport", "ack-class", "data", source);
        if let Some(setting) = self.get("L2_BACK_TO_ZERO") {
            let (effect, meaning) = match setting.value {
                HpccValue::Switch(true) => (
                    Effect::Results,
                    "after a loss the sender goes back to the missing packet, not to the start of its chunk",
                ),
                _ => (Effect::None, "the sender goes back to the missing packet"),
            };
            self.note_setting(effect, setting, meaning);
        }
        if let Some(setting) = self.get("L2_CHUNK_SIZE") {
            self.note_setting(Effect::None, setting, "for `L2_BACK_TO_ZERO` 1 only");
        }
        Ok(())
    }

    fn dcqcn(&mut self, path: &str) -> Result<(), ScenarioError> {
        self.gain();
        let (period, source) = self.duration_of("ALPHA_RESUME_INTERVAL", Span::from_us(55));
        self.draft.set("transport", "alpha-timer", period, source);
        let (period, source) = self.duration_of("RATE_DECREASE_INTERVAL", Span::from_us(4));
        self.draft
            .set("transport", "decrease-timer", period, source);
        let (period, source) = self.duration_of("RP_TIMER", Span::ZERO);
        if period.is_zero() {
            let message = "`RP_TIMER` is 0, so that the rate rises without a pause";
            let fix = "write a period in microseconds, such as `RP_TIMER 900`";
            return Err(match self.config.get("RP_TIMER") {
                Some(setting) => at(path, setting, message, fix),
                None => ScenarioError::about(&[], format!("{path}: {message}"), fix),
            });
        }
        self.draft.set("transport", "rate-timer", period, source);
        let (steps, source) = self.whole_of("FAST_RECOVERY_TIMES", 5);
        self.draft
            .set("transport", "fast-recovery-steps", steps, source);
        let (rate, source) = self.needed_rate("RATE_AI", path)?;
        self.draft.set("transport", "rate-ai", rate, source);
        let (rate, source) = self.needed_rate("RATE_HAI", path)?;
        self.draft.set("transport", "rate-hai", rate, source);
        self.least_rate();
        let (clamps, source) = self.switch_of("CLAMP_TARGET_RATE", false);
        self.draft.set("transport", "clamp-target", clamps, source);
        self.window();
        self.window_of_pairs();
        Ok(())
    }

    fn hpcc(&mut self, path: &str) -> Result<(), ScenarioError> {
        let (target, source) = self.number_of("U_TARGET", 0.95);
        self.draft
            .set("transport", "target-utilisation", target, source);
        let (stages, source) = self.whole_of("MI_THRESH", 5);
        self.draft.set("transport", "max-stage", stages, source);
        let (rate, source) = self.needed_rate("RATE_AI", path)?;
        self.draft.set("transport", "rate-ai", rate, source);
        self.least_rate();
        self.base_rtt();
        let (reacts, source) = self.switch_of("FAST_REACT", true);
        self.draft.set("transport", "fast-react", reacts, source);
        let (has_window, _) = self.switch_of("HAS_WIN", true);
        let (scales, _) = self.switch_of("VAR_WIN", false);
        let (effect, key) = match (has_window, scales) {
            (false, _) => (Effect::Results, "HAS_WIN"),
            (true, false) => (Effect::Results, "VAR_WIN"),
            (true, true) => (Effect::None, "VAR_WIN"),
        };
        let meaning = "HPCC here always has a window that scales with the rate, as with `HAS_WIN` 1 and `VAR_WIN` 1";
        self.note_key(effect, key, "0", meaning);
        let (by_hop, _) = self.switch_of("MULTI_RATE", true);
        let effect = if by_hop {
            Effect::Results
        } else {
            Effect::None
        };
        let meaning = "one rate for all hops, as with 0; a rate for each hop is not available";
        self.note_key(effect, "MULTI_RATE", "1", meaning);
        if let Some(setting) = self.get("SAMPLE_FEEDBACK") {
            let (effect, meaning) = match setting.value {
                HpccValue::Switch(true) => (
                    Effect::Results,
                    "telemetry of some packets alone is not available: all packets have it, as with 0",
                ),
                _ => (Effect::None, "all packets have telemetry"),
            };
            self.note_setting(effect, setting, meaning);
        }
        Ok(())
    }

    fn timely(&mut self, path: &str) -> Result<(), ScenarioError> {
        let source = format!("{}: thresholds of 50 and 500 us", self.fixed_source());
        self.draft.set("transport", "scaled", false, source);
        let (rate, source) = self.needed_rate("RATE_AI", path)?;
        self.draft.set("transport", "rate-ai", rate, source);
        let (rate, source) = self.needed_rate("RATE_HAI", path)?;
        self.draft.set("transport", "rate-hai", rate, source);
        self.least_rate();
        self.window();
        self.window_of_pairs();
        Ok(())
    }

    fn dctcp(&mut self) {
        self.gain();
        let (rate, source) = self.rate_of("DCTCP_RATE_AI", Rate::from_gbps(1));
        self.draft.set("transport", "rate-ai", rate, source);
        self.least_rate();
        self.window();
        self.window_of_pairs();
    }

    fn gain(&mut self) {
        let (gain, source) = self.number_of("EWMA_GAIN", 0.0);
        let source = match self.config.get("EWMA_GAIN") {
            Some(_) => source,
            None => format!("{source}: 1/16 in whole numbers"),
        };
        self.draft.set("transport", "g", gain, source);
    }

    fn least_rate(&mut self) {
        let (rate, source) = self.rate_of("MIN_RATE", Rate::from_bps(100_000_000));
        self.draft.set("transport", "min-rate", rate, source);
    }

    fn window(&mut self) {
        let (has_window, source) = self.switch_of("HAS_WIN", true);
        let (scales, scale_source) = self.switch_of("VAR_WIN", false);
        let (window, source) = match (has_window, scales) {
            (false, _) => ("none", source),
            (true, false) => ("fixed", format!("HAS_WIN 1; {scale_source}")),
            (true, true) => ("scaled", format!("HAS_WIN 1; {scale_source}")),
        };
        self.draft.text("transport", "window", window, source);
    }

    /// Round trip of HPCC's window.
    fn base_rtt(&mut self) {
        let (is_global, source) = self.global_window();
        let base = if is_global { "network" } else { "path" };
        self.draft.text("transport", "base-rtt", base, source);
    }

    /// Notes a window of the pair of hosts, which other controllers than HPCC's do not have.
    fn window_of_pairs(&mut self) {
        let (has_window, _) = self.switch_of("HAS_WIN", true);
        let (is_global, source) = self.global_window();
        if !has_window || is_global {
            if self.config.get("GLOBAL_T").is_some() {
                let meaning = "windows are those of the longest round trip";
                self.draft.note(Effect::None, source, meaning);
            }
            return;
        }
        let meaning = "windows are those of the longest round trip of the network, as with 1; a window for each pair of hosts is not available";
        self.draft.note(Effect::Results, source, meaning);
    }

    /// True if all flows have the longest round trip.
    fn global_window(&mut self) -> (bool, String) {
        let (is_global, source) = self.switch_of("GLOBAL_T", true);
        match (self.simai, is_global) {
            (Some(_), false) => (true, format!("{source}, which SimAI takes for 1")),
            _ => (is_global, source),
        }
    }

    fn rate_of(&mut self, key: &'static str, default: Rate) -> (Rate, String) {
        match self.get(key).map(|setting| (&setting.value, setting)) {
            Some((HpccValue::Rate(rate), setting)) => (*rate, self.source(setting)),
            _ => (default, self.default_source().into()),
        }
    }

    /// Value of a key without which the program stops.
    fn needed_rate(
        &mut self,
        key: &'static str,
        path: &str,
    ) -> Result<(Rate, String), ScenarioError> {
        match self.get(key).map(|setting| (&setting.value, setting)) {
            Some((HpccValue::Rate(rate), setting)) => Ok((*rate, self.source(setting))),
            _ => Err(ScenarioError::about(
                &[],
                format!("{path}: `{key}` is missing, and the simulator has no default for it"),
                format!("write it, such as `{key} 50Mb/s`"),
            )),
        }
    }
}
