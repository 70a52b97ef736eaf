//! Links that fail and come back during a run: what transports make of it, and that nothing of it depends on threads.
//!
//! All tests are variants of the built-in scenario `link-flap`: four hosts of one leaf send 20 MB each to those of another, over four
//! spines at 100 Gb/s.

use clearway_lab::{
    Assembly, Finished, Laboratory, RunDecision, RunOptions, ScenarioError, Stopped, Watch,
};
use clearway_units::{FlowId, Span, Time};
use std::fmt::Write as _;

/// One link goes down for good at 100 us; routing never knows.
const FOR_GOOD: &str = "\
name = \"for-good\"
stop.at-most = \"30ms\"
[topology]
kind = \"leaf-spine\"
hosts = 8
hosts-per-leaf = 4
link-rate = \"100Gbps\"
reroute-delay = \"1s\"
[[workload]]
kind = \"flows\"
flows = [\"0->4 20MB at 0s\", \"1->5 20MB at 0s\", \"2->6 20MB at 0s\", \"3->7 20MB at 0s\"]
[[event]]
at = \"100us\"
link = \"leaf0-spine3\"
state = \"down\"
";

fn read(text: &str, overrides: &[&str]) -> Result<Assembly, ScenarioError> {
    let overrides: Vec<String> = overrides.iter().map(ToString::to_string).collect();
    let scenario = Laboratory::new().read("events.toml", text, None, &overrides)?;
    Assembly::new(&scenario)
}

fn run_on(threads: usize, text: &str, overrides: &[&str]) -> Finished {
    let options = RunOptions {
        threads: threads.into(),
        on_progress: &mut |_| RunDecision::Continue,
        on_flow: &mut |_, _, _| (),
    };
    read(text, overrides).unwrap().run(options, Watch::Off)
}

fn run(text: &str, overrides: &[&str]) -> Finished {
    run_on(1, text, overrides)
}

/// Times at which flows were done in microseconds, in order; `None` for those that were not.
fn done(finished: &Finished) -> Vec<Option<f64>> {
    let times = finished.flows.iter();
    times.map(|flow| flow.finished.map(Time::as_us)).collect()
}

/// Time at which the last flow was done.
fn last(finished: &Finished) -> f64 {
    let all = done(finished).into_iter().map(|time| time.expect("done"));
    all.fold(0.0, f64::max)
}

/// Three of four spines carry what is left in 4/3 of the time, if routing is quick. If it never learns, all arrives in spite of it.
#[test]
fn spraying_survives_the_loss_of_a_spine() {
    let whole = last(&run(FOR_GOOD, &["event[0].at=\"25ms\""]));
    let expected = 100.0 + (whole - 100.0) * 4.0 / 3.0;
    for (delay, slower, most_lost) in [("50us", 1.1, 400), ("1s", 2.5, 8_000)] {
        let delay = format!("topology.reroute-delay=\"{delay}\"");
        let finished = run(FOR_GOOD, &[&delay]);
        let (links, ratio) = (&finished.links, last(&finished) / expected);
        assert!((0.98..slower).contains(&ratio), "{delay}: {ratio}");
        // Of 20000 packets, and as many acknowledgements.
        assert!(
            (1..most_lost).contains(&links.link_down_drops),
            "{delay}: {links:?}"
        );
        assert_eq!(links.no_route_drops, 0, "{delay}");
    }
}

/// STrack that avoids paths without an answer loses less on a link of which routing never learns, and is done sooner. On two threads alike.
#[test]
fn dead_paths_are_avoided() {
    let avoiding = "transport.dead-path=probe";
    for seed in 1..4 {
        let seed = format!("seed={seed}");
        let marks_alone = run(FOR_GOOD, &[&seed]);
        let finished = run(FOR_GOOD, &[&seed, avoiding]);
        let (lost, before) = [&finished, &marks_alone]
            .map(|run| run.links.link_down_drops)
            .into();
        assert!(lost * 2 < before, "{lost} of {before}");
        assert!(last(&finished) < last(&marks_alone));
        let two = run_on(2, FOR_GOOD, &[&seed, avoiding]);
        assert_eq!(two.digest, finished.digest);
    }
}

/// A flow with one path waits for routing; those on other paths do not notice.
#[test]
fn a_single_path_waits_for_routing() {
    let run = |seed: u64, delay: &str| {
        let seed = format!("seed={seed}");
        let delay = format!("topology.reroute-delay=\"{delay}\"");
        run(FOR_GOOD, &["transport.spray=single", &seed, &delay])
    };
    // The first seed with which some flows, or their acknowledgements, take the link.
    let some_hit = (1..20).find_map(|seed| {
        let stalled = run(seed, "1s");
        let hit: Vec<bool> = done(&stalled).iter().map(Option::is_none).collect();
        (hit.contains(&true) && hit.contains(&false)).then_some((seed, stalled, hit))
    });
    let (seed, stalled, hit) = some_hit.expect("paths are drawn at random");
    assert_eq!(stalled.stopped, Some(Stopped::AtMost));
    let rerouted = done(&run(seed, "10ms"));
    for (flow, (time, hit)) in rerouted.into_iter().zip(hit).enumerate() {
        let time = time.unwrap();
        assert_eq!(time > 10_100.0, hit, "flow {flow} is done at {time} us");
    }
}

#[test]
fn a_link_that_comes_back_is_used_again() {
    let flapping = run(
        clearway_lab::scenario::builtin_scenario("link-flap").unwrap(),
        &[],
    );
    let gone = run(FOR_GOOD, &["topology.reroute-delay=\"50us\""]);
    assert!(flapping.links.link_down_drops > 0);
    // A link is lost for 250 us three times, and not for the rest of 1600 us.
    assert!(
        last(&flapping) < 0.96 * last(&gone),
        "{} and {}",
        last(&flapping),
        last(&gone)
    );
}

/// Lossy and lossless switches, all kinds of events, and more threads than domains.
#[test]
fn events_do_not_depend_on_threads() {
    let text = clearway_lab::scenario::builtin_scenario("link-flap").unwrap();
    let further = [
        "event[2]={at=\"150us\",link=\"leaf0-spine1\",rate=\"25Gbps\"}",
        "event[3]={at=\"210us\",link=\"leaf1-spine0\",packet-loss=0.01}",
        "event[4]={at=\"250us\",link=\"host1-leaf0\",state=\"down\"}",
        "event[5]={at=\"650us\",link=\"host1-leaf0\",state=\"up\"}",
    ];
    for kind in [
        &["transport.kind=strack"][..],
        &["transport.kind=rocev2", "switch.kind=shared-buffer"],
    ] {
        let keys = [&further[..], kind].concat();
        let one = run_on(1, text, &keys);
        assert!(
            one.links.link_down_drops > 0 && one.links.corrupted > 0,
            "{:?}",
            one.links
        );
        assert_eq!(one.stopped, None, "{kind:?}");
        for threads in [2, 4] {
            let other = run_on(threads, text, &keys);
            assert_eq!(one.digest, other.digest, "{kind:?}, {threads} threads");
            assert_eq!(one.links, other.links, "{kind:?}, {threads} threads");
        }
    }
}

/// A pause that is in effect when its link goes down ends with it, and the buffer gets back what the port drops.
#[test]
fn lossless_switches_go_on_when_a_paused_link_fails() {
    let text = FOR_GOOD.replace(
        "\"0->4 20MB at 0s\", \"1->5 20MB at 0s\"",
        "\"0->7 20MB at 0s\", \"1->7 20MB at 0s\"",
    );
    let lossless = [
        "switch.kind=shared-buffer",
        "transport.kind=rocev2",
        "topology.reroute-delay=\"100us\"",
    ];
    let pausing = ["transport.controller=constant", "switch.buffer=1MB"];
    let keys = [&lossless[..], &pausing].concat();
    let finished = run(&text, &keys);
    assert!(
        !finished.pauses.is_empty() && finished.links.link_down_drops > 0,
        "{:?}",
        finished.links
    );
    assert_eq!(finished.stopped, None);
    assert_eq!(finished.links.headroom_drops, 0);
}

#[test]
fn a_host_that_is_cut_off_is_waited_for_until_the_limit() {
    let keys = [
        "event[0].link=host5-leaf1",
        "topology.reroute-delay=\"1ms\"",
    ];
    let finished = run(FOR_GOOD, &keys);
    assert_eq!(finished.stopped, Some(Stopped::AtMost));
    let done: Vec<bool> = done(&finished).iter().map(Option::is_some).collect();
    assert_eq!(done, [true, false, true, true]);
    let links = &finished.links;
    assert!(
        links.link_down_drops > 0 && links.no_route_drops > 0,
        "{links:?}"
    );
    // The link comes back, and with it the flow.
    let up = "event[1]={at=\"10ms\",link=\"host5-leaf1\",state=\"up\"}";
    let finished = run(FOR_GOOD, &[keys[0], keys[1], up]);
    assert_eq!(finished.stopped, None);
}

#[test]
fn gray_failures_lose_what_they_say() {
    let loss = ["event[0]={at=\"100us\",link=\"leaf0-spine3\",state=\"auto\",packet-loss=0.1}"];
    let finished = run(FOR_GOOD, &loss);
    let links = &finished.links;
    assert!(
        links.corrupted > 100 && links.link_down_drops == 0,
        "{links:?}"
    );
    assert_eq!(finished.stopped, None);
}

/// A link that becomes faster lets no flow beat its ideal time, which is that of the fastest rate.
#[test]
fn faster_links_make_faster_ideals() {
    let text = "\
name = \"faster\"
[topology]
kind = \"single-switch\"
hosts = 2
link-rate = \"1Gbps\"
[[workload]]
kind = \"flows\"
flows = [\"0->1 100KB at 0s\"]
";
    let ideal = |events: &str| {
        let assembly = read(&format!("{text}{events}"), &[]).unwrap();
        assembly.ideal_completion(FlowId(0))
    };
    let event = |host: u32| {
        format!("[[event]]\nat = \"0s\"\nlink = \"host{host}-switch\"\nrate = \"10Gbps\"\n")
    };
    let both = event(0) + &event(1);
    let finished = run(&format!("{text}{both}"), &[]);
    let taken = finished.flows[0].completion().unwrap();
    assert!(taken >= ideal(&both), "{taken} {}", ideal(&both));
    assert!(taken < ideal("") / 5, "{taken} {}", ideal(""));
    // One of the two links stays slow.
    assert!(ideal(&event(0)) > ideal("") / 2);
}

/// A host sends 2 MB to another one, whose NIC sends pause frames for 200 us. Nothing is marked, so that rates are those of the links.
const STORM: &str = "\
name = \"storm\"
stop.at-most = \"5ms\"
[topology]
kind = \"leaf-spine\"
hosts = 8
hosts-per-leaf = 4
link-rate = \"100Gbps\"
[switch]
kind = \"shared-buffer\"
ecn.enabled = false
[transport]
kind = \"rocev2\"
[[workload]]
kind = \"flows\"
flows = [\"0->4 2MB\"]
[[workload]]
kind = \"flows\"
flows = [\"1->2 2MB\", \"4->3 2MB\"]
attack = { kind = \"pause-storm\", hosts = \"4\", from = \"50us\", lasts = \"200us\" }
";

#[test]
fn a_pause_storm_delays_what_goes_to_its_host_by_the_time_it_lasts() {
    let (calm, storm) = (
        run(STORM, &["workload[1].attack.kind=none"]),
        run(STORM, &[]),
    );
    let (before, after) = (done(&calm), done(&storm));
    let late = after[0].unwrap() - before[0].unwrap();
    // Acknowledgements of what the host sends share its link, and are done with after the storm.
    assert!((197.5..201.0).contains(&late), "{before:?} {after:?}");
    assert_eq!(after[1], before[1], "neither its sender nor its link");
    assert!(after[2] <= before[2], "what the host sends goes on");
    let pauses: Vec<_> = storm
        .pauses
        .iter()
        .map(|own| (own.pauses, own.time))
        .collect();
    assert_eq!(
        pauses.iter().max_by_key(|own| own.1),
        Some(&(1, Span::from_us(200))),
        "{pauses:?}"
    );
    assert_eq!(storm.stopped, None);
}

#[test]
fn a_pause_storm_of_an_event_is_that_of_an_attack() {
    let attack = run(STORM, &[]);
    let event = |at: &str, on: bool| {
        format!("[[event]]\nat = \"{at}\"\nlink = \"leaf1-host4\"\npause-storm = {on}\n")
    };
    let text = format!("{STORM}{}{}", event("50us", true), event("250us", false));
    let events = run(&text, &["workload[1].attack.kind=none"]);
    assert_eq!(events.digest, attack.digest);
    // Without an end.
    let text = format!("{STORM}{}", event("50us", true));
    let endless = run(&text, &["workload[1].attack.kind=none"]);
    assert_eq!(endless.stopped, Some(Stopped::Deadlocked));
    assert_eq!(done(&endless)[0], None);
    assert_eq!(done(&endless)[1..], done(&attack)[1..]);
}

#[test]
fn pause_storms_need_pause_frames_and_time() {
    let mut all = String::new();
    for setting in [
        "switch.kind=lossy",
        "switch.pfc.classes=[]",
        "workload[1].attack.lasts=0s",
        "workload[1].attack.from=3000000s",
        "workload[1].attack.share=0.5",
        "workload[1].attack.hosts=7",
    ] {
        let error = read(STORM, &[setting]).err();
        let error = error.unwrap_or_else(|| panic!("{setting}"));
        let _ = writeln!(all, "{error}");
    }
    insta::assert_snapshot!(all, @r#"
    events.toml:19: a pause storm, but switches have no shared buffer and ignore pause frames
      fix: set `switch.kind = "shared-buffer"`
    events.toml:19: a pause storm, although `switch.pfc.classes` has no class that could be paused
      fix: name the lossless classes, such as `switch.pfc.classes = [1]`
    --set workload[1].attack.lasts=0s: a pause storm that takes no time
      fix: give `attack.lasts` a time such as "1ms"
    --set workload[1].attack.from=3000000s: a pause storm that ends too late
      fix: let it end within 2592000s (30 days)
    --set workload[1].attack.share=0.5: a pause storm of a share of the messages
      fix: remove `attack.share`: a NIC pauses all traffic to it, or none
    --set workload[1].attack.hosts=7: a pause storm of hosts that send nothing in this workload
      fix: name hosts by `attack.hosts` that send, or use an `[[event]]` with `pause-storm = true` for the link of a host
    "#);
}
