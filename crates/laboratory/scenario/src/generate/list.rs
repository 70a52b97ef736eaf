//! Flows that the scenario lists.

use super::{BuildContext, LoadedWorkload, WorkloadDefinition};
use crate::workload::Priority;
use clearway_formats::{shown, whole_number};
use clearway_units::{Bytes, HostId, OmitDefaults, Time, parameters};
use clearway_workload::{
    FlowSpec, Start, TriggerIndex, TriggerKind, TriggerSpec, Workload, WorkloadError,
};
use std::collections::BTreeMap;

const FORM: &str =
    "write it as `0->13 2MB at 5us`, where `at 5us` may be left out, or as `13->0 2MB after 1`";

parameters! {
    /// Place of the flows of a list among all flows.
    pub struct ListOrder {
        /// True if the flows are numbered after the flows of all other sections and not by their starts, like messages that a program posts
        /// during a run. The list may then be empty.
        pub posted: bool = false, "posted", "decision";
        /// Priorities that switches reserve buffers and queues for, beside those of the flows. A program that posts messages declares
        /// the priorities that its messages may have before it posts the first one.
        pub priorities: Vec<Priority> = Vec::new(), "priorities", "decision: those of the flows";
    }
}

parameters! {
    /// Flows written out one by one, each as a text: source, arrow, destination, size, and optionally `at` and the start, or `after` and
    /// the flows that it waits for.
    ///
    /// ```text
    /// flow = SRC "->" DST SIZE [ "tag" NUMBER ] [ "priority" NUMBER ] [ "at" TIME | "after" ITEM { "," ITEM } ]
    /// ```
    /// `SRC` and `DST` are host numbers, `SIZE` is a size such as `2MB`, `TIME` an instant such as `5us` (0s if left out), `ITEM` the place
    /// of a flow in the list, from 1. Blanks may stand around the arrow and within sizes and times. The label of a flow is its tag;
    /// without tags flows are numbered from 1. The priority of its data packets is 1 to 7; the section's `priority` replaces it.
    ///
    /// The end of a wait depends on the awaited flow. If that flow goes to the source of the waiting flow, the wait ends on arrival. If
    /// both have the same source, it ends on acknowledgement. Otherwise it ends `trigger-delay` after arrival. Flows that wait for the
    /// arrival of the same flow wait for the same flows, and so do flows that wait for its acknowledgement.
    pub struct ListSettings {
        /// Flows, such as `["0->13 2MB at 5us", "13->0 64KiB after 1"]`.
        pub flows: Vec<String> = Vec::new(), "flows", "none: the list must be given";
        with {
            /// Place of the flows among all flows.
            pub order: OmitDefaults<ListOrder>,
        }
    }
}

impl WorkloadDefinition for ListSettings {
    const NAME: &'static str = "flows";
    const SUMMARY: &'static str = "flows listed one by one";

    fn load(&self, _: &BuildContext<'_>) -> Result<LoadedWorkload, WorkloadError> {
        if self.flows.is_empty() && !self.order.posted {
            let fix = "write them as in `flows = [\"0->13 2MB at 5us\"]`";
            return Err(Self::fault("flows", "the list is empty", fix));
        }
        let items = (1..).zip(&self.flows);
        let mut list = Listed::default();
        for (item, text) in items.clone() {
            let read = flow(item, text).and_then(|flow| list.add(item, flow));
            read.map_err(|fault| Self::fault_of(item, text, fault))?;
        }
        for (item, text) in items {
            let wired = list.wire(item);
            wired.map_err(|fault| Self::fault_of(item, text, fault))?;
        }
        Ok(list.workload.into())
    }
}

impl ListSettings {
    /// List of flows that start at given times. The label of each flow becomes its place in the list.
    ///
    /// # Panics
    /// If a flow does not start at a given time.
    pub fn from_flows<'a>(flows: impl IntoIterator<Item = &'a FlowSpec>, order: ListOrder) -> Self {
        let item = |flow: &FlowSpec| {
            let Start::At(start) = flow.start else {
                panic!("flow {} does not begin by the clock", flow.label);
            };
            let (src, dst, bytes) = (flow.src.0, flow.dst.0, flow.bytes.as_u64());
            let priority = flow
                .priority
                .map(|priority| format!(" priority {priority}"));
            let priority = priority.unwrap_or_default();
            format!("{src}->{dst} {bytes}B{priority} at {}ps", start.as_ps())
        };
        Self {
            flows: flows.into_iter().map(item).collect(),
            order: OmitDefaults(order),
        }
    }

    fn fault_of(item: u64, text: &str, (what, fix): ItemFault) -> WorkloadError {
        let message = format!("item {item}, \"{}\": {what}", shown(text));
        Self::fault("flows", message, fix)
    }
}

/// Description of a fault of an item, and suggested fix.
type ItemFault = (String, String);

/// A flow, and the items that it waits for.
struct Item {
    flow: FlowSpec,
    after: Vec<u64>,
}

/// Event at the end of a flow, which other flows wait for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum End {
    /// Arrival at the receiver.
    Arrived,
    /// Acknowledgement at the sender.
    Acknowledged,
}

/// Items of the list that are read so far.
#[derive(Default)]
struct Listed {
    workload: Workload,
    /// Flows that each flow waits for.
    after: Vec<Vec<u64>>,
    /// Item of each tag.
    tags: BTreeMap<u64, u64>,
    /// Trigger of each set of ends.
    triggers: BTreeMap<Vec<(u64, End)>, TriggerIndex>,
}

