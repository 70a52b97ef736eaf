use super::definition::OverSeeds;
use super::*;
use clearway_fabric::{RunDecision, RunProgress};
use clearway_lab::Laboratory;
use std::sync::atomic::{AtomicU32, Ordering};

/// Watcher that lets all runs finish, or stops them after some rounds.
pub(super) struct Quiet {
    rounds: AtomicU32,
    limit: u32,
}

impl Quiet {
    pub(super) fn with_limit(limit: u32) -> Self {
        Self {
            rounds: AtomicU32::new(0),
            limit,
        }
    }
}

impl ProgressWatcher for Quiet {
    fn on_round(&self, _: usize, _: &RunProgress) -> RunDecision {
        match self.rounds.fetch_add(1, Ordering::Relaxed) < self.limit {
            true => RunDecision::Continue,
            false => RunDecision::Stop,
        }
    }
    fn on_run(&self, _: &str, _: usize, _: usize) {}
}

#[test]
fn recorded_verdicts_are_those_of_the_figures() {
    for line in VERDICTS.lines() {
        let id = line.split(' ').next().unwrap_or_default();
        assert!(figure(id).is_some(), "{line}");
        let of_scale = |scale: Scale| line.contains(&format!(" {} ", scale.name()));
        let scale = Scale::ALL.into_iter().find(|scale| of_scale(*scale));
        let record = recorded(id, scale.expect("a scale")).expect("six words");
        let state = if record.stale { "stale" } else { "current" };
        let counts = format!(
            " {} {} {} {state}",
            record.passed, record.missed, record.unsure
        );
        assert!(line.ends_with(&counts), "{line}");
    }
    assert_eq!(recorded("strack/fig99", Scale::Small), None);
}

#[test]
fn all_claim_files_are_sound_and_their_scenarios_can_be_read() {
    let laboratory = Laboratory::new();
    for id in figure_ids() {
        let figure = figure(id).expect("it is listed");
        assert!(!figure.claims.is_empty(), "{id}");
        for scale in Scale::ALL {
            let runs = figure.runs(scale);
            assert!(runs.iter().any(|run| run.needs.is_none()), "{id}");
            for run in runs.iter().filter(|run| run.needs.is_none()) {
                if let Some(plan) = &run.plan {
                    let file = plans::jobs_file(id, plan, 1);
                    assert!(file.is_ok(), "{id}: {file:?}");
                    continue;
                }
                let settings = figure.settings_of(scale, run, 1);
                let scenario = laboratory.read_any(id, "", None, &settings);
                assert!(scenario.is_ok(), "{id}: {scenario:?}");
            }
            let seeds = figure.scales[scale as usize].seeds;
            assert!(seeds >= 3, "{id}: a median needs three seeds");
        }
    }
}

#[test]
fn full_scale_has_the_sizes_of_the_strack_paper() {
    let sizes = ["4KB", "128KB", "512KB", "2MB", "16MB", "64MB", "100MB"];
    for id in [
        "strack/fig9",
        "strack/fig12",
        "strack/fig14",
        "strack/fig19",
    ] {
        let figure = figure(id).unwrap();
        let axis = figure.axis("message").unwrap();
        let labels: Vec<&str> = axis.values[Scale::Full as usize]
            .iter()
            .map(|value| value.label.as_str())
            .collect();
        assert_eq!(labels, sizes, "{id}");
    }
}

const TINY: &str = r#"
title = "Two sizes of incast"
source = "nowhere"
setup = "hosts on one switch send to one"

[base]
topology.kind = "single-switch"
workload.kind = "incast"
workload.senders = 4
workload.message = "400KB"

[record]
queue = "1us"
losses = "1us"
goodput = { flows = 2, bin = "5us" }
acks = 4

[small]
base.topology.hosts = 5
[full]
base.topology.hosts = 9

[[axes]]
name = "spray"
key = "transport.spray"
values = ["adaptive", "oblivious"]

[[axes]]
name = "message"
small = [{ label = "short", set = { workload.message = "4KB" } }, { label = "long", set = { workload.message = "400KB" } }]
full = [{ label = "long", set = { workload.message = "400KB" } }, { label = "huge", set = { workload.message = "4MB" } }]

[[axes]]
name = "transport"
values = [{ label = "strack" }, { label = "roce", needs = "RoCEv2" }]

[[claims]]
id = "bottleneck"
paper = "4 senders take at least 4 times as long as their payload"
source = "arithmetic"
expect = "max_fct(adaptive, strack, message) / (4 * payload_us(adaptive, strack, message)) >= 1"

[[claims]]
id = "wrong"
paper = "nothing is ever queued"
source = "arithmetic"
expect = "queue_peak_us(adaptive, strack, long) <= 0 and drops(adaptive, strack, long) <= 1e9"

[[claims]]
id = "one-path"
paper = "on one path all spraying is alike"
source = "arithmetic"
expect = "smallest(spray, max_fct(spray, strack, short)) >= largest(spray, max_fct(spray, strack, short))"
scale = "small"

[[claims]]
id = "later"
paper = "other transports exist"
source = "arithmetic"
expect = "max_fct(adaptive, roce, long) / max_fct(adaptive, strack, long) > 0"

