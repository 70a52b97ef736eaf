//! A path selector of one's own behind the whole command line, and the chapter that says how.

use clearway_testing::chapter::calls;
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
    let mut count = 0;
    for call in calls(CHAPTER) {
        let Some(arguments) = call.arguments("cargo run --release --") else {
            continue;
        };
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let printed = folder.print(&arguments);
        let missing = call.missing(&printed);
        assert!(
            missing.is_empty(),
            "{}: {missing:#?}\n{printed}",
            call.command
        );
        count += 1;
    }
    assert!(count >= 3, "{count} commands");
}
