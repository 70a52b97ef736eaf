//! Values of settings: what each type accepts, and how it is written.

use crate::{ByteRate, Bytes, Rate, RelativeSize, Span, Time, ValueDomain};
use std::borrow::Cow;
use std::fmt::{self, Write as _};
use std::num::NonZero;

/// A value in a scenario.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// Quoted text, which most quantities are.
    Text(String),
    /// A whole number.
    Integer(i64),
    /// A number with a fraction.
    Float(f64),
    /// `true` or `false`.
    Boolean(bool),
    /// A list in brackets.
    List(Vec<Value>),
}

impl fmt::Display for Value {
    /// Writes the value as TOML.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => write_text(f, text),
            Self::Integer(value) => value.fmt(f),
            Self::Float(value) => write!(f, "{value:?}"),
            Self::Boolean(value) => value.fmt(f),
            Self::List(items) => {
                f.write_str("[")?;
                for (i, item) in items.iter().enumerate() {
                    write!(f, "{}{item}", if i == 0 { "" } else { ", " })?;
                }
                f.write_str("]")
            }
        }
    }
}

/// Writes a TOML text in one line, whatever its content.
fn write_text(f: &mut fmt::Formatter<'_>, text: &str) -> fmt::Result {
    f.write_char('"')?;
    for c in text.chars() {
        match c {
            '"' | '\\' => write!(f, "\\{c}")?,
            c if c.is_control() => write!(f, "\\u{:04X}", u32::from(c))?,
            c => f.write_char(c)?,
        }
    }
    f.write_char('"')
}

/// A type that a parameter can have.
pub trait Parameter: Sized {
    /// Description of the accepted values, with an example; completes "expected …".
    fn expected() -> String;
    /// Domain of the values. Some of these values may be rejected, because limits can depend on other settings.
    fn domain() -> ValueDomain;
    /// Parses a value; `None` if the value has another kind or is out of range.
    fn from_value(value: &Value) -> Option<Self>;
    /// Advice on a value that [`from_value`](Self::from_value) rejects, if it says more than the expected values.
    fn advice(_refused: &Value) -> Option<String> {
        None
    }
    /// The value that [`from_value`](Self::from_value) reads back to `self`.
    fn to_value(&self) -> Value;
}

/// Text of a quantity. A plain number also counts, without a unit.
fn quantity_text(value: &Value) -> Option<Cow<'_, str>> {
    match value {
        Value::Text(text) => Some(Cow::Borrowed(text)),
        Value::Integer(number) => Some(Cow::Owned(number.to_string())),
        Value::Float(number) => Some(Cow::Owned(number.to_string())),
        Value::Boolean(_) | Value::List(_) => None,
    }
}

macro_rules! quantity_parameter {
    ($($type:ty: $domain:ident, $unit:ty, $example:literal;)+) => {$(
        /// A number with its unit, in quotes. A zero, if allowed, needs no unit.
        impl Parameter for $type {
            fn expected() -> String {
                $example.into()
            }
            fn domain() -> ValueDomain {
                ValueDomain::$domain
            }
            fn from_value(value: &Value) -> Option<Self> {
                match value {
                    Value::Text(_) | Value::Integer(0) => quantity_text(value)?.parse().ok(),
                    _ => None,
                }
            }
            fn advice(value: &Value) -> Option<String> {
                <$unit>::unit_advice(&quantity_text(value)?)
            }
            fn to_value(&self) -> Value {
                Value::Text(self.to_string())
            }
        }
    )+};
}

quantity_parameter! {
    Span: Duration, Span, "a duration such as \"1us\" or \"250ns\"";
    Time: Instant, Span, "an instant such as \"0s\" or \"12.5us\"";
    Rate: Rate, Rate, "a rate such as \"400Gbps\"";
    ByteRate: Rate, ByteRate, "a rate such as \"2039GB/s\"";
    Bytes: Size, Bytes, "a size such as \"2MB\", \"64KiB\" or \"4096B\"";
    RelativeSize: RelativeSize, RelativeSize, "a size such as \"100KB\", \"25%bdp\" or \"5bdp\", or what a link sends in a time such as \"32us\"";
}

impl Parameter for String {
    fn expected() -> String {
        "a text in quotes".into()
    }
    fn domain() -> ValueDomain {
        ValueDomain::Text
    }
    fn from_value(value: &Value) -> Option<Self> {
        match value {
            Value::Text(text) => Some(text.clone()),
            _ => None,
        }
    }
    fn to_value(&self) -> Value {
        Value::Text(self.clone())
    }
}

