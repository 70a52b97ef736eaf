//! Runs that end when whoever started them does.

use std::io::{ErrorKind, Read as _};

/// Ends the process when its standard input ends, even if that is because its writer was killed.
pub(crate) fn watch() {
    std::thread::spawn(|| {
        let mut input = std::io::stdin().lock();
        let mut part = [0; 64];
        loop {
            match input.read(&mut part) {
                Ok(0) => std::process::exit(130),
                Err(error) if error.kind() != ErrorKind::Interrupted => std::process::exit(130),
                _ => {}
            }
        }
    });
}
