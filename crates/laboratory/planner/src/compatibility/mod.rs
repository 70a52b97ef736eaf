//! Compatibility of training jobs: sharing links without slowing each other down. S. Rajasekaran, M. Ghobadi, G. Kumar and A. Akella,
//! "Congestion Control in Machine Learning Clusters", HotNets'22.
//!
//! A training job computes, then communicates, again and again. Rolled around a circle whose perimeter is the iteration time, its
//! communication is an arc (§3, Fig 3). Jobs that share a link are laid on one *unified circle*, whose perimeter is a common multiple of
//! their iteration times (Fig 5), and rotated until no arcs collide; if that can be done they are *compatible*.
//!
//! * [`JobProfile`]: an iteration, as phases of communication and computation.
//! * [`Problem`]: jobs, the links that their communication loads and the GPUs that their computation loads.
//! * [`plan`]: rotations for all jobs that minimise the total overlap, with a proven bound; scores of links; priorities.
//! * [`place`]: the same, with the choice between placements.
//! * [`fluid`]: how long iterations then take, and with each other way of sharing links, by a model without packets.
//!
//! Decisions where the paper leaves room ("the details of the optimization formulation are omitted"):
//!
//! * *Several links* (§5): one rotation for each job, one circle for all jobs that share links, directly or through others. A link whose
//!   jobs could never ask for more than it has connects nobody.
//! * *GPUs* (§5) are resources like links, loaded by computation instead.
//! * *Demands* below the full rate: shares add up, and what exceeds the whole is the overlap. With full demands this is the paper's "at
//!   most one job in each sector".
//! * *Score of a link*: `1 - sum over sectors of max(0, load - 1) / K`.
//! * *Iteration times* that have no small common multiple are lengthened by up to a tolerance, never shortened.
//! * *Sectors* that an arc touches count as filled, so that what is found compatible also is without sectors. In circles in which an
//!   iteration is no whole number of sectors, the job with most rotations stays and the others turn by less than an iteration: what is
//!   proven there is proven for these rotations.

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
