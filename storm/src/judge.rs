//! One scenario from the file to the verdict.

use crate::check::{self, Results};
use crate::draft::Draft;
use crate::run::{Ended, Limits, Runner};
use crate::violation::Violation;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Memory that one run may use, in bytes.
const MEMORY: u64 = 3_000_000_000;
/// CPU time that a run on one thread may use: three times what the slowest scenario drawn so far needs.
const CPU_SECONDS: u64 = 45;
/// CPU time of a run on two threads, one of which may wait for the other without sleeping.
const CPU_SECONDS_OF_TWO: u64 = 135;
/// Limit of wall time, far above the limits of CPU time: other processes may need the machine.
const WALL: Duration = Duration::from_secs(300);
/// More CPU time on two threads than this, and five times that of one, is too much.
const SECONDS_TO_SPARE: f64 = 3.0;

/// Verdict on a scenario.
#[derive(Debug)]
pub(crate) enum Judged {
    /// The program refuses it.
    Refused(Refusal),
    /// All checks hold; `complete` says whether all flows and jobs were done.
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
    /// The judge `number`, with files of its own in `folder`.
    ///
    /// # Errors
    /// If these cannot be created.
    pub(crate) fn new(program: &Path, folder: &Path, number: usize) -> io::Result<Self> {
        Ok(Self {
            runner: Runner::new(program, folder.join(format!("work-{number}")))?,
            // Beside the files that it may name.
            scenario: folder.join(format!("work-{number}.toml")),
            limits: Limits {
                memory: MEMORY,
                cpu: CPU_SECONDS,
                wall: WALL,
            },
            runs: 0,
        })
    }

    /// True if `draft` leads to a violation with the signature of `known`. Violations other than endless runs show soon, and get less CPU
    /// time.
    pub(crate) fn confirms(&mut self, draft: &Draft, known: &Violation) -> io::Result<bool> {
        let limits = self.limits;
        if known.kind != "time" {
            self.limits.cpu = 5;
        }
        let again = known.kind == "resolved";
        let judged = self.judge(draft, again);
        self.limits = limits;
        Ok(match judged? {
            Judged::Wrong(violation) => violation.signature() == known.signature(),
            Judged::Refused(_) | Judged::Sound { .. } => false,
        })
    }

    /// Runs `draft` on one and two threads, if `again` also from the resolved scenario, and checks everything.
    ///
    /// # Errors
    /// If that cannot be tried.
    pub(crate) fn judge(&mut self, draft: &Draft, again: bool) -> io::Result<Judged> {
        self.judge_text(&draft.text(), again)
    }

    /// As [`judge`](Self::judge), with a scenario as it stands in a file.
    ///
    /// # Errors
    /// If that cannot be tried.
    pub(crate) fn judge_text(&mut self, text: &str, again: bool) -> io::Result<Judged> {
        std::fs::write(&self.scenario, text)?;
        let scenario = self.scenario.clone();
        let one = self.run(&scenario, "one", 1)?;
        if one.code == Some(2) {
            return Ok(Judged::Refused(Refusal::read(&one.errors, &scenario)));
        }
        let first = match checked(&one) {
            Ok(results) => results,
            Err(violation) => return Ok(Judged::Wrong(violation)),
        };
        let two = self.run(&scenario, "two", 2)?;
        if let Err(violation) = compared(&one, &first, &two) {
            return Ok(Judged::Wrong(violation));
        }
        if again {
            let third = self.run(&one.out.join("scenario.toml"), "three", 1)?;
            if let Err(violation) = resolved(&first, &third) {
                return Ok(Judged::Wrong(violation));
            }
        }
        let complete = one.code == Some(0);
        Ok(Judged::Sound { complete })
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
    /// Finds both in what the program says about `scenario`.
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

/// The results of a run by itself.
fn checked(ended: &Ended) -> Result<Results, Violation> {
    check::exit(ended)?;
    let results = Results::read(&ended.out)?;
    results.check(ended)?;
    Ok(results)
}

/// The run on two threads beside that on one.
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

/// The run from the resolved scenario, which says everything.
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
