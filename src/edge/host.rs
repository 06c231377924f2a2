//! The clock and randomness of the runtime.

use crate::base::host::Host;

pub struct Runtime;

impl Host for Runtime {
    fn now_ms(&self) -> i64 {
        js_sys::Date::now() as i64
    }

    #[allow(clippy::expect_used)]
    fn fill_random(&self, bytes: &mut [u8]) {
        // Without randomness two ids could be equal: no answer is better.
        getrandom::fill(bytes).expect("the runtime has crypto.getRandomValues");
    }
}
