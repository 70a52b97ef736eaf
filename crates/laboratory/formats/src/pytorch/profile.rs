//! The JSON of a profile or an execution trace, reduced to the parts that a job needs.

use super::call::{Call, CallFields, Ranks};
use super::value::{Each, Fields, KeyOf, MOST_NANOSECONDS, Names, Value};
use crate::text::Source;
use clearway_workload::FileError;
use rustc_hash::FxHashMap;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, Visitor};
use std::fmt;
use std::io::Read;

/// The content of a file.
#[derive(Debug, Default)]
pub(super) struct Profile {
    pub(super) info: DistributedInfo,
    pub(super) kernels: Vec<Kernel>,
    /// Events `record_param_comms` of the processor, without waits.
    pub(super) records: Vec<Record>,
    /// Calls by which the processor starts work of the GPU, by their correlation.
    pub(super) launches: FxHashMap<i64, Launch>,
    /// Calls by which the GPU or the processor waits for other work.
    pub(super) waits: Vec<Wait>,
    pub(super) steps: Vec<Step>,
    /// Nodes of an execution trace.
    pub(super) nodes: Vec<Node>,
    /// Name of the first kernel without a valid time.
    pub(super) untimed: Option<String>,
    /// True if there is a list of events.
    pub(super) has_events: bool,
    /// True if there is a list of nodes.
    pub(super) has_nodes: bool,
}

/// `distributedInfo` of a profile.
#[derive(Debug, Default)]
pub(super) struct DistributedInfo {
    pub(super) rank: Option<u32>,
    pub(super) world_size: Option<u32>,
    /// Ranks of the groups of this rank, by name.
    pub(super) groups: Vec<(String, Vec<i64>)>,
}

/// Work of the GPU: a kernel, a copy, a fill.
#[derive(Debug)]
pub(super) struct Kernel {
    /// Name, if it is the name of a communication.
    pub(super) name: Option<String>,
    pub(super) start: i64,
    pub(super) end: i64,
    /// Device and stream.
    pub(super) stream: (i64, i64),
    pub(super) correlation: Option<i64>,
    /// Number of the operator of the processor that started it.
    pub(super) external: Option<i64>,
    pub(super) call: Option<Box<Call>>,
}

/// Event `record_param_comms` of the processor.
#[derive(Debug)]
pub(super) struct Record {
    pub(super) start: i64,
    pub(super) end: i64,
    pub(super) thread: i64,
    pub(super) external: Option<i64>,
    pub(super) call: Option<Box<Call>>,
}

/// Call by which the processor starts work of the GPU.
#[derive(Debug, Clone, Copy)]
pub(super) struct Launch {
    pub(super) at: i64,
    pub(super) thread: i64,
}

/// Call by which the GPU or the processor waits for other work.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wait {
    pub(super) start: i64,
    pub(super) end: i64,
    pub(super) thread: i64,
    pub(super) kind: WaitKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WaitKind {
    /// A stream waits for an event.
    Stream,
    /// The processor waits for all work of the GPU.
    Device,
    /// The processor waits for a stream or an event.
    Processor,
}

/// Annotation `ProfilerStep#N`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Step {
    pub(super) number: u32,
    pub(super) start: i64,
    pub(super) end: i64,
}

/// Node of an execution trace.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) id: i64,
    pub(super) parent: Option<i64>,
    pub(super) kind: NodeKind,
    /// Begin and end, if the node has them.
    pub(super) time: Option<(i64, i64)>,
    pub(super) stream: i64,
}

#[derive(Debug)]
pub(super) enum NodeKind {
    /// `record_param_comms`.
    Call(Box<Call>),
    /// `record_param_comms` of a wait.
    Wait,
    /// Work of the GPU, which Chakra's `chakra_trace_link` adds; with its name if it is the name of a communication.
    Kernel(Option<String>),
    /// The list of groups, as text.
    Groups(String),
    Other,
}

/// Reads a file.
///
/// # Errors
/// If it is not JSON, with line and column.
pub(super) fn read_profile(source: Source<'_>, reader: impl Read) -> Result<Profile, FileError> {
    let mut profile = Profile::default();
    let mut json = serde_json::Deserializer::from_reader(reader);
    let read = Top(&mut profile).deserialize(&mut json);
    read.and_then(|()| json.end()).map_err(|error| {
        let message = error.to_string();
        let message = message.split(" at line ").next().unwrap_or_default();
        let fault = source.fault(error.line().max(1), Some(error.column().max(1)), message);
        fault.fix("restore the file if it was cut off or changed; PyTorch writes JSON, plain or packed with gzip")
    })?;
    Ok(profile)
}

