//! The receiver's disk: partial files, their records, and files in their places.
//!
//! The store writes a file under another name in the folder of partial files, with its [record](crate::record) beside it. The file gets its
//! final name once it is complete and written to the disk. An existing file with this name is compared, and never written to.

use crate::blocks::{BlockLayout, ContentHash, DIGEST};
use crate::folder::{Folder, Kind};
use crate::name::{Name, PARTIAL_FOLDER};
use crate::positioned_io::{read_exact_at, write_all_at};
use crate::reason::{Reason, ReasonKind};
use crate::receiving::{Job, Outcome, Receiving};
use crate::record::{LONGEST_RECORD, Record};
use crate::transfer_side::Disk;
use crate::wire::{FileMetadata, Offer};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

/// Attempts to open the folder of partial files, which other transfers remove while it is empty.
const ATTEMPTS: u32 = 8;

/// Hexadecimal digits in the name of a partial file.
const KEY: usize = 32;

/// Folder of a receiver, for one transfer.
#[derive(Debug)]
pub struct ReceiveStore {
    root: Arc<Folder>,
    overwrite: bool,
    open: Mutex<BTreeMap<u32, Arc<Open>>>,
}

/// An open file.
#[derive(Debug)]
struct Open {
    data: File,
    name: Name,
    geometry: BlockLayout,
    facts: FileMetadata,
    /// None if the file is in its place, and is only compared.
    partial: Option<Partial>,
}

/// Place of a partial file.
#[derive(Debug)]
struct Partial {
    folder: Folder,
    key: String,
    record: Mutex<File>,
}

fn write_failed(error: &io::Error) -> Reason {
    Reason::new(ReasonKind::Write, &error.to_string())
}

impl ReceiveStore {
    /// Opens a folder and [tidies](Self::tidy) it. Replaces existing files only if `overwrite` is set.
    ///
    /// # Errors
    /// If the folder does not exist.
    pub fn open(folder: &Path, overwrite: bool) -> io::Result<Self> {
        let store = Self::in_folder(Arc::new(Folder::open(folder)?), overwrite);
        store.tidy();
        Ok(store)
    }

    fn in_folder(root: Arc<Folder>, overwrite: bool) -> Self {
        Self {
            root,
            overwrite,
            open: Mutex::default(),
        }
    }

    /// The same folder for another transfer.
    pub fn another(&self) -> Self {
        Self::in_folder(Arc::clone(&self.root), self.overwrite)
    }

    /// Removes records of files that are in their places, which a process leaves if it is killed between two steps. Then removes the folder
    /// of partial files if it is empty.
    pub fn tidy(&self) {
        if let Ok(folder) = self.root.folder(PARTIAL_FOLDER) {
            remove_orphans(&folder);
        }
        // The folder is not empty while a file can be resumed.
        let _ = self.root.remove_folder(PARTIAL_FOLDER);
    }

