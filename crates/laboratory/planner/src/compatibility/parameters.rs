//! The settings of a plan.

use clearway_units::Span;
use std::fmt;

clearway_units::choices! {
    /// Method of the search for rotations.
    pub enum Solver {
        /// Local search first, and branch and bound for what it has not proven; of more than eight jobs in one part, local search alone.
        Auto = "auto",
        /// Branch and bound after a short local search, for any number of jobs.
        Exact = "exact",
        /// Local search alone.
        Local = "local",
    }
}

clearway_units::parameters! {
    /// Settings of [`plan`](super::plan) and [`place`](super::place).
    pub struct PlanParameters {
        /// Length of a sector of the circle. Rotations are multiples of it, and a phase fills every sector that it touches.
        pub grid: Span = Span::from_ms(1), "grid", "decision: a thousandth to a hundredth of the iterations of HotNets'22, Table 1";
        /// Largest share by which an iteration may be lengthened so that iterations of different lengths repeat together, at most 0.5.
        pub tolerance: f64 = 0.02, "tolerance", "decision: the two DLRM of HotNets'22, Table 1 differ by 1.8 %";
        /// Maximum number of sectors of a circle. If iterations of different lengths need more, sectors become longer.
        pub sectors: u32 = 100_000, "sectors", "decision: memory and time of the search grow with it";
        /// Number of sectors that a search may examine, in all links and attempts together, before it returns the best result so far.
        pub budget: u64 = 500_000_000, "budget", "decision: about a second";
        /// Seed of the local search.
        pub seed: u64 = 1, "seed", "decision";
        /// Method of the search for rotations.
        pub solver: Solver = Solver::Auto, "solver", "decision: measured, see the documentation of the planner";
    }
}

/// Error for an invalid setting.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum SettingError {
    /// Sectors have no length.
    ZeroGrid,
    /// The tolerance is not a share, or is too large.
    Tolerance(f64),
    /// The limit of sectors is too small for arcs.
    TooFewSectors(u32),
}

impl SettingError {
    /// The setting's key.
    pub fn key(&self) -> &'static str {
        match self {
            Self::ZeroGrid => "grid",
            Self::Tolerance(_) => "tolerance",
            Self::TooFewSectors(_) => "sectors",
        }
    }
}

impl fmt::Display for SettingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ZeroGrid => f.write_str("a grid of no length: give a duration such as \"1ms\""),
            Self::Tolerance(given) => write!(
                f,
                "a tolerance of {given} is not between 0 and 0.5: 0.02 lengthens iterations by 2 % at most"
            ),
            Self::TooFewSectors(given) => {
                write!(f, "{given} sectors are too few: give at least 10")
            }
        }
    }
}

impl std::error::Error for SettingError {}

impl PlanParameters {
    /// Checks conditions that types cannot express.
    ///
    /// # Errors
    /// If the grid has no length, the tolerance is not within 0 and 0.5, or there are fewer than ten sectors.
    pub fn check(&self) -> Result<(), SettingError> {
        if self.grid.is_zero() {
            return Err(SettingError::ZeroGrid);
        }
        if !(0.0..=0.5).contains(&self.tolerance) {
            return Err(SettingError::Tolerance(self.tolerance));
        }
        if self.sectors < 10 {
            return Err(SettingError::TooFewSectors(self.sectors));
        }
        Ok(())
    }
}
