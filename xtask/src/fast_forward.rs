//! Table of `docs/src/fast-forward.md`: training iterations with every packet, and with `--fast-forward 1%`.
//!
//! The runs with every packet take 40 minutes. They are kept below `target/fast-forward`; remove that folder to measure them again.

use crate::transports::{bench, target};
use crate::{Faults, output};
use serde_json::Value;
use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

const SCENARIOS: [&str; 2] = ["gpt-13b-128", "moe-128"];
/// Transports, with the names that the table shows.
const TRANSPORTS: [(&str, &str); 3] = [("strack", "STrack"), ("rocev2", "DCQCN"), ("hpcc", "HPCC")];
/// The last line of the table's head, after which the rows follow.
const RULE: &str = "|---|---|--:|--:|--:|--:|--:|--:|";

/// Writes the rows of the table.
pub(crate) fn write(root: &Path) -> Faults {
    let path = root.join("docs/src/fast-forward.md");
    let written = rows(root).and_then(|rows| {
        let page = std::fs::read_to_string(&path).map_err(|error| error.to_string())?;
        let page = with_rows(&page, &rows)
            .ok_or_else(|| format!("{}: there is no line {RULE}", path.display()))?;
        std::fs::write(&path, page).map_err(|error| error.to_string())
    });
    written.err().into_iter().collect()
}

/// The page with these rows of the table instead of its own.
fn with_rows(page: &str, rows: &str) -> Option<String> {
    let (head, rest) = page.split_once(RULE)?;
    let after = rest.strip_prefix('\n')?.lines();
    let after: Vec<&str> = after.skip_while(|line| line.starts_with('|')).collect();
    Some(format!("{head}{RULE}\n{rows}{}\n", after.join("\n")))
}

fn rows(root: &Path) -> Result<String, String> {
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

fn summary(folder: &Path) -> Result<Value, String> {
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
    fn rows_are_replaced_and_nothing_else() {
        let page = format!("a\n{RULE}\n| old |\n| older |\n\nb\n");
        let written = with_rows(&page, "| new |\n").unwrap();
        assert_eq!(written, format!("a\n{RULE}\n| new |\n\nb\n"));
        let written = with_rows(&format!("{RULE}\n\nb\n"), "| new |\n").unwrap();
        assert_eq!(written, format!("{RULE}\n| new |\n\nb\n"));
        assert_eq!(with_rows("no table\n", ""), None);
    }

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
