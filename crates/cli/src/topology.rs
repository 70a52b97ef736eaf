//! `clearway topology`.

use crate::arguments::TopologyArguments;
use crate::failure::Failure;
use crate::output::print;
use crate::run::load;
use clearway_lab::{Assembly, Laboratory, TopologyReport};
use clearway_report::{Align, Table, quantity};
use std::process::ExitCode;

pub(crate) fn topology(arguments: &TopologyArguments) -> Result<ExitCode, Failure> {
    let scenario = load(&Laboratory::new(), &arguments.scenario)?;
    let assembly = Assembly::new(&scenario)?;
    let mut text = describe(&assembly);
    if arguments.links {
        text += &format!("\n{}", links(&assembly));
    }
    print(&text)?;
    Ok(ExitCode::SUCCESS)
}

fn describe(assembly: &Assembly) -> String {
    let report = assembly.topology_report();
    let mut table = Table::new().column("", Align::Left).column("", Align::Left);
    let tiers = report.switches.iter().enumerate();
    let tiers: Vec<String> = tiers
        .map(|(tier, count)| format!("{count} in tier {tier}"))
        .collect();
    table.row(["topology", &report.summary]);
    table.row(["hosts", &quantity::count(report.hosts.into())]);
    if report.nics > report.hosts {
        table.row(["NICs", &quantity::count(report.nics.into())]);
    }
    table.row(["switches", &tiers.join(", ")]);
    let (up, all) = report.cables;
    let down = if up == all {
        String::new()
    } else {
        format!(", {} down", quantity::count((all - up) as u64))
    };
    table.row([
        "cables",
        &format!("{} up{down}", quantity::count(up as u64)),
    ]);
    for (links, pairs) in &report.path_lengths {
        table.row([
            "path length",
            &format!(
                "{links} links between {} pairs of hosts",
                quantity::count(*pairs)
            ),
        ]);
    }
    let network = &report.network;
    table.row(["line rate", &line_rate(&report)]);
    table.row([
        "base RTT",
        &format!(
            "{} with serialisation of {} B and its acknowledgement",
            network.base_rtt,
            network.payload + network.header
        ),
    ]);
    table.row(["propagation RTT", &network.propagation_rtt.to_string()]);
    table.row(["BDP", &format!("{} (line rate x base RTT)", network.bdp)]);
    table.row([
        "BDP of queues",
        &format!(
            "{} (line rate x propagation RTT): the unit of `bdp` in [switch]",
            report.queue_bdp
        ),
    ]);
    table.row([
        "shortest delay",
        &format!(
            "{} of a link: no round of the engine is longer",
            report.shortest_delay
        ),
    ]);
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
        table.row([
            name,
            cable.rate.to_string(),
            cable.delay.to_string(),
            remarks.join(", "),
        ]);
    }
    table.to_string()
}
