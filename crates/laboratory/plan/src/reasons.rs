//! Reasons for the decisions of a plan, in words.

use super::{CompatibilityVerdict, JobsFile, Placed, PlannedResource, UnifiedCircle};
use clearway_units::Span;

/// Number of links up to which each link is explained; above it, links are counted.
const MOST_LINKS: usize = 12;

impl JobsFile {
    /// Reasons for the decisions of a plan, for people: a line for each changed placement, each link with collisions, each circle with
    /// wider sectors than requested or more collisions than the bound, and each lengthened period.
    pub fn reasons(&self, placed: &Placed) -> Vec<String> {
        let mut reasons = moves(self, placed);
        reasons.extend(collisions(self, placed));
        reasons.extend(circles(self, placed));
        reasons.extend(periods(self, placed));
        reasons
    }
}

fn percent(part: f64) -> String {
    let text = format!("{:.1}", part * 100.0);
    format!("{} %", text.trim_end_matches(".0"))
}

fn moves(file: &JobsFile, placed: &Placed) -> Vec<String> {
    let mut lines = Vec::new();
    for moved in &placed.moves {
        let names = &file.placements[moved.job];
        lines.push(format!(
            "`{}` moves to placement `{}`: if it alone stayed, scores would miss {:.3} in all instead of {:.3}",
            file.jobs[moved.job],
            names[moved.to],
            moved.missing_without,
            placed.plan.missing()
        ));
    }
    if !placed.moves.is_empty() {
        let tried = match placed.all_tried {
            true => format!("all {} combinations of placements were tried", placed.tried),
            false => format!("{} combinations of placements were tried", placed.tried),
        };
        lines.push(format!(
            "without moves, scores would miss {:.3}; {tried}",
            placed.missing_before
        ));
    } else if placed.tried > 1 {
        lines.push(format!(
            "no job moves: none of {} combinations of placements is better",
            placed.tried
        ));
    }
    lines
}

fn collisions(file: &JobsFile, placed: &Placed) -> Vec<String> {
    let plan = &placed.plan;
    let mut bad: Vec<&PlannedResource> = plan
        .resources
        .iter()
        .filter(|planned| !planned.is_compatible())
        .collect();
    bad.sort_by(|a, b| {
        a.score
            .total_cmp(&b.score)
            .then(a.resource.cmp(&b.resource))
    });
    let mut lines: Vec<String> = bad
        .iter()
        .take(MOST_LINKS)
        .map(|planned| collision(file, placed, planned))
        .collect();
    if bad.len() > MOST_LINKS {
        let rest = bad.len() - MOST_LINKS;
        lines.push(format!(
            "jobs collide on {rest} more links or GPUs, by less"
        ));
    }
    lines
}

/// Reason for collisions on a link: the load is too high, the periods do not fit, the search ended too early, or no rotations avoid all
/// collisions.
fn collision(file: &JobsFile, placed: &Placed, planned: &PlannedResource) -> String {
    let name = file.resource_name(planned.resource);
    let circle = planned.circle.map(|index| &placed.plan.circles[index]);
    let turn = circle.map_or(Span::ZERO, UnifiedCircle::perimeter);
    let overlap = format!(
        "`{name}`: {} of {} collide",
        rounded(planned.overlap),
        rounded(turn)
    );
    if planned.load > 1.0 {
        let load = percent(planned.load);
        return format!(
            "{overlap}; its jobs ask for {load} of it on average, so not all can be served in time"
        );
    }
    if let Some(reason) = two_periods(file, placed, planned) {
        return format!("{overlap}; {reason}");
    }
    match circle.map(|circle| circle.verdict) {
        Some(CompatibilityVerdict::Unknown) => format!(
            "{overlap}; the search ended before it found or excluded anything better: raise `plan.budget`"
        ),
        _ => format!("{overlap}; no rotations of these jobs avoid all collisions"),
    }
}

/// Two jobs with one full arc each fit if and only if their arcs fit into the greatest common divisor of their periods.
fn two_periods(file: &JobsFile, placed: &Placed, planned: &PlannedResource) -> Option<String> {
    let &[first, second] = &planned.jobs[..] else {
        return None;
    };
    let circle = &placed.plan.circles[planned.circle?];
    let arc = |job: u32| {
        let profile = &file.problem.jobs()[job as usize].profile;
        match profile.phases(planned.resource.kind()) {
            [only] => Some(only.length),
            _ => None,
        }
    };
    let (one, two) = (arc(first)?, arc(second)?);
    let [a, b] = [first, second].map(|job| placed.plan.jobs[job as usize].repeats);
    // Greatest common divisor of both periods: the circle over the least common multiple of the repeats.
    let (mut x, mut y) = (a, b);
    while y > 0 {
        (x, y) = (y, x % y);
    }
    let common = circle.perimeter() / (u64::from(a) * u64::from(b) / u64::from(x));
    (one + two > common).then(|| {
        format!(
            "`{}` and `{}` meet in every distance within {}, where {} and {} do not fit",
            file.jobs[first as usize],
            file.jobs[second as usize],
            rounded(common),
            rounded(one),
            rounded(two)
        )
    })
}

fn circles(file: &JobsFile, placed: &Placed) -> Vec<String> {
    let mut lines = Vec::new();
    for circle in &placed.plan.circles {
        let first = &file.jobs[circle.jobs[0] as usize];
        let who = match circle.jobs.len() {
            1 => format!("`{first}`"),
            more => format!("`{first}` and {} more", more - 1),
        };
        if circle.widened {
            lines.push(format!(
                "the circle of {who} has sectors of {} instead of {}, which would make more than {} sectors",
                circle.tick, file.settings.grid, file.settings.sectors
            ));
        }
        if circle.verdict == CompatibilityVerdict::Incompatible && !circle.is_optimal() {
            lines.push(format!(
                "the circle of {who}: {} collide in all, and every choice of rotations leaves at least {}",
                rounded(circle.overlap),
                rounded(circle.least_overlap)
            ));
        }
    }
    lines
}

fn periods(file: &JobsFile, placed: &Placed) -> Vec<String> {
    let jobs = file.problem.jobs().iter().zip(&placed.plan.jobs);
    let mut lengthened: Vec<(f64, String)> = Vec::new();
    for ((job, planned), name) in jobs.zip(&file.jobs) {
        let own = job.profile.period();
        if planned.period.as_ps() > own.as_ps() + own.as_ps() / 2_000 {
            let share = planned.period.as_ps() as f64 / own.as_ps() as f64 - 1.0;
            let text = format!(
                "`{name}` begins an iteration every {} instead of {} (+{}), so that iterations repeat together",
                rounded(planned.period),
                rounded(own),
                percent(share)
            );
            lengthened.push((share, text));
        }
    }
    let rest = lengthened.len().saturating_sub(MOST_LINKS);
    lengthened.sort_by(|a, b| b.0.total_cmp(&a.0));
    let mut lines: Vec<String> = lengthened
        .into_iter()
        .take(MOST_LINKS)
        .map(|(_, text)| text)
        .collect();
    if rest > 0 {
        lines.push(format!("{rest} more jobs are lengthened by less"));
    }
    lines
}

/// A rounded time for people; a seventh of a circle has endless digits.
fn rounded(period: Span) -> Span {
    Span::from_ps(period.as_ps() / 1_000_000 * 1_000_000)
}
