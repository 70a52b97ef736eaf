//! Placement of the ranks of jobs on hosts.

use super::{BuildContext, WorkloadDefinition};
use clearway_units::{HostId, choices, parameters};
use clearway_workload::WorkloadError;
use std::collections::BTreeSet;

choices! {
    /// Placement of the ranks of jobs on hosts. Hosts of jobs of earlier sections are passed over.
    pub enum JobPlacement {
        /// Job after job on consecutive hosts, from host 0 on.
        Packed = "packed",
        /// Every rank on a different host, drawn at random.
        Random = "random",
        /// As many consecutive ranks as `block` says on consecutive hosts; the blocks lie at random.
        RandomBlock = "random-block",
    }
}

parameters! {
    /// Placement of the ranks of jobs on hosts.
    pub struct RankPlacement {
        /// Placement of the ranks.
        pub placement: JobPlacement = JobPlacement::Packed, "placement", "STrack §4.3 places at random; alone, neighbours";
        /// Number of hosts in a block of the placement "random-block".
        pub block: u32 = 8, "block", "the NICs of a server with 8 GPUs";
        /// Number of ranks of the first job that are on the first hosts, next to each other, with the placement "random".
        pub neighbours: u32 = 0, "neighbours", "none; STrack Fig. 28 has a job with 16 of 32 ranks on one leaf";
        /// Hosts of all ranks, job after job, instead of a placement; an empty list for none. Jobs of other sections may use the same
        /// hosts.
        pub hosts: Vec<u32> = Vec::new(), "hosts", "by placement";
    }
}

/// Hosts with ranks of jobs.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TakenHosts {
    hosts: BTreeSet<HostId>,
    /// Lowest host that is not taken.
    lowest_free: u32,
}

impl TakenHosts {
    /// Empty set of hosts.
    pub const fn new() -> Self {
        Self {
            hosts: BTreeSet::new(),
            lowest_free: 0,
        }
    }

    /// True if no host is taken.
    pub fn is_empty(&self) -> bool {
        self.hosts.is_empty()
    }

    /// True if `host` is taken.
    pub fn contains(&self, host: HostId) -> bool {
        self.hosts.contains(&host)
    }

    fn is_free(&self, host: u32) -> bool {
        !self.contains(HostId(host))
    }
}

impl Extend<HostId> for TakenHosts {
    fn extend<I: IntoIterator<Item = HostId>>(&mut self, hosts: I) {
        self.hosts.extend(hosts);
        while !self.is_free(self.lowest_free) {
            self.lowest_free += 1;
        }
    }
}

impl RankPlacement {
    /// Number of hosts to choose from.
    pub(super) fn places(&self, context: &BuildContext<'_>) -> u32 {
        match self.hosts.len() as u32 {
            0 => context.hosts - context.taken.hosts.len() as u32,
            listed => listed,
        }
    }

    /// Source of the hosts to choose from, as a clause before their number.
    pub(super) fn source(&self, context: &BuildContext<'_>) -> &'static str {
        match (self.hosts.is_empty(), context.taken.is_empty()) {
            (false, _) => "`hosts` names",
            (true, true) => "the topology has",
            (true, false) => "jobs of earlier sections leave",
        }
    }

    /// Warnings about settings without effect, and about hosts that earlier sections also use.
    pub(super) fn warnings(&self, context: &BuildContext<'_>) -> impl Iterator<Item = String> {
        let shared = self
            .hosts
            .iter()
            .find(|&&host| context.taken.contains(HostId(host)));
        let shared = shared.map(|host| {
            format!("host {host} of `hosts` already has a rank of a job from an earlier section: both share its NIC")
        });
        let block =
            self.placement != JobPlacement::RandomBlock && self.block != Self::default().block;
        let block = block.then(|| {
            format!(
                "`block` = {} applies only to the placement \"random-block\"",
                self.block
            )
        });
        let placed = !self.hosts.is_empty() && self.placement != JobPlacement::Packed;
        let placed = placed.then(|| "`hosts` takes the place of `placement`".to_owned());
        [shared, block, placed].into_iter().flatten()
    }

    /// The hosts of all ranks, job after job. The caller has checked that [`places`](Self::places) are sufficient, and equal to the ranks
    /// if hosts are listed.
    pub(super) fn place<D: WorkloadDefinition>(
        &self,
        jobs: u32,
        ranks: u32,
        context: &BuildContext<'_>,
    ) -> Result<Vec<HostId>, WorkloadError> {
        if self.block == 0 {
            return Err(D::fault("block", "no block", "write 1 or more"));
        }
        if !self.hosts.is_empty() {
            return self.listed::<D>(context);
        }
        if self.neighbours > 0
            && (self.placement != JobPlacement::Random || self.neighbours > ranks)
        {
            let message = format!("{} neighbours of {ranks} ranks", self.neighbours);
            let fix = "choose `placement = \"random\"`, and at most as many as a job has ranks";
            return Err(D::fault("neighbours", message, fix));
        }
        let block = match self.placement {
            JobPlacement::Packed | JobPlacement::Random => 1,
            JobPlacement::RandomBlock => self.block,
        };
        let needed = (ranks * jobs) as usize;
        let free = |host: u32| context.taken.is_free(host);
        if !(0..self.neighbours).all(free) {
            let message = format!("not all of the first {} hosts are free", self.neighbours);
            let fix = "write the section with `neighbours` before other jobs";
            return Err(D::fault("neighbours", message, fix));
        }
        if self.placement == JobPlacement::Packed {
            // Not from host 0 on: each of thousands of sections would then skip the hosts of all earlier sections.
            let hosts = context.taken.lowest_free..context.hosts;
            return Ok(hosts
                .filter(|&host| free(host))
                .map(HostId)
                .take(needed)
                .collect());
        }
        let mut blocks: Vec<u32> = (self.neighbours..context.hosts / block).collect();
        context.random().shuffle(&mut blocks);
        blocks.retain(|own| (own * block..(own + 1) * block).all(free));
        if self.placement == JobPlacement::RandomBlock
            && (!ranks.is_multiple_of(block) || blocks.len() * (block as usize) < needed)
        {
            let message = format!(
                "{jobs} jobs of {ranks} ranks in blocks of {block} on {} hosts",
                self.places(context)
            );
            let fix = "choose a block that divides the ranks, and hosts enough for whole blocks";
            return Err(D::fault("block", message, fix));
        }
        let drawn = blocks.iter().flat_map(|own| own * block..(own + 1) * block);
        let hosts = (0..self.neighbours).chain(drawn);
        Ok(hosts.map(HostId).take(needed).collect())
    }

    /// The listed hosts, checked.
    fn listed<D: WorkloadDefinition>(
        &self,
        context: &BuildContext<'_>,
    ) -> Result<Vec<HostId>, WorkloadError> {
        let mut seen = BTreeSet::new();
        for &host in &self.hosts {
            if host >= context.hosts {
                let message = format!("host {host}, but the topology has {} hosts", context.hosts);
                return Err(D::fault("hosts", message, "hosts are numbered from 0"));
            }
            if !seen.insert(host) {
                let message = format!("host {host} is named twice");
                let fix = "give each rank its own host";
                return Err(D::fault("hosts", message, fix));
            }
        }
        Ok(self.hosts.iter().copied().map(HostId).collect())
    }
}
