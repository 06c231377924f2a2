//! The validity of a fact: from when until when it is true, and which fact replaced it.

use crate::json_schema::JsonSchema;
use serde::{Deserialize, Serialize};

/// The time range in which a fact is true. Times are in milliseconds since the epoch.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Validity {
    /// The time from which the fact is true, as given by the writer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub valid_from: Option<i64>,
    /// The time until which it is true.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub valid_until: Option<i64>,
    /// The keys of the facts that this one replaced.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub supersedes: Vec<String>,
    /// The key of the fact that replaced this one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub superseded_by: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub superseded_at: Option<i64>,
}

/// Whether a fact is true at a given time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FactState {
    NotYet,
    Holds,
    Over,
}

impl Validity {
    /// The state at a time. `written_at` is when the fact was recorded, and is used if
    /// `valid_from` isn't set.
    pub fn state(&self, at_ms: i64, written_at: Option<i64>) -> FactState {
        let begins = self.valid_from.or(written_at);
        let ends = [self.valid_until, self.superseded_at];
        if begins.is_some_and(|begins| at_ms < begins) {
            FactState::NotYet
        } else if ends.into_iter().flatten().any(|end| end <= at_ms) {
            FactState::Over
        } else {
            FactState::Holds
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fact_is_valid_from_its_start_to_its_end() {
        let fact = |from, until, superseded_at| Validity {
            valid_from: from,
            valid_until: until,
            superseded_at,
            ..Validity::default()
        };
        use FactState::{Holds, NotYet, Over};
        for (fact, written_at, expected) in [
            (fact(None, None, None), None, [Holds, Holds, Holds]),
            (fact(None, None, None), Some(20), [NotYet, Holds, Holds]),
            (fact(Some(10), None, None), Some(20), [Holds, Holds, Holds]),
            (fact(Some(20), Some(30), None), None, [NotYet, Holds, Over]),
            (fact(None, None, Some(20)), None, [Holds, Over, Over]),
            (fact(None, Some(30), Some(40)), None, [Holds, Holds, Over]),
        ] {
            let states = [10, 20, 30].map(|at| fact.state(at, written_at));
            assert_eq!(states, expected, "{fact:?}");
        }
    }
}
