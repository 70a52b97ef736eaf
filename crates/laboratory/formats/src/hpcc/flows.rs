//! The lines of a file of flows.

use super::{Announced, Record, quantity};
use crate::text::{DecimalFault, Line, Source, lines, shown, whole_number};
use clearway_units::{Bytes, HostId, Time};
use clearway_workload::{FileError, FileWarning, FlowSpec, Workload};

const WORDS: &[&str] = &["src", "dst", "pg", "dport", "size", "start"];

/// Hosts of the fabric of a file of flows.
#[derive(Debug, Clone, Copy)]
pub struct HpccHosts<'a> {
    /// Number of hosts.
    pub count: u32,
    /// Numbers of the hosts in files, in ascending order; `None` if they are 0, 1, 2 and so on.
    pub numbers: Option<&'a [u32]>,
}

/// Reads the flows `text` for a fabric with these hosts; errors call the file `name`. The flows have numbers from 1. Returns the flows with
/// warnings.
///
/// # Errors
/// At the first invalid line, or where the sizes add up to more than 64 bits.
pub fn parse_hpcc_flows(
    name: &str,
    text: &str,
    hosts: HpccHosts<'_>,
) -> Result<(Workload, Vec<FileWarning>), FileError> {
    let source = Source { file: name };
    let mut lines = lines(text);
    let announced = announced(source, lines.next())?;
    let mut flows = Vec::new();
    let (mut last, mut total) = (announced.line, 0u64);
    let mut warnings = Vec::new();
    while let Some(line) = lines.next() {
        if flows.len() as u64 == announced.count {
            warnings.push(announced.further(source, line.number, 1 + lines.count()));
            break;
        }
        let flow = flow(source, &line, flows.len() as u64 + 1, hosts)?;
        total = total.checked_add(flow.bytes.as_u64()).ok_or_else(|| {
            let message = "the sizes up to this flow add up to more than 2^64 bytes";
            let fault = source.fault(line.number, None, message);
            fault.fix("write smaller sizes")
        })?;
        last = line.number;
        flows.push(flow);
    }
    if (flows.len() as u64) < announced.count {
        return Err(announced.too_few(source, last, flows.len() as u64));
    }
    let workload = Workload {
        flows,
        triggers: Vec::new(),
    };
    Ok((workload, warnings))
}

fn announced(source: Source<'_>, line: Option<Line<'_>>) -> Result<Announced, FileError> {
    let Some(line) = line else {
        let fault = source.fault(1, None, "the file is empty");
        return Err(fault.fix("begin it with the number of flows"));
    };
    if let Some(second) = line.tokens.get(1) {
        let message = "the first line is the number of flows and nothing else";
        let fault = source.fault(line.number, Some(second.column), message);
        return Err(fault.fix("write the number on a separate line above the flows"));
    }
    let record = Record::split_line(source, &line, "the first line", &["flow_num"])?;
    Ok(Announced {
        count: record.number(0, 0..=u32::MAX.into())?,
        line: line.number,
        noun: "flow",
        name: "flow_num",
    })
}

fn flow(
    source: Source<'_>,
    line: &Line<'_>,
    label: u64,
    hosts: HpccHosts<'_>,
) -> Result<FlowSpec, FileError> {
    let record = Record::split_line(source, line, "a flow", WORDS)?;
    let (src, dst) = (host(&record, 0, hosts)?, host(&record, 1, hosts)?);
    if src == dst {
        let message = format!("host {src} sends to itself");
        return Err(record.fault(1, message, "choose another destination"));
    }
    Ok(FlowSpec {
        priority: Some(priority(&record)?),
        dport: Some(record.number(3, 0..=u16::MAX.into())? as u16),
        ..FlowSpec::timed(label, src, dst, size(&record)?, start(&record)?)
    })
}

fn host(record: &Record<'_>, index: usize, hosts: HpccHosts<'_>) -> Result<HostId, FileError> {
    let node = record.number(index, 0..=u32::MAX.into())? as u32;
    let host = match hosts.numbers {
        Some(numbers) => numbers.binary_search(&node).ok().map(|host| host as u32),
        None => (node < hosts.count).then_some(node),
    };
    host.map(HostId).ok_or_else(|| {
        let message = format!(
            "node {node} is not a host of the topology, which has {}",
            hosts.count
        );
        let fix = match (hosts.numbers, hosts.count) {
            (Some([first, .., last]), _) => format!("name a host from {first} to {last}, or"),
            (_, 0) => String::new(),
            (_, count) => format!("name a host from 0 to {}, or", count - 1),
        };
        let fix = format!("{fix} choose the topology that belongs to the file");
        record.fault(index, message, fix.trim_start())
    })
}

fn priority(record: &Record<'_>) -> Result<u8, FileError> {
    let fix = "write a priority from 1 to 7; 3 is usual";
    match whole_number(record.tokens[2].text) {
        Some(0) => {
            let message = "`pg` 0 is the class of acknowledgements and other control packets, which is neither marked nor paused";
            Err(record.fault(2, message, fix))
        }
        Some(pg @ 1..=7) => Ok(pg as u8),
        _ => Err(record.no_value(2, fix)),
    }
}

fn size(record: &Record<'_>) -> Result<Bytes, FileError> {
    record.number(4, 1..=u64::MAX).map(Bytes::new)
}

fn start(record: &Record<'_>) -> Result<Time, FileError> {
    let text = record.tokens[5].text;
    let too_late = || {
        let message = format!(
            "a start at {} s is beyond the longest run of 213 days",
            shown(text)
        );
        record.fault(5, message, "write an earlier start, in seconds")
    };
    match quantity::seconds(text) {
        Ok(since) => Some(Time::ZERO + since)
            .filter(|start| !start.is_never())
            .ok_or_else(too_late),
        Err(DecimalFault::TooLarge) => Err(too_late()),
        Err(DecimalFault::NotANumber) => {
            Err(record.no_value(5, "write a number of seconds, as in 2.000000025"))
        }
        Err(DecimalFault::TooFine) => {
            let message = format!("a start at {} s is finer than a picosecond", shown(text));
            Err(record.fault(5, message, "round it to 12 decimals"))
        }
    }
}
