//! Runs of packets on one path.
//!
//! The selector chooses a path for each packet, like a NIC that sprays packets. A process pays for system calls, and the kernel takes many
//! packets with one call if they have one destination. So packets that leave at the same instant go in runs. Each path still gets as many
//! packets as the selector chose for it: each choice adds to the debt to a path, and a run goes to the path with the largest debt. A path
//! never gets more than one run ahead of its choices. Packets that leave singly use the chosen path.

use clearway_units::Time;

/// Longest run: the limit of one kernel call, 65507 bytes in datagrams of 1452.
const LONGEST: u32 = 45;

/// Fewest paths that a window uses.
const SPREAD: u8 = 4;

/// Debt to each path, and the present run.
#[derive(Debug, Default)]
pub(crate) struct PathRuns {
    /// For each path, packets chosen for it that went elsewhere, minus packets sent on it that were not chosen for it.
    owed: Vec<i32>,
    current: u8,
    /// Packets left in the present run, and the instant at which they leave.
    left: u32,
    at: Time,
}

impl PathRuns {
    /// Length of runs that spreads each window over several paths: [`SPREAD`], or all if there are fewer.
    pub(crate) fn length(window_packets: u64, paths: u8) -> u32 {
        let length = window_packets / u64::from(paths.clamp(1, SPREAD));
        length.clamp(1, u64::from(LONGEST)) as u32
    }

    /// Path of a packet that leaves now and for which the selector chose `chosen`. Calls `length` at the start of a run.
    #[inline]
    pub(crate) fn next(&mut self, now: Time, chosen: u8, length: impl FnOnce() -> u32) -> u8 {
        let index = usize::from(chosen);
        if index >= self.owed.len() {
            self.owed.resize(index + 1, 0);
        }
        self.owed[index] += 1;
        if self.left == 0 || self.at != now {
            self.begin(now, length());
        }
        self.left -= 1;
        self.owed[usize::from(self.current)] -= 1;
        self.current
    }

    fn begin(&mut self, now: Time, length: u32) {
        // Some path always has a positive debt: the sum of all debts is the last chosen packet.
        let most = self.owed.iter().copied().max().unwrap_or(0);
        // Paths with equal debts take turns.
        let paths = self.owed.len();
        let turn = usize::from(self.current) + 1;
        let first = (turn..turn + paths).find(|&path| self.owed[path % paths] == most);
        self.current = (first.unwrap_or(0) % paths) as u8;
        (self.left, self.at) = (length.max(1), now);
    }

    /// Cancels the debt to a path that is marked or dead and no longer chosen. The paths that got its packets owe that much less.
    pub(crate) fn forgive(&mut self, path: u8) {
        let Some(owed) = self.owed.get_mut(usize::from(path)) else {
            return;
        };
        let mut forgiven = (*owed).max(0);
        *owed -= forgiven;
        for other in &mut self.owed {
            let part = forgiven.min(-*other).max(0);
            *other += part;
            forgiven -= part;
        }
        if path == self.current {
            self.left = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_path_gets_what_was_chosen_for_it_a_run_at_a_time() {
        let mut runs = PathRuns::default();
        let (mut chosen, mut sent) = ([0i32; 8], [0i32; 8]);
        let mut lengths = Vec::new();
        let mut last = u8::MAX;
        for number in 0..8000usize {
            // Path 5 is chosen half as often as the others.
            let choice = [0, 1, 2, 3, 4, 5, 6, 7, 0, 1, 2, 3, 4, 6, 7][number % 15];
            let path = runs.next(Time::ZERO, choice, || 14);
            chosen[usize::from(choice)] += 1;
            sent[usize::from(path)] += 1;
            match path == last {
                true => *lengths.last_mut().unwrap() += 1,
                false => lengths.push(1),
            }
            last = path;
        }
        for (chosen, sent) in chosen.into_iter().zip(sent) {
            assert!((chosen - sent).abs() <= 28, "{chosen} chosen, {sent} sent");
        }
        assert!(
            lengths
                .iter()
                .take(lengths.len() - 1)
                .all(|&length| length % 14 == 0)
        );
    }

    #[test]
    fn packets_that_leave_one_by_one_go_as_they_were_chosen() {
        let mut runs = PathRuns::default();
        for number in 0..1000u32 {
            let chosen = (number * number % 7) as u8;
            let now = Time::from_us(u64::from(number));
            assert_eq!(runs.next(now, chosen, || 20), chosen);
        }
    }

    #[test]
    fn a_path_that_is_marked_loses_what_is_owed_to_it() {
        let mut runs = PathRuns::default();
        let mut sent = [0; 3];
        for number in 0..300u64 {
            if number == 100 {
                runs.forgive(2);
            }
            // Two of three packets of the first hundred go to other paths; from then on path 2 is not chosen.
            let choice = if number < 100 { number % 3 } else { number % 2 } as u8;
            let path = runs.next(Time::ZERO, choice, || 10);
            sent[usize::from(path)] += u32::from(number >= 100);
            assert!(runs.owed.iter().all(|owed| owed.abs() <= 20), "{runs:?}");
        }
        assert_eq!(sent[2], 0);
        assert_eq!(PathRuns::length(115, 8), 28);
        assert_eq!(PathRuns::length(115, 2), LONGEST);
        assert_eq!(PathRuns::length(3, 8), 1);
        assert_eq!(PathRuns::length(100_000, 8), LONGEST);
    }
}
