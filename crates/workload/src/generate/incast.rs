//! Many hosts send to one.

use super::{BuildContext, LoadedWorkload, WorkloadDefinition, chosen_host, some_bytes};
use crate::{FlowSpec, Workload, WorkloadError};
use clearway_units::{Bytes, HostId, RandomStream, Span, Time, choices, parameters};

choices! {
    /// Which hosts send.
    pub enum Placement {
        /// Hosts drawn at random among all but the receiver.
        Random = "random",
        /// The hosts with the lowest numbers but for the receiver: in most topologies those nearest to each other.
        First = "first",
    }
}

parameters! {
    /// Several hosts send one message each to one host.
    pub struct IncastSettings {
        /// How many hosts send.
        pub senders: u32 = 32, "senders", "the middle of htsim's incasts of 8 to 128";
        /// The host that receives; host 0 if "auto".
        pub receiver: Option<u32> = None, "receiver", "in a symmetric topology any host is as good";
        /// Payload of each message.
        pub message: Bytes = Bytes::new(2_000_000), "message", "as in a permutation";
        /// When the first of them may start.
        pub start: Time = Time::ZERO, "start", "the start of the run";
        /// Each message starts at a random instant within this time after `start`; zero starts all at once.
        pub spread: Span = Span::ZERO, "spread", "all at once is the hardest case";
        /// Which hosts send.
        pub placement: Placement = Placement::Random, "placement", "senders all over the fabric";
    }
}

impl WorkloadDefinition for IncastSettings {
    const NAME: &'static str = "incast";
    const SUMMARY: &'static str = "many hosts send to one";

    fn load(&self, context: &BuildContext<'_>) -> Result<LoadedWorkload, WorkloadError> {
        let receiver = chosen_host::<Self>("receiver", self.receiver, 0, context)?;
        let others = context.hosts - 1;
        if self.senders == 0 || self.senders > others {
            let message = format!(
                "{} senders, but {others} hosts are there to send",
                self.senders
            );
            let fix = match others {
                0 => "give the topology more hosts".to_owned(),
                _ => format!("write a number from 1 to {others}"),
            };
            return Err(Self::fault("senders", message, fix));
        }
        if self.start.saturating_add(self.spread).is_never() {
            let message = format!(
                "{} after {} is beyond the longest run",
                self.spread, self.start
            );
            return Err(Self::fault("spread", message, "choose a shorter spread"));
        }
        let bytes = some_bytes::<Self>(self.message)?;
        let mut random = context.random();
        let senders = self.senders(receiver, others, &mut random);
        let flow = |(label, sender)| {
            let start = self.start + within(self.spread, &mut random);
            let ends = (HostId(sender), HostId(receiver));
            FlowSpec::timed(label, ends.0, ends.1, bytes, start)
        };
        let workload = Workload {
            flows: (1..).zip(senders).map(flow).collect(),
            triggers: Vec::new(),
        };
        Ok(workload.into())
    }
}

impl IncastSettings {
    /// The first `senders` of the `others`, in their order or shuffled.
    fn senders(&self, receiver: u32, others: u32, random: &mut RandomStream) -> Vec<u32> {
        let mut hosts: Vec<u32> = (0..=others).filter(|&host| host != receiver).collect();
        match self.placement {
            Placement::First => {}
            Placement::Random => random.shuffle(&mut hosts),
        }
        hosts.truncate(self.senders as usize);
        hosts
    }
}

/// A uniform picosecond of `0..=spread`; the bias is below 2^-64.
fn within(spread: Span, random: &mut RandomStream) -> Span {
    let instants = u128::from(spread.as_ps()) + 1;
    Span::from_ps(((u128::from(random.next_u64()) * instants) >> 64) as u64)
}
