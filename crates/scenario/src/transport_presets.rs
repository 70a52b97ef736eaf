//! Presets of `[transport]`: a part of each kind by name, with the keys in which it differs, and the switches that it was designed with.

use clearway_units::{Bytes, Parameter as _, Rate, RelativeSize, Span, Value};

/// A transport by name: one of each part.
pub(crate) struct Preset {
    pub(crate) name: &'static str,
    pub(crate) summary: &'static str,
    pub(crate) reliability: &'static str,
    pub(crate) controller: &'static str,
    pub(crate) spray: &'static str,
    pub(crate) feedback: &'static str,
    /// Payload of a full packet in bytes, where the transport has its own default.
    pub(crate) payload: Option<u64>,
    /// Keys of the parts whose defaults are others here. Those that another part does not have are left out.
    pub(crate) keys: fn() -> Keys,
    /// Keys of switches that the transport was designed with.
    pub(crate) switch: fn() -> Keys,
}

/// Keys with their values.
pub(crate) type Keys = Vec<(&'static str, Value)>;

/// A transport that changes no keys of its parts: what those below have in common.
const PLAIN: Preset = Preset {
    name: "",
    summary: "",
    reliability: "go-back-n",
    controller: "dcqcn",
    spray: "single",
    feedback: "none",
    payload: None,
    keys: Vec::new,
    switch: Vec::new,
};

/// The transports; the first is the default.
pub(crate) const PRESETS: [Preset; 16] = [
    Preset {
        name: "strack",
        summary: "STrack: selective repeat, delay-based window, adaptive spraying (arXiv 2407.15266)",
        reliability: "selective-repeat",
        controller: "strack",
        spray: "adaptive",
        ..PLAIN
    },
    Preset {
        name: "rocev2",
        summary: "RoCEv2: go-back-N, DCQCN with notifications, one path for each queue pair",
        feedback: "interval",
        ..PLAIN
    },
    Preset {
        name: "dcqcn-2016",
        summary: "RoCEv2 as the ns-3 simulator of DCQCN's authors has it (2016): its constants, marks and notification point",
        feedback: "interval",
        payload: Some(1000),
        keys: dcqcn_2016,
        switch: dcqcn_2016_switch,
        ..PLAIN
    },
    Preset {
        name: "tmdml",
        summary: "TMDML-NIC: RoCEv2 whose receivers spare flows that fall behind, packets of 1000 B",
        feedback: "progress",
        payload: Some(1000),
        ..PLAIN
    },
    Preset {
        name: "dctcp",
        summary: "DCTCP: go-back-N, a window that follows the share of marks, one path",
        controller: "dctcp",
        ..PLAIN
    },
    Preset {
        name: "tcp",
        summary: "TCP Reno with ECN: go-back-N, a window halved by marks, one path",
        controller: "reno",
        ..PLAIN
    },
    Preset {
        name: "mltcp",
        summary: "MLTCP: TCP whose window grows faster the further an iteration of a training job has come",
        controller: "reno",
        keys: || {
            vec![
                ("phase-increase", Value::Float(1.75)),
                ("phase-base", Value::Float(0.25)),
            ]
        },
        ..PLAIN
    },
    Preset {
        name: "hpcc",
        summary: "HPCC: go-back-N, rate and window by the telemetry of switches, one path",
        controller: "hpcc",
        ..PLAIN
    },
    Preset {
        name: "swift",
        summary: "Swift: go-back-N, a window that follows the round-trip time, one path",
        controller: "swift",
        ..PLAIN
    },
    // As the paper runs it: over RDMA that relies on pause frames. Marks and notifications are not heard.
    Preset {
        name: "timely",
        summary: "TIMELY: go-back-N, a rate that follows the gradient of the round-trip time, one path",
        controller: "timely",
        ..PLAIN
    },
    Preset {
        name: "irn",
        summary: "IRN: selective repeat without pause frames, a window of one bandwidth-delay product, one path",
        reliability: "selective-repeat",
        controller: "constant",
        keys: || {
            vec![
                ("recovery", Value::Text("irn".into())),
                ("rto", Span::from_us(320).to_value()),
                ("rto-low", Span::from_us(100).to_value()),
            ]
        },
        ..PLAIN
    },
    Preset {
        name: "s-perc",
        summary: "s-PERC: max-min fair rates that links allocate by control packets, go-back-N, one path",
        controller: "s-perc",
        ..PLAIN
    },
    Preset {
        name: "1rc",
        summary: "1RC: s-PERC whose flows send in their first round trip what links let through",
        controller: "1rc",
        ..PLAIN
    },
    Preset {
        name: "uet",
        summary: "Ultra Ethernet: NSCC, packet trimming with NACKs, acknowledgements for 16 KiB",
        reliability: "selective-repeat",
        controller: "nscc",
        spray: "mixed",
        keys: uet_with_trimming,
        switch: uet_trimming_switch,
        ..PLAIN
    },
    // The window of the controller is that of the largest credit and more, so that credit alone decides; `controller = "nscc"` adds NSCC.
    Preset {
        name: "uet-rccc",
        summary: "Ultra Ethernet with receiver credits (RCCC), packet trimming with NACKs",
        reliability: "selective-repeat",
        controller: "constant",
        spray: "mixed",
        keys: || {
            let mut keys = uet_with_trimming();
            keys.extend([
                ("credit.kind", Value::Text("rccc".into())),
                ("window", RelativeSize::percent_of_bdp(400).to_value()),
                ("last-hop-cut", Value::Boolean(false)),
            ]);
            keys
        },
        switch: || {
            let mut keys = uet_trimming_switch();
            keys.push(("ecn.last-hop", Value::Boolean(false)));
            keys
        },
        ..PLAIN
    },
    Preset {
        name: "uet-no-trim",
        summary: "Ultra Ethernet without trimming: NSCC with a target of a round trip, losses found by SLEEK",
        reliability: "selective-repeat",
        controller: "nscc",
        spray: "mixed",
        keys: || {
            let mut keys = uet();
            keys.extend([
                ("recovery", Value::Text("sleek".into())),
                ("rto-rtts", Value::Float(30.0)),
                ("target-rtts", Value::Float(1.0)),
                ("quick-adapt-delay", Value::Float(4.0)),
            ]);
            keys
        },
        switch: uet_marks,
        ..PLAIN
    },
];

/// Settings of DCQCN in the ns-3 simulator that its authors published (bobzhuyb/ns3-rdma, the `mix/config.txt` of 2016): `RATE_AI`,
/// `RATE_HAI`, `RP_TIMER` and `BYTE_COUNTER`, of which a flow sends too little between two notifications for a hyper increase;
/// `CNP_INTERVAL`, `ALPHA_RESUME_INTERVAL`, `DCTCP_GAIN` and `FAST_RECOVERY_TIMES` are DCQCN's own, our defaults.
/// `QbbNetDevice::CheckandSendQCN` runs each interval from the first packet of a flow on. It has no
/// timeouts; ours stay, for links that fail.
fn dcqcn_2016() -> Keys {
    vec![
        ("rate-ai", Rate::from_bps(40_000_000).to_value()),
        ("rate-hai", Rate::from_bps(200_000_000).to_value()),
        ("rate-timer", Span::from_us(60).to_value()),
        ("byte-counter", Bytes::new(300_000_000).to_value()),
        ("cnp-schedule", Value::Text("periodic".into())),
    ]
}

/// Switches of the same simulator: `KMIN` 40 and `KMAX` 1000 in units of 1030 bytes, `PMAX` 1, and `USE_DYNAMIC_PFC_THRESHOLD` with an
/// alpha of 16 (`BroadcomNode`). Its pool is of 4000 x 1030 bytes whatever the switch, which is for `buffer` to say.
fn dcqcn_2016_switch() -> Keys {
    vec![
        ("alpha", Value::Float(16.0)),
        ("ecn.kmin", Bytes::new(41_200).to_value()),
        ("ecn.kmax", Bytes::new(1_030_000).to_value()),
        ("ecn.pmax", Value::Float(1.0)),
    ]
}

/// Keys of Ultra Ethernet with packet trimming.
fn uet_with_trimming() -> Keys {
    let mut keys = uet();
    keys.extend([
        ("recovery", Value::Text("none".into())),
        ("rto-rtts", Value::Float(6.0)),
    ]);
    keys
}

/// Switches that trim packets, as Ultra Ethernet has them.
fn uet_trimming_switch() -> Keys {
    let mut keys = vec![
        ("trimming", Value::Boolean(true)),
        ("queue", RelativeSize::percent_of_bdp(100).to_value()),
    ];
    keys.extend(uet_marks());
    keys
}

/// Reliability of Ultra Ethernet (UEC reference simulator; the timeout is 15 us and six times the time of a full queue, U27).
fn uet() -> Keys {
    vec![
        ("ack-in-order", Value::Boolean(false)),
        ("ack-bytes", Bytes::new(16_384).to_value()),
        ("ack-on-ecn", Value::Boolean(true)),
        ("strict-window", Value::Boolean(true)),
        ("rto-per-packet", Value::Boolean(true)),
        ("rto", Span::from_us(15).to_value()),
    ]
}

/// Marks of Ultra Ethernet's switches (UEC reference simulator).
fn uet_marks() -> Keys {
    vec![
        ("ecn.kmin", RelativeSize::percent_of_bdp(20).to_value()),
        ("ecn.kmax", RelativeSize::percent_of_bdp(80).to_value()),
    ]
}
