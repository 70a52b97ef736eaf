//! A slow and plain model of the same fabric, written from the documentation of the crate: all cycles, and in each of them all
//! switches, ports, channels and GPUs. Nothing is skipped, done ahead or done in bulk.
//!
//! A response carries the GPUs that it answers for, so that a merged response shows who answered, each just once.

use super::gpu::Gpu;
use super::network::{Network, Peer};
use clearway_scaleup::order::first_port;
use clearway_scaleup::{
    Configuration, Cycle, Operation, OperationKind, OperationRecord, PacketClass, Replication,
    Target,
};
use clearway_units::HostId;
use std::collections::VecDeque;

/// The channel of responses.
pub(crate) const RESPONSES: usize = 0;
/// The channel of requests; from a GPU the channel of write requests where reads have a separate one.
pub(crate) const REQUESTS: usize = 1;
/// The channel of read requests from a GPU, where they have one.
pub(crate) const READS: usize = 2;

/// Cycles after which a run is given up.
const MOST_CYCLES: Cycle = 5_000_000;

/// An operation that has been sent.
#[derive(Debug)]
pub(crate) struct Sending {
    pub(crate) gpu: HostId,
    pub(crate) number: u32,
    pub(crate) operation: Operation,
    pub(crate) posted: Cycle,
    pub(crate) sent: Cycle,
    pub(crate) completed: Option<Cycle>,
    pub(crate) uplink: Option<usize>,
    pub(crate) targets: Vec<HostId>,
}

impl Sending {
    fn is_multicast(&self) -> bool {
        matches!(self.operation.target, Target::Group(_))
    }
}

/// A packet.
#[derive(Debug, Clone)]
pub(crate) struct Packet {
    /// Index of its operation.
    pub(crate) operation: usize,
    pub(crate) kind: OperationKind,
    pub(crate) class: PacketClass,
    pub(crate) flits: u32,
    /// The GPUs that a response answers for, in ascending order.
    pub(crate) answers: Vec<HostId>,
}

/// Credits under way: cycle of arrival, channel, flits.
pub(crate) type Credits = (Cycle, usize, u32);

/// State of the packet at the head of an input buffer.
#[derive(Debug, Clone, PartialEq)]
enum Head {
    New,
    WaitsForEntry,
    HasEntry,
    /// Routed, and these outputs have not yet taken it.
    Routed(Vec<usize>),
}

#[derive(Debug)]
struct Input {
    buffer: VecDeque<Packet>,
    head: Head,
}

#[derive(Debug)]
struct Output {
    /// By channel.
    queues: [VecDeque<Packet>; 2],
    /// Inputs whose heads wait for this output, by channel.
    waiting: [VecDeque<(usize, usize)>; 2],
    /// Credits by channel; `None` where none are needed.
    credits: [Option<u32>; 2],
    turn: usize,
    idle_from: Cycle,
}

impl Output {
    fn queued(&self, channel: usize) -> u32 {
        self.queues[channel].iter().map(|p| p.flits).sum()
    }
}

/// An entry of a reduction table.
#[derive(Debug)]
struct Entry {
    operation: usize,
    missing: usize,
    answers: Vec<HostId>,
    /// The request was on its way up.
    is_up: bool,
}

#[derive(Debug)]
struct Switch {
    peers: Vec<Peer>,
    /// By port and channel.
    inputs: Vec<[Input; 3]>,
    outputs: Vec<Output>,
    /// Packets on links, by port: cycle of arrival, channel and packet.
    arrivals: Vec<Vec<(Cycle, usize, Packet)>>,
    /// Credits on their way back, by output port.
    credits: Vec<Vec<Credits>>,
    table: Vec<Entry>,
    /// Of requests on their way down, and up.
    waiting_for_entries: [VecDeque<(usize, usize)>; 2],
}

impl Switch {
    fn new(peers: Vec<Peer>, configuration: &Configuration) -> Self {
        let buffer = configuration.input_buffer;
        let output = |peer: &Peer| Output {
            queues: Default::default(),
            waiting: Default::default(),
            credits: match peer {
                Peer::Gpu(_) => [None, Some(buffer)],
                Peer::Switch(..) => [Some(buffer); 2],
            },
            turn: REQUESTS,
            idle_from: 0,
        };
        let input = || Input {
            buffer: VecDeque::new(),
            head: Head::New,
        };
        Self {
            inputs: peers.iter().map(|_| [input(), input(), input()]).collect(),
            outputs: peers.iter().map(output).collect(),
            arrivals: peers.iter().map(|_| Vec::new()).collect(),
            credits: peers.iter().map(|_| Vec::new()).collect(),
            table: Vec::new(),
            waiting_for_entries: Default::default(),
            peers,
        }
    }

