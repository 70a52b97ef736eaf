//! States of the links: what calls take depends on which links are up, and on their rates.
//!
//! Calls are remembered by the state in which they were simulated, so that a link that comes back brings back what was known. A call that
//! may not be over when the links change next is simulated, and is no sample if they have changed before its end. After a change, the first
//! messages on each connection are no samples either.

use clearway_fabric::topology::Cable;
use clearway_fabric::{LinkChange, LinkSchedule};
use clearway_units::{Span, Time};
use std::collections::{BTreeMap, BTreeSet};

/// The state of the links in the course of a run.
#[derive(Debug, Default)]
pub(crate) struct LinkStates {
    /// Times at which the state changes, and its number from then on; it is 0 before, and whenever the links are as in the beginning.
    changes: Vec<(Time, u32)>,
}

/// What differs from the beginning: the changes of each cable by their kind, the cables that lose everything, and the failures that routing
/// knows.
#[derive(Debug, Clone, PartialEq, Default)]
struct State {
    changed: BTreeMap<(usize, u8), LinkChange>,
    dead: BTreeSet<usize>,
    known: BTreeSet<usize>,
}

impl LinkStates {
    /// The states of these cables under a schedule.
    pub(crate) fn new(cables: &[Cable], schedule: &LinkSchedule) -> Self {
        let deaths = cables
            .iter()
            .enumerate()
            .map(|(cable, own)| (own.dead_from, cable));
        let deaths: Vec<_> = deaths.filter(|(at, _)| !at.is_never()).collect();
        let known = schedule.known_failures();
        let times = schedule.events().iter().map(|event| event.at);
        let times = times.chain(known.iter().map(|(at, _)| *at));
        let times: BTreeSet<Time> = times.chain(deaths.iter().map(|(at, _)| *at)).collect();
        let mut events = schedule.events().iter().peekable();
        let mut failures = known.into_iter().peekable();
        let mut states = vec![State::default()];
        let mut state = State::default();
        let mut changes: Vec<(Time, u32)> = Vec::new();
        for at in times {
            while let Some(event) = events.next_if(|event| event.at == at) {
                let key = (event.cable, event.change.kind());
                match is_initial(&cables[event.cable], event.change) {
                    true => state.changed.remove(&key),
                    false => state.changed.insert(key, event.change),
                };
            }
            let dead = deaths.iter().filter(|(death, _)| *death == at);
            state.dead.extend(dead.map(|(_, cable)| *cable));
            if let Some((_, down)) = failures.next_if(|(time, _)| *time == at) {
                state.known = down;
            }
            let number = states.iter().position(|other| *other == state);
            let number = number.unwrap_or_else(|| {
                states.push(state.clone());
                states.len() - 1
            });
            changes.push((at, number as u32));
        }
        Self { changes }
    }

    /// Number of changes up to `now`, and the state after them.
    fn at(&self, now: Time) -> (usize, u32) {
        let past = self.changes.partition_point(|(at, _)| *at <= now);
        let last = past.checked_sub(1).map(|last| self.changes[last].1);
        (past, last.unwrap_or(0))
    }

    /// Number of different states.
    pub(super) fn count(&self) -> usize {
        let numbers = self.changes.iter().map(|(_, state)| *state as usize);
        numbers.max().unwrap_or(0) + 1
    }

    /// Time of the change that comes after so many others; [`Time::NEVER`] if there is none.
    pub(super) fn time_of(&self, change: usize) -> Time {
        self.changes.get(change).map_or(Time::NEVER, |(at, _)| *at)
    }

    /// What hosts know of the links at `now`, and the time until which they know it.
    pub(super) fn seen(&self, now: Time) -> (Seen, Time) {
        let (changes, state) = self.at(now);
        let next = self.time_of(changes);
        // Half of the time is certain until a look that comes when half of it is over.
        let certain = Span::from_ps((next - now).as_ps() / 2);
        let (until_change, due) = match next.is_never() {
            true => (Seen::default().until_change, Time::NEVER),
            false => (certain, next.min(now + certain.max(SHORTEST))),
        };
        let seen = Seen {
            changes,
            state,
            until_change,
        };
        (seen, due)
    }
}

/// True if a cable is as in the beginning after this change.
fn is_initial(cable: &Cable, change: LinkChange) -> bool {
    match change {
        LinkChange::Down => false,
        LinkChange::Up => true,
        LinkChange::Rate(rate) => rate == cable.rate,
        LinkChange::PacketLoss(loss) => loss == cable.packet_loss,
        LinkChange::PauseStorm(storm) => !storm,
    }
}

/// Shortest time between two looks before a change.
const SHORTEST: Span = Span::from_us(1);

/// What hosts know of the links.
#[derive(Debug, Clone, Copy)]
pub(super) struct Seen {
    /// Number of changes so far.
    pub(super) changes: usize,
    /// Number of the state.
    pub(super) state: u32,
    /// The time until the next change is at least this.
    pub(super) until_change: Span,
}

impl Default for Seen {
    fn default() -> Self {
        Self {
            changes: 0,
            state: 0,
            until_change: Span::from_ps(u64::MAX),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clearway_fabric::LinkEvent;
    use clearway_fabric::topology::NodeId;
    use clearway_units::Rate;

    #[test]
    fn a_link_that_comes_back_brings_back_the_first_state() {
        let cable = Cable::new(
            [NodeId(0), NodeId(1)],
            (Rate::from_gbps(400), Span::from_us(1)),
        );
        let dead = Cable {
            dead_from: Time::from_us(900),
            ..cable.clone()
        };
        let event = |us, change| LinkEvent {
            at: Time::from_us(us),
            cable: 0,
            change,
        };
        let events = vec![
            event(100, LinkChange::Down),
            event(300, LinkChange::Up),
            event(500, LinkChange::Down),
        ];
        let schedule = LinkSchedule::new(events, Span::from_us(10));
        let states = LinkStates::new(&[cable, dead], &schedule);
        let state = |us| states.at(Time::from_us(us)).1;
        // Down, known to be down, up but not known to be, and as in the beginning.
        assert_eq!([99, 100, 110, 300, 310].map(state), [0, 1, 2, 3, 0]);
        assert_eq!([500, 510, 900].map(state), [1, 2, 4]);
        assert_eq!(states.count(), 5);
        assert_eq!(states.time_of(2), Time::from_us(300));
        assert!(states.time_of(7).is_never());
    }

    #[test]
    fn the_time_to_the_next_change_is_known_to_a_half() {
        let events = vec![LinkEvent {
            at: Time::from_us(1000),
            cable: 0,
            change: LinkChange::Down,
        }];
        let cable = Cable::new(
            [NodeId(0), NodeId(1)],
            (Rate::from_gbps(400), Span::from_us(1)),
        );
        let states = LinkStates::new(&[cable], &LinkSchedule::new(events, Span::ZERO));
        let mut now = Time::ZERO;
        let mut looks = 0;
        while now < Time::from_us(1000) {
            let (seen, until) = states.seen(now);
            assert!(until > now && seen.changes == 0);
            let left = Time::from_us(1000) - until;
            assert!(seen.until_change <= left || left < SHORTEST);
            (now, looks) = (until, looks + 1);
        }
        assert!(looks < 20, "{looks}");
        let (seen, until) = states.seen(now);
        assert_eq!((seen.changes, seen.state, until), (1, 1, Time::NEVER));
        assert!(seen.until_change > Span::from_us(1_000_000));
    }
}
