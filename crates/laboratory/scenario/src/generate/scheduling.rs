//! Schedule of the communication of the jobs of a section.

use super::{PerJob, WorkloadDefinition};
use clearway_units::{Span, parameters};
use clearway_workload::Schedule;
use clearway_workload::WorkloadError;
use clearway_workload::rank::Slots;

parameters! {
    /// Slots in which the communication of a job may begin (HotNets '22 §4, "Flow scheduling").
    pub struct Scheduling {
        /// Time from one slot to the next; "0s": no slots, jobs communicate whenever they are ready.
        pub period: Span = Span::ZERO, "schedule.period", "none; HotNets '22 §4: the iteration of jobs that fit each other";
        /// Offset of the slot in each period, for all jobs or a list of one for each. In an iteration, the first message of a rank waits
        /// for the slot, unless the rank has received data from another rank.
        pub shift: PerJob<Span> = PerJob::All(Span::ZERO), "schedule.shift", "HotNets '22 §4: the rotation that makes phases fit";
        /// Time after a slot in which communication may still begin without waiting for the next slot.
        pub grace: Span = Span::ZERO, "schedule.grace", "HotNets '22 §4: precise slots";
        /// Largest delay of a rank's clock; each rank draws a constant from zero to this.
        pub skew: Span = Span::ZERO, "schedule.skew", "clocks agree";
    }
}

impl Scheduling {
    /// The schedule of job number `job` of a section with `jobs` jobs.
    pub(super) fn schedule<D: WorkloadDefinition>(
        &self,
        jobs: u32,
        job: u32,
    ) -> Result<Option<Schedule>, WorkloadError> {
        if self.period.is_zero() {
            if *self != Self::default() {
                let message = "slots without a period";
                let fix = "write `schedule.period` too, such as \"250ms\"";
                return Err(D::fault("schedule.period", message, fix));
            }
            return Ok(None);
        }
        if let Some(count) = self.shift.count().filter(|&count| count != jobs as usize) {
            let message = format!("{count} shifts for {jobs} jobs");
            let fix = "write one shift for all jobs, or one for each";
            return Err(D::fault("schedule.shift", message, fix));
        }
        if self.grace >= self.period {
            let message = format!("{} of grace in slots {} apart", self.grace, self.period);
            let fix = "write less than a period";
            return Err(D::fault("schedule.grace", message, fix));
        }
        let slots = Slots {
            period: self.period,
            shift: self.shift.get(job as usize),
            grace: self.grace,
            skew: Span::ZERO,
        };
        let skew = self.skew;
        Ok(Some(Schedule { slots, skew }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generate::TraceSettings;

    fn schedule(settings: &Scheduling, jobs: u32) -> Result<Option<Schedule>, String> {
        let schedule = settings.schedule::<TraceSettings>(jobs, jobs - 1);
        schedule.map_err(|error| match error {
            WorkloadError::Setting { message, .. } => message,
            error => error.message(),
        })
    }

    #[test]
    fn slots_are_those_of_the_job() {
        assert_eq!(schedule(&Scheduling::default(), 1), Ok(None));
        let settings = Scheduling {
            period: Span::from_us(100),
            shift: PerJob::Each(vec![Span::ZERO, Span::from_us(50)]),
            skew: Span::from_us(3),
            ..Scheduling::default()
        };
        let second = schedule(&settings, 2).unwrap().unwrap();
        assert_eq!(second.slots.shift, Span::from_us(50));
        assert_eq!(second.skew, Span::from_us(3));
        assert_eq!(
            schedule(&settings, 3),
            Err("2 shifts for 3 jobs".to_owned())
        );
        let late = Scheduling {
            grace: Span::from_us(100),
            shift: PerJob::All(Span::ZERO),
            ..settings
        };
        let fault = "100us of grace in slots 100us apart";
        assert_eq!(schedule(&late, 1), Err(fault.to_owned()));
        let no_period = Scheduling {
            period: Span::ZERO,
            ..late
        };
        let fault = Err("slots without a period".to_owned());
        assert_eq!(schedule(&no_period, 1), fault);
    }
}
