//! `report.html` of a plan: unified circles as HotNets'22 draws them (Figs. 3 to 5), before and after the rotations.
//!
//! Time runs counter-clockwise from the right. Each job has a ring with its arcs. Demand above the capacity is marked on the outside.
//! Arcs are SVG and need no script.

use super::document::Document;
use super::html::{Column, Escaped, paragraph, table, tiles_of};
use super::{format, plan_trials};
use clearway_report::plan::{PlanRecord, PlannedLinkRow, degrees, percent, score};
use std::collections::BTreeMap;
use std::f64::consts::TAU;
use std::fmt::Write as _;

/// The name of the page in the folder of a plan.
pub const PLAN_FILE_NAME: &str = "report.html";

/// Maximum number of circles that are drawn.
const MOST_CIRCLES: usize = 24;
/// Maximum number of links in the table.
const MOST_LINKS: usize = 500;
/// Maximum number of arcs on a ring: more would blur.
const MOST_ARCS: usize = 720;

/// Centre of the drawing: half of its width.
const CENTRE: f64 = 130.0;
/// The radius of the outermost ring.
const OUTER: f64 = 100.0;
/// The radius of the marks of collisions.
const CLASH: f64 = 113.0;

/// The page of a plan as HTML. The same plan gives the same bytes.
pub fn render_plan(plan: &PlanRecord) -> String {
    let mut document = Document::new(&format!("{} · Clearway", plan.name));
    header(&mut document, plan);
    document.push("<main>");
    tiles(&mut document, plan);
    circles(&mut document, plan);
    plan_trials::section(&mut document, plan);
    jobs(&mut document, plan);
    links(&mut document, plan);
    reasons(&mut document, plan);
    provenance(&mut document, plan);
    document.push("</main>");
    document.finish()
}

fn header(document: &mut Document, plan: &PlanRecord) {
    document.push(&format!(
        "<header>\n<div>\n<p class=\"kicker\">Clearway plan</p>\n<h1>{}</h1>\n<p class=\"note\">{}</p>\n</div>\n\
         <button type=\"button\" id=\"theme\" hidden>Theme: system</button>\n</header>",
        Escaped(&plan.name),
        Escaped(&plan.headline()),
    ));
}

fn tiles(document: &mut Document, plan: &PlanRecord) {
    let contended = plan.links.iter().filter(|link| link.circle.is_some());
    let fine = contended.clone().filter(|link| link.compatible).count();
    let contended = contended.count();
    let worst = plan.links.iter().map(|link| link.score).fold(1.0, f64::min);
    let before = plan
        .links
        .iter()
        .map(|link| link.score_before)
        .fold(1.0, f64::min);
    let moved = plan.jobs.iter().filter(|job| job.shift_us > 0.0).count();
    let levels = plan
        .jobs
        .iter()
        .map(|job| job.priority + 1)
        .max()
        .unwrap_or(0);
    let mut verdict = plan.verdict.name().to_string();
    verdict[..1].make_ascii_uppercase();
    let under = match plan.moves.len() {
        0 => String::new(),
        moves => format::counted(moves, "job changes place", "jobs change places"),
    };
    let figures = [
        ("Verdict", verdict, under),
        (
            "Compatible links",
            format!("{fine} of {contended}"),
            "those with several jobs".into(),
        ),
        (
            "Lowest score",
            score(worst),
            format!("{} without rotations", score(before)),
        ),
        (
            "Jobs moved in time",
            format!("{moved} of {}", plan.jobs.len()),
            format::counted(levels as usize, "priority needed", "priorities needed"),
        ),
    ];
    document.push(&tiles_of(&figures));
}

