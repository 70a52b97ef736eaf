//! `clearway testbed` on systems with network namespaces.

use super::arguments::{
    BedRunArguments, FabricArguments, SoakArguments, SwitchesArgument, TestbedArguments,
    TestbedCommand, UpArguments,
};
use crate::atomic_file::DocumentAndPage;
use crate::failure::Failure;
use crate::messages::say;
use crate::output::print;
use crate::progress::Interrupt;
use clearway_lab::Laboratory;
use clearway_report::testbed::{FILE_NAME, TestbedRecord};
use clearway_report_html::{self as page, render_testbed};
use clearway_report_text::{Align, Table, testbed_text};
use clearway_testbed::{
    BedName, BedPlan, BedRequest, BedSetup, Ended, Fault, SoakRecord, SoakRequest, Switches, agent,
    down, run, soak, start_switches, up,
};
use std::path::PathBuf;
use std::process::ExitCode;

/// Built-in scenario of a suitable size for a test bed.
const USUAL: &str = "testbed-permutation";
const FIX: &str = "see to it that the folder of `--out` can be written";

impl From<Fault> for Failure {
    fn from(fault: Fault) -> Self {
        Self::new(fault.to_string())
    }
}

pub(super) fn testbed(
    laboratory: &Laboratory,
    arguments: &TestbedArguments,
) -> Result<ExitCode, Failure> {
    match &arguments.command {
        TestbedCommand::Up(arguments) => make(laboratory, arguments),
        TestbedCommand::Down { name } => take_away(&BedName::new(&name.name)?),
        TestbedCommand::Run(arguments) => compare(laboratory, arguments),
        TestbedCommand::Soak(arguments) => run_soak(laboratory, arguments),
        TestbedCommand::Host => {
            agent()?;
            Ok(ExitCode::SUCCESS)
        }
    }
}

/// The scenario and its kind of switches.
struct RequestedBed {
    source: String,
    overrides: Vec<String>,
    name: BedName,
    switches: Switches,
}

impl RequestedBed {
    fn new(laboratory: &Laboratory, arguments: &FabricArguments) -> Result<Self, Failure> {
        let source = arguments.scenario.scenario.clone();
        let source = source.unwrap_or_else(|| USUAL.into());
        let overrides = arguments.scenario.all_overrides();
        let switches = match arguments.switches {
            SwitchesArgument::Kernel => Switches::Kernel,
            SwitchesArgument::Soft => Switches::Soft,
            SwitchesArgument::Auto => Switches::read(laboratory, &source, &overrides)?,
        };
        Ok(Self {
            source,
            overrides,
            name: BedName::new(&arguments.name.name)?,
            switches,
        })
    }
}

fn program() -> Result<PathBuf, Failure> {
    std::env::current_exe().map_err(|error| {
        Failure::new(format!(
            "cannot find this program again: {error}\n  fix: start it by its full path"
        ))
    })
}

fn make(laboratory: &Laboratory, arguments: &UpArguments) -> Result<ExitCode, Failure> {
    let wanted = RequestedBed::new(laboratory, &arguments.fabric)?;
    let setup = BedSetup::new(
        laboratory,
        &wanted.source,
        &wanted.overrides,
        wanted.switches,
    )?;
    let plan = BedPlan::new(
        &wanted.name,
        &setup.assembly,
        &setup.ports(),
        wanted.switches,
    )?;
    if arguments.dry_run {
        print(&plan.to_text())?;
        return Ok(ExitCode::SUCCESS);
    }
    let interrupt = Interrupt::install();
    let raised = || interrupt.is_raised();
    match up(&plan, &wanted.source, wanted.switches, &raised) {
        Err(_) if raised() => return Ok(ExitCode::from(130)),
        made => made?,
    };
    if wanted.switches == Switches::Soft {
        start_switches(&program()?, &plan, &setup)?;
    }
    if !arguments.fabric.quiet {
        say(&format!(
            "{}: {} namespaces, switches: {}\n  a host: ip netns exec {} COMMAND\n  the end: clearway testbed down --name {}",
            wanted.name,
            plan.namespaces().count(),
            wanted.switches.name(),
            plan.hosts[0],
            wanted.name
        ));
    }
    Ok(ExitCode::SUCCESS)
}

