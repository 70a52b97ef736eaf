use super::*;
use clearway_units::{Bytes, Rate, Span, Time};

/// Two servers of two xpus with two NICs behind a PCIe switch each, on two leaves under a spine.
const RAILS: &str = "\
name: rails
description: two rails
devices:
- name: server
  components:
  - {name: cpu, count: 1, choice: cpu}
  - {name: gpu, count: 2, choice: xpu}
  - {name: nic, count: 2, choice: nic}
  - {name: nvsw, count: 2, choice: switch}
  - {name: pcie, count: 2, choice: switch}
  links:
  - name: nvlink
    physical: {bandwidth: {gigabytes_per_second: 450}, latency: {us: 0.3}}
  - name: pcie5
  edges:
  - {ep1: {component: gpu}, ep2: {component: nvsw}, scheme: many2many, link: nvlink}
  - {ep1: {component: gpu}, ep2: {component: pcie}, scheme: one2one, link: pcie5}
  - {ep1: {component: 'nic[::-1]'}, ep2: {component: pcie}, scheme: one2one, link: pcie5}
  - {ep1: {component: cpu}, ep2: {component: pcie}, scheme: many2many, link: pcie5}
- name: switch
  components:
  - {name: asic, count: 1, choice: cpu}
  - {name: port, count: 4, choice: port}
  links: [{name: ic}]
  edges:
  - {ep1: {component: asic}, ep2: {component: port}, scheme: many2many, link: ic}
instances:
- {name: host, device: server, count: 2}
- {name: leaf, device: switch, count: 2}
- {name: spine, device: switch, count: 1}
links:
- name: eth
  physical: {bandwidth: {gigabits_per_second: 400}, latency: {ns: 500}}
edges:
- {ep1: {instance: 'host[0]', component: nic}, ep2: {instance: leaf, component: 'port[0]'}, scheme: one2one, link: eth}
- {ep1: {instance: 'host[1]', component: nic}, ep2: {instance: leaf, component: 'port[1]'}, scheme: one2one, link: eth}
- {ep1: {instance: leaf, component: 'port[2]'}, ep2: {instance: spine, component: 'port[0:2]'}, scheme: one2one, link: eth}
";

fn read(text: &str) -> InfragraphFile {
    let read = parse_infragraph("x.yaml", text, &InfragraphOptions::default());
    read.unwrap_or_else(|error| panic!("{error}\n{text}"))
}

fn read_as(text: &str, hosts: InfragraphHosts) -> InfragraphFile {
    let options = InfragraphOptions {
        hosts,
        ..InfragraphOptions::default()
    };
    parse_infragraph("x.yaml", text, &options).unwrap()
}

fn warnings(file: &InfragraphFile) -> Vec<String> {
    file.warnings.iter().map(ToString::to_string).collect()
}

fn names(fabric: &InfragraphFabric) -> Vec<&str> {
    let names = fabric.switches.iter().map(|switch| switch.name.as_str());
    names.collect()
}

/// Links with the names of their ends: `h3` is a host.
fn links(fabric: &InfragraphFabric) -> Vec<String> {
    let name = |node: u32| match node.checked_sub(fabric.hosts) {
        None => format!("h{node}"),
        Some(switch) => fabric.switches[switch as usize].name.clone(),
    };
    let links = fabric.links.iter();
    links
        .map(|link| format!("{} {}", name(link.ends[0]), name(link.ends[1])))
        .collect()
}

