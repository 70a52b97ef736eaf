//! `report.html` of a sweep: a measure along the axes of the plan, the best point, assertions, and a table of all points.
//!
//! Estimates and intervals are computed here, for each measure; the script draws the selected measure. The table of the primary measure
//! is in the HTML.

use super::document::Document;
use super::format;
use super::html::{Column, Escaped, paragraph, table, tiles_of};
use super::json::{push_list, push_number, push_numbers, push_text};
use clearway_report::sweep::{
    AssertionVerdict, Samples, Statistic, SweepAxis, SweepPoint, SweepRecord, Unit, no_value,
};
use clearway_results::FigureUnit;
use clearway_statistics::{Estimate, Interval};
use std::fmt::Write as _;

/// The name of the page in the folder of a sweep.
pub const SWEEP_FILE_NAME: &str = "report.html";

/// Maximum number of points for which medians are offered: their intervals take time.
const MOST_FOR_MEDIANS: usize = 300;
/// Maximum number of listed failures.
const MOST_FAILURES: usize = 200;
/// Digits of numbers for the script.
const DIGITS: usize = 6;

/// The page of a sweep as HTML. The same sweep gives the same bytes.
pub fn render_sweep(sweep: &SweepRecord) -> String {
    let mut document = Document::new(&format!("{} · Clearway", sweep.name));
    header(&mut document, sweep);
    document.push("<main>");
    tiles(&mut document, sweep);
    match sweep.primary() {
        Some(primary) => {
            chosen(&mut document, sweep);
            axes(&mut document, sweep, primary);
            points(&mut document, sweep, primary);
        }
        None => document.push(&paragraph("No run has left results.")),
    }
    assertions(&mut document, sweep);
    failures(&mut document, sweep);
    provenance(&mut document, sweep);
    document.push("</main>");
    document.finish()
}

fn header(document: &mut Document, sweep: &SweepRecord) {
    let points = format::counted(sweep.points().len(), "point", "points");
    document.push(&format!(
        "<header>\n<div>\n<p class=\"kicker\">Clearway sweep of {points}</p>\n<h1>{}</h1>\n</div>\n\
         <button type=\"button\" id=\"theme\" hidden>Theme: system</button>\n</header>\n\
         <noscript><p class=\"warning\">Plots need JavaScript; the tables do not.</p></noscript>",
        Escaped(&sweep.name),
    ));
    if sweep.missing > 0 {
        let missing = format::counted(sweep.missing as usize, "run", "runs");
        document.push(&format!(
            "<p class=\"warning\" role=\"status\">{missing} of the plan not done yet: the page covers the others.</p>"
        ));
    }
}

fn tiles(document: &mut Document, sweep: &SweepRecord) {
    let mut seeds: Vec<u64> = sweep.runs.iter().map(|run| run.seed).collect();
    seeds.sort_unstable();
    seeds.dedup();
    let passed = sweep.assertions.iter();
    let passed = passed
        .filter(|outcome| outcome.verdict == AssertionVerdict::Pass)
        .count();
    let points = sweep.points();
    let open: usize = points.iter().map(|point| sweep.not_complete(point)).sum();
    let figures = [
        (
            "Points",
            format::count(points.len() as u64),
            format::counted(sweep.axes.len(), "axis", "axes"),
        ),
        (
            "Runs",
            format::count(sweep.runs.len() as u64),
            match open {
                0 => "all complete".into(),
                open => format!("{open} failed or not complete"),
            },
        ),
        (
            "Seeds",
            seeds.len().to_string(),
            match seeds.len() {
                0 | 1 => "no intervals with one".into(),
                few @ 2..=4 => format!("few: with {few} intervals are wide"),
                _ => "intervals of 95 %".into(),
            },
        ),
        (
            "Assertions",
            match sweep.assertions.len() {
                0 => "none".into(),
                all => format!("{passed} of {all}"),
            },
            match sweep.assertions.len() {
                0 => String::new(),
                _ => "passed".into(),
            },
        ),
    ];
    document.push(&tiles_of(&figures));
}

