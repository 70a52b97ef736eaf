//! A simulation, its timers, and the delivery of events.
//!
//! Order of callbacks. All events of messages before an instant are delivered before the timers of that instant. Events are in the order
//! of (time, message, received before acknowledged); timers in the order of (time, call of `schedule`).

use crate::fault::{CallStatus, Fault, c_text};
use clearway_lab::scenario::Priority;
use clearway_lab::units::{Bytes, FlowId, HostId, Span, Time};
use clearway_lab::{
    Laboratory, MessageEvent, MessageEventKind, PostedMessage, RunDecision, Scenario,
    SteppedOptions, SteppedRun,
};
use clearway_report::Summary;
use clearway_runs::{Stopwatch, Unsaved, save, stepped_record};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::ffi::CString;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, TryLockError};

/// What happened to a message.
#[repr(i32)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventKind {
    /// The receiver has all bytes.
    Received = 0,
    /// The sender has every acknowledgement.
    Acknowledged = 1,
}

/// Event of a message.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeliveredEvent {
    /// Time of the event in picoseconds. The simulated time may be later: see `clearway_options.resolution_ps`.
    pub time_ps: u64,
    /// Tag of the message; the label of a flow of the scenario.
    pub tag: u64,
    /// Length of the message in bytes.
    pub bytes: u64,
    /// Number of the message, from `clearway_post`, or of a flow of the scenario.
    pub message: u32,
    /// Sending host.
    pub src: u32,
    /// Receiving host.
    pub dst: u32,
    /// What happened.
    pub kind: EventKind,
}

/// Callback for the events of messages.
pub(crate) type OnEvent = Arc<dyn Fn(&DeliveredEvent) + Send + Sync>;
/// Callback for an instant.
pub(crate) type OnTime = Box<dyn FnOnce() + Send>;

/// Scenario of a simulation.
pub(crate) enum Source {
    /// Built-in name or path.
    Name(String),
    /// Text of a scenario file.
    Text(String),
}

/// Options of a simulation.
pub(crate) struct Options {
    pub(crate) source: Source,
    /// Assignments of the form `KEY=VALUE`.
    pub(crate) overrides: Vec<String>,
    /// `None`: as many as there are processors that nobody uses, if the run turns out to be long.
    pub(crate) threads: Option<usize>,
    pub(crate) own_traffic: bool,
    /// Priorities that messages may have.
    pub(crate) priorities: Vec<u8>,
    pub(crate) resolution: Option<Span>,
}

/// Extent of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Goal {
    /// All events before this time, and the timers until then.
    Until(Time),
    /// The next callbacks, or all events before this time.
    Event(Time),
    /// No event and no timer is left.
    End,
}

/// A simulation behind a handle.
pub(crate) struct Simulation {
    state: Mutex<State>,
    /// True while a run function is at work; its callbacks may post and schedule, but not run.
    is_running: AtomicBool,
    interrupt: AtomicBool,
    /// Process that owns the threads of the simulation.
    process: u32,
    warnings: Vec<CString>,
    results: OnceLock<Results>,
}

/// Texts of a finished simulation.
pub(crate) struct Results {
    /// Contents of `summary.json`.
    pub(crate) summary: CString,
    /// Scenario that lists the posted messages.
    pub(crate) scenario: CString,
}

/// The part of a simulation that calls change.
struct State {
    /// `None` after the end.
    run: Option<SteppedRun>,
    timers: BinaryHeap<Reverse<Timer>>,
    /// Number of the next timer.
    scheduled: u64,
    /// Events that were not delivered yet.
    events: VecDeque<DeliveredEvent>,
    on_event: Option<OnEvent>,
    stopwatch: Stopwatch,
}

/// An instant at which a callback is due. Ordered by time, then by number.
struct Timer {
    key: (Time, u64),
    on_time: OnTime,
}

impl PartialEq for Timer {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key
    }
}

impl Eq for Timer {}

