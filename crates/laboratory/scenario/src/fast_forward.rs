//! The `[fast-forward]` section: calls of collectives that repeat are simulated a few times, and remembered after that; time in which long
//! flows are steady is skipped.

use crate::entries::in_section;
use crate::error::ScenarioError;
use crate::locations::SourceLocations;
use crate::section::{Section, fill};
use crate::source::Entry;
use clearway_units::{Parameter, ParameterInfo, ParameterSet, SetError, Value, ValueDomain};

/// A share, written as `"1%"` or `0.01`.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd)]
pub struct Percent(f64);

impl Percent {
    /// The share as a fraction of one.
    pub fn fraction(self) -> f64 {
        self.0
    }
}

impl Parameter for Percent {
    fn expected() -> String {
        "a share of 0 to 1, such as \"1%\" or `0.01`".into()
    }
    fn domain() -> ValueDomain {
        ValueDomain::Words(vec!["0.1%", "1%", "5%"])
    }
    fn from_value(value: &Value) -> Option<Self> {
        let fraction = match value {
            Value::Text(text) => {
                let number: f64 = text.strip_suffix('%')?.trim_end().parse().ok()?;
                number / 100.0
            }
            Value::Float(number) => *number,
            Value::Integer(number) => *number as f64,
            _ => return None,
        };
        (0.0..=1.0).contains(&fraction).then_some(Self(fraction))
    }
    fn to_value(&self) -> Value {
        // Twelve digits hide the error of the division by 100.
        let text = format!("{:.12}", self.0 * 100.0);
        let text = text.trim_end_matches('0').trim_end_matches('.');
        Value::Text(format!("{text}%"))
    }
}

clearway_units::parameters! {
    /// `[fast-forward]`.
    pub struct FastForward {
        /// Error that the simulated time may have, such as "1%"; "auto" simulates every packet. Jobs whose calls of collectives repeat are
        /// simulated until the transfer times of a call are known within half of this error, and then take remembered times. In runs
        /// without such jobs, time is skipped while the rates of all flows are known within half of it.
        pub error: Option<Percent> = None, "error", "decision: off";
        /// Share of the calls that would be remembered, or of the stretches of time that would be skipped, that are simulated to check the
        /// rest.
        pub verify: Percent = Percent(0.0), "verify", "decision";
    }
}

impl Section for FastForward {
    fn set(&mut self, key: &str, value: &Value) -> Result<(), SetError> {
        ParameterSet::set(self, key, value)
    }
    fn keys(&self) -> Vec<ParameterInfo> {
        Self::describe()
    }
}

impl FastForward {
    /// Entries of a resolved scenario: none if every packet is simulated.
    pub(crate) fn written(&self) -> Vec<(&'static str, Value)> {
        match self.error {
            None => Vec::new(),
            Some(_) => self.entries(),
        }
    }

    /// Reads the section.
    ///
    /// # Errors
    /// At the first invalid entry.
    pub(crate) fn read(entries: &[Entry], places: &SourceLocations) -> Result<Self, ScenarioError> {
        let mut own = Self::default();
        let entries = in_section(entries, "fast-forward", 0);
        fill("[fast-forward]", &mut own, &entries)?;
        own.check()
            .map_err(|error| error.or_in(places, "fast-forward", 0))?;
        Ok(own)
    }

    fn check(&self) -> Result<(), ScenarioError> {
        match self.error {
            Some(error) if !(1e-6..=0.5).contains(&error.fraction()) => Err(ScenarioError::about(
                &["error"],
                format!("an error of {}", error.to_value()),
                "write \"0.0001%\" to \"50%\", or leave it out to simulate every packet",
            )),
            None if self.verify.fraction() > 0.0 => Err(ScenarioError::about(
                &["verify"],
                "nothing is remembered that could be verified",
                "write an error as well, as in `fast-forward.error = \"1%\"`",
            )),
            _ => Ok(()),
        }
    }
}
