//! The failure of learning: of a learning pass over a conversation, or of a step of consolidation.
//! Its row stores the last failure, and when to retry.

use serde::{Deserialize, Serialize};

use base::error::{Code, Error};

/// The pause after a failure. It doubles with each failure in a row.
const RETRY_MS: i64 = 60_000;
const MAX_RETRY_MS: i64 = 3_600_000;

/// No pause after a failure is longer: a budget allows tokens again after a day.
pub const LONGEST_RETRY_MS: i64 = 24 * 3_600_000;

/// How often a model may give an invalid answer about the same texts before they are skipped.
const MAX_INVALID_ANSWERS: u32 = 3;

/// Why the last attempt failed. Removed when an attempt succeeds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LearnFailure {
    pub code: String,
    pub message: String,
    pub at: i64,
    /// The number of attempts that have failed in a row.
    pub attempts: u32,
    /// How many of them failed because the model's answer was invalid.
    #[serde(rename = "nonsense", default)]
    pub invalid_answers: u32,
}

impl LearnFailure {
    /// The failure that follows the one before.
    pub fn new(before: Option<&Self>, error: &Error, is_invalid_answer: bool, now_ms: i64) -> Self {
        let attempts = before.map_or(0, |before| before.attempts);
        let invalid_answers = before.map_or(0, |before| before.invalid_answers);
        Self {
            code: error.code.name().to_owned(),
            message: error.message.clone(),
            at: now_ms,
            attempts: attempts.saturating_add(1),
            invalid_answers: invalid_answers.saturating_add(u32::from(is_invalid_answer)),
        }
    }

    /// When the next attempt is due. The error of a used-up budget has its own time.
    pub fn retry_at(&self, error: &Error) -> i64 {
        let pause_ms = match error.retry_after_s {
            Some(seconds) if error.code == Code::RateLimited => seconds.saturating_mul(1_000),
            _ => (RETRY_MS << self.attempts.saturating_sub(1).min(6)).min(MAX_RETRY_MS),
        };
        self.at.saturating_add(pause_ms)
    }
}

/// Whether a further invalid answer after this failure is the last one before the texts are
/// skipped.
pub fn is_enough(before: Option<&LearnFailure>) -> bool {
    before.map_or(0, |before| before.invalid_answers) + 1 >= MAX_INVALID_ANSWERS
}
