//! Transfer times of messages, and what they become where messages are posted at other times.
//!
//! Messages of a connection follow one another. One that is posted while an earlier one is under way waits for it, so that its time says
//! less about the network than its distance from the earlier one does. A connection is therefore modelled as a link: message *j* arrives at
//!
//! ```text
//! arrival(j) = max(post(j) + latency, arrival(j - 1) + gap) + residual(j),    at least post(j) + latency
//! ```
//!
//! The latency is the shortest transfer time of a message of its length on its connection, or that of a message of another length and the
//! difference of their gaps, if this is less: of some lengths all messages wait. The gap is the lower quartile of the distances
//! between arrivals, of messages of its length that were posted before the one before them had arrived: it is the time that the connection
//! takes for such a message. The residual is what is left of the simulated arrival: the delay by other traffic. With the posts of the
//! simulated call, the rule gives its arrivals, to the picosecond.

use clearway_units::{Bytes, FlowId, Span, Time};
use rustc_hash::FxHashMap;

/// Transfer times of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Times {
    latency: Span,
    gap: Span,
    /// Residual in picoseconds.
    residual: i64,
    /// Time from its arrival until it is acknowledged.
    acknowledgement: Span,
}

impl Times {
    /// Arrival of a message that is posted at `posted`, after a message that arrived at `before`.
    fn arrival(&self, posted: Time, before: Option<Time>) -> Time {
        let least = posted + self.latency;
        let expected = self.expected(posted, before).as_ps() as i64;
        let arrival = expected.saturating_add(self.residual).max(0) as u64;
        least.max(Time::from_ps(arrival))
    }

    /// The arrival without residual.
    fn expected(&self, posted: Time, before: Option<Time>) -> Time {
        let least = posted + self.latency;
        before.map_or(least, |before| least.max(before + self.gap))
    }
}

/// The last arrival of a message without packets on a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct LastArrival(Option<Time>);

impl LastArrival {
    /// The times at which a message that is posted now arrives and is acknowledged.
    pub(crate) fn next(&mut self, now: Time, times: Times) -> (Time, Time) {
        let arrival = times.arrival(now, self.0);
        self.0 = self.0.max(Some(arrival));
        (arrival, arrival + times.acknowledgement)
    }
}

/// A message of a simulated call.
#[derive(Debug, Clone, Copy)]
pub(super) struct Transfer {
    pub(super) connection: FlowId,
    pub(super) bytes: Bytes,
    pub(super) posted: Time,
    pub(super) received: Time,
    pub(super) sent: Time,
}

impl Transfer {
    fn took(&self) -> Span {
        self.received - self.posted
    }
}

/// The messages of a call with their places, connection by connection, in the order of their posts.
fn in_order(transfers: &[Option<Transfer>]) -> Vec<(usize, &Transfer)> {
    let mut order: Vec<(usize, &Transfer)> = Vec::with_capacity(transfers.len());
    let numbered = transfers.iter().enumerate();
    order.extend(numbered.filter_map(|(place, own)| Some((place, own.as_ref()?))));
    order.sort_unstable_by_key(|(place, own)| (own.connection, own.posted, *place));
    order
}

/// Transfer times of a call in relation to those that remembered `times` would have given it, with the same posts: above one if messages
/// took longer.
///
/// Where each message of a call waits for the one before, the call takes longer by the same factor.
pub(super) fn level(times: &[Times], transfers: &[Option<Transfer>]) -> f64 {
    let (mut took, mut longer) = (0.0, 0.0);
    let mut last: Option<(FlowId, LastArrival)> = None;
    for (place, own) in in_order(transfers) {
        let known = last.filter(|(connection, _)| *connection == own.connection);
        let mut arrivals = known.map_or(LastArrival::default(), |(_, arrivals)| arrivals);
        let (remembered, _) = arrivals.next(own.posted, times[place]);
        last = Some((own.connection, arrivals));
        took += own.took().as_ps() as f64;
        longer += own.received.as_ps() as f64 - remembered.as_ps() as f64;
    }
    took / (took - longer)
}

/// Times of the messages of a call, by task; `None` is a task that is no message.
pub(super) fn times_of(transfers: &[Option<Transfer>]) -> Vec<Times> {
    let order = in_order(transfers);
    let mut of_length: FxHashMap<(FlowId, Bytes), Length> = FxHashMap::default();
    let mut last: Option<(FlowId, Time)> = None;
    for (_, own) in &order {
        let before = before(last, own);
        let length = of_length.entry((own.connection, own.bytes)).or_default();
        length.latency = Some(
            length
                .latency
                .map_or(own.took(), |least| least.min(own.took())),
        );
        if let Some(arrival) = before.filter(|&arrival| own.posted < arrival) {
            length.gaps.push(own.received.max(arrival) - arrival);
        }
        last = Some((
            own.connection,
            own.received.max(before.unwrap_or(Time::ZERO)),
        ));
    }
    for length in of_length.values_mut() {
        length.gaps.sort_unstable();
    }
    let lengths = Lengths::new(of_length);
    let mut times = vec![Times::default(); transfers.len()];
    let mut last = None;
    for (place, own) in order {
        let before = before(last, own);
        let (latency, gap) = lengths.of(own);
        let mut found = Times {
            latency,
            gap,

            residual: 0,
            acknowledgement: own.sent.max(own.received) - own.received,
        };
        let expected = found.expected(own.posted, before);
        found.residual = own.received.as_ps() as i64 - expected.as_ps() as i64;
        times[place] = found;
        last = Some((
            own.connection,
            own.received.max(before.unwrap_or(Time::ZERO)),
        ));
    }
    times
}

