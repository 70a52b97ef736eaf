//! Random flows, and flows that start others.

use super::draw::Draw;
use clearway_fabric::{Flow, FlowEvent, FlowMilestone, Reactions};
use clearway_transport::Class;
use clearway_units::{Bytes, FlowId, HostId, Time};
use std::collections::VecDeque;
use std::sync::Arc;

/// Events that start flows.
#[derive(Debug, Clone)]
enum Rule {
    /// Barrier: the flow starts when all of these have happened.
    Barrier {
        missing: Vec<(FlowId, FlowMilestone)>,
        start: FlowId,
    },
    /// Each of these starts the next flow of the line: the order of events shows.
    Relay {
        events: Vec<(FlowId, FlowMilestone)>,
        line: VecDeque<FlowId>,
    },
}

/// Rules by which events start flows.
#[derive(Debug, Clone, Default)]
pub(crate) struct Triggers(Vec<Rule>);

impl Triggers {
    /// The rules that start flows which `belongs` says yes to.
    pub(crate) fn filter(&self, belongs: impl Fn(FlowId) -> bool) -> Self {
        let belongs = |rule: &&Rule| match rule {
            Rule::Barrier { start, .. } => belongs(*start),
            Rule::Relay { line, .. } => belongs(line[0]),
        };
        Self(self.0.iter().filter(belongs).cloned().collect())
    }

    pub(crate) fn boxed(self) -> Option<Box<dyn Reactions>> {
        (!self.0.is_empty()).then(|| Box::new(self) as Box<dyn Reactions>)
    }
}

impl Reactions for Triggers {
    fn on_event(&mut self, event: FlowEvent, start: &mut Vec<FlowId>) {
        let this = (event.flow, event.milestone);
        for rule in &mut self.0 {
            match rule {
                Rule::Barrier {
                    missing,
                    start: flow,
                } => {
                    let before = missing.len();
                    missing.retain(|&event| event != this);
                    if missing.is_empty() && before > 0 {
                        start.push(*flow);
                    }
                }
                Rule::Relay { events, line } if events.contains(&this) => {
                    start.extend(line.pop_front());
                }
                Rule::Relay { .. } => {}
            }
        }
    }
}

/// Flows with start times, then flows that events at their own host start, then flows that the coordinator starts.
pub(crate) fn random_flows(
    draw: &mut Draw,
    hosts: u32,
    payload: u32,
) -> (Arc<[Flow]>, Triggers, Triggers) {
    let mut flows = scheduled_flows(draw, hosts, payload);
    let (mut local, mut coordinated) = (Triggers::default(), Triggers::default());
    if draw.chance(30) {
        add_local(draw, hosts, payload, &mut flows, &mut local);
    }
    if draw.chance(30) {
        add_coordinated(draw, hosts, payload, &mut flows, &mut coordinated);
    }
    (flows.into(), local, coordinated)
}

fn scheduled_flows(draw: &mut Draw, hosts: u32, payload: u32) -> Vec<Flow> {
    let count = draw.between(1, 16) as u32;
    let target = HostId(draw.below(hosts));
    let pattern = draw.below(3);
    let together = draw.chance(50);
    let equal = draw.chance(40).then(|| random_size(draw, payload));
    let flow = |i: u32| {
        let src = draw.below(hosts);
        let (src, dst) = match pattern {
            0 => (HostId(src), target),
            1 => (HostId(i % hosts), HostId((i + 1) % hosts)),
            _ => (HostId(src), HostId(draw.below(hosts))),
        };
        // A host that talks to itself over its switch is legal, but should stay the exception.
        let dst = if src == dst && draw.chance(90) {
            HostId((src.0 + 1) % hosts)
        } else {
            dst
        };
        let start = if together {
            0
        } else {
            draw.between(0, 30) * draw.pick(&[1, 333, 100_000, 1_000_000])
        };
        let bytes = equal.unwrap_or_else(|| random_size(draw, payload));
        Flow::timed(src, dst, bytes, Time::from_ps(start))
    };
    (0..count).map(flow).collect()
}

/// From nothing to 300 KB, the edges of packets more often than chance would have it.
fn random_size(draw: &mut Draw, payload: u32) -> Bytes {
    let payload = u64::from(payload);
    let bytes = match draw.below(10) {
        0 => draw.pick(&[0, 1]),
        1 => draw.between(1, 3) * payload + draw.between(0, 2) - 1,
        2..=6 => draw.between(1, 20_000),
        7 | 8 => draw.between(1, 80_000),
        _ => draw.between(1, 300_000),
    };
    // Tiny packets: fewer bytes, so that no scenario takes long.
    Bytes::new(bytes.min(payload * 80))
}

/// Each new flow answers a flow that its source has sent or received.
fn add_local(
    draw: &mut Draw,
    hosts: u32,
    payload: u32,
    flows: &mut Vec<Flow>,
    local: &mut Triggers,
) {
    for _ in 0..draw.between(1, 6) {
        let after = draw.below(flows.len() as u32);
        let cause = flows[after as usize];
        let (src, milestone) = if draw.chance(50) {
            (cause.src, FlowMilestone::Sent)
        } else {
            (cause.dst, FlowMilestone::Received)
        };
        let start = FlowId(flows.len() as u32);
        local.0.push(Rule::Barrier {
            missing: vec![(FlowId(after), milestone)],
            start,
        });
        flows.push(unscheduled(draw, src, hosts, payload));
    }
}

fn add_coordinated(
    draw: &mut Draw,
    hosts: u32,
    payload: u32,
    flows: &mut Vec<Flow>,
    coordinated: &mut Triggers,
) {
    let milestone = draw.pick(&[
        FlowMilestone::Started,
        FlowMilestone::Received,
        FlowMilestone::Sent,
    ]);
    let events: Vec<(FlowId, FlowMilestone)> = (0..flows.len() as u32)
        .filter(|_| draw.chance(60))
        .map(|flow| (FlowId(flow), milestone))
        .collect();
    let mut add = |draw: &mut Draw| {
        let src = HostId(draw.below(hosts));
        flows.push(unscheduled(draw, src, hosts, payload));
        FlowId(flows.len() as u32 - 1)
    };
    if events.is_empty() {
        return;
    }
    // A line that is longer than there are events: the run must say that it is stuck.
    let line = (0..draw.between(1, 4)).map(|_| add(draw)).collect();
    let start = add(draw);
    coordinated.0.push(Rule::Barrier {
        missing: events.clone(),
        start,
    });
    coordinated.0.push(Rule::Relay { events, line });
}

fn unscheduled(draw: &mut Draw, src: HostId, hosts: u32, payload: u32) -> Flow {
    Flow {
        src,
        dst: HostId((src.0 + 1 + draw.below(hosts - 1)) % hosts),
        bytes: random_size(draw, payload),
        transport: 0,
        variant: 0,
        phase: Bytes::ZERO,
        class: Class::DATA,
        messages: None,
        start: None,
    }
}