    fn is_quiet(&self) -> bool {
        let mut inputs = self.inputs.iter().flatten();
        let mut queues = self.outputs.iter().flat_map(|output| &output.queues);
        inputs.all(|input| input.buffer.is_empty())
            && queues.all(VecDeque::is_empty)
            && self.arrivals.iter().all(Vec::is_empty)
            && self.credits.iter().all(Vec::is_empty)
            && self.table.is_empty()
    }
}

/// Sums over a run, as in `Finished`.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Totals {
    pub(crate) unfinished: u64,
    pub(crate) is_over: bool,
    pub(crate) last: Cycle,
    pub(crate) cycles: Cycle,
    pub(crate) effective_flits: u64,
    pub(crate) packet_hops: u64,
    pub(crate) flit_hops: u64,
    pub(crate) peak_entries: u32,
    /// Entries in use, summed over switches and cycles before the last.
    pub(crate) entries: u64,
    pub(crate) waits_for_entries: u64,
    pub(crate) peak_queue: u32,
    pub(crate) peak_responses: usize,
}

/// The fabric.
#[derive(Debug)]
pub(crate) struct Oracle {
    pub(crate) configuration: Configuration,
    pub(crate) network: Network,
    pub(crate) now: Cycle,
    pub(crate) operations: Vec<Sending>,
    pub(crate) totals: Totals,
    switches: Vec<Switch>,
    pub(crate) gpus: Vec<Gpu>,
    /// Entries in use, by cycle.
    entries: Vec<u64>,
}

impl Oracle {
    pub(crate) fn new(configuration: Configuration, network: Network, gpus: Vec<Gpu>) -> Self {
        let switches = 0..network.tree.switches() as usize;
        let switch = |i| Switch::new(network.peers(i), &configuration);
        Self {
            switches: switches.map(switch).collect(),
            configuration,
            network,
            now: 0,
            operations: Vec::new(),
            totals: Totals::default(),
            gpus,
            entries: Vec::new(),
        }
    }

    /// Runs to the end.
    pub(crate) fn run(mut self) -> (Vec<OperationRecord>, Totals) {
        for gpu in 0..self.gpus.len() {
            self.start_gpu(gpu);
        }
        while !self.is_quiet() {
            assert!(self.now < MOST_CYCLES, "a run of the oracle does not end");
            for switch in 0..self.switches.len() {
                self.arrive(switch);
                self.take(switch);
                self.route(switch);
            }
            for gpu in 0..self.gpus.len() {
                self.step_gpu(gpu);
            }
            for switch in 0..self.switches.len() {
                for port in 0..self.switches[switch].outputs.len() {
                    self.send(switch, port);
                }
            }
            for gpu in 0..self.gpus.len() {
                self.inject(gpu);
            }
            let entries = self.switches.iter().map(|s| s.table.len() as u64);
            self.entries.push(entries.sum());
            self.now += 1;
        }
        self.finish()
    }

    fn is_quiet(&self) -> bool {
        self.switches.iter().all(Switch::is_quiet) && self.gpus.iter().all(Gpu::is_quiet)
    }

    fn finish(mut self) -> (Vec<OperationRecord>, Totals) {
        let completed = self.operations.iter().filter_map(|sending| {
            Some(OperationRecord {
                gpu: sending.gpu,
                number: sending.number,
                kind: sending.operation.kind,
                target: sending.operation.target,
                tag: sending.operation.tag,
                posted: sending.posted,
                sent: sending.sent,
                completed: sending.completed?,
            })
        });
        let mut records: Vec<_> = completed.collect();
        records.sort_by_key(|record| (record.gpu, record.number));
        let totals = &mut self.totals;
        totals.unfinished = (self.operations.len() - records.len()) as u64;
        totals.is_over = self.gpus.iter().all(|gpu| gpu.program.is_over());
        totals.last = records.iter().map(|r| r.completed).max().unwrap_or(0);
        let first = self.operations.iter().map(|sending| sending.sent).min();
        totals.cycles = totals.last - first.unwrap_or(totals.last);
        totals.entries = self.entries.iter().take(totals.last as usize).sum();
        (records, self.totals)
    }

