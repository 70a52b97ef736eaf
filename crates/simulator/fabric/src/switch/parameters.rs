//! Settings of switches, and the form in which queues use them.

use super::class_marks::{ByClass, ClassMarks, Thresholds};
use crate::topology::{PortChoice, SwitchRole};
use clearway_transport::{Class, ClassSet};
use clearway_units::{
    Bytes, OmitDefaults, Parameter, RandomStream, Rate, RelativeSize, Span, Value, ValueDomain,
};

clearway_units::choices! {
    /// Moment at which a queue decides about an ECN mark.
    pub enum MarkAt {
        /// On departure of a packet, by the bytes that stay behind it.
        Dequeue = "dequeue",
        /// On arrival of a packet, by the bytes in the queue, the packet included.
        Enqueue = "enqueue",
    }
}

clearway_units::choices! {
    /// Rule by which a switch selects one of several equal-cost next hops.
    pub enum PathChoice {
        /// By a hash of the header, seeded by the switch: flows spread by chance.
        Ecmp = "ecmp",
        /// By the number of the destination: all flows to a host take one way down, and flows to different hosts are spread evenly.
        Destination = "d-mod-k",
        /// For each packet the one where the least waits (adaptive routing).
        Adaptive = "adaptive",
        /// For each packet the next one, in an order that is drawn anew for each sweep.
        RoundRobin = "round-robin",
        /// For each burst of a flow the one where the least waits (flowlet switching).
        Flowlet = "flowlet",
    }
}

impl PathChoice {
    /// True if a switch looks at its own state: then packets with equal headers take different ways.
    pub const fn is_local(self) -> bool {
        matches!(self, Self::Adaptive | Self::RoundRobin | Self::Flowlet)
    }
}

impl SwitchParameters {
    /// Rule by which a switch of this role selects next hops.
    pub const fn path_choice(&self, role: SwitchRole) -> PathChoice {
        match (role, self.routing) {
            (SwitchRole::Network, routing) => routing,
            (SwitchRole::ScaleUp, PathChoice::Destination) => PathChoice::Destination,
            (SwitchRole::ScaleUp, _) | (SwitchRole::Nic(PortChoice::Hash), _) => PathChoice::Ecmp,
            (SwitchRole::Nic(PortChoice::LeastQueue), _) => PathChoice::Adaptive,
        }
    }
}

clearway_units::parameters! {
    /// Settings of adaptive routing and of flowlets.
    pub struct AdaptiveRoutingParameters {
        /// Ascending occupancy thresholds, as fractions of `queue`. Ports are compared by the number of thresholds that their backlog
        /// reaches, or by bytes if the list is empty.
        pub levels: Vec<f64> = Vec::new(), "adaptive.levels", "decision (U21); UEC reference simulator: 0.05, 0.1, 0.2";
        /// Time for which a switch reuses a reading of a port's queue.
        pub refresh: Span = Span::ZERO, "adaptive.refresh", "decision (U21); UEC reference simulator: 100 ns";
        /// Size of a packet below which a hash of the header chooses its port.
        pub hash_below: Bytes = Bytes::new(100), "adaptive.hash-below", "UEC reference simulator: 100 B";
        /// Time without a packet after which a flow may take another port, with a probability of one half.
        pub flowlet_gap: Span = Span::from_us(10), "adaptive.flowlet-gap", "UEC reference simulator: 10 us";
    }
}

clearway_units::choices! {
    /// Data packet that is trimmed when one arrives that does not fit.
    pub enum TrimVictim {
        /// The arriving one or the youngest of those that wait, with equal chances.
        Random = "random",
        /// The arriving one.
        Arriving = "arriving",
    }
}

clearway_units::choices! {
    /// Resolution of the telemetry that switches write.
    pub enum TelemetryFormat {
        /// Picoseconds and bytes.
        Exact = "exact",
        /// As the fields of HPCC's header have it: nanoseconds, 128 bytes sent, 80 bytes of queue.
        Hpcc = "hpcc",
    }
}

