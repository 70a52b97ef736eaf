//! The `[transport]` section: a reliability scheme, a controller, a path selector and the feedback of receivers, with the keys
//! of all four.

use crate::error::ScenarioError;
use crate::section::{Section, unknown_name};
use crate::source::Entry;
use clearway_transport::cc::{
    ControllerDefinition as _, ControllerSettings, Dcqcn, Hpcc, NetworkFacts, Timely,
};
use clearway_transport::credit::CreditParameters;
use clearway_transport::feedback::FeedbackSettings;
use clearway_transport::spray::SelectorSettings;
use clearway_transport::{Profile, Registry, Reliability, ScopeParameters};
use clearway_units::{
    Bytes, Parameter, ParameterInfo, ParameterSet, Rate, RelativeSize, SetError, Span, Value,
};

clearway_units::parameters! {
    /// The parts of a transport. Chosen before everything else, because they decide which other keys exist.
    pub struct PartNames {
        /// The transport: a preset of the other parts; `clearway list transports`.
        pub kind: String = "strack".into(), "kind", "STrack";
        /// Acknowledgements and retransmission: selective-repeat or go-back-n.
        pub reliability: String = "selective-repeat".into(), "reliability", "the preset; STrack §3.3";
        /// The congestion controller; `clearway list controllers`.
        pub controller: String = "strack".into(), "controller", "the preset; STrack §3.2";
        /// The path selector; `clearway list spray`.
        pub spray: String = "adaptive".into(), "spray", "the preset; STrack §3.1";
        /// The reaction of receivers to congestion; `clearway list feedback`.
        pub feedback: String = "none".into(), "feedback", "the preset";
    }
}

clearway_units::parameters! {
    /// Packet sizes, for every transport.
    pub struct PacketParameters {
        /// Payload of a full packet.
        pub payload: Bytes = Bytes::new(4096), "payload", "STrack §4.2: MTU of 4 KB";
        /// Headers of each packet: Ethernet, IP, UDP and the transport.
        pub header: Bytes = Bytes::new(64), "header", "decision: 64 B, as in the UEC reference simulator";
        /// An acknowledgement, probe or congestion notification on the wire; `"auto"` is the header.
        pub ack: Option<Bytes> = None, "ack-size", "decision: a header and nothing else; 60 B in the HPCC artifact";
        /// Telemetry (INT) on each data packet and its acknowledgement, on top of headers, if the controller uses any. Ideal
        /// completion times are without it.
        pub telemetry: Bytes = Bytes::new(42), "telemetry-size", "HPCC §4.1 and its artifact: room for 5 hops of 8 B, and 2 B, whatever the path";
    }
}

impl PacketParameters {
    /// Bytes of an acknowledgement on the wire.
    pub(crate) fn ack_bytes(&self) -> u64 {
        self.ack.unwrap_or(self.header).as_u64()
    }
}

/// A transport by name: one of each part.
struct Preset {
    name: &'static str,
    summary: &'static str,
    reliability: &'static str,
    controller: &'static str,
    spray: &'static str,
    feedback: &'static str,
    /// Payload of a full packet in bytes, where the transport has its own default.
    payload: Option<u64>,
    /// Keys of the parts whose defaults are others here. Those that another part does not have are left out.
    keys: fn() -> Keys,
    /// Keys of switches that the transport was designed with.
    switch: fn() -> Keys,
}

/// Keys with their values.
type Keys = Vec<(&'static str, Value)>;

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
const PRESETS: [Preset; 16] = [
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

/// The keys that choose parts.
const PARTS: [&str; 5] = ["kind", "reliability", "controller", "spray", "feedback"];

impl Preset {
    fn named(name: &str) -> Option<&'static Self> {
        PRESETS.iter().find(|preset| preset.name == name)
    }

    fn part(&self, key: &str) -> &'static str {
        match key {
            "kind" => self.name,
            "reliability" => self.reliability,
            "controller" => self.controller,
            "spray" => self.spray,
            _ => self.feedback,
        }
    }

    /// Sets what the preset has otherwise than its parts. Where the user has chosen other parts, these may not have the key, or have
    /// another one of its name.
    fn apply(&self, settings: &mut TransportSettings) {
        for (key, value) in (self.keys)() {
            let result = settings.set(key, &value);
            let fits = result.is_ok() || result == Err(SetError::UnknownKey);
            debug_assert!(
                fits || !self.is_whole(settings),
                "`{key}` of the preset {}: {result:?}",
                self.name
            );
        }
    }

    /// True if it sets a key that begins with `prefix`.
    fn has(&self, prefix: &str) -> bool {
        (self.keys)().iter().any(|(key, _)| key.starts_with(prefix))
    }

    /// True if a transport has all parts of the preset.
    fn is_whole(&self, settings: &TransportSettings) -> bool {
        let own = [self.reliability, self.controller, self.spray, self.feedback];
        own == [
            settings.reliability.name(),
            settings.controller.name(),
            settings.selector.name(),
            settings.feedback.name(),
        ]
    }

    fn packets(&self) -> PacketParameters {
        let mut packets = PacketParameters::default();
        packets.payload = self.payload.map_or(packets.payload, Bytes::new);
        packets
    }
}

