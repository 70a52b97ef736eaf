//! Memory of packets: each packet has a buffer, which is reused after the packet leaves.

use crate::packet::Headers;

/// Packet in the pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Slot(u32);

#[derive(Debug)]
struct Stored {
    bytes: Box<[u8]>,
    length: usize,
    headers: Headers,
    hash: u32,
}

/// Buffers of equal size, allocated on first use.
#[derive(Debug)]
pub(crate) struct Pool {
    stored: Vec<Stored>,
    free: Vec<Slot>,
    /// Bytes of a buffer.
    longest: usize,
    /// Most buffers.
    most: usize,
}

impl Pool {
    pub(crate) fn new(longest: usize, memory: usize) -> Self {
        Self {
            stored: Vec::new(),
            free: Vec::new(),
            longest,
            most: (memory / longest.max(1)).clamp(1, u32::MAX as usize),
        }
    }

    /// Stores a packet, unless it is too long or all buffers are in use.
    pub(crate) fn store(&mut self, packet: &[u8], headers: Headers, hash: u32) -> Option<Slot> {
        let slot = self.vacant(packet.len(), headers, hash)?;
        let stored = &mut self.stored[slot.0 as usize];
        stored.bytes[..packet.len()].copy_from_slice(packet);
        Some(slot)
    }

    /// A copy of a packet, if there is a buffer for it.
    pub(crate) fn copy(&mut self, slot: Slot) -> Option<Slot> {
        let original = &self.stored[slot.0 as usize];
        let (length, headers, hash) = (original.length, original.headers, original.hash);
        let copy = self.vacant(length, headers, hash)?;
        let (from, to) = (slot.0 as usize, copy.0 as usize);
        let [original, stored] = self.stored.get_disjoint_mut([from, to]).ok()?;
        stored.bytes[..length].copy_from_slice(&original.bytes[..length]);
        Some(copy)
    }

    fn vacant(&mut self, length: usize, headers: Headers, hash: u32) -> Option<Slot> {
        if length > self.longest {
            return None;
        }
        let slot = match self.free.pop() {
            Some(slot) => slot,
            None if self.stored.len() >= self.most => return None,
            None => {
                self.stored.push(Stored {
                    bytes: vec![0; self.longest].into(),
                    length,
                    headers,
                    hash,
                });
                return Some(Slot(self.stored.len() as u32 - 1));
            }
        };
        let stored = &mut self.stored[slot.0 as usize];
        (stored.length, stored.headers, stored.hash) = (length, headers, hash);
        Some(slot)
    }

    /// Puts a buffer back into the pool.
    pub(crate) fn release(&mut self, slot: Slot) {
        self.free.push(slot);
    }

    pub(crate) fn bytes(&self, slot: Slot) -> &[u8] {
        let stored = &self.stored[slot.0 as usize];
        &stored.bytes[..stored.length]
    }

    pub(crate) fn bytes_mut(&mut self, slot: Slot) -> &mut [u8] {
        let stored = &mut self.stored[slot.0 as usize];
        &mut stored.bytes[..stored.length]
    }

    /// Fields that switches have read of a packet, and its hash.
    pub(crate) fn headers(&self, slot: Slot) -> (Headers, u32) {
        let stored = &self.stored[slot.0 as usize];
        (stored.headers, stored.hash)
    }

    /// Stored packets.
    pub(crate) fn in_use(&self) -> usize {
        self.stored.len() - self.free.len()
    }
}
