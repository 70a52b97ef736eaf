//! IRN (SIGCOMM 2018, §3.1) as settings of selective repeat.

use super::*;
use crate::congestion::CongestionControl;

fn bench(packets: u64) -> Bench {
    Bench::with(packets, |p| {
        (p.timeout, p.timeout_low) = (Span::from_us(320), Some(Span::from_us(100)));
        p.recovery = Recovery::Irn;
    })
}

impl Bench {
    /// Time from now until the flow's next timer.
    fn until_deadline(&self) -> u64 {
        let deadline = self.sender.deadline(&self.controller, &self.rules);
        deadline.since(self.now).as_ps() / 1_000_000
    }

    /// Delivers the packets with these numbers, and their acknowledgements.
    fn exchange_only(&mut self, packets: &[Packet], numbers: &[u32]) {
        let wanted = |packet: &&Packet| numbers.contains(&psn(packet));
        let arriving: Vec<_> = packets.iter().filter(wanted).copied().collect();
        assert_eq!(arriving.len(), numbers.len());
        self.exchange(&arriving);
    }
}

#[test]
fn one_packet_out_of_order_is_a_loss() {
    let mut bench = bench(8);
    bench.post(0, 100 * MTU);
    let packets = bench.transmit();
    bench.exchange_only(&packets, &[1]);
    assert_eq!(bench.counters.lost_out_of_order, 1);
    assert_eq!(psns(&bench.transmit()), [0, 8]);
}

/// Gaps that show during recovery are filled at once, by STrack's rules only when recovery is over.
#[test]
fn each_gap_is_filled_once_as_soon_as_it_shows() {
    let missing = [0, 3, 5];
    for (recovery, expected) in [(Recovery::Irn, &missing[..]), (Recovery::Strack, &[0])] {
        let mut bench = bench(8);
        bench.rules.irn = recovery == Recovery::Irn;
        bench.rules.out_of_order_min = 0;
        bench.rules.out_of_order_bytes = f64::INFINITY;
        bench.post(0, 8 * MTU);
        let packets = bench.transmit();
        let mut again = Vec::new();
        for number in [1, 2, 4, 6, 7] {
            bench.exchange_only(&packets, &[number]);
            again.extend(psns(&bench.transmit()));
        }
        assert_eq!(again, expected);
        let end = bench.sender.recovery_end();
        // IRN's recovery ends with the packets that had been sent, STrack's with the packets that had arrived.
        assert_eq!(end, if recovery == Recovery::Irn { 8 } else { 2 });
    }
}

#[test]
fn new_packets_follow_when_the_window_has_room_and_recovery_ends_with_the_old_ones() {
    let mut bench = bench(4);
    bench.post(0, 100 * MTU);
    let first = bench.transmit();
    bench.exchange_only(&first, &[1, 2, 3]);
    let second = bench.transmit();
    assert_eq!(psns(&second), [0, 4, 5, 6]);
    assert!(bench.sender.progress().recovering);
    assert_eq!(bench.sender.recovery_end(), 4);
    // The fourth is also lost, which shows while the first has not arrived.
    bench.exchange_only(&second, &[5]);
    let third = bench.transmit();
    assert_eq!(psns(&third), [4, 7]);
    // With the first the old ones are complete. Packets beyond are still out of order, which begins another recovery, but the copy of the
    // fourth is on its way.
    bench.exchange_only(&second, &[0]);
    assert_eq!(bench.sender.recovery_end(), 8);
    assert_eq!(psns(&bench.transmit()), [8]);
    bench.exchange_only(&second, &[6]);
    bench.exchange(&third);
    assert!(!bench.sender.progress().recovering);
    assert_eq!(bench.counters.retransmitted, 2);
}

/// A packet that is lost twice in one recovery waits for the timeout, which resends it and nothing else.
#[test]
fn what_is_lost_twice_waits_for_the_timeout() {
    let mut bench = bench(8);
    bench.post(0, 8 * MTU);
    let packets = bench.transmit();
    bench.exchange_only(&packets, &[1, 2, 3]);
    assert_eq!(psns(&bench.transmit()), [0]);
    bench.exchange_only(&packets, &[4, 5, 6, 7]);
    assert_eq!(psns(&bench.transmit()), []);
    assert_eq!(bench.in_flight_packets(), 1);
    // The first sent and none acknowledged in order: the timer has run since then.
    assert_eq!(bench.until_deadline(), 100);
    bench.wait(100);
    assert_eq!(
        (bench.counters.timeouts, bench.counters.lost_timeout),
        (1, 1)
    );
    let again = bench.transmit();
    assert_eq!(psns(&again), [0]);
    bench.exchange(&again);
    assert_eq!(bench.sent_messages(), [0]);
    assert_eq!(bench.sender.in_flight_exact(), 0);
}

/// Without news of packets after the first missing one, that packet goes alone.
#[test]
fn a_timeout_resends_the_first_packet_and_what_is_known_to_be_missing() {
    let mut bench = bench(8);
    bench.post(0, 8 * MTU);
    let packets = bench.transmit();
    bench.wait(320);
    assert_eq!(bench.counters.lost_timeout, 1);
    let again = bench.transmit();
    assert_eq!(psns(&again), [0]);
    assert_eq!(bench.in_flight_packets(), 8);
    bench.exchange(&again);
    // All packets in between are missing.
    bench.exchange_only(&packets, &[6]);
    assert_eq!(psns(&bench.transmit()), [1, 2, 3, 4, 5]);
    bench.wait(320);
    // After another timeout each may be sent again; the seventh arrived, of the eighth nothing is known.
    assert_eq!(psns(&bench.transmit()), [1, 2, 3, 4, 5]);
}

/// RTO_low while fewer than three packets are in flight, else RTO_high.
#[test]
fn the_timeout_is_short_with_few_packets_in_flight() {
    for (packets, us) in [(1, 100), (2, 100), (3, 320), (8, 320)] {
        let mut bench = bench(8);
        bench.post(0, packets * MTU);
        bench.transmit();
        assert_eq!(bench.until_deadline(), us, "{packets}");
    }
    // Three in flight, of which one arrives: the timer comes forward.
    let mut bench = bench(8);
    bench.post(0, 3 * MTU);
    let packets = bench.transmit();
    bench.now += Span::from_us(50);
    bench.exchange_only(&packets, &[0]);
    assert_eq!(bench.until_deadline(), 100);
    let brought = bench
        .sender
        .brought_forward(&bench.controller, &bench.rules);
    assert_eq!(brought.since(bench.now), Span::from_us(100));
}

#[test]
fn without_a_short_timeout_the_number_in_flight_is_of_no_account() {
    for packets in [1, 8] {
        let mut bench = Bench::with(8, |p| p.recovery = Recovery::Irn);
        bench.post(0, packets * MTU);
        bench.transmit();
        assert_eq!(bench.until_deadline(), 250);
        let brought = bench
            .sender
            .brought_forward(&bench.controller, &bench.rules);
        assert_eq!(brought, bench.controller.deadline());
    }
}

#[test]
fn it_sends_no_probes() {
    let mut bench = bench(8);
    bench.post(0, 8 * MTU);
    bench.transmit();
    for _ in 0..300 {
        assert!(bench.wait(1) == Due::Nothing);
    }
}
