//! Settings of go-back-N, and the form in which the packet loop uses them.

use crate::congestion::NetworkFacts;
use crate::endpoint::flow::Part;
use clearway_units::{Bytes, MessageId, Span};
use std::num::NonZero;

/// The most queue pairs of a flow.
pub const MOST_QUEUE_PAIRS: u8 = 32;

clearway_units::choices! {
    /// The service class in which acknowledgements travel.
    pub enum AckClass {
        /// A separate class, before data and never paused.
        Control = "control",
        /// The class of the data that they answer: they wait in its queues and are paused with it.
        Data = "data",
    }
}

clearway_units::choices! {
    /// Striping of messages over queue pairs.
    pub enum Stripe {
        /// Each queue pair carries one contiguous part; the remainder goes to the first.
        Split = "split",
        /// Chunks go to the queue pairs in turn.
        RoundRobin = "round-robin",
        /// Whole messages go to the queue pairs in turn, as NCCL sends them with `NCCL_IB_SPLIT_DATA_ON_QPS=0`.
        Message = "message",
    }
}

clearway_units::parameters! {
    /// Settings of go-back-N.
    pub struct GoBackNParameters {
        /// Packets after which an acknowledgement is due. The last packet of a message, and one that fills the window, are
        /// acknowledged at once.
        pub ack_interval: NonZero<u32> = NonZero::new(1).expect("not zero"), "ack-interval", "HPCC artifact: L2_ACK_INTERVAL 1, one acknowledgement for each packet";
        /// Service class of acknowledgements.
        pub ack_class: AckClass = AckClass::Control, "ack-class", "decision; \"data\" is as in the switches of the HPCC artifact, whatever ACK_HIGH_PRIO is";
        /// Acknowledge duplicates again.
        pub ack_duplicates: bool = true, "ack-duplicates", "decision: a lost acknowledgement caused them; the HPCC artifact is silent";
        /// Minimum time between two NACKs for the same packet.
        pub nack_interval: Span = Span::from_us(500), "nack-interval", "HPCC artifact: NACK interval of 500 us";
        /// Time without progress after which all outstanding packets are sent again; it doubles with each timeout in a row. If the default
        /// is below one unloaded round trip, four are used, with a warning.
        pub timeout: Span = Span::from_ms(1), "rto", "decision: the HPCC artifact has no timeout and hangs when the last packet is lost";
        /// Largest timeout after doubling.
        pub timeout_max: Span = Span::from_ms(8), "rto-max", "decision";
        /// Queue pairs of each flow, at most 32, each with its own congestion controller and path.
        pub queue_pairs: NonZero<u8> = NonZero::new(1).expect("not zero"), "qps", "STrack §2.1 uses 1 and 4";
        /// Striping of messages over the queue pairs.
        pub stripe: Stripe = Stripe::Split, "stripe", "decision: STrack §2.1 does not say";
        /// Bytes that one queue pair carries before the next one takes its turn, rounded up to whole packets.
        pub stripe_chunk: Bytes = Bytes::new(65_536), "stripe-chunk", "decision";
        /// Send control packets before data; otherwise they take turns.
        pub control_first: bool = true, "control-first", "HPCC artifact: the acknowledgement queue of a NIC goes first";
        /// Life of a receiver after the last packet of its flow; copies that arrive during it count for congestion notifications. Later
        /// copies are answered with the final acknowledgement, which is kept for the whole run. `"auto"` is four of the longest timeouts.
        pub linger: Option<Span> = None, "linger", "several lost acknowledgements in a row";
    }
}

impl GoBackNParameters {
    /// Number of queue pairs of a flow.
    pub(crate) fn queue_pairs(&self) -> u8 {
        self.queue_pairs.get().min(MOST_QUEUE_PAIRS)
    }

    /// Number of packets in which a queue pair carries its part of a message of `bytes`; 0 if the message is too short to reach
    /// it.
    pub fn packets_of(&self, bytes: Bytes, queue_pair: u8, network: &NetworkFacts) -> u64 {
        let rules = Rules::new(self, network);
        let part = rules.part(MessageId(0), bytes, queue_pair);
        part.map_or(0, |part| part.bytes.div_ceil(rules.payload).max(1))
    }

