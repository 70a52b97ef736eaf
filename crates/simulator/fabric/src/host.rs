//! A host: one NIC, its transport endpoints, and the flows that start there.
//!
//! The NIC pulls: whenever its wire is free it asks for the next packet, so windows, paths and timestamps are decided at the moment of
//! transmission. Control packets go first and flows take turns. The endpoint decides both, or [`Endpoints`] where a run has several
//! transports.

mod prefetching;
mod skip;

use crate::command::{Report, StartFlow};
use crate::endpoints::Endpoints;
use crate::flow::{Flow, FlowEvent, FlowMilestone, Reactions};
use crate::link::{Arrival, Frame, Link, Sinks};
use crate::meter::LinkView;
use crate::observer::Observation;
use crate::path_table::PathTable;
use crate::pause::{LinkPauses, PauseState};
use crate::program::{Delivery, KnownTransfer, Post, Program};
use crate::program::{ProgramAtHost, is_connection};
use crate::topology::{LinkId, NodeId, Topology};
use clearway_engine::{BufferPool, DomainHorizon, Inlet, Round};
use clearway_transport::congestion::telemetry::Telemetry;
use clearway_transport::{Class, ClassSet, Endpoint, Event, FlowStatistics};
use clearway_units::{FlowId, HostId, MessageId, Span, Time};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

pub(crate) struct Host<T> {
    endpoints: Endpoints<T>,
    link: Link<T>,
    /// Time at which the wire is free.
    free_at: Time,
    /// The time of the last event here.
    now: Time,
    inlet: Inlet<Arrival<T>>,
    /// Flows to start, earliest first.
    starts: BinaryHeap<Reverse<StartFlow>>,
    reactions: Option<Box<dyn Reactions>>,
    program: ProgramAtHost,
    pause: PauseState,
    /// Time from the arrival of a pause frame to its effect.
    reaction: Span,
    /// Control waits in class 1 and is paused with it.
    control_among_data: bool,
    /// Pause frames that have arrived and wait for that, and the end of the last pause if the cable goes down.
    effects: VecDeque<(Time, ClassSet)>,
    /// Lower bound of the next start of a flow, effect of a pause and deadline of the program; zero if it is to be computed anew.
    rare_event_bound: Time,
}

/// Parts of the domain that a host uses while it runs.
pub(crate) struct Context<'a, O, T> {
    pub(crate) flows: &'a [Flow],
    /// The transport of each flow, listed or not; empty where there is one.
    pub(crate) transports: &'a [u8],
    pub(crate) path_table: &'a PathTable,
    pub(crate) sinks: Sinks<'a, O, T>,
    pub(crate) reports: &'a mut Vec<Report>,
}

/// Kind of the next event at a host, in the order of equal times.
enum Next {
    Pause,
    Arrival,
    Transmission,
    Timer,
}

impl<T: Telemetry> Host<T> {
    pub(crate) fn new(
        endpoints: Endpoints<T>,
        link: Link<T>,
        inlet: Inlet<Arrival<T>>,
        reactions: Option<Box<dyn Reactions>>,
        (reaction, control_among_data): (Span, bool),
    ) -> Self {
        Self {
            endpoints,
            link,
            free_at: Time::ZERO,
            now: Time::ZERO,
            inlet,
            starts: BinaryHeap::new(),
            reactions,
            program: ProgramAtHost::default(),
            pause: PauseState::default(),
            reaction,
            control_among_data,
            effects: VecDeque::new(),
            rare_event_bound: Time::ZERO,
        }
    }

    /// Runs `program` here; returns when it begins.
    pub(crate) fn run_program(&mut self, program: Box<dyn Program>) -> Time {
        self.rare_event_bound = Time::ZERO;
        self.program = ProgramAtHost::new(program);
        self.program.deadline
    }

    /// Time at which the program here was done; `None` if it is not done, and zero without a program.
    pub(crate) fn program_over(&self) -> Option<Time> {
        self.program.over()
    }

