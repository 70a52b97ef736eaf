//! Files that may be packed with gzip.

use crate::text::Source;
use clearway_input::{InputKind, Limited};
use clearway_workload::FileError;
use flate2::read::{GzDecoder, MultiGzDecoder};
use std::io::{self, BufReader, Cursor, Read};

/// The first two bytes of a gzip file.
pub(crate) const PACKED: [u8; 2] = [0x1f, 0x8b];

/// The content of a trace, unpacked if it is packed, up to the limit of traces. The inner error is about reading the first bytes.
///
/// # Errors
/// If the limit in the environment is not a size.
pub(crate) fn unpacked<'a>(
    source: Source<'_>,
    reader: impl Read + 'a,
) -> Result<io::Result<Box<dyn Read + 'a>>, FileError> {
    let mut reader = BufReader::new(reader);
    let mut head = Vec::new();
    if let Err(error) = reader.by_ref().take(2).read_to_end(&mut head) {
        return Ok(Err(error));
    }
    let is_packed = head == PACKED;
    let whole = Cursor::new(head).chain(reader);
    if !is_packed {
        return Ok(Ok(Box::new(whole)));
    }
    let content = Limited::new(MultiGzDecoder::new(whole), InputKind::TRACE)
        .map_err(|error| source.fault(0, None, error.to_string()).fix(error.fix()))?;
    Ok(Ok(Box::new(BufReader::new(content))))
}

/// At most `most` bytes of the beginning of a packed file of which `head` is known; nothing if `head` is not packed.
pub(crate) fn beginning_of_packed(head: &[u8], most: usize) -> Vec<u8> {
    let mut content = Vec::new();
    if head.starts_with(&PACKED) {
        // The head ends anywhere in the packed data, so the reader fails at its end.
        let _ = GzDecoder::new(head)
            .take(most as u64)
            .read_to_end(&mut content);
    }
    content
}