[[claims]]
id = "much-later"
paper = "other transports have measures of their own"
source = "arithmetic"
expect = "pauses(adaptive, roce, long) > 0"
needs = "RoCEv2"

[[claims]]
id = "large"
paper = "huge messages take long"
source = "arithmetic"
expect = "max_fct(adaptive, strack, huge) > 1"

[[claims]]
id = "no-value"
paper = "the queue stays empty to the end"
source = "arithmetic"
expect = "queue_settled_us(adaptive, strack, long, low=30us, high=31us) >= 0"
"#;

pub(super) fn small(seeds: Option<u64>) -> FigureRequest {
    FigureRequest {
        scale: Scale::Small,
        seeds,
        changes: Vec::new(),
        null: None,
    }
}

fn tiny() -> Figure {
    Figure::read("test/tiny", &TINY.replace("1e9", "1000000000")).unwrap()
}

#[test]
fn a_figure_is_run_and_judged() {
    let figure = tiny();
    let mut reproducer = Reproducer::new(Laboratory::new(), 1);
    let outcome = reproducer
        .reproduce(&figure, &small(None), &Quiet::with_limit(u32::MAX))
        .unwrap();
    assert!(outcome.complete);
    assert_eq!(outcome.seeds, [1, 2, 3]);
    assert_eq!(outcome.runs.len(), 2 * 2 * 3);
    let verdicts: Vec<(&str, &ClaimVerdict)> = outcome
        .claims
        .iter()
        .map(|claim| (claim.id.as_str(), &claim.verdict))
        .collect();
    let needs = ClaimVerdict::NotYet("RoCEv2".into());
    assert_eq!(
        verdicts,
        [
            ("bottleneck", &ClaimVerdict::Pass),
            ("wrong", &ClaimVerdict::Miss),
            ("one-path", &ClaimVerdict::Pass),
            ("later", &needs),
            ("much-later", &needs),
            ("large", &ClaimVerdict::OtherScale),
            ("no-value", &ClaimVerdict::Miss),
        ]
    );
    let tally = outcome.tally();
    assert_eq!(
        (tally.passed, tally.missed, tally.not_yet, tally.other_scale),
        (2, 2, 2, 1)
    );
    let bottleneck = &outcome.claims[0].judgements;
    let at: Vec<_> = bottleneck
        .iter()
        .map(|j| j.at.as_deref().unwrap())
        .collect();
    assert_eq!(at, ["short", "long"]);
    let silent = &outcome.claims[6].judgements[0];
    assert_eq!(
        (silent.measured, silent.reason.as_deref()),
        (None, Some("queue_settled_us: the queue does not settle"))
    );
    let first = &outcome.runs[0];
    assert_eq!(first.labels["message"], "short");
    // One packet of 4000 B and 64 B of headers behind three others, over links of 2 us.
    let expected = 8.0 + (5.0 * 4064.0 + 2.0 * 64.0) * 8.0 / 400e3;
    assert!((first.measures["fct-max"] - expected).abs() < 1e-9);
    assert!(
        first
            .curves
            .iter()
            .any(|curve| curve.name == "queue mean, us")
    );
    assert!(outcome.runs[1].curves.is_empty(), "of the first seed only");
}

#[test]
fn threads_change_nothing_and_interrupts_are_said() {
    let figure = tiny();
    let run = |threads, limit| {
        Reproducer::new(Laboratory::new(), threads)
            .reproduce(&figure, &small(Some(2)), &Quiet::with_limit(limit))
            .unwrap()
    };
    let whole = run(1, u32::MAX);
    assert_eq!(run(3, u32::MAX), whole);
    let part = run(1, 60);
    assert!(!part.complete && part.runs.len() < whole.runs.len());
    let not_run = |claim: &ClaimOutcome| claim.verdict == ClaimVerdict::NotRun;
    assert!(part.claims.iter().any(not_run));
}

#[test]
fn runs_that_figures_share_are_run_once() {
    let figure = tiny();
    let mut reproducer = Reproducer::new(Laboratory::new(), 1);
    let counted = |reproducer: &mut Reproducer, seeds| {
        let watcher = Quiet::with_limit(u32::MAX);
        let outcome = reproducer.reproduce(&figure, &small(Some(seeds)), &watcher);
        (outcome.unwrap(), watcher.rounds.into_inner())
    };
    let (first, rounds) = counted(&mut reproducer, 1);
    assert!(rounds > 0);
    assert_eq!(counted(&mut reproducer, 1), (first, 0));
}

#[test]
fn seeds_are_made_one_number() {
    let of = |values: &[f64]| {
        [OverSeeds::Median, OverSeeds::Max, OverSeeds::Min].map(|over| over.combine(values))
    };
    assert_eq!(of(&[3.0, 1.0, 2.0]), [2.0, 3.0, 1.0]);
    assert_eq!(of(&[4.0, 1.0]), [2.5, 4.0, 1.0]);
    assert!(of(&[1.0, f64::NAN]).iter().all(|value| value.is_nan()));
    assert!(of(&[])[0].is_nan());
}

