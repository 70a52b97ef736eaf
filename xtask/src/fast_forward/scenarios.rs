//! Random scenarios: long flows, or jobs, on small fabrics with one of all transports.

use clearway_units::{Purpose, RandomStream};
use std::fmt::Write as _;

/// Traffic of a random scenario.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Traffic {
    /// One to twelve flows.
    Flows,
    /// One to three jobs.
    Jobs,
}

const TRANSPORTS: [&str; 15] = [
    "strack",
    "rocev2",
    "dcqcn-2016",
    "tmdml",
    "dctcp",
    "tcp",
    "hpcc",
    "swift",
    "timely",
    "irn",
    "s-perc",
    "1rc",
    "uet",
    "uet-rccc",
    "uet-no-trim",
];

const COLLECTIVES: [&str; 10] = [
    "ring-all-reduce",
    "ring-all-reduce",
    "ring-reduce-scatter",
    "ring-all-gather",
    "direct-all-reduce",
    "halving-doubling",
    "double-binary-tree",
    "all-to-all",
    "hierarchical-all-reduce",
    "direct-all-gather",
];

/// Draws of a scenario.
struct Draw(RandomStream);

impl Draw {
    fn one<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.0.below(of.len() as u32) as usize]
    }

    fn number(&mut self, from: u32, to: u32) -> u32 {
        from + self.0.below(to - from + 1)
    }

    /// A size in megabytes, each factor of two as likely.
    fn megabytes(&mut self, from: u32, doublings: u32) -> u32 {
        let base = from << self.0.below(doublings);
        base + self.0.below(base)
    }

    fn chance(&mut self, p: f64) -> bool {
        self.0.chance(p)
    }
}

/// The text of a random scenario.
pub(super) fn scenario(traffic: Traffic, number: u32) -> String {
    let stream = u64::from(number) << 1 | u64::from(traffic == Traffic::Jobs);
    let mut draw = Draw(RandomStream::new(1, Purpose::Test, stream));
    let mut text =
        format!("name = \"{traffic:?}-{number}\"\nseed = {number}\nstop.at-most = \"60s\"\n\n");
    let hosts = fabric(&mut draw, &mut text);
    let _ = writeln!(text, "\n[transport]\nkind = \"{}\"", draw.one(&TRANSPORTS));
    match traffic {
        Traffic::Flows => flows(&mut draw, hosts, &mut text),
        Traffic::Jobs => jobs(&mut draw, hosts, &mut text),
    }
    text
}

/// Writes the fabric; returns its hosts.
fn fabric(draw: &mut Draw, text: &mut String) -> u32 {
    let (kind, hosts) = match draw.number(0, 9) {
        0..4 => {
            let (leaves, below) = (draw.one(&[2, 4]), draw.one(&[4, 8]));
            let spines = draw.one(&[1, 2, 4]);
            let hosts = leaves * below;
            let keys = format!(
                "\"leaf-spine\"\nhosts = {hosts}\nhosts-per-leaf = {below}\nspines = {spines}"
            );
            (keys, hosts)
        }
        4..6 => {
            let (nodes, gpus) = (draw.one(&[2, 4]), draw.one(&[4, 8]));
            let keys = format!("\"rail-optimised\"\nnodes = {nodes}\ngpus-per-node = {gpus}");
            (keys, nodes * gpus)
        }
        6 => ("\"torus\"\ndimensions = [4, 4]".into(), 16),
        7 => ("\"single-switch\"\nhosts = 12".into(), 12),
        _ => ("\"fat-tree\"\nradix = 4\ntiers = 3".into(), 16),
    };
    let (rate, delay) = (
        draw.one(&["100Gbps", "400Gbps"]),
        draw.one(&["500ns", "1us", "2us"]),
    );
    let _ = writeln!(
        text,
        "[topology]\nkind = {kind}\nlink-rate = \"{rate}\"\nlink-delay = \"{delay}\""
    );
    hosts
}

fn flows(draw: &mut Draw, hosts: u32, text: &mut String) {
    let count = draw.one(&[1, 1, 2, 2, 3, 4, 6, 8, 12]);
    let hot = draw.number(0, hosts - 1);
    let mut list = Vec::new();
    for _ in 0..count {
        let src = draw.number(0, hosts - 1);
        let dst = match draw.chance(0.4) {
            true if hot != src => hot,
            _ => (src + draw.number(1, hosts - 1)) % hosts,
        };
        let (megabytes, at) = (
            draw.megabytes(20, 5),
            draw.one(&[0, 0, 1]) * draw.number(0, 5000),
        );
        list.push(format!("\"{src}->{dst} {megabytes}MB at {at}us\""));
    }
    let _ = writeln!(
        text,
        "\n[[workload]]\nkind = \"flows\"\nflows = [{}]",
        list.join(", ")
    );
}

fn jobs(draw: &mut Draw, hosts: u32, text: &mut String) {
    let count = draw.one(&[1, 1, 2, 2, 3]);
    for _ in 0..count {
        let ranks = (hosts / count).clamp(2, 8);
        let kind = draw.one(&COLLECTIVES);
        let iterations = draw.one(&[3, 8, 20, 40]);
        let kilobytes = 500 * draw.megabytes(1, 5) / count;
        let _ = writeln!(
            text,
            "\n[[workload]]\nkind = \"{kind}\"\nranks = {ranks}\nsize = \"{kilobytes}kB\"\niterations = {iterations}"
        );
        if draw.chance(0.6) {
            let compute = draw.one(&[20, 100, 500, 2000]);
            let _ = writeln!(text, "compute = \"{compute}us\"");
            if draw.chance(0.5) {
                let buckets = draw.one(&[2, 4]);
                let _ = writeln!(text, "buckets = {buckets}\noverlap = 0.5");
            }
        }
        if kind == "all-to-all" {
            text.push_str("parallelism = \"auto\"\n");
        }
        if draw.chance(0.35) {
            let jitter = draw.one(&["0.01", "0.05", "0.2"]);
            let _ = writeln!(text, "jitter = {jitter}");
        }
        if draw.chance(0.3) {
            text.push_str("placement = \"random\"\n");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scenarios_repeat_and_differ() {
        let texts = |traffic| (0..40).map(move |number| scenario(traffic, number));
        for traffic in [Traffic::Flows, Traffic::Jobs] {
            assert!(texts(traffic).eq(texts(traffic)));
            let different: std::collections::BTreeSet<String> = texts(traffic).collect();
            assert_eq!(different.len(), 40);
            assert!(different.iter().any(|text| text.contains("torus")));
        }
    }
}
