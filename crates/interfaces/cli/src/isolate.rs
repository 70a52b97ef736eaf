//! `clearway isolate`.
//!
//! Each transport runs without an attack, then under each attack. Runs go seed by seed, so an interrupted study still has complete seeds.

mod attackers;

use crate::arguments::IsolateArguments;
use crate::atomic_file::DocumentAndPage;
use crate::dry_run;
use crate::failure::Failure;
use crate::messages::{say, warn};
use crate::output::print;
use crate::progress::{Console, Display, Interrupt, wall_time};
use crate::run::load;
use crate::scenario_arguments::ScenarioArguments;
use attackers::Attackers;
use clearway_lab::scenario::TransportSettings;
use clearway_lab::{
    Assembly, AttackKind, Experiment, Laboratory, RunOptions, Scenario, Scope, Stopped, Threads,
    Watch,
};
use clearway_report::isolation::{
    AttackPair, FILE_NAME, Harm, IsolationCell, IsolationRecord, IsolationVerdict,
};
use clearway_report::{AttackSides, FlowRow, User};
use clearway_report_html::{ISOLATION_FILE_NAME, render_isolation};
use clearway_report_text::{isolation_matrix, isolation_table};
use clearway_runs::flow_row;
use clearway_runs::{REVISION, Stopwatch, command_line};
use clearway_sweep::counted;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::ExitCode;

/// Advice to the user if results cannot be written.
const FIX: &str = "choose another folder with --out";

pub(crate) fn isolate(
    laboratory: &Laboratory,
    arguments: &IsolateArguments,
) -> Result<ExitCode, Failure> {
    let study = IsolationStudy::prepare(laboratory, arguments)?;
    if arguments.dry_run {
        return study.describe();
    }
    let folder = arguments.out.clone().unwrap_or_else(|| {
        let scenario = &study.transports[0].scenario;
        let name = format!("isolate-{}-{}", scenario.general.name, scenario.hash());
        PathBuf::from("out").join(name)
    });
    let files = DocumentAndPage::create(&folder, [FILE_NAME, ISOLATION_FILE_NAME], FIX)?;
    let (interrupt, console) = (Interrupt::install(), Console::new(arguments.print.quiet));
    let record = study.run(arguments, &console, &interrupt)?;
    if record.cells.is_empty() {
        say("interrupted before a pair of runs was done: there is nothing to compare");
        return Ok(ExitCode::from(130));
    }
    let json = record.to_json();
    let shown = match (arguments.print.json, arguments.print.quiet) {
        (true, _) => print(&json),
        (false, false) if arguments.matrix => print(&isolation_matrix(&record)),
        (false, false) => print(&isolation_table(&record)),
        (false, true) => Ok(()),
    };
    let written = files.publish(&json, &render_isolation(&record));
    Failure::all([shown, written])?;
    if !arguments.print.json && !arguments.print.quiet {
        print(&format!("\nResults  {}\n", folder.display()))?;
    }
    if !record.complete {
        say("interrupted: the study covers the runs that were done");
        return Ok(ExitCode::from(130));
    }
    Ok(match record.cells.iter().all(is_isolated) {
        true => ExitCode::SUCCESS,
        false => ExitCode::from(1),
    })
}

/// True if the attack is shown to bring no gain and no harm. Unmeasured and untested cells do not count as isolated.
fn is_isolated(cell: &IsolationCell) -> bool {
    let measured = cell.gain.is_some() && cell.loss.is_some() && cell.incomplete == 0;
    let gains_nothing = match cell.verdict {
        IsolationVerdict::Secure | IsolationVerdict::Unsure => true,
        IsolationVerdict::Vulnerable | IsolationVerdict::NotTested => false,
    };
    measured && gains_nothing && cell.harm != Harm::Harmful
}

/// Transport under study, in an enforcement scope.
struct Subject {
    name: String,
    scope: String,
    scenario: Scenario,
}

impl Subject {
    /// The transport of the scenario's flows, or the combination of its sections' transports.
    fn new(scenario: Scenario) -> Self {
        let transports = scenario.transports();
        let (mut names, mut scopes) = (Vec::new(), Vec::new());
        let all = transports.names(&scenario.section_names());
        for (place, (name, settings)) in (0u8..).zip(all.iter().zip(&transports.settings)) {
            if transports.of_section.contains(&place) {
                names.push(name.as_str());
                scopes.push(settings.scope.scope.name());
            }
        }
        scopes.dedup();
        Self {
            name: names.join("+"),
            scope: scopes.join("+"),
            scenario,
        }
    }

