//! The change feed: the changes of a session, in order, for a client with a copy. Appends
//! are read from the log. All other changes have rows in `cf_agents_changes`.

use std::borrow::Cow;

use serde::Serialize;

use crate::session::activity;
use base::columns::{find, find_value, load};
use base::database::{Database, SqlValue};
use base::error::Result;
use base::hash::hash_names;
use base::host::Host;
use base::ids::Id;
use base::json;
use base::numbers::CURSORS_A_SEQ;
use base::{row, sql};
use store::stored::{VALUE_OF_1, VALUE_OF_2, write_stored};

/// SQL: the cursor of the newest change of a session `s` that has a row in the feed; 0:
/// there is none.
pub const LAST_CURSOR: &str = "coalesce((SELECT max(cursor)
                                        FROM cf_agents_changes
                                       WHERE session_id = s.id), 0)";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangeType {
    Update,
    Delete,
    Clear,
    Compaction,
}

impl ChangeType {
    pub fn name(self) -> &'static str {
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
            // If the clock was set back, a session's time must not decrease.
            host.now_ms().max(changed_at).into(),
            number.into(),
        ],
    )?;
    keep_below_next_append(db, session_id, last_seq, start + count)?;
    activity::record(db, session_id)?;
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

/// The unused cursors directly before an append's own cursor.
/// `conversation/messages/feed.rs` uses them to report the message that the append joins,
/// or the two into which it splits one.
pub const CURSORS_BEFORE_APPEND: i64 = 2;

/// The last `seq` whose cursors a change with this cursor may use.
fn last_seq_before(cursor: i64) -> i64 {
    (cursor + CURSORS_BEFORE_APPEND) / CURSORS_A_SEQ
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

/// After this many new entries, obsolete entries are deleted.
const SWEPT_EVERY: i64 = 1000;

/// A sweep reads the newest 1,000 entries, every second sweep 2,000, and so on, up to
/// 16,000 entries of 250 bytes each: 4 MB. So each entry is read about five times in total.
/// A message that is updated endlessly keeps one row per 16,000 updates.
const MAX_DOUBLINGS: u32 = 4;

/// Deletes entries that a newer entry of the same id makes obsolete: a reader of the newer
/// entry reads the current state. A deletion is kept if only updates follow it: its id then
/// belongs to a new message, at another position.
fn sweep(db: &dyn Database, session_id: &Id, sweeps: i64) -> Result<()> {
    let entries = SWEPT_EVERY << sweeps.trailing_zeros().min(MAX_DOUBLINGS);
    db.run(
        "DELETE FROM cf_agents_changes
          WHERE session_id = ?1
            AND cursor IN (
                  SELECT cursor
                    FROM (SELECT cursor, type,
                                 row_number() OVER (PARTITION BY type = 'compaction', id
                                                    ORDER BY cursor DESC) AS newer_rank,
                                 row_number() OVER (PARTITION BY type, id
                                                    ORDER BY cursor DESC) AS newer_rank_of_type
                            FROM (SELECT cursor, type, id
                                    FROM cf_agents_changes
                                   WHERE session_id = ?1
                                   ORDER BY cursor DESC
                                   LIMIT ?2))
                   WHERE iif(type = 'delete', newer_rank_of_type, newer_rank) > 1)",
        &[session_id.as_str().into(), entries.into()],
    )
}

/// Whether rows that a caller read from a log are still valid: while this is unchanged,
/// there were only appends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogState {
    /// A session that is deleted and created again has another base, whatever an imported
    /// file contains.
    base: i64,
    /// The cursor of the newest change that is not an append; 0 if there is none.
    newest: i64,
}

impl LogState {
    pub fn load(db: &dyn Database, session_id: &Id) -> Result<Self> {
        let sql = "SELECT feed_base FROM cf_agents_sessions WHERE id = ?1";
        let base: Option<i64> = find_value(db, sql, &[session_id.as_str().into()])?;
        let newest = find_newest(db, session_id)?;
        Ok(Self {
            base: base.unwrap_or(0),
            newest: newest.map_or(0, |(cursor, _, _)| cursor),
        })
    }
}

/// The names of the change types.
pub const TYPES: &[&str] = &["update", "delete", "clear", "compaction"];