/// The section, resolved.
#[derive(Debug, Clone, PartialEq)]
pub struct TransportSettings {
    /// The preset that it started from.
    pub kind: &'static str,
    /// Packet sizes.
    pub packets: PacketParameters,
    /// Acknowledgements, loss detection and retransmission.
    pub reliability: Reliability,
    /// The congestion controller with its settings.
    pub controller: ControllerSettings,
    /// The path selector with its settings.
    pub selector: SelectorSettings,
    /// The reaction of receivers to congestion, with its settings.
    pub feedback: FeedbackSettings,
    /// What one controller governs.
    pub scope: ScopeParameters,
    /// Receiver credits.
    pub credit: CreditParameters,
}

/// The part called `key`: the one that the user names, or else the preset's.
fn part<T>(
    entries: &[&Entry],
    key: &'static str,
    preset: &Preset,
    names: &[&str],
    find: impl Fn(&str) -> Option<T>,
) -> Result<T, ScenarioError> {
    let Some(entry) = entries.iter().find(|entry| entry.key == key) else {
        let found = find(preset.part(key));
        return Ok(found.expect("the registry has what presets are made of"));
    };
    let name = match &entry.value {
        Value::Text(name) => name.as_str(),
        _ => "",
    };
    find(name).ok_or_else(|| unknown_name(entry, &entry.section, key, name, names))
}

fn names(parts: impl Iterator<Item = (&'static str, &'static str)>) -> Vec<&'static str> {
    parts.map(|(name, _)| name).collect()
}

impl TransportSettings {
    /// Finds out which parts the section is made of; returns it with the entries that are still to be set.
    pub(crate) fn choose<'a>(
        registry: &Registry,
        entries: &[&'a Entry],
    ) -> Result<(Self, Vec<&'a Entry>), ScenarioError> {
        let kinds = PRESETS.map(|preset| preset.name);
        let preset = part(entries, "kind", &PRESETS[0], &kinds, Preset::named)?;
        let schemes = names(Reliability::ALL.iter().copied());
        let controllers = names(registry.controllers());
        let selectors = names(registry.selectors());
        let rules = names(registry.feedback_rules());
        let mut settings = Self {
            kind: preset.name,
            packets: preset.packets(),
            reliability: part(entries, "reliability", preset, &schemes, Reliability::named)?,
            controller: part(entries, "controller", preset, &controllers, |name| {
                registry.controller(name)
            })?,
            selector: part(entries, "spray", preset, &selectors, |name| {
                registry.selector(name)
            })?,
            feedback: part(entries, "feedback", preset, &rules, |name| {
                registry.feedback_rule(name)
            })?,
            scope: ScopeParameters::default(),
            credit: CreditParameters::default(),
        };
        preset.apply(&mut settings);
        let rest = entries
            .iter()
            .copied()
            .filter(|entry| !PARTS.contains(&entry.key.as_str()));
        Ok((settings, rest.collect()))
    }

    /// A transport as its preset has it; `None` if there is none of this name.
    pub(crate) fn preset(registry: &Registry, name: &str) -> Option<Self> {
        let preset = Preset::named(name)?;
        let mut settings = Self {
            kind: preset.name,
            packets: preset.packets(),
            reliability: Reliability::named(preset.reliability)?,
            controller: registry.controller(preset.controller)?,
            selector: registry.selector(preset.spray)?,
            feedback: registry.feedback_rule(preset.feedback)?,
            scope: ScopeParameters::default(),
            credit: CreditParameters::default(),
        };
        preset.apply(&mut settings);
        Some(settings)
    }

    /// Keys of switches, with values, that the transport of these entries was designed with: defaults where it is simulated.
    ///
    /// # Errors
    /// If there is no such transport.
    pub(crate) fn switch_keys(
        entries: &[&Entry],
    ) -> Result<Vec<(&'static str, Value)>, ScenarioError> {
        let kinds = PRESETS.map(|preset| preset.name);
        let preset = part(entries, "kind", &PRESETS[0], &kinds, Preset::named)?;
        Ok((preset.switch)())
    }

    /// Keys of switches, with values, that the transport's preset was designed with.
    pub(crate) fn designed_for(&self) -> Vec<(&'static str, Value)> {
        Preset::named(self.kind).map_or_else(Vec::new, |preset| (preset.switch)())
    }

    /// In a few words, for errors about its keys.
    pub(crate) fn parts(&self) -> String {
        format!(
            "a transport of reliability \"{}\", controller \"{}\", spray \"{}\" and feedback \"{}\"",
            self.reliability.name(),
            self.controller.name(),
            self.selector.name(),
            self.feedback.name()
        )
    }

