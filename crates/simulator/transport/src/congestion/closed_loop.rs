//! Controllers in a loop with one switch port: hosts on separate links send to one receiver, and nothing is lost.

use super::{
    AckSample, Allowance, CongestionControl, Controller, ControllerSettings, NetworkFacts,
};
use super::{Bytes, PathFacts, RandomStream, Rate, Span, Time, Value};
use crate::congestion::telemetry::Hop;
use clearway_units::Purpose;
use std::collections::{BTreeMap, VecDeque};

const PAYLOAD: u64 = 1000;
const HEADER: u64 = 48;
/// Bytes of a packet on the wire.
const WIRE: Bytes = Bytes::new(PAYLOAD + HEADER);
const LINK: Span = Span::from_us(1);
const LINE: Rate = Rate::from_gbps(100);

/// One switch, links of 1 us at 100 Gb/s: the microbenchmark of Snyder §3.3.4.
pub(super) fn star() -> NetworkFacts {
    let rtt = LINK * 4 + LINE.span_of(Bytes::new(2 * (PAYLOAD + 2 * HEADER)));
    NetworkFacts {
        line_rate: LINE,
        base_rtt: rtt,
        propagation_rtt: LINK * 4,
        bdp: LINE.bytes_in(rtt),
        payload: PAYLOAD as u32,
        header: HEADER as u32,
        ack: HEADER as u32,
        path: PathFacts { rtt, switches: 1 },
    }
}

/// A controller with some of its settings changed.
pub(super) fn configured(name: &str, changes: &[(&str, Value)]) -> ControllerSettings {
    let mut settings = ControllerSettings::named(name).unwrap();
    for (key, value) in changes {
        settings.set(key, value).unwrap();
    }
    settings
}

#[derive(Debug, Clone, Copy)]
enum Occurrence {
    /// A flow may be able to send.
    Wake(usize),
    /// A packet of a flow, sent then, reaches the switch.
    Arrival(usize, Time),
    /// The packet at the head of the queue has left.
    Departure,
    /// An acknowledgement of a packet sent then.
    Ack(usize, Time, Hop),
}

pub(super) struct Flow {
    pub(super) controller: Controller,
    size: u64,
    pub(super) start: Time,
    sent: u64,
    pub(super) delivered: u64,
    /// Departure of the last packet; [`Time::NEVER`] before the first.
    last_sent: Time,
    wakes: Time,
    last_rtt: Span,
    pub(super) worst_rtt: Span,
    pub(super) finish: Option<Time>,
}

impl Flow {
    /// Earliest departure of the next packet: a gap after the last one, at the present rate.
    fn departure(&self) -> Time {
        if self.last_sent.is_never() {
            return self.start;
        }
        let rate = self.controller.allowance().rate;
        self.last_sent + rate.map_or(LINE, |rate| rate.min(LINE)).span_of(WIRE)
    }

    /// Allowed rate in bits per second.
    pub(super) fn rate(&self) -> f64 {
        let Allowance { window, rate } = self.controller.allowance();
        let by_window = window * 8e12 / self.last_rtt.as_ps() as f64;
        rate.map_or(by_window, |rate| by_window.min(rate.as_bps() as f64))
    }
}

pub(super) struct Loop {
    network: NetworkFacts,
    bottleneck: Rate,
    pub(super) now: Time,
    agenda: BTreeMap<(Time, u64), Occurrence>,
    number: u64,
    pub(super) flows: Vec<Flow>,
    queue: VecDeque<(usize, Time)>,
    left: u32,
    /// Bytes behind a packet from which on it is marked when it is dequeued.
    mark_from: u64,
    /// Telemetry of the packet that the switch transmits, taken when it was dequeued.
    hop: Option<Hop>,
    /// Bytes × picoseconds of queue, and when it was last brought up to date.
    area: f64,
    area_at: Time,
}

impl Loop {
    pub(super) fn new(bottleneck: Rate) -> Self {
        Self {
            network: star(),
            bottleneck,
            now: Time::ZERO,
            agenda: BTreeMap::new(),
            number: 0,
            flows: Vec::new(),
            queue: VecDeque::new(),
            left: 0,
            mark_from: u64::MAX,
            hop: None,
            area: 0.0,
            area_at: Time::ZERO,
        }
    }

