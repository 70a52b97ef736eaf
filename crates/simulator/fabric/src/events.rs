//! Events of links during a run: cables that go down and come back, and links whose rate or loss changes.
//!
//! The schedule is known before the run. So every host and every switch carries out the events of its own links at their exact times, and
//! results do not depend on threads.
//!
//! # Packets and frames
//! While a cable is down, nothing crosses it in either direction. A packet is lost if the cable is down at any time from the start of its
//! transmission until it stands at the next node, both included; it counts when its last bit leaves. When a port of a switch goes down it
//! drops the packets in its queues and on its wire, and later arrivals until it comes back. A NIC goes on sending, in vain: its transport
//! learns of the outage only through the network. All of these losses are [`DropCause::LinkDown`]. Switches with a shared buffer release
//! the bytes of dropped packets.
//!
//! Pauses end with the link that they hold back. A port that comes back tells the other end first which classes it cannot take.
//!
//! During a pause storm the far end of a link keeps sending pause frames for all lossless classes, as a NIC does that takes no data any
//! more. The port of a switch at either end of the cable then sends nothing of these classes until the storm ends, regardless of other
//! pause frames. The frames of a storm take no time on the wire and arrive at once. Ports without pauses, and NICs, ignore storms.
//!
//! A new rate holds for transmissions that begin from then on, a new probability of loss for packets whose last bit leaves from then on.
//!
//! # Routing
//! All switches know the state of all cables as it was one *reroute delay* ago, and send along the shortest ways that are left. Until then
//! packets are sent to links that are down. A packet whose destination cannot be reached by any way is a [`DropCause::NoRoute`].
//!
//! [`DropCause::LinkDown`]: crate::DropCause::LinkDown
//! [`DropCause::NoRoute`]: crate::DropCause::NoRoute

use clearway_units::{Rate, Span, Time};
use std::collections::{BTreeMap, BTreeSet};

/// Change of a cable, in both directions.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum LinkChange {
    /// Failure: nothing crosses the link any more.
    Down,
    /// Repair: the link works again.
    Up,
    /// Rate from now on.
    Rate(Rate),
    /// Probability from now on that a packet is lost on the way.
    PacketLoss(f64),
    /// Begin or end of a pause storm: the ports of switches at the cable send nothing of lossless classes while it lasts.
    PauseStorm(bool),
}

impl LinkChange {
    /// Number of the kind of change. Changes of one instant are carried out in this order, so that a cable which comes back in a storm does
    /// so before it.
    pub const fn kind(self) -> u8 {
        match self {
            Self::Down | Self::Up => 0,
            Self::Rate(_) => 1,
            Self::PacketLoss(_) => 2,
            Self::PauseStorm(_) => 3,
        }
    }
}

/// Event of a link.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LinkEvent {
    /// Time of the event.
    pub at: Time,
    /// Index of the cable in the topology.
    pub cable: usize,
    /// Change of the cable.
    pub change: LinkChange,
}

/// All events of links in a run.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct LinkSchedule {
    events: Vec<LinkEvent>,
    /// By cable.
    timelines: BTreeMap<usize, LinkTimeline>,
    reroute_delay: Span,
}

impl LinkSchedule {
    /// A schedule of these events, which may come in any order; for one cable, kind of change and instant the last one counts.
    pub fn new(mut events: Vec<LinkEvent>, reroute_delay: Span) -> Self {
        events.sort_by_key(|event| (event.at, event.change.kind()));
        let mut timelines: BTreeMap<usize, LinkTimeline> = BTreeMap::new();
        for event in &events {
            timelines.entry(event.cable).or_default().add(event);
        }
        Self {
            events,
            timelines,
            reroute_delay,
        }
    }

    /// True if no link changes.
    pub fn is_empty(&self) -> bool {
        self.events.is_empty()
    }

    /// The events in the order of time.
    pub fn events(&self) -> &[LinkEvent] {
        &self.events
    }

    /// Time from a change of a cable until switches avoid it or use it again.
    pub fn reroute_delay(&self) -> Span {
        self.reroute_delay
    }

