//! Files of a command line.

use crate::error::ScenarioError;
use clearway_formats::{
    CmFile, HtsimCommand, HtsimOption, StartUnit, TopoFile, parse_cm, parse_topo, read_text,
};
use clearway_input::InputKind;
use std::path::Path;

/// Files of the command line; `None` for a file that does not exist here.
#[derive(Debug)]
pub(super) struct Inputs {
    pub(super) topo: Option<TopoFile>,
    pub(super) matrix: Option<CmFile>,
}

impl Inputs {
    pub(super) fn read(
        command: &HtsimCommand,
        matrix: &HtsimOption,
    ) -> Result<Self, ScenarioError> {
        let topo = command.last("-topo").map(HtsimOption::text);
        let topo = topo.filter(|name| Path::new(name).exists());
        let topo = topo.map(|name| -> Result<TopoFile, ScenarioError> {
            let text = read_text(Path::new(name), InputKind::TOPOLOGY)?;
            Ok(parse_topo(name, &text)?)
        });
        let matrix = Some(matrix.text()).filter(|name| Path::new(name).exists());
        let matrix = matrix.map(|name| -> Result<CmFile, ScenarioError> {
            let text = read_text(Path::new(name), InputKind::FLOWS)?;
            Ok(parse_cm(name, &text, StartUnit::Microseconds)?)
        });
        Ok(Self {
            topo: topo.transpose()?,
            matrix: matrix.transpose()?,
        })
    }
}
