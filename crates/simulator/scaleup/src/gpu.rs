//! A GPU: its program, its injection channels, its memory.

use crate::channel::{CHANNELS, Channel};
use crate::injection::{
    Completed, InjectionControl, InjectionDecision, InjectionGauges, Remote, Sent,
};
use crate::packet::{NO_ENTRY, Packet, answer};
use crate::plan::Plan;
use crate::program::{Posts, Program};
use crate::record::OperationRecord;
use crate::wiring::{Event, Wiring};
use crate::{
    Cycle, InjectionArbiter, InjectionChannels, Operation, OperationKind, PacketClass, Target,
};
use clearway_units::HostId;
use std::collections::VecDeque;
use std::sync::Arc;

/// An operation that waits for injection.
#[derive(Debug)]
struct Posted {
    operation: Operation,
    at: Cycle,
}

/// An operation under way.
#[derive(Debug)]
struct Outstanding {
    operation: Operation,
    posted: Cycle,
    sent: Cycle,
}

/// Counters of a GPU.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct GpuCounters {
    pub(crate) packets_sent: u64,
    pub(crate) flits_sent: u64,
    pub(crate) packets_received: u64,
    /// Flits received, each response counted as often as GPUs have answered.
    pub(crate) effective_flits: u64,
    pub(crate) operations_sent: u64,
    /// Completed operations whose response did not hold the answer of each GPU just once.
    pub(crate) wrong_answers: u64,
    pub(crate) first_sent: Option<Cycle>,
    pub(crate) last_completed: Cycle,
    /// Longest queue of responses, in packets.
    pub(crate) peak_responses: usize,
}

/// A GPU with its network interface.
#[derive(Debug)]
pub(crate) struct Gpu {
    plan: Arc<Plan>,
    id: HostId,
    /// Port of its switch.
    port: u16,
    program: Box<dyn Program>,
    control: Box<dyn InjectionControl>,
    /// Requests that wait for room in memory.
    arrived: VecDeque<Packet>,
    /// Flits of responses in memory and in `responses`.
    reserved: u32,
    responses: VecDeque<Packet>,
    /// Data that memory without latency has read in this cycle. Acknowledgements of this cycle go before it.
    read_at_once: Vec<Packet>,
    /// Requests by channel: writes, or all; reads.
    requests: [VecDeque<Posted>; 2],
    /// Cycle since which the first request of each channel has been the first.
    first_since: [Cycle; 2],
    credits: [u32; CHANNELS],
    /// Channels, the one served longest ago first.
    turns: [u8; CHANNELS],
    outstanding: VecDeque<Option<Outstanding>>,
    /// Number of the first in `outstanding`.
    base: u32,
    idle_at: Cycle,
    /// The next cycle in which the GPU will consider sending.
    considers_at: Cycle,
    pub(crate) counters: GpuCounters,
    posts: Posts,
}

const NEVER: Cycle = Cycle::MAX;

impl Gpu {
    pub(crate) fn new(
        plan: Arc<Plan>,
        id: HostId,
        program: Box<dyn Program>,
        control: Box<dyn InjectionControl>,
    ) -> Self {
        let credits = plan.configuration.input_buffer;
        Self {
            id,
            port: plan.tree.port(id) as u16,
            program,
            control,
            arrived: VecDeque::new(),
            reserved: 0,
            responses: VecDeque::new(),
            read_at_once: Vec::new(),
            requests: Default::default(),
            first_since: [0; 2],
            credits: [credits; CHANNELS],
            turns: [0, 1, 2],
            outstanding: VecDeque::new(),
            base: 0,
            idle_at: 0,
            considers_at: NEVER,
            counters: GpuCounters::default(),
            posts: Posts::default(),
            plan,
        }
    }

    pub(crate) fn start(&mut self, wiring: &mut Wiring) {
        self.program.start(&mut self.posts);
        self.carry_out(0, wiring);
    }

