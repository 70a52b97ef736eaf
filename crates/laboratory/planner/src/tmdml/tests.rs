use super::*;
use clearway_units::{Bytes, ParameterSet, Purpose, RandomStream, Rate, Span};
use proptest::prelude::*;

const GBPS: f64 = 1e9;
const VGG16: u64 = 527_800_000;

fn rates(gbps: &[u64]) -> Vec<Rate> {
    gbps.iter().map(|&gbps| Rate::from_gbps(gbps)).collect()
}

fn flow(path: &[u32], destination: u32, bytes: u64) -> PlannedFlow {
    PlannedFlow {
        path: path.to_vec(),
        destination,
        bytes: Bytes::new(bytes),
    }
}

fn problem(gbps: &[u64], flows: &[PlannedFlow]) -> Problem {
    Problem::new(&rates(gbps), flows).unwrap()
}

fn settings() -> TmdmlParameters {
    TmdmlParameters::default()
}

fn uniform() -> TmdmlParameters {
    TmdmlParameters {
        bottlenecks: BottleneckRule::Uniform,
        ..settings()
    }
}

/// The optimum of (2) for one slot by bisection: the only test is whether the rates of a `phi` fit.
fn bisect(problem: &Problem, weights: &[f64]) -> f64 {
    let fits = |phi: f64| {
        let rates: Vec<f64> = weights.iter().map(|weight| weight / phi).collect();
        let loads = problem.sums(&rates);
        loads
            .iter()
            .zip(problem.capacities())
            .all(|(load, capacity)| load <= capacity)
    };
    let (mut low, mut high) = (0.0, 1.0);
    while !fits(high) {
        high *= 2.0;
    }
    for _ in 0..200 {
        let middle = (low + high) / 2.0;
        if fits(middle) {
            high = middle;
        } else {
            low = middle;
        }
    }
    high
}

fn close(a: f64, b: f64, share: f64) -> bool {
    (a - b).abs() <= share * a.abs().max(b.abs())
}

#[track_caller]
fn assert_close(a: f64, b: f64, share: f64) {
    assert!(close(a, b, share), "{a} is not {b}");
}

/// Up to 12 flows over up to 6 links of 1 to 100 Gb/s, from `seed`.
fn random_problem(seed: u64) -> Problem {
    let mut stream = RandomStream::new(seed, Purpose::Test, 0);
    let links = 1 + stream.below(6);
    let gbps: Vec<u64> = (0..links)
        .map(|_| u64::from(1 + stream.below(100)))
        .collect();
    let flows: Vec<PlannedFlow> = (0..=stream.below(12))
        .map(|_| {
            let mut path: Vec<u32> = (0..links).collect();
            stream.shuffle(&mut path);
            path.truncate(1 + stream.below(links) as usize);
            let bytes = 1_000 + u64::from(stream.below(1_000_000_000));
            flow(&path, stream.below(3), bytes)
        })
        .collect();
    problem(&gbps, &flows)
}

#[test]
fn two_flows_share_a_link_by_their_sizes() {
    // n = 1 each, so k = 1/2 * 8 * (100, 300) MB = 0.4 and 1.2 Gb; 1.6 Gb over 10 Gb/s are 160 ms; rates 2.5 and 7.5 Gb/s.
    let two = problem(
        &[10],
        &[flow(&[0], 0, 100_000_000), flow(&[0], 0, 300_000_000)],
    );
    let weights = two.weights(two.bytes(), BottleneckRule::NicShare);
    assert_eq!(weights, [0.4e9, 1.2e9]);
    let least = least_rates(&two, &weights, &[0.0]);
    assert_close(least.phi, 0.16, 1e-12);
    assert_close(least.rates[0], 2.5 * GBPS, 1e-12);
    assert_close(least.rates[1], 7.5 * GBPS, 1e-12);
    // Both end when the link has carried 400 MB.
    for solver in Solver::ALL {
        let done = completion(&two, &settings(), *solver).unwrap();
        assert_close(done.finish().as_secs(), 0.32, 0.002);
    }
    let done = completion(&two, &settings(), Solver::Least).unwrap();
    assert_eq!(
        done.finishes
            .iter()
            .map(|span| span.as_ps() / 1_000_000)
            .collect::<Vec<_>>(),
        [320_000; 2]
    );
}

