//! Copies of packets that come when their flow is long finished: slow links behind deep queues, where they wait for longer than
//! receivers linger. Every message is delivered once all the same, to flows, to streams of flows and to jobs.

use clearway_lab::{
    Assembly, Finished, Interests, Laboratory, Observer, RunDecision, RunOptions, Watch,
};
use clearway_transport::Event;
use clearway_units::{FlowId, HostId, MessageId, Time};
use std::collections::BTreeMap;

/// Counts what arrives.
#[derive(Default)]
struct Deliveries {
    messages: BTreeMap<(FlowId, MessageId), u32>,
}

impl Observer for Deliveries {
    fn interests(&self) -> Interests {
        Interests::NONE
    }

    fn on_transport(&mut self, _: Time, _: HostId, event: &Event) {
        if let Event::Received { flow, message, .. } = event {
            *self.messages.entry((*flow, *message)).or_default() += 1;
        }
    }
}

fn run(text: &str, settings: &[&str]) -> (Finished, Vec<Deliveries>) {
    let settings: Vec<String> = settings.iter().map(ToString::to_string).collect();
    let laboratory = Laboratory::new();
    let scenario = laboratory.read("test", text, None, &settings);
    let scenario = scenario.unwrap_or_else(|error| panic!("{error}"));
    let assembly = Assembly::new(&scenario).unwrap();
    let options = RunOptions {
        threads: 1.into(),
        on_progress: &mut |_| RunDecision::Continue,
        on_flow: &mut |_, _, _| (),
    };
    let mut deliveries = assembly.per_domain(Deliveries::default);
    let finished = assembly.run(options, Watch::by(&mut deliveries));
    (finished, deliveries)
}

/// Checks that nothing was delivered twice; returns how many messages were delivered.
fn delivered_once(deliveries: &[Deliveries]) -> usize {
    let mut messages = 0;
    for observer in deliveries {
        for (message, &times) in &observer.messages {
            assert_eq!(times, 1, "{message:?}");
        }
        messages += observer.messages.len();
    }
    messages
}

#[test]
fn streams_of_flows_over_a_slow_link_are_delivered_once() {
    for settings in [
        &[
            "topology.kind=dumbbell",
            "topology.bottleneck-rate=10Gbps",
            "workload.kind=poisson",
            "switch.kind=shared-buffer",
        ][..],
        &[
            "topology.links=[\"host0-leaf0 rate=10Gbps\"]",
            "workload.kind=poisson",
            "switch.kind=shared-buffer",
        ],
    ] {
        let (finished, deliveries) = run("", settings);
        assert_eq!(finished.stopped, None);
        assert!(finished.endpoints.duplicates > 0, "{settings:?}");
        assert!(delivered_once(&deliveries) > 1000, "{settings:?}");
    }
}

#[test]
fn jobs_over_a_slow_link_are_delivered_once() {
    let link = "topology.links=[\"host1-leaf0 rate=3Gbps\"]";
    let kind = "workload.kind=all-to-all";
    let size = "workload.size=10MB";
    let shared = [link, "switch.kind=shared-buffer", kind, size];
    let lossy = [
        link,
        "switch.queue=100MB",
        "switch.control-priority=false",
        "transport.linger=1us",
        "workload.kind=ring-all-reduce",
        "workload.size=1MB",
        "workload.iterations=3",
    ];
    for settings in [&shared[..], &lossy] {
        for transport in ["strack", "rocev2", "dctcp", "hpcc", "swift"] {
            let transport = format!("transport.kind={transport}");
            let settings = [settings, &[&transport]].concat();
            let (finished, deliveries) = run("", &settings);
            assert_eq!(finished.stopped, None, "{settings:?}");
            let connections = finished.jobs.iter().map(|job| job.flows.len());
            assert!(
                delivered_once(&deliveries) >= connections.sum(),
                "{settings:?}"
            );
        }
    }
}

