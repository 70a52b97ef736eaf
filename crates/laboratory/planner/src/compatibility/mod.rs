//! Compatibility of training jobs: sharing links without slowing each other down. S. Rajasekaran, M. Ghobadi, G. Kumar and A. Akella,
//! "Congestion Control in Machine Learning Clusters", HotNets'22.
//!
//! A training job repeatedly computes and then communicates. On a circle whose perimeter is the iteration time, its communication is an arc
//! (§3, Fig 3). Jobs that share a link are placed on one *unified circle*, whose perimeter is a common multiple of their iteration times
//! (Fig 5). If rotations exist without collisions of arcs, the jobs are *compatible*.
//!
//! * [`JobProfile`]: an iteration, as phases of communication and computation.
//! * [`Problem`]: jobs, the links that their communication loads and the GPUs that their computation loads.
//! * [`plan`]: rotations for all jobs that minimise the total overlap, with a proven bound; scores of links; priorities.
//! * [`place`]: a plan that also chooses between placements.
//! * [`fluid`]: iteration times under a plan, and under other ways of sharing links, by a model without packets.
//!
//! Decisions where the paper leaves room ("the details of the optimization formulation are omitted"):
//!
//! * *Several links* (§5): one rotation for each job, one circle for all jobs that share links, directly or through other jobs. A link
//!   whose jobs can never exceed its capacity does not connect jobs.
//! * *GPUs* (§5) are resources like links, loaded by computation instead.
//! * *Demands* below the full rate: shares add up, and the excess over the whole is the overlap. With full demands this is the paper's "at
//!   most one job in each sector".
//! * *Score of a link*: `1 - sum over sectors of max(0, load - 1) / K`.
//! * *Iteration times* that have no small common multiple are lengthened by up to a tolerance, never shortened.
//! * *Sectors* that an arc touches count as filled, so jobs that are compatible in sectors are also compatible without sectors. If an
//!   iteration is not a whole number of sectors, the job with the most rotations stays fixed, and the other jobs rotate by less than an
//!   iteration. Proofs then hold for these rotations.

mod bound;
mod circle;
mod exact;
pub mod fluid;
mod grid;
mod local;
mod parameters;
mod placement;
mod plan;
mod priority;
mod problem;
mod profile;
mod share;
#[cfg(test)]
mod tests;

pub use grid::GridError;
pub use parameters::{PlanParameters, SettingError, Solver};
pub use placement::{JobMove, Placed, place};
pub use plan::{
    CompatibilityVerdict, Plan, PlanError, PlannedJob, PlannedResource, UnifiedCircle, plan,
    plan_at,
};
pub use problem::{CandidatePlacement, Job, Load, Problem, ProblemError, Resource};
pub use profile::{Demand, JobProfile, Phase, PhaseKind, ProfileError};
pub use share::Share;
