//! A key and the values it usually has.

/// Section, key, probability that the key is set, and values to choose from.
pub(super) type Habit = (&'static str, &'static str, f64, &'static [&'static str]);
