//! Temporary folders of tests.

use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

/// An empty folder for one test, removed on drop. Paths are unique, whatever the names.
#[derive(Debug)]
pub struct Folder(PathBuf);

impl Folder {
    /// Creates a folder among the temporary files of the system.
    ///
    /// # Panics
    /// If the folder cannot be created.
    pub fn new(name: &str) -> Self {
        // Tests of one process run in parallel, and may share the function that creates their folder.
        static CREATED: AtomicUsize = AtomicUsize::new(0);
        let number = CREATED.fetch_add(1, Ordering::Relaxed);
        let name = format!("clearway-{name}-{}-{number}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        // A killed process may have left a folder.
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).expect("a temporary folder");
        Self(folder)
    }

    /// Path of the folder.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Deref for Folder {
    type Target = Path;

    fn deref(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // A leftover stays in the folder for temporary files.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_of_one_name_are_two() {
        let (one, other) = (Folder::new("twins"), Folder::new("twins"));
        drop(other);
        assert!(one.is_dir());
    }
}
