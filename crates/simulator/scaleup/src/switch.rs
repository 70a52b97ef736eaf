//! An output-queued switch: input buffers with credits, output queues, a link for each output.

use crate::bits::Bits;
use crate::channel::{CHANNELS, Channel, LANES};
use crate::order::first_port;
use crate::packet::{NO_ENTRY, Packet};
use crate::plan::{Place, Plan};
use crate::record::LinkTotals;
use crate::reduction::{Entry, Leg, Occupancy, ReductionTable};
use crate::tree::Root;
use crate::wiring::{Event, Message, Wiring};
use crate::{Cycle, PacketClass, Target};
use clearway_engine::BufferPool;
use std::collections::VecDeque;
use std::sync::Arc;

/// Packets that wait at one input for one channel, the first of them at the crossbar.
#[derive(Debug, Default)]
struct Input {
    queue: VecDeque<Packet>,
    /// Copies of the first packet that output queues have not taken yet. Zero: it has not been routed.
    pending: u16,
    /// The first packet has waited for an entry of the reduction table, and its turn has come.
    has_promise: bool,
    waits_for_entry: bool,
}

/// A packet in an output queue, or in front of it.
#[derive(Debug, Clone, Copy)]
struct Queued {
    packet: Packet,
    /// The input buffer in which it is while it waits in front of the queue.
    input: u16,
    /// Entry of the reduction table that ends when the queue takes this packet.
    entry: u32,
}

/// An output queue of one channel.
#[derive(Debug, Default)]
struct Lane {
    /// First those that the queue has taken, then those that wait in input buffers.
    packets: VecDeque<Queued>,
    taken: usize,
    flits: u32,
    credits: u32,
    peak: u32,
}

#[derive(Debug, Default)]
struct Output {
    lanes: [Lane; LANES],
    idle_at: Cycle,
    /// An event at `idle_at` will come.
    is_awaited: bool,
    /// The lane that sent last.
    last: usize,
    flits_sent: u64,
    packets_sent: u64,
}

/// Counters of a switch.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct SwitchCounters {
    pub(crate) packet_hops: u64,
    pub(crate) flit_hops: u64,
    /// Copies made of requests, beyond the packet itself.
    pub(crate) copies: u64,
    /// Responses that went into others.
    pub(crate) merged: u64,
}

/// A switch. See the crate's documentation for the order of its steps in a cycle.
#[derive(Debug)]
pub(crate) struct Switch {
    plan: Arc<Plan>,
    place: Place,
    /// Input buffers: [`CHANNELS`] for each port.
    inputs: Vec<Input>,
    outputs: Vec<Output>,
    table: ReductionTable,
    /// Ports whose first packet of a channel is to be routed.
    fresh: [Bits; CHANNELS],
    /// Output queues in which a departure has made room.
    room: [Bits; LANES],
    /// Outputs that may be able to send.
    ready: Bits,
    counters: SwitchCounters,
    /// Buffer for the outputs of one packet.
    targets: Vec<(u16, Packet)>,
}

impl Switch {
    pub(crate) fn new(plan: Arc<Plan>, place: Place) -> Self {
        let ports = plan.ports(place);
        let credits = plan.configuration.input_buffer;
        let output = |_| {
            let mut output = Output::default();
            output
                .lanes
                .iter_mut()
                .for_each(|lane| lane.credits = credits);
            output
        };
        Self {
            place,
            inputs: (0..ports * CHANNELS).map(|_| Input::default()).collect(),
            outputs: (0..ports).map(output).collect(),
            table: ReductionTable::new(plan.entries(place)),
            fresh: [0; CHANNELS].map(|_| Bits::new(ports)),
            room: [0; LANES].map(|_| Bits::new(ports)),
            ready: Bits::new(ports),
            counters: SwitchCounters::default(),
            targets: Vec::new(),
            plan,
        }
    }

    pub(crate) fn ports(&self) -> usize {
        self.outputs.len()
    }

    // Step 1.

    pub(crate) fn on_credit(&mut self, port: u16, channel: Channel, flits: u16) {
        let lane = &mut self.outputs[port as usize].lanes[channel as usize];
        lane.credits += u32::from(flits);
        debug_assert!(lane.credits <= self.plan.configuration.input_buffer);
        self.ready.insert(port as usize);
    }

    pub(crate) fn on_room(&mut self, port: u16, channel: Channel) {
        self.room[channel as usize].insert(port as usize);
    }

    pub(crate) fn on_idle(&mut self, port: u16) {
        self.outputs[port as usize].is_awaited = false;
        self.ready.insert(port as usize);
    }