    /// A flow from here is to start.
    pub(crate) fn schedule(&mut self, order: StartFlow) {
        if self.starts.capacity() == 0 {
            // Most hosts start one flow, and a heap takes room for four.
            self.starts.reserve_exact(1);
        }
        self.rare_event_bound = Time::ZERO;
        self.starts.push(Reverse(order));
    }

    /// Something comes without a packet at `at`.
    pub(crate) fn deliver(&mut self, at: Time, delivery: Delivery) {
        self.rare_event_bound = Time::ZERO;
        self.program.deliver(at, delivery);
    }

    /// New packets have come in; returns when the first of them arrives.
    pub(crate) fn collect(&mut self, round: &Round, buffers: &mut BufferPool<Arrival<T>>) -> Time {
        self.inlet.collect(round, buffers)
    }

    pub(crate) fn id(&self) -> HostId {
        self.endpoints.host()
    }

    /// In the order of the transports.
    pub(crate) fn endpoints(&self) -> impl Iterator<Item = &Endpoint<T>> {
        self.endpoints.iter()
    }

    /// Packets on the wire towards this host.
    pub(crate) fn on_the_wire(&self) -> u64 {
        self.inlet.in_transit() as u64
    }

    /// Runs all events of the round.
    pub(crate) fn run<O: Observation>(
        &mut self,
        round: &Round,
        context: &mut Context<'_, O, T>,
    ) -> DomainHorizon {
        let sinks = &mut context.sinks;
        if self.endpoints.are_several() || sinks.observer.interests().are_frequent() {
            return self.run_events::<O, true>(round, context);
        }
        sinks.quietly(|sinks| {
            let mut context = Context {
                flows: context.flows,
                transports: context.transports,
                path_table: context.path_table,
                sinks,
                reports: context.reports,
            };
            self.run_events::<_, false>(round, &mut context)
        })
    }

    fn run_events<O: Observation, const SEVERAL: bool>(
        &mut self,
        round: &Round,
        context: &mut Context<'_, O, T>,
    ) -> DomainHorizon {
        let next = loop {
            let (time, what) = self.next_event::<SEVERAL>();
            if time >= round.end() {
                break time;
            }
            self.now = time;
            match what {
                Next::Pause => self.react(context),
                Next::Arrival => self.receive::<O, SEVERAL>(context),
                Next::Transmission => self.transmit::<O, SEVERAL>(context),
                Next::Timer => self.on_timer::<O, SEVERAL>(context),
            }
            let observer = &mut context.sinks.observer;
            if observer.interests().senders {
                let endpoints = self.endpoints.iter();
                endpoints.for_each(|endpoint| observer.on_endpoint(time, endpoint));
            }
        };
        self.inlet.tidy(context.sinks.buffers);
        DomainHorizon {
            next,
            sent: self.link.flush(round, context.sinks.counters),
        }
    }

    #[inline(always)] // Its callers are two, for one endpoint and for several.
    fn next_event<const SEVERAL: bool>(&mut self) -> (Time, Next) {
        let mut next = (self.arrival(), Next::Arrival);
        if self.endpoints.are_ready::<SEVERAL>() {
            let start = self.free_at.max(self.now);
            if start < next.0 {
                next = (start, Next::Transmission);
            }
        }
        let mut timer = self.endpoints.deadline::<SEVERAL>();
        debug_assert!(self.rare_event_bound <= self.next_start().min(self.next_effect()));
        if self.rare_event_bound <= next.0 {
            let (start, effect) = self.rare_events();
            timer = timer.min(start);
            if effect <= next.0 && !effect.is_never() {
                next = (effect, Next::Pause);
            }
        }
        if timer < next.0 {
            next = (timer.max(self.now), Next::Timer);
        }
        next
    }

    /// The next start of a flow or deadline of the program, and the next effect of a pause.
    #[cold]
    #[inline(never)]
    fn rare_events(&mut self) -> (Time, Time) {
        let (start, effect) = (self.next_start(), self.next_effect());
        self.rare_event_bound = start.min(effect);
        (start, effect)
    }

    /// The next start of a flow or deadline of the program.
    fn next_start(&self) -> Time {
        let start = self.starts.peek().map(|Reverse(order)| order.at);
        start.unwrap_or(Time::NEVER).min(self.program.deadline)
    }

