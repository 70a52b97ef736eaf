//! Jobs in a run: the connections between ranks, the programs of hosts, and the times of iterations.

use crate::fast_forward::{Handle, Outbox};
use crate::grants::Grants;
use crate::job_result::{IterationTimes, JobResult};
use crate::lanes::{JobConnections, Lanes, MessagePlaces, SharedNics};
use crate::rank_events::{RankAction, RankCause, RankEvent, RankLog};
use crate::scenario::ScenarioError;
use clearway_fabric::{
    Flow, FlowMilestone, KnownTransfer, NicMessage, NicMessageKind, Post, Program,
};
use clearway_units::{Bytes, FlowId, HostId, MessageId, Time};
use clearway_workload::{FlowSpec, JobSpec, MessageNumber, Output, Rank, RankRun, Start, Workload};
use rustc_hash::FxHashMap;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

/// Step that a rank has reached in an iteration, with its time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Mark {
    time: Time,
    job: u32,
    rank: Rank,
    iteration: u32,
    step: Step,
}

/// Progress of a rank in an iteration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Step {
    Begun,
    /// The rank has posted its first message.
    Sending,
    Over,
}

/// Log of the ranks of one host.
type Log = Arc<Mutex<Vec<Mark>>>;

/// The jobs of a run with their connections.
#[derive(Debug, Clone, Default)]
pub(crate) struct Jobs {
    jobs: Vec<JobSpec>,
    /// Numbered connections of each job.
    connections: Vec<JobConnections>,
    /// Number that decides which NICs a connection uses, for connections of ranks that may have several lanes.
    lanes: BTreeMap<FlowId, u32>,
}

impl Jobs {
    /// Adds the connections of `jobs` to `workload`, after its flows. `shared` tells which NICs the ranks share.
    ///
    /// # Errors
    /// If there are too many flows.
    pub(crate) fn new(
        jobs: Vec<JobSpec>,
        workload: &mut Workload,
        shared: &SharedNics<'_>,
    ) -> Result<Self, ScenarioError> {
        let (mut all, mut lanes) = (Vec::new(), BTreeMap::new());
        for job in &jobs {
            let host = |rank: Rank| job.hosts[rank.index()];
            let most = |src: Rank, dst: Rank| shared.lanes(host(src), host(dst));
            let (mut connections, listed) = JobConnections::new(job, most);
            let (mut to, mut from) = (FxHashMap::default(), FxHashMap::default());
            let mut number = 0;
            for (label, connection) in (1..).zip(listed) {
                let pair = (connection.src, connection.dst);
                let id = FlowId(workload.flows.len() as u32);
                if connection.lane == 0 {
                    connections.number(pair, id);
                    number = next_of(&mut to, pair.0) + next_of(&mut from, pair.1);
                }
                if connections.lanes(pair).shares_nics() {
                    lanes.insert(id, number + connection.lane);
                }
                workload.flows.push(FlowSpec {
                    start: Start::Posted(connection.messages),
                    priority: job.priority,
                    variant: job.variant,
                    section: job.section,
                    ..FlowSpec::timed(
                        label,
                        host(connection.src),
                        host(connection.dst),
                        connection.bytes,
                        Time::ZERO,
                    )
                });
            }
            all.push(connections);
        }
        workload.check_counts().map_err(ScenarioError::from)?;
        Ok(Self {
            jobs,
            connections: all,
            lanes,
        })
    }

    /// Number of iterations and connections of each job.
    pub(crate) fn connections(&self) -> impl Iterator<Item = (u32, Vec<FlowId>)> {
        let jobs = self.jobs.iter().zip(&self.connections);
        jobs.map(|(job, connections)| {
            (
                job.iterations,
                connections.all().map(|(_, id)| id).collect(),
            )
        })
    }

    /// Starts only the job with this number, as if the other jobs did not exist. Flows keep their numbers, and therefore their routes.
    pub(crate) fn leave(&mut self, job: usize) {
        for (index, spec) in self.jobs.iter_mut().enumerate() {
            if index != job {
                spec.start = Time::NEVER;
            }
        }
    }

