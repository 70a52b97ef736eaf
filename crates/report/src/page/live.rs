//! The page of a run that goes on: the same plots as in a report, filled by a script that asks the program how far it is.
//!
//! Here is only what the page is made of. Whoever serves it answers `GET api/state` and `POST api/control` beside it; what goes over
//! that line is told where it is served.

use super::html::{Escaped, File, PAGE_SCRIPT, PLOT_SCRIPT, STYLE};
use super::{completion_tiles, packet_tiles};
use crate::record::{RunRecord, ScenarioIdentity};
use crate::summary::Summary;
use serde::Serialize;
use std::fmt::Write as _;

const LIVE_STYLE: &str = include_str!("../../assets/live.css");
const LIVE_SCRIPT: &str = include_str!("../../assets/live.js");

/// A page to be served.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LivePage {
    /// The page.
    pub html: String,
    /// Its security policy, for the header of the answer: its own script, style and server, and nothing else.
    pub policy: String,
}

/// A figure that one looks for first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Tile {
    /// What it is.
    pub name: &'static str,
    /// The figure, with its unit.
    pub value: String,
    /// What it is to be compared with; may be empty.
    pub under: String,
}

/// The figures of a finished run that its report begins with.
pub fn tiles(record: &RunRecord) -> Vec<Tile> {
    let summary = Summary::of(record);
    completion_tiles(record, &summary)
        .into_iter()
        .chain(packet_tiles(&summary))
        .map(|(name, value, under)| Tile { name, value, under })
        .collect()
}

/// A plot: its name in the page, its title, and what one should know to read it.
type PlotText = (&'static str, &'static str, &'static str);

const PLOTS: [PlotText; 8] = [
    ("goodput", "Goodput of all flows", "payload acknowledged"),
    (
        "flow-goodput",
        "Goodput of flows",
        "those that observe.series.flows asks for, at most 8",
    ),
    (
        "queue-peak",
        "Queues",
        "the longest, at most 8; peaks of each interval",
    ),
    ("link-rate", "Throughput of links", "the same links"),
    ("active-flows", "Flows", "at the end of each interval"),
    (
        "fairness",
        "Fairness",
        "1 is fair; goodput over eight base round trips, rates at each sample",
    ),
    (
        "marks",
        "Marked and dropped packets",
        "means over each interval",
    ),
    ("paused-links", "Paused links", "held back by flow control"),
];

/// The page of a run of `scenario`; `sampled` says whether there will be anything to plot.
pub fn live(scenario: &ScenarioIdentity, sampled: bool) -> LivePage {
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
    if sampled {
        body.push_str("<div class=\"plots\">\n");
        for (id, title, note) in PLOTS {
            let _ = writeln!(
                body,
                "<figure class=\"plot\">\n<figcaption><strong>{title}</strong> <span class=\"note\">{note}</span></figcaption>\n\
                 <div class=\"drawing\" data-plot=\"{id}\" data-alternative=\"{title} over simulated time\"></div>\n</figure>",
            );
        }
        body.push_str("</div>\n");
    }
    body.push_str("</main>\n");
    let file = File {
        title: &format!("{} · Clearway, live", scenario.name),
        body: &body,
        data: "{\"plots\":{\"lists\":[],\"plots\":[]},\"heat\":null}",
        style: &[STYLE, LIVE_STYLE].concat(),
        script: &[PLOT_SCRIPT, PAGE_SCRIPT, LIVE_SCRIPT].concat(),
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
<progress id=\"progress\" max=\"1\" value=\"0\" aria-label=\"flows done\"></progress>
<section id=\"ending\" aria-labelledby=\"ending-heading\" hidden>
<h2 id=\"ending-heading\">Results</h2>
<dl class=\"tiles\" id=\"figures\"></dl>
<p class=\"note\">The results are in <code id=\"folder\"></code>.</p>
</section>
<h2>Over simulated time</h2>
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
        live(&scenario, sampled)
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
    fn each_plot_has_a_place_and_a_description_in_the_script() {
        let sampled = page("x", true).html;
        let unsampled = page("x", false).html;
        for (id, ..) in PLOTS {
            let place = format!("data-plot=\"{id}\"");
            assert_eq!(sampled.matches(&place).count(), 1, "{id}");
            assert!(!unsampled.contains(&place), "{id}");
            assert!(LIVE_SCRIPT.contains(&format!("id: \"{id}\"")), "{id}");
        }
        assert!(unsampled.contains("Nothing is sampled"));
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
