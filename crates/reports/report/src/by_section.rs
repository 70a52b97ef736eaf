//! Completion times by section of the workload, and by size class within each section: in a mix of traffic, percentiles over all flows
//! are dominated by the section with the most flows.
//!
//! Sections of the same name count as one. Size classes are defined in [`by_size`](crate::by_size). Flows that did not complete count
//! only in `flows`. Connections of jobs have no meaningful completion time, so they count only in `flows`, `completed` and the goodput.

use crate::by_size::{class_bounds, class_name, class_of};
use crate::record::FlowTimes;
use crate::statistics::Distribution;
use clearway_units::Time;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Figures of a set of flows.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct FlowFigures {
    /// Number of flows.
    pub flows: u64,
    /// Flows that completed.
    pub completed: u64,
    /// Completion times in microseconds; `None` if no flow completed.
    pub fct_us: Option<Distribution>,
    /// Completion times as multiples of the ideal ones; `None` if no flow completed.
    pub slowdown: Option<Distribution>,
    /// Payload of the completed flows over the time from the first start to the last finish among them, in bit/s; `None` if no flow
    /// completed.
    pub goodput_bps: Option<f64>,
}

/// Figures of one size class of the flows of a section.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct SectionClass {
    /// All flows have more bytes; 0 in the first class.
    pub above_bytes: u64,
    /// No flow has more bytes; `None` in the last class.
    pub up_to_bytes: Option<u64>,
    /// Figures of these flows.
    #[serde(flatten)]
    pub figures: FlowFigures,
}

impl SectionClass {
    /// Name of the class, such as `up to 10 KB`.
    pub fn name(&self) -> String {
        class_name(self.above_bytes, self.up_to_bytes)
    }
}

/// Figures of the flows of one section, or of all sections of one name.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SectionSummary {
    /// Name of the section.
    pub name: String,
    /// Figures of all flows of the section.
    #[serde(flatten)]
    pub figures: FlowFigures,
    /// Figures by size class, from the smallest flows on, without classes that have no flows.
    pub by_class: Vec<SectionClass>,
}

/// Payload of completed flows and the time that they took.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Goodput {
    bytes: u128,
    first: Time,
    last: Time,
}

impl Default for Goodput {
    fn default() -> Self {
        Self {
            bytes: 0,
            first: Time::NEVER,
            last: Time::ZERO,
        }
    }
}

impl Goodput {
    /// Adds a flow, if it completed.
    pub(crate) fn add(&mut self, flow: &FlowTimes) {
        if let (Some(start), Some(finish)) = (flow.start(), flow.finish()) {
            self.bytes += u128::from(flow.bytes);
            self.first = self.first.min(start);
            self.last = self.last.max(finish);
        }
    }

    fn merge(&mut self, other: &Self) {
        self.bytes += other.bytes;
        self.first = self.first.min(other.first);
        self.last = self.last.max(other.last);
    }

    /// Goodput in bit/s, from the first start to the last finish; `None` if no time passed between them.
    pub(crate) fn bits_per_second(&self) -> Option<f64> {
        (self.last > self.first).then(|| {
            let seconds = self.last.since(self.first).as_ps() as f64 * 1e-12;
            self.bytes as f64 * 8.0 / seconds
        })
    }
}

/// Flows of which figures are computed later.
#[derive(Debug, Clone, Default)]
pub(crate) struct Collected {
    flows: u64,
    completed: u64,
    fcts: Vec<u64>,
    slowdowns: Vec<f64>,
    goodput: Goodput,
}

impl Collected {
    pub(crate) fn add(&mut self, flow: &FlowTimes) {
        self.flows += 1;
        self.completed += u64::from(flow.fct().is_some());
        self.fcts
            .extend(flow.fct_and_ideal().map(|(fct, _)| fct.as_ps()));
        self.slowdowns.extend(flow.slowdown());
        self.goodput.add(flow);
    }

    fn merge(&mut self, other: &Self) {
        self.flows += other.flows;
        self.completed += other.completed;
        self.fcts.extend(&other.fcts);
        self.slowdowns.extend(&other.slowdowns);
        self.goodput.merge(&other.goodput);
    }

    pub(crate) fn figures(self) -> FlowFigures {
        FlowFigures {
            flows: self.flows,
            completed: self.completed,
            fct_us: Distribution::of_picoseconds(self.fcts),
            slowdown: Distribution::of_ratios(self.slowdowns),
            goodput_bps: self.goodput.bits_per_second(),
        }
    }
}

/// For each section, the number of the first section with the same name: results merge sections of one name.
pub(crate) fn firsts_of_names(names: &[String]) -> Vec<u32> {
    let mut firsts = BTreeMap::new();
    let numbered = names.iter().zip(0..);
    numbered
        .map(|(name, number)| *firsts.entry(name).or_insert(number))
        .collect()
}

