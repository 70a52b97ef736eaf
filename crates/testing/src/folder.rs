//! Temporary folders of tests.

use std::ops::Deref;
use std::path::{Path, PathBuf};

/// An empty folder for one test of one process, removed with the value.
#[derive(Debug)]
pub struct Folder(PathBuf);

impl Folder {
    /// Creates one, among the temporary files of the system.
    ///
    /// # Panics
    /// If it cannot be created.
    pub fn new(name: &str) -> Self {
        let name = format!("clearway-{name}-{}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        // One that is left over from a process that was killed.
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
        // What is left over is in the folder for temporary files.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
