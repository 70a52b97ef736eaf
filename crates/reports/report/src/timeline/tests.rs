use super::*;
use crate::observed::{Curve, EventLog, LinkRow, Metric, NodeRow, RunObservations, TraceRecord};
use crate::sample;
use clearway_units::{Rate, Span};
use insta::assert_snapshot;
use proptest::prelude::*;
use std::fmt::Write as _;

/// A field as seen by a reader that does not know the message.
#[derive(Debug, Clone, PartialEq)]
enum Field<'a> {
    Number(u64),
    Fixed(u64),
    Bytes(&'a [u8]),
}

impl<'a> Field<'a> {
    fn number(&self) -> u64 {
        match self {
            Self::Number(value) | Self::Fixed(value) => *value,
            Self::Bytes(_) => panic!("bytes instead of a number"),
        }
    }
    fn bytes(&self) -> &'a [u8] {
        match self {
            Self::Bytes(bytes) => bytes,
            _ => panic!("a number instead of bytes"),
        }
    }
    fn text(&self) -> String {
        String::from_utf8(self.bytes().to_vec()).unwrap()
    }
    fn message(&self) -> Fields<'a> {
        Fields::read(self.bytes())
    }
}

struct Fields<'a>(Vec<(u64, Field<'a>)>);

impl<'a> Fields<'a> {
    fn read(mut rest: &'a [u8]) -> Self {
        let mut fields = Vec::new();
        while !rest.is_empty() {
            let key = varint(&mut rest);
            let field = match key & 7 {
                0 => Field::Number(varint(&mut rest)),
                1 => {
                    let (value, after) = rest.split_first_chunk().unwrap();
                    rest = after;
                    Field::Fixed(u64::from_le_bytes(*value))
                }
                2 => {
                    let (bytes, after) = {
                        let length = varint(&mut rest) as usize;
                        rest.split_at(length)
                    };
                    rest = after;
                    Field::Bytes(bytes)
                }
                wire => panic!("wire type {wire}"),
            };
            fields.push((key >> 3, field));
        }
        Self(fields)
    }
    fn all(&self, number: u64) -> impl Iterator<Item = &Field<'a>> {
        let fields = self.0.iter();
        fields.filter_map(move |(own, field)| (*own == number).then_some(field))
    }
    fn find(&self, number: u64) -> Option<&Field<'a>> {
        assert!(self.all(number).count() <= 1, "field {number} repeats");
        self.all(number).next()
    }
    fn text(&self, number: u64) -> Option<String> {
        self.find(number).map(Field::text)
    }
    fn number(&self, number: u64) -> Option<u64> {
        self.find(number).map(Field::number)
    }
}

fn varint(rest: &mut &[u8]) -> u64 {
    let mut value = 0;
    for shift in (0..).step_by(7) {
        let (byte, after) = rest.split_first().unwrap();
        *rest = after;
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            break;
        }
    }
    value
}

/// Event of the trace, with the name of its track.
#[derive(Debug, Clone, PartialEq)]
struct Event {
    ns: u64,
    track: String,
    kind: u64,
    name: Option<String>,
    arguments: BTreeMap<String, u64>,
    value: Option<f64>,
    arrows: (Vec<u64>, Vec<u64>),
}

/// A decoded trace: tracks as `process/track`, with the other values of their descriptors, and events.
struct Decoded {
    tracks: Vec<(String, String)>,
    events: Vec<Event>,
}

impl Decoded {
    fn from_record(record: &RunRecord) -> Self {
        let mut bytes = Vec::new();
        write_timeline(&mut bytes, record).unwrap();
        let mut names: BTreeMap<u64, String> = BTreeMap::new();
        let mut decoded = Self {
            tracks: Vec::new(),
            events: Vec::new(),
        };
        for (number, packet) in Fields::read(&bytes).0 {
            assert_eq!(number, 1, "a trace is made of packets");
            let packet = packet.message();
            assert_eq!(packet.number(10), Some(SEQUENCE));
            match (packet.find(60), packet.find(11)) {
                (Some(descriptor), None) => {
                    let (uuid, name, more) = describe(&descriptor.message(), &names);
                    assert!(uuid != 0 && !names.contains_key(&uuid), "{uuid} is taken");
                    assert!(
                        !names.values().any(|known| *known == name),
                        "{name} is taken"
                    );
                    names.insert(uuid, name.clone());
                    decoded.tracks.push((name, more));
                }
                (None, Some(event)) => {
                    let ns = packet.number(8).unwrap();
                    decoded
                        .events
                        .push(read_event(ns, &event.message(), &names));
                }
                other => panic!("a packet with {other:?}"),
            }
        }
        assert!(decoded.events.is_sorted_by_key(|event| event.ns));
        decoded
    }

