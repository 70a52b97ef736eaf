use super::*;
use crate::injection::tests::facts;
use proptest::prelude::*;

/// Both classes need a token, so that each answer tells of both.
fn parameters(arrival: TokenArrival, most: f64, initial: f64) -> TokenParameters {
    TokenParameters {
        watermark_max: most,
        watermark_min: 1.0,
        initial: Some(initial),
        arrival,
        need: TokenNeed::Both,
        ..Default::default()
    }
}

/// Cycles, tokens of requests at their beginning, and whether a packet of 5 flits was sent: figure 6.1.
fn trace(watermark: f64) -> Vec<(i64, bool)> {
    let parameters = TokenParameters {
        need: TokenNeed::Data,
        ..parameters(TokenArrival::Even, 10.0, watermark)
    };
    let mut buckets = TokenBuckets::new(&parameters, &facts(4));
    let step = |now| {
        let tokens = buckets.gauges(now, 0).tokens.expect("tokens")[0];
        let send = buckets.consent(now, OperationKind::Write) == InjectionDecision::Now;
        if send {
            buckets.spend_operation(now, OperationKind::Write);
        }
        (tokens as i64, send)
    };
    (0..=10).map(step).collect()
}

#[test]
fn figure_6_1() {
    let tokens = |trace: &[(i64, bool)]| trace.iter().map(|row| row.0).collect::<Vec<_>>();
    let sends = |trace: &[(i64, bool)]| -> Vec<usize> {
        (0..trace.len()).filter(|&cycle| trace[cycle].1).collect()
    };
    let without = trace(10.0);
    assert_eq!(tokens(&without), [1, -3, -2, -1, 0, 1, -3, -2, -1, 0, 1]);
    assert_eq!(sends(&without), [0, 5, 10]);
    let with = trace(5.0);
    assert_eq!(tokens(&with), [1, -4, -3, -3, -2, -2, -1, -1, 0, 0, 1]);
    assert_eq!(sends(&with), [0, 10]);
    // The column "New Token?": no, yes, no, yes, ...
    let new = |cycle: usize| {
        let cost = if with[cycle].1 { 5 } else { 0 };
        with[cycle + 1].0 - (with[cycle].0 - cost)
    };
    assert_eq!(
        (0..10).map(new).collect::<Vec<_>>(),
        [0, 1, 0, 1, 0, 1, 0, 1, 0, 1]
    );
}

#[test]
fn both_classes_need_a_token() {
    let parameters = parameters(TokenArrival::Even, 10.0, 10.0);
    for class in CLASSES {
        let mut buckets = TokenBuckets::new(&parameters, &facts(4));
        assert_eq!(
            buckets.consent(3, OperationKind::Read),
            InjectionDecision::Now
        );
        buckets.spend(3, class, Tokens::scaled(1, 0.5));
        assert_eq!(
            buckets.consent(3, OperationKind::Read),
            InjectionDecision::NotBefore(4)
        );
        assert_eq!(
            buckets.consent(4, OperationKind::Read),
            InjectionDecision::Now
        );
        // The half that is left over is lost: a bucket holds one.
        buckets.spend(4, class, Tokens::of_flits(2));
        assert_eq!(
            buckets.consent(4, OperationKind::Read),
            InjectionDecision::NotBefore(6)
        );
    }
}

#[test]
fn a_larger_bucket_saves_tokens_for_a_burst() {
    let parameters = TokenParameters {
        cap: 10.0,
        ..parameters(TokenArrival::Even, 10.0, 5.0)
    };
    let mut buckets = TokenBuckets::new(&parameters, &facts(4));
    for _ in 0..2 {
        assert_eq!(
            buckets.consent(0, OperationKind::Read),
            InjectionDecision::Now
        );
        buckets.spend_operation(0, OperationKind::Write);
    }
    assert_eq!(
        buckets.consent(0, OperationKind::Read),
        InjectionDecision::NotBefore(2)
    );
    assert_eq!(buckets.gauges(1000, 0).tokens, Some([10.0, 10.0]));
}

