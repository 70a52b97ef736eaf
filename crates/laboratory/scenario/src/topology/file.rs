//! Fabrics from files of other tools.

use crate::error::ScenarioError;
use crate::generate::trace_files;
use crate::graph;
use crate::infragraph;
use crate::limits::check_hosts;
use crate::topology::built_fabric::BuiltFabric;
use crate::topology::error::{impossible, topology_error};
use crate::topology::nccl_nodes::{NcclNodeSettings, build_nccl_nodes};
use clearway_fabric::topology::{
    CoreWiring, Dimension, DimensionLinks, DirectRouting, FatTree, GroupRouting, PortChoice, Tier,
    TierQueues, Topology, VirtualChannels, direct_network, fat_tree,
};
use clearway_formats::{
    AstraDimension, AstraLinks, FileFormat, InfragraphHosts, InfragraphOptions, KnownFile,
    TopoFile, parse_astra_network, parse_hpcc_topology, parse_infragraph, parse_nccl_topology,
    parse_topo, read_text,
};
use clearway_input::InputKind;
use clearway_units::{OmitDefaults, ParameterSet, Rate, Span};
use clearway_workload::FileWarning;
use std::path::{Path, PathBuf};

clearway_units::choices! {
    /// Format of the file of a fabric.
    pub enum TopologyFormat {
        /// Found out from the content.
        Auto = "auto",
        /// htsim's `.topo`.
        Htsim = "htsim",
        /// Fabrics of the HPCC simulator and of SimAI.
        Hpcc = "hpcc",
        /// InfraGraph, as YAML or JSON.
        Infragraph = "infragraph",
        /// Network of ASTRA-sim's analytical back ends.
        AstraSim = "astra-sim",
        /// Node as NCCL writes it.
        Nccl = "nccl",
    }
}

impl TopologyFormat {
    /// The format of a file, found out if it is `Auto`.
    fn settle(self, name: &str, text: &str) -> Self {
        let extensions = [".yaml", ".yml", ".json"];
        let is_named = extensions.iter().any(|end| name.ends_with(end));
        match (self, KnownFile::detect(text.as_bytes())) {
            (Self::Auto, Some(KnownFile::Infragraph)) => Self::Infragraph,
            (Self::Auto, Some(KnownFile::AstraNetwork)) => Self::AstraSim,
            (Self::Auto, None) if is_named => Self::Infragraph,
            (Self::Auto, Some(KnownFile::NcclTopology)) => Self::Nccl,
            (Self::Auto, _) if FileFormat::Auto.is_hpcc(text) => Self::Hpcc,
            (Self::Auto, _) => Self::Htsim,
            (format, _) => format,
        }
    }
}

clearway_units::choices! {
    /// Sharing of the equal links of a host among its traffic.
    pub enum NicSharing {
        /// As the transport can bear.
        Auto = "auto",
        /// Packet by packet.
        Stripe = "stripe",
        /// Queue pair by queue pair.
        Hash = "hash",
        /// Flow by flow, and message by message of a job, round robin.
        InTurn = "in-turn",
        /// All on the first.
        First = "first",
    }
}

clearway_units::choices! {
    /// Source of the limits of the queues of ports.
    pub enum PortQueues {
        /// The fabric's file, where it has them.
        File = "file",
        /// `switch.queue`.
        Switch = "switch",
    }
}

