//! GPUs of the oracle: memory, injection channels, program and injection control.

use super::model::{Credits, Oracle, Packet, READS, REQUESTS, RESPONSES, Sending};
use clearway_scaleup::injection::{Completed, InjectionControl, InjectionDecision, Remote, Sent};
use clearway_scaleup::{
    Configuration, Cycle, GroupId, InjectionArbiter, InjectionChannels, Operation, OperationKind,
    PacketClass, Posts, Program, Target,
};
use clearway_units::HostId;
use std::collections::VecDeque;

/// A posted operation and the cycle of its posting.
type Posted = (Operation, Cycle);

/// A GPU.
#[derive(Debug)]
pub(crate) struct Gpu {
    id: HostId,
    pub(crate) program: Box<dyn Program>,
    control: Box<dyn InjectionControl>,
    /// Packets on the link from the switch: the cycle of the tail.
    pub(crate) arrivals: Vec<(Cycle, Packet)>,
    /// Requests that memory has not taken.
    buffer: VecDeque<Packet>,
    /// Responses in memory, and when they are ready.
    memory: Vec<(Cycle, Packet)>,
    /// Responses that wait for the link.
    responses: VecDeque<Packet>,
    /// Operations that wait for injection, by channel; the channel of responses stays empty.
    posted: [VecDeque<Posted>; 3],
    /// Cycle since which the head of each channel has been there.
    head_since: [Cycle; 3],
    credits: [u32; 3],
    pub(crate) credits_back: Vec<Credits>,
    wakes: Vec<Cycle>,
    idle_from: Cycle,
    /// Channels, the one served longest ago first.
    by_age: Vec<usize>,
    /// The channel whose turn it is.
    turn: usize,
    sent: u32,
}

impl Gpu {
    pub(crate) fn new(
        id: HostId,
        program: Box<dyn Program>,
        control: Box<dyn InjectionControl>,
        configuration: &Configuration,
    ) -> Self {
        let channels = match configuration.channels {
            InjectionChannels::PerKind => 3,
            InjectionChannels::Shared => 2,
        };
        Self {
            id,
            program,
            control,
            arrivals: Vec::new(),
            buffer: VecDeque::new(),
            memory: Vec::new(),
            responses: VecDeque::new(),
            posted: Default::default(),
            head_since: [0; 3],
            credits: [configuration.input_buffer; 3],
            credits_back: Vec::new(),
            wakes: Vec::new(),
            idle_from: 0,
            by_age: (0..channels).collect(),
            turn: 0,
            sent: 0,
        }
    }

    pub(crate) fn is_quiet(&self) -> bool {
        self.arrivals.is_empty()
            && self.buffer.is_empty()
            && self.memory.is_empty()
            && self.responses.is_empty()
            && self.posted.iter().all(VecDeque::is_empty)
            && self.credits_back.is_empty()
            && self.wakes.is_empty()
    }

    fn accept(&mut self, now: Cycle, posts: &Posts) {
        let channels = self.by_age.len();
        for &operation in posts.operations() {
            let channel = match operation.kind {
                OperationKind::Read if channels > READS => READS,
                _ => REQUESTS,
            };
            if self.posted[channel].is_empty() {
                self.head_since[channel] = now;
            }
            self.posted[channel].push_back((operation, now));
        }
        self.wakes.extend(posts.wakes());
    }

    /// Channels in the order in which they may send.
    fn order(&self, arbiter: InjectionArbiter) -> Vec<usize> {
        let channels = self.by_age.len();
        match arbiter {
            InjectionArbiter::LeastRecentlyUsed => self.by_age.clone(),
            InjectionArbiter::RoundRobin => {
                let turns = 0..channels;
                turns.map(|i| (self.turn + i) % channels).collect()
            }
        }
    }
}

fn group(target: Target) -> Option<GroupId> {
    match target {
        Target::Gpu(_) => None,
        Target::Group(group) => Some(group),
    }
}

impl Oracle {
    pub(crate) fn start_gpu(&mut self, gpu: usize) {
        let mut posts = Posts::default();
        let gpu = &mut self.gpus[gpu];
        gpu.program.start(&mut posts);
        gpu.accept(0, &posts);
    }

