//! The accounts of a shared buffer: dynamic thresholds, reserves, headroom.
//!
//! Each port and lossless class has its own *reserve*, then takes from the shared *pool* up to a threshold that falls as the pool fills,
//! `alpha × (pool - used)`. Packets that arrive beyond it, while the sender at the other end is being paused, go to the *headroom* of the
//! port. All accounts belong to the ingress port, where the flow comes in that has to be stopped. Lossy classes only take from the pool.
//!
//! A packet that fits into reserve and threshold takes nothing of the headroom. A packet that does not fit goes there with all of its
//! bytes. Bytes that leave are taken from the headroom first. The threshold is in whole bytes, rounded down. A class of a port is paused
//! when one of its packets has come in and the headroom is not empty, or the threshold (as it is with that packet) is reached. It may go on
//! when one of its packets has left, if the headroom is empty and it is in its reserve or far enough below the threshold. Bytes that other
//! classes release do not resume it.
//!
//! So a paused class always has packets of its own in the switch, even with a reserve of zero: it is paused when one has come in, and when
//! the last one leaves, headroom and pool hold nothing of it, and it may go on. And as long as it is not paused, its headroom is empty:
//! it has room for the next packet whatever other classes have taken from the pool.

use super::super::parameters::BufferRules;
use clearway_transport::{Class, ClassSet};

/// Bytes of one class that came in through one port.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Account {
    /// In the reserve and in the pool.
    bytes: u64,
    headroom: u64,
}

#[derive(Debug)]
struct IngressPort {
    alpha: Alpha,
    /// Headroom of each lossless class.
    headroom: u64,
    /// Classes whose sender has to be stopped.
    paused: ClassSet,
    accounts: [Account; Class::COUNT],
}

/// The factor of dynamic thresholds.
#[derive(Debug, Clone, Copy)]
enum Alpha {
    /// `2^-n`, as by default: a shift instead of two conversions.
    Shift(u8),
    Factor(f64),
}

impl Alpha {
    fn new(alpha: f64) -> Self {
        let shifts = (0..64).find(|&n| alpha == 2f64.powi(-n));
        shifts.map_or(Self::Factor(alpha), |n| Self::Shift(n as u8))
    }

    /// The dynamic threshold: how much of the pool one class of a port may take.
    #[inline]
    fn share(self, free: u64) -> u64 {
        match self {
            Self::Shift(n) => free >> n,
            Self::Factor(alpha) => (free as i64 as f64 * alpha) as u64,
        }
    }
}

/// Admission decision about a packet of a lossless class.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Admission {
    /// Not even the headroom has room.
    Refused,
    Admitted,
    /// Admitted, and from now on its sender has to be stopped.
    Pauses,
}

/// A shared buffer.
#[derive(Debug)]
pub(super) struct Buffer {
    lossless: ClassSet,
    reserve: u64,
    resume_offset: u64,
    /// Bytes of the pool (the buffer without reserves and headrooms), and bytes of it in use.
    pool: u64,
    used: u64,
    ports: Vec<IngressPort>,
    /// The least factor of all ports.
    least_alpha: Alpha,
    /// Number of accounts whose senders have to be stopped.
    pauses: u32,
}

/// Arrivals through a port in a round.
#[derive(Debug, Clone, Copy)]
pub(super) struct Incoming {
    pub(super) port: u16,
    pub(super) classes: ClassSet,
    pub(super) bytes: u64,
}

impl Buffer {
    pub(super) fn new(rules: &BufferRules) -> Self {
        let port = |&(alpha, headroom): &(f64, u64)| IngressPort {
            alpha: Alpha::new(alpha),
            headroom,
            paused: ClassSet::EMPTY,
            accounts: Default::default(),
        };
        let alphas = rules.ports.iter().map(|(alpha, _)| *alpha);
        let least = alphas.fold(f64::INFINITY, f64::min);
        Self {
            lossless: rules.lossless,
            reserve: rules.reserve,
            resume_offset: rules.resume_offset,
            // Thresholds are worked out with signed numbers.
            pool: rules.pool.min(i64::MAX as u64),
            used: 0,
            least_alpha: Alpha::new(least),
            ports: rules.ports.iter().map(port).collect(),
            pauses: 0,
        }
    }

