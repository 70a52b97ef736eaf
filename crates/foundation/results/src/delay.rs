//! Parts of a flow's completion time.

/// Part of a flow's completion time: a share of the time on its critical path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DelayPart {
    /// Bits of the flow on the wire of a link, one after another.
    Serialisation,
    /// Flight over cables.
    Propagation,
    /// Latency of switches.
    SwitchLatency,
    /// In front of a link, behind packets of other flows.
    Queueing,
    /// In front of a link that flow control held back.
    Pause,
    /// Held back by the rate of congestion control.
    Pacing,
    /// Held back by the window.
    Window,
    /// Held back for lack of credit from the receiver.
    Credit,
    /// From the transmission of a packet that was lost, or of others lost with it, to its retransmission.
    Recovery,
    /// For the application: computations, and messages of others.
    Waiting,
    /// Time that the records do not explain.
    Unexplained,
}

impl DelayPart {
    /// All parts, in the order in which they are shown.
    pub const ALL: [Self; 11] = [
        Self::Serialisation,
        Self::Propagation,
        Self::SwitchLatency,
        Self::Queueing,
        Self::Pause,
        Self::Pacing,
        Self::Window,
        Self::Credit,
        Self::Recovery,
        Self::Waiting,
        Self::Unexplained,
    ];

    /// Name of the part, in tables and files.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Serialisation => "serialisation",
            Self::Propagation => "propagation",
            Self::SwitchLatency => "switch latency",
            Self::Queueing => "queueing",
            Self::Pause => "pause",
            Self::Pacing => "pacing",
            Self::Window => "window",
            Self::Credit => "credit",
            Self::Recovery => "recovery",
            Self::Waiting => "waiting",
            Self::Unexplained => "unexplained",
        }
    }

    /// Meaning of the part.
    pub const fn meaning(self) -> &'static str {
        match self {
            Self::Serialisation => "bits of the flow on the wire of a link, one after another",
            Self::Propagation => "flight over cables",
            Self::SwitchLatency => "latency of switches",
            Self::Queueing => "in front of a link, behind packets of other flows",
            Self::Pause => "in front of a link that flow control (PFC) held back",
            Self::Pacing => "held back by the rate of congestion control",
            Self::Window => "held back by the window: round trips, without the queueing in them",
            Self::Credit => "held back for want of credit from the receiver",
            Self::Recovery => "from the transmission of a lost packet to its retransmission",
            Self::Waiting => "for the application: computations, and messages of others",
            Self::Unexplained => "not explained by the recorded events",
        }
    }
}
