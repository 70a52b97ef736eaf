//! Transfer times of messages, and what they become where messages are posted at other times.
//!
//! Messages of a connection follow one another. One that is posted while an earlier one is under way waits for it, so that its time says
//! less about the network than its distance from the earlier one does. A connection is therefore modelled as a link: message *j* arrives at
//!
//! ```text
//! arrival(j) = max(post(j) + latency, arrival(j - 1) + gap) + residual(j),    at least post(j) + latency
//! ```
//!
//! The latency is the [shortest](Shortest) transfer time of a message of its length on its connection, in all simulated calls so far: in
//! one call all messages may wait. The gap is the lower quartile of the distances between arrivals, of messages of its length that were
//! posted before the one before them had arrived: it is the time that the connection takes for such a message. The residual is what is
//! left of the simulated arrival: the delay by other traffic. With the posts of the simulated call, the rule gives its arrivals, to the
//! picosecond.

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

    /// Time at which the last byte of a message that arrives at `arrival` has left. A message occupies its connection for the gap, and the
    /// rest of the latency is delay. Without a gap, none is known, and it has left at once.
    pub(super) fn left(&self, arrival: Time) -> Time {
        match self.gap.is_zero() {
            true => Time::ZERO,
            false => {
                let delay = self.latency.saturating_sub(self.gap);
                Time::from_ps(arrival.as_ps().saturating_sub(delay.as_ps()))
            }
        }
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
    /// The times at which a message that is posted now arrives and is acknowledged. It follows messages with packets that are under way:
    /// `ahead` times its own bytes.
    pub(crate) fn next(&mut self, now: Time, times: Times, ahead: f64) -> (Time, Time) {
        let waits = Span::from_ps((times.gap.as_ps() as f64 * ahead) as u64);
        let arrival = times.arrival(now, self.0).max(now + times.latency + waits);
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
    /// The last arrival of a message of another call of the family on its connection before it arrived.
    pub(super) before: Option<Time>,
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

/// Messages of a simulated call by place; `None` is a place without a message.
pub(super) type Transfers = Vec<Option<Transfer>>;

/// What the level of a call measures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Measure {
    /// The times of messages, from the post, or the last arrival before it on its connection, to the arrival: messages that are posted
    /// early and wait for one another do not make it longer.
    Messages,
    /// The times of connections, from the first post, or the last arrival before it, to the last arrival: for segments, whose connections
    /// are busy all the time.
    Connections,
}

/// Time of a call in relation to the time that remembered `times` would have given it: above one if it took longer.
pub(super) fn level(times: &[Times], call: &[Option<Transfer>], measure: Measure) -> f64 {
    let order = in_order(call);
    let before = before_each(&order);
    let since = |end: Time, begun: Time| end.max(begun).as_ps() as f64 - begun.as_ps() as f64;
    let (mut took, mut remembered) = (0.0, 0.0);
    // The last arrivals on a connection, as they were and as they would have been.
    let mut last: Option<(FlowId, Time, Time)> = None;
    for ((place, own), before) in order.iter().zip(before) {
        let begun = own.posted.max(before.unwrap_or(Time::ZERO));
        let known = last.filter(|(connection, ..)| *connection == own.connection);
        let (before, was, would) = match (measure, known) {
            (Measure::Messages, _) | (Measure::Connections, None) => (before, begun, begun),
            (Measure::Connections, Some((_, was, would))) => {
                (own.before.max(Some(would)), was, would)
            }
        };
        let arrival = times[*place].arrival(own.posted, before);
        took += since(own.received, was);
        remembered += since(arrival, would);
        last = Some((own.connection, own.received.max(was), arrival.max(would)));
    }
    match remembered > 0.0 {
        true => took / remembered,
        false => 1.0,
    }
}

/// Time in picoseconds from the first post on the last connection that has one, to the last arrival: the time of a call without that for
/// which ranks wait for one that comes late.
pub(super) fn together(call: &[Option<Transfer>]) -> f64 {
    let mut begun: FxHashMap<FlowId, Time> = FxHashMap::default();
    let mut end = Time::ZERO;
    for own in call.iter().flatten() {
        let first = begun.entry(own.connection).or_insert(own.posted);
        *first = own.posted.min(*first);
        end = end.max(own.received);
    }
    let last = begun.into_values().max().unwrap_or(end);
    (end.max(last) - last).as_ps() as f64
}

/// Times of the messages of a call, by place; `shortest` knows them.
pub(super) fn times_of(call: &[Option<Transfer>], shortest: &Shortest) -> Vec<Times> {
    let order = in_order(call);
    let before = before_each(&order);
    let mut gaps: FxHashMap<(FlowId, Bytes), Vec<Span>> = FxHashMap::default();
    for ((_, own), before) in order.iter().zip(&before) {
        if let Some(arrival) = before.filter(|&arrival| own.posted < arrival) {
            let gaps = gaps.entry((own.connection, own.bytes)).or_default();
            gaps.push(own.received.max(arrival) - arrival);
        }
    }
    let mut quartiles: FxHashMap<(FlowId, Bytes), Span> = FxHashMap::default();
    for (of, mut gaps) in gaps {
        gaps.sort_unstable();
        quartiles.insert(of, gaps[gaps.len() / 4]);
    }
    let mut times = vec![Times::default(); call.len()];
    for ((place, own), before) in order.into_iter().zip(before) {
        let gap = quartiles.get(&(own.connection, own.bytes));
        let gap = gap.copied().unwrap_or(Span::ZERO);
        let mut found = Times {
            latency: shortest.least(own, gap),
            gap,
            residual: 0,
            acknowledgement: own.sent.max(own.received) - own.received,
        };
        let expected = found.expected(own.posted, before);
        found.residual = own.received.as_ps() as i64 - expected.as_ps() as i64;
        times[place] = found;
    }
    times
}

/// For each message, in order, the last arrival on its connection before it: of a message of the call that was posted before it, or of
/// another call.
fn before_each(order: &[(usize, &Transfer)]) -> Vec<Option<Time>> {
    let mut last: Option<(FlowId, Time)> = None;
    let each = order.iter().map(|(_, own)| {
        let known = last.filter(|(connection, _)| *connection == own.connection);
        let before = known.map(|(_, arrival)| arrival).max(own.before);
        let arrival = own.received.max(before.unwrap_or(Time::ZERO));
        last = Some((own.connection, arrival));
        before
    });
    each.collect()
}

/// Shortest transfer time of the messages of each length on each connection.
#[derive(Debug, Default)]
pub(super) struct Shortest(FxHashMap<FlowId, Vec<(Bytes, Span)>>);

/// Most lengths of a connection whose shortest times are kept.
const MOST_LENGTHS: usize = 64;

impl Shortest {
    /// Takes note of a simulated call.
    pub(super) fn note(&mut self, call: &[Option<Transfer>]) {
        for own in call.iter().flatten() {
            let known = self.0.entry(own.connection).or_default();
            match known.iter().position(|(bytes, _)| *bytes == own.bytes) {
                Some(place) => known[place].1 = own.took().min(known[place].1),
                None if known.len() < MOST_LENGTHS => known.push((own.bytes, own.took())),
                None => {}
            }
        }
    }

    /// Latency of a message that occupies its connection for `gap`: the shortest time of any length, less or more what the difference of
    /// the lengths takes.
    fn least(&self, own: &Transfer, gap: Span) -> Span {
        let known = self.0.get(&own.connection).into_iter().flatten();
        let least = known.map(|&(bytes, least)| {
            let difference = bytes.as_u64().abs_diff(own.bytes.as_u64());
            let more = gap.as_ps() as f64 * difference as f64 / own.bytes.as_u64().max(1) as f64;
            let more = Span::from_ps(more as u64);
            match bytes < own.bytes {
                // Without a gap, nothing is known of the difference.
                true if gap.is_zero() => own.took(),
                true => least + more,
                false => least.saturating_sub(more),
            }
        });
        least.fold(own.took(), Span::min)
    }
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
            before: None,
        })
    }

    /// The same after a message of another call that arrived at `us`.
    fn after(us: u64, own: Option<Transfer>) -> Option<Transfer> {
        let before = Some(Time::from_us(us));
        own.map(|own| Transfer { before, ..own })
    }

    fn own_times(call: &[Option<Transfer>]) -> Vec<Times> {
        let mut shortest = Shortest::default();
        shortest.note(call);
        times_of(call, &shortest)
    }

    fn replay(transfers: &[Option<Transfer>], late: Span) -> Vec<Option<(Time, Time)>> {
        let times = own_times(transfers);
        let mut last: FxHashMap<FlowId, LastArrival> = FxHashMap::default();
        let mut order: Vec<usize> = (0..transfers.len()).collect();
        order.sort_by_key(|&place| transfers[place].map(|own| own.posted));
        let mut found = vec![None; transfers.len()];
        for place in order {
            if let Some(own) = transfers[place] {
                let last = last.entry(own.connection).or_default();
                found[place] = Some(last.next(own.posted + late, times[place], 0.0));
            }
        }
        found
    }

    #[test]
    fn a_call_with_the_same_posts_has_the_same_arrivals() {
        let mut random = RandomStream::new(1, Purpose::Test, 0);
        for _ in 0..200 {
            let mut next = [(0u64, 0u64); 3];
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
    fn a_call_is_together_when_its_last_rank_has_come() {
        // The second message of a connection is no first post.
        let call = [
            transfer(0, 0, 10),
            transfer(1, 7, 19),
            transfer(0, 12, 22),
            None,
        ];
        assert_eq!(together(&call), 15e6);
        assert_eq!(together(&[None]), 0.0);
    }

    #[test]
    fn messages_that_waited_for_one_another_do_so_again() {
        // A link that takes 8 us for a message, with a latency of 10 us. The second message waits for the first, the third for nothing.
        let transfers = [transfer(0, 0, 10), transfer(0, 1, 18), transfer(0, 30, 40)];
        let times = own_times(&transfers);
        let mut last = LastArrival::default();
        let mut arrivals = |posts: [u64; 3]| {
            last = LastArrival::default();
            let arrival =
                |(post, own): (u64, &Times)| last.next(Time::from_us(post), *own, 0.0).0.as_us();
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

    #[test]
    fn a_message_has_left_a_delay_before_it_arrives() {
        // The link takes 8 us for each, and 2 us of the latency are delay.
        let times = own_times(&[transfer(0, 0, 10), transfer(0, 1, 18)]);
        assert_eq!(times[1].left(Time::from_us(18)), Time::from_us(16));
        // One message tells nothing about the link.
        let times = own_times(&[transfer(0, 0, 10)]);
        assert_eq!(times[0].left(Time::from_us(10)), Time::ZERO);
    }

    #[test]
    fn calls_that_follow_one_another_wait_once() {
        // The first message waits for one of an earlier call, which arrives at 10 us.
        let own = [after(10, transfer(0, 5, 18)), transfer(0, 6, 26)];
        let times = own_times(&own);
        assert_eq!(level(&times, &own, Measure::Messages), 1.0);
        let mut last = LastArrival(Some(Time::from_us(10)));
        let arrival =
            |last: &mut LastArrival, us, times| last.next(Time::from_us(us), times, 0.0).0;
        assert_eq!(arrival(&mut last, 5, times[0]), Time::from_us(18));
        assert_eq!(arrival(&mut last, 6, times[1]), Time::from_us(26));
        // 2 us later each.
        let later = [after(10, transfer(0, 5, 20)), transfer(0, 6, 28)];
        // The first one took from the earlier arrival on 10 us instead of 8, and the second one as long as before.
        assert!((level(&times, &later, Measure::Connections) - 18.0 / 16.0).abs() < 1e-9);
        assert!((level(&times, &later, Measure::Messages) - 18.0 / 16.0).abs() < 1e-9);
    }

    #[test]
    fn calls_whose_messages_alternate_wait_once() {
        // Messages of another call arrive at 18 us and 34 us. The link takes 8 us for each of all.
        let own = [
            transfer(0, 0, 10),
            after(18, transfer(0, 3, 26)),
            after(34, transfer(0, 4, 42)),
        ];
        let times = own_times(&own);
        assert_eq!(level(&times, &own, Measure::Messages), 1.0);
        let mut last = LastArrival::default();
        let mut arrivals = Vec::new();
        for (posted, place) in [(0, 0), (1, 1), (3, 1), (4, 2), (4, 2)] {
            let (arrival, _) = last.next(Time::from_us(posted), times[place], 0.0);
            arrivals.push(arrival.as_us());
        }
        assert_eq!(arrivals, [10.0, 18.0, 26.0, 34.0, 42.0]);
    }

    #[test]
    fn latencies_are_those_of_calls_that_did_not_wait() {
        let mut shortest = Shortest::default();
        shortest.note(&[transfer(0, 0, 10)]);
        // Messages wait for one of another call; the link takes 8 us for each.
        let own = [after(30, transfer(0, 5, 38)), transfer(0, 6, 46)];
        shortest.note(&own);
        let times = times_of(&own, &shortest);
        assert_eq!(level(&times, &own, Measure::Messages), 1.0);
        // Without the other call, they do not.
        let mut last = LastArrival::default();
        assert_eq!(
            last.next(Time::from_us(50), times[0], 0.0).0,
            Time::from_us(60)
        );
        // One that follows one and a half messages with packets waits for them.
        let mut last = LastArrival::default();
        assert_eq!(
            last.next(Time::from_us(50), times[0], 1.5).0,
            Time::from_us(72)
        );
    }
}
