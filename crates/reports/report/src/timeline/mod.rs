//! `trace.perfetto`: the run as a timeline for the [Perfetto](https://ui.perfetto.dev) viewer, in the viewer's binary format.
//!
//! | in the viewer | meaning |
//! |---|---|
//! | process | a host or a switch; one more process, for the run, holds everything else |
//! | slice on a track `flows`, `flows 2`, … of the sending host | a flow, from ready to its last acknowledgement; open if it did not complete |
//! | instant within such a slice | packets declared lost, to be retransmitted |
//! | arrow | a flow that another flow started |
//! | slice on a track `LINK pauses` of the node that sends on the link | flow control pauses classes of the link |
//! | instant on a track `LINK drops` of that node | a packet dropped in front of the link, or lost on it |
//! | counter | a curve of [`RunObservations`](crate::RunObservations), as in `series.parquet`; node curves are in the node's process |
//!
//! Only events have tracks: a host that sends nothing and is not sampled does not appear.
//!
//! **Time.** The viewer counts nanoseconds. Picoseconds are rounded down, which preserves the order. Events within one nanosecond are in
//! the file in their true order, ends before beginnings, and readers keep this order. Exact picoseconds are among the arguments of a
//! slice. The slice of the whole run begins at zero, so the viewer's time is the simulated time.
//!
//! **Overlap.** Slices of one track must nest, but flows may overlap. Concurrent flows of a host therefore lie on different tracks, each
//! on the first track that is free.
//!
//! **Counters** keep their value until the next one. A value over a whole interval is therefore placed at the beginning of the interval,
//! and a value at the end of an interval at its end. Values equal to the previous one, and NaN, are left out.

mod message;
mod tracks;

#[cfg(test)]
mod tests;

use crate::observed::{Subject, TraceEvent};
use crate::record::{FlowRow, RunRecord};
use clearway_units::Time;
use message::Message;
use std::collections::BTreeMap;
use std::io::{self, BufWriter, Write};
use tracks::{Lanes, Process, Track, TrackId, Tracks};

/// The name of the file in a result folder.
pub const FILE_NAME: &str = "trace.perfetto";

/// Sequence number of the only writer of packets.
const SEQUENCE: u64 = 1;

/// Writes `record` to `sink` as a Perfetto trace, in the format of the [module](self). The same record gives the same bytes.
///
/// # Errors
/// If `sink` fails.
pub fn write_timeline(sink: impl Write, record: &RunRecord) -> io::Result<()> {
    let mut timeline = Timeline::new(record);
    timeline.add_run();
    timeline.add_flows();
    timeline.add_events();
    timeline.add_curves();
    timeline.write(BufWriter::new(sink))
}

/// Subject of a slice or an instant.
#[derive(Debug, Clone, Copy)]
enum What<'a> {
    Run,
    Flow(&'a FlowRow),
    /// Paused classes, one bit each.
    Pause(u8),
    /// A dropped packet of a flow.
    Drop(u32),
    Loss {
        flow: u32,
        cause: &'a str,
        packets: u32,
    },
}

/// Event on a track.
#[derive(Debug, Clone, Copy)]
enum Step<'a> {
    End,
    /// A slice without duration: a beginning directly followed by an end.
    Blink(What<'a>),
    Value(f64),
    Instant(What<'a>),
    Begin(What<'a>),
}

impl Step<'_> {
    /// Order at one instant. Ends come first, so that a track is free for the next slice.
    const fn rank(&self) -> u8 {
        match self {
            Self::End => 0,
            Self::Blink(_) => 1,
            Self::Value(_) => 2,
            Self::Instant(_) => 3,
            Self::Begin(_) => 4,
        }
    }
}

#[derive(Debug, Clone, Copy)]
struct TrackEvent<'a> {
    time: Time,
    track: TrackId,
    step: Step<'a>,
}

/// The arrows to and from a flow, by number.
#[derive(Debug, Clone, Default)]
struct Arrows {
    leaving: Vec<u64>,
    arriving: Vec<u64>,
}

/// Tracks with their events.
struct Timeline<'a> {
    record: &'a RunRecord,
    tracks: Tracks<'a>,
    track_events: Vec<TrackEvent<'a>>,
    /// Messages of flows that have started, in the order of flow and start, with their tracks.
    places: Vec<(u32, Time, TrackId)>,
    arrows: BTreeMap<u32, Arrows>,
}

impl<'a> Timeline<'a> {
    fn new(record: &'a RunRecord) -> Self {
        Self {
            record,
            tracks: Tracks::new(record.observed.as_ref()),
            track_events: Vec::new(),
            places: Vec::new(),
            arrows: BTreeMap::new(),
        }
    }

    fn add_run(&mut self) {
        let track = self.tracks.get_or_create(Process::Run, Track::Run);
        let end = Time::ZERO.saturating_add(self.record.simulated);
        self.slice(track, Time::ZERO, Some(end), What::Run);
    }

