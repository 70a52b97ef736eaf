//! Groups over real sockets on the loopback interface, all ranks in one process.

use clearway_collective::{
    Algorithm, BufferOperation, CloseReason, CollectivePlan, Group, GroupError, GroupSettings,
    Listening, Members, Pairs,
};
use clearway_udp::net::connect;
use clearway_udp::{ConnectionError, PreSharedKey, Security};
use clearway_units::Span;
use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Builder;
use tokio::task::{JoinHandle, JoinSet};

fn key(byte: u8) -> Security {
    Security::Key(PreSharedKey([byte; 32]))
}

fn joining() -> GroupSettings {
    let mut joining = GroupSettings::new(key(42));
    joining.settings.paths = 2;
    joining.settings.idle = Span::from_ms(5_000);
    joining.wait = Span::from_ms(20_000);
    joining
}

fn run<F: Future>(test: F) -> F::Output {
    let runtime = Builder::new_current_thread()
        .event_interval(1)
        .enable_all()
        .build();
    runtime.expect("a runtime").block_on(async {
        let limit = Duration::from_secs(60);
        tokio::time::timeout(limit, test)
            .await
            .expect("it takes too long")
    })
}

fn loopback() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], 0))
}

fn listen(ranks: u32, joining: impl Fn(u32) -> GroupSettings) -> (Vec<Listening>, Vec<SocketAddr>) {
    let bind = |rank| Listening::bind(loopback(), rank, ranks, joining(rank)).unwrap();
    let listening: Vec<Listening> = (0..ranks).map(bind).collect();
    let addresses = listening.iter().map(Listening::address).collect();
    (listening, addresses)
}

type Joined = Vec<Result<Group, GroupError>>;

async fn join(ranks: u32, joining: impl Fn(u32) -> GroupSettings) -> Joined {
    let (listening, addresses) = listen(ranks, joining);
    let join = |(rank, listening): (u32, Listening)| {
        let addresses = addresses.clone();
        tokio::spawn(listening.join(Members { addresses, rank }))
    };
    let joins: Vec<JoinHandle<_>> = (0..).zip(listening).map(join).collect();
    let mut joined = Vec::new();
    for join in joins {
        joined.push(join.await.unwrap());
    }
    joined
}

/// Lets all ranks do the same, each in a task of its own. Returns what each has to say.
async fn each<T: Send + 'static, F>(groups: Vec<Group>, task: impl Fn(Group) -> F) -> Vec<T>
where
    F: Future<Output = T> + Send + 'static,
{
    let mut tasks = JoinSet::new();
    for group in groups {
        let (rank, task) = (group.rank(), task(group));
        tasks.spawn(async move { (rank, task.await) });
    }
    let mut results = tasks.join_all().await;
    results.sort_by_key(|(rank, _)| *rank);
    results.into_iter().map(|(_, result)| result).collect()
}

async fn groups(ranks: u32) -> Vec<Group> {
    let joined = join(ranks, |_| joining()).await;
    joined.into_iter().map(Result::unwrap).collect()
}

fn whole(rank: u32, at: usize) -> f32 {
    ((at * 7 + rank as usize * 131) % 1021) as f32
}

fn filled(rank: u32, count: usize) -> Vec<f32> {
    (0..count).map(|at| whole(rank, at)).collect()
}

