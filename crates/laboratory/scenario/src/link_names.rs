//! Links by name.

use clearway_fabric::topology::{LinkId, Topology};
use std::collections::BTreeMap;

/// Links for a set of names, found in one pass over the fabric.
pub struct LinkNames<'a>(BTreeMap<&'a str, Vec<LinkId>>);

impl<'a> LinkNames<'a> {
    /// Links of the fabric with one of the `wanted` names, including links that are down.
    pub fn from_topology(topology: &Topology, wanted: impl IntoIterator<Item = &'a str>) -> Self {
        let wanted = wanted.into_iter().map(|name| (name, Vec::new()));
        let mut links: BTreeMap<&str, Vec<LinkId>> = wanted.collect();
        if !links.is_empty() {
            for link in (0..topology.cables.len() as u32 * 2).map(LinkId) {
                if let Some(found) = links.get_mut(topology.link_name(link).as_str()) {
                    found.push(link);
                }
            }
        }
        Self(links)
    }

    /// The cables of a wanted name, in order.
    pub(crate) fn cables(&self, name: &str) -> Vec<usize> {
        let mut cables: Vec<usize> = self.named(name).iter().map(|link| link.cable()).collect();
        // A cable between two switches with the same name has the same name in both directions.
        cables.dedup();
        cables
    }

    /// The links of a wanted name, in order.
    pub fn named(&self, name: &str) -> &[LinkId] {
        self.0.get(name).map_or(&[], Vec::as_slice)
    }
}

/// Advice about a name without links.
pub(crate) fn link_advice(topology: &Topology, name: &str) -> String {
    let cables = 0..topology.cables.len();
    let all: Vec<String> = cables
        .map(|cable| topology.link_name(LinkId::from_end(cable, 0)))
        .collect();
    let near = clearway_units::nearest(name, all.iter().map(String::as_str));
    let near = near.or(all.last().map(String::as_str));
    format!(
        "links are named after their ends, for instance `{}`",
        near.unwrap_or("host0-leaf0")
    )
}
