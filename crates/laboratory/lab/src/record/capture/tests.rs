use super::sequence::MOST_GRAPHS;
use super::*;
use crate::record::merge_all;
use crate::{Assembly, Finished, Laboratory, RunOptions};
use clearway_fabric::{RunDecision, Watch};
use clearway_transport::Class;
use clearway_transport::Header;
use clearway_transport::wire::{Decoded, decode, rocev2::Received};
use clearway_units::{FlowId, Purpose, RandomStream};
use std::collections::BTreeMap;

/// Eight hosts on one switch, with the settings in `overrides`.
fn assembly(overrides: &[&str]) -> Result<Assembly, ScenarioError> {
    let text = "[topology]\nkind = \"single-switch\"\nhosts = 8\n[[workload]]\nkind = \"incast\"\nsenders = 7\nmessage = \"200KB\"\n";
    let overrides: Vec<String> = overrides.iter().map(ToString::to_string).collect();
    let scenario = Laboratory::new().read("test", text, None, &overrides)?;
    Assembly::new(&scenario)
}

fn run(assembly: &Assembly, threads: usize) -> (Finished, Capture) {
    let plan = assembly.capture.as_ref().unwrap();
    let options = RunOptions {
        threads: threads.into(),
        on_progress: &mut |_| RunDecision::Continue,
        on_flow: &mut |_, _, _| (),
    };
    let mut recorders = assembly.per_domain(|| CaptureRecorder::new(plan));
    let finished = assembly.run(options, Watch::by(&mut recorders));
    (finished, merge_all(recorders).unwrap().into_capture())
}

fn decoded(assembly: &Assembly, capture: &Capture) -> Vec<(CapturedFrame, Decoded)> {
    let mut bytes = Vec::new();
    let decode = |frame: &CapturedFrame| {
        let length = assembly.frame(frame, &mut bytes);
        assert_eq!(bytes.len(), length, "whole frames");
        (*frame, decode(&bytes).unwrap())
    };
    capture.frames.iter().map(decode).collect()
}

fn rocev2(frames: &[(CapturedFrame, Decoded)]) -> Vec<(CapturedFrame, Received)> {
    let received = |(frame, decoded): &(CapturedFrame, Decoded)| match decoded {
        Decoded::Rocev2(received) => Some((*frame, *received)),
        _ => None,
    };
    frames.iter().filter_map(received).collect()
}

fn refused(place: &str) -> String {
    let key = format!("observe.trace.pcap=[\"{place}\"]");
    assembly(&[&key]).unwrap_err().to_string()
}

#[test]
fn places_are_hosts_and_links() {
    let places = "observe.trace.pcap=[\"link:switch-host5\",\"host:5\",\"host:0\"]";
    let plan = assembly(&[places]).unwrap().capture.unwrap();
    let names: Vec<&str> = plan
        .places
        .iter()
        .map(|place| place.name.as_str())
        .collect();
    assert_eq!(
        names,
        [
            "switch-host5",
            "host5-switch",
            "host0-switch",
            "switch-host0"
        ]
    );
    assert_eq!(assembly(&[]).unwrap().capture, None);
}

#[test]
fn parallel_links_are_told_apart() {
    let text = "[topology]\nkind = \"dumbbell\"\n";
    let known = Laboratory::new().read("test", text, None, &[]).unwrap();
    let mut topology = Assembly::new(&known).unwrap().topology;
    let middle = topology
        .links_up()
        .find(|&link| {
            let (from, to) = topology.link_ends(link);
            topology.switch_index(from).is_some() && topology.switch_index(to).is_some()
        })
        .unwrap();
    let name = topology.link_name(middle);
    topology
        .cables
        .push(topology.cables[middle.cable()].clone());
    let settings = ObserveSettings {
        pcap: vec![format!("link:{name}")],
        ..Default::default()
    };
    let plan = CapturePlan::new(&settings, &topology, Format::Strack, None);
    let names: Vec<String> = plan
        .unwrap()
        .unwrap()
        .places
        .into_iter()
        .map(|p| p.name)
        .collect();
    assert_eq!(names, [name.clone(), format!("{name}#2")]);
}

