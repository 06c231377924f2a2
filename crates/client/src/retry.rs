//! The rules for which calls may be tried again, and when.

use std::time::Duration;

use crate::{Code, Error};

/// How often a call is tried, and how long the pauses are. Only a call that may run twice is
/// retried: one that changes nothing, or one that brings its own ids.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Retry {
    /// The number of attempts in total. One: a failure is final.
    pub attempts: u32,
    /// The first pause. Each later pause is twice as long.
    pub pause: Duration,
    /// The longest pause. If an agent requires a longer one, the call is not retried.
    pub longest_pause: Duration,
}

impl Default for Retry {
    fn default() -> Self {
        Self {
            attempts: 4,
            pause: Duration::from_millis(200),
            longest_pause: Duration::from_secs(20),
        }
    }
}

impl Retry {
    /// A failure is final.
    #[must_use]
    pub fn never() -> Self {
        Self::default().attempts(1)
    }

    /// The number of attempts in total.
    #[must_use]
    pub fn attempts(mut self, attempts: u32) -> Self {
        self.attempts = attempts;
        self
    }

    /// The first pause.
    #[must_use]
    pub fn pause(mut self, pause: Duration) -> Self {
        self.pause = pause;
        self
    }

    /// The longest pause.
    #[must_use]
    pub fn longest_pause(mut self, longest: Duration) -> Self {
        self.longest_pause = longest;
        self
    }

    /// The pause after the failure of this attempt; the first attempt is 1. `None`: the failure is
    /// final. `random` is between 0 and 1, so that callers that failed together don't retry
    /// together.
    #[must_use]
    pub fn pause_after(&self, error: &Error, attempt: u32, random: f64) -> Option<Duration> {
        if attempt >= self.attempts {
            return None;
        }
        let requested = match error {
            Error::Refused(refusal) => match refusal.code {
                Code::RateLimited | Code::ModelOverloaded | Code::StorageFailed => {
                    Duration::from_secs(refusal.retry_after().unwrap_or_default())
                }
                _ => return None,
            },
            // A complete answer that is not from Session Agent would be the same after a retry.
            Error::Unreached {
                status: Some(..500),
                ..
            } => return None,
            Error::Unreached { .. } => Duration::ZERO,
            Error::Unreadable { .. } | Error::Invalid { .. } => return None,
        };
        if requested > self.longest_pause {
            return None;
        }
        let doubled = self
            .pause
            .saturating_mul(2_u32.saturating_pow(attempt.saturating_sub(1)));
        let backoff = doubled
            .min(self.longest_pause)
            .mul_f64(0.5 + random.clamp(0.0, 1.0) / 2.0);
        Some(requested.max(backoff))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::Retry;
    use crate::error::{Error, of_answer, of_redirect};

    fn refused(code: &str, details: &str) -> Error {
        let text =
            format!(r#"{{"error": {{"code": "{code}", "message": "No.", "details": {details}}}}}"#);
        of_answer("append", 429, &text)
    }

    const fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn a_lost_connection_is_retried_with_growing_delays() {
        let lost = Error::lost("append", "gone");
        let pauses = [1, 2, 3, 4].map(|attempt| Retry::default().pause_after(&lost, attempt, 1.0));
        assert_eq!(pauses, [Some(ms(200)), Some(ms(400)), Some(ms(800)), None]);
        assert_eq!(Retry::default().pause_after(&lost, 1, 0.0), Some(ms(100)));
        assert_eq!(Retry::never().pause_after(&lost, 1, 1.0), None);
    }

    #[test]
    fn only_overload_errors_are_retried() {
        let retry = Retry::default();
        for code in ["rate_limited", "model_overloaded", "storage_failed"] {
            assert_eq!(
                retry.pause_after(&refused(code, "{}"), 1, 1.0),
                Some(ms(200)),
                "{code}"
            );
        }
        for code in [
            "leaf_moved",
            "invalid_request",
            "corrupt_row",
            "network_failed",
            "newer_than_this",
        ] {
            assert_eq!(
                retry.pause_after(&refused(code, "{}"), 1, 1.0),
                None,
                "{code}"
            );
        }
    }

    #[test]
    fn the_agents_retry_after_is_used() {
        let after = |seconds| refused("rate_limited", &format!(r#"{{"retryAfter": {seconds}}}"#));
        assert_eq!(
            Retry::default().pause_after(&after(3), 1, 1.0),
            Some(ms(3000))
        );
        assert_eq!(
            Retry::default().pause_after(&after(20), 1, 1.0),
            Some(ms(20_000))
        );
        assert_eq!(Retry::default().pause_after(&after(21), 1, 1.0), None);
    }

    #[test]
    fn a_retry_covers_only_the_failed_calls() {
        let strange = |status| of_answer("append", status, "<html>");
        assert_eq!(Retry::default().pause_after(&strange(404), 1, 1.0), None);
        assert_eq!(
            Retry::default().pause_after(&strange(502), 1, 1.0),
            Some(ms(200))
        );
        assert_eq!(
            Retry::default().pause_after(&of_redirect("append", 307, None), 1, 1.0),
            None
        );
    }

    #[test]
    fn the_delay_has_a_maximum() {
        let retry = Retry::default().attempts(u32::MAX);
        let lost = Error::lost("append", "gone");
        assert_eq!(retry.pause_after(&lost, 1000, 1.0), Some(ms(20_000)));
    }
}
