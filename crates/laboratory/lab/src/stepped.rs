//! Runs that are driven in steps: a program posts messages while simulated time stands still, and sees what became of them.
//!
//! ```text
//! program ── post(message) ──► SteppedRun ── run_until(t) ──► events: received, acknowledged
//!    ▲                                                          │
//!    └────────────────── decides what comes next ◄──────────────┘
//! ```
//!
//! Somebody else's schedule (a collective library's, a job scheduler's, a simulator of computation) drives the network in this way. A run
//! has the same digest for the same messages, whatever the steps and the number of threads: it is the run of a scenario that lists them.
//!
//! The simulation runs on threads of its own, which wait while time stands still.

use crate::assemble::Assembly;
use crate::run::{Finished, FlowResult};
use crate::scenario::{Sampling, Scenario, check_flows, slowest_link};
use clearway_fabric::{
    Advance, Driver, Flow, FlowEvent, FlowMilestone, FlowOutcome, FlowSource, RunDecision, Threads,
    Traffic, Watch,
};
use clearway_scenario::ScenarioError;
use clearway_units::{Bytes, FlowId, HostId, Time};
use clearway_workload::FlowSpec;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

/// A message to post.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PostedMessage {
    /// Host that sends.
    pub src: HostId,
    /// Host that receives.
    pub dst: HostId,
    /// Length of the message.
    pub bytes: Bytes,
    /// Number that its sender gives it; the label of its flow.
    pub tag: u64,
}

/// Something that has become of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MessageEvent {
    /// Time of the event.
    pub time: Time,
    /// The message, or a flow of the scenario.
    pub flow: FlowId,
    /// Kind of the event.
    pub kind: MessageEventKind,
}

/// Kind of a [`MessageEvent`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MessageEventKind {
    /// The receiver has all bytes.
    Received,
    /// The sender has every acknowledgement.
    Acknowledged,
}

/// A run that stands still until it is told to go on.
#[derive(Debug)]
pub struct SteppedRun {
    scenario: Scenario,
    assembly: Arc<Assembly>,
    /// Dropped to end the simulation.
    orders: Option<Sender<Order>>,
    answers: Receiver<Answer>,
    thread: Option<JoinHandle<Simulated>>,
    interrupt: Arc<AtomicBool>,
    now: Time,
    /// Posted since the last step.
    fresh: Vec<Flow>,
    messages: Vec<FlowSpec>,
    is_over: bool,
}

/// Outcome of a stepped run.
#[derive(Debug)]
pub struct SteppedEnd {
    /// The scenario that lists what was posted. It is the same run, to the digest, unless this one was ended early.
    pub scenario: Scenario,
    /// The scenario as it was put together, without what was posted.
    pub assembly: Arc<Assembly>,
    /// The run; its flows are those of the scenario.
    pub finished: Finished,
    /// The messages that were posted, with what became of them, by number.
    pub messages: Vec<(FlowId, FlowSpec, FlowResult)>,
    /// The events of messages since the last step.
    pub events: Vec<MessageEvent>,
}

/// Outcome of the thread of the simulation.
#[derive(Debug)]
struct Simulated {
    finished: Finished,
    messages: Vec<(FlowId, FlowResult)>,
}

/// Order to the simulation.
struct Order {
    posted: Vec<Flow>,
    goal: Goal,
}

/// End of a step.
#[derive(Debug, Clone, Copy)]
enum Goal {
    /// All events before this time have happened.
    Time(Time),
    /// A message has been received or acknowledged, or all events before this time have happened.
    Event(Time),
    /// Nothing is left to happen.
    End,
}

/// State of the simulation at the end of a step.
struct Answer {
    now: Time,
    events: Vec<MessageEvent>,
    /// The simulation is over.
    is_over: bool,
}

/// Interval at which a step looks whether it is to be interrupted.
const LOOK: Duration = Duration::from_millis(50);

