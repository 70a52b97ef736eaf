//! Result folders as variants.

use crate::failure::{Failure, with_causes};
use clearway_input::InputKind;
use clearway_lab::without_bdp_comments;
use clearway_report::comparison::RunCurve;
use clearway_report::{ComparedRun, FlowTable, FlowTimes, Summary, read_flows};
use std::path::{Path, PathBuf};

/// Result folders that differ only in their seeds.
pub(super) struct Group {
    /// The folders, as the user named them.
    pub(super) paths: Vec<PathBuf>,
    pub(super) runs: Vec<ComparedRun>,
    /// Label from the user.
    given: Option<String>,
    /// Common key of the folders; `None` without a resolved scenario.
    key: Option<Key>,
}

#[derive(PartialEq)]
struct Key {
    /// The resolved scenario without its seed.
    scenario: String,
    version: String,
    revision: String,
}

impl Group {
    /// Reads the result folder at `path`.
    pub(super) fn read(path: &Path) -> Result<Self, Failure> {
        let fault = |error: &dyn std::error::Error, fix: &str| {
            let error = with_causes(error);
            Failure::new(format!("{}: {error}\n  fix: {fix}", path.display()))
        };
        if !path.join("summary.json").exists() {
            return Err(Failure::new(format!(
                "{}: there is no summary.json in it\n  fix: name a result folder, such as those in it: `{}/*`",
                path.display(),
                path.display()
            )));
        }
        let again = format!(
            "run its scenario again: `clearway run {0}/scenario.toml --out {0}`",
            path.display()
        );
        let mut summary = Summary::read(path).map_err(|error| fault(&error, &again))?;
        // A scale-up run has operations and no flows.
        let FlowTable { sections, flows } = match summary.is_of_flows() {
            true => read_flows(path).map_err(|error| fault(&error, &again))?,
            false => FlowTable::default(),
        };
        let curves = RunCurve::read(path).map_err(|error| fault(&error, &again))?;
        if flows.len() as u64 != summary.flows.total {
            return Err(Failure::new(format!(
                "{}: flows.parquet has {} flows where summary.json has {}: they are not of the same run\n  fix: {again}",
                path.display(),
                flows.len(),
                summary.flows.total
            )));
        }
        let flows: Vec<FlowTimes> = flows.iter().map(FlowTimes::from).collect();
        summary.analyse(&flows, &sections);
        let resolved =
            clearway_input::read_text(&path.join("scenario.toml"), InputKind::SCENARIO).ok();
        let key = resolved.map(|text| Key {
            scenario: without_seed(&without_bdp_comments(&text)),
            version: summary.version.clone(),
            revision: summary.revision.clone(),
        });
        let run = ComparedRun {
            summary,
            flows,
            curves,
            folder: Some(path.display().to_string()),
        };
        Ok(Self {
            paths: vec![path.to_owned()],
            runs: vec![run],
            given: None,
            key,
        })
    }

    /// The same group with a label, if there is one.
    pub(super) fn named(self, given: Option<&str>) -> Self {
        let given = given.map(str::to_owned);
        Self { given, ..self }
    }

    /// True if the runs of `other` are further seeds of the same scenario.
    pub(super) fn takes(&self, other: &Self) -> bool {
        let seed = |run: &ComparedRun| run.summary.scenario.seed;
        let known = |run| self.runs.iter().any(|own| seed(own) == seed(run));
        self.key.is_some()
            && self.key == other.key
            && self.given == other.given
            && !other.runs.iter().any(known)
    }

    pub(super) fn join(&mut self, other: Self) {
        self.paths.extend(other.paths);
        self.runs.extend(other.runs);
        self.runs.sort_by_key(|run| run.summary.scenario.seed);
    }

    /// True if the group has a label from the user.
    pub(super) fn is_named(&self) -> bool {
        self.given.is_some()
    }

    /// Keys of the scenario that its file or the command line set.
    pub(super) fn given(&self) -> &[String] {
        self.runs.first().map_or(&[], |run| &run.summary.given)
    }

    /// The label from the user, or the first folder and the number of other folders.
    pub(super) fn label(&self) -> String {
        if let Some(given) = &self.given {
            return given.clone();
        }
        let first = self.paths[0].display();
        match self.paths.len() {
            1 => first.to_string(),
            several => format!("{first} and {} more", several - 1),
        }
    }
}

/// A resolved scenario without its seed, which stands before the first section.
fn without_seed(resolved: &str) -> String {
    let mut top = true;
    let mut kept = String::new();
    for line in resolved.lines() {
        top &= !line.starts_with('[');
        if !(top && line.starts_with("seed = ")) {
            kept.push_str(line);
            kept.push('\n');
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_seed_of_the_top_is_left_out() {
        let text = "name = \"x\"\nseed = 3\n\n[topology]\nseed = 3\n";
        assert_eq!(without_seed(text), "name = \"x\"\n\n[topology]\nseed = 3\n");
    }
}
