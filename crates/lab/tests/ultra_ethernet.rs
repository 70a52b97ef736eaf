//! Ultra Ethernet: completion times that the UEC reference simulator gives, or that can be worked out by hand.

use clearway_fabric::Observer;
use clearway_lab::{Finished, Laboratory};
use clearway_transport::Event;
use clearway_units::{HostId, Span, Time};

/// Two tiers at 400 Gb/s with 1 us links: between leaves a packet takes four links.
const FABRIC: &str = r#"
[topology]
kind = "leaf-spine"
hosts = 16
hosts-per-leaf = 4
spines = 4
"#;

fn run(kind: &str, flows: &str, overrides: &[&str]) -> Finished {
    let laboratory = Laboratory::new();
    let text = format!(
        "{FABRIC}\n[transport]\nkind = \"{kind}\"\n\n[[workload]]\nkind = \"flows\"\nflows = [{flows}]\n"
    );
    let overrides: Vec<String> = overrides.iter().map(ToString::to_string).collect();
    let scenario = laboratory
        .read("uec.toml", &text, None, &overrides)
        .unwrap();
    laboratory.run(&scenario).unwrap()
}

fn completions(finished: &Finished) -> Vec<Span> {
    let flows = finished.flows.iter();
    flows.map(|flow| flow.completion().unwrap()).collect()
}

/// `W/C + (h-1) mtu/C + h 64/C + 2 h us` for `W` bytes on the wire over `h` links; the reference gives the same.
#[test]
fn a_single_flow_takes_what_the_reference_simulator_says() {
    let sizes = ["1B", "4096B", "65536B", "2MB", "16MB"];
    let over_four_links = [8_010_320, 8_337_920, 9_585_920, 48_880_640, 333_255_680];
    for kind in ["uet", "uet-no-trim"] {
        for (size, expected) in sizes.iter().zip(over_four_links) {
            let finished = run(kind, &format!("\"4->0 {size}\""), &[]);
            let expected = Span::from_ps(expected);
            assert_eq!(completions(&finished), [expected], "{kind}, {size}");
        }
        for (size, expected) in [("4096B", 4_168_960), ("2MB", 44_711_680)] {
            let finished = run(kind, &format!("\"1->0 {size}\""), &[]);
            let expected = Span::from_ps(expected);
            assert_eq!(completions(&finished), [expected], "{kind}, {size}");
        }
    }
}

/// The reference: 88.4 and 89.6 us, 102 trims. Its windows count headers, so that two packets less of each flow are on their way (U1).
#[test]
fn two_flows_into_one_host_lose_payloads_and_nothing_else() {
    let queue = [
        "transport.spray=bitmap",
        // 101, 21 and 81 packets: a bandwidth-delay product with its serialisation, in whole packets.
        "switch.queue=420160B",
        "switch.ecn.kmin=87360B",
        "switch.ecn.kmax=336960B",
    ];
    let finished = run("uet", "\"4->0 2MB\", \"8->0 2MB\"", &queue);
    let (links, endpoints) = (&finished.links, &finished.endpoints);
    assert_eq!((links.dropped, endpoints.timeouts), (0, 0));
    assert_eq!(links.trimmed, endpoints.trimmed_received);
    assert_eq!(links.trimmed, endpoints.nacks_received);
    assert_eq!(links.trimmed, endpoints.retransmitted);
    assert!((98..=112).contains(&links.trimmed), "{}", links.trimmed);
    let last = completions(&finished).into_iter().max().unwrap();
    // 978 packets and the trimmed rest at 400 Gb/s, and the way there and back.
    assert!((89.4..90.2).contains(&last.as_us()), "{last}");
}

#[test]
fn without_trimming_the_same_packets_are_dropped_and_found_by_sleek() {
    let finished = run(
        "uet-no-trim",
        "\"4->0 2MB\", \"8->0 2MB\"",
        &["switch.queue=100%bdp"],
    );
    let (links, endpoints) = (&finished.links, &finished.endpoints);
    assert!(links.dropped > 50 && links.trimmed == 0, "{links:?}");
    assert!(endpoints.lost_out_of_order > 0, "{endpoints:?}");
    assert!(
        finished
            .flows
            .iter()
            .all(|flow| flow.completion().is_some())
    );
}