    /// Every requested pair of a transport and a scope.
    fn all(
        arguments: &IsolateArguments,
        laboratory: &Laboratory,
        own: Scenario,
    ) -> Result<Vec<Self>, Failure> {
        let mut transports = arguments.transports.clone();
        let mut scopes = arguments.scopes.clone();
        if arguments.matrix && transports.is_empty() {
            let presets = TransportSettings::presets();
            transports = presets.iter().map(|(name, _)| (*name).into()).collect();
        }
        if arguments.matrix && scopes.is_empty() {
            scopes = Scope::ALL.to_vec();
        }
        // Without a name, the scenario's own setting applies.
        let or_own = |settings: Vec<String>| match settings.is_empty() {
            true => vec![None],
            false => settings.into_iter().map(Some).collect(),
        };
        let named = |key: &str, names: &mut dyn Iterator<Item = &str>| {
            or_own(
                names
                    .map(|name| format!("transport.{key}={name}"))
                    .collect(),
            )
        };
        let transports = named("kind", &mut transports.iter().map(String::as_str));
        let scopes = named("scope", &mut scopes.iter().map(|scope| scope.name()));
        if let ([None], [None]) = (&transports[..], &scopes[..]) {
            return Ok(vec![Self::new(own)]);
        }
        let (mut subjects, mut first) = (Vec::new(), None);
        for transport in &transports {
            for scope in &scopes {
                let settings = [transport.clone(), scope.clone()].into_iter().flatten();
                let overrides = arguments.scenario.overrides.iter().cloned();
                let scenario = ScenarioArguments {
                    overrides: overrides.chain(settings).collect(),
                    ..arguments.scenario.clone()
                };
                match load(laboratory, &scenario) {
                    Ok(scenario) => subjects.push(Self::new(scenario)),
                    // Some transports do not support scopes, because links allocate their rates.
                    Err(failure) if arguments.matrix && arguments.scopes.is_empty() => {
                        if !arguments.print.quiet {
                            say(&format!("left out: {}", failure.first_line()));
                        }
                        first.get_or_insert(failure);
                    }
                    Err(failure) => return Err(failure),
                }
            }
        }
        match first {
            Some(failure) if subjects.is_empty() => Err(failure),
            _ => Ok(subjects),
        }
    }
}

/// Parsed and checked request.
struct IsolationStudy {
    transports: Vec<Subject>,
    attacks: Vec<AttackKind>,
    attackers: Attackers,
    seeds: Vec<u64>,
}

impl IsolationStudy {
    fn prepare(laboratory: &Laboratory, arguments: &IsolateArguments) -> Result<Self, Failure> {
        let own = load(laboratory, &arguments.scenario)?;
        let attackers = Attackers::parse(arguments.attackers.as_deref(), &own)?;
        let first = own.general.seed;
        let mut study = Self {
            transports: Subject::all(arguments, laboratory, own)?,
            attacks: arguments.attacks.clone(),
            attackers,
            seeds: (first..first.saturating_add(arguments.seeds)).collect(),
        };
        if study.attacks.is_empty() {
            study.attacks = study.possible(arguments)?;
        }
        if arguments.matrix && arguments.transports.is_empty() {
            study.leave_out_without_rule(arguments)?;
        }
        study.check(arguments)?;
        Ok(study)
    }

    /// Leaves out transports without the rule that an attack breaks, because the user did not name the transports of a matrix.
    fn leave_out_without_rule(&mut self, arguments: &IsolateArguments) -> Result<(), Failure> {
        if !self.attacks.contains(&AttackKind::Disobey) {
            return Ok(());
        }
        let (mut first, mut told) = (None, BTreeSet::new());
        for subject in std::mem::take(&mut self.transports) {
            match Assembly::new(&self.scenario(&subject, AttackKind::Disobey, self.seeds[0])) {
                Ok(_) => self.transports.push(subject),
                Err(error) => {
                    // Report a transport once for all of its scopes.
                    if told.insert(subject.name.clone()) && !arguments.print.quiet {
                        say(&format!("left out: {}: {}", subject.name, error.message));
                    }
                    first.get_or_insert(error);
                }
            }
        }
        match first {
            Some(error) if self.transports.is_empty() => Err(error.into()),
            _ => Ok(()),
        }
    }

