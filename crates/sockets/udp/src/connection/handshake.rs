//! Handshake datagrams at the client.

use super::{Connection, State};
use crate::error::{ConnectionError, Versions};
use crate::paths::Paths;
use crate::protection::Protection;
use crate::settings::NegotiatedSettings;
use crate::wire::{Handshake, RefusalReason, VERSION, versions};
use clearway_units::Time;

impl Connection {
    /// Processes a handshake datagram.
    pub(super) fn on_handshake(&mut self, now: Time, datagram: &[u8]) {
        let State::Connecting(client) = &mut self.state else {
            return;
        };
        match Handshake::read(datagram) {
            Some(Handshake::Retry { client: id, cookie }) if id == client.id() => {
                let sample = client.take_cookie(now, cookie);
                sample.into_iter().for_each(|s| self.note_round_trip(s));
            }
            Some(Handshake::Refusal {
                client: id,
                reason,
                versions: theirs,
            }) if id == client.id() => {
                if !client.on_refusal(now) {
                    return;
                }
                let reason = match reason {
                    RefusalReason::Version => ConnectionError::Version {
                        theirs: Versions(versions(theirs).collect()),
                    },
                    RefusalReason::Key => ConnectionError::Key,
                    RefusalReason::Security => ConnectionError::Security,
                    RefusalReason::Busy => ConnectionError::Busy,
                    RefusalReason::Parameters => ConnectionError::Parameters,
                };
                self.end(reason);
            }
            Some(Handshake::Response {
                client: id,
                version: VERSION,
                message,
            }) if id == client.id() => {
                let sample = client.round_trip(now);
                let (path, address) = (client.path(), client.server());
                // An unreadable message does not come from the server.
                let Some((theirs, secrets)) = client.finish(message) else {
                    self.discarded.forged += 1;
                    return;
                };
                let ours = self.settings.parameters(self.local);
                let Some(agreed) = NegotiatedSettings::negotiate(&ours, &theirs, true) else {
                    return self.end(ConnectionError::Parameters);
                };
                sample.into_iter().for_each(|s| self.note_round_trip(s));
                self.protection = Protection::new(secrets, self.settings.key_update_after);
                self.remote = theirs.id;
                self.paths = Paths::client(agreed.paths, (path, address), now);
                (self.timers.heard, self.timers.spoken) = (now, now);
                self.state = State::Open;
                self.agree(agreed);
                self.timers.proven_by = Some(now + agreed.idle);
                self.begin_search(now);
            }
            _ => self.discarded.malformed += 1,
        }
    }
}
