//! Looking at a whole fabric between two rounds.

use crate::domain::FabricDomain;
use crate::flow::{Flow, FlowEvent};
use crate::host::Host;
use crate::meter::LinkView;
use crate::observer::Observation;
use crate::topology::LinkId;
use clearway_transport::OpenFlow;
use clearway_transport::congestion::telemetry::Telemetry;
use clearway_units::{Bytes, FlowId, Time};

/// Looks at a fabric from time to time, on one thread and at instants that do not depend on the number of threads.
pub trait Sampler {
    /// Time at which the next sample is due. It shows the fabric as it is after the first round that ends at or after this instant.
    fn due(&self) -> Time;
    /// The fabric at `now`; at the end of the run whether due or not, and then perhaps at an instant that it has seen.
    fn on_sample(&mut self, now: Time, snapshot: &mut Snapshot<'_>);
    /// Called when `flow` has reached a milestone. Events of one round come in order, before any sample that is taken after that round.
    fn on_flow(&mut self, event: FlowEvent, flow: &Flow) {
        let _ = (event, flow);
    }
    /// Called when a message of `flow` is posted that takes no packets: so many bytes of the flow will not be acknowledged.
    fn on_known_transfer(&mut self, flow: FlowId, bytes: Bytes) {
        let _ = (flow, bytes);
    }
}

/// View of a domain for a sampler, with any kind of telemetry.
pub(super) trait Visible {
    fn for_each_link(&mut self, now: Time, look: &mut dyn FnMut(LinkView<'_>));
    fn for_each_open_flow(&self, look: &mut dyn FnMut(&OpenFlow<'_>));
    fn for_each_paused_link(&self, look: &mut dyn FnMut(LinkId));
}

impl<O: Observation, T: Telemetry> Visible for FabricDomain<O, T> {
    fn for_each_link(&mut self, now: Time, look: &mut dyn FnMut(LinkView<'_>)) {
        Self::for_each_link(self, now, look);
    }
    fn for_each_open_flow(&self, mut look: &mut dyn FnMut(&OpenFlow<'_>)) {
        for endpoint in self.hosts.iter().flat_map(Host::endpoints) {
            endpoint.for_each_open(&mut look);
        }
    }
    fn for_each_paused_link(&self, look: &mut dyn FnMut(LinkId)) {
        for link in self.hosts.iter().filter_map(Host::paused) {
            look(link);
        }
        self.switch.for_each_paused(look);
    }
}

/// Calls back with each domain.
pub(super) type EachDomain<'a> = &'a mut dyn FnMut(&mut dyn FnMut(&mut dyn Visible));

/// A fabric between two rounds.
pub struct Snapshot<'a> {
    now: Time,
    domains: EachDomain<'a>,
}

impl<'a> Snapshot<'a> {
    pub(super) fn new(now: Time, domains: EachDomain<'a>) -> Self {
        Self { now, domains }
    }

    /// Shows each link.
    pub fn for_each_link(&mut self, mut look: impl FnMut(LinkView<'_>)) {
        let now = self.now;
        (self.domains)(&mut |domain| domain.for_each_link(now, &mut look));
    }

    /// Shows every queue pair of every flow that is open at its sender.
    pub fn for_each_open_flow(&mut self, mut look: impl FnMut(&OpenFlow<'_>)) {
        (self.domains)(&mut |domain| domain.for_each_open_flow(&mut look));
    }

    /// Shows every link that flow control holds back now.
    pub fn for_each_paused_link(&mut self, mut look: impl FnMut(LinkId)) {
        (self.domains)(&mut |domain| domain.for_each_paused_link(&mut look));
    }
}
