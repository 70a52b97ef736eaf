//! One set of thresholds for all ports, from HPCC's thresholds by rate.

use clearway_units::{Bytes, Rate, RelativeSize, Span};
use std::collections::BTreeMap;

/// Rows of `KMIN_MAP`, `KMAX_MAP` and `PMAX_MAP`: thresholds in units of 1000 B, and probabilities.
#[derive(Debug, Clone)]
pub(super) struct MarkRows {
    pub(super) kmin: Vec<(Rate, u64)>,
    pub(super) kmax: Vec<(Rate, u64)>,
    pub(super) pmax: Vec<(Rate, f64)>,
}

/// Thresholds of all ports.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Marks {
    pub(super) kmin: RelativeSize,
    pub(super) kmax: RelativeSize,
    pub(super) pmax: f64,
    /// The rows in use, in words.
    pub(super) rows: String,
    /// Ports whose thresholds differ in the other simulator.
    pub(super) note: Option<String>,
}

/// Fault of the map `key`.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct MarkFault {
    pub(super) key: &'static str,
    pub(super) message: String,
    pub(super) fix: String,
}

/// Thresholds of one rate.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Row {
    rate: Rate,
    kmin: u64,
    kmax: u64,
    pmax: f64,
}

impl Marks {
    /// Thresholds for a fabric with so many switch ports of each rate; `None` if the fabric is not known.
    ///
    /// With one rate they are the bytes of its row. Rows that scale with the rate are the time in which a port sends so much. Otherwise all
    /// ports get the row of most ports, with a note.
    pub(super) fn of(
        rows: &MarkRows,
        ports: Option<BTreeMap<Rate, u64>>,
    ) -> Result<Self, MarkFault> {
        let rates: Vec<Rate> = match &ports {
            Some(ports) => ports.keys().copied().collect(),
            None => rows.kmax.iter().map(|(rate, _)| *rate).collect(),
        };
        let used: Vec<Row> = rates
            .iter()
            .map(|rate| rows.row(*rate))
            .collect::<Result<_, _>>()?;
        let Some(first) = used.first() else {
            return Err(MarkFault {
                key: "KMAX_MAP",
                message: "there are no thresholds of marks".into(),
                fix: "write `KMIN_MAP`, `KMAX_MAP` and `PMAX_MAP` with a row for each rate of a switch port".into(),
            });
        };
        let only = used.len() == 1 && ports.is_some();
        if only {
            return Ok(first.bytes(format!("row of {}", first.rate)));
        }
        let times: Option<Vec<(Span, Span)>> = used.iter().map(|row| row.times()).collect();
        let scaled = times.filter(|times| {
            let is_same = |row: &Row| row.pmax == first.pmax;
            times.iter().all(|time| *time == times[0]) && used.iter().all(is_same)
        });
        if let Some((kmin, kmax)) = scaled.and_then(|times| times.first().copied()) {
            return Ok(Self {
                kmin: RelativeSize::OfTime(kmin),
                kmax: RelativeSize::OfTime(kmax),
                pmax: first.pmax,
                rows: "rows that scale with the rate".into(),
                note: None,
            });
        }
        let Some(ports) = ports else {
            return Err(MarkFault {
                key: "KMAX_MAP",
                message: "the rows do not scale with the rate, and the topology is not here to say which of them count".into(),
                fix: "run the command where the topology can be found".into(),
            });
        };
        let most = used.iter().rev().max_by_key(|row| ports.get(&row.rate));
        Ok(most.unwrap_or(first).for_all(&used))
    }
}

impl MarkRows {
    fn row(&self, rate: Rate) -> Result<Row, MarkFault> {
        let kmin = find(&self.kmin, rate).ok_or_else(|| lacking("KMIN_MAP", rate))?;
        let kmax = find(&self.kmax, rate).ok_or_else(|| lacking("KMAX_MAP", rate))?;
        let pmax = find(&self.pmax, rate).ok_or_else(|| lacking("PMAX_MAP", rate))?;
        if kmin > kmax {
            return Err(MarkFault {
                key: "KMIN_MAP",
                message: format!("at {rate}, {kmin} KB is above the {kmax} KB of `KMAX_MAP`"),
                fix: "write a smaller number, or a larger one in `KMAX_MAP`".into(),
            });
        }
        Ok(Row {
            rate,
            kmin,
            kmax,
            pmax,
        })
    }
}

