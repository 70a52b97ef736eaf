//! The traces that the example of `formats` writes can be read and run.

#[allow(dead_code, reason = "its main is not called")]
#[path = "../../../formats/examples/traces.rs"]
mod traces;

use clearway_scenario::{BuildContext, WorkloadSettings};
use clearway_units::{Rate, Value};
use clearway_workload::JobSpec;
use std::path::{Path, PathBuf};

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join(name)
}

/// The job of a trace without warnings.
fn job(folder: &Path, settings: &[(&str, &str)]) -> JobSpec {
    let (job, warnings) = job_and_warnings(folder, settings);
    assert_eq!(warnings, [""; 0]);
    job
}

fn job_and_warnings(folder: &Path, settings: &[(&str, &str)]) -> (JobSpec, Vec<String>) {
    const NIC_RATES: [Rate; 8] = [Rate::from_gbps(400); 8];
    let mut workload = WorkloadSettings::named("trace").unwrap();
    for (key, value) in settings {
        workload.set(key, &Value::Text((*value).into())).unwrap();
    }
    let context = BuildContext {
        hosts: 8,
        nic_rates: &NIC_RATES,
        gpus_per_node: 1,
        dimensions: &[],
        host_numbers: None,
        seed: 1,
        section: 0,
        base_dir: Some(folder),
        taken: BuildContext::ALL_FREE,
    };
    let mut loaded = workload.load(&context).unwrap();
    let warnings = loaded.warnings.iter().map(ToString::to_string).collect();
    assert_eq!(loaded.jobs.len(), 1);
    (loaded.jobs.remove(0), warnings)
}

#[test]
fn each_trace_of_the_example_runs() {
    let folder = folder("example-traces/new");
    let names = traces::write(&folder).unwrap();
    assert_eq!(names.len(), 16);
    let text = job(&folder, &[("file", "exchange.goal")]);
    let sent = |job: &JobSpec| {
        let sent = job.plan.graph().bytes_sent();
        sent.iter().map(|bytes| bytes.as_u64()).collect::<Vec<_>>()
    };
    assert_eq!(sent(&text), [1_000_000; 4]);
    assert_eq!(job(&folder, &[("file", "exchange.bin")]).plan, text.plan);
    let groups = ("comm-groups", "training.groups.json");
    let training = job(&folder, &[("file", "training"), groups]);
    // All-reduces of two ranks: each sends the whole.
    assert_eq!(sent(&training), [24_000_000; 4]);
    let transformer = job(&folder, &[("file", "transformer.txt")]);
    // Of each layer two all-reduces of two ranks, and three quarters of a reduce-scatter of four.
    assert_eq!(sent(&transformer), [2 * (8_000_000 + 12_000_000); 8]);
    let profile = job(&folder, &[("file", "profile.2.json")]);
    assert_eq!(profile.label, "profile");
    // Two all-reduces of 16 MB in each of two steps: a ring of four ranks sends 3/2 of each.
    assert_eq!(sent(&profile), [2 * 2 * 24_000_000; 4]);
    let (execution, warnings) = job_and_warnings(&folder, &[("file", "execution.0.json")]);
    assert_eq!(warnings.len(), 1, "it has no times");
    // Two all-gathers and two reduce-scatters of 4 MB, of each three quarters.
    assert_eq!(sent(&execution), [4 * 3_000_000; 4]);
}

#[test]
fn a_folder_that_cannot_be_made_is_an_error() {
    let file = folder("example-traces-file");
    std::fs::write(&file, "").unwrap();
    assert!(traces::write(&file).is_err());
}
