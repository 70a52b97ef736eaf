//! `clearway topology`.

use crate::arguments::TopologyArguments;
use crate::atomic_file::AtomicFile;
use crate::failure::Failure;
use crate::messages::warn;
use crate::output::print;
use crate::overwrite_check::refuse_input;
use crate::run::{inputs, load_any};
use clearway_lab::scaleup_fabric::OperationKind;
use clearway_lab::scenario::{InfragraphForm, NicNearness, NodeGpu, infragraph_text};
use clearway_lab::{Assembly, Experiment, Laboratory, ScaleupAssembly, Scenario, TopologyReport};
use clearway_report::fabric_map::stem;
use clearway_report::quantity;
use clearway_report_html::{TopologyPage, render_topology};
use clearway_report_text::{Align, Table};
use clearway_runs::{scaleup, watch};
use clearway_units::{Rate, Time};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::ExitCode;

pub(crate) fn topology(
    laboratory: &Laboratory,
    arguments: &TopologyArguments,
) -> Result<ExitCode, Failure> {
    let scenario = match load_any(laboratory, &arguments.scenario)? {
        Experiment::Packets(scenario) => scenario,
        Experiment::Scaleup(scenario) => {
            if let Some(path) = &arguments.infragraph {
                return Err(Failure::new(format!(
                    "--infragraph {}: a scale-up fabric of kind \"nvlink\" is not written as InfraGraph\n  fix: choose another `topology.kind`",
                    path.display()
                )));
            }
            let assembly = ScaleupAssembly::new(&scenario)?;
            let facts = describe_scaleup(&assembly);
            if let Some(path) = &arguments.html {
                refuse_input(
                    "--html",
                    path,
                    &inputs(&arguments.scenario, scenario.files()),
                )?;
                let page = TopologyPage {
                    name: &scenario.general.name,
                    facts: &facts,
                    cables: &[],
                    fabric: &scaleup::fabric(&assembly),
                };
                write_page(path, &page)?;
            }
            let mut text = as_text(&facts);
            if arguments.links {
                text += &format!("\n{}", links_of_scaleup(&assembly));
            }
            print(&text)?;
            return Ok(ExitCode::SUCCESS);
        }
    };
    let assembly = Assembly::new(&scenario)?;
    assembly.warnings.iter().for_each(|warning| warn(warning));
    if let Some(path) = &arguments.infragraph {
        write_infragraph(arguments, path, &scenario, &assembly)?;
        if path == Path::new("-") {
            return Ok(ExitCode::SUCCESS);
        }
    }
    let facts = describe(&assembly);
    if let Some(path) = &arguments.html {
        let inputs = inputs(&arguments.scenario, scenario.files());
        refuse_input("--html", path, &inputs)?;
        let page = TopologyPage {
            name: &scenario.general.name,
            facts: &facts,
            cables: &kinds_of_cables(&assembly),
            fabric: &watch::fabric(&assembly),
        };
        write_page(path, &page)?;
    }
    let mut text = as_text(&facts);
    let gpus = scenario.fabric()?.node_gpus;
    if !gpus.is_empty() {
        text += &format!("\n{}", describe_node(&gpus));
    }
    if arguments.links {
        text += &format!("\n{}", links(&assembly));
    }
    print(&text)?;
    Ok(ExitCode::SUCCESS)
}

/// Writes the fabric as InfraGraph.
fn write_infragraph(
    arguments: &TopologyArguments,
    path: &Path,
    scenario: &Scenario,
    assembly: &Assembly,
) -> Result<(), Failure> {
    let is_json = path
        .extension()
        .is_some_and(|end| end.eq_ignore_ascii_case("json"));
    let form = match is_json {
        true => InfragraphForm::Json,
        false => InfragraphForm::Yaml,
    };
    let gpus = scenario.fabric()?.gpus_per_node;
    let name = &scenario.general.name;
    let text = infragraph_text(name, &assembly.topology, gpus, form);
    if path == Path::new("-") {
        return print(&text);
    }
    let inputs = inputs(&arguments.scenario, scenario.files());
    refuse_input("--infragraph", path, &inputs)?;
    let fix = "name a file that you may write with `--infragraph`";
    AtomicFile::create(path, fix)?.publish(&text)
}

/// Properties and their values, in order.
type Facts = Vec<(String, String)>;

fn as_text(facts: &Facts) -> String {
    let mut table = Table::new().column("", Align::Left).column("", Align::Left);
    for (name, value) in facts {
        table.row([name, value]);
    }
    table.to_string()
}

