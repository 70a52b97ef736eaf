//! Random bytes of one connection or listener, expanded from the caller's seed.

use ring::hmac;

/// A stream of random bytes that is unpredictable without the seed: HMAC-SHA-256 of a counter.
pub(crate) struct Random {
    key: hmac::Key,
    blocks: u64,
}

impl Random {
    pub(crate) fn new(seed: &[u8; 32]) -> Self {
        Self {
            key: hmac::Key::new(hmac::HMAC_SHA256, seed),
            blocks: 0,
        }
    }

    pub(crate) fn block(&mut self) -> [u8; 32] {
        let tag = hmac::sign(&self.key, &self.blocks.to_be_bytes());
        self.blocks += 1;
        let mut block = [0; 32];
        block.copy_from_slice(tag.as_ref());
        block
    }

    pub(crate) fn u64(&mut self) -> u64 {
        let [a, b, c, d, e, f, g, h, ..] = self.block();
        u64::from_be_bytes([a, b, c, d, e, f, g, h])
    }
}
