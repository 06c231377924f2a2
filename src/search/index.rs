//! The index's rows: putting events in and taking them out, each at a cost that
//! doesn't grow with the index. Nothing is done for an agent that never searched.

use serde::Serialize;

use serde_json::json;

use super::document::{Document, EventText, document};
use crate::database::{Database, MAX_LIST_BYTES, Value, find_row};
use crate::error::{Error, Result};
use crate::numbers::{self, BEYOND_PLACES, MAX_SEQ, has_place};

/// Bytes of one column of one row of the index.
const MAX_COLUMN_BYTES: usize = 700_000;

/// Rows of further parts of long texts are numbered from here.
const FIRST_PART: i64 = BEYOND_PLACES;

const KEY: &str = "search";

/// Whether the index is kept: one row read.
pub fn is_in_use(db: &dyn Database) -> Result<bool> {
    let sql = "SELECT 1 FROM cf_agents_config WHERE key = ?1";
    Ok(find_row(db, sql, &[KEY.into()])?.is_some())
}

/// How far the index is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum IndexState {
    /// Nobody has searched: there is none.
    None,
    /// It holds every event.
    Complete,
}

pub fn find_state(db: &dyn Database) -> Result<IndexState> {
    Ok(match is_in_use(db)? {
        true => IndexState::Complete,
        false => IndexState::None,
    })
}

pub fn set_in_use(db: &dyn Database) -> Result<()> {
    db.run(
        "INSERT INTO cf_agents_config (key, value) VALUES (?1, 'true')
             ON CONFLICT (key) DO NOTHING",
        &[KEY.into()],
    )
}

/// A session as the index knows it.
pub struct Place {
    pub number: i64,
}

/// `None`: the agent has never searched, or there is no such session.
pub fn find_place(db: &dyn Database, session_id: &str) -> Result<Option<Place>> {
    if !is_in_use(db)? {
        return Ok(None);
    }
    let sql = "SELECT number FROM cf_agents_sessions WHERE id = ?1";
    let row = find_row(db, sql, &[session_id.into()])?;
    row.map(|row| {
        Ok(Place {
            number: row.integer(0)?,
        })
    })
    .transpose()
}

/// Events on their way into the index, a statement's worth at a time.
pub struct Writer<'a> {
    db: &'a dyn Database,
    rows: Vec<serde_json::Value>,
    bytes: usize,
}

impl<'a> Writer<'a> {
    pub fn new(db: &'a dyn Database) -> Self {
        Self {
            db,
            rows: Vec::new(),
            bytes: 0,
        }
    }

    pub fn add(&mut self, place: &Place, seq: i64, event: &EventText<'_>) -> Result<()> {
        if !has_place(place.number, seq) {
            return Ok(());
        }
        let Document {
            stems,
            words,
            about,
        } = document(event);
        if stems.len().max(words.len()) <= MAX_COLUMN_BYTES {
            return self.push(numbers::place(place.number, seq), &stems, &words, &about);
        }
        // By the words' count, so that both columns of a part speak of the same text.
        let stems: Vec<&str> = stems.split(' ').collect();
        let words: Vec<&str> = words.split(' ').collect();
        // A word has at most 64 characters of 4 bytes, and a space.
        let words_a_part = MAX_COLUMN_BYTES / 257;
        for (part, (stems, words)) in stems
            .chunks(words_a_part)
            .zip(words.chunks(words_a_part))
            .enumerate()
        {
            let id = match part {
                0 => numbers::place(place.number, seq),
                _ => self.new_part(place.number, seq)?,
            };
            self.push(id, &stems.join(" "), &words.join(" "), &about)?;
        }
        Ok(())
    }

