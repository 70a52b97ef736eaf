//! Traffic from a file.

use super::{BuildContext, LoadedWorkload, WorkloadDefinition, located};
use clearway_formats::{
    CmConnection, FileFormat, HpccHosts, KnownFile, StartUnit, head, parse_cm, parse_hpcc_flows,
    parse_sizes, read_text,
};
use clearway_input::InputKind;
use clearway_units::{Time, parameters};
use clearway_workload::{Graph, JobSpec, Rank, TaskId, WorkloadError};
use std::path::Path;

parameters! {
    /// Traffic from a connection matrix in htsim's format (see [`clearway_formats::cm`]) or from flows in HPCC's (see
    /// [`clearway_formats::hpcc`]).
    pub struct FileSettings {
        /// Path of the file, searched in the folder of the scenario file, then in the current folder.
        pub file: String = String::new(), "file", "none: the file must be named";
        /// Format of the file: "htsim" is a connection matrix (`.cm`), "hpcc" a file of flows of the HPCC simulator for ns-3; "auto"
        /// decides by the first word, which is a number only in "hpcc" files.
        pub format: FileFormat = FileFormat::Auto, "format", "decision: no file is sound in both formats";
        /// Unit of the numbers after `start` in a connection matrix, which does not state it; "auto" is "us". HPCC's files are in seconds.
        pub start_unit: Option<StartUnit> = None, "start-unit", "htsim_uec takes the number as microseconds, whatever its comments say";
    }
}

impl WorkloadDefinition for FileSettings {
    const NAME: &'static str = "file";
    const SUMMARY: &'static str =
        "traffic from a file: a connection matrix of htsim (.cm), or flows of HPCC ns-3";

    fn load(&self, context: &BuildContext<'_>) -> Result<LoadedWorkload, WorkloadError> {
        if self.file.is_empty() {
            let fix = "name it, as in `file = \"permutation.cm\"`";
            return Err(Self::fault("file", "no file is named", fix));
        }
        let path = located(Path::new(&self.file), context.base_dir);
        let name = path.display().to_string();
        let known = head(&path).ok();
        let known = known.and_then(|head| KnownFile::named(&name, &head));
        match known {
            None | Some(KnownFile::Matrix | KnownFile::Hpcc) => {}
            Some(known) if self.format == FileFormat::Auto => {
                let message = format!(
                    "{name} is {}; files of flows are connection matrices of htsim (`.cm`) and flows of HPCC",
                    known.what()
                );
                return Err(Self::fault("file", message, known.fix(&name)));
            }
            Some(_) => {}
        }
        let text = read_text(&path, InputKind::FLOWS)?;
        if self.format == FileFormat::Auto && parse_sizes(&name, &text).is_ok() {
            let message = format!("{name} is a distribution of sizes, not a file of flows");
            let fix = format!(
                "draw flows from it: `kind = \"poisson\"` with `sizes = \"{}\"` instead of `file`",
                self.file
            );
            return Err(Self::fault("file", message, fix));
        }
        if self.format.is_hpcc(&text) {
            return self.load_hpcc(&name, &text, context);
        }
        let unit = self.start_unit.unwrap_or(StartUnit::Microseconds);
        let file = parse_cm(&name, &text, unit)?;
        if file.nodes > context.hosts {
            let (nodes, hosts) = (file.nodes, context.hosts);
            let message =
                format!("the file is made for {nodes} hosts, but the topology has {hosts}");
            let fix = "choose the topology that belongs to the file";
            return Err(Self::fault("file", message, fix));
        }
        let job = |connection: &CmConnection| job_of(connection, context.section);
        let jobs: Vec<JobSpec> = file.connections.iter().map(job).collect();
        for job in &jobs {
            job.check(context.hosts)
                .map_err(|(message, fix)| Self::fault("file", message, &fix))?;
        }
        Ok(LoadedWorkload {
            jobs,
            workload: file.workload,
            failures: file.failures,
            warnings: file.warnings,
            setting_warnings: Vec::new(),
        })
    }

    fn files(&self) -> Vec<&'static str> {
        vec!["file"]
    }
}

impl FileSettings {
    fn load_hpcc(
        &self,
        name: &str,
        text: &str,
        context: &BuildContext<'_>,
    ) -> Result<LoadedWorkload, WorkloadError> {
        if let Some(unit) = self.start_unit.filter(|&unit| unit != StartUnit::Seconds) {
            let message = format!(
                "the unit \"{}\" for a file in HPCC's format, whose starts are in seconds",
                unit.name()
            );
            let fix = "leave it out, or change the numbers in the file";
            return Err(Self::fault("start-unit", message, fix));
        }
        let hosts = HpccHosts {
            count: context.hosts,
            numbers: context.host_numbers,
        };
        let (workload, warnings) = parse_hpcc_flows(name, text, hosts)?;
        Ok(LoadedWorkload {
            warnings,
            ..workload.into()
        })
    }
}

/// Job of a connection. The sender posts each message at its start, even if earlier messages have not arrived.
fn job_of(connection: &CmConnection, section: u32) -> JobSpec {
    let (sender, receiver) = (Rank(0), Rank(1));
    let mut graph = Graph::new(2);
    let (mut clock, mut now): (Option<TaskId>, Time) = (None, Time::ZERO);
    for &(start, bytes) in &connection.messages {
        if start > now {
            clock = Some(graph.compute(sender, start.since(now), clock));
            now = start;
        }
        graph.message((sender, receiver), bytes, clock);
    }
    JobSpec {
        hosts: vec![connection.src, connection.dst],
        section,
        ..JobSpec::new(format!("connection {}", connection.id), graph)
    }
}
