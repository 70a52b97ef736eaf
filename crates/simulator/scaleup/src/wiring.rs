//! Links and credits of one switch: to the GPUs below it, which share its domain, and to other switches.

use crate::Cycle;
use crate::calendar::Calendar;
use crate::channel::Channel;
use crate::packet::Packet;
use clearway_engine::{BufferPool, Outlet, Round};

/// Message from one switch to another.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Message {
    /// A head flit arrives at the crossbar.
    Arrival(Cycle, Packet),
    /// A packet has left an input buffer: credits for its flits come back.
    Credit(Cycle, Channel, u16),
}

impl Message {
    pub(crate) fn cycle(&self) -> Cycle {
        match *self {
            Self::Arrival(cycle, _) | Self::Credit(cycle, ..) => cycle,
        }
    }
}

/// Event in a domain.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Event {
    /// A head flit arrives for the crossbar at a port's buffer.
    Arrival(u16, Packet),
    /// An output gets credits back.
    Credit(u16, Channel, u16),
    /// A departure has made room in an output queue.
    Room(u16, Channel),
    /// The link of an output is idle again.
    Idle(u16),
    /// A GPU has a whole packet.
    Delivered(u16, Packet),
    /// A GPU's memory has answered: the response is ready for injection.
    Ready(u16, Packet),
    /// A GPU gets credits back.
    GpuCredit(u16, Channel, u16),
    /// A GPU's link is idle again, or its injection control is to be asked again.
    Consider(u16),
    /// A GPU's memory has room for requests again.
    Memory(u16),
    /// A GPU's program wants to go on.
    Wake(u16),
}

/// Outlets of a switch, and the domain's calendar.
#[derive(Debug)]
pub(crate) struct Wiring {
    pub(crate) calendar: Calendar<Event>,
    /// Number of GPUs, whose ports are the first.
    gpus: usize,
    /// Mailboxes of the other ports.
    outlets: Vec<Outlet<Message>>,
    latency: Cycle,
    /// The earliest arrival among the messages of this round.
    sent: Cycle,
}

impl Wiring {
    pub(crate) fn new(
        calendar: Calendar<Event>,
        gpus: usize,
        outlets: Vec<Outlet<Message>>,
        latency: Cycle,
    ) -> Self {
        Self {
            calendar,
            gpus,
            outlets,
            latency,
            sent: Cycle::MAX,
        }
    }

    /// True if a GPU is connected to `port`.
    #[inline]
    pub(crate) fn is_gpu(&self, port: usize) -> bool {
        port < self.gpus
    }

    /// A packet's head flit leaves through `port`.
    #[inline]
    pub(crate) fn depart(
        &mut self,
        port: usize,
        packet: Packet,
        now: Cycle,
        pool: &mut BufferPool<Message>,
    ) {
        if self.is_gpu(port) {
            let arrival = now + Cycle::from(packet.flits);
            self.calendar
                .insert(arrival, Event::Delivered(port as u16, packet));
        } else {
            self.post(port, Message::Arrival(now + self.latency, packet), pool);
        }
    }

    /// A packet has left the input buffer of `port`.
    #[inline]
    pub(crate) fn return_credits(
        &mut self,
        port: usize,
        channel: Channel,
        flits: u16,
        now: Cycle,
        pool: &mut BufferPool<Message>,
    ) {
        let arrival = now + self.latency;
        if self.is_gpu(port) {
            self.calendar
                .insert(arrival, Event::GpuCredit(port as u16, channel, flits));
        } else {
            self.post(port, Message::Credit(arrival, channel, flits), pool);
        }
    }

    /// A GPU's packet goes to the switch.
    pub(crate) fn inject(&mut self, gpu: u16, packet: Packet, now: Cycle) {
        self.calendar
            .insert(now + self.latency, Event::Arrival(gpu, packet));
    }

    fn post(&mut self, port: usize, message: Message, pool: &mut BufferPool<Message>) {
        self.sent = self.sent.min(message.cycle());
        self.outlets[port - self.gpus].post(message, pool);
    }

    /// Sends the messages of a round; returns the earliest arrival among them.
    pub(crate) fn send(&mut self, round: &Round) -> Cycle {
        for outlet in &mut self.outlets {
            outlet.send(round);
        }
        std::mem::replace(&mut self.sent, Cycle::MAX)
    }
}
