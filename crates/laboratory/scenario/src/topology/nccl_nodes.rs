//! Fabrics of equal nodes, one of which a file of NCCL describes.
//!
//! All GPUs of the file are one node: they meet in the node's scale-up switch, or [`gpu_links`](super::gpu_links) join them with each
//! other. If the file has several hosts, as for an NVLink domain of several machines, so does each node.
//! [`nearest_nics`](super::nearest_nics) says which NICs a GPU uses; the others stay out of the fabric.
//!
//! The rail of a NIC is the `rail` of the file, if each NIC in use has one. Otherwise it is the place of the NIC among those of its host
//! that are in use, so that NIC `n` of every host is on rail `n`.

use crate::error::ScenarioError;
use crate::limits::check_hosts;
use crate::topology::built_fabric::{NodeGpu, NodeGpuNic};
use crate::topology::error::{impossible, topology_error};
use crate::topology::gpu_links::{direct_link, forwarding, scale_up_links};
use crate::topology::nearest_nics::{NearestNics, nearest_nics};
use crate::topology::oversubscription::Oversubscription;
use crate::topology::rail_optimised::{RailLinks, number_of_spines};
use clearway_fabric::topology::{GpuNode, GpuNodes, NodeNic, ScaleUpLinks, Topology, gpu_nodes};
use clearway_formats::NcclTopology;
use clearway_units::{Rate, Span};
use clearway_workload::FileError;
use std::collections::{BTreeMap, BTreeSet};

clearway_units::parameters! {
    /// Network between the nodes of a file of NCCL, and what the file does not say. As in `rail-optimised`: NICs of one rail share leaves,
    /// and spines join the rails.
    pub struct NcclNodeSettings {
        /// Number of nodes, each as in a file of NCCL.
        pub nodes: u32 = 1, "nodes", "decision: the node in the file";
        /// Leaves of each rail; the nodes are divided among them in order.
        pub leaves_per_rail: u32 = 1, "leaves-per-rail", "as `rail-optimised`";
        /// Number of spines; "auto": by `oversubscription`. With 0 the rails are apart, and only `pxn` leads from one to another.
        pub spines: Option<u32> = None, "spines", "by `oversubscription`";
        /// Parallel links from each leaf to each spine.
        pub links: u32 = 1, "parallel-links", "decision";
        /// Downlinks of a leaf per uplink.
        pub oversubscription: Oversubscription = Oversubscription::NONE, "oversubscription", "decision";
        /// Rate of the links between switches; "auto" is the rate of the fastest NIC in use.
        pub fabric_rate: Option<Rate> = None, "fabric-link-rate", "as `rail-optimised`";
        /// Delay of the links between switches; "auto" is `link-delay`.
        pub fabric_delay: Option<Span> = None, "fabric-link-delay", "as `rail-optimised`";
        /// Rate between each GPU and the switch of its node, in each direction. "auto": the GPU's NVLinks times the rate that NCCL assumes
        /// for one, such as 164.8Gbps for `sm` 90; links from GPU to GPU stay as in the file. A rate joins all GPUs by a switch, also
        /// without NVLink or NVSwitch.
        pub nvlink_rate: Option<Rate> = None, "nvlink-rate", "NCCL: topo.h";
        /// Delay of NVLink between a GPU and its node's switch, or from GPU to GPU.
        pub nvlink_delay: Span = Span::from_ns(500), "nvlink-delay", "as `rail-optimised`";
    }
}

/// A fabric of nodes, before hosts are split into NICs.
pub(crate) struct NcclNodes {
    pub(crate) topology: Topology,
    /// GPUs of a node.
    pub(crate) gpus: Vec<NodeGpu>,
    pub(crate) warnings: Vec<String>,
}

