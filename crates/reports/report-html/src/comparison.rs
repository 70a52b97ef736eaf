//! `compare.html`: variants side by side, their distributions and curves laid over each other.

use super::completion::{
    FEWEST_FOR_TAIL, WIDE, cumulative, nothing, place_of, slowdown_axis, tail,
};
use super::curves::overlay;
use super::document::Document;
use super::html::{Column, Escaped, details, paragraph, prose, table};
use super::plot::{Axis, Join, MOST_SERIES, Plot, Scale, Series, Shape, Unit};
use super::{format, jobs};
use clearway_report::FlowTimes;
use clearway_report::by_size::{FlowsBySize, SizeBin, Tail};
use clearway_report::comparison::{
    CURVE_METRICS, Comparison, MeasureRow, Origin, RunCurve, Spread, Unit as MeasureUnit, Variant,
};
use clearway_report::jobs::JobSummary;
use std::fmt::Write as _;

/// The name of the file in the folder of a comparison.
pub const COMPARISON_FILE_NAME: &str = "compare.html";

/// Content of the page of a comparison.
#[derive(Debug, Clone, PartialEq)]
pub struct ComparisonPage<'a> {
    /// The comparison.
    pub comparison: &'a Comparison,
    /// Variants that are compared.
    pub variants: &'a [Variant],
    /// Origin of the comparison.
    pub origin: &'a Origin,
}

/// The comparison as HTML. The same page gives the same bytes.
pub fn render_comparison(page: &ComparisonPage<'_>) -> String {
    let comparison = page.comparison;
    let mut document = Document::new(&format!("{} · Clearway", names(comparison)));
    header(&mut document, page);
    document.push("<main>");
    document.open_section("variants", "What is compared");
    if let Some(answer) = comparison.answer() {
        document.push(&format!("<p><strong>{}</strong></p>", Escaped(&answer)));
    }
    document.push(&legend(comparison));
    document.close_section();
    document.open_section("measures", "Measures");
    document.push(&paragraph(&explanation(comparison)));
    document.push(&measures(comparison));
    document.close_section();
    let drawn = drawn(page);
    jobs(&mut document, &drawn);
    if comparison.has_flows() {
        completion(&mut document, &drawn);
    }
    over_time(&mut document, &drawn, comparison.has_flows());
    provenance(&mut document, page);
    document.push("</main>");
    document.finish()
}

fn header(document: &mut Document, page: &ComparisonPage<'_>) {
    let variants = format::counted(page.variants.len(), "variant", "variants");
    document.push(&format!(
        "<header>\n<div>\n<p class=\"kicker\">Clearway comparison of {variants}</p>\n<h1>{}</h1>\n</div>\n\
         <button type=\"button\" id=\"theme\" hidden>Theme: system</button>\n</header>\n\
         <noscript><p class=\"warning\">Plots need JavaScript; the tables do not.</p></noscript>",
        Escaped(&names(page.comparison))
    ));
    let interrupted = "Interrupted: the comparison covers the runs that were done.";
    let interrupted = (!page.origin.complete).then(|| interrupted.to_owned());
    for warning in interrupted.iter().chain(&page.comparison.warnings) {
        document.push(&format!(
            "<p class=\"warning\" role=\"status\">{}</p>",
            prose(warning)
        ));
    }
}

/// The compared scenarios, each once.
fn names(comparison: &Comparison) -> String {
    let runs = comparison.variants.iter().flat_map(|variant| &variant.runs);
    let mut names: Vec<&str> = Vec::new();
    for run in runs {
        if !names.contains(&run.scenario.name.as_str()) {
            names.push(&run.scenario.name);
        }
    }
    names.join(", ")
}

/// Quantities as the page prints them.
fn in_page(text: &str) -> String {
    text.replace(" us", " µs").replace('x', "×")
}

