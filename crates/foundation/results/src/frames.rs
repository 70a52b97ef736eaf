//! Counts of links over time, summed over bundles of links, for a map of the fabric.

use clearway_units::{Span, Time};

/// Counts of a bundle of links in one interval.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct FrameCounts {
    /// Bytes that the links carried, headers included; a packet on its way counts by the part that has left.
    pub bytes: f64,
    /// Maximum number of bytes in the data queue of any of the links.
    pub peak_queue: u64,
    /// Packets that the queues in front of the links marked.
    pub marks: u64,
    /// Packets that were dropped in front of the links, or lost on them.
    pub drops: u64,
    /// Time for which flow control paused the links, summed over the links. A link that is paused at a sample counts as paused since the
    /// sample before.
    pub paused: Span,
}

impl FrameCounts {
    /// Adds the counts of other links, or of another interval.
    pub fn add(&mut self, other: &Self) {
        self.bytes += other.bytes;
        self.peak_queue = self.peak_queue.max(other.peak_queue);
        self.marks += other.marks;
        self.drops += other.drops;
        self.paused += other.paused;
    }
}

/// Counts of every bundle of links in consecutive intervals.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct LinkFrames {
    /// The ends of the intervals, increasing; the first interval begins at time zero.
    pub ends: Vec<Time>,
    /// Number of bundles.
    pub bundles: usize,
    /// Counts of the first interval, bundle by bundle, then of the second interval, and so on.
    pub counts: Vec<FrameCounts>,
}

impl LinkFrames {
    /// The last interval: its beginning, its end and the counts of each bundle.
    pub fn last(&self) -> Option<(Time, Time, &[FrameCounts])> {
        let (&end, before) = self.ends.split_last()?;
        let from = before.last().copied().unwrap_or(Time::ZERO);
        let first = self.counts.len().checked_sub(self.bundles)?;
        Some((from, end, &self.counts[first..]))
    }

    /// The intervals: their ends and the counts of each bundle.
    pub fn frames(&self) -> impl Iterator<Item = (Time, &[FrameCounts])> {
        let frames = self.counts.chunks(self.bundles.max(1));
        self.ends.iter().copied().zip(frames)
    }
}

/// Assignment of links to bundles.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LinkBundles {
    /// Number of bundles.
    pub count: usize,
    /// The bundle of each link.
    pub of_link: Vec<u32>,
}

/// Recorder of [`LinkFrames`]. The number of intervals is bounded: when all are used, neighbours are joined, and later intervals
/// have twice as many samples.
#[derive(Debug)]
pub struct FrameRecorder {
    bundles: LinkBundles,
    frames: LinkFrames,
    /// Maximum number of intervals.
    limit: usize,
    /// Number of samples in an interval.
    samples: usize,
    /// Number of samples in the last interval so far.
    taken: usize,
    /// True if the last interval is not complete.
    is_open: bool,
}

impl FrameRecorder {
    /// Maximum number of counts that are kept, over all bundles and intervals.
    const BUDGET: usize = 1 << 18;
    /// Maximum number of intervals.
    const MOST: usize = 128;

    /// A recorder without samples; `None` if there are too many bundles for a course over time.
    pub fn new(bundles: LinkBundles) -> Option<Self> {
        let limit = (Self::BUDGET / bundles.count.max(1)).min(Self::MOST);
        // Neighbours are joined in pairs, and at least four intervals show a course.
        let limit = limit / 2 * 2;
        let frames = LinkFrames {
            bundles: bundles.count,
            ..LinkFrames::default()
        };
        (limit >= 4 && bundles.count > 0).then_some(Self {
            bundles,
            frames,
            limit,
            samples: 1,
            taken: 0,
            is_open: false,
        })
    }

    /// Adds counts of a link to the current sample.
    #[inline]
    pub fn add(&mut self, link: u32, counts: &FrameCounts) {
        self.open();
        let bundle = self.bundles.of_link[link as usize] as usize;
        let first = self.frames.counts.len() - self.frames.bundles;
        self.frames.counts[first + bundle].add(counts);
    }

    /// Ends the current sample.
    pub fn end_sample(&mut self, now: Time) {
        self.open();
        if let Some(end) = self.frames.ends.last_mut() {
            *end = now;
        }
        self.taken += 1;
        if self.taken >= self.samples {
            (self.taken, self.is_open) = (0, false);
            if self.frames.ends.len() >= self.limit {
                self.join();
            }
        }
    }

