use super::*;
use std::fmt::Write as _;

/// A CPU with a PCI switch, which has two GPUs on an NVSwitch and a NIC; another NIC hangs on the CPU.
const NODE: &str = r#"<system version="1">
  <cpu numaid="0" affinity="ff" arch="x86_64" vendor="GenuineIntel" familyid="6" modelid="143">
    <pci busid="0000:17:00.0" class="0x060400">
      <pci busid="0000:1b:00.0" class="0x030200">
        <gpu dev="1" sm="90" rank="1" gdr="1">
          <nvlink target="0000:07:00.0" count="10" tclass="0x068000"/>
          <nvlink target="0000:08:00.0" count="8" tclass="0x068000"/>
        </gpu>
      </pci>
      <pci busid="0000:1c:00.0" class="0x030200">
        <gpu dev="0" sm="90" rank="0" gdr="1">
          <nvlink target="0000:07:00.0" count="18" tclass="0x068000"/>
        </gpu>
      </pci>
      <pci busid="0000:18:00.0" class="0x020700">
        <nic>
          <net name="mlx5_1" dev="1" speed="400000" port="1" guid="0x1" latency="0.000000" maxconn="131072" gdr="1" rail="3" plane="-1"/>
        </nic>
      </pci>
    </pci>
    <nic>
      <net name="eth0" dev="0" speed="-1" latency="1.500000"/>
    </nic>
  </cpu>
</system>
"#;

fn read(text: &str) -> NcclTopology {
    parse_nccl_topology("node.xml", text).unwrap()
}

/// The error about a text, on one line.
fn refusal(text: &str) -> String {
    let error = parse_nccl_topology("node.xml", text).unwrap_err();
    error.to_string().replace("\n  fix:", " | fix:")
}

fn warnings(text: &str) -> String {
    let lines = read(text).warnings.into_iter();
    lines.map(|warning| format!("{warning}\n")).collect()
}

#[test]
fn a_node_has_places_gpus_and_nics() {
    let node = read(NODE);
    let kinds: Vec<(NcclPlaceKind, Option<u32>)> = node
        .places
        .iter()
        .map(|place| (place.kind, place.parent))
        .collect();
    assert_eq!(
        kinds,
        [
            (NcclPlaceKind::Host, None),
            (NcclPlaceKind::Cpu, Some(0)),
            (NcclPlaceKind::PciSwitch, Some(1)),
        ]
    );
    let gpus: Vec<(u32, u32, Option<u32>, usize)> = node
        .gpus
        .iter()
        .map(|gpu| (gpu.dev, gpu.place, gpu.sm, gpu.line))
        .collect();
    assert_eq!(gpus, [(0, 2, Some(90), 11), (1, 2, Some(90), 5)]);
    // 18 links of 20.6 GB/s, over one NVSwitch or two.
    let rates: Vec<Option<Rate>> = node.gpus.iter().map(NcclGpu::switch_rate).collect();
    assert_eq!(rates, [Some(Rate::from_bps(2_966_400_000_000)); 2]);
    let [eth, mlx] = &node.nics[..] else {
        panic!("{:?}", node.nics);
    };
    assert_eq!((eth.name.as_str(), eth.place, eth.speed), ("eth0", 1, None));
    assert_eq!(eth.latency, Span::from_ns(1500));
    assert_eq!((mlx.name.as_str(), mlx.place), ("mlx5_1", 2));
    assert_eq!(mlx.speed, Some(Rate::from_gbps(400)));
    assert_eq!((mlx.rail, mlx.plane, mlx.line), (Some(3), None, 17));
    assert_eq!(node.upwards(2).collect::<Vec<_>>(), [2, 1, 0]);
    assert_eq!(node.host_of(2), 0);
}

