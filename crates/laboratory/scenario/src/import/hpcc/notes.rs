//! Keys without a counterpart.

use super::translation::{Import, Mode};
use crate::import::draft::Effect;
use clearway_formats::{HpccSetting, HpccValue};

/// Keys that say what the simulator writes, with our form of it.
const OUTPUT: [(&str, &str); 16] = [
    ("FCT_OUTPUT_FILE", "`--fct-txt FILE`"),
    ("PFC_OUTPUT_FILE", PERFETTO),
    ("ENABLE_TRACE", CAPTURE),
    ("TRACE_FILE", CAPTURE),
    ("TRACE_OUTPUT_FILE", CAPTURE),
    ("QLEN_MON_FILE", SERIES),
    ("QLEN_MON_START", SERIES),
    ("QLEN_MON_END", SERIES),
    ("QLEN_MON_INTERVAL", SERIES),
    ("BW_MON_FILE", SERIES),
    ("BW_MON_INTERVAL", SERIES),
    ("RATE_MON_FILE", SERIES),
    ("QP_MON_INTERVAL", SERIES),
    ("CNP_MON_FILE", SERIES),
    ("MON_START", SERIES),
    ("MON_END", SERIES),
];

const PERFETTO: &str = "`observe.trace.perfetto` has the pauses of each link on a timeline";
const CAPTURE: &str = "`observe.trace.pcap` captures packets for Wireshark";
const SERIES: &str =
    "`[observe]` samples queues, links and flows during the whole run (series.parquet)";

/// Keys without effect in the simulator, or with the effect that the scenario has without them.
const WITHOUT_EFFECT: [(&str, &str); 4] = [
    (
        "USE_DYNAMIC_PFC_THRESHOLD",
        "thresholds of pauses are always dynamic, there and here",
    ),
    (
        "PAUSE_TIME",
        "a pause lasts until the frame that ends it, there and here",
    ),
    ("DATA_RATE", "the simulator does not use it"),
    ("LINK_DELAY", "the simulator does not use it"),
];

impl Import<'_> {
    pub(super) fn notes(&mut self) {
        self.losses();
        if let Some(setting) = self.get("NIC_TOTAL_PAUSE_TIME")
            && setting.value != HpccValue::Whole(0)
        {
            let meaning = "NICs do not pause by themselves";
            self.note_setting(Effect::Results, setting, meaning);
        }
        for (key, meaning) in WITHOUT_EFFECT {
            if let Some(setting) = self.get(key) {
                self.note_setting(Effect::None, setting, meaning);
            }
        }
        self.output();
        if self.simai.is_some() {
            let meaning = "SimAI waits before each send, 6 us and more by its tables or `AS_SEND_LAT`; here a send takes no time to post";
            self.draft
                .note(Effect::Results, "Latency of a send", meaning);
            let meaning = "SimAI opens one for each message, at the line rate; here two ranks have a connection for all messages between them";
            self.draft.note(Effect::Results, "Queue pairs", meaning);
        }
        let unused = |setting: &&HpccSetting| !self.used.contains(&setting.key);
        let unused: Vec<&str> = self
            .config
            .settings
            .iter()
            .filter(unused)
            .map(|s| s.key)
            .collect();
        if !unused.is_empty() {
            let mode = match self.mode {
                Mode::Dcqcn => 1,
                Mode::Hpcc => 3,
                Mode::Timely => 7,
                Mode::Dctcp => 8,
            };
            let meaning = format!("`CC_MODE` {mode} has no use for them, there or here");
            self.draft.note(Effect::None, unused.join(", "), meaning);
        }
    }

    fn losses(&mut self) {
        let Some(setting) = self.get("ERROR_RATE_PER_LINK") else {
            return;
        };
        let (effect, meaning) = match setting.value {
            HpccValue::Fraction(rate) if rate > 0.0 => (
                Effect::Results,
                "there is no key for all links: write it as the last word of each link in the topology",
            ),
            _ => (Effect::None, "no packets are lost"),
        };
        self.note_setting(effect, setting, meaning);
    }

    fn output(&mut self) {
        let mut written: Vec<(&str, Vec<&str>)> = Vec::new();
        for (key, meaning) in OUTPUT {
            if self.get(key).is_none() {
                continue;
            }
            match written.iter_mut().find(|(known, _)| *known == meaning) {
                Some((_, keys)) => keys.push(key),
                None => written.push((meaning, vec![key])),
            }
        }
        for (meaning, keys) in written {
            self.draft.note(Effect::Output, keys.join(", "), meaning);
        }
    }
}
