//! Rates after losses, duplicates, reordering, changes of paths and flows that vanish: again exact weighted max-min sharing.

use super::fairness::{Flow, gbps, max_min, random_flow};
use super::*;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

const ROUND_TRIP: Span = Span::from_us(10);
/// Two visits of a flow at a link are less than two round trips apart without losses, and a timeout is four.
const PERIOD: Span = Span::from_us(100);
const TROUBLE: Time = Time::from_us(3000);
/// Longest time after the trouble until rates are right: two periods in which links forget, a timeout after up to four losses in a row
/// (64 round trips), and six round trips for each of up to seven links to settle.
const RECOVERY: Span = Span::from_us(200 + 640 + 420);

/// Trouble on the way of control packets, as probabilities.
#[derive(Debug, Clone, Copy, Default)]
struct Trouble {
    /// A control packet is lost in front of a link, or on its way back.
    loss: f64,
    /// A link sees a control packet twice. Its answer to the second copy goes on.
    duplicate: f64,
    /// A control packet takes up to six round trips more, and is overtaken by the one that its source sends after a timeout.
    late: f64,
    /// A flow changes to another path after a trip.
    reroute: f64,
    /// A flow ends without a word, and another one begins.
    vanish: f64,
    /// A flow leaves, and another one begins.
    leave: f64,
}

/// A control packet under way.
#[derive(Clone)]
struct Trip {
    record: ControlRecord,
    path: Vec<usize>,
    passed: usize,
}

enum Event {
    /// The source of a flow may send. Flows are numbered as they begin.
    Due(usize),
    Hop(usize, Box<Trip>),
}

struct Network {
    links: Vec<LinkAgent>,
    /// `None` once a flow has ended.
    flows: Vec<Option<(Flow, Source)>>,
    times: BinaryHeap<Reverse<(Time, usize)>>,
    events: Vec<Option<Event>>,
    trouble: Trouble,
    random: RandomStream,
}

impl Network {
    fn new(capacities: &[Rate], trouble: Trouble, random: RandomStream) -> Self {
        let link = |(number, &capacity): (usize, &Rate)| {
            let parameters = LinkParameters {
                headroom: 1.0,
                ..LinkParameters::new(capacity, ROUND_TRIP * 2, PERIOD)
            };
            LinkAgent::new(number as u32, &parameters)
        };
        Self {
            links: capacities.iter().enumerate().map(link).collect(),
            flows: Vec::new(),
            times: BinaryHeap::new(),
            events: Vec::new(),
            trouble,
            random,
        }
    }

    fn at(&mut self, time: Time, event: Event) {
        self.times.push(Reverse((time, self.events.len())));
        self.events.push(Some(event));
    }

    fn begin(&mut self, now: Time) {
        let flow = random_flow(&mut self.random, self.links.len());
        let start = now + Span::from_ns(u64::from(self.random.below(10_000)));
        let parameters = SourceParameters {
            host_rate: flow.host_rate,
            round_trip: ROUND_TRIP,
            most_speculative: 0,
        };
        self.flows
            .push(Some((flow, Source::new(start, parameters))));
        self.at(start, Event::Due(self.flows.len() - 1));
    }

    fn troubled(&mut self, now: Time, chance: f64) -> bool {
        now < TROUBLE && self.random.chance(chance)
    }

    /// Time to the next hop: a trip takes less than a round trip unless it is late.
    fn hop(&mut self, now: Time, hops: usize) -> Time {
        let hop = u64::from(self.random.below(10_000_000)) / (hops as u64 + 1);
        let late = match self.troubled(now, self.trouble.late) {
            true => ROUND_TRIP * u64::from(self.random.below(7)),
            false => Span::ZERO,
        };
        now + Span::from_ps(hop) + late
    }

    fn run_until(&mut self, end: Time) {
        while let Some(&Reverse((now, event))) = self.times.peek()
            && now <= end
        {
            self.times.pop();
            match self.events[event].take() {
                Some(Event::Due(flow)) => self.send(now, flow),
                Some(Event::Hop(flow, trip)) => self.pass(now, flow, *trip),
                None => {}
            }
        }
    }

    fn send(&mut self, now: Time, index: usize) {
        let Some((flow, source)) = &mut self.flows[index] else {
            return;
        };
        let connections = Connections {
            open: flow.connections,
            at_epoch_start: 1,
        };
        let Some(record) = source.transmit(now, connections) else {
            return;
        };
        let trip = Trip {
            record,
            path: flow.path.clone(),
            passed: 0,
        };
        let due = source.due();
        self.at(due, Event::Due(index));
        let next = self.hop(now, trip.path.len());
        self.at(next, Event::Hop(index, Box::new(trip)));
    }

