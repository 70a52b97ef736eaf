//! Content of messages, which lets the receiver verify them.

use clearway_units::mix64;

/// Period of a message's content in bytes; a prime, so that misplaced blocks are detected.
const PERIOD: usize = 65_521;

/// The message of a flow.
pub(crate) fn message(flow: u32, bytes: usize) -> Vec<u8> {
    let pattern = pattern(flow, bytes);
    let mut message = Vec::with_capacity(bytes);
    while message.len() < bytes {
        let room = (bytes - message.len()).min(PERIOD);
        message.extend_from_slice(&pattern[..room]);
    }
    message
}

/// True if a message has the content of the flow's message.
pub(crate) fn is_message(flow: u32, message: &[u8]) -> bool {
    let pattern = pattern(flow, message.len());
    message
        .chunks(PERIOD)
        .all(|chunk| *chunk == pattern[..chunk.len()])
}

/// The first bytes of the pattern, as many as a message of this length has.
fn pattern(flow: u32, bytes: usize) -> Vec<u8> {
    let length = bytes.min(PERIOD);
    let words = (0..length.div_ceil(8) as u64).map(|word| mix64(u64::from(flow) << 32 | word));
    let mut pattern: Vec<u8> = words.flat_map(u64::to_le_bytes).collect();
    pattern.truncate(length);
    pattern
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_byte_place_or_flow_is_noticed() {
        let good = message(7, 200_000);
        assert!(is_message(7, &good));
        assert!(!is_message(8, &good));
        let mut wrong = good.clone();
        wrong[150_000] ^= 1;
        assert!(!is_message(7, &wrong));
        wrong = good;
        let block = wrong[0..1000].to_vec();
        wrong[65_536..66_536].copy_from_slice(&block);
        assert!(!is_message(7, &wrong));
    }
}
