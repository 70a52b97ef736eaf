//! Settings of selective repeat, and the form in which the packet loop uses them.

use crate::congestion::NetworkFacts;
use clearway_units::{Bytes, Span};

/// Bits of one acknowledgement's bitmap segment (STrack §3.3.1), fixed by the header.
pub(crate) const SEGMENT_BITS: u64 = 64;
/// The smallest receiver bitmap (STrack §3.3.1: 256 bits in four segments).
const MIN_WINDOW: u32 = 256;
/// Longer than any run: a probe that is due after it is never sent.
const NEVER: Span = Span::from_ms(20 * 24 * 3_600_000);
/// The largest: the counter of out-of-order packets has 16 bits.
const MAX_WINDOW: u32 = 1 << 15;

clearway_units::choices! {
    /// The service class in which probes travel.
    pub enum ProbeClass {
        /// With the acknowledgements: they overtake queued data where control has priority.
        Control = "control",
        /// With the data: they wait in the queues that the data waits in.
        Data = "data",
    }
}

clearway_units::choices! {
    /// Detection of losses besides timeouts and negative acknowledgements.
    pub enum Recovery {
        /// As STrack has it: the out-of-order counter against the window, and probes.
        Strack = "strack",
        /// SLEEK of Ultra Ethernet: the same with other thresholds; retransmissions are bounded by a window from the first missing packet
        /// and do not wait for room.
        Sleek = "sleek",
        /// Neither: for fabrics that trim packets, where late packets are not lost.
        None = "none",
        /// IRN (SIGCOMM 2018): a single packet out of order, and no probes; each missing packet is sent again once until a
        /// timeout, which adds only the first one.
        Irn = "irn",
    }
}

clearway_units::parameters! {
    /// Settings of selective repeat.
    pub struct SelectiveRepeatParameters {
        /// Payload bytes after which an acknowledgement is due; `"auto"` is one full packet. Duplicates, requests and, with `ack-in-order`,
        /// expected packets are acknowledged at once in any case.
        pub ack_bytes: Option<Bytes> = None, "ack-bytes", "STrack §3.3.1, condition 1 (Q14)";
        /// Acknowledge expected packets at once, and request acknowledgements as STrack does. Otherwise UEC's rules apply. The receiver
        /// acknowledges the first packet of a flow at once, expected packets only after `ack-bytes` or on request, and once more when the
        /// last gap closes after a request. Senders request with the last packet of a message, with retransmissions, and if one more packet
        /// would reach the window.
        pub ack_in_order: bool = true, "ack-in-order", "STrack §3.3.1; UEC reference simulator: false (U14)";
        /// Acknowledge marked packets at once.
        pub ack_on_ecn: bool = false, "ack-on-ecn", "not in STrack; the UEC reference simulator does it (Q14)";
        /// Packets that may be in flight beyond the first missing one, rounded up to a power of two from 256 to 32768; `"auto"` is twice
        /// the controller's largest window.
        pub bitmap: Option<u32> = None, "bitmap", "STrack §3.3.1: 256 bits in four segments";
        /// Detection of losses in addition to timeouts and negative acknowledgements: "strack", "sleek", "irn" or "none".
        pub recovery: Recovery = Recovery::Strack, "recovery", "STrack §3.3.2; UEC reference simulator: sleek without trimming, none with it";
        /// Number of out-of-order packets that never counts as a loss.
        pub out_of_order_min: u16 = 5, "ooo-min", "STrack §3.3.2: say 5";
        /// Number of out-of-order packets that counts as a loss, as a multiple of the window.
        pub out_of_order_factor: f64 = 1.0, "ooo-factor", "STrack §3.3.2: the window's worth of packets (Q20)";
        /// Time without any acknowledgement after which a probe is sent, in propagation round trips; at least the unloaded round trip with
        /// its serialisation.
        pub probe_after: f64 = 3.0, "probe-after", "STrack §3.3.2 and Algorithm 1 line 9";
        /// Propagation round trips within which the answer to a probe, if it comes before any data, shows that the data is lost.
        pub probe_rtt_limit: f64 = 2.0, "probe-rtt-limit", "STrack Algorithm 1 line 10 (Q6)";
        /// Service class of probes. In the data class a probe waits in the queues of the data, as the test of its round trip requires
        /// (Algorithm 1 line 10). A probe that overtakes them returns fast from a congested network, and packets that merely wait are taken
        /// for lost. With 128 senders to one host, the queue settles at 38 us with probes in the control class and at 13 us with probes in
        /// the data class (STrack Figure 20: slightly above 8 us).
        pub probe_class: ProbeClass = ProbeClass::Data, "probe-class", "decision: not in STrack, measured with its Figure 20";
        /// Time without progress of the expected sequence number after which all outstanding packets are sent again. If the default is
        /// below one unloaded round trip, four are used, with a warning.
        pub timeout: Span = Span::from_us(250), "rto", "STrack §3.3.2: hundreds of microseconds";
        /// Timeout while fewer than `rto-low-packets` are in flight, when no later packet may reveal a loss; `"auto"` is `rto`.
        pub timeout_low: Option<Span> = None, "rto-low", "STrack has one timeout; IRN §3.1: RTO_low 100 us";
        /// Full packets in flight from which the timeout is `rto`; below it is `rto-low`.
        pub timeout_low_packets: u32 = 3, "rto-low-packets", "IRN §3.1: N = 3";
        /// Unloaded round trips of the network added to `rto`.
        pub timeout_rtts: f64 = 0.0, "rto-rtts", "UEC reference simulator: six times a full queue, which is one with trimming (U27)";
        /// Separate timeout for each packet, counted from its last departure; only packets that have waited that long are sent again.
        pub timeout_per_packet: bool = false, "rto-per-packet", "UEC reference simulator: true (U27)";
        /// Send a packet only if the whole packet fits the window.
        pub strict_window: bool = false, "strict-window", "STrack §3.3.2 and §4.2 (Q11)";
        /// Send acknowledgements and probes before data; otherwise they take turns.
        pub control_first: bool = true, "control-first", "not in STrack; the UEC reference simulator does it";
        /// Life of a receiver after the last packet of its flow; copies that arrive during it count for congestion notifications. Later
        /// copies are answered with the final acknowledgement, which is kept for the whole run. `"auto"` is four retransmission timeouts.
        pub linger: Option<Span> = None, "linger", "several lost acknowledgements in a row";
    }
}

