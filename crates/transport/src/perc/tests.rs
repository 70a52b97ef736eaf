//! Tests of s-PERC, weights and 1RC together.

mod fairness;
mod life_cycle;
mod prefix;
mod records;
mod windows;

use super::*;
use clearway_units::{Bytes, Purpose, RandomStream, Rate, Span, Time};

/// A link that gives flows all its capacity, so that shares come out whole.
fn full_link(capacity: Rate, round: Span) -> LinkAgent {
    LinkAgent::new(&LinkParameters {
        headroom: 1.0,
        ..LinkParameters::new(capacity, round)
    })
}

fn random(entity: u64) -> RandomStream {
    RandomStream::new(1, Purpose::Test, entity)
}
