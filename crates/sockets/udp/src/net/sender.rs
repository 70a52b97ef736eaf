//! Datagrams that wait to be sent, in batches by destination.

use super::sockets::Socket;
use crate::connection::Transmit;

/// Most bytes that the kernel takes with one call.
const LONGEST_BATCH: usize = 65_507;

/// Datagrams of one length to one destination; the last may be shorter.
#[derive(Default)]
struct Batch {
    /// The first datagram.
    first: Option<Transmit>,
    count: usize,
    bytes: Vec<u8>,
}

impl Batch {
    /// True if a datagram can be sent together with the `before` bytes already in the batch.
    fn takes(&self, transmit: &Transmit, before: usize, most: usize) -> bool {
        let Some(first) = self.first.filter(|_| self.count > 0) else {
            return true;
        };
        let ends = |transmit: &Transmit| (transmit.to, transmit.from, transmit.ecn_capable);
        self.count < most
            && !first.alone
            && !transmit.alone
            && ends(&first) == ends(transmit)
            && transmit.length <= first.length
            // None of them was shorter.
            && before == self.count * first.length
            && before + transmit.length <= LONGEST_BATCH
    }

    /// Counts a datagram whose bytes are in the buffer; true if it is the first.
    fn note(&mut self, transmit: &Transmit) -> bool {
        let is_first = self.count == 0;
        if is_first {
            self.first = Some(*transmit);
        }
        self.count += 1;
        is_first
    }
}

/// Batches of datagrams, one for each path. A new datagram is written in place, behind the batch of the last path used.
#[derive(Default)]
pub(super) struct Sender {
    batches: Vec<Batch>,
    /// Paths with non-empty batches, in the order in which the batches began, so that packets arrive in order where possible.
    order: Vec<usize>,
    /// The path of the last datagram.
    last: usize,
    /// The socket that has to wait until it can be written.
    blocked: Option<usize>,
    /// A datagram that came when its socket could not be written.
    held: Option<(Transmit, Vec<u8>)>,
}

impl Sender {
    /// The socket that cannot be written, if any: then the caller must not [add](Self::add) datagrams.
    pub(super) fn blocked(&self) -> Option<usize> {
        self.blocked
    }

    /// Records that the socket can be written again.
    pub(super) fn unblock(&mut self) {
        self.blocked = None;
    }

    /// Adds the datagram that `write` appends to a buffer; false if `write` has none. Sends datagrams first that cannot share its batch.
    #[inline]
    pub(super) fn add(
        &mut self,
        sockets: &[Socket],
        write: impl FnOnce(&mut Vec<u8>) -> Option<Transmit>,
    ) -> bool {
        if self.batches.is_empty() {
            self.batches.push(Batch::default());
        }
        let batch = &mut self.batches[self.last];
        let before = batch.bytes.len();
        let Some(transmit) = write(&mut batch.bytes) else {
            return false;
        };
        let path = usize::from(transmit.path);
        let most = sockets[path.min(sockets.len() - 1)].most_segments();
        if path == self.last && batch.takes(&transmit, before, most) {
            if batch.note(&transmit) {
                self.order.push(path);
            }
        } else {
            self.place(sockets, &transmit, before, most);
        }
        true
    }

    /// Moves the datagram behind the first `before` bytes of the last batch to the batch of its path.
    #[inline(never)]
    fn place(&mut self, sockets: &[Socket], transmit: &Transmit, before: usize, most: usize) {
        let (last, path) = (self.last, usize::from(transmit.path));
        let mut bytes = std::mem::take(&mut self.batches[last].bytes);
        if path >= self.batches.len() {
            self.batches.resize_with(path + 1, Batch::default);
        }
        if path != last {
            self.push(sockets, transmit, &bytes[before..], most);
            bytes.truncate(before);
            self.last = path;
        } else if self.send(sockets, path, &bytes[..before]) {
            bytes.drain(..before);
            // The path keeps its place in the order.
            self.batches[path].count = 0;
            self.batches[path].note(transmit);
        } else {
            self.held = Some((*transmit, bytes.split_off(before)));
        }
        self.batches[last].bytes = bytes;
    }

    /// Adds a datagram that was written elsewhere.
    fn push(&mut self, sockets: &[Socket], transmit: &Transmit, datagram: &[u8], most: usize) {
        let path = usize::from(transmit.path);
        let takes = |batch: &Batch| batch.takes(transmit, batch.bytes.len(), most);
        if !takes(&self.batches[path]) && self.flush_path(sockets, path) {
            self.order.retain(|&other| other != path);
        }
        let batch = &mut self.batches[path];
        if !takes(batch) {
            self.held = Some((*transmit, datagram.to_vec()));
            return;
        }
        batch.bytes.extend_from_slice(datagram);
        if batch.note(transmit) {
            self.order.push(path);
        }
    }

    /// Sends everything; false if a socket has to wait.
    pub(super) fn flush(&mut self, sockets: &[Socket]) -> bool {
        let mut order = std::mem::take(&mut self.order);
        order.retain(|&path| !self.flush_path(sockets, path));
        self.order = order;
        if self.blocked.is_none()
            && let Some((transmit, bytes)) = self.held.take()
        {
            // All batches are empty.
            self.push(sockets, &transmit, &bytes, 1);
            return self.flush(sockets);
        }
        self.blocked.is_none()
    }

    /// Sends the batch of a path; false if its socket has to wait.
    fn flush_path(&mut self, sockets: &[Socket], path: usize) -> bool {
        let bytes = std::mem::take(&mut self.batches[path].bytes);
        let sent = bytes.is_empty() || self.send(sockets, path, &bytes);
        let batch = &mut self.batches[path];
        batch.bytes = bytes;
        if sent {
            batch.bytes.clear();
            batch.count = 0;
        }
        sent
    }

    /// Sends datagrams of a path as its batch says; false if its socket has to wait.
    fn send(&mut self, sockets: &[Socket], path: usize, bytes: &[u8]) -> bool {
        let first = self.batches[path].first.as_ref();
        let index = path.min(sockets.len() - 1);
        let sent = first.is_none_or(|first| sockets[index].send(first, bytes));
        if !sent {
            self.blocked = Some(index);
        }
        sent
    }
}
