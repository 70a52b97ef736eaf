//! Arguments of `clearway collective`.

use crate::failure::Failure;
use crate::hosts::ConnectionArguments;
use crate::print_arguments::PrintArguments;
use clap::{Args, ValueEnum, ValueHint};
use clearway_collective::measure::Measurement;
use clearway_collective::{Algorithm, BufferOperation};
use clearway_units::{Bytes, Span};
use std::path::PathBuf;

/// Maximum size of a buffer in bytes: each rank has one or two buffers.
const MOST_BYTES: u64 = 16 << 30;
/// Maximum number of ranks of one process.
const MOST_LOOPBACK: i64 = 64;

#[derive(Debug, Args)]
#[command(
    after_help = "\
Examples:
  clearway collective --loopback 4
  clearway collective --ranks hosts.txt --rank 0 --key all.key --op all-reduce --algorithm tree -b 8K -e 64M -f 4
      # the same with --rank 1, 2, ... on the other hosts; rank 0 makes the key, to be copied, and prints the results

The file of ranks has a host on each line, with a port if it is not 4794; rank 0 is the first. # begins a comment.",
    group(clap::ArgGroup::new("where").required(true).args(["loopback", "ranks"]))
)]
pub(crate) struct CollectiveArguments {
    /// Run N ranks on this host, with a new key
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=MOST_LOOPBACK))]
    pub(crate) loopback: Option<u32>,
    /// File with the host of each rank
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, requires = "rank")]
    pub(crate) ranks: Option<PathBuf>,
    /// Rank of this process, from 0: its line in the file
    #[arg(long, value_name = "N", requires = "ranks")]
    pub(crate) rank: Option<u32>,
    /// Operation
    #[arg(long, value_enum, default_value = "all-reduce")]
    pub(crate) op: OperationArgument,
    /// Algorithm: ring, tree (double-binary-tree), halving-doubling or direct; the first one of the operation if left out
    #[arg(long, value_name = "NAME")]
    pub(crate) algorithm: Option<String>,
    /// First size of the buffer
    #[arg(long, short = 'b', value_name = "SIZE", default_value = "4KiB", value_parser = read_size)]
    pub(crate) min_bytes: u64,
    /// Last size of the buffer
    #[arg(long, short = 'e', value_name = "SIZE", default_value = "16MiB", value_parser = read_size)]
    pub(crate) max_bytes: u64,
    /// Factor from one size to the next
    #[arg(long, short = 'f', value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u64).range(2..))]
    pub(crate) factor: u64,
    /// Timed collectives of each size
    #[arg(long, short = 'n', value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(crate) iterations: u32,
    /// Warm-up collectives of each size, not timed
    #[arg(long, short = 'w', value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(0..=1_000_000))]
    pub(crate) warmups: u32,
    /// Largest message; a multiple of 4 bytes, up to 4MiB
    #[arg(long, value_name = "SIZE", value_parser = read_chunk)]
    pub(crate) chunk: Option<usize>,
    /// Do not compare results with a local computation
    #[arg(long)]
    pub(crate) no_check: bool,
    /// Time without a sign of life after which a rank is lost
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = read_time)]
    pub(crate) idle: Span,
    /// Time for which a rank waits for the others to start
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = read_time)]
    pub(crate) wait: Span,
    #[command(flatten)]
    pub(crate) connection: ConnectionArguments,
    #[command(flatten)]
    pub(crate) print: PrintArguments,
}

/// An operation.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum OperationArgument {
    /// Every rank gets the sum of all buffers
    AllReduce,
    /// Every rank gets the blocks of all ranks
    AllGather,
    /// Every rank gets its block of the sum of all buffers
    ReduceScatter,
    /// Every rank has a block for each other rank
    AllToAll,
}

impl From<OperationArgument> for BufferOperation {
    fn from(argument: OperationArgument) -> Self {
        match argument {
            OperationArgument::AllReduce => Self::AllReduce,
            OperationArgument::AllGather => Self::AllGather,
            OperationArgument::ReduceScatter => Self::ReduceScatter,
            OperationArgument::AllToAll => Self::AllToAll,
        }
    }
}

