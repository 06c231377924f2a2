//! Finds every place where a text stands, or what comes from an event: in logs, memory,
//! versions, summaries, frozen prompts. A request reads a bounded part of the tables; its
//! cursor names the row where the next request goes on.
//!
//! The tables are read, not the index of words: the index knows no summaries and no
//! versions, it may be half built, and a place that it misses would stay. SQLite looks at
//! the texts where they are, so no text but the snippets comes into memory.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};

use super::mention_tables::{MENTION_TABLES, MentionTable};
use crate::base::columns::{FromRow, find, load};
use crate::base::database::{Database, Row, SqlValue};
use crate::base::error::{Error, Result};
use crate::base::ids::Id;
use crate::base::json::{self, Tree, json, quoted};

/// The most characters of a query. Each form of it is looked for in each text.
pub const MAX_QUERY_CHARS: usize = 200;

/// The most rows, and the most bytes of text, that one request looks at: some 100 ms of
/// the engine. A row that is longer by itself is looked at alone.
const MAX_ROWS: i64 = 20_000;
const MAX_BYTES: i64 = 8 << 20;

/// What to find.
pub enum Wanted<'a> {
    /// Texts that hold this text, whether its letters are large or small.
    Text(&'a str),
    /// These events, the summaries that cover them, and the memory that comes from them.
    Events(&'a [Id]),
}

/// A kind of place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum PlaceKind {
    /// An event of a log: `sessionId`, `id`.
    Event,
    /// A summary: `sessionId`, `id`.
    Summary,
    /// A session's name or metadata: `sessionId`.
    Session,
    /// A block's definition: `label`.
    Definition,
    /// The text of a block: `label`, `version`.
    Block,
    /// An entry: `label`, `key`.
    Entry,
    /// A document: `label`, `key`.
    Document,
    /// An earlier version: `label`, `version`, and the `key` of an entry or a document.
    Version,
    /// A document as a session loaded it: `sessionId`, `label`, `key`.
    LoadedDocument,
    /// A frozen prompt.
    Prompt,
    /// A report that was not delivered to `onTurnEnd` or `onMemoryChange`: `sessionId`, `id`.
    Report,
    /// A proposal to change memory: `id`.
    Proposal,
}

/// A place where something stands.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct MentionPlace {
    pub kind: PlaceKind,
    /// The session that the place belongs to. Absent or `null`: the agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<Id>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<Id>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<i64>,
    /// What stands around it, as it is stored. `erase` ignores it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub snippet: Option<String>,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Mentions {
    pub places: Vec<MentionPlace>,
    /// Where the next request goes on, also after a page without places. `null`: all was
    /// looked at.
    pub cursor: Option<String>,
}

/// A position: a table, and the key of the last row that was looked at.
#[derive(Clone, Debug, PartialEq)]
struct MentionCursor {
    table: usize,
    /// Empty: the table begins.
    after: Vec<SqlValue>,
}

impl MentionCursor {
    fn encode(&self) -> String {
        let key: Vec<serde_json::Value> = self
            .after
            .iter()
            .map(|value| match value {
                SqlValue::Text(text) => json!(text),
                SqlValue::Integer(number) => json!(number),
                SqlValue::Real(number) => json!(*number as i64),
                SqlValue::Null => json!(null),
            })
            .collect();
        URL_SAFE_NO_PAD.encode(json::text(&json!([self.table, key])))
    }

    /// `None`: no request answered this cursor.
    fn decode(text: &str) -> Option<Self> {
        let bytes = URL_SAFE_NO_PAD.decode(text).ok()?;
        let Tree(parts) = json::decode_bytes(&bytes).ok()?;
        let table = usize::try_from(parts.get(0)?.as_u64()?).ok()?;
        let key = parts.get(1)?.as_array()?;
        let columns = MENTION_TABLES.get(table)?.key.len();
        if !key.is_empty() && key.len() != columns {
            return None;
        }
        let value = |value: &serde_json::Value| match value {
            serde_json::Value::String(text) => Some(SqlValue::Text(text.clone())),
            value => value.as_i64().map(SqlValue::Integer),
        };
        Some(Self {
            table,
            after: key.iter().map(value).collect::<Option<_>>()?,
        })
    }
}