    fn on(&self, track: &str) -> Vec<Event> {
        let events = self.events.iter().filter(|event| event.track == track);
        events.cloned().collect()
    }

    /// The slices of each track; panics if they do not follow one another.
    fn slices(&self) -> Vec<(Event, Option<u64>)> {
        let mut slices: Vec<(Event, Option<u64>)> = Vec::new();
        let mut open: BTreeMap<&str, usize> = BTreeMap::new();
        for event in &self.events {
            match event.kind {
                1 => {
                    let clash = open.insert(&event.track, slices.len());
                    assert!(clash.is_none(), "{event:?} begins within another one");
                    slices.push((event.clone(), None));
                }
                2 => {
                    let begun = open.remove(event.track.as_str());
                    slices[begun.expect("what ends has begun")].1 = Some(event.ns);
                }
                _ => {}
            }
        }
        slices
    }
}

fn describe(fields: &Fields<'_>, names: &BTreeMap<u64, String>) -> (u64, String, String) {
    let uuid = fields.number(1).unwrap();
    if let Some(process) = fields.find(3) {
        assert_eq!(fields.number(11), Some(3), "children in the given order");
        let process = process.message();
        let pid = process.number(1).unwrap();
        return (uuid, process.text(6).unwrap(), format!("process {pid}"));
    }
    let parent = &names[&fields.number(5).unwrap()];
    let name = format!("{parent}/{}", fields.text(2).unwrap());
    assert_eq!(fields.number(15), Some(2), "{name} may be merged");
    let mut more = format!("rank {}", fields.number(12).unwrap());
    if let Some(counter) = fields.find(8) {
        let counter = counter.message();
        let unit = match (counter.number(3), counter.text(6)) {
            (Some(2), None) => "count".into(),
            (Some(3), None) => "bytes".into(),
            (None, Some(unit)) => unit,
            (None, None) => "no unit".into(),
            other => panic!("{other:?}"),
        };
        let scale = counter.text(7).unwrap();
        let _ = write!(more, ", counts {unit} on the scale of {scale}");
    }
    (uuid, name, more)
}

fn read_event(ns: u64, fields: &Fields<'_>, names: &BTreeMap<u64, String>) -> Event {
    let mut arguments = BTreeMap::new();
    for annotation in fields.all(4) {
        let annotation = annotation.message();
        let name = annotation.text(10).unwrap();
        // Only numbers are compared; texts and doubles only have to be present.
        let given = [3, 5, 6]
            .into_iter()
            .filter_map(|kind| annotation.find(kind));
        assert_eq!(given.count(), 1, "{name}");
        if let Some(value) = annotation.number(3) {
            assert!(arguments.insert(name, value).is_none());
        }
    }
    let ids = |field| fields.all(field).map(Field::number).collect();
    Event {
        ns,
        track: names[&fields.number(11).unwrap()].clone(),
        kind: fields.number(9).unwrap(),
        name: fields.text(23),
        arguments,
        value: fields.number(44).map(f64::from_bits),
        arrows: (ids(47), ids(48)),
    }
}

fn node(name: &str, tier: Option<u8>) -> NodeRow {
    NodeRow::new(name, tier)
}

fn link(name: &str, from: u32, to: u32) -> LinkRow {
    LinkRow::new(name, (from, to), Rate::from_bps(400_000_000_000))
}

fn happens(ps: u64, event: TraceEvent) -> TraceRecord {
    TraceRecord {
        time: Time::from_ps(ps),
        event,
    }
}

fn curve(metric: Metric, subject: Subject, values: &[f64]) -> Curve {
    Curve {
        metric,
        subject,
        values: values.to_vec(),
    }
}

