//! Settings that can be written in a file of jobs.

use clearway_planner::compatibility::{Demand, Phase};
use clearway_units::{Parameter, Rate, Span, Value, ValueDomain};

clearway_units::parameters! {
    /// Top-level keys of a file of jobs.
    pub struct JobsGeneral {
        /// Name of the plan; its folder is named after it.
        pub name: String = "unnamed".into(), "name", "the user";
        /// Seed of all random streams, routes included, if there is a network.
        pub seed: u64 = 1, "seed", "decision";
    }
}

clearway_units::parameters! {
    /// Link that jobs share.
    pub struct LinkSection {
        /// Name of the link.
        pub name: String = String::new(), "name", "the user";
        /// Rate of the link; it matters only to demands that are rates.
        pub rate: Rate = Rate::from_gbps(400), "rate", "STrack §4.2";
    }
}

clearway_units::parameters! {
    /// Training job: one iteration, and its placement.
    pub struct JobSection {
        /// Name of the job.
        pub name: String = String::new(), "name", "the user";
        /// Time at the beginning of an iteration in which the job only computes.
        pub compute: Option<Span> = None, "compute", "the user";
        /// Time after `compute` in which the job communicates.
        pub communication: Option<Span> = None, "communication", "the user";
        /// Iteration time of the job alone; "auto" is `compute` plus `communication`.
        pub period: Option<Span> = None, "period", "the user";
        /// Arcs in which the job communicates, from the beginning of the iteration, instead of `compute` and `communication`, such as
        /// "141ms..255ms". An arc can have a separate demand: "10ms..20ms at 0.5", "10ms..20ms at 25Gbps".
        pub arcs: Vec<Arc> = Vec::new(), "arcs", "the user";
        /// Arcs in which the job computes, written as in `arcs`; they matter only to jobs that share GPUs.
        pub compute_arcs: Vec<Arc> = Vec::new(), "compute-arcs", "the user";
        /// Demand of the job's communication on each link: a share, or a rate.
        pub demand: Demand = Demand::WHOLE, "demand", "HotNets'22 §3: all of it";
        /// Links that the job loads.
        pub links: Vec<String> = Vec::new(), "links", "the user";
        /// Hosts of the job's ranks, instead of `links`, if there is a `[topology]`; the job loads the links of its routes. Keys that begin
        /// with `workload.` are keys of a scenario's `[[workload]]`, by default `workload.kind = "ring-all-reduce"` of the size that takes
        /// as long as `communication`.
        pub hosts: Vec<u32> = Vec::new(), "hosts", "the user";
        /// GPUs that the job computes on; jobs that name the same GPU share it.
        pub gpus: Vec<String> = Vec::new(), "gpus", "the user";
    }
}

clearway_units::parameters! {
    /// Alternative placement of a job.
    pub struct PlacementSection {
        /// Name of the job.
        pub job: String = String::new(), "job", "the user";
        /// Name of the placement.
        pub name: String = String::new(), "name", "the user";
        /// Links that the job would load.
        pub links: Vec<String> = Vec::new(), "links", "the user";
        /// Hosts that the job's ranks would be on, if there is a `[topology]`.
        pub hosts: Vec<u32> = Vec::new(), "hosts", "the user";
        /// GPUs that the job would compute on.
        pub gpus: Vec<String> = Vec::new(), "gpus", "the user";
    }
}

/// A phase, as written by a user: `141ms..255ms at 0.5`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Arc {
    /// Beginning of the phase.
    pub from: Span,
    /// End of the phase.
    pub to: Span,
    /// Demand of the phase, if it differs from the job's demand.
    pub demand: Option<Demand>,
}

impl Arc {
    /// The phase; `demand` is the job's demand.
    pub(super) fn phase(&self, demand: Demand) -> Phase {
        Phase {
            start: self.from,
            length: self.to.saturating_sub(self.from),
            demand: self.demand.unwrap_or(demand),
        }
    }

    fn read(text: &str) -> Option<Self> {
        let (span, demand) = match text.split_once(" at ") {
            Some((span, demand)) => (span, Some(demand.trim())),
            None => (text, None),
        };
        let (from, to) = span.split_once("..")?;
        let demand = match demand {
            None => None,
            Some(demand) => Some(match demand.parse::<f64>() {
                Ok(share) => Demand::from_value(&Value::Float(share))?,
                Err(_) => Demand::from_value(&Value::Text(demand.into()))?,
            }),
        };
        let span = |text: &str| text.trim().parse::<Span>().ok();
        Some(Self {
            from: span(from)?,
            to: span(to)?,
            demand,
        })
    }
}

impl Parameter for Arc {
    fn expected() -> String {
        "an arc such as \"141ms..255ms\" or \"141ms..255ms at 0.5\"".into()
    }
    fn domain() -> ValueDomain {
        ValueDomain::Text
    }
    fn from_value(value: &Value) -> Option<Self> {
        match value {
            Value::Text(text) => Self::read(text),
            _ => None,
        }
    }
    fn to_value(&self) -> Value {
        let demand = match self.demand {
            None => String::new(),
            Some(Demand::Share(share)) => format!(" at {share}"),
            Some(Demand::Rate(rate)) => format!(" at {rate}"),
        };
        Value::Text(format!("{}..{}{demand}", self.from, self.to))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arcs_are_read_as_they_are_written() {
        for text in ["141ms..255ms", "0s..1us at 0.5", "5ms..6ms at 25Gbps"] {
            let arc = Arc::from_value(&Value::Text(text.into())).expect(text);
            assert_eq!(arc.to_value(), Value::Text(text.into()));
        }
        for text in [
            "",
            "5ms",
            "5ms..",
            "5..6",
            "1ms..2ms at",
            "1ms..2ms at 1.5",
            "1ms..2ms at 0",
            "1ms..2ms at fast",
        ] {
            assert_eq!(Arc::from_value(&Value::Text(text.into())), None, "{text}");
        }
    }
}