    /// The next effect of a pause.
    fn next_effect(&self) -> Time {
        self.effects.front().map_or(Time::NEVER, |(at, _)| *at)
    }

    #[inline]
    fn arrival(&self) -> Time {
        let first = self.inlet.first_unread();
        first.map_or(Time::NEVER, |arrival| arrival.time)
    }

    #[inline]
    fn receive<O: Observation, const SEVERAL: bool>(&mut self, context: &mut Context<'_, O, T>) {
        match &mut self.inlet.unread_at_mut(0).frame {
            Frame::Packet(packet) => {
                let node: NodeId = Topology::host_node(self.endpoints.host());
                let observer = &mut context.sinks.observer;
                observer.on_arrival(self.now, node, packet);
                context.sinks.counters.delivered += 1;
                self.endpoints
                    .on_packet::<SEVERAL>(self.now, packet, context.transports);
                self.inlet.advance(1);
                self.handle_events::<O, SEVERAL>(context);
            }
            &mut Frame::Pause(classes) => {
                context.sinks.counters.pause_frames_received += 1;
                self.inlet.advance(1);
                self.hold_back(classes);
            }
        }
    }

    /// Takes note that a pause frame has arrived. It holds until the next one, or until the cable goes down.
    fn hold_back(&mut self, classes: ClassSet) {
        self.rare_event_bound = Time::ZERO;
        let (at, outage) = (self.now + self.reaction, self.link.next_outage(self.now));
        // Pauses end with the link: a frame that would take effect after the outage is forgotten.
        if at >= outage {
            return;
        }
        // This frame comes before the release at the outage that an earlier frame has queued; it queues the release again if needed.
        if self.effects.back().is_some_and(|(at, _)| *at == outage) {
            self.effects.pop_back();
        }
        self.effects.push_back((at, classes));
        if !outage.is_never() && !classes.is_empty() {
            self.effects.push_back((outage, ClassSet::EMPTY));
        }
    }

    /// A pause frame takes effect.
    fn react<O: Observation>(&mut self, context: &mut Context<'_, O, T>) {
        self.rare_event_bound = Time::ZERO;
        if let Some((_, classes)) = self.effects.pop_front() {
            self.pause.obey(self.now, classes);
            let mut held = classes;
            if self.control_among_data && classes.contains(Class::DATA) {
                held.insert(Class::CONTROL);
            }
            self.endpoints.set_paused(held);
            let observer = &mut context.sinks.observer;
            let (now, link) = (self.now, self.link.id);
            observer.tell(|observer| observer.on_pause(now, link, classes));
        }
    }