/// Adds the circles. Links that the same jobs load in the same way share a drawing.
fn circles(document: &mut Document, plan: &PlanRecord) {
    let mut alike: BTreeMap<String, Vec<&PlannedLinkRow>> = BTreeMap::new();
    for link in plan.links.iter().filter(|link| link.circle.is_some()) {
        let key = format!("{} {:?} {:?}", link.kind, link.jobs, link.shares);
        alike.entry(key).or_default().push(link);
    }
    let mut groups: Vec<Vec<&PlannedLinkRow>> = alike.into_values().collect();
    groups.sort_by(|a, b| {
        let scores = a[0].score.total_cmp(&b[0].score);
        let before = a[0].score_before.total_cmp(&b[0].score_before);
        scores.then(before).then_with(|| a[0].name.cmp(&b[0].name))
    });
    if groups.is_empty() {
        return;
    }
    document.open_section("circles", "Unified circles");
    document.push(&paragraph(
        "A turn is a common multiple of the iterations of the jobs; time runs counter-clockwise from the right. Each ring is a job, and \
         its arcs are the times at which it communicates (on a GPU: computes). On the left nothing is moved, on the right every job is \
         rotated as planned. The outer marks are collisions: more is asked for than there is.",
    ));
    document.push("<div class=\"plots\">");
    for group in groups.iter().take(MOST_CIRCLES) {
        document.push(&figure(plan, group));
    }
    document.push("</div>");
    if groups.len() > MOST_CIRCLES {
        let rest = format::counted(groups.len() - MOST_CIRCLES, "circle", "circles");
        let note = format!("{rest} more, none with a lower score, are not drawn.");
        document.push(&format!("<p class=\"note\">{}</p>", Escaped(&note)));
    }
    document.close_section();
}

fn figure(plan: &PlanRecord, group: &[&PlannedLinkRow]) -> String {
    let link = group[0];
    let others = match group.len() {
        1 => String::new(),
        more => format!(" and {} alike", more - 1),
    };
    let title = format!("{}{others}", link.name);
    let outcome = match link.compatible {
        true => format!("compatible · load {}", percent(link.load)),
        false => format!(
            "{} collide in each turn · load {}",
            format::time(link.overlap_us),
            percent(link.load)
        ),
    };
    format!(
        "<figure class=\"rings\">\n<figcaption><strong>{}</strong> <span class=\"note\">{}</span></figcaption>\n\
         <div class=\"turns\">\n{}\n{}\n</div>\n{}\n</figure>",
        Escaped(&title),
        Escaped(&outcome),
        drawing(plan, link, false),
        drawing(plan, link, true),
        legend(plan, link)
    )
}

/// The colour of a job, the same on all links of its circle.
fn colour(plan: &PlanRecord, link: &PlannedLinkRow, job: u32) -> usize {
    let circle = link.circle.map(|index| &plan.circles[index]);
    circle
        .and_then(|circle| circle.jobs.iter().position(|&member| member == job))
        .unwrap_or(0)
        % 8
}

fn legend(plan: &PlanRecord, link: &PlannedLinkRow) -> String {
    let mut html = String::from("<ul class=\"keys\">");
    for &job in &link.jobs {
        let row = &plan.jobs[job as usize];
        let moved = match row.shift_us > 0.0 {
            true => format!(
                "moved by {}, {}",
                format::time(row.shift_us),
                degrees(row.angle_degrees)
            ),
            false => "not moved".into(),
        };
        let _ = write!(
            html,
            "<li class=\"c{}\"><i></i>{} <span class=\"note\">{}</span></li>",
            colour(plan, link, job),
            Escaped(&row.name),
            Escaped(&moved)
        );
    }
    html + "</ul>"
}

/// Demand of a job for a link along the circle: start and length in parts of a turn, and share.
fn arcs(
    plan: &PlanRecord,
    link: &PlannedLinkRow,
    at: usize,
    rotated: bool,
) -> Vec<(f64, f64, f64)> {
    let row = &plan.jobs[link.jobs[at] as usize];
    let phases = match link.kind {
        "gpu" => &row.compute,
        _ => &row.communication,
    };
    let turn = row.period_us * f64::from(row.repeats);
    let shift = if rotated { row.shift_us } else { 0.0 };
    let mut arcs = Vec::new();
    for repeat in 0..row.repeats {
        for (phase, &share) in phases.iter().zip(&link.shares[at]) {
            let start = f64::from(repeat) * row.period_us + phase.start_us + shift;
            arcs.push(((start / turn).fract(), phase.length_us / turn, share));
        }
    }
    arcs
}

