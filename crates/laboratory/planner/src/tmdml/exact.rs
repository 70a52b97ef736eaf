//! Closed-form solution of the problem of one slot.
//!
//! With `k_i` for the [weight](Problem::weights) of a flow, `f(r_i) <= phi` means `r_i >= k_i / phi`. The lowest rates that meet a `phi`
//! are therefore `k_i / phi`. They fit the links if and only if `phi` is at least `K_l / C_l` for each link, where `K_l` is the sum of
//! `k_i` over its flows. Inserted into (5), they give `V phi + (sum of Q_l K_l) / phi`, which is minimal at `phi = sqrt(sum of Q_l K_l /
//! V)`. So
//!
//! `phi = max(max of K_l / C_l, sqrt(sum of Q_l K_l / V))`
//!
//! is the optimum of (5), and its first part is the optimum of (2) for one slot. The busiest link decides, so no search is needed. The
//! rates are not unique: flows that do not cross the busiest link may send faster, which [`fill`] uses.

use super::Problem;

/// Rates for one slot.
#[derive(Debug, Clone, PartialEq)]
pub struct Allocation {
    /// The largest `f(r_i)` in seconds.
    pub phi: f64,
    /// The rate of each flow in bit/s (`r_i`).
    pub rates: Vec<f64>,
}

impl Allocation {
    /// `rates`, with their `phi` for `weights` (bits).
    pub(super) fn new(weights: &[f64], rates: Vec<f64>) -> Self {
        let flows = weights
            .iter()
            .zip(&rates)
            .filter(|(weight, _)| **weight > 0.0);
        let phi = flows.fold(0.0, |worst: f64, (&weight, &rate)| worst.max(weight / rate));
        Self { phi, rates }
    }
}

/// The smallest `phi` in seconds that the links allow for flows of `weights` (bits): the load of the busiest link divided by its capacity.
pub fn least_phi(problem: &Problem, weights: &[f64]) -> f64 {
    let loads = problem.sums(weights);
    let links = loads.iter().zip(problem.capacities());
    links.fold(0.0, |worst: f64, (&load, &capacity)| {
        worst.max(load / capacity)
    })
}

/// The optimum of (5) for flows of `weights` (bits) with the lowest rates that reach it. `prices` are the costs of a bit/s on each link
/// (`Q_l`), in units in which a second of `phi` costs one (`V`), so in s²/bit. With all prices zero, the result is the optimum of (2).
pub fn least_rates(problem: &Problem, weights: &[f64], prices: &[f64]) -> Allocation {
    let loads = problem.sums(weights);
    let cost: f64 = loads
        .iter()
        .zip(prices)
        .map(|(load, price)| load * price)
        .sum();
    let phi = least_phi(problem, weights).max(cost.sqrt());
    let rates = weights.iter().map(|weight| weight / phi).collect();
    Allocation { phi, rates }
}

/// The rates with the smallest `phi`, among these the rates with the smallest second largest `f`, and so on: weighted max-min fairness by
/// progressive filling. No flow can gain rate without a loss for a flow whose `f` is as large or larger.
pub fn fill(problem: &Problem, weights: &[f64]) -> Allocation {
    let mut rates = vec![0.0; weights.len()];
    let mut left = problem.capacities().to_vec();
    let mut growing = weights.to_vec();
    loop {
        // Rate per bit of weight that the tightest link can give to flows that still grow.
        let loads = problem.sums(&growing);
        let tightest = loads.iter().zip(&left).filter(|(load, _)| **load > 0.0);
        let level = tightest.fold(f64::INFINITY, |least: f64, (load, left)| {
            least.min(left / load)
        });
        if level == f64::INFINITY {
            return Allocation::new(weights, rates);
        }
        let full: Vec<bool> = loads
            .iter()
            .zip(&left)
            .map(|(load, left)| *load > 0.0 && left / load <= level * (1.0 + 1e-12))
            .collect();
        for flow in 0..growing.len() {
            let path = problem.path(flow);
            if growing[flow] > 0.0 && path.iter().any(|&link| full[link as usize]) {
                rates[flow] = growing[flow] * level;
                growing[flow] = 0.0;
                for &link in path {
                    let left = &mut left[link as usize];
                    *left = (*left - rates[flow]).max(0.0);
                }
            }
        }
    }
}
