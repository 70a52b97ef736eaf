//! Traffic from a file.

use super::{BuildContext, LoadedWorkload, WorkloadDefinition};
use crate::{StartUnit, WorkloadError, parse_cm, read_text};
use clearway_units::parameters;
use std::path::{Path, PathBuf};

parameters! {
    /// Traffic from a connection matrix in htsim's format (see [`crate::cm`]).
    pub struct FileSettings {
        /// The file: looked for in the folder of the scenario file, then in the current folder.
        pub file: String = String::new(), "file", "none: the file must be named";
        /// The unit of the numbers after `start` in the file, which does not tell it.
        pub start_unit: StartUnit = StartUnit::Microseconds, "start-unit", "htsim_uec takes the number as microseconds, whatever its comments say";
    }
}

impl WorkloadDefinition for FileSettings {
    const NAME: &'static str = "file";
    const SUMMARY: &'static str = "traffic from a connection matrix of htsim (.cm)";

    fn load(&self, context: &BuildContext<'_>) -> Result<LoadedWorkload, WorkloadError> {
        if self.file.is_empty() {
            let fix = "name it, as in `file = \"permutation.cm\"`";
            return Err(Self::fault("file", "no file is named", fix));
        }
        let path = located(Path::new(&self.file), context.base_dir);
        let text = read_text(&path)?;
        let file = parse_cm(&path.display().to_string(), &text, self.start_unit)?;
        if file.nodes > context.hosts {
            let (nodes, hosts) = (file.nodes, context.hosts);
            let message =
                format!("the file is made for {nodes} hosts, but the topology has {hosts}");
            let fix = "choose the topology that belongs to the file";
            return Err(Self::fault("file", message, fix));
        }
        Ok(LoadedWorkload {
            workload: file.workload,
            failures: file.failures,
            warnings: file.warnings,
        })
    }
}

/// Where `file` is: beside the scenario if it is there, else where the current folder has it.
fn located(file: &Path, base_dir: Option<&Path>) -> PathBuf {
    let beside = base_dir.map(|folder| folder.join(file));
    match beside {
        Some(beside) if beside.exists() || !file.exists() => beside,
        Some(_) | None => file.to_owned(),
    }
}