fn find<T: Copy>(rows: &[(Rate, T)], rate: Rate) -> Option<T> {
    let row = rows.iter().find(|(known, _)| *known == rate);
    row.map(|(_, value)| *value)
}

fn lacking(key: &'static str, rate: Rate) -> MarkFault {
    MarkFault {
        key,
        message: format!("`{key}` has no row for {rate}, the rate of a switch port"),
        fix: format!("add a row that begins with {}", rate.as_bps()),
    }
}

impl Row {
    fn bytes(self, rows: String) -> Marks {
        let bytes =
            |kilobytes: u64| RelativeSize::Absolute(Bytes::new(kilobytes.saturating_mul(1000)));
        Marks {
            kmin: bytes(self.kmin),
            kmax: bytes(self.kmax),
            pmax: self.pmax,
            rows,
            note: None,
        }
    }

    /// Times in which a port of the rate sends the thresholds, if they are whole picoseconds.
    fn times(self) -> Option<(Span, Span)> {
        let time = |kilobytes: u64| {
            let bits = u128::from(kilobytes) * 8000 * 1_000_000_000_000;
            let rate = u128::from(self.rate.as_bps());
            let whole = bits.is_multiple_of(rate).then_some(bits / rate)?;
            u64::try_from(whole).ok().map(Span::from_ps)
        };
        Some((time(self.kmin)?, time(self.kmax)?))
    }

    /// This row for all ports, of which some have other rows.
    fn for_all(self, used: &[Self]) -> Marks {
        let others = used.iter().filter(|row| row.rate != self.rate);
        let others: Vec<String> = others
            .map(|row| {
                let Self {
                    rate,
                    kmin,
                    kmax,
                    pmax,
                } = row;
                format!("{kmin} KB, {kmax} KB and {pmax} at {rate}")
            })
            .collect();
        Marks {
            note: Some(format!(
                "the rows do not scale with the rate, and all ports have the thresholds of {}, the rate of most ports; \
                 the other simulator has {}",
                self.rate,
                others.join(", ")
            )),
            ..self.bytes(format!("row of {}", self.rate))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(rows: &[(u64, u64, u64, f64)]) -> MarkRows {
        let gbps = |g: &u64| Rate::from_gbps(*g);
        MarkRows {
            kmin: rows.iter().map(|(g, kmin, ..)| (gbps(g), *kmin)).collect(),
            kmax: rows
                .iter()
                .map(|(g, _, kmax, _)| (gbps(g), *kmax))
                .collect(),
            pmax: rows.iter().map(|(g, .., pmax)| (gbps(g), *pmax)).collect(),
        }
    }

    fn ports(ports: &[(u64, u64)]) -> Option<BTreeMap<Rate, u64>> {
        let ports = ports.iter().map(|(g, count)| (Rate::from_gbps(*g), *count));
        Some(ports.collect())
    }

    #[test]
    fn thresholds_are_bytes_a_time_or_those_of_most_ports() {
        let scaling = rows(&[(25, 100, 400, 0.2), (100, 400, 1600, 0.2)]);
        let one = Marks::of(&scaling, ports(&[(100, 40)])).unwrap();
        assert_eq!(one.kmin, RelativeSize::Absolute(Bytes::new(400_000)));
        for known in [ports(&[(25, 8), (100, 40)]), None] {
            let both = Marks::of(&scaling, known).unwrap();
            assert_eq!(both.kmin, RelativeSize::OfTime(Span::from_us(32)));
            assert_eq!(both.kmax, RelativeSize::OfTime(Span::from_us(128)));
            assert_eq!((both.pmax, both.note), (0.2, None));
        }
        let other = rows(&[(200, 300, 1200, 0.8), (400, 800, 3200, 0.2)]);
        let most = Marks::of(&other, ports(&[(200, 9), (400, 8)])).unwrap();
        assert_eq!(most.kmax, RelativeSize::Absolute(Bytes::new(1_200_000)));
        let note = most.note.unwrap();
        assert!(
            note.contains("800 KB, 3200 KB and 0.2 at 400Gbps"),
            "{note}"
        );
        for (known, key) in [
            (ports(&[(100, 1)]), "KMIN_MAP"),
            (ports(&[]), "KMAX_MAP"),
            (None, "KMAX_MAP"),
        ] {
            assert_eq!(Marks::of(&other, known).unwrap_err().key, key);
        }
        let crossed = rows(&[(25, 500, 400, 0.2)]);
        assert_eq!(Marks::of(&crossed, None).unwrap_err().key, "KMIN_MAP");
    }
}
