//! The `[transport]` section: a reliability scheme, a controller, a path selector and the feedback of receivers, with the keys
//! of all four.

pub(crate) mod checks;
pub(crate) mod own;
pub(crate) mod presets;
pub(crate) mod sections;

use crate::error::ScenarioError;
use crate::section::{Section, unknown_name};
use crate::source::Entry;
use crate::transport::presets::{Keys, PRESETS, Preset, PresetKey};
use clearway_transport::congestion::credit::CreditParameters;
use clearway_transport::congestion::feedback::FeedbackSettings;
use clearway_transport::congestion::{
    ControllerDefinition as _, ControllerSettings, Dcqcn, Hpcc, NetworkFacts, Timely,
};
use clearway_transport::paths::SelectorSettings;
use clearway_transport::{Profile, Registry, Reliability, ScopeParameters};
use clearway_units::{Bytes, Parameter, ParameterInfo, ParameterSet, SetError, Value};

clearway_units::parameters! {
    /// Parts of a transport, chosen before everything else because they decide which other keys exist.
    pub struct PartNames {
        /// Transport, a preset of the other parts: `clearway list transports`.
        pub kind: String = "strack".into(), "kind", "STrack";
        /// Acknowledgements and retransmission: selective-repeat or go-back-n.
        pub reliability: String = "selective-repeat".into(), "reliability", "the preset; STrack §3.3";
        /// Congestion controller: `clearway list controllers`.
        pub controller: String = "strack".into(), "controller", "the preset; STrack §3.2";
        /// Path selector: `clearway list spray`.
        pub spray: String = "adaptive".into(), "spray", "the preset; STrack §3.1";
        /// Reaction of receivers to congestion: `clearway list feedback`.
        pub feedback: String = "none".into(), "feedback", "the preset";
    }
}

clearway_units::parameters! {
    /// Packet sizes, for every transport.
    pub struct PacketParameters {
        /// Payload of a full packet.
        pub payload: Bytes = Bytes::new(4096), "payload", "STrack §4.2: MTU of 4 KB";
        /// Bytes of the headers of each packet: Ethernet, IP, UDP and the transport.
        pub header: Bytes = Bytes::new(64), "header", "decision: 64 B, as in the UEC reference simulator";
        /// Size of an acknowledgement, probe or congestion notification on the wire; `"auto"` is the header.
        pub ack: Option<Bytes> = None, "ack-size", "decision: a header and nothing else; 60 B in the HPCC artifact";
        /// Size of the telemetry (INT) on each data packet and its acknowledgement, on top of headers, if the controller uses any. Ideal
        /// completion times exclude it.
        pub telemetry: Bytes = Bytes::new(42), "telemetry-size", "HPCC §4.1 and its artifact: room for 5 hops of 8 B, and 2 B, whatever the path";
    }
}

impl PacketParameters {
    /// Bytes of an acknowledgement on the wire.
    pub(crate) fn ack_bytes(&self) -> u64 {
        self.ack.unwrap_or(self.header).as_u64()
    }
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

    /// Sets the keys in which the preset differs from its parts. Parts that the user has chosen instead may not have the key, or may have
    /// another key of the same name.
    fn apply(&self, settings: &mut TransportSettings) {
        for PresetKey { key, value, .. } in (self.keys)() {
            let result = settings.set(key, &value);
            let fits = result.is_ok() || result == Err(SetError::UnknownKey);
            debug_assert!(
                fits || !self.is_whole(settings),
                "`{key}` of the preset {}: {result:?}",
                self.name
            );
        }
    }

    /// True if the preset sets a key that begins with `prefix`.
    fn has(&self, prefix: &str) -> bool {
        (self.keys)().iter().any(|own| own.key.starts_with(prefix))
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
    /// The preset of the transport.
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
    /// Scope of one controller.
    pub scope: ScopeParameters,
    /// Receiver credits.
    pub credit: CreditParameters,
}

/// The part called `key`: the user's choice, or else the preset's.
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
    /// Determines the parts of the section; returns the section with the entries that remain to be set.
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

    /// A transport with the settings of its preset; `None` if no preset has this name.
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
    /// If the transport does not exist.
    pub(crate) fn switch_keys(entries: &[&Entry]) -> Result<Keys, ScenarioError> {
        let kinds = PRESETS.map(|preset| preset.name);
        let preset = part(entries, "kind", &PRESETS[0], &kinds, Preset::named)?;
        Ok((preset.switch)())
    }

    /// Keys of switches, with values, that the transport's preset was designed with.
    pub(crate) fn designed_for(&self) -> Keys {
        Self::designed(self.kind).unwrap_or_default()
    }

    /// Keys of switches that the preset `kind` was designed with; `None` if the preset does not exist.
    pub(crate) fn designed(kind: &str) -> Option<Keys> {
        Preset::named(kind).map(|preset| (preset.switch)())
    }

    /// Marking keys that `controller` was tuned with, if it replaces the controller of the preset `kind`. `None` if it is the preset's own
    /// controller, or has no marking keys.
    pub(crate) fn marks_for(kind: &str, controller: &str) -> Option<Keys> {
        let own = Preset::named(kind)?;
        let whose = PRESETS
            .iter()
            .find(|preset| preset.controller == controller)?;
        let marks = (whose.switch)().into_iter();
        let marks: Keys = marks.filter(|own| own.key.starts_with("ecn.")).collect();
        (own.controller != controller && !marks.is_empty()).then_some(marks)
    }

    /// True if `value` is the preset's value for `key` of the reliability, or, without such a value, the reliability's default.
    pub(crate) fn is_default(&self, key: &str, value: &impl Parameter) -> bool {
        let preset = Preset::named(self.kind);
        let keys = preset.map_or_else(Vec::new, |preset| (preset.keys)());
        let preset = keys.into_iter().find(|own| own.key == key);
        let own = || {
            self.reliability
                .describe()
                .into_iter()
                .find(|own| own.key == key)
        };
        let default = preset
            .map(|own| own.value)
            .or_else(|| own().map(|own| own.default));
        default == Some(value.to_value())
    }

    /// Short description, for errors about the keys.
    pub(crate) fn parts(&self) -> String {
        format!(
            "a transport of reliability \"{}\", controller \"{}\", spray \"{}\" and feedback \"{}\"",
            self.reliability.name(),
            self.controller.name(),
            self.selector.name(),
            self.feedback.name()
        )
    }

    /// True for the keys that stay when the kind changes.
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
        // If the preset has other values, defaults are also written: otherwise the reader would apply the preset's values.
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

    /// Every parameter; the parts have the preset's defaults.
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
        for own in Preset::named(self.kind).map_or_else(Vec::new, |preset| (preset.keys)()) {
            own.describe_in(&mut parameters);
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
    /// True if the transport assumes that losses are rare and relies on pause frames: go-back-N with a controller designed for lossless
    /// networks.
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
