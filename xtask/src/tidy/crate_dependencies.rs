//! Allowed dependencies between crates, and a check that all crates follow the workspace's lints.

use super::source::Source;
use crate::Faults;
use std::collections::BTreeMap;

/// Folders of crates (ARCHITECTURE.md): a folder, and the folders whose crates it may use.
const GROUPS: [(&str, &[&str]); 6] = [
    ("foundation", &[]),
    ("simulator", &["foundation"]),
    ("reports", &["foundation"]),
    ("laboratory", &["foundation", "simulator", "reports"]),
    (
        "sockets",
        &["foundation", "simulator", "reports", "laboratory"],
    ),
    (
        "interfaces",
        &[
            "foundation",
            "simulator",
            "reports",
            "laboratory",
            "sockets",
        ],
    ),
];

/// Dependencies: a crate and the crates that it may use.
const ARROWS: [(&str, &[&str]); 33] = [
    ("web", &["lab", "report", "report-html", "runs", "units"]),
    // Separate from all others: only the program needs it.
    ("allocator", &[]),
    ("prefetch", &[]),
    ("units", &[]),
    ("input", &["units"]),
    ("engine", &["prefetch", "units"]),
    ("transport", &["prefetch", "units"]),
    ("workload", &["units"]),
    ("udp", &["transport", "units"]),
    ("collective", &["udp", "units", "workload"]),
    ("transfer", &["udp"]),
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
    // Independent of each other; `report` depends on neither.
    ("report-text", &["report", "results", "units"]),
    ("report-html", &["report", "results", "statistics", "units"]),
    ("planner", &["units"]),
    ("runs", &["lab", "report", "report-html", "units"]),
    ("fabric", &["engine", "prefetch", "transport", "units"]),
    ("softswitch", &["fabric", "transport", "units"]),
    (
        "lab",
        &[
            "fabric",
            "input",
            "results",
            "scaleup",
            "scenario",
            "statistics",
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
    (
        "sweep",
        &["input", "lab", "report", "report-html", "scenario", "units"],
    ),
    (
        "cli",
        &[
            "allocator",
            "collective",
            "input",
            "lab",
            "plan",
            "report",
            "report-html",
            "report-text",
            "reproduce",
            "runs",
            "softswitch",
            "sweep",
            "testbed",
            "transfer",
            "udp",
            "units",
        ],
    ),
    (
        "testbed",
        &[
            "fabric",
            "input",
            "lab",
            "report",
            "runs",
            "transport",
            "udp",
            "units",
            "workload",
        ],
    ),
    // A library that C programs load: a peer of the command line.
    ("c", &["lab", "report", "runs", "units"]),
    // A library that Python loads: a peer of the command line, which it contains.
    (
        "python",
        &[
            "collective",
            "lab",
            "report",
            "report-html",
            "report-text",
            "runs",
            "sweep",
            "units",
        ],
    ),
    ("xtask", &["testing", "units"]),
    // A peer of the command line, whose program it runs: nothing depends on it.
    ("storm", &["lab", "report", "units"]),
];

/// The crates with different lints: the lints of the workspace, except that unsafe code is allowed in the one file given. C programs and
/// Arrow tables of other libraries come as pointers, an allocator is an unsafe trait, and a prefetch an unsafe instruction.
const UNSAFE: [(&str, &str); 5] = [
    (
        "crates/interfaces/web/Cargo.toml",
        "crates/interfaces/web/src/exports.rs",
    ),
    (
        "crates/interfaces/c/Cargo.toml",
        "crates/interfaces/c/src/interface.rs",
    ),
    (
        "crates/interfaces/python/Cargo.toml",
        "crates/interfaces/python/src/foreign.rs",
    ),
    (
        "crates/foundation/allocator/Cargo.toml",
        "crates/foundation/allocator/src/lib.rs",
    ),
    (
        "crates/foundation/prefetch/Cargo.toml",
        "crates/foundation/prefetch/src/lib.rs",
    ),
];

/// Packages that are not members of the workspace, and so cannot have its lints, with the crates that each may use. Dependencies of
/// the first are built only for it. The second represents a program of another project.
const OUTSIDE: [(&str, &[&str]); 2] = [
    ("benchmarks/transfer/Cargo.toml", &["udp", "units"]),
    (
        "examples/transport-only/Cargo.toml",
        &["transport", "units"],
    ),
];

/// Checks every manifest.
pub(super) fn check(sources: &[Source]) -> Faults {
    let manifests = sources
        .iter()
        .filter(|source| source.path.ends_with("/Cargo.toml"));
    let manifests: Vec<&Source> = manifests.collect();
    let mut faults: Faults = manifests.iter().copied().flat_map(check_manifest).collect();
    faults.extend(check_groups(&manifests));
    faults.extend(check_unsafe(sources));
    faults
}

/// Checks that each crate is in a known folder and uses only crates of allowed folders.
fn check_groups(manifests: &[&Source]) -> Faults {
    let group_of = |manifest: &Source| {
        let rest = manifest.path.strip_prefix("crates/")?;
        let (group, crate_name) = rest.trim_end_matches("/Cargo.toml").split_once('/')?;
        Some((crate_name.to_owned(), group.to_owned()))
    };
    let groups: BTreeMap<String, String> =
        manifests.iter().filter_map(|one| group_of(one)).collect();
    let mut faults = Faults::new();
    for manifest in manifests {
        let Some((_, group)) = group_of(manifest) else {
            continue;
        };
        let Some((_, below)) = GROUPS.iter().find(|(known, _)| *known == group) else {
            faults.push(format!(
                "{}: `{group}` is no folder of crates that ARCHITECTURE.md has",
                manifest.path
            ));
            continue;
        };
        for (_, dependency) in dependencies(&manifest.text) {
            let of_dependency = groups.get(dependency).map_or("", String::as_str);
            if of_dependency != group && !below.contains(&of_dependency) {
                faults.push(format!(
                    "{}: crates of `{group}` must not depend on clearway-{dependency}, which is in `{of_dependency}`",
                    manifest.path
                ));
            }
        }
    }
    faults
}

/// Checks that crates with different lints otherwise have the lints of the workspace, and that unsafe code stays in their one file.
fn check_unsafe(sources: &[Source]) -> Faults {
    let text = |path: &str| {
        let source = sources.iter().find(|source| source.path == path);
        source.map_or("", |source| source.text.as_str())
    };
    let mut faults = Faults::new();
    for (name, own) in [("rust", "lints.rust"), ("clippy", "lints.clippy")] {
        let common = table(text("Cargo.toml"), &format!("workspace.lints.{name}"));
        let expected = common.replace("unsafe_code = \"forbid\"", "unsafe_code = \"deny\"");
        for (manifest, _) in UNSAFE {
            if table(text(manifest), own) != expected {
                faults.push(format!(
                    "{manifest}: `[{own}]` is not that of the workspace with `unsafe_code = \"deny\"`"
                ));
            }
        }
    }
    let allow = concat!("allow(", "unsafe_code");
    let rust = sources.iter().filter(|source| source.is_rust());
    let files = UNSAFE.map(|(_, file)| file);
    let elsewhere = |source: &&Source| !files.contains(&source.path.as_str());
    for source in rust
        .filter(elsewhere)
        .filter(|source| source.text.contains(allow))
    {
        faults.push(format!(
            "{}: unsafe code belongs in {}",
            source.path,
            files.join(" and ")
        ));
    }
    faults
}

/// The lines of a table of a manifest, without comments.
fn table(manifest: &str, name: &str) -> String {
    let mut lines = manifest
        .lines()
        .skip_while(|line| *line != format!("[{name}]"));
    lines.next();
    let lines = lines.take_while(|line| !line.starts_with('['));
    let lines = lines.filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines.collect::<Vec<_>>().join("\n")
}

fn check_manifest(manifest: &Source) -> Faults {
    let mut faults = Faults::new();
    let mut fault = |what: String| faults.push(format!("{}: {what}", manifest.path));
    let own_lints = UNSAFE.map(|(manifest, _)| manifest);
    let path = manifest.path.as_str();
    let outside = OUTSIDE.iter().find(|(manifest, _)| *manifest == path);
    let has_own_lints = own_lints.contains(&path) || outside.is_some();
    if !has_own_lints && !manifest.text.contains("[lints]\nworkspace = true") {
        fault("no `[lints]` with `workspace = true`".into());
    }
    let folder = manifest.path.trim_end_matches("/Cargo.toml");
    let name = folder.rsplit('/').next().unwrap_or(folder);
    let is_example = folder.starts_with("examples/");
    let known = ARROWS.iter().find(|(known, _)| *known == name);
    let allowed: &[&str] = match (outside, known) {
        (Some((_, allowed)), _) => allowed,
        (None, _) if is_example => &["lab"],
        (None, Some((_, allowed))) => allowed,
        (None, None) => &[],
    };
    for (section, dependency) in dependencies(&manifest.text) {
        let for_tests = section != "dependencies";
        // Tests may use any crate except the laboratory, which is a layer above.
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
    fn unsafe_code_is_in_one_file() {
        let source = |path: &str, text: &str| Source {
            path: path.into(),
            text: text.into(),
        };
        let root = "[workspace.lints.rust]\nunsafe_code = \"forbid\"\n\n[workspace.lints.clippy]\nall = 1\n";
        let own = "[lints.rust]\nunsafe_code = \"deny\"\n\n[lints.clippy]\n# Why.\nall = 1\n\n[dependencies]\n";
        let allow = concat!("#[allow(", "unsafe_code)]");
        let mut sources = vec![source("Cargo.toml", root)];
        for (manifest, file) in UNSAFE {
            sources.extend([source(manifest, own), source(file, allow)]);
        }
        assert_eq!(check_unsafe(&sources), Faults::new());
        sources.push(source("crates/interfaces/python/src/lib.rs", allow));
        assert_eq!(check_unsafe(&sources).len(), 1);
        sources[1].text = own.replace("all = 1", "all = 2");
        assert_eq!(check_unsafe(&sources).len(), 2);
    }

    #[test]
    fn folders_use_folders_below() {
        let manifest = |path: &str, text: &str| Source {
            path: format!("crates/{path}/Cargo.toml"),
            text: text.into(),
        };
        let lab = "[dependencies]\nclearway-lab.workspace = true";
        let units = "[dev-dependencies]\nclearway-units.workspace = true";
        let all = [
            manifest("foundation/units", ""),
            manifest("laboratory/lab", units),
            manifest("interfaces/cli", lab),
            manifest("simulator/fabric", lab),
            manifest("attic/old", ""),
        ];
        let faults = check_groups(&all.iter().collect::<Vec<_>>());
        assert_eq!(
            faults,
            [
                "crates/simulator/fabric/Cargo.toml: crates of `simulator` must not depend on clearway-lab, which is in `laboratory`",
                "crates/attic/old/Cargo.toml: `attic` is no folder of crates that ARCHITECTURE.md has"
            ]
        );
    }

    #[test]
    fn arrows_point_downwards() {
        let lab = "[dependencies]\nclearway-lab.workspace = true";
        assert_eq!(
            faults("crates/simulator/fabric/Cargo.toml", lab),
            ["crates/simulator/fabric/Cargo.toml: must not depend on clearway-lab"]
        );
        assert_eq!(
            faults("crates/interfaces/cli/Cargo.toml", lab),
            Faults::new()
        );
        assert_eq!(faults("storm/Cargo.toml", lab), Faults::new());
        let fabric = "[dependencies]\nclearway-fabric.workspace = true";
        assert_eq!(
            faults("storm/Cargo.toml", fabric),
            ["storm/Cargo.toml: must not depend on clearway-fabric"]
        );
        assert_eq!(faults("examples/x/Cargo.toml", lab), Faults::new());
        assert_eq!(
            faults("examples/transport-only/Cargo.toml", lab),
            ["examples/transport-only/Cargo.toml: must not depend on clearway-lab"]
        );
        let fabric = "[dev-dependencies]\nclearway-fabric = { path = \"..\" }";
        assert_eq!(
            faults("crates/simulator/workload/Cargo.toml", fabric),
            Faults::new()
        );
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
