//! Settings that describe themselves.
//!
//! [`parameters!`](crate::parameters) declares a settings struct once: fields, defaults, keys, meaning and source. The scenario reader,
//! `clearway explain` and the resolved scenario beside the results all use this declaration, so they cannot drift apart.

use crate::ValueDomain;
use crate::parameter::{Parameter, Value};
use std::ops::Deref;

/// One parameter as `clearway explain` shows it.
#[derive(Debug, Clone, PartialEq)]
pub struct ParameterInfo {
    /// The key in its section of the scenario, for instance `ecn.kmin`.
    pub key: &'static str,
    /// The default, as written in a scenario.
    pub default: Value,
    /// Description of the accepted values, with an example.
    pub expected: String,
    /// Domain of the accepted values, for programs.
    pub domain: ValueDomain,
    /// Meaning of the parameter.
    pub meaning: String,
    /// Source of the default.
    pub source: &'static str,
}

/// Error when a parameter is set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SetError {
    /// No parameter has this key.
    UnknownKey,
    /// The value has another kind or is out of range.
    BadValue {
        /// Description of the accepted values; completes "expected …".
        expected: String,
    },
}

impl SetError {
    /// Error about `value`, which is not a `T`.
    pub fn bad_value<T: Parameter>(value: &Value) -> Self {
        let expected = T::expected();
        Self::BadValue {
            expected: match T::advice(value) {
                Some(advice) => format!("{expected}; {advice}"),
                None => expected,
            },
        }
    }
}

