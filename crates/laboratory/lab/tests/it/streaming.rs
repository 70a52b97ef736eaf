//! Flows that come one by one make the same run as flows that are listed.

use clearway_lab::observe::{RunSampler, SampledSeries};
use clearway_lab::{
    Assembly, Finished, FlowResult, Laboratory, RunDecision, RunOptions, RunProgress, Scenario,
    Watch,
};
use clearway_units::FlowId;
use clearway_workload::FlowSpec;

const TRAFFIC: &str = r#"
    topology = { kind = "leaf-spine", hosts = 16, hosts-per-leaf = 4, spines = 2, link-rate = "100Gbps" }
    [[workload]]
    kind = "poisson"
    load = 0.4
    duration = "400us"
    [[workload]]
    kind = "poisson"
    sizes = "websearch"
    load = 0.2
    start = "50us"
    duration = "300us"
"#;

fn scenario(settings: &[&str]) -> Scenario {
    let settings: Vec<String> = settings.iter().map(|text| (*text).to_owned()).collect();
    Laboratory::new()
        .read("test", TRAFFIC, None, &settings)
        .unwrap()
}

struct Seen {
    finished: Finished,
    watched: Option<SampledSeries>,
    flows: Vec<(FlowId, FlowSpec, FlowResult)>,
    last_progress: Option<RunProgress>,
}

fn run(assembly: &Assembly, threads: usize) -> Seen {
    let mut flows = Vec::new();
    let mut last_progress = None;
    let options = RunOptions {
        threads: threads.into(),
        on_progress: &mut |progress| {
            last_progress = Some(progress);
            RunDecision::Continue
        },
        on_flow: &mut |id, flow, result| flows.push((id, flow.clone(), *result)),
    };
    let mut telemetry = RunSampler::new(assembly, None);
    let sampler = telemetry.as_mut().map(|own| own as _);
    let finished = assembly.run_sampled(options, Watch::Links, sampler);
    Seen {
        finished,
        watched: telemetry.map(RunSampler::into_watched),
        flows,
        last_progress,
    }
}

#[test]
fn the_same_run() {
    for settings in [
        &["transport.kind=strack"][..],
        &["transport.kind=rocev2", "switch.kind=shared-buffer"],
        &[
            "transport.kind=hpcc",
            "switch.kind=shared-buffer",
            "observe.series.every=3us",
        ],
        &["stop.at-most=120us", "observe.series.flows=[\"3\", \"40\"]"],
        &["observe.series.every=off"],
    ] {
        let scenario = scenario(settings);
        let listed = run(&Assembly::new(&scenario).unwrap(), 1);
        let streaming = Assembly::streaming(&scenario).unwrap();
        assert!(streaming.is_streaming() && streaming.workload.flows.is_empty());
        assert_eq!(streaming.flow_count(), listed.flows.len());
        let sections =
            [0, 1].map(|section| listed.flows.iter().any(|flow| flow.1.section == section));
        assert_eq!(sections, [true; 2], "flows know their sections");
        for threads in [1, 3] {
            let mut streamed = run(&streaming, threads);
            assert_eq!(
                streamed.finished.digest, listed.finished.digest,
                "{settings:?}"
            );
            assert_eq!(streamed.finished.stopped, listed.finished.stopped);
            assert_eq!(streamed.finished.links, listed.finished.links);
            // As text: values that are missing are no numbers, which equal nothing.
            let watched = |seen: &Seen| format!("{:?}", seen.watched);
            assert!(watched(&streamed) == watched(&listed), "{settings:?}");
            let total = |seen: &Seen| seen.last_progress.unwrap().flows;
            assert_eq!(total(&streamed), total(&listed));
            assert!(!streamed.flows.is_sorted_by_key(|(id, ..)| *id));
            streamed.flows.sort_by_key(|(id, ..)| *id);
            assert!(streamed.flows == listed.flows, "{settings:?}");
        }
    }
}

#[test]
fn what_needs_a_list_has_one() {
    for settings in [
        &["workload.kind=permutation"][..],
        &["observe.trace.perfetto=true"],
        &["observe.trace.pcap=[\"host:3\"]"],
    ] {
        let assembly = Assembly::streaming(&scenario(settings)).unwrap();
        assert!(!assembly.is_streaming(), "{settings:?}");
        assert_eq!(assembly.flow_count(), assembly.workload.flows.len());
    }
}
