//! Queue of unfinished runs for every kind of execution: waiting runs, runs of other processes, failures and time estimates.

use super::estimate::{Estimates, Spent};
use super::progress::{SweepExecution, SweepProgress};
use crate::clock;
use crate::points::{RunKey, Sweep};
use crate::store::{Claim, Claimed, Failed, Store, StoreError};
use clearway_lab::Laboratory;
use std::collections::{BTreeMap, VecDeque};
use std::path::Path;
use std::time::{Duration, Instant};

/// Time between two checks of other processes' runs.
const LOOK: Duration = Duration::from_millis(500);

/// Setting in which runs are carried out.
#[derive(Clone, Copy)]
pub(super) struct Setting<'a> {
    pub(super) sweep: &'a Sweep,
    pub(super) laboratory: &'a Laboratory,
    pub(super) store: &'a Store,
    /// Callback for each failed run: its place in the sweep, and the reason.
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
    /// Expected memory of the run.
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

    /// Wall seconds since the claim was made.
    pub(super) fn seconds(&self) -> f64 {
        self.since.elapsed().as_secs_f64()
    }

    /// Writes a heartbeat, if the last one is old enough.
    pub(super) fn beat(&mut self) {
        if self.beaten.elapsed() >= crate::store::HEARTBEAT {
            self.beaten = clock::now();
            self.claim.beat();
        }
    }
}

/// The runs of an execution.
pub(super) struct Queue {
    /// Runs that no process is known to work on, in order.
    pending: VecDeque<usize>,
    /// Runs in progress in other processes.
    elsewhere: Vec<usize>,
    /// Runs that are retried, even if another process recorded a failure.
    again: Vec<usize>,
    /// Failures of former executions, whose runs are retried.
    former: BTreeMap<RunKey, Failed>,
    pub(super) estimates: Estimates,
    started: Instant,
    looked: Instant,
    /// Number of open runs in progress in other processes at the last check.
    others_at_once: usize,
    total: usize,
    pub(super) outcome: SweepExecution,
}

impl Queue {
    /// Queue of the unfinished runs at the places `chosen`.
    pub(super) fn new(sweep: &Sweep, store: &Store, chosen: &[usize]) -> Result<Self, StoreError> {
        let finished = store.finished()?;
        let mut estimates = Estimates::new(sweep);
        let is_finished = |at: &usize| finished.contains(&sweep.runs[*at].key);
        let (known, pending): (Vec<usize>, Vec<usize>) =
            chosen.iter().partition(|at| is_finished(at));
        if !pending.is_empty() {
            for at in (0..sweep.runs.len()).filter(is_finished) {
                // Unreadable results are skipped here; the collection of results reports them as an error.
                if let Ok(summary) = store.summary(sweep.runs[at].key) {
                    estimates.learn(at, Spent::from_summary(&summary));
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

    /// The next waiting run, if any.
    pub(super) fn next(&self) -> Option<usize> {
        self.pending.front().copied()
    }

    /// True if no run waits and no run is in progress in another process.
    pub(super) fn is_empty(&self) -> bool {
        self.pending.is_empty() && self.elsewhere.is_empty()
    }

    /// Takes the next run and claims it; `None` if another process finished it or works on it, or if it cannot begin.
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
        // The former owner of the claim may have finished the run in the meantime.
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

    /// True if another process finished the run or recorded its failure since this execution began; counts such a run.
    fn is_settled(&mut self, setting: Setting<'_>, place: usize) -> Result<bool, StoreError> {
        let (store, key) = (setting.store, setting.key(place));
        if store.is_finished(key) {
            if let Ok(summary) = store.summary(key) {
                self.estimates.learn(place, Spent::from_summary(&summary));
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

    /// Publishes the results in `folder` as the results of a run.
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

    /// Retries a run after the other runs.
    pub(super) fn try_again(&mut self, place: usize) {
        self.again.push(place);
        self.pending.push_back(place);
    }

    /// True if a run is retried.
    pub(super) fn is_tried_again(&self, place: usize) -> bool {
        self.again.contains(&place)
    }

    /// Regularly checks the runs of other processes. If this process is idle, all their unfinished runs are queued, so that it can take
    /// free or stale claims.
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

    /// Progress of the execution, with `at_once` concurrent runs in this process. `running` are its present runs with their seconds.
    pub(super) fn progress(&self, running: &[(usize, f64)], at_once: usize) -> SweepProgress {
        let open = self.pending.iter().chain(&self.elsewhere).copied();
        // Other processes work concurrently.
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
