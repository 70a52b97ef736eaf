//! The memory of a run: open calls, samples, and decisions.

use super::calls::{Accounts, Counts, Decision, Note, OpenCall, Snapshot, Step};
use super::checks::Role;
use super::kinds::{CallId, KindId, Kinds, MOST_KINDS, calls_of};
use super::limits::{FamilySet, MOST_BYTES, MOST_TASKS, SHADOW, SHARE_OF_ERROR};
use super::report::{FastForwardReport, RememberedCalls};
use super::samples::{NewSample, Samples};
use super::skips::SkippedTime;
use super::times::{Times, Transfer};
use crate::lanes::JobConnections;
use clearway_fabric::TracedRoutes;
use clearway_fabric::topology::PathClass;
use clearway_units::{Bytes, FlowId, MessageId, Span, Time, mix64};
use clearway_workload::JobSpec;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

/// Settings of a memory.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wish {
    /// The wanted error, as a fraction.
    pub(crate) error: f64,
    /// Part of the remembered calls to verify.
    pub(crate) verify: f64,
    pub(crate) seed: u64,
}

/// Memory of a run, which all hosts share.
#[derive(Debug)]
pub(crate) struct Memory {
    kinds: Kinds,
    wish: Wish,
    snapshot: RwLock<Snapshot>,
    notes: Mutex<Vec<Note>>,
    /// True if there are notes.
    has_notes: AtomicBool,
    accounts: Mutex<Accounts>,
    declined_jobs: Vec<(String, &'static str)>,
}

/// A host's way to the memory.
pub(crate) type Handle = Arc<Memory>;

impl Memory {
    /// A memory for the calls of `jobs`. All of them are simulated if there is a reason in `beside`: something else in the run changes
    /// what calls take.
    pub(crate) fn new(
        jobs: &[(&JobSpec, &JobConnections)],
        routes: (&TracedRoutes<'_>, &dyn Fn(FlowId) -> PathClass),
        wish: Wish,
        beside: Option<&'static str>,
    ) -> Self {
        let of_job = |job: &JobSpec| beside.or_else(|| declines(job));
        let mut kinds = Kinds::new(jobs.iter().copied(), |job| of_job(job).is_some(), routes);
        let without = jobs.iter().enumerate();
        let without = without.filter(|(number, _)| !kinds.has_calls(*number));
        let mut declined: Vec<(String, &'static str)> = without
            .map(|(_, (job, _))| (job.label.clone(), of_job(job).unwrap_or(NOTHING_REPEATED)))
            .collect();
        if kinds.all.len() > MOST_KINDS {
            declined = jobs
                .iter()
                .map(|(job, _)| (job.label.clone(), "the jobs have too many different calls"))
                .collect();
            kinds = Kinds::new(jobs.iter().copied(), |_| true, routes);
        }
        Self::with_kinds(kinds, wish, declined)
    }

    fn with_kinds(kinds: Kinds, wish: Wish, declined_jobs: Vec<(String, &'static str)>) -> Self {
        let accounts = Accounts {
            sorts: vec![Counts::default(); kinds.sorts.len()],
            ..Accounts::default()
        };
        let snapshot = Snapshot {
            errors: vec![0.0; kinds.families.len()],
            ..Snapshot::default()
        };
        Self {
            kinds,
            wish,
            snapshot: RwLock::new(snapshot),
            notes: Mutex::default(),
            has_notes: AtomicBool::new(false),
            accounts: Mutex::new(accounts),
            declined_jobs,
        }
    }

    /// True if a job has calls that may be remembered.
    pub(crate) fn has_calls(&self) -> bool {
        self.kinds.are_any()
    }

    /// The settings.
    pub(crate) fn wish(&self) -> &Wish {
        &self.wish
    }

    /// A message is posted. Returns the family of its call, and its transfer times if it takes no packets; `None` if it belongs to no call.
    pub(crate) fn on_post(
        &self,
        now: Time,
        (connection, message): (FlowId, MessageId),
        bytes: Bytes,
    ) -> Option<(u32, Option<Times>)> {
        let (call, place) = self.kinds.call(connection, message)?;
        let family = self.kinds.all[self.kinds.kind_of(call) as usize].family;
        let snapshot = self.snapshot.read().unwrap_or_else(PoisonError::into_inner);
        let decision = self.decide(&snapshot, call).0;
        drop(snapshot);
        self.note(Note {
            time: now,
            call,
            step: Step::Posted,
            place,
            connection,
            bytes,
        });
        Some(match decision {
            Decision::Simulated(_) => (family, None),
            Decision::Remembered(record) => (family, Some(record[place as usize])),
        })
    }

    /// A message has arrived.
    pub(crate) fn on_received(&self, now: Time, connection: FlowId, message: MessageId) {
        self.note_step(now, (connection, message), Step::Received);
    }

    /// A message is acknowledged.
    pub(crate) fn on_sent(&self, now: Time, connection: FlowId, message: MessageId) {
        self.note_step(now, (connection, message), Step::Sent);
    }

    fn note_step(&self, time: Time, (connection, message): (FlowId, MessageId), step: Step) {
        if let Some((call, place)) = self.kinds.call(connection, message) {
            self.note(Note {
                time,
                call,
                step,
                place,
                connection,
                bytes: Bytes::ZERO,
            });
        }
    }

    fn note(&self, note: Note) {
        let mut notes = self.notes.lock().unwrap_or_else(PoisonError::into_inner);
        notes.push(note);
        drop(notes);
        self.has_notes.store(true, Ordering::Relaxed);
    }

    /// How a call is transferred, and the families of calls that are under way beside it. It depends on the snapshot alone.
    fn decide(&self, snapshot: &Snapshot, call: CallId) -> (Decision, FamilySet) {
        if let Some(decision) = snapshot.open.get(&call) {
            return (decision.clone(), 0);
        }
        let kind = self.kinds.kind_of(call);
        let beside = self.beside(snapshot, call, kind);
        if let Some(role) = snapshot.checks.role(kind) {
            return (Decision::Simulated(role), beside);
        }
        let simulated = (Decision::Simulated(Role::Outside), beside);
        let looked_at = snapshot.wanted.keys().chain(snapshot.looked_at.keys());
        if looked_at
            .filter(|&&other| !self.kinds.are_of_one_call(kind, other))
            .any(|&other| self.kinds.overlap(kind, other))
        {
            return simulated;
        }
        let own = &self.kinds.all[kind as usize];
        let samples = snapshot.samples.get(&own.shape);
        let allowed = samples.filter(|samples| {
            samples.are_agreed(beside)
                || self.is_within(snapshot, own.family, samples.error(Some(beside)))
        });
        let Some(samples) = allowed else {
            return simulated;
        };
        let draw = [u64::from(call.0), call.1, u64::from(call.2)];
        let draw = draw
            .iter()
            .fold(self.wish.seed, |hash, part| mix64(hash ^ mix64(*part)));
        // Each of them comes with the next call of its kind.
        if (mix64(draw) as f64) < self.wish.verify / 2.0 * u64::MAX as f64 {
            return (Decision::Simulated(Role::Verified), beside);
        }
        match samples.draw(beside, draw) {
            Some(record) => (Decision::Remembered(record), beside),
            None => simulated,
        }
    }

    /// True if the run is within its error although the remembered calls of a kind of this family may be wrong by so many picoseconds.
    /// Kinds of a family are under way together, and the errors of families are independent.
    fn is_within(&self, snapshot: &Snapshot, family: u32, error: Option<f64>) -> bool {
        let Some(error) = error else {
            return false;
        };
        let errors = (0..).zip(&snapshot.errors);
        let squares = errors.map(|(other, &own)| match other == family {
            true => own.max(error),
            false => own,
        });
        let together = squares.map(|error| error * error).sum::<f64>().sqrt();
        together <= self.wish.error * SHARE_OF_ERROR * snapshot.now.as_ps() as f64
    }

    /// Families of the open calls that disturb a call of this kind. Of its own family, only other calls of the same kind count: its kinds
    /// begin together, in any order.
    fn beside(&self, snapshot: &Snapshot, call: CallId, kind: KindId) -> FamilySet {
        let family = self.kinds.all[kind as usize].family;
        let others = snapshot.active.keys().copied();
        let others = others.filter(|&other| self.kinds.disturbs(other, kind));
        let of_others = |other: KindId| match self.kinds.all[other as usize].family == family {
            true => self.kinds.are_of_one_call(other, kind) && self.is_another(snapshot, call),
            false => true,
        };
        let others = others.filter(|&other| of_others(other));
        others.fold(0, |all, other| all | self.kinds.bit(other))
    }

    /// True if another call of the same kind is open. Segments of a call are one call.
    fn is_another(&self, snapshot: &Snapshot, call: CallId) -> bool {
        let kind = self.kinds.kind_of(call);
        let mut others = snapshot.open.keys();
        others.any(|other| {
            (other.0, other.1) != (call.0, call.1)
                && self.kinds.are_of_one_call(self.kinds.kind_of(*other), kind)
        })
    }

    /// Takes note of what has happened in a round. Called between rounds.
    pub(crate) fn between_rounds(&self) {
        if !self.has_notes.swap(false, Ordering::Relaxed) {
            return;
        }
        let mut notes = self.notes.lock().unwrap_or_else(PoisonError::into_inner);
        let mut notes = std::mem::take(&mut *notes);
        notes.sort_unstable();
        let mut accounts = self.accounts.lock().unwrap_or_else(PoisonError::into_inner);
        let snapshot = &mut *self
            .snapshot
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        // Hosts have decided by the snapshot as it is now, before any change.
        let is_new =
            |note: &&Note| note.step == Step::Posted && !snapshot.open.contains_key(&note.call);
        let mut new: BTreeMap<CallId, (Time, Decision, FamilySet)> = BTreeMap::new();
        for note in notes.iter().filter(is_new) {
            new.entry(note.call).or_insert_with(|| {
                let (decision, beside) = self.decide(snapshot, note.call);
                (note.time, decision, beside)
            });
        }
        for (call, (begun, decision, beside)) in new {
            self.open(&mut accounts, snapshot, (call, begun), (decision, beside));
        }
        if let Some(last) = notes.last() {
            snapshot.wanted.retain(|_, (_, until)| *until > last.time);
        }
        for note in notes {
            snapshot.now = note.time;
            self.account(&mut accounts, snapshot, note);
        }
    }

    fn open(
        &self,
        accounts: &mut Accounts,
        snapshot: &mut Snapshot,
        (call, begun): (CallId, Time),
        (decision, beside): (Decision, FamilySet),
    ) {
        let kind = self.kinds.kind_of(call);
        let own = &self.kinds.all[kind as usize];
        let role = self.role(accounts, call, &decision);
        let counts = &mut accounts.sorts[own.sort as usize];
        *snapshot.begun.entry(kind).or_default() += 1;
        let samples = snapshot.samples.get_mut(&own.shape);
        let is_looked_at = match role {
            Some(Role::Outside) => !samples.as_ref().is_some_and(|own| own.are_enough(beside)),
            Some(_) => true,
            None => false,
        };
        let places = match role {
            Some(_) => own.places as usize,
            None => 0,
        };
        match role {
            Some(role) => {
                counts.simulated += 1;
                match role {
                    Role::Outside => {}
                    Role::Verified => snapshot.checks.verify(kind),
                    Role::First | Role::Compared => snapshot.checks.begin(kind),
                }
            }
            None => {
                counts.remembered += 1;
                if let Some(samples) = samples {
                    samples.note_remembered(beside);
                    let error = &mut snapshot.errors[own.family as usize];
                    *error = error.max(samples.error(None).unwrap_or(0.0));
                }
                let begun = snapshot.begun[&kind];
                let alike = self.kinds.checked(own.family);
                snapshot.checks.note_remembered(own.family, begun, alike);
            }
        }
        accounts.open.insert(
            call,
            OpenCall {
                kind,
                beside,
                begun,
                role,
                is_looked_at,
                left: own.messages * 2,
                transfers: vec![None; places],
                shadow: Span::ZERO,
            },
        );
        *snapshot.active.entry(kind).or_default() += 1;
        if is_looked_at {
            *snapshot.looked_at.entry(kind).or_default() += 1;
        }
        snapshot.open.insert(call, decision);
    }

    /// The part in a check of a call that begins; `None` if it is remembered.
    fn role(&self, accounts: &mut Accounts, call: CallId, decision: &Decision) -> Option<Role> {
        let (job, number, segment) = call;
        let known = match self.kinds.is_followed(call) && !decision.is_remembered() {
            true => accounts.segments.insert((job, number), segment),
            false => accounts.segments.remove(&(job, number)),
        };
        // Segments follow one another, and not the segments of other calls of their kind.
        let follows = known.map(|before| before + 1) == Some(segment);
        match decision {
            Decision::Remembered(_) => None,
            Decision::Simulated(Role::First | Role::Compared) if segment > 0 => {
                Some(match follows {
                    true => Role::Compared,
                    false => Role::First,
                })
            }
            Decision::Simulated(role) => Some(*role),
        }
    }

    fn account(&self, accounts: &mut Accounts, snapshot: &mut Snapshot, note: Note) {
        let Some(open) = accounts.open.get_mut(&note.call) else {
            return;
        };
        let place = note.place as usize;
        if note.step == Step::Posted {
            match open.is_remembered() {
                true => accounts.remembered_bytes += note.bytes,
                false => {
                    open.transfers[place] = Some(Transfer {
                        connection: note.connection,
                        bytes: note.bytes,
                        posted: note.time,
                        received: note.time,
                        sent: note.time,
                        before: None,
                    });
                    accounts.simulated_bytes += note.bytes;
                }
            }
            return;
        }
        let mut before = None;
        if note.step == Step::Received {
            let family = self.kinds.all[open.kind as usize].family;
            let arrivals = accounts.arrivals.entry((note.connection, family));
            before = arrivals.or_default().note(note.call, note.time);
        }
        if let Some(Some(transfer)) = open.transfers.get_mut(place) {
            match note.step {
                Step::Received => {
                    transfer.received = note.time;
                    transfer.before = before;
                }
                _ => transfer.sent = note.time,
            }
        }
        open.left -= 1;
        if open.left == 0
            && let Some(open) = accounts.open.remove(&note.call)
        {
            snapshot.open.remove(&note.call);
            count_down(&mut snapshot.active, open.kind);
            if open.is_looked_at {
                count_down(&mut snapshot.looked_at, open.kind);
            }
            self.close(accounts, snapshot, (note.call, open), note.time);
        }
    }

    /// A call is over.
    fn close(
        &self,
        accounts: &mut Accounts,
        snapshot: &mut Snapshot,
        (id, mut call): (CallId, OpenCall),
        now: Time,
    ) {
        self.shade(accounts, (id, &mut call), now);
        let Some(role) = call.role else {
            return;
        };
        accounts.shortest.note(&call.transfers);
        let connections = call.transfers.iter().flatten();
        let mut is_used = true;
        for own in connections {
            is_used &= !accounts.used.insert(own.connection);
        }
        let kind = call.kind;
        let span = now - call.begun;
        let is_void = call.shadow.as_ps() as f64 > SHADOW * span.as_ps() as f64;
        let shape = self.kinds.all[kind as usize].shape;
        let kinds = self.kinds.kinds_of_shape[shape as usize];
        let samples = snapshot.samples.entry(shape);
        let samples = samples.or_insert_with(|| Samples::new(kinds, self.kinds.measure(kind)));
        if role == Role::Compared && !is_void && samples.check(&call.transfers, call.beside) {
            accounts.verified += 1;
            snapshot.checks.note_compared(kind);
            accounts.found = accounts.found.max(samples.drift());
            let family = self.kinds.all[kind as usize].family;
            let error = &mut snapshot.errors[family as usize];
            *error = error.max(samples.error(None).unwrap_or(0.0));
            if samples.has_changed(self.wish.error) {
                accounts.kept -= samples.forget();
                snapshot.checks.restart(family);
            }
        }
        let counts = &mut accounts.sorts[self.kinds.all[kind as usize].sort as usize];
        if is_void {
            counts.void += 1;
            counts.shadow += call.shadow.min(span);
        } else if is_used && accounts.kept < MOST_BYTES {
            let sample = NewSample {
                call: &call.transfers,
                span: span.as_ps() as f64,
                beside: call.beside,
            };
            accounts.kept += samples.add(&sample, &accounts.shortest, self.wish.error);
        }
        if samples.are_enough(call.beside) {
            // Kinds of a shape share their samples.
            let kinds = &self.kinds.all;
            snapshot
                .wanted
                .retain(|&other, _| kinds[other as usize].shape != shape);
        }
        let lacks = is_void && !samples.are_enough(call.beside);
        self.update_wanted(snapshot, kind, lacks, (now, span));
    }

    /// Counts the time that calls spent beside the remembered ones that would have disturbed them, up to the end of `call`.
    fn shade(&self, accounts: &mut Accounts, (id, call): (CallId, &mut OpenCall), now: Time) {
        for (other_id, other) in &mut accounts.open {
            // Segments of a call follow one another.
            let are_one = (other_id.0, other_id.1) == (id.0, id.1);
            if are_one || other.is_remembered() == call.is_remembered() {
                continue;
            }
            let together = now - other.begun.max(call.begun);
            let (shadowed, remembered) = match call.is_remembered() {
                true => (other, call.kind),
                false => (&mut *call, other.kind),
            };
            if self.kinds.disturbs(remembered, shadowed.kind) {
                shadowed.shadow += together;
            }
        }
    }

    /// Updates the wanted kinds at the end of a simulated call of this kind, which lacks samples or not.
    fn update_wanted(
        &self,
        snapshot: &mut Snapshot,
        kind: KindId,
        lacks_samples: bool,
        (now, span): (Time, Span),
    ) {
        let begun = snapshot.begun.get(&kind).copied().unwrap_or(0);
        let is_last = begun >= self.kinds.all[kind as usize].calls;
        let until = now + span * SPANS_OF_WANTED;
        let left = snapshot.wanted.get(&kind).map(|(left, _)| *left);
        match left {
            Some(2..) if !is_last => {
                snapshot
                    .wanted
                    .entry(kind)
                    .and_modify(|own| *own = (own.0 - 1, until));
            }
            None if lacks_samples && !is_last => {
                snapshot.wanted.insert(kind, (CALLS_OF_WANTED, until));
            }
            _ => {
                snapshot.wanted.remove(&kind);
            }
        }
    }

    /// Report on a run that has simulated this time.
    pub(crate) fn report(&self, simulated: Time) -> FastForwardReport {
        let accounts = self.accounts.lock().unwrap_or_else(PoisonError::into_inner);
        let snapshot = self.snapshot.read().unwrap_or_else(PoisonError::into_inner);
        let mut calls: Vec<RememberedCalls> = Vec::new();
        for (sort, counts) in self.kinds.sorts.iter().zip(&accounts.sorts) {
            calls.push(RememberedCalls {
                ranks: sort.ranks,
                messages: sort.messages,
                bytes: sort.bytes,
                simulated: counts.simulated,
                remembered: counts.remembered,
                void: counts.void,
                ..RememberedCalls::default()
            });
        }
        for kind in &self.kinds.all {
            let sort = &mut calls[kind.sort as usize];
            sort.kinds += 1;
            let samples = snapshot.samples.get(&kind.shape);
            sort.declined += u32::from(samples.is_some_and(Samples::disagree));
        }
        let squares = snapshot.errors.iter().map(|error| error * error);
        // Half of the time that void calls spent beside remembered ones: they may have lost half of their bandwidth.
        let kinds = calls.iter().map(|sort| f64::from(sort.kinds.max(1)));
        let shadows = accounts.sorts.iter().zip(kinds);
        let shadows = shadows.map(|(counts, kinds)| counts.shadow.as_ps() as f64 / kinds / 2.0);
        let simulated = (simulated.as_ps() as f64).max(1.0);
        // Calls of a family that are under way together may add up to more than the run.
        let errors = squares.sum::<f64>().sqrt() + shadows.sum::<f64>();
        let errors = (errors / simulated).min(1.0);
        // What no sample shows: calls that overlap in another way, and paths through the program.
        let unseen = match accounts.remembered_bytes == Bytes::ZERO {
            true => 0.0,
            false => self.wish.error * (1.0 - SHARE_OF_ERROR),
        };
        FastForwardReport {
            wanted: self.wish.error,
            estimated: errors + unseen,
            calls,
            verified: accounts.verified,
            found: accounts.found,
            simulated_bytes: accounts.simulated_bytes,
            remembered_bytes: accounts.remembered_bytes,
            skipped: SkippedTime::default(),
            no_skips: None,
            declined_jobs: self.declined_jobs.clone(),
        }
    }
}

/// Counts one less of a kind.
fn count_down(counts: &mut BTreeMap<KindId, u32>, kind: KindId) {
    if let Some(count) = counts.get_mut(&kind) {
        *count -= 1;
        if *count == 0 {
            counts.remove(&kind);
        }
    }
}

/// Calls of a wanted kind for which the kinds that overlap it are simulated.
const CALLS_OF_WANTED: u32 = 4;
/// A kind is wanted no longer if none of its calls is over for so many times as long as the last one took.
const SPANS_OF_WANTED: u64 = 8;

/// Reason for which a job is simulated if none of its calls is like another one.
const NOTHING_REPEATED: &str = "none of its calls is repeated";

/// Reason for which a job is simulated as a whole.
fn declines(job: &JobSpec) -> Option<&'static str> {
    let calls = calls_of(job);
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
