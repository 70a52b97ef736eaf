//! Entries of a file that nothing uses: one warning for each kind.

use crate::text::shown;
use clearway_workload::FileWarning;
use std::collections::BTreeMap;

/// Kind of an entry that nothing uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Unused {
    Cpus,
    PciRates,
    PciLinks,
    C2c,
    NvlinksToCpu,
    NvlinksToOthers,
    Partitions,
    NoGpuDirect,
    Latency,
    InNetworkReduction,
    NoNetwork,
    NoDevice,
    PlainGpus,
    PlainNics,
    Element,
    Attribute,
}

impl Unused {
    /// The warning.
    const fn message(self) -> &'static str {
        match self {
            Self::Cpus => {
                "CPUs and the links between them are not simulated: each GPU reaches its NICs at their rate"
            }
            Self::PciRates => {
                "PCI links are not simulated, so `link_speed` and `link_width` are not used: each GPU reaches its NICs at their rate"
            }
            Self::PciLinks => "`pcilink` is not used: links between PCI switches are not simulated",
            Self::C2c => "`c2c` is not used: links between a GPU and its CPU are not simulated",
            Self::NvlinksToCpu => {
                "`nvlink` to a CPU is not used: links between a GPU and its CPU are not simulated"
            }
            Self::NvlinksToOthers => {
                "a link to a GPU that the file does not have, or from a GPU to itself, is not used"
            }
            Self::Partitions => {
                "a further `gpu` of a PCI device is not used: each device counts as one GPU"
            }
            Self::NoGpuDirect => {
                "`gdr=\"0\"` is not used: data does not pass through the memory of the host"
            }
            Self::Latency => "`latency` is not used: NICs have the delay of their links alone",
            Self::InNetworkReduction => {
                "`coll=\"1\"` is not used: switches of the network do not reduce"
            }
            Self::NoNetwork => {
                "an entry that is not for network traffic (`gin`, or `net=\"0\"`) is not used"
            }
            Self::NoDevice => "a `net` without `dev` is not used, as in NCCL",
            Self::PlainGpus => {
                "a PCI device of the class of GPUs is not used, because it has no `gpu`, which others have"
            }
            Self::PlainNics => {
                "a PCI device of the class of NICs is not used, because it has no `net`, which others have"
            }
            Self::Element => "an unknown element is not used",
            Self::Attribute => "an unknown attribute is not used",
        }
    }
}

/// All entries that nothing uses, by kind.
#[derive(Default)]
pub(super) struct UnusedEntries {
    /// Line of the first entry, its name if the kind has many, and the number of further entries.
    kinds: BTreeMap<Unused, (usize, String, usize)>,
}

impl UnusedEntries {
    pub(super) fn add(&mut self, kind: Unused, line: usize) {
        self.named(kind, line, "");
    }

    /// Adds an entry of a kind with many names.
    pub(super) fn named(&mut self, kind: Unused, line: usize, name: &str) {
        let known = self.kinds.entry(kind);
        known
            .and_modify(|(_, _, further)| *further += 1)
            .or_insert_with(|| (line, shown(name), 0));
    }

    /// The warnings, in the order of their lines.
    pub(super) fn into_warnings(self, file: &str) -> Vec<FileWarning> {
        let warning = |(kind, (line, name, further)): (Unused, (usize, String, usize))| {
            let name = match name.is_empty() {
                true => String::new(),
                false => format!(": `{name}`"),
            };
            let more = match further {
                0 => String::new(),
                _ => format!(" (and {further} more)"),
            };
            FileWarning {
                file: file.into(),
                line,
                message: format!("{}{name}{more}", kind.message()),
            }
        };
        let mut warnings: Vec<FileWarning> = self.kinds.into_iter().map(warning).collect();
        warnings.sort_by_key(|warning| warning.line);
        warnings
    }
}