impl Parameter for bool {
    fn expected() -> String {
        "`true` or `false`".into()
    }
    fn domain() -> ValueDomain {
        ValueDomain::Flag
    }
    fn from_value(value: &Value) -> Option<Self> {
        match value {
            Value::Boolean(value) => Some(*value),
            _ => None,
        }
    }
    fn to_value(&self) -> Value {
        Value::Boolean(*self)
    }
}

impl Parameter for f64 {
    fn expected() -> String {
        "a number of zero or more".into()
    }
    fn domain() -> ValueDomain {
        ValueDomain::Number
    }
    fn from_value(value: &Value) -> Option<Self> {
        let number = match value {
            Value::Float(number) => *number,
            Value::Integer(number) => *number as f64,
            _ => return None,
        };
        (number.is_finite() && number >= 0.0).then_some(number)
    }
    fn to_value(&self) -> Value {
        Value::Float(*self)
    }
}

macro_rules! integer_parameter {
    ($($type:ty),+) => {$(
        impl Parameter for $type {
            fn expected() -> String {
                format!("a whole number from 0 to {}", i64::try_from(Self::MAX).unwrap_or(i64::MAX))
            }
            fn domain() -> ValueDomain {
                let most = i64::try_from(Self::MAX).unwrap_or(i64::MAX);
                ValueDomain::Whole { least: 0, most: most.unsigned_abs() }
            }
            fn from_value(value: &Value) -> Option<Self> {
                match value {
                    Value::Integer(number) => Self::try_from(*number).ok(),
                    _ => None,
                }
            }
            fn to_value(&self) -> Value {
                Value::Integer(i64::try_from(*self).unwrap_or(i64::MAX))
            }
        }
    )+};
}

integer_parameter!(u8, u16, u32, u64);

macro_rules! positive_parameter {
    ($($type:ty),+) => {$(
        /// A count that cannot be zero: the type is the range, so the documented and the accepted range are equal.
        impl Parameter for NonZero<$type> {
            fn expected() -> String {
                format!("a whole number from 1 to {}", i64::try_from(<$type>::MAX).unwrap_or(i64::MAX))
            }
            fn domain() -> ValueDomain {
                ValueDomain::Whole { least: 1, most: <$type>::MAX.into() }
            }
            fn from_value(value: &Value) -> Option<Self> {
                <$type>::from_value(value).and_then(Self::new)
            }
            fn to_value(&self) -> Value {
                self.get().to_value()
            }
        }
    )+};
}

positive_parameter!(u8, u16, u32);

/// `None` is written `"auto"`: derived from other settings, as the parameter's meaning says.
impl<T: Parameter> Parameter for Option<T> {
    fn expected() -> String {
        format!("{}, or \"auto\"", T::expected())
    }
    fn domain() -> ValueDomain {
        T::domain().or_word("auto")
    }
    fn from_value(value: &Value) -> Option<Self> {
        match value {
            Value::Text(text) if text == "auto" => Some(None),
            _ => T::from_value(value).map(Some),
        }
    }
    fn advice(value: &Value) -> Option<String> {
        T::advice(value)
    }
    fn to_value(&self) -> Value {
        match self {
            None => Value::Text("auto".into()),
            Some(value) => value.to_value(),
        }
    }
}

impl<T: Parameter> Parameter for Vec<T> {
    fn expected() -> String {
        format!("a list in brackets; each item {}", T::expected())
    }
    fn domain() -> ValueDomain {
        T::domain().list()
    }
    fn from_value(value: &Value) -> Option<Self> {
        match value {
            Value::List(items) => items.iter().map(T::from_value).collect(),
            _ => None,
        }
    }
    fn advice(value: &Value) -> Option<String> {
        match value {
            Value::List(items) => items
                .iter()
                .find(|item| T::from_value(item).is_none())
                .and_then(T::advice),
            _ => None,
        }
    }
    fn to_value(&self) -> Value {
        Value::List(self.iter().map(T::to_value).collect())
    }
}