    fn new_part(&self, number: i64, seq: i64) -> Result<i64> {
        let sql = "INSERT INTO cf_agents_search_parts (rowid_, number, seq)
                   SELECT max(coalesce(max(rowid_) + 1, 0), ?1), ?2, ?3
                     FROM cf_agents_search_parts
                RETURNING rowid_";
        let row = find_row(
            self.db,
            sql,
            &[FIRST_PART.into(), number.into(), seq.into()],
        )?;
        row.ok_or_else(|| Error::storage("a part without a number"))?
            .integer(0)
    }

    fn push(&mut self, rowid: i64, stems: &str, words: &str, about: &str) -> Result<()> {
        let bytes = stems.len() + words.len() + about.len() + 64;
        if self.bytes + bytes > MAX_LIST_BYTES {
            self.flush()?;
        }
        self.bytes += bytes;
        self.rows.push(json!([rowid, stems, words, about]));
        Ok(())
    }

    pub fn flush(&mut self) -> Result<()> {
        if self.rows.is_empty() {
            return Ok(());
        }
        self.bytes = 0;
        let rows = Value::Text(serde_json::Value::from(std::mem::take(&mut self.rows)).to_string());
        self.db.run(
            "INSERT INTO cf_agents_search (rowid, stems, words, about)
             SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3
               FROM json_each(?1)",
            &[rows],
        )
    }
}

/// Takes events of one session out, and their vectors: these are made by searches,
/// so where there is no index there are none. Part of the transaction that deletes
/// or changes the events.
pub fn remove(db: &dyn Database, place: &Place, seqs: &[i64]) -> Result<()> {
    let numbered = seqs.iter().filter(|seq| has_place(place.number, **seq));
    let rowids: Vec<i64> = numbered
        .map(|seq| numbers::place(place.number, *seq))
        .collect();
    let rowids = [Value::Text(json!(rowids).to_string())];
    for (table, column) in [
        ("cf_agents_search", "rowid"),
        ("cf_agents_event_vectors", "place"),
    ] {
        let sql = format!(
            "DELETE FROM {table}
              WHERE {column} IN (SELECT value FROM json_each(?1))"
        );
        db.run(&sql, &rowids)?;
    }
    let params: [Value; 2] = [place.number.into(), Value::Text(json!(seqs).to_string())];
    db.run(
        "DELETE FROM cf_agents_search
          WHERE rowid IN (SELECT rowid_
                            FROM cf_agents_search_parts
                           WHERE number = ?1
                             AND seq IN (SELECT value FROM json_each(?2)))",
        &params,
    )?;
    db.run(
        "DELETE FROM cf_agents_search_parts
          WHERE number = ?1
            AND seq IN (SELECT value FROM json_each(?2))",
        &params,
    )
}

/// Takes a whole session out, while its events are still there.
pub fn remove_session(db: &dyn Database, session_id: &str) -> Result<()> {
    let Some(place) = find_place(db, session_id)? else {
        return Ok(());
    };
    if !has_place(place.number, 0) {
        return Ok(());
    }
    db.run(
        "DELETE FROM cf_agents_event_vectors
          WHERE place BETWEEN ?1 AND ?2",
        &[
            numbers::place(place.number, 0).into(),
            numbers::place(place.number, MAX_SEQ).into(),
        ],
    )?;
    let sql = format!(
        "DELETE FROM cf_agents_search
          WHERE rowid IN (SELECT {place}
                            FROM cf_agents_sessions AS s
                            JOIN cf_agents_events AS e ON e.session_id = s.id
                           WHERE s.id = ?1
                             AND e.seq <= {MAX_SEQ})",
        place = numbers::place_sql("s.number", "e.seq")
    );
    db.run(&sql, &[session_id.into()])?;
    db.run(
        "DELETE FROM cf_agents_search
          WHERE rowid IN (SELECT rowid_ FROM cf_agents_search_parts WHERE number = ?1)",
        &[place.number.into()],
    )?;
    db.run(
        "DELETE FROM cf_agents_search_parts WHERE number = ?1",
        &[place.number.into()],
    )
}
