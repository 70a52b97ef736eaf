//! Encryption of packets, their numbers, and protection against replay.
//!
//! Each direction has a secret, from which the key of AES-256-GCM and the secret of the next key phase are derived by HMAC-SHA-256. Packet
//! numbers continue across key updates, so no number repeats under any key. The first bit of the header says whether the phase is odd. An
//! end that receives a packet of the next phase also updates its sending key.

use crate::noise::{Secrets, aes_256_gcm, nonce};
use crate::wire::{ConnectionId, HEADER, PacketHeader, TAG};
use ring::aead::{Aad, LessSafeKey};
use ring::hmac;
use std::ops::Range;

/// Packets before a key update, by default. AES-GCM allows more (2^36 blocks and above).
pub(crate) const KEY_UPDATE_AFTER: u64 = 1 << 30;
/// Forgeries after which the connection ends (RFC 9001 §6.6 allows 2^52 with AES-GCM).
const MOST_FORGERIES: u64 = 1 << 36;

/// Reason why a packet was not opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unopened {
    /// Not a packet, or not from the other side.
    Forged,
    /// A duplicate, or a packet too old to tell.
    Replayed,
}

fn derive(secret: &[u8; 32], label: &[u8]) -> [u8; 32] {
    let key = hmac::Key::new(hmac::HMAC_SHA256, secret);
    let mut derived = [0; 32];
    derived.copy_from_slice(hmac::sign(&key, label).as_ref());
    derived
}

/// The key of one phase of one direction.
struct Phase {
    key: LessSafeKey,
    secret: [u8; 32],
}

impl Phase {
    fn new(secret: [u8; 32]) -> Self {
        Self {
            key: aes_256_gcm(&derive(&secret, b"clearway packet key")),
            secret,
        }
    }

    fn next(&self) -> Self {
        Self::new(derive(&self.secret, b"clearway next phase"))
    }
}

/// Keys of both directions.
struct Keys {
    send: Phase,
    receive: Phase,
    next_receive: Phase,
    previous_receive: Option<Phase>,
    /// Phases counted in each direction.
    sent_phase: u64,
    received_phase: u64,
    /// First packet number sent in the present phase, and the lowest number received in the present phase.
    sent_from: u64,
    received_from: u64,
}

/// Protection of the packets of a connection.
pub(crate) struct Protection {
    /// None without security.
    keys: Option<Box<Keys>>,
    next_number: u64,
    replay: ReplayWindow,
    update_after: u64,
    forgeries: u64,
}

impl Protection {
    /// Creates the protection from the secrets of a handshake; without secrets, packets are numbered but not encrypted.
    pub(crate) fn new(secrets: Option<Secrets>, update_after: u64) -> Self {
        let keys = secrets.map(|secrets| {
            let receive = Phase::new(secrets.receive);
            Box::new(Keys {
                send: Phase::new(secrets.send),
                next_receive: receive.next(),
                receive,
                previous_receive: None,
                sent_phase: 0,
                received_phase: 0,
                sent_from: 0,
                received_from: 0,
            })
        });
        Self {
            keys,
            next_number: 0,
            replay: ReplayWindow::default(),
            update_after,
            forgeries: 0,
        }
    }

    /// True if so many forged packets have arrived that the key is no longer safe.
    pub(crate) fn is_worn_out(&self) -> bool {
        self.forgeries > MOST_FORGERIES
    }

    /// Key phases so far: sending, receiving.
    pub(crate) fn phases(&self) -> (u64, u64) {
        let keys = self.keys.as_ref();
        keys.map_or((0, 0), |keys| (keys.sent_phase, keys.received_phase))
    }

    /// Switches to the next key, unless the other side has not followed the previous update.
    pub(crate) fn update_key(&mut self) {
        let next_number = self.next_number;
        if let Some(keys) = &mut self.keys
            && keys.sent_phase == keys.received_phase
        {
            keys.send = keys.send.next();
            keys.sent_phase += 1;
            keys.sent_from = next_number;
        }
    }

    /// Writes the header of the next packet. The caller appends the content and then calls [`seal`](Self::seal).
    pub(crate) fn begin(&mut self, receiver: ConnectionId, out: &mut Vec<u8>) {
        let number = self.next_number;
        let due = |keys: &Keys| number - keys.sent_from >= self.update_after;
        if self.keys.as_deref().is_some_and(due) {
            self.update_key();
        }
        self.next_number += 1;
        let header = PacketHeader {
            odd_phase: self.phases().0 & 1 == 1,
            receiver,
            number,
        };
        header.write(out);
    }

