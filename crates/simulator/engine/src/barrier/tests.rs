use super::*;
use std::sync::mpsc;
use std::time::Duration;

/// Longer than anything here takes; only a thread that hangs meets it.
const PATIENCE: Duration = Duration::from_secs(60);

/// A barrier whose threads never spin, so that all of them park, and one whose threads usually spin.
fn barriers() -> [Barrier; 2] {
    let mut barriers = [Barrier::new(2), Barrier::new(2)];
    barriers[0].spins = 0;
    barriers[1].spins = 100_000;
    barriers
}

/// Runs `leader` beside workers that each enter rounds until the rounds are over; counts the rounds of each worker.
fn rounds_of_workers(barrier: &Barrier, workers: usize, leader: impl FnOnce()) -> Vec<u64> {
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..workers)
            .map(|_| {
                scope.spawn(|| {
                    let (mut last, mut entered) = (0, 0);
                    while barrier.enter(&mut last) {
                        entered += 1;
                        barrier.leave();
                    }
                    entered
                })
            })
            .collect();
        leader();
        barrier.end();
        let counts = workers.into_iter().map(|worker| worker.join());
        counts.map(|count| count.expect("no panic")).collect()
    })
}

#[test]
fn no_worker_is_inside_between_rounds_and_none_enters_twice() {
    const ROUNDS: u64 = 2_000;
    for barrier in barriers() {
        for workers in [1, 5] {
            let counts = rounds_of_workers(&barrier, workers, || {
                for _ in 0..ROUNDS {
                    barrier.open();
                    assert!(barrier.close());
                    assert_eq!(barrier.state.load(Ordering::SeqCst) & (OPEN | INSIDE), 0);
                }
            });
            assert!(counts.iter().all(|count| *count <= ROUNDS), "{counts:?}");
            barrier.over.store(false, Ordering::SeqCst);
        }
    }
}

#[test]
fn parked_workers_are_woken_by_the_next_round() {
    for barrier in barriers() {
        let entered = AtomicU64::new(0);
        std::thread::scope(|scope| {
            let worker = scope.spawn(|| {
                let mut last = 0;
                while barrier.enter(&mut last) {
                    entered.fetch_add(1, Ordering::SeqCst);
                    barrier.leave();
                }
            });
            for round in 1..=3 {
                while barrier.spins == 0 && barrier.workers.parked.load(Ordering::SeqCst) == 0 {
                    std::thread::yield_now();
                }
                barrier.open();
                // The round stays open until the worker has been in it, so a wake-up that is lost hangs here.
                while entered.load(Ordering::SeqCst) < round {
                    std::thread::yield_now();
                }
                assert!(barrier.close());
            }
            barrier.end();
            worker.join().expect("no panic");
        });
        assert_eq!(entered.into_inner(), 3);
    }
}

#[test]
fn the_leader_does_not_wait_for_a_worker_that_comes_late() {
    let barrier = Barrier::new(2);
    for _ in 0..3 {
        barrier.open();
        assert!(barrier.close(), "there is no worker at all");
    }
    let mut last = 0;
    barrier.open();
    assert!(barrier.enter(&mut last));
    assert_eq!(last, 4, "rounds that it missed do not count");
    barrier.leave();
    assert!(barrier.close());
}

#[test]
fn the_leader_waits_for_a_worker_that_is_inside() {
    for barrier in barriers() {
        let (inside, is_inside) = mpsc::channel();
        let (go_on, may_go_on) = mpsc::channel();
        let (closed, is_closed) = mpsc::channel();
        std::thread::scope(|scope| {
            let barrier = &barrier;
            scope.spawn(move || {
                assert!(barrier.enter(&mut 0));
                inside.send(()).expect("listened to");
                may_go_on.recv().expect("told");
                barrier.leave();
            });
            scope.spawn(move || {
                barrier.open();
                is_inside.recv_timeout(PATIENCE).expect("it enters");
                closed.send(barrier.close()).expect("listened to");
            });
            while barrier.spins == 0 && barrier.leader.parked.load(Ordering::SeqCst) == 0 {
                std::thread::yield_now();
            }
            assert!(is_closed.try_recv().is_err(), "closed with a worker inside");
            go_on.send(()).expect("listened to");
            assert_eq!(is_closed.recv_timeout(PATIENCE), Ok(true));
        });
    }
}

#[test]
fn a_breakdown_frees_whoever_waits() {
    for barrier in barriers() {
        std::thread::scope(|scope| {
            scope.spawn(|| assert!(!barrier.enter(&mut 0), "another thread panicked"));
            while barrier.spins == 0 && barrier.workers.parked.load(Ordering::SeqCst) == 0 {
                std::thread::yield_now();
            }
            barrier.break_down();
        });
        barrier.state.store(ROUND | OPEN | 1, Ordering::SeqCst);
        assert!(!barrier.close(), "the worker inside never leaves");
    }
}

#[test]
fn threads_without_a_processor_of_their_own_do_not_spin() {
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    assert_eq!(Barrier::new(processors).spins, SPINS);
    assert_eq!(Barrier::new(processors + 1).spins, 0);
}
