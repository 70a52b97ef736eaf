//! Many hosts send to one.

use super::{BuildContext, LoadedWorkload, WorkloadDefinition, chosen_host, some_bytes};
use clearway_units::{Bytes, HostId, RandomStream, Span, Time, choices, parameters};
use clearway_workload::{FlowSpec, Workload, WorkloadError};

choices! {
    /// Placement of the senders.
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
        /// Number of hosts that send.
        pub senders: u32 = 32, "senders", "the middle of htsim's incasts of 8 to 128";
        /// The host that receives; host 0 if "auto".
        pub receiver: Option<u32> = None, "receiver", "in a symmetric topology any host is as good";
        /// Payload of each message.
        pub message: Bytes = Bytes::new(2_000_000), "message", "as in a permutation";
        /// Earliest start of the first sender.
        pub start: Time = Time::ZERO, "start", "the start of the run";
        /// Number of senders that start together: sender k, counted from 0, starts `stagger` times k / `group`, rounded down, after
        /// `start`. With `placement` "first" senders count in the order of their host numbers. "auto": all start together.
        pub group: Option<u32> = None, "group", "all at once is the hardest case";
        /// Time from the start of one group to that of the next.
        pub stagger: Span = Span::ZERO, "stagger", "all at once is the hardest case; Snyder, §3.3.4: 16 or 96 senders, two every 20 us";
        /// Each message starts at a random instant within this time after `start`; zero starts all at once.
        pub spread: Span = Span::ZERO, "spread", "all at once is the hardest case";
        /// Placement of the senders.
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
        let last_group = self.check_groups()?;
        if last_group.saturating_add(self.spread).is_never() {
            let message = format!(
                "{} after {last_group} is beyond the longest run",
                self.spread
            );
            return Err(Self::fault("spread", message, "choose a shorter spread"));
        }
        let bytes = some_bytes::<Self>(self.message)?;
        let mut random = context.random();
        let senders = self.senders(receiver, others, &mut random);
        let flow = |(index, sender): (u32, u32)| {
            let start = self.start + self.behind(index) + within(self.spread, &mut random);
            let ends = (HostId(sender), HostId(receiver));
            FlowSpec::timed(u64::from(index) + 1, ends.0, ends.1, bytes, start)
        };
        let workload = Workload {
            flows: (0..).zip(senders).map(flow).collect(),
            triggers: Vec::new(),
        };
        Ok(workload.into())
    }
}

impl IncastSettings {
    /// Checks the groups. Returns the start of the last one.
    fn check_groups(&self) -> Result<Time, WorkloadError> {
        let groups = match self.group {
            Some(0) => {
                let fix = "write how many senders start together, or \"auto\" for all";
                return Err(Self::fault("group", "a group of no senders", fix));
            }
            None if !self.stagger.is_zero() => {
                let message = format!(
                    "all senders are one group, so none is {} later",
                    self.stagger
                );
                let fix = "write how many senders start together, as in 2";
                return Err(Self::fault("group", message, fix));
            }
            None => 1,
            Some(group) => self.senders.div_ceil(group),
        };
        let behind = self.stagger.as_ps().checked_mul(u64::from(groups - 1));
        let last = behind.map(|behind| self.start.saturating_add(Span::from_ps(behind)));
        last.filter(|last| !last.is_never()).ok_or_else(|| {
            let message = format!(
                "{groups} groups, each {} after the one before, go beyond the longest run",
                self.stagger
            );
            Self::fault("stagger", message, "choose a shorter stagger")
        })
    }

    /// Delay of the start of sender `index` after that of the first group.
    fn behind(&self, index: u32) -> Span {
        self.stagger * self.group.map_or(0, |group| u64::from(index / group))
    }

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
