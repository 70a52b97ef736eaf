//! Settings of a job from a trace.

use crate::generate::collective_calls::first_algorithm;
use crate::generate::{RankPlacement, Scheduling};
use clearway_formats::TraceFormat;
use clearway_units::{ByteRate, Bytes, OmitDefaults, Time, parameters};
use clearway_workload::collective::{Channels, Dimensions, Reduction};

/// The name of the first algorithm for an operation.
macro_rules! first_algorithm {
    ($operation:literal) => {
        first_algorithm($operation).to_owned()
    };
}

parameters! {
    /// Speed of the GPUs of a trace.
    pub struct GpuSpeed {
        /// Peak performance of a GPU, in TFLOP/s, like ASTRA-sim's `peak-perf`. Computations of Chakra traces that have `num_ops` and no
        /// duration take their time in the roofline model. "auto": they take no time.
        pub peak_tflops: Option<f64> = None, "peak-tflops", "decision: no GPU is assumed";
        /// Memory bandwidth of a GPU, like ASTRA-sim's `local-mem-bw`. A computation takes at least the time to move its `tensor_size`.
        /// "auto": only the peak performance counts.
        pub memory_bandwidth: Option<ByteRate> = None, "memory-bandwidth", "decision: no GPU is assumed";
    }
}

parameters! {
    /// Steps of a profile.
    pub struct ProfilerSteps {
        /// Numbers of the steps of PyTorch's profiler (`ProfilerStep#N`) that an iteration replays; an empty list for all.
        pub profiler_steps: Vec<u32> = Vec::new(), "profiler-steps", "the trace";
    }
}

parameters! {
    /// Dimensions of the ranks of a trace, for collectives with the algorithm "hierarchical" and for calls along some dimensions.
    pub struct TraceDimensions {
        /// System file of ASTRA-sim (JSON), with the algorithm of each dimension, splits, delays and the speed of the GPUs; empty for none.
        /// Then `all-reduce` and so on are "hierarchical".
        pub system: String = String::new(), "system", "the keys of the workload";
        with {
            /// Dimensions, algorithms and splits.
            pub hierarchy: Dimensions,
            /// Rate of the reduction.
            pub reduction: Reduction,
        }
    }
}

parameters! {
    /// Job that replays a trace.
    pub struct TraceSettings {
        /// Path of the trace: a GOAL schedule, a workload of SimAI, a Chakra file `<prefix>.<rank>.et`, the prefix of such files, a profile
        /// of PyTorch such as `rank0.json`, or a folder of these. It is searched in the folder of the scenario file, then in the current
        /// folder.
        pub file: String = String::new(), "file", "none: the file must be named";
        /// Format of the trace; "auto" decides by the beginning of the file.
        pub format: Option<TraceFormat> = None, "format", "decision: no file is sound in two formats";
        /// Comm-group file, with the ranks of each group that traces of Chakra or PyTorch name; empty for none.
        pub comm_groups: String = String::new(), "comm-groups", "as in the traces";
        /// Number of ranks that run a workload of SimAI; "auto": the number in the workload or, without one, the number of hosts. Other
        /// traces have a fixed number.
        pub ranks: Option<u32> = None, "ranks", "the trace";
        /// Number of training passes of a SimAI workload in an iteration.
        pub passes: u32 = 1, "passes", "one pass";
        /// Start of the job.
        pub start: Time = Time::ZERO, "start", "the start of the run";
        /// Number of consecutive runs of the whole trace.
        pub iterations: u32 = 1, "iterations", "once";
        /// Factor for the time of each computation in the trace; with 0 only communication takes time.
        pub time_scale: f64 = 1.0, "time-scale", "the trace";
        /// Algorithm for calls of an all-reduce.
        pub all_reduce: String = first_algorithm!("all-reduce"), "all-reduce", "NCCL's for large arrays";
        /// Algorithm for calls of an all-gather.
        pub all_gather: String = first_algorithm!("all-gather"), "all-gather", "NCCL's";
        /// Algorithm for calls of a reduce-scatter.
        pub reduce_scatter: String = first_algorithm!("reduce-scatter"), "reduce-scatter", "NCCL's";
        /// Algorithm for calls of an all-to-all.
        pub all_to_all: String = first_algorithm!("all-to-all"), "all-to-all", "the only one";
        /// Algorithm for calls of a broadcast, and in reverse for calls of a reduce.
        pub broadcast: String = first_algorithm!("broadcast"), "broadcast", "NCCL's";
        /// Maximum payload of a message of a collective; "auto": the default of the algorithm.
        pub chunk: Option<Bytes> = None, "chunk", "the algorithm";
        /// Maximum number of messages of one all-to-all in flight from a rank: message i is sent when message i - `parallelism` is
        /// acknowledged. "auto": no limit.
        pub parallelism: Option<u32> = Some(16), "parallelism", "STrack §4.3: 8, 16, 32 or 64";
        with {
            /// Speed of the GPUs.
            pub gpu: OmitDefaults<GpuSpeed>,
            /// Steps of a profile.
            pub steps: OmitDefaults<ProfilerSteps>,
            /// Channels of the collectives that have them.
            pub channels: Channels,
            /// Dimensions of the ranks.
            pub dimensions: OmitDefaults<Box<TraceDimensions>>,
            /// Placement of the ranks.
            pub placing: RankPlacement,
            /// Schedule of the communication.
            pub scheduling: Scheduling,
        }
    }
}
