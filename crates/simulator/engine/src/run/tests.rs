use super::*;
use crate::{BufferPool, Inlet, MailboxBuilder, Outlet};
use clearway_units::{Purpose, RandomStream, mix64};
use proptest::prelude::*;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// A ball that hops between players after random delays.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Ball {
    arrival: Time,
    number: u32,
    hops_left: u32,
}

/// Every throw depends on the whole history of the player, so any change of order shows.
#[derive(Debug)]
struct Player {
    me: usize,
    random: RandomStream,
    history: u64,
    waiting: BinaryHeap<Reverse<Ball>>,
    inlets: Vec<Inlet<Ball>>,
    outlets: Vec<Outlet<Ball>>,
    delay: Span,
}

/// Handling of a ball by a player: the rule shared with the naive engine below.
fn throw(
    history: &mut u64,
    random: &mut RandomStream,
    ball: Ball,
    players: usize,
    delay: Span,
) -> Option<(usize, Ball)> {
    *history = mix64(*history ^ mix64(ball.arrival.as_ps()) ^ u64::from(ball.number));
    let target = random.below(players as u32) as usize;
    // Up to three rounds, so that some messages stay unread for a while; never two at one time in one inlet.
    let extra = Span::from_ps(random.below(3 * delay.as_ps() as u32).into());
    let arrival = ball.arrival + delay + extra;
    (ball.hops_left > 0).then(|| {
        (
            target,
            Ball {
                arrival,
                number: ball.number,
                hops_left: ball.hops_left - 1,
            },
        )
    })
}

impl Domain for Player {
    type Report = (Time, usize);
    type Command = Ball;
    type Workbench = BufferPool<Ball>;

    fn run(
        &mut self,
        round: &Round,
        incoming: &[u32],
        reports: &mut Vec<Self::Report>,
        buffers: &mut BufferPool<Ball>,
    ) -> DomainHorizon {
        for &inlet in incoming {
            let inlet = &mut self.inlets[inlet as usize];
            inlet.collect(round, buffers);
            self.waiting
                .extend(inlet.unread().iter().map(|&ball| Reverse(ball)));
            inlet.advance(inlet.unread().len());
        }
        let mut sent = Time::NEVER;
        while self
            .waiting
            .peek()
            .is_some_and(|ball| ball.0.arrival < round.end())
        {
            let Reverse(ball) = self.waiting.pop().expect("just seen");
            let players = self.outlets.len();
            match throw(
                &mut self.history,
                &mut self.random,
                ball,
                players,
                self.delay,
            ) {
                Some((target, ball)) => {
                    sent = sent.min(ball.arrival);
                    self.outlets[target].post(ball, buffers);
                }
                None => reports.push((ball.arrival, self.me)),
            }
        }
        self.outlets
            .iter_mut()
            .for_each(|outlet| outlet.send(round));
        let next = self
            .waiting
            .peek()
            .map_or(Time::NEVER, |ball| ball.0.arrival);
        DomainHorizon { next, sent }
    }

    fn accept(&mut self, order: Ball) -> Time {
        self.waiting.push(Reverse(order));
        order.arrival
    }
}

/// Throws a new ball in for every second one that stops.
#[derive(Default)]
struct Referee {
    stopped: Vec<(Time, usize)>,
    rounds: u64,
    limit: usize,
}

impl Conductor<Player> for Referee {
    fn between_rounds(
        &mut self,
        round: &Round,
        reports: &mut Vec<(Time, usize)>,
        commands: &mut Vec<(usize, Ball)>,
    ) -> RunDecision {
        self.rounds += 1;
        for report in reports.drain(..) {
            self.stopped.push(report);
            if self.stopped.len() % 2 == 1 && self.stopped.len() < self.limit {
                let number = 1000 + self.stopped.len() as u32;
                commands.push((
                    report.1,
                    Ball {
                        arrival: round.end(),
                        number,
                        hops_left: 5,
                    },
                ));
            }
        }
        RunDecision::Continue
    }
}

