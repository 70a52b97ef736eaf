//! Concurrent execution of all runs of a figure.

use super::definition::{Axis, RecordSpec, Scale};
use super::figure::{Figure, Run};
use super::figure_run_data::FigureRunData;
use super::jobs::overlaps;
use super::judge::Runs;
use super::null::NullSubject;
use super::outcome::{FigureOutcome, FigureRun};
use super::plans::{PlanData, jobs_file, lines};
use super::recorders::{SERIES_LIMIT, keep, recorders};
use super::run_data::RunData;
use super::scaleup::ScaleupData;
use super::summary::{FlowTable, curves, measures, summarise};
use clearway_fabric::{RunDecision, RunProgress, Sampler, Watch};
use clearway_lab::record::{AckRecorder, Both, RateFairnessSampler, merge_all};
use clearway_lab::{
    Assembly, Experiment, Laboratory, RunOptions, ScaleupScenario, Scenario, ScenarioError,
    SourceLocation,
};
use clearway_plan::JobsFile;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Watcher of the progress of runs, called from all worker threads.
pub trait ProgressWatcher: Sync {
    /// Called after each round of the engine; may stop all runs.
    fn on_round(&self, worker: usize, progress: &RunProgress) -> RunDecision;
    /// Called when `done` of `total` runs of a figure have ended, and with zero before the first run begins.
    fn on_run(&self, figure: &str, done: usize, total: usize);
}

/// Request to reproduce a figure.
#[derive(Debug, Clone, PartialEq)]
pub struct FigureRequest {
    /// Scale of the reproduction.
    pub scale: Scale,
    /// Number of seeds, from 1; `None` for the figure's number of seeds.
    pub seeds: Option<u64>,
    /// Settings for every run, as `KEY=VALUE`, that replace settings of the figure. They are for what-if questions, never for a verdict on
    /// the paper.
    pub changes: Vec<String>,
    /// Null subject in place of the transports of the figure.
    pub null: Option<NullSubject>,
}

/// Reproducer of figures, which carries out a run shared by several figures only once.
pub struct Reproducer {
    laboratory: Laboratory,
    threads: usize,
    known: BTreeMap<String, Arc<FigureRunData>>,
}

/// A run with one seed.
struct Job {
    labels: Vec<String>,
    seed: u64,
    settings: Vec<String>,
    work: Work,
    key: String,
}

/// Work to be done for a run.
enum Work {
    Simulate(Box<Scenario>),
    Scaleup(Box<ScaleupScenario>),
    Plan(Box<JobsFile>),
}

impl Reproducer {
    /// Creates a reproducer with `threads` concurrent runs.
    pub fn new(laboratory: Laboratory, threads: usize) -> Self {
        Self {
            laboratory,
            threads: threads.max(1),
            known: BTreeMap::new(),
        }
    }

    /// Runs a figure and judges its claims.
    ///
    /// # Errors
    /// If a scenario of the figure cannot be run.
    pub fn reproduce(
        &mut self,
        figure: &Figure,
        request: &FigureRequest,
        watcher: &dyn ProgressWatcher,
    ) -> Result<FigureOutcome, ScenarioError> {
        let scale = request.scale;
        let count = request.seeds.unwrap_or(figure.scales[scale as usize].seeds);
        let seeds: Vec<u64> = (1..=count).collect();
        let jobs = self.jobs(figure, request, &seeds)?;
        self.run_all(figure, &jobs, watcher)?;
        let mut runs = Runs::new();
        let mut outcomes = Vec::new();
        for job in &jobs {
            let Some(data) = self.known.get(&job.key) else {
                continue;
            };
            outcomes.push(job.outcome(figure, data, job.seed == seeds[0]));
            runs.insert((job.labels.clone(), job.seed), Arc::clone(data));
        }
        let claims = figure.claims.iter();
        Ok(FigureOutcome {
            figure: figure.id.clone(),
            title: figure.title.clone(),
            source: figure.source.clone(),
            setup: figure.setup(scale),
            scale,
            changes: request.changes.clone(),
            null: request.null.map(|subject| subject.name().to_owned()),
            complete: outcomes.len() == jobs.len(),
            runs: outcomes,
            claims: claims
                .map(|claim| figure.judge(claim, scale, &seeds, &runs))
                .collect(),
            seeds,
        })
    }

    fn jobs(
        &self,
        figure: &Figure,
        request: &FigureRequest,
        seeds: &[u64],
    ) -> Result<Vec<Job>, ScenarioError> {
        let mut jobs = Vec::new();
        let runs = figure.runs(request.scale);
        for change in &request.changes {
            figure.refuse_change(change, &runs)?;
            self.refuse_useless(figure, request.scale, change, &runs)?;
        }
        for run in runs.iter().filter(|run| run.needs.is_none()) {
            for &seed in seeds {
                jobs.push(match &run.plan {
                    Some(plan) => planned(figure, run, seed, plan)?,
                    None => {
                        let mut settings = figure.settings_of(request.scale, run, seed);
                        if let Some(subject) = request.null {
                            let kind = figure.run_kind(request.scale, &run.labels);
                            settings = subject.replace(figure, kind, &settings);
                        }
                        for change in &request.changes {
                            if self.has_key(figure, &settings, change)? {
                                settings.push(change.clone());
                            }
                        }
                        self.simulated(figure, run, seed, settings)?
                    }
                });
            }
        }
        Ok(jobs)
    }

