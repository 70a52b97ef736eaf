//! The program `clearway`.

use clearway::{Laboratory, main_with};
use std::process::ExitCode;

fn main() -> ExitCode {
    main_with(Laboratory::new())
}
