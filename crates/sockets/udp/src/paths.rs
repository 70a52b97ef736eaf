//! Paths of a connection: address validation, and detection of dead paths.
//!
//! A path is a socket of the client: routers that hash ports send different paths over different routes, in both directions. Each packet
//! carries the number of its path. The server sends to the source address of the path's packets, once this address has answered a
//! challenge.
//!
//! A path is up once it has answered a challenge as long as the longest datagram. A server sends a short challenge to an unknown address,
//! because its host may not have asked for it. A long challenge follows the answer.
//!
//! A path is down when it is [dead](PathSilence::is_dead), the same test as in the transport's spraying. A path that is down gets only
//! challenges, at growing intervals, until it answers one. If it goes down again soon afterwards, the next challenge waits, longer each
//! time: such a path carries challenges and loses data. The last path that is up never goes down.

use clearway_transport::paths::{DeadPathThreshold, PathSilence};
use clearway_units::{Span, Time};
use std::net::SocketAddr;

/// Consecutive unacknowledged packets after which a path can count as dead.
const UNANSWERED: u32 = 8;
/// A path counts as dead only if an acknowledged packet of another path was sent at least this long after the last of these packets.
const LEAST_LAG: Span = Span::from_ms(1);
/// Time after which a challenge is sent again, at first and at most.
const FIRST_RETRY: Span = Span::from_ms(20);
const LAST_RETRY: Span = Span::from_ms(1_000);
/// Time up after which the next failure of a path counts as its first.
const STEADY: Span = Span::from_ms(10_000);
/// Longest time before the first challenge of a path that has failed again.
const LAST_WAIT: Span = Span::from_ms(20_000);

/// Counters of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PathStatistics {
    /// Data packets and probes sent.
    pub sent: u64,
    /// Acknowledgements of these packets.
    pub answered: u64,
    /// Acknowledgements that echoed a congestion mark.
    pub marked: u64,
    /// Number of times that the path went down.
    pub downs: u64,
}

#[derive(Debug, Clone, Copy)]
struct Challenge {
    token: u64,
    sent: Time,
    to: SocketAddr,
    /// As long as the longest datagram.
    full: bool,
}

#[derive(Debug, Default)]
struct Path {
    /// The other end's address, if it is validated.
    address: Option<SocketAddr>,
    /// An address to validate.
    candidate: Option<SocketAddr>,
    up: bool,
    challenge: Option<Challenge>,
    /// Time of the next challenge, and the span to the one after it.
    challenge_at: Option<Time>,
    retry: Span,
    /// Packets since the last acknowledgement.
    unanswered: PathSilence,
    /// Time at which the path came up again, if it was down, and failures since its last steady period.
    recovered: Option<Time>,
    relapses: u32,
    statistics: PathStatistics,
}

/// A challenge to send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Due {
    pub(crate) path: u8,
    pub(crate) to: SocketAddr,
    pub(crate) token: u64,
    /// Pad to the longest datagram.
    pub(crate) full: bool,
}

/// Result of the answer to a challenge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Validated {
    pub(crate) round_trip: Span,
    /// The challenge was as long as the longest datagram.
    pub(crate) full: bool,
    /// The path was down or new.
    pub(crate) came_up: bool,
}

/// The paths of a connection.
#[derive(Debug)]
pub(crate) struct Paths {
    paths: Vec<Path>,
    /// True at the client, which trusts the server's address on every path.
    is_client: bool,
    /// The path that last replaced a dead one.
    substitute: u8,
    round_trip: Option<Span>,
}

impl Paths {
    /// Paths of a client: all lead to the server's address, and the handshake's path is known to work.
    pub(crate) fn client(count: u8, (path, server): (u8, SocketAddr), now: Time) -> Self {
        let mut paths = Self::server(count, server);
        paths.is_client = true;
        let known = usize::from(path) % paths.paths.len();
        paths.paths.swap(0, known);
        for path in &mut paths.paths {
            path.candidate = Some(server);
            path.challenge_at = Some(now);
        }
        paths
    }

    /// Paths of a server: the first leads to the source of the handshake.
    pub(crate) fn server(count: u8, client: SocketAddr) -> Self {
        let mut paths: Vec<_> = (0..count.max(1)).map(|_| Path::default()).collect();
        paths[0].address = Some(client);
        paths[0].up = true;
        Self {
            paths,
            is_client: false,
            substitute: 0,
            round_trip: None,
        }
    }

    pub(crate) fn len(&self) -> u8 {
        self.paths.len() as u8
    }

