//! Parts of a fabric made by several threads.

use std::sync::{Mutex, PoisonError};
use std::{panic, thread};

/// Results of `make` for all parts, in their order, by so many threads. It is given the number of the part, too.
pub(super) fn map<P: Send, R: Send>(
    parts: Vec<P>,
    threads: usize,
    make: impl Fn(usize, P) -> R + Sync,
) -> Vec<R> {
    let count = parts.len();
    let threads = threads.min(count);
    let parts = parts.into_iter().enumerate();
    if threads <= 1 {
        return parts.map(|(number, part)| make(number, part)).collect();
    }
    // Parts differ in size, so that each thread takes the next one.
    let waiting = Mutex::new(parts);
    let take = || {
        waiting
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .next()
    };
    let work = || {
        let parts = std::iter::from_fn(take);
        parts
            .map(|(number, part)| (number, make(number, part)))
            .collect::<Vec<_>>()
    };
    let mut made: Vec<Option<R>> = Vec::new();
    made.resize_with(count, || None);
    let mut keep = |results: Vec<(usize, R)>| {
        for (number, result) in results {
            made[number] = Some(result);
        }
    };
    thread::scope(|scope| {
        let helpers: Vec<_> = (1..threads).map(|_| scope.spawn(work)).collect();
        keep(work());
        for helper in helpers {
            keep(
                helper
                    .join()
                    .unwrap_or_else(|payload| panic::resume_unwind(payload)),
            );
        }
    });
    let made = made.into_iter().flatten().collect::<Vec<_>>();
    debug_assert_eq!(made.len(), count);
    made
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_come_in_the_order_of_parts() {
        for (count, threads) in [(0, 2), (1, 4), (3, 8), (100, 0), (100, 1), (1000, 3)] {
            let parts: Vec<usize> = (0..count).map(|part| part * 7).collect();
            let made = map(parts, threads, |number, part| (number, part));
            let expected: Vec<_> = (0..count).map(|part| (part, part * 7)).collect();
            assert_eq!(made, expected, "{threads} threads");
        }
    }

    #[test]
    #[should_panic(expected = "part 70 is impossible")]
    fn a_panic_in_a_helper_is_one_of_the_caller() {
        map((0..100).collect(), 2, |_, part: u32| {
            assert!(part != 70, "part {part} is impossible");
            thread::yield_now();
        });
    }
}
