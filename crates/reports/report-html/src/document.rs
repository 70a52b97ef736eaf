//! The frame of a page: head, security policy, style, script and data.

use super::html::Escaped;
use super::plot::{Plot, push_plots};
use super::sha256::source_expression;
use std::fmt::Write as _;

pub(super) const STYLE: &str = include_str!("../assets/page.css");
/// Scripts: the plots first, then the behaviour of the page.
pub(super) const SCRIPTS: [&str; 4] = [
    PLOT_SCRIPT,
    include_str!("../assets/heat.js"),
    include_str!("../assets/map.js"),
    PAGE_SCRIPT,
];
/// Script that only pages of sweeps contain.
const SWEEP_SCRIPT: &str = include_str!("../assets/sweep.js");
pub(super) const PLOT_SCRIPT: &str = include_str!("../assets/plot.js");
pub(super) const PAGE_SCRIPT: &str = include_str!("../assets/page.js");

/// A page under construction: its body grows from top to bottom; the data of its plots is collected separately.
pub(crate) struct Document {
    title: String,
    body: String,
    plots: Vec<Plot>,
    heat: String,
    map: String,
    sweep: Option<String>,
}

impl Document {
    /// An empty page.
    pub(crate) fn new(title: &str) -> Self {
        Self {
            title: title.into(),
            body: String::new(),
            plots: Vec::new(),
            heat: "null".into(),
            map: "null".into(),
            sweep: None,
        }
    }

    /// Appends HTML in which every text is already escaped.
    pub(crate) fn push(&mut self, html: &str) {
        self.body.push_str(html);
        self.body.push('\n');
    }

    /// Opens a section.
    pub(crate) fn open_section(&mut self, id: &str, heading: &str) {
        self.push(&format!(
            "<section id=\"{id}\" aria-labelledby=\"{id}-heading\">\n<h2 id=\"{id}-heading\">{}</h2>",
            Escaped(heading)
        ));
    }

    /// Closes the section.
    pub(crate) fn close_section(&mut self) {
        self.push("</section>");
    }

    /// Appends plots, side by side where there is room.
    pub(crate) fn plots(&mut self, plots: Vec<Plot>) {
        if plots.is_empty() {
            return;
        }
        self.push("<div class=\"plots\">");
        for plot in plots {
            self.push(&plot.figure());
            self.plots.push(plot);
        }
        self.push("</div>");
    }

    /// The data of the heat map, as JSON.
    pub(crate) fn set_heat(&mut self, json: String) {
        self.heat = json;
    }

    /// The data of the map of the fabric, as JSON.
    pub(crate) fn set_map(&mut self, json: String) {
        self.map = json;
    }

    /// The data of a sweep, as JSON.
    pub(crate) fn set_sweep(&mut self, json: String) {
        self.sweep = Some(json);
    }

    /// The whole file.
    pub(crate) fn finish(self) -> String {
        let mut data = String::from("{\"plots\":");
        push_plots(&mut data, &self.plots);
        let _ = write!(data, ",\"heat\":{},\"map\":{}", self.heat, self.map);
        let mut script = SCRIPTS.concat();
        if let Some(sweep) = &self.sweep {
            let _ = write!(data, ",\"sweep\":{sweep}");
            script += SWEEP_SCRIPT;
        }
        data.push('}');
        let file = HtmlFile {
            title: &self.title,
            body: &self.body,
            data: &data,
            style: STYLE,
            script: &script,
            further: ["", ""],
            sources: "",
        };
        file.html()
    }
}

/// Style and scripts of reports, as sources of a security policy: for pages that show a report in a frame, which inherits their policy.
pub fn report_sources() -> (String, String) {
    (
        source_expression(STYLE),
        source_expression(&SCRIPTS.concat()),
    )
}

/// Style of all pages.
pub const PAGE_STYLE: &str = STYLE;

/// Script of all pages, which switches the theme.
pub const PAGE_SCRIPTS: &str = concat!(
    include_str!("../assets/plot.js"),
    include_str!("../assets/page.js")
);

/// Parts of an HTML file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HtmlFile<'a> {
    /// Title of the page.
    pub title: &'a str,
    /// HTML in which every text is already escaped.
    pub body: &'a str,
    /// JSON in which no text can end a script.
    pub data: &'a str,
    /// CSS.
    pub style: &'a str,
    /// JavaScript.
    pub script: &'a str,
    /// Sources of styles and of scripts that the security policy allows besides those of the file, separated by blanks.
    pub further: [&'a str; 2],
    /// Further directives of the security policy, each preceded by a semicolon.
    pub sources: &'a str,
}

impl HtmlFile<'_> {
    /// The security policy of the file.
    pub(super) fn policy(&self) -> String {
        format!(
            "default-src 'none'; style-src {}; script-src {}{}; base-uri 'none'; form-action 'none'",
            with(source_expression(self.style), self.further[0]),
            with(source_expression(self.script), self.further[1]),
            self.sources
        )
    }

    /// The file.
    pub fn html(&self) -> String {
        let Self {
            body,
            data,
            style,
            script,
            ..
        } = self;
        format!(
            "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta http-equiv=\"Content-Security-Policy\" content=\"{}\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <meta name=\"color-scheme\" content=\"light dark\">\n\
             <title>{}</title>\n<style>{style}</style>\n</head>\n<body>\n{body}\
             <script type=\"application/json\" id=\"data\">{data}</script>\n<script>{script}</script>\n</body>\n</html>\n",
            self.policy(),
            Escaped(self.title),
        )
    }
}

/// A source and further ones.
fn with(source: String, further: &str) -> String {
    match further {
        "" => source,
        further => format!("{source} {further}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_policy_names_the_script_and_the_style_and_nothing_else() {
        let html = Document::new("<x>").finish();
        assert!(html.contains("<title>&lt;x&gt;</title>"));
        assert!(html.contains("content=\"default-src 'none'; style-src 'sha256-"));
        assert!(html.contains("; script-src 'sha256-"));
        assert!(!html.contains("unsafe"));
        for forbidden in ["http://", "https://", "eval(", "innerHTML", "<link", "src="] {
            let allowed = match forbidden {
                // The namespace of SVG; nothing is loaded from there.
                "http://" => html.matches("http://www.w3.org/2000/svg").count(),
                _ => 0,
            };
            assert_eq!(html.matches(forbidden).count(), allowed, "{forbidden}");
        }
        // Neither may contain the end tag of its element.
        assert!(!STYLE.contains("</") && !SCRIPTS.concat().contains("</script"));
        assert!(!SWEEP_SCRIPT.contains("</script") && !SWEEP_SCRIPT.contains("innerHTML"));
    }
}
