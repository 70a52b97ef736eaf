//! Messages on standard error.

use std::io::{self, Write};

/// Prints `text` on standard error, as a separate line. A write error is ignored: it cannot be reported, and the run must continue.
pub(crate) fn say(text: &str) {
    let _ = writeln!(io::stderr().lock(), "{text}");
}

/// Warns on standard error.
pub(crate) fn warn(text: &str) {
    say(&format!("warning: {text}"));
}
