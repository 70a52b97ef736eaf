//! Small files of other tools, for the kinds that read such files.

use std::path::Path;

/// Purpose of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Use {
    Topology,
    Flows,
    Trace,
    /// A trace whose collectives are performed by switches.
    Collectives,
    Sizes,
}

/// The folder beside the scenarios that holds the files.
const FOLDER: &str = "files";

/// Purpose, name and contents of each file.
const FILES: &[(Use, &str, &str)] = &[
    (
        Use::Topology,
        "two-tiers.topo",
        "Nodes 16\nTiers 2\nPodsize 16\nTier 0\nDownlink_speed_Gbps 400\nRadix_Down 4\nRadix_Up 4\nDownlink_Latency_ns 1000\n\
         Tier 1\nDownlink_speed_Gbps 100\nRadix_Down 4\nDownlink_Latency_ns 500\n",
    ),
    (
        Use::Topology,
        "three-tiers.topo",
        "Nodes 16\nTiers 3\nPodsize 8\nTier 0\nDownlink_speed_Gbps 100\nRadix_Down 4\nRadix_Up 2\nDownlink_Latency_ns 1000\n\
         Tier 1\nDownlink_speed_Gbps 200\nRadix_Down 2\nRadix_Up 2\nDownlink_Latency_ns 1000\nSwitch_Latency_ns 300\n\
         Tier 2\nDownlink_speed_Gbps 400\nRadix_Down 2\nDownlink_Latency_ns 2000\n",
    ),
    (
        Use::Topology,
        "lossy.txt",
        "8 4 9\n4 5 6 7\n0 6 100Gbps 1us 0\n6 1 10Gbps 1us 0\n2 7 100Gbps 1us 0.01\n3 7 100Gbps 1us 0\n\
         4 6 400Gbps 1us 0\n6 5 40Gbps 1us 0.05\n7 4 400Gbps 3us 0\n7 5 400Gbps 1us 0\n0 7 25Gbps 2us 0\n",
    ),
    (
        Use::Topology,
        "servers.txt",
        "7 3 9\n4 5 6\n0 4 900Gbps 100ns 0\n1 4 900Gbps 100ns 0\n2 5 900Gbps 100ns 0\n3 5 900Gbps 100ns 0\n\
         0 6 100Gbps 1us 0\n1 6 100Gbps 1us 0\n2 6 100Gbps 1us 0\n3 6 25Gbps 1us 0\n1 6 100Gbps 2us 0.001\n",
    ),
    (
        Use::Topology,
        "odd-queues.topo",
        "Nodes 15\nTiers 2\nPodsize 15\nTier 0\nDownlink_speed_Gbps 100\nRadix_Down 5\nRadix_Up 3\nDownlink_Latency_ns 1\n\
         Queue_Up 30000\nQueue_Down 20000\nTier 1\nDownlink_speed_Gbps 100\nRadix_Down 3\nDownlink_Latency_ns 700\nQueue_Down 70000\n",
    ),
    // Five hosts and two leaves: hosts have two equal NICs on the two leaves, but one host has only one.
    (
        Use::Topology,
        "two-nics.txt",
        "9 4 13\n5 6 7 8\n0 5 200Gbps 500ns 0\n0 6 200Gbps 500ns 0\n1 5 200Gbps 500ns 0\n1 6 200Gbps 500ns 0\n2 5 200Gbps 500ns 0\n\
         2 6 200Gbps 500ns 0\n3 5 200Gbps 500ns 0\n3 6 200Gbps 500ns 0\n4 6 200Gbps 500ns 0\n5 7 400Gbps 1us 0\n5 8 400Gbps 1us 0\n\
         6 7 400Gbps 1us 0\n6 8 400Gbps 1us 0\n",
    ),
    // Servers with three GPUs and three NVSwitches each, and a rail for each GPU.
    (
        Use::Topology,
        "nvswitches.txt",
        "15 3 6 3 24 H100\n6 7 8 9 10 11 12 13 14\n0 6 900Gbps 25ns 0\n0 7 900Gbps 25ns 0\n0 8 900Gbps 25ns 0\n1 6 900Gbps 25ns 0\n\
         1 7 900Gbps 25ns 0\n1 8 900Gbps 25ns 0\n2 6 900Gbps 25ns 0\n2 7 900Gbps 25ns 0\n2 8 900Gbps 25ns 0\n3 9 900Gbps 25ns 0\n\
         3 10 900Gbps 25ns 0\n3 11 900Gbps 25ns 0\n4 9 900Gbps 25ns 0\n4 10 900Gbps 25ns 0\n4 11 900Gbps 25ns 0\n5 9 900Gbps 25ns 0\n\
         5 10 900Gbps 25ns 0\n5 11 900Gbps 25ns 0\n0 12 400Gbps 500ns 0\n1 13 400Gbps 500ns 0\n2 14 400Gbps 500ns 0\n\
         3 12 400Gbps 500ns 0\n4 13 400Gbps 500ns 0\n5 14 400Gbps 500ns 0\n",
    ),
    // A switch before the hosts, and more links than announced.
    (
        Use::Topology,
        "switch-first.txt",
        "6 2 5\n0 1\n0 2 100Gbps 1us 0\n0 3 100Gbps 1us 0\n1 4 25Gbps 2us 0\n1 5 100Gbps 30us 0\n0 1 100Gbps 1us 0\n0 1 100Gbps 1us 0\n",
    ),
    (
        Use::Flows,
        "chain.cm",
        "Nodes 4\nConnections 4\nTriggers 3\n0->3 id 1 start 0 size 100000 send_done_trigger 1\n\
         3->0 id 2 trigger 1 size 50000 recv_done_trigger 2\n0->1 id 3 trigger 2 size 7 send_done_trigger 3\n\
         1->2 id 4 trigger 3 size 300000\ntrigger id 1 oneshot\ntrigger id 2 oneshot\ntrigger id 3 oneshot\n",
    ),
    (
        Use::Flows,
        "barrier.cm",
        "Nodes 4\nConnections 5\nTriggers 1\n0->3 id 1 start 0 size 100000 send_done_trigger 1\n\
         1->3 id 2 start 3 size 200000 recv_done_trigger 1\n2->3 id 3 start 0.5 size 9000 send_done_trigger 1\n\
         3->0 id 4 trigger 1 size 4096\n3->1 id 5 trigger 1 size 4097\ntrigger id 1 barrier count 3\n",
    ),
    (
        Use::Flows,
        "flows.txt",
        "4\n0 3 3 100 100000 0.000001\n1 3 3 100 50000 0\n2 3 1 100 1 0.000002\n3 0 7 100 200000 0.0000015\n",
    ),
    (
        Use::Trace,
        "pair.goal",
        "num_ranks 2\nrank 0 {\nc: calc 1500 cpu 1\ns: send 40960b to 1 tag 7\ns requires c\nr: recv 100b from 1 tag 8\nr requires s\n}\n\
         rank 1 {\nr: recv 40960b from 0 tag 7\nc: calc 20000\nc requires r\ns: send 100b to 0 tag 8\ns irequires c\n}\n",
    ),
    (
        Use::Trace,
        "ends-in-calc.goal",
        "num_ranks 3\nrank 0 {\na: send 100000b to 1 tag 1\nb: send 100000b to 2 tag 1\n}\n\
         rank 1 {\na: recv 100000b from 0 tag 1\nb: calc 50000\nb requires a\n}\n\
         rank 2 {\na: recv 100000b from 0 tag 1\nb: calc 70000\nb requires a\n}\n",
    ),
    (
        Use::Trace,
        "layers.simai",
        "HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: 2 ep: 1 pp: 1 vpp: 1 ga: 1 all_gpus: 4 checkpoints: 0 checkpoint_initiates: 0\n\
         1\nmlp -1 500 ALLREDUCE 4096 600 ALLREDUCE 4096 600 REDUCESCATTER 8192 100\n",
    ),
    (
        Use::Trace,
        "data.simai",
        "DATA all_gpus: 4\n2\na -1 1000 NONE 0 1000 NONE 0 1000 ALLREDUCE 100000 10\nb -1 1 ALLTOALL 4096 1 NONE 0 1 ALLGATHER 65536 10\n",
    ),
    (
        Use::Collectives,
        "groups.simai",
        "HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: 2 ep: 1 pp: 1 vpp: 1 ga: 1 all_gpus: 4 checkpoints: 0 checkpoint_initiates: 0\n\
         2\nattention -1 500 ALLGATHER 8192 600 REDUCESCATTER 4096 600 NONE 0 100\nmlp -1 0 ALLREDUCE 1 600 ALLREDUCE 4096 9 ALLREDUCE 8192 100\n",
    ),
    (
        Use::Collectives,
        "pair.simai",
        "DATA all_gpus: 2\n2\na -1 1000 NONE 0 1000 NONE 0 1000 ALLREDUCE 20000 10\nb -1 1 NONE 0 1 NONE 0 1 ALLGATHER 4097 10\n",
    ),
    (
        Use::Sizes,
        "sizes.txt",
        "1 0\n100 30\n4096 60\n100000 90\n500000 100\n",
    ),
];

/// Writes all files into their folder in `folder`.
pub(crate) fn write_all(folder: &Path) -> std::io::Result<()> {
    let folder = folder.join(FOLDER);
    std::fs::create_dir_all(&folder)?;
    for (_, name, text) in FILES {
        std::fs::write(folder.join(name), text)?;
    }
    Ok(())
}

/// Number of ranks of a trace of SimAI, as its header gives it.
pub(crate) fn ranks(path: &str) -> Option<usize> {
    let mut files = FILES.iter();
    let (.., text) = files.find(|(_, name, _)| path.strip_suffix(name) == Some("files/"))?;
    let (_, after) = text.split_once("all_gpus: ")?;
    after.split_whitespace().next()?.parse().ok()
}

/// The files for a use, as named by a scenario in the parent folder.
pub(crate) fn names(wanted: Use) -> Vec<String> {
    let fitting = FILES.iter().filter(|(for_what, ..)| *for_what == wanted);
    fitting
        .map(|(_, name, _)| format!("{FOLDER}/{name}"))
        .collect()
}
