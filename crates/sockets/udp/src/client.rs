//! The client's part of the handshake: the datagrams that the client sends until the server answers.
//!
//! The first Init asks for a cookie. The handshake message is bound to the cookie, so an Init is invalid from another address or at a later
//! time. The client keeps a cookie for a second and ignores further cookies for that long: each cookie needs another handshake message, and
//! one handshake cannot read the answer to another. After a second without an answer it takes another cookie. The first one may have been
//! repeated by the network, long after the server gave it.
//!
//! If no cookie arrives within a second, the client sends the next Init from the socket of another path, because the route of the first
//! path may be dead. A second is the longest round trip that connections support, so a cookie always belongs to the path on which it
//! arrives.

use crate::cookie;
use crate::noise;
use crate::random::Random;
use crate::settings::{Security, ServerName, Settings};
use crate::wire::{COOKIE, ConnectionId, Init, Parameters, VERSION};
use clearway_units::{Span, Time};
use std::net::SocketAddr;

/// Time after which an Init is sent again, at first and at most.
const FIRST_RETRY: Span = Span::from_ms(200);
const LAST_RETRY: Span = Span::from_ms(2_000);
/// Time without a cookie after which another path is tried, and time without an answer after which another cookie is taken: the longest
/// round trip.
const PATIENCE: Span = Span::from_ms(1_000);
/// Number of refusals, each of another Init, after which a client believes them, and the time between the Inits. A server also refuses an
/// Init that was damaged on its way.
const REFUSALS: u32 = 4;
const REFUSED_RETRY: Span = Span::from_ms(20);
/// Time for which the client uses a cookie: a second less than the server accepts the cookie.
const COOKIE_USE: Span = Span::from_ps(cookie::LIFETIME.as_ps() - 1_000_000_000_000);

/// A cookie, and the handshake that began with the cookie.
struct Attempt {
    cookie: [u8; COOKIE],
    since: Time,
    /// Time since which the client has had a cookie without a pause.
    began: Time,
    /// None without security.
    handshake: Option<noise::Handshake>,
    message: Vec<u8>,
}

/// A client that waits for the server.
pub(crate) struct Client {
    id: ConnectionId,
    server: SocketAddr,
    security: Security,
    server_name: Option<ServerName>,
    parameters: Vec<u8>,
    random: Random,
    attempt: Option<Attempt>,
    /// The path of the present Init, and since when; of so many.
    path: u8,
    path_since: Time,
    paths: u8,
    began: Time,
    /// Time of the last Init, number of copies of it so far, and time of the next.
    sent: Time,
    copies: u32,
    /// Number of refusals, and whether the server refused the last Init.
    refusals: u32,
    is_refused: bool,
    due: Time,
    retry: Span,
}

impl Client {
    pub(crate) fn new(
        settings: &Settings,
        id: ConnectionId,
        random: [u8; 32],
        now: Time,
        server: SocketAddr,
    ) -> Self {
        let mut parameters = Vec::new();
        settings.parameters(id).write(&mut parameters);
        Self {
            id,
            server,
            security: settings.security.clone(),
            server_name: settings.server_name.clone(),
            parameters,
            random: Random::new(&random),
            attempt: None,
            path: 0,
            path_since: now,
            paths: settings.paths,
            began: now,
            sent: now,
            copies: 0,
            refusals: 0,
            is_refused: false,
            due: now,
            retry: FIRST_RETRY,
        }
    }