#[test]
fn with_endless_queues_nothing_is_trimmed() {
    let finished = run("uet", "\"4->0 2MB\", \"8->0 2MB\"", &["switch.queue=1GB"]);
    assert_eq!((finished.links.trimmed, finished.links.dropped), (0, 0));
}

#[test]
fn combinations_that_mean_nothing_are_refused() {
    let laboratory = Laboratory::new();
    let refused = |overrides: &[&str]| {
        let overrides: Vec<String> = overrides.iter().map(ToString::to_string).collect();
        let error = laboratory.read("s.toml", "", None, &overrides).unwrap_err();
        error.to_string()
    };
    let pauses = refused(&["switch.kind=shared-buffer", "switch.trimming=true"]);
    assert!(
        pauses.contains("trimming") && pauses.contains("fix"),
        "{pauses}"
    );
    let behind = refused(&["transport.kind=uet", "switch.control-priority=false"]);
    assert!(behind.contains("control-priority"), "{behind}");
    let go_back = refused(&["transport.kind=rocev2", "switch.trimming=true"]);
    assert!(go_back.contains("selective repeat"), "{go_back}");
    let size = refused(&["transport.kind=uet", "switch.trim-size=5000B"]);
    assert!(size.contains("trim-size"), "{size}");
}

/// Sum and number of the round-trip times of acknowledgements that come in the middle of a run.
#[derive(Default)]
struct RoundTrips {
    from: Time,
    to: Time,
    sum_ps: u128,
    count: u64,
}

impl Observer for RoundTrips {
    const TRACES_TRANSPORT: bool = true;

    fn on_transport(&mut self, _: Time, _: HostId, event: &Event) {
        if let Event::Ack { now, rtt, .. } = event
            && (self.from..self.to).contains(now)
        {
            self.sum_ps += u128::from(rtt.as_ps());
            self.count += 1;
        }
    }
}

/// Mean queueing delay of acknowledgements, in us, in the middle of an incast of `senders` with 8 MB each.
fn mean_delay_us(kind: &str, senders: u64) -> f64 {
    let laboratory = Laboratory::new();
    let text = format!(
        "[topology]\nkind = \"leaf-spine\"\nhosts = 64\nhosts-per-leaf = 8\nspines = 8\n\
         [transport]\nkind = \"{kind}\"\n[[workload]]\nkind = \"incast\"\nsenders = {senders}\nmessage = \"8MB\"\n"
    );
    let scenario = laboratory.read("incast.toml", &text, None, &[]).unwrap();
    let whole = senders * 8 * 20;
    let observer = || RoundTrips {
        from: Time::from_us(whole * 4 / 10),
        to: Time::from_us(whole * 8 / 10),
        ..RoundTrips::default()
    };
    let (_, observers) = laboratory
        .run_observed(&scenario, observer)
        .unwrap()
        .split();
    let sum: u128 = observers.iter().map(|observer| observer.sum_ps).sum();
    let count: u64 = observers.iter().map(|observer| observer.count).sum();
    sum as f64 / count as f64 / 1e6 - 8.337_92
}

#[test]
fn incasts_settle_at_the_delays_of_the_reference_simulator() {
    for (kind, senders, expected) in [
        ("uet", 2, 6.16),
        ("uet", 8, 6.68),
        ("uet", 32, 7.24),
        ("uet-no-trim", 2, 7.99),
        ("uet-no-trim", 8, 8.55),
        ("uet-no-trim", 32, 9.01),
    ] {
        let delay = mean_delay_us(kind, senders);
        assert!(
            (expected - 1.2..expected + 0.3).contains(&delay),
            "{kind} {senders}: {delay:.2} us (reference {expected})"
        );
    }
}
