//! A scale-up fabric: GPUs that read and write each other's memory through switches, with multicast and in-network reduction.
//!
//! The network is SMMC (Klenk et al., ISCA 2020) as chapter 6 of Snyder's dissertation (2023) models it. Its unit of time is the [`Cycle`],
//! in which a link carries one flit. [`injection`] decides when a GPU may send an operation: no control, a static window, tokens whose
//! watermark follows AIMD, and 3CPO.
//!
//! # Model
//!
//! * **Operations.** A *multicast write* goes to all members of a group; each acknowledges, and switches merge the acknowledgements.
//!   A *reduction* (read with a reduction operator, "pull") asks all members; each responds with data, and switches merge the
//!   responses. *Reads* and *writes* are the same between two GPUs. The initiator belongs to its group.
//! * **Packets** are atomic on a link: their flits follow each other without gaps (virtual cut-through at one rate), so a packet is
//!   known by the cycle of its head flit and its length.
//! * **Links** carry one flit each cycle. A head flit that leaves a node at cycle `s` stands at the next switch's crossbar at
//!   `s + latency`, which includes the link and the switch (150 cycles in the paper). A GPU takes a packet from its switch when the
//!   tail flit is there, at `s + flits`.
//! * **Virtual channels.** Requests and responses have separate channels everywhere; from a GPU to its switch, read and write requests may
//!   have one each (§6.2.5). Each input of a switch has a buffer for each channel. The sender into it holds its credits, spends them for a
//!   whole packet at its head flit, and gets them back one latency after the packet has left the buffer.
//! * **Switches** are output-queued: a packet leaves its input buffer when each output queue that it goes to has taken it. A full output
//!   makes it wait, and the packets behind it in that buffer, but not its other copies. Outputs take packets in the order in which they
//!   were routed.
//! * **Routes** go up to a root and down again. A group that lies below one leaf has that leaf as its root; else the root is the spine,
//!   and the parallel link to it, that a hash of group and address names. Responses take the same tree in reverse.
//! * **Replication.** The initiator's leaf copies a multicast request to the members below it and to the root, and the root to all other
//!   leaves with members (`replication = "nearest"`). Or the root copies it to all leaves with members, the initiator's among them
//!   (`"root"`). §6.1.1 leaves it open; with the first a GPU hears of its neighbours' operations after one latency instead of three.
//! * **Reduction table.** A switch that copies a request holds an entry from the request's routing until the output queue has taken the
//!   merged response, also where it makes one copy only. Where no entry is free, requests wait at the head of their buffer, and get entries
//!   in the order in which they came there. A leaf below spines that copies requests on their way up divides its table: half of the entries
//!   (rounded down) are for these, and half for requests on their way down. Requests on their way up wait for requests on their way down,
//!   which wait for GPUs alone, so that no circle arises.
//! * **GPUs** take all responses. Requests have a buffer with credits, as at a switch, and go from there into memory, in order, as long as
//!   the responses that are in memory or wait for the link, and their own, are within `response-queue`. Without that limit requests would
//!   never wait in the network, and the tree saturation of §6.1.4 could not be seen. The text has no limit: this one is fitted.
//!
//! # Order within a cycle
//!
//! Each switch with the GPUs below it does the following in each cycle, and nothing depends on any other order. Resources that a step frees
//! can be used in the next cycle, unless stated otherwise.
//!
//! 1. Credits that arrive are added. Packets that arrive join their input buffers.
//! 2. Output queues take the packets that wait for them, in the order of waiting, as far as departures of earlier cycles made room. A
//!    packet that every output has taken leaves its input buffer, and its credits leave for its sender.
//! 3. Packets that are new at the heads of input buffers are routed: first packets of the response channel, then, after free entries of the
//!    reduction table have been promised to requests that wait for them (on their way down before on their way up), packets of the request
//!    channels. Entries that this cycle's merged responses have left are free here already. Among ports the order begins at
//!    [`order::first_port`]; within a port the channel of writes comes before the channel of reads. A routed packet joins all its output
//!    queues, or the waiting in front of them. If all take it at once it leaves, and the next packet of its buffer is routed before packets
//!    of other buffers. A response that is not the last of its operation leaves into the entry.
//! 4. GPUs: memory takes requests for which a departure has made room; a packet whose tail arrives is taken (a request goes on
//!    into memory in the same cycle if it can); responses become ready, acknowledgements before data, and else in the order in which
//!    memory took their requests; programs wake.
//! 5. Each output of the switch, and each GPU, whose link is idle starts a packet if a channel has one and credits for it (a GPU: and
//!    injection control consents). An output takes turns between its channels, requests first; a GPU begins with responses, writes and
//!    reads in this order. A packet leaves its queue with its head flit.

mod bits;
mod calendar;
mod channel;
mod concurrent;
mod configuration;
mod domain;
mod gpu;
pub mod injection;
mod operation;
pub mod order;
mod packet;
mod plan;
mod program;
mod rank;
mod record;
mod reduction;
mod script;
mod simulation;
mod switch;
mod tree;
mod wiring;

pub use concurrent::{Concurrent, label_of};
pub use configuration::{Configuration, InjectionArbiter, InjectionChannels, Replication};
pub use operation::{
    FLIT_BYTES, FlitSizes, GroupId, Operation, OperationKind, PacketClass, Target,
};
pub use program::{Posts, Program};
pub use rank::{
    CallKind, GroupCall, IterationCycles, IterationLog, MOST_CALLS, RankJob, RankTask, RankTasks,
    TaskWait, Work,
};
pub use record::{LinkTotals, OperationRecord};
pub use script::{OperationSet, Script, Step};
pub use simulation::{
    Finished, GpuGauges, RoundState, RunLimits, Setup, Simulation, SwitchGauges, Watcher,
    cycles_of, time_of,
};
pub use tree::Tree;

/// A cycle: the time in which a link carries one flit.
pub type Cycle = u64;
