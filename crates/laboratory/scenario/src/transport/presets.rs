//! Presets of `[transport]`: a part of each kind by name, the keys with other defaults, and the switches that the authors tuned the
//! transport for.
//!
//! # Settings of a preset
//! A preset sets the values that its authors tuned: constants of the parts, and marking, queues, trimming and pauses of the switches.
//! Thresholds scale as in their source. DCQCN states its thresholds for one rate, and its rate steps grow with the line rate, so its
//! thresholds are [times of the link](RelativeSize::OfTime). The thresholds of STrack and Ultra Ethernet are shares of the bandwidth-delay
//! product. Thresholds of a simulator that keeps them at any rate are bytes.
//!
//! Settings of the network are the same for all transports, regardless of their papers: packets of 4096 bytes and headers of 64 bytes,
//! strict priority of acknowledgements, the size of a shared buffer. Presets that follow a simulator packet by packet (`dcqcn-2016`,
//! `tmdml`) have the simulator's payload.
//!
//! Telemetry (HPCC), round trips (Swift, TIMELY) and allocated rates (s-PERC, 1RC) need no marks; switches mark packets anyway, and the
//! transport ignores the marks.

use clearway_units::{Bytes, Parameter, ParameterInfo, Rate, RelativeSize, Span, Value};

/// A transport by name: one part of each kind.
pub(crate) struct Preset {
    pub(crate) name: &'static str,
    pub(crate) summary: &'static str,
    pub(crate) reliability: &'static str,
    pub(crate) controller: &'static str,
    pub(crate) spray: &'static str,
    pub(crate) feedback: &'static str,
    /// Payload of a full packet in bytes, where the transport has its own default.
    pub(crate) payload: Option<u64>,
    /// Keys of the parts with other defaults here. If the user replaces a part, keys that the new part does not have are dropped.
    pub(crate) keys: fn() -> Keys,
    /// Keys of switches that the transport was designed with; `kind` is one of them.
    pub(crate) switch: fn() -> Keys,
}

/// Key that a preset sets.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct PresetKey {
    pub(crate) key: &'static str,
    pub(crate) value: Value,
    /// Source of the value.
    pub(crate) source: &'static str,
}

impl PresetKey {
    /// Replaces the default and its source in `parameters`.
    pub(crate) fn describe_in(&self, parameters: &mut [ParameterInfo]) {
        let own = parameters.iter_mut().filter(|known| known.key == self.key);
        for parameter in own {
            parameter.default = self.value.clone();
            parameter.source = self.source;
        }
    }
}

/// Keys with their values.
pub(crate) type Keys = Vec<PresetKey>;

/// Key that a preset sets to `value`, from `source`.
fn key(key: &'static str, value: impl Parameter, source: &'static str) -> PresetKey {
    let value = value.to_value();
    PresetKey { key, value, source }
}

/// Key with a text or the name of a kind.
fn text(name: &'static str, value: &str, source: &'static str) -> PresetKey {
    key(name, value.to_owned(), source)
}

/// Switches that send pauses.
fn lossless(source: &'static str) -> PresetKey {
    text("kind", "shared-buffer", source)
}

