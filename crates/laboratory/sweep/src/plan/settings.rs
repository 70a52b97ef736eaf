//! Settings that can be written in a plan.

use clearway_units::{Parameter, Value, ValueDomain};

clearway_units::parameters! {
    /// Top-level keys of a plan.
    pub struct SweepGeneral {
        /// Name of the sweep; its folder is named after it. If left out, the name of the file.
        pub name: String = "unnamed".into(), "name", "the user";
        /// Scenario of all runs: a built-in one, or a file, relative to the plan.
        pub scenario: String = String::new(), "scenario", "the user";
        /// Seeds of each point: a number of seeds from the scenario's own seed on, a range such as "1-5", or a list.
        pub seeds: Seeds = Seeds::Count(1), "seeds", "decision";
    }
}

clearway_units::parameters! {
    /// Random points instead of a grid.
    pub struct SampleSection {
        /// Method of drawing. "random": each value independently. "latin-hypercube": each range is cut into as many parts of equal
        /// probability as there are points, and one value is drawn from each.
        pub method: SampleMethod = SampleMethod::LatinHypercube, "method", "McKay, Beckman, Conover 1979";
        /// Number of points.
        pub points: u32 = 0, "points", "the user";
        /// Seed of the drawing, independent of the seeds of the runs.
        pub seed: u64 = 1, "seed", "decision";
    }
}

clearway_units::parameters! {
    /// Goal and budget of `clearway tune`.
    pub struct TuneSection {
        /// Measure to optimise, named as in `compare.json`.
        pub measure: String = String::new(), "measure", "the user";
        /// Maximum number of runs; as many points are drawn as it allows. Without it all points of the plan run.
        pub budget: Option<u64> = None, "budget", "the user";
        /// Reduction factor of a rung: one of so many points goes on to the next rung, with so many times the seeds.
        pub keep: u16 = 3, "keep", "Li et al. 2018 (Hyperband): 3 or 4";
        /// Share of the best value within which points count as equally good; `then` decides between these.
        pub within: f64 = 0.0, "within", "the user";
        /// Measure that decides between equally good points.
        pub then: String = String::new(), "then", "the user";
        /// Axes with a separate best point for each combination of their values.
        pub each: Vec<String> = Vec::new(), "each", "the user";
    }
}

/// Seeds of each point.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Seeds {
    /// Number of seeds, from the scenario's seed on.
    Count(u32),
    /// List of seeds.
    List(Vec<u64>),
}

/// Largest number of runs of a plan, even if confirmed, because each run has a separate folder.
pub const MOST_PLANNED: u64 = 1_000_000;

/// Largest number of seeds of a plan.
const MOST_SEEDS: u64 = 100_000;

impl Seeds {
    /// Number of seeds.
    pub fn count(&self) -> usize {
        match self {
            Self::Count(count) => *count as usize,
            Self::List(seeds) => seeds.len(),
        }
    }

    /// The seeds; `first` is the scenario's seed.
    pub fn list(&self, first: u64) -> Vec<u64> {
        match self {
            Self::Count(count) => {
                let seeds = (0..u64::from(*count)).map(|number| first.saturating_add(number));
                seeds.collect()
            }
            Self::List(seeds) => seeds.clone(),
        }
    }
}

impl Parameter for Seeds {
    fn expected() -> String {
        format!(
            "a number of seeds from 1 to {MOST_SEEDS}, a range such as \"1-5\", or a list such as [1, 2, 7] without repetitions"
        )
    }
    fn domain() -> ValueDomain {
        ValueDomain::Either(vec![
            ValueDomain::Whole {
                least: 1,
                most: MOST_SEEDS,
            },
            ValueDomain::Text,
            u64::domain().list(),
        ])
    }
    fn from_value(value: &Value) -> Option<Self> {
        match value {
            Value::Integer(count) => {
                let count = u32::try_from(*count).ok()?;
                (1..=MOST_SEEDS)
                    .contains(&u64::from(count))
                    .then_some(Self::Count(count))
            }
            Value::Text(text) => {
                let (first, last) = text.split_once('-')?;
                let seed = |text: &str| {
                    let seed: u64 = text.trim().parse().ok()?;
                    i64::try_from(seed).is_ok().then_some(seed)
                };
                let (first, last) = (seed(first)?, seed(last)?);
                let fits = first <= last && last - first < MOST_SEEDS;
                fits.then(|| Self::List((first..=last).collect()))
            }
            Value::List(_) => {
                let seeds = Vec::<u64>::from_value(value)?;
                let mut sorted = seeds.clone();
                sorted.sort_unstable();
                sorted.dedup();
                (sorted.len() == seeds.len()).then_some(Self::List(seeds))
            }
            _ => None,
        }
    }
    fn to_value(&self) -> Value {
        match self {
            Self::Count(count) => Value::Integer((*count).into()),
            Self::List(seeds) => seeds.to_value(),
        }
    }
}

/// Method of drawing points.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SampleMethod {
    /// Each value independently.
    Random,
    /// One value in each of as many parts of a range as there are points.
    LatinHypercube,
}

impl SampleMethod {
    const ALL: [(Self, &'static str); 2] = [
        (Self::Random, "random"),
        (Self::LatinHypercube, "latin-hypercube"),
    ];
}

impl Parameter for SampleMethod {
    fn expected() -> String {
        let names = Self::ALL.map(|(_, name)| format!("\"{name}\""));
        format!("one of {}", names.join(", "))
    }
    fn domain() -> ValueDomain {
        ValueDomain::Words(Self::ALL.iter().map(|(_, name)| *name).collect())
    }
    fn from_value(value: &Value) -> Option<Self> {
        let Value::Text(text) = value else {
            return None;
        };
        let found = Self::ALL.iter().find(|(_, name)| name == text);
        found.map(|(method, _)| *method)
    }
    fn to_value(&self) -> Value {
        let found = Self::ALL.iter().find(|(method, _)| method == self);
        Value::Text(found.map_or("", |(_, name)| name).into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_are_a_number_a_range_or_a_list() {
        let read = |value| Seeds::from_value(&value);
        assert_eq!(read(Value::Integer(3)).unwrap().list(7), [7, 8, 9]);
        assert_eq!(read(Value::Text("2-4".into())).unwrap().list(7), [2, 3, 4]);
        let list = |seeds: &[i64]| Value::List(seeds.iter().map(|&n| Value::Integer(n)).collect());
        assert_eq!(read(list(&[5, 1])).unwrap().list(7), [5, 1]);
        for wrong in [
            Value::Integer(0),
            Value::Integer(-1),
            Value::Text("4-2".into()),
            Value::Text("4".into()),
            Value::Text("0-99999999".into()),
            list(&[1, 2, 1]),
        ] {
            assert_eq!(read(wrong.clone()), None, "{wrong}");
        }
    }
}
