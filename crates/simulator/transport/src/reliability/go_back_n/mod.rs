//! Go-back-N: the reliability of RoCEv2 NICs, which assume a lossless fabric.
//!
//! The receiver delivers in order and discards all packets beyond the expected one, with a negative acknowledgement (NACK) at most once in
//! a while; the sender then goes back to the expected packet and sends everything from there again. Acknowledgements are cumulative and
//! echo stamp and mark of the packet that they answer.
//!
//! A flow may have several *queue pairs*, each with its own sender, congestion controller, path and receiver; its messages are
//! striped over them (STrack §2.1: four queue pairs per connection).
//!
//! **Architecture invariant:** no per-packet records: the payload of a packet follows from its number and its message.
//!
//! The functions that run for each packet are never inlined: the packet loop of an endpoint stays as small as with STrack alone.
//!
//! Decisions:
//! * A retransmission timeout, which the HPCC artifact lacks: without one, a flow whose last packet or last acknowledgement is lost
//!   never ends.
//! * Duplicates are acknowledged again: the acknowledgement that would have prevented them was lost. The artifact is silent;
//!   `ack-duplicates` is that reading.
//! * A packet may start while less than the window is in flight, as with selective repeat and in the artifact.
//! * A NACK is also an acknowledgement: its mark and the packets that it acknowledges count.

mod parameters;
mod receiver;
mod sender;
#[cfg(test)]
mod tests;

pub(crate) use parameters::Rules;
pub use parameters::{AckClass, GoBackNParameters, MOST_QUEUE_PAIRS, Stripe};
pub(crate) use receiver::{Receiver, late_ack};
pub(crate) use sender::Sender;