/// A transport with the defaults of its parts: the common base of the presets below.
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
        switch: strack_switch,
        ..PLAIN
    },
    Preset {
        name: "rocev2",
        summary: "RoCEv2: go-back-N, DCQCN with notifications, one path for each queue pair",
        feedback: "interval",
        switch: dcqcn_switch,
        ..PLAIN
    },
    Preset {
        name: "dcqcn-2016",
        summary: "RoCEv2 as in the ns-3 simulator of DCQCN's authors (2016): its constants, marks and notification point",
        feedback: "interval",
        payload: Some(1000),
        keys: dcqcn_2016,
        switch: dcqcn_2016_switch,
        ..PLAIN
    },
    Preset {
        name: "tmdml",
        summary: "TMDML-NIC: RoCEv2 of 2016 without notifications for flows that fall behind, packets of 1000 B",
        feedback: "progress",
        payload: Some(1000),
        keys: dcqcn_2016,
        switch: dcqcn_2016_switch,
        ..PLAIN
    },
    Preset {
        name: "dctcp",
        summary: "DCTCP: go-back-N, a window that follows the share of marks, one path",
        controller: "dctcp",
        keys: tcp,
        switch: dctcp_switch,
        ..PLAIN
    },
    Preset {
        name: "tcp",
        summary: "TCP Reno with ECN: go-back-N, a window halved by marks, one path",
        controller: "reno",
        keys: tcp,
        switch: tcp_switch,
        ..PLAIN
    },
    Preset {
        name: "mltcp",
        summary: "MLTCP: TCP whose window grows faster towards the end of a training job's iteration",
        controller: "reno",
        keys: || {
            let mut keys = tcp();
            keys.extend([
                key("phase-increase", 1.75, "MLTCP (HotNets 2024): the slope"),
                key("phase-base", 0.25, "MLTCP (HotNets 2024): the intercept"),
            ]);
            keys
        },
        switch: tcp_switch,
        ..PLAIN
    },
    Preset {
        name: "hpcc",
        summary: "HPCC: go-back-N, rate and window from switch telemetry, one path",
        controller: "hpcc",
        switch: || vec![lossless("HPCC §5.1: PFC, which it hardly needs")],
        ..PLAIN
    },
    Preset {
        name: "swift",
        summary: "Swift: go-back-N, a window that follows the round-trip time, one path",
        controller: "swift",
        switch: || vec![lossless("Snyder §3.3.4: in the simulator of HPCC")],
        ..PLAIN
    },
    // As in the paper: over RDMA that relies on pause frames. The controller ignores marks and notifications.
    Preset {
        name: "timely",
        summary: "TIMELY: go-back-N, a rate that follows the gradient of the round-trip time, one path",
        controller: "timely",
        switch: || vec![lossless("TIMELY §4: RDMA over lossless fabrics")],
        ..PLAIN
    },
    Preset {
        name: "irn",
        summary: "IRN: selective repeat without pause frames, a window of one bandwidth-delay product, one path",
        reliability: "selective-repeat",
        controller: "constant",
        keys: || {
            vec![
                text("recovery", "irn", "IRN §3.1"),
                key("rto", Span::from_us(320), "IRN §4.1: RTO_high"),
                key("rto-low", Span::from_us(100), "IRN §4.1: RTO_low"),
            ]
        },
        switch: || {
            vec![
                text("kind", "lossy", "IRN §1: no PFC"),
                key(
                    "queue",
                    RelativeSize::percent_of_bdp(500),
                    "decision: as STrack §4.1; IRN §4.1 has 2 BDP at each input port",
                ),
            ]
        },
        ..PLAIN
    },
    Preset {
        name: "s-perc",
        summary: "s-PERC: max-min fair rates allocated by links with control packets, go-back-N, one path",
        controller: "s-perc",
        switch: || vec![lossless("Snyder §5.1: no control packet is lost")],
        ..PLAIN
    },
    Preset {
        name: "1rc",
        summary: "1RC: s-PERC with speculative packets in the first round trip, as far as links admit them",
        controller: "1rc",
        switch: || vec![lossless("Snyder §5.1: no control packet is lost")],
        ..PLAIN
    },
    Preset {
        name: "uet",
        summary: "Ultra Ethernet: NSCC, packet trimming with NACKs, one acknowledgement per 16 KiB",
        reliability: "selective-repeat",
        controller: "nscc",
        spray: "mixed",
        keys: uet_with_trimming,
        switch: uet_trimming_switch,
        ..PLAIN
    },
    // The window of the controller is larger than the largest credit, so that only credit limits a sender; `controller = "nscc"` adds NSCC.
    Preset {
        name: "uet-rccc",
        summary: "Ultra Ethernet with receiver credits (RCCC), packet trimming with NACKs",
        reliability: "selective-repeat",
        controller: "constant",
        spray: "mixed",
        keys: || {
            let mut keys = uet_with_trimming();
            keys.extend([
                text("credit.kind", "rccc", UEC),
                key(
                    "window",
                    RelativeSize::percent_of_bdp(400),
                    "decision: more than the largest credit",
                ),
                key("last-hop-cut", false, UEC),
            ]);
            keys
        },
        switch: || {
            let mut keys = uet_trimming_switch();
            keys.push(key("ecn.last-hop", false, "UEC reference simulator (U9)"));
            keys
        },
        ..PLAIN
    },
    Preset {
        name: "uet-no-trim",
        summary: "Ultra Ethernet without trimming: NSCC with a target of one round trip, loss detection by SLEEK",
        reliability: "selective-repeat",
        controller: "nscc",
        spray: "mixed",
        keys: || {
            let mut keys = uet();
            keys.extend([
                text("recovery", "sleek", UEC),
                key("rto-rtts", 30.0, UEC),
                key("target-rtts", 1.0, UEC),
                key("quick-adapt-delay", 4.0, "UEC reference simulator (U3)"),
            ]);
            keys
        },
        switch: || {
            let mut keys = uet_marks();
            keys.push(key(
                "queue",
                RelativeSize::percent_of_bdp(500),
                "decision: as STrack §4.1",
            ));
            keys
        },
        ..PLAIN
    },
];