/// Builds the fabric of a file called `name`. `links` are rate and delay of the links of NICs, where the user gives them.
pub(crate) fn build_nccl_nodes(
    settings: &NcclNodeSettings,
    links: (Option<Rate>, Option<Span>),
    name: &str,
    file: &NcclTopology,
) -> Result<NcclNodes, ScenarioError> {
    let gpus = file.gpus.len() as u64;
    check_hosts(&["nodes", "file"], gpus * u64::from(settings.nodes))?;
    let scale_up = scale_up_links(settings.nvlink_rate, name, file)?;
    let nearest = nics_of_gpus(settings, name, file)?;
    let nics = nics_in_use(links.0, name, file, &nearest)?;
    let node_nics = nics.iter().map(|nic| NodeNic {
        rate: nic.rate,
        rail: nic.rail,
        gpus: nic.gpus.clone(),
    });
    let delay = links.1.unwrap_or(Span::from_us(1));
    let fastest = nics.iter().map(|nic| nic.rate).max();
    let fabric_rate = settings.fabric_rate.or(fastest);
    let spec = GpuNodes {
        nodes: settings.nodes,
        node: GpuNode {
            scale_up: scale_up.clone(),
            nics: node_nics.collect(),
        },
        leaves_per_rail: settings.leaves_per_rail,
        spines: spines(settings, &nics)?,
        bundle: settings.links,
        nic_delay: delay,
        fabric: (
            fabric_rate.unwrap_or(Rate::from_gbps(400)),
            settings.fabric_delay.unwrap_or(delay),
        ),
        scale_up_delay: settings.nvlink_delay,
    };
    let keys = [
        "leaves-per-rail",
        "nodes",
        "spines",
        "parallel-links",
        "file",
        "nvlink-delay",
    ];
    let mut topology = gpu_nodes(&spec).map_err(|error| topology_error(&keys, &error))?;
    topology.summary = format!(
        "{name}: {} nodes of {gpus} GPUs and {} NICs, {} spines",
        settings.nodes,
        nics.len(),
        spec.spines
    );
    Ok(NcclNodes {
        topology,
        gpus: described(file, &scale_up, &nearest, &nics),
        warnings: warnings(settings, name, file, (&nics, &scale_up)),
    })
}

/// Number of spines; none if there are no leaves.
fn spines(settings: &NcclNodeSettings, nics: &[NicInUse]) -> Result<u32, ScenarioError> {
    let mut of_rail: BTreeMap<u32, u32> = BTreeMap::new();
    for nic in nics {
        *of_rail.entry(nic.rail).or_default() += 1;
    }
    let Some(most) = of_rail.into_values().max() else {
        return Ok(0);
    };
    number_of_spines(&RailLinks {
        spines: settings.spines,
        oversubscription: settings.oversubscription,
        parallel: settings.links,
        nodes: settings.nodes,
        leaves_per_rail: settings.leaves_per_rail,
        nics_of_node: most,
    })
}

/// The NICs of each GPU, which has none only if the file has none at all.
fn nics_of_gpus(
    settings: &NcclNodeSettings,
    name: &str,
    file: &NcclTopology,
) -> Result<Vec<NearestNics>, ScenarioError> {
    if file.nics.is_empty() {
        if settings.nodes > 1 {
            return Err(impossible(
                &["nodes", "file"],
                format!("{} nodes as in {name}, which has no NICs", settings.nodes),
                "use a file that NCCL wrote on a node with NICs, or `nodes = 1`",
            ));
        }
        return Ok(Vec::new());
    }
    let found = file.gpus.iter().zip(nearest_nics(file)).map(|(gpu, nics)| {
        nics.ok_or_else(|| {
            FileError {
                file: name.into(),
                line: gpu.line,
                column: None,
                message: format!("GPU {} has no NIC in its host", gpu.dev),
                fix: "add a `net` to the host, or remove the host".into(),
            }
            .into()
        })
    });
    found.collect()
}

/// A NIC that GPUs use.
struct NicInUse {
    /// Index in the file.
    index: usize,
    rate: Rate,
    rail: u32,
    gpus: Vec<u32>,
}

fn nics_in_use(
    rate: Option<Rate>,
    name: &str,
    file: &NcclTopology,
    nearest: &[NearestNics],
) -> Result<Vec<NicInUse>, ScenarioError> {
    let mut gpus_of: BTreeMap<usize, Vec<u32>> = BTreeMap::new();
    for (gpu, own) in (0..).zip(nearest) {
        for nic in &own.nics {
            gpus_of.entry(*nic).or_default().push(gpu);
        }
    }
    let used: Vec<usize> = gpus_of.keys().copied().collect();
    let rails = rails(name, file, &used)?;
    let nics = gpus_of.into_iter().zip(rails).map(|((index, gpus), rail)| {
        let nic = &file.nics[index];
        let rate = rate.or(nic.speed).ok_or_else(|| FileError {
            file: name.into(),
            line: nic.line,
            column: None,
            message: format!("NIC {} has no `speed` above zero", nic.name),
            fix: "write its rate in Mb/s, or give the rate of all NICs as `topology.link-rate`"
                .into(),
        })?;
        Ok(NicInUse {
            index,
            rate,
            rail,
            gpus,
        })
    });
    nics.collect()
}

