//! Length of a path in one direction: delays, serialisation and the slowest link.

use super::{LinkId, Topology};
use clearway_units::{Rate, Span};

/// The length of a path in one direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct PathClass {
    /// Links.
    pub hops: u32,
    /// Sum of delays, latencies of switches included.
    pub propagation: Span,
    /// Femtoseconds that each byte of a lone packet spends in serialisation, summed over the links (store and forward).
    pub fs_per_byte: u64,
    /// The slowest link, if there is any; the last one of several.
    pub bottleneck: Option<Rate>,
    /// Part of `fs_per_byte` on the links before the slowest one.
    pub before_bottleneck: u64,
    /// Part of `fs_per_byte` on the last link.
    pub last: u64,
}

/// Serialisation time of a byte at `rate` in femtoseconds, rounded down: at 2.88 Tb/s a whole number of picoseconds would be 8 % off.
pub(super) fn fs_per_byte(rate: Rate) -> u64 {
    8_000_000_000_000_000 / rate.as_bps()
}

fn whole_ps(femtoseconds: u64) -> Span {
    Span::from_ps(femtoseconds / 1000)
}

impl PathClass {
    /// The path of one link.
    pub(super) fn of_link(topology: &Topology, link: LinkId) -> Self {
        let rate = topology.cables[link.cable()].rate;
        let fs_per_byte = fs_per_byte(rate);
        Self {
            hops: 1,
            propagation: topology.link_delay(link),
            fs_per_byte,
            bottleneck: Some(rate),
            before_bottleneck: 0,
            last: fs_per_byte,
        }
    }

    /// Concatenation of this path and then `other`.
    pub fn then(self, other: Self) -> Self {
        let before_bottleneck = match (self.bottleneck, other.bottleneck) {
            (Some(a), Some(b)) if a < b => self.before_bottleneck,
            (_, Some(_)) => self.fs_per_byte + other.before_bottleneck,
            (_, None) => self.before_bottleneck,
        };
        Self {
            hops: self.hops + other.hops,
            propagation: self.propagation + other.propagation,
            fs_per_byte: self.fs_per_byte + other.fs_per_byte,
            bottleneck: match (self.bottleneck, other.bottleneck) {
                (Some(a), Some(b)) => Some(a.min(b)),
                (a, b) => a.or(b),
            },
            before_bottleneck,
            last: if other.hops > 0 {
                other.last
            } else {
                self.last
            },
        }
    }

    /// The longer of two paths for a packet of 1000 bytes.
    pub(super) fn longer(self, other: Self) -> Self {
        if other.span_of(1000) > self.span_of(1000) {
            other
        } else {
            self
        }
    }

    /// The time of a lone packet of `bytes` over the path.
    pub fn span_of(self, bytes: u32) -> Span {
        self.propagation + whole_ps(self.fs_per_byte * u64::from(bytes))
    }
}
