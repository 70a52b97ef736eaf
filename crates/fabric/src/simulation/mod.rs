//! Putting a fabric together, running it and taking stock.

mod accounting;
mod build;
mod snapshot;
mod traced_routes;
mod traffic;

use crate::domain::FabricDomain;
use crate::host::{Host, Ways};
use crate::link::LinkCounters;
use crate::observer::Observer;
use crate::switch::{SharedBufferParameters, SwitchParameters};
use crate::topology::{PacketSizes, Routes, Topology};
use accounting::Accounting;
pub(crate) use accounting::{Command, Report, StartFlow};
pub use accounting::{FlowOutcome, Outcome};
use clearway_engine::{Domain, Engine, ReadyInlets, Verdict};
use clearway_transport::cc::{CongestionControl, PathFacts};
use clearway_transport::telemetry::{HopRecords, Telemetry};
use clearway_transport::{Class, ClassSet, Opening, Profile};
use clearway_units::{Bytes, FlowId, HostId, MessageId, Span, Time};
pub use snapshot::{Sampler, Snapshot};
use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
pub use traced_routes::TracedRoutes;
pub use traffic::Traffic;

/// A flow: one message, or a connection on which a [`Program`] posts several.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Flow {
    /// Host that sends.
    pub src: HostId,
    /// Host that receives.
    pub dst: HostId,
    /// Bytes to send, all messages together.
    pub bytes: Bytes,
    /// Number of messages that a program posts; `None` for a flow that begins by the clock or by a [reaction](Reactions).
    pub messages: Option<NonZeroU32>,
    /// The class of its data packets.
    pub class: Class,
    /// Index of its congestion controller's settings; see [`Opening::variant`].
    pub variant: u16,
    /// Payload of a communication phase, zero if nobody knows; see [`Opening::phase`].
    pub phase: Bytes,
    /// Start time; `None` if the flow starts when something [reacts](Reactions) with it, or when a program posts its first message.
    pub start: Option<Time>,
}

impl Flow {
    /// A message that begins by the clock, in the class of data.
    pub const fn timed(src: HostId, dst: HostId, bytes: Bytes, at: Time) -> Self {
        Self {
            src,
            dst,
            bytes,
            messages: None,
            class: Class::DATA,
            variant: 0,
            phase: Bytes::ZERO,
            start: Some(at),
        }
    }

    /// Settings with which its sender opens the flow on `path`.
    pub(crate) fn opening(&self, path: PathFacts) -> Opening {
        Opening {
            class: self.class,
            path,
            variant: self.variant,
            phase: self.phase,
        }
    }
}

/// Milestone in the life of a flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FlowMilestone {
    /// The message is ready at the sender.
    Started,
    /// The receiver has every packet.
    Received,
    /// The sender has every acknowledgement.
    Sent,
    /// The program of the sender requests a credit: it wants to post a message on a connection.
    CreditRequested,
    /// The program of the receiver returns a credit: it has had a message.
    CreditReturned,
}

/// Event of a flow: it has reached a milestone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FlowEvent {
    /// Time of the event.
    pub time: Time,
    /// Flow that has reached the milestone.
    pub flow: FlowId,
    /// Milestone that it has reached.
    pub milestone: FlowMilestone,
}

/// Starts flows in answer to events of other flows.
///
/// One that belongs to a host sees the events of that host (what its flows sent, what it received) and starts flows of that
/// host at the same instant. One that belongs to the whole run sees all events and starts flows anywhere, but later by
/// [`RunControl::coordination_delay`]: nothing in a network happens elsewhere at once. A connection that it starts is a message
/// granted to the [program](Program) of its sender.
pub trait Reactions: Send {
    /// `event` has happened; flows to start are pushed to `start`.
    fn on_event(&mut self, event: FlowEvent, start: &mut Vec<FlowId>);
}

/// A message for a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Post {
    /// A [`Flow`] with messages.
    pub connection: FlowId,
    /// Unique on its connection, and not `u32::MAX`.
    pub message: MessageId,
    /// Length of the message.
    pub bytes: Bytes,
}

