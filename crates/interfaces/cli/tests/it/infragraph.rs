//! InfraGraphs: written by `clearway topology`, read as `topology.file`, and what is said about them.

use crate::common::Bench;
use insta::assert_snapshot;

/// A server of two xpus and one of none, on a leaf; links without a latency.
const FILE: &str = "\
devices:
- name: server
  components:
  - {name: gpu, count: 2, choice: xpu}
  - {name: nic, count: 2, choice: nic}
  - {name: cpu, count: 1, choice: cpu}
  links: [{name: pcie}]
  edges:
  - {ep1: {component: gpu}, ep2: {component: nic}, scheme: one2one, link: pcie}
- name: switch
  components: [{name: port, count: 4, choice: port}]
instances:
- {name: host, device: server, count: 2}
- {name: leaf, device: switch, count: 1}
links:
- name: eth
  physical: {bandwidth: {gigabits_per_second: 400}}
edges:
- {ep1: {instance: host, component: nic}, ep2: {instance: leaf, component: port}, scheme: one2one, link: eth}
";

#[test]
fn a_written_fabric_is_read_again() {
    let bench = Bench::new("infragraph-written");
    let keys = ["--set", "topology.kind=rail-optimised"];
    let described = bench.succeed(&[&["topology"][..], &keys].concat());
    for file in ["rails.yaml", "rails.json"] {
        let written = bench.succeed(&[&["topology", "--infragraph", file][..], &keys].concat());
        assert_eq!(written, described);
        let key = format!("topology.file={file}");
        let of = |options: &[&str]| {
            let links = bench.succeed(&[&["topology", "--links"], options].concat());
            links
                .split_once("\n\n")
                .expect("a table of links")
                .1
                .to_owned()
        };
        assert_eq!(of(&["--set", &key]), of(&keys), "{file}");
    }
    let printed = bench.succeed(&[&["topology", "--infragraph", "-"][..], &keys].concat());
    assert_eq!(printed, bench.read("rails.yaml"));
    let itself = [
        "topology",
        "--set",
        "topology.file=rails.yaml",
        "--infragraph",
        "./rails.yaml",
    ];
    let scaleup = [
        "topology",
        "--set",
        "topology.kind=nvlink",
        "--infragraph",
        "x.yaml",
    ];
    assert_snapshot!(format!("{}\n{}", bench.refuse(&itself), bench.refuse(&scaleup)), @r#"
    --infragraph ./rails.yaml: this is `topology.file` (rails.yaml), which would be overwritten
      fix: choose another name
    --infragraph x.yaml: a scale-up fabric of kind "nvlink" is not written as InfraGraph
      fix: choose another `topology.kind`
    "#);
}

#[test]
fn keys_say_what_a_file_leaves_open() {
    let bench = Bench::new("infragraph-keys");
    bench.write("x.yaml", FILE);
    bench.write("x.txt", "3 1 2\n2\n0 2 100Gbps 1us 0\n1 2 100Gbps 1us 0\n");
    let none = FILE.replace("  physical: {bandwidth: {gigabits_per_second: 400}}\n", "");
    bench.write("none.yaml", &none);
    bench.write(
        "old.yaml",
        &FILE.replace("edges:\n- {ep1: {inst", "connections:\n- {ep1: {inst"),
    );
    let of = |file: &str, keys: &[&str]| {
        let mut arguments = vec!["topology".to_owned()];
        for key in [&format!("topology.file={file}").as_str()]
            .into_iter()
            .chain(keys)
        {
            arguments.extend(["--set".to_owned(), (*key).to_owned()]);
        }
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let output = bench.output(&arguments);
        let (out, err) = (output.stdout, output.stderr);
        let first = String::from_utf8_lossy(&out)
            .lines()
            .next()
            .unwrap_or("")
            .to_owned();
        let first = format!("{keys:?} {first}");
        format!("{}\n{}", first.trim_end(), String::from_utf8_lossy(&err))
    };
    let all = [
        of("x.yaml", &[]),
        of(
            "x.yaml",
            &["topology.endpoints=device", "topology.link-delay=500ns"],
        ),
        of("none.yaml", &[]),
        of(
            "none.yaml",
            &["topology.link-rate=100Gbps", "topology.link-delay=500ns"],
        ),
        of("x.yaml", &["topology.routing=ugal"]),
        of("x.txt", &["topology.endpoints=xpu"]),
        of("x.yaml", &["topology.format=htsim"]),
        of("x.txt", &["topology.format=infragraph"]),
        of("old.yaml", &[]),
    ];
    assert_snapshot!(all.join("\n"), @r#"
    [] topology         infragraph: 4 hosts, 1 switch, 4 links
    warning: x.yaml:16: link `eth` has no latency: 4 cables of such links have 1us; `topology.link-delay` sets another delay
    warning: x.yaml:2: 2 components of kind `cpu` within servers are not simulated: packets do not reach them

    ["topology.endpoints=device", "topology.link-delay=500ns"] topology         infragraph: 2 hosts, 1 switch, 4 links
    warning: x.yaml:2: 2 components of kind `cpu` within servers are not simulated: packets do not reach them

    []
    error: none.yaml:16: link `eth` has no bandwidth; line 18 uses it
      fix: add `physical: {bandwidth: {gigabits_per_second: 400}}` to it, or set `topology.link-rate`

    ["topology.link-rate=100Gbps", "topology.link-delay=500ns"] topology         infragraph: 4 hosts, 1 switch, 4 links
    warning: none.yaml:2: 2 components of kind `cpu` within servers are not simulated: packets do not reach them

    ["topology.routing=ugal"]
    error: --set topology.routing=ugal: `topology.routing` = "ugal" needs groups of switches, and the file has none
      fix: annotate switches with `clearway-group`, or leave `topology.routing` out

    ["topology.endpoints=xpu"] topology         graph: 2 hosts, 1 switch, 2 links
    warning: `topology.endpoints` is not used: x.txt is not an InfraGraph

    ["topology.format=htsim"]
    error: x.yaml:1: unknown word `devices:`
      fix: use `Nodes`, `Tiers`, `Podsize` or `Tier`

    ["topology.format=infragraph"]
    error: x.txt:1: an infrastructure is a mapping, but here is `3 1 2 2 0 2 100Gbps 1us 0 1 2 100Gbps 1u…`
      fix: write its keys, as in `name: …`

    []
    error: old.yaml:18: `connections` belongs to the first form of InfraGraph, which is not read
      fix: write `edges` with `ep1`, `ep2`, `scheme` and `link`
    "#);
}
