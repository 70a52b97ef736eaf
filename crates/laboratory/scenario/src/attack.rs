//! Keys `attack.*` of a workload section: the hosts that take more than their share, and their method.

use crate::error::ScenarioError;
use crate::limits::LONGEST;
use clearway_transport::congestion::{ControllerSettings, NetworkFacts};
use clearway_transport::{Misbehaviour, MisbehaviourError, Profile};
use clearway_units::{
    Bytes, HostId, OmitDefaults, Parameter, Purpose, RandomStream, RelativeSize, Span, Time, Value,
    ValueDomain,
};
use clearway_workload::{Attack, AttackFault, AttackKind, FlowSpec, Workload};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fmt;
use std::num::NonZero;

/// Hosts by their numbers: all, or ranges such as `0-3,8`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HostSet {
    /// All hosts.
    All,
    /// Ranges of hosts, including both ends, ascending and without overlap.
    Ranges(Vec<(u32, u32)>),
}

impl HostSet {
    /// Reads `all`, or ranges and numbers separated by commas.
    fn read(text: &str) -> Option<Self> {
        if text.trim() == "all" {
            return Some(Self::All);
        }
        let range = |part: &str| {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let range: (u32, u32) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
            (range.0 <= range.1).then_some(range)
        };
        Self::from_ranges(text.split(',').map(range).collect::<Option<_>>()?)
    }

    fn from_ranges(mut ranges: Vec<(u32, u32)>) -> Option<Self> {
        ranges.sort_unstable();
        let apart = ranges.windows(2).all(|pair| pair[0].1 < pair[1].0);
        (apart && !ranges.is_empty()).then_some(Self::Ranges(ranges))
    }

    /// The highest named host.
    pub fn highest(&self) -> Option<u32> {
        match self {
            Self::All => None,
            Self::Ranges(ranges) => ranges.last().map(|&(_, last)| last),
        }
    }

    /// True if the set contains `host`.
    pub fn contains(&self, host: u32) -> bool {
        match self {
            Self::All => true,
            Self::Ranges(ranges) => {
                let mut ranges = ranges.iter();
                ranges.any(|&(first, last)| (first..=last).contains(&host))
            }
        }
    }

    /// The hosts of this set in a network of `hosts` hosts, ascending; an error with a named host that does not exist.
    fn among(&self, hosts: u32) -> Result<Vec<HostId>, u32> {
        match self {
            Self::All => Ok((0..hosts).map(HostId).collect()),
            Self::Ranges(ranges) => match ranges.last() {
                Some(&(_, last)) if last >= hosts => Err(last),
                _ => {
                    let all = ranges.iter().flat_map(|&(first, last)| first..=last);
                    Ok(all.map(HostId).collect())
                }
            },
        }
    }
}

impl fmt::Display for HostSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self::Ranges(ranges) = self else {
            return f.write_str("all");
        };
        for (place, (first, last)) in ranges.iter().enumerate() {
            f.write_str(if place == 0 { "" } else { "," })?;
            match first == last {
                true => write!(f, "{first}")?,
                false => write!(f, "{first}-{last}")?,
            }
        }
        Ok(())
    }
}

impl Parameter for HostSet {
    fn expected() -> String {
        "\"all\", hosts such as \"0-3,8\", or a list of their numbers".into()
    }
    fn domain() -> ValueDomain {
        let host = ValueDomain::Whole {
            least: 0,
            most: u32::MAX.into(),
        };
        ValueDomain::Either(vec![host.clone(), host.list()]).or_word("all")
    }
    fn from_value(value: &Value) -> Option<Self> {
        let single = |value: &Value| u32::from_value(value).map(|host| (host, host));
        match value {
            Value::Text(text) => Self::read(text),
            Value::List(values) => {
                Self::from_ranges(values.iter().map(single).collect::<Option<_>>()?)
            }
            value => Self::from_ranges(vec![single(value)?]),
        }
    }
    fn to_value(&self) -> Value {
        Value::Text(self.to_string())
    }
}

