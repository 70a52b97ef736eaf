//! 1RC: the worked examples of the dissertation to the packet, windows and speculative numbers.

use super::*;

/// Figures 5.1 to 5.4: an epoch is 13 steps, here microseconds, and the bandwidth-delay product is 4 packets.
const EPOCH: Span = Span::from_us(13);
const PACKET: Bytes = Bytes::new(1300);
const LINE: Rate = Rate::from_bps(3_200_000_000);

fn us(us: u64) -> Time {
    Time::from_us(us)
}

fn link() -> LinkAgent {
    LinkAgent::new(
        1,
        &LinkParameters {
            epochs: Some(EpochParameters {
                length: EPOCH,
                max_rtt: EPOCH,
                packet: PACKET,
                bdp_packets: 4,
            }),
            ..LinkParameters::new(LINE, Span::from_us(26), PERIOD)
        },
    )
}

fn source(start: Time) -> Source {
    Source::new(
        start,
        SourceParameters {
            host_rate: LINE,
            round_trip: EPOCH,
            most_speculative: 4,
        },
    )
}

/// A flow whose first control packet passes the link ten steps after it was sent.
fn start(link: &mut LinkAgent, at: u64, connections: Connections) -> (Source, ControlRecord) {
    let mut flow = source(us(at));
    let mut record = flow.transmit(us(at), connections).expect("due");
    link.on_control(us(at + 10), &mut record);
    (flow, record)
}

/// The numbers that a link admits of a run of packets.
fn admitted(link: &mut LinkAgent, packets: &[Speculative]) -> Vec<u32> {
    let admitted = packets.iter().filter(|packet| link.admits(packet));
    admitted.map(|packet| packet.sequence).collect()
}

#[test]
fn windows_of_two_epochs_as_in_figure_5_1() {
    let mut link = link();
    let (mut one, one_record) = start(&mut link, 11, Connections::ONE);
    let (mut two, two_record) = start(&mut link, 15, Connections::ONE);
    assert_eq!(one_record.let_through(), Some(4));
    assert_eq!(two_record.let_through(), Some(2));
    let (mut host_one, mut host_two) = (
        SpeculativeSequence::new(EPOCH),
        SpeculativeSequence::new(EPOCH),
    );
    host_one.on_open(us(11));
    host_two.on_open(us(15));
    let of = |flow: &mut Source, host: &mut SpeculativeSequence| {
        std::iter::from_fn(|| flow.speculate(host)).collect::<Vec<_>>()
    };
    let (ones, twos) = (of(&mut one, &mut host_one), of(&mut two, &mut host_two));
    assert_eq!(
        (ones.len(), twos.len()),
        (4, 4),
        "no more than the bandwidth-delay product"
    );
    assert_eq!(admitted(&mut link, &ones), [0, 1, 2, 3]);
    assert_eq!(
        admitted(&mut link, &twos),
        [0, 1],
        "packets 2 and 3 of flow 2 are dropped"
    );
    assert_eq!(
        one.on_return(us(30), &one_record)
            .and_then(|news| news.delivered),
        Some(4)
    );
    assert_eq!(
        two.on_return(us(30), &two_record)
            .and_then(|news| news.delivered),
        Some(2)
    );
    assert_eq!(link.late_epochs(), 0);
}

/// Packets admitted of two flows of a host that start in one epoch and send four packets each in turns, on a link where another
/// flow leaves them a fair window of two packets. `own_numbers`: each flow counts for itself. `of_the_moment`: windows are
/// divided by the connections at the flow's start.
fn admitted_of_two_flows(own_numbers: bool, of_the_moment: bool) -> (usize, usize) {
    let mut link = link();
    start(&mut link, 1, Connections::ONE);
    let mut host = SpeculativeSequence::new(EPOCH);
    let mut open = |at: u64, host: &mut SpeculativeSequence| {
        host.on_open(us(at));
        let mut connections = host.connections(us(at));
        if of_the_moment {
            connections.at_epoch_start = connections.open;
        }
        start(&mut link, at, connections)
    };
    let (mut one, one_record) = open(14, &mut host);
    let (mut two, two_record) = open(15, &mut host);
    let mut other = host.clone();
    let mut counts = (0, 0);
    for _ in 0..4 {
        let packet = one.speculate(&mut host).expect("four packets");
        counts.0 += u32::from(link.admits(&packet));
        let numbers = if own_numbers { &mut other } else { &mut host };
        let packet = two.speculate(numbers).expect("four packets");
        counts.1 += u32::from(link.admits(&packet));
    }
    // The sources learn exactly that.
    let delivered = |flow: &mut Source, record| {
        flow.on_return(us(30), record)
            .and_then(|news| news.delivered)
    };
    assert_eq!(delivered(&mut one, &one_record), Some(counts.0));
    assert_eq!(delivered(&mut two, &two_record), Some(counts.1));
    (counts.0 as usize, counts.1 as usize)
}

