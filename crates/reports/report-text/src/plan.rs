//! A plan for a terminal.

use crate::table::{Align, Table};
use clearway_report::plan::{PlanRecord, PlannedLinkRow, TrialsRecord, degrees, percent, score};
use clearway_report::quantity;
use std::fmt::Write as _;

/// Maximum number of links in the table; if there are more, the links with the lowest scores are shown.
const MOST_LINKS: usize = 40;

/// Tables and remarks of a plan.
pub fn plan_table(plan: &PlanRecord) -> String {
    let mut text = job_table(plan).to_string();
    if !plan.links.is_empty() {
        let _ = write!(text, "\n{}", link_table(plan));
    }
    for reason in &plan.reasons {
        let _ = write!(text, "\n- {reason}");
    }
    if !plan.reasons.is_empty() {
        text.push('\n');
    }
    let _ = write!(text, "\n{}\n", plan.headline());
    if let Some(trials) = &plan.trials {
        let _ = write!(text, "\n{}", trials_table(trials, plan));
    }
    text
}

fn job_table(plan: &PlanRecord) -> Table {
    let mut table = Table::new()
        .column("job", Align::Left)
        .column("iteration", Align::Right)
        .column("communicates", Align::Right)
        .column("shift", Align::Right)
        .column("angle", Align::Right)
        .column("priority", Align::Right);
    if plan.has_placements() {
        table = table.column("placement", Align::Left);
    }
    for job in &plan.jobs {
        let mut cells = vec![
            job.name.clone(),
            quantity::microseconds(job.period_us),
            percent(job.communication_share),
            quantity::microseconds(job.shift_us),
            degrees(job.angle_degrees),
            job.priority.to_string(),
        ];
        if plan.has_placements() {
            cells.push(job.placement.clone().unwrap_or_default());
        }
        table.row(cells);
    }
    table
}

fn link_table(plan: &PlanRecord) -> Table {
    let mut table = Table::new()
        .column("link", Align::Left)
        .column("load", Align::Right)
        .column("score", Align::Right)
        .column("before", Align::Right)
        .column("collide", Align::Right)
        .column("jobs", Align::Left);
    let mut links: Vec<&PlannedLinkRow> = plan.links.iter().collect();
    if links.len() > MOST_LINKS {
        links.sort_by(|a, b| {
            let score = a.score.total_cmp(&b.score);
            score.then(a.score_before.total_cmp(&b.score_before))
        });
    }
    for link in links.iter().take(MOST_LINKS) {
        table.row([
            link.name.clone(),
            percent(link.load),
            score(link.score),
            score(link.score_before),
            quantity::microseconds(link.overlap_us),
            plan.names(&link.jobs),
        ]);
    }
    if links.len() > MOST_LINKS {
        let rest = quantity::count((links.len() - MOST_LINKS) as u64);
        let more = format!("and {rest} more, none with a lower score");
        table.row([more.as_str(), "", "", "", "", ""]);
    }
    table
}

/// Table and remarks of trials.
fn trials_table(trials: &TrialsRecord, plan: &PlanRecord) -> String {
    let mut table = Table::new()
        .column("simulated", Align::Left)
        .column("job", Align::Left)
        .column("predicted", Align::Right)
        .column("median", Align::Right)
        .column("mean", Align::Right)
        .column("to fair", Align::Right);
    trials.rows(plan).into_iter().for_each(|row| table.row(row));
    let mut text = table.to_string();
    for remark in trials.remarks(plan) {
        let _ = write!(text, "\n- {remark}");
    }
    if !trials.remarks(plan).is_empty() {
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::plan;
    use clearway_report::plan::{LeftOut, TrialRow};

    #[test]
    fn a_terminal_shows_jobs_links_and_reasons() {
        insta::assert_snapshot!(plan_table(&plan()), @"
        job  iteration  communicates     shift  angle  priority
        ---  ---------  ------------  --------  -----  --------
        B     60.00 ms        33.3 %       0 s     0°         0
        A     40.00 ms        37.5 %  10.00 ms    30°         1

        link    load  score  before   collide  jobs
        ----  ------  -----  ------  --------  ----
        L1    70.8 %  0.917   0.833  10.00 ms  B, A

        - `L1`: 10ms of 120ms collide

        Incompatible: jobs collide on 1 of 1 link whatever the rotations; these are the best that were found.
        ");
    }

    #[test]
    fn a_terminal_shows_what_became_of_jobs() {
        let mut plan = plan();
        plan.trials = Some(TrialsRecord {
            iterations: 15,
            alone_us: vec![Some(61_000.0), Some(40_500.0)],
            trials: vec![
                TrialRow {
                    mechanism: "fair",
                    predicted_us: vec![Some(75_000.0), Some(50_000.0)],
                    simulated_us: vec![Some(76_000.0), Some(51_000.0)],
                    mean_us: vec![Some(76_500.0), Some(51_250.0)],
                },
                TrialRow {
                    mechanism: "shifted",
                    predicted_us: vec![None, Some(40_600.0)],
                    simulated_us: vec![Some(61_200.0), None],
                    mean_us: vec![Some(61_250.0), None],
                },
                TrialRow {
                    mechanism: "priorities",
                    predicted_us: vec![Some(60_000.0), Some(40_000.0)],
                    simulated_us: vec![Some(65_900.0), Some(56_800.0)],
                    mean_us: vec![Some(66_000.0), Some(57_000.0)],
                },
            ],
            left_out: vec![LeftOut {
                mechanism: "timers",
                reason: "the controller has no `rate-timer`".into(),
            }],
            stretch: 0.0194,
            interrupted: false,
        });
        let table = plan_table(&plan);
        let (_, table) = table.split_once("found.\n\n").unwrap();
        insta::assert_snapshot!(table, @"
        simulated   job  predicted    median      mean  to fair
        ----------  ---  ---------  --------  --------  -------
        alone       B     60.00 ms  61.00 ms
        alone       A     40.00 ms  40.50 ms
        fair        B     75.00 ms  76.00 ms  76.50 ms    1.00x
        fair        A     50.00 ms  51.00 ms  51.25 ms    1.00x
        shifted     B            -  61.20 ms  61.25 ms    1.24x
        shifted     A     40.60 ms         -         -        -
        priorities  B     60.00 ms  65.90 ms  66.00 ms    1.15x
        priorities  A     40.00 ms  56.80 ms  57.00 ms    0.90x

        - `priorities`: A takes 1.42 times the predicted time: the model has no congestion control
        - slots are 1.9 % longer than planned: congestion control and headers need that
        - `timers` was left out: the controller has no `rate-timer`
        ");
    }
}
