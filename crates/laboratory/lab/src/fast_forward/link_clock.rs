//! The way by which a memory learns that links change.

use super::memory::Handle;
use clearway_fabric::{Flow, FlowEvent, Sampler, Snapshot};
use clearway_units::{Bytes, FlowId, Time};

/// Sampler that tells a memory how the links are, on top of another one.
pub(crate) struct LinkClock<'s> {
    inner: Option<&'s mut (dyn Sampler + 's)>,
    memory: Handle,
    due: Time,
}

impl<'s> LinkClock<'s> {
    pub(crate) fn new(memory: Handle, inner: Option<&'s mut (dyn Sampler + 's)>) -> Self {
        Self {
            inner,
            memory,
            due: Time::ZERO,
        }
    }
}

impl Sampler for LinkClock<'_> {
    fn due(&self) -> Time {
        let inner = self.inner.as_ref();
        inner.map_or(self.due, |inner| inner.due().min(self.due))
    }

    fn on_sample(&mut self, now: Time, snapshot: &mut Snapshot<'_>) {
        if let Some(inner) = &mut self.inner
            && (snapshot.is_last() || inner.due() <= now)
        {
            inner.on_sample(now, snapshot);
        }
        if self.due <= now {
            let (seen, due) = self.memory.links().seen(now);
            self.memory.see_links(seen);
            self.due = due;
        }
    }

    fn on_flow(&mut self, event: FlowEvent, flow: &Flow) {
        if let Some(inner) = &mut self.inner {
            inner.on_flow(event, flow);
        }
    }

    fn on_known_transfer(&mut self, flow: FlowId, bytes: Bytes) {
        if let Some(inner) = &mut self.inner {
            inner.on_known_transfer(flow, bytes);
        }
    }
}
