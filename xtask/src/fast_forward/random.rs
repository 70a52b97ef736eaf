//! Table of random scenarios: how far runs with `--fast-forward 1%` are off, and how often their own estimate holds.

use super::scenarios::{Traffic, scenario};
use super::table::summary;
use crate::transports::{bench, target};
use serde_json::Value;
use std::fmt::Write as _;
use std::fs;
use std::ops::Range;
use std::path::Path;
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};

/// The last line of the table's head, after which the rows follow.
pub(super) const RULE: &str = "|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|";

/// Differences of a run from the exact one, as parts of it.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Case {
    /// Something is remembered or skipped.
    is_inexact: bool,
    estimated: f64,
    time: f64,
    /// Of completion times of flows; without flows, of the iterations of the job that differs most.
    p50: f64,
    p99: f64,
    /// Packet-hops of the exact run, for each one of the run.
    faster: f64,
}

/// The rows of the table: scenarios with these numbers, of each kind of traffic.
pub(super) fn rows(root: &Path, numbers: Range<u32>) -> Result<String, String> {
    let (program, folder) = bench(root)?;
    let kept = target(root)?.join("fast-forward");
    fs::create_dir_all(&kept).map_err(|error| error.to_string())?;
    let mut rows = String::new();
    for (traffic, title) in [(Traffic::Flows, "long flows"), (Traffic::Jobs, "jobs")] {
        let cases = all(traffic, numbers.clone(), |number| {
            case(&program, &folder, scenario(traffic, number))
        })?;
        let mut lines = String::new();
        for (number, case) in &cases {
            let _ = writeln!(lines, "{number} {case:?}");
            if case.time.abs() > case.estimated {
                let path = kept.join(format!("{traffic:?}-{number}.toml").to_lowercase());
                let text = scenario(traffic, *number);
                fs::write(&path, text).map_err(|error| error.to_string())?;
            }
        }
        let path = kept.join(format!("{traffic:?}.txt").to_lowercase());
        fs::write(&path, lines).map_err(|error| error.to_string())?;
        rows += &row(
            title,
            &cases.into_iter().map(|(_, case)| case).collect::<Vec<_>>(),
        );
    }
    let _ = fs::remove_dir_all(&folder);
    Ok(rows)
}

/// All cases in the order of their numbers, measured on two threads.
fn all(
    traffic: Traffic,
    numbers: Range<u32>,
    measure: impl Fn(u32) -> Result<Case, String> + Sync,
) -> Result<Vec<(u32, Case)>, String> {
    let next = AtomicU32::new(numbers.start);
    let done = Mutex::new(Vec::new());
    let work = || loop {
        let number = next.fetch_add(1, Ordering::Relaxed);
        if number >= numbers.end {
            return;
        }
        let case = measure(number).map_err(|fault| format!("{traffic:?} {number}: {fault}"));
        if let Ok(case) = &case {
            println!("{traffic:?} {number}: {case:?}");
        }
        done.lock().expect("no thread panics").push((number, case));
    };
    std::thread::scope(|scope| {
        scope.spawn(work);
        work();
    });
    let mut done = done.into_inner().expect("no thread panics");
    done.sort_by_key(|(number, _)| *number);
    let cases = done.into_iter().map(|(number, case)| Ok((number, case?)));
    cases.collect()
}

fn case(program: &Path, folder: &Path, text: String) -> Result<Case, String> {
    let name = text.lines().next().unwrap_or_default();
    let name = name
        .trim_start_matches("name = ")
        .trim_matches('"')
        .to_owned();
    let file = folder.join(format!("{name}.toml"));
    fs::write(&file, text).map_err(|error| error.to_string())?;
    let run = |kind: &str, options: &[&str]| {
        let out = folder.join(format!("{name}-{kind}"));
        let mut command = Command::new(program);
        command.arg("run").arg(&file).arg("--out").arg(&out);
        command.args(["--threads", "1", "--no-report", "--quiet"]);
        // A run that does not finish its flows exits with 1.
        let shown = format!("{command:?}");
        let ended = command.args(options).output();
        let ended = ended.map_err(|error| format!("{shown}: {error}"))?;
        if !matches!(ended.status.code(), Some(0 | 1)) {
            let errors = String::from_utf8_lossy(&ended.stderr);
            return Err(format!("{shown}: {}\n{errors}", ended.status));
        }
        let found = summary(&out);
        let _ = fs::remove_dir_all(&out);
        found
    };
    let exact = run("exact", &[])?;
    let forward = run("forward", &["--fast-forward", "1%"])?;
    Ok(compared(&exact, &forward))
}

