//! Frames on chosen links, for captures that Wireshark reads.
//!
//! A frame is captured at its sender when its last bit leaves: before bit errors, and after the queue that it leaves may mark it. A packet
//! that a full queue drops is not captured. Pause frames are captured on the link that they travel, which is the opposite direction of the
//! paused link. The recorder sees a pause frame when it takes effect, so frames under way at the end of a run are missing.

mod sequence;
#[cfg(test)]
mod tests;

use super::Merge;
use crate::scenario::LinkNames;
use crate::scenario::ObserveSettings;
use crate::scenario::ScenarioError;
use clearway_fabric::topology::{LinkId, NodeId, Topology};
use clearway_fabric::{Interests, Observer};
use clearway_transport::wire::{self, Format, PauseSource};
use clearway_transport::{ClassSet, Packet};
use clearway_units::{HostId, Rate, Span, Time, nearest, suggestion};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A link that is captured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CapturePlace {
    /// The link.
    pub link: LinkId,
    /// Name of the link; parallel links have a number, as in `leaf0-spine2#2`.
    pub name: String,
    /// Rate of the link.
    pub rate: Rate,
    /// Sender of the pause frames on the link.
    source: PauseSource,
    /// Time from the departure of a pause frame to its effect.
    effect: Span,
}

/// Plan of a capture.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CapturePlan {
    /// The links, each once, in the order of the settings.
    pub places: Vec<CapturePlace>,
    /// Largest number of bytes kept of a frame.
    pub snap: usize,
    /// Largest number of frames kept.
    pub limit: usize,
    /// Bytes of a pause frame.
    pause_size: usize,
    /// Index in `places` of every link of the fabric, or [`NOT_CAPTURED`].
    indices: Vec<u32>,
}

const NOT_CAPTURED: u32 = u32::MAX;

impl CapturePlan {
    /// Replaces the content of `bytes` with the beginning of a frame, as much as the plan keeps; returns the length of the whole frame.
    /// `format` is the format of the packet's transport, and `completed` counts the messages that the sender of an acknowledgement has
    /// received in full.
    pub(crate) fn encode(
        &self,
        frame: &CapturedFrame,
        format: impl Fn(&Packet) -> Format,
        completed: impl Fn(&Packet) -> u32,
        bytes: &mut Vec<u8>,
    ) -> usize {
        match frame.content {
            Content::Packet(packet) => wire::encode(
                &packet,
                format(&packet),
                completed(&packet),
                self.snap,
                bytes,
            ),
            Content::Pause(classes) => {
                let source = self.places[frame.place].source;
                *bytes = wire::encode_pause(source, classes, self.pause_size);
                let length = bytes.len();
                bytes.truncate(self.snap);
                length
            }
        }
    }

    /// The plan of the settings; `None` if nothing is to be captured.
    ///
    /// # Errors
    /// If a place does not exist.
    pub(crate) fn new(
        settings: &ObserveSettings,
        topology: &Topology,
        format: Format,
        pauses: Option<(Span, usize)>,
    ) -> Result<Option<Self>, ScenarioError> {
        if settings.pcap.is_empty() {
            return Ok(None);
        }
        let names = settings.pcap.iter();
        let names = LinkNames::from_topology(
            topology,
            names.filter_map(|place| place.strip_prefix("link:")),
        );
        let to_hosts = links_to_hosts(topology);
        let mut links = Vec::new();
        for place in &settings.pcap {
            links.extend(links_at(place, topology, &names, &to_hosts)?);
        }
        let mut indices = vec![NOT_CAPTURED; topology.cables.len() * 2];
        let mut places: Vec<CapturePlace> = Vec::new();
        let mut same_name: BTreeMap<String, u32> = BTreeMap::new();
        let (reaction, pause_size) = pauses.unwrap_or_default();
        for link in links {
            let index = &mut indices[link.0 as usize];
            if *index != NOT_CAPTURED {
                continue;
            }
            *index = places.len() as u32;
            let base = topology.link_name(link);
            let ordinal = same_name.entry(base.clone()).or_default();
            *ordinal += 1;
            let name = match *ordinal {
                1 => base,
                ordinal => format!("{base}#{ordinal}"),
            };
            places.push(CapturePlace {
                link,
                name,
                rate: topology.cables[link.cable()].rate,
                source: pause_source(topology, topology.link_ends(link).0),
                effect: topology.link_delay(link) + reaction,
            });
        }
        Ok(Some(Self {
            places,
            snap: snap(settings, format),
            limit: settings.pcap_frames as usize,
            pause_size,
            indices,
        }))
    }

