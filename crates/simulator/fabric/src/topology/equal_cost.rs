//! All equal-cost paths from one switch to another, in a few numbers: the longest, the fastest ones, and their common capacity.
//!
//! They are gathered while breadth-first searches compute the routes, link by link, beginning at the destination.

use super::path_class::{PathClass, fs_per_byte};
use clearway_units::Rate;

/// So many fastest paths are told apart. Where there are more, the last ones become one that is at least as fast as each of them.
const MOST_FASTEST: usize = 8;

/// The equal-cost paths between two switches with hosts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct EqualCostPaths {
    /// The longest path.
    pub(super) longest: PathClass,
    /// The range of the fastest ones in [`Paths::fastest`](super::Paths), empty where the longest is the only kind.
    pub(super) fastest: (u32, u8),
    /// A bound of the bit/s that all paths carry together.
    pub(super) capacity: u64,
    /// There is one path.
    pub(super) is_single: bool,
}

impl EqualCostPaths {
    /// The fastest paths: for all traffic, each other path takes at least as long as one of these.
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
    /// Empty while all paths are alike.
    fastest: Vec<PathClass>,
    /// In bit/s.
    capacity: u64,
    /// Number of paths.
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

    /// Makes this the bundle of the destination itself: one path without links.
    pub(super) fn arrive(&mut self) {
        self.longest = Some(PathClass::default());
        self.capacity = u64::MAX;
        self.paths = 1;
    }

    /// No path leads to the destination.
    pub(super) fn is_empty(&self) -> bool {
        self.longest.is_none()
    }

