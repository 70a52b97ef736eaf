//! Congestion controllers: samples in, an [`Allowance`] out.
//!
//! A new controller is one file with a type that implements [`CongestionControl`] and [`ControllerDefinition`], and one line in
//! the `controllers!` list at the end of this module. That line yields the enum variant, the dispatch, the scenario's keys, the
//! row of `clearway list controllers` and the entry in the conformance tests. A controller of another crate is registered at
//! run time and dispatched through a box.
//!
//! The signals of controllers and their limits are here as well: [`feedback`] of receivers, [`telemetry`] of switches, [`credit`]s of
//! receivers, rates that links allocate ([`perc`]), and enforcement scopes ([`Scope`](crate::Scope)).
//!
//! Parts that several controllers share can be used by controllers of other crates too: [`VariableIncrease`], [`ReferenceClock`]
//! (Sampling Frequency) and [`RandomFeedback`] (random feedback), each with its settings.

mod additive_window;
mod allocated_rate;
mod base_rtt;
#[cfg(test)]
mod closed_loop;
mod constant;
pub mod credit;
mod dcqcn;
mod dcqcn_timer;
mod dctcp;
mod dctcp_rate;
pub mod feedback;
pub mod fluid;
mod hpcc;
pub(crate) mod misbehaving_nic;
pub(crate) mod misbehaviour;
mod nscc;
pub mod perc;
mod phase_increase;
mod random_feedback;
mod rate;
mod reno;
mod round_trip;
mod sampling;
pub(crate) mod scope;
mod smartt;
mod strack;
mod swift;
pub mod telemetry;
#[cfg(test)]
mod tests;
mod timely;
mod variable_increase;

use crate::congestion::perc::RateAllocation;
use crate::congestion::telemetry::Hop;
use crate::plugin::settings_enum;
use clearway_units::{
    Bytes, ParameterInfo, ParameterSet, RandomStream, Rate, RelativeSize, SetError, Span, Time,
    Value,
};

pub(crate) use allocated_rate::bdp_packets;
pub use allocated_rate::{OneRc, OneRcParameters, PercParameters, SPerc, SPercParameters};
pub use base_rtt::BaseRtt;
pub use constant::{Constant, ConstantParameters};
pub use dcqcn::{Dcqcn, DcqcnParameters, ReactionPoint};
pub use dcqcn_timer::{DcqcnTimer, DcqcnTimerParameters};
pub use dctcp::{Dctcp, DctcpParameters};
pub use dctcp_rate::{DctcpRate, DctcpRateParameters};
pub use hpcc::{Hpcc, HpccParameters};
pub use nscc::{Nscc, NsccParameters};
pub use phase_increase::{PhaseIncrease, PhaseIncreaseParameters};
pub use random_feedback::{RandomFeedback, RandomFeedbackParameters};
pub use rate::WindowLimit;
pub use reno::{Reno, RenoParameters};
pub use round_trip::RoundTrip;
pub use sampling::{ReferenceClock, SamplingParameters};
pub use smartt::{Smartt, SmarttParameters};
pub use strack::{Strack, StrackParameters};
pub use swift::{HopCount, Swift, SwiftParameters};
pub use timely::{Timely, TimelyParameters};
pub use variable_increase::{DelayTokenParameters, VariableIncrease, VariableIncreaseParameters};

/// Properties of the network that a sender knows before the first packet.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct NetworkFacts {
    /// Rate of the NIC.
    pub line_rate: Rate,
    /// Longest unloaded round trip in the fabric, serialisation of one full packet and its acknowledgement included.
    pub base_rtt: Span,
    /// The network-wide constant that the STrack paper calls net_base_rtt: propagation only, both ways.
    pub propagation_rtt: Span,
    /// Bandwidth-delay product: `line_rate` × `base_rtt`.
    pub bdp: Bytes,
    /// Bytes of payload in a full packet.
    pub payload: u32,
    /// Bytes of headers on each packet.
    pub header: u32,
    /// Bytes on the wire of an acknowledgement, a probe or a congestion notification.
    pub ack: u32,
    /// Path of the flow; the longest path where the flow's own is unknown.
    pub path: PathFacts,
}

/// Properties of the path to the receiver and back that a sender knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PathFacts {
    /// Unloaded round trip, serialisation of one full packet and its acknowledgement included.
    pub rtt: Span,
    /// Switches on the path to the receiver.
    pub switches: u32,
}

