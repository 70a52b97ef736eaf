//! Files of the repository.

/// A file of the repository.
pub(super) struct Source {
    /// Path from the root, with `/` as the separator.
    pub(super) path: String,
    pub(super) text: String,
}

impl Source {
    pub(super) fn is_rust(&self) -> bool {
        self.path.ends_with(".rs")
    }

    /// True for a file that contains only tests, where lengths do not matter.
    pub(super) fn is_test(&self) -> bool {
        self.path.ends_with("/tests.rs") || self.path.contains("/tests/")
    }
}
