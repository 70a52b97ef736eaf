//! State that the simulation and the server share: progress of the run, orders of the user, and samples.
//!
//! The simulation reads the state once per round, between rounds, and waits there while it is paused.

use super::history::{History, PageUpdate, Sample};
use clearway_lab::{RunDecision, RunProgress};
use clearway_report::observed::FrameCounts;
use clearway_report_html::{LiveMap, Tile};
use clearway_units::{ParseUnitError, Time};
use serde::{Deserialize, Serialize};
use std::fmt::{self, Display};
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Interval between checks for Ctrl-C in a paused run.
const GLANCE: Duration = Duration::from_millis(100);

/// Order that a page can give.
///
/// Orders without fields have braces: for a variant without them, serde would accept unknown fields.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(tag = "action", rename_all = "lowercase", deny_unknown_fields)]
pub(super) enum Order {
    /// Wait after the present round.
    Pause {},
    /// Go on.
    Resume {},
    /// Go on to a simulated time, then wait.
    Step {
        /// Simulated time, such as `150us`.
        until: String,
    },
    /// End the run and keep the partial results.
    Stop {},
}

/// Reason for rejecting an order.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// The run is over.
    Over,
    /// The time to step to is invalid.
    NotATime(String, ParseUnitError),
    /// The time to step to has passed.
    Passed(Time, Time),
}

impl Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Over => f.write_str("the run is over"),
            Self::NotATime(text, error) => write!(f, "cannot step to `{text}`: {error}"),
            Self::Passed(until, now) => {
                write!(f, "cannot step to {until}: the run is at {now} already")
            }
        }
    }
}

/// Outcome of a run.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(super) struct Ending {
    /// `complete`, `incomplete` or `interrupted`.
    #[serde(skip)]
    pub(super) status: &'static str,
    /// Reason for an incomplete run.
    pub(super) reason: Option<String>,
    pub(super) figures: Vec<Tile>,
    /// Folder of the results.
    pub(super) folder: String,
    /// Address of the report on this server, if the run has written a report.
    pub(super) report: Option<&'static str>,
    /// File of the report, whether it exists or not.
    #[serde(skip)]
    pub(super) report_file: PathBuf,
}

/// Counts of the map's bundles in an interval.
#[derive(Debug, PartialEq)]
pub(super) struct LiveFrame {
    pub(super) from: Time,
    pub(super) to: Time,
    pub(super) counts: Box<[FrameCounts]>,
}

/// Phase of a run.
#[derive(Debug, PartialEq)]
enum Phase {
    Running,
    /// The simulation is over, and the results are being written.
    Writing,
    Over(Arc<Ending>),
}

struct State {
    phase: Phase,
    /// The run has an order to wait.
    hold: bool,
    /// The run is waiting.
    held: bool,
    pause_at: Option<Time>,
    stop: bool,
    progress: RunProgress,
    /// Expected packet-hops of the run.
    expected_hops: u64,
    history: History,
    /// The last interval of the map.
    frame: Option<Arc<LiveFrame>>,
    /// A page has asked for the state.
    watched: bool,
}

/// The state behind its lock.
pub(super) struct Shared {
    state: Mutex<State>,
    changed: Condvar,
    /// The map, if the run is sampled.
    map: Option<LiveMap>,
}

impl Shared {
    /// State before the first round, with a number of flows and expected packet-hops, and the map of a sampled run. With `hold`, the run
    /// waits after its first round.
    pub(super) fn new(
        (flows, expected_hops): (usize, u64),
        map: Option<LiveMap>,
        hold: bool,
    ) -> Self {
        let progress = RunProgress {
            now: Time::ZERO,
            flows_sent: 0,
            flows,
            hops: 0,
        };
        let state = State {
            phase: Phase::Running,
            hold,
            held: false,
            pause_at: None,
            stop: false,
            progress,
            expected_hops,
            history: History::default(),
            frame: None,
            watched: false,
        };
        Self {
            state: Mutex::new(state),
            changed: Condvar::new(),
            map,
        }
    }

    /// Sets the last interval of the map.
    pub(super) fn on_frame(&self, frame: LiveFrame) {
        self.lock().frame = Some(Arc::new(frame));
    }

    /// JSON of a view, made without the lock because it can be long.
    pub(super) fn json(&self, view: &View) -> Result<String, serde_json::Error> {
        let mut json = view.to_json()?;
        if let (Some(map), Some(frame)) = (&self.map, &view.frame) {
            // Before the brace that ends the view.
            json.pop();
            let frame = map.frame((frame.from, frame.to), &frame.counts);
            json += &format!(",\"map\":{frame}}}");
        }
        Ok(json)
    }

