//! Readers and writers of the files of other tools: traffic and fabrics of htsim, HPCC and SimAI, InfraGraphs, nodes of NCCL, traces of
//! GOAL and Chakra.
//!
//! # Example
//!
//! A fabric and its traffic in htsim's formats, and a mistake in the traffic.
//!
//! ```
//! use clearway_formats::{StartUnit, parse_cm, parse_topo};
//!
//! let fabric = parse_topo("small.topo", "\
//! Nodes 8
//! Tiers 2
//! Podsize 8
//!
//! Tier 0
//! Downlink_speed_Gbps 100
//! Radix_Down 4
//! Radix_Up 4
//! Downlink_Latency_ns 1000
//!
//! Tier 1
//! Downlink_speed_Gbps 100
//! Radix_Down 2
//! Downlink_Latency_ns 1000
//! ")?;
//! println!("{} hosts, {} leaves, {} spines", fabric.nodes, fabric.leaves(), fabric.aggregations());
//! assert_eq!((fabric.leaves(), fabric.aggregations()), (2, 4));
//!
//! let text = "Nodes 8\nConnections 2\n0->7 id 1 start 0 size 2000000\n1->7 id 2 start 5 size 4096\n";
//! let traffic = parse_cm("incast.cm", text, StartUnit::Microseconds)?;
//! for (id, flow) in traffic.workload.numbered() {
//!     println!("flow {id}: {} bytes from {} to {}", flow.bytes, flow.src, flow.dst);
//! }
//! assert_eq!(traffic.workload.flows.len(), 2);
//!
//! let error = parse_cm("incast.cm", &text.replace("1->7", "1->8"), StartUnit::Microseconds).unwrap_err();
//! println!("{error}");
//! assert_eq!((error.file.as_str(), error.line), ("incast.cm", 4));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Stability
//!
//! In versions 0.x a minor release (0.2.0) may change the interface, and `CHANGELOG.md` names each change; a patch release (0.1.1) only
//! adds items. These should not change: the functions `parse_…`, `read_…` and `write_…`, and the types that they return or take. Types of
//! files get new fields when a format does. A warning may become an error, or an error a warning. `docs/interfaces/clearway-formats.txt`
//! lists all public items.
//!
//! # Features
//!
//! This crate has no cargo features.
//!
//! # Formats
//!
//! * [`parse_cm`] reads htsim's connection matrices (`.cm`), [`parse_topo`] its fabrics (`.topo`); [`parse_hpcc_flows`] and
//!   [`parse_hpcc_topology`] read the files of the HPCC simulator for ns-3. [`FileFormat`] recognizes the format.
//! * [`parse_astra_network`] reads the network of ASTRA-sim's analytical back ends.
//! * [`parse_infragraph`] reads the fabric of an InfraGraph, as YAML or JSON; [`write_infragraph`] writes one.
//! * [`parse_goal`] and [`parse_goal_binary`] read a [`JobProgram`](clearway_workload::JobProgram) from GOAL schedules, [`read_chakra`]
//!   from the execution traces of Chakra, [`read_pytorch`] from the profiles of PyTorch. [`parse_simai`] reads a [`SimaiWorkload`],
//!   which produces a program for any number of ranks.
//!   [`TraceFormat`] recognizes the format.
//! * [`parse_htsim_command`] reads the command line of `htsim_uec`, [`parse_hpcc_config`] the configuration of the HPCC simulator or SimAI.
//! * [`parse_nccl_topology`] reads the topology of a node as NCCL writes it: GPUs, NVLinks and NICs.
//! * [`KnownFile`] recognizes files of the wrong kind, for errors.
//! * [`parse_sizes`] reads a distribution of flow sizes in the format of HPCC's traffic generator.
//!
//! All readers are strict: an entry that other tools ignore or round is an error with file, line and fix, or at least a warning.
//!
//! **Architecture Invariant:** this crate does not know links, queues, transports or scenarios. `topo`, `hpcc`, `infragraph` and
//! `nccl_topology` describe a fabric's file and do not build the fabric.

mod astra_network;
mod astra_system;
pub mod chakra;
pub mod cm;
mod format;
pub mod goal;
mod groups;
pub mod hpcc;
mod htsim_command;
pub mod infragraph;
mod known_file;
mod line_words;
pub mod nccl_topology;
mod packed;
pub mod pytorch;
pub mod simai;
mod sizes;
mod text;
pub mod topo;
mod trace_files;
mod yaml;

pub use astra_network::{AstraDimension, AstraLinks, AstraNetwork, parse_astra_network};
pub use astra_system::{
    AstraAlgorithm, AstraImplementation, AstraRoofline, AstraSystem, parse_astra_system,
};
pub use chakra::{
    ChakraFiles, ChakraOptions, ChakraReader, ChakraTrace, ChakraWriteError, Roofline, read_chakra,
    write_chakra,
};
pub use cm::{CmConnection, CmFile, LinkFailure, StartUnit, SwitchLayer, parse_cm, write_cm};
pub use format::{FileFormat, TraceFormat, head};
pub use goal::{
    GoalFile, GoalWriteError, is_goal_binary, parse_goal, parse_goal_binary, write_goal,
    write_goal_binary,
};
pub use hpcc::{
    HpccConfig, HpccHosts, HpccLink, HpccSetting, HpccTopology, HpccValue, parse_hpcc_config,
    parse_hpcc_flows, parse_hpcc_topology,
};
pub use htsim_command::{
    HtsimCommand, HtsimCommandError, HtsimOption, HtsimValue, parse_htsim_command,
};
pub use infragraph::{
    InfragraphFabric, InfragraphFile, InfragraphForm, InfragraphHosts, InfragraphLink,
    InfragraphOptions, InfragraphQueues, InfragraphRole, InfragraphSwitch, parse_infragraph,
    write_infragraph,
};
pub use known_file::KnownFile;
pub use nccl_topology::{
    NcclGpu, NcclGpuLink, NcclLinkTarget, NcclNic, NcclPlace, NcclPlaceKind, NcclTopology,
    parse_nccl_topology,
};
pub use pytorch::{PytorchReader, PytorchTrace, read_pytorch};
pub use simai::{
    SimaiCall, SimaiFile, SimaiGroup, SimaiLayer, SimaiPhase, SimaiPolicy, SimaiWorkload,
    SimaiWriteError, parse_simai, write_simai,
};
pub use sizes::parse_sizes;
pub use text::{one_of, read_text, refused, shown, whole_number};
pub use topo::{TierSpec, TopoFile, parse_topo};
pub use trace_files::trace_files;
