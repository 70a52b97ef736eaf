//! Workloads from files, and the file errors that a user meets.

use clearway_formats::{FileFormat, parse_hpcc_topology, parse_sizes, parse_topo, read_text};
use clearway_input::InputKind;
use clearway_scenario::{BuildContext, WorkloadSettings};
use clearway_units::{FlowId, Rate, Span, Time, Value};
use clearway_workload::{PublishedSizes, Start, WorkloadError};
use std::path::{Path, PathBuf};

/// An empty folder of this test's own.
fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    if folder.exists() {
        std::fs::remove_dir_all(&folder).unwrap();
    }
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

const NIC_RATES: [Rate; 2] = [Rate::from_gbps(100); 2];

fn context(base_dir: &Path, hosts: u32) -> BuildContext<'_> {
    BuildContext {
        hosts,
        nic_rates: &NIC_RATES,
        gpus_per_node: 1,
        dimensions: &[],
        host_numbers: None,
        seed: 1,
        section: 0,
        base_dir: Some(base_dir),
        taken: BuildContext::ALL_FREE,
    }
}

fn file_settings(file: &str) -> WorkloadSettings {
    let mut settings = WorkloadSettings::named("file").unwrap();
    settings.set("file", &Value::Text(file.into())).unwrap();
    settings
}

#[test]
fn a_file_is_found_beside_the_scenario() {
    let folder = folder("beside");
    std::fs::write(
        folder.join("a.cm"),
        "Nodes 2\nConnections 1\n0->1 start 3 size 5\n",
    )
    .unwrap();
    let built = |hosts| file_settings("a.cm").build(&context(&folder, hosts));
    assert_eq!(built(2).unwrap().flows.len(), 1);
    assert_eq!(built(8).unwrap(), built(2).unwrap());
    let error = built(1).unwrap_err().to_string();
    assert!(
        error.contains("2 hosts") && error.contains("has 1"),
        "{error}"
    );
    let absolute = folder.join("a.cm");
    let elsewhere = context(Path::new("nowhere"), 2);
    let settings = file_settings(absolute.to_str().unwrap());
    assert_eq!(settings.build(&elsewhere), built(2));
}

#[test]
fn failed_links_are_handed_on_and_never_lost() {
    let folder = folder("failures");
    let text = "Nodes 2\nConnections 1\nFailures 1\n0->1 start 0 size 5\n\
        failure switch_type AGG switch_id 0 link_id 0\n";
    std::fs::write(folder.join("a.cm"), text).unwrap();
    let settings = file_settings("a.cm");
    assert_eq!(
        settings.load(&context(&folder, 2)).unwrap().failures.len(),
        1
    );
    assert!(matches!(
        settings.build(&context(&folder, 2)),
        Err(WorkloadError::Setting { key: "file", .. })
    ));
}

#[test]
fn faults_of_files_name_the_file() {
    let folder = folder("faults");
    let missing = file_settings("missing.cm").build(&context(&folder, 2));
    let error = missing.unwrap_err().to_string();
    assert!(
        error.starts_with("cannot read ") && error.contains("missing.cm"),
        "{error}"
    );
    std::fs::write(folder.join("bad.cm"), "Nodes 2\nColour red\n").unwrap();
    let bad = file_settings("bad.cm").build(&context(&folder, 2));
    assert!(
        bad.unwrap_err()
            .to_string()
            .contains("bad.cm:2:1: unknown word `Colour`")
    );
    std::fs::write(folder.join("binary.cm"), b"Nodes 2\n\xff\xfe").unwrap();
    let WorkloadError::File(error) =
        read_text(&folder.join("binary.cm"), InputKind::FLOWS).unwrap_err()
    else {
        panic!("bytes that are no text are a fault in the file");
    };
    assert_eq!(error.line, 2);
}

#[test]
fn files_of_htsim_are_read() {
    let Some(inputs) = clearway_testing::inputs() else {
        return;
    };
    let mut read = 0;
    for entry in std::fs::read_dir(&inputs).unwrap() {
        let path = entry.unwrap().path();
        let name = path.to_str().unwrap();
        let warnings = match path.extension().and_then(|extension| extension.to_str()) {
            Some("cm") => {
                let mut context = context(&inputs, 8192);
                context.base_dir = None;
                let loaded = file_settings(name).load(&context).unwrap();
                assert!(loaded.workload.flows.len() > 1, "{name}");
                loaded.warnings
            }
            Some("topo") => {
                let text = read_text(&path, InputKind::FLOWS).unwrap();
                parse_topo(name, &text).unwrap().warnings
            }
            _ => continue,
        };
        assert_eq!(warnings, [], "{name}");
        read += 1;
    }
    assert!(
        read > 0,
        "{} holds no .cm and no .topo file",
        inputs.display()
    );
}