    /// True if any sender has to be stopped.
    #[inline]
    pub(super) fn pauses_any(&self) -> bool {
        self.pauses > 0
    }

    /// True if `bytes` that arrive would [be taken without a pause](Self::takes_without_pause) whatever their ports and classes are: no
    /// account has more in the pool than is in use of it.
    #[inline]
    pub(super) fn takes_any(&self, bytes: u64) -> bool {
        let used = self.used + bytes;
        self.pool
            .checked_sub(used)
            .is_some_and(|free| used < self.least_alpha.share(free))
    }

    /// True if all arrivals are admitted without a pause, in any order of arrivals and departures, while no sender is stopped: even if
    /// nothing left, no account would reach its threshold. Then no admission and no release decides anything.
    #[inline]
    pub(super) fn takes_without_pause(&self, all: &[Incoming]) -> bool {
        let bytes: u64 = all.iter().map(|incoming| incoming.bytes).sum();
        let Some(free) = self.pool.checked_sub(self.used + bytes) else {
            return false;
        };
        all.iter().all(|incoming| {
            let port = &self.ports[usize::from(incoming.port)];
            let (mut left, mut held) = (incoming.classes, 0);
            while let Some(class) = left.highest() {
                left.remove(class);
                held = port.accounts[class.index()].bytes.max(held);
            }
            // The largest account stands for each class, and `free` is least when everything has arrived: thresholds only fall as the pool
            // fills.
            (held + incoming.bytes).saturating_sub(self.reserve) < port.alpha.share(free)
        })
    }

    /// As [`admit`](Self::admit), for a packet that [is known](Self::takes_without_pause) to pause nobody.
    #[inline]
    pub(super) fn admit_without_pause(&mut self, port: usize, class: Class, size: u64) {
        let account = &mut self.ports[port].accounts[class.index()];
        debug_assert_eq!(account.headroom, 0, "its sender would be stopped");
        account.bytes += size;
        self.used += size.min(account.bytes.saturating_sub(self.reserve));
    }

    #[inline]
    pub(super) fn is_lossless(&self, class: Class) -> bool {
        self.lossless.contains(class)
    }

    /// The lossless classes.
    pub(super) fn lossless(&self) -> ClassSet {
        self.lossless
    }

    /// Classes of `port` whose sender should be paused.
    #[inline]
    pub(super) fn paused(&self, port: usize) -> ClassSet {
        self.ports[port].paused
    }

    /// Takes in a packet of a lossy class if the pool has room.
    #[inline]
    pub(super) fn admit_lossy(&mut self, size: u64) -> bool {
        let fits = self.used + size <= self.pool;
        self.used += if fits { size } else { 0 };
        fits
    }

    /// A packet of a lossy class has left.
    #[inline]
    pub(super) fn release_lossy(&mut self, size: u64) {
        self.used -= size;
    }

    /// Takes in a packet of a lossless class that came in through `port`.
    #[inline]
    pub(super) fn admit(&mut self, port: usize, class: Class, size: u64) -> Admission {
        let free = self.pool - self.used;
        let port = &mut self.ports[port];
        let account = &mut port.accounts[class.index()];
        let shared = (account.bytes + size).saturating_sub(self.reserve);
        let from_pool = size.min(shared);
        if shared == 0 || (shared <= port.alpha.share(free) && from_pool <= free) {
            account.bytes += size;
            self.used += from_pool;
        } else if account.headroom + size <= port.headroom {
            account.headroom += size;
        } else {
            return Admission::Refused;
        }
        let shared = account.bytes.saturating_sub(self.reserve);
        // The threshold is evaluated again, because this packet may have lowered it.
        let beyond = account.headroom > 0 || shared >= port.alpha.share(self.pool - self.used);
        if beyond && !port.paused.contains(class) {
            port.paused.insert(class);
            self.pauses += 1;
            return Admission::Pauses;
        }
        Admission::Admitted
    }

