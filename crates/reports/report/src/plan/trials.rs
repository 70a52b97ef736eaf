//! Trials of a plan's jobs in the simulator.

use super::PlanRecord;
use crate::quantity;
use serde::Serialize;

/// Iterations of jobs under a mechanism.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TrialRow {
    /// Mechanism: `fair`, `shifted`, `timers`, `adaptive` or `priorities`.
    pub mechanism: &'static str,
    /// Median that the fluid model predicts, for each job.
    pub predicted_us: Vec<Option<f64>>,
    /// Median in the simulator, for each job.
    pub simulated_us: Vec<Option<f64>>,
    /// Mean in the simulator, for each job.
    pub mean_us: Vec<Option<f64>>,
}

/// A mechanism that was left out.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LeftOut {
    /// Name of the mechanism.
    pub mechanism: &'static str,
    /// Reason why it was left out.
    pub reason: String,
}

/// The jobs of a plan in the simulator: alone and together.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TrialsRecord {
    /// Number of iterations of each job in a run together with others.
    pub iterations: u32,
    /// The median iteration of each job alone.
    pub alone_us: Vec<Option<f64>>,
    /// Trials of the jobs together, one for each mechanism.
    pub trials: Vec<TrialRow>,
    /// Mechanisms that are not available.
    pub left_out: Vec<LeftOut>,
    /// Share by which slots are longer than planned.
    pub stretch: f64,
    /// True if the user stopped the simulations.
    pub interrupted: bool,
}

/// Relative difference between a median and its prediction from which on there is a remark.
const FAR: f64 = 0.1;

fn time(us: Option<f64>) -> String {
    us.map_or("-".into(), quantity::microseconds)
}

impl TrialsRecord {
    /// Speed-up of `job` over fair shares in the simulator: a ratio of medians.
    pub(crate) fn speed_up(&self, trial: &TrialRow, job: usize) -> Option<f64> {
        let fair = self.trials.iter().find(|trial| trial.mechanism == "fair")?;
        Some(fair.simulated_us[job]? / trial.simulated_us[job]?)
    }

    /// The rows of the table: mechanism, job, predicted, simulated, mean, speed-up.
    pub fn rows(&self, plan: &PlanRecord) -> Vec<[String; 6]> {
        let name = |job: usize| plan.jobs[job].name.clone();
        let alone = self.alone_us.iter().enumerate().map(|(job, &us)| {
            let planned = quantity::microseconds(plan.jobs[job].alone_us);
            let blank = String::new();
            [
                "alone".into(),
                name(job),
                planned,
                time(us),
                blank.clone(),
                blank,
            ]
        });
        let together = self.trials.iter().flat_map(|trial| {
            (0..trial.simulated_us.len()).map(move |job| {
                let speed_up = self.speed_up(trial, job);
                [
                    trial.mechanism.into(),
                    name(job),
                    time(trial.predicted_us[job]),
                    time(trial.simulated_us[job]),
                    time(trial.mean_us[job]),
                    speed_up.map_or("-".into(), |factor| format!("{factor:.2}x")),
                ]
            })
        });
        alone.chain(together).collect()
    }

    /// Remarks below the table.
    pub fn remarks(&self, plan: &PlanRecord) -> Vec<String> {
        let mut remarks = self.misjudged(plan);
        if self.stretch > 0.0 {
            remarks.push(format!(
                "slots are {:.1} % longer than planned: congestion control and headers need that",
                self.stretch * 100.0
            ));
        }
        for LeftOut { mechanism, reason } in &self.left_out {
            remarks.push(format!("`{mechanism}` was left out: {reason}"));
        }
        if self.interrupted {
            remarks.push("interrupted: missing values were not simulated".into());
        }
        remarks
    }

    /// Jobs whose median is far from its prediction.
    fn misjudged(&self, plan: &PlanRecord) -> Vec<String> {
        let mut all = Vec::new();
        for trial in &self.trials {
            let medians = trial.predicted_us.iter().zip(&trial.simulated_us);
            for (job, (predicted, simulated)) in medians.enumerate() {
                let (Some(predicted), Some(simulated)) = (predicted, simulated) else {
                    continue;
                };
                let factor = simulated / predicted;
                if (factor - 1.0).abs() > FAR {
                    all.push(format!(
                        "`{}`: {} takes {factor:.2} times the predicted time: the model has no congestion control",
                        trial.mechanism, plan.jobs[job].name
                    ));
                }
            }
        }
        all
    }
}
