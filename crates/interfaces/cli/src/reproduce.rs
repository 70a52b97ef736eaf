//! `clearway reproduce`.

use crate::arguments::ReproduceArguments;
use crate::atomic_file::AtomicFile;
use crate::failure::Failure;
use crate::messages::say;
use crate::output::print;
use crate::progress::{Console, Interrupt};
use clearway_lab::{Laboratory, RunDecision, RunProgress};
use clearway_report::quantity;
use clearway_report_text::{Align, Table};
use clearway_reproduce::{
    ClaimOutcome, ClaimVerdict, Figure, FigureOutcome, FigureRequest, Judgement, Line,
    ProgressWatcher, RecordHeader, Recorded, Reproducer, Scale, Tally, figure, figure_ids,
    named_figures, recorded,
};
use clearway_runs::REVISION;
use clearway_runs::Stopwatch;
use clearway_units::suggestion;
use indicatif::{ProgressBar, ProgressStyle};
use std::process::ExitCode;
use std::sync::atomic::{AtomicU32, Ordering};

/// Width of the column with the paper's values.
const CLAIM_WIDTH: usize = 58;

pub(crate) fn reproduce(
    laboratory: &Laboratory,
    arguments: &ReproduceArguments,
) -> Result<ExitCode, Failure> {
    let ids = chosen(arguments)?;
    if ids.is_empty() {
        list()?;
        return Ok(ExitCode::SUCCESS);
    }
    let request = request(arguments);
    let form = &arguments.print;
    let screen = Screen::new(form.quiet);
    let mut reproducer = Reproducer::new(laboratory.clone(), arguments.threads.into());
    let place = |id: &str| arguments.out.join(file_name(id, &request));
    let file = |id: &str| AtomicFile::create(&place(id), "choose another folder with --out");
    // Check all files before the first figure, which may take hours. The check leaves no files behind.
    ids.iter().try_for_each(|id| file(id).map(drop))?;
    let mut total = Tally::default();
    let (mut shown, mut kept) = (Vec::new(), Ok(()));
    for id in ids {
        let figure = figure(id).expect("its id comes from the list");
        let file = file(id)?;
        let stopwatch = Stopwatch::start();
        let outcome = match reproducer.reproduce(&figure, &request, &screen) {
            Err(error) if request.null.is_some() => {
                screen.clear();
                say(&format!("{id} cannot take the null subject: {error}"));
                continue;
            }
            other => other?,
        };
        let (cpu, wall) = (stopwatch.cpu_seconds(), stopwatch.wall_seconds());
        let fingerprint = fingerprint(&mut reproducer, &figure, &outcome, &screen)?;
        screen.clear();
        let command = command(id, arguments);
        let text = as_lines(&outcome, command, fingerprint, [cpu, wall]);
        let path = place(id);
        let written = file.publish(&text);
        shown.push(match (form.json, form.quiet, &written) {
            (true, _, _) => print(&text),
            (false, true, _) => Ok(()),
            (false, false, Ok(())) => {
                print(&(describe(&outcome) + &format!("results  {}\n\n", path.display())))
            }
            (false, false, Err(_)) => print(&describe(&outcome)),
        });
        total.add(outcome.tally());
        if written.is_err() {
            kept = written;
            break;
        }
        if !outcome.complete {
            say(&format!(
                "interrupted: finished runs of {id} are kept in {}",
                path.display()
            ));
            return Ok(ExitCode::from(130));
        }
    }
    if !form.json && !form.quiet {
        shown.push(print(&format!("{}\n", counts(&total, request.scale))));
    }
    // The files are written even if printing fails. One print error is enough to report.
    let shown = shown.into_iter().find(Result::is_err);
    Failure::all([shown.unwrap_or(Ok(())), kept])?;
    Ok(match total.missed {
        0 => ExitCode::SUCCESS,
        _ => ExitCode::from(1),
    })
}

fn request(arguments: &ReproduceArguments) -> FigureRequest {
    FigureRequest {
        scale: arguments.scale.into(),
        seeds: arguments.seeds,
        changes: arguments.changes.clone(),
        null: arguments.null,
    }
}

/// The figures that the arguments name, without duplicates.
fn chosen(arguments: &ReproduceArguments) -> Result<Vec<&'static str>, Failure> {
    if arguments.all {
        return Ok(figure_ids().collect());
    }
    let mut ids = Vec::new();
    for name in &arguments.figures {
        let found = named_figures(name).map_err(|near| {
            let ids: Vec<&str> = figure_ids().collect();
            let fix = suggestion(near, &format!("there are: {}", ids.join(", ")));
            Failure::new(format!("there is no figure `{name}`\n  fix: {fix}"))
        })?;
        found.into_iter().for_each(|id| {
            if !ids.contains(&id) {
                ids.push(id);
            }
        });
    }
    Ok(ids)
}

