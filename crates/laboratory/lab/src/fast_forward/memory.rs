//! The memory of a run: open calls, samples, and decisions.

use super::calls::{Accounts, Counts, Decision, Note, OpenCall, Snapshot, Step};
use super::checks::Role;
use super::kinds::{CallId, KindId, Kinds, MOST_KINDS, calls_of};
use super::limits::{
    FamilySet, MOST_BYTES, MOST_TASKS, SHADOW, SHARE_OF_ERROR, TIME_TO_CHANGE, Wish,
};
use super::links::{LinkStates, Seen};
use super::report::FastForwardReport;
use super::samples::{NewSample, Samples, Shape};
use super::times::{Times, Transfer};
use crate::lanes::JobConnections;
use clearway_fabric::TracedRoutes;
use clearway_fabric::topology::PathClass;
use clearway_units::{Bytes, FlowId, MessageId, Span, Time, mix64};
use clearway_workload::JobSpec;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

/// Memory of a run, which all hosts share.
#[derive(Debug)]
pub(crate) struct Memory {
    kinds: Kinds,
    wish: Wish,
    links: LinkStates,
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
    /// A memory for the calls of `jobs` while links have these states. All of them are simulated if there is a reason in `beside`:
    /// something else in the run changes what calls take.
    pub(crate) fn new(
        jobs: &[(&JobSpec, &JobConnections)],
        routes: (&TracedRoutes<'_>, &dyn Fn(FlowId) -> PathClass),
        (wish, links): (Wish, LinkStates),
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
        Self::with_kinds(kinds, (wish, links), declined)
    }

    fn with_kinds(
        kinds: Kinds,
        (wish, links): (Wish, LinkStates),
        declined_jobs: Vec<(String, &'static str)>,
    ) -> Self {
        let accounts = Accounts {
            sorts: vec![Counts::default(); kinds.sorts.len()],
            ..Accounts::default()
        };
        let snapshot = Snapshot {
            errors: vec![0.0; kinds.families.len() * links.count()],
            ..Snapshot::default()
        };
        Self {
            kinds,
            wish,
            links,
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

    /// The states of the links.
    pub(super) fn links(&self) -> &LinkStates {
        &self.links
    }

    /// Hosts know this of the links from now on. Called between rounds.
    pub(super) fn see_links(&self, seen: Seen) {
        let snapshot = self.snapshot.write();
        let mut snapshot = snapshot.unwrap_or_else(PoisonError::into_inner);
        if seen.changes != snapshot.links.changes {
            let accounts = self.accounts.lock();
            let mut accounts = accounts.unwrap_or_else(PoisonError::into_inner);
            accounts.used.clear();
        }
        snapshot.links = seen;
    }

    /// What samples of a kind are of, while the links are in this state.
    fn shape(&self, kind: KindId, state: u32) -> Shape {
        let kinds = match state {
            0 => self.kinds.kinds_of_shape[self.kinds.all[kind as usize].shape as usize],
            _ => 1,
        };
        Shape {
            kinds,
            measure: self.kinds.measure(kind),
            most: self.wish.error * SHARE_OF_ERROR,
            family: self.kinds.family_of(kind),
        }
    }

    /// Place of the error of a family's calls while the links are in this state.
    fn place_of_error(&self, family: u32, state: u32) -> usize {
        state as usize * self.kinds.families.len() + family as usize
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
        let looked_at = snapshot.looked_at.keys().copied();
        if looked_at
            .chain(snapshot.wanted.kinds())
            .filter(|&other| !self.kinds.are_of_one_call(kind, other))
            .any(|other| self.kinds.overlap(kind, other))
        {
            return simulated;
        }
        let own = &self.kinds.all[kind as usize];
        let samples = snapshot
            .samples
            .get(&self.kinds.key(kind, snapshot.links.state));
        let allowed = samples.filter(|samples| {
            !is_near_change(snapshot, samples, beside)
                && (samples.are_agreed(beside)
                    || self.is_within(snapshot, own.family, samples.error(Some(beside))))
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
        let place = self.place_of_error(family, snapshot.links.state);
        let errors = snapshot.errors.iter().enumerate();
        let squares = errors.map(|(other, &own)| match other == place {
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
            snapshot.wanted.expire(last.time);
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
        let key = self.kinds.key(kind, snapshot.links.state);
        let is_known = snapshot.samples.get(&key).is_some_and(|samples| {
            samples.are_enough(beside) && !is_near_change(snapshot, samples, beside)
        });
        let is_looked_at = match role {
            Some(Role::Outside) => !is_known,
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
                let place = self.place_of_error(own.family, snapshot.links.state);
                if let Some(samples) = snapshot.samples.get_mut(&key) {
                    samples.note_remembered(beside);
                    let error = &mut snapshot.errors[place];
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
                changes: snapshot.links.changes,
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
        let Some(role) = self.counts(accounts, snapshot, (&call, now)) else {
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
        let state = snapshot.links.state;
        let (key, shape) = (self.kinds.key(kind, state), self.shape(kind, state));
        let samples = snapshot.samples.entry(key);
        let samples = samples.or_insert_with(|| Samples::new(shape));
        samples.note_simulated(call.beside);
        if role == Role::Compared && !is_void && samples.check(&call.transfers, call.beside) {
            accounts.verified += 1;
            snapshot.checks.note_compared(kind);
            accounts.found = accounts.found.max(samples.drift());
            let family = self.kinds.all[kind as usize].family;
            let error = &mut snapshot.errors[self.place_of_error(family, state)];
            *error = error.max(samples.error(None).unwrap_or(0.0));
            if samples.has_changed() {
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
            accounts.kept += samples.add(&sample, &accounts.shortest);
        }
        if samples.are_enough(call.beside) {
            // Kinds of a shape share their samples.
            snapshot
                .wanted
                .forget(|other| self.kinds.key(other, state) == key);
        }
        let lacks = is_void && !samples.are_enough(call.beside);
        let begun = snapshot.begun.get(&kind).copied().unwrap_or(0);
        let is_last = begun >= self.kinds.all[kind as usize].calls;
        snapshot.wanted.note((kind, is_last), lacks, (now, span));
    }

    /// The part in a check of a call that is over; `None` if it says nothing, because it is remembered, or because links have changed.
    fn counts(
        &self,
        accounts: &mut Accounts,
        snapshot: &Snapshot,
        (call, now): (&OpenCall, Time),
    ) -> Option<Role> {
        let have_changed = call.changes != snapshot.links.changes;
        if have_changed && call.is_remembered() {
            // All of the time after the change is unknown, and half of it counts.
            let kind = &self.kinds.all[call.kind as usize];
            let counts = &mut accounts.sorts[kind.sort as usize];
            counts.shadow += now.since(self.links.time_of(call.changes)) * 2;
        }
        call.role.filter(|_| !have_changed)
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

    /// Report on a run that has simulated this time.
    pub(crate) fn report(&self, simulated: Time) -> FastForwardReport {
        let accounts = self.accounts.lock().unwrap_or_else(PoisonError::into_inner);
        let snapshot = self.snapshot.read().unwrap_or_else(PoisonError::into_inner);
        FastForwardReport::of_calls((&self.kinds, &accounts, &snapshot), (&self.wish, simulated))
            .declining(self.declined_jobs.clone())
    }
}

/// True if the links may change before a call beside these calls is over.
fn is_near_change(snapshot: &Snapshot, samples: &Samples, beside: FamilySet) -> bool {
    samples.span(beside) > snapshot.links.until_change / TIME_TO_CHANGE
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
