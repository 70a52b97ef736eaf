//! Completed flows in the text format of the HPCC simulator for ns-3 (`fct.txt`), which scripts of its users read.
//!
//! One line per flow, in order of completion, with columns separated by blanks:
//!
//! | column | meaning |
//! |---|---|
//! | sip | address of the sender: 8 hexadecimal digits, see [`address`] |
//! | dip | address of the receiver |
//! | sport | source port |
//! | dport | destination port |
//! | size | payload in bytes |
//! | start | time at which the flow was ready to be sent, in ns |
//! | fct | time from the start until the last byte was acknowledged, in ns |
//! | standalone fct | the same for the flow alone in the network, in ns |
//!
//! Times are rounded down to nanoseconds.

use clearway_units::{Span, Time};
use std::fmt::Write as _;

/// Maximum number of hosts with unique addresses. With more hosts, two would share one.
pub const MOST_HOSTS: u32 = 1 << 16;

/// One line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FctRow {
    /// Sending host.
    pub src: u32,
    /// Receiving host.
    pub dst: u32,
    /// The source port.
    pub sport: u16,
    /// The destination port.
    pub dport: u16,
    /// Payload in bytes.
    pub bytes: u64,
    /// Time at which the flow was ready to be sent.
    pub start: Time,
    /// Completion time: from the start until the last byte was acknowledged.
    pub fct: Span,
    /// Completion time of the flow alone in the network.
    pub standalone_fct: Span,
}

/// The address of a host: `11.A.B.1` with `A` and `B` the upper and lower byte of its number.
pub const fn address(host: u32) -> u32 {
    0x0b00_0001 + ((host & 0xffff) << 8)
}

/// The text of the file.
pub fn fct_txt(rows: impl IntoIterator<Item = FctRow>) -> String {
    let mut text = String::new();
    for row in rows {
        let _ = writeln!(
            text,
            "{:08x} {:08x} {} {} {} {} {} {}",
            address(row.src),
            address(row.dst),
            row.sport,
            row.dport,
            row.bytes,
            row.start.as_ps() / 1000,
            row.fct.as_ps() / 1000,
            row.standalone_fct.as_ps() / 1000,
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_hold_the_number_of_the_host() {
        for (host, expected) in [
            (0, 0x0b00_0001),
            (15, 0x0b00_0f01),
            (256, 0x0b01_0001),
            (319, 0x0b01_3f01),
            (MOST_HOSTS - 1, 0x0bff_ff01),
        ] {
            assert_eq!(address(host), expected, "{host}");
            assert_eq!((address(host) >> 8) & 0xffff, host);
        }
    }

    #[test]
    fn lines_are_those_of_the_simulator() {
        let row = FctRow {
            src: 15,
            dst: 16,
            sport: 10_000,
            dport: 100,
            bytes: 1_000_000,
            start: Time::from_us(2_000_000),
            fct: Span::from_ns(1_479_258),
            standalone_fct: Span::from_ns(88_000),
        };
        let huge = FctRow {
            src: 319,
            dst: 0,
            sport: 10_001,
            dport: 200,
            bytes: 5_000_000_000,
            start: Time::from_ps(2_000_000_025_999),
            fct: Span::from_ps(1_999),
            standalone_fct: Span::from_ps(999),
        };
        assert_eq!(
            fct_txt([row, huge]),
            "0b000f01 0b001001 10000 100 1000000 2000000000 1479258 88000\n\
             0b013f01 0b000001 10001 200 5000000000 2000000025 1 0\n"
        );
        assert_eq!(fct_txt([]), "");
    }
}
