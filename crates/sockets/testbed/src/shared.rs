//! Parts that all tasks of a host's process share: its server, and its replies.

use crate::task::{HostReply, HostTask};
use clearway_udp::net::Server;
use clearway_udp::{Limits, Settings};
use std::io::{self, Write as _};

/// Writes a reply. A write error is ignored: without a reader, the input also ends.
pub(crate) fn say(reply: &HostReply) {
    let line = serde_json::to_string(reply).unwrap_or_default();
    let mut output = io::stdout().lock();
    let _ = writeln!(output, "{line}").and_then(|()| output.flush());
}

/// Server of a host.
pub(crate) fn bind(task: &HostTask, settings: &Settings) -> Result<Server, String> {
    let server = Server::bind(task.listen, settings.clone(), limits());
    server.map_err(|error| format!("cannot listen at {}: {error}", task.listen))
}

/// All connections of a bed may come from one address.
fn limits() -> Limits {
    Limits {
        connections: 4096,
        per_address: 4096,
        half_open: 4096,
        // The scenario sets the number and length of messages.
        memory: u64::MAX,
        ..Limits::default()
    }
}
