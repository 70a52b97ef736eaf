//! Measures of users, the sending hosts. Shares are compared between users, because an attack multiplies flows.

use super::options::Options;
use super::run_data::RunData;
use clearway_units::{Bytes, HostId, Time};
use std::collections::BTreeMap;

/// Message of a user: its bytes, its first start and its last finish. The pieces of an attack are one message.
struct Message {
    bytes: Bytes,
    start: Time,
    finish: Time,
}

/// Mean over the users among the hosts `src` of their goodput, Gb/s: bytes of a user's messages over the sum of their completion times.
pub(super) fn user_gbps(run: &RunData, options: &Options) -> Result<f64, String> {
    let mut users: BTreeMap<HostId, (f64, f64)> = BTreeMap::new();
    for ((user, _), message) in messages(run, options)? {
        let (bytes, picoseconds) = users.entry(user).or_default();
        *bytes += message.bytes.as_f64();
        *picoseconds += message.finish.since(message.start).as_ps() as f64;
    }
    let count = users.len() as f64;
    let sum: f64 = users
        .into_values()
        .map(|(bytes, picoseconds)| bytes * 8e3 / picoseconds)
        .sum();
    match count > 0.0 {
        true => Ok(sum / count),
        false => Err("no such host sends".into()),
    }
}

/// Sender of a message, and label of the message if it is in pieces, else number of the flow.
type MessageKey = (HostId, Result<u64, usize>);

/// The messages of the hosts `src`, by host, and by label of the message if it is in pieces, else by number of the flow.
fn messages(run: &RunData, options: &Options) -> Result<BTreeMap<MessageKey, Message>, String> {
    let mut messages: BTreeMap<_, Message> = BTreeMap::new();
    for (place, flow) in run.flows.iter().enumerate() {
        let (src, _) = run.ends[place];
        if !options.src.contain(src) {
            continue;
        }
        let times = flow.started.zip(flow.finished);
        let (start, finish) = times.ok_or_else(|| run.unfinished("messages of these hosts"))?;
        let bytes = run.sizes[place];
        let key = (src, run.attacks[place].ok_or(place));
        let whole = messages.entry(key).and_modify(|whole| {
            whole.bytes += bytes;
            whole.start = whole.start.min(start);
            whole.finish = whole.finish.max(finish);
        });
        whole.or_insert(Message {
            bytes,
            start,
            finish,
        });
    }
    Ok(messages)
}
