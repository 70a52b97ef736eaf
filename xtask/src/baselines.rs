//! `docs/src/baselines.md`: each preset at three rates, and the effect of halving or doubling one of its settings.

use crate::Faults;
use crate::transports::{ROWS, bench, cell, compare};
use std::fmt::Write as _;
use std::path::Path;

/// A scenario of the page: title, text, and the file at a given rate of hosts.
struct Scenario {
    title: &'static str,
    file: fn(&str) -> String,
}

const SCENARIOS: [Scenario; 3] = [
    Scenario {
        title: "incast",
        file: |rate| {
            format!(
                "[topology]\nkind = \"single-switch\"\nhosts = 17\nlink-rate = \"{rate}\"\n\n\
                 [[workload]]\nkind = \"incast\"\nsenders = 16\nmessage = \"2MB\"\n"
            )
        },
    },
    Scenario {
        title: "permutation",
        file: |rate| {
            format!(
                "[topology]\nkind = \"leaf-spine\"\nhosts = 64\nhosts-per-leaf = 16\nspines = 16\nlink-rate = \"{rate}\"\n\n\
                 [[workload]]\nkind = \"permutation\"\nmessage = \"2MB\"\n"
            )
        },
    },
    Scenario {
        title: "web search",
        file: |rate| {
            format!(
                "[topology]\nkind = \"leaf-spine\"\nhosts = 64\nhosts-per-leaf = 16\nspines = 8\nlink-rate = \"{rate}\"\n\n\
                 [[workload]]\nkind = \"poisson\"\nsizes = \"websearch\"\nload = 0.4\nduration = \"{}\"\n",
                if rate == "25Gbps" {
                    "8ms"
                } else if rate == "100Gbps" {
                    "2ms"
                } else {
                    "500us"
                }
            )
        },
    },
];

const RATES: [&str; 3] = ["25Gbps", "100Gbps", "400Gbps"];
const SEEDS: &str = "3";

/// Setting of a preset with half and twice its value at 400 Gb/s.
struct Knob {
    kind: &'static str,
    name: &'static str,
    half: &'static str,
    twice: &'static str,
}

/// A setting of each preset, and the marking thresholds of presets that react to marks.
const KNOBS: &[Knob] = &[
    Knob {
        kind: "strack",
        name: "marks",
        half: "switch.ecn.kmin=12.5%bdp,switch.ecn.kmax=37.5%bdp",
        twice: "switch.ecn.kmin=50%bdp,switch.ecn.kmax=150%bdp",
    },
    Knob {
        kind: "strack",
        name: "`target-qdelay`, 8 us",
        half: "transport.target-qdelay=4us",
        twice: "transport.target-qdelay=16us",
    },
    Knob {
        kind: "uet",
        name: "`target-rtts`, 0.75",
        half: "transport.target-rtts=0.375",
        twice: "transport.target-rtts=1.5",
    },
    Knob {
        kind: "uet",
        name: "`switch.queue`, 1bdp",
        half: "switch.queue=50%bdp",
        twice: "switch.queue=2bdp",
    },
    Knob {
        kind: "uet-rccc",
        name: "`switch.queue`, 1bdp",
        half: "switch.queue=50%bdp",
        twice: "switch.queue=2bdp",
    },
    Knob {
        kind: "uet-no-trim",
        name: "`target-rtts`, 1",
        half: "transport.target-rtts=0.5",
        twice: "transport.target-rtts=2",
    },
    Knob {
        kind: "irn",
        name: "`window`, 1bdp",
        half: "transport.window=50%bdp",
        twice: "transport.window=2bdp",
    },
    Knob {
        kind: "irn",
        name: "`switch.queue`, 5bdp",
        half: "switch.queue=250%bdp",
        twice: "switch.queue=10bdp",
    },
    Knob {
        kind: "dctcp",
        name: "marks",
        half: "switch.ecn.kmin=12us,switch.ecn.kmax=12us",
        twice: "switch.ecn.kmin=48us,switch.ecn.kmax=48us",
    },
    Knob {
        kind: "tcp",
        name: "marks",
        half: "switch.ecn.kmin=50%bdp,switch.ecn.kmax=50%bdp",
        twice: "switch.ecn.kmin=2bdp,switch.ecn.kmax=2bdp",
    },
    Knob {
        kind: "rocev2",
        name: "marks",
        half: "switch.ecn.kmin=500ns,switch.ecn.kmax=20us",
        twice: "switch.ecn.kmin=2us,switch.ecn.kmax=80us",
    },
    Knob {
        kind: "rocev2",
        name: "`rate-ai`, `rate-hai`",
        half: "transport.rate-ai=200Mbps,transport.rate-hai=2Gbps",
        twice: "transport.rate-ai=800Mbps,transport.rate-hai=8Gbps",
    },
    Knob {
        kind: "dcqcn-2016",
        name: "marks",
        half: "switch.ecn.kmin=20600B,switch.ecn.kmax=515KB",
        twice: "switch.ecn.kmin=82400B,switch.ecn.kmax=2060KB",
    },
    Knob {
        kind: "timely",
        name: "`t-low`, `t-high`",
        half: "transport.t-low=6us,transport.t-high=21us",
        twice: "transport.t-low=25us,transport.t-high=84us",
    },
    Knob {
        kind: "timely",
        name: "`rate-ai`",
        half: "transport.rate-ai=200Mbps",
        twice: "transport.rate-ai=800Mbps",
    },
    Knob {
        kind: "hpcc",
        name: "`rate-ai`, 200 Mb/s",
        half: "transport.rate-ai=100Mbps",
        twice: "transport.rate-ai=400Mbps",
    },
    Knob {
        kind: "swift",
        name: "`rate-ai`, 200 Mb/s",
        half: "transport.rate-ai=100Mbps",
        twice: "transport.rate-ai=400Mbps",
    },
    Knob {
        kind: "swift",
        name: "`hop-delay`, 2 us",
        half: "transport.hop-delay=1us",
        twice: "transport.hop-delay=4us",
    },
    Knob {
        kind: "s-perc",
        name: "`exempt`, 1bdp",
        half: "transport.exempt=50%bdp",
        twice: "transport.exempt=2bdp",
    },
    Knob {
        kind: "1rc",
        name: "`control-gap`, 16",
        half: "transport.control-gap=8",
        twice: "transport.control-gap=32",
    },
];

