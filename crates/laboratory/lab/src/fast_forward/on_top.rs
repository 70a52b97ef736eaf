//! A sampler of a run on top of one that its user has given.

use clearway_fabric::{Flow, FlowEvent, Sampler, Snapshot};
use clearway_units::{Bytes, FlowId, Time};

/// Two samplers, each of which samples when it is due. The user's one is first, and all events of flows are for it.
pub(crate) struct OnTop<'s, S> {
    inner: Option<&'s mut (dyn Sampler + 's)>,
    pub(crate) own: S,
}

impl<'s, S: Sampler> OnTop<'s, S> {
    pub(crate) fn new(own: S, inner: Option<&'s mut (dyn Sampler + 's)>) -> Self {
        Self { inner, own }
    }
}

impl<S: Sampler> Sampler for OnTop<'_, S> {
    fn due(&self) -> Time {
        let inner = self.inner.as_ref();
        let own = self.own.due();
        inner.map_or(own, |inner| inner.due().min(own))
    }

    fn on_sample(&mut self, now: Time, snapshot: &mut Snapshot<'_>) {
        if let Some(inner) = &mut self.inner
            && (snapshot.is_last() || inner.due() <= now)
        {
            inner.on_sample(now, snapshot);
        }
        if snapshot.is_last() || self.own.due() <= now {
            self.own.on_sample(now, snapshot);
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
