//! A domain of the engine: a switch, and the GPUs below it.

use crate::bits::Bits;
use crate::calendar::Calendar;
use crate::gpu::Gpu;
use crate::packet::Packet;
use crate::plan::Plan;
use crate::record::OperationRecord;
use crate::switch::Switch;
use crate::wiring::{Event, Message, Wiring};
use crate::{Cycle, PacketClass};
use clearway_engine::{BufferPool, Domain, DomainHorizon, Inlet, Outlet, Round};
use clearway_units::{Span, Time};

/// Traffic between nodes: packets, and credits in flits.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct UnderWay {
    pub(crate) packets: u64,
    /// Flits of those that hold credits: all but responses on their way to GPUs.
    pub(crate) credited: u64,
    pub(crate) credits: u64,
}

impl UnderWay {
    fn add(&mut self, packet: &Packet, is_credited: bool) {
        self.packets += 1;
        if is_credited {
            self.credited += u64::from(packet.flits);
        }
    }
}

/// A switch with the GPUs below it.
#[derive(Debug)]
pub(crate) struct SwitchDomain {
    pub(crate) switch: Switch,
    pub(crate) gpus: Vec<Gpu>,
    pub(crate) wiring: Wiring,
    inlets: Vec<Inlet<Message>>,
    cycle: Span,
    /// Cycle before which the run ends.
    end: Cycle,
    pub(crate) records: Vec<OperationRecord>,
    /// GPUs at which something has happened in this cycle.
    touched: Bits,
    /// Events of this cycle.
    events: Vec<Event>,
    /// Events of this cycle at GPUs, for step 4.
    at_gpus: Vec<(u16, GpuEvent)>,
}

/// Event at a GPU; the variants are in the order of one cycle's events.
#[derive(Debug, Clone, Copy)]
enum GpuEvent {
    Memory,
    Delivered(Packet),
    Ready(Packet),
    Wake,
}

impl GpuEvent {
    /// Place among the events of one cycle. A response that becomes ready in the cycle of another packet's delivery comes after the effects
    /// of the delivery. Of two responses, the acknowledgement comes first.
    fn rank(&self) -> (u8, u8) {
        match self {
            Self::Memory => (0, 0),
            Self::Delivered(_) => (0, 1),
            Self::Ready(packet) => (1, u8::from(packet.kind == crate::OperationKind::Read)),
            Self::Wake => (2, 0),
        }
    }
}

impl SwitchDomain {
    pub(crate) fn new(
        plan: &Plan,
        switch: Switch,
        gpus: Vec<Gpu>,
        outlets: Vec<Outlet<Message>>,
        inlets: Vec<Inlet<Message>>,
    ) -> Self {
        let configuration = &plan.configuration;
        let memory = configuration.read_latency.max(configuration.write_latency);
        let soon = (2 * configuration.latency).max(memory) + 64;
        let latency = Cycle::from(configuration.latency);
        Self {
            switch,
            touched: Bits::new(gpus.len()),
            wiring: Wiring::new(Calendar::new(soon), gpus.len(), outlets, latency),
            gpus,
            inlets,
            cycle: configuration.cycle,
            end: Cycle::MAX,
            records: Vec::new(),
            events: Vec::new(),
            at_gpus: Vec::new(),
        }
    }

    /// Starts the programs of a run that ends before the cycle `end`. Returns the first event.
    pub(crate) fn start(&mut self, end: Cycle) -> Time {
        self.end = end;
        for (port, gpu) in self.gpus.iter_mut().enumerate() {
            gpu.start(&mut self.wiring);
            self.wiring.calendar.insert(0, Event::Consider(port as u16));
        }
        self.next()
    }

    fn next(&self) -> Time {
        let next = self.wiring.calendar.next();
        next.map_or(Time::NEVER, |cycle| instant(cycle, self.cycle))
    }

    /// One cycle, in the steps of the crate's documentation.
    fn step(&mut self, now: Cycle, pool: &mut BufferPool<Message>) {
        let mut events = std::mem::take(&mut self.events);
        self.wiring.calendar.take(now, &mut events);
        for event in events.drain(..) {
            self.sort(event);
        }
        self.events = events;
        self.switch.route(now, &mut self.wiring, pool);
        self.run_gpus(now);
        self.switch.transmit(now, &mut self.wiring, pool);
        while let Some(port) = self.touched.take(0) {
            self.gpus[port].transmit(now, &mut self.wiring);
        }
    }

