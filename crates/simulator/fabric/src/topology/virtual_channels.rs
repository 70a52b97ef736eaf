//! Two virtual channels on each link of a ring or torus, which keep paused links from waiting for each other (Dally and Seitz, IEEE
//! Transactions on Computers 1987; Dally, ibid. 1990).
//!
//! A virtual channel is a class with a queue and pauses of its own: classes 1 to 3 are the first channel, class 4 + n is the second channel
//! of class n. Only lossless classes change channels, because a class that drops waits for nobody. One cable of each ring is its *dateline*
//! ([`Cable::dateline`](super::Cable::dateline)). A router that sends a packet on
//!
//! 1. puts it on the first channel, unless it came in over a cable of the same dimension;
//! 2. puts it on the second channel, if it leaves over a dateline.
//!
//! A host's own cable has no dimension. So packets leave hosts and reach them on the first channel, in the class of their flow.
//!
//! # Why nothing waits in a cycle
//! A packet that waits on one channel waits for the next channel of its path, and hosts take all packets. Deadlock needs a cycle of such
//! channels. With dimension order no path returns to an earlier dimension, so a cycle would lie in one direction of one ring, and pass its
//! dateline. There the path changes from the first channel to the second one. No link leads back: the second channel is left only with the
//! dimension. And no packet comes to the dateline on the second channel, because a shortest path passes it once at most. This argument needs
//! shortest paths of the whole fabric: around links that are down, paths may return to an earlier dimension.

use super::{LinkId, Topology};
use clearway_transport::{Class, ClassSet};

/// Classes of the first channel.
const FIRST: usize = 4;

/// The cable at a port of a router, for the choice of virtual channels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ChannelPort {
    /// `None` for the cable of a host.
    dimension: Option<u8>,
    dateline: bool,
}

impl ChannelPort {
    /// The port at either end of a link.
    pub(crate) fn of_link(topology: &Topology, link: LinkId) -> Self {
        let cable = &topology.cables[link.cable()];
        let is_of_host = cable.ends.iter().any(|end| topology.is_host(*end));
        Self {
            dimension: (!is_of_host).then_some(cable.order),
            dateline: cable.dateline,
        }
    }

    /// Class in which a packet goes on by port `to`, that came in by this port in `class`.
    pub(crate) fn class_towards(self, to: Self, class: Class) -> Class {
        let stays = self.dimension.is_some() && self.dimension == to.dimension;
        match to.dateline {
            true => second_channel(class),
            false if stays => class,
            false => first_channel(class),
        }
    }
}

/// Class of a packet's flow, whichever channel the packet is on.
pub(crate) fn first_channel(class: Class) -> Class {
    Class::new((class.index() % FIRST) as u8).unwrap_or(class)
}

/// The second channel of a class.
fn second_channel(class: Class) -> Class {
    Class::new((class.index() % FIRST + FIRST) as u8).unwrap_or(class)
}

/// Both channels of those of `classes` that are data of the first channel.
pub(crate) fn both_channels(classes: ClassSet) -> ClassSet {
    let first = (1..FIRST as u8).filter_map(Class::new);
    let first = first.filter(|class| classes.contains(*class));
    first.fold(ClassSet::EMPTY, |all, class| {
        let own = ClassSet::only(class).union(ClassSet::only(second_channel(class)));
        all.union(own)
    })
}

/// Those of `classes` that are channels of the highest class of a flow.
pub(crate) fn channels_of_highest(classes: ClassSet) -> ClassSet {
    let first = (1..FIRST as u8).rev().filter_map(Class::new);
    let mut own = first.map(|class| {
        let both = ClassSet::only(class).union(ClassSet::only(second_channel(class)));
        classes.without(classes.without(both))
    });
    own.find(|own| !own.is_empty()).unwrap_or(ClassSet::EMPTY)
}

impl Topology {
    /// True if lossless classes have two virtual channels: if any cable is a [dateline](super::Cable::dateline).
    pub fn has_virtual_channels(&self) -> bool {
        self.cables.iter().any(|cable| cable.dateline)
    }
}