    /// Sets the bytes that each connection carries in an iteration.
    pub(crate) fn set_phases(&self, flows: &mut [Flow]) {
        for (job, connections) in self.jobs.iter().zip(&self.connections) {
            for (_, id) in connections.all() {
                let flow = &mut flows[id.index()];
                flow.phase = Bytes::new(flow.bytes.as_u64() / u64::from(job.iterations));
            }
        }
    }

    /// Every job with its connections.
    pub(crate) fn all(&self) -> impl Iterator<Item = (&JobSpec, &JobConnections)> {
        self.jobs.iter().zip(&self.connections)
    }

    /// Number that decides which of several NICs a connection uses; `None` for flows, and where ranks do not share NICs.
    pub(crate) fn lane(&self, connection: FlowId) -> Option<u32> {
        self.lanes.get(&connection).copied()
    }

    /// Start of the first job; [`Time::NEVER`] if there are no jobs.
    pub(crate) fn first_start(&self) -> Time {
        let starts = self.jobs.iter().map(|job| job.start);
        starts.min().unwrap_or(Time::NEVER)
    }

    /// Programs of all NICs, and the logs that they write. The home of a rank is the first NIC of its host, which has the number of the
    /// host; `nic_traffic` gives the NICs that its connections use. Actions of ranks are logged if `follows` is set.
    pub(crate) fn programs(
        &self,
        seed: u64,
        nic_traffic: &Workload,
        follows: bool,
        memory: Option<&Handle>,
    ) -> (BTreeMap<HostId, HostProgram>, Notes) {
        let mut programs: BTreeMap<HostId, HostProgram> = BTreeMap::new();
        let mut notes = Notes::default();
        for ((number, job), connections) in (0u32..).zip(&self.jobs).zip(&self.connections) {
            let mut seats = Vec::new();
            for (rank, &home) in (0..).map(Rank).zip(&job.hosts) {
                let program = programs.entry(home).or_insert_with(|| {
                    let program = HostProgram {
                        events: follows.then(RankLog::default),
                        ..HostProgram::default()
                    };
                    notes.logs.push(Arc::clone(&program.log));
                    notes.events.extend(program.events.clone());
                    program
                });
                let pace = job.pace(rank, number, seed);
                let slots = job.slots(rank, number, seed);
                let run = RankRun::new(Arc::clone(&job.plan), rank, job.iterations, pace)
                    .with_slots(slots);
                seats.push(program.add(number, (job, connections.places()), run));
            }
            for ((src, dst), id) in connections.all() {
                let flow = nic_traffic.flow(id);
                for (rank, nic) in [(src, flow.src), (dst, flow.dst)] {
                    let home = job.hosts[rank.index()];
                    let program = programs.entry(home).or_default();
                    program.own(seats[rank.index()], id, (nic != home).then_some(nic));
                    if nic != home {
                        let program = programs.entry(nic).or_default();
                        program.homes.insert(id, home);
                    }
                }
            }
            for ((src, dst), lanes) in connections.pairs() {
                let program = programs.entry(job.hosts[src.index()]).or_default();
                program.connect(seats[src.index()], dst, lanes);
            }
        }
        for program in programs.values_mut() {
            program.outbox.memory = memory.cloned();
        }
        (programs, notes)
    }

    /// Grants of messages by receivers that accept a limited number at a time; `None` if no receiver has a limit.
    pub(crate) fn grants(&self) -> Option<Grants> {
        let mut grants = Grants::default();
        for (job, connections) in self.jobs.iter().zip(&self.connections) {
            let Some(limit) = receiver_limit(job) else {
                continue;
            };
            let mut receivers: BTreeMap<Rank, usize> = BTreeMap::new();
            for ((_, dst), id) in connections.all() {
                let receiver = receivers.entry(dst);
                let receiver = *receiver.or_insert_with(|| grants.add_receiver(limit));
                grants.add_connection(id, receiver);
            }
        }
        (!grants.is_empty()).then_some(grants)
    }