    fn init<'a>(&self, cookie: Option<[u8; COOKIE]>, message: &'a [u8]) -> Init<'a> {
        const OFFER: [u8; 4] = VERSION.to_be_bytes();
        Init {
            client: self.id,
            security: self.security.code(),
            versions: &OFFER,
            cookie,
            message,
        }
    }

    pub(crate) fn server(&self) -> SocketAddr {
        self.server
    }

    pub(crate) fn deadline(&self, patience: Span) -> Time {
        self.due.min(self.began + patience)
    }

    pub(crate) fn is_hopeless(&self, now: Time, patience: Span) -> bool {
        self.began + patience <= now
    }

    /// Path of the present Init.
    pub(crate) fn path(&self) -> u8 {
        self.path
    }

    /// Writes an Init if one is due.
    pub(crate) fn poll_transmit(&mut self, now: Time, out: &mut Vec<u8>) -> bool {
        if self.due > now {
            return false;
        }
        // Cookies that replace each other do not keep the client on a path on which none leads anywhere.
        let is_old = |attempt: &Attempt| {
            attempt.began + COOKIE_USE <= now && attempt.since + PATIENCE <= now
        };
        if self.attempt.as_ref().is_some_and(is_old) {
            (self.attempt, self.copies) = (None, 0);
        }
        if self.attempt.is_none() && self.path_since + PATIENCE <= now && self.paths > 1 {
            self.path = (self.path + 1) % self.paths;
            (self.path_since, self.copies, self.retry) = (now, 0, FIRST_RETRY);
        }
        self.due = now + self.retry;
        self.retry = (self.retry * 2).min(LAST_RETRY);
        self.sent = now;
        self.copies += 1;
        self.is_refused = false;
        match &self.attempt {
            Some(attempt) => self.init(Some(attempt.cookie), &attempt.message).write(out),
            None => self.init(None, &[]).write(out),
        }
        true
    }

    /// The number by which the server's answers name this client.
    pub(crate) fn id(&self) -> ConnectionId {
        self.id
    }

    /// Takes a cookie, unless the client waits for an answer to another or has the same one. Returns the round trip, if it is clear which
    /// Init the server answered.
    pub(crate) fn take_cookie(&mut self, now: Time, cookie: [u8; COOKIE]) -> Option<Span> {
        let stays = |attempt: &Attempt| attempt.cookie == cookie || attempt.since + PATIENCE > now;
        if self.attempt.as_ref().is_some_and(stays) {
            return None;
        }
        let former = self.attempt.as_ref().map(|former| former.began);
        // A cookie that comes while there is another may answer any Init, and so may what follows.
        let (sample, copies) = match former {
            None => (self.round_trip(now), 0),
            Some(_) => (None, 1),
        };
        self.attempt = Some(self.begin(now, former.unwrap_or(now), cookie));
        (self.due, self.copies, self.retry) = (now, copies, FIRST_RETRY);
        sample
    }

    /// Begins a handshake with a cookie, of those that the client has had since `began`.
    fn begin(&mut self, now: Time, began: Time, cookie: [u8; COOKIE]) -> Attempt {
        let mut attempt = Attempt {
            cookie,
            since: now,
            began,
            handshake: None,
            message: self.parameters.clone(),
        };
        if let Security::Key(key) = &self.security {
            let init = self.init(Some(cookie), &[]);
            let prologue = init.prologue(self.server_name.as_ref().map(ServerName::as_str));
            let random = self.random.block();
            let begun = noise::Handshake::new(true, &key.0, &prologue, random);
            let mut handshake = begun.expect("the pattern and the lengths of keys are fixed");
            let message = handshake.write(&attempt.message);
            attempt.message =
                message.expect("a first message with short parameters can be written");
            attempt.handshake = Some(handshake);
        }
        attempt
    }

    /// Counts a refusal. Returns true if the client believes the refusal; otherwise the client sends the next Init soon.
    pub(crate) fn on_refusal(&mut self, now: Time) -> bool {
        if !std::mem::replace(&mut self.is_refused, true) {
            self.refusals += 1;
            self.due = now + REFUSED_RETRY;
        }
        self.refusals >= REFUSALS
    }

    /// Round trip, if it is clear which Init the server answered.
    pub(crate) fn round_trip(&self, now: Time) -> Option<Span> {
        (self.copies == 1).then(|| now.since(self.sent))
    }

    /// Reads the server's parameters and the secrets from its handshake message. An unreadable message does not come from the server, or
    /// answers an abandoned attempt.
    pub(crate) fn finish(
        &mut self,
        message: &[u8],
    ) -> Option<(Parameters, Option<noise::Secrets>)> {
        let attempt = self.attempt.as_mut()?;
        if self.security == Security::Insecure {
            return Some((Parameters::read(message)?, None));
        }
        let payload = attempt.handshake.as_mut()?.read(message).ok()?;
        let parameters = Parameters::read(&payload)?;
        let secrets = attempt.handshake.take().map(noise::Handshake::secrets);
        Some((parameters, secrets))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::PreSharedKey;

    /// The server answers each Init with another cookie, as where something on the path changes the client's address.
    #[test]
    fn cookies_that_lead_nowhere_do_not_keep_the_client_on_a_path() {
        for security in [Security::Insecure, Security::Key(PreSharedKey([7; 32]))] {
            let mut settings = Settings::new(security);
            settings.paths = 2;
            let server = SocketAddr::from(([10, 0, 0, 2], 4794));
            let mut client = Client::new(&settings, ConnectionId(1), [1; 32], Time::ZERO, server);
            let mut paths = Vec::new();
            for ms in (0..20_000).step_by(10) {
                let now = Time::ZERO + Span::from_ms(ms);
                if client.poll_transmit(now, &mut Vec::new()) {
                    paths.push(client.path());
                    let mut cookie = [0; COOKIE];
                    cookie[..8].copy_from_slice(&ms.to_be_bytes());
                    assert!(
                        client
                            .take_cookie(now, cookie)
                            .is_none_or(|rtt| rtt == Span::ZERO)
                    );
                }
            }
            paths.dedup();
            assert!(paths.starts_with(&[0, 1, 0]), "{paths:?}");
        }
    }
}
