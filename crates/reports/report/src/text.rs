//! Documents as text for a terminal.

mod comparison;
mod isolation;
mod plan;
mod sweep;
mod testbed;
mod why;

pub use comparison::comparison_table;
pub use isolation::{isolation_matrix, isolation_table};
pub use plan::plan_table;
pub use sweep::{sweep_table, tuning_table};
pub use testbed::testbed_text;
pub use why::{why_comparison_text, why_text};
