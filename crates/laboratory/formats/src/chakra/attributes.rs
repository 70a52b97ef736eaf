//! Attributes of nodes: attributes that are read, and ignored attributes that ASTRA-sim reads or that are unknown.

use super::node::{COLL, Skipped};
use super::proto::{Attribute, Node, Value};

/// Attributes that are read.
pub(super) const READ: [&str; 11] = [
    "is_cpu_op",
    "num_ops",
    "tensor_size",
    "comm_type",
    "comm_size",
    "comm_src",
    "comm_dst",
    "comm_tag",
    "pg_name",
    "involved_dim",
    "involve_dims",
];

/// Attributes that affect no timing, here or in ASTRA-sim, and their meaning. Chakra's converters, STAGE and ASTRA-sim's feeder know them.
/// The reader warns about all other unread attributes.
pub(super) const IGNORED: [(&str, &str); 12] = [
    (
        "inputs",
        "tensors that an operator of STAGE reads, for the account of memory",
    ),
    (
        "outputs",
        "tensors that an operator of STAGE writes, for the account of memory",
    ),
    ("op_type", "operator of STAGE"),
    ("tensor_loc", "memory that holds a tensor"),
    ("rf_id", "number of a record of PyTorch's profiler"),
    (
        "fw_parent",
        "operator of the forward pass above one of the backward pass",
    ),
    ("seq_id", "number that joins operators of both passes"),
    ("scope", "kind of a record of PyTorch's profiler"),
    ("tid", "thread of the processor"),
    ("fw_tid", "thread of the processor in the forward pass"),
    ("op_schema", "signature of an operator"),
    (
        "stream",
        "stream of the GPU: dependencies say what waits for what",
    ),
];

/// An unused attribute, with its name if the attribute is unknown.
pub(super) struct Unused<'a> {
    pub(super) what: Skipped,
    pub(super) name: Option<&'a str>,
}

/// Unused attributes of `node` that may affect ASTRA-sim.
pub(super) fn unused(node: &Node) -> impl Iterator<Item = Unused<'_>> {
    let has_group = node
        .attr
        .iter()
        .any(|attribute| attribute.name == "pg_name");
    node.attr.iter().filter_map(move |attribute| {
        let what = of_call(attribute, node.kind == COLL, has_group)?;
        let name = (what == Skipped::Attribute).then_some(attribute.name.as_str());
        Some(Unused { what, name })
    })
}

fn of_call(attribute: &Attribute, is_call: bool, has_group: bool) -> Option<Skipped> {
    let value = attribute.value.as_ref();
    let name = attribute.name.as_str();
    let is = |skipped: Skipped, condition: bool| condition.then_some(skipped);
    match name {
        "comm_priority" => {
            let priority = value.and_then(Value::integer);
            is(Skipped::Priority, is_call && priority != Some(0))
        }
        "comm_group" => is(Skipped::LegacyGroup, is_call && !has_group),
        "involved_dim" => {
            let is_list = matches!(value, Some(Value::BoolList(_)));
            is(Skipped::Dimensions, is_call && !is_list)
        }
        _ => {
            let is_known = READ.contains(&name) || IGNORED.iter().any(|(known, _)| *known == name);
            is(Skipped::Attribute, !is_known)
        }
    }
}