    /// Results of the jobs.
    pub(crate) fn results(&self, notes: &Notes) -> Vec<JobResult> {
        let jobs = self.jobs.iter().zip(&self.connections);
        let mut results: Vec<JobResult> = jobs.map(JobResult::before).collect();
        let mut ranks_over: BTreeMap<(u32, u32), u32> = BTreeMap::new();
        let mut marks = notes.marks();
        marks.sort_unstable_by_key(|mark| (mark.iteration, mark.step, mark.time));
        for mark in marks {
            let result = &mut results[mark.job as usize];
            let index = mark.iteration as usize;
            match mark.step {
                Step::Begun if result.times.len() == index => result.times.push(IterationTimes {
                    begun: mark.time,
                    sending: None,
                    over: None,
                }),
                Step::Begun => {}
                Step::Sending => {
                    result.times[index].sending.get_or_insert(mark.time);
                }
                Step::Over => {
                    let over = ranks_over.entry((mark.job, mark.iteration)).or_default();
                    *over += 1;
                    if *over == result.ranks {
                        result.times[index].over = Some(mark.time);
                    }
                }
            }
        }
        results
    }
}

/// Previous count of `rank`; increments the count.
fn next_of(counts: &mut FxHashMap<Rank, u32>, rank: Rank) -> u32 {
    let next = counts.entry(rank).or_default();
    *next += 1;
    *next - 1
}

/// Number of messages that a rank of a job accepts at a time, if there is a limit.
fn receiver_limit(job: &JobSpec) -> Option<u32> {
    job.plan.graph().parallelism?.to_receiver
}

/// Logs of all hosts.
#[derive(Debug, Default)]
pub(crate) struct Notes {
    logs: Vec<Log>,
    events: Vec<RankLog>,
}

impl Notes {
    fn marks(&self) -> Vec<Mark> {
        let logs = self.logs.iter();
        let own = |log: &Log| log.lock().unwrap_or_else(PoisonError::into_inner).clone();
        logs.flat_map(own).collect()
    }

    /// Actions of the ranks, by time.
    pub(crate) fn rank_events(&self) -> Vec<RankEvent> {
        RankLog::merged(&self.events)
    }
}

/// A rank at its host.
#[derive(Debug)]
struct HostedRank {
    job: u32,
    /// Start of the rank's job; `None` once it has started.
    start: Option<Time>,
    run: RankRun,
    /// Connections to other ranks.
    connections: FxHashMap<Rank, Lanes>,
    places: MessagePlaces,
    /// True if receivers of the job accept a limited number of messages at a time.
    is_limited: bool,
    /// Deadline of this seat in the host's list.
    scheduled: Time,
}

impl HostedRank {
    fn deadline(&self) -> Time {
        self.start.unwrap_or_else(|| self.run.deadline())
    }

    /// The connection that carries a message to another rank.
    fn connection(&self, to: Rank, message: MessageNumber) -> FlowId {
        self.connections[&to].at(self.places.place(message.0))
    }
}

/// Program of a NIC: the ranks at home at this NIC, and its work for ranks at home at another NIC of the host.
#[derive(Debug, Default)]
pub(crate) struct HostProgram {
    seats: Vec<HostedRank>,
    /// Seats with a deadline, ordered by time, because thousands of jobs may share a host.
    deadlines: BTreeSet<(Time, usize)>,
    /// Seat of each connection, for ranks at home here.
    owners: FxHashMap<FlowId, usize>,
    /// The connections of these ranks that use another NIC, with that NIC.
    elsewhere: FxHashMap<FlowId, HostId>,
    /// The connections on this NIC whose ranks are at home elsewhere, with their home.
    homes: FxHashMap<FlowId, HostId>,
    nic_messages: VecDeque<(HostId, NicMessage)>,
    outbox: Outbox,
    /// Messages that wait for a grant before they are posted.
    asked: FxHashMap<FlowId, VecDeque<MessageNumber>>,
    credits: VecDeque<(FlowId, FlowMilestone)>,
    log: Log,
    /// Log of the actions of ranks, if the run is followed.
    events: Option<RankLog>,
    /// Time at which a rank here last finished an iteration.
    last_over: Time,
}