/// Numbers of SLEEK.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sleek {
    /// Largest window in bytes, which bounds the threshold of the out-of-order counter.
    pub(crate) largest_window: f64,
    /// Silence after which a probe is sent once nothing new is to be sent.
    pub(crate) probe_after_all_sent: Span,
    /// Time from a probe to the next one.
    pub(crate) probe_again_after: Span,
}

impl SelectiveRepeatParameters {
    /// The retransmission timeout on a network, however short: `rto`, and `rto-rtts` of its unloaded round trips.
    pub fn configured_timeout(&self, network: &NetworkFacts) -> Span {
        let round_trips = self.timeout_rtts.max(0.0) * network.base_rtt.as_ps() as f64;
        self.timeout + Span::from_ps(round_trips as u64)
    }

    /// Retransmission timeout in use on a network: the configured one, or four round trips if that is less than one.
    pub fn timeout_on(&self, network: &NetworkFacts) -> Span {
        network.usable_timeout(self.configured_timeout(network))
    }

    /// True if senders probe.
    pub fn probes(&self) -> bool {
        matches!(self.recovery, Recovery::Strack | Recovery::Sleek)
    }

    /// Time without any acknowledgement after which a probe is sent on a network: `probe-after`; `None` without probes.
    pub fn probe_after_on(&self, network: &NetworkFacts) -> Option<Span> {
        // Where packets take longer to send than to travel, no answer can be there before the unloaded round trip.
        let least = network.base_rtt.max(A_MOMENT);
        let after = round_trips(self.probe_after, network).max(least);
        self.probes().then_some(after)
    }
}

/// Shortest time of a timer: one of no length would fire for ever.
const A_MOMENT: Span = Span::from_ps(1);

/// So many propagation round trips.
fn round_trips(count: f64, network: &NetworkFacts) -> Span {
    Span::from_ps((count * network.propagation_rtt.as_ps() as f64) as u64)
}

