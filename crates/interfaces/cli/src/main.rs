//! The program `clearway`.

use clearway::{Laboratory, main_with};
use clearway_allocator::EndingAllocator;
use std::process::ExitCode;

/// Allocator that ends the program with a message if memory is exhausted.
#[global_allocator]
static ALLOCATOR: EndingAllocator = EndingAllocator;

fn main() -> ExitCode {
    main_with(Laboratory::new())
}
