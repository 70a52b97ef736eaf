//! `trace.perfetto` compared with the tables of the same run, by an independent decoder.

use crate::common::{Bench, matrix_scenario};
use clearway_lab::{Assembly, Laboratory, LinkId};
use clearway_report::{Metric, Summary};
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::Field;
use serde_json::{Map, Value, json};
use std::fs::{self, File};
use std::path::Path;
use std::process::Command;

/// Runs `s.toml` with all observations, into the folder `out`.
fn run(bench: &Bench, out: &str, more: &[&str]) {
    let watched = [
        "observe.trace.perfetto=true",
        "observe.series.points=100000",
        "observe.series.links=top:1024",
        "observe.series.flows=top:1024",
    ];
    let mut arguments = vec!["run", "s.toml", "--quiet", "--out", out];
    watched
        .iter()
        .for_each(|pair| arguments.extend(["--set", pair]));
    arguments.extend(more);
    bench.succeed(&arguments);
}

/// The rows of any Parquet file.
fn rows(path: &Path) -> Value {
    let file = SerializedFileReader::new(File::open(path).unwrap()).unwrap();
    let row = |row: parquet::record::Row| {
        let fields = row.get_column_iter().map(|(name, field)| {
            let value = match field {
                Field::Null => Value::Null,
                Field::UInt(value) => json!(value),
                Field::ULong(value) => json!(value),
                Field::Long(value) => json!(value),
                Field::Double(value) => json!(value),
                Field::Str(value) => json!(value),
                other => panic!("column {name}: {other:?}"),
            };
            (name.clone(), value)
        });
        Value::Object(fields.collect::<Map<_, _>>())
    };
    let rows = file.get_row_iter(None).unwrap();
    rows.map(|found| row(found.unwrap())).collect()
}

/// Links and pauses, which the tables of a run lack: `links`, each with the node at which it begins, and `paused`, each link with its
/// pauses.
fn links(bench: &Bench) -> (Value, Value) {
    let path = bench.path("s.toml");
    let laboratory = Laboratory::new();
    let scenario = laboratory.load(path.to_str().unwrap(), &[]).unwrap();
    let assembly = Assembly::new(&scenario).unwrap();
    let topology = &assembly.topology;
    let links = (0..topology.cables.len() as u32 * 2).map(|link| {
        let from = topology.link_ends(LinkId(link)).0.0;
        let node = match from.checked_sub(topology.hosts) {
            None => format!("host{from}"),
            Some(switch) => topology.switches[switch as usize].name.clone(),
        };
        json!([topology.link_name(LinkId(link)), node])
    });
    let pauses = laboratory.run(&scenario).unwrap().pauses;
    let paused = pauses.into_iter().map(|link| {
        let name = topology.link_name(link.link);
        json!([name, link.pauses, link.time.as_ps()])
    });
    (links.collect(), paused.collect())
}

/// Compares the timeline in `results` with the tables there; returns a report, or `None` if no decoder is installed.
fn check(bench: &Bench, arrows: Option<&[(u32, u32)]>) -> Option<String> {
    let results = bench.path("results");
    let summary = fs::read_to_string(results.join("summary.json")).unwrap();
    let (links, paused) = links(bench);
    let over_interval = Metric::ALL
        .iter()
        .filter(|metric| metric.merge().is_over_interval());
    let over_interval: Vec<&str> = over_interval.map(|metric| metric.name()).collect();
    let mut tables = json!({
        "flows": rows(&results.join("flows.parquet")),
        "series": rows(&results.join("series.parquet")),
        "summary": serde_json::from_str::<Value>(&summary).unwrap(),
        "links": links,
        "paused": paused,
        "over_interval": over_interval,
    });
    if let Some(arrows) = arrows {
        tables["arrows"] = json!(arrows);
    }
    let file = bench.path("tables.json");
    fs::write(&file, tables.to_string()).unwrap();
    let decoder = Command::new("python3")
        .args(["-c", "import perfetto, google.protobuf"])
        .output();
    if !decoder.is_ok_and(|output| output.status.success()) {
        let why = "the timeline was not decoded: python3 or its package perfetto is missing";
        clearway_testing::skip("perfetto", why);
        return None;
    }
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../tools/perfetto/check.py");
    let output = Command::new("python3")
        .arg(script)
        .args([results.join("trace.perfetto"), file])
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}{errors}");
    if !text.contains("loaded into the trace processor") || text.contains("not loaded") {
        let why = "the timeline was decoded, but not loaded as the viewer does: trace_processor_shell is not on the PATH";
        clearway_testing::skip("trace-processor", why);
    }
    Some(text)
}