#[test]
fn two_links_of_which_the_second_is_slower() {
    // Flow 0 takes both links, flows 1 and 2 one each, to three servers: k = 8 * (10, 20, 5) MB.
    let flows = [
        flow(&[0, 1], 0, 10_000_000),
        flow(&[0], 1, 20_000_000),
        flow(&[1], 2, 5_000_000),
    ];
    let two = problem(&[10, 4], &flows);
    let weights = two.weights(two.bytes(), BottleneckRule::Uniform);
    // Link 0: 240 Mb over 10 Gb/s = 24 ms; link 1: 120 Mb over 4 Gb/s = 30 ms, which decides.
    assert_close(least_phi(&two, &weights), 0.030, 1e-12);
    let least = least_rates(&two, &weights, &[0.0; 2]);
    for (rate, expected) in least
        .rates
        .iter()
        .zip([80e6 / 0.03, 160e6 / 0.03, 40e6 / 0.03])
    {
        assert_close(*rate, expected, 1e-12);
    }
    // Only flow 1 can have more, until link 0 is full.
    let filled = fill(&two, &weights);
    assert_close(filled.phi, least.phi, 1e-12);
    assert_close(filled.rates[1], 10e9 - 80e6 / 0.03, 1e-12);
    assert_eq!(filled.rates[0], least.rates[0]);
    // Completion by hand: 30 ms for flows 0 and 2 in any case. Flow 1 ends with them, or filled after 160 Mb / 7.333 Gb/s = 21.8 ms.
    let least = completion(&two, &uniform(), Solver::Least).unwrap();
    let filled = completion(&two, &uniform(), Solver::Filled).unwrap();
    for (done, flow_1) in [(least, 0.030), (filled, 160e6 / (10e9 - 80e6 / 0.03))] {
        assert_close(done.finish().as_secs(), 0.030, 1e-9);
        assert_close(done.finishes[1].as_secs(), flow_1, 1e-9);
    }
}

#[test]
fn flows_that_end_with_a_slot_are_over() {
    // A fifth of 10 Gb/s is rounded down, so that 50 kB take one bit longer than a slot of 200 us, although no bytes are left.
    let flows: Vec<PlannedFlow> = (0..5).map(|worker| flow(&[worker, 5], 8, 50_000)).collect();
    let incast = problem(&[10; 6], &flows);
    let parameters = TmdmlParameters {
        slot: Span::from_us(200),
        ..settings()
    };
    let done = completion(&incast, &parameters, Solver::Least).unwrap();
    assert_eq!(done.slots, 1);
    assert_close(done.finish().as_secs(), 200e-6, 1e-8);
}

#[test]
fn an_incast_of_seven_shares_the_receivers_link_alike() {
    // TMDML §II: seven workers send VGG-16 to server 8 through 10 Gb/s links; each flow has one bottleneck.
    let flows: Vec<PlannedFlow> = (0..7).map(|worker| flow(&[worker, 7], 8, VGG16)).collect();
    let incast = problem(&[10; 8], &flows);
    assert_eq!(
        incast.bottlenecks(incast.bytes(), BottleneckRule::NicShare),
        [1; 7]
    );
    assert_eq!(
        incast.bottlenecks(incast.bytes(), BottleneckRule::LineRate),
        [1; 7]
    );
    for solver in Solver::ALL {
        let mut optimizer = Optimizer::new(&incast, &settings(), *solver).unwrap();
        let slot = optimizer.step(incast.bytes());
        for rate in &slot.allocation.rates {
            assert_close(*rate, 10.0 * GBPS / 7.0, 0.002);
        }
        // 7 * 527.8 MB * 8 / 10 Gb/s.
        let done = completion(&incast, &settings(), *solver).unwrap();
        assert_close(done.finish().as_secs(), 2.955_68, 0.002);
    }
}