    pub(crate) fn on_arrival(&mut self, port: u16, packet: Packet, wiring: &Wiring) {
        let channel = match wiring.is_gpu(port as usize) {
            true => Channel::of_injected(&packet, self.plan.configuration.channels),
            false => Channel::of_class(packet.class),
        };
        let input = &mut self.inputs[port as usize * CHANNELS + channel as usize];
        input.queue.push_back(packet);
        if input.queue.len() == 1 {
            self.fresh[channel as usize].insert(port as usize);
        }
    }

    /// Steps 2 and 3: output queues take the packets that wait for them, then packets that have come to the heads of their buffers are
    /// routed.
    pub(crate) fn route(
        &mut self,
        now: Cycle,
        wiring: &mut Wiring,
        pool: &mut BufferPool<Message>,
    ) {
        for lane in 0..LANES {
            while let Some(port) = self.room[lane].take(0) {
                self.take_waiting(port, lane, now, wiring, pool);
            }
        }
        let first = first_port(now, self.ports());
        let responses = Channel::Response as usize;
        while let Some(port) = self.next_fresh(first, &[responses]) {
            self.bring_up(port, responses, now, wiring, pool);
        }
        // Step 3: requests that waited for an entry come before requests that are new at the heads.
        while let Some(input) = self.table.promise() {
            let (port, channel) = (input as usize / CHANNELS, input as usize % CHANNELS);
            let input = &mut self.inputs[input as usize];
            (input.has_promise, input.waits_for_entry) = (true, false);
            self.fresh[channel].insert(port);
        }
        let requests = [Channel::Request as usize, Channel::ReadRequest as usize];
        while let Some(port) = self.next_fresh(first, &requests) {
            for channel in requests {
                if self.fresh[channel].contains(port) {
                    self.bring_up(port, channel, now, wiring, pool);
                }
            }
        }
    }

    /// The next port, from `first` on and then from zero, that has something to route.
    fn next_fresh(&self, first: usize, channels: &[usize]) -> Option<usize> {
        let from = |from| {
            channels
                .iter()
                .filter_map(move |&channel| self.fresh[channel].next(from))
                .min()
        };
        from(first).or_else(|| from(0))
    }

    /// Routes the first packet of an input, and those behind it as long as they do not have to wait.
    fn bring_up(
        &mut self,
        port: usize,
        channel: usize,
        now: Cycle,
        wiring: &mut Wiring,
        pool: &mut BufferPool<Message>,
    ) {
        self.fresh[channel].remove(port);
        let input = port * CHANNELS + channel;
        while let Some(&packet) = self.inputs[input].queue.front() {
            let Some(entry) = self.resolve(input, packet, now) else {
                return;
            };
            let mut pending = 0;
            let targets = std::mem::take(&mut self.targets);
            self.counters.copies += targets.len().saturating_sub(1) as u64;
            for &(output, packet) in &targets {
                let queued = Queued {
                    packet,
                    input: input as u16,
                    entry,
                };
                pending += u16::from(!self.offer(output as usize, queued, now));
            }
            self.targets = targets;
            self.inputs[input].pending = pending;
            if pending > 0 {
                return;
            }
            self.leave(input, now, wiring, pool);
        }
    }

    /// Fills `targets` with the outputs of a packet and their copies, and returns the entry that ends when the outputs have taken them.
    /// `None` if the packet must wait for an entry.
    fn resolve(&mut self, input: usize, packet: Packet, now: Cycle) -> Option<u32> {
        self.targets.clear();
        let is_group = matches!(packet.target, Target::Group(_));
        match packet.class {
            PacketClass::Response if is_group && packet.entry != NO_ENTRY => {
                let Some(merged) = self.table.merge(&packet) else {
                    self.counters.merged += 1;
                    return Some(NO_ENTRY);
                };
                let (output, is_last) = self.plan.response_output(self.place, &packet, true);
                let response = Packet {
                    entry: if is_last { NO_ENTRY } else { merged.parent },
                    contributions: merged.contributions,
                    sum: merged.sum,
                    ..packet
                };
                self.targets.push((output, response));
                Some(packet.entry)
            }
            PacketClass::Response => {
                let (output, _) = self.plan.response_output(self.place, &packet, false);
                self.targets.push((output, packet));
                Some(NO_ENTRY)
            }
            PacketClass::Request => self.resolve_request(input, packet, now),
        }
    }

