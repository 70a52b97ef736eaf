//! Settings of switches, links and GPUs.

use crate::{Cycle, FlitSizes, OperationKind};
use clearway_units::Span;

clearway_units::choices! {
    /// Order in which a GPU serves its injection channels.
    pub enum InjectionArbiter {
        /// The channel that was served longest ago, of those that can send.
        LeastRecentlyUsed = "least-recently-used",
        /// The next channel in turn. One that cannot send loses its turn.
        RoundRobin = "round-robin",
    }
}

clearway_units::choices! {
    /// Channels between a GPU and its switch.
    pub enum InjectionChannels {
        /// One for read requests, one for write requests, and the channel of responses.
        PerKind = "per-kind",
        /// One for all requests, and the channel of responses.
        Shared = "shared",
    }
}

clearway_units::choices! {
    /// Switches that copy multicast requests.
    pub enum Replication {
        /// Each switch on the way: the initiator's leaf copies to its own GPUs and up, the spine to the other leaves. Answers are merged on
        /// the same way back.
        Nearest = "nearest",
        /// The root of the tree, and the leaves below it: the request passes the initiator's leaf on its way up without a copy.
        Root = "root",
    }
}

clearway_units::parameters! {
    /// Settings of a scale-up fabric.
    pub struct Configuration {
        /// Time in which a link carries one flit.
        pub cycle: Span = Span::from_ps(640), "cycle", "Dissertation §6.1.4: 25 GB/s and flits of 16 B";
        /// Cycles from the departure of a head flit to its arrival at the crossbar of the next switch. Credits take the same time.
        pub latency: u32 = 150, "latency", "Dissertation §6.1.4: of a switch; decision: its link included, so that an idle round trip is about 1000 cycles";
        /// Flits of a packet header, 16 B each.
        pub header_flits: u32 = 1, "header-flits", "Dissertation §6.1.4: 16 B";
        /// Flits of packet data.
        pub payload_flits: u32 = 8, "payload-flits", "Dissertation §6.1.4: 128 B";
        /// Buffer of each switch input for each virtual channel, in flits, in addition to the output queues. The sender holds a credit for
        /// each flit; credits return when output queues have taken the head of a packet.
        pub input_buffer: u32 = 512, "input-buffer", "Dissertation §6.1.4: the round trip between switches; decision: 300 flits and some packets";
        /// Queue of each switch output for each virtual channel, in flits.
        pub output_queue: u32 = 512, "output-queue", "Dissertation §6.1.4: the round trip between switches";
        /// Cycles from the moment when memory takes a read request until the response is ready.
        pub read_latency: u32 = 180, "read-latency", "Dissertation §6.1.4: of the memory";
        /// Cycles from the moment when memory takes a write request until the acknowledgement is ready.
        pub write_latency: u32 = 0, "write-latency", "decision: a write is acknowledged before it is in memory; an idle round trip is below 1000 cycles";
        /// Limit of the responses in a GPU's memory and in front of its link, in flits. A GPU takes a request only if its response fits;
        /// other requests wait in a buffer of `input-buffer` flits. `"auto"` is 15 packets for each GPU of the fabric.
        pub response_queue: Option<u32> = None, "response-queue", "decision, fitted: about the reads that 3CPO sends before it hears of others (17), far below the backlog without control; §6.1.4 has no limit, and no tree saturation without one";
        /// Switches that copy multicast requests.
        pub replication: Replication = Replication::Nearest, "replication", "Dissertation §6.1.1: \"network switches\" \"forward and replicate\"; decision: as soon as they can";
        /// Entries of each switch's reduction table; `"auto"` is unlimited. With `replication = "nearest"`, half of a leaf's entries are
        /// for requests on their way up.
        pub reduction_table: Option<u32> = None, "reduction-table", "Dissertation §7.2.2 leaves it open";
        /// Virtual channels from a GPU to its switch, in addition to the channel of responses: one for all requests, or one for reads and
        /// one for writes.
        pub channels: InjectionChannels = InjectionChannels::PerKind, "channels", "Dissertation §6.2.5";
        /// Order in which a GPU serves its virtual channels to the switch.
        pub arbiter: InjectionArbiter = InjectionArbiter::LeastRecentlyUsed, "arbiter", "Dissertation §6.2.5";
    }
}

