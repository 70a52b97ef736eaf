//! Fabrics from files of other tools.

use crate::error::ScenarioError;
use crate::generate::trace_files;
use crate::graph;
use crate::limits::check_hosts;
use crate::topology::built_fabric::BuiltFabric;
use crate::topology::error::{impossible, topology_error};
use clearway_fabric::topology::{
    CoreWiring, FatTree, PortChoice, Tier, TierQueues, Topology, fat_tree,
};
use clearway_formats::{
    FileFormat, KnownFile, TopoFile, parse_hpcc_topology, parse_topo, read_text,
};
use clearway_input::InputKind;
use std::path::{Path, PathBuf};

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
        /// Format of the file: "htsim" is a `.topo` file, "hpcc" a fabric of the HPCC simulator for ns-3 or of SimAI; "auto" decides by the
        /// first word, which is a number only in "hpcc" files.
        pub format: FileFormat = FileFormat::Auto, "format", "decision: no file is sound in both formats";
        /// Sharing of a host's equal links (same rate and delay) among its traffic. "stripe": ports of one NIC; each packet takes the port
        /// with the shortest queue. "hash": ports of one NIC; a hash of the header decides, so that each queue pair has one port
        /// (`transport.qps`). "in-turn": separate NICs; each flow takes the next one, and so does each message between two ranks of a job,
        /// which have a connection for each NIC. "first": only the first link. "auto": "stripe", or "in-turn" if the transport takes
        /// overtaken packets for lost ones (go-back-N).
        pub nics: NicSharing = NicSharing::Auto, "nics", "decision: all of them, as NCCL; SimAI's ns-3 hashes queue pairs over the NICs of a host";
        /// Source of the limits of queues. "file": `Queue_Up` and `Queue_Down` of a `.topo` file, if present, instead of `switch.queue`.
        /// "switch": always `switch.queue`.
        pub port_queues: PortQueues = PortQueues::File, "port-queues", "decision: what the file says; `htsim_uec` itself overwrites them";
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
    match KnownFile::detect(text.as_bytes()) {
        None | Some(KnownFile::Topo | KnownFile::Hpcc) => {}
        // Without connections, the file is a topology of htsim that lacks its tiers, which the parser reports.
        Some(KnownFile::Matrix) if !text.contains("Connections") && !text.contains("->") => {}
        Some(known) if settings.format == FileFormat::Auto => {
            let message = format!(
                "{name} is {}; topologies are files of htsim (`.topo`), HPCC and SimAI",
                known.what()
            );
            return Err(ScenarioError::about(&["file"], message, known.fix(name)));
        }
        Some(_) => {}
    }
    let (built, found) = if settings.format.is_hpcc(&text) {
        let file = parse_hpcc_topology(name, &text)?;
        check_hosts(&["file"], file.hosts.into())?;
        let graph = graph::from_hpcc(&file);
        let graph = match settings.nics {
            NicSharing::Auto if in_order => graph,
            NicSharing::Auto | NicSharing::Stripe => graph.join_nics(PortChoice::LeastQueue),
            NicSharing::Hash => graph.join_nics(PortChoice::Hash),
            NicSharing::InTurn | NicSharing::First => graph,
        };
        let topology = graph.split_hosts();
        check_hosts(&["file"], topology.hosts.into())?;
        let built = BuiltFabric {
            gpus_per_node: file.gpus_per_server,
            host_numbers: file.host_numbers,
            ..BuiltFabric::from(topology)
        };
        (built, file.warnings)
    } else {
        let file = parse_topo(name, &text)?;
        (
            from_file(&file, settings.port_queues)?.into(),
            file.warnings,
        )
    };
    Ok(BuiltFabric {
        warnings: found.iter().map(ToString::to_string).collect(),
        ..built
    })
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
