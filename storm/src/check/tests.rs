use super::*;
use clearway_report::{IterationRow, JobRow, PacketCounts, RunRecord, ScenarioIdentity, Status};
use clearway_units::{Span, Time};

fn row(flow: u32, us: u64) -> FlowRow {
    FlowRow {
        flow,
        label: 1,
        src: 0,
        dst: 1,
        bytes: 4096,
        start: Some(Time::ZERO),
        finish: Some(Time::from_us(us)),
        ideal_fct: Span::from_us(5),
        packets: 3,
        retransmits: 1,
        marks: 0,
        probes: 0,
        timeouts: 0,
        attack: None,
        section: 0,
    }
}

/// A run of two flows and a job that passes all checks.
fn record() -> RunRecord {
    let iteration = IterationRow {
        begun: Time::ZERO,
        sending: Some(Time::from_us(1)),
        over: Some(Time::from_us(9)),
    };
    RunRecord {
        link_events: Vec::new(),
        version: "1".into(),
        revision: "2".into(),
        scenario: ScenarioIdentity {
            name: "n".into(),
            hash: "h".into(),
            seed: 1,
        },
        status: Status::Complete,
        given: Vec::new(),
        scenario_warnings: Vec::new(),
        simulated: Span::from_us(10),
        flows: vec![row(0, 10), row(1, 7)],
        written: None,
        sections: Vec::new(),
        tenants: Vec::new(),
        tenant_names: Vec::new(),
        jobs: vec![JobRow {
            label: "job".into(),
            hosts: vec![0, 1],
            section: 0,
            flows: 0..2,
            iterations: 1,
            bytes: None,
            bus_factor: None,
            times: vec![iteration],
        }],
        packets: PacketCounts {
            data_sent: 6,
            data_delivered: 5,
            retransmitted: 2,
            dropped: 1,
            acks: 5,
            duplicates: 1,
            ..PacketCounts::default()
        },
        transports: Vec::new(),
        paused_links: Vec::new(),
        data_packet_hops: 10,
        packet_hops: 20,
        digest: "d".into(),
        threads: 1,
        cpu_seconds: 0.1,
        wall_seconds: 0.1,
        peak_rss_bytes: 1,
        command: "clearway run".into(),
        observed: None,
        events: None,
        operations: None,
        fast_forward: None,
    }
}

fn results(record: &RunRecord) -> Results {
    Results {
        summary: Summary::from_record(record),
        rows: Rows::Flows(record.flows.clone()),
    }
}

/// Signature of the first failure in a run that ends with exit code `code`, without its files.
fn signature(record: &RunRecord, code: i32) -> Option<String> {
    let results = results(record);
    let checks = [
        results.status(Some(code)),
        results.numbers(),
        results.packets(),
        results.rows(&record.flows),
        results.slowdowns(&record.flows),
    ];
    let failed = checks.into_iter().find_map(Result::err);
    failed.map(|violation| violation.signature())
}

#[test]
fn a_sound_run_passes() {
    assert_eq!(signature(&record(), 0), None);
}

/// Each check fails for its own kind of fault.
#[test]
fn what_cannot_be_is_found() {
    type Change = fn(&mut RunRecord);
    let cases: [(&str, Change); 13] = [
        ("complete: although not all is done", |run| {
            run.flows[0].finish = None;
        }),
        ("complete: although not all is done", |run| {
            run.jobs[0].times[0].over = None;
        }),
        ("complete: although not all is done", |run| {
            run.jobs[0].iterations = 2;
        }),
        ("slowdown: below 1", |run| {
            run.flows[1].ideal_fct = Span::from_ps(7_000_001);
        }),
        ("conservation: data_delivered", |run| {
            run.packets.data_delivered = 7;
        }),
        ("conservation: duplicates", |run| run.packets.duplicates = 6),
        ("conservation: sum", |run| run.packets.dropped = 7),
        ("conservation: data_packet_hops", |run| {
            run.data_packet_hops = 21;
        }),
        ("sums: data_sent", |run| run.flows[0].packets = 4),
        ("sums: retransmitted", |run| run.flows[0].retransmits = 2),
        ("sums: numbers of flows", |run| run.flows[0].flow = 2),
        ("sums: after the end", |run| {
            run.simulated = Span::from_us(9);
        }),
        ("sums: paused links", |run| run.packets.pfc_pauses = 1),
    ];
    for (expected, change) in cases {
        let mut record = record();
        change(&mut record);
        assert_eq!(signature(&record, 0).as_deref(), Some(expected));
    }
    assert_eq!(
        signature(&record(), 1).as_deref(),
        Some("exit: code against status")
    );
}

