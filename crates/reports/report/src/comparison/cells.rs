//! Cells and notes of a comparison, for a terminal and for pages.

use super::answer::are_of_one_scenario;
use super::{Comparison, MeasureRow, Spread, Unit, VariantOutcome};
use crate::measures::{PER_CLASS, ShowIf};
use crate::quantity::{bytes, count, factor};

impl Comparison {
    /// Heading of the labels: the scenario, if all runs have the same one and the labels do not name it; otherwise `None`.
    pub fn label_heading(&self) -> Option<String> {
        let name = &self.variants[0].runs[0].scenario.name;
        let is_named = |variant: &VariantOutcome| !variant.label.contains('=');
        let says = are_of_one_scenario(&self.variants) && !self.variants.iter().any(is_named);
        says.then(|| format!("{name} with"))
    }

    /// False if all runs are scale-up runs, whose results are not about flows.
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

    /// Texts that describe the work of the first run of a variant.
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

    /// The measures that apply to the runs, without measures in which all variants are equal for each seed, because their rows contain no
    /// information. The measure by which variants are judged is always shown. If all variants are equal in all measures, all measures are
    /// shown.
    pub fn shown(&self) -> impl Iterator<Item = &MeasureRow> {
        let all_equal = self.applying().all(MeasureRow::is_equal);
        self.applying()
            .filter(move |row| all_equal || !self.is_hidden(row))
    }

    /// Number of measures that apply and are not shown because all variants are equal in them.
    pub(crate) fn equal_rows(&self) -> usize {
        self.applying().count() - self.shown().count()
    }

    /// Sentence on the hidden measures, if there are any.
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

    /// The measures whose condition holds. For example, measures of flows apply unless all runs are scale-up runs.
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
            ShowIf::Always => true,
            ShowIf::IfFlows => has_flows,
            ShowIf::IfAny => has(row, 0.0),
            ShowIf::IfKnown(name) => self
                .row(name)
                .is_some_and(|row| has(row, f64::NEG_INFINITY)),
            ShowIf::IfHas => has(row, f64::NEG_INFINITY),
            ShowIf::IfAllHave => all_have(row),
            ShowIf::UnlessAllHave(name) => {
                let all_have = self.row(name).is_some_and(all_have);
                has_flows && (has(row, f64::NEG_INFINITY) || !all_have)
            }
            ShowIf::IfClassesDiffer => classes_differ && has(row, f64::NEG_INFINITY),
        })
    }

    /// The measure called `name`.
    fn row(&self, name: &str) -> Option<&MeasureRow> {
        self.measures.iter().find(|row| row.name == name)
    }

    /// True if the flows belong to more than one size class.
    pub fn classes_differ(&self) -> bool {
        let rows = self.measures.iter().filter(|row| {
            let mut values = row.values.iter();
            row.shown == ShowIf::IfClassesDiffer && values.any(|spread| spread.max.is_some())
        });
        rows.count() > PER_CLASS
    }
}

impl MeasureRow {
    /// True if there are several variants and all have the same value for each seed.
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

impl Spread {
    /// Median of the values, or a dash.
    pub fn median_text(&self, unit: Unit) -> String {
        self.median.map_or("-".into(), |median| unit.print(median))
    }

    /// Ratio to the first variant: `1.250x`, `1.003x ~`; ratios align with and without the mark.
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

    /// Interval of the ratio of the means: `1.207..1.250x`, aligned with the ratios; empty without an interval or if all seeds agree.
    pub fn interval_text(&self) -> String {
        match self.mean_ratio_interval {
            // A ratio is never below zero.
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

    /// The interval of the ratio of the means; `None` without an interval, or if the interval reaches below zero. No ratio is below zero,
    /// so then there are too few seeds for their differences.
    pub(super) fn ratio_interval(&self) -> Option<[f64; 2]> {
        self.mean_ratio_interval.filter(|[low, _]| *low > 0.0)
    }

    /// The greatest value over seeds divided by the least value.
    pub(super) fn seeds_differ(&self) -> f64 {
        match (self.min, self.max) {
            (Some(min), Some(max)) if min > 0.0 => max / min,
            (Some(min), Some(max)) if min < max => f64::INFINITY,
            _ => 1.0,
        }
    }

    /// Range of the values: `48.88..50.12 us`; empty if all seeds agree.
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