impl CollectiveArguments {
    pub(super) fn algorithm(&self) -> Result<Algorithm, Failure> {
        let operation = self.op.into();
        let Some(name) = &self.algorithm else {
            return Ok(Algorithm::default_of(operation));
        };
        Algorithm::named(operation, name).map_err(|error| {
            Failure::new(format!(
                "{error}\n  fix: give one of these with `--algorithm`"
            ))
        })
    }

    /// The sizes in turn.
    pub(super) fn steps(&self) -> Result<Vec<Measurement>, Failure> {
        let algorithm = self.algorithm()?;
        let (first, last) = (self.min_bytes, self.max_bytes);
        if first > last {
            return Err(Failure::new(format!(
                "the first size, {first} bytes, is larger than the last, {last} bytes\n  fix: give `--min-bytes` up to `--max-bytes`"
            )));
        }
        // A size of zero would stay zero.
        let next = |size: &u64| size.max(&1).checked_mul(self.factor);
        let sizes = std::iter::successors(Some(first), next).take_while(|size| *size <= last);
        let step = |size| Measurement {
            algorithm,
            size,
            chunk: self.chunk,
            warmups: self.warmups,
            iterations: self.iterations,
            check: !self.no_check,
        };
        Ok(sizes.map(step).collect())
    }

    /// Part of the arguments that all ranks must have in common.
    pub(super) fn task(&self) -> String {
        let operation = BufferOperation::from(self.op).name();
        let chunk = self
            .chunk
            .map_or("auto".to_owned(), |c| (c * 4).to_string());
        format!(
            "--op {operation} --algorithm {} -b {} -e {} -f {} -n {} -w {} --chunk {chunk}{}",
            self.algorithm.as_deref().unwrap_or("auto"),
            self.min_bytes,
            self.max_bytes,
            self.factor,
            self.iterations,
            self.warmups,
            if self.no_check { " --no-check" } else { "" },
        )
    }
}

/// Reads a size; K, M and G are powers of 1024, as in nccl-tests.
fn read_size(text: &str) -> Result<u64, String> {
    let size = match text.strip_suffix(['K', 'M', 'G']) {
        Some(_) => format!("{text}iB").parse(),
        None if text.bytes().all(|byte| byte.is_ascii_digit()) => format!("{text}B").parse(),
        None => text.parse(),
    };
    let size: Option<Bytes> = size.ok();
    let fits = size.map(Bytes::as_u64).filter(|size| *size <= MOST_BYTES);
    fits.ok_or_else(|| {
        "expected a size up to 16GiB, such as `8`, `64K`, `64KiB` or `2MB`".to_owned()
    })
}

fn read_chunk(text: &str) -> Result<usize, String> {
    let fits = |size: &u64| (4..=4 << 20).contains(size) && size.is_multiple_of(4);
    let size = read_size(text).ok().filter(fits);
    let size = size.map(|size| size as usize / 4);
    size.ok_or_else(|| "expected a multiple of 4 bytes up to 4MiB".to_owned())
}

fn read_time(text: &str) -> Result<Span, String> {
    let time: Option<Span> = text.parse().ok();
    let fits = time.filter(|time| (Span::from_ms(50)..=Span::from_ms(3_600_000)).contains(time));
    fits.ok_or_else(|| "expected a time from `50ms` to `3600s`".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_those_of_nccl_tests_and_ours() {
        let sizes = [
            ("8", 8),
            ("8K", 8192),
            ("2M", 2 << 20),
            ("1G", 1 << 30),
            ("64KiB", 65_536),
            ("2MB", 2_000_000),
            ("0", 0),
        ];
        for (text, size) in sizes {
            assert_eq!(read_size(text), Ok(size), "{text}");
        }
        for text in ["", "K", "8k", "-1", "17G", "99999999999999999999", "1.5"] {
            assert!(read_size(text).is_err(), "{text}");
        }
        assert_eq!(read_chunk("4K"), Ok(1024));
        for text in ["0", "6", "5M"] {
            assert!(read_chunk(text).is_err(), "{text}");
        }
    }
}