/// Writes exported entries: the cursor, type, id and time of each.
pub fn restore(db: &dyn Database, session_id: &Id, rows: Vec<serde_json::Value>) -> Result<()> {
    if rows.is_empty() {
        return Ok(());
    }
    let (_, number, _) = find_newest(db, session_id)?.unwrap_or_default();
    // A file may omit changes, but the numbers include those, too: `is_given` accepts no
    // cursor that is further above its append than there are changes.
    let sql = format!(
        "{INSERT}
         SELECT ?1, value ->> 0, value ->> 1, value ->> 2, value ->> 3,
                max(CAST(?3 AS INTEGER) + 1 + key,
                    max((value ->> 0) % {CURSORS_A_SEQ}) OVER (ORDER BY key))
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

row! {
    /// A change as it is stored.
    pub struct StoredChange {
        pub cursor: i64 = "cursor",
        pub kind: String = "type",
        pub id: Option<String> = "id",
        pub changed_at: i64 = "changed_at",
    }
}

/// Up to `limit` changes after the first of two stored cursors, up to and including the
/// second.
pub fn load_stored(
    db: &dyn Database,
    session_id: &Id,
    (after, until): (i64, i64),
    limit: i64,
) -> Result<Vec<StoredChange>> {
    let sql = sql!(
        "SELECT ",
        StoredChange::COLUMNS,
        " FROM cf_agents_changes
          WHERE session_id = ?1
            AND cursor > ?2
            AND cursor <= ?3
          ORDER BY cursor
          LIMIT ?4"
    );
    let params = [
        session_id.as_str().into(),
        after.into(),
        until.into(),
        limit.into(),
    ];
    load(db, sql, &params)
}

/// Deletes all entries before the newest one, a clear, which made them obsolete.
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

/// One lifetime of a session's feed: from the session's creation until its deletion.
pub struct FeedLifetime {
    /// A caller's cursor is the stored cursor plus this base.
    pub base: i64,
    /// The newest stored cursor.
    pub newest: i64,
    /// At least the number of changes that have rows.
    recorded: i64,
}

/// The base of a later lifetime: this plus 51 random bits. With the highest stored cursor,
/// of 52 bits, the sum stays below 2^53, up to which JavaScript is exact.
const LATER_BASE: i64 = 1 << 51;

/// An earlier build stored the base of the next session's cursors here. It didn't record
/// which sessions it deleted.
const EARLIER_KEY: &str = "feed";

/// The agent stores one bit for each session that it deleted, found by the id's hash: at
/// most 256 values of 1,024 bits, however many sessions it deletes. If two ids share a bit,
/// the first lifetime of one of them has a base like that of a later one.
const ENDED_BITS: usize = 1024;

const ENDED_DIGITS: usize = ENDED_BITS / 4;

/// The key of the value with a session's bit, and the bit's index in it.
fn ended_bit(session_id: &str) -> (String, usize) {
    let hash = hash_names(&[session_id]);
    let bit = (hash >> 46) as usize % ENDED_BITS;
    (format!("ended {:02x}", hash >> 56), bit)
}

/// The bits of a stored value, four per digit.
fn parse_ended(stored: Option<&str>) -> Vec<u32> {
    let text: Option<String> = stored.and_then(|stored| json::decode(stored).ok());
    let mut digits: Vec<u32> = text
        .unwrap_or_default()
        .chars()
        .map(|digit| digit.to_digit(16).unwrap_or(0))
        .collect();
    digits.resize(ENDED_DIGITS, 0);
    digits
}

/// The cursor base of a session that is created now. A session's first lifetime starts at
/// 0, so a follower can continue when the session moves to another agent. A later lifetime
/// starts at a random base, so that cursors of earlier lifetimes are invalid. Neither
/// depends on other sessions.
pub fn begin_lifetime(db: &dyn Database, host: &dyn Host, session_id: &str) -> Result<i64> {
    let (key, bit) = ended_bit(session_id);
    let sql = sql!("SELECT ", VALUE_OF_1, ", ", VALUE_OF_2);
    let found: Option<(Option<String>, Option<String>)> =
        find(db, sql, &[EARLIER_KEY.into(), key.into()])?;
    let (earlier, ended) = found.unwrap_or_default();
    let digits = parse_ended(ended.as_deref());
    let has_ended = digits
        .get(bit / 4)
        .is_some_and(|digit| digit >> (bit % 4) & 1 == 1);
    if earlier.is_none() && !has_ended {
        return Ok(0);
    }
    Ok(later_base(host))
}

fn later_base(host: &dyn Host) -> i64 {
    let mut bytes = [0; 8];
    host.fill_random(&mut bytes);
    LATER_BASE + (u64::from_le_bytes(bytes) >> 13).cast_signed()
}

/// The most entries that [`begin_again`] deletes at once.
const FORGOTTEN_AT_ONCE: i64 = 1_000;

/// Restarts the feed after many events were deleted: followers must drop their copies and
/// load what is left. An entry for each deleted event would cost as much as the event did.
/// `left` is the oldest remaining event. Must run in the transaction that deletes the
/// events.
pub fn begin_again(
    db: &dyn Database,
    host: &dyn Host,
    session_id: &Id,
    last_seq: i64,
    left: Option<&str>,
) -> Result<()> {
    // One entry is written, so that comparing cursors shows a change.
    let change = match left {
        Some(_) => ChangeType::Update,
        None => ChangeType::Clear,
    };
    record(db, host, session_id, last_seq, change, &[left])?;
    db.run(
        "DELETE FROM cf_agents_changes
          WHERE session_id = ?1
            AND cursor IN (SELECT cursor
                             FROM cf_agents_changes
                            WHERE session_id = ?1
                              AND cursor < (SELECT max(cursor)
                                              FROM cf_agents_changes
                                             WHERE session_id = ?1)
                            ORDER BY cursor
                            LIMIT ?2)",
        &[session_id.as_str().into(), FORGOTTEN_AT_ONCE.into()],
    )?;
    db.run(
        "UPDATE cf_agents_sessions SET feed_base = ?2 WHERE id = ?1",
        &[session_id.as_str().into(), later_base(host).into()],
    )
}

row! {
    /// The columns of a session `s`, and of the newest recorded change `c`, if there is one.
    for FeedLifetime {
        base: i64 = "s.feed_base",
        newest_seq: i64 = "coalesce((SELECT max(seq) FROM cf_agents_events WHERE session_id = s.id), 0)",
        newest_cursor: i64 = "coalesce(c.cursor, 0)",
        recorded: i64 = "coalesce(c.number, 0)",
    }
    Ok(Self {
        base,
        newest: newest_cursor.max(newest_seq * CURSORS_A_SEQ),
        recorded,
    })
}

/// `None`: the session does not exist.
pub fn find_lifetime(db: &dyn Database, session_id: &Id) -> Result<Option<FeedLifetime>> {
    let sql = format!(
        "SELECT {}
           FROM cf_agents_sessions AS s
           LEFT JOIN (SELECT cursor, number
                        FROM cf_agents_changes
                       WHERE session_id = ?1
                       ORDER BY cursor DESC
                       LIMIT 1) AS c
          WHERE s.id = ?1",
        FeedLifetime::COLUMNS
    );
    find(db, &sql, &[session_id.as_str().into()])
}

/// Records, before a session is deleted, that its id was used.
pub fn end_lifetime(db: &dyn Database, session_id: &Id) -> Result<()> {
    let has_cursors = find_lifetime(db, session_id)?.is_some_and(|lifetime| lifetime.newest > 0);
    if !has_cursors {
        return Ok(());
    }
    let (key, bit) = ended_bit(session_id.as_str());
    // Returns one row, whether the value exists or not.
    let sql = sql!("SELECT ", VALUE_OF_1);
    let stored: Option<Option<String>> = find_value(db, sql, &[key.as_str().into()])?;
    let mut digits = parse_ended(stored.flatten().as_deref());
    if let Some(digit) = digits.get_mut(bit / 4) {
        *digit |= 1 << (bit % 4);
    }
    let text: String = digits
        .into_iter()
        .filter_map(|digit| char::from_digit(digit, 16))
        .collect();
    write_stored(db, &key, &text)
}

/// The stored position of a caller's cursor. 0 always means the start. `None`: the cursor
/// is not from this lifetime.
pub fn find_position(lifetime: &FeedLifetime, since: i64) -> Option<i64> {
    if since == 0 {
        return Some(0);
    }
    let position = since - lifetime.base;
    let is_within = (0..=lifetime.newest).contains(&position);
    (is_within && (lifetime.base < LATER_BASE || is_given(position, lifetime.recorded)))
        .then_some(position)
}

/// Whether a feed with this many recorded changes returns this cursor. A cursor of another
/// lifetime between the cursors of this one is almost never accepted, because its last 20
/// bits are random here.
fn is_given(position: i64, recorded: i64) -> bool {
    let offset = position % CURSORS_A_SEQ;
    // An append's own cursor is a multiple; those before it report messages that it joined
    // or split.
    offset <= recorded || offset >= CURSORS_A_SEQ - CURSORS_BEFORE_APPEND
}

/// A change and its cursor.
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
