//! A transport: reliability, congestion controller, path selector and the receiver's feedback, composed.

use crate::congestion::credit::CreditParameters;
use crate::congestion::feedback::FeedbackSettings;
use crate::congestion::perc::LinkAgent;
use crate::congestion::scope::ScopeParameters;
use crate::congestion::{CongestionControl, ControllerSettings, NetworkFacts, PathFacts};
use crate::endpoint::flow::{Paths, entity};
use crate::packet::Class;
use crate::paths::{SelectorSettings, SendState};
use crate::reliability::go_back_n::GoBackNParameters;
use crate::reliability::selective_repeat::SelectiveRepeatParameters;
use clearway_units::{
    Bytes, FlowId, ParameterInfo, ParameterSet, Rate, SetError, Span, Time, Value,
};

/// Acknowledgements, loss detection and retransmission: the scheme and its settings.
#[derive(Debug, Clone, PartialEq)]
pub enum Reliability {
    /// Selective repeat over a bitmap, as STrack has it.
    SelectiveRepeat(SelectiveRepeatParameters),
    /// Go-back-N over cumulative acknowledgements, as RoCEv2 has it.
    GoBackN(GoBackNParameters),
}

impl Default for Reliability {
    /// Selective repeat with the defaults of STrack.
    fn default() -> Self {
        Self::SelectiveRepeat(SelectiveRepeatParameters::default())
    }
}

impl Reliability {
    /// Name and one-line summary of each scheme.
    pub const ALL: &'static [(&'static str, &'static str)] = &[
        (
            "selective-repeat",
            "STrack: SACK segments, out-of-order counter, probes, timeout",
        ),
        (
            "go-back-n",
            "RoCEv2: in-order delivery, NACKs, timeout; several queue pairs per flow",
        ),
    ];

    /// Scheme called `name`, with its default settings.
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "selective-repeat" => Some(Self::SelectiveRepeat(Default::default())),
            "go-back-n" => Some(Self::GoBackN(Default::default())),
            _ => None,
        }
    }
    /// The name in a scenario.
    pub fn name(&self) -> &'static str {
        match self {
            Self::SelectiveRepeat(_) => Self::ALL[0].0,
            Self::GoBackN(_) => Self::ALL[1].0,
        }
    }
    /// Every parameter with its default, meaning and source.
    pub fn describe(&self) -> Vec<ParameterInfo> {
        match self {
            Self::SelectiveRepeat(_) => SelectiveRepeatParameters::describe(),
            Self::GoBackN(_) => GoBackNParameters::describe(),
        }
    }
    /// Sets the parameter `key`.
    ///
    /// # Errors
    /// If the key does not exist or the value does not fit it.
    pub fn set(&mut self, key: &str, value: &Value) -> Result<(), SetError> {
        match self {
            Self::SelectiveRepeat(parameters) => parameters.set(key, value),
            Self::GoBackN(parameters) => parameters.set(key, value),
        }
    }
    /// Every parameter with its present value.
    pub fn entries(&self) -> Vec<(&'static str, Value)> {
        match self {
            Self::SelectiveRepeat(parameters) => parameters.entries(),
            Self::GoBackN(parameters) => parameters.entries(),
        }
    }
    /// The settings of selective repeat, if that is the scheme.
    pub fn selective_repeat_mut(&mut self) -> Option<&mut SelectiveRepeatParameters> {
        match self {
            Self::SelectiveRepeat(parameters) => Some(parameters),
            Self::GoBackN(_) => None,
        }
    }
    /// Full packets that an acknowledgement is for, if none is lost.
    fn packets_acknowledged(&self, network: &NetworkFacts) -> f64 {
        match self {
            Self::SelectiveRepeat(parameters) => match parameters.ack_bytes {
                Some(bytes) if !parameters.ack_in_order => {
                    (bytes.as_f64() / f64::from(network.payload.max(1))).max(1.0)
                }
                _ => 1.0,
            },
            Self::GoBackN(parameters) => parameters.ack_interval.get().into(),
        }
    }
    /// The retransmission timeout, before any backoff.
    fn timeout(&self) -> Span {
        match self {
            Self::SelectiveRepeat(parameters) => parameters.timeout,
            Self::GoBackN(parameters) => parameters.timeout,
        }
    }
    /// Time without any acknowledgement after which a sender probes, if it does.
    fn probe_after(&self, network: &NetworkFacts) -> Option<Span> {
        match self {
            Self::SelectiveRepeat(parameters) => parameters.probe_after_on(network),
            Self::GoBackN(_) => None,
        }
    }
    /// The retransmission timeout on a network, before any backoff.
    pub(crate) fn timeout_on(&self, network: &NetworkFacts) -> Span {
        match self {
            Self::SelectiveRepeat(parameters) => parameters.timeout_on(network),
            Self::GoBackN(parameters) => network.usable_timeout(parameters.timeout),
        }
    }
    /// True if control packets go before data.
    pub(crate) fn control_first(&self) -> bool {
        match self {
            Self::SelectiveRepeat(parameters) => parameters.control_first,
            Self::GoBackN(parameters) => parameters.control_first,
        }
    }
}

