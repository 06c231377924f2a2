//! The change feed: what happened to a session, in order, for a client that keeps a
//! copy. Appends are read from the log. All other changes have rows in
//! `cf_agents_changes`.

use std::borrow::Cow;

use serde::Serialize;

use crate::base::columns::{find, find_value, load};
use crate::base::database::{Database, SqlValue};
use crate::base::error::{Error, Result};
use crate::base::host::Host;
use crate::base::ids::Id;
use crate::base::json;
use crate::base::numbers::CURSORS_A_SEQ;
use crate::store::stored::INSERT_VALUE;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangeType {
    Update,
    Delete,
    Clear,
    Compaction,
}

impl ChangeType {
    fn name(self) -> &'static str {
        match self {
            ChangeType::Update => "update",
            ChangeType::Delete => "delete",
            ChangeType::Clear => "clear",
            ChangeType::Compaction => "compaction",
        }
    }
}

/// The most entries that one statement writes.
const RECORDED_AT_ONCE: usize = 1000;

/// Records changes of one type, in the order of `ids` (`None`: the whole session), in
/// the transaction that makes the changes. `last_seq` is the highest `seq` that an
/// event of the session ever had.
pub fn record(
    db: &dyn Database,
    host: &dyn Host,
    session_id: &Id,
    last_seq: i64,
    change: ChangeType,
    ids: &[Option<&str>],
) -> Result<()> {
    for some in ids.chunks(RECORDED_AT_ONCE) {
        record_some(db, host, session_id, last_seq, change, some)?;
    }
    Ok(())
}

const INSERT: &str =
    "INSERT INTO cf_agents_changes (session_id, cursor, type, id, changed_at, number)";

fn record_some(
    db: &dyn Database,
    host: &dyn Host,
    session_id: &Id,
    last_seq: i64,
    change: ChangeType,
    ids: &[Option<&str>],
) -> Result<()> {
    let (newest, number, changed_at) = find_newest(db, session_id)?.unwrap_or_default();
    let start = newest.max(last_seq * CURSORS_A_SEQ);
    let count = ids.len() as i64;
    let sql = format!(
        "{INSERT}
         SELECT ?1, CAST(?2 AS INTEGER) + 1 + key, ?3, value, ?5, CAST(?6 AS INTEGER) + 1 + key
           FROM json_each(?4)"
    );
    db.run(
        &sql,
        &[
            session_id.as_str().into(),
            start.into(),
            change.name().into(),
            SqlValue::Text(json::encode(&ids)?),
            // A clock that goes back makes no session older.
            host.now_ms().max(changed_at).into(),
            number.into(),
        ],
    )?;
    keep_below_next_append(db, session_id, last_seq, start + count)?;
    let (before, after) = (number / SWEPT_EVERY, (number + count) / SWEPT_EVERY);
    if before == after {
        return Ok(());
    }
    sweep(db, session_id, after)
}

/// The newest entry's cursor and number, and when it was written.
fn find_newest(db: &dyn Database, session_id: &Id) -> Result<Option<(i64, i64, i64)>> {
    let sql = "SELECT cursor, number, changed_at
                 FROM cf_agents_changes
                WHERE session_id = +?1
                ORDER BY cursor DESC
                LIMIT 1";
    find(db, sql, &[session_id.as_str().into()])
}

/// The last `seq` whose cursors an entry may use. The cursor right before an append's
/// own cursor stays free: `messages/feed.rs` uses it to report a message that the
/// append joins.
fn last_seq_before(cursor: i64) -> i64 {
    (cursor + 1) / CURSORS_A_SEQ
}

/// After about a million changes without an append, the entries reach the cursor of the
/// next append. The next append then skips that `seq`, so that cursors keep growing.
fn keep_below_next_append(
    db: &dyn Database,
    session_id: &Id,
    last_seq: i64,
    cursor: i64,
) -> Result<()> {
    let floor = last_seq_before(cursor);
    if floor <= last_seq {
        return Ok(());
    }
    db.run(
        "UPDATE cf_agents_sessions
            SET seq_floor = max(seq_floor, ?2)
          WHERE id = ?1",
        &[session_id.as_str().into(), floor.into()],
    )
}