/// Points that a tuning chose.
fn chosen(document: &mut Document, sweep: &SweepRecord) {
    let Some(tuning) = &sweep.tuning else {
        return;
    };
    let (titles, rows) = sweep.chosen();
    document.open_section("chosen", "What the tuning chose");
    if let Some(measure) = sweep.unknown_of(tuning) {
        document.push(&paragraph(&no_value(measure)));
        document.close_section();
        return;
    }
    let columns = titles.iter().enumerate().map(|(number, title)| {
        let axis = sweep.axes.get(number);
        match axis.is_some_and(|axis| axis.numbers.is_none()) {
            true => (title.as_str(), Column::Text),
            false => (title.as_str(), Column::Number),
        }
    });
    let rows = rows
        .iter()
        .map(|row| row.iter().map(|cell| in_page(cell)).collect());
    let rows: Vec<Vec<String>> = rows.collect();
    document.push(&table(&columns.collect::<Vec<_>>(), &rows));
    if let Some(sentence) = sweep.chosen_by() {
        document.push(&paragraph(&in_page(&sentence)));
    }
    document.close_section();
}

/// Elements that the script draws into.
fn axes(document: &mut Document, sweep: &SweepRecord, primary: usize) {
    document.open_section("axes", "Along the axes");
    document.push(&format!(
        "<div id=\"sweep\" class=\"control\" hidden></div>\n<p id=\"best\" role=\"status\">{}</p>",
        Escaped(&in_page(&sweep.answer(primary, Statistic::Mean)))
    ));
    document.push(
        "<div class=\"plots\"><figure id=\"along\"></figure><figure id=\"map\"></figure></div>\n\
         <p class=\"note\">Bands and bars: 95 % intervals over the seeds of a point. Of two points that have the same seeds the \
         differences are known better than these show: <q>cannot be told apart</q> goes by them.</p>",
    );
    document.set_sweep(data(sweep, primary));
    document.close_section();
}

/// Quantities as the page prints them.
fn in_page(text: &str) -> String {
    let mut page = String::new();
    let (mut is_first, mut is_behind_number) = (true, false);
    for word in text.split(' ') {
        if !is_first {
            page.push(' ');
        }
        // Only ratios and quantities change, not names.
        let core = word.trim_end_matches([',', '.', ':', ';', ')']);
        let digits = core.trim_start_matches(['(', '-']);
        let is_number = digits.starts_with(|c: char| c.is_ascii_digit());
        match (is_number, core) {
            (true, ratio) if ratio.ends_with('x') => page += &word.replace('x', "×"),
            (false, "us") if is_behind_number => page += &word.replacen("us", "µs", 1),
            _ => page += word,
        }
        (is_first, is_behind_number) = (false, is_number);
    }
    page
}

/// Table of all points, the best first.
fn points(document: &mut Document, sweep: &SweepRecord, primary: usize) {
    document.open_section("points", "All points");
    let of = &sweep.measures[primary];
    let mut columns: Vec<(&str, Column)> = sweep
        .axes
        .iter()
        .map(|axis| match axis.numbers {
            Some(_) => (axis.key.as_str(), Column::Number),
            None => (axis.key.as_str(), Column::Text),
        })
        .collect();
    columns.extend([
        (of.title.as_str(), Column::Number),
        ("95 % interval", Column::Number),
        ("Seeds", Column::Number),
        ("Best in", Column::Number),
        ("Runs", Column::Text),
    ]);
    let shares = sweep.shares(&sweep.best_of_groups(primary, Statistic::Mean));
    let all = sweep.points();
    let mut samples = Samples::default();
    let rows = sweep.ranked(primary).into_iter().map(|number| {
        let point = &all[number];
        let estimate = sweep.estimate(point, primary, Statistic::Mean, &mut samples);
        let range = sweep.interval_text(point, primary, estimate);
        let mut row: Vec<String> = sweep
            .values_of(&point.place)
            .map(|(_, value)| value.to_owned())
            .collect();
        row.extend([
            estimate.map_or("–".into(), |estimate| {
                in_page(&of.unit.print(estimate.value))
            }),
            match range.as_str() {
                "-" => "–".into(),
                range => in_page(range),
            },
            estimate.map_or(0, |estimate| estimate.seeds).to_string(),
            shares[number].map_or("–".into(), format::share),
            sweep.state_of(point),
        ]);
        row
    });
    let rows: Vec<Vec<String>> = rows.collect();
    document.push(&format!(
        "<div id=\"all-points\">{}</div>",
        table(&columns, &rows)
    ));
    document.close_section();
}