#[test]
fn random_tokens_come_at_the_rate_of_the_watermark() {
    let count = |gpu: u32, class: usize| -> Vec<Cycle> {
        let parameters = TokenParameters {
            cap: 1e6,
            ..parameters(TokenArrival::Random, 2468.0, 617.0)
        };
        let facts = InjectionFacts {
            gpu: clearway_units::HostId(gpu),
            ..facts(4)
        };
        let mut buckets = TokenBuckets::new(&parameters, &facts);
        buckets.spend(0, CLASSES[class], Tokens::of_flits(1_000_000));
        let mut last = 0.0;
        let new = |cycle: &Cycle| {
            let tokens = buckets.gauges(*cycle + 1, 0).tokens.expect("tokens")[class];
            tokens > std::mem::replace(&mut last, tokens)
        };
        (0..100_000).filter(new).collect()
    };
    let streams = [count(0, 0), count(0, 1), count(1, 0)];
    for stream in &streams {
        // 5 sigma of a binomial(100000, 1/4) is 685.
        assert!(stream.len().abs_diff(25_000) < 685, "{}", stream.len());
    }
    assert_ne!(streams[0], streams[1]);
    assert_ne!(streams[0], streams[2]);
    assert_eq!(streams[0], count(0, 0));
}

#[test]
fn a_full_watermark_brings_a_token_in_each_cycle() {
    let parameters = parameters(TokenArrival::Random, 2468.0, 2468.0);
    let mut buckets = TokenBuckets::new(&parameters, &facts(8));
    let draws = |bucket: &Bucket| match &bucket.source {
        Source::Random(draws) => draws.drawn,
        Source::Even { .. } => unreachable!("random tokens"),
    };
    for k in 0..1000 {
        assert_eq!(
            buckets.consent(9 * k, OperationKind::Read),
            InjectionDecision::Now
        );
        buckets.spend_operation(9 * k, OperationKind::Write);
        assert_eq!(
            buckets.consent(9 * k, OperationKind::Read),
            InjectionDecision::NotBefore(9 * (k + 1))
        );
    }
    assert_eq!(draws(&buckets.buckets[0]), 0, "without a draw");
}

/// Evaluation in each cycle.
struct Naive {
    tokens: [i64; 2],
    sums: [u64; 2],
    watermarks: [u64; 2],
    full: u64,
    cap: i64,
    even: bool,
    draws: [Draws; 2],
}

impl Naive {
    fn end_cycle(&mut self, cycle: Cycle) {
        for class in 0..2 {
            let (watermark, full) = (self.watermarks[class], self.full);
            let new = if self.even {
                self.sums[class] += watermark;
                let new = self.sums[class] >= full;
                self.sums[class] -= if new { full } else { 0 };
                new
            } else {
                self.draws[class].brings_token(cycle, watermark, full)
            };
            self.tokens[class] = (self.tokens[class] + i64::from(new) * UNIT).min(self.cap);
        }
    }

    fn allows(&self) -> bool {
        self.tokens.iter().all(|&tokens| tokens >= UNIT)
    }
}

