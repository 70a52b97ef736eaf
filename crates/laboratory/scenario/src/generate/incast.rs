//! Incast: many hosts send to one host.

use super::bursts::within;
use super::{BuildContext, Bursts, LoadedWorkload, WorkloadDefinition, chosen_host, some_bytes};
use clearway_units::{
    Bytes, HostId, OmitDefaults, Parameter, RandomStream, Span, Time, Value, ValueDomain, choices,
    parameters,
};
use clearway_workload::{FlowSpec, Workload, WorkloadError};

choices! {
    /// Placement of the senders.
    pub enum SenderPlacement {
        /// Hosts drawn at random among all but the receiver.
        Random = "random",
        /// The hosts with the lowest numbers but for the receiver: in most topologies those nearest to each other.
        First = "first",
    }
}

/// Receiver of an incast.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Receiver {
    /// The first host.
    Auto,
    /// A host drawn at random.
    Random,
    /// The host with this number.
    Host(u32),
}

impl Parameter for Receiver {
    fn expected() -> String {
        format!("{}, \"auto\" or \"random\"", u32::expected())
    }
    fn domain() -> ValueDomain {
        let words = ValueDomain::Words(vec!["auto", "random"]);
        ValueDomain::Either(vec![words, u32::domain()])
    }
    fn from_value(value: &Value) -> Option<Self> {
        match value {
            Value::Text(text) if text == "auto" => Some(Self::Auto),
            Value::Text(text) if text == "random" => Some(Self::Random),
            _ => u32::from_value(value).map(Self::Host),
        }
    }
    fn to_value(&self) -> Value {
        match self {
            Self::Auto => Value::Text("auto".into()),
            Self::Random => Value::Text("random".into()),
            Self::Host(host) => host.to_value(),
        }
    }
}

parameters! {
    /// Several hosts send one message each to one host.
    pub struct IncastSettings {
        /// Number of hosts that send.
        pub senders: u32 = 32, "senders", "the middle of htsim's incasts of 8 to 128";
        /// Receiving host: its number, a host drawn at random ("random"), or host 0 ("auto").
        pub receiver: Receiver = Receiver::Auto, "receiver", "in a symmetric topology any host is as good";
        /// Payload of each message.
        pub message: Bytes = Bytes::new(2_000_000), "message", "as in a permutation";
        /// Earliest start of the first sender, in the first burst if there are several.
        pub start: Time = Time::ZERO, "start", "the start of the run";
        /// Number of senders that start together: sender k, counted from 0, starts `stagger` × floor(k / `group`) after `start`. With
        /// `placement` "first", senders count by host number. "auto": all start together.
        pub group: Option<u32> = None, "group", "all at once is the hardest case";
        /// Time between the starts of two groups.
        pub stagger: Span = Span::ZERO, "stagger", "all at once is the hardest case; Snyder, §3.3.4: 16 or 96 senders, two every 20 us";
        /// Time after `start` within which each message starts at a random instant; zero starts all at once.
        pub spread: Span = Span::ZERO, "spread", "all at once is the hardest case";
        /// Placement of the senders.
        pub placement: SenderPlacement = SenderPlacement::Random, "placement", "senders all over the fabric";
        with {
            /// Repetition.
            pub bursts: OmitDefaults<Bursts>,
        }
    }
}

impl WorkloadDefinition for IncastSettings {
    const NAME: &'static str = "incast";
    const SUMMARY: &'static str = "many hosts send to one";

