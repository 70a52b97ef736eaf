//! Data of a run, by its kind.

use super::plans::PlanData;
use super::run_data::RunData;
use super::scaleup::ScaleupData;
use clearway_fabric::Stopped;

/// Kind of a run of a figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RunKind {
    /// Simulation of a packet fabric.
    Simulated,
    /// Plan.
    Planned,
    /// Simulation of a scale-up fabric.
    Scaleup,
}

/// Data of a run of a figure.
#[derive(Debug)]
pub(crate) enum FigureRunData {
    /// Data of a simulated run.
    Simulated(Box<RunData>),
    /// Data of a planned run.
    Planned(Box<PlanData>),
    /// Data of a run of a scale-up fabric.
    Scaleup(Box<ScaleupData>),
}

impl FigureRunData {
    /// True if the user has stopped the run.
    pub(super) fn is_interrupted(&self) -> bool {
        let stopped = match self {
            Self::Simulated(data) => data.stopped,
            Self::Planned(_) => None,
            Self::Scaleup(data) => data.stopped(),
        };
        stopped == Some(Stopped::Interrupted)
    }
}