/// Number of new entries after which superfluous entries are deleted.
const SWEPT_EVERY: i64 = 1000;

/// A sweep reads the newest 1,000 entries, every second sweep 2,000, and so on, up to
/// 16,000 entries of 250 bytes each: 4 MB. So each entry is read about five times in
/// its life. A message that is updated without end keeps one row per 16,000 updates.
const MAX_DOUBLINGS: u32 = 4;

/// Deletes entries that a newer entry of the same id makes superfluous: a reader of the
/// newer entry reads the present state. A delete stays if only updates follow it: its
/// id then belongs to a new message, in another position.
fn sweep(db: &dyn Database, session_id: &Id, looks: i64) -> Result<()> {
    let entries = SWEPT_EVERY << looks.trailing_zeros().min(MAX_DOUBLINGS);
    db.run(
        "DELETE FROM cf_agents_changes
          WHERE session_id = ?1
            AND cursor IN (
                  SELECT cursor
                    FROM (SELECT cursor, type,
                                 row_number() OVER (PARTITION BY type = 'compaction', id
                                                    ORDER BY cursor DESC) AS place,
                                 row_number() OVER (PARTITION BY type, id
                                                    ORDER BY cursor DESC) AS place_of_type
                            FROM (SELECT cursor, type, id
                                    FROM cf_agents_changes
                                   WHERE session_id = ?1
                                   ORDER BY cursor DESC
                                   LIMIT ?2))
                   WHERE iif(type = 'delete', place_of_type, place) > 1)",
        &[session_id.as_str().into(), entries.into()],
    )
}

/// The cursor of the newest change that is not an append; 0 if there is none. While
/// this cursor stays the same, what a caller read from the log is still valid.
pub fn load_newest(db: &dyn Database, session_id: &Id) -> Result<i64> {
    let newest = find_newest(db, session_id)?;
    Ok(newest.map_or(0, |(cursor, _, _)| cursor))
}

/// The cursor base of a session. A session that is deleted and created again has another.
pub fn load_base(db: &dyn Database, session_id: &Id) -> Result<i64> {
    let sql = "SELECT feed_base FROM cf_agents_sessions WHERE id = ?1";
    let base = find_value(db, sql, &[session_id.as_str().into()])?;
    Ok(base.unwrap_or(0))
}

/// The names of the change types.
pub const TYPES: &[&str] = &["update", "delete", "clear", "compaction"];

/// Writes exported entries: the cursor, type, id and time of each.
pub fn restore(db: &dyn Database, session_id: &Id, rows: Vec<serde_json::Value>) -> Result<()> {
    if rows.is_empty() {
        return Ok(());
    }
    let (_, number, _) = find_newest(db, session_id)?.unwrap_or_default();
    let sql = format!(
        "{INSERT}
         SELECT ?1, value ->> 0, value ->> 1, value ->> 2, value ->> 3,
                CAST(?3 AS INTEGER) + 1 + key
           FROM json_each(?2)"
    );
    db.run(
        &sql,
        &[
            session_id.as_str().into(),
            json::encode(&rows)?.into(),
            number.into(),
        ],
    )
}

/// Deletes all entries before the newest one, a clear, which made them irrelevant.
pub fn forget_before_newest(db: &dyn Database, session_id: &Id) -> Result<()> {
    db.run(
        "DELETE FROM cf_agents_changes
          WHERE session_id = ?1
            AND cursor < (SELECT max(cursor)
                            FROM cf_agents_changes
                           WHERE session_id = ?1)",
        &[session_id.as_str().into()],
    )
}

/// The base of a session's cursors, and the newest stored cursor.
pub struct CursorRange {
    pub base: i64,
    pub newest: i64,
}

