//! When an agent adds itself to the directory.

use std::cell::Cell;

/// The pause after a failure. It doubles with each further failure, up to an hour.
pub const FIRST_PAUSE_MS: i64 = 10_000;
const MAX_PAUSE_MS: i64 = 3_600_000;

/// What this activation still has to do for the agent's registration.
#[derive(Default)]
pub struct Joining {
    is_due: Cell<bool>,
    /// The pause after the next failure.
    pause_ms: Cell<i64>,
}

impl Joining {
    /// Whether the agent must still check whether it is in the directory.
    pub fn set_due(&self, is_due: bool) {
        self.is_due.set(is_due);
    }

    /// `true`: the caller checks it now.
    pub fn take_due(&self) -> bool {
        self.is_due.replace(false)
    }

    pub fn succeed(&self) {
        self.pause_ms.set(FIRST_PAUSE_MS);
    }

    /// The pause before the next attempt.
    pub fn fail(&self) -> i64 {
        let pause_ms = self.pause_ms.get().max(FIRST_PAUSE_MS);
        self.pause_ms.set((pause_ms * 2).min(MAX_PAUSE_MS));
        pause_ms
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_double_up_to_an_hour_and_reset_on_success() {
        let joining = Joining::default();
        assert_eq!(
            [joining.fail(), joining.fail(), joining.fail()],
            [10_000, 20_000, 40_000]
        );
        for _ in 0..10 {
            joining.fail();
        }
        assert_eq!(joining.fail(), MAX_PAUSE_MS);
        joining.succeed();
        assert_eq!(joining.fail(), FIRST_PAUSE_MS);
    }

    #[test]
    fn a_due_check_runs_once() {
        let joining = Joining::default();
        assert!(!joining.take_due());
        joining.set_due(true);
        assert!(joining.take_due() && !joining.take_due());
    }
}