/// Finds up to `limit` places. `only`: within this session alone.
pub fn find_mentions(
    db: &dyn Database,
    wanted: &Wanted<'_>,
    only: Option<&Id>,
    limit: usize,
    cursor: Option<&str>,
) -> Result<Mentions> {
    let mut at = match cursor {
        None => MentionCursor {
            table: 0,
            after: Vec::new(),
        },
        Some(text) => MentionCursor::decode(text).ok_or_else(|| {
            Error::invalid(
                "cursor",
                "`cursor` must be the `cursor` of an earlier answer, as it was.",
            )
        })?,
    };
    let pattern = wanted.pattern()?;
    let mut found = Mentions {
        places: Vec::new(),
        cursor: None,
    };
    let mut room = ScanRoom {
        rows: MAX_ROWS,
        bytes: MAX_BYTES,
    };
    while let Some(table) = MENTION_TABLES.get(at.table) {
        let is_over = room.rows <= 0 || room.bytes <= 0 || found.places.len() >= limit;
        if is_over {
            found.cursor = Some(at.encode());
            break;
        }
        let search = TableSearch {
            db,
            table,
            only,
            pattern: &pattern,
            is_text: matches!(wanted, Wanted::Text(_)),
        };
        let left = limit - found.places.len();
        match search.step(&at.after, left, &mut room, &mut found.places)? {
            Some(after) => at.after = after,
            None => {
                at.table += 1;
                at.after.clear();
            }
        }
    }
    Ok(found)
}

/// What a request may still look at.
struct ScanRoom {
    rows: i64,
    bytes: i64,
}

impl Wanted<'_> {
    /// The parameter of the conditions: JSON.
    fn pattern(&self) -> Result<String> {
        match self {
            Wanted::Text(text) => json::encode(&forms(text)),
            Wanted::Events(ids) => {
                let events = ids.iter().map(|id| json!([id.as_str(), id.find_seq()]));
                Ok(json::text(&json!(events.collect::<Vec<_>>())))
            }
        }
    }
}

/// The forms in which a text may stand in a row: large and small letters, as SQLite's
/// `lower` leaves them, and as JSON writes them.
fn forms(text: &str) -> Vec<String> {
    let mut title: String = text.chars().take(1).flat_map(char::to_uppercase).collect();
    title.extend(text.chars().skip(1).flat_map(char::to_lowercase));
    let mut forms = Vec::new();
    for written in [
        text.to_owned(),
        text.to_lowercase(),
        text.to_uppercase(),
        title,
    ] {
        let in_json = quoted(&written);
        let in_json = in_json.get(1..in_json.len() - 1).unwrap_or_default();
        for form in [written.clone(), in_json.to_owned(), escaped(&written)] {
            let form = form.to_ascii_lowercase();
            if !forms.contains(&form) {
                forms.push(form);
            }
        }
    }
    forms
}

/// The text with all but ASCII as `\u` escapes, as some programs write JSON.
fn escaped(text: &str) -> String {
    let mut escaped = String::new();
    let in_json = quoted(text);
    for c in in_json
        .get(1..in_json.len() - 1)
        .unwrap_or_default()
        .chars()
    {
        if c.is_ascii() {
            escaped.push(c);
        } else {
            let mut units = [0; 2];
            for unit in c.encode_utf16(&mut units) {
                escaped.push_str(&format!("\\u{unit:04x}"));
            }
        }
    }
    escaped
}

/// One table's part of a request.
struct TableSearch<'a> {
    db: &'a dyn Database,
    table: &'a MentionTable,
    only: Option<&'a Id>,
    pattern: &'a str,
    is_text: bool,
}

/// The last row of a step.
struct StepEnd {
    rows: i64,
    bytes: i64,
    key: Vec<SqlValue>,
}

impl FromRow<'_> for StepEnd {
    fn from_row(row: &Row) -> Result<Self> {
        Ok(Self {
            rows: row.integer(0)?,
            bytes: row.integer(1)?,
            key: row.0.iter().skip(2).cloned().collect(),
        })
    }
}

/// A row that is wanted.
struct FoundPlace {
    place: MentionPlace,
    key: Vec<SqlValue>,
}

impl FromRow<'_> for FoundPlace {
    fn from_row(row: &Row) -> Result<Self> {
        let unread = |_| Error::storage("a place that can't be read");
        let place: MentionPlace = json::decode(row.text(0)?).map_err(unread)?;
        Ok(Self {
            place: MentionPlace {
                snippet: row.find_text(1).map(str::to_owned),
                ..place
            },
            key: row.0.iter().skip(2).cloned().collect(),
        })
    }
}

