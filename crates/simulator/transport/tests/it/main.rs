//! Tests of transports: small models written apart, recorded runs, hostile packets, skipped packets. One program, so that they are linked
//! once.

mod hostile;
mod models;
mod recorded;
mod skips;
