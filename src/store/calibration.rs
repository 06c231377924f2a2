//! Corrects token estimates by what providers report. An estimate counts letters and
//! words. A model's tokenizer, its wrapping of messages and the language of an agent
//! make every estimate wrong by a similar share.
//!
//! The object keeps running sums of estimated and reported tokens; newer reports count
//! more. A report that hardly moves the factor writes no row.

use serde::{Deserialize, Serialize};

use crate::base::database::{Database, atomically};
use crate::base::error::Result;
use crate::store::stored::{find_stored, write_stored};

/// Each new report multiplies the weight of the older reports by this number. A new
/// report weighs about a third, so if a report moves the factor by less than
/// [`MIN_MOVE`], the report's own ratio is within 7 % of the factor.
const DECAY: f64 = 0.7;

/// Both sums start with so many tokens, as if an estimate had been right. A first
/// report on a short prompt, which is mostly wrapping, then changes little.
const PRIOR_TOKENS: f64 = 1_000.0;

/// The factor's bounds. A report beyond them counts something other than tokens.
const MIN_FACTOR: f64 = 0.5;
const MAX_FACTOR: f64 = 3.0;

/// The factor has to move by this much before a row is written.
const MIN_MOVE: f64 = 0.02;

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Calibration {
    estimated: f64,
    reported: f64,
}

impl Default for Calibration {
    fn default() -> Self {
        Self {
            estimated: PRIOR_TOKENS,
            reported: PRIOR_TOKENS,
        }
    }
}

impl Calibration {
    fn factor(self) -> f64 {
        let factor = self.reported / self.estimated;
        if factor.is_finite() {
            factor.clamp(MIN_FACTOR, MAX_FACTOR)
        } else {
            1.0
        }
    }

    /// Converts an estimate into tokens as the agent's provider would count them.
    pub fn correct(self, tokens: i64) -> i64 {
        (tokens as f64 * self.factor()).round() as i64
    }

    fn after(self, estimated: i64, reported: i64) -> Self {
        Self {
            estimated: self.estimated * DECAY + estimated as f64,
            reported: self.reported * DECAY + reported as f64,
        }
    }
}

const KEY: &str = "calibration";

pub fn load_calibration(db: &dyn Database) -> Result<Calibration> {
    let stored = find_stored(db, KEY)?;
    // A stored value that can't be read is dropped; the sums start again.
    Ok(stored
        .and_then(|json| serde_json::from_str(&json).ok())
        .unwrap_or_default())
}

/// Learns from a call to a model. `estimated` is the uncorrected estimate of the call's
/// input. `reported` is the provider's count of the input, cached tokens included.
pub fn record(db: &dyn Database, estimated: i64, reported: i64) -> Result<()> {
    if estimated <= 0 || reported <= 0 {
        return Ok(());
    }
    atomically(db, || {
        let before = load_calibration(db)?;
        let after = before.after(estimated, reported);
        if (after.factor() / before.factor() - 1.0).abs() <= MIN_MOVE {
            return Ok(());
        }
        write_stored(db, KEY, &after)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Failing, migrated};

    #[test]
    fn nothing_reported_corrects_nothing() {
        let db = migrated();
        let calibration = load_calibration(&db).unwrap();
        for tokens in [0, 1, 1_000_000_007] {
            assert_eq!(calibration.correct(tokens), tokens);
        }
    }

    #[test]
    fn reports_move_estimates_towards_what_was_counted() {
        let db = migrated();
        let mut last = 10_000;
        for _ in 0..20 {
            record(&db, 10_000, 15_000).unwrap();
            let corrected = load_calibration(&db).unwrap().correct(10_000);
            assert!((last..=15_000).contains(&corrected));
            last = corrected;
        }
        assert!((14_000..=15_000).contains(&last), "{last}");
        // And back again, when another model counts otherwise.
        for _ in 0..60 {
            record(&db, 10_000, 9_000).unwrap();
        }
        let corrected = load_calibration(&db).unwrap().correct(10_000);
        assert!((9_000..=9_630).contains(&corrected), "{corrected}");
    }

    #[test]
    fn a_short_prompt_says_little() {
        let db = migrated();
        record(&db, 10, 60).unwrap();
        let corrected = load_calibration(&db).unwrap().correct(1_000);
        assert!((1_020..=1_100).contains(&corrected), "{corrected}");
    }

    #[test]
    fn no_report_corrects_by_more_than_the_bounds() {
        for (estimated, reported, corrected) in [
            (100_000, i64::MAX, 300),
            (i64::MAX, 1, 50),
            (0, 5, 100),
            (5, -5, 100),
        ] {
            let db = migrated();
            record(&db, estimated, reported).unwrap();
            let calibration = load_calibration(&db).unwrap();
            assert_eq!(calibration.correct(100), corrected);
        }
    }

    #[test]
    fn a_report_that_tells_nothing_new_writes_no_row() {
        let db = migrated();
        let before = db.dump();
        record(&db, 10_000, 10_100).unwrap();
        assert_eq!(db.dump(), before);
        record(&db, 10_000, 20_000).unwrap();
        assert_ne!(db.dump(), before);
    }

    #[test]
    fn a_record_that_fails_leaves_what_was_there() {
        let db = migrated();
        record(&db, 10_000, 20_000).unwrap();
        let before = db.dump();
        for passing in 0..2 {
            let failing = Failing::after(&db, passing);
            record(&failing, 10_000, 30_000).unwrap_err();
            assert_eq!(db.dump(), before);
        }
    }

    #[test]
    fn a_row_that_cannot_be_read_is_learnt_anew() {
        let db = migrated();
        let sql = "INSERT INTO cf_agents_config (key, value) VALUES ('calibration', ?1)";
        db.run(sql, &["{".into()]).unwrap();
        let calibration = load_calibration(&db).unwrap();
        assert_eq!(calibration, Calibration::default());
        record(&db, 10_000, 20_000).unwrap();
        assert!(load_calibration(&db).unwrap().correct(100) > 150);
    }
}
