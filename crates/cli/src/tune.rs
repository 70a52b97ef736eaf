//! `clearway tune`.

use crate::arguments::TuneArguments;
use crate::failure::Failure;
use crate::messages::say;
use crate::output::print;
use crate::progress::{Console, Interrupt};
use crate::study::{Display, own_program, this_program};
use clearway_lab::Laboratory;
use clearway_report::sweep::SweepRecord;
use clearway_report::{Align, Table};
use clearway_runs::command_line;
use clearway_sweep::{
    ExecuteOptions, Store, Sweep, SweepPlan, Tuning, counted, fit, publish, record, tune,
};
use std::process::ExitCode;

pub(crate) fn run(laboratory: &Laboratory, arguments: &TuneArguments) -> Result<ExitCode, Failure> {
    let study = &arguments.study;
    let mut plan = SweepPlan::load(&study.plan)?;
    plan.set_tune(arguments.measure.as_deref(), arguments.budget)?;
    fit(&mut plan)?;
    // Who gives a budget has said how many runs there may be.
    let is_confirmed = study.yes || plan.tune.budget.is_some();
    let program = this_program();
    let sweep = Sweep::resolve(plan, laboratory, &program, is_confirmed)?;
    let store = Store::open(&study.folder("tune", &sweep), &sweep)?;
    let own = own_program()?;
    let (interrupt, console) = (Interrupt::install(), Console::new(study.quiet));
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
    if arguments.study.json {
        return print(&format!("{}\n", record.to_json().trim_end()));
    }
    if arguments.study.quiet {
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
    if !arguments.study.quiet {
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
