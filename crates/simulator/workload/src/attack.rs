//! Attacks on congestion control that keeps its state for each queue pair, or for each pair of hosts (Dissertation §3.5), as
//! transformations of a workload: the same bytes leave the attackers' hosts, over other queue pairs.
//!
//! * [Parallel](AttackKind::Parallel) (§3.5.1): a message is striped over many queue pairs, which send at once, each with a fair share.
//! * [Staggered](AttackKind::Staggered) (§3.5.2): a queue pair sends the bytes that it may send before it hears of congestion; then the
//!   next one takes over.
//! * [Overlay](AttackKind::Overlay) (§3.5.3): the same, and the next queue pair leads to another of the attackers' hosts, which would relay
//!   the data. Only flows between attackers take part, because only their pairs can change. Instead of Tillson's decomposition into
//!   Hamiltonian cycles the hosts form rings: the `k`-th piece of host `i` goes to host `i + d(k)` of the `n`, with steps `d` that have no
//!   divisor in common with `n`, forwards and backwards in turn. The relayed traffic is not simulated.
//! * [Parallel overlay](AttackKind::ParallelOverlay) (§3.5.3, §5.3): the pieces of an overlay, all at once.
//! * [Fan-out](AttackKind::FanOut) (§5.3, Eq. 5.2): a host divides a message evenly among the attackers' other hosts, over one queue pair
//!   to each, all at once. Host `i` sends to `i + 1`, `i + 2` and so on along the ring.
//! * [Short flows](AttackKind::ShortFlows) (§3.5.2): staggered, with queue pairs so short that each finishes before congestion feedback can
//!   arrive.
//! * [Incast](AttackKind::Incast): messages are sent whole, but all to one receiver and at the same times. The `n`-th messages of all
//!   attackers start when the last of them was to start.
//! * [Disobey](AttackKind::Disobey): messages are sent whole, by NICs whose settings differ from the run's.
//! * [Pause storm](AttackKind::PauseStorm): messages are sent whole. For a time the attackers' NICs take no data and send pause frames for
//!   all lossless classes, which is an event of their links.
//!
//! Pieces are flows. Each names the message that it is a piece of.

use crate::{FlowSpec, Start, Workload};
use clearway_units::{Bytes, HostId, RandomStream, Span, Time, choices};
use std::collections::BTreeMap;

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
        /// Many pairs of hosts at once.
        ParallelOverlay = "parallel-overlay",
        /// One queue pair to each of the attackers' other hosts, all at once.
        FanOut = "fan-out",
        /// A short queue pair after another, at line rate.
        ShortFlows = "short-flows",
        /// All messages to one receiver, together.
        Incast = "incast",
        /// A NIC that breaks a rule of its transport.
        Disobey = "disobey",
        /// A NIC that takes no data and sends pause frames instead.
        PauseStorm = "pause-storm",
    }
}

impl AttackKind {
    /// Attacks of Dissertation §3.5, which an unprivileged user can run on a NIC that obeys.
    pub const USUAL: [Self; 3] = [Self::Parallel, Self::Staggered, Self::Overlay];

    /// True if messages are divided into pieces.
    pub const fn divides(self) -> bool {
        !matches!(
            self,
            Self::None | Self::Incast | Self::Disobey | Self::PauseStorm
        )
    }

    /// True if the pieces of a message start one after the other.
    pub const fn takes_turns(self) -> bool {
        matches!(self, Self::Staggered | Self::Overlay | Self::ShortFlows)
    }

    /// True if pieces go to other hosts of the attackers, of messages between these.
    const fn moves_between_attackers(self) -> bool {
        matches!(self, Self::Overlay | Self::ParallelOverlay | Self::FanOut)
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
    /// Flows of at most so many bytes do not change.
    pub above: Bytes,
    /// Bytes of a piece, above zero. The last piece of a message has the remaining bytes.
    pub bytes: Bytes,
    /// Number of queue pairs of a message whose pieces start at once: equal parts, instead of pieces of `bytes`. For a fan-out, the most
    /// receivers.
    pub queue_pairs: Option<u32>,
    /// Time between the starts of two pieces of a message, unless they start at once.
    pub gap: Span,
    /// Receiver of an incast.
    pub target: HostId,
    /// Variant of the run's settings for NICs that disobey.
    pub variant: u16,
}

/// Error of an attack that a workload does not allow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AttackFault {
    /// A flow of an attacker waits for a trigger, activates one, or belongs to a job.
    Dependent {
        /// Label of the flow.
        label: u64,
    },
    /// An overlay or a fan-out of fewer than three hosts.
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

