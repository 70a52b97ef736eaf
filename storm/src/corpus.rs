//! Scenarios that failed once, run again.
//!
//! A file of `storm/corpus` is a scenario, with comments before it that say what was wrong. It must run and pass all checks; where a
//! comment is `# refused: PART`, it must be refused with a message that has this part. So a file that a later key makes invalid is noticed.

use crate::arguments::Arguments;
use crate::files;
use crate::judge::{Judge, Judged};
use std::io;
use std::path::{Path, PathBuf};

/// Runs all scenarios of `corpus`, and returns how many are not as expected.
///
/// # Errors
/// If files cannot be read or written, if there are none, or if the program cannot be started.
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
        if let Some(fault) = fault(refusal(&text), &judged) {
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

/// Part of the message with which the scenario must be refused.
fn refusal(text: &str) -> Option<&str> {
    let comments = text.lines().take_while(|line| line.starts_with('#'));
    comments
        .into_iter()
        .find_map(|line| line.strip_prefix("# refused: "))
}

/// Difference from what is expected.
fn fault(refusal: Option<&str>, judged: &Judged) -> Option<String> {
    match (refusal, judged) {
        (None, Judged::Sound { .. }) => None,
        (None, Judged::Refused(refused)) => Some(format!("refused: {}", refused.reason)),
        (Some(part), Judged::Refused(refused)) if refused.reason.contains(part) => None,
        (Some(part), Judged::Refused(refused)) => {
            let reason = &refused.reason;
            Some(format!(
                "refused for another reason than `{part}`: {reason}"
            ))
        }
        (Some(part), Judged::Sound { .. }) => Some(format!("runs, and must be refused: {part}")),
        (_, Judged::Wrong(violation)) => {
            Some(format!("{}\n{}", violation.signature(), violation.detail))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::Refusal;
    use crate::violation::Violation;

    #[test]
    fn what_is_expected_is_read_and_compared() {
        assert_eq!(
            refusal("# a panic\n# refused: too many\n\n[topology]"),
            Some("too many")
        );
        assert_eq!(refusal("# a panic\nseed = 1\n# refused: too many"), None);
        let refused = |reason: &str| {
            let reason = reason.into();
            Judged::Refused(Refusal { line: None, reason })
        };
        let sound = Judged::Sound { complete: true };
        assert_eq!(fault(None, &sound), None);
        assert_eq!(fault(Some("many"), &refused("too many hosts")), None);
        let wrong = Judged::Wrong(Violation::new("exit", "panicked", "here".into()));
        for (part, judged) in [
            (None, refused("x")),
            (Some("many"), refused("too few")),
            (Some("many"), sound),
            (None, wrong),
        ] {
            assert!(fault(part, &judged).is_some(), "{judged:?}");
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
