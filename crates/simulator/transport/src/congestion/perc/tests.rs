//! Tests of s-PERC, weights and 1RC together.

mod fairness;
mod life_cycle;
mod prefix;
mod records;
mod recovery;
mod windows;

use super::*;
use clearway_units::{Bytes, Purpose, RandomStream, Rate, Span, Time};

/// Longer than any run of a test that is not about it.
const PERIOD: Span = Span::from_us(1_000_000);

/// A link that gives flows all its capacity, so that shares come out whole.
fn full_link(capacity: Rate, round: Span) -> LinkAgent {
    LinkAgent::new(
        1,
        &LinkParameters {
            headroom: 1.0,
            ..LinkParameters::new(capacity, round, PERIOD)
        },
    )
}

fn random(entity: u64) -> RandomStream {
    RandomStream::new(1, Purpose::Test, entity)
}
