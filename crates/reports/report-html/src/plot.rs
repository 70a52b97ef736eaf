//! Plots as data: input of the script, and text alternatives for readers who cannot see the plots.
//!
//! A plot is a function of a title, two axes and several named series, so it can combine several runs as well as the flows of one
//! run.

use super::format;
use super::html::{Column, Escaped, details, table};
use super::json::{push_list, push_number, push_numbers, push_text};
use clearway_report::observed::Metric;
use clearway_results::{self as results, MergeRule};
use std::fmt::Write as _;
use std::sync::Arc;

/// Maximum number of points of a series.
pub(crate) const MOST_POINTS: usize = 1000;
/// Maximum number of series of a plot.
pub(crate) const MOST_SERIES: usize = 16;

/// Unit of the numbers along an axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unit {
    /// Microseconds.
    Time,
    /// Bytes.
    Bytes,
    /// Bits per second.
    Rate,
    /// Counts.
    Count,
    /// Counts per microsecond.
    PerMicrosecond,
    /// Multiples.
    Factor,
    /// A part of one.
    Fraction,
}

impl Unit {
    /// Unit in which a metric is drawn. Events are drawn as a number per microsecond.
    pub(crate) const fn from_metric(metric: Metric) -> Self {
        match (metric.info().unit, metric.merge()) {
            (_, MergeRule::Sum) => Self::PerMicrosecond,
            (results::MetricUnit::Bytes, _) => Self::Bytes,
            (results::MetricUnit::BitsPerSecond, _) => Self::Rate,
            (results::MetricUnit::Flits | results::MetricUnit::Count, _) => Self::Count,
            (results::MetricUnit::Fraction, _) => Self::Fraction,
        }
    }

    /// Name in the script.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Time => "us",
            Self::Bytes => "B",
            Self::Rate => "bps",
            Self::Count => "",
            Self::PerMicrosecond => "/us",
            Self::Factor => "x",
            Self::Fraction => "1",
        }
    }

    /// A value for people.
    pub(crate) fn print(self, value: f64) -> String {
        if !value.is_finite() {
            return "–".into();
        }
        match self {
            Self::Time => format::time(value),
            Self::Bytes => format::bytes(value),
            Self::Rate => format::rate(value),
            Self::Count => format::number(value),
            Self::PerMicrosecond => format!("{} per µs", format::number(value)),
            Self::Factor => format::factor(value),
            Self::Fraction => format::number(value),
        }
    }
}

/// Scale of an axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scale {
    /// Equal distances for equal differences.
    Linear,
    /// Equal distances for equal ratios.
    Log,
}

/// An axis.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Axis {
    /// Label of the axis, in a few words.
    pub(crate) label: &'static str,
    /// Unit of the values.
    pub(crate) unit: Unit,
    /// Scale of the axis.
    pub(crate) scale: Scale,
    /// Upper bound of the beginning of the axis.
    pub(crate) from: Option<f64>,
    /// Lower bound of the end of the axis.
    pub(crate) to: Option<f64>,
    /// Group of the plot: plots of one group zoom along x together.
    pub(crate) group: Option<&'static str>,
}

impl Axis {
    /// A linear axis from zero.
    pub(crate) fn from_zero(label: &'static str, unit: Unit) -> Self {
        Self {
            label,
            unit,
            scale: Scale::Linear,
            from: Some(0.0),
            to: None,
            group: None,
        }
    }

    /// A logarithmic axis over the range of its values.
    pub(crate) fn log(label: &'static str, unit: Unit) -> Self {
        Self {
            scale: Scale::Log,
            from: None,
            ..Self::from_zero(label, unit)
        }
    }

    /// The same axis, extended to cover `to`.
    pub(crate) fn to(self, to: f64) -> Self {
        Self {
            to: Some(to),
            ..self
        }
    }