    /// Bytes that encryption adds to a packet.
    pub(crate) fn tag(&self) -> usize {
        self.keys.as_ref().map_or(0, |_| TAG)
    }

    /// Encrypts the last begun packet, from `start` to the end of `out`.
    pub(crate) fn seal(&mut self, start: usize, out: &mut Vec<u8>) {
        let Some(keys) = &self.keys else {
            return;
        };
        let (header, content) = out[start..].split_at_mut(HEADER);
        let nonce = nonce(self.next_number - 1);
        let aad = Aad::from(&*header);
        let key = &keys.send.key;
        let tag = key.seal_in_place_separate_tag(nonce, aad, content);
        let tag = tag.expect("a datagram is far shorter than what AES-GCM can encrypt");
        out.extend_from_slice(tag.as_ref());
    }

    /// Decrypts a packet in place. Returns the range of its content.
    pub(crate) fn open(&mut self, datagram: &mut [u8]) -> Result<Range<usize>, Unopened> {
        let header = PacketHeader::read(datagram).ok_or(Unopened::Forged)?;
        if !self.replay.is_new(header.number) {
            return Err(Unopened::Replayed);
        }
        let end = match &mut self.keys {
            None => datagram.len(),
            Some(keys) => match keys.open(&header, datagram) {
                Some(end) => end,
                None => {
                    self.forgeries += 1;
                    return Err(Unopened::Forged);
                }
            },
        };
        if let Some(keys) = &mut self.keys
            && keys.sent_phase < keys.received_phase
        {
            // The other side has changed its key: this side follows.
            keys.send = keys.send.next();
            keys.sent_phase += 1;
            keys.sent_from = self.next_number;
        }
        self.replay.insert(header.number);
        Ok(HEADER..end)
    }
}

impl Keys {
    /// Decrypts a packet; returns the end of its content, or `None` if the packet is not authentic.
    fn open(&mut self, header: &PacketHeader, datagram: &mut [u8]) -> Option<usize> {
        let present = header.odd_phase == (self.received_phase & 1 == 1);
        let key = match (&self.previous_receive, present) {
            (_, true) => &self.receive.key,
            (Some(previous), false) if header.number < self.received_from => &previous.key,
            _ => &self.next_receive.key,
        };
        let is_next = !present && std::ptr::eq(key, &self.next_receive.key);
        let (head, sealed) = datagram.split_at_mut(HEADER);
        let opened = key.open_in_place(nonce(header.number), Aad::from(&*head), sealed);
        let end = HEADER + opened.ok()?.len();
        if is_next {
            let next = self.next_receive.next();
            let present = std::mem::replace(&mut self.next_receive, next);
            self.previous_receive = Some(std::mem::replace(&mut self.receive, present));
            self.received_phase += 1;
            self.received_from = header.number;
        } else if present {
            // A number above the new key's lowest number cannot use the old key (RFC 9001 §6.4).
            self.received_from = self.received_from.min(header.number);
        }
        Some(end)
    }
}

/// Received packet numbers: a window behind the highest.
#[derive(Debug)]
struct ReplayWindow {
    /// One more than the highest number.
    end: u64,
    /// A ring of bits addressed by number.
    bits: Box<[u64; Self::WORDS]>,
}

impl Default for ReplayWindow {
    fn default() -> Self {
        Self {
            end: 0,
            bits: Box::new([0; Self::WORDS]),
        }
    }
}

impl ReplayWindow {
    const WORDS: usize = 512;
    /// Numbers in the window: packets of different paths overtake each other by a window of packets.
    const SIZE: u64 = 64 * Self::WORDS as u64;

    fn slot(number: u64) -> (usize, u64) {
        ((number >> 6) as usize % Self::WORDS, 1 << (number & 63))
    }

    fn is_new(&self, number: u64) -> bool {
        let (word, bit) = Self::slot(number);
        number >= self.end || (self.end - number <= Self::SIZE && self.bits[word] & bit == 0)
    }

