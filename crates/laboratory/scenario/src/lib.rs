//! The schema of scenario files: topologies, switches, transports, workloads, observation. A [`Scenario`] describes a simulation, with
//! every default filled in.
//!
//! ```toml
//! name = "my-permutation"
//! seed = 1
//! stop.at-most = "50ms"
//!
//! [topology]                 # clearway explain leaf-spine
//! kind = "leaf-spine"
//! hosts = 1024
//!
//! [transport]                # clearway explain strack, adaptive, selective-repeat
//! spray = "adaptive"
//!
//! [[workload]]               # clearway explain permutation
//! kind = "permutation"
//! message = "2MB"
//! ```
//!
//! Missing keys have the defaults of their kinds. A section that gives `file` needs no `kind = "file"`. `--set` replaces or adds single
//! keys; if it changes the `kind` of a section (or gives a `file`), keys of the scenario that the new kind does not have are dropped. So
//! one word replaces a topology or workload.
//!
//! `parameters!` declares each key once, in the crate that uses it (switches in `fabric`, controllers in `transport`, topologies and
//! generators here). A new parameter automatically appears in scenarios, in the [`Catalogue`] and in resolved scenarios.
//!
//! * [`topology`] has the kinds of fabrics, and [`generate`] the generators of traffic.
//! * [`validation`] checks that the parts of a scenario are compatible. [`warnings`] reports compatible settings that are probably
//!   mistakes.
//!
//! **Architecture Invariant:** this crate runs and prints nothing.

mod attack;
mod bdp_comments;
mod catalogue;
mod entries;
mod error;
mod event;
mod experiment;
mod fast_forward;
mod file_hashes;
mod general;
pub mod generate;
mod graph;
mod import;
mod infragraph;
mod key_owners;
mod limits;
mod link_names;
mod locations;
mod nics;
mod observe;
mod pause_storm;
mod scaleup;
mod scenario;
mod section;
mod section_name;
mod settings;
mod size_source;
pub mod source;
mod starter;
mod switch;
mod synonyms;
mod tenant;
pub mod topology;
mod transport;
pub mod validation;
mod virtual_channels;
pub mod warnings;
mod workload;

pub use attack::{AttackContext, AttackKeys, HostSet};
pub use bdp_comments::{BdpValues, without_bdp_comments};
pub use catalogue::{
    Catalogue, CatalogueGroup, Explanation, builtin_scenario, builtin_scenarios, first_comment,
};
pub use clearway_formats::InfragraphForm;
pub use error::{ScenarioError, SourceLocation};
pub use event::{EventSettings, LinkState};
pub use experiment::Experiment;
pub use fast_forward::{FastForward, Percent};
pub use file_hashes::FileHashes;
pub use general::General;
pub use generate::{BuildContext, LoadedWorkload, WorkloadDefinition, WorkloadSettings};
pub use import::{Imported, SimaiFiles, htsim_options, import_hpcc, import_htsim, import_simai};
pub use infragraph::infragraph_text;
pub use limits::{LONGEST, check_flows, check_jobs, slowest_link};
pub use link_names::LinkNames;
pub use locations::SourceLocations;
pub use nics::{NicChoice, between_nics, chosen_pair, path_lengths, shared_pairs};
pub use observe::{MOST_CHOSEN, ObserveSettings, SampledSubjects, Sampling};
pub use pause_storm::PauseStorms;
pub use scaleup::{
    CollectiveOperation, FabricSettings, NVLINK, NvlinkSettings, ScaleupJob, ScaleupScenario,
    ScaleupTraffic, ScaleupWorkload, ScaleupWorkloadKind, scaleup_groups,
};
pub use scenario::Scenario;
pub use section_name::{SectionKeys, SectionName};
pub use settings::Setting;
pub use size_source::SizeSource;
pub use source::SECTIONS;
pub use starter::starter;
pub use switch::{SwitchKind, SwitchSettings};
pub use tenant::{TenantKeys, TenantName, Tenants};
pub use topology::built_fabric::{BuiltFabric, NodeGpu, NodeGpuNic};
pub use topology::nearest_nics::NicNearness;
pub use topology::oversubscription::Oversubscription;
pub use transport::TransportSettings;
pub use transport::sections::Transports;
pub use virtual_channels::check_classes;
pub use workload::{FlowKeys, Priority, WorkloadSection};

#[cfg(test)]
mod tests;
