//! All equal-cost paths from one switch to another, in a few numbers: the longest, the fastest ones, and what they carry together.
//!
//! They are gathered while breadth-first searches compute the routes, link by link, beginning at the destination.

use super::paths::{PathClass, fs_per_byte};
use clearway_units::Rate;

/// So many fastest paths are told apart. Where there are more, the last ones become one that is at least as fast as each of them.
const MOST_FASTEST: usize = 8;

/// The equal-cost paths between two switches with hosts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Way {
    /// The longest path.
    pub(super) longest: PathClass,
    /// The range of the fastest ones in [`Paths::fastest`](super::Paths), empty where the longest is the only kind.
    fastest: (u32, u8),
    /// A bound of the bit/s that all paths carry together.
    pub(super) capacity: u64,
    /// There is one path.
    pub(super) is_single: bool,
}

impl Way {
    /// The fastest paths: each other path takes at least as long as one of these, whatever is sent.
    pub(super) fn fastest<'a>(&'a self, lists: &'a [PathClass]) -> &'a [PathClass] {
        match self.fastest {
            (_, 0) => std::slice::from_ref(&self.longest),
            (first, count) => &lists[first as usize..first as usize + usize::from(count)],
        }
    }
}

/// The equal-cost paths from a switch to the present destination, while they are gathered.
#[derive(Debug, Default)]
pub(super) struct Bundle {
    longest: Option<PathClass>,
    fastest: Vec<PathClass>,
    /// In bit/s.
    capacity: u64,
    /// How many there are.
    paths: u32,
}

impl Bundle {
    /// No path is known yet.
    pub(super) fn clear(&mut self) {
        self.longest = None;
        self.fastest.clear();
        self.capacity = 0;
        self.paths = 0;
    }

    /// This is the destination.
    pub(super) fn arrive(&mut self) {
        self.longest = Some(PathClass::default());
        self.fastest.push(PathClass::default());
        self.capacity = u64::MAX;
        self.paths = 1;
    }

    /// No path leads to the destination.
    pub(super) fn is_empty(&self) -> bool {
        self.longest.is_none()
    }

    /// Adds the paths over `link` that go on with `rest`.
    ///
    /// Capacity is that of `link` or of `rest`, whichever is less, and capacities of links out of one switch add up. Where these meet
    /// again behind it that is more than the maximum flow, never less.
    pub(super) fn add(&mut self, link: PathClass, rest: &Self) {
        let Some(longest) = rest.longest else { return };
        let through = link.then(longest);
        self.longest = Some(match self.longest {
            Some(known) if known != through => known.longer(through),
            _ => through,
        });
        for &path in &rest.fastest {
            self.offer(if path == longest {
                through
            } else {
                link.then(path)
            });
        }
        let rate = link.bottleneck.map_or(u64::MAX, Rate::as_bps);
        self.capacity = self.capacity.saturating_add(rate.min(rest.capacity));
        self.paths = self.paths.saturating_add(rest.paths);
    }

    /// Takes `path` among the fastest ones, unless one of these is never slower.
    fn offer(&mut self, path: PathClass) {
        if self.fastest.iter().any(|&known| never_slower(known, path)) {
            return;
        }
        self.fastest.retain(|&known| !never_slower(path, known));
        if self.fastest.len() < MOST_FASTEST {
            return self.fastest.push(path);
        }
        if let Some(last) = self.fastest.pop() {
            self.offer(faster_than_both(last, path));
        }
    }

    /// What is kept of them; `keep` stores a list and says where.
    pub(super) fn way(&self, keep: impl FnOnce(&[PathClass]) -> (u32, u8)) -> Option<Way> {
        let longest = self.longest?;
        let alone = self.fastest == [longest];
        Some(Way {
            longest,
            fastest: if alone { (0, 0) } else { keep(&self.fastest) },
            capacity: self.capacity,
            is_single: self.paths == 1,
        })
    }
}

/// What a byte takes on the links of a path up to its slowest one and on that.
fn through_bottleneck(path: PathClass) -> u64 {
    path.before_bottleneck + path.bottleneck.map_or(0, fs_per_byte)
}

/// No train of packets takes longer over `a` than over `b`, also when the same links come before or behind both.
///
/// A train of packets of equal size and a smaller last one takes `propagation + max(first, second)` (see the module `ideal`), in which
/// `first` grows with the slowest link, with what a byte takes up to it and with what it takes in all, and `second` grows with the
/// slowest link, with what it takes in all and on the last link. Links in front keep the order of all of these; a link behind
/// keeps that of the times.
fn never_slower(a: PathClass, b: PathClass) -> bool {
    a == b
        || (a.propagation <= b.propagation
            && a.fs_per_byte <= b.fs_per_byte
            && a.bottleneck >= b.bottleneck
            && a.last <= b.last
            && through_bottleneck(a) <= through_bottleneck(b))
}

/// A path, which need not exist, that is never slower than either of two.
fn faster_than_both(a: PathClass, b: PathClass) -> PathClass {
    let bottleneck = a.bottleneck.max(b.bottleneck);
    let through = through_bottleneck(a).min(through_bottleneck(b));
    PathClass {
        hops: a.hops,
        propagation: a.propagation.min(b.propagation),
        fs_per_byte: a.fs_per_byte.min(b.fs_per_byte),
        bottleneck,
        before_bottleneck: through - bottleneck.map_or(0, fs_per_byte),
        last: a.last.min(b.last),
    }
}