#[derive(Debug, Clone)]
enum Step {
    Pass(Cycle),
    Ask,
    Send(bool),
    Remote(usize, u64, f64),
    Watermark(usize, f64),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    prop::collection::vec(
        prop_oneof![
            6 => (1u64..60).prop_map(Step::Pass),
            1 => (60u64..3000).prop_map(Step::Pass),
            3 => Just(Step::Ask),
            6 => any::<bool>().prop_map(Step::Send),
            3 => (0usize..2, 1u64..80, 0.8f64..1.0).prop_map(|(c, f, s)| Step::Remote(c, f, s)),
            1 => (0usize..2, 0.0f64..3000.0).prop_map(|(c, w)| Step::Watermark(c, w)),
            1 => (0usize..2).prop_map(|c| Step::Watermark(c, 2468.0)),
        ],
        0..150,
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn lazy_evaluation_agrees_with_that_in_each_cycle(
        steps in steps(),
        even in any::<bool>(),
        cap in prop_oneof![Just(1.0), 1.0f64..30.0],
        initial in 1.0f64..2468.0,
    ) {
        let arrival = if even { TokenArrival::Even } else { TokenArrival::Random };
        let parameters = TokenParameters { cap, ..parameters(arrival, 2468.0, initial) };
        let mut lazy = TokenBuckets::new(&parameters, &facts(8));
        let full = watermark_units(2468.0, u64::MAX);
        let mut naive = Naive {
            tokens: lazy.buckets.each_ref().map(|bucket| bucket.tokens),
            sums: [0; 2],
            watermarks: [watermark_units(initial, full); 2],
            full,
            cap: lazy.buckets[0].cap,
            even,
            draws: CLASSES.map(|class| Draws::new(&facts(8), class)),
        };
        let mut now = 0;
        // Cycle that the last answer promised, unless an event came since.
        let mut promised = None;
        for step in steps {
            match step {
                Step::Pass(cycles) => {
                    for _ in 0..cycles {
                        prop_assert!(promised.is_none_or(|cycle| now >= cycle) || !naive.allows());
                        naive.end_cycle(now);
                        now += 1;
                    }
                }
                Step::Ask | Step::Send(_) => {
                    let consent = lazy.consent(now, OperationKind::Read);
                    prop_assert_eq!(consent == InjectionDecision::Now, naive.allows());
                    promised = match consent {
                        InjectionDecision::NotBefore(cycle) => Some(cycle),
                        _ => None,
                    };
                    prop_assert!(promised.is_none_or(|cycle| cycle > now));
                    if let (Step::Send(write), InjectionDecision::Now) = (step, consent) {
                        let kind = if write { OperationKind::Write } else { OperationKind::Read };
                        lazy.spend_operation(now, kind);
                        let cost = if write { [9, 1] } else { [1, 9] };
                        for (tokens, cost) in naive.tokens.iter_mut().zip(cost) {
                            *tokens -= cost * UNIT;
                        }
                    }
                }
                Step::Remote(class, flits, scale) => {
                    let cost = Tokens::scaled(flits, scale);
                    lazy.spend(now, CLASSES[class], cost);
                    naive.tokens[class] -= cost.0;
                }
                Step::Watermark(class, watermark) => {
                    lazy.set_watermark(now, CLASSES[class], watermark);
                    naive.watermarks[class] = watermark_units(watermark.clamp(1.0, 2468.0), full);
                    promised = None;
                }
            }
        }
        lazy.gauges(now, 0);
        prop_assert_eq!(lazy.buckets.each_ref().map(|bucket| bucket.tokens), naive.tokens);
    }
}

#[test]
fn answers_are_exact_within_the_look_ahead() {
    for arrival in TokenArrival::ALL {
        let parameters = parameters(*arrival, 2468.0, 300.0);
        let mut buckets = TokenBuckets::new(&parameters, &facts(8));
        let mut again = buckets.clone();
        let mut now = 0;
        for k in 0..1000 {
            buckets.spend(now, CLASSES[k % 2], Tokens::of_flits(1 + k as u64 % 9));
            again.spend(now, CLASSES[k % 2], Tokens::of_flits(1 + k as u64 % 9));
            let InjectionDecision::NotBefore(cycle) = buckets.consent(now, OperationKind::Read)
            else {
                panic!("no tokens were left");
            };
            while again.consent(now, OperationKind::Read) != InjectionDecision::Now {
                now += 1;
            }
            assert_eq!(cycle, now);
        }
    }
}

#[test]
fn answers_beyond_the_look_ahead_are_lower_bounds_that_advance() {
    let parameters = parameters(TokenArrival::Random, 2468.0, 100.0);
    let mut buckets = TokenBuckets::new(&parameters, &facts(8));
    buckets.spend(0, PacketClass::Request, Tokens::of_flits(2000));
    let (mut now, mut questions) = (0, 0);
    while let InjectionDecision::NotBefore(cycle) = buckets.consent(now, OperationKind::Read) {
        assert!(cycle > now);
        (now, questions) = (cycle, questions + 1);
    }
    // 2000 tokens at one in 24.68 cycles.
    assert!((45_000..54_000).contains(&now), "{now}");
    assert!(questions < 60, "{questions}");
}

#[test]
fn a_read_needs_response_tokens_or_both() {
    let consents = |need| {
        let parameters = TokenParameters {
            need,
            ..TokenParameters::default()
        };
        let mut buckets = TokenBuckets::new(&parameters, &facts(8));
        buckets.spend(0, PacketClass::Response, Tokens::of_flits(9));
        [OperationKind::Write, OperationKind::Read].map(|kind| buckets.consent(0, kind))
    };
    let later = InjectionDecision::NotBefore(9);
    assert_eq!(consents(TokenNeed::Data), [InjectionDecision::Now, later]);
    assert_eq!(consents(TokenNeed::Both), [later, later]);
}
