//! Small records for the tests of all report crates, each of which includes this file as a module.
//!
//! This file uses only public items, by the name of their crate, because the other crates see no others.

pub(crate) mod sweep;

use clearway_report::plan::{
    CircleRow, PlanRecord, PlanVerdict, PlannedJobRow, PlannedLinkRow, PlannedPhase,
};
use clearway_report::sweep::{AxisNumbers, SummarizedRun, SweepAxis, SweepFailure, SweepRecord};
use clearway_report::{
    FlowRow, IterationRow, JobRow, OperationResults, OperationRow, PausedLink, RunRecord,
    ScenarioIdentity, Status, Summary, TransportRow,
};
use clearway_results::{
    FabricUse, OperationClass, OperationTotals, PacketCounts, ReductionTableUse,
};
use clearway_units::{Span, Time};

/// A flow of 2 MB that took `fct`.
pub(crate) fn flow(number: u32, fct: Option<Span>) -> FlowRow {
    let start = Time::from_us(u64::from(number));
    FlowRow {
        flow: number,
        label: 1000 + u64::from(number),
        src: number,
        dst: number + 1,
        bytes: 2_000_000,
        start: Some(start),
        finish: fct.map(|fct| start + fct),
        ideal_fct: Span::from_ps(48_881_300),
        packets: 490,
        retransmits: 1,
        marks: 7,
        probes: 2,
        timeouts: 3,
        attack: None,
        section: 0,
    }
}

/// A collective of 8 MB on 8 ranks: its completed iterations follow one another from 5 us on and take `us` each.
pub(crate) fn job(label: &str, iterations: u32, us: &[u64]) -> JobRow {
    let mut begun = Time::from_us(5);
    let iteration = |&us: &u64| {
        let over = begun + Span::from_us(us);
        IterationRow {
            begun: std::mem::replace(&mut begun, over),
            sending: Some(over),
            over: Some(over),
        }
    };
    JobRow {
        label: label.into(),
        hosts: (0..8).collect(),
        section: 0,
        flows: 4..12,
        iterations,
        bytes: Some(8_000_000),
        bus_factor: Some(1.75),
        times: us.iter().map(iteration).collect(),
    }
}

/// Four flows, all completed.
pub(crate) fn run() -> RunRecord {
    let fcts = [48_881_300, 50_000_000, 97_762_600, 61_234_567];
    let flows = (0..).zip(fcts);
    RunRecord {
        version: "0.1.0".into(),
        revision: "0123abc".into(),
        scenario: ScenarioIdentity {
            name: "permutation-4".into(),
            hash: "89abcdef01234567".into(),
            seed: 1,
        },
        status: Status::Complete,
        given: Vec::new(),
        scenario_warnings: Vec::new(),
        simulated: Span::from_ps(100_762_600),
        flows: flows
            .map(|(number, ps)| flow(number, Some(Span::from_ps(ps))))
            .collect(),
        written: None,
        sections: vec!["permutation".into(), "burst".into()],
        tenants: Vec::new(),
        tenant_names: Vec::new(),
        jobs: Vec::new(),
        operations: None,
        fast_forward: None,
        packets: PacketCounts {
            data_sent: 1_961,
            data_delivered: 1_960,
            retransmitted: 1,
            dropped: 1,
            marked: 28,
            acks: 981,
            probes: 8,
            ..PacketCounts::default()
        },
        transports: Vec::new(),
        paused_links: Vec::new(),
        link_events: Vec::new(),
        data_packet_hops: 7_842,
        packet_hops: 11_774,
        digest: "fedcba9876543210".into(),
        threads: 1,
        cpu_seconds: 0.00125,
        wall_seconds: 0.0015,
        peak_rss_bytes: 95_000_000,
        command: "clearway run quickstart".into(),
        observed: None,
        events: None,
    }
}

/// The same run, with one flow that did not complete and one that did not start, on a bad network.
pub(crate) fn incomplete_run() -> RunRecord {
    let mut record = run();
    let never_started = FlowRow {
        start: None,
        packets: 0,
        ..flow(5, None)
    };
    record.flows.extend([flow(4, None), never_started]);
    record.status = Status::Incomplete {
        reason: "stopped at stop.at-most = 50ms".into(),
    };
    record.packets.corrupted = 12;
    record.packets.cnps = 34;
    record.packets.pfc_pauses = 5_678;
    record.packets.headroom_drops = 3;
    record.paused_links = [("h0-leaf0", 5_670, 12.5), ("h1-leaf0", 8, 99.0)]
        .map(|(link, pauses, paused_us)| PausedLink {
            link: link.into(),
            pauses,
            paused_us,
        })
        .into();
    record.packets.duplicates = 9;
    record
}

/// A record whose two sections use different transports.
pub(crate) fn with_transports(mut record: RunRecord) -> RunRecord {
    let transport = |name: &str, section, retransmitted| TransportRow {
        name: name.into(),
        sections: vec![section],
        data_sent: 1_234,
        retransmitted,
        timeouts: 0,
    };
    for flow in &mut record.flows[2..] {
        flow.section = 1;
    }
    record.transports = vec![transport("rocev2", 0, 56), transport("strack", 1, 7)];
    record
}

