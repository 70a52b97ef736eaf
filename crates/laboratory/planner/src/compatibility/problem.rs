//! Jobs on links and GPUs, and the parts that they form by sharing.

use super::{Demand, JobProfile, PhaseKind, Share};
use clearway_units::Rate;
use std::collections::BTreeMap;
use std::fmt;

/// Largest number of jobs on one link; more jobs would overflow the sum of their shares.
const MOST_JOBS: usize = 4_000;

/// A link that the communication of a job loads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Load {
    /// Index of the link.
    pub link: u32,
    /// Part of the job's demand on this link; less than the whole if its traffic spreads over several links.
    pub part: Share,
}

impl Load {
    /// A link that all of the job's traffic crosses.
    pub const fn whole(link: u32) -> Self {
        Self {
            link,
            part: Share::WHOLE,
        }
    }
}

/// Placement of a job, with the links and GPUs that it would use.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CandidatePlacement {
    /// Links that its communication loads, each once.
    pub links: Vec<Load>,
    /// GPUs that its computation loads, each once.
    pub gpus: Vec<u32>,
}

/// A job: its profile, and the placements where it runs or could run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Job {
    /// One iteration.
    pub profile: JobProfile,
    /// Placements, at least one; the first is the present placement.
    pub placements: Vec<CandidatePlacement>,
}

/// Link or GPU that jobs share.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Resource {
    /// A link, by its index.
    Link(u32),
    /// A GPU, by its index.
    Gpu(u32),
}

impl Resource {
    /// Kind of phases that load the resource.
    pub fn kind(self) -> PhaseKind {
        match self {
            Self::Link(_) => PhaseKind::Communication,
            Self::Gpu(_) => PhaseKind::Compute,
        }
    }
}

impl fmt::Display for Resource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Link(index) => write!(f, "link {index}"),
            Self::Gpu(index) => write!(f, "GPU {index}"),
        }
    }
}

/// Jobs and their shared resources.
#[derive(Debug, Clone)]
pub struct Problem {
    links: Vec<Rate>,
    gpus: u32,
    jobs: Vec<Job>,
}

/// Error in the jobs or links of a [`Problem`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProblemError {
    /// The problem has no jobs.
    NoJobs,
    /// A job has no placement.
    NoPlacement {
        /// Index of the job.
        job: usize,
    },
    /// A job uses a link or GPU that does not exist.
    Unknown {
        /// The job's index.
        job: usize,
        /// Link or GPU that the job names.
        resource: Resource,
        /// Number of resources of that kind.
        count: usize,
    },
    /// A job uses a link or GPU twice.
    Repeated {
        /// The job's index.
        job: usize,
        /// Link or GPU that the job names twice.
        resource: Resource,
    },
    /// The demand of a phase exceeds the capacity of a link.
    AboveCapacity {
        /// The job's index.
        job: usize,
        /// Index of the phase among the communication phases of the job.
        phase: usize,
        /// Demand of the phase.
        demand: Rate,
        /// The link.
        link: u32,
        /// Capacity of the link.
        capacity: Rate,
    },
    /// Too many jobs could use the same resource.
    TooManyJobs {
        /// Link or GPU that the jobs could use.
        resource: Resource,
    },
}

impl fmt::Display for ProblemError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::NoJobs => f.write_str("there are no jobs"),
            Self::NoPlacement { job } => write!(
                f,
                "job {job} has no placement: give it at least one, even if it is empty"
            ),
            Self::Unknown {
                job,
                resource,
                count,
            } => {
                write!(
                    f,
                    "job {job} uses {resource}, but there are only {count}, numbered from zero"
                )
            }
            Self::Repeated { job, resource } => write!(
                f,
                "job {job} uses {resource} more than once in one placement"
            ),
            Self::AboveCapacity {
                job,
                phase,
                demand,
                link,
                capacity,
            } => write!(
                f,
                "communication phase {} of job {job} asks for {demand} of link {link}, which has {capacity}: lower the demand and lengthen the phase",
                phase + 1
            ),
            Self::TooManyJobs { resource } => {
                write!(f, "more than {MOST_JOBS} jobs could use {resource}")
            }
        }
    }
}

impl std::error::Error for ProblemError {}

impl Problem {
    /// The problem of `jobs` on links with the rates `links` and on `gpus` GPUs.
    ///
    /// # Errors
    /// If there are no jobs, a job has no placement, a placement has unknown or repeated links or GPUs, the rate of a phase exceeds the
    /// rate of a link that the job may use, or more than 4000 jobs could meet.
    pub fn new(links: Vec<Rate>, gpus: u32, jobs: Vec<Job>) -> Result<Self, ProblemError> {
        if jobs.is_empty() {
            return Err(ProblemError::NoJobs);
        }
        let mut users: BTreeMap<Resource, usize> = BTreeMap::new();
        for (index, job) in jobs.iter().enumerate() {
            if job.placements.is_empty() {
                return Err(ProblemError::NoPlacement { job: index });
            }
            for placement in &job.placements {
                check_placement(index, job, placement, &links, gpus)?;
                for resource in placement.resources() {
                    *users.entry(resource).or_default() += 1;
                }
            }
        }
        match users.into_iter().find(|&(_, count)| count > MOST_JOBS) {
            Some((resource, _)) => Err(ProblemError::TooManyJobs { resource }),
            None => Ok(Self { links, gpus, jobs }),
        }
    }

