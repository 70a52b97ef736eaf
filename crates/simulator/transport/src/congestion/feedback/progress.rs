//! The notification point of TMDML-NIC (TMDML §III.C, Fig. 3): DCQCN's, but flows that fall behind are spared.
//!
//! A receiver counts the packets of its flow, its progress. Once for every `batch` packets that come to the host, the average progress of
//! all flows to it is renewed. A marked packet is answered with a CNP only if its flow is not behind that average, and then at most once in
//! an interval. A flow that has to pass more bottlenecks than others is marked more often and so slowed down more. This rule compensates
//! it, without messages between hosts.
//!
//! # Decisions
//! * A flow is the unit that has a rate at the sender: a queue pair. A receiving NIC knows nothing else, and all connections have equally
//!   many.
//! * The average is over active flows, of which a message has begun to arrive and is not complete. The paper does not say which flows
//!   count: finished flows would hold the average up, and flows that wait for their next message would hold it down.
//! * The average is over all active flows to the NIC, of any stage: a packet does not name its stage. Where stages of nodes overlap, flows
//!   that have just begun pull the average down, and some that are behind in their own stage are not spared. Over three draws of paths that
//!   made no difference of more than 2 % (an all-reduce of 8 servers with and without a barrier between its stages).
//! * Progress restarts with each message. In a collective a message is a flow's share of a stage, and flows of one stage wait for
//!   each other: a lead in an earlier stage does not matter. Counted from the beginning, a lead would last for ever.
//! * When the last active flow has left, a stage is over: the average is forgotten and the counter of packets restarts, so that the
//!   flows of the next stage are not measured by the last.
//! * Until there is an average, every flow is at it, and the rule is DCQCN's. The same holds for a flow that is alone.
//! * "Does not fall behind" includes equality.
//! * A flow is judged when the marked packet comes, also for the CNP at the end of a window.
//! * The packet counts before it is judged, and is in the average if that is due with it, in the order of Fig. 3.
//! * Only packets that bring missing data are progress: not copies, and not packets that go-back-N discards. A mark on these still counts.
//! * Progress is in packets, as in the paper, for messages of any length: packets do not carry the length of their message, so a receiver
//!   cannot know which share has arrived.
//! * The paper leaves `batch` to future work. 100 packets of 1000 bytes take 80 us at 10 Gb/s, not much more than an interval.
//! * Where packets overtake each other, packets of two messages may alternate, and progress restarts with each change.
//!
//! The sum over active flows is kept up to date, so that an average takes the same time for any number of flows, and it is
//! compared as a fraction: nothing is rounded and nothing allocated.

#[cfg(test)]
mod tests;

use super::{
    CongestionFeedback, DataArrival, FeedbackDefinition, IntervalFeedback, IntervalParameters,
    Notify,
};
use crate::congestion::NetworkFacts;
use clearway_units::{Bytes, MessageId, Time};
use std::num::NonZero;

clearway_units::parameters! {
    /// Settings of [`Progress`].
    pub struct ProgressParameters {
        /// Packets to a host after which the average progress of its flows is updated, at least 1 (`B`).
        pub batch: NonZero<u32> = NonZero::new(100).expect("not zero"), "batch", "decision: TMDML §III.C leaves B open";
        with {
            /// Minimum interval between notifications of a flow.
            pub interval: IntervalParameters,
        }
    }
}

/// State that the flows to one host share.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct HostProgress {
    /// Flows of which a message is arriving, and the packets of these messages that have come.
    now: Sum,
    /// The same when the average was taken (`pro_avg`); nothing before the first time.
    average: Sum,
    /// Packets since then.
    since_average: u32,
}

/// A mean as a fraction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Sum {
    packets: u64,
    flows: u64,
}

impl HostProgress {
    #[inline]
    fn on_packet(&mut self, batch: u32) {
        self.now.packets += 1;
        self.since_average += 1;
        if self.since_average >= batch {
            self.since_average = 0;
            self.average = self.now;
        }
    }

    /// True if a flow with so many packets is behind the average.
    #[inline]
    fn is_ahead_of(&self, packets: u64) -> bool {
        packets * self.average.flows < self.average.packets
    }

    fn leave(&mut self, packets: u64) {
        self.now.flows -= 1;
        self.now.packets -= packets;
        if self.now.flows == 0 {
            *self = Self::default();
        }
    }
}

/// Notifies as [`IntervalFeedback`] does, except for flows that fall behind.
#[derive(Debug, Clone, Copy)]
pub struct Progress {
    interval: IntervalFeedback,
    batch: u32,
    /// True while the flow is in the average.
    active: bool,
    /// Message that is arriving, or was the last to arrive.
    message: MessageId,
    /// Packets of that message that have arrived (`pro`).
    packets: u64,
}

impl FeedbackDefinition for Progress {
    const NAME: &'static str = "progress";
    const SUMMARY: &'static str =
        "TMDML-NIC: as interval, but not for flows behind the average of their host";
    type Parameters = ProgressParameters;

    fn new(parameters: &ProgressParameters, network: &NetworkFacts) -> Self {
        Self {
            interval: IntervalFeedback::new(&parameters.interval, network),
            batch: parameters.batch.get(),
            active: false,
            message: MessageId(0),
            packets: 0,
        }
    }
}

impl CongestionFeedback for Progress {
    type Shared = HostProgress;

    #[inline]
    fn on_data(&mut self, host: &mut HostProgress, arrival: &DataArrival) -> Notify {
        // A packet that only closes its flow belongs to no message.
        let has_message = arrival.bytes > Bytes::ZERO || arrival.ends_message;
        if arrival.accepted && has_message {
            self.join(host, arrival.message);
            self.packets += 1;
            host.on_packet(self.batch);
        }
        let is_spared = host.is_ahead_of(self.packets);
        let arrival = DataArrival {
            marked: arrival.marked && !is_spared,
            ..*arrival
        };
        self.interval.on_data(&mut (), &arrival)
    }

    fn on_deadline(&mut self, _: &mut HostProgress, now: Time) -> Notify {
        self.interval.on_deadline(&mut (), now)
    }

    fn on_complete(&mut self, host: &mut HostProgress) {
        if self.active {
            self.active = false;
            host.leave(self.packets);
        }
    }
}

impl Progress {
    /// Takes the flow into the average with `message`, if it is not there with it already.
    #[inline]
    fn join(&mut self, host: &mut HostProgress, message: MessageId) {
        if self.active && message == self.message {
            return;
        }
        if self.active {
            host.now.packets -= self.packets;
        } else {
            host.now.flows += 1;
        }
        self.active = true;
        self.message = message;
        self.packets = 0;
    }
}
