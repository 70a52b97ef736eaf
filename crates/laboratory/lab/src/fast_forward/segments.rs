//! Segments of long calls.
//!
//! A call of many messages repeats itself: each step of a ring sends messages of the same lengths on the same connections as the step
//! before. Such a call is cut into segments, each with the same number of messages on every connection, and a segment is remembered as a
//! call is. The first segment begins at rest and the last one ends there, so they are kinds of their own. So are the second and the third
//! one, because ranks may post messages ahead when a call begins. The segments between the third and the last one are calls of one kind.

use clearway_units::{Bytes, FlowId};
use std::collections::BTreeMap;

/// Least messages of a segment on each connection.
const LEAST_MESSAGES: usize = 8;
/// Least bytes of a segment on each connection: ranks that are in different segments are so for a small part of it.
const LEAST_BYTES: u64 = 8_000_000;
/// Least segments of a call that is cut.
const LEAST_SEGMENTS: usize = 6;
/// Most messages after which the lengths on a connection repeat.
const LONGEST_PERIOD: usize = 64;

/// A call that is cut into segments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Segments {
    /// Segment of each task, and the place of its message there; the same place in segments of one kind stands for the same message.
    of_task: Vec<(u16, u32)>,
    count: u16,
}

/// Position of a segment, which makes its kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Position {
    First,
    Second,
    Third,
    Between,
    Last,
}

impl Segments {
    /// Number of kinds of segments.
    pub(super) const KINDS: u32 = 5;

    /// Segments of a call of so many tasks with these messages: task, connection and length, in the order of tasks. `None` if the call does
    /// not repeat itself often enough.
    pub(super) fn new(tasks: u32, messages: &[(u32, FlowId, Bytes)]) -> Option<Self> {
        let mut connections: BTreeMap<FlowId, Vec<(u32, Bytes)>> = BTreeMap::new();
        for &(task, connection, bytes) in messages {
            connections
                .entry(connection)
                .or_default()
                .push((task, bytes));
        }
        // Several rings may share a connection, which then has a multiple of the messages.
        let all = connections.values().map(Vec::len).min()?;
        let is_whole = |own: &Vec<_>| own.len().is_multiple_of(all);
        if all < LEAST_MESSAGES * LEAST_SEGMENTS || !connections.values().all(is_whole) {
            return None;
        }
        let repeats = |period: usize| {
            let mut pairs = connections.values().flat_map(|own| {
                let period = period * (own.len() / all);
                own.iter().zip(&own[period..])
            });
            pairs.all(|((_, one), (_, other))| are_alike(*one, *other))
        };

        let period = (1..=LONGEST_PERIOD.min(all / 2)).find(|&period| repeats(period))?;
        let least_bytes = connections.values().map(|own| {
            let period = period * (own.len() / all);
            let bytes: u64 = own[..period].iter().map(|(_, bytes)| bytes.as_u64()).sum();
            bytes.max(1)
        });
        let of_bytes = LEAST_BYTES.div_ceil(least_bytes.min()?) as usize;
        let periods = LEAST_MESSAGES.div_ceil(period).max(of_bytes);
        let length = period * periods;
        let count = all / length;
        if count < LEAST_SEGMENTS {
            return None;
        }
        let longest = all - (count - 1) * length;
        let mut of_task = vec![(0, 0); tasks as usize];
        let mut row = 0;
        for own in connections.values() {
            let share = own.len() / all;
            for (index, &(task, _)) in own.iter().enumerate() {
                let segment = (index / (length * share)).min(count - 1);
                let place = row + index - segment * length * share;
                of_task[task as usize] = (u16::try_from(segment).ok()?, place as u32);
            }
            row += longest * share;
        }
        Some(Self {
            of_task,
            count: count as u16,
        })
    }

    /// Number of segments.
    pub(super) fn count(&self) -> u16 {
        self.count
    }

    /// The segment of a task, and its place there.
    pub(super) fn of(&self, task: u32) -> (u16, u32) {
        self.of_task[task as usize]
    }

    /// The position of a segment.
    pub(super) fn position(&self, segment: u16) -> Position {
        match segment {
            0 => Position::First,
            1 => Position::Second,
            2 => Position::Third,
            last if last + 1 == self.count => Position::Last,
            _ => Position::Between,
        }
    }
}

/// True for lengths that differ by a thousandth at most, or by a few bytes: blocks of a collective differ by a byte.
pub(super) fn are_alike(one: Bytes, other: Bytes) -> bool {
    let (one, other) = (one.as_u64(), other.as_u64());
    one.abs_diff(other) <= (one.max(other) / 1000).max(16)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two connections with messages of these lengths in turn.
    fn messages(count: u32, lengths: &[u64]) -> Vec<(u32, FlowId, Bytes)> {
        let message = |task: u32| {
            let length = lengths[(task / 2) as usize % lengths.len()];
            (task, FlowId(task % 2), Bytes::new(length))
        };
        (0..2 * count).map(message).collect()
    }

    #[test]
    fn a_call_is_cut_where_its_lengths_repeat() {
        let own = Segments::new(200, &messages(100, &[4_000_000, 4_000_000, 1_000])).unwrap();
        // Nine messages each, and ten in the last segment.
        assert_eq!(own.count(), 11);
        assert_eq!((own.of(0), own.of(1)), ((0, 0), (0, 10)));
        assert_eq!((own.of(18), own.of(19)), ((1, 0), (1, 10)));
        assert_eq!((own.of(198), own.of(199)), ((10, 9), (10, 19)));
        let positions = [0, 1, 2, 3, 9, 10].map(|segment| own.position(segment));
        let between = Position::Between;
        let [first, second, third] = [Position::First, Position::Second, Position::Third];
        assert_eq!(
            positions,
            [first, second, third, between, between, Position::Last]
        );
        // Every message has a place of its own.
        let mut places: Vec<(u16, u32)> = (0..200).map(|task| own.of(task)).collect();
        places.sort_unstable();
        places.dedup();
        assert_eq!(places.len(), 200);
    }

    #[test]
    fn short_and_irregular_calls_stay_whole() {
        assert_eq!(Segments::new(60, &messages(30, &[4_000_000])), None);
        // Segments of 1000 messages for so few bytes.
        assert_eq!(Segments::new(2000, &messages(1000, &[8_000])), None);
        let mut odd = messages(100, &[4_000_000]);
        odd[77].2 = Bytes::new(1_000_000);
        assert_eq!(Segments::new(200, &odd), None);
        odd[77].2 = Bytes::new(4_000_001);
        assert!(Segments::new(200, &odd).is_some());
        odd.pop();
        assert_eq!(Segments::new(200, &odd), None);
    }

    #[test]
    fn connections_may_carry_several_rings() {
        // Connection 1 has three messages for each of connection 0.
        let message = |task: u32| {
            (
                task,
                FlowId(u32::from(!task.is_multiple_of(4))),
                Bytes::new(4_000_000),
            )
        };
        let own = Segments::new(400, &(0..400).map(message).collect::<Vec<_>>()).unwrap();
        assert_eq!(own.count(), 12);
        let segments = |segment: u16| (0..400).filter(|&task| own.of(task).0 == segment).count();
        assert_eq!((segments(0), segments(5), segments(11)), (32, 32, 48));
    }
}
