//! Fast-forward: calls of collectives that repeat are simulated a few times, and take remembered times after that.
//!
//! A job runs the same calls again and again: of each layer, of each micro-batch, of each iteration. A *call* is one occurrence of a
//! [kind](kinds): the same messages between the same ranks. It is *simulated*, with packets, or *remembered*: then each of its messages
//! takes the [transfer times](times) that the same message had in one simulated call, drawn by the seed, and no packets. The ranks still run their
//! programs, so that a rank that comes late to a call delays those that wait for its messages.
//!
//! * Long calls that repeat themselves are cut into [segments], which are calls to all that follows.
//! * A kind is remembered if its simulated calls agree: they are compared by the [level](times::level) of their transfer times, and half the
//!   width of the 95 % confidence interval of the mean level (Student's t) is at most [half](SHARE_OF_ERROR) of the wanted error. Other kinds
//!   are remembered while the error of all remembered calls stays within the same part of the run's time so far: short calls may be less
//!   certain than long ones. The errors of *families*, calls with as many messages and bytes, add up as independent errors do.
//! * Kinds of one *shape* have the same messages between their ranks, on paths of equal lengths. They share their samples.
//! * A kind *disturbs* another one if their messages can cross a common cable, and its calls are not much shorter: it takes bandwidth. If
//!   samples do not agree whatever was beside them, they are kept by the families of disturbing calls that were under way when they began.
//! * A sample is *void* if more than a [part](SHADOW) of its time was beside remembered calls that would disturb it: their packets were
//!   missing. Its kind is then *wanted*: kinds that disturb it are simulated for its next calls.
//!
//! **Determinism.** Hosts decide by a snapshot that changes only between rounds, so that decisions depend neither on threads nor on the order
//! of hosts. The first message of a call decides for all of them.

mod kinds;
mod memory;
mod report;
mod samples;
mod segments;
mod times;

use crate::jobs::Jobs;
use clearway_fabric::TracedRoutes;
use clearway_fabric::topology::PathClass;
use clearway_units::FlowId;
use clearway_workload::JobSpec;
use kinds::{Kinds, MOST_KINDS};
pub(crate) use memory::{Handle, Memory, Wish};
pub use report::{FastForwardReport, RememberedCalls};
pub(crate) use times::LastArrival;

/// Families of calls that are under way, a bit for each; those from 63 on share a bit.
type FamilySet = u64;

/// Part of the wanted error that the confidence interval of a kind's transfer times may take; the rest is for what it does not show: calls
/// that overlap in another way, and paths through the program.
const SHARE_OF_ERROR: f64 = 0.5;
/// Part of a sample's time that may be beside remembered calls.
const SHADOW: f64 = 0.1;
/// Most samples of a kind beside the same families of calls.
const MOST_SAMPLES: usize = 32;
/// Samples that kinds of one shape need at most before they are looked at: those that are over first may be the shortest.
const WAITED_FOR: usize = 16;
/// Most bytes of all remembered times.
const MOST_BYTES: usize = 512 << 20;
/// Most tasks of a call: each open call has a table of its messages.
const MOST_TASKS: u32 = 1 << 22;

/// Reason for which a job is simulated if none of its calls is like another one.
const NOTHING_REPEATED: &str = "none of its calls is repeated";

impl Memory {
    /// A memory for the calls of `jobs`. All of them are simulated if there is a reason in `beside`: something else in the run changes
    /// what calls take.
    pub(crate) fn new(
        jobs: &Jobs,
        routes: (&TracedRoutes<'_>, &dyn Fn(FlowId) -> PathClass),
        wish: Wish,
        beside: Option<&'static str>,
    ) -> Self {
        let declines = |job: &JobSpec| beside.or_else(|| declines(job));
        let mut kinds = Kinds::new(jobs.all(), |job| declines(job).is_some(), routes);
        let without = jobs.all().enumerate();
        let without = without.filter(|(number, _)| !kinds.has_calls(*number));
        let mut declined: Vec<(String, &'static str)> = without
            .map(|(_, (job, _))| (job.label.clone(), declines(job).unwrap_or(NOTHING_REPEATED)))
            .collect();
        if kinds.all.len() > MOST_KINDS {
            declined = jobs
                .all()
                .map(|(job, _)| (job.label.clone(), "the jobs have too many different calls"))
                .collect();
            kinds = Kinds::new(jobs.all(), |_| true, routes);
        }
        Self::with_kinds(kinds, wish, declined)
    }
}

/// Reason for which a job is simulated as a whole.
fn declines(job: &JobSpec) -> Option<&'static str> {
    let calls = kinds::calls_of(job);
    if job
        .plan
        .graph()
        .parallelism
        .is_some_and(|own| own.to_receiver.is_some())
    {
        return Some("its receivers accept a limited number of messages at a time");
    }
    if calls.iter().any(|call| call.tasks > MOST_TASKS) {
        return Some("its calls have too many messages");
    }
    None
}