    fn load(&self, context: &BuildContext<'_>) -> Result<LoadedWorkload, WorkloadError> {
        let others = self.check_hosts(context)?;
        let last = self.bursts.check::<Self>(self.start, self.senders)?;
        let last_group = self.check_groups(last)?;
        if last_group.saturating_add(self.spread).is_never() {
            let message = format!(
                "{} after {last_group} is beyond the longest run",
                self.spread
            );
            return Err(Self::fault("spread", message, "choose a shorter spread"));
        }
        let bytes = some_bytes::<Self>(self.message)?;
        let mut hosts = Hosts::new(others);
        let mut of_section = context.random();
        let (mut receiver, mut senders) = (0, Vec::new());
        let mut flows = Vec::new();
        for mut burst in self.bursts.each(self.start, context) {
            let is_first = burst.number == 0;
            if is_first || self.bursts.redraw {
                receiver = self.receiver(others, &mut burst.random);
                senders = match (is_first, self.placement) {
                    (_, SenderPlacement::First) => hosts.first(self.senders),
                    (true, SenderPlacement::Random) => {
                        hosts.shuffled(self.senders, &mut of_section)
                    }
                    (false, SenderPlacement::Random) => {
                        hosts.drawn(self.senders, &mut burst.random)
                    }
                };
            }
            let label = burst.first_label(self.senders);
            let random = match is_first {
                true => &mut of_section,
                false => &mut burst.random,
            };
            flows.extend((0u32..).zip(&senders).map(|(index, &sender)| {
                let start = burst.start + self.behind(index) + within(self.spread, random);
                let sender = sender + u32::from(sender >= receiver);
                let ends = (HostId(sender), HostId(receiver));
                FlowSpec::timed(label + u64::from(index), ends.0, ends.1, bytes, start)
            }));
        }
        let is_drawn =
            self.placement == SenderPlacement::Random || self.receiver == Receiver::Random;
        let workload = Workload {
            flows,
            triggers: Vec::new(),
        };
        Ok(LoadedWorkload {
            setting_warnings: self.bursts.warnings("incast", is_drawn),
            ..workload.into()
        })
    }
}

impl IncastSettings {
    /// Checks the hosts. Returns the number of hosts that can send.
    fn check_hosts(&self, context: &BuildContext<'_>) -> Result<u32, WorkloadError> {
        let named = match self.receiver {
            Receiver::Host(host) => Some(host),
            Receiver::Auto | Receiver::Random => None,
        };
        chosen_host::<Self>("receiver", named, 0, context)?;
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
        Ok(others)
    }

    /// Receiving host of a burst.
    fn receiver(&self, others: u32, random: &mut RandomStream) -> u32 {
        match self.receiver {
            Receiver::Auto => 0,
            Receiver::Host(host) => host,
            Receiver::Random => random.below(others + 1),
        }
    }

    /// Checks the groups of a burst that starts at `start`. Returns the start of the last group.
    fn check_groups(&self, start: Time) -> Result<Time, WorkloadError> {
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
        let last = behind.map(|behind| start.saturating_add(Span::from_ps(behind)));
        last.filter(|last| !last.is_never()).ok_or_else(|| {
            let message = format!(
                "{groups} groups, each {} after the one before, go beyond the longest run",
                self.stagger
            );
            Self::fault("stagger", message, "choose a shorter stagger")
        })
    }

    /// Delay from the start of the first group to the start of sender `index`.
    fn behind(&self, index: u32) -> Span {
        self.stagger * self.group.map_or(0, |group| u64::from(index / group))
    }
}

/// Hosts from which senders are drawn. Their numbers do not count the receiver.
struct Hosts(Vec<u32>);

impl Hosts {
    fn new(count: u32) -> Self {
        Self((0..count).collect())
    }

    /// The `count` lowest hosts.
    fn first(&self, count: u32) -> Vec<u32> {
        self.0[..count as usize].to_vec()
    }

    /// The first `count` hosts after a shuffle of all hosts.
    fn shuffled(&self, count: u32, random: &mut RandomStream) -> Vec<u32> {
        let mut hosts = self.0.clone();
        random.shuffle(&mut hosts);
        hosts.truncate(count as usize);
        hosts
    }

    /// `count` hosts, uniformly and in random order. The time depends only on `count`, so thousands of small bursts among a hundred
    /// thousand hosts are fast.
    fn drawn(&mut self, count: u32, random: &mut RandomStream) -> Vec<u32> {
        let hosts = self.0.len() as u32;
        let swap = |place| (place, place + random.below(hosts - place));
        let swaps: Vec<(u32, u32)> = (0..count).map(swap).collect();
        for &(a, b) in &swaps {
            self.0.swap(a as usize, b as usize);
        }
        let drawn = self.first(count);
        // Undoes the swaps, so that no draw depends on earlier draws.
        for &(a, b) in swaps.iter().rev() {
            self.0.swap(a as usize, b as usize);
        }
        drawn
    }
}