impl NetworkFacts {
    /// The same network seen from a NIC of `line_rate`.
    #[must_use]
    pub fn at_rate(self, line_rate: Rate) -> Self {
        Self {
            line_rate,
            bdp: line_rate.bytes_in(self.base_rtt),
            ..self
        }
    }

    /// Bandwidth-delay product by which queues and thresholds of a port of this rate are sized; see [`port_bdp`].
    pub fn port_bdp(&self, rate: Rate) -> Bytes {
        let packet = Bytes::new(u64::from(self.payload + self.header));
        port_bdp(rate, self.propagation_rtt, packet)
    }

    /// Retransmission timeout in use: four unloaded round trips if the given one is less than one, since then everything would be sent
    /// again before it can be acknowledged.
    pub fn usable_timeout(&self, timeout: Span) -> Span {
        match timeout < self.base_rtt {
            true => self.base_rtt * 4,
            false => timeout,
        }
    }

    /// Bytes of a size at the line rate.
    pub fn size(&self, size: RelativeSize) -> Bytes {
        size.resolve(self.line_rate, self.bdp)
    }

    /// The same network as a flow on `path` sees it.
    #[must_use]
    pub fn on_path(self, path: PathFacts) -> Self {
        Self { path, ..self }
    }
}

/// Packets that are the least bandwidth-delay product of a port: with fewer, the lowest threshold of the presets, a quarter of it, would be
/// less than a packet, and every waiting packet would be marked.
const LEAST_PORT_BDP: u64 = 4;

/// Bandwidth-delay product by which queues and thresholds of a port are sized: its rate times the fabric's propagation round trip, but at
/// least four full packets.
pub fn port_bdp(rate: Rate, propagation_rtt: Span, packet: Bytes) -> Bytes {
    let least = Bytes::new(packet.as_u64().saturating_mul(LEAST_PORT_BDP));
    rate.bytes_in(propagation_rtt).max(least)
}

/// One acknowledgement as the controller sees it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AckSample<'a> {
    /// The present.
    pub now: Time,
    /// Round-trip time of the packet that the acknowledgement answers.
    pub rtt: Span,
    /// ECN mark of the packet that the acknowledgement answers.
    pub ecn: bool,
    /// Payload bytes newly known to have arrived; zero for duplicates.
    pub acked: Bytes,
    /// Bytes in flight after this acknowledgement.
    pub in_flight: Bytes,
    /// True if the acknowledgement answers a probe, not data.
    pub probe: bool,
    /// Payload bytes of the flow that are known to have arrived, since its beginning. With the bytes in flight it adds up to the bytes
    /// sent: once it exceeds the bytes sent by some instant, a round trip has passed since then.
    pub delivered: Bytes,
    /// Telemetry records that switches wrote onto the packet that the acknowledgement answers, if the controller
    /// [asks for it](CongestionControl::uses_telemetry).
    pub hops: &'a [Hop],
}

impl AckSample<'_> {
    /// Payload bytes of the flow that have been sent, since its beginning.
    #[inline]
    pub fn sent(&self) -> Bytes {
        self.delivered + self.in_flight
    }
}

/// Signal by which a loss was detected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LossCause {
    /// Too many packets arrived out of order.
    OutOfOrder,
    /// A probe came back quickly and nothing else did.
    Probe,
    /// The retransmission timer ran out.
    Timeout,
    /// A go-back-N receiver asked to send again from the packet that it expects (NACK).
    GoBack,
    /// The packet has arrived without its payload: a switch had no room for it (NACK of a trimmed packet).
    Trimmed {
        /// The switch is the last one before the receiver.
        last_hop: bool,
        /// Time from the departure of the packet to its negative acknowledgement. Trimmed packets overtake queues.
        rtt: Span,
    },
}

impl LossCause {
    /// Short name of the cause, for people.
    pub const fn words(self) -> &'static str {
        match self {
            Self::OutOfOrder => "out of order",
            Self::Probe => "probe",
            Self::Timeout => "timeout",
            Self::GoBack => "go back",
            Self::Trimmed { .. } => "trimmed",
        }
    }
}

/// Packets declared lost.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LossSample {
    /// The present.
    pub now: Time,
    /// Signal by which the loss was detected.
    pub cause: LossCause,
    /// Payload bytes declared lost now.
    pub lost: Bytes,
    /// Bytes in flight, without those.
    pub in_flight: Bytes,
}

