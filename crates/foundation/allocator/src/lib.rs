//! Memory allocator that ends the program with a message and [`EXIT_CODE`] when memory runs out.
//!
//! Without this allocator a failed allocation aborts the process by SIGABRT, which a script cannot distinguish from a bug. Results are
//! first written under temporary names, so a file with a final name is never incomplete. The Linux kernel overcommits memory and may kill a
//! process instead; an allocation fails under a limit (`ulimit -v`) or strict overcommit.

use std::alloc::{GlobalAlloc, Layout, System};
use std::io::Write;

/// Exit code of a process that ran out of memory.
pub const EXIT_CODE: i32 = 4;

/// The system's allocator, which ends the process when memory runs out.
#[derive(Debug, Clone, Copy, Default)]
pub struct EndingAllocator;

// An allocator is an unsafe trait; this one forwards every call unchanged.
#[allow(unsafe_code)]
// SAFETY: all calls go to the system's allocator with the arguments of the caller, whose contract is the same.
unsafe impl GlobalAlloc for EndingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's contract is that of `System`.
        checked(unsafe { System.alloc(layout) }, layout.size())
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's contract is that of `System`.
        checked(unsafe { System.alloc_zeroed(layout) }, layout.size())
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the caller's contract is that of `System`.
        checked(unsafe { System.realloc(block, layout, size) }, size)
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: the caller's contract is that of `System`.
        unsafe { System.dealloc(block, layout) }
    }
}

#[inline]
fn checked(block: *mut u8, size: usize) -> *mut u8 {
    if block.is_null() {
        end(size);
    }
    block
}

/// Ends the process. Nothing here allocates.
#[cold]
fn end(size: usize) -> ! {
    let mut text = [0; 200];
    let room = text.len();
    let mut rest = &mut text[..];
    let written = write!(
        rest,
        "error: no memory left: {size} more bytes were needed\n  fix: run a smaller scenario or fewer at a time, or allow more memory (ulimit -v)\n"
    );
    let length = room - rest.len();
    if written.is_ok() {
        // If even the message cannot be written, the exit code remains.
        let _ = std::io::stderr().write_all(&text[..length]);
    }
    std::process::exit(EXIT_CODE);
}
