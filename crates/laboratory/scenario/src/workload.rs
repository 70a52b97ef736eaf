//! A `[[workload]]` section: the generator of the traffic, and separate settings of its flows.

use crate::attack::{AttackKeys, attack_of_jobs};
use crate::error::ScenarioError;
use crate::generate::PerJob;
use crate::section::{Section, fill};
use crate::section_name::SectionKeys;
use crate::source::Entry;
use crate::tenant::TenantKeys;
use crate::transport::own::UsualTransport;
use crate::{BuildContext, LoadedWorkload, TransportSettings, WorkloadSettings};
use clearway_transport::congestion::ControllerSettings;
use clearway_transport::{Class, ClassSet};
use clearway_units::{Parameter, ParameterInfo, ParameterSet, SetError, Value, ValueDomain};
use clearway_workload::{Arrivals, WorkloadError};

/// Prefix of the keys of the section's transport.
const OWN: &str = "transport.";

/// A class of data packets, 1 to 7.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Priority(pub u8);

impl Parameter for Priority {
    fn expected() -> String {
        "a priority from 1 to 7".into()
    }
    fn domain() -> ValueDomain {
        ValueDomain::Whole { least: 1, most: 7 }
    }
    fn from_value(value: &Value) -> Option<Self> {
        let number = u8::from_value(value)?;
        (1..=7).contains(&number).then_some(Self(number))
    }
    fn to_value(&self) -> Value {
        Value::Integer(self.0.into())
    }
}

impl Priority {
    /// The classes of these priorities.
    pub fn classes(priorities: &[Self]) -> ClassSet {
        let mut classes = ClassSet::EMPTY;
        let numbers = priorities.iter().filter_map(|one| Class::new(one.0));
        numbers.for_each(|class| classes.insert(class));
        classes
    }
}

clearway_units::parameters! {
    /// Keys of flows that every workload section may have.
    pub struct FlowKeys {
        /// Priority of data packets, 1 to 7, or a list of one for each job; "auto": the priority in the workload's file, or else 1.
        pub priority: Option<PerJob<Priority>> = None, "priority", "decision: all data is in class 1";
    }
}

/// Separate controller settings for the flows of one section.
#[derive(Debug, Clone, PartialEq)]
struct OwnController {
    /// Controller settings of all other flows of the transport.
    usual: ControllerSettings,
    /// Changed keys in the order of the controller's keys. A list has one value for each job.
    changes: Vec<(&'static str, Value)>,
}

impl OwnController {
    fn place_of(&self, key: &str) -> usize {
        let keys = self.usual.entries();
        let place = keys.iter().position(|(known, _)| *known == key);
        place.unwrap_or(keys.len())
    }

    /// The value as the controller writes it.
    fn accepted(&self, key: &str, value: &Value) -> Result<(&'static str, Value), SetError> {
        let mut settings = self.usual.clone();
        settings.set(key, value)?;
        let mut entries = settings.entries().into_iter();
        entries
            .find(|(known, _)| *known == key)
            .ok_or(SetError::UnknownKey)
    }

    /// Number of values in each list; an error if the lists differ in length.
    fn count(&self) -> Result<Option<usize>, ScenarioError> {
        let lengths = self.changes.iter().filter_map(|(key, value)| match value {
            Value::List(values) => Some((*key, values.len())),
            _ => None,
        });
        let mut lengths = lengths.peekable();
        let Some(&(first, count)) = lengths.peek() else {
            return Ok(None);
        };
        match lengths.find(|&(_, other)| other != count) {
            None => Ok(Some(count)),
            Some((key, other)) => Err(ScenarioError::about(
                &["transport"],
                format!("{count} values of `transport.{first}`, but {other} of `transport.{key}`"),
                "write one value for each job",
            )),
        }
    }

