//! Scenarios that failed once, which are run again.
//!
//! A file of `storm/corpus` is a scenario, preceded by comments that describe its fault. The scenario must run and pass all checks. With a
//! comment `# refused: PART`, it must be refused with a message that contains this part, so a later key that makes the file invalid is
//! noticed. A comment `# open: KIND` marks a violation of this kind that is not yet corrected; once it is corrected, the comment must go.

use crate::arguments::Arguments;
use crate::files;
use crate::judge::{Judge, ScenarioVerdict};
use std::io;
use std::path::{Path, PathBuf};

/// Runs all scenarios of `corpus`, and returns the number of unexpected outcomes.
///
/// # Errors
/// If files cannot be read or written, if there are no scenarios, or if the program cannot be started.
pub(crate) fn run(arguments: &Arguments, corpus: &Path) -> io::Result<u64> {
    std::fs::create_dir_all(&arguments.out)?;
    let folder = arguments.out.canonicalize()?;
    files::write_all(&folder)?;
    let mut judge = Judge::new(&arguments.program, &folder, 0)?;
    let mut wrong = 0;
    let scenarios = scenarios(corpus)?;
    for path in &scenarios {
        let text = std::fs::read_to_string(path)?;
        let judged = judge.judge_text(&text, true)?;
        if let Some(fault) = fault(Expected::read(&text), &judged) {
            println!("{}: {fault}", path.display());
            wrong += 1;
        }
    }
    println!(
        "{} scenarios that failed once, {} runs, {wrong} violations",
        scenarios.len(),
        judge.runs
    );
    Ok(wrong)
}

/// The files of a folder, by name.
fn scenarios(corpus: &Path) -> io::Result<Vec<PathBuf>> {
    let mut scenarios = Vec::new();
    for entry in std::fs::read_dir(corpus)? {
        let path = entry?.path();
        if path.extension().is_some_and(|kind| kind == "toml") {
            scenarios.push(path);
        }
    }
    scenarios.sort();
    match scenarios.is_empty() {
        true => Err(io::Error::other(format!(
            "{}: no scenario",
            corpus.display()
        ))),
        false => Ok(scenarios),
    }
}

/// Verdict that a file expects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Expected<'a> {
    Sound,
    /// A refusal whose message contains this part.
    Refused(&'a str),
    /// A violation of this kind.
    Open(&'a str),
}

impl<'a> Expected<'a> {
    /// Reads the comments at the beginning of a file.
    fn read(text: &'a str) -> Self {
        let mut comments = text.lines().take_while(|line| line.starts_with('#'));
        let expected = |line: &'a str| {
            let refused = line.strip_prefix("# refused: ").map(Self::Refused);
            refused.or_else(|| line.strip_prefix("# open: ").map(Self::Open))
        };
        comments.find_map(expected).unwrap_or(Self::Sound)
    }
}

/// Difference from the expected verdict.
fn fault(expected: Expected<'_>, judged: &ScenarioVerdict) -> Option<String> {
    let is_expected = match (expected, judged) {
        (Expected::Sound, ScenarioVerdict::Sound { .. }) => true,
        (Expected::Refused(part), ScenarioVerdict::Refused(refused)) => {
            refused.reason.contains(part)
        }
        (Expected::Open(kind), ScenarioVerdict::Wrong(violation)) => violation.kind == kind,
        _ => false,
    };
    let found = match judged {
        ScenarioVerdict::Sound { .. } => "it runs".into(),
        ScenarioVerdict::Refused(refused) => format!("refused: {}", refused.reason),
        ScenarioVerdict::Wrong(violation) => {
            format!("{}\n{}", violation.signature(), violation.detail)
        }
    };
    (!is_expected).then(|| format!("{expected:?} expected, but {found}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::Refusal;
    use crate::violation::Violation;

    #[test]
    fn what_is_expected_is_read_and_compared() {
        let read = Expected::read;
        let many = read("# a panic\n# refused: too many\n\n[topology]");
        assert_eq!(many, Expected::Refused("too many"));
        let memory = read("# open: memory\nseed = 1");
        assert_eq!(memory, Expected::Open("memory"));
        let later = read("# a panic\nseed = 1\n# refused: too many");
        assert_eq!(later, Expected::Sound);

        let refused = |reason: &str| {
            let reason = reason.into();
            ScenarioVerdict::Refused(Refusal { line: None, reason })
        };
        let sound = || ScenarioVerdict::Sound { complete: true };
        let wrong = |kind| ScenarioVerdict::Wrong(Violation::new(kind, "here", "so"));
        assert_eq!(fault(Expected::Sound, &sound()), None);
        assert_eq!(fault(many, &refused("too many hosts")), None);
        assert_eq!(fault(memory, &wrong("memory")), None);
        for (expected, judged) in [
            (Expected::Sound, refused("x")),
            (Expected::Sound, wrong("memory")),
            (many, refused("too few")),
            (many, sound()),
            (memory, wrong("exit")),
            (memory, sound()),
        ] {
            assert!(fault(expected, &judged).is_some(), "{judged:?}");
        }
    }

    #[test]
    fn a_folder_without_scenarios_is_an_error() {
        let folder = clearway_testing::Folder::new("storm-corpus");
        assert!(scenarios(&folder).is_err());
        for name in ["b.toml", "a.toml", "README.md"] {
            std::fs::write(folder.join(name), "").unwrap();
        }
        let names: Vec<_> = scenarios(&folder).unwrap();
        assert_eq!(names, [folder.join("a.toml"), folder.join("b.toml")]);
    }
}
