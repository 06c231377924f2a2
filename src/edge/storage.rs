//! The object's own SQLite behind the [`Database`] trait.
//!
//! This module binds the storage itself. The worker crate does not bind
//! `transactionSync`, and reads cursors through calls that can't report an error.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::rc::Rc;

use js_sys::{Array, ArrayBuffer, JSON, JsString, Uint8Array};
use wasm_bindgen::prelude::*;
use worker::worker_sys::DurableObjectState;

use super::text::{JsText, copy};
use base::database::{Database, Row, SqlText, SqlValue, TextAndRow, Writes};
use base::error::{Error, Result};
use base::json;
use base::read_cache::ReadCache;
use base::rows::{list_of, parse_rows};

#[wasm_bindgen]
extern "C" {
    #[derive(Clone)]
    type Storage;

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

    #[wasm_bindgen(method, getter, js_name = databaseSize)]
    fn database_size(this: &Sql) -> f64;
}

#[wasm_bindgen(module = "/src/edge/glue.js")]
extern "C" {
    /// A request's statements, and the rows that they have read and written so far.
    pub type Statements;

    #[wasm_bindgen(constructor)]
    fn new(storage: &Storage) -> Statements;

    #[wasm_bindgen(method, catch)]
    fn run(this: &Statements, query: &JsString, params: &str) -> Result<(), JsValue>;

    #[wasm_bindgen(method, catch, js_name = run)]
    fn run_with(this: &Statements, query: &JsString, params: Array) -> Result<(), JsValue>;

    #[wasm_bindgen(method, catch)]
    fn change(this: &Statements, query: &JsString, params: &str) -> Result<f64, JsValue>;

    #[wasm_bindgen(method, catch, js_name = change)]
    fn change_with(this: &Statements, query: &JsString, params: Array) -> Result<f64, JsValue>;

    #[wasm_bindgen(method, catch)]
    fn writes(this: &Statements, query: &JsString, params: &str) -> Result<bool, JsValue>;

    #[wasm_bindgen(method, catch, js_name = writes)]
    fn writes_with(this: &Statements, query: &JsString, params: Array) -> Result<bool, JsValue>;

    #[wasm_bindgen(method, catch)]
    fn rows(this: &Statements, query: &JsString, params: &str) -> Result<Array, JsValue>;

    #[wasm_bindgen(method, catch, js_name = rows)]
    fn rows_with(this: &Statements, query: &JsString, params: Array) -> Result<Array, JsValue>;

    #[wasm_bindgen(method, catch, js_name = shortRows)]
    fn short_rows(
        this: &Statements,
        query: &JsString,
        params: &str,
    ) -> Result<Option<String>, JsValue>;

    #[wasm_bindgen(method, catch, js_name = shortRows)]
    fn short_rows_with(
        this: &Statements,
        query: &JsString,
        params: Array,
    ) -> Result<Option<String>, JsValue>;

    #[wasm_bindgen(method, js_name = takeRows)]
    fn take_rows(this: &Statements) -> Array;

    #[wasm_bindgen(method, catch)]
    fn first(this: &Statements, query: &JsString, params: &str) -> Result<JsValue, JsValue>;

    #[wasm_bindgen(method, catch, js_name = first)]
    fn first_with(this: &Statements, query: &JsString, params: Array) -> Result<JsValue, JsValue>;

    #[wasm_bindgen(method)]
    fn others(this: &Statements) -> String;

    /// JSON of [`Writes`], as `[statements, is_incomplete, peak_bytes]`.
    #[wasm_bindgen(method, js_name = takeWrites)]
    fn take_writes(this: &Statements) -> String;

    #[wasm_bindgen(method)]
    fn narrow(this: &Statements);

    #[wasm_bindgen(method, getter, js_name = rowsRead)]
    pub fn rows_read(this: &Statements) -> f64;

    #[wasm_bindgen(method, getter, js_name = rowsWritten)]
    pub fn rows_written(this: &Statements) -> f64;
}

/// The most statements whose texts are cached as strings of JavaScript.
const MAX_CACHED_STATEMENTS: usize = 400;

/// Parameters with more bytes of text are passed one by one, so that they are not in memory once
/// more.
const MAX_PARAMS_BYTES: usize = 64 << 10;

thread_local! {
    /// The statements' texts. The engine finds a prepared statement by its string, and a
    /// string that it knows is found sooner than one that is created again.
    static STATEMENTS: RefCell<HashMap<String, JsString, BuildHasherDefault<TextHasher>>> =
        RefCell::default();
}

/// Hashes statements' texts, which no caller chooses, eight bytes at a time. The standard hasher
/// takes a hundredth of an append.
#[derive(Default)]
struct TextHasher(u64);

