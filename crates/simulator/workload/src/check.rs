//! The proof, before a run, that every flow of a workload can start.

use crate::{
    FlowName, FlowSpec, Start, TriggerIndex, TriggerKind, Triggers, Workload, WorkloadError,
};
use clearway_units::{Bytes, FlowId, HostId};

/// Flows that activate each trigger, and flows that wait for it. The lists are in the order of the flows.
struct Wiring {
    activators: Vec<Vec<FlowId>>,
    waiting: Vec<Vec<FlowId>>,
}

impl Wiring {
    fn from_workload(workload: &Workload) -> Self {
        let mut wiring = Self {
            activators: vec![Vec::new(); workload.triggers.len()],
            waiting: vec![Vec::new(); workload.triggers.len()],
        };
        for (id, flow) in workload.numbered() {
            if let Start::On(trigger) = flow.start {
                wiring.waiting[trigger.index()].push(id);
            }
            for (trigger, _) in flow.activations() {
                wiring.activators[trigger.index()].push(id);
            }
        }
        wiring
    }
}

impl Workload {
    /// Proves that the workload can run on `hosts` hosts: its hosts exist, each flow carries something to another host, and each flow
    /// starts once the flows before it finish, independent of the network.
    ///
    /// A trigger without flows that wait for it is allowed: it starts nothing.
    ///
    /// # Errors
    /// The first fault: flows in their order, then triggers in theirs, then cycles.
    pub fn check(&self, hosts: u32) -> Result<(), WorkloadError> {
        self.check_counts()?;
        for (id, flow) in self.numbered() {
            self.check_flow(id, flow, hosts)?;
        }
        self.check_total()?;
        let wiring = Wiring::from_workload(self);
        for index in 0..self.triggers.len() as u32 {
            self.check_trigger(TriggerIndex(index), &wiring)?;
        }
        self.check_circles(&wiring)
    }

    /// Proves that flows and triggers can be numbered.
    ///
    /// # Errors
    /// If there are 2^32 or more of either.
    pub fn check_counts(&self) -> Result<(), WorkloadError> {
        for (what, count) in [
            ("flows", self.flows.len()),
            ("triggers", self.triggers.len()),
        ] {
            if u32::try_from(count).is_err() {
                return Err(WorkloadError::TooMany { what });
            }
        }
        Ok(())
    }

    fn name(&self, id: FlowId) -> FlowName {
        let flow = self.flow(id);
        FlowName {
            id,
            label: flow.label,
            src: flow.src,
            dst: flow.dst,
        }
    }

    fn check_flow(&self, id: FlowId, spec: &FlowSpec, hosts: u32) -> Result<(), WorkloadError> {
        let flow = self.name(id);
        let unknown = |host: &HostId| host.0 >= hosts;
        if let Some(host) = [spec.src, spec.dst].into_iter().find(unknown) {
            return Err(WorkloadError::UnknownHost { flow, host, hosts });
        }
        if spec.src == spec.dst {
            return Err(WorkloadError::SameHost { flow });
        }
        if spec.bytes == Bytes::ZERO {
            return Err(WorkloadError::NoBytes { flow });
        }
        let waits_for = match spec.start {
            Start::At(time) if time.is_never() => return Err(WorkloadError::StartsNever { flow }),
            Start::At(_) | Start::Posted(_) => None,
            Start::On(trigger) => Some(trigger),
        };
        let triggers = self.triggers.len();
        let named = [waits_for, spec.on_sent, spec.on_received];
        match named.into_iter().flatten().find(|t| t.index() >= triggers) {
            Some(TriggerIndex(index)) => Err(WorkloadError::UnknownTrigger {
                flow,
                index,
                triggers,
            }),
            None => Ok(()),
        }
    }

    /// Checks that the sum of all sizes fits in 64 bits, so that later sums over flows need no checks.
    fn check_total(&self) -> Result<(), WorkloadError> {
        let mut total = 0u64;
        for (id, flow) in self.numbered() {
            total = total.checked_add(flow.bytes.as_u64()).ok_or_else(|| {
                let flow = self.name(id);
                WorkloadError::TooManyBytes { flow }
            })?;
        }
        Ok(())
    }

    fn check_trigger(&self, index: TriggerIndex, wiring: &Wiring) -> Result<(), WorkloadError> {
        let spec = &self.triggers[index.index()];
        let trigger = spec.label;
        let activators = &wiring.activators[index.index()];
        let waiting = &wiring.waiting[index.index()];
        let activations = activators.len();
        if let (0, Some(&first)) = (activations, waiting.first()) {
            let flow = self.name(first);
            return Err(WorkloadError::NeverActivated { trigger, flow });
        }
        match (spec.kind, activators.as_slice()) {
            (TriggerKind::Oneshot, &[first, second, ..]) => {
                Err(WorkloadError::OneshotActivations {
                    trigger,
                    index,
                    flows: [self.name(first), self.name(second)],
                    activations,
                })
            }
            (TriggerKind::Barrier { count }, _) if count as usize != activations => {
                Err(WorkloadError::BarrierCount {
                    trigger,
                    index,
                    count,
                    activations,
                })
            }
            // More activations than waiting flows start nothing, as in htsim.
            (TriggerKind::Multishot, _) if activations < waiting.len() => {
                Err(WorkloadError::MultishotActivations {
                    trigger,
                    index,
                    activations,
                    waiting: waiting.len(),
                })
            }
            _ => Ok(()),
        }
    }

