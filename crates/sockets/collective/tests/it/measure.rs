//! Measurements, with ranks in threads that wait for each other.

use clearway_collective::blocking::{Group, RankListener};
use clearway_collective::measure::{CollectiveMeasurement, Measurement};
use clearway_collective::{
    Algorithm, BufferOperation, Buffers, GroupError, GroupSettings, Members, Pairs, PreSharedKey,
    Security,
};
use clearway_units::Span;
use std::net::SocketAddr;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

/// Does the same at all ranks, each in a thread, within a minute.
fn each<T: Send + 'static>(
    ranks: u32,
    pairs: impl Fn(u32) -> Pairs,
    task: impl Fn(Group) -> T + Clone + Send + 'static,
) -> Vec<T> {
    let mut joining = GroupSettings::new(Security::Key(PreSharedKey([7; 32])));
    joining.settings.paths = 2;
    joining.settings.idle = Span::from_ms(4_000);
    joining.pairs = pairs(ranks);
    let local = SocketAddr::from(([127, 0, 0, 1], 0));
    let bind = |rank| RankListener::bind(local, rank, ranks, joining.clone()).unwrap();
    let listeners: Vec<RankListener> = (0..ranks).map(bind).collect();
    let addresses: Vec<SocketAddr> = listeners.iter().map(RankListener::address).collect();
    let (tell, told) = mpsc::channel();
    for (rank, listener) in (0..).zip(listeners) {
        let (tell, task) = (tell.clone(), task.clone());
        let members = Members {
            addresses: addresses.clone(),
            rank,
        };
        thread::spawn(move || {
            let group = listener.join(members, &mut || true).unwrap();
            tell.send((rank, task(group)))
        });
    }
    let limit = Duration::from_secs(60);
    let next = |_| told.recv_timeout(limit).expect("all ranks end in time");
    let mut results: Vec<(u32, T)> = (0..ranks).map(next).collect();
    results.sort_by_key(|(rank, _)| *rank);
    results.into_iter().map(|(_, result)| result).collect()
}

#[test]
fn all_operations_are_measured_and_right() {
    for operation in BufferOperation::ALL {
        for name in Algorithm::names(operation) {
            let measurement = Measurement {
                algorithm: Algorithm::named(operation, name).unwrap(),
                size: 100_001,
                chunk: Some(5_000),
                warmups: 1,
                iterations: 3,
                check: true,
            };
            let pairs = |ranks| Pairs::Of(measurement.plans(ranks).unwrap().to_vec());
            let results: Vec<CollectiveMeasurement> = each(3, pairs, move |mut group| {
                let measured = measurement.run(&mut group).unwrap();
                group.leave().unwrap();
                measured
            });
            let first = results[0];
            assert_eq!(first.wrong, Some(0), "{operation:?} {name}");
            assert!(first.time > Span::ZERO && first.bus_bandwidth > 0.0);
            assert!(results.iter().all(|measured| *measured == first));
            let (size, count) = match operation {
                BufferOperation::AllReduce => (100_000, 25_000),
                _ => (99_996, 8_333),
            };
            assert_eq!((first.size, first.count), (size, count));
        }
    }
}

#[test]
fn a_rank_that_computes_stays_alive_and_one_that_waits_can_be_interrupted() {
    let results = each(
        2,
        |_| Pairs::All,
        |mut group| {
            let plan = group
                .plan(BufferOperation::AllReduce, None, 10, None)
                .unwrap();
            let mut buffer = [1.0; 10];
            let mut buffers = Buffers::InPlace(&mut buffer);
            if group.rank() == 0 {
                // Longer than connections live without a sign of life.
                thread::sleep(Duration::from_millis(5_000));
            }
            group.run(&plan, &mut buffers, &mut || true).unwrap();
            if group.rank() == 0 {
                // The other one is gone by then.
                thread::sleep(Duration::from_millis(1_000));
                return group.run(&plan, &mut buffers, &mut || true).unwrap_err();
            }
            let later = group
                .plan(BufferOperation::AllToAll, None, 10, None)
                .unwrap();
            let wrong = group.run(&later, &mut buffers, &mut || true);
            assert!(matches!(wrong, Err(GroupError::Buffer(_))), "{wrong:?}");
            group.run(&plan, &mut buffers, &mut || false).unwrap_err()
        },
    );
    assert_eq!(results[1], GroupError::Interrupted);
    assert!(
        matches!(results[0], GroupError::Ended { by: 1, .. }),
        "{results:?}"
    );
}
