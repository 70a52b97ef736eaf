//! Dependencies in a finished run: flows that started because of other flows.

use crate::assemble::Assembly;
use crate::run::{Finished, FlowResult};
use clearway_units::{FlowId, Time};
use clearway_workload::{FlowSpec, Start, TriggerIndex, TriggerKind};

/// Flows that started because of the progress of other flows.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Dependencies {
    /// A cause and its effect, in the order of triggers, effects and activations.
    pub pairs: Vec<(FlowId, FlowId)>,
    /// Number of further pairs, which are not in `pairs`.
    pub left_out: u64,
}

/// The flows before and behind a trigger.
#[derive(Debug, Clone, Default)]
struct Around {
    /// Flows that have activated the trigger, each with its time.
    activations: Vec<(Time, FlowId)>,
    /// Flows that wait for the trigger, in the order of the workload.
    waiting: Vec<FlowId>,
}

impl Assembly {
    /// The first `limit` dependencies that occurred. A barrier between many flows has as many dependencies as the product of the flows
    /// before and behind it.
    ///
    /// Activations of a multishot trigger at the same instant count in the order of their flows.
    pub fn dependencies(&self, finished: &Finished, limit: usize) -> Dependencies {
        let mut all = vec![Around::default(); self.workload.triggers.len()];
        for ((id, flow), result) in self.workload.numbered().zip(&finished.flows) {
            for (trigger, time) in activations(flow, result) {
                all[trigger.index()].activations.push((time, id));
            }
            if let Start::On(trigger) = flow.start {
                all[trigger.index()].waiting.push(id);
            }
        }
        let mut found = Dependencies::default();
        for (around, trigger) in all.iter_mut().zip(&self.workload.triggers) {
            around.activations.sort_unstable();
            let causes = |place: usize| match trigger.kind {
                TriggerKind::Oneshot | TriggerKind::Barrier { .. } => &around.activations[..],
                TriggerKind::Multishot => around.activations.get(place..=place).unwrap_or_default(),
            };
            for (place, &effect) in around.waiting.iter().enumerate() {
                if finished.flows[effect.index()].started.is_none() {
                    continue;
                }
                let causes = causes(place);
                let kept = causes.len().min(limit - found.pairs.len());
                let pairs = causes[..kept].iter().map(|&(_, cause)| (cause, effect));
                found.pairs.extend(pairs);
                found.left_out += (causes.len() - kept) as u64;
            }
        }
        found
    }
}

/// The triggers that a flow has activated, each with the time.
fn activations(
    flow: &FlowSpec,
    result: &FlowResult,
) -> impl Iterator<Item = (TriggerIndex, Time)> + use<> {
    let sent = flow.on_sent.zip(result.finished);
    let received = flow.on_received.zip(result.received);
    sent.into_iter().chain(received)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Laboratory;
    use crate::RunOptions;
    use clearway_fabric::{RunDecision, Watch};

    const FLOWS: &str = "Nodes 8\nConnections 8\nTriggers 3\n\
        0->1 id 1 start 0 size 40960 send_done_trigger 1\n\
        1->2 id 2 trigger 1 size 4096 recv_done_trigger 2\n\
        3->4 id 3 start 0 size 409600 send_done_trigger 2\n\
        5->6 id 4 trigger 2 size 4096\n\
        6->7 id 5 trigger 2 size 4096 send_done_trigger 3\n\
        7->0 id 6 start 0 size 4096000 recv_done_trigger 3\n\
        2->1 id 7 trigger 3 size 4096\n\
        2->3 id 8 trigger 3 size 4096\n\
        trigger id 1 oneshot\n\
        trigger id 2 barrier count 2\n\
        trigger id 3 multishot\n";

    #[test]
    fn arrows_go_from_what_happened_to_what_it_started() {
        let folder = clearway_testing::Folder::new("arrows");
        let file = folder.join("flows.cm");
        std::fs::write(&file, FLOWS).unwrap();
        let overrides: Vec<String> = [
            "topology.kind=leaf-spine",
            "topology.hosts=8",
            "topology.hosts-per-leaf=4",
            &format!("workload.file={}", file.display()),
        ]
        .map(String::from)
        .into();
        let scenario = Laboratory::new().read("test", "", None, &overrides);
        let assembly = Assembly::new(&scenario.unwrap()).unwrap();
        let options = RunOptions {
            threads: 1.into(),
            on_progress: &mut |_| RunDecision::Continue,
            on_flow: &mut |_, _, _| (),
        };
        let finished = assembly.run(options, Watch::Off);
        let pairs = |limit| {
            let found = assembly.dependencies(&finished, limit);
            let pairs: Vec<(u32, u32)> = found.pairs.iter().map(|(a, b)| (a.0, b.0)).collect();
            (pairs, found.left_out)
        };
        // The barrier is entered by flow 1 first; the long flow 5 is the second to fire the multishot.
        let all = [(0, 1), (1, 3), (2, 3), (1, 4), (2, 4), (4, 6), (5, 7)];
        assert_eq!(pairs(100), (all.to_vec(), 0));
        assert_eq!(pairs(3), (all[..3].to_vec(), 4));
        for (cause, effect) in all {
            let started = finished.flows[effect as usize].started.unwrap();
            assert!(finished.flows[cause as usize].received.unwrap() < started);
        }
    }
}
