//! Labels of variants, made from their differences.
//!
//! A variant without settings may stand beside variants with settings: `cluster.toml` beside `cluster.toml` with `transport.kind=uet`. Its
//! label is its value of the same key. Labels of result folders come from the keys that the user set.

use clearway_lab::Experiment;
use std::collections::{BTreeMap, BTreeSet};

/// Maximum number of keys in a label; variants with more differences are labelled by name.
const MOST_KEYS: usize = 3;

/// Values of all keys of a scenario, by path.
pub(super) type Values = BTreeMap<String, String>;

/// Values of all keys of a scenario.
pub(super) fn values(scenario: &Experiment) -> Values {
    let settings = scenario.settings().into_iter();
    settings
        .map(|setting| (setting.path(), setting.value.to_string()))
        .collect()
}

/// Settings that distinguish a scenario: its values of the keys that the others set. `None` if the others set different keys or too many
/// keys, or if the scenario lacks a value of a key.
pub(super) fn of_base(own: &Values, others: &[&[String]]) -> Option<String> {
    let keys = |settings: &&[String]| -> BTreeSet<String> {
        let keys = settings.iter().filter_map(|setting| {
            let (key, _) = setting.split_once('=')?;
            Some(key.trim().to_owned())
        });
        keys.collect()
    };
    let first = others.first().map(keys)?;
    let are_alike = others.iter().all(|settings| keys(settings) == first);
    if !are_alike || first.is_empty() || first.len() > MOST_KEYS {
        return None;
    }
    // In the order of the first variant's settings.
    let named = others[0]
        .iter()
        .filter_map(|setting| setting.split_once('='));
    let named = named.map(|(key, _)| Some(pair(key.trim(), own.get(key.trim())?)));
    Some(named.collect::<Option<Vec<String>>>()?.join(", "))
}

/// Settings that distinguish each scenario from the others: its values of those `given` keys whose values differ. `None` if there are no
/// such keys, or too many.
pub(super) fn of_results(all: &[Values], given: &BTreeSet<String>) -> Option<Vec<String>> {
    let differs = |key: &&String| {
        let mut values = all.iter().map(|values| values.get(*key));
        let first = values.next();
        values.any(|value| Some(value) != first)
    };
    let keys: Vec<&String> = given.iter().filter(differs).collect();
    if keys.is_empty() || keys.len() > MOST_KEYS {
        return None;
    }
    let settings = |values: &Values| {
        let own = keys
            .iter()
            .filter_map(|key| Some(pair(key, values.get(*key)?)));
        own.collect::<Vec<String>>().join(", ")
    };
    Some(all.iter().map(settings).collect())
}

/// A setting in the form that a user types.
fn pair(key: &str, value: &str) -> String {
    let quoted = value.strip_prefix('"');
    let bare = quoted.and_then(|value| value.strip_suffix('"'));
    format!("{key}={}", bare.unwrap_or(value))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(pairs: &[(&str, &str)]) -> Values {
        let pairs = pairs.iter();
        pairs
            .map(|(key, value)| ((*key).into(), (*value).into()))
            .collect()
    }

    #[test]
    fn a_base_has_the_keys_of_the_others() {
        let own = values(&[("transport.kind", "\"strack\""), ("seed", "1")]);
        let label = |others: &[&[&str]]| {
            let others: Vec<Vec<String>> = others
                .iter()
                .map(|other| other.iter().map(ToString::to_string).collect())
                .collect();
            let others: Vec<&[String]> = others.iter().map(Vec::as_slice).collect();
            of_base(&own, &others)
        };
        let strack = Some("transport.kind=strack".to_owned());
        assert_eq!(label(&[&["transport.kind=uet"]]), strack);
        assert_eq!(
            label(&[&["transport.kind=uet"], &["transport.kind = hpcc"]]),
            strack
        );
        assert_eq!(
            label(&[&["seed=2", "transport.kind=uet"]]),
            Some("seed=1, transport.kind=strack".into())
        );
        assert_eq!(label(&[&["transport.kind=uet"], &["seed=2"]]), None);
        assert_eq!(label(&[&["transport.spray=single"]]), None);
        assert_eq!(label(&[]), None);
    }

    #[test]
    fn results_differ_in_what_was_given() {
        let all = [
            values(&[("transport.kind", "\"strack\""), ("switch.ecn.kmin", "1")]),
            values(&[("transport.kind", "\"uet\""), ("switch.ecn.kmin", "2")]),
        ];
        let given = |keys: &[&str]| keys.iter().map(ToString::to_string).collect();
        assert_eq!(
            of_results(&all, &given(&["transport.kind", "seed"])),
            Some(vec![
                "transport.kind=strack".into(),
                "transport.kind=uet".into()
            ])
        );
        assert_eq!(of_results(&all, &given(&["seed"])), None);
    }
}