fn drawing(plan: &PlanRecord, link: &PlannedLinkRow, rotated: bool) -> String {
    let value = if rotated {
        link.score
    } else {
        link.score_before
    };
    let caption = if rotated { "rotated" } else { "as they are" };
    let turn = link
        .circle
        .map_or(0.0, |index| plan.circles[index].perimeter_us);
    let mut svg = format!(
        "<svg viewBox=\"-30 0 {} {}\" role=\"img\" aria-label=\"{}, {caption}: score {}\">\n",
        // Texts are on both sides.
        2.0 * CENTRE + 60.0,
        2.0 * CENTRE,
        Escaped(&link.name),
        score(value)
    );
    let count = link.jobs.len();
    let width = f64::min(18.0, 62.0 / count as f64);
    let mut all = Vec::new();
    for at in 0..count {
        let radius = OUTER - width * (at as f64 + 0.5);
        let _ = writeln!(
            svg,
            "<circle class=\"track\" cx=\"{CENTRE}\" cy=\"{CENTRE}\" r=\"{radius:.1}\" stroke-width=\"{:.1}\"/>",
            width * 0.86
        );
        let arcs = arcs(plan, link, at, rotated);
        svg.push_str(&ring(plan, link, at, &arcs, (radius, width * 0.86)));
        all.extend(arcs);
    }
    let clashes = clashes(&all);
    if !clashes.is_empty() {
        let path = path(clashes.iter().copied(), CLASH);
        let _ = writeln!(
            svg,
            "<path class=\"clash\" d=\"{path}\"><title>collisions</title></path>"
        );
    }
    svg.push_str(&quarters(turn));
    let (unit, scale) = unit_of(turn);
    let _ = writeln!(
        svg,
        "<text class=\"middle\" x=\"{CENTRE}\" y=\"{:.1}\">{caption}</text>\n\
         <text class=\"middle turn\" x=\"{CENTRE}\" y=\"{:.1}\">{} {unit}</text>\n\
         <text class=\"middle\" x=\"{CENTRE}\" y=\"{:.1}\">score {}</text>\n</svg>",
        CENTRE - 12.0,
        CENTRE + 4.0,
        format::number(turn / scale),
        CENTRE + 19.0,
        Escaped(&score(value))
    );
    svg
}

/// Times at the four quarters of a turn.
fn quarters(turn: f64) -> String {
    let mut svg = String::new();
    for (quarter, anchor, dx, dy) in [
        (0.0, "start", 4.0, 4.0),
        (0.25, "middle", 0.0, -4.0),
        (0.5, "end", -4.0, 4.0),
        (0.75, "middle", 0.0, 12.0),
    ] {
        let (x, y) = point(quarter, CLASH + 2.0);
        let label = match quarter {
            0.0 => "0".to_string(),
            part => format::number(part * turn / unit_of(turn).1),
        };
        let _ = writeln!(
            svg,
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"{anchor}\">{label}</text>",
            x + dx,
            y + dy
        );
    }
    svg
}

/// The unit of the times of a turn, and its length in microseconds.
fn unit_of(turn_us: f64) -> (&'static str, f64) {
    match turn_us {
        long if long >= 10e6 => ("s", 1e6),
        long if long >= 1e4 => ("ms", 1e3),
        _ => ("µs", 1.0),
    }
}

/// A job's arcs; weaker demands are paler.
fn ring(
    plan: &PlanRecord,
    link: &PlannedLinkRow,
    at: usize,
    arcs: &[(f64, f64, f64)],
    (radius, width): (f64, f64),
) -> String {
    let job = link.jobs[at];
    let name = &plan.jobs[job as usize].name;
    if arcs.len() > MOST_ARCS {
        return format!("<!-- {} arcs -->\n", arcs.len());
    }
    let mut shares: Vec<f64> = arcs.iter().map(|arc| arc.2).collect();
    shares.sort_by(f64::total_cmp);
    shares.dedup();
    let mut svg = String::new();
    for share in shares {
        let own = arcs.iter().filter(|arc| arc.2 == share);
        let path = path(own.map(|&(start, length, _)| (start, length)), radius);
        let _ = writeln!(
            svg,
            "<path class=\"arc c{}\" d=\"{path}\" stroke-width=\"{width:.1}\" stroke-opacity=\"{:.2}\"><title>{}</title></path>",
            colour(plan, link, job),
            0.35 + 0.65 * share,
            Escaped(name)
        );
    }
    svg
}

