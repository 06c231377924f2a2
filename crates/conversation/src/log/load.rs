//! Reading events: one query builder for all filters. SQLite builds the JSON, and nothing
//! copies it.

use super::event::{EVENT_JSON, StoredEvent};
use super::slices::load_slices;
use base::action::Action;
use base::budget::{AnswerCapacity, MAX_ANSWER_BYTES};
use base::columns::{find_value, load};
use base::database::{Database, SqlText, SqlValue, find_row};
use base::error::{Error, Result, StorageFailure};
use base::ids::Id;
use base::json::{self, json};

/// An upper bound for the bytes of an event `e` in an answer. A message's slices contain
/// its text twice: in `content` and in the message. Only `content` is part of the answer.
const BYTES: &str = "coalesce(octet_length(e.content), 0) + coalesce(octet_length(e.tool), 0)
    + coalesce(octet_length(e.metadata), 0) + iif(e.message IS NULL, e.sliced_bytes, e.sliced_bytes / 2)";

/// The most bytes of a rendered page, including the names and numbers around its texts.
const MAX_PAGE_BYTES: usize = MAX_ANSWER_BYTES + (512 << 10);

/// SQLite may build a page of any length if none of its events is larger than this.
const SHORT_BYTES: i64 = 8 << 10;

/// Selects events of a session, and how many to load.
pub struct EventQuery<'a> {
    pub session_id: &'a Id,
    pub limit: i64,
    /// Only events created at this time or later.
    pub since_ms: Option<i64>,
    pub actions: Option<&'a [Action]>,
    pub after_seq: Option<i64>,
    pub before_seq: Option<i64>,
    /// Take the newest matching events instead of the oldest. They are still ordered by
    /// `seq`.
    pub newest: bool,
}

impl EventQuery<'_> {
    /// Whether the query asks for the newest events of the log without any filter.
    fn is_of_newest(&self) -> bool {
        let is_filtered = self.since_ms.is_some() || self.actions.is_some();
        let is_within = self.after_seq.is_some() || self.before_seq.is_some();
        self.newest && !is_filtered && !is_within
    }

    /// Selects the matching rows, aliased `e`, up to `limit`, in no guaranteed order.
    fn build(&self, columns: &str) -> (String, Vec<SqlValue>) {
        let mut params: Vec<SqlValue> = vec![self.session_id.as_str().into()];
        let mut clauses = String::from("e.session_id = +?1");
        let mut filter = |clause: &str, value: SqlValue| {
            params.push(value);
            clauses.push_str(&format!(
                "\n   AND {}",
                clause.replace('?', &format!("?{}", params.len()))
            ));
        };
        if let Some(since_ms) = self.since_ms {
            filter("e.created_at >= +?", since_ms.into());
        }
        if let Some(actions) = self.actions {
            filter(
                "e.action IN (SELECT value FROM json_each(?))",
                json::text(&json!(actions)).into(),
            );
        }
        if let Some(after_seq) = self.after_seq {
            filter("e.seq > +?", after_seq.into());
        }
        if let Some(before_seq) = self.before_seq {
            filter("e.seq < +?", before_seq.into());
        }
        params.push(self.limit.into());
        let order = if self.newest { "DESC" } else { "ASC" };
        let sql = format!(
            "SELECT {columns}
  FROM cf_agents_events AS e
 WHERE {clauses}
 ORDER BY e.seq {order}
 LIMIT ?{} + 0",
            params.len()
        );
        (sql, params)
    }
}

/// The events as a JSON array in `seq` order. SQLite has the whole page in memory while it builds
/// the JSON. It therefore builds a page only if no event exceeds its share of the longest answer.
pub fn load_events(db: &dyn Database, query: &EventQuery<'_>) -> Result<SqlText> {
    let share = MAX_ANSWER_BYTES as i64 / query.limit.max(1);
    let max_bytes = share.max(SHORT_BYTES);
    if query.is_of_newest() {
        match find_newest(db, query, max_bytes) {
            NewestPage::Made(page) => return Ok(page),
            NewestPage::Long => return load_row_by_row(db, query),
            NewestPage::Scattered => {}
        }
    }
    let (page, params) = query.build("e.seq AS seq");
    // A page of the newest events is a range of rows, which SQLite reads in order. Filtered events
    // must be sorted by their numbers.
    let end = match query.before_seq {
        Some(before_seq) => format!(" AND e.seq < {before_seq}"),
        None => String::new(),
    };
    let rows = if query.newest && query.since_ms.is_none() && query.actions.is_none() {
        format!(
            "cf_agents_events AS e
              WHERE e.session_id = +?1
                AND e.seq >= (SELECT min(seq) FROM ({page})){end}
              ORDER BY e.seq"
        )
    } else {
        format!(
            "({page}) AS page
              CROSS JOIN cf_agents_events AS e
                 ON e.session_id = ?1
                AND e.seq = page.seq
              ORDER BY page.seq"
        )
    };
    let sql = format!(
        "SELECT {PAGE_JSON} FROM ({})",
        shown_events(max_bytes, &rows)
    );
    match db.find_text(&sql, &params) {
        Ok(Some(text)) => Ok(text),
        Ok(None) => load_row_by_row(db, query),
        Err(error) => match error.storage_failure() {
            Some(StorageFailure::TextTooLong | StorageFailure::DamagedJson) => {
                find_damaged(db, query)?;
                load_row_by_row(db, query)
            }
            _ => Err(error),
        },
    }
}

/// A page of `event`s; NULL if an event is too long for SQLite to build the page.
const PAGE_JSON: &str = "CAST(iif(count(event) = count(*),
                                  '[' || coalesce(group_concat(event, ','), '') || ']',
                                  NULL) AS BLOB)";