/// Flows by section, in the order of the sections; `names` holds the name of each section by number. Empty if all flows are in one section.
pub(crate) fn by_section(flows: &[FlowTimes], names: &[String]) -> Vec<SectionSummary> {
    let name = |section: u32| names.get(section as usize).map_or("", String::as_str);
    let firsts = firsts_of_names(names);
    let mut sections: BTreeMap<u32, BTreeMap<usize, Collected>> = BTreeMap::new();
    for flow in flows {
        let section = firsts.get(flow.section as usize).copied();
        let classes = sections.entry(section.unwrap_or(u32::MAX)).or_default();
        classes.entry(class_of(flow.bytes)).or_default().add(flow);
    }
    if sections.len() < 2 {
        return Vec::new();
    }
    sections
        .into_iter()
        .map(|(section, classes)| summary(name(section), classes))
        .collect()
}

fn summary(name: &str, classes: BTreeMap<usize, Collected>) -> SectionSummary {
    let mut all = Collected::default();
    classes.values().for_each(|class| all.merge(class));
    let class = |(place, collected): (usize, Collected)| {
        let (above_bytes, up_to_bytes) = class_bounds(place);
        SectionClass {
            above_bytes,
            up_to_bytes,
            figures: collected.figures(),
        }
    };
    SectionSummary {
        name: name.to_owned(),
        figures: all.figures(),
        by_class: classes.into_iter().map(class).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;
    use clearway_units::Span;

    /// A flow that takes 10 us alone and takes `us` microseconds here.
    fn flow(number: u32, section: u32, bytes: u64, us: Option<u64>) -> FlowTimes {
        FlowTimes {
            section,
            bytes,
            ideal_fct: Span::from_us(10),
            ..FlowTimes::from(&sample::flow(number, us.map(Span::from_us)))
        }
    }

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).into()).collect()
    }

    #[test]
    fn flows_of_one_section_are_not_broken_down() {
        let flows = [flow(0, 0, 1, Some(20)), flow(1, 0, 1, None)];
        assert_eq!(by_section(&flows, &names(&["a"])), []);
        assert_eq!(by_section(&flows, &names(&["a", "b"])), []);
        let same = [flow(0, 0, 1, Some(20)), flow(1, 1, 1, None)];
        assert_eq!(by_section(&same, &names(&["a", "a"])), []);
        assert_eq!(by_section(&[], &names(&["a", "b"])), []);
    }

    #[test]
    fn percentiles_over_all_say_the_opposite_of_each_section() {
        // 99 small flows at twice their ideal, one burst flow at 50 times.
        let mut flows: Vec<FlowTimes> = (0..990).map(|n| flow(n, 0, 900, Some(20))).collect();
        flows.extend((990..999).map(|n| flow(n, 1, 1_000_000, Some(500))));
        flows.push(flow(999, 1, 1_000_001, None));
        let sections = by_section(&flows, &names(&["background", "burst"]));
        let [background, burst] = sections.as_slice() else {
            panic!("two sections");
        };
        assert_eq!(
            (background.name.as_str(), burst.name.as_str()),
            ("background", "burst")
        );
        assert_eq!((burst.figures.flows, burst.figures.completed), (10, 9));
        let p99 =
            |figures: FlowFigures| (figures.slowdown.unwrap().p99, figures.fct_us.unwrap().p99);
        assert_eq!(p99(background.figures), (2.0, 20.0));
        assert_eq!(p99(burst.figures), (50.0, 500.0));
        let overall = flows.iter().filter_map(FlowTimes::slowdown).collect();
        assert_eq!(Distribution::of_ratios(overall).unwrap().p99, 2.0);
        let classes: Vec<_> = burst
            .by_class
            .iter()
            .map(|class| (class.name(), class.figures.flows, class.figures.completed))
            .collect();
        assert_eq!(
            classes,
            [("up to 1 MB".into(), 9, 9), ("up to 10 MB".into(), 1, 0)]
        );
        // Nine messages of 1 MB; flow n starts at n us.
        let expected = 9e6 * 8.0 / (508e-6);
        let goodput = burst.figures.goodput_bps.unwrap();
        assert!((goodput / expected - 1.0).abs() < 1e-12, "{goodput}");
        assert_eq!(burst.by_class[1].figures.goodput_bps, None);
    }

    #[test]
    fn sections_of_one_name_count_as_one() {
        let flows: Vec<_> = (0..6).map(|n| flow(n, n % 3, 1, Some(20))).collect();
        let sections = by_section(&flows, &names(&["burst", "rest", "burst"]));
        let counts: Vec<_> = sections
            .iter()
            .map(|section| (section.name.as_str(), section.figures.flows))
            .collect();
        assert_eq!(counts, [("burst", 4), ("rest", 2)]);
    }
}
