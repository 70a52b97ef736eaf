//! The handshake: Noise_NNpsk0_25519_AESGCM_SHA256 by the crate `snow`.
//!
//! The pattern has two messages, an ephemeral key from each side, mixed with a pre-shared key from the first byte on. So the first message
//! shows a server whether the client has the key. Sessions have forward secrecy. Static keys instead of a shared key would need the pattern
//! IK (the client knows the server's key) or XK: other strings here, and keys to load.
//!
//! `snow` gets its primitives from `ring` and `curve25519-dalek`, and its random numbers from the caller. [`protection`](crate::protection)
//! encrypts packets with the keys of the finished handshake, because `snow` would copy them.

use crate::random::Random;
use curve25519_dalek::MontgomeryPoint;
use ring::aead::{self, LessSafeKey, UnboundKey};
use ring::digest;
use snow::params::{CipherChoice, DHChoice, HashChoice};
use snow::resolvers::CryptoResolver;
use snow::types::{self, Cipher, Dh, Hash};
use snow::{Builder, Error, HandshakeState};

const PATTERN: &str = "Noise_NNpsk0_25519_AESGCM_SHA256";
/// The longest handshake message.
const LONGEST: usize = 512;
const KEY: usize = 32;
const TAG: usize = 16;

/// Secrets of a connection, one for each direction.
pub(crate) struct Secrets {
    pub(crate) send: [u8; KEY],
    pub(crate) receive: [u8; KEY],
}

/// One side of a handshake.
pub(crate) struct Handshake {
    state: HandshakeState,
    initiator: bool,
}

impl Handshake {
    /// Begins a handshake. `random` is 32 bytes, not used elsewhere.
    pub(crate) fn new(
        initiator: bool,
        key: &[u8; KEY],
        prologue: &[u8],
        random: [u8; KEY],
    ) -> Result<Self, Error> {
        let pattern = PATTERN.parse()?;
        let builder = Builder::with_resolver(pattern, Box::new(Primitives { random }));
        let builder = builder.prologue(prologue)?.psk(0, key)?;
        let state = match initiator {
            true => builder.build_initiator()?,
            false => builder.build_responder()?,
        };
        Ok(Self { state, initiator })
    }

    /// The next message, with a payload.
    pub(crate) fn write(&mut self, payload: &[u8]) -> Result<Vec<u8>, Error> {
        let mut message = vec![0; LONGEST];
        let length = self.state.write_message(payload, &mut message)?;
        message.truncate(length);
        Ok(message)
    }

    /// Payload of the other side's message.
    pub(crate) fn read(&mut self, message: &[u8]) -> Result<Vec<u8>, Error> {
        let mut payload = vec![0; LONGEST];
        if message.len() > LONGEST {
            return Err(Error::Input);
        }
        let length = self.state.read_message(message, &mut payload)?;
        payload.truncate(length);
        Ok(payload)
    }

    /// Secrets of the finished handshake.
    pub(crate) fn secrets(mut self) -> Secrets {
        let (first, second) = self.state.dangerously_get_raw_split();
        match self.initiator {
            true => Secrets {
                send: first,
                receive: second,
            },
            false => Secrets {
                send: second,
                receive: first,
            },
        }
    }
}

/// Cryptographic primitives for `snow`.
struct Primitives {
    random: [u8; KEY],
}

impl CryptoResolver for Primitives {
    fn resolve_rng(&self) -> Option<Box<dyn types::Random>> {
        Some(Box::new(Random::new(&self.random)))
    }

    fn resolve_dh(&self, choice: &DHChoice) -> Option<Box<dyn Dh>> {
        match choice {
            DHChoice::Curve25519 => Some(Box::new(X25519::default())),
            _ => None,
        }
    }

    fn resolve_hash(&self, choice: &HashChoice) -> Option<Box<dyn Hash>> {
        match choice {
            HashChoice::SHA256 => Some(Box::new(Sha256(digest::Context::new(&digest::SHA256)))),
            _ => None,
        }
    }

    fn resolve_cipher(&self, choice: &CipherChoice) -> Option<Box<dyn Cipher>> {
        match choice {
            CipherChoice::AESGCM => Some(Box::new(AesGcm(aes_256_gcm(&[0; KEY])))),
            _ => None,
        }
    }
}

/// A key of AES-256-GCM.
pub(crate) fn aes_256_gcm(key: &[u8; KEY]) -> LessSafeKey {
    let unbound = UnboundKey::new(&aead::AES_256_GCM, key);
    LessSafeKey::new(unbound.expect("the length of the key is that of the algorithm"))
}

/// Nonce of a number, as Noise defines it for AESGCM.
pub(crate) fn nonce(number: u64) -> aead::Nonce {
    let mut bytes = [0; aead::NONCE_LEN];
    bytes[4..].copy_from_slice(&number.to_be_bytes());
    aead::Nonce::assume_unique_for_key(bytes)
}

impl types::Random for Random {
    fn try_fill_bytes(&mut self, into: &mut [u8]) -> Result<(), Error> {
        for chunk in into.chunks_mut(digest::SHA256_OUTPUT_LEN) {
            chunk.copy_from_slice(&self.block()[..chunk.len()]);
        }
        Ok(())
    }
}

/// Diffie-Hellman on Curve25519.
#[derive(Default)]
struct X25519 {
    private: [u8; KEY],
    public: [u8; KEY],
}

