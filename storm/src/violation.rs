//! Violations of checks.

/// Violation of a check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Violation {
    /// Kind of violation, in a word that file names can have.
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

    /// Equal for what is likely one fault.
    pub(crate) fn signature(&self) -> String {
        format!("{}: {}", self.kind, self.mark)
    }
}

/// Checks one after the other; the first that fails ends them.
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
