//! Datagrams that wait to be sent, those to one place together.

use super::sockets::Socket;
use crate::connection::Transmit;
use std::net::SocketAddr;

/// Most bytes that the kernel takes with one call.
const LONGEST_BATCH: usize = 65_000;

/// Datagrams of one length to one place; the last may be shorter.
struct Batch {
    to: SocketAddr,
    ecn: bool,
    segment: usize,
    count: usize,
    bytes: Vec<u8>,
}

impl Batch {
    /// True if a datagram can be sent with those that are here.
    fn takes(&self, transmit: &Transmit, most: usize) -> bool {
        self.count < most
            && (self.to, self.ecn) == (transmit.to, transmit.ecn_capable)
            && transmit.length <= self.segment
            && self.bytes.len() == self.count * self.segment
            && self.bytes.len() + transmit.length <= LONGEST_BATCH
    }
}

/// Batches of datagrams, one for each path.
#[derive(Default)]
pub(super) struct Sender {
    batches: Vec<Option<Batch>>,
    /// Buffers of batches that were sent.
    spare: Vec<Vec<u8>>,
    /// The socket that has to wait until it can be written.
    blocked: Option<usize>,
    /// A datagram that came when its socket could not be written.
    held: Option<(Transmit, Vec<u8>)>,
}

impl Sender {
    /// The socket that cannot be written, if there is one: then nothing is to be [pushed](Self::push).
    pub(super) fn blocked(&self) -> Option<usize> {
        self.blocked
    }

    /// Takes note that it can.
    pub(super) fn unblock(&mut self) {
        self.blocked = None;
    }

    /// Adds a datagram. Sends those of its path first, if they cannot go together.
    pub(super) fn push(&mut self, sockets: &[Socket], transmit: &Transmit, bytes: &[u8]) {
        let path = usize::from(transmit.path);
        if path >= self.batches.len() {
            self.batches.resize_with(path + 1, || None);
        }
        let most = sockets[path.min(sockets.len() - 1)].most_segments();
        let waits = self.batches[path].as_ref();
        if waits.is_some_and(|batch| !batch.takes(transmit, most)) {
            self.flush_path(sockets, path);
            if self.batches[path].is_some() {
                self.held = Some((*transmit, bytes.to_vec()));
                return;
            }
        }
        let batch = self.batches[path].get_or_insert_with(|| Batch {
            to: transmit.to,
            ecn: transmit.ecn_capable,
            segment: transmit.length,
            count: 0,
            bytes: self.spare.pop().unwrap_or_default(),
        });
        batch.count += 1;
        batch.bytes.extend_from_slice(bytes);
    }

    /// Sends everything; false if a socket has to wait.
    pub(super) fn flush(&mut self, sockets: &[Socket]) -> bool {
        (0..self.batches.len()).for_each(|path| self.flush_path(sockets, path));
        if self.blocked.is_none()
            && let Some((transmit, bytes)) = self.held.take()
        {
            self.push(sockets, &transmit, &bytes);
            self.flush_path(sockets, usize::from(transmit.path));
        }
        self.blocked.is_none()
    }

    fn flush_path(&mut self, sockets: &[Socket], path: usize) {
        let Some(batch) = &mut self.batches[path] else {
            return;
        };
        let index = path.min(sockets.len() - 1);
        if !sockets[index].send(batch.to, batch.ecn, batch.segment, &batch.bytes) {
            self.blocked = Some(index);
            return;
        }
        if let Some(mut batch) = self.batches[path].take() {
            batch.bytes.clear();
            self.spare.push(batch.bytes);
        }
    }
}
