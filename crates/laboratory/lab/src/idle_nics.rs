//! Warning about NICs that carry nothing in the whole run, while other NICs of the same node carry the traffic of a job.

use crate::jobs::Jobs;
use clearway_fabric::topology::{LinkId, Topology};
use clearway_units::HostId;
use clearway_workload::Workload;
use std::collections::BTreeSet;

/// Names the first job that uses the network but leaves half or more of the network NICs of its hosts idle; `None` if there is none.
pub(crate) fn warning(topology: &Topology, jobs: &Jobs, traffic: &Workload) -> Option<String> {
    if topology.further_nics.is_empty() {
        return None;
    }
    // NICs of a node's scale-up fabric do not count.
    let mut of_network = vec![false; topology.hosts as usize];
    for link in (0..topology.cables.len() * 2).map(|number| LinkId(number as u32)) {
        let cable = &topology.cables[link.cable()];
        let (from, _) = topology.link_ends(link);
        if topology.switch_index(from).is_none() && !topology.is_scale_up(cable) {
            of_network[from.0 as usize] = true;
        }
    }
    let ends = |nics: (HostId, HostId)| [nics.0, nics.1];
    let used: BTreeSet<HostId> = traffic
        .flows
        .iter()
        .flat_map(|flow| ends((flow.src, flow.dst)))
        .filter(|nic| of_network[nic.index()])
        .collect();
    jobs.all().find_map(|(job, connections)| {
        let uses_network = connections.all().any(|(_, id)| {
            let flow = traffic.flow(id);
            of_network[flow.src.index()]
        });
        let nics = job.hosts.iter().flat_map(|host| topology.nics_of(*host));
        let nics: Vec<HostId> = nics.filter(|nic| of_network[nic.index()]).collect();
        let idle = nics.iter().filter(|nic| !used.contains(nic)).count();
        (uses_network && 2 * idle >= nics.len()).then(|| {
            format!(
                "{idle} of the {} NICs of the hosts of job `{}` carry nothing in the whole run: where nodes have several GPUs, `workload.channels` = \"auto\" gives a ring to each rank of a node, if all nodes have as many ranks; where hosts have several links, `topology.nics` = \"stripe\" shares them",
                nics.len(),
                job.label
            )
        })
    })
}
