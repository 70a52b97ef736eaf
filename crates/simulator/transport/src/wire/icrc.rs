//! CRC-32 of Ethernet, and the invariant CRC of RoCEv2, which covers the fields that routers do not change.

/// The polynomial, reflected: the highest bit is the coefficient of x^0.
const POLYNOMIAL: u32 = 0xedb8_8320;

const TABLE: [u32; 256] = {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let mut state = byte as u32;
        let mut bit = 0;
        while bit < 8 {
            state = times_x(state);
            bit += 1;
        }
        table[byte] = state;
        byte += 1;
    }
    table
};

/// x^(8 * 2^k) for each k: the factors by which 2^k zero bytes move the state on.
const ZEROS: [u32; 32] = {
    let mut powers = [0; 32];
    powers[0] = 1 << (31 - 8);
    let mut k = 1;
    while k < 32 {
        powers[k] = product(powers[k - 1], powers[k - 1]);
        k += 1;
    }
    powers
};

const fn times_x(state: u32) -> u32 {
    (state >> 1) ^ (POLYNOMIAL * (state & 1))
}

/// Product of two polynomials modulo the CRC's.
const fn product(a: u32, mut b: u32) -> u32 {
    let mut sum = 0;
    let mut bit = 32;
    while bit > 0 {
        bit -= 1;
        if a >> bit & 1 == 1 {
            sum ^= b;
        }
        b = times_x(b);
    }
    sum
}

/// A CRC-32 in the making.
#[derive(Debug, Clone, Copy)]
pub(super) struct Crc(u32);

impl Crc {
    pub(super) const fn new() -> Self {
        Self(u32::MAX)
    }

    #[must_use]
    pub(super) fn bytes(self, bytes: &[u8]) -> Self {
        let step = |state: u32, byte: &u8| TABLE[usize::from(state as u8 ^ byte)] ^ (state >> 8);
        Self(bytes.iter().fold(self.0, step))
    }

    /// State after `count` zero bytes, of which simulated payload consists, in time logarithmic in their number.
    #[must_use]
    pub(super) fn zeros(self, count: usize) -> Self {
        let factors = (0..32).filter(|k| count >> k & 1 == 1);
        Self(factors.fold(self.0, |state, k| product(state, ZEROS[k])))
    }

    /// In the order of bytes on the wire.
    pub(super) const fn finish(self) -> [u8; 4] {
        (!self.0).to_le_bytes()
    }
}

/// Length of the headers that the CRC covers, some of their fields replaced: IPv4, UDP and BTH.
pub(super) const COVERED: usize = 20 + 8 + 12;

/// The invariant CRC over `headers`, which begin with an IPv4 header of 20 bytes, `zeros` more bytes of zero, and `rest`.
///
/// Fields that may change on the way count as ones: type of service, time to live, both checksums, and the byte of the congestion bits in
/// the base transport header. In front come eight bytes of ones in place of InfiniBand's local route header (IBTA annex A17).
///
/// # Panics
/// If the headers are shorter than [`COVERED`].
pub(super) fn invariant(headers: &[u8], zeros: usize, rest: &[u8]) -> [u8; 4] {
    let (masked, others) = headers.split_at(COVERED);
    let mut masked: [u8; COVERED] = masked.try_into().expect("the length was just chosen");
    for changeable in [1, 8, 10, 11, 26, 27, 32] {
        masked[changeable] = 0xff;
    }
    Crc::new()
        .bytes(&[0xff; 8])
        .bytes(&masked)
        .bytes(others)
        .zeros(zeros)
        .bytes(rest)
        .finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn crc_32_has_the_check_value_of_the_catalogues() {
        let crc = Crc::new().bytes(b"123456789").finish();
        assert_eq!(u32::from_le_bytes(crc), 0xcbf4_3926);
    }

    #[test]
    fn zeros_at_once_are_zeros_one_by_one() {
        let start = Crc::new().bytes(b"some headers");
        for count in [0, 1, 2, 3, 4, 7, 64, 1000, 4096, 65_535] {
            let slow = start.bytes(&vec![0; count]);
            assert_eq!(start.zeros(count).finish(), slow.finish(), "{count}");
        }
    }

    /// Packets of real adapters: a CNP that a ConnectX-4 Lx sent, and an unreliable SEND ONLY with 18 bytes of payload and two
    /// of padding (both are test data of Scapy's `roce` layer).
    #[test]
    fn packets_of_real_adapters() {
        let congestion_notification = [
            0x45, 0xc2, 0x00, 0x3c, 0x71, 0x8c, 0x40, 0x00, 0x40, 0x11, 0x91, 0x61, 10, 0, 17, 1,
            10, 0, 18, 1, 0x00, 0x00, 0x12, 0xb7, 0x00, 0x28, 0x00, 0x00, 0x81, 0x00, 0xff, 0xff,
            0x40, 0x00, 0x01, 0x18, 0x00, 0x00, 0x00, 0x00,
        ];
        assert_eq!(
            invariant(&congestion_notification, 16, &[]),
            [0x82, 0xfd, 0x00, 0x2a]
        );
        let send = [
            0x45, 0x01, 0x00, 0x40, 0x04, 0x78, 0x40, 0x00, 0x40, 0x11, 0xb4, 0xd5, 192, 168, 0, 7,
            192, 168, 0, 7, 0xc0, 0x00, 0x12, 0xb7, 0x00, 0x2c, 0xac, 0xa2, 0x24, 0x60, 0xff, 0xff,
            0x00, 0x00, 0x00, 0xd3, 0x00, 0xcf, 0x17, 0x10,
        ];
        let payload = b"F0\x81\x8b\xe2\x895\xd9\x0e\x9a\x95PT\x01\xbe\x88^P\x00\x00";
        assert_eq!(invariant(&send, 0, payload), [0x78, 0xf3, 0x53, 0xf3]);
    }
}