    pub(super) fn add(&mut self, settings: &ControllerSettings, start: Time, size: u64) {
        let mut controller = settings.build(&self.network);
        let number = self.flows.len();
        controller.take_random(RandomStream::new(1, Purpose::Controller, number as u64));
        self.flows.push(Flow {
            controller,
            size,
            start,
            sent: 0,
            delivered: 0,
            last_sent: Time::NEVER,
            wakes: Time::NEVER,
            last_rtt: self.network.base_rtt,
            worst_rtt: Span::ZERO,
            finish: None,
        });
        self.wake(number);
    }

    fn schedule(&mut self, time: Time, what: Occurrence) {
        self.agenda.insert((time, self.number), what);
        self.number += 1;
    }

    pub(super) fn run_until(&mut self, end: Time) {
        while let Some(entry) = self.agenda.first_entry()
            && entry.key().0 <= end
        {
            let ((now, _), what) = entry.remove_entry();
            self.now = now;
            match what {
                Occurrence::Wake(flow) => self.on_wake(flow),
                Occurrence::Arrival(flow, stamp) => self.on_arrival(flow, stamp),
                Occurrence::Departure => self.on_departure(),
                Occurrence::Ack(flow, stamp, hop) => self.on_ack(flow, stamp, hop),
            }
        }
        self.now = end;
    }

    fn on_wake(&mut self, number: usize) {
        let flow = &mut self.flows[number];
        if flow.wakes != self.now {
            return;
        }
        flow.wakes = Time::NEVER;
        let open = ((flow.sent - flow.delivered) as f64) < flow.controller.allowance().window;
        if flow.sent >= flow.size || !open {
            return;
        }
        if flow.departure() > self.now {
            return self.wake(number);
        }
        flow.sent += PAYLOAD;
        flow.last_sent = self.now;
        flow.controller.on_sent(self.now, WIRE);
        let arrival = self.now + LINE.span_of(WIRE) + LINK;
        self.schedule(arrival, Occurrence::Arrival(number, self.now));
        self.wake(number);
    }

    fn wake(&mut self, number: usize) {
        let flow = &mut self.flows[number];
        let at = flow.departure().max(self.now);
        if at < flow.wakes {
            flow.wakes = at;
            self.schedule(at, Occurrence::Wake(number));
        }
    }

    /// Bytes in the switch that are not yet on their way.
    pub(super) fn queue(&self) -> u64 {
        self.queue.len().saturating_sub(1) as u64 * (PAYLOAD + HEADER)
    }

    fn note_queue(&mut self) {
        self.area += self.queue() as f64 * self.now.since(self.area_at).as_ps() as f64;
        self.area_at = self.now;
    }

    /// The average queue in bytes since the last call.
    pub(super) fn take_average_queue(&mut self, since: Time) -> f64 {
        self.note_queue();
        std::mem::take(&mut self.area) / self.now.since(since).as_ps() as f64
    }

    fn on_arrival(&mut self, flow: usize, stamp: Time) {
        self.note_queue();
        self.queue.push_back((flow, stamp));
        if self.queue.len() == 1 {
            self.start_departure();
        }
    }

    fn start_departure(&mut self) {
        self.hop = Some(Hop {
            time: self.now,
            rate: self.bottleneck,
            sent: self.left,
            queue: self.queue() as u32,
        });
        let takes = self.bottleneck.span_of(WIRE);
        self.schedule(self.now + takes, Occurrence::Departure);
    }

    fn on_departure(&mut self) {
        self.note_queue();
        let (flow, stamp) = self.queue.pop_front().unwrap();
        self.left = self.left.wrapping_add((PAYLOAD + HEADER) as u32);
        let hop = self.hop.take().unwrap();
        let back = LINK * 3 + LINE.span_of(Bytes::new(HEADER)) * 2;
        self.schedule(self.now + back, Occurrence::Ack(flow, stamp, hop));
        if !self.queue.is_empty() {
            self.start_departure();
        }
    }

    fn on_ack(&mut self, number: usize, stamp: Time, hop: Hop) {
        let flow = &mut self.flows[number];
        flow.delivered += PAYLOAD;
        flow.last_rtt = self.now.since(stamp);
        flow.worst_rtt = flow.worst_rtt.max(flow.last_rtt);
        flow.controller.on_ack(&AckSample {
            now: self.now,
            rtt: flow.last_rtt,
            ecn: u64::from(hop.queue) >= self.mark_from,
            acked: Bytes::new(PAYLOAD),
            in_flight: Bytes::new(flow.sent - flow.delivered),
            probe: false,
            delivered: Bytes::new(flow.delivered),
            hops: &[hop],
        });
        if flow.delivered >= flow.size {
            flow.finish = Some(self.now);
        }
        self.wake(number);
    }

