//! A comparison for the terminal.

use super::{Comparison, MEASURES, MeasureRow, Spread, Unit, VariantOutcome};
use crate::quantity::{bytes, count, factor, microseconds, prefixed};
use crate::table::{Align, Table};

/// As many variants beside the first as fit on a terminal.
const PER_BLOCK: usize = 4;

impl Comparison {
    /// The comparison as text: what is compared, then a row for each measure and a column for each variant.
    ///
    /// Measures that are zero everywhere are left out where most runs have none of them.
    pub fn to_table(&self) -> String {
        let mut text = self.legend();
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

    /// Which letter stands for what.
    fn legend(&self) -> String {
        let mut table = Table::new()
            .column("", Align::Left)
            .column("flows", Align::Right)
            .column("payload", Align::Right)
            .column("seeds", Align::Right)
            .column("what", Align::Left);
        for variant in &self.variants {
            let run = &variant.runs[0];
            table.row([
                variant.id.clone(),
                count(run.flows.total),
                bytes(run.bytes),
                seeds(variant),
                variant.label.clone(),
            ]);
        }
        table.render(120)
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
        for (measure, row) in MEASURES.iter().zip(&self.measures) {
            let is_zero = |spread: &Spread| spread.max.is_none_or(|max| max == 0.0);
            if measure.always || !row.values.iter().all(is_zero) {
                add_rows(row, others, &mut table);
            }
        }
        table
    }

    fn explanation(&self) -> String {
        let most = self.variants.iter().map(|variant| variant.runs.len()).max();
        let ratios = self.variants.len() > 1;
        let mut text = String::new();
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
                text +=
                    "Ratios of medians; ~: within the spread of seeds (the two ranges overlap).\n";
            }
        }
        text
    }
}

/// `1`, `1 to 5`, `1, 4, 9`.
fn seeds(variant: &VariantOutcome) -> String {
    let mut seeds: Vec<u64> = variant.runs.iter().map(|run| run.scenario.seed).collect();
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

/// One row with medians and ratios, and one with ranges where there are any.
fn add_rows(row: &MeasureRow, others: &[usize], table: &mut Table) {
    let print = |value| print(row.unit, value);
    let shown = || [0].iter().chain(others).map(|&place| &row.values[place]);
    let median = |spread: &Spread| spread.median.map_or("-".into(), print);
    let cells = shown().enumerate().flat_map(|(place, spread)| match place {
        0 => vec![median(spread)],
        _ => vec![median(spread), ratio(spread, &row.values[0])],
    });
    table.row([row.title.to_owned()].into_iter().chain(cells));
    let ranges: Vec<String> = shown().map(|spread| range(row.unit, spread)).collect();
    if ranges.iter().any(|range| !range.is_empty()) {
        let cells = ranges
            .into_iter()
            .enumerate()
            .flat_map(|(place, range)| match place {
                0 => vec![range],
                _ => vec![range, String::new()],
            });
        table.row([String::new()].into_iter().chain(cells));
    }
}

/// `1.250x`, `1.003x ~`; all ratios line up whether they are marked or not.
fn ratio(spread: &Spread, first: &Spread) -> String {
    let mark = match spread.within_spread {
        Some(true) => " ~",
        Some(false) => "  ",
        None => "",
    };
    let ratio = match spread.ratio {
        None if spread.median.is_some() && first.median == Some(0.0) => "from 0".into(),
        None => "-".into(),
        Some(ratio) if ratio > 0.0 && ratio < 0.0005 => "<0.001x".into(),
        Some(ratio) => factor(ratio),
    };
    ratio + mark
}

/// `48.88..50.12 us`; nothing if all seeds agree.
fn range(unit: Unit, spread: &Spread) -> String {
    let (Some(min), Some(max)) = (spread.min, spread.max) else {
        return String::new();
    };
    if min == max {
        return String::new();
    }
    let (min, max) = (print(unit, min), print(unit, max));
    // A unit that both have is said once.
    let unit_of = |text: &str| {
        text.trim_start_matches(|c: char| !c.is_alphabetic())
            .to_owned()
    };
    let unit = unit_of(&max);
    match min.strip_suffix(&unit) {
        Some(number) if unit_of(&min) == unit => format!("{}..{max}", number.trim_end()),
        _ => format!("{min}..{max}"),
    }
}

fn print(unit: Unit, value: f64) -> String {
    match unit {
        Unit::Us => microseconds(value),
        Unit::Ratio => factor(value),
        Unit::Bps => {
            let number = prefixed(value);
            let space = if number.contains(' ') { "" } else { " " };
            format!("{number}{space}bps")
        }
        // Medians of even numbers of seeds may be halves.
        Unit::Flows | Unit::Packets | Unit::Frames if value.fract() == 0.0 => count(value as u64),
        Unit::Flows | Unit::Packets | Unit::Frames => format!("{}.5", count(value as u64)),
    }
}