/// Arcs on which the demand exceeds the capacity: starts and lengths in parts of a turn.
fn clashes(arcs: &[(f64, f64, f64)]) -> Vec<(f64, f64)> {
    // Rounding error of arcs that only touch.
    const NOTHING: f64 = 1e-7;
    let mut edges: Vec<(f64, f64)> = Vec::new();
    for &(start, length, share) in arcs {
        let end = start + length;
        edges.push((start, share));
        edges.push((end.min(1.0), -share));
        if end > 1.0 {
            edges.push((0.0, share));
            edges.push((end - 1.0, -share));
        }
    }
    edges.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (mut load, mut last) = (0.0, 0.0);
    let mut clashes: Vec<(f64, f64)> = Vec::new();
    for (at, change) in edges {
        if load > 1.0 + NOTHING && at > last + NOTHING {
            match clashes.last_mut() {
                Some((start, length)) if *start + *length >= last - NOTHING => {
                    *length = at - *start;
                }
                _ => clashes.push((last, at - last)),
            }
        }
        (load, last) = (load + change, at);
    }
    clashes
}

/// A point on a circle, at a part of a turn counter-clockwise from the right.
fn point(part: f64, radius: f64) -> (f64, f64) {
    let (sine, cosine) = (part * TAU).sin_cos();
    (CENTRE + radius * cosine, CENTRE - radius * sine)
}

/// Arcs as the commands of one SVG path.
fn path(arcs: impl Iterator<Item = (f64, f64)>, radius: f64) -> String {
    let mut path = String::new();
    for (start, length) in arcs {
        let (x, y) = point(start, radius);
        let _ = write!(path, "M{x:.2} {y:.2}");
        // An SVG arc command cannot end where it began, so a long arc needs two.
        let parts = if length > 0.5 { 2 } else { 1 };
        for part in 1..=parts {
            let (x, y) = point(start + length * f64::from(part) / f64::from(parts), radius);
            let _ = write!(path, "A{radius:.1} {radius:.1} 0 0 0 {x:.2} {y:.2}");
        }
    }
    path
}

fn jobs(document: &mut Document, plan: &PlanRecord) {
    document.open_section("jobs", "Jobs");
    let mut columns = vec![
        ("Job", Column::Text),
        ("Iteration", Column::Number),
        ("Alone", Column::Number),
        ("Communicates", Column::Number),
        ("Shift", Column::Number),
        ("Angle", Column::Number),
        ("Priority", Column::Number),
    ];
    if plan.has_placements() {
        columns.push(("Placement", Column::Text));
    }
    let rows = plan.jobs.iter().map(|job| {
        let mut row = vec![
            job.name.clone(),
            format::time(job.period_us),
            format::time(job.alone_us),
            percent(job.communication_share),
            format::time(job.shift_us),
            degrees(job.angle_degrees),
            job.priority.to_string(),
        ];
        if plan.has_placements() {
            row.push(job.placement.clone().unwrap_or_default());
        }
        row
    });
    document.push(&table(&columns, &rows.collect::<Vec<_>>()));
    document.push(&paragraph(
        "Shift: how much later its iterations begin. Priority: 0 first; no two jobs that meet on a link have the same.",
    ));
    document.close_section();
}

fn links(document: &mut Document, plan: &PlanRecord) {
    if plan.links.is_empty() {
        return;
    }
    document.open_section("links", "Links");
    let columns = [
        ("Link", Column::Text),
        ("Load", Column::Number),
        ("Score", Column::Number),
        ("Without rotations", Column::Number),
        ("Collide in a turn", Column::Number),
        ("Jobs", Column::Text),
    ];
    let mut shown: Vec<&PlannedLinkRow> = plan.links.iter().collect();
    if shown.len() > MOST_LINKS {
        shown.sort_by(|a, b| a.score.total_cmp(&b.score));
    }
    let rows = shown.iter().take(MOST_LINKS).map(|link| {
        vec![
            link.name.clone(),
            percent(link.load),
            score(link.score),
            score(link.score_before),
            format::time(link.overlap_us),
            plan.names(&link.jobs),
        ]
    });
    document.push(&table(&columns, &rows.collect::<Vec<_>>()));
    if shown.len() > MOST_LINKS {
        let rest = format::count((shown.len() - MOST_LINKS) as u64);
        document.push(&paragraph(&format!("{rest} more have no lower score.")));
    }
    document.close_section();
}