    /// Step 1: credits and packets arrive.
    fn arrive(&mut self, switch: usize) {
        let switch = &mut self.switches[switch];
        for port in 0..switch.peers.len() {
            for (cycle, channel, flits) in std::mem::take(&mut switch.credits[port]) {
                if cycle == self.now {
                    let credits = switch.outputs[port].credits[channel].as_mut();
                    *credits.expect("only what is counted comes back") += flits;
                } else {
                    switch.credits[port].push((cycle, channel, flits));
                }
            }
            for (cycle, channel, packet) in std::mem::take(&mut switch.arrivals[port]) {
                if cycle == self.now {
                    let buffer = &mut switch.inputs[port][channel].buffer;
                    buffer.push_back(packet);
                    let flits: u32 = buffer.iter().map(|p| p.flits).sum();
                    assert!(flits <= self.configuration.input_buffer, "credits hold");
                } else {
                    switch.arrivals[port].push((cycle, channel, packet));
                }
            }
        }
    }

    /// Step 2: output queues take the packets that wait for them.
    fn take(&mut self, switch: usize) {
        for port in 0..self.switches[switch].outputs.len() {
            for channel in [RESPONSES, REQUESTS] {
                while let Some(&(from, of)) =
                    self.switches[switch].outputs[port].waiting[channel].front()
                {
                    let packet = self.switches[switch].inputs[from][of].buffer[0].clone();
                    if !self.has_room(switch, port, channel, packet.flits) {
                        break;
                    }
                    self.switches[switch].outputs[port].waiting[channel].pop_front();
                    self.enqueue(switch, port, channel, packet);
                    let Head::Routed(outputs) = &mut self.switches[switch].inputs[from][of].head
                    else {
                        panic!("only a routed packet waits for an output");
                    };
                    outputs.retain(|&output| output != port);
                    if outputs.is_empty() {
                        self.leave(switch, from, of);
                    }
                }
            }
        }
    }

    fn has_room(&self, switch: usize, port: usize, channel: usize, flits: u32) -> bool {
        let queued = self.switches[switch].outputs[port].queued(channel);
        queued + flits <= self.configuration.output_queue
    }

    fn enqueue(&mut self, switch: usize, port: usize, channel: usize, packet: Packet) {
        let output = &mut self.switches[switch].outputs[port];
        output.queues[channel].push_back(packet);
        self.totals.peak_queue = self.totals.peak_queue.max(output.queued(channel));
    }

    /// Takes the packet at the head of an input buffer out of it and sends its credits back. The last response of an operation frees
    /// the entry.
    fn leave(&mut self, switch: usize, port: usize, channel: usize) {
        let is_merged = self.merges(switch, port, channel);
        let input = &mut self.switches[switch].inputs[port][channel];
        let packet = input.buffer.pop_front().expect("a packet that leaves");
        input.head = Head::New;
        if is_merged {
            let is_other = |entry: &Entry| entry.operation != packet.operation || entry.missing > 0;
            self.switches[switch].table.retain(is_other);
        }
        let credits = (
            self.now + u64::from(self.configuration.latency),
            channel,
            packet.flits,
        );
        match self.switches[switch].peers[port] {
            Peer::Gpu(gpu) => self.gpus[gpu].credits_back.push(credits),
            Peer::Switch(peer, output) => self.switches[peer].credits[output].push(credits),
        }
    }

    /// True if the packet at this head comes from above a GPU and goes up.
    fn goes_up(&self, switch: usize, port: usize, packet: &Packet) -> bool {
        let is_from_gpu = matches!(self.switches[switch].peers[port], Peer::Gpu(_));
        is_from_gpu && self.operations[packet.operation].uplink.is_some()
    }

    /// True if this packet's multicast operation is copied, and its answers are merged, at the initiator's leaf as well.
    fn is_nearest(&self, packet: &Packet) -> bool {
        let sending = &self.operations[packet.operation];
        self.configuration.replication == Replication::Nearest
            && sending.is_multicast()
            && sending.uplink.is_some()
    }

    /// True if this switch is the leaf of the packet's initiator.
    fn is_home(&self, switch: usize, packet: &Packet) -> bool {
        let home = self
            .network
            .tree
            .leaf(self.operations[packet.operation].gpu);
        switch == home as usize
    }

    /// True if the packet at this head is a response that this switch merges.
    fn merges(&self, switch: usize, port: usize, channel: usize) -> bool {
        let packet = &self.switches[switch].inputs[port][channel].buffer[0];
        let is_from_below = match self.switches[switch].peers[port] {
            Peer::Gpu(_) => true,
            Peer::Switch(..) => !self.network.is_leaf(switch),
        };
        packet.class == PacketClass::Response
            && (is_from_below || (self.is_nearest(packet) && self.is_home(switch, packet)))
            && self.operations[packet.operation].is_multicast()
    }