    /// A packet of a lossless class that came in through `port` has left; true if its sender may go on from now on.
    #[inline]
    pub(super) fn release(&mut self, port: usize, class: Class, size: u64) -> bool {
        let index = port;
        let port = &mut self.ports[index];
        let account = &mut port.accounts[class.index()];
        let from_headroom = size.min(account.headroom);
        let rest = size - from_headroom;
        let shared = account.bytes.saturating_sub(self.reserve);
        account.headroom -= from_headroom;
        account.bytes -= rest;
        self.used -= rest.min(shared);
        port.paused.contains(class) && self.resumes(index, class)
    }

    /// A data packet has left while no sender is stopped.
    #[inline]
    pub(super) fn release_without_pause(&mut self, port: usize, class: Class, size: u64) {
        if self.is_lossless(class) {
            let account = &mut self.ports[port].accounts[class.index()];
            self.used -= size.min(account.bytes.saturating_sub(self.reserve));
            account.bytes -= size;
        } else {
            self.used -= size;
        }
    }

    fn resumes(&mut self, port: usize, class: Class) -> bool {
        let free = self.pool - self.used;
        let port = &mut self.ports[port];
        let threshold = port.alpha.share(free);
        let account = &port.accounts[class.index()];
        let shared = account.bytes.saturating_sub(self.reserve);
        let enough = shared.saturating_add(self.resume_offset) <= threshold;
        let below = account.headroom == 0 && (shared == 0 || enough);
        if below {
            port.paused.remove(class);
            self.pauses -= 1;
        }
        below
    }

