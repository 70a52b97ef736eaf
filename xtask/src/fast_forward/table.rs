//! Table of reference workloads: training iterations with every packet, and with `--fast-forward 1%`.
//!
//! The runs with every packet take 40 minutes. They are kept below `target/fast-forward`; remove that folder to measure them again.

use crate::output;
use crate::transports::{bench, target};
use serde_json::Value;
use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

const SCENARIOS: [&str; 2] = ["gpt-13b-128", "moe-128"];
/// Transports, with the names that the table shows.
const TRANSPORTS: [(&str, &str); 3] = [("strack", "STrack"), ("rocev2", "DCQCN"), ("hpcc", "HPCC")];
/// The last line of the table's head, after which the rows follow.
pub(super) const RULE: &str = "|---|---|--:|--:|--:|--:|--:|--:|";

/// The rows of the table.
pub(super) fn rows(root: &Path) -> Result<String, String> {
    let (program, folder) = bench(root)?;
    let kept = target(root)?.join("fast-forward");
    let mut rows = String::new();
    for scenario in SCENARIOS {
        for (transport, title) in TRANSPORTS {
            let run = |folder: &Path, further: &[&str]| {
                let mut command = Command::new(&program);
                command.args(["run", scenario, "--threads", "1", "--no-report", "--set"]);
                command.arg(format!("transport.kind={transport}"));
                output(command.args(further).arg("--out").arg(folder))
            };
            let exact = kept.join(format!("{transport}-{scenario}"));
            match summary(&exact) {
                Ok(kept) => println!(
                    "{}: kept, of revision {}",
                    exact.display(),
                    kept["revision"]
                ),
                Err(_) => drop(run(&exact, &[])?),
            }
            let forward = folder.join(format!("{transport}-{scenario}"));
            run(&forward, &["--fast-forward", "1%"])?;
            rows += &row(scenario, title, &summary(&exact)?, &summary(&forward)?);
        }
    }
    // The results have been read.
    let _ = std::fs::remove_dir_all(&folder);
    Ok(rows)
}

pub(super) fn summary(folder: &Path) -> Result<Value, String> {
    let path = folder.join("summary.json");
    let text = std::fs::read_to_string(&path);
    let text = text.map_err(|error| format!("{}: {error}", path.display()))?;
    serde_json::from_str(&text).map_err(|error| format!("{}: {error}", path.display()))
}

fn row(scenario: &str, transport: &str, exact: &Value, forward: &Value) -> String {
    let number = |value: &Value| value.as_f64().unwrap_or(f64::NAN);
    let time = |own: &Value| number(&own["simulated_us"]);
    let cpu = |own: &Value| number(&own["cpu_seconds"]);
    let report = &forward["fast_forward"];
    let mut row = String::new();
    let _ = writeln!(
        row,
        "| `{scenario}` | {transport} | {:.2} ms | {:.0} s | {:.1} s | {:.1} | {:+.3} % | {:.2} % |",
        time(exact) / 1000.0,
        cpu(exact),
        cpu(forward),
        cpu(exact) / cpu(forward),
        100.0 * (time(forward) / time(exact) - 1.0),
        100.0 * number(&report["estimated"]),
    );
    row
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_row_compares_both_runs() {
        let exact = json!({"simulated_us": 2000.0, "cpu_seconds": 400.0});
        let forward = json!({"simulated_us": 1998.0, "cpu_seconds": 20.0,
            "fast_forward": {"estimated": 0.006}});
        assert_eq!(
            row("s", "HPCC", &exact, &forward),
            "| `s` | HPCC | 2.00 ms | 400 s | 20.0 s | 20.0 | -0.100 % | 0.60 % |\n"
        );
    }
}
