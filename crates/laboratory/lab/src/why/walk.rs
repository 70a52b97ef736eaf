//! The walk back along the critical path of a flow: from the acknowledgement that completed it to the instant at which it was ready.
//!
//! Each step finds the one cause without which the event at the cursor would have happened earlier. It assigns the time before the cursor
//! to that cause, and moves the cursor to its begin.
//!
//! * A packet that has crossed a link: propagation, the latency of a switch, serialisation.
//! * A packet that waited in front of a link: the time since the departure of the flow's previous packet is queueing behind other flows, or
//!   a pause. The walk continues with that previous packet at this link, because the link was busy with the flow. Without a previous
//!   packet, the walk continues with the packet's arrival.
//! * An acknowledgement: its path, then the path of the packet that it answers.
//! * A packet at its sender: the wire was busy with packets of the flow or of other flows; or pacing, the window, a loss, or the
//!   application held the packet back. An acknowledgement opens a window, and the walk continues with it. The unloaded time of such a round
//!   trip counts as window, because a larger window would have avoided it.

use super::follow::{Hop, PacketId, Sent, arrival};
use super::trace::Trace;
use clearway_fabric::topology::LinkId;
use clearway_results::DelayPart as Part;
use clearway_transport::{Class, SendLimit};
use clearway_units::{FlowId, Span, Time};
use rustc_hash::FxHashSet;
use std::collections::BTreeMap;

/// Time by part and link.
pub(super) type Ledger = BTreeMap<(Part, Option<LinkId>), Span>;

/// Facts of a flow that the walk needs.
pub(super) struct Subject {
    pub(super) flow: FlowId,
    /// The link of the NIC that sends.
    pub(super) uplink: LinkId,
    pub(super) class: Class,
    /// The class in which acknowledgements wait.
    pub(super) class_of_answers: Class,
    /// True if a sender retransmits everything from a lost packet on.
    pub(super) goes_back: bool,
    pub(super) started: Time,
    pub(super) finished: Time,
}

/// Position of the walk.
#[derive(Debug, Clone, Copy)]
enum At {
    /// Arrival of an answer at the sender of the flow.
    Answer(PacketId),
    /// Arrival of a packet at the far end of its hop with this number.
    Arrival(PacketId, usize),
    /// Begin of the transmission of this data packet at its NIC.
    Send(u8, usize),
    /// Begin of the transmission of a probe at its NIC.
    Probe,
    /// Time at which the flow was ready.
    Start,
}

pub(super) struct Walk<'a> {
    trace: &'a Trace<'a>,
    subject: &'a Subject,
    cursor: Time,
    /// True after the walk has passed a window limit.
    limited: bool,
    ledger: Ledger,
    /// Other flows that the NIC served while the flow waited.
    pub(super) at_nic: FxHashSet<FlowId>,
    /// Lengths and ends of the times in which the flow had no data to send.
    pub(super) idle: Vec<(Span, Time)>,
}

impl<'a> Walk<'a> {
    pub(super) fn new(trace: &'a Trace<'a>, subject: &'a Subject) -> Self {
        Self {
            trace,
            subject,
            cursor: subject.finished,
            limited: false,
            ledger: Ledger::new(),
            at_nic: FxHashSet::default(),
            idle: Vec::new(),
        }
    }

    /// Walks back to the start; the parts add up to the completion time of the flow.
    pub(super) fn run(&mut self) -> Ledger {
        let (flow, finished) = (self.subject.flow, self.subject.finished);
        let answer = self.trace.answer_at(flow, finished);
        self.back_from(answer.map_or(At::Start, At::Answer))
    }

    /// Walks back from the arrival of the packet that ended a message, at the sender or at the receiver. The time between that arrival and
    /// `finished` stays unexplained.
    pub(super) fn run_from(&mut self, (came, id): (Time, PacketId)) -> Ledger {
        self.take(came, Part::Unexplained, None);
        let hops = self.trace.hops(id).len();
        self.back_from(match id.is_answer {
            true => At::Answer(id),
            false => At::Arrival(id, hops - 1),
        })
    }

    fn back_from(&mut self, mut at: At) -> Ledger {
        while self.cursor > self.subject.started {
            at = match at {
                At::Answer(id) => self.answer(id),
                At::Arrival(id, hop) => self.crossing(id, hop),
                At::Send(queue_pair, place) => self.send(queue_pair, place),
                At::Probe => self.probe(),
                At::Start => break,
            };
        }
        self.take(self.subject.started, Part::Unexplained, None);
        std::mem::take(&mut self.ledger)
    }

    /// Assigns the time between `from` and the cursor to `part`, and moves the cursor to `from`.
    fn take(&mut self, from: Time, part: Part, link: Option<LinkId>) {
        let from = from.max(self.subject.started);
        assert!(from <= self.cursor, "the walk only goes back");
        if from < self.cursor {
            *self.ledger.entry((part, link)).or_default() += self.cursor - from;
            self.cursor = from;
        }
    }

