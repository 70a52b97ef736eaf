//! Attackers of a study: some hosts, or a tenant of the workload.

use crate::failure::Failure;
use clearway_lab::{HostSet, Scenario};
use clearway_report::User;
use clearway_units::{Parameter, Value};
use std::collections::BTreeSet;
use std::fmt;

/// Prefix of an option that names a tenant.
const TENANT: &str = "tenant:";

/// Attacking users: hosts, of one tenant or of all tenants with attacking sections.
pub(super) struct Attackers {
    tenant: Option<String>,
    hosts: HostSet,
}

impl Attackers {
    /// Attackers from the option, or else from the scenario.
    pub(super) fn parse(option: Option<&str>, scenario: &Scenario) -> Result<Self, Failure> {
        if let Some(text) = option {
            return Self::read(text, scenario);
        }
        let mut sections = scenario.workloads.iter();
        let attacking = sections.find(|section| section.attack.is_on());
        let hosts = attacking.map(|section| section.attack.hosts.clone());
        let hosts = hosts.ok_or_else(|| {
            Failure::new(
                "nobody attacks in this scenario\n  \
                 fix: name hosts, such as --attackers 0-3, or a tenant, such as --attackers tenant:NAME",
            )
        })?;
        Ok(Self {
            tenant: None,
            hosts,
        })
    }

    /// Reads `HOSTS`, `tenant:NAME` or `tenant:NAME:HOSTS`.
    fn read(text: &str, scenario: &Scenario) -> Result<Self, Failure> {
        let (tenant, hosts) = match text.strip_prefix(TENANT) {
            None => (None, text),
            Some(rest) => {
                let (name, hosts) = rest.split_once(':').unwrap_or((rest, "all"));
                (Some(name), hosts)
            }
        };
        let tenants = scenario.tenants();
        if tenant.is_some_and(|name| tenants.number(name).is_none()) {
            let fix = match tenants.names.is_empty() {
                true => {
                    "give sections of the workload one, such as --set 'workload[0].tenant=NAME'"
                        .into()
                }
                false => format!("the tenants are: {}", tenants.names.join(", ")),
            };
            return Err(Failure::new(format!(
                "--attackers {text}: no section of the workload has this tenant\n  fix: {fix}"
            )));
        }
        let hosts = HostSet::from_value(&Value::Text(hosts.into())).ok_or_else(|| {
            Failure::new(format!(
                "--attackers {text}: these are not hosts\n  \
                 fix: expected hosts such as \"0-3,8\", or a tenant such as \"tenant:NAME\" or \"tenant:NAME:0-3,8\""
            ))
        })?;
        Ok(Self {
            tenant: tenant.map(Into::into),
            hosts,
        })
    }

    /// The hosts.
    pub(super) fn hosts(&self) -> &HostSet {
        &self.hosts
    }

    /// Flags of the attacking sections of the workload: the tenant's sections, or all. If the scenario marks some of them as attacking,
    /// only these attack.
    pub(super) fn sections(&self, scenario: &Scenario) -> Vec<bool> {
        let tenants = scenario.tenants();
        let number = self.tenant.as_deref().and_then(|name| tenants.number(name));
        let own = tenants.of_section.iter();
        let own: Vec<bool> = own
            .map(|tenant| number.is_none_or(|number| number == *tenant))
            .collect();
        let sections = || own.iter().zip(&scenario.workloads);
        let any = sections().any(|(own, section)| *own && section.attack.is_on());
        let attacks = sections().map(|(own, section)| *own && (!any || section.attack.is_on()));
        attacks.collect()
    }

    /// Test for attacking users: the hosts, of the tenants whose sections attack.
    pub(super) fn users(&self, scenario: &Scenario) -> impl Fn(User) -> bool + use<'_> {
        let tenants = scenario.tenants().of_section.into_iter();
        let attacking = tenants.zip(self.sections(scenario));
        let attacking = attacking.filter_map(|(tenant, attacks)| attacks.then_some(tenant));
        let attacking: BTreeSet<u32> = attacking.collect();
        move |user| attacking.contains(&user.tenant) && self.hosts.contains(user.host)
    }
}

impl fmt::Display for Attackers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.tenant, &self.hosts) {
            (None, hosts) => write!(f, "{hosts}"),
            (Some(tenant), HostSet::All) => write!(f, "{TENANT}{tenant}"),
            (Some(tenant), hosts) => write!(f, "{TENANT}{tenant}:{hosts}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clearway_lab::Laboratory;

    /// Tenant `a` has sections 0 and 2, `b` section 1; section 3 has none.
    fn scenario(settings: &[&str]) -> Scenario {
        let tenants = [
            "workload[0].tenant=a",
            "workload[1].tenant=b",
            "workload[2].tenant=a",
        ];
        let kinds = ["0", "1", "2", "3"].map(|place| format!("workload[{place}].kind=permutation"));
        let given = tenants
            .iter()
            .chain(settings)
            .map(|text| (*text).to_owned());
        let settings: Vec<String> = kinds.into_iter().chain(given).collect();
        Laboratory::new().read("test", "", None, &settings).unwrap()
    }

    fn user(tenant: u32, host: u32) -> User {
        User { tenant, host }
    }

    #[test]
    fn the_sections_of_a_tenant_attack() {
        let plain = scenario(&[]);
        let sections = |option: &str, scenario| {
            Attackers::read(option, scenario)
                .unwrap()
                .sections(scenario)
        };
        assert_eq!(sections("tenant:a", &plain), [true, false, true, false]);
        assert_eq!(
            sections("tenant:b:0-3", &plain),
            [false, true, false, false]
        );
        assert_eq!(sections("0-3", &plain), [true; 4]);
        // The scenario marks one section of this tenant and one section of another tenant.
        let chosen = scenario(&["workload[2].attack.kind=parallel"]);
        assert_eq!(sections("tenant:a", &chosen), [false, false, true, false]);
        assert_eq!(sections("tenant:b", &chosen), [false, true, false, false]);
        assert_eq!(sections("0-3", &chosen), [false, false, true, false]);
    }

    #[test]
    fn a_host_attacks_for_the_tenant_alone() {
        let plain = scenario(&[]);
        let attackers = |option: &str| Attackers::read(option, &plain).unwrap();
        let of_a = attackers("tenant:a:0-3");
        let attacks = of_a.users(&plain);
        assert!(attacks(user(1, 3)));
        // Another host of the tenant, and the same host of the other tenant and without a tenant.
        assert!(!attacks(user(1, 4)) && !attacks(user(2, 3)) && !attacks(user(0, 3)));
        let hosts = attackers("0-3");
        let attacks = hosts.users(&plain);
        assert!((0..3).all(|tenant| attacks(user(tenant, 3)) && !attacks(user(tenant, 4))));
        for option in ["tenant:a:0-3", "tenant:b", "0-3", "all"] {
            assert_eq!(attackers(option).to_string(), option);
        }
    }
}
