//! A comparison for the terminal.

use super::answer::are_of_one_scenario;
use super::{Comparison, MeasureRow, Spread, Unit, VariantOutcome};
use crate::measures::{MEAN_ITERATION, PER_CLASS, Shown};
use crate::quantity::{bytes, count, factor};
use crate::table::{Align, Table};

/// Columns of the answer on a terminal.
const ANSWER_WIDTH: usize = 100;

/// As many variants beside the first as fit on a terminal.
const PER_BLOCK: usize = 4;

impl Comparison {
    /// The comparison as text: what is compared, then a row for each measure and a column for each variant.
    ///
    /// Measures that are zero everywhere are left out where most runs have none of them.
    pub fn to_table(&self) -> String {
        let mut text = self.legend();
        if let Some(answer) = self.answer() {
            let lines = crate::table::wrapped(&answer, ANSWER_WIDTH);
            text = format!("{lines}\n\n{text}");
        }
        let others: Vec<usize> = (1..self.variants.len()).collect();
        // The first alone makes a block, too.
        let blocks: Vec<&[usize]> = match others.is_empty() {
            true => vec![&[]],
            false => others.chunks(PER_BLOCK).collect(),
        };
        for block in blocks {
            text += &format!("\n{}", self.block(block).render(usize::MAX));
        }
        text += &format!("\n{}", self.explanation());
        for warning in &self.warnings {
            text += &format!("warning: {warning}\n");
        }
        text
    }

    /// Table of the variants and their letters.
    fn legend(&self) -> String {
        let mut table = Table::new().column("", Align::Left);
        for heading in self.work_headings() {
            table = table.column(*heading, Align::Right);
        }
        table = table
            .column("seeds", Align::Right)
            .column(self.label_heading().unwrap_or("what".into()), Align::Left);
        for variant in &self.variants {
            let names = [variant.seeds(), variant.label.clone()];
            let work = self.work_of(variant).into_iter();
            table.row([variant.id.clone()].into_iter().chain(work).chain(names));
        }
        table.render(120)
    }

    /// Heading of the labels: the scenario, if all runs are of one and the labels do not name it; `None` where they do.
    pub fn label_heading(&self) -> Option<String> {
        let name = &self.variants[0].runs[0].scenario.name;
        let is_named = |variant: &VariantOutcome| !variant.label.contains('=');
        let says = are_of_one_scenario(&self.variants) && !self.variants.iter().any(is_named);
        says.then(|| format!("{name} with"))
    }

    /// True if flows are what the runs are about: not if all are scale-up runs.
    pub fn has_flows(&self) -> bool {
        let mut runs = self.variants.iter().flat_map(|variant| &variant.runs);
        runs.any(|run| run.operations.is_none() || run.flows.total > 0)
    }

    /// True if some run is a scale-up run.
    pub fn has_operations(&self) -> bool {
        let mut runs = self.variants.iter().flat_map(|variant| &variant.runs);
        runs.any(|run| run.operations.is_some())
    }

