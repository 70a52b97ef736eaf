//! TMDML-NIC on the fabric that it was made for: a flow that passes two bottlenecks, and others that pass one of them.

use clearway_lab::{Assembly, FlowResult, Laboratory, RunDecision, RunOptions, Watch};
use std::path::Path;

/// Three switches (5, 6, 7) in a row at 10 Gb/s and 1 us. Hosts 0 and 2 are on the first, 3 on the second, 1 and 4 on the last.
const ROW: &str = "\
8 3 7
5 6 7
0 5 10Gbps 1us 0
2 5 10Gbps 1us 0
5 6 10Gbps 1us 0
3 6 10Gbps 1us 0
6 7 10Gbps 1us 0
4 7 10Gbps 1us 0
1 7 10Gbps 1us 0
";

/// Flow 0 shares the link between the first switches with flow 1, and that to host 1 with flow 2.
const SCENARIO: &str = "\
seed = 1
stop.at-most = \"1s\"
[topology]
file = \"row.txt\"
[switch]
kind = \"shared-buffer\"
alpha = 0.125
ecn = { kmin = \"5KB\", kmax = \"50KB\", pmax = 0.03 }
[transport]
kind = \"tmdml\"
rate-ai = \"auto\"
rate-hai = \"auto\"
rate-timer = \"55us\"
byte-counter = \"auto\"
cnp-schedule = \"on-mark\"
[[workload]]
kind = \"flows\"
flows = [\"0->1 20MB\", \"2->3 20MB\", \"4->1 20MB\"]
";

/// Milliseconds of each flow. Tests run at the same time, so each has a folder of its own.
fn completions(test: &str, overrides: &[&str], threads: usize) -> Vec<f64> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("progress-{test}"));
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("row.txt"), ROW).unwrap();
    let overrides: Vec<String> = overrides.iter().map(ToString::to_string).collect();
    let scenario = Laboratory::new()
        .read("s.toml", SCENARIO, Some(&folder), &overrides)
        .unwrap_or_else(|error| panic!("{error}"));
    let options = RunOptions {
        threads: threads.into(),
        on_progress: &mut |_| RunDecision::Continue,
        on_flow: &mut |_, _, _| (),
    };
    let finished = Assembly::new(&scenario).unwrap().run(options, Watch::Off);
    let completion = |flow: &FlowResult| flow.completion().unwrap().as_us() / 1000.0;
    finished.flows.iter().map(completion).collect()
}

/// Three times 20 MB in packets of 1064 bytes, two flows on each of two links of 10 Gb/s: 34 ms if all are treated alike.
#[test]
fn a_flow_with_two_bottlenecks_keeps_up_with_its_neighbour_at_the_receiver() {
    for seed in ["seed=1", "seed=2", "seed=3"] {
        let even = completions("bottlenecks", &[seed], 1);
        let plain = completions("bottlenecks", &[seed, "transport.feedback=interval"], 1);
        // Marked twice as often, it is last by a quarter and more under DCQCN (TMDML §III.C); here it is level.
        assert!(plain[0] > 1.25 * plain[2], "{plain:?}");
        assert!((0.96..1.04).contains(&(even[0] / even[2])), "{even:?}");
        let last = |completions: &[f64]| completions.iter().copied().fold(0.0, f64::max);
        assert!(last(&even) < 0.98 * last(&plain), "{even:?} {plain:?}");
        assert!(last(&even) < 39.0, "{even:?}");
    }
}

#[test]
fn the_number_of_threads_changes_nothing() {
    let [one, three] = [1, 3].map(|threads| completions("threads", &[], threads));
    assert_eq!(one, three);
}
