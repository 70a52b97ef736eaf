//! Records as a peer may send them, and their sizes.

use super::*;
use proptest::prelude::*;

const LINE: Rate = Rate::from_gbps(100);

fn rate() -> impl Strategy<Value = f32> {
    prop_oneof![
        Just(f32::NAN),
        Just(f32::INFINITY),
        Just(f32::NEG_INFINITY),
        Just(f32::MAX),
        Just(f32::MIN_POSITIVE),
        Just(-1.0),
        0.0..2e10f32,
    ]
}

fn time() -> impl Strategy<Value = Time> {
    prop_oneof![Just(u64::MAX), Just(0), any::<u64>(), 0..100_000_000u64].prop_map(Time::from_ps)
}

/// Visits of link 1, the number of [`link`], and of others.
fn visits() -> impl Strategy<Value = [sums::Visit; 7]> {
    let bits = prop_oneof![any::<u32>(), 256..259u32];
    prop::array::uniform7(bits.prop_map(sums::Visit::from_bits))
}

fn garbage() -> impl Strategy<Value = ControlRecord> {
    let rates = || {
        prop::collection::vec(rate(), 7)
            .prop_map(|rates| <[f32; 7]>::try_from(rates).expect("seven"))
    };
    let connections = || prop::array::uniform3(prop_oneof![Just(0u16), Just(1), any::<u16>()]);
    (
        (rate(), rates(), rates(), any::<u32>()),
        (time(), time(), connections()),
        (any::<u16>(), any::<u8>(), any::<u8>(), any::<bool>()),
        (visits(), any::<u32>(), any::<bool>()),
    )
        .prop_map(
            |(
                (host, bottleneck, allocated, let_through),
                (first, sent, connections),
                (statuses, ignored, visited, leaving),
                (visits, interval, has_rate),
            )| {
                let mut record = ControlRecord::new(Time::ZERO, LINE, Connections::ONE);
                record.begin_trip(record::Trip {
                    now: sent,
                    sequence: 1,
                    open: 1,
                    host_rate: LINE,
                    leaving,
                    has_rate: false,
                });
                [
                    record.old_connections,
                    record.new_connections,
                    record.speculative_connections,
                ] = connections;
                ControlRecord {
                    host,
                    bottleneck,
                    allocated,
                    let_through,
                    first,
                    statuses,
                    ignored,
                    visited: visited % 12,
                    visits,
                    interval,
                    has_rate,
                    ..record
                }
            },
        )
}

fn link() -> LinkAgent {
    LinkAgent::new(
        1,
        &LinkParameters {
            epochs: Some(EpochParameters {
                length: Span::from_us(10),
                max_rtt: Span::from_us(10),
                packet: Bytes::new(4096),
                bdp_packets: 30,
            }),
            ..LinkParameters::new(LINE, Span::from_us(20), PERIOD)
        },
    )
}

proptest! {
    #[test]
    fn garbage_does_no_harm(records in prop::collection::vec((garbage(), any::<u32>()), 1..40)) {
        let mut link = link();
        for (mut record, ps) in records {
            let now = Time::from_ps(ps.into());
            let sums = (link.bottlenecked(), link.elsewhere());
            let malformed = link.malformed();
            link.on_control(now, &mut record);
            link.admits(&Speculative { first: record.first, sequence: 0, connections: record.speculative_connections });
            prop_assert!(record.rate().is_finite() && record.rate() >= 0.0);
            if link.malformed() > malformed {
                prop_assert_eq!((link.bottlenecked(), link.elsewhere()), sums);
            }
            prop_assert!(link.bottlenecked() >= 0.0 && link.elsewhere() >= 0.0 && link.elsewhere().is_finite());
            // An honest flow beside it gets something, and no more than the link.
            let mut honest = ControlRecord::new(now, LINE, Connections::ONE);
            link.clone().on_control(now, &mut honest);
            prop_assert!(honest.rate() > 0.0 && honest.rate() <= 12.5e9);
        }
    }

    #[test]
    fn a_source_bears_any_echo(record in garbage()) {
        let mut source = Source::new(Time::ZERO, SourceParameters { host_rate: LINE, round_trip: Span::from_us(10), most_speculative: 4 });
        let sent = source.transmit(Time::ZERO, Connections::ONE).expect("due");
        let echo = ControlRecord { first: sent.first, sent: sent.sent, ..record };
        if let Some(news) = source.on_return(Time::from_us(10), &echo) {
            prop_assert!(news.rate <= LINE);
            prop_assert!(!source.is_done());
        }
        prop_assert!(source.transmit(source.due(), Connections::ONE).is_some());
    }
}

