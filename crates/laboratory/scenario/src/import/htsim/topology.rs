//! The fabric: a file, or the fat tree that `htsim_uec` builds.

use super::translation::{DEFAULT, Import, fault};
use crate::error::ScenarioError;
use crate::import::draft::Effect;
use crate::import::paths::from_folder;
use clearway_formats::HtsimOption;
use clearway_units::{Rate, Span};
use std::path::Path;

/// Largest number of links that `-failed` names one by one.
const MOST_FAILED: u64 = 4096;

/// A rate as `-linkspeed` takes it.
fn decimal_megabits(rate: Rate) -> String {
    let (whole, rest) = (rate.as_bps() / 1_000_000, rate.as_bps() % 1_000_000);
    match rest {
        0 => whole.to_string(),
        _ => format!("{whole}.{rest:06}"),
    }
}

impl Import<'_> {
    pub(super) fn topology(&mut self, folder: Option<&Path>) -> Result<(), ScenarioError> {
        self.check_nodes()?;
        match self.last("-topo") {
            Some(option) => {
                let path = from_folder(option.text(), folder);
                self.draft
                    .text("topology", "file", &path, option.to_string());
                let source = format!("{DEFAULT}: it replaces Queue_Up and Queue_Down");
                self.draft.text("topology", "port-queues", "switch", source);
                self.compare_speeds(option);
            }
            None => self.fat_tree()?,
        }
        self.failed_links();
        Ok(())
    }

    /// Compares the numbers of hosts, of which `htsim_uec` needs one.
    fn check_nodes(&self) -> Result<(), ScenarioError> {
        let given = self.last("-nodes");
        let nodes = given.and_then(|option| option.whole(0));
        let matrix = self.inputs.matrix.as_ref().map(|m| u64::from(m.nodes));
        if let (Some(given), Some(nodes), Some(matrix)) = (given, nodes, matrix)
            && nodes != matrix
        {
            return Err(fault(
                format!(
                    "`{given}`, but the connection matrix has {matrix} hosts: `htsim_uec` stops"
                ),
                format!("write `-nodes {matrix}`, or leave it out"),
            ));
        }
        let topo = self.inputs.topo.as_ref().map(|t| u64::from(t.nodes));
        if let (Some(topo), Some(matrix)) = (topo, matrix)
            && topo != matrix
        {
            return Err(fault(
                format!(
                    "the topology has {topo} hosts, and the connection matrix {matrix}: `htsim_uec` stops"
                ),
                "name the matrix that belongs to the topology; `clearway run` takes a smaller one",
            ));
        }
        Ok(())
    }

    /// The fat tree that `htsim_uec` builds without a file.
    fn fat_tree(&mut self) -> Result<(), ScenarioError> {
        let nodes = self.last("-nodes");
        let matrix = self.inputs.matrix.as_ref();
        let (hosts, source) = match (nodes, matrix) {
            (Some(option), _) => (option.whole(0).unwrap_or(0), option.to_string()),
            (None, Some(matrix)) => (u64::from(matrix.nodes), "Nodes of the matrix".into()),
            (None, None) => {
                let fix = "write `-nodes N`, or run the command where the connection matrix is";
                return Err(fault("the number of hosts is not known", fix));
            }
        };
        let (tiers, tiers_source) = self.whole("-tiers", 3);
        let size = |radix: u64| match tiers {
            2 => radix * radix / 2,
            _ => radix * radix * radix / 4,
        };
        let radix = (1..)
            .map(|half: u64| 2 * half)
            .find(|radix| size(*radix) >= hosts);
        let radix = radix.unwrap_or(2);
        if size(radix) != hosts {
            let near = size(radix.saturating_sub(2).max(2));
            return Err(fault(
                format!("a fat tree of {tiers} tiers cannot have {hosts} hosts: `htsim_uec` stops"),
                format!(
                    "name a topology with `-topo`, or take {near} or {} hosts",
                    size(radix)
                ),
            ));
        }
        self.draft.text("topology", "kind", "fat-tree", DEFAULT);
        self.draft.set("topology", "hosts", hosts, source);
        self.draft.set("topology", "tiers", tiers, tiers_source);
        let (rate, source) = (self.network.line_rate, self.network.rate_source.clone());
        self.draft.set("topology", "link-rate", rate, source);
        let latency = self.last("-hop_latency");
        let delay = latency.and_then(HtsimOption::duration);
        let source = latency.map_or_else(|| DEFAULT.to_owned(), ToString::to_string);
        let delay = delay.unwrap_or(Span::from_us(1));
        self.draft.set("topology", "link-delay", delay, source);
        let latency = self.last("-switch_latency");
        if let Some(option) = latency.filter(|o| o.duration().is_some_and(|d| !d.is_zero())) {
            let meaning = "switches of a built-in topology add no delay; a `.topo` file has `Switch_Latency_ns`";
            self.draft
                .note(Effect::Results, format!("`{option}`"), meaning);
        }
        Ok(())
    }

    /// Compares the rate of htsim's NICs with the links of hosts, which send at the rate of the file here.
    fn compare_speeds(&mut self, option: &HtsimOption) {
        for ignored in ["-tiers", "-hop_latency", "-switch_latency"] {
            if let Some(ignored) = self.last(ignored) {
                let meaning = "`htsim_uec` ignores it with `-topo`, and so does the scenario";
                self.draft
                    .note(Effect::None, format!("`{ignored}`"), meaning);
            }
        }
        let Some(topo) = &self.inputs.topo else {
            let meaning = "there is no such file here, so that limits of queues and marks are shares of a bandwidth-delay product \
                           without the serialisation of packets, which htsim adds";
            self.draft
                .note(Effect::Results, format!("`{option}`"), meaning);
            return;
        };
        let (nic, link) = (self.network.line_rate, topo.tiers[0].downlink_speed);
        if nic != link {
            let what = match self.last("-linkspeed") {
                Some(option) => format!("`{option}`"),
                None => format!("`-linkspeed 100000` ({DEFAULT})"),
            };
            let meaning = format!(
                "NICs of htsim send at {nic} into links of {link}; here hosts send at the rate of the file. \
                 Windows of htsim, and the limits of queues and marks here, are those of {nic}. \
                 `-linkspeed {}` is the rate of the file",
                decimal_megabits(link)
            );
            self.draft.note(Effect::Results, what, meaning);
        }
    }

    /// Leaves, spines and rate of the links between them, of a fabric of two tiers.
    fn two_tiers(&self) -> Option<(u64, u64, Rate)> {
        match (&self.inputs.topo, self.last("-topo")) {
            (Some(topo), _) if topo.tiers.len() == 2 => Some((
                u64::from(topo.leaves()),
                u64::from(topo.aggregations()),
                topo.tiers[1].downlink_speed,
            )),
            (None, None) if self.whole("-tiers", 3).0 == 2 => {
                let hosts = self.last("-nodes").and_then(|option| option.whole(0));
                let matrix = self.inputs.matrix.as_ref().map(|m| u64::from(m.nodes));
                let radix = (hosts.or(matrix)?.saturating_mul(2)).isqrt();
                Some((radix, radix / 2, self.network.line_rate))
            }
            _ => None,
        }
    }

    /// Links at a quarter of their rate.
    fn failed_links(&mut self) {
        let Some(option) = self.last("-failed").filter(|o| o.whole(0) > Some(0)) else {
            return;
        };
        let count = option.whole(0).unwrap_or(0);
        let named = self
            .two_tiers()
            .filter(|(leaves, spines, _)| leaves.saturating_mul(count.min(*spines)) <= MOST_FAILED);
        let Some((leaves, spines, rate)) = named else {
            let meaning = "htsim slows so many links from core to aggregation switches to a quarter, in this direction alone; here a link has \
                           one rate for both: `topology.links = [\"agg0-core0 rate=25Gbps\"]`";
            self.draft
                .note(Effect::Results, format!("`{option}`"), meaning);
            return;
        };
        let rate = Rate::from_bps((rate.as_bps() / 4).max(1));
        let spines = 0..count.min(spines);
        let links = spines.flat_map(|spine| {
            (0..leaves).map(move |leaf| format!("leaf{leaf}-spine{spine} rate={rate}"))
        });
        let links: Vec<String> = links.collect();
        let source = format!("{option}: a quarter of the rate");
        self.draft.set("topology", "links", links, source);
        if self.slow_links_of().is_none() {
            let meaning = "in htsim the queues and marks of these links also shrink to a quarter";
            self.draft
                .note(Effect::Results, format!("`{option}`"), meaning);
        }
    }

    /// Rate of all links, if some have a quarter of it and the queues can follow.
    pub(super) fn slow_links_of(&self) -> Option<Rate> {
        self.last("-failed").filter(|o| o.whole(0) > Some(0))?;
        let (_, _, rate) = self.two_tiers()?;
        let hosts = self
            .inputs
            .topo
            .as_ref()
            .map(|topo| topo.tiers[0].downlink_speed);
        (hosts.unwrap_or(rate) == rate).then_some(rate)
    }
}