fn take_away(name: &BedName) -> Result<ExitCode, Failure> {
    let removed = down(name)?;
    match (removed.known, removed.namespaces) {
        (false, 0) => say(&format!(
            "there is no test bed `{name}`: nothing to take away"
        )),
        (_, namespaces) => say(&format!("{name}: {namespaces} namespaces taken away")),
    }
    Ok(ExitCode::SUCCESS)
}

fn compare(laboratory: &Laboratory, arguments: &BedRunArguments) -> Result<ExitCode, Failure> {
    let wanted = RequestedBed::new(laboratory, &arguments.fabric)?;
    let files = arguments.out.as_deref();
    let files =
        files.map(|folder| DocumentAndPage::create(folder, [FILE_NAME, page::FILE_NAME], FIX));
    let files = files.transpose()?;
    let interrupt = Interrupt::install();
    let quiet = arguments.fabric.quiet;
    let request = BedRequest {
        laboratory,
        source: &wanted.source,
        overrides: &wanted.overrides,
        name: &wanted.name,
        switches: wanted.switches,
        program: &program()?,
        agent: &["testbed", "host"],
        keep: arguments.keep,
        interrupted: &|| interrupt.is_raised(),
        tell: &|text| {
            if !quiet {
                say(text);
            }
        },
    };
    let record = match run(&request)? {
        Ended::Done(record) => record,
        Ended::Interrupted => {
            say("interrupted: no results; the namespaces of this command are deleted");
            return Ok(ExitCode::from(130));
        }
    };
    show(arguments, &record, files)?;
    if arguments.keep && !quiet {
        say(&format!(
            "the namespaces stay: clearway testbed down --name {}",
            wanted.name
        ));
    }
    Ok(match record.is_sound() {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    })
}

fn show(
    arguments: &BedRunArguments,
    record: &TestbedRecord,
    files: Option<DocumentAndPage>,
) -> Result<(), Failure> {
    let json = record.to_json();
    let shown = match (arguments.json, arguments.fabric.quiet) {
        (true, _) => print(&json),
        (false, true) => Ok(()),
        (false, false) => print(&testbed_text(record)),
    };
    let written = files.map_or(Ok(()), |files| {
        files.publish(&json, &render_testbed(record))
    });
    Failure::all([shown, written])?;
    if let (Some(folder), false) = (&arguments.out, arguments.fabric.quiet) {
        say(&format!("results in {}", folder.display()));
    }
    Ok(())
}

fn run_soak(laboratory: &Laboratory, arguments: &SoakArguments) -> Result<ExitCode, Failure> {
    let interrupt = Interrupt::install();
    let request = SoakRequest {
        laboratory,
        name: &BedName::new(&arguments.name.name)?,
        messages: arguments.messages,
        seed: arguments.seed,
        program: &program()?,
        agent: &["testbed", "host"],
        interrupted: &|| interrupt.is_raised(),
        tell: &|text| {
            if !arguments.quiet {
                say(text);
            }
        },
    };
    let record = match soak(&request) {
        Err(_) if interrupt.is_raised() => return Ok(ExitCode::from(130)),
        record => record?,
    };
    match arguments.json {
        true => {
            let json = serde_json::to_string_pretty(&record).unwrap_or_default();
            print(&format!("{json}\n"))?;
        }
        false => print(&soak_table(&record))?,
    }
    Ok(match record.is_sound() {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    })
}

fn soak_table(record: &SoakRecord) -> String {
    let received = &record.received;
    let mut table = Table::new().column("", Align::Left).column("", Align::Left);
    let mut row = |name: &str, text: String| table.row([name.to_owned(), text]);
    row(
        "messages",
        format!(
            "{} of {} came, {:.1} MB in {:.1} s",
            received.received,
            record.messages,
            received.received_bytes as f64 / 1e6,
            record.seconds
        ),
    );
    row("delivered twice", received.twice.to_string());
    row("corrupt", received.corrupt.to_string());
    row(
        "receiver restarted",
        format!(
            "{} connections made anew; {} messages that it had not acknowledged came in both of its lives",
            record.reconnected, received.in_both_lives
        ),
    );
    row(
        "links",
        format!(
            "{} packets lost, {} marked",
            record.packets_lost, record.packets_marked
        ),
    );
    row(
        "memory of the receiver",
        format!(
            "{:.1} MB at the peak",
            received.peak_memory_bytes as f64 / 1e6
        ),
    );
    table.render(usize::MAX)
}
