//! Measurements of collectives in the manner of nccl-tests: time, bandwidths, and wrong elements.
//!
//! Values are small whole numbers that each rank can compute for all others. Their sums are exact in `f32` in any order, so the comparison
//! of results needs no tolerance.

use crate::blocking::Group;
use crate::error::GroupError;
use crate::execution::Buffers;
use crate::plan::{Algorithm, BufferOperation, CollectivePlan, ELEMENT};
use clearway_units::Span;
use std::sync::Arc;
use tokio::time::Instant;

/// Period of the values in elements: a prime, so that blocks and chunks begin with different values.
const PERIOD: usize = 1021;
/// Most ranks for which the sums of values are exact.
pub const MOST_RANKS: u32 = (1 << 24) / PERIOD as u32;

/// Plan of a measurement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Measurement {
    /// Operation and algorithm.
    pub algorithm: Algorithm,
    /// Size S in bytes. Like nccl-tests, rounded down to whole elements, and to equal blocks if ranks have blocks.
    pub size: u64,
    /// Most elements of a message; `None` leaves the choice to the plan.
    pub chunk: Option<usize>,
    /// Collectives before the clock starts.
    pub warmups: u32,
    /// Timed collectives, above zero.
    pub iterations: u32,
    /// True to compare results with a local computation.
    pub check: bool,
}

/// Results of a measurement.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CollectiveMeasurement {
    /// Bytes of S.
    pub size: u64,
    /// Elements of S in an all-reduce, of a block otherwise, as nccl-tests counts.
    pub count: u64,
    /// Mean time of a collective over ranks and iterations.
    pub time: Span,
    /// Size per time, in GB/s.
    pub algorithm_bandwidth: f64,
    /// Algorithm bandwidth times the [factor](CollectivePlan::bus_factor) of the operation.
    pub bus_bandwidth: f64,
    /// Elements at all ranks that differ from a local computation, in two collectives: one before the clock started, one after it stopped.
    /// None without a comparison.
    pub wrong: Option<u64>,
}

impl Measurement {
    /// Elements of S among a number of ranks.
    pub fn elements(&self, ranks: u32) -> usize {
        let elements = self.size as usize / ELEMENT;
        match self.algorithm.operation() {
            BufferOperation::AllReduce => elements,
            _ => elements / ranks as usize * ranks as usize,
        }
    }

    /// Plans of all collectives of a measurement: the measured collective, and the exchange of results between ranks.
    ///
    /// # Errors
    /// As [`CollectivePlan::new`].
    pub fn plans(
        &self,
        ranks: u32,
    ) -> Result<[Arc<CollectivePlan>; 2], clearway_workload::CollectiveError> {
        let measured =
            CollectivePlan::new(self.algorithm, ranks, self.elements(ranks), self.chunk)?;
        // Uses the existing connections: of a ring, of a tree, or between all ranks.
        let exchange = match (self.algorithm.operation(), self.algorithm.name()) {
            (BufferOperation::AllReduce, _) => self.algorithm,
            _ => Algorithm::default_of(BufferOperation::AllReduce),
        };
        let exchange = CollectivePlan::new(exchange, ranks, 2 * ranks as usize, None)?;
        Ok([Arc::new(measured), Arc::new(exchange)])
    }

    /// Measures. All ranks of the group call it with the same plan.
    ///
    /// # Errors
    /// As [`Group::run`].
    pub fn run(&self, group: &mut Group) -> Result<CollectiveMeasurement, GroupError> {
        let plans = self
            .plans(group.ranks())
            .map_err(|error| GroupError::Plan {
                message: error.to_string(),
                fix: error.fix,
            })?;
        let [plan, exchange] = plans;
        let mut data = Data::new(&plan, group.rank());
        let mut wrong = 0;
        if self.check {
            wrong += data.checked(group, 0)?;
        }
        // Repeated sums would leave the range of floats.
        data.clear();
        for _ in 0..self.warmups {
            data.run(group)?;
        }
        exchange_sums(group, &exchange, [0.0, 0.0])?;
        let began = Instant::now();
        for _ in 0..self.iterations {
            data.run(group)?;
        }
        let nanoseconds = began.elapsed().as_nanos() as f64 / f64::from(self.iterations);
        if self.check {
            wrong += data.checked(group, 1)?;
        }
        let counted = [nanoseconds / 1000.0, wrong as f64];
        let [microseconds, wrong] = exchange_sums(group, &exchange, counted)?;
        let microseconds = microseconds / f64::from(group.ranks());
        let size = (plan.count() * ELEMENT) as u64;
        let bandwidth = match microseconds > 0.0 {
            true => size as f64 / microseconds / 1000.0,
            false => 0.0,
        };
        let blocks = match self.algorithm.operation() {
            BufferOperation::AllReduce => 1,
            _ => u64::from(group.ranks()),
        };
        Ok(CollectiveMeasurement {
            size,
            count: plan.count() as u64 / blocks,
            time: Span::from_ps((microseconds * 1e6) as u64),
            algorithm_bandwidth: bandwidth,
            bus_bandwidth: bandwidth * plan.bus_factor(),
            wrong: self.check.then_some(wrong as u64),
        })
    }
}

/// Sums of two numbers of each rank. The exchange is also a barrier: a rank has the result only after all have begun.
fn exchange_sums(
    group: &mut Group,
    plan: &Arc<CollectivePlan>,
    own: [f64; 2],
) -> Result<[f64; 2], GroupError> {
    let mut buffer = vec![0.0; plan.count()];
    let place = 2 * group.rank() as usize;
    // Each rank uses separate places, so all additions are with zeros.
    for (element, number) in buffer[place..].iter_mut().zip(own) {
        *element = number as f32;
    }
    group.run(plan, &mut Buffers::InPlace(&mut buffer), &mut || true)?;
    let sum = |at: usize| {
        buffer
            .iter()
            .skip(at)
            .step_by(2)
            .map(|e| f64::from(*e))
            .sum()
    };
    Ok([sum(0), sum(1)])
}