    /// Headings of [`work_of`](Self::work_of).
    pub fn work_headings(&self) -> &'static [&'static str] {
        match (self.has_flows(), self.has_operations()) {
            (true, false) => &["flows", "payload"],
            (true, true) => &["flows", "payload", "operations"],
            (false, _) => &["operations"],
        }
    }

    /// Texts on what the first run of a variant had to do.
    pub fn work_of(&self, variant: &VariantOutcome) -> Vec<String> {
        let run = &variant.runs[0];
        let operations = run.operations.map_or(0, |operations| operations.total);
        let all = [count(run.flows.total), bytes(run.bytes), count(operations)];
        match (self.has_flows(), self.has_operations()) {
            (true, false) => all[..2].to_vec(),
            (true, true) => all.to_vec(),
            (false, _) => all[2..].to_vec(),
        }
    }

    /// The first variant and those at `others`.
    fn block(&self, others: &[usize]) -> Table {
        let first = &self.variants[0].id;
        let mut table = Table::new()
            .column("", Align::Left)
            .column(first, Align::Right);
        for &other in others {
            let id = &self.variants[other].id;
            table = table
                .column(id, Align::Right)
                .column(format!("{id}/{first}"), Align::Right);
        }
        for row in self.shown() {
            add_rows(row, others, &mut table);
        }
        table
    }

    /// The measures that apply to the runs, without those in which all variants are equal, seed by seed: such a row tells nothing.
    /// The one by which variants are judged is shown in any case, and so are all if all are equal in all.
    pub fn shown(&self) -> impl Iterator<Item = &MeasureRow> {
        let all_equal = self.applying().all(MeasureRow::is_equal);
        self.applying()
            .filter(move |row| all_equal || !self.is_hidden(row))
    }

    /// Number of measures that apply and are not shown because all variants are equal in them.
    pub(crate) fn equal_rows(&self) -> usize {
        self.applying().count() - self.shown().count()
    }

    /// Sentence on the measures that are not shown, if there are some.
    pub fn equal_note(&self) -> Option<String> {
        match self.equal_rows() {
            0 => None,
            1 => Some("One more measure is equal for all; compare.json has it.".into()),
            rows => Some(format!(
                "{rows} more measures are equal for all; compare.json has them."
            )),
        }
    }

    fn is_hidden(&self, row: &MeasureRow) -> bool {
        let judged = self.judged_by().map(|(judged, _)| &judged.name);
        row.is_equal() && judged != Some(&row.name)
    }

    /// The measures but for those that most runs have none of, if all variants have none, those of single classes of sizes, if
    /// there is but one, those of jobs, if a variant has none, and those of flows, if all flows belong to jobs or there are none.
    fn applying(&self) -> impl Iterator<Item = &MeasureRow> {
        let classes_differ = self.classes_differ();
        let has_flows = self.has_flows();
        // A value of any variant above `least`.
        let has = |row: &MeasureRow, least: f64| {
            let mut values = row.values.iter();
            values.any(|spread| spread.max.is_some_and(|max| max > least))
        };
        let all_have = |row: &MeasureRow| row.values.iter().all(|spread| spread.max.is_some());
        self.measures.iter().filter(move |row| match row.shown {
            Shown::Always => true,
            Shown::IfFlows => has_flows,
            Shown::IfAny => has(row, 0.0),
            Shown::IfKnown(name) => self
                .row(name)
                .is_some_and(|row| has(row, f64::NEG_INFINITY)),
            Shown::IfHas => has(row, f64::NEG_INFINITY),
            Shown::IfAllHave => all_have(row),
            Shown::UnlessAllHave(name) => {
                let all_have = self.row(name).is_some_and(all_have);
                has_flows && (has(row, f64::NEG_INFINITY) || !all_have)
            }
            Shown::IfClassesDiffer => classes_differ && has(row, f64::NEG_INFINITY),
        })
    }

    /// The measure of this name.
    fn row(&self, name: &str) -> Option<&MeasureRow> {
        self.measures.iter().find(|row| row.name == name)
    }

    /// True if the flows are of more than one class of sizes.
    pub fn classes_differ(&self) -> bool {
        let rows = self.measures.iter().filter(|row| {
            let mut values = row.values.iter();
            row.shown == Shown::IfClassesDiffer && values.any(|spread| spread.max.is_some())
        });
        rows.count() > PER_CLASS
    }

    fn explanation(&self) -> String {
        let most = self.variants.iter().map(|variant| variant.runs.len()).max();
        let ratios = self.variants.len() > 1;
        let mut text = String::new();
        if let Some(note) = self.equal_note() {
            text += &format!("{note}\n");
        }
        if self.classes_differ() {
            text += "\"up to 10 KB\": slowdown of the flows of more than 1 KB, and so on.\n";
        }
        if self.shown().any(|row| row.name == MEAN_ITERATION) {
            text += "iteration mean: over jobs, of the mean of each; slowest job: the greatest of these means.\n";
        }
        if self.has_operations() {
            text += "effective bandwidth: flits received per GPU and cycle; latency: injection to response.\n";
        }
        if self.shown().any(|row| row.unit == Unit::Index) {
            text += "finish order: rank correlation with the starts; 1: those that start first finish first.\n";
        }
        if most > Some(1) {
            text += "Medians over seeds, with the least and the greatest value below.\n";
        }
        match (ratios, most) {
            (false, _) => {}
            (true, Some(1)) => {
                text +=
                    "One seed each: seeds alone may explain the differences; --seeds N tells.\n";
            }
            (true, _) => {
                text += "Ratios of medians, with the 95 % interval of the ratio of the means over common seeds below;\n\
                         ~: within the spread of seeds (the two ranges overlap).\n";
            }
        }
        text
    }
}

