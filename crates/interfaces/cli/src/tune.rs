//! `clearway tune`.

use crate::arguments::TuneArguments;
use crate::dry_run;
use crate::failure::Failure;
use crate::messages::say;
use crate::output::print;
use crate::prepared_sweep::{Display, own_program, this_program};
use crate::progress::{Console, Interrupt};
use clearway_lab::Laboratory;
use clearway_report::sweep::SweepRecord;
use clearway_report_text::tuning_table;
use clearway_runs::command_line;
use clearway_sweep::{
    ExecuteOptions, MOST_RUNS, PlannedRun, Store, Sweep, Tuning, counted, fit, publish, record,
    runs_of_tuning, tune,
};
use std::process::ExitCode;

pub(crate) fn run(laboratory: &Laboratory, arguments: &TuneArguments) -> Result<ExitCode, Failure> {
    let study = &arguments.study;
    let mut plan = study.load(laboratory)?;
    plan.set_tune(arguments.measure.as_deref(), arguments.budget)?;
    fit(&mut plan)?;
    // A budget on the command line is the user's own limit; a plan may come from another author.
    let is_small = plan.tune.budget.is_some_and(|budget| budget <= MOST_RUNS);
    let is_confirmed = study.yes || arguments.budget.is_some() || is_small;
    let program = this_program();
    let sweep = Sweep::resolve(plan, laboratory, &program, is_confirmed)?;
    if arguments.dry_run {
        return describe(laboratory, &sweep);
    }
    let store = Store::open(&study.folder("tune", &sweep), &sweep)?;
    let own = own_program()?;
    let (interrupt, console) = (Interrupt::install(), Console::new(study.print.quiet));
    let interrupted = || interrupt.is_raised();
    let display = Display::new(0, &console);
    let on_progress = |progress: &_| display.update(progress);
    let on_failure = |_: usize, reason: &str| display.say(reason);
    let tuning = tune((&sweep, laboratory), &store, &program, |runs| {
        display.begin(runs);
        ExecuteOptions {
            command: own.clone(),
            jobs: study.jobs(),
            interrupted: &interrupted,
            on_progress: &on_progress,
            on_failure: &on_failure,
        }
    })?;
    display.finish();
    let mut record = record(&sweep, &store, &program, &command_line())?;
    record.tuning = (!tuning.execution.interrupted).then(|| tuning.record(&sweep));
    publish(&store, &record)?;
    show(arguments, &record)?;
    Ok(conclude(&store, &tuning, arguments))
}

/// Prints the number of runs and their estimated cost.
fn describe(laboratory: &Laboratory, sweep: &Sweep) -> Result<ExitCode, Failure> {
    let runs = runs_of_tuning(sweep);
    let all: Vec<&PlannedRun> = sweep.runs.iter().collect();
    let expected = dry_run::sweep((sweep, laboratory), &all, runs)?;
    print(&format!(
        "Runs       {runs} at most ({})\nExpect     {expected}\n",
        sweep.plan.shape()
    ))?;
    Ok(ExitCode::SUCCESS)
}

/// Prints the results.
fn show(arguments: &TuneArguments, record: &SweepRecord) -> Result<(), Failure> {
    if arguments.study.print.json {
        return print(&format!("{}\n", record.to_json().trim_end()));
    }
    if arguments.study.print.quiet {
        return Ok(());
    }
    print(&format!("{}\n", tuning_table(record).trim_end()))
}

fn conclude(store: &Store, tuning: &Tuning, arguments: &TuneArguments) -> ExitCode {
    let folder = store.folder().display();
    if tuning.execution.interrupted {
        say(&format!(
            "interrupted: finished runs are kept in {folder}; the same command goes on from there"
        ));
        return ExitCode::from(130);
    }
    if !arguments.study.print.quiet {
        let new = counted(tuning.execution.done as u64, "run");
        say(&format!(
            "{new} done now; all of them, with a report, are in {folder}"
        ));
    }
    let found = tuning.rungs.last().map_or(0, |rung| rung.best.len());
    let without = tuning.groups - found;
    match (without, tuning.groups) {
        (0, _) => {}
        (_, 1) => {
            say("no point has a value of the measure for every seed, so there is no best point");
        }
        (_, all) => say(&format!(
            "in {without} of {all} groups no point has a value of the measure for every seed, so these groups have no best point"
        )),
    }
    ExitCode::from(u8::from(without > 0))
}