/// A settings struct declared with [`parameters!`](crate::parameters).
pub trait ParameterSet: Default {
    /// Every parameter with its default.
    fn describe() -> Vec<ParameterInfo>;
    /// Sets the parameter `key`.
    ///
    /// # Errors
    /// If the key does not exist or the value does not fit it.
    fn set(&mut self, key: &str, value: &Value) -> Result<(), SetError>;
    /// Every parameter with its present value, in the order of declaration.
    fn entries(&self) -> Vec<(&'static str, Value)>;
}

/// Rarely used settings: they have entries only if one setting is not the default, so files without them stay unchanged.
///
/// ```
/// clearway_units::parameters! {
///     /// Settings of a pause.
///     pub struct Pause {
///         /// Length of the pause.
///         pub length: u32 = 0, "pause", "nowhere";
///     }
/// }
/// use clearway_units::{ParameterSet, OmitDefaults, Value};
/// let mut pause = OmitDefaults::<Pause>::default();
/// assert_eq!(pause.entries(), []);
/// pause.set("pause", &Value::Integer(3)).unwrap();
/// assert_eq!(pause.length, 3);
/// assert_eq!(pause.entries(), [("pause", Value::Integer(3))]);
/// ```
#[derive(Debug, Clone, PartialEq, Default)]
pub struct OmitDefaults<T>(pub T);

impl<T> Deref for OmitDefaults<T> {
    type Target = T;
    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T: ParameterSet + PartialEq> ParameterSet for OmitDefaults<T> {
    fn describe() -> Vec<ParameterInfo> {
        T::describe()
    }
    fn set(&mut self, key: &str, value: &Value) -> Result<(), SetError> {
        self.0.set(key, value)
    }
    fn entries(&self) -> Vec<(&'static str, Value)> {
        match self.0 == T::default() {
            true => Vec::new(),
            false => self.0.entries(),
        }
    }
}

/// Settings outside the struct that has them, which they would make large.
impl<T: ParameterSet> ParameterSet for Box<T> {
    fn describe() -> Vec<ParameterInfo> {
        T::describe()
    }
    fn set(&mut self, key: &str, value: &Value) -> Result<(), SetError> {
        self.as_mut().set(key, value)
    }
    fn entries(&self) -> Vec<(&'static str, Value)> {
        self.as_ref().entries()
    }
}

/// Declares a settings struct. Each field: documentation (its meaning), name, type, default, key in the scenario, source of the default. A
/// separate struct holds settings that several structs share; `with` includes it with its keys.
///
/// ```
/// clearway_units::parameters! {
///     /// Settings of a queue.
///     pub struct QueueParameters {
///         /// Bytes above which arrivals are dropped.
///         pub limit: clearway_units::RelativeSize = clearway_units::RelativeSize::percent_of_bdp(500), "limit", "STrack §4.1";
///     }
/// }
/// use clearway_units::{ParameterSet, Value};
/// let mut queue = QueueParameters::default();
/// queue.set("limit", &Value::Text("1MB".into())).unwrap();
/// assert_eq!(queue.entries()[0].1.to_string(), "\"1MB\"");
/// assert_eq!(QueueParameters::describe()[0].meaning, "Bytes above which arrivals are dropped.");
///
/// clearway_units::parameters! {
///     /// Settings of a port.
///     pub struct PortParameters {
///         /// Number of the port.
///         pub number: u32 = 0, "port", "nowhere";
///         with {
///             /// Settings of the port's queue.
///             pub queue: QueueParameters,
///         }
///     }
/// }
/// let mut port = PortParameters::default();
/// port.set("limit", &Value::Text("2MB".into())).unwrap();
/// assert_eq!(port.queue.entries(), port.entries()[1..]);
/// ```
#[macro_export]
macro_rules! parameters {
    (
        $(#[$struct_meta:meta])*
        pub struct $name:ident {
            $(
                $(#[doc = $doc:literal])+
                pub $field:ident: $type:ty = $default:expr, $key:literal, $source:literal;
            )*
            $(with {
                $($(#[doc = $group_doc:literal])+ pub $group:ident: $group_type:ty,)+
            })?
        }
    ) => {
        $(#[$struct_meta])*
        #[derive(Debug, Clone, PartialEq)]
        pub struct $name {
            $($(#[doc = $doc])+ #[doc = concat!("\n\nKey `", $key, "`. Source: ", $source, ".")] pub $field: $type,)*
            $($($(#[doc = $group_doc])+ pub $group: $group_type,)+)?
        }

        impl Default for $name {
            fn default() -> Self {
                Self { $($field: $default,)* $($($group: Default::default(),)+)? }
            }
        }

        impl $crate::ParameterSet for $name {
            fn describe() -> Vec<$crate::ParameterInfo> {
                let defaults = Self::default();
                let _ = &defaults;
                [
                    vec![$($crate::ParameterInfo {
                        key: $key,
                        default: $crate::Parameter::to_value(&defaults.$field),
                        expected: <$type as $crate::Parameter>::expected(),
                        domain: <$type as $crate::Parameter>::domain(),
                        meaning: [$($doc.trim()),+].join(" "),
                        source: $source,
                    },)*],
                    $($(<$group_type as $crate::ParameterSet>::describe(),)+)?
                ]
                .concat()
            }

            fn set(&mut self, key: &str, value: &$crate::Value) -> Result<(), $crate::SetError> {
                match key {
                    $($key => {
                        self.$field = $crate::Parameter::from_value(value).ok_or_else(|| {
                            $crate::SetError::bad_value::<$type>(value)
                        })?;
                        Ok(())
                    })*
                    _ => {
                        let _ = value;
                        $($(match $crate::ParameterSet::set(&mut self.$group, key, value) {
                            Err($crate::SetError::UnknownKey) => {}
                            result => return result,
                        })+)?
                        Err($crate::SetError::UnknownKey)
                    }
                }
            }

            fn entries(&self) -> Vec<(&'static str, $crate::Value)> {
                [
                    vec![$(($key, $crate::Parameter::to_value(&self.$field)),)*],
                    $($($crate::ParameterSet::entries(&self.$group),)+)?
                ]
                .concat()
            }
        }
    };
}

#[cfg(test)]
#[expect(
    unreachable_pub,
    reason = "the macro declares pub structs for other crates"
)]
mod tests {
    use super::*;
    use crate::Span;

    parameters! {
        /// A set for the tests.
        pub struct Sample {
            /// Length of the wait.
            /// Longer than a line.
            pub wait: Span = Span::from_us(1), "wait", "nowhere";
            /// Number, if known.
            pub count: Option<u32> = None, "limits.count", "nowhere";
        }
    }

    #[test]
    fn one_declaration_gives_keys_defaults_and_text() {
        let info = Sample::describe();
        assert_eq!(info[0].meaning, "Length of the wait. Longer than a line.");
        assert_eq!(info[1].key, "limits.count");
        assert_eq!(info[1].default.to_string(), "\"auto\"");
        assert_eq!(info[0].domain, ValueDomain::Duration);
        let most = u32::MAX.into();
        assert_eq!(
            info[1].domain,
            ValueDomain::Whole { least: 0, most }.or_word("auto")
        );
        let mut sample = Sample::default();
        sample.set("limits.count", &Value::Integer(3)).unwrap();
        assert_eq!(sample.count, Some(3));
        assert_eq!(
            sample.set("speed", &Value::Integer(3)),
            Err(SetError::UnknownKey)
        );
        let Err(SetError::BadValue { expected }) = sample.set("wait", &Value::Integer(3)) else {
            panic!("a number is not a duration");
        };
        assert_eq!(
            expected,
            "a duration such as \"1us\" or \"250ns\"; a duration has a unit, one of s, ms, us, µs, ns, ps: write \"3us\" if that is meant"
        );
    }

    parameters! {
        /// Takes in another.
        pub struct Outer {
            /// Number of repetitions.
            pub times: u32 = 1, "times", "nowhere";
            with {
                /// The sample.
                pub sample: Sample,
            }
        }
    }

    #[test]
    fn a_group_brings_its_keys() {
        let keys: Vec<_> = Outer::describe().iter().map(|info| info.key).collect();
        assert_eq!(keys, ["times", "wait", "limits.count"]);
        let mut outer = Outer::default();
        outer.set("times", &Value::Integer(2)).unwrap();
        outer.set("wait", &Value::Text("3us".into())).unwrap();
        assert_eq!(outer.entries()[1], ("wait", Value::Text("3us".into())));
        assert_eq!((outer.times, outer.sample.wait), (2, Span::from_us(3)));
        assert!(matches!(
            outer.set("wait", &Value::Integer(3)),
            Err(SetError::BadValue { .. })
        ));
        assert_eq!(
            outer.set("speed", &Value::Integer(3)),
            Err(SetError::UnknownKey)
        );
    }
}