    /// The jobs, in the given order.
    pub fn jobs(&self) -> &[Job] {
        &self.jobs
    }
    /// The rates of the links.
    pub fn links(&self) -> &[Rate] {
        &self.links
    }
    /// Number of GPUs.
    pub fn gpus(&self) -> u32 {
        self.gpus
    }

    /// Share of `resource` that each phase of `job` takes on the placement `choice`, which must use `resource`.
    pub fn shares(&self, job: usize, choice: usize, resource: Resource) -> Vec<Share> {
        let Job {
            profile,
            placements,
        } = &self.jobs[job];
        let part = placements[choice].part(resource);
        let share = |demand| match (demand, resource) {
            (Demand::Rate(rate), Resource::Link(link)) => {
                Share::of_rate(rate, self.links[link as usize]).unwrap_or(Share::WHOLE)
            }
            (Demand::Share(share), _) => share,
            // Profiles reject rates for computation.
            (Demand::Rate(_), Resource::Gpu(_)) => Share::WHOLE,
        };
        let phases = profile.phases(resource.kind()).iter();
        phases
            .map(|phase| share(phase.demand).scale(part))
            .collect()
    }

    /// The jobs of each link and GPU at the placements in `choices`, in ascending order.
    pub(super) fn users(&self, choices: &[usize]) -> BTreeMap<Resource, Vec<u32>> {
        let mut users: BTreeMap<Resource, Vec<u32>> = BTreeMap::new();
        for (index, (job, &choice)) in self.jobs.iter().zip(choices).enumerate() {
            for resource in job.placements[choice].resources() {
                if !job.profile.phases(resource.kind()).is_empty() {
                    users.entry(resource).or_default().push(index as u32);
                }
            }
        }
        users
    }

    /// True if the jobs, at the placements in `choices`, can exceed the capacity of `resource`; otherwise no rotation matters.
    pub(super) fn contended(&self, choices: &[usize], resource: Resource, jobs: &[u32]) -> bool {
        let peak = |&job: &u32| {
            let shares = self.shares(job as usize, choices[job as usize], resource);
            let largest = shares.into_iter().map(Share::millionths).max();
            u64::from(largest.unwrap_or(0))
        };
        jobs.iter().map(peak).sum::<u64>() > u64::from(Share::WHOLE.millionths())
    }
}

impl CandidatePlacement {
    /// All links and GPUs of the placement.
    pub(super) fn resources(&self) -> impl Iterator<Item = Resource> + '_ {
        let links = self.links.iter().map(|load| Resource::Link(load.link));
        links.chain(self.gpus.iter().map(|&gpu| Resource::Gpu(gpu)))
    }

    /// Part of the job's demand on `resource`.
    fn part(&self, resource: Resource) -> Share {
        let load = self
            .links
            .iter()
            .find(|load| Resource::Link(load.link) == resource);
        load.map_or(Share::WHOLE, |load| load.part)
    }
}

fn check_placement(
    index: usize,
    job: &Job,
    placement: &CandidatePlacement,
    links: &[Rate],
    gpus: u32,
) -> Result<(), ProblemError> {
    let mut seen = std::collections::BTreeSet::new();
    for resource in placement.resources() {
        let (number, count) = match resource {
            Resource::Link(link) => (link, links.len()),
            Resource::Gpu(gpu) => (gpu, gpus as usize),
        };
        if number as usize >= count {
            return Err(ProblemError::Unknown {
                job: index,
                resource,
                count,
            });
        }
        if !seen.insert(resource) {
            return Err(ProblemError::Repeated {
                job: index,
                resource,
            });
        }
    }
    let phases = job
        .profile
        .phases(PhaseKind::Communication)
        .iter()
        .enumerate();
    for (phase, given) in phases {
        let Demand::Rate(demand) = given.demand else {
            continue;
        };
        let narrow = placement
            .links
            .iter()
            .map(|load| load.link)
            .find(|&link| demand > links[link as usize]);
        if let Some(link) = narrow {
            return Err(ProblemError::AboveCapacity {
                job: index,
                phase,
                demand,
                link,
                capacity: links[link as usize],
            });
        }
    }
    Ok(())
}

/// The connected parts of the job-link graph (HotNets'22 §5): jobs that share a contended resource, directly or through other jobs. Each
/// part has its own unified circle. Jobs that share nothing are in no part.
pub(super) fn components(
    jobs: usize,
    users: &BTreeMap<Resource, Vec<u32>>,
) -> Vec<(Vec<u32>, Vec<Resource>)> {
    let mut leader: Vec<u32> = (0..jobs as u32).collect();
    fn find(leader: &mut [u32], mut job: u32) -> u32 {
        while leader[job as usize] != job {
            leader[job as usize] = leader[leader[job as usize] as usize];
            job = leader[job as usize];
        }
        job
    }
    for sharing in users.values() {
        for pair in sharing.windows(2) {
            let (a, b) = (find(&mut leader, pair[0]), find(&mut leader, pair[1]));
            // The smaller leader wins, so that parts are in the order of their first jobs.
            leader[a.max(b) as usize] = a.min(b);
        }
    }
    let mut parts: BTreeMap<u32, (Vec<u32>, Vec<Resource>)> = BTreeMap::new();
    for (&resource, sharing) in users {
        let part = parts.entry(find(&mut leader, sharing[0])).or_default();
        part.1.push(resource);
        part.0.extend_from_slice(sharing);
    }
    for (members, _) in parts.values_mut() {
        members.sort_unstable();
        members.dedup();
    }
    parts.into_values().collect()
}
