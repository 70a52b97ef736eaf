use super::super::{AtEndpoint, EndpointFeedback, FeedbackSettings};
use super::*;
use crate::congestion::ControllerSettings;
use crate::paths::SelectorSettings;
use crate::reliability::go_back_n::GoBackNParameters;
use crate::testing::{Bottleneck, Pair, PipeSettings, network};
use crate::{Profile, Reliability};
use clearway_units::{ParameterSet, Rate, Span, Time, Value};
use proptest::prelude::*;

fn facts() -> NetworkFacts {
    network(Rate::from_gbps(100), Span::from_us(8))
}

/// A host with so many flows to it, each in the slot of its number.
fn host(batch: u32, flows: usize) -> AtEndpoint<Progress> {
    let mut parameters = ProgressParameters::default();
    parameters
        .set("batch", &Value::Integer(i64::from(batch)))
        .unwrap();
    let mut host = Progress::at_endpoint(&parameters, &facts());
    (0..flows).for_each(|slot| host.open(slot));
    host
}

/// A packet of message 0 that brings 1000 bytes.
fn unmarked(now: Time) -> DataArrival {
    DataArrival {
        now,
        marked: false,
        bytes: Bytes::new(1000),
        message: MessageId(0),
        offset: 0,
        ends_message: false,
        accepted: true,
    }
}

/// A marked packet that changes nobody's progress.
fn probe(now: Time) -> DataArrival {
    DataArrival {
        marked: true,
        accepted: false,
        ..unmarked(now)
    }
}

/// Unmarked packets to each flow in turn: so many of flow 0, so many of flow 1 …
fn feed(host: &mut AtEndpoint<Progress>, packets: &[u32]) {
    for (slot, &packets) in packets.iter().enumerate() {
        for _ in 0..packets {
            assert_ne!(host.on_data(slot, &unmarked(Time::ZERO)), Notify::Now);
        }
    }
}

/// The average as packets over flows.
fn average(host: &AtEndpoint<Progress>) -> (u64, u64) {
    let average = host.shared().average;
    (average.packets, average.flows)
}

#[test]
fn the_truth_table() {
    // Progress 1, 2 and 3, and thus 2 on average.
    let (behind, at, ahead) = (0, 1, 2);
    for (slot, in_place) in [(behind, false), (at, true), (ahead, true)] {
        for marked in [false, true] {
            for elapsed in [None, Some(49_999), Some(50_000), Some(50_001)] {
                let mut host = host(6, 3);
                feed(&mut host, &[1]);
                let mut now = Time::from_us(10);
                if let Some(elapsed) = elapsed {
                    // Nobody is behind yet: everyone may be notified.
                    assert_eq!(host.on_data(slot, &probe(now)), Notify::Now);
                    now += Span::from_ns(elapsed);
                }
                feed(&mut host, &[0, 2, 3]);
                assert_eq!(average(&host), (6, 3));
                let packet = DataArrival {
                    marked,
                    ..probe(now)
                };
                let due = elapsed.is_none_or(|elapsed| elapsed >= 50_000);
                assert_eq!(
                    host.on_data(slot, &packet) == Notify::Now,
                    marked && in_place && due,
                    "flow {slot}, marked {marked}, after {elapsed:?} ns"
                );
            }
        }
    }
}

#[test]
fn averages_by_hand() {
    let mut host = host(4, 3);
    feed(&mut host, &[3]);
    // Three packets: no average yet.
    assert_eq!(average(&host), (0, 0));
    feed(&mut host, &[0, 1]);
    // (3 + 1) / 2 = 2.
    assert_eq!(average(&host), (4, 2));
    feed(&mut host, &[0, 0, 3]);
    assert_eq!(average(&host), (4, 2));
    feed(&mut host, &[1]);
    // (4 + 1 + 3) / 3 = 2.67: two packets are behind it, three are not.
    assert_eq!(average(&host), (8, 3));
    let now = Time::from_us(1);
    assert_eq!(host.on_data(0, &probe(now)), Notify::Now);
    assert_ne!(host.on_data(1, &probe(now)), Notify::Now);
    feed(&mut host, &[0, 1]);
    assert_ne!(host.on_data(1, &probe(now)), Notify::Now);
    feed(&mut host, &[0, 1]);
    assert_eq!(host.on_data(1, &probe(now)), Notify::Now);
    assert_eq!(host.on_data(2, &probe(now)), Notify::Now);
}

#[test]
fn the_packet_that_is_judged_counts_and_renews_the_average_first() {
    let now = Time::from_us(1);
    let marked = DataArrival {
        marked: true,
        ..unmarked(now)
    };
    let mut host = host(4, 2);
    feed(&mut host, &[3]);
    // With it there are four packets, two on average, and flow 1 has one.
    assert_ne!(host.on_data(1, &marked), Notify::Now);
    // It then has two, which is the average still.
    assert_eq!(host.on_data(1, &marked), Notify::Now);
}

