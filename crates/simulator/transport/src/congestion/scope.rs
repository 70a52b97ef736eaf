//! Enforcement scope of congestion control: the queue pairs that one controller governs.
//!
//! The InfiniBand specification controls each queue pair, so a user gets as many shares of a link as he opens queue pairs (Snyder §3.4).
//! A wider scope makes more queue pairs answer to one controller:
//!
//! | scope | controllers | shared by queue pairs |
//! |---|---|---|
//! | `queue-pair` | one for each queue pair | nothing |
//! | `destination` | one for each destination of a NIC | its state; each queue pair has the whole rate and the whole window |
//! | `pair` | one for each destination of a NIC | its state, rate and window; queue pairs take turns |
//! | `service-level` | one for each class of a NIC | its state, rate and window; queue pairs take turns |
//! | `host` | one for each queue pair | nothing, but each has 1/k of rate and window, with k open connections at the NIC |
//!
//! `destination` is what Snyder §3.6.1 found ConnectX-5 to do: two queue pairs of a group that is at 30 Gb/s send 60 Gb/s. `pair` is the
//! enforcement that §3.4.1 and §3.7 propose. `host` is the weight of chapter 5: with s-PERC and 1RC links take it into account, with any
//! other controller it scales the controller's allowance.
//!
//! # Decisions
//! * A host of the simulator is a NIC, so the source of a pair is a NIC, and the queue pairs of a host with two NICs are separate.
//! * A controller of a scope lives on when all of its queue pairs are closed, and a queue pair that opens later finds it as it is; timers
//!   catch up when somebody sends again (DCQCN recovers, HPCC is frozen, §3.7). After [`idle`](ScopeParameters::idle) it is forgotten.
//! * A controller that governs several senders is told the sums over them: bytes in flight, delivered and sent.
//!   [`CongestionControl::select_sender`](crate::congestion::CongestionControl::select_sender) tells whose acknowledgement comes next.
//! * Flows with other settings of their controller ([`Opening::variant`](crate::Opening::variant)) have a separate controller in each
//!   scope.
//! * Open connections have something to send or to be acknowledged. A connection of a training job that waits for its next iteration takes
//!   no share from others. With more than 64 of them, one that is not called hears of their number when it has changed by a 64th: telling
//!   thousands of each beginning and end would take longer than all packets.
//! * A service level has flows to many destinations, so its controller is given the longest path of the network.

use crate::congestion::Allowance;
use crate::endpoint::flow::Pacer;
use crate::packet::Class;
use clearway_units::{Bytes, HostId, Rate, Span};
use std::fmt;

clearway_units::choices! {
    /// Queue pairs that one congestion controller governs.
    pub enum Scope {
        /// One queue pair, as the InfiniBand specification has it.
        QueuePair = "queue-pair",
        /// All queue pairs to a destination, each of which sends at the rate of the one controller.
        Destination = "destination",
        /// All queue pairs to a destination, which share rate and window.
        Pair = "pair",
        /// All queue pairs of a service level, which share rate and window.
        ServiceLevel = "service-level",
        /// One queue pair, with the weight 1/k of a NIC with k open connections.
        Host = "host",
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Scope {
    /// True if one controller governs several queue pairs.
    pub const fn shares_controller(self) -> bool {
        matches!(self, Self::Destination | Self::Pair | Self::ServiceLevel)
    }

    /// True if queue pairs share rate and window.
    pub(crate) const fn shares_allowance(self) -> bool {
        matches!(self, Self::Pair | Self::ServiceLevel)
    }

    /// The group of a queue pair; `None` if it is alone.
    pub(crate) fn group_of(self, peer: HostId, class: Class, variant: u16) -> Option<GroupKey> {
        let key = match self {
            Self::QueuePair => return None,
            Self::Destination | Self::Pair => GroupKey::Peer(peer, variant),
            Self::ServiceLevel => GroupKey::Class(class, variant),
            Self::Host => GroupKey::Host,
        };
        Some(key)
    }
}

clearway_units::parameters! {
    /// Settings of the enforcement scope.
    pub struct ScopeParameters {
        /// Queue pairs that one congestion controller governs: queue-pair, destination, pair, service-level or host.
        pub scope: Scope = Scope::QueuePair, "scope", "InfiniBand; Snyder §3.4.1 has the others";
        /// Time without packets after which the state of a scope is forgotten; `"auto"` is never.
        pub idle: Option<Span> = None, "scope-idle", "Snyder §3.7: HPCC's state stays frozen";
    }
}

/// Queue pairs of an endpoint that are in one scope.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum GroupKey {
    /// Queue pairs to one peer, with one variant of settings.
    Peer(HostId, u16),
    /// Queue pairs of one class, with one variant of settings.
    Class(Class, u16),
    /// All queue pairs.
    Host,
}

/// Payload of a sender, or of all senders of a scope.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Account {
    /// Bytes in flight, with their sign.
    pub(crate) in_flight: i64,
    /// Bytes that receivers have reported.
    pub(crate) delivered: u64,
}

impl Account {
    /// The account without the part `own` of it.
    pub(crate) fn without(self, own: Self) -> Self {
        Self {
            in_flight: self.in_flight - own.in_flight,
            delivered: self.delivered - own.delivered,
        }
    }

    /// The account with the part `own` added.
    pub(crate) fn with(self, own: Self) -> Self {
        Self {
            in_flight: self.in_flight + own.in_flight,
            delivered: self.delivered + own.delivered,
        }
    }
}

/// A sender's knowledge of the other senders of its scope.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Others {
    /// Account of the others, which the controller is told together with the sender's own.
    pub(crate) account: Account,
    /// Bytes that they have in flight in a window that the sender shares.
    pub(crate) in_window: i64,
    /// The sender's part of its controller's allowance.
    pub(crate) share: f64,
}

/// The part of a sender's state that a scope shares.
pub(crate) struct Shared<'a> {
    pub(crate) others: &'a mut Others,
    pub(crate) pacer: &'a mut Pacer,
}

impl Others {
    /// Bytes in flight of all senders, of which this one has `own`.
    #[inline]
    pub(crate) fn in_flight_with(&self, own: i64) -> Bytes {
        Bytes::new((own + self.account.in_flight).max(0) as u64)
    }

    /// Bytes that have arrived of all senders, of which this one has `own`.
    #[inline]
    pub(crate) fn delivered_with(&self, own: u64) -> Bytes {
        Bytes::new(own + self.account.delivered)
    }

    /// The sender's part of its controller's allowance.
    #[inline]
    pub(crate) fn part_of(&self, allowance: Allowance) -> Allowance {
        if self.share == 1.0 {
            return allowance;
        }
        let part = |rate: Rate| Rate::from_bps((rate.as_bps() as f64 * self.share).max(1.0) as u64);
        Allowance {
            window: allowance.window * self.share,
            rate: allowance.rate.map(part),
        }
    }

    /// A sender that is alone.
    pub(crate) const NONE: Self = Self {
        account: Account {
            in_flight: 0,
            delivered: 0,
        },
        in_window: 0,
        share: 1.0,
    };
}