/// Selects the JSON of events as `event`, or NULL for a long one. `rows` is the SQL after
/// FROM.
fn shown_events(max_bytes: i64, rows: &str) -> String {
    format!(
        "SELECT e.seq AS seq,
                iif(e.sliced_bytes > 0 OR {BYTES} > {max_bytes}, NULL, {EVENT_JSON}) AS event
           FROM {rows}"
    )
}

/// The newest events of a log, selected by `seq` alone.
enum NewestPage {
    Made(SqlText),
    /// An event is too long for SQLite to build the page.
    Long,
    /// The log's last `seq` values don't all have events, because some were deleted or a
    /// row is damaged.
    Scattered,
}

fn find_newest(db: &dyn Database, query: &EventQuery<'_>, max_bytes: i64) -> NewestPage {
    let rows = shown_events(
        max_bytes,
        "cf_agents_events AS e
          WHERE e.session_id = +?1
            AND e.seq > (SELECT max(seq) FROM cf_agents_events WHERE session_id = +?1) - ?2
          ORDER BY e.seq",
    );
    let sql = format!(
        "SELECT {PAGE_JSON},
                count(*) IN (0, ?2)
                OR min(seq) = (SELECT min(seq) FROM cf_agents_events WHERE session_id = +?1)
           FROM ({rows})"
    );
    let params = [query.session_id.as_str().into(), query.limit.into()];
    let Ok(Some((page, row))) = db.find_text_and_row(&sql, &params) else {
        return NewestPage::Scattered;
    };
    match (row.value(), page) {
        (Ok(true), Some(page)) => NewestPage::Made(page),
        (Ok(true), None) => NewestPage::Long,
        _ => NewestPage::Scattered,
    }
}

/// Restores an event's sliced columns.
fn fill_in_slices(db: &dyn Database, event: &mut StoredEvent<'_>) -> Result<()> {
    if event.sliced_bytes == 0 {
        return Ok(());
    }
    let mut fields = load_slices(db, event.session_id, event.seq, event.message)?;
    if let Some(content) = fields.remove("content") {
        event.content = Some(content.into());
    }
    if let Some(tool) = fields.remove("tool") {
        event.tool = Some(tool.into());
    }
    if let Some(metadata) = fields.remove("metadata") {
        event.metadata = Some(metadata.into());
    }
    Ok(())
}

fn find_damaged(db: &dyn Database, query: &EventQuery<'_>) -> Result<()> {
    let (inner, params) = query.build(
        "e.id AS id, e.seq AS seq, json_valid(coalesce(e.metadata, '{}')) AND json_valid(coalesce(e.tool, '{}')) AS valid",
    );
    let sql = format!("SELECT id FROM ({inner}) WHERE NOT valid ORDER BY seq LIMIT 1");
    match find_value::<String>(db, &sql, &params)? {
        Some(id) => Err(Error::corrupt_row(&id, "metadata")),
        None => Ok(()),
    }
}

fn load_row_by_row(db: &dyn Database, query: &EventQuery<'_>) -> Result<SqlText> {
    let (seqs, stored) = find_page(db, query)?;
    let sql = format!(
        "SELECT {}
           FROM cf_agents_events AS e
          WHERE e.session_id = ?1
            AND e.seq = ?2",
        StoredEvent::COLUMNS
    );
    let mut events = Vec::with_capacity(seqs.len());
    let mut written = 0;
    for seq in seqs {
        let row = find_row(db, &sql, &[query.session_id.as_str().into(), seq.into()])?;
        let row = row.ok_or_else(|| Error::storage(format!("event {seq} is missing")))?;
        let mut event: StoredEvent = row.read()?;
        fill_in_slices(db, &mut event)?;
        let event = event.json()?;
        drop(row);
        written += event.len();
        if written > MAX_PAGE_BYTES && !events.is_empty() {
            return Err(page_too_long(events.len(), stored.max(written)));
        }
        events.push(event);
    }
    if query.newest {
        events.reverse();
    }
    let mut page = String::with_capacity(written + events.len() + 2);
    page.push('[');
    for event in events {
        if page.len() > 1 {
            page.push(',');
        }
        page.push_str(&event);
    }
    page.push(']');
    Ok(page.into())
}

/// The `seq` of the page's events, in the order in which a smaller `limit` would keep them,
/// and their stored bytes. A single event always fits.
fn find_page(db: &dyn Database, query: &EventQuery<'_>) -> Result<(Vec<i64>, usize)> {
    let (inner, params) = query.build(&format!("e.seq AS seq, {BYTES} AS bytes"));
    let mut sizes = Vec::new();
    for (seq, bytes) in load::<(i64, i64)>(db, &inner, &params)? {
        sizes.push((seq, usize::try_from(bytes).unwrap_or(usize::MAX)));
    }
    sizes.sort_by(|(a, _), (b, _)| if query.newest { b.cmp(a) } else { a.cmp(b) });
    let total = sizes.iter().map(|(_, bytes)| bytes).sum::<usize>();
    if total > MAX_ANSWER_BYTES && sizes.len() > 1 {
        let mut capacity = AnswerCapacity::of(MAX_ANSWER_BYTES);
        let fitting = sizes.iter().take_while(|(_, bytes)| capacity.takes(*bytes));
        return Err(page_too_long(fitting.count(), total));
    }
    Ok((sizes.into_iter().map(|(seq, _)| seq).collect(), total))
}

fn page_too_long(fitting: usize, total: usize) -> Error {
    Error::payload_too_large(
        &format!("The page of events (request fewer: `limit` {fitting} fits)"),
        MAX_ANSWER_BYTES,
        total,
    )
    .with("limitThatFits", fitting)
}
