//! Completed flows in the formats of other simulators: `--fct-txt` and `--htsim-txt` of `clearway run`.

use crate::arguments::RunArguments;
use crate::atomic_file::AtomicFile;
use crate::failure::Failure;
use crate::output::print;
use crate::overwrite_check::{Input, is_same, refuse_input};
use clearway_lab::{Assembly, Finished, FlowSpec};
use clearway_report::fct::MOST_HOSTS;
use clearway_report::{
    FctRow, FolderError, HtsimRow, HtsimTotals, ResultFolder, fct_txt, htsim_txt,
};
use std::path::Path;

/// A format.
struct TextFormat {
    option: &'static str,
    fix: &'static str,
    text: fn(&Assembly, &Finished) -> String,
    most_hosts: u32,
}

/// `fct.txt` of HPCC's simulator for ns-3.
const FCT: TextFormat = TextFormat {
    option: "--fct-txt",
    fix: "name a file that you may write with `--fct-txt`",
    text: fct,
    most_hosts: MOST_HOSTS,
};

/// Text that htsim prints.
const HTSIM: TextFormat = TextFormat {
    option: "--htsim-txt",
    fix: "name a file that you may write with `--htsim-txt`",
    text: htsim,
    most_hosts: u32::MAX,
};

/// Names of the other files of the results.
const TAKEN: [&str; 9] = [
    "summary.json",
    "scenario.toml",
    "flows.parquet",
    "iterations.parquet",
    "series.parquet",
    "report.html",
    "trace.pcapng",
    "trace.perfetto",
    "why.json",
];

/// Requested text files.
pub(crate) struct TextFiles(Vec<TextFile>);

/// Text and its destination.
struct TextFile {
    place: Destination,
    text: fn(&Assembly, &Finished) -> String,
}

enum Destination {
    StandardOutput,
    /// File of this name in the result folder. The folder accepts no undeclared files.
    InResults(String),
    Elsewhere(AtomicFile),
}

impl TextFiles {
    /// Prepares the files before the run, so that an error in them does not cost the user a run.
    pub(crate) fn prepare(
        arguments: &RunArguments,
        results: &Path,
        inputs: &[Input],
        assembly: &Assembly,
    ) -> Result<Self, Failure> {
        let wanted = [(FCT, &arguments.fct_txt), (HTSIM, &arguments.htsim_txt)];
        if let (Some(fct), Some(htsim)) = (&arguments.fct_txt, &arguments.htsim_txt)
            && is_same(fct, htsim)
        {
            return Err(Failure::new(format!(
                "--htsim-txt {}: `--fct-txt` also writes there\n  fix: choose another name",
                htsim.display()
            )));
        }
        let mut files = Vec::new();
        for (format, path) in wanted {
            let Some(path) = path else { continue };
            if path != Path::new("-") {
                refuse_input(format.option, path, inputs)?;
            }
            let place = place(&format, path, results, assembly)?;
            if matches!(place, Destination::StandardOutput) && arguments.print.json {
                return Err(Failure::new(format!(
                    "{} -: `--json` also prints to standard output\n  fix: name a file",
                    format.option
                )));
            }
            let text = format.text;
            files.push(TextFile { place, text });
        }
        Ok(Self(files))
    }

    /// Reserves the names of the text files that lie in the result folder.
    pub(crate) fn reserve(&self, results: &mut ResultFolder) -> Result<(), FolderError> {
        self.0.iter().try_for_each(|file| match &file.place {
            Destination::InResults(name) => results.reserve(name),
            _ => Ok(()),
        })
    }

    /// Text files that lie in the result folder.
    pub(crate) fn in_results(&self) -> Vec<clearway_runs::TextFile> {
        let inside = self.0.iter().filter_map(|file| match &file.place {
            Destination::InResults(name) => Some(clearway_runs::TextFile {
                name: name.clone(),
                text: file.text,
            }),
            _ => None,
        });
        inside.collect()
    }

    /// Writes the text files that lie outside the result folder.
    pub(crate) fn publish(self, assembly: &Assembly, finished: &Finished) -> Result<(), Failure> {
        Failure::all(self.0.into_iter().map(|file| match file.place {
            Destination::StandardOutput => print(&(file.text)(assembly, finished)),
            Destination::Elsewhere(whole) => whole.publish(&(file.text)(assembly, finished)),
            Destination::InResults(_) => Ok(()),
        }))
    }
}

fn place(
    format: &TextFormat,
    path: &Path,
    results: &Path,
    assembly: &Assembly,
) -> Result<Destination, Failure> {
    let (hosts, most) = (assembly.topology.machines(), format.most_hosts);
    let (option, shown) = (format.option, path.display());
    if hosts > most {
        return Err(Failure::new(format!(
            "{option} {shown}: the format has addresses for {most} hosts, but the topology has {hosts}\n  \
             fix: leave `{option}` out and use flows.parquet"
        )));
    }
    if path == Path::new("-") {
        return Ok(Destination::StandardOutput);
    }
    let is_inside = path.parent().is_some_and(|folder| {
        let here = folder.as_os_str().is_empty();
        is_same(if here { Path::new(".") } else { folder }, results)
    });
    let name = path.file_name().filter(|_| is_inside);
    let Some(name) = name.map(|name| name.to_string_lossy().into_owned()) else {
        return Ok(Destination::Elsewhere(AtomicFile::create(
            path, format.fix,
        )?));
    };
    // Some file systems do not distinguish `Report.html` and `report.html`.
    if TAKEN.iter().any(|taken| taken.eq_ignore_ascii_case(&name)) {
        return Err(Failure::new(format!(
            "{option} {shown}: this is another file of the results\n  fix: choose another name"
        )));
    }
    Ok(Destination::InResults(name))
}

fn fct(assembly: &Assembly, finished: &Finished) -> String {
    let records = assembly.fct_records(finished);
    fct_txt(records.into_iter().map(|record| FctRow {
        src: record.src.0,
        dst: record.dst.0,
        sport: record.sport,
        dport: record.dport,
        bytes: record.bytes.as_u64(),
        start: record.start,
        fct: record.fct,
        standalone_fct: record.standalone,
    }))
}

fn htsim(assembly: &Assembly, finished: &Finished) -> String {
    let payload = |flow: &FlowSpec| assembly.sizes_of(flow).payload;
    let flows = assembly.workload.numbered().zip(&finished.flows);
    let rows: Vec<HtsimRow> = flows
        .map(|((id, flow), result)| HtsimRow {
            flow: id.0,
            label: flow.label,
            src: flow.src.0,
            dst: flow.dst.0,
            packets: flow.bytes.packets_of(payload(flow)).0,
            payload: payload(flow),
            start: result.started,
            finish: result.finished,
        })
        .collect();
    let endpoints = &finished.endpoints;
    let totals = HtsimTotals {
        new: endpoints.data_sent - endpoints.retransmitted,
        retransmitted: endpoints.retransmitted,
        acks: endpoints.sacks_received,
        nacks: endpoints.nacks_received,
    };
    htsim_txt(&rows, totals)
}
