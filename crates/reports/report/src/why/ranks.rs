//! What the hosts of a job did while an iteration ran, for reports.

use super::path_step::PathStepRow;
use std::collections::{BTreeMap, BTreeSet};

/// Maximum number of hosts of a timeline.
const MOST_HOSTS: usize = 32;
/// Maximum number of steps of a timeline.
const MOST_STEPS: usize = 40_000;

/// What one host of a job did.
#[derive(Debug, Clone, PartialEq)]
pub struct RankRow {
    /// The host.
    pub host: u32,
    /// Its computations and waits, and the messages that it sent, each until it arrived, by start. They overlap in time.
    pub steps: Vec<PathStepRow>,
}

/// What hosts of a job did while an iteration ran.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RankTimeline {
    /// The hosts by number.
    pub rows: Vec<RankRow>,
    /// Number of hosts of the job.
    pub hosts: usize,
    /// True if the only host has more steps than are kept.
    pub is_cut: bool,
}

impl RankTimeline {
    /// A timeline of at most 32 hosts that have 40 000 steps together. If there are more, those of `path` are kept first, in its order.
    pub fn new(
        path: impl Iterator<Item = u32>,
        hosts: impl Iterator<Item = u32>,
        steps: impl Iterator<Item = PathStepRow>,
    ) -> Self {
        let all: BTreeSet<u32> = hosts.collect();
        let mut timeline = Self {
            hosts: all.len(),
            ..Self::default()
        };
        let mut seen = BTreeSet::new();
        let order = path.chain(all);
        let order: Vec<u32> = order
            .filter(|host| seen.insert(*host))
            .take(MOST_HOSTS)
            .collect();
        let mut own: BTreeMap<u32, Vec<PathStepRow>> = BTreeMap::new();
        own.extend(order.iter().map(|host| (*host, Vec::new())));
        for step in steps {
            if let Some(own) = own.get_mut(&step.host) {
                own.push(step);
            }
        }
        let mut room = MOST_STEPS;
        for host in order {
            let mut steps = own.remove(&host).unwrap_or_default();
            if steps.len() > room {
                if !timeline.rows.is_empty() {
                    break;
                }
                steps.truncate(room);
                timeline.is_cut = true;
            }
            room -= steps.len();
            timeline.rows.push(RankRow { host, steps });
        }
        timeline.rows.sort_by_key(|row| row.host);
        timeline
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::why::path_step::StepName;

    fn step(host: u32) -> PathStepRow {
        PathStepRow::new(StepName::Computation, host, 0, 1000)
    }

    fn hosts(timeline: &RankTimeline) -> Vec<u32> {
        timeline.rows.iter().map(|row| row.host).collect()
    }

    #[test]
    fn hosts_of_the_path_come_first() {
        let timeline = RankTimeline::new([70, 40].into_iter(), 0..100, (0..100).map(step));
        let expected: Vec<u32> = (0..30).chain([40, 70]).collect();
        assert_eq!(hosts(&timeline), expected);
        assert_eq!((timeline.hosts, timeline.is_cut), (100, false));
        assert!(
            timeline
                .rows
                .iter()
                .all(|row| row.steps == [step(row.host)])
        );
    }

    #[test]
    fn steps_are_limited() {
        let many = |each: usize| (0..8).flat_map(move |host| vec![step(host); each]);
        let timeline = RankTimeline::new([5].into_iter(), 0..8, many(10_000));
        assert_eq!(hosts(&timeline), [0, 1, 2, 5]);
        assert!(!timeline.is_cut);
        let timeline = RankTimeline::new([5].into_iter(), 0..8, many(40_001));
        assert_eq!(hosts(&timeline), [5]);
        assert!(timeline.is_cut && timeline.rows[0].steps.len() == 40_000);
    }
}