clearway_units::parameters! {
    /// Settings of a switch's egress ports. In relative sizes, the bandwidth-delay product is the port rate times the fabric's propagation
    /// round trip, and at least four full packets.
    pub struct SwitchParameters {
        /// Limit of an egress queue in bytes, the packet in transmission included; an arriving packet that would exceed it is dropped. With
        /// `control-priority`, control packets have a separate queue with the same limit.
        pub queue: RelativeSize = RelativeSize::percent_of_bdp(500), "queue", "STrack §4.1: drops if queuing exceeds 5 BDP";
        /// ECN marking of data packets in queues.
        pub ecn: bool = true, "ecn.enabled", "STrack §4.1";
        /// Queue size up to which no packet is marked.
        pub kmin: RelativeSize = RelativeSize::percent_of_bdp(25), "ecn.kmin", "STrack §4.1: 25% BDP";
        /// Queue size above which every packet is marked.
        pub kmax: RelativeSize = RelativeSize::percent_of_bdp(75), "ecn.kmax", "STrack §4.1: 75% BDP";
        /// Probability of a mark just below `ecn.kmax`; it grows linearly from zero at `ecn.kmin`.
        pub pmax: f64 = 1.0, "ecn.pmax", "decision Q12: STrack does not say; the UEC reference simulator marks linearly up to 1";
        /// Separate thresholds for some classes of data, like the WRED profile of each queue of a switch. They serve tenants whose
        /// transports were tuned for other thresholds. They are compared with the queue that holds the packet.
        pub class_marks: Vec<ClassMarks> = Vec::new(), "ecn.classes", "decision: the same for all";
        /// Moment of the marking decision: when a packet leaves or when it arrives.
        pub mark: MarkAt = MarkAt::Dequeue, "ecn.mark", "STrack §2.2.2: marking at egress, when a packet exits a queue";
        /// Marking also at ports to hosts.
        pub mark_last_hop: bool = true, "ecn.last-hop", "STrack §4.1; UEC with receiver credits: false (U9)";
        /// Rule by which a switch chooses among equal-cost next hops. "ecmp": a hash of the header. "d-mod-k": the number of the
        /// destination, as in InfiniBand's fat-tree routing, regardless of the transport's spraying. "adaptive": the shortest queue, for
        /// each packet. "round-robin": the next hop in turn, for each packet. "flowlet": the shortest queue, for each burst of a flow.
        pub routing: PathChoice = PathChoice::Ecmp, "routing", "STrack §2.1: ECMP";
        /// Strict priority of acknowledgements and probes over data.
        pub control_priority: bool = true, "control-priority", "decision: acknowledgements and probes in a strict-priority queue";
        /// Strict priority among data packets: at switches and NICs, a higher priority (1 to 7) always goes first. Otherwise priorities
        /// take turns, or share one queue in lossy switches.
        pub strict_priority: bool = false, "strict-priority", "decision: one priority, as in all papers but HotNets '22 §4";
        /// Packet trimming: a data packet that does not fit into its queue loses its payload instead of being dropped. The rest goes on to
        /// the receiver in the control class, whose queue limit then doubles. It needs lossy switches with `control-priority`, and
        /// transports with selective repeat.
        pub trimming: bool = false, "trimming", "decision: off, as in STrack; UEC reference simulator: on";
        /// Bytes that remain of a trimmed packet.
        pub trim_size: Bytes = Bytes::new(64), "trim-size", "UEC reference simulator: 64 B";
        /// Packet to trim. "random": the arriving packet or the youngest one in the queue, with equal probability. "arriving": the arriving
        /// packet.
        pub trim_victim: TrimVictim = TrimVictim::Random, "trim-victim", "UEC reference simulator: either, with a chance of a half (U15)";
        /// Resolution of the telemetry (INT) that switches write if a transport asks for it.
        pub telemetry: TelemetryFormat = TelemetryFormat::Exact, "telemetry", "decision: what HPCC would do with exact figures";
        with {
            /// Settings of `routing` by a switch's own state.
            pub adaptive: OmitDefaults<AdaptiveRoutingParameters>,
        }
    }
}

/// Classes that are never dropped for want of room: links are paused instead.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LosslessClasses(ClassSet);

impl LosslessClasses {
    /// Every class but control.
    pub const ALL: Self = {
        let mut set = ClassSet::EMPTY;
        let mut number = 1;
        while let Some(class) = Class::new(number) {
            set.insert(class);
            number += 1;
        }
        Self(set)
    };

    /// The classes.
    pub fn classes(self) -> ClassSet {
        self.0
    }
}

