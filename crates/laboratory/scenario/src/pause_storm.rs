//! Pause storms of attackers: intervals in which their NICs accept no data and send pause frames.

use crate::error::ScenarioError;
use crate::locations::SourceLocations;
use crate::switch::SwitchSettings;
use crate::workload::WorkloadSection;
use clearway_fabric::topology::Topology;
use clearway_fabric::{LinkChange, LinkEvent};
use clearway_units::{HostId, Time};
use clearway_workload::{AttackKind, FlowSpec};
use std::collections::{BTreeMap, BTreeSet};

/// Pause storms of a run: starts and ends for each host, disjoint and in order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PauseStorms(BTreeMap<HostId, Vec<(Time, Time)>>);

impl PauseStorms {
    /// The storms of sections with these flows: every host that sends a flow of a pause-storm attack has storms.
    ///
    /// # Errors
    /// If an attack has no end, or if switches do not support pause frames.
    pub(crate) fn build<'a>(
        (sections, switch): (&[WorkloadSection], &SwitchSettings),
        places: &SourceLocations,
        flows: impl IntoIterator<Item = &'a FlowSpec>,
    ) -> Result<Self, ScenarioError> {
        let mut storms: BTreeMap<HostId, Vec<(Time, Time)>> = BTreeMap::new();
        let sections = sections.iter().enumerate();
        let storming = sections.filter(|(_, own)| own.attack.kind == AttackKind::PauseStorm);
        let mut spans = BTreeMap::new();
        for (index, section) in storming {
            let span = section.attack.storm().and_then(|span| {
                check_pauses(switch, "attack.kind")?;
                Ok(span)
            });
            let span = span.map_err(|error| error.or_in(places, "workload", index))?;
            spans.insert(index as u32, span);
        }
        if spans.is_empty() {
            return Ok(Self::default());
        }
        let attacks = flows.into_iter().filter(|flow| flow.attack.is_some());
        let attackers: BTreeSet<(u32, HostId)> =
            attacks.map(|flow| (flow.section, flow.src)).collect();
        if !attackers
            .iter()
            .any(|(section, _)| spans.contains_key(section))
        {
            let error = ScenarioError::about(
                &["attack.hosts", "attack.kind"],
                "a pause storm of hosts that send nothing in this workload",
                "name hosts by `attack.hosts` that send, or use an `[[event]]` with `pause-storm = true` for the link of a host",
            );
            let section = spans.keys().next().copied().unwrap_or(0);
            return Err(error.or_in(places, "workload", section as usize));
        }
        for (section, host) in attackers {
            if let Some(span) = spans.get(&section) {
                storms.entry(host).or_default().push(*span);
            }
        }
        for spans in storms.values_mut() {
            join(spans);
        }
        Ok(Self(storms))
    }

    /// Starts and ends, as events of the links of all NICs of the hosts.
    pub(crate) fn events(&self, topology: &Topology) -> Vec<LinkEvent> {
        let mut events = Vec::new();
        for (cable, own) in topology.cables.iter().enumerate() {
            let nics = own.ends.iter().filter(|end| topology.is_host(**end));
            let spans = nics.filter_map(|nic| self.0.get(&topology.machine_of(HostId(nic.0))));
            if !own.up || topology.is_scale_up(own) {
                continue;
            }
            for &(begin, end) in spans.flatten() {
                let event = |at, storm| LinkEvent {
                    at,
                    cable,
                    change: LinkChange::PauseStorm(storm),
                };
                events.extend([event(begin, true), event(end, false)]);
            }
        }
        events
    }
}

/// Sorts intervals and merges touching intervals.
fn join(spans: &mut Vec<(Time, Time)>) {
    spans.sort_unstable();
    let mut joined: Vec<(Time, Time)> = Vec::with_capacity(spans.len());
    for &(begin, end) in spans.iter() {
        match joined.last_mut().filter(|last| begin <= last.1) {
            Some(last) => last.1 = last.1.max(end),
            None => joined.push((begin, end)),
        }
    }
    *spans = joined;
}

/// An error about `key` if switches do not support pause frames.
pub(crate) fn check_pauses(
    switch: &SwitchSettings,
    key: &'static str,
) -> Result<(), ScenarioError> {
    let buffer = switch.buffer.as_ref();
    match buffer.map(|buffer| buffer.lossless.classes().is_empty()) {
        None => Err(ScenarioError::about(
            &[key],
            "a pause storm, but switches have no shared buffer and ignore pause frames",
            "set `switch.kind = \"shared-buffer\"`",
        )),
        Some(true) => Err(ScenarioError::about(
            &[key],
            "a pause storm, although `switch.pfc.classes` has no class that could be paused",
            "name the lossless classes, such as `switch.pfc.classes = [1]`",
        )),
        Some(false) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_that_touch_are_one() {
        let us = |us: [u64; 2]| (Time::from_us(us[0]), Time::from_us(us[1]));
        let mut spans = [[7, 9], [1, 3], [3, 4], [2, 3], [8, 8]].map(us).to_vec();
        join(&mut spans);
        assert_eq!(spans, [[1, 4], [7, 9]].map(us));
    }
}
