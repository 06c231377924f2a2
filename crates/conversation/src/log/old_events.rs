//! The oldest events of a log, without their texts, for code that deletes the oldest.

use std::collections::BTreeSet;

use super::event::IS_RUN_MEMBER;
use super::row::ROW_BYTES;
use super::tool::CALL_ID_PATH;
use base::action::{Action, StoredAction};
use base::columns::load;
use base::database::Database;
use base::error::Result;
use base::ids::Id;
use base::json;
use base::row;

/// An event at the start of a log, without its texts.
pub struct OldEvent {
    pub seq: i64,
    pub parent_seq: i64,
    pub written_at: i64,
    pub bytes: i64,
    pub is_run_member: bool,
    pub kind: EventKind,
}

/// The role of an event in an answer.
pub enum EventKind {
    /// A request, with the ids of its calls. `None`: they can't be read from this row.
    Calls(Option<Vec<String>>),
    /// A result, with the id of its call.
    Result(Option<String>),
    Other,
}

row! {
    /// The columns of an event `e`.
    for OldEvent() {
        seq: i64 = "e.seq",
        parent_seq: i64 = "e.parent_seq",
        written_at: i64 = "e.written_at",
        bytes: i64 = ROW_BYTES,
        is_run_member: bool = IS_RUN_MEMBER,
        action: &str = "e.action",
        ids: Option<&str> = format!(
            "CASE
               WHEN NOT json_valid(e.tool) THEN NULL
               WHEN e.action = '{request}'
               THEN (SELECT json_group_array(value ->> 'id')
                       FROM json_each(e.tool, '$.toolCalls'))
               WHEN e.action = '{result}' THEN e.tool ->> '{CALL_ID_PATH}'
             END",
            request = Action::ToolCallRequest.name(),
            result = Action::ToolResult.name(),
        ),
    }
    {
        let kind = match StoredAction::parse(action) {
            StoredAction::Known(Action::ToolCallRequest) => {
                EventKind::Calls(ids.and_then(|ids| json::decode(ids).ok()))
            }
            StoredAction::Known(Action::ToolResult) => EventKind::Result(ids.map(str::to_owned)),
            _ => EventKind::Other,
        };
        Ok(Self {
            seq,
            parent_seq,
            written_at,
            bytes,
            is_run_member,
            kind,
        })
    }
}

/// Up to `most` events after this `seq`, in order, excluding those in `without`.
pub fn load_after(
    db: &dyn Database,
    session_id: &Id,
    after_seq: i64,
    without: &BTreeSet<i64>,
    most: i64,
) -> Result<Vec<OldEvent>> {
    let sql = format!(
        "SELECT {}
           FROM cf_agents_events AS e
          WHERE e.session_id = +?1
            AND e.seq > +?2
            AND e.seq NOT IN (SELECT value FROM json_each(?4))
          ORDER BY e.seq
          LIMIT ?3 + 0",
        OldEvent::columns()
    );
    let params = [
        session_id.as_str().into(),
        after_seq.into(),
        most.into(),
        json::encode(&without)?.into(),
    ];
    load(db, &sql, &params)
}

/// The run events after `last_seq` whose parent is between `first_seq` and `last_seq`, but
/// not in the row directly before.
pub fn load_branches_past(
    db: &dyn Database,
    session_id: &Id,
    first_seq: i64,
    last_seq: i64,
) -> Result<Vec<OldEvent>> {
    let sql = format!(
        "SELECT {}
           FROM cf_agents_events AS e INDEXED BY cf_agents_events_by_parent
          WHERE e.session_id = +?1
            AND e.is_branch = 1
            AND e.parent_seq BETWEEN ?2 AND ?3
            AND e.seq > ?3
            AND {IS_RUN_MEMBER}",
        OldEvent::columns()
    );
    let params = [
        session_id.as_str().into(),
        first_seq.into(),
        last_seq.into(),
    ];
    load(db, &sql, &params)
}

row! {
    /// An event `e`, with the facts that retention of single events needs.
    pub struct EarlierEvent(action: Action) {
        pub seq: i64 = "e.seq",
        pub id: String = "e.id",
        /// Whether it has the action that was asked for.
        pub has_action: bool = format!("e.action = '{}'", action.name()),
        pub bytes: i64 = ROW_BYTES,
        pub written_at: i64 = "e.written_at",
    }
}

/// Up to `most` events after the first `seq` and before the second, in order.
pub fn load_between(
    db: &dyn Database,
    session_id: &Id,
    (after_seq, before_seq): (i64, i64),
    action: Action,
    most: i64,
) -> Result<Vec<EarlierEvent>> {
    let sql = format!(
        "SELECT {}
           FROM cf_agents_events AS e
          WHERE e.session_id = +?1
            AND e.seq > +?2
            AND e.seq < +?3
          ORDER BY e.seq
          LIMIT ?4 + 0",
        EarlierEvent::columns(action)
    );
    let params = [
        session_id.as_str().into(),
        after_seq.into(),
        before_seq.into(),
        most.into(),
    ];
    load(db, &sql, &params)
}
