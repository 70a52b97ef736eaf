//! Values of keys as numbers.

use clearway_units::{Bytes, Rate, RelativeSize, Span, Value};

/// Kind of a quantity, with its base unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QuantityKind {
    /// Whole number.
    Whole,
    /// Number.
    Number,
    /// Time in picoseconds.
    Span,
    /// Rate in bits per second.
    Rate,
    /// Size in bytes.
    Size,
    /// Millionths of the bandwidth-delay product.
    OfBdp,
}

impl QuantityKind {
    /// Base unit.
    pub fn unit(self) -> &'static str {
        match self {
            Self::Whole | Self::Number => "",
            Self::Span => "ps",
            Self::Rate => "bit/s",
            Self::Size => "bytes",
            Self::OfBdp => "bdp/1000000",
        }
    }

    /// Common kind of values of this kind and of `other`.
    pub fn and(self, other: Self) -> Option<Self> {
        match (self, other) {
            (one, other) if one == other => Some(one),
            (Self::Whole, Self::Number) | (Self::Number, Self::Whole) => Some(Self::Number),
            _ => None,
        }
    }

    /// The value of `number` base units of this kind, rounded down if the kind has whole units.
    pub(crate) fn value(self, number: f64) -> Value {
        let whole = number as u64;
        match self {
            Self::Whole => Value::Integer(number as i64),
            Self::Number => Value::Float(number),
            Self::Span => Value::Text(Span::from_ps(whole).to_string()),
            Self::Rate => Value::Text(Rate::from_bps(whole).to_string()),
            Self::Size => Value::Text(Bytes::new(whole).to_string()),
            Self::OfBdp => Value::Text(RelativeSize::OfBdp { millionths: whole }.to_string()),
        }
    }
}

/// A value as a number of base units of its kind.
pub fn quantity(value: &Value) -> Option<(QuantityKind, f64)> {
    match value {
        Value::Integer(number) => Some((QuantityKind::Whole, *number as f64)),
        Value::Float(number) => Some((QuantityKind::Number, *number)),
        Value::Text(text) => of_text(text),
        Value::Boolean(_) | Value::List(_) => None,
    }
}

fn of_text(text: &str) -> Option<(QuantityKind, f64)> {
    let size: Result<RelativeSize, _> = text.parse();
    if let Ok(size) = size {
        return Some(match size {
            RelativeSize::Absolute(bytes) => (QuantityKind::Size, bytes.as_f64()),
            RelativeSize::OfBdp { millionths } => (QuantityKind::OfBdp, millionths as f64),
            RelativeSize::OfTime(span) => (QuantityKind::Span, span.as_ps() as f64),
        });
    }
    let rate: Rate = text.parse().ok()?;
    Some((QuantityKind::Rate, rate.as_bps() as f64))
}

/// All of `values` as numbers of one kind; `None` if they are not quantities of one kind.
pub fn quantities<'a>(values: impl Iterator<Item = &'a Value>) -> Option<(QuantityKind, Vec<f64>)> {
    let mut kind = None;
    let mut numbers = Vec::new();
    for value in values {
        let (own, number) = quantity(value)?;
        kind = Some(match kind {
            None => own,
            Some(kind) => own.and(kind)?,
        });
        numbers.push(number);
    }
    kind.map(|kind| (kind, numbers))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_become_numbers_of_their_base_unit() {
        let text = |text: &str| quantity(&Value::Text(text.into()));
        assert_eq!(text("5us"), Some((QuantityKind::Span, 5e6)));
        assert_eq!(text("64KB"), Some((QuantityKind::Size, 64e3)));
        assert_eq!(text("400Gbps"), Some((QuantityKind::Rate, 4e11)));
        assert_eq!(text("25%bdp"), Some((QuantityKind::OfBdp, 25e4)));
        assert_eq!(text("adaptive"), None);
        let mixed = [Value::Integer(1), Value::Float(0.5)];
        assert_eq!(
            quantities(mixed.iter()),
            Some((QuantityKind::Number, vec![1.0, 0.5]))
        );
        let unlike = [Value::Text("1us".into()), Value::Text("1KB".into())];
        assert_eq!(quantities(unlike.iter()), None);
    }

    #[test]
    fn numbers_become_the_values_they_were() {
        for text in ["5us", "64KB", "400Gbps", "25%bdp", "1.5bdp"] {
            let value = Value::Text(text.into());
            let (kind, number) = quantity(&value).unwrap();
            assert_eq!(kind.value(number), value);
        }
    }
}