fn fact(name: &str, value: &str) -> (String, String) {
    (name.into(), value.into())
}

/// Writes a page with the map of the fabric.
fn write_page(path: &Path, page: &TopologyPage<'_>) -> Result<(), Failure> {
    let fix = "name a file that you may write with `--html`";
    AtomicFile::create(path, fix)?.publish(&render_topology(page))
}

/// Kinds of cables: the kinds of their ends, their number, rate and delay.
fn kinds_of_cables(assembly: &Assembly) -> Vec<[String; 4]> {
    let topology = &assembly.topology;
    let kind = |node| match topology.is_host(node) {
        true => "host".to_owned(),
        false => stem(&topology.node_name(node)).to_owned(),
    };
    let mut kinds = BTreeMap::new();
    for cable in &topology.cables {
        let [one, other] = cable.ends.map(kind);
        let key = (format!("{one} – {other}"), cable.rate, cable.delay);
        *kinds.entry(key).or_insert(0) += 1;
    }
    let rows = kinds.into_iter().map(|((ends, rate, delay), count)| {
        let count = quantity::count(count);
        [ends, count, rate.to_string(), delay.to_string()]
    });
    rows.collect()
}

fn describe(assembly: &Assembly) -> Facts {
    let report = assembly.topology_report();
    let mut facts = Facts::new();
    let tiers = report.switches.iter().enumerate();
    let tiers: Vec<String> = tiers
        .map(|(tier, count)| format!("{count} in tier {tier}"))
        .collect();
    facts.push(fact("topology", &report.summary));
    facts.push(fact("hosts", &quantity::count(report.hosts.into())));
    if report.nics > report.hosts {
        facts.push(fact("NICs", &quantity::count(report.nics.into())));
    }
    facts.push(fact("switches", &tiers.join(", ")));
    let (up, all) = report.cables;
    let down = if up == all {
        String::new()
    } else {
        format!(", {} down", quantity::count((all - up) as u64))
    };
    facts.push(fact(
        "cables",
        &format!("{} up{down}", quantity::count(up as u64)),
    ));
    for (links, pairs) in &report.path_lengths {
        facts.push(fact(
            "path length",
            &format!(
                "{links} links between {} pairs of hosts",
                quantity::count(*pairs)
            ),
        ));
    }
    let network = &report.network;
    facts.push(fact("line rate", &line_rate(&report)));
    facts.push(fact(
        "base RTT",
        &format!(
            "{} with serialisation of {} B and its acknowledgement",
            network.base_rtt,
            network.payload + network.header
        ),
    ));
    facts.push(fact(
        "propagation RTT",
        &network.propagation_rtt.to_string(),
    ));
    facts.push(fact(
        "BDP",
        &format!("{} (line rate x base RTT)", network.bdp),
    ));
    facts.push(fact(
        "BDP of queues",
        &format!(
            "{} (line rate x propagation RTT, at least 4 packets): the unit of `bdp` in [switch]",
            report.queue_bdp
        ),
    ));
    facts.push(fact(
        "shortest delay",
        &format!(
            "{} of a link: no round of the engine is longer",
            report.shortest_delay
        ),
    ));
    facts
}

/// The links of each GPU of a node.
fn describe_node(gpus: &[NodeGpu]) -> String {
    const SHOWN: usize = 4;
    let is_direct = gpus.iter().any(|gpu| !gpu.peers.is_empty());
    let (joined, side) = match is_direct {
        true => ("to GPUs", Align::Left),
        false => ("to its switch", Align::Right),
    };
    let mut table = Table::new()
        .column("GPU of each node", Align::Right)
        .column(joined, side)
        .column("NICs", Align::Left)
        .column("nearest on", Align::Left);
    for (number, gpu) in gpus.iter().enumerate() {
        let nics = gpu.nics.iter().map(|nic| {
            let shared = match nic.gpus {
                1 => String::new(),
                gpus => format!(" for {gpus} GPUs"),
            };
            format!("{} ({}{shared}, rail {})", nic.name, nic.rate, nic.rail)
        });
        let mut nics: Vec<String> = nics.take(SHOWN).collect();
        if gpu.nics.len() > SHOWN {
            nics.push(format!("and {} more", gpu.nics.len() - SHOWN));
        }
        let nearness = match gpu.nearness {
            None => "",
            Some(NicNearness::PciSwitch) => "PCI switch",
            Some(NicNearness::Cpu) => "CPU",
            Some(NicNearness::Host) => "host",
        };
        table.row([
            number.to_string(),
            match is_direct {
                true => describe_peers(&gpu.peers),
                false => gpu.scale_up.map_or(String::new(), |rate| rate.to_string()),
            },
            nics.join(", "),
            nearness.to_owned(),
        ]);
    }
    table.to_string()
}

