//! How much memory is in use. Wasm memory never shrinks, so its size only shows the
//! highest use so far. This allocator counts the bytes that are allocated and freed. The
//! edge makes it the Worker's own.

#![expect(unsafe_code, reason = "an allocator is unsafe to implement")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

static IN_USE: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

/// The system's allocator, with two counters. Its functions are never inlined: they are called in
/// thousands of places, and each copy would repeat the counting.
pub struct Counted;

// SAFETY: every call goes to the system's allocator unchanged; the counters hold only
// numbers.
unsafe impl GlobalAlloc for Counted {
    #[inline(never)]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        add(layout.size());
        // SAFETY: the caller's promises are passed on.
        unsafe { System.alloc(layout) }
    }

    #[inline(never)]
    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        IN_USE.fetch_sub(layout.size(), Relaxed);
        // SAFETY: the caller's promises are passed on.
        unsafe { System.dealloc(at, layout) }
    }

    #[inline(never)]
    unsafe fn realloc(&self, at: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        IN_USE.fetch_sub(layout.size(), Relaxed);
        add(bytes);
        // SAFETY: the caller's promises are passed on.
        unsafe { System.realloc(at, layout, bytes) }
    }
}

fn add(bytes: usize) {
    let in_use = IN_USE.fetch_add(bytes, Relaxed) + bytes;
    PEAK.fetch_max(in_use, Relaxed);
}

/// The bytes that all objects of this isolate have allocated.
#[derive(Debug, PartialEq)]
pub struct AllocatedBytes {
    pub in_use_bytes: usize,
    pub in_use_peak_bytes: usize,
}

pub fn allocated() -> AllocatedBytes {
    AllocatedBytes {
        in_use_bytes: IN_USE.load(Relaxed),
        in_use_peak_bytes: PEAK.load(Relaxed),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn freed_memory_leaves_in_use_but_not_the_peak() {
        let before = allocated();
        let [small, large] = [100, 300].map(|size| Layout::array::<u8>(size).unwrap());
        // SAFETY: each is freed with the layout with which it was allocated or to which it grew.
        unsafe {
            let at = Counted.alloc(small);
            assert_eq!(allocated().in_use_bytes, before.in_use_bytes + 100);
            let at = Counted.realloc(at, small, 300);
            assert_eq!(allocated().in_use_bytes, before.in_use_bytes + 300);
            Counted.dealloc(at, large);
        }
        assert_eq!(allocated().in_use_bytes, before.in_use_bytes);
        assert!(allocated().in_use_peak_bytes >= before.in_use_bytes + 300);
    }
}
