//! A finished turn as callers see it, and the id by which they request it.

use crate::json_schema::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, de};

use super::ended::EndedRecord;
use super::{AskedBy, CompactionRecord, RecordedFailure, StepRecord, TurnFinish};
use base::ids::{Id, MAX_ID_CHARS};
use base::json;
use base::trace::header::render_hex;
use conversation::log::turn_ends::TurnEnd;
use conversation::session::spending::{TurnSpending, TurnUsage};
use conversation::session::stored_turns::StoredTurn;

/// The maximum number of characters of a session's id in a turn's id, after the two
/// numbers.
const MAX_SESSION_CHARS: usize = MAX_ID_CHARS - 32;

/// The stored value of `ends_turn`, or of the row of a failed turn.
#[derive(Default, Deserialize)]
struct Stored {
    #[serde(flatten)]
    spent: TurnSpending,
    /// `None`: an older build ended the turn.
    #[serde(default)]
    record: Option<EndedRecord>,
}

/// A completed turn.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CompletedTurn {
    /// For `getTurn`.
    pub turn_id: String,
    pub session_id: String,
    /// The message that the turn wrote or continued. `null`: there was no output.
    pub message_id: Option<String>,
    /// The client's id of the turn. `null`: unknown.
    pub request_id: Option<String>,
    /// Whether there is a record. For a turn that an older build ended, only its usage and
    /// its end time are known.
    pub is_recorded: bool,
    /// `null`: unknown.
    pub asked_by: Option<AskedBy>,
    /// `null`: unknown.
    pub started_at: Option<i64>,
    pub ended_at: i64,
    /// `null`: unknown.
    pub duration_ms: Option<i64>,
    /// The last model called. `null`: none was.
    pub model: Option<String>,
    pub finish_reason: TurnFinish,
    /// The reason why the turn failed. `null`: it did not fail, or an older build ended it.
    pub failure: Option<RecordedFailure>,
    /// The number of times that the turn resumed after the object crashed.
    pub recoveries: i64,
    pub usage: TurnUsage,
    /// The requests to models, in order.
    pub steps: Vec<StepRecord>,
    /// The number of oldest steps that are left out of `steps`.
    pub omitted_steps: usize,
    /// Compactions that shortened the context during the turn.
    pub compactions: Vec<CompactionRecord>,
    /// The trace of the turn. `null`: it has none.
    pub trace_id: Option<String>,
}

impl CompletedTurn {
    /// The turn that this event ended.
    pub fn of_event(session_id: &str, end: &TurnEnd) -> Self {
        let mut turn = Self::of(session_id, (end.seq, end.created_at), &end.json);
        turn.message_id = turn.message_id.or_else(|| Some(end.event_id.clone()));
        turn
    }

    pub fn of_stored(stored: &StoredTurn) -> Self {
        let position = (stored.seq, stored.ended_at);
        Self::of(&stored.session_id, position, &stored.record)
    }

    fn of(session_id: &str, (seq, written_at): (i64, i64), json: &str) -> Self {
        // An unreadable value counts as empty.
        let stored: Stored = json::decode(json).unwrap_or_default();
        let is_recorded = stored.record.is_some();
        let record = stored.record.unwrap_or_else(|| EndedRecord {
            ended_at: written_at,
            finish_reason: if stored.spent.has_failed {
                TurnFinish::Error
            } else {
                TurnFinish::Other
            },
            ..EndedRecord::default()
        });
        let position = RecordedTurnPosition {
            seq,
            ended_at: record.ended_at,
        };
        let started_at = is_recorded.then_some(record.turn.started_at);
        let trace = record.turn.find_trace();
        Self {
            trace_id: trace.map(|trace| render_hex(&trace.id.0)),
            turn_id: position.render(session_id),
            session_id: session_id.to_owned(),
            message_id: record.message_id,
            request_id: is_recorded.then_some(record.request_id),
            is_recorded,
            asked_by: record.turn.asked_by,
            started_at,
            ended_at: record.ended_at,
            duration_ms: started_at.map(|started_at| record.ended_at - started_at),
            model: stored.spent.model.clone(),
            finish_reason: record.finish_reason,
            failure: record.failure,
            recoveries: record.turn.recoveries,
            usage: stored.spent.usage(),
            steps: record.turn.steps,
            omitted_steps: record.turn.omitted_steps,
            compactions: record.turn.compactions,
        }
    }
}

