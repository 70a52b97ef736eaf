//! NICs that the GPUs of a node use: those nearest to them, as in NCCL.
//!
//! The NICs nearest to a GPU are those below the lowest PCI switch that has the GPU and any NIC below it; without one, those of its CPU,
//! else those of its host. Of several, the fastest count, and of these the ones that no nearer GPU uses, if there are any. GPUs with the
//! same nearest NICs share them out in the order of their `dev`: with at least as many NICs as GPUs, each GPU takes NICs in turn until none
//! is left; with fewer, each NIC takes GPUs in turn.
//!
//! NCCL compares the bandwidths of whole paths first, and then kinds of paths. PCI links have no rates here, so the kind comes first. NCCL
//! also lets each further channel of a GPU start from the next of its NICs, which a GPU here does only with NICs that are its own.

use clearway_formats::{NcclPlaceKind, NcclTopology};
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// Lowest place that a GPU and its NICs have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NicNearness {
    /// A PCI switch.
    PciSwitch,
    /// A CPU.
    Cpu,
    /// The host alone.
    Host,
}

/// NICs of a GPU.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NearestNics {
    /// Indices of the NICs in the file, in ascending order.
    pub(crate) nics: Vec<usize>,
    /// Place that they have in common with the GPU.
    pub(crate) nearness: NicNearness,
}

/// The NICs of each GPU; `None` for a GPU whose host has none.
pub(crate) fn nearest_nics(node: &NcclTopology) -> Vec<Option<NearestNics>> {
    let mut below: Vec<Vec<usize>> = vec![Vec::new(); node.places.len()];
    for (index, nic) in node.nics.iter().enumerate() {
        for place in node.upwards(nic.place) {
            below[place as usize].push(index);
        }
    }
    // The nearest GPUs first.
    let mut groups: BTreeMap<(Reverse<usize>, u32), Vec<usize>> = BTreeMap::new();
    for (index, gpu) in node.gpus.iter().enumerate() {
        let mut places = node.upwards(gpu.place);
        if let Some(common) = places.find(|place| !below[*place as usize].is_empty()) {
            let depth = node.upwards(common).count();
            groups
                .entry((Reverse(depth), common))
                .or_default()
                .push(index);
        }
    }
    let mut is_used = vec![false; node.nics.len()];
    let mut found = vec![None; node.gpus.len()];
    for ((_, common), gpus) in groups {
        let mut nics = below[common as usize].clone();
        let fastest = nics.iter().map(|nic| node.nics[*nic].speed).max();
        nics.retain(|nic| Some(node.nics[*nic].speed) == fastest);
        if nics.iter().any(|nic| !is_used[*nic]) {
            nics.retain(|nic| !is_used[*nic]);
        }
        let nearness = match node.places[common as usize].kind {
            NcclPlaceKind::PciSwitch => NicNearness::PciSwitch,
            NcclPlaceKind::Cpu => NicNearness::Cpu,
            NcclPlaceKind::Host => NicNearness::Host,
        };
        for (place, gpu) in gpus.iter().enumerate() {
            let own: Vec<usize> = match nics.len() >= gpus.len() {
                true => nics
                    .iter()
                    .skip(place)
                    .step_by(gpus.len())
                    .copied()
                    .collect(),
                false => vec![nics[place % nics.len()]],
            };
            found[*gpu] = Some(NearestNics {
                nics: own,
                nearness,
            });
        }
        for nic in found
            .iter()
            .flatten()
            .flat_map(|own: &NearestNics| &own.nics)
        {
            is_used[*nic] = true;
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use clearway_formats::parse_nccl_topology;

    /// The NICs of each GPU, by name, with the place that they have in common. Devices of a node: `g` is a GPU, `a` to `e` are NICs of 100
    /// Gb/s,
    /// `F` is a NIC of 400 Gb/s; `[]` is a PCI switch, and `|` begins the next CPU.
    fn nics(devices: &str) -> Vec<String> {
        let (mut text, mut gpus, mut nets) = (String::from("<cpu>"), 0, 0);
        for device in devices.chars() {
            text += &match device {
                '[' => "<pci>".to_owned(),
                ']' => "</pci>".to_owned(),
                '|' => "</cpu><cpu>".to_owned(),
                'g' => {
                    gpus += 1;
                    format!("<pci><gpu dev='{}'/></pci>", gpus - 1)
                }
                name => {
                    nets += 1;
                    let speed = if name.is_uppercase() {
                        400_000
                    } else {
                        100_000
                    };
                    format!(
                        "<pci><nic><net name='{name}' dev='{}' speed='{speed}'/></nic></pci>",
                        nets - 1
                    )
                }
            };
        }
        let text = format!("<system version='1'>{text}</cpu></system>");
        let node = parse_nccl_topology("node.xml", &text).unwrap();
        let all = nearest_nics(&node).into_iter();
        let shown = all.map(|own| {
            own.map_or("none".into(), |own| {
                let names = own.nics.iter().map(|nic| node.nics[*nic].name.as_str());
                let place = match own.nearness {
                    NicNearness::PciSwitch => "switch",
                    NicNearness::Cpu => "cpu",
                    NicNearness::Host => "host",
                };
                format!("{} {place}", names.collect::<String>())
            })
        });
        shown.collect()
    }

    #[test]
    fn a_gpu_takes_the_nics_of_its_switch() {
        assert_eq!(nics("[ga][bg]|[gc]"), ["a switch", "b switch", "c switch"]);
        assert_eq!(nics("[gabcd][g]"), ["abcd switch", "abcd cpu"], "all used");
        assert_eq!(
            nics("[[g][a]][[g][b]]"),
            ["a switch", "b switch"],
            "bridges"
        );
        assert_eq!(nics("[[ga][gb]]"), ["a switch", "b switch"], "nested");
    }

    #[test]
    fn without_a_switch_its_cpu_or_its_host_counts() {
        assert_eq!(nics("ga|gb"), ["a cpu", "b cpu"]);
        assert_eq!(nics("[g][a]|[g]"), ["a cpu", "a host"]);
        assert_eq!(nics("[g]|ab"), ["ab host"]);
        assert_eq!(nics("gg"), ["none", "none"]);
    }

    #[test]
    fn nics_and_gpus_are_shared_out_in_order() {
        assert_eq!(nics("ggabcd"), ["ac cpu", "bd cpu"]);
        assert_eq!(nics("ggabc"), ["ac cpu", "b cpu"]);
        assert_eq!(nics("[gga]"), ["a switch", "a switch"]);
        assert_eq!(nics("ggggab"), ["a cpu", "b cpu", "a cpu", "b cpu"]);
    }

    #[test]
    fn nics_of_nearer_gpus_and_slow_ones_come_last() {
        assert_eq!(nics("g[ga]b"), ["b cpu", "a switch"]);
        assert_eq!(nics("[gaF]"), ["F switch"]);
        assert_eq!(nics("g[gF]a"), ["F cpu", "F switch"], "shared, but faster");
        assert_eq!(nics("[ga]F"), ["a switch"], "near, but slower");
    }

    #[test]
    fn each_host_has_its_own_nics() {
        let text = "<system version='1'><cpu host_hash='1'><pci><gpu dev='0'/></pci><nic><net dev='0'/></nic></cpu>\
                    <cpu host_hash='2'><pci><gpu dev='0'/></pci></cpu></system>";
        let node = parse_nccl_topology("node.xml", text).unwrap();
        let found = nearest_nics(&node);
        assert!(found[0].is_some() && found[1].is_none());
    }
}
