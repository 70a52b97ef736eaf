//! `clearway sweep`.

use crate::arguments::SweepArguments;
use crate::dry_run;
use crate::failure::Failure;
use crate::messages::{say, warn};
use crate::output::print;
use crate::prepared_sweep::{Display, PlanSource, PreparedSweep, SweepRequest, own_program};
use crate::progress::{Console, Interrupt};
use clearway_lab::Laboratory;
use clearway_report::fast_forward::warning;
use clearway_report::sweep::{AssertionVerdict, SweepRecord};
use clearway_report_text::{Align, Table, sweep_table};
use clearway_runs::command_line;
use clearway_sweep::{
    ExecuteOptions, Published, Store, Sweep, SweepExecution, check_part, counted, execute,
    not_complete,
};
use std::process::ExitCode;

pub(crate) fn sweep(
    laboratory: &Laboratory,
    arguments: &SweepArguments,
) -> Result<ExitCode, Failure> {
    let request = SweepRequest {
        plan: PlanSource::Name(&arguments.study.plan),
        out: arguments.study.out.as_deref(),
        shard: arguments.shard,
        confirmed: arguments.study.yes,
    };
    let study = PreparedSweep::resolve(laboratory, &request)?;
    if arguments.dry_run {
        return describe(laboratory, &study);
    }
    for part in &arguments.merge {
        check_part(part, &study.sweep)?;
    }
    let store = study.open()?;
    let outcome = match arguments.merge.is_empty() {
        true => carry_out(&study, laboratory, &store, arguments)?,
        false => merge(&study.sweep, &store, arguments)?,
    };
    let (record, published) = study.publish(&store, &command_line())?;
    show(arguments, &store, (&record, &published))?;
    let incomplete = not_complete(&study.sweep, &record, &study.chosen);
    Ok(conclude(
        &study.sweep,
        &store,
        &record,
        &outcome,
        incomplete,
        arguments,
    ))
}

/// Prints the runs of the sweep without starting them.
fn describe(laboratory: &Laboratory, study: &PreparedSweep) -> Result<ExitCode, Failure> {
    let PreparedSweep {
        sweep,
        folder,
        chosen,
    } = study;
    let store = Store::look(folder);
    store.check(sweep)?;
    let finished = store.finished()?;
    let missing = chosen.iter().map(|&at| &sweep.runs[at]);
    let missing: Vec<_> = missing.filter(|run| !finished.contains(&run.key)).collect();
    let mut table = Table::new()
        .column("axis", Align::Left)
        .column("values", Align::Left);
    for axis in &sweep.axes {
        table.row([axis.key.clone(), axis.column(&[]).values.join(", ")]);
    }
    let mut text = String::new();
    if !sweep.axes.is_empty() {
        text = format!("{}\n", table.render(120));
    }
    text += &format!(
        "Runs       {} ({}); of the {} asked for {} are missing in {}\n",
        sweep.runs.len(),
        sweep.plan.shape(),
        chosen.len(),
        missing.len(),
        folder.display()
    );
    if !missing.is_empty() {
        let expected = dry_run::sweep((sweep, laboratory), &missing, missing.len() as u64)?;
        text += &format!("Expect     {expected}\n");
    }
    print(&text)?;
    Ok(ExitCode::SUCCESS)
}

/// Runs the missing runs.
fn carry_out(
    study: &PreparedSweep,
    laboratory: &Laboratory,
    store: &Store,
    arguments: &SweepArguments,
) -> Result<SweepExecution, Failure> {
    let interrupt = Interrupt::install();
    let console = Console::new(arguments.study.print.quiet);
    let display = Display::new(study.chosen.len(), &console);
    let options = ExecuteOptions {
        command: own_program()?,
        jobs: arguments.study.jobs(),
        interrupted: &|| interrupt.is_raised(),
        on_progress: &|progress| display.update(progress),
        on_failure: &|_, reason| display.say(reason),
    };
    let outcome = execute((&study.sweep, laboratory), store, &study.chosen, options)?;
    display.finish();
    Ok(outcome)
}