#[test]
fn faults_name_the_file_and_the_claim() {
    let expect = "expect = \"pauses(adaptive, roce, long) > 0\"\nneeds = \"RoCEv2\"";
    let with = |rule: &str| TINY.replace(expect, &format!("expect = \"{rule}\""));
    for (rule, message) in [
        ("1 <", "expected a number, a measure or `(` at character 4"),
        (
            "max_fcd(adaptive, strack, long) > 0",
            "there is no measure `max_fcd`; did you mean `max_fct`?",
        ),
        (
            "max_fct(adaptive, strack) > 0",
            "no label of the axis `message`",
        ),
        (
            "max_fct(adaptive, strack, tiny) > 0",
            "no axis has a label `tiny`",
        ),
        (
            "max_fct(adaptive, oblivious, strack, long) > 0",
            "two labels of the axis `spray`",
        ),
        (
            "jain(adaptive, strack, long, form=1ms) > 0",
            "`jain` has no option `form`; it has: from, to",
        ),
        (
            "jain(adaptive, strack, long, from=soon) > 0",
            "option `from` of `jain` cannot be `soon`",
        ),
        ("largest(size, 1) > 0", "there is no axis `size`"),
    ] {
        let text = with(rule).replace("1e9", "1000000000");
        let error = Figure::read("test/tiny", &text).expect_err(rule);
        assert_eq!(
            error,
            format!("test/tiny.toml: claim `much-later`: {message}")
        );
    }
    let no_record = TINY
        .replace("1e9", "1000000000")
        .replace("queue = \"1us\"", "");
    assert_eq!(
        Figure::read("test/tiny", &no_record).unwrap_err(),
        "test/tiny.toml: claim `wrong`: `queue_peak_us` needs `queue` in [record]"
    );
    let unknown = TINY.replace("paper =", "papre =");
    let error = Figure::read("test/tiny", &unknown).unwrap_err();
    assert!(
        error.contains("papre") && error.starts_with("test/tiny.toml: "),
        "{error}"
    );
}

#[test]
fn names_stand_for_figures_and_papers() {
    assert_eq!(named_figures("strack/fig16").unwrap(), ["strack/fig16"]);
    let all = named_figures("strack").unwrap();
    assert!(all.len() >= 12 && all.contains(&"strack/fig9"));
    assert_eq!(named_figures("fig16"), Err(Some("strack/fig16")));
    assert_eq!(named_figures("strack/16"), Err(Some("strack/fig16")));
    assert_eq!(named_figures("strakc/fig20"), Err(Some("strack/fig20")));
    assert_eq!(named_figures("something else"), Err(None));
}

const UNEQUAL: &str = r#"
title = "A flow and one of twice its size"
source = "nowhere"
setup = "four hosts on one switch, each flow has its own"

[base]
topology.kind = "single-switch"
topology.hosts = 4
workload.kind = "flows"
workload.flows = ["0->2 40KB", "1->3 80KB"]

[record]
goodput = { flows = 2, bin = "1us" }

[small]
seeds = 1
[full]

[[claims]]
id = "one-by-one"
paper = "the second has sent twice as much"
source = "arithmetic"
expect = "goodput_gbps(flow=1, from=0us, to=100us) / goodput_gbps(flow=0, from=0us, to=100us) in [1.999, 2.001]"

[[claims]]
id = "mean"
paper = "40 KB in 100 us are 3.2 Gb/s, and 80 KB are 6.4 Gb/s"
source = "arithmetic"
expect = "goodput_gbps(from=0us, to=100us) in [4.799, 4.801]"

[[claims]]
id = "nobody"
paper = "there is a third"
source = "arithmetic"
expect = "goodput_gbps(flow=2, from=0us, to=100us) >= 0"
"#;

#[test]
fn goodput_of_one_flow_or_of_all() {
    let figure = Figure::read("test/unequal", UNEQUAL).unwrap();
    let quiet = Quiet::with_limit(u32::MAX);
    let mut reproducer = Reproducer::new(Laboratory::new(), 1);
    let outcome = reproducer.reproduce(&figure, &small(None), &quiet).unwrap();
    let verdicts = outcome.claims.iter().map(|claim| &claim.verdict);
    let expected = [ClaimVerdict::Pass, ClaimVerdict::Pass, ClaimVerdict::Miss];
    assert!(verdicts.eq(&expected), "{:?}", outcome.claims);
}

#[test]
fn changes_reach_every_run() {
    let request = FigureRequest {
        changes: vec!["topology.link-delay=3us".into()],
        null: None,
        ..small(Some(1))
    };
    let quiet = Quiet::with_limit(u32::MAX);
    let mut reproducer = Reproducer::new(Laboratory::new(), 1);
    let outcome = reproducer.reproduce(&tiny(), &request, &quiet).unwrap();
    assert_eq!(outcome.changes, request.changes);
    assert!(
        outcome
            .runs
            .iter()
            .all(|run| run.measures["fct-max"] > 12.0)
    );
}

#[test]
fn of_several_runs_that_fail_the_first_is_reported() {
    // Faults that appear only when a run is assembled, each with its message.
    let text = TINY
        .replace("1e9", "1000000000")
        .replace("workload.message = \"4KB\"", "workload.senders = 501")
        .replace(
            "workload.message = \"400KB\" } }]\nfull",
            "workload.senders = 502 } }]\nfull",
        );
    assert!(text.contains("501") && text.contains("502"));
    let figure = Figure::read("test/tiny", &text).unwrap();
    let faults = (0..20).map(|attempt| {
        let mut reproducer = Reproducer::new(Laboratory::new(), 1 + attempt % 4);
        let quiet = Quiet::with_limit(u32::MAX);
        let result = reproducer.reproduce(&figure, &small(Some(2)), &quiet);
        result.unwrap_err().message
    });
    for fault in faults {
        assert!(fault.contains("501 senders"), "{fault}");
    }
}

