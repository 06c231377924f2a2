//! How much of a model's window a request of learning may fill. In a large window, the
//! limits of a pass and of a step apply. In a small window less is shown at once, so that
//! any model can learn everything, in more passes.

use base::error::{Error, Result};
use base::ids::Id;
use memory::Memory;
use models::call::choose_model;
use models::context_windows::load_window;
use models::length::LengthRefusal;
use store::config::Config;
use store::learn_settings::LearnSettings;

/// The most bytes of the event lines and of the entry lines, according to the limits of a
/// pass.
const MAX_EVENT_BYTES: i64 = 36 << 10;
const MAX_ENTRY_BYTES: i64 = 20 << 10;

/// The minimum that is shown, whatever the window is.
const MIN_BYTES: i64 = 600;

/// The bytes of a line besides its texts: names and punctuation.
pub const LINE_BYTES: usize = 48;

/// A token has about four bytes in most texts, and three in those without spaces.
const BYTES_PER_TOKEN: i64 = 3;

/// The most tokens of an answer, and its fraction of a small window: a quarter.
const ANSWER_TOKENS: i64 = 4_000;
const ANSWER_SHARE: i64 = 4;

/// The tokens of the request's fixed text.
const REQUEST_TOKENS: i64 = 700;

/// How often a request is sent to a model that refuses it because of its length. Each retry
/// is half as long.
const MAX_TRIES: u32 = 4;

/// The capacity of one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestCapacity {
    /// The bytes of the event lines.
    pub events: usize,
    /// The bytes of the entry lines.
    pub entries: usize,
    pub answer_tokens: i64,
}

impl RequestCapacity {
    /// The capacity of a request that was refused `refusals` times because of its length.
    pub fn load(
        memory: &Memory<'_>,
        config: &Config,
        settings: &LearnSettings,
        refusals: u32,
    ) -> Result<Self> {
        let model = named_model(config, settings).map(Id::as_str);
        let instructions = settings.instructions.as_ref().map_or(0, String::len) as i64;
        // The code that calls the model reports why there is none.
        let Ok(choice) = choose_model(memory.outbound, model) else {
            return Ok(Self::of(i64::from(i32::MAX), instructions, refusals));
        };
        // The agent's setting applies to the model of its turns.
        let configured = config
            .max_context_tokens
            .map(|tokens| tokens.0)
            .filter(|_| settings.model.is_none());
        let window = load_window(memory.db, memory.host.now_ms(), configured, &choice.name)?;
        Ok(Self::of(window, instructions, refusals))
    }

    fn of(window: i64, instructions: i64, refusals: u32) -> Self {
        let answer_tokens = ANSWER_TOKENS.min(window / ANSWER_SHARE);
        let left = (window - answer_tokens - REQUEST_TOKENS) * BYTES_PER_TOKEN - instructions;
        let part = |share: i64, most: i64| {
            let bytes = (left / 3 * share).min(most) >> refusals;
            usize::try_from(bytes.max(MIN_BYTES)).unwrap_or_default()
        };
        Self {
            events: part(2, MAX_EVENT_BYTES),
            entries: part(1, MAX_ENTRY_BYTES),
            answer_tokens: (answer_tokens >> refusals).max(1),
        }
    }
}

/// The model that learns.
pub fn named_model<'a>(config: &'a Config, settings: &'a LearnSettings) -> Option<&'a Id> {
    settings.model.as_ref().or(config.model.as_ref())
}

/// Whether a request is retried, half as long, after this failure.
pub fn is_retried(error: &Error, refusals: u32) -> bool {
    refusals + 1 < MAX_TRIES && LengthRefusal::of(error).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_small_window_limits_the_material() {
        let full = RequestCapacity {
            events: 36 << 10,
            entries: 20 << 10,
            answer_tokens: 4_000,
        };
        assert_eq!(RequestCapacity::of(100_000, 0, 0), full);
        assert_eq!(RequestCapacity::of(32_000, 4_096, 0), full);
        for window in [3_000, 4_096, 8_192, 16_000] {
            let RequestCapacity {
                events,
                entries,
                answer_tokens,
            } = RequestCapacity::of(window, 0, 0);
            let sent = (events + entries) as i64 / BYTES_PER_TOKEN + REQUEST_TOKENS;
            assert!(sent + answer_tokens <= window, "{window}");
            assert!(events > 1_000, "{window}");
        }
        let least = RequestCapacity::of(0, 4_096, 3);
        assert_eq!((least.events, least.entries), (600, 600));
        assert_eq!(least.answer_tokens, 1);
        assert_eq!(RequestCapacity::of(100_000, 0, 2).events, 9 << 10);
    }
}