const SLOW_FABRIC: &str = r#"
seed = 1
stop.at-most = "20ms"
trigger-delay = "1us"
[topology]
kind = "leaf-spine"
link-rate = "400Gbps"
link-delay = "500ns"
hosts = 16
hosts-per-leaf = 4
spines = 4
links = ["host6-leaf1 bit-error-rate=1e-6", "leaf2-spine1 down"]
fabric-link-rate = "5Gbps"
[switch]
kind = "lossy"
queue = "10MB"
control-priority = false
strict-priority = false
ecn.kmin = "50%bdp"
ecn.kmax = "100%bdp"
[transport]
kind = "tmdml"
reliability = "selective-repeat"
rate-hai = "200Gbps"
min-rate = "50Mbps"
dampener-constant = 32.0
payload = "1024B"
[[workload]]
kind = "poisson"
sizes = "ali-storage"
load = 0.5
duration = "100us"
"#;

const SLOW_ACKNOWLEDGEMENTS: &str = r#"
seed = 2759087623
stop.at-most = "200ms"
[topology]
kind = "leaf-spine"
link-rate = "40Gbps"
link-delay = "5us"
hosts = 3
hosts-per-leaf = 1
spines = 1
parallel-links = 1
fabric-link-rate = "1Gbps"
fabric-link-delay = "200ns"
[switch]
ecn.enabled = false
ecn.pmax = 0.0
control-priority = false
strict-priority = true
telemetry = "exact"
ecn.kmin = "25%bdp"
ecn.kmax = "75%bdp"
queue = "50MB"
[transport]
kind = "dctcp"
ack-duplicates = false
nack-interval = "7us"
rto-max = "100us"
qps = 3
stripe-chunk = "65536B"
g = 0.0
initial-window = "0.5bdp"
increase = 1.0
[[workload]]
kind = "poisson"
sizes = "hadoop"
load = 0.2
hosts = 2
[observe]
series.every = "off"
"#;

const SLOW_HOSTS: &str = r#"
seed = 9223372036854775807
stop.at-most = "3ms"
[topology]
kind = "single-switch"
link-delay = "5us"
hosts = 17
bit-error-rate = 1e-6
links = ["host4-switch rate=3Gbps delay=7us", "host11-switch rate=3Gbps delay=7us"]
[switch]
kind = "shared-buffer"
ecn.kmin = "50%bdp"
ecn.kmax = "100%bdp"
queue = "15KB"
[transport]
kind = "hpcc"
reliability = "selective-repeat"
spray = "oblivious"
ooo-min = 5
rto = "100us"
strict-window = true
linger = "1us"
[[workload]]
kind = "direct-all-gather"
jobs = 1
size = "100000B"
placement = "packed"
block = 1
schedule = { period = "100us", shift = "10us", grace="0s", skew="5us" }
"#;

const LARGE_ACKNOWLEDGEMENTS: &str = r#"
seed = 1
stop.at-most = "3ms"
[topology]
kind = "leaf-spine"
link-rate = "400Gbps"
hosts = 2
hosts-per-leaf = 2
oversubscription = 2
fabric-link-rate = "100Gbps"
fabric-link-delay = "200ns"
[switch]
kind = "lossy"
control-priority = false
ecn.kmin = "5%bdp"
ecn.kmax = "10%bdp"
queue = "9300B"
[transport]
kind = "swift"
controller = "constant"
header = "64B"
ack-size = "10000B"
ack-duplicates = false
qps = 1
control-first = false
linger = "250ns"
rate = "10Gbps"
[[workload]]
kind = "ring-all-gather"
jobs = 1
ranks = 2
size = "7B"
chunk = "1000B"
window = 2
buckets = 5
overlap = 1.0
stragglers = 0
placement = "random"
block = 4
schedule = { period = "50us", shift = "0s", grace="0s", skew="1us" }
priority = 2
[observe]
series.every = "10us"
"#;

/// Lossless and lossy fabrics, each with receivers that linger for less than a packet waits.
#[test]
fn scenarios_that_once_delivered_twice_deliver_once() {
    for (name, text) in [
        ("slow fabric, one queue for all", SLOW_FABRIC),
        ("acknowledgements behind data", SLOW_ACKNOWLEDGEMENTS),
        ("a shared buffer before slow hosts", SLOW_HOSTS),
        (
            "large acknowledgements, one host behind",
            LARGE_ACKNOWLEDGEMENTS,
        ),
    ] {
        let (_, deliveries) = run(text, &[]);
        assert!(delivered_once(&deliveries) > 0, "{name}");
    }
}