#[test]
fn two_flows_with_numbers_of_their_own_get_twice_the_share_as_in_figure_5_2() {
    assert_eq!(admitted_of_two_flows(true, false), (2, 2));
    // §5.3.1: with weights alone still one packet more than the share.
    assert_eq!(admitted_of_two_flows(true, true), (2, 1));
}

#[test]
fn two_flows_that_share_numbers_share_the_window_as_in_figure_5_3() {
    assert_eq!(admitted_of_two_flows(false, false), (1, 1));
}

#[test]
fn weights_of_the_moment_would_punish_twice_as_in_figure_5_4() {
    assert_eq!(admitted_of_two_flows(false, true), (1, 0));
}

#[test]
fn connections_at_the_start_of_the_epoch_divide_the_window() {
    let mut host = SpeculativeSequence::new(EPOCH);
    (0..2).for_each(|_| host.on_open(us(5)));
    assert_eq!(
        host.connections(us(12)),
        Connections {
            open: 2,
            at_epoch_start: 1
        }
    );
    host.on_open(us(40));
    host.on_close(us(41));
    host.on_open(us(42));
    assert_eq!(
        host.connections(us(42)),
        Connections {
            open: 3,
            at_epoch_start: 2
        }
    );
    let mut link = link();
    let (_, record) = start(&mut link, 42, host.connections(us(42)));
    // A rate of 4/(1/3) per unit weight would give more, but 4 packets are the most of a window; half of it.
    assert_eq!(record.let_through(), Some(2));
}

#[test]
fn numbers_of_an_epoch_go_on_in_the_next_and_end_when_it_is_forgotten() {
    let mut host = SpeculativeSequence::new(EPOCH);
    let number = |first, host: &mut SpeculativeSequence| {
        let mut flow = source(us(first));
        flow.transmit(us(first), Connections::ONE)?;
        flow.speculate(host).map(|packet| packet.sequence)
    };
    host.connections(us(12));
    assert_eq!(number(12, &mut host), Some(0));
    host.connections(us(13));
    assert_eq!(
        (number(13, &mut host), number(12, &mut host)),
        (Some(0), Some(1))
    );
    host.connections(us(13 * 4));
    assert_eq!(
        (number(12, &mut host), number(13, &mut host)),
        (None, Some(1))
    );
}

#[test]
fn packets_of_forgotten_epochs_are_dropped_and_counted() {
    let mut link = link();
    let packet = |at| Speculative {
        first: us(at),
        sequence: 0,
        connections: 1,
    };
    assert!(!link.admits(&packet(11)), "no control packet came before");
    start(&mut link, 11, Connections::ONE);
    assert!(link.admits(&packet(11)));
    start(&mut link, 11 + 13 * 63, Connections::ONE);
    assert!(
        link.admits(&packet(11)),
        "63 epochs later the ring still holds it"
    );
    start(&mut link, 11 + 13 * 64, Connections::ONE);
    assert!(!link.admits(&packet(11)));
    assert_eq!(link.late_epochs(), 2);
}

#[test]
fn a_clock_far_ahead_does_not_take_the_ring() {
    let mut link = link();
    let mut record = ControlRecord::new(Time::NEVER, LINE, Connections::ONE);
    link.on_control(us(1), &mut record);
    assert_eq!(
        record.let_through(),
        Some(0),
        "no window, nothing let through"
    );
    let (_, record) = start(&mut link, 2, Connections::ONE);
    assert_eq!(record.let_through(), Some(2));
}

#[test]
fn windows_are_between_one_packet_and_the_bandwidth_delay_product() {
    let mut link = link();
    for flow in 0..40 {
        let (_, record) = start(&mut link, 13 * flow, Connections::ONE);
        let expected = (4 / (flow as u32 + 1)).max(1);
        assert_eq!(record.let_through(), Some(expected), "{flow} flows before");
        let (_, record) = start(
            &mut link,
            13 * flow,
            Connections {
                open: 1,
                at_epoch_start: 3,
            },
        );
        assert_eq!(record.let_through(), Some((expected / 3).max(1)));
        // Its weight is not to count.
        let mut leaving = record;
        leaving.begin_trip(leave(13 * flow + 12));
        link.on_control(us(13 * flow + 12), &mut leaving);
    }
}

fn leave(at: u64) -> record::Trip {
    record::Trip {
        now: us(at),
        sequence: 2,
        open: 1,
        host_rate: LINE,
        leaving: true,
        has_rate: false,
    }
}
