//! Tests of connections over UDP: hostile networks, strangers, loopback. One program, so that they are linked once.

mod dissector;
mod fuzz;
mod hostile;
#[cfg(feature = "net")]
mod loopback;
mod strangers;
