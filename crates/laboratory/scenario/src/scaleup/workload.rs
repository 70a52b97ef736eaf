//! `[[workload]]` sections of scale-up fabrics.

use crate::HostSet;
use crate::generate::{GpuSpeed, ProfilerSteps, TraceSettings, WorkloadDefinition};
use crate::section::Section;
use crate::section_name::SectionKeys;
use clearway_formats::TraceFormat;
use clearway_units::{OmitDefaults, Parameter, ParameterInfo, ParameterSet, SetError, Value};

clearway_units::choices! {
    /// A collective operation of a group.
    pub enum CollectiveOperation {
        /// Each transaction is a read reduction, and when it is complete a multicast write of its result.
        AllReduce = "all-reduce",
        /// Read reductions alone: each initiator has its part of the sum.
        ReduceScatter = "reduce-scatter",
        /// Multicast writes alone: each member has the parts of all initiators.
        AllGather = "all-gather",
    }
}

clearway_units::parameters! {
    /// A collective whose initiators post all they have to do at once.
    pub struct ScaleUpCollective {
        /// Operation of the initiators.
        pub operation: CollectiveOperation = CollectiveOperation::AllReduce, "operation", "Dissertation §6.1.4";
        /// Transactions of each initiator.
        pub transactions: u32 = 128, "transactions", "Dissertation §6.1.4";
        /// Members that post operations, evenly spread over the group; "auto" is all of them.
        pub initiators: Option<u32> = None, "initiators", "Dissertation §6.1.4: 64 to 1";
    }
}

clearway_units::parameters! {
    /// Sets of operations with pauses between them; each GPU starts and stops independently.
    pub struct RandomSetsSettings {
        /// Sets of each member.
        pub sets: u32 = 10, "sets", "Dissertation §6.3.4";
        /// Minimum number of operations of a set.
        pub least_operations: u32 = 64, "least-operations", "Dissertation §6.3.4";
        /// Maximum number of operations of a set.
        pub most_operations: u32 = 256, "most-operations", "Dissertation §6.3.4";
        /// Shortest pause between two sets, in cycles, from the completion of the first.
        pub least_pause: u32 = 5_000, "least-pause", "Dissertation §6.3.4; decision: from its completion";
        /// Longest pause between two sets, in cycles.
        pub most_pause: u32 = 10_000, "most-pause", "Dissertation §6.3.4";
        /// Unicast operations in every second set, all to one member: Multicast-Uni instead of Random-Multicast.
        pub alternate_unicast: bool = false, "alternate-unicast", "Dissertation §6.3.4";
        /// Number of unicast operations in place of each multicast operation of a set.
        pub unicast_factor: u32 = 5, "unicast-factor", "Dissertation §6.3.4";
    }
}

clearway_units::parameters! {
    /// Unicast operations to members drawn one by one.
    pub struct UniformSettings {
        /// Operations of each member.
        pub operations: u32 = 1_000, "operations", "decision";
        /// Probability that an operation is a read.
        pub reads: f64 = 0.0, "reads", "decision: writes alone";
    }
}

clearway_units::parameters! {
    /// Job that replays a trace, each rank at a member: rank 0 at the first. Switches carry out its collectives.
    pub struct ScaleupTraceSettings {
        /// Path of the trace: a workload of SimAI, a Chakra file `<prefix>.<rank>.et`, the prefix of such files, a profile of PyTorch such
        /// as `rank0.json`, or a folder of these. It is searched in the folder of the scenario file, then in the current folder.
        pub file: String = String::new(), "file", "none: the file must be named";
        /// Format of the trace; "auto" decides by the beginning of the file.
        pub format: Option<TraceFormat> = None, "format", "decision: no file is sound in two formats";
        /// Comm-group file, with the ranks of each group that traces of Chakra or PyTorch name; empty for none.
        pub comm_groups: String = String::new(), "comm-groups", "as in the traces";
        /// Number of training passes of a SimAI workload in an iteration.
        pub passes: u32 = 1, "passes", "one pass";
        /// Number of runs of the whole trace; a rank begins the next run when its tasks are over.
        pub iterations: u32 = 1, "iterations", "once";
        /// Factor for the time of each computation in the trace; with 0 only communication takes time.
        pub time_scale: f64 = 1.0, "time-scale", "the trace";
        with {
            /// Speed of the GPUs.
            pub gpu: OmitDefaults<GpuSpeed>,
            /// Steps of a profile.
            pub steps: OmitDefaults<ProfilerSteps>,
        }
    }
}

impl ScaleupTraceSettings {
    /// The same settings for a job on a packet fabric.
    pub(super) fn of_packets(&self) -> TraceSettings {
        TraceSettings {
            file: self.file.clone(),
            format: self.format,
            comm_groups: self.comm_groups.clone(),
            steps: self.steps.clone(),
            passes: self.passes,
            iterations: self.iterations,
            time_scale: self.time_scale,
            gpu: self.gpu.clone(),
            ..TraceSettings::default()
        }
    }
}

