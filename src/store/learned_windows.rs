//! How many tokens a model takes, as its refusals have taught it. What is learned holds
//! for a day: a provider may have said something wrong, or may change its mind.

use serde::Serialize;

use super::stored::{find_stored, write_stored};
use crate::base::database::Database;
use crate::base::error::Result;
use crate::base::json::{self, FromJson};

/// How long a lesson holds.
const VALID_MS: i64 = 24 * 60 * 60 * 1_000;

/// Of how many models an agent keeps a lesson.
const MAX_KNOWN: usize = 16;

const KEY: &str = "windows";

#[derive(Serialize, FromJson)]
struct LearnedWindow {
    model: String,
    /// Estimated tokens of a whole request, not corrected.
    tokens: i64,
    at: i64,
}

fn load(db: &dyn Database, now_ms: i64) -> Result<Vec<LearnedWindow>> {
    let stored = find_stored(db, KEY)?;
    // A value that can't be read is dropped, and learnt anew.
    let known: Option<Vec<LearnedWindow>> = stored.and_then(|json| json::decode(&json).ok());
    let mut known = known.unwrap_or_default();
    known.retain(|window| (0..VALID_MS).contains(&(now_ms - window.at)));
    Ok(known)
}

/// The most that a request to this model may be estimated at.
pub fn find_learned_window(db: &dyn Database, now_ms: i64, model: &str) -> Result<Option<i64>> {
    let known = load(db, now_ms)?;
    let window = known.iter().find(|window| window.model == model);
    Ok(window.map(|window| window.tokens))
}

/// Part of a transaction.
pub fn learn_window(db: &dyn Database, now_ms: i64, model: &str, tokens: i64) -> Result<()> {
    let mut known = load(db, now_ms)?;
    known.retain(|window| window.model != model);
    let surplus = (known.len() + 1).saturating_sub(MAX_KNOWN);
    known.drain(..surplus);
    known.push(LearnedWindow {
        model: model.to_owned(),
        tokens,
        at: now_ms,
    });
    write_stored(db, KEY, &known)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::migrated;

    #[test]
    fn a_lesson_holds_for_a_day_and_for_its_model() {
        let db = migrated();
        let find = |now_ms, model| find_learned_window(&db, now_ms, model).unwrap();
        learn_window(&db, 1_000, "openai:a", 8_000).unwrap();
        assert_eq!(find(1_000, "openai:a"), Some(8_000));
        assert_eq!(find(1_000, "openai:b"), None);
        assert_eq!(find(1_000 + VALID_MS, "openai:a"), None);
        learn_window(&db, 2_000, "openai:a", 4_000).unwrap();
        assert_eq!(find(3_000, "openai:a"), Some(4_000));
    }

    #[test]
    fn few_lessons_are_kept_and_damage_is_forgotten() {
        let db = migrated();
        for number in 0..20 {
            learn_window(&db, number, &number.to_string(), 5_000).unwrap();
        }
        assert_eq!(find_learned_window(&db, 20, "3").unwrap(), None);
        assert_eq!(find_learned_window(&db, 20, "19").unwrap(), Some(5_000));
        db.run(
            "UPDATE cf_agents_config SET value = '{' WHERE key = 'windows'",
            &[],
        )
        .unwrap();
        assert_eq!(find_learned_window(&db, 20, "19").unwrap(), None);
    }
}
