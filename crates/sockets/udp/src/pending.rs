//! Frames that wait to be sent: the newest frame of each kind, so that incoming datagrams cannot make them accumulate.

use crate::wire::Frame;
use std::collections::VecDeque;
use std::net::SocketAddr;

/// Most refusals that wait; an omitted refusal is repeated at a later packet of its message.
const MOST_REFUSED: usize = 64;

/// A frame and its destination.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Waiting {
    pub(crate) frame: Frame,
    /// Path and address; `None` is any path.
    pub(crate) place: Option<(u8, SocketAddr)>,
    /// Length to which the datagram is padded.
    pub(crate) length: usize,
}

/// Answer to a challenge of a path.
#[derive(Debug, Clone, Copy)]
struct Response {
    token: u64,
    to: SocketAddr,
    /// Length of the challenge's datagram.
    length: usize,
}

/// Frames that wait to be sent.
#[derive(Debug, Default)]
pub(crate) struct Pending {
    /// True if there may be one.
    any: bool,
    close_received: bool,
    close: Option<u64>,
    responses: Vec<Option<Response>>,
    credit: Option<u64>,
    blocked: Option<u64>,
    refused: VecDeque<(u32, u32)>,
    keep_alive: bool,
}

impl Pending {
    /// Adds a frame for any path, in place of an older frame of its kind.
    pub(crate) fn push(&mut self, frame: Frame) {
        self.any = true;
        match frame {
            Frame::Close(code) => self.close = Some(code),
            Frame::CloseReceived => self.close_received = true,
            Frame::Credit(limit) => self.credit = Some(limit),
            Frame::Blocked(limit) => self.blocked = Some(limit),
            Frame::Refused { flow, message } => {
                let refused = (flow, message);
                if self.refused.len() < MOST_REFUSED && !self.refused.contains(&refused) {
                    self.refused.push_back(refused);
                }
            }
            Frame::KeepAlive => self.keep_alive = true,
            Frame::PathChallenge(_) | Frame::PathResponse(_) => {
                debug_assert!(false, "these have a place");
            }
        }
    }

    /// True if a close frame waits.
    pub(crate) fn has_close(&self) -> bool {
        self.close.is_some()
    }

    /// Adds the answer to a challenge that arrived on a path in a datagram of `length` bytes.
    pub(crate) fn respond(&mut self, path: u8, to: SocketAddr, token: u64, length: usize) {
        let index = usize::from(path);
        if index >= self.responses.len() {
            self.responses.resize(index + 1, None);
        }
        self.any = true;
        self.responses[index] = Some(Response { token, to, length });
    }

    /// The next frame.
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<Waiting> {
        self.any.then(|| self.pop_any()).flatten()
    }

    #[cold]
    fn pop_any(&mut self) -> Option<Waiting> {
        let somewhere = |frame| Waiting {
            frame,
            place: None,
            length: 0,
        };
        if std::mem::take(&mut self.close_received) {
            return Some(somewhere(Frame::CloseReceived));
        }
        if let Some(code) = self.close.take() {
            return Some(somewhere(Frame::Close(code)));
        }
        for (path, response) in (0..).zip(&mut self.responses) {
            if let Some(response) = response.take() {
                return Some(Waiting {
                    frame: Frame::PathResponse(response.token),
                    place: Some((path, response.to)),
                    length: response.length,
                });
            }
        }
        let credit = self.credit.take().map(Frame::Credit);
        let frame = credit.or_else(|| self.blocked.take().map(Frame::Blocked));
        let refused = || {
            let (flow, message) = self.refused.pop_front()?;
            Some(Frame::Refused { flow, message })
        };
        let frame = frame.or_else(refused);
        let keep_alive = &mut self.keep_alive;
        let frame = frame.or_else(|| std::mem::take(keep_alive).then_some(Frame::KeepAlive));
        self.any = frame.is_some();
        frame.map(somewhere)
    }

    /// Drops all frames.
    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_each_kind_there_is_one_and_responses_have_their_places() {
        let mut pending = Pending::default();
        assert_eq!(pending.pop(), None);
        let here = SocketAddr::from(([10, 0, 0, 1], 1));
        for round in 0..10_000 {
            pending.push(Frame::Credit(round));
            pending.push(Frame::KeepAlive);
            pending.push(Frame::Blocked(round));
            pending.respond(3, here, round, 1200);
            pending.respond(0, here, round, 30);
            for _ in 0..2 {
                pending.push(Frame::Refused {
                    flow: 0,
                    message: round as u32,
                });
            }
        }
        let all: Vec<_> = std::iter::from_fn(|| pending.pop()).collect();
        assert_eq!(all.len(), 5 + MOST_REFUSED);
        let response = Waiting {
            frame: Frame::PathResponse(9_999),
            place: Some((3, here)),
            length: 1200,
        };
        assert_eq!(all[1], response);
        let credit = Frame::Credit(9_999);
        assert!(all.iter().any(|waiting| waiting.frame == credit));
        pending.push(Frame::Close(1));
        pending.clear();
        assert_eq!(pending.pop(), None);
    }
}
