//! Runs that are to be done, whoever carries them out: which wait, which other processes are at, what failed and how long all takes.

use super::estimate::{Estimates, Spent};
use super::progress::{SweepExecution, SweepProgress};
use crate::clock;
use crate::points::{RunKey, Sweep};
use crate::store::{Claim, Claimed, Failed, Store, StoreError};
use clearway_lab::Laboratory;
use std::collections::{BTreeMap, VecDeque};
use std::path::Path;
use std::time::{Duration, Instant};

/// Time between two looks at runs that other processes are at.
const LOOK: Duration = Duration::from_millis(500);

/// What runs are carried out with.
#[derive(Clone, Copy)]
pub(super) struct Setting<'a> {
    pub(super) sweep: &'a Sweep,
    pub(super) laboratory: &'a Laboratory,
    pub(super) store: &'a Store,
    /// Told what went wrong with a run: its place in the sweep, and the reason.
    pub(super) on_failure: &'a dyn Fn(usize, &str),
}

impl Setting<'_> {
    fn key(&self, place: usize) -> RunKey {
        self.sweep.runs[place].key
    }
}

/// A run that this process has claimed.
pub(super) struct ClaimedRun {
    pub(super) place: usize,
    /// The resolved scenario.
    pub(super) text: String,
    pub(super) claim: HeldClaim,
    /// Memory that it may come to take.
    pub(super) memory: u64,
}

/// A claim with its heartbeat.
pub(super) struct HeldClaim {
    claim: Claim,
    since: Instant,
    beaten: Instant,
}

impl HeldClaim {
    fn new(claim: Claim) -> Self {
        let now = clock::now();
        Self {
            claim,
            since: now,
            beaten: now,
        }
    }

    /// Wall seconds since it was made.
    pub(super) fn seconds(&self) -> f64 {
        self.since.elapsed().as_secs_f64()
    }

    /// Says that its owner lives, if it has not said so for a while.
    pub(super) fn beat(&mut self) {
        if self.beaten.elapsed() >= crate::store::HEARTBEAT {
            self.beaten = clock::now();
            self.claim.beat();
        }
    }
}

/// The runs of an execution.
pub(super) struct Queue {
    /// Runs that nobody is known to be at, in order.
    pending: VecDeque<usize>,
    /// Runs that other processes are at.
    elsewhere: Vec<usize>,
    /// Runs that are tried once more, whatever others found out.
    again: Vec<usize>,
    /// Failures of former executions, which are tried again.
    former: BTreeMap<RunKey, Failed>,
    pub(super) estimates: Estimates,
    started: Instant,
    looked: Instant,
    /// Of the open runs those that other processes were at, at the last look.
    others_at_once: usize,
    total: usize,
    pub(super) outcome: SweepExecution,
}

impl Queue {
    /// The runs at the places `chosen` that are not done yet.
    pub(super) fn new(sweep: &Sweep, store: &Store, chosen: &[usize]) -> Result<Self, StoreError> {
        let finished = store.finished()?;
        let mut estimates = Estimates::new(sweep);
        let is_finished = |at: &usize| finished.contains(&sweep.runs[*at].key);
        let (known, pending): (Vec<usize>, Vec<usize>) =
            chosen.iter().partition(|at| is_finished(at));
        if !pending.is_empty() {
            for at in (0..sweep.runs.len()).filter(is_finished) {
                // What cannot be read teaches nothing here, and is an error where results are put together.
                if let Ok(summary) = store.summary(sweep.runs[at].key) {
                    estimates.learn(at, Spent::of(&summary));
                }
            }
        }
        let now = clock::now();
        Ok(Self {
            former: store.failures()?,
            total: chosen.len(),
            outcome: SweepExecution {
                known: known.len(),
                ..SweepExecution::default()
            },
            pending: pending.into(),
            elsewhere: Vec::new(),
            again: Vec::new(),
            estimates,
            started: now,
            looked: now,
            others_at_once: 0,
        })
    }

    /// The run that is next, if nobody is at it.
    pub(super) fn next(&self) -> Option<usize> {
        self.pending.front().copied()
    }

    /// True if no run waits, and other processes are at none.
    pub(super) fn is_empty(&self) -> bool {
        self.pending.is_empty() && self.elsewhere.is_empty()
    }