/// Declares an enum of names, each written in the scenario as a fixed word.
///
/// ```
/// clearway_units::choices! {
///     /// Instant at which a queue marks.
///     pub enum MarkAt {
///         /// Departure of a packet.
///         Dequeue = "dequeue",
///         /// Arrival of a packet.
///         Enqueue = "enqueue",
///     }
/// }
/// use clearway_units::{Parameter, Value};
/// assert_eq!(MarkAt::from_value(&Value::Text("enqueue".into())), Some(MarkAt::Enqueue));
/// assert_eq!(MarkAt::expected(), "one of \"dequeue\", \"enqueue\"");
/// ```
#[macro_export]
macro_rules! choices {
    (
        $(#[$enum_meta:meta])*
        pub enum $name:ident {
            $($(#[doc = $doc:literal])+ $variant:ident = $word:literal,)+
        }
    ) => {
        $(#[$enum_meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum $name {
            $($(#[doc = $doc])+ $variant,)+
        }

        impl $name {
            /// Every choice, in the order of declaration.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The word for this choice.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)+
                }
            }

            /// Meaning of this choice.
            pub fn meaning(self) -> String {
                match self {
                    $(Self::$variant => [$($doc.trim()),+].join(" "),)+
                }
            }
        }

        impl $crate::Parameter for $name {
            fn expected() -> String {
                concat!("one of ", $("\"", $word, "\", "),+).trim_end_matches(", ").into()
            }
            fn domain() -> $crate::ValueDomain {
                $crate::ValueDomain::Words(vec![$($word),+])
            }
            fn from_value(value: &$crate::Value) -> Option<Self> {
                match value {
                    $crate::Value::Text(text) => match text.as_str() {
                        $($word => Some(Self::$variant),)+
                        _ => None,
                    },
                    _ => None,
                }
            }
            fn to_value(&self) -> $crate::Value {
                $crate::Value::Text(self.name().into())
            }
        }
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One rule for all quantities.
    fn a_number_needs_its_unit<T: Parameter>(unit: &str, has_zero: bool) {
        let text = |text: String| Value::Text(text);
        for bare in [
            Value::Integer(2),
            Value::Float(2.5),
            text("2".into()),
            text("2.5".into()),
        ] {
            assert!(T::from_value(&bare).is_none(), "{bare}");
            let advice = T::advice(&bare).expect("there is a unit to name");
            assert!(advice.contains(&format!("{unit}\" if")), "{advice}");
        }
        assert!(T::from_value(&text(format!("2{unit}"))).is_some());
        assert_eq!(T::from_value(&Value::Integer(0)).is_some(), has_zero);
        assert_eq!(T::from_value(&text("0".into())).is_some(), has_zero);
        let unknown = T::advice(&text("2parsec".into())).expect("no such unit");
        assert!(
            unknown.starts_with("there is no unit `parsec`"),
            "{unknown}"
        );
        assert!(unknown.contains(unit), "{unknown}");
        assert_eq!(T::advice(&text("-3".into())), None);
    }

    #[test]
    fn numbers_need_units_whatever_the_quantity() {
        a_number_needs_its_unit::<Span>("us", true);
        a_number_needs_its_unit::<Time>("us", true);
        a_number_needs_its_unit::<Bytes>("B", true);
        a_number_needs_its_unit::<RelativeSize>("B", true);
        a_number_needs_its_unit::<Option<Bytes>>("B", true);
        a_number_needs_its_unit::<Rate>("Gbps", false);
        let list = Value::List(vec![Value::Text("1us".into()), Value::Integer(3)]);
        assert!(Vec::<Span>::advice(&list).is_some());
    }

    #[test]
    fn a_count_of_at_least_one_refuses_zero() {
        let domain = ValueDomain::Whole {
            least: 1,
            most: 65_535,
        };
        assert_eq!(NonZero::<u16>::domain(), domain);
        let read = |number| NonZero::<u16>::from_value(&Value::Integer(number));
        assert_eq!(read(0), None);
        assert_eq!(read(-1), None);
        assert_eq!(read(65_536), None);
        for number in [1, 65_535] {
            let count = read(number).expect("in range");
            assert_eq!(count.to_value(), Value::Integer(number));
        }
        assert_eq!(NonZero::<u16>::expected(), "a whole number from 1 to 65535");
    }

    #[test]
    fn values_survive_the_round_trip_through_text() {
        for value in [
            Value::Text("a \"b\" \\ c".into()),
            Value::Float(0.1),
            Value::List(vec![Value::Integer(1), Value::Boolean(true)]),
        ] {
            assert!(!value.to_string().is_empty());
        }
        assert_eq!(Value::Text("a\"b".into()).to_string(), r#""a\"b""#);
        assert_eq!(
            Value::Text("a\tb\u{7f}".into()).to_string(),
            r#""a\u0009b\u007F""#
        );
        assert_eq!(Value::Float(1.0).to_string(), "1.0");
    }
}