#[test]
fn xpus_are_hosts_with_the_nearest_nics() {
    let file = read(RAILS);
    let fabric = &file.fabric;
    assert_eq!(
        (fabric.name.as_str(), fabric.hosts, fabric.xpus_per_server),
        ("rails", 4, 2)
    );
    let expected = [
        "leaf0",
        "leaf1",
        "spine",
        "host0.nvsw0",
        "host0.nvsw1",
        "host1.nvsw0",
        "host1.nvsw1",
    ];
    assert_eq!(names(fabric), expected);
    // NIC 0 is behind the PCIe switch of xpu 1.
    let of_edges = [
        "h1 leaf0",
        "h0 leaf1",
        "h3 leaf0",
        "h2 leaf1",
        "leaf0 spine",
        "leaf1 spine",
    ];
    let inside = [
        "h0 host0.nvsw0",
        "h0 host0.nvsw1",
        "h1 host0.nvsw0",
        "h1 host0.nvsw1",
        "h2 host1.nvsw0",
        "h2 host1.nvsw1",
        "h3 host1.nvsw0",
        "h3 host1.nvsw1",
    ];
    assert_eq!(links(fabric), [&of_edges[..], &inside].concat());
    let (first, last) = (&fabric.links[0], &fabric.links[13]);
    assert_eq!(
        (first.rate, first.delay),
        (Rate::from_gbps(400), Span::from_ns(500))
    );
    assert_eq!(
        (last.rate, last.delay),
        (Rate::from_gbps(3600), Span::from_ns(300))
    );
    assert!(!first.is_of_xpu && last.is_of_xpu);
    let roles: Vec<bool> = fabric
        .switches
        .iter()
        .map(|own| own.role == InfragraphRole::ScaleUp)
        .collect();
    assert_eq!(roles, [false, false, false, true, true, true, true]);
    assert_eq!(
        warnings(&file),
        [
            "x.yaml:4: 2 components of kind `cpu` within servers are not simulated: packets do not reach them",
            "x.yaml:4: 4 components of kind `switch` within servers are not simulated: only scale-up switches are, which links with a bandwidth join to xpus",
        ]
    );
}

#[test]
fn a_device_can_be_one_host() {
    let file = read_as(RAILS, InfragraphHosts::Device);
    assert_eq!((file.fabric.hosts, file.fabric.xpus_per_server), (2, 1));
    assert_eq!(names(&file.fabric), ["leaf0", "leaf1", "spine"]);
    let expected = [
        "h0 leaf0",
        "h0 leaf1",
        "h1 leaf0",
        "h1 leaf1",
        "leaf0 spine",
        "leaf1 spine",
    ];
    assert_eq!(links(&file.fabric), expected);
    let unused = warnings(&file).pop().unwrap();
    assert_eq!(
        unused,
        "x.yaml:4: the bandwidth and latency of 8 edges within servers, as of PCIe, are not used"
    );
    // So it is where an xpu has no NIC.
    let fewer = RAILS
        .replace("name: nic, count: 2", "name: nic, count: 1")
        .replace("nic[::-1]", "nic")
        .replace(
            "{ep1: {component: nic}, ep2: {component: pcie}, scheme: one2one",
            "{ep1: {component: nic}, ep2: {component: 'pcie[0]'}, scheme: one2one",
        )
        .replace(
            "instance: leaf, component: 'port[0]'",
            "instance: 'leaf[0]', component: 'port[0]'",
        )
        .replace(
            "instance: leaf, component: 'port[1]'",
            "instance: 'leaf[1]', component: 'port[1]'",
        );
    let file = read(&fewer);
    assert_eq!(links(&file.fabric)[..2], ["h0 leaf0", "h1 leaf1"]);
    assert_eq!(
        warnings(&file)[0],
        "x.yaml:4: the 2 xpus of `server` are one host: xpu 1 of `host[0]` has no NIC with a cable"
    );
    // As xpus, the one without a NIC reaches only its neighbour.
    let options = InfragraphOptions {
        hosts: InfragraphHosts::Xpu,
        ..InfragraphOptions::default()
    };
    let xpus = parse_infragraph("x.yaml", &fewer, &options).unwrap();
    assert_eq!((xpus.fabric.hosts, links(&xpus.fabric).len()), (4, 12));
}

#[test]
fn a_server_alone_has_its_scale_up_switches() {
    let from = RAILS.find("\nedges:").unwrap();
    let alone = RAILS[..=from].replace("device: server, count: 2", "device: server, count: 1");
    let file = read(&alone);
    assert_eq!(
        (file.fabric.hosts, file.fabric.switches.len()),
        (2, 2),
        "{:?}",
        links(&file.fabric)
    );
}