clearway_units::parameters! {
    /// Keys of every section.
    pub struct MemberKeys {
        /// GPUs of the group, such as "all", "0-31" or "0-3,8".
        pub members: HostSet = HostSet::All, "members", "decision";
        /// Number of GPUs drawn for the group, among those that no earlier section has; "auto" takes `members`.
        pub random_members: Option<u32> = None, "random-members", "Dissertation §6.3.5: two groups of 64";
    }
}

macro_rules! kinds {
    ($($variant:ident($settings:ty) = $name:literal, $summary:literal;)+) => {
        /// Operations of the members of a section.
        #[derive(Debug, Clone, PartialEq)]
        pub enum ScaleupWorkloadKind {
            $(#[doc = $summary] $variant($settings),)+
        }

        impl ScaleupWorkloadKind {
            /// Name and summary of each kind.
            pub const KINDS: &'static [(&'static str, &'static str)] = &[$(($name, $summary)),+];

            /// The defaults of a kind.
            pub fn named(name: &str) -> Option<Self> {
                match name {
                    $($name => Some(Self::$variant(Default::default())),)+
                    _ => None,
                }
            }
            /// Name of the kind.
            pub fn name(&self) -> &'static str {
                match self {
                    $(Self::$variant(_) => $name,)+
                }
            }
            fn parameters(&mut self) -> &mut dyn Keys {
                match self {
                    $(Self::$variant(settings) => settings,)+
                }
            }
            fn describe(&self) -> Vec<ParameterInfo> {
                match self {
                    $(Self::$variant(_) => <$settings>::describe(),)+
                }
            }
            fn entries(&self) -> Vec<(&'static str, Value)> {
                match self {
                    $(Self::$variant(settings) => settings.entries(),)+
                }
            }
        }
    };
}

kinds! {
    Collective(ScaleUpCollective) = "collective", "read reductions, multicast writes or both, posted at once by some or all members of a group";
    RandomSets(RandomSetsSettings) = "random-sets", "sets of multicast operations with pauses between them; every second set can have unicast operations";
    UniformUnicast(UniformSettings) = "uniform-unicast", "unicast writes or reads to members drawn one by one";
    Trace(ScaleupTraceSettings) = "trace", "a job from a trace, with collectives in the switches: Chakra's execution traces, PyTorch's profiles, or a workload of SimAI";
}

/// Settings of any type, whose keys can be set.
trait Keys {
    fn set_key(&mut self, key: &str, value: &Value) -> Result<(), SetError>;
}

impl<T: ParameterSet> Keys for T {
    fn set_key(&mut self, key: &str, value: &Value) -> Result<(), SetError> {
        self.set(key, value)
    }
}

/// A `[[workload]]` section.
#[derive(Debug, Clone, PartialEq)]
pub struct ScaleupWorkload {
    /// Operations of the members.
    pub kind: ScaleupWorkloadKind,
    /// Name of the section.
    pub keys: SectionKeys,
    /// The group.
    pub members: MemberKeys,
}

impl ScaleupWorkload {
    pub(super) fn new(kind: ScaleupWorkloadKind) -> Self {
        Self {
            kind,
            keys: SectionKeys::default(),
            members: MemberKeys::default(),
        }
    }

    /// Name of the section's operation.
    pub(super) fn name(&self) -> String {
        match &self.kind {
            ScaleupWorkloadKind::Collective(settings) => match settings.operation.to_value() {
                Value::Text(operation) => operation,
                other => other.to_string(),
            },
            ScaleupWorkloadKind::RandomSets(settings) if settings.alternate_unicast => {
                "random sets, with unicast".into()
            }
            kind => kind.name().replace('-', " "),
        }
    }

    /// The keys whose values name files.
    pub(super) fn files(&self) -> Vec<&'static str> {
        match &self.kind {
            ScaleupWorkloadKind::Trace(settings) => settings.of_packets().files(),
            _ => Vec::new(),
        }
    }

    pub(super) fn entries(&self) -> Vec<(&'static str, Value)> {
        let mut entries = self.keys.written();
        entries.extend(self.kind.entries());
        entries.extend(self.members.entries());
        entries
    }

    pub(super) fn describe(&self) -> Vec<ParameterInfo> {
        let own = [SectionKeys::describe(), self.kind.describe()];
        [own.concat(), MemberKeys::describe()].concat()
    }
}

impl Section for ScaleupWorkload {
    fn set(&mut self, key: &str, value: &Value) -> Result<(), SetError> {
        let mut result = self.keys.set(key, value);
        if result == Err(SetError::UnknownKey) {
            result = self.members.set(key, value);
        }
        match result {
            Err(SetError::UnknownKey) => self.kind.parameters().set_key(key, value),
            result => result,
        }
    }
    fn keys(&self) -> Vec<ParameterInfo> {
        self.describe()
    }
}
