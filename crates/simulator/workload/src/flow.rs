//! Flows, and the triggers by which the end of one flow starts another.

use crate::{TriggerIndex, TriggerSpec, WorkloadError};
use clearway_units::{Bytes, FlowId, HostId, Time};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Start of a flow: a time, a trigger, or a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Start {
    /// The clock.
    At(Time),
    /// A trigger.
    On(TriggerIndex),
    /// A job, which posts so many messages on it. The bytes of the flow are the sum over these messages.
    Posted(u32),
}

/// One message from one host to another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FlowSpec {
    /// The user's number for the flow, for output; unique in one section of a scenario, not in a merged workload.
    pub label: u64,
    /// Sending host.
    pub src: HostId,
    /// Receiving host.
    pub dst: HostId,
    /// Payload to carry, above zero.
    pub bytes: Bytes,
    /// Start of the flow.
    pub start: Start,
    /// Activated at the sender when everything is acknowledged.
    pub on_sent: Option<TriggerIndex>,
    /// Activated at the receiver when everything has arrived.
    pub on_received: Option<TriggerIndex>,
    /// The priority of its packets, 1 to 7, where its source says so.
    pub priority: Option<u8>,
    /// Index of the variant of the run's settings that the sender has; 0 is the one that most have.
    pub variant: u16,
    /// Port to which the flow is addressed, where its source says so. It means nothing in a run; output repeats it.
    pub dport: Option<u16>,
    /// Label of the message that the flow is a piece of, if it is part of an [attack](crate::Attack).
    pub attack: Option<u64>,
    /// Number of the section of the scenario that it belongs to, from 0. It means nothing in a run; output repeats it.
    pub section: u32,
}

impl FlowSpec {
    /// A flow that starts by the clock and activates nothing.
    pub const fn timed(label: u64, src: HostId, dst: HostId, bytes: Bytes, at: Time) -> Self {
        Self {
            label,
            src,
            dst,
            bytes,
            start: Start::At(at),
            on_sent: None,
            on_received: None,
            priority: None,
            variant: 0,
            dport: None,
            attack: None,
            section: 0,
        }
    }

    /// The triggers that this flow activates, each with the host where that happens.
    pub(crate) fn activations(&self) -> impl Iterator<Item = (TriggerIndex, HostId)> + use<> {
        let sent = self.on_sent.map(|trigger| (trigger, self.src));
        let received = self.on_received.map(|trigger| (trigger, self.dst));
        sent.into_iter().chain(received)
    }
}

/// All traffic of a run. A flow's [`FlowId`] is its index in `flows`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Workload {
    /// The flows.
    pub flows: Vec<FlowSpec>,
    /// The triggers between them.
    pub triggers: Vec<TriggerSpec>,
}

impl Workload {
    /// The flow with number `id`.
    ///
    /// # Panics
    /// If the workload has no such flow.
    pub fn flow(&self, id: FlowId) -> &FlowSpec {
        &self.flows[id.index()]
    }

    /// Every flow with its number.
    pub fn numbered(&self) -> impl Iterator<Item = (FlowId, &FlowSpec)> {
        self.flows
            .iter()
            .enumerate()
            .map(|(index, flow)| (FlowId(index as u32), flow))
    }

    /// One workload of several. Flows follow each other by start, at equal starts by section; flows of one section keep their order, and
    /// one that waits for a trigger follows the flow before it. Triggers are numbered on, and labels do not change.
    ///
    /// # Errors
    /// If there are more than 2^32 flows or triggers.
    pub fn merge(sections: impl IntoIterator<Item = Self>) -> Result<Self, WorkloadError> {
        let mut merged = Self::default();
        let mut parts = Vec::new();
        for mut section in sections {
            section.shift_triggers(merged.triggers.len() as u32);
            merged.triggers.append(&mut section.triggers);
            merged.check_counts()?;
            parts.push(section.flows);
        }
        merged.flows = merge_by_start(parts);
        merged.check_counts()?;
        Ok(merged)
    }

