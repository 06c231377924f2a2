use std::cell::Cell;

use crate::host::Host;

/// A clock that the test controls, and random bytes that are identical in every run. Within
/// one run, no two draws are equal.
#[derive(Clone)]
pub struct FixedHost {
    now_ms: Cell<i64>,
    random: Cell<u64>,
}

impl Default for FixedHost {
    fn default() -> Self {
        Self {
            now_ms: Cell::new(1_000_000),
            random: Cell::new(0x9E37_79B9_7F4A_7C15),
        }
    }
}

impl FixedHost {
    /// A host with a later time and other random bytes than the default host.
    pub fn later() -> Self {
        Self {
            now_ms: Cell::new(1_000_000_000),
            random: Cell::new(0x2545_F491_4F6C_DD1D),
        }
    }

    /// Makes the following random bytes differ from those of hosts with another `number`.
    pub fn stir(&self, number: u64) {
        self.random
            .set(self.random.get() ^ number.wrapping_mul(0xD1B5_4A32_D192_ED03));
    }

    /// A host with random bytes from this seed, one minute after the default host.
    pub fn of(seed: u64) -> Self {
        Self {
            now_ms: Cell::new(1_060_000),
            random: Cell::new(seed.wrapping_mul(0xD134_2543_DE82_EF95) | 1),
        }
    }

    pub fn advance(&self, ms: i64) {
        self.now_ms.set(self.now_ms.get() + ms);
    }
}

impl Host for FixedHost {
    fn now_ms(&self) -> i64 {
        self.now_ms.get()
    }

    fn fill_random(&self, bytes: &mut [u8]) {
        for byte in bytes {
            // xorshift64
            let mut x = self.random.get();
            x ^= x << 13;
            x ^= x >> 7;
            x ^= x << 17;
            self.random.set(x);
            *byte = (x >> 32) as u8;
        }
    }

    fn memory_bytes(&self) -> usize {
        16 << 20
    }
}
