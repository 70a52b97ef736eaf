//! Data-centre traffic: every host is an independent Poisson source.

use super::{BuildContext, LoadedWorkload, WorkloadDefinition, chosen_hosts};
use crate::SizeSource;
use clearway_units::{HostId, Span, Time, parameters};
use clearway_workload::{Arrivals, PoissonSource};
use clearway_workload::{Workload, WorkloadError};

/// Maximum expected number of flows of one section. So many flows take several GB.
const MOST_FLOWS: f64 = 50e6;

parameters! {
    /// Every host is an independent Poisson source of flows, each to one of the other hosts at random.
    pub struct PoissonSettings {
        /// Distribution of flow sizes: "hadoop", "websearch", "ali-storage", or the path of a file. Each line of the file has a size in
        /// bytes and the percentage of flows up to it, from 0 to 100 percent. The file is searched beside the scenario, then in the current
        /// folder.
        pub sizes: SizeSource = SizeSource::default(), "sizes", "HPCC §5.1: Facebook's Hadoop";
        /// Average payload that each host offers, as a share of the rate of its NIC (or of all its NICs together), above 0 and at most 1.
        /// Headers come on top, as in HPCC's traffic generator: with 48 bytes for each 1000 of payload, 50 % is a load of 52.4 %.
        pub load: f64 = 0.5, "load", "HPCC §5.1: 0.3 and 0.5";
        /// Length of the time in which flows start. A run goes on until all of them have ended, or until `stop.at-most`.
        pub duration: Span = Span::from_ms(1), "duration", "decision";
        /// Time from which flows start.
        pub start: Time = Time::ZERO, "start", "the start of the run";
        /// Number of hosts that send and receive, from host 0 on; "auto": all.
        pub hosts: Option<u32> = None, "hosts", "all hosts";
    }
}

impl WorkloadDefinition for PoissonSettings {
    const NAME: &'static str = "poisson";
    const SUMMARY: &'static str = "data-centre traffic: Poisson arrivals at each host, sizes of a published distribution or a file";

    fn load(&self, context: &BuildContext<'_>) -> Result<LoadedWorkload, WorkloadError> {
        let workload = Workload {
            flows: self.sources(context)?.collect(),
            triggers: Vec::new(),
        };
        Ok(workload.into())
    }

    fn arrivals(&self, context: &BuildContext<'_>) -> Result<Option<Arrivals>, WorkloadError> {
        self.sources(context).map(Some)
    }

    fn files(&self) -> Vec<&'static str> {
        match self.sizes {
            SizeSource::Published(_) => Vec::new(),
            SizeSource::File(_) => vec!["sizes"],
        }
    }
}

impl PoissonSettings {
    /// The flows in the order of their starts.
    fn sources(&self, context: &BuildContext<'_>) -> Result<Arrivals, WorkloadError> {
        let hosts = chosen_hosts::<Self>("hosts", self.hosts, context)?;
        if hosts < 2 {
            let message = "a single host has nobody to send to";
            return Err(Self::fault("hosts", message, "take 2 hosts or more"));
        }
        // `!(a > 0.0)` also rejects NaN.
        if !(self.load > 0.0 && self.load <= 1.0) {
            let message = format!("a load of {}", self.load);
            let fix = "write a share of the rate of a NIC above 0 and at most 1, as in 0.5";
            return Err(Self::fault("load", message, fix));
        }
        let end = self.start.saturating_add(self.duration);
        if end.is_never() {
            let message = format!(
                "{} after {} is beyond the longest run",
                self.duration, self.start
            );
            return Err(Self::fault(
                "duration",
                message,
                "choose a shorter duration",
            ));
        }
        let sizes = self.sizes.read::<Self>("sizes", context.base_dir)?;
        let bits = 8.0 * sizes.mean();
        let sources = (0..hosts).map(HostId).map(|host| {
            let offered = self.load * context.nic_rates[host.index()].as_bps() as f64;
            PoissonSource::new(context.random_of(host), bits / offered * 1e12)
        });
        let sources: Vec<PoissonSource> = sources.collect();
        self.check_number(&sources)?;
        let arrivals = Arrivals::new(sources, sizes, self.start, end);
        if arrivals.is_empty() {
            let message = format!("no flow happens to start within {}", self.duration);
            let fix = "choose a longer duration, a higher `load` or another seed";
            return Err(Self::fault("duration", message, fix));
        }
        Ok(arrivals)
    }

    /// Rejects settings that would fill the memory.
    fn check_number(&self, sources: &[PoissonSource]) -> Result<(), WorkloadError> {
        let expected: f64 = sources
            .iter()
            .map(|source| self.duration.as_ps() as f64 / source.mean_gap())
            .sum();
        if expected <= MOST_FLOWS {
            return Ok(());
        }
        let millions = |flows: f64| (flows / 1e6 + 0.5) as u64;
        let message = format!(
            "{} hosts at a load of {} make about {} million flows in {}",
            sources.len(),
            self.load,
            millions(expected),
            self.duration
        );
        let longest = (self.duration.as_ps() as f64 * MOST_FLOWS / expected) as u64;
        // Two digits are enough for a suggestion.
        let unit = 10u64.pow(longest.max(1).ilog10().saturating_sub(1));
        let longest = Span::from_ps(longest / unit * unit);
        let fix = format!(
            "choose a duration of at most {longest}, or a lower load: {} million flows are the most",
            millions(MOST_FLOWS)
        );
        Err(Self::fault("duration", message, fix))
    }
}

#[cfg(test)]
mod tests;
