//! Prefix property of 1RC: links drop the tail of a flow's speculative packets, and its control packet says where the tail begins.

use super::*;
use proptest::prelude::*;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

const EPOCHS: EpochParameters = EpochParameters {
    length: Span::from_us(10),
    max_rtt: Span::from_us(10),
    packet: Bytes::new(4096),
    bdp_packets: 30,
};
const LINE: Rate = Rate::from_gbps(100);
/// A packet at the line rate.
const PACKET_NS: u64 = 327;
const HOSTS: usize = 3;

/// A flow: its host, start, packets, links, and the time from hop to hop.
#[derive(Debug, Clone)]
struct Flow {
    host: usize,
    start_ns: u64,
    packets: u32,
    first_link: usize,
    hops: usize,
    hop_ns: u64,
}

/// Settings of a case.
#[derive(Debug, Clone)]
struct Case {
    /// Rates of the links in Gb/s.
    links: Vec<u64>,
    /// Flows on all links from the start on.
    before: u16,
    /// Time between two control packets of one of these.
    tick_ns: u64,
    /// Lead of the hosts' clocks over the links' clocks.
    ahead_ns: [u64; HOSTS],
    flows: Vec<Flow>,
}

impl Case {
    fn clock(&self, flow: usize, ns: u64) -> Time {
        ns_time(ns + self.ahead_ns[self.flows[flow].host])
    }
}

fn ns_time(ns: u64) -> Time {
    Time::ZERO + Span::from_ns(ns)
}

/// An item that a flow sends: its control packet, or a speculative packet and its place among the flow's own.
#[derive(Debug, Clone, Copy)]
enum Item {
    Control,
    Data(Speculative, u32),
}

/// State of a flow in a case.
struct Progress {
    source: Source,
    record: Option<ControlRecord>,
    arrived: Vec<u32>,
}

/// Links, and a flow on each that was there before and whose control packets begin epochs.
struct Links {
    agents: Vec<LinkAgent>,
    tickers: Vec<ControlRecord>,
    tick_ns: u64,
    next_tick_ns: u64,
}

impl Links {
    fn new(case: &Case) -> Self {
        let agent = |&gbps: &u64| {
            LinkAgent::new(
                1,
                &LinkParameters {
                    epochs: Some(EPOCHS),
                    ..LinkParameters::new(Rate::from_gbps(gbps), Span::from_us(20), PERIOD)
                },
            )
        };
        let mut agents: Vec<LinkAgent> = case.links.iter().map(agent).collect();
        let mut tickers = Vec::new();
        for agent in &mut agents {
            let mut record = ControlRecord::new(Time::ZERO, LINE, Connections::ONE);
            for flow in 0..case.before {
                let limit = Rate::from_gbps(1 + u64::from(flow) * 10);
                record = ControlRecord::new(Time::ZERO, limit, Connections::ONE);
                agent.on_control(Time::ZERO, &mut record);
            }
            tickers.push(record);
        }
        Self {
            agents,
            tickers,
            tick_ns: case.tick_ns,
            next_tick_ns: if case.before > 0 {
                case.tick_ns
            } else {
                u64::MAX
            },
        }
    }

    /// Sends the control packets of the flows that were there before, up to `ns`.
    fn advance(&mut self, ns: u64) {
        while self.next_tick_ns <= ns {
            let now = ns_time(self.next_tick_ns);
            for (agent, record) in self.agents.iter_mut().zip(&mut self.tickers) {
                record.begin_trip(record::Trip {
                    now,
                    sequence: 0,
                    open: 1,
                    host_rate: LINE,
                    leaving: false,
                    has_rate: false,
                });
                agent.on_control(now, record);
            }
            self.next_tick_ns += self.tick_ns;
        }
    }
}

/// Items in the order in which hosts send them: each flow its control packet first, then a packet each [`PACKET_NS`].
fn send(case: &Case, flows: &mut [Progress]) -> Vec<(u64, usize, Item)> {
    let mut hosts = vec![SpeculativeSequence::new(EPOCHS.length); HOSTS];
    let mut times: Vec<(u64, usize, u32)> = Vec::new();
    for (index, flow) in case.flows.iter().enumerate() {
        times.extend(
            (0..=flow.packets).map(|n| (flow.start_ns + u64::from(n) * PACKET_NS, index, n)),
        );
    }
    times.sort_unstable();
    let mut items = Vec::new();
    for (ns, index, packet) in times {
        let (now, flow) = (case.clock(index, ns), &mut flows[index]);
        let host = &mut hosts[case.flows[index].host];
        if packet == 0 {
            host.on_open(now);
            flow.record = flow.source.transmit(now, host.connections(now));
            items.push((ns, index, Item::Control));
        } else if let Some(mark) = flow.source.speculate(host) {
            items.push((ns, index, Item::Data(mark, packet - 1)));
        }
    }
    items
}