    /// The keys that stay when the kind is changed.
    pub(crate) fn is_common(key: &str) -> bool {
        let common = [
            PacketParameters::describe(),
            ScopeParameters::describe(),
            CreditParameters::describe(),
        ];
        let mut common = common.iter().flatten();
        common.any(|parameter| parameter.key == key)
    }

    pub(crate) fn set(&mut self, key: &str, value: &Value) -> Result<(), SetError> {
        let parts: [&mut dyn FnMut() -> Result<(), SetError>; 7] = [
            &mut || self.packets.set(key, value),
            &mut || self.scope.set(key, value),
            &mut || self.credit.set(key, value),
            &mut || self.reliability.set(key, value),
            &mut || self.controller.set(key, value),
            &mut || self.selector.set(key, value),
            &mut || self.feedback.set(key, value),
        ];
        for set in parts {
            match set() {
                Err(SetError::UnknownKey) => {}
                result => return result,
            }
        }
        Err(SetError::UnknownKey)
    }

    pub(crate) fn entries(&self) -> Vec<(&'static str, Value)> {
        let text = |text: &str| Value::Text(text.into());
        let mut entries = vec![
            ("kind", text(self.kind)),
            ("reliability", text(self.reliability.name())),
            ("controller", text(self.controller.name())),
            ("spray", text(self.selector.name())),
            ("feedback", text(self.feedback.name())),
        ];
        entries.extend(self.packets.entries());
        // Where the preset has others, the defaults are said, too: read without them, they would be those of the preset.
        let preset = Preset::named(self.kind);
        let is_preset = |prefix: &str| preset.is_some_and(|preset| preset.has(prefix));
        if self.scope != ScopeParameters::default() || is_preset("scope") {
            entries.extend(self.scope.entries());
        }
        if self.credit != CreditParameters::default() || is_preset("credit.") {
            entries.extend(self.credit.entries());
        }
        entries.extend(self.reliability.entries());
        entries.extend(self.controller.entries());
        entries.extend(self.selector.entries());
        entries.extend(self.feedback.entries());
        entries
    }

    /// Every parameter; the parts have their preset's defaults.
    pub(crate) fn describe(&self) -> Vec<ParameterInfo> {
        let mut parameters = PartNames::describe();
        parameters.extend(PacketParameters::describe());
        if let Some(preset) = Preset::named(self.kind) {
            for parameter in &mut parameters {
                let key = parameter.key;
                if PARTS.contains(&key) {
                    parameter.default = Value::Text(preset.part(key).into());
                } else if let ("payload", Some(bytes)) = (key, preset.payload) {
                    parameter.default = Bytes::new(bytes).to_value();
                } else {
                    continue;
                }
                if preset.name != PRESETS[0].name {
                    parameter.source = "the preset";
                }
            }
        }
        parameters.extend(ScopeParameters::describe());
        parameters.extend(CreditParameters::describe());
        parameters.extend(self.reliability.describe());
        parameters.extend(self.controller.describe());
        parameters.extend(self.selector.describe());
        parameters.extend(self.feedback.describe());
        for (key, value) in Preset::named(self.kind).map_or_else(Vec::new, |preset| (preset.keys)())
        {
            let own = parameters
                .iter_mut()
                .filter(|parameter| parameter.key == key);
            own.for_each(|parameter| {
                parameter.default = value.clone();
                parameter.source = "the preset";
            });
        }
        parameters
    }

    /// The profile for a network.
    pub fn profile(&self, network: NetworkFacts) -> Profile {
        Profile {
            network,
            reliability: self.reliability.clone(),
            controller: self.controller.clone(),
            variants: Vec::new(),
            selector: self.selector.clone(),
            feedback: self.feedback.clone(),
            scope: self.scope.clone(),
            credit: self.credit.clone(),
            strict_priority: false,
        }
    }
}

impl TransportSettings {
    /// True if losses are taken for rare, and pause frames are relied upon: go-back-N under a controller that was designed for networks
    /// without loss.
    pub fn expects_no_loss(&self) -> bool {
        let is_go_back_n = matches!(self.reliability, Reliability::GoBackN(_));
        is_go_back_n && [Dcqcn::NAME, Hpcc::NAME, Timely::NAME].contains(&self.controller.name())
    }

    /// Name and summary of each transport.
    pub fn presets() -> Vec<(&'static str, &'static str)> {
        PRESETS
            .iter()
            .map(|preset| (preset.name, preset.summary))
            .collect()
    }
}

impl Section for TransportSettings {
    fn set(&mut self, key: &str, value: &Value) -> Result<(), SetError> {
        Self::set(self, key, value)
    }
    fn keys(&self) -> Vec<ParameterInfo> {
        self.describe()
    }
}