impl PartialOrd for Timer {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Timer {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.key.cmp(&other.key)
    }
}

/// The next piece of work of a run.
enum Work {
    Event(OnEvent, DeliveredEvent),
    Timer(OnTime),
    /// The goal is reached.
    Done,
}

impl Simulation {
    /// A simulation that stands at time zero.
    pub(crate) fn new(options: Options) -> Result<Self, Fault> {
        let stopwatch = Stopwatch::start();
        let run = SteppedRun::new(
            load(&options)?,
            SteppedOptions {
                threads: options.threads.into(),
                own_traffic: options.own_traffic,
                priorities: options.priorities.into_iter().map(Priority).collect(),
                resolution: options.resolution,
            },
        )?;
        let warnings = run.assembly().warnings.iter();
        Ok(Self {
            warnings: warnings.map(|warning| c_text(warning)).collect(),
            state: Mutex::new(State {
                run: Some(run),
                timers: BinaryHeap::new(),
                scheduled: 0,
                events: VecDeque::new(),
                on_event: None,
                stopwatch,
            }),
            is_running: AtomicBool::new(false),
            interrupt: AtomicBool::new(false),
            process: std::process::id(),
            results: OnceLock::new(),
        })
    }

    /// Warnings about the scenario.
    pub(crate) fn warnings(&self) -> &[CString] {
        &self.warnings
    }

    /// Results of the simulation; `None` before its end.
    pub(crate) fn results(&self) -> Option<&Results> {
        self.results.get()
    }

    pub(crate) fn now(&self) -> Result<Time, Fault> {
        Ok(self.state()?.run()?.now())
    }

    pub(crate) fn hosts(&self) -> Result<u32, Fault> {
        Ok(self.state()?.run()?.assembly().topology.machines())
    }

    pub(crate) fn post(&self, message: PostedMessage) -> Result<FlowId, Fault> {
        Ok(self.state()?.run()?.post(message)?)
    }

    pub(crate) fn set_on_event(&self, on_event: Option<OnEvent>) -> Result<(), Fault> {
        self.state()?.on_event = on_event;
        Ok(())
    }

    /// Calls `on_time` when all events before `at` have happened.
    pub(crate) fn schedule(&self, at: Time, on_time: OnTime) -> Result<(), Fault> {
        let mut state = self.state()?;
        let now = state.run()?.now();
        if at < now {
            let text = format!(
                "{at} is past: the simulation stands at {now}\n  fix: schedule a later time"
            );
            return Err(Fault::new(CallStatus::Input, text));
        }
        let key = (at, state.scheduled);
        state.scheduled += 1;
        state.timers.push(Reverse(Timer { key, on_time }));
        Ok(())
    }

    /// The earliest time at which something may happen: an event of the simulation or a timer. `None` if nothing is left.
    pub(crate) fn next_event(&self) -> Result<Option<Time>, Fault> {
        let mut state = self.state()?;
        let undelivered = !state.events.is_empty() && state.on_event.is_some();
        let timer = state.next_timer();
        let run = state.run()?;
        if undelivered {
            return Ok(Some(run.now()));
        }
        let event = match run.is_over() {
            true => None,
            false => run.next_event()?,
        };
        Ok(event.into_iter().chain(timer).min())
    }

    /// The oldest event that was not delivered.
    pub(crate) fn take_event(&self) -> Result<Option<DeliveredEvent>, Fault> {
        let mut state = self.state()?;
        state.run()?;
        Ok(state.events.pop_front())
    }

    /// Stops the run of another thread, and every later one.
    pub(crate) fn interrupt(&self) {
        self.interrupt.store(true, Ordering::Relaxed);
    }