    /// The usual attacks that the workload allows.
    fn possible(&self, arguments: &IsolateArguments) -> Result<Vec<AttackKind>, Failure> {
        let (mut possible, mut first) = (Vec::new(), None);
        for kind in AttackKind::USUAL {
            match Assembly::new(&self.scenario(&self.transports[0], kind, self.seeds[0])) {
                Ok(_) => possible.push(kind),
                Err(error) => {
                    if !arguments.print.quiet {
                        say(&format!("left out: {}: {}", kind.name(), error.message));
                    }
                    first.get_or_insert(error);
                }
            }
        }
        match first {
            Some(error) if possible.is_empty() => Err(error.into()),
            _ => Ok(possible),
        }
    }

    /// Fails if a scenario cannot be assembled, or if there are no victims.
    fn check(&self, arguments: &IsolateArguments) -> Result<(), Failure> {
        let mut warned = BTreeSet::new();
        for (place, subject) in self.transports.iter().enumerate() {
            if subject.scenario.fast_forward.error.is_some() {
                return Err(Failure::new(
                    "`fast-forward`: remembered calls and skipped time do not feel an attack\n  fix: leave it out; every packet is simulated then",
                ));
            }
            // All transports share the workload, so one of them is enough to check most attacks. Only `disobey` depends on the transport's
            // rules.
            let own = |kind: &AttackKind| *kind == AttackKind::Disobey;
            let kinds = self.attacks.iter().enumerate();
            let kinds = kinds.filter(|(number, kind)| place == 0 || *number == 0 || own(kind));
            for (_, &kind) in kinds {
                let assembly = Assembly::new(&self.scenario(subject, kind, self.seeds[0]))?;
                let tenants = subject.scenario.tenants().of_section;
                let attacks = self.attackers.users(&subject.scenario);
                let mut users = assembly.workload.flows.iter().map(|flow| User {
                    tenant: tenants[flow.section as usize],
                    host: flow.src.0,
                });
                if users.all(attacks) {
                    return Err(Failure::new(format!(
                        "--attackers {}: all hosts that send in this workload attack\n  \
                         fix: leave others as victims, or tell tenants apart by `tenant` in the sections of the workload",
                        self.attackers
                    )));
                }
                if kind == self.attacks[0] && !arguments.print.quiet {
                    // Warnings hardly differ between scopes, so each text is printed once.
                    let texts = assembly.warnings.iter();
                    let texts = texts.map(|text| format!("{}: {text}", subject.name));
                    texts
                        .filter(|text| warned.insert(text.clone()))
                        .for_each(|text| warn(&text));
                }
            }
        }
        Ok(())
    }

    /// The scenario of a transport under an attack.
    fn scenario(&self, subject: &Subject, kind: AttackKind, seed: u64) -> Scenario {
        let mut scenario = subject.scenario.clone();
        scenario.general.seed = seed;
        let attacks = self.attackers.sections(&subject.scenario);
        for (section, attacks) in scenario.workloads.iter_mut().zip(attacks) {
            section.attack.kind = match attacks {
                true => kind,
                false => AttackKind::None,
            };
            if attacks {
                section.attack.hosts = self.attackers.hosts().clone();
            }
        }
        scenario
    }

    /// Number of runs.
    fn runs(&self) -> usize {
        self.seeds.len() * self.transports.len() * (self.attacks.len() + 1)
    }

    /// Number of runs, and its factors.
    fn announcement(&self) -> String {
        let names: BTreeSet<&str> = self
            .transports
            .iter()
            .map(|own| own.name.as_str())
            .collect();
        let transports = match self.transports.len() {
            count if count == names.len() => counted(count as u64, "transport"),
            count => format!("{count} pairs of transport and scope"),
        };
        format!(
            "{}: {transports} x {} x (1 + {})",
            counted(self.runs() as u64, "run"),
            counted(self.seeds.len() as u64, "seed"),
            counted(self.attacks.len() as u64, "attack"),
        )
    }

    /// Prints the number of runs and their cost.
    fn describe(&self) -> Result<ExitCode, Failure> {
        let attacks = [AttackKind::None]
            .into_iter()
            .chain(self.attacks.iter().copied());
        let all: Vec<(&Subject, AttackKind)> = self
            .transports
            .iter()
            .flat_map(|subject| attacks.clone().map(move |kind| (subject, kind)))
            .collect();
        let samples = dry_run::sampled(all.len()).into_iter();
        let samples = samples.map(|at| {
            let (subject, kind) = all[at];
            Experiment::Packets(Box::new(self.scenario(subject, kind, self.seeds[0])))
        });
        let expected = dry_run::study(&samples.collect::<Vec<_>>(), self.runs() as u64)?;
        print(&format!(
            "Runs       {}\nExpect     {expected}\n",
            self.announcement()
        ))?;
        Ok(ExitCode::SUCCESS)
    }

