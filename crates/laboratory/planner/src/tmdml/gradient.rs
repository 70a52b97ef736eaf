//! The iteration of Algorithm 1 within one slot.
//!
//! The Lagrangian of (5) has a multiplier `w1_i` for each `f(r_i) <= phi` and `w2_l` for each capacity. The rates descend its gradient (Eq
//! 6), the multipliers ascend: `w1_i` by `f(r_i) - phi`, `w2_l` by the excess of the link. It is linear in `phi`, so `phi` is stationary
//! only if the `w1_i` sum to V. They are projected onto that simplex, and the shift of the projection is the present `phi`.
//!
//! *Scale.* Flows differ in rate and weight by orders of magnitude, and a plain gradient then converges slowly or diverges. All variables
//! are therefore relative, so that optima are similar and steps do not depend on units:
//!
//! * `x_i = r_i phi* / k_i`, the rate relative to the rate from [`least_rates`](super::least_rates) without queues, so that `f_i` is `1 /
//!   x_i` in units of `phi*`, the load of the busiest link divided by its capacity;
//! * `p_il = k_i / (phi* C_l)`, the share of link `l` that flow `i` has at `x_i = 1`; they add up to 1 on the busiest link, less elsewhere;
//! * `u_i = w1_i / p_i` with `p_i` the flow's largest share; the multipliers are relative to V.
//!
//! Steps are scaled by a positive diagonal, which changes the path but not the destination. `x_i` moves by at most `e1` times its size, and
//! less if its [multipliers are small](DAMPING). `u_i` and `w2_l` move by `e2` and `e3` times their size plus a [small
//! constant](LEAST_STEP), so that a multiplier of zero can grow again.
//!
//! *When to stop.* For any multipliers, the minimum of the Lagrangian is a lower bound of the optimum. With `g_i` for the price of a path,
//! the bound is `sum of p_i (g_i x_i + u_i / x_i) - sum of w2_l` at `x_i = sqrt(u_i / g_i)`. The rates, scaled down onto the links, give an
//! upper bound. The gap between both bounds proves the quality of the rates, which convergence of the rates would not. If several links are
//! nearly full, the rates may circle around the optimum; their [running average](AVERAGING) is then near it.

use super::{Problem, TmdmlParameters};

/// Constant that is added to the size of a multiplier for its step, in units of V.
const LEAST_STEP: f64 = 0.01;
/// Damping of the rates: if the multipliers of a flow are not larger than this, its rate moves slowly. On links that are just full, the
/// multipliers are near zero, and the rate would jump with the sign of their difference.
const DAMPING: f64 = 0.1;
/// Iterations from one check of the gap to the next.
const LOOK_EVERY: u32 = 4;
/// Weight of the newest rates in their average.
const AVERAGING: f64 = 0.03125;

/// The problem of one slot in relative variables.
pub(super) struct Scaled<'a> {
    problem: &'a Problem,
    /// The rates in bit/s at `x = 1`.
    pub(super) unit_rates: Vec<f64>,
    /// The capacity of the narrowest link of each flow in bit/s.
    line_rates: Vec<f64>,
    /// `p_i`; zero for flows that are over.
    shares: Vec<f64>,
    /// Bounds of `x`.
    least: Vec<f64>,
    most: Vec<f64>,
    /// Prices of the queues, by the load of the link.
    prices: Vec<f64>,
}

/// State that the iteration carries from one slot to the next.
#[derive(Debug, Clone)]
pub(super) struct Iterate {
    /// `x_i`.
    x: Vec<f64>,
    /// `u_i`.
    times: Vec<f64>,
    /// `w2_l`.
    capacities: Vec<f64>,
    /// The multiplier of `phi`'s constraint, which is `phi` in units of `phi*`.
    phi: f64,
}

/// Rates that fit the links.
pub(super) struct Feasible {
    /// Rate of each flow in bit/s.
    pub(super) rates: Vec<f64>,
    /// Upper bound of the distance from the optimum, as a share of the rates' objective.
    pub(super) gap: f64,
    /// Iterations used.
    pub(super) iterations: u32,
}

