//! Bursts: the traffic of a section, again and again.

use super::{BuildContext, WorkloadDefinition};
use crate::LONGEST;
use clearway_units::{Purpose, RandomStream, Span, Time, parameters};
use clearway_workload::WorkloadError;
use std::num::NonZero;

/// Maximum number of flows in all bursts of a section: each flow takes memory before the run.
const MOST_FLOWS: u64 = 10_000_000;

parameters! {
    /// Repetition of the traffic of a section.
    pub struct Bursts {
        /// Number of bursts, each with the traffic of the section.
        pub count: NonZero<u32> = NonZero::<u32>::MIN, "count", "a single burst";
        /// Time between the starts of two bursts.
        pub period: Span = Span::ZERO, "period", "a single burst has none";
        /// Largest random delay of the start of each burst, independent of the other bursts.
        pub jitter: Span = Span::ZERO, "period-jitter", "bursts on time";
        /// Draw the permutation, or the senders and the receiver of an incast, again for each burst. If false, all bursts are between the
        /// hosts of the first one.
        pub redraw: bool = false, "redraw", "bursts alike";
    }
}

/// One of the bursts of a section.
#[derive(Debug)]
pub(super) struct Burst {
    /// Number of the burst, from 0.
    pub(super) number: u32,
    /// Start of the burst.
    pub(super) start: Time,
    /// Random numbers that only this burst uses.
    pub(super) random: RandomStream,
}

impl Burst {
    /// Label of the first flow, if each burst has `flows` flows. The labels of the other flows follow.
    pub(super) fn first_label(&self, flows: u32) -> u64 {
        u64::from(self.number) * u64::from(flows) + 1
    }
}

impl Bursts {
    /// Checks bursts of `flows` flows each, the first at `start`. Returns the latest start of the last burst.
    pub(super) fn check<D: WorkloadDefinition>(
        &self,
        start: Time,
        flows: u32,
    ) -> Result<Time, WorkloadError> {
        let count = u64::from(self.count.get());
        if count > 1 && self.period.is_zero() {
            let message = format!("{count} bursts at the same time");
            let fix = "write the time from one to the next, as in `period = \"1ms\"`";
            return Err(D::fault("period", message, fix));
        }
        if count * u64::from(flows) > MOST_FLOWS {
            let message = format!("{count} bursts of {flows} flows each");
            let fix = format!(
                "write a number up to {}: {MOST_FLOWS} flows are the most",
                (MOST_FLOWS / u64::from(flows)).max(1)
            );
            return Err(D::fault("count", message, fix));
        }
        let after = self.period.as_ps().checked_mul(count - 1);
        let after = after.filter(|&after| after <= LONGEST.as_ps());
        let Some(after) = after else {
            let message = format!(
                "{count} bursts, each {} after the one before, go on for more than {LONGEST} (30 days)",
                self.period
            );
            return Err(D::fault(
                "period",
                message,
                "choose a shorter period, or fewer bursts",
            ));
        };
        if self.jitter > LONGEST {
            let message = format!("bursts up to {} late", self.jitter);
            let fix = format!("use at most {LONGEST} (30 days)");
            return Err(D::fault("period-jitter", message, fix));
        }
        let delay = Span::from_ps(after) + self.jitter;
        let last = start.saturating_add(delay);
        if last.is_never() && !delay.is_zero() {
            let message = format!("bursts up to {delay} after {start} are beyond the longest run");
            return Err(D::fault("start", message, "choose an earlier start"));
        }
        Ok(last)
    }

    /// The bursts, in order; the first starts at `start`, plus its jitter.
    pub(super) fn each<'a>(
        &'a self,
        start: Time,
        context: &'a BuildContext<'_>,
    ) -> impl Iterator<Item = Burst> + 'a {
        (0..self.count.get()).map(move |number| {
            // Also for the first burst: its hosts come from the stream of the section, which other draws share.
            let entity = (u64::from(context.section) << 32) | u64::from(number);
            let mut random = RandomStream::new(context.seed, Purpose::Bursts, entity);
            let late = within(self.jitter, &mut random);
            Burst {
                number,
                start: start + self.period * u64::from(number) + late,
                random,
            }
        })
    }

    /// Warnings about settings that are probably mistakes. `is_drawn` is true if hosts are drawn at random.
    pub(super) fn warnings(&self, kind: &str, is_drawn: bool) -> Vec<String> {
        let single = self.count == NonZero::<u32>::MIN;
        let mut warnings = Vec::new();
        if single && !self.period.is_zero() {
            warnings.push(format!(
                "`period` = {} of the {kind} has no effect on a single burst; give the number of bursts, as in `count = 20`",
                self.period
            ));
        }
        if self.redraw && !is_drawn {
            warnings.push(format!(
                "`redraw` of the {kind} has no effect: neither senders nor receiver are drawn at random; set `placement = \"random\"`, or \
                 `receiver = \"random\"`"
            ));
        }
        warnings
    }
}

/// Uniform random time in `0..=spread`, always from one draw; the bias is below 2^-64.
pub(super) fn within(spread: Span, random: &mut RandomStream) -> Span {
    let instants = u128::from(spread.as_ps()) + 1;
    Span::from_ps(((u128::from(random.next_u64()) * instants) >> 64) as u64)
}

#[cfg(test)]
mod tests;
