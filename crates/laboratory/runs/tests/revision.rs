//! The revision that the build script records: that of this repository, and of no other.

use clearway_testing::Folder;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The build script as a program.
fn build_script(folder: &Folder) -> PathBuf {
    let program = folder.join("build-script");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("build.rs");
    let compiler = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let compiled = Command::new(compiler)
        .args(["--edition", "2024", "-o"])
        .args([&program, &source])
        .status();
    assert!(compiled.expect("there is a compiler").success());
    program
}

/// A repository at `path` with one commit.
fn repository(path: &Path) {
    let name = ["-c", "user.name=x", "-c", "user.email=x@x.example"];
    for arguments in [
        &["init", "--quiet"][..],
        &["commit", "--quiet", "--allow-empty", "-m", "x"],
    ] {
        let done = Command::new("git")
            .current_dir(path)
            .args(name)
            .args(arguments)
            .status();
        assert!(done.expect("there is git").success());
    }
}

#[test]
fn a_revision_of_this_repository_only() {
    let folder = Folder::new("revision");
    let script = build_script(&folder);
    let workspace = folder.join("foreign/clearway");
    let package = workspace.join("crates/laboratory/runs");
    std::fs::create_dir_all(&package).unwrap();
    let said = |variables: &[(&str, &Path)]| {
        let output = Command::new(&script)
            .current_dir(&package)
            .envs(variables.iter().copied())
            .output()
            .unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    let records = |said: &str| said.contains("CLEARWAY_REVISION=");
    let foreign = folder.join("foreign");
    repository(&foreign);
    let archive = said(&[]);
    assert!(!records(&archive), "a source archive: {archive}");
    repository(&workspace);
    let own = said(&[]);
    assert!(records(&own), "a repository: {own}");
    // As in a hook of the other one.
    let git = foreign.join(".git");
    assert_eq!(said(&[("GIT_DIR", &git), ("GIT_WORK_TREE", &foreign)]), own);
}
