//! One message over UDP between two endpoints of `clearway-transport`, in a loop that polls sockets as a poll-mode driver does.
//!
//! The crate decides which packets leave, and when. The clock, the sockets and the loop belong to this program.

use clearway_transport::testing::network;
use clearway_transport::wire::{Network, strack};
use clearway_transport::{Class, Endpoint, Event, Opening, Profile};
use clearway_units::{Bytes, FlowId, HostId, MessageId, Rate, Span, Time};
use std::{io, net::UdpSocket, sync::Arc, thread, time::Duration, time::Instant};

fn main() -> io::Result<()> {
    // The rate and the round trip give the window; the round trip gives the timeout as well.
    let facts = network(Rate::from_bps(200_000_000), Span::from_ms(1));
    let profile = Arc::new(Profile::strack(facts));
    let mut ends = [0, 1].map(|host| Endpoint::new(HostId(host), Arc::clone(&profile), 1));
    let sockets = [
        UdpSocket::bind("127.0.0.1:0")?,
        UdpSocket::bind("127.0.0.1:0")?,
    ];
    for end in 0..2 {
        sockets[end].connect(sockets[1 - end].local_addr()?)?;
        sockets[end].set_nonblocking(true)?;
    }
    let (flow, message) = (FlowId(0), MessageId(0));
    ends[0].open(flow, HostId(1), &Opening::usual(Class::DATA, facts.path));
    ends[0].post(Time::ZERO, flow, message, Bytes::new(1_000_000));
    ends[0].close(Time::ZERO, flow);

    #[expect(clippy::disallowed_methods, reason = "this driver has a clock")]
    let clock = Instant::now();
    // Times from which the wires can take a further packet.
    let mut free = [Time::ZERO; 2];
    let mut datagram = vec![0; 1 << 16];
    loop {
        for ((end, free), socket) in ends.iter_mut().zip(&mut free).zip(&sockets) {
            let now = Time::ZERO + Span::from_ns(clock.elapsed().as_nanos() as u64);
            while let Ok(length) = socket.recv(&mut datagram) {
                let addresses = Network {
                    src: HostId(1 - end.host().0),
                    dst: end.host(),
                    class: Class::DATA,
                    marked: false,
                    source_port: 0,
                    destination_port: strack::PORT,
                };
                if let Ok(packet) = strack::read(&datagram[..length], &addresses) {
                    end.on_packet(now, &packet.into());
                }
            }
            end.on_deadline(now);
            while *free <= now
                && let Some(packet) = end.poll_transmit(now)
            {
                *free += facts.line_rate.span_of(Bytes::new(packet.size.into()));
                let mut bytes = Vec::new();
                strack::write(&packet, &mut bytes);
                // The payload is zeros.
                bytes.resize(packet.size.into(), 0);
                socket.send(&bytes)?;
            }
            while let Some(event) = end.poll_event() {
                match event {
                    Event::Received { bytes, .. } => println!("{now}: {bytes} have arrived"),
                    Event::Sent { statistics, .. } => {
                        let (all, again) = (statistics.packets, statistics.retransmitted);
                        println!("{now}: acknowledged, {all} packets, {again} of them again");
                        return Ok(());
                    }
                    _ => {}
                }
            }
        }
        thread::sleep(Duration::from_micros(10));
    }
}
