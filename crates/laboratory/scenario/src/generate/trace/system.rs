//! Systems of ASTRA-sim as settings of collectives.

use super::{GpuSpeed, TraceSettings};
use crate::generate::collective_calls::{HIERARCHICAL, Implementation, first_algorithm};
use crate::generate::{WorkloadDefinition, located};
use clearway_formats::{
    AstraAlgorithm, AstraImplementation, AstraSystem, parse_astra_system, read_text,
};
use clearway_input::InputKind;
use clearway_units::{ByteRate, Parameter, ParameterSet as _, Rate};
use clearway_workload::WorkloadError;
use clearway_workload::collective::{CollectiveSettings, DimensionAlgorithm};
use std::num::NonZero;
use std::path::Path;

/// Times that a reduction moves each byte of memory: ASTRA-sim reads both summands and writes the sum (`PacketBundle.cc`).
const MOVES_OF_A_REDUCTION: u64 = 3;

impl TraceSettings {
    /// Reads the system file, if one is named.
    pub(super) fn read_system(
        &self,
        base_dir: Option<&Path>,
    ) -> Result<Option<AstraSystem>, WorkloadError> {
        let name = &self.dimensions.system;
        if name.is_empty() {
            return Ok(None);
        }
        let path = located(Path::new(name), base_dir);
        let text = read_text(&path, InputKind::SYSTEM)?;
        let system = parse_astra_system(&path.display().to_string(), &text)?;
        let own = self.dimensions.0.entries();
        let usual = super::TraceDimensions::default().entries();
        let mut given = own
            .into_iter()
            .zip(usual)
            .filter(|(own, usual)| own != usual);
        let other = given.find(|((key, _), _)| !["dimensions", "system"].contains(key));
        if let Some(((key, _), _)) = other {
            return Err(Self::twice(key));
        }
        if self.gpu.0 != GpuSpeed::default() && system.roofline.is_some() {
            return Err(Self::twice("peak-tflops"));
        }
        let is_by_dimension = matches!(&system.all_reduce, Some(AstraImplementation::ByDimension(all)) if all.len() > 1);
        if system.is_baseline && is_by_dimension {
            let message = "its `collective-optimization` is baseline: all data would go through each dimension";
            return Err(Self::fault(
                "system",
                message,
                "write localBWAware there, which reduces first",
            ));
        }
        Ok(Some(system))
    }

    fn twice(key: &'static str) -> WorkloadError {
        Self::fault(
            key,
            "the system file has it, too",
            "leave it out, or take it out of the file and leave out `system`",
        )
    }

    /// Speed of the GPUs by the system file, if it has one, or by the settings.
    pub(super) fn speed(&self, system: Option<&AstraSystem>) -> GpuSpeed {
        let estimated = system.and_then(|system| Some((system, system.roofline?)));
        match estimated {
            None => self.gpu.0.clone(),
            Some((system, roofline)) => GpuSpeed {
                peak_tflops: Some(roofline.peak_tflops),
                memory_bandwidth: system.memory_bandwidth.map(ByteRate),
            },
        }
    }
}

/// The implementation of an operation by the system file, if that has one; `algorithm` is the one that the settings name.
pub(super) fn by_system(
    settings: &TraceSettings,
    system: &AstraSystem,
    (operation, algorithm): (&'static str, &str),
) -> Result<Option<Implementation>, WorkloadError> {
    let given = match operation {
        "all-reduce" => &system.all_reduce,
        "all-gather" => &system.all_gather,
        "reduce-scatter" => &system.reduce_scatter,
        "all-to-all" => &system.all_to_all,
        _ => &None,
    };
    let Some(given) = given else {
        return Ok(None);
    };
    if algorithm != first_algorithm(operation) {
        return Err(TraceSettings::twice(operation));
    }
    let (list, is_flat) = match given {
        AstraImplementation::Flat(one) => (std::slice::from_ref(one), true),
        AstraImplementation::ByDimension(list) => (&list[..], false),
    };
    let windows: Vec<Option<NonZero<u32>>> = list.iter().filter_map(window).collect();
    if windows.iter().any(|window| *window != windows[0]) {
        let message = format!("its direct algorithms of the {operation} have different numbers");
        let fix = "write the same number behind each `direct`";
        return Err(TraceSettings::fault("system", message, fix));
    }
    let algorithms: Vec<DimensionAlgorithm> = list.iter().map(by_dimension).collect();
    let mut own = CollectiveSettings::named(operation, HIERARCHICAL)
        .expect("every operation of the file has hierarchical algorithms");
    let reduction = system
        .memory_bandwidth
        .map(|rate| Rate::from_bps((rate.as_bps() / MOVES_OF_A_REDUCTION).max(1)));
    let values = [
        ("algorithms", algorithms.to_value()),
        (
            "direct-window",
            windows.first().copied().flatten().to_value(),
        ),
        (
            "splits",
            system.splits.unwrap_or(NonZero::<u32>::MIN).to_value(),
        ),
        ("active-splits", system.active_splits.to_value()),
        (
            "endpoint-delay",
            system.endpoint_delay.unwrap_or_default().to_value(),
        ),
        ("reduction-rate", reduction.to_value()),
        ("chunk", settings.chunk.to_value()),
    ];
    for (key, value) in values {
        // Operations without a sum have no rate of it.
        let _ = own.set(key, &value);
    }
    Ok(Some(Implementation::new(own, is_flat)))
}

/// The limit of a direct algorithm.
fn window(algorithm: &AstraAlgorithm) -> Option<Option<NonZero<u32>>> {
    match algorithm {
        AstraAlgorithm::Direct(window) => Some(*window),
        _ => None,
    }
}

fn by_dimension(algorithm: &AstraAlgorithm) -> DimensionAlgorithm {
    match algorithm {
        AstraAlgorithm::Ring => DimensionAlgorithm::Ring,
        AstraAlgorithm::Direct(_) => DimensionAlgorithm::Direct,
        AstraAlgorithm::HalvingDoubling => DimensionAlgorithm::HalvingDoubling,
        AstraAlgorithm::DoubleBinaryTree => DimensionAlgorithm::DoubleBinaryTree,
    }
}