    /// Jain's index of the rates of flows that are under way.
    pub(super) fn fairness(&self) -> f64 {
        let rates: Vec<f64> = self
            .flows
            .iter()
            .filter(|flow| flow.start <= self.now && flow.finish.is_none())
            .map(Flow::rate)
            .collect();
        let sum: f64 = rates.iter().sum();
        let squares: f64 = rates.iter().map(|rate| rate * rate).sum();
        sum * sum / (rates.len() as f64 * squares)
    }
}

/// Result of the staggered incast of Snyder §3.3.4: two flows of 1 MB start every 20 us.
#[derive(Debug, Clone, Copy)]
pub(super) struct Incast {
    /// Time between the first and the last completion.
    pub(super) spread: Span,
    /// Time from the last start until all flows have nearly the same rate.
    pub(super) fair_after: Option<Span>,
    /// Average queue in KB, in the first 100 us after the last start and from 400 to 800 us.
    pub(super) early_queue: f64,
    pub(super) late_queue: f64,
}

pub(super) fn staggered_incast(settings: &ControllerSettings, senders: u64) -> Incast {
    let mut incast = Loop::new(LINE);
    let start = |flow| Time::from_us(20 * (flow / 2));
    (0..senders).for_each(|flow| incast.add(settings, start(flow), 1_000_000));
    let last = start(senders - 1);
    incast.run_until(last);
    let mut fair_after = None;
    let mut queues = [0.0; 2];
    incast.take_average_queue(Time::ZERO);
    for us in 1..=800 {
        incast.run_until(last + Span::from_us(us));
        let all = incast.flows.iter().all(|flow| flow.finish.is_none());
        if fair_after.is_none() && all && incast.fairness() >= 0.95 {
            fair_after = Some(Span::from_us(us));
        }
        match us {
            100 => queues[0] = incast.take_average_queue(last),
            400 => drop(incast.take_average_queue(last)),
            800 => queues[1] = incast.take_average_queue(last + Span::from_us(400)),
            _ => {}
        }
    }
    incast.run_until(Time::from_us(20_000));
    let finishes = || incast.flows.iter().map(|flow| flow.finish.unwrap());
    Incast {
        spread: finishes().max().unwrap().since(finishes().min().unwrap()),
        fair_after,
        early_queue: queues[0] / 1000.0,
        late_queue: queues[1] / 1000.0,
    }
}

fn vai_sf() -> Vec<(&'static str, Value)> {
    vec![
        ("sampling-acks", Value::Integer(30)),
        ("variable-increase", Value::Boolean(true)),
    ]
}