impl TableSearch<'_> {
    /// Looks at the next rows of the table. Returns the key of the last of them; `None`:
    /// the table is at its end.
    fn step(
        &self,
        after: &[SqlValue],
        limit: usize,
        room: &mut ScanRoom,
        places: &mut Vec<MentionPlace>,
    ) -> Result<Option<Vec<SqlValue>>> {
        let Some(condition) = self.condition() else {
            return Ok(None);
        };
        let Some(end) = self.find_end(after, room)? else {
            return Ok(None);
        };
        room.rows -= end.rows;
        room.bytes -= end.bytes;
        let (key, order) = (self.table.key.join(", "), self.order());
        let (range, mut params) = self.rows_after(after);
        let bounds: Vec<String> = (0..end.key.len())
            .map(|index| format!("?{}", params.len() + index + 1))
            .collect();
        params.extend(end.key.iter().cloned());
        let pattern = params.len() + 1;
        params.push(self.pattern.into());
        params.push((limit as i64).into());
        let sql = format!(
            "SELECT {place}, {snippet}, {key}
               FROM {name} AS t
              WHERE {range}
                AND ({order}) <= ({bounds})
                AND {condition}
              ORDER BY {order}
              LIMIT ?{limit}",
            place = self.table.place,
            snippet = match self.is_text {
                true => self.table.snippet().replace("?p", &format!("?{pattern}")),
                false => "NULL".to_owned(),
            },
            name = self.table.name,
            bounds = bounds.join(", "),
            condition = condition.replace("?p", &format!("?{pattern}")),
            limit = pattern + 1,
        );
        let found: Vec<FoundPlace> = load(self.db, &sql, &params)?;
        let is_full = found.len() >= limit;
        let mut last = end.key;
        for FoundPlace { place, key } in found {
            places.push(place);
            // A full page ends at its last place, and the rows after it are looked at again.
            if is_full {
                last = key;
            }
        }
        Ok(Some(last))
    }

    /// The end of the next step within the room. `None`: the table has no more rows.
    fn find_end(&self, after: &[SqlValue], room: &ScanRoom) -> Result<Option<StepEnd>> {
        let (key, order) = (self.table.key.join(", "), self.order());
        let (range, mut params) = self.rows_after(after);
        let [rows, bytes] = [params.len() + 1, params.len() + 2];
        params.extend([room.rows.into(), room.bytes.into()]);
        let sql = format!(
            "SELECT place, total, {key}
               FROM (SELECT {key}, row_number() OVER (ORDER BY {key}) AS place,
                            sum(bytes) OVER (ORDER BY {key}) AS total
                       FROM (SELECT {key}, {length} AS bytes
                               FROM {name} AS t
                              WHERE {range}
                              ORDER BY {order}
                              LIMIT ?{rows}))
              WHERE total <= ?{bytes}
                 OR place = 1
              ORDER BY place DESC
              LIMIT 1",
            length = self.table.length(),
            name = self.table.name,
        );
        find(self.db, &sql, &params)
    }

    /// SQL: the key that orders the rows. For one session, an index leads to its rows, and
    /// the plus keeps SQLite from walking through all rows by their numbers instead.
    fn order(&self) -> String {
        match (self.only, self.table.key) {
            (Some(_), [number @ "number"]) => format!("+t.{number}"),
            (_, key) => key.join(", "),
        }
    }

    /// SQL: the rows after this key that the caller may see, and its parameters.
    fn rows_after(&self, after: &[SqlValue]) -> (String, Vec<SqlValue>) {
        let mut params = after.to_vec();
        let mut range = match after.len() {
            0 => "1".to_owned(),
            count => {
                let values: Vec<String> = (1..=count).map(|at| format!("?{at}")).collect();
                format!("({}) > ({})", self.order(), values.join(", "))
            }
        };
        if let (Some(only), Some(owner)) = (self.only, self.table.owner) {
            params.push(only.as_str().into());
            range.push_str(&format!(" AND t.{owner} = ?{}", params.len()));
        }
        (range, params)
    }

    /// SQL: whether a row is wanted. `?p` is the pattern. `None`: no row of this table is.
    fn condition(&self) -> Option<String> {
        if self.only.is_some() && self.table.owner.is_none() {
            return None;
        }
        let condition = match self.is_text {
            true => self.table.holds_text(),
            false => self.table.comes_from?.to_owned(),
        };
        Some(format!("{condition} AND {}", self.table.is_there))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_looked_for_as_rows_may_hold_it() {
        assert_eq!(forms("Bob"), ["bob"]);
        let forms = forms("Ä\"b");
        for form in [
            "Ä\"b",
            "ä\"b",
            "ä\\\"b",
            "Ä\"b",
            "\\u00e4\\\"b",
            "\\u00c4\\\"b",
        ] {
            assert!(forms.contains(&form.to_owned()), "{form}: {forms:?}");
        }
    }

    #[test]
    fn a_cursor_is_read_as_it_was_written_and_no_other_text_is_one() {
        let cursor = MentionCursor {
            table: 0,
            after: vec!["s".into(), SqlValue::Integer(7)],
        };
        assert_eq!(MentionCursor::decode(&cursor.encode()), Some(cursor));
        for text in ["", "x", "W10", "WzAsWzFdXQ", "Wzk5LFtdXQ"] {
            assert_eq!(MentionCursor::decode(text), None, "{text}");
        }
    }
}
