//! Settings that can be written in a file of jobs.

use clearway_planner::compatibility::{Demand, Phase};
use clearway_units::{Parameter, Rate, Span, Value, ValueDomain};

clearway_units::parameters! {
    /// The top of a file of jobs.
    pub struct JobsGeneral {
        /// Name of the plan; its folder is named after it.
        pub name: String = "unnamed".into(), "name", "the user";
        /// Seed of all random streams where there is a network, and with it of the routes.
        pub seed: u64 = 1, "seed", "decision";
    }
}

clearway_units::parameters! {
    /// A link that jobs share.
    pub struct LinkSection {
        /// Name of the link.
        pub name: String = String::new(), "name", "the user";
        /// Rate of the link; matters only to demands that are rates.
        pub rate: Rate = Rate::from_gbps(400), "rate", "STrack §4.2";
    }
}

clearway_units::parameters! {
    /// A training job: one iteration, and where it runs.
    pub struct JobSection {
        /// Name of the job.
        pub name: String = String::new(), "name", "the user";
        /// Time in which it only computes, at the beginning of an iteration.
        pub compute: Option<Span> = None, "compute", "the user";
        /// Time in which it communicates, after that.
        pub communication: Option<Span> = None, "communication", "the user";
        /// Time of an iteration without anybody else; "auto" is `compute` and `communication`.
        pub period: Option<Span> = None, "period", "the user";
        /// Arcs in which it communicates, from the beginning of the iteration, instead of `compute` and `communication`, such as
        /// "141ms..255ms"; "10ms..20ms at 0.5" and "10ms..20ms at 25Gbps" have a demand of their own.
        pub arcs: Vec<Arc> = Vec::new(), "arcs", "the user";
        /// Arcs in which it computes, written as in `arcs`; they matter only to jobs that share GPUs.
        pub compute_arcs: Vec<Arc> = Vec::new(), "compute-arcs", "the user";
        /// Demand of its communication on each link: a share, or a rate.
        pub demand: Demand = Demand::WHOLE, "demand", "HotNets'22 §3: all of it";
        /// The links that it loads.
        pub links: Vec<String> = Vec::new(), "links", "the user";
        /// Hosts of its ranks, instead of `links`, where there is a `[topology]`: the job loads the links of its routes. Keys that begin
        /// with `workload.` are those of a `[[workload]]` of a scenario, by default `workload.kind = "ring-all-reduce"` of the size that
        /// takes as long as `communication`.
        pub hosts: Vec<u32> = Vec::new(), "hosts", "the user";
        /// The GPUs that it computes on; those with equal names are shared.
        pub gpus: Vec<String> = Vec::new(), "gpus", "the user";
    }
}

clearway_units::parameters! {
    /// Alternative placement of a job.
    pub struct PlacementSection {
        /// The job.
        pub job: String = String::new(), "job", "the user";
        /// Name of the placement.
        pub name: String = String::new(), "name", "the user";
        /// The links that the job would load.
        pub links: Vec<String> = Vec::new(), "links", "the user";
        /// The hosts that its ranks would be on, where there is a `[topology]`.
        pub hosts: Vec<u32> = Vec::new(), "hosts", "the user";
        /// The GPUs that it would compute on.
        pub gpus: Vec<String> = Vec::new(), "gpus", "the user";
    }
}

/// A phase as a user writes it: `141ms..255ms at 0.5`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Arc {
    /// Beginning of the phase.
    pub from: Span,
    /// End of the phase.
    pub to: Span,
    /// Demand of the phase, if it differs from that of the job.
    pub demand: Option<Demand>,
}

impl Arc {
    /// The phase; `demand` is that of the job.
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