fn without_flow_scaling(mut changes: Vec<(&'static str, Value)>) -> Vec<(&'static str, Value)> {
    changes.push(("flow-scaling", Value::Boolean(false)));
    changes
}

fn gbps(text: &str) -> Value {
    Value::Text(text.into())
}

/// Payload bytes of all flows so far.
fn delivered(flows: &[Flow]) -> f64 {
    flows.iter().map(|flow| flow.delivered as f64).sum()
}

/// Share of the line in payload and headers.
fn load(bytes: f64, span: Span) -> f64 {
    let wire = bytes * (PAYLOAD + HEADER) as f64 / PAYLOAD as f64;
    wire / LINE.bytes_in(span).as_f64()
}

#[test]
fn hpcc_alone_holds_95_percent_and_no_queue() {
    let mut one = Loop::new(LINE);
    one.add(&configured("hpcc", &[]), Time::ZERO, u64::MAX);
    one.run_until(Time::from_us(500));
    let before = delivered(&one.flows);
    one.take_average_queue(Time::ZERO);
    one.run_until(Time::from_us(2500));
    let load = load(delivered(&one.flows) - before, Span::from_ms(2));
    assert!((0.94..0.96).contains(&load), "{load}");
    let queue = one.take_average_queue(Time::from_us(500));
    assert!(queue < 100.0, "{queue}");
}

/// Fairness soon after the last start and after 10 ms, and the average queue of the 2 ms after that.
fn settle(changes: &[(&str, Value)], senders: u64) -> (f64, f64, f64) {
    let mut all = Loop::new(LINE);
    let settings = configured("hpcc", changes);
    (0..senders).for_each(|n| all.add(&settings, Time::from_us(20 * n), u64::MAX));
    all.run_until(Time::from_us(20 * senders + 40));
    let early = all.fairness();
    all.run_until(Time::from_us(10_000));
    let late = all.fairness();
    all.take_average_queue(Time::ZERO);
    all.run_until(Time::from_us(12_000));
    let queue = all.take_average_queue(Time::from_us(10_000));
    (early, late, queue)
}

#[test]
fn hpcc_flows_converge_with_hardly_a_queue() {
    let (_, late, queue) = settle(&[], 2);
    assert!(late > 0.99 && queue < 500.0, "{late} {queue}");
    let (early, late, queue) = settle(&[("rate-ai", gbps("1Gbps"))], 4);
    assert!(early < 0.9 && late > 0.99, "{early} {late}");
    assert!(queue < 1000.0, "{queue}");
}

/// With the default step flows become fair, but it takes milliseconds. Telemetry of the end of a transmission, instead of the dequeue,
/// would let them drift apart: arrivals behind a packet while it is on the wire raise `U`, most for the flow that has few packets.
#[test]
fn hpcc_flows_with_a_small_step_become_fair_slowly() {
    let (early, late, queue) = settle(&[], 4);
    assert!(early < 0.8 && late > 0.95, "{early} {late}");
    assert!(queue < 1000.0, "{queue}");
}

#[test]
fn swift_alone_fills_a_slower_link_and_stays_about_the_target() {
    let mut one = Loop::new(Rate::from_gbps(50));
    let settings = configured("swift", &without_flow_scaling(Vec::new()));
    one.add(&settings, Time::ZERO, u64::MAX);
    one.run_until(Time::from_us(1000));
    let before = delivered(&one.flows);
    one.flows[0].worst_rtt = Span::ZERO;
    one.run_until(Time::from_us(6000));
    let load = load(delivered(&one.flows) - before, Span::from_ms(5));
    assert!(load > 0.499, "{load}");
    // The target is 7 us. The last step goes beyond it by less than a packet.
    let worst = one.flows[0].worst_rtt;
    assert!(worst < Span::from_ns(7168), "{worst}");
}

/// One flow fills a slower link, and the queue stays below the bound of the high threshold.
#[test]
fn timely_alone_fills_a_slower_link_below_the_high_threshold() {
    let mut one = Loop::new(Rate::from_gbps(50));
    one.add(&configured("timely", &[]), Time::ZERO, u64::MAX);
    one.run_until(Time::from_us(2000));
    let before = delivered(&one.flows);
    one.flows[0].worst_rtt = Span::ZERO;
    one.run_until(Time::from_us(12_000));
    let load = load(delivered(&one.flows) - before, Span::from_ms(10));
    let worst = one.flows[0].worst_rtt;
    assert!(load > 0.48, "{load} {worst}");
    assert!(worst < star().base_rtt * 5, "{load} {worst}");
}

/// Flows that begin one after the other keep the link busy, except after a cut of several at once, with queues far below the high
/// threshold.
#[test]
fn timely_flows_fill_the_link_with_a_bounded_queue() {
    let mut all = Loop::new(LINE);
    let settings = configured("timely", &[]);
    (0..4).for_each(|n| all.add(&settings, Time::from_us(20 * n), u64::MAX));
    all.run_until(Time::from_us(5000));
    let before = delivered(&all.flows);
    all.take_average_queue(Time::ZERO);
    all.run_until(Time::from_us(15_000));
    let load = load(delivered(&all.flows) - before, Span::from_ms(10));
    let queue = all.take_average_queue(Time::from_us(5000));
    let fairness = all.fairness();
    assert!(load > 0.94, "{load} {queue} {fairness}");
    // Five base round trips, one of which is not queueing.
    let most = LINE.bytes_in(star().base_rtt * 4).as_f64();
    assert!(queue < most, "{load} {queue} {fairness}");
}

/// Marks from half of a bandwidth-delay product on hold four flows' queue there, and their windows together.
#[test]
fn smartt_flows_share_fairly_with_a_queue_at_the_mark() {
    let mut all = Loop::new(LINE);
    all.mark_from = star().bdp.as_u64() / 2;
    let settings = configured("smartt", &[]);
    (0..4).for_each(|n| all.add(&settings, Time::from_us(20 * n), u64::MAX));
    all.run_until(Time::from_us(4000));
    let before = delivered(&all.flows);
    all.take_average_queue(Time::ZERO);
    all.run_until(Time::from_us(8000));
    let load = load(delivered(&all.flows) - before, Span::from_ms(4));
    let queue = all.take_average_queue(Time::from_us(4000)) / all.mark_from as f64;
    let fairness = all.fairness();
    assert!(load > 0.99, "{load} {queue} {fairness}");
    assert!(fairness > 0.98, "{load} {queue} {fairness}");
    assert!((0.5..1.5).contains(&queue), "{load} {queue} {fairness}");
}

/// 300 flows share 52 packets per round trip: each has less than one in flight, and the queue stays bounded.
#[test]
fn swift_windows_below_one_packet_are_paced() {
    let mut many = Loop::new(LINE);
    let settings = configured("swift", &[]);
    (0..300).for_each(|flow| many.add(&settings, Time::from_us(flow), u64::MAX));
    many.run_until(Time::from_us(8000));
    let before: Vec<u64> = many.flows.iter().map(|flow| flow.delivered).collect();
    many.take_average_queue(Time::ZERO);
    many.run_until(Time::from_us(12_000));
    let queue = many.take_average_queue(Time::from_us(8000));
    let got = |n: usize| (many.flows[n].delivered - before[n]) as f64;
    let all: f64 = (0..300).map(got).sum();
    let load = load(all, Span::from_ms(4));
    assert!(load > 0.99, "{load}");
    // Flow scaling alone grants 25 us to a window of a tenth of a packet: 312 KB at 100 Gb/s.
    assert!(queue < 350_000.0, "{queue}");
    let below_one = |flow: &&Flow| flow.controller.allowance().rate.is_some();
    assert!(many.flows.iter().filter(below_one).count() > 250);
    let least = (0..300).map(got).fold(f64::INFINITY, f64::min);
    assert!(least > all / 300.0 / 5.0, "{least} of {}", all / 300.0);
}

/// Snyder Figures 3.2 to 3.4 and 4.3 to 4.5 on a small scale: flows that start last finish first with the plain controllers; the parts
/// bring completions together and rates to fairness, at the price of a queue that is gone when it has done its work.
#[test]
fn parts_make_the_staggered_incast_fair() {
    let run = |name, changes: &[_]| staggered_incast(&configured(name, changes), 16);
    let plain = run("hpcc", &[]);
    assert!(plain.spread > Span::from_us(900), "{plain:?}");
    assert_eq!(plain.fair_after, None);
    assert!(plain.late_queue < 5.0, "{plain:?}");
    let fast = run("hpcc", &[("rate-ai", gbps("1Gbps"))]);
    assert!(fast.spread < Span::from_us(120), "{fast:?}");
    assert!(fast.late_queue > 2.0 * plain.late_queue, "{fast:?}");
    let random = run("hpcc", &[("random-feedback", Value::Boolean(true))]);
    assert!(random.spread < Span::from_us(750), "{random:?}");
    let with_parts = run("hpcc", &vai_sf());
    assert!(with_parts.spread < plain.spread / 2, "{with_parts:?}");
    assert!(
        with_parts.fair_after < Some(Span::from_us(100)),
        "{with_parts:?}"
    );
    assert!(with_parts.early_queue > plain.early_queue, "{with_parts:?}");
    assert!(with_parts.late_queue < 5.0, "{with_parts:?}");

    let plain = run("swift", &[]);
    assert!(plain.spread > Span::from_us(450), "{plain:?}");
    assert_eq!(plain.fair_after, None);
    let with_parts = run("swift", &without_flow_scaling(vai_sf()));
    assert!(with_parts.spread < Span::from_us(250), "{with_parts:?}");
    assert!(
        with_parts.fair_after < Some(Span::from_us(130)),
        "{with_parts:?}"
    );
    assert!(with_parts.late_queue < plain.late_queue, "{with_parts:?}");
}

#[test]
fn either_part_alone_does_less() {
    let run = |changes: &[_]| staggered_incast(&configured("hpcc", changes), 16).spread;
    let [sampling, increase] = [0, 1].map(|n| run(&vai_sf()[n..=n]));
    let (plain, both) = (run(&[]), run(&vai_sf()));
    assert!(
        sampling < increase && increase < plain,
        "{sampling} {increase}"
    );
    assert!(both < increase, "{both} {increase}");
}