    /// True if the packet at this head is a request that has to have an entry.
    fn needs_entry(&self, switch: usize, port: usize, packet: &Packet) -> bool {
        packet.class == PacketClass::Request
            && self.operations[packet.operation].is_multicast()
            && (self.is_nearest(packet) || !self.goes_up(switch, port, packet))
    }

    /// Outputs that the packet at this head goes to.
    fn outputs(&self, switch: usize, port: usize, packet: &Packet) -> Vec<usize> {
        let sending = &self.operations[packet.operation];
        let uplinks: Vec<usize> = sending.uplink.into_iter().collect();
        let up = || {
            let below = self.network.gpus_per_leaf();
            uplinks
                .iter()
                .map(|uplink| below + uplink)
                .collect::<Vec<_>>()
        };
        let down = |gpus: &[HostId]| self.network.down(switch, sending.uplink, gpus);
        let goes_up = self.goes_up(switch, port, packet);
        match (self.is_nearest(packet), packet.class) {
            (false, _) if goes_up => up(),
            (false, PacketClass::Request) => down(&sending.targets),
            (_, PacketClass::Response) if !goes_up || self.is_home(switch, packet) => {
                down(&[sending.gpu])
            }
            (_, PacketClass::Response) => up(),
            // The initiator's leaf: its members, and the spine.
            (true, PacketClass::Request) if goes_up => [down(&sending.targets), up()].concat(),
            // Who is below the initiator's leaf has a copy.
            (true, PacketClass::Request) => {
                let home = self.network.tree.leaf(sending.gpu);
                let mut others = sending.targets.clone();
                others.retain(|&gpu| self.network.tree.leaf(gpu) != home);
                down(&others)
            }
        }
    }

    /// Step 3: packets that are new at the heads of input buffers are routed.
    fn route(&mut self, switch: usize) {
        let ports = self.switches[switch].peers.len();
        let first = first_port(self.now, ports);
        for port in (first..ports).chain(0..first) {
            self.route_responses(switch, port);
        }
        let mut free = [false, true].map(|is_up| self.free_entries(switch, is_up));
        for (leg, free) in free.iter_mut().enumerate() {
            while *free > 0 {
                let waiting = &mut self.switches[switch].waiting_for_entries[leg];
                let Some((port, channel)) = waiting.pop_front() else {
                    break;
                };
                self.switches[switch].inputs[port][channel].head = Head::HasEntry;
                *free -= 1;
            }
        }
        for port in (first..ports).chain(0..first) {
            for channel in [REQUESTS, READS] {
                self.route_requests(switch, port, channel, &mut free);
            }
        }
    }

    /// Free entries for requests on their way up, or down. Where both pass, the former have half of the table.
    fn free_entries(&self, switch: usize, is_up: bool) -> usize {
        let table = self.switches[switch].table.iter();
        let used = table.filter(|entry| entry.is_up == is_up).count();
        let Some(entries) = self.configuration.reduction_table else {
            return usize::MAX;
        };
        let is_split = self.configuration.replication == Replication::Nearest
            && self.network.is_leaf(switch)
            && self.network.tree.spines > 0;
        let up = if is_split { entries / 2 } else { 0 };
        let most = if is_up { up } else { entries - up };
        most as usize - used
    }

    fn route_responses(&mut self, switch: usize, port: usize) {
        loop {
            let input = &self.switches[switch].inputs[port][RESPONSES];
            if input.head != Head::New || input.buffer.is_empty() {
                return;
            }
            if self.merges(switch, port, RESPONSES) && !self.is_last(switch, port) {
                self.leave(switch, port, RESPONSES);
            } else {
                self.route_head(switch, port, RESPONSES);
            }
        }
    }

    /// Adds the response at a head to its entry. The last one becomes the merged response.
    fn is_last(&mut self, switch: usize, port: usize) -> bool {
        let switch = &mut self.switches[switch];
        let packet = &mut switch.inputs[port][RESPONSES].buffer[0];
        let entry = switch
            .table
            .iter_mut()
            .find(|entry| entry.operation == packet.operation)
            .expect("a response has an entry");
        for answer in &packet.answers {
            assert!(!entry.answers.contains(answer), "one answer of each GPU");
        }
        entry.answers.extend(&packet.answers);
        entry.missing -= 1;
        if entry.missing > 0 {
            return false;
        }
        entry.answers.sort_unstable();
        packet.answers = entry.answers.clone();
        true
    }