/// Buffers of a rank, with their values.
struct Data {
    plan: Arc<CollectivePlan>,
    rank: u32,
    /// Empty except in an all-to-all.
    send: Vec<f32>,
    own: Vec<f32>,
}

/// Value of an element at a rank. Each round has different values, so leftovers of an earlier round are wrong.
fn value(rank: u32, round: usize, at: usize) -> f32 {
    ((at * 7 + rank as usize * 131 + round * 17) % PERIOD) as f32
}

impl Data {
    fn new(plan: &Arc<CollectivePlan>, rank: u32) -> Self {
        let exchanges = plan.algorithm().operation() == BufferOperation::AllToAll;
        let own = match exchanges {
            true => plan.block(rank).len() * plan.ranks() as usize,
            false => plan.count(),
        };
        Self {
            plan: Arc::clone(plan),
            rank,
            send: vec![0.0; if exchanges { plan.count() } else { 0 }],
            own: vec![0.0; own],
        }
    }

    fn clear(&mut self) {
        self.send.fill(0.0);
        self.own.fill(0.0);
    }

    fn run(&mut self, group: &mut Group) -> Result<(), GroupError> {
        let mut buffers = match self.plan.algorithm().operation() {
            BufferOperation::AllToAll => Buffers::Apart {
                send: &self.send,
                receive: &mut self.own,
            },
            _ => Buffers::InPlace(&mut self.own),
        };
        group.run(&self.plan, &mut buffers, &mut || true)
    }

    /// Runs one collective with known values. Returns the number of wrong elements at this rank.
    fn checked(&mut self, group: &mut Group, round: usize) -> Result<u64, GroupError> {
        let source = match self.plan.algorithm().operation() {
            BufferOperation::AllToAll => &mut self.send,
            _ => &mut self.own,
        };
        for (at, element) in source.iter_mut().enumerate() {
            *element = value(self.rank, round, at);
        }
        self.run(group)?;
        Ok(self.count_wrong(round))
    }

    fn count_wrong(&self, round: usize) -> u64 {
        let (plan, own) = (&self.plan, self.plan.block(self.rank));
        let ranks = 0..plan.ranks();
        let differ = |elements: &[f32], from: usize, wanted: &dyn Fn(usize) -> f32| {
            let numbered = (from..).zip(elements);
            numbered
                .filter(|(at, element)| **element != wanted(*at))
                .count() as u64
        };
        let sums: Vec<f32> = (0..PERIOD)
            .map(|at| ranks.clone().map(|rank| value(rank, round, at)).sum())
            .collect();
        let sum = |at: usize| sums[at % PERIOD];
        match plan.algorithm().operation() {
            BufferOperation::AllReduce => differ(&self.own, 0, &sum),
            BufferOperation::ReduceScatter => differ(&self.own[own.clone()], own.start, &sum),
            BufferOperation::AllGather => ranks
                .map(|rank| {
                    let block = plan.block(rank);
                    let wanted = |at| value(rank, round, at);
                    differ(&self.own[block.clone()], block.start, &wanted)
                })
                .sum(),
            BufferOperation::AllToAll => ranks
                .map(|rank| {
                    let from = &self.own[rank as usize * own.len()..][..own.len()];
                    let wanted = |at| value(rank, round, at);
                    differ(from, own.start, &wanted)
                })
                .sum(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn data(operation: BufferOperation, rank: u32) -> Data {
        let plan = CollectivePlan::new(Algorithm::default_of(operation), 3, 3000, None).unwrap();
        Data::new(&Arc::new(plan), rank)
    }

    #[test]
    fn what_is_wrong_is_counted() {
        let mut reduced = data(BufferOperation::AllReduce, 1);
        for at in 0..3000 {
            reduced.own[at] = (0..3).map(|rank| value(rank, 1, at)).sum();
        }
        assert_eq!(reduced.count_wrong(1), 0);
        assert!(reduced.count_wrong(0) > 2900, "values of another round");
        reduced.own[17] += 1.0;
        reduced.own[2999] = f32::NAN;
        assert_eq!(reduced.count_wrong(1), 2);
        let mut exchanged = data(BufferOperation::AllToAll, 2);
        for at in 0..3000 {
            exchanged.own[at] = value(at as u32 / 1000, 0, 2000 + at % 1000);
        }
        assert_eq!(exchanged.count_wrong(0), 0);
        exchanged.own.swap(0, 1000);
        assert_eq!(exchanged.count_wrong(0), 2);
    }

    #[test]
    fn sums_of_the_most_ranks_are_exact() {
        assert!(u64::from(MOST_RANKS) * (PERIOD as u64 - 1) < 1 << 24);
    }

    #[test]
    fn sizes_are_rounded_to_whole_elements_for_each_rank() {
        let measurement = |operation, size| Measurement {
            algorithm: Algorithm::default_of(operation),
            size,
            chunk: None,
            warmups: 0,
            iterations: 1,
            check: true,
        };
        assert_eq!(
            measurement(BufferOperation::AllReduce, 1027).elements(5),
            256
        );
        assert_eq!(
            measurement(BufferOperation::AllGather, 1027).elements(5),
            255
        );
        assert_eq!(measurement(BufferOperation::AllToAll, 3).elements(5), 0);
    }
}