/// GPUs that links lead to, by rate: "1, 2, 3 (160Gbps), 4 (320Gbps)".
fn describe_peers(peers: &[(u32, Rate)]) -> String {
    const SHOWN: usize = 8;
    let mut by_rate: BTreeMap<Rate, Vec<String>> = BTreeMap::new();
    for (gpu, rate) in peers.iter().take(SHOWN) {
        by_rate.entry(*rate).or_default().push(gpu.to_string());
    }
    let groups = by_rate.iter();
    let mut groups: Vec<String> = groups
        .map(|(rate, gpus)| format!("{} ({rate})", gpus.join(", ")))
        .collect();
    if peers.len() > SHOWN {
        groups.push(format!("and {} more", peers.len() - SHOWN));
    }
    groups.join(", ")
}

fn describe_scaleup(assembly: &ScaleupAssembly<'_>) -> Facts {
    let fabric = &assembly.scenario().fabric;
    let (tree, configuration) = (fabric.nvlink.tree(), &fabric.configuration);
    let mut facts = Facts::new();
    facts.push(fact("GPUs", &quantity::count(tree.gpus.into())));
    let switches = match tree.spines {
        0 => "1".to_owned(),
        spines => format!("{} leaves, {spines} spines", tree.leaves()),
    };
    facts.push(fact("switches", &switches));
    let uplinks = format!(
        "{} of each leaf, for {} GPUs",
        tree.uplinks(),
        tree.gpus_per_leaf
    );
    if tree.spines > 0 {
        facts.push(fact("uplinks", &uplinks));
    }
    facts.push(fact("cycle", &configuration.cycle.to_string()));
    let sizes = configuration.sizes();
    let packets = format!(
        "{} flits, with data {}",
        sizes.header,
        sizes.header + sizes.payload
    );
    facts.push(fact("packets", &packets));
    for (kind, name) in [
        (OperationKind::Write, "idle write"),
        (OperationKind::Read, "idle read"),
    ] {
        let cycles = |far| configuration.idle_latency(kind, far);
        let text = match tree.spines {
            0 => format!("{} cycles", cycles(false)),
            _ => format!(
                "{} cycles within a leaf, {} across",
                cycles(false),
                cycles(true)
            ),
        };
        facts.push(fact(name, &text));
    }
    facts.push(fact("operations", &quantity::count(assembly.operations)));
    facts
}

fn links_of_scaleup(assembly: &ScaleupAssembly<'_>) -> String {
    let mut table = Table::new()
        .column("link", Align::Left)
        .column("rate", Align::Right);
    let rate = assembly.link_rate().to_string();
    for link in assembly.links() {
        table.row([link.name, rate.clone()]);
    }
    table.to_string()
}

fn line_rate(report: &TopologyReport) -> String {
    let first = report.network.line_rate;
    if report.nic_rates.len() <= 1 {
        return first.to_string();
    }
    let rates: Vec<String> = report.nic_rates.iter().map(ToString::to_string).collect();
    format!("{first} of host 0; NICs have {}", rates.join(", "))
}

fn links(assembly: &Assembly) -> String {
    let topology = &assembly.topology;
    let mut table = Table::new()
        .column("link", Align::Left)
        .column("rate", Align::Right)
        .column("delay", Align::Right)
        .column("", Align::Left);
    for (index, cable) in topology.cables.iter().enumerate() {
        let name = topology.link_name(clearway_lab::LinkId::from_end(index, 0));
        let mut remarks = Vec::new();
        if !cable.up {
            remarks.push("down".to_string());
        }
        if cable.up && cable.bit_error_rate > 0.0 {
            remarks.push(format!("bit error rate {}", cable.bit_error_rate));
        }
        if cable.up && cable.packet_loss > 0.0 {
            remarks.push(format!("packet loss {}", cable.packet_loss));
        }
        if cable.up && cable.dead_from != Time::NEVER {
            remarks.push(format!("dead from {}", cable.dead_from.since(Time::ZERO)));
        }
        table.row([
            name,
            cable.rate.to_string(),
            cable.delay.to_string(),
            remarks.join(", "),
        ]);
    }
    table.to_string()
}
