//! Reasons why variants of a comparison were slow, for a terminal.

use crate::table::{Align, Table, wrapped};
use clearway_report::quantity::span;
use clearway_report::why::WhyComparison;
use clearway_units::Span;
use std::fmt::Write as _;

/// Width of sentences on a terminal, in columns.
const WIDTH: usize = 100;

/// Text of an explained comparison: the answer, kinds of time by variant, and each variant in words.
pub fn why_comparison_text(why: &WhyComparison) -> String {
    let sentences = why.sentences().into_iter();
    let lines: Vec<String> = sentences.map(|line| wrapped(&line, WIDTH)).collect();
    let mut text = format!("{}\n\n", lines.join("\n"));
    let mut table = Table::new().column("part", Align::Left);
    for variant in &why.variants {
        table = table.column(variant.name.clone(), Align::Right);
    }
    for part in why.parts() {
        let times = why
            .variants
            .iter()
            .map(|variant| match variant.times.get(part) {
                None | Some(0) => "-".to_owned(),
                Some(&ps) => span(Span::from_ps(ps)),
            });
        table.row([part.to_owned()].into_iter().chain(times));
    }
    let took = why.variants.iter().map(|variant| span(variant.took()));
    table.row(["together".to_owned()].into_iter().chain(took));
    text += &table.render(usize::MAX);
    for variant in &why.variants {
        let sentence = format!("{}: {}", variant.name, variant.sentence);
        let _ = write!(
            text,
            "\n{}\n  {}\n",
            wrapped(&sentence, WIDTH),
            variant.folder
        );
    }
    text + &format!(
        "\nRuns with seed {}. `clearway why FOLDER` explains one of them in full.\n",
        why.seed
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample_tables::why::explained;

    #[test]
    fn a_terminal_shows_kinds_of_time_by_variant() {
        insta::assert_snapshot!(why_comparison_text(&explained()), @"
        With strack iteration 1 of ring took 580.0 us.
        With rocev2 it took 610.0 us, 1.05 times as long: 40.00 us more queueing, 10.00 us less propagation.
        With same it took 580.0 us, as long.
        With lossy it took 1.580 ms, 2.72 times as long: 999.0 us more timeout.

        part           strack    rocev2      same     lossy
        -----------  --------  --------  --------  --------
        timeout             -         -         -  999.0 us
        queueing     30.00 us  70.00 us  30.00 us  30.00 us
        propagation  500.0 us  490.0 us  500.0 us  500.0 us
        computation  50.00 us  50.00 us  50.00 us  51.00 us
        together     580.0 us  610.0 us  580.0 us  1.580 ms

        strack: What strack did.
          out/strack

        rocev2: What rocev2 did.
          out/rocev2

        same: What same did.
          out/same

        lossy: What lossy did.
          out/lossy

        Runs with seed 1. `clearway why FOLDER` explains one of them in full.
        ");
    }
}
