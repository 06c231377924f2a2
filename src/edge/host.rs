//! The clock and randomness of the runtime.

use std::time::Duration;

use worker::Delay;

use crate::base::host::Host;

pub struct Runtime;

#[expect(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "everything else asks this host"
)]
impl Host for Runtime {
    fn now_ms(&self) -> i64 {
        js_sys::Date::now() as i64
    }

    #[expect(
        clippy::expect_used,
        reason = "without randomness two ids could be equal: no answer is better"
    )]
    fn fill_random(&self, bytes: &mut [u8]) {
        getrandom::fill(bytes).expect("the runtime has crypto.getRandomValues");
    }
}

pub fn pause(ms: i64) -> Delay {
    Delay::from(Duration::from_millis(ms.unsigned_abs()))
}