/// Congestion window and pacing rate that a controller allows.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Allowance {
    /// Payload bytes that may be in flight. Fractions of a packet count: a packet may start while less is in flight. May be
    /// infinite where a rate alone decides.
    pub window: f64,
    /// Pacing rate; `None` leaves it to the window.
    pub rate: Option<Rate>,
}

/// A congestion controller of one flow. Pure state: no clock but the times passed in.
pub trait CongestionControl: Send {
    /// An acknowledgement has come.
    fn on_ack(&mut self, sample: &AckSample<'_>);
    /// Packets have been declared lost.
    fn on_loss(&mut self, loss: &LossSample) {
        let _ = loss;
    }
    /// The receiver has notified of congestion, as its [`feedback`] rule saw fit.
    fn on_notification(&mut self, now: Time) {
        let _ = now;
    }
    /// A data packet of `wire` bytes, headers included, has left: for byte counters. With selective repeat a change of a window
    /// without a rate takes effect at the next acknowledgement.
    fn on_sent(&mut self, now: Time, wire: Bytes) {
        let _ = (now, wire);
    }
    /// The flow sends again after having had nothing outstanding.
    fn on_restart(&mut self, now: Time) {
        let _ = now;
    }
    /// Window and pacing rate that are allowed now.
    fn allowance(&self) -> Allowance;
    /// The largest window in bytes that it will ever allow, from which bitmaps are sized. The default says that the present
    /// window never grows.
    fn largest_window(&self) -> f64 {
        self.allowance().window
    }
    /// Instant at which [`on_deadline`](Self::on_deadline) is to be called; [`Time::NEVER`] if it need not be. If the flow has
    /// nothing to send, the call may come late, when it has something again.
    fn deadline(&self) -> Time {
        Time::NEVER
    }
    /// The deadline has come. May be called early and often.
    fn on_deadline(&mut self, now: Time) {
        let _ = now;
    }
    /// True if switches are to write telemetry onto packets. The same for all controllers of one kind and one set of settings.
    fn uses_telemetry(&self) -> bool {
        false
    }
    /// Settings of the rate allocation that the controller belongs to: then links have agents, and the endpoint sends control packets.
    /// The same for all controllers of one kind and one set of settings.
    fn allocation(&self) -> Option<&RateAllocation> {
        None
    }
    /// The network has allocated a rate, or the flow has to wait for one. Told only to a controller with an
    /// [allocation](Self::allocation).
    fn on_allocation(&mut self, rate: Option<Rate>) {
        let _ = rate;
    }
    /// The flow sends in phases: so many bytes of payload, then a pause until all of them are acknowledged, and so on. Told before
    /// anything else happens, if at all.
    fn take_phase(&mut self, phase: Bytes) {
        let _ = phase;
    }
    /// True if what it does depends on how much of a message or phase is sent or acknowledged, not on time, packets and acknowledgements
    /// alone. Then no packets of its flow may be [skipped](crate::Endpoint::skip).
    fn counts_progress(&self) -> bool {
        false
    }
    /// The next acknowledgement is of another sender than the last one. Told only to a controller that governs
    /// [several](crate::Scope::shares_controller). `sender` is unique in the endpoint.
    fn select_sender(&mut self, sender: u64) {
        let _ = sender;
    }
    /// The flow's own random numbers, before anything else happens: for controllers with random feedback.
    fn take_random(&mut self, random: RandomStream) {
        let _ = random;
    }
}

/// Definition of a controller that is known by name: its settings and its constructor.
pub trait ControllerDefinition: CongestionControl + Sized + 'static {
    /// Name of the controller in a scenario: `transport.controller = "…"`.
    const NAME: &'static str;
    /// One line for `clearway list controllers`.
    const SUMMARY: &'static str;
    /// Settings of the controller, keys of the `[transport]` section.
    type Parameters: ParameterSet + std::fmt::Debug + Clone + PartialEq + Send + Sync + 'static;

    /// Creates a controller for a new flow.
    fn new(parameters: &Self::Parameters, network: &NetworkFacts) -> Self;
}