#[test]
fn what_a_figure_varies_cannot_be_changed() {
    let mut reproducer = Reproducer::new(Laboratory::new(), 1);
    for change in ["workload.message=1MB", "transport.spray = single", "seed=7"] {
        let request = FigureRequest {
            changes: vec![change.into()],
            null: None,
            ..small(Some(1))
        };
        let quiet = Quiet::with_limit(u32::MAX);
        let error = reproducer.reproduce(&tiny(), &request, &quiet).unwrap_err();
        assert!(error.message.contains("itself"), "{change}: {error}");
    }
}

/// Links of 2 us at 400 Gb/s; the first packet of a flow arrives 4 us after its start, and 400 KB take 8.1 us.
const SHARING: &str = r#"
title = "Two flows beside each other, and a short one that meets the first"
source = "nowhere"
setup = "four hosts on one switch"

[base]
topology.kind = "single-switch"
topology.hosts = 4
workload.kind = "flows"
workload.flows = ["0->2 400KB", "1->3 800KB at 2us", "3->2 4KB at 3us"]

[record]
queue = "1us"
queue-link = "switch-host2"
goodput = { flows = 2, bin = "1us" }
rates = "1us"

[small]
seeds = 1
[full]

[[claims]]
id = "true"
paper = "what follows from the arithmetic"
source = "arithmetic"
expect = "RULE"
"#;

/// Verdict of a rule over [`SHARING`], its value, and the reason why it has none.
fn judged(rule: &str) -> (ClaimVerdict, Option<f64>, Option<String>) {
    let figure = Figure::read("test/sharing", &SHARING.replace("RULE", rule)).unwrap();
    let quiet = Quiet::with_limit(u32::MAX);
    let mut reproducer = Reproducer::new(Laboratory::new(), 1);
    let outcome = reproducer.reproduce(&figure, &small(None), &quiet).unwrap();
    let claim = &outcome.claims[0];
    let judgement = &claim.judgements[0];
    (
        claim.verdict.clone(),
        judgement.measured,
        judgement.reason.clone(),
    )
}

#[test]
fn sharing_is_measured() {
    for rule in [
        "slowdown(up_to=10KB, percentile=99.9) >= 1",
        // The first flow is alone on its path except for one packet.
        "slowdown(above=10KB, up_to=400KB) in [1, 1.1]",
        "slowdown(above=400KB) in [1, 1.01]",
        "slowdown(percentile=100) - slowdown_max() in [0, 0]",
        "slowdown(percentile=0.1) in [1, 1.01]",
        // The short flow starts last and finishes first: ranks 1, 2, 3 and 2, 3, 1.
        "start_finish_correlation() in [-0.5, -0.5]",
        // From about 3 + 8.3 us to about 2 + 8 + 16.4 us.
        "finish_spread_us() in [14.5, 15.5]",
        // The second flow has started, but none of its bytes have arrived.
        "active_jain(at=4500ns) in [0.5, 0.5]",
        "active_jain(at=8500ns) in [0.98, 1]",
        // The last of the three flows starts at 3 us; in the bin from 6 us, bytes of the second flow also arrive.
        "active_jain_settled_us() in [4, 4]",
        "active_jain_settled_us(fair=0.4) in [2, 2]",
        "rate_jain(at=10us) in [0.3, 1]",
        "rate_jain(at=10us) - rate_jain(at=10999ns) in [-0.1, 0.1]",
        "rate_jain_settled_us(fair=0.3) in [0, 1]",
        "queue_peak_bytes(from=0us, to=20us) >= 4064",
        "queue_mean_bytes(from=5us, to=15us) / queue_mean_us(from=5us, to=15us) in [49999, 50001]",
    ] {
        let (verdict, measured, reason) = judged(rule);
        assert_eq!(
            verdict,
            ClaimVerdict::Pass,
            "{rule}: {measured:?} {reason:?}"
        );
    }
}

/// A short message beside a long message of another section, between other hosts.
const SECTIONS: &str = r#"
title = "Two sections"
source = "nowhere"
setup = "two hosts that send to two others"

[base]
topology = { kind = "single-switch", hosts = 4 }

[base.workload]
kind = "flows"
flows = ["0->2 4KB", "0->2 40KB at 100us"]

[small]
seeds = 1
[full]

[[axes]]
name = "case"

[[axes.values]]
label = "mix"
set."workload[1]" = { kind = "flows", flows = ["1->3 400KB"] }

[[claims]]
id = "true"
paper = "what follows from the arithmetic"
source = "arithmetic"
expect = "RULE"
"#;