clearway_units::parameters! {
    /// Keys of an attack by flows of a workload section.
    pub struct AttackKeys {
        /// Attack on congestion control by the flows of some hosts: several queue pairs or receivers instead of one, at once or one after
        /// another.
        pub kind: AttackKind = AttackKind::None, "attack.kind", "Dissertation §3.5";
        /// Hosts that attack.
        pub hosts: HostSet = HostSet::All, "attack.hosts", "decision: all";
        /// Share of the flows of `attack.hosts` that take part in the attack, drawn at random, 0 to 1.
        pub share: f64 = 1.0, "attack.share", "decision: all";
        /// Bytes that a queue pair sends before the next one takes over, or that each parallel queue pair sends. "auto": "1bdp", or
        /// "25%bdp" for short flows.
        pub bytes: Option<RelativeSize> = None, "attack.bytes", "Dissertation §3.5.2: what leaves before the first feedback";
        /// Number of parallel queue pairs of an attack. "auto": as many as `attack.bytes` gives, or one to each host for a fan-out.
        pub queue_pairs: Option<NonZero<u32>> = None, "attack.qps", "Dissertation §3.5.1";
        /// Time from the start of one queue pair to the next. "auto": the unloaded round trip, or for short flows the time to send one.
        pub gap: Option<Span> = None, "attack.gap", "Dissertation §3.5.2: a new queue pair each round trip";
        /// Size up to which messages are left unchanged. "auto": `attack.bytes`, or zero if the attack sends messages whole.
        pub above: Option<RelativeSize> = None, "attack.above", "Dissertation §3.6.2: 1 MB in its parallel attack";
        with {
            /// Keys of the attacks that send messages whole.
            pub whole: OmitDefaults<WholeKeys>,
        }
    }
}

clearway_units::parameters! {
    /// Keys of the attacks that send messages whole.
    pub struct WholeKeys {
        /// Receiver of an incast, as the number of a host. "auto": the receiver of most messages of hosts that do not attack.
        pub target: Option<u32> = None, "attack.target", "decision: whoever can be harmed most";
        /// Start of a pause storm, from the start of the simulation.
        pub from: Time = Time::ZERO, "attack.from", "decision: at once";
        /// Duration of a pause storm.
        pub lasts: Span = Span::from_us(1000), "attack.lasts", "decision: 1 ms, much less than a switch's watchdog waits (SONiC: 200 ms)";
        /// Rule that misbehaving NICs break. "auto": the rate that links allocate, or else the allowance of the controller.
        pub breaks: Option<Misbehaviour> = None, "attack.breaks", "decision: the gravest misbehaviour of each transport";
    }
}

/// Facts of a run that an attack needs.
#[derive(Debug, Clone, Copy)]
pub struct AttackContext<'a> {
    /// The network, as the section's transport sees it.
    pub network: &'a NetworkFacts,
    /// Number of hosts.
    pub hosts: u32,
    /// Seed of the run, and number of the section.
    pub drawn: (u64, u32),
    /// Receiver of most messages of the hosts that do not attack; `None` if these hosts send none.
    pub busiest: Option<HostId>,
    /// Controller variant of the NICs that disobey.
    pub variant: u16,
}

impl AttackKeys {
    /// True if the section attacks.
    pub fn is_on(&self) -> bool {
        self.kind != AttackKind::None
    }

    /// True if the NICs of attackers disobey.
    pub fn disobeys(&self) -> bool {
        self.kind == AttackKind::Disobey
    }

    /// Start and end of a pause storm.
    ///
    /// # Errors
    /// If the storm has no duration, if it ends too late, or if the attack has a share below 1.
    pub(crate) fn storm(&self) -> Result<(Time, Time), ScenarioError> {
        let (begin, lasts) = (self.whole.from, self.whole.lasts);
        let end = begin.saturating_add(lasts);
        let fault = |message: String, fix: String| {
            Err(ScenarioError::about(
                &["attack.lasts", "attack.from"],
                message,
                fix,
            ))
        };
        if lasts.is_zero() {
            return fault(
                "a pause storm that takes no time".into(),
                "give `attack.lasts` a time such as \"1ms\"".into(),
            );
        }
        if end > Time::ZERO + LONGEST {
            return fault(
                "a pause storm that ends too late".into(),
                format!("let it end within {LONGEST} (30 days)"),
            );
        }
        if self.share < 1.0 {
            return Err(ScenarioError::about(
                &["attack.share", "attack.kind"],
                "a pause storm of a share of the messages",
                "remove `attack.share`: a NIC pauses all traffic to it, or none",
            ));
        }
        Ok((begin, end))
    }