    #[cfg(test)]
    fn is_up(&self, path: u8) -> bool {
        self.paths
            .get(usize::from(path))
            .is_some_and(|path| path.up)
    }

    pub(crate) fn statistics(&self) -> impl Iterator<Item = (bool, PathStatistics)> + '_ {
        self.paths.iter().map(|path| (path.up, path.statistics))
    }

    /// Records the source address of an authentic packet of a path.
    #[inline]
    pub(crate) fn on_packet(&mut self, now: Time, path: u8, from: SocketAddr) {
        let Some(path) = self.paths.get_mut(usize::from(path)) else {
            return;
        };
        if path.address == Some(from) {
            // The client used the other address only for a moment, or somebody else sent a copy from there.
            if path.up && path.candidate.take().is_some() {
                path.challenge = None;
                path.challenge_at = None;
            }
        } else if path.candidate != Some(from) {
            path.candidate = Some(from);
            path.challenge = None;
            path.retry = FIRST_RETRY;
            path.challenge_at = Some(now);
        }
    }

    /// Challenges all paths with an address now.
    pub(crate) fn challenge_all(&mut self, now: Time) {
        for path in &mut self.paths {
            if path.candidate.or(path.address).is_some() {
                path.challenge = None;
                path.retry = Span::ZERO;
                path.challenge_at = Some(now);
            }
        }
    }

    /// The next challenge that is due, with a token from `token`. If `keeps`, it repeats the last one, so that a late answer to any copy
    /// counts; the round trip is then that of the first copy.
    pub(crate) fn poll_challenge(
        &mut self,
        now: Time,
        keeps: bool,
        token: impl FnOnce() -> u64,
    ) -> Option<Due> {
        let due = |path: &Path| path.challenge_at.is_some_and(|at| at <= now);
        let index = self.paths.iter().position(due)?;
        let path = &mut self.paths[index];
        let Some(to) = path.candidate.or(path.address) else {
            path.challenge_at = None;
            return None;
        };
        path.retry = (path.retry * 2).clamp(FIRST_RETRY, LAST_RETRY);
        path.challenge_at = Some(now + path.retry);
        let full = self.is_client || path.address == Some(to);
        let known = path.challenge.filter(|challenge| {
            let is_same = (challenge.to, challenge.full) == (to, full);
            keeps && is_same
        });
        let challenge = known.unwrap_or_else(|| Challenge {
            token: token(),
            sent: now,
            to,
            full,
        });
        path.challenge = Some(challenge);
        Some(Due {
            path: index as u8,
            to,
            token: challenge.token,
            full,
        })
    }

    /// Time at which [`poll_challenge`](Self::poll_challenge) has one.
    pub(crate) fn deadline(&self) -> Time {
        let times = self.paths.iter().filter_map(|path| path.challenge_at);
        times.min().unwrap_or(Time::NEVER)
    }

    /// Takes the answer to a challenge; `None` if it matches no challenge.
    pub(crate) fn on_response(
        &mut self,
        now: Time,
        path: u8,
        from: SocketAddr,
        token: u64,
    ) -> Option<Validated> {
        let path = self.paths.get_mut(usize::from(path))?;
        let challenge = path
            .challenge
            .filter(|c| c.token == token && c.to == from)?;
        let came_up = challenge.full && !path.up;
        let recovers = came_up && path.statistics.downs > 0;
        *path = Path {
            address: Some(challenge.to),
            up: path.up || came_up,
            challenge_at: (!challenge.full).then_some(now),
            recovered: if recovers { Some(now) } else { path.recovered },
            relapses: path.relapses,
            statistics: path.statistics,
            ..Path::default()
        };
        let round_trip = now.since(challenge.sent);
        self.observe(round_trip);
        Some(Validated {
            round_trip,
            full: challenge.full,
            came_up,
        })
    }

    /// The path to use if `wanted` was chosen, and its address: `wanted` if it is up, else another path that is up.
    #[inline]
    pub(crate) fn usable(&mut self, wanted: u8) -> (u8, SocketAddr) {
        if let Some(path) = self.paths.get(usize::from(wanted))
            && path.up
            && let Some(address) = path.address
        {
            return (wanted, address);
        }
        self.next_up()
    }

    /// A path that is up, another one at each call, and its address.
    pub(crate) fn next_up(&mut self) -> (u8, SocketAddr) {
        for _ in 0..self.paths.len() {
            self.substitute = (self.substitute + 1) % self.len();
            let path = &self.paths[usize::from(self.substitute)];
            if let (true, Some(address)) = (path.up, path.address) {
                return (self.substitute, address);
            }
        }
        // At least one path is up and has had an address since the handshake.
        let known = self.paths.iter().position(|path| path.address.is_some());
        let index = known.unwrap_or(0);
        let address = self.paths[index].address;
        (
            index as u8,
            address.expect("the path of the handshake has an address"),
        )
    }

    /// Records a sent data packet or probe.
    #[inline]
    pub(crate) fn on_sent(&mut self, now: Time, path: u8) {
        let path = &mut self.paths[usize::from(path)];
        path.unanswered.on_sent(now, UNANSWERED);
        path.statistics.sent += 1;
    }

    /// Records an acknowledgement of a packet of `path` sent at `stamp`. Returns a path that has gone down.
    #[inline]
    pub(crate) fn on_answer(
        &mut self,
        now: Time,
        path: u8,
        stamp: Time,
        marked: bool,
    ) -> Option<u8> {
        self.observe(now.since(stamp));
        let path = self.paths.get_mut(usize::from(path))?;
        path.unanswered.on_answer();
        path.statistics.answered += 1;
        path.statistics.marked += u64::from(marked);
        self.look_for_dead(now, stamp)
    }

    fn observe(&mut self, round_trip: Span) {
        self.round_trip = Some(match self.round_trip {
            None => round_trip,
            Some(average) => average - average / 8 + round_trip / 8,
        });
    }

    /// Looks for a dead path, when a packet sent at `stamp` is acknowledged.
    fn look_for_dead(&mut self, now: Time, stamp: Time) -> Option<u8> {
        let lag = self
            .round_trip
            .map_or(LEAST_LAG, |rtt| (rtt * 2).max(LEAST_LAG));
        let after = DeadPathThreshold {
            packets: UNANSWERED,
            lag,
        };
        let dead = |path: &Path| path.up && path.unanswered.is_dead(stamp, after);
        let index = self.paths.iter().position(dead)?;
        if self.paths.iter().filter(|path| path.up).count() < 2 {
            return None;
        }
        self.paths[index].go_down(now);
        Some(index as u8)
    }
}

