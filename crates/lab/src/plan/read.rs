//! From the text of a file of jobs to a problem.

use super::settings::{JobSection, JobsGeneral, LinkSection, PlacementSection};
use super::{JobsFile, in_two};
use crate::error::ScenarioError;
use crate::scenario::Places;
use crate::scenario::source::{Entry, Layout};
use clearway_planner::compatibility::{
    Demand, Job, Kind, Load, Phase, Placement, PlanParameters, Problem, ProblemError, Profile,
    ProfileError,
};
use clearway_units::{ParameterSet, Rate, SetError, Span, nearest, suggestion};

const LAYOUT: Layout = Layout {
    sections: &["plan", "link", "job", "placement"],
    several: &["link", "job", "placement"],
    top: &[],
};

/// Reads a file of jobs.
pub(super) fn read(file: &str, text: &str) -> Result<JobsFile, ScenarioError> {
    let entries = LAYOUT.read(file, text)?;
    let reader = Reader {
        places: Places::new(file, &entries),
        entries: &entries,
    };
    let general: JobsGeneral = reader.section("the file", "", 0)?;
    let settings: PlanParameters = reader.section("[plan]", "plan", 0)?;
    let links: Vec<LinkSection> = reader.sections("a link", "link")?;
    let jobs: Vec<JobSection> = reader.sections("a job", "job")?;
    let others: Vec<PlacementSection> = reader.sections("a placement", "placement")?;
    if jobs.is_empty() {
        return Err(ScenarioError::at(
            &reader.places.of_keys("", 0, &[]),
            "there are no jobs",
            "write `[[job]]`, and below it a name, `compute`, `communication` and `links`",
        ));
    }
    reader.check_names("link", links.iter().map(|link| link.name.as_str()))?;
    reader.check_names("job", jobs.iter().map(|job| job.name.as_str()))?;
    let mut names = Names {
        links: links.iter().map(|link| link.name.clone()).collect(),
        gpus: Vec::new(),
    };
    let rates: Vec<Rate> = links.iter().map(|link| link.rate).collect();
    let mut found = Vec::new();
    let mut placements = Vec::new();
    for (index, job) in jobs.iter().enumerate() {
        found.push(Job {
            profile: reader.profile(index, job)?,
            placements: vec![reader.placement(&mut names, "job", index, &job.links, &job.gpus)?],
        });
        placements.push(vec!["as given".to_string()]);
    }
    for (index, other) in others.iter().enumerate() {
        let job = reader.job_of(index, other, &jobs)?;
        let placement =
            reader.placement(&mut names, "placement", index, &other.links, &other.gpus)?;
        found[job].placements.push(placement);
        let numbered = format!("placement {}", placements[job].len());
        placements[job].push(match other.name.is_empty() {
            true => numbered,
            false => other.name.clone(),
        });
    }
    let gpus = names.gpus.len() as u32;
    let problem = Problem::new(rates, gpus, found);
    let problem = problem.map_err(|error| reader.refusal(&error, &jobs, &links))?;
    settings.check().map_err(|error| {
        let place = reader.places.of_keys("plan", 0, &[error.key()]);
        let (message, fix) = in_two(&error.to_string());
        ScenarioError::at(&place, format!("`plan.{}`: {message}", error.key()), fix)
    })?;
    Ok(JobsFile {
        name: general.name,
        settings,
        links: names.links,
        gpus: names.gpus,
        jobs: jobs.into_iter().map(|job| job.name).collect(),
        placements,
        problem,
        places: reader.places,
    })
}

/// What numbers stand for. Links are declared, GPUs are whatever jobs name.
struct Names {
    links: Vec<String>,
    gpus: Vec<String>,
}

struct Reader<'a> {
    places: Places,
    entries: &'a [Entry],
}