#[test]
fn a_flow_leaves_the_average_with_its_last_packet_and_comes_back_with_its_next_message() {
    let mut host = host(10, 2);
    feed(&mut host, &[8, 1]);
    host.on_complete(0);
    // Ten packets have come, one of them to complete flow 0; flow 1 alone is left, with two.
    feed(&mut host, &[0, 1]);
    assert_eq!(average(&host), (2, 1));
    assert_eq!(
        host.shared().now,
        Sum {
            packets: 2,
            flows: 1
        }
    );
    let now = Time::from_us(1);
    assert_eq!(host.on_data(1, &probe(now)), Notify::Now);
    let next = DataArrival {
        message: MessageId(1),
        ..unmarked(now)
    };
    assert_ne!(host.on_data(0, &next), Notify::Now);
    assert_eq!(
        host.shared().now,
        Sum {
            packets: 3,
            flows: 2
        }
    );
    // It starts at one and is behind the average of two.
    assert_ne!(
        host.on_data(
            0,
            &DataArrival {
                message: MessageId(1),
                ..probe(now)
            }
        ),
        Notify::Now
    );
}

#[test]
fn with_the_last_flow_the_average_and_its_counter_go() {
    let mut host = host(4, 2);
    feed(&mut host, &[5, 2]);
    host.on_complete(1);
    assert_ne!(*host.shared(), HostProgress::default());
    host.on_complete(0);
    assert_eq!(*host.shared(), HostProgress::default());
    // Late copies of a complete message begin nothing.
    host.on_data(0, &probe(Time::from_us(1)));
    assert_eq!(*host.shared(), HostProgress::default());
    // Nobody is behind at first, and the average comes after four packets and not after one.
    let next = DataArrival {
        message: MessageId(1),
        marked: true,
        ..unmarked(Time::from_us(99))
    };
    assert_eq!(host.on_data(0, &next), Notify::Now);
    assert_eq!(host.on_data(1, &next), Notify::Now);
    assert_eq!(average(&host), (0, 0));
}

#[test]
fn a_packet_that_only_closes_a_flow_is_no_progress_and_an_empty_message_is() {
    let mut host = host(4, 1);
    let empty = DataArrival {
        bytes: Bytes::ZERO,
        ..unmarked(Time::ZERO)
    };
    host.on_data(0, &empty);
    assert_eq!(host.shared().now, Sum::default());
    host.on_data(
        0,
        &DataArrival {
            ends_message: true,
            ..empty
        },
    );
    assert_eq!(
        host.shared().now,
        Sum {
            packets: 1,
            flows: 1
        }
    );
}

#[test]
fn a_message_that_overtakes_another_starts_from_nothing() {
    let mut host = host(100, 2);
    feed(&mut host, &[7, 3]);
    host.on_data(
        0,
        &DataArrival {
            message: MessageId(1),
            ..unmarked(Time::ZERO)
        },
    );
    assert_eq!(
        host.shared().now,
        Sum {
            packets: 4,
            flows: 2
        }
    );
}

#[test]
fn a_batch_of_one_renews_with_every_packet() {
    let mut host = host(1, 2);
    feed(&mut host, &[3, 1]);
    assert_eq!(average(&host), (4, 2));
    feed(&mut host, &[1]);
    assert_eq!(average(&host), (5, 2));
}

#[test]
fn state_is_flat_and_small() {
    // A `Copy` type owns no memory: nothing is allocated for a packet.
    fn flat<T: Copy>() -> usize {
        size_of::<T>()
    }
    assert_eq!((flat::<HostProgress>(), flat::<Progress>()), (40, 56));
}

#[derive(Debug, Clone, Copy)]
enum Step {
    Packet {
        flow: usize,
        marked: bool,
        accepted: bool,
    },
    Complete(usize),
    Wait(u64),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let packet = (0usize..4, any::<bool>(), prop::bool::weighted(0.9));
    let packet = packet.prop_map(|(flow, marked, accepted)| Step::Packet {
        flow,
        marked,
        accepted,
    });
    let step = prop_oneof![
        40 => packet,
        1 => (0usize..4).prop_map(Step::Complete),
        4 => (1u64..40).prop_map(Step::Wait),
    ];
    prop::collection::vec(step, 1..400)
}

/// The rule as the paper writes it, with lists: every average is worked out from the flows there are.
#[derive(Default)]
struct Model {
    batch: u32,
    count: u32,
    /// For each flow: its message, its progress, whether the message is arriving, and the time of its last notification in us.
    flows: [(u32, u32, bool, Option<u64>); 4],
    average: f64,
}

impl Model {
    fn active(&self) -> Vec<u32> {
        let active = self.flows.iter().filter(|flow| flow.2);
        active.map(|flow| flow.1).collect()
    }

