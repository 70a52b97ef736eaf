//! `clearway plan`.

use crate::arguments::PlanArguments;
use crate::atomic_file::DocumentAndPage;
use crate::failure::Failure;
use crate::kinds::Kind as FileKind;
use crate::messages::say;
use crate::output::print;
use crate::overwrite_check::{Input, refuse_input};
use crate::progress::{Console, Display, Interrupt};
use clearway_lab::{Laboratory, RunProgress, Threads};
use clearway_plan::{
    CompatibilityVerdict, Demand, JobsFile, PhaseKind, Placed, PlannedResource, Resource, Share,
    TrialOptions, Trials, UnifiedCircle, builtin_plans,
};
use clearway_report::PlanRecord;
use clearway_report::plan::{
    CircleRow, FILE_NAME, LeftOut, MoveRow, PlanVerdict, PlannedJobRow, PlannedLinkRow,
    PlannedPhase, TrialRow, TrialsRecord,
};
use clearway_report_html::{PLAN_FILE_NAME, render_plan};
use clearway_report_text::plan_table;
use clearway_runs::{REVISION, command_line};
use clearway_units::{ParameterSet, Span};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Advice to the user if results cannot be written.
const FIX: &str = "choose another folder with --out";

pub(crate) fn plan(
    laboratory: &Laboratory,
    arguments: &PlanArguments,
) -> Result<ExitCode, Failure> {
    let mut file = JobsFile::load_with(laboratory.registry(), &arguments.jobs)
        .map_err(|error| FileKind::Jobs.explain(laboratory, &arguments.jobs, error))?;
    if let Some(folder) = &arguments.out {
        check_inputs(folder, &arguments.jobs)?;
        // Only a check that the files can be written; it leaves no files behind.
        DocumentAndPage::create(folder, [FILE_NAME, PLAN_FILE_NAME], FIX)?;
    }
    let mut simulator = Simulator::new(arguments);
    if arguments.simulator.profile {
        let Some(profiled) = simulator.with_progress(|options| file.profiled(options))? else {
            say("interrupted: nothing was planned");
            return Ok(ExitCode::from(130));
        };
        file = profiled;
    }
    let folder = arguments.out.clone().unwrap_or_else(|| {
        let name = format!("plan-{}-{}", file.name, file.hash());
        PathBuf::from("out").join(name)
    });
    let placed = file.plan()?;
    // Created before the simulations, which may be long.
    let files = DocumentAndPage::create(&folder, [FILE_NAME, PLAN_FILE_NAME], FIX)?;
    let trials = match arguments.simulator.simulate {
        true => Some(simulator.with_progress(|options| file.simulate(&placed, options))?),
        false => None,
    };
    let interrupted = trials.as_ref().is_some_and(|trials| trials.interrupted);
    let mut record = record(&file, &placed);
    record.trials = trials.map(|trials| trials_record(&trials, arguments.iterations));
    let json = record.to_json();
    let shown = match (arguments.print.json, arguments.print.quiet) {
        (true, _) => print(&json),
        (false, false) => print(&plan_table(&record)),
        (false, true) => Ok(()),
    };
    let written = files.publish(&json, &render_plan(&record));
    Failure::all([shown, written])?;
    if !arguments.print.json && !arguments.print.quiet {
        print(&format!("\nResults  {}\n", folder.display()))?;
    }
    if interrupted {
        say("interrupted: the trials cover the runs that were done");
    }
    Ok(match placed.plan.verdict() {
        _ if interrupted => ExitCode::from(130),
        CompatibilityVerdict::Compatible => ExitCode::SUCCESS,
        CompatibilityVerdict::Incompatible | CompatibilityVerdict::Unknown => ExitCode::from(1),
    })
}

/// Request for a plan.
#[derive(Debug, Clone, Copy)]
pub struct PlanRequest<'a> {
    /// A built-in plan or a file of jobs.
    pub jobs: &'a str,
    /// Measure phases of jobs in the simulator.
    pub profile: bool,
    /// Try the plan in the simulator.
    pub simulate: bool,
    /// Iterations of each job in a simulation.
    pub iterations: u32,
    /// Worker threads of a simulation.
    pub threads: Threads,
    /// Command to record in the results.
    pub command: &'a str,
}

