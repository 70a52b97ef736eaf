//! The native part of the Python package `clearway`.
//!
//! The package itself is in `python/clearway`: it defines the interface for users, and converts their input into names, texts and
//! `KEY=VALUE`. This crate runs scenarios without the interpreter's lock, and passes tables on as Arrow streams.
//!
//! **Architecture invariant:** this crate declares no columns, keys or messages: they come from the crates that declare them.

mod arrow;
mod collective;
mod compare;
mod controller;
mod data;
mod dispatch;
mod errors;
mod explain;
mod foreign;
mod plan;
mod run;
mod run_controllers;
mod scenario;
mod simulation;
mod sweep;
mod table;

use clearway_report::{pcapng, timeline};
use pyo3::prelude::*;

/// Native part of the package `clearway`.
#[pymodule]
mod _clearway {
    use super::*;
    #[pymodule_export]
    use crate::collective::{NativeGroup, new_key};
    #[pymodule_export]
    use crate::compare::compare;
    #[pymodule_export]
    use crate::controller::{Ack, Loss, Network};
    #[pymodule_export]
    use crate::dispatch::{NativeDispatcher, carry_out, own_folder};
    #[pymodule_export]
    use crate::errors::break_down;
    #[pymodule_export]
    use crate::explain::{explain, group, groups, main, show};
    #[pymodule_export]
    use crate::foreign::rows_of;
    #[pymodule_export]
    use crate::plan::plan;
    #[pymodule_export]
    use crate::run::{Run, run};
    #[pymodule_export]
    use crate::scenario::{check, resolve};
    #[pymodule_export]
    use crate::simulation::{NativeSimulation, length, picoseconds};
    #[pymodule_export]
    use crate::sweep::{NativeSweep, sweep};
    #[pymodule_export]
    use crate::table::NativeTable;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("VERSION", env!("CARGO_PKG_VERSION"))?;
        module.add("REVISION", clearway_runs::REVISION)?;
        // Files that only a run writes, because no record holds their contents.
        module.add("CAPTURES", [pcapng::FILE_NAME, timeline::FILE_NAME])
    }
}
