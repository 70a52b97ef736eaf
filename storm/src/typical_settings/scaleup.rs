//! Usual settings of scenarios of scale-up fabrics: few operations of few GPUs, and little room for them.
//!
//! The tree, the members of sections and buffers as small as a packet are drawn with an eye to each other, not from here.

use super::typical_setting::Habit;

/// Settings that keep runs small.
pub(super) const USUAL: &[Habit] = &[
    ("topology", "spines", 0.7, &["1", "2", "3", "4", "7"]),
    ("topology", "links-per-spine", 0.6, &["1", "2", "3"]),
    (
        "topology",
        "cycle",
        0.2,
        &["1ps", "7ps", "640ps", "1ns", "80ns", "1ms"],
    ),
    ("topology", "header-flits", 0.2, &["1", "2", "3"]),
    (
        "topology",
        "payload-flits",
        0.3,
        &["0", "1", "2", "8", "31", "600"],
    ),
    ("switch", "latency", 0.5, &["1", "2", "7", "50", "149"]),
    ("injection", "read-latency", 0.4, &["0", "1", "5", "2000"]),
    ("injection", "write-latency", 0.4, &["0", "1", "5", "2000"]),
    (
        "workload",
        "transactions",
        0.9,
        &["1", "2", "5", "20", "100"],
    ),
    ("workload", "initiators", 0.4, &["auto", "1", "1", "2", "3"]),
    ("workload", "sets", 0.9, &["1", "2", "3", "5"]),
    ("workload", "least-operations", 0.9, &["0", "1", "2", "5"]),
    ("workload", "most-operations", 0.9, &["5", "7", "20", "64"]),
    (
        "workload",
        "least-pause",
        0.6,
        &["0", "1", "10", "300", "1000"],
    ),
    (
        "workload",
        "most-pause",
        0.6,
        &["1000", "1001", "3000", "1000000"],
    ),
    ("workload", "alternate-unicast", 0.5, &["true"]),
    ("workload", "unicast-factor", 0.4, &["0", "1", "2", "7"]),
    ("workload", "operations", 0.9, &["0", "1", "5", "50", "300"]),
    ("workload", "reads", 0.6, &["0.0", "0.3", "0.5", "1.0"]),
    (
        "observe",
        "series.every",
        0.6,
        &["off", "off", "100ns", "1us"],
    ),
    ("observe", "series.points", 0.2, &["10", "11", "100"]),
    ("observe", "trace.perfetto", 0.2, &["true"]),
    (
        "",
        "stop.at-most",
        1.0,
        &[
            "1ps", "500ns", "1us", "3us", "10us", "50us", "1ms", "20ms", "20ms", "100ms", "1s",
        ],
    ),
    ("", "seed", 0.5, &["2", "3", "77", "9223372036854775807"]),
];

/// Settings that put runs under stress: few entries, shared channels, hasty or slow tokens.
pub(super) const HOSTILE: &[Habit] = &[
    (
        "switch",
        "reduction-table",
        0.5,
        &["2", "2", "3", "4", "16", "auto"],
    ),
    ("injection", "channels", 0.4, &["shared"]),
    ("injection", "arbiter", 0.4, &["round-robin"]),
    ("injection", "window", 0.5, &["1", "2", "8"]),
    (
        "injection",
        "wm-max",
        0.3,
        &["1.0", "10.0", "300.0", "1e4", "1e9"],
    ),
    ("injection", "wm-min", 0.3, &["0.001", "1.0", "100.0"]),
    (
        "injection",
        "token-cap",
        0.3,
        &["1.0", "1.5", "64.0", "1e6"],
    ),
    (
        "injection",
        "latency-threshold",
        0.3,
        &["0", "1", "300", "1500"],
    ),
    (
        "injection",
        "latency-max",
        0.3,
        &["1", "301", "1501", "100000"],
    ),
];
