use super::*;
use crate::record::FlowRow;
use crate::sample::{flow, incomplete_run, job, run, with_transports};
use clearway_units::Span;

#[test]
fn the_document_of_a_complete_run() {
    insta::assert_snapshot!(Summary::from_record(&run()).to_json(), @r#"
    {
      "schema": 1,
      "version": "0.1.0",
      "revision": "0123abc",
      "scenario": {
        "name": "permutation-4",
        "hash": "89abcdef01234567",
        "seed": 1
      },
      "status": "complete",
      "status_reason": null,
      "simulated_us": 100.7626,
      "flows": {
        "total": 4,
        "completed": 4,
        "started": 4
      },
      "fct_us": {
        "min": 48.8813,
        "mean": 64.469617,
        "p50": 50.0,
        "p99": 97.7626,
        "p999": 97.7626,
        "max": 97.7626
      },
      "ideal_fct_us": {
        "min": 48.8813,
        "mean": 48.8813,
        "p50": 48.8813,
        "p99": 48.8813,
        "p999": 48.8813,
        "max": 48.8813
      },
      "slowdown": {
        "min": 1.0,
        "mean": 1.3189014357228634,
        "p50": 1.0228860525395191,
        "p99": 2.0,
        "p999": 2.0,
        "max": 2.0
      },
      "goodput_bps": 641522975543.9413,
      "slowdown_by_size": [
        {
          "smallest_bytes": 2000000,
          "median_bytes": 2000000,
          "largest_bytes": 2000000,
          "flows": 4,
          "mean": 1.3189014357228634,
          "p50": 1.0228860525395191,
          "p95": 2.0,
          "p99": 2.0,
          "p999": 2.0,
          "max": 2.0
        }
      ],
      "slowdown_by_class": [
        {
          "above_bytes": 1000000,
          "up_to_bytes": 10000000,
          "flows": 4,
          "mean": 1.3189014357228634,
          "p50": 1.0228860525395191,
          "p95": 2.0,
          "p99": 2.0,
          "p999": 2.0,
          "max": 2.0
        }
      ],
      "start_finish": {
        "spearman": 0.8,
        "start_spread_us": 3.0,
        "finish_spread_us": 50.8813
      },
      "fairness": null,
      "jobs": [],
      "jobs_us": null,
      "packets": {
        "data_sent": 1961,
        "data_delivered": 1960,
        "retransmitted": 1,
        "dropped": 1,
        "headroom_drops": 0,
        "agent_drops": 0,
        "link_down_drops": 0,
        "no_route_drops": 0,
        "trimmed": 0,
        "marked": 28,
        "acks": 981,
        "probes": 8,
        "cnps": 0,
        "pfc_pauses": 0,
        "corrupted": 0,
        "rate_controls": 0,
        "rate_controls_lost": 0,
        "speculative": 0,
        "nacks": 0,
        "pulls": 0,
        "timeouts": 0,
        "duplicates": 0
      },
      "paused_links": 0,
      "longest_paused": [],
      "data_packet_hops": 7842,
      "packet_hops": 11774,
      "digest": "fedcba9876543210",
      "threads": 1,
      "cpu_seconds": 0.00125,
      "wall_seconds": 0.0015,
      "peak_rss_bytes": 95000000
    }
    "#);
}

#[test]
fn the_document_of_a_run_without_a_completed_flow() {
    let mut record = incomplete_run();
    record.flows.retain(|flow| flow.finish.is_none());
    let json = Summary::from_record(&record).to_json();
    insta::assert_snapshot!(json.lines().skip(9).take(19).collect::<Vec<_>>().join("\n"), @r#"
    "status": "incomplete",
    "status_reason": "stopped at stop.at-most = 50ms",
    "simulated_us": 100.7626,
    "flows": {
      "total": 2,
      "completed": 0,
      "started": 1
    },
    "fct_us": null,
    "ideal_fct_us": null,
    "slowdown": null,
    "goodput_bps": null,
    "slowdown_by_size": [],
    "slowdown_by_class": [],
    "start_finish": null,
    "fairness": null,
    "jobs": [],
    "jobs_us": null,
    "packets": {
    "#);
}

#[test]
fn warnings_stand_in_the_document() {
    let mut record = run();
    record.scenario_warnings = vec!["`transport.max-cwnd` = 10KB is small".into()];
    record.packets.dropped = 0;
    record.packets.timeouts = 2;
    let summary = Summary::from_record(&record);
    let json = summary.to_json();
    let from = json.find("  \"status_reason\"").unwrap();
    let to = json.find("  \"flows\"").unwrap();
    insta::assert_snapshot!(&json[from..to], @r#"
    "status_reason": null,
    "warnings": [
      "`transport.max-cwnd` = 10KB is small",
      "2 retransmission timeouts expired although no packet was lost: some packets waited longer than `transport.rto`; a longer timeout avoids the load of these retransmissions"
    ],
    "simulated_us": 100.7626,
    "#);
    assert_eq!(Summary::from_json(&json).unwrap(), summary);
}

#[test]
fn jobs_stand_in_the_document() {
    let mut record = run();
    record.jobs = vec![job("ring-all-reduce", 3, &[90, 110]), job("late", 1, &[])];
    record.jobs[1].bytes = None;
    let summary = Summary::from_record(&record);
    let json = summary.to_json();
    let from = json.find("  \"jobs\"").unwrap();
    let to = json.find("  \"packets\"").unwrap();
    insta::assert_snapshot!(&json[from..to], @r#"
    "jobs": [
      {
        "label": "ring-all-reduce",
        "section": "permutation",
        "ranks": 8,
        "hosts": [
          0,
          1,
          2,
          3,
          4,
          5,
          6,
          7
        ],
        "flows": {
          "first": 4,
          "count": 8
        },
        "iterations": 3,
        "completed": 2,
        "iteration_us": {
          "min": 90.0,
          "mean": 100.0,
          "p50": 90.0,
          "p99": 110.0,
          "p999": 110.0,
          "max": 110.0
        },
        "start_us": 5.0,
        "end_us": null,
        "bytes": 8000000,
        "algbw_gb_per_s": 80.0,
        "busbw_gb_per_s": 140.0,
        "iterations_us": [
          90.0,
          110.0
        ]
      },
      {
        "label": "late",
        "section": "permutation",
        "ranks": 8,
        "hosts": [
          0,
          1,
          2,
          3,
          4,
          5,
          6,
          7
        ],
        "flows": {
          "first": 4,
          "count": 8
        },
        "iterations": 1,
        "completed": 0,
        "iteration_us": null,
        "start_us": null,
        "end_us": null,
        "bytes": null,
        "algbw_gb_per_s": null,
        "busbw_gb_per_s": null,
        "iterations_us": []
      }
    ],
    "jobs_us": {
      "min": 100.0,
      "mean": 100.0,
      "p50": 100.0,
      "p99": 100.0,
      "p999": 100.0,
      "max": 100.0
    },
    "#);
    assert_eq!(Summary::from_json(&json).unwrap(), summary);
}

#[test]
fn connections_of_jobs_have_no_completion_time() {
    let mut record = run();
    let expected = Summary::from_record(&record);
    record.flows.push(FlowRow {
        ideal_fct: Span::ZERO,
        ..flow(9, Some(Span::from_ms(9)))
    });
    let summary = Summary::from_record(&record);
    assert_eq!(summary.flows.completed, expected.flows.completed + 1);
    assert_eq!(
        Summary {
            flows: expected.flows,
            goodput_bps: expected.goodput_bps,
            ..summary
        },
        expected
    );
    record.flows.drain(..4);
    let summary = Summary::from_record(&record);
    assert_eq!(
        (
            summary.fct_us,
            summary.ideal_fct_us,
            summary.slowdown,
            summary.start_finish
        ),
        (None, None, None, None)
    );
    assert_eq!((summary.flows.total, summary.flows.completed), (1, 1));
}

#[test]
fn an_interrupted_run_says_so() {
    let record = RunRecord {
        status: Status::Interrupted,
        ..run()
    };
    let json = Summary::from_record(&record).to_json();
    assert!(json.contains("\"status\": \"interrupted\",\n  \"status_reason\": null"));
}

#[test]
fn reading_gives_back_what_was_written() {
    for record in [run(), incomplete_run()] {
        let summary = Summary::from_record(&record);
        assert_eq!(Summary::from_json(&summary.to_json()).unwrap(), summary);
    }
}

#[test]
fn summaries_of_earlier_versions_are_completed_from_their_flows() {
    let record = incomplete_run();
    let summary = Summary::from_record(&record);
    let mut earlier: serde_json::Value = serde_json::from_str(&summary.to_json()).unwrap();
    for field in [
        "slowdown_by_size",
        "slowdown_by_class",
        "start_finish",
        "fairness",
        "jobs",
        "jobs_us",
    ] {
        earlier.as_object_mut().unwrap().remove(field).unwrap();
    }
    let mut read = Summary::from_json(&earlier.to_string()).unwrap();
    assert_ne!(read, summary);
    read.analyse(&record.flow_times(), &record.sections);
    assert_eq!(read, summary);
}

#[test]
fn fields_of_later_versions_are_skipped_but_not_other_schemas() {
    let json = Summary::from_record(&run()).to_json();
    let later = json.replacen("\"version\"", "\"tomorrow\": [1], \"version\"", 1);
    assert!(Summary::from_json(&later).is_ok());
    let other = json.replacen("\"schema\": 1", "\"schema\": 2", 1);
    let error = Summary::from_json(&other).unwrap_err();
    assert_eq!(
        error.to_string(),
        "a summary of schema 2, where this version reads schema 1"
    );
    for bad in ["", "[]", "{}", "{\"schema\": 1}"] {
        let error = Summary::from_json(bad).unwrap_err();
        assert!(matches!(error, ReadSummaryError::Malformed(_)), "{bad}");
    }
}

#[test]
fn transports_are_told_where_there_are_several() {
    let summary = Summary::from_record(&with_transports(run()));
    let json = summary.to_json();
    assert_eq!(Summary::from_json(&json).unwrap(), summary);
    let value: serde_json::Value = serde_json::from_str(&json).unwrap();
    let strack = &value["transports"][1];
    assert_eq!(strack["name"], "strack");
    assert_eq!(strack["sections"], serde_json::json!(["burst"]));
    assert_eq!(
        (&strack["flows"], &strack["retransmitted"]),
        (&2.into(), &7.into())
    );
    assert!(
        !Summary::from_record(&run())
            .to_json()
            .contains("transports")
    );
}

#[test]
fn the_order_of_flows_does_not_matter() {
    let mut backwards = incomplete_run();
    backwards.flows.reverse();
    assert_eq!(
        Summary::from_record(&backwards),
        Summary::from_record(&incomplete_run())
    );
}

#[test]
#[should_panic(expected = "finished at 1us, before its start at 2us")]
fn a_flow_that_ends_before_it_starts_is_our_bug() {
    let mut record = run();
    record.flows[0].start = Some(clearway_units::Time::from_us(2));
    record.flows[0].finish = Some(clearway_units::Time::from_us(1));
    Summary::from_record(&record);
}