impl Parameter for LosslessClasses {
    fn expected() -> String {
        "a list of priorities from 1 to 7 such as `[1, 3]`".into()
    }
    fn domain() -> ValueDomain {
        ValueDomain::Whole { least: 1, most: 7 }.list()
    }
    fn from_value(value: &Value) -> Option<Self> {
        let Value::List(list) = value else {
            return None;
        };
        let mut set = ClassSet::EMPTY;
        for value in list {
            let class = Class::new(u8::from_value(value)?)?;
            if !class.is_data() || set.contains(class) {
                return None;
            }
            set.insert(class);
        }
        Some(Self(set))
    }
    fn to_value(&self) -> Value {
        let numbers = (1..Class::COUNT as u8).filter_map(Class::new);
        let members = numbers.filter(|class| self.0.contains(*class));
        Value::List(
            members
                .map(|class| Value::Integer(class.index() as i64))
                .collect(),
        )
    }
}

clearway_units::parameters! {
    /// Shared buffer of a switch with priority flow control.
    pub struct SharedBufferParameters {
        /// Bytes of the whole buffer. `"auto"`: 256 MB at 51.2 Tb/s, in proportion to the sum of the switch's port rates; reserves and
        /// headrooms that need more, as with links of milliseconds, are added to it.
        pub buffer: Option<Bytes> = None, "buffer", "STrack §4.1: 256 MB at 51.2 Tb/s, scaled with capacity";
        /// Share of the pool's free part that one class of an ingress port may take, on ports as fast as the slowest host link.
        pub alpha: f64 = 0.125, "alpha", "HPCC ns-3 simulator: 1/8; STrack's pauses at 37.5 MB need about 1/128";
        /// Scaling of `alpha`: it doubles with each doubling of the port rate above the rate of the slowest host link.
        pub alpha_scales: bool = true, "alpha-scales", "HPCC ns-3 simulator";
        /// Classes with priority flow control. Packets of other classes are dropped when the pool or their `queue` is full. Control packets
        /// have separate room.
        pub lossless: LosslessClasses = LosslessClasses::ALL, "pfc.classes", "IEEE 802.1Qbb";
        /// Agents of links (1RC) may drop speculative data of lossless classes before it is queued.
        pub agent_drops: bool = true, "pfc.agent-drops", "Snyder §5.2: what has been queued is never dropped";
        /// Bytes reserved for each lossless class of each port.
        pub reserve: Bytes = Bytes::new(4096), "pfc.reserve", "HPCC ns-3 simulator: 4 KiB";
        /// Bytes for packets that still arrive after a pause frame was sent, for each lossless class of each port. `"auto"`: rate × (two
        /// delays + reaction time) + three packets + two frames, or 3 × rate × delay if that is more.
        pub headroom: Option<Bytes> = None, "pfc.headroom", "HPCC ns-3 simulator: 3 x rate x delay; enlarged where that is too little";
        /// Bytes below the threshold at which a paused class may resume.
        pub resume_offset: Bytes = Bytes::new(3072), "pfc.resume-offset", "HPCC ns-3 simulator: 3 KiB";
        /// Time from the arrival of a pause frame to its effect.
        pub reaction: Span = Span::ZERO, "pfc.reaction", "HPCC ns-3 simulator: at once; IEEE 802.1Qbb allows some time";
        /// Bytes of a pause frame on the wire.
        pub frame: Bytes = Bytes::new(64), "pfc.frame", "IEEE 802.3: the shortest frame";
    }
}

/// Bytes of buffer for each bit per second of capacity, as a fraction: 256 MB at 51.2 Tb/s.
const BUFFER_PER_BPS: (u128, u128) = (256_000_000, 51_200_000_000_000);

/// A port as far as its buffer is concerned.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PortFacts {
    pub(crate) rate: Rate,
    /// Delay of the link in its slower direction, latencies included.
    pub(crate) delay: Span,
    /// Data classes that come in.
    pub(crate) classes: ClassSet,
}

/// [`SharedBufferParameters`] resolved for one switch.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct BufferRules {
    pub(crate) lossless: ClassSet,
    pub(crate) reserve: u64,
    pub(crate) resume_offset: u64,
    /// Bytes of the pool: the buffer without reserves and headrooms.
    pub(crate) pool: u64,
    /// For each port: alpha, and the headroom of each lossless class.
    pub(crate) ports: Vec<(f64, u64)>,
}

