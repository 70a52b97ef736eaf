use crate::testing::{Pair, PipeSettings, network};
use crate::{Event, Profile};
use clearway_units::{Bytes, Rate, Span, Time};

#[test]
fn one_packet_takes_the_unloaded_round_trip() {
    let network = network(Rate::from_gbps(400), Span::from_us(8));
    let mut pair = Pair::new(Profile::strack(network), PipeSettings::ideal(&network), 1);
    let flow = pair.send(Bytes::new(4096));
    pair.run();
    // 4160 B and 64 B at 20 ps a byte, and 4 us each way.
    assert_eq!(pair.finished(flow), Some(Time::from_ps(8_084_480)));
    assert_eq!(pair.ends[0].open_senders(), 0);
    assert!(matches!(pair.events()[0].2, Event::Received { .. }));
}
