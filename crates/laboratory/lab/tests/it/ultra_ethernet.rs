//! Ultra Ethernet: completion times that the UEC reference simulator gives, or that can be worked out by hand.

use clearway_fabric::{Interests, Observer};
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

/// A flow speculates with a window; what is more comes at 0.99 of the rate.
#[test]
fn credit_costs_a_single_flow_a_hundredth_at_most() {
    for nscc in [false, true] {
        let both = ["transport.controller=nscc"];
        let overrides = if nscc { &both[..] } else { &[] };
        for (size, expected) in [
            ("1B", 8_010_320),
            ("4096B", 8_337_920),
            ("65536B", 9_585_920),
        ] {
            let finished = run("uet-rccc", &format!("\"4->0 {size}\""), overrides);
            assert_eq!(completions(&finished), [Span::from_ps(expected)], "{size}");
        }
        for (size, least) in [("2MB", 48_880_640u64), ("16MB", 333_255_680)] {
            let finished = run("uet-rccc", &format!("\"4->0 {size}\""), overrides);
            let ratio = completions(&finished)[0].as_ps() as f64 / least as f64;
            assert!((1.0..=1.0101).contains(&ratio), "{size}, {nscc}: {ratio}");
            assert_eq!(finished.links.dropped + finished.links.trimmed, 0);
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
    let go_back = refused(&[
        "transport.kind=rocev2",
        "switch.kind=lossy",
        "switch.trimming=true",
    ]);
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
    fn interests(&self) -> Interests {
        Interests {
            transport: true,
            ..Interests::NONE
        }
    }

    fn on_transport(&mut self, _: Time, _: HostId, event: &Event) {
        if let Event::Ack { now, rtt, .. } = event
            && (self.from..self.to).contains(now)
        {
            self.sum_ps += u128::from(rtt.as_ps());
            self.count += 1;
        }
    }
}

/// Mean queueing delay of acknowledgements, in us, in the middle of an incast of `senders` with 8 MB each, and the run.
fn incast(kind: &str, senders: u64, overrides: &[&str]) -> (f64, Finished) {
    let laboratory = Laboratory::new();
    // From other leaves, so that all have the same unloaded round trip.
    let flows: Vec<String> = (8..8 + senders)
        .map(|host| format!("\"{host}->0 8MB\""))
        .collect();
    let text = format!(
        "[topology]\nkind = \"leaf-spine\"\nhosts = 64\nhosts-per-leaf = 8\nspines = 8\n\
         [transport]\nkind = \"{kind}\"\n[[workload]]\nkind = \"flows\"\nflows = [{}]\n",
        flows.join(", ")
    );
    let overrides: Vec<String> = overrides.iter().map(ToString::to_string).collect();
    let scenario = laboratory
        .read("incast.toml", &text, None, &overrides)
        .unwrap();
    let whole = senders * 8 * 20;
    let observer = || RoundTrips {
        from: Time::from_us(whole * 4 / 10),
        to: Time::from_us(whole * 8 / 10),
        ..RoundTrips::default()
    };
    let (finished, observers) = laboratory.run_observed(&scenario, observer).unwrap();
    let sum: u128 = observers.iter().map(|observer| observer.sum_ps).sum();
    let count: u64 = observers.iter().map(|observer| observer.count).sum();
    (sum as f64 / count as f64 / 1e6 - 8.337_92, finished)
}

/// The reference: 396.0 of 400 Gb/s with a queue of 0.39 us with eight senders and 0.96 us with 32, and no marks. Here 0.73 and 0.38 us.
#[test]
fn receivers_with_credit_keep_queues_empty() {
    for senders in [8, 32] {
        for controller in ["constant", "nscc"] {
            let controller = format!("transport.controller={controller}");
            let (delay, finished) = incast("uet-rccc", senders, &[&controller]);
            assert!((0.1..1.2).contains(&delay), "{senders}: {delay} us");
            // While flows speculate, inside the fabric; ports to hosts do not mark.
            let (marked, sent) = (finished.links.marked, finished.endpoints.data_sent);
            assert!(marked * 50 < sent, "{marked} of {sent}");
            let last = completions(&finished).into_iter().max().unwrap();
            let wire = senders as f64 * 8e6 / 4096.0 * 4160.0;
            let rate = wire * 8.0 / last.as_us() / 1000.0;
            assert!((394.0..397.5).contains(&rate), "{senders}: {rate} Gb/s");
        }
    }
}

/// Within a seventh of the delays of the reference, whose windows count headers; the differences are in the book.
#[test]
fn incasts_settle_near_the_delays_of_the_reference_simulator() {
    let marks = ["switch.ecn.kmin=87360B", "switch.ecn.kmax=336960B"];
    let trims = [&marks[..], &["switch.queue=420160B"]].concat();
    for (kind, senders, expected) in [
        ("uet", 2, 6.16),
        ("uet", 8, 6.68),
        ("uet", 32, 7.24),
        ("uet-no-trim", 2, 7.99),
        ("uet-no-trim", 8, 8.55),
        ("uet-no-trim", 32, 9.01),
    ] {
        let overrides = if kind == "uet" { &trims } else { &marks[..] };
        let (delay, _) = incast(kind, senders, overrides);
        let ratio = delay / expected;
        assert!(
            (0.83..1.05).contains(&ratio),
            "{kind} {senders}: {delay:.2} us, {expected} there"
        );
    }
}
