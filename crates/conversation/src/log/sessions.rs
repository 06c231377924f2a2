//! Sessions: one row per conversation. Appends don't write the row. A session's last
//! activity is therefore the newest event in the log or the last write to the row,
//! whichever is later.

use crate::json_schema::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::session::activity;
pub use crate::session::activity::ACTIVE_AT;
use crate::session::changes::begin_lifetime;
use crate::session::last_turns::{
    JOIN_LAST_TURN, USED_CACHED_TOKENS, USED_COST, USED_INPUT_TOKENS, USED_OUTPUT_TOKENS,
};
use crate::session::meter;
use crate::session::retention::{HasBlockRules, SessionRetentionChange};
use crate::session::usage::{self, UsageIncrease};
use crate::tables::SESSIONS;
use base::columns::find_value;
use base::database::{Database, SqlText, SqlValue, atomically, find_row};
use base::error::{Code, Error, Result};
use base::host::Host;
use base::ids::Id;
use base::json::{JsonObject, MAX_INTEGER};
use base::numbers::MAX_SESSION_NUMBER;
use base::tags::Tags;
use store::erasing::{ErasingDatabase, Overwrite};
use store::retention::Retention;

/// Characters that a session's name may have.
pub const MAX_NAME_CHARS: usize = 1000;

/// A session as the API shows it.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Session {
    pub id: Id,
    /// The agent's name.
    pub agent_id: String,
    pub name: Option<String>,
    pub parent_session_id: Option<Id>,
    pub created_at: i64,
    /// Changes with every write to the session, appends included.
    pub updated_at: i64,
    pub metadata: Option<JsonObject>,
    pub usage: SessionUsage,
    /// Present if the last attempt to compact failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_compaction_error: Option<LastCompactionError>,
    /// Present if the last learning pass over the session failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_learning_error: Option<LastLearningError>,
    /// Present if there are any.
    #[serde(default, skip_serializing_if = "Tags::is_empty")]
    pub tags: Tags,
    /// The session's own retention rules, if it has any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retention: Option<Retention>,
    /// Present if `true`: retention deletes nothing of this session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pinned: Option<bool>,
    /// `listSessions` only: the stored metadata is damaged and shown as `null`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub corrupt: Option<bool>,
}

#[derive(Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SessionUsage {
    pub input_tokens: i64,
    pub output_tokens: i64,
    pub cost: f64,
    /// The input tokens that the provider had cached; absent if no provider reported any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cached_input_tokens: Option<i64>,
}

/// The reason why the last attempt to compact failed. Removed when an attempt succeeds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LastCompactionError {
    pub code: String,
    pub message: String,
    pub at: i64,
    /// The number of attempts that have failed in a row.
    pub attempts: u32,
    /// The newest event's `seq` at the time of the failure.
    pub seq: i64,
}

/// The reason why the last attempt to learn failed. Removed when an attempt succeeds.
#[derive(Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct LastLearningError {
    pub code: String,
    pub message: String,
    pub at: i64,
    /// The number of attempts that have failed in a row.
    pub attempts: u32,
}

/// When the session was last written to: now, or later if the clock was set back since.
/// Code that deletes events calls this before it deletes them.
pub fn find_stamp(db: &dyn Database, host: &dyn Host, id: &Id) -> Result<i64> {
    Ok(host.now_ms().max(find_active_at(db, id)?))
}

/// When the session was last written to; 0: there is no such session.
pub fn find_active_at(db: &dyn Database, id: &Id) -> Result<i64> {
    let sql = format!("SELECT {ACTIVE_AT} FROM cf_agents_sessions AS s WHERE s.id = +?1");
    Ok(find_value(db, &sql, &[id.as_str().into()])?.unwrap_or(0))
}

/// SQL: sessions `s` with the columns that are computed from other tables. `from` selects the
/// sessions, and `active_at` is the time when they were last written to.
pub fn shown_sessions(active_at: &str, from: &str) -> String {
    format!(
        "SELECT s.*, {active_at} AS active_at,
                {USED_INPUT_TOKENS} AS used_input_tokens,
                {USED_OUTPUT_TOKENS} AS used_output_tokens,
                {USED_CACHED_TOKENS} AS used_cached_tokens,
                {USED_COST} AS used_cost
           FROM {from} {JOIN_LAST_TURN}"
    )
}