    /// Simulates up to the goal, and delivers events and timers. No lock is held while a callback runs.
    pub(crate) fn run(&self, goal: Goal) -> Result<(), Fault> {
        let _running = Running::begin(self)?;
        let mut delivered = false;
        loop {
            let work = self
                .state()?
                .next_work((goal, delivered), &self.interrupt)?;
            match work {
                Work::Event(on_event, event) => on_event(&event),
                Work::Timer(on_time) => on_time(),
                Work::Done => return Ok(()),
            }
            delivered = true;
        }
    }

    /// Ends the simulation at its present time, and writes the result folder if there is a path.
    pub(crate) fn finish(&self, folder: Option<&Path>) -> Result<(), Fault> {
        let _running = Running::begin(self)?;
        let mut state = self.state()?;
        let run = state.run.take().ok_or_else(ended)?;
        let end = run.finish();
        let mut record = stepped_record(&end, &state.stopwatch);
        record.command = "clearway_create".into();
        let resolved = end.assembly.resolved(&end.scenario);
        let summary = Summary::from_record(&record).to_json();
        let results = Results {
            summary: c_text(&summary),
            scenario: c_text(&resolved),
        };
        // The run was there, so this is the first end.
        let _ = self.results.set(results);
        let Some(folder) = folder else { return Ok(()) };
        let unsaved = Unsaved {
            resolved: &resolved,
            settings: Some(&end.scenario.settings()),
            record: &record,
            samples: &[],
        };
        save(&unsaved, folder).map_err(|error| Fault::unwritten(&error))
    }

    /// Prepares the end of the handle: refused in a callback, and while another thread uses the simulation.
    pub(crate) fn close(&self) -> Result<(), Fault> {
        if std::process::id() != self.process {
            // A fork does not copy threads, so a drop here would wait for threads that do not exist.
            if let Ok(mut state) = self.state.try_lock() {
                std::mem::forget(state.run.take());
            }
            return Ok(());
        }
        let _running = Running::begin(self)?;
        let run = self.state()?.run.take();
        drop(run);
        Ok(())
    }

    fn state(&self) -> Result<MutexGuard<'_, State>, Fault> {
        if std::process::id() != self.process {
            return Err(Fault::misuse(
                "this simulation belongs to the process that this one was forked from",
                "create one after the fork",
            ));
        }
        match self.state.try_lock() {
            Ok(state) => Ok(state),
            Err(TryLockError::WouldBlock) => Err(Fault::misuse(
                "another thread is using this simulation",
                "use it from one thread at a time",
            )),
            Err(TryLockError::Poisoned(_)) => Err(Fault::new(
                CallStatus::Defect,
                "a defect has ended this simulation\n  fix: destroy it, and create another one",
            )),
        }
    }
}

impl State {
    fn run(&mut self) -> Result<&mut SteppedRun, Fault> {
        self.run.as_mut().ok_or_else(ended)
    }

    fn next_timer(&self) -> Option<Time> {
        self.timers.peek().map(|Reverse(timer)| timer.key.0)
    }

    /// Simulates until there is something to deliver, or until the goal is reached. `delivered` is true if this run has delivered
    /// something.
    fn next_work(
        &mut self,
        (goal, delivered): (Goal, bool),
        interrupt: &AtomicBool,
    ) -> Result<Work, Fault> {
        loop {
            if let Some(on_event) = &self.on_event
                && let Some(event) = self.events.pop_front()
            {
                return Ok(Work::Event(Arc::clone(on_event), event));
            }
            if interrupt.load(Ordering::Relaxed) {
                return Err(Fault::new(CallStatus::Interrupted, "interrupted"));
            }
            let now = self.run()?.now();
            if self.run()?.is_over() {
                return Err(over());
            }
            if self.next_timer().is_some_and(|at| at <= now)
                && let Some(Reverse(timer)) = self.timers.pop()
            {
                return Ok(Work::Timer(timer.on_time));
            }
            let Some(limit) = self.limit(goal, delivered)? else {
                return Ok(Work::Done);
            };
            self.step(goal, limit, interrupt)?;
        }
    }

