//! `clearway import`: scenarios from the settings of other simulators, which run.

use crate::common::Bench;
use insta::assert_snapshot;

const TOPO: &str = "Nodes 16\nTiers 2\nPodsize 16\nTier 0\nDownlink_speed_Gbps 400\nRadix_Down 4\nRadix_Up 4\n\
    Downlink_Latency_ns 1000\nTier 1\nDownlink_speed_Gbps 400\nRadix_Down 4\nDownlink_Latency_ns 1000\n";

const MATRIX: &str = "Nodes 16\nConnections 1\n0->13 id 7 start 0 size 2000000\n";

fn bench(name: &str) -> Bench {
    let bench = Bench::new(name);
    std::fs::create_dir(bench.path("mix")).unwrap();
    bench.write("small.topo", TOPO);
    bench.write("small.cm", MATRIX);
    bench.write(
        "mix/topology.txt",
        "4 1 3\n3\n0 3 100Gbps 1000ns 0\n1 3 100Gbps 1000ns 0\n2 3 100Gbps 1000ns 0\n",
    );
    bench.write("mix/flow.txt", "1\n0 2 3 100 100000 2.0\n");
    bench.write(
        "mix/config.txt",
        "TOPOLOGY_FILE mix/topology.txt\nFLOW_FILE mix/flow.txt\nSIMULATOR_STOP_TIME 4.00\nCC_MODE 3\nRATE_AI 50Mb/s\n\
         VAR_WIN 1\nMULTI_RATE 0\nMI_THRESH 0\nKMAX_MAP 1 100000000000 1600\nKMIN_MAP 1 100000000000 400\n\
         PMAX_MAP 1 100000000000 0.2\nBUFFER_SIZE 32\n",
    );
    bench
}

/// The flow alone takes 48.8813 us in `htsim_uec`, too.
#[test]
fn an_imported_command_line_runs_as_in_htsim() {
    let bench = bench("import-htsim");
    let options = [
        "-topo",
        "small.topo",
        "-tm",
        "small.cm",
        "-linkspeed",
        "400000",
    ];
    let import = [&["import", "htsim", "--"], &options[..]].concat();
    let printed = bench.succeed(&import);
    bench.write("printed.toml", &printed);
    let run = ["run", "-q", "--no-report", "--out", "o", "--htsim-txt", "-"];
    let finished = bench.succeed(&[&run[..], &["printed.toml"]].concat());
    assert!(finished.contains("finished at 48.8813 "), "{finished}");
    let import = [
        &["import", "htsim", "--out", "sub/mine.toml", "--"],
        &options[..],
    ]
    .concat();
    assert_snapshot!(bench.succeed(&import), @"Wrote sub/mine.toml; `clearway run sub/mine.toml` runs it.");
    let written = bench.read("sub/mine.toml");
    assert!(written.contains("file = \"../small.topo\""), "{written}");
    assert_eq!(
        bench.succeed(&[&run[..], &["sub/mine.toml"]].concat()),
        finished
    );
}

#[test]
fn what_has_no_counterpart_is_a_warning() {
    let bench = bench("import-warnings");
    let output = bench.output(&[
        "import",
        "htsim",
        "--",
        "-topo",
        "small.topo",
        "-tm",
        "small.cm",
        "-linkspeed",
        "400000",
        "-pcie",
        "1.1",
    ]);
    assert!(output.status.success());
    let warnings = String::from_utf8(output.stderr).unwrap();
    assert_snapshot!(warnings, @"warning: `-pcie 1.1`: transfers between NIC and memory take no time");
}

#[test]
fn an_imported_configuration_of_hpcc_runs() {
    let bench = bench("import-hpcc");
    bench.succeed(&["import", "hpcc", "mix/config.txt", "--out", "mine.toml"]);
    let run = [
        "run",
        "mine.toml",
        "-q",
        "--no-report",
        "--out",
        "o",
        "--fct-txt",
        "-",
    ];
    let fct = bench.succeed(&run);
    assert!(
        fct.starts_with("0b000001 0b000201 10000 100 100000 2000000000 "),
        "{fct}"
    );
}

#[test]
fn mistakes_are_the_users() {
    let bench = bench("import-mistakes");
    bench.write("mine.toml", "");
    bench.write(
        "odd.txt",
        "TOPOLOGY_FILE mix/topology.txt\nFLOW_FLIE mix/flow.txt\n",
    );
    let errors = [
        bench.refuse(&["import", "htsim", "--", "-topo", "small.topo"]),
        bench.refuse(&[
            "import",
            "htsim",
            "--",
            "-tm",
            "small.cm",
            "-sender_algo",
            "nscc",
        ]),
        bench.refuse(&[
            "import",
            "htsim",
            "--out",
            "mine.toml",
            "--",
            "-tm",
            "small.cm",
        ]),
        bench.refuse(&["import", "hpcc", "odd.txt"]),
        bench.refuse(&["import", "hpcc", "nowhere.txt"]),
        bench.refuse(&[
            "import",
            "simai",
            "odd.txt",
            "-n",
            "mix/topology.txt",
            "-w",
            "layers.txt",
        ]),
    ];
    assert_snapshot!(errors.join("\n"), @"
    `-tm` is missing
      fix: name the connection matrix: `-tm FILE.cm`; a scenario cannot read it from standard input
    `htsim_uec` has no option `-sender_algo`
      fix: did you mean `-sender_cc_algo`? The options of `htsim_uec` are in its `main_uec.cpp`
    --out mine.toml: there is such a file already
      fix: name another one, or replace it with `--force`
    odd.txt:2: there is no key `FLOW_FLIE`
      fix: did you mean `FLOW_FILE`? Remove the line, or put a `#` before it: HPCC's simulator and SimAI ignore it
    cannot read nowhere.txt: No such file or directory (os error 2)
      fix: name a file that exists and that you may read
    odd.txt:2: there is no key `FLOW_FLIE`
      fix: did you mean `FLOW_FILE`? Remove the line, or put a `#` before it: HPCC's simulator and SimAI ignore it
    ");
}
