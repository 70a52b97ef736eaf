//! Number of threads that carry out a run.

use std::fs;
use std::num::NonZeroUsize;
use std::thread::available_parallelism;

/// Number of threads that carry out a run. Results do not depend on it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Threads {
    /// One, and more when the run turns out to be long or the fabric is large: as many as there are processors that nobody uses.
    #[default]
    Automatic,
    /// So many, from the beginning.
    Exactly(NonZeroUsize),
}

impl Threads {
    /// Number of threads that may share a piece of work at this moment, the caller's included.
    pub fn count_now(self) -> usize {
        match self {
            Self::Automatic => free_threads(1),
            Self::Exactly(threads) => threads.get(),
        }
    }
}

impl From<usize> for Threads {
    /// So many; one for none.
    fn from(threads: usize) -> Self {
        Self::Exactly(NonZeroUsize::new(threads).unwrap_or(NonZeroUsize::MIN))
    }
}

impl From<Option<usize>> for Threads {
    /// So many, if they are given.
    fn from(threads: Option<usize>) -> Self {
        threads.map_or(Self::Automatic, Self::from)
    }
}

/// Work after which a run counts as long, in messages: about a tenth of a second on one thread, where starting a thread takes 50 us.
const LONG: u64 = 1 << 20;

/// Most work between two looks for free processors: one to two seconds on one thread.
const LOOK: u64 = 1 << 24;

/// Growth of the number of threads while a run goes on.
#[derive(Debug)]
pub(crate) struct Growth {
    threads: usize,
    /// Most threads that there can be.
    most: usize,
    /// Work after which to look for free processors; never, if the number of threads is given.
    due: u64,
}

impl Growth {
    /// Growth of the threads of a run that at most so many can share.
    pub(crate) fn new(wish: Threads, most: usize) -> Self {
        let (threads, due) = match wish {
            Threads::Automatic => (1, LONG),
            Threads::Exactly(threads) => (threads.get().min(most), u64::MAX),
        };
        Self { threads, most, due }
    }

    /// Number of threads, the leader included.
    pub(crate) fn threads(&self) -> usize {
        self.threads
    }

    /// True if there can be more than one.
    pub(crate) fn can_share(&self) -> bool {
        self.most > 1 && (self.threads > 1 || self.due != u64::MAX)
    }

    /// Number of threads to add when the rounds so far carried so much `work`. `free` tells how many threads there can be beside other
    /// processes, given the present number.
    pub(crate) fn on_work(&mut self, work: u64, free: impl FnOnce(usize) -> usize) -> usize {
        if work < self.due {
            return 0;
        }
        self.due = work + work.min(LOOK);
        let more = free(self.threads)
            .min(self.most)
            .saturating_sub(self.threads);
        self.threads += more;
        more
    }
}

/// Number of threads that can run at once, of a process that has `own` at work: the processors that it may use, without those that others
/// use at this moment. At least one.
pub(crate) fn free_threads(own: usize) -> usize {
    let usable = available_parallelism().map_or(1, usize::from);
    // Other systems do not tell in this way.
    let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let processors = fs::read_to_string("/proc/stat").unwrap_or_default();
    let others = running(&load).unwrap_or(0).saturating_sub(own);
    free(
        usable,
        others,
        processor_count(&processors).unwrap_or(usable),
    )
}

/// Share of the `usable` processors that `others`, which run anywhere on a machine of so many `processors`, leave.
fn free(usable: usize, others: usize, processors: usize) -> usize {
    let taken = (others * usable).div_ceil(processors.max(usable).max(1));
    usable.saturating_sub(taken).max(1)
}

/// Tasks of the whole machine that run or could, from `/proc/loadavg`: `0.20 0.18 0.12 1/80 11206` has one of 80.
fn running(load: &str) -> Option<usize> {
    let tasks = load.split_ascii_whitespace().nth(3)?;
    tasks.split_once('/')?.0.parse().ok()
}

/// Processors of the whole machine, from `/proc/stat`, which has a line `cpu0 …` for each.
fn processor_count(statistics: &str) -> Option<usize> {
    let is_processor = |line: &&str| {
        let number = line.strip_prefix("cpu");
        number.is_some_and(|rest| rest.starts_with(|first: char| first.is_ascii_digit()))
    };
    let count = statistics.lines().filter(is_processor).count();
    (count > 0).then_some(count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_the_system_are_read() {
        assert_eq!(running("0.20 0.18 0.12 3/80 11206\n"), Some(3));
        assert_eq!(running(""), None);
        assert_eq!(running("0.20 0.18 0.12 many/80 11206\n"), None);
        let two = "cpu  10 20\ncpu0 5 10\ncpu1 5 10\nintr 7\nctxt 9\n";
        assert_eq!(processor_count(two), Some(2));
        assert_eq!(processor_count("nonsense"), None);
    }

    #[test]
    fn others_leave_their_share() {
        assert_eq!(free(2, 0, 2), 2);
        assert_eq!(free(2, 1, 2), 1);
        assert_eq!(free(2, 9, 2), 1, "one is always there");
        // A quarter of a machine of 64 processors, of which others use 16.
        assert_eq!(free(16, 16, 64), 12);
        // Processors that are told wrongly do not make more of them usable.
        assert_eq!(free(4, 1, 0), 3);
    }

    #[test]
    fn short_runs_have_one_thread_and_long_ones_what_is_free() {
        let mut growth = Growth::new(Threads::Automatic, 8);
        assert_eq!((growth.threads(), growth.can_share()), (1, true));
        let not_asked = |_: usize| -> usize { panic!("it is too early") };
        assert_eq!(growth.on_work(LONG - 1, not_asked), 0);
        assert_eq!(growth.on_work(LONG, |own| own + 1), 1);
        assert_eq!(growth.on_work(2 * LONG - 1, not_asked), 0);
        // Somebody else has come; nobody is sent away.
        assert_eq!(growth.on_work(2 * LONG, |_| 1), 0);
        assert_eq!(growth.threads(), 2);
        assert_eq!(growth.on_work(100 * LOOK, |_| 64), 6, "up to the most");
        assert_eq!(growth.threads(), 8);
        assert_eq!(growth.on_work(101 * LOOK - 1, not_asked), 0);
    }

    #[test]
    fn given_numbers_stay() {
        let mut growth = Growth::new(3.into(), 2);
        assert_eq!((growth.threads(), growth.can_share()), (2, true));
        assert_eq!(
            growth.on_work(u64::MAX - 1, |_| panic!("nobody is asked")),
            0
        );
        assert_eq!(Threads::from(0), Threads::from(1));
        assert!(!Growth::new(0.into(), 5).can_share());
        assert!(!Growth::new(Threads::Automatic, 1).can_share());
    }
}