#[test]
fn collectives_follow_each_other_on_one_group() {
    run(async {
        let tree = Algorithm::named(BufferOperation::AllReduce, "tree").unwrap();
        let results = each(groups(5).await, |mut group| async move {
            let rank = group.rank();
            // None waits for another: ranks are ahead of each other, as far as they may.
            for count in [0, 1, 3, 1000, 0, 1, 200_000, 4] {
                for algorithm in [None, Some(tree)] {
                    let mut buffer = filled(rank, count);
                    group.all_reduce(algorithm, &mut buffer).await.unwrap();
                    let sum = |at| (0..5).map(|rank| whole(rank, at)).sum::<f32>();
                    assert!((0..count).all(|at| buffer[at] == sum(at)), "{count}");
                }
                let mut buffer = filled(rank, count);
                group.all_gather(&mut buffer).await.unwrap();
                for other in 0..5 {
                    let mut block = group.block(other, count);
                    assert!(block.all(|at| buffer[at] == whole(other, at)));
                }
                let mut buffer = filled(rank, count);
                group.reduce_scatter(&mut buffer).await.unwrap();
                let sum = |at| (0..5).map(|rank| whole(rank, at)).sum::<f32>();
                let mut own = group.block(rank, count);
                assert!(own.clone().all(|at| buffer[at] == sum(at)));
                let mut receive = vec![0.0; own.len() * 5];
                let send = filled(rank, count);
                group.all_to_all(&send, &mut receive).await.unwrap();
                let wanted = |other| own.clone().map(move |at| whole(other, at));
                assert!((0..5).flat_map(wanted).eq(receive.iter().copied()));
                assert!(own.all(|at| at < count));
            }
            group.leave().await
        })
        .await;
        assert_eq!(results, vec![Ok(()); 5]);
    });
}

#[test]
fn all_ranks_have_the_same_bits() {
    run(async {
        for name in ["ring", "tree", "halving-doubling", "direct"] {
            let algorithm = Algorithm::named(BufferOperation::AllReduce, name).unwrap();
            let results = each(groups(4).await, |mut group| async move {
                let rank = group.rank() as f32;
                let mut buffer: Vec<f32> = (0..50_000)
                    .map(|at| (at as f32 * 0.37 + rank).sin() * 10f32.powi((at % 9) - 4))
                    .collect();
                group
                    .all_reduce(Some(algorithm), &mut buffer)
                    .await
                    .unwrap();
                group.leave().await.unwrap();
                buffer.iter().map(|element| element.to_bits()).collect()
            })
            .await;
            let results: Vec<Vec<u32>> = results;
            assert!(results.iter().all(|bits| *bits == results[0]), "{name}");
        }
    });
}

#[test]
fn one_rank_needs_nobody() {
    run(async {
        let mut group = groups(1).await.remove(0);
        let mut buffer = [1.0, 2.0];
        group.all_reduce(None, &mut buffer).await.unwrap();
        assert_eq!(buffer, [1.0, 2.0]);
        let mut receive = [0.0; 2];
        group.all_to_all(&buffer, &mut receive).await.unwrap();
        assert_eq!(receive, buffer);
        group.leave().await.unwrap();
    });
}

#[test]
fn other_sizes_and_operations_are_told() {
    run(async {
        let errors = each(groups(3).await, |mut group| async move {
            let mut buffer = filled(group.rank(), 100 + group.rank() as usize / 2);
            group.all_reduce(None, &mut buffer).await.unwrap_err()
        })
        .await;
        let disagree = |error: &GroupError| {
            let text = error.to_string();
            text.contains("an all-reduce by ring of 100 elements")
                && text.contains("an all-reduce by ring of 101 elements")
        };
        assert!(errors.iter().any(disagree), "{errors:?}");
        let known = |error: &GroupError| {
            disagree(error)
                || matches!(error, GroupError::Ended { ending, .. } if matches!(ending, CloseReason::Disagreement(_)))
        };
        assert!(errors.iter().all(known), "{errors:?}");
    });
}

#[test]
fn buffers_that_do_not_fit_leave_the_group_as_it_was() {
    run(async {
        let results = each(groups(2).await, |mut group| async move {
            let send = filled(group.rank(), 10);
            let wrong = group.all_to_all(&send, &mut [0.0; 9]).await;
            assert!(matches!(wrong, Err(GroupError::Buffer(_))), "{wrong:?}");
            group.all_to_all(&send, &mut [0.0; 10]).await?;
            group.leave().await
        })
        .await;
        assert_eq!(results, vec![Ok(()); 2]);
    });
}

#[test]
fn a_rank_that_ends_without_a_word_is_named_by_all() {
    run(async {
        let mut groups = groups(4).await;
        // Dropped: an application that fails.
        drop(groups.remove(2));
        let errors = each(groups, |mut group| async move {
            let mut buffer = filled(group.rank(), 1000);
            group.all_reduce(None, &mut buffer).await.unwrap_err()
        })
        .await;
        let told = "rank 2 has ended the group: it has failed";
        for error in errors {
            assert_eq!(error.to_string(), told);
        }
    });
}