/// Imports runs that other processes have finished.
fn merge(
    sweep: &Sweep,
    store: &Store,
    arguments: &SweepArguments,
) -> Result<SweepExecution, Failure> {
    let mut outcome = SweepExecution::default();
    for folder in &arguments.merge {
        let merged = store.merge(folder, sweep)?;
        outcome.done += merged.copied as usize;
        if merged.foreign > 0 && !arguments.study.print.quiet {
            warn(&format!(
                "{}: {} left where they are: the plan does not have them",
                folder.display(),
                counted(merged.foreign, "run")
            ));
        }
    }
    Ok(outcome)
}

/// Prints the results.
fn show(
    arguments: &SweepArguments,
    store: &Store,
    (record, published): (&SweepRecord, &Published),
) -> Result<(), Failure> {
    if arguments.study.print.json {
        return print(&published.json);
    }
    if arguments.study.print.quiet {
        return Ok(());
    }
    let table = sweep_table(record, None);
    let folder = store.folder().display();
    print(&format!("{}\n\nResults    {folder}\n", table.trim_end()))
}

/// Prints the finished, failed and missing runs.
fn conclude(
    sweep: &Sweep,
    store: &Store,
    record: &SweepRecord,
    outcome: &SweepExecution,
    incomplete: usize,
    arguments: &SweepArguments,
) -> ExitCode {
    let folder = store.folder().display();
    let all = sweep.runs.len() as u64;
    let done = all - record.missing - record.failures.len() as u64;
    if outcome.interrupted {
        let kept = counted(done, "run");
        say(&format!(
            "interrupted: {kept} of {all} done and kept in {folder}; the same command goes on from there"
        ));
        return ExitCode::from(130);
    }
    if !arguments.study.print.quiet {
        say(&what_is_new(
            outcome,
            (done, all),
            !arguments.merge.is_empty(),
        ));
    }
    if !outcome.failed.is_empty() {
        let failed = counted(outcome.failed.len() as u64, "run");
        say(&format!(
            "{failed} failed; the reasons are in {}; the same command tries again",
            store.folder().join("failed").display()
        ));
    }
    if incomplete > 0 {
        let runs = counted(incomplete as u64, "run");
        say(&format!(
            "{runs} not complete: a limit such as `stop.at-most` ended them; `status` in {} tells which",
            store.folder().join("sweep.json").display()
        ));
    }
    if let Some(error) = record.estimated_error()
        && !arguments.study.print.quiet
    {
        let judged = match record.assertions.is_empty() {
            true => "",
            false => "; assertions are judged by them",
        };
        warn(&(warning(error) + judged));
    }
    let is_merge = !arguments.merge.is_empty();
    if is_merge && record.missing > 0 {
        let missing = counted(record.missing, "run");
        say(&format!(
            "{missing} missing: the same command without `--merge` makes the missing runs"
        ));
    }
    let mut assertions = record.assertions.iter();
    let does_not_hold = assertions.any(|assertion| assertion.verdict != AssertionVerdict::Pass);
    let failed = does_not_hold
        || incomplete > 0
        || !outcome.failed.is_empty()
        || (is_merge && (record.missing > 0 || !record.failures.is_empty()));
    ExitCode::from(u8::from(failed))
}

/// Summary of the runs since the last check.
fn what_is_new(outcome: &SweepExecution, (done, all): (u64, u64), is_merge: bool) -> String {
    let new = counted(outcome.done as u64, "run");
    let others = match outcome.by_others {
        0 => String::new(),
        others => format!(", {others} by other processes"),
    };
    let is_nothing = outcome.done + outcome.by_others + outcome.failed.len() == 0;
    match (is_merge, is_nothing) {
        (true, _) => format!("{new} taken over, {done} of {all} in all"),
        (false, true) => format!("nothing to do: {done} of {all} runs are done"),
        (false, false) => format!("{new} done now{others}, {done} of {all} in all"),
    }
}