impl Configuration {
    /// Lengths of packets.
    pub fn sizes(&self) -> FlitSizes {
        FlitSizes {
            header: self.header_flits,
            payload: self.payload_flits,
        }
    }

    /// Latency of an operation of an idle fabric, within a leaf or across a spine.
    pub fn idle_latency(&self, kind: OperationKind, is_far: bool) -> Cycle {
        let passes = if is_far { 6 } else { 2 };
        let memory = match kind {
            OperationKind::Read => self.read_latency,
            OperationKind::Write => self.write_latency,
        };
        let flits = 2 * self.header_flits + self.payload_flits;
        Cycle::from(passes * self.latency) + Cycle::from(memory) + Cycle::from(flits)
    }

    /// Checks the settings.
    ///
    /// # Errors
    /// The key of a setting that cannot be, and the reason.
    pub fn check(&self) -> Result<(), (&'static str, String)> {
        let packet = self.header_flits.saturating_add(self.payload_flits);
        let refuse = |key, reason: &str| Err((key, reason.to_owned()));
        if self.cycle.is_zero() || self.cycle > LONGEST_CYCLE {
            return refuse("cycle", "a cycle takes 1 ps to 1 us");
        }
        for (key, cycles, least) in [
            ("latency", self.latency, 1),
            ("read-latency", self.read_latency, 0),
            ("write-latency", self.write_latency, 0),
        ] {
            if cycles < least || cycles > MOST_CYCLES {
                let reason = format!("{cycles} cycles; use {least} to {MOST_CYCLES}");
                return Err((key, reason));
            }
        }
        if self.header_flits == 0 {
            return refuse("header-flits", "a header has at least one flit");
        }
        if packet > LONGEST_PACKET {
            let is_header = self.header_flits > LONGEST_PACKET / 2;
            let key = if is_header {
                "header-flits"
            } else {
                "payload-flits"
            };
            return refuse(key, "a packet has at most 1024 flits, its header included");
        }
        for (key, flits) in [
            ("input-buffer", Some(self.input_buffer)),
            ("output-queue", Some(self.output_queue)),
            ("response-queue", self.response_queue),
        ] {
            if flits.is_some_and(|flits| flits < packet) {
                let reason = format!("a packet of {packet} flits would never get room");
                return Err((key, reason));
            }
        }
        let reason = match (self.reduction_table, self.replication) {
            (Some(0), Replication::Root) => "without an entry no multicast could pass",
            (Some(0 | 1), Replication::Nearest) => {
                "multicasts need two entries, for requests on their way up and on their way down; one does with `replication` \"root\""
            }
            _ => return Ok(()),
        };
        refuse("reduction-table", reason)
    }

    /// Flits of responses for which each of so many GPUs takes requests.
    pub fn response_queue(&self, gpus: u32) -> u32 {
        let packet = self.header_flits.saturating_add(self.payload_flits);
        let for_each = RESPONSES_OF_EACH.saturating_mul(packet);
        self.response_queue
            .unwrap_or_else(|| for_each.saturating_mul(gpus))
    }

    /// Entries of a reduction table for requests on their way down and up; `None` for as many as are needed. `is_passed` if requests pass
    /// the switch on their way up.
    pub(crate) fn entries(&self, is_passed: bool) -> Option<[u32; 2]> {
        let entries = self.reduction_table?;
        let up = match self.replication {
            Replication::Nearest if is_passed => entries / 2,
            _ => 0,
        };
        Some([entries - up, up])
    }
}

/// Responses to each GPU that a GPU has room for.
const RESPONSES_OF_EACH: u32 = 15;
/// Longest latency in cycles.
const MOST_CYCLES: u32 = 1_000_000;
/// Longest cycle: the longest run has to be a number of picoseconds.
const LONGEST_CYCLE: Span = Span::from_us(1);
/// Longest packet in flits.
const LONGEST_PACKET: u32 = 1024;
