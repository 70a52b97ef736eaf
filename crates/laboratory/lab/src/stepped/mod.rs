//! Runs that are driven in steps: a program posts messages while simulated time stands still, and receives their events.
//!
//! ```text
//! program ── post(message) ──► SteppedRun ── run_until(t) ──► events: received, acknowledged
//!    ▲                                                          │
//!    └────────────────── decides what comes next ◄──────────────┘
//! ```
//!
//! An external schedule (of a collective library, a job scheduler or a simulator of computation) drives the network in this way. The digest
//! of a run depends only on the messages, not on the steps or the number of threads. The run equals the run of a scenario that lists the
//! messages.
//!
//! A message that answers an event starts when the round of the event ends: later than the event by at most the shortest delay of a link,
//! or by [`SteppedOptions::resolution`] if that is less.
//!
//! The simulation runs on separate threads, which wait while time stands still.

mod event;
mod relay;

pub use self::event::{MessageEvent, MessageEventKind};
use self::relay::{Answer, Goal, Order, Relay, Simulated, simulate};
use crate::assemble::Assembly;
use crate::run::{Finished, FlowResult};
use crate::scenario::{
    NicChoice, Priority, Sampling, Scenario, check_classes, check_flows, chosen_pair, slowest_link,
};
use clearway_fabric::{Flow, RunDecision, Threads};
use clearway_scenario::ScenarioError;
use clearway_units::{Bytes, FlowId, HostId, Span, Time};
use clearway_workload::FlowSpec;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

/// Options of a [`SteppedRun`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SteppedOptions {
    /// Threads of the simulation.
    pub threads: Threads,
    /// True if the scenario's workload runs beside the posted messages.
    pub own_traffic: bool,
    /// Priorities that messages may have; only 1 if empty. Switches reserve buffers and queues for them.
    pub priorities: Vec<Priority>,
    /// Limit of the time by which [`SteppedRun::run_until_event`] passes an event; `None`: the shortest delay of a link. Rounds of the
    /// simulation get as short as this.
    pub resolution: Option<Span>,
}

/// A message to post.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PostedMessage {
    /// Sender.
    pub src: HostId,
    /// Receiver.
    pub dst: HostId,
    /// Length of the message.
    pub bytes: Bytes,
    /// Number from the sender, which becomes the label of the flow.
    pub tag: u64,
    /// Priority of its packets, one of [`SteppedOptions::priorities`]; `None`: 1.
    pub priority: Option<Priority>,
}

/// A run that stands still between steps.
#[derive(Debug)]
pub struct SteppedRun {
    scenario: Scenario,
    assembly: Arc<Assembly>,
    /// Channel for orders; dropped to end the simulation.
    orders: Option<Sender<Order>>,
    answers: Receiver<Answer>,
    thread: Option<JoinHandle<Simulated>>,
    interrupt: Arc<AtomicBool>,
    now: Time,
    /// Next event of the simulation, [`Time::NEVER`] without one; `None` before the first step.
    next: Option<Time>,
    priorities: Vec<Priority>,
    resolution: Option<Span>,
    /// Rule that chooses the NICs of a message, if hosts have several.
    nics: Option<NicChoice>,
    /// Messages posted since the last step.
    fresh: Vec<Flow>,
    messages: Vec<FlowSpec>,
    is_over: bool,
}

/// Outcome of a stepped run.
#[derive(Debug)]
pub struct SteppedEnd {
    /// The scenario that lists the posted messages. Its run has the same digest, unless the stepped run was ended early.
    pub scenario: Scenario,
    /// The assembled scenario, without the posted messages.
    pub assembly: Arc<Assembly>,
    /// The run, with the flows of the scenario.
    pub finished: Finished,
    /// The posted messages with their results, by number.
    pub messages: Vec<(FlowId, FlowSpec, FlowResult)>,
    /// The events of messages since the last step.
    pub events: Vec<MessageEvent>,
}

/// Priority of messages that name none.
const DATA: Priority = Priority(1);

/// Interval at which a step checks for an interruption.
const LOOK: Duration = Duration::from_millis(50);

impl SteppedRun {
    /// A run of `scenario` that stands at time zero.
    ///
    /// # Errors
    /// If the resolution is zero, the parts of the scenario do not fit together, or the scenario requests a feature that stepped runs lack:
    /// samples at an explicit interval, captures, timelines.
    pub fn new(mut scenario: Scenario, options: SteppedOptions) -> Result<Self, ScenarioError> {
        let SteppedOptions {
            threads,
            own_traffic,
            mut priorities,
            resolution,
        } = options;
        if resolution == Some(Span::ZERO) {
            return Err(ScenarioError::about(
                &[],
                "a resolution of no time",
                "give a positive time, or none for the shortest delay of a link",
            ));
        }
        if priorities.is_empty() {
            priorities.push(DATA);
        }
        if !own_traffic {
            scenario.workloads.clear();
        }
        let mut assembly = Assembly::new(&scenario)?;
        refuse(&scenario, &assembly)?;
        let classes = Priority::classes(&priorities);
        check_classes(&scenario.switch, &assembly.topology, classes)?;
        assembly.accept_posted(&scenario, classes);
        let assembly = Arc::new(assembly);
        let (orders, from_program) = channel();
        let (to_program, answers) = channel();
        let interrupt = Arc::new(AtomicBool::new(false));
        let first = assembly.workload.flows.len() as u32;
        let choice = || scenario.topology.nic_choice(scenario.general.seed);
        let nics = assembly.topology.may_be_apart().then(choice);
        let thread = std::thread::spawn({
            let (assembly, interrupt) = (Arc::clone(&assembly), Arc::clone(&interrupt));
            let driver = Relay::new(from_program, to_program);
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
            next: None,
            priorities,
            resolution,
            nics,
            fresh: Vec::new(),
            messages: Vec::new(),
            is_over: false,
        })
    }

