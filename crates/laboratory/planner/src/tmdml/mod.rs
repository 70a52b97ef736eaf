//! TMDML's optimisation problem: W. Yang, Y. Qin, Z. Jiang and X. Chu, "Traffic Management for Distributed Machine Learning in
//! RDMA-enabled Data Center Networks", §III.
//!
//! Training with bulk synchronous parallelism waits for the slowest flow. TMDML gives more rate to flows that have more *bottlenecks*: it
//! minimises the largest
//!
//! `f(r_i) = n_i / (sum of n_j over the flows to the same server) * M_i / r_i`  (Eq 1)
//!
//! under the capacities of the links and with bounded queues, where `n_i` counts the bottlenecks of a flow, `M_i` is its remaining amount
//! and `r_i` its rate. Lyapunov's drift plus penalty turns this into one problem for each time slot (Eq 5), with the queues as prices:
//!
//! `min V phi - sum over queues of Q_s (mu_s - sum of its r_i)`, such that `f(r_i) <= phi`, rates fit the links.
//!
//! * [`Problem`]: links and flows, the bottlenecks and weights of the flows.
//! * [`least_rates`], [`fill`]: each slot's optimum in closed form, and the fairest of all optima.
//! * [`Optimizer`]: Algorithm 1, a projected gradient ascent of the dual in every slot and the queues between slots.
//! * [`completion`]: the completion time of all flows, computed by slot.
//! * [`Fabric`]: the paper's fat-trees and BCubes as links and paths.
//! * [`ideal_all_reduce`]: the bound that no rates can beat.
//!
//! Decisions where the paper leaves room:
//!
//! * Each link has a queue in front of it, because ports queue; a switch's backlog is the sum over its ports. Its service rate `mu` is a
//!   [share](TmdmlParameters::service) of the link's capacity. The capacities bound the rates in every slot, so no queue builds if that
//!   share is 1, the default. V then has no effect; the trade-off between both only exists below 1.
//! * Definition of bottlenecks, of which every flow has at least one: [`BottleneckRule`], [`Problem::bottlenecks`].
//! * Units of V, the scale of all variables and the step sizes: [`TmdmlParameters`], [`Optimizer`].

mod completion;
mod exact;
mod gradient;
mod ideal;
mod optimizer;
mod parameters;
mod problem;
#[cfg(test)]
mod tests;
mod topology;

pub use completion::{Completion, completion};
pub use exact::{Allocation, fill, least_phi, least_rates};
pub use ideal::{ideal_all_reduce, ideal_bcube_all_reduce};
pub use optimizer::{Optimizer, Slot};
pub use parameters::{SettingError, Solver, TmdmlParameters};
pub use problem::{BottleneckRule, PlannedFlow, Problem, ProblemError};
pub use topology::{EqualPathChoice, Fabric};
