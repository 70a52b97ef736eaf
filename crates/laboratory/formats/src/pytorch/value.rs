//! JSON values of which only the needed parts are kept. Profiles can be several gigabytes of JSON, so no tree of values is built.

use serde::de::{
    Deserialize, DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor,
};
use std::fmt;

/// A JSON value.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Value {
    Integer(i64),
    Real(f64),
    Text(String),
    /// A list of integers.
    Integers(Vec<i64>),
    /// Anything else, including an integer beyond 64 bits.
    Other,
}

/// Maximum of times, either way.
pub(super) const MOST_NANOSECONDS: u64 = 4_000_000_000_000_000_000;

impl Value {
    pub(super) fn integer(&self) -> Option<i64> {
        match self {
            Self::Integer(number) => Some(*number),
            _ => None,
        }
    }

    pub(super) fn text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    /// A time in microseconds, in nanoseconds; `None` if it is more than 126 years from 1970, so that times can be subtracted.
    pub(super) fn nanoseconds(&self) -> Option<i64> {
        let nanoseconds = match self {
            Self::Integer(us) => us.checked_mul(1000)?,
            // The cast saturates, and makes 0 of NaN, which JSON does not have.
            Self::Real(us) => (us * 1000.0).round() as i64,
            _ => return None,
        };
        (nanoseconds.unsigned_abs() <= MOST_NANOSECONDS).then_some(nanoseconds)
    }

    /// A list of integers, which PyTorch may write as text: `[0, 1]`. `None` if the text is cut off, as in `[0, 1, ..., 63]`.
    pub(super) fn integers(&self) -> Option<Vec<i64>> {
        match self {
            Self::Integers(list) => Some(list.clone()),
            Self::Text(text) => {
                let list = text.trim().strip_prefix('[')?.strip_suffix(']')?.trim();
                match list.is_empty() {
                    true => Some(Vec::new()),
                    false => list
                        .split(',')
                        .map(|word| word.trim().parse().ok())
                        .collect(),
                }
            }
            _ => None,
        }
    }
}

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ValueVisitor)
    }
}

struct ValueVisitor;

impl<'de> Visitor<'de> for ValueVisitor {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_bool<E>(self, _: bool) -> Result<Value, E> {
        Ok(Value::Other)
    }

    fn visit_i64<E>(self, number: i64) -> Result<Value, E> {
        Ok(Value::Integer(number))
    }

    fn visit_u64<E>(self, number: u64) -> Result<Value, E> {
        Ok(i64::try_from(number).map_or(Value::Other, Value::Integer))
    }

    fn visit_f64<E>(self, number: f64) -> Result<Value, E> {
        Ok(Value::Real(number))
    }

    fn visit_str<E>(self, text: &str) -> Result<Value, E> {
        Ok(Value::Text(text.to_owned()))
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Other)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Value, A::Error> {
        let mut integers = Vec::new();
        while let Some(value) = list.next_element::<Value>()? {
            let Value::Integer(integer) = value else {
                while list.next_element::<IgnoredAny>()?.is_some() {}
                return Ok(Value::Other);
            };
            integers.push(integer);
        }
        Ok(Value::Integers(integers))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Value::Other)
    }
}

/// Values under some names, in the order of the names. If a key occurs twice, the last one counts.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Fields<const N: usize>([Option<Value>; N]);

impl<const N: usize> Default for Fields<N> {
    fn default() -> Self {
        Self(std::array::from_fn(|_| None))
    }
}

impl<const N: usize> Fields<N> {
    pub(super) fn get(&self, index: usize) -> Option<&Value> {
        self.0[index].as_ref()
    }

    pub(super) fn set(&mut self, index: usize, value: Value) {
        self.0[index] = Some(value);
    }

    pub(super) fn take(&mut self, index: usize) -> Option<Value> {
        self.0[index].take()
    }

    pub(super) fn integer(&self, index: usize) -> Option<i64> {
        self.get(index).and_then(Value::integer)
    }

    pub(super) fn text(&self, index: usize) -> Option<&str> {
        self.get(index).and_then(Value::text)
    }

    pub(super) fn nanoseconds(&self, index: usize) -> Option<i64> {
        self.get(index).and_then(Value::nanoseconds)
    }
}

/// Reads the values under these names of an object; of anything else none.
#[derive(Clone, Copy)]
pub(super) struct Names<const N: usize>(pub(super) &'static [&'static str; N]);

impl<'de, const N: usize> DeserializeSeed<'de> for Names<N> {
    type Value = Fields<N>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Fields<N>, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de, const N: usize> Visitor<'de> for Names<N> {
    type Value = Fields<N>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Fields<N>, A::Error> {
        let mut fields = Fields::default();
        while let Some(index) = map.next_key_seed(KeyOf(self.0))? {
            match index {
                Some(index) => fields.set(index, map.next_value()?),
                None => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(fields)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Fields<N>, A::Error> {
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Fields::default())
    }

    fn visit_bool<E>(self, _: bool) -> Result<Fields<N>, E> {
        Ok(Fields::default())
    }

    fn visit_i64<E>(self, _: i64) -> Result<Fields<N>, E> {
        Ok(Fields::default())
    }

    fn visit_u64<E>(self, _: u64) -> Result<Fields<N>, E> {
        Ok(Fields::default())
    }

    fn visit_f64<E>(self, _: f64) -> Result<Fields<N>, E> {
        Ok(Fields::default())
    }

    fn visit_str<E>(self, _: &str) -> Result<Fields<N>, E> {
        Ok(Fields::default())
    }

    fn visit_unit<E>(self) -> Result<Fields<N>, E> {
        Ok(Fields::default())
    }
}

/// Reads a key as its index in a list.
pub(super) struct KeyOf<'a>(pub(super) &'a [&'static str]);

impl<'de> DeserializeSeed<'de> for KeyOf<'_> {
    type Value = Option<usize>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for KeyOf<'_> {
    type Value = Option<usize>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }

    fn visit_str<E>(self, key: &str) -> Result<Self::Value, E> {
        Ok(self.0.iter().position(|&name| name == key))
    }
}

/// A list whose elements `take` reads one by one, each with this seed.
pub(super) struct Each<S, F> {
    pub(super) seed: S,
    pub(super) take: F,
}

impl<'de, S, F> DeserializeSeed<'de> for Each<S, F>
where
    S: DeserializeSeed<'de> + Clone,
    F: FnMut(S::Value),
{
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de, S, F> Visitor<'de> for Each<S, F>
where
    S: DeserializeSeed<'de> + Clone,
    F: FnMut(S::Value),
{
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut list: A) -> Result<(), A::Error> {
        while let Some(element) = list.next_element_seed(self.seed.clone())? {
            (self.take)(element);
        }
        Ok(())
    }
}