#[test]
fn measures_of_flows_can_be_of_one_section() {
    for (rule, expected) in [
        ("max_fct(mix, section=1) - max_fct(mix) in [0, 0]", None),
        ("min_fct(mix, section=0) - min_fct(mix) in [0, 0]", None),
        (
            "max_fct(mix, section=0) < max_fct(mix, section=1) / 1.5",
            None,
        ),
        (
            "mean_fct(mix, section=1) - max_fct(mix, section=1) in [0, 0]",
            None,
        ),
        ("slowdown_max(mix, section=0) in [1, 1.01]", None),
        (
            "slowdown(mix, section=1, percentile=100) - slowdown_max(mix, section=1) in [0, 0]",
            None,
        ),
        (
            "mean_fct(mix, section=2) > 0",
            Some("mean_fct: there are no flows of section 2"),
        ),
        (
            "slowdown(mix, section=1, up_to=10KB) > 0",
            Some("slowdown: no flow is of these sizes"),
        ),
    ] {
        let figure = Figure::read("test/sections", &SECTIONS.replace("RULE", rule)).unwrap();
        let quiet = Quiet::with_limit(u32::MAX);
        let mut reproducer = Reproducer::new(Laboratory::new(), 1);
        let outcome = reproducer.reproduce(&figure, &small(None), &quiet).unwrap();
        let claim = &outcome.claims[0];
        assert_eq!(claim.judgements[0].reason.as_deref(), expected, "{rule}");
        let passes = claim.verdict == ClaimVerdict::Pass;
        assert_eq!(passes, expected.is_none(), "{rule}: {:?}", claim.judgements);
    }
}

const USERS: &str = r#"
title = "An attacker and another user"
source = "nowhere"
setup = "two hosts that send to two others"

[base]
topology = { kind = "single-switch", hosts = 4 }
transport = { kind = "rocev2" }

[base.workload]
kind = "flows"
flows = ["0->2 400KB at 1us", "1->3 300KB", "1->3 100KB at 100us"]
attack = { hosts = "0", bytes = "100KB", gap = "20us", above = "100KB" }

[small]
seeds = 1
[full]

[[axes]]
name = "attack"
key = "workload.attack.kind"
values = ["none", "parallel", "staggered"]

[[claims]]
id = "it"
paper = "it"
source = "arithmetic"
expect = "RULE"
"#;

#[test]
fn users_have_messages_not_pieces() {
    let judge = |rule: &str| {
        let figure = Figure::read("test/users", &USERS.replace("RULE", rule)).unwrap();
        let mut reproducer = Reproducer::new(Laboratory::new(), 1);
        let quiet = Quiet::with_limit(u32::MAX);
        let outcome = reproducer.reproduce(&figure, &small(None), &quiet).unwrap();
        outcome.claims[0].judgements[0].clone()
    };
    for rule in [
        // Four concurrent pieces over one link take as long as one message.
        "user_gbps(parallel, src=0) / user_gbps(none, src=0) in [0.99, 1.01]",
        // The last piece starts after 60 us: 400 KB take 60 us and about 6 us more.
        "user_gbps(staggered, src=0) in [44, 50]",
        // 400 KB in twice 8.1 us and the serialisation of 8 us.
        "user_gbps(none, src=1) in [120, 140]",
        "user_gbps(none) / (user_gbps(none, src=0) + user_gbps(none, src=1)) in [0.499, 0.501]",
    ] {
        let judgement = judge(rule);
        let (measured, reason) = (judgement.measured, judgement.reason);
        assert!(judgement.holds, "{rule}: {measured:?} {reason:?}");
    }
    let nobody = judge("user_gbps(none, src=2-3) > 0");
    assert_eq!(
        nobody.reason.as_deref(),
        Some("user_gbps: no such host sends")
    );
}

#[test]
fn what_cannot_be_measured_says_why() {
    for (rule, message) in [
        (
            "slowdown(above=1MB) > 0",
            "slowdown: no flow is of these sizes",
        ),
        (
            "active_jain(at=1500ns) > 0",
            "active_jain: fewer than two flows are active",
        ),
        (
            "active_jain(at=1s) > 0",
            "active_jain: the run ends before that bin does",
        ),
        (
            "active_jain_settled_us(fair=1.5) > 0",
            "active_jain_settled_us: they do not get fair",
        ),
        (
            "active_jain_settled_us(to=1us) > 0",
            "active_jain_settled_us: the window is empty",
        ),
        ("rate_jain(at=1ns) > 0", "rate_jain: no sample is so early"),
    ] {
        let (verdict, _, reason) = judged(rule);
        assert_eq!(
            (verdict, reason.as_deref()),
            (ClaimVerdict::Miss, Some(message)),
            "{rule}"
        );
    }
    for bad in ["0", "100.1", "99.95", "most"] {
        let rule = format!("slowdown(percentile={bad}) > 0");
        let error = Figure::read("test/sharing", &SHARING.replace("RULE", &rule)).unwrap_err();
        assert!(
            error.contains("option `percentile` of `slowdown`"),
            "{error}"
        );
    }
}

#[test]
fn the_recorded_queue_can_be_named() {
    let unknown = SHARING
        .replace("RULE", "finish_spread_us() > 0")
        .replace("switch-host2", "switch-host9");
    let figure = Figure::read("test/sharing", &unknown).unwrap();
    let quiet = Quiet::with_limit(u32::MAX);
    let mut reproducer = Reproducer::new(Laboratory::new(), 1);
    let error = reproducer
        .reproduce(&figure, &small(None), &quiet)
        .unwrap_err();
    assert!(error.message.contains("no link `switch-host9`"), "{error}");
    let nameless = unknown.replace("queue = \"1us\"\n", "");
    let error = Figure::read("test/sharing", &nameless).unwrap_err();
    assert!(error.contains("`queue-link` needs `queue`"), "{error}");
}

