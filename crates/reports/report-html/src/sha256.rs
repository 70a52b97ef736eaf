//! SHA-256 (FIPS 180-4), by which the page's security policy names the only script and style that may take effect.

const ROUNDS: usize = 64;

/// The policy's name of an inline script or style: `'sha256-…'`, in base64.
pub(super) fn source_expression(text: &str) -> String {
    format!("'sha256-{}'", base64(&sha256(text.as_bytes())))
}

/// The first `count` primes.
fn primes(count: usize) -> Vec<u64> {
    let mut primes: Vec<u64> = Vec::new();
    let mut candidate = 2;
    while primes.len() < count {
        if primes.iter().all(|prime| candidate % prime != 0) {
            primes.push(candidate);
        }
        candidate += 1;
    }
    primes
}

/// The first 32 bits after the point of the `degree`-th root of `number` (§4.2.2, §5.3.3), by bisection in integers.
fn root_fraction(number: u64, degree: u32) -> u32 {
    let target = u128::from(number) << (32 * degree);
    let (mut low, mut high) = (0u128, 1u128 << 38);
    while high - low > 1 {
        let middle = (low + high) / 2;
        if middle.pow(degree) <= target {
            low = middle;
        } else {
            high = middle;
        }
    }
    low as u32
}

fn sha256(message: &[u8]) -> [u8; 32] {
    let primes = primes(ROUNDS);
    let constants: Vec<u32> = primes.iter().map(|&p| root_fraction(p, 3)).collect();
    let mut state: Vec<u32> = primes[..8].iter().map(|&p| root_fraction(p, 2)).collect();
    let mut padded = message.to_vec();
    padded.push(0x80);
    while padded.len() % 64 != 56 {
        padded.push(0);
    }
    padded.extend((message.len() as u64 * 8).to_be_bytes());
    for block in padded.chunks_exact(64) {
        compress(&mut state, &constants, block);
    }
    let mut hash = [0; 32];
    for (bytes, word) in hash.chunks_exact_mut(4).zip(&state) {
        bytes.copy_from_slice(&word.to_be_bytes());
    }
    hash
}

/// One block of 64 bytes (§6.2.2).
fn compress(state: &mut [u32], constants: &[u32], block: &[u8]) {
    let mut schedule: Vec<u32> = block
        .chunks_exact(4)
        .map(|b| u32::from_be_bytes([b[0], b[1], b[2], b[3]]))
        .collect();
    for t in 16..ROUNDS {
        let (w15, w2) = (schedule[t - 15], schedule[t - 2]);
        let small0 = w15.rotate_right(7) ^ w15.rotate_right(18) ^ (w15 >> 3);
        let small1 = w2.rotate_right(17) ^ w2.rotate_right(19) ^ (w2 >> 10);
        let sum = schedule[t - 16].wrapping_add(small0);
        schedule.push(sum.wrapping_add(schedule[t - 7]).wrapping_add(small1));
    }
    let mut v: [u32; 8] = std::array::from_fn(|place| state[place]);
    for (word, constant) in schedule.iter().zip(constants) {
        let [a, b, c, d, e, f, g, h] = v;
        let big1 = e.rotate_right(6) ^ e.rotate_right(11) ^ e.rotate_right(25);
        let big0 = a.rotate_right(2) ^ a.rotate_right(13) ^ a.rotate_right(22);
        let choice = (e & f) ^ (!e & g);
        let majority = (a & b) ^ (a & c) ^ (b & c);
        let first = [big1, choice, *constant, *word]
            .iter()
            .fold(h, |sum, &term| sum.wrapping_add(term));
        let second = big0.wrapping_add(majority);
        v = [
            first.wrapping_add(second),
            a,
            b,
            c,
            d.wrapping_add(first),
            e,
            f,
            g,
        ];
    }
    for (word, change) in state.iter_mut().zip(v) {
        *word = word.wrapping_add(change);
    }
}

fn base64(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let at = |place: usize| u32::from(chunk.get(place).copied().unwrap_or(0));
        let bits = at(0) << 16 | at(1) << 8 | at(2);
        for place in 0..4 {
            if place <= chunk.len() {
                text.push(char::from(
                    ALPHABET[(bits >> (18 - 6 * place)) as usize & 63],
                ));
            } else {
                text.push('=');
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hex(message: &[u8]) -> String {
        sha256(message).iter().map(|b| format!("{b:02x}")).collect()
    }

    #[test]
    fn the_examples_of_the_standard() {
        assert_eq!(
            hex(b"abc"),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        );
        assert_eq!(
            hex(b""),
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
        );
        // Two blocks, for the padding does not fit the first.
        assert_eq!(
            hex(b"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"
        );
    }

    #[test]
    fn base64_pads_to_fours() {
        for (bytes, text) in [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foobar", "Zm9vYmFy"),
        ] {
            assert_eq!(base64(bytes.as_bytes()), text);
        }
    }
}
