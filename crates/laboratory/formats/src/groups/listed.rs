//! Lists of ranks in JSON, read without a tree of values. In memory, such a tree is larger than the text: sixteen times for a list of
//! numbers, a hundred times for objects with one key.

use clearway_workload::graph::Rank;
use serde::de::{
    Deserialize, DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, Visitor,
};
use serde_json::Number;
use std::fmt;

/// Members of a JSON object in order, including duplicate names. If reading fails, the last name belongs to the list with the error.
#[derive(Default)]
pub(super) struct ByName(pub(super) Vec<(String, Vec<Rank>)>);

impl<'de> DeserializeSeed<'de> for &mut ByName {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for &mut ByName {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("lists of ranks under their names")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(name) = map.next_key()? {
            self.0.push((name, Vec::new()));
            let members = ranks(&mut map)?;
            self.0.last_mut().expect("it was pushed").1 = members;
        }
        Ok(())
    }
}

fn ranks<'de, A: MapAccess<'de>>(map: &mut A) -> Result<Vec<Rank>, A::Error> {
    let numbers = map.next_value::<Vec<u32>>()?;
    Ok(numbers.into_iter().map(Rank).collect())
}

/// Entry of PyTorch's list of groups. All other keys are skipped; if a key occurs twice, the last one counts.
pub(super) struct Noted {
    pub(super) name: String,
    pub(super) members: Vec<Rank>,
}

impl<'de> Deserialize<'de> for Noted {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Entry;
        impl<'de> Visitor<'de> for Entry {
            type Value = Noted;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a group")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Noted, A::Error> {
                let (mut name, mut members) = (None, None);
                while let Some(key) = map.next_key::<String>()? {
                    match key.as_str() {
                        "pg_name" => name = Some(map.next_value::<Name>()?.0),
                        "ranks" => members = Some(ranks(&mut map)?),
                        _ => drop(map.next_value::<IgnoredAny>()?),
                    }
                }
                Ok(Noted {
                    name: name.ok_or_else(|| A::Error::missing_field("pg_name"))?,
                    members: members.ok_or_else(|| A::Error::missing_field("ranks"))?,
                })
            }
        }
        deserializer.deserialize_map(Entry)
    }
}

/// The name of a group: a text, or a number as the file writes it.
struct Name(String);

impl<'de> Deserialize<'de> for Name {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Any;
        impl Visitor<'_> for Any {
            type Value = Name;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a text or a number")
            }

            fn visit_str<E>(self, text: &str) -> Result<Name, E> {
                Ok(Name(text.to_owned()))
            }

            fn visit_u64<E>(self, number: u64) -> Result<Name, E> {
                Ok(Name(number.to_string()))
            }

            fn visit_i64<E>(self, number: i64) -> Result<Name, E> {
                Ok(Name(number.to_string()))
            }

            fn visit_f64<E: Error>(self, number: f64) -> Result<Name, E> {
                let number = Number::from_f64(number).ok_or_else(|| E::custom("no number"))?;
                Ok(Name(number.to_string()))
            }
        }
        deserializer.deserialize_any(Any)
    }
}