/// Four hosts that scatter 40 KB each, on one switch.
const LOADED: &str = r#"
title = "Loads of links"
source = "nowhere"
setup = "one switch"

[base]
topology.kind = "single-switch"
topology.hosts = 4
transport.payload = "1000B"
workload.kind = "direct-reduce-scatter"
workload.size = "40KB"

[record]
link-loads = true

[small]
[full]

[[claims]]
id = "three-parts"
paper = "each host sends and receives three parts of 10 KB, and up to 100 B of headers with each 1000 B"
source = "arithmetic"
expect = "fullest_link_us() / payload_us() in [3.01, 3.3]"
"#;

#[test]
fn the_fullest_link_carries_all_parts_of_a_host() {
    let figure = Figure::read("test/loaded", LOADED).unwrap();
    let mut reproducer = Reproducer::new(Laboratory::new(), 1);
    let quiet = Quiet::with_limit(u32::MAX);
    let outcome = reproducer
        .reproduce(&figure, &small(Some(1)), &quiet)
        .unwrap();
    let claim = &outcome.claims[0];
    assert_eq!(claim.verdict, ClaimVerdict::Pass, "{claim:?}");
    let unrecorded = LOADED.replace("link-loads = true", "");
    let error = Figure::read("test/loaded", &unrecorded).unwrap_err();
    assert!(error.contains("needs `link-loads`"), "{error}");
}

/// A figure of a plan and a simulation; `RULE` is the claim.
const PLANNED: &str = r#"
title = "Two jobs, planned and alone"
source = "nowhere"
setup = "one link"

[base]
topology.kind = "single-switch"
topology.hosts = 2
workload.kind = "flows"
workload.flows = ["0->1 40KB"]

[small]
[full]

[[axes]]
name = "case"

[[axes.values]]
label = "simulated"

[[axes.values]]
label = "planned"
plan = '''
[plan]
tolerance = 0.0
[[link]]
name = "L1"
[[link]]
name = "L2"
[[job]]
name = "A"
compute = "60ms"
communication = "20ms"
links = ["L1"]
[[job]]
name = "B"
compute = "30ms"
communication = "10ms"
links = ["L1", "L2"]
[[job]]
name = "C"
period = "90ms"
'''

[[axes.values]]
label = "builtin"
plan = "table-1"

[[claims]]
id = "planned"
paper = "what follows from the arithmetic"
source = "arithmetic"
expect = "RULE"
"#;

fn planned(rule: &str) -> FigureOutcome {
    let figure = Figure::read("test/planned", &PLANNED.replace("RULE", rule)).unwrap();
    let mut reproducer = Reproducer::new(Laboratory::new(), 1);
    let quiet = Quiet::with_limit(u32::MAX);
    reproducer.reproduce(&figure, &small(None), &quiet).unwrap()
}

#[test]
fn plans_are_runs_of_a_figure() {
    for rule in [
        "max_fct(simulated) > 0",
        "perimeter_us(planned) in [80000, 80000]",
        "repeats(planned, job=1) in [2, 2]",
        "period_us(planned, job=2) in [90000, 90000]",
        "perimeter_us(planned, job=2) in [90000, 90000]",
        "arc_start_us(planned) in [60000, 60000]",
        "arc_us(planned, job=1) in [10000, 10000]",
        "load(planned) in [0.5, 0.5]",
        "load(planned, link=L2) in [0.25, 0.25]",
        // Without shifts, both end together: 10 of 80 ms overlap.
        "score_before(planned, link=L1) in [0.875, 0.875]",
        "score(planned) in [1, 1]",
        "collision_us(planned) in [0, 0]",
        "least_collision_us(planned) in [0, 0]",
        "shift_us(planned, job=0) + shift_us(planned, job=1) > 0",
        "angle_degrees(planned, job=0) * perimeter_us(planned) - 360 * shift_us(planned, job=0) in [0, 0]",
        "is_compatible(planned) in [1, 1]",
        "is_compatible(builtin, link=group-4) in [1, 1]",
        "is_compatible(builtin, link=group-1) in [0, 0]",
        "is_compatible(builtin) in [0, 0]",
        "least_collision_us(builtin) - collision_us(builtin, link=group-1) in [0, 0]",
    ] {
        let outcome = planned(rule);
        let claim = &outcome.claims[0];
        assert_eq!(claim.verdict, ClaimVerdict::Pass, "{:?}", claim.judgements);
    }
}

#[test]
fn a_planned_run_says_what_it_is() {
    let outcome = planned("is_compatible(planned) > 0");
    assert!(outcome.complete);
    assert_eq!(outcome.runs.len(), 3 * 3);
    let run = &outcome.runs[3];
    assert_eq!(run.labels["case"], "planned");
    assert_eq!(run.settings[..3], ["[plan]", "tolerance = 0.0", "[[link]]"]);
    assert_eq!(run.measures["period-us(B)"], 40_000.0);
    assert_eq!(run.measures["score(L2)"], 1.0);
    assert_ne!(run.digest, outcome.runs[6].digest);
    assert_eq!(outcome.runs[6].settings[0], "name = \"table-1\"");
}