/// The command that reproduces one of the figures.
fn command(id: &str, arguments: &ReproduceArguments) -> String {
    let scale: Scale = arguments.scale.into();
    let mut command = format!("clearway reproduce {id} --scale {}", scale.name());
    if let Some(seeds) = arguments.seeds {
        command += &format!(" --seeds {seeds}");
    }
    for change in &arguments.changes {
        command += &format!(" --set '{change}'");
    }
    if let Some(subject) = arguments.null {
        command += &format!(" --null {subject}");
    }
    command
}

fn file_name(id: &str, request: &FigureRequest) -> String {
    let name = id.replace('/', "-");
    // A changed figure must not be confused with the original figure.
    let changed = match request.null {
        Some(subject) => format!(".{subject}"),
        None if request.changes.is_empty() => String::new(),
        None => ".changed".into(),
    };
    format!("{name}.{}{changed}.jsonl", request.scale.name())
}

/// All figures with their known verdicts.
fn list() -> Result<(), Failure> {
    let mut table = Table::new()
        .column("figure", Align::Left)
        .column("small scale", Align::Left)
        .column("full scale", Align::Left)
        .column("shows", Align::Left);
    let mut known: [Vec<Recorded>; 2] = Default::default();
    for id in figure_ids() {
        let figure = figure(id).expect("its id comes from the list");
        let records = Scale::ALL.map(|scale| recorded(id, scale));
        let [small, full] = records.map(recorded_verdicts);
        table.row([id.to_owned(), small, full, figure.title]);
        for (known, record) in known.iter_mut().zip(records) {
            known.extend(record);
        }
    }
    print(&format!(
        "{table}\n{}\n\nclearway reproduce FIGURE... | PAPER | --all [--scale small|full]\n",
        wrap(&overview(&known, figure_ids().count()), 80).join("\n")
    ))
}

/// Recorded verdicts of a figure at one scale, as text.
fn recorded_verdicts(record: Option<Recorded>) -> String {
    let Some(record) = record else {
        return "-".into();
    };
    let stale = if record.stale { ", stale" } else { "" };
    format!("{} of {}{stale}", record.passed, record.judged())
}

/// Summary of the table: records at small and at full scale, for `figures` figures.
fn overview([small, full]: &[Vec<Recorded>; 2], figures: usize) -> String {
    let sum = |records: &[Recorded], count: fn(&Recorded) -> u32| -> u32 {
        records.iter().map(count).sum()
    };
    let stale = full.iter().filter(|record| record.stale).count();
    format!(
        "Claims that hold, of those that can be judged. Small scale, which takes minutes and which CI runs: {} of {} hold, {} do not, and {} \
         differ between seeds. Why each of them does not is in the book (docs/src/figures.md). Full scale, the size of the paper, which \
         takes up to hours for a figure: {} of {} hold in the {} of {figures} figures that have a record (`-`: none); {stale} records are \
         older than a change of what is measured (stale).",
        sum(small, |own| own.passed),
        sum(small, Recorded::judged),
        sum(small, |own| own.missed),
        sum(small, |own| own.unsure),
        sum(full, |own| own.passed),
        sum(full, Recorded::judged),
        full.len(),
    )
}

/// Fingerprint of an outcome's measures. For full scale, the figure also runs at small scale with one seed.
fn fingerprint(
    reproducer: &mut Reproducer,
    figure: &Figure,
    outcome: &FigureOutcome,
    screen: &Screen,
) -> Result<Option<String>, Failure> {
    let changed = !outcome.changes.is_empty() || outcome.null.is_some();
    if outcome.scale == Scale::Small || !outcome.complete || changed {
        return Ok(figure.fingerprint(outcome));
    }
    let request = FigureRequest {
        scale: Scale::Small,
        seeds: Some(1),
        changes: Vec::new(),
        null: None,
    };
    let small = reproducer.reproduce(figure, &request, screen)?;
    Ok(figure.fingerprint(&small))
}

/// An outcome as JSON lines.
fn as_lines(
    outcome: &FigureOutcome,
    command: String,
    fingerprint: Option<String>,
    [cpu_seconds, wall_seconds]: [f64; 2],
) -> String {
    let tally = outcome.tally();
    let header = Line::Reproduction(RecordHeader {
        schema: 1,
        command,
        version: env!("CARGO_PKG_VERSION").into(),
        revision: REVISION.into(),
        fingerprint,
        figure: outcome.figure.clone(),
        title: outcome.title.clone(),
        source: outcome.source.clone(),
        setup: outcome.setup.clone(),
        scale: outcome.scale,
        changes: outcome.changes.clone(),
        null: outcome.null.clone(),
        seeds: outcome.seeds.clone(),
        complete: outcome.complete,
        passed: tally.passed,
        missed: tally.missed,
        unsure: tally.unsure,
        not_yet: tally.not_yet,
        cpu_seconds,
        wall_seconds,
    });
    let claims = outcome.claims.iter().cloned().map(Line::Claim);
    let runs = outcome.runs.iter().cloned().map(Line::Run);
    let lines = [header].into_iter().chain(claims).chain(runs);
    let lines = lines.map(|line| serde_json::to_string(&line).expect("numbers and texts") + "\n");
    lines.collect()
}