impl MeasureRow {
    /// True if there are several variants and all have the same value with each seed.
    fn is_equal(&self) -> bool {
        let (first, others) = self.values.split_first().expect("there is a variant");
        let is_same = |other: &Spread| other.per_seed == first.per_seed;
        !others.is_empty() && others.iter().all(is_same)
    }
}

impl VariantOutcome {
    /// Seeds of the variant: `1`, `1 to 5`, `1, 4, 9`.
    pub fn seeds(&self) -> String {
        let mut seeds: Vec<u64> = self.runs.iter().map(|run| run.scenario.seed).collect();
        seeds.sort_unstable();
        let in_a_row = seeds.windows(2).all(|pair| pair[0] + 1 == pair[1]);
        match seeds.as_slice() {
            [first, .., last] if in_a_row => format!("{first} to {last}"),
            seeds => {
                let seeds: Vec<String> = seeds.iter().map(u64::to_string).collect();
                seeds.join(", ")
            }
        }
    }
}

/// One row with medians and ratios, and one with ranges where there are any.
fn add_rows(row: &MeasureRow, others: &[usize], table: &mut Table) {
    let shown = || [0].iter().chain(others).map(|&place| &row.values[place]);
    let cells = shown().enumerate().flat_map(|(place, spread)| {
        let median = spread.median_text(row.unit);
        match place {
            0 => vec![median],
            _ => vec![median, spread.ratio_text(&row.values[0], row.unit)],
        }
    });
    table.row([row.title.clone().into_owned()].into_iter().chain(cells));
    let ranges: Vec<String> = shown().map(|spread| spread.range_text(row.unit)).collect();
    if ranges.iter().any(|range| !range.is_empty()) {
        let cells = ranges.into_iter().zip(shown()).enumerate();
        let cells = cells.flat_map(|(place, (range, spread))| match place {
            0 => vec![range],
            _ => vec![range, spread.interval_text()],
        });
        table.row([String::new()].into_iter().chain(cells));
    }
}

impl Spread {
    /// Median of the values, or a dash.
    pub fn median_text(&self, unit: Unit) -> String {
        self.median.map_or("-".into(), |median| unit.print(median))
    }

    /// Ratio to the first variant: `1.250x`, `1.003x ~`; all ratios line up whether they are marked or not.
    pub fn ratio_text(&self, first: &Self, unit: Unit) -> String {
        let mark = match self.within_spread {
            Some(true) => " ~",
            Some(false) => "  ",
            None => "",
        };
        let ratio = match self.ratio {
            None if unit == Unit::Index => "-".into(),
            None if self.median.is_some() && first.median == Some(0.0) => "from 0".into(),
            None => "-".into(),
            Some(ratio) if ratio > 0.0 && ratio < 0.0005 => "<0.001x".into(),
            Some(ratio) => factor(ratio),
        };
        ratio + mark
    }

    /// Interval of the ratio of the means: `1.207..1.250x`, in line with the ratios; nothing if there is none or all seeds agree.
    pub fn interval_text(&self) -> String {
        match self.mean_ratio_interval {
            // No ratio is less than zero.
            Some([low, _]) if low < 0.0 => {
                let times = self.seeds_differ();
                match times.is_finite() && times > 1.0 {
                    true => format!("seeds differ {}  ", factor(times)),
                    false => String::new(),
                }
            }
            Some([low, high]) if low < high => {
                let mark = if self.within_spread.is_some() {
                    "  "
                } else {
                    ""
                };
                Unit::Ratio.print_range(low, high) + mark
            }
            _ => String::new(),
        }
    }

    /// The interval of the ratio of the means; `None` if there is none, or if it reaches below zero, where no ratio is: then seeds are
    /// too few for how much they differ.
    pub(super) fn ratio_interval(&self) -> Option<[f64; 2]> {
        self.mean_ratio_interval.filter(|[low, _]| *low > 0.0)
    }

    /// The greatest value over seeds as a multiple of the least one.
    pub(super) fn seeds_differ(&self) -> f64 {
        match (self.min, self.max) {
            (Some(min), Some(max)) if min > 0.0 => max / min,
            (Some(min), Some(max)) if min < max => f64::INFINITY,
            _ => 1.0,
        }
    }

    /// Range of the values: `48.88..50.12 us`; nothing if all seeds agree.
    pub fn range_text(&self, unit: Unit) -> String {
        let (Some(min), Some(max)) = (self.min, self.max) else {
            return String::new();
        };
        if min == max {
            return String::new();
        }
        unit.print_range(min, max)
    }
}
