//! The numbers of tokens that models accept, as learned from their refusals. A limit is valid for
//! a day: a provider may have reported something wrong, or may change its limit.
//!
//! A refusal teaches two things. The estimate that a request may have depends on its text, so this
//! limit is stored with the session whose request was refused (`context/compaction/journal.rs`). A
//! window that the provider names in tokens is a fact about the model, so it is stored here, for
//! the whole agent.

use serde::{Deserialize, Serialize};

use super::stored::{find_stored, write_stored};
use base::database::Database;
use base::error::Result;
use base::json::{self};

/// How long a learned limit is valid.
const VALID_MS: i64 = 24 * 60 * 60 * 1_000;

/// The number of models whose named windows an agent stores.
const MAX_NAMED: usize = 16;

/// A smaller number cannot be the window of a model for conversations. A provider whose refusals
/// quote a request could be made to name any number.
const MIN_NAMED_TOKENS: i64 = 1_000;

const KEY: &str = "namedWindows";

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LearnedWindow {
    model: String,
    tokens: i64,
    at: i64,
}

/// The tokens that were learned for a model, if the limit is still valid.
pub fn find_learned_window(known: &[LearnedWindow], now_ms: i64, model: &str) -> Option<i64> {
    let window = known.iter().find(|window| window.model == model)?;
    window.is_valid(now_ms).then_some(window.tokens)
}

/// Adds a learned limit of a model. Drops the model's earlier limit, expired limits, and the oldest
/// of more than `max` models.
pub fn add_learned_window(
    known: &mut Vec<LearnedWindow>,
    max: usize,
    now_ms: i64,
    (model, tokens): (&str, i64),
) {
    known.retain(|window| window.model != model && window.is_valid(now_ms));
    let surplus = (known.len() + 1).saturating_sub(max);
    known.drain(..surplus);
    known.push(LearnedWindow {
        model: model.to_owned(),
        tokens,
        at: now_ms,
    });
}

impl LearnedWindow {
    fn is_valid(&self, now_ms: i64) -> bool {
        (0..VALID_MS).contains(&(now_ms - self.at))
    }
}

fn load(db: &dyn Database) -> Result<Vec<LearnedWindow>> {
    let stored = find_stored(db, KEY)?;
    // A value that can't be read is dropped, and learned again.
    let known = stored.and_then(|json| json::decode(&json).ok());
    Ok(known.unwrap_or_default())
}

/// The model's whole window in tokens, as its provider named it.
pub fn find_named_window(db: &dyn Database, now_ms: i64, model: &str) -> Result<Option<i64>> {
    Ok(find_learned_window(&load(db)?, now_ms, model))
}

/// Stores a window that the provider named. Part of a transaction.
pub fn store_named_window(db: &dyn Database, now_ms: i64, model: &str, tokens: i64) -> Result<()> {
    let mut known = load(db)?;
    if tokens < MIN_NAMED_TOKENS || find_learned_window(&known, now_ms, model) == Some(tokens) {
        return Ok(());
    }
    add_learned_window(&mut known, MAX_NAMED, now_ms, (model, tokens));
    write_stored(db, KEY, &known)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::migrated;

    #[test]
    fn a_learned_window_applies_to_its_model_for_a_day() {
        let db = migrated();
        let find = |now_ms, model| find_named_window(&db, now_ms, model).unwrap();
        store_named_window(&db, 1_000, "openai:a", 8_000).unwrap();
        assert_eq!(find(1_000, "openai:a"), Some(8_000));
        assert_eq!(find(1_000, "openai:b"), None);
        assert_eq!(find(1_000 + VALID_MS, "openai:a"), None);
        store_named_window(&db, 2_000, "openai:a", 4_000).unwrap();
        assert_eq!(find(3_000, "openai:a"), Some(4_000));
    }

    #[test]
    fn invalid_and_known_windows_write_nothing() {
        let db = migrated();
        store_named_window(&db, 1_000, "openai:a", MIN_NAMED_TOKENS).unwrap();
        let before = db.dump();
        store_named_window(&db, 2_000, "openai:a", MIN_NAMED_TOKENS).unwrap();
        store_named_window(&db, 2_000, "openai:a", MIN_NAMED_TOKENS - 1).unwrap();
        assert_eq!(db.dump(), before);
    }

    #[test]
    fn few_windows_are_stored_and_corrupt_data_is_dropped() {
        let db = migrated();
        for number in 0..20 {
            store_named_window(&db, number, &number.to_string(), 5_000).unwrap();
        }
        assert_eq!(find_named_window(&db, 20, "3").unwrap(), None);
        assert_eq!(find_named_window(&db, 20, "19").unwrap(), Some(5_000));
        db.run(
            "UPDATE cf_agents_config SET value = '{' WHERE key = 'namedWindows'",
            &[],
        )
        .unwrap();
        assert_eq!(find_named_window(&db, 20, "19").unwrap(), None);
    }
}
