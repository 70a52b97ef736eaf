//! Jobs on the hosts of a network, and their loads.

use super::network::{Network, OF_WORKLOAD, PlacedJob, SharedLinks, busiest, in_shares, longest};
use super::read::{ParsedJobs, Reader, Sections};
use super::settings::JobSection;
use clearway_planner::compatibility::{CandidatePlacement, Job, PhaseKind};
use clearway_scenario::ScenarioError;
use clearway_scenario::source::Entry;
use clearway_units::Span;

impl Reader<'_> {
    /// Rejects workload keys of a job, because they need a network.
    pub(super) fn refuse_workload(&self, job: usize) -> Result<(), ScenarioError> {
        let own = |entry: &&Entry| {
            entry.section == "job" && entry.index == job && entry.key.starts_with(OF_WORKLOAD)
        };
        self.entries.iter().find(own).map_or(Ok(()), |entry| {
            let message = format!("`{}`, but no network to send over", entry.key);
            let fix = "describe it under `[topology]`, and give the job `hosts`";
            Err(ScenarioError::at(&entry.place, message, fix))
        })
    }

    /// The jobs of a network, on their hosts.
    pub(super) fn place_jobs(&self, sections: &Sections) -> Result<Vec<PlacedJob>, ScenarioError> {
        if let Some(link) = sections.links.first() {
            let message = format!("link `{}`, but the network already has links", link.name);
            let fix = "leave out `[[link]]`, or the sections of the network";
            return Err(self.fault("link", 0, &["name"], message, fix));
        }
        let hosts_of = |section: &str, index, hosts: &[u32], links: &[String]| {
            if !links.is_empty() {
                let message = "links by name, but the routes of the network determine the links that a job loads";
                let fix = "write `hosts`, a list of one for each rank, instead of `links`";
                return Err(self.fault(section, index, &["links"], message, fix));
            }
            match hosts.len() {
                0 | 1 => Err(self.fault(
                    section,
                    index,
                    &["hosts", "name"],
                    "less than two hosts",
                    "write `hosts = [0, 1]`: one for each rank",
                )),
                _ => Ok(hosts.to_vec()),
            }
        };
        let place = |(index, job): (usize, &JobSection)| {
            let mut hosts = vec![hosts_of("job", index, &job.hosts, &job.links)?];
            for (at, other) in sections.placements_of(index) {
                let there = hosts_of("placement", at, &other.hosts, &other.links)?;
                if there.len() != job.hosts.len() {
                    let (here, there) = (job.hosts.len(), there.len());
                    let message = format!("{there} hosts for the {here} ranks of `{}`", job.name);
                    return Err(self.fault("placement", at, &["hosts"], message, "name as many"));
                }
                hosts.push(there);
            }
            let own = |entry: &&Entry| entry.section == "job" && entry.index == index;
            let mut workload = Vec::new();
            for entry in self.entries.iter().filter(own) {
                if let Some(key) = entry.key.strip_prefix(OF_WORKLOAD) {
                    self.refuse_placing(entry, key)?;
                    workload.push(Entry {
                        key: key.into(),
                        ..entry.clone()
                    });
                }
            }
            Ok(PlacedJob {
                place: self.places.of_keys("job", index, &["hosts"]),
                hosts,
                compute: job.compute.unwrap_or(Span::ZERO),
                arcs: job.arcs.len(),
                workload,
                size: None,
            })
        };
        sections.jobs.iter().enumerate().map(place).collect()
    }

    /// Rejects workload keys that the job determines.
    fn refuse_placing(&self, entry: &Entry, key: &str) -> Result<(), ScenarioError> {
        let fix = match key {
            "hosts" | "placement" | "block" | "ranks" => "write `hosts`, one for each rank",
            "jobs" | "stagger" => "write a `[[job]]` for each",
            "compute" => "write `compute`",
            "iterations" => "leave it out: `--iterations` says how many are simulated",
            "schedule.period" | "schedule.shift" => "leave it out: the plan determines it",
            _ => return Ok(()),
        };
        let message = format!("`{}` is not a key of a job", entry.key);
        Err(ScenarioError::at(&entry.place, message, fix))
    }

    /// Jobs that load the links of their routes.
    pub(super) fn by_hosts(
        &self,
        sections: &mut Sections,
        network: &mut Network,
    ) -> Result<ParsedJobs, ScenarioError> {
        let mut phases = Vec::new();
        for (index, job) in sections.jobs.iter().enumerate() {
            if job.communication.is_none() && job.arcs.is_empty() {
                phases.push(Vec::new());
                continue;
            }
            let profile = self.profile(index, job)?;
            let own = profile.phases(PhaseKind::Communication);
            let busy = own.iter().map(|phase| phase.length);
            let busy = busy.fold(Span::ZERO, |sum, length| sum + length);
            network.jobs[index].compute = profile.period().saturating_sub(busy);
            phases.push(own.to_vec());
        }
        let (topology, times) = network.settle(&phases)?;
        let counts: Vec<usize> = network.jobs.iter().map(|job| job.hosts.len()).collect();
        let shared = SharedLinks::new(&topology, &times, &counts);
        let mut gpus = Vec::new();
        let mut jobs = Vec::new();
        for (index, loads) in shared.loads.into_iter().enumerate() {
            let own = &times[0][index];
            if phases[index].is_empty() {
                let length = Span::from_ps((longest(own) * 1e12) as u64);
                self.communicates(
                    index,
                    &mut sections.jobs[index],
                    &network.jobs[index],
                    length,
                )?;
            }
            let profile = self.profile(index, &sections.jobs[index])?;
            let profile = match busiest(&topology, own) {
                Some(rate) => in_shares(&profile, rate),
                None => profile,
            };
            let named = sections.placements_of(index);
            let named = named.map(|(at, other)| ("placement", at, &other.gpus));
            let first = ("job", index, &sections.jobs[index].gpus);
            let mut placements = Vec::new();
            for (links, (section, at, named)) in
                loads.into_iter().zip(std::iter::once(first).chain(named))
            {
                let gpus = self.gpus(section, at, named, &mut gpus)?;
                placements.push(CandidatePlacement { links, gpus });
            }
            jobs.push(Job {
                profile,
                placements,
            });
        }
        Ok(ParsedJobs {
            links: shared.names,
            gpus,
            rates: shared.rates,
            jobs,
        })
    }

    /// Sets a job's communication to `length`, the time that its busiest link needs. Rejects jobs that do not give the size of their
    /// collective.
    fn communicates(
        &self,
        index: usize,
        job: &mut JobSection,
        placed: &PlacedJob,
        length: Span,
    ) -> Result<(), ScenarioError> {
        if !placed.has_size() {
            return Err(self.fault(
                "job",
                index,
                &["compute", "name"],
                format!(
                    "job `{}` does not say for how long it communicates",
                    job.name
                ),
                "give `communication`, or what its collective moves: `workload.size = \"1GB\"`",
            ));
        }
        job.compute.get_or_insert(Span::ZERO);
        job.communication = Some(length);
        Ok(())
    }
}