/// Text before the tables.
const HEAD: &str = include_str!("baselines.md");

/// Writes the page.
pub(crate) fn write(root: &Path) -> Faults {
    let written = page(root).and_then(|page| {
        let path = root.join("docs/src/baselines.md");
        std::fs::write(&path, page).map_err(|error| format!("{}: {error}", path.display()))
    });
    written.err().into_iter().collect()
}

fn page(root: &Path) -> Result<String, String> {
    let (program, folder) = bench(root)?;
    let mut page = HEAD.to_owned();
    for scenario in &SCENARIOS {
        page += &by_rate((&program, &folder), scenario)?;
    }
    page += &sensitivity((&program, &folder))?;
    // The results have been read.
    let _ = std::fs::remove_dir_all(&folder);
    Ok(page)
}

/// Results of each preset in a scenario at each rate.
fn by_rate(place: (&Path, &Path), scenario: &Scenario) -> Result<String, String> {
    const MEASURES: [(&str, usize); 4] = [
        ("fct_us.max", 0),
        ("slowdown.p99", 2),
        ("packets.dropped", 0),
        ("packets.pfc_pauses", 0),
    ];
    let mut rows: Vec<String> = ROWS.iter().map(|kind| format!("| {kind} |")).collect();
    for rate in RATES {
        let path = place.1.join("scenario.toml");
        std::fs::write(&path, (scenario.file)(rate)).map_err(|error| error.to_string())?;
        let others = ROWS.iter().skip(1);
        let others = others.map(|kind| format!(":transport.kind={kind}"));
        let compared = compare(place, &path, others, SEEDS)?;
        for (number, row) in rows.iter_mut().enumerate() {
            for (measure, decimals) in MEASURES {
                let _ = write!(row, " {} |", cell(&compared, measure, number, decimals));
            }
        }
    }
    let title = scenario.title;
    let mut text = format!(
        "\n### {}{}\n\n```toml\n",
        title[..1].to_uppercase(),
        &title[1..]
    );
    text += &(scenario.file)("400Gbps");
    text += "```\n\n| |";
    for rate in RATES {
        let _ = write!(text, " {rate}: slowest, us | p99 | dropped | pauses |");
    }
    text += "\n|---|";
    text += &"---|".repeat(12);
    text.push('\n');
    rows.iter().for_each(|row| text += &format!("{row}\n"));
    Ok(text)
}

/// The 99th percentile of the slowdown with half of a setting, the setting, and twice the setting.
fn sensitivity(place: (&Path, &Path)) -> Result<String, String> {
    let mut rows: Vec<String> = KNOBS
        .iter()
        .map(|knob| format!("| {} | {} |", knob.kind, knob.name))
        .collect();
    for scenario in &SCENARIOS {
        let path = place.1.join("scenario.toml");
        std::fs::write(&path, (scenario.file)("400Gbps")).map_err(|error| error.to_string())?;
        let others = KNOBS.iter().flat_map(|knob| {
            let with = |more: &str| format!(":transport.kind={}{more}", knob.kind);
            [
                with(&format!(",{}", knob.half)),
                with(""),
                with(&format!(",{}", knob.twice)),
            ]
        });
        // The same preset is in several knobs, but only once in a comparison.
        for (row, three) in rows.iter_mut().zip(others.collect::<Vec<_>>().chunks(3)) {
            let compared = compare(place, &path, three.to_vec(), SEEDS)?;
            let cells: Vec<String> = (1..=3)
                .map(|number| cell(&compared, "slowdown.p99", number, 2))
                .collect();
            let _ = write!(row, " {} |", cells.join(" / "));
        }
    }
    let mut text = String::from(
        "\n## Half and twice as much\n\nThe 99th percentile of the slowdown at 400 Gb/s with half of a setting, with the preset, and with twice as much.\n\n\
         | | setting | incast | permutation | web search |\n|---|---|---|---|---|\n",
    );
    rows.iter().for_each(|row| text += &format!("{row}\n"));
    Ok(text)
}