    fn files(&self) -> MutexGuard<'_, BTreeMap<u32, Arc<Open>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn find(&self, file: u32) -> Option<Arc<Open>> {
        self.files().get(&file).cloned()
    }

    fn begin(&self, name: Name, offer: &Offer) -> Result<(Vec<u32>, bool), Reason> {
        let (open, kept, changed) = match self.existing(&name, offer)? {
            Some(open) => (open, (0..offer.geometry.blocks()).collect(), false),
            None => self.partial(name, offer)?,
        };
        self.files().insert(offer.file, Arc::new(open));
        Ok((kept, changed))
    }

    /// The existing file with this name, if it could be the same file.
    fn existing(&self, name: &Name, offer: &Offer) -> Result<Option<Open>, Reason> {
        let mut below: Option<Folder> = None;
        for part in name.folders() {
            let folder = below.as_ref().unwrap_or(&self.root);
            match folder.kind(part).map_err(|error| write_failed(&error))? {
                None => return Ok(None),
                Some(Kind::Folder) => {}
                Some(kind) => return Err(in_the_way(part, kind)),
            }
            below = Some(folder.folder(part).map_err(|error| write_failed(&error))?);
        }
        let folder = below.as_ref().unwrap_or(&self.root);
        match folder
            .kind(name.file())
            .map_err(|error| write_failed(&error))?
        {
            None => return Ok(None),
            Some(Kind::File) if self.overwrite => return Ok(None),
            Some(Kind::File) => {}
            Some(kind) => return Err(in_the_way(name.file(), kind)),
        }
        let exists = |detail: &str| Reason::new(ReasonKind::Exists, detail);
        let data = folder
            .read(name.file())
            .map_err(|error| exists(&error.to_string()))?;
        let found = data
            .metadata()
            .map_err(|error| exists(&error.to_string()))?;
        if found.len() != offer.geometry.size() {
            return Err(exists("its size is another"));
        }
        Ok(Some(Open {
            data,
            name: name.clone(),
            geometry: offer.geometry,
            facts: offer.facts(),
            partial: None,
        }))
    }

    /// The partial file of a name, its recorded blocks, and whether they come from a file with another size or time.
    fn partial(&self, name: Name, offer: &Offer) -> Result<(Open, Vec<u32>, bool), Reason> {
        let key = key(&name);
        let (folder, data) = self.open_partial(&key)?;
        let failed = |error: io::Error| write_failed(&error);
        let known = read_record(&folder, &key).map_err(failed)?;
        let known = known.filter(|known| known.name == name.as_str());
        let facts = offer.facts();
        let changed = known.as_ref().is_some_and(|known| known.facts != facts);
        let same_blocks = known.filter(|known| known.block == offer.geometry.block());
        let mut kept = same_blocks.map_or(Vec::new(), |known| known.blocks);
        kept.retain(|block| *block < offer.geometry.blocks());
        let length = data.metadata().map_err(failed)?.len();
        if length > offer.geometry.size() {
            data.set_len(offer.geometry.size()).map_err(failed)?;
        }
        let record = Record {
            name: name.to_string(),
            facts,
            block: offer.geometry.block(),
            blocks: kept.clone(),
        };
        let record = write_record(&folder, &key, &record).map_err(failed)?;
        let partial = Partial {
            folder,
            key,
            record: Mutex::new(record),
        };
        let open = Open {
            data,
            name,
            geometry: offer.geometry,
            facts,
            partial: Some(partial),
        };
        Ok((open, kept, changed))
    }

    /// Opens a partial file that no other transfer holds.
    fn open_partial(&self, key: &str) -> Result<(Folder, File), Reason> {
        let name = data_name(key);
        for attempt in 1.. {
            let opened = self.root.make_folder(PARTIAL_FOLDER);
            let opened = opened.and_then(|()| self.root.folder(PARTIAL_FOLDER));
            let opened = opened.and_then(|folder| Ok((folder.file(&name)?, folder)));
            let (data, folder) = match opened {
                Err(error) if error.kind() == ErrorKind::NotFound && attempt < ATTEMPTS => continue,
                Err(error) => {
                    let detail = format!("{PARTIAL_FOLDER}: {error}");
                    return Err(Reason::new(ReasonKind::Write, &detail));
                }
                Ok(opened) => opened,
            };
            let failed = |error: io::Error| write_failed(&error);
            if !data.metadata().map_err(failed)?.is_file() {
                return Err(in_the_way(&name, Kind::Other));
            }
            if !Folder::lock(&data).map_err(failed)? {
                return Err(Reason::new(ReasonKind::Busy, ""));
            }
            // Another transfer may have moved the file to its place in the meantime; then it no longer belongs to this transfer.
            if folder.has(&name, &data).map_err(failed)? {
                if !Folder::is_shared(&data).map_err(failed)? {
                    return Ok((folder, data));
                }
                // A file moved to its place just before a power failure must not be written to.
                remove_partial(&folder, key);
            }
            if attempt >= ATTEMPTS {
                break;
            }
        }
        Err(Reason::new(ReasonKind::Busy, ""))
    }

    /// Removes the partial file that is a second name of a file in its place, which a power failure between two steps can leave.
    fn forget_second_name(&self, open: &Open) {
        let key = key(&open.name);
        if let Ok(folder) = self.root.folder(PARTIAL_FOLDER)
            && let Ok(true) = folder.has(&data_name(&key), &open.data)
        {
            remove_partial(&folder, &key);
        }
    }

    /// The final folder of a file.
    fn target(&self, name: &Name) -> io::Result<Option<Folder>> {
        let mut below: Option<Folder> = None;
        for part in name.folders() {
            let folder = below.as_ref().unwrap_or(&self.root);
            folder.make_folder(part)?;
            below = Some(folder.folder(part)?);
        }
        Ok(below)
    }

    fn publish(
        &self,
        file: u32,
        digests: &[ContentHash],
        digest: ContentHash,
    ) -> Result<(), Reason> {
        let closed = || Reason::new(ReasonKind::Other, "");
        let open = self.find(file).ok_or_else(closed)?;
        let is_same = ContentHash::of_file(open.geometry, digests) == digest;
        let Some(partial) = &open.partial else {
            let differs = || Reason::new(ReasonKind::Exists, "its content is another");
            is_same.then_some(()).ok_or_else(differs)?;
            self.forget_second_name(&open);
            return Ok(());
        };
        if !is_same {
            // Nobody can tell which block is wrong.
            remove_partial(&partial.folder, &partial.key);
            return Err(Reason::new(ReasonKind::Content, ""));
        }
        open.complete().map_err(|error| write_failed(&error))?;
        let target = self
            .target(&open.name)
            .map_err(|error| match error.kind() {
                ErrorKind::NotADirectory => Reason::new(ReasonKind::InTheWay, &error.to_string()),
                _ => write_failed(&error),
            })?;
        let target = target.as_ref().unwrap_or(&self.root);
        let data = data_name(&partial.key);
        let moved = partial
            .folder
            .rename(&data, target, open.name.file(), self.overwrite);
        moved.map_err(|error| match error.kind() {
            ErrorKind::AlreadyExists => Reason::new(ReasonKind::Exists, ""),
            _ => write_failed(&error),
        })?;
        // If the record stays, the next opening of the folder removes it.
        let _ = partial.folder.remove(&record_name(&partial.key));
        target.sync().map_err(|error| write_failed(&error))
    }
}

