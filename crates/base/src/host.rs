//! The interface to the clock, to randomness and to the size of memory. No other code of the
//! districts asks for them, so that a test can set them.

pub trait Host {
    /// Milliseconds since the epoch.
    fn now_ms(&self) -> i64;

    /// Fills `bytes` from a cryptographic source of randomness.
    fn fill_random(&self, bytes: &mut [u8]);

    /// The size of the memory that all objects of this isolate share. It never shrinks.
    fn memory_bytes(&self) -> usize;
}
