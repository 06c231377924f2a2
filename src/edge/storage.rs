//! The object's own SQLite behind the [`Database`] trait.
//!
//! This module binds the storage itself. The worker crate does not bind
//! `transactionSync`, and reads cursors through calls that can't report an error.

use std::cell::{Cell, RefCell};

use js_sys::{Array, JSON, JsString, Uint8Array};
use wasm_bindgen::prelude::*;

use crate::base::database::{Database, Row, SqlText, SqlValue, TextAndRow};
use crate::base::error::{Error, Result};
use crate::base::rows::parse_rows;

#[wasm_bindgen]
extern "C" {
    pub type Storage;

    #[wasm_bindgen(method, getter)]
    fn sql(this: &Storage) -> Sql;

    #[wasm_bindgen(method, catch, js_name = transactionSync)]
    fn transaction_sync(
        this: &Storage,
        work: &mut dyn FnMut() -> Result<(), JsValue>,
    ) -> Result<(), JsValue>;

    #[wasm_bindgen(method, catch, js_name = deleteAll)]
    async fn delete_all(this: &Storage) -> Result<JsValue, JsValue>;

    #[wasm_bindgen(method, catch, js_name = setAlarm)]
    async fn set_alarm(this: &Storage, at_ms: f64) -> Result<JsValue, JsValue>;

    #[wasm_bindgen(method, catch)]
    async fn sync(this: &Storage) -> Result<JsValue, JsValue>;

    type Sql;

    #[wasm_bindgen(method, catch, variadic)]
    fn exec(this: &Sql, query: &str, params: Array) -> Result<Cursor, JsValue>;

    #[wasm_bindgen(method, getter, js_name = databaseSize)]
    fn database_size(this: &Sql) -> f64;

    type Cursor;

    #[wasm_bindgen(method, catch)]
    fn raw(this: &Cursor) -> Result<RawCursor, JsValue>;

    #[wasm_bindgen(method, getter, js_name = rowsRead)]
    fn rows_read(this: &Cursor) -> f64;

    #[wasm_bindgen(method, getter, js_name = rowsWritten)]
    fn rows_written(this: &Cursor) -> f64;

    /// A cursor that yields rows as arrays, so that no column names are copied.
    type RawCursor;

    #[wasm_bindgen(method, catch, js_name = toArray)]
    fn to_array(this: &RawCursor) -> Result<Array, JsValue>;

    type TextEncoder;

    #[wasm_bindgen(constructor)]
    fn new() -> TextEncoder;

    #[wasm_bindgen(method)]
    fn encode(this: &TextEncoder, text: &JsString) -> Uint8Array;
}

thread_local! {
    static ENCODER: TextEncoder = TextEncoder::new();
}

/// What a request has cost so far.
#[derive(Default)]
pub struct Meter {
    pub rows_read: Cell<f64>,
    pub rows_written: Cell<f64>,
}

/// One request's view of the object's storage.
pub struct Sqlite<'a> {
    storage: &'a Storage,
    sql: Sql,
    pub meter: Meter,
}

impl<'a> Sqlite<'a> {
    pub fn new(storage: &'a Storage) -> Self {
        Self {
            storage,
            sql: storage.sql(),
            meter: Meter::default(),
        }
    }

    /// Runs a statement to its end and returns its rows as arrays.
    fn exec(&self, sql: &str, params: &[SqlValue]) -> Result<Array> {
        let cursor = self
            .sql
            .exec(sql, params.iter().map(to_js).collect())
            .map_err(failed)?;
        let rows = cursor
            .raw()
            .and_then(|rows| rows.to_array())
            .map_err(failed);
        let Meter {
            rows_read,
            rows_written,
        } = &self.meter;
        rows_read.set(rows_read.get() + cursor.rows_read());
        rows_written.set(rows_written.get() + cursor.rows_written());
        rows
    }
}

