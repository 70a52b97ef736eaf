//! Runs in steps are the runs of scenarios that list the same messages.

use clearway_lab::scenario::Priority;
use clearway_lab::units::{Bytes, FlowId, HostId, Span, Time};
use clearway_lab::{
    Laboratory, MessageEventKind, PostedMessage, RunDecision, Scenario, SteppedOptions, SteppedRun,
};
use insta::assert_snapshot;

/// 8 hosts of 400 Gb/s.
const FABRIC: &str = "\
[topology]
kind = \"leaf-spine\"
hosts = 8
hosts-per-leaf = 4
";

/// A scenario on the fabric of 8 hosts, unless `more` has a fabric.
fn scenario(more: &str) -> Scenario {
    let fabric = if more.contains("[topology]") {
        ""
    } else {
        FABRIC
    };
    let text = format!("{fabric}{more}");
    Laboratory::new().read("test", &text, None, &[]).unwrap()
}

fn message(src: u32, dst: u32, bytes: u64, tag: u64) -> PostedMessage {
    PostedMessage {
        src: HostId(src),
        dst: HostId(dst),
        bytes: Bytes::new(bytes),
        tag,
        priority: None,
    }
}

fn options(threads: usize, own_traffic: bool) -> SteppedOptions {
    SteppedOptions {
        threads: threads.into(),
        own_traffic,
        ..SteppedOptions::default()
    }
}

fn patient() -> impl FnMut() -> RunDecision {
    || RunDecision::Continue
}

/// Messages with the time at which each is posted, in microseconds.
const SCHEDULE: [(u64, PostedMessage); 5] = {
    const fn message(src: u32, dst: u32, bytes: u64, tag: u64) -> PostedMessage {
        PostedMessage {
            src: HostId(src),
            dst: HostId(dst),
            bytes: Bytes::new(bytes),
            tag,
            priority: None,
        }
    }
    [
        (0, message(0, 5, 1_000_000, 1)),
        (0, message(1, 5, 300_000, 2)),
        (7, message(2, 5, 50_000, 3)),
        (7, message(5, 0, 1, 4)),
        (60, message(6, 1, 2_000_000, 5)),
    ]
};

/// The digest of the scenario that lists the schedule.
fn listed(more: &str) -> clearway_lab::units::Digest {
    let flows = SCHEDULE.iter().map(|(us, message)| {
        let (src, dst) = (message.src.0, message.dst.0);
        format!("\"{src}->{dst} {}B at {us}us\"", message.bytes.as_u64())
    });
    let flows = flows.collect::<Vec<_>>().join(", ");
    let text = format!("{more}[[workload]]\nkind = \"flows\"\nflows = [{flows}]\n");
    Laboratory::new().run(&scenario(&text)).unwrap().digest
}

#[test]
fn steps_of_any_length_are_the_run_of_a_list() {
    for more in [
        "",
        "[transport]\nkind = \"rocev2\"\n[switch]\nkind = \"shared-buffer\"\n",
        // Hosts of several NICs, which the number of a message selects.
        "[topology]\nkind = \"bcube\"\n",
        "[topology]\nkind = \"bcube\"\nfirst-digit = \"in-turn\"\n",
    ] {
        let expected = listed(more);
        for (threads, step) in [(1, 1), (2, 3), (1, 1_000)] {
            let mut run = SteppedRun::new(scenario(more), options(threads, false)).unwrap();
            let mut received = Vec::new();
            for (us, message) in SCHEDULE {
                let due = Time::from_us(us);
                while run.now() < due {
                    let next = (run.now() + Span::from_us(step)).min(due);
                    let events = run.run_until(next, &mut patient()).unwrap();
                    assert!(events.iter().all(|event| event.time < next));
                    received.extend(events);
                }
                run.post(message).unwrap();
            }
            let end = run.run_to_end(&mut patient());
            assert_eq!(end.finished.stopped, None);
            assert_eq!(end.finished.digest, expected, "{more} steps of {step} us");
            let again = Laboratory::new().run(&end.scenario).unwrap();
            assert_eq!(again.digest, expected, "{}", end.scenario.resolved());
            let tags: Vec<u64> = end.messages.iter().map(|(_, flow, _)| flow.label).collect();
            assert_eq!(tags, [1, 2, 3, 4, 5]);
            assert!(
                end.messages
                    .iter()
                    .all(|(.., result)| result.finished.is_some())
            );
        }
    }
}

