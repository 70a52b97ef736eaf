//! Actions of a connection when a timer expires.

use super::{Connection, State};
use crate::error::ConnectionError;
use crate::wire::{BROKEN, Frame};
use clearway_units::{Span, Time};

/// Time after which the connection repeats a frame that needs an answer.
const REPEAT: Span = Span::from_ms(20);
/// Time for which this end answers copies of the other end's final frames.
const DRAIN: Span = Span::from_ms(300);

impl Connection {
    /// Time of the next call of [`on_deadline`](Self::on_deadline); [`Time::NEVER`] if nothing waits. The time may be too early, never too
    /// late.
    pub fn deadline(&self) -> Time {
        let timers = &self.timers;
        let at = |time: Option<Time>| time.unwrap_or(Time::NEVER);
        match &self.state {
            State::Closed => Time::NEVER,
            State::Connecting(client) => client.deadline(timers.idle),
            State::Closing { .. } | State::Draining => at(timers.close_at),
            State::Open | State::ShuttingDown(_) => {
                let core = self.core.as_ref();
                let core = core.map_or(Time::NEVER, |core| core.endpoint.deadline());
                let idle = timers.heard + timers.idle;
                let keep_alive = timers.spoken + timers.idle / 3;
                let own = at(timers.blocked_at).min(idle).min(keep_alive);
                let own = own.min(at(timers.confirm_by)).min(at(timers.proven_by));
                let own = own.min(at(timers.search_by)).min(self.progress.deadline());
                core.min(own).min(self.paths.deadline())
            }
        }
    }

    /// Runs the timers that have expired. Early and frequent calls are harmless.
    pub fn on_deadline(&mut self, now: Time) {
        match &mut self.state {
            State::Closed => {}
            State::Connecting(client) => {
                if client.is_hopeless(now, self.timers.idle) {
                    let reason = ConnectionError::NoAnswer(client.server());
                    self.end(reason);
                }
            }
            State::Closing { .. } => self.on_closing(now),
            State::Draining => {
                if self.timers.close_at.is_some_and(|at| at <= now) {
                    self.state = State::Closed;
                }
            }
            State::Open | State::ShuttingDown(_) => self.on_open_deadline(now),
        }
    }

    fn on_open_deadline(&mut self, now: Time) {
        if self.timers.confirm_by.is_some_and(|by| by <= now) {
            // The application has never heard of it.
            self.state = State::Closed;
            return;
        }
        if self.timers.heard + self.timers.idle <= now {
            return self.end(ConnectionError::Silent(self.timers.idle));
        }
        if self.timers.proven_by.is_some_and(|by| by <= now) {
            let bytes = self.datagram();
            self.events.closed(ConnectionError::Datagram { bytes });
            return self.begin_close(now, BROKEN);
        }
        if self.timers.search_by.is_some_and(|by| by <= now) {
            self.give_up_search(now);
        }
        if self.timers.spoken + self.timers.idle / 3 <= now {
            self.timers.spoken = now;
            self.pending.push(Frame::KeepAlive);
        }
        if self.timers.blocked_at.is_some_and(|at| at <= now) {
            let blocked = self.outgoing.blocked();
            self.timers.blocked_at = blocked.map(|_| now + REPEAT);
            if let Some(limit) = blocked {
                self.pending.push(Frame::Blocked(limit));
            }
        }
        if let Some(core) = &mut self.core {
            core.endpoint.on_deadline(now);
            let idle = self.timers.idle;
            if self.progress.has_stopped(now, idle, &core.endpoint) {
                self.prove_again(now);
            }
        }
        self.close_if_done(now);
    }

    /// Repeats the close frame, or stops. Does not add a close frame while one waits for the socket.
    fn on_closing(&mut self, now: Time) {
        if self.timers.close_at.is_none_or(|at| at > now) {
            return;
        }
        if let State::Closing { code, left, until } = &mut self.state {
            let waits = self.pending.has_close();
            if *until <= now || (*left == 0 && !waits) {
                return self.end(ConnectionError::Here);
            }
            if !waits {
                *left -= 1;
                self.pending.push(Frame::Close(*code));
            }
            self.timers.close_at = Some(now + REPEAT);
        }
    }

    /// The other end has closed.
    pub(super) fn on_closed_there(&mut self, now: Time, code: u64) {
        self.end_search();
        self.pending.push(Frame::CloseReceived);
        if matches!(self.state, State::Draining) {
            return;
        }
        if matches!(self.state, State::Closing { .. }) {
            // Both ends at once: each has its own reason.
            self.events.closed(ConnectionError::Here);
        } else {
            self.events.closed(ConnectionError::There(code));
        }
        self.state = State::Draining;
        self.timers.close_at = Some(now + DRAIN);
        self.core = None;
    }
}
