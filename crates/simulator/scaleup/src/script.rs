//! A program that is known in advance: sets of operations with pauses between them.

use crate::{Cycle, Operation, Posts, Program};

/// An operation, and one that follows when it is complete.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Step {
    /// The operation that is posted first. Its tag is the script's own.
    pub first: Operation,
    /// The operation that its completion causes: in a transaction, the write that follows the read (§6.3.2).
    pub then: Option<Operation>,
}

/// Operations that are posted at once.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OperationSet {
    /// Cycles between the completion of all operations of the set before, or the beginning, and the posting of these.
    pub pause: Cycle,
    /// The operations, in the order of posting.
    pub steps: Vec<Step>,
}

/// A program that carries out sets of operations, one after another.
#[derive(Debug, Clone, Default)]
pub struct Script {
    sets: std::collections::VecDeque<OperationSet>,
    /// Operations of the present set that are to follow, by tag.
    follow: Vec<Option<Operation>>,
    outstanding: u64,
    /// Cycle before which the next set is not posted.
    resumes_at: Cycle,
}

impl Script {
    /// A script of `sets`. Pauses after the last operation are left out: nothing follows them.
    pub fn new(mut sets: Vec<OperationSet>) -> Self {
        let last = sets.iter().rposition(|set| !set.steps.is_empty());
        sets.truncate(last.map_or(0, |last| last + 1));
        Self {
            sets: sets.into(),
            ..Self::default()
        }
    }

    /// Waits for the next set, or posts it.
    fn go_on(&mut self, now: Cycle, posts: &mut Posts) {
        while self.outstanding == 0 {
            match self.sets.front_mut() {
                None => return,
                Some(set) if set.pause > 0 => {
                    self.resumes_at = now + std::mem::take(&mut set.pause);
                    posts.wake_at(self.resumes_at);
                    return;
                }
                Some(_) if now < self.resumes_at => return,
                Some(_) => self.post_set(posts),
            }
        }
    }

    fn post_set(&mut self, posts: &mut Posts) {
        let Some(set) = self.sets.pop_front() else {
            return;
        };
        self.outstanding = set.steps.len() as u64;
        self.follow.clear();
        for (tag, step) in set.steps.into_iter().enumerate() {
            let tag = tag as u64;
            posts.operation(Operation { tag, ..step.first });
            self.follow.push(step.then);
        }
    }
}

impl Program for Script {
    fn start(&mut self, posts: &mut Posts) {
        self.go_on(0, posts);
    }

    fn on_completion(&mut self, now: Cycle, operation: &Operation, posts: &mut Posts) {
        self.outstanding -= 1;
        let follow = self
            .follow
            .get_mut(operation.tag as usize)
            .and_then(Option::take);
        if let Some(then) = follow {
            self.outstanding += 1;
            posts.operation(Operation {
                tag: u64::MAX,
                ..then
            });
        }
        self.go_on(now, posts);
    }

    fn on_wake(&mut self, now: Cycle, posts: &mut Posts) {
        self.go_on(now, posts);
    }

    fn is_over(&self) -> bool {
        self.sets.is_empty() && self.outstanding == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_after_the_last_operation_are_left_out() {
        let pause = |pause| OperationSet {
            pause,
            steps: Vec::new(),
        };
        assert!(Script::new(vec![pause(3), pause(500)]).is_over());
        let step = Step {
            first: Operation {
                kind: crate::OperationKind::Read,
                target: crate::Target::Gpu(clearway_units::HostId(1)),
                address: 0,
                tag: 0,
            },
            then: None,
        };
        let set = OperationSet {
            pause: 0,
            steps: vec![step],
        };
        let mut script = Script::new(vec![pause(3), set, pause(500), pause(1)]);
        assert_eq!(script.sets.len(), 2);
        assert!(!script.is_over());
        let mut posts = Posts::default();
        script.start(&mut posts);
        script.on_wake(3, &mut posts);
        script.on_completion(9, &step.first, &mut posts);
        assert!(script.is_over());
    }
}
