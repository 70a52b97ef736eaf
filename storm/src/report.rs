//! Results of a storm: counts and findings.

use crate::draft::Draft;
use crate::violation::Violation;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::PathBuf;

/// Violations of one signature.
#[derive(Debug)]
pub(crate) struct ViolationGroup {
    count: u64,
    first: Violation,
    /// Number of the first scenario with the violation.
    number: u64,
    /// The smallest scenario that shows the violation, once it is known.
    pub(crate) file: Option<PathBuf>,
}

/// Counts and findings.
#[derive(Debug, Default)]
pub(crate) struct Report {
    /// Scenarios that the program accepted.
    pub(crate) scenarios: u64,
    /// Accepted scenarios whose flows and jobs were all done.
    pub(crate) complete: u64,
    /// Processes, without those of shrinking.
    pub(crate) runs: u64,
    /// Drawn scenarios that the program refused, or that could not be drawn.
    refused: u64,
    reasons: BTreeMap<String, u64>,
    /// Number of scenarios that touched each key.
    coverage: BTreeMap<String, u64>,
    found: BTreeMap<String, ViolationGroup>,
}

impl Report {
    /// Counts the keys of a scenario that ran.
    pub(crate) fn cover(&mut self, draft: &Draft) {
        self.scenarios += 1;
        for entry in draft.entries() {
            *self.coverage.entry(entry.covers.clone()).or_default() += 1;
        }
    }

    /// Counts a refused scenario, with the reason.
    pub(crate) fn refuse(&mut self, reason: String) {
        self.refused += 1;
        *self.reasons.entry(reason).or_default() += 1;
    }

    /// Reasons of refusals, the most frequent first.
    pub(crate) fn refusals(&self) -> String {
        let mut reasons: Vec<(&String, &u64)> = self.reasons.iter().collect();
        reasons.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
        let line = |(reason, count): (&String, &u64)| format!("{count:>8}  refused: {reason}\n");
        reasons.into_iter().map(line).collect()
    }

    /// Adds a violation; true if it is the first of its signature.
    pub(crate) fn add(&mut self, number: u64, violation: &Violation) -> bool {
        let found = self.found.entry(violation.signature());
        let found = found.or_insert_with(|| ViolationGroup {
            count: 0,
            first: violation.clone(),
            number,
            file: None,
        });
        found.count += 1;
        found.count == 1
    }

    /// The finding with this signature.
    pub(crate) fn found(&mut self, signature: &str) -> Option<&mut ViolationGroup> {
        self.found.get_mut(signature)
    }

    pub(crate) fn violations(&self) -> u64 {
        self.found.values().map(|found| found.count).sum()
    }

    /// Summary in one line.
    pub(crate) fn line(&self, minutes: f64, seed: u64) -> String {
        format!(
            "{} scenarios, {} runs, {} refused, {} violations in {minutes:.1} minutes (seed {seed})",
            self.scenarios,
            self.runs,
            self.refused,
            self.violations()
        )
    }

    /// Each kind of violation with its count and file.
    pub(crate) fn findings(&self) -> String {
        let mut text = String::new();
        for (signature, found) in &self.found {
            let times = if found.count == 1 { "once" } else { "times" };
            let count = match found.count {
                1 => times.to_owned(),
                count => format!("{count} {times}"),
            };
            let _ = writeln!(
                text,
                "VIOLATION {signature} ({count}, first in scenario {})",
                found.number
            );
            for line in found.first.detail.lines() {
                let _ = writeln!(text, "    {}", shortened(line));
            }
            if let Some(file) = &found.file {
                let _ = writeln!(text, "    clearway run {}", file.display());
            }
        }
        text
    }

    /// Number of keys and kinds that runs touched and, if `all`, the number of scenarios that touched each.
    pub(crate) fn coverage(&self, universe: &BTreeSet<String>, all: bool) -> String {
        let touched = |key: &&String| self.coverage.contains_key(*key);
        let count = universe.iter().filter(touched).count();
        let mut text = format!("{count} of {} keys and kinds in runs\n", universe.len());
        if all {
            for key in universe {
                let count = self.coverage.get(key).unwrap_or(&0);
                let _ = writeln!(text, "{count:>8}  {key}");
            }
        }
        text
    }
}

/// Beginning of a line: rows of large tables are useless in a log.
fn shortened(line: &str) -> &str {
    let end = line
        .char_indices()
        .nth(400)
        .map_or(line.len(), |(end, _)| end);
    &line[..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_alike_is_told_once() {
        let mut report = Report::default();
        let violation = Violation::new("panic", "x.rs:1", "one\ntwo");
        assert!(report.add(7, &violation));
        assert!(!report.add(8, &violation));
        assert!(report.add(9, &Violation::new("digest", "of two runs", "")));
        report.found("panic: x.rs:1").unwrap().file = Some("a.toml".into());
        assert_eq!(
            report.findings(),
            "VIOLATION digest: of two runs (once, first in scenario 9)\n\
             VIOLATION panic: x.rs:1 (2 times, first in scenario 7)\n    one\n    two\n    clearway run a.toml\n"
        );
        assert_eq!(
            report.line(2.0, 5),
            "0 scenarios, 0 runs, 0 refused, 3 violations in 2.0 minutes (seed 5)"
        );
    }
}
