//! Ranks on a network without limits, against times computed from the graph alone.

use super::*;
use crate::graph::{Graph, Parallelism, TaskDependency};
use clearway_units::Purpose;
use proptest::prelude::*;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};

const KB: Bytes = Bytes::new(1000);

fn steady() -> Pace {
    Pace {
        factor: 1.0,
        jitter: 0.0,
        random: RandomStream::new(1, Purpose::Test, 0),
    }
}

fn us(us: u64) -> Span {
    Span::from_us(us)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Happening {
    Received,
    Sent,
    Deadline,
}

/// All ranks of a job, on a network where each message has a separate latency.
struct World {
    ranks: Vec<RankRun>,
    /// Coming events: the time, the event, the rank, and the number of the message if there is one.
    coming: BinaryHeap<Reverse<(Time, Happening, u32, u32)>>,
    latency: fn(TaskId) -> Span,
    tasks: u32,
    /// Times at which each rank began each iteration, was through with it, and began to send in between.
    begun: BTreeMap<(u32, u32), Time>,
    over: BTreeMap<(u32, u32), Time>,
    sending: BTreeMap<(u32, u32), Time>,
    /// Time at which each message was posted.
    posted: BTreeMap<u32, Time>,
    /// Messages under way from each rank now, and the most at a time.
    under_way: Vec<(u32, u32)>,
    /// Number of times that ranks have asked; the answer is always yes.
    asked: u32,
    /// Times after the arrival of a message at which its arrival is told again.
    repeats: Vec<Span>,
    /// The messages that a rank has waited for.
    arrived: BTreeSet<u32>,
}

impl World {
    fn new(graph: Graph, iterations: u32, latency: fn(TaskId) -> Span) -> Self {
        graph.check().unwrap();
        let ranks = graph.ranks();
        let plan = Arc::new(PreparedGraph::new(graph));
        let rank = |rank| RankRun::new(Arc::clone(&plan), Rank(rank), iterations, steady());
        Self {
            ranks: (0..ranks).map(rank).collect(),
            coming: BinaryHeap::new(),
            latency,
            tasks: plan.graph().len() as u32,
            begun: BTreeMap::new(),
            over: BTreeMap::new(),
            sending: BTreeMap::new(),
            posted: BTreeMap::new(),
            under_way: vec![(0, 0); ranks as usize],
            asked: 0,
            repeats: Vec::new(),
            arrived: BTreeSet::new(),
        }
    }

    /// Runs the job until nothing is left to happen. Rank r starts at r us.
    fn run(&mut self) {
        for rank in 0..self.ranks.len() as u32 {
            let start = Time::ZERO + us(rank.into());
            // Until then the rank only receives messages.
            let event = (start, Happening::Deadline, rank, u32::MAX);
            self.coming.push(Reverse(event));
        }
        while let Some(Reverse((now, what, rank, message))) = self.coming.pop() {
            let own = &mut self.ranks[rank as usize];
            match what {
                Happening::Received => {
                    let is_new = own.on_received(now, MessageNumber(message));
                    assert_eq!(is_new, self.arrived.insert(message), "{message}");
                }
                Happening::Sent => {
                    self.under_way[rank as usize].0 -= 1;
                    own.on_sent(now, MessageNumber(message));
                }
                Happening::Deadline if message == u32::MAX => own.start(now),
                Happening::Deadline => own.on_deadline(now),
            }
            self.listen(now, rank);
        }
        assert!(self.ranks.iter().all(RankRun::is_over));
    }

    fn listen(&mut self, now: Time, rank: u32) {
        let own = &mut self.ranks[rank as usize];
        while let Some(output) = own.poll_output() {
            match output {
                Output::Post { to, message, .. } => {
                    let latency = (self.latency)(TaskId(message.0 % self.tasks));
                    let received = (now + latency, Happening::Received, to.0, message.0);
                    let sent = (now + latency * 2, Happening::Sent, rank, message.0);
                    self.coming.extend([Reverse(received), Reverse(sent)]);
                    let again = self.repeats.iter().map(|&later| {
                        Reverse((received.0 + later, Happening::Received, to.0, message.0))
                    });
                    self.coming.extend(again);
                    assert_eq!(self.posted.insert(message.0, now), None);
                    let (now, most) = &mut self.under_way[rank as usize];
                    *now += 1;
                    *most = (*most).max(*now);
                }
                Output::Ask { message, .. } => {
                    self.asked += 1;
                    own.on_granted(message);
                }
                Output::Begun { iteration } => {
                    self.begun.insert((rank, iteration), now);
                }
                Output::Sending { iteration } => {
                    self.sending.insert((rank, iteration), now);
                }
                Output::Over { iteration } => {
                    self.over.insert((rank, iteration), now);
                }
                Output::Timed { until, .. } => assert!(until > now, "it is of the future"),
            }
        }
        let deadline = own.deadline();
        if !deadline.is_never() {
            let event = (deadline, Happening::Deadline, rank, 0);
            self.coming.push(Reverse(event));
        }
    }
}

#[test]
fn words_of_messages_that_a_rank_does_not_have_change_nothing() {
    let graph = ring(2);
    let tasks = graph.len() as u32;
    let mut world = World::new(graph, 2, |_| us(1));
    let other = |number| {
        let message = world.ranks[1].plan.graph().task(TaskId(number % tasks));
        matches!(message, Task::Message { dst: Rank(0), .. })
    };
    let to_the_other = (0..tasks).find(|&number| other(number)).unwrap();
    // Messages of another rank, beyond the last iteration, and with the largest number.
    for number in [to_the_other, 2 * tasks + to_the_other, u32::MAX] {
        assert!(!world.ranks[1].on_received(Time::ZERO, MessageNumber(number)));
    }
    world.run();
}

/// Ring: each rank computes 5 us, sends to the right, and waits for the message from the left.
fn ring(ranks: u32) -> Graph {
    let mut graph = Graph::new(ranks);
    for rank in 0..ranks {
        let compute = graph.compute(Rank(rank), us(5), []);
        graph.message((Rank(rank), Rank((rank + 1) % ranks)), KB, [compute]);
    }
    graph
}

/// In slots of 20 us whose first is at 3 us; rank r's clock is late by r us.
fn in_slots(mut world: World) -> World {
    let slots = |rank: &RankRun| Slots {
        period: us(20),
        shift: us(3),
        grace: Span::ZERO,
        skew: us(rank.rank().0.into()),
    };
    let ranks = std::mem::take(&mut world.ranks).into_iter();
    let ranks = ranks.map(|rank| {
        let slots = slots(&rank);
        rank.with_slots(Some(slots))
    });
    world.ranks = ranks.collect();
    world
}

#[test]
fn communication_waits_for_its_slot_or_for_what_another_rank_has_sent() {
    // Rank r computes from r us to r + 5 us. Rank 0 has missed 3 us and waits for 23 us; its message takes 2 us.
    let mut world = in_slots(World::new(ring(3), 3, |_| us(2)));
    world.run();
    let sending = |iteration| {
        let at = |rank| world.sending[&(rank, iteration)].as_us();
        [at(0), at(1), at(2)]
    };
    assert_eq!(sending(0), [23.0, 24.0, 25.0]);
    // Through at 27 us or a little later, ready 5 us later.
    assert_eq!(sending(1), [43.0, 44.0, 45.0]);
    assert_eq!(world.over.len(), 9);
}

#[test]
fn a_rank_that_something_has_come_to_does_not_wait() {
    // The second clock is late by 15 us.
    let world = World::new(ring(2), 1, |_| us(2));
    let mut world = in_slots(world);
    let late = world.ranks.remove(1);
    let slots = Slots {
        skew: us(15),
        ..late.slots.unwrap()
    };
    world.ranks.push(late.with_slots(Some(slots)));
    world.run();
    assert_eq!(world.sending[&(1, 0)], Time::from_us(18));
    // At 20 us something has come to rank 0, whose slot would be at 23 us.
    assert_eq!(world.sending[&(0, 0)], Time::from_us(20));
    assert_eq!(world.over[&(0, 0)], Time::from_us(24));
}

#[test]
fn iterations_follow_each_other_at_each_rank() {
    let mut world = World::new(ring(3), 2, |_| us(10));
    world.run();
    let at = |us: u64| Time::from_us(us);
    // Rank 2 starts last: its message arrives at rank 0 at 2 + 5 + 10 us, and is acknowledged at 27 us.
    let firsts: Vec<Time> = (0..3).map(|rank| world.over[&(rank, 0)]).collect();
    assert_eq!(firsts, [at(25), at(26), at(27)]);
    assert_eq!(world.begun[&(1, 1)], at(26));
    assert_eq!(world.over[&(2, 1)], at(52));
}

#[test]
fn messages_of_ranks_that_are_ahead_are_kept() {
    // Rank 0 only sends, and is through with its 5 iterations while rank 1 computes.
    let mut graph = Graph::new(2);
    graph.message((Rank(0), Rank(1)), KB, []);
    graph.compute(Rank(1), us(100), []);
    let mut world = World::new(graph, 5, |_| us(1));
    world.run();
    assert_eq!(world.over[&(0, 4)], Time::from_us(10));
    assert_eq!(world.over[&(1, 4)], Time::from_us(501));
}

#[test]
fn a_unit_does_one_thing_at_a_time_and_joins_take_none() {
    let mut graph = Graph::new(1);
    let rank = Rank(0);
    let unit = |unit, span| Task::Compute { rank, unit, span };
    let first = graph.add(unit(0, us(10)), []);
    let second = graph.add(unit(0, us(7)), []);
    let other = graph.add(unit(1, us(12)), []);
    let join = graph.add(
        unit(0, Span::ZERO),
        [first, second, other].map(TaskDependency::over),
    );
    // Begins when the second begins, not when it is over.
    graph.add(unit(2, us(5)), [TaskDependency::begun(second)]);
    graph.add(unit(0, us(1)), [TaskDependency::over(join)]);
    let mut world = World::new(graph, 1, |_| us(1));
    world.run();
    assert_eq!(world.over[&(0, 0)], Time::from_us(18));
}

#[test]
fn a_limit_holds_messages_back() {
    let mut graph = Graph::new(9);
    for to in 1..9 {
        graph.message((Rank(0), Rank(to)), KB, []);
    }
    for to_receiver in [None, Some(3)] {
        graph.parallelism = Some(Parallelism {
            from_sender: 3,
            to_receiver,
        });
        let mut world = World::new(graph.clone(), 2, |_| us(10));
        world.run();
        assert_eq!(world.under_way[0].1, 3);
        let posted: Vec<Time> = world.posted.values().copied().take(8).collect();
        let expected = [0, 0, 0, 20, 20, 20, 40, 40].map(Time::from_us);
        assert_eq!(posted, expected);
        assert_eq!(world.asked, if to_receiver.is_some() { 16 } else { 0 });
    }
}

#[test]
fn stragglers_and_jitter_take_longer() {
    let plan = Arc::new(PreparedGraph::new(ring(2)));
    let end = |factor, jitter| {
        let random = RandomStream::new(3, Purpose::Test, 9);
        let pace = Pace {
            factor,
            jitter,
            random,
        };
        let mut run = RankRun::new(Arc::clone(&plan), Rank(0), 1, pace);
        run.start(Time::ZERO);
        run.deadline()
    };
    assert_eq!(end(1.0, 0.0), Time::from_us(5));
    assert_eq!(end(1.5, 0.0), Time::from_ps(7_500_000));
    let jittery = end(1.0, 0.2);
    assert!(Time::from_us(5) < jittery && jittery < Time::from_us(6));
    assert_eq!(jittery, end(1.0, 0.2));
}

fn latency(id: TaskId) -> Span {
    us(u64::from(id.0) * 7 % 13 + 1)
}

/// A task among ranks, and which of the tasks before it it would wait for.
fn random_graph(ranks: u32, tasks: &[(u32, u32, u64, Vec<prop::sample::Index>)]) -> Graph {
    let mut graph = Graph::new(ranks);
    for (number, (src, dst, span, needs)) in tasks.iter().enumerate() {
        let (src, dst) = (Rank(src % ranks), Rank(dst % ranks));
        let needs: Vec<TaskDependency> = needs
            .iter()
            .filter(|_| number > 0)
            .map(|index| TaskId(index.index(number.max(1)) as u32))
            .filter(|&id| graph.task(id).is_seen_by(src))
            .map(TaskDependency::over)
            .collect();
        let task = match src == dst {
            false => Task::Message {
                src,
                dst,
                bytes: KB,
            },
            // Each computation has a separate unit.
            true => Task::Compute {
                rank: src,
                unit: number as u16,
                span: us(*span),
            },
        };
        graph.add(task, needs);
    }
    graph
}

/// Time at which each rank is through with each iteration, from the graph.
fn expected(graph: &Graph, iterations: u32) -> BTreeMap<(u32, u32), Time> {
    let mut begin: Vec<Time> = (0..graph.ranks())
        .map(|r| Time::ZERO + us(r.into()))
        .collect();
    let mut through = BTreeMap::new();
    for iteration in 0..iterations {
        let mut starts: Vec<Time> = Vec::new();
        let mut end = begin.clone();
        // When a task is over, as seen at a rank.
        let over = |id: TaskId, start: Time, rank: Rank| match graph.task(id) {
            Task::Compute { span, .. } => start + span,
            Task::Message { src, .. } if src == rank => start + latency(id) * 2,
            Task::Message { .. } => start + latency(id),
        };
        for (id, task) in graph.numbered() {
            let rank = task.rank();
            let needs = graph.needs(id).iter().map(|need| need.task());
            let after = needs.map(|need| over(need, starts[need.index()], rank));
            let start = after.max().unwrap_or(Time::ZERO).max(begin[rank.index()]);
            starts.push(start);
            end[rank.index()] = end[rank.index()].max(over(id, start, rank));
            if let Task::Message { dst, .. } = task {
                end[dst.index()] = end[dst.index()].max(over(id, start, dst));
            }
        }
        for (rank, end) in end.iter().enumerate() {
            through.insert((rank as u32, iteration), *end);
        }
        begin = end;
    }
    through
}

proptest! {
    #[test]
    fn every_rank_is_through_when_the_graph_says(
        ranks in 1u32..6,
        tasks in prop::collection::vec(
            (0u32..6, 0u32..6, 0u64..20, prop::collection::vec(any::<prop::sample::Index>(), 0..4)),
            1..120,
        ),
        iterations in 1u32..4,
        repeats in prop::collection::vec(0u64..300, 0..3),
    ) {
        let graph = random_graph(ranks, &tasks);
        let expected = expected(&graph, iterations);
        let mut world = World::new(graph, iterations, latency);
        world.repeats = repeats.into_iter().map(us).collect();
        world.run();
        prop_assert_eq!(world.over, expected);
    }
}