    /// Adds a slice; a slice without an end stays open.
    fn slice(&mut self, track: TrackId, begin: Time, end: Option<Time>, what: What<'a>) {
        let mut add = |time, step| self.track_events.push(TrackEvent { time, track, step });
        if end == Some(begin) {
            add(begin, Step::Blink(what));
            return;
        }
        add(begin, Step::Begin(what));
        if let Some(end) = end {
            add(end, Step::End);
        }
    }

    fn add_flows(&mut self) {
        let flows = self.record.flows.iter();
        let mut started: Vec<(Time, &FlowRow)> =
            flows.filter_map(|flow| Some((flow.start?, flow))).collect();
        started.sort_by_key(|&(start, _)| start);
        let mut lanes: BTreeMap<u32, Lanes> = BTreeMap::new();
        for (start, flow) in started {
            let end = flow.finish.unwrap_or(Time::NEVER);
            let lane = lanes.entry(flow.src).or_default().take(start, end);
            let host = self.tracks.host(flow.src);
            let track = self.tracks.get_or_create(host, Track::Flows(lane));
            self.slice(track, start, flow.finish, What::Flow(flow));
            self.places.push((flow.flow, start, track));
        }
        self.places.sort_by_key(|&(flow, start, _)| (flow, start));
    }

    /// The track of the message of `flow` that was in progress at `time`.
    fn place_of(&self, flow: u32, time: Time) -> Option<TrackId> {
        let after = self
            .places
            .partition_point(|&(number, start, _)| (number, start) <= (flow, time));
        let &(number, _, track) = self.places[..after].last()?;
        (number == flow).then_some(track)
    }

    fn add_events(&mut self) {
        let Some(log) = &self.record.events else {
            return;
        };
        let mut paused: BTreeMap<u32, (Time, u8)> = BTreeMap::new();
        for row in &log.records {
            match row.event {
                TraceEvent::Dropped { link, flow } => {
                    let track = self.tracks.of_link(link, Track::Drops(link));
                    self.instant(row.time, track, What::Drop(flow));
                }
                TraceEvent::LossDetected {
                    flow,
                    cause,
                    packets,
                } => {
                    let what = What::Loss {
                        flow,
                        cause,
                        packets,
                    };
                    let track = self.place_of(flow, row.time);
                    let track = track
                        .unwrap_or_else(|| self.tracks.get_or_create(Process::Run, Track::Losses));
                    self.instant(row.time, track, what);
                }
                TraceEvent::Pause { link, classes } => {
                    if paused.get(&link).is_some_and(|&(_, held)| held == classes) {
                        continue;
                    }
                    if let Some((begin, held)) = paused.remove(&link) {
                        self.pause(link, begin, Some(row.time), held);
                    }
                    if classes != 0 {
                        paused.insert(link, (row.time, classes));
                    }
                }
            }
        }
        for (link, (begin, held)) in paused {
            self.pause(link, begin, None, held);
        }
        // An arrow needs both ends.
        let known = |flow| {
            let at = self.places.partition_point(|&(number, ..)| number < flow);
            self.places.get(at).is_some_and(|place| place.0 == flow)
        };
        for (id, &(cause, effect)) in (1..).zip(&log.dependencies) {
            if known(cause) && known(effect) {
                self.arrows.entry(cause).or_default().leaving.push(id);
                self.arrows.entry(effect).or_default().arriving.push(id);
            }
        }
    }

    fn instant(&mut self, time: Time, track: TrackId, what: What<'a>) {
        let step = Step::Instant(what);
        self.track_events.push(TrackEvent { time, track, step });
    }

    fn pause(&mut self, link: u32, begin: Time, end: Option<Time>, classes: u8) {
        let track = self.tracks.of_link(link, Track::Pauses(link));
        self.slice(track, begin, end, What::Pause(classes));
    }

    fn add_curves(&mut self) {
        let Some(observed) = &self.record.observed else {
            return;
        };
        let flows = self.record.flows.iter();
        let senders: BTreeMap<u32, u32> = flows.map(|flow| (flow.flow, flow.src)).collect();
        let ends = || observed.times.iter().copied();
        let begins = [Time::ZERO].into_iter().chain(ends());
        let intervals: Vec<(Time, Time)> = begins.zip(ends()).collect();
        for curve in &observed.curves {
            let counter = Track::Counter(curve.metric, curve.subject);
            let track = match curve.subject {
                Subject::Run => self.tracks.get_or_create(Process::Run, counter),
                Subject::Link(link) => self.tracks.of_link(link, counter),
                Subject::Node(node) => self.tracks.get_or_create(Process::Node(node), counter),
                Subject::Flow(flow) => {
                    let host = senders.get(&flow).map(|&src| self.tracks.host(src));
                    self.tracks
                        .get_or_create(host.unwrap_or(Process::Run), counter)
                }
            };
            let mut last = None;
            for (&(begin, end), &value) in intervals.iter().zip(&curve.values) {
                if value.is_nan() || last == Some(value) {
                    continue;
                }
                last = Some(value);
                let time = if curve.metric.merge().is_over_interval() {
                    begin
                } else {
                    end
                };
                let step = Step::Value(value);
                self.track_events.push(TrackEvent { time, track, step });
            }
        }
    }