/// Program of a host: it posts messages on connections from there, in answer to messages that have come or are acknowledged, or when its
/// deadline has come.
///
/// A state machine: after each call it is asked what to post until it has nothing more.
pub trait Program: Send {
    /// A message that it has posted is acknowledged.
    fn on_sent(&mut self, now: Time, connection: FlowId, message: MessageId);
    /// A message on a connection to its host has arrived in full.
    fn on_received(&mut self, now: Time, connection: FlowId, message: MessageId);
    /// [`deadline`](Self::deadline) has come.
    fn on_deadline(&mut self, now: Time);
    /// Time at which the program goes on by itself; [`Time::NEVER`] if it waits for messages only.
    fn deadline(&self) -> Time;
    /// The next message to post.
    fn poll_post(&mut self) -> Option<Post>;
    /// Time at which its work was over; `None` while some is left, be it only a computation. A program that does nothing but answer
    /// messages has none of its own.
    fn over(&self) -> Option<Time> {
        Some(Time::ZERO)
    }
    /// The coordinator has granted a [credit](FlowMilestone::CreditRequested) on a connection from here: one more message may be posted.
    fn on_granted(&mut self, now: Time, connection: FlowId) {
        let _ = (now, connection);
    }
    /// The next credit that is [requested](FlowMilestone::CreditRequested) or [returned](FlowMilestone::CreditReturned), with its
    /// connection: for the coordinator.
    fn poll_credit(&mut self) -> Option<(FlowId, FlowMilestone)> {
        None
    }
    /// The program of another NIC of the same machine has sent this.
    fn on_nic_message(&mut self, now: Time, nic_message: NicMessage) {
        let _ = (now, nic_message);
    }
    /// The next message for the program of another NIC, and that NIC.
    fn poll_nic_message(&mut self) -> Option<(HostId, NicMessage)> {
        None
    }
}

/// Message of the program of one NIC to that of another, where a machine has several. It takes no bytes of the network and as much time as
/// the coordinator's decisions ([`RunControl::coordination_delay`]).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct NicMessage {
    /// The connection that it is about.
    pub connection: FlowId,
    /// The message on it.
    pub message: MessageId,
    /// Length of the message; zero where only the message's fate is told.
    pub bytes: Bytes,
    /// Kind of the NIC message.
    pub kind: NicMessageKind,
}

/// Kind of a [`NicMessage`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum NicMessageKind {
    /// The message is to be posted.
    Post,
    /// The message is acknowledged.
    Sent,
    /// The message has arrived.
    Received,
    /// One more message may be posted, whichever it is.
    Granted,
}

/// Input of a run: fabric, flows, transport, switches and seed.
#[derive(Debug, Clone)]
pub struct Setup<'a> {
    /// The fabric.
    pub topology: &'a Topology,
    /// Routes of the fabric.
    pub routes: Routes,
    /// All flows; flow `i` has [`FlowId`] `i`.
    pub flows: Arc<[Flow]>,
    /// The classes of flows that come beside these: see [`RunControl::traffic`].
    pub further_classes: ClassSet,
    /// The transport of all hosts. Line rate and bandwidth-delay product are replaced by those of the host's own NIC.
    pub profile: Arc<Profile>,
    /// Settings of the switches.
    pub switch: SwitchParameters,
    /// The shared buffers of switches with priority flow control; without, each queue is by itself and drops.
    pub buffer: Option<SharedBufferParameters>,
    /// Seed of all random streams.
    pub seed: u64,
}

impl Setup<'_> {
    /// Packets carry telemetry.
    fn uses_telemetry(&self) -> bool {
        let mut controllers = self.profile.controllers();
        let network = &self.profile.network;
        controllers.any(|settings| settings.build(network).uses_telemetry())
    }

    fn ways(&self) -> Ways {
        let network = &self.profile.network;
        Ways {
            paths: Arc::clone(&self.routes.paths),
            sizes: PacketSizes {
                payload: network.payload,
                header: network.header,
                ack: network.ack,
            },
        }
    }

    /// Checks that reserves and headrooms leave room for a packet in the buffer of every switch.
    ///
    /// # Errors
    /// The first switch for which they do not.
    pub fn check_buffers(&self) -> Result<(), BufferTooSmall> {
        let Some(parameters) = &self.buffer else {
            return Ok(());
        };
        let node_ports = self.topology.ports();
        let used = build::classes(self);
        for index in 0..self.topology.switches.len() {
            let links = &node_ports[self.topology.switch_node(index).0 as usize];
            build::buffer_rules(self, parameters, used, links).map_err(|(buffer, needed)| {
                let switch = self.topology.switches[index].name.clone();
                BufferTooSmall {
                    switch,
                    buffer,
                    needed,
                }
            })?;
        }
        Ok(())
    }
}

