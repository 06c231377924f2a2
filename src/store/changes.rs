//! The change feed: what happened to a session, in order, for a client that
//! keeps a copy. Appends are read off the log; the rest has rows of its own.

use std::borrow::Cow;

use serde::Serialize;

use crate::base::columns::{find, load};
use crate::base::database::{Database, SqlValue};
use crate::base::error::{Error, Result};
use crate::base::host::Host;
use crate::base::ids::Id;
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

/// Entries that one statement takes.
const RECORDED_AT_ONCE: usize = 1000;

/// Records changes of one type, in the order of `ids` (`None`: the session as a
/// whole), in the transaction that makes them. `last_seq` is the highest that
/// an event of the session ever had.
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
    let (newest, number) = find_newest(db, session_id)?.unwrap_or_default();
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
            SqlValue::Text(serde_json::json!(ids).to_string()),
            host.now_ms().into(),
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

/// The newest entry's cursor and number.
fn find_newest(db: &dyn Database, session_id: &Id) -> Result<Option<(i64, i64)>> {
    let sql = "SELECT cursor, number
                 FROM cf_agents_changes
                WHERE session_id = ?1
                ORDER BY cursor DESC
                LIMIT 1";
    find(db, sql, &[session_id.as_str().into()])
}

/// The last `seq` whose cursors an entry may use, the one right before an
/// append's own set aside: it is where `messages/feed.rs` tells of a message that
/// the append joins.
fn last_seq_before(cursor: i64) -> i64 {
    (cursor + 1) / CURSORS_A_SEQ
}

/// About a million changes without an append reach the next append's cursor: its
/// number is passed over then, so that cursors go on growing.
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

/// Entries between two looks for superfluous ones.
const SWEPT_EVERY: i64 = 1000;

/// A look takes in the newest 1,000 entries, every second one twice as many, and
/// so on, 16,000 at most: of 250 bytes each, that is 4 MB. So an entry is looked at
/// five times in its life, and of a message that is updated without end one row
/// in 16,000 updates stays.
const MAX_DOUBLINGS: u32 = 4;

/// Forgets entries that a newer one of the same id makes superfluous: whoever
/// reads the newer one reads what is there then. A delete stays, though, where
/// only updates follow it: the id was given anew, and stands elsewhere.
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

/// The newest change that is no append; 0: there is none. Whoever read the log
/// before and sees the same now knows that what it read still stands.
pub fn load_newest(db: &dyn Database, session_id: &Id) -> Result<i64> {
    let newest = find_newest(db, session_id)?;
    Ok(newest.map_or(0, |(cursor, _)| cursor))
}

/// What a change may be, by name.
pub const TYPES: &[&str] = &["update", "delete", "clear", "compaction"];

/// Writes entries that were exported: cursor, type, id and time of each.
pub fn restore(db: &dyn Database, session_id: &Id, rows: Vec<serde_json::Value>) -> Result<()> {
    if rows.is_empty() {
        return Ok(());
    }
    let (_, number) = find_newest(db, session_id)?.unwrap_or_default();
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
            serde_json::Value::from(rows).to_string().into(),
            number.into(),
        ],
    )
}

/// Forgets what the newest change, a clear, made irrelevant.
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

/// Where a session's cursors begin, and the newest that it has.
pub struct CursorRange {
    pub base: i64,
    pub newest: i64,
}

/// What a caller is told as a cursor is this base more than what is stored. It is
/// kept so low that with the highest `seq`, of 32 bits, the sum is exact below 2^53.
const MAX_BASE: i64 = 1 << 51;

const KEY: &str = "feed";

/// Where the cursors of a session that is made now begin, as an expression in SQL.
pub const NEXT_BASE: &str = "coalesce((SELECT CAST(value AS INTEGER)
                                         FROM cf_agents_config
                                        WHERE key = 'feed'), 0)";

/// `None`: there is no such session.
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

/// Ends a session's feed, before the session is deleted: later sessions' cursors
/// begin above all that this feed gave.
///
/// One row for the whole agent, whatever is deleted. Above the highest base it
/// begins anew: an old cursor could then fit again, 2^31 appends later.
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

/// The position that a caller's cursor stands for. 0 is always the beginning.
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
        "`since` is no cursor of this session's feed as it is now: the session was deleted and made again, or brought from elsewhere. Throw the copy away and start again with `since: 0`.",
    ))
}

/// What happened, and where in the feed.
#[derive(Clone, Debug, Serialize)]
pub struct FeedChange {
    pub cursor: i64,
    #[serde(rename = "type")]
    pub kind: Cow<'static, str>,
    pub id: Option<String>,
}

/// Up to `limit` changes that are no appends after `position`, oldest first.
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
          WHERE session_id = ?1
            AND cursor > ?2
          ORDER BY cursor
          LIMIT ?3",
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