fn assertions(document: &mut Document, sweep: &SweepRecord) {
    if sweep.assertions.is_empty() {
        return;
    }
    document.open_section("assertions", "Assertions");
    document.push(&paragraph(
        "An assertion passes if the whole interval is where it says, at every point that it concerns. One that the seeds do not decide \
         counts as failed.",
    ));
    let columns = [
        ("Verdict", Column::Text),
        ("Assertion", Column::Text),
        ("Found", Column::Text),
    ];
    let rows = sweep.assertions.iter().map(|outcome| {
        let verdict = match outcome.verdict {
            AssertionVerdict::Pass => "✓ pass",
            AssertionVerdict::Fail => "✗ fail",
            AssertionVerdict::Undecided => "? undecided",
        };
        vec![
            verdict.into(),
            outcome.text.clone(),
            in_page(&outcome.reason),
        ]
    });
    document.push(&table(&columns, &rows.collect::<Vec<_>>()));
    document.close_section();
}

fn failures(document: &mut Document, sweep: &SweepRecord) {
    if sweep.failures.is_empty() {
        return;
    }
    document.open_section("failures", "Failed runs");
    let columns = [
        ("Point", Column::Text),
        ("Seed", Column::Number),
        ("Reason", Column::Text),
        ("Key", Column::Code),
    ];
    let rows = sweep.failures.iter().take(MOST_FAILURES).map(|failure| {
        vec![
            sweep.name_of(&failure.place),
            failure.seed.to_string(),
            failure.reason.clone(),
            failure.key.clone(),
        ]
    });
    document.push(&table(&columns, &rows.collect::<Vec<_>>()));
    if let Some(rest) = sweep
        .failures
        .len()
        .checked_sub(MOST_FAILURES)
        .filter(|&rest| rest > 0)
    {
        document.push(&paragraph(&format!(
            "{rest} more runs failed; `failed` in the folder has all."
        )));
    }
    document.close_section();
}

fn provenance(document: &mut Document, sweep: &SweepRecord) {
    document.open_section("reproduce", "Reproduce this sweep");
    document.push(&format!(
        "<pre class=\"command\"><code>{}</code></pre>",
        Escaped(&sweep.command)
    ));
    document.push(&paragraph(&format!(
        "Version {}, revision {}. The same numbers by run are in sweep.parquet, by point in sweep.json.",
        sweep.version, sweep.revision
    )));
    document.close_section();
}

/// Name of a unit in the script.
fn unit_name(unit: Unit) -> &'static str {
    match unit {
        Unit::Us => "us",
        Unit::Ratio => "x",
        Unit::Bps => "bps",
        Unit::Index | Unit::Fraction | Unit::Figure(FigureUnit::FlitsPerCycle) => "1",
        Unit::GigabytesPerSecond | Unit::Flows | Unit::Total(_) | Unit::Figure(_) => "",
    }
}

/// Measures that differ between runs, and the primary measure in any case.
fn shown(sweep: &SweepRecord, primary: usize) -> Vec<usize> {
    let differs = |measure: usize| {
        let mut values = sweep.runs.iter().filter_map(|run| run.values[measure]);
        let first = values.next();
        values.any(|value| Some(value) != first)
    };
    let others =
        (0..sweep.measures.len()).filter(|&measure| measure != primary && differs(measure));
    std::iter::once(primary).chain(others).collect()
}