    /// Adds the flows of another workload behind all others, whenever they start.
    ///
    /// # Errors
    /// If there are more than 2^32 flows or triggers.
    pub fn append(&mut self, mut other: Self) -> Result<(), WorkloadError> {
        other.shift_triggers(self.triggers.len() as u32);
        self.triggers.append(&mut other.triggers);
        self.flows.append(&mut other.flows);
        self.check_counts()
    }

    /// Numbers the triggers from `first` on.
    fn shift_triggers(&mut self, first: u32) {
        let own = self.triggers.len();
        // An index that was wrong stays wrong: it must not come to mean a trigger of another section.
        let shifted = |trigger: TriggerIndex| {
            let index = (trigger.index() < own).then(|| trigger.0.checked_add(first));
            TriggerIndex(index.flatten().unwrap_or(u32::MAX))
        };
        for flow in &mut self.flows {
            if let Start::On(trigger) = &mut flow.start {
                *trigger = shifted(*trigger);
            }
            flow.on_sent = flow.on_sent.map(shifted);
            flow.on_received = flow.on_received.map(shifted);
        }
    }

    /// The one host where everything about `trigger` happens, if there is one: flows that activate it by having sent do so at
    /// their sender, by having been received at their receiver, and flows that it starts start at their sender.
    ///
    /// Such a trigger can fire on the spot. Any other needs a message between hosts, which no real network delivers for free.
    pub fn trigger_home(&self, trigger: TriggerIndex) -> Option<HostId> {
        let mut hosts = self.flows.iter().flat_map(|flow| {
            let starts = (flow.start == Start::On(trigger)).then_some(flow.src);
            let activates = flow
                .activations()
                .filter(move |&(activated, _)| activated == trigger)
                .map(|(_, host)| host);
            starts.into_iter().chain(activates)
        });
        let home = hosts.next()?;
        hosts.all(|host| host == home).then_some(home)
    }

    /// [`trigger_home`](Self::trigger_home) of every trigger, in one pass over the flows.
    ///
    /// # Panics
    /// If a flow names a trigger that does not exist; [`check`](Self::check) refuses such a workload.
    pub fn trigger_homes(&self) -> Vec<Option<HostId>> {
        #[derive(Clone, Copy)]
        enum Home {
            Unused,
            At(HostId),
            Several,
        }
        let mut homes = vec![Home::Unused; self.triggers.len()];
        let mut visit = |trigger: TriggerIndex, host: HostId| {
            let home = &mut homes[trigger.index()];
            *home = match *home {
                Home::Unused => Home::At(host),
                Home::At(known) if known == host => Home::At(known),
                Home::At(_) | Home::Several => Home::Several,
            };
        };
        for flow in &self.flows {
            if let Start::On(trigger) = flow.start {
                visit(trigger, flow.src);
            }
            for (trigger, host) in flow.activations() {
                visit(trigger, host);
            }
        }
        homes
            .into_iter()
            .map(|home| match home {
                Home::At(host) => Some(host),
                Home::Unused | Home::Several => None,
            })
            .collect()
    }
}

