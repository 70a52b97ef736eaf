//! The `[transport]` section: a reliability scheme, a controller and a path selector, with the keys of all three.

use super::{Entry, unknown_name};
use crate::error::ScenarioError;
use clearway_transport::cc::{ControllerSettings, NetworkFacts};
use clearway_transport::feedback::FeedbackSettings;
use clearway_transport::spray::SelectorSettings;
use clearway_transport::{Profile, Registry, Reliability};
use clearway_units::{Bytes, ParameterInfo, ParameterSet, SetError, Value};

clearway_units::parameters! {
    /// The parts of a transport. Chosen before everything else, because they decide which other keys exist.
    pub struct PartNames {
        /// The transport: a preset of the other parts.
        pub kind: String = "strack".into(), "kind", "STrack";
        /// The congestion controller; `clearway list controllers`.
        pub controller: String = "strack".into(), "controller", "STrack §3.2";
        /// The path selector; `clearway list spray`.
        pub spray: String = "adaptive".into(), "spray", "STrack §3.1";
    }
}

clearway_units::parameters! {
    /// Packet sizes, for every transport.
    pub struct PacketParameters {
        /// Payload of a full packet.
        pub payload: Bytes = Bytes::new(4096), "payload", "STrack §4.2: MTU of 4 KB";
        /// Headers of each packet: Ethernet, IP, UDP and the transport.
        pub header: Bytes = Bytes::new(64), "header", "decision: 64 B, as in the UEC reference simulator";
    }
}

/// The transports by name: presets of a controller and a selector.
pub(crate) const TRANSPORTS: [(&str, &str); 1] = [(
    "strack",
    "STrack: selective repeat, delay-based window, adaptive spraying (arXiv 2407.15266)",
)];

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
}

impl TransportSettings {
    /// Finds out which parts the section is made of; returns it with the entries that are still to be set.
    pub(crate) fn choose<'a>(
        registry: &Registry,
        entries: &[&'a Entry],
    ) -> Result<(Self, Vec<&'a Entry>), ScenarioError> {
        let chosen = |key: &str| entries.iter().copied().find(|entry| entry.key == key);
        let name = |entry: &Entry| match &entry.value {
            Value::Text(name) => name.clone(),
            _ => String::new(),
        };
        let kind = match chosen("kind") {
            None => TRANSPORTS[0].0,
            Some(entry) => {
                let names = TRANSPORTS.map(|(name, _)| name);
                let found = names.into_iter().find(|known| *known == name(entry));
                found
                    .ok_or_else(|| unknown_name(entry, "transport", "kind", &name(entry), &names))?
            }
        };
        let controller = match chosen("controller") {
            None => registry.controller("strack"),
            Some(entry) => {
                let names: Vec<&str> = registry.controllers().map(|(name, _)| name).collect();
                let found = registry.controller(&name(entry));
                Some(found.ok_or_else(|| {
                    unknown_name(entry, "transport", "controller", &name(entry), &names)
                })?)
            }
        };
        let selector = match chosen("spray") {
            None => registry.selector("adaptive"),
            Some(entry) => {
                let names: Vec<&str> = registry.selectors().map(|(name, _)| name).collect();
                let found = registry.selector(&name(entry));
                Some(found.ok_or_else(|| {
                    unknown_name(entry, "transport", "spray", &name(entry), &names)
                })?)
            }
        };
        let settings = Self {
            kind,
            packets: PacketParameters::default(),
            reliability: Reliability::default(),
            controller: controller.expect("the registry has STrack's controller"),
            selector: selector.expect("the registry has STrack's selector"),
        };
        let parts = ["kind", "controller", "spray"];
        let rest = entries
            .iter()
            .copied()
            .filter(|entry| !parts.contains(&entry.key.as_str()));
        Ok((settings, rest.collect()))
    }

    pub(crate) fn set(&mut self, key: &str, value: &Value) -> Result<(), SetError> {
        let parts: [&mut dyn FnMut() -> Result<(), SetError>; 4] = [
            &mut || self.packets.set(key, value),
            &mut || self.reliability.set(key, value),
            &mut || self.controller.set(key, value),
            &mut || self.selector.set(key, value),
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
            ("controller", text(self.controller.name())),
            ("spray", text(self.selector.name())),
        ];
        entries.extend(self.packets.entries());
        entries.extend(self.reliability.entries());
        entries.extend(self.controller.entries());
        entries.extend(self.selector.entries());
        entries
    }

    pub(crate) fn describe(&self) -> Vec<ParameterInfo> {
        let mut parameters = Self::common();
        parameters.extend(self.reliability.describe());
        parameters.extend(self.controller.describe());
        parameters.extend(self.selector.describe());
        parameters
    }

    /// The profile for a network.
    pub(crate) fn profile(&self, network: NetworkFacts) -> Profile {
        Profile {
            network,
            reliability: self.reliability.clone(),
            controller: self.controller.clone(),
            selector: self.selector.clone(),
            feedback: FeedbackSettings::default(),
        }
    }
}

impl TransportSettings {
    /// Name and summary of each transport.
    pub fn presets() -> Vec<(&'static str, &'static str)> {
        TRANSPORTS.to_vec()
    }
    /// The parameters that every transport has.
    pub fn common() -> Vec<ParameterInfo> {
        let mut parameters = PartNames::describe();
        parameters.extend(PacketParameters::describe());
        parameters
    }
}
