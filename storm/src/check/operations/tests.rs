use super::*;
use clearway_report::{
    FabricUse, OperationClass, OperationResults, OperationRow, OperationTotals, PacketCounts,
    ReductionTableUse, RunRecord, ScenarioIdentity, Status, write_operations,
};
use clearway_testing::Folder;
use clearway_units::Span;

fn row(gpu: u32, number: u32, kind: OperationClass, sent: u64) -> OperationRow {
    OperationRow {
        gpu,
        number,
        section: 0,
        target: 1 - gpu,
        kind,
        posted_cycle: sent - 1,
        sent_cycle: sent,
        completed_cycle: sent + 30,
    }
}

/// A run of two GPUs that passes all checks.
fn record() -> RunRecord {
    let results = OperationResults {
        totals: OperationTotals {
            completed: 3,
            posted: 3,
            gpus: 2,
            cycle_ps: 640,
            cycles: 36,
            effective_bandwidth: 0.5,
        },
        reduction_table: ReductionTableUse {
            peak_entries: 2,
            mean_entries: 0.5,
            waits: 1,
        },
        fabric: FabricUse {
            peak_queue_flits: 9,
            peak_responses: 1,
            flit_hops: 120,
            packet_hops: 12,
        },
        sections: vec!["section".into()],
        rows: vec![
            row(0, 0, OperationClass::Reduction, 1),
            row(0, 1, OperationClass::Reduction, 7),
            row(1, 0, OperationClass::Write, 4),
        ],
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
        simulated: Span::from_ps(37 * 640),
        flows: Vec::new(),
        written: None,
        sections: Vec::new(),
        tenants: Vec::new(),
        tenant_names: Vec::new(),
        jobs: Vec::new(),
        packets: PacketCounts::default(),
        transports: Vec::new(),
        paused_links: Vec::new(),
        data_packet_hops: 0,
        packet_hops: 12,
        digest: "d".into(),
        threads: 1,
        cpu_seconds: 0.1,
        wall_seconds: 0.1,
        peak_rss_bytes: 1,
        command: "clearway run".into(),
        observed: None,
        events: None,
        fast_forward: None,
        operations: Some(results),
    }
}

/// Signature of the first failure in a run with the results `record`.
fn signature(folder: &Folder, record: &RunRecord, scenario: &str) -> Option<String> {
    let results = record.operations.as_ref().unwrap();
    let file = File::create(folder.join(OPERATIONS)).unwrap();
    write_operations(file, record, results).unwrap();
    fs::write(folder.join("scenario.toml"), scenario).unwrap();
    let operations = Operations::read(folder).unwrap();
    let verdict = operations.check(&Summary::from_record(record), folder);
    verdict.err().map(|violation| violation.signature())
}

const SCENARIO: &str = "[switch]\noutput-queue = 9\nreduction-table = 2\n";

#[test]
fn a_sound_run_passes() {
    let folder = Folder::new("storm-operations-sound");
    assert_eq!(signature(&folder, &record(), SCENARIO), None);
    let mut stopped = record();
    let results = stopped.operations.as_mut().unwrap();
    results.rows.remove(0);
    results.totals.completed = 2;
    assert_eq!(signature(&folder, &stopped, SCENARIO), None);
    // Nothing to do.
    let results = stopped.operations.as_mut().unwrap();
    results.rows.clear();
    results.totals = OperationTotals {
        cycle_ps: 640,
        ..OperationTotals::default()
    };
    assert_eq!(signature(&folder, &stopped, SCENARIO), None);
}

/// Each check fails for its own kind of fault.
#[test]
fn what_cannot_be_is_found() {
    type Change = fn(&mut OperationResults);
    let cases: [(&str, Change); 16] = [
        ("more than posted", |all| all.totals.posted = 2),
        ("effective_bandwidth", |all| {
            all.totals.effective_bandwidth = f64::INFINITY;
        }),
        ("nothing received", |all| {
            all.totals.effective_bandwidth = 0.0;
        }),
        ("mean_entries", |all| all.reduction_table.mean_entries = 2.1),
        ("packet_hops", |all| all.fabric.packet_hops = 13),
        ("flit_hops", |all| all.fabric.flit_hops = 11),
        ("order of times", |all| all.rows[1].posted_cycle = 8),
        ("completed with its sending", |all| {
            all.rows[1].completed_cycle = 7;
        }),
        ("after the end", |all| all.rows[1].completed_cycle = 38),
        ("GPU of a row", |all| all.rows[2].gpu = 2),
        ("no such GPU", |all| all.rows[2].target = 2),
        ("to itself", |all| all.rows[2].target = 1),
        ("order of rows", |all| all.rows[1].number = 0),
        ("number left out", |all| all.rows[1].number = 2),
        ("output-queue", |all| all.fabric.peak_queue_flits = 10),
        ("reduction-table", |all| {
            all.reduction_table.peak_entries = 3;
        }),
    ];
    let folder = Folder::new("storm-operations-wrong");
    for (expected, change) in cases {
        let mut record = record();
        change(record.operations.as_mut().unwrap());
        let expected = format!("operations: {expected}");
        assert_eq!(signature(&folder, &record, SCENARIO), Some(expected));
    }
}

#[test]
fn sums_and_files_are_compared() {
    let folder = Folder::new("storm-operations-sums");
    let mut fewer = record();
    let results = fewer.operations.as_mut().unwrap();
    results.rows.pop();
    let found = signature(&folder, &fewer, SCENARIO);
    assert_eq!(found.as_deref(), Some("sums: operations.completed"));
    let mut longer = record();
    longer.operations.as_mut().unwrap().totals.cycles = 37;
    let found = signature(&folder, &longer, SCENARIO);
    assert_eq!(found.as_deref(), Some("sums: operations.cycles"));

    let scenario = "reduction-table = \"auto\"\n";
    let found = signature(&folder, &record(), scenario);
    assert_eq!(found.as_deref(), Some("operations: waits for nothing"));
    let scenario = "[observe]\ntrace.perfetto = true\n";
    let found = signature(&folder, &record(), scenario);
    assert_eq!(found.as_deref(), Some("file: trace.perfetto"));

    let record = record();
    let mut summary = Summary::from_record(&record);
    let operations = summary.operations.as_mut().unwrap();
    operations.by_section[0].figures.count += 1;
    signature(&folder, &record, SCENARIO);
    let rows = Operations::read(&folder).unwrap();
    let found = rows.check(&summary, &folder).unwrap_err();
    assert_eq!(found.signature(), "sums: operations.by_section");
}
