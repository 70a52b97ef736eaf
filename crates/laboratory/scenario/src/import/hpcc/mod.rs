//! The scenario of HPCC's `config.txt`, and of `SimAI.conf` with SimAI's command line.
//!
//! Facts are from `third.cc`, `rdma-hw.cc`, `switch-mmu.cc` of HPCC's simulator, and from `common.h` and `entry.h` of SimAI. A key that the
//! file lacks has the program's default, which often differs from the value in published files: `MULTI_RATE` is 1, `EWMA_GAIN` 0.

mod fault;
mod files;
mod notes;
mod switch;
mod translation;
mod transport;

use super::draft::{Draft, Effect, Imported};
use super::paths::from_folder;
use super::simai_files::SimaiFiles;
use crate::error::ScenarioError;
use crate::limits::LONGEST;
use clearway_formats::{HpccConfig, HpccValue, parse_hpcc_config, read_text};
use clearway_input::InputKind;
use clearway_units::{Span, Time};
use fault::at;
use files::Files;
use std::path::Path;
use translation::{FLOWS_BEGIN, Import, Mode};

/// Stop of HPCC's simulator if the file does not say.
const STOP: Span = Span::from_ms(3010);

pub(super) fn import(
    path: &str,
    simai: Option<SimaiFiles<'_>>,
    folder: Option<&Path>,
) -> Result<Imported, ScenarioError> {
    let text = read_text(Path::new(path), InputKind::SCENARIO)?;
    let config = parse_hpcc_config(path, &text)?;
    let files = Files::read(path, &config, simai)?;
    let (tool, hint) = match simai {
        None => (
            format!("From HPCC's {path}."),
            "`clearway run FILE --fct-txt fct.txt` writes HPCC's fct.txt.",
        ),
        Some(files) => (
            format!(
                "From SimAI's {path}, `-n {}` and `-w {}`.",
                files.topology, files.workload
            ),
            "`clearway run FILE` runs it.",
        ),
    };
    let name = Path::new(path).file_name();
    let mut import = Import {
        config: &config,
        name: name.map_or_else(
            || path.to_owned(),
            |name| name.to_string_lossy().into_owned(),
        ),
        mode: mode(path, &config, simai)?,
        simai,
        files,
        draft: Draft::new([
            format!("{tool} A comment names the source of each key."),
            hint.into(),
        ]),
        used: vec!["CC_MODE"],
    };
    for warning in &config.warnings {
        let place = format!("{}:{}", import.name, warning.line);
        import
            .draft
            .note(Effect::None, place, warning.message.clone());
    }
    import.general(path)?;
    import.topology(folder);
    import.switch(path)?;
    import.transport(path)?;
    import.workload(folder);
    import.events();
    import.notes();
    Ok(import.draft.finish())
}

fn mode(
    path: &str,
    config: &HpccConfig,
    simai: Option<SimaiFiles<'_>>,
) -> Result<Mode, ScenarioError> {
    let Some(setting) = config.get("CC_MODE") else {
        return Ok(Mode::Dcqcn);
    };
    let refuse = |message: String, fix: &str| Err(at(path, setting, message, fix));
    match setting.value {
        HpccValue::Whole(1) => Ok(Mode::Dcqcn),
        HpccValue::Whole(3) => Ok(Mode::Hpcc),
        HpccValue::Whole(7) => Ok(Mode::Timely),
        HpccValue::Whole(8) => Ok(Mode::Dctcp),
        HpccValue::Whole(10) => refuse(
            "`CC_MODE` 10, HPCC-PINT, is not available".into(),
            "choose 3, HPCC with telemetry of each hop, or another mode: 1 DCQCN, 7 TIMELY, 8 DCTCP",
        ),
        _ => refuse(
            format!("`CC_MODE` {} is no mode of {}", setting.text, tool(simai)),
            "write 1 for DCQCN, 3 for HPCC, 7 for TIMELY or 8 for DCTCP",
        ),
    }
}

