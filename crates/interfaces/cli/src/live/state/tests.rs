use super::*;
use std::thread;

fn at(us: u64) -> RunProgress {
    RunProgress {
        now: Time::from_us(us),
        flows_sent: 0,
        flows: 3,
        hops: 10 * us,
    }
}

fn round(shared: &Shared, us: u64) -> RunDecision {
    shared.on_round(at(us), |_| (), || false)
}

fn status(shared: &Shared) -> &'static str {
    shared.view(0, 0).status
}

fn wait_for(shared: &Shared, wanted: &str) {
    while status(shared) != wanted {
        thread::sleep(Duration::from_millis(1));
    }
}

fn step_to(until: &str) -> Order {
    Order::Step {
        until: until.into(),
    }
}

/// Guard that stops the run on drop: a failing test must not wait for its run.
struct Stopping<'a>(&'a Shared);

impl Drop for Stopping<'_> {
    fn drop(&mut self) {
        let _ = self.0.order(Order::Stop {});
    }
}

/// Runs rounds of 1 µs beside `control` until a stop; the simulated time of the stop.
fn beside(shared: &Shared, control: impl FnOnce()) -> u64 {
    thread::scope(|scope| {
        let stopping = Stopping(shared);
        let run = scope.spawn(|| {
            let mut us = 1;
            while round(shared, us) == RunDecision::Continue {
                us += 1;
            }
            us
        });
        control();
        drop(stopping);
        run.join().unwrap()
    })
}

#[test]
fn nobody_holds_a_run_that_nobody_asked_to_wait() {
    let shared = Shared::new((3, 1000), None, false);
    for us in 1..100 {
        assert_eq!(round(&shared, us), RunDecision::Continue);
    }
    let view = shared.view(0, 0);
    assert_eq!((view.status, view.progress), ("running", at(99)));
}

#[test]
fn a_paused_run_stands_still_and_goes_on() {
    let shared = Shared::new((3, 1000), None, false);
    let end = beside(&shared, || {
        shared.order(Order::Pause {}).unwrap();
        wait_for(&shared, "paused");
        let before = shared.view(0, 0).progress;
        thread::sleep(2 * GLANCE);
        assert_eq!(shared.view(0, 0).progress, before);
        shared.order(Order::Resume {}).unwrap();
        while shared.view(0, 0).progress.now <= before.now {
            thread::yield_now();
        }
    });
    assert_eq!(shared.view(0, 0).progress, at(end));
}

#[test]
fn a_step_ends_with_the_first_round_that_reaches_its_time() {
    let shared = Shared::new((3, 1000), None, true);
    let end = beside(&shared, || {
        wait_for(&shared, "paused");
        assert_eq!(shared.view(0, 0).progress, at(1), "held from the beginning");
        shared.order(step_to("7.5us")).unwrap();
        wait_for(&shared, "paused");
        let view = shared.view(0, 0);
        assert_eq!((view.progress, view.until), (at(8), None));
        let passed = Refusal::Passed(Time::from_us(8), Time::from_us(8));
        assert_eq!(shared.order(step_to("8us")), Err(passed));
        assert_eq!(status(&shared), "paused", "a wrong order changes nothing");
        let wrong = shared.order(step_to("soon")).unwrap_err().to_string();
        assert!(wrong.starts_with("cannot step to `soon`: expected a duration"));
        shared.order(step_to("9us")).unwrap();
        wait_for(&shared, "paused");
        assert_eq!(shared.view(0, 0).progress, at(9));
    });
    assert_eq!(end, 9, "stopped while it waited");
}

#[test]
fn a_paused_run_hears_ctrl_c() {
    let shared = Shared::new((3, 1000), None, true);
    assert_eq!(shared.on_round(at(1), |_| (), || true), RunDecision::Stop);
}

#[test]
fn a_run_that_is_over_takes_no_orders_and_tells_its_end() {
    let shared = Shared::new((3, 1000), None, false);
    round(&shared, 1);
    shared.order(step_to("7.5us")).unwrap();
    assert_eq!(shared.view(0, 0).until, Some(Time::from_ps(7_500_000)));
    shared.on_simulated(|_| ());
    assert_eq!(status(&shared), "writing results");
    assert_eq!(shared.order(Order::Pause {}), Err(Refusal::Over));
    let ending = Ending {
        status: "incomplete",
        reason: Some("a \"limit\"".into()),
        figures: vec![Tile {
            name: "Drops",
            value: "3".into(),
            under: String::new(),
        }],
        folder: "out/x".into(),
        report: Some("report.html"),
        report_file: PathBuf::new(),
    };
    assert!(shared.is_watched(), "somebody has looked");
    shared.on_end(ending);
    let json = shared.view(0, 0).to_json().unwrap();
    assert_eq!(
        json,
        r#"{"status":"incomplete","now":1.0,"until":null,"flows":{"sent":0,"total":3},"hops":10,"expected_hops":1000,"#
            .to_owned()
            + r#""epoch":0,"curves":[],"from":0,"samples":[],"#
            + r#""ending":{"reason":"a \"limit\"","figures":[{"name":"Drops","value":"3","under":""}],"folder":"out/x","report":"report.html"}}"#
    );
}

#[test]
fn a_run_that_nobody_looks_at_is_known_as_such() {
    let shared = Shared::new((3, 1000), None, false);
    round(&shared, 1);
    shared.on_simulated(|_| ());
    let ending = Ending {
        status: "complete",
        reason: None,
        figures: Vec::new(),
        folder: String::new(),
        report: None,
        report_file: PathBuf::new(),
    };
    shared.on_end(ending);
    assert!(!shared.is_watched());
}

#[test]
fn orders_are_read_strictly() {
    let read = |text: &str| serde_json::from_str::<Order>(text);
    assert_eq!(read(r#"{"action":"pause"}"#).unwrap(), Order::Pause {});
    assert_eq!(
        read(r#"{"action":"step","until":"1us"}"#).unwrap(),
        step_to("1us")
    );
    for wrong in [
        r#"{"action":"step"}"#,
        r#"{"action":"step","until":5}"#,
        r#"{"action":"explode"}"#,
        r#"{"action":"stop","reason":"x"}"#,
        r#"{"action":"pause","until":"1us"}"#,
        r#"{"action":"resume","now":1}"#,
        "{}",
        "null",
    ] {
        assert!(read(wrong).is_err(), "{wrong}");
    }
}
