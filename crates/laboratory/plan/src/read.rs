//! Conversion of the text of a file of jobs to a problem.

use super::network::{Network, OF_WORKLOAD, SECTIONS};
use super::settings::{Arc, JobSection, JobsGeneral, LinkSection, PlacementSection};
use super::{JobsFile, in_two};
use crate::builtin_plans;
use clearway_input::{InputKind, STANDARD_INPUT};
use clearway_planner::compatibility::{
    CandidatePlacement, Demand, Job, JobProfile, Load, Phase, PhaseKind, PlanParameters, Problem,
    ProblemError, ProfileError,
};
use clearway_scenario::ScenarioError;
use clearway_scenario::source::{Entry, FileSections};
use clearway_scenario::{LONGEST, SourceLocations};
use clearway_transport::Registry;
use clearway_units::{ParameterSet, Rate, SetError, Span, nearest, suggestion};
use std::path::Path;

const LAYOUT: FileSections = FileSections {
    sections: &[
        "plan",
        "link",
        "job",
        "placement",
        "topology",
        "switch",
        "transport",
    ],
    several: &["link", "job", "placement"],
    top: &[],
    filled: &[],
};

/// Reads a file of jobs.
pub(super) fn read(
    registry: &Registry,
    file: &str,
    text: &str,
    base_dir: Option<&Path>,
) -> Result<JobsFile, ScenarioError> {
    let entries = LAYOUT.read(file, text)?;
    let reader = Reader {
        places: SourceLocations::new(file, &entries),
        entries: &entries,
    };
    let general: JobsGeneral = reader.section("the file", "", 0)?;
    let settings: PlanParameters = reader.section("[plan]", "plan", 0)?;
    let mut sections = Sections {
        links: reader.sections("a link", "link")?,
        jobs: reader.sections("a job", "job")?,
        placements: reader.sections("a placement", "placement")?,
    };
    reader.check_sections(&sections)?;
    if settings.grid > LONGEST {
        let message = format!("`plan.grid` = {} is too long", settings.grid);
        let fix = format!("use at most {LONGEST} (30 days)");
        return Err(reader.fault("plan", 0, &["grid"], message, fix));
    }
    settings.check().map_err(|error| {
        let place = reader.places.of_keys("plan", 0, &[error.key()]);
        let (message, fix) = in_two(&error.to_string());
        ScenarioError::at(&place, format!("`plan.{}`: {message}", error.key()), fix)
    })?;
    let is_own = |entry: &&Entry| SECTIONS.contains(&entry.section.as_str());
    let own: Vec<Entry> = entries.iter().filter(is_own).cloned().collect();
    let mut network = None;
    let given = if own.is_empty() {
        reader.by_links(&sections)?
    } else {
        let jobs = reader.place_jobs(&sections)?;
        let network = network.insert(Network {
            file: file.into(),
            registry: registry.clone(),
            base_dir: base_dir.map(Path::to_path_buf),
            seed: general.seed,
            entries: own,
            jobs,
        });
        reader.by_hosts(&mut sections, network)?
    };
    let ParsedJobs {
        links,
        gpus,
        jobs,
        rates,
    } = given;
    let problem = Problem::new(rates, gpus.len() as u32, jobs);
    let problem = problem.map_err(|error| reader.refusal(&error, &sections.jobs, &links))?;
    Ok(JobsFile {
        name: general.name,
        settings,
        links,
        gpus,
        placements: sections.placement_names(),
        jobs: sections.jobs.into_iter().map(|job| job.name).collect(),
        problem,
        profiled: false,
        network,
        places: reader.places,
    })
}

/// The sections of a file, in order.
pub(super) struct Sections {
    pub(super) links: Vec<LinkSection>,
    pub(super) jobs: Vec<JobSection>,
    placements: Vec<PlacementSection>,
}

impl Sections {
    /// The placements of a job after the first, with their numbers.
    pub(super) fn placements_of(
        &self,
        job: usize,
    ) -> impl Iterator<Item = (usize, &PlacementSection)> {
        let name = &self.jobs[job].name;
        let numbered = self.placements.iter().enumerate();
        numbered.filter(move |(_, placement)| placement.job == *name)
    }

    /// Names of the placements of each job.
    fn placement_names(&self) -> Vec<Vec<String>> {
        let names = |job| {
            let others = self.placements_of(job).zip(1..);
            let name = |((_, other), number): ((usize, &PlacementSection), u32)| match &other.name {
                name if name.is_empty() => format!("placement {number}"),
                name => name.clone(),
            };
            let first = "as given".to_string();
            std::iter::once(first).chain(others.map(name)).collect()
        };
        (0..self.jobs.len()).map(names).collect()
    }
}

/// Links and GPUs that jobs share, and the jobs.
pub(super) struct ParsedJobs {
    pub(super) links: Vec<String>,
    pub(super) gpus: Vec<String>,
    pub(super) rates: Vec<Rate>,
    pub(super) jobs: Vec<Job>,
}

pub(super) struct Reader<'a> {
    pub(super) places: SourceLocations,
    pub(super) entries: &'a [Entry],
}