    /// True if a scenario has the key of a change. Runs with other transports may lack the key; they stay unchanged.
    fn has_key(
        &self,
        figure: &Figure,
        settings: &[String],
        change: &str,
    ) -> Result<bool, ScenarioError> {
        let read = |settings: &[String]| self.laboratory.read_any(&figure.id, "", None, settings);
        let changed = [settings, &[change.to_owned()]].concat();
        let Err(error) = read(&changed) else {
            return Ok(true);
        };
        let key = change.split('=').next().unwrap_or_default().trim();
        let scenario = read(settings)?;
        let mut keys = scenario.settings().into_iter();
        match keys.any(|setting| setting.path() == key) {
            true => Err(error),
            false => Ok(false),
        }
    }

    /// Rejects a change whose key no run has.
    fn refuse_useless(
        &self,
        figure: &Figure,
        scale: Scale,
        change: &str,
        runs: &[Run],
    ) -> Result<(), ScenarioError> {
        let simulated = runs
            .iter()
            .filter(|run| run.plan.is_none() && run.needs.is_none());
        let mut last = None;
        for run in simulated {
            let settings = figure.settings_of(scale, run, 1);
            if self.has_key(figure, &settings, change)? {
                return Ok(());
            }
            last = Some(settings);
        }
        let Some(mut settings) = last else {
            return Ok(());
        };
        settings.push(change.to_owned());
        self.laboratory
            .read_any(&figure.id, "", None, &settings)
            .map(drop)
    }

    fn simulated(
        &self,
        figure: &Figure,
        run: &Run,
        seed: u64,
        settings: Vec<String>,
    ) -> Result<Job, ScenarioError> {
        let experiment = self.laboratory.read_any(&figure.id, "", None, &settings)?;
        // The name of a scenario has no influence on a run, so figures can share runs.
        let key = format!("{}{:?}", experiment.resolved(), figure.record);
        Ok(Job {
            labels: run.labels.clone(),
            seed,
            settings,
            work: match experiment {
                Experiment::Packets(scenario) => Work::Simulate(scenario),
                Experiment::Scaleup(scenario) => Work::Scaleup(scenario),
            },
            key,
        })
    }

    /// Carries out the runs without known results.
    fn run_all(
        &mut self,
        figure: &Figure,
        jobs: &[Job],
        watcher: &dyn ProgressWatcher,
    ) -> Result<(), ScenarioError> {
        let open = || jobs.iter().filter(|job| !self.known.contains_key(&job.key));
        // Axes list sizes from small to large; the reverse order starts the longest runs first.
        let open: Vec<&Job> = open().rev().collect();
        watcher.on_run(&figure.id, 0, open.len());
        let (next, done) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let results = Mutex::new(Vec::new());
        let work = |worker: usize| {
            loop {
                let index = next.fetch_add(1, Ordering::Relaxed);
                let Some(job) = open.get(index) else { break };
                let result = job.run(&figure.record, &|progress| {
                    watcher.on_round(worker, progress)
                });
                if result.as_ref().is_ok_and(FigureRunData::is_interrupted) {
                    break;
                }
                let mut results = results.lock().unwrap_or_else(PoisonError::into_inner);
                results.push((index, result));
                drop(results);
                let done = done.fetch_add(1, Ordering::Relaxed) + 1;
                watcher.on_run(&figure.id, done, open.len());
            }
        };
        std::thread::scope(|scope| {
            let work = &work;
            for worker in 1..self.threads.min(open.len()) {
                scope.spawn(move || work(worker));
            }
            work(0);
        });
        let mut results = results.into_inner().unwrap_or_else(PoisonError::into_inner);
        // Restores the order of the figure, so that the reported fault does not depend on timing.
        results.sort_by_key(|&(index, _)| Reverse(index));
        let keys: Vec<String> = open.iter().map(|job| job.key.clone()).collect();
        for (index, result) in results {
            self.known.insert(keys[index].clone(), Arc::new(result?));
        }
        Ok(())
    }
}

