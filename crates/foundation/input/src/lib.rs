//! Reading of the user's files: scenarios, plans, traffic, topologies, traces and results.
//!
//! * Only regular files are opened. Devices and pipes may have no end or no writer, so a read would fill the memory or hang.
//! * Each kind of file has a limit, the [`InputKind`]. The variable [`LIMIT_VARIABLE`] of the environment replaces all of them.
//! * The name [`STANDARD_INPUT`] stands for standard input where a reader offers it.
//!
//! **Architecture Invariant:** every reader of a file that a user names goes through this crate.

mod error;
mod kind;
mod limited;

pub use error::{InputError, LIMIT_VARIABLE};
pub use kind::InputKind;
pub use limited::Limited;

use std::fs::{File, Metadata};
use std::io::Read;
use std::path::Path;
use std::sync::OnceLock;

/// Name of standard input, where a reader offers it.
pub const STANDARD_INPUT: &str = "-";

/// Opens the regular file at `path`.
///
/// # Errors
/// If it is not a regular file, is longer than the limit of its kind, or cannot be opened.
pub fn open(path: &Path, kind: InputKind) -> Result<File, InputError> {
    // Opening a named pipe waits for its writer, so the check comes first.
    check(&std::fs::metadata(path)?, kind)?;
    let file = File::open(path)?;
    // Another file may have taken the name in between.
    check(&file.metadata()?, kind)?;
    Ok(file)
}

/// Bytes of the regular file at `path`.
///
/// # Errors
/// As [`open`], and if the file grows beyond the limit during the read.
pub fn read(path: &Path, kind: InputKind) -> Result<Vec<u8>, InputError> {
    read_all(open(path, kind)?, kind)
}

/// Text of the regular file at `path`.
///
/// # Errors
/// As [`read`], and if the bytes are not UTF-8.
pub fn read_text(path: &Path, kind: InputKind) -> Result<String, InputError> {
    text_of(read(path, kind)?)
}

/// Text of the file called `name`, or of standard input if `name` is [`STANDARD_INPUT`].
///
/// The process reads standard input once; further readers get the same text.
///
/// # Errors
/// As [`read_text`].
pub fn read_text_or_standard_input(name: &str, kind: InputKind) -> Result<String, InputError> {
    static TEXT: OnceLock<Vec<u8>> = OnceLock::new();
    if name != STANDARD_INPUT {
        return read_text(Path::new(name), kind);
    }
    let bytes = match TEXT.get() {
        Some(bytes) => bytes.clone(),
        None => {
            let bytes = read_all(std::io::stdin().lock(), kind)?;
            TEXT.get_or_init(|| bytes).clone()
        }
    };
    text_of(bytes)
}

fn read_all(reader: impl Read, kind: InputKind) -> Result<Vec<u8>, InputError> {
    let most = kind.limit()?;
    let mut bytes = Vec::new();
    reader
        .take(most.as_u64().saturating_add(1))
        .read_to_end(&mut bytes)?;
    match bytes.len() as u64 > most.as_u64() {
        true => Err(InputError::too_long(None, most, kind.name)),
        false => Ok(bytes),
    }
}

fn text_of(bytes: Vec<u8>) -> Result<String, InputError> {
    String::from_utf8(bytes).map_err(|error| {
        let good = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line = 1 + good.iter().filter(|&&byte| byte == b'\n').count();
        InputError::NotText { line }
    })
}

fn check(metadata: &Metadata, kind: InputKind) -> Result<(), InputError> {
    if !metadata.is_file() {
        return Err(InputError::NotAFile {
            what: type_of(metadata),
        });
    }
    let most = kind.limit()?;
    match metadata.len() > most.as_u64() {
        true => Err(InputError::too_long(Some(metadata.len()), most, kind.name)),
        false => Ok(()),
    }
}

#[cfg(unix)]
fn type_of(metadata: &Metadata) -> &'static str {
    use std::os::unix::fs::FileTypeExt as _;
    let kind = metadata.file_type();
    match () {
        () if kind.is_dir() => "a folder",
        () if kind.is_fifo() => "a pipe",
        () if kind.is_socket() => "a socket",
        () if kind.is_char_device() || kind.is_block_device() => "a device",
        () => "no regular file",
    }
}

#[cfg(not(unix))]
fn type_of(metadata: &Metadata) -> &'static str {
    match metadata.is_dir() {
        true => "a folder",
        false => "no regular file",
    }
}

#[cfg(test)]
mod tests;
