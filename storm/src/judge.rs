//! One scenario, from its file to the verdict.

use crate::check::{self, Results};
use crate::draft::Draft;
use crate::run::{Ended, Limits, Runner};
use crate::violation::Violation;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Maximum memory of one run, in bytes.
const MEMORY: u64 = 3_000_000_000;
/// Maximum CPU time of a run on one thread: three times the need of the slowest scenario drawn so far.
const CPU_SECONDS: u64 = 45;
/// Maximum CPU time of a run on two threads, one of which may wait for the other without sleeping.
const CPU_SECONDS_OF_TWO: u64 = 135;
/// Limit of wall time, far above the limits of CPU time: other processes may need the machine.
const WALL: Duration = Duration::from_secs(300);
/// CPU time that a run on two threads may use beyond five times the CPU time on one thread.
const SECONDS_TO_SPARE: f64 = 3.0;

/// Verdict on a scenario.
#[derive(Debug)]
pub(crate) enum ScenarioVerdict {
    /// The program refuses the scenario.
    Refused(Refusal),
    /// All checks hold; `complete` is true if all flows and jobs were done.
    Sound {
        complete: bool,
    },
    Wrong(Violation),
}

/// Refusal of a scenario by the program.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    /// Line of the scenario that the program names.
    pub(crate) line: Option<usize>,
    /// Reason that the program gives, with `#` in place of each number.
    pub(crate) reason: String,
}

/// Runs and checks scenarios, one at a time.
#[derive(Debug)]
pub(crate) struct Judge {
    runner: Runner,
    scenario: PathBuf,
    limits: Limits,
    /// Processes started.
    pub(crate) runs: u64,
}

impl Judge {
    /// Creates the judge `number`, with its files in `folder`.
    ///
    /// # Errors
    /// If the files cannot be created.
    pub(crate) fn new(program: &Path, folder: &Path, number: usize) -> io::Result<Self> {
        Ok(Self {
            runner: Runner::new(program, folder.join(format!("work-{number}")))?,
            // In the same folder as the files that the scenario may name.
            scenario: folder.join(format!("work-{number}.toml")),
            limits: Limits {
                memory: MEMORY,
                cpu: CPU_SECONDS,
                wall: WALL,
            },
            runs: 0,
        })
    }

    /// True if `draft` leads to a violation with the signature of `known`. Violations other than endless runs appear early, and get less
    /// CPU time.
    pub(crate) fn confirms(&mut self, draft: &Draft, known: &Violation) -> io::Result<bool> {
        let limits = self.limits;
        if known.kind != "time" {
            self.limits.cpu = 5;
        }
        let again = known.kind == "resolved";
        let judged = self.judge(draft, again);
        self.limits = limits;
        Ok(match judged? {
            ScenarioVerdict::Wrong(violation) => violation.signature() == known.signature(),
            ScenarioVerdict::Refused(_) | ScenarioVerdict::Sound { .. } => false,
        })
    }

    /// Runs `draft` on one and two threads, and if `again` is set also from the resolved scenario, and checks all results.
    ///
    /// # Errors
    /// If the runs are not possible.
    pub(crate) fn judge(&mut self, draft: &Draft, again: bool) -> io::Result<ScenarioVerdict> {
        self.judge_text(&draft.text(), again)
    }

    /// Runs and checks the text of a scenario file, as [`judge`](Self::judge) does for a draft.
    ///
    /// # Errors
    /// If the runs are not possible.
    pub(crate) fn judge_text(&mut self, text: &str, again: bool) -> io::Result<ScenarioVerdict> {
        std::fs::write(&self.scenario, text)?;
        let scenario = self.scenario.clone();
        let one = self.run(&scenario, "one", 1)?;
        if one.code == Some(2) {
            return Ok(ScenarioVerdict::Refused(Refusal::read(
                &one.errors,
                &scenario,
            )));
        }
        let first = match checked(&one) {
            Ok(results) => results,
            Err(violation) => return Ok(ScenarioVerdict::Wrong(violation)),
        };
        let two = self.run(&scenario, "two", 2)?;
        if let Err(violation) = compared(&one, &first, &two) {
            return Ok(ScenarioVerdict::Wrong(violation));
        }
        if again {
            let third = self.run(&one.out.join("scenario.toml"), "three", 1)?;
            if let Err(violation) = resolved(&first, &third) {
                return Ok(ScenarioVerdict::Wrong(violation));
            }
        }
        let complete = one.code == Some(0);
        Ok(ScenarioVerdict::Sound { complete })
    }