clearway_units::parameters! {
    /// Fabric from a file.
    pub struct TopologyFile {
        /// Path of the file, searched beside the scenario, then in the current folder.
        pub file: String = String::new(), "file", "the user";
        /// Format of the file: "htsim" is a `.topo` file, "hpcc" a fabric of the HPCC simulator for ns-3 or of SimAI, "infragraph" an
        /// InfraGraph as YAML or JSON, "astra-sim" a network of ASTRA-sim, "nccl" a node as NCCL writes it (XML). "auto" decides by the
        /// content: the first word is a number only in "hpcc" files, an InfraGraph has `devices` and `instances`, a network of ASTRA-sim
        /// `npus_count`, and a file of NCCL begins with `<`.
        pub format: TopologyFormat = TopologyFormat::Auto, "format", "decision: no file is sound in several formats";
        /// Hosts of an InfraGraph. "xpu": each xpu, with the NICs nearest to it within its device. "device": each device with an xpu or a
        /// NIC, with all its NICs. "auto": xpus, except those of devices in which some xpu has no NIC with a cable.
        pub endpoints: InfragraphHosts = InfragraphHosts::Auto, "endpoints", "decision: ranks are GPUs, as in SimAI's files and ASTRA-sim";
        /// Rate of links: of an InfraGraph, of those that have no bandwidth; of a node of NCCL, of all NICs. "auto": as in the file, where
        /// a link without a rate is an error.
        pub link_rate: Option<Rate> = None, "link-rate", "decision: a rate is not guessed";
        /// Delay of links: of an InfraGraph, of those that have no latency; of a node of NCCL, of all NICs. "auto": 1us, of an InfraGraph
        /// with a warning.
        pub link_delay: Option<Span> = None, "link-delay", "STrack §4.2; InfraGraph's own fabrics and NCCL's files have none";
        /// Rule by which packets go from one group of switches to another, in an InfraGraph whose switches have groups (`clearway-group`).
        pub routing: GroupRouting = GroupRouting::Minimal, "routing", "decision: as in a dragonfly";
        /// Sharing of a host's equal links (same rate and delay) among its traffic. "stripe": ports of one NIC; each packet takes the port
        /// with the shortest queue. "hash": ports of one NIC; a hash of the header decides, so that each queue pair has one port
        /// (`transport.qps`). "in-turn": separate NICs; each flow takes the next one, and so does each message between two ranks of a job,
        /// which have a connection for each NIC. "first": only the first link. "auto": "stripe", or "in-turn" if the transport takes
        /// overtaken packets for lost ones (go-back-N).
        pub nics: NicSharing = NicSharing::Auto, "nics", "decision: all of them, as NCCL; SimAI's ns-3 hashes queue pairs over the NICs of a host";
        /// Source of the limits of queues. "file": `Queue_Up` and `Queue_Down` of a `.topo` file, if present, instead of `switch.queue`.
        /// "switch": always `switch.queue`.
        pub port_queues: PortQueues = PortQueues::File, "port-queues", "decision: what the file says; `htsim_uec` itself overwrites them";
        with {
            /// Network between the nodes of a file of NCCL.
            pub nodes: OmitDefaults<NcclNodeSettings>,
        }
    }
}

/// Builds the fabric.
pub(crate) fn build_from_file(
    settings: &TopologyFile,
    base_dir: Option<&Path>,
    in_order: bool,
) -> Result<BuiltFabric, ScenarioError> {
    let name = &settings.file;
    if name.is_empty() {
        return Err(impossible(
            &["file", "kind"],
            "no file is named".into(),
            "name it, as in `file = \"fabric.topo\"`",
        ));
    }
    let text = read_text(&find_file(name, base_dir), InputKind::TOPOLOGY)?;
    check_kind(settings, &text)?;
    let format = settings.format.settle(name, &text);
    let (built, found) = match format {
        TopologyFormat::Hpcc => build_hpcc(settings, &text, in_order)?,
        TopologyFormat::Infragraph => build_infragraph(settings, &text, in_order)?,
        TopologyFormat::AstraSim => build_astra_network(name, &text)?,
        TopologyFormat::Nccl => build_nccl(settings, &text, in_order)?,
        TopologyFormat::Auto | TopologyFormat::Htsim => {
            let file = parse_topo(name, &text)?;
            (
                from_file(&file, settings.port_queues)?.into(),
                file.warnings,
            )
        }
    };
    let warnings = found.iter().map(ToString::to_string);
    let warnings = warnings.chain(built.warnings);
    Ok(BuiltFabric {
        warnings: warnings.chain(unused_keys(settings, format)).collect(),
        ..built
    })
}

