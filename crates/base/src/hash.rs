//! A number for a name. SHA-256, so that nobody can construct names with colliding numbers.

use sha2::{Digest as _, Sha256};

/// A 64-bit hash of the names. Names contain no zero byte.
pub fn hash_names(names: &[&str]) -> u64 {
    let mut digest = Sha256::new();
    for name in names {
        digest.update(name.as_bytes());
        digest.update([0]);
    }
    let bytes: [u8; 32] = digest.finalize().into();
    let [a, b, c, d, e, f, g, h, ..] = bytes;
    u64::from_be_bytes([a, b, c, d, e, f, g, h])
}
