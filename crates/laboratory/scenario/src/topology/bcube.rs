//! BCube, as in TMDML.

use crate::error::ScenarioError;
use crate::limits::check_hosts;
use crate::nics::NicChoice;
use crate::topology::error::topology_error;
use clearway_fabric::topology::{Topology, bcube};
use clearway_units::{Rate, Span};

clearway_units::choices! {
    /// Rule that spreads flows between servers that differ in several digits over the ports of these servers.
    pub enum NicOrder {
        /// At random.
        Random = "random",
        /// In turn.
        InTurn = "in-turn",
        /// From the lowest to the highest digit, all of them.
        Lowest = "lowest",
    }
}

clearway_units::parameters! {
    /// Servers with several ports that forward packets of others. The default is the fabric of TMDML's Figure 4: 9 servers and 6 switches.
    pub struct Bcube {
        /// Ports of each switch.
        pub ports: u32 = 3, "switch-ports", "TMDML §IV, Figure 4";
        /// Levels of switches, and ports of each server. There are `switch-ports` to the power of `levels` servers.
        pub levels: u32 = 2, "levels", "TMDML §IV, Figure 4";
        /// Rate of each link.
        pub rate: Rate = Rate::from_gbps(10), "link-rate", "TMDML §IV";
        /// Delay of the cables.
        pub delay: Span = Span::from_us(1), "link-delay", "decision: TMDML has none";
        /// Delay between a server and its ports, and between two ports through which the server forwards a packet.
        pub crossing: Span = Span::from_us(1), "crossing-delay", "decision: about what a crossing of PCIe takes";
        /// First digit that a flow corrects, which decides the NICs that it uses: "random", "in-turn" or "lowest". With flow control on
        /// links, links can wait for each other in a cycle if flows begin with different digits. With "lowest", which also ends with the
        /// highest digit, they cannot on up to three levels.
        pub order: NicOrder = NicOrder::Random, "first-digit", "decision: TMDML does not say; by a hash of the flow";
    }
}

impl Bcube {
    pub(crate) fn build(&self) -> Result<Topology, ScenarioError> {
        const KEYS: [&str; 2] = ["switch-ports", "levels"];
        let servers = u64::from(self.ports).saturating_pow(self.levels);
        check_hosts(&KEYS, servers.saturating_mul(u64::from(self.levels.max(1))))?;
        bcube(
            self.ports,
            self.levels,
            (self.rate, self.delay),
            self.crossing,
        )
        .map_err(|error| topology_error(&KEYS, &error))
    }

    pub(crate) fn nic_choice(&self, seed: u64) -> NicChoice {
        match self.order {
            NicOrder::Random => NicChoice::Random { seed },
            NicOrder::InTurn => NicChoice::InTurn,
            NicOrder::Lowest => NicChoice::Ascending,
        }
    }
}