    /// Link of the host at `now`.
    pub(crate) fn link_view(&mut self, now: Time) -> LinkView<'_> {
        self.link.view_of_host(now, self.free_at)
    }

    /// Link of the host, if flow control holds it back now.
    pub(crate) fn paused(&self) -> Option<LinkId> {
        (!self.pause.classes().is_empty()).then_some(self.link.id)
    }

    /// Pauses of the NIC until `end`; `None` if it was never paused.
    pub(crate) fn pauses(&self, end: Time) -> Option<LinkPauses> {
        self.pause.account(self.link.id, end)
    }

    #[inline]
    fn transmit<O: Observation, const SEVERAL: bool>(&mut self, context: &mut Context<'_, O, T>) {
        let (now, link, free_at) = (self.now, &mut self.link, &mut self.free_at);
        let sinks = &mut context.sinks;
        self.endpoints.transmit_with::<SEVERAL>(now, |packet| {
            *free_at = now + link.transmission_from(now, packet.size);
            sinks.counters.injected += 1;
            link.carry(now, *free_at, packet, sinks);
        });
    }

    fn on_timer<O: Observation, const SEVERAL: bool>(&mut self, context: &mut Context<'_, O, T>) {
        self.rare_event_bound = Time::ZERO;
        if self.endpoints.deadline::<SEVERAL>() <= self.now {
            self.endpoints.on_deadline::<SEVERAL>(self.now);
            self.handle_events::<O, SEVERAL>(context);
        }
        while let Some(&Reverse(order)) = self.starts.peek()
            && order.at <= self.now
        {
            self.starts.pop();
            self.start(&order, context);
        }
        while let Some(delivery) = self.program.take_delivery(self.now) {
            match delivery {
                Delivery::NicMessage(nic_message) => self.tell_program(context, |program, now| {
                    program.on_nic_message(now, nic_message);
                }),
                Delivery::Acknowledged(flow, message) => {
                    self.on_message_sent(flow, message, None, context);
                }
                Delivery::Arrived(flow, message, _) => {
                    self.on_message_received(flow, message, context);
                }
            }
        }
        if self.program.deadline <= self.now {
            self.tell_program(context, |program, now| program.on_deadline(now));
        }
    }

    fn start<O>(&mut self, order: &StartFlow, context: &mut Context<'_, O, T>) {
        let flow = order.id;
        if order.flow.messages.is_some() {
            return self.tell_program(context, |program, now| program.on_granted(now, flow));
        }
        let Flow {
            src,
            dst,
            bytes,
            transport,
            ..
        } = order.flow;
        assert_eq!(src, self.id(), "a host starts its own flows");
        let path = context.path_table.path_facts(&order.flow);
        let endpoint = self.endpoints.endpoint_mut(transport);
        endpoint.open(flow, dst, &order.flow.opening(path));
        let message = MessageId(0);
        endpoint.post(self.now, flow, message, bytes);
        endpoint.close(self.now, flow);
        self.report(
            flow,
            FlowMilestone::Started,
            FlowStatistics::default(),
            context,
        );
    }

    /// Calls the program about an event, and posts the messages with which it answers.
    fn tell_program<O>(
        &mut self,
        context: &mut Context<'_, O, T>,
        tell: impl FnOnce(&mut dyn Program, Time),
    ) {
        let now = self.now;
        self.rare_event_bound = Time::ZERO;
        let clock = now + self.program.skipped();
        self.program.tell(|program| tell(program, clock));
        while let Some(post) = self.program.poll_post() {
            self.post(post, context);
        }
        while let Some(known) = self.program.poll_known() {
            self.transfer(&known, context);
        }
        while let Some((connection, milestone)) = self.program.poll_credit() {
            self.report(connection, milestone, FlowStatistics::default(), context);
        }
        while let Some((to, nic_message)) = self.program.poll_nic_message() {
            context.reports.push(Report::Delivery {
                time: now,
                after: None,
                to,
                delivery: Delivery::NicMessage(nic_message),
            });
        }
    }

    fn post<O>(&mut self, post: Post, context: &mut Context<'_, O, T>) {
        let flow = post.connection;
        let connection = context.flows[flow.index()];
        let progress = self.program.on_post(flow, &connection, true);
        if !progress.is_open {
            let opening = connection.opening(context.path_table.path_facts(&connection));
            let endpoint = self.endpoints.endpoint_mut(connection.transport);
            endpoint.open(flow, connection.dst, &opening);
        }
        if progress.is_first {
            self.report(
                flow,
                FlowMilestone::Started,
                FlowStatistics::default(),
                context,
            );
        }
        let (message, bytes) = (post.message, post.bytes);
        let endpoint = self.endpoints.endpoint_mut(connection.transport);
        endpoint.post(self.now, flow, message, bytes);
        if progress.is_last {
            endpoint.close(self.now, flow);
        }
    }

    /// Transfers a message without packets.
    fn transfer<O>(&mut self, known: &KnownTransfer, context: &mut Context<'_, O, T>) {
        let (flow, message) = (known.connection, known.message);
        let connection = context.flows[flow.index()];
        let progress = self.program.on_post(flow, &connection, false);
        if progress.is_first {
            self.report(
                flow,
                FlowMilestone::Started,
                FlowStatistics::default(),
                context,
            );
        }
        // A connection whose last message takes no packets stays open: the end of a connection would take one.
        let acknowledged = Delivery::Acknowledged(flow, message);
        self.program.deliver(self.now + known.sent, acknowledged);
        context.reports.push(Report::Delivery {
            time: self.now,
            after: Some(known.received),
            to: connection.dst,
            delivery: Delivery::Arrived(flow, message, known.bytes),
        });
    }

    #[inline(always)] // Most often there are no events, and a call takes five instructions of each hop.
    fn handle_events<O: Observation, const SEVERAL: bool>(
        &mut self,
        context: &mut Context<'_, O, T>,
    ) {
        while let Some(event) = self.endpoints.poll_event::<SEVERAL>() {
            self.handle_event(event, context);
        }
    }

    #[inline(never)]
    fn handle_event<O: Observation>(&mut self, event: Event, context: &mut Context<'_, O, T>) {
        let (now, host) = (self.now, self.endpoints.host());
        let observer = &mut context.sinks.observer;
        observer.tell(|observer| observer.on_transport(now, host, &event));
        match event {
            Event::Sent {
                flow,
                message,
                statistics,
                ..
            } => self.on_sent(flow, message, statistics, context),
            Event::Received { flow, message, .. } => self.on_received(flow, message, context),
            Event::Ack { .. } | Event::Loss { .. } => {}
        }
    }

    fn on_sent<O>(
        &mut self,
        flow: FlowId,
        message: MessageId,
        statistics: FlowStatistics,
        context: &mut Context<'_, O, T>,
    ) {
        if !is_connection(context.flows, flow) {
            return self.finish(flow, FlowMilestone::Sent, statistics, context);
        }
        self.on_message_sent(flow, message, Some(statistics), context);
    }

    /// A message of a program is acknowledged, with the counters of its sender if it had packets.
    fn on_message_sent<O>(
        &mut self,
        flow: FlowId,
        message: MessageId,
        statistics: Option<FlowStatistics>,
        context: &mut Context<'_, O, T>,
    ) {
        if let Some(statistics) = self.program.on_acknowledged(flow, statistics) {
            self.report(flow, FlowMilestone::Sent, statistics, context);
        }
        self.tell_program(context, |program, now| program.on_sent(now, flow, message));
    }

    fn on_received<O>(
        &mut self,
        flow: FlowId,
        message: MessageId,
        context: &mut Context<'_, O, T>,
    ) {
        if !is_connection(context.flows, flow) {
            return self.finish(
                flow,
                FlowMilestone::Received,
                FlowStatistics::default(),
                context,
            );
        }
        self.on_message_received(flow, message, context);
    }

    /// A message to the program here has arrived.
    fn on_message_received<O>(
        &mut self,
        flow: FlowId,
        message: MessageId,
        context: &mut Context<'_, O, T>,
    ) {
        let messages = context.flows[flow.index()].messages;
        if self.program.has_received_all(flow, messages) {
            self.report(
                flow,
                FlowMilestone::Received,
                FlowStatistics::default(),
                context,
            );
        }
        self.tell_program(context, |program, now| {
            program.on_received(now, flow, message);
        });
    }

    /// Reports that a flow has reached a milestone and starts the flows that wait for it here.
    fn finish<O>(
        &mut self,
        flow: FlowId,
        milestone: FlowMilestone,
        statistics: FlowStatistics,
        context: &mut Context<'_, O, T>,
    ) {
        self.report(flow, milestone, statistics, context);
        if let Some(reactions) = &mut self.reactions {
            let mut start = Vec::new();
            reactions.on_event(
                FlowEvent {
                    time: self.now + self.program.skipped(),
                    flow,
                    milestone,
                },
                &mut start,
            );
            for id in start {
                self.schedule(StartFlow {
                    at: self.now,
                    id,
                    flow: context.flows[id.index()],
                });
            }
        }
    }

    fn report<O>(
        &self,
        flow: FlowId,
        milestone: FlowMilestone,
        statistics: FlowStatistics,
        context: &mut Context<'_, O, T>,
    ) {
        let event = FlowEvent {
            time: self.now,
            flow,
            milestone,
        };
        context.reports.push(Report::Flow { event, statistics });
    }
}
