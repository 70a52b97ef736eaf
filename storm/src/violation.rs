//! Violations of checks.

/// Violation of a check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Violation {
    /// Kind of violation, as a word that is valid in file names.
    pub(crate) kind: &'static str,
    /// Mark that distinguishes violations of one kind: a place in the source, or the check that failed.
    pub(crate) mark: String,
    /// Details in full.
    pub(crate) detail: String,
}

impl Violation {
    pub(crate) fn new(
        kind: &'static str,
        mark: impl Into<String>,
        detail: impl Into<String>,
    ) -> Self {
        Self {
            kind,
            mark: mark.into(),
            detail: detail.into(),
        }
    }

    /// Signature that is equal for violations with probably the same fault.
    pub(crate) fn signature(&self) -> String {
        format!("{}: {}", self.kind, self.mark)
    }
}

/// Outcome of successive checks; the first failed check ends them.
pub(crate) type Verdict = Result<(), Violation>;

/// The violation if the check does not hold.
pub(crate) fn must(
    holds: bool,
    kind: &'static str,
    mark: &str,
    detail: impl FnOnce() -> String,
) -> Verdict {
    match holds {
        true => Ok(()),
        false => Err(Violation::new(kind, mark, detail())),
    }
}
