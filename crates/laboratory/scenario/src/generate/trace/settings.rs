//! Settings of a job from a trace.

use super::algorithms::first_algorithm;
use crate::generate::{Placing, Scheduling};
use clearway_formats::TraceFormat;
use clearway_units::{ByteRate, Bytes, Rare, Time, parameters};
use clearway_workload::collective::Channels;

/// The name of the first algorithm for an operation.
macro_rules! first_algorithm {
    ($operation:literal) => {
        first_algorithm($operation).to_owned()
    };
}

parameters! {
    /// Speed of the GPUs of a trace.
    pub struct GpuSpeed {
        /// Peak performance of a GPU, in TFLOP/s, as `peak-perf` of ASTRA-sim. Computations of Chakra's traces that have `num_ops` and no
        /// duration take the time that the roofline model gives for them. "auto": they take no time.
        pub peak_tflops: Option<f64> = None, "peak-tflops", "decision: no GPU is assumed";
        /// Memory bandwidth of a GPU, as `local-mem-bw` of ASTRA-sim: a computation takes at least the time in which its `tensor_size` is
        /// moved. "auto": the peak performance alone counts.
        pub memory_bandwidth: Option<ByteRate> = None, "memory-bandwidth", "decision: no GPU is assumed";
    }
}

parameters! {
    /// A job that does what a trace says.
    pub struct TraceSettings {
        /// The trace: a GOAL schedule, a workload of SimAI, one of Chakra's files, `<prefix>.<rank>.et`, or their prefix. Looked for in
        /// the folder of the scenario file, then in the current folder.
        pub file: String = String::new(), "file", "none: the file must be named";
        /// Format of the trace; "auto" decides by how the file begins.
        pub format: Option<TraceFormat> = None, "format", "decision: no file is sound in two formats";
        /// A comm-group file, which lists the ranks of each group that Chakra's traces name; empty for none.
        pub comm_groups: String = String::new(), "comm-groups", "as in the traces";
        /// Number of ranks that run a workload of SimAI; "auto": as many as it says or, where it says nothing, one for each host. Other
        /// traces have their own number.
        pub ranks: Option<u32> = None, "ranks", "the trace";
        /// Number of passes of training that a workload of SimAI makes in an iteration.
        pub passes: u32 = 1, "passes", "one pass";
        /// Start of the job.
        pub start: Time = Time::ZERO, "start", "the start of the run";
        /// Number of times that the whole trace runs, one after the other.
        pub iterations: u32 = 1, "iterations", "once";
        /// Factor for the time of each computation in the trace; with 0 only communication takes time.
        pub time_scale: f64 = 1.0, "time-scale", "the trace";
        /// The algorithm for calls of an all-reduce.
        pub all_reduce: String = first_algorithm!("all-reduce"), "all-reduce", "NCCL's for large arrays";
        /// The algorithm for calls of an all-gather.
        pub all_gather: String = first_algorithm!("all-gather"), "all-gather", "NCCL's";
        /// The algorithm for calls of a reduce-scatter.
        pub reduce_scatter: String = first_algorithm!("reduce-scatter"), "reduce-scatter", "NCCL's";
        /// The algorithm for calls of an all-to-all.
        pub all_to_all: String = first_algorithm!("all-to-all"), "all-to-all", "the only one";
        /// The algorithm for calls of a broadcast, and in reverse for those of a reduce.
        pub broadcast: String = first_algorithm!("broadcast"), "broadcast", "NCCL's";
        /// Maximum payload of a message of a collective; "auto": the default of the algorithm.
        pub chunk: Option<Bytes> = None, "chunk", "the algorithm";
        /// Maximum number of messages of one all-to-all in flight from a rank: each is sent when the one so many before it is acknowledged.
        /// "auto": no limit.
        pub parallelism: Option<u32> = Some(16), "parallelism", "STrack §4.3: 8, 16, 32 or 64";
        with {
            /// Speed of the GPUs.
            pub gpu: Rare<GpuSpeed>,
            /// Channels of the collectives that have them.
            pub channels: Channels,
            /// Placement of the ranks.
            pub placing: Placing,
            /// Schedule of the communication.
            pub scheduling: Scheduling,
        }
    }
}