    pub(crate) fn on_wake(&mut self, now: Cycle, wiring: &mut Wiring) {
        self.program.on_wake(now, &mut self.posts);
        self.carry_out(now, wiring);
    }

    pub(crate) fn on_credit(&mut self, channel: Channel, flits: u16) {
        self.credits[channel as usize] += u32::from(flits);
    }

    pub(crate) fn on_ready(&mut self, response: Packet) {
        self.responses.push_back(response);
        let waiting = self.responses.len();
        self.counters.peak_responses = self.counters.peak_responses.max(waiting);
    }

    /// Takes a packet; a completed operation goes to `records`.
    pub(crate) fn on_delivered(
        &mut self,
        now: Cycle,
        packet: &Packet,
        wiring: &mut Wiring,
        records: &mut Vec<OperationRecord>,
    ) {
        self.counters.packets_received += 1;
        match packet.class {
            PacketClass::Request => self.on_request(now, packet, wiring),
            PacketClass::Response => self.on_response(now, packet, wiring, records),
        }
    }

    fn on_request(&mut self, now: Cycle, request: &Packet, wiring: &mut Wiring) {
        self.counters.effective_flits += u64::from(request.flits);
        if let (Target::Group(group), true) = (request.target, request.initiator != self.id) {
            let initiator = self.plan.groups.rank(group, request.initiator);
            self.control.on_remote(&Remote {
                now,
                kind: request.kind,
                group,
                initiator: initiator.expect("initiators are members"),
            });
        }
        self.arrived.push_back(*request);
        self.take_requests(now, wiring);
    }

    /// Moves requests into memory, as far as there is room for their responses.
    pub(crate) fn take_requests(&mut self, now: Cycle, wiring: &mut Wiring) {
        let limit = self.plan.response_queue;
        let sizes = self.plan.configuration.sizes();
        while let Some(&request) = self.arrived.front() {
            let flits = sizes.flits(request.kind, PacketClass::Response);
            if self.reserved + flits > limit {
                return;
            }
            self.arrived.pop_front();
            self.reserved += flits;
            let latency = Cycle::from(self.plan.configuration.latency);
            let credits = Event::Credit(self.port, Channel::Request, request.flits);
            wiring.calendar.insert(now + latency, credits);
            self.answer(now, &request, wiring);
            if request.kind == OperationKind::Write {
                let (initiator, tag) = (request.initiator, request.tag);
                self.program.on_write(now, initiator, tag, &mut self.posts);
                self.carry_out(now, wiring);
            }
        }
    }

    /// Makes the response to a request, which is ready when memory has done its part.
    fn answer(&mut self, now: Cycle, request: &Packet, wiring: &mut Wiring) {
        let configuration = &self.plan.configuration;
        let latency = match request.kind {
            OperationKind::Read => configuration.read_latency,
            OperationKind::Write => configuration.write_latency,
        };
        let class = PacketClass::Response;
        let response = Packet {
            class,
            flits: configuration.sizes().flits(request.kind, class) as u16,
            contributions: 1,
            sum: answer(self.id, request.initiator, request.number),
            ..*request
        };
        match (latency, request.kind) {
            (0, OperationKind::Write) => self.on_ready(response),
            (0, OperationKind::Read) => self.read_at_once.push(response),
            _ => {
                let ready = now + Cycle::from(latency);
                wiring
                    .calendar
                    .insert(ready, Event::Ready(self.port, response));
            }
        }
    }

    fn on_response(
        &mut self,
        now: Cycle,
        response: &Packet,
        wiring: &mut Wiring,
        records: &mut Vec<OperationRecord>,
    ) {
        let flits = u64::from(response.flits) * u64::from(response.contributions);
        self.counters.effective_flits += flits;
        self.counters.last_completed = now;
        if !self.is_complete(response) {
            self.counters.wrong_answers += 1;
        }
        let Outstanding {
            operation,
            posted,
            sent,
        } = self.end(response.number);
        self.control.on_completed(&Completed {
            now,
            number: u64::from(response.number),
            kind: operation.kind,
            group: group_of(&operation),
            latency: now - sent,
        });
        records.push(OperationRecord {
            gpu: self.id,
            number: response.number,
            kind: operation.kind,
            target: operation.target,
            tag: operation.tag,
            posted,
            sent,
            completed: now,
        });
        self.program.on_completion(now, &operation, &mut self.posts);
        self.carry_out(now, wiring);
    }

