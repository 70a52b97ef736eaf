//! Writes workloads.

use super::{
    CALLS, DP_EP, EP, NONE, SimaiGroup, SimaiLayer, SimaiPhase, SimaiPolicy, SimaiWorkload,
};
use clearway_units::{Bytes, Span};
use std::fmt::{self, Write as _};

/// Reason why a workload cannot be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SimaiWriteError {
    /// The layer, from zero.
    pub layer: usize,
    /// Reason why SimAI cannot express the layer.
    pub reason: &'static str,
}

impl fmt::Display for SimaiWriteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "layer {}: {}", self.layer, self.reason)
    }
}

impl std::error::Error for SimaiWriteError {}

/// `workload` as text. [`parse_simai`](super::parse_simai) reads the same workload from the text.
///
/// # Errors
/// If SimAI cannot express a layer: a name that is not one word, times that are not whole nanoseconds, tensor-parallel weight gradients,
/// data-parallel activations, other collectives, or a layer policy in a workload that is not `HYBRID_CUSTOMIZED`.
pub fn write_simai(workload: &SimaiWorkload) -> Result<String, SimaiWriteError> {
    let mut text = String::from(workload.policy.name());
    let mut key = |name: &str, value: Option<u64>| {
        if let Some(value) = value {
            put(&mut text, format_args!(" {name}: {value}"));
        }
    };
    key("model_parallel_NPU_group", workload.tp.map(u64::from));
    key("ep", Some(workload.ep.into()));
    key("pp", Some(workload.pp.into()));
    key("vpp", Some(workload.vpp.into()));
    key("ga", Some(workload.ga.into()));
    key("all_gpus", workload.all_gpus.map(u64::from));
    let last = workload.dlrm_last_bottom_layer.map(u64::from);
    key("DLRM_LAST_BOTTOM_LAYER", last);
    key("pp_comm", workload.pp_comm.map(Bytes::as_u64));
    for (name, layers) in [
        ("checkpoints", &workload.checkpoints),
        ("checkpoint_initiates", &workload.checkpoint_initiates),
    ] {
        put(&mut text, format_args!(" {name}: {}", layers.len()));
        for layer in layers {
            put(&mut text, format_args!(" {layer}"));
        }
    }
    if workload.layers.is_empty() {
        return Err(SimaiWriteError {
            layer: 0,
            reason: "it is missing, and a workload of SimAI needs at least one layer",
        });
    }
    put(&mut text, format_args!("\n{}\n", workload.layers.len()));
    for (index, layer) in workload.layers.iter().enumerate() {
        write_layer(&mut text, layer, workload.policy).map_err(|reason| SimaiWriteError {
            layer: index,
            reason,
        })?;
    }
    Ok(text)
}

fn put(text: &mut String, content: fmt::Arguments<'_>) {
    text.write_fmt(content).expect("a String takes all text");
}

fn write_layer(
    text: &mut String,
    layer: &SimaiLayer,
    policy: SimaiPolicy,
) -> Result<(), &'static str> {
    let is_word = |name: &str| {
        !name.is_empty()
            && !name.starts_with(['#', '\u{feff}'])
            && !name.contains(char::is_whitespace)
    };
    if !is_word(&layer.name) {
        return Err("its name is not one word");
    }
    put(text, format_args!("{}\t-1", layer.name));
    let phases = [
        (layer.forward, SimaiGroup::Tp),
        (layer.input_gradient, SimaiGroup::Tp),
        (layer.weight_gradient, SimaiGroup::Dp),
    ];
    for (SimaiPhase { compute, call }, alone) in phases {
        put(text, format_args!("\t{}", nanoseconds(compute)?));
        let Some(call) = call else {
            put(text, format_args!("\t{NONE}\t0"));
            continue;
        };
        let word = CALLS.iter().find(|(_, kind)| *kind == call.kind);
        let (word, _) = word.ok_or("SimAI has no such collective")?;
        let suffix = match call.group {
            SimaiGroup::Ep => EP,
            SimaiGroup::DpEp => DP_EP,
            group if group == alone => "",
            _ => return Err("SimAI has no such group in this phase"),
        };
        put(
            text,
            format_args!("\t{word}{suffix}\t{}", call.bytes.as_u64()),
        );
    }
    put(text, format_args!("\t{}", nanoseconds(layer.update)?));
    match (layer.policy, policy) {
        (Some(policy), SimaiPolicy::HybridCustomized) => {
            put(text, format_args!("\t{}", policy.name()));
        }
        (None, SimaiPolicy::HybridCustomized) => return Err("it lacks its policy"),
        (None, _) => {}
        (Some(_), _) => {
            return Err("it has its own policy, and only `HYBRID_CUSTOMIZED` allows that");
        }
    }
    text.push('\n');
    Ok(())
}

fn nanoseconds(span: Span) -> Result<u64, &'static str> {
    match span.as_ps() % 1000 {
        0 => Ok(span.as_ps() / 1000),
        _ => Err("SimAI counts time in whole nanoseconds"),
    }
}
