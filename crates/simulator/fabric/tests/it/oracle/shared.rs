//! A switch of the oracle with a shared buffer and priority flow control.
//!
//! It knows the packets that it holds, in the order in which they came. The accounts of the buffer are counted afresh from them at each
//! query. Only the part that counts as headroom has to be remembered.

use super::IntPacket;
use super::network::Network;
use super::queue::{Joined, Rules};
use crate::common::Scenario;
use clearway_fabric::topology::{LinkId, NodeId};
use clearway_fabric::{DropCause, MarkAt, SharedBufferParameters};
use clearway_transport::{Class, ClassSet};
use clearway_units::HostId;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// A packet in the switch, the one on the wire included.
struct Held {
    packet: IntPacket,
    /// The class in which it waits.
    class: Class,
    /// The class in which it came in, whose account it is in.
    came: Class,
    from: LinkId,
    to: LinkId,
}

/// Frame on the wire of an egress link.
#[derive(Clone, Copy)]
enum Sending {
    Frame(ClassSet),
    Packet(Class),
}

/// One cable of the switch: the link that leaves, and the accounts of the link that comes in.
struct Port {
    rules: Rules,
    alpha: f64,
    /// Headroom of each lossless class of the link that comes in.
    room: u64,
    sending: Option<Sending>,
    /// The data class that was served last.
    served: Class,
    /// Classes that this transmitter has to hold back.
    obeyed: ClassSet,
    /// A pause storm comes from the other end.
    storm: bool,
    /// The link is down.
    is_down: bool,
    /// Classes that the other end should hold back, and those that it has been told to.
    stopped: ClassSet,
    told: ClassSet,
}

/// The cable of a link, in a fabric of rings.
#[derive(Clone, Copy)]
struct Ring {
    /// `None` for the cable of a host.
    dimension: Option<u8>,
    dateline: bool,
}

/// A switch.
pub(crate) struct Switch {
    parameters: SharedBufferParameters,
    /// All lossless classes, second virtual channels included.
    lossless: BTreeSet<Class>,
    /// Rings and datelines by link, on a fabric with two virtual channels.
    rings: Option<BTreeMap<LinkId, Ring>>,
    pool: u64,
    /// By the link that leaves.
    ports: BTreeMap<LinkId, Port>,
    held: Vec<Held>,
    /// Bytes in the headroom, by the link that came in and class.
    headroom: BTreeMap<(LinkId, Class), u64>,
}

/// Frame that has left the switch.
pub(crate) enum Left {
    Frame(ClassSet),
    Packet {
        packet: IntPacket,
        /// The data queue that it leaves behind.
        bytes: Option<u64>,
        marked: bool,
    },
}

/// The link in the other direction of the same cable.
pub(crate) fn twin(link: LinkId) -> LinkId {
    LinkId(link.0 ^ 1)
}

