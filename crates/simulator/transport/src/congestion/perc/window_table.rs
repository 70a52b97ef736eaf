//! Window table of a link: packets that each epoch's new flows may send before they have a rate (§5.2).

/// Epochs that a table holds. Speculative packets are sent within one round trip of their flow's start, about one epoch, and
/// then wait in queues: one that waits for longer finds no entry at a later link, though earlier ones let it through. With 8
/// epochs, about 100 us in the network of the dissertation, that happens behind a slow link.
const ENTRIES: usize = 64;

/// An epoch and its window in packets; a window of zero means an empty entry.
#[derive(Debug, Clone, Copy, Default)]
struct Entry {
    epoch: u64,
    window: u32,
}

/// Ring of the last epochs, indexed by epoch modulo its length. The epoch is also the tag: an entry serves its own epoch only.
#[derive(Debug, Clone, Copy)]
pub(super) struct WindowTable {
    entries: [Entry; ENTRIES],
}

impl Default for WindowTable {
    fn default() -> Self {
        Self {
            entries: [Entry::default(); ENTRIES],
        }
    }
}

impl WindowTable {
    /// Window of an epoch, if the table has one.
    #[inline]
    pub(super) fn get(&self, epoch: u64) -> Option<u32> {
        let entry = self.entries[slot(epoch)];
        (entry.window > 0 && entry.epoch == epoch).then_some(entry.window)
    }

    /// Enters a window of at least one packet, unless the epoch has one or the ring has moved past it. Takes the place of an older
    /// epoch.
    #[inline]
    pub(super) fn insert_first(&mut self, epoch: u64, window: u32) {
        let entry = &mut self.entries[slot(epoch)];
        if entry.window == 0 || entry.epoch < epoch {
            *entry = Entry { epoch, window };
        }
    }
}

fn slot(epoch: u64) -> usize {
    (epoch % ENTRIES as u64) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_written_once_and_overwritten_by_newer_epochs_only() {
        let mut table = WindowTable::default();
        let later = 3 + ENTRIES as u64;
        assert_eq!(table.get(0), None, "tag 0 of an empty entry");
        table.insert_first(3, 10);
        table.insert_first(3, 20);
        assert_eq!(table.get(3), Some(10));
        table.insert_first(later, 30);
        assert_eq!((table.get(3), table.get(later)), (None, Some(30)));
        table.insert_first(3, 40);
        assert_eq!((table.get(3), table.get(later)), (None, Some(30)));
        (4..later).for_each(|epoch| table.insert_first(epoch, epoch as u32));
        assert!((4..later).all(|epoch| table.get(epoch) == Some(epoch as u32)));
        assert_eq!(table.get(later), Some(30));
    }
}
