//! Units of measures.

use crate::operation_summary::number;
use crate::quantity::{count, factor, microseconds, plain, prefixed};
use clearway_results::{FigureUnit, TotalUnit};
use serde::Serialize;

/// Unit of a measure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Unit {
    /// Microseconds.
    Us,
    /// A number from −1 to 1, whose ratios are meaningless.
    Index,
    /// A multiple.
    Ratio,
    /// A part of a whole, shown in percent.
    Fraction,
    /// Bits per second.
    Bps,
    /// 10⁹ bytes per second.
    #[serde(rename = "gb_per_s")]
    GigabytesPerSecond,
    /// Flows.
    Flows,
    /// Packets and similar totals.
    #[serde(untagged)]
    Total(TotalUnit),
    /// Units of figures of operations.
    #[serde(untagged)]
    Figure(FigureUnit),
}

impl Unit {
    /// True if more of a measure in this unit is better, false if less is.
    pub fn is_more_better(self) -> bool {
        matches!(
            self,
            Self::Index
                | Self::Bps
                | Self::GigabytesPerSecond
                | Self::Flows
                | Self::Figure(FigureUnit::FlitsPerCycle | FigureUnit::Operations)
        )
    }

    /// A value as a cost, of which less is better.
    pub fn cost(self, value: f64) -> f64 {
        match self.is_more_better() {
            true => -value,
            false => value,
        }
    }

    /// A value for people.
    pub fn print(self, value: f64) -> String {
        if value < 0.0 && self != Self::Index {
            return format!("-{}", self.print(-value));
        }
        match self {
            Self::Us => microseconds(value),
            // A value that rounds to zero has no sign.
            Self::Index => format!("{:.3}", (value * 1000.0).round() / 1000.0 + 0.0),
            Self::Ratio => factor(value),
            Self::Fraction => format!("{:.2} %", 100.0 * value),
            Self::Bps => {
                let number = prefixed(value);
                let space = if number.contains(' ') { "" } else { " " };
                format!("{number}{space}bps")
            }
            Self::GigabytesPerSecond => format!("{} GB/s", plain(value)),
            Self::Figure(FigureUnit::Cycles) => format!("{} cycles", number(Some(value))),
            Self::Figure(_) => number(Some(value)),
            Self::Flows | Self::Total(_) if value.fract() == 0.0 => count(value as u64),
            // Means, and medians of even numbers of seeds, may be fractions.
            Self::Flows | Self::Total(_) => {
                let tenths = (value * 10.0).round() as u64;
                format!("{}.{}", count(tenths / 10), tenths % 10)
            }
        }
    }

    /// A range for people, `48.88..50.12 us`: a unit that both ends share appears once.
    pub(crate) fn print_range(self, low: f64, high: f64) -> String {
        let (low, high) = (self.print(low), self.print(high));
        let unit_of = |text: &str| {
            text.trim_start_matches(|c: char| !c.is_alphabetic())
                .to_owned()
        };
        let unit = unit_of(&high);
        match low.strip_suffix(&unit) {
            Some(number) if unit_of(&low) == unit => format!("{}..{high}", number.trim_end()),
            _ => format!("{low}..{high}"),
        }
    }
}
