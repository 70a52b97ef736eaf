//! Plan of the observations in `[observe]`, with names resolved.

use crate::scenario::LinkNames;
use crate::scenario::ScenarioError;
use crate::scenario::{ObserveSettings, SampledSubjects, Sampling};
use clearway_fabric::topology::{LinkId, Topology};
use clearway_units::{FlowId, Span, nearest, suggestion};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Links with curves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Links {
    /// Named links, sorted.
    Named(Vec<LinkId>),
    /// Number of links with the longest queues.
    Top(usize),
}

/// Default number of samples in a base round trip. With more samples, a short run spends more than a twentieth of its time on sampling.
const AUTO_PER_RTT: u64 = 4;

/// Number of base round trips over which fairness is judged, because windows change once in a round trip.
const FAIRNESS_RTTS: u64 = 8;

/// Plan of the samples.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WatchPlan {
    pub(super) every: Span,
    /// Shortest time over which fairness is judged.
    pub(super) fairness_window: Span,
    pub(super) points: usize,
    pub(super) links: Links,
    /// Sorted flows with curves.
    pub(super) flows: Vec<FlowId>,
}

impl WatchPlan {
    /// Creates the plan of `settings`; `None` if nothing is to be observed.
    ///
    /// # Errors
    /// If the settings name a link or flow that does not exist.
    pub(crate) fn new(
        topology: &Topology,
        flow_bytes: impl IntoIterator<Item = u64>,
        base_rtt: Span,
        settings: &ObserveSettings,
    ) -> Result<Option<Self>, ScenarioError> {
        let every = match settings.every {
            Sampling::Off => return Ok(None),
            Sampling::Auto => topology.shortest_delay().max(base_rtt / AUTO_PER_RTT),
            Sampling::Every(span) => span,
        };
        Ok(Some(Self {
            every,
            fairness_window: base_rtt * FAIRNESS_RTTS,
            points: settings.points as usize,
            links: chosen_links(topology, &settings.links)?,
            flows: chosen_flows(flow_bytes, &settings.flows)?,
        }))
    }
}

fn chosen_links(topology: &Topology, chosen: &SampledSubjects) -> Result<Links, ScenarioError> {
    let names = match chosen {
        SampledSubjects::Top(count) => return Ok(Links::Top(*count as usize)),
        SampledSubjects::Named(names) => names,
    };
    let named = LinkNames::from_topology(topology, names.iter().map(String::as_str));
    let is_up = |link: &LinkId| topology.cables[link.cable()].up;
    let mut links = Vec::new();
    for name in names {
        let before = links.len();
        links.extend(named.named(name).iter().copied().filter(is_up));
        if links.len() == before {
            let known: Vec<String> = topology
                .links_up()
                .map(|link| topology.link_name(link))
                .collect();
            let near = nearest(name, known.iter().map(String::as_str));
            return Err(ScenarioError::about(
                &["series.links"],
                format!("`observe.series.links`: there is no link `{name}` that is up"),
                suggestion(
                    near,
                    "name links by their ends, such as \"leaf0-spine2\" or \"host3-leaf0\"",
                ),
            ));
        }
    }
    links.sort_unstable();
    links.dedup();
    Ok(Links::Named(links))
}

/// The flows with curves. `bytes` are the sizes of all flows.
fn chosen_flows(
    bytes: impl IntoIterator<Item = u64>,
    chosen: &SampledSubjects,
) -> Result<Vec<FlowId>, ScenarioError> {
    let mut flows: Vec<FlowId> = match chosen {
        SampledSubjects::Top(count) => {
            // The smallest of the largest flows so far is on top; of equal flows, the last.
            let mut largest = BinaryHeap::new();
            for (bytes, flow) in bytes.into_iter().zip(0..) {
                largest.push((Reverse(bytes), FlowId(flow)));
                if largest.len() > *count as usize {
                    largest.pop();
                }
            }
            largest.into_iter().map(|(_, flow)| flow).collect()
        }
        SampledSubjects::Named(names) => {
            let count = bytes.into_iter().count();
            let number = |name: &String| {
                let number: Option<u32> = name.parse().ok();
                let known = number.filter(|&number| (number as usize) < count);
                known.map(FlowId).ok_or_else(|| {
                    let last = count.saturating_sub(1);
                    ScenarioError::about(
                        &["series.flows"],
                        format!("`observe.series.flows`: there is no flow `{name}`"),
                        format!(
                            "flows are numbered in the order of the workload, from 0 to {last}"
                        ),
                    )
                })
            };
            names.iter().map(number).collect::<Result<_, _>>()?
        }
    };
    flows.sort_unstable();
    flows.dedup();
    Ok(flows)
}
