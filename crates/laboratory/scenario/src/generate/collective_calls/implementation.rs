//! Algorithm of the calls of an operation, and the dimensions in which it runs.

use super::algorithms::HIERARCHICAL;
use clearway_units::{Bytes, Parameter};
use clearway_workload::collective::{CollectiveSettings, DimensionAlgorithm};

/// Algorithm of the calls of an operation.
pub(in crate::generate) struct Implementation {
    pub(in crate::generate) settings: CollectiveSettings,
    /// True if one algorithm runs over all dimensions at once.
    is_flat: bool,
}

/// Dimensions of the ranks of a call.
pub(in crate::generate) enum CallDimensions {
    /// Of these sizes.
    Sizes(Vec<u32>),
    /// One, because the ranks are a part of the job that is no lattice.
    One(u32),
    /// Those of nodes, if there are any, of this many ranks.
    OfNodes(u32),
}

impl From<CollectiveSettings> for Implementation {
    fn from(settings: CollectiveSettings) -> Self {
        Self::new(settings, false)
    }
}

impl Implementation {
    pub(in crate::generate) fn is_hierarchical(&self) -> bool {
        self.settings.kind().algorithm == HIERARCHICAL
    }

    /// Implementation by `settings`; `is_flat` if one algorithm runs over all dimensions at once.
    pub(in crate::generate) fn new(settings: CollectiveSettings, is_flat: bool) -> Self {
        Self { settings, is_flat }
    }

    fn algorithms(&self) -> Vec<DimensionAlgorithm> {
        let entries = self.settings.entries();
        let own = entries.iter().find(|(key, _)| *key == "algorithms");
        own.and_then(|(_, value)| Vec::from_value(value))
            .unwrap_or_default()
    }

    /// Adapts `settings`, a copy of its own, to a call of `bytes` by ranks in these dimensions.
    pub(in crate::generate) fn lay_out(
        &self,
        settings: &mut CollectiveSettings,
        dimensions: &CallDimensions,
        bytes: Bytes,
    ) {
        let mut set = |key: &str, value: &clearway_units::Value| {
            settings
                .set(key, value)
                .expect("hierarchical collectives have the key");
        };
        let entries = self.settings.entries();
        let splits = entries.iter().find(|(key, _)| *key == "splits");
        let splits = splits.and_then(|(_, value)| u32::from_value(value));
        // Not more than there are bytes.
        let most = u32::try_from(bytes.as_u64()).unwrap_or(u32::MAX);
        set("splits", &splits.unwrap_or(1).min(most).max(1).to_value());
        let one = match dimensions {
            CallDimensions::Sizes(sizes) if self.is_flat => sizes.iter().product(),
            CallDimensions::Sizes(sizes) => return set("dimensions", &sizes.to_value()),
            CallDimensions::OfNodes(_) if !self.is_flat => return,
            CallDimensions::One(ranks) | CallDimensions::OfNodes(ranks) => *ranks,
        };
        let algorithms = self.algorithms();
        let first = algorithms.first().copied();
        let same = first.filter(|first| algorithms.iter().all(|other| other == first));
        set("algorithms", &Vec::from_iter(same).to_value());
        set("dimensions", &vec![one].to_value());
    }
}
