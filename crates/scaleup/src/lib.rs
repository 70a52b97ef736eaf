//! A scale-up fabric: GPUs that read and write each other's memory through switches, with multicast and in-network reduction.
//!
//! The network is that of SMMC (Klenk et al., ISCA 2020) as chapter 6 of Snyder's dissertation (2023) models it. Its unit of time is
//! the [`Cycle`], in which a link carries one flit. [`injection`] decides when a GPU may send an operation: nothing, a static window,
//! tokens whose watermark follows AIMD, and 3CPO.
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
//! * **Virtual channels.** Requests and responses have separate channels everywhere; from a GPU to its switch, read and write requests
//!   may have one each (§6.2.5). Each input of a switch has a buffer for each channel. Who sends into it holds its credits, spends
//!   them for a whole packet at its head flit, and gets them back one latency after the packet has left the buffer.
//! * **Switches** are output-queued: a packet leaves its input buffer when each output queue that it goes to has taken it. An output
//!   that is full makes it wait, and what is behind it in that buffer, but no other copy of it. Outputs take packets in the order in
//!   which they reached the heads of their buffers.
//! * **Reduction table.** A switch that replicates a request, or sends a multicast request on to at least one member, holds an entry
//!   until the merged response has been taken by its output queue. Where no entry is free, requests wait at the head of their buffer.
//! * **Routes** go up to a root and down again. A group that lies below one switch has that switch as its root; else the root is the
//!   spine, and the parallel link to it, that a hash of group and address names. Responses take the same tree in reverse.
//!
//! # Order within a cycle
//!
//! Each switch with the GPUs below it does the following in each cycle, and nothing else depends on any order.
//!
//! 1. Credits that arrive are added. Output queues admit what waits for them, in their order of waiting, responses before requests,
//!    by port. Room that a departure freed in one cycle is given away in the next.
//! 2. Packets that arrive join their input buffers.
//! 3. Packets at the heads of input buffers that were not there before are routed: all of the response channel, then all of request
//!    channels; among ports in the order that [`order::first_port`] rotates, and of one port the channel of writes first. What
//!    does not wait leaves, and the next takes its place in the same step.
//! 4. Completions reach GPUs, and programs post operations; GPUs in ascending order.
//! 5. Each output port of the switch, and each GPU, whose link is idle starts a packet if a channel has one and its credits (and, at
//!    a GPU, the injection control's consent).

pub mod injection;
mod operation;

pub use operation::{FlitSizes, GroupId, Operation, OperationKind, PacketClass, Target};

/// A cycle: the time in which a link carries one flit.
pub type Cycle = u64;