impl Dh for X25519 {
    fn name(&self) -> &'static str {
        "25519"
    }
    fn pub_len(&self) -> usize {
        KEY
    }
    fn priv_len(&self) -> usize {
        KEY
    }
    fn set(&mut self, private: &[u8]) {
        self.private.copy_from_slice(private);
        self.public = MontgomeryPoint::mul_base_clamped(self.private).to_bytes();
    }
    fn generate(&mut self, random: &mut dyn types::Random) -> Result<(), Error> {
        let mut private = [0; KEY];
        random.try_fill_bytes(&mut private)?;
        self.set(&private);
        Ok(())
    }
    fn pubkey(&self) -> &[u8] {
        &self.public
    }
    fn privkey(&self) -> &[u8] {
        &self.private
    }
    fn dh(&self, public: &[u8], out: &mut [u8]) -> Result<(), Error> {
        let public = public.get(..KEY).and_then(|bytes| bytes.try_into().ok());
        let point = MontgomeryPoint(public.ok_or(Error::Dh)?);
        let shared = point.mul_clamped(self.private).to_bytes();
        out[..KEY].copy_from_slice(&shared);
        Ok(())
    }
}

/// SHA-256.
struct Sha256(digest::Context);

impl Hash for Sha256 {
    fn name(&self) -> &'static str {
        "SHA256"
    }
    fn block_len(&self) -> usize {
        digest::SHA256.block_len()
    }
    fn hash_len(&self) -> usize {
        digest::SHA256_OUTPUT_LEN
    }
    fn reset(&mut self) {
        self.0 = digest::Context::new(&digest::SHA256);
    }
    fn input(&mut self, data: &[u8]) {
        self.0.update(data);
    }
    fn result(&mut self, out: &mut [u8]) {
        let digest = self.0.clone().finish();
        out[..digest::SHA256_OUTPUT_LEN].copy_from_slice(digest.as_ref());
    }
}

/// AES-256-GCM of handshake messages.
struct AesGcm(LessSafeKey);

impl Cipher for AesGcm {
    fn name(&self) -> &'static str {
        "AESGCM"
    }
    fn set(&mut self, key: &[u8; KEY]) {
        self.0 = aes_256_gcm(key);
    }
    fn encrypt(&self, number: u64, authentic: &[u8], plain: &[u8], out: &mut [u8]) -> usize {
        let (text, tag) = out[..plain.len() + TAG].split_at_mut(plain.len());
        text.copy_from_slice(plain);
        let aad = aead::Aad::from(authentic);
        let sealed = self.0.seal_in_place_separate_tag(nonce(number), aad, text);
        tag.copy_from_slice(sealed.expect("handshake messages are short").as_ref());
        text.len() + TAG
    }
    fn decrypt(
        &self,
        number: u64,
        authentic: &[u8],
        cipher: &[u8],
        out: &mut [u8],
    ) -> Result<usize, Error> {
        let mut text = cipher.to_vec();
        let aad = aead::Aad::from(authentic);
        let opened = self.0.open_in_place(nonce(number), aad, &mut text);
        let plain = opened.map_err(|_| Error::Decrypt)?;
        out.get_mut(..plain.len())
            .ok_or(Error::Input)?
            .copy_from_slice(plain);
        Ok(plain.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair(keys: [[u8; 32]; 2], prologues: [&[u8]; 2]) -> Result<[Secrets; 2], Error> {
        let mut client = Handshake::new(true, &keys[0], prologues[0], [1; 32])?;
        let mut server = Handshake::new(false, &keys[1], prologues[1], [2; 32])?;
        assert_eq!(server.read(&client.write(b"hello")?)?, b"hello");
        assert_eq!(client.read(&server.write(b"welcome")?)?, b"welcome");
        Ok([client.secrets(), server.secrets()])
    }

    #[test]
    fn both_sides_have_the_same_secrets() {
        let [client, server] = pair([[7; 32]; 2], [b"p"; 2]).unwrap();
        assert_eq!(client.send, server.receive);
        assert_eq!(client.receive, server.send);
        assert_ne!(client.send, client.receive);
    }

    #[test]
    fn another_key_or_prologue_fails_at_the_first_message() {
        assert!(pair([[7; 32], [8; 32]], [b"p"; 2]).is_err());
        assert!(pair([[7; 32]; 2], [b"p", b"q"]).is_err());
    }

    #[test]
    fn primitives_are_those_of_their_standards() {
        let hex = |text: &str| -> Vec<u8> {
            let digits = |at| u8::from_str_radix(&text[at..at + 2], 16).unwrap();
            (0..text.len()).step_by(2).map(digits).collect()
        };
        // RFC 7748 §5.2: the base point as scalar and point.
        let mut base = [0; 32];
        base[0] = 9;
        let mut x25519 = X25519::default();
        x25519.set(&base);
        let mut shared = [0; 32];
        x25519.dh(&base, &mut shared).unwrap();
        let expected = "422c8e7a6227d7bca1350b3e2bb7279f7897b87bb6854b783c60e80311ae3079";
        assert_eq!(shared[..], hex(expected)[..]);
        assert_eq!(x25519.pubkey(), shared);
        // FIPS 180-4, "abc".
        let mut sha = Sha256(digest::Context::new(&digest::SHA256));
        sha.input(b"abc");
        let mut out = [0; 32];
        sha.result(&mut out);
        assert_eq!(out[..8], hex("ba7816bf8f01cfea")[..]);
    }
}