struct Top<'a>(&'a mut Profile);

const TOP: [&str; 3] = ["distributedInfo", "traceEvents", "nodes"];

impl<'de> DeserializeSeed<'de> for Top<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Top<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object with `traceEvents` or `nodes`")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let profile = self.0;
        while let Some(key) = map.next_key_seed(KeyOf(&TOP))? {
            match key {
                Some(0) => map.next_value_seed(Info(&mut profile.info))?,
                Some(1) => {
                    profile.has_events = true;
                    let (seed, take) = (EventSeed, |event| profile.event(event));
                    map.next_value_seed(Each { seed, take })?;
                }
                Some(_) => {
                    profile.has_nodes = true;
                    let (seed, take) = (NodeSeed, |node: Option<Node>| profile.nodes.extend(node));
                    map.next_value_seed(Each { seed, take })?;
                }
                None => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(())
    }
}

struct Info<'a>(&'a mut DistributedInfo);

const INFO: [&str; 3] = ["rank", "world_size", "pg_config"];
const GROUP: [&str; 2] = ["pg_name", "ranks"];

impl<'de> DeserializeSeed<'de> for Info<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Info<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object with `rank` and `world_size`")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let info = self.0;
        let number = |value: Value| {
            value
                .integer()
                .and_then(|number| u32::try_from(number).ok())
        };
        while let Some(key) = map.next_key_seed(KeyOf(&INFO))? {
            match key {
                Some(0) => info.rank = number(map.next_value()?),
                Some(1) => info.world_size = number(map.next_value()?),
                Some(_) => {
                    let take = |group: Fields<2>| {
                        let name = group.get(0).and_then(name_of);
                        let ranks = group.get(1).and_then(Value::integers);
                        info.groups.extend(name.zip(ranks));
                    };
                    let seed = Names(&GROUP);
                    map.next_value_seed(Each { seed, take })?;
                }
                None => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(())
    }
}

/// The name of a group, which may be written as a number.
pub(super) fn name_of(value: &Value) -> Option<String> {
    match value {
        Value::Text(name) => Some(name.clone()),
        Value::Integer(number) => Some(number.to_string()),
        _ => None,
    }
}

#[derive(Clone, Copy)]
struct EventSeed;

/// Event of a profile.
#[derive(Default)]
struct Event {
    fields: Fields<6>,
    args: Fields<{ ARGS.len() }>,
}

const EVENT: [&str; 7] = ["cat", "name", "ts", "dur", "pid", "tid", "args"];

const ARGS: [&str; 15] = [
    "External id",
    "stream",
    "correlation",
    "Collective name",
    "In msg nelems",
    "Out msg nelems",
    "dtype",
    "Group size",
    "Process Group Name",
    "Process Group Ranks",
    "In split size",
    "Out split size",
    "Dst Rank",
    "Src Rank",
    "Rank",
];

