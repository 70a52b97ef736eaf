//! Skips through steady states of long flows.
//!
//! A run is *steady* while the same senders send the same messages, each at a constant rate and with constant bytes in flight. Then the
//! time until the next change is [skipped](Snapshot::skip): each sender skips the packets that it would have sent, and the clock of the run
//! moves on. Packets in flight, queues, port times, timers, sequence numbers and controllers stay as they are, by a clock of packets that
//! stands still meanwhile: nothing of a transport or controller has to be moved. A controller that counts bytes of a message or phase [says
//! so](clearway_transport::CongestionControl::counts_progress), and its flows are simulated.
//!
//! * The fabric is one part: flows that share no port are steady together, or not at all. With packets that are sprayed over all paths that
//!   is so anyway.
//! * The rates of [`WINDOWS`] windows are compared: half the width of the 95 % confidence interval of each sender's mean rate (Student's t)
//!   is at most [half](super::limits::SHARE_OF_ERROR) of the wanted error, for these windows and for pairs of them, which slow drifts make
//!   wider. So is the growth of its bytes in flight, in relation to what is delivered. Where it is not, windows become twice as long, and
//!   the first half of what was looked at is forgotten, in which the flows may have started. Windows are also
//!   [many](super::steady::TIMERS) times as long as what controllers' timers have left.
//! * The first skip is [`FIRST`] times as long as what was looked at. After it, the fabric is looked at again. If rates are as before,
//!   within half of the wanted error, the next skip may be twice as long, up to [`MOST`] times; if not, the first length applies again. The
//!   difference counts as an error of the skip; so does half of the wanted error if nothing is known of the rates after it, unless rates
//!   were [equal](EQUAL) in all windows.
//! * A skip ends before a flow starts, a program goes on by the clock, or the time limit; and before the end of a message, so that the last
//!   part of it is simulated.
//!
//! Few senders may repeat themselves exactly, such as flows that share a link by turns. Before a skip, the fabric is looked at after
//! [several](ROUNDS) rounds, and if all senders are as they were, with the rates that were measured, the skip is a whole number of such
//! periods. The result is then exact to the picosecond. Otherwise it is a whole number of packets of the sender that is through first, and
//! exact if it is alone.

use super::limits::SHARE_OF_ERROR;
use super::steady::{Look, Steady, Stride, WINDOWS};
use clearway_fabric::{LinkTotals, Sampler, Snapshot};
use clearway_units::{Bytes, Span, Time, mix64};

/// Length of the first windows in base round trips.
const ROUND_TRIPS: u64 = 4;
/// Length of the first skip, and of the longest one, in lengths of what was looked at.
const FIRST: u64 = 4;
const MOST: u64 = 64;
/// Rounds in which few senders may come back to where they were.
const ROUNDS: u32 = 256;
/// Most senders that are looked at after each round, and the most uncertain rate then: exact periods leave little uncertainty.
const FEW: usize = 16;
const NARROW: f64 = 0.002;
/// Largest difference of the rates of an exact period from the measured ones.
const EQUAL: f64 = 0.0005;
/// Most windows of a pause after looks that saw a change.
const LONGEST_PAUSE: u64 = 16;

/// Settings of skips.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SkipWish {
    /// The wanted error, as a fraction.
    pub(crate) error: f64,
    /// Part of the skips to verify.
    pub(crate) verify: f64,
    pub(crate) seed: u64,
    /// The longest base round trip.
    pub(crate) round_trip: Span,
}

/// What was skipped.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct SkippedTime {
    /// Number of stretches.
    pub stretches: u64,
    /// Their time.
    pub time: Span,
    /// Bytes of messages that would have been sent in them.
    pub bytes: Bytes,
    /// The bytes as a part of the bytes of all flows, and the time as a part of the simulated time.
    pub shares: (f64, f64),
    /// Number of stretches that were simulated to be compared, and the largest difference of the bytes that a sender sent.
    pub verified: u64,
    /// See `verified`.
    pub found: f64,
}

/// Sampler that skips through steady states.
pub(crate) struct SteadySkips {
    wish: SkipWish,
    window: Span,
    due: Time,
    looks: Vec<Look>,
    /// Windows of the next pause after a change.
    pause: u64,
    /// Length of the next skip, in lengths of what was looked at.
    ahead: u64,
    /// The state before the last skip, and its time, until the rates after it are known.
    before: Option<(Steady, Span)>,
    /// Beginning of a stretch that is simulated instead.
    verifies: Option<(Steady, Look)>,
    /// A steady state with few senders, and where they were: they may come back to it in so many rounds.
    search: Option<(Steady, Look, u32)>,
    /// A period that all senders had before the last skip.
    stride: Option<Stride>,
    decisions: u64,
    skipped: SkippedTime,
    /// Error in picoseconds that the skips may add up to.
    error: f64,
}

