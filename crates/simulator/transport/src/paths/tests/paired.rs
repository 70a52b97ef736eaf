//! Selectors between two endpoints: their answers to failures and congestion, and all their inputs.

use super::*;
use crate::congestion::{ControllerSettings, LossCause};
use crate::packet::Packet;
use crate::profile::{Profile, Reliability};
use crate::testing::{Pair, PipeSettings};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

clearway_units::parameters! {
    /// Settings of the selectors of the tests: none.
    pub struct Nothing {}
}

/// A pair whose flows have a selector and a window of one bandwidth-delay product.
fn pair(selector: SelectorSettings) -> Pair {
    let mut profile = Profile::strack(facts());
    profile.selector = selector;
    profile.controller = ControllerSettings::named("constant").unwrap();
    Pair::new(profile, PipeSettings::ideal(&facts()), 3)
}

#[test]
fn reps_keeps_away_from_paths_that_fail() {
    let dropped = |selector| {
        let mut pair = pair(selector);
        // One path in four fails after a while.
        let fails = |number, packet: &Packet| {
            number > 500 && packet.class.is_data() && packet.source_port.is_multiple_of(4)
        };
        pair.pipes[0].drop_if(fails);
        let flow = pair.send(Bytes::new(20_000_000));
        pair.run();
        assert_eq!(pair.deliveries(flow, 0), 1);
        pair.pipes[0].counters().dropped
    };
    let reps = dropped(SelectorSettings::named("reps").unwrap());
    let oblivious = dropped(SelectorSettings::named("oblivious").unwrap());
    assert!(reps > 0 && 4 * reps < oblivious, "{reps} {oblivious}");
}

#[test]
fn plb_leaves_congested_paths_and_stays_on_others() {
    let mut plb = SelectorSettings::named("plb").unwrap();
    plb.set("plb-rounds", &Value::Integer(3)).unwrap();
    let mut pair = pair(plb);
    let ports: Rc<RefCell<BTreeMap<u32, Vec<u16>>>> = Rc::default();
    let seen = Rc::clone(&ports);
    pair.pipes[0].mark_if(move |_, packet| {
        let mut seen = seen.borrow_mut();
        let of_flow = seen.entry(packet.flow.0).or_default();
        if packet.class.is_data() && of_flow.last() != Some(&packet.source_port) {
            of_flow.push(packet.source_port);
        }
        packet.source_port.is_multiple_of(2)
    });
    for _ in 0..20 {
        pair.send(Bytes::new(20_000_000));
        pair.run();
    }
    let ports = ports.borrow();
    let is_congested = |port: &u16| port.is_multiple_of(2);
    let began_congested = ports.values().filter(|all| is_congested(&all[0])).count();
    assert!((3..=17).contains(&began_congested), "{began_congested}");
    for all in ports.values() {
        let (last, before) = all.split_last().unwrap();
        assert!(
            !is_congested(last) && before.iter().all(is_congested),
            "{all:?}"
        );
    }
}

thread_local! {
    /// Calls that the selectors of this thread have received.
    static HEARD: RefCell<Vec<Heard>> = const { RefCell::new(Vec::new()) };
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Heard {
    Feedback(PathFeedback),
    Loss(LossSample),
    Choice(SendState),
}

/// One path, and a record of all that the selector is told.
struct Listener(NetworkFacts);

impl SelectorDefinition for Listener {
    const NAME: &'static str = "listener";
    const SUMMARY: &'static str = "one path, everything recorded";
    type Parameters = Nothing;
    fn new(_: &Nothing, context: SelectorContext<'_>) -> Self {
        Self(*context.network)
    }
}

impl PathSelector for Listener {
    fn on_feedback(&mut self, feedback: &PathFeedback) {
        assert_eq!(self.0, facts());
        HEARD.with_borrow_mut(|heard| heard.push(Heard::Feedback(*feedback)));
    }
    fn on_loss(&mut self, loss: &LossSample) {
        HEARD.with_borrow_mut(|heard| heard.push(Heard::Loss(*loss)));
    }
    fn choose(&mut self, state: &SendState) -> PathId {
        HEARD.with_borrow_mut(|heard| heard.push(Heard::Choice(*state)));
        7
    }
}

/// All that a selector hears of 40 packets, of which those with these numbers on the wire are lost.
fn heard(reliability: &str, lost: fn(u64) -> bool) -> Vec<Heard> {
    HEARD.take();
    let mut profile = Profile::strack(facts());
    profile.reliability = Reliability::named(reliability).unwrap();
    profile.selector = SelectorSettings::custom::<Listener>();
    profile.controller = ControllerSettings::named("constant").unwrap();
    let mut pair = Pair::new(profile, PipeSettings::ideal(&facts()), 3);
    pair.pipes[0].drop_if(move |number, packet| packet.class.is_data() && lost(number));
    let flow = pair.send(Bytes::new(40 * 4096));
    pair.run();
    assert_eq!(pair.deliveries(flow, 0), 1);
    HEARD.take()
}

#[test]
fn selectors_hear_of_nacks_losses_timeouts_and_times() {
    let causes = |heard: &[Heard]| -> Vec<LossCause> {
        let causes = heard.iter().filter_map(|heard| match heard {
            Heard::Loss(loss) => Some(loss.cause),
            _ => None,
        });
        causes.collect()
    };
    let nacks = |heard: &[Heard]| {
        let is_nack = |heard: &&Heard| {
            matches!(heard, Heard::Feedback(feedback)
                if feedback.path == 7 && feedback.verdict == PathVerdict::Nack { marked: false })
        };
        heard.iter().filter(is_nack).count()
    };
    let gap = heard("go-back-n", |number| number == 5);
    assert_eq!((nacks(&gap), causes(&gap)), (1, vec![LossCause::GoBack]));
    let tail = heard("go-back-n", |number| number == 39);
    assert_eq!((nacks(&tail), causes(&tail)), (0, vec![LossCause::Timeout]));
    let all = heard("selective-repeat", |number| number < 40);
    assert_eq!(causes(&all).first(), Some(&LossCause::Probe));

    let whole = heard("selective-repeat", |_| false);
    let (mut sent, mut delivered, mut now) = (Bytes::ZERO, Bytes::ZERO, Time::ZERO);
    for heard in whole {
        let at = match heard {
            Heard::Choice(state) => {
                assert_eq!(state.in_flight, sent - delivered);
                sent += Bytes::new(4096);
                state.now
            }
            Heard::Feedback(feedback) => {
                delivered += Bytes::new(4096);
                assert_eq!((feedback.delivered, feedback.sent), (delivered, sent));
                feedback.now
            }
            Heard::Loss(loss) => panic!("{loss:?}"),
        };
        assert!(at >= now);
        now = at;
    }
    assert_eq!(delivered, Bytes::new(40 * 4096));
}
