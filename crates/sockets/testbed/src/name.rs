//! Names and addresses of a bed.

use crate::fault::Fault;
use std::fmt;
use std::net::Ipv4Addr;

/// Longest name of a bed.
const LONGEST: usize = 16;
/// Device of a host, in its namespace.
pub(crate) const HOST_DEVICE: &str = "cw0";

/// Name of a bed: letters and digits, so that namespaces of different beds are never confused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BedName(String);

impl BedName {
    /// Parses a name.
    ///
    /// # Errors
    /// If the name is empty, too long, or contains characters other than lowercase letters and digits.
    pub fn new(text: &str) -> Result<Self, Fault> {
        let fits = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
        if text.is_empty() || text.len() > LONGEST || !text.bytes().all(fits) {
            return Err(Fault::new(
                format!("a test bed cannot be called `{text}`"),
                format!("use 1 to {LONGEST} small letters and digits, such as `--name bed1`"),
            ));
        }
        Ok(Self(text.into()))
    }

    /// The name alone.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Prefix of the names of all namespaces of the bed.
    pub fn prefix(&self) -> String {
        format!("cw-{}-", self.0)
    }

    /// Prefix of the names of hosts' namespaces; the number of the host follows.
    pub fn host_prefix(&self) -> String {
        format!("cw-{}-h", self.0)
    }

    /// Namespace of a host.
    pub fn host(&self, host: u32) -> String {
        format!("{}{host}", self.host_prefix())
    }

    /// Namespace of a switch.
    pub fn switch(&self, name: &str) -> String {
        format!("{}{name}", self.prefix())
    }
}

impl fmt::Display for BedName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Address of a host: `10.77.0.1` is host 0, and so on.
pub fn address_of(host: u32) -> Ipv4Addr {
    Ipv4Addr::from_bits(Ipv4Addr::new(10, 77, 0, 1).to_bits() + host)
}

/// Addresses of the two ends of a cable, in 10.78.0.0/16, at switches, and at hosts towards their switch.
pub(crate) fn cable_addresses(cable: usize) -> [Ipv4Addr; 2] {
    let first = u32::from(Ipv4Addr::new(10, 78, 0, 0)) + 2 * cable as u32;
    [Ipv4Addr::from_bits(first), Ipv4Addr::from_bits(first + 1)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_of_letters_and_digits() {
        assert_eq!(BedName::new("a1").unwrap().host(3), "cw-a1-h3");
        for wrong in ["", "a-b", "A", "a b", "../x", "abcdefghijklmnopq"] {
            assert!(BedName::new(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn addresses_differ() {
        assert_eq!(address_of(0), Ipv4Addr::new(10, 77, 0, 1));
        assert_eq!(address_of(255), Ipv4Addr::new(10, 77, 1, 0));
        assert_eq!(address_of(256), Ipv4Addr::new(10, 77, 1, 1));
        assert_eq!(cable_addresses(1)[1], Ipv4Addr::new(10, 78, 0, 3));
    }
}
