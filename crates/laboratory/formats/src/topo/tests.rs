use super::reader::TIER_WORDS;
use super::*;
use clearway_workload::FileError;
use insta::assert_snapshot;
use proptest::prelude::*;

const LEAF_SPINE: &str = "\
Nodes 1024
Tiers 2
Podsize 1024
Tier 0
Downlink_speed_Gbps 400
Radix_Down 32
Radix_Up 32
Downlink_Latency_ns 1000
Tier 1
Downlink_speed_Gbps 400
Radix_Down 32
Downlink_Latency_ns 500
";

/// 8 pods of 4 leaves and 2 aggregation switches, with bundles of two; 16 hosts per pod.
const FAT_TREE: &str = "\
Nodes 128
Tiers 3
Podsize 16
Tier 0
Downlink_speed_Gbps 100
Radix_Down 4
Radix_Up 4
Downlink_Latency_ns 1000
Oversubscribed 1
Tier 1
Downlink_speed_Gbps 100
Radix_Down 8
Radix_Up 8
Bundle 2
Downlink_Latency_ns 1000
Tier 2
Downlink_speed_Gbps 100
Radix_Down 16
Bundle 2
Downlink_Latency_ns 1000
";

fn parse(text: &str) -> Result<TopoFile, FileError> {
    parse_topo("t.topo", text)
}

/// The error of `text` after each of `changes` (from, to) at its first place.
fn error(text: &str, changes: &[(&str, &str)]) -> String {
    parse(&changed(text, changes)).unwrap_err().to_string()
}

fn changed(text: &str, changes: &[(&str, &str)]) -> String {
    changes.iter().fold(text.to_owned(), |text, (from, to)| {
        assert!(text.contains(from), "{from}");
        text.replacen(from, to, 1)
    })
}

fn warnings(text: &str, changes: &[(&str, &str)]) -> String {
    let file = parse(&changed(text, changes)).unwrap();
    let lines: Vec<String> = file.warnings.iter().map(ToString::to_string).collect();
    lines.join("\n")
}

#[test]
fn reads_two_tiers() {
    let file = parse(LEAF_SPINE).unwrap();
    let leaf = TierSpec {
        downlink_speed: Rate::from_gbps(400),
        radix_down: 32,
        radix_up: Some(32),
        downlink_latency: Span::from_us(1),
        switch_latency: Span::ZERO,
        oversubscribed: 1,
        bundle: 1,
        queue_up: None,
        queue_down: None,
    };
    let spine = TierSpec {
        radix_up: None,
        downlink_latency: Span::from_ns(500),
        ..leaf.clone()
    };
    assert_eq!(file.tiers, [leaf, spine]);
    assert_eq!(
        (file.nodes, file.podsize, file.warnings.len()),
        (1024, 1024, 0)
    );
    assert_eq!(
        (file.pods(), file.leaves(), file.leaves_per_pod()),
        (1, 32, 32)
    );
    assert_eq!((file.aggregations(), file.cores()), (32, 0));
}

#[test]
fn each_word_of_a_tier_is_used_warned_about_or_known_to_be_unused() {
    // Compared with ports and speeds, which decide.
    const UNUSED: [&str; 1] = ["Oversubscribed"];
    let outcome = |text: &str| {
        parse(text).map(|mut file| {
            file.tiers
                .iter_mut()
                .for_each(|tier| tier.oversubscribed = 0);
            file
        })
    };
    let base = outcome(FAT_TREE);
    for word in TIER_WORDS {
        let line = |text: &str| {
            FAT_TREE
                .lines()
                .find(|line| line.starts_with(text))
                .map(str::to_owned)
        };
        let changed = match line(&format!("{word} ")) {
            // The second tier, of which the others follow.
            _ if word == "Tier" => FAT_TREE.replacen("Tier 1", "Tier 3", 1),
            Some(found) if !UNUSED.contains(&word) => {
                FAT_TREE.replacen(&found, &format!("{word} 6"), 1)
            }
            Some(found) => FAT_TREE.replacen(&format!("{found}\n"), "", 1),
            None => FAT_TREE.replacen("Tier 1", &format!("Tier 1\n{word} 6"), 1),
        };
        assert_ne!(changed, FAT_TREE, "{word}");
        assert_eq!(outcome(&changed) == base, UNUSED.contains(&word), "{word}");
    }
}

