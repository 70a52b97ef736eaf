//! Messages on standard error.

use std::io::{self, Write};

/// Says `text` on standard error, in a line of its own. If that fails nobody is left to tell, and the run must go on.
pub(crate) fn say(text: &str) {
    let _ = writeln!(io::stderr().lock(), "{text}");
}

/// Warns on standard error.
pub(crate) fn warn(text: &str) {
    say(&format!("warning: {text}"));
}
