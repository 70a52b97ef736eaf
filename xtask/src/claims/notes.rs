//! Notes on claims: a line for each, with names and a sentence.

use crate::Faults;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// Sentences by name.
pub(super) struct Notes {
    file: String,
    sentences: BTreeMap<String, String>,
}

impl Notes {
    /// Reads lines of `words` words, a colon and a sentence.
    pub(super) fn read(path: &Path, words: usize) -> Result<Self, String> {
        let file = path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        let sentences = Self::parse(&file, &read(path)?, words)?;
        Ok(Self { file, sentences })
    }

    /// Notes from a text that is known to be valid.
    #[cfg(test)]
    pub(super) fn from_text(file: &str, text: &str, words: usize) -> Self {
        let sentences = Self::parse(file, text, words).unwrap();
        Self {
            file: file.into(),
            sentences,
        }
    }

    pub(super) fn parse(
        file: &str,
        text: &str,
        words: usize,
    ) -> Result<BTreeMap<String, String>, String> {
        let mut sentences = BTreeMap::new();
        for (number, line) in (1..).zip(text.lines()) {
            let fault = |what: &str| format!("{file}:{number}: {what}: {line}");
            let (name, sentence) = line
                .split_once(": ")
                .ok_or_else(|| fault("no `NAMES: sentence`"))?;
            if name.split(' ').count() != words {
                return Err(fault(&format!("{words} names before the colon")));
            }
            if !sentence.ends_with('.') {
                return Err(fault("no full stop"));
            }
            if sentences
                .insert(name.to_owned(), sentence.to_owned())
                .is_some()
            {
                return Err(fault("listed before"));
            }
        }
        Ok(sentences)
    }

    /// Sentence for a name.
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.sentences.get(name).map(String::as_str)
    }

    /// Names of `wanted` without a sentence, and sentences on other names if these are `known`.
    pub(super) fn compare(
        &self,
        wanted: &[String],
        is_known: impl Fn(&str) -> bool,
        without: &str,
        gone: &str,
    ) -> Faults {
        let wanted: BTreeSet<&str> = wanted.iter().map(String::as_str).collect();
        let missing = wanted.iter().filter(|name| self.get(name).is_none());
        let missing = missing.map(|name| format!("{}: {name}: {without}", self.file));
        let known = self
            .sentences
            .keys()
            .filter(|name| !wanted.contains(name.as_str()) && is_known(name));
        let needless = known.map(|name| format!("{}: {name}: {gone}", self.file));
        missing.chain(needless).collect()
    }
}

/// Text of a file.
pub(super) fn read(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
}