    fn packet(&mut self, now: u64, flow: usize, marked: bool, accepted: bool) -> bool {
        if accepted {
            let (_, progress, active, _) = &mut self.flows[flow];
            *progress = if *active { *progress + 1 } else { 1 };
            *active = true;
            self.count += 1;
            if self.count.is_multiple_of(self.batch) {
                let active = self.active();
                self.average = f64::from(active.iter().sum::<u32>()) / active.len() as f64;
            }
        }
        let (_, progress, _, last) = &mut self.flows[flow];
        let due = last.is_none_or(|last| now - last >= 50);
        let notify = marked && f64::from(*progress) >= self.average && due;
        if notify {
            *last = Some(now);
        }
        notify
    }

    fn complete(&mut self, flow: usize) {
        self.flows[flow].0 += 1;
        self.flows[flow].2 = false;
        if self.active().is_empty() {
            (self.count, self.average) = (0, 0.0);
        }
    }
}

proptest! {
    #[test]
    fn agrees_with_the_naive_model(batch in 1u32..30, steps in steps()) {
        let mut host = host(batch, 4);
        let mut model = Model { batch, ..Model::default() };
        let mut now = 0;
        for step in steps {
            match step {
                Step::Packet { flow, marked, accepted } => {
                    let arrival = DataArrival {
                        marked,
                        accepted,
                        message: MessageId(model.flows[flow].0),
                        ..unmarked(Time::from_us(now))
                    };
                    let expected = model.packet(now, flow, marked, accepted);
                    prop_assert_eq!(host.on_data(flow, &arrival) == Notify::Now, expected);
                }
                Step::Complete(flow) if model.flows[flow].2 => {
                    host.on_complete(flow);
                    model.complete(flow);
                }
                Step::Complete(_) => {}
                Step::Wait(us) => now += us,
            }
            let active = model.active();
            let sum = active.iter().map(|&packets| u64::from(packets)).sum();
            prop_assert_eq!(host.shared().now, Sum { packets: sum, flows: active.len() as u64 });
        }
    }
}

/// Lead of the first of two flows over the second in bytes, at the times given in us, and the utilisation of the bottleneck from 10 ms
/// to the last. The flows share 40 Gb/s, and the first begins 2 ms before the second.
fn lead(rule: &str, times: &[u64]) -> (Vec<f64>, f64) {
    let facts = facts();
    let profile = Profile {
        network: facts,
        reliability: Reliability::GoBackN(GoBackNParameters::default()),
        controller: ControllerSettings::named("dcqcn").unwrap(),
        variants: Vec::new(),
        selector: SelectorSettings::named("single").unwrap(),
        feedback: FeedbackSettings::named(rule).unwrap(),
        scope: Default::default(),
        credit: crate::congestion::credit::CreditParameters::default(),
        strict_priority: false,
    };
    let pipe = PipeSettings {
        bottleneck: Some(Bottleneck {
            rate: Rate::from_gbps(40),
            limit: Bytes::new(100_000_000),
            mark_from: Bytes::new(5_000),
            mark_all: Bytes::new(2_000_000),
        }),
        ..PipeSettings::ideal(&facts)
    };
    let mut pair = Pair::new(profile, pipe, 1);
    let first = pair.open();
    pair.post(first, 0, Bytes::new(1 << 40));
    pair.run_until(Time::from_us(2_000));
    let second = pair.open();
    pair.post(second, 0, Bytes::new(1 << 40));
    let delivered = |pair: &Pair, flow| pair.ends[0].progress(flow).unwrap().acknowledged.as_f64();
    pair.run_until(Time::from_us(10_000));
    let before = delivered(&pair, first) + delivered(&pair, second);
    let mut leads = Vec::new();
    for &us in times {
        pair.run_until(Time::from_us(us));
        leads.push(delivered(&pair, first) - delivered(&pair, second));
    }
    assert_eq!(pair.counters().retransmitted, 0);
    let after = delivered(&pair, first) + delivered(&pair, second);
    let possible = (times[times.len() - 1] - 10_000) as f64 * 5_000.0 * 4096.0 / 4160.0;
    (leads, (after - before) / possible)
}

/// Under plain DCQCN two flows converge to equal rates, but a lead of one remains, and chance adds to it: no sign changes any more.
#[test]
fn flows_become_even_and_stay_so_unlike_under_plain_dcqcn() {
    let times: Vec<u64> = (6..=50).map(|step| step * 2_000).collect();
    let (plain, plain_utilisation) = lead("interval", &times);
    let (even, utilisation) = lead("progress", &times);
    // The one that is behind is not slowed down until it is ahead, by about a millisecond of the link's 5 MB.
    assert!(even.iter().all(|lead| lead.abs() < 7e6), "{even:?}");
    let changes = |leads: &[f64]| leads.windows(2).filter(|w| w[0] * w[1] < 0.0).count();
    assert!(changes(&even) >= 6, "{even:?}");
    let last = plain[plain.len() - 1];
    assert!(last.abs() > 4e6, "{plain:?}");
    assert!(changes(&plain[3..]) == 0, "{plain:?}");
    assert!(plain_utilisation > 0.95 && utilisation > 0.95);
}
