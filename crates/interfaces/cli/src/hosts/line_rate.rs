//! Rate of the link by which a host reaches a peer.

use clearway_units::Rate;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};

/// Rate of links without a known rate, such as many virtual interfaces.
const ASSUMED: Rate = Rate::from_gbps(10);

/// Rate of loopback, which no operating system reports. Below what it carries, the pacer would limit transfers (docs/src/performance.md).
const ASSUMED_LOOPBACK: Rate = Rate::from_gbps(40);

/// Rate of a link, and its source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LineRate {
    /// The rate.
    pub(crate) rate: Rate,
    known: RateSource,
}

/// Source of a rate.
#[derive(Debug, Clone, PartialEq, Eq)]
enum RateSource {
    /// Option `--line-rate`.
    Given,
    /// The operating system, for this interface.
    Interface(String),
    /// Default, because the rate or the interface is unknown.
    Assumed(Option<String>),
}

impl LineRate {
    /// The rate from the user, or the rate of the interface towards `peer`, or 10 Gb/s, or 40 Gb/s on loopback.
    pub(crate) fn choose(given: Option<Rate>, peer: Option<SocketAddr>) -> Self {
        if let Some(rate) = given {
            let known = RateSource::Given;
            return Self { rate, known };
        }
        let interface = peer.and_then(interface_to);
        match interface.as_deref().and_then(speed_of) {
            Some(rate) => Self {
                rate,
                known: RateSource::Interface(interface.unwrap_or_default()),
            },
            None => Self {
                rate: match peer.is_some_and(|peer| peer.ip().is_loopback()) {
                    true => ASSUMED_LOOPBACK,
                    false => ASSUMED,
                },
                known: RateSource::Assumed(interface),
            },
        }
    }
}

impl fmt::Display for LineRate {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}", self.rate)?;
        match &self.known {
            RateSource::Given => write!(out, ", by --line-rate"),
            RateSource::Interface(name) => write!(out, ", that of {name}"),
            RateSource::Assumed(Some(name)) => {
                write!(
                    out,
                    ", assumed: that of {name} is not known; --line-rate gives it"
                )
            }
            RateSource::Assumed(None) => write!(out, ", assumed; --line-rate gives it"),
        }
    }
}

/// Interface from which a packet to `peer` would leave, found by its address.
fn interface_to(peer: SocketAddr) -> Option<String> {
    let any: IpAddr = match peer {
        SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let socket = UdpSocket::bind((any, 0)).ok()?;
    // `connect` of a UDP socket chooses a route and sends no packet.
    socket.connect(peer).ok()?;
    let own = socket.local_addr().ok()?.ip();
    let interfaces = if_addrs::get_if_addrs().ok()?;
    let found = interfaces.into_iter().find(|known| known.ip() == own);
    found.map(|interface| interface.name)
}

/// Rate of an interface, if the operating system reports it.
#[cfg(target_os = "linux")]
fn speed_of(interface: &str) -> Option<Rate> {
    let path = format!("/sys/class/net/{interface}/speed");
    megabits(&std::fs::read_to_string(path).ok()?)
}

#[cfg(not(target_os = "linux"))]
fn speed_of(_interface: &str) -> Option<Rate> {
    None
}

/// A rate in Mb/s; interfaces without a rate report -1 or an error.
#[cfg(any(target_os = "linux", test))]
fn megabits(text: &str) -> Option<Rate> {
    let megabits: u64 = text.trim().parse().ok()?;
    let bits = megabits.checked_mul(1_000_000)?;
    let fits = (1_000_000..=1_600_000_000_000).contains(&bits);
    fits.then(|| Rate::from_bps(bits))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_that_of_the_user_or_of_the_interface() {
        let loopback = SocketAddr::from((Ipv4Addr::LOCALHOST, 9));
        let given = LineRate::choose(Some(Rate::from_gbps(25)), Some(loopback));
        assert_eq!(given.to_string(), "25Gbps, by --line-rate");
        // Operating systems report no rate for loopback.
        let found = LineRate::choose(None, Some(loopback));
        assert_eq!(found.rate, ASSUMED_LOOPBACK);
        assert!(
            found
                .to_string()
                .contains(" is not known; --line-rate gives it"),
            "{found}"
        );
        let nobody = LineRate::choose(None, None);
        assert_eq!(nobody.to_string(), "10Gbps, assumed; --line-rate gives it");
    }

    #[test]
    fn speeds_are_in_megabits() {
        assert_eq!(megabits("100000\n"), Some(Rate::from_gbps(100)));
        for none in ["-1\n", "", "0", "99999999999999999999"] {
            assert_eq!(megabits(none), None, "{none}");
        }
    }
}
