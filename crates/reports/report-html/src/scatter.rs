//! Finish against start, with a dot for each flow.

use super::format;
use super::plot::{Axis, Join, Plot, Series, Shape, Unit};
use clearway_report::FlowTimes;
use clearway_report::summary::Summary;
use clearway_units::mix64;

/// Maximum number of dots: more would hide each other.
pub(super) const MOST_DOTS: usize = 3000;

/// The plot, if flows start at different times.
pub(super) fn plot(flows: &[FlowTimes], summary: &Summary) -> Option<Plot> {
    let order = summary.start_finish?;
    if order.start_spread_us == 0.0 {
        return None;
    }
    let (dots, all) = dots(flows);
    let (x, y): (Vec<f64>, Vec<f64>) = dots.iter().copied().unzip();
    let mut note = match dots.len() < all {
        true => format!(
            "{} of {} drawn",
            format::count(dots.len() as u64),
            format::counted(all, "flow", "flows")
        ),
        false => format!(
            "a dot for each of {}",
            format::counted(all, "flow", "flows")
        ),
    };
    if let Some(spearman) = order.spearman {
        note += &format!("; rank correlation {spearman:.3}").replace('-', "−");
    }
    note += &format!("; finishes within {}", format::time(order.finish_spread_us));
    let axis = |label| Axis {
        from: None,
        ..Axis::from_zero(label, Unit::Time)
    };
    Some(Plot {
        id: "start-finish",
        title: "Start and finish".into(),
        note,
        x: axis("start"),
        y: axis("finish"),
        series: vec![Series {
            name: "flows".into(),
            x: x.into(),
            y,
            shape: Shape::Dots,
            join: Join::Never,
            colour: 0,
        }],
        rules: Vec::new(),
    })
}

/// Start and finish in microseconds of at most [`MOST_DOTS`] of the completed flows, sorted, and the number of completed flows.
///
/// The choice does not depend on the order of the flows. It consists of the first and the last flow to start and to finish, and of the
/// flows whose numbers have the smallest hashes, so that a pattern in the numbers does not appear in the plot.
fn dots(flows: &[FlowTimes]) -> (Vec<(f64, f64)>, usize) {
    let completed = |place: &u32| flows[*place as usize].fct_and_ideal().is_some();
    let mut places: Vec<u32> = (0..flows.len() as u32).filter(completed).collect();
    let all = places.len();
    let row = |place: &u32| &flows[*place as usize];
    if all > MOST_DOTS {
        let ends = [
            places.iter().min_by_key(|place| row(place).start()),
            places.iter().max_by_key(|place| row(place).start()),
            places.iter().min_by_key(|place| row(place).finish()),
            places.iter().max_by_key(|place| row(place).finish()),
        ];
        let ends: Vec<u32> = ends.into_iter().flatten().copied().collect();
        let chosen = MOST_DOTS - ends.len();
        places.select_nth_unstable_by_key(chosen, |place| {
            let flow = row(place).flow;
            (mix64(flow.into()), flow)
        });
        places.truncate(chosen);
        places.extend(ends);
        places.sort_unstable();
        places.dedup();
    }
    let dot = |place: &u32| Some((row(place).start()?.as_us(), row(place).finish()?.as_us()));
    let mut dots: Vec<(f64, f64)> = places.iter().filter_map(dot).collect();
    dots.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1)));
    (dots, all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::flow;
    use clearway_units::Span;

    /// Flow n starts at n us; some flows never finish.
    fn flows(count: u32) -> Vec<FlowTimes> {
        let row = |n: u32| {
            FlowTimes::from(&flow(
                n,
                (n % 10 != 3).then_some(Span::from_us(100 + mix64(n.into()) % 50)),
            ))
        };
        (0..count).map(row).collect()
    }

    #[test]
    fn few_flows_have_a_dot_each() {
        let (dots, all) = dots(&flows(20));
        assert_eq!((dots.len(), all), (18, 18));
        assert!(dots.is_sorted_by(|a, b| a.0 < b.0));
        assert_eq!(dots[0].0, 0.0);
    }

    #[test]
    fn of_many_flows_the_same_are_drawn_whatever_their_order() {
        let mut rows = flows(10_000);
        let (chosen, all) = dots(&rows);
        assert_eq!(all, 9_000);
        assert!(
            (MOST_DOTS - 4..=MOST_DOTS).contains(&chosen.len()),
            "{}",
            chosen.len()
        );
        assert_eq!((chosen[0].0, chosen[chosen.len() - 1].0), (0.0, 9_999.0));
        let last = rows
            .iter()
            .filter_map(FlowTimes::finish)
            .max()
            .unwrap()
            .as_us();
        assert!(chosen.iter().any(|dot| dot.1 == last));
        rows.reverse();
        assert_eq!(dots(&rows).0, chosen);
        // The dots are spread evenly: about three in ten of each thousand.
        for thousand in 0..10 {
            let own = chosen.iter().filter(|dot| dot.0 as u64 / 1000 == thousand);
            let count = own.count();
            assert!((240..=360).contains(&count), "{count} in {thousand}");
        }
    }
}
