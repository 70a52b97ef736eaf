//! The playground: the simulator in a browser, without an installation and without a server.
//!
//! ```text
//! page ──► worker ──► exports (WebAssembly) ──► playground ──► laboratory, runs, report
//! ```
//!
//! * [`playground`] describes, checks and runs scenarios: text in, JSON out. It is the same code as in the program, with the same errors
//!   and the same digests, on one thread and without files.
//! * `exports` has the functions that a WebAssembly module exports. It exists on `wasm32` alone.
//! * [`page`] builds the page: one HTML file that contains the module. It exists elsewhere.
//!
//! A run has [limits](playground::BrowserLimits), because text from a link may ask for anything. The browser ends a worker that takes too
//! long.

#[cfg(target_family = "wasm")]
pub mod exports;
#[cfg(not(target_family = "wasm"))]
pub mod page;
pub mod playground;