#[test]
fn reads_three_tiers_with_bundles() {
    let file = parse(FAT_TREE).unwrap();
    assert_eq!(
        (file.pods(), file.leaves(), file.leaves_per_pod()),
        (8, 32, 4)
    );
    assert_eq!((file.aggregations_per_pod(), file.aggregations()), (2, 16));
    assert_eq!(file.cores(), 8);
    // Links above tier 1, counted from below and from above.
    assert_eq!(file.aggregations() * 8, file.cores() * 16);
}

#[test]
fn capitals_blanks_comments_and_the_order_of_tiers_are_free() {
    let (head, blocks) = LEAF_SPINE.split_once("Tier 0").unwrap();
    let (leaf, spine) = blocks.split_once("Tier 1").unwrap();
    let loose = format!("# head\r\n{head}\n tier 1{spine}\n\tTIER  0 # leaves{leaf}");
    let loose = loose
        .replace("Radix_Down", "radix_down")
        .replace('\n', "\r\n");
    assert_eq!(parse(&loose).unwrap(), parse(LEAF_SPINE).unwrap());
}

#[test]
fn queues_and_latencies_are_read() {
    let extra = "Tier 0\nQueue_Up 100000\nQueue_Down 50000\nSwitch_Latency_ns 300";
    let file = parse(&changed(LEAF_SPINE, &[("Tier 0", extra)])).unwrap();
    assert_eq!(file.tiers[0].queue_up, Some(Bytes::new(100_000)));
    assert_eq!(file.tiers[0].queue_down, Some(Bytes::new(50_000)));
    assert_eq!(file.tiers[0].switch_latency, Span::from_ns(300));
}