#[test]
fn devices_within_devices_are_counted_out() {
    let text = RAILS
        .replace("{name: nic, count: 2, choice: nic}", "{name: cx7, count: 2, choice: device}")
        .replace("{component: 'nic[::-1]'}", "{device: 'cx7[0:2]', component: asic}")
        .replace("component: nic}", "component: 'cx7.port[1]'}")
        .replace(
            "- name: switch\n",
            "- name: cx7\n  components:\n  - {name: asic, count: 1, choice: custom, custom: {type: asic}}\n  \
             - {name: port, count: 2, choice: port}\n  links: [{name: serdes}]\n  edges:\n  \
             - {ep1: {component: asic}, ep2: {component: port}, scheme: many2many, link: serdes}\n- name: switch\n",
        );
    let file = read(&text);
    assert_eq!(
        links(&file.fabric)[..4],
        ["h0 leaf0", "h1 leaf1", "h2 leaf0", "h3 leaf1"]
    );
    assert!(warnings(&file)[0].contains("4 components of kind `custom`"));
}

#[test]
fn schemes_join_lists() {
    let ring = RAILS.replace(
        "- {ep1: {instance: leaf, component: 'port[2]'}, ep2: {instance: spine, component: 'port[0:2]'}, scheme: one2one",
        "- {ep1: {instance: ring, component: 'port[2]'}, ep2: {instance: ring, component: 'port[2]'}, scheme: ring",
    );
    let ring = ring
        .replace("instance: leaf", "instance: ring")
        .replace(
            "{name: leaf, device: switch, count: 2}",
            "{name: ring, device: switch, count: 4}",
        )
        .replace(
            "instance: ring, component: 'port[0]'",
            "instance: 'ring[:2]', component: 'port[0]'",
        )
        .replace(
            "instance: ring, component: 'port[1]'",
            "instance: 'ring[2:]', component: 'port[1]'",
        );
    let file = read(&ring);
    assert_eq!(
        links(&file.fabric)[4..8],
        ["ring0 ring1", "ring1 ring2", "ring2 ring3", "ring3 ring0"]
    );
    assert_eq!(
        warnings(&file)[0],
        "x.yaml:30: 1 instance left out, the first is `spine[0]`: no edge joins them to another instance"
    );
    let full = RAILS.replace(
        "- {ep1: {instance: leaf, component: 'port[2]'}, ep2: {instance: spine, component: 'port[0:2]'}, scheme: one2one",
        "- {ep1: {instance: leaf, component: 'port[2:]'}, ep2: {instance: spine, component: 'port[0:2]'}, scheme: many2many",
    );
    assert_eq!(read(&full).fabric.links.len(), 4 + 8 + 8);
    let cut = RAILS.replace("component: 'port[0:2]'", "component: port");
    let file = read(&cut);
    assert_eq!(links(&file.fabric), links(&read(RAILS).fabric));
    assert!(warnings(&file)[0].contains("`one2one` of 1 edge joins lists of different length"));
    let looped = RAILS.to_owned()
        + "- {ep1: {instance: leaf, component: 'port[3]'}, ep2: {instance: leaf, component: 'port[2]'}, scheme: one2one, link: eth}\n";
    let file = read(&looped);
    assert_eq!(links(&file.fabric), links(&read(RAILS).fabric));
    assert_eq!(
        warnings(&file)[0],
        "x.yaml:38: 2 cables from an instance to itself, the first of `leaf[0]`, not used"
    );
    let twice = RAILS.to_owned() + RAILS.lines().last().unwrap() + "\n";
    let file = read(&twice);
    assert_eq!(links(&file.fabric), links(&read(RAILS).fabric));
    assert!(
        warnings(&file)[0]
            .contains("x.yaml:38: 2 cables between endpoints that an earlier edge joins")
    );
}

