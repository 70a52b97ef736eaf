//! Communications and computations of an execution trace of PyTorch.
//!
//! A trace as PyTorch writes it has no times: its communications follow one another. The trace that Chakra's `chakra_trace_link` makes of
//! it and a profile also has the kernels with their times.

use super::call::{Call, CallFault, RECORD_AGAIN};
use super::kineto::{Session, check_streams, micros};
use super::profile::{Node, NodeKind};
use super::timeline::{Processor, Talk, Window, Work};
use crate::text::shown;
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;

/// Maximum number of operators from a kernel up to its communication.
const MOST_LEVELS: usize = 8;

/// A session of an execution trace.
pub(super) struct NodeSession {
    pub(super) session: Session,
    /// Texts with lists of groups.
    pub(super) groups: Vec<String>,
}

/// The session of the nodes of a rank.
///
/// # Errors
/// If a kernel communicates and its call is missing.
pub(super) fn node_session(mut nodes: Vec<Node>) -> Result<NodeSession, CallFault> {
    nodes.sort_by_key(|node| node.id);
    let mut groups = Vec::new();
    for node in &mut nodes {
        if let NodeKind::Groups(text) = &mut node.kind {
            groups.push(std::mem::take(text));
        }
    }
    let is_untimed = !nodes
        .iter()
        .any(|node| matches!(node.kind, NodeKind::Kernel(_)));
    let session = match is_untimed {
        true => in_sequence(nodes),
        false => with_times(&nodes)?,
    };
    Ok(NodeSession { session, groups })
}

/// One communication after the other, in the order of the nodes.
fn in_sequence(nodes: Vec<Node>) -> Session {
    let calls = nodes.into_iter().filter_map(|node| match node.kind {
        NodeKind::Call(call) => Some(vec![*call]),
        _ => None,
    });
    let calls: Vec<Vec<Call>> = calls.collect();
    // Each takes a nanosecond, so there is no gap between them that would count as computation.
    let talks = (0..calls.len() as i64).map(|index| Talk {
        start: index,
        end: index + 1,
        stream: 0,
        launch: None,
    });
    Session {
        windows: vec![Window {
            from: 0,
            to: calls.len() as i64,
            works: Vec::new(),
            talks: talks.collect(),
        }],
        calls: vec![calls],
        is_untimed: true,
        ..Session::default()
    }
}

/// Communications and computations at their times.
fn with_times(nodes: &[Node]) -> Result<Session, CallFault> {
    let by_id: FxHashMap<i64, &Node> = nodes.iter().map(|node| (node.id, node)).collect();
    let mut streams: BTreeMap<i64, usize> = BTreeMap::new();
    let mut works = Vec::new();
    let mut found: Vec<(Talk, Vec<Call>)> = Vec::new();
    let mut known: FxHashMap<i64, usize> = FxHashMap::default();
    for node in nodes {
        let NodeKind::Kernel(name) = &node.kind else {
            continue;
        };
        let count = streams.len();
        let stream = *streams.entry(node.stream).or_insert(count);
        check_streams(streams.len())?;
        let work = work_of(node, stream, &by_id)?;
        let Some(name) = name else {
            works.push(work);
            continue;
        };
        let (id, call) = call_above(node, &by_id).ok_or_else(|| CallFault {
            message: format!(
                "has the kernel `{}` at {} us, but no `record_param_comms` for it",
                shown(name),
                micros(work.start)
            ),
            fix: RECORD_AGAIN.into(),
        })?;
        match known.get(&id) {
            // A further kernel of the same call.
            Some(&index) => {
                let talk = &mut found[index].0;
                (talk.start, talk.end) = (talk.start.min(work.start), talk.end.max(work.end));
            }
            None => {
                known.insert(id, found.len());
                found.push((work.into_talk(), vec![call.clone()]));
            }
        }
    }
    found.sort_by_key(|(talk, _)| (talk.start, talk.end));
    let times = works.iter().map(|work| (work.start, work.end));
    let times = times.chain(found.iter().map(|(talk, _)| (talk.start, talk.end)));
    let from = times.clone().map(|(start, _)| start).min().unwrap_or(0);
    let to = times.map(|(_, end)| end).max().unwrap_or(0);
    let (talks, calls): (Vec<Talk>, Vec<Vec<Call>>) = found.into_iter().unzip();
    let waits = nodes
        .iter()
        .filter(|node| matches!(node.kind, NodeKind::Wait));
    let mut waits: Vec<i64> = waits.filter_map(|node| Some(node.time?.0)).collect();
    waits.sort_unstable();
    Ok(Session {
        windows: vec![Window {
            from,
            to,
            works,
            talks,
        }],
        calls: vec![calls],
        processor: Processor {
            waits,
            ..Processor::default()
        },
        ..Session::default()
    })
}

/// The work of a kernel; its operator, the node above it, tells when the processor started it.
fn work_of(node: &Node, stream: usize, by_id: &FxHashMap<i64, &Node>) -> Result<Work, CallFault> {
    let (start, end) = node.time.ok_or_else(|| CallFault {
        message: format!("has a kernel without a valid time, node {}", node.id),
        fix: "restore the file if it was changed; `ts` and `inclusive_dur` are microseconds".into(),
    })?;
    let parent = node.parent.and_then(|parent| by_id.get(&parent));
    Ok(Work {
        start,
        end,
        stream,
        launch: parent.and_then(|parent| Some(parent.time?.0)),
    })
}

/// The communication of a kernel: a node above it.
fn call_above<'a>(node: &Node, by_id: &FxHashMap<i64, &'a Node>) -> Option<(i64, &'a Call)> {
    let mut parent = node.parent;
    for _ in 0..MOST_LEVELS {
        let node = by_id.get(&parent?)?;
        if let NodeKind::Call(call) = &node.kind {
            return Some((node.id, call));
        }
        parent = node.parent;
    }
    None
}
