//! When this activation of the object checks for interrupted turns and for slow listeners.

use std::cell::Cell;

use base::background::CHECK_AFTER_MS;

#[derive(Default)]
pub struct TurnChecks {
    is_recovery_due: Cell<bool>,
    checked_at_ms: Cell<i64>,
}

impl TurnChecks {
    /// Whether to check for interrupted turns now. This happens once, unless some remain.
    pub fn take_recovery_due(&self) -> bool {
        self.is_recovery_due.replace(false)
    }

    pub fn set_recovery_due(&self, is_due: bool) {
        self.is_recovery_due.set(is_due);
    }

    /// Whether to check the listeners: at most every ten seconds. An alarm may fire sooner, and
    /// must not shorten their time.
    pub fn take_listeners_due(&self, now_ms: i64) -> bool {
        let is_due = now_ms - self.checked_at_ms.get() >= CHECK_AFTER_MS;
        if is_due {
            self.checked_at_ms.set(now_ms);
        }
        is_due
    }
}