#[test]
fn plans_and_simulations_are_told_apart() {
    for (rule, message) in [
        ("max_fct(planned) > 0", "`max_fct` is not of plans"),
        ("score(simulated) > 0", "`score` is of plans only"),
        (
            "score(planned, at=1us) > 0",
            "`score` has no option `at`; it has: link",
        ),
    ] {
        let error = Figure::read("test/planned", &PLANNED.replace("RULE", rule)).unwrap_err();
        assert_eq!(
            error,
            format!("test/planned.toml: claim `planned`: {message}")
        );
    }
    for (rule, message) in [
        (
            "score(planned, link=L3) > 0",
            "score: did you mean `L1`? No job uses a link `L3`",
        ),
        (
            "shift_us(planned, job=3) > 0",
            "shift_us: there is no job 3",
        ),
        (
            "arc_us(planned, job=2) > 0",
            "arc_us: job 2 does not communicate",
        ),
    ] {
        let outcome = planned(rule);
        let claim = &outcome.claims[0];
        assert_eq!(claim.verdict, ClaimVerdict::Miss);
        assert_eq!(claim.judgements[0].reason.as_deref(), Some(message));
    }
    let sound = PLANNED.replace("RULE", "score(planned) > 0");
    let both = sound.replace("plan = \"table-1\"", "plan = \"table-1\"\nset.seed = 3");
    let error = Figure::read("test/planned", &both).unwrap_err();
    assert!(
        error.contains("`builtin` has a `plan` and something to `set`"),
        "{error}"
    );
    let twice = sound.replace(
        "[[claims]]",
        "[[axes]]\nname = \"again\"\nvalues = [{ label = \"x\", plan = \"table-1\" }]\n[[claims]]",
    );
    let error = Figure::read("test/planned", &twice).unwrap_err();
    assert!(error.contains("two axes have plans"), "{error}");
}

#[test]
fn changes_are_for_simulations() {
    let request = FigureRequest {
        changes: vec!["topology.hosts=4".into()],
        null: None,
        ..small(Some(1))
    };
    let quiet = Quiet::with_limit(u32::MAX);
    let mut reproducer = Reproducer::new(Laboratory::new(), 1);
    let mixed = PLANNED.replace("RULE", "score(planned) > 0");
    let mixed = Figure::read("test/planned", &mixed).unwrap();
    let outcome = reproducer.reproduce(&mixed, &request, &quiet).unwrap();
    let changed = |run: &FigureRun| run.settings.contains(&request.changes[0]);
    let changed: Vec<bool> = outcome.runs.iter().map(changed).collect();
    assert_eq!(changed, [true, false, false]);
    let plans = figure("mlcc/fig5").unwrap();
    let error = reproducer.reproduce(&plans, &request, &quiet).unwrap_err();
    assert!(error.message.contains("mlcc/fig5 is planned"), "{error}");
}

#[test]
fn a_null_subject_replaces_all_that_is_set_of_transports() {
    let figure = figure("mlcc/fig1").unwrap();
    let runs = figure.runs(Scale::Small);
    for subject in NullSubject::ALL {
        assert_eq!(subject.name().parse(), Ok(subject));
        for run in runs.iter().filter(|run| run.plan.is_none()) {
            let settings = figure.settings_of(Scale::Small, run, 1);
            let replaced = subject.replace(&figure, figure_run_data::RunKind::Simulated, &settings);
            let of_transport = |setting: &&String| setting.contains("transport");
            let (before, now) = (settings.iter(), replaced.iter());
            assert!(before.clone().any(|setting| setting.contains("rate-timer")));
            let others = before.filter(|setting| !of_transport(setting)).count();
            let own: Vec<&String> = now.clone().filter(of_transport).collect();
            assert_eq!(now.count(), others + own.len());
            assert!(own[0].starts_with("transport.kind="), "{own:?}");
            let scenario = Laboratory::new().read("null", "", None, &replaced);
            assert!(scenario.is_ok(), "{:?}", scenario.err());
        }
    }
    assert!("two-packets".parse::<NullSubject>().is_err());
}

const EFFECTS: &str = r#"
title = "Windows of a permutation"
source = "nowhere"
setup = "a permutation on random paths"

[base]
topology = { kind = "leaf-spine", hosts = 16, hosts-per-leaf = 4, spines = 2 }
workload = { kind = "permutation", message = "40KB" }
transport = { controller = "constant", spray = "single" }

[small]
seeds = 3
[full]

[[axes]]
name = "window"
values = [{ label = "one", set = { transport.window = "4KB" } }, { label = "many", set = { transport.window = "1MB" } }]

[[axes]]
name = "rate"
values = [{ label = "slow", set = { topology.link-rate = "100Gbps" } }, { label = "fast", set = { topology.link-rate = "200Gbps" } }]
"#;

