//! The top of a scenario: name, seed and limits.

use crate::section::Section;
use clearway_units::{ParameterInfo, ParameterSet, SetError, Span, Value};

clearway_units::parameters! {
    /// The top of a scenario.
    pub struct General {
        /// Name of the scenario; the result folder is named after it.
        pub name: String = "unnamed".into(), "name", "the user";
        /// Seed of all random streams.
        pub seed: u64 = 1, "seed", "decision";
        /// Simulated time after which a run stops although flows or jobs are not done, counted from the first start of a flow by the
        /// clock or of a job.
        pub at_most: Span = Span::from_ms(1000), "stop.at-most", "decision";
        /// Time from an event until a trigger starts a flow on another host; at least, and with "auto", the shortest delay of a
        /// link. On one host triggers act at once.
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
