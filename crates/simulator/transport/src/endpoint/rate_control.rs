//! Rate allocation by s-PERC or 1RC at a host: control packets of flows that start here, and marks of their speculative data.
//!
//! A queue pair that gets a message to send joins the allocation: its [`Source`] sends a control packet at once and then one in each round
//! trip, which the receiver reflects. Until the first is back the queue pair waits, or with 1RC sends speculative packets at line rate.
//! When it has sent all, the next control packet takes it out of the links' sums. Its source may outlive it.
//!
//! # Decisions
//! * The scope `host` is `weights = true`; links know no other scope.
//! * Control packets of a flow take at most the part of its rate that links keep free for them: many slow flows would fill a link with
//!   them, which go before data. One in `control-gap` round trips is sent anyway. The first one, and the one that leaves, are sent at
//!   once.
//! * A connection is exempt while all that it has posted and that has not arrived is within `exempt`, and all that it has posted
//!   without a pause of a round trip: not message by message, or a job in small messages would never be controlled.
//! * The safety net of 1RC is go-back-N itself: a NACK or a timeout says that it was needed.
//! * Flows of a host share speculative sequence numbers with weights, as §5.3.1 introduces both; else each flow counts its own (§5.2).
//!   Shared numbers without weights would give a host with many flows the window of one.
//! * The NIC's own link has an agent too, which keeps the rates of a host's flows together within the line rate; it lets all speculative
//!   packets pass.
//! * A connection leaves the count of open connections when its last control packet departs, not when that has come back.
//! * A message that is posted while its queue pair leaves goes on at the last rate, and joins again afterwards.
//! * With selective repeat, loss detection finds the speculative packets that links drop.
//! * A flow whose controller does not support allocation takes part, but does not obey: [`Misbehaviour::Rate`].
//! * Packets without attachments (telemetry of another kind, as in drivers without links) get line rate: nobody is there to allocate.

use super::key::Key;
use crate::congestion::bdp_packets;
use crate::congestion::misbehaviour::Misbehaviour;
use crate::congestion::perc::{
    Connections, LinkAgent, LinkParameters, RateAllocation, Source, SpeculativeSequence,
};
use crate::packet::Packet;
use crate::profile::Profile;
use clearway_units::{HostId, Purpose, RandomStream, Rate, Span, Time};
use rustc_hash::FxHashMap;

/// Added to the number of a source among timers, where slots of senders are below.
pub(super) const SOURCE: u32 = 1 << 30;

/// A queue pair in the allocation.
pub(super) struct Member {
    pub(super) key: Key,
    pub(super) source: Source,
    /// Template of the control packets, without time and record.
    pub(super) template: Packet,
    /// The packet with which it began to send.
    pub(super) first: u64,
    /// Time of its valid entry among the timers.
    pub(super) armed: Time,
    /// Time, by the host's clock, before which the next control packet would exceed its share of the flow's rate.
    pub(super) not_before: Time,
    /// Longest time between two control packets.
    pub(super) longest_gap: Span,
    /// False once it counts as an open connection no longer.
    pub(super) open: bool,
    /// A message was posted when all had been sent.
    pub(super) again: bool,
    /// Rule that the NIC breaks.
    pub(super) misbehaviour: Option<Misbehaviour>,
}

impl Member {
    /// Time, by the host's clock, at which the next control packet is to be sent.
    pub(super) fn due(&self) -> Time {
        let due = self.source.due();
        match self.source.will_leave() || due.is_never() {
            true => due,
            false => due.max(self.not_before),
        }
    }
}

/// The allocation at a host.
pub(super) struct RateControl {
    pub(super) settings: RateAllocation,
    /// Agent of the NIC's own link.
    pub(super) nic: LinkAgent,
    pub(super) host_rate: Rate,
    pub(super) most_speculative: u32,
    /// The host's clock is ahead of time by so much.
    skew: Span,
    pub(super) numbers: SpeculativeSequence,
    pub(super) members: Vec<Option<Member>>,
    free: Vec<u32>,
    pub(super) by_key: FxHashMap<Key, u32>,
}

impl RateControl {
    /// The allocation at `host`.
    pub(super) fn new(
        settings: RateAllocation,
        profile: &Profile,
        host: HostId,
        seed: u64,
    ) -> Self {
        let network = &profile.network;
        let speculation = settings.speculation;
        let skew = speculation.map_or(0, |speculation| speculation.clock_skew.as_ps());
        let mut random = RandomStream::new(seed, Purpose::HostClock, host.0.into());
        let nic = LinkParameters {
            epochs: None,
            ..settings.link(network, network.line_rate, profile.acknowledgements())
        };
        Self {
            // The first link of each of its flows, always this one.
            nic: LinkAgent::new(0, &nic),
            host_rate: network.line_rate,
            most_speculative: speculation.map_or(0, |_| bdp_packets(network)),
            skew: Span::from_ps((random.unit() * skew as f64) as u64),
            numbers: SpeculativeSequence::new(
                speculation.map_or(network.base_rtt, |speculation| speculation.epoch),
            ),
            members: Vec::new(),
            free: Vec::new(),
            by_key: FxHashMap::default(),
            settings,
        }
    }

    /// The time that the host's clock shows.
    pub(super) fn clock(&self, now: Time) -> Time {
        now.saturating_add(self.skew)
    }

    /// The time at which the host's clock shows `local`.
    pub(super) fn time_at(&self, local: Time) -> Time {
        match local.is_never() {
            true => Time::NEVER,
            false => Time::from_ps(local.as_ps().saturating_sub(self.skew.as_ps())),
        }
    }

    pub(super) fn connections(&mut self, local: Time) -> Connections {
        let counted = self.numbers.connections(local);
        match self.settings.weights {
            true => counted,
            false => Connections::ONE,
        }
    }

    /// The member that a timer is of; `None` if it is not of a source.
    #[inline]
    pub(super) fn source(timer: u32) -> Option<u32> {
        (timer & SOURCE != 0).then_some(timer & !SOURCE)
    }

    pub(super) fn add(&mut self, member: Member) -> u32 {
        let key = member.key;
        let index = match self.free.pop() {
            Some(index) => {
                self.members[index as usize] = Some(member);
                index
            }
            None => {
                self.members.push(Some(member));
                self.members.len() as u32 - 1
            }
        };
        self.by_key.insert(key, index);
        index
    }

    pub(super) fn member(&mut self, index: u32) -> Option<&mut Member> {
        self.members.get_mut(index as usize)?.as_mut()
    }

    /// Takes out the member if its source is done; true if it has to join again.
    pub(super) fn remove_if_done(&mut self, index: u32) -> Option<(Key, bool)> {
        let member = self
            .member(index)
            .filter(|member| member.source.is_done())?;
        let (key, again) = (member.key, member.again);
        self.members[index as usize] = None;
        self.by_key.remove(&key);
        self.free.push(index);
        Some((key, again))
    }
}