    fn push(&self, text: &mut String) {
        let log = matches!(self.scale, Scale::Log);
        text.push_str("{\"label\":");
        push_text(text, self.label);
        let _ = write!(text, ",\"unit\":\"{}\",\"log\":{log}", self.unit.name());
        for (name, end) in [("from", self.from), ("to", self.to)] {
            if let Some(end) = end {
                let _ = write!(text, ",\"{name}\":");
                push_number(text, end, 8);
            }
        }
        if let Some(group) = self.group {
            let _ = write!(text, ",\"group\":\"{group}\"");
        }
        text.push('}');
    }
}

/// Shape of a series: the way in which points form a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    /// Joined: the value changes linearly between points.
    Line,
    /// The value holds from the point before up to this one.
    Interval,
    /// The value holds from this point to the next one.
    Step,
    /// Joined, with a mark at each point.
    Points,
    /// Separate dots; several may have the same x.
    Dots,
}

impl Shape {
    /// Shape for values that are merged in this way.
    pub(crate) const fn from_merge(merge: MergeRule) -> Self {
        match merge.is_over_interval() {
            false => Self::Line,
            true => Self::Interval,
        }
    }

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Line => "line",
            Self::Interval => "interval",
            Self::Step => "step",
            Self::Points => "points",
            Self::Dots => "dots",
        }
    }
}

/// Method by which the script merges points if there are more points than pixels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Join {
    /// Never merge.
    Never,
    /// Mean over the intervals of the points.
    Mean,
    /// Maximum of the points.
    Peak,
}

impl Join {
    /// Method for values that are merged in this way. Levels are not merged: the script draws each value.
    pub(crate) const fn from_merge(merge: MergeRule) -> Self {
        match merge {
            MergeRule::Last => Self::Never,
            MergeRule::Max => Self::Peak,
            MergeRule::Mean | MergeRule::Sum => Self::Mean,
        }
    }

    /// Name in the script; `None` if points are not merged.
    pub(super) const fn name(self) -> Option<&'static str> {
        match self {
            Self::Never => None,
            Self::Mean => Some("mean"),
            Self::Peak => Some("max"),
        }
    }
}

/// One named line of a plot.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Series {
    /// Name of the series; it may hold any characters.
    pub(crate) name: String,
    /// Positions along x, increasing.
    pub(crate) x: Arc<[f64]>,
    /// One value for each position; NaN is a gap.
    pub(crate) y: Vec<f64>,
    /// Shape in which the series is drawn.
    pub(crate) shape: Shape,
    /// Method by which points are merged.
    pub(crate) join: Join,
    /// Colour of the series, from 0 to 15: the same subject has the same colour in every plot.
    pub(crate) colour: usize,
}

/// A straight line across a plot, with its name.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Rule {
    /// Position on the x axis.
    pub(crate) x: f64,
    /// Label of the line.
    pub(crate) label: String,
}

/// A plot.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Plot {
    /// Name of the plot in the page: letters and dashes.
    pub(crate) id: &'static str,
    /// Title of the plot.
    pub(crate) title: String,
    /// Note beside the title: explanation of the plot for the reader.
    pub(crate) note: String,
    /// Horizontal axis.
    pub(crate) x: Axis,
    /// Vertical axis.
    pub(crate) y: Axis,
    /// Series of the plot, at most [`MOST_SERIES`].
    pub(crate) series: Vec<Series>,
    /// Lines at values to compare with.
    pub(crate) rules: Vec<Rule>,
}

impl Plot {
    /// The element that the script draws into, with a text alternative.
    pub(crate) fn figure(&self) -> String {
        let note = match self.note.as_str() {
            "" => String::new(),
            note => format!(" <span class=\"note\">{}</span>", Escaped(note)),
        };
        format!(
            "<figure class=\"plot\" id=\"{id}\">\n<figcaption><strong>{title}</strong>{note}</figcaption>\n\
             <div class=\"drawing\" data-plot=\"{id}\" data-alternative=\"{alternative}\"></div>\n{table}\n</figure>",
            id = self.id,
            title = Escaped(&self.title),
            alternative = Escaped(&self.alternative()),
            table = details("As a table", &self.table()),
        )
    }