    /// The workload with this attack: flows that take part are divided into pieces. Flows are then in the order of their starts. `random`
    /// chooses the flows that take part, unless all do.
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
            if self.kind == AttackKind::PauseStorm {
                let attack = Some(flow.label);
                flows.push(FlowSpec { attack, ..flow });
                continue;
            }
            let start = independent_start(&flow)?;
            for (number, bytes) in (0u64..).zip(self.sizes(flow.bytes, steps.len())) {
                let label = match number {
                    0 => flow.label,
                    _ => {
                        let label = next_label.ok_or(AttackFault::TooManyPieces)?;
                        next_label = label.checked_add(1);
                        label
                    }
                };
                flows.push(FlowSpec {
                    label,
                    bytes,
                    start: Start::At(start.saturating_add(self.wait(number))),
                    dst: self.receiver(&flow, (place, &steps), number),
                    variant: match self.kind {
                        AttackKind::Disobey => self.variant,
                        _ => flow.variant,
                    },
                    attack: Some(flow.label),
                    ..flow.clone()
                });
                if flows.len() > Self::MOST_PIECES {
                    return Err(AttackFault::TooManyPieces);
                }
            }
        }
        if self.kind == AttackKind::Incast {
            start_together(&mut flows);
        }
        if flows.iter().all(|flow| matches!(flow.start, Start::At(_))) {
            flows.sort_by_key(start_of);
        }
        // NICs that send nothing in this section may do so in another one.
        let must_send = self.kind != AttackKind::PauseStorm;
        if must_send && flows.iter().all(|flow| flow.attack.is_none()) {
            return Err(AttackFault::Nothing);
        }
        workload.flows = flows;
        Ok(workload)
    }

    /// Time from the start of a message to the start of a piece.
    fn wait(&self, number: u64) -> Span {
        match self.kind.takes_turns() {
            true => Span::from_ps(self.gap.as_ps().saturating_mul(number)),
            false => Span::ZERO,
        }
    }

    /// Receiver of a piece of a flow from the host at a place of the ring, with the steps along the ring.
    fn receiver(&self, flow: &FlowSpec, (place, steps): (usize, &[usize]), number: u64) -> HostId {
        if self.kind == AttackKind::Incast {
            return self.target;
        }
        match steps.get((number % steps.len().max(1) as u64) as usize) {
            Some(step) => self.hosts[(place + step) % self.hosts.len()],
            None => flow.dst,
        }
    }

    /// True of an attacker's flow that is part of the attack.
    fn takes(&self, flow: &FlowSpec, random: &mut RandomStream) -> bool {
        let can_be = match self.kind {
            AttackKind::Incast => flow.src != self.target,
            kind => !kind.moves_between_attackers() || self.hosts.binary_search(&flow.dst).is_ok(),
        };
        flow.bytes > self.above && can_be && (self.share >= 1.0 || uniform(random) < self.share)
    }

    /// Sizes of the pieces of a message, with so many steps along the ring.
    fn sizes(&self, bytes: Bytes, steps: usize) -> impl Iterator<Item = Bytes> + use<> {
        let whole = bytes.as_u64();
        let equal = |parts: u64| whole.div_ceil(parts.max(1));
        let piece = match (self.kind, self.queue_pairs) {
            (kind, _) if !kind.divides() => whole,
            (AttackKind::FanOut, _) => equal(steps as u64),
            (kind, Some(count)) if !kind.takes_turns() => equal(count.into()),
            _ => self.bytes.as_u64(),
        };
        let piece = piece.max(1);
        (0..whole.div_ceil(piece)).map(move |number| Bytes::new(piece.min(whole - number * piece)))
    }

    /// Steps along the ring of the hosts, in turn; none if receivers stay.
    fn steps(&self) -> Result<Vec<usize>, AttackFault> {
        if !self.kind.moves_between_attackers() {
            return Ok(Vec::new());
        }
        let hosts = self.hosts.len();
        if hosts < 3 {
            return Err(AttackFault::TooFewHosts { hosts });
        }
        if self.kind == AttackKind::FanOut {
            let most = self.queue_pairs.map_or(hosts, |count| count as usize);
            return Ok((1..hosts).take(most.max(1)).collect());
        }
        let forwards = (1..hosts.div_ceil(2)).filter(|step| greatest_divisor(*step, hosts) == 1);
        Ok(forwards.flat_map(|step| [step, hosts - step]).collect())
    }
}

/// Start of a flow by the clock; `None` if it waits for others.
fn start_of(flow: &FlowSpec) -> Option<Time> {
    match flow.start {
        Start::At(start) => Some(start),
        Start::On(_) | Start::Posted(_) => None,
    }
}

/// Start of a flow that does not depend on other flows, and on which no other flow depends.
fn independent_start(flow: &FlowSpec) -> Result<Time, AttackFault> {
    let alone = flow.on_sent.is_none() && flow.on_received.is_none();
    start_of(flow)
        .filter(|_| alone)
        .ok_or(AttackFault::Dependent { label: flow.label })
}

/// Lets the `n`-th messages of all attackers start together, when the last of them was to start.
fn start_together(flows: &mut [FlowSpec]) {
    let mut counts: BTreeMap<HostId, usize> = BTreeMap::new();
    let mut latest: Vec<Time> = Vec::new();
    let rounds: Vec<Option<usize>> = flows
        .iter()
        .map(|flow| {
            let start = start_of(flow).filter(|_| flow.attack.is_some())?;
            let count = counts.entry(flow.src).or_default();
            let round = *count;
            *count += 1;
            match latest.get_mut(round) {
                Some(latest) => *latest = (*latest).max(start),
                None => latest.push(start),
            }
            Some(round)
        })
        .collect();
    for (flow, round) in flows.iter_mut().zip(rounds) {
        if let Some(round) = round {
            flow.start = Start::At(latest[round]);
        }
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
mod tests;
