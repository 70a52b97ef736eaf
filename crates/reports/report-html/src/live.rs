//! The page of a run in progress: the same plots as in a report, filled by a script that asks the program for its progress.
//!
//! This module contains only the parts of the page. A server of the page also answers `GET api/state` and `POST api/control`; the server's
//! module describes these messages.

use super::document::{HtmlFile, SCRIPTS, STYLE};
use super::html::Escaped;
use super::map::{LiveMap, drawing};
use super::outcome_tiles;
use super::plot::{Join, Shape};
use super::views::{self, View};
use clearway_report::observed::Metric;
use clearway_report::summary::Summary;
use clearway_report::{RunRecord, ScenarioIdentity};
use clearway_results::MergeRule;
use serde::Serialize;
use std::fmt::Write as _;

const LIVE_STYLE: &str = include_str!("../assets/live.css");
const LIVE_SCRIPT: &str = include_str!("../assets/live.js");

/// A page to be served.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LivePage {
    /// The page.
    pub html: String,
    /// Security policy of the page, for the header of the response. It allows only the page's script, style and server.
    pub policy: String,
}

/// An important figure.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Tile {
    /// Name of the figure.
    pub name: &'static str,
    /// The figure, with its unit.
    pub value: String,
    /// Values to compare the figure with, printed under the value; may be empty.
    pub under: String,
}

/// The figures at the beginning of the report of a finished run.
pub fn tiles(record: &RunRecord) -> Vec<Tile> {
    let summary = Summary::from_record(record);
    outcome_tiles(record, &summary)
        .into_iter()
        .map(|(name, value, under)| Tile { name, value, under })
        .collect()
}

/// Plot of a live page.
struct LivePlot {
    view: View,
    /// Note beside the title: explanation of the plot for the reader.
    note: &'static str,
    subjects: Subjects,
}

/// Subjects that a plot shows.
enum Subjects {
    /// The run: one series for each metric.
    Run,
    /// The first subjects of the run.
    First,
    /// Subjects with the greatest values.
    Greatest,
    /// Subjects of the plot of another metric.
    Of(Metric),
}

const PLOTS: [LivePlot; 8] = [
    LivePlot {
        view: views::GOODPUT,
        note: "payload acknowledged",
        subjects: Subjects::Run,
    },
    LivePlot {
        view: views::FLOW_GOODPUT,
        note: "those that observe.series.flows asks for, at most 8",
        subjects: Subjects::First,
    },
    LivePlot {
        view: views::QUEUE_PEAK,
        note: "the longest, at most 8; peaks of each interval",
        subjects: Subjects::Greatest,
    },
    LivePlot {
        view: views::LINK_RATE,
        note: "the same links",
        subjects: Subjects::Of(Metric::QueuePeak),
    },
    LivePlot {
        view: views::FLOW_COUNTS,
        note: "at the end of each interval",
        subjects: Subjects::Run,
    },
    LivePlot {
        view: views::FAIRNESS,
        note: "1 is fair; goodput over eight base round trips, rates at each sample",
        subjects: Subjects::Run,
    },
    LivePlot {
        view: views::MARKS_AND_DROPS,
        note: "means over each interval",
        subjects: Subjects::Run,
    },
    LivePlot {
        view: views::PAUSED_LINKS,
        note: "held back by flow control",
        subjects: Subjects::Run,
    },
];

/// True if a live page draws a metric. Windows, pacing rates and bytes in flight appear only in the report.
pub fn is_drawn_live(metric: Metric) -> bool {
    PLOTS.iter().any(|plot| plot.view.metrics.contains(&metric))
}

/// Description of a metric for the script.
#[derive(Serialize)]
struct LiveSeries {
    metric: &'static str,
    label: &'static str,
    shape: &'static str,
    join: Option<&'static str>,
    /// True if values are counts, drawn as a number per microsecond.
    per_us: bool,
}

/// Description of a plot for the script.
#[derive(Serialize)]
struct LivePlotData {
    id: &'static str,
    label: &'static str,
    unit: &'static str,
    series: Vec<LiveSeries>,
    /// True if each metric has one series, for the run.
    of_run: bool,
    ranked: bool,
    /// The metric whose subjects are shown.
    like: Option<&'static str>,
}

