//! The sender's scoreboard: three bits for each packet of the window.

use super::bitmap::ones;
use clearway_prefetch::prefetch;
use std::ops::Range;

/// 64 consecutive packets.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Block {
    /// Known to have arrived.
    pub(crate) acknowledged: u64,
    /// Declared lost and waiting to be sent again.
    pub(crate) lost: u64,
    /// Sent again since the last probe.
    pub(crate) resent: u64,
}

/// A ring of [`Block`]s addressed by sequence number.
#[derive(Debug, Clone)]
pub(crate) struct Scoreboard {
    blocks: Box<[Block]>,
    /// Sequence numbers among which all packets sent again since the last probe are.
    resent: Range<u64>,
}

/// The part of a range of sequence numbers that lies in one block.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Part {
    /// Sequence number of the block's first bit.
    pub(crate) base: u64,
    /// The bits in the range.
    pub(crate) mask: u64,
}

/// Cuts `from..to` at the borders of blocks.
#[inline]
pub(crate) fn parts(from: u64, to: u64) -> impl Iterator<Item = Part> {
    let mut next = from;
    std::iter::from_fn(move || {
        (next < to).then(|| {
            let (base, shift) = (next & !63, next & 63);
            let count = (to - next).min(64 - shift);
            next += count;
            Part {
                base,
                mask: ones(count) << shift,
            }
        })
    })
}

/// The sequence numbers of the set `bits` of the block at `base`, lowest first.
pub(crate) fn numbers(base: u64, mut bits: u64) -> impl Iterator<Item = u64> {
    std::iter::from_fn(move || {
        (bits != 0).then(|| {
            let psn = base + u64::from(bits.trailing_zeros());
            bits &= bits - 1;
            psn
        })
    })
}

impl Scoreboard {
    /// Creates a scoreboard for `capacity` packets, a power of two of at least 64.
    pub(crate) fn new(capacity: u32) -> Self {
        debug_assert!(capacity.is_power_of_two() && capacity >= 64);
        Self {
            blocks: vec![Block::default(); capacity as usize / 64].into_boxed_slice(),
            resent: 0..0,
        }
    }

    /// Place of the block of packet `psn`.
    #[inline]
    fn index(&self, psn: u64) -> usize {
        (psn >> 6) as usize & (self.blocks.len() - 1)
    }

    /// Loads the block of packet `psn` into the caches.
    #[inline]
    pub(crate) fn prefetch(&self, psn: u64) {
        prefetch(&self.blocks[self.index(psn)]);
    }

    #[inline]
    pub(crate) fn block(&mut self, psn: u64) -> &mut Block {
        let index = self.index(psn);
        &mut self.blocks[index]
    }

    /// Moves packet `psn` from those that wait for retransmission to those that were sent again.
    pub(crate) fn resend(&mut self, psn: u64) {
        let bit = 1 << (psn & 63);
        let block = self.block(psn);
        block.lost &= !bit;
        block.resent |= bit;
        self.resent = match self.resent.is_empty() {
            true => psn..psn + 1,
            false => self.resent.start.min(psn)..self.resent.end.max(psn + 1),
        };
    }

    /// Forgets which packets were sent again.
    pub(crate) fn clear_resent(&mut self) {
        let Range { start, end } = std::mem::take(&mut self.resent);
        // A block of the ring stands for many numbers: once round is enough.
        let blocks = parts(start, end).take(self.blocks.len());
        for part in blocks {
            self.block(part.base).resent = 0;
        }
    }

    /// The lowest lost packet at or above `from`, below `to`.
    pub(crate) fn first_lost(&mut self, from: u64, to: u64) -> Option<u64> {
        parts(from, to).find_map(|part| {
            let lost = self.block(part.base).lost & part.mask;
            (lost != 0).then(|| part.base + u64::from(lost.trailing_zeros()))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_cut_at_blocks() {
        let cut = |from, to| {
            parts(from, to)
                .map(|p| (p.base, p.mask))
                .collect::<Vec<_>>()
        };
        assert_eq!(cut(5, 5), []);
        assert_eq!(cut(5, 7), [(0, 0b110_0000)]);
        assert_eq!(cut(64, 128), [(64, u64::MAX)]);
        assert_eq!(cut(63, 130), [(0, 1 << 63), (64, u64::MAX), (128, 0b11)]);
        assert_eq!(numbers(64, 0b1001).collect::<Vec<_>>(), [64, 67]);
    }

    #[test]
    fn packets_sent_again_are_forgotten_wherever_they_are() {
        let mut board = Scoreboard::new(256);
        let resent = |board: &Scoreboard| -> u32 {
            let bits = board.blocks.iter().map(|block| block.resent.count_ones());
            bits.sum()
        };
        for numbers in [&[300, 420, 299][..], &[7], &[], &[10, 5000], &[63, 64]] {
            for &psn in numbers {
                board.resend(psn);
            }
            assert_eq!(resent(&board), numbers.len() as u32);
            board.clear_resent();
            assert_eq!(resent(&board), 0, "{numbers:?}");
        }
    }

    #[test]
    fn the_lowest_lost_packet_is_found_across_the_ring() {
        let mut board = Scoreboard::new(256);
        for psn in [300, 420] {
            board.block(psn).lost |= 1 << (psn & 63);
        }
        assert_eq!(board.first_lost(250, 500), Some(300));
        assert_eq!(board.first_lost(301, 500), Some(420));
        assert_eq!(board.first_lost(301, 420), None);
    }
}