/// Number of times that `what` was compared.
fn compared(report: &str, what: &str) -> u32 {
    let counts = report.lines().last().unwrap();
    let prefix = format!("{what}: ");
    let count = counts
        .split(", ")
        .find_map(|item| item.strip_prefix(&prefix));
    count.map_or(0, |count| count.parse().unwrap())
}

const FABRIC: &str =
    "[topology]\nkind = \"leaf-spine\"\nhosts = 16\nhosts-per-leaf = 4\n\n[[workload]]\n";

#[test]
fn a_lossy_run_is_drawn_as_its_tables_have_it() {
    let bench = Bench::new("timeline-lossy");
    let incast = "kind = \"incast\"\nsenders = 12\nmessage = \"400KB\"\n";
    bench.write(
        "s.toml",
        &format!("{FABRIC}{incast}\n[switch]\nqueue = \"41600B\"\n"),
    );
    run(&bench, "results", &[]);
    run(&bench, "elsewhere", &["--threads", "3"]);
    let plain = ["run", "s.toml", "--quiet", "--out", "plain"];
    bench.succeed(&plain);
    let digest = |folder: &str| Summary::read(bench.path(folder)).unwrap().digest;
    assert_eq!(
        digest("results"),
        digest("plain"),
        "who watches changes nothing"
    );
    let bytes = |folder: &str| fs::read(bench.path(folder).join("trace.perfetto")).unwrap();
    assert!(
        bytes("results") == bytes("elsewhere"),
        "threads change nothing"
    );
    if let Some(report) = check(&bench, Some(&[])) {
        assert_eq!(compared(&report, "flow slices"), 12);
        assert!(compared(&report, "drops") > 100, "{report}");
        assert!(compared(&report, "losses") > 10, "{report}");
        assert!(compared(&report, "counter values") > 1000, "{report}");
    }
}

#[test]
fn pauses_of_links_are_drawn() {
    let bench = Bench::new("timeline-lossless");
    let incast = "kind = \"incast\"\nsenders = 12\nmessage = \"1MB\"\n";
    bench.write(
        "s.toml",
        &format!(
            "{FABRIC}{incast}\n[switch]\nkind = \"shared-buffer\"\n\n\
             [transport]\nkind = \"rocev2\"\ncontroller = \"constant\"\n"
        ),
    );
    run(&bench, "results", &[]);
    if let Some(report) = check(&bench, Some(&[])) {
        assert!(compared(&report, "pauses") > 10, "{report}");
        assert_eq!(compared(&report, "drops"), 0, "{report}");
    }
}

#[test]
fn arrows_follow_triggers() {
    let bench = Bench::new("timeline-triggers");
    bench.write(
        "x.cm",
        "Nodes 16\nConnections 5\nTriggers 2\n\
         0->13 id 1 start 0 size 20000 send_done_trigger 1\n\
         2->9 id 2 start 0 size 40000 recv_done_trigger 1\n\
         0->9 id 3 trigger 1 size 20000 send_done_trigger 2\n\
         0->10 id 4 trigger 1 size 20000\n\
         0->11 id 5 trigger 2 size 20000\n\
         trigger id 1 barrier count 2\ntrigger id 2 oneshot\n",
    );
    bench.write("s.toml", &matrix_scenario("x.cm"));
    run(&bench, "results", &[]);
    let arrows = [(0, 2), (1, 2), (0, 3), (1, 3), (2, 4)];
    if let Some(report) = check(&bench, Some(&arrows)) {
        assert_eq!(compared(&report, "arrows"), 5, "{report}");
    }
}

#[test]
fn a_timeline_needs_no_samples_and_none_is_written_unasked() {
    let bench = Bench::new("timeline-alone");
    bench.write("s.toml", &format!("{FABRIC}kind = \"permutation\"\n"));
    let quiet = ["run", "s.toml", "--quiet", "--out", "results"];
    let trace = bench.path("results").join("trace.perfetto");
    bench.succeed(&quiet);
    assert!(!trace.exists());
    let off = ["--set", "observe.series.every=off"];
    let asked = ["--set", "observe.trace.perfetto=true"];
    bench.succeed(&[&quiet[..], &off, &asked].concat());
    let bytes = fs::read(trace).unwrap();
    let has = |word: &str| {
        bytes
            .windows(word.len())
            .any(|part| part == word.as_bytes())
    };
    assert!(has("host15") && has("flow 15 to host"));
    assert!(!has("queue_bytes"));
}