    /// The plot in a sentence.
    fn alternative(&self) -> String {
        let mut text = format!(
            "{}: {} against {}, {}.",
            self.title,
            self.y.label,
            self.x.label,
            format::counted(self.series.len(), "series", "series")
        );
        let highest = self
            .series
            .iter()
            .filter_map(|series| Some((series, series.highest()?)))
            .reduce(|a, b| if b.1.1 > a.1.1 { b } else { a });
        if let Some((series, (x, y))) = highest {
            let _ = write!(
                text,
                " The highest value is {} ({}, at {}).",
                self.y.unit.print(y),
                series.name,
                self.x.unit.print(x)
            );
        }
        text
    }

    fn table(&self) -> String {
        let columns = [
            ("Series", Column::Text),
            ("Lowest", Column::Number),
            ("Highest", Column::Number),
            ("at", Column::Number),
            ("Last", Column::Number),
        ];
        let rows = self.series.iter().map(|series| {
            let (x, y) = series.highest().unwrap_or((f64::NAN, f64::NAN));
            let values = || series.y.iter().copied().filter(|y| y.is_finite());
            let lowest = values().reduce(f64::min).unwrap_or(f64::NAN);
            let last = values().next_back().unwrap_or(f64::NAN);
            let unit = self.y.unit;
            let mut row = vec![series.name.clone()];
            row.extend([
                unit.print(lowest),
                unit.print(y),
                self.x.unit.print(x),
                unit.print(last),
            ]);
            row
        });
        table(&columns, &rows.collect::<Vec<_>>())
    }

    fn push(&self, text: &mut String, lists: &[Arc<[f64]>]) {
        let _ = write!(text, "{{\"id\":\"{}\",\"title\":", self.id);
        push_text(text, &self.title);
        text.push_str(",\"x\":");
        self.x.push(text);
        text.push_str(",\"y\":");
        self.y.push(text);
        text.push_str(",\"rules\":");
        push_list(text, &self.rules, |text, rule| {
            text.push_str("{\"x\":");
            push_number(text, rule.x, 8);
            text.push_str(",\"label\":");
            push_text(text, &rule.label);
            text.push('}');
        });
        text.push_str(",\"series\":");
        push_list(text, &self.series, |text, series| {
            let list = lists.iter().position(|list| *list == series.x);
            text.push_str("{\"name\":");
            push_text(text, &series.name);
            if let Some(join) = series.join.name() {
                let _ = write!(text, ",\"join\":\"{join}\"");
            }
            let _ = write!(
                text,
                ",\"shape\":\"{}\",\"colour\":{},\"x\":{},\"y\":",
                series.shape.name(),
                series.colour,
                list.expect("gathered before")
            );
            push_numbers(text, &series.y, 4);
            text.push('}');
        });
        text.push('}');
    }
}

impl Series {
    /// The first of the highest points.
    fn highest(&self) -> Option<(f64, f64)> {
        let points = self.x.iter().copied().zip(self.y.iter().copied());
        points
            .filter(|(_, y)| y.is_finite())
            .reduce(|a, b| if b.1 > a.1 { b } else { a })
    }
}

/// Appends `{"lists":[…],"plots":[…]}`: plots share lists of x.
pub(super) fn push_plots(text: &mut String, plots: &[Plot]) {
    let mut lists: Vec<Arc<[f64]>> = Vec::new();
    for series in plots.iter().flat_map(|plot| &plot.series) {
        if !lists.contains(&series.x) {
            lists.push(series.x.clone());
        }
    }
    text.push_str("{\"lists\":");
    push_list(text, &lists, |text, list| push_numbers(text, list, 7));
    text.push_str(",\"plots\":");
    push_list(text, plots, |text, plot| plot.push(text, &lists));
    text.push('}');
}