fn play(
    players: usize,
    balls: u32,
    threads: usize,
    delay: Span,
    limit: usize,
) -> (Vec<u64>, Vec<(Time, usize)>, u64) {
    let mut post = MailboxBuilder::new(&vec![players; players]);
    let mut outlets: Vec<Vec<Outlet<Ball>>> = (0..players).map(|_| Vec::new()).collect();
    let mut inlets: Vec<Vec<Inlet<Ball>>> = (0..players).map(|_| Vec::new()).collect();
    for from in &mut outlets {
        for (to, inlets) in inlets.iter_mut().enumerate() {
            let (outlet, inlet) = post.mailbox(to);
            from.push(outlet);
            inlets.push(inlet);
        }
    }
    let domains = outlets
        .into_iter()
        .zip(inlets)
        .enumerate()
        .map(|(me, (outlets, inlets))| {
            let first = Ball {
                arrival: Time::ZERO,
                number: 0,
                hops_left: 40,
            };
            let waiting = (0..balls).filter(|n| *n as usize % players == me);
            let waiting: BinaryHeap<_> = waiting
                .map(|number| Reverse(Ball { number, ..first }))
                .collect();
            let next = if waiting.is_empty() {
                Time::NEVER
            } else {
                Time::ZERO
            };
            let random = RandomStream::new(5, Purpose::Test, me as u64);
            (
                Player {
                    me,
                    random,
                    history: 0,
                    waiting,
                    inlets,
                    outlets,
                    delay,
                },
                next,
            )
        });
    let mut engine = Engine::new(
        delay,
        threads.into(),
        domains.collect(),
        post.into_mailrooms(),
    );
    if limit == 0 {
        // Such a game is too small to be shared; the games with commands are, if they are worth it.
        engine = engine.sharing_all_rounds();
    }
    let mut referee = Referee {
        limit,
        ..Referee::default()
    };
    let concluded = engine.run(&mut referee);
    assert_eq!(concluded.ending, StopReason::Idle);
    assert_eq!(concluded.rounds.total, referee.rounds);
    let histories = concluded
        .domains
        .iter()
        .map(|player| player.history)
        .collect();
    (histories, referee.stopped, referee.rounds)
}

/// The same game on one heap.
fn play_naively(players: usize, balls: u32, delay: Span) -> Vec<u64> {
    let mut state: Vec<_> = (0..players)
        .map(|me| (0, RandomStream::new(5, Purpose::Test, me as u64)))
        .collect();
    let first = Ball {
        arrival: Time::ZERO,
        number: 0,
        hops_left: 40,
    };
    let mut heap: BinaryHeap<_> = (0..balls)
        .map(|number| Reverse((Ball { number, ..first }, number as usize % players)))
        .collect();
    while let Some(Reverse((ball, me))) = heap.pop() {
        let (history, random) = &mut state[me];
        if let Some((target, ball)) = throw(history, random, ball, players, delay) {
            heap.push(Reverse((ball, target)));
        }
    }
    state.into_iter().map(|(history, _)| history).collect()
}

#[test]
fn reports_and_commands_do_not_depend_on_threads() {
    let delay = Span::from_ns(100);
    let one = play(9, 30, 1, delay, 60);
    assert!(one.1.len() > 30, "commands threw new balls in");
    for threads in [2, 3, 4, 16] {
        assert_eq!(play(9, 30, threads, delay, 60), one, "{threads} threads");
    }
}

/// A domain that has a given number of messages from itself to read in each of its rounds.
#[derive(Debug)]
struct Clerk {
    outlet: Outlet<()>,
    inlet: Inlet<()>,
    messages: fn(u64) -> u64,
    rounds: u64,
}

impl Domain for Clerk {
    type Report = u64;
    type Command = ();
    type Workbench = BufferPool<()>;

    fn run(
        &mut self,
        round: &Round,
        incoming: &[u32],
        reports: &mut Vec<u64>,
        buffers: &mut BufferPool<()>,
    ) -> DomainHorizon {
        if !incoming.is_empty() {
            self.inlet.collect(round, buffers);
            reports.push(self.inlet.unread().len() as u64);
            self.inlet.advance(self.inlet.unread().len());
        }
        let next = if round.ordinal() + 1 < self.rounds {
            (0..(self.messages)(round.ordinal() + 1)).for_each(|_| self.outlet.post((), buffers));
            self.outlet.send(round);
            round.end()
        } else {
            Time::NEVER
        };
        let sent = Time::NEVER;
        DomainHorizon { next, sent }
    }

    fn accept(&mut self, (): ()) -> Time {
        Time::NEVER
    }
}

/// Counts messages.
#[derive(Default)]
struct Auditor(u64);

impl Conductor<Clerk> for Auditor {
    fn between_rounds(
        &mut self,
        _: &Round,
        reports: &mut Vec<u64>,
        _: &mut Vec<(usize, ())>,
    ) -> RunDecision {
        self.0 += reports.drain(..).sum::<u64>();
        RunDecision::Continue
    }
}

/// Rounds of a run of four domains that each take `messages(ordinal)` messages in a round.
fn clerks(threads: usize, rounds: u64, messages: fn(u64) -> u64) -> Rounds {
    clerks_of(threads.into(), rounds, messages).0
}