/// Rings of four servers with one xpu, whose ports of two NICs or of the xpu are joined.
#[test]
fn servers_are_joined_without_switches() {
    let ring = |component: &str, scheme: &str| {
        format!(
            "devices:\n- name: node\n  components:\n  - {{name: tpu, count: 1, choice: xpu}}\n  - {{name: nic, count: 2, choice: nic}}\n\
             instances: [{{name: node, device: node, count: 4}}]\n\
             links: [{{name: l, physical: {{bandwidth: {{gigabits_per_second: 100}}, latency: {{ns: 500}}}}}}]\n\
             edges:\n- {{ep1: {{instance: node, component: '{component}'}}, ep2: {{instance: node, component: '{component}'}}, scheme: {scheme}, link: l}}\n"
        )
    };
    let of_xpus = read(&ring("tpu", "ring"));
    let expected = ["h0 h1", "h1 h2", "h2 h3", "h3 h0"];
    assert_eq!(links(&of_xpus.fabric), expected);
    assert!(of_xpus.fabric.links.iter().all(|link| link.is_of_xpu));
    assert_eq!(
        warnings(&of_xpus),
        [
            "x.yaml:9: a link joins the hosts `node[0].tpu[0]` and `node[1].tpu[0]`, and 3 more links such as this: hosts with links to other hosts forward packets, between links of the same kind, of xpus or of NICs"
        ]
    );
    let of_nics = read(&ring("nic[0]", "ring"));
    assert_eq!(links(&of_nics.fabric), expected);
    assert!(!of_nics.fabric.links.iter().any(|link| link.is_of_xpu));
    // All pairs, each once; a NIC is not joined to the same server's.
    let full = read(&ring("tpu", "many2many"));
    let pairs = ["h0 h1", "h0 h2", "h0 h3", "h1 h2", "h1 h3", "h2 h3"];
    assert_eq!(links(&full.fabric), pairs);
}

/// Xpus of a server that links of the server join, with NICs to a leaf, and alone.
#[test]
fn xpus_are_joined_within_servers() {
    let joined = RAILS
        .replace(
            "{name: nvsw, count: 2, choice: switch}",
            "{name: nvsw, count: 0, choice: switch}",
        )
        .replace(
            "{ep1: {component: gpu}, ep2: {component: nvsw}, scheme: many2many",
            "{ep1: {component: gpu}, ep2: {component: gpu}, scheme: many2many",
        );
    let file = read(&joined);
    assert_eq!(links(&file.fabric)[6..], ["h1 h0", "h3 h2"]);
    let fabric = &file.fabric;
    let of_kind = |is_of_xpu| {
        fabric
            .links
            .iter()
            .filter(move |own| own.is_of_xpu == is_of_xpu)
    };
    assert_eq!((of_kind(true).count(), of_kind(false).count()), (2, 6));
    assert!(warnings(&file)[0].contains("`host[0].gpu[1]` and `host[0].gpu[0]`, and 1 more"));
    let from = joined.find("\nedges:").unwrap();
    let alone = joined[..=from].replace("device: server, count: 2", "device: server, count: 1");
    assert_eq!(links(&read(&alone).fabric), ["h1 h0"]);
    // Without a bandwidth they are only mentioned.
    let unknown = joined.replace(
        " {bandwidth: {gigabytes_per_second: 450}, latency: {us: 0.3}}",
        " {latency: {us: 0.3}}",
    );
    let last = warnings(&read(&unknown)).pop().unwrap();
    assert_eq!(
        last,
        "x.yaml:4: 4 edges between xpus within servers are not simulated: they have no bandwidth"
    );
}

#[test]
fn missing_quantities_have_keys() {
    let slow = RAILS.replace(", latency: {ns: 500}", "");
    let file = read(&slow);
    assert_eq!(file.fabric.links[0].delay, Span::from_us(1));
    assert_eq!(
        warnings(&file)[0],
        "x.yaml:32: link `eth` has no latency: 6 cables of such links have 1us; `topology.link-delay` sets another delay"
    );
    let none = RAILS.replace(
        "    physical: {bandwidth: {gigabits_per_second: 400}, latency: {ns: 500}}",
        "",
    );
    let none = none.replace(
        "  physical: {bandwidth: {gigabits_per_second: 400}, latency: {ns: 500}}\n",
        "",
    );
    let error = parse_infragraph("x.yaml", &none, &InfragraphOptions::default()).unwrap_err();
    assert!(
        error
            .message
            .contains("link `eth` has no bandwidth; line 34 uses it"),
        "{error}"
    );
    let options = InfragraphOptions {
        link_rate: Some(Rate::from_gbps(25)),
        link_delay: Some(Span::from_ns(7)),
        ..InfragraphOptions::default()
    };
    let file = parse_infragraph("x.yaml", &none, &options).unwrap();
    let first = &file.fabric.links[0];
    assert_eq!(
        (first.rate, first.delay),
        (Rate::from_gbps(25), Span::from_ns(7))
    );
    assert_eq!(file.warnings.len(), 2);
}

