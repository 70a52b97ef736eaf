//! Values of a parameter, drawn only from its domain.

use crate::random_choices::RandomChoices;
use clearway_units::{Bytes, Parameter, ParameterInfo, Rate, Span, Value, ValueDomain};

/// Number of doublings and halvings around a default.
const DOUBLINGS: u32 = 8;

/// A value of `info`, near its default or far from it.
pub(crate) fn generated(info: &ParameterInfo, choices: &mut RandomChoices) -> Value {
    if choices.chance(0.05) {
        return info.default.clone();
    }
    of_domain(&info.domain, info, choices)
}

fn of_domain(domain: &ValueDomain, info: &ParameterInfo, choices: &mut RandomChoices) -> Value {
    match domain {
        ValueDomain::Duration | ValueDomain::Instant => duration(info, choices),
        ValueDomain::Rate => rate(info, choices),
        ValueDomain::Size => size(info, choices),
        ValueDomain::RelativeSize => relative_size(info, choices),
        ValueDomain::Whole { least, most } => whole(*least, *most, info, choices),
        ValueDomain::Number => number(info, choices),
        ValueDomain::Flag => Value::Boolean(info.default != Value::Boolean(true)),
        ValueDomain::Words(words) => text(choices.pick(words)),
        ValueDomain::Text => text(free_text(info, choices)),
        ValueDomain::List(items) => {
            let count = choices.below(4);
            let item = |_| of_domain(items, info, choices);
            Value::List((0..count).map(item).collect())
        }
        ValueDomain::Either(domains) => {
            let domain = choices.pick(domains).clone();
            of_domain(&domain, info, choices)
        }
    }
}

pub(crate) fn text(text: impl AsRef<str>) -> Value {
    Value::Text(text.as_ref().into())
}

/// The default as `T`; `None` if it is a word such as "auto".
fn default_of<T: Parameter>(info: &ParameterInfo) -> Option<T> {
    T::from_value(&info.default)
}

fn duration(info: &ParameterInfo, choices: &mut RandomChoices) -> Value {
    const EXTREMES: [&str; 6] = ["0s", "1ps", "1ns", "10ns", "1s", "2592000s"];
    if choices.chance(0.15) {
        return text(choices.pick(&EXTREMES));
    }
    let usual = default_of::<Span>(info).filter(|span| !span.is_zero());
    let usual = usual.unwrap_or(Span::from_us(5));
    Span::from_ps(choices.around(usual.as_ps(), DOUBLINGS)).to_value()
}

fn rate(info: &ParameterInfo, choices: &mut RandomChoices) -> Value {
    const USUAL: [&str; 9] = [
        "1Mbps", "1Gbps", "3Gbps", "10Gbps", "25Gbps", "100Gbps", "200Gbps", "400Gbps", "1600Gbps",
    ];
    match default_of::<Rate>(info) {
        Some(usual) if choices.chance(0.4) => {
            Rate::from_bps(choices.around(usual.as_bps(), DOUBLINGS).max(1)).to_value()
        }
        _ => text(choices.pick(&USUAL)),
    }
}

fn size(info: &ParameterInfo, choices: &mut RandomChoices) -> Value {
    const EXTREMES: [&str; 8] = [
        "0B",
        "1B",
        "63B",
        "64B",
        "65535B",
        "65536B",
        "50MB",
        "9223372036854775807B",
    ];
    if choices.chance(0.15) {
        return text(choices.pick(&EXTREMES));
    }
    let usual = default_of::<Bytes>(info).unwrap_or(Bytes::new(65_536));
    Bytes::new(choices.around(usual.as_u64(), DOUBLINGS)).to_value()
}

fn relative_size(info: &ParameterInfo, choices: &mut RandomChoices) -> Value {
    const USUAL: [&str; 12] = [
        "0B", "1B", "4096B", "9300B", "100KB", "1MB", "50MB", "1%bdp", "25%bdp", "0.5bdp", "2bdp",
        "100bdp",
    ];
    match choices.chance(0.05) {
        true => info.default.clone(),
        false => text(choices.pick(&USUAL)),
    }
}

fn whole(least: u64, most: u64, info: &ParameterInfo, choices: &mut RandomChoices) -> Value {
    const USUAL: [u64; 10] = [0, 1, 2, 3, 4, 5, 7, 8, 16, 33];
    let usual = match info.default {
        Value::Integer(usual) => u64::try_from(usual).unwrap_or(1),
        _ => 4,
    };
    let generated = match choices.below(20) {
        0 => most,
        1 => least,
        2..7 => choices.around(usual, 3),
        _ => *choices.pick(&USUAL),
    };
    let generated = generated.clamp(least, most);
    Value::Integer(i64::try_from(generated).unwrap_or(i64::MAX))
}

fn number(info: &ParameterInfo, choices: &mut RandomChoices) -> Value {
    const EXTREMES: [f64; 9] = [0.0, 1e-12, 1e-3, 0.1, 0.5, 1.0, 2.0, 100.0, 1e9];
    const FACTORS: [f64; 8] = [0.01, 0.1, 0.5, 0.9, 1.1, 2.0, 4.0, 16.0];
    let usual = default_of::<f64>(info).filter(|&usual| usual > 0.0);
    Value::Float(match usual {
        Some(usual) if choices.chance(0.6) => usual * choices.pick(&FACTORS),
        _ => *choices.pick(&EXTREMES),
    })
}

/// The default, or a word in quotes in the description of the parameter.
fn free_text(info: &ParameterInfo, choices: &mut RandomChoices) -> String {
    let quoted = info.meaning.split('"').skip(1).step_by(2);
    let mut words: Vec<&str> = quoted.collect();
    if let Value::Text(usual) = &info.default {
        words.push(usual);
    }
    words.push("storm");
    (*choices.pick(&words)).into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use clearway_units::ParameterSet;

    clearway_units::parameters! {
        /// One of each domain.
        pub struct All {
            /// A duration.
            pub duration: Span = Span::from_us(1), "duration", "nowhere";
            /// A rate.
            pub rate: Option<Rate> = None, "rate", "nowhere";
            /// A size.
            pub size: Bytes = Bytes::new(1), "size", "nowhere";
            /// A whole number.
            pub whole: u8 = 3, "whole", "nowhere";
            /// A number.
            pub number: f64 = 0.5, "number", "nowhere";
            /// A flag.
            pub flag: bool = true, "flag", "nowhere";
            /// A text, such as "so".
            pub text: String = String::new(), "text", "nowhere";
            /// A list.
            pub list: Vec<u8> = Vec::new(), "list", "nowhere";
        }
    }

    #[test]
    fn what_is_drawn_is_accepted_and_varies() {
        let mut choices = RandomChoices::new(1, 0);
        for info in All::describe() {
            let mut seen = std::collections::BTreeSet::new();
            for _ in 0..300 {
                let value = generated(&info, &mut choices);
                assert_eq!(All::default().set(info.key, &value), Ok(()), "{value}");
                seen.insert(value.to_string());
            }
            let least = if info.key == "flag" { 2 } else { 3 };
            assert!(seen.len() >= least, "{}: {seen:?}", info.key);
        }
    }
}