fn compared(exact: &Value, forward: &Value) -> Case {
    let ratio = |key: &dyn Fn(&Value) -> Option<f64>| match (key(exact), key(forward)) {
        (Some(exact), Some(forward)) => forward / exact,
        _ => 1.0,
    };
    if [exact, forward]
        .iter()
        .any(|own| own["status"] != "complete")
    {
        // Nothing to compare, but the end must be the same.
        let is_same = exact["status"] == forward["status"];
        return Case {
            is_inexact: !is_same,
            time: if is_same { 0.0 } else { f64::INFINITY },
            ..Case::default()
        };
    }
    let report = &forward["fast_forward"];
    let of_times = |percentile: &str| {
        let of_job =
            |job: usize| ratio(&|own| own["jobs"][job]["iteration_us"][percentile].as_f64()) - 1.0;
        let jobs = exact["jobs"].as_array().map_or(0, Vec::len);
        match exact["fct_us"].is_null() {
            false => ratio(&|own| own["fct_us"][percentile].as_f64()) - 1.0,
            true => (0..jobs)
                .map(of_job)
                .max_by(|one, other| one.abs().total_cmp(&other.abs()))
                .unwrap_or(0.0),
        }
    };
    let some = |value: &Value| value.as_u64().is_some_and(|count| count > 0);
    Case {
        is_inexact: some(&report["remembered_bytes"]) || some(&report["skipped"]["stretches"]),
        estimated: report["estimated"].as_f64().unwrap_or(0.0),
        time: ratio(&|own| own["simulated_us"].as_f64()) - 1.0,
        p50: of_times("p50"),
        p99: of_times("p99"),
        faster: 1.0 / ratio(&|own| own["packet_hops"].as_f64()),
    }
}

/// A row of the table.
fn row(title: &str, cases: &[Case]) -> String {
    let own: Vec<Case> = cases
        .iter()
        .copied()
        .filter(|case| case.is_inexact)
        .collect();
    let part = |holds: &dyn Fn(&Case) -> bool| {
        let holds = own.iter().filter(|case| holds(case)).count();
        100.0 * holds as f64 / own.len().max(1) as f64
    };
    let sorted = |value: &dyn Fn(&Case) -> f64| {
        let mut values: Vec<f64> = own.iter().map(value).collect();
        values.sort_by(f64::total_cmp);
        values
    };
    let at = |values: &[f64], part: f64| {
        let last = values.len().saturating_sub(1);
        values
            .get((part * last as f64).round() as usize)
            .copied()
            .unwrap_or(0.0)
    };
    let times = sorted(&|case| case.time.abs());
    let faster = sorted(&|case| case.faster);
    format!(
        "| {title} | {} | {} | {:.1} % | {:.1} % | {:.3} % | {:.2} % | {:.1} % | {:.1} % | {:.1} |\n",
        cases.len(),
        own.len(),
        part(&|case| case.time.abs() <= case.estimated),
        part(&|case| case.time.abs() <= 0.01),
        100.0 * at(&times, 0.5),
        100.0 * at(&times, 0.9),
        part(&|case| case.p50.abs() <= 0.01),
        part(&|case| case.p99.abs() <= 0.03),
        at(&faster, 0.5),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_row_counts_the_runs_that_are_not_exact() {
        let run = |time: f64, hops: u64| {
            json!({"status": "complete", "simulated_us": time, "fct_us": {"p50": 10.0, "p99": time},
                "packet_hops": hops, "fast_forward": {"estimated": 0.01, "remembered_bytes": 0,
                "skipped": {"stretches": 2}}})
        };
        let exact = run(100.0, 3000);
        let off = compared(&exact, &run(104.0, 1000));
        let near = compared(&exact, &run(100.5, 1000));
        assert!((off.time - 0.04).abs() < 1e-9 && off.is_inexact);
        assert!((off.p99 - 0.04).abs() < 1e-9 && off.p50 == 0.0);
        let stopped = json!({"status": "stopped"});
        assert_eq!(compared(&stopped, &stopped), Case::default());
        assert!(compared(&exact, &stopped).time.is_infinite());
        let cases = [off, near, Case::default()];
        assert_eq!(
            row("flows", &cases),
            "| flows | 3 | 2 | 50.0 % | 50.0 % | 4.000 % | 4.00 % | 100.0 % | 50.0 % | 3.0 |\n"
        );
    }

    #[test]
    fn cases_are_in_order_and_the_first_fault_is_told() {
        let measure = |number| match number {
            7 => Err("bad".to_owned()),
            _ => Ok(Case::default()),
        };
        let cases = all(Traffic::Jobs, 0..5, measure).unwrap();
        assert!(cases.iter().map(|(number, _)| *number).eq(0..5));
        let fault = all(Traffic::Jobs, 0..9, measure).unwrap_err();
        assert_eq!(fault, "Jobs 7: bad");
    }
}
