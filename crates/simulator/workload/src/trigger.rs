//! Triggers at run time: activations in, flows to start out.

use crate::{Start, TriggerIndex, TriggerKind, Workload};
use clearway_units::FlowId;

/// One trigger at run time. Pure state: the same activations yield the same flows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trigger {
    kind: TriggerKind,
    activations: u32,
    /// The flows that wait for it, in the order of the workload.
    flows: Vec<FlowId>,
}

impl Trigger {
    /// Counts one activation and returns the flows to start now.
    ///
    /// More activations than the trigger was made for start nothing.
    pub fn activate(&mut self) -> &[FlowId] {
        self.activations = self.activations.saturating_add(1);
        let nth = self.activations;
        match self.kind {
            TriggerKind::Oneshot => self.all_if(nth == 1),
            TriggerKind::Multishot => self
                .flows
                .get(nth as usize - 1..nth as usize)
                .unwrap_or(&[]),
            TriggerKind::Barrier { count } => self.all_if(nth == count),
        }
    }

    fn all_if(&self, now: bool) -> &[FlowId] {
        if now { &self.flows } else { &[] }
    }

    /// Number of activations so far.
    pub const fn activations(&self) -> u32 {
        self.activations
    }
}

/// All triggers of a workload at run time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Triggers(Vec<Trigger>);

impl Triggers {
    /// The triggers of `workload`, none of them activated.
    ///
    /// # Panics
    /// If a flow names a trigger that does not exist; [`Workload::check`] refuses such a workload.
    pub fn new(workload: &Workload) -> Self {
        let mut triggers: Vec<Trigger> = workload
            .triggers
            .iter()
            .map(|spec| Trigger {
                kind: spec.kind,
                activations: 0,
                flows: Vec::new(),
            })
            .collect();
        for (id, flow) in workload.numbered() {
            if let Start::On(trigger) = flow.start {
                triggers[trigger.index()].flows.push(id);
            }
        }
        Self(triggers)
    }

    /// Counts one activation of `trigger` and yields the flows to start now: all of a oneshot, the next one of a multishot, all of a
    /// barrier at the `count`-th activation.
    ///
    /// # Panics
    /// If the trigger does not exist.
    pub fn activate(&mut self, trigger: TriggerIndex) -> impl Iterator<Item = FlowId> + '_ {
        self.0[trigger.index()].activate().iter().copied()
    }

    /// The single triggers, by index, for a simulator that hands them to different owners.
    pub fn into_vec(self) -> Vec<Trigger> {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{FlowSpec, TriggerSpec};
    use clearway_units::{Bytes, HostId, Time};

    fn waiting(kind: TriggerKind) -> Triggers {
        let flow = |start| FlowSpec {
            start,
            ..FlowSpec::timed(1, HostId(0), HostId(1), Bytes::new(1), Time::ZERO)
        };
        let waits = flow(Start::On(TriggerIndex(0)));
        Triggers::new(&Workload {
            flows: vec![waits.clone(), flow(Start::At(Time::ZERO)), waits],
            triggers: vec![TriggerSpec { label: 1, kind }],
        })
    }

    fn script(kind: TriggerKind) -> Vec<Vec<u32>> {
        let mut triggers = waiting(kind);
        (0..4)
            .map(|_| {
                triggers
                    .activate(TriggerIndex(0))
                    .map(|flow| flow.0)
                    .collect()
            })
            .collect()
    }

    #[test]
    fn each_kind_starts_its_flows_when_it_should() {
        let none = Vec::new;
        assert_eq!(
            script(TriggerKind::Oneshot),
            [vec![0, 2], none(), none(), none()]
        );
        assert_eq!(
            script(TriggerKind::Multishot),
            [vec![0], vec![2], none(), none()]
        );
        assert_eq!(
            script(TriggerKind::Barrier { count: 3 }),
            [none(), none(), vec![0, 2], none()]
        );
    }

    #[test]
    fn single_triggers_count_for_themselves() {
        let mut triggers = waiting(TriggerKind::Oneshot).into_vec();
        assert_eq!(triggers[0].activate(), [FlowId(0), FlowId(2)]);
        assert_eq!(triggers[0].activations(), 1);
    }
}
