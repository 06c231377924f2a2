//! The interface to the clock and to randomness. No other code of the districts asks for the
//! time or for a random byte, so that a test can set both.

pub trait Host {
    /// Milliseconds since the epoch.
    fn now_ms(&self) -> i64;

    /// Fills `bytes` from a cryptographic source of randomness.
    fn fill_random(&self, bytes: &mut [u8]);
}