impl HostProgram {
    /// Adds a rank and returns the number of its seat.
    fn add(&mut self, job: u32, (spec, places): (&JobSpec, &MessagePlaces), run: RankRun) -> usize {
        self.seats.push(HostedRank {
            job,
            start: Some(spec.start),
            is_limited: receiver_limit(spec).is_some(),
            run,
            connections: FxHashMap::default(),
            places: places.clone(),
            scheduled: Time::NEVER,
        });
        let seat = self.seats.len() - 1;
        self.schedule(seat);
        seat
    }

    /// Updates the deadline of a seat.
    fn schedule(&mut self, seat: usize) {
        let own = &mut self.seats[seat];
        let deadline = own.deadline();
        let former = std::mem::replace(&mut own.scheduled, deadline);
        if former == deadline {
            return;
        }
        if !former.is_never() {
            self.deadlines.remove(&(former, seat));
        }
        if !deadline.is_never() {
            self.deadlines.insert((deadline, seat));
        }
    }

    /// Assigns this connection to the rank on `seat`; `elsewhere` is set if the connection uses another NIC.
    fn own(&mut self, seat: usize, id: FlowId, elsewhere: Option<HostId>) {
        self.owners.insert(id, seat);
        if let Some(nic) = elsewhere {
            self.elsewhere.insert(id, nic);
        }
    }

    /// Assigns these lanes from the rank on `seat` to another rank.
    fn connect(&mut self, seat: usize, to: Rank, lanes: Lanes) {
        self.seats[seat].connections.insert(to, lanes);
    }

    /// Notifies the home of a connection of an event of a message; false if the home is here.
    fn tell_home(&mut self, connection: FlowId, message: MessageId, kind: NicMessageKind) -> bool {
        let Some(&home) = self.homes.get(&connection) else {
            return false;
        };
        let nic_message = NicMessage {
            connection,
            message,
            bytes: Bytes::ZERO,
            kind,
        };
        self.nic_messages.push_back((home, nic_message));
        true
    }

    /// Performs the actions of the rank on `seat` after an event; `message` is the message of the event, if any.
    fn listen(&mut self, now: Time, seat: usize, (cause, message): (RankCause, MessageId)) {
        self.schedule(seat);
        let (job, rank) = (self.seats[seat].job, self.seats[seat].run.rank());
        let event = |action| RankEvent {
            time: now,
            job,
            rank,
            cause,
            message,
            action,
        };
        if let (Some(events), RankCause::Message(_)) = (&self.events, cause) {
            events.push(event(RankAction::Receive));
        }
        while let Some(output) = self.seats[seat].run.poll_output() {
            let action = self.act(now, seat, output);
            if let (Some(events), Some(action)) = (&self.events, action) {
                events.push(event(action));
            }
        }
    }

    /// Performs one action of the rank on `seat`.
    fn act(&mut self, now: Time, seat: usize, output: Output) -> Option<RankAction> {
        let own = &self.seats[seat];
        let (iteration, step) = match output {
            Output::Post { to, message, bytes } => {
                let (connection, message) = (own.connection(to, message), MessageId(message.0));
                self.post(
                    now,
                    Post {
                        connection,
                        message,
                        bytes,
                    },
                );
                return Some(RankAction::Post {
                    connection,
                    message,
                    bytes,
                });
            }
            Output::Ask { to, message } => {
                let connection = own.connection(to, message);
                self.asked.entry(connection).or_default().push_back(message);
                self.credits
                    .push_back((connection, FlowMilestone::CreditRequested));
                return Some(RankAction::Ask {
                    connection,
                    message: MessageId(message.0),
                });
            }
            Output::Timed { until, wait } => return Some(RankAction::Wait { until, wait }),
            Output::Begun { iteration } => (iteration, Step::Begun),
            Output::Sending { iteration } => (iteration, Step::Sending),
            Output::Over { iteration } => (iteration, Step::Over),
        };
        let mut log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
        log.push(Mark {
            time: now,
            job: own.job,
            rank: own.run.rank(),
            iteration,
            step,
        });
        drop(log);
        let is_over = step == Step::Over;
        if is_over {
            self.last_over = now;
        }
        is_over.then_some(RankAction::Over { iteration })
    }