    fn index(&self, link: LinkId) -> Option<usize> {
        let index = self.indices[link.0 as usize];
        (index != NOT_CAPTURED).then_some(index as usize)
    }
}

/// Snap length larger than any frame, and the largest that Wireshark accepts.
const WHOLE: usize = 1 << 18;

/// Snap length that holds all headers of STrack.
const HEADERS: usize = 128;

fn snap(settings: &ObserveSettings, format: Format) -> usize {
    match (settings.pcap_snap, format) {
        (Some(snap), _) => usize::try_from(snap.as_u64()).map_or(WHOLE, |snap| snap.min(WHOLE)),
        (None, Format::Rocev2) => WHOLE,
        (None, Format::Strack) => HEADERS,
    }
}

fn pause_source(topology: &Topology, node: NodeId) -> PauseSource {
    match topology.switch_index(node) {
        None => PauseSource::Host(node.0),
        Some(index) => PauseSource::Switch(index as u32),
    }
}

/// The link to each NIC; `None` if no such link is up.
fn links_to_hosts(topology: &Topology) -> Vec<Option<LinkId>> {
    let mut links = vec![None; topology.hosts as usize];
    for link in topology.links_up() {
        let (_, end) = topology.link_ends(link);
        if let Some(nic) = links.get_mut(end.0 as usize) {
            nic.get_or_insert(link);
        }
    }
    links
}

/// The links of a place, as named by the user.
fn links_at(
    place: &str,
    topology: &Topology,
    names: &LinkNames<'_>,
    to_hosts: &[Option<LinkId>],
) -> Result<Vec<LinkId>, ScenarioError> {
    let wrong = |message: String, fix: String| {
        ScenarioError::about(
            &["trace.pcap"],
            format!("`observe.trace.pcap`: {message}"),
            fix,
        )
    };
    match place.split_once(':') {
        Some(("host", number)) => {
            let hosts = topology.machines();
            let Some(host) = number.parse().ok().filter(|&host| host < hosts) else {
                return Err(wrong(
                    format!("there is no host {number}"),
                    format!("hosts are 0 to {}", hosts - 1),
                ));
            };
            let to_nics = topology
                .nics_of(HostId(host))
                .filter_map(|nic| to_hosts[nic.index()]);
            Ok(to_nics.flat_map(|link| [opposite(link), link]).collect())
        }
        Some(("link", name)) => {
            let is_up = |link: &LinkId| topology.cables[link.cable()].up;
            let links = names.named(name).iter().copied();
            let links: Vec<LinkId> = links.filter(is_up).collect();
            if links.is_empty() {
                let names: Vec<String> = topology
                    .links_up()
                    .map(|link| topology.link_name(link))
                    .collect();
                let near = nearest(name, names.iter().map(String::as_str));
                let known = "`clearway topology --links` shows those that are up";
                return Err(wrong(
                    format!("there is no link `{name}`"),
                    suggestion(near, known),
                ));
            }
            Ok(links)
        }
        _ => Err(wrong(
            format!("`{place}` is no place"),
            "write \"host:3\" for both directions of the cable of a host, or \"link:leaf0-spine2\" for one direction between switches".into(),
        )),
    }
}

/// The other direction of the same cable.
fn opposite(link: LinkId) -> LinkId {
    LinkId::from_end(link.cable(), 1 - link.end())
}

/// Content of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Content {
    Packet(Packet),
    Pause(ClassSet),
}

