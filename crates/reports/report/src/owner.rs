//! Owners of temporary files: the process that a file belongs to, and a check that the process has ended.
//!
//! The name of a temporary file contains its owner: `MACHINE-PROCESS-START`. MACHINE stands for one boot of one kernel and one namespace
//! of processes. On a file system that machines or containers share, process numbers of other machines are therefore never looked up.
//! START is the instant at which the process started. It distinguishes the process from a later process with the same number.
//!
//! On systems without `/proc` the end of an owner is unknown; only the age of the file decides there.

use clearway_units::mix64;
use std::fmt::{self, Display};
use std::fs::{self, DirEntry, Metadata};
use std::path::Path;
use std::process;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Age from which on a temporary file counts as abandoned if its owner cannot be looked up: longer than any run.
const ABANDONED: Duration = Duration::from_secs(30 * 24 * 3600);

/// A process with temporary files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Owner {
    /// Identity of the machine; zero if unknown.
    machine: u64,
    process: u32,
    start: u64,
}

impl Owner {
    /// The present process.
    pub fn this() -> Self {
        // Looked up once for each process; a forked process is a different process.
        static KNOWN: Mutex<Option<Owner>> = Mutex::new(None);
        let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        let process = process::id();
        match *known {
            Some(owner) if owner.process == process => owner,
            _ => *known.insert(Self::of_this(process)),
        }
    }

    fn of_this(process: u32) -> Self {
        let start = start_of(process);
        Self {
            machine: start.and_then(|_| machine()).unwrap_or(0),
            process,
            start: start.unwrap_or(0),
        }
    }

    /// The owner whose [text](Display) is `text`.
    pub fn read(text: &str) -> Option<Self> {
        let mut parts = text.split('-');
        let machine = parts.next().filter(|part| part.len() == 16)?;
        let owner = Self {
            machine: u64::from_str_radix(machine, 16).ok()?,
            process: parts.next()?.parse().ok()?,
            start: parts.next()?.parse().ok()?,
        };
        let same = parts.next().is_none() && owner.to_string() == text;
        same.then_some(owner)
    }

    /// True if the process has ended; `None` if that is unknown here, because the process belongs to another machine.
    pub fn is_gone(self) -> Option<bool> {
        let is_here = self.machine != 0 && self.machine == Self::this().machine;
        is_here.then(|| start_of(self.process) != Some(self.start))
    }

    /// Number of the process on its machine.
    pub fn process(self) -> u32 {
        self.process
    }

    /// True if the file `entry` of this owner is abandoned. `fresh` has just been written to the same file system.
    ///
    /// A file is abandoned if its owner is a process of this machine that has ended. If the state of the owner is unknown, the file is
    /// abandoned if it was last changed more than 30 days before `fresh`. Files of another user are never abandoned: their processes may be
    /// hidden.
    pub fn has_abandoned(self, entry: &DirEntry, fresh: &Metadata) -> bool {
        let Ok(metadata) = entry.metadata() else {
            return false;
        };
        if !have_same_user(&metadata, fresh) {
            return false;
        }
        if let Some(is_gone) = self.is_gone() {
            return is_gone;
        }
        let fresh = fresh.modified().ok();
        let times = fresh.zip(last_change(&entry.path(), &metadata));
        times.is_some_and(|(fresh, last)| {
            fresh.duration_since(last).is_ok_and(|age| age > ABANDONED)
        })
    }
}

impl Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}-{}-{}", self.machine, self.process, self.start)
    }
}

/// Hash of this boot of the kernel and of the namespace of process numbers; `None` without `/proc`.
fn machine() -> Option<u64> {
    let boot = fs::read("/proc/sys/kernel/random/boot_id").ok()?;
    let namespace = fs::read_link("/proc/self/ns/pid").ok()?;
    let bytes = boot.iter().chain(namespace.as_os_str().as_encoded_bytes());
    Some(bytes.fold(1, |hash, &byte| mix64(hash ^ u64::from(byte))))
}

/// Start of a process, in ticks since the machine started; `None` if the process or `/proc` does not exist.
fn start_of(process: u32) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The program name, in brackets, may contain any characters. The state follows it as the third field; the start is the 22nd.
    let (_, fields) = text.rsplit_once(')')?;
    fields.split_whitespace().nth(19)?.parse().ok()
}

#[cfg(unix)]
fn have_same_user(one: &Metadata, other: &Metadata) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    one.uid() == other.uid()
}

#[cfg(not(unix))]
fn have_same_user(_: &Metadata, _: &Metadata) -> bool {
    true
}

/// The last change of a file, or of anything in a folder.
fn last_change(path: &Path, metadata: &Metadata) -> Option<std::time::SystemTime> {
    let mut last = metadata.modified().ok()?;
    if metadata.is_dir() {
        for entry in fs::read_dir(path).ok()? {
            let entry = entry.ok()?;
            last = last.max(last_change(&entry.path(), &entry.metadata().ok()?)?);
        }
    }
    Some(last)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clearway_testing::Folder;
    use std::fs::File;
    use std::time::SystemTime;

    /// An entry of `folder` that was last changed `age` ago.
    fn aged(folder: &Path, name: &str, age: Duration) -> DirEntry {
        let file = File::create(folder.join(name)).unwrap();
        let now = file.metadata().unwrap().modified().unwrap();
        file.set_modified(now - age).unwrap();
        let mut entries = fs::read_dir(folder).unwrap().map(Result::unwrap);
        entries.find(|entry| entry.file_name() == name).unwrap()
    }

    #[test]
    fn owners_are_read_as_they_are_printed() {
        let this = Owner::this();
        assert_eq!(Owner::read(&this.to_string()), Some(this));
        for wrong in [
            "",
            "1234-0",
            "1234-5-6",
            "00000000000000ab-5",
            "00000000000000ab-5-6-7",
            "00000000000000ab-05-6",
            "00000000000000AB-5-6",
            "00000000000000ab--6",
        ] {
            assert_eq!(Owner::read(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn files_of_living_and_of_unknown_processes_are_left_alone() {
        let test = Folder::new("report-owner");
        let fresh = fs::metadata(test.path()).unwrap();
        let day = Duration::from_secs(24 * 3600);
        let is_abandoned = |owner: Owner, age| {
            let entry = aged(test.path(), "x", age);
            owner.has_abandoned(&entry, &fresh)
        };
        let this = Owner::this();
        let foreign = Owner {
            machine: this.machine ^ 1,
            ..this
        };
        for age in [Duration::ZERO, 29 * day] {
            assert!(!is_abandoned(foreign, age), "a run of another machine");
        }
        assert!(is_abandoned(foreign, 31 * day));
        if this.machine != 0 {
            assert!(!is_abandoned(this, 31 * day), "it runs");
            let start = this.start + 1;
            assert!(is_abandoned(Owner { start, ..this }, Duration::ZERO));
        }
    }

    #[test]
    fn a_folder_is_as_young_as_the_youngest_file_in_it() {
        let test = Folder::new("report-young");
        let inner = test.path().join("inner");
        fs::create_dir(&inner).unwrap();
        File::create(inner.join("x")).unwrap();
        let long_ago = SystemTime::UNIX_EPOCH;
        for path in [&inner, &test.path().to_path_buf()] {
            File::open(path).unwrap().set_modified(long_ago).unwrap();
        }
        let metadata = fs::metadata(test.path()).unwrap();
        assert!(last_change(test.path(), &metadata).unwrap() > long_ago);
    }
}
