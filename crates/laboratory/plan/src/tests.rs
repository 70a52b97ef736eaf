use super::*;
use clearway_lab::RunProgress;
use clearway_units::Span;

fn planned(name: &str) -> (JobsFile, Placed) {
    let file = JobsFile::load(name).expect("a built-in plan");
    let placed = file.plan().expect("a plan");
    (file, placed)
}

#[test]
fn built_in_plans_say_what_the_paper_says() {
    let (file, placed) = planned("vgg-pair");
    assert_eq!(placed.plan.verdict(), CompatibilityVerdict::Compatible);
    assert_eq!(placed.plan.jobs[1].shift.to_string(), "114ms");
    assert_eq!(file.reasons(&placed), Vec::<String>::new());

    let (file, placed) = planned("table-1");
    let verdicts: Vec<(&str, bool)> = placed
        .plan
        .resources
        .iter()
        .map(|planned| {
            (
                file.resource_name(planned.resource),
                planned.is_compatible(),
            )
        })
        .collect();
    assert_eq!(
        verdicts,
        [
            ("group-1", false),
            ("group-2", true),
            ("group-3", false),
            ("group-4", true),
            ("group-5", true)
        ]
    );
    let reasons = file.reasons(&placed);
    assert!(
        reasons[0].starts_with("`group-3`: 511ms of 605ms collide; its jobs ask for 183.8 % of it"),
        "{reasons:#?}"
    );
    let dlrm = reasons.iter().find(|line| line.contains("DLRM-a"));
    assert_eq!(
        dlrm.map(String::as_str),
        Some(
            "`DLRM-a` begins an iteration every 1.019s instead of 1.001s (+1.8 %), so that iterations repeat together"
        )
    );

    let (file, placed) = planned("two-racks");
    assert_eq!(placed.plan.verdict(), CompatibilityVerdict::Compatible);
    let reasons = file.reasons(&placed);
    assert!(
        reasons[0].starts_with("`GPT-b` moves to placement `rack 2`: if it alone stayed"),
        "{reasons:#?}"
    );
    assert_eq!(reasons.len(), 3, "{reasons:#?}");
}

#[test]
fn collisions_are_explained() {
    let text = "[plan]\ntolerance = 0.0\n[[link]]\nname = \"L\"\n\
        [[job]]\nname = \"A\"\ncompute = \"20ms\"\ncommunication = \"20ms\"\nlinks = [\"L\"]\n\
        [[job]]\nname = \"B\"\ncompute = \"50ms\"\ncommunication = \"10ms\"\nlinks = [\"L\"]\n";
    let file = JobsFile::read("x.toml", text).expect("jobs");
    let placed = file.plan().expect("a plan");
    assert_eq!(
        file.reasons(&placed),
        [
            "`L`: 10ms of 120ms collide; `A` and `B` meet in every distance within 20ms, where 20ms and 10ms do not fit"
        ]
    );
}

