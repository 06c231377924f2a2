//! The clock and randomness of the runtime, and the Worker's memory.

use std::cell::RefCell;
use std::time::Duration;

use worker::Delay;

use base::allocator::Counted;
use base::host::Host;

pub struct Runtime;

#[global_allocator]
static COUNTED: Counted = Counted;

/// Wasm memory grows in pages of this size.
#[cfg(target_arch = "wasm32")]
const PAGE_BYTES: usize = 64 << 10;

/// Random bytes are requested in blocks of this size.
const POOL_BYTES: usize = 1024;

thread_local! {
    /// Random bytes that nobody has used yet.
    static POOL: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

#[expect(clippy::disallowed_types, reason = "everything else asks this host")]
impl Host for Runtime {
    fn now_ms(&self) -> i64 {
        js_sys::Date::now() as i64
    }

    fn fill_random(&self, bytes: &mut [u8]) {
        if bytes.len() > POOL_BYTES / 4 {
            return fill(bytes);
        }
        POOL.with_borrow_mut(|pool| {
            if pool.len() < bytes.len() {
                pool.resize(POOL_BYTES, 0);
                fill(pool);
            }
            let left = pool.len() - bytes.len();
            bytes.copy_from_slice(&pool.split_off(left));
        });
    }

    #[cfg(target_arch = "wasm32")]
    fn memory_bytes(&self) -> usize {
        core::arch::wasm32::memory_size(0) * PAGE_BYTES
    }

    /// Only WebAssembly has a memory whose size can be read.
    #[cfg(not(target_arch = "wasm32"))]
    fn memory_bytes(&self) -> usize {
        0
    }
}

#[expect(clippy::disallowed_methods, reason = "everything else asks this host")]
#[expect(
    clippy::expect_used,
    reason = "without randomness two ids could be equal: no answer is better"
)]
fn fill(bytes: &mut [u8]) {
    getrandom::fill(bytes).expect("the runtime has crypto.getRandomValues");
}

pub fn pause(ms: i64) -> Delay {
    Delay::from(Duration::from_millis(ms.unsigned_abs()))
}
