//! Topology of a node as NCCL writes it: GPUs, their NVLinks, and the NICs near to them.
//!
//! NCCL writes such a file where `NCCL_TOPO_DUMP_FILE` says, and reads one with `NCCL_TOPO_FILE`, which clouds ship for their machines:
//!
//! ```text
//! <system version="1">
//!   <cpu numaid="0" arch="x86_64">
//!     <pci busid="0000:17:00.0" class="0x060400">             a PCI switch
//!       <pci busid="0000:1b:00.0" class="0x030200">           a GPU
//!         <gpu dev="0" sm="90" rank="0" gdr="1">
//!           <nvlink target="0000:07:00.0" count="18" tclass="0x068000"/>
//!         </gpu>
//!       </pci>
//!       <pci busid="0000:18:00.0" class="0x020700">           a NIC
//!         <nic>
//!           <net name="mlx5_0" dev="0" speed="400000"/>       in Mb/s
//!         </nic>
//!       </pci>
//!     </pci>
//!   </cpu>
//! </system>
//! ```
//!
//! The names of elements and attributes, the classes of PCI devices and the rates of NVLinks are those of NCCL's `src/graph`. RCCL, AMD's
//! library, writes version 2, which has `xgmi` in the place of `nvlink`. In a file for `NCCL_TOPO_FILE`, NCCL itself adds `gpu` and `net`.
//! Without any `gpu`, all PCI devices of a GPU's class are GPUs, in the order of the file; without any `net`, all of a network's class are
//! NICs. Nothing is known then about NVLinks and rates.
//!
//! The reader is stricter than NCCL in these points: a `net` without a usable `speed` has none (there: 10 Gb/s), and a known element at a
//! place where NCCL ignores it is an error. Elements and attributes that nothing uses give one warning for each kind.

mod elements;
mod reader;
mod unused;
mod xml;

#[cfg(test)]
mod tests;

pub use reader::parse_nccl_topology;

use clearway_units::{Rate, Span};
use clearway_workload::FileWarning;

/// Content of a file of NCCL: a node, or all nodes of one NVLink domain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NcclTopology {
    /// Hosts, CPUs and PCI switches, parents before their children.
    pub places: Vec<NcclPlace>,
    /// GPUs, host by host, in the order of `dev`.
    pub gpus: Vec<NcclGpu>,
    /// NICs, host by host, in the order of `dev`.
    pub nics: Vec<NcclNic>,
    /// Warnings about entries that nothing uses.
    pub warnings: Vec<FileWarning>,
}

/// A host, a CPU or a PCI switch, below which there are GPUs and NICs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NcclPlace {
    /// Kind of the place.
    pub kind: NcclPlaceKind,
    /// Index of the place above it in [`NcclTopology::places`]; `None` for a host.
    pub parent: Option<u32>,
}

/// Kind of a [`NcclPlace`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NcclPlaceKind {
    /// A machine.
    Host,
    /// A CPU; more precisely a NUMA domain.
    Cpu,
    /// A PCI switch or bridge.
    PciSwitch,
}

/// A GPU.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NcclGpu {
    /// Line of the GPU in the file.
    pub line: usize,
    /// Number of the GPU in its host.
    pub dev: u32,
    /// Place that it hangs on, as index in [`NcclTopology::places`].
    pub place: u32,
    /// Compute capability times ten, such as 90 for Hopper; `None` if the file does not say it. RCCL writes the number of compute units.
    pub sm: Option<u32>,
    /// Generation in files of RCCL, such as `gfx942`.
    pub gcn: Option<String>,
    /// Links to NVSwitches and other GPUs.
    pub links: Vec<NcclGpuLink>,
    /// True if the file has a `gpu` element for it, which lists all its links.
    pub is_described: bool,
}

/// Links of a GPU to one neighbour.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NcclGpuLink {
    /// Line in the file.
    pub line: usize,
    /// Neighbour.
    pub target: NcclLinkTarget,
    /// Number of parallel links.
    pub count: u32,
}

/// Neighbour at the other end of a GPU's links.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NcclLinkTarget {
    /// An NVSwitch. All GPUs of the file meet there.
    Switch,
    /// Another GPU of the same host, as index in [`NcclTopology::gpus`]. Also by xGMI.
    Gpu(u32),
}

/// A NIC; more precisely a port of a NIC, which is a device of its own for NCCL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NcclNic {
    /// Line of the NIC in the file.
    pub line: usize,
    /// Name, such as `mlx5_0`.
    pub name: String,
    /// Number of the NIC in its host.
    pub dev: u32,
    /// Place that it hangs on, as index in [`NcclTopology::places`].
    pub place: u32,
    /// Rate, if the file says it.
    pub speed: Option<Rate>,
    /// Latency that NCCL adds for the NIC.
    pub latency: Span,
    /// Rail, if the file says it.
    pub rail: Option<u32>,
    /// Plane, if the file says it.
    pub plane: Option<u32>,
}

impl NcclTopology {
    /// A place and all places above it, up to its host.
    pub fn upwards(&self, place: u32) -> impl Iterator<Item = u32> + '_ {
        std::iter::successors(Some(place), |at| self.places[*at as usize].parent)
    }

    /// The host that a place is in, as index in [`places`](Self::places).
    pub fn host_of(&self, place: u32) -> u32 {
        self.upwards(place).last().unwrap_or(place)
    }
}

impl NcclGpu {
    /// Rate of all links to NVSwitches together, in each direction: their number times the rate that NCCL assumes for one link of this
    /// generation. `None` without such links, or for an unknown generation.
    pub fn switch_rate(&self) -> Option<Rate> {
        let to_switch = |link: &&NcclGpuLink| link.target == NcclLinkTarget::Switch;
        let links = self.links.iter().filter(to_switch);
        let count: u64 = links.map(|link| u64::from(link.count)).sum();
        let rate = self.link_rate()?.as_bps();
        (count > 0).then(|| Rate::from_bps(rate.saturating_mul(count)))
    }

    /// Rate that NCCL, or RCCL for xGMI, assumes for one link of this generation in each direction; `None` for an unknown generation.
    pub fn link_rate(&self) -> Option<Rate> {
        match &self.gcn {
            Some(gcn) => Some(xgmi_rate(gcn)),
            None => nvlink_rate(self.sm?),
        }
    }
}

/// Rate of one xGMI link in each direction: the `..._XGMI_WIDTH` of RCCL's `topo.h`. Old files have numbers in the place of names.
fn xgmi_rate(gcn: &str) -> Rate {
    let gigabytes = match gcn {
        "940" | "941" | "942" => 48,
        "910" => 36,
        _ if gcn.starts_with("gfx90a") => 36,
        _ if gcn.starts_with("gfx94") || gcn.starts_with("gfx95") => 48,
        _ => 24,
    };
    Rate::from_bps(gigabytes * 8_000_000_000)
}

/// Rate of one NVLink in each direction; `None` for generations without NVLink.
const fn nvlink_rate(sm: u32) -> Option<Rate> {
    // In 0.1 GB/s: the `SM..._NVLINK_BW` of NCCL's `topo.h`.
    let tenths = match sm {
        0..60 => return None,
        60..70 => 180,
        86 => 120,
        70..90 => 200,
        90..100 => 206,
        _ => 401,
    };
    Some(Rate::from_bps(tenths * 800_000_000))
}
