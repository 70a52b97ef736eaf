//! Life cycle of control packets: spacing, loss, leaving.

use super::*;

const LINE: Rate = Rate::from_gbps(100);

fn us(us: u64) -> Time {
    Time::from_us(us)
}

fn source() -> Source {
    Source::new(
        us(5),
        SourceParameters {
            host_rate: LINE,
            round_trip: Span::from_us(10),
            most_speculative: 8,
        },
    )
}

/// True up to the precision of rates in records.
fn is_line_rate(rate: Rate) -> bool {
    rate <= LINE && LINE.as_bps() - rate.as_bps() < LINE.as_bps() / 10_000_000
}

fn transmit(source: &mut Source, now: Time) -> ControlRecord {
    source.transmit(now, Connections::ONE).expect("due")
}

#[test]
fn one_control_packet_is_under_way_and_the_next_is_a_round_trip_later() {
    let mut source = source();
    assert_eq!((source.due(), source.rate()), (us(5), None));
    assert_eq!(source.transmit(us(4), Connections::ONE), None);
    let first = transmit(&mut source, us(5));
    assert_eq!(
        (first.first(), first.sent(), first.leaving()),
        (us(5), us(5), false)
    );
    assert_eq!(
        source.transmit(us(6), Connections::ONE),
        None,
        "one is under way"
    );
    let news = source.on_return(us(9), &first).expect("awaited");
    assert_eq!(news.delivered, Some(0));
    assert!(is_line_rate(news.rate), "no link, the host limit");
    assert_eq!(source.due(), us(15));
    let second = transmit(&mut source, us(15));
    let news = source.on_return(us(30), &second).expect("awaited");
    assert_eq!(news.delivered, None);
    assert_eq!(source.due(), us(30), "at once after a slow trip");
    assert_eq!(source.on_return(us(31), &second), None, "not twice");
}

#[test]
fn connections_announced_become_the_old_ones() {
    let mut source = source();
    let connections = |open| Connections {
        open,
        at_epoch_start: 1,
    };
    let mut link = full_link(LINE, Span::from_us(20));
    let mut rates = Vec::new();
    for (trip, open) in [1, 4, 2].into_iter().enumerate() {
        let now = us(5 + 10 * trip as u64);
        let mut record = source.transmit(now, connections(open)).expect("due");
        link.on_control(now, &mut record);
        rates.push(record.connections());
        let news = source.on_return(now, &record).expect("awaited");
        assert!(is_line_rate(news.rate), "alone on the link");
        assert!((link.bottlenecked() - 1.0 / f64::from(open)).abs() < 1e-9);
    }
    assert_eq!(rates, [(1, 1), (4, 1), (2, 4)]);
}

#[test]
fn a_lost_control_packet_is_sent_anew_as_it_last_came_back() {
    let mut source = source();
    let mut link = full_link(LINE, Span::from_us(20));
    let mut first = transmit(&mut source, us(5));
    link.on_control(us(6), &mut first);
    source.on_return(us(15), &first).expect("awaited");
    let lost = transmit(&mut source, us(15));
    assert_eq!(source.due(), us(55), "four round trips");
    let again = transmit(&mut source, us(55));
    assert_eq!(
        (source.timeouts(), again.first(), again.sent()),
        (1, us(5), us(55))
    );
    assert_eq!(
        (again.statuses, again.allocated),
        (first.statuses, first.allocated)
    );
    assert_eq!(source.on_return(us(60), &lost), None, "a late echo");
    assert!(source.on_return(us(65), &again).is_some());
    assert_eq!(source.due(), us(65));
}

#[test]
fn losses_and_late_echoes_leave_a_link_in_use() {
    // Of each trip the record is lost before the link, after it, or comes back late.
    let mut link = full_link(LINE, Span::from_us(20));
    let mut random = random(3);
    for _ in 0..200 {
        let mut source = source();
        let mut old: Option<ControlRecord> = None;
        for trip in 0..30 {
            let now = source.due();
            if now.is_never() {
                break;
            }
            let mut record = transmit(&mut source, now);
            if trip == 20 {
                source.on_all_sent(now);
            }
            if random.chance(0.9) {
                link.on_control(now, &mut record);
            }
            if let Some(late) = old.take() {
                assert_eq!(source.on_return(now, &late), None);
            }
            if random.chance(0.9) {
                source.on_return(now, &record).expect("awaited");
            } else {
                old = Some(record);
            }
        }
        assert!(source.is_done());
        assert!(source.rate().expect("returned").as_bps() > 0);
    }
    assert!(link.bottlenecked().is_finite() && link.elsewhere() <= LINE.as_bps() as f64);
    let mut source = source();
    let mut record = transmit(&mut source, us(5));
    link.on_control(us(5), &mut record);
    assert!(record.rate() > 0.0 && record.rate() <= LINE.as_bps() as f64 / 8.0);
}

#[test]
fn a_source_is_done_when_its_leaving_packet_is_back() {
    let mut source = source();
    let mut link = full_link(LINE, Span::from_us(20));
    let mut record = transmit(&mut source, us(5));
    source.on_all_sent(us(6));
    link.on_control(us(7), &mut record);
    source.on_return(us(10), &record).expect("awaited");
    assert_eq!(
        (source.due(), source.is_done(), link.bottlenecked()),
        (us(15), false, 1.0)
    );
    let mut record = transmit(&mut source, us(15));
    assert!(record.leaving());
    link.on_control(us(17), &mut record);
    assert_eq!(link.bottlenecked(), 0.0);
    source.on_return(us(20), &record).expect("awaited");
    assert_eq!((source.due(), source.is_done()), (Time::NEVER, true));
    assert_eq!(source.transmit(us(90), Connections::ONE), None);
}

#[test]
fn a_flow_that_never_began_has_nothing_to_leave() {
    let mut source = source();
    source.on_all_sent(us(1));
    assert!(source.is_done() && source.due().is_never());
}

#[test]
fn a_flow_whose_tail_was_dropped_has_not_sent_all() {
    let mut source = source();
    let mut host = SpeculativeSequence::new(Span::from_us(10));
    host.on_open(us(5));
    let mut record = source
        .transmit(us(5), host.connections(us(5)))
        .expect("due");
    (0..3).for_each(|_| assert!(source.speculate(&mut host).is_some()));
    source.on_all_sent(us(6));
    record.let_through = 2;
    let news = source.on_return(us(15), &record).expect("awaited");
    assert_eq!(news.delivered, Some(2));
    assert_eq!(source.speculate(&mut host), None, "it has a rate");
    let record = transmit(&mut source, us(15));
    assert!(!record.leaving());
    source.on_return(us(25), &record).expect("awaited");
    source.on_all_sent(us(26));
    assert!(transmit(&mut source, us(26)).leaving());
}
