//! Plans for the traffic of training jobs, computed instead of simulated.
//!
//! * [`compatibility`]: rotations, priorities and placements with which training jobs share links without slowing each other down.
//! * [`tmdml`]: the rates that make the slowest flow of a parameter synchronisation finish first, and the time that it then takes.
//!
//! **Architecture Invariant:** nothing here knows of packets, transports or a simulation. A plan is a pure function of its input; floats
//! see only `+ - * /` and `sqrt`, so that it is the same on any machine.

pub mod compatibility;
pub mod tmdml;