/// A captured frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CapturedFrame {
    /// Time at which the last bit left.
    pub time: Time,
    /// Place of the capture, as an index into [`CapturePlan::places`].
    pub place: usize,
    content: Content,
}

impl CapturedFrame {
    /// Unique key: two frames never leave a place at the same time.
    fn key(&self) -> (Time, usize) {
        (self.time, self.place)
    }
}

/// Captures the first frames of its domain, up to the limit of the plan, and counts the other frames.
#[derive(Debug, Clone)]
pub struct CaptureRecorder {
    plan: Arc<CapturePlan>,
    /// Kept frames, out of order by up to one round, and slightly more than the limit.
    frames: Vec<CapturedFrame>,
    /// Time after which no frame is among the first frames.
    horizon: Time,
    /// Number of frames seen at each place.
    seen: Vec<u64>,
}

/// Number of frames kept beyond the limit before the latest frames are dropped: at least this number, or a quarter of the limit.
const SPARE: usize = 1024;

impl CaptureRecorder {
    /// A recorder for one domain.
    pub fn new(plan: &Arc<CapturePlan>) -> Self {
        Self {
            plan: Arc::clone(plan),
            frames: Vec::new(),
            horizon: Time::NEVER,
            seen: vec![0; plan.places.len()],
        }
    }

    fn keep(&mut self, frame: CapturedFrame) {
        self.seen[frame.place] += 1;
        if frame.time > self.horizon {
            return;
        }
        self.frames.push(frame);
        let limit = self.plan.limit;
        if self.frames.len() > limit + SPARE.max(limit / 4) {
            self.drop_latest();
        }
    }

    /// Drops the latest frames beyond the limit.
    fn drop_latest(&mut self) {
        let limit = self.plan.limit;
        if self.frames.len() > limit {
            let (_, first_left_out, _) = self
                .frames
                .select_nth_unstable_by_key(limit, CapturedFrame::key);
            self.horizon = first_left_out.time;
            self.frames.truncate(limit);
        }
    }

    /// Capture of the run, after the recorders of all domains have been merged.
    pub fn into_capture(mut self) -> Capture {
        self.drop_latest();
        self.frames.sort_unstable_by_key(CapturedFrame::key);
        Capture {
            frames: self.frames,
            seen: self.seen,
        }
    }
}

impl Observer for CaptureRecorder {
    fn interests(&self) -> Interests {
        Interests {
            departures: true,
            ..Interests::NONE
        }
    }

    fn on_departure(&mut self, end: Time, link: LinkId, packet: &Packet) {
        if let Some(place) = self.plan.index(link) {
            self.keep(CapturedFrame {
                time: end,
                place,
                content: Content::Packet(*packet),
            });
        }
    }

    fn on_pause(&mut self, now: Time, link: LinkId, classes: ClassSet) {
        if let Some(place) = self.plan.index(opposite(link)) {
            let effect = self.plan.places[place].effect;
            self.keep(CapturedFrame {
                time: Time::from_ps(now.as_ps() - effect.as_ps()),
                place,
                content: Content::Pause(classes),
            });
        }
    }
}

impl Merge for CaptureRecorder {
    fn merge(&mut self, other: Self) {
        for (seen, more) in self.seen.iter_mut().zip(other.seen) {
            *seen += more;
        }
        self.frames.extend(other.frames);
        self.drop_latest();
    }
}

/// The frames of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Capture {
    /// The first frames, in the order of time and then of places.
    pub frames: Vec<CapturedFrame>,
    /// Number of frames seen at each place.
    pub seen: Vec<u64>,
}

impl Capture {
    /// Number of frames seen at each place, and number of these frames that are not in [`frames`](Self::frames).
    pub fn counts(&self) -> Vec<(u64, u64)> {
        let mut counts: Vec<(u64, u64)> = self.seen.iter().map(|&seen| (seen, seen)).collect();
        for frame in &self.frames {
            counts[frame.place].1 -= 1;
        }
        counts
    }
}