impl Switch {
    pub(crate) fn new(
        scenario: &Scenario,
        network: &Network<'_>,
        parameters: &SharedBufferParameters,
        node: NodeId,
        rules: impl Fn(LinkId) -> Rules,
    ) -> Self {
        let facts = &scenario.profile.network;
        let packet = u64::from(facts.payload + facts.header);
        let cable = |link: LinkId| &scenario.topology.cables[link.0 as usize / 2];
        let hosts = (0..scenario.topology.hosts).map(HostId);
        let slowest_host = hosts.map(|host| cable(network.uplink(host)).rate).min();
        let slowest_host = slowest_host.expect("a fabric has hosts");
        let port = |link: LinkId| {
            let rate = network.highest_rate(link);
            let delay = network.delay(link).max(network.delay(twin(link)));
            let comes = rate.bytes_in(delay * 2 + parameters.reaction).as_u64();
            let comes = comes + 3 * packet + 2 * parameters.frame.as_u64();
            let usual = rate.bytes_in(delay * 3).as_u64();
            let room = parameters.headroom.map_or(comes.max(usual), |h| h.as_u64());
            let mut alpha = parameters.alpha;
            let mut bps = rate.as_bps();
            while parameters.alpha_scales && bps > slowest_host.as_bps() {
                alpha *= 2.0;
                bps /= 2;
            }
            let port = Port {
                rules: rules(link),
                alpha,
                room,
                sending: None,
                served: Class::DATA,
                obeyed: ClassSet::EMPTY,
                storm: false,
                is_down: false,
                stopped: ClassSet::EMPTY,
                told: ClassSet::EMPTY,
            };
            (link, port)
        };
        let mut ports: BTreeMap<LinkId, Port> = network.links_of(node).map(port).collect();
        let capacity: u128 = ports
            .keys()
            .map(|&link| u128::from(network.highest_rate(link).as_bps()))
            .sum();
        // 256 MB for 51.2 Tb/s.
        let auto = (capacity * 256_000_000 / 51_200_000_000_000) as u64;
        let mut classes: BTreeSet<Class> = scenario.flows.iter().map(|flow| flow.class).collect();
        if !scenario.switch.control_priority {
            classes.insert(Class::DATA);
        }
        let all = (1..Class::COUNT as u8).filter_map(Class::new);
        let mut lossless: BTreeSet<Class> = all
            .filter(|class| parameters.lossless.classes().contains(*class))
            .collect();
        let used = classes.intersection(&lossless).count() as u64;
        let ring = |link: LinkId| {
            let of_host = network.is_host(network.end_of(link));
            let own = cable(link);
            let dimension = (!of_host).then_some(own.order);
            let dateline = own.dateline;
            Ring {
                dimension,
                dateline,
            }
        };
        let is_divided = used > 0 && scenario.topology.cables.iter().any(|cable| cable.dateline);
        let rings = is_divided.then(|| ports.keys().map(|&link| (link, ring(link))).collect());
        if is_divided {
            let first = lossless.iter().map(|class| class.index() as u8);
            let first: Vec<u8> = first.filter(|class| *class < 4).collect();
            let both = first.into_iter().flat_map(|class| [class, class + 4]);
            lossless = both.filter_map(Class::new).collect();
        }
        let reserve = parameters.reserve.as_u64();
        let aside = |(link, port): (&LinkId, &Port)| {
            let of_host = network.is_host(network.end_of(*link));
            let channels = if is_divided && !of_host { 2 } else { 1 };
            (port.room + reserve) * used * channels
        };
        let aside: u64 = ports.iter().map(aside).sum();
        for port in ports.values_mut() {
            port.rules.two_channels = is_divided;
        }
        let network = &scenario.profile.network;
        let packet = u64::from((network.payload + network.header).max(network.ack));
        // As much in addition to the bytes set aside, where that is more.
        let auto = match auto < aside + packet {
            true => auto + aside,
            false => auto,
        };
        let buffer = parameters.buffer.map_or(auto, |bytes| bytes.as_u64());
        Self {
            parameters: parameters.clone(),
            lossless,
            rings,
            pool: buffer - aside,
            ports,
            held: Vec::new(),
            headroom: BTreeMap::new(),
        }
    }

    pub(crate) fn links(&self) -> Vec<LinkId> {
        self.ports.keys().copied().collect()
    }

    pub(crate) fn packets(&self) -> u64 {
        self.held.len() as u64
    }

    fn port(&mut self, link: LinkId) -> &mut Port {
        self.ports.get_mut(&link).expect("a link of this switch")
    }

    fn is_lossless(&self, class: Class) -> bool {
        self.lossless.contains(&class)
    }

    /// The class in which a packet of `class` goes on from a link that comes in to one that leaves.
    fn class_beyond(&self, class: Class, from: LinkId, to: LinkId) -> Class {
        let Some(rings) = self.rings.as_ref().filter(|_| self.is_lossless(class)) else {
            return class;
        };
        let (from, to) = (rings[&twin(from)], rings[&to]);
        let mut number = class.index() as u8;
        if from.dimension.is_none() || from.dimension != to.dimension {
            number %= 4;
        }
        if to.dateline {
            number = number % 4 + 4;
        }
        Class::new(number).expect("below 8")
    }

    fn bytes(&self, select: impl Fn(&Held) -> bool) -> u64 {
        let selected = self.held.iter().filter(|held| select(held));
        selected.map(|held| u64::from(held.packet.size)).sum()
    }

    fn headroom_of(&self, from: LinkId, class: Class) -> u64 {
        self.headroom.get(&(from, class)).copied().unwrap_or(0)
    }

    /// Bytes of a lossless class from a link that are in its reserve or in the pool.
    fn account(&self, from: LinkId, class: Class) -> u64 {
        self.bytes(|held| held.from == from && held.came == class) - self.headroom_of(from, class)
    }

    /// Bytes of a lossless class from a link that are in the pool.
    fn taken(&self, from: LinkId, class: Class) -> u64 {
        let reserve = self.parameters.reserve.as_u64();
        self.account(from, class).saturating_sub(reserve)
    }

    /// Bytes of the pool that are taken.
    fn used(&self) -> u64 {
        let accounts: BTreeSet<(LinkId, Class)> = self
            .held
            .iter()
            .filter(|held| self.is_lossless(held.class))
            .map(|held| (held.from, held.came))
            .collect();
        let lossless: u64 = accounts
            .into_iter()
            .map(|(from, class)| self.taken(from, class))
            .sum();
        lossless + self.bytes(|held| held.class.is_data() && !self.is_lossless(held.class))
    }