    /// True if a response holds the answer of each GPU that was asked, once.
    fn is_complete(&self, response: &Packet) -> bool {
        let answers = |gpus: &[HostId]| {
            let answers = gpus
                .iter()
                .map(|&gpu| answer(gpu, self.id, response.number));
            answers.fold(0, u64::wrapping_add)
        };
        let (count, sum) = match response.target {
            Target::Group(group) => {
                let members = self.plan.groups.members(group);
                (members.len(), answers(members))
            }
            Target::Gpu(gpu) => (1, answers(&[gpu])),
        };
        response.contributions as usize == count && response.sum == sum
    }

    fn end(&mut self, number: u32) -> Outstanding {
        let place = (number - self.base) as usize;
        let ended = self.outstanding[place].take();
        while let Some(None) = self.outstanding.front() {
            self.outstanding.pop_front();
            self.base += 1;
        }
        ended.expect("a response belongs to an operation under way")
    }

    /// Carries out the requests of the program.
    fn carry_out(&mut self, now: Cycle, wiring: &mut Wiring) {
        for operation in self.posts.operations.drain(..) {
            let channel = match (operation.kind, self.plan.configuration.channels) {
                (OperationKind::Read, InjectionChannels::PerKind) => 1,
                _ => 0,
            };
            let queue = &mut self.requests[channel];
            if queue.is_empty() {
                self.first_since[channel] = now;
            }
            queue.push_back(Posted { operation, at: now });
        }
        for cycle in self.posts.wakes.drain(..) {
            let wake = Event::Wake(self.port);
            wiring.calendar.insert(cycle.max(now + 1), wake);
        }
    }

    /// Sends a packet if the link is idle and there is one that may be sent. To be called in each cycle in which anything has happened
    /// here.
    pub(crate) fn transmit(&mut self, now: Cycle, wiring: &mut Wiring) {
        if self.considers_at == now {
            self.considers_at = NEVER;
        }
        self.end_reads();
        if self.idle_at > now {
            return self.consider_at(self.idle_at, now, wiring);
        }
        let mut again = NEVER;
        for turn in 0..CHANNELS {
            let channel = self.turns[turn];
            match self.may_send(usize::from(channel), now) {
                InjectionDecision::Now => {
                    self.take_turn(turn);
                    self.send(usize::from(channel), now, wiring);
                    return self.consider_at(self.idle_at, now, wiring);
                }
                InjectionDecision::NotBefore(cycle) => again = again.min(cycle),
                InjectionDecision::Wait => {}
            }
        }
        if again != NEVER {
            self.consider_at(again, now, wiring);
        }
    }

    /// Data that was read in this cycle is ready, after all acknowledgements.
    fn end_reads(&mut self) {
        let mut read = std::mem::take(&mut self.read_at_once);
        read.drain(..).for_each(|response| self.on_ready(response));
        self.read_at_once = read;
    }

    fn consider_at(&mut self, cycle: Cycle, now: Cycle, wiring: &mut Wiring) {
        // An earlier appointment stays: a needless one is harmless.
        if cycle < self.considers_at || self.considers_at <= now {
            self.considers_at = cycle;
            wiring.calendar.insert(cycle, Event::Consider(self.port));
        }
    }

