//! Functions of the WebAssembly module. All of them use one buffer for input and one for output; texts are UTF-8.
//!
//! A caller asks for room with `clearway_input`, writes its text there, calls a function, and reads `clearway_output_length` bytes at
//! `clearway_output`. `clearway_run` calls the import `clearway.progress` during the run.

#![allow(unsafe_code)]

use crate::playground::{self, BrowserLimits, PlaygroundProgress};
use std::sync::{Mutex, PoisonError};

static INPUT: Mutex<Vec<u8>> = Mutex::new(Vec::new());
static OUTPUT: Mutex<Vec<u8>> = Mutex::new(Vec::new());

#[link(wasm_import_module = "clearway")]
unsafe extern "C" {
    /// Called now and then during a run: share of the flows that are done, packet-hops, simulated time in microseconds. The run stops if it
    /// returns another number than zero.
    safe fn progress(share: f64, hops: f64, simulated_us: f64) -> u32;
}

fn input() -> String {
    let input = INPUT.lock().unwrap_or_else(PoisonError::into_inner);
    String::from_utf8_lossy(&input).into_owned()
}

fn answer(text: String) {
    *OUTPUT.lock().unwrap_or_else(PoisonError::into_inner) = text.into_bytes();
}

/// Room for an input of `length` bytes.
#[unsafe(no_mangle)]
pub extern "C" fn clearway_input(length: usize) -> *mut u8 {
    let mut input = INPUT.lock().unwrap_or_else(PoisonError::into_inner);
    *input = vec![0; length];
    input.as_mut_ptr()
}

/// The output of the last call.
#[unsafe(no_mangle)]
pub extern "C" fn clearway_output() -> *const u8 {
    let output = OUTPUT.lock().unwrap_or_else(PoisonError::into_inner);
    output.as_ptr()
}

/// Length of the output of the last call, in bytes.
#[unsafe(no_mangle)]
pub extern "C" fn clearway_output_length() -> usize {
    let output = OUTPUT.lock().unwrap_or_else(PoisonError::into_inner);
    output.len()
}

/// Version, built-in scenarios and transports; no input. Also prepares the module, so it is called first.
#[unsafe(no_mangle)]
pub extern "C" fn clearway_describe() {
    // A page shows the message of a defect, of which a module otherwise says nothing.
    std::panic::set_hook(Box::new(|panic| {
        let text = playground::defect(&panic.to_string());
        *OUTPUT.lock().unwrap_or_else(PoisonError::into_inner) = text.into_bytes();
    }));
    answer(playground::describe());
}

/// Checks the scenario in the input.
#[unsafe(no_mangle)]
pub extern "C" fn clearway_check() {
    answer(playground::check(&input()));
}

/// Runs the scenario in the input.
#[unsafe(no_mangle)]
pub extern "C" fn clearway_run() {
    let mut on_progress =
        |now: PlaygroundProgress| progress(now.share, now.hops as f64, now.simulated_us) == 0;
    answer(playground::run(
        &input(),
        BrowserLimits::DEFAULT,
        &mut on_progress,
    ));
}