/// Groups of a ring of ranks.
async fn ring(ranks: u32) -> Vec<Group> {
    let ring = Algorithm::default_of(BufferOperation::AllReduce);
    let plan = Arc::new(CollectivePlan::new(ring, ranks, 1000, None).unwrap());
    let joined = join(ranks, |_| GroupSettings {
        pairs: Pairs::Of(vec![Arc::clone(&plan)]),
        ..joining()
    });
    joined.await.into_iter().map(Result::unwrap).collect()
}

#[test]
fn a_rank_that_leaves_a_group_that_has_failed_is_not_the_one_that_is_named() {
    run(async {
        let mut groups = ring(4).await;
        drop(groups.remove(1));
        // Until both neighbours have heard of it; the rank opposite has not.
        tokio::time::sleep(Duration::from_secs(2)).await;
        let left = groups.remove(0).leave().await;
        let mut errors = each(groups, |mut group| async move {
            let mut buffer = filled(group.rank(), 1000);
            group.all_reduce(None, &mut buffer).await.unwrap_err()
        })
        .await;
        errors.push(left.unwrap_err());
        let told = "rank 1 has ended the group: it has failed";
        for error in errors {
            assert_eq!(error.to_string(), told);
        }
    });
}

/// All-gathers of so many elements, after which a rank leaves. Of one element, that of rank 0 goes around the ring: it needs nobody.
async fn gather_and_leave(mut group: Group, counts: &[usize]) -> Result<(), GroupError> {
    for &count in counts {
        let own = if group.rank() == 0 { 3.0 } else { 0.0 };
        let mut buffer = vec![own; count];
        group.all_gather(&mut buffer).await?;
        assert_eq!(buffer, vec![3.0; count]);
    }
    group.leave().await
}

#[test]
fn a_rank_that_leaves_is_not_missed_in_what_it_went_through() {
    // In a collective of no elements nothing follows the word that it has begun. Rank 4 waits for the element that rank 3 is to pass on,
    // and rank 1 for the word of rank 2, before they begin the second collective.
    for (second, late) in [(1, 3), (0, 3), (1, 2), (0, 2)] {
        run(async move {
            let gathers = move |group| async move { gather_and_leave(group, &[1, second]).await };
            let mut groups = ring(5).await;
            let late = groups.remove(late);
            let first = groups.remove(0);
            let others = tokio::spawn(each(groups, gathers));
            // Rank 0 leaves while the others cannot have begun the second collective.
            assert_eq!(gathers(first).await, Ok(()), "{second}");
            assert!(!others.is_finished());
            assert_eq!(gathers(late).await, Ok(()), "{second}");
            assert_eq!(others.await.unwrap(), vec![Ok(()); 3], "{second}");
        });
    }
}

#[test]
fn a_rank_that_has_left_is_missed_in_the_next_collective() {
    run(async {
        let mut groups = ring(5).await;
        let last = tokio::spawn(gather_and_leave(groups.remove(4), &[1, 0]));
        let late = groups.remove(3);
        assert_eq!(gather_and_leave(groups.remove(0), &[1]).await, Ok(()));
        // It has heard of that while it was at the first one.
        groups.push(late);
        each(groups, |group| gather_and_leave(group, &[1, 0])).await;
        let error = last.await.unwrap().unwrap_err();
        assert!(matches!(error, GroupError::Left { rank: 0, .. }), "{error}");
    });
}

#[test]
fn a_rank_that_is_being_met_is_told_who_has_failed() {
    run(async {
        let (mut listening, addresses) = listen(3, |_| joining());
        let _third = listening.pop();
        let join = |(rank, listening): (u32, Listening)| {
            let addresses = addresses.clone();
            tokio::spawn(listening.join(Members { addresses, rank }))
        };
        let mut joins: Vec<_> = (0..).zip(listening).map(join).collect();
        // A third rank that has connected, and not greeted yet.
        let guest = connect(addresses[0], joining().settings).await.unwrap();
        // The first two have met, and wait for the third.
        tokio::time::sleep(Duration::from_secs(2)).await;
        joins[1].abort();
        let error = joins.swap_remove(0).await.unwrap().map(|_| ()).unwrap_err();
        assert_eq!(
            error.to_string(),
            "rank 1 has ended the group: it has failed"
        );
        const RANK_1_HAS_FAILED: u64 = 0x636c_000a_0000_0001;
        assert_eq!(
            guest.receive().await,
            Err(ConnectionError::There(RANK_1_HAS_FAILED))
        );
    });
}