impl Reader<'_> {
    /// A section filled with the user's entries.
    fn section<S: ParameterSet + Default>(
        &self,
        what: &str,
        section: &str,
        index: usize,
    ) -> Result<S, ScenarioError> {
        let mut settings = S::default();
        let own = |entry: &&Entry| entry.section == section && entry.index == index;
        let of_network = |entry: &&Entry| entry.key.starts_with(OF_WORKLOAD) && section == "job";
        for entry in self.entries.iter().filter(own) {
            if of_network(&entry) {
                continue;
            }
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

    /// All sections with this name.
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

    pub(super) fn fault(
        &self,
        section: &str,
        index: usize,
        keys: &[&str],
        message: impl Into<String>,
        fix: impl Into<String>,
    ) -> ScenarioError {
        ScenarioError::at(&self.places.of_keys(section, index, keys), message, fix)
    }

    /// Rejects sections without names, and duplicate names.
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

    /// Rejects names that are missing, repeated or unknown.
    fn check_sections(&self, sections: &Sections) -> Result<(), ScenarioError> {
        if sections.jobs.is_empty() {
            return Err(ScenarioError::at(
                &self.places.of_keys("", 0, &[]),
                "there are no jobs",
                "write `[[job]]`, and below it a name, `compute`, `communication` and `links`",
            ));
        }
        let names = || sections.jobs.iter().map(|job| job.name.as_str());
        self.check_names("link", sections.links.iter().map(|link| link.name.as_str()))?;
        self.check_names("job", names())?;
        for (index, placement) in sections.placements.iter().enumerate() {
            if names().any(|name| name == placement.job) {
                continue;
            }
            let known: Vec<&str> = names().take(20).collect();
            let known = format!("the jobs are: {}", known.join(", "));
            let message = match placement.job.is_empty() {
                true => "a placement without a job".to_string(),
                false => format!("there is no job `{}`", placement.job),
            };
            let fix = suggestion(nearest(&placement.job, names()), &known);
            return Err(self.fault("placement", index, &["job"], message, fix));
        }
        Ok(())
    }

    fn check_repeats(
        &self,
        section: &str,
        index: usize,
        key: &str,
        given: &[String],
    ) -> Result<(), ScenarioError> {
        let repeated = (1..given.len()).find(|&at| given[..at].contains(&given[at]));
        repeated.map_or(Ok(()), |at| {
            let message = format!("`{key}` has `{}` twice", given[at]);
            let fix = "name each once: `demand` is the share that a job uses";
            Err(self.fault(section, index, &[key], message, fix))
        })
    }

    /// The numbers of GPUs; every name in a job is a GPU.
    pub(super) fn gpus(
        &self,
        section: &str,
        index: usize,
        given: &[String],
        known: &mut Vec<String>,
    ) -> Result<Vec<u32>, ScenarioError> {
        self.check_repeats(section, index, "gpus", given)?;
        let mut number = |gpu: &String| {
            let at = known.iter().position(|known| known == gpu);
            at.unwrap_or_else(|| {
                known.push(gpu.clone());
                known.len() - 1
            }) as u32
        };
        Ok(given.iter().map(&mut number).collect())
    }

    /// Jobs that name the links that they load.
    fn by_links(&self, sections: &Sections) -> Result<ParsedJobs, ScenarioError> {
        let links: Vec<String> = sections
            .links
            .iter()
            .map(|link| link.name.clone())
            .collect();
        let mut gpus = Vec::new();
        let mut placement =
            |section: &str, index, named: &[String], hosts: &[u32], own: &[String]| {
                if !hosts.is_empty() {
                    let message = "hosts, but no network that they are in";
                    let fix =
                        "describe it under `[topology]`, or name the `links` that the job loads";
                    return Err(self.fault(section, index, &["hosts"], message, fix));
                }
                self.check_repeats(section, index, "links", named)?;
                let numbers = self.numbers(section, index, named, &links)?;
                Ok(CandidatePlacement {
                    links: numbers.into_iter().map(Load::whole).collect(),
                    gpus: self.gpus(section, index, own, &mut gpus)?,
                })
            };
        let mut jobs = Vec::new();
        for (index, job) in sections.jobs.iter().enumerate() {
            self.refuse_workload(index)?;
            let profile = self.profile(index, job)?;
            let first = placement("job", index, &job.links, &job.hosts, &job.gpus)?;
            let mut placements = vec![first];
            for (at, other) in sections.placements_of(index) {
                let other = placement("placement", at, &other.links, &other.hosts, &other.gpus)?;
                placements.push(other);
            }
            jobs.push(Job {
                profile,
                placements,
            });
        }
        Ok(ParsedJobs {
            rates: sections.links.iter().map(|link| link.rate).collect(),
            links,
            gpus,
            jobs,
        })
    }

    /// Profile of a job: its phases in an iteration.
    pub(super) fn profile(
        &self,
        index: usize,
        job: &JobSection,
    ) -> Result<JobProfile, ScenarioError> {
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
        self.check_spans(index, job)?;
        let (period, communication) = self.communication(index, job)?;
        let profile = JobProfile::new(period, communication, computation(job));
        let profile = profile.map_err(|error| {
            let (message, fix) = in_two(&error.to_string());
            let message = format!("job `{}`: {message}", job.name);
            self.fault("job", index, keys_of(&error, job), message, fix)
        })?;
        if !job.links.is_empty() && profile.phases(PhaseKind::Communication).is_empty() {
            return Err(refuse(
                &["links"],
                "has links, but never communicates",
                "give `arcs`, such as [\"141ms..255ms\"]",
            ));
        }
        if !job.gpus.is_empty() && profile.phases(PhaseKind::Compute).is_empty() {
            return Err(refuse(
                &["gpus"],
                "has GPUs, but does not say when it computes",
                "give `compute-arcs`, such as [\"0s..141ms\"]",
            ));
        }
        Ok(profile)
    }

    /// Rejects times longer than any simulation, because their sums would overflow.
    fn check_spans(&self, index: usize, job: &JobSection) -> Result<(), ScenarioError> {
        let ends = |arcs: &[Arc]| arcs.iter().map(|arc| arc.to).max();
        let both = job.compute.zip(job.communication);
        let sum = both.map(|(one, other)| one.checked_add(other).unwrap_or(Span::MAX));
        for (key, span) in [
            ("compute", job.compute),
            ("communication", job.communication),
            ("period", job.period),
            ("arcs", ends(&job.arcs)),
            ("compute-arcs", ends(&job.compute_arcs)),
            ("communication", sum),
        ] {
            if let Some(span) = span.filter(|span| *span > LONGEST) {
                let message = format!("job `{}`: `{key}` takes until {span}", job.name);
                let fix = format!("use at most {LONGEST} (30 days)");
                return Err(self.fault("job", index, &[key], message, fix));
            }
        }
        Ok(())
    }

    /// The iteration time and communication of a job, from the keys that the user gave.
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
                "has arcs as well as `compute` and `communication`",
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

    /// Error for jobs and links that do not fit together.
    fn refusal(
        &self,
        error: &ProblemError,
        jobs: &[JobSection],
        links: &[String],
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
                    jobs[job].name, links[link as usize]
                ),
                "lower the demand and lengthen the communication, or raise the link's `rate`",
            ),
            // Names are already resolved, so the other errors are not about the user's names.
            other => {
                let (message, fix) = in_two(&other.to_string());
                self.fault("job", 0, &[], message, fix)
            }
        }
    }
}

