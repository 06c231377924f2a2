//! Reads the tables that the Agents SDK left in this object when its class was transferred
//! to ours and its storage stayed. They are read page by page, so that an importer can
//! write their contents through the usual operations. This file only reads; the tables stay
//! unchanged.
//!
//! Columns differ between versions of the SDK, so they are looked up in SQLite.

use crate::json_schema::JsonSchema;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Serialize;
use serde_json::{Map, Value};

use base::columns::load_values;
use base::database::{Database, Row, SqlValue};
use base::error::{Error, Result};
use base::json;

/// The tables with conversations, their media and context memory. Other tables of the SDK
/// contain schedules, queues and credentials of other servers, and are not shown.
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

/// The table with media bytes, and their column.
const MEDIA: &str = "cf_agents_session_attachment_chunks";
const MEDIA_BYTES: &str = "data";

/// The most rows of one table in a page.
const PAGE_ROWS: usize = 100;

/// The most stored bytes of a page's rows. A longer row gets its own page; a Durable Object
/// stores no row larger than 2 MB.
const PAGE_BYTES: i64 = 1 << 20;

/// Media bytes are read as hexadecimal digits, in pieces that SQLite may return
/// (`MAX_VALUE_BYTES`). Three pieces cover the longest row.
const PIECE_BYTES: usize = 900_000;
const PIECES: usize = 3;

/// The sort key for a table without a primary key, or with a nullable one.
const ROW_ID: &str = "_rowid_";

/// The start of a page: a table, by its index in [`TABLES`], and the key of the last row
/// that was read of it. Seeking by key costs the same anywhere in a table. Nobody writes
/// these tables, so their order is stable.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ForeignPosition {
    table: usize,
    /// Empty: no row of the table was read.
    after: Vec<Value>,
}

impl ForeignPosition {
    /// Parses a cursor: the table's index, a dot, and the key as a JSON array.
    pub fn parse(text: &str) -> Option<Self> {
        let (table, after) = text.split_once('.')?;
        let Value::Array(after) = json::decode_tree(after).ok()? else {
            return None;
        };
        let is_key = |value: &Value| value.is_string() || value.is_number();
        Some(Self {
            table: table.parse().ok()?,
            after: after.iter().all(is_key).then_some(after)?,
        })
    }

    fn to_cursor(&self) -> String {
        format!(
            "{}.{}",
            self.table,
            json::text(&Value::Array(self.after.clone()))
        )
    }
}

#[derive(Serialize, JsonSchema)]
pub struct ForeignPage {
    rows: Vec<ForeignRow>,
    /// Where the next page starts. `null`: this is the last page.
    cursor: Option<String>,
}

#[derive(Serialize, JsonSchema)]
struct ForeignRow {
    table: &'static str,
    /// The row's columns by their names. Bytes are base64.
    #[schemars(with = "base::json::JsonObject")]
    row: Map<String, Value>,
}

/// Reads the page that starts at `position`. `None`: the position is invalid.
pub fn read_page(db: &dyn Database, mut position: ForeignPosition) -> Result<Option<ForeignPage>> {
    let mut rows = Vec::new();
    let mut bytes = 0;
    while let Some(&name) = TABLES.get(position.table) {
        if let Some(table) = ForeignTable::find(db, name)? {
            if !position.after.is_empty() && position.after.len() != table.key.len() {
                return Ok(None);
            }
            let sizes = table.load_sizes(db, &position.after)?;
            let fits = |size: &&i64| {
                bytes += **size;
                bytes <= PAGE_BYTES
            };
            let count = sizes.iter().take_while(fits).count();
            // A page contains at least one row.
            let count = count.max(usize::from(rows.is_empty() && !sizes.is_empty()));
            if count > 0 {
                position.after = table.load_rows(db, &position.after, count, &mut rows)?;
            }
            if count < sizes.len() || sizes.len() == PAGE_ROWS {
                let cursor = Some(position.to_cursor());
                return Ok(Some(ForeignPage { rows, cursor }));
            }
        }
        position = ForeignPosition {
            table: position.table + 1,
            after: Vec::new(),
        };
    }
    Ok(Some(ForeignPage { rows, cursor: None }))
}

/// A table of the SDK, with the columns of the SDK's version.
struct ForeignTable {
    name: &'static str,
    columns: Vec<String>,
    /// The columns that order and identify the rows, as quoted SQL names.
    key: Vec<String>,
}

