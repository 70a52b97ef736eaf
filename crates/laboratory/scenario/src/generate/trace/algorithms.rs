//! Algorithms that a collective of a trace can have.

use clearway_workload::collective::CollectiveSettings;

/// Name of the algorithms by dimension.
pub(super) const HIERARCHICAL: &str = "hierarchical";

/// The algorithms of `operation`.
pub(super) fn algorithms(operation: &'static str) -> impl Iterator<Item = &'static str> + Clone {
    let kinds = CollectiveSettings::KINDS.iter();
    let own = kinds.filter(move |kind| kind.operation == operation);
    own.map(|kind| kind.algorithm)
}

/// The first algorithm of `operation`, which is its default.
pub(super) fn first_algorithm(operation: &'static str) -> &'static str {
    algorithms(operation).next().unwrap_or_default()
}
