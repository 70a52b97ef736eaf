//! The files of a trace.

use crate::chakra::{prefix_of, rank_files};
use crate::pytorch::{PytorchFile, pytorch_files};
use crate::{TraceFormat, head};
use std::path::{Path, PathBuf};

/// The files of the trace that `path` names: those of all ranks if it is the prefix of Chakra's files, one of them, or a file or the folder
/// of PyTorch's traces. Otherwise it is `path`, which need not exist.
pub fn trace_files(path: &Path) -> Vec<PathBuf> {
    let format = path.is_file().then(|| head(path).ok());
    let format = format.map(|head| head.and_then(|head| TraceFormat::detect(&head)));
    if path.is_dir() || format == Some(Some(TraceFormat::Pytorch)) {
        let files = pytorch_files(path).unwrap_or_default();
        return match files.is_empty() {
            true => vec![path.to_owned()],
            false => files
                .into_iter()
                .map(|PytorchFile { path, .. }| path)
                .collect(),
        };
    }
    let prefix = match format {
        // A Chakra trace without a version is known by its name.
        Some(None | Some(TraceFormat::Chakra)) => prefix_of(path),
        Some(Some(_)) => None,
        None => Some(path.to_owned()),
    };
    let files = prefix.and_then(|prefix| rank_files(&prefix).ok());
    match files {
        Some(files) if !files.is_empty() => files.into_values().collect(),
        _ => vec![path.to_owned()],
    }
}
