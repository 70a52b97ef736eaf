//! Rules of a transport that a NIC can break.

use clearway_units::{ParameterInfo, ParameterSet, SetError, Value, choices};

choices! {
    /// Rule that a NIC breaks.
    pub enum Misbehaviour {
        /// A flow that has sent all says so to its links.
        Leaving = "leaving",
        /// A flow announces how many connections its host has open.
        Weight = "weight",
        /// A flow sends at the rate that links have allocated.
        Rate = "rate",
        /// A flow sends within the limits of its controller.
        Marks = "marks",
    }
}

/// Rule that the NIC of a flow breaks; `None` for an ordinary NIC. No key of a scenario sets it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct MisbehavingNic(pub Option<Misbehaviour>);

impl ParameterSet for MisbehavingNic {
    fn describe() -> Vec<ParameterInfo> {
        Vec::new()
    }
    fn set(&mut self, _: &str, _: &Value) -> Result<(), SetError> {
        Err(SetError::UnknownKey)
    }
    fn entries(&self) -> Vec<(&'static str, Value)> {
        Vec::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_key_of_a_scenario_disobeys() {
        assert!(MisbehavingNic::describe().is_empty());
        let told = MisbehavingNic::default().set("misbehaviour", &Value::Boolean(true));
        assert_eq!(told, Err(SetError::UnknownKey));
    }
}
