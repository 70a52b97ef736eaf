//! The way by which a memory learns that links change.

use super::memory::Handle;
use clearway_fabric::{Sampler, Snapshot};
use clearway_units::Time;

/// Sampler that tells a memory how the links are.
pub(crate) struct LinkClock {
    memory: Handle,
    due: Time,
}

impl LinkClock {
    pub(crate) fn new(memory: Handle) -> Self {
        Self {
            memory,
            due: Time::ZERO,
        }
    }
}

impl Sampler for LinkClock {
    fn due(&self) -> Time {
        self.due
    }

    fn on_sample(&mut self, now: Time, snapshot: &mut Snapshot<'_>) {
        if snapshot.is_last() {
            return;
        }
        let (seen, due) = self.memory.links().seen(now);
        self.memory.see_links(seen);
        self.due = due;
    }
}
