//! Completion time of a set of flows with new rates in every slot.

use super::{Optimizer, Problem, SettingError, Solver, TmdmlParameters};
use clearway_units::{Bytes, Span};

/// Completion times of a set of flows, with the longest queue and the work of the solver.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Completion {
    /// Time at which each flow had sent its last bit.
    pub finishes: Vec<Span>,
    /// Number of begun slots.
    pub slots: u64,
    /// Number of gradient iterations in all slots.
    pub iterations: u64,
    /// The longest queue at the end of a slot.
    pub longest_queue: Bytes,
}

impl Completion {
    /// Time at which the last flow had sent its last bit.
    pub fn finish(&self) -> Span {
        self.finishes.iter().copied().max().unwrap_or(Span::ZERO)
    }
}

/// Runs `problem` as a fluid, slot by slot, until every flow has sent its bytes. A flow that ends within a slot ends when its bytes are
/// sent. Its capacity is used from the next slot on, so a run of `n` such waves is at most `n` slots longer than necessary.
///
/// Every slot fills a link or ends a flow, unless the prices of queues prevent it. Such queues drain, so the loop ends.
///
/// # Errors
/// If the parameters do not fit ([`TmdmlParameters::check`]).
pub fn completion(
    problem: &Problem,
    parameters: &TmdmlParameters,
    solver: Solver,
) -> Result<Completion, SettingError> {
    let mut optimizer = Optimizer::new(problem, parameters, solver)?;
    let slot = parameters.slot.as_secs();
    let mut remaining = problem.bytes().to_vec();
    let mut finishes = vec![Span::ZERO; remaining.len()];
    let mut active = remaining.len();
    let (mut slots, mut iterations) = (0u64, 0u64);
    let mut longest_queue: f64 = 0.0;
    while active > 0 {
        let step = optimizer.step(&remaining);
        iterations += u64::from(step.iterations);
        longest_queue = optimizer.queues().fold(longest_queue, f64::max);
        let start = parameters.slot * slots;
        for (flow, left) in remaining
            .iter_mut()
            .enumerate()
            .filter(|(_, left)| **left > 0.0)
        {
            let rate = step.allocation.rates[flow];
            let (seconds, sent) = (*left * 8.0 / rate, rate * slot / 8.0);
            // Rounding may make the slot appear too short for bytes that fit. The flow would then have no bytes left but would not be over.
            if seconds <= slot || *left <= sent {
                finishes[flow] = start + rounded_up(seconds);
                *left = 0.0;
                active -= 1;
            } else {
                *left -= sent;
            }
        }
        slots += 1;
    }
    Ok(Completion {
        finishes,
        slots,
        iterations,
        longest_queue: Bytes::new(longest_queue as u64),
    })
}

/// A span of `seconds`, rounded up to a picosecond.
fn rounded_up(seconds: f64) -> Span {
    let ps = seconds * 1e12;
    let whole = ps as u64;
    Span::from_ps(whole + u64::from((whole as f64) < ps))
}