/// Messages of one length on a connection.
#[derive(Debug, Default)]
struct Length {
    latency: Option<Span>,
    /// Distances between arrivals, where a message waited for the one before it.
    gaps: Vec<Span>,
}

impl Length {
    fn gap(&self) -> Span {
        let quartile = self.gaps.get(self.gaps.len() / 4);
        quartile.copied().unwrap_or(Span::ZERO)
    }
}

/// Latency and gap of messages by connection and length.
struct Lengths(FxHashMap<(FlowId, Bytes), (Span, Span)>);

impl Lengths {
    fn new(of_length: FxHashMap<(FlowId, Bytes), Length>) -> Self {
        let mut of_connection: FxHashMap<FlowId, Vec<(Bytes, Span, Span)>> = FxHashMap::default();
        for ((connection, bytes), length) in &of_length {
            let latency = length.latency.unwrap_or(Span::ZERO);
            let own = of_connection.entry(*connection).or_default();
            own.push((*bytes, latency, length.gap()));
        }
        let mut found = FxHashMap::default();
        for (connection, all) in of_connection {
            for &(bytes, latency, gap) in &all {
                let others = all.iter();
                let others = others.map(|(_, other, own)| *other + gap.saturating_sub(*own));
                let least = others.fold(latency, Span::min);
                found.insert((connection, bytes), (least, gap));
            }
        }
        Self(found)
    }

    fn of(&self, own: &Transfer) -> (Span, Span) {
        self.0[&(own.connection, own.bytes)]
    }
}

/// The last arrival on the connection of a message.
fn before(last: Option<(FlowId, Time)>, own: &Transfer) -> Option<Time> {
    let (connection, arrival) = last?;
    (connection == own.connection).then_some(arrival)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clearway_units::{Purpose, RandomStream};

    fn transfer(connection: u32, posted: u64, received: u64) -> Option<Transfer> {
        Some(Transfer {
            connection: FlowId(connection),
            bytes: Bytes::new(1000),
            posted: Time::from_us(posted),
            received: Time::from_us(received),
            sent: Time::from_us(received + 3),
        })
    }

    fn replay(transfers: &[Option<Transfer>], late: Span) -> Vec<Option<(Time, Time)>> {
        let times = times_of(transfers);
        let mut last: FxHashMap<FlowId, LastArrival> = FxHashMap::default();
        let mut order: Vec<usize> = (0..transfers.len()).collect();
        order.sort_by_key(|&place| transfers[place].map(|own| own.posted));
        let mut found = vec![None; transfers.len()];
        for place in order {
            if let Some(own) = transfers[place] {
                let last = last.entry(own.connection).or_default();
                found[place] = Some(last.next(own.posted + late, times[place]));
            }
        }
        found
    }

    #[test]
    fn a_call_with_the_same_posts_has_the_same_arrivals() {
        let mut random = RandomStream::new(1, Purpose::Test, 0);
        for _ in 0..200 {
            let mut next = vec![(0u64, 0u64); 3];
            let mut below = |most| u64::from(random.below(most));
            let transfers: Vec<Option<Transfer>> = (0..40)
                .map(|_| {
                    let connection = below(4) as usize;
                    let (posted, received) = next.get_mut(connection)?;
                    *posted += below(6);
                    *received = (*posted + 5 + below(3)).max(*received + below(4));
                    transfer(connection as u32, *posted, *received)
                })
                .collect();
            let times = transfers
                .iter()
                .map(|own| own.map(|own| (own.received, own.sent)));
            assert_eq!(replay(&transfers, Span::ZERO), times.collect::<Vec<_>>());
        }
    }

    #[test]
    fn messages_that_waited_for_one_another_do_so_again() {
        // A link that takes 8 us for a message, with a latency of 10 us. The second message waits for the first, the third for nothing.
        let transfers = [transfer(0, 0, 10), transfer(0, 1, 18), transfer(0, 30, 40)];
        let times = times_of(&transfers);
        let mut last = LastArrival::default();
        let mut arrivals = |posts: [u64; 3]| {
            last = LastArrival::default();
            let arrival =
                |(post, own): (u64, &Times)| last.next(Time::from_us(post), *own).0.as_us();
            posts
                .into_iter()
                .zip(&times)
                .map(arrival)
                .collect::<Vec<_>>()
        };
        assert_eq!(arrivals([0, 1, 30]), [10.0, 18.0, 40.0]);
        // Posted late, it waits less.
        assert_eq!(arrivals([0, 7, 30]), [10.0, 18.0, 40.0]);
        assert_eq!(arrivals([0, 9, 30]), [10.0, 19.0, 40.0]);
        assert_eq!(arrivals([5, 6, 30]), [15.0, 23.0, 40.0]);
        // The third does not wait for the second, unless it comes too early.
        assert_eq!(arrivals([0, 1, 15]), [10.0, 18.0, 26.0]);
    }

    #[test]
    fn delays_by_other_traffic_are_kept() {
        // The third takes 3 us longer than the link alone does.
        let transfers = [transfer(0, 0, 10), transfer(0, 1, 18), transfer(0, 2, 29)];
        let late = |us| -> Vec<u64> {
            let times = replay(&transfers, Span::from_us(us)).into_iter().flatten();
            times
                .map(|(arrival, _)| arrival.as_ps() / 1_000_000)
                .collect()
        };
        assert_eq!(late(0), [10, 18, 29]);
        assert_eq!(late(5), [15, 23, 34]);
    }
}
