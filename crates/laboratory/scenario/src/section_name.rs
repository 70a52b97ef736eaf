//! Names of `[[workload]]` sections, which group results.

use clearway_units::{Parameter, Value, ValueDomain};

/// Name of a workload section in a scenario.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SectionName(String);

impl SectionName {
    /// Maximum number of characters of a name, which labels rows of tables.
    const MOST: usize = 40;

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Parameter for SectionName {
    fn expected() -> String {
        format!(
            "a name of 1 to {} characters without line breaks",
            Self::MOST
        )
    }
    fn domain() -> ValueDomain {
        ValueDomain::Text
    }
    fn from_value(value: &Value) -> Option<Self> {
        let name = String::from_value(value)?;
        let is_shown = |text: &str| !text.trim().is_empty() && !text.contains(char::is_control);
        (is_shown(&name) && name.chars().count() <= Self::MOST).then_some(Self(name))
    }
    fn to_value(&self) -> Value {
        Value::Text(self.0.clone())
    }
}

clearway_units::parameters! {
    /// Keys of every section.
    pub struct SectionKeys {
        /// Name of the section; results are broken down by it if there are several. Sections with the same name count as one. "auto": the
        /// kind of the section, with its place if several are alike.
        pub name: Option<SectionName> = None, "name", "decision";
    }
}

impl SectionKeys {
    /// Entries of a resolved scenario. Most sections have no name and then no entry.
    pub(crate) fn written(&self) -> Vec<(&'static str, Value)> {
        use clearway_units::ParameterSet as _;
        match self.name {
            None => Vec::new(),
            Some(_) => self.entries(),
        }
    }
}

/// Names of sections in results, from the keys and the kind of each section.
pub(crate) fn section_names<'a>(
    sections: impl IntoIterator<Item = (&'a SectionKeys, String)>,
) -> Vec<String> {
    let sections: Vec<(Option<&SectionName>, String)> = sections
        .into_iter()
        .map(|(keys, kind)| {
            let text = keys.name.as_ref().map(|name| name.0.clone());
            (keys.name.as_ref(), text.unwrap_or(kind))
        })
        .collect();
    let alike = |name: &str| sections.iter().filter(|(_, other)| other == name).count();
    let name = |(place, (given, name)): (usize, &(Option<&SectionName>, String))| match given
        .is_some()
        || alike(name) == 1
    {
        true => name.clone(),
        false => format!("{name} [{place}]"),
    };
    sections.iter().enumerate().map(name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(sections: &[(&str, &str)]) -> Vec<String> {
        let keys: Vec<SectionKeys> = sections
            .iter()
            .map(|(name, _)| SectionKeys {
                name: SectionName::from_value(&Value::Text((*name).into())),
            })
            .collect();
        let kinds = sections.iter().map(|(_, kind)| (*kind).to_owned());
        section_names(keys.iter().zip(kinds))
    }

    #[test]
    fn sections_without_a_name_are_called_by_kind_and_place() {
        assert_eq!(names(&[("", "poisson")]), ["poisson"]);
        assert_eq!(
            names(&[("", "incast"), ("", "poisson"), ("", "incast")]),
            ["incast [0]", "poisson", "incast [2]"]
        );
        assert_eq!(
            names(&[("burst", "incast"), ("", "incast"), ("burst", "incast")]),
            ["burst", "incast", "burst"]
        );
        // A name that equals the kind of another section stays distinct from that section.
        assert_eq!(
            names(&[("incast", "poisson"), ("", "incast")]),
            ["incast", "incast [1]"]
        );
    }

    #[test]
    fn names_fit_into_tables() {
        let name = |text: &str| SectionName::from_value(&Value::Text(text.into()));
        assert_eq!(name("to the left").unwrap().as_str(), "to the left");
        for bad in ["", "  ", "a\nb", &"x".repeat(41)] {
            assert_eq!(name(bad), None, "{bad:?}");
        }
        assert_eq!(SectionName::from_value(&Value::Integer(3)), None);
    }
}
