//! Buffers and marks of switches, and links that fail.

use super::fault::at;
use super::translation::{FLOWS_BEGIN, Import, Mode};
use crate::error::ScenarioError;
use crate::import::draft::Effect;
use crate::import::marks::{MarkRows, Marks};
use clearway_formats::{HpccSetting, HpccValue};
use clearway_units::{Bytes, Rate, Span};

impl Import<'_> {
    pub(super) fn switch(&mut self, path: &str) -> Result<(), ScenarioError> {
        let source = format!("{}: pause frames", self.fixed_source());
        self.draft.text("switch", "kind", "shared-buffer", source);
        let (mebibytes, source) = self.whole_of("BUFFER_SIZE", 16);
        let buffer = mebibytes.checked_mul(1 << 20).filter(|bytes| *bytes > 0);
        let Some(buffer) = buffer else {
            let message = format!("a buffer of {mebibytes} MiB is not possible");
            let fix = "write `BUFFER_SIZE` in MiB, such as 32";
            return Err(match self.config.get("BUFFER_SIZE") {
                Some(setting) => at(path, setting, message, fix),
                None => ScenarioError::about(&[], message, fix),
            });
        };
        let source = match self.config.get("BUFFER_SIZE") {
            Some(_) => format!("{source} MiB"),
            None => format!("{source}: {mebibytes} MiB"),
        };
        self.draft
            .set("switch", "buffer", Bytes::new(buffer), source);
        self.marks(path)?;
        if self.mode == Mode::Hpcc {
            let (multiplier, _) = self.whole_of("INT_MULTI", 1);
            let source = format!("{}: fields of the telemetry", self.fixed_source());
            self.draft.text("switch", "telemetry", "hpcc", source);
            if let Some(setting) = self.config.get("INT_MULTI") {
                let (effect, meaning) = match multiplier {
                    1 => (Effect::None, "the units of `switch.telemetry = \"hpcc\"`"),
                    _ => (
                        Effect::Results,
                        "the units of bytes in the telemetry are not multiplied: `switch.telemetry = \"hpcc\"` has those of 1",
                    ),
                };
                self.note_setting(effect, setting, meaning);
            }
        }
        Ok(())
    }

    fn marks(&mut self, path: &str) -> Result<(), ScenarioError> {
        let (enabled, source) = self.switch_of("ENABLE_QCN", true);
        self.draft.set("switch", "ecn.enabled", enabled, source);
        let rows = MarkRows {
            kmin: sizes(self.get("KMIN_MAP")),
            kmax: sizes(self.get("KMAX_MAP")),
            pmax: probabilities(self.get("PMAX_MAP")),
        };
        if !enabled {
            for key in ["KMIN_MAP", "KMAX_MAP", "PMAX_MAP"] {
                if let Some(setting) = self.config.get(key) {
                    self.note_setting(Effect::None, setting, "`ENABLE_QCN` 0 turns marks off");
                }
            }
            return Ok(());
        }
        let marks = Marks::of(&rows, self.files.ports()).map_err(|fault| {
            let setting = self.config.get(fault.key);
            match setting {
                Some(setting) => at(path, setting, fault.message, fault.fix),
                None => ScenarioError::about(&[], format!("{path}: {}", fault.message), fault.fix),
            }
        })?;
        let lines = [
            ("KMIN_MAP", "ecn.kmin"),
            ("KMAX_MAP", "ecn.kmax"),
            ("PMAX_MAP", "ecn.pmax"),
        ];
        for (key, ours) in lines {
            let line = self.config.get(key).map_or(0, |setting| setting.line);
            let source = format!("{}:{line} {key}, {}", self.name, marks.rows);
            match ours {
                "ecn.kmin" => self.draft.set("switch", ours, marks.kmin, source),
                "ecn.kmax" => self.draft.set("switch", ours, marks.kmax, source),
                _ => self.draft.set("switch", ours, marks.pmax, source),
            }
        }
        if let Some(note) = marks.note {
            self.draft
                .note(Effect::Results, "KMIN_MAP, KMAX_MAP, PMAX_MAP", note);
        }
        if self.files.has_nvswitches() {
            let meaning = "SimAI's NVSwitches mark no packets; here they are switches like all others, with the same thresholds";
            self.draft.note(Effect::Results, "NVSwitches", meaning);
        }
        if self.mode == Mode::Dctcp {
            let source = format!("{}: marks of departing packets", self.fixed_source());
            self.draft.text("switch", "ecn.mark", "dequeue", source);
        }
        Ok(())
    }

    /// The link that fails.
    pub(super) fn events(&mut self) {
        let Some(setting) = self.get("LINK_DOWN") else {
            return;
        };
        let HpccValue::LinkDown { after, ends } = setting.value else {
            return;
        };
        if after.is_zero() {
            let meaning = "no link fails";
            self.note_setting(Effect::None, setting, meaning);
            return;
        }
        let Some(name) = self.files.link_name(ends) else {
            let meaning = "the topology has no such link, or is not here; an `[[event]]` with `at`, `link` and `state = \"down\"` takes one down";
            self.note_setting(Effect::Results, setting, meaning);
            return;
        };
        let source = self.source(setting);
        let at = Span::from_ps(FLOWS_BEGIN.as_ps().saturating_add(after.as_ps()));
        let reroute = format!("{}: at once", self.fixed_source());
        self.draft
            .set("topology", "reroute-delay", Span::ZERO, reroute);
        let microseconds = format!("{source}: microseconds after 2 s");
        self.draft.set("event", "at", at, microseconds);
        self.draft.text("event", "link", &name, source.clone());
        self.draft.text("event", "state", "down", source);
    }
}

fn sizes(setting: Option<&HpccSetting>) -> Vec<(Rate, u64)> {
    match setting.map(|setting| &setting.value) {
        Some(HpccValue::Sizes(rows)) => rows.clone(),
        _ => Vec::new(),
    }
}

fn probabilities(setting: Option<&HpccSetting>) -> Vec<(Rate, f64)> {
    match setting.map(|setting| &setting.value) {
        Some(HpccValue::Probabilities(rows)) => rows.clone(),
        _ => Vec::new(),
    }
}
