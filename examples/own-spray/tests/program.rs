//! A path selector of one's own behind the whole command line, and the chapter that says how.

use std::path::PathBuf;
use std::process::{Command, Output};

const CHAPTER: &str = include_str!("../../../docs/src/your-own.md");

/// An empty folder, gone with the test.
struct Folder(PathBuf);

impl Folder {
    fn new(test: &str) -> Self {
        let name = format!("own-spray-{test}-{}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&folder).unwrap();
        Self(folder)
    }

    fn call(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_own-spray"));
        command.args(arguments).current_dir(&self.0);
        command.output().unwrap()
    }

    /// What a call prints that ends well.
    fn print(&self, arguments: &[&str]) -> String {
        let output = self.call(arguments);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{arguments:?}: {errors}");
        String::from_utf8(output.stdout).unwrap()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // What is left over is in the folder for temporary files.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// The blocks of the chapter in this language.
fn blocks(language: &str) -> Vec<&'static str> {
    let fence = format!("```{language}\n");
    let after = CHAPTER.split(&fence).skip(1);
    after
        .map(|text| text.split("```").next().unwrap())
        .collect()
}

/// Arguments of a command as a shell understands them that knows no quotes.
fn words(command: &str) -> Vec<&str> {
    command.split_whitespace().collect()
}

#[test]
fn results_are_those_of_any_selector() {
    let folder = Folder::new("results");
    let choice = ["run", "quickstart", "--set", "transport.spray=two-choices"];
    folder.print(&[&choice[..], &["--out", "a", "--threads", "1"]].concat());
    let summary =
        |of: &str| std::fs::read_to_string(folder.0.join(of).join("summary.json")).unwrap();
    let digest = |of: &str| {
        let summary = summary(of);
        let line = summary.lines().find(|line| line.contains("\"digest\""));
        line.expect("a digest").to_owned()
    };
    assert!(folder.0.join("a/report.html").exists());
    folder.print(&["run", "a/scenario.toml", "--out", "b", "--threads", "2"]);
    assert_eq!(digest("a"), digest("b"));
    // Folders are compared, too.
    let compared = folder.print(&["compare", "a", "quickstart", "--out", "c"]);
    assert!(compared.contains("FCT max"), "{compared}");
}

#[test]
fn a_wrong_name_is_told_of_the_selector() {
    let folder = Folder::new("wrong");
    let output = folder.call(&["run", "quickstart", "--set", "transport.spray=two-choise"]);
    assert_eq!(output.status.code(), Some(2));
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(errors.contains("did you mean `two-choices`?"), "{errors}");
    let keys = ["transport.spray=two-choices", "transport.path=3"];
    let output = folder.call(&["run", "quickstart", "--set", keys[0], "--set", keys[1]]);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(errors.contains("did you mean `paths`?"), "{errors}");
}

/// The commands of the chapter print the lines that stand below them; "..." stands for any.
#[test]
fn the_chapter_says_what_is_printed() {
    let folder = Folder::new("chapter");
    let mut calls = 0;
    for block in blocks("console") {
        let mut printed = String::new();
        for line in block.lines() {
            if let Some(command) = line.strip_prefix("$ cargo run --release -- ") {
                printed = folder.print(&words(command));
                calls += 1;
            } else if !line.starts_with('$') && line != "..." {
                assert!(printed.contains(line), "{line}\nis not in\n{printed}");
            }
        }
    }
    assert!(calls >= 3, "{calls} commands");
}