/// Sets the object's alarm, in place of an alarm that was set before.
pub async fn wake_at(storage: &Storage, at_ms: i64) -> Result<()> {
    storage.set_alarm(at_ms as f64).await.map_err(failed)?;
    Ok(())
}

/// Waits until all writes so far are durable.
pub async fn settle(storage: &Storage) -> Result<()> {
    storage.sync().await.map_err(failed)?;
    Ok(())
}

/// Empties the object's storage, alarms included.
pub async fn empty(storage: &Storage) -> Result<()> {
    storage.delete_all().await.map_err(failed)?;
    Ok(())
}

impl Database for Sqlite<'_> {
    fn run(&self, sql: &str, params: &[SqlValue]) -> Result<()> {
        self.exec(sql, params).map(drop)
    }

    fn rows(&self, sql: &str, params: &[SqlValue]) -> Result<Vec<Row>> {
        let rows = self.exec(sql, params)?;
        if rows.length() >= MANY_ROWS
            && let Some(json) = find_json(&rows)
        {
            return parse_rows(&json);
        }
        let from_row =
            |row: JsValue| Row(row.unchecked_into::<Array>().iter().map(from_js).collect());
        Ok(rows.iter().map(from_row).collect())
    }

    fn find_text_and_row(&self, sql: &str, params: &[SqlValue]) -> Result<Option<TextAndRow>> {
        let first = self.exec(sql, params)?.get(0);
        if first.is_undefined() {
            return Ok(None);
        }
        let mut columns = first.unchecked_into::<Array>().into_iter();
        let text = columns
            .next()
            .and_then(|text| text.dyn_into::<JsString>().ok());
        Ok(Some((
            text.map(SqlText::Js),
            Row(columns.map(from_js).collect()),
        )))
    }

    fn size_bytes(&self) -> Result<i64> {
        Ok(self.sql.database_size() as i64)
    }

    fn transaction(&self, work: &mut dyn FnMut() -> Result<()>) -> Result<()> {
        let failure = RefCell::new(None);
        let outcome = self.storage.transaction_sync(&mut || {
            work().map_err(|error| {
                // The throw makes the engine roll back; the caller gets the
                // error that is kept here.
                failure.replace(Some(error));
                JsValue::from_str("rolled back")
            })
        });
        match (outcome, failure.into_inner()) {
            (Ok(()), None) => Ok(()),
            (_, Some(error)) => Err(error),
            (Err(thrown), None) => Err(failed(thrown)),
        }
    }
}

fn to_js(value: &SqlValue) -> JsValue {
    match value {
        SqlValue::Null => JsValue::NULL,
        SqlValue::Integer(value) => JsValue::from_f64(*value as f64),
        SqlValue::Real(value) => JsValue::from_f64(*value),
        SqlValue::Text(value) => JsValue::from_str(value),
    }
}

fn from_js(value: JsValue) -> SqlValue {
    if let Some(number) = value.as_f64() {
        return SqlValue::from_number(number);
    }
    value.as_string().map_or(SqlValue::Null, SqlValue::Text)
}

/// From this number of rows on, rows cross into wasm as one JSON text.
const MANY_ROWS: u32 = 4;

/// Rows whose JSON is longer cross cell by cell, so that they are not in memory once more.
const MAX_JSON_UNITS: u32 = 1 << 20;

/// The rows as JSON; `None`: the JSON would be long.
fn find_json(rows: &Array) -> Option<String> {
    let json = JSON::stringify(rows).ok()?;
    if json.length() > MAX_JSON_UNITS {
        return None;
    }
    // Encoding and one copy of bytes are faster than a copy unit by unit.
    let bytes = ENCODER.with(|encoder| encoder.encode(&json)).to_vec();
    String::from_utf8(bytes).ok()
}

fn failed(thrown: JsValue) -> Error {
    let message = js_sys::Reflect::get(&thrown, &JsValue::from_str("message"))
        .ok()
        .and_then(|message| message.as_string())
        .or_else(|| thrown.as_string());
    Error::storage(message.unwrap_or_default())
}
