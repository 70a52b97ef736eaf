//! Claims: marks of the process that works on a run.
//!
//! A claim is a file that appears with its full content, by a hard link that fails if the claim exists. The owner writes to the file at
//! intervals, so the age of the file shows whether the owner lives. A claim is *stale* if its owner was a process on this machine that has
//! ended, or if the owner cannot be looked up and has not written for [`STALE`]. A process that finds a stale claim removes it by a rename,
//! which only one process can do, and then checks the removed file: a claim that was renewed in between is put back.

use super::StoreError;
use super::files::{Files, remove};
use clearway_report::Owner;
use std::fs::{self, File};
use std::io::{ErrorKind, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Time between two writes of an owner.
pub(crate) const HEARTBEAT: Duration = Duration::from_secs(20);

/// Age from which a claim is stale if its owner cannot be looked up.
const STALE: Duration = Duration::from_secs(180);

/// Length of a heartbeat at the beginning of the file.
const BEAT_LENGTH: usize = "beat 0000000000\n".len();

/// Claim of a run. Dropping the claim releases the run.
#[derive(Debug)]
pub struct Claim {
    path: PathBuf,
    /// Content of the file after the heartbeat.
    identity: String,
    beats: u32,
}

/// Outcome of an attempt to claim a run.
#[derive(Debug)]
pub enum Claimed {
    /// The run belongs to this process.
    Ours(Claim),
    /// Another process works on the run.
    Theirs {
        /// Process number on its host.
        process: u32,
        /// Name of the host.
        host: String,
    },
}

fn beat(number: u32) -> String {
    format!("beat {number:010}\n")
}

/// Takes the claim at `path`, or names its owner.
pub(super) fn take(
    files: &Files,
    path: &Path,
    owner: Owner,
    number: u32,
) -> Result<Claimed, StoreError> {
    let identity = format!("owner {owner}\nhost {}\nclaim {number}\n", host());
    let text = beat(0) + &identity;
    loop {
        if let Some(found) = FoundClaim::read(path) {
            if !found.is_stale(files, path)? {
                return Ok(Claimed::Theirs {
                    process: found.owner.map_or(0, Owner::process),
                    host: found.host(),
                });
            }
            take_away(files, path, &found)?;
        }
        let temporary = files.prepare(path, text.as_bytes(), false)?;
        let linked = fs::hard_link(&temporary, path);
        remove(&temporary)?;
        match linked {
            Ok(()) => {
                return Ok(Claimed::Ours(Claim {
                    path: path.to_path_buf(),
                    identity,
                    beats: 0,
                }));
            }
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(error) => return Err(StoreError::io("claim a run with", path)(error)),
        }
    }
}

/// Removes a stale claim, unless another claim has replaced it.
fn take_away(files: &Files, path: &Path, stale: &FoundClaim) -> Result<(), StoreError> {
    let aside = files.beside(path);
    match fs::rename(path, &aside) {
        // Another process was faster.
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(StoreError::io("take over the claim", path)(error)),
        Ok(()) => {}
    }
    let is_same = FoundClaim::read(&aside).is_some_and(|taken| taken.identity == stale.identity);
    if !is_same {
        // If another process has claimed the run in between, it runs twice, with the same results.
        let _ = fs::hard_link(&aside, path);
    }
    remove(&aside)
}

/// A claim of any process.
struct FoundClaim {
    owner: Option<Owner>,
    identity: String,
}

impl FoundClaim {
    /// Claim at `path`; `None` if the file is gone.
    fn read(path: &Path) -> Option<Self> {
        let text = match fs::read(path) {
            Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
            Err(error) if error.kind() == ErrorKind::NotFound => return None,
            // Without content, only the age of the file counts.
            Err(_) => String::new(),
        };
        let identity = text.get(BEAT_LENGTH..).unwrap_or_default().to_owned();
        let owner = word(&identity, "owner ").and_then(Owner::read);
        Some(Self { owner, identity })
    }

    fn host(&self) -> String {
        word(&self.identity, "host ").unwrap_or("unknown").into()
    }

    fn is_stale(&self, files: &Files, path: &Path) -> Result<bool, StoreError> {
        if let Some(is_gone) = self.owner.and_then(Owner::is_gone) {
            return Ok(is_gone);
        }
        let Some(now) = files.time(path.parent().unwrap_or(Path::new("")))? else {
            return Ok(false);
        };
        let last = fs::metadata(path).and_then(|metadata| metadata.modified());
        let age = last.ok().and_then(|last| now.duration_since(last).ok());
        Ok(age.is_some_and(|age| age > STALE))
    }
}

fn word<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    text.lines().find_map(|line| line.strip_prefix(name))
}

/// Name of this machine, for messages.
fn host() -> String {
    let name = fs::read_to_string("/proc/sys/kernel/hostname").ok();
    let name = name.or_else(|| std::env::var("HOSTNAME").ok());
    name.map_or_else(|| "unknown".into(), |name| name.trim().to_owned())
}

