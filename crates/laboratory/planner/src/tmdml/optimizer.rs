//! Algorithm 1: a problem in every slot, queues between slots.

use super::gradient::{Iterate, Scaled};
use super::{
    Allocation, Problem, SettingError, Solver, TmdmlParameters, fill, least_phi, least_rates,
};

/// TMDML's Algorithm 1 as a state machine: the input is the remaining bytes of flows, the output is their rates for the next slot.
///
/// The state contains the queues and the last multipliers, which are good initial values because successive slots have similar problems.
#[derive(Debug, Clone)]
pub struct Optimizer<'a> {
    problem: &'a Problem,
    parameters: TmdmlParameters,
    solver: Solver,
    /// The optimum of the first slot in seconds, the unit of V.
    reference: f64,
    /// Queues in front of the links, in bits (`Q_l`).
    queues: Vec<f64>,
    iterate: Iterate,
}

/// Rates for one slot, with the proven gap and the iterations used.
#[derive(Debug, Clone, PartialEq)]
pub struct Slot {
    /// Rates with their largest `f`.
    pub allocation: Allocation,
    /// Upper bound of the distance from the optimum of (5), as a share of the objective of the rates; zero for closed forms.
    pub gap: f64,
    /// Iterations of the gradient; zero for closed forms.
    pub iterations: u32,
}

impl<'a> Optimizer<'a> {
    /// Begins with empty queues.
    ///
    /// # Errors
    /// If the parameters do not fit ([`TmdmlParameters::check`]).
    pub fn new(
        problem: &'a Problem,
        parameters: &TmdmlParameters,
        solver: Solver,
    ) -> Result<Self, SettingError> {
        parameters.check(problem)?;
        let weights = problem.weights(problem.bytes(), parameters.bottlenecks);
        Ok(Self {
            problem,
            parameters: parameters.clone(),
            solver,
            reference: least_phi(problem, &weights),
            queues: vec![0.0; problem.capacities().len()],
            iterate: Iterate::new(problem),
        })
    }

    /// The queue in front of each link in bytes.
    pub fn queues(&self) -> impl Iterator<Item = f64> {
        self.queues.iter().map(|bits| bits / 8.0)
    }

    /// Chooses the rates of the next slot, in which the flows have `remaining` bytes, and updates the queues by the amounts sent in it.
    /// Flows without bytes have rate zero; if all flows are without bytes, the queues drain.
    ///
    /// # Panics
    /// If `remaining` does not have one number for each flow.
    pub fn step(&mut self, remaining: &[f64]) -> Slot {
        assert_eq!(
            remaining.len(),
            self.problem.flow_count(),
            "one number for each flow"
        );
        let weights = self.problem.weights(remaining, self.parameters.bottlenecks);
        let slot = match weights.iter().any(|&weight| weight > 0.0) {
            true => self.solve(&weights),
            false => Slot {
                allocation: Allocation::new(&weights, vec![0.0; weights.len()]),
                gap: 0.0,
                iterations: 0,
            },
        };
        self.queue(remaining, &slot.allocation.rates);
        slot
    }

    fn solve(&mut self, weights: &[f64]) -> Slot {
        let prices = self.prices();
        let exact = |allocation| Slot {
            allocation,
            gap: 0.0,
            iterations: 0,
        };
        match self.solver {
            Solver::Least => exact(least_rates(self.problem, weights, &prices)),
            Solver::Filled => exact(fill(self.problem, weights)),
            Solver::Gradient => {
                let least_phi = least_phi(self.problem, weights);
                let min_rate = self.parameters.min_rate.as_bps() as f64;
                let scaled = Scaled::new(self.problem, weights, &prices, least_phi, min_rate);
                let found = self.iterate.solve(&scaled, &self.parameters);
                Slot {
                    allocation: Allocation::new(weights, found.rates),
                    gap: found.gap,
                    iterations: found.iterations,
                }
            }
        }
    }

    /// The optimum of the next slot, without a change of state.
    pub fn closed_form(&self, remaining: &[f64]) -> Allocation {
        let weights = self.problem.weights(remaining, self.parameters.bottlenecks);
        least_rates(self.problem, &weights, &self.prices())
    }

    /// Price of a bit/s on each link, in units in which a second of `phi` costs one: `Q_l / V`.
    fn prices(&self) -> Vec<f64> {
        let slot = self.parameters.slot.as_secs();
        let queues = self.queues.iter().zip(self.problem.capacities());
        queues
            .map(|(queue, capacity)| {
                let slots = queue / (capacity * slot);
                slots * self.reference / (capacity * self.parameters.v)
            })
            .collect()
    }

    /// Updates the queues: `Q(t+1) = max(Q(t) + arrivals - service, 0)`.
    fn queue(&mut self, remaining: &[f64], rates: &[f64]) {
        let slot = self.parameters.slot.as_secs();
        let sent: Vec<f64> = remaining
            .iter()
            .zip(rates)
            .map(|(bytes, rate)| (rate * slot).min(bytes * 8.0))
            .collect();
        let links = self
            .problem
            .sums(&sent)
            .into_iter()
            .zip(self.problem.capacities());
        for (queue, (arrived, capacity)) in self.queues.iter_mut().zip(links) {
            let served = capacity * self.parameters.service * slot;
            *queue = (*queue + arrived - served).max(0.0);
        }
    }
}