    /// Threshold: bytes of the pool that one class from a link may take, in whole bytes.
    fn threshold(&self, from: LinkId) -> u64 {
        let free = self.pool - self.used();
        (free as f64 * self.ports[&twin(from)].alpha).floor() as u64
    }

    /// The bytes of a class that wait for a link or are on it.
    fn queue(&self, to: LinkId, class: Class) -> u64 {
        self.bytes(|held| held.to == to && held.class == class)
    }

    /// A packet has arrived.
    pub(crate) fn admit(
        &mut self,
        packet: &mut IntPacket,
        from: LinkId,
        to: LinkId,
    ) -> Result<Joined, DropCause> {
        let size = u64::from(packet.size);
        let beyond = self.class_beyond(packet.class, from, to);
        let [class, came] = match self.ports[&to].rules.control_priority() {
            true => [beyond, packet.class],
            false => [beyond, packet.class].map(|class| class.max(Class::DATA)),
        };
        let queue = self.queue(to, class) + size;
        if self.is_lossless(class) {
            self.find_room(from, came, size)?;
        } else if class.is_data() {
            let fits = self.ports[&to].rules.allow(queue) && self.used() + size <= self.pool;
            if !fits {
                return Err(DropCause::QueueFull);
            }
        }
        let rules = &mut self.port(to).rules;
        let marked = class.is_data() && rules.mark(MarkAt::Enqueue, packet, queue);
        let packet = packet.clone();
        self.held.push(Held {
            packet,
            class,
            came,
            from,
            to,
        });
        if self.is_lossless(came)
            && (self.headroom_of(from, came) > 0 || self.taken(from, came) >= self.threshold(from))
        {
            self.port(twin(from)).stopped.insert(came);
        }
        let bytes = class.is_data().then_some(queue);
        Ok(Joined {
            bytes,
            marked,
            trimmed: None,
        })
    }

    /// Reserve first, then the pool up to the threshold, then the headroom.
    fn find_room(&mut self, from: LinkId, class: Class, size: u64) -> Result<(), DropCause> {
        let reserve = self.parameters.reserve.as_u64();
        let then = (self.account(from, class) + size).saturating_sub(reserve);
        let more = then - self.taken(from, class);
        let has_share = then <= self.threshold(from) && self.used() + more <= self.pool;
        if then == 0 || has_share {
            return Ok(());
        }
        let room = self.ports[&twin(from)].room;
        let headroom = self.headroom.entry((from, class)).or_default();
        if *headroom + size > room {
            return Err(DropCause::HeadroomFull);
        }
        *headroom += size;
        Ok(())
    }

    /// The bytes of all classes that wait for a link or are on it.
    pub(crate) fn waiting_bytes(&self, to: LinkId) -> u64 {
        self.bytes(|held| held.to == to)
    }

    /// The packet on the wire of a link, if there is one.
    pub(crate) fn on_the_wire(&mut self, link: LinkId) -> Option<&mut IntPacket> {
        let Some(Sending::Packet(class)) = self.ports[&link].sending else {
            return None;
        };
        let mut held = self.held.iter_mut();
        let first = held.find(|held| held.to == link && held.class == class);
        first.map(|held| &mut held.packet)
    }

    /// If the wire is free and something may be sent, puts it on the wire; its size.
    pub(crate) fn begin(&mut self, link: LinkId) -> Option<u64> {
        let port = &self.ports[&link];
        if port.sending.is_some() {
            return None;
        }
        if port.stopped != port.told {
            let frame = self.parameters.frame.as_u64();
            let port = self.port(link);
            port.told = port.stopped;
            port.sending = Some(Sending::Frame(port.told));
            return Some(frame);
        }
        let first = |class| {
            let waits = |held: &&Held| held.to == link && held.class == class;
            self.held.iter().find(waits)
        };
        let held_back = self.held_back(link);
        let class = self
            .turns(port)
            .find(|&class| !held_back.contains(class) && first(class).is_some())?;
        let size = first(class)?.packet.size;
        let port = self.port(link);
        port.sending = Some(Sending::Packet(class));
        if class.is_data() {
            port.served = class;
        }
        Some(size.into())
    }

