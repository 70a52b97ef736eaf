//! Pool of message buffers, for messages in both directions.

use bytes::Bytes;
use clearway_udp::Acceptor;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

/// Most bytes of all buffers in a pool.
const MOST_BYTES: usize = 32 << 20;
/// Most buffers in a pool.
const MOST_BUFFERS: usize = 256;

/// Pool of message buffers: a message in a buffer of an earlier one costs neither page faults nor clearing.
///
/// The pool keeps the buffers that came last. Clones share their buffers.
#[derive(Debug, Clone, Default)]
pub(crate) struct BufferPool(Arc<Mutex<Buffers>>);

#[derive(Debug, Default)]
struct Buffers {
    /// From the one that came first.
    free: VecDeque<Vec<u8>>,
    bytes: usize,
}

impl BufferPool {
    /// Gives a buffer back.
    pub(crate) fn put(&self, buffer: Vec<u8>) {
        if buffer.is_empty() || buffer.len() > MOST_BYTES {
            return;
        }
        let mut buffers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        buffers.bytes += buffer.len();
        buffers.free.push_back(buffer);
        while buffers.bytes > MOST_BYTES || buffers.free.len() > MOST_BUFFERS {
            let oldest = buffers.free.pop_front().unwrap_or_default();
            buffers.bytes -= oldest.len();
        }
    }

    /// A buffer of `length` bytes with any content.
    pub(crate) fn take(&self, length: usize) -> Vec<u8> {
        let mut buffers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // The last buffer is most likely in the processor's cache.
        let fits = buffers
            .free
            .iter()
            .rposition(|buffer| buffer.len() == length);
        let fits = fits.and_then(|index| buffers.free.remove(index));
        if fits.is_some() {
            buffers.bytes -= length;
        }
        drop(buffers);
        fits.unwrap_or_else(|| vec![0; length])
    }

    /// Content of a message to send, whose buffer returns to this pool after the last use.
    pub(crate) fn share(&self, buffer: Vec<u8>) -> Bytes {
        Bytes::from_owner(Lent {
            buffer,
            pool: self.clone(),
        })
    }
}

impl Acceptor for BufferPool {
    fn accept(&mut self, _tag: u64, length: usize) -> Option<Vec<u8>> {
        Some(self.take(length))
    }
}

/// A buffer that returns to its pool.
struct Lent {
    buffer: Vec<u8>,
    pool: BufferPool,
}

impl AsRef<[u8]> for Lent {
    fn as_ref(&self) -> &[u8] {
        &self.buffer
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        self.pool.put(std::mem::take(&mut self.buffer));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lengths(pool: &BufferPool) -> Vec<usize> {
        let buffers = pool.0.lock().unwrap();
        let lengths: Vec<usize> = buffers.free.iter().map(Vec::len).collect();
        assert_eq!(buffers.bytes, lengths.iter().sum::<usize>());
        lengths
    }

    #[test]
    fn buffers_return_after_the_last_use() {
        let pool = BufferPool::default();
        let sent = pool.share(vec![7; 100]);
        let (head, tail) = (sent.slice(..50), sent.slice(50..));
        drop((sent, head));
        assert_eq!(lengths(&pool), []);
        drop(tail);
        assert_eq!(lengths(&pool), [100]);
        assert_eq!(pool.take(99), [0; 99]);
        assert_eq!(pool.take(100), [7; 100]);
        assert_eq!(lengths(&pool), []);
    }

    #[test]
    fn old_buffers_make_room_for_new_ones() {
        let pool = BufferPool::default();
        pool.put(Vec::new());
        pool.put(vec![0; MOST_BYTES + 1]);
        assert_eq!(lengths(&pool), []);
        for length in [1, MOST_BYTES / 2, MOST_BYTES / 2] {
            pool.put(vec![0; length]);
        }
        assert_eq!(lengths(&pool), [MOST_BYTES / 2; 2]);
        (0..MOST_BUFFERS).for_each(|_| pool.put(vec![0; 8]));
        assert_eq!(lengths(&pool), [8; MOST_BUFFERS]);
    }
}
