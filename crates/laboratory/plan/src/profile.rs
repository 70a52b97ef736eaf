//! Measured profile of a job: the job runs alone in the packet simulator, and the traffic on its busiest link becomes arcs.

use super::network::Changes;
use super::trials::{TrialOptions, run};
use super::{JobsFile, in_two};
use clearway_fabric::topology::LinkId;
use clearway_fabric::{Interests, Observer, Watch};
use clearway_planner::compatibility::{Demand, Job, JobProfile, Phase, Problem, Share};
use clearway_scenario::ScenarioError;
use clearway_transport::Packet;
use clearway_units::{Rate, Span, Time};

/// Number of iterations for a measurement; only the last one counts, because the transport has then settled.
const ITERATIONS: u32 = 3;
/// Approximate number of bins in an undisturbed iteration.
const BINS: u64 = 1000;
/// Share of a link's capacity below which a bin is quiet.
const QUIET: f64 = 0.02;
/// Shortest gap between phases as a share of the iteration; phases with a shorter gap are merged.
const SHORTEST_GAP: f64 = 0.01;
/// Resolution of a measured demand, as a share of the link's rate.
const RESOLUTION: f64 = 0.01;

/// Bytes of data on a link in each bin.
#[derive(Debug)]
struct Bins {
    link: LinkId,
    bin: Span,
    bytes: Vec<u64>,
}

impl Observer for Bins {
    fn interests(&self) -> Interests {
        Interests {
            departures: true,
            ..Interests::NONE
        }
    }

    fn on_departure(&mut self, end: Time, link: LinkId, packet: &Packet) {
        if link != self.link || !packet.can_be_trimmed() {
            return;
        }
        let at = (end.as_ps() / self.bin.as_ps()) as usize;
        if self.bytes.len() <= at {
            self.bytes.resize(at + 1, 0);
        }
        self.bytes[at] += u64::from(packet.size);
    }
}

/// A watched link.
struct Watched {
    rate: Rate,
    bin: Span,
    bytes: Vec<u64>,
}

impl Watched {
    /// Phases between `from` and `to` in which the link was busy, counted from `from`.
    fn phases(&self, from: Time, to: Time) -> Vec<Phase> {
        let full = self.rate.bytes_in(self.bin).as_u64() as f64;
        let period = to.since(from);
        let gap = Span::from_ps((period.as_ps() as f64 * SHORTEST_GAP) as u64);
        let mut runs: Vec<(Span, Span, u64)> = Vec::new();
        // The bin that begins before `from` also contains the end of the previous iteration.
        let first = from.as_ps().div_ceil(self.bin.as_ps()) as usize;
        for (at, &bytes) in self.bytes.iter().enumerate().skip(first) {
            if bytes as f64 <= full * QUIET {
                continue;
            }
            let begin = Time::ZERO.saturating_add(self.bin * at as u64);
            if begin >= to {
                break;
            }
            let start = begin.since(from);
            let end = (start + self.bin).min(period);
            match runs.last_mut() {
                Some((_, last, sum)) if start <= *last + gap => (*last, *sum) = (end, *sum + bytes),
                _ => runs.push((start, end, bytes)),
            }
        }
        let phase = |(start, end, bytes): (Span, Span, u64)| {
            let length = end - start;
            let mean = bytes as f64 / self.rate.bytes_in(length).as_u64().max(1) as f64;
            let steps = (mean / RESOLUTION + 0.5) as u64;
            let share = Share::new(steps as f64 * RESOLUTION).unwrap_or(Share::WHOLE);
            Phase {
                start,
                length,
                demand: Demand::Share(share),
            }
        };
        runs.into_iter()
            .filter(|(start, end, _)| start < end)
            .map(phase)
            .collect()
    }
}

impl JobsFile {
    /// The same jobs with phases measured in the simulator, each job alone on its first placement; `None` if the user stopped the
    /// measurement.
    ///
    /// # Errors
    /// If there is no network, it cannot be assembled, or a job does not finish on it.
    pub fn profiled(&self, options: &mut TrialOptions<'_>) -> Result<Option<Self>, ScenarioError> {
        let choices = vec![0; self.jobs.len()];
        let together = self.assembly(&choices, ITERATIONS, &Changes::default())?;
        let loads = together.job_loads();
        let mut jobs: Vec<Job> = self.problem.jobs().to_vec();
        for (index, job) in jobs.iter_mut().enumerate() {
            let rate = |link: LinkId| together.topology.cables[link.cable()].rate;
            let time = |(&link, bytes): (&LinkId, &f64)| (link, bytes / rate(link).as_bps() as f64);
            let busiest = loads[index].iter().map(time);
            let Some((link, _)) = busiest.max_by(|a, b| a.1.total_cmp(&b.1).then(b.0.cmp(&a.0)))
            else {
                continue;
            };
            let bin = (job.profile.period() / BINS).max(Span::from_us(1));
            let name = &self.jobs[index];
            let alone = together.alone(index);
            let mut observers = alone.per_domain(|| Bins {
                link,
                bin,
                bytes: Vec::new(),
            });
            let watch = Watch::by(&mut observers);
            let ran = run(&alone, &format!("{name} alone"), options, watch);
            if ran.interrupted {
                return Ok(None);
            }
            let last = ran.jobs[index].times.last();
            let over = last.and_then(|times| Some((times.begun, times.over?)));
            let Some((begun, over)) = over else {
                return Err(self.never_over(index));
            };
            let watched = Watched {
                rate: rate(link),
                bin,
                bytes: summed(observers),
            };
            job.profile = self.measured(index, &watched, begun, over)?;
        }
        let problem = Problem::new(self.problem.links().to_vec(), self.problem.gpus(), jobs)
            .expect("phases are shares, and nothing else is new");
        Ok(Some(Self {
            problem,
            profiled: true,
            ..self.clone()
        }))
    }

    fn measured(
        &self,
        index: usize,
        watched: &Watched,
        begun: Time,
        over: Time,
    ) -> Result<JobProfile, ScenarioError> {
        let period = over.since(begun);
        let compute = self.network()?.jobs[index].compute.min(period);
        let compute = (!compute.is_zero()).then(|| Phase::whole(Span::ZERO, compute));
        let phases = watched.phases(begun, over);
        JobProfile::new(period, phases, compute.into_iter().collect()).map_err(|error| {
            let (message, fix) = in_two(&error.to_string());
            let place = self.places.of_keys("job", index, &["hosts"]);
            let message = format!("job `{}`, as measured: {message}", self.jobs[index]);
            ScenarioError::at(&place, message, fix)
        })
    }

    fn never_over(&self, job: usize) -> ScenarioError {
        ScenarioError::at(
            &self.places.of_keys("job", job, &["hosts"]),
            format!(
                "job `{}` does not get through {ITERATIONS} iterations even alone",
                self.jobs[job]
            ),
            "simulate it with `clearway run`: packets may never arrive, or its links may be much slower than it needs",
        )
    }
}

/// Bytes of each bin, summed over all domains.
fn summed(observers: Vec<Bins>) -> Vec<u64> {
    let length = observers.iter().map(|bins| bins.bytes.len()).max();
    let mut sum = vec![0; length.unwrap_or(0)];
    for bins in observers {
        for (total, bytes) in sum.iter_mut().zip(bins.bytes) {
            *total += bytes;
        }
    }
    sum
}