/// Outcome of a claim over [`EFFECTS`].
fn effect(rule: &str) -> ClaimOutcome {
    let claim = format!(
        "[[claims]]\nid = \"it\"\npaper = \"it\"\nsource = \"arithmetic\"\nexpect = \"{rule}\"\n"
    );
    let figure = Figure::read("test/effects", &format!("{EFFECTS}\n{claim}")).unwrap();
    let quiet = Quiet::with_limit(u32::MAX);
    let mut reproducer = Reproducer::new(Laboratory::new(), 1);
    let mut outcome = reproducer.reproduce(&figure, &small(None), &quiet).unwrap();
    outcome.claims.remove(0)
}

#[test]
fn a_claim_says_which_effects_it_does_not_need() {
    for (rule, without) in [
        // Ten round trips take longer than one, and no effect of the window would be a ratio of one.
        ("max_fct(one, slow) / max_fct(many, slow) >= 2", &[][..]),
        (
            "max_fct(one, slow) / max_fct(many, slow) >= 0.5",
            &["window"],
        ),
        ("max_fct(many, slow) / max_fct(one, slow) <= 1", &["window"]),
        // The claim compares along both axes, but needs only one.
        ("max_fct(one, slow) / max_fct(many, fast) >= 2", &["rate"]),
        ("max_fct(one, rate) / max_fct(many, rate) >= 2", &[]),
        // One run gives no comparison, and no run gives no measure.
        ("max_fct(one, slow) <= 1000", &[]),
        ("setting(one, slow, key=topology.hosts) >= 9", &["settings"]),
    ] {
        let claim = effect(rule);
        assert_eq!(
            claim.verdict,
            ClaimVerdict::Pass,
            "{rule}: {:?}",
            claim.judgements
        );
        assert_eq!(claim.passes_without, without, "{rule}");
    }
    // A missed claim is not checked for effects.
    let missed = effect("max_fct(one, slow) / max_fct(many, slow) >= 200");
    assert_eq!(
        (missed.verdict, missed.passes_without.len()),
        (ClaimVerdict::Miss, 0)
    );
}

#[test]
fn a_bound_within_the_spread_over_seeds_leaves_the_verdict_open() {
    let times = |rule: &str| effect(&format!("mean_fct(many, slow) {rule}"));
    let values = times(">= 0").judgements[0].per_seed.clone();
    let mut values: Vec<f64> = values.into_iter().flatten().collect();
    values.sort_by(f64::total_cmp);
    let (low, median, high) = (values[0], values[1], values[2]);
    assert!(low < high, "seeds differ: {values:?}");
    for rule in [
        format!(">= {:.4}", (low + median) / 2.0),
        format!("<= {:.4}", (low + median) / 2.0),
    ] {
        let claim = times(&rule);
        assert_eq!(claim.verdict, ClaimVerdict::Unsure, "{rule} of {values:?}");
        assert!(!claim.judgements[0].sure);
    }
    assert_eq!(
        times(&format!(">= {:.4}", low / 2.0)).verdict,
        ClaimVerdict::Pass
    );
    assert_eq!(
        times(&format!(">= {:.4}", high * 2.0)).verdict,
        ClaimVerdict::Miss
    );
    // The outcome of one seed counts as sure.
    let figure = Figure::read("test/effects", &format!("{EFFECTS}\n[[claims]]\nid = \"it\"\npaper = \"it\"\nsource = \"x\"\nexpect = \"max_fct(many, slow) >= 0\"\n")).unwrap();
    let mut reproducer = Reproducer::new(Laboratory::new(), 1);
    let outcome = reproducer
        .reproduce(&figure, &small(Some(1)), &Quiet::with_limit(u32::MAX))
        .unwrap();
    assert!(outcome.claims[0].judgements[0].sure);
}

const TRANSPORTS: &str = r#"
title = "Two transports"
source = "nowhere"
setup = "hosts on one switch"

[base]
topology = { kind = "single-switch", hosts = 3 }
workload = { kind = "permutation", message = "40KB" }

[small]
seeds = 1
[full]

[[axes]]
name = "transport"
values = [{ label = "strack" }, { label = "roce", set = { transport.kind = "rocev2" } }]

[[claims]]
id = "it"
paper = "it"
source = "arithmetic"
expect = "max_fct(strack) > 0 and max_fct(roce) > 0"
"#;

#[test]
fn a_key_of_one_transport_leaves_the_runs_of_others_alone() {
    let figure = Figure::read("test/transports", TRANSPORTS).unwrap();
    let reproduce = |change: &str| {
        let request = FigureRequest {
            changes: vec![change.into()],
            null: None,
            ..small(None)
        };
        let mut reproducer = Reproducer::new(Laboratory::new(), 1);
        reproducer.reproduce(&figure, &request, &Quiet::with_limit(u32::MAX))
    };
    let outcome = reproduce("transport.max-cwnd=50%bdp").unwrap();
    let has = |run: &FigureRun| {
        run.settings
            .iter()
            .any(|setting| setting.contains("max-cwnd"))
    };
    assert_eq!(
        outcome.runs.iter().map(has).collect::<Vec<_>>(),
        [true, false]
    );
    // A key that no run has is an error, and so is a value that the key cannot have.
    for (change, expected) in [
        ("transport.max-cwdn=1bdp", "max-cwdn"),
        ("transport.max-cwnd=much", "max-cwnd"),
    ] {
        let error = reproduce(change).unwrap_err().to_string();
        assert!(error.contains(expected), "{change}: {error}");
    }
}
