//! The `[switch]` section: settings of all switches of the fabric.

use crate::section::Section;
use crate::transport::presets::{Keys, PresetKey};
use clearway_fabric::{SharedBufferParameters, SwitchParameters};
use clearway_units::{ParameterInfo, ParameterSet, SetError, Value, ValueDomain};

clearway_units::choices! {
    /// Kind of switch that the fabric is made of.
    pub enum SwitchKind {
        /// Separate drop-tail queues.
        Lossy = "lossy",
        /// One buffer for all ports, with priority flow control.
        SharedBuffer = "shared-buffer",
    }
}

impl SwitchKind {
    /// Name and summary of each kind.
    pub const KINDS: [(&'static str, &'static str); 2] = [
        ("lossy", "separate drop-tail queues"),
        (
            "shared-buffer",
            "one buffer for all ports, with dynamic thresholds and priority flow control (PFC)",
        ),
    ];

    /// The kind with this name.
    pub fn named(name: &str) -> Option<Self> {
        [Self::Lossy, Self::SharedBuffer]
            .into_iter()
            .find(|kind| kind.name() == name)
    }
}

/// The section, resolved.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct SwitchSettings {
    /// Queues and marks of the ports.
    pub ports: SwitchParameters,
    /// The shared buffer, if there is one.
    pub buffer: Option<SharedBufferParameters>,
    /// Keys whose defaults come from the scenario's transport.
    designed: Keys,
}

impl SwitchSettings {
    /// The defaults of a kind of switch.
    pub(crate) fn of_kind(kind: SwitchKind) -> Self {
        Self {
            ports: SwitchParameters::default(),
            buffer: (kind == SwitchKind::SharedBuffer).then(SharedBufferParameters::default),
            designed: Keys::new(),
        }
    }

    /// Sets the defaults that a transport was designed with, except keys that this kind of switch does not have.
    pub(crate) fn design_for(&mut self, keys: &Keys) {
        for own in keys {
            let PresetKey { key, value, .. } = own;
            let is_apart = *key == "kind" || self.buffer.is_some() && *key == "trimming";
            if !is_apart {
                let result = self.set(key, value);
                // Lossy switches do not have the keys of shared buffers.
                let is_absent = result == Err(SetError::UnknownKey) && self.buffer.is_none();
                debug_assert!(result.is_ok() || is_absent, "`{key}`: {result:?}");
                if result.is_ok() {
                    self.designed.push(own.clone());
                }
            }
        }
    }

    /// Description of `kind`, which determines the other keys.
    pub(crate) fn kind_key() -> ParameterInfo {
        let names = Self::KIND_NAMES;
        ParameterInfo {
            key: "kind",
            default: Value::Text(names[0].into()),
            expected: format!("one of \"{}\"", names.join("\", \"")),
            domain: ValueDomain::Words(names.to_vec()),
            meaning: "Kind of the switches; `clearway list switches`.".into(),
            source: "the transport",
        }
    }

    const KIND_NAMES: [&'static str; 2] = [SwitchKind::KINDS[0].0, SwitchKind::KINDS[1].0];

    /// Kind that a transport was designed with.
    pub(crate) fn designed_kind(keys: &Keys) -> SwitchKind {
        let is_lossless = keys.iter().any(|own| {
            own.key == "kind" && own.value == Value::Text(SwitchKind::SharedBuffer.name().into())
        });
        if is_lossless {
            SwitchKind::SharedBuffer
        } else {
            SwitchKind::Lossy
        }
    }

    /// Kind of the switch.
    pub fn kind(&self) -> SwitchKind {
        match self.buffer {
            None => SwitchKind::Lossy,
            Some(_) => SwitchKind::SharedBuffer,
        }
    }

    pub(crate) fn set(&mut self, key: &str, value: &Value) -> Result<(), SetError> {
        match (self.ports.set(key, value), &mut self.buffer) {
            (Err(SetError::UnknownKey), Some(buffer)) => buffer.set(key, value),
            (result, _) => result,
        }
    }

    pub(crate) fn entries(&self) -> Vec<(&'static str, Value)> {
        let buffer = self.buffer.iter().flat_map(ParameterSet::entries);
        // Rarely used keys are omitted if they have their defaults.
        let trims = self.ports.trimming;
        let usual = |(key, value): &(&str, Value)| match *key {
            // Without the key, the reader would apply the transport's default.
            "ecn.last-hop" if self.designed.iter().any(|own| own.key == *key) => false,
            "pfc.agent-drops" | "ecn.last-hop" => *value == Value::Boolean(true),
            "ecn.classes" => *value == Value::List(Vec::new()),
            // `trimming` itself is always written: its default depends on the transport.
            key => !trims && ["trim-size", "trim-victim"].contains(&key),
        };
        let entries = self.ports.entries().into_iter().chain(buffer);
        entries.filter(|entry| !usual(entry)).collect()
    }

    /// Every parameter of this kind of switch; the defaults come from the transport.
    pub fn describe(&self) -> Vec<ParameterInfo> {
        let mut parameters = SwitchParameters::describe();
        if self.buffer.is_some() {
            parameters.extend(SharedBufferParameters::describe());
        }
        let designed = self.designed.iter();
        designed.for_each(|own| own.describe_in(&mut parameters));
        parameters
    }
}

impl Section for SwitchSettings {
    fn set(&mut self, key: &str, value: &Value) -> Result<(), SetError> {
        Self::set(self, key, value)
    }
    fn keys(&self) -> Vec<ParameterInfo> {
        self.describe()
    }
}
