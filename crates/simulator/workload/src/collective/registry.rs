//! The list of all collectives.

use super::{
    AllToAllSettings, ChainBroadcastSettings, Collective, CollectiveDefinition, CollectiveError,
    DirectAllGatherSettings, DirectAllReduceSettings, DirectReduceScatterSettings,
    DoubleBinaryTreeSettings, HalvingDoublingSettings, HierarchicalAllGatherSettings,
    HierarchicalAllReduceSettings, HierarchicalAllToAllSettings, HierarchicalReduceScatterSettings,
    Layout, ParameterServerSettings, RingAllGatherSettings, RingAllReduceSettings,
    RingReduceScatterSettings, TreeBroadcastSettings,
};
use clearway_units::{ParameterInfo, ParameterSet, SetError, Value};

/// The names of a collective.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CollectiveKind {
    /// Name of the operation.
    pub operation: &'static str,
    /// Name of the algorithm.
    pub algorithm: &'static str,
    /// One line about the algorithm.
    pub summary: &'static str,
}

macro_rules! collectives {
    ($($variant:ident($settings:ty),)+) => {
        /// The settings of one collective.
        #[derive(Debug, Clone, PartialEq)]
        pub enum CollectiveSettings {
            $(#[doc = concat!("[`", stringify!($settings), "`].")] $variant($settings),)+
        }

        impl CollectiveSettings {
            /// Names of every collective. The first algorithm of an operation is its default.
            pub const KINDS: &'static [CollectiveKind] = &[
                $(CollectiveKind {
                    operation: <$settings as CollectiveDefinition>::OPERATION,
                    algorithm: <$settings as CollectiveDefinition>::ALGORITHM,
                    summary: <$settings as CollectiveDefinition>::SUMMARY,
                },)+
            ];

            /// The collective of these names with its defaults, if there is one.
            pub fn named(operation: &str, algorithm: &str) -> Option<Self> {
                match (operation, algorithm) {
                    $((<$settings as CollectiveDefinition>::OPERATION, <$settings as CollectiveDefinition>::ALGORITHM) => {
                        Some(Self::$variant(<$settings>::default()))
                    })+
                    _ => None,
                }
            }
            /// Names of the collective.
            pub const fn kind(&self) -> CollectiveKind {
                match self {
                    $(Self::$variant(_) => CollectiveKind {
                        operation: <$settings as CollectiveDefinition>::OPERATION,
                        algorithm: <$settings as CollectiveDefinition>::ALGORITHM,
                        summary: <$settings as CollectiveDefinition>::SUMMARY,
                    },)+
                }
            }
            /// Every setting with its default.
            pub fn describe(&self) -> Vec<ParameterInfo> {
                match self {
                    $(Self::$variant(_) => <$settings>::describe(),)+
                }
            }
            /// Sets `key`.
            ///
            /// # Errors
            /// If the key does not exist or the value does not fit it.
            pub fn set(&mut self, key: &str, value: &Value) -> Result<(), SetError> {
                match self {
                    $(Self::$variant(settings) => settings.set(key, value),)+
                }
            }
            /// Every setting with its present value.
            pub fn entries(&self) -> Vec<(&'static str, Value)> {
                match self {
                    $(Self::$variant(settings) => settings.entries(),)+
                }
            }
            /// Makes the messages.
            ///
            /// # Errors
            /// If the settings do not fit each other or the number of ranks.
            pub fn build(&self, ranks: u32) -> Result<Collective, CollectiveError> {
                match self {
                    $(Self::$variant(settings) => settings.build(ranks),)+
                }
            }
            /// Makes the messages for ranks that lie so.
            ///
            /// # Errors
            /// As [`build`](Self::build).
            pub fn build_on(&self, layout: &Layout) -> Result<Collective, CollectiveError> {
                match self {
                    $(Self::$variant(settings) => settings.build_on(layout),)+
                }
            }
            /// Messages on the longest chain of messages of which each waits for the one before, among `ranks` ranks (two or more)
            /// when there are bytes for all of them and no window.
            pub fn steps(&self, ranks: u32) -> u32 {
                match self {
                    $(Self::$variant(settings) => settings.steps(ranks),)+
                }
            }
        }
    };
}

collectives! {
    RingAllReduce(RingAllReduceSettings),
    HalvingDoubling(HalvingDoublingSettings),
    DoubleBinaryTree(DoubleBinaryTreeSettings),
    DirectAllReduce(DirectAllReduceSettings),
    HierarchicalAllReduce(HierarchicalAllReduceSettings),
    ParameterServer(ParameterServerSettings),
    AllToAll(AllToAllSettings),
    HierarchicalAllToAll(HierarchicalAllToAllSettings),
    RingAllGather(RingAllGatherSettings),
    DirectAllGather(DirectAllGatherSettings),
    HierarchicalAllGather(HierarchicalAllGatherSettings),
    RingReduceScatter(RingReduceScatterSettings),
    DirectReduceScatter(DirectReduceScatterSettings),
    HierarchicalReduceScatter(HierarchicalReduceScatterSettings),
    ChainBroadcast(ChainBroadcastSettings),
    TreeBroadcast(TreeBroadcastSettings),
}

impl CollectiveSettings {
    /// The first algorithm of `operation` with its defaults, if there is such an operation.
    pub fn default_of(operation: &str) -> Option<Self> {
        let mut kinds = Self::KINDS.iter();
        let kind = kinds.find(|kind| kind.operation == operation)?;
        Self::named(kind.operation, kind.algorithm)
    }
}
