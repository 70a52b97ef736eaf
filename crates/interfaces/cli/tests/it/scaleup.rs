//! Scale-up fabrics from the command line.

use crate::common::Bench;
use clearway_report::OperationSummary;

const SMALL: [&str; 4] = [
    "--set",
    "workload.transactions=8",
    "--set",
    "topology.gpus=16",
];

fn operations(folder: &Bench, more: &[&str]) -> (String, OperationSummary) {
    let arguments = [&["nvlink-64"], &SMALL[..], more].concat();
    let summary = folder.summary(&arguments);
    (
        summary.digest,
        summary.operations.expect("a run of a scale-up fabric"),
    )
}

#[test]
fn results_do_not_depend_on_threads_or_process() {
    for control in ["none", "window", "aimd", "3cpo"] {
        let folder = Bench::new(&format!("scaleup-{control}"));
        let control = format!("injection.kind={control}");
        let run = |threads: &str| operations(&folder, &["--set", &control, "--threads", threads]);
        let first = run("1");
        assert_eq!(first.1.figures.totals.completed, 16 * 8 * 2);
        for threads in ["2", "4", "1"] {
            assert_eq!(run(threads), first, "{control}, {threads} threads");
        }
        folder.succeed(&["run", "results/scenario.toml", "--quiet", "--out", "again"]);
        let digest = format!("\"digest\": \"{}\"", first.0);
        assert!(
            folder.read("again/summary.json").contains(&digest),
            "{control}"
        );
    }
}

#[test]
fn a_run_leaves_operations_and_no_flows() {
    let folder = Bench::new("scaleup-files");
    folder.succeed(&[&["run", "nvlink-64"], &SMALL[..], &["--out", "results"]].concat());
    assert!(folder.path("results/operations.parquet").exists());
    assert!(folder.path("results/report.html").exists());
    assert!(!folder.path("results/flows.parquet").exists());
}

#[test]
fn a_run_that_is_cut_off_says_so() {
    let folder = Bench::new("scaleup-cut");
    let arguments = [&["nvlink-64"], &SMALL[..], &["--set", "stop.at-most=1us"]].concat();
    let (errors, summary) = folder.unfinished(&arguments);
    assert!(errors.contains("operations are not done"), "{errors}");
    let totals = summary.operations.expect("operations").figures.totals;
    assert!(totals.completed < totals.posted);
}

/// The last response arrives at cycle 1178. Credits that return later do not count as remaining work.
#[test]
fn a_run_that_is_stopped_when_all_is_done_is_complete() {
    let folder = Bench::new("scaleup-done");
    folder.write(
        "done.toml",
        "topology.kind = \"nvlink\"\nworkload = { transactions = 5, members = 1 }\ninjection.response-queue = 9\n",
    );
    let whole = folder.summary(&["done.toml"]);
    let cut = folder.summary(&["done.toml", "--set", "stop.at-most=1us"]);
    assert_eq!(cut.operations, whole.operations);
    assert_eq!(cut.digest, whole.digest);
    assert_eq!(cut.simulated_us, whole.simulated_us);
}

/// Pauses before empty sets of operations continue for thousands of cycles after the last response.
#[test]
fn pauses_that_nothing_follows_are_no_work_that_is_left() {
    let folder = Bench::new("scaleup-pauses");
    folder.write(
        "pauses.toml",
        "seed = 77\ntopology = { kind = \"nvlink\", cycle = \"1ns\" }\n\
         workload = { kind = \"random-sets\", least-operations = 0, most-operations = 5, least-pause = 1, members = 2 }\n",
    );
    let whole = folder.summary(&["pauses.toml"]);
    let cut = folder.summary(&["pauses.toml", "--set", "stop.at-most=50us"]);
    assert_eq!(cut.digest, whole.digest);
    assert_eq!(cut.operations, whole.operations);
}

/// Two layers on four GPUs: 4 us of computation in a pass, reductions of both layers, and a gather of the second layer.
const LAYERS: &str = "DATA all_gpus: 4\n2\n\
    a -1 1000 NONE 0 1000 NONE 0 1000 ALLREDUCE 16384 0\n\
    b -1 500 NONE 0 500 NONE 0 0 ALLGATHER 4096 0\n";