/// A buffer that its reserves and headrooms use up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BufferTooSmall {
    /// The switch.
    pub switch: String,
    /// Size of the buffer.
    pub buffer: Bytes,
    /// Bytes that reserves, headrooms and one packet need.
    pub needed: Bytes,
}

/// A fabric ready to run, watched by one `O` per domain. Packets carry telemetry if the transport's controller asks for it.
pub struct Simulation<O>(Kind<O>);

/// Compiled once for packets with telemetry and once for those without, which are smaller.
enum Kind<O> {
    Plain(Fabric<O, ()>),
    WithTelemetry(Fabric<O, HopRecords>),
}

impl<O: Observer> Simulation<O> {
    /// Puts a fabric together. `reactions` may give each host something that starts further flows; `observer` makes the
    /// observer of each domain.
    ///
    /// # Panics
    /// If a buffer is too small for its reserves and headrooms; see [`Setup::check_buffers`].
    pub fn new(
        setup: &Setup<'_>,
        reactions: impl FnMut(HostId) -> Option<Box<dyn Reactions>>,
        observer: impl FnMut() -> O,
    ) -> Self {
        Self(if setup.uses_telemetry() {
            Kind::WithTelemetry(Fabric::new(setup, reactions, observer))
        } else {
            Kind::Plain(Fabric::new(setup, reactions, observer))
        })
    }

    /// Gives hosts programs.
    #[must_use]
    pub fn with_programs(
        mut self,
        programs: impl FnMut(HostId) -> Option<Box<dyn Program>>,
    ) -> Self {
        match &mut self.0 {
            Kind::Plain(fabric) => fabric.add_programs(programs),
            Kind::WithTelemetry(fabric) => fabric.add_programs(programs),
        }
        self
    }

    /// Shares every round among the threads, even one that carries too little to be worth it. For tests: results are the same.
    #[must_use]
    pub fn sharing_all_rounds(mut self) -> Self {
        match &mut self.0 {
            Kind::Plain(fabric) => fabric.shares_all = true,
            Kind::WithTelemetry(fabric) => fabric.shares_all = true,
        }
        self
    }

    /// Runs until nothing is left to happen, or until `control` stops it.
    pub fn run(self, control: RunControl<'_>) -> Outcome<O> {
        self.run_sampled(control, None)
    }

    /// As [`run`](Self::run), with a sampler that looks at the fabric between rounds.
    pub fn run_sampled(
        self,
        control: RunControl<'_>,
        sampler: Option<&mut dyn Sampler>,
    ) -> Outcome<O> {
        match self.0 {
            Kind::Plain(fabric) => fabric.run(control, sampler),
            Kind::WithTelemetry(fabric) => fabric.run(control, sampler),
        }
    }
}

/// A fabric whose packets carry telemetry `T`.
struct Fabric<O, T> {
    domains: Vec<(FabricDomain<O, T>, Time)>,
    mailrooms: Vec<Arc<ReadyInlets>>,
    lookahead: Span,
    /// Every round is shared among the threads.
    shares_all: bool,
    /// The shortest delay of a link; rounds may be shorter still.
    shortest_delay: Span,
    flows: Arc<[Flow]>,
    /// The domain of each host.
    domain_of_host: Vec<u32>,
    hops: Arc<AtomicU64>,
}