const fn tool(simai: Option<SimaiFiles<'_>>) -> &'static str {
    match simai {
        None => "HPCC's simulator",
        Some(_) => "SimAI",
    }
}

impl Import<'_> {
    fn general(&mut self, path: &str) -> Result<(), ScenarioError> {
        let named = match self.simai {
            None => self.files.flows_path.clone(),
            Some(files) => files.workload.to_owned(),
        };
        let stem = Path::new(&named).file_stem();
        let stem = stem.map(|stem| stem.to_string_lossy().trim().to_owned());
        let name = stem.filter(|stem| !stem.is_empty());
        let source = match self.simai {
            None => "FLOW_FILE".to_owned(),
            Some(files) => format!("-w {}", files.workload),
        };
        let name = name.unwrap_or_else(|| "imported".into());
        self.draft.text("", "name", &name, source);
        if self.simai.is_some() {
            let source = "SimAI runs until the workload is done";
            self.draft.set("", "stop.at-most", LONGEST, source);
            if let Some(setting) = self.get("SIMULATOR_STOP_TIME") {
                let meaning = "SimAI does not use it";
                self.note_setting(Effect::None, setting, meaning);
            }
            return Ok(());
        }
        let setting = self.config.get("SIMULATOR_STOP_TIME");
        let (stop, source) = self.duration_of("SIMULATOR_STOP_TIME", STOP);
        let first = match self.files.first_start {
            Some(first) => first.since(Time::ZERO),
            None => {
                let meaning = "there is no such file here, so that `stop.at-most` counts from a first start at 2 s";
                let what = format!("FLOW_FILE {}", self.files.flows_path);
                self.draft.note(Effect::Results, what, meaning);
                FLOWS_BEGIN
            }
        };
        if stop <= first {
            let message =
                format!("HPCC's simulator stops at {stop}, before the first flow at {first}");
            let fix = "write a later `SIMULATOR_STOP_TIME`, in seconds";
            return Err(match setting {
                Some(setting) => at(path, setting, message, fix),
                None => ScenarioError::about(&[], message, fix),
            });
        }
        let source = format!("{source}, less the first start at {first}");
        let time = stop.saturating_sub(first).min(LONGEST);
        self.draft.set("", "stop.at-most", time, source);
        Ok(())
    }

    fn topology(&mut self, folder: Option<&Path>) {
        let (path, source) = match (self.simai, self.get("TOPOLOGY_FILE")) {
            (Some(files), setting) => {
                if let Some(setting) = setting {
                    let meaning = "SimAI takes the topology of its command line";
                    self.note_setting(Effect::None, setting, meaning);
                }
                (files.topology.to_owned(), format!("-n {}", files.topology))
            }
            (None, setting) => {
                let source = setting.map(|setting| self.source(setting));
                (self.files.topology_path.clone(), source.unwrap_or_default())
            }
        };
        let shown = from_folder(&path, folder);
        self.draft.text("topology", "file", &shown, source.clone());
        if self.files.topology.is_none() {
            let meaning =
                "there is no such file here, so that keys which depend on its rates may be wrong";
            self.draft.note(Effect::Results, source, meaning);
        }
    }

    fn workload(&mut self, folder: Option<&Path>) {
        let setting = self.get("FLOW_FILE");
        if let Some(files) = self.simai {
            if let Some(setting) = setting {
                let meaning = "SimAI takes its traffic from the workload";
                self.note_setting(Effect::None, setting, meaning);
            }
            let source = format!("-w {}", files.workload);
            let path = from_folder(files.workload, folder);
            self.draft.text("workload", "kind", "trace", source.clone());
            self.draft.text("workload", "file", &path, source);
            return;
        }
        let source = setting.map(|setting| self.source(setting));
        let path = from_folder(&self.files.flows_path, folder);
        self.draft
            .text("workload", "file", &path, source.unwrap_or_default());
    }
}