/// Plans jobs without terminal output. `on_progress` gets the title and the progress of each simulation. The result is `None` if its
/// verdict stops a simulation before the jobs are planned.
///
/// # Errors
/// If the file of jobs is invalid.
pub fn planned(
    laboratory: &Laboratory,
    request: &PlanRequest<'_>,
    on_progress: &mut dyn FnMut(&str, RunProgress) -> clearway_lab::RunDecision,
) -> Result<Option<PlanRecord>, Failure> {
    let mut file = JobsFile::load_with(laboratory.registry(), request.jobs)?;
    let mut options = TrialOptions {
        iterations: request.iterations,
        threads: request.threads,
        on_progress,
    };
    if request.profile {
        let Some(profiled) = file.profiled(&mut options)? else {
            return Ok(None);
        };
        file = profiled;
    }
    let placed = file.plan()?;
    let trials = match request.simulate {
        true => Some(file.simulate(&placed, &mut options)?),
        false => None,
    };
    let mut record = record(&file, &placed);
    record.command = request.command.into();
    record.trials = trials.map(|trials| trials_record(&trials, request.iterations));
    Ok(Some(record))
}

/// Runs simulations, shows their progress, and lets the user stop them.
struct Simulator {
    iterations: u32,
    threads: Threads,
    console: Console,
    interrupt: Option<Interrupt>,
}

impl Simulator {
    fn new(arguments: &PlanArguments) -> Self {
        let simulates = arguments.simulator.profile || arguments.simulator.simulate;
        Self {
            iterations: arguments.iterations,
            threads: arguments.threads,
            console: Console::new(arguments.print.quiet),
            interrupt: simulates.then(Interrupt::install),
        }
    }

