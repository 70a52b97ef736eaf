//! Events of the links of a switch with a shared buffer.

use super::super::ingress::Ingress;
use super::super::local_choice::LocalChoice;
use super::{SharedPort, SharedSwitch};
use crate::events::PortChange;
use crate::link::Sinks;
use crate::observer::{DropCause, Observer};
use crate::topology::NextHops;
use clearway_transport::Packet;
use clearway_transport::telemetry::Telemetry;
use clearway_units::Time;

impl<T: Telemetry> SharedSwitch<T> {
    /// Carries out the events of links up to and with `now`.
    #[cold]
    #[inline(never)]
    pub(super) fn pass_changes<O: Observer>(&mut self, now: Time, sinks: &mut Sinks<'_, O, T>) {
        while let Some(&(at, port)) = self.changes.0.front()
            && at <= now
        {
            self.changes.0.pop_front();
            let transmitter = &mut self.ports[usize::from(port)];
            let Some((_, change)) = transmitter.link.next_change() else {
                continue;
            };
            transmitter.link.pass_change();
            match change {
                PortChange::Down => {
                    self.ends.retain(|end| end.0.1 != port);
                    self.effects.retain(|effect| effect.1 != port);
                    for left in transmitter.go_down(now, sinks) {
                        if left.class.is_data() {
                            self.release(left);
                        }
                    }
                }
                PortChange::Up => {
                    transmitter.come_up();
                    self.wakes.wake(port);
                }
                PortChange::Rate(_) => {}
            }
        }
    }

    /// Time of the next event of a link at which there is anything to change. The others are carried out when something else happens.
    #[cold]
    #[inline(never)]
    pub(super) fn next_change_of_note(&self) -> Time {
        let is_of_note = |port: u16| {
            let tell = self.buffer.paused(port.into());
            let is_waiting = self.effects.iter().any(|effect| effect.1 == port);
            is_waiting || !self.ports[usize::from(port)].is_quiet(tell)
        };
        let mut changes = self.changes.0.iter();
        let first = changes.find(|(_, port)| is_of_note(*port));
        first.map_or(Time::NEVER, |(at, _)| *at)
    }
}

/// The egress port of a packet in a run with events of links, or where ports are chosen by what waits there; or the port at which it is
/// dropped and why.
#[cold]
#[inline(never)]
pub(super) fn egress_at<T: Telemetry>(
    (ingress, ports): (&Ingress<T>, &[SharedPort<T>]),
    local: &mut Option<Box<LocalChoice>>,
    now: Time,
    packet: &Packet,
) -> Result<usize, (usize, DropCause)> {
    let next = ingress.next_hops_at(now, packet);
    let port = match next.map_err(|port| (port, DropCause::NoRoute))? {
        NextHops::Host(port) => port.into(),
        NextHops::Ports(next) => match local {
            None => ingress.pick_at(now, packet),
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