/// A scale-up run of 16 GPUs: 512 operations in two sections, with each kind of unicast and multicast.
pub(crate) fn scale_up_run() -> RunRecord {
    let row = |gpu: u32, number: u32| {
        let kind = OperationClass::ALL[(number % 4) as usize];
        let noise = clearway_units::mix64((u64::from(gpu) << 32) + u64::from(number)) % 400;
        let sent = u64::from(number) * 18 + u64::from(gpu);
        OperationRow {
            gpu,
            number,
            section: u32::from(!kind.goes_to_group()),
            target: match kind.goes_to_group() {
                true => gpu / 8,
                false => (gpu + 5) % 16,
            },
            kind,
            posted_cycle: sent / 2,
            sent_cycle: sent,
            completed_cycle: sent + 600 + noise + u64::from(number % 4) * 50,
        }
    };
    let rows = (0..16).flat_map(|gpu| (0..32).map(move |number| row(gpu, number)));
    let mut record = run();
    record.scenario.name = "reduce-16".into();
    record.flows.clear();
    record.packets = PacketCounts::default();
    (record.data_packet_hops, record.packet_hops) = (0, 4_096);
    record.simulated = Span::from_ps(1_100_800);
    record.command = "clearway run reduce-16.toml".into();
    record.operations = Some(OperationResults {
        totals: OperationTotals {
            completed: 512,
            posted: 512,
            gpus: 16,
            cycle_ps: 640,
            cycles: 1_720,
            effective_bandwidth: 0.8125,
        },
        reduction_table: ReductionTableUse {
            peak_entries: 96,
            mean_entries: 40.2,
            waits: 7,
        },
        fabric: FabricUse {
            peak_queue_flits: 288,
            peak_responses: 12,
            flit_hops: 40_960,
            packet_hops: 4_096,
        },
        sections: vec!["all-reduce".into(), "point to point".into()],
        rows: rows.collect(),
    });
    record
}

/// Two jobs of 40 and 60 ms, whose arcs do not all fit.
pub(crate) fn plan() -> PlanRecord {
    let phase = |start_us, length_us| PlannedPhase {
        start_us,
        length_us,
        share: Some(1.0),
        rate_bps: None,
    };
    let job = |name: &str, period_us: f64, busy_us: f64, repeats, shift_us| PlannedJobRow {
        name: name.into(),
        placement: None,
        circle: Some(0),
        alone_us: period_us,
        period_us,
        communication_share: busy_us / period_us,
        repeats,
        shift_us,
        angle_degrees: shift_us * 360.0 / 120e3,
        priority: u32::from(shift_us > 0.0),
        communication: vec![phase(period_us - busy_us, busy_us)],
        compute: Vec::new(),
    };
    PlanRecord {
        version: "0.1.0".into(),
        revision: "unknown".into(),
        command: "clearway plan x.toml".into(),
        name: "x".into(),
        hash: "01234567".into(),
        verdict: PlanVerdict::Incompatible,
        missing: 1.0 / 12.0,
        missing_before: 1.0 / 12.0,
        settings: vec![("grid", "1ms".into())],
        jobs: vec![job("B", 60e3, 20e3, 2, 0.0), job("A", 40e3, 15e3, 3, 10e3)],
        links: vec![PlannedLinkRow {
            name: "L1".into(),
            kind: "link",
            jobs: vec![0, 1],
            circle: Some(0),
            load: 85.0 / 120.0,
            score: 11.0 / 12.0,
            score_before: 10.0 / 12.0,
            overlap_us: 10e3,
            compatible: false,
            shares: vec![vec![1.0], vec![1.0]],
        }],
        circles: vec![CircleRow {
            jobs: vec![0, 1],
            perimeter_us: 120e3,
            tick_us: 1e3,
            sectors: 120,
            overlap_us: 10e3,
            least_overlap_us: 10e3,
            verdict: PlanVerdict::Incompatible,
            work: 720,
        }],
        moves: Vec::new(),
        reasons: vec!["`L1`: 10ms of 120ms collide".into()],
        profiled: false,
        trials: None,
    }
}

/// Two values on each of two axes, with two seeds; the last run but one is incomplete, the last one failed.
pub(crate) fn sweep() -> SweepRecord {
    let mut sweep = SweepRecord {
        name: "spray-study".into(),
        version: "1.0".into(),
        revision: "abc".into(),
        command: "clearway sweep spray-study".into(),
        axes: vec![
            SweepAxis {
                key: "transport.spray".into(),
                values: vec!["single".into(), "adaptive".into()],
                numbers: None,
                given: false,
            },
            SweepAxis {
                key: "workload.message".into(),
                values: vec!["64kB".into(), "1MB".into()],
                numbers: Some(AxisNumbers {
                    unit: "bytes".into(),
                    values: vec![64e3, 1e6],
                }),
                given: false,
            },
        ],
        measures: Vec::new(),
        runs: Vec::new(),
        missing: 0,
        failures: vec![SweepFailure {
            key: "0000000000000007".into(),
            place: vec![1, 1],
            seed: 2,
            reason: "killed by signal 9".into(),
        }],
        assertions: Vec::new(),
        tuning: None,
    };
    let runs = (0..8).map(|number: u32| {
        let place = vec![number / 4, number / 2 % 2];
        let mut record = match number {
            6 => incomplete_run(),
            _ => run(),
        };
        let late = Span::from_us(u64::from(10 * place[1] + number % 2));
        for flow in &mut record.flows {
            flow.finish = flow.finish.map(|finish| finish + late);
        }
        SummarizedRun {
            key: format!("{number:016x}"),
            place,
            seed: u64::from(number % 2) + 1,
            summary: (number < 7).then(|| Summary::from_record(&record)),
        }
    });
    sweep.measure(&runs.collect::<Vec<_>>());
    sweep
}
