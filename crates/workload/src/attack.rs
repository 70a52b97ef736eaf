//! Attacks on congestion control that keeps its state for each queue pair, or for each pair of hosts (Dissertation §3.5), as
//! transformations of a workload: the same bytes leave the attackers' hosts, over other queue pairs.
//!
//! * [Parallel](AttackKind::Parallel) (§3.5.1): a message is striped over many queue pairs, all at once, each with a share of its own.
//! * [Staggered](AttackKind::Staggered) (§3.5.2): a queue pair sends what it may send before it hears of congestion, then the next one
//!   takes over.
//! * [Overlay](AttackKind::Overlay) (§3.5.3): the same, and the next queue pair leads to another of the attackers' hosts, which would
//!   pass the data on; of flows between attackers, for the pairs that change are theirs. Instead of Tillson's decomposition into
//!   Hamiltonian cycles the hosts form rings: the `k`-th piece of host `i` goes to host `i + d(k)` of the `n`, with steps `d` that have no
//!   divisor in common with `n`, forwards and backwards in turn. What a relay passes on is not simulated.
//!
//! Pieces are flows. Each names the message that it is a piece of.

use crate::{FlowSpec, Start, Workload};
use clearway_units::{Bytes, HostId, RandomStream, Span, choices};

choices! {
    /// Kind of an attack.
    pub enum AttackKind {
        /// None.
        None = "none",
        /// Many queue pairs at once.
        Parallel = "parallel",
        /// One queue pair after another.
        Staggered = "staggered",
        /// One pair of hosts after another.
        Overlay = "overlay",
    }
}

/// Attack on the flows of a workload.
#[derive(Debug, Clone, PartialEq)]
pub struct Attack {
    /// Kind of the attack.
    pub kind: AttackKind,
    /// The hosts that attack, ascending.
    pub hosts: Vec<HostId>,
    /// Share of the flows of these hosts that are part of it, 0 to 1.
    pub share: f64,
    /// Flows of at most so many bytes stay as they are.
    pub above: Bytes,
    /// Bytes of a piece, above zero. The last one of a message has what is left.
    pub bytes: Bytes,
    /// Number of queue pairs of a parallel attack, for equal parts, instead of pieces of so many bytes.
    pub queue_pairs: Option<u32>,
    /// Time between the starts of two pieces of a message, unless they start at once.
    pub gap: Span,
}

/// Error of an attack that a workload does not allow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AttackFault {
    /// A flow of an attacker waits for a trigger, activates one, or belongs to a job.
    Dependent {
        /// Label of the flow.
        label: u64,
    },
    /// An overlay of fewer than three hosts.
    TooFewHosts {
        /// Number of hosts.
        hosts: usize,
    },
    /// No flow is part of the attack.
    Nothing,
    /// More pieces than [`Attack::MOST_PIECES`].
    TooManyPieces,
}

impl Attack {
    /// Pieces of a workload at most.
    pub const MOST_PIECES: usize = 1 << 24;

    /// The workload with this attack: of flows that are part of it, pieces. Flows are then in the order of their starts, and `random` has
    /// chosen those that are part of it, if not all are.
    ///
    /// # Errors
    /// If a flow depends on others, if an overlay has too few hosts, if no flow is part of the attack, or if there are too many pieces.
    pub fn apply(
        &self,
        mut workload: Workload,
        random: &mut RandomStream,
    ) -> Result<Workload, AttackFault> {
        let steps = self.steps()?;
        let last = workload.flows.iter().map(|flow| flow.label).max();
        let mut next_label = last.map_or(Some(0), |label| label.checked_add(1));
        let mut flows = Vec::with_capacity(workload.flows.len());
        for flow in std::mem::take(&mut workload.flows) {
            let place = self.hosts.binary_search(&flow.src).ok();
            let Some(place) = place.filter(|_| self.takes(&flow, random)) else {
                flows.push(flow);
                continue;
            };
            let Start::At(start) = flow.start else {
                return Err(AttackFault::Dependent { label: flow.label });
            };
            if flow.on_sent.is_some() || flow.on_received.is_some() {
                return Err(AttackFault::Dependent { label: flow.label });
            }
            let mut pieces = self.sizes(flow.bytes);
            for (number, bytes) in (0u64..).zip(&mut pieces) {
                let label = match number {
                    0 => flow.label,
                    _ => {
                        let label = next_label.ok_or(AttackFault::TooManyPieces)?;
                        next_label = label.checked_add(1);
                        label
                    }
                };
                let wait = match self.kind {
                    AttackKind::None | AttackKind::Parallel => Span::ZERO,
                    AttackKind::Staggered | AttackKind::Overlay => {
                        Span::from_ps(self.gap.as_ps().saturating_mul(number))
                    }
                };
                let step = steps.get((number % steps.len().max(1) as u64) as usize);
                flows.push(FlowSpec {
                    label,
                    bytes,
                    start: Start::At(start.saturating_add(wait)),
                    dst: step.map_or(flow.dst, |step| {
                        self.hosts[(place + step) % self.hosts.len()]
                    }),
                    attack: Some(flow.label),
                    ..flow.clone()
                });
                if flows.len() > Self::MOST_PIECES {
                    return Err(AttackFault::TooManyPieces);
                }
            }
        }
        if flows.iter().all(|flow| matches!(flow.start, Start::At(_))) {
            flows.sort_by_key(|flow| match flow.start {
                Start::At(start) => Some(start),
                Start::On(_) | Start::Posted(_) => None,
            });
        }
        if flows.iter().all(|flow| flow.attack.is_none()) {
            return Err(AttackFault::Nothing);
        }
        workload.flows = flows;
        Ok(workload)
    }