    /// As [`take`](Self::take), for the time of packets on unloaded links.
    fn take_unloaded(&mut self, from: Time, part: Part, link: Option<LinkId>) {
        match self.limited {
            true => self.take(from, Part::Window, None),
            false => self.take(from, part, link),
        }
    }

    /// Assigns time in front of a link: pauses, or queueing behind other packets.
    fn take_wait(&mut self, from: Time, hop: &Hop, control: Class) {
        let class = match hop.class.is_data() {
            true => hop.class,
            false => control,
        };
        let link = hop.link;
        let pauses: Vec<_> = self
            .trace
            .pauses((from, self.cursor), link, class)
            .collect();
        for (begin, end) in pauses.into_iter().rev() {
            self.take(end, Part::Queueing, Some(link));
            self.take(begin, Part::Pause, Some(link));
        }
        self.take(from, Part::Queueing, Some(link));
    }

    /// Assigns the time between the end of a transmission and the arrival at the far end.
    fn take_flight(&mut self, hop: &Hop) {
        let topology = self.trace.topology;
        let propagation = topology.cables[hop.link.cable()].delay;
        self.take_unloaded(hop.end + propagation, Part::SwitchLatency, None);
        self.take_unloaded(hop.end, Part::Propagation, None);
    }

    /// Follows the path of an answer back to the arrival of the packet that it answers.
    fn answer(&mut self, id: PacketId) -> At {
        let trace = self.trace;
        let asked = PacketId {
            is_answer: false,
            ..id
        };
        let (Some((first, others)), Some(last_asked)) =
            (trace.hops(id).split_first(), trace.hops(asked).last())
        else {
            return At::Start;
        };
        let arrivals = [first].into_iter().chain(others);
        let arrivals: Vec<Time> = [arrival(trace.topology, last_asked)]
            .into_iter()
            .chain(arrivals.map(|hop| arrival(trace.topology, hop)))
            .collect();
        for (hop, came) in trace.hops(id).iter().zip(arrivals).rev() {
            self.take_flight(hop);
            self.take_unloaded(hop.start, Part::Serialisation, None);
            self.take_wait(came, hop, self.subject.class_of_answers);
        }
        At::Arrival(asked, trace.hops(asked).len() - 1)
    }

    /// Follows a packet that crossed a link back to its origin, or to the origin of the flow's packet in front of it.
    fn crossing(&mut self, id: PacketId, place: usize) -> At {
        let hop = self.trace.hops(id)[place];
        self.take_flight(&hop);
        self.take_unloaded(hop.start, Part::Serialisation, Some(hop.link));
        self.queue(hop, place)
    }

    /// Explains why a packet began to leave on a link only now.
    fn queue(&mut self, mut hop: Hop, mut place: usize) -> At {
        let trace = self.trace;
        loop {
            let hops = trace.hops(hop.packet);
            let Some(before) = place.checked_sub(1).map(|place| &hops[place]) else {
                return match trace.place(self.subject.flow, hop.start) {
                    Some((queue_pair, place)) => At::Send(queue_pair, place),
                    None => At::Probe,
                };
            };
            let came = arrival(trace.topology, before);
            let own = trace.before(&hop).filter(|own| own.end > came);
            let Some(own) = own else {
                self.take_wait(came, &hop, self.subject.class);
                return At::Arrival(hop.packet, place - 1);
            };
            self.take_wait(own.end, &hop, self.subject.class);
            self.take(own.start, Part::Serialisation, Some(own.link));
            let hops = trace.hops(own.packet);
            place = hops.partition_point(|hop| hop.end < own.end);
            hop = own;
        }
    }

    /// Explains a probe. The trace only shows that a probe waited for the answer to an earlier packet.
    fn probe(&mut self) -> At {
        let sent = self.trace.sent.iter();
        let before = sent
            .filter(|((flow, _), _)| *flow == self.subject.flow)
            .filter_map(|(&(_, queue_pair), sent)| {
                let place = sent.partition_point(|sent| sent.start < self.cursor);
                let place = place.checked_sub(1)?;
                Some((sent[place].start, queue_pair, place))
            })
            .max();
        self.recover(before)
    }

    /// Assigns the time since `earlier` to the detection and repair of a loss.
    fn recover(&mut self, earlier: Option<(Time, u8, usize)>) -> At {
        let from = earlier.map_or(self.subject.started, |(start, ..)| start);
        self.take(from, Part::Recovery, None);
        match earlier {
            Some((_, queue_pair, place)) => At::Send(queue_pair, place),
            None => At::Start,
        }
    }

    /// The transmission of the same data before transmission `place`.
    fn earlier_copy(&self, queue_pair: u8, place: usize) -> Option<(Time, u8, usize)> {
        let sent = &self.trace.sent[&(self.subject.flow, queue_pair)];
        let copy = (0..place)
            .rev()
            .find(|&other| sent[other].psn == sent[place].psn)?;
        Some((sent[copy].start, queue_pair, copy))
    }

