//! The reader of a distribution's file.

use crate::text::{Line, Source, Token, lines, shown, whole_number};
use clearway_units::Bytes;
use clearway_workload::FileError;
use clearway_workload::sizes::LARGEST_SIZE;
use clearway_workload::{SizeDistribution, SizePoint};

/// Reads the distribution `text`; errors call the file `name`.
///
/// # Errors
/// At the first line that is invalid or out of order.
pub fn parse_sizes(name: &str, text: &str) -> Result<SizeDistribution, FileError> {
    let source = Source { file: name };
    let mut points: Vec<SizePoint> = Vec::new();
    let mut last_line = 1;
    for line in lines(text) {
        let point = point(source, &line)?;
        match points.last() {
            None => begins_at_zero(source, &line, point)?,
            Some(&before) => rises(source, &line, before, point)?,
        }
        last_line = line.number;
        points.push(point);
    }
    let Some(last) = points.last() else {
        let fault = source.fault(1, None, "the file is empty");
        return Err(fault
            .fix("write a size in bytes and a percent on each line, from `0 0` to 100 percent"));
    };
    if last.percent < 100.0 {
        let message = format!("the last percent is {}, not 100", last.percent);
        let fault = source.fault(last_line, None, message);
        return Err(fault.fix(match last.percent {
            percent if percent <= 1.0 => {
                "write percents, not fractions, and end with the largest size and 100"
            }
            _ => "end with the largest size and 100",
        }));
    }
    Ok(SizeDistribution::new(points))
}

fn point(source: Source<'_>, line: &Line<'_>) -> Result<SizePoint, FileError> {
    let [size, percent] = line.tokens.as_slice() else {
        let found = line.tokens.len();
        let column = line.tokens.get(2).map(|token| token.column);
        let message = format!("a point has 2 words, but this line has {found}");
        let fault = source.fault(line.number, column, message);
        return Err(
            fault.fix("write a size in bytes and the percent of flows up to it, as in `10000 15`")
        );
    };
    Ok(SizePoint {
        bytes: bytes(source, line.number, *size)?,
        percent: self::percent(source, line.number, *percent)?,
    })
}

fn bytes(source: Source<'_>, line: usize, token: Token<'_>) -> Result<Bytes, FileError> {
    let bytes = whole_number(token.text).map(Bytes::new);
    bytes.filter(|&bytes| bytes <= LARGEST_SIZE).ok_or_else(|| {
        let message = format!("`{}` is not a size", shown(token.text));
        let fault = source.fault(line, Some(token.column), message);
        fault.fix(format!(
            "write a whole number of bytes from 0 to {}",
            LARGEST_SIZE.as_u64()
        ))
    })
}

fn percent(source: Source<'_>, line: usize, token: Token<'_>) -> Result<f64, FileError> {
    // The standard library also parses signs and words such as `inf`.
    let is_number = token
        .text
        .bytes()
        .all(|byte| byte.is_ascii_digit() || b".eE-".contains(&byte));
    let value = token.text.parse().ok().filter(|_| is_number);
    value
        .filter(|percent| (0.0..=100.0).contains(percent))
        .ok_or_else(|| {
            let message = format!("`{}` is not a percentage", shown(token.text));
            let fault = source.fault(line, Some(token.column), message);
            fault.fix("write a number from 0 to 100")
        })
}

fn begins_at_zero(source: Source<'_>, line: &Line<'_>, first: SizePoint) -> Result<(), FileError> {
    if first.percent == 0.0 {
        return Ok(());
    }
    let message = format!("the first percent is {}, not 0", first.percent);
    let fault = source.fault(line.number, Some(line.tokens[1].column), message);
    Err(fault.fix("put the smallest size and 0 on a line above"))
}

fn rises(
    source: Source<'_>,
    line: &Line<'_>,
    before: SizePoint,
    point: SizePoint,
) -> Result<(), FileError> {
    let (index, message) = if point.bytes <= before.bytes {
        let (bytes, before) = (point.bytes.as_u64(), before.bytes.as_u64());
        (
            0,
            format!("the size {bytes} is not above {before} of the line before"),
        )
    } else if point.percent <= before.percent {
        let (percent, before) = (point.percent, before.percent);
        (
            1,
            format!("the percent {percent} is not above {before} of the line before"),
        )
    } else {
        return Ok(());
    };
    let fault = source.fault(line.number, Some(line.tokens[index].column), message);
    Err(fault
        .fix("let sizes and percents rise from line to line; leave out a point that adds nothing"))
}

#[cfg(test)]
mod tests;