/// Data for the script.
fn data(sweep: &SweepRecord, primary: usize) -> String {
    let points = sweep.points();
    let shown = shown(sweep, primary);
    let statistics = match points.len() > MOST_FOR_MEDIANS {
        true => &Statistic::ALL[..1],
        false => &Statistic::ALL[..],
    };
    let mut text = String::from("{\"axes\":");
    push_list(&mut text, &sweep.axes, push_axis);
    text.push_str(",\"points\":");
    push_list(&mut text, &points, |text, point| {
        push_point(text, sweep, point);
    });
    text.push_str(",\"measures\":");
    let mut samples = Samples::default();
    push_list(&mut text, shown, |text, measure| {
        let of = &sweep.measures[measure];
        text.push_str("{\"name\":");
        push_text(text, &of.name);
        text.push_str(",\"title\":");
        push_text(text, &of.title);
        let more = of.unit.is_more_better();
        let _ = write!(
            text,
            ",\"unit\":\"{}\",\"more\":{more},\"by\":{{",
            unit_name(of.unit)
        );
        for (place, &statistic) in statistics.iter().enumerate() {
            if place > 0 {
                text.push(',');
            }
            let _ = write!(text, "\"{}\":", statistic.name());
            push_estimates(text, sweep, (&points, measure), statistic, &mut samples);
        }
        text.push_str("}}");
    });
    text + "}"
}

fn push_axis(text: &mut String, axis: &SweepAxis) {
    text.push_str("{\"key\":");
    push_text(text, &axis.key);
    text.push_str(",\"values\":");
    push_list(text, &axis.values, |text, value| push_text(text, value));
    if let Some(numbers) = &axis.numbers {
        let (unit, factor) = match numbers.unit.as_str() {
            "ps" => ("us", 1e-6),
            "bytes" => ("B", 1.0),
            "bit/s" => ("bps", 1.0),
            _ => ("", 1.0),
        };
        let values: Vec<f64> = numbers.values.iter().map(|value| value * factor).collect();
        let _ = write!(text, ",\"unit\":\"{unit}\",\"numbers\":");
        push_numbers(text, &values, 9);
    }
    text.push('}');
}

fn push_point(text: &mut String, sweep: &SweepRecord, point: &SweepPoint) {
    let place: Vec<f64> = point.place.iter().copied().map(f64::from).collect();
    text.push_str("{\"place\":");
    push_numbers(text, &place, 9);
    text.push_str(",\"state\":");
    push_text(text, &sweep.state_of(point));
    text.push('}');
}

/// `{best, alike, sentence, rows: [[value, low, high, seeds, share], ...]}`: the best points of all groups, points that cannot be
/// distinguished from them, the answer, and a row for each point.
fn push_estimates(
    text: &mut String,
    sweep: &SweepRecord,
    (points, measure): (&[SweepPoint], usize),
    statistic: Statistic,
    samples: &mut Samples,
) {
    let groups = sweep.best_of_groups(measure, statistic);
    let bests = || groups.iter().filter_map(|(_, best)| best.as_ref());
    let best: Vec<f64> = match sweep.has_choice() {
        true => bests().map(|best| best.point as f64).collect(),
        false => Vec::new(),
    };
    let alike: Vec<f64> = match best.is_empty() {
        true => Vec::new(),
        false => bests()
            .flat_map(|best| &best.alike)
            .map(|&point| point as f64)
            .collect(),
    };
    let shares = sweep.shares(&groups);
    text.push_str("{\"best\":");
    push_numbers(text, &best, 9);
    text.push_str(",\"alike\":");
    push_numbers(text, &alike, 9);
    text.push_str(",\"sentence\":");
    let answer = sweep.answer_of(&groups, measure, statistic);
    push_text(text, &in_page(&answer));
    text.push_str(",\"rows\":");
    push_list(text, points.iter().enumerate(), |text, (number, point)| {
        let estimate = sweep.estimate(point, measure, statistic, samples);
        let interval = estimate.and_then(|own| sweep.possible_interval(measure, own));
        push_row(text, (estimate, interval), shares[number]);
    });
    text.push('}');
}

