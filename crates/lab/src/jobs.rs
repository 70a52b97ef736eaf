//! Jobs in a run: the connections between their ranks, what each host does, and how long iterations took.

use crate::grants::Grants;
use crate::posts::{JobPost, PostCause, PostLog};
use crate::scenario::ScenarioError;
use clearway_fabric::{Flow, FlowMilestone, NicMessage, NicMessageKind, Post, Program};
use clearway_units::{Bytes, FlowId, HostId, MessageId, Span, Time};
use clearway_workload::{
    FlowSpec, JobSpec, MessageNumber, Output, Rank, RankRun, Start, Volume, Workload,
};
use rustc_hash::FxHashMap;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

/// Step that a rank has reached in an iteration, with the time.
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

/// An iteration of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IterationTimes {
    /// Time at which the first rank began.
    pub begun: Time,
    /// Time at which the first message was posted; `None` if none was.
    pub sending: Option<Time>,
    /// Time at which the last rank finished; `None` if the run ended before.
    pub over: Option<Time>,
}

impl IterationTimes {
    /// From the first rank's beginning to the last one's end.
    pub fn span(&self) -> Option<Span> {
        Some(self.over?.since(self.begun))
    }
}

/// Outcome of a job.
#[derive(Debug, Clone, PartialEq)]
pub struct JobResult {
    /// The user's name for it.
    pub label: String,
    /// Number of ranks.
    pub ranks: u32,
    /// The host of each rank.
    pub hosts: Vec<HostId>,
    /// Number of the section of the workload that it belongs to, from zero.
    pub section: u32,
    /// The numbers of the flows that are its connections.
    pub flows: Range<u32>,
    /// Number of iterations that the job was to run.
    pub iterations: u32,
    /// Volume of an iteration, if it is a collective.
    pub volume: Option<Volume>,
    /// The iterations that began, in their order.
    pub times: Vec<IterationTimes>,
}

impl JobResult {
    /// True if all iterations are over.
    pub fn is_done(&self) -> bool {
        let over = self.times.iter().filter(|times| times.over.is_some());
        over.count() as u64 == u64::from(self.iterations)
    }
}

/// The jobs of a run with their connections.
#[derive(Debug, Clone, Default)]
pub(crate) struct Jobs {
    jobs: Vec<JobSpec>,
    /// For each job, its connections with their numbers.
    connections: Vec<BTreeMap<(Rank, Rank), FlowId>>,
}

impl Jobs {
    /// Adds the connections of `jobs` to `workload`, after its flows.
    ///
    /// # Errors
    /// If there are too many flows.
    pub(crate) fn new(jobs: Vec<JobSpec>, workload: &mut Workload) -> Result<Self, ScenarioError> {
        let mut all = Vec::new();
        for job in &jobs {
            let mut connections = BTreeMap::new();
            for connection in job.connections() {
                let id = FlowId(workload.flows.len() as u32);
                let host = |rank: Rank| job.hosts[rank.index()];
                workload.flows.push(FlowSpec {
                    start: Start::Posted(connection.messages),
                    priority: job.priority,
                    variant: job.variant,
                    section: job.section,
                    ..FlowSpec::timed(
                        connections.len() as u64 + 1,
                        host(connection.src),
                        host(connection.dst),
                        connection.bytes,
                        Time::ZERO,
                    )
                });
                connections.insert((connection.src, connection.dst), id);
            }
            all.push(connections);
        }
        workload.check_counts().map_err(ScenarioError::from)?;
        Ok(Self {
            jobs,
            connections: all,
        })
    }

    /// For each job how often it runs, and its connections.
    pub(crate) fn connections(&self) -> impl Iterator<Item = (u32, Vec<FlowId>)> {
        let jobs = self.jobs.iter().zip(&self.connections);
        jobs.map(|(job, connections)| (job.iterations, connections.values().copied().collect()))
    }

    /// Lets only the job with this number start, as if the others were not there; flows keep their numbers, and with them their routes.
    pub(crate) fn leave(&mut self, job: usize) {
        for (index, spec) in self.jobs.iter_mut().enumerate() {
            if index != job {
                spec.start = Time::NEVER;
            }
        }
    }

