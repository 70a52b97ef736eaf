//! Profile of a job: its phases in one iteration, as a circle with arcs (HotNets'22 §3, Fig 3).

use super::Share;
use clearway_units::{Parameter, Rate, Span, Value, ValueDomain};
use std::fmt;

/// Demand of a job during a phase.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Demand {
    /// A share of each link or GPU that the job uses.
    Share(Share),
    /// A rate, whose share differs between links. Computation does not have a rate.
    Rate(Rate),
}

impl Demand {
    /// The whole resource, as in the paper: one job at a time.
    pub const WHOLE: Self = Self::Share(Share::WHOLE);
}

impl Parameter for Demand {
    fn expected() -> String {
        "a share above 0 and at most 1, such as `0.5`, or a rate such as \"25Gbps\"".into()
    }
    fn domain() -> ValueDomain {
        ValueDomain::Either(vec![ValueDomain::Number, ValueDomain::Rate])
    }
    fn from_value(value: &Value) -> Option<Self> {
        match value {
            Value::Text(rate) => rate.parse().ok().map(Self::Rate),
            _ => Share::from_value(value).map(Self::Share),
        }
    }
    fn advice(value: &Value) -> Option<String> {
        match value {
            Value::Text(_) => Rate::advice(value),
            _ => None,
        }
    }
    fn to_value(&self) -> Value {
        match self {
            Self::Share(share) => share.to_value(),
            Self::Rate(rate) => rate.to_value(),
        }
    }
}

/// Kind of a phase, which decides the resource that it loads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum PhaseKind {
    /// Data crosses the job's links.
    Communication,
    /// The job's GPUs are busy.
    Compute,
}

impl fmt::Display for PhaseKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Communication => "communication",
            Self::Compute => "compute",
        })
    }
}

/// A part of the iteration in which the job communicates or computes: an arc of its circle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Phase {
    /// Start of the phase, from the beginning of the iteration.
    pub start: Span,
    /// Length of the phase.
    pub length: Span,
    /// Demand of the phase.
    pub demand: Demand,
}

impl Phase {
    /// A phase with the whole of its resources as demand.
    pub const fn whole(start: Span, length: Span) -> Self {
        Self {
            start,
            length,
            demand: Demand::WHOLE,
        }
    }
    /// End of the phase, from the beginning of the iteration.
    pub fn end(&self) -> Span {
        self.start + self.length
    }
}

/// One iteration of an undisturbed job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobProfile {
    period: Span,
    communication: Vec<Phase>,
    compute: Vec<Phase>,
}

/// Error in the phases of a [`JobProfile`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProfileError {
    /// An iteration takes no time.
    ZeroPeriod,
    /// A phase takes no time.
    ZeroPhase {
        /// Kind of the phase.
        kind: PhaseKind,
        /// Index of the phase among the phases of that kind.
        phase: usize,
    },
    /// A phase ends after the iteration.
    PastTheEnd {
        /// Kind of the phase.
        kind: PhaseKind,
        /// Index of the phase among the phases of that kind.
        phase: usize,
        /// End of the phase.
        end: Span,
        /// End of the iteration.
        period: Span,
    },
    /// Two phases of one kind are at the same time.
    Overlap {
        /// Kind of both phases.
        kind: PhaseKind,
        /// Index of the phase that begins first.
        first: usize,
        /// Index of the other phase.
        second: usize,
    },
    /// The demand of a computation is a rate.
    RateOfCompute {
        /// Index of the phase among the computations.
        phase: usize,
    },
}

impl fmt::Display for ProfileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::ZeroPeriod => f.write_str(
                "an iteration takes no time: give the time that it takes alone, such as \"255ms\"",
            ),
            Self::ZeroPhase { kind, phase } => {
                write!(f, "{kind} phase {} takes no time: leave it out", phase + 1)
            }
            Self::PastTheEnd {
                kind,
                phase,
                end,
                period,
            } => write!(
                f,
                "{kind} phase {} ends at {end}, after the iteration of {period}: lengthen the period, or cut the phase in two where the next iteration begins",
                phase + 1
            ),
            Self::Overlap {
                kind,
                first,
                second,
            } => write!(
                f,
                "{kind} phases {} and {} overlap: make them one phase with the sum of their demands, or move one",
                first + 1,
                second + 1
            ),
            Self::RateOfCompute { phase } => write!(
                f,
                "compute phase {} asks for a rate: give the share of the GPU that it needs",
                phase + 1
            ),
        }
    }
}

impl std::error::Error for ProfileError {}

impl JobProfile {
    /// An iteration of `period` with phases of both kinds, in any order.
    ///
    /// # Errors
    /// If the period or a phase is empty, a phase ends after the iteration, two phases of one kind overlap, or the demand of a computation
    /// is a rate.
    pub fn new(
        period: Span,
        communication: Vec<Phase>,
        compute: Vec<Phase>,
    ) -> Result<Self, ProfileError> {
        if period.is_zero() {
            return Err(ProfileError::ZeroPeriod);
        }
        check_phases(PhaseKind::Communication, &communication, period)?;
        check_phases(PhaseKind::Compute, &compute, period)?;
        let of_rate = |phase: &Phase| matches!(phase.demand, Demand::Rate(_));
        if let Some(phase) = compute.iter().position(of_rate) {
            return Err(ProfileError::RateOfCompute { phase });
        }
        Ok(Self {
            period,
            communication,
            compute,
        })
    }

    /// The paper's job: it computes, and then communicates at full rate until the iteration is over (Fig 3).
    ///
    /// # Errors
    /// If either time is zero.
    pub fn on_off(compute: Span, communication: Span) -> Result<Self, ProfileError> {
        Self::new(
            compute + communication,
            vec![Phase::whole(compute, communication)],
            vec![Phase::whole(Span::ZERO, compute)],
        )
    }

    /// Length of an iteration of the job alone: the perimeter of the circle.
    pub fn period(&self) -> Span {
        self.period
    }
    /// The phases of one kind, as given.
    pub fn phases(&self, kind: PhaseKind) -> &[Phase] {
        match kind {
            PhaseKind::Communication => &self.communication,
            PhaseKind::Compute => &self.compute,
        }
    }
    /// Share of the iteration that phases of `kind` take, independent of their demand.
    pub fn fraction(&self, kind: PhaseKind) -> f64 {
        let busy: Span = self.phases(kind).iter().map(|phase| phase.length).sum();
        busy.as_ps() as f64 / self.period.as_ps() as f64
    }
}

fn check_phases(kind: PhaseKind, phases: &[Phase], period: Span) -> Result<(), ProfileError> {
    for (phase, given) in phases.iter().enumerate() {
        if given.length.is_zero() {
            return Err(ProfileError::ZeroPhase { kind, phase });
        }
        let end = given.start.checked_add(given.length).unwrap_or(Span::MAX);
        if end > period {
            return Err(ProfileError::PastTheEnd {
                kind,
                phase,
                end,
                period,
            });
        }
    }
    let mut order: Vec<usize> = (0..phases.len()).collect();
    order.sort_by_key(|&phase| phases[phase].start);
    match order
        .windows(2)
        .find(|pair| phases[pair[0]].end() > phases[pair[1]].start)
    {
        Some(pair) => Err(ProfileError::Overlap {
            kind,
            first: pair[0],
            second: pair[1],
        }),
        None => Ok(()),
    }
}
