//! Keys `attack.*` of a workload section: which of its hosts take more than their share, and how.

use crate::error::ScenarioError;
use clearway_transport::cc::NetworkFacts;
use clearway_units::{
    HostId, Parameter, Purpose, RandomStream, RelativeSize, Span, Value, ValueDomain,
};
use clearway_workload::{Attack, AttackFault, AttackKind, Workload};
use std::fmt;
use std::num::NonZero;

/// Hosts by their numbers: all, or ranges such as `0-3,8`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HostSet {
    /// All hosts.
    All,
    /// Ranges of hosts, both ends included, each first number above the last of the range before.
    Ranges(Vec<(u32, u32)>),
}

impl HostSet {
    /// Reads `all`, or ranges and numbers parted by commas.
    fn read(text: &str) -> Option<Self> {
        if text.trim() == "all" {
            return Some(Self::All);
        }
        let range = |part: &str| {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let range: (u32, u32) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
            (range.0 <= range.1).then_some(range)
        };
        Self::of(text.split(',').map(range).collect::<Option<_>>()?)
    }

    fn of(mut ranges: Vec<(u32, u32)>) -> Option<Self> {
        ranges.sort_unstable();
        let apart = ranges.windows(2).all(|pair| pair[0].1 < pair[1].0);
        (apart && !ranges.is_empty()).then_some(Self::Ranges(ranges))
    }

    /// The highest host that is named.
    pub fn highest(&self) -> Option<u32> {
        match self {
            Self::All => None,
            Self::Ranges(ranges) => ranges.last().map(|&(_, last)| last),
        }
    }

    /// True of a host of the set.
    pub fn contains(&self, host: u32) -> bool {
        match self {
            Self::All => true,
            Self::Ranges(ranges) => {
                let mut ranges = ranges.iter();
                ranges.any(|&(first, last)| (first..=last).contains(&host))
            }
        }
    }

    /// The hosts of this set among so many, ascending; an error if it names another one.
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
            Value::List(values) => Self::of(values.iter().map(single).collect::<Option<_>>()?),
            value => Self::of(vec![single(value)?]),
        }
    }
    fn to_value(&self) -> Value {
        Value::Text(self.to_string())
    }
}

clearway_units::parameters! {
    /// Keys of an attack by flows of a workload section.
    pub struct AttackKeys {
        /// Attack on congestion control by the flows of some hosts: more queue pairs than one, at once or one after another.
        pub kind: AttackKind = AttackKind::None, "attack.kind", "Dissertation §3.5";
        /// Hosts that attack.
        pub hosts: HostSet = HostSet::All, "attack.hosts", "decision: all";
        /// Share of the flows of these hosts that are part of the attack, drawn at random, 0 to 1.
        pub share: f64 = 1.0, "attack.share", "decision: all";
        /// Bytes of a queue pair before the next one takes over, or of each that sends at once.
        pub bytes: RelativeSize = RelativeSize::percent_of_bdp(100), "attack.bytes", "Dissertation §3.5.2: what leaves before the first feedback";
        /// Number of queue pairs of a parallel attack; "auto": as many as `attack.bytes` makes.
        pub queue_pairs: Option<NonZero<u32>> = None, "attack.qps", "Dissertation §3.5.1";
        /// Time between the starts of two queue pairs of a staggered attack or an overlay; "auto": the unloaded round trip.
        pub gap: Option<Span> = None, "attack.gap", "Dissertation §3.5.2: a new queue pair each round trip";
        /// Messages of at most so many bytes are left as they are; "auto": `attack.bytes`.
        pub above: Option<RelativeSize> = None, "attack.above", "Dissertation §3.6.2: 1 MB in its parallel attack";
    }
}

impl AttackKeys {
    /// True if there is an attack.
    pub fn is_on(&self) -> bool {
        self.kind != AttackKind::None
    }

    /// The traffic of a section with its attack, on a network of so many hosts.
    ///
    /// # Errors
    /// If the attack does not fit the network or the traffic.
    pub fn apply(
        &self,
        workload: Workload,
        network: &NetworkFacts,
        hosts: u32,
        (seed, section): (u64, u32),
    ) -> Result<Workload, ScenarioError> {
        let bytes = self.bytes.resolve(network.bdp);
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
        let attack = Attack {
            kind: self.kind,
            hosts: attackers,
            share: self.share,
            above: self.above.map_or(bytes, |size| size.resolve(network.bdp)),
            bytes,
            queue_pairs: self.queue_pairs.map(NonZero::get),
            gap: self.gap.unwrap_or(network.base_rtt),
        };
        let mut random = RandomStream::new(seed, Purpose::Attack, section.into());
        attack.apply(workload, &mut random).map_err(error_of)
    }
}

/// Error of an attack by a section whose flows belong to jobs.
pub(crate) fn attack_of_jobs() -> ScenarioError {
    ScenarioError::about(
        &["attack.kind"],
        "an attack by a section of jobs: their messages wait for each other",
        "attack with flows of another section beside the jobs, or give `transport.qps` more queue pairs",
    )
}

fn error_of(fault: AttackFault) -> ScenarioError {
    match fault {
        AttackFault::Dependent { label } => ScenarioError::about(
            &["attack.kind"],
            format!("the flow {label} of an attacker waits for others, or others for it"),
            "attack with flows that start by the clock, of other hosts or in a section of their own",
        ),
        AttackFault::TooFewHosts { hosts } => ScenarioError::about(
            &["attack.hosts", "attack.kind"],
            format!("an overlay of {hosts} hosts has no pairs to change between"),
            "let at least three hosts attack",
        ),
        AttackFault::Nothing => ScenarioError::about(
            &["attack.above", "attack.hosts", "attack.kind"],
            "no message is part of the attack: the hosts that attack send none above `attack.above`, or of an overlay none to each other",
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
}