    /// Steps 1 and 4 at a GPU.
    pub(crate) fn step_gpu(&mut self, gpu: usize) {
        let now = self.now;
        for (cycle, channel, flits) in std::mem::take(&mut self.gpus[gpu].credits_back) {
            match cycle == now {
                true => self.gpus[gpu].credits[channel] += flits,
                false => self.gpus[gpu].credits_back.push((cycle, channel, flits)),
            }
        }
        self.remember(gpu);
        for (tail, packet) in std::mem::take(&mut self.gpus[gpu].arrivals) {
            if tail == now {
                self.receive(gpu, packet);
            } else {
                self.gpus[gpu].arrivals.push((tail, packet));
            }
        }
        self.make_ready(gpu);
        let gpu = &mut self.gpus[gpu];
        for cycle in std::mem::take(&mut gpu.wakes) {
            if cycle == now {
                let mut posts = Posts::default();
                gpu.program.on_wake(now, &mut posts);
                gpu.accept(now, &posts);
            } else {
                gpu.wakes.push(cycle);
            }
        }
    }

    /// Takes a packet whose tail is there.
    fn receive(&mut self, gpu: usize, packet: Packet) {
        let flits = u64::from(packet.flits);
        match packet.class {
            PacketClass::Request => {
                self.totals.effective_flits += flits;
                self.notice_request(gpu, &packet);
                self.gpus[gpu].buffer.push_back(packet);
                let queued: u32 = self.gpus[gpu].buffer.iter().map(|p| p.flits).sum();
                assert!(queued <= self.configuration.input_buffer, "credits hold");
                self.remember(gpu);
            }
            PacketClass::Response => {
                self.totals.effective_flits += flits * packet.answers.len() as u64;
                self.complete(gpu, &packet);
            }
        }
    }

    fn complete(&mut self, gpu: usize, packet: &Packet) {
        let now = self.now;
        let sending = &mut self.operations[packet.operation];
        assert_eq!(sending.gpu, self.gpus[gpu].id);
        assert_eq!(sending.completed, None);
        assert_eq!(packet.answers, sending.targets, "everyone answers once");
        sending.completed = Some(now);
        let gpu = &mut self.gpus[gpu];
        gpu.control.on_completed(&Completed {
            now,
            number: u64::from(sending.number),
            kind: packet.kind,
            group: group(sending.operation.target),
            latency: now - sending.sent,
        });
        let mut posts = Posts::default();
        gpu.program
            .on_completion(now, &sending.operation, &mut posts);
        gpu.accept(now, &posts);
    }

    /// Moves requests from the buffer into memory while their responses find room.
    fn remember(&mut self, gpu: usize) {
        let now = self.now;
        while let Some(request) = self.gpus[gpu].buffer.front() {
            let flits = self
                .configuration
                .sizes()
                .flits(request.kind, PacketClass::Response);
            let in_memory = self.gpus[gpu].memory.iter().map(|(_, response)| response);
            let responses = in_memory.chain(&self.gpus[gpu].responses);
            let held: u32 = responses.map(|response| response.flits).sum();
            if held + flits > self.configuration.response_queue(self.network.tree.gpus) {
                return;
            }
            let request = self.gpus[gpu].buffer.pop_front().expect("it is there");
            self.return_credits(gpu, request.flits);
            let latency = match request.kind {
                OperationKind::Read => self.configuration.read_latency,
                OperationKind::Write => self.configuration.write_latency,
            };
            let response = Packet {
                class: PacketClass::Response,
                flits,
                answers: vec![self.gpus[gpu].id],
                ..request
            };
            let ready = now + u64::from(latency);
            self.notice_write(gpu, &response);
            self.gpus[gpu].memory.push((ready, response));
        }
    }

    /// Tells injection control of a request that has arrived.
    fn notice_request(&mut self, gpu: usize, packet: &Packet) {
        let sending = &self.operations[packet.operation];
        let gpu = &mut self.gpus[gpu];
        if let Some(group) = group(sending.operation.target)
            && sending.gpu != gpu.id
        {
            let members = &self.network.groups[group.index()];
            let rank = members.iter().position(|&member| member == sending.gpu);
            gpu.control.on_remote(&Remote {
                now: self.now,
                kind: packet.kind,
                group,
                initiator: rank.expect("an initiator is a member") as u32,
            });
        }
    }

