//! Reads tables in pages, row by row in the order of a key, up to a maximum of rows and
//! bytes per request. A cursor identifies the row at which the next request continues.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use base::columns::find;
use base::database::{Database, SqlValue};
use base::error::{Error, Result};
use base::ids::Id;
use base::json::{self, Tree, json};
use base::row;

/// A position: an index into a list of tables, and the key of the last row that was read.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PageCursor {
    pub table: usize,
    /// Empty: the beginning of the table.
    pub after: Vec<SqlValue>,
}

impl PageCursor {
    /// Parses a request's cursor. `key_columns`: the number of key columns of the table
    /// with this index; `None`: there is no such table.
    pub fn read(text: Option<&str>, key_columns: impl Fn(usize) -> Option<usize>) -> Result<Self> {
        let Some(text) = text else {
            return Ok(Self::default());
        };
        Self::decode(text, key_columns).ok_or_else(|| {
            Error::invalid(
                "cursor",
                "`cursor` must be the unchanged `cursor` of an earlier answer.",
            )
        })
    }

    /// Moves to the next table.
    pub fn leave_table(&mut self) {
        self.table += 1;
        self.after.clear();
    }

    pub fn encode(&self) -> String {
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

    /// `None`: not a valid cursor.
    fn decode(text: &str, key_columns: impl Fn(usize) -> Option<usize>) -> Option<Self> {
        let bytes = URL_SAFE_NO_PAD.decode(text).ok()?;
        let Tree(parts) = json::decode_bytes(&bytes).ok()?;
        let table = usize::try_from(parts.get(0)?.as_u64()?).ok()?;
        let key = parts.get(1)?.as_array()?;
        let columns = key_columns(table)?;
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

/// The remaining rows and bytes that a request may read.
#[derive(Debug)]
pub struct PageBudget {
    pub rows: i64,
    pub bytes: i64,
}

impl PageBudget {
    pub fn is_full(&self) -> bool {
        self.rows <= 0 || self.bytes <= 0
    }
}

/// The rows of one table to read.
pub struct TableRows<'a> {
    pub name: &'a str,
    /// The columns of the primary key, in its order.
    pub key: &'a [&'a str],
    /// SQL: the number of bytes that reading row `t` takes.
    pub length: String,
    /// If set, only this session's rows are read.
    pub only: Option<OwnRows<'a>>,
}

/// The condition that selects one session's rows of a table.
pub struct OwnRows<'a> {
    pub session_id: &'a Id,
    /// SQL: whether a row `t` belongs to the session. `?s` is the session's id.
    pub condition: String,
    /// Whether the condition restricts the key itself, so that the primary key finds the
    /// rows. Otherwise another index finds them.
    pub is_range: bool,
}

row! {
    /// The last row of a page. `key`: the columns of the key.
    pub struct PageEnd(key: &str) {
        pub rows: i64 = "position",
        pub bytes: i64 = "total",
        pub key: Vec<SqlValue> = key,
    }
}

/// The rows of one page, as SQL on rows `t`: after the end of the last page, up to the end
/// of this one.
pub struct PageRange {
    pub condition: String,
    pub order: String,
    pub params: Vec<SqlValue>,
}

impl TableRows<'_> {
    /// Finds the end of the next page, and subtracts the page from `capacity`. `None`: the
    /// table has no more rows.
    pub fn next_page(
        &self,
        db: &dyn Database,
        after: &[SqlValue],
        capacity: &mut PageBudget,
    ) -> Result<Option<(PageEnd, PageRange)>> {
        let Some(end) = self.find_end(db, after, capacity)? else {
            return Ok(None);
        };
        capacity.rows -= end.rows;
        capacity.bytes -= end.bytes;
        let order = self.order();
        let (range, mut params) = self.rows_after(after);
        let bounds: Vec<String> = (0..end.key.len())
            .map(|index| format!("?{}", params.len() + index + 1))
            .collect();
        params.extend(end.key.iter().cloned());
        let condition = format!("{range} AND ({order}) <= ({})", bounds.join(", "));
        let range = PageRange {
            condition,
            order,
            params,
        };
        Ok(Some((end, range)))
    }

    fn find_end(
        &self,
        db: &dyn Database,
        after: &[SqlValue],
        capacity: &PageBudget,
    ) -> Result<Option<PageEnd>> {
        let (key, order) = (self.key.join(", "), self.order());
        let (range, mut params) = self.rows_after(after);
        let [rows, bytes] = [params.len() + 1, params.len() + 2];
        params.extend([capacity.rows.into(), capacity.bytes.into()]);
        let sql = format!(
            "SELECT {columns}
               FROM (SELECT {key}, row_number() OVER (ORDER BY {key}) AS position,
                            sum(bytes) OVER (ORDER BY {key}) AS total
                       FROM (SELECT {key}, {length} AS bytes
                               FROM {name} AS t
                              WHERE {range}
                              ORDER BY {order}
                              LIMIT ?{rows}))
              WHERE total <= ?{bytes}
                 OR position = 1
              ORDER BY position DESC
              LIMIT 1",
            columns = PageEnd::columns(&key),
            length = self.length,
            name = self.name,
        );
        find(db, &sql, &params)
    }

    /// SQL: the key that orders the rows. For one session, an index finds its rows, and the
    /// plus prevents SQLite from scanning all rows by rowid instead.
    fn order(&self) -> String {
        match (&self.only, self.key) {
            (
                Some(OwnRows {
                    is_range: false, ..
                }),
                [number],
            ) => format!("+t.{number}"),
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
        if let Some(own) = &self.only {
            params.push(own.session_id.as_str().into());
            let session = format!("?{}", params.len());
            range.push_str(&format!(" AND {}", own.condition.replace("?s", &session)));
        }
        (range, params)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_round_trips_and_other_text_is_refused() {
        let columns = |table: usize| (table < 12).then_some(2);
        let cursor = PageCursor {
            table: 0,
            after: vec!["s".into(), SqlValue::Integer(7)],
        };
        assert_eq!(PageCursor::decode(&cursor.encode(), columns), Some(cursor));
        for text in ["", "x", "W10", "WzAsWzFdXQ", "Wzk5LFtdXQ"] {
            assert_eq!(PageCursor::decode(text, columns), None, "{text}");
        }
    }
}
