//! Writes connection matrices.

use clearway_units::Time;
use clearway_workload::{FlowSpec, Start, TriggerIndex, TriggerKind, Workload};
use std::collections::BTreeSet;
use std::fmt::Write as _;

/// `workload` as the text of a `.cm` file for `hosts` hosts, with starts in microseconds.
///
/// For a workload that passes its [`check`](Workload::check), [`parse_cm`](crate::parse_cm) reads the same workload back. If a label is
/// zero or occurs twice, as in merged workloads, numbers from 1 replace all labels.
///
/// `htsim_uec` itself takes whole microseconds only and never fires `recv_done_trigger`.
pub fn write_cm(workload: &Workload, hosts: u32) -> String {
    let flow_ids = ids(workload.flows.iter().map(|flow| flow.label));
    let trigger_ids = ids(workload.triggers.iter().map(|trigger| trigger.label));
    let (flows, triggers) = (flow_ids.len(), trigger_ids.len());
    let mut text = format!("Nodes {hosts}\nConnections {flows}\n");
    if triggers > 0 {
        line(&mut text, format_args!("Triggers {triggers}"));
    }
    for (flow, id) in workload.flows.iter().zip(&flow_ids) {
        write_flow(&mut text, flow, *id, &trigger_ids);
    }
    for (trigger, id) in workload.triggers.iter().zip(&trigger_ids) {
        match trigger.kind {
            TriggerKind::Oneshot => line(&mut text, format_args!("trigger id {id} oneshot")),
            TriggerKind::Multishot => line(&mut text, format_args!("trigger id {id} multishot")),
            TriggerKind::Barrier { count } => {
                line(
                    &mut text,
                    format_args!("trigger id {id} barrier count {count}"),
                );
            }
        }
    }
    text
}

fn write_flow(text: &mut String, flow: &FlowSpec, id: u64, trigger_ids: &[u64]) {
    let trigger = |index: TriggerIndex| trigger_ids[index.index()];
    let optional = |word: &str, index: Option<TriggerIndex>| match index {
        Some(index) => format!(" {word} {}", trigger(index)),
        None => String::new(),
    };
    let start = match flow.start {
        Start::At(time) => format!("start {}", microseconds(time)),
        Start::On(index) => format!("trigger {}", trigger(index)),
        Start::Posted(_) => panic!("a connection matrix has no jobs"),
    };
    let sent = optional("send_done_trigger", flow.on_sent);
    let received = optional("recv_done_trigger", flow.on_received);
    let (src, dst, bytes) = (flow.src, flow.dst, flow.bytes.as_u64());
    line(
        text,
        format_args!("{src}->{dst} id {id} {start} size {bytes}{sent}{received}"),
    );
}

fn line(text: &mut String, content: std::fmt::Arguments<'_>) {
    writeln!(text, "{content}").expect("a String takes all text");
}

/// The labels if they are valid ids, else numbers from 1.
fn ids(labels: impl Iterator<Item = u64> + Clone) -> Vec<u64> {
    let distinct: BTreeSet<u64> = labels.clone().collect();
    let count = labels.clone().count();
    if distinct.len() == count && !distinct.contains(&0) {
        labels.collect()
    } else {
        (1..).take(count).collect()
    }
}

/// Exact time in microseconds, without trailing zeros.
fn microseconds(time: Time) -> String {
    const PS_PER_US: u64 = 1_000_000;
    let (whole, rest) = (time.as_ps() / PS_PER_US, time.as_ps() % PS_PER_US);
    match rest {
        0 => whole.to_string(),
        _ => format!("{whole}.{}", format!("{rest:06}").trim_end_matches('0')),
    }
}
