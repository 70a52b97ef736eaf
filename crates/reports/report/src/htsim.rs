//! Flows in the output format of htsim's UEC program, which scripts of its users search.
//!
//! The file has a line for each start and each completion of a flow, in order of time, then a line of totals:
//!
//! ```text
//! Flow Uec_SRC_DST flowId LABEL uecSrc NUMBER starting at US
//! Flow Uec_SRC_DST flowId LABEL uecSrc NUMBER finished at US total messages 1 total packets P RTS 0 total bytes B in_flight now 0
//! New: N Rtx: N RTS: 0 Bounced: 0 ACKs: N NACKs: N Pulls: 0
//! ```
//!
//! As in htsim, times are microseconds with six significant digits, and bytes count `P` full packets. In htsim, counters of its
//! congestion control follow; they do not exist here.

use crate::quantity::without_trailing_zeros;
use clearway_units::Time;
use std::fmt::Write as _;

/// A flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HtsimRow {
    /// Number of the flow in the run.
    pub flow: u32,
    /// Number of the flow in the workload: the `id` of a connection matrix.
    pub label: u64,
    /// Sending host.
    pub src: u32,
    /// Receiving host.
    pub dst: u32,
    /// Packets that its payload fills, retransmissions not counted.
    pub packets: u64,
    /// Payload of a full packet in bytes.
    pub payload: u32,
    /// Time at which the flow was ready to be sent; `None` if it was never ready.
    pub start: Option<Time>,
    /// Time at which the last byte was acknowledged; `None` if the flow did not complete.
    pub finish: Option<Time>,
}

/// The last line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct HtsimTotals {
    /// Data packets sent for the first time.
    pub new: u64,
    /// Data packets sent again.
    pub retransmitted: u64,
    /// Acknowledgements that arrived.
    pub acks: u64,
    /// NACKs that arrived: requests to send again.
    pub nacks: u64,
}

/// The text of the file.
pub fn htsim_txt(rows: &[HtsimRow], totals: HtsimTotals) -> String {
    // At one instant completions come first, because a completion may start the next flow.
    let moments = |row: &HtsimRow| [(row.finish, false), (row.start, true)];
    let mut lines: Vec<(Time, bool, &HtsimRow)> = rows
        .iter()
        .flat_map(|row| moments(row).map(|(time, starts)| Some((time?, starts, row))))
        .flatten()
        .collect();
    lines.sort_by_key(|&(time, starts, row)| (time, starts, row.flow));
    let mut text = String::new();
    for (time, starts, row) in lines {
        let HtsimRow {
            flow,
            label,
            src,
            dst,
            packets,
            ..
        } = row;
        let _ = write!(
            text,
            "Flow Uec_{src}_{dst} flowId {label} uecSrc {flow} {} at {}",
            if starts { "starting" } else { "finished" },
            six_digits(time.as_us())
        );
        if !starts {
            let bytes = u128::from(*packets) * u128::from(row.payload);
            let _ = write!(
                text,
                " total messages 1 total packets {packets} RTS 0 total bytes {bytes} in_flight now 0"
            );
        }
        text.push('\n');
    }
    let HtsimTotals {
        new,
        retransmitted,
        acks,
        nacks,
    } = totals;
    let _ = writeln!(
        text,
        "New: {new} Rtx: {retransmitted} RTS: 0 Bounced: 0 ACKs: {acks} NACKs: {nacks} Pulls: 0"
    );
    text
}

/// A number that is not negative, as the output streams of C++ print it by default: six significant digits, trailing zeros left out.
fn six_digits(value: f64) -> String {
    let scientific = format!("{value:.5e}");
    let (digits, exponent) = scientific.split_once('e').expect("it has an exponent");
    let exponent: i32 = exponent.parse().expect("it is a number");
    if (-4..6).contains(&exponent) {
        let decimals = (5 - exponent) as usize;
        return without_trailing_zeros(&format!("{value:.decimals$}")).into();
    }
    let (sign, exponent) = (
        if exponent < 0 { '-' } else { '+' },
        exponent.unsigned_abs(),
    );
    format!("{}e{sign}{exponent:02}", without_trailing_zeros(digits))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_those_of_output_streams() {
        // As printed by the `printf` of a shell with `%g`.
        for (us, expected) in [
            (0.0, "0"),
            (5.0, "5"),
            (176.2, "176.2"),
            (48.8813, "48.8813"),
            (8.33712, "8.33712"),
            (41_670.743, "41670.7"),
            (100_000.0, "100000"),
            (999_999.4, "999999"),
            (999_999.5, "1e+06"),
            (1_234_565.0, "1.23456e+06"),
            (2_000_000.125, "2e+06"),
            (1e12, "1e+12"),
            (0.083_200, "0.0832"),
            (0.000_123_456_7, "0.000123457"),
            (0.000_099_999_95, "0.0001"),
            (0.000_001, "1e-06"),
        ] {
            assert_eq!(six_digits(us), expected);
        }
    }

    #[test]
    fn lines_are_those_of_the_simulator() {
        let first = HtsimRow {
            flow: 0,
            label: 1,
            src: 0,
            dst: 13,
            packets: 490,
            payload: 4086,
            start: Some(Time::from_us(5)),
            finish: Some(Time::from_ps(176_200_000)),
        };
        let second = HtsimRow {
            flow: 1,
            label: 7,
            src: 13,
            start: first.finish,
            finish: None,
            ..first
        };
        let never = HtsimRow {
            flow: 2,
            start: None,
            ..second
        };
        let totals = HtsimTotals {
            new: 980,
            retransmitted: 3,
            acks: 17,
            nacks: 1,
        };
        assert_eq!(
            htsim_txt(&[first, second, never], totals),
            "Flow Uec_0_13 flowId 1 uecSrc 0 starting at 5\n\
             Flow Uec_0_13 flowId 1 uecSrc 0 finished at 176.2 total messages 1 total packets 490 RTS 0 total bytes 2002140 in_flight now 0\n\
             Flow Uec_13_13 flowId 7 uecSrc 1 starting at 176.2\n\
             New: 980 Rtx: 3 RTS: 0 Bounced: 0 ACKs: 17 NACKs: 1 Pulls: 0\n"
        );
    }
}