    fn run(
        &self,
        arguments: &IsolateArguments,
        console: &Console,
        interrupt: &Interrupt,
    ) -> Result<IsolationRecord, Failure> {
        let mut pairs = vec![Vec::new(); self.transports.len() * self.attacks.len()];
        let total = self.runs();
        if !arguments.print.quiet {
            say(&self.announcement());
        }
        let (mut done, mut complete) = (0, true);
        let stopwatch = Stopwatch::start();
        'all: for &seed in &self.seeds {
            for (row, subject) in self.transports.iter().enumerate() {
                let mut parties = |kind: AttackKind| {
                    let title = title(done, total, stopwatch.wall_seconds());
                    done += 1;
                    let scenario = self.scenario(subject, kind, seed);
                    let display = |flows| Display::new(flows, console).titled(&title);
                    self.simulate((subject, &scenario), arguments.threads, display, interrupt)
                };
                let Some(before) = parties(AttackKind::None)? else {
                    complete = false;
                    break 'all;
                };
                for (column, &kind) in self.attacks.iter().enumerate() {
                    let Some(after) = parties(kind)? else {
                        complete = false;
                        break 'all;
                    };
                    let before = before.clone();
                    pairs[row * self.attacks.len() + column].push(AttackPair { before, after });
                }
            }
        }
        let mut cells = Vec::new();
        for (place, pairs) in pairs
            .iter()
            .enumerate()
            .filter(|(_, pairs)| !pairs.is_empty())
        {
            let subject = &self.transports[place / self.attacks.len()];
            let attack = self.attacks[place % self.attacks.len()].name();
            cells.push(IsolationCell::from_pairs(
                &subject.name,
                &subject.scope,
                attack,
                pairs,
            ));
        }
        Ok(IsolationRecord {
            schema: 1,
            version: env!("CARGO_PKG_VERSION").into(),
            revision: REVISION.into(),
            command: command_line(),
            scenario: self.transports[0].scenario.general.name.clone(),
            attackers: self.attackers.to_string(),
            seeds: self.seeds.clone(),
            complete,
            cells,
        })
    }

    /// Runs a scenario; `None` after an interrupt.
    fn simulate<'a>(
        &self,
        (subject, scenario): (&Subject, &Scenario),
        threads: Threads,
        display: impl FnOnce(usize) -> Display<'a>,
        interrupt: &Interrupt,
    ) -> Result<Option<AttackSides>, Failure> {
        let assembly = Assembly::new(scenario)?;
        let mut rows: Vec<FlowRow> = Vec::with_capacity(assembly.flow_count());
        let mut display = display(assembly.flow_count());
        let options = RunOptions {
            threads,
            on_progress: &mut |progress| display.update(&progress, interrupt),
            on_flow: &mut |id, flow, result| rows.push(flow_row(id, flow, result)),
        };
        let finished = assembly.run(options, Watch::Off);
        display.finish();
        if finished.stopped == Some(Stopped::Interrupted) {
            return Ok(None);
        }
        let tenants = subject.scenario.tenants().of_section;
        let attacks = self.attackers.users(&subject.scenario);
        Ok(Some(AttackSides::among(&rows, &tenants, attacks)))
    }
}

/// Heading of the run after `done` others, with the remaining time of the study if it is known.
fn title(done: usize, total: usize, elapsed: f64) -> String {
    let number = done + 1;
    match done {
        0 => format!("run {number} of {total}"),
        _ => {
            let left = elapsed * (total - done) as f64 / done as f64;
            format!("run {number} of {total} ({} to go)", wall_time(left))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn titles_tell_the_time_to_go_once_a_run_is_done() {
        assert_eq!(title(0, 186, 7.0), "run 1 of 186");
        assert_eq!(title(1, 186, 2.0), "run 2 of 186 (6 min to go)");
        // The estimate for the last run is the mean of the earlier runs.
        assert_eq!(title(185, 186, 370.0), "run 186 of 186 (2 s to go)");
    }
}
