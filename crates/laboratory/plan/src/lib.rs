//! Plans of jobs: compatibility of jobs, and ways to keep them apart (HotNets'22).
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
//! Alternatively, jobs run on hosts of a network, with the sections `[topology]`, `[switch]` and `[transport]` of a scenario. Links are
//! then the links on the ECMP routes of a job's connections, and jobs can be [profiled](JobsFile::profiled) and
//! [simulated](JobsFile::simulate).
//!
//! A [`JobsFile`] becomes a [`Problem`] of the planner, whose plan identifies jobs and links by their numbers in the file.

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
    CandidatePlacement, CompatibilityVerdict, Demand, GridError, Job, JobMove, JobProfile, Phase,
    PhaseKind, Placed, Plan, PlanError, PlanParameters, PlannedJob, PlannedResource, Problem,
    Resource, SettingError, Share, Solver, UnifiedCircle,
};
pub use settings::{Arc, JobSection, JobsGeneral, LinkSection, PlacementSection};
pub use trials::{Mechanism, Trial, TrialOptions, Trials};

use clearway_planner::compatibility;
use clearway_scenario::ScenarioError;
use clearway_scenario::{CatalogueGroup, Explanation, SourceLocations, first_comment};
use clearway_units::{ParameterSet, mix64};
use network::Network;

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
                "search of `clearway plan`",
                PlanParameters::describe(),
            ),
            section(
                "job",
                "a section [[job]] of a file of jobs",
                "a training job for `clearway plan`: an iteration, and its hosts, links and GPUs",
                JobSection::describe(),
            ),
            section(
                "placement",
                "a section [[placement]] of a file of jobs",
                "an alternative placement of a job",
                PlacementSection::describe(),
            ),
        ],
    }
}

/// Jobs, links and settings of a user's file, with every default filled in.
#[derive(Debug, Clone)]
pub struct JobsFile {
    /// Name of the plan.
    pub name: String,
    /// `[plan]`.
    pub settings: PlanParameters,
    /// The names of the links, in the order of the problem.
    pub links: Vec<String>,
    /// The names of the GPUs, in the order of the problem.
    pub gpus: Vec<String>,
    /// The names of the jobs, in the order of the problem.
    pub jobs: Vec<String>,
    /// The names of the placements of each job; the first is the present placement.
    pub placements: Vec<Vec<String>>,
    /// Problem for the planner.
    pub problem: Problem,
    /// True if the phases have been measured: see [`profiled`](Self::profiled).
    pub profiled: bool,
    /// The network of the jobs, if the file has one.
    network: Option<Network>,
    places: SourceLocations,
}

impl JobsFile {
    /// Plans the jobs, and chooses placements for jobs with several.
    ///
    /// # Errors
    /// If a setting is invalid, or jobs that share links have no unified circle.
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

    /// The name of a link or a GPU.
    pub fn resource_name(&self, resource: Resource) -> &str {
        match resource {
            Resource::Link(link) => &self.links[link as usize],
            Resource::Gpu(gpu) => &self.gpus[gpu as usize],
        }
    }

    /// Hash of everything that the plan depends on; equal jobs have equal hashes.
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

/// Reason and fix from an error of the planner, which gives both in one sentence.
fn in_two(message: &str) -> (String, String) {
    match message.split_once(": ") {
        Some((reason, fix)) => (reason.into(), fix.into()),
        None => (message.into(), "see `clearway explain job`".into()),
    }
}