#[test]
fn cables_of_management_are_left_out() {
    let text = RAILS
        .replace(
            "name: cpu, count: 1, choice: cpu",
            "name: bmc, count: 1, choice: custom, custom: {type: bmc}",
        )
        .replace("component: cpu", "component: bmc");
    let text = text
        + "- {ep1: {instance: host, component: bmc}, ep2: {instance: spine, component: 'port[2:]'}, scheme: one2one, link: eth}\n";
    let file = read(&text);
    assert_eq!(links(&file.fabric), links(&read(RAILS).fabric));
    assert_eq!(
        warnings(&file)[0],
        "x.yaml:38: 2 cables not used, the first at `bmc[0]` of `host[0]`: only xpus, NICs and ports of servers have traffic"
    );
}

#[test]
fn errors_name_line_and_fix() {
    let cases = [
        ("choice: nic", "choice: nik", 8),
        ("count: 2, choice: xpu", "count: -2, choice: xpu", 7),
        ("count: 2, choice: xpu", "choice: xpu", 7),
        ("device: server", "device: sever", 28),
        ("instance: 'host[0]'", "instance: 'hosts[0]'", 35),
        ("instance: 'host[0]'", "instance: 'host[2]'", 35),
        ("instance: 'host[0]'", "instance: 'host[a]'", 35),
        ("instance: 'host[0]'", "instance: 'host[0'", 35),
        ("instance: 'host[0]'", "instance: 'host[0].nic'", 35),
        ("component: 'port[0:2]'", "component: 'ports[0:2]'", 37),
        ("component: 'port[0:2]'", "component: 'port[0:5]'", 37),
        ("component: 'port[0:2]'", "component: 'port[0].x'", 37),
        (
            "scheme: one2one, link: eth",
            "scheme: one2all, link: eth",
            35,
        ),
        ("scheme: one2one, link: eth", "scheme: ring, link: eth", 35),
        ("scheme: one2one, link: eth", "link: eth", 35),
        (
            "scheme: one2one, link: eth",
            "scheme: one2one, link: ib",
            35,
        ),
        ("link: nvlink", "link: nvlnk", 16),
        ("gigabits_per_second: 400", "gigabits_per_second: 0", 33),
        ("gigabits_per_second: 400", "gigabits_per_second: fast", 33),
        (
            "gigabits_per_second: 400",
            "gigabits_per_second: 0.0000000001",
            33,
        ),
        (
            "gigabits_per_second: 400",
            "choice: gigatransfers_per_second, gigatransfers_per_second: 32",
            32,
        ),
        (
            "gigabits_per_second: 400",
            "choice: gigabytes_per_second, gigabits_per_second: 400",
            33,
        ),
        (
            "gigabits_per_second: 400",
            "gigabytes_per_second: 50, gigabits_per_second: 400",
            33,
        ),
        ("latency: {ns: 500}", "latency: {ns: 0}", 33),
        ("latency: {ns: 500}", "latency: 500", 33),
        ("- {name: spine, device", "- {name: leaf, device", 30),
        ("- {name: spine, device", "- {name: 'spine.', device", 30),
        ("name: server\n", "nam: server\n", 4),
    ];
    let mut errors = Vec::new();
    for (from, to, line) in cases {
        let text = RAILS.replacen(from, to, 1);
        assert_ne!(text, RAILS, "{from}");
        match parse_infragraph("x.yaml", &text, &InfragraphOptions::default()) {
            Ok(file) => panic!("{to}: {:?}", links(&file.fabric)),
            Err(error) => {
                assert_eq!(error.line, line, "{to}: {error}");
                assert!(!error.fix.is_empty());
                errors.push(error.message);
            }
        }
    }
    insta::assert_snapshot!(errors.join("\n"), @"
    unknown word `nik`
    `-2` is not a valid `count`
    a component has no `count`
    there is no device `sever`
    there is no instance `hosts`
    `[2]`: the `count` of `host` is 2
    `[a]` is not a slice
    `host[0` is not an endpoint
    `host[0].nic` is not the name of an instance
    device `switch` has no component `ports`
    `[0:5]`: the `count` of `port` is 4
    `port[0].x` names a part of a component that is not a device
    unknown word `one2all`
    a `ring` between two different lists of endpoints
    an edge has no `scheme`
    the infrastructure has no link `ib`
    device `server` has no link `nvlnk`
    a bandwidth of 0 bit/s
    `fast` is not a number above zero
    `0.0000000001` has too many digits
    link `eth` has a bandwidth in transfers per second, whose size the file does not say; line 35 uses it
    a bandwidth has no `gigabytes_per_second`
    a bandwidth in two units
    a latency of 0s
    a latency is a mapping, but here is `500`
    a second instance is called `leaf`, the first is on line 29
    `spine.` cannot be the name of the instance
    unknown word `nam`
    ");
}

#[test]
fn fabrics_in_parts_and_equal_names_are_errors() {
    let spine = RAILS.lines().last().unwrap();
    let apart = RAILS.replace(spine, "").replace(
        " {bandwidth: {gigabytes_per_second: 450}, latency: {us: 0.3}}",
        "",
    );
    let twice = RAILS.replace("spine", "leaf0");
    for (text, message) in [
        (
            &apart,
            "no path leads from host 0, `host[0].gpu[0]`, to host 1, `host[0].gpu[1]`",
        ),
        (
            &twice,
            "two switches are called `leaf0`, from their instances and indices",
        ),
    ] {
        let error = parse_infragraph("x.yaml", text, &InfragraphOptions::default()).unwrap_err();
        assert_eq!(error.message, message);
    }
}

/// Counts that no memory holds, lists that no time suffices for.
#[test]
fn endless_files_are_refused() {
    let chain = (0..20).map(|level| {
        let inner = level + 1;
        format!("- {{name: d{level}, components: [{{name: d{inner}, count: 1000, choice: device}}], links: [], edges: []}}\n")
    });
    let chain = format!(
        "devices:\n{}- {{name: d20, components: [{{name: xpu, count: 1, choice: xpu}}], links: [], edges: []}}\n\
         instances: [{{name: a, device: d0, count: 1}}]\n",
        chain.collect::<String>()
    );
    let within = "devices:\n- name: a\n  components: [{name: a, count: 1, choice: device}]\ninstances: [{name: i, device: a, count: 1}]\n";
    let many = "count: 4000000, choice: port";
    let endless = [
        RAILS.replace(
            "count: 2}\n- {name: leaf",
            "count: 4000000000}\n- {name: leaf",
        ),
        RAILS.replace(
            "{name: leaf, device: switch, count: 2}",
            "{name: leaf, device: switch, count: 4194304}",
        ),
        RAILS.replace("count: 4, choice: port", many).replace(
            "component: 'port[0:2]'}, scheme: one2one",
            "component: port}, scheme: many2many",
        ),
        RAILS.replace("count: 2, choice: xpu", "count: 4194304, choice: xpu"),
        chain,
        within.to_owned(),
    ];
    for text in endless {
        let error = parse_infragraph("x.yaml", &text, &InfragraphOptions::default()).unwrap_err();
        assert!(error.line > 0 && !error.fix.is_empty(), "{error}");
    }
    let edge = RAILS
        .lines()
        .last()
        .unwrap()
        .replace("port[0:2]", "port[0]")
        .replace("'port[2]'", "port");
    let edges = vec![edge; 40].join("\n");
    let error = parse_infragraph(
        "x.yaml",
        &(RAILS.replace("count: 4, choice: port", many) + &edges),
        &InfragraphOptions::default(),
    );
    assert!(
        error
            .unwrap_err()
            .message
            .contains("too many components are selected")
    );
}

#[test]
fn json_is_read_alike() {
    let file = read(RAILS);
    let json = write_infragraph(&file.fabric, InfragraphForm::Json);
    let yaml = write_infragraph(&file.fabric, InfragraphForm::Yaml);
    assert!(json.starts_with('{'));
    assert_eq!(read(&json), read(&yaml));
}

/// A fabric without anything special.
fn plain() -> InfragraphFabric {
    let link = |a, b| InfragraphLink::new([a, b], Rate::from_gbps(100), Span::from_us(1));
    InfragraphFabric {
        name: "plain".into(),
        hosts: 4,
        xpus_per_server: 2,
        separates_nics: false,
        switches: ["leaf0", "leaf1", "spine"]
            .map(InfragraphSwitch::new)
            .into(),
        links: vec![
            link(0, 4),
            link(1, 5),
            link(2, 4),
            link(3, 5),
            link(4, 6),
            link(5, 6),
        ],
        queues: Vec::new(),
    }
}

#[test]
fn regular_fabrics_are_short() {
    insta::assert_snapshot!(write_infragraph(&plain(), InfragraphForm::Yaml), @"
    name: plain
    devices:
    - name: server
      components:
      - name: xpu
        count: 2
        choice: xpu
      - name: nic
        count: 2
        choice: nic
      links:
      - name: pcie
      edges:
      - ep1:
          component: xpu
        ep2:
          component: nic
        scheme: one2one
        link: pcie
    - name: switch-2p
      components:
      - name: asic
        count: 1
        choice: switch
      - name: port
        count: 2
        choice: port
      links:
      - name: ic
      edges:
      - ep1:
          component: asic
        ep2:
          component: port
        scheme: many2many
        link: ic
    - name: switch-3p
      components:
      - name: asic
        count: 1
        choice: switch
      - name: port
        count: 3
        choice: port
      links:
      - name: ic
      edges:
      - ep1:
          component: asic
        ep2:
          component: port
        scheme: many2many
        link: ic
    instances:
    - name: host
      device: server
      count: 2
    - name: leaf
      device: switch-3p
      count: 2
    - name: spine
      device: switch-2p
      count: 1
    links:
    - name: link0
      physical:
        bandwidth:
          choice: gigabits_per_second
          gigabits_per_second: 100
        latency:
          choice: ns
          ns: 1000
    edges:
    - ep1:
        instance: host[0]
        component: nic[0:2]
      ep2:
        instance: leaf[0:2]
        component: port[0]
      scheme: one2one
      link: link0
    - ep1:
        instance: host[1]
        component: nic[0:2]
      ep2:
        instance: leaf[0:2]
        component: port[1]
      scheme: one2one
      link: link0
    - ep1:
        instance: leaf[0:2]
        component: port[2]
      ep2:
        instance: spine[0]
        component: port[0:2]
      scheme: one2one
      link: link0
    ");
}

#[test]
fn everything_comes_back() {
    let mut fabric = plain();
    assert_eq!(
        read(&write_infragraph(&fabric, InfragraphForm::Yaml)).fabric,
        fabric
    );
    fabric.name = "a \"name\": with\nlines".into();
    fabric.separates_nics = true;
    let switch = |name: &str, role| InfragraphSwitch {
        role,
        ..InfragraphSwitch::new(name)
    };
    fabric.switches.extend([
        switch("nv7", InfragraphRole::ScaleUp),
        switch("nv8", InfragraphRole::ScaleUp),
        switch("nic 0.1 é", InfragraphRole::NicHash),
        switch("leaf0.0", InfragraphRole::NicLeastQueue),
        switch("host", InfragraphRole::Network),
        switch("leaf007", InfragraphRole::Network),
        switch("5", InfragraphRole::Network),
    ]);
    (fabric.switches[1].tier, fabric.switches[2].group) = (Some(3), Some(12));
    fabric.switches[0].latency = Span::from_ps(1_500);
    for (host, switch) in [(0, 7), (1, 7), (2, 8), (3, 8)] {
        let link = InfragraphLink::new(
            [host, switch],
            Rate::from_bps(3_600_000_000_001),
            Span::from_ps(1_001),
        );
        fabric.links.push(InfragraphLink {
            is_of_xpu: true,
            ..link
        });
    }
    for switch in 9..14 {
        let link = InfragraphLink::new([switch, 6], Rate::from_bps(1), Span::from_ms(1000));
        fabric.links.push(link);
    }
    fabric.links[1].packet_loss = 1e-7;
    fabric.links[2].bit_error_rate = 0.123_456_789_012_345_67;
    fabric.links[3].dead_from = Some(Time::from_us(5));
    fabric.links[4].is_up = false;
    (fabric.links[5].order, fabric.links[6].order) = (1, 255);
    fabric.links[6].is_dateline = true;
    let queues = |up, down| InfragraphQueues {
        up: Some(up).filter(|up| *up > 0).map(Bytes::new),
        down: Some(down).filter(|down| *down > 0).map(Bytes::new),
    };
    fabric.queues = vec![queues(0, 5), queues(0, 0), queues(u64::MAX, 0)];
    for form in [InfragraphForm::Yaml, InfragraphForm::Json] {
        let text = write_infragraph(&fabric, form);
        let file = read(&text);
        assert_eq!(file.fabric, fabric, "{text}");
        assert_eq!(file.warnings, []);
    }
}

#[test]
fn annotations_are_strict() {
    let fabric = InfragraphFabric {
        separates_nics: true,
        switches: plain()
            .switches
            .into_iter()
            .map(|own| InfragraphSwitch {
                latency: Span::from_ns(5),
                ..own
            })
            .collect(),
        links: plain()
            .links
            .into_iter()
            .map(|own| InfragraphLink {
                packet_loss: 0.5,
                ..own
            })
            .collect(),
        ..plain()
    };
    let text = write_infragraph(&fabric, InfragraphForm::Yaml);
    let mut errors = Vec::new();
    for (from, to) in [
        ("clearway-latency", "clearway-latancy"),
        ("clearway-packet-loss", "clearway-latency"),
        ("clearway-nics", "clearway-tier"),
        ("\"5ns\"", "\"soon\""),
        ("\"0.5\"", "\"1.5\""),
        ("value: separate", "value: joint"),
        (
            "name: leaf[0:2]\n    attributes",
            "name: leaf[0:3]\n    attributes",
        ),
        (
            "name: leaf[0:2]\n    attributes",
            "name: host[0:2]\n    attributes",
        ),
        ("ep1: host.0.nic.0", "ep1: host.0.nic.9"),
        ("ep1: host.0.nic.0", "ep1: host.0.xpu.0"),
        ("ep1: host.0.nic.0", "ep1: host.0.nic"),
    ] {
        let changed = text.replacen(from, to, 1);
        assert_ne!(changed, text, "{from}\n{text}");
        let error =
            parse_infragraph("x.yaml", &changed, &InfragraphOptions::default()).unwrap_err();
        assert!(error.line > 20, "{error:?}");
        errors.push(error.message);
    }
    insta::assert_snapshot!(errors.join("\n"), @"
    `clearway-latancy` is not an attribute of a switch
    `clearway-latency` is not an attribute of an edge
    `clearway-tier` is not an attribute of the graph
    `soon` is not a valid value for `clearway-latency`
    `1.5` is not a valid value for `clearway-packet-loss`
    `joint` is not a valid value for `clearway-nics`
    `[0:3]`: the `count` of `leaf` is 2
    `host[0]` is not a switch with cables
    `[9]`: the `count` of `nic` is 2
    no edge joins `host.0.xpu.0` and `leaf.0.port.0`
    `host.0.nic` is not one port
    ");
    // InfraGraph's own service writes attributes at each component.
    let expanded = text.replacen("name: leaf[0:2]\n", "name: leaf.1.port.0\n", 1);
    let switches = read(&expanded).fabric.switches;
    let latencies: Vec<Span> = switches.iter().map(|own| own.latency).collect();
    assert_eq!(latencies, [Span::ZERO, Span::from_ns(5), Span::from_ns(5)]);
    // Attributes of others are not used; those that InfraGraph derives need no warning.
    let others =
        text.replace("clearway-latency", "rack")
            .replacen("clearway-packet-loss", "type", 1);
    let file = read(&others);
    assert_eq!(warnings(&file).len(), 1);
    assert!(
        warnings(&file)[0].ends_with("2 attributes of annotations not used, the first is `rack`"),
        "{:?}",
        warnings(&file)
    );
}
