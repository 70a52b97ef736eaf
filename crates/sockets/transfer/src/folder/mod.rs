//! Folders that look files up by name only, and never follow a link.

#[cfg(unix)]
mod handles;
#[cfg(not(unix))]
mod paths;

#[cfg(unix)]
pub(crate) use handles::Folder;
#[cfg(not(unix))]
pub(crate) use paths::Folder;

/// Kind of an entry of a folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    File,
    Folder,
    Link,
    /// A device, a pipe, a socket.
    Other,
}

impl Kind {
    pub(crate) fn noun(self) -> &'static str {
        match self {
            Self::File => "a file",
            Self::Folder => "a folder",
            Self::Link => "a link",
            Self::Other => "a device, a pipe or a socket",
        }
    }
}
