//! The storm: workers that draw, run and judge until time is up.

use crate::arguments::Arguments;
use crate::clock;
use crate::draft::Draft;
use crate::files;
use crate::generate::ScenarioGenerator;
use crate::generated::GeneratedScenario;
use crate::judge::{Judge, ScenarioVerdict};
use crate::report::Report;
use crate::shrink::shrunk;
use crate::violation::Violation;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Attempts to run a scenario, which is mended after each refusal.
const MENDINGS: usize = 8;
/// Interval of scenarios that are run again from their resolved form: one in this number.
const RESOLVED: u64 = 8;
/// Time limit for shrinking a violation.
const SHRINKING: Duration = Duration::from_secs(90);
/// Interval between reports of progress.
const TELLING: Duration = Duration::from_secs(30);

/// State that the workers share.
struct Storm<'a> {
    arguments: &'a Arguments,
    /// Folder of scenarios and results.
    folder: PathBuf,
    drawer: ScenarioGenerator,
    next: AtomicU64,
    start: Instant,
    report: Mutex<Report>,
}

/// Runs the storm, and returns the number of violations.
///
/// # Errors
/// If files cannot be written or the program cannot be started.
pub(crate) fn run(arguments: &Arguments) -> io::Result<u64> {
    std::fs::create_dir_all(&arguments.out)?;
    let folder = arguments.out.canonicalize()?;
    files::write_all(&folder)?;
    let storm = Storm {
        arguments,
        drawer: ScenarioGenerator::new(folder.clone()),
        folder,
        next: AtomicU64::new(0),
        start: clock::now(),
        report: Mutex::default(),
    };
    storm.run_workers()?;
    let report = storm.report();
    let universe = storm.drawer.schema().universe();
    print!("{}", report.coverage(&universe, arguments.coverage));
    if arguments.coverage {
        print!("{}", report.refusals());
    }
    print!("{}", report.findings());
    println!("{}", report.line(storm.minutes(), arguments.seed));
    Ok(report.violations())
}

impl Storm<'_> {
    /// Runs the workers, and reports progress.
    fn run_workers(&self) -> io::Result<()> {
        std::thread::scope(|scope| {
            let worker = |number| scope.spawn(move || self.work(number));
            let workers: Vec<_> = (0..self.arguments.jobs).map(worker).collect();
            let mut told = clock::now();
            while workers.iter().any(|worker| !worker.is_finished()) {
                std::thread::sleep(Duration::from_millis(100));
                if told.elapsed() >= TELLING {
                    told = clock::now();
                    let report = self.report();
                    println!("{}", report.line(self.minutes(), self.arguments.seed));
                }
            }
            let mut ended = workers.into_iter().map(|worker| worker.join());
            let panicked = |_| Err(io::Error::other("a worker panicked"));
            ended.try_for_each(|ended| ended.unwrap_or_else(panicked))
        })
    }

    fn minutes(&self) -> f64 {
        self.start.elapsed().as_secs_f64() / 60.0
    }

    fn report(&self) -> MutexGuard<'_, Report> {
        self.report.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn work(&self, worker: usize) -> io::Result<()> {
        let mut judge = Judge::new(&self.arguments.program, &self.folder, worker)?;
        while self.minutes() < self.arguments.minutes {
            let number = self.next.fetch_add(1, Ordering::Relaxed);
            if number >= self.arguments.runs {
                break;
            }
            match self.drawer.draw(self.arguments.seed, number) {
                Some(generated) => self.scenario(&mut judge, number, generated)?,
                None => self.report().refuse("nothing fits together".into()),
            }
        }
        Ok(())
    }

    /// Judges a scenario, and mends it while the program refuses it.
    fn scenario(
        &self,
        judge: &mut Judge,
        number: u64,
        mut generated: GeneratedScenario,
    ) -> io::Result<()> {
        for _ in 0..MENDINGS {
            let before = judge.runs;
            let judged = judge.judge(&generated.draft, number.is_multiple_of(RESOLVED))?;
            let mut report = self.report();
            report.runs += judge.runs - before;
            match judged {
                ScenarioVerdict::Refused(refusal) => {
                    report.refuse(refusal.reason);
                    drop(report);
                    if !refusal.line.is_some_and(|line| generated.mend_line(line)) {
                        return Ok(());
                    }
                }
                ScenarioVerdict::Sound { complete } => {
                    report.cover(&generated.draft);
                    report.complete += u64::from(complete);
                    return Ok(());
                }
                ScenarioVerdict::Wrong(violation) => {
                    report.cover(&generated.draft);
                    let is_new = report.add(number, &violation);
                    drop(report);
                    if is_new {
                        self.tell(judge, number, &generated.draft, &violation)?;
                    }
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// Shrinks a failing scenario, and writes it down.
    fn tell(
        &self,
        judge: &mut Judge,
        number: u64,
        draft: &Draft,
        violation: &Violation,
    ) -> io::Result<()> {
        println!("scenario {number}: {}", violation.signature());
        let seed = self.arguments.seed;
        let file = self
            .folder
            .join(format!("{}-{seed}-{number}.toml", violation.kind));
        // The finding must not be lost if shrinking is interrupted.
        write(&file, draft, violation, seed, number)?;
        let start = clock::now();
        let mut failed = None;
        let least = shrunk(draft, |candidate| {
            if start.elapsed() > SHRINKING || failed.is_some() {
                return false;
            }
            judge
                .confirms(candidate, violation)
                .unwrap_or_else(|error| {
                    failed = Some(error);
                    false
                })
        });
        if let Some(error) = failed {
            return Err(error);
        }
        write(&file, &least, violation, seed, number)?;
        if let Some(found) = self.report().found(&violation.signature()) {
            found.file = Some(file);
        }
        Ok(())
    }
}

/// Writes a scenario with its violation.
fn write(
    file: &Path,
    draft: &Draft,
    violation: &Violation,
    seed: u64,
    number: u64,
) -> io::Result<()> {
    let mut text = format!(
        "# clearway run {}\n# {}\n",
        file.file_name().unwrap_or_default().display(),
        violation.signature()
    );
    for line in violation.detail.lines().take(12) {
        text += &format!("#   {line}\n");
    }
    text += &format!("# Scenario {number} of `cargo xtask storm --seed {seed}`, shrunk.\n\n");
    std::fs::write(file, text + &draft.text())
}