    fn write(mut self, mut sink: impl Write) -> io::Result<()> {
        for descriptor in self.tracks.descriptors() {
            put(&mut sink, Message::default(), 60, &descriptor)?;
        }
        self.track_events
            .sort_by_key(|event| (event.time, event.step.rank()));
        for track_event in &self.track_events {
            let event = |kind| {
                Message::default()
                    .number(9, kind)
                    .number(11, track_event.track.uuid())
            };
            let stamp = Message::default().number(8, track_event.time.as_ps() / 1000);
            match track_event.step {
                Step::Begin(what) => {
                    put(&mut sink, stamp, 11, &self.describe(event(1), what))?;
                }
                Step::End => put(&mut sink, stamp, 11, &event(2))?,
                Step::Blink(what) => {
                    put(&mut sink, stamp.clone(), 11, &self.describe(event(1), what))?;
                    put(&mut sink, stamp, 11, &event(2))?;
                }
                Step::Instant(what) => {
                    put(&mut sink, stamp, 11, &self.describe(event(3), what))?;
                }
                Step::Value(value) => put(&mut sink, stamp, 11, &event(4).double(44, value))?,
            }
        }
        sink.flush()
    }

    /// Adds name, category, arguments and arrows to an event.
    fn describe(&self, event: Message, what: What<'_>) -> Message {
        match what {
            What::Run => self.describe_run(event),
            What::Flow(flow) => self.describe_flow(event, flow),
            What::Pause(classes) => {
                let held = (0..8).filter(|class| classes & 1 << class != 0);
                let held: Vec<String> = held.map(|class| class.to_string()).collect();
                let (plural, held) = (if held.len() == 1 { "" } else { "es" }, held.join(", "));
                named(event, "pause", &format!("paused: class{plural} {held}"))
            }
            What::Drop(flow) => number(named(event, "drop", "drop"), "flow", u64::from(flow)),
            What::Loss {
                flow,
                cause,
                packets,
            } => {
                let event = named(event, "loss", &format!("loss: {cause}"));
                let event = number(event, "flow", u64::from(flow));
                number(event, "packets", u64::from(packets))
            }
        }
    }

    fn describe_run(&self, event: Message) -> Message {
        let record = self.record;
        let event = named(event, "run", &record.scenario.name);
        let event = text(event, "scenario_hash", &record.scenario.hash);
        let event = number(event, "seed", record.scenario.seed);
        let event = text(event, "version", &record.version);
        let event = text(event, "revision", &record.revision);
        let event = text(event, "digest", &record.digest);
        let idle = record.flows.iter().filter(|flow| flow.start.is_none());
        let event = number(event, "flows_never_started", idle.count() as u64);
        let left_out = record.events.as_ref().map(|all| all.left_out);
        number(event, "events_left_out", left_out.unwrap_or(0))
    }

    fn describe_flow(&self, event: Message, flow: &FlowRow) -> Message {
        let receiver = self.tracks.host_name(flow.dst);
        let name = format!("flow {} to {receiver}", flow.flow);
        let mut event = named(event, "flow", &name);
        let numbers = [
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
        for (name, value) in numbers {
            if let Some(value) = value {
                event = number(event, name, value);
            }
        }
        if let Some(slowdown) = flow.slowdown() {
            event = argument(event, "slowdown", |own| own.double(5, slowdown));
        }
        if let Some(arrows) = self.arrows.get(&flow.flow) {
            for &id in &arrows.leaving {
                event = event.fixed(47, id);
            }
            for &id in &arrows.arriving {
                event = event.fixed(48, id);
            }
        }
        event
    }
}

/// Writes `packet` with `content` as its field `field`.
fn put(sink: &mut impl Write, packet: Message, field: u32, content: &Message) -> io::Result<()> {
    let packet = packet.number(10, SEQUENCE).message(field, content);
    sink.write_all(Message::default().message(1, &packet).bytes())
}

fn named(event: Message, category: &str, name: &str) -> Message {
    event.text(22, category).text(23, name)
}

fn argument(event: Message, name: &str, value: impl FnOnce(Message) -> Message) -> Message {
    event.message(4, &value(Message::default().text(10, name)))
}

fn number(event: Message, name: &str, value: u64) -> Message {
    argument(event, name, |own| own.number(3, value))
}

fn text(event: Message, name: &str, value: &str) -> Message {
    argument(event, name, |own| own.text(6, value))
}
