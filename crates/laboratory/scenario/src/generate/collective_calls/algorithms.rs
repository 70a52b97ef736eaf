//! Algorithms that a collective of a job can have.

use clearway_workload::collective::CollectiveSettings;

/// Name of the algorithms by dimension.
pub(in crate::generate) const HIERARCHICAL: &str = "hierarchical";

/// The algorithms of `operation`.
pub(in crate::generate) fn algorithms(
    operation: &'static str,
) -> impl Iterator<Item = &'static str> + Clone {
    let kinds = CollectiveSettings::KINDS.iter();
    let own = kinds.filter(move |kind| kind.operation == operation);
    own.map(|kind| kind.algorithm)
}

/// The first algorithm of `operation`, which is its default.
pub(in crate::generate) fn first_algorithm(operation: &'static str) -> &'static str {
    algorithms(operation).next().unwrap_or_default()
}