#[test]
fn news_of_a_lost_rank_go_around_a_ring() {
    run(async {
        let mut groups = ring(5).await;
        // A rank that has left is of no use to its neighbours, and these to theirs.
        groups.remove(2).leave().await.unwrap();
        let errors = each(groups, |mut group| async move {
            let mut buffer = filled(group.rank(), 1000);
            group.all_reduce(None, &mut buffer).await.unwrap_err()
        })
        .await;
        for error in errors {
            assert!(
                matches!(
                    error,
                    GroupError::Left { rank: 2, .. }
                        | GroupError::Ended {
                            ending: CloseReason::Left(2),
                            ..
                        }
                ),
                "{error}"
            );
        }
    });
}

#[test]
fn a_rank_that_does_not_come_up_is_named() {
    run(async {
        let short = |_| GroupSettings {
            wait: Span::from_ms(3_000),
            ..joining()
        };
        let (mut listening, addresses) = listen(3, short);
        let missing = addresses[1];
        drop(listening.remove(1));
        let join = |(rank, listening): (u32, Listening)| {
            let addresses = addresses.clone();
            tokio::spawn(listening.join(Members { addresses, rank }))
        };
        let joins: Vec<_> = [0, 2].into_iter().zip(listening).map(join).collect();
        let mut absent = 0;
        for join in joins {
            match join.await.unwrap().map(|_| ()).unwrap_err() {
                GroupError::Absent {
                    rank: 1,
                    address,
                    more: 0,
                    ..
                } => {
                    assert_eq!(address, missing);
                    absent += 1;
                }
                GroupError::Ended { ending, .. } => assert_eq!(ending, CloseReason::Absent(1)),
                other => panic!("{other}"),
            }
        }
        assert!(absent > 0);
    });
}

#[test]
fn another_key_another_list_and_another_task_are_told() {
    run(async {
        let quick = |mut joining: GroupSettings| {
            joining.wait = Span::from_ms(5_000);
            joining
        };
        let keys = join(2, |rank| {
            let mut joining = quick(joining());
            joining.settings.security = key(rank as u8);
            joining
        });
        let errors: Vec<_> = keys
            .await
            .into_iter()
            .map(|r| r.map(|_| ()).unwrap_err())
            .collect();
        assert!(
            matches!(
                &errors[1],
                GroupError::Refused {
                    rank: 0,
                    closed: ConnectionError::Key,
                    ..
                }
            ),
            "{errors:?}"
        );
        assert!(
            matches!(&errors[0], GroupError::Absent { rank: 1, .. }),
            "{errors:?}"
        );
        let tasks = join(2, |rank| GroupSettings {
            task: format!("task {rank}"),
            ..quick(joining())
        });
        for (rank, result) in tasks.await.into_iter().enumerate() {
            let text = result.map(|_| ()).unwrap_err().to_string();
            let other = 1 - rank;
            assert_eq!(
                text,
                format!(
                    "the ranks do not agree: rank {other} has `task {other}`, and rank {rank} has `task {rank}`"
                )
            );
        }
        let (listening, mut addresses) = listen(3, |_| quick(joining()));
        let joins: Vec<_> = (0..)
            .zip(listening)
            .map(|(rank, listening)| {
                let members = Members {
                    addresses: addresses.clone(),
                    rank,
                };
                // The last rank has the others the wrong way round.
                if rank == 1 {
                    addresses.swap(0, 1);
                }
                tokio::spawn(listening.join(members))
            })
            .collect();
        let mut texts = Vec::new();
        for join in joins {
            // The others may have met it before it has noticed.
            let error = join.await.unwrap().map(|_| ()).err();
            texts.push(error.map_or(String::new(), |error| error.to_string()));
        }
        assert!(texts[2].contains("where this list has rank"), "{texts:?}");
    });
}