/// Settings that all flows of a run have in common. Both ends of a flow must have the same profile.
#[derive(Debug, Clone, PartialEq)]
pub struct Profile {
    /// Properties of the network that are known in advance.
    pub network: NetworkFacts,
    /// Acknowledgements, loss detection and retransmission.
    pub reliability: Reliability,
    /// The congestion controller.
    pub controller: ControllerSettings,
    /// Further settings of the controller, for flows that are to behave otherwise; see [`Opening::variant`].
    pub variants: Vec<ControllerSettings>,
    /// The path selector.
    pub selector: SelectorSettings,
    /// Reaction of receivers to congestion besides echoing marks.
    pub feedback: FeedbackSettings,
    /// Receiver credits.
    pub credit: CreditParameters,
    /// Queue pairs that one controller governs.
    pub scope: ScopeParameters,
    /// True if data of a higher class goes before data of a lower one at a NIC; else classes take turns.
    pub strict_priority: bool,
}

impl Profile {
    /// STrack with adaptive spraying and the defaults of its paper.
    pub fn strack(network: NetworkFacts) -> Self {
        Self {
            network,
            reliability: Reliability::default(),
            controller: ControllerSettings::Strack(Default::default()),
            variants: Vec::new(),
            selector: SelectorSettings::Adaptive(Default::default()),
            feedback: FeedbackSettings::default(),
            credit: CreditParameters::default(),
            scope: ScopeParameters::default(),
            strict_priority: false,
        }
    }

    /// The controller settings of a flow.
    ///
    /// # Panics
    /// If the profile has no such variant.
    pub fn controller_of(&self, variant: u16) -> &ControllerSettings {
        match variant {
            0 => &self.controller,
            further => &self.variants[usize::from(further) - 1],
        }
    }

    /// Agent of the link with a number and a capacity; `None` unless the controller is one of a rate allocation.
    pub fn link_agent(&self, number: u32, capacity: Rate) -> Option<LinkAgent> {
        let controller = self.controller.build(&self.network);
        let allocation = controller.allocation()?;
        let parameters = allocation.link(&self.network, capacity, self.acknowledgements());
        Some(LinkAgent::new(number, &parameters))
    }

    /// Bytes of acknowledgements for each byte of data on the wire.
    pub(crate) fn acknowledgements(&self) -> f64 {
        let network = &self.network;
        let packet = f64::from(network.payload + network.header);
        let packets = self.reliability.packets_acknowledged(network);
        f64::from(network.ack) / (packet.max(1.0) * packets)
    }

    /// The paths of the sender with the number `entity`, which sees the network so.
    pub(crate) fn paths(&self, network: &NetworkFacts, entity: u64, seed: u64) -> Paths {
        let timers = (
            self.reliability.timeout(),
            self.reliability.probe_after(network),
        );
        Paths::new(&self.selector, network, timers, entity, seed)
    }

    /// Source ports of the first `packets` packets of a flow, one list for each of its queue pairs, if nothing is marked and its
    /// window is wide open. ECMP picks the routes by these ports.
    pub fn source_ports(&self, flow: FlowId, seed: u64, packets: usize) -> Vec<Vec<u16>> {
        let queue_pairs = match &self.reliability {
            Reliability::SelectiveRepeat(_) => 1,
            Reliability::GoBackN(parameters) => parameters.queue_pairs(),
        };
        let state = SendState {
            now: Time::ZERO,
            window: f64::from(u16::MAX),
            in_flight: Bytes::ZERO,
        };
        let ports = |queue_pair| {
            let entity = entity(flow, queue_pair);
            let mut paths = self.paths(&self.network, entity, seed);
            let next = || paths.next_port(&state);
            std::iter::repeat_with(next).take(packets).collect()
        };
        (0..queue_pairs).map(ports).collect()
    }

    /// Payload of a message of `bytes` on each queue pair that carries a part of it.
    pub fn parts(&self, bytes: Bytes) -> Vec<Bytes> {
        match &self.reliability {
            Reliability::SelectiveRepeat(_) => vec![bytes],
            Reliability::GoBackN(parameters) => parameters.parts(bytes, &self.network),
        }
    }

    /// Bytes of the largest packet that endpoints with this profile send.
    pub fn largest_packet(&self) -> u16 {
        let network = &self.network;
        let control = self.controllers().filter_map(|settings| {
            let controller = settings.build(network);
            controller.allocation().map(|allocation| allocation.control)
        });
        let usual = (network.payload + network.header).max(network.ack);
        let largest = control.fold(usual, u32::max);
        u16::try_from(largest).unwrap_or(u16::MAX)
    }

    /// True if switches are to write telemetry onto packets.
    pub fn uses_telemetry(&self) -> bool {
        let mut controllers = self.controllers();
        controllers.any(|settings| settings.build(&self.network).uses_telemetry())
    }

    /// All controller settings: first the settings of most flows, then the variants.
    pub fn controllers(&self) -> impl Iterator<Item = &ControllerSettings> {
        std::iter::once(&self.controller).chain(&self.variants)
    }
}

/// Facts that a sender is given when its flow opens, besides the receiver.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Opening {
    /// Class of the flow's data, other than control; usually [`Class::DATA`].
    pub class: Class,
    /// Path to the receiver and back.
    pub path: PathFacts,
    /// Index of the controller's settings: 0 for the profile's own, n for its n-th [variant](Profile::variants).
    pub variant: u16,
    /// Payload of a communication phase: the flow sends so many bytes, completes them, and begins the next phase. Zero if unknown.
    pub phase: Bytes,
}

impl Opening {
    /// Creates the opening of an ordinary flow: settings of the profile, one phase of unknown length.
    pub const fn usual(class: Class, path: PathFacts) -> Self {
        Self {
            class,
            path,
            variant: 0,
            phase: Bytes::ZERO,
        }
    }
}
