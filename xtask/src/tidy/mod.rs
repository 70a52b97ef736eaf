//! Checks that rustc, clippy and rustfmt do not make.

mod crate_dependencies;
mod dependency_cycles;
mod docs;
mod length;
mod lexer;
mod python;
mod source;
mod text;
mod twins;
mod wording;

use crate::{Faults, output, size};
pub(crate) use length::Ratchet;
use source::Source;
use std::path::Path;
use std::process::Command;

/// Runs all checks.
pub(crate) fn check(root: &Path, ratchet: Ratchet) -> Faults {
    let sources = match sources(root) {
        Ok(sources) => sources,
        Err(fault) => return vec![fault],
    };
    let mut faults = format(root, &sources);
    faults.extend(sources.iter().flat_map(text::check));
    faults.extend(length::check(root, &sources, ratchet));
    faults.extend(crate_dependencies::check(&sources));
    faults.extend(dependency_cycles::check(&sources));
    faults.extend(python::check(&sources));
    faults.extend(size::check_sources(root).unwrap_or_else(|fault| vec![fault]));
    faults.extend(wording::check(&sources));
    faults.extend(twins::check(&sources));
    let counted = docs::count(&sources);
    faults.extend(docs::check(&counted));
    println!(
        "tidy: {} files, {} doc comments, of which {} open with a question word or a pronoun",
        sources.len(),
        counted.comments,
        counted.vague.len()
    );
    faults
}

/// Every text file that git tracks, or would track after `git add`.
fn sources(root: &Path) -> Result<Vec<Source>, String> {
    let mut command = Command::new("git");
    command
        .args(["ls-files", "--cached", "--others", "--exclude-standard"])
        .current_dir(root);
    let paths = output(&mut command)?;
    let mut sources = Vec::new();
    for path in paths.lines() {
        // A tracked file may be deleted in the working tree, and images are not text.
        if let Ok(text) = std::fs::read_to_string(root.join(path)) {
            sources.push(Source {
                path: path.into(),
                text,
            });
        }
    }
    sources.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(sources)
}

/// Runs rustfmt on every file: `cargo fmt` does not see modules that a macro declares.
fn format(root: &Path, sources: &[Source]) -> Faults {
    let files = sources.iter().filter(|source| source.is_rust());
    let mut command = Command::new("rustfmt");
    command
        .args(["--check", "--edition", "2024"])
        .args(files.map(|source| &source.path))
        .current_dir(root);
    match command.output() {
        Ok(output) if output.status.success() => Faults::new(),
        Ok(output) => {
            let text = String::from_utf8_lossy(&output.stdout);
            let shown: Vec<&str> = text.lines().take(40).collect();
            vec![format!("rustfmt:\n{}", shown.join("\n"))]
        }
        Err(error) => vec![format!("rustfmt cannot be started: {error}")],
    }
}