#[test]
fn bottlenecks_are_links_that_are_asked_for_too_much() {
    // Links 0 to 3 are servers, 4 lies between; 0 and 1 send through 4 to 2, and 3 to 2 directly. All have 10 Gb/s.
    let flows = [
        flow(&[0, 4, 2], 2, 1_000),
        flow(&[1, 4, 2], 2, 1_000),
        flow(&[3, 2], 2, 1_000),
    ];
    let incast = problem(&[10; 5], &flows);
    // Each flow could send 10 Gb/s: links 4 and 2 have demands of 20 and 30. The receiver grants a third to each flow: link 4 has a demand
    // of 6.7.
    assert_eq!(
        incast.bottlenecks(incast.bytes(), BottleneckRule::LineRate),
        [2, 2, 1]
    );
    assert_eq!(
        incast.bottlenecks(incast.bytes(), BottleneckRule::NicShare),
        [1, 1, 1]
    );
    // When flow 0 is over, the other flows have a half each, and only one flow uses link 4.
    assert_eq!(
        incast.bottlenecks(&[0.0, 9.0, 9.0], BottleneckRule::LineRate),
        [0, 1, 1]
    );
    // Eq 1: k = n / (sum of n) * M * 8 with n = 2, 2, 1.
    assert_eq!(
        incast.weights(incast.bytes(), BottleneckRule::LineRate),
        [3200.0, 3200.0, 1600.0]
    );

    // A narrow link inside: six flows of different servers, each with a demand of 10 Gb/s, over 20 Gb/s.
    let flows: Vec<PlannedFlow> = (0..6)
        .map(|pair| flow(&[pair, 12, 6 + pair], pair, 1_000))
        .collect();
    let mut gbps = [10; 13];
    gbps[12] = 20;
    let narrow = problem(&gbps, &flows);
    assert_eq!(
        narrow.bottlenecks(narrow.bytes(), BottleneckRule::NicShare),
        [1; 6]
    );
    gbps[12] = 60;
    // A demand of sixty on sixty is not a bottleneck, but a flow without bottlenecks counts one.
    let wide = problem(&gbps, &flows);
    assert_eq!(
        wide.bottlenecks(wide.bytes(), BottleneckRule::NicShare),
        [1; 6]
    );
}

#[test]
fn a_flow_with_more_bottlenecks_gets_more_and_the_link_is_no_faster_for_it() {
    // Flow 0 crosses link 0 with flow 2 before it meets flow 1 at link 1.
    let flows = [
        flow(&[0, 1], 0, 10_000_000),
        flow(&[1], 0, 10_000_000),
        flow(&[0], 1, 1_000_000),
    ];
    let crossing = problem(&[10, 10], &flows);
    let rule = TmdmlParameters {
        bottlenecks: BottleneckRule::LineRate,
        ..settings()
    };
    assert_eq!(
        crossing.bottlenecks(crossing.bytes(), rule.bottlenecks),
        [2, 1, 1]
    );
    let slot = Optimizer::new(&crossing, &rule, Solver::Least)
        .unwrap()
        .step(crossing.bytes());
    assert_close(
        slot.allocation.rates[0] / slot.allocation.rates[1],
        2.0,
        1e-12,
    );
    // Link 1 has 160 Mb to carry and is busy all the time: 16 ms, weighted or not.
    for parameters in [rule, uniform()] {
        let done = completion(&crossing, &parameters, Solver::Least).unwrap();
        assert_close(done.finish().as_secs(), 0.016, 1e-9);
    }
}

