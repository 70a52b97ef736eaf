//! The client's part of the handshake: what it sends until the server has answered.

use crate::noise;
use crate::settings::{Security, Settings};
use crate::wire::{COOKIE, ConnectionId, Init, Parameters, VERSION};
use clearway_units::{Span, Time};
use std::net::SocketAddr;

/// Time after which an Init is sent again, at first and at most.
const FIRST_RETRY: Span = Span::from_ms(200);
const LAST_RETRY: Span = Span::from_ms(2_000);
/// Refusals after which a client believes them, each of another Init, and the time between these: one that was damaged on its way is
/// refused too.
const REFUSALS: u32 = 4;
const REFUSED_RETRY: Span = Span::from_ms(20);

/// A client that waits for the server.
pub(crate) struct Client {
    id: ConnectionId,
    server: SocketAddr,
    security: u8,
    /// None without security.
    handshake: Option<noise::Handshake>,
    message: Vec<u8>,
    cookie: Option<[u8; COOKIE]>,
    began: Time,
    /// Time of the last Init, number of copies of it so far, and time of the next.
    sent: Time,
    copies: u32,
    /// Refusals, and whether the last Init is among the refused ones.
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
        let security = settings.security.code();
        let mut client = Self {
            id,
            server,
            security,
            handshake: None,
            message: parameters,
            cookie: None,
            began: now,
            sent: now,
            copies: 0,
            refusals: 0,
            is_refused: false,
            due: now,
            retry: FIRST_RETRY,
        };
        if let Security::Key(key) = &settings.security {
            let prologue = client.init().prologue();
            let begun = noise::Handshake::new(true, &key.0, &prologue, random);
            let mut handshake = begun.expect("the pattern and the lengths of keys are fixed");
            let message = handshake.write(&client.message);
            client.message = message.expect("a first message with short parameters can be written");
            client.handshake = Some(handshake);
        }
        client
    }

    fn init(&self) -> Init<'_> {
        const OFFER: [u8; 4] = VERSION.to_be_bytes();
        Init {
            client: self.id,
            security: self.security,
            versions: &OFFER,
            cookie: self.cookie,
            message: &self.message,
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

    /// Writes an Init if one is due.
    pub(crate) fn poll_transmit(&mut self, now: Time, out: &mut Vec<u8>) -> bool {
        if self.due > now {
            return false;
        }
        self.due = now + self.retry;
        self.retry = (self.retry * 2).min(LAST_RETRY);
        self.sent = now;
        self.copies += 1;
        self.is_refused = false;
        self.init().write(out);
        true
    }

    /// The number by which the server's answers name this client.
    pub(crate) fn id(&self) -> ConnectionId {
        self.id
    }

    /// Takes a cookie, which the next Init has. Returns the round trip, if it is a new one and it is clear which Init was answered.
    pub(crate) fn take_cookie(&mut self, now: Time, cookie: [u8; COOKIE]) -> Option<Span> {
        let sample = self.round_trip(now);
        if self.cookie.replace(cookie) == Some(cookie) {
            return None;
        }
        (self.due, self.copies) = (now, 0);
        sample
    }

    /// Takes note of a refusal. Returns true if it is to be believed; else the next Init is sent soon.
    pub(crate) fn on_refusal(&mut self, now: Time) -> bool {
        if !std::mem::replace(&mut self.is_refused, true) {
            self.refusals += 1;
            self.due = now + REFUSED_RETRY;
        }
        self.refusals >= REFUSALS
    }

    /// Round trip, if it is clear which Init was answered.
    pub(crate) fn round_trip(&self, now: Time) -> Option<Span> {
        (self.copies == 1).then(|| now.since(self.sent))
    }

    /// Reads the server's handshake message: its parameters, and the secrets.
    pub(crate) fn finish(
        &mut self,
        message: &[u8],
    ) -> Option<(Parameters, Option<noise::Secrets>)> {
        if self.security == Security::Insecure.code() {
            return Some((Parameters::read(message)?, None));
        }
        let payload = self.handshake.as_mut()?.read(message).ok()?;
        let parameters = Parameters::read(&payload)?;
        let secrets = self.handshake.take().map(noise::Handshake::secrets);
        Some((parameters, secrets))
    }
}
