//! Parts of a sweep.

use std::str::FromStr;

/// One of several equal parts of the runs of a sweep.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shard {
    number: u32,
    of: u32,
}

impl Shard {
    /// Part `number` of `of` parts, counted from 1.
    ///
    /// # Errors
    /// If the part does not exist; the error names the existing parts.
    pub fn new(number: u32, of: u32) -> Result<Self, String> {
        match (number, of) {
            _ if (1..=of).contains(&number) => Ok(Self { number, of }),
            (0, 1..) => Err(format!("parts are counted from 1: 1/{of} to {of}/{of}")),
            _ => Err("expected a part such as `3/10`, the third of ten".into()),
        }
    }

    /// True if the run with this rank among all runs, counted from 0, is in the part.
    pub(crate) fn has(self, rank: usize) -> bool {
        rank as u64 % u64::from(self.of) + 1 == u64::from(self.number)
    }
}

impl FromStr for Shard {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parts = text.split_once('/');
        let parts = parts.and_then(|(number, of)| Some((number.parse().ok()?, of.parse().ok()?)));
        let (number, of) = parts.unwrap_or_default();
        Self::new(number, of)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_counted_from_one() {
        assert_eq!("3/10".parse(), Shard::new(3, 10));
        assert!((0..10).all(|rank| Shard::new(3, 10).unwrap().has(rank) == (rank == 2)));
        assert!("0/3".parse::<Shard>().unwrap_err().contains("1/3 to 3/3"));
        for wrong in ["4/3", "1/0", "0/0", "3", "a/b", "-1/2"] {
            let error = wrong.parse::<Shard>().unwrap_err();
            assert!(error.contains("`3/10`"), "{wrong}: {error}");
        }
    }
}
