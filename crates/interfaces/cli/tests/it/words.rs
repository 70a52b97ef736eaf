//! Words of the field that have another name here: the error gives that name.

use crate::common::Bench;
use insta::assert_snapshot;
use std::path::Path;
use std::process::Command;

#[test]
fn words_of_the_field_are_understood() {
    let bench = Bench::new("words");
    let mut all = String::new();
    for setting in [
        "transport.kind=dcqcn",
        "transport.kind=RoCE",
        "transport.controller=rocev2",
        "workload.kind=all-reduce",
        "workload.kind=AllGather",
        "topology.kind=clos",
        "switch.pfc=true",
        "mtu=1500",
        "seeds=3",
        "workload.message=2M",
        "workload.message=2mb",
        "topology.link-rate=400gbps",
        "topology.link-rate=50GB/s",
        "topology.oversubscription=0",
    ] {
        let error = bench.refuse(&["run", "quickstart", "--set", setting]);
        // Other tests check the lists of all names.
        let lines = error.lines().map(|line| {
            let line = line.split("; else use one of:").next().unwrap_or_default();
            let line = line.split(" Use one of:").next().unwrap_or_default();
            line.split("; the units are").next().unwrap_or_default()
        });
        lines.for_each(|line| all += &format!("{line}\n"));
    }
    assert_snapshot!(all, @r#"
    --set transport.kind=dcqcn: `transport.kind`: there is no "dcqcn"
      fix: `dcqcn` is a controller: write "rocev2", "dcqcn-2016" or "tmdml", which have it, or set `transport.controller`
    --set transport.kind=RoCE: `transport.kind`: there is no "RoCE"
      fix: write "rocev2": go-back-N with DCQCN
    --set transport.controller=rocev2: `transport.controller`: there is no "rocev2"
      fix: `rocev2` is a whole transport: set `transport.kind = "rocev2"`
    --set workload.kind=all-reduce: `workload.kind`: there is no "all-reduce"
      fix: write an algorithm: "ring-all-reduce", "halving-doubling", "double-binary-tree" or "direct-all-reduce"
    --set workload.kind=AllGather: `workload.kind`: there is no "AllGather"
      fix: did you mean `ring-all-gather`, `direct-all-gather` or `hierarchical-all-gather`?
    --set topology.kind=clos: `topology.kind`: there is no "clos"
      fix: write "leaf-spine", or "fat-tree" for three tiers
    --set switch.pfc=true: a lossy switch has no key `pfc`
      fix: write `switch.kind = "shared-buffer"`: pause frames need a shared buffer; `switch.pfc.classes` says for which classes
    --set mtu=1500: the scenario has no key `mtu`
      fix: write `transport.payload`: bytes of a full packet without headers
    --set seeds=3: the scenario has no key `seeds`
      fix: write `seed` for one run; `clearway compare SCENARIO --seeds 3` runs several
    --set workload.message=2M: `workload.message` cannot be "2M"
      fix: expected a size such as "2MB", "64KiB" or "4096B"; write "2MB"
    --set workload.message=2mb: `workload.message` cannot be "2mb"
      fix: expected a size such as "2MB", "64KiB" or "4096B"; write "2MB"
    --set topology.link-rate=400gbps: `topology.link-rate` cannot be "400gbps"
      fix: expected a rate such as "400Gbps"; write "400Gbps"
    --set topology.link-rate=50GB/s: `topology.link-rate` cannot be "50GB/s"
      fix: expected a rate such as "400Gbps"; write "400Gbps": rates are in bits, and a byte has 8
    --set topology.oversubscription=0: `topology.oversubscription` cannot be 0
      fix: expected links down for each link up: a number above 0 such as 2 or 1.5, or a ratio such as "3:2", of numbers up to 65535
    "#);
}

#[test]
fn options_of_other_commands_and_keys_of_scenarios_are_understood() {
    let bench = Bench::new("options");
    let errors = [
        bench.refuse(&["run", "quickstart", "--seeds", "3"]),
        bench.refuse(&["run", "quickstart", "--hosts", "64"]),
        bench.refuse(&["compare", "quickstart", "--link-rate", "100Gbps"]),
        bench.refuse(&["run", "quickstart", "--nonsense"]),
    ];
    assert_snapshot!(errors.join("\n"), @"
    unexpected argument '--seeds' found

      tip: a similar argument exists: '--seed'
      tip: `clearway compare SCENARIO --seeds 3` runs several seeds, `--seed 3` is one of them

    Usage: clearway run --seed <S> <SCENARIO>

    For more information, try '--help'.
    unexpected argument '--hosts' found

      tip: `--set topology.hosts=VALUE` sets a parameter of the scenario
      tip: `--set workload.hosts=VALUE` sets a parameter of the scenario

    Usage: clearway run <SCENARIO>

    For more information, try '--help'.
    unexpected argument '--link-rate' found

      tip: `--set topology.link-rate=VALUE` sets a parameter of the scenario

    Usage: clearway compare <SCENARIO|FOLDER>...

    For more information, try '--help'.
    unexpected argument '--nonsense' found

      tip: to pass '--nonsense' as a value, use '-- --nonsense'

    Usage: clearway run <SCENARIO>

    For more information, try '--help'.
    ");
}

#[test]
fn why_says_which_folder_it_wants() {
    let bench = Bench::new("why-folders");
    let run = |name: &str| {
        let out = format!("results/{name}");
        bench.succeed(&[
            "run",
            "quickstart",
            "--set",
            "topology.hosts=16",
            "--quiet",
            "--out",
            &out,
        ]);
    };
    ["a", "b"].into_iter().for_each(run);
    let errors = [
        bench.refuse(&["why", "quickstart"]),
        bench.refuse(&["why", "results"]),
        bench.refuse(&["why", "nowhere"]),
    ];
    assert_snapshot!(errors.join("\n"), @"
    quickstart: there is no summary.json in it
      fix: `clearway run quickstart --why` runs this scenario and says why its slowest flows were slow
    results: there is no summary.json in it
      fix: name one of the results in it: `results/a`, `results/b`
    nowhere: there is no summary.json in it
      fix: name a result folder, such as `clearway run` writes
    ");
}

#[test]
fn captures_are_named_with_their_viewers() {
    let bench = Bench::new("viewers");
    let settings = [
        "observe.trace.perfetto=true",
        "observe.trace.pcap=[\"host:3\"]",
    ];
    let mut arguments = vec![
        "run",
        "quickstart",
        "--set",
        "topology.hosts=16",
        "--out",
        "r",
    ];
    settings
        .iter()
        .for_each(|setting| arguments.extend(["--set", setting]));
    let table = bench.succeed(&arguments);
    let end = table.find("Results ").map(|start| &table[start..]);
    assert_snapshot!(end.unwrap_or_default(), @"
    Results    r
    Captures   trace.pcapng (Wireshark), trace.perfetto (https://ui.perfetto.dev)
    ");
}

/// The manifest in the book, built outside the workspace.
#[test]
fn the_manifest_of_the_book_resolves_outside_of_the_workspace() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
    let page = std::fs::read_to_string(root.join("docs/src/your-own.md")).unwrap();
    let block = page
        .split("```toml\n# my-spray/Cargo.toml\n")
        .nth(1)
        .unwrap();
    let block = block.split("```").next().unwrap();
    let path = root.join("crates/interfaces/cli").canonicalize().unwrap();
    let manifest = block.replace("../clearway/crates/interfaces/cli", &path.to_string_lossy());
    assert_ne!(manifest, block, "the path of the repository");
    let folder = std::env::temp_dir().join(format!("clearway-your-own-{}", std::process::id()));
    std::fs::create_dir_all(folder.join("src")).unwrap();
    std::fs::write(folder.join("Cargo.toml"), manifest).unwrap();
    std::fs::write(folder.join("src/main.rs"), "fn main() {}\n").unwrap();
    std::fs::copy(root.join("Cargo.lock"), folder.join("Cargo.lock")).unwrap();
    let cargo = Command::new(env!("CARGO"))
        .args([
            "metadata",
            "--offline",
            "--no-deps",
            "--format-version",
            "1",
        ])
        .current_dir(&folder)
        .output()
        .unwrap();
    std::fs::remove_dir_all(&folder).unwrap();
    let errors = String::from_utf8_lossy(&cargo.stderr);
    assert!(cargo.status.success(), "{errors}");
    let metadata: serde_json::Value = serde_json::from_slice(&cargo.stdout).unwrap();
    let package = &metadata["packages"][0];
    assert_eq!(package["name"], "my-spray");
    assert_eq!(package["dependencies"][0]["name"], "clearway");
}

#[test]
fn files_in_the_wrong_place_are_known_for_what_they_are() {
    let bench = Bench::new("known-files");
    bench.write("x.cm", "Nodes 2\nConnections 1\n0->1 id 1 start 0 size 5\n");
    bench.write("config.txt", "ENABLE_QCN 1\nCC_MODE 3\n");
    bench.write("net.yml", "topology: [ Ring ]\nnpus_count: [ 4 ]\n");
    bench.write("prof.json", "{\"schemaVersion\": 1, \"traceEvents\": []}");
    let trace = ["--set", "workload.kind=trace", "--set"];
    let errors = [
        bench.refuse(&["run", "x.cm"]),
        bench.refuse(&["run", "config.txt"]),
        bench.refuse(&["run", "--set", "topology.file=net.yml"]),
        bench.refuse(&["run", "--set", "topology.file=x.cm"]),
        bench.refuse(&["run", "--set", "workload.file=prof.json"]),
        bench.refuse(&[&["run"], &trace[..], &["workload.file=prof.json"]].concat()),
        bench.refuse(&[&["run"], &trace[..], &["workload.file=x.cm"]].concat()),
    ];
    assert_snapshot!(errors.join("\n"), @r#"
    x.cm: this is a connection matrix of htsim, and not TOML
      fix: `clearway run --set topology.file=TOPO --set workload.file=x.cm`
    config.txt: this is a configuration of the HPCC simulator or SimAI, and not TOML
      fix: `clearway import hpcc config.txt` prints its scenario; for SimAI.conf it is `clearway import simai config.txt --topology TOPOLOGY --workload WORKLOAD`
    net.yml:1: the network has no `bandwidth`
      fix: add `bandwidth`; a network has topology, npus_count, bandwidth, latency
    --set topology.file=x.cm: x.cm is a connection matrix of htsim; topologies are files of htsim (`.topo`), HPCC, SimAI, ASTRA-sim and NCCL, and InfraGraphs
      fix: `clearway run --set topology.file=TOPO --set workload.file=x.cm`
    --set workload.file=prof.json: `file` of the file workload: prof.json is a profile or an execution trace of PyTorch; files of flows are connection matrices of htsim (`.cm`) and flows of HPCC
      fix: `clearway run --set workload.kind=trace --set workload.file=prof.json`
    prof.json: rank 0 has no kernels of the GPU and no communications
      fix: record with PyTorch 2.4 or later, with the activities CPU and CUDA and the backend NCCL
    --set workload.file=x.cm: `file` of the trace workload: x.cm is a connection matrix of htsim; traces are GOAL schedules, traces of Chakra and PyTorch, and workloads of SimAI
      fix: `clearway run --set topology.file=TOPO --set workload.file=x.cm`
    "#);
}

#[test]
fn options_of_htsim_are_answered_with_what_they_are() {
    let bench = Bench::new("htsim-options");
    let error = bench.refuse(&["run", "-topo", "x.topo", "-tm", "y.cm", "-q", "35"]);
    assert_snapshot!(error, @"
    unexpected argument '-t' found

      tip: `clearway import htsim -- -topo x.topo -tm y.cm -q 35` prints the scenario of these options of htsim

    Usage: clearway run [OPTIONS] [SCENARIO]

    For more information, try '--help'.
    ");
}

#[test]
fn the_kind_of_a_section_leads_to_the_list_of_kinds() {
    let bench = Bench::new("kinds");
    for (key, list, kind) in [
        ("topology.kind", "topologies", "dumbbell"),
        ("workload.kind", "workloads", "incast"),
    ] {
        let error = bench.refuse(&["explain", key]);
        assert!(
            error.contains(&format!("`clearway list {list}`")),
            "{error}"
        );
        assert!(bench.succeed(&["list", list]).contains(kind), "{list}");
    }
}
