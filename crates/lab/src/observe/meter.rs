//! Asking links to count.

use clearway_fabric::Observer;

/// An observer that sees nothing, but has links count what they carry.
#[derive(Debug, Clone, Copy, Default)]
pub struct Metering;

impl Observer for Metering {
    const METERS_LINKS: bool = true;
}