/// A run with all kinds of events: five flows, of which one does not end, one does not start, and two of host 0 overlap.
fn eventful() -> RunRecord {
    let mut record = sample::incomplete_run();
    record.flows.truncate(5);
    record.flows.push(FlowRow {
        start: None,
        ..sample::flow(5, None)
    });
    record.flows[1].src = 0;
    record.observed = Some(RunObservations {
        times: [1000, 2500, 4000].map(Time::from_ps).into(),
        curves: vec![
            curve(Metric::QueueDepth, Subject::Link(1), &[0.0, 4160.0, 4160.0]),
            curve(Metric::LinkRate, Subject::Link(1), &[1.5e9, 4e11, 0.0]),
            curve(Metric::Window, Subject::Flow(1), &[1e6, 2e6, 3e6]),
            curve(Metric::Fairness, Subject::Run, &[f64::NAN, 1.0, 0.5]),
        ],
        // Hosts need not come first.
        nodes: [
            node("leaf0", Some(0)),
            node("host0", None),
            node("host1", None),
        ]
        .into_iter()
        .chain((2..6).map(|host| node(&format!("host{host}"), None)))
        .collect(),
        links: vec![link("host0-leaf0", 1, 0), link("leaf0-host1", 0, 2)],
        ..RunObservations::default()
    });
    let loss = |flow, cause, packets| TraceEvent::LossDetected {
        flow,
        cause,
        packets,
    };
    let pause = |classes| TraceEvent::Pause { link: 0, classes };
    record.events = Some(EventLog {
        records: vec![
            happens(2_000_000, TraceEvent::Dropped { link: 1, flow: 1 }),
            happens(3_000_000, pause(0b1000)),
            happens(4_000_000, pause(0b11000)),
            happens(4_500_000, pause(0b11000)),
            happens(5_000_001, pause(0)),
            happens(5_000_001, pause(0b1000)),
            happens(5_000_001, pause(0)),
            happens(6_000_000, loss(1, "timeout", 3)),
            happens(7_000_000, loss(99, "probe", 1)),
            happens(8_000_000, pause(0b1000)),
        ],
        left_out: 12,
        dependencies: vec![(0, 1), (0, 2), (2, 5), (1, 2)],
    });
    record
}

/// The whole trace in words.
fn in_words(record: &RunRecord) -> String {
    let decoded = Decoded::from_record(record);
    let mut text = String::new();
    for (name, more) in &decoded.tracks {
        let _ = writeln!(text, "{name}: {more}");
    }
    for event in &decoded.events {
        let kind = ["begin", "end", "instant", "counter"][event.kind as usize - 1];
        let _ = write!(text, "{:>6} {kind} {}", event.ns, event.track);
        if let Some(name) = &event.name {
            let _ = write!(text, ": {name}");
        }
        if let Some(value) = event.value {
            let _ = write!(text, " = {value}");
        }
        if event.kind == 3 {
            let _ = write!(text, " {:?}", event.arguments);
        }
        let (leaving, arriving) = &event.arrows;
        if !leaving.is_empty() || !arriving.is_empty() {
            let _ = write!(text, " arrows out {leaving:?} in {arriving:?}");
        }
        text.push('\n');
    }
    text
}