/// `f` is the time to completion only if the flows have the same share of their destinations' bottlenecks. Minimising `f` therefore does
/// not minimise the time of the last flow.
#[test]
fn the_objective_is_not_the_time_of_the_last_flow() {
    // Flows 0 and 1 go to server 0 over link 0, flow 2 to server 1 over link 1, which flow 1 crosses on its way. Link 1 has the most to
    // carry, 22 MB, which is 17.6 ms.
    let flows = [
        flow(&[0], 0, 10_000_000),
        flow(&[1, 0], 0, 10_000_000),
        flow(&[1], 1, 12_000_000),
    ];
    let crossing = problem(&[10, 10], &flows);
    // One bottleneck each: k = 8 * (10 / 2, 10 / 2, 12) MB, and link 1 with 136 Mb decides. Flow 1 of 80 Mb gets 10 Gb/s * 40 / 136,
    // which would take 27.2 ms, while flow 2 of 96 Mb would need 13.6.
    let weights = crossing.weights(crossing.bytes(), BottleneckRule::Uniform);
    let least = least_rates(&crossing, &weights, &[0.0; 2]);
    assert_close(8e7 / least.rates[1], 0.0272, 1e-12);
    assert_close(9.6e7 / least.rates[2], 0.0136, 1e-12);

    let late = |bottlenecks: BottleneckRule, solver: Solver| {
        let parameters = TmdmlParameters {
            bottlenecks,
            slot: Span::from_us(10),
            ..settings()
        };
        let done = completion(&crossing, &parameters, solver).unwrap();
        done.finish().as_secs() / 0.0176
    };
    // With one destination each, the busiest link is never idle; see `without_weights_all_end_when_the_busiest_link_does`.
    for (rule, solver, expected) in [
        (BottleneckRule::Uniform, Solver::Least, 1.095),
        (BottleneckRule::LineRate, Solver::Least, 1.160),
        (BottleneckRule::Uniform, Solver::Filled, 1.0),
        (BottleneckRule::LineRate, Solver::Filled, 1.0),
    ] {
        let late = late(rule, solver);
        assert!(
            (late - expected).abs() < 0.002,
            "{rule:?} {solver:?} {late}"
        );
    }
}

#[test]
fn larger_v_is_nearer_the_optimum_and_queues_longer() {
    // A queue that is served at 90 % of the link. The load is the same in every slot, as if new data arrived.
    let two = problem(
        &[10],
        &[flow(&[0], 0, 50_000_000), flow(&[0], 0, 150_000_000)],
    );
    let optimum = least_phi(&two, &two.weights(two.bytes(), BottleneckRule::Uniform));
    let mut last: Option<(f64, f64)> = None;
    for v in [0.3, 1.0, 10.0, 100.0] {
        let parameters = TmdmlParameters {
            v,
            service: 0.9,
            // The objective is flat around its optimum, so the queue is only precise to the root of the tolerance.
            tolerance: 1e-5,
            ..uniform()
        };
        let run = |solver: Solver| {
            let mut optimizer = Optimizer::new(&two, &parameters, solver).unwrap();
            let slots = 400;
            let (mut phi, mut queue) = (0.0, 0.0);
            for _ in 0..slots {
                phi += optimizer.step(two.bytes()).allocation.phi / f64::from(slots);
                queue = optimizer.queues().next().unwrap();
            }
            (phi, queue)
        };
        let (phi, queue) = run(Solver::Gradient);
        let (exact_phi, exact_queue) = run(Solver::Least);
        assert_close(phi, exact_phi, 0.01);
        assert_close(queue, exact_queue, 0.05);
        if let Some((before, shorter)) = last {
            assert!(phi < before && queue > shorter, "{v}");
        }
        assert!(phi > optimum * 0.999 && phi < optimum / 0.9 * 1.01);
        last = Some((phi, queue));
        if v <= 10.0 {
            // Served at 0.9 C, the sum of rates is 0.9 C = sqrt(K V / Q) in the end, so Q = V / 0.81 slots of 1.25 MB.
            assert_close(exact_queue, v / 0.81 * 1_250_000.0, 0.02);
        }
    }
}

#[test]
fn no_queue_builds_where_ports_serve_at_the_capacity() {
    for seed in 0..50 {
        let random = random_problem(seed);
        for solver in Solver::ALL {
            let done = completion(&random, &settings(), *solver).unwrap();
            assert!(
                done.longest_queue <= Bytes::new(1),
                "{seed} {solver:?}: {}",
                done.longest_queue
            );
        }
    }
}

#[test]
fn the_ideal_all_reduce_is_that_of_the_table() {
    let models = [
        ("ResNet50", 97_700_000),
        ("AlexNet", 240_000_000),
        ("VGG-16", VGG16),
    ];
    let rate = Rate::from_gbps(10);
    let mut table = String::new();
    for (name, bytes) in models {
        let model = Bytes::new(bytes);
        let cells = [
            ideal_all_reduce(8, model, rate),
            ideal_all_reduce(128, model, rate),
            ideal_bcube_all_reduce(3, model, rate),
            ideal_bcube_all_reduce(11, model, rate),
        ];
        let cells = cells.map(|span| format!("{:.1}", span.as_secs() * 1e3));
        table += &format!("{name} {}\n", cells.join(" "));
    }
    assert_eq!(
        table,
        "ResNet50 136.8 155.1 104.2 142.1\nAlexNet 336.0 381.0 256.0 349.1\nVGG-16 738.9 837.9 563.0 767.7\n"
    );
    assert_eq!(ideal_all_reduce(1, Bytes::new(9), rate), Span::ZERO);
}

