//! The scenario of a command line of `htsim_uec`.
//!
//! Facts are from `main_uec.cpp`, `uec.cpp` and `fat_tree_topology.cpp` of UEC htsim, July 2025. Defaults that differ from ours: seed 13,
//! an end after 1000 us, packets of 4150 B, 64 paths, a bandwidth-delay product that includes the serialisation of packets and is rounded
//! up to whole packets, and a timeout that follows from the queue.

mod figures;
mod inputs;
mod notes;
mod switch;
mod topology;
mod translation;
mod transport;

use super::draft::{Draft, Effect, Imported};
use super::paths::from_folder;
use crate::error::ScenarioError;
use crate::limits::LONGEST;
use clearway_formats::{HtsimOption, parse_htsim_command};
use clearway_units::{Span, Time};
use clearway_workload::Start;
use figures::Network;
use inputs::Inputs;
use std::path::Path;
use translation::{Import, fault};

pub(super) fn import(
    arguments: &[String],
    folder: Option<&Path>,
) -> Result<Imported, ScenarioError> {
    let command = parse_htsim_command(arguments).map_err(|e| fault(e.message, e.fix))?;
    let matrix = command.last("-tm").ok_or_else(|| {
        let fix = "name the connection matrix: `-tm FILE.cm`; a scenario cannot read it from standard input";
        fault("`-tm` is missing", fix)
    })?;
    if let Some(planes) = command.last("-planes").filter(|o| o.whole(0) > Some(1)) {
        let fix = "leave it out; `topology.kind = \"multi-plane\"` has `planes`";
        return Err(fault(
            format!("`{planes}`: `htsim_uec` stops with more than one plane"),
            fix,
        ));
    }
    let inputs = Inputs::read(&command, matrix)?;
    let network = Network::new(&command, &inputs);
    let words: Vec<String> = command.options.iter().map(ToString::to_string).collect();
    let mut import = Import {
        command: &command,
        draft: Draft::new([
            format!(
                "From `htsim_uec {}`. A comment names the source of each key.",
                words.join(" ")
            ),
            "`clearway run FILE --htsim-txt -` prints what htsim prints.".into(),
        ]),
        inputs,
        network,
    };
    import.general(matrix)?;
    import.topology(folder)?;
    let queue = import.switch()?;
    import.transport(queue);
    let path = from_folder(matrix.text(), folder);
    import
        .draft
        .text("workload", "file", &path, matrix.to_string());
    import.notes();
    Ok(import.draft.finish())
}

impl Import<'_> {
    fn general(&mut self, matrix: &HtsimOption) -> Result<(), ScenarioError> {
        let stem = Path::new(matrix.text()).file_stem();
        let stem = stem.map(|stem| stem.to_string_lossy().trim().to_owned());
        let name = stem.filter(|stem| !stem.is_empty());
        let name = name.unwrap_or_else(|| "htsim".into());
        self.draft.text("", "name", &name, matrix.to_string());
        let (seed, source) = self.whole("-seed", 13);
        self.draft.set("", "seed", seed, source);
        let (end, source) = self.whole("-end", 1000);
        if end == 0 {
            self.draft
                .set("", "stop.at-most", LONGEST, format!("{source}: no end"));
            return Ok(());
        }
        let end = Span::from_us(end);
        let first = self.first_start();
        if first.is_some_and(|first| first >= Time::ZERO + end) {
            let message = format!(
                "`htsim_uec` ends at {end}, before the first flow of {}",
                matrix.text()
            );
            return Err(fault(message, "write a later `-end`, in microseconds"));
        }
        let first = first.unwrap_or(Time::ZERO).since(Time::ZERO);
        let source = match first.is_zero() {
            true => source,
            false => format!("{source}, less the first start at {first}"),
        };
        self.draft
            .set("", "stop.at-most", end.saturating_sub(first), source);
        if self.inputs.matrix.is_none() {
            let meaning = "there is no such file here, so that `stop.at-most` counts from a first start at 0 us";
            self.draft
                .note(Effect::Results, format!("`{matrix}`"), meaning);
        }
        Ok(())
    }

    /// First start of a flow or message in the matrix.
    fn first_start(&self) -> Option<Time> {
        let matrix = self.inputs.matrix.as_ref()?;
        let flows = matrix
            .workload
            .flows
            .iter()
            .filter_map(|flow| match flow.start {
                Start::At(time) => Some(time),
                Start::On(_) | Start::Posted(_) => None,
            });
        let connections = matrix.connections.iter().flat_map(|c| &c.messages);
        flows.chain(connections.map(|(time, _)| *time)).min()
    }
}
