//! Plans: which jobs are compatible, and how to keep them apart (HotNets'22).
//!
//! ```toml
//! [plan]                      # clearway explain plan
//! grid = "1ms"
//!
//! [[link]]
//! name = "L1"
//! rate = "50Gbps"
//!
//! [[job]]                     # clearway explain job
//! name = "VGG16"
//! compute = "141ms"
//! communication = "114ms"
//! links = ["L1"]
//!
//! [[placement]]               # where a job could run instead
//! job = "VGG16"
//! name = "rack 2"
//! links = ["L2"]
//! ```
//!
//! Or jobs run on hosts of a network, the sections `[topology]`, `[switch]` and `[transport]` of a scenario: then links are those of the
//! routes that ECMP gives to a job's connections, and jobs can be [profiled](JobsFile::profiled) and [simulated](JobsFile::simulate).
//!
//! A [`JobsFile`] becomes a [`Problem`] of the planner, whose plan speaks of jobs and links by their numbers here.

mod network;
mod placed_jobs;
mod profile;
mod read;
mod reasons;
mod settings;
#[cfg(test)]
mod tests;
mod trials;

pub use clearway_planner::compatibility::{
    Demand, GridError, Job, Kind, Move, Phase, Placed, Placement, Plan, PlanError, PlanParameters,
    PlannedJob, PlannedResource, Problem, Profile, Resource, SettingError, Share, Solver,
    UnifiedCircle, Verdict,
};
pub use settings::{Arc, JobSection, JobsGeneral, LinkSection, PlacementSection};
pub use trials::{Mechanism, Trial, TrialOptions, Trials};

use clearway_planner::compatibility;
use clearway_scenario::{CatalogueGroup, Explanation, Places, first_comment};
use clearway_scenario::{Place, ScenarioError};
use clearway_transport::Registry;
use clearway_units::{ParameterSet, mix64, nearest, suggestion};
use network::Network;
use std::path::Path;

macro_rules! plans {
    ($($name:literal),+) => {
        &[$(($name, include_str!(concat!("../plans/", $name, ".toml")))),+]
    };
}

/// The built-in files of jobs: name and text.
pub fn builtin_plans() -> &'static [(&'static str, &'static str)] {
    plans!("vgg-pair", "dumbbell-pair", "table-1", "two-racks")
}

/// The built-in files of jobs and the keys of such files, for the catalogue.
pub fn catalogue_group() -> CatalogueGroup {
    let section = |name: &'static str, role: &str, summary: &str, parameters| Explanation {
        name: name.into(),
        role: role.into(),
        summary: summary.into(),
        section: name,
        parameters,
    };
    let builtin = builtin_plans().iter();
    CatalogueGroup {
        name: "plans",
        builtin: builtin
            .map(|(name, text)| (name.to_string(), first_comment(text)))
            .collect(),
        sections: vec![
            section(
                "plan",
                "the section [plan] of a file of jobs",
                "how `clearway plan` searches",
                PlanParameters::describe(),
            ),
            section(
                "job",
                "a section [[job]] of a file of jobs",
                "a training job for `clearway plan`: an iteration, and what it uses",
                JobSection::describe(),
            ),
            section(
                "placement",
                "a section [[placement]] of a file of jobs",
                "where a job could run instead",
                PlacementSection::describe(),
            ),
        ],
    }
}

/// Jobs, links and settings as a user wrote them, with every default filled in.
#[derive(Debug, Clone)]
pub struct JobsFile {
    /// Name of the plan.
    pub name: String,
    /// `[plan]`.
    pub settings: PlanParameters,
    /// The names of the links, in the order of the problem.
    pub links: Vec<String>,
    /// The names of the GPUs, likewise.
    pub gpus: Vec<String>,
    /// The names of the jobs, likewise.
    pub jobs: Vec<String>,
    /// The names of the placements of each job, the first being where it is.
    pub placements: Vec<Vec<String>>,
    /// Problem to be planned.
    pub problem: Problem,
    /// True if the phases have been measured: see [`profiled`](Self::profiled).
    pub profiled: bool,
    /// The network that the jobs run on, if the file has one.
    network: Option<Network>,
    places: Places,
}

impl JobsFile {
    /// Reads the text `text`, called `file` in errors.
    ///
    /// # Errors
    /// At the first thing that cannot be meant.
    pub fn read(file: &str, text: &str) -> Result<Self, ScenarioError> {
        read::read(&Registry::builtin(), file, text, None)
    }