impl Reader<'_> {
    /// A section with what the user gave for it.
    fn section<S: ParameterSet + Default>(
        &self,
        what: &str,
        section: &str,
        index: usize,
    ) -> Result<S, ScenarioError> {
        let mut settings = S::default();
        let own = |entry: &&Entry| entry.section == section && entry.index == index;
        for entry in self.entries.iter().filter(own) {
            match settings.set(&entry.key, &entry.value) {
                Ok(()) => {}
                Err(SetError::BadValue { expected }) => {
                    return Err(ScenarioError::at(
                        &entry.place,
                        format!("`{}` cannot be {}", entry.key, entry.value),
                        format!("expected {expected}"),
                    ));
                }
                Err(SetError::UnknownKey) => {
                    let mut keys: Vec<&str> = S::describe()
                        .iter()
                        .map(|parameter| parameter.key)
                        .collect();
                    keys.sort_unstable();
                    let known = format!("the keys are: {}", keys.join(", "));
                    return Err(ScenarioError::at(
                        &entry.place,
                        format!("{what} has no key `{}`", entry.key),
                        suggestion(nearest(&entry.key, keys), &known),
                    ));
                }
            }
        }
        Ok(settings)
    }

    /// All sections of one name.
    fn sections<S: ParameterSet + Default>(
        &self,
        what: &str,
        section: &str,
    ) -> Result<Vec<S>, ScenarioError> {
        let own = self.entries.iter().filter(|entry| entry.section == section);
        let count = own.map(|entry| entry.index + 1).max().unwrap_or(0);
        (0..count)
            .map(|index| self.section(what, section, index))
            .collect()
    }

    fn fault(
        &self,
        section: &str,
        index: usize,
        keys: &[&str],
        message: impl Into<String>,
        fix: impl Into<String>,
    ) -> ScenarioError {
        ScenarioError::at(&self.places.of_keys(section, index, keys), message, fix)
    }

    /// Refuses sections without names, and names that two have.
    fn check_names<'n>(
        &self,
        section: &str,
        names: impl Iterator<Item = &'n str>,
    ) -> Result<(), ScenarioError> {
        let mut seen = std::collections::BTreeSet::new();
        for (index, name) in names.enumerate() {
            if name.is_empty() {
                let message = format!("{section} {} has no name", index + 1);
                let fix = "write `name = \"…\"` into it";
                return Err(self.fault(section, index, &[], message, fix));
            }
            if !seen.insert(name) {
                let message = format!("there are two {section}s called `{name}`");
                return Err(self.fault(section, index, &["name"], message, "rename one of them"));
            }
        }
        Ok(())
    }

    /// The number of each of `given` among `known`.
    fn numbers(
        &self,
        section: &str,
        index: usize,
        given: &[String],
        known: &[String],
    ) -> Result<Vec<u32>, ScenarioError> {
        let mut numbers = Vec::with_capacity(given.len());
        for name in given {
            let Some(number) = known.iter().position(|link| link == name) else {
                let mut listed: Vec<&str> = known.iter().map(String::as_str).take(20).collect();
                if known.len() > listed.len() {
                    listed.push("…");
                }
                let all = match known.is_empty() {
                    true => "write a section `[[link]]` for it".into(),
                    false => format!("the links are: {}", listed.join(", ")),
                };
                let fix = suggestion(nearest(name, known.iter().map(String::as_str)), &all);
                let message = format!("there is no link `{name}`");
                return Err(self.fault(section, index, &["links"], message, fix));
            };
            numbers.push(number as u32);
        }
        Ok(numbers)
    }

    fn placement(
        &self,
        names: &mut Names,
        section: &str,
        index: usize,
        links: &[String],
        gpus: &[String],
    ) -> Result<Placement, ScenarioError> {
        for (key, given) in [("links", links), ("gpus", gpus)] {
            let repeated = (1..given.len()).find(|&at| given[..at].contains(&given[at]));
            if let Some(at) = repeated {
                let message = format!("`{key}` has `{}` twice", given[at]);
                let fix = "name each once: what a job takes of it is its `demand`";
                return Err(self.fault(section, index, &[key], message, fix));
            }
        }
        let links = self.numbers(section, index, links, &names.links)?;
        let gpus = gpus.iter().map(|gpu| {
            let known = names.gpus.iter().position(|known| known == gpu);
            known.unwrap_or_else(|| {
                names.gpus.push(gpu.clone());
                names.gpus.len() - 1
            }) as u32
        });
        Ok(Placement {
            links: links.into_iter().map(Load::whole).collect(),
            gpus: gpus.collect(),
        })
    }

    /// The job that a placement is for.
    fn job_of(
        &self,
        index: usize,
        placement: &PlacementSection,
        jobs: &[JobSection],
    ) -> Result<usize, ScenarioError> {
        let names = || jobs.iter().map(|job| job.name.as_str());
        let job = names().position(|name| name == placement.job);
        job.ok_or_else(|| {
            let known: Vec<&str> = names().take(20).collect();
            let known = format!("the jobs are: {}", known.join(", "));
            let message = match placement.job.is_empty() {
                true => "a placement without a job".to_string(),
                false => format!("there is no job `{}`", placement.job),
            };
            let fix = suggestion(nearest(&placement.job, names()), &known);
            self.fault("placement", index, &["job"], message, fix)
        })
    }

    /// What a job does in an iteration.
    fn profile(&self, index: usize, job: &JobSection) -> Result<Profile, ScenarioError> {
        let refuse = |keys: &[&str], message: &str, fix: &str| {
            let message = format!("job `{}` {message}", job.name);
            self.fault("job", index, keys, message, fix)
        };
        for (key, arcs) in [("arcs", &job.arcs), ("compute-arcs", &job.compute_arcs)] {
            if let Some(arc) = arcs.iter().find(|arc| arc.to < arc.from) {
                return Err(refuse(
                    &[key],
                    &format!("has an arc that ends at {}, before it begins", arc.to),
                    "cut an arc that goes past the end of the iteration in two: one to the end, one from 0s",
                ));
            }
        }
        let (period, communication) = self.communication(index, job)?;
        let profile = Profile::new(period, communication, computation(job));
        let profile = profile.map_err(|error| {
            let (message, fix) = in_two(&error.to_string());
            let message = format!("job `{}`: {message}", job.name);
            self.fault("job", index, keys_of(&error, job), message, fix)
        })?;
        if !job.links.is_empty() && profile.phases(Kind::Communication).is_empty() {
            return Err(refuse(
                &["links"],
                "has links, but never communicates",
                "give `arcs`, such as [\"141ms..255ms\"]",
            ));
        }
        if !job.gpus.is_empty() && profile.phases(Kind::Compute).is_empty() {
            return Err(refuse(
                &["gpus"],
                "has GPUs, but does not say when it computes",
                "give `compute-arcs`, such as [\"0s..141ms\"]",
            ));
        }
        Ok(profile)
    }

    /// The iteration time of a job and its communication, in whichever way the user gave them.
    fn communication(
        &self,
        index: usize,
        job: &JobSection,
    ) -> Result<(Span, Vec<Phase>), ScenarioError> {
        let refuse = |keys: &[&str], message: &str, fix: &str| {
            let message = format!("job `{}` {message}", job.name);
            Err(self.fault("job", index, keys, message, fix))
        };
        match (job.compute, job.communication, job.period) {
            (None, None, Some(period)) => {
                let arcs = job.arcs.iter().map(|arc| arc.phase(job.demand));
                Ok((period, arcs.collect()))
            }
            (None, None, None) => refuse(
                &["arcs", "name"],
                "does not say how long an iteration takes",
                "give `compute` and `communication`, such as \"141ms\" and \"114ms\", or `period` and `arcs`",
            ),
            _ if !job.arcs.is_empty() => refuse(
                &["arcs"],
                "has arcs beside `compute` and `communication`",
                "give either `compute` and `communication`, or `period` and `arcs`",
            ),
            (Some(compute), Some(length), period) => {
                let phase = Phase {
                    start: compute,
                    length,
                    demand: job.demand,
                };
                let end = compute.checked_add(length).unwrap_or(Span::MAX);
                Ok((period.unwrap_or(end), vec![phase]))
            }
            _ => refuse(
                &["compute", "communication"],
                "has only one of `compute` and `communication`",
                "give both: an iteration is one after the other",
            ),
        }
    }

    /// What is wrong with jobs and links together.
    fn refusal(
        &self,
        error: &ProblemError,
        jobs: &[JobSection],
        links: &[LinkSection],
    ) -> ScenarioError {
        match *error {
            ProblemError::AboveCapacity {
                job,
                demand,
                link,
                capacity,
                ..
            } => self.fault(
                "job",
                job,
                &["demand", "arcs"],
                format!(
                    "job `{}` asks for {demand} of link `{}`, which has {capacity}",
                    jobs[job].name, links[link as usize].name
                ),
                "lower the demand and lengthen the communication, or raise the link's `rate`",
            ),
            // Names were resolved before, so that these are not the user's.
            other => {
                let (message, fix) = in_two(&other.to_string());
                self.fault("job", 0, &[], message, fix)
            }
        }
    }
}

/// When a job computes: as its arcs say, or before it communicates.
fn computation(job: &JobSection) -> Vec<Phase> {
    match job.compute {
        Some(compute) if job.compute_arcs.is_empty() && !compute.is_zero() => {
            vec![Phase::whole(Span::ZERO, compute)]
        }
        _ => {
            let arcs = job.compute_arcs.iter();
            arcs.map(|arc| arc.phase(Demand::WHOLE)).collect()
        }
    }
}

/// The keys by which a user gave what is wrong.
fn keys_of(error: &ProfileError, job: &JobSection) -> &'static [&'static str] {
    let by_arcs = !job.arcs.is_empty();
    match error {
        ProfileError::ZeroPeriod => &["period", "communication"],
        ProfileError::PastTheEnd { .. } if !by_arcs => &["period"],
        ProfileError::ZeroPhase { kind, .. }
        | ProfileError::PastTheEnd { kind, .. }
        | ProfileError::Overlap { kind, .. } => match (kind, by_arcs) {
            (Kind::Communication, true) => &["arcs"],
            (Kind::Communication, false) => &["communication"],
            (Kind::Compute, _) => &["compute-arcs", "compute"],
        },
        ProfileError::RateOfCompute { .. } => &["compute-arcs"],
    }
}