impl<O: Observer, T: Telemetry> Fabric<O, T> {
    fn new(
        setup: &Setup<'_>,
        mut reactions: impl FnMut(HostId) -> Option<Box<dyn Reactions>>,
        mut observer: impl FnMut() -> O,
    ) -> Self {
        let topology = setup.topology;
        let node_ports = topology.ports();
        let (domain_of_host, hosts_of_switch) = build::partition(topology, &node_ports);
        let (mut ends, mailrooms) = build::connect::<T>(topology, &node_ports, &hosts_of_switch);
        let attachments = Arc::clone(&setup.routes.attachments);
        let hops = Arc::new(AtomicU64::new(0));
        let used = build::classes(setup);
        let ways = Arc::new(setup.ways());
        let mut domains = Vec::new();
        for (index, members) in hosts_of_switch.iter().enumerate() {
            let host = |&host: &HostId| {
                let up = node_ports[host.index()][0];
                build::build_host(
                    setup,
                    &mut ends,
                    host,
                    up,
                    reactions(host),
                    O::TRACES_TRANSPORT,
                )
            };
            let hosts: Vec<Host<T>> = members.iter().map(host).collect();
            let node = topology.switch_node(index);
            let links = &node_ports[node.0 as usize];
            let switch = build::build_switch(
                setup,
                &mut ends,
                index,
                links,
                used,
                Arc::clone(&attachments),
            );
            domains.push(FabricDomain {
                flows: Arc::clone(&setup.flows),
                ways: Arc::clone(&ways),
                host_next: vec![Time::NEVER; hosts.len()],
                hosts,
                switch,
                counters: LinkCounters::default(),
                observer: observer(),
                hops: Arc::clone(&hops),
            });
        }
        build::schedule_starts(&mut domains, setup, &domain_of_host);
        Self {
            domains: domains
                .into_iter()
                .map(FabricDomain::with_first_event)
                .collect(),
            mailrooms,
            lookahead: build::lookahead(setup),
            shares_all: false,
            shortest_delay: topology.shortest_delay(),
            flows: Arc::clone(&setup.flows),
            domain_of_host,
            hops,
        }
    }

    fn add_programs(&mut self, mut programs: impl FnMut(HostId) -> Option<Box<dyn Program>>) {
        for (domain, first) in &mut self.domains {
            for (host, next) in domain.hosts.iter_mut().zip(&mut domain.host_next) {
                if let Some(program) = programs(host.endpoint().host()) {
                    *next = host.run_program(program).min(*next);
                    *first = (*first).min(*next);
                }
            }
        }
    }

    fn run(self, control: RunControl<'_>, sampler: Option<&mut dyn Sampler>) -> Outcome<O> {
        let threads = control.threads;
        let delay = control
            .coordination_delay
            .unwrap_or(Span::ZERO)
            .max(self.shortest_delay);
        let mut accounting = Accounting::new(
            self.flows,
            self.domain_of_host,
            self.hops,
            delay,
            control,
            self.lookahead,
            sampler,
        );
        let mut domains = self.domains;
        accounting.order_stream(Time::ZERO, |domain, order| {
            let (domain, first) = &mut domains[domain];
            *first = domain.accept(Command::Start(order)).min(*first);
        });
        let mut engine = Engine::new(self.lookahead, threads, domains, self.mailrooms);
        if self.shares_all {
            engine = engine.sharing_all_rounds();
        }
        let concluded = engine.run(&mut accounting);
        accounting.close(concluded)
    }
}

/// Reason why a run ended before all flows and [programs](Program) were done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stopped {
    /// The time limit was reached.
    AtMost,
    /// The progress callback said so.
    Interrupted,
    /// No event was left although flows or programs wait: their triggers never came.
    Stuck,
    /// No event was left because paused links wait for each other.
    Deadlocked,
}

impl std::fmt::Display for Stopped {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::AtMost => "stopped at the time limit",
            Self::Interrupted => "interrupted",
            Self::Stuck => "nothing was left to happen although flows or jobs wait",
            Self::Deadlocked => "deadlock: paused links wait for each other",
        })
    }
}

/// Progress of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// Simulated time.
    pub now: Time,
    /// Flows done.
    pub flows_sent: usize,
    /// All flows.
    pub flows: usize,
    /// Packet-hops so far.
    pub hops: u64,
}

/// Control of a run: threads, time limit, coordinator, traffic and progress callback.
pub struct RunControl<'a> {
    /// Worker threads; results do not depend on them.
    pub threads: usize,
    /// Stop when the next event is at or after this time, whether or not all is done; a round that has begun is finished.
    pub at_most: Time,
    /// Sees all flow events and starts flows anywhere.
    pub coordinator: Option<Box<dyn Reactions>>,
    /// Flows beside those of [`Setup::flows`], of which only those under way are held in memory.
    pub traffic: Option<Traffic<'a>>,
    /// The time that the coordinator's decisions take; at least, and by default, the shortest delay of a link.
    pub coordination_delay: Option<Span>,
    /// Called after each round; [`Verdict::Stop`] interrupts the run.
    pub on_progress: &'a mut dyn FnMut(Progress) -> Verdict,
}
