//! Hosts that are joined with each other and forward.

use clearway_lab::units::Span;
use clearway_lab::{
    Assembly, Finished, Laboratory, RunDecision, RunOptions, Scenario, Stopped, Watch,
};
use std::path::Path;

fn scenario(text: &str) -> Scenario {
    Laboratory::new().read("test", text, None, &[]).unwrap()
}

fn run(text: &str) -> Finished {
    Laboratory::new().run(&scenario(text)).unwrap()
}

/// One packet of 4086 B and its acknowledgement, over `hops` links of 400 Gb/s and 1 us, and two links of each host at the sum of its
/// `links`.
fn one_packet(hops: u64, links: u64) -> Span {
    let (packet, ack) = (4086 + 64, 64);
    let ps = |bytes: u64| {
        let (port, inside) = (bytes * 20, bytes * 20 / links);
        hops * (port + 1_000_000) + 2 * inside
    };
    Span::from_ps(ps(packet) + ps(ack))
}

fn completion(topology: &str, dst: u32) -> Span {
    let text = format!(
        "topology = {topology}\n[transport]\npayload = \"4086B\"\n[[workload]]\nkind = \"flows\"\nflows = [\"0->{dst} 4086B\"]\n"
    );
    let finished = run(&text);
    let flow = &finished.flows[0];
    let taken = flow.completion().unwrap();
    assert!(is_close(flow.ideal, taken), "alone, it is ideal");
    taken
}

/// True if times differ by the rounding of bytes to picoseconds at the rate of a host only.
fn is_close(a: Span, b: Span) -> bool {
    a.saturating_sub(b).max(b.saturating_sub(a)) <= Span::from_ps(10)
}

#[test]
fn a_packet_takes_the_time_of_its_links() {
    // Delays from host to host are those of the cables; a host on the way saves the part inside it twice.
    let forwarded = |hops: u64| Span::from_ps(2 * (hops - 1) * 200_000);
    let ring = "{ kind = \"ring\", hosts = 8 }";
    assert!(is_close(completion(ring, 1), one_packet(1, 2)));
    assert!(is_close(completion(ring, 7), one_packet(1, 2)));
    assert!(is_close(
        completion(ring, 4) + forwarded(4),
        one_packet(4, 2)
    ));
    let full = "{ kind = \"fully-connected\", hosts = 5 }";
    assert!(is_close(completion(full, 4), one_packet(1, 4)));
    let torus = "{ kind = \"torus\", dimensions = [4, 4, 4] }";
    assert!(is_close(
        completion(torus, 2 + 4 + 16) + forwarded(4),
        one_packet(4, 6)
    ));
}

#[test]
fn equal_digests_on_several_threads_and_with_either_routing() {
    for (kind, routing) in [
        ("torus", "shortest"),
        ("torus", "dimension-order"),
        ("mesh", "dimension-order"),
    ] {
        let text = format!(
            "topology = {{ kind = \"{kind}\", dimensions = [4, 2, 3], routing = \"{routing}\" }}\n[[workload]]\nkind = \"permutation\"\nmessage = \"300kB\"\n"
        );
        let digest = |threads: usize| {
            let scenario = scenario(&text);
            let options = RunOptions {
                threads: threads.into(),
                on_progress: &mut |_| RunDecision::Continue,
                on_flow: &mut |_, _, _| (),
            };
            let assembly = Assembly::new(&scenario).unwrap();
            let finished = assembly.run(options, Watch::Off);
            assert!(finished.flows.iter().all(|flow| flow.finished.is_some()));
            finished.digest
        };
        assert_eq!(digest(1), digest(2), "{kind} {routing}");
    }
}

/// Shared buffers so small that messages soon pause each other.
fn lossless(buffer: &str) -> String {
    format!(
        "[switch]\nkind = \"shared-buffer\"\nbuffer = \"{buffer}\"\n[transport]\nkind = \"rocev2\"\ncontroller = \"constant\"\n[stop]\nat-most = \"20ms\"\n"
    )
}

/// Messages of all hosts at once, each `shift` hosts on.
fn shifted(hosts: u32, shift: u32, size: &str) -> String {
    let flows = (0..hosts).map(|src| format!("\"{src}->{} {size}\"", (src + shift) % hosts));
    let flows: Vec<String> = flows.collect();
    format!(
        "[[workload]]\nkind = \"flows\"\nflows = [{}]\n",
        flows.join(", ")
    )
}

