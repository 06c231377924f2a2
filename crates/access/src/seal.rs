//! Texts that are stored encrypted: AES-256-GCM, with a key that is derived from a secret of
//! the deployment.
//!
//! A sealed text is bound to its context, such as the agent and the row that stores it.
//! So a copy in another row can't be opened.

use aes_gcm::aead::{Aead, KeyInit, Payload};
use aes_gcm::{Aes256Gcm, Key, Nonce};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use super::token::{MIN_SECRET_CHARS, derive_key};
use base::host::Host;

const PURPOSE: &str = "session-agent sealing key 1";

/// The version of the format, before the nonce and the encrypted text.
const PREFIX: &str = "1.";

/// The bytes of a nonce. Each sealed text has a random one: with 96 bits, a key may seal 2^32
/// texts.
const NONCE_BYTES: usize = 12;

pub struct SealingKey(Aes256Gcm);

impl SealingKey {
    /// `None`: the secret is too short.
    pub fn new(secret: &str) -> Option<Self> {
        if secret.chars().count() < MIN_SECRET_CHARS {
            return None;
        }
        let key: Key<Aes256Gcm> = derive_key(secret, PURPOSE).into();
        Some(Self(Aes256Gcm::new(&key)))
    }

    /// `None`: the text is too long for the cipher.
    pub fn seal(&self, host: &dyn Host, context: &str, text: &str) -> Option<String> {
        let mut nonce = [0; NONCE_BYTES];
        host.fill_random(&mut nonce);
        let payload = Payload {
            msg: text.as_bytes(),
            aad: context.as_bytes(),
        };
        let sealed = self.0.encrypt(&Nonce::from(nonce), payload).ok()?;
        let mut bytes = nonce.to_vec();
        bytes.extend(sealed);
        Some(format!("{PREFIX}{}", URL_SAFE_NO_PAD.encode(bytes)))
    }

    /// `None`: the text was sealed with another key or for another context, or it was changed.
    pub fn open(&self, context: &str, sealed: &str) -> Option<String> {
        let bytes = URL_SAFE_NO_PAD.decode(sealed.strip_prefix(PREFIX)?).ok()?;
        let (nonce, sealed) = bytes.split_first_chunk::<NONCE_BYTES>()?;
        let payload = Payload {
            msg: sealed,
            aad: context.as_bytes(),
        };
        let text = self.0.decrypt(&Nonce::from(*nonce), payload).ok()?;
        String::from_utf8(text).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::testing::FixedHost;

    const SECRET: &str = "a secret of exactly 32 characters";

    #[test]
    fn a_sealed_text_opens_only_with_its_key_and_context() {
        let host = FixedHost::default();
        let key = SealingKey::new(SECRET).unwrap();
        let sealed = key.seal(&host, "alice/wiki", "hunter2").unwrap();
        assert!(!sealed.contains("hunter2"));
        assert_eq!(key.open("alice/wiki", &sealed).as_deref(), Some("hunter2"));
        assert_eq!(key.open("bob/wiki", &sealed), None);
        let other = SealingKey::new("another secret of 32 characters or more").unwrap();
        assert_eq!(other.open("alice/wiki", &sealed), None);
        let mut changed = sealed.clone();
        changed.pop();
        assert_eq!(key.open("alice/wiki", &changed), None);
        for nonsense in ["", "1.", "1.AAAA", "2.AAAA", &sealed[2..]] {
            assert_eq!(key.open("alice/wiki", nonsense), None, "{nonsense}");
        }
    }

    #[test]
    fn sealing_needs_a_long_secret_and_never_repeats_a_ciphertext() {
        assert!(SealingKey::new(&SECRET[..31]).is_none());
        let host = FixedHost::default();
        let key = SealingKey::new(SECRET).unwrap();
        let one = key.seal(&host, "a", "text").unwrap();
        assert_ne!(one, key.seal(&host, "a", "text").unwrap());
        assert_eq!(
            key.seal(&host, "a", "")
                .map(|sealed| key.open("a", &sealed)),
            Some(Some(String::new()))
        );
    }
}
