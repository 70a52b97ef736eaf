//! Owners of keys, to explain unknown keys.

use crate::catalogue::full_key;
use crate::scaleup::scaleup_groups;
use crate::{Catalogue, Explanation, ScenarioError};
use clearway_scaleup::injection::InjectionRegistry;
use clearway_transport::Registry;
use clearway_units::nearest;

impl ScenarioError {
    /// The same error; if something else has the unknown key, with the name of this owner.
    pub(crate) fn with_owner(
        mut self,
        (registry, injection): (&Registry, &InjectionRegistry),
    ) -> Self {
        let Some(unknown) = &self.unknown else {
            return self;
        };
        let things = things(registry, injection);
        let owners = owners_of(&unknown.key, &things);
        let section = match unknown.section.as_str() {
            "workload.transport" => "transport",
            section => section,
        };
        if let Some(fix) = same_section(section, &unknown.key, &owners)
            .or_else(|| other_sections(&unknown.key, &owners))
        {
            self.fix = fix;
        } else if section.is_empty() && !self.fix.starts_with("did you mean") {
            let keys = things.iter().flat_map(|thing| {
                let keys = thing.parameters.iter();
                keys.map(move |own| (thing.section, own.key))
            });
            let all: Vec<(&str, &str)> = keys.collect();
            let near = nearest(&unknown.key, all.iter().map(|(_, key)| *key));
            let near = near.and_then(|near| all.iter().find(|(_, key)| *key == near));
            if let Some((section, key)) = near {
                self.fix = format!("did you mean `{}`?", full_key(section, key));
            }
        }
        self
    }

    /// As [`with_owner`](Self::with_owner), for a scale-up fabric, which cannot have the keys of packet fabrics.
    pub(crate) fn with_scaleup_owner(
        mut self,
        (registry, injection): (&Registry, &InjectionRegistry),
    ) -> Self {
        let Some(unknown) = &self.unknown else {
            return self;
        };
        let (section, key) = (unknown.section.as_str(), unknown.key.as_str());
        let mut groups = scaleup_groups(injection);
        for thing in groups.iter_mut().flat_map(|group| &mut group.sections) {
            thing.role = thing.role.replace(", of a scale-up fabric", "");
        }
        let own: Vec<&Explanation> = groups.iter().flat_map(|group| &group.sections).collect();
        let owners = owners_of(key, own.iter().copied());
        if let Some(fix) =
            same_section(section, key, &owners).or_else(|| other_sections(key, &owners))
        {
            self.fix = fix;
            return self;
        }
        let of_packets = things(registry, injection);
        let owners = owners_of(key, &of_packets);
        // Keys outside the fabric are the same in all scenarios.
        let (common, packets): (Vec<&Explanation>, Vec<&Explanation>) =
            owners.into_iter().partition(|owner| is_common(owner));
        if let Some(fix) = other_sections(key, &common) {
            self.fix = fix;
        } else if !packets.is_empty() {
            let fix = match section {
                "" => "leave it out".into(),
                _ => self.fix,
            };
            self.fix = format!("`{key}` is a key of packet fabrics: {fix}");
        }
        self
    }
}

/// Entries of the catalogue with a key of this name.
fn owners_of<'a>(
    key: &str,
    things: impl IntoIterator<Item = &'a Explanation>,
) -> Vec<&'a Explanation> {
    let has = |thing: &&Explanation| thing.parameters.iter().any(|own| own.key == key);
    things.into_iter().filter(has).collect()
}

fn is_common(thing: &Explanation) -> bool {
    ["", "observe"].contains(&thing.section)
}

/// Entries of the catalogue with keys.
fn things(registry: &Registry, injection: &InjectionRegistry) -> Vec<Explanation> {
    let groups = scaleup_groups(injection).into_iter();
    let catalogue = groups.fold(Catalogue::new(registry), Catalogue::with);
    let names = catalogue.names();
    let all = names.iter().flat_map(|name| catalogue.explain(name));
    let mut things: Vec<Explanation> = Vec::new();
    for thing in all {
        if !things.iter().any(|known| known.role == thing.role) {
            things.push(thing);
        }
    }
    things
}

/// Owners of the key in the same section: other kinds.
fn same_section(section: &str, key: &str, owners: &[&Explanation]) -> Option<String> {
    const SHOWN: usize = 3;
    let own = owners.iter().filter(|owner| owner.section == section);
    let roles = own.map(|owner| owner.role.as_str());
    // A preset of transports has the keys of its parts.
    let roles: Vec<&str> = roles
        .filter(|role| !role.starts_with("transport.kind"))
        .collect();
    if roles.is_empty() || section.is_empty() {
        return None;
    }
    let mut shown: Vec<String> = roles
        .iter()
        .take(SHOWN)
        .map(|role| format!("`{role}`"))
        .collect();
    if roles.len() > SHOWN {
        shown.push(match roles.len() - SHOWN {
            1 => "another one".into(),
            others => format!("{others} others"),
        });
    }
    let last = shown.pop().unwrap_or_default();
    let list = match shown.is_empty() {
        true => last,
        false => format!("{} and {last}", shown.join(", ")),
    };
    Some(format!(
        "`{key}` is a key of {list}: choose that, or leave the key out"
    ))
}

/// Owners of the key in other sections.
fn other_sections(key: &str, owners: &[&Explanation]) -> Option<String> {
    let mut keys: Vec<String> = Vec::new();
    for owner in owners {
        let full = format!("`{}`", full_key(owner.section, key));
        if !keys.contains(&full) {
            keys.push(full);
        }
    }
    (!keys.is_empty()).then(|| format!("did you mean {}?", keys.join(" or ")))
}
