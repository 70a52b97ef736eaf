//! Rates of s-PERC against exact weighted max-min shares, with flows that send control packets on their own time.

use super::*;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

const ROUND_TRIP: Span = Span::from_us(10);
/// Two visits of a flow at a link are less than two round trips apart, as trips take between none and one.
const ROUND: Span = Span::from_us(20);
/// Rounds of a link within which rates settle, for each link of the network: six round trips. In 20000 networks 2.5 rounds were the
/// most, and the error then 1e-6 at most.
const ROUNDS_PER_LINK: u64 = 3;

#[derive(Debug, Clone)]
pub(super) struct Flow {
    pub(super) path: Vec<usize>,
    pub(super) host_rate: Rate,
    pub(super) connections: u16,
}

/// Exact weighted max-min shares in bit/s: the tightest link or host limit first (water-filling).
pub(super) fn max_min(capacities: &[Rate], flows: &[Flow]) -> Vec<f64> {
    let mut rates: Vec<Option<f64>> = vec![None; flows.len()];
    while rates.contains(&None) {
        let level = |link: usize| {
            let (mut free, mut weights) = (capacities[link].as_bps() as f64, 0.0);
            for (flow, rate) in flows.iter().zip(&rates) {
                if flow.path.contains(&link) {
                    free -= rate.unwrap_or(0.0);
                    weights += rate.map_or(1.0 / f64::from(flow.connections), |_| 0.0);
                }
            }
            if weights > 0.0 {
                free / weights
            } else {
                f64::INFINITY
            }
        };
        let levels: Vec<f64> = (0..capacities.len()).map(level).collect();
        let limit = |flow: &Flow| {
            let host = flow.host_rate.as_bps() as f64 * f64::from(flow.connections);
            flow.path
                .iter()
                .fold(host, |least, &link| least.min(levels[link]))
        };
        let open = || flows.iter().zip(&rates).filter(|(_, rate)| rate.is_none());
        let least = open()
            .map(|(flow, _)| limit(flow))
            .fold(f64::INFINITY, f64::min);
        let settled: Vec<bool> = flows
            .iter()
            .map(|flow| limit(flow) <= least * (1.0 + 1e-12))
            .collect();
        for ((flow, rate), settled) in flows.iter().zip(&mut rates).zip(settled) {
            if rate.is_none() && settled {
                *rate = Some(least / f64::from(flow.connections));
            }
        }
    }
    rates.into_iter().flatten().collect()
}

/// A control packet's journey: the record and the hops that it has passed.
type Journey = Option<(ControlRecord, usize)>;

/// Links, and flows whose control packets visit them at random times.
struct Network {
    now: Time,
    links: Vec<LinkAgent>,
    flows: Vec<(Flow, Source, Journey)>,
    events: BinaryHeap<Reverse<(Time, u64, usize)>>,
    order: u64,
    random: RandomStream,
}

impl Network {
    fn new(capacities: &[Rate], random: RandomStream) -> Self {
        Self {
            now: Time::ZERO,
            links: capacities
                .iter()
                .map(|&rate| full_link(rate, ROUND))
                .collect(),
            flows: Vec::new(),
            events: BinaryHeap::new(),
            order: 0,
            random,
        }
    }

    fn start(&mut self, flow: Flow) {
        let start = self.now + Span::from_ns(u64::from(self.random.below(10_000)));
        let source = Source::new(
            start,
            SourceParameters {
                host_rate: flow.host_rate,
                round_trip: ROUND_TRIP,
                most_speculative: 0,
            },
        );
        self.flows.push((flow, source, None));
        self.wake(start, self.flows.len() - 1);
    }

    fn wake(&mut self, time: Time, flow: usize) {
        self.order += 1;
        self.events.push(Reverse((time, self.order, flow)));
    }

    /// Time to the next hop: a trip takes less than a round trip.
    fn hop(&mut self, hops: usize) -> Span {
        Span::from_ps(u64::from(self.random.below(10_000_000)) / (hops as u64 + 1))
    }