#[test]
fn files_of_hpcc_are_read() {
    let Some(inputs) = clearway_testing::inputs() else {
        return;
    };
    let text = read_text(&inputs.join("hpcc_fat_topology.txt"), InputKind::TOPOLOGY).unwrap();
    assert!(FileFormat::Auto.is_hpcc(&text));
    let fabric = parse_hpcc_topology("fat", &text).unwrap();
    assert_eq!((fabric.hosts, fabric.switches.len()), (320, 56));
    assert_eq!(fabric.links.len(), 480);
    let of_rate = |gbps| {
        let rate = Rate::from_gbps(gbps);
        fabric.links.iter().filter(|link| link.rate == rate).count()
    };
    assert_eq!((of_rate(100), of_rate(400)), (320, 160));
    let delay = Span::from_us(1);
    assert!(fabric.links.iter().all(|link| link.delay == delay));
    assert_eq!(fabric.warnings, []);

    let settings = file_settings("hadoop_320hosts_50pct_2ms_flow.txt");
    let loaded = settings.load(&context(&inputs, 320)).unwrap();
    assert_eq!(loaded.workload.flows.len(), 33_173);
    let bytes = loaded.workload.flows.iter().map(|flow| flow.bytes.as_u64());
    assert_eq!(bytes.sum::<u64>(), 3_889_345_646);
    let first = loaded.workload.flow(FlowId(0));
    assert_eq!(first.start, Start::At(Time::from_ps(2_000_000_025_000)));
    assert!(settings.load(&context(&inputs, 319)).is_err());
}

#[test]
fn published_sizes_are_those_of_hpcc() {
    let Some(inputs) = clearway_testing::inputs() else {
        return;
    };
    for (name, file) in [
        ("hadoop", "FbHdp_distribution.txt"),
        ("websearch", "WebSearch_distribution.txt"),
        ("ali-storage", "AliStorage2019.txt"),
    ] {
        let text = read_text(&inputs.join(file), InputKind::FLOWS).unwrap();
        let published = PublishedSizes::named(name).unwrap();
        assert_eq!(parse_sizes(file, &text).unwrap(), published.distribution());
    }
}

#[test]
fn sizes_of_arrivals_come_from_a_file() {
    let folder = folder("sizes");
    std::fs::write(folder.join("sizes.txt"), "9999 0\n10000 100\n").unwrap();
    let settings = |sizes: &str| {
        let mut settings = WorkloadSettings::named("poisson").unwrap();
        settings.set("sizes", &Value::Text(sizes.into())).unwrap();
        settings
    };
    let own = settings("sizes.txt");
    let built = own.build(&context(&folder, 2)).unwrap();
    let sizes = built.flows.iter().map(|flow| flow.bytes.as_u64());
    assert!(sizes.into_iter().all(|bytes| bytes == 9999));
    // 50 Gb/s from each of two hosts make 1250 such flows in a millisecond.
    assert!(built.flows.len().abs_diff(1250) < 4 * 36);
    assert_eq!(own.files(), ["sizes"]);
    assert!(settings("websearch").files().is_empty());

    std::fs::write(folder.join("bad.txt"), "0 0\n10000 90\n").unwrap();
    let error = settings("bad.txt").build(&context(&folder, 2)).unwrap_err();
    assert!(matches!(error, WorkloadError::File(error) if error.line == 2));
}

#[test]
fn the_unit_of_starts_belongs_to_connection_matrices() {
    let folder = folder("units");
    std::fs::write(folder.join("flows.txt"), "1\n0 1 3 100 5 2\n").unwrap();
    let load = |unit: &str| {
        let mut settings = file_settings("flows.txt");
        let unit = Value::Text(unit.into());
        settings.set("start-unit", &unit).unwrap();
        settings.load(&context(&folder, 2))
    };
    assert_eq!(load("auto").unwrap(), load("s").unwrap());
    assert!(matches!(
        load("us"),
        Err(WorkloadError::Setting {
            key: "start-unit",
            ..
        })
    ));
}