    /// Loads a built-in file of jobs by its name, or any by its path.
    ///
    /// # Errors
    /// If there is none, or at the first thing in it that cannot be meant.
    pub fn load(name: &str) -> Result<Self, ScenarioError> {
        Self::load_with(&Registry::builtin(), name)
    }

    /// As [`load`](Self::load), with transports of your own for the network: those of a
    /// [`Laboratory`](clearway_lab::Laboratory::registry).
    ///
    /// # Errors
    /// As `load`.
    pub fn load_with(registry: &Registry, name: &str) -> Result<Self, ScenarioError> {
        let builtin = builtin_plans().iter().find(|(known, _)| *known == name);
        if let Some((_, text)) = builtin {
            return read::read(registry, name, text, None);
        }
        let path = Path::new(name);
        let text = std::fs::read_to_string(path).map_err(|error| no_file(name, &error))?;
        let mut file = read::read(registry, name, &text, path.parent())?;
        if file.name == JobsGeneral::default().name {
            let stem = path.file_stem().map(|stem| stem.to_string_lossy());
            file.name = stem.map_or(file.name, |stem| stem.into_owned());
        }
        Ok(file)
    }

    /// Plans the jobs, and where to put those that have a choice.
    ///
    /// # Errors
    /// If a setting makes no sense, or jobs that share links have no unified circle.
    pub fn plan(&self) -> Result<Placed, ScenarioError> {
        compatibility::place(&self.problem, &self.settings).map_err(|error| match error {
            PlanError::Setting(error) => {
                let place = self.places.of_keys("plan", 0, &[error.key()]);
                let (message, fix) = in_two(&error.to_string());
                ScenarioError::at(&place, format!("`plan.{}`: {message}", error.key()), fix)
            }
            PlanError::Grid(error) => {
                let keys = ["period", "compute", "communication"];
                let place = self.places.of_keys("job", error.job(), &keys);
                let (message, fix) = in_two(&error.to_string());
                let name = &self.jobs[error.job()];
                ScenarioError::at(&place, format!("job `{name}`: {message}"), fix)
            }
        })
    }

    /// Reasons why the plan is as it is, for people: a line for each placement that changed, each link on which jobs collide, each circle
    /// with wider sectors than asked for or more collisions than the bound, and each period that is lengthened.
    pub fn reasons(&self, placed: &Placed) -> Vec<String> {
        reasons::reasons(self, placed)
    }

    /// The name of a link or a GPU.
    pub fn resource_name(&self, resource: Resource) -> &str {
        match resource {
            Resource::Link(link) => &self.links[link as usize],
            Resource::Gpu(gpu) => &self.gpus[gpu as usize],
        }
    }

    /// Hash of all that the plan depends on: equal jobs, equal hashes.
    pub fn hash(&self) -> String {
        let network = self.network.as_ref().map(Network::described);
        let text = format!(
            "{:?} {:?} {:?} {:?} {:?} {}",
            self.settings.entries(),
            self.links,
            self.jobs,
            self.placements,
            self.problem,
            network.unwrap_or_default()
        );
        let hash = text
            .bytes()
            .fold(0, |hash, byte| mix64(hash ^ u64::from(byte)));
        format!("{:08x}", hash >> 32)
    }
}

/// An error of the planner, which gives reason and fix in one sentence, as both.
fn in_two(message: &str) -> (String, String) {
    match message.split_once(": ") {
        Some((reason, fix)) => (reason.into(), fix.into()),
        None => (message.into(), "see `clearway explain job`".into()),
    }
}

fn no_file(name: &str, error: &std::io::Error) -> ScenarioError {
    let builtin = builtin_plans().iter().map(|(name, _)| *name);
    let known: Vec<&str> = builtin.clone().collect();
    let known = format!(
        "give the path of a TOML file or a built-in plan: {}",
        known.join(", ")
    );
    let place = Place::Whole { file: name.into() };
    match error.kind() {
        std::io::ErrorKind::NotFound => ScenarioError::at(
            &place,
            "there is no such file or built-in plan",
            suggestion(nearest(name, builtin), &known),
        ),
        _ => ScenarioError::at(
            &place,
            format!("cannot be read: {error}"),
            "name a text file in UTF-8 that you may read",
        ),
    }
}