/// The position of a turn in its session. The newest turn is last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RecordedTurnPosition {
    /// The `seq` of the event that ended the turn, or that it would have had.
    pub seq: i64,
    pub ended_at: i64,
}

impl RecordedTurnPosition {
    /// The turn's id: `SEQ.TIME.SESSION`. A very long session id is truncated.
    pub fn render(self, session_id: &str) -> String {
        let end = session_id.char_indices().nth(MAX_SESSION_CHARS);
        let session = end.and_then(|(end, _)| session_id.get(..end));
        let Self { seq, ended_at } = self;
        format!("{seq}.{ended_at:x}.{}", session.unwrap_or(session_id))
    }
}

/// A turn's id as a caller sends it.
#[derive(Debug, PartialEq)]
pub struct TurnName {
    pub position: RecordedTurnPosition,
    /// The session's id, or a prefix of it.
    pub session: Id,
    /// Whether `session` may be a prefix of a longer id.
    pub may_be_cut: bool,
}

impl TurnName {
    pub fn parse(turn_id: &str) -> Option<Self> {
        let mut parts = turn_id.splitn(3, '.');
        let seq = parts.next().and_then(|seq| seq.parse().ok());
        let ended_at = parts.next().map(|at| i64::from_str_radix(at, 16));
        let session = parts.next().map(|id| Id::parse(id.to_owned()));
        match (seq, ended_at, session) {
            (Some(seq), Some(Ok(ended_at)), Some(Ok(session))) => Some(Self {
                position: RecordedTurnPosition { seq, ended_at },
                may_be_cut: session.as_str().chars().count() == MAX_SESSION_CHARS,
                session,
            }),
            _ => None,
        }
    }
}

impl<'de> Deserialize<'de> for TurnName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let id = Id::deserialize(deserializer)?;
        let refused = || de::Error::custom("must be a turn's `turnId` from `getTurns`");
        Self::parse(id.as_str()).ok_or_else(refused)
    }
}

#[cfg(feature = "testing")]
impl JsonSchema for TurnName {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        "TurnName".into()
    }

    fn json_schema(schemas: &mut schemars::SchemaGenerator) -> schemars::Schema {
        Id::json_schema(schemas)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_position_of_a_turn_is_read_from_its_id() {
        let position = RecordedTurnPosition {
            seq: 12,
            ended_at: 1_767_000_000_123,
        };
        for session in ["s", "user:42.notes", "….é"] {
            let id = position.render(session);
            let named = TurnName::parse(&id).unwrap();
            assert_eq!(
                (named.position, named.session.as_str()),
                (position, session)
            );
            assert!(!named.may_be_cut);
        }
        let long = position.render(&"é".repeat(200));
        assert!(long.chars().count() <= MAX_ID_CHARS);
        let named = TurnName::parse(&long).unwrap();
        assert!(named.may_be_cut && "é".repeat(200).starts_with(named.session.as_str()));
    }

    #[test]
    fn other_ids_are_refused() {
        for id in [
            "", "t-1", "1", "1.", "1.2", "1.2.", "x.2.s", "1.zz.s", "1.2 .s",
        ] {
            assert!(TurnName::parse(id).is_none(), "{id}");
        }
    }

    #[test]
    fn a_turn_of_an_older_build_shows_its_usage() {
        let end = TurnEnd {
            seq: 2,
            event_id: "e2".to_owned(),
            created_at: 5,
            json: r#"{"inputTokens":7,"outputTokens":1,"model":"demo"}"#.to_owned(),
        };
        let turn = CompletedTurn::of_event("s", &end);
        assert!(!turn.is_recorded && turn.steps.is_empty());
        assert_eq!((turn.ended_at, turn.started_at), (5, None));
        assert_eq!(turn.usage.input_tokens, 7);
        assert_eq!(turn.message_id.as_deref(), Some("e2"));
    }
}
