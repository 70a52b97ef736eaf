//! Who sends what to whom, and when: flows with their triggers.
//!
//! * A [`Workload`] is a list of [`FlowSpec`]s and of triggers between them, and [`Workload::check`] proves before a run that each
//!   of its flows will start.
//! * [`Triggers`] is the state machine that a simulator drives: an activation in, flows to start out.

mod check;
mod error;
mod flow;
mod trigger;

pub use error::{FileError, FileWarning, FlowName, Subject, WorkloadError};
pub use flow::{FlowSpec, Start, TriggerIndex, TriggerKind, TriggerSpec, Workload};
pub use trigger::{Trigger, Triggers};
