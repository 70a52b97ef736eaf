//! Oversubscription of the leaves of a fabric.

use clearway_units::{Parameter, Value, ValueDomain};
use std::fmt;

/// Links down of a leaf for each link up, as a ratio of whole numbers in lowest terms.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Oversubscription {
    down: u32,
    up: u32,
}

/// Maximum of both numbers of a ratio.
const MOST: u32 = 65_535;
/// Maximum number of digits after the point in a ratio written as a decimal number.
const DECIMALS: i32 = 3;

impl Oversubscription {
    /// Equal numbers of links up and down.
    pub const NONE: Self = Self { down: 1, up: 1 };

    /// `down` links down for `up` links up; `None` if one of them is zero or too large.
    pub fn new(down: u32, up: u32) -> Option<Self> {
        let divisor = greatest_divisor(down, up);
        let (down, up) = (down.checked_div(divisor)?, up.checked_div(divisor)?);
        let fits = (1..=MOST).contains(&down) && (1..=MOST).contains(&up);
        fits.then_some(Self { down, up })
    }

    /// Links up of a leaf with `down` links down, if this is a whole number.
    pub(crate) fn links_up(self, down: u32) -> Option<u32> {
        self.spines(down, 1)
    }

    /// Spines for leaves with `down` links down and `parallel` links to each spine, if this is a whole number above zero.
    pub(crate) fn spines(self, down: u32, parallel: u32) -> Option<u32> {
        let (links, per_spine) = (
            u64::from(down) * u64::from(self.up),
            u64::from(self.down) * u64::from(parallel),
        );
        let is_whole = per_spine > 0 && links > 0 && links.is_multiple_of(per_spine);
        is_whole
            .then(|| links / per_spine)
            .and_then(|spines| u32::try_from(spines).ok())
    }

    /// Links up of a switch with `ports` ports, all of which lead up or down, if this is a whole number.
    pub(crate) fn links_up_of(self, ports: u32) -> Option<u32> {
        let (links, share) = (
            u64::from(ports) * u64::from(self.up),
            u64::from(self.multiple_of_ports()),
        );
        links.is_multiple_of(share).then(|| (links / share) as u32)
    }

    /// Number that must divide the ports of a switch.
    pub(crate) const fn multiple_of_ports(self) -> u32 {
        self.down + self.up
    }

    /// Number that must divide the links down of a leaf with `parallel` links to each spine.
    pub(crate) fn multiple(self, parallel: u32) -> Option<u32> {
        let per_spine = self.down.checked_mul(parallel)?;
        per_spine.checked_div(greatest_divisor(per_spine, self.up))
    }

    /// The ratio of a decimal number with at most `DECIMALS` digits after the point; `None` if the number has more.
    fn of_decimal(number: f64) -> Option<Self> {
        let unit = 10f64.powi(DECIMALS);
        let thousandths = number * unit;
        let whole = thousandths.round();
        let fits =
            (1.0..=f64::from(MOST) * unit).contains(&whole) && (thousandths - whole).abs() < 1e-6;
        fits.then(|| Self::new(whole as u32, unit as u32)).flatten()
    }
}

impl Default for Oversubscription {
    fn default() -> Self {
        Self::NONE
    }
}

impl fmt::Display for Oversubscription {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.down, self.up)
    }
}

impl Parameter for Oversubscription {
    fn expected() -> String {
        format!(
            "links down for each link up: a number above 0 such as 2 or 1.5, or a ratio such as \"3:2\", of numbers up to {MOST}"
        )
    }
    fn domain() -> ValueDomain {
        let whole = ValueDomain::Whole {
            least: 1,
            most: MOST.into(),
        };
        ValueDomain::Either(vec![whole, ValueDomain::Number])
    }
    fn from_value(value: &Value) -> Option<Self> {
        match value {
            Value::Text(text) => {
                let (down, up) = text.split_once(':')?;
                Self::new(down.trim().parse().ok()?, up.trim().parse().ok()?)
            }
            Value::Float(number) => Self::of_decimal(*number),
            value => Self::new(u32::from_value(value)?, 1),
        }
    }
    fn to_value(&self) -> Value {
        match self.up {
            1 => Value::Integer(self.down.into()),
            _ => Value::Text(self.to_string()),
        }
    }
}

/// The greatest common divisor.
const fn greatest_divisor(mut a: u32, mut b: u32) -> u32 {
    while b > 0 {
        (a, b) = (b, a % b);
    }
    a
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_are_read_in_every_form() {
        let text = |text: &str| Value::Text(text.into());
        for (value, down, up) in [
            (Value::Integer(4), 4, 1),
            (Value::Float(1.5), 3, 2),
            (Value::Float(2.0), 2, 1),
            (Value::Float(0.25), 1, 4),
            (Value::Float(1.125), 9, 8),
            (text("2:1"), 2, 1),
            (text("6 : 4"), 3, 2),
        ] {
            let read = Oversubscription::from_value(&value);
            assert_eq!(read, Some(Oversubscription { down, up }), "{value}");
            assert_eq!(
                Oversubscription::from_value(&read.unwrap().to_value()),
                read
            );
        }
        let wrong = [
            Value::Integer(0),
            Value::Integer(-1),
            Value::Integer(65_536),
            Value::Float(0.0),
            Value::Float(1.0001),
            Value::Float(f64::NAN),
            Value::Float(f64::INFINITY),
        ];
        for value in wrong
            .into_iter()
            .chain(["2", "2:0", "0:1", ":", "2:1:1", "a:b", "1.5:1"].map(text))
        {
            assert_eq!(Oversubscription::from_value(&value), None, "{value}");
        }
    }

    #[test]
    fn links_come_out_even_or_not_at_all() {
        let ratio = |down, up| Oversubscription::new(down, up).unwrap();
        assert_eq!(ratio(3, 2).spines(12, 1), Some(8));
        assert_eq!(ratio(3, 2).spines(12, 4), Some(2));
        assert_eq!(ratio(3, 2).spines(8, 1), None);
        assert_eq!(ratio(1, 1).spines(0, 1), None);
        assert_eq!(ratio(2, 1).spines(8, 0), None);
        assert_eq!(ratio(1, 2).spines(8, 1), Some(16), "more up than down");
        assert_eq!(ratio(3, 1).links_up_of(64), Some(16));
        assert_eq!(ratio(3, 2).links_up_of(40), Some(16));
        assert_eq!(ratio(3, 2).links_up_of(64), None);
        assert_eq!(ratio(3, 2).multiple(4), Some(6));
        assert_eq!(ratio(3, 2).multiple(1), Some(3));
        assert_eq!(ratio(2, 1).multiple(2), Some(4));
        for (down, up, parallel) in [(3, 2, 1), (3, 2, 4), (5, 4, 2), (2, 1, 3)] {
            let multiple = ratio(down, up).multiple(parallel).unwrap();
            let even = (1..200)
                .filter(|&down_links| ratio(down, up).spines(down_links, parallel).is_some());
            assert_eq!(
                even.collect::<Vec<_>>(),
                (multiple..200)
                    .step_by(multiple as usize)
                    .collect::<Vec<_>>()
            );
        }
    }
}