impl<'a> Scaled<'a> {
    /// Scales the problem of flows of `weights` (bits), of which at least one is above zero, with `prices` as for
    /// [`least_rates`](super::least_rates) and a `least_phi` in seconds.
    pub(super) fn new(
        problem: &'a Problem,
        weights: &[f64],
        prices: &[f64],
        least_phi: f64,
        min_rate: f64,
    ) -> Self {
        let unit_rates: Vec<f64> = weights.iter().map(|weight| weight / least_phi).collect();
        let line_rates: Vec<f64> = (0..weights.len())
            .map(|flow| problem.line_rate(flow))
            .collect();
        let per_unit = |values: &dyn Fn(usize) -> f64| -> Vec<f64> {
            let units = unit_rates.iter().enumerate();
            units
                .map(|(flow, &unit)| if unit > 0.0 { values(flow) / unit } else { 0.0 })
                .collect()
        };
        let least = per_unit(&|_| min_rate);
        let most = per_unit(&|flow| line_rates[flow]);
        let units = unit_rates.iter().zip(&line_rates);
        let shares = units.map(|(unit, line_rate)| unit / line_rate).collect();
        let links = prices.iter().zip(problem.capacities());
        let prices = links
            .map(|(price, capacity)| price * capacity / least_phi)
            .collect();
        Self {
            problem,
            unit_rates,
            line_rates,
            shares,
            least,
            most,
            prices,
        }
    }

    fn is_active(&self, flow: usize) -> bool {
        self.shares[flow] > 0.0
    }

    /// The load of each link as a share of its capacity.
    fn loads(&self, x: &[f64]) -> Vec<f64> {
        let rates: Vec<f64> = x
            .iter()
            .zip(&self.unit_rates)
            .map(|(x, unit)| x * unit)
            .collect();
        let sums = self.problem.sums(&rates);
        sums.iter()
            .zip(self.problem.capacities())
            .map(|(sum, capacity)| sum / capacity)
            .collect()
    }

    /// `g_i`: the price of the path of each flow, per share of its narrowest link.
    fn path_prices(&self, iterate: &Iterate) -> Vec<f64> {
        let links = self
            .prices
            .iter()
            .zip(&iterate.capacities)
            .zip(self.problem.capacities());
        let prices: Vec<f64> = links
            .map(|((queue, full), capacity)| (queue + full) / capacity)
            .collect();
        let price = |flow: usize| {
            let hops = self.problem.path(flow).iter();
            let sum: f64 = hops.map(|&link| prices[link as usize]).sum();
            sum * self.line_rates[flow]
        };
        (0..self.shares.len()).map(price).collect()
    }

    /// `x` with each flow scaled down by the worst overload of its path, so that every link fits.
    fn project(&self, x: &[f64], loads: &[f64]) -> Vec<f64> {
        let fitting = |(flow, &x): (usize, &f64)| {
            let path = self.problem.path(flow).iter();
            x / path.fold(1.0, |worst: f64, &link| worst.max(loads[link as usize]))
        };
        x.iter().enumerate().map(fitting).collect()
    }

    /// The objective divided by V: `phi` and the price of the loads.
    fn objective(&self, x: &[f64]) -> f64 {
        let active = (0..x.len()).filter(|&flow| self.is_active(flow));
        let phi = active.fold(0.0, |worst: f64, flow| worst.max(1.0 / x[flow]));
        let loads = self.loads(x);
        let queues: f64 = loads
            .iter()
            .zip(&self.prices)
            .map(|(load, price)| load * price)
            .sum();
        phi + queues
    }

    /// A lower bound of the objective of all rates: the minimum of the Lagrangian within the bounds of `x`.
    fn bound(&self, iterate: &Iterate, path_prices: &[f64]) -> f64 {
        let least = |flow: usize| {
            let (price, time) = (path_prices[flow], iterate.times[flow]);
            let free = if price > 0.0 {
                (time / price).sqrt()
            } else {
                f64::INFINITY
            };
            let x = free.max(self.least[flow]).min(self.most[flow]);
            self.shares[flow] * (price * x + time / x)
        };
        let active = (0..self.shares.len()).filter(|&flow| self.is_active(flow));
        active.map(least).sum::<f64>() - iterate.capacities.iter().sum::<f64>()
    }
}

impl Iterate {
    /// Starts with an equal share of the narrowest link for each flow, and with free links.
    pub(super) fn new(problem: &Problem) -> Self {
        let flows = problem.flow_count();
        Self {
            x: vec![0.0; flows],
            times: vec![1.0; flows],
            capacities: vec![0.0; problem.capacities().len()],
            phi: 1.0,
        }
    }