/// The flows of all sections; see [`Workload::merge`].
fn merge_by_start(mut sections: Vec<Vec<FlowSpec>>) -> Vec<FlowSpec> {
    // Millions of flows need no copy.
    if sections.len() == 1 {
        return sections.remove(0);
    }
    let mut merged = Vec::with_capacity(sections.iter().map(Vec::len).sum());
    let mut sections: Vec<_> = sections
        .into_iter()
        .map(|flows| flows.into_iter().peekable())
        .collect();
    let after = |time: Time, flow: &FlowSpec| match flow.start {
        Start::At(start) => start,
        Start::On(_) | Start::Posted(_) => time,
    };
    let mut heads = BinaryHeap::new();
    for (index, section) in sections.iter_mut().enumerate() {
        let head = section.peek().map(|flow| after(Time::ZERO, flow));
        heads.extend(head.map(|time| Reverse((time, index))));
    }
    while let Some(Reverse((time, index))) = heads.pop() {
        let section = &mut sections[index];
        merged.extend(section.next());
        let head = section.peek().map(|flow| after(time, flow));
        heads.extend(head.map(|time| Reverse((time, index))));
    }
    merged
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TriggerKind;

    fn flow(src: u32, dst: u32) -> FlowSpec {
        FlowSpec::timed(1, HostId(src), HostId(dst), Bytes::new(1000), Time::ZERO)
    }

    fn oneshot(label: u64) -> TriggerSpec {
        TriggerSpec {
            label,
            kind: TriggerKind::Oneshot,
        }
    }

    /// Host 0 sends to 1, then `second` follows when that is sent, or received.
    fn pair(on_sent: bool, second: FlowSpec) -> Workload {
        let trigger = Some(TriggerIndex(0));
        let first = FlowSpec {
            on_sent: trigger.filter(|_| on_sent),
            on_received: trigger.filter(|_| !on_sent),
            ..flow(0, 1)
        };
        let second = FlowSpec {
            start: Start::On(TriggerIndex(0)),
            ..second
        };
        Workload {
            flows: vec![first, second],
            triggers: vec![oneshot(1)],
        }
    }

    #[test]
    fn merging_shifts_triggers_and_keeps_labels() {
        let section = pair(true, flow(0, 2));
        let merged = Workload::merge([section.clone(), section.clone()]).unwrap();
        assert_eq!(merged.flows[..2], section.flows);
        assert_eq!(merged.flows[2].on_sent, Some(TriggerIndex(1)));
        assert_eq!(merged.flows[3].start, Start::On(TriggerIndex(1)));
        assert_eq!(merged.flows[3].label, 1);
        assert_eq!(merged.triggers.len(), 2);
        merged.check(3).unwrap();
        assert_eq!(Workload::merge([]).unwrap(), Workload::default());
    }

    #[test]
    fn appended_flows_follow_all_others() {
        let late = FlowSpec {
            start: Start::At(Time::from_us(5)),
            ..flow(0, 1)
        };
        let mut all = Workload {
            flows: vec![late],
            triggers: vec![oneshot(1)],
        };
        all.append(pair(true, flow(0, 2))).unwrap();
        assert_eq!(all.flows[0].start, Start::At(Time::from_us(5)));
        assert_eq!(all.flows[1].on_sent, Some(TriggerIndex(1)));
        assert_eq!(all.flows[2].start, Start::On(TriggerIndex(1)));
        assert_eq!(all.triggers.len(), 2);
    }

    #[test]
    fn merged_flows_follow_each_other_by_start() {
        let at = |label, us| FlowSpec {
            label,
            start: Start::At(Time::from_us(us)),
            ..flow(0, 1)
        };
        let section = |flows| Workload {
            flows,
            triggers: Vec::new(),
        };
        let ordered = section(vec![at(1, 0), at(2, 5), at(3, 9)]);
        let disordered = section(vec![at(4, 7), at(5, 1), at(6, 9)]);
        let mut chained = pair(true, flow(0, 2));
        chained.flows[0].start = Start::At(Time::from_us(5));
        chained.flows[0].label = 7;
        chained.flows[1].label = 8;
        let merged = Workload::merge([ordered.clone(), disordered, chained, section(Vec::new())]);
        let labels: Vec<u64> = merged
            .unwrap()
            .flows
            .iter()
            .map(|flow| flow.label)
            .collect();
        assert_eq!(labels, [1, 2, 7, 8, 4, 5, 3, 6]);
        assert_eq!(Workload::merge([ordered.clone()]).unwrap(), ordered);
    }

    #[test]
    fn a_trigger_is_at_home_where_everything_about_it_happens() {
        for (workload, home) in [
            (pair(true, flow(0, 2)), Some(HostId(0))),
            (pair(true, flow(1, 2)), None),
            (pair(false, flow(1, 0)), Some(HostId(1))),
            (pair(false, flow(0, 1)), None),
        ] {
            assert_eq!(workload.trigger_home(TriggerIndex(0)), home);
            assert_eq!(workload.trigger_homes(), [home]);
        }
        let unused = Workload {
            flows: vec![flow(0, 1)],
            triggers: vec![oneshot(1)],
        };
        assert_eq!(unused.trigger_home(TriggerIndex(0)), None);
        assert_eq!(unused.trigger_homes(), [None]);
    }
}