impl Path {
    fn go_down(&mut self, now: Time) {
        let is_relapse = |since| now.since(since) < STEADY;
        self.relapses = match self.recovered {
            Some(since) if is_relapse(since) => self.relapses.saturating_add(1),
            _ => 0,
        };
        let doublings = self.relapses.checked_sub(1);
        let wait = doublings.map_or(Span::ZERO, |doublings| {
            FIRST_RETRY * (1 << doublings.min(16))
        });
        self.up = false;
        self.statistics.downs += 1;
        self.retry = FIRST_RETRY;
        self.challenge_at = Some(now + wait.min(LAST_WAIT));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(port: u16) -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], port))
    }

    fn validate(paths: &mut Paths, now: Time) -> Vec<u8> {
        let mut up = Vec::new();
        let mut token = 100;
        while let Some(due) = paths.poll_challenge(now, false, || token) {
            token += 1;
            let answered = paths.on_response(now, due.path, due.to, due.token).unwrap();
            if answered.came_up {
                up.push(due.path);
            }
        }
        up
    }

    #[test]
    fn paths_are_used_once_they_have_answered() {
        let mut paths = Paths::client(3, (0, address(1)), Time::ZERO);
        assert_eq!(paths.usable(2), (0, address(1)));
        assert_eq!(validate(&mut paths, Time::ZERO), [1, 2]);
        assert_eq!(paths.usable(2), (2, address(1)));
        assert_eq!(paths.deadline(), Time::NEVER);
    }

    #[test]
    fn an_address_that_changes_is_validated_first() {
        let mut paths = Paths::server(2, address(1));
        paths.on_packet(Time::ZERO, 0, address(9));
        assert_eq!(paths.usable(0), (0, address(1)));
        let due = paths.poll_challenge(Time::ZERO, false, || 5).unwrap();
        assert_eq!((due.to, due.token), (address(9), 5));
        let wrong = [(0, address(9), 6), (1, address(9), 5), (0, address(8), 5)];
        for (path, from, token) in wrong {
            assert_eq!(paths.on_response(Time::ZERO, path, from, token), None);
        }
        assert!(paths.on_response(Time::ZERO, 0, address(9), 5).is_some());
        assert_eq!(paths.usable(0), (0, address(9)));
        assert_eq!(validate(&mut paths, Time::ZERO), []);
        // Challenges are few, however many packets come.
        paths.on_packet(Time::ZERO, 1, address(10));
        assert!(paths.poll_challenge(Time::ZERO, false, || 1).is_some());
        (0..100).for_each(|_| paths.on_packet(Time::ZERO, 1, address(10)));
        assert_eq!(paths.poll_challenge(Time::ZERO, false, || 1), None);
    }

    #[test]
    fn long_challenges_go_to_addresses_that_have_answered() {
        let mut paths = Paths::server(2, address(1));
        paths.on_packet(Time::ZERO, 1, address(2));
        for (full, comes_up) in [(false, false), (true, true)] {
            assert_eq!(paths.usable(1), (0, address(1)));
            let due = paths.poll_challenge(Time::ZERO, false, || 5).unwrap();
            assert_eq!((due.to, due.full), (address(2), full));
            let answer = paths.on_response(Time::ZERO, 1, address(2), 5).unwrap();
            assert_eq!(answer.came_up, comes_up);
        }
        assert_eq!(paths.usable(1), (1, address(2)));
        assert_eq!(paths.deadline(), Time::NEVER);
        // A path that is up goes on at the new address while the long one is under way.
        paths.on_packet(Time::ZERO, 1, address(3));
        assert!(!paths.poll_challenge(Time::ZERO, false, || 6).unwrap().full);
        paths.on_response(Time::ZERO, 1, address(3), 6).unwrap();
        assert_eq!(paths.usable(1), (1, address(3)));
        assert!(paths.poll_challenge(Time::ZERO, false, || 7).unwrap().full);
        // The client knows whose address it is.
        let mut paths = Paths::client(2, (0, address(1)), Time::ZERO);
        assert!(paths.poll_challenge(Time::ZERO, false, || 5).unwrap().full);
    }

    /// Two paths that are up, of which the second has had so many packets without an answer by `now`.
    fn with_silent(now: Time, unanswered: u32) -> Paths {
        let mut paths = Paths::client(2, (0, address(1)), Time::ZERO);
        validate(&mut paths, Time::ZERO);
        (0..unanswered).for_each(|_| paths.on_sent(now, 1));
        paths
    }

    #[test]
    fn a_pause_is_no_silence() {
        // What was not answered before the pause are few, and those after it are young.
        let mut paths = with_silent(Time::from_us(10), UNANSWERED - 1);
        let after = Time::from_us(1_000_000);
        (0..UNANSWERED).for_each(|_| paths.on_sent(after, 1));
        paths.on_sent(after, 0);
        let answer = |paths: &mut Paths, stamp| paths.on_answer(stamp, 0, stamp, false);
        assert_eq!(answer(&mut paths, after), None);
        assert_eq!(answer(&mut paths, after + LEAST_LAG), None);
        let late = after + LEAST_LAG + Span::from_us(1);
        assert_eq!(answer(&mut paths, late), Some(1));
    }

    #[test]
    fn a_path_that_carries_challenges_and_no_data_is_tried_ever_more_seldom() {
        let mut now = Time::from_us(10);
        let mut paths = with_silent(now, 0);
        let mut waits = Vec::new();
        for _ in 0..14 {
            (0..UNANSWERED).for_each(|_| paths.on_sent(now, 1));
            now += Span::from_ms(10);
            assert_eq!(paths.on_answer(now, 0, now, false), Some(1));
            waits.push(paths.deadline().since(now));
            now = paths.deadline();
            assert_eq!(validate(&mut paths, now), [1]);
        }
        assert_eq!(waits[..3], [0, 20, 40].map(Span::from_ms));
        assert_eq!(waits[11..], [LAST_WAIT; 3]);
        // Once it has been up for a while it is tried at once.
        now += STEADY;
        (0..UNANSWERED).for_each(|_| paths.on_sent(now, 1));
        now += Span::from_ms(10);
        assert_eq!(paths.on_answer(now, 0, now, false), Some(1));
        assert_eq!(paths.deadline(), now);
    }

    #[test]
    fn a_silent_path_goes_down_and_comes_back_and_the_last_one_stays() {
        let mut paths = Paths::client(2, (0, address(1)), Time::ZERO);
        validate(&mut paths, Time::ZERO);
        let mut down = Vec::new();
        for ms in 0..20 {
            let now = Time::from_us(ms * 1000);
            paths.on_sent(now, 0);
            paths.on_sent(now, 1);
            down.extend(paths.on_answer(now, 0, now, false));
        }
        assert_eq!(down, [1]);
        assert_eq!(paths.usable(1), (0, address(1)));
        // Without any answers nothing changes.
        for ms in 20..2000 {
            paths.on_sent(Time::from_us(ms * 1000), 0);
        }
        assert!(paths.is_up(0));
        assert_eq!(validate(&mut paths, Time::from_us(2_000_000)), [1]);
        assert_eq!(paths.usable(1), (1, address(1)));
    }
}