    /// Hands an event to the switch, or keeps it for the GPUs' step.
    fn sort(&mut self, event: Event) {
        let gpu = match event {
            Event::Arrival(port, packet) => {
                return self.switch.on_arrival(port, packet, &self.wiring);
            }
            Event::Credit(port, channel, flits) => {
                return self.switch.on_credit(port, channel, flits);
            }
            Event::Room(port, channel) => return self.switch.on_room(port, channel),
            Event::Idle(port) => return self.switch.on_idle(port),
            Event::Delivered(gpu, packet) => {
                self.at_gpus.push((gpu, GpuEvent::Delivered(packet)));
                gpu
            }
            Event::Ready(gpu, packet) => {
                self.at_gpus.push((gpu, GpuEvent::Ready(packet)));
                gpu
            }
            Event::Memory(gpu) => {
                self.at_gpus.push((gpu, GpuEvent::Memory));
                gpu
            }
            Event::Wake(gpu) => {
                self.at_gpus.push((gpu, GpuEvent::Wake));
                gpu
            }
            Event::GpuCredit(gpu, channel, flits) => {
                self.gpus[usize::from(gpu)].on_credit(channel, flits);
                gpu
            }
            Event::Consider(gpu) => gpu,
        };
        self.touched.insert(usize::from(gpu));
    }

    /// Step 4.
    fn run_gpus(&mut self, now: Cycle) {
        let mut events = std::mem::take(&mut self.at_gpus);
        // A stable sort: responses that are ready at once keep the order of their requests.
        events.sort_by_key(|(gpu, event)| (*gpu, event.rank()));
        for (port, event) in events.drain(..) {
            let gpu = &mut self.gpus[usize::from(port)];
            match event {
                GpuEvent::Memory => gpu.take_requests(now, &mut self.wiring),
                GpuEvent::Delivered(packet) => {
                    gpu.on_delivered(now, &packet, &mut self.wiring, &mut self.records);
                }
                GpuEvent::Ready(packet) => gpu.on_ready(packet),
                GpuEvent::Wake => gpu.on_wake(now, &mut self.wiring),
            }
        }
        self.at_gpus = events;
    }

    /// Packets and credits on their way to this domain or within it.
    pub(crate) fn under_way(&self) -> UnderWay {
        let mut sum = UnderWay::default();
        for event in self.wiring.calendar.iter() {
            match event {
                Event::Arrival(_, packet) => sum.add(packet, true),
                Event::Delivered(_, packet) => {
                    sum.add(packet, packet.class == PacketClass::Request);
                }
                Event::Credit(_, _, flits) | Event::GpuCredit(_, _, flits) => {
                    sum.credits += u64::from(*flits);
                }
                Event::Room(..)
                | Event::Idle(_)
                | Event::Ready(..)
                | Event::Consider(_)
                | Event::Memory(_)
                | Event::Wake(_) => {}
            }
        }
        for inlet in &self.inlets {
            inlet.for_each_in_transit(|message| match message {
                Message::Arrival(_, packet) => sum.add(packet, true),
                Message::Credit(_, _, flits) => sum.credits += u64::from(*flits),
            });
        }
        sum
    }
}

/// The instant at which a cycle begins; for a cycle beyond all runs the last instant.
pub(crate) fn instant(cycle: Cycle, length: Span) -> Time {
    let latest = u64::MAX - 1;
    Time::from_ps(cycle.saturating_mul(length.as_ps()).min(latest))
}

impl Domain for SwitchDomain {
    type Report = ();
    type Command = ();
    type Workbench = BufferPool<Message>;

    fn run(
        &mut self,
        round: &Round,
        incoming: &[u32],
        _reports: &mut Vec<()>,
        pool: &mut BufferPool<Message>,
    ) -> DomainHorizon {
        let gpus = self.gpus.len();
        for &index in incoming {
            let inlet = &mut self.inlets[index as usize];
            inlet.collect(round, pool);
            let port = (gpus + index as usize) as u16;
            let count = inlet.unread().len();
            for message in inlet.unread() {
                let event = match *message {
                    Message::Arrival(_, packet) => Event::Arrival(port, packet),
                    Message::Credit(_, channel, flits) => Event::Credit(port, channel, flits),
                };
                self.wiring.calendar.insert(message.cycle(), event);
            }
            inlet.advance(count);
            inlet.tidy(pool);
        }
        let end = round
            .end()
            .as_ps()
            .div_ceil(self.cycle.as_ps())
            .min(self.end);
        while let Some(cycle) = self.wiring.calendar.next().filter(|&cycle| cycle < end) {
            self.step(cycle, pool);
        }
        let sent = self.wiring.send(round);
        let sent = match sent {
            Cycle::MAX => Time::NEVER,
            cycle => instant(cycle, self.cycle),
        };
        DomainHorizon {
            // Events after the end of the run never happen.
            next: self.next().max(round.end()),
            sent,
        }
    }

    fn accept(&mut self, _command: ()) -> Time {
        self.next()
    }
}
