//! The ids of traces and of spans.

use sha2::{Digest as _, Sha256};

use crate::host::Host;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceId(pub [u8; 16]);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpanId(pub [u8; 8]);

impl SpanId {
    pub fn mint(host: &dyn Host) -> Self {
        let mut bytes = [0; 8];
        host.fill_random(&mut bytes);
        // An id of zeros would mean that there is none.
        if bytes == [0; 8] {
            bytes = [1; 8];
        }
        Self(bytes)
    }

    /// The id of a part of this span. It is derived from the part's name, so that the part has the
    /// same id if the object is evicted.
    pub fn of_part(self, part: &str) -> Self {
        let digest = Sha256::new()
            .chain_update(self.0)
            .chain_update(part)
            .finalize();
        let mut bytes = [1; 8];
        for (byte, random) in bytes.iter_mut().zip(digest) {
            *byte = random;
        }
        Self(bytes)
    }
}
