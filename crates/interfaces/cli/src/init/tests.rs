use super::*;
use clap::Parser;
use clearway_lab::Catalogue;

#[derive(Debug, Parser)]
struct Command {
    #[command(flatten)]
    init: InitArguments,
}

fn arguments(given: &[&str]) -> InitArguments {
    let all = ["init"].iter().chain(given).copied();
    Command::try_parse_from(all).unwrap().init
}

fn written(given: &[&str]) -> String {
    let text = text(&Laboratory::new(), &arguments(given));
    text.unwrap_or_else(|error| panic!("{given:?}: {error:?}"))
}

fn read(text: &str, overrides: &[&str]) -> Experiment {
    let overrides: Vec<String> = overrides.iter().map(ToString::to_string).collect();
    let read = Laboratory::new().read_any("x.toml", text, None, &overrides);
    read.unwrap_or_else(|error| panic!("{error}\n{text}"))
}

fn names(group: &str) -> Vec<String> {
    let laboratory = Laboratory::new();
    let found = Catalogue::new(laboratory.registry()).group(group).unwrap();
    found.into_iter().map(|(name, _)| name).collect()
}

/// Kinds that need neither a file nor a list from the user.
fn kinds(group: &str) -> Vec<String> {
    let mut names = names(group);
    names.retain(|name| !["file", "trace", "flows"].contains(&name.as_str()));
    names
}

/// Runs for a moment.
fn run(text: &str) {
    let Experiment::Packets(scenario) = read(text, &["stop.at-most=3us"]) else {
        panic!("a scenario of packets")
    };
    let finished = Laboratory::new().run(&scenario);
    let finished = finished.unwrap_or_else(|error| panic!("{error}\n{text}"));
    assert_ne!(finished.rounds, clearway_lab::Rounds::default());
}

#[test]
fn every_workload_runs_on_every_topology_as_written() {
    for topology in kinds("topologies") {
        for workload in kinds("workloads") {
            run(&written(&[
                "-",
                "--topology",
                &topology,
                "--workload",
                &workload,
            ]));
        }
    }
}

#[test]
fn every_transport_runs_on_every_switch_and_topology_as_written() {
    for transport in names("transports") {
        for topology in kinds("topologies") {
            let given = ["-", "--transport", &transport, "--topology", &topology];
            // These transports have no room in their packets for so many switches, or need a single path.
            let allocates = ["s-perc", "1rc"].contains(&transport.as_str());
            if allocates && ["bcube", "multi-plane", "torus", "mesh"].contains(&topology.as_str()) {
                assert!(text(&Laboratory::new(), &arguments(&given)).is_err());
                continue;
            }
            run(&written(&given));
        }
        for switch in names("switches") {
            for workload in ["incast", "poisson", "ring-all-reduce"] {
                let given = ["--transport", &transport, "--switch", &switch];
                run(&written(
                    &[&["-", "--workload", workload][..], &given].concat(),
                ));
            }
        }
    }
}

/// Parsing the text gives the requested settings, with any other text in the file.
#[test]
fn what_is_written_is_what_was_asked_for() {
    let given = [
        "--topology",
        "fat-tree",
        "--transport",
        "rocev2",
        "--workload",
        "incast",
    ];
    let sets = [
        "--set",
        "topology.hosts=1024",
        "--set",
        "topology.oversubscription=2",
    ];
    let text = written(&[&["my-study.toml"][..], &given, &sets].concat());
    let kinds = [
        "topology.kind=fat-tree",
        "transport.kind=rocev2",
        "workload.kind=incast",
        "switch.kind=shared-buffer",
        "topology.hosts=1024",
        "topology.oversubscription=2",
    ];
    let same = read("name = \"my-study\"\n", &kinds);
    assert_eq!(read(&text, &[]).resolved(), same.resolved());
    assert!(text.contains("\nradix = 16\n"), "{text}");
    // Another transport has other default parts.
    let other = read(&text, &["transport.kind=strack"]).resolved();
    assert!(other.contains("controller = \"strack\""), "{other}");
}

/// Comments equal the text of `clearway explain` for the key below them, and values equal its defaults.
#[test]
fn comments_are_those_of_explain() {
    let words = |text: &str| {
        let words: Vec<&str> = text.split_whitespace().collect();
        words.join(" ").to_lowercase()
    };
    for (topology, workload) in kinds("topologies").iter().zip(kinds("workloads")) {
        let text = written(&["-", "--topology", topology, "--workload", &workload]);
        let settings = read(&text, &[]).every_setting();
        let (mut section, mut comment) = (String::new(), String::new());
        let mut explained = 0;
        for line in text.lines() {
            if let Some(header) = line.strip_prefix('[') {
                section = header.trim_matches(['[', ']']).into();
            } else if let Some((key, value)) = key_of(line) {
                let same =
                    |s: &&clearway_lab::scenario::Setting| s.section == section && s.key == key;
                let setting = settings
                    .iter()
                    .find(same)
                    .unwrap_or_else(|| panic!("{line}"));
                assert_eq!(setting.value.to_string(), value);
                assert!(
                    words(&comment).starts_with(&words(&setting.meaning)),
                    "{comment}"
                );
                explained += 1;
            }
            match line.strip_prefix("# ").filter(|_| key_of(line).is_none()) {
                Some(more) => comment += &format!("{more} "),
                None => comment.clear(),
            }
        }
        assert!(explained > 20, "{explained}\n{text}");
    }
}

/// Key and value of a line, be it commented out or not.
fn key_of(line: &str) -> Option<(&str, &str)> {
    let line = line.strip_prefix("# ").unwrap_or(line);
    let (key, value) = line.split_once(" = ")?;
    let is_key = key
        .chars()
        .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || "-.".contains(c));
    is_key.then_some((key, value))
}

#[test]
fn scale_up_fabrics_are_written_too() {
    for (workload, _) in ScaleupWorkloadKind::KINDS
        .iter()
        .filter(|(kind, _)| *kind != "trace")
    {
        let text = written(&[
            "-",
            "--topology",
            "nvlink",
            "--workload",
            workload,
            "--injection",
            "window",
        ]);
        let Experiment::Scaleup(scenario) = read(&text, &[]) else {
            panic!("a scale-up fabric")
        };
        assert!(ScaleupAssembly::new(&scenario).is_ok());
        assert!(text.contains("[injection]"), "{text}");
    }
}

#[test]
fn what_cannot_be_written_is_refused() {
    let refused = |given: &[&str]| {
        let error = text(&Laboratory::new(), &arguments(given)).unwrap_err();
        error.first_line().to_owned()
    };
    insta::assert_snapshot!(refused(&["--topology", "fat-tre"]), @"--topology fat-tre: there is no such kind");
    insta::assert_snapshot!(refused(&["--workload", "collective"]), @"--workload collective: there is no such kind");
    insta::assert_snapshot!(refused(&["--workload", "trace"]), @"the scenario would not run: `file` of the trace workload: no file is named");
    insta::assert_snapshot!(refused(&["--topology", "file"]), @"the scenario would not run: impossible topology: no file is named");
    insta::assert_snapshot!(refused(&["--set", "topology.host=3"]), @r#"--set topology.host=3: a topology of kind "leaf-spine" has no key `host`"#);
    insta::assert_snapshot!(refused(&["--topology", "nvlink", "--transport", "strack"]), @"--set transport.kind=strack: `transport.kind` is a key of packet fabrics: a scale-up fabric has no `[transport]`");
}