#[test]
fn what_cannot_be_meant_is_refused_with_place_and_fix() {
    let job = "[[job]]\nname = \"A\"\n";
    let link = "[[link]]\nname = \"L1\"\nrate = \"50Gbps\"\n";
    let whole = "compute = \"5ms\"\ncommunication = \"50ms\"\n";
    for (text, message) in [
        (
            String::new(),
            "x.toml: there are no jobs\n  fix: write `[[job]]`, and below it a name, `compute`, `communication` and `links`",
        ),
        (
            "[[jop]]\nname = \"A\"\n".into(),
            "x.toml:1: there is no section `jop`\n  fix: did you mean `job`? The sections are: plan, link, job, placement",
        ),
        (
            format!("{link}[[job]]\n{whole}links = [\"L1\"]\n"),
            "x.toml:5: job 1 has no name\n  fix: write `name = \"…\"` into it",
        ),
        (
            format!("{link}{job}{whole}links = [\"L2\"]\n"),
            "x.toml:8: there is no link `L2`\n  fix: did you mean `L1`? The links are: L1",
        ),
        (
            format!("{link}{job}{whole}{job}{whole}"),
            "x.toml:9: there are two jobs called `A`\n  fix: rename one of them",
        ),
        (
            format!("{job}{whole}linsk = [\"L1\"]\n"),
            "x.toml:5: a job has no key `linsk`\n  fix: did you mean `links`? The keys are: arcs, communication, compute, compute-arcs, demand, gpus, hosts, links, name, period",
        ),
        (
            format!("{job}compute = \"5ms\"\n"),
            "x.toml:3: job `A` has only one of `compute` and `communication`\n  fix: give both: an iteration is one after the other",
        ),
        (
            format!("{job}links = []\n"),
            "x.toml:2: job `A` does not say how long an iteration takes\n  fix: give `compute` and `communication`, such as \"141ms\" and \"114ms\", or `period` and `arcs`",
        ),
        (
            format!("{job}period = \"10ms\"\narcs = [\"1ms..11ms\"]\n"),
            "x.toml:4: job `A`: communication phase 1 ends at 11ms, after the iteration of 10ms\n  fix: lengthen the period, or cut the phase in two where the next iteration begins",
        ),
        (
            format!("{job}period = \"10ms\"\narcs = [\"8ms..2ms\"]\n"),
            "x.toml:4: job `A` has an arc that ends at 2ms, before it begins\n  fix: cut an arc that goes past the end of the iteration in two: one to the end, one from 0s",
        ),
        (
            format!("{job}period = \"18446744s\"\narcs = [\"1ms..18446743s\"]\n"),
            "x.toml:3: job `A`: `period` takes until 18446744s\n  fix: use at most 2592000s (30 days)",
        ),
        (
            format!(
                "{job}compute = \"18446744s\"\ncommunication = \"18446744s\"\nperiod = \"1ms\"\n"
            ),
            "x.toml:3: job `A`: `compute` takes until 18446744s\n  fix: use at most 2592000s (30 days)",
        ),
        (
            format!("{job}compute = \"1500000s\"\ncommunication = \"1500000s\"\n"),
            "x.toml:4: job `A`: `communication` takes until 3000000s\n  fix: use at most 2592000s (30 days)",
        ),
        (
            format!("{job}period = \"1ms\"\narcs = [\"1s..2s\", \"1s..3000000s\"]\n"),
            "x.toml:4: job `A`: `arcs` takes until 3000000s\n  fix: use at most 2592000s (30 days)",
        ),
        (
            format!("[plan]\ngrid = \"3000000s\"\n{job}{whole}"),
            "x.toml:2: `plan.grid` = 3000000s is too long\n  fix: use at most 2592000s (30 days)",
        ),
        (
            format!("{job}period = \"0s\"\n"),
            "x.toml:3: job `A`: an iteration takes no time\n  fix: give the time that it takes alone, such as \"255ms\"",
        ),
        (
            format!("{link}{job}{whole}demand = \"80Gbps\"\nlinks = [\"L1\"]\n"),
            "x.toml:8: job `A` asks for 80Gbps of link `L1`, which has 50Gbps\n  fix: lower the demand and lengthen the communication, or raise the link's `rate`",
        ),
        (
            format!("{link}{job}{whole}demand = 1.5\n"),
            "x.toml:8: `demand` cannot be 1.5\n  fix: expected a share above 0 and at most 1, such as `0.5`, or a rate such as \"25Gbps\"",
        ),
        (
            format!("{link}{job}{whole}links = [\"L1\", \"L1\"]\n"),
            "x.toml:8: `links` has `L1` twice\n  fix: name each once: `demand` is the share that a job uses",
        ),
        (
            format!("{link}{job}period = \"10ms\"\nlinks = [\"L1\"]\n"),
            "x.toml:7: job `A` has links, but never communicates\n  fix: give `arcs`, such as [\"141ms..255ms\"]",
        ),
        (
            format!("{job}{whole}[[placement]]\njob = \"B\"\n"),
            "x.toml:6: there is no job `B`\n  fix: the jobs are: A",
        ),
        (
            format!("[plan]\ngrid = \"0s\"\n{job}{whole}"),
            "x.toml:2: `plan.grid`: a grid of no length\n  fix: give a duration such as \"1ms\"",
        ),
    ] {
        let error = JobsFile::read("x.toml", &text)
            .expect_err(message)
            .to_string();
        assert!(error.starts_with(message), "{error}\ninstead of\n{message}");
    }
    let short = format!(
        "{link}{job}compute = \"2ms\"\ncommunication = \"3ms\"\nlinks = [\"L1\"]\n[[job]]\nname = \"B\"\n{whole}links = [\"L1\"]\n"
    );
    let file = JobsFile::read("x.toml", &short).expect("jobs");
    assert_eq!(
        file.plan().expect_err("too short").to_string(),
        "x.toml:6: job `A`: an iteration of 5ms has fewer than 10 steps of 1ms\n  fix: set `grid` to 50us or less"
    );
    let error = JobsFile::load("vgg-pai").expect_err("no such plan");
    assert_eq!(
        error.to_string(),
        "vgg-pai: there is no such file or built-in plan\n  fix: did you mean `vgg-pair`? Give the path of a TOML file or a built-in plan: vgg-pair, dumbbell-pair, table-1, two-racks"
    );
}

