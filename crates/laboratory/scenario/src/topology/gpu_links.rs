//! Links between the GPUs of a node that a file of NCCL describes.
//!
//! GPUs meet in NVSwitches, or have links to each other, as in a cube mesh of NVLink or a full mesh of xGMI. GPUs that are joined directly
//! forward within their node, over as many GPUs as it takes. NCCL itself sends over one GPU between at most (`PATH_NVB` in its
//! `src/graph/paths.cc`), and over PCI or NICs to GPUs that are farther away.

use crate::error::ScenarioError;
use clearway_fabric::topology::{GpuLink, ScaleUpLinks};
use clearway_formats::{NcclGpu, NcclGpuLink, NcclLinkTarget, NcclTopology};
use clearway_units::Rate;
use clearway_workload::FileError;
use std::collections::BTreeMap;

const JOINS: &str = "`topology.nvlink-rate` joins the GPUs of each node by a switch";

/// The links between the GPUs of a file called `name`. `nvlink_rate` joins them by a switch instead.
pub(super) fn scale_up_links(
    nvlink_rate: Option<Rate>,
    name: &str,
    file: &NcclTopology,
) -> Result<ScaleUpLinks, ScenarioError> {
    let gpus = file.gpus.iter();
    if let Some(rate) = nvlink_rate {
        return Ok(ScaleUpLinks::Switch(gpus.map(|_| rate).collect()));
    }
    if let [only] = &file.gpus[..] {
        // Nothing in its node to reach.
        let rate = only.switch_rate().unwrap_or(Rate::from_gbps(1));
        return Ok(ScaleUpLinks::Switch(vec![rate]));
    }
    if file.gpus.iter().any(|gpu| direct_link(gpu).is_some()) {
        return Ok(direct_links(name, file)?);
    }
    let rates = gpus.map(|gpu| gpu.switch_rate().ok_or_else(|| no_switch(name, gpu).into()));
    let rates: Result<_, ScenarioError> = rates.collect();
    rates.map(ScaleUpLinks::Switch)
}

/// The first link of a GPU to another one.
pub(super) fn direct_link(gpu: &NcclGpu) -> Option<&NcclGpuLink> {
    let mut links = gpu.links.iter();
    links.find(|link| link.target != NcclLinkTarget::Switch)
}

/// Warning about GPUs that forward, if some have no link to each other.
pub(super) fn forwarding(name: &str, file: &NcclTopology, links: &ScaleUpLinks) -> Option<String> {
    let ScaleUpLinks::Direct { links, .. } = links else {
        return None;
    };
    let between = farthest(file.gpus.len(), links).saturating_sub(1);
    let line = file.gpus.iter().find_map(direct_link)?.line;
    let nccl = match between {
        0 => return None,
        1 => "as in NCCL",
        _ => "while NCCL sends over one GPU at most, and else over PCI or NICs",
    };
    let over = match between {
        1 => "one GPU".to_owned(),
        _ => format!("up to {between} GPUs"),
    };
    Some(format!(
        "{name}:{line}: GPUs without a link to each other send over {over} of their node, {nccl}: set `topology.nvlink-rate` if a switch joins them"
    ))
}

/// Links from GPU to GPU, which must join all.
fn direct_links(name: &str, file: &NcclTopology) -> Result<ScaleUpLinks, FileError> {
    // Number of links from one GPU to another, and their first line.
    let mut counts: BTreeMap<(u32, u32), (u64, usize)> = BTreeMap::new();
    for (own, gpu) in (0..).zip(&file.gpus) {
        for link in &gpu.links {
            let NcclLinkTarget::Gpu(other) = link.target else {
                let message = format!(
                    "GPU {} has links to an NVSwitch, and a GPU of the file has links to others: both together are not simulated",
                    gpu.dev
                );
                return Err(fault(name, link.line, message, switch_instead()));
            };
            let count = &mut counts.entry((own, other)).or_insert((0, link.line)).0;
            *count = count.saturating_add(link.count.into());
        }
    }
    let rate = |own: u32, other: u32| -> Result<Option<Rate>, FileError> {
        let Some(&(count, _)) = counts.get(&(own, other)) else {
            return Ok(None);
        };
        let gpu = &file.gpus[own as usize];
        let one = gpu.link_rate();
        let one = one.ok_or_else(|| unknown_generation(name, gpu))?;
        Ok(Some(Rate::from_bps(one.as_bps().saturating_mul(count))))
    };
    let mut links = Vec::new();
    for (&(own, other), &(_, line)) in &counts {
        let (there, back) = (rate(own, other)?, rate(other, own)?);
        if there != back {
            let [own, other] = [own, other].map(|gpu| file.gpus[gpu as usize].dev);
            let message = match (there, back) {
                (Some(there), Some(back)) => format!(
                    "the links of GPU {own} to GPU {other} have {there}, those of GPU {other} to GPU {own} have {back}"
                ),
                _ => format!("GPU {own} has links to GPU {other}, which has none to GPU {own}"),
            };
            let fix = "write the same `count` at both GPUs, and the same `sm` or `gcn`";
            return Err(fault(name, line, message, fix.into()));
        }
        if let Some(rate) = there.filter(|_| own < other) {
            let ends = [own, other];
            links.push(GpuLink { ends, rate });
        }
    }
    check_reach(name, file, &links)?;
    Ok(ScaleUpLinks::Direct {
        gpus: file.gpus.len() as u32,
        links,
    })
}

