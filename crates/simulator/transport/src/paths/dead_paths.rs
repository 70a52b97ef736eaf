//! Dead paths of one sender, for path selectors that avoid them.
//!
//! STrack only marks paths. A path whose packets are not answered is then as good as any other to Algorithm 3, and each sweep loses a
//! packet on it. Here such a path is dead once another path's packet was answered that left later by the waiting time of a probe (STrack
//! §3.3.2): that packet serves as a probe. An answer of the path ends this state.
//!
//! A dead path gets no packets, so none can be answered: it is tried again with one packet when it has had none for a retransmission
//! timeout, and each time in vain it waits as long again as it has been silent. So a path that comes back is found after at most as long
//! as it was away, or a timeout, and one that was taken for dead for a single loss soon counts again.
//!
//! The path that answered last is never dead: packets that leave on it afterwards are not older than the packet that was answered.
//!
//! Acknowledgements are the answers, each for the path of one packet: where one acknowledgement stands for several packets, live paths may
//! be silent.

use super::{DeadPathThreshold, PathId, PathSilence, SelectorContext};
use clearway_units::{Span, Time};

/// Packets without an answer that are enough: a sweep comes to each path once in about two round trips.
const ENOUGH: u32 = 1;

#[derive(Debug, Clone, Copy, Default)]
struct Path {
    unanswered: PathSilence,
    /// Departure of the last packet.
    last: Time,
}

/// Paths of one sender, and which of them are dead.
#[derive(Debug, Clone)]
pub(super) struct DeadPaths {
    /// The path of the last unmarked acknowledgement, if no packet has used it.
    pub(super) next: Option<PathId>,
    paths: Box<[Path]>,
    /// Latest departure of a packet that was answered.
    answered: Time,
    after: DeadPathThreshold,
    /// Shortest time after which a dead path is tried again.
    retry: Span,
}

impl DeadPaths {
    /// Creates the paths `0..count`, none of them dead; `None` for a sender that never probes.
    pub(super) fn new(count: u32, context: &SelectorContext<'_>) -> Option<Self> {
        let lag = context.probe_after?;
        Some(Self {
            next: None,
            paths: vec![Path::default(); count as usize].into_boxed_slice(),
            answered: Time::ZERO,
            after: DeadPathThreshold {
                packets: ENOUGH,
                lag,
            },
            retry: context.timeout,
        })
    }

    /// Takes note of a packet that leaves on `path`.
    pub(super) fn on_sent(&mut self, path: PathId, now: Time) {
        let path = &mut self.paths[usize::from(path)];
        path.unanswered.on_sent(now, ENOUGH);
        path.last = now;
    }

    /// Takes note of the acknowledgement of a packet that left on `path` at `departure`.
    pub(super) fn on_answer(&mut self, path: PathId, departure: Time) {
        self.answered = self.answered.max(departure);
        self.paths[usize::from(path)].unanswered.on_answer();
    }

    /// True if `path` is dead, and is not to be tried again yet.
    pub(super) fn avoids(&self, path: u32, now: Time) -> bool {
        let path = &self.paths[path as usize];
        let silent = path.unanswered.since(ENOUGH);
        let silence = silent.map_or(Span::ZERO, |since| path.last.since(since));
        path.unanswered.is_dead(self.answered, self.after)
            && now.since(path.last) < self.retry.max(silence)
    }
}