    fn pass(&mut self, now: Time, index: usize, mut trip: Trip) {
        if self.troubled(now, self.trouble.loss) {
            return;
        }
        let Some(&link) = trip.path.get(trip.passed) else {
            return self.come_back(now, index, &trip.record);
        };
        let mut twice = trip.record;
        self.links[link].on_control(now, &mut trip.record);
        if self.troubled(now, self.trouble.duplicate) {
            self.links[link].on_control(now, &mut twice);
            trip.record = twice;
        }
        trip.passed += 1;
        let next = self.hop(now, trip.path.len());
        self.at(next, Event::Hop(index, Box::new(trip)));
    }

    fn come_back(&mut self, now: Time, index: usize, record: &ControlRecord) {
        let Some((_, source)) = &mut self.flows[index] else {
            return;
        };
        if source.on_return(now, record).is_none() {
            return;
        }
        let (due, done) = (source.due(), source.is_done());
        if done || self.troubled(now, self.trouble.vanish) {
            self.flows[index] = None;
            if now < TROUBLE {
                self.begin(now);
            }
            return;
        }
        self.at(due, Event::Due(index));
        let leaves = self.troubled(now, self.trouble.leave);
        let reroutes = self.troubled(now, self.trouble.reroute);
        let links = self.links.len();
        let Some((flow, source)) = &mut self.flows[index] else {
            return;
        };
        if leaves {
            source.on_all_sent(now);
        }
        if reroutes {
            flow.path = random_flow(&mut self.random, links).path;
        }
    }

    /// Flows that are there, and the largest deviation of a rate as a part of its share.
    fn error(&self, capacities: &[Rate]) -> (usize, f64) {
        let here: Vec<&(Flow, Source)> = self.flows.iter().flatten().collect();
        let flows: Vec<Flow> = here.iter().map(|(flow, _)| flow.clone()).collect();
        let shares = max_min(capacities, &flows);
        let error = |((_, source), share): (&&(Flow, Source), f64)| {
            let rate = source.rate().map_or(0.0, |rate| rate.as_bps() as f64);
            (rate / share - 1.0).abs()
        };
        let largest = here.iter().zip(shares).map(error).fold(0.0, f64::max);
        (here.len(), largest)
    }
}

/// Networks out of so many whose rates are wrong after the recovery, and the largest error among them.
fn wrong_after(trouble: Trouble, networks: u64) -> (u64, f64) {
    let (mut wrong, mut worst) = (0, 0.0f64);
    for case in 0..networks {
        let mut random = random(case);
        let links = 2 + random.below(6) as usize;
        let capacities: Vec<Rate> = (0..links).map(|_| gbps(&mut random, 10, 100)).collect();
        let flows = 2 + random.below(15);
        let mut network = Network::new(&capacities, trouble, random);
        (0..flows).for_each(|_| network.begin(Time::ZERO));
        network.run_until(TROUBLE + RECOVERY);
        let (here, error) = network.error(&capacities);
        assert!(here > 0, "case {case}");
        wrong += u64::from(error > 1e-5);
        worst = worst.max(error);
        // Everybody leaves: nothing stays.
        let now = TROUBLE + RECOVERY;
        for (_, source) in network.flows.iter_mut().flatten() {
            source.on_all_sent(now);
        }
        network.run_until(now + PERIOD * 2 + ROUND_TRIP * 8);
        for link in &mut network.links {
            let mut probe = ControlRecord::new(Time::ZERO, Rate::from_gbps(1), Connections::ONE);
            probe.leaving = true;
            link.on_control(now + PERIOD * 2 + ROUND_TRIP * 8, &mut probe);
            assert_eq!(
                (link.bottlenecked(), link.elsewhere()),
                (0.0, 0.0),
                "case {case}"
            );
        }
    }
    (wrong, worst)
}

#[test]
fn rates_are_right_again_after_losses() {
    for loss in [0.01, 0.05] {
        let trouble = Trouble {
            loss,
            leave: 0.02,
            ..Trouble::default()
        };
        assert_eq!(wrong_after(trouble, 100).0, 0, "{loss}");
    }
}

#[test]
fn rates_are_right_again_after_flows_change_paths() {
    let flaps = Trouble {
        reroute: 0.2,
        leave: 0.02,
        ..Trouble::default()
    };
    assert_eq!(wrong_after(flaps, 200).0, 0);
}

#[test]
fn rates_are_right_again_after_duplicates_and_reordering() {
    let trouble = Trouble {
        duplicate: 0.1,
        late: 0.1,
        leave: 0.02,
        ..Trouble::default()
    };
    assert_eq!(wrong_after(trouble, 200).0, 0);
}

#[test]
fn rates_are_right_again_after_flows_that_never_said_that_they_leave() {
    let trouble = Trouble {
        vanish: 0.02,
        ..Trouble::default()
    };
    assert_eq!(wrong_after(trouble, 200).0, 0);
}

#[test]
fn rates_are_right_again_after_all_of_it() {
    let trouble = Trouble {
        loss: 0.02,
        duplicate: 0.02,
        late: 0.02,
        reroute: 0.05,
        vanish: 0.01,
        leave: 0.01,
    };
    assert_eq!(wrong_after(trouble, 300).0, 0);
}