impl LivePlot {
    fn data(&self) -> LivePlotData {
        let series = |&metric: &Metric| {
            let merge = metric.merge();
            LiveSeries {
                metric: metric.name(),
                label: metric.info().label,
                shape: Shape::from_merge(merge).name(),
                join: Join::from_merge(merge).name(),
                per_us: merge == MergeRule::Sum,
            }
        };
        LivePlotData {
            id: self.view.id,
            label: self.view.info().axis,
            unit: self.view.unit().name(),
            series: self.view.metrics.iter().map(series).collect(),
            of_run: matches!(self.subjects, Subjects::Run),
            ranked: matches!(self.subjects, Subjects::Greatest),
            like: match self.subjects {
                Subjects::Of(metric) => Some(metric.name()),
                Subjects::Run | Subjects::First | Subjects::Greatest => None,
            },
        }
    }
}

/// The page of a run of `scenario`; with a map if there will be curves to plot.
pub fn live(scenario: &ScenarioIdentity, map: Option<&LiveMap>) -> LivePage {
    let sampled = map.is_some();
    let mut body = String::new();
    let _ = write!(
        body,
        "<header>\n<div>\n<p class=\"kicker\">Clearway, live</p>\n<h1>{}</h1>\n\
         <p class=\"note\">seed {} · scenario hash <code>{}</code></p>\n</div>\n\
         <button type=\"button\" id=\"theme\" hidden>Theme: system</button>\n</header>\n\
         <noscript><p class=\"warning\">This page needs JavaScript.</p></noscript>\n<main>\n",
        Escaped(&scenario.name),
        scenario.seed,
        Escaped(&scenario.hash),
    );
    body.push_str(CONTROLS);
    body.push_str(if sampled { "" } else { UNSAMPLED });
    if let Some(map) = map {
        body.push_str("<h2>The network in the last interval</h2>\n");
        body.push_str(&drawing(&map.alternative));
        body.push_str("\n<h2>Over simulated time</h2>\n");
        body.push_str("<div class=\"plots\">\n");
        for LivePlot { view, note, .. } in &PLOTS {
            let View { id, title, .. } = view;
            let _ = writeln!(
                body,
                "<figure class=\"plot\">\n<figcaption><strong>{title}</strong> <span class=\"note\">{note}</span></figcaption>\n\
                 <div class=\"drawing\" data-plot=\"{id}\" data-alternative=\"{title} over simulated time\"></div>\n</figure>",
            );
        }
        body.push_str("</div>\n");
    }
    body.push_str("</main>\n");
    let plots: Vec<LivePlotData> = PLOTS.iter().map(LivePlot::data).collect();
    let plots = serde_json::to_string(&plots).expect("names and flags");
    let file = HtmlFile {
        title: &format!("{} · Clearway, live", scenario.name),
        body: &body,
        data: &format!(
            "{{\"plots\":{{\"lists\":[],\"plots\":[]}},\"heat\":null,\"map\":{},\"live\":{plots}}}",
            map.map_or("null", |map| &map.shape)
        ),
        style: &[STYLE, LIVE_STYLE].concat(),
        script: &[&SCRIPTS.concat(), LIVE_SCRIPT].concat(),
        further: ["", ""],
        sources: "; connect-src 'self'; img-src 'self'",
    };
    LivePage {
        html: file.html(),
        policy: file.policy(),
    }
}

