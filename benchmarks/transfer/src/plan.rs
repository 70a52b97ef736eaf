//! The transfers that are compared, and their turns.

use crate::end::{EndReport, Listening};
use crate::failure::Failure;
use crate::iperf;
use crate::network::{Namespaces, Network};
use crate::process::{Place, Running};
use crate::report::{Comparison, Row, Sample};
use clap::Args;
use std::fs;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::thread::available_parallelism;
use std::time::Duration;

/// Arguments of the comparison.
#[derive(Debug, Clone, Args)]
pub(crate) struct PlanArguments {
    /// Repetitions, of which medians are printed.
    #[arg(long, default_value_t = 5)]
    repetitions: usize,
    /// Time of each transfer.
    #[arg(long, default_value_t = 2.0)]
    seconds: f64,
    /// Only transfers whose names contain this.
    #[arg(long, default_value = "")]
    only: String,
    /// Print JSON instead of a table.
    #[arg(long)]
    json: bool,
    /// Write the JSON to a file, too.
    #[arg(long)]
    out: Option<PathBuf>,
}

/// Maker of a transfer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Maker {
    Iperf,
    /// The command line of this program with these arguments.
    Own(&'static [&'static str]),
}

/// Name of a transfer, what makes it, and whether it is repeated with both ends on one processor.
const TRANSFERS: [(&str, Maker, bool); 8] = [
    ("iperf3, TCP", Maker::Iperf, true),
    (
        "quinn, 1 stream",
        Maker::Own(&["--protocol", "quinn"]),
        true,
    ),
    (
        "quinn, 8 streams",
        Maker::Own(&["--protocol", "quinn", "--streams", "8"]),
        false,
    ),
    ("strack", Maker::Own(&["--protocol", "strack"]), true),
    (
        "strack, 1 path",
        Maker::Own(&["--protocol", "strack", "--paths", "1"]),
        false,
    ),
    (
        "strack, insecure",
        Maker::Own(&["--protocol", "strack", "--insecure"]),
        true,
    ),
    ("rocev2", Maker::Own(&["--protocol", "rocev2"]), true),
    (
        "rocev2, insecure",
        Maker::Own(&["--protocol", "rocev2", "--insecure"]),
        false,
    ),
];

/// Carries the comparison out and prints it.
pub(crate) fn run(arguments: &PlanArguments) -> Result<(), Failure> {
    if arguments.repetitions == 0 || !(0.1..=600.0).contains(&arguments.seconds) {
        return Err(Failure::new(
            "a comparison needs at least one repetition, and between 0.1 and 600 seconds a transfer",
        ));
    }
    let mut notes = Vec::new();
    let iperf = iperf::version();
    if let Err(failure) = &iperf {
        notes.push(format!(
            "without iperf3: {failure}; install it to have TCP beside the others"
        ));
    }
    let mut networks = vec![Network::Loopback];
    match Namespaces::create() {
        Ok(namespaces) => networks.push(Network::Namespaces(namespaces)),
        Err(failure) => notes.push(format!(
            "without network namespaces: {failure}; be root to have them"
        )),
    }
    let processors = available_parallelism().map_or(1, usize::from);
    if processors < 2 {
        notes.push("one processor: the ends share it in all rows".into());
    }
    let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let load = load.split(' ').next().and_then(|load| load.parse().ok());
    let mut rows = rows(arguments, &networks, iperf.is_ok());
    for repetition in 0..arguments.repetitions {
        for row in &mut rows {
            eprintln!(
                "{}/{} {} {}",
                repetition + 1,
                arguments.repetitions,
                row.network,
                row.name()
            );
            let network = networks
                .iter()
                .find(|network| network.name() == row.network);
            let Some(network) = network else { continue };
            let [sender, receiver] = transfer(arguments, network, row)?;
            row.samples.push(Sample { sender, receiver });
        }
    }
    let comparison = Comparison::new(rows, notes, iperf.ok(), arguments.seconds).at_load(load);
    let json = comparison.to_json()?;
    if let Some(path) = &arguments.out {
        fs::write(path, &json)?;
    }
    crate::print(if arguments.json {
        json.trim_end()
    } else {
        &comparison.text
    })
}

fn rows(arguments: &PlanArguments, networks: &[Network], has_iperf: bool) -> Vec<Row> {
    let mut rows = Vec::new();
    for network in networks {
        for one_core in [false, true] {
            for (name, maker, on_one) in TRANSFERS {
                let row = Row::new(network.name(), name, one_core);
                let wanted = row.name().contains(&arguments.only);
                if wanted && (on_one || !one_core) && (has_iperf || maker != Maker::Iperf) {
                    rows.push(row);
                }
            }
        }
    }
    rows
}

/// One transfer of a row. Returns the reports of sender and receiver.
fn transfer(
    arguments: &PlanArguments,
    network: &Network,
    row: &Row,
) -> Result<[EndReport; 2], Failure> {
    let second = if row.one_core {
        0
    } else {
        available_parallelism().map_or(0, |n| n.get() - 1).min(1)
    };
    let [sender, receiver] = network.namespaces();
    let places = [(0, sender), (second, receiver)].map(|(processor, namespace)| Place {
        processor,
        namespace,
    });
    let maker = TRANSFERS.iter().find(|(name, ..)| *name == row.transfer);
    match maker.map(|(_, maker, _)| *maker) {
        Some(Maker::Own(own)) => own_transfer(network, &places, own, arguments.seconds),
        _ => iperf::transfer(network, &places, arguments.seconds),
    }
}

fn own_transfer(
    network: &Network,
    places: &[Place; 2],
    arguments: &[&str],
    seconds: f64,
) -> Result<[EndReport; 2], Failure> {
    let time = Duration::from_secs_f64(seconds);
    let program = std::env::current_exe()?;
    let program = program.to_string_lossy();
    let mut receive = places[1].command(&program);
    let address = SocketAddr::new(network.receiver(), 0).to_string();
    receive
        .arg("receive")
        .args(arguments)
        .args(["--address", &address]);
    let mut receiver = Running::start(receive, time)?;
    let listening: Listening = serde_json::from_str(&receiver.line()?)?;
    let mut send = places[0].command(&program);
    send.arg("send").args(arguments);
    send.args([
        "--address",
        &listening.address.to_string(),
        "--seconds",
        &seconds.to_string(),
    ]);
    send.args(["--certificate", &listening.certificate]);
    let mut sender = Running::start(send, time)?;
    let sent: EndReport = serde_json::from_str(&sender.line()?)?;
    let received: EndReport = serde_json::from_str(&receiver.line()?)?;
    Ok([sent, received])
}
