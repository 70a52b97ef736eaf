//! The C interface: a simulated network that another program drives.
//!
//! ```text
//! C program ── post(message), schedule(callback) ──► simulation ── run_until(t) ──► callbacks: received, acknowledged, time
//! ```
//!
//! The header is `include/clearway.h`, written by cbindgen from [`interface`]. `examples/ring.c` is a complete program; the chapter "C and
//! C++" of the book explains the interface.
//!
//! * [`interface`] has the functions. It alone reads pointers of the caller.
//! * `registry` maps handles to simulations. A handle is a number in the form of a pointer; it is never dereferenced, and no number comes
//!   twice. So a handle that was destroyed, or that never was one, is an error and not undefined behaviour.
//! * `simulation` delivers events and timers to callbacks, in a documented order.
//!
//! **Architecture invariants:** no panic leaves the crate; no lock is held while a callback runs; no terminal and no process exit.

mod fault;
pub mod interface;
mod registry;
mod simulation;