    fn run(&mut self, scenario: &Path, name: &str, threads: u32) -> io::Result<Ended> {
        self.runs += 1;
        let cpu = match threads {
            1 => self.limits.cpu,
            _ => self.limits.cpu * (CPU_SECONDS_OF_TWO / CPU_SECONDS),
        };
        let limits = Limits { cpu, ..self.limits };
        self.runner.run(scenario, name, threads, limits)
    }
}

impl Refusal {
    /// Finds line and reason in the errors of the program about `scenario`.
    fn read(errors: &str, scenario: &Path) -> Self {
        let place = format!("{}:", scenario.display());
        let rest = errors.split_once(&place).map_or(errors, |(_, rest)| rest);
        let (line, reason) = rest.split_once(':').unwrap_or(("", rest));
        let line = line.parse().ok();
        let reason = if line.is_some() { reason } else { rest };
        let reason = reason.lines().next().unwrap_or_default().trim();
        let mut alike = String::new();
        for c in reason.chars() {
            match c.is_ascii_digit() {
                true if alike.ends_with('#') => {}
                true => alike.push('#'),
                false => alike.push(c),
            }
        }
        Self {
            line,
            reason: alike,
        }
    }
}

/// The results of a run, checked without another run.
fn checked(ended: &Ended) -> Result<Results, Violation> {
    check::exit(ended)?;
    let results = Results::read(&ended.out)?;
    results.check(ended)?;
    Ok(results)
}

/// Compares the run on two threads with the run on one.
fn compared(one: &Ended, first: &Results, two: &Ended) -> Result<(), Violation> {
    let on_two = |violation: Violation| Violation {
        mark: format!("{} (two threads)", violation.mark),
        ..violation
    };
    check::exit(two).map_err(on_two)?;
    if one.code != two.code {
        let detail = format!("{:?} on one thread, {:?} on two", one.code, two.code);
        return Err(Violation::new("exit", "codes differ", detail));
    }
    let second = Results::read(&two.out).map_err(on_two)?;
    check::same((first, &one.out), (&second, &two.out))?;
    let cpu = [first, &second].map(|results| results.summary.cpu_seconds);
    if cpu[1] > 5.0 * cpu[0] + SECONDS_TO_SPARE {
        let detail = format!("CPU {:.2} s on one thread, {:.2} s on two", cpu[0], cpu[1]);
        return Err(Violation::new("threads", "slow on two", detail));
    }
    Ok(())
}

/// Compares the run from the resolved scenario, which gives every key.
fn resolved(first: &Results, third: &Ended) -> Result<(), Violation> {
    let fault = |mark: &str, detail: String| Err(Violation::new("resolved", mark, detail));
    if !matches!(third.code, Some(0 | 1)) {
        return fault("refused", format!("{}\n{}", third.status, third.errors));
    }
    let again = Results::read(&third.out)?;
    let outcomes = [first, &again].map(|results| {
        let summary = &results.summary;
        (summary.digest.clone(), summary.scenario.hash.clone())
    });
    match outcomes[0] == outcomes[1] {
        true => Ok(()),
        false => fault("another outcome", format!("digest and hash: {outcomes:?}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refused_lines_are_found() {
        let path = Path::new("/x/work-0.toml");
        let read = |errors| {
            let refusal = Refusal::read(errors, path);
            (refusal.line, refusal.reason)
        };
        let errors = "error: /x/work-0.toml:12: `queue` cannot be 30\n  fix: expected\n";
        assert_eq!(read(errors), (Some(12), "`queue` cannot be #".into()));
        let whole = "error: /x/work-0.toml: what\n";
        assert_eq!(read(whole), (None, "what".into()));
        let other = "error: other.toml:3: what\n";
        assert_eq!(read(other).0, None);
    }
}