impl<'de> DeserializeSeed<'de> for EventSeed {
    type Value = Event;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Event, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for EventSeed {
    type Value = Event;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an event")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Event, A::Error> {
        let mut event = Event::default();
        while let Some(key) = map.next_key_seed(KeyOf(&EVENT))? {
            match key {
                Some(6) => event.args = map.next_value_seed(Names(&ARGS))?,
                Some(index) => event.fields.set(index, map.next_value()?),
                None => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(event)
    }
}

impl Event {
    fn thread(&self) -> i64 {
        self.fields.integer(5).unwrap_or(0)
    }

    /// Begin and end; an event without a duration takes no time.
    fn time(&self) -> Option<(i64, i64)> {
        let start = self.fields.nanoseconds(2)?;
        let duration = match self.fields.get(3) {
            Some(duration) => duration.nanoseconds()?,
            None => 0,
        };
        until(start, duration)
    }

    fn call(&self) -> Option<Box<Call>> {
        let args = &self.args;
        let name = args.text(3)?;
        let list = |index| args.get(index).map(Value::integers);
        Some(Box::new(Call::new(CallFields {
            name,
            elements: [args.integer(4), args.integer(5)],
            element: args.text(6),
            group_size: args.integer(7),
            group: args.get(8).and_then(name_of),
            ranks: list(9).flatten().map(Ranks::Listed),
            splits: [list(10), list(11)],
            peer: args.integer(12).or(args.integer(13)),
            rank: args.integer(14),
        })))
    }
}

/// Begin and end of an event.
fn until(start: i64, duration: i64) -> Option<(i64, i64)> {
    let end = start + duration.max(0);
    (end.unsigned_abs() <= MOST_NANOSECONDS).then_some((start, end))
}

/// True for the name of a kernel of NCCL, RCCL or MSCCL.
pub(super) fn is_communication(name: &str) -> bool {
    const PARTS: [&str; 3] = ["nccl", "rccl", "msccl"];
    let start: String = name.chars().take(64).collect();
    let start = start.to_ascii_lowercase();
    PARTS.iter().any(|part| start.contains(part))
}

impl Profile {
    fn event(&mut self, event: Event) {
        let category = event.fields.text(0).unwrap_or_default();
        let name = event.fields.text(1).unwrap_or_default();
        let is_of_gpu = matches!(category, "kernel" | "gpu_memcpy" | "gpu_memset");
        let Some((start, end)) = event.time() else {
            if is_of_gpu && self.untimed.is_none() {
                self.untimed = Some(name.to_owned());
            }
            return;
        };
        match category {
            _ if is_of_gpu => {
                let is_named = category == "kernel" && is_communication(name);
                let call = event.call().filter(|_| category == "kernel");
                let device = event.fields.integer(4).unwrap_or(0);
                let stream = event.args.integer(1).unwrap_or(event.thread());
                self.kernels.push(Kernel {
                    name: is_named.then(|| name.to_owned()),
                    start,
                    end,
                    stream: (device, stream),
                    correlation: event.args.integer(2),
                    external: event.args.integer(0),
                    call,
                });
            }
            "cuda_runtime" | "cuda_driver" => self.runtime(&event, name, (start, end)),
            "gpu_user_annotation" => {}
            _ if name == RECORD => {
                let call = event.call();
                if call.as_ref().is_some_and(|call| call.is_wait()) {
                    return;
                }
                self.records.push(Record {
                    start,
                    end,
                    thread: event.thread(),
                    external: event.args.integer(0),
                    call,
                });
            }
            _ => {
                let number = name.strip_prefix("ProfilerStep#");
                if let Some(number) = number.and_then(|number| number.parse().ok()) {
                    self.steps.push(Step { number, start, end });
                }
            }
        }
    }

    /// Keeps a call of CUDA or HIP by the processor.
    fn runtime(&mut self, event: &Event, name: &str, (start, end): (i64, i64)) {
        let thread = event.thread();
        let kind = match name {
            name if name.ends_with("StreamWaitEvent") => Some(WaitKind::Stream),
            name if name.ends_with("DeviceSynchronize") => Some(WaitKind::Device),
            name if name.ends_with("Synchronize") => Some(WaitKind::Processor),
            _ => None,
        };
        if let Some(kind) = kind {
            self.waits.push(Wait {
                start,
                end,
                thread,
                kind,
            });
        } else if let Some(correlation) = event.args.integer(2) {
            let launch = Launch { at: start, thread };
            self.launches.entry(correlation).or_insert(launch);
        }
    }
}

/// Name of the operator with the details of a communication.
const RECORD: &str = "record_param_comms";

#[derive(Clone, Copy)]
struct NodeSeed;

const NODE: [&str; 10] = [
    "id",
    "name",
    "ctrl_deps",
    "cat",
    "ts",
    "inclusive_dur",
    "dur",
    "stream",
    "inputs",
    "attrs",
];
const INPUTS: [&str; 1] = ["values"];
const ATTRIBUTE: [&str; 2] = ["name", "value"];

/// Attributes of a communication, in the order of [`CallFields`].
const ATTRIBUTES: [&str; 11] = [
    "collective_name",
    "in_msg_nelems",
    "out_msg_nelems",
    "dtype",
    "pg_size",
    "pg_name",
    "in_split_size",
    "out_split_size",
    "global_rank_start",
    "global_rank_stride",
    "pg_ranks",
];

impl<'de> DeserializeSeed<'de> for NodeSeed {
    type Value = Option<Node>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_map(self)
    }
}

/// List of values.
#[derive(Clone, Copy)]
struct Values;

impl<'de> DeserializeSeed<'de> for Values {
    type Value = Vec<Value>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Vec<Value>, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Values {
    type Value = Vec<Value>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object with `values`")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Vec<Value>, A::Error> {
        let mut values = Vec::new();
        while let Some(key) = map.next_key_seed(KeyOf(&INPUTS))? {
            match key {
                Some(_) => values = map.next_value()?,
                None => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(values)
    }
}

impl<'de> Visitor<'de> for NodeSeed {
    type Value = Option<Node>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a node")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Option<Node>, A::Error> {
        let mut fields = Fields::<8>::default();
        let mut inputs = Vec::new();
        let mut attributes = Fields::<{ ATTRIBUTES.len() }>::default();
        while let Some(key) = map.next_key_seed(KeyOf(&NODE))? {
            match key {
                Some(8) => inputs = map.next_value_seed(Values)?,
                Some(9) => {
                    let take = |mut attribute: Fields<2>| {
                        let name = attribute.text(0).unwrap_or_default();
                        let index = ATTRIBUTES.iter().position(|&known| known == name);
                        if let (Some(index), Some(value)) = (index, attribute.take(1)) {
                            attributes.set(index, value);
                        }
                    };
                    let seed = Names(&ATTRIBUTE);
                    map.next_value_seed(Each { seed, take })?;
                }
                Some(index) => fields.set(index, map.next_value()?),
                None => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(node(&fields, &inputs, &attributes))
    }
}

/// A node from its fields; `None` without an id.
fn node(
    fields: &Fields<8>,
    inputs: &[Value],
    attributes: &Fields<{ ATTRIBUTES.len() }>,
) -> Option<Node> {
    let id = fields.integer(0)?;
    let name = fields.text(1).unwrap_or_default();
    let category = fields.text(3).unwrap_or_default();
    let kind = match category {
        "kernel" => NodeKind::Kernel(is_communication(name).then(|| name.to_owned())),
        "gpu_memcpy" | "gpu_memset" => NodeKind::Kernel(None),
        _ if name == RECORD => {
            let call = call_of_node(inputs, attributes);
            match call.is_wait() {
                true => NodeKind::Wait,
                false => NodeKind::Call(Box::new(call)),
            }
        }
        _ if name.contains("process_group:init") => match inputs.first() {
            Some(Value::Text(groups)) => NodeKind::Groups(groups.clone()),
            _ => NodeKind::Other,
        },
        _ => NodeKind::Other,
    };
    let duration = fields.nanoseconds(5).or(fields.nanoseconds(6));
    let time = fields.nanoseconds(4).zip(duration);
    Some(Node {
        id,
        parent: fields.integer(2),
        kind,
        time: time.and_then(|(start, duration)| until(start, duration)),
        stream: fields.integer(7).unwrap_or(0),
    })
}

fn call_of_node(inputs: &[Value], attributes: &Fields<{ ATTRIBUTES.len() }>) -> Call {
    // Inputs are the tensors, the sequence number, the group, the rank, the name and so on; some calls have no tensors.
    let known = attributes.text(0);
    let is_name = |value: &Value| match (value, known) {
        (Value::Text(name), Some(known)) => name == known,
        (Value::Text(name), None) => !name.is_empty(),
        _ => false,
    };
    let place = inputs.iter().position(is_name);
    let input_name = place.and_then(|place| inputs[place].text());
    let rank = place.and_then(|place| inputs[place.checked_sub(1)?].integer());
    let start = attributes.integer(8);
    let stride = attributes.integer(9).filter(|&stride| stride > 0);
    let size = attributes.integer(4);
    let regular = start.zip(stride).zip(size);
    let regular = regular.map(|((start, stride), size)| Ranks::Regular {
        start,
        stride,
        size,
    });
    let list = |index| attributes.get(index).map(Value::integers);
    Call::new(CallFields {
        name: known.or(input_name).unwrap_or_default(),
        elements: [attributes.integer(1), attributes.integer(2)],
        element: attributes.text(3),
        group_size: size,
        group: attributes.get(5).and_then(name_of),
        ranks: list(10).flatten().map(Ranks::Listed).or(regular),
        splits: [list(6), list(7)],
        peer: None,
        rank,
    })
}
