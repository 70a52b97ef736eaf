//! A separate transport for the flows of one section: keys of `workload.transport` beyond the keys of the controller.
//!
//! With a `kind` it starts from that preset and takes nothing from `[transport]`. Without a `kind` it is `[transport]` with some keys
//! changed. If it replaces a part of `[transport]`, the keys of the old part do not apply.

use crate::error::ScenarioError;
use crate::section::fill;
use crate::source::Entry;
use crate::transport::TransportSettings;
use clearway_transport::Registry;
use clearway_units::Value;

/// The transport of all sections without a separate transport: `[transport]`.
pub(crate) struct UsualTransport<'a> {
    pub(crate) registry: &'a Registry,
    pub(crate) settings: &'a TransportSettings,
    /// Entries of `[transport]`.
    pub(crate) entries: &'a [&'a Entry],
}

impl UsualTransport<'_> {
    /// True if one of the keys does not belong to the controller, so that the section has a separate transport.
    fn is_exchanged_by(&self, own: &[Entry]) -> bool {
        let of_controller = self.settings.controller.describe();
        let known = self.settings.describe();
        own.iter().any(|entry| {
            let is = |parameter: &clearway_units::ParameterInfo| parameter.key == entry.key;
            known.iter().any(is) && !of_controller.iter().any(is)
        })
    }

    /// The transport of a section with these entries below `transport`, and the entries with lists of values for the controllers of jobs.
    /// `None` if all entries belong to the usual controller.
    pub(crate) fn changed_by(
        &self,
        own: &[Entry],
    ) -> Result<Option<(TransportSettings, Vec<Entry>)>, ScenarioError> {
        if !self.is_exchanged_by(own) {
            return Ok(None);
        }
        let names_kind = own.iter().any(|entry| entry.key == "kind");
        let is_replaced = |entry: &&&Entry| own.iter().any(|new| new.key == entry.key);
        let inherited = self.entries.iter().filter(|_| !names_kind);
        let inherited = inherited.filter(|entry| !is_replaced(entry)).copied();
        let all: Vec<&Entry> = inherited.chain(own).collect();
        let (mut settings, rest) = TransportSettings::choose(self.registry, &all)?;
        let (own, inherited): (Vec<&Entry>, Vec<&Entry>) = rest
            .into_iter()
            .partition(|entry| own.iter().any(|new| std::ptr::eq(new, *entry)));
        for entry in inherited {
            // An unknown key belongs to a part of `[transport]` that the section replaces.
            let _ = settings.set(&entry.key, &entry.value);
        }
        let controller = settings.controller.describe();
        let (lists, single): (Vec<&Entry>, Vec<&Entry>) = own.into_iter().partition(|entry| {
            matches!(entry.value, Value::List(_))
                && controller.iter().any(|known| known.key == entry.key)
        });
        fill(&settings.parts(), &mut settings, &single)?;
        Ok(Some((settings, lists.into_iter().cloned().collect())))
    }
}