impl BufferRules {
    /// Resolves the parameters. `host_rate` is the rate of the slowest link of a host, `lossless` are the lossless classes, `packet` the
    /// bytes of the largest packet.
    ///
    /// # Errors
    /// The size of the buffer and the bytes that reserves and headrooms need of it, if they do not leave room for a packet.
    pub(crate) fn new(
        parameters: &SharedBufferParameters,
        ports: &[PortFacts],
        host_rate: Rate,
        lossless: ClassSet,
        packet: u64,
    ) -> Result<Self, (Bytes, Bytes)> {
        let reserve = parameters.reserve.as_u64();
        let rules = |port: &PortFacts| {
            let alpha = if parameters.alpha_scales {
                scaled(parameters.alpha, port.rate, host_rate)
            } else {
                parameters.alpha
            };
            let headroom = parameters
                .headroom
                .map_or_else(|| headroom(parameters, port, packet), Bytes::as_u64);
            (alpha, headroom)
        };
        let capacity: u128 = ports
            .iter()
            .map(|port| u128::from(port.rate.as_bps()))
            .sum();
        let usual = (capacity * BUFFER_PER_BPS.0 / BUFFER_PER_BPS.1) as u64;
        let counts = ports.iter().map(|port| {
            let lossy = port.classes.without(lossless);
            port.classes.without(lossy).len() as u64
        });
        let counts: Vec<u64> = counts.collect();
        let ports: Vec<(f64, u64)> = ports.iter().map(rules).collect();
        let set_aside = ports
            .iter()
            .zip(counts)
            .map(|((_, headroom), count)| headroom.saturating_add(reserve).saturating_mul(count))
            .fold(0u64, u64::saturating_add);
        let auto = || match usual < set_aside.saturating_add(packet) {
            true => usual.saturating_add(set_aside),
            false => usual,
        };
        let buffer = parameters.buffer.map_or_else(auto, Bytes::as_u64);
        match buffer.checked_sub(set_aside) {
            Some(pool) if pool >= packet => Ok(Self {
                lossless,
                reserve,
                resume_offset: parameters.resume_offset.as_u64(),
                pool,
                ports,
            }),
            _ => Err((
                Bytes::new(buffer),
                Bytes::new(set_aside.saturating_add(packet)),
            )),
        }
    }
}

/// `alpha`, doubled for each doubling of `host_rate`, whole or begun, up to `rate`.
fn scaled(alpha: f64, rate: Rate, host_rate: Rate) -> f64 {
    let (mut alpha, mut rate) = (alpha, rate.as_bps());
    while rate > host_rate.as_bps() {
        rate /= 2;
        alpha *= 2.0;
    }
    alpha
}

/// Headroom of a port: the bytes that can still come in once its buffer has asked for a pause. These are the packet that made it ask, one
/// that is on the wire before the frame, a frame about another class, the frame, both ways over the cable, the reaction, and one packet
/// that has begun before that. The headroom is three times rate times delay if that is more.
fn headroom(parameters: &SharedBufferParameters, port: &PortFacts, packet: u64) -> u64 {
    let frame = parameters.frame.as_u64();
    let waiting = port
        .rate
        .bytes_in(port.delay * 2 + parameters.reaction)
        .as_u64();
    let artifact = port.rate.bytes_in(port.delay * 3).as_u64();
    let more = frame.saturating_mul(2).saturating_add(3 * packet);
    artifact.max(waiting.saturating_add(more))
}

/// [`SwitchParameters`] resolved for one port.
#[derive(Debug, Clone)]
pub struct QueueRules {
    pub(super) limit: u64,
    /// The least queue at which anything is marked.
    pub(super) kmin: u64,
    marks: Thresholds,
    by_class: Option<ByClass>,
    ecn: bool,
    pub(super) mark: MarkAt,
    pub(super) control_priority: bool,
    pub(super) strict_priority: bool,
    /// Lossless classes have two virtual channels.
    pub(super) has_channels: bool,
    /// Bytes that stay of a packet that is trimmed; none if such packets are dropped.
    pub(super) trim_size: Option<u16>,
    pub(super) trim_victim: TrimVictim,
}