    fn resolve_request(&mut self, input: usize, packet: Packet, now: Cycle) -> Option<u32> {
        let uplink = match packet.root {
            Root::Uplink(uplink) if self.plan.is_below(self.place, input / CHANNELS) => {
                Some(self.plan.uplink_port(uplink))
            }
            _ => None,
        };
        let group = match (packet.target, uplink) {
            (Target::Group(group), None) => group,
            (Target::Group(group), Some(_)) if self.plan.copies_on_the_way_up() => group,
            (_, Some(output)) => {
                self.targets.push((output, packet));
                return Some(NO_ENTRY);
            }
            (Target::Gpu(gpu), None) => {
                let output = self.plan.down_port(self.place, gpu, packet.root);
                self.targets.push((output, packet));
                return Some(NO_ENTRY);
            }
        };
        let state = &mut self.inputs[input];
        if state.waits_for_entry {
            return None;
        }
        let outputs = self.plan.down_ports(self.place, group);
        let served = self.plan.served_port(self.place, packet.initiator);
        let copies = outputs.len() + usize::from(uplink.is_some()) - usize::from(served.is_some());
        let entry = Entry {
            awaited: copies as u32,
            parent: packet.entry,
            leg: match uplink {
                Some(_) => Leg::Up,
                None => Leg::Down,
            },
            contributions: 0,
            sum: 0,
        };
        let is_promised = std::mem::take(&mut state.has_promise);
        let Some(entry) = self.table.reserve(input as u16, is_promised, entry, now) else {
            state.waits_for_entry = true;
            return None;
        };
        let copy = Packet { entry, ..packet };
        self.targets.extend(uplink.map(|output| (output, copy)));
        let link = self.plan.link_of(self.place, packet.root);
        let unserved = outputs.iter().filter(|&&output| Some(output) != served);
        self.targets
            .extend(unserved.map(|&output| (output + link, copy)));
        Some(NO_ENTRY)
    }

    /// Offers a packet to an output queue. True if it takes it now; else it waits in front of it.
    fn offer(&mut self, port: usize, queued: Queued, now: Cycle) -> bool {
        let lane = Channel::of_class(queued.packet.class) as usize;
        let capacity = self.plan.configuration.output_queue;
        let queue = &mut self.outputs[port].lanes[lane];
        let flits = u32::from(queued.packet.flits);
        // A packet behind one that waits must wait too: an output keeps the order of routing.
        let fits = queue.taken == queue.packets.len() && queue.flits + flits <= capacity;
        queue.packets.push_back(queued);
        if fits {
            queue.taken += 1;
            queue.flits += flits;
            queue.peak = queue.peak.max(queue.flits);
            self.ready.insert(port);
            self.end_entry(queued.entry, now);
        }
        fits
    }

    fn end_entry(&mut self, entry: u32, now: Cycle) {
        if entry != NO_ENTRY {
            self.table.release(entry, now);
        }
    }

    /// Lets an output queue take the packets that wait in front of it, as far as there is room.
    fn take_waiting(
        &mut self,
        port: usize,
        lane: usize,
        now: Cycle,
        wiring: &mut Wiring,
        pool: &mut BufferPool<Message>,
    ) {
        let capacity = self.plan.configuration.output_queue;
        loop {
            let queue = &mut self.outputs[port].lanes[lane];
            let Some(&queued) = queue.packets.get(queue.taken) else {
                return;
            };
            let flits = u32::from(queued.packet.flits);
            if queue.flits + flits > capacity {
                return;
            }
            queue.taken += 1;
            queue.flits += flits;
            queue.peak = queue.peak.max(queue.flits);
            self.ready.insert(port);
            self.end_entry(queued.entry, now);
            let input = queued.input as usize;
            self.inputs[input].pending -= 1;
            if self.inputs[input].pending == 0 {
                self.leave(input, now, wiring, pool);
                if !self.inputs[input].queue.is_empty() {
                    self.fresh[input % CHANNELS].insert(input / CHANNELS);
                }
            }
        }
    }

    /// The first packet of an input leaves its buffer.
    #[inline(always)] // Out of line, a flit takes some five instructions more.
    fn leave(
        &mut self,
        input: usize,
        now: Cycle,
        wiring: &mut Wiring,
        pool: &mut BufferPool<Message>,
    ) {
        let Some(packet) = self.inputs[input].queue.pop_front() else {
            return;
        };
        let channel = [Channel::Response, Channel::Request, Channel::ReadRequest][input % CHANNELS];
        wiring.return_credits(input / CHANNELS, channel, packet.flits, now, pool);
    }

