//! Allowed dependencies between crates, and a check that all crates follow the workspace's lints.

use super::source::Source;
use crate::Faults;

/// The layers (ARCHITECTURE.md): a crate and what it may use.
const ARROWS: [(&str, &[&str]); 21] = [
    ("units", &[]),
    ("input", &["units"]),
    ("engine", &["units"]),
    ("transport", &["units"]),
    ("workload", &["units"]),
    ("formats", &["input", "units", "workload"]),
    (
        "scenario",
        &[
            "fabric",
            "formats",
            "input",
            "scaleup",
            "transport",
            "units",
            "workload",
        ],
    ),
    ("scaleup", &["engine", "units"]),
    ("results", &["units"]),
    ("statistics", &["units"]),
    ("report", &["input", "results", "statistics", "units"]),
    ("planner", &["units"]),
    ("runs", &["lab", "report", "units"]),
    ("fabric", &["engine", "transport", "units"]),
    (
        "lab",
        &[
            "fabric",
            "input",
            "results",
            "scaleup",
            "scenario",
            "transport",
            "units",
            "workload",
        ],
    ),
    (
        "plan",
        &[
            "fabric",
            "input",
            "lab",
            "planner",
            "scenario",
            "transport",
            "units",
        ],
    ),
    (
        "reproduce",
        &[
            "fabric",
            "lab",
            "plan",
            "statistics",
            "transport",
            "units",
            "workload",
        ],
    ),
    ("sweep", &["input", "lab", "report", "scenario", "units"]),
    (
        "cli",
        &[
            "input",
            "lab",
            "plan",
            "report",
            "reproduce",
            "runs",
            "sweep",
            "units",
        ],
    ),
    ("xtask", &["testing"]),
    // Beside the command line, whose program it runs: nothing depends on it.
    ("storm", &["lab", "report", "units"]),
];

/// Checks every manifest.
pub(super) fn check(sources: &[Source]) -> Faults {
    let manifests = sources
        .iter()
        .filter(|source| source.path.ends_with("/Cargo.toml"));
    manifests.flat_map(check_manifest).collect()
}

fn check_manifest(manifest: &Source) -> Faults {
    let mut faults = Faults::new();
    let mut fault = |what: String| faults.push(format!("{}: {what}", manifest.path));
    if !manifest.text.contains("[lints]\nworkspace = true") {
        fault("no `[lints]` with `workspace = true`".into());
    }
    let folder = manifest.path.trim_end_matches("/Cargo.toml");
    let name = folder.rsplit('/').next().unwrap_or(folder);
    let is_example = folder.starts_with("examples/");
    let allowed = match ARROWS.iter().find(|(known, _)| *known == name) {
        _ if is_example => &["lab"],
        Some((_, allowed)) => *allowed,
        None => &[],
    };
    for (section, dependency) in dependencies(&manifest.text) {
        let for_tests = section != "dependencies";
        // Tests may look at what they like, but not upwards at the laboratory.
        let fine = allowed.contains(&dependency) || (for_tests && dependency != "lab");
        if !fine {
            fault(format!("must not depend on clearway-{dependency}"));
        }
    }
    faults
}

/// The section and the short name of each dependency within the workspace.
fn dependencies(manifest: &str) -> Vec<(&str, &str)> {
    let mut section = "";
    let mut found = Vec::new();
    for line in manifest.lines() {
        if let Some(name) = line.strip_prefix('[') {
            section = name.trim_end_matches(']');
        } else if section.ends_with("dependencies")
            && let Some(rest) = line.strip_prefix("clearway-")
        {
            let end = rest.find(|c: char| !c.is_alphanumeric() && c != '-');
            found.push((section, &rest[..end.unwrap_or(rest.len())]));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn faults(path: &str, text: &str) -> Faults {
        check_manifest(&Source {
            path: path.into(),
            text: format!("{text}\n[lints]\nworkspace = true\n"),
        })
    }

    #[test]
    fn arrows_point_downwards() {
        let lab = "[dependencies]\nclearway-lab.workspace = true";
        assert_eq!(
            faults("crates/fabric/Cargo.toml", lab),
            ["crates/fabric/Cargo.toml: must not depend on clearway-lab"]
        );
        assert_eq!(faults("crates/cli/Cargo.toml", lab), Faults::new());
        assert_eq!(faults("storm/Cargo.toml", lab), Faults::new());
        let fabric = "[dependencies]\nclearway-fabric.workspace = true";
        assert_eq!(
            faults("storm/Cargo.toml", fabric),
            ["storm/Cargo.toml: must not depend on clearway-fabric"]
        );
        assert_eq!(faults("examples/x/Cargo.toml", lab), Faults::new());
        let fabric = "[dev-dependencies]\nclearway-fabric = { path = \"..\" }";
        assert_eq!(faults("crates/workload/Cargo.toml", fabric), Faults::new());
        assert_eq!(
            check_manifest(&Source {
                path: "a/Cargo.toml".into(),
                text: String::new()
            })
            .len(),
            1
        );
    }
}
