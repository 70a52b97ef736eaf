//! Sweeps: finished runs are not repeated, with several processes and after processes were killed.

#![expect(
    clippy::disallowed_methods,
    reason = "what has nothing to do says so at once, and what waits must not wait for ever"
)]

use crate::common::Bench;
use std::collections::BTreeSet;
use std::fs;
use std::process::Stdio;
use std::time::{Duration, Instant};

/// Two by two points with two seeds: eight runs of some tens of milliseconds.
const PLAN: &str = r#"name = "small"
scenario = "quickstart"
seeds = 2

[set]
"topology.hosts" = 16
"topology.hosts-per-leaf" = 4

[axes]
"transport.spray" = ["single", "adaptive"]
"workload.message" = ["64KB", "256KB"]
"#;

/// As [`PLAN`], with longer runs, so that a test can kill one: some tenths of a second, less on a fast machine.
fn longer() -> String {
    PLAN.replace("\"topology.hosts\" = 16", "\"topology.hosts\" = 32")
        .replace("[\"64KB\", \"256KB\"]", "[\"32MB\", \"128MB\"]")
}

/// `sweep.json` without the command, which differs between sweeps.
fn document(bench: &Bench, folder: &str) -> String {
    let text = bench.read(&format!("{folder}/sweep.json"));
    let lines = text.lines().filter(|line| !line.contains("\"command\""));
    lines.collect::<Vec<_>>().join("\n")
}

/// Columns of `sweep.parquet` and their values as text, without the last columns, which hold time and memory.
fn table(bench: &Bench, folder: &str) -> Vec<String> {
    use parquet::file::reader::{FileReader as _, SerializedFileReader};
    let file = fs::File::open(bench.path(&format!("{folder}/sweep.parquet"))).unwrap();
    let reader = SerializedFileReader::new(file).unwrap();
    let rows = reader.get_row_iter(None).unwrap();
    let row = |row: parquet::record::Row| {
        let columns = row.get_column_iter();
        let values = columns.map(|(name, value)| format!("{name}={value}"));
        let mut values: Vec<String> = values.collect();
        let costs = values.split_off(values.len() - 3);
        let names = ["wall_seconds=", "cpu_seconds=", "peak_rss_bytes="];
        for (cost, name) in costs.iter().zip(names) {
            assert!(cost.starts_with(name), "{cost}");
        }
        values.join(" ")
    };
    rows.map(|found| row(found.unwrap())).collect()
}

/// Names of the folders of runs, with the time at which each summary was written.
fn runs(bench: &Bench, folder: &str) -> BTreeSet<(String, std::time::SystemTime)> {
    let Ok(entries) = fs::read_dir(bench.path(&format!("{folder}/runs"))) else {
        return BTreeSet::new();
    };
    entries
        .map(|entry| {
            let entry = entry.unwrap();
            let written = fs::metadata(entry.path().join("summary.json")).unwrap();
            let name = entry.file_name().into_string().unwrap();
            (name, written.modified().unwrap())
        })
        .collect()
}