    /// Control, then the data classes, the one after the last first, or the highest. The two virtual channels of a class take turns.
    fn turns(&self, port: &Port) -> impl Iterator<Item = Class> + use<> {
        let last = port.served.index();
        let strict = port.rules.strict_priority();
        let in_turn = (1..=7).map(|step| (last - 1 + step) % 7 + 1);
        let mut data: Vec<usize> = in_turn.collect();
        match (strict, self.rings.is_some()) {
            (false, _) => {}
            (true, false) => data.sort_by_key(|class| Reverse(*class)),
            (true, true) => data.sort_by_key(|class| Reverse(*class % 4)),
        }
        let classes = std::iter::once(0).chain(data);
        classes.filter_map(|number| Class::new(number as u8))
    }

    /// Ends the transmission on a link and returns the frame that has left.
    pub(crate) fn end(&mut self, link: LinkId) -> Left {
        let sending = self.port(link).sending.take();
        let class = match sending.expect("a transmission has ended") {
            Sending::Frame(classes) => return Left::Frame(classes),
            Sending::Packet(class) => class,
        };
        let mut held = self.held.iter();
        let index = held.position(|held| held.to == link && held.class == class);
        let gone = self.held.remove(index.expect("it was there"));
        let mut packet = gone.packet;
        let bytes = class.is_data().then(|| self.queue(link, class));
        let rules = &mut self.port(link).rules;
        let marked = bytes.is_some_and(|bytes| rules.mark(MarkAt::Dequeue, &mut packet, bytes));
        if packet.class != Class::CONTROL {
            packet.class = class;
        }
        if self.is_lossless(class) {
            self.make_room(gone.from, gone.came, u64::from(packet.size));
        }
        Left::Packet {
            packet,
            bytes,
            marked,
        }
    }

    /// Releases the bytes of a packet that leaves, from the headroom first, and lets the sender go on if it may.
    fn make_room(&mut self, from: LinkId, class: Class, size: u64) {
        let headroom = self.headroom.entry((from, class)).or_default();
        *headroom -= size.min(*headroom);
        let taken = self.taken(from, class);
        let below = taken + self.parameters.resume_offset.as_u64() <= self.threshold(from);
        if self.headroom_of(from, class) == 0 && (taken == 0 || below) {
            self.port(twin(from)).stopped.remove(class);
        }
    }

    /// Takes the link down. Returns all packets that wait for it or are on it, by class, and whether something was held back. All of it is
    /// forgotten, also the state that the other end was told.
    pub(crate) fn give_up(&mut self, link: LinkId) -> (Vec<(usize, IntPacket)>, bool) {
        let mut all = Vec::new();
        for class in (0..Class::COUNT as u8).filter_map(Class::new) {
            let mut held = self.held.iter();
            while let Some(index) = held.position(|held| held.to == link && held.class == class) {
                let gone = self.held.remove(index);
                if self.is_lossless(class) {
                    self.make_room(gone.from, gone.came, u64::from(gone.packet.size));
                }
                all.push((class.index(), gone.packet));
                held = self.held.iter();
            }
        }
        let was_paused = !self.held_back(link).is_empty();
        let port = self.port(link);
        (port.sending, port.obeyed, port.told) = (None, ClassSet::EMPTY, ClassSet::EMPTY);
        port.is_down = true;
        (all, was_paused)
    }

    /// True if nothing concerns a link.
    pub(crate) fn is_quiet(&self, link: LinkId) -> bool {
        let port = &self.ports[&link];
        let pauses = [self.held_back(link), port.told, port.stopped];
        port.sending.is_none()
            && self.waiting_bytes(link) == 0
            && pauses.iter().all(|classes| classes.is_empty())
    }

    /// The transmitter of `link` holds back `classes` from now on.
    pub(crate) fn obey(&mut self, link: LinkId, classes: ClassSet) {
        self.port(link).obeyed = classes;
    }

    /// A pause storm at `link` begins or ends.
    pub(crate) fn change_storm(&mut self, link: LinkId, storm: bool) {
        self.port(link).storm = storm;
    }

    /// True if a pause storm is on at `link`.
    pub(crate) fn storms(&self, link: LinkId) -> bool {
        self.ports[&link].storm
    }

    /// The link works again; true if a pause storm at it holds anything back.
    pub(crate) fn come_back(&mut self, link: LinkId) -> bool {
        let is_any_lossless = !self.lossless.is_empty();
        let port = self.port(link);
        port.is_down = false;
        port.storm && is_any_lossless
    }

    /// Classes that the transmitter of `link` holds back.
    pub(crate) fn held_back(&self, link: LinkId) -> ClassSet {
        let port = &self.ports[&link];
        let mut classes = port.obeyed;
        if port.storm && !port.is_down {
            let all = self.lossless.iter();
            all.for_each(|class| classes.insert(*class));
        }
        classes
    }
}