/// Switches of the STrack paper.
fn strack_switch() -> Keys {
    let of_bdp = RelativeSize::percent_of_bdp;
    vec![
        text("kind", "lossy", "STrack §4.1: lossy, without PFC"),
        key(
            "queue",
            of_bdp(500),
            "STrack §4.1: drops if queuing exceeds 5 BDP",
        ),
        key("ecn.kmin", of_bdp(25), "STrack §4.1: 25% BDP"),
        key("ecn.kmax", of_bdp(75), "STrack §4.1: 75% BDP"),
        key("ecn.pmax", 1.0, "decision Q12: STrack does not say"),
    ]
}

/// Switches of DCQCN's testbed. Its paper states thresholds and rate steps for 40 Gb/s; the rate steps grow with the line rate.
fn dcqcn_switch() -> Keys {
    let of_link = |ns| RelativeSize::OfTime(Span::from_ns(ns));
    vec![
        lossless("DCQCN §2: RDMA without loss, by PFC"),
        key("ecn.kmin", of_link(1000), "DCQCN: K_min of 5 KB at 40 Gb/s"),
        key(
            "ecn.kmax",
            of_link(40_000),
            "DCQCN: K_max of 200 KB at 40 Gb/s",
        ),
        key("ecn.pmax", 0.01, "DCQCN: P_max of 1 %"),
    ]
}

/// Settings of DCQCN in the ns-3 simulator that its authors published (bobzhuyb/ns3-rdma, the `mix/config.txt` of 2016): `RATE_AI`,
/// `RATE_HAI`, `RP_TIMER` and `BYTE_COUNTER`, which is so large that a flow sends too little between two notifications for a hyper
/// increase. `CNP_INTERVAL`, `ALPHA_RESUME_INTERVAL`, `DCTCP_GAIN` and `FAST_RECOVERY_TIMES` equal DCQCN's values, which are our defaults.
/// `QbbNetDevice::CheckandSendQCN` runs each interval from the first packet of a flow on. It has no timeouts; ours stay, for links that
/// fail.
fn dcqcn_2016() -> Keys {
    vec![
        key(
            "rate-ai",
            Rate::from_bps(40_000_000),
            "ns3-rdma: RATE_AI 40 Mb/s",
        ),
        key(
            "rate-hai",
            Rate::from_bps(200_000_000),
            "ns3-rdma: RATE_HAI 200 Mb/s",
        ),
        key("rate-timer", Span::from_us(60), "ns3-rdma: RP_TIMER 60 us"),
        key(
            "byte-counter",
            Bytes::new(300_000_000),
            "ns3-rdma: BYTE_COUNTER 300 MB",
        ),
        text("cnp-schedule", "periodic", "ns3-rdma: CheckandSendQCN"),
    ]
}