/// Phases in which a job computes: from its arcs, or before its communication.
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

/// The keys of the user's file that cause an error.
fn keys_of(error: &ProfileError, job: &JobSection) -> &'static [&'static str] {
    let by_arcs = !job.arcs.is_empty();
    match error {
        ProfileError::ZeroPeriod => &["period", "communication"],
        ProfileError::PastTheEnd { .. } if !by_arcs => &["period"],
        ProfileError::ZeroPhase { kind, .. }
        | ProfileError::PastTheEnd { kind, .. }
        | ProfileError::Overlap { kind, .. } => match (kind, by_arcs) {
            (PhaseKind::Communication, true) => &["arcs"],
            (PhaseKind::Communication, false) => &["communication"],
            (PhaseKind::Compute, _) => &["compute-arcs", "compute"],
        },
        ProfileError::RateOfCompute { .. } => &["compute-arcs"],
    }
}

impl JobsFile {
    /// Reads the text `text`, called `file` in errors.
    ///
    /// # Errors
    /// At the first invalid entry.
    pub fn read(file: &str, text: &str) -> Result<Self, ScenarioError> {
        read(&Registry::builtin(), file, text, None)
    }

    /// Loads a built-in file of jobs by its name, or another file by its path.
    ///
    /// # Errors
    /// If there is no such file, or at its first invalid entry.
    pub fn load(name: &str) -> Result<Self, ScenarioError> {
        Self::load_with(&Registry::builtin(), name)
    }

    /// As [`load`](Self::load), with the transports of a [`Laboratory`](clearway_lab::Laboratory::registry).
    ///
    /// # Errors
    /// As `load`.
    pub fn load_with(registry: &Registry, name: &str) -> Result<Self, ScenarioError> {
        let builtin = builtin_plans().iter().find(|(known, _)| *known == name);
        if let Some((_, text)) = builtin {
            return read(registry, name, text, None);
        }
        let path = Path::new(name);
        let text = clearway_input::read_text_or_standard_input(name, InputKind::PLAN).map_err(
            |error| {
                let builtin = builtin_plans().iter().map(|(name, _)| *name);
                ScenarioError::no_file(name, &error, "plan", builtin)
            },
        )?;
        if name == STANDARD_INPUT {
            return read(registry, "standard input", &text, None);
        }
        let mut file = read(registry, name, &text, path.parent())?;
        if file.name == JobsGeneral::default().name {
            let stem = path.file_stem().map(|stem| stem.to_string_lossy());
            file.name = stem.map_or(file.name, |stem| stem.into_owned());
        }
        Ok(file)
    }
}