    /// Adds the paths over `link` that go on with `rest`.
    ///
    /// Capacity is the lesser of `link` and `rest`, and capacities of links out of one switch add up. Where these links meet again behind
    /// it the sum is more than the maximum flow, never less.
    pub(super) fn add(&mut self, link: PathClass, rest: &Self) {
        let Some(longest) = rest.longest else { return };
        let rate = link.bottleneck.map_or(u64::MAX, Rate::as_bps);
        self.capacity = self.capacity.saturating_add(rate.min(rest.capacity));
        self.paths = self.paths.saturating_add(rest.paths);
        let through = link.then(longest);
        let Some(known) = self.longest else {
            self.longest = Some(through);
            let fastest = rest.fastest.iter().map(|&path| link.then(path));
            return self.fastest.extend(fastest);
        };
        if known == through && self.fastest.is_empty() && rest.fastest.is_empty() {
            return;
        }
        if self.fastest.is_empty() {
            self.fastest.push(known);
        }
        self.longest = Some(known.longer(through));
        if rest.fastest.is_empty() {
            return self.offer(through);
        }
        for &path in &rest.fastest {
            self.offer(link.then(path));
        }
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

    /// The longest path, if there is any.
    pub(super) fn longest(&self) -> Option<PathClass> {
        self.longest
    }

    /// A path, which need not exist, that is never slower than any of these.
    pub(super) fn bound(&self) -> Option<PathClass> {
        let fastest = self.fastest.iter().copied();
        fastest.reduce(faster_than_both).or(self.longest)
    }

    /// Summary of the paths, to be kept; `None` if there is no path. `keep` stores a list of fastest paths and returns its range.
    pub(super) fn paths(
        &self,
        keep: impl FnOnce(&[PathClass]) -> (u32, u8),
    ) -> Option<EqualCostPaths> {
        let longest = self.longest?;
        let alike = self.fastest.is_empty() || self.fastest == [longest];
        Some(EqualCostPaths {
            longest,
            fastest: if alike { (0, 0) } else { keep(&self.fastest) },
            capacity: self.capacity,
            is_single: self.paths == 1,
        })
    }
}

/// Serialisation time of a byte on the links of a path up to and with its slowest one, in femtoseconds.
fn through_bottleneck(path: PathClass) -> u64 {
    path.before_bottleneck + path.bottleneck.map_or(0, fs_per_byte)
}

/// No train of packets takes longer over `a` than over `b`, also when the same links come before or behind both.
///
/// A train of packets of equal size and a smaller last one takes `propagation + max(first, second)` (see the module `ideal`), in which
/// `first` grows with the time of a byte on the slowest link, up to it and in all, and `second` grows with the time of a byte on the
/// slowest link, in all and on the last link. Links in front keep the order of all of these; a link behind keeps the order of the times.
fn never_slower(a: PathClass, b: PathClass) -> bool {
    a == b
        || (a.propagation <= b.propagation
            && a.fs_per_byte <= b.fs_per_byte
            && a.bottleneck >= b.bottleneck
            && a.last <= b.last
            && through_bottleneck(a) <= through_bottleneck(b))
}

/// A path, which need not exist, that is never slower than either of two.
pub(super) fn faster_than_both(a: PathClass, b: PathClass) -> PathClass {
    let bottleneck = a.bottleneck.max(b.bottleneck);
    let through = through_bottleneck(a).min(through_bottleneck(b));
    PathClass {
        hops: a.hops,
        propagation: a.propagation.min(b.propagation),
        fs_per_byte: a.fs_per_byte.min(b.fs_per_byte),
        bottleneck,
        // No underflow: `through` includes a slowest link of `a` or `b`, and neither is faster than `bottleneck`.
        before_bottleneck: through - bottleneck.map_or(0, fs_per_byte),
        last: a.last.min(b.last),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clearway_units::{Purpose, RandomStream, Span};

    fn link(gbps: u64, ns: u64) -> PathClass {
        let rate = Rate::from_gbps(gbps);
        PathClass {
            hops: 1,
            propagation: Span::from_ns(ns),
            fs_per_byte: fs_per_byte(rate),
            bottleneck: Some(rate),
            before_bottleneck: 0,
            last: fs_per_byte(rate),
        }
    }

    fn fastest(bundle: &Bundle) -> &[PathClass] {
        match &bundle.fastest[..] {
            [] => bundle.longest.as_slice(),
            fastest => fastest,
        }
    }

    /// A train over a path, as the module `ideal` has it, in femtoseconds: `full` packets of 1000 bytes and one of `short`.
    fn train(path: PathClass, full: u64, short: u64) -> u64 {
        let slowest = path.bottleneck.map_or(0, fs_per_byte);
        let after = path.fs_per_byte - path.before_bottleneck - slowest;
        let first = slowest * (full * 1000 + short) + path.before_bottleneck * 1000 + after * short;
        let second = slowest * (full - 1) * 1000 + path.fs_per_byte * 1000 + path.last * short;
        path.propagation.as_ps() * 1000 + first.max(second)
    }

    /// Layers of parallel links, and the bundle of all paths over one link of each.
    fn layers(random: &mut RandomStream, links: u32) -> (Vec<PathClass>, Bundle) {
        let (rates, delays) = (1 + random.below(5), 1 + random.below(4));
        let (mut all, mut bundle) = (vec![PathClass::default()], Bundle::default());
        bundle.arrive();
        for _ in 0..1 + random.below(3) {
            let mut draw = |choices: &[u64], kinds| choices[random.below(kinds) as usize];
            let links: Vec<PathClass> = (0..links)
                .map(|_| {
                    link(
                        draw(&[100, 10, 25, 40, 400], rates),
                        draw(&[5, 1, 50, 9], delays),
                    )
                })
                .collect();
            let mut next = Bundle::default();
            for &link in &links {
                next.add(link, &bundle);
            }
            bundle = next;
            let prepended = |&link| all.iter().map(move |&path| PathClass::then(link, path));
            all = links.iter().flat_map(prepended).collect();
        }
        (all, bundle)
    }

    /// Of many paths the bundle keeps a few, of which one is the fastest for each train; more than it can keep become faster.
    #[test]
    fn the_fastest_of_many_paths_are_kept() {
        let (mut exact, mut most) = (0, 0);
        for seed in 0..3000 {
            let mut random = RandomStream::new(seed, Purpose::Test, 0);
            let width = 1 + random.below(6);
            let (all, bundle) = layers(&mut random, width);
            assert!(bundle.fastest.len() <= MOST_FASTEST);
            most = most.max(bundle.fastest.len());
            let (up, down) = (link(100, 3), link([10, 100, 400][seed as usize % 3], 3));
            for (full, short) in [(1, 64), (1, 1000), (3, 64), (3, 999), (50, 500)] {
                let whole = |&path: &PathClass| train(up.then(path).then(down), full, short);
                let least = all.iter().map(whole).min().unwrap();
                let kept = fastest(&bundle).iter().map(whole).min().unwrap();
                assert!(kept <= least, "seed {seed}: {kept} {least}");
                exact += u32::from(kept == least);
            }
            let longest = all.iter().map(|path| path.span_of(1000)).max();
            assert_eq!(bundle.longest.map(|path| path.span_of(1000)), longest);
        }
        assert!(most > 3 && exact > 14_500, "{most} {exact}");
    }

    #[test]
    fn more_paths_than_are_kept_become_one_that_is_faster() {
        let mut bundle = Bundle::default();
        let mut root = Bundle::default();
        root.arrive();
        // Each is faster than the ones before and takes longer to cross.
        let links: Vec<PathClass> = (1..=20).map(|n| link(10 * n, 100 * n)).collect();
        for &link in &links {
            bundle.add(link, &root);
        }
        assert_eq!(bundle.fastest.len(), MOST_FASTEST);
        for link in links {
            let faster = |&known: &PathClass| never_slower(known, link);
            assert!(bundle.fastest.iter().any(faster), "{link:?}");
        }
        assert_eq!(bundle.capacity, 2_100_000_000_000);
    }

    #[test]
    fn capacities_add_up_as_far_as_what_is_behind_them_goes() {
        let mut root = Bundle::default();
        root.arrive();
        let (mut thin, mut wide, mut leaf) = Default::default();
        let add = |bundle: &mut Bundle, gbps, rest: &Bundle| bundle.add(link(gbps, 1), rest);
        add(&mut thin, 100, &root);
        add(&mut wide, 400, &root);
        add(&mut wide, 400, &root);
        assert!(thin.paths(|_| (0, 0)).unwrap().is_single);
        add(&mut leaf, 400, &thin);
        add(&mut leaf, 400, &wide);
        let paths = leaf.paths(|_| (7, 1)).unwrap();
        assert_eq!((paths.capacity, paths.is_single), (500_000_000_000, false));
        assert_eq!(paths.longest.bottleneck, Some(Rate::from_gbps(100)));
        assert_eq!(leaf.fastest[0].bottleneck, Some(Rate::from_gbps(400)));
        leaf.clear();
        assert!(leaf.is_empty() && leaf.paths(|_| (0, 0)).is_none());
    }
}