#[test]
fn places_that_are_none_are_refused_with_a_way_out() {
    let known = "`clearway topology --links` shows those that are up";
    for (place, message, fix) in [
        (
            "host:8",
            "there is no host 8",
            "hosts are 0 to 7".to_string(),
        ),
        (
            "host:x",
            "there is no host x",
            "hosts are 0 to 7".to_string(),
        ),
        (
            "link:swich-host3",
            "there is no link `swich-host3`",
            format!("did you mean `switch-host3`? {known}"),
        ),
        (
            "link:nowhere",
            "there is no link `nowhere`",
            known.to_string(),
        ),
    ] {
        let expected = format!(
            "--set observe.trace.pcap=[\"{place}\"]: `observe.trace.pcap`: {message}\n  fix: {fix}"
        );
        assert_eq!(refused(place), expected);
    }
    assert!(refused("leaf0-spine2").contains("`leaf0-spine2` is no place"));
    for key in ["trace.pcap-snap=95B", "trace.pcap-frames=0", "trace.pcap=3"] {
        let error = assembly(&[&format!("observe.{key}")]).unwrap_err();
        assert!(error.to_string().contains("  fix: "), "{error}");
    }
}

#[test]
fn the_first_frames_are_kept_whatever_the_order() {
    let plan = |limit| {
        let places = "observe.trace.pcap=[\"host:0\"]";
        let limit = format!("observe.trace.pcap-frames={limit}");
        assembly(&[places, &limit]).unwrap().capture.unwrap()
    };
    let link = plan(1).places[0].link;
    let packet = Packet {
        stamp: Time::ZERO,
        flow: FlowId(0),
        src: HostId(0),
        dst: HostId(1),
        header_hash: 0,
        size: 64,
        source_port: 0,
        class: Class::CONTROL,
        queue_pair: 0,
        ecn: false,
        via: 0,
        header: Header::Notification,
    };
    let mut times: Vec<u64> = (0..20_000).collect();
    let mut random = RandomStream::new(3, Purpose::Paths, 0);
    for last in (1..times.len()).rev() {
        times.swap(last, random.next_u32() as usize % (last + 1));
    }
    for limit in [1, 100, 5000, 20_000, 30_000] {
        let plan = plan(limit);
        let mut parts = [CaptureRecorder::new(&plan), CaptureRecorder::new(&plan)];
        for (index, &time) in times.iter().enumerate() {
            parts[index % 2].on_departure(Time::from_ps(time), link, &packet);
            assert!(parts[0].frames.len() <= limit + SPARE.max(limit / 4));
        }
        let capture = merge_all(parts).unwrap().into_capture();
        let kept: Vec<u64> = capture
            .frames
            .iter()
            .map(|frame| frame.time.as_ps())
            .collect();
        assert_eq!(kept, (0..20_000.min(limit as u64)).collect::<Vec<_>>());
        assert_eq!(
            capture.counts()[0],
            (20_000, 20_000u64.saturating_sub(limit as u64))
        );
        assert_eq!(capture.counts()[1], (0, 0));
    }
}

