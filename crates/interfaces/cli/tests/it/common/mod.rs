//! Runs the built program in separate folders.

#![allow(
    dead_code,
    reason = "each test program uses its own part of this module"
)]

use clearway_report::Summary;
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A folder in which the program runs, initially empty.
pub(crate) struct Bench {
    folder: PathBuf,
}

impl Bench {
    /// An empty folder for the test `name`.
    pub(crate) fn new(name: &str) -> Self {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        // Remove the folder of an earlier test run.
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).expect("the target folder can be written");
        Self { folder }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        let folder = path.parent().expect("it is in the test's folder");
        let written = fs::create_dir_all(folder).and_then(|()| fs::write(&path, text));
        written.expect("the test's folder can be written");
    }

    /// Writes a key that only its owner can read.
    pub(crate) fn write_key(&self, name: &str, key: &str) {
        self.write(name, key);
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            let private = fs::Permissions::from_mode(0o600);
            fs::set_permissions(self.path(name), private).expect("the test's file is its own");
        }
    }

    pub(crate) fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_clearway"));
        command.args(arguments).current_dir(&self.folder);
        command
    }

    pub(crate) fn output(&self, arguments: &[&str]) -> Output {
        self.command(arguments)
            .output()
            .expect("the program can be started")
    }

    /// Runs the program, which must succeed, and returns its output.
    pub(crate) fn succeed(&self, arguments: &[&str]) -> String {
        let output = self.output(arguments);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{arguments:?}: {errors}");
        String::from_utf8(output.stdout).expect("text")
    }

    /// Runs the program quietly, which must succeed, and returns the summary of the results.
    pub(crate) fn summary(&self, arguments: &[&str]) -> Summary {
        self.quiet(arguments, 0).1
    }

    /// As [`summary`](Self::summary) for a run that a limit ends with exit code 1 and a message. Also returns the message.
    pub(crate) fn unfinished(&self, arguments: &[&str]) -> (String, Summary) {
        self.quiet(arguments, 1)
    }

    fn quiet(&self, arguments: &[&str], code: i32) -> (String, Summary) {
        let out = self.path("results");
        let _ = fs::remove_dir_all(&out);
        let all: Vec<&str> = ["run"]
            .into_iter()
            .chain(arguments.iter().copied())
            .chain(["--quiet", "--out", "results"])
            .collect();
        let output = self.output(&all);
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {errors}");
        assert!(output.stdout.is_empty(), "quiet prints nothing");
        (errors, Summary::read(&out).expect("a run leaves a summary"))
    }

    /// Runs the program on invalid input: exit code 2, nothing on standard output, no results. Returns the message.
    pub(crate) fn refuse(&self, arguments: &[&str]) -> String {
        let output = self.output(arguments);
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {errors}");
        assert!(output.stdout.is_empty(), "{arguments:?}");
        assert!(errors.starts_with("error: "), "{arguments:?}: {errors}");
        assert!(
            !self.path("out").exists(),
            "{arguments:?}: a refused run leaves no results"
        );
        errors.trim_start_matches("error: ").trim_end().to_string()
    }

    /// As [`refuse`](Self::refuse) for `run quickstart`, with a run for each list of overrides. Returns text for a snapshot.
    pub(crate) fn refuse_overrides(&self, cases: &[&[&str]]) -> String {
        let mut text = String::new();
        for overrides in cases {
            let mut arguments = vec!["run", "quickstart"];
            overrides
                .iter()
                .for_each(|pair| arguments.extend(["--set", pair]));
            let error = self.refuse(&arguments);
            assert!(error.starts_with("--set "), "no place: {error}");
            assert!(error.contains("\n  fix: "), "no way out: {error}");
            let _ = writeln!(text, "{error}");
        }
        text
    }

    /// As [`refuse`](Self::refuse) for the texts of scenario files.
    pub(crate) fn refuse_scenarios(&self, cases: &[&str]) -> String {
        let mut text = String::new();
        for scenario in cases {
            self.write("s.toml", scenario);
            let error = self.refuse(&["run", "s.toml"]);
            assert!(error.contains("\n  fix: "), "no way out: {error}");
            let _ = writeln!(text, "{error}");
        }
        text
    }

    /// As [`refuse`](Self::refuse) for the texts of `.cm` files on 16 hosts.
    pub(crate) fn refuse_matrices(&self, cases: &[&str]) -> String {
        let mut text = String::new();
        for matrix in cases {
            self.write("x.cm", matrix);
            self.write("s.toml", &matrix_scenario("x.cm"));
            let error = self.refuse(&["run", "s.toml"]);
            assert!(error.contains("\n  fix: "), "no way out: {error}");
            let _ = writeln!(text, "{error}");
        }
        text
    }
}

/// A scenario of 16 hosts with traffic from a file.
pub(crate) fn matrix_scenario(file: &str) -> String {
    format!(
        "[topology]\nkind = \"leaf-spine\"\nhosts = 16\nhosts-per-leaf = 4\n\n[[workload]]\nfile = \"{file}\"\n"
    )
}

/// Names of the runs in progress of a sweep into `out`, from one listing of its folder, which holds their scenarios during the runs.
#[cfg(target_os = "linux")]
pub(crate) fn under_way(bench: &Bench, out: &str) -> BTreeSet<String> {
    let entries = |folder: PathBuf| fs::read_dir(folder).into_iter().flatten().flatten();
    let works = entries(bench.path(&format!("{out}/partial")));
    let files = works.flat_map(|work| entries(work.path()));
    let names = files.map(|file| file.file_name().to_string_lossy().into_owned());
    names
        .filter_map(|name| Some(name.strip_suffix(".toml")?.to_owned()))
        .collect()
}

/// Processes that have `text` in their command line.
#[cfg(target_os = "linux")]
pub(crate) fn processes_with(text: &str) -> Vec<u32> {
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let found = processes.filter_map(|entry| {
        let process = entry.file_name().to_str()?.parse().ok()?;
        let line = fs::read(entry.path().join("cmdline")).ok()?;
        String::from_utf8_lossy(&line)
            .contains(text)
            .then_some(process)
    });
    found.collect()
}