    fn route_requests(
        &mut self,
        switch: usize,
        port: usize,
        channel: usize,
        free: &mut [usize; 2],
    ) {
        loop {
            let input = &self.switches[switch].inputs[port][channel];
            let Some(packet) = input.buffer.front() else {
                return;
            };
            let leg = usize::from(self.goes_up(switch, port, packet));
            match input.head {
                Head::Routed(_) | Head::WaitsForEntry => return,
                Head::HasEntry => self.enter(switch, port, channel),
                Head::New if !self.needs_entry(switch, port, packet) => {}
                Head::New if free[leg] > 0 => {
                    free[leg] -= 1;
                    self.enter(switch, port, channel);
                }
                Head::New => {
                    let switch = &mut self.switches[switch];
                    switch.inputs[port][channel].head = Head::WaitsForEntry;
                    switch.waiting_for_entries[leg].push_back((port, channel));
                    self.totals.waits_for_entries += 1;
                    return;
                }
            }
            self.route_head(switch, port, channel);
        }
    }

    /// Makes the entry of the request at a head.
    fn enter(&mut self, switch: usize, port: usize, channel: usize) {
        let packet = &self.switches[switch].inputs[port][channel].buffer[0];
        let entry = Entry {
            operation: packet.operation,
            missing: self.outputs(switch, port, packet).len(),
            answers: Vec::new(),
            is_up: self.goes_up(switch, port, packet),
        };
        let table = &mut self.switches[switch].table;
        table.push(entry);
        let used = table.len() as u32;
        self.totals.peak_entries = self.totals.peak_entries.max(used);
    }

    /// Routes the packet at a head: it joins its output queues, or the waiting in front of them.
    fn route_head(&mut self, switch: usize, port: usize, from: usize) {
        let packet = self.switches[switch].inputs[port][from].buffer[0].clone();
        let channel = from.min(REQUESTS);
        let mut waits = Vec::new();
        for output in self.outputs(switch, port, &packet) {
            let is_first = self.switches[switch].outputs[output].waiting[channel].is_empty();
            if is_first && self.has_room(switch, output, channel, packet.flits) {
                self.enqueue(switch, output, channel, packet.clone());
            } else {
                let waiting = &mut self.switches[switch].outputs[output].waiting[channel];
                waiting.push_back((port, from));
                waits.push(output);
            }
        }
        if waits.is_empty() {
            self.leave(switch, port, from);
        } else {
            self.switches[switch].inputs[port][from].head = Head::Routed(waits);
        }
    }

    /// Step 5 at an output of a switch.
    fn send(&mut self, switch: usize, port: usize) {
        let now = self.now;
        let output = &mut self.switches[switch].outputs[port];
        if output.idle_from > now {
            return;
        }
        let can_send = |&channel: &usize| {
            let packet = output.queues[channel].front();
            packet.is_some_and(|packet| output.credits[channel].is_none_or(|c| c >= packet.flits))
        };
        let Some(channel) = [output.turn, 1 - output.turn].into_iter().find(can_send) else {
            return;
        };
        let packet = output.queues[channel].pop_front().expect("a packet");
        if let Some(credits) = &mut output.credits[channel] {
            *credits -= packet.flits;
        }
        output.turn = 1 - channel;
        output.idle_from = now + u64::from(packet.flits);
        self.count_hop(packet.flits);
        match self.switches[switch].peers[port] {
            Peer::Gpu(gpu) => {
                let tail = now + u64::from(packet.flits);
                self.gpus[gpu].arrivals.push((tail, packet));
            }
            Peer::Switch(peer, input) => self.put_on_link(peer, input, channel, packet),
        }
    }

    /// Sends a packet to a switch.
    pub(crate) fn put_on_link(&mut self, switch: usize, port: usize, channel: usize, p: Packet) {
        let head = self.now + u64::from(self.configuration.latency);
        self.switches[switch].arrivals[port].push((head, channel, p));
    }

    /// Returns credits for requests to the switch above a GPU.
    pub(crate) fn return_credits(&mut self, gpu: usize, flits: u32) {
        let below = self.network.gpus_per_leaf();
        let arrival = self.now + u64::from(self.configuration.latency);
        self.switches[gpu / below].credits[gpu % below].push((arrival, REQUESTS, flits));
    }

    pub(crate) fn count_hop(&mut self, flits: u32) {
        self.totals.packet_hops += 1;
        self.totals.flit_hops += u64::from(flits);
    }
}