/// Both directions of every cable are captured: each packet is seen when its host sends it and when the switch sends it.
#[test]
fn captures_agree_with_the_counters_of_the_run() {
    let hosts: Vec<String> = (0..8).map(|host| format!("\"host:{host}\"")).collect();
    let places = format!("observe.trace.pcap=[{}]", hosts.join(","));
    let overrides = [
        places.as_str(),
        "transport.kind=rocev2",
        "switch.kind=lossy",
        "switch.ecn.pmax=1.0",
        "switch.queue=100KB",
        "switch.ecn.kmin=10KB",
        "switch.ecn.kmax=80KB",
    ];
    let assembly = assembly(&overrides).unwrap();
    let (finished, capture) = run(&assembly, 1);
    assert!(finished.links.dropped > 0 && finished.links.marked > 0);
    let frames = rocev2(&decoded(&assembly, &capture));
    assert_eq!(frames.len(), capture.frames.len());
    let plan = assembly.capture.as_ref().unwrap();
    let sent_by_host = |frame: &CapturedFrame| plan.places[frame.place].name.starts_with("host");
    let count = |wanted: &dyn Fn(&Received) -> bool| {
        let from_hosts = frames.iter().filter(|(frame, _)| sent_by_host(frame));
        from_hosts.filter(|(_, received)| wanted(received)).count() as u64
    };
    let endpoints = &finished.endpoints;
    assert_eq!(count(&|r| r.transport.is_send()), endpoints.data_sent);
    assert_eq!(count(&|r| r.transport.is_nak()), endpoints.nacks_sent);
    assert_eq!(
        count(&|r| r.transport.is_notification()),
        endpoints.notifications_sent
    );
    assert!(endpoints.nacks_sent > 0 && endpoints.notifications_sent > 0);
    let delivered = frames.iter().filter(|(frame, _)| !sent_by_host(frame));
    assert_eq!(delivered.count() as u64, finished.links.delivered);
    let marked = frames
        .iter()
        .filter(|(_, received)| received.network.marked);
    assert_eq!(marked.count() as u64, finished.links.marked);
    assert!(
        capture
            .frames
            .windows(2)
            .all(|pair| pair[0].key() < pair[1].key())
    );
}

#[test]
fn the_last_acknowledgement_says_that_the_message_is_there() {
    let overrides = [
        "observe.trace.pcap=[\"host:0\"]",
        "transport.kind=rocev2",
        "transport.qps=2",
    ];
    let assembly = assembly(&overrides).unwrap();
    let (_, capture) = run(&assembly, 1);
    let mut numbers: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for (_, received) in rocev2(&decoded(&assembly, &capture)) {
        if let Some((_, number)) = received.transport.acknowledgement {
            numbers
                .entry(received.transport.destination)
                .or_default()
                .push(number);
        }
    }
    // Seven flows of two queue pairs. 100 000 bytes in packets of 4096 are 25.
    assert_eq!(numbers.len(), 14);
    for numbers in numbers.values() {
        assert!(numbers.len() >= 25, "{numbers:?}");
        assert!(numbers.is_sorted());
        assert_eq!((numbers[0], *numbers.last().unwrap()), (0, 1));
    }
}

#[test]
fn threads_change_no_capture_and_a_limit_only_shortens_it() {
    let leaves = [
        "topology.kind=leaf-spine",
        "topology.hosts=16",
        "topology.hosts-per-leaf=4",
        "workload.senders=15",
        "observe.trace.pcap=[\"host:0\",\"host:7\",\"link:spine0-leaf0\"]",
    ];
    let whole = assembly(&leaves).unwrap();
    let (_, capture) = run(&whole, 1);
    assert!(capture.frames.len() > 1000);
    assert_eq!(run(&whole, 3).1, capture);
    let limited = [&leaves[..], &["observe.trace.pcap-frames=300"]].concat();
    let (_, first) = run(&assembly(&limited).unwrap(), 2);
    assert_eq!(first.frames, capture.frames[..300]);
    assert_eq!(first.seen, capture.seen);
}