    /// The settings, one for each value of the lists; empty if nothing differs.
    fn variants(&self) -> Vec<ControllerSettings> {
        if self.changes.is_empty() {
            return Vec::new();
        }
        let count = self.count().ok().flatten().unwrap_or(1);
        let variant = |index: usize| {
            let mut settings = self.usual.clone();
            for (key, value) in &self.changes {
                let value = match value {
                    Value::List(values) => &values[index],
                    value => value,
                };
                settings.set(key, value).expect("accepted before");
            }
            settings
        };
        (0..count).map(variant).collect()
    }
}

impl Section for OwnController {
    fn set(&mut self, key: &str, value: &Value) -> Result<(), SetError> {
        let (key, value) = match value {
            Value::List(values) => {
                let values = values.iter().map(|value| self.accepted(key, value));
                let values: Vec<_> = values.collect::<Result<_, _>>()?;
                let (key, _) = *values.first().ok_or_else(|| SetError::BadValue {
                    expected: "a value, or a list of one for each job".into(),
                })?;
                let values = values.into_iter().map(|(_, value)| value);
                (key, Value::List(values.collect()))
            }
            value => self.accepted(key, value)?,
        };
        self.changes.retain(|(known, _)| *known != key);
        self.changes.push((key, value));
        let mut changes = std::mem::take(&mut self.changes);
        changes.sort_by_key(|(key, _)| self.place_of(key));
        self.changes = changes;
        Ok(())
    }
    fn keys(&self) -> Vec<ParameterInfo> {
        self.usual.describe()
    }
}

/// The section, resolved.
#[derive(Debug, Clone, PartialEq)]
pub struct WorkloadSection {
    /// Generator of the traffic, with its settings.
    pub traffic: WorkloadSettings,
    /// Name of the section.
    pub keys: SectionKeys,
    /// Tenant of the section.
    pub tenant: TenantKeys,
    /// Keys of the flows.
    pub flows: FlowKeys,
    /// Attack by some of the flows.
    pub attack: AttackKeys,
    /// The separate transport; `None` if the section uses `[transport]`.
    transport: Option<Box<TransportSettings>>,
    own: OwnController,
}

impl WorkloadSection {
    /// A section with this traffic, whose flows have the `usual` controller.
    pub(super) fn with_usual_controller(
        traffic: WorkloadSettings,
        usual: &ControllerSettings,
    ) -> Self {
        Self {
            traffic,
            keys: SectionKeys::default(),
            tenant: TenantKeys::default(),
            flows: FlowKeys::default(),
            attack: AttackKeys::default(),
            transport: None,
            own: OwnController {
                usual: usual.clone(),
                changes: Vec::new(),
            },
        }
    }

    /// The section of `entries` without its kind.
    pub(super) fn read(
        traffic: WorkloadSettings,
        usual: &UsualTransport<'_>,
        entries: &[&Entry],
    ) -> Result<Self, ScenarioError> {
        let mut section = Self::with_usual_controller(traffic, &usual.settings.controller);
        let is_own = |entry: &&&Entry| entry.key.starts_with(OWN);
        let (own, rest): (Vec<&Entry>, Vec<&Entry>) =
            entries.iter().partition(|entry| is_own(entry));
        let name = format!("a workload of kind \"{}\"", section.traffic.kind());
        fill(&name, &mut section, &rest)?;
        let mut own: Vec<Entry> = own.into_iter().map(without_prefix).collect();
        if let Some((transport, lists)) = usual.changed_by(&own)? {
            own = lists;
            section.own.usual = transport.controller.clone();
            section.transport = Some(Box::new(transport));
        }
        let name = format!("the controller \"{}\"", section.own.usual.name());
        fill(&name, &mut section.own, &own.iter().collect::<Vec<_>>())?;
        section.own.count()?;
        Ok(section)
    }

    /// The kind of the traffic.
    pub fn kind(&self) -> &'static str {
        self.traffic.kind()
    }

    /// True if the section's flows have numbers after the flows of all other sections.
    pub fn is_posted(&self) -> bool {
        matches!(&self.traffic, WorkloadSettings::List(list) if list.order.posted)
    }

    /// The classes that switches reserve buffers and queues for, beside those of the flows.
    pub(crate) fn reserved_classes(&self) -> ClassSet {
        match &self.traffic {
            WorkloadSettings::List(list) => Priority::classes(&list.order.priorities),
            _ => ClassSet::EMPTY,
        }
    }

    /// The separate transport of the section.
    pub fn transport(&self) -> Option<&TransportSettings> {
        self.transport.as_deref()
    }

    /// Every key with its value, except the keys of the transport. Name and tenant are included if set, and the keys of an attack if one is
    /// not the default.
    pub fn entries(&self) -> Vec<(&'static str, Value)> {
        // Most sections do not attack and then omit these keys.
        let attacks = self.attack != AttackKeys::default();
        let attack = attacks.then(|| self.attack.entries());
        let own = self.flows.entries().into_iter();
        let own = own.chain(attack.into_iter().flatten());
        let named = self.keys.written().into_iter();
        let named = named.chain(self.tenant.written());
        named.chain(self.traffic.entries()).chain(own).collect()
    }

    /// Every parameter except the transport's.
    pub fn describe(&self) -> Vec<ParameterInfo> {
        let own = FlowKeys::describe().into_iter();
        let own = own.chain(AttackKeys::describe());
        let named = SectionKeys::describe().into_iter();
        let named = named.chain(TenantKeys::describe());
        named.chain(self.traffic.describe()).chain(own).collect()
    }

    /// The keys below `transport`, with their values: all keys of a separate transport, else the controller's keys that differ. Lists have
    /// one value for each job.
    pub fn transport_entries(&self) -> Vec<(&'static str, Value)> {
        let Some(transport) = &self.transport else {
            return self.own.changes.clone();
        };
        let mut entries = transport.entries();
        for (key, value) in &mut entries {
            let mut changes = self.own.changes.iter();
            if let Some((_, list)) = changes.find(|(changed, _)| changed == key) {
                *value = list.clone();
            }
        }
        entries
    }