/// Switches of the same simulator: `KMIN` 40 and `KMAX` 1000 in units of 1030 bytes, `PMAX` 1, and `USE_DYNAMIC_PFC_THRESHOLD` with an
/// alpha of 16 (`BroadcomNode`). Its pool is 4000 x 1030 bytes for any switch; here `buffer` sets the size.
fn dcqcn_2016_switch() -> Keys {
    vec![
        lossless("ns3-rdma: PFC"),
        key("alpha", 16.0, "ns3-rdma: USE_DYNAMIC_PFC_THRESHOLD"),
        key("ecn.kmin", Bytes::new(41_200), "ns3-rdma: KMIN 40 packets"),
        key(
            "ecn.kmax",
            Bytes::new(1_030_000),
            "ns3-rdma: KMAX 1000 packets",
        ),
        key("ecn.pmax", 1.0, "ns3-rdma: PMAX 1"),
    ]
}

/// Start of a TCP connection.
fn tcp() -> Keys {
    vec![
        key(
            "slow-start",
            true,
            "RFC 5681 §3.1; RFC 8257 §3.1 changes nothing in it",
        ),
        key(
            "initial-window",
            Bytes::new(40_960),
            "RFC 6928: ten packets",
        ),
    ]
}

/// Switches of DCTCP. A step at K, above which each packet is marked. The paper requires more than C x RTT / 7, plus the bursts of hosts.
/// It uses 20 packets at 1 Gb/s and 65 at 10 Gb/s. A seventh of the bandwidth-delay product is less than a packet of 4 KB at 25 Gb/s, where
/// flows then starve. RDMA simulators scale K with the rate: 30 KB per 10 Gb/s.
fn dctcp_switch() -> Keys {
    let k = RelativeSize::OfTime(Span::from_us(24));
    let source = "HPCC artifact: K of 30 KB at 10 Gb/s; DCTCP §3.4: above C x RTT / 7";
    vec![
        text("kind", "lossy", "DCTCP §2: drops in shallow buffers"),
        key("ecn.kmin", k, source),
        key("ecn.kmax", k, source),
        key("ecn.pmax", 1.0, "DCTCP §3.1: one threshold"),
        text(
            "ecn.mark",
            "enqueue",
            "DCTCP §3.1: by the queue that a packet meets on arrival",
        ),
    ]
}

/// Switches of TCP: a queue of C x RTT keeps a link busy while one window is halved.
fn tcp_switch() -> Keys {
    let source = "decision: C x RTT, what one halved window needs";
    vec![
        text("kind", "lossy", "RFC 3168: drops beside marks"),
        key("ecn.kmin", RelativeSize::percent_of_bdp(100), source),
        key("ecn.kmax", RelativeSize::percent_of_bdp(100), source),
        key("ecn.pmax", 1.0, "decision: one threshold"),
        text("ecn.mark", "enqueue", "decision: as with DCTCP"),
    ]
}

/// Source of the values in presets of Ultra Ethernet.
const UEC: &str = "UEC reference simulator";

/// Keys of Ultra Ethernet with packet trimming.
fn uet_with_trimming() -> Keys {
    let mut keys = uet();
    keys.extend([
        text(
            "recovery",
            "none",
            "UEC reference simulator: NACKs of trimmed packets",
        ),
        key(
            "rto-rtts",
            6.0,
            "UEC reference simulator: six times a full queue (U27)",
        ),
    ]);
    keys
}

/// Switches that trim packets, as in Ultra Ethernet.
fn uet_trimming_switch() -> Keys {
    let mut keys = vec![
        key("trimming", true, UEC),
        key("queue", RelativeSize::percent_of_bdp(100), UEC),
    ];
    keys.extend(uet_marks());
    keys
}

/// Reliability of Ultra Ethernet (UEC reference simulator; the timeout is 15 us and six times the time of a full queue, U27).
fn uet() -> Keys {
    vec![
        key("ack-in-order", false, UEC),
        key("ack-bytes", Bytes::new(16_384), UEC),
        key("ack-on-ecn", true, UEC),
        key("strict-window", true, UEC),
        key("rto-per-packet", true, UEC),
        key("rto", Span::from_us(15), "UEC reference simulator (U27)"),
    ]
}

/// Marks of Ultra Ethernet's switches.
fn uet_marks() -> Keys {
    vec![
        text("kind", "lossy", UEC),
        key("ecn.kmin", RelativeSize::percent_of_bdp(20), UEC),
        key("ecn.kmax", RelativeSize::percent_of_bdp(80), UEC),
        key("ecn.pmax", 1.0, UEC),
    ]
}