const CONTROLS: &str = "\
<div class=\"controls\">
<output id=\"status\" class=\"status\">connecting</output>
<button type=\"button\" id=\"hold\" disabled>Pause</button>
<form id=\"step\" autocomplete=\"off\">
<label for=\"until\">Step to</label>
<input id=\"until\" size=\"9\" placeholder=\"150us\" aria-label=\"simulated time to step to\" disabled>
<button id=\"go\" disabled>Step</button>
</form>
<button type=\"button\" id=\"stop\" disabled>Stop</button>
</div>
<p class=\"warning\" id=\"message\" role=\"alert\" hidden></p>
<dl class=\"tiles\">
<div><dt>Simulated time</dt><dd><b id=\"now\">–</b> <span id=\"exact\"></span></dd></div>
<div><dt>Flows done</dt><dd><b id=\"sent\">–</b> <span id=\"total\"></span></dd></div>
<div><dt>Packet-hops/s</dt><dd><b id=\"speed\">–</b> <span id=\"hops\"></span></dd></div>
<div><dt>Goodput</dt><dd><b id=\"goodput-now\">–</b> <span>in the last interval</span></dd></div>
</dl>
<progress id=\"progress\" max=\"1\" value=\"0\" aria-label=\"share of the run that is done\"></progress>
<section id=\"ending\" aria-labelledby=\"ending-heading\" hidden>
<h2 id=\"ending-heading\">Results</h2>
<dl class=\"tiles\" id=\"figures\"></dl>
<p class=\"note\">The results are in <code id=\"folder\"></code>.
<a id=\"report\" href=\"report.html\" hidden>Open the report</a></p>
</section>
";

const UNSAMPLED: &str = "<p>Nothing is sampled in this run (<code>observe.series.every</code> is <code>off</code>), so there are no plots.</p>\n";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::run;

    fn page(name: &str, sampled: bool) -> LivePage {
        let scenario = ScenarioIdentity {
            name: name.into(),
            ..run().scenario
        };
        let map = LiveMap::new(&crate::tests::leaf_spine(2, 2, 2));
        live(&scenario, sampled.then_some(&map))
    }

    #[test]
    fn the_page_talks_to_its_own_server_only() {
        let page = page("<b>&", true);
        assert!(
            page.html
                .contains("<title>&lt;b&gt;&amp; · Clearway, live</title>")
        );
        assert!(!page.html.contains("<b>&"));
        assert!(
            page.policy
                .starts_with("default-src 'none'; style-src 'sha256-")
        );
        assert!(page.policy.contains("; connect-src 'self'; "));
        assert!(page.html.contains(&page.policy), "it says so itself");
        for forbidden in ["https://", "eval(", "innerHTML", "unsafe", "src=\""] {
            assert!(!page.html.contains(forbidden), "{forbidden}");
        }
        assert!(!LIVE_STYLE.contains("</") && !LIVE_SCRIPT.contains("</script"));
    }

    #[test]
    fn each_plot_has_a_place_and_the_script_is_told_of_it() {
        let sampled = page("x", true).html;
        let unsampled = page("x", false).html;
        for id in PLOTS.iter().map(|plot| plot.view.id) {
            let place = format!("data-plot=\"{id}\"");
            assert_eq!(sampled.matches(&place).count(), 1, "{id}");
            assert!(!unsampled.contains(&place), "{id}");
            assert!(
                sampled.contains(&format!("{{\"id\":\"{id}\"")),
                "{id} is told of"
            );
        }
        assert!(unsampled.contains("Nothing is sampled"));
    }

    /// The script names no metric except the metric of its tile: the page passes the metrics and their plots to the script.
    #[test]
    fn the_script_knows_no_metric() {
        for metric in Metric::ALL {
            let name = format!("\"{}\"", metric.name());
            let times = LIVE_SCRIPT.matches(&name).count();
            assert_eq!(times, usize::from(*metric == Metric::Goodput), "{name}");
        }
        for rule in ["\"mean\"", "\"max\"", "\"last\"", "\"sum\""] {
            assert!(!LIVE_SCRIPT.contains(rule), "{rule}");
        }
    }

    #[test]
    fn a_finished_run_is_told_in_the_figures_of_its_report() {
        let tiles = tiles(&run());
        let names: Vec<&str> = tiles.iter().map(|tile| tile.name).collect();
        assert_eq!(
            names[..4],
            [
                "Max FCT",
                "Mean slowdown",
                "Flows completed",
                "Simulated time"
            ]
        );
        assert_eq!(tiles[2].value, "4");
        assert_eq!(tiles[2].under, "of 4");
    }
}