impl SteadySkips {
    pub(crate) fn new(wish: SkipWish) -> Self {
        let window = wish.round_trip * ROUND_TRIPS;
        Self {
            wish,
            window,
            due: Time::ZERO + window,
            looks: Vec::new(),
            pause: 1,
            ahead: FIRST,
            before: None,
            verifies: None,
            search: None,
            stride: None,
            decisions: 0,
            skipped: SkippedTime::default(),
            error: 0.0,
        }
    }

    /// What was skipped, and the error in picoseconds that it may have caused.
    pub(crate) fn result(&self) -> (SkippedTime, f64) {
        (self.skipped, self.error)
    }

    /// Begins anew after a change, and waits longer each time.
    fn restart(&mut self, now: Time) {
        self.looks.clear();
        if let Some((steady, time)) = self.before.take()
            && steady.width() > EQUAL
        {
            // The rates after the last skip will not be known.
            self.error += self.wish.error * SHARE_OF_ERROR * time.as_ps() as f64;
        }
        self.verifies = None;
        self.search = None;
        self.stride = None;
        self.ahead = FIRST;
        self.window = self.wish.round_trip * ROUND_TRIPS;
        self.due = now.saturating_add(self.window * self.pause);
        self.pause = (self.pause * 2).min(LONGEST_PAUSE);
    }

    fn look(&mut self, now: Time, snapshot: &mut Snapshot<'_>) {
        let Some(look) = Look::new(now, snapshot) else {
            return self.restart(now);
        };
        if let Some((steady, start)) = self.verifies.take() {
            self.verify(&steady, &start, &look);
        }
        if let Some((steady, start, left)) = self.search.take() {
            return self.search(now, (steady, start, left), &look, snapshot);
        }
        let last = self.looks.last();
        if last.is_some_and(|last| !last.has_senders_of(&look)) {
            return self.restart(now);
        }
        self.looks.push(look);
        self.due = now.saturating_add(self.window);
        if self.looks.len() <= WINDOWS {
            return;
        }
        match Steady::new(&self.looks, self.wish.error) {
            Some(steady) => self.go_on(now, steady, snapshot),
            None => {
                // Every other look of the second half is kept, because a transient may have been in the first one.
                let mut place = 0;
                self.looks.retain(|_| {
                    place += 1;
                    place > WINDOWS / 2 && place % 2 == 1
                });
                self.window = self.window * 2;
                self.due = now.saturating_add(self.window);
            }
        }
    }

    /// Skips a stretch of a steady state, or lets it be simulated for comparison.
    fn go_on(&mut self, now: Time, steady: Steady, snapshot: &mut Snapshot<'_>) {
        self.judge(&steady);
        let last = self.looks.pop();
        self.looks.clear();
        let (Some(time), Some(last)) = (self.length(&steady, None, snapshot), last) else {
            // The end of a message or of the pause is near.
            self.due = now.saturating_add(self.window * WINDOWS as u64);
            return;
        };
        self.pause = 1;
        self.decisions += 1;
        let draw = mix64(self.wish.seed ^ mix64(self.decisions));
        if (draw as f64) < self.wish.verify * u64::MAX as f64 {
            self.verifies = Some((steady, last));
            self.due = now.saturating_add(time);
        } else if let Some(stride) = self.stride.take().filter(|own| steady.has(own, EQUAL)) {
            let time = self.length(&steady, Some(&stride), snapshot);
            self.skip(now, (steady, Some(stride)), time, snapshot);
        } else if (2..=FEW).contains(&last.senders()) && steady.width() < NARROW {
            self.search = Some((steady, last, ROUNDS));
            self.due = now + Span::from_ps(1);
        } else {
            self.skip(now, (steady, None), Some(time), snapshot);
        }
    }

    /// Skips whole strides if the senders are where they were, or whatever it is after enough rounds.
    fn search(
        &mut self,
        now: Time,
        (steady, start, left): (Steady, Look, u32),
        look: &Look,
        snapshot: &mut Snapshot<'_>,
    ) {
        if !start.has_senders_of(look) {
            return self.restart(now);
        }
        // Senders may be as far as they were while queues are not.
        let stride = look
            .stride_from(&start)
            .filter(|own| steady.has(own, EQUAL));
        if stride.is_some() || left == 0 {
            let time = self.length(&steady, stride.as_ref(), snapshot);
            return self.skip(now, (steady, stride), time, snapshot);
        }
        self.search = Some((steady, start, left - 1));
        self.due = now + Span::from_ps(1);
    }