    fn insert(&mut self, number: u64) {
        if number >= self.end {
            if number - self.end >= Self::SIZE {
                self.bits.fill(0);
            } else {
                for skipped in self.end..number {
                    let (word, bit) = Self::slot(skipped);
                    self.bits[word] &= !bit;
                }
            }
            self.end = number.saturating_add(1);
        }
        let (word, bit) = Self::slot(number);
        self.bits[word] |= bit;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn pair(update_after: u64) -> [Protection; 2] {
        let secrets = |send, receive| Secrets {
            send: [send; 32],
            receive: [receive; 32],
        };
        [
            Protection::new(Some(secrets(1, 2)), update_after),
            Protection::new(Some(secrets(2, 1)), update_after),
        ]
    }

    fn packet(from: &mut Protection, content: &[u8]) -> Vec<u8> {
        let mut out = b"before".to_vec();
        from.begin(ConnectionId(5), &mut out);
        out.extend(content);
        from.seal(6, &mut out);
        out.split_off(6)
    }

    #[test]
    fn packets_are_opened_once_and_only_if_authentic() {
        let [mut a, mut b] = pair(u64::MAX);
        let sealed = packet(&mut a, b"content");
        assert!(!sealed.windows(7).any(|bytes| bytes == b"content"));
        for bit in 0..sealed.len() * 8 {
            let mut forged = sealed.clone();
            forged[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(b.open(&mut forged), Err(Unopened::Forged), "bit {bit}");
        }
        for length in 0..sealed.len() {
            assert_eq!(
                b.open(&mut sealed[..length].to_vec()),
                Err(Unopened::Forged)
            );
        }
        let mut opened = sealed.clone();
        let range = b.open(&mut opened).unwrap();
        assert_eq!(&opened[range], b"content");
        assert_eq!(b.open(&mut sealed.clone()), Err(Unopened::Replayed));
    }

    #[test]
    fn keys_change_in_both_directions_and_late_packets_are_opened_all_the_same() {
        let [mut a, mut b] = pair(10);
        let mut late = Vec::new();
        for number in 0..100u8 {
            let sealed = packet(&mut a, &[number]);
            if number % 7 == 3 {
                late.push(sealed);
            } else {
                b.open(&mut sealed.clone()).unwrap();
            }
            if number % 5 == 4 {
                a.open(&mut packet(&mut b, b"answer")).unwrap();
            }
            if late.len() == 2 {
                for mut sealed in late.drain(..) {
                    b.open(&mut sealed).unwrap();
                }
            }
        }
        assert!(a.phases().0 >= 9, "{:?}", a.phases());
        assert!(b.phases().1 >= 9 && b.phases().0 >= 8, "{:?}", b.phases());
    }

    #[test]
    fn a_key_is_good_up_to_the_first_number_of_the_next_one() {
        let [mut old, mut b] = pair(u64::MAX);
        let [mut new, _] = pair(u64::MAX);
        new.update_key();
        let mut open = |from: &mut Protection, number| {
            from.next_number = number;
            b.open(&mut packet(from, b"x")).map(|_| ())
        };
        assert_eq!(open(&mut old, 10), Ok(()));
        // Packets of the new key overtake each other.
        for number in [100, 50] {
            assert_eq!(open(&mut new, number), Ok(()));
        }
        assert_eq!(open(&mut old, 49), Ok(()), "it is late");
        for number in [51, 70, 99, 101] {
            assert_eq!(open(&mut old, number), Err(Unopened::Forged), "{number}");
            assert_eq!(open(&mut new, number), Ok(()), "{number}");
        }
    }

    #[test]
    fn a_key_is_not_changed_again_before_the_other_side_has_followed() {
        let [mut a, mut b] = pair(u64::MAX);
        a.update_key();
        a.update_key();
        assert_eq!(a.phases(), (1, 0));
        b.open(&mut packet(&mut a, b"x")).unwrap();
        assert_eq!(b.phases(), (1, 1));
        a.open(&mut packet(&mut b, b"y")).unwrap();
        assert_eq!(a.phases(), (1, 1));
    }

    proptest! {
        #[test]
        fn the_replay_window_agrees_with_a_set(steps in prop::collection::vec(0u64..40, 1..600), wide in any::<bool>()) {
            let (mut window, mut seen, mut high) = (ReplayWindow::default(), BTreeSet::new(), 0u64);
            for step in steps {
                let scale = if wide { 300 } else { 1 };
                let number = (high + step * scale).saturating_sub(20 * scale);
                let old = high.saturating_sub(number) >= ReplayWindow::SIZE - 1;
                if !old {
                    prop_assert_eq!(window.is_new(number), !seen.contains(&number));
                }
                if window.is_new(number) {
                    window.insert(number);
                    prop_assert!(seen.insert(number), "{} twice", number);
                }
                high = high.max(number);
            }
        }

        #[test]
        fn nothing_that_comes_panics(mut bytes in prop::collection::vec(any::<u8>(), 0..100)) {
            let [mut a, _] = pair(10);
            if let Some(first) = bytes.first_mut() {
                *first &= 0x41;
            }
            prop_assert!(a.open(&mut bytes).is_err());
        }
    }
}
