//! Choice of the links that have curves.

use super::plan::Links;
use clearway_fabric::topology::LinkId;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

/// The links with curves.
#[derive(Debug)]
pub(super) enum LinkChoice {
    /// Named links, sorted.
    Named(Vec<LinkId>),
    /// Links with the longest queues.
    Top(Top),
}

/// The links with the longest queues. Twice the requested number of links is followed, each from the first interval in which its queue is
/// among the longest. A link that is overtaken for a while therefore keeps its curve.
#[derive(Debug)]
pub(super) struct Top {
    count: usize,
    /// Followed links, each with its longest queue so far.
    followed: BTreeMap<LinkId, u64>,
    /// A bit for each link, because every sample looks up every link.
    marks: Vec<u64>,
}

impl Top {
    fn insert(&mut self, link: LinkId, peak: u64) {
        self.followed.insert(link, peak);
        self.marks[link.0 as usize / 64] |= 1 << (link.0 % 64);
    }

    fn remove(&mut self, link: LinkId) {
        self.followed.remove(&link);
        self.marks[link.0 as usize / 64] &= !(1 << (link.0 % 64));
    }
}

impl LinkChoice {
    /// Choice of `count` links.
    pub(super) fn new(links: &Links, count: usize) -> Self {
        match links {
            Links::Named(links) => Self::Named(links.clone()),
            Links::Top(wanted) => Self::Top(Top {
                count: *wanted,
                followed: BTreeMap::new(),
                marks: vec![0; count.div_ceil(64)],
            }),
        }
    }

    #[inline]
    pub(super) fn follows(&self, link: LinkId) -> bool {
        match self {
            Self::Named(links) => links.binary_search(&link).is_ok(),
            Self::Top(top) => top.marks[link.0 as usize / 64] >> (link.0 % 64) & 1 != 0,
        }
    }

    /// Largest number of links that may be added at a time.
    pub(super) fn newcomers(&self) -> usize {
        match self {
            Self::Named(_) => 0,
            Self::Top(top) => top.count,
        }
    }

    /// Begins to follow the links whose queues were longest, stops following other links for them, and returns the links that it dropped.
    /// `peaks` are the longest queues of the interval, of links that are followed or among the longest.
    pub(super) fn follow(&mut self, peaks: &[(LinkId, u64)], longest: Longest) -> Vec<LinkId> {
        let mut left = Vec::new();
        let Self::Top(top) = self else {
            return left;
        };
        for &(link, longest) in peaks {
            if let Some(peak) = top.followed.get_mut(&link) {
                *peak = longest.max(*peak);
            }
        }
        for (peak, link) in longest.into_sorted() {
            if top.followed.len() >= 2 * top.count {
                let shortest = top
                    .followed
                    .iter()
                    .map(|(link, peak)| (*peak, Reverse(*link)));
                let Some((least, Reverse(other))) = shortest.min() else {
                    return left;
                };
                if least >= peak {
                    return left;
                }
                top.remove(other);
                left.push(other);
            }
            top.insert(link, peak);
        }
        left
    }

    /// The followed links beyond the requested number.
    pub(super) fn surplus(&self) -> Vec<LinkId> {
        let Self::Top(top) = self else {
            return Vec::new();
        };
        let mut ranked: Vec<(Reverse<u64>, LinkId)> = top
            .followed
            .iter()
            .map(|(link, peak)| (Reverse(*peak), *link))
            .collect();
        ranked.sort_unstable();
        let surplus = ranked.into_iter().skip(top.count);
        surplus.map(|(_, link)| link).collect()
    }
}

/// The longest of many queues; ties go to the lowest link numbers.
#[derive(Debug)]
pub(super) struct Longest {
    count: usize,
    /// Heap with the shortest queue on top.
    heap: BinaryHeap<(Reverse<u64>, LinkId)>,
}

impl Longest {
    pub(super) fn new(count: usize) -> Self {
        Self {
            count,
            heap: BinaryHeap::with_capacity(count + 1),
        }
    }

    /// Offers a queue; true if it is among the longest so far.
    #[inline]
    pub(super) fn offer(&mut self, peak: u64, link: LinkId) -> bool {
        if peak == 0 || self.count == 0 {
            return false;
        }
        if self.heap.len() < self.count {
            self.heap.push((Reverse(peak), link));
            return true;
        }
        let Some(mut last) = self.heap.peek_mut() else {
            return false;
        };
        let is_longer = (Reverse(peak), link) < *last;
        if is_longer {
            *last = (Reverse(peak), link);
        }
        is_longer
    }

    /// Queues and links, longest queue first.
    pub(super) fn into_sorted(self) -> impl Iterator<Item = (u64, LinkId)> {
        let sorted = self.heap.into_sorted_vec().into_iter();
        sorted.map(|(Reverse(peak), link)| (peak, link))
    }
}
