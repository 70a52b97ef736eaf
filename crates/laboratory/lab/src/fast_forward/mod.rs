//! Fast-forward: calls of collectives that repeat are simulated a few times, and take remembered times after that.
//!
//! A job runs the same calls again and again: of each layer, of each micro-batch, of each iteration. A *call* is one occurrence of a
//! [kind](kinds): the same messages between the same ranks. It is *simulated*, with packets, or *remembered*: then each of its messages
//! takes the [transfer times](times) that the same message had in one simulated call, drawn by the seed, and no packets. The ranks still
//! run their programs, so that a rank that comes late to a call delays those that wait for its messages.
//!
//! * Long calls that repeat themselves are cut into [segments], which are calls to all that follows.
//! * A kind is remembered if its simulated calls agree: they are compared by the [level](times::level) of their transfer times, and half
//!   the width of the 95 % confidence interval of the mean level (Student's t) is at most [half](limits::SHARE_OF_ERROR) of the wanted
//!   error. Other kinds are remembered while the error of all remembered calls stays within the same part of the run's time so far: short
//!   calls may be less certain than long ones. The errors of *families*, calls with as many messages and bytes, add up as independent
//!   errors do. Of calls beside none of other families, the time of the call [as a whole](times::together) must agree as well.
//! * Kinds of one *shape* have the same messages between their ranks, on paths of equal lengths. They share their samples.
//! * A kind *disturbs* another one if their messages can cross a common cable, and its calls are not much shorter: it takes bandwidth. If
//!   samples do not agree whatever was beside them, they are kept by the families of disturbing calls that were under way when they
//!   began.
//! * A sample is *void* if more than a [part](limits::SHADOW) of its time was beside remembered calls that would disturb it: their
//!   packets were missing. Its kind is then *wanted*: kinds that overlap it are simulated for its next calls. While a call that counts is
//!   open, calls that begin and overlap it are simulated as well.
//! * What is remembered is [checked](checks): controllers may settle over many calls.
//! * A message with packets that is posted behind remembered ones waits in the [outbox](outbox) until those have left, as it would behind
//!   their packets. Without that, the call would find an empty connection, and send beside what it should follow.
//!
//! * When [links] change, what was remembered holds no longer, until they are as they were.
//!
//! A call on connections that carry their first messages is no sample: their windows are small.
//!
//! Long flows outside jobs are [skipped](skips) through while they are steady.
//!
//! **Determinism.** Hosts decide by a snapshot that changes only between rounds, so that decisions depend neither on threads nor on the
//! order of hosts. The first message of a call decides for all of them.

mod calls;
mod checks;
mod kinds;
mod limits;
mod link_clock;
mod links;
mod memory;
mod on_top;
mod outbox;
mod report;
mod samples;
mod segments;
mod skips;
mod steady;
mod times;
mod wanted;

pub(crate) use limits::Wish;
pub(crate) use link_clock::LinkClock;
pub(crate) use links::LinkStates;
pub(crate) use memory::{Handle, Memory};
pub(crate) use on_top::OnTop;
pub(crate) use outbox::Outbox;
pub use report::{FastForwardReport, RememberedCalls};
pub use skips::SkippedTime;
pub(crate) use skips::{SkipWish, SteadySkips};
