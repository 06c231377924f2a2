//! The seam to the world outside the database: the clock and randomness.
//! Nothing else in the core may ask for the time or for a random byte, so that
//! a test can say what both are.

pub trait Host {
    /// Milliseconds since the epoch.
    fn now_ms(&self) -> i64;

    /// Fills `bytes` from a cryptographic source.
    fn fill_random(&self, bytes: &mut [u8]);
}