impl Hasher for TextHasher {
    fn write(&mut self, bytes: &[u8]) {
        let (words, rest) = bytes.as_chunks();
        for word in words {
            self.add(u64::from_le_bytes(*word));
        }
        for byte in rest {
            self.add(u64::from(*byte));
        }
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

impl TextHasher {
    fn add(&mut self, word: u64) {
        // The multiplier of Knuth's multiplicative hashing.
        self.0 = (self.0.rotate_left(26) ^ word).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    }
}

/// An object's storage, and what was read from it.
#[derive(Clone)]
pub struct ObjectStorage {
    storage: Storage,
    read_cache: Rc<ReadCache>,
}

impl ObjectStorage {
    pub fn of(state: &DurableObjectState) -> Result<Self, JsValue> {
        Ok(Self {
            storage: JsValue::from(state.storage()?).unchecked_into(),
            read_cache: Rc::default(),
        })
    }

    pub fn read_cache(&self) -> &ReadCache {
        &self.read_cache
    }

    pub fn as_js(&self) -> &JsValue {
        self.storage.as_ref()
    }
}

/// One request's view of the object's storage.
pub struct Sqlite<'a> {
    storage: &'a ObjectStorage,
    pub statements: Statements,
    bypasses_cache: Cell<bool>,
}

impl<'a> Sqlite<'a> {
    pub fn new(storage: &'a ObjectStorage) -> Self {
        Self {
            storage,
            statements: Statements::new(&storage.storage),
            bypasses_cache: Cell::new(false),
        }
    }

    /// For a caller who may see one session: neither the rows that are counted nor the time depend
    /// on others. Others' writes clear the read cache, so a cached read would reveal them.
    pub fn narrow(&self) {
        self.statements.narrow();
        self.bypass_cache();
    }

    /// Reads everything from the database.
    pub fn bypass_cache(&self) {
        self.bypasses_cache.set(true);
    }

    /// The text of a statement that is about to run.
    fn statement(&self, sql: &str) -> JsString {
        self.storage.read_cache.before_statement(sql);
        statement(sql)
    }

    /// Runs a statement to its end and returns its rows as arrays. Bytes have no JSON.
    fn exec(&self, sql: &str, params: &[SqlValue]) -> Result<Array> {
        let (statements, query) = (&self.statements, self.statement(sql));
        match find_list(params) {
            Some(list) => statements.rows(&query, &list),
            None => statements.rows_with(&query, params.iter().map(to_js).collect()),
        }
        .map_err(failed)
    }
}

fn statement(sql: &str) -> JsString {
    STATEMENTS.with_borrow_mut(|cache| {
        if let Some(text) = cache.get(sql) {
            return text.clone();
        }
        if cache.len() >= MAX_CACHED_STATEMENTS {
            cache.clear();
        }
        let text = JsString::from(sql);
        cache.insert(sql.to_owned(), text.clone());
        text
    })
}

/// The parameters as a JSON list; `None`: their texts are long.
fn find_list(params: &[SqlValue]) -> Option<String> {
    let bytes: usize = params
        .iter()
        .map(|param| match param {
            SqlValue::Text(text) => text.len(),
            _ => 0,
        })
        .sum();
    (bytes <= MAX_PARAMS_BYTES).then(|| list_of(params))
}

/// Sets the object's alarm, instead of an alarm that was set before.
pub async fn wake_at(storage: &ObjectStorage, at_ms: i64) -> Result<()> {
    let storage = &storage.storage;
    storage.set_alarm(at_ms as f64).await.map_err(failed)?;
    Ok(())
}

/// Waits until all writes so far are durable.
pub async fn settle(storage: &ObjectStorage) -> Result<()> {
    storage.storage.sync().await.map_err(failed)?;
    Ok(())
}

/// Empties the object's storage, alarms included.
pub async fn empty(storage: &ObjectStorage) -> Result<()> {
    let emptied = storage.storage.delete_all().await.map_err(failed);
    storage.read_cache.clear();
    emptied?;
    Ok(())
}

impl Database for Sqlite<'_> {
    fn run(&self, sql: &str, params: &[SqlValue]) -> Result<()> {
        let (statements, query) = (&self.statements, self.statement(sql));
        match find_list(params) {
            Some(list) => statements.run(&query, &list),
            None => statements.run_with(&query, params.iter().map(to_js).collect()),
        }
        .map_err(failed)
    }

    fn change(&self, sql: &str, params: &[SqlValue]) -> Result<i64> {
        let (statements, query) = (&self.statements, self.statement(sql));
        match find_list(params) {
            Some(list) => statements.change(&query, &list),
            None => statements.change_with(&query, params.iter().map(to_js).collect()),
        }
        .map(|count| count as i64)
        .map_err(failed)
    }

