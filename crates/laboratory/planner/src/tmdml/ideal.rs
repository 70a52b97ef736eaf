//! Bounds that no rates can beat.

use clearway_units::{Bytes, Rate, Span};

/// The shortest time of an All-Reduce by scatter and gather among `servers`, each with one link of `rate`: in each stage a server sends `1
/// / servers` of the `model` to each other server, so `2 (N - 1) / N` of the model in total. Rounded up to a picosecond.
///
/// # Panics
/// If there are no servers.
pub fn ideal_all_reduce(servers: u32, model: Bytes, rate: Rate) -> Span {
    assert!(servers > 0, "an All-Reduce needs servers");
    let bits = 2 * 8 * u128::from(servers - 1) * u128::from(model.as_u64());
    let divisor = u128::from(servers) * u128::from(rate.as_bps());
    let ps = (bits * 1_000_000_000_000).div_ceil(divisor);
    Span::from_ps(u64::try_from(ps).unwrap_or(u64::MAX))
}

/// The shortest time in BCube(`ports`, 1): `ports²` servers, each with two links of `rate`, over which it also relays.
///
/// A flow to one of the `2 (n - 1)` servers that differ in one digit takes one link out of a server. A flow to one of the `(n - 1)²` other
/// servers takes two, the second out of the relay. That is `2 n (n - 1)` in total for each server, each of `1 / n²` of the model, shared by
/// two links: `(n - 1) / n` of the model per link and stage, the same as for `n` servers on one link each. Half of the doubled capacity is
/// lost to relaying.
///
/// # Panics
/// If switches have no ports.
pub fn ideal_bcube_all_reduce(ports: u32, model: Bytes, rate: Rate) -> Span {
    ideal_all_reduce(ports, model, rate)
}
