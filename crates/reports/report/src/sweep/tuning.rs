//! Choices of a tuning, for the terminal and the page.

use super::points::Samples;
use super::{Statistic, SweepRecord};
use serde::Serialize;

/// Choice of `clearway tune`, with its reasons.
#[derive(Debug, Clone, PartialEq)]
pub struct TuningRecord {
    /// Measure to optimise.
    pub measure: String,
    /// Share of the best value within which points counted as equally good.
    pub within: f64,
    /// Measure that decided between equally good points.
    pub then: Option<String>,
    /// True if there is a best point for each combination of values of some axes, instead of one for all.
    pub is_grouped: bool,
    /// All rungs, in order.
    pub rungs: Vec<TuningRung>,
    /// Best points of the last rung.
    pub best: Vec<Vec<u32>>,
    /// All points of the last rung.
    pub last: Vec<Vec<u32>>,
}

/// Points with equal numbers of seeds, of which the better ones advanced.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct TuningRung {
    /// Points that ran.
    pub points: usize,
    /// Seeds of each point.
    pub seeds: usize,
    /// Points that were left out: a run failed, is incomplete or has no value of a measure.
    pub left_out: usize,
}

/// A chosen point as texts: values by axis, then mean and interval of each measure, then the number of seeds.
pub type ChosenRow = Vec<String>;

impl SweepRecord {
    /// Measure of a tuning that no run has, if there is one.
    pub fn unknown_of<'a>(&self, tuning: &'a TuningRecord) -> Option<&'a str> {
        let names = [Some(&tuning.measure), tuning.then.as_ref()];
        let mut names = names.into_iter().flatten();
        let unknown = names.find(|name| self.place_of(name).is_none());
        unknown.map(String::as_str)
    }

    /// Rule by which a tuning chose its points, if more than one measure decided.
    pub fn chosen_by(&self) -> Option<String> {
        let tuning = self.tuning.as_ref()?;
        let title = |name: &str| Some(self.measures[self.place_of(name)?].title.clone());
        let then = title(tuning.then.as_deref()?)?;
        Some(format!(
            "Chosen: the best {then} of the points whose {} is within {} % of the best.",
            title(&tuning.measure)?,
            tuning.within * 100.0
        ))
    }

    /// Titles and rows of the points that a tuning chose.
    pub fn chosen(&self) -> (Vec<String>, Vec<ChosenRow>) {
        let Some(tuning) = &self.tuning else {
            return (Vec::new(), Vec::new());
        };
        let names = [Some(&tuning.measure), tuning.then.as_ref()];
        let measures = names.into_iter().flatten();
        let measures: Vec<usize> = measures.filter_map(|name| self.place_of(name)).collect();
        let mut titles: Vec<String> = self.axes.iter().map(|axis| axis.key.clone()).collect();
        for &measure in &measures {
            titles.push(self.measures[measure].title.clone());
            titles.push("95 % interval".into());
        }
        titles.push("seeds".into());
        let points = self.points();
        let mut samples = Samples::default();
        let row = |place: &Vec<u32>| {
            let point = points.iter().find(|point| point.place == *place)?;
            let values = self.values_of(place);
            let mut row: ChosenRow = values.map(|(_, value)| value.to_owned()).collect();
            let mut seeds = 0;
            for &measure in &measures {
                let unit = &self.measures[measure].unit;
                let estimate = self.estimate(point, measure, Statistic::Mean, &mut samples);
                seeds = estimate.map_or(seeds, |estimate| estimate.seeds);
                row.push(estimate.map_or("-".into(), |estimate| unit.print(estimate.value)));
                row.push(self.interval_text(point, measure, estimate));
            }
            row.push(seeds.to_string());
            Some(row)
        };
        let rows = tuning.best.iter().filter_map(row).collect();
        (titles, rows)
    }
}
