//! Choice of the rounds that are worth sharing among threads.

/// Shareable work of a round, in messages, from which a second thread pays.
///
/// Measured on two cores with 128 hosts and delays of 20, 30 and 60 ns: from 64 messages on, two threads took 1.5 times the CPU time and
/// the same wall time as one; from 128 on they were never slower.
const WORTHWHILE: u64 = 128;

/// Work of a round that counts at most, so that a busy stretch is forgotten soon.
const MOST: u64 = 16 * WORTHWHILE;

/// Rounds over which the average is taken.
const WINDOW: u64 = 8;

/// Work of one round, or of a part of it: messages taken, and one for each domain that ran.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Load {
    total: u64,
    largest: u64,
}

impl Load {
    /// Adds the work of one domain.
    #[inline]
    pub(crate) fn add_domain(&mut self, messages: u64) {
        self.add(Self {
            total: messages + 1,
            largest: messages + 1,
        });
    }

    /// Adds the work of other domains.
    pub(crate) fn add(&mut self, other: Self) {
        self.total += other.total;
        self.largest = self.largest.max(other.largest);
    }

    /// All of it.
    pub(crate) fn total(self) -> u64 {
        self.total
    }

    /// Work that others could do while one thread is busy with the largest domain.
    fn shareable(self) -> u64 {
        self.total - self.largest
    }
}

/// Moving average of the shareable work of rounds.
///
/// It rests on counts, not on time, so that the same rounds are shared whenever a run is repeated on several threads.
#[derive(Debug)]
pub(crate) struct RoundLoad {
    /// The average, times [`WINDOW`].
    level: u64,
    /// True if every round is shared, even with little work.
    always: bool,
}

impl Default for RoundLoad {
    /// Rounds are shared until they turn out to carry too little.
    fn default() -> Self {
        Self {
            level: MOST * WINDOW,
            always: false,
        }
    }
}

impl RoundLoad {
    /// Sharing of every round or of those that are worth it.
    pub(crate) fn new(always: bool) -> Self {
        Self {
            always,
            ..Self::default()
        }
    }

    /// True if the next round is worth sharing.
    pub(crate) fn is_worthwhile(&self) -> bool {
        self.always || self.level >= WORTHWHILE * WINDOW
    }

    /// Takes the load of a round into account.
    pub(crate) fn on_round(&mut self, load: Load) {
        // Rounded up: rounded down, the level would stay at `WINDOW - 1` without load.
        self.level -= self.level.div_ceil(WINDOW);
        self.level += load.shareable().min(MOST);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A round in which `domains` domains each take `messages` messages.
    fn load(domains: u64, messages: u64) -> Load {
        let mut load = Load::default();
        for _ in 0..domains {
            load.add_domain(messages);
        }
        load
    }

    /// Number of rounds with this load until the choice is `worthwhile`.
    fn rounds_until(worthwhile: bool, sharing: &mut RoundLoad, load: Load) -> u32 {
        let mut rounds = 0;
        while sharing.is_worthwhile() != worthwhile {
            sharing.on_round(load);
            rounds += 1;
            assert!(rounds < 1_000, "never");
        }
        rounds
    }

    #[test]
    fn poor_rounds_fall_back_soon_and_rich_ones_return_at_once() {
        let mut sharing = RoundLoad::default();
        assert!(sharing.is_worthwhile(), "the first rounds are shared");
        assert_eq!(rounds_until(false, &mut sharing, load(1, 1)), 21);
        assert_eq!(rounds_until(true, &mut sharing, load(200, 50)), 1);
        let rounds = rounds_until(false, &mut sharing, load(3, 2));
        assert!((1..=21).contains(&rounds), "{rounds}");
        // Rounds that carry just enough on average are also shared in the end.
        assert!(rounds_until(true, &mut sharing, load(2, WORTHWHILE + 8)) <= 40);
    }

    #[test]
    fn one_domain_has_nothing_to_share() {
        let mut sharing = RoundLoad::default();
        rounds_until(false, &mut sharing, load(1, 1_000_000));
        let mut lopsided = load(1, 1_000_000);
        lopsided.add(load(10, 2));
        sharing.on_round(lopsided);
        assert!(!sharing.is_worthwhile(), "the others have 30");
    }

    #[test]
    fn loads_of_threads_add_up() {
        let (mut together, mut first, mut second) =
            (Load::default(), Load::default(), Load::default());
        for messages in [3, 9, 0] {
            together.add_domain(messages);
            first.add_domain(messages);
        }
        for messages in [12, 1] {
            together.add_domain(messages);
            second.add_domain(messages);
        }
        first.add(second);
        assert_eq!(first, together);
        assert_eq!(first.shareable(), 3 + 9 + 1 + 4);
    }
}