/// A session's JSON up to its metadata, from a row `s` with `active_at`.
pub const HEAD_JSON: &str = r#"
    '{"id":' || json_quote(s.id)
    || ',"agentId":' || json_quote(s.agent_id)
    || ',"name":' || json_quote(s.name)
    || ',"parentSessionId":' || json_quote(s.parent_session_id)
    || ',"createdAt":' || s.created_at
    || ',"updatedAt":' || s.active_at"#;

/// The rest of the JSON, after the metadata.
pub const USAGE_JSON: &str = r#"
    ',"usage":{"inputTokens":' || s.used_input_tokens
    || ',"outputTokens":' || s.used_output_tokens
    || ',"cost":' || s.used_cost
    || iif(s.used_cached_tokens = 0, '', ',"cachedInputTokens":' || s.used_cached_tokens)
    || '}'
    || coalesce(',"lastCompactionError":' || (s.compaction -> '$.lastError'), '')
    || coalesce(',"lastLearningError":' || iif(json_valid(s.learn_failure),
                                               json_remove(s.learn_failure, '$.nonsense'),
                                               NULL), '')
    || coalesce(',"tags":' || iif(json_valid(s.tags), s.tags, NULL), '')
    || iif(coalesce(s.retention, '{}') = '{}', '', ',"retention":' || s.retention)
    || iif(s.pinned = 1, ',"pinned":true', '')"#;

/// A session's metadata; `null` if there is none, or if it is damaged.
pub const METADATA_JSON: &str =
    "iif(json_valid(coalesce(s.metadata, 'null')), coalesce(s.metadata, 'null'), 'null')";

#[derive(Default)]
pub struct NewSession {
    pub id: Option<Id>,
    pub name: Option<String>,
    pub metadata: Option<JsonObject>,
    pub tags: Tags,
    pub parent_session_id: Option<Id>,
    pub retention: SessionRetentionChange,
}

/// Deletes the rows of an unfinished import with this id (`lifecycle/pending_import.rs`).
pub type ForgetImport = fn(&dyn Database, &Id) -> Result<()>;

pub fn create_session(
    db: &dyn Database,
    host: &dyn Host,
    agent: &str,
    new: &NewSession,
    forget_import: ForgetImport,
) -> Result<SqlText> {
    atomically(db, || {
        if let Some(parent) = &new.parent_session_id
            && !session_exists(db, parent)?
        {
            return Err(Error::session_not_found(parent.as_str()).with_field("parentSessionId"));
        }
        let id = match &new.id {
            Some(id) if session_exists(db, id)? => return Err(already_exists(id)),
            Some(id) => {
                // Creating a session overrides an unfinished import with the same id.
                forget_import(db, id)?;
                id.clone()
            }
            None => Id::mint_session(host),
        };
        let now_ms = host.now_ms();
        let row = NewSessionRow {
            id: id.as_str(),
            agent,
            name: new.name.as_deref(),
            parent_session_id: new.parent_session_id.as_ref().map(Id::as_str),
            metadata: new.metadata.as_ref().map(JsonObject::as_str),
            tags: new.tags.to_column()?,
            created_at: now_ms,
            updated_at: now_ms,
            ..NewSessionRow::default()
        };
        row.insert(db, host)?;
        // A new session has no blocks.
        new.retention.write(db, &id, |_, _| Ok(false))?;
        get_session(db, &id)
    })
}

/// A session's row to insert. The fields that only imports and forks set are 0 or
/// empty in a new session.
#[derive(Default)]
pub struct NewSessionRow<'a> {
    pub id: &'a str,
    pub agent: &'a str,
    pub name: Option<&'a str>,
    pub parent_session_id: Option<&'a str>,
    pub metadata: Option<&'a str>,
    pub tags: Option<String>,
    pub created_at: i64,
    pub updated_at: i64,
    pub seq_floor: i64,
    pub leaf_seq: Option<i64>,
    pub leaf_chosen_at: Option<i64>,
    pub input_tokens: i64,
    pub output_tokens: i64,
    pub cost: f64,
    pub cached_input_tokens: i64,
    pub compaction: Option<String>,
    pub copied_seq: i64,
}