/// The same, and the number of threads in the end.
fn clerks_of(threads: Threads, rounds: u64, messages: fn(u64) -> u64) -> (Rounds, usize) {
    let mut post = MailboxBuilder::new(&[1; 4]);
    let ends: Vec<_> = (0..4).map(|domain| post.mailbox(domain)).collect();
    let clerk = |(outlet, inlet)| Clerk {
        outlet,
        inlet,
        messages,
        rounds,
    };
    let domains = ends.into_iter().map(|ends| (clerk(ends), Time::ZERO));
    let engine = Engine::new(
        Span::from_ns(1),
        threads,
        domains.collect(),
        post.into_mailrooms(),
    );
    let mut auditor = Auditor::default();
    let concluded = engine.run(&mut auditor);
    let counts = concluded.rounds;
    let expected: u64 = 4 * (1..rounds).map(messages).sum::<u64>();
    assert_eq!(auditor.0, expected, "no message is lost");
    assert_eq!(
        counts.work,
        expected + 4 * rounds,
        "and one for each domain"
    );
    (counts, concluded.threads)
}

#[test]
fn rounds_that_carry_too_little_are_not_shared() {
    let poor = clerks(2, 10_000, |_| 1);
    assert_eq!(poor.total, 10_000);
    assert!((1..100).contains(&poor.shared), "{poor:?}");
    let rich = clerks(2, 500, |_| 200);
    assert_eq!((rich.total, rich.shared), (500, 500));
    assert_eq!(rich.shared_work, rich.work);
    assert_eq!(clerks(1, 500, |_| 200).shared, 0, "with whom?");
}

#[test]
fn long_runs_take_what_is_free() {
    let (short, threads) = clerks_of(Threads::Automatic, 500, |_| 200);
    assert_eq!((short.shared, threads), (0, 1));
    // 1.6 million messages; how many processors are free when the first million is through is not for a test to say.
    let (long, threads) = clerks_of(Threads::Automatic, 2_000, |_| 200);
    let processors = std::thread::available_parallelism().unwrap().get();
    assert!((1..=processors.min(4)).contains(&threads), "{threads}");
    assert_eq!(long.shared > 0, threads > 1);
    let (poor, threads) = clerks_of(Threads::Automatic, 200_000, |_| 2);
    assert!(poor.work > 1 << 21 && threads == 1, "{poor:?}");
}

#[test]
fn sharing_stops_and_returns_with_the_work() {
    // Busy, idle, busy, idle, 500 rounds each.
    let messages = |ordinal| {
        if ordinal / 500 % 2 == 0 { 300 } else { 1 }
    };
    let rounds = clerks(2, 2_000, messages);
    assert!((1_000..1_100).contains(&rounds.shared), "{rounds:?}");
    assert!(rounds.shared_work * 10 > rounds.work * 9, "{rounds:?}");
    assert_eq!(clerks(3, 2_000, messages), rounds, "three threads");
    assert_eq!(clerks(16, 2_000, messages), rounds, "one for each domain");
}

#[test]
fn idle_stretches_are_skipped() {
    // One ball makes 41 stops; at most one round each, although hops take up to four rounds.
    let (_, _, rounds) = play(3, 1, 1, Span::from_ns(100), 0);
    assert!(rounds <= 2 * 41, "{rounds} rounds");
}

#[test]
fn a_panic_in_a_domain_ends_the_run() {
    #[derive(Debug)]
    struct Faulty(bool);
    impl Domain for Faulty {
        type Report = ();
        type Command = ();
        type Workbench = ();
        fn run(&mut self, round: &Round, _: &[u32], _: &mut Vec<()>, (): &mut ()) -> DomainHorizon {
            assert!(!self.0, "fault in the model");
            DomainHorizon {
                next: round.end(),
                sent: Time::NEVER,
            }
        }
        fn accept(&mut self, (): ()) -> Time {
            Time::NEVER
        }
    }
    struct Endless;
    impl Conductor<Faulty> for Endless {
        fn between_rounds(
            &mut self,
            _: &Round,
            _: &mut Vec<()>,
            _: &mut Vec<(usize, ())>,
        ) -> RunDecision {
            RunDecision::Continue
        }
    }
    for threads in [1, 2] {
        let domains = vec![
            (Faulty(false), Time::ZERO),
            (Faulty(true), Time::from_us(5)),
        ];
        let mailrooms = MailboxBuilder::new(&[0, 0]).into_mailrooms();
        let engine = Engine::new(Span::from_us(1), Threads::from(threads), domains, mailrooms);
        let run = std::panic::AssertUnwindSafe(|| engine.run(&mut Endless));
        assert!(std::panic::catch_unwind(run).is_err(), "{threads} threads");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn rounds_play_like_a_single_heap(players in 1usize..8, balls in 1u32..20, delay_ns in 1u64..2000, threads in 1usize..4) {
        let delay = Span::from_ns(delay_ns);
        prop_assert_eq!(play(players, balls, threads, delay, 0).0, play_naively(players, balls, delay));
    }
}