/// The highest base. A caller's cursor is the stored cursor plus the session's base.
/// With the highest `seq`, of 32 bits, the sum stays below 2^53, where JavaScript is
/// exact.
const MAX_BASE: i64 = 1 << 51;

const KEY: &str = "feed";

/// The cursor base of a session that is created now, as an SQL expression.
pub const NEXT_BASE: &str = "coalesce((SELECT CAST(value AS INTEGER)
                                         FROM cf_agents_config
                                        WHERE key = 'feed'), 0)";

/// `None`: the session does not exist.
pub fn find_life(db: &dyn Database, session_id: &Id) -> Result<Option<CursorRange>> {
    let sql = format!(
        "SELECT feed_base,
                max(coalesce((SELECT max(seq)
                                FROM cf_agents_events
                               WHERE session_id = ?1), 0) * {CURSORS_A_SEQ},
                    coalesce((SELECT max(cursor)
                                FROM cf_agents_changes
                               WHERE session_id = ?1), 0))
           FROM cf_agents_sessions
          WHERE id = ?1"
    );
    let life = find(db, &sql, &[session_id.as_str().into()])?;
    Ok(life.map(|(base, newest)| CursorRange { base, newest }))
}

/// Ends a session's feed before the session is deleted. The cursors of later sessions
/// begin above all cursors of this feed.
///
/// The agent keeps one row for this, however many sessions it deletes. Above the
/// highest base, the base starts again at 0. An old cursor could then match again, 2^31
/// appends later.
pub fn end_life(db: &dyn Database, session_id: &Id) -> Result<()> {
    let Some(CursorRange { base, newest }) = find_life(db, session_id)? else {
        return Ok(());
    };
    if newest == 0 {
        return Ok(());
    }
    let above_all = base + newest;
    let (next, begins_anew) = match above_all <= MAX_BASE {
        true => (above_all, false),
        false => (0, true),
    };
    db.run(
        &format!(
            "{INSERT_VALUE}
             VALUES (?1, CAST(CAST(?2 AS INTEGER) AS TEXT))
                 ON CONFLICT (key) DO UPDATE
                SET value = iif(?3 OR CAST(excluded.value AS INTEGER) > CAST(value AS INTEGER),
                                excluded.value, value)"
        ),
        &[KEY.into(), next.into(), begins_anew.into()],
    )
}

/// The stored position of a caller's cursor. 0 always means the beginning.
pub fn find_position(life: &CursorRange, since: i64) -> Result<i64> {
    if since == 0 {
        return Ok(0);
    }
    let position = since - life.base;
    if (1..=life.newest).contains(&position) {
        return Ok(position);
    }
    Err(Error::invalid(
        "since",
        "`since` is not a cursor of this session's feed: the session was deleted and created again, or imported. Drop your copy, and start again with `since: 0`.",
    ))
}

/// A change, and its position in the feed.
#[derive(Clone, Debug, Serialize)]
pub struct FeedChange {
    pub cursor: i64,
    #[serde(rename = "type")]
    pub kind: Cow<'static, str>,
    pub id: Option<String>,
}

/// Loads up to `limit` changes after `position` that are not appends, oldest first.
pub fn load_recorded(
    db: &dyn Database,
    session_id: &Id,
    position: i64,
    limit: i64,
) -> Result<Vec<FeedChange>> {
    let changes = load(
        db,
        "SELECT cursor, type, id
           FROM cf_agents_changes
          WHERE session_id = +?1
            AND cursor > +?2
          ORDER BY cursor
          LIMIT ?3 + 0",
        &[session_id.as_str().into(), position.into(), limit.into()],
    )?;
    Ok(changes
        .into_iter()
        .map(
            |(cursor, kind, id): (i64, String, Option<String>)| FeedChange {
                cursor,
                kind: kind.into(),
                id,
            },
        )
        .collect())
}