    /// Checks that every flow starts: starts those that the clock starts, lets flows that run finish, and looks for flows that are left.
    ///
    /// The order of finishing does not matter: each trigger has exactly the activations that start all of its flows, so
    /// a flow is left only if an activator of its trigger is left too.
    fn check_circles(&self, wiring: &Wiring) -> Result<(), WorkloadError> {
        let mut triggers = Triggers::new(self);
        let mut started: Vec<bool> = self
            .flows
            .iter()
            .map(|flow| !matches!(flow.start, Start::On(_)))
            .collect();
        let mut running: Vec<FlowId> = self
            .numbered()
            .filter(|(id, _)| started[id.index()])
            .map(|(id, _)| id)
            .collect();
        while let Some(finished) = running.pop() {
            for (trigger, _) in self.flow(finished).activations() {
                for flow in triggers.activate(trigger) {
                    started[flow.index()] = true;
                    running.push(flow);
                }
            }
        }
        match started.iter().position(|&started| !started) {
            Some(left) => Err(self.circle_from(FlowId(left as u32), &started, wiring)),
            None => Ok(()),
        }
    }

    /// Follows a flow that never starts to one that would have to end first, and on, until a flow comes up again.
    fn circle_from(&self, left: FlowId, started: &[bool], wiring: &Wiring) -> WorkloadError {
        const NOT_SEEN: usize = usize::MAX;
        let mut seen_at = vec![NOT_SEEN; self.flows.len()];
        let mut path = Vec::new();
        let mut flow = left;
        while seen_at[flow.index()] == NOT_SEEN {
            seen_at[flow.index()] = path.len();
            path.push(self.name(flow));
            let Start::On(trigger) = self.flow(flow).start else {
                unreachable!("a flow that the clock starts is never left");
            };
            flow = *wiring.activators[trigger.index()]
                .iter()
                .find(|activator| !started[activator.index()])
                .expect("a flow is left only if an activator of its trigger is left");
        }
        WorkloadError::Cycle {
            flows: path.split_off(seen_at[flow.index()]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TriggerSpec;
    use clearway_units::Time;
    use insta::assert_snapshot;

    /// Flow number `label` from host `label` to the next of 8.
    fn flow(label: u32) -> FlowSpec {
        let dst = HostId((label + 1) % 8);
        FlowSpec::timed(
            label.into(),
            HostId(label),
            dst,
            Bytes::new(1000),
            Time::ZERO,
        )
    }
    fn waits(label: u32, trigger: u32) -> FlowSpec {
        FlowSpec {
            start: Start::On(TriggerIndex(trigger)),
            ..flow(label)
        }
    }
    fn activates(flow: FlowSpec, trigger: u32) -> FlowSpec {
        FlowSpec {
            on_sent: Some(TriggerIndex(trigger)),
            ..flow
        }
    }
    fn workload(flows: &[FlowSpec], kinds: &[TriggerKind]) -> Workload {
        Workload {
            flows: flows.to_vec(),
            triggers: (10..)
                .zip(kinds)
                .map(|(label, &kind)| TriggerSpec { label, kind })
                .collect(),
        }
    }
    fn error(flows: &[FlowSpec], kinds: &[TriggerKind]) -> WorkloadError {
        workload(flows, kinds).check(8).unwrap_err()
    }
    use TriggerKind::{Barrier, Multishot, Oneshot};

    #[test]
    fn sound_workloads_pass() {
        let both_ends = FlowSpec {
            on_received: Some(TriggerIndex(0)),
            ..activates(flow(1), 0)
        };
        for (flows, kinds) in [
            (vec![], vec![]),
            (
                vec![flow(1), activates(waits(2, 0), 1), activates(flow(3), 0)],
                vec![Oneshot, Oneshot],
            ),
            (
                vec![both_ends.clone(), waits(2, 0)],
                vec![Barrier { count: 2 }],
            ),
            (vec![both_ends, waits(2, 0), waits(3, 0)], vec![Multishot]),
            // A multishot may feed itself as long as something else begins.
            (
                vec![
                    activates(waits(2, 0), 0),
                    waits(3, 0),
                    activates(flow(1), 0),
                ],
                vec![Multishot],
            ),
        ] {
            assert_eq!(workload(&flows, &kinds).check(8), Ok(()));
        }
    }

    #[test]
    fn faults_of_single_flows() {
        let far = FlowSpec {
            dst: HostId(8),
            ..flow(2)
        };
        assert_snapshot!(error(&[flow(1), far], &[]), @"
        flow 2 (2->8) names host 8, but there are 8 hosts, 0 to 7
          fix: name a host from 0 to 7, or give the topology more
        ");
        assert_snapshot!(workload(&[flow(1)], &[]).check(0).unwrap_err(), @"
        flow 1 (1->2) names host 1, but there are no hosts
          fix: give the topology more hosts
        ");
        assert_snapshot!(workload(&[flow(0)], &[]).check(1).unwrap_err(), @"
        flow 0 (0->1) names host 1, but there is only host 0
          fix: give the topology more hosts
        ");
        let own = FlowSpec {
            dst: HostId(3),
            ..flow(3)
        };
        assert_snapshot!(error(&[own], &[]), @"
        flow 3 (3->3) goes from a host to itself
          fix: choose another destination
        ");
        let empty = FlowSpec {
            bytes: Bytes::ZERO,
            ..flow(3)
        };
        assert_snapshot!(error(&[empty], &[]), @"
        flow 3 (3->4) carries no bytes
          fix: give it a size of at least one byte
        ");
        let never = FlowSpec {
            start: Start::At(Time::NEVER),
            ..flow(3)
        };
        assert_snapshot!(error(&[never], &[]), @"
        flow 3 (3->4) starts at the end of time
          fix: give it a start within the run
        ");
        let huge = FlowSpec {
            bytes: Bytes::new(u64::MAX),
            ..flow(3)
        };
        assert_snapshot!(error(&[huge, flow(2)], &[]), @"
        the sizes up to flow 2 (2->3) add up to more than 2^64 bytes
          fix: give it a smaller size
        ");
        assert_snapshot!(error(&[activates(flow(3), 1)], &[Oneshot]), @"
        flow 3 (3->4) names trigger number 1, but the workload has 1 trigger
          fix: declare the trigger, or name one that exists
        ");
    }

    #[test]
    fn faults_of_triggers() {
        assert_snapshot!(error(&[flow(1), waits(2, 0)], &[Oneshot]), @"
        flow 2 (2->3) waits for trigger 10, which no flow activates
          fix: let a flow activate trigger 10 when it is sent or received, or start the flow by the clock
        ");
        let three = [1, 2, 3].map(|label| activates(flow(label), 0));
        assert_snapshot!(error(&three, &[Oneshot]), @"
        trigger 10 is a oneshot but has 3 activations, the first two by flow 1 (1->2) and flow 2 (2->3)
          fix: make it a barrier of count 3 to wait for all of them, or a multishot to start one flow for each
        ");
        assert_snapshot!(error(&three, &[Barrier { count: 2 }]), @"
        trigger 10 is a barrier of count 2, but has 3 activations
          fix: set the count to 3, or change the flows that activate it
        ");
        assert_snapshot!(error(&[flow(1)], &[Barrier { count: 2 }]), @"
        trigger 10 is a barrier of count 2, but has 0 activations
          fix: let flows activate it, or remove the trigger
        ");
        let few = [activates(flow(1), 0), waits(2, 0), waits(3, 0)];
        assert_snapshot!(error(&few, &[Multishot]), @"
        trigger 10 is a multishot with 1 activation for 2 waiting flows
          fix: let more flows activate it: each activation starts one flow, the rest never start
        ");
    }

    #[test]
    fn circles_name_their_flows() {
        let circle = [
            waits(0, 0),
            activates(waits(1, 1), 0),
            activates(waits(2, 0), 1),
        ];
        assert_snapshot!(error(&circle, &[Oneshot, Oneshot]), @"
        flows that start one another in a circle never start: flow 1 (1->2), flow 2 (2->3), each waiting for the next and the last for the first
          fix: start one of them by the clock
        ");
        assert_snapshot!(error(&[flow(1), activates(waits(2, 0), 0)], &[Oneshot]), @"
        flow 2 (2->3) waits for its own end
          fix: start one of them by the clock
        ");
        let long: Vec<FlowSpec> = (0..7)
            .map(|i| activates(waits(i, i), (i + 1) % 7))
            .collect();
        let error = error(&long, &[Oneshot; 7]);
        assert_snapshot!(error, @"
        flows that start one another in a circle never start: flow 0 (0->1), flow 6 (6->7), flow 5 (5->6), flow 4 (4->5), 3 more, each waiting for the next and the last for the first
          fix: start one of them by the clock
        ");
        assert_eq!(error.subject(), Some(crate::ErrorSubject::Flow(FlowId(0))));
    }

    #[test]
    fn a_fault_that_a_section_had_survives_merging() {
        let dangling = workload(&[waits(1, 0)], &[]);
        let sound = workload(&[activates(flow(1), 0), waits(2, 0)], &[Oneshot]);
        let merged = Workload::merge([dangling, sound]).unwrap();
        assert!(matches!(
            merged.check(8),
            Err(WorkloadError::UnknownTrigger {
                index: u32::MAX,
                ..
            })
        ));
    }
}