impl QueueRules {
    /// Rules of a port of this rate whose [bandwidth-delay product](clearway_transport::congestion::port_bdp) is `bdp`.
    pub fn new(parameters: &SwitchParameters, rate: Rate, bdp: Bytes) -> Self {
        let port = (rate, bdp);
        let thresholds = [parameters.kmin, parameters.kmax];
        let marks = Thresholds::new(thresholds, parameters.pmax, port);
        let by_class = ByClass::new(&parameters.class_marks, marks, port);
        Self {
            limit: parameters.queue.resolve(rate, port.1).as_u64(),
            kmin: by_class.as_ref().map_or(marks.kmin, ByClass::least),
            marks,
            by_class,
            ecn: parameters.ecn,
            mark: parameters.mark,
            control_priority: parameters.control_priority,
            strict_priority: parameters.strict_priority,
            has_channels: false,
            trim_size: parameters
                .trimming
                .then(|| parameters.trim_size.as_u64().min(u16::MAX.into()) as u16),
            trim_victim: parameters.trim_victim,
        }
    }

    /// The largest packet that gets no mark when it joins an empty queue and leaves one.
    pub(super) fn largest_unmarked(&self) -> u64 {
        match self.mark {
            MarkAt::Enqueue if self.ecn => self.kmin,
            MarkAt::Enqueue | MarkAt::Dequeue => u64::MAX,
        }
    }

    /// The same with another limit of the queue in bytes, if there is one.
    #[must_use]
    pub fn with_limit(self, limit: Option<Bytes>) -> Self {
        Self {
            limit: limit.map_or(self.limit, Bytes::as_u64),
            ..self
        }
    }

    /// The same where lossless classes have two virtual channels, if `has_channels`.
    #[must_use]
    pub(crate) fn with_channels(self, has_channels: bool) -> Self {
        if !has_channels {
            return self;
        }
        Self {
            has_channels,
            by_class: self.by_class.map(ByClass::on_both_channels),
            ..self
        }
    }

    /// The same for a port to a host, if `last_hop`.
    pub(crate) fn at(self, parameters: &SwitchParameters, last_hop: bool) -> Self {
        Self {
            ecn: self.ecn && (parameters.mark_last_hop || !last_hop),
            ..self
        }
    }

    /// The rules of a queue that marks nothing.
    #[must_use]
    pub(crate) fn unmarked(self) -> Self {
        Self { ecn: false, ..self }
    }

    /// The rules of a queue that takes every packet and marks and trims nothing, but serves classes as these do.
    #[must_use]
    pub fn unlimited(self) -> Self {
        Self {
            limit: u64::MAX,
            kmin: u64::MAX,
            ecn: false,
            trim_size: None,
            ..self
        }
    }

    /// Bytes in the queue, the packet in transmission included, above which an arriving packet is dropped.
    pub fn limit(&self) -> u64 {
        self.limit
    }

    /// Moment of the marking decision.
    pub fn mark_at(&self) -> MarkAt {
        self.mark
    }

