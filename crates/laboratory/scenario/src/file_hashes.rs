//! Hashes of the files that scenarios read.

use crate::entries::hash_bytes;
use clearway_input::InputKind;
use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

/// Hashes of files that were read before, so that many scenarios with the same file read it once.
///
/// A file is read again if its length or the time of its last change differs.
#[derive(Debug, Default)]
pub struct FileHashes(Mutex<BTreeMap<(PathBuf, u64), CachedHash>>);

/// Hash of an earlier state of a file.
#[derive(Debug, Clone, Copy)]
struct CachedHash {
    length: u64,
    changed: SystemTime,
    hash: u64,
}

impl FileHashes {
    /// The hash `hash`, extended by the contents of the file at `path`. An unreadable file adds nothing; its reader reports the error.
    pub(crate) fn hash_file(&self, hash: u64, path: &Path) -> u64 {
        // Before the file is read, so that the next call detects a change in between.
        let metadata = fs::metadata(path);
        let state = metadata.and_then(|metadata| Ok((metadata.len(), metadata.modified()?)));
        // Without a time of change, the hash cannot be reused.
        let Ok((length, changed)) = state else {
            return hash_file(hash, path);
        };
        let place = (path.to_path_buf(), hash);
        let known = self.known().get(&place).copied();
        if let Some(known) =
            known.filter(|known| (known.length, known.changed) == (length, changed))
        {
            return known.hash;
        }
        let hash = hash_file(hash, path);
        let known = CachedHash {
            length,
            changed,
            hash,
        };
        self.known().insert(place, known);
        hash
    }

    fn known(&self) -> std::sync::MutexGuard<'_, BTreeMap<(PathBuf, u64), CachedHash>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn hash_file(hash: u64, path: &Path) -> u64 {
    let Ok(file) = clearway_input::open(path, InputKind::TRACE) else {
        return hash;
    };
    let mut reader = BufReader::new(file);
    let mut hash = hash;
    loop {
        let length = match reader.fill_buf() {
            Ok([]) | Err(_) => return hash,
            Ok(bytes) => {
                hash = hash_bytes(hash, bytes);
                bytes.len()
            }
        };
        reader.consume(length);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_file_is_read_again_when_it_has_changed() {
        let folder = clearway_testing::Folder::new("file-hashes");
        let path = folder.join("flows.cm");
        let write = |text: &str, second| {
            fs::write(&path, text).unwrap();
            let file = fs::File::options().write(true).open(&path).unwrap();
            let time = SystemTime::UNIX_EPOCH + Duration::from_secs(second);
            file.set_modified(time).unwrap();
        };
        let hashes = FileHashes::default();
        write("one", 1);
        let one = hashes.hash_file(0, &path);
        assert_eq!(one, hash_file(0, &path));
        assert_ne!(one, hashes.hash_file(7, &path), "behind something else");
        // Neither length nor time reveal this change, so the file is not read again.
        write("two", 1);
        assert_eq!(hashes.hash_file(0, &path), one);
        write("two", 2);
        let two = hashes.hash_file(0, &path);
        assert_eq!(two, hash_file(0, &path));
        assert_ne!(two, one);
        write("three", 2);
        assert_eq!(hashes.hash_file(0, &path), hash_file(0, &path));
        fs::remove_file(&path).unwrap();
        assert_eq!(hashes.hash_file(5, &path), 5);
    }
}
