//! Independent Poisson sources, one for each host, as one sequence of flows in the order of their starts.

use crate::exponential::exponential;
use crate::{FlowSpec, SizeDistribution, Start};
use clearway_units::{Bytes, HostId, RandomStream, Span, Time};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::iter::Peekable;

/// Poisson source of one host.
#[derive(Debug, Clone)]
pub struct PoissonSource {
    /// Random numbers of this host alone.
    random: RandomStream,
    /// Mean time between two of its flows, in picoseconds.
    mean_gap: f64,
}

impl PoissonSource {
    /// A source that draws from `random` and offers a flow every `mean_gap` picoseconds on average.
    pub const fn new(random: RandomStream, mean_gap: f64) -> Self {
        Self { random, mean_gap }
    }

    /// Mean time between two of its flows, in picoseconds.
    pub const fn mean_gap(&self) -> f64 {
        self.mean_gap
    }

    /// Draws the time to the next flow.
    pub fn gap(&mut self) -> Span {
        // Too large a float becomes the largest integer.
        Span::from_ps((exponential(&mut self.random) * self.mean_gap + 0.5) as u64)
    }

    /// Uniform random number below `bound`. It always takes one draw, so that later draws do not depend on `bound`. The bias is below
    /// 2^-32.
    pub fn below(&mut self, bound: u32) -> u32 {
        ((u128::from(self.random.next_u64()) * u128::from(bound)) >> 64) as u32
    }

    /// Draws a size.
    pub fn size(&mut self, sizes: &SizeDistribution) -> Bytes {
        sizes.sample(&mut self.random)
    }
}

/// Flows between hosts whose numbers begin at 0, in ascending order of start, at equal starts of source. They are numbered from 1.
///
/// It holds one pending start for each host, so that a run can pull its flows one by one. Each host has a separate random stream: more
/// hosts or a later end do not change starts and sizes of the earlier flows. More hosts change their destinations.
#[derive(Debug, Clone)]
pub struct Arrivals {
    sources: Vec<PoissonSource>,
    sizes: SizeDistribution,
    /// The next start of each host that has one.
    pending: BinaryHeap<Reverse<(Time, u32)>>,
    /// No flow starts at or after this time.
    end: Time,
    label: u64,
}

impl Arrivals {
    /// The flows of `sources` from `start` on until before `end`; there are at least two sources.
    pub fn new(
        mut sources: Vec<PoissonSource>,
        sizes: SizeDistribution,
        start: Time,
        end: Time,
    ) -> Self {
        let firsts = (0..).zip(&mut sources);
        let firsts = firsts.map(|(host, source)| (start.saturating_add(source.gap()), host));
        let pending = firsts.filter(|&(time, _)| time < end).map(Reverse);
        Self {
            pending: pending.collect(),
            sources,
            sizes,
            end,
            label: 0,
        }
    }

    /// True if no flow is left.
    pub fn is_empty(&self) -> bool {
        self.pending.is_empty()
    }

    /// Draws a destination other than `src`, and a size.
    fn draw(&mut self, src: u32) -> (u32, Bytes) {
        let others = self.sources.len() as u32 - 1;
        let source = &mut self.sources[src as usize];
        let index = source.below(others);
        let bytes = source.size(&self.sizes);
        (index + u32::from(index >= src), bytes)
    }
}

impl Iterator for Arrivals {
    type Item = FlowSpec;

    fn next(&mut self) -> Option<FlowSpec> {
        let Reverse((time, src)) = self.pending.pop()?;
        let (dst, bytes) = self.draw(src);
        let next = time.saturating_add(self.sources[src as usize].gap());
        if next < self.end {
            self.pending.push(Reverse((next, src)));
        }
        self.label += 1;
        Some(FlowSpec::timed(
            self.label,
            HostId(src),
            HostId(dst),
            bytes,
            time,
        ))
    }
}

/// The flows of several sections as one sequence, in the order in which [`Workload::merge`](crate::Workload::merge) lists them: by
/// start, at equal starts by section. Each flow says of which section it is.
#[derive(Debug, Clone)]
pub struct MergedArrivals {
    sections: Vec<Peekable<Arrivals>>,
    /// The start of the next flow of each section that has one.
    heads: BinaryHeap<Reverse<(Time, usize)>>,
}

impl MergedArrivals {
    /// The flows of these sections.
    pub fn new(sections: impl IntoIterator<Item = Arrivals>) -> Self {
        let sections = sections.into_iter().map(Iterator::peekable);
        let mut merged = Self {
            sections: sections.collect(),
            heads: BinaryHeap::new(),
        };
        (0..merged.sections.len()).for_each(|section| merged.push_head(section));
        merged
    }

    fn push_head(&mut self, section: usize) {
        if let Some(head) = self.sections[section].peek()
            && let Start::At(start) = head.start
        {
            self.heads.push(Reverse((start, section)));
        }
    }
}

impl Iterator for MergedArrivals {
    type Item = FlowSpec;

    fn next(&mut self) -> Option<FlowSpec> {
        let Reverse((_, section)) = self.heads.pop()?;
        let flow = self.sections[section].next()?;
        self.push_head(section);
        Some(FlowSpec {
            section: section as u32,
            ..flow
        })
    }
}