impl SteppedRun {
    /// A run of `scenario` that stands at time zero, on so many threads. Its own workload runs beside what is posted, if `own_traffic`.
    ///
    /// # Errors
    /// If the parts of the scenario do not fit together, or it asks for what a stepped run has not: samples at an interval that it names,
    /// captures, hosts with several NICs.
    pub fn new(
        mut scenario: Scenario,
        threads: Threads,
        own_traffic: bool,
    ) -> Result<Self, ScenarioError> {
        if !own_traffic {
            scenario.workloads.clear();
        }
        let mut assembly = Assembly::new(&scenario)?;
        refuse(&scenario, &assembly)?;
        assembly.accept_posted(&scenario);
        let assembly = Arc::new(assembly);
        let (orders, from_program) = channel();
        let (to_program, answers) = channel();
        let interrupt = Arc::new(AtomicBool::new(false));
        let first = assembly.workload.flows.len() as u32;
        let thread = std::thread::spawn({
            let (assembly, interrupt) = (Arc::clone(&assembly), Arc::clone(&interrupt));
            let driver = Relay {
                orders: from_program,
                answers: to_program,
                goal: None,
                events: Vec::new(),
            };
            move || simulate(&assembly, threads, driver, &interrupt, first)
        });
        Ok(Self {
            scenario,
            assembly,
            orders: Some(orders),
            answers,
            thread: Some(thread),
            interrupt,
            now: Time::ZERO,
            fresh: Vec::new(),
            messages: Vec::new(),
            is_over: false,
        })
    }

    /// The scenario, put together.
    pub fn assembly(&self) -> &Assembly {
        &self.assembly
    }

    /// Simulated time: all events before it have happened.
    pub fn now(&self) -> Time {
        self.now
    }

    /// True if the run has reached `stop.at-most`, or was interrupted: nothing more happens.
    pub fn is_over(&self) -> bool {
        self.is_over
    }

    /// Posts a message that is ready now. Returns its number, which events carry.
    ///
    /// # Errors
    /// If there is no such host, the message is empty, goes to its sender or takes too long, or the run is over.
    pub fn post(&mut self, message: PostedMessage) -> Result<FlowId, ScenarioError> {
        let PostedMessage {
            src,
            dst,
            bytes,
            tag,
        } = message;
        if self.is_over {
            return Err(over());
        }
        let hosts = self.assembly.topology.machines();
        let refuse = |what: String, fix: String| Err(ScenarioError::about(&[], what, fix));
        if src.0 >= hosts || dst.0 >= hosts {
            let host = if src.0 >= hosts { src } else { dst };
            return refuse(
                format!("there is no host {} in this fabric of {hosts}", host.0),
                format!("hosts are 0 to {}", hosts - 1),
            );
        }
        if src == dst {
            return refuse(
                format!("a message from host {} to itself", src.0),
                "send it to another host".into(),
            );
        }
        if bytes == Bytes::ZERO {
            return refuse(
                "a message of no bytes".into(),
                "send a byte at least".into(),
            );
        }
        let flow = FlowSpec {
            section: self.scenario.workloads.len() as u32,
            ..FlowSpec::timed(tag, src, dst, bytes, self.now)
        };
        let slowest = slowest_link(&self.assembly.topology);
        check_flows([&flow], slowest, self.assembly.sizes)?;
        let id = FlowId((self.assembly.workload.flows.len() + self.messages.len()) as u32);
        self.fresh.push(self.assembly.transports.fabric_flow(&flow));
        self.messages.push(flow);
        Ok(id)
    }

    /// The message of this number; `None` if it is not one that was posted.
    pub fn message(&self, flow: FlowId) -> Option<&FlowSpec> {
        let place = flow
            .index()
            .checked_sub(self.assembly.workload.flows.len())?;
        self.messages.get(place)
    }

    /// Simulates all events before `time`, and returns those of messages. `wait` is called now and then, and may interrupt the run.
    ///
    /// # Errors
    /// If `time` is past, or the run is over.
    pub fn run_until(
        &mut self,
        time: Time,
        wait: &mut dyn FnMut() -> RunDecision,
    ) -> Result<Vec<MessageEvent>, ScenarioError> {
        self.step(time, Goal::Time(time), wait)
    }