#[test]
fn links_have_the_rates_of_their_generations() {
    let gbps = |sm| nvlink_rate(sm).map(|rate| rate.as_bps() / 100_000_000);
    for (sm, tenths) in [
        (37, None),
        (60, Some(1440)),
        (70, Some(1600)),
        (80, Some(1600)),
        (86, Some(960)),
        (89, Some(1600)),
        (90, Some(1648)),
        (100, Some(3208)),
        (120, Some(3208)),
    ] {
        assert_eq!(gbps(sm), tenths, "{sm}");
    }
    for (gcn, gigabytes) in [
        ("906", 24),
        ("gfx908", 24),
        ("910", 36),
        ("gfx90a", 36),
        ("940", 48),
        ("gfx942", 48),
        ("gfx950", 48),
    ] {
        assert_eq!(
            xgmi_rate(gcn),
            Rate::from_bps(gigabytes * 8_000_000_000),
            "{gcn}"
        );
    }
}

/// GPUs are sorted after links have been read; bus IDs are unique within a host.
#[test]
fn links_to_gpus_name_them_in_their_order() {
    let gpu = |dev: u32, target: u32| {
        format!(
            "<pci busid='0000:0{dev}:00.0'><gpu dev='{dev}' gcn='gfx942'><xgmi target='0000:0{target}:00.0' count='2'/></gpu></pci>"
        )
    };
    let host = |name: &str, gpus: &[(u32, u32)]| {
        let gpus: String = gpus
            .iter()
            .map(|(dev, target)| gpu(*dev, *target))
            .collect();
        format!("<cpu host_hash='{name}'>{gpus}</cpu>")
    };
    let text = |hosts: &str| format!("<system version='2'>{hosts}</system>");
    let node = read(&text(
        &(host("a", &[(3, 1), (1, 3)]) + &host("b", &[(1, 3), (3, 1)])),
    ));
    let targets = node.gpus.iter().map(|gpu| gpu.links[0].target.clone());
    let expected = [1, 0, 3, 2].map(NcclLinkTarget::Gpu);
    assert_eq!(targets.collect::<Vec<_>>(), expected);
    assert_eq!(node.gpus[0].link_rate(), Some(Rate::from_gbps(384)));
    assert_eq!(node.gpus[0].switch_rate(), None);
    let twins =
        text(&host("a", &[(1, 3), (3, 1)])).replace("'0000:03:00.0'><gpu", "'0:1:00.0'><gpu");
    insta::assert_snapshot!(refusal(&twins), @"node.xml:1: two GPUs of one host have the same `busid`, the other on line 1 | fix: give each its own `busid`");
}

#[test]
fn links_lead_to_switches_gpus_or_cpus() {
    let node = |link: &str| {
        format!(
            "<system version='2'><cpu numaid='0'><pci busid='0:1:0.0'><gpu dev='0' sm='70'>{link}</gpu></pci>\
             <pci busid='0:2:0.0'><gpu dev='1' sm='70'/></pci></cpu></system>"
        )
    };
    let target = |link: &str| {
        let mut links = read(&node(link)).gpus.remove(0).links;
        assert!(links.len() < 2);
        links.pop().map(|link| link.target)
    };
    let gpu = Some(NcclLinkTarget::Gpu(1));
    for (link, expected) in [
        (
            "<nvlink target='0:2:0.0' count='1' tclass='0x030200'/>",
            gpu.clone(),
        ),
        (
            "<xgmi target='0000:2:0.0' count='1' tclass='0x120000'/>",
            gpu.clone(),
        ),
        ("<xgmi target='0:2:0.0' count='1'/>", gpu.clone()),
        ("<nvlink target='0:2:0.0' count='1'/>", gpu),
        // Of another GPU, or of its own.
        ("<xgmi target='0:3:0.0' count='1'/>", None),
        ("<xgmi target='0:1:0.0' count='1'/>", None),
        (
            "<nvlink target='fffffff:ffff:ff' count='1'/>",
            Some(NcclLinkTarget::Switch),
        ),
        (
            "<nvlink target='0:9:0.0' count='1' tclass='0x068000'/>",
            Some(NcclLinkTarget::Switch),
        ),
        (
            "<nvlink target='0:9:0.0' count='1'/>",
            Some(NcclLinkTarget::Switch),
        ),
        (
            "<nvlink target='1:0:0.0' count='1' tclass='0x068001'/>",
            None,
        ),
    ] {
        assert_eq!(target(link), expected, "{link}");
    }
}