    /// The highest rate that a cable has at any time, where it begins with `rate`.
    pub fn fastest(&self, cable: usize, rate: Rate) -> Rate {
        let timeline = self.timelines.get(&cable);
        let rates = timeline.iter().flat_map(|timeline| &timeline.rates);
        rates.fold(rate, |fastest, (_, rate)| fastest.max(*rate))
    }

    /// The cables that routing takes for down, from each instant at which that changes.
    pub fn known_failures(&self) -> Vec<(Time, BTreeSet<usize>)> {
        let mut known: Vec<(Time, BTreeSet<usize>)> = Vec::new();
        let mut down = BTreeSet::new();
        for event in &self.events {
            let changed = match event.change {
                LinkChange::Down => down.insert(event.cable),
                LinkChange::Up => down.remove(&event.cable),
                LinkChange::Rate(_) | LinkChange::PacketLoss(_) | LinkChange::PauseStorm(_) => {
                    false
                }
            };
            let at = event.at.saturating_add(self.reroute_delay);
            match known.last_mut().filter(|(time, _)| *time == at) {
                Some((_, last)) => last.clone_from(&down),
                None if changed => known.push((at, down.clone())),
                None => {}
            }
        }
        known
    }

    /// Changes of one cable; `None` if it has none.
    pub(crate) fn timeline(&self, cable: usize) -> Option<&LinkTimeline> {
        self.timelines.get(&cable)
    }
}

/// Change at an egress port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PortChange {
    Down,
    Up,
    Rate(Rate),
    PauseStorm(bool),
}

/// All that happens to one cable.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct LinkTimeline {
    /// Begin and end of each time in which it is down; the last one may have no end.
    outages: Vec<(Time, Time)>,
    rates: Vec<(Time, Rate)>,
    losses: Vec<(Time, f64)>,
    /// Begins and ends of pause storms, in turn.
    storms: Vec<(Time, bool)>,
}

impl LinkTimeline {
    /// Adds an event that comes after all others.
    fn add(&mut self, event: &LinkEvent) {
        match event.change {
            LinkChange::Down => self.begin_outage(event.at),
            LinkChange::Up => self.end_outage(event.at),
            LinkChange::Rate(rate) => self.rates.push((event.at, rate)),
            LinkChange::PacketLoss(loss) => self.losses.push((event.at, loss)),
            LinkChange::PauseStorm(storm) => self.change_storm(event.at, storm),
        }
    }

    fn change_storm(&mut self, at: Time, storm: bool) {
        if self.storms.last().is_some_and(|(last, _)| *last == at) {
            self.storms.pop();
        }
        if self.storms.last().is_some_and(|(_, on)| *on) != storm {
            self.storms.push((at, storm));
        }
    }

    fn begin_outage(&mut self, at: Time) {
        match self.outages.last() {
            Some((_, end)) if end.is_never() => {}
            // Up and down again at one instant.
            Some(&(begin, end)) if end == at => {
                self.outages.pop();
                self.outages.push((begin, Time::NEVER));
            }
            _ => self.outages.push((at, Time::NEVER)),
        }
    }

    fn end_outage(&mut self, at: Time) {
        if let Some((begin, end)) = self.outages.pop() {
            // Down and up again at one instant is nothing.
            if begin < at {
                self.outages.push((begin, end.min(at)));
            }
        }
    }

    /// True if the cable is down at any time from `from` to `to`, both included.
    pub(crate) fn is_cut(&self, from: Time, to: Time) -> bool {
        let after = self.outages.partition_point(|(_, end)| *end <= from);
        self.outages
            .get(after)
            .is_some_and(|(begin, _)| *begin <= to)
    }

    /// Time at which the cable next goes down after `now`.
    pub(crate) fn next_outage(&self, now: Time) -> Time {
        let after = self.outages.partition_point(|(begin, _)| *begin <= now);
        self.outages
            .get(after)
            .map_or(Time::NEVER, |outage| outage.0)
    }

    /// The changes of the probability of loss.
    pub(crate) fn losses(&self) -> &[(Time, f64)] {
        &self.losses
    }

