//! Source of a flow: life cycle of its control packets, and the numbers of its speculative packets.
//!
//! One control packet is on its way at any time. The next follows at once on its return, but not within one round trip of the last.
//! When all data has been sent, the next one is marked as leaving, and with its return the source is done. A control packet that is not
//! back after four round trips, doubled with each in a row, is taken for lost and sent anew, as it last came back; an echo that comes
//! later is ignored.
//!
//! All times are of the host's clock.

use super::record::{Connections, ControlRecord, Speculative, Trip};
use clearway_units::{Rate, Span, Time};

/// Round trips after which a control packet is taken for lost.
const TIMEOUT_ROUND_TRIPS: u64 = 4;

/// Most doublings of that time.
const MOST_DOUBLINGS: u32 = 10;

/// Settings of a [`Source`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SourceParameters {
    /// Rate of the host's own link: the host limit, unless the [demand](Source::set_demand) of the flow is less.
    pub host_rate: Rate,
    /// Least time between two control packets: an unloaded round trip.
    pub round_trip: Span,
    /// The most packets that the flow sends before it has a rate: the bandwidth-delay product, or 0 without 1RC.
    pub most_speculative: u32,
}

/// News that a control packet brought back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Returned {
    /// Rate at which the flow may send from now on.
    pub rate: Rate,
    /// With the first return, the number of the flow's speculative packets that arrive: always the first ones. The next packet to
    /// send is the one after.
    pub delivered: Option<u32>,
}

/// The flow's half of s-PERC and 1RC.
#[derive(Debug, Clone)]
pub struct Source {
    parameters: SourceParameters,
    /// The record as it last came back, or as it began; `None` before the first control packet.
    known: Option<ControlRecord>,
    /// Number and time of the last control packet.
    sequence: u16,
    sent: Time,
    due: Time,
    outstanding: bool,
    rate: Option<Rate>,
    all_sent: bool,
    done: bool,
    timeouts: u32,
    /// Timeouts since a control packet last came back.
    in_a_row: u32,
    speculated: SequenceRuns,
    /// The most that the flow can use; without it only the host's limit holds.
    demand: Option<Rate>,
}

impl Source {
    /// A flow that starts at `start`.
    pub fn new(start: Time, parameters: SourceParameters) -> Self {
        Self {
            parameters,
            known: None,
            sequence: 0,
            sent: start,
            due: start,
            outstanding: false,
            rate: None,
            all_sent: false,
            done: false,
            timeouts: 0,
            in_a_row: 0,
            speculated: SequenceRuns::default(),
            demand: None,
        }
    }

    /// Sets the rate that the flow can use, which limits the demand of its next control packets.
    pub fn set_demand(&mut self, demand: Rate) {
        self.demand = Some(demand);
    }

    /// Time at which the next control packet is to be sent, as far as is known now; [`Time::NEVER`] once the source is done.
    pub fn due(&self) -> Time {
        self.due
    }

    /// Takes the control packet that is due; `None` before. It goes out at once, ahead of all data that is taken later.
    pub fn transmit(&mut self, now: Time, connections: Connections) -> Option<ControlRecord> {
        if self.done || now < self.due {
            return None;
        }
        self.timeouts += u32::from(self.outstanding);
        self.in_a_row += u32::from(self.outstanding);
        let line = self.parameters.host_rate;
        let host_rate = self.demand.map_or(line, |demand| demand.min(line));
        let leaving = self.will_leave();
        let mut record = *self
            .known
            .get_or_insert_with(|| ControlRecord::new(now, host_rate, connections));
        self.sequence = self.sequence.wrapping_add(1);
        record.begin_trip(Trip {
            now,
            sequence: self.sequence,
            open: connections.open,
            host_rate,
            leaving,
            has_rate: self.rate.is_some(),
        });
        self.sent = now;
        self.outstanding = true;
        // Doubled each time: a round trip that queues make longer must not be taken for a loss for ever.
        let timeout =
            self.parameters.round_trip * (TIMEOUT_ROUND_TRIPS << self.in_a_row.min(MOST_DOUBLINGS));
        self.due = now.saturating_add(timeout);
        Some(record)
    }