#[test]
fn records_without_sense_are_counted_and_change_nothing() {
    let good = ControlRecord::new(Time::ZERO, LINE, Connections::ONE);
    let bad = [
        ControlRecord {
            new_connections: 0,
            ..good
        },
        ControlRecord {
            old_connections: 0,
            ..good
        },
        ControlRecord {
            speculative_connections: 0,
            ..good
        },
        ControlRecord {
            statuses: 3,
            ..good
        },
        ControlRecord {
            host: f32::NAN,
            ..good
        },
        ControlRecord {
            allocated: [f32::INFINITY; 7],
            ..good
        },
        ControlRecord {
            bottleneck: [-1.0; 7],
            ignored: 0,
            ..good
        },
        ControlRecord { visited: 7, ..good },
        ControlRecord {
            visited: u8::MAX,
            ..good
        },
    ];
    let mut link = link();
    for (n, mut record) in bad.into_iter().enumerate() {
        link.on_control(Time::ZERO, &mut record);
        assert_eq!(link.malformed(), n as u64 + 1);
        assert_eq!((link.bottlenecked(), link.elsewhere()), (0.0, 0.0));
    }
}

#[test]
fn links_beyond_the_record_do_not_take_part() {
    let mut record = ControlRecord::new(Time::ZERO, LINE, Connections::ONE);
    let mut links = vec![link(); 9];
    links
        .iter_mut()
        .for_each(|link| link.on_control(Time::ZERO, &mut record));
    let malformed: Vec<u64> = links.iter().map(LinkAgent::malformed).collect();
    assert_eq!(malformed, [0, 0, 0, 0, 0, 0, 0, 1, 1]);
    // 98 % of 100 Gb/s.
    assert!((record.rate() - 12.25e9).abs() < 1e3);
}

#[test]
fn largest_rates_elsewhere_are_forgotten_after_two_rounds() {
    // A flow limited elsewhere to 40 Gb/s leaves a link on which then 59 flows would share less.
    let mut link = full_link(LINE, Span::from_us(20));
    let mut limited = ControlRecord::new(Time::ZERO, Rate::from_gbps(40), Connections::ONE);
    link.on_control(Time::ZERO, &mut limited);
    assert_eq!((link.bottlenecked(), link.elsewhere()), (0.0, 5e9));
    let ignores = |link: &mut LinkAgent, at| {
        let mut record = ControlRecord::new(at, LINE, Connections::ONE);
        link.on_control(at, &mut record);
        record.ignored & 1 == 1
    };
    assert!(
        !ignores(&mut link, Time::from_us(1)),
        "60 Gb/s are more than 40"
    );
    assert!(ignores(&mut link, Time::from_us(2)), "30 Gb/s are less");
    assert!(
        ignores(&mut link.clone(), Time::from_us(39)),
        "in the round after"
    );
    assert!(
        !ignores(&mut link.clone(), Time::from_us(40)),
        "two rounds later"
    );
    assert!(
        !ignores(&mut link.clone(), Time::from_us(4000)),
        "many rounds later"
    );
    // Times that go back change nothing.
    let mut later = link.clone();
    ignores(&mut later, Time::from_us(40));
    assert!(!ignores(&mut later, Time::from_us(1)));
}

#[test]
fn packets_with_attachments_fit_in_two_cache_lines() {
    assert_eq!(size_of::<ControlRecord>(), 128);
    let packet = size_of::<crate::congestion::telemetry::IntPacket<Attachment>>();
    assert_eq!(packet + size_of::<Time>(), 88);
    assert_eq!(size_of::<Speculative>(), 16);
}
