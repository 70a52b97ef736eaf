//! Wall-clock time of the transport's packet loop, without any network: data packets out, acknowledgements in.
//!
//! `cargo bench -p clearway-transport`. For figures that a busy machine does not disturb see `cargo xtask bench`.

#![allow(missing_docs, reason = "criterion's macros declare functions")]

use clearway_transport::congestion::telemetry::IntPacket;
use clearway_transport::testing::network;
use clearway_transport::{Class, Endpoint, Opening, Profile};
use clearway_units::{Bytes, FlowId, HostId, MessageId, Rate, Span, Time};
use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use std::sync::Arc;

const ROUND_TRIP: Span = Span::from_us(8);

/// A sender whose first window is on the wire, and that window's packets.
fn window_sent() -> (Endpoint, Vec<IntPacket>) {
    let profile = Profile::strack(network(Rate::from_gbps(400), ROUND_TRIP));
    let profile = Arc::new(profile);
    let mut sender = Endpoint::new(HostId(0), Arc::clone(&profile), 1);
    let flow = FlowId(0);
    let opening = Opening::usual(Class::DATA, profile.network.path);
    sender.open(flow, HostId(1), &opening);
    sender.post(Time::ZERO, flow, MessageId(0), Bytes::new(1 << 40));
    let packets = std::iter::from_fn(|| sender.poll_transmit(Time::ZERO)).collect();
    (sender, packets)
}

/// The receiver's answers to `packets`.
fn answers(packets: &[IntPacket]) -> Vec<IntPacket> {
    let profile = Profile::strack(network(Rate::from_gbps(400), ROUND_TRIP));
    let mut receiver = Endpoint::new(HostId(1), Arc::new(profile), 1);
    let now = Time::ZERO + Span::from_us(4);
    packets
        .iter()
        .filter_map(|packet| {
            receiver.on_packet(now, packet);
            receiver.poll_transmit(now)
        })
        .collect()
}

/// Takes in each acknowledgement, and sends as far as the window then allows.
fn take_in(mut sender: Endpoint, acknowledgements: &[IntPacket]) -> usize {
    let now = Time::ZERO + ROUND_TRIP;
    let mut sent = 0;
    for acknowledgement in acknowledgements {
        sender.on_packet(now, acknowledgement);
        while sender.poll_transmit(now).is_some() {
            sent += 1;
        }
    }
    sent
}

fn acknowledgements(criterion: &mut Criterion) {
    let (_, packets) = window_sent();
    let in_order = answers(&packets);
    // Neighbours change places, as they do when packets are sprayed over paths.
    let mut swapped = packets.clone();
    swapped.chunks_exact_mut(2).for_each(|pair| pair.swap(0, 1));
    let out_of_order = answers(&swapped);
    assert!(in_order.len() > 100, "{}", in_order.len());

    let mut group = criterion.benchmark_group("a window of acknowledgements");
    for (name, list) in [("in order", in_order), ("out of order", out_of_order)] {
        group.throughput(Throughput::Elements(list.len() as u64));
        group.bench_function(name, |bencher| {
            bencher.iter_batched(
                || window_sent().0,
                |sender| take_in(sender, &list),
                BatchSize::SmallInput,
            );
        });
    }
    group.finish();
}

criterion_group!(benches, acknowledgements);
criterion_main!(benches);
