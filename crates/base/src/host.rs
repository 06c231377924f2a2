//! The interface to the clock, to randomness and to the memory size. No other code uses
//! them directly, so that tests can control them.

pub trait Host {
    /// Milliseconds since the epoch.
    fn now_ms(&self) -> i64;

    /// Fills `bytes` from a cryptographic source of randomness.
    fn fill_random(&self, bytes: &mut [u8]);

    /// The size of the memory that all objects of this isolate share. It never shrinks.
    fn memory_bytes(&self) -> usize;
}
