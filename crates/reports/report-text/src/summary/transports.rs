//! Results by transport.

use super::sections::percentiles;
use crate::table::{Align, Table};
use clearway_report::quantity::{count, factor, microseconds, prefixed};
use clearway_report::summary::Summary;

/// A row for each transport; empty if the run has one.
pub(super) fn transports(summary: &Summary) -> String {
    if summary.transports.is_empty() {
        return String::new();
    }
    let mut fct = Table::new().column("FCT by transport", Align::Left);
    for heading in ["flows", "completed", "p50", "p99", "p99.9", "goodput"] {
        fct = fct.column(heading, Align::Right);
    }
    let mut cost = Table::new().column("Slowdown by transport", Align::Left);
    for heading in ["p50", "p99", "p99.9", "sent", "retransmitted", "timeouts"] {
        cost = cost.column(heading, Align::Right);
    }
    for transport in &summary.transports {
        let figures = transport.figures;
        let goodput = figures.goodput_bps.map(|bps| prefixed(bps) + "bit/s");
        let first = [
            transport.name.clone(),
            count(figures.flows),
            count(figures.completed),
        ];
        let times = percentiles(figures.fct_us, microseconds);
        let row = first.into_iter().chain(times);
        fct.row(row.chain([goodput.unwrap_or_else(|| "-".into())]));
        let packets = [
            transport.data_sent,
            transport.retransmitted,
            transport.timeouts,
        ];
        let row = [transport.name.clone()].into_iter();
        let row = row.chain(percentiles(figures.slowdown, factor));
        cost.row(row.chain(packets.map(count)));
    }
    format!("{fct}\n{cost}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::{run, with_transports};
    use crate::summary::summary_table;

    #[test]
    fn transports_of_a_mix() {
        let text = summary_table(&Summary::from_record(&with_transports(run())));
        let from = text.find("FCT by transport").unwrap();
        let to = text.find("Packets ").unwrap();
        insta::assert_snapshot!(&text[from..to], @"
        FCT by transport  flows  completed       p50       p99     p99.9     goodput
        ----------------  -----  ---------  --------  --------  --------  ----------
        rocev2                2          2  48.88 us  50.00 us  50.00 us  627 Gbit/s
        strack                2          2  61.23 us  97.76 us  97.76 us  327 Gbit/s

        Slowdown by transport     p50     p99   p99.9   sent  retransmitted  timeouts
        ---------------------  ------  ------  ------  -----  -------------  --------
        rocev2                 1.000x  1.023x  1.023x  1,234             56         0
        strack                 1.253x  2.000x  2.000x  1,234              7         0
        ");
        assert!(
            text.lines().all(|line| line.chars().count() <= 80),
            "{text}"
        );
        assert!(!summary_table(&Summary::from_record(&run())).contains("by transport"));
    }
}