    /// The rate from the last change up to `now`, if there was one.
    pub(crate) fn rate_at(&self, now: Time) -> Option<Rate> {
        let past = self.rates.partition_point(|(at, _)| *at <= now);
        past.checked_sub(1).map(|last| self.rates[last].1)
    }

    /// The changes at a port in the order of time.
    pub(crate) fn port_changes(&self) -> Vec<(Time, PortChange)> {
        let outages = self.outages.iter().flat_map(|&(begin, end)| {
            let up = (!end.is_never()).then_some((end, PortChange::Up));
            [Some((begin, PortChange::Down)), up].into_iter().flatten()
        });
        let rates = self.rates.iter();
        let rates = rates.map(|&(at, rate)| (at, PortChange::Rate(rate)));
        let storms = self.storms.iter();
        let storms = storms.map(|&(at, storm)| (at, PortChange::PauseStorm(storm)));
        let mut changes: Vec<(Time, PortChange)> = outages.chain(rates).chain(storms).collect();
        changes.sort_by_key(|(at, _)| *at);
        changes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schedule(events: &[(u64, LinkChange)]) -> LinkSchedule {
        let event = |&(us, change)| LinkEvent {
            at: Time::from_us(us),
            cable: 3,
            change,
        };
        LinkSchedule::new(events.iter().map(event).collect(), Span::from_us(10))
    }

    #[test]
    fn outages_are_joined_and_cut_what_touches_them() {
        use LinkChange::{Down, Up};
        let schedule = schedule(&[
            (40, Up),
            (20, Down),
            (30, Down),
            (50, Down),
            (50, Up),
            (60, Down),
            (70, Up),
            (70, Down),
        ]);
        let timeline = schedule.timeline(3).unwrap();
        let us = Time::from_us;
        assert_eq!(timeline.outages, [(us(20), us(40)), (us(60), Time::NEVER)]);
        for (from, to, cut) in [
            (0, 19, false),
            (0, 20, true),
            (25, 26, true),
            (39, 45, true),
            (40, 59, false),
            (40, 60, true),
            (99, 99, true),
        ] {
            assert_eq!(timeline.is_cut(us(from), us(to)), cut, "{from} to {to}");
        }
        assert_eq!(timeline.next_outage(us(19)), us(20));
        assert_eq!(timeline.next_outage(us(20)), us(60));
        assert_eq!(timeline.next_outage(us(60)), Time::NEVER);
        assert_eq!(schedule.timeline(2), None);
    }

    #[test]
    fn routing_knows_later() {
        use LinkChange::{Down, Rate, Up};
        let slow = Rate(clearway_units::Rate::from_gbps(1));
        let known = schedule(&[
            (5, Down),
            (7, slow),
            (8, Down),
            (9, Up),
            (9, Down),
            (12, Up),
        ]);
        let us = Time::from_us;
        let down = BTreeSet::from([3]);
        assert_eq!(
            known.known_failures(),
            [
                (us(15), down.clone()),
                (us(19), down),
                (us(22), BTreeSet::new())
            ]
        );
    }

    #[test]
    fn ports_see_states_and_rates_in_order() {
        use LinkChange::{Down, PacketLoss, Rate, Up};
        let rate = clearway_units::Rate::from_gbps(100);
        let schedule = schedule(&[(9, Up), (5, Down), (7, Rate(rate)), (8, PacketLoss(0.5))]);
        let timeline = schedule.timeline(3).unwrap();
        let changes: Vec<_> = timeline.port_changes();
        let us = Time::from_us;
        assert_eq!(
            changes,
            [
                (us(5), PortChange::Down),
                (us(7), PortChange::Rate(rate)),
                (us(9), PortChange::Up)
            ]
        );
        assert_eq!(timeline.losses(), [(us(8), 0.5)]);
        assert_eq!(timeline.rate_at(us(6)), None);
        assert_eq!(timeline.rate_at(us(7)), Some(rate));
        assert_eq!(
            schedule.fastest(3, clearway_units::Rate::from_gbps(50)),
            rate
        );
    }
}