    /// True of an attacker's flow that is part of the attack.
    fn takes(&self, flow: &FlowSpec, random: &mut RandomStream) -> bool {
        let is_between = self.hosts.binary_search(&flow.dst).is_ok();
        let can_be = self.kind != AttackKind::Overlay || is_between;
        flow.bytes > self.above && can_be && (self.share >= 1.0 || uniform(random) < self.share)
    }

    /// Sizes of the pieces of a message.
    fn sizes(&self, bytes: Bytes) -> impl Iterator<Item = Bytes> + use<> {
        let whole = bytes.as_u64();
        let piece = match (self.kind, self.queue_pairs) {
            (AttackKind::None, _) => whole,
            (AttackKind::Parallel, Some(count)) => whole.div_ceil(u64::from(count.max(1))),
            _ => self.bytes.as_u64(),
        };
        let piece = piece.max(1);
        (0..whole.div_ceil(piece)).map(move |number| Bytes::new(piece.min(whole - number * piece)))
    }

    /// Steps along the ring of the hosts, in turn; none but for an overlay.
    fn steps(&self) -> Result<Vec<usize>, AttackFault> {
        if self.kind != AttackKind::Overlay {
            return Ok(Vec::new());
        }
        let hosts = self.hosts.len();
        if hosts < 3 {
            return Err(AttackFault::TooFewHosts { hosts });
        }
        let forwards = (1..hosts.div_ceil(2)).filter(|step| greatest_divisor(*step, hosts) == 1);
        Ok(forwards.flat_map(|step| [step, hosts - step]).collect())
    }
}

/// A number from 0 to below 1.
fn uniform(random: &mut RandomStream) -> f64 {
    (random.next_u64() >> 11) as f64 / (1u64 << 53) as f64
}

/// The greatest common divisor.
const fn greatest_divisor(mut a: usize, mut b: usize) -> usize {
    while b > 0 {
        (a, b) = (b, a % b);
    }
    a
}

#[cfg(test)]
mod tests {
    use super::*;
    use clearway_units::{Purpose, Time};

    const ATTACK: Attack = Attack {
        kind: AttackKind::Staggered,
        hosts: Vec::new(),
        share: 1.0,
        above: Bytes::new(1000),
        bytes: Bytes::new(1000),
        queue_pairs: None,
        gap: Span::from_us(10),
    };

    /// Hosts 0 to 3 attack.
    fn attack(kind: AttackKind) -> Attack {
        Attack {
            kind,
            hosts: (0..4).map(HostId).collect(),
            ..ATTACK
        }
    }

    fn flow(label: u64, src: u32, bytes: u64) -> FlowSpec {
        let start = Time::ZERO + Span::from_us(label);
        FlowSpec::timed(label, HostId(src), HostId(9), Bytes::new(bytes), start)
    }

    fn run(attack: &Attack, flows: Vec<FlowSpec>) -> Result<Vec<FlowSpec>, AttackFault> {
        let workload = Workload {
            flows,
            triggers: Vec::new(),
        };
        let mut random = RandomStream::new(1, Purpose::Workload, 0);
        attack
            .apply(workload, &mut random)
            .map(|workload| workload.flows)
    }

    /// Label, receiver, bytes and start in microseconds of the pieces.
    fn pieces(flows: &[FlowSpec]) -> Vec<(u64, u32, u64, u64)> {
        let piece = |flow: &FlowSpec| match flow.start {
            Start::At(time) => (
                flow.label,
                flow.dst.0,
                flow.bytes.as_u64(),
                time.as_ps() / 1_000_000,
            ),
            _ => unreachable!("timed"),
        };
        flows.iter().map(piece).collect()
    }