const PAIR: &str = include_str!("../plans/dumbbell-pair.toml");

fn options(
    iterations: u32,
    on_progress: &mut dyn FnMut(&str, RunProgress) -> clearway_fabric::RunDecision,
) -> TrialOptions<'_> {
    TrialOptions {
        iterations,
        threads: 1.into(),
        on_progress,
    }
}

#[test]
fn jobs_load_the_links_of_their_routes() {
    let leaves = "[topology]\nkind = \"leaf-spine\"\nhosts = 8\nhosts-per-leaf = 2\nspines = 1\nlink-rate = \"100Gbps\"\n[transport]\nkind = \"rocev2\"\n";
    let job = |name: &str, hosts: &str| {
        format!(
            "[[job]]\nname = \"{name}\"\ncompute = \"10ms\"\ncommunication = \"5ms\"\nhosts = {hosts}\n"
        )
    };
    // A ring over three leaves, a ring over two of these leaves, and a ring within a leaf, which does not share links.
    let text = format!(
        "{leaves}{}{}{}",
        job("A", "[0, 2, 4]"),
        job("B", "[3, 5]"),
        job("C", "[6, 7]")
    );
    let file = JobsFile::read("x.toml", &text).expect("jobs");
    assert_eq!(
        file.links,
        [
            "leaf1-spine0",
            "spine0-leaf1",
            "leaf2-spine0",
            "spine0-leaf2"
        ]
    );
    let placed = file.plan().expect("a plan");
    assert_eq!(placed.plan.verdict(), CompatibilityVerdict::Compatible);
    assert!(placed.plan.jobs[1].shift >= Span::from_ms(5));
    assert_eq!(placed.plan.jobs[2].circle, None);
    // Another placement for B.
    let elsewhere = format!("{text}[[placement]]\njob = \"B\"\nhosts = [1, 3]\n");
    let file = JobsFile::read("x.toml", &elsewhere).expect("jobs");
    let links: Vec<&str> = file.links.iter().map(String::as_str).collect();
    assert!(links.contains(&"leaf0-spine0") && links.contains(&"leaf2-spine0"));
    // Hosts with half the rate of a shared link load half of the link.
    let slow = text.replace(
        "link-rate = \"100Gbps\"\n",
        "link-rate = \"50Gbps\"\nfabric-link-rate = \"100Gbps\"\n",
    );
    let file = JobsFile::read("x.toml", &slow).expect("jobs");
    assert_eq!(file.links[0], "leaf1-spine0");
    let shares = file.problem.shares(0, 0, Resource::Link(0));
    assert_eq!(shares, [Share::new(0.5).expect("a share")]);
}