/// Plays a case and returns of each flow the packets that arrived, and how many its control packet says do.
fn play(case: &Case) -> Vec<(Vec<u32>, u32)> {
    let parameters = SourceParameters {
        host_rate: LINE,
        round_trip: EPOCHS.length,
        most_speculative: EPOCHS.bdp_packets,
    };
    let progress = |(index, flow): (usize, &Flow)| Progress {
        source: Source::new(case.clock(index, flow.start_ns), parameters),
        record: None,
        arrived: Vec::new(),
    };
    let mut flows: Vec<Progress> = case.flows.iter().enumerate().map(progress).collect();
    let items = send(case, &mut flows);
    let mut links = Links::new(case);
    // Time, place in `items`, links passed.
    let mut events: BinaryHeap<_> = (0..items.len())
        .map(|item| Reverse((items[item].0, item, 0)))
        .collect();
    while let Some(Reverse((ns, item, hop))) = events.pop() {
        let (_, index, kind) = items[item];
        let (flow, progress) = (&case.flows[index], &mut flows[index]);
        links.advance(ns);
        if hop == flow.hops {
            if let Item::Data(_, number) = kind {
                progress.arrived.push(number);
            }
            continue;
        }
        let link = &mut links.agents[(flow.first_link + hop) % case.links.len()];
        let passes = match kind {
            Item::Control => {
                link.on_control(ns_time(ns), progress.record.as_mut().expect("sent"));
                true
            }
            Item::Data(mark, _) => link.admits(&mark),
        };
        if passes {
            events.push(Reverse((ns + flow.hop_ns, item, hop + 1)));
        }
    }
    assert!(links.agents.iter().all(|link| link.late_epochs() == 0));
    flows.into_iter().map(outcome).collect()
}

fn outcome(mut flow: Progress) -> (Vec<u32>, u32) {
    let news = flow
        .source
        .on_return(Time::from_us(200), &flow.record.expect("sent"));
    let delivered = news.and_then(|news| news.delivered);
    (flow.arrived, delivered.expect("the first return"))
}

fn flow() -> impl Strategy<Value = Flow> {
    let times = (0..40_000u64, 300..1500u64);
    (0..HOSTS, times, 1..60u32, 0..6usize, 1..=6usize).prop_map(
        |(host, (start_ns, hop_ns), packets, first_link, hops)| Flow {
            host,
            start_ns,
            packets,
            first_link,
            hops,
            hop_ns,
        },
    )
}

fn case() -> impl Strategy<Value = Case> {
    let rate = prop::sample::select(vec![10u64, 25, 100, 400]);
    (
        prop::collection::vec(rate, 6),
        0..10u16,
        3_000..30_000u64,
        prop::array::uniform3(0..=100u64),
        prop::collection::vec(flow(), 1..12),
    )
        .prop_map(|(links, before, tick_ns, ahead_ns, flows)| Case {
            links,
            before,
            tick_ns,
            ahead_ns,
            flows,
        })
}

proptest! {
    #[test]
    fn links_drop_the_tail_of_a_flow_and_the_source_learns_where_it_begins(case in case()) {
        for (arrived, delivered) in play(&case) {
            prop_assert_eq!(arrived, (0..delivered).collect::<Vec<_>>());
        }
    }
}

#[test]
fn flows_of_a_case_deliver_their_windows() {
    let flow = |host, start_ns| Flow {
        host,
        start_ns,
        packets: 30,
        first_link: 0,
        hops: 3,
        hop_ns: 500,
    };
    let case = Case {
        links: vec![100, 25, 400],
        before: 0,
        tick_ns: 1_000_000,
        ahead_ns: [0, 40, 100],
        flows: [(0, 0), (1, 100), (0, 12_000), (2, 12_500), (2, 13_000)]
            .map(|(host, start)| flow(host, start))
            .to_vec(),
    };
    let delivered: Vec<u32> = play(&case)
        .into_iter()
        .map(|(_, delivered)| delivered)
        .collect();
    // 25 Gb/s are 7.6 packets in 10 us. In epoch 1 two flows are there, and the host's second has half a weight: 7.6 / 2.5. The last
    // two flows take turns.
    assert_eq!(delivered, [7, 7, 3, 2, 1]);
}