    /// Bytes held, reserves and headroom included; for checks.
    #[cfg(test)]
    fn held(&self) -> (u64, u64) {
        let accounts = self.ports.iter().flat_map(|port| &port.accounts);
        let bytes = accounts.map(|account| account.bytes + account.headroom);
        (self.used, bytes.sum())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Three ports, reserve 10, pool 1000, headroom 50, alpha 1/4, 1/2 and 8, resume offset 5.
    fn buffer() -> Buffer {
        let mut lossless = ClassSet::EMPTY;
        lossless.insert(Class::DATA);
        Buffer::new(&BufferRules {
            lossless,
            reserve: 10,
            resume_offset: 5,
            pool: 1000,
            ports: vec![(0.25, 50), (0.5, 50), (8.0, 50)],
        })
    }

    #[test]
    fn shifts_are_the_factors_that_they_stand_for() {
        for alpha in [1.0, 0.5, 0.125, 1.0 / 1024.0] {
            let shift = Alpha::new(alpha);
            assert!(matches!(shift, Alpha::Shift(_)));
            for free in [0, 1, 7, 8, 9, 1023, 123_456_789, 1 << 40] {
                assert_eq!(shift.share(free), Alpha::Factor(alpha).share(free));
            }
        }
        assert!(matches!(Alpha::new(0.3), Alpha::Factor(_)));
        assert_eq!(Alpha::new(8.0).share(5), 40);
    }

    #[test]
    fn reserve_then_pool_then_headroom_then_drop() {
        let mut buffer = buffer();
        let held = |buffer: &Buffer| {
            let account = buffer.ports[0].accounts[1];
            (account.bytes, account.headroom, buffer.used)
        };
        assert_ne!(buffer.admit(0, Class::DATA, 10), Admission::Refused);
        assert_eq!(held(&buffer), (10, 0, 0), "within the reserve");
        // With u in use the threshold is (1000 - u)/4: it is met at 200.
        for _ in 0..19 {
            assert_ne!(buffer.admit(0, Class::DATA, 10), Admission::Refused);
            assert!(!buffer.paused(0).contains(Class::DATA));
        }
        assert_eq!(held(&buffer), (200, 0, 190));
        assert_ne!(buffer.admit(0, Class::DATA, 10), Admission::Refused);
        assert_eq!(held(&buffer), (210, 0, 200));
        assert!(buffer.paused(0).contains(Class::DATA), "it has its share");
        assert_ne!(buffer.admit(0, Class::DATA, 10), Admission::Refused);
        assert_eq!(held(&buffer), (210, 10, 200), "beyond the threshold");
        assert_ne!(buffer.admit(0, Class::DATA, 40), Admission::Refused);
        assert_eq!(buffer.admit(0, Class::DATA, 1), Admission::Refused);
        assert!(!buffer.paused(1).contains(Class::DATA), "port by port");
    }

    #[test]
    fn headroom_empties_first_and_the_sender_resumes_below_the_threshold() {
        let mut buffer = buffer();
        for _ in 0..21 {
            assert_ne!(buffer.admit(0, Class::DATA, 10), Admission::Refused);
        }
        assert_ne!(buffer.admit(0, Class::DATA, 20), Admission::Refused);
        assert!(buffer.paused(0).contains(Class::DATA));
        buffer.release(0, Class::DATA, 10);
        assert_eq!(buffer.ports[0].accounts[1].headroom, 10);
        buffer.release(0, Class::DATA, 10);
        // 200 + 5 is above the threshold of 200.
        assert!(buffer.paused(0).contains(Class::DATA));
        buffer.release(0, Class::DATA, 10);
        // 190 + 5 is below (1000 - 190)/4.
        assert!(!buffer.paused(0).contains(Class::DATA));
        for _ in 0..20 {
            buffer.release(0, Class::DATA, 10);
        }
        assert_eq!(buffer.held(), (0, 0));
    }

    #[test]
    fn an_offset_that_is_never_reached_resumes_within_the_reserve() {
        let mut buffer = buffer();
        buffer.resume_offset = u64::MAX;
        for _ in 0..21 {
            assert_ne!(buffer.admit(0, Class::DATA, 10), Admission::Refused);
        }
        assert!((1..20).all(|_| !buffer.release(0, Class::DATA, 10)));
        assert!(buffer.release(0, Class::DATA, 10), "ten bytes are left");
    }

    #[test]
    fn lossy_classes_share_the_pool() {
        let mut buffer = buffer();
        assert!(buffer.admit_lossy(990));
        assert!(!buffer.admit_lossy(11));
        assert_ne!(
            buffer.admit(0, Class::DATA, 10),
            Admission::Refused,
            "the reserve is left"
        );
        assert_ne!(
            buffer.admit(0, Class::DATA, 10),
            Admission::Refused,
            "and the headroom"
        );
        assert!(buffer.paused(0).contains(Class::DATA));
        buffer.release_lossy(990);
        buffer.release(0, Class::DATA, 10);
        buffer.release(0, Class::DATA, 10);
        assert_eq!(buffer.held(), (0, 0));
        assert!(!buffer.paused(0).contains(Class::DATA));
    }

    /// Arrival or departure of a packet at the buffer through one egress port.
    #[derive(Debug, Clone, Copy)]
    enum Step {
        Comes(usize, Class, u64),
        Leaves(usize, Class, u64),
    }

    /// A packet that is to come by one of three ports for one of two, its size, and whether it is lossless; and the packet for the same
    /// port that leaves then.
    fn comes() -> impl Strategy<Value = (usize, usize, u64, bool, prop::sample::Index)> {
        let ports = (0usize..3, 0usize..2);
        (ports, 1u64..60, any::<bool>(), any::<prop::sample::Index>()).prop_map(
            |((from, egress), size, lossless, leaves)| (from, egress, size, lossless, leaves),
        )
    }

    proptest! {
        /// Arrivals that are said to pause nobody do pause nobody, independent of departures, and accounts are the same egress port after
        /// egress port.
        #[test]
        fn what_is_taken_without_pause_pauses_nobody(
            alpha in prop::sample::select(vec![0.25, 0.3, 1.0]),
            before in prop::collection::vec((0usize..3, 1u64..60), 0..12),
            coming in prop::collection::vec(comes(), 0..20),
        ) {
            const LOSSY: Class = match Class::new(2) {
                Some(class) => class,
                None => Class::DATA,
            };
            let mut buffer = buffer();
            buffer.ports[0].alpha = Alpha::new(alpha);
            buffer.least_alpha = Alpha::new(0.25);
            let mut inside = [const { Vec::new() }; 2];
            for (at, (from, size)) in before.into_iter().enumerate() {
                if buffer.admit(from, Class::DATA, size) != Admission::Refused {
                    inside[at % 2].push((from, Class::DATA, size));
                }
            }
            let class = |lossless: bool| if lossless { Class::DATA } else { LOSSY };
            let all: Vec<Incoming> = (0..3).map(|port| {
                let of_port = || coming.iter().filter(|packet| packet.0 == port);
                let mut classes = ClassSet::EMPTY;
                of_port().for_each(|packet| classes.insert(class(packet.3)));
                Incoming { port: port as u16, classes, bytes: of_port().map(|packet| packet.2).sum() }
            }).collect();
            let bytes = all.iter().map(|incoming| incoming.bytes).sum();
            prop_assert!(buffer.takes_without_pause(&all) || !buffer.takes_any(bytes));
            prop_assume!(!buffer.pauses_any() && buffer.takes_without_pause(&all));
            let mut accounts = Buffer { ports: Vec::new(), ..buffer };
            accounts.ports.extend(buffer.ports.iter().map(|port| IngressPort { ..*port }));
            let mut steps = [const { Vec::new() }; 2];
            for (from, egress, size, lossless, leaves) in coming {
                let class = class(lossless);
                match lossless {
                    true => prop_assert_eq!(buffer.admit(from, class, size), Admission::Admitted),
                    false => prop_assert!(buffer.admit_lossy(size)),
                }
                steps[egress].push(Step::Comes(from, class, size));
                inside[egress].push((from, class, size));
                let place = leaves.index(inside[egress].len());
                let (from, class, size) = inside[egress].swap_remove(place);
                match class == Class::DATA {
                    true => prop_assert!(!buffer.release(from, class, size)),
                    false => buffer.release_lossy(size),
                }
                steps[egress].push(Step::Leaves(from, class, size));
            }
            for step in steps.into_iter().flatten() {
                match step {
                    Step::Comes(from, Class::DATA, size) => accounts.admit_without_pause(from, Class::DATA, size),
                    Step::Comes(_, _, size) => prop_assert!(accounts.admit_lossy(size)),
                    Step::Leaves(from, class, size) => accounts.release_without_pause(from, class, size),
                }
            }
            prop_assert_eq!(accounts.used, buffer.used);
            for (one, other) in accounts.ports.iter().zip(&buffer.ports) {
                prop_assert_eq!(one.accounts, other.accounts);
            }
        }

        /// After any sequence of arrivals and departures every byte is given back, and no sender without bytes in the buffer stays paused.
        #[test]
        fn every_byte_comes_back(
            reserve in 0u64..20,
            steps in prop::collection::vec((0usize..3, 1u64..60, any::<bool>()), 0..300),
        ) {
            let mut buffer = buffer();
            buffer.reserve = reserve;
            let mut inside = [const { Vec::new() }; 3];
            for (port, size, arrives) in steps {
                if arrives {
                    if buffer.admit(port, Class::DATA, size) != Admission::Refused {
                        inside[port].push(size);
                    }
                } else if let Some(size) = inside[port].pop() {
                    buffer.release(port, Class::DATA, size);
                }
                for (port, sizes) in inside.iter().enumerate() {
                    let is_paused = buffer.paused(port).contains(Class::DATA);
                    let headroom = buffer.ports[port].accounts[1].headroom;
                    prop_assert!(!is_paused || !sizes.is_empty(), "nothing is left to resume it");
                    prop_assert!(is_paused || headroom == 0, "the next packet finds room");
                }
                let held: u64 = inside.iter().flatten().sum();
                prop_assert_eq!(buffer.held().1, held);
                prop_assert!(buffer.used <= buffer.pool);
            }
            for (port, sizes) in inside.iter().enumerate() {
                for &size in sizes {
                    buffer.release(port, Class::DATA, size);
                }
                prop_assert!(!buffer.paused(port).contains(Class::DATA));
            }
            prop_assert_eq!(buffer.held(), (0, 0));
        }
    }
}
