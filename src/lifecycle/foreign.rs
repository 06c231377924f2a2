//! The tables that the Agents SDK left in this object: its class became ours, and its
//! storage stayed. They are read page by page, so that an importer can write what they say
//! by the usual operations. Nothing here writes, and the tables stay as they are.
//!
//! Versions of the SDK differ in their columns, so the columns are asked of SQLite.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::base::columns::load_values;
use crate::base::database::{Database, Row, SqlValue};
use crate::base::error::Result;

/// The tables with conversations, their media and context memory. Other tables of the SDK
/// hold schedules, queues and the credentials of other servers, and are not shown.
const TABLES: &[&str] = &[
    "cf_agents_session_messages",
    "cf_agents_session_message_chunks",
    "cf_agents_session_compactions",
    "cf_agents_session_attachment_meta",
    MEDIA,
    "assistant_sessions",
    "assistant_messages",
    "assistant_compactions",
    "cf_ai_chat_agent_messages",
    "cf_agents_context_blocks",
    "cf_agents_search_fts",
];

/// The table with bytes, and their column.
const MEDIA: &str = "cf_agents_session_attachment_chunks";
const MEDIA_BYTES: &str = "data";

/// The most rows of one table in a page.
const PAGE_ROWS: usize = 100;

/// The bytes of a page's rows, as they are stored. A longer row is a page by itself; a
/// Durable Object stores no row above 2 MB.
const PAGE_BYTES: i64 = 1 << 20;

/// Bytes of media are read as hexadecimal digits, in pieces that SQLite may return
/// (`MAX_VALUE_BYTES`). Three pieces hold the longest row.
const PIECE_BYTES: usize = 900_000;
const PIECES: usize = 3;

/// Where a page begins: a table by its number in [`TABLES`], and how many of the table's
/// rows were read before. Nobody writes these tables, so their order stays.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Place {
    table: usize,
    rows: usize,
}

impl Place {
    pub fn parse(text: &str) -> Option<Self> {
        let (table, rows) = text.split_once('.')?;
        Some(Self {
            table: table.parse().ok()?,
            rows: rows.parse().ok()?,
        })
    }
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ForeignPage {
    rows: Vec<ForeignRow>,
    /// Where the next page begins. `null`: this page is the last.
    cursor: Option<String>,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct ForeignRow {
    table: &'static str,
    /// The row's columns by their names. Bytes are base64.
    #[cfg_attr(test, schemars(with = "crate::base::json::JsonObject"))]
    row: Map<String, Value>,
}

/// Reads the page that begins at `place`.
pub fn read_page(db: &dyn Database, mut place: Place) -> Result<ForeignPage> {
    let mut rows = Vec::new();
    let mut bytes = 0;
    while let Some(&table) = TABLES.get(place.table) {
        let columns = load_columns(db, table)?;
        let sizes = match columns.as_slice() {
            // The SDK made no such table here.
            [] => Vec::new(),
            columns => load_sizes(db, table, columns, place.rows)?,
        };
        let fits = |size: &&i64| {
            bytes += **size;
            bytes <= PAGE_BYTES
        };
        let count = sizes.iter().take_while(fits).count();
        // A page holds at least one row.
        let count = count.max(usize::from(rows.is_empty() && !sizes.is_empty()));
        rows.extend(load_rows(db, table, &columns, place.rows, count)?);
        place.rows += count;
        if count < sizes.len() || sizes.len() == PAGE_ROWS {
            let cursor = Some(format!("{}.{}", place.table, place.rows));
            return Ok(ForeignPage { rows, cursor });
        }
        place = Place {
            table: place.table + 1,
            rows: 0,
        };
    }
    Ok(ForeignPage { rows, cursor: None })
}

fn load_columns(db: &dyn Database, table: &str) -> Result<Vec<String>> {
    let sql = "SELECT name
                 FROM pragma_table_info(?1)
                ORDER BY cid";
    load_values(db, sql, &[table.into()])
}

/// The bytes of the next rows.
fn load_sizes(
    db: &dyn Database,
    table: &str,
    columns: &[String],
    after: usize,
) -> Result<Vec<i64>> {
    let sizes: Vec<String> = columns
        .iter()
        .map(|column| format!("coalesce(octet_length({}), 0)", quoted(column)))
        .collect();
    let sql = page_of(&sizes.join(" + "), table);
    load_values(db, &sql, &[number(PAGE_ROWS), number(after)])
}

fn load_rows(
    db: &dyn Database,
    table: &'static str,
    columns: &[String],
    after: usize,
    count: usize,
) -> Result<Vec<ForeignRow>> {
    if count == 0 {
        return Ok(Vec::new());
    }
    let is_media = |column: &str| table == MEDIA && column == MEDIA_BYTES;
    let values: Vec<String> = columns
        .iter()
        .map(|column| match is_media(column) {
            true => hexadecimal(&quoted(column)),
            false => text_or_number(&quoted(column)),
        })
        .collect();
    let sql = page_of(&values.join(", "), table);
    let read = |Row(values): Row| {
        let mut values = values.into_iter();
        let fields = columns.iter().map(|column| {
            let value = match is_media(column) {
                true => base64_of(values.by_ref().take(PIECES)),
                false => values.next().map_or(Value::Null, json_of),
            };
            (column.clone(), value)
        });
        ForeignRow {
            table,
            row: fields.collect(),
        }
    };
    let rows = db.rows(&sql, &[number(count), number(after)])?;
    Ok(rows.into_iter().map(read).collect())
}

/// The rows of a table in the order in which SQLite keeps them: versions of the SDK have no
/// column in common to order them by.
fn page_of(values: &str, table: &str) -> String {
    format!(
        "SELECT {values}
           FROM \"{table}\"
          LIMIT ?1
         OFFSET ?2"
    )
}

fn number(count: usize) -> SqlValue {
    i64::try_from(count).unwrap_or(i64::MAX).into()
}

/// A column as a name in SQL.
fn quoted(column: &str) -> String {
    format!("\"{}\"", column.replace('"', "\"\""))
}

/// Only the column of media holds bytes.
fn text_or_number(column: &str) -> String {
    format!("iif(typeof({column}) = 'blob', NULL, {column})")
}

fn hexadecimal(column: &str) -> String {
    let pieces: Vec<String> = (0..PIECES)
        .map(|piece| {
            let first = piece * PIECE_BYTES + 1;
            format!("hex(substr({column}, {first}, {PIECE_BYTES}))")
        })
        .collect();
    pieces.join(", ")
}

fn base64_of(pieces: impl Iterator<Item = SqlValue>) -> Value {
    let mut bytes = Vec::new();
    for piece in pieces {
        let SqlValue::Text(digits) = piece else {
            continue;
        };
        let pairs = digits.as_bytes().chunks(2);
        bytes.extend(pairs.filter_map(|pair| {
            let pair = std::str::from_utf8(pair).ok()?;
            u8::from_str_radix(pair, 16).ok()
        }));
    }
    Value::String(STANDARD.encode(bytes))
}

fn json_of(value: SqlValue) -> Value {
    match value {
        SqlValue::Null => Value::Null,
        SqlValue::Integer(number) => number.into(),
        SqlValue::Real(number) => number.into(),
        SqlValue::Text(text) => text.into(),
    }
}