/// Generates [`Controller`], which dispatches by `match` in the packet loop, and [`ControllerSettings`].
macro_rules! controllers {
    ($($variant:ident($type:ty)),+ $(,)?) => {
        /// A congestion controller of this crate, or a boxed one of another crate.
        pub enum Controller {
            $(#[doc = concat!("See [`", stringify!($type), "`].")] $variant($type),)+
            /// One of another crate.
            Custom(Box<dyn CongestionControl>),
        }

        // In the packet loop the match is inlined, and of the arms those that are marked so: STrack's.
        impl CongestionControl for Controller {
            #[inline(always)]
            fn on_ack(&mut self, sample: &AckSample<'_>) {
                match self {
                    $(Self::$variant(controller) => controller.on_ack(sample),)+
                    Self::Custom(controller) => controller.on_ack(sample),
                }
            }
            fn on_loss(&mut self, loss: &LossSample) {
                match self {
                    $(Self::$variant(controller) => controller.on_loss(loss),)+
                    Self::Custom(controller) => controller.on_loss(loss),
                }
            }
            fn on_notification(&mut self, now: Time) {
                match self {
                    $(Self::$variant(controller) => controller.on_notification(now),)+
                    Self::Custom(controller) => controller.on_notification(now),
                }
            }
            #[inline(always)]
            fn on_sent(&mut self, now: Time, wire: Bytes) {
                match self {
                    $(Self::$variant(controller) => controller.on_sent(now, wire),)+
                    Self::Custom(controller) => controller.on_sent(now, wire),
                }
            }
            fn on_restart(&mut self, now: Time) {
                match self {
                    $(Self::$variant(controller) => controller.on_restart(now),)+
                    Self::Custom(controller) => controller.on_restart(now),
                }
            }
            #[inline(always)]
            fn allowance(&self) -> Allowance {
                match self {
                    $(Self::$variant(controller) => controller.allowance(),)+
                    Self::Custom(controller) => controller.allowance(),
                }
            }
            fn largest_window(&self) -> f64 {
                match self {
                    $(Self::$variant(controller) => controller.largest_window(),)+
                    Self::Custom(controller) => controller.largest_window(),
                }
            }
            #[inline(always)]
            fn deadline(&self) -> Time {
                match self {
                    $(Self::$variant(controller) => controller.deadline(),)+
                    Self::Custom(controller) => controller.deadline(),
                }
            }
            fn on_deadline(&mut self, now: Time) {
                match self {
                    $(Self::$variant(controller) => controller.on_deadline(now),)+
                    Self::Custom(controller) => controller.on_deadline(now),
                }
            }
            fn uses_telemetry(&self) -> bool {
                match self {
                    $(Self::$variant(controller) => controller.uses_telemetry(),)+
                    Self::Custom(controller) => controller.uses_telemetry(),
                }
            }
            fn allocation(&self) -> Option<&RateAllocation> {
                match self {
                    $(Self::$variant(controller) => controller.allocation(),)+
                    Self::Custom(controller) => controller.allocation(),
                }
            }
            fn on_allocation(&mut self, rate: Option<Rate>) {
                match self {
                    $(Self::$variant(controller) => controller.on_allocation(rate),)+
                    Self::Custom(controller) => controller.on_allocation(rate),
                }
            }
            fn take_phase(&mut self, phase: Bytes) {
                match self {
                    $(Self::$variant(controller) => controller.take_phase(phase),)+
                    Self::Custom(controller) => controller.take_phase(phase),
                }
            }
            fn counts_progress(&self) -> bool {
                match self {
                    $(Self::$variant(controller) => controller.counts_progress(),)+
                    Self::Custom(controller) => controller.counts_progress(),
                }
            }
            fn select_sender(&mut self, sender: u64) {
                match self {
                    $(Self::$variant(controller) => controller.select_sender(sender),)+
                    Self::Custom(controller) => controller.select_sender(sender),
                }
            }
            fn take_random(&mut self, random: RandomStream) {
                match self {
                    $(Self::$variant(controller) => controller.take_random(random),)+
                    Self::Custom(controller) => controller.take_random(random),
                }
            }
        }

        settings_enum! {
            /// Choice of a controller, and its settings.
            settings: ControllerSettings,
            /// Settings of a controller of another crate; see [`ControllerSettings::custom`].
            custom: CustomController,
            definition: ControllerDefinition,
            behaviour: CongestionControl,
            built: Controller,
            build: new(network: &NetworkFacts),
            types: [$($variant($type)),+],
        }
    };
}

controllers! {
    Strack(Strack),
    Constant(Constant),
    Nscc(Nscc),
    Dcqcn(Dcqcn),
    DcqcnTimer(DcqcnTimer),
    Dctcp(Dctcp),
    DctcpRate(DctcpRate),
    Reno(Reno),
    Hpcc(Hpcc),
    Swift(Swift),
    Timely(Timely),
    Smartt(Smartt),
    SPerc(SPerc),
    OneRc(OneRc),
}