/// A link that knows nobody after a visit at another one, and after two periods.
#[test]
fn a_link_takes_out_only_what_it_has_put_in() {
    let parameters = LinkParameters::new(Rate::from_gbps(100), ROUND_TRIP * 2, PERIOD);
    let [mut first, mut other] = [1, 2].map(|number| LinkAgent::new(number, &parameters));
    let visit = |link: &mut LinkAgent, at: u64, record: &mut ControlRecord| {
        record.visited = 0;
        link.on_control(Time::from_us(at), record);
        link.bottlenecked()
    };
    let new = || ControlRecord::new(Time::ZERO, Rate::from_gbps(400), Connections::ONE);
    let (mut stays, mut moves) = (new(), new());
    assert_eq!(visit(&mut other, 0, &mut stays), 1.0);
    assert_eq!(visit(&mut first, 0, &mut moves), 1.0);
    // As by hop alone, it would take the flow that stays for its own.
    assert_eq!(visit(&mut other, 10, &mut moves), 2.0);
    assert_eq!(visit(&mut other, 20, &mut moves), 2.0);
    // In the period after the one that is now being filled, the first link has forgotten it.
    assert_eq!(first.bottlenecked(), 1.0);
    assert_eq!(visit(&mut first, 210, &mut new()), 1.0);
    // Two periods without a word: a record from then takes nothing out.
    assert_eq!(visit(&mut other, 150, &mut moves), 2.0);
    assert_eq!(visit(&mut other, 250, &mut moves), 1.0);
    assert_eq!(visit(&mut other, 260, &mut stays), 2.0);
}

#[test]
fn links_of_a_former_longer_path_limit_nothing() {
    let slow = LinkParameters::new(Rate::from_gbps(1), ROUND_TRIP * 2, PERIOD);
    let fast = LinkParameters::new(Rate::from_gbps(100), ROUND_TRIP * 2, PERIOD);
    let mut links = [LinkAgent::new(1, &fast), LinkAgent::new(2, &slow)];
    let parameters = SourceParameters {
        host_rate: Rate::from_gbps(100),
        round_trip: ROUND_TRIP,
        most_speculative: 0,
    };
    let mut source = Source::new(Time::ZERO, parameters);
    let mut rates = Vec::new();
    for (trip, hops) in [2, 2, 1, 1].into_iter().enumerate() {
        let now = Time::from_us(10 * trip as u64);
        let mut record = source.transmit(now, Connections::ONE).expect("due");
        links[..hops]
            .iter_mut()
            .for_each(|link| link.on_control(now, &mut record));
        let news = source.on_return(now, &record).expect("awaited");
        rates.push(news.rate.as_gbps().round());
    }
    // With the first trip over the shorter path the source knows its length, and with the second the links do.
    assert_eq!(rates, [1.0, 1.0, 1.0, 98.0]);
}

#[test]
fn a_link_takes_out_what_it_put_in_when_it_was_faster() {
    let parameters = LinkParameters::new(Rate::from_gbps(100), ROUND_TRIP * 2, PERIOD);
    let mut link = LinkAgent::new(1, &parameters);
    let mut limited = ControlRecord::new(Time::ZERO, Rate::from_gbps(80), Connections::ONE);
    link.on_control(Time::ZERO, &mut limited);
    assert_eq!(link.elsewhere(), 10e9, "elsewhere, at 80 Gb/s");
    link.set_rate(Rate::from_gbps(25));
    limited.visited = 0;
    link.on_control(Time::from_us(10), &mut limited);
    // 98 % of 25 Gb/s: alone, and bottlenecked here.
    assert_eq!((link.elsewhere(), link.bottlenecked()), (0.0, 1.0));
    assert!((limited.rate() - 3.0625e9).abs() < 1e3);
}

#[test]
fn a_flow_is_given_a_little_where_the_sums_hold_more_than_the_capacity() {
    let parameters = LinkParameters::new(Rate::from_gbps(100), ROUND_TRIP * 2, PERIOD);
    let mut link = LinkAgent::new(1, &parameters);
    let mut limited = ControlRecord::new(Time::ZERO, Rate::from_gbps(80), Connections::ONE);
    link.on_control(Time::ZERO, &mut limited);
    assert_eq!(link.elsewhere(), 10e9, "elsewhere, at 80 Gb/s");
    // The flow at 80 Gb/s has not heard of the slower rate when another one begins.
    link.set_rate(Rate::from_gbps(25));
    let mut new = ControlRecord::new(Time::ZERO, Rate::from_gbps(400), Connections::ONE);
    link.on_control(Time::from_us(1), &mut new);
    // A millionth of 98 % of 25 Gb/s, in bytes per second.
    assert!((new.rate() - 3062.5).abs() < 1e-3, "{}", new.rate());
    assert_eq!(link.bottlenecked(), 1.0);
}
