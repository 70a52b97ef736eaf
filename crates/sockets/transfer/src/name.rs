//! Names of files on the wire, and their validation.

use std::fmt;
use std::path::{Component, Path};

/// Longest name, in bytes.
pub(crate) const LONGEST_NAME: usize = 4096;
/// Longest part of a name between slashes, in bytes: the limit of common file systems.
const LONGEST_PART: usize = 255;
/// Most parts of a name.
const MOST_PARTS: usize = 64;
/// Folder of partial files, beside the complete files.
pub const PARTIAL_FOLDER: &str = ".clearway-partial";
/// Names of devices on Windows.
const DEVICES: [&str; 6] = ["con", "prn", "aux", "nul", "com", "lpt"];

/// Relative name of a file, with slashes between its parts. A name leads only below the folder in which it is looked up.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Name(String);

/// Fault of a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// An empty name, or an empty part: two slashes in a row, or a slash at the beginning or the end.
    #[error("a part of it is empty")]
    Empty,
    /// More bytes or parts than allowed.
    #[error(
        "it is longer than {LONGEST_NAME} bytes, {LONGEST_PART} in a part, or {MOST_PARTS} parts"
    )]
    Long,
    /// `.` or `..`.
    #[error("a part of it is `.` or `..`")]
    Dots,
    /// A control character, such as NUL or a line break.
    #[error("it has a control character")]
    Control,
    /// Part with a special meaning on this platform, such as a drive.
    #[error("a part of it is not a valid file name on this platform")]
    Platform,
    /// The folder of partial files.
    #[error("`{PARTIAL_FOLDER}` is where partial files are kept")]
    Reserved,
}

impl Name {
    /// Checks a name.
    ///
    /// # Errors
    /// If the text is not a valid name.
    pub fn new(text: &str) -> Result<Self, NameError> {
        if text.len() > LONGEST_NAME || text.split('/').count() > MOST_PARTS {
            return Err(NameError::Long);
        }
        text.split('/').try_for_each(check_part)?;
        if text
            .split('/')
            .next()
            .is_some_and(|part| part.eq_ignore_ascii_case(PARTIAL_FOLDER))
        {
            return Err(NameError::Reserved);
        }
        Ok(Self(text.to_owned()))
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Folders that contain the file, outermost first.
    pub fn folders(&self) -> impl Iterator<Item = &str> {
        let folders = self.0.rsplit_once('/').map(|(folders, _)| folders);
        folders.into_iter().flat_map(|folders| folders.split('/'))
    }

    /// Name of the file in its folder.
    pub fn file(&self) -> &str {
        self.0
            .rsplit_once('/')
            .map_or(self.as_str(), |(_, file)| file)
    }
}

fn check_part(part: &str) -> Result<(), NameError> {
    match part {
        "" => return Err(NameError::Empty),
        "." | ".." => return Err(NameError::Dots),
        _ if part.len() > LONGEST_PART => return Err(NameError::Long),
        _ if part.chars().any(char::is_control) => return Err(NameError::Control),
        _ => {}
    }
    let mut components = Path::new(part).components();
    let is_plain = matches!(components.next(), Some(Component::Normal(name)) if name == part);
    let is_plain = is_plain && components.next().is_none();
    match is_plain && !(cfg!(windows) && is_odd_on_windows(part)) {
        true => Ok(()),
        false => Err(NameError::Platform),
    }
}

/// True for a part that Windows interprets as a device or a stream, or shortens.
fn is_odd_on_windows(part: &str) -> bool {
    let stem = part
        .split('.')
        .next()
        .unwrap_or(part)
        .trim_end()
        .to_ascii_lowercase();
    let stem = stem.trim_end_matches(|last: char| last.is_ascii_digit());
    DEVICES.contains(&stem)
        || part.contains(['<', '>', ':', '"', '|', '?', '*', '\\'])
        || part.ends_with(['.', ' '])
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_folders_and_a_file() {
        let parts = |text| {
            let name = Name::new(text).unwrap();
            (
                name.folders().map(str::to_owned).collect::<Vec<_>>(),
                name.file().to_owned(),
            )
        };
        assert_eq!(parts("a"), (vec![], "a".into()));
        assert_eq!(
            parts("a/b c/..d"),
            (vec!["a".into(), "b c".into()], "..d".into())
        );
        assert!(Name::new(&"\u{e4}".repeat(127)).is_ok());
    }

    #[test]
    fn names_that_lead_elsewhere_are_none() {
        let cases = [
            ("", NameError::Empty),
            ("/etc/passwd", NameError::Empty),
            ("a//b", NameError::Empty),
            ("a/", NameError::Empty),
            ("..", NameError::Dots),
            ("a/../../b", NameError::Dots),
            ("./a", NameError::Dots),
            ("a\0b", NameError::Control),
            ("a\nb", NameError::Control),
            ("a/\u{1b}[2J", NameError::Control),
            (".clearway-partial/x", NameError::Reserved),
            (".Clearway-Partial", NameError::Reserved),
        ];
        for (text, fault) in cases {
            assert_eq!(Name::new(text), Err(fault), "{text:?}");
        }
        for text in [
            "x".repeat(256),
            "x/".repeat(64) + "x",
            "xxxxxxxxx/".repeat(500) + "x",
        ] {
            assert_eq!(Name::new(&text), Err(NameError::Long));
        }
    }

    #[test]
    fn devices_and_streams_of_windows_are_odd() {
        for part in ["NUL", "com1.txt", "a:b", "a.", "b ", "c\\d", "aux .x"] {
            assert!(is_odd_on_windows(part), "{part}");
        }
        for part in ["null", "company", "a.b", "nul-1"] {
            assert!(!is_odd_on_windows(part), "{part}");
        }
    }
}
