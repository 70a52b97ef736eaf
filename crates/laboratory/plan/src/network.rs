//! Jobs on hosts of a network: the links that they load, and the scenario that runs them.

use clearway_fabric::topology::{LinkId, Topology};
use clearway_lab::Assembly;
use clearway_lab::JobLoads;
use clearway_planner::compatibility::{Demand, JobProfile, Load, Phase, PhaseKind, Share};
use clearway_scenario::source::Entry;
use clearway_scenario::{Scenario, SourceLocations};
use clearway_scenario::{ScenarioError, SourceLocation};
use clearway_transport::Registry;
use clearway_units::{Bytes, Rate, Span, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

/// Sections of a scenario in a file of jobs.
pub(super) const SECTIONS: [&str; 3] = ["topology", "switch", "transport"];
/// Prefix of a job's keys that are keys of its workload.
pub(super) const OF_WORKLOAD: &str = "workload.";
/// Size of a trial collective, from whose loads the loads of other sizes are scaled.
const TRIAL_SIZE: Bytes = Bytes::new(1_000_000_000);
/// Smallest load of a link in a plan, as a share of the load of the job's busiest link. Smaller loads are stray sprayed packets.
const LEAST_PART: f64 = 1e-4;

/// A job on hosts.
#[derive(Debug, Clone)]
pub(super) struct PlacedJob {
    /// Place in the user's file.
    pub(super) place: SourceLocation,
    /// Hosts of the job's ranks at each placement.
    pub(super) hosts: Vec<Vec<u32>>,
    /// Time for which the job computes before it communicates.
    pub(super) compute: Span,
    /// Number of arcs in the user's file.
    pub(super) arcs: usize,
    /// Keys of the job's workload, without prefix.
    pub(super) workload: Vec<Entry>,
    /// Computed size of the collective, if the user does not give it.
    pub(super) size: Option<Bytes>,
}

/// A network and the jobs on it.
#[derive(Debug, Clone)]
pub(super) struct Network {
    pub(super) file: String,
    pub(super) registry: Registry,
    pub(super) base_dir: Option<PathBuf>,
    pub(super) seed: u64,
    /// Entries of the scenario sections.
    pub(super) entries: Vec<Entry>,
    pub(super) jobs: Vec<PlacedJob>,
}

/// Changes of a scenario compared with undisturbed jobs.
#[derive(Debug, Clone, Default)]
pub(super) struct Changes {
    /// Sections, keys and values.
    pub(super) general: Vec<(&'static str, &'static str, Value)>,
    /// Keys and values of each job's workload; empty without changes.
    pub(super) of_jobs: Vec<Vec<(&'static str, Value)>>,
}

/// Time in seconds for which a job loads each link in an iteration, if no other job uses the link.
pub(super) type BusyTimes = BTreeMap<LinkId, f64>;

impl Network {
    /// The scenario in which every job runs `iterations` times on its placement in `choices`.
    ///
    /// # Errors
    /// If the scenario is invalid, with the place of the cause in the user's file.
    pub(super) fn scenario(
        &self,
        choices: &[usize],
        iterations: u32,
        at_most: Span,
        changes: &Changes,
    ) -> Result<Scenario, ScenarioError> {
        let whole = SourceLocation::Whole {
            file: self.file.clone(),
        };
        let entry = |section: &str, index, key: &str, value, place: &SourceLocation| Entry {
            section: section.into(),
            index,
            key: key.into(),
            value,
            place: place.clone(),
        };
        let seed = i64::try_from(self.seed).unwrap_or(i64::MAX);
        let mut entries = vec![
            entry("", 0, "seed", Value::Integer(seed), &whole),
            entry(
                "",
                0,
                "stop.at-most",
                Value::Text(at_most.to_string()),
                &whole,
            ),
        ];
        entries.extend(self.entries.iter().cloned());
        for (section, key, value) in &changes.general {
            replace(&mut entries, entry(section, 0, key, value.clone(), &whole));
        }
        for (index, job) in self.jobs.iter().enumerate() {
            let hosts = &job.hosts[choices[index].min(job.hosts.len() - 1)];
            let listed = hosts.iter().map(|&host| Value::Integer(host.into()));
            let mut own = |key: &str, value| {
                replace(
                    &mut entries,
                    entry("workload", index, key, value, &job.place),
                );
            };
            own("kind", Value::Text("ring-all-reduce".into()));
            own("ranks", Value::Integer(hosts.len() as i64));
            own("hosts", Value::List(listed.collect()));
            own("compute", Value::Text(job.compute.to_string()));
            own("iterations", Value::Integer(iterations.into()));
            let size = job.size.unwrap_or(TRIAL_SIZE);
            own("size", Value::Text(format!("{}B", size.as_u64())));
            for given in &job.workload {
                let given = Entry {
                    section: "workload".into(),
                    index,
                    ..given.clone()
                };
                replace(&mut entries, given);
            }
            for (key, value) in changes.of_jobs.get(index).into_iter().flatten() {
                replace(
                    &mut entries,
                    entry("workload", index, key, value.clone(), &job.place),
                );
            }
        }
        let places = SourceLocations::new(&self.file, &entries);
        let mut scenario = Scenario::from_entries(&self.registry, &entries, places)?;
        scenario.base_dir.clone_from(&self.base_dir);
        Ok(scenario)
    }

    /// The fabric, and the busy times of jobs at placement number `choice`, or at their last placement.
    fn busy_times(&self, choice: usize) -> Result<(Topology, Vec<BusyTimes>), ScenarioError> {
        let choices = vec![choice; self.jobs.len()];
        let longest = Span::from_ms(1000);
        let scenario = self.scenario(&choices, 1, longest, &Changes::default())?;
        let assembly = Assembly::new(&scenario)?;
        let loads = assembly.job_loads();
        let topology = assembly.topology;
        let times = loads.iter().map(|loads| busy_times(&topology, loads));
        let times = times.collect();
        Ok((topology, times))
    }

    /// Sets the sizes of jobs without one, so that the busiest link at the first placement is occupied as long as in `phases`. Returns the
    /// fabric, and the busy times of jobs at each placement.
    pub(super) fn settle(
        &mut self,
        phases: &[Vec<Phase>],
    ) -> Result<(Topology, Vec<Vec<BusyTimes>>), ScenarioError> {
        let most = self.jobs.iter().map(|job| job.hosts.len()).max();
        let (topology, first) = self.busy_times(0)?;
        let mut all = vec![first];
        for choice in 1..most.unwrap_or(1) {
            all.push(self.busy_times(choice)?.1);
        }
        for (index, job) in self.jobs.iter_mut().enumerate() {
            let own = &all[0][index];
            let Some(busiest) = busiest(&topology, own) else {
                continue;
            };
            if job.has_size() || phases[index].is_empty() {
                continue;
            }
            let asked = phases[index].iter().map(|phase| {
                let share = share_of(phase.demand, busiest).as_f64();
                phase.length.as_ps() as f64 * 1e-12 * share
            });
            let factor = asked.sum::<f64>() / longest(own);
            let bytes = (TRIAL_SIZE.as_u64() as f64 * factor) as u64;
            job.size = Some(Bytes::new(bytes.max(1)));
            for at_choice in &mut all {
                at_choice[index]
                    .values_mut()
                    .for_each(|time| *time *= factor);
            }
        }
        Ok((topology, all))
    }
}

impl Network {
    /// Everything that the routes and runs depend on, as text.
    pub(super) fn described(&self) -> String {
        let keys = |entries: &[Entry]| {
            let text = |entry: &Entry| format!("{}.{} = {}", entry.section, entry.key, entry.value);
            entries.iter().map(text).collect::<Vec<_>>()
        };
        let jobs = self.jobs.iter().map(|job| {
            let own = keys(&job.workload);
            format!("{:?} {} {own:?} {:?}", job.hosts, job.compute, job.size)
        });
        let jobs: Vec<String> = jobs.collect();
        format!("{} {:?} {jobs:?}", self.seed, keys(&self.entries))
    }
}

impl PlacedJob {
    /// True if the user gives the size of the collective.
    pub(super) fn has_size(&self) -> bool {
        self.workload.iter().any(|entry| entry.key == "size")
    }
}

/// Adds an entry, or replaces the entry with the same key.
fn replace(entries: &mut Vec<Entry>, new: Entry) {
    let same =
        |old: &Entry| old.section == new.section && old.index == new.index && old.key == new.key;
    match entries.iter_mut().find(|old| same(old)) {
        Some(old) => *old = new,
        None => entries.push(new),
    }
}

fn busy_times(topology: &Topology, loads: &JobLoads) -> BusyTimes {
    let time = |(&link, bytes): (&LinkId, &f64)| {
        let rate = topology.cables[link.cable()].rate.as_bps() as f64;
        (link, bytes * 8.0 / rate)
    };
    loads.iter().map(time).collect()
}

/// The time of the busiest link, in seconds.
pub(super) fn longest(times: &BusyTimes) -> f64 {
    times.values().copied().fold(0.0, f64::max)
}

/// Links that several jobs could load, with names, rates, and the share of each link that jobs load.
pub(super) struct SharedLinks {
    pub(super) names: Vec<String>,
    pub(super) rates: Vec<Rate>,
    /// Loads of each job at each placement.
    pub(super) loads: Vec<Vec<Vec<Load>>>,
}

impl SharedLinks {
    /// Shared links from the busy times per choice and job; `placements` are the numbers of placements of the jobs.
    pub(super) fn new(topology: &Topology, times: &[Vec<BusyTimes>], placements: &[usize]) -> Self {
        let jobs = 0..placements.len();
        let mut users: BTreeMap<LinkId, BTreeSet<usize>> = BTreeMap::new();
        let parts = |job: usize, choice: usize| {
            let own = &times[choice][job];
            let longest = longest(own);
            let parts = own.iter().map(move |(&link, time)| (link, time / longest));
            parts.filter(|&(_, part)| part >= LEAST_PART)
        };
        for job in jobs.clone() {
            for choice in 0..placements[job] {
                for (link, _) in parts(job, choice) {
                    users.entry(link).or_default().insert(job);
                }
            }
        }
        users.retain(|_, jobs| jobs.len() > 1);
        let numbers: BTreeMap<LinkId, u32> = users.into_keys().zip(0..).collect();
        let load = |(link, part): (LinkId, f64)| {
            Some(Load {
                link: *numbers.get(&link)?,
                part: Share::new(part.min(1.0))?,
            })
        };
        let loads = jobs.map(|job| {
            let at = |choice| parts(job, choice).filter_map(load).collect();
            (0..placements[job]).map(at).collect()
        });
        let loads = loads.collect();
        let links = || numbers.keys().copied();
        Self {
            names: distinct(links().map(|link| topology.link_name(link))),
            rates: links()
                .map(|link| topology.cables[link.cable()].rate)
                .collect(),
            loads,
        }
    }
}

/// Distinct names: names shared by parallel links receive numbers.
fn distinct(names: impl Iterator<Item = String>) -> Vec<String> {
    let mut seen: BTreeMap<String, u32> = BTreeMap::new();
    let number = |name: String| {
        let count = seen.entry(name.clone()).or_insert(0);
        *count += 1;
        match *count {
            1 => name,
            further => format!("{name} #{further}"),
        }
    };
    names.map(number).collect()
}

/// Share of a demand on a link with this rate.
fn share_of(demand: Demand, rate: Rate) -> Share {
    match demand {
        Demand::Share(share) => share,
        Demand::Rate(asked) => Share::of_rate(asked, rate).unwrap_or(Share::WHOLE),
    }
}

/// The profile with rate demands as shares of `busiest`, the rate of the link that limits the job.
pub(super) fn in_shares(profile: &JobProfile, busiest: Rate) -> JobProfile {
    let share = |phase: &Phase| Phase {
        demand: Demand::Share(share_of(phase.demand, busiest)),
        ..*phase
    };
    let communication = profile.phases(PhaseKind::Communication).iter().map(share);
    let compute = profile.phases(PhaseKind::Compute).to_vec();
    JobProfile::new(profile.period(), communication.collect(), compute)
        .expect("only demands are new")
}

/// The rate of the link that a job loads for the longest time.
pub(super) fn busiest(topology: &Topology, times: &BusyTimes) -> Option<Rate> {
    let longest = times
        .iter()
        .max_by(|a, b| a.1.total_cmp(b.1).then(b.0.cmp(a.0)));
    longest.map(|(link, _)| topology.cables[link.cable()].rate)
}