impl Open {
    /// Digest of a block on the disk; zeros if the block cannot be read.
    fn check(&self, block: u32) -> ContentHash {
        let Some((offset, length)) = self.geometry.place(block) else {
            return ContentHash::default();
        };
        let mut content = vec![0; length];
        match read_exact_at(&self.data, &mut content, offset) {
            Ok(()) => ContentHash::of_block(&content),
            Err(_) => ContentHash::default(),
        }
    }

    fn write(&self, block: u32, content: &[u8]) -> Result<Option<ContentHash>, Reason> {
        let Some(partial) = &self.partial else {
            return Err(Reason::new(ReasonKind::Exists, "its content is another"));
        };
        let (told, content) = content.split_at_checked(DIGEST).unwrap_or_default();
        let digest = ContentHash::of_block(content);
        if digest.0 != *told {
            return Ok(None);
        }
        let offset = self.geometry.place(block).map_or(0, |(offset, _)| offset);
        let written = write_all_at(&self.data, content, offset).and_then(|()| partial.note(block));
        written
            .map(|()| Some(digest))
            .map_err(|error| write_failed(&error))
    }

    /// Sets the file's size, time and kind, and writes the file to the disk.
    fn complete(&self) -> io::Result<()> {
        self.data.set_len(self.facts.size)?;
        self.data.set_modified(system_time(self.facts.modified))?;
        #[cfg(unix)]
        if self.facts.executable {
            use std::os::unix::fs::PermissionsExt as _;
            let mut permissions = self.data.metadata()?.permissions();
            let mode = permissions.mode();
            // Executable for everybody who can read the file.
            permissions.set_mode(mode | (mode & 0o444) >> 2);
            self.data.set_permissions(permissions)?;
        }
        self.data.sync_all()
    }
}

impl Partial {
    /// Records a written block.
    fn note(&self, block: u32) -> io::Result<()> {
        let mut record = self.record.lock().unwrap_or_else(PoisonError::into_inner);
        record.write_all(&block.to_be_bytes())
    }
}

/// Name of a partial file, without its kind.
fn key(name: &Name) -> String {
    let mut key = format!("{:?}", ContentHash::of_block(name.as_str().as_bytes()));
    key.truncate(KEY);
    key
}

fn data_name(key: &str) -> String {
    format!("{key}.data")
}

