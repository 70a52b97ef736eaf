//! Roofline of the GPUs, which estimates durations of computations.

use super::{GpuSpeed, TraceSettings};
use crate::generate::WorkloadDefinition;
use clearway_formats::{Roofline, TraceFormat};
use clearway_units::ByteRate;
use clearway_workload::WorkloadError;
use std::num::NonZero;

/// Maximum TFLOP/s of a GPU: far above any real GPU, and below a value in operations per second.
const MOST_TFLOPS: f64 = 1e6;

impl GpuSpeed {
    /// Roofline of the GPUs, if their peak performance is given.
    pub(crate) fn roofline(&self) -> Result<Option<Roofline>, WorkloadError> {
        let memory = self.memory_bandwidth.map(|ByteRate(rate)| rate);
        let Some(tflops) = self.peak_tflops else {
            return match memory {
                None => Ok(None),
                Some(_) => Err(TraceSettings::fault(
                    "memory-bandwidth",
                    "there is no `peak-tflops` with it",
                    "give both, as in `peak-tflops = 312`",
                )),
            };
        };
        let peak = (tflops * 1e12).round();
        // `!(a >= 1.0)` also rejects NaN.
        if !(peak >= 1.0 && tflops <= MOST_TFLOPS) {
            return Err(TraceSettings::fault(
                "peak-tflops",
                format!("a peak performance of {tflops} TFLOP/s"),
                "write TFLOP/s, above zero and up to 1e6: 312 for 312e12 operations per second",
            ));
        }
        let peak = NonZero::new(peak as u64);
        Ok(peak.map(|peak| Roofline { peak, memory }))
    }

    /// Checks that traces of `format` have operations, if a speed is given.
    pub(super) fn check_format(&self, format: TraceFormat) -> Result<(), WorkloadError> {
        let given = [
            ("peak-tflops", self.peak_tflops.is_some()),
            ("memory-bandwidth", self.memory_bandwidth.is_some()),
        ];
        match given.into_iter().find(|&(_, is_given)| is_given) {
            Some((key, _)) if format != TraceFormat::Chakra => Err(TraceSettings::fault(
                key,
                format!("the trace is in the format \"{}\"", format.name()),
                "leave it out: only Chakra's traces have operations, others have times",
            )),
            _ => Ok(()),
        }
    }
}