impl Listed {
    fn add(&mut self, number: u64, item: Item) -> Result<(), ItemFault> {
        let label = item.flow.label;
        if let Some(first) = self.tags.insert(label, number) {
            let what = format!("item {first} has the tag {label} already");
            let fix = "give each flow its own tag, or leave out all tags";
            return Err((what, fix.into()));
        }
        self.workload.flows.push(item.flow);
        self.after.push(item.after);
        Ok(())
    }

    /// Connects a flow to the flows that it waits for.
    fn wire(&mut self, number: u64) -> Result<(), ItemFault> {
        let place = number as usize - 1;
        let mut after = std::mem::take(&mut self.after[place]);
        after.sort_unstable();
        after.dedup();
        if after.is_empty() {
            return Ok(());
        }
        let flows = &mut self.workload.flows;
        let source = flows[place].src;
        let ends: Result<Vec<_>, _> = after
            .into_iter()
            // Items count from 1; item 0 wraps to a place beyond the list.
            .map(|item| match flows.get((item as usize).wrapping_sub(1)) {
                Some(flow) if flow.dst != source && flow.src == source => {
                    Ok((item, End::Acknowledged))
                }
                Some(_) => Ok((item, End::Arrived)),
                None => {
                    let what = format!("there is no item {item} to wait for");
                    let fix = format!("name one from 1 to {}", flows.len());
                    Err((what, fix))
                }
            })
            .collect();
        let ends = ends?;
        let trigger = match self.triggers.get(&ends) {
            Some(&trigger) => trigger,
            None => self.new_trigger(ends)?,
        };
        self.workload.flows[place].start = Start::On(trigger);
        Ok(())
    }

    fn new_trigger(&mut self, ends: Vec<(u64, End)>) -> Result<TriggerIndex, ItemFault> {
        let trigger = TriggerIndex(self.workload.triggers.len() as u32);
        for &(item, end) in &ends {
            let flow = &mut self.workload.flows[item as usize - 1];
            let (taken, word) = match end {
                End::Arrived => (&mut flow.on_received, "arrival"),
                End::Acknowledged => (&mut flow.on_sent, "acknowledgement"),
            };
            if taken.replace(trigger).is_some() {
                let what = format!(
                    "another flow that waits for the {word} of item {item} does not wait for the same items"
                );
                let fix = format!(
                    "let all that wait for it wait for the same items, or split item {item} in two"
                );
                return Err((what, fix));
            }
        }
        let kind = match ends.len() {
            1 => TriggerKind::Oneshot,
            count => TriggerKind::Barrier {
                count: count as u32,
            },
        };
        let label = u64::from(trigger.0) + 1;
        self.workload.triggers.push(TriggerSpec { label, kind });
        self.triggers.insert(ends, trigger);
        Ok(trigger)
    }
}

/// The flow of one item.
fn flow(item: u64, text: &str) -> Result<Item, ItemFault> {
    let fault = |what: String| (what, FORM.to_owned());
    let (src, rest) = text
        .split_once("->")
        .ok_or_else(|| fault("there is no arrow `->`".into()))?;
    let rest = rest.trim_start();
    let end = rest.find(char::is_whitespace).unwrap_or(rest.len());
    let (dst, rest) = rest.split_at(end);
    let (rest, after) = match rest.split_once(" after ") {
        Some((rest, after)) => (rest, Some(after)),
        None => (rest, None),
    };
    let (size, at) = match rest.split_once(" at ") {
        Some(_) if after.is_some() => return Err(fault("both `at` and `after`".into())),
        Some((size, at)) => (size, at),
        None => (rest, "0s"),
    };
    let (size, priority) = match size.split_once(" priority ") {
        Some((size, priority)) => (size, Some(priority)),
        None => (size, None),
    };
    let (size, tag) = match size.split_once(" tag ") {
        Some((size, tag)) => (size, Some(tag.trim())),
        None => (size, None),
    };
    let number = |text: &str, what: &str| {
        let text = text.trim();
        whole_number(text).ok_or_else(|| fault(format!("`{}` is not {what}", shown(text))))
    };
    let host = |text: &str| {
        let number = number(text, "a host number")?;
        let host = u32::try_from(number).map(HostId);
        host.map_err(|_| fault(format!("`{}` is not a host number", shown(text.trim()))))
    };
    if size.trim().is_empty() {
        return Err(fault("there is no size".into()));
    }
    let (src, dst) = (host(src)?, host(dst)?);
    let bytes: Bytes = size.parse().map_err(|error| {
        let what = format!("`{}` is not a size: {error}", shown(size.trim()));
        fault(what)
    })?;
    let start: Time = at.parse().map_err(|error| {
        let what = format!("`{}` is not a start: {error}", shown(at.trim()));
        fault(what)
    })?;
    let label = tag.map_or(Ok(item), |tag| number(tag, "a tag"))?;
    let priority = priority.map(|text| match number(text, "a priority from 1 to 7") {
        Ok(priority @ 1..=7) => Ok(priority as u8),
        Ok(_) => Err(fault(format!(
            "`{}` is not a priority from 1 to 7",
            shown(text.trim())
        ))),
        Err(fault) => Err(fault),
    });
    let after = after.into_iter().flat_map(|items| items.split(','));
    let after = after.map(|other| number(other, "an item of the list"));
    Ok(Item {
        flow: FlowSpec {
            priority: priority.transpose()?,
            ..FlowSpec::timed(label, src, dst, bytes, start)
        },
        after: after.collect::<Result<_, _>>()?,
    })
}
