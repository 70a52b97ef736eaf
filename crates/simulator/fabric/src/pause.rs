//! Priority flow control at a transmitter: the classes that the other end of its link has paused.

use crate::topology::LinkId;
use clearway_transport::ClassSet;
use clearway_units::{Span, Time};

/// Pauses of a link in a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LinkPauses {
    /// The link whose transmitter was paused.
    pub link: LinkId,
    /// Number of pauses; each lasts until all classes may be sent again.
    pub pauses: u64,
    /// For how long any class was paused.
    pub time: Span,
    /// True if the link was paused when the run ended.
    pub at_the_end: bool,
}

/// The pause state of a transmitter.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct PauseState {
    classes: ClassSet,
    /// Classes of the last pause frame.
    heard: ClassSet,
    /// Classes of a pause storm.
    storm: ClassSet,
    since: Time,
    pauses: u64,
    time: Span,
}

impl PauseState {
    /// Classes that may not be sent.
    #[inline]
    pub(crate) fn classes(&self) -> ClassSet {
        self.classes
    }

    /// Holds back these classes and the classes of a storm, and no others, from `now` on.
    pub(crate) fn obey(&mut self, now: Time, classes: ClassSet) {
        self.heard = classes;
        self.hold_back(now, classes.union(self.storm));
    }

    /// Sets the classes of a pause storm, empty after its end. They count from the next [`resume`](Self::resume) on.
    pub(crate) fn set_storm(&mut self, classes: ClassSet) {
        self.storm = classes;
    }

    /// Classes that a pause storm holds back.
    pub(crate) fn storm(&self) -> ClassSet {
        self.storm
    }

    /// Returns to the classes of the last frame and of the storm, at `now`.
    pub(crate) fn resume(&mut self, now: Time) {
        self.obey(now, self.heard);
    }

    /// Takes note that the link is down from `now` on: nothing is held back, and the last frame is forgotten.
    pub(crate) fn forget(&mut self, now: Time) {
        self.heard = ClassSet::EMPTY;
        self.hold_back(now, ClassSet::EMPTY);
    }

    fn hold_back(&mut self, now: Time, classes: ClassSet) {
        let (was, is) = (self.classes.is_empty(), classes.is_empty());
        if was && !is {
            self.since = now;
            self.pauses += 1;
        } else if !was && is {
            self.time += now - self.since;
        }
        self.classes = classes;
    }

    /// The account at the end of a run; none if nothing was ever paused.
    pub(crate) fn account(&self, link: LinkId, end: Time) -> Option<LinkPauses> {
        let at_the_end = !self.classes.is_empty();
        let open = if at_the_end {
            end.since(self.since)
        } else {
            Span::ZERO
        };
        (self.pauses > 0).then_some(LinkPauses {
            link,
            pauses: self.pauses,
            time: self.time + open,
            at_the_end,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clearway_transport::Class;

    #[test]
    fn pauses_count_once_and_time_adds_up() {
        let set = |classes: &[u8]| {
            let mut set = ClassSet::EMPTY;
            for &class in classes {
                set.insert(Class::new(class).unwrap());
            }
            set
        };
        let mut state = PauseState::default();
        let link = LinkId(4);
        assert_eq!(state.account(link, Time::from_us(1)), None);
        for (us, classes) in [
            (1, set(&[1])),
            (2, set(&[1, 3])),
            (4, set(&[3])),
            (5, set(&[])),
            (8, set(&[1])),
        ] {
            state.obey(Time::from_us(us), classes);
        }
        let account = state.account(link, Time::from_us(10)).unwrap();
        assert_eq!((account.pauses, account.time), (2, Span::from_us(6)));
        assert!(account.at_the_end);
    }
}