/// An outcome as text.
fn describe(outcome: &FigureOutcome) -> String {
    let mut heading = Table::new().column("", Align::Left).column("", Align::Left);
    heading.row([
        outcome.figure.as_str(),
        &format!("{} ({})", outcome.title, outcome.source),
    ]);
    let seeds = outcome.seeds.len();
    heading.row([
        "set-up",
        &format!(
            "{}; {} scale, {seeds} seed{}",
            outcome.setup,
            outcome.scale.name(),
            if seeds == 1 { "" } else { "s" }
        ),
    ]);
    if !outcome.changes.is_empty() {
        heading.row(["changed", &outcome.changes.join(", ")]);
    }
    if let Some(subject) = &outcome.null {
        heading.row(["null subject", subject]);
    }
    let mut table = Table::new()
        .column("the paper says", Align::Left)
        .column("ours", Align::Left)
        .column("rule", Align::Left)
        .column("verdict", Align::Left);
    for claim in &outcome.claims {
        claim_rows(claim, outcome.scale, &mut table);
    }
    let mut text = format!("{}\n{}", heading.render(130), table.render(usize::MAX));
    for claim in &outcome.claims {
        let what = match claim.verdict {
            ClaimVerdict::Miss => "missed",
            ClaimVerdict::Unsure => "unsure",
            _ => continue,
        };
        if let Some(note) = &claim.note {
            let lines = wrap(&format!("{what} [{}]: {note}", claim.id), 126);
            text += &format!("\n{}\n", lines.join("\n  "));
        }
    }
    text
}

/// Table rows of a claim, as many as its longest cell needs.
fn claim_rows(claim: &ClaimOutcome, scale: Scale, table: &mut Table) {
    let mut paper = wrap(&format!("{} [{}]", claim.paper, claim.id), CLAIM_WIDTH);
    let (mut ours, mut rules) = (Vec::new(), Vec::new());
    let mut former = None;
    for judgement in &claim.judgements {
        ours.push(measured(judgement));
        rules.push(rule(judgement));
        if former != Some(&judgement.quantity) {
            let quantity = wrap(&judgement.quantity, CLAIM_WIDTH - 4);
            paper.extend(quantity.into_iter().map(|line| format!("    {line}")));
            former = Some(&judgement.quantity);
        }
    }
    let verdict = match &claim.verdict {
        ClaimVerdict::Pass => "PASS".into(),
        ClaimVerdict::Miss => "MISS".into(),
        ClaimVerdict::Unsure => "UNSURE".into(),
        ClaimVerdict::NotYet(what) => format!("NOT YET: needs {what}"),
        ClaimVerdict::NotRun => "interrupted".into(),
        ClaimVerdict::OtherScale => match scale {
            Scale::Small => "at full scale only".into(),
            Scale::Full => "at small scale only".into(),
        },
    };
    let cell = |cells: &[String], line: usize| cells.get(line).cloned().unwrap_or_default();
    for line in 0..paper.len().max(ours.len()) {
        table.row([
            cell(&paper, line),
            cell(&ours, line),
            cell(&rules, line),
            if line == 0 {
                verdict.clone()
            } else {
                String::new()
            },
        ]);
    }
}

/// Measured value, with the spread over seeds.
fn measured(judgement: &Judgement) -> String {
    let at = judgement.at.as_ref().map(|at| format!("{at}: "));
    let value = match judgement.measured {
        None => judgement.reason.clone().unwrap_or_else(|| "-".into()),
        Some(value) => {
            let known = || judgement.per_seed.iter().flatten().copied();
            let (low, high) = (
                known().fold(f64::INFINITY, f64::min),
                known().fold(f64::NEG_INFINITY, f64::max),
            );
            match low < high {
                true => format!("{} ({} to {})", short(value), short(low), short(high)),
                false => short(value),
            }
        }
    };
    at.unwrap_or_default() + &value
}

/// The rule; bounds that are measures appear as numbers.
fn rule(judgement: &Judgement) -> String {
    if !judgement.rule.contains('(') {
        return judgement.rule.clone();
    }
    let sign: String = judgement.rule.split_whitespace().take(1).collect();
    let bounds: Vec<String> = judgement
        .bounds
        .iter()
        .map(|bound| bound.map_or("-".into(), short))
        .collect();
    format!("{sign} {}", bounds.join(", "))
}

