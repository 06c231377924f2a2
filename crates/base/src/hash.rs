//! A number for a name. SHA-256, so that nobody finds names whose numbers meet.

use sha2::{Digest as _, Sha256};

/// 64 bits that follow from the names. No name holds a zero byte.
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