    fn step(&mut self) -> usize {
        let Reverse((now, _, index)) = self.events.pop().expect("flows go on");
        self.now = now;
        let (flow, source, journey) = &mut self.flows[index];
        let hops = flow.path.len();
        match journey {
            None => {
                let connections = Connections {
                    open: flow.connections,
                    at_epoch_start: 1,
                };
                *journey = source.transmit(now, connections).map(|record| (record, 0));
            }
            Some((record, passed)) if *passed < hops => {
                self.links[flow.path[*passed]].on_control(now, record);
                *passed += 1;
            }
            Some((record, _)) => {
                assert!(source.on_return(now, record).is_some());
                *journey = None;
                let due = source.due();
                if !due.is_never() {
                    self.wake(due, index);
                }
                return index;
            }
        }
        let time = now + self.hop(hops);
        self.wake(time, index);
        index
    }

    fn run_until(&mut self, end: Time) {
        while self
            .events
            .peek()
            .is_some_and(|Reverse((time, ..))| *time <= end)
        {
            self.step();
        }
        self.now = end;
    }

    /// The largest deviation of a flow's rate, as a part of its share.
    fn error(&self, shares: &[f64]) -> f64 {
        let errors = self
            .flows
            .iter()
            .zip(shares)
            .map(|((_, source, _), share)| {
                let rate = source.rate().map_or(0.0, |rate| rate.as_bps() as f64);
                (rate / share - 1.0).abs()
            });
        errors.fold(0.0, f64::max)
    }

    fn shares(&self, capacities: &[Rate]) -> Vec<f64> {
        let flows: Vec<Flow> = self.flows.iter().map(|(flow, ..)| flow.clone()).collect();
        max_min(capacities, &flows)
    }

    /// Rounds until all rates stay within 1 % of the shares, more than `most` if they do not, and the error after `most` rounds.
    fn converge(&mut self, capacities: &[Rate], most: u64) -> (u64, f64) {
        let shares = self.shares(capacities);
        let (start, mut rounds, mut error) = (self.now, 0, 0.0);
        for round in 1..=most {
            self.run_until(start + ROUND * round);
            error = self.error(&shares);
            if error > 0.01 {
                rounds = round;
            }
        }
        (rounds + 1, error)
    }
}

pub(super) fn gbps(random: &mut RandomStream, least: u32, most: u32) -> Rate {
    Rate::from_gbps(u64::from(least + random.below(most - least + 1)))
}

pub(super) fn connections(random: &mut RandomStream) -> u16 {
    1 << random.below(3) | random.below(2) as u16
}

pub(super) fn random_flow(random: &mut RandomStream, links: usize) -> Flow {
    let mut path: Vec<usize> = (0..links).collect();
    random.shuffle(&mut path);
    path.truncate(1 + random.below(links.min(7) as u32) as usize);
    Flow {
        path,
        host_rate: gbps(random, 1, 100),
        connections: connections(random),
    }
}

#[test]
fn rates_reach_weighted_max_min_shares() {
    for case in 0..2000 {
        let mut random = random(case);
        let links = 2 + random.below(7) as usize;
        let capacities: Vec<Rate> = (0..links).map(|_| gbps(&mut random, 10, 100)).collect();
        let flows = 1 + random.below(25);
        let mut network = Network::new(&capacities, random.clone());
        (0..flows).for_each(|_| network.start(random_flow(&mut random, links)));
        for phase in ["first", "second"] {
            let bound = ROUNDS_PER_LINK * links as u64;
            let (rounds, error) = network.converge(&capacities, bound);
            assert!(
                rounds <= bound,
                "case {case}, {phase} weights: off by {error} after {bound} rounds"
            );
            assert!(error < 1e-5, "case {case}, {phase} weights: off by {error}");
            for (flow, ..) in &mut network.flows {
                flow.connections = connections(&mut random);
            }
        }
    }
}

#[test]
fn exact_ties_settle() {
    // Host limits that are exactly the fair shares.
    for flows in 1..=20u16 {
        let capacities = [Rate::from_gbps(60), Rate::from_gbps(60)];
        let mut network = Network::new(&capacities, random(flows.into()));
        for _ in 0..flows {
            let host_rate = Rate::from_bps(60_000_000_000 / u64::from(flows));
            network.start(Flow {
                path: vec![0, 1],
                host_rate,
                connections: flows,
            });
        }
        let (_, error) = network.converge(&capacities, 12);
        assert!(error < 1e-5, "{flows} flows: {error}");
    }
}