    /// Tells the connections how much they carry in an iteration.
    pub(crate) fn set_phases(&self, flows: &mut [Flow]) {
        for (job, connections) in self.jobs.iter().zip(&self.connections) {
            for id in connections.values() {
                let flow = &mut flows[id.index()];
                flow.phase = Bytes::new(flow.bytes.as_u64() / u64::from(job.iterations));
            }
        }
    }

    /// Every job with its connections.
    pub(crate) fn all(&self) -> impl Iterator<Item = (&JobSpec, &BTreeMap<(Rank, Rank), FlowId>)> {
        self.jobs.iter().zip(&self.connections)
    }

    /// Start of the first job; [`Time::NEVER`] if there are no jobs.
    pub(crate) fn first_start(&self) -> Time {
        let starts = self.jobs.iter().map(|job| job.start);
        starts.min().unwrap_or(Time::NEVER)
    }

    /// Programs of all NICs, and the logs that they write. A rank is at home at the first NIC of its host, which has the number of the
    /// host; `nic_traffic` gives the NICs that its connections use. Posts are logged if somebody `follows` them.
    pub(crate) fn programs(
        &self,
        seed: u64,
        nic_traffic: &Workload,
        follows: bool,
    ) -> (BTreeMap<HostId, HostProgram>, Notes) {
        let mut programs: BTreeMap<HostId, HostProgram> = BTreeMap::new();
        let mut notes = Notes::default();
        for ((number, job), connections) in (0u32..).zip(&self.jobs).zip(&self.connections) {
            let mut seats = Vec::new();
            for (rank, &home) in (0..).map(Rank).zip(&job.hosts) {
                let program = programs.entry(home).or_insert_with(|| {
                    let program = HostProgram {
                        posted: follows.then(PostLog::default),
                        ..HostProgram::default()
                    };
                    notes.logs.push(Arc::clone(&program.log));
                    notes.posted.extend(program.posted.clone());
                    program
                });
                let pace = job.pace(rank, number, seed);
                let slots = job.slots(rank, number, seed);
                let run = RankRun::new(Arc::clone(&job.plan), rank, job.iterations, pace)
                    .with_slots(slots);
                seats.push(program.add(number, job, run));
            }
            for (&(src, dst), &id) in connections {
                let flow = nic_traffic.flow(id);
                for (rank, nic) in [(src, flow.src), (dst, flow.dst)] {
                    let home = job.hosts[rank.index()];
                    let program = programs.entry(home).or_default();
                    program.own(seats[rank.index()], id, (nic != home).then_some(nic));
                    if nic != home {
                        programs.entry(nic).or_default().homes.insert(id, home);
                    }
                }
                let program = programs.entry(job.hosts[src.index()]).or_default();
                program.connect(seats[src.index()], dst, id);
            }
        }
        (programs, notes)
    }