    /// Runs several simulations, each with its own progress display.
    fn with_progress<R>(&mut self, simulate: impl FnOnce(&mut TrialOptions<'_>) -> R) -> R {
        let console = &self.console;
        let mut shown: Option<(String, Display<'_>)> = None;
        let interrupt = self.interrupt.get_or_insert_with(Interrupt::install);
        let on_progress = &mut |title: &str, progress: RunProgress| {
            if shown.as_ref().is_none_or(|(known, _)| known != title) {
                if let Some((_, display)) = shown.take() {
                    display.finish();
                }
                let display = Display::new(progress.flows, console).titled(title);
                shown = Some((title.to_owned(), display));
            }
            let (_, display) = shown.as_mut().expect("it has just been made");
            display.update(&progress, interrupt)
        };
        let result = simulate(&mut TrialOptions {
            iterations: self.iterations,
            threads: self.threads,
            on_progress,
        });
        if let Some((_, display)) = shown {
            display.finish();
        }
        result
    }
}

fn trials_record(trials: &Trials, iterations: u32) -> TrialsRecord {
    let all = |spans: &[Option<Span>]| {
        let spans = spans.iter();
        spans.map(|span| span.map(Span::as_us)).collect()
    };
    let rows = trials.trials.iter().map(|trial| TrialRow {
        mechanism: trial.mechanism.name(),
        predicted_us: all(&trial.predicted),
        simulated_us: all(&trial.simulated),
        mean_us: all(&trial.means),
    });
    let left_out = trials.left_out.iter().map(|(mechanism, reason)| LeftOut {
        mechanism: mechanism.name(),
        reason: reason.clone(),
    });
    TrialsRecord {
        iterations,
        alone_us: all(&trials.alone),
        trials: rows.collect(),
        left_out: left_out.collect(),
        stretch: trials.stretch,
        interrupted: trials.interrupted,
    }
}

/// Fails if the plan would overwrite its input.
fn check_inputs(folder: &Path, jobs: &str) -> Result<(), Failure> {
    let input = Input {
        what: "the file of jobs".into(),
        path: jobs.into(),
    };
    let inputs: &[Input] = match builtin_plans().iter().any(|(name, _)| *name == jobs) {
        true => &[],
        false => &[input],
    };
    for name in [FILE_NAME, PLAN_FILE_NAME] {
        refuse_input("--out", &folder.join(name), inputs)?;
    }
    Ok(())
}

fn verdict(verdict: CompatibilityVerdict) -> PlanVerdict {
    match verdict {
        CompatibilityVerdict::Compatible => PlanVerdict::Compatible,
        CompatibilityVerdict::Incompatible => PlanVerdict::Incompatible,
        CompatibilityVerdict::Unknown => PlanVerdict::Unknown,
    }
}

/// Record of the plan, with the names from the file.
fn record(file: &JobsFile, placed: &Placed) -> PlanRecord {
    let plan = &placed.plan;
    let settings = file.settings.entries().into_iter();
    let moves = placed.moves.iter().map(|moved| MoveRow {
        job: moved.job,
        from: file.placements[moved.job][moved.from].clone(),
        to: file.placements[moved.job][moved.to].clone(),
        missing_without: moved.missing_without,
    });
    PlanRecord {
        version: env!("CARGO_PKG_VERSION").into(),
        revision: REVISION.into(),
        command: command_line(),
        name: file.name.clone(),
        hash: file.hash(),
        verdict: verdict(plan.verdict()),
        missing: plan.missing(),
        missing_before: placed.missing_before,
        settings: settings
            .map(|(key, value)| (key, value.to_string().trim_matches('"').to_string()))
            .collect(),
        jobs: (0..file.jobs.len())
            .map(|job| job_row(file, placed, job))
            .collect(),
        links: plan
            .resources
            .iter()
            .map(|used| link_row(file, placed, used))
            .collect(),
        circles: plan.circles.iter().map(circle_row).collect(),
        moves: moves.collect(),
        reasons: file.reasons(placed),
        profiled: file.profiled,
        trials: None,
    }
}

fn job_row(file: &JobsFile, placed: &Placed, job: usize) -> PlannedJobRow {
    let planned = &placed.plan.jobs[job];
    let profile = &file.problem.jobs()[job].profile;
    let phases = |kind| {
        let phases = profile.phases(kind).iter();
        phases
            .map(|phase| PlannedPhase {
                start_us: phase.start.as_us(),
                length_us: phase.length.as_us(),
                share: match phase.demand {
                    Demand::Share(share) => Some(share.as_f64()),
                    Demand::Rate(_) => None,
                },
                rate_bps: match phase.demand {
                    Demand::Share(_) => None,
                    Demand::Rate(rate) => Some(rate.as_bps()),
                },
            })
            .collect()
    };
    let names = &file.placements[job];
    PlannedJobRow {
        name: file.jobs[job].clone(),
        placement: (names.len() > 1).then(|| names[planned.placement].clone()),
        circle: planned.circle,
        alone_us: profile.period().as_us(),
        period_us: planned.period.as_us(),
        communication_share: profile.fraction(PhaseKind::Communication),
        repeats: planned.repeats,
        shift_us: planned.shift.as_us(),
        angle_degrees: planned.angle,
        priority: planned.priority,
        communication: phases(PhaseKind::Communication),
        compute: phases(PhaseKind::Compute),
    }
}

fn link_row(file: &JobsFile, placed: &Placed, used: &PlannedResource) -> PlannedLinkRow {
    let shares = |&job: &u32| {
        let choice = placed.plan.jobs[job as usize].placement;
        let shares = file.problem.shares(job as usize, choice, used.resource);
        shares.into_iter().map(Share::as_f64).collect()
    };
    PlannedLinkRow {
        name: file.resource_name(used.resource).to_string(),
        kind: match used.resource {
            Resource::Link(_) => "link",
            Resource::Gpu(_) => "gpu",
        },
        jobs: used.jobs.clone(),
        circle: used.circle,
        load: used.load,
        score: used.score,
        score_before: used.score_before,
        overlap_us: used.overlap.as_us(),
        compatible: used.is_compatible(),
        shares: used.jobs.iter().map(shares).collect(),
    }
}

fn circle_row(circle: &UnifiedCircle) -> CircleRow {
    CircleRow {
        jobs: circle.jobs.clone(),
        perimeter_us: circle.perimeter().as_us(),
        tick_us: circle.tick.as_us(),
        sectors: circle.sectors,
        overlap_us: circle.overlap.as_us(),
        least_overlap_us: circle.least_overlap.as_us(),
        verdict: verdict(circle.verdict),
        work: circle.work,
    }
}