#[test]
fn everything_has_its_place() {
    assert_snapshot!(in_words(&eventful()), @r#"
    run: process 1
    run/scenario: rank 0
    run/losses: rank 1
    run/jain_index: rank 2, counts no unit on the scale of jain_index
    leaf0: process 2
    leaf0/leaf0-host1 drops: rank 0
    leaf0/leaf0-host1 queue_bytes: rank 1, counts bytes on the scale of queue_bytes
    leaf0/leaf0-host1 link_bps: rank 2, counts bit/s on the scale of link_bps
    host0: process 3
    host0/flows: rank 0
    host0/flows 2: rank 1
    host0/host0-leaf0 pauses: rank 2
    host0/flow 1 window_bytes: rank 3, counts bytes on the scale of window_bytes
    host2: process 5
    host2/flows: rank 0
    host3: process 6
    host3/flows: rank 0
    host4: process 7
    host4/flows: rank 0
         0 counter leaf0/leaf0-host1 link_bps = 1500000000
         0 begin run/scenario: permutation-4
         0 begin host0/flows: flow 0 to host1 arrows out [1, 2] in []
         1 counter leaf0/leaf0-host1 queue_bytes = 0
         1 counter leaf0/leaf0-host1 link_bps = 400000000000
         1 counter host0/flow 1 window_bytes = 1000000
         1 counter run/jain_index = 1
         2 counter leaf0/leaf0-host1 queue_bytes = 4160
         2 counter leaf0/leaf0-host1 link_bps = 0
         2 counter host0/flow 1 window_bytes = 2000000
         2 counter run/jain_index = 0.5
         4 counter host0/flow 1 window_bytes = 3000000
      1000 begin host0/flows 2: flow 1 to host2 arrows out [4] in [1]
      2000 instant leaf0/leaf0-host1 drops: drop {"flow": 1}
      2000 begin host2/flows: flow 2 to host3 arrows out [] in [2, 4]
      3000 begin host3/flows: flow 3 to host4
      3000 begin host0/host0-leaf0 pauses: paused: class 3
      4000 end host0/host0-leaf0 pauses
      4000 begin host4/flows: flow 4 to host5
      4000 begin host0/host0-leaf0 pauses: paused: classes 3, 4
      5000 end host0/host0-leaf0 pauses
      5000 begin host0/host0-leaf0 pauses: paused: class 3
      5000 end host0/host0-leaf0 pauses
      6000 instant host0/flows 2: loss: timeout {"flow": 1, "packets": 3}
      7000 instant run/losses: loss: probe {"flow": 99, "packets": 1}
      8000 begin host0/host0-leaf0 pauses: paused: class 3
     48881 end host0/flows
     51000 end host0/flows 2
     64234 end host3/flows
     99762 end host2/flows
    100762 end run/scenario
    "#);
}

#[test]
fn curves_of_nodes_are_counters_of_their_processes() {
    let mut record = sample::scale_up_run();
    record.observed = Some(RunObservations {
        times: [1000, 2000].map(Time::from_ps).into(),
        curves: vec![
            curve(Metric::RequestTokens, Subject::Node(0), &[12.0, -3.0]),
            curve(Metric::ReductionEntries, Subject::Node(1), &[0.0, 7.0]),
        ],
        nodes: vec![node("gpu0", None), node("leaf0", Some(0))],
        ..RunObservations::default()
    });
    assert_snapshot!(in_words(&record), @"
    run: process 1
    run/scenario: rank 0
    gpu0: process 2
    gpu0/request_tokens_flits: rank 0, counts flits on the scale of request_tokens_flits
    leaf0: process 3
    leaf0/reduction_table_entries: rank 0, counts count on the scale of reduction_table_entries
         0 begin run/scenario: reduce-16
         1 counter gpu0/request_tokens_flits = 12
         1 counter leaf0/reduction_table_entries = 0
         2 counter gpu0/request_tokens_flits = -3
         2 counter leaf0/reduction_table_entries = 7
      1100 end run/scenario
    ");
}

#[test]
fn a_run_that_was_not_watched_has_flows() {
    let decoded = Decoded::from_record(&sample::run());
    let names: Vec<&str> = decoded.tracks.iter().map(|(name, _)| &name[..]).collect();
    let hosts = (0..4).flat_map(|host| [format!("host{host}"), format!("host{host}/flows")]);
    let expected: Vec<String> = ["run".into(), "run/scenario".into()]
        .into_iter()
        .chain(hosts)
        .collect();
    assert_eq!(names, expected);
    assert_eq!(decoded.slices().len(), 5);
}

#[test]
fn slices_say_what_the_table_says() {
    let record = eventful();
    let decoded = Decoded::from_record(&record);
    let slices = decoded.slices();
    let run = &slices[0];
    assert_eq!(run.0.name.as_deref(), Some("permutation-4"));
    assert_eq!(run.0.arguments["seed"], 1);
    assert_eq!(run.0.arguments["events_left_out"], 12);
    assert_eq!(run.0.arguments["flows_never_started"], 1);
    assert_eq!((run.0.ns, run.1), (0, Some(100_762)));
    compare_flows(&record, &slices);
}

/// Checks that every flow that started has a slice with its numbers.
fn compare_flows(record: &RunRecord, slices: &[(Event, Option<u64>)]) {
    let mut found: Vec<_> = slices
        .iter()
        .filter(|(event, _)| event.arguments.contains_key("ideal_fct_ps"))
        .map(|(event, end)| (event.arguments["flow"], event, *end))
        .collect();
    found.sort_by_key(|(flow, ..)| *flow);
    let mut flows: Vec<&FlowRow> = record.flows.iter().collect();
    flows.retain(|flow| flow.start.is_some());
    assert_eq!(found.len(), flows.len());
    for (flow, (_, event, end)) in flows.into_iter().zip(found) {
        let ns = |time: Time| time.as_ps() / 1000;
        assert_eq!(event.ns, flow.start.map(ns).unwrap());
        assert_eq!(end, flow.finish.map(ns));
        assert!(event.track.starts_with(&format!("host{}/", flow.src)));
        let expected = [
            ("flow", Some(u64::from(flow.flow))),
            ("label", Some(flow.label)),
            ("src", Some(u64::from(flow.src))),
            ("dst", Some(u64::from(flow.dst))),
            ("bytes", Some(flow.bytes)),
            ("start_ps", flow.start.map(Time::as_ps)),
            ("finish_ps", flow.finish.map(Time::as_ps)),
            ("ideal_fct_ps", Some(flow.ideal_fct.as_ps())),
            ("packets", Some(flow.packets)),
            ("retransmits", Some(flow.retransmits)),
            ("marks", Some(flow.marks)),
            ("probes", Some(flow.probes)),
            ("timeouts", Some(flow.timeouts)),
        ];
        let expected: BTreeMap<String, u64> = expected
            .into_iter()
            .filter_map(|(name, value)| Some((name.into(), value?)))
            .collect();
        assert_eq!(event.arguments, expected);
    }
}

#[test]
fn counters_keep_their_value_until_the_next() {
    let decoded = Decoded::from_record(&eventful());
    let values = |track| {
        let events = decoded.on(track).into_iter();
        let values: Vec<(u64, f64)> = events
            .map(|event| (event.ns, event.value.unwrap()))
            .collect();
        values
    };
    // At the ends of the intervals; the third value equals the second.
    let depth = values("leaf0/leaf0-host1 queue_bytes");
    assert_eq!(depth, [(1, 0.0), (2, 4160.0)]);
    // Over the intervals.
    let rate = values("leaf0/leaf0-host1 link_bps");
    assert_eq!(rate, [(0, 1.5e9), (1, 4e11), (2, 0.0)]);
    assert_eq!(values("run/jain_index"), [(1, 1.0), (2, 0.5)]);
    assert_eq!(values("host0/flow 1 window_bytes").len(), 3);
}

#[test]
fn a_failing_sink_is_reported() {
    struct Full;
    impl Write for Full {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(io::ErrorKind::StorageFull.into())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let error = write_timeline(Full, &sample::run()).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::StorageFull);
}

proptest! {
    /// Flows of few hosts in a short time: they overlap, touch, have zero length or do not end.
    #[test]
    fn flows_never_overlap_on_a_track(
        flows in prop::collection::vec((0u32..3, 0u64..6_000, prop::option::of(0u64..4_000)), 0..60)
    ) {
        let mut record = sample::run();
        record.flows = (0..).zip(&flows).map(|(number, &(src, start, length))| {
            let start = Time::from_ps(start * 500);
            FlowRow {
                src,
                start: Some(start),
                finish: length.map(|length| start + Span::from_ps(length * 500)),
                ..sample::flow(number, None)
            }
        }).collect();
        let decoded = Decoded::from_record(&record);
        compare_flows(&record, &decoded.slices());
        // At most as many tracks as concurrent flows.
        for host in 0..3 {
            let prefix = format!("host{host}/");
            let tracks = decoded.tracks.iter().filter(|(name, _)| name.starts_with(&prefix)).count();
            let own = || record.flows.iter().filter(|flow| flow.src == host);
            let most = own().map(|new| own().filter(|old| {
                let end = old.finish.unwrap_or(Time::NEVER);
                old.start <= new.start && (Some(end) > new.start || old.flow == new.flow)
            }).count()).max();
            prop_assert!(tracks <= most.unwrap_or(0), "{tracks} tracks for {most:?} flows at once");
        }
    }
}
