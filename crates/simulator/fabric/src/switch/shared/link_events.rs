//! Events of the links of a switch with a shared buffer.

use super::SharedSwitch;
use super::changes::PortEvent;
use crate::events::PortChange;
use crate::link::Sinks;
use crate::observer::Observation;
use clearway_transport::ClassSet;
use clearway_transport::congestion::telemetry::Telemetry;
use clearway_units::Time;

impl<T: Telemetry> SharedSwitch<T> {
    /// Carries out the events of links up to and with `now`.
    #[cold]
    #[inline(never)]
    pub(super) fn pass_changes<O: Observation>(&mut self, now: Time, sinks: &mut Sinks<'_, O, T>) {
        while let Some(&PortEvent { at, port, .. }) = self.changes.0.front()
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
                    self.ends.remove(port);
                    self.effects.retain(|effect| effect.1 != port);
                    for left in transmitter.go_down(now, sinks) {
                        if left.class.is_data() {
                            self.release(left);
                        }
                    }
                }
                PortChange::Up => {
                    transmitter.come_up(now, sinks);
                    self.wakes.wake(port);
                }
                PortChange::PauseStorm(begins) => {
                    let classes = match begins {
                        true => self.buffer.lossless(),
                        false => ClassSet::EMPTY,
                    };
                    transmitter.change_storm(now, classes, sinks);
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
        let is_of_note = |&&PortEvent { port, storm, .. }: &&PortEvent| {
            let tell = self.buffer.paused(port.into());
            let is_waiting = self.effects.iter().any(|effect| effect.1 == port);
            storm || is_waiting || !self.ports[usize::from(port)].is_quiet(tell)
        };
        let mut changes = self.changes.0.iter();
        changes
            .find(is_of_note)
            .map_or(Time::NEVER, |change| change.at)
    }
}
