//! Choice of the NICs of a flow if hosts have several.
//!
//! Scenarios name hosts. A flow goes from a NIC of its sender to a NIC of its receiver. It takes the pair with the fewest links between the
//! NICs, without links inside GPUs that forward; in a tie, the pair whose slowest link is fastest (a server's NVSwitch rather than a common
//! leaf). If several pairs are still equal, [`NicChoice`] decides: flow `n` takes the `n`-th pair, round robin, so that flows spread
//! evenly; or a random pair; or the first pair; or all flows go from low to high NICs. Equal links of a host in a file are ports of one
//! NIC, unless `topology.nics` says otherwise. Pairs without a path are skipped: hosts do not forward.
//!
//! Ranks of a job have several connections if they use the equal NICs of a file's hosts in turn ([`shared_pairs`]).

use crate::error::ScenarioError;
use clearway_fabric::topology::{AttachmentPoint, Paths, Routes, Topology};
use clearway_units::{FlowId, HostId, Purpose, RandomStream, Rate};
use clearway_workload::{FlowSpec, Workload};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// Rule that chooses one of several pairs of NICs for a flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NicChoice {
    /// The next pair, round robin.
    InTurn,
    /// A random pair.
    Random {
        /// Seed of the run.
        seed: u64,
    },
    /// The first pair.
    First,
    /// From the lowest NIC of the sender to the highest of the receiver.
    Ascending,
}

impl NicChoice {
    /// One of `pairs`, which is not empty.
    fn choose_pair(self, pairs: &[(HostId, HostId)], flow: usize) -> (HostId, HostId) {
        let index = match self {
            Self::InTurn => flow % pairs.len(),
            Self::First => 0,
            Self::Random { seed } => {
                let mut lots = RandomStream::new(seed, Purpose::Nics, flow as u64);
                lots.below(pairs.len() as u32) as usize
            }
            Self::Ascending => {
                let ascent = |&index: &usize| (Reverse(pairs[index].0), pairs[index].1);
                (0..pairs.len()).max_by_key(ascent).unwrap_or(0)
            }
        };
        pairs[index]
    }
}

/// Pairs of NICs that ranks on two hosts share among their messages. They are taken from the pairs nearest to each other. Their number is
/// the larger of the two hosts' numbers of such NICs. Each NIC of a host is in about the same number of pairs.
pub fn shared_pairs(
    topology: &Topology,
    paths: &Paths,
    src: HostId,
    dst: HostId,
) -> Vec<(HostId, HostId)> {
    let all = best_pairs(topology, paths, src, dst);
    let ends = |end: fn(&(HostId, HostId)) -> HostId| all.iter().map(end).collect::<BTreeSet<_>>();
    let count = ends(|pair| pair.0).len().max(ends(|pair| pair.1).len());
    let mut uses: BTreeMap<HostId, usize> = BTreeMap::new();
    let mut left = all;
    let mut shared = Vec::new();
    while shared.len() < count {
        let use_of = |nic: &HostId| uses.get(nic).copied().unwrap_or(0);
        let used = |(from, to): &(HostId, HostId)| use_of(from) + use_of(to);
        let Some(place) = (0..left.len()).min_by_key(|&place| used(&left[place])) else {
            break;
        };
        let (from, to) = left.remove(place);
        *uses.entry(from).or_default() += 1;
        *uses.entry(to).or_default() += 1;
        shared.push((from, to));
    }
    shared
}

/// The same traffic between NICs instead of hosts. `lane` gives the number with which a connection of a job selects one of
/// [`shared_pairs`], if its ranks share NICs.
///
/// # Errors
/// If no NIC of a sender reaches a NIC of the receiver.
pub fn between_nics(
    topology: &Topology,
    paths: &Paths,
    workload: &Workload,
    choice: NicChoice,
    lane: impl Fn(FlowId) -> Option<u32>,
) -> Result<Workload, ScenarioError> {
    let mut workload = workload.clone();
    for (number, flow) in workload.flows.iter_mut().enumerate() {
        if let Some(lane) = lane(FlowId(number as u32)) {
            let pairs = shared_pairs(topology, paths, flow.src, flow.dst);
            (flow.src, flow.dst) = pairs[lane as usize % pairs.len()];
            continue;
        }
        (flow.src, flow.dst) = chosen_pair(topology, paths, flow, (choice, number))?;
    }
    Ok(workload)
}

/// The NICs of a flow between hosts. The choice is that for the flow with this number.
///
/// # Errors
/// If no NIC of the sender reaches a NIC of the receiver.
pub fn chosen_pair(
    topology: &Topology,
    paths: &Paths,
    flow: &FlowSpec,
    (choice, number): (NicChoice, usize),
) -> Result<(HostId, HostId), ScenarioError> {
    let pairs = best_pairs(topology, paths, flow.src, flow.dst);
    if pairs.is_empty() {
        return Err(unreachable(flow));
    }
    Ok(choice.choose_pair(&pairs, number))
}

/// The pairs of NICs nearest to each other, in the order of NICs.
fn best_pairs(
    topology: &Topology,
    paths: &Paths,
    src: HostId,
    dst: HostId,
) -> Vec<(HostId, HostId)> {
    let mut best: Option<(u32, Reverse<Option<Rate>>)> = None;
    let mut pairs = Vec::new();
    for from in topology.nics_of(src) {
        for to in topology.nics_of(dst) {
            if !paths.reaches(from, to) {
                continue;
            }
            let path = paths.between(from, to);
            let links = paths.links_between(from, to);
            let length = (links, Reverse(path.bottleneck));
            if best.is_none_or(|best| length < best) {
                best = Some(length);
                pairs.clear();
            }
            if best == Some(length) {
                pairs.push((from, to));
            }
        }
    }
    pairs
}

fn unreachable(flow: &FlowSpec) -> ScenarioError {
    ScenarioError::about(
        &["file", "links", "spines"],
        format!(
            "flow {} ({}->{}): no path leads from host {} to host {}, and hosts do not forward",
            flow.label, flow.src, flow.dst, flow.src, flow.dst
        ),
        "add links between the switches of the two (of rails: `spines`, or `pxn` for an all-to-all), or leave the flow out",
    )
}

/// Number of ordered pairs of different hosts at each distance in links.
pub fn path_lengths(topology: &Topology, routes: &Routes) -> BTreeMap<u32, u64> {
    if topology.further_nics.is_empty() {
        return routes.paths.histogram();
    }
    // Hosts whose NICs are attached to the same switches have equal distances.
    let mut kinds: BTreeMap<Vec<u16>, (u64, HostId)> = BTreeMap::new();
    for host in (0..topology.machines()).map(HostId) {
        let group = |nic: HostId| {
            let AttachmentPoint { group, .. } = routes.attachments[nic.index()];
            group
        };
        let mut groups: Vec<u16> = topology.nics_of(host).map(group).collect();
        groups.sort_unstable();
        kinds.entry(groups).or_insert((0, host)).0 += 1;
    }
    let mut pairs = BTreeMap::new();
    for &(senders, from) in kinds.values() {
        for &(receivers, to) in kinds.values() {
            let others = receivers - u64::from(from == to);
            let best = best_pairs(topology, &routes.paths, from, to);
            if let Some(&(a, b)) = best.first().filter(|_| others > 0) {
                let hops = routes.paths.between(a, b).hops;
                *pairs.entry(hops).or_default() += senders * others;
            }
        }
    }
    pairs
}