    /// Step 5: each idle output that has a packet to send, and credits for it, starts it.
    pub(crate) fn transmit(
        &mut self,
        now: Cycle,
        wiring: &mut Wiring,
        pool: &mut BufferPool<Message>,
    ) {
        while let Some(port) = self.ready.take(0) {
            let is_gpu = wiring.is_gpu(port);
            let output = &mut self.outputs[port];
            if output.idle_at > now {
                if !output.is_awaited {
                    output.is_awaited = true;
                    wiring
                        .calendar
                        .insert(output.idle_at, Event::Idle(port as u16));
                }
                continue;
            }
            let Some(lane) = output.next_lane(is_gpu) else {
                continue;
            };
            let packet = output.start(lane, is_gpu, now);
            self.counters.packet_hops += 1;
            self.counters.flit_hops += u64::from(packet.flits);
            let channel = Channel::of_class(packet.class);
            // Room that a departure makes can be used in the next cycle (crate documentation, "Order within a cycle").
            if output.lanes[lane].packets.len() > output.lanes[lane].taken {
                wiring
                    .calendar
                    .insert(now + 1, Event::Room(port as u16, channel));
            }
            if output.lanes.iter().any(|lane| lane.taken > 0) {
                output.is_awaited = true;
                wiring
                    .calendar
                    .insert(output.idle_at, Event::Idle(port as u16));
            }
            wiring.depart(port, packet, now, pool);
        }
    }

    pub(crate) fn counters(&self) -> SwitchCounters {
        self.counters
    }

    /// Use of the reduction table: its integral is up to `now`.
    pub(crate) fn use_of_entries(&self) -> Occupancy {
        self.table.use_of_entries
    }

    pub(crate) fn entries(&self) -> u32 {
        self.table.used()
    }

    /// Requests that waited for an entry.
    pub(crate) fn waits_for_entries(&self) -> u64 {
        self.table.waits
    }

    /// Work of the link of each port, with its longest queue.
    pub(crate) fn links(&self) -> impl Iterator<Item = LinkTotals> {
        self.outputs.iter().map(|output| LinkTotals {
            flits: output.flits_sent,
            packets: output.packets_sent,
            peak_queue: output.lanes.iter().map(|lane| lane.peak).max().unwrap_or(0),
        })
    }

    /// Flits in the output queues of each port: responses, requests.
    pub(crate) fn queues(&self) -> impl Iterator<Item = [u32; LANES]> {
        let outputs = self.outputs.iter();
        outputs.map(|output| [output.lanes[0].flits, output.lanes[1].flits])
    }

    /// Flits sent through each port.
    pub(crate) fn flits_sent(&self) -> impl Iterator<Item = u64> {
        self.outputs.iter().map(|output| output.flits_sent)
    }

    /// Packets here: those in buffers of which no copy has been queued, and copies in output queues.
    pub(crate) fn packets(&self) -> u64 {
        let inputs = self.inputs.iter().map(|input| {
            let routed = usize::from(input.pending > 0);
            (input.queue.len() - routed.min(input.queue.len())) as u64
        });
        let lanes = self.outputs.iter().flat_map(|output| &output.lanes);
        inputs.sum::<u64>() + lanes.map(|lane| lane.packets.len() as u64).sum::<u64>()
    }

    /// Credits here, of all outputs.
    pub(crate) fn credits(&self) -> u64 {
        let lanes = self.outputs.iter().flat_map(|output| &output.lanes);
        lanes.map(|lane| u64::from(lane.credits)).sum()
    }

    /// Flits in input buffers.
    pub(crate) fn buffered(&self) -> u64 {
        let packets = self.inputs.iter().flat_map(|input| &input.queue);
        packets.map(|packet| u64::from(packet.flits)).sum()
    }
}

impl Output {
    /// The lane that may send: if both may, the one that did not send last.
    fn next_lane(&self, is_gpu: bool) -> Option<usize> {
        let can_send = |&lane: &usize| {
            let is_free = needs_no_credits(lane, is_gpu);
            let lane = &self.lanes[lane];
            lane.taken > 0 && (is_free || lane.credits >= u32::from(lane.packets[0].packet.flits))
        };
        [1 - self.last, self.last].into_iter().find(can_send)
    }

    fn start(&mut self, lane: usize, is_gpu: bool, now: Cycle) -> Packet {
        self.last = lane;
        let is_free = needs_no_credits(lane, is_gpu);
        let queue = &mut self.lanes[lane];
        let packet = queue
            .packets
            .pop_front()
            .expect("a lane that can send has a packet")
            .packet;
        queue.taken -= 1;
        queue.flits -= u32::from(packet.flits);
        if !is_free {
            queue.credits -= u32::from(packet.flits);
        }
        self.flits_sent += u64::from(packet.flits);
        self.packets_sent += 1;
        self.idle_at = now + Cycle::from(packet.flits);
        packet
    }
}

/// True if a lane sends without credits: GPUs take all responses.
#[inline]
fn needs_no_credits(lane: usize, is_gpu: bool) -> bool {
    is_gpu && lane == Channel::Response as usize
}
