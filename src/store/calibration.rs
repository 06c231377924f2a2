//! Corrects token estimates by what providers report. An estimate counts letters and
//! words. A model's tokenizer, its wrapping of messages and the language of an agent
//! make every estimate wrong by a similar share.
//!
//! A session keeps running sums of estimated and reported tokens (`store/last_turns.rs`);
//! newer reports count more. The agent keeps a copy of one session's sums, with which a
//! new session begins. A report that tells the agent little writes no row of the agent's.

use serde::Serialize;

use crate::base::database::Database;
use crate::base::error::Result;
use crate::base::json::{self, FromJson};
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

/// A session's factor has to move by this much before the agent learns it.
const MIN_MOVE: f64 = 0.02;

/// The agent's factor has to be off by this much from a session's before the agent
/// learns it.
const MIN_GAP: f64 = 0.1;

#[derive(Clone, Copy, Debug, PartialEq, Serialize, FromJson)]
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

    /// The highest estimate that is at most so many tokens as the provider counts them.
    pub fn uncorrect(self, tokens: i64) -> i64 {
        (tokens as f64 / self.factor()).floor() as i64
    }

    /// The sums after a report. `estimated` is the uncorrected estimate of what a model
    /// was sent. `reported` is the provider's count, cached tokens included. `None`: the
    /// report says nothing.
    pub fn after(self, estimated: i64, reported: i64) -> Option<Self> {
        (estimated > 0 && reported > 0).then_some(Self {
            estimated: self.estimated * DECAY + estimated as f64,
            reported: self.reported * DECAY + reported as f64,
        })
    }

    /// By which share the factor differs from another.
    fn gap(self, other: Self) -> f64 {
        (self.factor() / other.factor() - 1.0).abs()
    }
}

const KEY: &str = "calibration";

/// The agent's sums, for a session that has none.
pub fn load_agents(db: &dyn Database) -> Result<Calibration> {
    Ok(parse_agents(find_stored(db, KEY)?.as_deref()))
}

/// SQL: selects the agent's sums for [`parse_agents`].
pub const FIND_AGENTS: &str = "SELECT value FROM cf_agents_config WHERE key = 'calibration'";

/// Parses the agent's sums. A stored value that can't be read is dropped; the sums start
/// again.
pub fn parse_agents(stored: Option<&str>) -> Calibration {
    stored
        .and_then(|json| json::decode(json).ok())
        .unwrap_or_default()
}

/// Has the agent take over a session's sums, which moved from `before` to `after`, if its
/// own are far from them. A session whose factor has settled writes no row, so two
/// sessions with different models don't write in turn. Part of a transaction.
pub fn teach_agent(
    db: &dyn Database,
    agents: Calibration,
    before: Calibration,
    after: Calibration,
) -> Result<()> {
    if after.gap(before) <= MIN_MOVE || after.gap(agents) <= MIN_GAP {
        return Ok(());
    }
    write_stored(db, KEY, &after)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::migrated;

    /// The sums of a session after so many equal reports.
    fn taught(from: Calibration, count: usize, estimated: i64, reported: i64) -> Calibration {
        (0..count).fold(from, |sums, _| sums.after(estimated, reported).unwrap())
    }

    #[test]
    fn nothing_reported_corrects_nothing() {
        let calibration = load_agents(&migrated()).unwrap();
        for tokens in [0, 1, 1_000_000_007] {
            assert_eq!(calibration.correct(tokens), tokens);
        }
        for (estimated, reported) in [(0, 5), (5, 0), (5, -5), (-5, 5)] {
            assert_eq!(calibration.after(estimated, reported), None);
        }
    }

    #[test]
    fn reports_move_estimates_towards_what_was_counted() {
        let mut sums = Calibration::default();
        let mut last = 10_000;
        for _ in 0..20 {
            sums = taught(sums, 1, 10_000, 15_000);
            let corrected = sums.correct(10_000);
            assert!((last..=15_000).contains(&corrected));
            last = corrected;
        }
        assert!((14_900..=15_000).contains(&last), "{last}");
        // And back again, when another model counts otherwise.
        let corrected = taught(sums, 60, 10_000, 9_000).correct(10_000);
        assert!((9_000..=9_100).contains(&corrected), "{corrected}");
    }

    #[test]
    fn a_limit_becomes_an_estimate_that_keeps_it() {
        for reported in [7_000, 10_000, 13_337] {
            let sums = taught(Calibration::default(), 9, 10_000, reported);
            for limit in [0, 1, 99, 8_000, 100_001] {
                let estimate = sums.uncorrect(limit);
                assert!(sums.correct(estimate) <= limit, "{reported} {limit}");
                assert!(sums.correct(estimate + 2) > limit, "{reported} {limit}");
            }
        }
    }

    #[test]
    fn a_short_prompt_says_little() {
        let corrected = taught(Calibration::default(), 1, 10, 60).correct(1_000);
        assert!((1_020..=1_100).contains(&corrected), "{corrected}");
    }

    #[test]
    fn no_report_corrects_by_more_than_the_bounds() {
        for (estimated, reported, corrected) in [(100_000, i64::MAX, 300), (i64::MAX, 1, 50)] {
            let sums = taught(Calibration::default(), 1, estimated, reported);
            assert_eq!(sums.correct(100), corrected);
        }
    }

    #[test]
    fn an_agent_learns_from_a_session_that_learns_and_from_no_other() {
        let db = migrated();
        let agents = load_agents(&db).unwrap();
        let before = db.dump();
        // What moves little, and what ends near the agent's, writes no row.
        let near = taught(agents, 1, 10_000, 10_500);
        teach_agent(&db, agents, agents, near).unwrap();
        let settled = taught(agents, 30, 10_000, 20_000);
        teach_agent(&db, agents, settled, taught(settled, 1, 10_000, 20_000)).unwrap();
        assert_eq!(db.dump(), before);
        let learnt = taught(agents, 1, 10_000, 20_000);
        teach_agent(&db, agents, agents, learnt).unwrap();
        assert_eq!(load_agents(&db).unwrap(), learnt);
    }

    #[test]
    fn a_row_that_cannot_be_read_is_learnt_anew() {
        let db = migrated();
        let sql = "INSERT INTO cf_agents_config (key, value) VALUES ('calibration', ?1)";
        db.run(sql, &["{".into()]).unwrap();
        let agents = load_agents(&db).unwrap();
        assert_eq!(agents, Calibration::default());
        let learnt = taught(agents, 1, 10_000, 20_000);
        teach_agent(&db, agents, agents, learnt).unwrap();
        assert!(load_agents(&db).unwrap().correct(100) > 150);
    }
}
