//! What is printed on standard output.

use std::io::Write as _;

/// Prints `text`. A closed pipe (`| head`) is no failure.
pub(crate) fn print(text: &str) {
    let _ = std::io::stdout().lock().write_all(text.as_bytes());
}
