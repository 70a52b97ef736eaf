//! Order of jobs for priorities that keep them apart (HotNets'22 §4, "Using priority queues"). Any order works for compatible jobs, if jobs
//! on a link have different priorities.

use super::Resource;
use clearway_units::Span;
use std::collections::{BTreeMap, BTreeSet};

/// A level for each job, with 0 the most urgent, different for all jobs that meet on a link. Jobs are assigned in order of their periods,
/// shortest first, each to the first level that no job on its links has taken.
///
/// Shortest first is rate-monotonic scheduling (Liu and Layland 1973), the best fixed order for work whose deadline is its next arrival.
pub(super) fn priorities(periods: &[Span], users: &BTreeMap<Resource, Vec<u32>>) -> Vec<u32> {
    let mut meets: Vec<BTreeSet<u32>> = vec![BTreeSet::new(); periods.len()];
    for (resource, jobs) in users {
        if matches!(resource, Resource::Link(_)) {
            for &job in jobs {
                meets[job as usize].extend(jobs.iter().copied().filter(|&other| other != job));
            }
        }
    }
    let mut order: Vec<usize> = (0..periods.len()).collect();
    order.sort_by_key(|&job| (periods[job], job));
    let mut levels: Vec<Option<u32>> = vec![None; periods.len()];
    for job in order {
        let taken: BTreeSet<u32> = meets[job]
            .iter()
            .filter_map(|&other| levels[other as usize])
            .collect();
        levels[job] = (0..).find(|level| !taken.contains(level));
    }
    levels.into_iter().map(|level| level.unwrap_or(0)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jobs_that_meet_differ_and_others_share_levels() {
        let ms = Span::from_ms;
        // A chain: 0 meets 1, 1 meets 2; 3 is alone; 0 and 2 share a GPU, which has no queues.
        let users = BTreeMap::from([
            (Resource::Link(0), vec![0, 1]),
            (Resource::Link(1), vec![1, 2]),
            (Resource::Link(2), vec![3]),
            (Resource::Gpu(0), vec![0, 2]),
        ]);
        let levels = priorities(&[ms(300), ms(200), ms(100), ms(400)], &users);
        assert_eq!(levels, [0, 1, 0, 0]);
        let levels = priorities(&[ms(300), ms(100), ms(200), ms(400)], &users);
        assert_eq!(levels, [1, 0, 1, 0]);
    }
}