    /// The payload of each queue pair that carries some of a message of `bytes`.
    pub(crate) fn parts(&self, bytes: Bytes, network: &NetworkFacts) -> Vec<Bytes> {
        let rules = Rules::new(self, network);
        let part = |queue_pair| rules.part(MessageId(0), bytes, queue_pair);
        let parts = (0..rules.queue_pairs).filter_map(part);
        parts.map(|part| Bytes::new(part.bytes)).collect()
    }
}

/// [`GoBackNParameters`] resolved for one network.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rules {
    /// Payload bytes of a full packet.
    pub(crate) payload: u64,
    pub(crate) packets_per_byte: f64,
    pub(crate) header: u16,
    /// Bytes of an acknowledgement on the wire.
    pub(crate) ack: u16,
    pub(crate) ack_interval: u32,
    pub(crate) ack_class: AckClass,
    pub(crate) ack_duplicates: bool,
    pub(crate) nack_interval: Span,
    pub(crate) timeout: Span,
    pub(crate) timeout_max: Span,
    pub(crate) queue_pairs: u8,
    stripe: Stripe,
    /// In bytes, whole packets.
    stripe_chunk: u64,
    pub(crate) linger: Span,
}

impl Rules {
    pub(crate) fn new(parameters: &GoBackNParameters, network: &NetworkFacts) -> Self {
        let payload = u64::from(network.payload);
        // A timer of no length would fire for ever.
        let timeout = network
            .usable_timeout(parameters.timeout)
            .max(Span::from_ps(1));
        let timeout_max = parameters.timeout_max.max(timeout);
        let chunk = parameters.stripe_chunk.as_u64().max(1);
        Self {
            payload,
            packets_per_byte: 1.0 / f64::from(network.payload),
            header: network.header as u16,
            ack: network.ack as u16,
            ack_interval: parameters.ack_interval.get(),
            ack_class: parameters.ack_class,
            ack_duplicates: parameters.ack_duplicates,
            nack_interval: parameters.nack_interval,
            timeout,
            timeout_max,
            queue_pairs: parameters.queue_pairs(),
            stripe: parameters.stripe,
            stripe_chunk: chunk.div_ceil(payload).saturating_mul(payload),
            linger: parameters.linger.unwrap_or(
                timeout_max
                    .checked_add(timeout_max * 3)
                    .unwrap_or(timeout_max),
            ),
        }
    }

    /// Part of a message that a queue pair carries; `None` if the message is too short to reach it.
    pub(crate) fn part(&self, message: MessageId, bytes: Bytes, queue_pair: u8) -> Option<Part> {
        if self.queue_pairs == 1 {
            return Some(Part::whole(message, bytes));
        }
        let (total, all) = (bytes.as_u64(), u64::from(self.queue_pairs));
        let own = u64::from(queue_pair);
        // A message without bytes has one packet, on one queue pair.
        let first = match self.stripe {
            Stripe::Split | Stripe::RoundRobin => 0,
            Stripe::Message => u64::from(message.0) % all,
        };
        let (bytes, place, parts) = match self.stripe {
            Stripe::Message if own == first => (total, 0, 1),
            Stripe::Message => (0, 0, 1),
            Stripe::Split => {
                let (share, rest) = (total / all, total % all);
                let parts = if share == 0 { 1 } else { all };
                match own {
                    0 => (share + rest, 0, parts),
                    _ => (share, rest + own * share, parts),
                }
            }
            Stripe::RoundRobin => {
                let chunks = total.div_ceil(self.stripe_chunk);
                let own_chunks = chunks.saturating_sub(own).div_ceil(all);
                let ends_here = chunks > 0 && (chunks - 1) % all == own;
                let missing = if ends_here {
                    chunks * self.stripe_chunk - total
                } else {
                    0
                };
                // Where its packets go follows from `place`.
                (own_chunks * self.stripe_chunk - missing, 0, chunks.min(all))
            }
        };
        let carries = bytes > 0 || (own == first && total == 0);
        carries.then_some(Part {
            message,
            bytes,
            place,
            parts: parts.max(1) as u8,
        })
    }

    /// Offset in the message of a packet that stands at `offset` of the part.
    #[inline]
    pub(crate) fn place(&self, offset: u64, queue_pair: u8) -> u64 {
        if self.queue_pairs == 1 || self.stripe != Stripe::RoundRobin {
            return offset;
        }
        let (chunk, within) = (offset / self.stripe_chunk, offset % self.stripe_chunk);
        (chunk * u64::from(self.queue_pairs) + u64::from(queue_pair)) * self.stripe_chunk + within
    }
}