    fn insert_unless_known(&self, sql: &str, params: &[SqlValue]) -> Result<bool> {
        let (statements, query) = (&self.statements, self.statement(sql));
        match find_list(params) {
            Some(list) => statements.writes(&query, &list),
            None => statements.writes_with(&query, params.iter().map(to_js).collect()),
        }
        .map_err(failed)
    }

    fn rows(&self, sql: &str, params: &[SqlValue]) -> Result<Vec<Row>> {
        let (statements, query) = (&self.statements, self.statement(sql));
        let short = match find_list(params) {
            Some(list) => statements.short_rows(&query, &list),
            None => statements.short_rows_with(&query, params.iter().map(to_js).collect()),
        }
        .map_err(failed)?;
        if let Some(json) = short {
            return parse_rows(&json);
        }
        let rows = statements.take_rows();
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
        let (statements, query) = (&self.statements, self.statement(sql));
        let text = match find_list(params) {
            Some(list) => statements.first(&query, &list),
            None => statements.first_with(&query, params.iter().map(to_js).collect()),
        }
        .map_err(failed)?;
        if text.is_undefined() {
            return Ok(None);
        }
        let row = parse_rows(&statements.others())?.pop().unwrap_or_default();
        let text = match text.dyn_into::<JsString>() {
            Ok(text) => Some(SqlText::outside(JsText::String(text))),
            Err(other) => other
                .dyn_into::<ArrayBuffer>()
                .ok()
                .map(|bytes| SqlText::outside(JsText::Bytes(Uint8Array::new(&bytes)))),
        };
        Ok(Some((text, row)))
    }

    fn find_bytes_and_text(
        &self,
        sql: &str,
        params: &[SqlValue],
    ) -> Result<Option<(Vec<u8>, String)>> {
        let first = self.exec(sql, params)?.get(0);
        if first.is_undefined() {
            return Ok(None);
        }
        let columns = first.unchecked_into::<Array>();
        let bytes = columns.get(0).dyn_into::<ArrayBuffer>().ok();
        let text = columns.get(1).dyn_into::<JsString>().ok();
        Ok(bytes
            .map(|bytes| Uint8Array::new(&bytes).to_vec())
            .zip(text.as_ref().and_then(copy)))
    }

    fn read_cache(&self) -> Option<&ReadCache> {
        (!self.bypasses_cache.get()).then_some(&self.storage.read_cache)
    }

    fn size_bytes(&self) -> Result<i64> {
        Ok(self.storage.storage.sql().database_size() as i64)
    }

    fn take_writes(&self) -> Result<Writes> {
        let unread = |_| Error::storage("what was written can't be read");
        let (statements, is_incomplete, peak_bytes) =
            json::decode(&self.statements.take_writes()).map_err(unread)?;
        Ok(Writes {
            statements,
            is_incomplete,
            peak_bytes,
        })
    }

    fn transaction(&self, work: &mut dyn FnMut() -> Result<()>) -> Result<()> {
        let failure = RefCell::new(None);
        let ObjectStorage {
            storage,
            read_cache,
        } = self.storage;
        let outcome = read_cache.during_transaction(|| {
            storage.transaction_sync(&mut || {
                work().map_err(|error| {
                    // The throw makes the engine roll back; the caller receives the error that is
                    // stored here.
                    failure.replace(Some(error));
                    JsValue::from_str("rolled back")
                })
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

/// From this number of rows on, rows are passed to Wasm as the bytes of one JSON text. With fewer
/// rows, glue.js returns their JSON itself.
const MANY_ROWS: u32 = 4;

/// Rows whose JSON is longer are passed cell by cell, so that they are not in memory once more.
const MAX_JSON_UNITS: u32 = 1 << 20;

/// The rows as JSON; `None`: the JSON would be long.
fn find_json(rows: &Array) -> Option<String> {
    let json = JSON::stringify(rows).ok()?;
    if json.length() > MAX_JSON_UNITS {
        return None;
    }
    copy(&json)
}

fn failed(thrown: JsValue) -> Error {
    let message = js_sys::Reflect::get(&thrown, &JsValue::from_str("message"))
        .ok()
        .and_then(|message| message.as_string())
        .or_else(|| thrown.as_string());
    Error::storage(message.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_passed_as_one_list_unless_a_text_is_long() {
        let text = |bytes: usize| SqlValue::Text("x".repeat(bytes));
        let short = [SqlValue::Integer(1), SqlValue::Null, SqlValue::Real(0.5)];
        assert_eq!(find_list(&short).as_deref(), Some("[1,null,0.5]"));
        assert!(find_list(&[text(MAX_PARAMS_BYTES - 1), text(1)]).is_some());
        assert!(find_list(&[text(MAX_PARAMS_BYTES), text(1)]).is_none());
    }
}