#[test]
fn faults_of_the_head() {
    assert_snapshot!(error("", &[]), @"
    t.topo:1: there is no `Nodes` line
      fix: add the number of hosts, as in `Nodes 128`
    ");
    assert_snapshot!(error(LEAF_SPINE, &[("Nodes 1024\n", "")]), @"
    t.topo:11: there is no `Nodes` line
      fix: add the number of hosts, as in `Nodes 128`
    ");
    assert_snapshot!(error(LEAF_SPINE, &[("Tiers 2\n", "")]), @"
    t.topo:11: there is no `Tiers` line
      fix: add `Tiers 2` or `Tiers 3`
    ");
    assert_snapshot!(error(LEAF_SPINE, &[("Tiers 2", "Tiers 4")]), @"
    t.topo:2:7: `4` is not a valid value for `Tiers`
      fix: write a whole number from 2 to 3
    ");
    assert_snapshot!(error(LEAF_SPINE, &[("Tiers 2", "Tiers 3")]), @"
    t.topo:9: there is no `Radix_Up` in tier 1
      fix: add it, as in `Radix_Up 32`
    ");
    assert_snapshot!(error(FAT_TREE, &[("Tiers 3", "Tiers 2")]), @"
    t.topo:16: `Tier 2`, but the file says `Tiers 2`
      fix: write `Tiers 3`, or remove the block
    ");
    assert_snapshot!(error(FAT_TREE, &[("Podsize 16\n", "")]), @"
    t.topo:19: there is no `Podsize` line
      fix: add the number of hosts per pod, as in `Podsize 16`
    ");
    assert_snapshot!(error(LEAF_SPINE, &[("Nodes 1024", "Nodes 99999999999999999999")]), @"
    t.topo:1:7: `99999999999999999999` is not a valid value for `Nodes`
      fix: write a whole number from 1 to 16777216
    ");
    assert_snapshot!(error(LEAF_SPINE, &[("Nodes 1024", "Nodes 16777217")]), @"
    t.topo:1:7: `16777217` is not a valid value for `Nodes`
      fix: write a whole number from 1 to 16777216
    ");
    assert_snapshot!(error(LEAF_SPINE, &[("Nodes 1024", "Nodes 1024.0")]), @"
    t.topo:1:7: `1024.0` is not a valid value for `Nodes`
      fix: write a whole number from 1 to 16777216
    ");
    assert_snapshot!(error(LEAF_SPINE, &[("Nodes 1024", "Nodes 1024 hosts")]), @"
    t.topo:1:12: `hosts` after the end of the line
      fix: remove it, or put a `#` before it
    ");
    assert_snapshot!(error(LEAF_SPINE, &[("Nodes 1024", "Nodes 1024\nNodes 1024")]), @"
    t.topo:2:1: `Nodes` stands twice, first on line 1
      fix: keep one of them
    ");
    assert_snapshot!(error(LEAF_SPINE, &[("Podsize 1024", "Pod_size 1024")]), @"
    t.topo:3:1: unknown word `Pod_size`
      fix: did you mean `Podsize`?
    ");
    assert_snapshot!(error(LEAF_SPINE, &[("Tier 0", "Radix_Down 32\nTier 0")]), @"
    t.topo:4:1: `Radix_Down` stands above the first tier
      fix: put it below the `Tier` line that it belongs to
    ");
}

#[test]
fn speeds_may_have_decimals() {
    for (speed, bits) in [
        ("12.5", 12_500_000_000),
        ("0.000000001", 1),
        ("400.0", 400_000_000_000),
    ] {
        let speed = format!("Downlink_speed_Gbps {speed}");
        let text = changed(LEAF_SPINE, &[("Downlink_speed_Gbps 400", &speed)]);
        // The spines keep their speed.
        let tiers = parse(&text).unwrap().tiers;
        assert_eq!(tiers[0].downlink_speed, Rate::from_bps(bits));
        assert_eq!(tiers[1].downlink_speed, Rate::from_gbps(400));
    }
    let speed = |text: &str| {
        let speed = format!("Downlink_speed_Gbps {text}");
        error(LEAF_SPINE, &[("Downlink_speed_Gbps 400", &speed)])
    };
    assert_snapshot!(speed("12.3456789012"), @"
    t.topo:5:21: `12.3456789012` Gb/s is not a whole number of bit/s
      fix: write at most nine decimals
    ");
    assert_snapshot!(speed("0.0"), @"
    t.topo:5:21: `0.0` is not a valid value for `Downlink_speed_Gbps`
      fix: write a number of Gb/s above 0, such as 12.5, up to 100000
    ");
    assert_snapshot!(speed("100000.000000001"), @"
    t.topo:5:21: `100000.000000001` is not a valid value for `Downlink_speed_Gbps`
      fix: write a number of Gb/s above 0, such as 12.5, up to 100000
    ");
    assert_snapshot!(speed("12,5"), @"
    t.topo:5:21: `12,5` is not a valid value for `Downlink_speed_Gbps`
      fix: write a number of Gb/s above 0, such as 12.5, up to 100000
    ");
    let slower = [
        ("Downlink_speed_Gbps 400", "Downlink_speed_Gbps 12.5"),
        ("Tier 0", "Tier 0\nOversubscribed 1"),
    ];
    let file = parse(&changed(LEAF_SPINE, &slower)).unwrap();
    assert_snapshot!(file.warnings[0], @"t.topo:5: `Oversubscribed 1` in tier 0 holds for the ports but not for the bandwidth (32 x 12.5G below and 32 x 400G above); htsim refuses such a file, here the ports and speeds decide");
}

#[test]
fn faults_of_tiers() {
    assert_snapshot!(error(LEAF_SPINE, &[("Tier 1", "Tier 0")]), @"
    t.topo:9:1: tier 0 is described twice, first on line 4
      fix: keep one of the blocks
    ");
    assert_snapshot!(error(LEAF_SPINE, &[("Tier 1", "Tier 3")]), @"
    t.topo:9:6: `3` is not a valid value for `Tier`
      fix: write a whole number from 0 to 2
    ");
    assert_snapshot!(error(LEAF_SPINE, &[("Tier 1", "Nodes 8\nTier 1")]), @"
    t.topo:9:1: `Nodes` stands below a tier
      fix: move the line above the first tier
    ");
    assert_snapshot!(error(LEAF_SPINE, &[("Radix_Up", "RadixUp")]), @"
    t.topo:7:1: unknown word `RadixUp`
      fix: did you mean `Radix_Up`?
    ");
    assert_snapshot!(error(LEAF_SPINE, &[("Radix_Up", "Colour")]), @"
    t.topo:7:1: unknown word `Colour`
      fix: use `Tier`, `Downlink_speed_Gbps`, `Radix_Down`, `Radix_Up`, `Downlink_Latency_ns`, `Switch_Latency_ns`, `Oversubscribed`, `Bundle`, `Queue_Up` or `Queue_Down`
    ");
    assert_snapshot!(error(LEAF_SPINE, &[("Radix_Up 32\n", "")]), @"
    t.topo:4: there is no `Radix_Up` in tier 0
      fix: add it, as in `Radix_Up 32`
    ");
    assert_snapshot!(error(LEAF_SPINE, &[("Downlink_speed_Gbps 400\n", "")]), @"
    t.topo:4: there is no `Downlink_speed_Gbps` in tier 0
      fix: add it, as in `Downlink_speed_Gbps 400`
    ");
    assert_snapshot!(error(LEAF_SPINE, &[("Radix_Down 32\n", "")]), @"
    t.topo:4: there is no `Radix_Down` in tier 0
      fix: add it, as in `Radix_Down 32`
    ");
    assert_snapshot!(error(LEAF_SPINE, &[("Downlink_Latency_ns 1000\n", "")]), @"
    t.topo:4: there is no `Downlink_Latency_ns` in tier 0
      fix: add it, as in `Downlink_Latency_ns 1000`
    ");
    assert_snapshot!(error(LEAF_SPINE, &[("Downlink_Latency_ns 1000", "Downlink_Latency_ns 0")]), @"
    t.topo:8:21: `0` is not a valid value for `Downlink_Latency_ns`
      fix: write a whole number from 1 to 1000000000
    ");
    assert_snapshot!(error(LEAF_SPINE, &[("Downlink_speed_Gbps 400", "Downlink_speed_Gbps 0")]), @"
    t.topo:5:21: `0` is not a valid value for `Downlink_speed_Gbps`
      fix: write a number of Gb/s above 0, such as 12.5, up to 100000
    ");
    assert_snapshot!(error(LEAF_SPINE, &[("Radix_Up 32", "Radix_Up 32\nradix_up 16")]), @"
    t.topo:8:1: `radix_up` stands twice, first on line 7
      fix: keep one of them
    ");
    assert_snapshot!(error(FAT_TREE, &[("Tier 2", "Tier 2\nRadix_Up 4")]), @"
    t.topo:17: `Radix_Up` in tier 2, which is the top tier
      fix: remove the line
    ");
}

#[test]
fn numbers_must_fit_together() {
    assert_snapshot!(error(LEAF_SPINE, &[("Podsize 1024", "Podsize 512")]), @"
    t.topo:3: `Podsize 512`, but with two tiers all 1024 hosts are one pod
      fix: write `Podsize 1024`
    ");
    assert_snapshot!(error(FAT_TREE, &[("Podsize 16", "Podsize 20")]), @"
    t.topo:3: `Podsize 20` does not divide `Nodes 128`
      fix: choose a `Podsize` that divides 128
    ");
    assert_snapshot!(error(FAT_TREE, &[("Podsize 16", "Podsize 256")]), @"
    t.topo:3: `Podsize 256` does not divide `Nodes 128`
      fix: choose a `Podsize` that divides 128
    ");
    assert_snapshot!(error(FAT_TREE, &[("Radix_Down 4", "Radix_Down 5")]), @"
    t.topo:6: `Radix_Down 5` of tier 0 does not divide `Podsize 16`
      fix: choose a `Radix_Down` that divides 16
    ");
    assert_snapshot!(error(FAT_TREE, &[("Tier 0", "Tier 0\nBundle 2")]), @"
    t.topo:5: `Bundle 2` in tier 0, but a host has one link
      fix: write `Bundle 1`, or remove the line
    ");
    assert_snapshot!(error(FAT_TREE, &[("Bundle 2", "Bundle 3")]), @"
    t.topo:14: `Bundle 3` of tier 1 does not divide `Radix_Down 8` of tier 1
      fix: choose a `Bundle` that divides 8
    ");
    assert_snapshot!(error(FAT_TREE, &[("Radix_Up 4", "Radix_Up 5")]), @"
    t.topo:14: `Bundle 2` of tier 1 does not divide `Radix_Up 5` of tier 0
      fix: choose a `Bundle` that divides 5
    ");
    assert_snapshot!(error(FAT_TREE, &[("Radix_Down 8", "Radix_Down 6")]), @"
    t.topo:12: `Radix_Down 6` of tier 1, but there are 4 leaves below each switch, with `Bundle 2`
      fix: write `Radix_Down 8`, or change the other numbers
    ");
    assert_snapshot!(error(FAT_TREE, &[("Radix_Down 16", "Radix_Down 8")]), @"
    t.topo:18: `Radix_Down 8` of tier 2, but there are 8 pods below each core, with `Bundle 2`
      fix: write `Radix_Down 16`, or change the other numbers
    ");
    assert_snapshot!(error(LEAF_SPINE, &[("Tier 0", "Tier 0\nOversubscribed 4")]), @"
    t.topo:5: `Oversubscribed 4` in tier 0, but it has 32 x 400G below and 32 x 400G above
      fix: write `Oversubscribed 1`, or change the ports
    ");
    let many = [
        ("Radix_Up 4", "Radix_Up 65536"),
        ("Radix_Up 8", "Radix_Up 65536"),
    ];
    assert_snapshot!(error(FAT_TREE, &many), @"
    t.topo:13: `Radix_Up 65536` of tier 1 makes 1073741824 switches in tier 2
      fix: choose numbers that make at most 16777216
    ");
}

/// 16 x 200G down and 8 x 400G up: no more comes in than goes out.
const MIXED_LEAF: [(&str, &str); 4] = [
    ("Downlink_speed_Gbps 400", "Downlink_speed_Gbps 200"),
    ("Radix_Down 32", "Radix_Down 16"),
    ("Radix_Up 32", "Radix_Up 8"),
    ("Radix_Down 32", "Radix_Down 64"),
];

#[test]
fn oversubscription_is_judged_by_ports_or_bandwidth() {
    let file = parse(&changed(LEAF_SPINE, &MIXED_LEAF)).unwrap();
    assert_eq!((file.leaves(), file.aggregations()), (64, 8));
    assert_eq!((file.tiers[0].oversubscribed, file.warnings.len()), (1, 0));
    let stated = |line| [&MIXED_LEAF[..], &[("Tier 0", line)]].concat();
    assert_snapshot!(warnings(LEAF_SPINE, &stated("Tier 0\nOversubscribed 1")), @"t.topo:5: `Oversubscribed 1` in tier 0 holds for the bandwidth but not for the ports (16 x 200G below and 8 x 400G above); htsim refuses such a file, here the ports and speeds decide");
    assert_snapshot!(warnings(LEAF_SPINE, &stated("Tier 0\nOversubscribed 2")), @"t.topo:5: `Oversubscribed 2` in tier 0 holds for the ports but not for the bandwidth (16 x 200G below and 8 x 400G above); htsim refuses such a file, here the ports and speeds decide");
    assert_snapshot!(error(LEAF_SPINE, &stated("Tier 0\nOversubscribed 3")), @"
    t.topo:5: `Oversubscribed 3` in tier 0, but it has 16 x 200G below and 8 x 400G above
      fix: write `Oversubscribed 1`, or change the ports
    ");
    assert_snapshot!(warnings(LEAF_SPINE, &[("Radix_Up 32", "Radix_Up 8")]), @"t.topo:4: there is no `Oversubscribed` in tier 0: taken as 4 from 32 x 400G below and 8 x 400G above");
    let exact = [("Radix_Up 32", "Radix_Up 8\nOversubscribed 4")];
    assert_eq!(warnings(LEAF_SPINE, &exact), "");
}

#[test]
fn warnings_for_what_is_ignored_or_supplied() {
    assert_snapshot!(warnings(LEAF_SPINE, &[("Podsize 1024\n", "")]), @"t.topo:1: there is no `Podsize`: taken as 1024, all hosts");
    let top = [("Tier 1", "Tier 1\nRadix_Up 8\nOversubscribed 2")];
    assert_snapshot!(warnings(LEAF_SPINE, &top), @"
    t.topo:10: `Radix_Up` is ignored: this is the top tier
    t.topo:11: `Oversubscribed 2` is ignored: this is the top tier
    ");
}

proptest! {
    #[test]
    fn no_input_panics(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        if let Err(error) = parse(&String::from_utf8_lossy(&bytes)) {
            prop_assert!(error.line >= 1 && !error.fix.is_empty());
        }
    }

    /// Any numbers are either consistent or rejected with an error; nothing overflows.
    #[test]
    fn any_numbers_are_consistent_or_refused(
        pods in 1u64..6, leaves in 1u64..6, down in 1u64..6, aggregations in 1u64..6, cores_each in 1u64..6,
        bundles in (1u64..4, 1u64..4), slip in 0usize..12, to in prop_oneof![1u64..20, Just(65_536), any::<u64>()],
    ) {
        let (b1, b2) = bundles;
        let podsize = leaves * down;
        let mut numbers = [
            pods * podsize, podsize, down, aggregations * b1, leaves * b1, cores_each * b2, b1, pods * b2, b2,
        ];
        // The last three values of `slip` leave all numbers as they are.
        if let Some(number) = numbers.get_mut(slip) {
            *number = to;
        }
        let [nodes, podsize, d0, u0, d1, u1, b1, d2, b2] = numbers;
        let file = parse(&format!(
            "Nodes {nodes}\nTiers 3\nPodsize {podsize}\n\
             Tier 0\nDownlink_speed_Gbps 100\nDownlink_Latency_ns 1\nRadix_Down {d0}\nRadix_Up {u0}\n\
             Tier 1\nDownlink_speed_Gbps 100\nDownlink_Latency_ns 1\nRadix_Down {d1}\nRadix_Up {u1}\nBundle {b1}\n\
             Tier 2\nDownlink_speed_Gbps 100\nDownlink_Latency_ns 1\nRadix_Down {d2}\nBundle {b2}\n"
        ));
        prop_assert!(slip < numbers.len() || file.is_ok(), "{:?}", file);
        if let Ok(file) = file {
            let (aggregations, cores) = (u64::from(file.aggregations()), u64::from(file.cores()));
            prop_assert_eq!(u64::from(file.leaves()) * u0, aggregations * d1);
            prop_assert_eq!(aggregations * u1, cores * d2);
            prop_assert_eq!(file.cores() % file.aggregations_per_pod(), 0);
        }
    }
}