#[test]
fn weights_divide_a_link() {
    // §5.3: A_i = w_i L / sum of w: 4 : 2 : 1.
    let capacities = [Rate::from_gbps(70)];
    let mut network = Network::new(&capacities, random(0));
    for connections in [1, 2, 4] {
        network.start(Flow {
            path: vec![0],
            host_rate: Rate::from_gbps(100),
            connections,
        });
    }
    let (_, error) = network.converge(&capacities, 6);
    assert!(error < 1e-5, "{error}");
    let shares = network.shares(&capacities);
    let expected = [40e9, 20e9, 10e9];
    assert!(
        shares
            .iter()
            .zip(expected)
            .all(|(share, expected)| (share / expected - 1.0).abs() < 1e-9)
    );
}

#[test]
fn a_second_connection_on_another_link_still_pays() {
    // Equations 5.1 to 5.5 with L = 100 Gb/s and W = 2: L/(W + 1) alone, L/(W + 1/2) for both.
    let capacities = [Rate::from_gbps(100); 2];
    let flow = |link, connections| Flow {
        path: vec![link],
        host_rate: Rate::from_gbps(400),
        connections,
    };
    let mut network = Network::new(&capacities, random(0));
    [0, 0, 1, 1]
        .into_iter()
        .for_each(|link| network.start(flow(link, 1)));
    network.start(flow(0, 1));
    network.converge(&capacities, 6);
    let rate =
        |network: &Network, index: usize| network.flows[index].1.rate().map_or(0.0, Rate::as_gbps);
    assert!((rate(&network, 4) - 100.0 / 3.0).abs() < 1e-3);
    network.flows[4].0.connections = 2;
    network.start(flow(1, 2));
    network.converge(&capacities, 12);
    assert!((rate(&network, 4) + rate(&network, 5) - 40.0).abs() < 1e-3);
}

#[test]
fn leaving_flows_give_capacity_back() {
    let capacities = [Rate::from_gbps(100), Rate::from_gbps(40)];
    let mut network = Network::new(&capacities, random(0));
    for path in [vec![0], vec![0, 1], vec![1]] {
        network.start(Flow {
            path,
            host_rate: Rate::from_gbps(100),
            connections: 1,
        });
    }
    network.run_until(Time::from_us(400));
    let rates = |network: &Network| {
        let rate = |(_, source, _): &(Flow, Source, Journey)| {
            source.rate().map_or(0.0, Rate::as_gbps).round() as u32
        };
        network.flows.iter().map(rate).collect::<Vec<_>>()
    };
    assert_eq!(rates(&network), [80, 20, 20]);
    network.flows[1].1.on_all_sent(Time::from_us(400));
    network.run_until(Time::from_us(800));
    assert!(network.flows[1].1.is_done());
    assert_eq!(rates(&network), [100, 20, 40]);
}

#[test]
fn sums_are_zero_after_a_hundred_thousand_flows() {
    let capacities = [10, 40, 100, 25].map(Rate::from_gbps);
    let mut random = random(0);
    let mut network = Network::new(&capacities, random.clone());
    let mut to_come = 100_000;
    for _ in 0..40 {
        network.start(random_flow(&mut random, 4));
    }
    while !network.events.is_empty() {
        let index = network.step();
        let now = network.now;
        let (flow, source, _) = &mut network.flows[index];
        if random.chance(0.1) {
            flow.connections = connections(&mut random);
        }
        if random.chance(0.05) {
            source.on_all_sent(now);
        }
        if source.is_done() && to_come > 40 {
            to_come -= 1;
            network.flows[index].0 = random_flow(&mut random, 4);
            let host_rate = network.flows[index].0.host_rate;
            network.flows[index].1 = Source::new(
                now,
                SourceParameters {
                    host_rate,
                    round_trip: ROUND_TRIP,
                    most_speculative: 0,
                },
            );
            network.wake(now, index);
        }
    }
    for link in &network.links {
        assert_eq!(
            (link.bottlenecked(), link.elsewhere(), link.malformed()),
            (0.0, 0.0, 0)
        );
    }
}
