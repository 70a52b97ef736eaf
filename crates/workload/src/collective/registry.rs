//! The list of all collectives.

use super::{
    AllToAllSettings, ChainBroadcastSettings, Collective, DirectAllGatherSettings,
    DirectAllReduceSettings, DirectReduceScatterSettings, DoubleBinaryTreeSettings,
    HalvingDoublingSettings, ParameterServerSettings, RingAllGatherSettings, RingAllReduceSettings,
    RingReduceScatterSettings, TreeBroadcastSettings,
};
use clearway_units::{ParameterInfo, ParameterSet, SetError, Value};
use std::fmt;

/// Error of a collective that cannot be built.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CollectiveError {
    /// The operation, as in "all-reduce".
    pub operation: &'static str,
    /// The algorithm, as in "ring".
    pub algorithm: &'static str,
    /// The key of the setting at fault; none if it is the number of ranks.
    pub key: Option<&'static str>,
    /// Description of the fault.
    pub message: String,
    /// Suggested fix.
    pub fix: String,
}

impl fmt::Display for CollectiveError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(key) = self.key {
            write!(f, "`{key}` of ")?;
        }
        let (algorithm, operation, message) = (self.algorithm, self.operation, &self.message);
        write!(f, "the {algorithm} {operation}: {message}")
    }
}

impl std::error::Error for CollectiveError {}

/// Definition of a collective: its names, and how it is built. The implementing type holds its settings.
pub trait CollectiveDefinition: ParameterSet {
    /// The name of the operation, as in "all-reduce".
    const OPERATION: &'static str;
    /// The name of the algorithm, unique among those of its operation.
    const ALGORITHM: &'static str;
    /// One line about the algorithm.
    const SUMMARY: &'static str;

    /// Makes the messages.
    ///
    /// # Errors
    /// If the settings do not fit each other or the number of ranks.
    fn build(&self, ranks: u32) -> Result<Collective, CollectiveError>;

    /// Messages on the longest chain of messages of which each waits for the one before, among `ranks` ranks (two or more) when there are
    /// bytes for all of them and no [window](super::Pipelining::window).
    fn steps(&self, ranks: u32) -> u32;

    /// An error about the setting `key`.
    fn fault(
        key: &'static str,
        message: impl Into<String>,
        fix: impl Into<String>,
    ) -> CollectiveError {
        CollectiveError {
            key: Some(key),
            ..Self::rank_fault(message, fix)
        }
    }

    /// An error about the number of ranks.
    fn rank_fault(message: impl Into<String>, fix: impl Into<String>) -> CollectiveError {
        CollectiveError {
            operation: Self::OPERATION,
            algorithm: Self::ALGORITHM,
            key: None,
            message: message.into(),
            fix: fix.into(),
        }
    }
}

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
            /// If there is no such key or the value does not fit it.
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
    ParameterServer(ParameterServerSettings),
    AllToAll(AllToAllSettings),
    RingAllGather(RingAllGatherSettings),
    DirectAllGather(DirectAllGatherSettings),
    RingReduceScatter(RingReduceScatterSettings),
    DirectReduceScatter(DirectReduceScatterSettings),
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