impl NewSessionRow<'_> {
    /// Part of a transaction.
    pub fn insert(self, db: &dyn Database, host: &dyn Host) -> Result<()> {
        let feed_base = begin_lifetime(db, host, self.id)?;
        let sql = "INSERT INTO cf_agents_sessions
                    (id, agent_id, name, parent_session_id, metadata, created_at, updated_at,
                     seq_floor, leaf_seq, leaf_chosen_at, input_tokens, output_tokens, cost,
                     cached_input_tokens, compaction, copied_seq, feed_base, tags, settled_at)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?7)
          RETURNING number";
        let params: [SqlValue; 18] = [
            self.id.into(),
            self.agent.into(),
            self.name.into(),
            self.parent_session_id.into(),
            self.metadata.into(),
            self.created_at.into(),
            self.updated_at.into(),
            self.seq_floor.into(),
            self.leaf_seq.into(),
            self.leaf_chosen_at.into(),
            self.input_tokens.into(),
            self.output_tokens.into(),
            self.cost.into(),
            self.cached_input_tokens.into(),
            self.compaction.into(),
            self.copied_seq.into(),
            feed_base.into(),
            self.tags.into(),
        ];
        let id = Id::parse(self.id.to_owned()).map_err(Error::storage)?;
        let number = find_value(db, sql, &params)?.unwrap_or(0);
        if number > MAX_SESSION_NUMBER {
            move_below(db, number)?;
        }
        activity::record_session(db, &id, number)
    }
}

/// Gives a session whose number is beyond the last one the number of a deleted session, so that
/// deleted sessions use up no numbers. Reads a row for each number up to there. Runs after the row
/// is written, as part of the transaction.
fn move_below(db: &dyn Database, number: i64) -> Result<()> {
    let sql = "SELECT before.number + 1
                 FROM (SELECT 0 AS number
                        UNION ALL
                       SELECT number
                         FROM cf_agents_sessions) AS before
                WHERE before.number < ?1
                  AND NOT EXISTS (SELECT 1
                                    FROM cf_agents_sessions AS next
                                   WHERE next.number = before.number + 1)
                LIMIT 1";
    let free: Option<i64> = find_value(db, sql, &[MAX_SESSION_NUMBER.into()])?;
    let Some(free) = free else {
        return Err(Error::new(
            Code::PayloadTooLarge,
            format!(
                "This agent has {MAX_SESSION_NUMBER} sessions, which is the limit. Delete some, or \
                 continue in another agent."
            ),
        )
        .with("limit", MAX_SESSION_NUMBER)
        .with("actual", number));
    };
    db.run(
        "UPDATE cf_agents_sessions SET number = ?2 WHERE number = ?1",
        &[number.into(), free.into()],
    )
}

fn already_exists(id: &Id) -> Error {
    Error::new(
        Code::AlreadyExists,
        "A session with this id exists. Omit `id` to get a new id, or use the existing session.",
    )
    .with_field("id")
    .with("id", id.as_str())
}

pub fn session_exists(db: &dyn Database, id: &Id) -> Result<bool> {
    let sql = "SELECT 1 FROM cf_agents_sessions WHERE id = ?1";
    Ok(find_row(db, sql, &[id.as_str().into()])?.is_some())
}

/// The journal of the session's compactions, as JSON. `None`: there is no such session.
pub fn find_compaction(db: &dyn Database, id: &Id) -> Result<Option<Option<String>>> {
    let sql = "SELECT compaction FROM cf_agents_sessions WHERE id = ?1";
    find_value(db, sql, &[id.as_str().into()])
}

/// Replaces the journal of the session's compactions. Part of a transaction.
pub fn write_compaction(db: &dyn Database, id: &Id, json: String) -> Result<()> {
    db.run(
        "UPDATE cf_agents_sessions SET compaction = ?2 WHERE id = ?1",
        &[id.as_str().into(), json.into()],
    )
}

/// Restarts the session's log after this `seq`, when its events were deleted. Part of a
/// transaction.
pub fn begin_again(db: &dyn Database, id: &Id, seq: i64, written_at: i64) -> Result<()> {
    db.run(
        "UPDATE cf_agents_sessions
            SET seq_floor = max(seq_floor, ?2),
                leaf_seq = NULL,
                compaction = iif(json_valid(compaction),
                                 json_remove(compaction, '$.lastError'), compaction),
                updated_at = ?3
          WHERE id = ?1",
        &[id.as_str().into(), seq.into(), written_at.into()],
    )
}

