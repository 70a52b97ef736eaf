//! Parts of a fabric made by several threads.

use std::sync::{Mutex, PoisonError};
use std::{panic, thread};

/// Results of `make` for all parts, in their order, by so many threads. `make` is given the number of a part and the part.
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
    let made = made.into_iter();
    made.map(|result| result.expect("each part is made"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Barrier;

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
    fn threads_work_at_the_same_time() {
        // None gets further before each has a part.
        let together = Barrier::new(3);
        let ids = map(vec![(); 3], 3, |_, ()| {
            together.wait();
            thread::current().id()
        });
        assert!(ids[0] != ids[1] && ids[1] != ids[2] && ids[2] != ids[0]);
    }

    #[test]
    #[should_panic(expected = "a part is impossible")]
    fn a_panic_in_a_helper_is_one_of_the_caller() {
        let together = Barrier::new(2);
        let caller = thread::current().id();
        map(vec![(); 2], 2, |_, ()| {
            together.wait();
            assert!(thread::current().id() == caller, "a part is impossible");
        });
    }
}