    #[test]
    fn parallel_pieces_start_at_once() {
        let flows = run(&attack(AttackKind::Parallel), vec![flow(5, 1, 2500)]).unwrap();
        let expected = [(5, 9, 1000, 5), (6, 9, 1000, 5), (7, 9, 500, 5)];
        assert_eq!(pieces(&flows), expected);
        assert!(flows.iter().all(|flow| flow.attack == Some(5)));
        let equal = Attack {
            queue_pairs: Some(2),
            ..attack(AttackKind::Parallel)
        };
        let flows = run(&equal, vec![flow(5, 1, 2500)]).unwrap();
        assert_eq!(pieces(&flows), [(5, 9, 1250, 5), (6, 9, 1250, 5)]);
    }

    #[test]
    fn staggered_pieces_follow_each_other_among_the_flows_of_others() {
        let flows = vec![flow(1, 0, 2001), flow(8, 7, 5000), flow(12, 2, 1000)];
        let flows = run(&attack(AttackKind::Staggered), flows).unwrap();
        let expected = [
            (1, 9, 1000, 1),
            (8, 9, 5000, 8),
            (13, 9, 1000, 11),
            (12, 9, 1000, 12),
            (14, 9, 1, 21),
        ];
        assert_eq!(pieces(&flows), expected);
        let attackers: Vec<bool> = flows.iter().map(|flow| flow.attack.is_some()).collect();
        assert_eq!(attackers, [true, false, true, false, true]);
    }

    #[test]
    fn overlays_lead_to_the_other_attackers_and_never_back() {
        let mut inner = flow(1, 3, 4000);
        inner.dst = HostId(1);
        let flows = run(&attack(AttackKind::Overlay), vec![inner]).unwrap();
        let receivers: Vec<u32> = flows.iter().map(|flow| flow.dst.0).collect();
        assert_eq!(receivers, [0, 2, 0, 2], "one step forwards, one back");
        for hosts in 3..40 {
            let many = Attack {
                hosts: (0..hosts).map(HostId).collect(),
                ..attack(AttackKind::Overlay)
            };
            let steps = many.steps().unwrap();
            assert!(steps.iter().all(|step| (1..hosts as usize).contains(step)));
            // Each step alone visits all hosts.
            for step in steps {
                let ring = (0..hosts as usize).map(|turn| turn * step % hosts as usize);
                let visited: std::collections::BTreeSet<usize> = ring.collect();
                assert_eq!(visited.len(), hosts as usize);
            }
        }
        let outer = run(&attack(AttackKind::Overlay), vec![flow(1, 3, 4000)]);
        assert_eq!(outer, Err(AttackFault::Nothing));
        let two = Attack {
            hosts: vec![HostId(0), HostId(1)],
            ..attack(AttackKind::Overlay)
        };
        let fault = run(&two, vec![flow(1, 0, 4000)]).unwrap_err();
        assert_eq!(fault, AttackFault::TooFewHosts { hosts: 2 });
    }

    #[test]
    fn bytes_and_flows_of_others_stay() {
        let mut flows: Vec<FlowSpec> = (0..200)
            .map(|i| flow(i, i as u32 % 8, 1 + i * 97))
            .collect();
        for flow in flows.iter_mut().filter(|flow| flow.src.0 == 2) {
            flow.dst = HostId(3);
        }
        let total = |flows: &[FlowSpec]| flows.iter().map(|flow| flow.bytes.as_u64()).sum::<u64>();
        for kind in AttackKind::ALL.iter().copied() {
            let attacked = run(&attack(kind), flows.clone()).unwrap();
            assert_eq!(total(&attacked), total(&flows));
            let others = |flows: &[FlowSpec]| -> Vec<FlowSpec> {
                let others = flows.iter().filter(|flow| flow.src.0 >= 4);
                others.cloned().collect()
            };
            assert_eq!(others(&attacked), others(&flows));
            let labels: std::collections::BTreeSet<u64> =
                attacked.iter().map(|flow| flow.label).collect();
            assert_eq!(labels.len(), attacked.len());
        }
    }

    #[test]
    fn a_share_of_the_flows_is_drawn() {
        let half = Attack {
            share: 0.5,
            ..attack(AttackKind::Parallel)
        };
        let flows: Vec<FlowSpec> = (0..1000).map(|i| flow(i, 1, 1500)).collect();
        let attacked = run(&half, flows).unwrap();
        let count = attacked.iter().filter(|flow| flow.attack.is_some()).count();
        assert!((900..1100).contains(&count), "{count} pieces of 1000 flows");
    }

    #[test]
    fn flows_that_depend_on_others_are_refused() {
        let mut waiting = flow(3, 1, 5000);
        waiting.on_sent = Some(crate::TriggerIndex(0));
        let fault = run(&attack(AttackKind::Parallel), vec![waiting.clone()]).unwrap_err();
        assert_eq!(fault, AttackFault::Dependent { label: 3 });
        waiting.src = HostId(7);
        let plain = FlowSpec { ..flow(4, 2, 5000) };
        assert!(run(&attack(AttackKind::Parallel), vec![waiting, plain]).is_ok());
    }
}