fn record_name(key: &str) -> String {
    format!("{key}.record")
}

fn remove_partial(folder: &Folder, key: &str) {
    for name in [data_name(key), record_name(key)] {
        // A remaining file is compared again later.
        let _ = folder.remove(&name);
    }
}

/// Removes records without a partial file. A record that cannot be removed is harmless.
fn remove_orphans(folder: &Folder) {
    let is_key =
        |text: &&str| text.len() == KEY && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    for name in folder.names().unwrap_or_default() {
        let key = name.rsplit_once('.').and_then(|(key, kind)| match kind {
            "record" | "aside" => Some(key),
            _ => None,
        });
        if let Some(key) = key.filter(is_key)
            && let Ok(None) = folder.kind(&data_name(key))
            && let Ok(Some(Kind::File)) = folder.kind(&name)
        {
            let _ = remove_orphan(folder, key);
        }
    }
}

/// Removes a record without a partial file. Another process may begin the partial file in the meantime and replace the record. So this
/// function moves the record aside first, and back if the partial file exists by then.
fn remove_orphan(folder: &Folder, key: &str) -> io::Result<()> {
    let (record, aside) = (record_name(key), format!("{key}.aside"));
    match folder.rename(&record, folder, &aside, true) {
        // A process that was then killed has moved the record aside before.
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        moved => moved?,
    }
    if folder.kind(&data_name(key))?.is_none() {
        return folder.remove(&aside);
    }
    match folder.rename(&aside, folder, &record, false) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => folder.remove(&aside),
        moved => moved,
    }
}

fn in_the_way(name: &str, kind: Kind) -> Reason {
    Reason::new(
        ReasonKind::InTheWay,
        &format!("`{name}` is {}", kind.noun()),
    )
}

fn system_time((seconds, nanos): (i64, u32)) -> SystemTime {
    let whole = Duration::from_secs(seconds.unsigned_abs());
    let time = match seconds >= 0 {
        true => SystemTime::UNIX_EPOCH.checked_add(whole),
        false => SystemTime::UNIX_EPOCH.checked_sub(whole),
    };
    let time = time.and_then(|time| time.checked_add(Duration::from_nanos(nanos.into())));
    time.unwrap_or(SystemTime::UNIX_EPOCH)
}

fn read_record(folder: &Folder, key: &str) -> io::Result<Option<Record>> {
    let file = match folder.read(&record_name(key)) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    if !file.metadata()?.is_file() {
        return Ok(None);
    }
    let mut bytes = Vec::new();
    file.take(LONGEST_RECORD).read_to_end(&mut bytes)?;
    Ok(Record::decode(&bytes))
}

/// Replaces a record. Returns the file, to which blocks are appended.
fn write_record(folder: &Folder, key: &str, record: &Record) -> io::Result<File> {
    let (new, name) = (format!("{key}.new"), record_name(key));
    let mut file = folder.file(&new)?;
    file.set_len(0)?;
    file.write_all(&record.encode())?;
    folder.rename(&new, folder, &name, true)?;
    Ok(file)
}

impl Disk<Receiving> for ReceiveStore {
    fn run(&self, job: Job) -> Outcome {
        match job {
            Job::Begin { name, offer } => Outcome::Begun {
                file: offer.file,
                result: self.begin(name, &offer),
            },
            Job::Check { file, blocks } => {
                let open = self.find(file);
                let digest = |block| {
                    open.as_ref()
                        .map_or(ContentHash::default(), |open| open.check(block))
                };
                Outcome::Checked {
                    file,
                    blocks: blocks
                        .into_iter()
                        .map(|block| (block, digest(block)))
                        .collect(),
                }
            }
            Job::Write {
                file,
                block,
                content,
            } => {
                let closed = || Reason::new(ReasonKind::Other, "");
                let open = self.find(file).ok_or_else(closed);
                Outcome::Written {
                    file,
                    block,
                    length: content.len(),
                    result: open.and_then(|open| open.write(block, &content)),
                }
            }
            Job::Publish {
                file,
                digests,
                digest,
            } => Outcome::Published {
                file,
                result: self.publish(file, &digests, digest),
            },
            Job::Forget(file) => {
                self.files().remove(&file);
                Outcome::Forgotten(file)
            }
        }
    }
}