    /// True if a packet of `class` is marked with `bytes` in its queue, counted as [`MarkAt`] says. Draws a number only where the answer
    /// is open.
    #[inline]
    pub fn marks(&self, class: Class, bytes: u64, random: &mut RandomStream) -> bool {
        let by_class = self.by_class.as_ref();
        let &Thresholds { kmin, kmax, pmax } =
            by_class.map_or(&self.marks, |all| all.thresholds(class));
        if bytes <= kmin || !self.ecn {
            return false;
        }
        if bytes > kmax {
            return true;
        }
        // draw / 2^32 < pmax · (bytes - kmin) / (kmax - kmin), without a division.
        u64::from(random.next_u32()) * (kmax - kmin) < (bytes - kmin) * pmax
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::both_channels;
    use clearway_units::{ParameterSet, Purpose};

    #[test]
    fn defaults_are_those_of_the_strack_paper() {
        let rules = QueueRules::new(
            &SwitchParameters::default(),
            Rate::from_gbps(400),
            Bytes::new(400_000),
        );
        assert_eq!(
            (rules.limit, rules.kmin, rules.marks.kmax),
            (2_000_000, 100_000, 300_000)
        );
        assert_eq!(rules.marks.pmax, 1 << 32);
    }

    const PORT: PortFacts = PortFacts {
        rate: Rate::from_gbps(400),
        delay: Span::from_us(1),
        classes: ClassSet::only(Class::DATA),
    };

    fn rules(
        parameters: &SharedBufferParameters,
        ports: &[PortFacts],
    ) -> Result<BufferRules, (Bytes, Bytes)> {
        let lossless = parameters.lossless.classes();
        BufferRules::new(parameters, ports, Rate::from_gbps(400), lossless, 4160)
    }

    #[test]
    fn the_buffer_scales_with_the_capacity_of_the_switch() {
        let rules = rules(&SharedBufferParameters::default(), &[PORT; 64]).unwrap();
        // 25.6 Tb/s have 128 MB; each port sets 4 KiB and 3 x 50 KB aside.
        assert_eq!(rules.pool, 128_000_000 - 64 * (4096 + 150_000));
        assert_eq!(rules.ports[0], (0.125, 150_000));
    }

    #[test]
    fn faster_ports_have_a_larger_alpha_and_short_links_enough_headroom() {
        let fast = PortFacts {
            rate: Rate::from_gbps(1600),
            delay: Span::from_ns(10),
            ..PORT
        };
        let rules = rules(&SharedBufferParameters::default(), &[PORT, fast]).unwrap();
        // 1.6 Tb/s x 20 ns = 4000 bytes.
        assert_eq!(rules.ports[1], (0.5, 4000 + 3 * 4160 + 128));
    }

    #[test]
    fn a_buffer_without_a_pool_is_refused() {
        let parameters = SharedBufferParameters {
            buffer: Some(Bytes::new(200_000)),
            ..Default::default()
        };
        assert!(rules(&parameters, &[PORT]).is_ok());
        assert_eq!(
            rules(&parameters, &[PORT; 2]),
            Err((Bytes::new(200_000), Bytes::new(2 * 154_096 + 4160)))
        );
    }

    #[test]
    fn each_port_sets_room_aside_for_the_classes_that_come_in() {
        let parameters = SharedBufferParameters::default();
        let pool = |ports: &[PortFacts]| rules(&parameters, ports).unwrap().pool;
        let classes = both_channels(PORT.classes);
        let ports = [PortFacts { classes, ..PORT }, PORT];
        assert_eq!(pool(&[PORT; 2]) - pool(&ports), 4096 + 150_000);
    }

    #[test]
    fn a_frame_of_any_size_is_refused_or_fits() {
        let parameters = SharedBufferParameters {
            frame: Bytes::new(u64::MAX),
            ..Default::default()
        };
        let (_, needed) = rules(&parameters, &[PORT]).unwrap_err();
        assert_eq!(needed, Bytes::new(u64::MAX));
    }

    #[test]
    fn lossless_classes_are_lists_of_priorities() {
        let list =
            |numbers: &[i64]| Value::List(numbers.iter().map(|n| Value::Integer(*n)).collect());
        let read = |numbers: &[i64]| LosslessClasses::from_value(&list(numbers));
        assert_eq!(read(&[1, 2, 3, 4, 5, 6, 7]), Some(LosslessClasses::ALL));
        assert_eq!(read(&[3, 1]).unwrap().to_value(), list(&[1, 3]));
        assert_eq!(read(&[]).unwrap().classes(), ClassSet::EMPTY);
        assert_eq!((read(&[0]), read(&[8]), read(&[2, 2])), (None, None, None));
    }

    #[test]
    fn marking_is_linear_between_the_thresholds() {
        let mut parameters = SwitchParameters::default();
        parameters.set("ecn.pmax", &Value::Float(0.5)).unwrap();
        let rules = QueueRules::new(&parameters, Rate::from_gbps(400), Bytes::new(400_000));
        let mut random = RandomStream::new(1, Purpose::Test, 0);
        let mut share = |bytes| {
            (0..20_000)
                .filter(|_| rules.marks(Class::DATA, bytes, &mut random))
                .count()
        };
        assert_eq!(share(100_000), 0);
        assert!(
            share(200_000).abs_diff(5_000) < 310,
            "a quarter, within 5 sigma"
        );
        assert!(share(300_000).abs_diff(10_000) < 360, "pmax at kmax");
        assert_eq!(share(300_001), 20_000);
    }
}
