//! Instructions per packet-hop and per flit-hop, by callgrind: the same on a busy machine as on an idle one.

use crate::size::{self, Built};
use crate::{Faults, output};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// Override that turns off sampling over time.
const UNWATCHED: &str = "observe.series.every=off";

/// Measured cases.
const CASES: [Case; 11] = [
    // The longest case first, so that the others need not wait for it at the end.
    Case {
        name: "permutation-64k",
        scenario: "permutation-64k",
        hops: PACKET_HOPS,
        least: "workload.message=1B",
        overrides: &[UNWATCHED, "workload.message=16KB"],
    },
    Case {
        name: "quickstart",
        scenario: "quickstart",
        hops: PACKET_HOPS,
        least: "workload.message=1B",
        overrides: &[UNWATCHED],
    },
    Case {
        name: "permutation-1k",
        scenario: "permutation-1k",
        hops: PACKET_HOPS,
        least: "workload.message=1B",
        overrides: &[UNWATCHED],
    },
    Case {
        name: "permutation-1k, sampled as by default",
        scenario: "permutation-1k",
        hops: PACKET_HOPS,
        least: "workload.message=1B",
        overrides: &[],
    },
    Case {
        name: "quickstart, shared buffer",
        scenario: "quickstart",
        hops: PACKET_HOPS,
        least: "workload.message=1B",
        overrides: &[UNWATCHED, "switch.kind=shared-buffer"],
    },
    Case {
        name: "websearch-1k",
        scenario: "websearch-1k",
        hops: PACKET_HOPS,
        least: "workload[0].load=0.02",
        overrides: &[
            UNWATCHED,
            "workload[0].duration=20us",
            "workload[1].count=1",
        ],
    },
    Case {
        name: "hadoop-320",
        scenario: "hadoop-320",
        hops: PACKET_HOPS,
        least: "workload.load=0.01",
        overrides: &[UNWATCHED, "workload.duration=40us"],
    },
    Case {
        name: "hadoop-320, HPCC",
        scenario: "hadoop-320",
        hops: PACKET_HOPS,
        least: "workload.load=0.01",
        overrides: &[UNWATCHED, "workload.duration=40us", "transport.kind=hpcc"],
    },
    Case {
        name: "training-256",
        scenario: "training-256",
        hops: PACKET_HOPS,
        least: "workload.size=1KB",
        overrides: &[UNWATCHED, "workload.iterations=1", "workload.size=512KB"],
    },
    Case {
        name: "quickstart, all-to-all",
        scenario: "quickstart",
        hops: PACKET_HOPS,
        least: "workload.size=128B",
        overrides: &[UNWATCHED, "workload.kind=all-to-all", "workload.size=2MB"],
    },
    Case {
        name: "nvlink-64",
        scenario: "nvlink-64",
        hops: FLIT_HOPS,
        least: "workload.transactions=1",
        overrides: &[UNWATCHED, "workload.transactions=16"],
    },
];

/// Names of hops in `summary.json`.
const PACKET_HOPS: &str = "packet_hops";
const FLIT_HOPS: &str = "flit_hops";
/// Limit of instructions per hop, which every change has to stay below.
const BAR: u64 = 900;
/// The same limit for packets that carry telemetry over each hop.
const BAR_OF_TELEMETRY: u64 = 1100;
/// Largest excess over the recorded figure that a change may have, in percent.
const TOLERANCE: u64 = 2;
const TABLE: &str = "benchmarks/instructions.md";
const HEADER: &str = "\
# Instructions per hop

Counted by callgrind over the whole process on one thread, minus those of the same run with messages of one byte (or one transaction, or
1 or 2 % load), divided by the hops of packets, or of flits, that the larger run has more; no report is written, and nothing is watched
unless the name says so. `websearch-1k` is cut to 20 us and one incast, `hadoop-320` to 40 us, `training-256` to one iteration of 512 KB,
`permutation-64k` to messages of 16 KB.
`cargo xtask bench` measures again and rewrites this table;
`cargo xtask bench --check` fails above the bar of 900 (1100 with telemetry), or more than 2 % above these figures.

| scenario | instructions per hop | of | hops | instructions | of them set-up | revision |
|---|---|---|---|---|---|---|
";

/// Use of the measured figures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Write the figures.
    Record,
    /// Compare the figures with the written ones.
    Check,
}

