//! Files that packages ship beside the program: shell completions and manual pages.

use crate::common::Bench;
use std::fs;
use std::process::Command;

/// Commands of the program, from its help.
fn commands(bench: &Bench) -> Vec<String> {
    let help = bench.succeed(&["--help"]);
    let (_, list) = help.split_once("Commands:\n").unwrap();
    let lines = list.lines().take_while(|line| line.starts_with("  "));
    let names = lines.filter_map(|line| line.split_whitespace().next());
    let names: Vec<String> = names
        .filter(|name| *name != "help")
        .map(str::to_owned)
        .collect();
    assert!(names.len() >= 10, "{names:?}");
    names
}

#[test]
fn each_shell_completes_commands_options_and_names() {
    let bench = Bench::new("completions");
    let commands = commands(&bench);
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let script = bench.succeed(&["completions", shell]);
        let known = commands.iter().map(String::as_str);
        for word in known.chain(["clearway", "live-stay"]) {
            assert!(script.contains(word), "{shell} lacks {word}");
        }
    }
    let error = bench.refuse(&["completions", "cmd"]);
    assert!(
        error.contains("bash, elvish, fish, powershell, zsh"),
        "{error}"
    );
    if cfg!(unix) {
        completes(&bench);
    }
}

/// Completes words in a real bash.
fn completes(bench: &Bench) {
    bench.write("script", &bench.succeed(&["completions", "bash"]));
    for (words, expected) in [
        ("clearway comple", "completions"),
        ("clearway run --live-s", "--live-stay"),
        ("clearway explain stra", "strack"),
        ("clearway list tran", "transports"),
        ("clearway reproduce strack/fig2", "strack/fig20"),
        ("clearway completions fi", "fish"),
    ] {
        let ask = format!(
            ". ./script; COMP_WORDS=({words}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); \
             _clearway clearway \"${{COMP_WORDS[-1]}}\" \"${{COMP_WORDS[-2]}}\"; echo \"${{COMPREPLY[@]}}\""
        );
        let mut bash = Command::new("bash");
        let output = bash.args(["-c", &ask]).current_dir(bench.path("")).output();
        let Ok(output) = output else { return };
        let found = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(
            found.split_whitespace().any(|word| word == expected),
            "{words}: {output:?}"
        );
    }
}

#[test]
fn each_command_has_a_manual_page() {
    let bench = Bench::new("man");
    assert_eq!(bench.succeed(&["man", "pages/man1"]), "");
    let mut pages: Vec<String> = fs::read_dir(bench.path("pages/man1"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    pages.sort();
    let commands = commands(&bench).into_iter();
    let mut expected: Vec<String> = commands.map(|name| format!("clearway-{name}.1")).collect();
    expected.push("clearway.1".into());
    expected.sort();
    assert_eq!(pages, expected);
    for page in &pages {
        let text = bench.read(&format!("pages/man1/{page}"));
        let name = page.strip_suffix(".1").unwrap();
        assert!(text.contains(&format!(".TH {name} 1 ")), "{text}");
        assert!(
            text.contains(".SH SYNOPSIS") && text.contains(".SH DESCRIPTION"),
            "{page}"
        );
    }
    let run = bench.read("pages/man1/clearway-run.1");
    assert!(run.contains("live\\-stay"), "{run}");
    assert_eq!(bench.succeed(&["man"]), bench.read("pages/man1/clearway.1"));
    bench.write("file", "");
    let error = bench.refuse(&["man", "file"]);
    assert!(
        error.contains("fix: name a folder in which you may write"),
        "{error}"
    );
}

/// File names may be bytes that are not valid text in any encoding.
#[test]
#[cfg(target_os = "linux")]
fn arguments_that_are_no_text_are_no_defect() {
    use std::os::unix::ffi::OsStrExt as _;
    let bench = Bench::new("no-text");
    let folder = std::ffi::OsStr::from_bytes(b"results-\xff");
    let mut command = bench.command(&[
        "run",
        "quickstart",
        "--set",
        "workload.message=1KB",
        "--quiet",
        "--out",
    ]);
    let output = command.arg(folder).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert!(bench.path("").join(folder).join("summary.json").exists());
}