/// A number with four significant digits.
fn short(value: f64) -> String {
    let digits = match value.abs() {
        size if size >= 1000.0 || value.fract() == 0.0 => 0,
        size if size >= 100.0 => 1,
        size if size >= 10.0 => 2,
        _ => 3,
    };
    format!("{value:.digits$}")
}

fn counts(total: &Tally, scale: Scale) -> String {
    let judged = total.passed + total.missed + total.unsure;
    let claims = judged + total.not_yet + total.other_scale + total.not_run;
    let mut parts = vec![
        format!("{} passed", total.passed),
        format!("{} missed", total.missed),
        format!("{} unsure", total.unsure),
    ];
    let other = match scale {
        Scale::Small => "at full scale only",
        Scale::Full => "at small scale only",
    };
    for (count, what) in [(total.not_yet, "not yet"), (total.other_scale, other)] {
        if count > 0 {
            parts.push(format!("{count} {what}"));
        }
    }
    format!("{claims} claims: {}", parts.join(", "))
}

/// `text` in lines of at most `width` characters, broken at blanks.
fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let line = lines.last_mut().expect("there is a line");
        let length = line.chars().count() + 1 + word.chars().count();
        if line.is_empty() {
            line.push_str(word);
        } else if length <= width {
            *line += &format!(" {word}");
        } else {
            lines.push(word.to_owned());
        }
    }
    lines
}

/// Progress of figures, and early ends of their runs.
struct Screen {
    console: Console,
    /// Progress bar of the figure: finished runs and all runs.
    bar: ProgressBar,
    interrupt: Interrupt,
    rounds: AtomicU32,
}

impl Screen {
    fn new(quiet: bool) -> Self {
        let console = Console::new(quiet);
        let bar = ProgressBar::with_draw_target(Some(1), console.draw_target());
        if let Ok(style) = ProgressStyle::with_template("{prefix} {bar:24} {pos}/{len} runs  {msg}")
        {
            bar.set_style(style);
        }
        Self {
            console,
            bar,
            interrupt: Interrupt::install(),
            rounds: AtomicU32::new(0),
        }
    }

    fn clear(&self) {
        self.bar.finish_and_clear();
        self.bar.reset();
    }

    /// Log line with the progress of the figure and of one of its runs.
    fn line(&self, run: &str) -> String {
        let (done, total) = (self.bar.position(), self.bar.length().unwrap_or(0));
        format!("{}: {done} of {total} runs done, {run}", self.bar.prefix())
    }
}

impl ProgressWatcher for Screen {
    fn on_round(&self, _worker: usize, progress: &RunProgress) -> RunDecision {
        if self.interrupt.is_raised() {
            return RunDecision::Stop;
        }
        // The line shows one run: the run of the worker that counts this round.
        let round = self.rounds.fetch_add(1, Ordering::Relaxed);
        if round.is_multiple_of(16) {
            let run = || {
                format!(
                    "one at {}, {} of {} flows done",
                    quantity::microseconds(progress.now.as_us()),
                    progress.flows_sent,
                    progress.flows
                )
            };
            self.bar.set_message(run());
            self.console.log(|| self.line(&run()));
        }
        RunDecision::Continue
    }

    fn on_run(&self, figure: &str, done: usize, total: usize) {
        self.bar.set_prefix(figure.to_owned());
        self.bar.set_length(total as u64);
        self.bar.set_position(done as u64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::print_arguments::PrintArguments;

    #[test]
    fn numbers_are_short() {
        let shown = [0.0, 3.0, 0.98765, 12.3456, 123.456, 10424.01, -0.5].map(short);
        assert_eq!(
            shown,
            ["0", "3", "0.988", "12.35", "123.5", "10424", "-0.500"]
        );
    }

    #[test]
    fn unknown_figures_get_a_suggestion() {
        let chosen = |name: &str| {
            chosen(&ReproduceArguments {
                figures: vec![name.into()],
                all: false,
                scale: crate::arguments::ScaleArgument::Small,
                seeds: None,
                changes: Vec::new(),
                null: None,
                threads: 1,
                out: crate::arguments::reproduction_folder(),
                print: PrintArguments {
                    json: false,
                    quiet: false,
                },
            })
        };
        assert_eq!(chosen("strack/fig9").unwrap(), ["strack/fig9"]);
        assert_eq!(
            chosen("strack").unwrap().len(),
            figure_ids().filter(|id| id.starts_with("strack/")).count()
        );
        for (wrong, near) in [
            ("fig9", "strack/fig9"),
            ("strack/fgi16", "strack/fig16"),
            ("strakc", "strack"),
        ] {
            let failure = format!("{:?}", chosen(wrong).unwrap_err());
            assert!(
                failure.contains(&format!("did you mean `{near}`")),
                "{failure}"
            );
        }
    }
}
