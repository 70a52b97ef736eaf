//! Order in which flows finish, compared with the order in which they start.
//!
//! If flows share a link fairly, flows that start first finish first, and flows of equal length finish close together. If late flows win,
//! early flows finish last: the rank correlation of starts and finishes becomes negative.

use crate::record::FlowTimes;
use clearway_units::Time;
use clearway_units::statistics::spearman;
use serde::{Deserialize, Serialize};

/// Starts and finishes of the flows that completed.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct StartFinish {
    /// [Spearman's rank correlation](spearman) of start and finish: 1 if flows finish in the order of their starts, −1 in the
    /// opposite order. `None` if all flows start, or all finish, at the same instant, and for a single flow.
    pub spearman: Option<f64>,
    /// From the first start to the last one, in microseconds.
    pub start_spread_us: f64,
    /// From the first finish to the last one, in microseconds.
    pub finish_spread_us: f64,
}

impl StartFinish {
    /// Starts and finishes of the completed `flows`, without connections of jobs, whose ideal is zero; `None` if no flow is left.
    pub fn from_flows(flows: &[FlowTimes]) -> Option<Self> {
        let pairs: Vec<(u64, u64)> = flows
            .iter()
            .filter(|flow| !flow.ideal_fct.is_zero())
            .filter_map(|flow| Some((flow.start()?.as_ps(), flow.finish()?.as_ps())))
            .collect();
        let spread = |times: &dyn Fn(&(u64, u64)) -> u64| {
            let times = || pairs.iter().map(times);
            let (first, last) = (times().min()?, times().max()?);
            Some(Time::from_ps(last).since(Time::from_ps(first)).as_us())
        };
        Some(Self {
            spearman: spearman(&pairs),
            start_spread_us: spread(&|pair| pair.0)?,
            finish_spread_us: spread(&|pair| pair.1)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::flow;
    use clearway_units::Span;

    #[test]
    fn the_order_of_starts_and_finishes() {
        // Flow n starts at n us.
        let of = |fcts: [u64; 4]| {
            let rows = (0..)
                .zip(fcts)
                .map(|(n, us)| FlowTimes::from(&flow(n, Some(Span::from_us(us)))));
            StartFinish::from_flows(&rows.collect::<Vec<_>>())
        };
        let expected = |spearman, finish_spread_us| {
            Some(StartFinish {
                spearman,
                start_spread_us: 3.0,
                finish_spread_us,
            })
        };
        assert_eq!(of([10, 10, 10, 10]), expected(Some(1.0), 3.0));
        assert_eq!(of([40, 30, 20, 10]), expected(Some(-1.0), 27.0));
        assert_eq!(of([13, 12, 11, 10]), expected(None, 0.0));
    }

    #[test]
    fn flows_that_did_not_complete_do_not_count() {
        assert_eq!(
            StartFinish::from_flows(&[FlowTimes::from(&flow(0, None))]),
            None
        );
        let alone = StartFinish::from_flows(&[
            FlowTimes::from(&flow(0, None)),
            FlowTimes::from(&flow(7, Some(Span::from_us(5)))),
        ])
        .unwrap();
        assert_eq!(
            (
                alone.spearman,
                alone.start_spread_us,
                alone.finish_spread_us
            ),
            (None, 0.0, 0.0)
        );
    }
}