#[test]
fn networks_that_make_no_sense_are_refused() {
    let network = "[topology]\nkind = \"dumbbell\"\nleft = 2\nright = 2\n";
    let times = "compute = \"1ms\"\ncommunication = \"1ms\"\n";
    for (text, message) in [
        (
            format!("[[job]]\nname = \"A\"\n{times}hosts = [0, 2]\n"),
            "x.toml:5: hosts, but no network that they are in\n  fix: describe it under `[topology]`, or name the `links` that the job loads",
        ),
        (
            format!("[[job]]\nname = \"A\"\n{times}workload.size = \"1MB\"\n"),
            "x.toml:5: `workload.size`, but no network to send over\n  fix: describe it under `[topology]`, and give the job `hosts`",
        ),
        (
            format!("{network}[[job]]\nname = \"A\"\n{times}links = [\"L1\"]\nhosts = [0, 1]\n"),
            "x.toml:9: links by name, but the routes of the network determine the links that a job loads\n  fix: write `hosts`, a list of one for each rank, instead of `links`",
        ),
        (
            format!(
                "{network}[[link]]\nname = \"L1\"\n[[job]]\nname = \"A\"\n{times}hosts = [0, 1]\n"
            ),
            "x.toml:6: link `L1`, but the network already has links\n  fix: leave out `[[link]]`, or the sections of the network",
        ),
        (
            format!("{network}[[job]]\nname = \"A\"\n{times}"),
            "x.toml:6: less than two hosts\n  fix: write `hosts = [0, 1]`: one for each rank",
        ),
        (
            format!("{network}[[job]]\nname = \"A\"\n{times}hosts = [0, 9]\n"),
            "x.toml:9: `hosts` of the ring-all-reduce workload: host 9, but the topology has 4 hosts\n  fix: hosts are numbered from 0",
        ),
        (
            format!("{network}[[job]]\nname = \"A\"\ncompute = \"1ms\"\nhosts = [0, 2]\n"),
            "x.toml:7: job `A` does not say for how long it communicates\n  fix: give `communication`, or what its collective moves: `workload.size = \"1GB\"`",
        ),
        (
            format!("{network}[[job]]\nname = \"A\"\n{times}hosts = [0, 2]\nworkload.buckts = 4\n"),
            "x.toml:10: a workload of kind \"ring-all-reduce\" has no key `buckts`\n  fix: did you mean `buckets`?",
        ),
        (
            format!(
                "{network}[[job]]\nname = \"A\"\n{times}hosts = [0, 2]\nworkload.iterations = 4\n"
            ),
            "x.toml:10: `workload.iterations` is not a key of a job\n  fix: leave it out: `--iterations` says how many are simulated",
        ),
        (
            format!(
                "{network}[[job]]\nname = \"A\"\n{times}hosts = [0, 2]\n[[placement]]\njob = \"A\"\nhosts = [0, 1, 2]\n"
            ),
            "x.toml:12: 3 hosts for the 2 ranks of `A`\n  fix: name as many",
        ),
    ] {
        let error = JobsFile::read("x.toml", &text)
            .expect_err(message)
            .to_string();
        assert!(error.starts_with(message), "{error}\ninstead of\n{message}");
    }
    let file = JobsFile::load("vgg-pair").expect("a built-in plan");
    let placed = file.plan().expect("a plan");
    let error = file.simulate(
        &placed,
        &mut options(3, &mut |_, _| clearway_fabric::RunDecision::Continue),
    );
    assert_eq!(
        error.expect_err("no network").to_string(),
        "vgg-pair: no network to simulate the jobs on\n  fix: describe it under `[topology]`, and give each job `hosts` instead of `links`"
    );
}

