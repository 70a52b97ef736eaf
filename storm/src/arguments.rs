//! Command-line arguments of the storm.

use std::path::PathBuf;

pub(crate) const USAGE: &str = "\
usage: cargo xtask storm [--minutes N] [--seed S] [--jobs N] [--runs N] [--coverage] [--out DIR]
  --minutes N   how long; 2 if left out
  --seed S      seed of all random choices; default 1
  --jobs N      scenarios at a time; as many as there are processors if left out
  --runs N      end after so many scenarios, too
  --coverage    tell how many scenarios touched each key
  --corpus DIR  draw nothing, and run the scenarios of a folder: those that failed once are in storm/corpus
  --out DIR     where scenarios that fail are written; target/storm if left out";

/// The arguments, read.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Arguments {
    pub(crate) program: PathBuf,
    pub(crate) out: PathBuf,
    pub(crate) minutes: f64,
    pub(crate) seed: u64,
    pub(crate) jobs: usize,
    pub(crate) runs: u64,
    pub(crate) coverage: bool,
    /// Folder of scenarios to run instead of generated ones.
    pub(crate) corpus: Option<PathBuf>,
}

impl Arguments {
    /// Reads the words after the name of the program.
    ///
    /// # Errors
    /// If a word is unknown or a value does not fit.
    pub(crate) fn read(mut words: impl Iterator<Item = String>) -> Result<Self, String> {
        let mut arguments = Self {
            program: PathBuf::from("clearway"),
            out: PathBuf::from("target/storm"),
            minutes: 2.0,
            seed: 1,
            jobs: std::thread::available_parallelism().map_or(1, Into::into),
            runs: u64::MAX,
            coverage: false,
            corpus: None,
        };
        while let Some(word) = words.next() {
            if word == "--coverage" {
                arguments.coverage = true;
                continue;
            }
            let value = words
                .next()
                .ok_or_else(|| format!("`{word}` needs a value, or is unknown"))?;
            let fault = || format!("`{word}` cannot be `{value}`");
            match word.as_str() {
                "--program" => arguments.program = value.into(),
                "--out" => arguments.out = value.into(),
                "--corpus" => arguments.corpus = Some(value.into()),
                "--minutes" => arguments.minutes = value.parse().map_err(|_| fault())?,
                "--seed" => arguments.seed = value.parse().map_err(|_| fault())?,
                "--jobs" => arguments.jobs = value.parse().map_err(|_| fault())?,
                "--runs" => arguments.runs = value.parse().map_err(|_| fault())?,
                _ => return Err(format!("there is no `{word}`")),
            }
        }
        let fits = arguments.minutes >= 0.0 && arguments.minutes <= 1e6 && arguments.jobs > 0;
        match fits {
            true => Ok(arguments),
            false => Err("`--minutes` is 0 to 1000000 and `--jobs` at least 1".into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Arguments, String> {
        Arguments::read(text.split_whitespace().map(String::from))
    }

    #[test]
    fn values_are_read_and_faults_named() {
        let arguments = read("--minutes 0.5 --seed 7 --coverage --jobs 2").unwrap();
        assert_eq!((arguments.minutes, arguments.seed), (0.5, 7));
        assert!(arguments.coverage);
        assert_eq!(arguments.runs, u64::MAX);
        let corpus = read("--corpus storm/corpus").unwrap().corpus;
        assert_eq!(corpus, Some("storm/corpus".into()));
        for wrong in ["--seed", "--seed x", "--wind 3", "--jobs 0", "--minutes -1"] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }
}