    /// Time up to which the next step may go; `None` if the goal is reached.
    fn limit(&mut self, goal: Goal, delivered: bool) -> Result<Option<Time>, Fault> {
        let timer = self.next_timer();
        // Without a callback events wait in the queue.
        let waiting = !self.events.is_empty();
        let run = self.run()?;
        let now = run.now();
        let limit = match goal {
            Goal::Until(time) | Goal::Event(time) if time < now => {
                let text = format!(
                    "{time} is past: the simulation stands at {now}\n  fix: name a later time"
                );
                return Err(Fault::new(CallStatus::Input, text));
            }
            Goal::Event(_) if delivered || waiting => return Ok(None),
            Goal::Until(time) | Goal::Event(time) if time == now => return Ok(None),
            Goal::End | Goal::Event(Time::NEVER) => match (run.next_event()?, timer) {
                (None, None) => return Ok(None),
                _ => Time::NEVER,
            },
            Goal::Until(time) | Goal::Event(time) => time,
        };
        Ok(Some(timer.map_or(limit, |timer| timer.min(limit))))
    }

    fn step(&mut self, goal: Goal, limit: Time, interrupt: &AtomicBool) -> Result<(), Fault> {
        let one_by_one = self.on_event.is_some() || goal != Goal::Until(limit);
        let run = self.run()?;
        let mut wait = || match interrupt.load(Ordering::Relaxed) {
            true => RunDecision::Stop,
            false => RunDecision::Continue,
        };
        let events = match one_by_one {
            true => run.run_until_event(limit, &mut wait)?,
            false => run.run_until(limit, &mut wait)?,
        };
        let of = |event: &MessageEvent| delivered_event(run, event);
        let events: Vec<DeliveredEvent> = events.iter().map(of).collect();
        self.events.extend(events);
        Ok(())
    }
}

/// Mark of a simulation that a run function is at work.
struct Running<'a>(&'a AtomicBool);

impl<'a> Running<'a> {
    fn begin(simulation: &'a Simulation) -> Result<Self, Fault> {
        match simulation.is_running.swap(true, Ordering::AcqRel) {
            true => Err(Fault::misuse(
                "the simulation is running: this function cannot be called from a callback, nor from another thread",
                "return from the callback first; callbacks may post and schedule",
            )),
            false => Ok(Self(&simulation.is_running)),
        }
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}

/// The event in the form that C programs receive.
fn delivered_event(run: &SteppedRun, event: &MessageEvent) -> DeliveredEvent {
    let listed = || &run.assembly().workload.flows[event.flow.index()];
    let flow = run.message(event.flow).unwrap_or_else(listed);
    DeliveredEvent {
        time_ps: event.time.as_ps(),
        tag: flow.label,
        bytes: flow.bytes.as_u64(),
        message: event.flow.0,
        src: flow.src.0,
        dst: flow.dst.0,
        kind: match event.kind {
            MessageEventKind::Received => EventKind::Received,
            MessageEventKind::Acknowledged => EventKind::Acknowledged,
        },
    }
}

fn load(options: &Options) -> Result<Scenario, Fault> {
    let laboratory = Laboratory::new();
    Ok(match &options.source {
        Source::Name(name) => laboratory.load(name, &options.overrides)?,
        Source::Text(text) => laboratory.read("scenario", text, None, &options.overrides)?,
    })
}

/// A message in the form that the simulation takes.
pub(crate) fn message((src, dst): (u32, u32), bytes: u64, tag: u64, priority: u8) -> PostedMessage {
    PostedMessage {
        src: HostId(src),
        dst: HostId(dst),
        bytes: Bytes::new(bytes),
        tag,
        priority: (priority != 0).then_some(Priority(priority)),
    }
}

fn ended() -> Fault {
    Fault::misuse("this simulation has ended", "create another one")
}

fn over() -> Fault {
    Fault::new(
        CallStatus::Over,
        "the simulation has reached `stop.at-most`\n  fix: raise `stop.at-most`, or create another one",
    )
}
