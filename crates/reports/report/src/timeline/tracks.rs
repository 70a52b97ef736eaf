//! The tracks of a timeline and their groups.

use super::message::Message;
use crate::observed::{Metric, RunObservations, Subject};
use clearway_results::MetricUnit;
use clearway_units::Time;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};

/// Group of tracks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Process {
    /// The whole run.
    Run,
    /// A place in [`RunObservations::nodes`].
    Node(u32),
    /// A host by its number, if nodes are not known.
    Host(u32),
}

/// Content of a track. The variants are in the order in which the viewer shows the tracks of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Track {
    /// The run.
    Run,
    /// Lane of flows of a host that do not overlap.
    Flows(u32),
    /// Losses of flows that are not in the record.
    Losses,
    /// Pauses of a link.
    Pauses(u32),
    /// Packets dropped in front of a link.
    Drops(u32),
    /// A curve.
    Counter(Metric, Subject),
}

/// A track by the order of its creation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TrackId(u64);

impl TrackId {
    /// Number of the track in the trace. Zero would be the default track.
    pub(super) const fn uuid(self) -> u64 {
        self.0
    }
}

/// All tracks.
pub(super) struct Tracks<'a> {
    observed: Option<&'a RunObservations>,
    /// Places of the hosts among the nodes, by their numbers.
    hosts: Vec<u32>,
    processes: BTreeMap<Process, (TrackId, BTreeMap<Track, TrackId>)>,
    count: u64,
}

impl<'a> Tracks<'a> {
    pub(super) fn new(observed: Option<&'a RunObservations>) -> Self {
        let nodes = observed.map_or(&[][..], |observed| &observed.nodes);
        let hosts = (0..)
            .zip(nodes)
            .filter(|(_, node)| node.tier.is_none())
            .map(|(place, _)| place)
            .collect();
        Self {
            observed,
            hosts,
            processes: BTreeMap::new(),
            count: 0,
        }
    }

    /// The process of a host.
    pub(super) fn host(&self, host: u32) -> Process {
        let place = self.hosts.get(host as usize);
        place.map_or(Process::Host(host), |&place| Process::Node(place))
    }

    /// Name of a host.
    pub(super) fn host_name(&self, host: u32) -> String {
        self.process_name(self.host(host))
    }

    /// The track of a process, created at the first call.
    pub(super) fn get_or_create(&mut self, process: Process, track: Track) -> TrackId {
        let count = &mut self.count;
        let mut next = || {
            *count += 1;
            TrackId(*count)
        };
        let (_, tracks) = self
            .processes
            .entry(process)
            .or_insert_with(|| (next(), BTreeMap::new()));
        *tracks.entry(track).or_insert_with(next)
    }

    /// The track of the node that sends on `link`.
    pub(super) fn of_link(&mut self, link: u32, track: Track) -> TrackId {
        let row = self.observed.and_then(|all| all.links.get(link as usize));
        let process = row.map_or(Process::Run, |row| Process::Node(row.from));
        self.get_or_create(process, track)
    }

    /// A descriptor for each process and each of its tracks, parents first.
    pub(super) fn descriptors(&self) -> impl Iterator<Item = Message> + '_ {
        self.processes
            .iter()
            .flat_map(move |(&process, (parent, tracks))| {
                let own = self.describe_process(process, *parent);
                let tracks = (0..).zip(tracks).map(move |(rank, (&track, id))| {
                    let child = Message::default()
                        .number(1, id.uuid())
                        .text(2, &self.track_name(track))
                        .number(5, parent.uuid());
                    let child = match track {
                        Track::Counter(metric, _) => child.message(8, &counter(metric)),
                        _ => child,
                    };
                    // Without this the viewer merges siblings of the same name.
                    child.number(12, rank).number(15, MERGE_NONE)
                });
                [own].into_iter().chain(tracks)
            })
    }

    fn describe_process(&self, process: Process, id: TrackId) -> Message {
        // For the viewer process 0 is the idle task.
        let pid = match process {
            Process::Run => 1,
            Process::Node(number) | Process::Host(number) => u64::from(number) + 2,
        };
        let content = Message::default()
            .number(1, pid)
            .text(6, &self.process_name(process));
        Message::default()
            .number(1, id.uuid())
            .message(3, &content)
            .number(11, ORDER_EXPLICIT)
    }

    fn process_name(&self, process: Process) -> String {
        let node = |place: u32| self.observed.and_then(|all| all.nodes.get(place as usize));
        match process {
            Process::Run => "run".into(),
            Process::Host(host) => format!("host{host}"),
            Process::Node(place) => {
                node(place).map_or_else(|| format!("node{place}"), |node| node.name.clone())
            }
        }
    }

    fn track_name(&self, track: Track) -> String {
        match track {
            Track::Run => "scenario".into(),
            Track::Flows(0) => "flows".into(),
            Track::Flows(lane) => format!("flows {}", lane + 1),
            Track::Losses => "losses".into(),
            Track::Pauses(link) => format!("{} pauses", self.link_name(link)),
            Track::Drops(link) => format!("{} drops", self.link_name(link)),
            Track::Counter(metric, Subject::Run) => metric.name().into(),
            Track::Counter(metric, Subject::Link(link)) => {
                format!("{} {}", self.link_name(link), metric.name())
            }
            // The process has the name of the node.
            Track::Counter(metric, Subject::Node(_)) => metric.name().into(),
            Track::Counter(metric, Subject::Flow(flow)) => {
                format!("flow {flow} {}", metric.name())
            }
        }
    }

    fn link_name(&self, link: u32) -> String {
        let row = self.observed.and_then(|all| all.links.get(link as usize));
        row.map_or_else(|| format!("link{link}"), |row| row.name.clone())
    }
}

/// `TrackDescriptor.SIBLING_MERGE_BEHAVIOR_NONE`.
const MERGE_NONE: u64 = 2;
/// `TrackDescriptor.EXPLICIT`.
const ORDER_EXPLICIT: u64 = 3;

/// The unit of a counter, with a flag that counters of one kind share their scale.
fn counter(metric: Metric) -> Message {
    const COUNT: u64 = 2;
    const BYTES: u64 = 3;
    let own = Message::default();
    let own = match metric.info().unit {
        MetricUnit::Bytes => own.number(3, BYTES),
        MetricUnit::BitsPerSecond => own.text(6, "bit/s"),
        MetricUnit::Flits => own.text(6, "flits"),
        MetricUnit::Count => own.number(3, COUNT),
        MetricUnit::Fraction => own,
    };
    own.text(7, metric.name())
}

/// Assigns the tracks of a host to its flows, in the order of their starts: each flow gets the first free track.
#[derive(Debug, Clone, Default)]
pub(super) struct Lanes {
    busy: BinaryHeap<Reverse<(Time, u32)>>,
    free: BTreeSet<u32>,
}

impl Lanes {
    /// A lane that is free at `start`; it is then occupied until `end`.
    pub(super) fn take(&mut self, start: Time, end: Time) -> u32 {
        while let Some(&Reverse((until, lane))) = self.busy.peek()
            && until <= start
        {
            self.busy.pop();
            self.free.insert(lane);
        }
        let lane = self.free.pop_first();
        let lane = lane.unwrap_or(self.busy.len() as u32);
        self.busy.push(Reverse((end, lane)));
        lane
    }
}
