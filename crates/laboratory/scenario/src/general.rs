//! The top of a scenario: name, seed and limits.

use crate::section::Section;
use clearway_units::{ParameterInfo, ParameterSet, SetError, Span, Value};

clearway_units::parameters! {
    /// Top-level keys of a scenario.
    pub struct General {
        /// Name of the scenario; the result folder is named after it.
        pub name: String = "unnamed".into(), "name", "the user";
        /// Seed of all random streams.
        pub seed: u64 = 1, "seed", "decision";
        /// Simulated time after which a run stops even if flows or jobs are not done. It counts from the first start of a job, or of a flow
        /// that waits for no other.
        pub at_most: Span = Span::from_ms(1000), "stop.at-most", "decision";
        /// Time from an event until a trigger starts a flow on another host. The minimum, and "auto", is the shortest delay of a link. On
        /// one host, triggers act at once.
        pub trigger_delay: Option<Span> = None, "trigger-delay", "decision: news does not travel faster than a link";
    }
}

impl Section for General {
    fn set(&mut self, key: &str, value: &Value) -> Result<(), SetError> {
        ParameterSet::set(self, key, value)
    }
    fn keys(&self) -> Vec<ParameterInfo> {
        Self::describe()
    }
}