/// [`SelectiveRepeatParameters`] resolved for one network.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rules {
    /// Payload bytes of a full packet.
    pub(crate) payload: u64,
    pub(crate) packets_per_byte: f64,
    pub(crate) header: u16,
    /// Bytes of an acknowledgement or probe on the wire.
    pub(crate) ack: u16,
    /// Packets that may be on their way beyond the first missing one: a power of two.
    pub(crate) window: u32,
    pub(crate) ack_bytes: u64,
    pub(crate) ack_in_order: bool,
    /// Bytes below the window from which on an acknowledgement is requested.
    pub(crate) request_margin: i64,
    pub(crate) ack_on_ecn: bool,
    pub(crate) out_of_order_min: u16,
    /// An acknowledgement may bring timers forward: with SLEEK, or a shorter timeout with few packets in flight.
    pub(crate) moves_timers: bool,
    /// Further settings of SLEEK; `None` without it.
    pub(crate) sleek: Option<Sleek>,
    /// Multiply by an out-of-order count to compare with a window in bytes.
    pub(crate) out_of_order_bytes: f64,
    /// Answers to probes show losses.
    pub(crate) probes: bool,
    pub(crate) probe_after: Span,
    pub(crate) probe_rtt_limit: Span,
    pub(crate) probe_class: ProbeClass,
    pub(crate) timeout: Span,
    pub(crate) timeout_per_packet: bool,
    /// By how much sooner the timeout comes with few packets in flight, and the most payload that is few.
    pub(crate) timeout_early: Span,
    pub(crate) few_in_flight: i64,
    /// IRN's rules of recovery.
    pub(crate) irn: bool,
    pub(crate) strict_window: bool,
    pub(crate) linger: Span,
}

impl Rules {
    pub(crate) fn new(
        parameters: &SelectiveRepeatParameters,
        network: &NetworkFacts,
        largest_window: f64,
    ) -> Self {
        let payload = f64::from(network.payload);
        let at_least_a_moment = |span: Span| span.max(A_MOMENT);
        let window = parameters
            .bitmap
            .unwrap_or(((2.0 * largest_window / payload) as u32).saturating_add(1));
        let timeout = at_least_a_moment(parameters.timeout_on(network));
        let timeout_low = parameters
            .timeout_low
            .filter(|_| !parameters.timeout_per_packet);
        let timeout_low = timeout_low.map_or(timeout, |low| {
            at_least_a_moment(network.usable_timeout(low))
        });
        Self {
            payload: u64::from(network.payload),
            packets_per_byte: 1.0 / payload,
            header: network.header as u16,
            ack: network.ack as u16,
            window: window.clamp(MIN_WINDOW, MAX_WINDOW).next_power_of_two(),
            ack_bytes: parameters
                .ack_bytes
                .map_or(u64::from(network.payload), Bytes::as_u64),
            ack_in_order: parameters.ack_in_order,
            request_margin: match parameters.ack_in_order {
                true => 0,
                false => i64::from(network.payload),
            },
            ack_on_ecn: parameters.ack_on_ecn,
            out_of_order_min: match parameters.recovery {
                Recovery::Strack => parameters.out_of_order_min,
                Recovery::Sleek => parameters.out_of_order_min.saturating_sub(1),
                Recovery::None => u16::MAX,
                Recovery::Irn => 0,
            },
            moves_timers: parameters.recovery == Recovery::Sleek
                || parameters.timeout_low.is_some(),
            sleek: (parameters.recovery == Recovery::Sleek).then(|| Sleek {
                largest_window,
                probe_after_all_sent: at_least_a_moment(network.base_rtt * 2),
                probe_again_after: at_least_a_moment(network.base_rtt * 5),
            }),
            out_of_order_bytes: payload / parameters.out_of_order_factor.max(1e-9),
            probes: parameters.probes(),
            probe_after: parameters.probe_after_on(network).unwrap_or(NEVER),
            probe_rtt_limit: round_trips(parameters.probe_rtt_limit, network),
            probe_class: parameters.probe_class,
            timeout,
            timeout_per_packet: parameters.timeout_per_packet,
            timeout_early: timeout.saturating_sub(timeout_low),
            few_in_flight: (i64::from(parameters.timeout_low_packets) - 1)
                * i64::from(network.payload),
            irn: parameters.recovery == Recovery::Irn,
            strict_window: parameters.strict_window,
            linger: parameters.linger.unwrap_or(timeout * 4),
        }
    }

    /// True if a full packet may leave with so many bytes in flight in this window.
    #[inline]
    pub(crate) fn fits(&self, in_window: i64, window: f64) -> bool {
        if self.strict_window {
            // With nothing in flight a window below one packet must not stall the flow, unless it is to wait for a rate.
            let after = in_window + self.payload as i64;
            return (after as f64 <= window || in_window <= 0) && window > 0.0;
        }
        (in_window as f64) < window
    }
}
