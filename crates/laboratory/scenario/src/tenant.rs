//! Key `tenant` of `[[workload]]` sections: the owner of a section's traffic.
//!
//! A tenant changes no result. Shares of the network are compared between users. With tenants, a user is a host of a tenant: a host that
//! sends for two tenants is two users.

use clearway_units::{Parameter, Value, ValueDomain};

/// Name of a tenant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TenantName(String);

impl TenantName {
    /// Maximum number of characters of a name, which appears in tables and in options.
    const MOST: usize = 40;

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Parameter for TenantName {
    fn expected() -> String {
        format!(
            "a name of 1 to {} characters without colons and line breaks",
            Self::MOST
        )
    }
    fn domain() -> ValueDomain {
        ValueDomain::Text
    }
    fn from_value(value: &Value) -> Option<Self> {
        let name = String::from_value(value)?;
        // In options, a colon separates the tenant from its hosts.
        let is_name = |letter: char| letter != ':' && !letter.is_control();
        let is_shown = !name.trim().is_empty() && name.chars().all(is_name);
        (is_shown && name.chars().count() <= Self::MOST).then_some(Self(name))
    }
    fn to_value(&self) -> Value {
        Value::Text(self.0.clone())
    }
}

clearway_units::parameters! {
    /// Key of the tenant that a section belongs to.
    pub struct TenantKeys {
        /// Tenant that owns the section's traffic. `clearway isolate` compares the shares of users; a user is a tenant on a sending host.
        /// "auto": no tenant, so that the host is the user.
        pub tenant: Option<TenantName> = None, "tenant", "decision";
    }
}

impl TenantKeys {
    /// Entries of a resolved scenario. Most sections have no tenant and then no entry.
    pub(crate) fn written(&self) -> Vec<(&'static str, Value)> {
        use clearway_units::ParameterSet as _;
        match self.tenant {
            None => Vec::new(),
            Some(_) => self.entries(),
        }
    }
}

/// Tenants of sections, by number: 0 for sections without a tenant, then in the order of the sections.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tenants<'a> {
    /// Names of the tenants, from number 1 on.
    pub names: Vec<&'a str>,
    /// Number of the tenant of each workload section.
    pub of_section: Vec<u32>,
}

impl<'a> Tenants<'a> {
    pub(crate) fn from_sections(sections: impl IntoIterator<Item = &'a TenantKeys>) -> Self {
        let mut names = Vec::new();
        let number = |keys: &'a TenantKeys| {
            let Some(tenant) = &keys.tenant else {
                return 0;
            };
            let name = tenant.as_str();
            let place = names.iter().position(|known| *known == name);
            let place = place.unwrap_or_else(|| {
                names.push(name);
                names.len() - 1
            });
            place as u32 + 1
        };
        let of_section = sections.into_iter().map(number).collect();
        Self { names, of_section }
    }

    /// Number of the tenant of this name.
    pub fn number(&self, name: &str) -> Option<u32> {
        let place = self.names.iter().position(|known| *known == name)?;
        Some(place as u32 + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(name: &str) -> TenantKeys {
        TenantKeys {
            tenant: TenantName::from_value(&Value::Text(name.into())),
        }
    }

    #[test]
    fn sections_of_one_name_are_of_one_tenant() {
        let sections = ["b", "", "a", "b"].map(keys);
        let tenants = Tenants::from_sections(&sections);
        assert_eq!(tenants.names, ["b", "a"]);
        assert_eq!(tenants.of_section, [1, 0, 2, 1]);
        assert_eq!((tenants.number("a"), tenants.number("c")), (Some(2), None));
    }

    #[test]
    fn names_fit_into_options() {
        assert_eq!(keys("team a").tenant.unwrap().as_str(), "team a");
        for bad in ["", " ", "a:b", "a\nb", &"x".repeat(41)] {
            assert_eq!(keys(bad).tenant, None, "{bad:?}");
        }
    }
}