    /// Tells the program of a write that has come into memory.
    fn notice_write(&mut self, gpu: usize, packet: &Packet) {
        let now = self.now;
        let sending = &self.operations[packet.operation];
        let gpu = &mut self.gpus[gpu];
        if packet.kind == OperationKind::Write {
            let mut posts = Posts::default();
            let tag = sending.operation.tag;
            gpu.program.on_write(now, sending.gpu, tag, &mut posts);
            gpu.accept(now, &posts);
        }
    }

    /// Moves responses that are ready in front of the link, acknowledgements before data.
    fn make_ready(&mut self, gpu: usize) {
        let now = self.now;
        let gpu = &mut self.gpus[gpu];
        for kind in [OperationKind::Write, OperationKind::Read] {
            for (ready, response) in std::mem::take(&mut gpu.memory) {
                if ready == now && response.kind == kind {
                    gpu.responses.push_back(response);
                } else {
                    gpu.memory.push((ready, response));
                }
            }
        }
        self.totals.peak_responses = self.totals.peak_responses.max(gpu.responses.len());
    }

    /// Step 5 at a GPU.
    pub(crate) fn inject(&mut self, gpu: usize) {
        if self.gpus[gpu].idle_from > self.now {
            return;
        }
        let order = self.gpus[gpu].order(self.configuration.arbiter);
        let Some(channel) = order
            .into_iter()
            .find(|&channel| self.can_inject(gpu, channel))
        else {
            return;
        };
        let packet = match channel {
            RESPONSES => self.gpus[gpu].responses.pop_front().expect("a response"),
            _ => self.begin(gpu, channel),
        };
        let state = &mut self.gpus[gpu];
        state.by_age.retain(|&other| other != channel);
        state.by_age.push(channel);
        state.turn = (channel + 1) % state.by_age.len();
        state.idle_from = self.now + u64::from(packet.flits);
        state.credits[channel] -= packet.flits;
        self.count_hop(packet.flits);
        let below = self.network.gpus_per_leaf();
        self.put_on_link(gpu / below, gpu % below, channel, packet);
    }

    fn can_inject(&mut self, gpu: usize, channel: usize) -> bool {
        let sizes = self.configuration.sizes();
        let gpu = &mut self.gpus[gpu];
        if channel == RESPONSES {
            let response = gpu.responses.front();
            return response.is_some_and(|response| gpu.credits[channel] >= response.flits);
        }
        let Some((operation, _)) = gpu.posted[channel].front() else {
            return false;
        };
        let flits = sizes.flits(operation.kind, PacketClass::Request);
        let consent = gpu
            .control
            .consent(self.now, operation.kind, group(operation.target));
        gpu.credits[channel] >= flits && consent == InjectionDecision::Now
    }

    /// Makes the request of the operation at the head of a channel.
    fn begin(&mut self, gpu: usize, channel: usize) -> Packet {
        let now = self.now;
        let state = &mut self.gpus[gpu];
        let (operation, posted) = state.posted[channel].pop_front().expect("an operation");
        let number = state.sent;
        state.sent += 1;
        state.control.on_sent(&Sent {
            now,
            number: u64::from(number),
            kind: operation.kind,
            group: group(operation.target),
            waited: now - state.head_since[channel],
        });
        state.head_since[channel] = now;
        let id = state.id;
        self.operations.push(Sending {
            gpu: id,
            number,
            operation,
            posted,
            sent: now,
            completed: None,
            uplink: self.network.uplink(id, operation.target, operation.address),
            targets: self.network.targets(operation.target),
        });
        Packet {
            operation: self.operations.len() - 1,
            kind: operation.kind,
            class: PacketClass::Request,
            flits: self
                .configuration
                .sizes()
                .flits(operation.kind, PacketClass::Request),
            answers: Vec::new(),
        }
    }
}
