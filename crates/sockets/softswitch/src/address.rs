//! IP addresses of hosts.

use clearway_units::HostId;
use std::net::{Ipv4Addr, Ipv6Addr};

/// Bits of the prefix that all hosts share.
pub const PREFIX_LENGTH: u8 = 16;
/// Bits of the IPv6 prefix that all hosts share.
pub const PREFIX_LENGTH_V6: u8 = 64;

/// 10.77.0.0.
const NETWORK: u32 = 10 << 24 | 77 << 16;
/// fd77::.
const NETWORK_V6: u128 = 0xfd77 << 112;
/// Most hosts: the first address belongs to the network, the last one to broadcasts.
const MOST_HOSTS: u32 = (1 << 16) - 2;

/// IPv4 address of a host, in 10.77.0.0/16: 10.77.0.1 for host 0, 10.77.1.0 for host 255.
///
/// # Panics
/// From host 65534 on.
pub fn address_of(host: HostId) -> Ipv4Addr {
    assert!(host.0 < MOST_HOSTS, "an address for each host");
    Ipv4Addr::from(NETWORK + host.0 + 1)
}

/// IPv6 address of a host, in fd77::/64: fd77::1 for host 0.
pub fn address_v6_of(host: HostId) -> Ipv6Addr {
    Ipv6Addr::from(NETWORK_V6 + u128::from(host.0) + 1)
}

/// Number of the host with an IPv4 address, whether or not the fabric has that many hosts.
pub(crate) fn host_of(address: u32) -> Option<HostId> {
    let number = address.checked_sub(NETWORK + 1)?;
    (number < MOST_HOSTS).then_some(HostId(number))
}

/// Number of the host with an IPv6 address.
pub(crate) fn host_of_v6(address: u128) -> Option<HostId> {
    let number = address.checked_sub(NETWORK_V6 + 1)?;
    let number = u32::try_from(number).ok()?;
    (number < MOST_HOSTS).then_some(HostId(number))
}

/// True if each of `hosts` hosts has an address.
pub(crate) fn fits(hosts: u32) -> bool {
    hosts <= MOST_HOSTS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_those_of_hosts_and_of_nobody_else() {
        let shown = |host| address_of(HostId(host)).to_string();
        assert_eq!(shown(0), "10.77.0.1");
        assert_eq!(shown(254), "10.77.0.255");
        assert_eq!(shown(255), "10.77.1.0");
        assert_eq!(shown(65_533), "10.77.255.254");
        assert_eq!(address_v6_of(HostId(255)).to_string(), "fd77::100");
        for host in [0, 1, 254, 255, 65_533].map(HostId) {
            assert_eq!(host_of(address_of(host).into()), Some(host));
            assert_eq!(host_of_v6(address_v6_of(host).into()), Some(host));
        }
        for stranger in ["10.77.0.0", "10.77.255.255", "10.78.0.1", "0.0.0.0"] {
            let address: Ipv4Addr = stranger.parse().unwrap();
            assert_eq!(host_of(address.into()), None, "{stranger}");
        }
        for stranger in ["fd77::", "fd77::ffff", "fd77::1:0:0:1", "ff02::1", "::"] {
            let address: Ipv6Addr = stranger.parse().unwrap();
            assert_eq!(host_of_v6(address.into()), None, "{stranger}");
        }
    }
}
