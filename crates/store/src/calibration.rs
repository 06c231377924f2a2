//! Corrects token estimates by the counts that providers report. An estimate counts
//! letters and words. A model's tokenizer, its wrapping of messages and the language of
//! an agent make every estimate wrong by a similar share.
//!
//! A session keeps running sums of estimated and reported tokens
//! (`conversation/session/last_turns.rs`); newer reports count more. The sums are the session's
//! own: if sessions learned from each other, an odd text in one would change the requests of
//! another.

use serde::{Deserialize, Serialize};

/// Each new report multiplies the weight of the older reports by this number. A new
/// report weighs about a third.
const DECAY: f64 = 0.7;

/// Both sums start with so many tokens, as if an estimate had been right. A first
/// report on a short prompt, which is mostly wrapping, then changes little.
const PRIOR_TOKENS: f64 = 1_000.0;

/// The factor's bounds. A report beyond them counts something other than tokens.
const MIN_FACTOR: f64 = 0.5;
const MAX_FACTOR: f64 = 3.0;

/// One report weighs as much as so many estimated tokens at most. Otherwise an absurd report would
/// outweigh the next hundred.
const MAX_REPORT_TOKENS: f64 = 1_000_000.0;

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

    /// The highest estimate that is at most so many tokens as the provider counts them.
    pub fn uncorrect(self, tokens: i64) -> i64 {
        (tokens as f64 / self.factor()).floor() as i64
    }

    /// The sums after a report. `estimated` is the uncorrected estimate of a request to a
    /// model. `reported` is the provider's count, cached tokens included. `None`: the
    /// report says nothing.
    pub fn after(self, estimated: i64, reported: i64) -> Option<Self> {
        if estimated <= 0 || reported <= 0 {
            return None;
        }
        let factor = (reported as f64 / estimated as f64).clamp(MIN_FACTOR, MAX_FACTOR);
        let estimated = (estimated as f64).min(MAX_REPORT_TOKENS);
        Some(Self {
            estimated: self.estimated * DECAY + estimated,
            reported: self.reported * DECAY + estimated * factor,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The sums of a session after this many equal reports.
    fn taught(from: Calibration, count: usize, estimated: i64, reported: i64) -> Calibration {
        (0..count).fold(from, |sums, _| sums.after(estimated, reported).unwrap())
    }

    #[test]
    fn without_reports_estimates_are_unchanged() {
        let calibration = Calibration::default();
        for tokens in [0, 1, 1_000_000_007] {
            assert_eq!(calibration.correct(tokens), tokens);
        }
        for (estimated, reported) in [(0, 5), (5, 0), (5, -5), (-5, 5)] {
            assert_eq!(calibration.after(estimated, reported), None);
        }
    }

    #[test]
    fn reports_move_estimates_towards_the_reported_counts() {
        let mut sums = Calibration::default();
        let mut last = 10_000;
        for _ in 0..20 {
            sums = taught(sums, 1, 10_000, 15_000);
            let corrected = sums.correct(10_000);
            assert!((last..=15_000).contains(&corrected));
            last = corrected;
        }
        assert!((14_900..=15_000).contains(&last), "{last}");
        // And back, when another model counts differently.
        let corrected = taught(sums, 60, 10_000, 9_000).correct(10_000);
        assert!((9_000..=9_100).contains(&corrected), "{corrected}");
    }

    #[test]
    fn uncorrect_inverts_correct() {
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
    fn a_short_prompt_has_little_weight() {
        let corrected = taught(Calibration::default(), 1, 10, 60).correct(1_000);
        assert!((1_020..=1_100).contains(&corrected), "{corrected}");
    }

    #[test]
    fn no_report_corrects_by_more_than_the_bounds() {
        for (estimated, reported, corrected) in [(100_000, i64::MAX, 299), (i64::MAX, 1, 50)] {
            let sums = taught(Calibration::default(), 1, estimated, reported);
            assert_eq!(sums.correct(100), corrected);
        }
    }

    #[test]
    fn an_absurd_report_fades_after_a_few_plausible_ones() {
        for (estimated, reported) in [(1, i64::MAX), (i64::MAX, 1), (i64::MAX, i64::MAX)] {
            let absurd = taught(Calibration::default(), 1, estimated, reported);
            let corrected = taught(absurd, 20, 10_000, 12_000).correct(10_000);
            assert!((11_500..=12_500).contains(&corrected), "{corrected}");
        }
    }
}