/// Table of the variants and their letters.
fn legend(comparison: &Comparison) -> String {
    let work = comparison.work_headings().iter();
    let work: Vec<String> = work.map(|heading| capitalised(heading)).collect();
    let heading = comparison.label_heading().unwrap_or("What".into());
    let columns: Vec<_> = [("Variant", Column::Text), (heading.as_str(), Column::Text)]
        .into_iter()
        .chain(work.iter().map(|name| (name.as_str(), Column::Number)))
        .chain([("Seeds", Column::Number)])
        .collect();
    let rows = comparison.variants.iter().map(|variant| {
        let mut row = vec![variant.id.clone(), variant.label.clone()];
        row.extend(comparison.work_of(variant));
        row.push(variant.seeds());
        row
    });
    table(&columns, &rows.collect::<Vec<_>>())
}

/// The word with an initial capital letter.
fn capitalised(word: &str) -> String {
    let (first, rest) = word.split_at(word.chars().next().map_or(0, char::len_utf8));
    first.to_uppercase() + rest
}

fn explanation(comparison: &Comparison) -> String {
    let several = comparison
        .variants
        .iter()
        .any(|variant| variant.runs.len() > 1);
    let seeds = match (several, comparison.variants.len() > 1) {
        (true, true) => {
            "Medians over seeds, the least and the greatest value below; ratios of medians to A, with the \
             95 % interval of the ratio of the means over common seeds below. ~: within the spread of seeds: \
             the two ranges overlap, so the choice of seeds may be all there is to the difference. Without a mark every seed of \
             the one is beyond every seed of the other."
        }
        (true, false) => "Medians over seeds, the least and the greatest value below.",
        (false, true) => {
            "Ratios to A. With one seed each, seeds alone may explain the differences."
        }
        (false, false) => "One variant with one seed: there is nothing to compare it with.",
    };
    let mut text = seeds.to_owned();
    if let Some(note) = comparison.equal_note() {
        text += &format!(" {note}");
    }
    if comparison.classes_differ() {
        text += " \u{201c}up to 10 KB\u{201d}: slowdown of the flows of more than 1 KB, and so on.";
    }
    if comparison.shown().any(|row| row.unit == MeasureUnit::Index) {
        text += " Finish order: rank correlation with the starts, 1 if those that start first finish first.";
    }
    text
}

/// The table of the terminal with ranges below their medians.
fn measures(comparison: &Comparison) -> String {
    let mut html = String::from(
        "<div class=\"scroll\" tabindex=\"0\"><table>\n<thead><tr><th scope=\"col\">Measure</th>",
    );
    for (place, variant) in comparison.variants.iter().enumerate() {
        let _ = write!(html, "<th scope=\"col\" class=\"n\">{}</th>", variant.id);
        if place > 0 {
            let first = &comparison.variants[0].id;
            let _ = write!(
                html,
                "<th scope=\"col\" class=\"n\">{}/{first}</th>",
                variant.id
            );
        }
    }
    html.push_str("</tr></thead>\n<tbody>\n");
    for row in comparison.shown() {
        let _ = write!(html, "<tr><th scope=\"row\">{}</th>", Escaped(&row.title));
        for (place, spread) in row.values.iter().enumerate() {
            html.push_str(&value_cell(row, spread));
            if place > 0 {
                html.push_str(&ratio_cell(row, spread));
            }
        }
        html.push_str("</tr>\n");
    }
    html + "</tbody></table></div>"
}

fn value_cell(row: &MeasureRow, spread: &Spread) -> String {
    let median = in_page(&spread.median_text(row.unit));
    let range = match in_page(&spread.range_text(row.unit)) {
        range if range.is_empty() => range,
        range => format!("<br><span class=\"note\">{}</span>", Escaped(&range)),
    };
    format!("<td class=\"n\">{}{range}</td>", Escaped(&median))
}

fn ratio_cell(row: &MeasureRow, spread: &Spread) -> String {
    let text = in_page(&spread.ratio_text(&row.values[0], row.unit));
    let class = match spread.within_spread {
        Some(true) => "n note",
        _ => "n",
    };
    let interval = match in_page(spread.interval_text().trim_end()) {
        interval if interval.is_empty() => interval,
        interval => format!("<br><span class=\"note\">{}</span>", Escaped(&interval)),
    };
    format!(
        "<td class=\"{class}\">{}{interval}</td>",
        Escaped(text.trim_end())
    )
}

/// A variant as plotted.
struct PlottedVariant<'a> {
    name: String,
    colour: usize,
    variant: &'a Variant,
}