fn push_row(
    text: &mut String,
    (estimate, interval): (Option<Estimate>, Option<Interval>),
    share: Option<f64>,
) {
    let row = [
        estimate.map(|estimate| estimate.value),
        interval.map(|interval| interval.low),
        interval.map(|interval| interval.high),
        Some(estimate.map_or(0.0, |estimate| estimate.seeds as f64)),
        share,
    ];
    push_list(text, row, |text, value| {
        push_number(text, value.unwrap_or(f64::NAN), DIGITS);
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::sweep;
    use crate::sample::sweep::{VALUES, measured};
    use clearway_report::sweep::TuningRecord;

    #[test]
    fn the_page_holds_all_points_and_what_the_script_draws() {
        let mut sweep = sweep();
        sweep.name = "<b>".into();
        sweep.missing = 2;
        let page = render_sweep(&sweep);
        assert_eq!(page, render_sweep(&sweep));
        assert!(page.contains("<h1>&lt;b&gt;</h1>") && !page.contains("<b>:"));
        assert!(page.contains("killed by signal 9"));
        assert!(page.contains("2 runs of the plan not done yet"));
        let (_, data) = page.split_once("id=\"data\">").unwrap();
        let (data, _) = data.split_once("</script>").unwrap();
        let data: serde_json::Value = serde_json::from_str(data).unwrap();
        let of = &data["sweep"];
        assert_eq!(of["axes"][1]["unit"], "B");
        assert_eq!(of["measures"][0]["name"], "slowdown.p99");
        assert_eq!(of["points"][3]["place"], serde_json::json!([1, 1]));
        let rows = &of["measures"][0]["by"]["median"]["rows"];
        assert_eq!(rows.as_array().unwrap().len(), 4);
        assert_eq!(rows[3][3], 1.0, "one of two runs has a value");
        // A measure that is equal in all runs leaves no choice.
        let mut measures = of["measures"].as_array().unwrap().iter();
        assert!(!measures.any(|measure| measure["name"] == "packets.acks"));
        assert!(page.contains("2 of 2 runs not complete"));
    }

    #[test]
    fn a_sweep_without_results_has_a_page() {
        let mut sweep = sweep();
        sweep.measure(&[]);
        assert!(render_sweep(&sweep).contains("No run has left results."));
    }

    #[test]
    fn a_measure_that_no_run_has_is_not_replaced_by_another() {
        let mut tuned = measured(VALUES);
        tuned.tuning = Some(TuningRecord {
            measure: "sections.nosuch.fctp".into(),
            within: 0.0,
            then: None,
            is_grouped: false,
            rungs: Vec::new(),
            best: Vec::new(),
            last: Vec::new(),
        });
        let page = render_sweep(&tuned);
        assert!(page.contains("No run has a value of <code>sections.nosuch.fctp</code>."));
    }

    #[test]
    fn ratios_have_a_sign_and_names_stay() {
        assert_eq!(
            in_page("max=2x is 1.2x (1.1..1.3x: 3 us"),
            "max=2x is 1.2× (1.1..1.3×: 3 µs"
        );
    }

    #[test]
    fn units_are_printed_as_in_a_page_and_names_stay() {
        let cases = [
            (
                "Best FCT: a, 12.5 us (11.0..-14.0 us: 95 %)",
                "Best FCT: a, 12.5 µs (11.0..-14.0 µs: 95 %)",
            ),
            ("name=our users, 3 us.", "name=our users, 3 µs."),
            ("of us and matrix 4x4", "of us and matrix 4x4"),
            ("1.286x (1.1..1.4x)", "1.286× (1.1..1.4×)"),
        ];
        for (text, page) in cases {
            assert_eq!(in_page(text), page);
        }
    }
}