fn stderr(output: &std::process::Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn what_is_done_is_not_done_again() {
    let bench = Bench::new("sweep-again");
    bench.write("plan.toml", PLAN);
    let first = bench.output(&["sweep", "plan.toml"]);
    assert_eq!(first.status.code(), Some(0), "{}", stderr(&first));
    assert!(
        stderr(&first).ends_with("8 runs done now, 8 of 8 in all\n"),
        "{}",
        stderr(&first)
    );
    let done = runs(&bench, "out/sweep-small");
    assert_eq!(done.len(), 8);
    let (before, rows) = (
        document(&bench, "out/sweep-small"),
        table(&bench, "out/sweep-small"),
    );
    assert_eq!(rows.len(), 8);
    assert!(
        rows[0].contains("\"single\"") && rows[0].contains("seed=1"),
        "{}",
        rows[0]
    );

    let again = bench.output(&["sweep", "plan.toml"]);
    assert_eq!(stderr(&again), "nothing to do: 8 of 8 runs are done\n");
    assert_eq!(runs(&bench, "out/sweep-small"), done);
    assert_eq!(document(&bench, "out/sweep-small"), before);

    // One more value: the runs that both plans have are kept.
    bench.write(
        "plan.toml",
        &PLAN.replace("\"256KB\"]", "\"256KB\", \"128KB\"]"),
    );
    let grown = bench.output(&["sweep", "plan.toml"]);
    assert!(
        stderr(&grown).ends_with("4 runs done now, 12 of 12 in all\n"),
        "{}",
        stderr(&grown)
    );
    assert!(runs(&bench, "out/sweep-small").is_superset(&done));
    assert!(
        fs::read_dir(bench.path("out/sweep-small/claims"))
            .unwrap()
            .next()
            .is_none()
    );
    assert!(
        fs::read_dir(bench.path("out/sweep-small/partial"))
            .unwrap()
            .next()
            .is_none()
    );
}

#[test]
fn the_order_of_a_plan_is_that_of_the_table_and_not_of_the_folder() {
    let bench = Bench::new("sweep-dry");
    bench.write("plan.toml", PLAN);
    let text = bench.succeed(&["sweep", "plan.toml", "--dry-run"]);
    // The estimated cost depends on the machine.
    let (text, expected) = text.split_once("Expect     ").unwrap();
    assert!(expected.contains(" reckoned by 8 of 8 runs"), "{expected}");
    insta::assert_snapshot!(text, @r"
    axis              values
    ----------------  ----------------
    transport.spray   single, adaptive
    workload.message  64KB, 256KB

    Runs       8 (a grid of 2 x 2, 2 seeds); of the 8 asked for 8 are missing in out/sweep-small
    ");
    assert!(!bench.path("out").exists());
}

/// A killed sweep loses its runs in progress, its children end, and the next sweep takes over immediately.
#[test]
#[cfg(target_os = "linux")]
fn a_killed_sweep_goes_on_where_it_was() {
    let bench = Bench::new("sweep-killed");
    bench.write("plan.toml", &longer());
    let mut sweep = bench
        .command(&["sweep", "plan.toml", "--jobs", "2", "--out", "killed"])
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let begun = Instant::now();
    while runs(&bench, "killed").len() < 2 {
        assert!(begun.elapsed() < Duration::from_secs(300), "no run ends");
        assert!(
            sweep.try_wait().unwrap().is_none(),
            "it was to be killed while it runs"
        );
        std::thread::sleep(Duration::from_millis(5));
    }
    sweep.kill().unwrap();
    sweep.wait().unwrap();
    let kept = runs(&bench, "killed");
    assert!(kept.len() < 8, "too late");
    let claims = fs::read_dir(bench.path("killed/claims")).unwrap().count();
    assert!(claims > 0, "a killed process leaves its claims");
    // Its children end without a signal.
    let work = bench.path("killed/partial").to_string_lossy().into_owned();
    let begun = Instant::now();
    while !crate::common::processes_with(&work).is_empty() {
        assert!(begun.elapsed() < Duration::from_secs(60), "orphans go on");
        std::thread::sleep(Duration::from_millis(20));
    }

    let again = bench.output(&["sweep", "plan.toml", "--out", "killed"]);
    assert_eq!(again.status.code(), Some(0), "{}", stderr(&again));
    let all = runs(&bench, "killed");
    assert!(all.len() == 8 && all.is_superset(&kept));
    assert!(
        fs::read_dir(bench.path("killed/partial"))
            .unwrap()
            .next()
            .is_none()
    );
    bench.succeed(&["sweep", "plan.toml", "--out", "whole"]);
    assert_eq!(document(&bench, "killed"), document(&bench, "whole"));
    assert_eq!(table(&bench, "killed"), table(&bench, "whole"));
}

#[test]
fn two_processes_share_a_plan_and_no_run_is_done_twice() {
    let bench = Bench::new("sweep-two");
    // Use runs that take longer than the start of both processes.
    bench.write("plan.toml", &longer());
    let start = || {
        let mut command = bench.command(&["sweep", "plan.toml", "--jobs", "1", "--out", "shared"]);
        command
            .stderr(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .unwrap()
    };
    let outputs = [start(), start()].map(|child| child.wait_with_output().unwrap());
    let mut done = 0;
    for output in &outputs {
        assert_eq!(output.status.code(), Some(0), "{}", stderr(output));
        let said = stderr(output);
        assert!(said.ends_with("8 of 8 in all\n"), "{said}");
        // Progress lines may come before this line.
        let last = said.lines().last().unwrap();
        let own = last.split(' ').next().unwrap();
        done += own.parse::<u32>().unwrap_or_else(|_| panic!("{said}"));
    }
    assert_eq!(done, 8, "each run is done by one of the two");
    assert_eq!(runs(&bench, "shared").len(), 8);
    bench.succeed(&["sweep", "plan.toml", "--out", "alone"]);
    assert_eq!(document(&bench, "shared"), document(&bench, "alone"));
    assert_eq!(table(&bench, "shared"), table(&bench, "alone"));
}

#[test]
fn three_shards_merged_are_the_whole() {
    let bench = Bench::new("sweep-shards");
    bench.write("plan.toml", PLAN);
    // The order of the values does not change the shards.
    bench.write(
        "turned.toml",
        &PLAN.replace("[\"single\", \"adaptive\"]", "[\"adaptive\", \"single\"]"),
    );
    let mut all = BTreeSet::new();
    for shard in 1..=3 {
        let (part, folder) = (format!("{shard}/3"), format!("shard-{shard}"));
        let plan = if shard == 2 {
            "turned.toml"
        } else {
            "plan.toml"
        };
        bench.succeed(&["sweep", plan, "--shard", &part, "--out", &folder]);
        let names = runs(&bench, &folder).into_iter().map(|(name, _)| name);
        let names: Vec<String> = names.collect();
        assert!((2..=3).contains(&names.len()), "{names:?}");
        for name in names {
            assert!(all.insert(name), "a run in two shards");
        }
    }
    assert_eq!(all.len(), 8);

    let partial = bench.output(&[
        "sweep",
        "plan.toml",
        "--merge",
        "shard-1",
        "--out",
        "merged",
    ]);
    assert_eq!(partial.status.code(), Some(1));
    assert!(
        stderr(&partial)
            .contains("missing: the same command without `--merge` makes the missing runs")
    );
    let merge = [
        "sweep",
        "plan.toml",
        "--merge",
        "shard-1",
        "shard-2",
        "shard-3",
        "--out",
        "merged",
    ];
    let merged = bench.output(&merge);
    assert_eq!(merged.status.code(), Some(0), "{}", stderr(&merged));
    bench.succeed(&["sweep", "plan.toml", "--out", "whole"]);
    assert_eq!(document(&bench, "merged"), document(&bench, "whole"));
    assert_eq!(table(&bench, "merged"), table(&bench, "whole"));
}

/// 18 hosts do not fit into leaves of 4, which is detected when the fabric is built.
#[test]
fn a_run_that_fails_does_not_stop_the_others() {
    let bench = Bench::new("sweep-failing");
    let plan = PLAN
        .replace("\"topology.hosts\" = 16\n", "")
        .replace("\"topology.hosts-per-leaf\" = 4\n", "")
        .replace("[set]\n", "[set]\n\"topology.hosts-per-leaf\" = 4\n")
        .replace(
            "\"workload.message\" = [\"64KB\", \"256KB\"]",
            "\"topology.hosts\" = [16, 18]",
        );
    bench.write("plan.toml", &plan);
    let output = bench.output(&["sweep", "plan.toml", "--out", "s"]);
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    let said = stderr(&output);
    assert!(
        said.contains(
            "failed: transport.spray=single topology.hosts=18 seed=1\nexit code 2: error: "
        ),
        "{said}"
    );
    assert!(
        said.contains("4 runs failed; the reasons are in s/failed"),
        "{said}"
    );
    assert_eq!(runs(&bench, "s").len(), 4);
    let failed: Vec<_> = fs::read_dir(bench.path("s/failed")).unwrap().collect();
    assert_eq!(failed.len(), 4);
    let document = document(&bench, "s");
    assert!(
        document.contains("\"failed\"") && document.contains("exit code 2"),
        "{document}"
    );
    assert_eq!(table(&bench, "s").len(), 8);
}

/// Exit code 1 if a limit ended a run, as for `clearway run`.
#[test]
fn a_sweep_of_runs_that_do_not_complete_does_not_succeed() {
    let bench = Bench::new("sweep-incomplete");
    let limit = "[set]\n\"stop.at-most\" = \"1us\"\n";
    bench.write("plan.toml", &PLAN.replace("[set]\n", limit));
    for again in [false, true] {
        let output = bench.output(&["sweep", "plan.toml", "--out", "s"]);
        assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
        let said = stderr(&output);
        let expected = "8 runs not complete: a limit such as `stop.at-most` ended them; \
                        `status` in s/sweep.json tells which\n";
        assert!(said.ends_with(expected), "{said}");
        assert_eq!(said.starts_with("nothing to do: 8 of 8"), again, "{said}");
    }
    assert_eq!(document(&bench, "s").matches("\"incomplete\"").count(), 8);
}

#[test]
#[cfg(unix)]
fn an_interrupted_sweep_says_what_is_kept() {
    let bench = Bench::new("sweep-interrupted");
    bench.write("plan.toml", &longer());
    let sweep = bench
        .command(&["sweep", "plan.toml", "--jobs", "1", "--out", "s"])
        .stderr(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let begun = Instant::now();
    while runs(&bench, "s").is_empty() {
        assert!(begun.elapsed() < Duration::from_secs(300), "no run ends");
        std::thread::sleep(Duration::from_millis(5));
    }
    let interrupt = std::process::Command::new("kill")
        .args(["-INT", &sweep.id().to_string()])
        .status();
    assert!(interrupt.unwrap().success());
    let output = sweep.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130));
    let kept = runs(&bench, "s").len();
    let said = stderr(&output);
    let expected = "of 8 done and kept in s; the same command goes on from there\n";
    assert!(
        said.contains("interrupted: ") && said.ends_with(&expected),
        "{said}"
    );
    assert!((1..8).contains(&kept));
    for folder in ["s/claims", "s/partial"] {
        assert!(
            fs::read_dir(bench.path(folder)).unwrap().next().is_none(),
            "{folder}"
        );
    }
    assert!(document(&bench, "s").contains(&format!("\"missing\": {}", 8 - kept)));
}

#[test]
fn an_assertion_that_does_not_hold_is_exit_code_1() {
    let bench = Bench::new("sweep-asserts");
    let assert = |above: &str| {
        let text = format!("{PLAN}\n[[assert]]\nmeasure = \"slowdown.p99\"\n{above}\n");
        text.replace("seeds = 2", "seeds = 4")
    };
    for (bound, code) in [("above = 0.5", 0), ("above = 50", 1)] {
        bench.write("plan.toml", &assert(bound));
        let output = bench.output(&["sweep", "plan.toml", "--out", "s"]);
        assert_eq!(output.status.code(), Some(code), "{}", stderr(&output));
        let verdict = if code == 0 { "\"pass\"" } else { "\"fail\"" };
        assert!(document(&bench, "s").contains(&format!("\"verdict\": {verdict}")));
    }
    assert!(bench.read("s/report.html").contains("slowdown.p99"));
    // Assertions are not judged on a part of the runs.
    let part = bench.output(&["sweep", "plan.toml", "--out", "part", "--shard", "1/2"]);
    assert_eq!(part.status.code(), Some(0), "{}", stderr(&part));
}

#[test]
fn the_built_in_plan_is_listed_and_shown() {
    let bench = Bench::new("sweep-builtin");
    assert!(bench.succeed(&["list", "plans"]).contains("spray-study"));
    let shown = bench.succeed(&["show", "spray-study"]);
    bench.write("mine.toml", &shown);
    let text = bench.succeed(&["sweep", "mine.toml", "--dry-run"]);
    assert!(text.contains("150 ("), "{text}");
    assert!(
        bench
            .succeed(&["explain", "sweep"])
            .contains("  scenario = ")
    );
}

const CHAPTER: &str = include_str!("../../../../../docs/src/sweeps.md");

#[test]
fn the_chapter_has_every_key_of_a_plan_and_plans_that_can_be_read() {
    let (_, sections) = clearway_sweep::catalogue_sections();
    for section in &sections {
        for parameter in &section.parameters {
            let path = match section.section {
                "" => parameter.key.to_owned(),
                name => format!("{name}.{}", parameter.key),
            };
            assert!(CHAPTER.contains(&format!("`{path}`")), "{path}");
        }
    }
    let bench = Bench::new("sweep-chapter");
    let mut plans = 0;
    for block in CHAPTER.split("```toml\n").skip(1) {
        bench.write("plan.toml", block.split("```").next().unwrap());
        bench.succeed(&["sweep", "plan.toml", "--dry-run"]);
        plans += 1;
    }
    assert_eq!(plans, 3);
}

/// Parts of a Slurm array and of an indexed job of Kubernetes, as counted by the scripts of the chapter.
#[test]
#[cfg(unix)]
fn the_job_scripts_of_the_chapter_do_every_run_once() {
    let bench = Bench::new("sweep-scripts");
    bench.write("plan.toml", PLAN);
    let program = std::path::Path::new(env!("CARGO_BIN_EXE_clearway"))
        .parent()
        .unwrap();
    let path = format!("{}:{}", program.display(), std::env::var("PATH").unwrap());
    let mut script = CHAPTER
        .split("```sh\n")
        .skip(1)
        .map(|block| block.split("```").next().unwrap());
    let slurm = script
        .find(|block| block.contains("SLURM_ARRAY_TASK_ID"))
        .unwrap();
    bench.write("slurm.sh", slurm);
    let kubernetes = CHAPTER
        .split("- exec clearway")
        .nth(1)
        .unwrap()
        .split("resources:")
        .next()
        .unwrap();
    let words: Vec<&str> = kubernetes.split_whitespace().collect();
    let kubernetes = format!("exec clearway {}", words.join(" ")).replace("/data", ".");
    bench.write("kubernetes.sh", &kubernetes.replace("))/16", "))/2"));
    for (name, index, folder) in [
        ("slurm.sh", "SLURM_ARRAY_TASK_ID", "my-sweep"),
        ("kubernetes.sh", "JOB_COMPLETION_INDEX", "my-sweep"),
    ] {
        let _ = fs::remove_dir_all(bench.path(folder));
        let first = u32::from(name == "slurm.sh");
        for part in first..first + 2 {
            let mut command = std::process::Command::new("sh");
            command
                .arg(name)
                .current_dir(bench.path(""))
                .env("HOME", bench.path("."));
            command.env("PATH", &path).env(index, part.to_string());
            command
                .env("SLURM_ARRAY_TASK_COUNT", "2")
                .env("SLURM_CPUS_PER_TASK", "1");
            let output = command.output().unwrap();
            assert!(output.status.success(), "{name}: {}", stderr(&output));
        }
        let again = bench.output(&["sweep", "plan.toml", "--out", folder]);
        assert_eq!(
            stderr(&again),
            "nothing to do: 8 of 8 runs are done\n",
            "{name}"
        );
    }
}

#[test]
fn a_scale_up_fabric_is_swept_as_packets_are() {
    let bench = Bench::new("sweep-scale-up");
    bench.write(
        "plan.toml",
        "scenario = \"nvlink-64\"\nseeds = 2\n[set]\n\"workload.transactions\" = 4\n\
         [axes]\n\"injection.kind\" = [\"none\", \"window\"]\n",
    );
    let output = bench.output(&["sweep", "plan.toml", "--out", "s"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let rows = table(&bench, "s");
    assert_eq!(rows.len(), 4);
    for (row, kind) in rows.iter().zip(["none", "none", "window", "window"]) {
        assert!(row.contains(&format!("injection.kind=\"{kind}\"")), "{row}");
        assert!(row.contains("status=\"complete\""), "{row}");
        assert!(row.contains("operations.effective_bandwidth="), "{row}");
        assert!(!row.contains("fct_us"), "{row}");
    }
}

/// A system without free memory kills a process, which probably had too little room beside another run.
#[test]
#[cfg(target_os = "linux")]
fn a_run_that_is_killed_is_tried_once_more_by_itself() {
    let bench = Bench::new("sweep-run-killed");
    bench.write("plan.toml", &longer());
    let mut sweep = bench
        .command(&["sweep", "plan.toml", "--jobs", "2", "--out", "s", "--quiet"])
        .spawn()
        .unwrap();
    let partial = bench.path("s/partial").to_string_lossy().into_owned();
    let kill = |process: u32| {
        let mut command = std::process::Command::new("kill");
        let status = command.args(["-9", &process.to_string()]).status();
        status.is_ok_and(|status| status.success())
    };
    let is_done = |name: &String| bench.path("s/runs").join(name).exists();
    let begun = Instant::now();
    // Runs in progress when a process was killed, and the run of that process.
    let (mut suspects, mut victim) = (BTreeSet::new(), None);
    let mut tried_again = false;
    let status = loop {
        assert!(begun.elapsed() < Duration::from_secs(300), "it hangs");
        if let Some(status) = sweep.try_wait().unwrap() {
            break status;
        }
        let now = crate::common::under_way(&bench, "s");
        match &victim {
            // Kill in the middle of the sweep, while another run is in progress.
            None if suspects.is_empty() && runs(&bench, "s").len() >= 2 && now.len() == 2 => {
                let children = crate::common::processes_with(&partial);
                if children.first().is_some_and(|process| kill(*process)) {
                    suspects = now;
                }
            }
            None => {
                victim = suspects
                    .iter()
                    .find(|name| !now.contains(*name) && !is_done(name))
                    .cloned();
                // The killed process had no run in progress.
                if suspects.iter().all(is_done) {
                    suspects.clear();
                }
            }
            // The results of this run were being moved into place, so the run is not the victim.
            Some(name) if !tried_again && is_done(name) => {
                victim = None;
                suspects.clear();
            }
            Some(name) if now.contains(name) => {
                tried_again = true;
                assert_eq!(now.len(), 1, "{now:?}");
            }
            Some(_) => {}
        }
        std::thread::sleep(Duration::from_millis(1));
    };
    assert!(victim.is_some() && tried_again);
    assert_eq!(status.code(), Some(0));
    assert_eq!(runs(&bench, "s").len(), 8);
}

/// The first run of a large fabric measures the memory of a run before a second run starts.
#[test]
#[cfg(target_os = "linux")]
fn the_first_run_of_a_large_fabric_has_no_company() {
    let bench = Bench::new("sweep-large");
    let large = PLAN
        .replace("\"topology.hosts\" = 16", "\"topology.hosts\" = 2048")
        .replace("leaf\" = 4", "leaf\" = 32")
        .replace("[\"64KB\", \"256KB\"]", "[\"1MB\"]");
    bench.write("plan.toml", &large);
    let mut sweep = bench
        .command(&["sweep", "plan.toml", "--jobs", "2", "--out", "s", "--quiet"])
        .spawn()
        .unwrap();
    let begun = Instant::now();
    let (mut alone, mut together) = (false, false);
    let status = loop {
        assert!(begun.elapsed() < Duration::from_secs(300), "it hangs");
        if let Some(status) = sweep.try_wait().unwrap() {
            break status;
        }
        let now = crate::common::under_way(&bench, "s").len();
        if runs(&bench, "s").is_empty() {
            alone |= now == 1;
            // A run may have ended, and another may have begun, since the runs in progress were listed.
            assert!(now < 2 || !runs(&bench, "s").is_empty());
        } else {
            together |= now == 2;
        }
        std::thread::sleep(Duration::from_millis(1));
    };
    assert_eq!(status.code(), Some(0));
    assert!(alone && together);
}