#[test]
fn what_is_no_problem_is_refused() {
    let links = rates(&[10, 10]);
    let error = |flows: &[PlannedFlow]| Problem::new(&links, flows).unwrap_err().to_string();
    assert_eq!(error(&[]), "there are no flows");
    assert_eq!(error(&[flow(&[], 0, 1)]), "flow 0 takes no link");
    assert_eq!(
        error(&[flow(&[1], 0, 1), flow(&[1, 2], 0, 1)]),
        "flow 1 takes link 2, but there are only 2 links, numbered from zero"
    );
    assert_eq!(
        error(&[flow(&[1, 0, 1], 0, 1)]),
        "flow 0 takes link 1 more than once"
    );
    assert_eq!(error(&[flow(&[1], 0, 0)]), "flow 0 has no bytes to carry");
    // A link without capacity cannot be expressed.
    assert!("0Gbps".parse::<Rate>().is_err());
}

#[test]
fn settings_out_of_range_are_refused() {
    let one = problem(&[10], &[flow(&[0], 0, 1_000)]);
    let error = |parameters: TmdmlParameters| {
        Optimizer::new(&one, &parameters, Solver::Gradient)
            .unwrap_err()
            .to_string()
    };
    assert_eq!(
        error(TmdmlParameters {
            slot: Span::ZERO,
            ..settings()
        }),
        "`slot`: expected a duration above zero"
    );
    assert_eq!(
        error(TmdmlParameters {
            v: 0.0,
            ..settings()
        }),
        "`v`: expected a number above zero"
    );
    assert_eq!(
        error(TmdmlParameters {
            service: 1.5,
            ..settings()
        }),
        "`service`: expected a number above 0, at most 1"
    );
    for key in ["rate-step", "time-step", "capacity-step", "tolerance"] {
        let mut parameters = settings();
        parameters
            .set(key, &clearway_units::Value::Float(1.0))
            .unwrap();
        assert_eq!(
            error(parameters),
            format!("`{key}`: expected a number above 0 and below 1")
        );
    }
    assert_eq!(
        error(TmdmlParameters {
            min_rate: Rate::from_gbps(11),
            ..settings()
        }),
        "`min-rate`: the 1 flows of link 0 exceed its capacity even at this rate"
    );
}