/// Checks that links lead from the first GPU to all others.
fn check_reach(name: &str, file: &NcclTopology, links: &[GpuLink]) -> Result<(), FileError> {
    let distances = distances(&neighbours(file.gpus.len(), links), 0);
    let mut all = file.gpus.iter().zip(distances);
    match all.find(|(_, distance)| distance.is_none()) {
        None => Ok(()),
        Some((gpu, _)) => {
            let message = format!(
                "no links lead from GPU {} to GPU {}, not even over other GPUs",
                file.gpus[0].dev, gpu.dev
            );
            Err(fault(name, gpu.line, message, switch_instead()))
        }
    }
}

/// Largest number of links between two GPUs.
fn farthest(gpus: usize, links: &[GpuLink]) -> u32 {
    let neighbours = neighbours(gpus, links);
    let all = (0..gpus).flat_map(|gpu| distances(&neighbours, gpu));
    all.flatten().max().unwrap_or(0)
}

fn neighbours(gpus: usize, links: &[GpuLink]) -> Vec<Vec<usize>> {
    let mut neighbours = vec![Vec::new(); gpus];
    for [a, b] in links.iter().map(|link| link.ends.map(|gpu| gpu as usize)) {
        neighbours[a].push(b);
        neighbours[b].push(a);
    }
    neighbours
}

/// Number of links from a GPU to each; `None` if none lead there.
fn distances(neighbours: &[Vec<usize>], from: usize) -> Vec<Option<u32>> {
    let mut distances = vec![None; neighbours.len()];
    distances[from] = Some(0);
    let (mut reached, mut front) = (0, vec![from]);
    while !front.is_empty() {
        reached += 1;
        let mut next = Vec::new();
        for &other in front.iter().flat_map(|gpu| &neighbours[*gpu]) {
            if distances[other].is_none() {
                distances[other] = Some(reached);
                next.push(other);
            }
        }
        front = next;
    }
    distances
}

fn fault(name: &str, line: usize, message: String, fix: String) -> FileError {
    FileError {
        file: name.into(),
        line,
        column: None,
        message,
        fix,
    }
}

fn switch_instead() -> String {
    format!("{JOINS} instead: give the rate of all links of a GPU together, such as 1200Gbps")
}

fn unknown_generation(name: &str, gpu: &NcclGpu) -> FileError {
    fault(
        name,
        gpu.line,
        format!(
            "GPU {} has NVLinks, but no `sm` of a generation with NVLink",
            gpu.dev
        ),
        "write `sm`, such as 90 for Hopper, or give the rate as `topology.nvlink-rate`".into(),
    )
}

/// Error about a GPU that does not reach all others by an NVSwitch, in a file without links from GPU to GPU.
fn no_switch(name: &str, gpu: &NcclGpu) -> FileError {
    if !gpu.is_described {
        return fault(
            name,
            gpu.line,
            "the file has no `gpu` elements, so the NVLinks of the GPUs are not known".into(),
            format!(
                "{JOINS}: 1920Gbps stands for 12 NVLinks of `sm` 80, 2966.4Gbps for 18 of `sm` 90; or write the file with NCCL_TOPO_DUMP_FILE"
            ),
        );
    }
    if !gpu.links.is_empty() {
        return unknown_generation(name, gpu);
    }
    fault(
        name,
        gpu.line,
        format!(
            "GPU {} has no NVLink to an NVSwitch or another GPU: links over PCI are not simulated",
            gpu.dev
        ),
        format!("{JOINS}: 192Gbps stands for PCIe 4.0"),
    )
}