    /// Takes the next run out and claims it; `None` if another process did it or is at it, or if it cannot be begun.
    pub(super) fn claim_next(
        &mut self,
        setting: Setting<'_>,
    ) -> Result<Option<ClaimedRun>, StoreError> {
        let Some(place) = self.pending.pop_front() else {
            return Ok(None);
        };
        if self.is_settled(setting, place)? {
            return Ok(None);
        }
        let claim = match setting.store.claim(setting.key(place))? {
            Claimed::Ours(claim) => HeldClaim::new(claim),
            Claimed::Theirs { .. } => {
                self.elsewhere.push(place);
                return Ok(None);
            }
        };
        // Whoever had the claim may have done it since.
        if self.is_settled(setting, place)? {
            return Ok(None);
        }
        let run = &setting.sweep.runs[place];
        match setting.sweep.experiment(setting.laboratory, run) {
            Ok(experiment) => Ok(Some(ClaimedRun {
                place,
                text: experiment.resolved(),
                claim,
                memory: self.estimates.memory(place),
            })),
            Err(error) => {
                self.fail(setting, place, &error.to_string())?;
                Ok(None)
            }
        }
    }

    /// True if another process did the run, or found that it fails, since this one began; counts it then.
    fn is_settled(&mut self, setting: Setting<'_>, place: usize) -> Result<bool, StoreError> {
        let (store, key) = (setting.store, setting.key(place));
        if store.is_finished(key) {
            if let Ok(summary) = store.summary(key) {
                self.estimates.learn(place, Spent::of(&summary));
            }
            self.outcome.by_others += 1;
            return Ok(true);
        }
        let failure = store.failure(key);
        let is_new = failure
            .as_ref()
            .is_some_and(|failure| self.former.get(&key) != Some(failure));
        if let (true, Some(failure), false) = (is_new, failure, self.is_tried_again(place)) {
            (setting.on_failure)(place, &failure.reason);
            self.outcome.failed.push(place);
            return Ok(true);
        }
        Ok(false)
    }

    /// Puts the results in `folder` in place as those of a run.
    pub(super) fn publish(
        &mut self,
        setting: Setting<'_>,
        (place, folder): (usize, &Path),
        spent: Spent,
    ) -> Result<(), StoreError> {
        setting.store.publish(setting.key(place), folder)?;
        self.estimates.learn(place, spent);
        self.outcome.done += 1;
        Ok(())
    }

    /// Records that a run failed.
    pub(super) fn fail(
        &mut self,
        setting: Setting<'_>,
        place: usize,
        reason: &str,
    ) -> Result<(), StoreError> {
        let run = &setting.sweep.runs[place];
        let text = format!("{}\n{reason}", setting.sweep.name_of(run));
        setting.store.fail(run.key, &text)?;
        (setting.on_failure)(place, &text);
        self.outcome.failed.push(place);
        Ok(())
    }

    /// Tries a run once more, after the others.
    pub(super) fn try_again(&mut self, place: usize) {
        self.again.push(place);
        self.pending.push_back(place);
    }

    /// True of a run that is tried once more.
    pub(super) fn is_tried_again(&self, place: usize) -> bool {
        self.again.contains(&place)
    }

    /// Looks now and then at runs that other processes are at; with nothing else to do, whatever has become free or stale is next.
    pub(super) fn look_elsewhere(
        &mut self,
        setting: Setting<'_>,
        is_idle: bool,
    ) -> Result<(), StoreError> {
        if self.looked.elapsed() < LOOK {
            return Ok(());
        }
        self.looked = clock::now();
        let claims = setting.store.claims();
        let open = self.pending.iter().chain(&self.elsewhere);
        let at_work = open.filter(|place| claims.contains(&setting.key(**place)));
        self.others_at_once = at_work.count();
        let mut left = Vec::new();
        for place in std::mem::take(&mut self.elsewhere) {
            if self.is_settled(setting, place)? {
                continue;
            }
            left.push(place);
        }
        match self.pending.is_empty() && is_idle {
            true => self.pending.extend(left),
            false => self.elsewhere = left,
        }
        Ok(())
    }

    /// How far the execution is, with `at_once` runs at once of this process, of which these have been `running` for some seconds.
    pub(super) fn progress(&self, running: &[(usize, f64)], at_once: usize) -> SweepProgress {
        let open = self.pending.iter().chain(&self.elsewhere).copied();
        // Other processes go on beside.
        let at_once = at_once + self.others_at_once;
        let outcome = &self.outcome;
        SweepProgress {
            total: self.total,
            done: outcome.known + outcome.done + outcome.by_others,
            failed: outcome.failed.len(),
            running: running.len(),
            elsewhere: self.elsewhere.len(),
            elapsed: self.started.elapsed().as_secs_f64(),
            left: self.estimates.time_left(open, running, at_once),
        }
    }
}
