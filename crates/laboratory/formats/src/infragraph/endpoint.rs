//! Endpoints of edges: names with slices, as in `leaf[0:8]` or `cx5[0].port[1]`.
//!
//! Slices are those of Python: `[3]`, `[2:5]`, `[:4]`, `[::2]`, `[-1]`, `[::-1]`. A bound beyond the count is an error here; Python cuts
//! it.

use super::document::Placed;
use crate::text::{Source, shown};
use clearway_workload::FileError;

/// Name with a slice; one part of an endpoint between dots.
#[derive(Debug, Clone, Copy)]
pub(super) struct Segment<'a> {
    pub(super) name: &'a str,
    /// Content of the brackets.
    pub(super) slice: Option<&'a str>,
}

/// Indices that a slice selects: an arithmetic sequence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Indices {
    first: i64,
    step: i64,
    /// Number of indices.
    pub(super) len: u32,
}

impl Indices {
    /// The index at a place.
    pub(super) fn at(self, place: u32) -> u32 {
        (self.first + self.step * i64::from(place)) as u32
    }

    /// All indices in order.
    pub(super) fn iter(self) -> impl Iterator<Item = u32> {
        (0..self.len).map(move |place| self.at(place))
    }
}

/// The parts of an endpoint.
pub(super) fn segments<'a>(
    source: Source<'_>,
    text: &'a Placed,
) -> Result<Vec<Segment<'a>>, FileError> {
    let parts = text.text.split('.').map(|part| {
        let (name, slice) = match part.split_once('[') {
            None => (part, None),
            Some((name, rest)) => (name, Some(rest.strip_suffix(']')?)),
        };
        let is_whole = !name.is_empty() && !name.contains([']', ':']);
        is_whole.then_some(Segment { name, slice })
    });
    parts.collect::<Option<_>>().ok_or_else(|| {
        let message = format!("`{}` is not an endpoint", shown(&text.text));
        let fault = source.fault(text.line, Some(text.column), message);
        fault.fix("write a name with a slice, as in `nic[0]`, `nic[0:4]` or `cx5[0].port[1]`")
    })
}

/// Indices that a segment selects from `count`.
pub(super) fn indices(
    source: Source<'_>,
    text: &Placed,
    segment: Segment<'_>,
    count: u32,
) -> Result<Indices, FileError> {
    let all = Indices {
        first: 0,
        step: 1,
        len: count,
    };
    let Some(slice) = segment.slice else {
        return Ok(all);
    };
    match slice_of(slice, count.into()) {
        Ok(indices) => Ok(indices),
        Err(SliceFault::Malformed) => {
            let message = format!("`[{}]` is not a slice", shown(slice));
            let fault = source.fault(text.line, Some(text.column), message);
            Err(fault.fix("write `[3]`, `[0:4]` or `[0:8:2]`"))
        }
        Err(SliceFault::Beyond(bound)) => {
            let name = shown(segment.name);
            let message = format!("`[{}]`: the `count` of `{name}` is {count}", shown(slice));
            let fault = source.fault(text.line, Some(text.column), message);
            let fix = match count {
                0 => format!("give `{name}` a `count` above 0"),
                _ => format!(
                    "stay below {count}, or give `{name}` a `count` above {}",
                    bound - 1
                ),
            };
            Err(fault.fix(fix))
        }
    }
}

enum SliceFault {
    Malformed,
    /// Number of indices that the slice needs.
    Beyond(u64),
}

fn slice_of(slice: &str, count: i64) -> Result<Indices, SliceFault> {
    let parts: Vec<&str> = slice.split(':').collect();
    let number = |part: &str| -> Result<Option<i64>, SliceFault> {
        match part.trim() {
            "" => Ok(None),
            digits if digits.len() > 10 => Err(SliceFault::Malformed),
            digits => digits.parse().map(Some).map_err(|_| SliceFault::Malformed),
        }
    };
    let from_start = |bound: i64, most: i64| {
        let from_start = if bound < 0 { bound + count } else { bound };
        let needed = if bound < 0 {
            -bound
        } else {
            bound + (count - most)
        };
        match (0..=most).contains(&from_start) {
            true => Ok(from_start),
            false => Err(SliceFault::Beyond(needed.max(1) as u64)),
        }
    };
    if let [one] = parts[..] {
        let first = from_start(number(one)?.ok_or(SliceFault::Malformed)?, count - 1)?;
        return Ok(Indices {
            first,
            step: 1,
            len: 1,
        });
    }
    let [start, stop, step] = match parts[..] {
        [start, stop] => [start, stop, ""],
        [start, stop, step] => [start, stop, step],
        _ => return Err(SliceFault::Malformed),
    };
    let bound = |part| {
        number(part)?
            .map(|bound| from_start(bound, count))
            .transpose()
    };
    let (start, stop) = (bound(start)?, bound(stop)?);
    let step = number(step)?.unwrap_or(1);
    let (first, distance) = match step {
        0 => return Err(SliceFault::Malformed),
        1.. => {
            let first = start.unwrap_or(0);
            (first, stop.unwrap_or(count) - first)
        }
        _ => {
            let first = start.unwrap_or(count).min(count - 1);
            (first, first - stop.unwrap_or(-1))
        }
    };
    let len = match distance > 0 {
        true => (distance + step.abs() - 1) / step.abs(),
        false => 0,
    };
    Ok(Indices {
        first,
        step,
        len: len as u32,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_are_those_of_python() {
        let selected = |slice: &str, count: u32| -> Option<Vec<u32>> {
            let indices = slice_of(slice, count.into()).ok()?;
            Some(indices.iter().collect())
        };
        for (slice, expected) in [
            ("3", vec![3]),
            ("-1", vec![7]),
            ("-8", vec![0]),
            ("2:5", vec![2, 3, 4]),
            (":3", vec![0, 1, 2]),
            ("6:", vec![6, 7]),
            (":", (0..8).collect()),
            ("::3", vec![0, 3, 6]),
            ("1:8:3", vec![1, 4, 7]),
            ("-2:", vec![6, 7]),
            (":-6", vec![0, 1]),
            ("::-3", vec![7, 4, 1]),
            ("6:2:-2", vec![6, 4]),
            ("8:5:-1", vec![7, 6]),
            ("5:2", vec![]),
            ("0:8", (0..8).collect()),
        ] {
            assert_eq!(selected(slice, 8), Some(expected), "{slice}");
        }
        let wrong = [
            "8",
            "-9",
            "0:9",
            "9:",
            "a",
            "",
            "1:2:0",
            "1:2:3:4",
            "0:99999999999",
            "1.5",
        ];
        for slice in wrong {
            assert_eq!(selected(slice, 8), None, "{slice}");
        }
        assert_eq!(selected("0", 0), None);
        assert_eq!(selected(":", 0), Some(vec![]));
        assert_eq!(selected("::-1", 0), Some(vec![]));
    }
}
