//! Limit of the unpacked size of a file.

use crate::{InputError, InputKind};
use std::io::{self, Read};

/// A reader that fails beyond the limit of its kind: a short packed file can have a long content.
#[derive(Debug)]
pub struct Limited<R> {
    reader: R,
    left: u64,
    kind: InputKind,
}

impl<R: Read> Limited<R> {
    /// Limits `reader`.
    ///
    /// # Errors
    /// If the limit in the environment is not a size.
    pub fn new(reader: R, kind: InputKind) -> Result<Self, InputError> {
        let left = kind.limit()?.as_u64();
        Ok(Self { reader, left, kind })
    }
}

impl<R: Read> Read for Limited<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.reader.read(buffer)?;
        match self.left.checked_sub(count as u64) {
            Some(left) => self.left = left,
            None => {
                let most = self.kind.limit().map_err(io::Error::other)?;
                let error = InputError::too_long(None, most, self.kind.name);
                return Err(io::Error::other(format!(
                    "{error}, unpacked; {}",
                    error.fix()
                )));
            }
        }
        Ok(count)
    }
}