fn reasons(document: &mut Document, plan: &PlanRecord) {
    if plan.reasons.is_empty() {
        return;
    }
    document.open_section("reasons", "Why");
    let mut html = String::from("<ul>");
    for reason in &plan.reasons {
        let _ = write!(html, "<li>{}</li>", Escaped(reason));
    }
    document.push(&(html + "</ul>"));
    document.close_section();
}

fn provenance(document: &mut Document, plan: &PlanRecord) {
    document.open_section("provenance", "Provenance");
    let mut rows = vec![
        vec!["command".into(), plan.command.clone()],
        vec![
            "version".into(),
            format!("{} ({})", plan.version, plan.revision),
        ],
        vec!["hash".into(), plan.hash.clone()],
    ];
    for (key, value) in &plan.settings {
        rows.push(vec![format!("plan.{key}"), value.clone()]);
    }
    let columns = [("", Column::Text), ("", Column::Code)];
    document.push(&table(&columns, &rows));
    document.close_section();
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::plan;

    #[test]
    fn collisions_are_where_more_than_the_whole_is_asked_for() {
        let near = |found: &[(f64, f64)], wanted: &[(f64, f64)]| {
            let close = |a: f64, b: f64| (a - b).abs() < 1e-9;
            let pairs = found.iter().zip(wanted);
            found.len() == wanted.len()
                && pairs
                    .into_iter()
                    .all(|(a, b)| close(a.0, b.0) && close(a.1, b.1))
        };
        // Arcs that touch do not collide.
        assert!(clashes(&[(0.0, 0.5, 1.0), (0.5, 0.5, 1.0)]).is_empty());
        let found = clashes(&[(0.0, 0.5, 1.0), (0.4, 0.5, 1.0)]);
        assert!(near(&found, &[(0.4, 0.1)]), "{found:?}");
        // Across the beginning of the circle.
        let found = clashes(&[(0.9, 0.2, 1.0), (0.95, 0.1, 1.0)]);
        assert!(near(&found, &[(0.0, 0.05), (0.95, 0.05)]), "{found:?}");
        // Two halves are one whole, three are not.
        assert!(clashes(&[(0.0, 0.5, 0.5), (0.2, 0.5, 0.5)]).is_empty());
        let found = clashes(&[(0.0, 0.5, 0.5), (0.2, 0.5, 0.5), (0.1, 0.2, 0.25)]);
        assert!(near(&found, &[(0.2, 0.1)]), "{found:?}");
    }

    #[test]
    fn a_quarter_turn_points_up() {
        let up = point(0.25, 100.0);
        assert!((up.0 - CENTRE).abs() < 1e-9 && (up.1 - (CENTRE - 100.0)).abs() < 1e-9);
        let whole = path([(0.0, 1.0)].into_iter(), 10.0);
        assert_eq!(
            whole,
            "M140.00 130.00A10.0 10.0 0 0 0 120.00 130.00A10.0 10.0 0 0 0 140.00 130.00"
        );
    }

    #[test]
    fn the_page_draws_every_contended_link_twice_and_escapes_names() {
        let mut plan = plan();
        plan.jobs[0].name = "<A>".into();
        let html = render_plan(&plan);
        assert_eq!(html.matches("<svg viewBox").count(), 2);
        assert!(html.contains("&lt;A&gt;") && !html.contains("<A>"));
        // They collide before, and less after.
        assert_eq!(html.matches("class=\"clash\"").count(), 2);
        assert!(html.contains("moved by 10.00 ms, 30°"));
        assert_eq!(html, render_plan(&plan));
    }
}
