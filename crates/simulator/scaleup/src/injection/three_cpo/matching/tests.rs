use super::*;
use crate::injection::tests::{GROUP, facts, remote};
use OperationKind::{Read, Write};
use proptest::prelude::*;

impl Matching {
    fn unmatched(&self) -> [i64; 3] {
        [0, 1, 2].map(|rank: usize| self.groups[0].members[rank].unmatched[0])
    }
    fn outstanding(&self) -> [i64; 3] {
        [0, 1, 2].map(|rank: usize| self.groups[0].members[rank].outstanding[0])
    }
    pub(in super::super) fn arrivals(&self) -> usize {
        self.arrivals.len()
    }
    fn local_ops(&self) -> i64 {
        self.groups[0].local_ops[0]
    }
}

#[test]
fn figure_6_5_matches_in_both_orders() {
    // Packets of one flit.
    let mut matching = Matching::new(&facts(0));
    for rank in 0..3 {
        assert_eq!(matching.on_remote(&remote(0, Read, rank)), [0, 0]);
    }
    assert_eq!(matching.unmatched(), [-1, -1, -1]);
    assert_eq!(matching.on_sent(GROUP, Read), [3, 3]);
    assert_eq!(matching.unmatched(), [0, 0, 0]);
    assert_eq!(matching.on_sent(GROUP, Read), [0, 0]);
    assert_eq!(matching.unmatched(), [1, 1, 1]);
    for rank in 0..3 {
        assert_eq!(matching.on_remote(&remote(20, Read, rank)), [1, 1]);
    }
    assert_eq!(matching.unmatched(), [0, 0, 0]);
    assert_eq!(matching.on_remote(&remote(20, Read, 1)), [0, 0]);
}

#[test]
fn figure_6_6_completed_operations_do_not_match() {
    let mut matching = Matching::new(&facts(0));
    matching.on_sent(GROUP, Read);
    matching.on_sent(GROUP, Read);
    matching.on_remote(&remote(5, Read, 0));
    matching.on_remote(&remote(5, Read, 1));
    matching.on_remote(&remote(6, Read, 2));
    matching.on_remote(&remote(7, Read, 2));
    assert_eq!((matching.unmatched(), matching.local_ops()), ([1, 1, 0], 2));
    matching.on_completed(GROUP, Read);
    assert_eq!((matching.unmatched(), matching.local_ops()), ([1, 1, 0], 1));
    matching.on_completed(GROUP, Read);
    assert_eq!((matching.unmatched(), matching.local_ops()), ([0, 0, 0], 0));
    for rank in 0..3 {
        assert_eq!(matching.on_remote(&remote(4000, Read, rank)), [0, 0]);
    }
}

#[test]
fn figure_6_7_expired_arrivals_do_not_match() {
    let mut matching = Matching::new(&facts(0));
    for (now, rank) in [(0, 0), (1, 1), (2, 2), (10, 0)] {
        matching.on_remote(&remote(now, Read, rank));
    }
    assert_eq!(matching.outstanding(), [-2, -1, -1]);
    assert_eq!(matching.on_sent(GROUP, Read), [3, 3]);
    assert_eq!(matching.unmatched(), [-1, 0, 0]);
    matching.expire(99, 100);
    assert_eq!(matching.outstanding(), [-2, -1, -1]);
    // Still at most one flit of member 0 is outstanding, and one is unmatched.
    matching.expire(102, 100);
    assert_eq!(matching.outstanding(), [-1, 0, 0]);
    assert_eq!(matching.unmatched(), [-1, 0, 0]);
    matching.expire(110, 100);
    assert_eq!(matching.outstanding(), [0, 0, 0]);
    assert_eq!(matching.unmatched(), [0, 0, 0]);
    assert_eq!(matching.on_sent(GROUP, Read), [0, 0]);
    assert!(matching.arrivals.is_empty());
}

#[test]
fn classes_match_by_their_own_flits() {
    let mut matching = Matching::new(&facts(8));
    matching.on_remote(&remote(0, Read, 0));
    matching.on_remote(&remote(0, Write, 1));
    // Of 9 request flits, 1 matches a read and 9 a write; of the one response flit, 1 each.
    assert_eq!(matching.on_sent(GROUP, Write), [10, 2]);
    assert_eq!(matching.groups[0].members[0].unmatched, [8, -8]);
    assert_eq!(matching.groups[0].members[1].unmatched, [0, 0]);
    assert_eq!(matching.groups[0].members[2].unmatched, [9, 1]);
    assert_eq!(matching.groups[0].members[3].unmatched, [0, 0], "its own");
}

#[test]
fn groups_do_not_match_each_other() {
    let memberships = [2, 5].map(|group| super::super::super::Membership {
        group: GroupId(group),
        members: 4,
        rank: 3,
    });
    let mut matching = Matching::new(&InjectionFacts {
        memberships: &memberships,
        ..facts(0)
    });
    let arrival = |group| Remote {
        group: GroupId(group),
        ..remote(0, Read, 0)
    };
    matching.on_remote(&arrival(5));
    assert_eq!(matching.on_sent(GroupId(2), Read), [0, 0]);
    assert_eq!(matching.on_sent(GroupId(5), Read), [1, 1]);
    assert_eq!(matching.on_sent(GroupId(3), Read), [0, 0], "no member");
    assert_eq!(matching.on_remote(&arrival(2)), [1, 1]);
}