#[test]
fn a_message_can_answer_another() {
    let mut run = SteppedRun::new(scenario(""), options(1, false)).unwrap();
    let mut sent = vec![run.post(message(0, 5, 100_000, 0)).unwrap()];
    let far = Time::from_us(100_000);
    while sent.len() < 6 {
        let events = run.run_until_event(far, &mut patient()).unwrap();
        let last = *sent.last().unwrap();
        let is_there = |kind| {
            events
                .iter()
                .any(|event| event.flow == last && event.kind == kind)
        };
        if is_there(MessageEventKind::Received) {
            let before = run.message(last).unwrap().clone();
            let answer = message(before.dst.0, before.src.0, 100_000, sent.len() as u64);
            sent.push(run.post(answer).unwrap());
        }
    }
    let longest_round = run.assembly().topology.shortest_delay();
    let end = run.run_to_end(&mut patient());
    assert_eq!(end.messages.len(), 6);
    for pair in end.messages.windows(2) {
        let (received, started) = (pair[0].2.received.unwrap(), pair[1].2.started.unwrap());
        assert!(started >= received && started - received <= longest_round);
        assert!(pair[1].2.completion().unwrap() < pair[1].2.ideal + Span::from_us(1));
    }
}

#[test]
fn a_resolution_bounds_how_far_an_answer_is_late() {
    let late_by = |resolution: Option<Span>| {
        let options = SteppedOptions {
            resolution,
            ..options(2, false)
        };
        let mut run = SteppedRun::new(scenario(""), options).unwrap();
        let far = Time::from_us(100_000);
        let mut latest = Span::ZERO;
        run.post(message(0, 5, 100_000, 0)).unwrap();
        for number in 1..20_u32 {
            let events = run.run_until_event(far, &mut patient()).unwrap();
            let first = events.iter().map(|event| event.time).min().unwrap();
            latest = latest.max(run.now() - first);
            run.post(message(number % 8, (number + 3) % 8, 7_000, 0))
                .unwrap();
        }
        let end = run.run_to_end(&mut patient());
        let again = Laboratory::new().run(&end.scenario).unwrap();
        assert_eq!(end.finished.digest, again.digest);
        latest
    };
    assert!(late_by(Some(Span::from_ns(10))) <= Span::from_ns(10));
    // Rounds end where links say, so some event is much earlier than the end of its round.
    assert!(late_by(None) > Span::from_ns(100));
}

#[test]
fn messages_have_the_priorities_that_were_declared() {
    for (declared, used) in [(vec![3, 5], vec![3, 5]), (vec![1, 2, 6], vec![6, 6])] {
        let more = "[transport]\nkind = \"rocev2\"\n[switch]\nkind = \"shared-buffer\"\nstrict-priority = true\n";
        let options = SteppedOptions {
            priorities: declared.into_iter().map(Priority).collect(),
            ..options(1, false)
        };
        let mut run = SteppedRun::new(scenario(more), options).unwrap();
        for (src, priority) in (0..).zip(used) {
            let message = PostedMessage {
                priority: Some(Priority(priority)),
                ..message(src, 7, 3_000_000, 0)
            };
            run.post(message).unwrap();
        }
        let undeclared = run.post(PostedMessage {
            priority: Some(Priority(4)),
            ..message(0, 7, 1, 0)
        });
        let text = undeclared.unwrap_err().to_string();
        assert!(text.contains("priority 4") && text.contains("fix: "));
        let end = run.run_to_end(&mut patient());
        let again = Laboratory::new().run(&end.scenario).unwrap();
        assert_eq!(end.finished.digest, again.digest);
        let resolved = end.scenario.resolved();
        let reread = Laboratory::new()
            .read("test", &resolved, None, &[])
            .unwrap();
        assert_eq!(Laboratory::new().run(&reread).unwrap().digest, again.digest);
        assert!(resolved.contains("priority 6") || resolved.contains("priority 5"));
    }
}

#[test]
fn the_next_event_is_known() {
    let mut run = SteppedRun::new(scenario(""), options(1, false)).unwrap();
    assert_eq!(run.next_event(), Ok(None));
    run.run_until(Time::from_us(3), &mut patient()).unwrap();
    run.post(message(0, 5, 1_000, 0)).unwrap();
    assert_eq!(run.next_event(), Ok(Some(Time::from_us(3))));
    run.run_until(Time::from_us(4), &mut patient()).unwrap();
    let next = run.next_event().unwrap().unwrap();
    assert!(next >= Time::from_us(4) && next < Time::from_us(6));
    // All events before this one have happened: a step up to it has none.
    assert_eq!(run.run_until(next, &mut patient()), Ok(vec![]));
    run.run_until(Time::from_us(100_000), &mut patient())
        .unwrap();
    assert_eq!(run.next_event(), Ok(None));
}