fn warnings(text: &str) -> String {
    Assembly::new(&scenario(text)).unwrap().warnings.join("\n")
}

/// Runs to the end, without loss and with pauses.
fn assert_lossless(text: &str) {
    let finished = run(text);
    assert_eq!(finished.stopped, None, "{text}");
    assert_eq!(finished.links.dropped, 0, "{text}");
    assert!(!finished.pauses.is_empty(), "{text}");
    let warnings = warnings(text);
    assert!(!warnings.contains("deadlock"), "{warnings}");
}

/// Long messages half around the ring at once fill its buffers: without virtual channels, paused links wait for each other. In a mesh with
/// dimension order they cannot.
#[test]
fn a_ring_of_pauses_deadlocks_without_virtual_channels_and_is_named() {
    let ring = |channels: u32, buffer: &str| {
        format!(
            "topology = {{ kind = \"ring\", hosts = 9, virtual-channels = {channels} }}\n{}{}",
            lossless(buffer),
            shifted(9, 4, "20MB")
        )
    };
    assert_eq!(run(&ring(1, "600kB")).stopped, Some(Stopped::Deadlocked));
    let warnings = warnings(&ring(1, "600kB"));
    let expected = "on a ring, paused links can deadlock; set `topology.virtual-channels` to 2";
    assert!(warnings.contains(expected), "{warnings}");
    // Headrooms of the second channels alone take 248 kB more.
    assert_eq!(run(&ring(1, "850kB")).stopped, Some(Stopped::Deadlocked));
    assert_lossless(&ring(2, "600kB"));
    assert_lossless(&ring(2, "850kB"));
    assert_lossless(&format!(
        "topology = {{ kind = \"mesh\", dimensions = [3, 3], routing = \"dimension-order\" }}\n{}{}",
        lossless("600kB"),
        shifted(9, 4, "20MB")
    ));
}

#[test]
fn tori_under_heavy_traffic_deadlock_without_virtual_channels_only() {
    // Seeds of three with which one channel deadlocks: ECMP decides about the two ways around a ring of four.
    for (dimensions, buffer, deadlocks) in [
        ("[4, 4]", "1200kB", 1),
        ("[5, 5]", "1200kB", 3),
        ("[4, 4, 2]", "1500kB", 3),
    ] {
        let torus = |channels: u32, seed: u32| {
            format!(
                "seed = {seed}\ntopology = {{ kind = \"torus\", dimensions = {dimensions}, routing = \"dimension-order\", virtual-channels = {channels} }}\n{}[[workload]]\nkind = \"all-to-all\"\nsize = \"16MB\"\n",
                lossless(buffer)
            )
        };
        let seeds = 1..=3;
        let stopped = seeds.clone().map(|seed| run(&torus(1, seed)).stopped);
        let deadlocked = stopped.filter(|stopped| *stopped == Some(Stopped::Deadlocked));
        assert_eq!(deadlocked.count(), deadlocks, "{dimensions}");
        seeds.for_each(|seed| assert_lossless(&torus(2, seed)));
    }
}

/// Each priority has a second channel of its own, also where the highest priority goes first.
#[test]
fn three_priorities_share_two_virtual_channels() {
    let flows = |priority: u32| format!("{}priority = {priority}\n", shifted(10, 4, "3MB"));
    let flows: String = (1..=3).map(flows).collect();
    for strict in [false, true] {
        let switch =
            lossless("2MB").replace("[switch]", &format!("[switch]\nstrict-priority = {strict}"));
        let ring = |channels: u32| {
            format!(
                "topology = {{ kind = \"ring\", hosts = 10, virtual-channels = {channels} }}\n{switch}{flows}"
            )
        };
        assert_eq!(run(&ring(1)).stopped, Some(Stopped::Deadlocked));
        assert_lossless(&ring(2));
    }
}

fn refused(text: &str) -> String {
    let scenario = Laboratory::new().read("test", text, None, &[]);
    let error = scenario.and_then(|scenario| Assembly::new(&scenario).map(drop));
    error.unwrap_err().to_string()
}

