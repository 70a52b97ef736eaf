//! `clearway import`.

use crate::atomic_file::AtomicFile;
use crate::failure::Failure;
use crate::messages::warn;
use crate::output::print;
use clap::{Args, Subcommand, ValueHint};
use clearway_lab::scenario::{Imported, SimaiFiles, import_hpcc, import_htsim, import_simai};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  clearway import htsim -- -topo fat_tree.topo -tm permutation.cm -sender_cc_algo nscc > mine.toml
  clearway import hpcc mix/config.txt --out mine.toml
  clearway import simai SimAI.conf -n topology -w workload.txt --out mine.toml

A comment in the scenario names the source of each key. Settings without a counterpart stand at its end.")]
pub(crate) struct ImportArguments {
    #[command(subcommand)]
    source: ImportSource,
}

#[derive(Debug, Subcommand)]
enum ImportSource {
    /// The command line of `htsim_uec`
    Htsim {
        #[command(flatten)]
        output: ImportOutput,
        /// Arguments of `htsim_uec`, as in `-- -topo x.topo -tm y.cm -q 35`
        #[arg(last = true, required = true, value_name = "ARGUMENT")]
        arguments: Vec<String>,
    },
    /// `config.txt` of HPCC's simulator for ns-3, which names the topology and the flows
    Hpcc {
        /// The configuration
        #[arg(value_name = "CONFIG", value_hint = ValueHint::FilePath)]
        config: String,
        #[command(flatten)]
        output: ImportOutput,
    },
    /// `SimAI.conf` with the topology and the workload of SimAI's command line
    Simai {
        /// The configuration, `-c` of SimAI
        #[arg(value_name = "CONFIG", value_hint = ValueHint::FilePath)]
        config: String,
        /// Topology
        #[arg(short = 'n', long, value_name = "FILE", value_hint = ValueHint::FilePath)]
        topology: String,
        /// Workload
        #[arg(short = 'w', long, value_name = "FILE", value_hint = ValueHint::FilePath)]
        workload: String,
        #[command(flatten)]
        output: ImportOutput,
    },
}

#[derive(Debug, Args)]
struct ImportOutput {
    /// File for the scenario; printed if left out
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    out: Option<PathBuf>,
    /// Replace the file if there is one
    #[arg(long, requires = "out")]
    force: bool,
}

pub(crate) fn import(arguments: &ImportArguments) -> Result<ExitCode, Failure> {
    let output = match &arguments.source {
        ImportSource::Htsim { output, .. }
        | ImportSource::Hpcc { output, .. }
        | ImportSource::Simai { output, .. } => output,
    };
    let out = output.out.as_deref().filter(|out| *out != Path::new("-"));
    if let Some(file) = out
        && file.is_file()
        && !output.force
    {
        return Err(Failure::new(format!(
            "--out {}: there is such a file already\n  fix: name another one, or replace it with `--force`",
            file.display()
        )));
    }
    let folder = out.and_then(Path::parent);
    let imported = match &arguments.source {
        ImportSource::Htsim { arguments, .. } => import_htsim(arguments, folder)?,
        ImportSource::Hpcc { config, .. } => import_hpcc(config, folder)?,
        ImportSource::Simai {
            config,
            topology,
            workload,
            ..
        } => import_simai(config, SimaiFiles { topology, workload }, folder)?,
    };
    publish(out, &imported)?;
    imported.warnings.iter().for_each(|warning| warn(warning));
    Ok(ExitCode::SUCCESS)
}

fn publish(out: Option<&Path>, imported: &Imported) -> Result<(), Failure> {
    let Some(file) = out else {
        return print(&imported.text);
    };
    let whole = AtomicFile::create(file, "name a file that you may write with `--out`")?;
    whole.publish(&imported.text)?;
    let name = file.display();
    print(&format!("Wrote {name}; `clearway run {name}` runs it.\n"))
}
