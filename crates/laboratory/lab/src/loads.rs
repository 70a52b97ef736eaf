//! Loads of jobs on the links of their routes, computed without a run.

use crate::assemble::Assembly;
use clearway_fabric::TracedRoutes;
use clearway_fabric::topology::LinkId;
use std::collections::BTreeMap;

/// Load of one iteration of a job on each link: bytes of data packets, headers included.
pub type JobLoads = BTreeMap<LinkId, f64>;

impl Assembly {
    /// The loads of each job, in the order of the scenario, with connections routed by ECMP ([`TracedRoutes`]). Acknowledgements, which
    /// travel in the other direction, are left out.
    pub fn job_loads(&self) -> Vec<JobLoads> {
        let setup = self.setup();
        let routes = TracedRoutes::new(&setup);
        let of_job = |(iterations, connections): (u32, Vec<_>)| {
            let mut loads = JobLoads::new();
            for id in connections {
                let flow = self.workload.flow(id);
                let network = &self.transports.flow_transport(flow).profile.network;
                let payload = f64::from(network.payload);
                let framed = f64::from(network.payload + network.header) / payload;
                let all = flow.bytes.as_u64() as f64;
                let bytes = all / f64::from(iterations) * framed;
                for (link, part) in routes.of_flow(id) {
                    *loads.entry(link).or_default() += bytes * part;
                }
            }
            loads
        };
        self.jobs.connections().map(of_job).collect()
    }
}
