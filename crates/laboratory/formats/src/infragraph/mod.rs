//! InfraGraph: infrastructure as a graph of devices, their components and the links between them (Keysight, MLCommons Chakra), as YAML or
//! JSON.
//!
//! ```text
//! devices:
//! - name: server
//!   components:
//!   - {name: xpu, count: 2, choice: xpu}
//!   - {name: nic, count: 2, choice: nic}
//!   links: [{name: pcie}]
//!   edges:
//!   - {ep1: {component: xpu}, ep2: {component: nic}, scheme: one2one, link: pcie}
//! - name: switch
//!   components: [{name: port, count: 4, choice: port}]
//! instances:
//! - {name: host, device: server, count: 2}
//! - {name: leaf, device: switch, count: 1}
//! links:
//! - name: eth
//!   physical:
//!     bandwidth: {gigabits_per_second: 400}
//!     latency: {ns: 500}
//! edges:
//! - ep1: {instance: 'host[0:2]', component: nic}
//!   ep2: {instance: leaf, component: port}
//!   scheme: one2one
//!   link: eth
//! ```
//!
//! # Nodes of the network
//!
//! * A device with an `xpu` or a `nic` is a *server*; any other device is a switch as a whole, whatever is within it.
//! * Hosts are the xpus of servers, each with the NICs nearest to it within the device; equally near NICs are shared out in order. Where
//!   some xpu has no NIC with a cable, or where there are no xpus, the server is one host with all its NICs ([`InfragraphHosts`]).
//! * Hosts are numbered in the order of instances, their indices and their xpus.
//! * A `switch` within a server is a scale-up switch if it is joined to xpus by links with a bandwidth, and else only to switches. Every
//!   other `switch` of a server, as of PCIe, only says which NIC is near to which xpu.
//! * Links may join two hosts: cables of xpus or NICs of different servers, and edges between xpus within a server, if they have a
//!   bandwidth. A warning says that such hosts forward packets.
//! * Switches that only ports of xpus reach, not NICs, are scale-up switches, too, if the file has NICs with cables.
//!
//! # Decisions where the format leaves something open
//!
//! * `ring` joins each endpoint of a list with the next; InfraGraph's own service has no such edges.
//! * `one2one` with lists of different length uses the first of the longer one, as InfraGraph does, with a warning.
//! * The same two endpoints have one edge, the last, as in InfraGraph's graph, with a warning.
//! * A link that packets take has a bandwidth; latencies may be missing ([`InfragraphOptions`]).
//!
//! # Annotations
//!
//! [`write_infragraph`] adds attributes that begin with `clearway-` for facts that InfraGraph has no words for. Then the file has the form
//! that InfraGraph's `get_graph` writes, with `infrastructure` and `annotations`. Other attributes are not used, with a warning.
//!
//! | attribute | of | value |
//! |---|---|---|
//! | `clearway-name` | instance of a switch | name of copy 0; the next ones count upwards |
//! | `clearway-tier` | switch | tier, unless it is the distance from the nearest host |
//! | `clearway-latency` | switch | time from the arrival of a packet to its queue |
//! | `clearway-role` | switch | `network`, `scale-up`, `nic-least-queue` or `nic-hash` |
//! | `clearway-group` | switch | group of a dragonfly |
//! | `clearway-packet-loss`, `clearway-bit-error-rate` | edge | probability |
//! | `clearway-dead-from` | edge | time from which on it loses every packet |
//! | `clearway-down` | edge | `true`: disconnected |
//! | `clearway-order` | edge | place in the order in which packets take links, of several shortest paths |
//! | `clearway-dateline` | edge | `true`: packets change to the second virtual channel |
//! | `clearway-nics` | graph | `separate`: equal NICs of a host are not ports of one |
//! | `clearway-queue-up-T`, `clearway-queue-down-T` | graph | bytes in the queues of ports of tier `T` |

mod annotations;
mod device;
mod document;
mod endpoint;
mod fabric;
mod model;
mod nodes;
mod parts;
mod plan;
mod server;
mod tree;
mod write;

#[cfg(test)]
mod tests;

pub use model::{
    InfragraphFabric, InfragraphFile, InfragraphHosts, InfragraphLink, InfragraphOptions,
    InfragraphQueues, InfragraphRole, InfragraphSwitch,
};
pub use write::{InfragraphForm, write_infragraph};

use crate::text::Source;
use clearway_workload::FileError;

/// Reads the infrastructure `text`, YAML or JSON; errors call the file `name`.
///
/// # Errors
/// At the first invalid line, or where the file as a whole is inconsistent.
pub fn parse_infragraph(
    name: &str,
    text: &str,
    options: &InfragraphOptions,
) -> Result<InfragraphFile, FileError> {
    let source = Source { file: name };
    let document = document::document(source, text)?;
    let devices = device::Devices::new(source, &document)?;
    let plan = plan::Plan::new(source, &document, &devices, options)?;
    fabric::fabric(plan)
}