    /// The assembled scenario.
    pub fn assembly(&self) -> &Assembly {
        &self.assembly
    }

    /// Simulated time: all events before it have happened.
    pub fn now(&self) -> Time {
        self.now
    }

    /// True if the run has reached `stop.at-most` or was interrupted; no more events happen.
    pub fn is_over(&self) -> bool {
        self.is_over
    }

    /// Time of the next event of the simulation, which need not be an event of a message. `None` if no events are left.
    ///
    /// # Errors
    /// If the run is over.
    pub fn next_event(&mut self) -> Result<Option<Time>, ScenarioError> {
        if !self.fresh.is_empty() {
            return Ok(Some(self.now));
        }
        let next = match self.next {
            Some(next) => next,
            None => {
                // Nothing happens before the present, so this step has no events.
                self.step(self.now, Goal::Time(self.now), &mut || {
                    RunDecision::Continue
                })?;
                self.next.unwrap_or(Time::NEVER)
            }
        };
        Ok((next != Time::NEVER).then_some(next))
    }

    /// Posts a message that is ready now. Returns its flow number, which events carry.
    ///
    /// # Errors
    /// If the host does not exist, the message is empty, has its sender as receiver, has an undeclared priority or takes too long, no NIC
    /// of the sender reaches a NIC of the receiver, or the run is over.
    pub fn post(&mut self, message: PostedMessage) -> Result<FlowId, ScenarioError> {
        let PostedMessage {
            src,
            dst,
            bytes,
            tag,
            priority,
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
        let class = priority.unwrap_or(DATA);
        if !self.priorities.contains(&class) {
            let declared: Vec<_> = self
                .priorities
                .iter()
                .map(|one| one.0.to_string())
                .collect();
            return refuse(
                format!(
                    "a message of priority {}, for which switches reserve nothing",
                    class.0
                ),
                format!(
                    "post it with one of the declared priorities, {}, or declare its priority when the run begins",
                    declared.join(", ")
                ),
            );
        }
        let flow = FlowSpec {
            priority: priority.map(|priority| priority.0),
            section: self.scenario.workloads.len() as u32,
            ..FlowSpec::timed(tag, src, dst, bytes, self.now)
        };
        let slowest = slowest_link(&self.assembly.topology);
        check_flows([&flow], slowest, self.assembly.sizes)?;
        let id = FlowId((self.assembly.workload.flows.len() + self.messages.len()) as u32);
        let between_nics = self.between_nics(id, &flow)?;
        let posted = self.assembly.transports.fabric_flow(&between_nics);
        self.fresh.push(posted);
        self.messages.push(flow);
        Ok(id)
    }

    /// The message between NICs instead of hosts. They are the NICs that it has in the run of a scenario that lists it.
    fn between_nics(&self, id: FlowId, message: &FlowSpec) -> Result<FlowSpec, ScenarioError> {
        let mut between = message.clone();
        if let Some(choice) = self.nics {
            let (topology, paths) = (&self.assembly.topology, &self.assembly.routes.paths);
            let number = (choice, id.index());
            (between.src, between.dst) = chosen_pair(topology, paths, message, number)?;
        }
        Ok(between)
    }

    /// The posted message with this number; `None` if the flow was not posted.
    pub fn message(&self, flow: FlowId) -> Option<&FlowSpec> {
        let place = flow
            .index()
            .checked_sub(self.assembly.workload.flows.len())?;
        self.messages.get(place)
    }

    /// Simulates all events before `time`, and returns the events of messages. `wait` is called at intervals, and may interrupt the run.
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

    /// Simulates until a message is received or acknowledged, at most to `limit`. Time then stands at the end of the round of the event,
    /// later than the event by at most the shortest delay of a link, or the resolution if that is less. If no event is left, time stands at
    /// `limit`, and with the limit [`Time::NEVER`] at the last event.
    ///
    /// # Errors
    /// If `limit` is past, or the run is over.
    pub fn run_until_event(
        &mut self,
        limit: Time,
        wait: &mut dyn FnMut() -> RunDecision,
    ) -> Result<Vec<MessageEvent>, ScenarioError> {
        self.step(limit, Goal::Event(limit, self.resolution), wait)
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
            self.next = Some(answer.next);
            answer.events
        }))
    }

    fn order(&self, order: Order) {
        if let Some(orders) = &self.orders {
            // A finished simulation does not receive orders. The caller detects that in `answer`.
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

    /// Simulates until no events are left, and ends the run.
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

    /// Ends the run at its present time. The run is complete if all messages are acknowledged.
    ///
    /// # Panics
    /// If the simulation panicked, which is a defect of the program, never of the scenario.
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
        // A scenario without sections would get the default workload.
        if !self.messages.is_empty() || scenario.workloads.is_empty() {
            let is_usual = self.priorities == [DATA];
            let reserved = if is_usual {
                Vec::new()
            } else {
                self.priorities.clone()
            };
            scenario.list_flows(&self.messages, reserved);
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
            // A caller that drops a run ignores its outcome.
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

/// Rejects features that stepped runs lack.
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
            scenario.fast_forward.error.is_some(),
            "remembered calls (`fast-forward`)",
            "leave `fast-forward` out",
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