    /// Simulates until a message is received or acknowledged, or to `limit` if none is before. Time then stands at the end of the round
    /// in which that happened: at most as long after it as the shortest delay of a link.
    ///
    /// # Errors
    /// If `limit` is past, or the run is over.
    pub fn run_until_event(
        &mut self,
        limit: Time,
        wait: &mut dyn FnMut() -> RunDecision,
    ) -> Result<Vec<MessageEvent>, ScenarioError> {
        self.step(limit, Goal::Event(limit), wait)
    }

    fn step(
        &mut self,
        limit: Time,
        goal: Goal,
        wait: &mut dyn FnMut() -> RunDecision,
    ) -> Result<Vec<MessageEvent>, ScenarioError> {
        if self.is_over {
            return Err(over());
        }
        if limit < self.now {
            return Err(ScenarioError::about(
                &[],
                format!("{} is past: the run stands at {}", limit, self.now),
                "name a later time",
            ));
        }
        let posted = std::mem::take(&mut self.fresh);
        self.order(Order { posted, goal });
        let answer = self.answer(wait);
        self.is_over = answer.as_ref().is_none_or(|answer| answer.is_over);
        Ok(answer.map_or_else(Vec::new, |answer| {
            self.now = self.now.max(answer.now);
            answer.events
        }))
    }

    fn order(&self, order: Order) {
        if let Some(orders) = &self.orders {
            // A simulation that is over takes no orders; that shows when it is asked for its answer.
            let _ = orders.send(order);
        }
    }

    /// Waits for the end of a step; `None` if the run is over.
    fn answer(&self, wait: &mut dyn FnMut() -> RunDecision) -> Option<Answer> {
        loop {
            match self.answers.recv_timeout(LOOK) {
                Ok(answer) => return Some(answer),
                Err(RecvTimeoutError::Disconnected) => return None,
                Err(RecvTimeoutError::Timeout) => {
                    if wait() == RunDecision::Stop {
                        self.interrupt.store(true, Ordering::Relaxed);
                    }
                }
            }
        }
    }

    /// Simulates until nothing is left to happen, and ends the run.
    pub fn run_to_end(mut self, wait: &mut dyn FnMut() -> RunDecision) -> SteppedEnd {
        let posted = std::mem::take(&mut self.fresh);
        let goal = Goal::End;
        self.order(Order { posted, goal });
        let mut events = Vec::new();
        while let Some(answer) = self.answer(wait) {
            events.extend(answer.events);
        }
        SteppedEnd {
            events,
            ..self.finish()
        }
    }

    /// Ends the run where it stands. It is complete if all messages are acknowledged.
    ///
    /// # Panics
    /// If the simulation panicked: our defect, never the user's.
    pub fn finish(mut self) -> SteppedEnd {
        let posted = std::mem::take(&mut self.fresh);
        let goal = Goal::Time(self.now);
        if !posted.is_empty() {
            self.order(Order { posted, goal });
        }
        self.orders = None;
        let thread = self.thread.take().expect("it is joined once");
        let simulated = match thread.join() {
            Ok(simulated) => simulated,
            Err(defect) => std::panic::resume_unwind(defect),
        };
        let mut scenario = self.scenario.clone();
        // Without any section a scenario has the usual workload.
        if !self.messages.is_empty() || scenario.workloads.is_empty() {
            scenario.list_flows(&self.messages);
        }
        let results = simulated.messages.into_iter().zip(&self.messages);
        SteppedEnd {
            scenario,
            assembly: Arc::clone(&self.assembly),
            finished: simulated.finished,
            messages: results
                .map(|((id, result), flow)| (id, flow.clone(), result))
                .collect(),
            events: Vec::new(),
        }
    }
}

impl Drop for SteppedRun {
    fn drop(&mut self) {
        self.orders = None;
        if let Some(thread) = self.thread.take() {
            // Whoever drops a run does not want to know how it ended.
            let _ = thread.join();
        }
    }
}

fn over() -> ScenarioError {
    ScenarioError::about(
        &[],
        "the run is over: it reached `stop.at-most`, or was interrupted",
        "raise `stop.at-most`, or begin another run",
    )
}