impl Claim {
    /// Writes a heartbeat. False if another process has taken the claim as stale.
    pub fn beat(&mut self) -> bool {
        self.beats += 1;
        let is_ours =
            FoundClaim::read(&self.path).is_some_and(|found| found.identity == self.identity);
        // The next heartbeat makes up for a failed write.
        let file = File::options().write(true).open(&self.path);
        let _ = file.and_then(|mut file| {
            file.seek(SeekFrom::Start(0))?;
            file.write_all(beat(self.beats).as_bytes())
        });
        is_ours
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        let is_ours =
            FoundClaim::read(&self.path).is_some_and(|found| found.identity == self.identity);
        if is_ours {
            let _ = fs::remove_file(&self.path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clearway_testing::Folder;

    fn claim(folder: &Path, number: u32) -> Claimed {
        let files = Files::new(Owner::this());
        take(&files, &folder.join("x"), Owner::this(), number).unwrap()
    }

    /// Writes the claim of another owner.
    fn leave(folder: &Path, owner: &str) {
        let text = beat(7) + &format!("owner {owner}\nhost elsewhere\nclaim 3\n");
        fs::write(folder.join("x"), text).unwrap();
    }

    /// Sets the age of the claim.
    fn age(folder: &Path, age: Duration) {
        let file = File::options().write(true).open(folder.join("x")).unwrap();
        let now = file.metadata().unwrap().modified().unwrap();
        file.set_modified(now - age).unwrap();
    }

    fn is_ours(claimed: &Claimed) -> bool {
        matches!(claimed, Claimed::Ours(_))
    }

    #[test]
    fn a_run_has_one_claim_until_that_is_dropped() {
        let folder = Folder::new("sweep-claim");
        let first = claim(folder.path(), 0);
        assert!(is_ours(&first));
        let Claimed::Theirs { process, .. } = claim(folder.path(), 1) else {
            panic!("two claims of one run");
        };
        assert_eq!(process, std::process::id());
        drop(first);
        assert!(is_ours(&claim(folder.path(), 2)));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn the_claim_of_a_process_that_has_ended_is_taken_over_at_once() {
        let this = Owner::this().to_string();
        if this.starts_with("0000000000000000") {
            eprintln!("SKIPPED: without /proc nobody knows which processes have ended");
            return;
        }
        let (process, start) = this.rsplit_once('-').unwrap();
        let later = start.parse::<u64>().unwrap() + 1;
        let folder = Folder::new("sweep-claim-dead");
        leave(folder.path(), &format!("{process}-{later}"));
        assert!(is_ours(&claim(folder.path(), 0)));
    }

    #[test]
    fn the_claim_of_another_machine_is_taken_over_when_its_heartbeat_is_old() {
        let folder = Folder::new("sweep-claim-elsewhere");
        leave(folder.path(), "00000000000000ab-5-6");
        let Claimed::Theirs { process, host } = claim(folder.path(), 0) else {
            panic!("it lives");
        };
        assert_eq!((process, host.as_str()), (5, "elsewhere"));
        age(folder.path(), STALE - Duration::from_secs(30));
        assert!(!is_ours(&claim(folder.path(), 1)));
        age(folder.path(), STALE + Duration::from_secs(30));
        assert!(is_ours(&claim(folder.path(), 2)));
    }

    #[test]
    fn a_claim_that_was_made_anew_since_it_was_read_stays() {
        let folder = Folder::new("sweep-claim-anew");
        let (files, path) = (Files::new(Owner::this()), folder.join("x"));
        leave(folder.path(), "00000000000000ab-5-6");
        let stale = FoundClaim::read(&path).unwrap();
        // Another process removes the stale claim first, and claims the run.
        take_away(&files, &path, &stale).unwrap();
        let Claimed::Ours(mut other) = claim(folder.path(), 0) else {
            panic!("it is free");
        };
        take_away(&files, &path, &stale).unwrap();
        assert!(path.exists(), "the claim is put back");
        assert!(other.beat(), "it is that of its owner still");
        assert!(!is_ours(&claim(folder.path(), 1)));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_heartbeat_makes_a_claim_young_and_keeps_its_owner() {
        let folder = Folder::new("sweep-claim-beat");
        let Claimed::Ours(mut own) = claim(folder.path(), 0) else {
            panic!("it is free");
        };
        age(folder.path(), 2 * STALE);
        assert!(own.beat());
        let file = folder.path().join("x");
        let text = fs::read_to_string(&file).unwrap();
        assert!(text.starts_with("beat 0000000001\nowner "), "{text}");
        let fresh = Files::new(Owner::this())
            .time(folder.path())
            .unwrap()
            .unwrap();
        let last = fs::metadata(&file).unwrap().modified().unwrap();
        assert!(fresh.duration_since(last).unwrap_or_default() < STALE);
        leave(folder.path(), "00000000000000ab-5-6");
        assert!(!own.beat(), "somebody else took it");
        drop(own);
        assert!(file.exists(), "the claim of somebody else stays");
    }
}
