//! The egress port of a packet, where it does not depend on the header alone.

use super::super::adaptive_routing::AdaptiveRouting;
use super::super::ingress::Ingress;
use super::port::SharedPort;
use crate::observer::DropCause;
use crate::topology::NextHops;
use clearway_transport::Packet;
use clearway_transport::congestion::telemetry::Telemetry;
use clearway_units::Time;

/// The egress port of a packet in a run with events of links, or where ports are chosen by their queues; or the port at which it is dropped
/// and why.
#[cold]
#[inline(never)]
pub(super) fn egress_at<T: Telemetry>(
    (ingress, ports): (&Ingress<T>, &[SharedPort<T>]),
    local: &mut Option<Box<AdaptiveRouting>>,
    now: Time,
    packet: &Packet,
) -> Result<usize, (usize, DropCause)> {
    let next = ingress.next_hops_at(now, packet);
    let port = match next.map_err(|port| (port, DropCause::NoRoute))? {
        NextHops::Host(port) => port.into(),
        NextHops::Ports(next) => match local {
            None => ingress.pick_at(now, packet, next),
            Some(local) => {
                let state = |port: u16| ports[usize::from(port)].state();
                local.choose(now, packet, next, state).into()
            }
        },
    };
    match ports[port].link.is_down() {
        true => Err((port, DropCause::LinkDown)),
        false => Ok(port),
    }
}
