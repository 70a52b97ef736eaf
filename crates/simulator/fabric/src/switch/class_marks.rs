//! ECN thresholds of a class of data, known in switches as the WRED profile of a queue.

use crate::topology::first_channel;
use clearway_transport::Class;
use clearway_units::{Bytes, Parameter, Rate, RelativeSize, Value, ValueDomain};
use std::fmt;
use std::str::FromStr;

/// Thresholds of one class, in place of the common ones. Written as `"2: kmin=25%bdp kmax=75%bdp pmax=1.0"`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ClassMarks {
    /// The class: the `priority` of its flows.
    pub class: Class,
    /// Queue up to which nothing is marked.
    pub kmin: RelativeSize,
    /// Queue above which everything is marked.
    pub kmax: RelativeSize,
    /// Probability of a mark just below `kmax`, at most 1.
    pub pmax: f64,
}

impl fmt::Display for ClassMarks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            class,
            kmin,
            kmax,
            pmax,
        } = self;
        write!(
            f,
            "{}: kmin={kmin} kmax={kmax} pmax={pmax:?}",
            class.index()
        )
    }
}

impl FromStr for ClassMarks {
    type Err = ();
    fn from_str(text: &str) -> Result<Self, ()> {
        let (class, rest) = text.split_once(':').ok_or(())?;
        let class = class.trim().parse().ok().and_then(Class::new).ok_or(())?;
        let (mut kmin, mut kmax, mut pmax) = (None, None, None);
        for word in rest.split_whitespace() {
            let is_new = match word.split_once('=').ok_or(())? {
                ("kmin", size) => kmin.replace(size.parse().map_err(drop)?).is_none(),
                ("kmax", size) => kmax.replace(size.parse().map_err(drop)?).is_none(),
                ("pmax", share) => pmax.replace(share.parse().map_err(drop)?).is_none(),
                _ => false,
            };
            is_new.then_some(()).ok_or(())?;
        }
        let (Some(kmin), Some(kmax), Some(pmax)) = (kmin, kmax, pmax) else {
            return Err(());
        };
        let fits = class.is_data() && (0.0..=1.0).contains(&pmax);
        let marks = Self {
            class,
            kmin,
            kmax,
            pmax,
        };
        fits.then_some(marks).ok_or(())
    }
}

impl Parameter for ClassMarks {
    fn expected() -> String {
        "a priority from 1 to 7 with its thresholds, such as \"2: kmin=25%bdp kmax=75%bdp pmax=1.0\"".into()
    }
    fn domain() -> ValueDomain {
        ValueDomain::Text
    }
    fn from_value(value: &Value) -> Option<Self> {
        match value {
            Value::Text(text) => text.parse().ok(),
            _ => None,
        }
    }
    fn to_value(&self) -> Value {
        Value::Text(self.to_string())
    }
}

/// Thresholds at a port, in bytes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Thresholds {
    pub(super) kmin: u64,
    pub(super) kmax: u64,
    /// `pmax` in units of 2^-32.
    pub(super) pmax: u64,
}

impl Thresholds {
    /// Thresholds at a port of this rate and bandwidth-delay product.
    pub(super) fn new(
        [kmin, kmax]: [RelativeSize; 2],
        pmax: f64,
        (rate, bdp): (Rate, Bytes),
    ) -> Self {
        let size = |size: RelativeSize| size.resolve(rate, bdp).as_u64().min(u32::MAX.into());
        Self {
            kmin: size(kmin),
            kmax: size(kmax),
            pmax: (pmax.clamp(0.0, 1.0) * (1u64 << 32) as f64) as u64,
        }
    }
}

/// Thresholds of all classes at a port, by their numbers.
#[derive(Debug, Clone)]
pub(super) struct ByClass(Box<[Thresholds; Class::COUNT]>);

impl ByClass {
    /// Thresholds of `own` classes, and `others` for the rest; `None` if no class has its own.
    pub(super) fn new(own: &[ClassMarks], others: Thresholds, port: (Rate, Bytes)) -> Option<Self> {
        let mut all = Box::new([others; Class::COUNT]);
        for marks in own {
            all[marks.class.index()] = Thresholds::new([marks.kmin, marks.kmax], marks.pmax, port);
        }
        (!own.is_empty()).then_some(Self(all))
    }

    /// The same on both virtual channels of each class.
    pub(super) fn on_both_channels(mut self) -> Self {
        for class in (0..Class::COUNT as u8).filter_map(Class::new) {
            self.0[class.index()] = self.0[first_channel(class).index()];
        }
        self
    }

    pub(super) fn thresholds(&self, class: Class) -> &Thresholds {
        &self.0[class.index()]
    }

    /// The least queue at which any class of data is marked.
    pub(super) fn least(&self) -> u64 {
        let data = self.0.iter().skip(1);
        data.map(|own| own.kmin).min().unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_read_and_written() {
        let text = "2: kmin=25%bdp kmax=40us pmax=0.5";
        let marks: ClassMarks = text.parse().unwrap();
        assert_eq!(marks.to_string(), text);
        for wrong in [
            "",
            "2",
            "0: kmin=1KB kmax=2KB pmax=1",
            "8: kmin=1KB kmax=2KB pmax=1",
            "2: kmin=1KB kmax=2KB",
            "2: kmin=1KB kmin=1KB kmax=2KB pmax=1",
            "2: kmin=1KB kmax=2KB pmax=1.5",
            "2: kmin=1 kmax=2KB pmax=1",
            "2: low=1KB kmax=2KB pmax=1",
        ] {
            assert_eq!(wrong.parse::<ClassMarks>(), Err(()), "{wrong}");
        }
    }
}