/// Refuses what a stepped run has not.
fn refuse(scenario: &Scenario, assembly: &Assembly) -> Result<(), ScenarioError> {
    let wanted = [
        (
            matches!(scenario.observe.every, Sampling::Every(_)),
            "samples (`observe.series.every`)",
            "leave `observe.series` out",
        ),
        (
            assembly.capture.is_some() || scenario.observe.perfetto,
            "captures and timelines (`observe.trace`)",
            "leave `observe.trace` out",
        ),
        (
            assembly.topology.may_be_apart(),
            "hosts with several NICs",
            "use a topology whose hosts have one NIC each",
        ),
    ];
    match wanted.iter().find(|(is_wanted, ..)| *is_wanted) {
        None => Ok(()),
        Some((_, what, fix)) => Err(ScenarioError::about(
            &[],
            format!("a run in steps has no {what}"),
            (*fix).to_owned(),
        )),
    }
}

/// Runs on the thread of the simulation.
fn simulate(
    assembly: &Assembly,
    threads: Threads,
    mut driver: Relay,
    interrupt: &AtomicBool,
    first: u32,
) -> Simulated {
    let mut done: Vec<(FlowId, Flow, FlowOutcome)> = Vec::new();
    let traffic = Traffic {
        arrivals: FlowSource::Posted(&mut driver),
        on_done: &mut |id, flow, outcome| done.push((id, *flow, *outcome)),
    };
    let on_progress = &mut |_| match interrupt.load(Ordering::Relaxed) {
        true => RunDecision::Stop,
        false => RunDecision::Continue,
    };
    let finished = assembly.simulate((threads, on_progress), Watch::Off, None, Some(traffic));
    driver.answer(finished.simulated, true);
    done.sort_unstable_by_key(|(id, ..)| *id);
    debug_assert!(
        done.iter()
            .map(|(id, ..)| id.0)
            .eq(first..first + done.len() as u32)
    );
    let result = |(id, flow, outcome): &(FlowId, Flow, FlowOutcome)| {
        let ideal = assembly.ideal_between((flow.src, flow.dst), flow.transport, flow.bytes);
        (*id, FlowResult::new(outcome, ideal))
    };
    Simulated {
        messages: done.iter().map(result).collect(),
        finished,
    }
}

/// Driver of the simulation that passes on what the program orders.
struct Relay {
    orders: Receiver<Order>,
    answers: Sender<Answer>,
    /// Of the step that goes on; `None` while the program has the floor.
    goal: Option<Goal>,
    /// Since the last answer.
    events: Vec<MessageEvent>,
}

impl Relay {
    /// The step ends at `now`.
    fn answer(&mut self, now: Time, is_over: bool) {
        let events = std::mem::take(&mut self.events);
        self.goal = None;
        // A program that is gone wants no answer.
        let _ = self.answers.send(Answer {
            now,
            events,
            is_over,
        });
    }
}

impl Driver for Relay {
    fn advance(&mut self, now: Time, mut next: Time, post: &mut Vec<Flow>) -> Advance {
        loop {
            match self.goal {
                Some(Goal::End) => return Advance::ToTheEnd,
                Some(Goal::Time(limit)) if next < limit => return Advance::Until(limit),
                Some(Goal::Event(limit)) if next < limit && self.events.is_empty() => {
                    return Advance::Until(limit);
                }
                Some(Goal::Event(_)) if !self.events.is_empty() => self.answer(now, false),
                Some(Goal::Time(limit) | Goal::Event(limit)) => self.answer(limit, false),
                None => {}
            }
            let Ok(order) = self.orders.recv() else {
                return Advance::Stop;
            };
            let first = order.posted.iter().filter_map(|flow| flow.start).min();
            next = next.min(first.unwrap_or(Time::NEVER));
            post.extend(order.posted);
            self.goal = Some(order.goal);
        }
    }

    fn on_event(&mut self, event: FlowEvent) {
        let kind = match event.milestone {
            FlowMilestone::Received => MessageEventKind::Received,
            FlowMilestone::Sent => MessageEventKind::Acknowledged,
            _ => return,
        };
        self.events.push(MessageEvent {
            time: event.time,
            flow: event.flow,
            kind,
        });
    }
}