/// A built-in scenario, with changes.
struct Case {
    /// Name of the case in the table.
    name: &'static str,
    scenario: &'static str,
    /// Name of the case's hops in `summary.json`.
    hops: &'static str,
    /// Change after which the case carries almost no traffic.
    least: &'static str,
    overrides: &'static [&'static str],
}

struct Count {
    instructions: u64,
    hops: u64,
}

struct Row {
    name: &'static str,
    full: Count,
    setup: Count,
    /// Singular of the counted hops.
    hops: String,
}

impl Row {
    fn bar(&self) -> u64 {
        match self.name.ends_with("HPCC") {
            true => BAR_OF_TELEMETRY,
            false => BAR,
        }
    }

    fn per_hop(&self) -> u64 {
        let instructions = self
            .full
            .instructions
            .saturating_sub(self.setup.instructions);
        let hops = self.full.hops.saturating_sub(self.setup.hops);
        instructions / hops.max(1)
    }
}

/// Measures the cases, and records or checks the figures.
pub(crate) fn run(root: &Path, mode: Mode) -> Faults {
    if Command::new("valgrind").arg("--version").output().is_err() {
        let why = "instructions per packet-hop are NOT checked: valgrind is not installed";
        return clearway_testing::try_skip("valgrind", why)
            .err()
            .into_iter()
            .collect();
    }
    measured(root, mode).unwrap_or_else(|fault| vec![fault])
}

fn measured(root: &Path, mode: Mode) -> Result<Faults, String> {
    let built = build(root)?;
    let rows = measure(&built.program, mode)?;
    match mode {
        Mode::Record => {
            record(root, &rows)?;
            size::record(root, &built)?;
            Ok(over_bar(&rows))
        }
        Mode::Check => {
            let mut faults = compare(root, &rows)?;
            faults.extend(size::check_built(root, &built)?);
            Ok(faults)
        }
    }
}

fn measure(program: &Path, mode: Mode) -> Result<Vec<Row>, String> {
    // One case per processor at a time: instruction counts do not depend on other load.
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let next = AtomicUsize::new(0);
    let measured: Mutex<BTreeMap<usize, Result<Row, String>>> = Mutex::default();
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let place = next.fetch_add(1, Ordering::Relaxed)
                    && let Some(case) = CASES.get(place)
                {
                    // The first case takes longer than all others together.
                    if mode == Mode::Check && place == 0 && clearway_testing::cases(0, 1) == 0 {
                        continue;
                    }
                    let row = measure_case(program, case);
                    let mut measured = measured.lock().unwrap_or_else(PoisonError::into_inner);
                    measured.insert(place, row);
                }
            });
        }
    });
    let measured = measured
        .into_inner()
        .unwrap_or_else(PoisonError::into_inner);
    measured.into_values().collect()
}

fn measure_case(program: &Path, case: &Case) -> Result<Row, String> {
    let row = Row {
        name: case.name,
        full: count(program, case, &[])?,
        setup: count(program, case, &[case.least])?,
        hops: case.hops.trim_end_matches('s').replace('_', "-"),
    };
    println!(
        "{}: {} instructions per {}",
        row.name,
        row.per_hop(),
        row.hops
    );
    Ok(row)
}

/// Builds the program and returns the paths of the program and its libraries.
fn build(root: &Path) -> Result<Built, String> {
    let mut command = Command::new(env!("CARGO"));
    command
        .args([
            "build",
            "--release",
            "--package",
            "clearway",
            "--message-format=json",
        ])
        .current_dir(root);
    Built::read(&output(&mut command)?)
}