/// The rails of the NICs in use.
fn rails(name: &str, file: &NcclTopology, used: &[usize]) -> Result<Vec<u32>, ScenarioError> {
    let given: Vec<Option<u32>> = used.iter().map(|nic| file.nics[*nic].rail).collect();
    if given.iter().all(Option::is_none) {
        let mut of_host: BTreeMap<u32, u32> = BTreeMap::new();
        let places = used.iter().map(|nic| {
            let next = of_host
                .entry(file.host_of(file.nics[*nic].place))
                .or_default();
            *next += 1;
            *next - 1
        });
        return Ok(places.collect());
    }
    let numbers: BTreeSet<u32> = given.iter().flatten().copied().collect();
    let rails = used.iter().zip(given).map(|(nic, rail)| {
        let nic = &file.nics[*nic];
        let rail = rail.ok_or_else(|| FileError {
            file: name.into(),
            line: nic.line,
            column: None,
            message: format!("NIC {} has no `rail`, but others do", nic.name),
            fix: "write `rail` at each NIC, or at none".into(),
        })?;
        Ok(numbers.range(..rail).count() as u32)
    });
    rails.collect()
}

/// The GPUs of a node with their links.
fn described(
    file: &NcclTopology,
    scale_up: &ScaleUpLinks,
    nearest: &[NearestNics],
    nics: &[NicInUse],
) -> Vec<NodeGpu> {
    let of_gpu = |gpu: usize| {
        let own = nics
            .iter()
            .filter(move |nic| nic.gpus.contains(&(gpu as u32)));
        own.map(|nic| NodeGpuNic {
            name: file.nics[nic.index].name.clone(),
            rate: nic.rate,
            rail: nic.rail,
            gpus: nic.gpus.len() as u32,
        })
    };
    let to_switch = |gpu: usize| match scale_up {
        ScaleUpLinks::Switch(rates) if rates.len() > 1 => Some(rates[gpu]),
        _ => None,
    };
    let peers = |gpu: usize| -> Vec<(u32, Rate)> {
        let ScaleUpLinks::Direct { links, .. } = scale_up else {
            return Vec::new();
        };
        let from_here = links.iter().filter_map(|link| match link.ends {
            [a, b] if a as usize == gpu => Some((b, link.rate)),
            [a, b] if b as usize == gpu => Some((a, link.rate)),
            _ => None,
        });
        from_here.collect()
    };
    let gpus = (0..file.gpus.len()).map(|gpu| NodeGpu {
        scale_up: to_switch(gpu),
        peers: peers(gpu),
        nics: of_gpu(gpu).collect(),
        nearness: nearest.get(gpu).map(|own| own.nearness),
    });
    gpus.collect()
}

fn warnings(
    settings: &NcclNodeSettings,
    name: &str,
    file: &NcclTopology,
    (used, scale_up): (&[NicInUse], &ScaleUpLinks),
) -> Vec<String> {
    const SHOWN: usize = 4;
    let mut warnings = Vec::new();
    let is_used = |index: usize| used.iter().any(|nic| nic.index == index);
    let unused = file
        .nics
        .iter()
        .enumerate()
        .filter(|(index, _)| !is_used(*index));
    let unused: Vec<&str> = unused.map(|(_, nic)| nic.name.as_str()).collect();
    if !unused.is_empty() {
        let more = match unused.len().saturating_sub(SHOWN) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        warnings.push(format!(
            "{name}: NICs that are nearest to no GPU, or slower than others as near, are not used: {}{more}",
            unused[..unused.len().min(SHOWN)].join(", ")
        ));
    }
    let direct = file.gpus.iter().find_map(direct_link);
    if let (Some(link), Some(_)) = (direct, settings.nvlink_rate) {
        warnings.push(format!(
            "{name}:{}: links from GPU to GPU are not used: `topology.nvlink-rate` puts a switch in their place",
            link.line
        ));
    }
    warnings.extend(forwarding(name, file, scale_up));
    let planes: BTreeSet<Option<u32>> = used.iter().map(|nic| file.nics[nic.index].plane).collect();
    if planes.len() > 1 {
        warnings.push(format!(
            "{name}: `plane` is not used: spines join the planes, unless `topology.spines` is 0"
        ));
    }
    warnings
}