    /// Iterates until the gap is within tolerance or the iterations are used up, and gives the best rates so far.
    pub(super) fn solve(&mut self, scaled: &Scaled<'_>, parameters: &TmdmlParameters) -> Feasible {
        self.enter(scaled);
        let mut best = (f64::INFINITY, Vec::new());
        let mut bound = f64::NEG_INFINITY;
        let mut average = self.x.clone();
        let mut iterations = 0;
        loop {
            let path_prices = scaled.path_prices(self);
            if iterations % LOOK_EVERY == 0 || iterations == parameters.iterations {
                for x in [&self.x, &average] {
                    let x = scaled.project(x, &scaled.loads(x));
                    let objective = scaled.objective(&x);
                    if objective < best.0 {
                        best = (objective, x);
                    }
                }
                bound = bound.max(scaled.bound(self, &path_prices));
                let gap = (best.0 - bound) / best.0;
                if gap <= parameters.tolerance || iterations == parameters.iterations {
                    let rates = best
                        .1
                        .iter()
                        .zip(&scaled.unit_rates)
                        .map(|(x, unit)| x * unit);
                    return Feasible {
                        rates: rates.collect(),
                        gap: gap.max(0.0),
                        iterations,
                    };
                }
            }
            self.descend(scaled, &path_prices, parameters.rate_step);
            self.ascend_capacities(scaled, parameters.capacity_step);
            self.ascend_times(scaled, parameters.time_step);
            for (average, x) in average.iter_mut().zip(&self.x) {
                *average += (x - *average) * AVERAGING;
            }
            iterations += 1;
        }
    }

    /// Adapts the state of the last slot to this slot: removes finished flows, and begins new flows.
    fn enter(&mut self, scaled: &Scaled<'_>) {
        let active: Vec<f64> = scaled
            .shares
            .iter()
            .map(|share| if *share > 0.0 { 1.0 } else { 0.0 })
            .collect();
        let flows = scaled.problem.sums(&active);
        for (flow, x) in self.x.iter_mut().enumerate() {
            if !scaled.is_active(flow) {
                (*x, self.times[flow]) = (0.0, 0.0);
            } else if *x == 0.0 {
                let path = scaled.problem.path(flow).iter();
                let crowd = path.fold(1.0, |most: f64, &link| most.max(flows[link as usize]));
                *x = scaled.most[flow] / crowd;
            }
            *x = x.max(scaled.least[flow]).min(scaled.most[flow]);
        }
        let total: f64 = scaled
            .shares
            .iter()
            .zip(&self.times)
            .map(|(share, time)| share * time)
            .sum();
        let scale = if total > 0.0 { 1.0 / total } else { 0.0 };
        let all: f64 = scaled.shares.iter().sum();
        for (flow, time) in self.times.iter_mut().enumerate() {
            *time = if total > 0.0 {
                *time * scale
            } else {
                active[flow] / all
            };
        }
    }

    /// Eq 6: the rates follow the gradient of the Lagrangian.
    fn descend(&mut self, scaled: &Scaled<'_>, path_prices: &[f64], step: f64) {
        for (flow, x) in self.x.iter_mut().enumerate() {
            if scaled.is_active(flow) {
                let (pull, push) = (self.times[flow] / *x, path_prices[flow] * *x);
                let moved = *x * (1.0 + step * (pull - push) / (pull + push + DAMPING));
                *x = moved.max(scaled.least[flow]).min(scaled.most[flow]);
            }
        }
    }

    /// Raises the prices of overloaded links.
    fn ascend_capacities(&mut self, scaled: &Scaled<'_>, step: f64) {
        for (price, load) in self.capacities.iter_mut().zip(scaled.loads(&self.x)) {
            let excess = (load - 1.0) / load.max(1.0);
            *price = (*price + step * (*price + LEAST_STEP) * excess).max(0.0);
        }
    }

    /// Raises the multipliers of flows that are slower than `phi`, with a constant sum of V.
    fn ascend_times(&mut self, scaled: &Scaled<'_>, step: f64) {
        // With `slope` as the step of each multiplier, its new value is linear in the new `phi`: u + slope (f - phi), at least zero.
        let mut flows: Vec<(usize, f64, f64)> = (0..self.x.len())
            .filter(|&flow| scaled.is_active(flow))
            .map(|flow| {
                let slope = step * (self.times[flow] + LEAST_STEP) / self.phi;
                let late = (1.0 / self.x[flow]).min(2.0 * self.phi);
                (flow, self.times[flow] + slope * late, slope)
            })
            .collect();
        // The multipliers above zero at a too low `phi` include the multipliers above zero at the right `phi`: drop the others until all
        // stay.
        loop {
            let (mut raised, mut slopes) = (-1.0, 0.0);
            for &(flow, base, slope) in &flows {
                raised += scaled.shares[flow] * base;
                slopes += scaled.shares[flow] * slope;
            }
            self.phi = raised / slopes;
            let before = flows.len();
            let phi = self.phi;
            flows.retain(|&(_, base, slope)| base > slope * phi);
            if flows.len() == before {
                break;
            }
        }
        self.times.fill(0.0);
        for (flow, base, slope) in flows {
            self.times[flow] = base - slope * self.phi;
        }
    }
}
