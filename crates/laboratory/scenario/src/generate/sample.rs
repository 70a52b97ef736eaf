//! Parts that the tests of generators share.

use super::BuildContext;
use crate::WorkloadSettings;
use clearway_units::{Rate, Value};

pub(super) const NIC_RATES: [Rate; 1024] = [Rate::from_gbps(100); 1024];

/// Hosts with links of 100 Gb/s, and no files.
pub(super) fn context(hosts: u32) -> BuildContext<'static> {
    BuildContext {
        hosts,
        nic_rates: &NIC_RATES,
        gpus_per_node: 1,
        dimensions: &[],
        host_numbers: None,
        seed: 1,
        section: 0,
        taken: BuildContext::ALL_FREE,
        base_dir: None,
    }
}

pub(super) fn settings(kind: &str, values: &[(&str, Value)]) -> WorkloadSettings {
    let mut settings = WorkloadSettings::named(kind).unwrap();
    for (key, value) in values {
        settings.set(key, value).unwrap();
    }
    settings
}

pub(super) fn text(text: &str) -> Value {
    Value::Text(text.into())
}
