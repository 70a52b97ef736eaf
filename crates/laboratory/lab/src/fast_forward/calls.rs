//! Calls that are under way, and what hosts know of them.

use super::checks::{Checks, Role};
use super::kinds::{CallId, KindId};
use super::limits::FamilySet;
use super::links::Seen;
use super::samples::{Record, SampleKey, Samples};
use super::times::{Shortest, Transfers};
use super::wanted::Wanted;
use clearway_units::{Bytes, FlowId, Span, Time};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeMap;

/// How the messages of a call are transferred.
#[derive(Debug, Clone)]
pub(super) enum Decision {
    /// With packets.
    Simulated(Role),
    Remembered(Record),
}

impl Decision {
    pub(super) fn is_remembered(&self) -> bool {
        matches!(self, Self::Remembered(_))
    }
}

/// What hosts see of the memory. It changes only between rounds.
#[derive(Debug, Default)]
pub(super) struct Snapshot {
    pub(super) open: FxHashMap<CallId, Decision>,
    /// Number of open calls of each kind that has any.
    pub(super) active: BTreeMap<KindId, u32>,
    pub(super) samples: FxHashMap<SampleKey, Samples>,
    /// Error of the remembered calls of each family so far, in picoseconds, for each state of the links.
    pub(super) errors: Vec<f64>,
    /// Calls of each kind that have begun.
    pub(super) begun: FxHashMap<KindId, u64>,
    /// Simulated time.
    pub(super) now: Time,
    pub(super) wanted: Wanted,
    /// Number of open simulated calls, by kind, that count as samples or in checks: calls that overlap them are simulated as well.
    pub(super) looked_at: BTreeMap<KindId, u32>,
    pub(super) checks: Checks,
    pub(super) links: Seen,
}

/// A call that is under way.
#[derive(Debug)]
pub(super) struct OpenCall {
    pub(super) kind: KindId,
    pub(super) beside: FamilySet,
    pub(super) begun: Time,
    /// Number of changes of links before it.
    pub(super) changes: usize,
    /// Its part in a check; `None` if it is remembered.
    pub(super) role: Option<Role>,
    /// True if it counts as a sample or in a check.
    pub(super) is_looked_at: bool,
    /// Events that are still to come: two for each message.
    pub(super) left: u32,
    /// The messages; empty if it is remembered.
    pub(super) transfers: Transfers,
    /// Time beside remembered calls that would disturb it.
    pub(super) shadow: Span,
}

impl OpenCall {
    pub(super) fn is_remembered(&self) -> bool {
        self.role.is_none()
    }
}

/// Event of a message of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Note {
    pub(super) time: Time,
    pub(super) call: CallId,
    pub(super) step: Step,
    pub(super) place: u32,
    pub(super) connection: FlowId,
    pub(super) bytes: Bytes,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Step {
    Posted,
    Received,
    Sent,
}

/// The last arrivals of a family on a connection: the last one, and the last one of another call than that.
#[derive(Debug, Default)]
pub(super) struct Arrivals {
    last: Option<(CallId, Time)>,
    other: Option<Time>,
}

impl Arrivals {
    /// A message of this call has arrived; returns the last arrival of a message of another call before it.
    pub(super) fn note(&mut self, call: CallId, now: Time) -> Option<Time> {
        if let Some((last, time)) = self.last
            && last != call
        {
            self.other = Some(time);
        }
        self.last = Some((call, now));
        self.other
    }
}

/// Counters of a sort.
#[derive(Debug, Default, Clone)]
pub(super) struct Counts {
    pub(super) simulated: u64,
    pub(super) remembered: u64,
    pub(super) void: u64,
    /// Time of void calls beside remembered ones.
    pub(super) shadow: Span,
}

/// The part of the memory that only the conductor uses.
#[derive(Debug, Default)]
pub(super) struct Accounts {
    pub(super) open: BTreeMap<CallId, OpenCall>,
    /// The last arrivals on each connection, by family.
    pub(super) arrivals: FxHashMap<(FlowId, u32), Arrivals>,
    /// Connections that have carried packets of an earlier call.
    pub(super) used: FxHashSet<FlowId>,
    /// The last simulated segment of each call that is cut.
    pub(super) segments: FxHashMap<(u32, u64), u16>,
    pub(super) shortest: Shortest,
    pub(super) sorts: Vec<Counts>,
    /// Bytes of all records.
    pub(super) kept: usize,
    pub(super) verified: u64,
    pub(super) found: f64,
    pub(super) simulated_bytes: Bytes,
    pub(super) remembered_bytes: Bytes,
}