    /// Controller settings of NICs that disobey; honest NICs have `own`.
    ///
    /// # Errors
    /// If the transport does not have the rule to break.
    pub fn misbehaving(
        &self,
        profile: &Profile,
        own: &ControllerSettings,
    ) -> Result<ControllerSettings, ScenarioError> {
        let misbehaviour = self
            .whole
            .breaks
            .unwrap_or(Profile::usual_misbehaviour(own));
        profile.misbehaving(own, misbehaviour).map_err(|fault| {
            let (reason, fix) = match fault {
                MisbehaviourError::NoAllocation => (
                    "links allocate no rates to its flows",
                    "set `attack.breaks = \"marks\"`, or use `transport.kind` = \"s-perc\" or \"1rc\"",
                ),
                MisbehaviourError::Allocation => (
                    "links allocate the rates of its flows",
                    "set `attack.breaks` to \"rate\", \"leaving\" or, with weights, \"weight\"",
                ),
                MisbehaviourError::NoWeights => (
                    "its flows have no weights",
                    "set `transport.weights = true` or `transport.scope = \"host\"`, or break another rule",
                ),
                MisbehaviourError::NoControl => (
                    "it controls nothing",
                    "use a transport with congestion control",
                ),
            };
            let name = own.name();
            ScenarioError::about(
                &["attack.breaks", "attack.kind"],
                format!(
                    "`attack.breaks` = \"{}\": a transport with the controller \"{name}\" has no such rule, since {reason}",
                    misbehaviour.name()
                ),
                fix,
            )
        })
    }

    /// True if the attack needs the victims' busiest receiver.
    pub fn needs_busiest(&self) -> bool {
        self.kind == AttackKind::Incast && self.whole.target.is_none()
    }

    /// True if an attacking host sends `flow`.
    fn is_of_attacker(&self, flow: &FlowSpec) -> bool {
        self.is_on() && self.hosts.contains(flow.src.0)
    }

    /// Receiver of most messages of the hosts that do not attack, in sections with these keys; in a tie the host with the lowest number.
    pub fn busiest_receiver<'a>(
        sections: impl IntoIterator<Item = (&'a Self, &'a [FlowSpec])>,
    ) -> Option<HostId> {
        let mut messages: BTreeMap<HostId, u64> = BTreeMap::new();
        for (keys, flows) in sections {
            let victims = flows.iter().filter(|flow| !keys.is_of_attacker(flow));
            victims.for_each(|flow| *messages.entry(flow.dst).or_default() += 1);
        }
        let busiest = messages
            .iter()
            .max_by_key(|(host, count)| (**count, Reverse(**host)));
        busiest.map(|(host, _)| *host)
    }

    /// The traffic of a section, changed by its attack.
    ///
    /// # Errors
    /// If the attack does not fit the network or the traffic.
    pub fn apply(
        &self,
        workload: Workload,
        context: &AttackContext<'_>,
    ) -> Result<Workload, ScenarioError> {
        let (network, hosts) = (context.network, context.hosts);
        let bytes = self
            .bytes
            .unwrap_or(RelativeSize::percent_of_bdp(match self.kind {
                AttackKind::ShortFlows => SHORT_PERCENT,
                _ => 100,
            }));
        let bytes = network.size(bytes);
        if bytes.as_u64() == 0 {
            return Err(ScenarioError::about(
                &["attack.bytes"],
                "queue pairs that send nothing",
                "give a size such as \"1bdp\" or \"150KB\"",
            ));
        }
        if !(0.0..=1.0).contains(&self.share) {
            return Err(ScenarioError::about(
                &["attack.share"],
                format!("a share of {}", self.share),
                "give a number from 0 to 1",
            ));
        }
        let attackers = self.hosts.among(hosts).map_err(|host| {
            ScenarioError::about(
                &["attack.hosts"],
                format!("there is no host {host}: the topology has {hosts}, from 0 on"),
                format!("name hosts up to {}", hosts.saturating_sub(1)),
            )
        })?;
        let usual_above = match self.kind.divides() {
            true => bytes,
            false => Bytes::ZERO,
        };
        let usual_gap = match self.kind {
            AttackKind::ShortFlows => time_to_send(bytes, network),
            _ => network.base_rtt,
        };
        let attack = Attack {
            kind: self.kind,
            hosts: attackers,
            share: self.share,
            above: self.above.map_or(usual_above, |size| network.size(size)),
            bytes,
            queue_pairs: self.queue_pairs.map(NonZero::get),
            gap: self.gap.unwrap_or(usual_gap),
            target: self.target(context)?,
            variant: context.variant,
        };
        let (seed, section) = context.drawn;
        let mut random = RandomStream::new(seed, Purpose::Attack, section.into());
        attack.apply(workload, &mut random).map_err(error_of)
    }

    /// Receiver of an incast; an arbitrary host for other attacks.
    fn target(&self, context: &AttackContext<'_>) -> Result<HostId, ScenarioError> {
        if self.kind != AttackKind::Incast {
            return Ok(HostId(0));
        }
        let hosts = context.hosts;
        match self.whole.target {
            Some(target) if target >= hosts => Err(ScenarioError::about(
                &["attack.target"],
                format!("there is no host {target}: the topology has {hosts}, from 0 on"),
                format!("name one up to {}", hosts.saturating_sub(1)),
            )),
            Some(target) => Ok(HostId(target)),
            None => context.busiest.ok_or_else(|| {
                ScenarioError::about(
                    &["attack.target", "attack.kind"],
                    "only the attackers send flows: no other flow has a receiver to attack",
                    "name a receiver by `attack.target`",
                )
            }),
        }
    }
}

