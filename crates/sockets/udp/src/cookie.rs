//! Stateless address validation: a server answers an unknown address with a cookie, and continues only with a client that returns the
//! cookie.
//!
//! A cookie consists of its creation time and a keyed hash of time, address and connection id.

use crate::wire::{COOKIE, ConnectionId};
use clearway_units::{Span, Time};
use ring::hmac;
use std::net::{IpAddr, SocketAddr};

/// Time for which a cookie is valid.
pub(crate) const LIFETIME: Span = Span::from_ms(5_000);
const HASH: usize = COOKIE - 8;

/// Maker of cookies.
pub(crate) struct Cookies(hmac::Key);

impl Cookies {
    pub(crate) fn new(secret: &[u8; 32]) -> Self {
        Self(hmac::Key::new(hmac::HMAC_SHA256, secret))
    }

    pub(crate) fn make(&self, now: Time, to: SocketAddr, client: ConnectionId) -> [u8; COOKIE] {
        let mut cookie = [0; COOKIE];
        cookie[..8].copy_from_slice(&now.as_ps().to_be_bytes());
        cookie[8..].copy_from_slice(&self.hash(now, to, client));
        cookie
    }

    /// Age of the cookie, if this server made the cookie for this address and it has not expired.
    pub(crate) fn check(
        &self,
        now: Time,
        from: SocketAddr,
        client: ConnectionId,
        cookie: &[u8; COOKIE],
    ) -> Option<Span> {
        let (time, hash) = cookie.split_first_chunk()?;
        let made = Time::from_ps(u64::from_be_bytes(*time));
        let expected = self.hash(made, from, client);
        let differences = expected
            .iter()
            .zip(hash)
            .fold(0, |all, (a, b)| all | (a ^ b));
        let age = now.since(made);
        (differences == 0 && made <= now && age <= LIFETIME).then_some(age)
    }

    fn hash(&self, made: Time, address: SocketAddr, client: ConnectionId) -> [u8; HASH] {
        let mut context = hmac::Context::with_key(&self.0);
        context.update(&made.as_ps().to_be_bytes());
        context.update(&client.0.to_be_bytes());
        context.update(&address.port().to_be_bytes());
        match address.ip() {
            IpAddr::V4(ip) => context.update(&ip.octets()),
            IpAddr::V6(ip) => context.update(&ip.octets()),
        }
        let tag = context.sign();
        let mut hash = [0; HASH];
        hash.copy_from_slice(&tag.as_ref()[..HASH]);
        hash
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cookie_is_good_for_one_address_and_a_while() {
        let cookies = Cookies::new(&[3; 32]);
        let (here, there) = ("[::1]:5".parse().unwrap(), "[::1]:6".parse().unwrap());
        let (client, made) = (ConnectionId(1), Time::from_us(100));
        let cookie = cookies.make(made, here, client);
        let later = Time::from_us(140);
        let age = cookies.check(later, here, client, &cookie);
        assert_eq!(age, Some(Span::from_us(40)));
        assert_eq!(cookies.check(later, there, client, &cookie), None);
        assert_eq!(cookies.check(later, here, ConnectionId(2), &cookie), None);
        let too_late = made + LIFETIME + Span::from_us(1);
        assert_eq!(cookies.check(too_late, here, client, &cookie), None);
        assert_eq!(cookies.check(Time::ZERO, here, client, &cookie), None);
        for bit in 0..COOKIE * 8 {
            let mut forged = cookie;
            forged[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(cookies.check(later, here, client, &forged), None);
        }
    }
}