#[test]
fn a_run_that_stops_early_says_so() {
    let mut record = record();
    record.flows[0].finish = None;
    record.status = Status::Incomplete {
        reason: "the limit".into(),
    };
    assert_eq!(signature(&record, 1), None);
    assert_eq!(
        signature(&record, 0).as_deref(),
        Some("exit: code against status")
    );
    record.flows[0].finish = Some(Time::from_us(10));
    assert_eq!(
        signature(&record, 1).as_deref(),
        Some("complete: not although all is done")
    );
}

#[test]
fn percentiles_are_in_order() {
    let mut results = results(&record());
    let slowdown = results.summary.slowdown.as_mut().unwrap();
    slowdown.p50 = slowdown.max + 1.0;
    let violation = results.numbers().unwrap_err();
    assert_eq!(violation.signature(), "numbers: slowdown");
}

#[test]
fn runs_that_differ_are_told_apart() {
    let folder = Path::new("nowhere");
    let mut other = record();
    other.threads = 2;
    other.cpu_seconds = 7.0;
    let one = results(&record());
    assert_eq!(same((&one, folder), (&results(&other), folder)), Ok(()));
    other.packets.marked = 1;
    let violation = same((&one, folder), (&results(&other), folder)).unwrap_err();
    assert_eq!(violation.signature(), "digest: same digest, other summary");
    other.digest = "e".into();
    let violation = same((&one, folder), (&results(&other), folder)).unwrap_err();
    assert_eq!(violation.signature(), "digest: of two runs");
}

#[test]
fn ends_are_told_apart() {
    let ended = |code, status: &str, errors: &str, hung| {
        let ended = Ended {
            code,
            status: status.into(),
            errors: errors.into(),
            hung,
            out: "nowhere".into(),
        };
        exit(&ended).err().map(|violation| violation.signature())
    };
    for code in 0..=2 {
        assert_eq!(ended(Some(code), "", "", false), None);
    }
    let panicked = "\nthread 'main' (5) panicked at crates/x/src/y.rs:12:5:\nwhat\n";
    assert_eq!(
        ended(Some(3), "exit status: 3", panicked, false).as_deref(),
        Some("panic: crates/x/src/y.rs:12")
    );
    let memory = "memory allocation of 64 bytes failed\n";
    let aborted = "signal: 6 (SIGABRT)";
    assert_eq!(
        ended(None, aborted, memory, false).as_deref(),
        Some("memory: allocation failed")
    );
    assert_eq!(
        ended(None, "signal: 24 (SIGXCPU)", "", false).as_deref(),
        Some("time: cpu")
    );
    // The machine has too little memory.
    assert_eq!(
        ended(None, "signal: 9 (SIGKILL)", "", false).as_deref(),
        Some("exit: signal: 9 (SIGKILL)")
    );
    assert_eq!(
        ended(None, "signal: 9 (SIGKILL)", "", true).as_deref(),
        Some("time: wall")
    );
    assert_eq!(
        ended(None, aborted, "stack overflow\n", false).as_deref(),
        Some("exit: stack overflow")
    );
    assert_eq!(
        ended(Some(5), "exit status: 5", "", false).as_deref(),
        Some("exit: exit status: 5")
    );
}