#[test]
fn nothing_left_sends_nothing_and_drains_the_queue() {
    let two = problem(&[10], &[flow(&[0], 0, 5_000_000), flow(&[0], 0, 5_000_000)]);
    let parameters = TmdmlParameters {
        service: 0.5,
        ..uniform()
    };
    let mut optimizer = Optimizer::new(&two, &parameters, Solver::Least).unwrap();
    optimizer.step(two.bytes());
    // 10 Gb/s arrived for 1 ms, and half of the bits were served.
    assert_close(optimizer.queues().next().unwrap(), 625_000.0, 1e-9);
    let slot = optimizer.step(&[0.0, 0.0]);
    assert_eq!(
        (slot.allocation.phi, slot.allocation.rates),
        (0.0, vec![0.0, 0.0])
    );
    assert_eq!(optimizer.queues().next().unwrap(), 0.0);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn the_closed_form_is_what_bisection_finds(seed in any::<u64>()) {
        let random = random_problem(seed);
        for rule in BottleneckRule::ALL {
            let weights = random.weights(random.bytes(), *rule);
            let phi = bisect(&random, &weights);
            prop_assert!(close(least_phi(&random, &weights), phi, 1e-12));
            prop_assert!(close(fill(&random, &weights).phi, phi, 1e-9));
        }
    }

    #[test]
    fn algorithm_1_finds_the_optimum(seed in any::<u64>(), rule in 0..3usize) {
        let random = random_problem(seed);
        let parameters = TmdmlParameters { bottlenecks: BottleneckRule::ALL[rule], ..settings() };
        let weights = random.weights(random.bytes(), parameters.bottlenecks);
        let slot = Optimizer::new(&random, &parameters, Solver::Gradient).unwrap().step(random.bytes());
        let phi = bisect(&random, &weights);
        prop_assert!(slot.gap <= parameters.tolerance, "{} after {}", slot.gap, slot.iterations);
        prop_assert!(slot.allocation.phi >= phi * 0.999_999_999);
        prop_assert!(slot.allocation.phi <= phi * 1.001_1);
        // No link carries more than its capacity.
        for (load, capacity) in random.sums(&slot.allocation.rates).iter().zip(random.capacities()) {
            prop_assert!(*load <= capacity * (1.0 + 1e-12));
        }
    }

    #[test]
    fn algorithm_1_minds_its_queues_as_the_closed_form_does(seed in any::<u64>(), v in 0.05f64..20.0) {
        let random = random_problem(seed);
        let parameters = TmdmlParameters { v, service: 0.8, ..uniform() };
        let mut gradient = Optimizer::new(&random, &parameters, Solver::Gradient).unwrap();
        for _ in 0..20 {
            let before = gradient.clone();
            let slot = gradient.step(random.bytes());
            prop_assert!(slot.gap <= parameters.tolerance, "{} after {}", slot.gap, slot.iterations);
            let exact = before.closed_form(random.bytes());
            // Equal objectives allow different phis where the optimum is flat: of the order of the root of the tolerance.
            prop_assert!(close(slot.allocation.phi, exact.phi, 0.1), "{} {}", slot.allocation.phi, exact.phi);
        }
    }

    #[test]
    fn fairest_rates_fill_a_link_for_every_flow(seed in any::<u64>()) {
        let random = random_problem(seed);
        let weights = random.weights(random.bytes(), BottleneckRule::LineRate);
        let filled = fill(&random, &weights);
        let loads = random.sums(&filled.rates);
        let is_full = |link: u32| loads[link as usize] >= random.capacities()[link as usize] * (1.0 - 1e-9);
        let f = |flow: usize| weights[flow] / filled.rates[flow];
        for flow in 0..random.flow_count() {
            // Max-min: on some full link of its path, no other flow has a smaller f.
            let justified = random.path(flow).iter().any(|&link| {
                is_full(link)
                    && (0..random.flow_count())
                        .filter(|&other| random.path(other).contains(&link))
                        .all(|other| f(other) >= f(flow) * (1.0 - 1e-9))
            });
            prop_assert!(justified, "flow {flow}");
        }
        for (load, capacity) in loads.iter().zip(random.capacities()) {
            prop_assert!(*load <= capacity * (1.0 + 1e-9));
        }
    }

    #[test]
    fn without_weights_all_end_when_the_busiest_link_does(seed in any::<u64>()) {
        // Each flow has its own destination; otherwise the numbers of flows per destination would act as weights.
        let random = random_problem(seed);
        let flows: Vec<PlannedFlow> = (0..random.flow_count())
            .map(|i| flow(random.path(i), i as u32, random.bytes()[i] as u64))
            .collect();
        let links: Vec<Rate> = random.capacities().iter().map(|&bps| Rate::from_bps(bps as u64)).collect();
        let own = Problem::new(&links, &flows).unwrap();
        let bits: Vec<f64> = own.bytes().iter().map(|bytes| bytes * 8.0).collect();
        let busiest = least_phi(&own, &bits);
        let done = completion(&own, &uniform(), Solver::Least).unwrap();
        prop_assert!(close(done.finish().as_secs(), busiest, 1e-6), "{} {busiest}", done.finish());
    }

    #[test]
    fn nothing_ends_before_the_busiest_link_can(seed in any::<u64>(), rule in 0..3usize, solver in 0..3usize) {
        let random = random_problem(seed);
        let parameters = TmdmlParameters { bottlenecks: BottleneckRule::ALL[rule], slot: Span::from_ms(20), ..settings() };
        let bits: Vec<f64> = random.bytes().iter().map(|bytes| bytes * 8.0).collect();
        let done = completion(&random, &parameters, Solver::ALL[solver]).unwrap();
        prop_assert!(done.finish().as_secs() >= least_phi(&random, &bits) * (1.0 - 1e-9));
    }
}
