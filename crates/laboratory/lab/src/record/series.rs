//! Time series of bounded length.

use clearway_units::{Span, Time};

/// Content of a bucket of a [`Series`].
pub trait Bucket: Default + Clone {
    /// Adds the content of another bucket.
    fn absorb(&mut self, other: &Self);
}

/// Count of bytes or packets.
impl Bucket for u64 {
    fn absorb(&mut self, other: &Self) {
        *self += other;
    }
}

/// Buckets of equal width from the start of the run. When time exceeds `limit` buckets, neighbours are merged and the width doubles, so
/// memory is bounded and totals stay exact.
#[derive(Debug, Clone, PartialEq)]
pub struct Series<B> {
    width: Span,
    limit: usize,
    buckets: Vec<B>,
}

impl<B: Bucket> Series<B> {
    /// An empty series that begins with buckets of `width`.
    ///
    /// # Panics
    /// If `width` is zero or `limit` below 2.
    pub fn new(width: Span, limit: usize) -> Self {
        assert!(
            !width.is_zero() && limit >= 2,
            "a series has two buckets with a width"
        );
        Self {
            width,
            limit,
            buckets: Vec::new(),
        }
    }

    /// The width of all buckets.
    pub fn width(&self) -> Span {
        self.width
    }

    /// The buckets; bucket `i` begins at `i` times the width.
    pub fn buckets(&self) -> &[B] {
        &self.buckets
    }

    /// Start of bucket `index`.
    pub fn start_of(&self, index: usize) -> Time {
        Time::ZERO + self.width * index as u64
    }

    /// The bucket that contains `time`.
    pub fn at(&mut self, time: Time) -> &mut B {
        let mut index = self.index(time);
        while index >= self.limit as u64 {
            self.coarsen();
            index = self.index(time);
        }
        let index = index as usize;
        if index >= self.buckets.len() {
            self.buckets.resize(index + 1, B::default());
        }
        &mut self.buckets[index]
    }

    /// Merges neighbours, which doubles the width.
    pub fn coarsen(&mut self) {
        let halves = self.buckets.chunks(2);
        self.buckets = halves
            .map(|pair| {
                let mut bucket = pair[0].clone();
                if let Some(later) = pair.get(1) {
                    bucket.absorb(later);
                }
                bucket
            })
            .collect();
        self.width = self.width * 2;
    }

    /// The same series with at most `points` buckets.
    #[must_use]
    pub fn with_at_most(mut self, points: usize) -> Self {
        while self.buckets.len() > points.max(1) {
            self.coarsen();
        }
        self
    }

    /// Adds another series with the same initial width.
    ///
    /// # Panics
    /// If the initial widths differ.
    pub fn merge(&mut self, mut other: Self) {
        while self.width < other.width {
            self.coarsen();
        }
        while other.width < self.width {
            other.coarsen();
        }
        assert_eq!(self.width, other.width, "series of different kinds");
        if other.buckets.len() > self.buckets.len() {
            self.buckets.resize(other.buckets.len(), B::default());
        }
        for (bucket, other) in self.buckets.iter_mut().zip(&other.buckets) {
            bucket.absorb(other);
        }
    }

    fn index(&self, time: Time) -> u64 {
        time.as_ps() / self.width.as_ps()
    }
}
