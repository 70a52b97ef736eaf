//! `clearway tune`.

use crate::arguments::TuneArguments;
use crate::failure::Failure;
use crate::messages::say;
use crate::output::print;
use crate::progress::{Console, Interrupt};
use crate::sweep::{Display, own_program};
use clearway_lab::Laboratory;
use clearway_report::sweep::SweepRecord;
use clearway_report::{Align, Table};
use clearway_runs::{REVISION, command_line};
use clearway_sweep::{
    ExecuteOptions, Program, Store, Sweep, SweepPlan, Tuning, counted, fit, publish, record, tune,
};
use std::path::PathBuf;
use std::process::ExitCode;
use std::thread::available_parallelism;

pub(crate) fn run(laboratory: &Laboratory, arguments: &TuneArguments) -> Result<ExitCode, Failure> {
    let mut plan = SweepPlan::load(&arguments.plan)?;
    plan.set_tune(arguments.measure.as_deref(), arguments.budget)?;
    fit(&mut plan)?;
    let program = Program {
        version: env!("CARGO_PKG_VERSION").into(),
        revision: REVISION.into(),
    };
    let sweep = Sweep::resolve(plan, laboratory, &program, true)?;
    let folder = arguments
        .out
        .clone()
        .unwrap_or_else(|| PathBuf::from("out").join(format!("tune-{}", sweep.plan.general.name)));
    let store = Store::open(&folder, &sweep)?;
    let own = own_program()?;
    let cores = available_parallelism().map_or(1, usize::from);
    let (interrupt, console) = (Interrupt::install(), Console::new(arguments.quiet));
    let interrupted = || interrupt.is_raised();
    let display = Display::new(0, &console);
    let on_progress = |progress: &_| display.update(progress);
    let on_failure = |_: usize, reason: &str| display.say(reason);
    let tuning = tune((&sweep, laboratory), &store, &program, |runs| {
        display.begin(runs);
        ExecuteOptions {
            command: own.clone(),
            jobs: arguments.jobs.map_or(cores, usize::from),
            interrupted: &interrupted,
            on_progress: &on_progress,
            on_failure: &on_failure,
        }
    })?;
    display.finish();
    let record = record(&sweep, &store, &program, &command_line())?;
    publish(&store, &record)?;
    show(arguments, &sweep, &tuning, record)?;
    Ok(conclude(&store, &tuning, arguments))
}

/// Prints what came out: the rungs, and the points of the last one.
fn show(
    arguments: &TuneArguments,
    sweep: &Sweep,
    tuning: &Tuning,
    mut record: SweepRecord,
) -> Result<(), Failure> {
    if arguments.json {
        return print(&format!("{}\n", record.to_json().trim_end()));
    }
    if arguments.quiet {
        return Ok(());
    }
    let mut table = Table::new()
        .column("rung", Align::Right)
        .column("points", Align::Right)
        .column("seeds", Align::Right)
        .column("left out", Align::Right)
        .column("best", Align::Left);
    for (number, rung) in (1..).zip(&tuning.rungs) {
        let best = rung.kept.first().map(|place| record.name_of(place));
        table.row([
            i32::to_string(&number),
            rung.points.to_string(),
            rung.seeds.to_string(),
            rung.left_out.to_string(),
            best.unwrap_or_else(|| "-".into()),
        ]);
    }
    let mut text = table.render(usize::MAX);
    if let Some(last) = tuning.rungs.last() {
        record.runs.retain(|run| last.kept.contains(&run.place));
        record.missing = 0;
        let points = record.to_table(Some(&sweep.plan.tune.measure));
        text += &format!("\n{}\n", points.trim_end());
    }
    print(&text)
}

fn conclude(store: &Store, tuning: &Tuning, arguments: &TuneArguments) -> ExitCode {
    let folder = store.folder().display();
    if tuning.execution.interrupted {
        say(&format!(
            "interrupted: what is done is kept in {folder}; the same command goes on from there"
        ));
        return ExitCode::from(130);
    }
    if !arguments.quiet {
        let new = counted(tuning.execution.done as u64, "run");
        say(&format!(
            "{new} done now; all of them, with a report, are in {folder}"
        ));
    }
    let has_best = tuning
        .rungs
        .last()
        .is_some_and(|rung| !rung.kept.is_empty());
    if !has_best {
        say("no point has a value of the measure with all seeds: there is no best one");
    }
    ExitCode::from(u8::from(!has_best))
}