/// Refuses a file of another kind.
fn check_kind(settings: &TopologyFile, text: &str) -> Result<(), ScenarioError> {
    let name = &settings.file;
    match KnownFile::detect(text.as_bytes()) {
        None
        | Some(
            KnownFile::Topo
            | KnownFile::Hpcc
            | KnownFile::Infragraph
            | KnownFile::AstraNetwork
            | KnownFile::NcclTopology,
        ) => Ok(()),
        // Without connections, the file is a topology of htsim that lacks its tiers, which the parser reports.
        Some(KnownFile::Matrix) if !text.contains("Connections") && !text.contains("->") => Ok(()),
        Some(known) if settings.format == TopologyFormat::Auto => {
            let message = format!(
                "{name} is {}; topologies are files of htsim (`.topo`), HPCC, SimAI, ASTRA-sim and NCCL, and InfraGraphs",
                known.what()
            );
            Err(ScenarioError::about(&["file"], message, known.fix(name)))
        }
        Some(_) => Ok(()),
    }
}

/// Warnings about keys for files of other formats.
fn unused_keys(settings: &TopologyFile, format: TopologyFormat) -> Vec<String> {
    let usual = TopologyFile::default();
    let of_graphs = [
        ("endpoints", settings.endpoints != usual.endpoints),
        ("routing", settings.routing != usual.routing),
    ];
    let of_both = [
        ("link-rate", settings.link_rate.is_some()),
        ("link-delay", settings.link_delay.is_some()),
    ];
    let set = |keys: &[(&'static str, bool)]| {
        let set = keys.iter().filter(|(_, is_set)| *is_set);
        set.map(|(key, _)| *key).collect::<Vec<_>>()
    };
    let given = settings.nodes.0.entries().into_iter();
    let changed = given.zip(usual.nodes.0.entries());
    let changed = changed.filter(|(own, usual)| own != usual);
    let of_nodes: Vec<&str> = changed.map(|((key, _), _)| key).collect();
    let is_graph = format == TopologyFormat::Infragraph;
    let is_node = format == TopologyFormat::Nccl;
    let groups = [
        (is_graph, set(&of_graphs), "an InfraGraph"),
        (
            is_graph || is_node,
            set(&of_both),
            "an InfraGraph or a topology of NCCL",
        ),
        (is_node, of_nodes, "a topology of NCCL"),
    ];
    let unused = groups
        .into_iter()
        .filter(|(is_used, keys, _)| !is_used && !keys.is_empty());
    unused
        .map(|(_, keys, what)| {
            let verb = if keys.len() == 1 { "is" } else { "are" };
            let keys: Vec<String> = keys.iter().map(|key| format!("`topology.{key}`")).collect();
            let (keys, file) = (keys.join(", "), &settings.file);
            format!("{keys} {verb} not used: {file} is not {what}")
        })
        .collect()
}

fn build_hpcc(
    settings: &TopologyFile,
    text: &str,
    in_order: bool,
) -> Result<(BuiltFabric, Vec<FileWarning>), ScenarioError> {
    let file = parse_hpcc_topology(&settings.file, text)?;
    check_hosts(&["file"], file.hosts.into())?;
    let graph = graph::from_hpcc(&file).map_err(|error| topology_error(&["file"], &error))?;
    let topology = with_nics(settings.nics, graph, in_order)?;
    let built = BuiltFabric {
        gpus_per_node: file.gpus_per_server,
        host_numbers: file.host_numbers,
        ..BuiltFabric::from(topology)
    };
    Ok((built, file.warnings))
}

/// The direct network of a file of ASTRA-sim. A switch of a dimension adds a link to the way, with the latency of the file, as there.
fn build_astra_network(
    name: &str,
    text: &str,
) -> Result<(BuiltFabric, Vec<FileWarning>), ScenarioError> {
    let network = parse_astra_network(name, text)?;
    let npus = network.dimensions.iter().map(|one| u64::from(one.npus));
    check_hosts(&["file"], npus.fold(1, u64::saturating_mul))?;
    let dimension = |one: &AstraDimension| Dimension {
        size: one.npus,
        links: match one.links {
            AstraLinks::Ring => DimensionLinks::Ring,
            AstraLinks::FullyConnected => DimensionLinks::FullyConnected,
            AstraLinks::Switch => DimensionLinks::Switch,
        },
        rate: one.bandwidth,
        delay: one.latency,
    };
    let dimensions: Vec<Dimension> = network.dimensions.iter().map(dimension).collect();
    let topology = direct_network(&dimensions, DirectRouting::Shortest, VirtualChannels::One)
        .map_err(|error| topology_error(&["file"], &error))?;
    let built = BuiltFabric {
        dimensions: dimensions.iter().map(|one| one.size).collect(),
        ..BuiltFabric::from(topology)
    };
    Ok((built, network.warnings))
}

fn build_infragraph(
    settings: &TopologyFile,
    text: &str,
    in_order: bool,
) -> Result<(BuiltFabric, Vec<FileWarning>), ScenarioError> {
    let options = InfragraphOptions {
        hosts: settings.endpoints,
        link_rate: settings.link_rate,
        link_delay: settings.link_delay,
    };
    let file = parse_infragraph(&settings.file, text, &options)?;
    check_hosts(&["file"], file.fabric.hosts.into())?;
    let graph = infragraph::to_topology(&file.fabric, settings.routing)?;
    let nics = match settings.nics {
        NicSharing::Auto if file.fabric.separates_nics => NicSharing::InTurn,
        nics => nics,
    };
    let built = BuiltFabric {
        gpus_per_node: file.fabric.xpus_per_server,
        ..BuiltFabric::from(with_nics(nics, graph, in_order)?)
    };
    Ok((built, file.warnings))
}

fn build_nccl(
    settings: &TopologyFile,
    text: &str,
    in_order: bool,
) -> Result<(BuiltFabric, Vec<FileWarning>), ScenarioError> {
    let file = parse_nccl_topology(&settings.file, text)?;
    let links = (settings.link_rate, settings.link_delay);
    let nodes = build_nccl_nodes(&settings.nodes, links, &settings.file, &file)?;
    let topology = with_nics(settings.nics, nodes.topology, in_order)?;
    let built = BuiltFabric {
        gpus_per_node: nodes.gpus.len() as u32,
        node_gpus: nodes.gpus,
        warnings: nodes.warnings,
        ..BuiltFabric::from(topology)
    };
    Ok((built, file.warnings))
}

/// A fabric whose hosts have several cables, with the sharing of their equal links.
fn with_nics(
    sharing: NicSharing,
    graph: Topology,
    in_order: bool,
) -> Result<Topology, ScenarioError> {
    let graph = match sharing {
        NicSharing::Auto if in_order => graph,
        NicSharing::Auto | NicSharing::Stripe => graph.join_nics(PortChoice::LeastQueue),
        NicSharing::Hash => graph.join_nics(PortChoice::Hash),
        NicSharing::InTurn | NicSharing::First => graph,
    };
    let topology = graph.split_hosts();
    check_hosts(&["file"], topology.hosts.into())?;
    Ok(topology)
}

/// Path of a file, or prefix of files, that the user names: in the scenario's folder, else in the current folder.
pub(crate) fn find_file(name: &str, base_dir: Option<&Path>) -> PathBuf {
    let beside = base_dir.map(|folder| folder.join(name));
    beside
        .filter(|path| trace_files(path).iter().any(|file| file.exists()))
        .unwrap_or_else(|| PathBuf::from(name))
}

fn from_file(file: &TopoFile, port_queues: PortQueues) -> Result<Topology, ScenarioError> {
    check_hosts(&["file"], file.nodes.into())?;
    let tiers = file.tiers.iter().map(|tier| Tier {
        down_ports: tier.radix_down,
        up_ports: tier.radix_up.unwrap_or(0),
        link_rate: tier.downlink_speed,
        link_delay: tier.downlink_latency,
        switch_latency: tier.switch_latency,
        bundle: tier.bundle,
    });
    let spec = FatTree {
        hosts: file.nodes,
        hosts_per_pod: file.podsize,
        tiers: tiers.collect(),
        cores: CoreWiring::Interleaved,
    };
    let mut topology = fat_tree(&spec).map_err(|error| topology_error(&["file"], &error))?;
    let queues = file.tiers.iter().map(|tier| TierQueues {
        up: tier.queue_up,
        down: tier.queue_down,
    });
    if port_queues == PortQueues::File {
        topology.queues = queues.collect();
        // Without queue lengths, the fabric is an ordinary one.
        if topology
            .queues
            .iter()
            .all(|own| *own == TierQueues::default())
        {
            topology.queues.clear();
        }
    }
    Ok(topology)
}