    /// Grants of messages by receivers that take a limited number at a time; `None` if all take any number.
    pub(crate) fn grants(&self) -> Option<Grants> {
        let mut grants = Grants::default();
        for (job, connections) in self.jobs.iter().zip(&self.connections) {
            let Some(limit) = receiver_limit(job) else {
                continue;
            };
            let mut receivers: BTreeMap<Rank, usize> = BTreeMap::new();
            for (&(_, dst), &id) in connections {
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
        let mut results: Vec<JobResult> = jobs.map(empty_result).collect();
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

/// Number of messages that a rank of a job takes at a time, if there is a limit.
fn receiver_limit(job: &JobSpec) -> Option<u32> {
    job.plan.graph().parallelism?.to_receiver
}

fn empty_result((job, connections): (&JobSpec, &BTreeMap<(Rank, Rank), FlowId>)) -> JobResult {
    // They have been numbered one after the other.
    let first = connections.values().min().map_or(0, |first| first.0);
    JobResult {
        label: job.label.clone(),
        ranks: job.hosts.len() as u32,
        hosts: job.hosts.clone(),
        section: job.section,
        flows: first..first + connections.len() as u32,
        iterations: job.iterations,
        volume: job.volume,
        times: Vec::new(),
    }
}

/// Logs of all hosts.
#[derive(Debug, Default)]
pub(crate) struct Notes {
    logs: Vec<Log>,
    posted: Vec<PostLog>,
}

impl Notes {
    fn marks(&self) -> Vec<Mark> {
        let logs = self.logs.iter();
        let own = |log: &Log| log.lock().unwrap_or_else(PoisonError::into_inner).clone();
        logs.flat_map(own).collect()
    }

    /// Posts by connection and time.
    pub(crate) fn posts(&self) -> Vec<JobPost> {
        PostLog::merged(&self.posted)
    }
}

/// A rank at its host.
#[derive(Debug)]
struct Seat {
    job: u32,
    /// Start of the rank's job; `None` once it has started.
    start: Option<Time>,
    run: RankRun,
    /// Connections to other ranks.
    connections: FxHashMap<Rank, FlowId>,
    /// Receivers of its job take a limited number of messages at a time.
    is_limited: bool,
    /// Deadline under which the host keeps this seat.
    scheduled: Time,
}

impl Seat {
    fn deadline(&self) -> Time {
        self.start.unwrap_or_else(|| self.run.deadline())
    }
}

/// All ranks that are at home at a NIC, and what it does for ranks at home at another NIC of its host.
#[derive(Debug, Default)]
pub(crate) struct HostProgram {
    seats: Vec<Seat>,
    /// Seats that have a deadline: thousands of jobs may share a host.
    deadlines: BTreeSet<(Time, usize)>,
    /// Seat that has a connection, for ranks that are at home here.
    owners: FxHashMap<FlowId, usize>,
    /// The connections of these that use another NIC.
    elsewhere: FxHashMap<FlowId, HostId>,
    /// The connections that use this NIC, of ranks at home elsewhere, and where.
    homes: FxHashMap<FlowId, HostId>,
    nic_messages: VecDeque<(HostId, NicMessage)>,
    posts: VecDeque<Post>,
    /// Messages that may not be posted yet.
    asked: FxHashMap<FlowId, VecDeque<MessageNumber>>,
    credits: VecDeque<(FlowId, FlowMilestone)>,
    log: Log,
    /// Posts, if somebody follows them.
    posted: Option<PostLog>,
    /// Time at which a rank here last finished an iteration.
    last_over: Time,
}

impl HostProgram {
    /// A rank takes a seat here; returns its number.
    fn add(&mut self, job: u32, spec: &JobSpec, run: RankRun) -> usize {
        self.seats.push(Seat {
            job,
            start: Some(spec.start),
            is_limited: receiver_limit(spec).is_some(),
            run,
            connections: FxHashMap::default(),
            scheduled: Time::NEVER,
        });
        let seat = self.seats.len() - 1;
        self.schedule(seat);
        seat
    }

    /// Keeps the deadline of a seat, which may have changed.
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

    /// The rank on `seat` has this connection, which perhaps uses another NIC.
    fn own(&mut self, seat: usize, id: FlowId, elsewhere: Option<HostId>) {
        self.owners.insert(id, seat);
        if let Some(nic) = elsewhere {
            self.elsewhere.insert(id, nic);
        }
    }

    /// The rank on `seat` sends to another on this connection.
    fn connect(&mut self, seat: usize, to: Rank, id: FlowId) {
        self.seats[seat].connections.insert(to, id);
    }

    /// Tells the home of a connection what has become of a message; false if that is here.
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

    /// Does what the rank on `seat` says after an event.
    fn listen(&mut self, now: Time, seat: usize, cause: PostCause) {
        self.schedule(seat);
        let Seat {
            job,
            run,
            connections,
            ..
        } = &mut self.seats[seat];
        let mut log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
        while let Some(output) = run.poll_output() {
            let (iteration, step) = match output {
                Output::Post { to, message, bytes } => {
                    let (connection, message) = (connections[&to], MessageId(message.0));
                    if let Some(posted) = &self.posted {
                        posted.push((connection, now, cause));
                    }
                    match self.elsewhere.get(&connection) {
                        None => self.posts.push_back(Post {
                            connection,
                            message,
                            bytes,
                        }),
                        Some(&nic) => {
                            let nic_message = NicMessage {
                                connection,
                                message,
                                bytes,
                                kind: NicMessageKind::Post,
                            };
                            self.nic_messages.push_back((nic, nic_message));
                        }
                    }
                    continue;
                }
                Output::Ask { to, message } => {
                    let connection = connections[&to];
                    self.asked.entry(connection).or_default().push_back(message);
                    self.credits
                        .push_back((connection, FlowMilestone::CreditRequested));
                    continue;
                }
                Output::Begun { iteration } => (iteration, Step::Begun),
                Output::Sending { iteration } => (iteration, Step::Sending),
                Output::Over { iteration } => {
                    self.last_over = now;
                    (iteration, Step::Over)
                }
            };
            log.push(Mark {
                time: now,
                job: *job,
                rank: run.rank(),
                iteration,
                step,
            });
        }
    }
}

impl Program for HostProgram {
    fn on_sent(&mut self, now: Time, connection: FlowId, message: MessageId) {
        if self.tell_home(connection, message, NicMessageKind::Sent) {
            return;
        }
        let seat = self.owners[&connection];
        self.seats[seat].run.on_sent(now, MessageNumber(message.0));
        self.listen(now, seat, PostCause::Acknowledgement(connection));
    }

    fn on_received(&mut self, now: Time, connection: FlowId, message: MessageId) {
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
        self.listen(now, seat, PostCause::Message(connection));
    }

    fn on_granted(&mut self, now: Time, connection: FlowId) {
        if self.tell_home(connection, MessageId(0), NicMessageKind::Granted) {
            return;
        }
        let asked = self.asked.get_mut(&connection);
        if let Some(message) = asked.and_then(VecDeque::pop_front) {
            let seat = self.owners[&connection];
            self.seats[seat].run.on_granted(message);
            self.listen(now, seat, PostCause::Turn);
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
            NicMessageKind::Post => self.posts.push_back(Post {
                connection,
                message,
                bytes,
            }),
            NicMessageKind::Sent => self.on_sent(now, connection, message),
            NicMessageKind::Received => self.on_received(now, connection, message),
            NicMessageKind::Granted => self.on_granted(now, connection),
        }
    }

    fn poll_nic_message(&mut self) -> Option<(HostId, NicMessage)> {
        self.nic_messages.pop_front()
    }

    fn on_deadline(&mut self, now: Time) {
        let due = self.deadlines.range(..=(now, usize::MAX));
        let mut due: Vec<usize> = due.map(|&(_, seat)| seat).collect();
        due.sort_unstable();
        for seat in due {
            let own = &mut self.seats[seat];
            let cause = match own.start.take() {
                Some(_) => {
                    own.run.start(now);
                    PostCause::Start
                }
                None => {
                    own.run.on_deadline(now);
                    PostCause::Clock
                }
            };
            self.listen(now, seat, cause);
        }
    }

    fn deadline(&self) -> Time {
        self.deadlines.first().map_or(Time::NEVER, |first| first.0)
    }

    fn poll_post(&mut self) -> Option<Post> {
        self.posts.pop_front()
    }

    fn over(&self) -> Option<Time> {
        let all = self.seats.iter().all(|seat| seat.run.is_over());
        all.then_some(self.last_over)
    }
}

/// The speed of a collective, as nccl-tests print it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bandwidth {
    /// The size of the operation over its time, in bytes per second.
    pub algorithm: f64,
    /// Rate that links must carry for that, in bytes per second.
    pub bus: f64,
}

impl Bandwidth {
    /// Of an operation that took `time`.
    pub fn of(volume: Volume, time: Span) -> Self {
        let algorithm = volume.bytes.as_u64() as f64 / (time.as_ps() as f64 * 1e-12);
        Self {
            algorithm,
            bus: algorithm * volume.bus_factor,
        }
    }
}
