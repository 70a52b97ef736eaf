//! Groups of switches, and the way from one to another (dragonflies).

clearway_units::choices! {
    /// Rule by which packets go from their sender's group to their receiver's group.
    pub enum GroupRouting {
        /// Directly: over as few links between groups as possible, then over as few within groups.
        Minimal = "minimal",
        /// By way of a third group, which the switch of the sender draws for each packet (Valiant's algorithm).
        Valiant = "valiant",
        /// Directly, or by way of a third group where less waits that way (UGAL-L): the switch of the sender weighs, for each packet, its
        /// own queues towards both, each times the links of the way.
        Ugal = "ugal",
    }
}

/// Groups of switches. Links between groups are scarce: routes take as few of them as possible.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SwitchGroups {
    /// Group of each switch.
    pub of_switch: Vec<u16>,
    /// Number of groups.
    pub count: u16,
    /// Rule by which packets go from one to another.
    pub routing: GroupRouting,
}

impl SwitchGroups {
    /// Groups that a packet can carry the number of: a byte, of which one value is none.
    pub const MOST_DETOURS: u16 = 254;

    /// True if packets from one group to another go by way of a third, or may.
    pub fn has_detours(&self) -> bool {
        self.routing != GroupRouting::Minimal && self.count > 2
    }

    /// Groups other than two, by way of which packets may go.
    pub fn others(&self, from: u16, to: u16) -> impl Iterator<Item = u16> + use<> {
        (0..self.count).filter(move |group| ![from, to].contains(group))
    }
}