#[test]
fn files_for_nccl_to_complete_have_devices_of_known_classes() {
    let text = "<system version='1'>\n<cpu numaid='0'>\n<pci busid='ffff:ff:01.0' class='0x060400'>\n\
        <pci busid='0001:00:00.0' class='0x030200' link_speed='16 GT/s'/>\n\
        <pci busid='0101:00:00.0' class='0x020700' link_speed='16 GT/s'/>\n\
        <pci busid='0201:00:00.0' class='0x010802'/>\n</pci>\n</cpu>\n</system>\n";
    let node = read(text);
    let [gpu] = &node.gpus[..] else {
        panic!("{:?}", node.gpus);
    };
    assert_eq!((gpu.line, gpu.place, gpu.sm), (4, 2, None));
    assert!(!gpu.is_described && gpu.switch_rate().is_none());
    let [nic] = &node.nics[..] else {
        panic!("{:?}", node.nics);
    };
    assert_eq!((nic.name.as_str(), nic.speed), ("0101:00:00.0", None));
    // Beside complete devices they are none.
    let mixed = text.replace(
        "</pci>\n</cpu>",
        "<pci busid='0:3:0.0'><gpu dev='0' sm='80'/></pci></pci>\n<nic><net dev='0'/></nic></cpu>",
    );
    let node = read(&mixed);
    assert_eq!((node.gpus.len(), node.nics.len()), (1, 1));
    assert_eq!(node.nics[0].name, "net0");
    insta::assert_snapshot!(warnings(&mixed), @r"
    node.xml:4: PCI links are not simulated, so `link_speed` and `link_width` are not used: each GPU reaches its NICs at their rate (and 1 more)
    node.xml:4: a PCI device of the class of GPUs is not used, because it has no `gpu`, which others have
    node.xml:5: a PCI device of the class of NICs is not used, because it has no `net`, which others have
    ");
}

#[test]
fn a_nic_below_several_cpus_is_one() {
    let eth = "<nic><net name='eth0' dev='0' speed='10000'/></nic>";
    let gpu = |dev: u32| format!("<pci><gpu dev='{dev}'/>{eth}</pci>");
    let text = format!(
        "<system version='1'><cpu>{eth}</cpu><cpu>{eth}<pci>{}</pci></cpu></system>",
        gpu(0) + &gpu(1)
    );
    let node = read(&text);
    assert_eq!(node.nics.len(), 1);
    assert_eq!(
        node.places[node.nics[0].place as usize].kind,
        NcclPlaceKind::Host
    );
    let node = read(&text.replace(&format!("<cpu>{eth}"), "<cpu>"));
    let place = &node.places[node.nics[0].place as usize];
    assert_eq!(place.kind, NcclPlaceKind::PciSwitch);
}

#[test]
fn several_hosts_are_one_domain() {
    let mut text = "<system version='1'>".to_owned();
    for (host, numa) in [("b", 0), ("b", 1), ("a", 0)] {
        write!(
            text,
            "<cpu host_hash='{host}' numaid='{numa}'><pci busid='{host}{numa}'><gpu dev='{numa}' sm='100'/></pci>\
             <nic><net dev='{numa}'/></nic></cpu>"
        )
        .unwrap();
    }
    text += "</system>";
    let node = read(&text);
    let hosts: Vec<(u32, u32)> = node
        .gpus
        .iter()
        .map(|gpu| (node.host_of(gpu.place), gpu.dev))
        .collect();
    // The second host is place 3, after the first and its CPUs.
    assert_eq!(hosts, [(0, 0), (0, 1), (3, 0)]);
    assert_eq!(node.nics.len(), 3);
}

#[test]
fn what_nothing_uses_is_one_warning_for_each_kind() {
    let text = NODE
        .replace("class=\"0x030200\"", "class=\"0x030200\" link_speed=\"32.0 GT/s PCIe\"")
        .replace("gdr=\"1\"", "gdr=\"0\" colour=\"red\"")
        .replace(
            "    <nic>\n      <net name=\"eth0\"",
            "    <pci busid=\"1\"><gpu dev=\"2\"><c2c bw=\"1\" count=\"2\"/></gpu><gpu dev=\"3\"/><pcilink target=\"0\"/></pci>\n    <disk/>\n\
             <nic>\n      <gin/><net/><net dev=\"7\" net=\"0\"/><net dev=\"8\" coll=\"1\"/><net name=\"eth0\"",
        )
        .replace("</system>", "<cpu numaid=\"1\"/>\n</system>");
    insta::assert_snapshot!(warnings(&text), @r#"
    node.xml:4: PCI links are not simulated, so `link_speed` and `link_width` are not used: each GPU reaches its NICs at their rate (and 1 more)
    node.xml:5: `gdr="0"` is not used: data does not pass through the memory of the host (and 2 more)
    node.xml:5: an unknown attribute is not used: `colour` (and 2 more)
    node.xml:21: `pcilink` is not used: links between PCI switches are not simulated
    node.xml:21: `c2c` is not used: links between a GPU and its CPU are not simulated
    node.xml:21: a further `gpu` of a PCI device is not used: each device counts as one GPU
    node.xml:22: an unknown element is not used: `disk`
    node.xml:24: `latency` is not used: NICs have the delay of their links alone
    node.xml:24: `coll="1"` is not used: switches of the network do not reduce
    node.xml:24: an entry that is not for network traffic (`gin`, or `net="0"`) is not used (and 1 more)
    node.xml:24: a `net` without `dev` is not used, as in NCCL
    node.xml:27: CPUs and the links between them are not simulated: each GPU reaches its NICs at their rate
    "#);
    insta::assert_snapshot!(warnings(NODE), @"node.xml:22: `latency` is not used: NICs have the delay of their links alone");
}

#[test]
fn mistakes_have_a_place_and_a_fix() {
    let change = |from: &str, to: &str| {
        assert!(NODE.contains(from), "{from}");
        refusal(&NODE.replacen(from, to, 1))
    };
    let errors = [
        refusal(""),
        refusal("<graphs version='1'/>"),
        refusal("<topology/>"),
        refusal("<system/>"),
        refusal("<system version='3'/>"),
        refusal("<system version='1'/>"),
        refusal("<!DOCTYPE a [ <!ENTITY b 'c'> ]><system version='1'/>"),
        change("</gpu>", "</cpu>"),
        change("</system>\n", ""),
        change("count=\"10\"", "count=\"ten\""),
        change("count=\"10\"", "count=\"0\""),
        change(" count=\"10\"", ""),
        change(" target=\"0000:07:00.0\"", ""),
        change("gpu dev=\"1\"", "gpu"),
        change("gpu dev=\"1\"", "gpu dev=\"0\""),
        change("net name=\"eth0\" dev=\"0\"", "net name=\"eth0\" dev=\"1\""),
        change("speed=\"400000\"", "speed=\"fast\""),
        change("speed=\"400000\"", "speed=\"100000001\""),
        change("latency=\"1.500000\"", "latency=\"1.5us\""),
        change("rail=\"3\"", "rail=\"-2\""),
        change("gdr=\"1\"", "gdr=\"yes\""),
        change("<nic>", "<net dev='3'/><nic>"),
        change("    <nic>", "<system version='1'/><nic>"),
        change("    <nic>", "some text<nic>"),
        change("affinity=\"ff\"", "affinity=\"ff\" affinity=\"ff\""),
    ];
    insta::assert_snapshot!(errors.join("\n"), @r#"
    node.xml:1: this is not well-formed XML: the document does not have a root node | fix: correct the XML, or write the file again with NCCL_TOPO_DUMP_FILE
    node.xml:1:1: this is a graph of NCCL, which has rings and trees, and no topology | fix: write the topology with NCCL_TOPO_DUMP_FILE instead of NCCL_GRAPH_DUMP_FILE
    node.xml:1:1: the first element is `topology` | fix: topologies of NCCL begin with `<system version="1">`
    node.xml:1:1: `system` has no `version` | fix: write `version="1"`
    node.xml:1:9: `3` is not a valid value for `version` | fix: versions 1 of NCCL and 2 of RCCL are known: write the file again with NCCL_TOPO_DUMP_FILE
    node.xml:1:1: there are no GPUs | fix: write the file on a machine with GPUs; a GPU is a `gpu` in a `pci`, or a `pci` of class `0x03…`
    node.xml:1: the file has a document type definition | fix: remove `<!DOCTYPE …>`
    node.xml:8:9: this is not well-formed XML: expected 'gpu' tag, not 'cpu' | fix: correct the XML, or write the file again with NCCL_TOPO_DUMP_FILE
    node.xml:24: this is not well-formed XML: the root node was opened but never closed | fix: correct the XML, or write the file again with NCCL_TOPO_DUMP_FILE
    node.xml:6:41: `ten` is not a valid value for `count` | fix: write a whole number from 1 to 65535
    node.xml:6:41: `0` is not a valid value for `count` | fix: write a whole number from 1 to 65535
    node.xml:6:11: `nvlink` has no `count` | fix: write `count`, the number of links
    node.xml:6:11: `nvlink` has no `target` | fix: write `target`, its neighbour's bus ID
    node.xml:5:9: `gpu` has no `dev` | fix: write `dev`, its number in the host
    node.xml:11: two GPUs of one host have dev 0, the other on line 5 | fix: give each a separate number; CPUs of several hosts need different `host_hash`
    node.xml:22: two NICs of one host have dev 1, the other on line 17 | fix: give each a separate number; CPUs of several hosts need different `host_hash`
    node.xml:17:38: `fast` is not a valid value for `speed` | fix: write a whole number from 0 to 100000000
    node.xml:17:38: `100000001` is not a valid value for `speed` | fix: write a whole number from 0 to 100000000
    node.xml:22:43: `1.5us` is not a valid value for `latency` | fix: write microseconds, as in `0.5`
    node.xml:17:117: `-2` is not a valid value for `rail` | fix: write a whole number from 0 to 65535
    node.xml:5:39: `yes` is not a valid value for `gdr` | fix: write a whole number from 0 to 1
    node.xml:16:9: `net` stands in `pci` | fix: move it into `nic`
    node.xml:16:5: `system` stands in `pci` | fix: begin the file with it, once
    node.xml:15:50: there is text between elements: `some text` | fix: remove it
    node.xml:2:33: this is not well-formed XML: attribute 'affinity' is already defined | fix: correct the XML, or write the file again with NCCL_TOPO_DUMP_FILE
    "#);
}

#[test]
fn large_files_are_refused_at_once() {
    let wrapped =
        |inside: &str| format!("<system version='1'><cpu numaid='0'>{inside}</cpu></system>");
    let deep = format!("{}{}", "<pci>".repeat(100_000), "</pci>".repeat(100_000));
    let unknown = format!("{}{}", "<a>".repeat(100_000), "</a>".repeat(100_000));
    let attributes: String = (0..2000).map(|key| format!(" a{key}=''")).collect();
    let gpus: String = (0..5000)
        .map(|dev| format!("<pci><gpu dev='{dev}'/></pci>"))
        .collect();
    let errors = [
        refusal(&wrapped(&deep)),
        refusal(&wrapped(&unknown)),
        refusal(&wrapped(&format!("<pci{attributes}/>"))),
        refusal(&wrapped(&"<a/>".repeat(600_000))),
        refusal(&wrapped(&gpus)),
        refusal(&wrapped(&"<a></a>".repeat(600_000))),
    ];
    insta::assert_snapshot!(errors.join("\n"), @r"
    node.xml:1:357: `pci` elements lie more than 64 deep in each other | fix: remove bridges
    node.xml:1:1: there are no GPUs | fix: write the file on a machine with GPUs; a GPU is a `gpu` in a `pci`, or a `pci` of class `0x03…`
    node.xml:1: an element or a comment has more than 8192 bytes | fix: shorten it
    node.xml:1: the file has more than 524288 elements and texts | fix: keep the elements of one node
    node.xml:1:113620: there are more than 4096 GPUs or NICs | fix: keep the elements of one node, and give the number of nodes as `topology.nodes`
    node.xml:1: the file has more than 4194304 bytes | fix: keep the elements of one node
    ");
}