#[test]
fn a_trace_is_a_job_with_iterations() {
    let folder = Bench::new("scaleup-trace");
    folder.write("layers.txt", LAYERS);
    folder.write(
        "job.toml",
        "topology = { kind = \"nvlink\", gpus = 8, cycle = \"1ns\" }\n\
         workload = { kind = \"trace\", file = \"layers.txt\", members = \"2-5\", iterations = 3 }\n",
    );
    let first = folder.summary(&["job.toml"]);
    let [job] = &first.jobs[..] else {
        panic!("{:?}", first.jobs);
    };
    assert_eq!((job.label.as_str(), job.ranks), ("layers", 4));
    assert_eq!(job.hosts, [2, 3, 4, 5]);
    assert_eq!((job.iterations, job.completed), (3, 3));
    let times = job.iteration_us.as_ref().expect("times of iterations");
    // An iteration takes at least the computation, then a flag, a reduction and a multicast in sequence.
    assert!(times.min > 4.0 + 3.0 * 0.3, "{times:?}");
    assert!(folder.path("results/iterations.parquet").exists());

    for threads in ["2", "4"] {
        let again = folder.summary(&["job.toml", "--threads", threads]);
        assert_eq!(
            (again.digest, again.jobs),
            (first.digest.clone(), first.jobs.clone())
        );
    }
    let printed = folder.succeed(&["run", "results/scenario.toml", "--out", "again"]);
    assert!(printed.contains(&first.digest), "{printed}");
    assert!(printed.contains("Times of an iteration"), "{printed}");
}

#[test]
fn warnings_about_a_trace_stay_with_the_results() {
    let folder = Bench::new("scaleup-warnings");
    folder.write("layers.txt", &LAYERS.replacen("NONE", "BROADCAST", 1));
    folder.write(
        "job.toml",
        "topology = { kind = \"nvlink\", gpus = 8 }\nworkload = { kind = \"trace\", file = \"layers.txt\", members = \"0-3\" }\n",
    );
    let summary = folder.summary(&["job.toml"]);
    let [warning, ..] = &summary.warnings[..] else {
        panic!("{:?}", summary.warnings);
    };
    assert!(
        warning.contains("`BROADCAST` is not a collective"),
        "{warning}"
    );
    assert!(
        folder
            .read("results/report.html")
            .contains("<p class=\"warning\" role=\"status\">layers.txt:3: ")
    );
}

#[test]
fn controls_are_compared_and_explained() {
    let folder = Bench::new("scaleup-compare");
    let table = folder.succeed(
        &[
            &[
                "compare",
                "nvlink-64:injection.kind=none",
                ":injection.kind=window",
            ],
            &SMALL[..],
            &["--seeds", "2"],
        ]
        .concat(),
    );
    assert!(
        table.contains("effective bandwidth") && !table.contains("FCT"),
        "{table}"
    );
    let text = folder.succeed(&["explain", "3cpo"]);
    assert!(text.contains("injection.remote-scaling"), "{text}");
    let text = folder.succeed(&["topology", "nvlink-64"]);
    assert!(
        text.contains("8 leaves, 4 spines") && text.contains("910 across"),
        "{text}"
    );
    assert!(
        folder
            .succeed(&["list", "scale-up"])
            .contains("random-sets")
    );
}

#[test]
fn what_speaks_of_flows_is_refused() {
    let folder = Bench::new("scaleup-refused");
    for arguments in [
        &["run", "nvlink-64", "--fct-txt", "x"][..],
        &["run", "nvlink-64", "--live"],
        &["isolate", "nvlink-64"],
        &["run", "nvlink-64", "--set", "transport.kind=strack"],
        &["run", "quickstart", "--set", "injection.kind=3cpo"],
    ] {
        let error = folder.refuse(arguments);
        assert!(
            error.contains("scale-up") && error.contains("fix:"),
            "{error}"
        );
    }
}