    /// Keys allowed below `transport`, with their meanings: the keys of a separate transport, else the keys of the controller.
    pub(super) fn describe_transport(&self) -> Vec<ParameterInfo> {
        match &self.transport {
            Some(transport) => transport.describe(),
            None => self.own.usual.describe(),
        }
    }

    /// The separate controller settings: none, one for all flows, or one for each job.
    pub fn variants(&self) -> Vec<ControllerSettings> {
        self.own.variants()
    }

    /// The controller settings of the flows, if the section has no jobs.
    pub fn controller(&self) -> ControllerSettings {
        let own = self.own.variants().into_iter().next();
        own.unwrap_or_else(|| self.own.usual.clone())
    }

    /// Traffic of the section, generated flow by flow. `None` if the workload does not support this, or if the section sets keys of its
    /// flows or of their controller, or attacks.
    pub fn arrivals(&self, context: &BuildContext<'_>) -> Result<Option<Arrivals>, WorkloadError> {
        let is_plain = self.own.changes.is_empty() && self.flows == FlowKeys::default();
        match is_plain && !self.attack.is_on() {
            true => self.traffic.arrivals(context),
            false => Ok(None),
        }
    }

    /// Class of the section's data; the class of the first job if jobs differ.
    pub(crate) fn class(&self) -> Class {
        let priorities = self.flows.priority.as_ref();
        let priority = priorities.and_then(|all| Class::new(all.get(0).0));
        priority.unwrap_or(Class::DATA)
    }

    /// Traffic of the section. `first` is the number of its first variant.
    pub fn load(
        &self,
        context: &BuildContext<'_>,
        first: u16,
    ) -> Result<LoadedWorkload, ScenarioError> {
        let mut loaded = self.traffic.load(context).map_err(ScenarioError::from)?;
        if self.attack.is_on() && !loaded.jobs.is_empty() {
            return Err(attack_of_jobs());
        }
        let priorities = self.flows.priority.as_ref();
        let listed = self.own.count()?;
        check_lists("transport", listed, loaded.jobs.len())?;
        check_lists(
            "priority",
            priorities.and_then(PerJob::count),
            loaded.jobs.len(),
        )?;
        let variant = |job: usize| match (self.own.changes.is_empty(), listed) {
            (true, _) => 0,
            (false, None) => first,
            (false, Some(_)) => first + job as u16,
        };
        for (number, job) in loaded.jobs.iter_mut().enumerate() {
            job.variant = variant(number);
            job.priority = priorities.map(|priorities| priorities.get(number).0);
        }
        for flow in &mut loaded.workload.flows {
            flow.section = context.section;
            flow.variant = variant(0);
            flow.priority = priorities.map_or(flow.priority, |all| Some(all.get(0).0));
        }
        Ok(loaded)
    }
}

impl Section for WorkloadSection {
    fn set(&mut self, key: &str, value: &Value) -> Result<(), SetError> {
        let mut result = self.keys.set(key, value);
        if result == Err(SetError::UnknownKey) {
            result = self.tenant.set(key, value);
        }
        if result == Err(SetError::UnknownKey) {
            result = self.flows.set(key, value);
        }
        if result == Err(SetError::UnknownKey) {
            result = self.attack.set(key, value);
        }
        match result {
            Err(SetError::UnknownKey) => self.traffic.set(key, value),
            result => result,
        }
    }
    fn keys(&self) -> Vec<ParameterInfo> {
        self.describe()
    }
}

/// True if the section's key stays when its kind changes.
pub(super) fn is_common(key: &str) -> bool {
    let common = SectionKeys::describe().into_iter();
    let mut common = common
        .chain(TenantKeys::describe())
        .chain(FlowKeys::describe())
        .chain(AttackKeys::describe());
    is_of_transport(key) || common.any(|own| own.key == key)
}

/// True if the section's key belongs to its transport.
pub(super) fn is_of_transport(key: &str) -> bool {
    key.starts_with(OWN)
}

/// True if all transports have the section's key, so that it survives a change of the kind.
pub(super) fn is_of_any_transport(key: &str) -> bool {
    let key = key.strip_prefix(OWN);
    key.is_some_and(TransportSettings::is_common)
}

fn without_prefix(entry: &Entry) -> Entry {
    Entry {
        section: "workload.transport".into(),
        key: entry.key[OWN.len()..].into(),
        ..entry.clone()
    }
}

/// Checks that a list has a value for each job, and that only jobs have lists.
fn check_lists(key: &'static str, count: Option<usize>, jobs: usize) -> Result<(), ScenarioError> {
    match count {
        Some(count) if count != jobs => Err(ScenarioError::about(
            &[key],
            match jobs {
                0 => format!("a list under `{key}`, but the section has no jobs"),
                jobs => format!("{count} values under `{key}` for {jobs} jobs"),
            },
            match jobs {
                0 => "write one value for all flows",
                _ => "write one value for all jobs, or one for each",
            },
        )),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests;
