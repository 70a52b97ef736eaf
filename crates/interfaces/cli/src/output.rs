//! Text on standard output.

use crate::failure::Failure;
use std::io::{self, ErrorKind, Write};

/// Prints `text` on standard output. A closed pipe (`| head`) is not a failure; a full disk is.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    print_to(io::stdout().lock(), text)
}

fn print_to(mut output: impl Write, text: &str) -> Result<(), Failure> {
    let written = output.write_all(text.as_bytes());
    match written.and_then(|()| output.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(Failure::new(format!(
            "cannot write to standard output: {error}\n  fix: print to a terminal, or to a file on a disk with room"
        ))),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Writer that always fails with this kind of error.
    struct Broken(ErrorKind);

    impl Write for Broken {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(self.0.into())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_closed_pipe_is_no_failure_and_a_full_disk_is() {
        assert!(print_to(Broken(ErrorKind::BrokenPipe), "x").is_ok());
        assert!(print_to(Broken(ErrorKind::StorageFull), "x").is_err());
        // The writer fails only when the buffer is flushed.
        assert!(print_to(io::LineWriter::new(Broken(ErrorKind::StorageFull)), "x").is_err());
    }
}