    /// Takes a control packet that came back. `None` if it is not the one that is awaited, such as an old one that was taken for
    /// lost.
    pub fn on_return(&mut self, now: Time, record: &ControlRecord) -> Option<Returned> {
        let known = self.known.as_mut()?;
        // The sequence number wraps after 2^16 control packets, so the times must also agree.
        let awaited = self.outstanding
            && record.sequence() == self.sequence
            && record.sent() == self.sent
            && record.first() == known.first();
        if !awaited {
            return None;
        }
        *known = *record;
        self.outstanding = false;
        self.in_a_row = 0;
        // At most one control packet per unloaded round trip.
        self.due = now.max(self.sent.saturating_add(self.parameters.round_trip));
        let delivered = self.rate.is_none().then(|| self.settle(record));
        let rate = rate_of(record).min(self.parameters.host_rate);
        self.rate = Some(rate);
        if record.leaving() && self.all_sent {
            (self.done, self.due) = (true, Time::NEVER);
        }
        Some(Returned { rate, delivered })
    }

    /// Counts the speculative packets that were let through. If some were not, there is more to send.
    fn settle(&mut self, record: &ControlRecord) -> u32 {
        let speculated = std::mem::take(&mut self.speculated);
        let delivered = speculated.below(record.let_through().unwrap_or(u32::MAX));
        self.all_sent &= delivered == speculated.count;
        delivered
    }

    /// Takes a number for a speculative packet that is sent now. `None` before the first control packet has been sent and once it has
    /// returned, after as many as the flow may send, and if the host does not know the flow's epoch. It does if the connections of
    /// the first control packet came from `numbers`, unless it has forgotten it since.
    pub fn speculate(&mut self, numbers: &mut SpeculativeSequence) -> Option<Speculative> {
        self.speculate_by(|_, first| numbers.next(first))
    }

    /// As [`speculate`](Self::speculate), with numbers of the flow's own: 1RC without weights (§5.2).
    pub fn speculate_alone(&mut self) -> Option<Speculative> {
        self.speculate_by(|count, _| Some(count))
    }

    /// Takes a number for a speculative packet by the count of those before it and the start of the flow.
    fn speculate_by(
        &mut self,
        number: impl FnOnce(u32, Time) -> Option<u32>,
    ) -> Option<Speculative> {
        let known = self.known.filter(|_| self.rate.is_none())?;
        if self.speculated.count >= self.parameters.most_speculative {
            return None;
        }
        let sequence = number(self.speculated.count, known.first())?;
        self.speculated.push(sequence);
        Some(Speculative {
            first: known.first(),
            sequence,
            connections: known.speculative_connections,
        })
    }

    /// Takes note that all data has been sent: the next control packet leaves. If links drop the tail of the speculative packets, it
    /// no longer holds, and has to be said again.
    pub fn on_all_sent(&mut self, now: Time) {
        self.all_sent = true;
        // No link has seen the flow yet, so it has nothing to leave.
        if self.known.is_none() {
            (self.done, self.due) = (true, Time::NEVER);
        } else if !self.outstanding && !self.done {
            self.due = self.due.max(now);
        }
    }

    /// Ends the source without a word to the links, which forget the flow when they have not heard of it for long enough.
    pub(crate) fn vanish(&mut self) {
        (self.done, self.due) = (true, Time::NEVER);
    }

    /// Rate at which the flow may send; `None` until the first control packet has returned.
    pub fn rate(&self) -> Option<Rate> {
        self.rate
    }

    /// True if the next control packet is marked as leaving.
    pub(crate) fn will_leave(&self) -> bool {
        // A flow that does not know yet which packets were dropped cannot have sent all.
        self.all_sent && self.rate.is_some()
    }

    /// True once the links have forgotten the flow.
    pub fn is_done(&self) -> bool {
        self.done
    }

    /// Control packets that were taken for lost.
    pub fn timeouts(&self) -> u32 {
        self.timeouts
    }
}