    /// Skips so much time, in whole strides if there are any.
    fn skip(
        &mut self,
        now: Time,
        (steady, stride): (Steady, Option<Stride>),
        time: Option<Span>,
        snapshot: &mut Snapshot<'_>,
    ) {
        self.due = now.saturating_add(self.window);
        let Some(time) = time else {
            return;
        };
        let mut bytes = Bytes::ZERO;
        snapshot.skip(time, |open| {
            let Some((message, left)) = open.skippable() else {
                return 0;
            };
            let id = (open.flow(), open.queue_pair(), message);
            let own = match &stride {
                Some(stride) => stride.packets_of(id) * (time.as_ps() / stride.time),
                None => steady
                    .course(id)
                    .map_or(0, |course| course.packets_in(time.as_ps())),
            };
            let own = own.min(left);
            bytes += Bytes::new(own * open.full_payload());
            own
        });
        let part = time.as_ps() as f64 / steady.span.as_ps() as f64;
        if !steady.links.is_empty() {
            snapshot.for_each_link(|mut view| {
                if let Some(traffic) = steady.links.get(view.link.0 as usize) {
                    view.add_skipped(&scaled(traffic, part));
                }
            });
        }
        self.skipped.stretches += 1;
        self.skipped.time += time;
        self.skipped.bytes += bytes;
        if stride.is_none() {
            self.error += steady.width() * time.as_ps() as f64;
        }
        self.before = Some((steady, time));
        self.stride = stride;
        self.due = (now + time).saturating_add(self.window);
    }

    /// Compares rates with those before the last skip.
    fn judge(&mut self, steady: &Steady) {
        let Some((before, time)) = self.before.take() else {
            return;
        };
        let difference = steady.difference(&before);
        self.error += difference * time.as_ps() as f64;
        self.ahead = match difference <= self.wish.error * SHARE_OF_ERROR {
            true => (self.ahead * 2).min(MOST),
            false => {
                self.stride = None;
                FIRST
            }
        };
    }

    /// Compares what the senders sent in a stretch with what they would have skipped.
    fn verify(&mut self, steady: &Steady, start: &Look, end: &Look) {
        if start.has_senders_of(end) {
            self.skipped.verified += 1;
            let found = end.largest_difference(start, steady);
            self.skipped.found = self.skipped.found.max(found);
        }
    }

    /// Time to skip: a whole number of strides, or of packets of the sender that is through first. `None` if it is not worth it.
    fn length(
        &self,
        steady: &Steady,
        stride: Option<&Stride>,
        snapshot: &mut Snapshot<'_>,
    ) -> Option<Span> {
        let margin = self.window * 2;
        let until_change = snapshot.longest_skip().saturating_sub(margin).as_ps();
        let mut through = (u64::MAX, None);
        snapshot.for_each_open_flow(|open| {
            let Some((message, left)) = open.skippable() else {
                return;
            };
            let id = (open.flow(), open.queue_pair(), message);
            if let Some(course) = steady.course(id) {
                let packets = left.saturating_sub(course.packets / 2);
                through = through.min((course.time_of(packets), Some(id)));
            }
        });
        let (until_end, first) = through;
        let looked_at = steady.span.as_ps();
        let most = looked_at.saturating_mul(self.ahead);
        let most = most.min(until_change).min(until_end);
        let first = steady.course(first?)?;
        let of_packets = first.time / greatest_common_divisor(first.time, first.packets);
        let period = stride.map_or(of_packets, |stride| stride.time);
        let time = most / period * period;
        (time >= looked_at).then(|| Span::from_ps(time))
    }
}

impl Sampler for SteadySkips {
    fn due(&self) -> Time {
        self.due
    }

    fn on_sample(&mut self, now: Time, snapshot: &mut Snapshot<'_>) {
        if !snapshot.is_last() {
            self.look(now, snapshot);
        }
    }
}

/// So many times the traffic.
fn scaled(traffic: &LinkTotals, part: f64) -> LinkTotals {
    let scaled = |count: u64| (count as f64 * part).round() as u64;
    LinkTotals {
        bytes: scaled(traffic.bytes),
        packets: scaled(traffic.packets),
        marks: scaled(traffic.marks),
        drops: scaled(traffic.drops),
        trims: scaled(traffic.trims),
        peak_queue: 0,
    }
}

fn greatest_common_divisor(a: u64, b: u64) -> u64 {
    match b {
        0 => a.max(1),
        _ => greatest_common_divisor(b, a % b),
    }
}
