//! Tells the program which revision it is built from, as `CLEARWAY_REVISION`.

use std::path::Path;
use std::process::Command;

/// The top of the workspace, from the folder of this package, in which a build script runs.
const WORKSPACE: &str = "../../..";

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    // A source archive has no git folder, though it may be unpacked inside somebody else's repository; the program then says that its
    // revision is unknown.
    if !is_repository() {
        return;
    }
    let Some(revision) = git(&["rev-parse", "--short", "HEAD"]) else {
        return;
    };
    watch_git();
    // Outputs of the program in the working tree do not change the program.
    let changed = git(&["status", "--porcelain", "--untracked-files=no"]);
    let dirty = if changed.is_some_and(|files| !files.is_empty()) {
        "-dirty"
    } else {
        ""
    };
    println!("cargo:rustc-env=CLEARWAY_REVISION={revision}{dirty}");
}

/// True if the top of the workspace is that of a repository.
fn is_repository() -> bool {
    let top =
        git(&["rev-parse", "--show-toplevel"]).and_then(|top| Path::new(&top).canonicalize().ok());
    top.is_some() && top == Path::new(WORKSPACE).canonicalize().ok()
}

/// Runs again when another revision is checked out, something is committed, or the sources change (then the tree may be dirty).
fn watch_git() {
    let sources = ["../..", "../../../Cargo.toml", "../../../Cargo.lock"].map(String::from);
    let git_files = ["HEAD", "logs/HEAD", "packed-refs"];
    let git_files = git_files
        .iter()
        .filter_map(|name| git(&["rev-parse", "--git-path", name]));
    for path in sources.into_iter().chain(git_files) {
        // A path that does not exist would make every build run this again.
        if Path::new(&path).exists() {
            println!("cargo:rerun-if-changed={path}");
        }
    }
}

fn git(arguments: &[&str]) -> Option<String> {
    let mut command = Command::new("git");
    // Git sets these for its hooks; they may be of another repository.
    for name in ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX"] {
        command.env_remove(name);
    }
    let output = command.args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_string())
}