    /// Locks the state, even after a panic of another thread, because a panic never leaves the state half changed.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Updates the state after a round; waits while the run is paused.
    pub(super) fn on_round(
        &self,
        progress: RunProgress,
        add_samples: impl FnOnce(&mut History),
        is_interrupted: impl Fn() -> bool,
    ) -> RunDecision {
        let mut state = self.lock();
        if state.pause_at.is_some_and(|at| progress.now >= at) {
            (state.pause_at, state.hold) = (None, true);
        }
        state.progress = progress;
        add_samples(&mut state.history);
        while state.hold && !state.stop {
            if is_interrupted() {
                return RunDecision::Stop;
            }
            state.held = true;
            let waited = self.changed.wait_timeout(state, GLANCE);
            (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        }
        state.held = false;
        if state.stop {
            RunDecision::Stop
        } else {
            RunDecision::Continue
        }
    }

    /// Marks the simulation as over; its results are not yet written.
    pub(super) fn on_simulated(&self, add_samples: impl FnOnce(&mut History)) {
        let mut state = self.lock();
        add_samples(&mut state.history);
        state.history.close();
        state.phase = Phase::Writing;
        (state.hold, state.held, state.pause_at) = (false, false, None);
    }

    /// Marks the run as over, after its last output.
    pub(super) fn on_end(&self, ending: Ending) {
        self.lock().phase = Phase::Over(Arc::new(ending));
    }

    /// The file of the report, if the run is over and has written a report.
    pub(super) fn report(&self) -> Option<PathBuf> {
        match &self.lock().phase {
            Phase::Over(ending) => ending.report.map(|_| ending.report_file.clone()),
            _ => None,
        }
    }

    /// True if a page has asked for the state.
    pub(super) fn is_watched(&self) -> bool {
        self.lock().watched
    }

    /// Executes an order of a page.
    pub(super) fn order(&self, order: Order) -> Result<(), Refusal> {
        let mut state = self.lock();
        if state.phase != Phase::Running {
            return Err(Refusal::Over);
        }
        match order {
            Order::Pause {} => (state.hold, state.pause_at) = (true, None),
            Order::Resume {} => (state.hold, state.pause_at) = (false, None),
            Order::Stop {} => state.stop = true,
            Order::Step { until } => {
                let now = state.progress.now;
                let at: Time = match until.parse() {
                    Ok(at) => at,
                    Err(error) => return Err(Refusal::NotATime(until, error)),
                };
                if at <= now {
                    return Err(Refusal::Passed(at, now));
                }
                (state.hold, state.pause_at) = (false, Some(at));
            }
        }
        // Clear the flag now and not when the run wakes up, so that the page sees the effect of its order immediately.
        state.held &= state.hold;
        self.changed.notify_all();
        Ok(())
    }

    /// View for a page that has `count` samples of `epoch`: the state of the run, and the samples that the page lacks.
    pub(super) fn view(&self, epoch: u32, count: usize) -> View {
        let mut state = self.lock();
        state.watched = true;
        let ending = match &state.phase {
            Phase::Over(ending) => Some(Arc::clone(ending)),
            _ => None,
        };
        let status = match &state.phase {
            Phase::Over(ending) => ending.status,
            Phase::Writing => "writing results",
            Phase::Running if state.stop => "stopping",
            Phase::Running if state.held => "paused",
            Phase::Running if state.hold => "pausing",
            Phase::Running => "running",
        };
        View {
            status,
            progress: state.progress,
            expected_hops: state.expected_hops,
            until: state.pause_at,
            news: state.history.since(epoch, count),
            frame: state.frame.clone(),
            ending,
        }
    }
}

/// State of a run, as a page sees it.
#[derive(Debug)]
pub(super) struct View {
    status: &'static str,
    progress: RunProgress,
    expected_hops: u64,
    until: Option<Time>,
    news: PageUpdate,
    frame: Option<Arc<LiveFrame>>,
    ending: Option<Arc<Ending>>,
}

#[derive(Serialize)]
struct ViewJson<'a> {
    status: &'static str,
    /// In µs.
    now: f64,
    /// In µs.
    until: Option<f64>,
    flows: FlowsJson,
    hops: u64,
    /// Expected packet-hops of the run; 0 if unknown.
    expected_hops: u64,
    epoch: u32,
    curves: &'a [(&'static str, String)],
    from: usize,
    samples: Vec<&'a Sample>,
    ending: Option<&'a Ending>,
}

#[derive(Serialize)]
struct FlowsJson {
    sent: usize,
    total: usize,
}

impl View {
    /// JSON for the page, without the map.
    pub(super) fn to_json(&self) -> Result<String, serde_json::Error> {
        let progress = self.progress;
        serde_json::to_string(&ViewJson {
            status: self.status,
            now: progress.now.as_us(),
            until: self.until.map(Time::as_us),
            flows: FlowsJson {
                sent: progress.flows_sent,
                total: progress.flows,
            },
            hops: progress.hops,
            expected_hops: self.expected_hops,
            epoch: self.news.epoch,
            curves: &self.news.curves,
            from: self.news.from,
            samples: self.news.samples.iter().map(|sample| &**sample).collect(),
            ending: self.ending.as_deref(),
        })
    }
}

#[cfg(test)]
mod tests;