/// Rate of a record, at least 1 bit/s, because a [`Rate`] is never zero.
fn rate_of(record: &ControlRecord) -> Rate {
    Rate::from_bps(((record.rate() * 8.0) as u64).max(1))
}

/// Ascending numbers of a flow's speculative packets, as runs of first number and length: flows of a host take turns.
#[derive(Debug, Clone, Default)]
struct SequenceRuns {
    runs: Vec<(u32, u32)>,
    count: u32,
}

impl SequenceRuns {
    fn push(&mut self, sequence: u32) {
        self.count += 1;
        match self.runs.last_mut() {
            Some((start, length)) if start.wrapping_add(*length) == sequence => *length += 1,
            _ => self.runs.push((sequence, 1)),
        }
    }

    /// Count of the numbers below a limit.
    fn below(&self, limit: u32) -> u32 {
        self.runs
            .iter()
            .map(|&(start, length)| limit.saturating_sub(start).min(length))
            .sum()
    }
}

/// Numbers of one epoch's speculative packets.
#[derive(Debug, Clone, Copy)]
struct EpochNumbers {
    epoch: u64,
    next: u32,
    /// Connections open at the start of the epoch.
    connections: u16,
}

/// Epochs whose numbers a host keeps: a flow speculates for one round trip, thus mostly in its own epoch and the next.
const EPOCHS: usize = 4;

/// Speculative sequence numbers of a host, which its flows share in each epoch (§5.3.1), and the count of its connections.
#[derive(Debug, Clone)]
pub struct SpeculativeSequence {
    length: Span,
    open: u16,
    /// The last epochs, in a ring by epoch.
    epochs: [EpochNumbers; EPOCHS],
    /// The last epoch that has been entered.
    present: u64,
}

impl SpeculativeSequence {
    /// A host without connections, in a network with epochs of `length`.
    ///
    /// # Panics
    /// If epochs have no length.
    pub fn new(length: Span) -> Self {
        assert!(!length.is_zero(), "an epoch has a length");
        let numbers = |epoch| EpochNumbers {
            epoch,
            next: 0,
            connections: 0,
        };
        Self {
            length,
            open: 0,
            // Only the first is in use: no epoch has the tag of the others until it is entered.
            epochs: [0, u64::MAX, u64::MAX, u64::MAX].map(numbers),
            present: 0,
        }
    }

    /// Counts a connection that opens.
    pub fn on_open(&mut self, now: Time) {
        self.enter(now);
        self.open = self.open.saturating_add(1);
    }

    /// Counts a connection that closes.
    pub fn on_close(&mut self, now: Time) {
        self.enter(now);
        self.open = self.open.saturating_sub(1);
    }

    /// Connections open now, and at the start of the present epoch: at least one each.
    pub fn connections(&mut self, now: Time) -> Connections {
        self.enter(now);
        let at_epoch_start = self.epochs[self.slot(self.present)].connections;
        Connections {
            open: self.open.max(1),
            at_epoch_start: at_epoch_start.max(1),
        }
    }

    /// Takes the next number of the epoch in which a flow sent its first control packet; `None` if that is too long ago.
    fn next(&mut self, first: Time) -> Option<u32> {
        let epoch = self.epoch_of(first);
        let slot = self.slot(epoch);
        let numbers = &mut self.epochs[slot];
        (numbers.epoch == epoch).then(|| {
            let next = numbers.next;
            numbers.next = next.saturating_add(1);
            next
        })
    }

    /// Enters the epoch of `now`. Connections have not changed since the last call, hence not since the epoch's start.
    fn enter(&mut self, now: Time) {
        let epoch = self.epoch_of(now);
        if epoch <= self.present {
            return;
        }
        self.present = epoch;
        self.epochs[self.slot(epoch)] = EpochNumbers {
            epoch,
            next: 0,
            connections: self.open,
        };
    }

    fn epoch_of(&self, time: Time) -> u64 {
        time.as_ps() / self.length.as_ps()
    }

    fn slot(&self, epoch: u64) -> usize {
        (epoch % EPOCHS as u64) as usize
    }
}