/// The arrays of one class as the paper describes them, with the queue looked at in each cycle.
#[derive(Default)]
struct Naive {
    unmatched: [i64; 3],
    outstanding: [i64; 3],
    local_ops: i64,
    queue: Vec<(usize, i64, Cycle)>,
}

impl Naive {
    fn begin_cycle(&mut self, now: Cycle, stay: Cycle) {
        while self
            .queue
            .first()
            .is_some_and(|&(_, _, at)| now >= at + stay)
        {
            let (rank, flits, _) = self.queue.remove(0);
            self.outstanding[rank] += flits;
            if self.unmatched[rank] < self.outstanding[rank] {
                self.unmatched[rank] = self.outstanding[rank];
            }
        }
    }
    fn on_sent(&mut self, flits: i64) -> u64 {
        let matched = self
            .unmatched
            .map(|unmatched| flits.min((-unmatched).max(0)));
        self.unmatched = self.unmatched.map(|unmatched| unmatched + flits);
        self.local_ops += flits;
        matched.iter().sum::<i64>() as u64
    }
    fn on_remote(&mut self, now: Cycle, rank: usize, flits: i64) -> u64 {
        let matched = flits.min(self.unmatched[rank].max(0));
        self.unmatched[rank] -= flits;
        self.outstanding[rank] -= flits;
        self.queue.push((rank, flits, now));
        matched as u64
    }
    fn on_completed(&mut self, flits: i64) {
        self.local_ops -= flits;
        self.unmatched = self
            .unmatched
            .map(|unmatched| unmatched.min(self.local_ops));
    }
}

#[derive(Debug, Clone)]
enum Step {
    Pass(Cycle),
    Send(bool),
    Arrive(u32, bool),
    Complete(Cycle),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    prop::collection::vec(
        prop_oneof![
            4 => (1u64..30).prop_map(Step::Pass),
            3 => any::<bool>().prop_map(Step::Send),
            6 => (0u32..3, any::<bool>()).prop_map(|(rank, write)| Step::Arrive(rank, write)),
            3 => (1u64..200).prop_map(Step::Complete),
        ],
        0..300,
    )
}

proptest! {
    #[test]
    fn arrays_are_those_of_the_paper_and_stay_in_order(steps in steps()) {
        let mut matching = Matching::new(&facts(8));
        let mut naive: [Naive; 2] = Default::default();
        let (mut now, mut stay) = (0, 100);
        let mut under_way = std::collections::VecDeque::new();
        let kind = |write| if write { Write } else { Read };
        for step in steps {
            matching.expire(now, stay);
            match step {
                Step::Pass(cycles) => {
                    for _ in 0..cycles {
                        now += 1;
                        naive.iter_mut().for_each(|naive| naive.begin_cycle(now, stay));
                    }
                }
                Step::Send(write) => {
                    let flits = flits(facts(8).sizes, kind(write));
                    let expected = [0, 1].map(|class: usize| naive[class].on_sent(flits[class]));
                    prop_assert_eq!(matching.on_sent(GROUP, kind(write)), expected);
                    under_way.push_back(write);
                }
                Step::Arrive(rank, write) => {
                    let flits = flits(facts(8).sizes, kind(write));
                    let expected = [0, 1].map(|class: usize| {
                        naive[class].on_remote(now, rank as usize, flits[class])
                    });
                    prop_assert_eq!(matching.on_remote(&remote(now, kind(write), rank)), expected);
                }
                Step::Complete(rtt) => {
                    if let Some(write) = under_way.pop_front() {
                        matching.on_completed(GROUP, kind(write));
                        let flits = flits(facts(8).sizes, kind(write));
                        for (naive, flits) in naive.iter_mut().zip(flits) {
                            naive.on_completed(flits);
                        }
                        // The new round trip holds from the next cycle on.
                        stay = rtt;
                        now += 1;
                        naive.iter_mut().for_each(|naive| naive.begin_cycle(now, stay));
                    }
                }
            }
            let arrays = &matching.groups[0];
            for member in &arrays.members {
                for class in 0..2 {
                    prop_assert!(member.outstanding[class] <= 0);
                    prop_assert!(member.outstanding[class] <= member.unmatched[class]);
                    prop_assert!(member.unmatched[class] <= arrays.local_ops[class]);
                }
            }
        }
        matching.expire(now, stay);
        for (class, naive) in naive.iter().enumerate() {
            let members = &matching.groups[0].members[..3];
            prop_assert!(members.iter().map(|member| member.unmatched[class]).eq(naive.unmatched));
            prop_assert!(members.iter().map(|m| m.outstanding[class]).eq(naive.outstanding));
            prop_assert_eq!(matching.arrivals.len(), naive.queue.len());
        }
    }
}