/// One run under callgrind.
fn count(program: &Path, case: &Case, more: &[&str]) -> Result<Count, String> {
    let name = case.name.replace([' ', ','], "-");
    let name = format!("clearway-bench-{}-{name}", std::process::id());
    let folder = std::env::temp_dir().join(name);
    let results = folder.join("results");
    std::fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let mut command = Command::new("valgrind");
    command
        .args(["--tool=callgrind", "--callgrind-out-file=callgrind.out"])
        .arg(program)
        .args([
            "run",
            case.scenario,
            "--no-report",
            "--quiet",
            "--threads",
            "1",
            "--out",
        ])
        .arg(&results)
        .args(
            case.overrides
                .iter()
                .chain(more)
                .flat_map(|set| ["--set", set]),
        )
        .current_dir(&folder);
    let ran = command
        .output()
        .map_err(|error| format!("valgrind: {error}"))?;
    let report = String::from_utf8_lossy(&ran.stderr);
    let instructions = report.lines().find_map(|line| {
        let (_, count) = line.split_once("Collected :")?;
        count.trim().parse().ok()
    });
    let summary = std::fs::read_to_string(results.join("summary.json"));
    let hops = summary
        .ok()
        .and_then(|json| json.lines().find_map(|line| number_field(line, case.hops)));
    // The folder of a finished measurement is no longer needed.
    let _ = std::fs::remove_dir_all(&folder);
    match (instructions, hops) {
        (Some(instructions), Some(hops)) => Ok(Count { instructions, hops }),
        _ => Err(format!("valgrind on {} failed:\n{report}", case.name)),
    }
}

/// `"name": number` alone on a line of JSON.
fn number_field(line: &str, name: &str) -> Option<u64> {
    let rest = line.trim().strip_prefix(&format!("\"{name}\": "))?;
    rest.trim_end_matches(',').parse().ok()
}

fn over_bar(rows: &[Row]) -> Faults {
    let over = rows.iter().filter(|row| row.per_hop() > row.bar());
    over.map(|row| {
        format!(
            "{}: {} instructions per {} are above the bar of {}",
            row.name,
            row.per_hop(),
            row.hops,
            row.bar()
        )
    })
    .collect()
}

fn record(root: &Path, rows: &[Row]) -> Result<(), String> {
    let mut git = Command::new("git");
    git.args(["describe", "--always", "--dirty", "--exclude=*"])
        .current_dir(root);
    let revision = output(&mut git).unwrap_or_else(|_| "unknown".into());
    let mut table = String::from(HEADER);
    for row in rows {
        let _ = writeln!(
            table,
            "| {} | {} | {} | {} | {} | {} | {} |",
            row.name,
            row.per_hop(),
            row.hops,
            row.full.hops,
            row.full.instructions,
            row.setup.instructions,
            revision.trim()
        );
    }
    let path = root.join(TABLE);
    std::fs::create_dir_all(root.join("benchmarks"))
        .and_then(|()| std::fs::write(&path, table))
        .map_err(|error| format!("{}: {error}", path.display()))
}

fn compare(root: &Path, rows: &[Row]) -> Result<Faults, String> {
    let table = std::fs::read_to_string(root.join(TABLE))
        .map_err(|error| format!("{TABLE}: {error}; run `cargo xtask bench` first"))?;
    let mut faults = over_bar(rows);
    for row in rows {
        let Some(recorded) = recorded(&table, row.name) else {
            faults.push(format!("{TABLE} has no figure for {}", row.name));
            continue;
        };
        let now = row.per_hop();
        let (name, bar) = (row.name, row.bar());
        println!("{name}: {now}, recorded {recorded}, bar {bar}");
        if now * 100 > recorded * (100 + TOLERANCE) {
            faults.push(format!(
                "{}: {now} instructions per {} are more than {TOLERANCE} % above the recorded {recorded}",
                row.name, row.hops
            ));
        }
    }
    Ok(faults)
}

/// The figure of a scenario in the table.
fn recorded(table: &str, scenario: &str) -> Option<u64> {
    let row = table
        .lines()
        .find_map(|line| line.strip_prefix(&format!("| {scenario} | ")))?;
    row.split(" | ").next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_and_figures_are_found() {
        assert_eq!(
            number_field("  \"packet_hops\": 12,", "packet_hops"),
            Some(12)
        );
        assert_eq!(
            number_field("  \"data_packet_hops\": 12,", "packet_hops"),
            None
        );
        assert_eq!(recorded("| a | 5 | 6 |\n| b | 7 | 8 |\n", "b"), Some(7));
    }

    #[test]
    fn set_up_is_taken_off_both_counts() {
        let count = |instructions, hops| Count { instructions, hops };
        let row = Row {
            name: "x",
            full: count(10_000, 110),
            setup: count(1_000, 10),
            hops: "packet-hop".into(),
        };
        assert_eq!(row.per_hop(), 90);
        assert!(over_bar(&[row]).is_empty());
    }
}