#[test]
fn pause_frames_leave_before_they_hold_anything_back() {
    let overrides = [
        "switch.kind=shared-buffer",
        "switch.buffer=3MB",
        "switch.pfc.reaction=100ns",
        "switch.pfc.headroom=150KB",
        "transport.kind=rocev2",
        "workload.message=1MB",
        "observe.trace.pcap=[\"host:3\"]",
    ];
    let assembly = assembly(&overrides).unwrap();
    let (finished, capture) = run(&assembly, 1);
    let frames = decoded(&assembly, &capture);
    let pauses: Vec<(Time, ClassSet)> = frames
        .iter()
        .filter_map(|(frame, decoded)| match decoded {
            Decoded::Pause(classes) => Some((frame.time, *classes)),
            _ => None,
        })
        .collect();
    let plan = assembly.capture.as_ref().unwrap();
    let sender = plan
        .places
        .iter()
        .position(|place| place.name == "host3-switch")
        .unwrap();
    let link = plan.places[sender].link;
    let paused = finished
        .pauses
        .iter()
        .find(|paused| paused.link == link)
        .unwrap();
    let holds = pauses
        .iter()
        .filter(|(_, classes)| classes.contains(Class::DATA));
    assert_eq!(holds.count() as u64, paused.pauses);
    // While a pause is in effect, no data leaves except the packet on the wire.
    let delay = plan.places[1 - sender].effect;
    assert_eq!(
        delay,
        assembly.topology.link_delay(opposite(link)) + Span::from_ns(100)
    );
    let data: Vec<Time> = frames
        .iter()
        .filter(|(frame, decoded)| match decoded {
            Decoded::Rocev2(received) => frame.place == sender && received.transport.is_send(),
            _ => false,
        })
        .map(|(frame, _)| frame.time)
        .collect();
    for pair in pauses
        .windows(2)
        .filter(|pair| pair[0].1.contains(Class::DATA))
    {
        let (from, to) = (pair[0].0 + delay, pair[1].0 + delay);
        let between = data.iter().filter(|&&time| time > from && time < to);
        assert!(between.count() <= 1, "{from:?} to {to:?}");
    }
}

#[test]
fn a_sequence_graph_has_every_packet_of_a_flow() {
    use clearway_results::SequenceKind as Kind;
    for transport in ["strack", "rocev2", "dctcp"] {
        let kind = format!("transport.kind={transport}");
        let overrides = [
            &kind,
            "topology.bit-error-rate=1e-6",
            "observe.trace.pcap=[\"host:1\", \"host:0\"]",
        ];
        let assembly = assembly(&overrides).unwrap();
        let (finished, capture) = run(&assembly, 1);
        let plan = assembly.capture.as_ref().unwrap();
        let graphs = capture.sequences(plan, &assembly.topology);
        assert_eq!(graphs.len(), MOST_GRAPHS, "{transport}");
        let of_host = graphs.iter().find(|graph| graph.src == 1);
        let graph = of_host.expect("host 1 sends, and is captured at both ends");
        let count = |kinds: &[Kind]| {
            let own = graph.points.iter();
            own.filter(|point| kinds.contains(&point.kind)).count() as u64
        };
        let flow = &finished.flows[graph.flow as usize].statistics;
        let fresh = flow.packets - flow.retransmitted;
        assert_eq!(count(&[Kind::Sent]), fresh, "{transport}");
        assert_eq!(
            count(&[Kind::Retransmitted]),
            flow.retransmitted,
            "{transport}"
        );
        assert!(flow.retransmitted > 0, "{transport}");
        // Every number arrives, and is acknowledged in the end.
        let arrived: std::collections::BTreeSet<u32> = graph
            .points
            .iter()
            .filter(|point| [Kind::Received, Kind::Marked].contains(&point.kind))
            .map(|point| point.psn)
            .collect();
        assert_eq!(arrived.len() as u64, fresh, "{transport}");
        let acknowledged = graph
            .points
            .iter()
            .filter(|point| [Kind::Acknowledged, Kind::MarkEchoed].contains(&point.kind));
        let last = acknowledged.map(|point| point.psn).max();
        assert_eq!(last, Some(fresh as u32), "{transport}");
        assert!(graph.points.is_sorted_by_key(|point| point.time));
    }
}