    /// Explains why a data packet began to leave its NIC only now.
    fn send(&mut self, queue_pair: u8, place: usize) -> At {
        let key = (self.subject.flow, queue_pair);
        let (trace, sent) = (self.trace, self.trace.sent[&key].as_slice());
        let before = place.checked_sub(1).map(|place| sent[place]);
        let limits = trace.limits.get(&key).map_or(&[][..], Vec::as_slice);
        // Limits that change because of this departure come later in the list.
        let until_now = limits.partition_point(|&(time, _)| time <= self.cursor);
        let ready = |&(_, limit): &(Time, SendLimit)| limit == SendLimit::Wire;
        let known = limits[..until_now].iter().rposition(ready);
        let limits = &limits[..known.map_or(0, |known| known + 1)];
        if sent[place].again && self.follows_loss(before, &sent[place], limits) {
            return self.recover(self.earlier_copy(queue_pair, place));
        }
        let since = before.map_or(self.subject.started, |before| before.end);
        for (number, &(from, limit)) in limits.iter().enumerate().rev() {
            let from = from.max(since);
            match limit {
                SendLimit::Wire => self.take_nic(from),
                SendLimit::Pacing => self.take(from, Part::Pacing, None),
                SendLimit::Window => {
                    // The window opened at the cursor, where the limit ended.
                    let opened = number + 1 < limits.len() && limits[number + 1].0 == self.cursor;
                    let answer = trace.answer_at(self.subject.flow, self.cursor);
                    if let Some(answer) = answer.filter(|_| opened) {
                        self.limited = true;
                        return At::Answer(answer);
                    }
                    self.take(from, Part::Window, None);
                }
                SendLimit::Credit => self.take(from, Part::Credit, None),
                SendLimit::Application if sent[place].again => {
                    return self.recover(self.earlier_copy(queue_pair, place));
                }
                SendLimit::Application => {
                    let until = self.cursor;
                    self.take(from, Part::Waiting, None);
                    self.idle.push((until - self.cursor, until));
                }
            }
            if self.cursor <= since {
                break;
            }
        }
        let Some(before) = before else {
            return At::Start;
        };
        // The limits usually explain all time between the two packets, so only the previous packet remains.
        self.take(before.end, Part::Unexplained, None);
        let part = match before.again {
            true => Part::Recovery,
            false => Part::Serialisation,
        };
        let link = (!before.again).then_some(self.subject.uplink);
        self.take(before.start, part, link);
        At::Send(queue_pair, place - 1)
    }

    /// True if a retransmitted packet waited for the detection of its loss, and not only for its turn.
    fn follows_loss(
        &self,
        before: Option<Sent>,
        sent: &Sent,
        limits: &[(Time, SendLimit)],
    ) -> bool {
        let Some(before) = before else {
            return false;
        };
        if self.subject.goes_back {
            return before.psn.wrapping_add(1) != sent.psn;
        }
        let ready = limits.last().map(|&(since, _)| since);
        let losses = self.trace.losses.get(&self.subject.flow);
        let detected = losses.is_some_and(|losses| {
            let first = losses.partition_point(|&time| time <= before.start);
            losses.get(first).is_some_and(|&time| time <= sent.start)
        });
        detected && ready.is_some_and(|ready| ready > before.end)
    }

    /// Assigns time at the NIC while the flow may send: the wire carries packets of this or other flows, or is paused.
    fn take_nic(&mut self, from: Time) {
        let link = self.subject.uplink;
        let pauses: Vec<_> = self
            .trace
            .pauses((from, self.cursor), link, self.subject.class)
            .collect();
        for (begin, end) in pauses.into_iter().rev() {
            self.take_wire(end, link);
            self.take(begin, Part::Pause, Some(link));
        }
        self.take_wire(from, link);
    }

    /// Assigns time at the NIC without pauses.
    fn take_wire(&mut self, from: Time, link: LinkId) {
        let all = self
            .trace
            .transmissions
            .get(&link)
            .map_or(&[][..], Vec::as_slice);
        let mut place = all.partition_point(|other| other.start < self.cursor);
        while self.cursor > from && place > 0 {
            place -= 1;
            let other = all[place];
            if other.end <= from {
                break;
            }
            // The wire is idle although the flow may send, so the allocation of rates holds the flow back.
            self.take(other.end.max(from).min(self.cursor), Part::Pacing, None);
            if other.flow == self.subject.flow {
                self.take(other.start.max(from), Part::Serialisation, Some(link));
            } else {
                self.at_nic.insert(other.flow);
                self.take(other.start.max(from), Part::Queueing, Some(link));
            }
        }
        self.take(from, Part::Pacing, None);
    }
}