/// Erases the session's name, metadata and tags. Returns whether it had any. Part of a transaction.
pub fn erase_head(db: &ErasingDatabase<'_>, id: &Id) -> Result<bool> {
    let session = [SqlValue::from(id.as_str())];
    let texts = Overwrite {
        table: SESSIONS,
        columns: &["name", "metadata", "tags"],
        condition: "id = ?1",
        params: &session,
    };
    if db.overwrite(&texts)? == 0 {
        return Ok(false);
    }
    db.run(
        "UPDATE cf_agents_sessions SET name = NULL, metadata = NULL, tags = NULL WHERE id = ?1",
        &session,
    )?;
    Ok(true)
}

/// The session's JSON.
pub fn find_session(db: &dyn Database, id: &Id) -> Result<Option<SqlText>> {
    let sql = format!(
        r#"SELECT {HEAD_JSON} || ',"metadata":' || coalesce(json(s.metadata), 'null') || {USAGE_JSON} || '}}'
             FROM ({}
                    WHERE s.id = +?1) AS s"#,
        shown_sessions(ACTIVE_AT, "cf_agents_sessions AS s")
    );
    match db.find_text(&sql, &[id.as_str().into()]) {
        Ok(session) => Ok(session),
        Err(error) => {
            let sql = "SELECT json_valid(metadata) FROM cf_agents_sessions WHERE id = ?1";
            match find_value(db, sql, &[id.as_str().into()])? {
                Some(Some(0_i64)) => Err(Error::corrupt_row(id.as_str(), "metadata")),
                _ => Err(error),
            }
        }
    }
}

pub fn get_session(db: &dyn Database, id: &Id) -> Result<SqlText> {
    find_session(db, id)?.ok_or_else(|| Error::session_not_found(id.as_str()))
}

/// A change to a session's own fields. An outer `None` leaves a field unchanged; an inner `None`
/// clears it.
#[derive(Debug, Default)]
pub struct SessionChange {
    pub name: Option<Option<String>>,
    pub metadata: Option<Option<JsonObject>>,
    pub tags: Option<Tags>,
    pub retention: SessionRetentionChange,
}

pub fn update_session(
    db: &dyn Database,
    host: &dyn Host,
    id: &Id,
    change: &SessionChange,
    has_block_rules: HasBlockRules,
) -> Result<SqlText> {
    atomically(db, || {
        let name = change.name.as_ref().map(|name| name.as_deref());
        let metadata = change
            .metadata
            .as_ref()
            .map(|metadata| metadata.as_ref().map(JsonObject::as_str));
        let tags = change.tags.as_ref().map(Tags::to_column).transpose()?;
        db.run(
            "UPDATE cf_agents_sessions
                SET name = iif(?2, ?3, name),
                    metadata = iif(?4, ?5, metadata),
                    tags = iif(?7, ?8, tags),
                    updated_at = max(updated_at, ?6)
              WHERE id = ?1",
            &[
                id.as_str().into(),
                name.is_some().into(),
                name.flatten().into(),
                metadata.is_some().into(),
                metadata.flatten().into(),
                host.now_ms().into(),
                change.tags.is_some().into(),
                tags.flatten().into(),
            ],
        )?;
        activity::record(db, id)?;
        change.retention.write(db, id, has_block_rules)?;
        get_session(db, id)
    })
}

/// Adds reported usage, once per `call_id`; returns the session's JSON.
pub fn add_usage(
    db: &dyn Database,
    host: &dyn Host,
    id: &Id,
    more: &UsageIncrease,
    call_id: Option<&Id>,
) -> Result<SqlText> {
    atomically(db, || {
        let is_new = match call_id {
            Some(call_id) => usage::record_call(db, id, call_id)?,
            None => true,
        };
        if is_new {
            usage::count_usage(db, host, id, more)?;
            let tokens = more.input_tokens.saturating_add(more.output_tokens);
            meter::count_reported(db, tokens.min(MAX_INTEGER), more.cost)?;
        }
        get_session(db, id)
    })
}
