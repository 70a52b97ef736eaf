//! Errors of decoding.

/// Reason why bytes cannot be read as a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WireError {
    /// The bytes end before the packet does.
    TooShort,
    /// The checksum of the IP header or the invariant CRC is wrong.
    Checksum,
    /// The bytes are of another protocol, version or type.
    NotOurs,
}