    /// The intervals so far; the last one may not be complete.
    pub fn frames(&self) -> &LinkFrames {
        &self.frames
    }

    /// The intervals.
    pub fn into_frames(self) -> LinkFrames {
        self.frames
    }

    /// Begins an interval, unless the last one is not complete.
    #[inline]
    fn open(&mut self) {
        if !self.is_open {
            let length = self.frames.counts.len() + self.frames.bundles;
            self.frames.counts.resize(length, FrameCounts::default());
            self.frames.ends.push(Time::ZERO);
            self.is_open = true;
        }
    }

    /// Joins neighbouring intervals.
    fn join(&mut self) {
        let bundles = self.frames.bundles;
        let joined = self.frames.counts.chunks(2 * bundles).flat_map(|pair| {
            let (first, second) = pair.split_at(bundles.min(pair.len()));
            let mut sum = first.to_vec();
            sum.iter_mut().zip(second).for_each(|(a, b)| a.add(b));
            sum
        });
        self.frames.counts = joined.collect();
        let ends = self.frames.ends.chunks(2);
        self.frames.ends = ends.map(|pair| pair[pair.len() - 1]).collect();
        self.samples *= 2;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(bytes: u64, peak_queue: u64) -> FrameCounts {
        FrameCounts {
            bytes: bytes as f64,
            peak_queue,
            marks: 1,
            drops: 2,
            paused: Span::from_ns(3),
        }
    }

    /// A recorder of three links in two bundles, after `samples` samples: in sample `n`, link 0 carries `n` bytes, link 2 carries 1.
    fn recorded(samples: u64) -> LinkFrames {
        let bundles = LinkBundles {
            count: 2,
            of_link: vec![0, 1, 1],
        };
        let mut recorder = FrameRecorder::new(bundles).unwrap();
        for sample in 1..=samples {
            recorder.add(0, &counts(sample, sample));
            recorder.add(1, &counts(0, 5));
            recorder.add(2, &counts(1, 4));
            recorder.end_sample(Time::from_us(sample));
        }
        recorder.into_frames()
    }

    #[test]
    fn links_are_summed_over_their_bundle() {
        let frames = recorded(3);
        let all: Vec<_> = frames.frames().collect();
        assert_eq!(all.len(), 3);
        let (end, counts) = all[1];
        assert_eq!(end, Time::from_us(2));
        assert_eq!((counts[0].bytes, counts[0].peak_queue), (2.0, 2));
        let both = FrameCounts {
            bytes: 1.0,
            peak_queue: 5,
            marks: 2,
            drops: 4,
            paused: Span::from_ns(6),
        };
        assert_eq!(counts[1], both);
        let (from, end, counts) = frames.last().unwrap();
        assert_eq!((from, end), (Time::from_us(2), Time::from_us(3)));
        assert_eq!(counts[0].bytes, 3.0);
        assert_eq!(LinkFrames::default().last(), None);
    }

    #[test]
    fn intervals_are_joined_and_nothing_is_lost() {
        for samples in [127, 128, 129, 200, 1000, 1023] {
            let frames = recorded(samples);
            assert!(frames.ends.len() <= FrameRecorder::MOST, "{samples}");
            assert!(frames.ends.len() >= FrameRecorder::MOST / 2, "{samples}");
            assert_eq!(frames.counts.len(), 2 * frames.ends.len());
            assert!(frames.ends.is_sorted_by(|a, b| a < b), "{samples}");
            assert_eq!(frames.ends.last(), Some(&Time::from_us(samples)));
            let sum = |bundle: usize| -> f64 {
                let own = frames.frames().map(|(_, counts)| counts[bundle].bytes);
                own.sum()
            };
            assert_eq!(sum(0), (samples * (samples + 1) / 2) as f64);
            assert_eq!(sum(1), samples as f64);
        }
    }

    #[test]
    fn too_many_bundles_have_no_course() {
        let bundles = |count| LinkBundles {
            count,
            of_link: Vec::new(),
        };
        assert!(FrameRecorder::new(bundles(0)).is_none());
        assert!(FrameRecorder::new(bundles(FrameRecorder::BUDGET / 4)).is_some());
        assert!(FrameRecorder::new(bundles(FrameRecorder::BUDGET / 3)).is_none());
    }
}