#[test]
fn profiles_are_measured() {
    let near = |span: Span, us: f64| (span.as_us() - us).abs() < 60.0;
    let go_on = &mut |_: &str, _| clearway_fabric::RunDecision::Continue;
    let buckets = "workload = { size = \"20MB\", buckets = 2, overlap = 0.5 }\n";
    let text = PAIR.replace(
        "communication = \"11400us\"\nhosts = [1, 3]\n",
        &format!("hosts = [1, 3]\n{buckets}"),
    );
    let file = JobsFile::read("x.toml", &text).expect("jobs");
    let measured = file
        .profiled(&mut options(3, go_on))
        .expect("a network")
        .expect("not stopped");
    let phases = |job: usize| {
        measured.problem.jobs()[job]
            .profile
            .phases(PhaseKind::Communication)
            .to_vec()
    };
    let [first] = phases(0)[..] else {
        panic!("one phase: {:?}", phases(0))
    };
    // The job computes for 14.1 ms, then sends for 11.4 ms at link rate, plus the overhead of DCQCN.
    assert!(near(first.start, 14_100.0), "{first:?}");
    assert!(
        (11_400..12_500).contains(&(first.length.as_us() as u64)),
        "{first:?}"
    );
    assert!(matches!(first.demand, Demand::Share(share) if share.as_f64() > 0.9));
    // Half of the gradients are ready after three quarters of the computation, and are sent before the other half.
    let second = phases(1);
    assert_eq!(second.len(), 2, "{second:?}");
    assert!(near(second[0].start, 10_575.0));
    assert!(near(second[1].start, 14_100.0));
    let stopped = file.profiled(&mut options(3, &mut |_, _| {
        clearway_fabric::RunDecision::Stop
    }));
    assert!(stopped.expect("a network").is_none());
}

#[test]
fn simulated_jobs_do_what_the_plan_says() {
    let file = JobsFile::read("x.toml", PAIR).expect("jobs");
    let placed = file.plan().expect("a plan");
    let go_on = &mut |_: &str, _| clearway_fabric::RunDecision::Continue;
    let trials = file
        .simulate(&placed, &mut options(8, go_on))
        .expect("a network");
    assert!(!trials.interrupted && trials.left_out.is_empty());
    let us = |span: Option<Span>| span.expect("iterations are over").as_us();
    for &alone in &trials.alone {
        assert!((us(alone) / 25_500.0 - 1.0).abs() < 0.002, "{alone:?}");
    }
    let of = |mechanism| {
        trials
            .trials
            .iter()
            .find(|trial| trial.mechanism == mechanism)
            .expect("all")
    };
    let fair = of(Mechanism::Fair);
    let mean = (us(fair.means[0]) + us(fair.means[1])) / 2.0;
    let predicted = us(fair.predicted[0]);
    assert!((mean / predicted - 1.0).abs() < 0.08, "{mean} {predicted}");
    let shifted = of(Mechanism::Shifted);
    for job in 0..2 {
        let [simulated, predicted] = [shifted.simulated[job], shifted.predicted[job]].map(us);
        assert!(
            (simulated / predicted - 1.0).abs() < 0.01,
            "{simulated} {predicted}"
        );
        assert!(simulated * 1.3 < mean, "{simulated} {mean}");
    }
    // A transport that has neither key.
    let other = PAIR.replace(
        "kind = \"rocev2\"",
        "kind = \"rocev2\"\ncontroller = \"dctcp\"",
    );
    let other: Vec<&str> = other
        .lines()
        .filter(|line| {
            !["rate-timer", "alpha-timer", "cnp-", "byte-"]
                .iter()
                .any(|key| line.starts_with(key))
        })
        .collect();
    let file = JobsFile::read("x.toml", &other.join("\n")).expect("jobs");
    let trials = file
        .simulate(&placed, &mut options(3, go_on))
        .expect("a network");
    let left_out: Vec<(Mechanism, &str)> = trials
        .left_out
        .iter()
        .map(|(left, why)| (*left, why.as_str()))
        .collect();
    assert_eq!(
        left_out,
        [
            (Mechanism::Timers, "the controller has no `rate-timer`"),
            (
                Mechanism::Adaptive,
                "the controller has no `phase-increase`"
            )
        ]
    );
}
