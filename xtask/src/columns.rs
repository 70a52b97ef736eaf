//! `docs/src/columns.md`: the columns of Parquet files, as declared in `crates/reports/report`. A test of that crate fails if the page is
//! stale.

use crate::{Faults, output};
use std::path::Path;
use std::process::Command;

/// Writes the page.
pub(crate) fn write(root: &Path) -> Faults {
    let mut command = Command::new(env!("CARGO"));
    command.args([
        "run",
        "--quiet",
        "--package",
        "clearway-report",
        "--example",
        "columns",
    ]);
    let written = output(command.current_dir(root)).and_then(|page| {
        let path = root.join("docs/src/columns.md");
        std::fs::write(&path, page).map_err(|error| format!("{}: {error}", path.display()))
    });
    written.err().into_iter().collect()
}
