//! Retention rules: the setting `retention` of an agent, of a session and of a block. Each
//! type validates its value when it is parsed. `lifecycle/retention/` deletes what is
//! older.
//!
//! A block's rule overrides its session's, and a session's rule overrides the agent's.
//! `null` cancels an outer rule.

use crate::json_schema::JsonSchema;
use serde::{Deserialize, Serialize};

use super::limits::AtMost;
use base::error::{Error, Result};
use base::json::{self, nullable};

/// The most days of a rule: a hundred years.
const MAX_DAYS: i64 = 36_500;

/// The most checkpoints of a LangGraph thread that a rule may keep: one step reads them
/// all.
const MAX_RUNS: i64 = 1_000;

/// One rule: a number, `null`, or omitted.
type Rule<const MAX: i64> = Option<Option<AtMost<MAX>>>;

/// The retention rules. Omitted fields delete nothing.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Retention {
    /// Sessions are deleted this many days after the last write to them.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<AtMost<MAX_DAYS>>")]
    pub sessions_idle_days: Rule<MAX_DAYS>,
    /// Events are deleted this many days after they were written.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<AtMost<MAX_DAYS>>")]
    pub events_days: Rule<MAX_DAYS>,
    /// Earlier versions of blocks, entries and documents are deleted this many days after
    /// they were replaced.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<AtMost<MAX_DAYS>>")]
    pub versions_days: Rule<MAX_DAYS>,
    /// The remaining versions of a deleted entry or document are deleted this many days
    /// after its deletion.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<AtMost<MAX_DAYS>>")]
    pub deleted_days: Rule<MAX_DAYS>,
    /// Entries are deleted, with their versions, this many days after they were last
    /// written.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<AtMost<MAX_DAYS>>")]
    pub entries_days: Rule<MAX_DAYS>,
    /// The number of newest checkpoints to retain in each namespace of a LangGraph thread.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<AtMost<MAX_RUNS>>")]
    pub runs_kept: Rule<MAX_RUNS>,
}

/// A block's retention rules.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct BlockRetention {
    /// Earlier versions of the block, its entries and its documents are deleted this many
    /// days after they were replaced.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<AtMost<MAX_DAYS>>")]
    pub versions_days: Rule<MAX_DAYS>,
    /// The remaining versions of a deleted entry or document are deleted this many days
    /// after its deletion.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<AtMost<MAX_DAYS>>")]
    pub deleted_days: Rule<MAX_DAYS>,
    /// Entries are deleted, with their versions, this many days after they were last
    /// written.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<AtMost<MAX_DAYS>>")]
    pub entries_days: Rule<MAX_DAYS>,
}

/// The effective rules in one place, in days. `None`: nothing is deleted for this reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RetentionRules {
    pub sessions_idle_days: Option<i64>,
    pub events_days: Option<i64>,
    pub runs_kept: Option<i64>,
    pub memory: MemoryRules,
}

/// The effective rules of one block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryRules {
    pub versions_days: Option<i64>,
    pub deleted_days: Option<i64>,
    pub entries_days: Option<i64>,
}

fn within<const MAX: i64>(own: Rule<MAX>, outer: Option<i64>) -> Option<i64> {
    match own {
        Some(own) => own.map(|days| days.0),
        None => outer,
    }
}

impl Retention {
    /// The effective rules inside a scope with the rules `outer`.
    pub fn within(&self, outer: RetentionRules) -> RetentionRules {
        RetentionRules {
            sessions_idle_days: within(self.sessions_idle_days, outer.sessions_idle_days),
            events_days: within(self.events_days, outer.events_days),
            runs_kept: within(self.runs_kept, outer.runs_kept),
            memory: MemoryRules {
                versions_days: within(self.versions_days, outer.memory.versions_days),
                deleted_days: within(self.deleted_days, outer.memory.deleted_days),
                entries_days: within(self.entries_days, outer.memory.entries_days),
            },
        }
    }
}

impl Retention {
    /// The rules that a block can have.
    pub fn of_block(&self) -> BlockRetention {
        BlockRetention {
            versions_days: self.versions_days,
            deleted_days: self.deleted_days,
            entries_days: self.entries_days,
        }
    }

    /// The name of a rule that a block can't have, if one is set.
    pub fn find_beyond_block(&self) -> Option<&'static str> {
        let beyond = [
            ("sessionsIdleDays", self.sessions_idle_days.is_some()),
            ("eventsDays", self.events_days.is_some()),
            ("runsKept", self.runs_kept.is_some()),
        ];
        let mut given = beyond.into_iter().filter(|(_, is_given)| *is_given);
        given.next().map(|(name, _)| name)
    }
}

impl BlockRetention {
    /// The effective rules of a block inside a scope with the rules `outer`.
    pub fn within(&self, outer: MemoryRules) -> MemoryRules {
        MemoryRules {
            versions_days: within(self.versions_days, outer.versions_days),
            deleted_days: within(self.deleted_days, outer.deleted_days),
            entries_days: within(self.entries_days, outer.entries_days),
        }
    }
}

impl RetentionRules {
    /// Whether nothing is deleted.
    pub fn are_off(&self) -> bool {
        *self == Self::default()
    }
}

/// A session's own retention, from its column.
pub fn read_retention(column: Option<&str>, id: &str) -> Result<Retention> {
    match column {
        Some(text) => json::decode(text).map_err(|_| Error::corrupt_row(id, "retention")),
        None => Ok(Retention::default()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_rule_is_a_number_of_days_or_null() {
        let read = |text: &str| json::decode::<Retention>(text);
        assert_eq!(read("{}").ok(), Some(Retention::default()));
        let all = json!({
            "sessionsIdleDays": 1, "eventsDays": 36500, "versionsDays": null,
            "deletedDays": 7, "entriesDays": 365, "runsKept": 1000
        });
        let retention = read(&all.to_string()).ok().unwrap();
        assert_eq!(serde_json::to_value(&retention).unwrap(), all);
        for wrong in [
            "null",
            "30",
            r#"{"eventsDays": 0}"#,
            r#"{"eventsDays": -1}"#,
            r#"{"eventsDays": 1.5}"#,
            r#"{"eventsDays": "30"}"#,
            r#"{"eventsDays": 36501}"#,
            r#"{"runsKept": 0}"#,
            r#"{"runsKept": 1001}"#,
            r#"{"eventDays": 30}"#,
        ] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_nearest_rule_applies_and_null_overrides_outer_ones() {
        let read = |text: &str| json::decode::<Retention>(text).ok().unwrap();
        let agents = read(r#"{"eventsDays": 30, "versionsDays": 7, "entriesDays": 5}"#);
        let agents = agents.within(RetentionRules::default());
        let sessions = read(r#"{"eventsDays": null, "versionsDays": 1}"#).within(agents);
        assert_eq!(sessions.events_days, None);
        assert_eq!(sessions.memory.versions_days, Some(1));
        assert_eq!(sessions.memory.entries_days, Some(5));
        let block: BlockRetention = json::decode(r#"{"entriesDays": null}"#).ok().unwrap();
        assert_eq!(block.within(sessions.memory).entries_days, None);
        assert_eq!(block.within(sessions.memory).versions_days, Some(1));
        assert!(
            read(r#"{"eventsDays": null}"#)
                .within(agents)
                .events_days
                .is_none()
        );
        assert!(!sessions.are_off());
    }
}