#[test]
fn the_scenario_s_own_traffic_runs_beside() {
    let own = "[[workload]]\nkind = \"permutation\"\nmessage = \"200kB\"\n";
    let mut run = SteppedRun::new(scenario(own), options(1, true)).unwrap();
    assert_eq!(run.post(message(0, 1, 5000, 9)), Ok(FlowId(8)));
    let events = run.run_until(Time::from_us(1000), &mut patient()).unwrap();
    assert_eq!(events.len(), 2 * 9);
    assert_eq!(run.message(FlowId(8)).unwrap().label, 9);
    assert_eq!(run.message(FlowId(7)), None);
    let end = run.finish();
    assert_eq!((end.finished.flows.len(), end.messages.len()), (8, 1));
    assert_eq!(end.finished.stopped, None);
    let again = Laboratory::new().run(&end.scenario).unwrap();
    assert_eq!(end.finished.digest, again.digest);
    let alone = Laboratory::new().run(&scenario(own)).unwrap();
    assert_ne!(end.finished.digest, alone.digest);
}

#[test]
fn a_run_ends_where_it_is_left() {
    let mut run = SteppedRun::new(scenario(""), options(1, false)).unwrap();
    run.post(message(0, 5, 10_000_000, 0)).unwrap();
    run.run_until(Time::from_us(20), &mut patient()).unwrap();
    run.post(message(1, 4, 100, 1)).unwrap();
    let end = run.finish();
    let finished: Vec<bool> = end
        .messages
        .iter()
        .map(|(.., result)| result.finished.is_some())
        .collect();
    assert_eq!(finished, [false, false]);
    assert_eq!(end.finished.stopped.unwrap().to_string(), "interrupted");
    // One that is dropped ends, too.
    drop(SteppedRun::new(scenario(""), options(1, false)).unwrap());
}

#[test]
fn an_interrupt_ends_a_step() {
    let mut run = SteppedRun::new(scenario(""), options(1, false)).unwrap();
    for round in 0..400 {
        run.post(message(round % 8, (round + 3) % 8, 50_000_000, 0))
            .unwrap();
    }
    let far = Time::from_us(900_000);
    run.run_until(far, &mut || RunDecision::Stop).unwrap();
    assert!(run.is_over() && run.now() < far);
    assert!(run.run_until(far, &mut patient()).is_err());
}

#[test]
fn what_cannot_be_meant_is_refused() {
    let mut run = SteppedRun::new(scenario(""), options(1, false)).unwrap();
    run.run_until(Time::from_us(3), &mut patient()).unwrap();
    let mut refused: Vec<String> = [
        message(0, 8, 1, 0),
        message(3, 3, 1, 0),
        message(0, 1, 0, 0),
        message(0, 1, u64::MAX / 16, 0),
    ]
    .into_iter()
    .map(|message| run.post(message).unwrap_err().to_string())
    .collect();
    let past = run.run_until(Time::from_us(2), &mut patient()).unwrap_err();
    refused.push(past.to_string());
    for more in [
        "[observe]\nseries.every = \"1us\"\n",
        "[observe]\ntrace = { pcap = [\"host:0\"] }\n",
    ] {
        let error = SteppedRun::new(scenario(more), options(1, false)).unwrap_err();
        refused.push(error.to_string());
    }
    let short = scenario("[stop]\nat-most = \"5us\"\n");
    let mut short = SteppedRun::new(short, options(1, false)).unwrap();
    short.post(message(0, 5, 1_000_000, 0)).unwrap();
    assert_eq!(
        short.run_until(Time::from_us(9), &mut patient()),
        Ok(vec![])
    );
    assert!(short.is_over());
    refused.push(short.post(message(0, 5, 1, 0)).unwrap_err().to_string());
    assert_snapshot!(refused.join("\n"), @"
    there is no host 8 in this fabric of 8
      fix: hosts are 0 to 7
    a message from host 3 to itself
      fix: send it to another host
    a message of no bytes
      fix: send a byte at least
    flow 0 (0->1) carries 1152921504606846975B, which takes longer than 30 days at the 400Gbps of the slowest link
      fix: send a smaller message, or use faster links
    2us is past: the run stands at 3us
      fix: name a later time
    a run in steps has no samples (`observe.series.every`)
      fix: leave `observe.series` out
    a run in steps has no captures and timelines (`observe.trace`)
      fix: leave `observe.trace` out
    the run is over: it reached `stop.at-most`, or was interrupted
      fix: raise `stop.at-most`, or begin another run
    ");
}
