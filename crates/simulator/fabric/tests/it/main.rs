//! Tests of whole fabrics: closed forms, conservation, and the oracle, a second simulator. One program, so that they are linked once.

mod allocation;
mod arithmetic;
mod common;
mod conservation;
mod ideal;
mod lossless;
mod misbehaving_nic;
mod oracle;
mod programs;
mod set_up;
mod steady_state;
mod telemetry;
mod topologies;
mod traced_routes;
mod traffic;