#[test]
fn virtual_channels_need_dimension_order_and_classes_of_their_own() {
    let on = |topology: &str, rest: &str| {
        format!(
            "topology = {{ {topology}, virtual-channels = 2 }}\n[switch]\nkind = \"shared-buffer\"\n{rest}\n"
        )
    };
    let ring = "kind = \"ring\", hosts = 5";
    for (text, expected) in [
        (
            on("kind = \"torus\"", ""),
            "`topology.routing` = \"shortest\"",
        ),
        (on("kind = \"mesh\"", ""), "virtual-channels"),
        (
            on(ring, "control-priority = false"),
            "`topology.virtual-channels` = 2 needs `switch.control-priority`",
        ),
        (
            on(ring, "pfc.classes = [1, 5]"),
            "`switch.pfc.classes` names priority 5",
        ),
        (
            on(ring, "ecn.classes = [\"6: kmin=1kB kmax=2kB pmax=1\"]"),
            "`switch.ecn.classes` names priority 6",
        ),
        (
            on(ring, "[[workload]]\nkind = \"permutation\"\npriority = 4"),
            "test:6: a flow has priority 4",
        ),
    ] {
        let error = refused(&text);
        assert!(
            error.contains(expected) && error.contains("fix: "),
            "{error}"
        );
    }
    let idle = |kind: &str, topology: &str| {
        let text = format!("topology = {{ {topology}, virtual-channels = 2 }}\n[switch]\n{kind}\n");
        let warnings = warnings(&text);
        assert!(
            warnings.contains("`topology.virtual-channels` = 2 changes nothing"),
            "{warnings}"
        );
    };
    idle("kind = \"lossy\"", ring);
    idle("kind = \"shared-buffer\"\npfc.classes = []", ring);
    idle("kind = \"shared-buffer\"", "kind = \"ring\", hosts = 2");
    let used = format!("{}{}", on(ring, ""), shifted(5, 2, "1MB"));
    assert_eq!(warnings(&used), "");
}

/// Without a pause both channels have all the room they need, and a packet alone does not notice them.
#[test]
fn an_idle_torus_is_the_same_with_two_virtual_channels() {
    let finished = |channels: u32| {
        let torus = format!(
            "topology = {{ kind = \"torus\", dimensions = [5, 4], routing = \"dimension-order\", virtual-channels = {channels} }}\n[switch]\nkind = \"shared-buffer\"\n[[workload]]\nkind = \"permutation\"\nmessage = \"4kB\"\n"
        );
        run(&torus)
    };
    let (one, two) = (finished(1), finished(2));
    assert!(one.pauses.is_empty() && two.pauses.is_empty());
    assert_eq!(one.digest, two.digest);
}

/// A network file of ASTRA-sim is the generated fabric with the same numbers.
#[test]
fn a_network_of_astra_sim_is_the_same_ring() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("astra-network");
    std::fs::create_dir_all(&folder).unwrap();
    let text = "topology: [ Ring ]\nnpus_count: [ 8 ]\nbandwidth: [ 50.0 ]  # GB/s\nlatency: [ 500.0 ]  # ns\n";
    std::fs::write(folder.join("ring.yml"), text).unwrap();
    let traffic = "[[workload]]\nkind = \"ring-all-reduce\"\nsize = \"1MB\"\n";
    let digest = |topology: &str| {
        let text = format!("topology = {topology}\n{traffic}");
        let laboratory = Laboratory::new();
        let scenario = laboratory.read("test", &text, Some(&folder), &[]).unwrap();
        laboratory.run(&scenario).unwrap().digest
    };
    assert_eq!(
        digest("{ file = \"ring.yml\" }"),
        digest(
            "{ kind = \"ring\", hosts = 8, link-rate = \"429496729600bps\", link-delay = \"500ns\" }"
        )
    );
    let several = "topology: [ Ring, FullyConnected, Switch ]\nnpus_count: [ 4, 2, 2 ]\nbandwidth: [ 200, 100, 50 ]\nlatency: [ 50, 500, 2000 ]\n";
    std::fs::write(folder.join("ring.yml"), several).unwrap();
    digest("{ file = \"ring.yml\" }");
}