/// Size of a short flow in percent of the bandwidth-delay product. The sender has sent such a flow completely three quarters of a round
/// trip before the first feedback. Smaller flows take more queue pairs per message, and more of their last packets are partly filled.
const SHORT_PERCENT: u64 = 25;

/// Time that a host's link takes to send a flow, with headers.
fn time_to_send(bytes: Bytes, network: &NetworkFacts) -> Span {
    let packets = bytes.as_u64().div_ceil(u64::from(network.payload.max(1)));
    let headers = packets.saturating_mul(network.header.into());
    let wire = bytes.as_u64().saturating_add(headers);
    network.line_rate.span_of(Bytes::new(wire))
}

/// Error about an attack by a section whose flows belong to jobs.
pub(crate) fn attack_of_jobs() -> ScenarioError {
    ScenarioError::about(
        &["attack.kind"],
        "a section of jobs cannot attack: messages of a job wait for each other",
        "attack with flows of a section without jobs, or give `transport.qps` more queue pairs",
    )
}

fn error_of(fault: AttackFault) -> ScenarioError {
    match fault {
        AttackFault::Dependent { label } => ScenarioError::about(
            &["attack.kind"],
            format!(
                "flow {label} of an attacker waits for other flows, or other flows wait for it"
            ),
            "attack with flows that start at a fixed time: from other hosts, or in a separate section",
        ),
        AttackFault::TooFewHosts { hosts } => ScenarioError::about(
            &["attack.hosts", "attack.kind"],
            format!("an overlay or a fan-out of {hosts} hosts has no pairs to change between"),
            "let at least three hosts attack",
        ),
        AttackFault::Nothing => ScenarioError::about(
            &["attack.above", "attack.hosts", "attack.kind"],
            "no message is part of the attack: the attackers send no message larger than `attack.above`; in an overlay or a fan-out they send no message to each other; in an incast no attacker but the receiver sends",
            "let hosts attack that send larger messages, or give a smaller `attack.bytes`",
        ),
        AttackFault::TooManyPieces => ScenarioError::about(
            &["attack.bytes", "attack.qps", "attack.kind"],
            format!(
                "an attack with more than {} queue pairs",
                Attack::MOST_PIECES
            ),
            "give more bytes to each",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clearway_transport::congestion::PathFacts;
    use clearway_units::{ParameterSet as _, Rate, Time};
    use clearway_workload::Start;

    #[test]
    fn host_sets_are_read_and_written() {
        for (text, written) in [
            ("all", "all"),
            ("3", "3"),
            ("8, 0-3", "0-3,8"),
            ("0-0", "0"),
        ] {
            let set = HostSet::from_value(&Value::Text(text.into())).unwrap();
            assert_eq!(set.to_value(), Value::Text(written.into()));
            assert_eq!(HostSet::from_value(&set.to_value()), Some(set));
        }
        for wrong in ["", "3-1", "0-3,3", "x", "1-2-3", "-1"] {
            assert_eq!(
                HostSet::from_value(&Value::Text(wrong.into())),
                None,
                "{wrong}"
            );
        }
        let list = Value::List(vec![Value::Integer(2), Value::Integer(0)]);
        let set = HostSet::from_value(&list).unwrap();
        assert_eq!(set.among(3), Ok(vec![HostId(0), HostId(2)]));
        assert_eq!(set.among(2), Err(2));
        assert_eq!(HostSet::All.among(2), Ok(vec![HostId(0), HostId(1)]));
    }

    fn network() -> NetworkFacts {
        NetworkFacts {
            line_rate: Rate::from_gbps(100),
            base_rtt: Span::from_us(8),
            propagation_rtt: Span::from_us(7),
            bdp: Bytes::new(100_000),
            payload: 1000,
            header: 50,
            ack: 60,
            path: PathFacts {
                rtt: Span::from_us(8),
                switches: 1,
            },
        }
    }

    fn flow(label: u64, src: u32, dst: u32, bytes: u64) -> FlowSpec {
        FlowSpec::timed(
            label,
            HostId(src),
            HostId(dst),
            Bytes::new(bytes),
            Time::ZERO,
        )
    }

    fn keys(settings: &[(&str, Value)]) -> AttackKeys {
        let mut keys = AttackKeys::default();
        for (key, value) in settings {
            keys.set(key, value).unwrap();
        }
        keys
    }

    fn text(text: &str) -> Value {
        Value::Text(text.into())
    }

    fn run(keys: &AttackKeys, flows: Vec<FlowSpec>) -> Result<Vec<FlowSpec>, ScenarioError> {
        let sections = [(keys, &flows[..])];
        let busiest = AttackKeys::busiest_receiver(sections);
        let context = AttackContext {
            network: &network(),
            hosts: 10,
            drawn: (1, 0),
            busiest,
            variant: 1,
        };
        let workload = Workload {
            flows,
            triggers: Vec::new(),
        };
        keys.apply(workload, &context)
            .map(|workload| workload.flows)
    }

    #[test]
    fn short_flows_are_a_quarter_and_keep_line_rate() {
        let short = keys(&[("attack.kind", text("short-flows"))]);
        let flows = run(&short, vec![flow(1, 0, 1, 60_000)]).unwrap();
        let pieces: Vec<_> = flows
            .iter()
            .map(|flow| (flow.bytes.as_u64(), flow.start))
            .collect();
        // 25 packets of 1050 B at 100 Gb/s.
        let at = |ns| Start::At(Time::ZERO + Span::from_ns(ns));
        assert_eq!(
            pieces,
            [(25_000, at(0)), (25_000, at(2100)), (10_000, at(4200))]
        );
        let usual = keys(&[("attack.kind", text("staggered"))]);
        let flows = run(&usual, vec![flow(1, 0, 1, 150_000)]).unwrap();
        let pieces: Vec<_> = flows
            .iter()
            .map(|flow| (flow.bytes.as_u64(), flow.start))
            .collect();
        assert_eq!(pieces, [(100_000, at(0)), (50_000, at(8000))]);
    }

    #[test]
    fn incasts_aim_at_the_receiver_of_most_messages_of_others() {
        let flows = vec![
            flow(1, 0, 9, 5000),
            flow(2, 1, 9, 5000),
            flow(3, 1, 9, 5000),
            flow(4, 5, 8, 5000),
            flow(5, 5, 7, 5000),
            flow(6, 6, 7, 5000),
            flow(7, 6, 8, 5000),
        ];
        let targets = |settings: &[(&str, Value)]| {
            let incast = [
                ("attack.kind", text("incast")),
                ("attack.hosts", text("0-1")),
            ];
            let incast = keys(&[&incast[..], settings].concat());
            let flows = run(&incast, flows.clone())?;
            let pieces = flows.iter().filter(|flow| flow.attack.is_some());
            let targets: Vec<u32> = pieces.map(|flow| flow.dst.0).collect();
            Ok::<_, ScenarioError>(targets)
        };
        assert_eq!(
            targets(&[]).unwrap(),
            [7, 7, 7],
            "the lower of two that are equal"
        );
        let given = ("attack.target", Value::Integer(3));
        assert_eq!(targets(&[given]).unwrap(), [3, 3, 3], "small messages too");
        let none = targets(&[("attack.target", Value::Integer(10))]).unwrap_err();
        assert!(
            none.message.contains("there is no host 10"),
            "{}",
            none.message
        );
        let alone = keys(&[("attack.kind", text("incast"))]);
        let nobody = run(&alone, flows.clone()).unwrap_err();
        assert_eq!(nobody.fix, "name a receiver by `attack.target`");
    }
}