    /// Posts a message here or at the NIC of its connection.
    fn post(&mut self, now: Time, post: Post) {
        let Some(&nic) = self.elsewhere.get(&post.connection) else {
            return self.outbox.post(now, post);
        };
        let nic_message = NicMessage {
            connection: post.connection,
            message: post.message,
            bytes: post.bytes,
            kind: NicMessageKind::Post,
        };
        self.nic_messages.push_back((nic, nic_message));
    }

    /// A message that a rank here, or at home at another NIC, has posted is acknowledged.
    fn acknowledge(&mut self, now: Time, connection: FlowId, message: MessageId) {
        if self.tell_home(connection, message, NicMessageKind::Sent) {
            return;
        }
        let seat = self.owners[&connection];
        self.seats[seat].run.on_sent(now, MessageNumber(message.0));
        self.listen(now, seat, (RankCause::Acknowledgement(connection), message));
    }

    /// A message for a rank here, or at home at another NIC, has arrived.
    fn arrive(&mut self, now: Time, connection: FlowId, message: MessageId) {
        if self.tell_home(connection, message, NicMessageKind::Received) {
            return;
        }
        let seat = self.owners[&connection];
        let own = &mut self.seats[seat];
        let is_new = own.run.on_received(now, MessageNumber(message.0));
        if is_new && own.is_limited {
            self.credits
                .push_back((connection, FlowMilestone::CreditReturned));
        }
        self.listen(now, seat, (RankCause::Message(connection), message));
    }
}

impl Program for HostProgram {
    fn on_sent(&mut self, now: Time, connection: FlowId, message: MessageId) {
        self.outbox.on_sent(now, connection, message);
        self.acknowledge(now, connection, message);
    }

    fn on_received(&mut self, now: Time, connection: FlowId, message: MessageId) {
        self.outbox.on_received(now, connection, message);
        self.arrive(now, connection, message);
    }

    fn on_granted(&mut self, now: Time, connection: FlowId) {
        if self.tell_home(connection, MessageId(0), NicMessageKind::Granted) {
            return;
        }
        let asked = self.asked.get_mut(&connection);
        if let Some(message) = asked.and_then(VecDeque::pop_front) {
            let seat = self.owners[&connection];
            self.seats[seat].run.on_granted(message);
            self.listen(now, seat, (RankCause::Turn, MessageId(0)));
        }
    }

    fn poll_credit(&mut self) -> Option<(FlowId, FlowMilestone)> {
        self.credits.pop_front()
    }

    fn on_nic_message(&mut self, now: Time, nic_message: NicMessage) {
        let NicMessage {
            connection,
            message,
            bytes,
            kind,
        } = nic_message;
        match kind {
            NicMessageKind::Post => self.outbox.post(
                now,
                Post {
                    connection,
                    message,
                    bytes,
                },
            ),
            NicMessageKind::Sent => self.acknowledge(now, connection, message),
            NicMessageKind::Received => self.arrive(now, connection, message),
            NicMessageKind::Granted => self.on_granted(now, connection),
        }
    }

    fn poll_nic_message(&mut self) -> Option<(HostId, NicMessage)> {
        self.nic_messages.pop_front()
    }

    fn on_deadline(&mut self, now: Time) {
        self.outbox.on_deadline(now);
        let due = self.deadlines.range(..=(now, usize::MAX));
        let mut due: Vec<usize> = due.map(|&(_, seat)| seat).collect();
        due.sort_unstable();
        for seat in due {
            let own = &mut self.seats[seat];
            let cause = match own.start.take() {
                Some(_) => {
                    own.run.start(now);
                    RankCause::Start
                }
                None => {
                    own.run.on_deadline(now);
                    RankCause::Clock
                }
            };
            self.listen(now, seat, (cause, MessageId(0)));
        }
    }

    fn deadline(&self) -> Time {
        let first = self.deadlines.first();
        let own = first.map_or(Time::NEVER, |first| first.0);
        own.min(self.outbox.deadline())
    }

    fn poll_post(&mut self) -> Option<Post> {
        self.outbox.poll_post()
    }

    fn poll_known(&mut self) -> Option<KnownTransfer> {
        self.outbox.poll_known()
    }

    fn over(&self) -> Option<Time> {
        let all = self.seats.iter().all(|seat| seat.run.is_over());
        all.then_some(self.last_over)
    }
}