fn drawn<'a>(page: &ComparisonPage<'a>) -> Vec<PlottedVariant<'a>> {
    let both = page.variants.iter().zip(&page.comparison.variants);
    let drawn = both.take(MOST_SERIES).enumerate();
    drawn
        .map(|(colour, (variant, outcome))| PlottedVariant {
            name: format!("{} {}", outcome.id, outcome.label),
            colour,
            variant,
        })
        .collect()
}

/// Section on the iteration times of jobs, if all variants have jobs.
fn jobs(document: &mut Document, drawn: &[PlottedVariant<'_>]) {
    let variants = drawn.iter().map(|drawn| {
        let jobs = drawn.variant.runs.iter().flat_map(|run| &run.summary.jobs);
        let times = jobs.filter_map(JobSummary::mean_us).collect();
        (drawn.name.as_str(), drawn.colour, times)
    });
    if let Some(plot) = jobs::overlay(variants.collect()) {
        document.open_section("jobs", "Jobs");
        document.plots(vec![plot]);
        document.close_section();
    }
}

fn completion(document: &mut Document, drawn: &[PlottedVariant<'_>]) {
    document.open_section("completion", "Completion times");
    let sorted: Vec<(&PlottedVariant<'_>, Vec<f64>)> = drawn
        .iter()
        .filter_map(|drawn| {
            let flows = drawn.variant.runs.iter().flat_map(|run| &run.flows);
            let pairs = flows.filter_map(FlowTimes::fct_and_ideal);
            let mut fcts: Vec<f64> = pairs.map(|(fct, _)| fct.as_us()).collect();
            fcts.sort_unstable_by(f64::total_cmp);
            (!fcts.is_empty()).then_some((drawn, fcts))
        })
        .collect();
    if sorted.is_empty() {
        let runs = drawn.iter().flat_map(|drawn| &drawn.variant.runs);
        let completed = runs.map(|run| run.summary.flows.completed).sum();
        document.push(&paragraph(nothing(completed)));
    } else {
        let mut plots = distributions(&sorted);
        plots.extend(by_size(drawn));
        document.plots(plots);
    }
    document.close_section();
}

/// The distributions of completion times, all seeds of a variant together, and their tails.
fn distributions(sorted: &[(&PlottedVariant<'_>, Vec<f64>)]) -> Vec<Plot> {
    let least = sorted
        .iter()
        .map(|(_, fcts)| fcts[0])
        .fold(f64::INFINITY, f64::min);
    let last = |fcts: &[f64]| fcts.last().copied().unwrap_or(0.0);
    let most = sorted
        .iter()
        .map(|(_, fcts)| last(fcts))
        .fold(0.0, f64::max);
    let wide = most > WIDE * least.max(1e-6);
    let axis = || Axis {
        scale: if wide { Scale::Log } else { Scale::Linear },
        from: None,
        group: Some("fct"),
        ..Axis::from_zero("flow completion time", Unit::Time)
    };
    let mut plots = vec![Plot {
        id: "fct",
        title: "Flow completion time".into(),
        note: "share of flows that completed within a time, all seeds together".into(),
        x: axis(),
        y: Axis::from_zero("share of flows", Unit::Fraction).to(1.0),
        series: sorted
            .iter()
            .map(|(drawn, fcts)| cumulative(&drawn.name, fcts, drawn.colour))
            .collect(),
        rules: Vec::new(),
    }];
    if sorted.iter().any(|(_, fcts)| fcts.len() >= FEWEST_FOR_TAIL) {
        plots.push(Plot {
            id: "fct-tail",
            title: "Tail".into(),
            note: "share of flows that took at least a time, all seeds together".into(),
            x: axis(),
            y: Axis::log("share of flows", Unit::Fraction).to(1.0),
            series: sorted
                .iter()
                .map(|(drawn, fcts)| tail(&drawn.name, fcts, drawn.colour))
                .collect(),
            rules: Vec::new(),
        });
    }
    plots
}

/// Slowdown by flow size, if there are several sizes.
fn by_size(drawn: &[PlottedVariant<'_>]) -> Vec<Plot> {
    let binned: Vec<(&PlottedVariant<'_>, Vec<SizeBin>)> = drawn
        .iter()
        .map(|drawn| {
            let flows = drawn.variant.runs.iter().flat_map(|run| &run.flows);
            (drawn, FlowsBySize::from_flows(flows).bins())
        })
        .collect();
    if binned.iter().all(|(_, bins)| bins.len() < 2) {
        return Vec::new();
    }
    type Pick = fn(&Tail) -> f64;
    let lines: [(&str, &str, Pick); 3] = [
        ("slowdown-p50", "Slowdown by flow size: p50", |tail| {
            tail.p50
        }),
        ("slowdown-p99", "Slowdown by flow size: p99", |tail| {
            tail.p99
        }),
        ("slowdown-p999", "Slowdown by flow size: p99.9", |tail| {
            tail.p999
        }),
    ];
    lines
        .into_iter()
        .map(|(id, title, pick)| Plot {
            id,
            title: title.into(),
            note: "FCT / ideal FCT, all seeds together".into(),
            x: Axis {
                group: Some("size"),
                ..Axis::log("flow size", Unit::Bytes)
            },
            y: slowdown_axis(binned.iter().flat_map(|(_, bins)| bins)),
            series: binned
                .iter()
                .filter(|(_, bins)| !bins.is_empty())
                .map(|(drawn, bins)| Series {
                    name: drawn.name.clone(),
                    x: bins.iter().map(place_of).collect(),
                    y: bins.iter().map(|bin| pick(&bin.slowdown)).collect(),
                    shape: Shape::Points,
                    join: Join::Never,
                    colour: drawn.colour,
                })
                .collect(),
            rules: Vec::new(),
        })
        .collect()
}

/// Curves of the first sampled run of each variant. Scale-up runs may lack common curves; `is_said` is true if the page has to mention
/// that.
fn over_time(document: &mut Document, drawn: &[PlottedVariant<'_>], is_said: bool) {
    let watched: Vec<_> = drawn
        .iter()
        .filter_map(|drawn| {
            let mut runs = drawn.variant.runs.iter();
            let run = runs.find(|run| !run.curves.is_empty())?;
            Some((drawn, run))
        })
        .collect();
    if watched.is_empty() && !is_said {
        return;
    }
    document.open_section("time", "Over time");
    let seeds: Vec<u64> = watched
        .iter()
        .map(|(_, run)| run.summary.scenario.seed)
        .collect();
    let seed = match seeds.as_slice() {
        [] => {
            document.push(&paragraph("No run was watched."));
            document.close_section();
            return;
        }
        [first, others @ ..] if others.iter().all(|other| other == first) => {
            format!("with seed {first}")
        }
        _ => "with the first seed of each variant".into(),
    };
    let mut plots = Vec::new();
    let mut said = Vec::new();
    for metric in CURVE_METRICS {
        let run_curves: Vec<(&str, usize, RunCurve)> = watched
            .iter()
            .filter_map(|(drawn, run)| {
                let run_curve = run
                    .curves
                    .iter()
                    .find(|run_curve| run_curve.metric == metric)?;
                // Timers may continue after all flows are done.
                let run_curve = run_curve.until(run.summary.simulated_us);
                Some((drawn.name.as_str(), drawn.colour, run_curve))
            })
            .collect();
        match overlay(metric, &run_curves, &seed) {
            Some(Ok(plot)) => plots.push(plot),
            Some(Err(sentence)) => said.push(sentence),
            None => {}
        }
    }
    document.plots(plots);
    if !said.is_empty() {
        document.push(&paragraph(&said.join(" ")));
    }
    document.close_section();
}

/// Section on the origin of the figures, and the command that reproduces them.
fn provenance(document: &mut Document, page: &ComparisonPage<'_>) {
    document.open_section("reproduce", "Reproduce this comparison");
    let origin = page.origin;
    document.push(&format!(
        "<pre class=\"command\"><code>{}</code></pre>",
        Escaped(&origin.command)
    ));
    document.push(&paragraph(&format!(
        "Version {}, revision {}.",
        origin.version, origin.revision
    )));
    let columns = [
        ("Variant", Column::Text),
        ("Scenario", Column::Text),
        ("Seed", Column::Number),
        ("Hash", Column::Code),
        ("Digest", Column::Code),
        ("Results", Column::Text),
    ];
    let runs = page.comparison.variants.iter().flat_map(|variant| {
        variant.runs.iter().map(|run| {
            vec![
                variant.id.clone(),
                run.scenario.name.clone(),
                run.scenario.seed.to_string(),
                run.scenario.hash.clone(),
                run.digest.clone(),
                run.folder.clone().unwrap_or_default(),
            ]
        })
    });
    let runs = table(&columns, &runs.collect::<Vec<_>>());
    document.push(&details("All runs", &runs));
    document.close_section();
}

#[cfg(test)]
mod tests {
    use super::super::tests::{data, plot_ids};
    use super::*;
    use crate::sample::{flow, incomplete_run, job, run, scale_up_run};
    use clearway_report::comparison::ComparedRun;
    use clearway_report::observed::{Curve, Metric, RunObservations, Subject};
    use clearway_units::{Span, Time};

    fn variant(label: &str, runs: impl IntoIterator<Item = ComparedRun>) -> Variant {
        Variant {
            label: label.into(),
            runs: runs.into_iter().collect(),
        }
    }

    /// A run with a hundred flows of two sizes.
    fn watched(seed: u64, us: u64) -> ComparedRun {
        let mut record = run();
        record.scenario.seed = seed;
        record.digest = format!("{seed}-{us}");
        record.flows = (0..100)
            .map(|number| flow(number, Some(Span::from_us(us + seed))))
            .collect();
        for flow in record.flows.iter_mut().take(40) {
            flow.bytes = 10_000;
        }
        let curve = |metric, subject, values: [f64; 3]| Curve {
            metric,
            subject,
            values: values.into(),
        };
        record.observed = Some(RunObservations {
            // The run ends at 100.8 us.
            times: [50, 101, 900].map(Time::from_us).into(),
            curves: vec![
                curve(Metric::Goodput, Subject::Run, [1e9, us as f64 * 1e9, 0.0]),
                curve(Metric::QueuePeak, Subject::Link(3), [5.0, 1.0, 0.0]),
                curve(Metric::Drops, Subject::Run, [0.0, 0.0, 0.0]),
            ],
            ..RunObservations::default()
        });
        ComparedRun::from_record(record)
    }

    fn html(variants: &[Variant]) -> String {
        let origin = Origin {
            version: "0.1.0".into(),
            revision: "0123abc".into(),
            command: "clearway compare a b".into(),
            complete: true,
        };
        render_comparison(&ComparisonPage {
            comparison: &Comparison::from_variants(variants),
            variants,
            origin: &origin,
        })
    }

    #[test]
    fn variants_are_laid_over_each_other() {
        let variants = [
            variant("quick", [1, 2].map(|seed| watched(seed, 60))),
            variant("slow", [1, 2].map(|seed| watched(seed, 90))),
        ];
        let page = html(&variants);
        assert_eq!(page, html(&variants), "the same comparison, the same bytes");
        for text in [
            "<h1>permutation-4</h1>",
            "comparison of 2 variants",
            "<th scope=\"row\">FCT max</th><td class=\"n\">61.50 µs<br><span class=\"note\">61.00..62.00 µs</span></td>",
            "<td class=\"n\">91.50 µs<br><span class=\"note\">91.00..92.00 µs</span></td><td class=\"n\">1.488×<br><span class=\"note\">",
            "No packet was dropped.",
            "clearway compare a b",
        ] {
            assert!(page.contains(text), "no {text}");
        }
        let ids = [
            "fct",
            "fct-tail",
            "slowdown-p50",
            "slowdown-p99",
            "slowdown-p999",
            "goodput",
            "queue-peak",
        ];
        assert_eq!(plot_ids(&page), ids);
        let data = data(&page);
        let plots = data["plots"]["plots"].as_array().unwrap();
        for plot in plots {
            let names: Vec<&str> = plot["series"]
                .as_array()
                .unwrap()
                .iter()
                .map(|series| series["name"].as_str().unwrap())
                .collect();
            assert_eq!(names, ["A quick", "B slow"], "{}", plot["id"]);
        }
        // The time after the run is not drawn.
        let goodput = &plots[5]["series"][1];
        assert_eq!(goodput["y"].as_array().unwrap().len(), 2);
    }

    #[test]
    fn jobs_are_laid_over_each_other_if_all_variants_have_some() {
        let with = |times: &[u64]| {
            let mut record = run();
            record.jobs = times.iter().map(|&us| job("ring", 1, &[us])).collect();
            ComparedRun::from_record(record)
        };
        let page = |first: &[u64], second: &[u64]| {
            html(&[variant("a", [with(first)]), variant("b", [with(second)])])
        };
        let both = page(&[120, 100], &[90]);
        assert_eq!(plot_ids(&both)[0], "jobs");
        let data = data(&both);
        let plot = &data["plots"]["plots"][0];
        let lists = &data["plots"]["lists"];
        let x = |place: usize| &lists[plot["series"][place]["x"].as_u64().unwrap() as usize];
        assert_eq!((x(0), x(1)), (&[100, 100, 120].into(), &[90, 90].into()));
        assert_eq!(plot["series"][0]["y"], serde_json::json!([0, 0.5, 1]));
        assert!(both.contains("<th scope=\"row\">slowest job</th>"));
        for (first, second) in [(&[120, 100][..], &[][..]), (&[120], &[90])] {
            let page = page(first, second);
            assert!(!plot_ids(&page).contains(&"jobs".to_owned()));
        }
    }

    #[test]
    fn one_unwatched_variant_has_a_page() {
        let mut record = run();
        record.flows.clear();
        let page = html(&[variant("alone", [ComparedRun::from_record(record)])]);
        for text in [
            "No flow completed.",
            "No run was watched.",
            "nothing to compare",
        ] {
            assert!(page.contains(text), "no {text}");
        }
        assert!(plot_ids(&page).is_empty());
    }

    #[test]
    fn scale_up_runs_have_no_sections_on_flows() {
        let runs = || [ComparedRun::from_record(scale_up_run())];
        let page = html(&[variant("a", runs()), variant("b", runs())]);
        for text in [
            "<th scope=\"row\">latency p99</th><td class=\"n\">1,124 cycles</td>",
            "<th scope=\"row\">effective bandwidth</th>",
            "<th scope=\"col\" class=\"n\">Operations</th>",
            "B came to the same as A, operation for operation",
        ] {
            assert!(page.contains(text), "no {text}");
        }
        for text in ["FCT", "No flow", "Over time", "Payload", "data sent"] {
            assert!(!page.contains(text), "{text}");
        }
    }

    #[test]
    fn warnings_stand_at_the_top() {
        let variants = [
            variant("a", [ComparedRun::from_record(run())]),
            variant("b", [ComparedRun::from_record(incomplete_run())]),
        ];
        let page = html(&variants);
        let warning = page
            .find("B is incomplete (seed 1: 4 of 6 flows completed)")
            .unwrap();
        assert!(warning < page.find("<main>").unwrap());
    }

    #[test]
    fn names_from_files_stay_names() {
        let evil = "</script><script>alert(1)</script><img src=x onerror=\"a\">'";
        let mut record = incomplete_run();
        record.scenario.name = evil.into();
        record.scenario.hash = evil.into();
        record.digest = evil.into();
        record.version = evil.into();
        record.revision = evil.into();
        let mut bad = ComparedRun::from_record(record);
        bad.folder = Some(evil.into());
        let variants = [variant("a", [watched(1, 50)]), variant(evil, [bad])];
        let origin = Origin {
            version: evil.into(),
            revision: evil.into(),
            command: evil.into(),
            complete: false,
        };
        let page = render_comparison(&ComparisonPage {
            comparison: &Comparison::from_variants(&variants),
            variants: &variants,
            origin: &origin,
        });
        assert!(!page.contains("alert(1)</script>"));
        assert!(!page.contains("<img"));
        assert_eq!(page.matches("<script").count(), 2, "the data and the code");
        assert_eq!(page.matches("</script").count(), 2);
        assert!(page.contains("Interrupted: "));
        let series = &data(&page)["plots"]["plots"][0]["series"];
        assert_eq!(series[1]["name"], format!("B {evil}"));
    }
}