impl Figure {
    /// Rejects a change of a key that the figure varies, which would make labels false: a claim on 100 MB would be judged from another
    /// size.
    fn refuse_change(&self, change: &str, runs: &[Run]) -> Result<(), ScenarioError> {
        if runs.iter().all(|run| run.plan.is_some()) {
            return Err(ScenarioError::at(
                &SourceLocation::Override(change.into()),
                format!("{} is planned: nothing is simulated", self.id),
                "write a file of jobs of your own for `clearway plan`",
            ));
        }
        let key = |setting: &str| setting.split('=').next().map(|key| key.trim().to_owned());
        let varies = |axis: &Axis| {
            let values = axis.values.iter().flatten();
            let mut settings = values.flat_map(|value| &value.settings);
            settings.any(|setting| key(setting) == key(change))
        };
        let axis = self.axes.iter().find(|axis| varies(axis));
        let varied = match axis {
            Some(axis) => axis.name.as_str(),
            None if key(change).as_deref() == Some("seed") => "seed",
            None => return Ok(()),
        };
        Err(ScenarioError::at(
            &SourceLocation::Override(change.into()),
            format!("{} varies its {varied} itself", self.id),
            "change a key that is the same in all runs of the figure",
        ))
    }

    /// All settings of a run.
    pub(crate) fn settings_of(&self, scale: Scale, run: &Run, seed: u64) -> Vec<String> {
        let own = &self.scales[scale as usize].settings;
        let mut settings = [self.settings.as_slice(), own, &run.settings].concat();
        settings.push(format!("seed={seed}"));
        settings
    }
}

/// Job for a planned run.
fn planned(figure: &Figure, run: &Run, seed: u64, plan: &str) -> Result<Job, ScenarioError> {
    let file = jobs_file(&figure.id, plan, seed)?;
    Ok(Job {
        labels: run.labels.clone(),
        seed,
        settings: lines(plan),
        key: format!("plan {}", file.hash()),
        work: Work::Plan(Box::new(file)),
    })
}

impl Job {
    fn run(
        &self,
        record: &RecordSpec,
        on_progress: &dyn Fn(&RunProgress) -> RunDecision,
    ) -> Result<FigureRunData, ScenarioError> {
        let scenario = match &self.work {
            Work::Plan(file) => {
                return Ok(FigureRunData::Planned(Box::new(PlanData::compute(file)?)));
            }
            Work::Scaleup(scenario) => {
                let data = ScaleupData::simulate(scenario, on_progress)?;
                return Ok(FigureRunData::Scaleup(Box::new(data)));
            }
            Work::Simulate(scenario) => scenario,
        };
        let assembly = match record.queue {
            // The choice of the recorded queue may need a list of flows, to find the host with the most incoming flows.
            Some(_) => Assembly::new(scenario)?,
            None => Assembly::streaming(scenario)?,
        };
        let mut data = self.simulate(&assembly, record, on_progress)?;
        data.settings = scenario
            .settings()
            .into_iter()
            .map(|setting| (setting.path(), setting.value))
            .collect();
        Ok(FigureRunData::Simulated(Box::new(data)))
    }

    fn simulate(
        &self,
        assembly: &Assembly,
        record: &RecordSpec,
        on_progress: &dyn Fn(&RunProgress) -> RunDecision,
    ) -> Result<RunData, ScenarioError> {
        let mut on_progress = |progress: RunProgress| on_progress(&progress);
        let mut table = FlowTable::new(assembly.flow_count());
        let options = RunOptions {
            threads: 1.into(),
            on_progress: &mut on_progress,
            on_flow: &mut |id, flow, result| table.add(assembly, id, flow, result),
        };
        let network = recorders(assembly, record)?;
        if *record == RecordSpec::default() {
            let finished = assembly.run(options, Watch::Off);
            return Ok(summarise(assembly, table, &finished));
        }
        let sampler = |every| RateFairnessSampler::new(assembly, every, SERIES_LIMIT);
        let mut rates = record.rates.map(sampler);
        let mut observers = assembly.per_domain(|| Both {
            first: network(),
            second: record.acks.map(AckRecorder::new),
        });
        let sampler = rates.as_mut().map(|rates| rates as &mut dyn Sampler);
        let finished = assembly.run_sampled(options, Watch::by(&mut observers), sampler);
        let mut data = summarise(assembly, table, &finished);
        if let Some(recorders) = merge_all(observers) {
            keep(&mut data, assembly, record, recorders.first);
            let acks = recorders.second.map(|acks| acks.flows().clone());
            data.acks = acks.unwrap_or_default();
        }
        data.rates = rates.map(RateFairnessSampler::into_samples);
        Ok(data)
    }

    fn outcome(&self, figure: &Figure, kept: &FigureRunData, with_curves: bool) -> FigureRun {
        let names = figure.axes.iter().map(|axis| axis.name.clone());
        let (digest, measures) = match kept {
            FigureRunData::Simulated(data) => (data.digest.to_string(), measures(data)),
            FigureRunData::Planned(plan) => (plan.digest(), plan.measures()),
            FigureRunData::Scaleup(data) => (data.digest(), data.measures()),
        };
        FigureRun {
            labels: names.zip(self.labels.iter().cloned()).collect(),
            seed: self.seed,
            settings: self.settings.clone(),
            digest,
            measures,
            curves: match kept {
                FigureRunData::Simulated(data) if with_curves => {
                    let mut curves = curves(data);
                    if figure.record.overlaps {
                        curves.extend(overlaps(data));
                    }
                    curves
                }
                _ => Vec::new(),
            },
        }
    }
}