    fn may_send(&mut self, channel: usize, now: Cycle) -> InjectionDecision {
        let sizes = self.plan.configuration.sizes();
        if channel == Channel::Response as usize {
            let Some(response) = self.responses.front() else {
                return InjectionDecision::Wait;
            };
            return match self.credits[channel] >= u32::from(response.flits) {
                true => InjectionDecision::Now,
                false => InjectionDecision::Wait,
            };
        }
        let Some(posted) = self.requests[channel - 1].front() else {
            return InjectionDecision::Wait;
        };
        let operation = &posted.operation;
        if self.credits[channel] < sizes.flits(operation.kind, PacketClass::Request) {
            return InjectionDecision::Wait;
        }
        self.control
            .consent(now, operation.kind, group_of(operation))
    }

    fn take_turn(&mut self, turn: usize) {
        match self.plan.configuration.arbiter {
            InjectionArbiter::LeastRecentlyUsed => self.turns[turn..].rotate_left(1),
            InjectionArbiter::RoundRobin => self.turns.rotate_left(turn + 1),
        }
    }

    fn send(&mut self, channel: usize, now: Cycle, wiring: &mut Wiring) {
        let packet = match channel {
            0 => self.responses.pop_front(),
            _ => self.requests[channel - 1]
                .pop_front()
                .map(|posted| self.begin(posted, channel - 1, now)),
        };
        let packet = packet.expect("a channel that may send has a packet");
        if packet.class == PacketClass::Response {
            self.reserved -= u32::from(packet.flits);
            if !self.arrived.is_empty() {
                wiring.calendar.insert(now + 1, Event::Memory(self.port));
            }
        }
        self.credits[channel] -= u32::from(packet.flits);
        self.idle_at = now + Cycle::from(packet.flits);
        self.counters.packets_sent += 1;
        self.counters.flits_sent += u64::from(packet.flits);
        wiring.inject(self.port, packet, now);
    }

    /// Makes the request of an operation.
    fn begin(&mut self, posted: Posted, channel: usize, now: Cycle) -> Packet {
        let Posted { operation, at } = posted;
        let number = self.base + self.outstanding.len() as u32;
        self.control.on_sent(&Sent {
            now,
            number: u64::from(number),
            kind: operation.kind,
            group: group_of(&operation),
            waited: now - self.first_since[channel],
        });
        self.first_since[channel] = now;
        self.outstanding.push_back(Some(Outstanding {
            operation,
            posted: at,
            sent: now,
        }));
        self.counters.operations_sent += 1;
        self.counters.first_sent.get_or_insert(now);
        let (plan, class) = (&self.plan, PacketClass::Request);
        let flits = plan.configuration.sizes().flits(operation.kind, class);
        let Operation {
            kind,
            target,
            address,
            tag,
        } = operation;
        Packet {
            initiator: self.id,
            number,
            target,
            tag,
            root: plan.groups.root(&plan.tree, self.id, target, address),
            kind,
            class,
            flits: flits as u16,
            entry: NO_ENTRY,
            contributions: 0,
            sum: 0,
        }
    }

    pub(crate) fn gauges(&mut self, now: Cycle) -> InjectionGauges {
        self.control.gauges(now)
    }

    pub(crate) fn is_over(&self) -> bool {
        self.program.is_over()
    }

    /// Operations posted and not completed.
    pub(crate) fn unfinished(&self) -> u64 {
        let waiting = self.requests.iter().map(|queue| queue.len() as u64);
        waiting.sum::<u64>() + self.outstanding.iter().flatten().count() as u64
    }

    /// Requests and responses that wait for injection.
    pub(crate) fn waiting(&self) -> [usize; 2] {
        [
            self.requests.iter().map(VecDeque::len).sum(),
            self.responses.len(),
        ]
    }

    /// Credits here.
    pub(crate) fn credits(&self) -> u64 {
        self.credits.iter().map(|&credits| u64::from(credits)).sum()
    }

    /// Flits of requests that wait for room in memory.
    pub(crate) fn buffered(&self) -> u64 {
        self.arrived
            .iter()
            .map(|packet| u64::from(packet.flits))
            .sum()
    }
}

fn group_of(operation: &Operation) -> Option<crate::GroupId> {
    match operation.target {
        Target::Group(group) => Some(group),
        Target::Gpu(_) => None,
    }
}
