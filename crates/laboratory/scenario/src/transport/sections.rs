//! The transports of a run: `[transport]`, and the separate transports of workload sections.

use crate::error::ScenarioError;
use crate::limits::{check_agents, check_scope, check_transport};
use crate::locations::SourceLocations;
use crate::transport::checks::{check_credit, check_trimming};
use crate::{SwitchSettings, TransportSettings, WorkloadSection};
use clearway_transport::congestion::ControllerSettings;
use std::collections::BTreeSet;

/// Maximum number of transports of a run: each host has an endpoint of each transport.
const MOST: usize = 16;

/// Transports of a scenario, without duplicates: sections with the same settings share a transport.
#[derive(Debug, Clone)]
pub struct Transports<'a> {
    /// Settings of the transports; the first are the settings of `[transport]`, even if no section uses them.
    pub settings: Vec<&'a TransportSettings>,
    /// Index of each workload section's transport in `settings`.
    pub of_section: Vec<u8>,
}

impl<'a> Transports<'a> {
    /// Transports from `usual` and the separate transports of `sections`.
    pub(crate) fn from_sections(
        usual: &'a TransportSettings,
        sections: &'a [WorkloadSection],
    ) -> Self {
        let mut settings = vec![usual];
        let place = |section: &'a WorkloadSection| {
            let own = section.transport().unwrap_or(usual);
            let known = settings.iter().position(|known| *known == own);
            known.unwrap_or_else(|| {
                settings.push(own);
                settings.len() - 1
            }) as u8
        };
        let of_section = sections.iter().map(place).collect();
        Self {
            settings,
            of_section,
        }
    }

    /// True if the flows have several transports.
    pub fn are_several(&self) -> bool {
        let used: BTreeSet<u8> = self.of_section.iter().copied().collect();
        used.len() > 1
    }

    /// The first section with this transport; `None` if no section has it.
    pub fn first_section(&self, transport: u8) -> Option<usize> {
        self.of_section.iter().position(|of| *of == transport)
    }

    /// Names in results: the preset's name, with the name of the first section if several transports have the same preset.
    pub fn names(&self, sections: &[String]) -> Vec<String> {
        let kinds = || self.settings.iter().map(|settings| settings.kind);
        let name = |(place, settings): (usize, &&TransportSettings)| {
            let section = self.first_section(place as u8);
            match section.and_then(|section| sections.get(section)) {
                Some(section) if kinds().filter(|kind| *kind == settings.kind).count() > 1 => {
                    format!("{} ({section})", settings.kind)
                }
                _ => settings.kind.to_owned(),
            }
        };
        self.settings.iter().enumerate().map(name).collect()
    }
}

/// Checks all transports of the `sections`, each against the switches and the other transports.
pub(crate) fn check_transports(
    usual: &TransportSettings,
    sections: &[WorkloadSection],
    switch: &SwitchSettings,
    places: &SourceLocations,
) -> Result<(), ScenarioError> {
    let transports = Transports::from_sections(usual, sections);
    if transports.settings.len() > MOST {
        let error = ScenarioError::about(
            &["transport.kind"],
            format!("{} transports in one run", transports.settings.len()),
            format!("use at most {MOST}: each host has an endpoint of each"),
        );
        return Err(error.or_in(places, "workload", sections.len() - 1));
    }
    for (place, transport) in (0u8..).zip(&transports.settings) {
        let here = |error: ScenarioError| match (place, transports.first_section(place)) {
            (1.., Some(section)) => error.of_own_transport(places, section),
            _ => error.or_in(places, "transport", 0),
        };
        let at_switch = |error: ScenarioError| match place {
            0 => error.or_in(places, "switch", 0),
            _ => here(error),
        };
        check_transport(transport).map_err(here)?;
        check_agents(transport, switch).map_err(at_switch)?;
        check_credit(transport).map_err(here)?;
        check_trimming(transport, switch).map_err(at_switch)?;
        let own = sections.iter().zip(&transports.of_section);
        let own = own.filter(|(_, of)| **of == place);
        let variants = own.flat_map(|(section, _)| section.variants());
        let controllers: Vec<_> = variants.chain([transport.controller.clone()]).collect();
        check_scope(transport.scope.scope, &controllers).map_err(here)?;
        if transports.settings.len() > 1 {
            check_alone(transport).map_err(here)?;
        }
    }
    Ok(())
}

/// Rejects a transport whose rates links allocate, because these links do not account for other traffic.
fn check_alone(transport: &TransportSettings) -> Result<(), ScenarioError> {
    match &transport.controller {
        ControllerSettings::SPerc(_) | ControllerSettings::OneRc(_) => Err(ScenarioError::about(
            &["kind", "controller"],
            format!(
                "`transport.controller` = \"{}\" goes with no other transport: links allocate all of their capacity to its flows",
                transport.controller.name()
            ),
            "give all sections of the workload this transport, by `[transport]`, or use another one here",
        )),
        _ => Ok(()),
    }
}

impl ScenarioError {
    /// The same error about the separate transport of a workload section.
    pub fn of_own_transport(mut self, places: &SourceLocations, section: usize) -> Self {
        self.message = format!("`workload[{section}].transport`: {}", self.message);
        if self.place.is_none() {
            let keys = self.keys.iter().map(|key| format!("transport.{key}"));
            let keys: Vec<String> = keys.chain(["transport.kind".into()]).collect();
            let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
            self.place = Some(places.of_keys("workload", section, &keys));
        }
        self
    }
}
