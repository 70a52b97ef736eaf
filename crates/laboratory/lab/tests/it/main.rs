//! Tests of scenarios from their text to what a run leaves. One program, so that they are linked once.

mod arithmetic;
mod bcube;
mod critical_path;
mod dragonflies;
mod fabrics;
mod files_of_others;
mod fluid;
mod jobs;
mod late_copies;
mod link_events;
mod long_cables;
mod mixed_transports;
mod nics;
mod planes;
mod progress;
mod rails;
mod routing;
mod scenario_fuzz;
mod scenarios;
mod sections;
mod stepped;
mod streaming;
mod traces;
mod traffic;
mod ultra_ethernet;
mod why;