impl ForeignTable {
    /// `None`: this object doesn't have the table.
    fn find(db: &dyn Database, name: &'static str) -> Result<Option<Self>> {
        let sql = "SELECT name
                     FROM pragma_table_info(?1)
                    ORDER BY cid";
        let columns: Vec<String> = load_values(db, sql, &[name.into()])?;
        if columns.is_empty() {
            return Ok(None);
        }
        // A table without row ids always has a primary key without nulls.
        let sql = "SELECT name
                     FROM pragma_table_info(?1)
                    WHERE pk > 0
                      AND NOT EXISTS (SELECT 1
                                        FROM pragma_table_info(?1)
                                       WHERE pk > 0
                                         AND \"notnull\" = 0)
                    ORDER BY pk";
        let key: Vec<String> = load_values(db, sql, &[name.into()])?;
        let key = if key.is_empty() {
            vec![ROW_ID.to_owned()]
        } else {
            key.iter().map(|column| quoted(column)).collect()
        };
        Ok(Some(Self { name, columns, key }))
    }

    /// The stored bytes of each of the next rows.
    fn load_sizes(&self, db: &dyn Database, after: &[Value]) -> Result<Vec<i64>> {
        let sizes: Vec<String> = self
            .columns
            .iter()
            .map(|column| format!("coalesce(octet_length({}), 0)", quoted(column)))
            .collect();
        let (sql, params) = self.page_of(&sizes.join(" + "), after, PAGE_ROWS);
        load_values(db, &sql, &params)
    }

    /// Adds the next rows, and returns the key of the last one.
    fn load_rows(
        &self,
        db: &dyn Database,
        after: &[Value],
        count: usize,
        rows: &mut Vec<ForeignRow>,
    ) -> Result<Vec<Value>> {
        let is_media = |column: &str| self.name == MEDIA && column == MEDIA_BYTES;
        let mut values: Vec<String> = self
            .columns
            .iter()
            .map(|column| {
                if is_media(column) {
                    hexadecimal(&quoted(column))
                } else {
                    text_or_number(&quoted(column))
                }
            })
            .collect();
        values.extend(self.key.iter().map(|column| text_or_number(column)));
        let (sql, params) = self.page_of(&values.join(", "), after, count);
        let mut last = Vec::new();
        for Row(values) in db.rows(&sql, &params)? {
            let mut values = values.into_iter();
            let mut row = Map::new();
            for column in &self.columns {
                let value = if is_media(column) {
                    base64_of(values.by_ref().take(PIECES))
                } else {
                    values.next().map_or(Value::Null, json_of)
                };
                row.insert(column.clone(), value);
            }
            let table = self.name;
            rows.push(ForeignRow { table, row });
            last = values.map(json_of).collect();
        }
        // No version of the SDK has bytes in a key. Without the key, the next page would
        // skip rows.
        if last.iter().any(Value::is_null) {
            return Err(Error::corrupt_row(self.name, "key"));
        }
        Ok(last)
    }

    /// The statement that reads the next rows, and its parameters.
    fn page_of(&self, values: &str, after: &[Value], count: usize) -> (String, Vec<SqlValue>) {
        let mut params = vec![SqlValue::from(i64::try_from(count).unwrap_or(i64::MAX))];
        params.extend(after.iter().map(sql_of));
        let key = self.key.join(", ");
        let marks: Vec<String> = (2..=params.len()).map(|at| format!("?{at}")).collect();
        let beginning = if after.is_empty() {
            String::new()
        } else {
            format!("WHERE ({key}) > ({})", marks.join(", "))
        };
        let sql = format!(
            "SELECT {values}
               FROM \"{}\"
              {beginning}
              ORDER BY {key}
              LIMIT ?1",
            self.name
        );
        (sql, params)
    }
}

/// A column name, quoted for SQL.
fn quoted(column: &str) -> String {
    format!("\"{}\"", column.replace('"', "\"\""))
}

/// Only the media column contains bytes.
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

fn sql_of(value: &Value) -> SqlValue {
    match (value, value.as_i64()) {
        (_, Some(number)) => number.into(),
        (Value::String(text), None) => text.as_str().into(),
        _ => value.as_f64().into(),
    }
}
