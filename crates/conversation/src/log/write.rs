//! Writes rows into the log, with as few statements as possible, each within the engine's
//! limits.

use std::collections::BTreeMap;

use super::boundary;
use super::media;
use super::row_draft::NewRow;
use super::slices::write_slices;
use super::totals::{OwnShare, PathEnd, PathEnds};
use crate::index::{self, SessionIndex};
use base::database::{Database, MAX_LIST_BYTES, SqlValue, atomically};
use base::error::Result;
use base::ids::Id;

/// The head of the INSERT statements.
macro_rules! insert {
    () => {
        "
    INSERT INTO cf_agents_events
           (session_id, seq, id, id_indexed, parent_seq, parent_id, is_branch, action, content,
            tool, metadata, message, message_dated, sliced_bytes, created_at, written_at, media, note,
            ends_turn, splits_run, path_messages, path_tokens, more_messages, more_tokens)"
    };
}

pub(super) const INSERT: &str = insert!();

/// [`NewRow::values`].
macro_rules! values {
    () => {
        " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18,
              ?19, ?20, ?21, ?22, 0, 0)"
    };
}

/// [`NewRow::common_values`]. Ten parameters fewer save a sixth of the statement's time.
macro_rules! common_values {
    () => {
        " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, NULL, NULL, ?10, 0, 0, ?11, ?12, NULL, NULL,
              NULL, 0, ?13, ?14, 0, 0)"
    };
}

/// For a row whose id another event may have: the index of the ids finds out, so the id is not
/// looked up before.
macro_rules! unless_known {
    () => {
        " ON CONFLICT (session_id, id) WHERE id_indexed = 1 DO NOTHING"
    };
}

const INSERT_ONE: &str = concat!(insert!(), values!());
const INSERT_ONE_UNLESS_KNOWN: &str = concat!(insert!(), values!(), unless_known!());
const INSERT_COMMON: &str = concat!(insert!(), common_values!());
const INSERT_COMMON_UNLESS_KNOWN: &str = concat!(insert!(), common_values!(), unless_known!());

/// What [`write_rows`] did.
pub enum Written {
    /// All rows were written. The end of the path to the last row, if there are rows.
    All(Option<PathEnd>),
    /// Nothing was written: another event has the id of a row with
    /// [`is_id_unchecked`](super::row_draft::RowDraft::is_id_unchecked).
    IdIsKnown,
}

/// Writes all rows or none. `ends`: events that they may follow, as far as they were read already.
/// `index` is the session's state in the search index.
pub fn write_rows(
    db: &dyn Database,
    session_id: &Id,
    (mut rows, ends): (Vec<NewRow<'_>>, &[PathEnd]),
    index: Option<&SessionIndex>,
) -> Result<Written> {
    let positions: Vec<boundary::NewPosition> =
        rows.iter().filter_map(NewRow::run_position).collect();
    let splitting = boundary::find_splitting(db, session_id, &positions)?;
    for row in &mut rows {
        row.splits_run = splitting.contains(&row.columns.seq);
    }
    let last = add_up(db, session_id, &mut rows, ends)?;
    let branches = branches(&rows);
    let batches = batches(&rows);
    let are_written = match batches.as_slice() {
        [] => true,
        // A single statement is atomic without a transaction.
        [batch] if index.is_none() && branches.is_empty() && batch.iter().all(NewRow::is_whole) => {
            write_batch(db, session_id, batch)?
        }
        several => atomically(db, || {
            for batch in several {
                if !write_batch(db, session_id, batch)? {
                    return Ok(false);
                }
                for new in *batch {
                    let row = &new.columns;
                    write_slices(db, session_id, row.seq, &new.sliced)?;
                    media::write(db, session_id, row.seq, row.payloads)?;
                }
            }
            for (parent_seq, branch) in &branches {
                boundary::update_sibling_boundaries(
                    db,
                    session_id,
                    *parent_seq,
                    &branch.seqs,
                    branch.has_run_member,
                )?;
            }
            if let (Some(index), Some(first)) = (index, rows.first())
                && index.admit(db, first.columns.seq)?
            {
                let mut writer = index::IndexWriter::new(db);
                for row in &rows {
                    writer.add(index.number, row.columns.seq, &row.event_text())?;
                }
                writer.flush()?;
            }
            Ok(true)
        })?,
    };
    Ok(if are_written {
        Written::All(last)
    } else {
        Written::IdIsKnown
    })
}

/// Sets the totals of the paths to these rows. Returns the end of the last one.
fn add_up(
    db: &dyn Database,
    session_id: &Id,
    rows: &mut [NewRow<'_>],
    ends: &[PathEnd],
) -> Result<Option<PathEnd>> {
    let last_seq = rows.last().map(|row| row.columns.seq);
    let first_seq = rows.first().map_or(0, |row| row.columns.seq);
    let parents = rows.iter().map(|row| row.columns.parent_seq);
    let mut ends = PathEnds::load(
        db,
        session_id,
        ends,
        parents.filter(|parent_seq| *parent_seq < first_seq),
    )?;
    for new in rows {
        let row = &new.columns;
        let own = OwnShare {
            is_run_member: row.is_run_member(),
            splits_run: new.splits_run,
            tokens: row.tokens,
        };
        new.totals = ends.follow(row.parent_seq, row.seq, own);
    }
    Ok(last_seq.and_then(|seq| ends.find(seq)))
}

/// New branches below one event.
#[derive(Default)]
struct NewBranches {
    seqs: Vec<i64>,
    has_run_member: bool,
}

/// The events among these that start branches, by parent. Roots are excluded, because they
/// split nothing.
fn branches(rows: &[NewRow<'_>]) -> BTreeMap<i64, NewBranches> {
    let mut branches: BTreeMap<i64, NewBranches> = BTreeMap::new();
    for NewRow { columns: row, .. } in rows {
        if row.is_branch == 1 && row.parent_seq != 0 {
            let branch = branches.entry(row.parent_seq).or_default();
            branch.seqs.push(row.seq);
            branch.has_run_member |= row.is_run_member();
        }
    }
    branches
}

/// Splits rows into batches of one statement each. A batch's JSON stays below the engine's value
/// limit. A row too long for a batch is written by itself, column by column.
fn batches<'a, 'b>(rows: &'b [NewRow<'a>]) -> Vec<&'b [NewRow<'a>]> {
    let mut batches = Vec::new();
    let mut start = 0;
    let mut bytes = 0;
    for (index, row) in rows.iter().enumerate() {
        // Escaping takes at most six bytes per byte; names and numbers take 300 bytes.
        let size = row.bytes() * 6 + 300;
        if bytes + size > MAX_LIST_BYTES && index > start {
            batches.extend(rows.get(start..index));
            start = index;
            bytes = 0;
        }
        bytes += size;
    }
    batches.extend(rows.get(start..).filter(|rest| !rest.is_empty()));
    batches
}

/// Returns whether the rows were written. A row with an unchecked id is the only one of its append.
fn write_batch(db: &dyn Database, session_id: &Id, batch: &[NewRow<'_>]) -> Result<bool> {
    if let [row] = batch {
        return write_one(db, session_id, row);
    }
    if let Some((sql, params)) = as_values(session_id, batch) {
        db.run(&sql, &params)?;
        return Ok(true);
    }
    let lists: Vec<String> = batch.iter().map(|row| row.list(session_id)).collect();
    let json = format!("[{}]", lists.join(","));
    let sql = format!(
        "{INSERT}
         SELECT ?1, value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4,
                value ->> 5, value ->> 6, value ->> 7, value ->> 15, value ->> 16,
                value ->> 17, value ->> 8, value ->> 9, value ->> 10, value ->> 11,
                value ->> 18, value ->> 19, value ->> 20, value ->> 12, value ->> 13,
                value ->> 14, 0, 0
           FROM json_each(?2)"
    );
    db.run(&sql, &[session_id.as_str().into(), json.into()])?;
    Ok(true)
}

fn write_one(db: &dyn Database, session_id: &Id, row: &NewRow<'_>) -> Result<bool> {
    let (common, all);
    let (values, [sql, sql_unless_known]): (&[SqlValue], [&str; 2]) =
        match row.common_values(session_id) {
            Some(values) => {
                common = values;
                (&common, [INSERT_COMMON, INSERT_COMMON_UNLESS_KNOWN])
            }
            None => {
                all = row.values(session_id);
                (&all, [INSERT_ONE, INSERT_ONE_UNLESS_KNOWN])
            }
        };
    if row.columns.is_id_unchecked {
        return db.insert_unless_known(sql_unless_known, values);
    }
    db.run(sql, values)?;
    Ok(true)
}

/// The most rows that one statement takes as values. Each row count needs its own
/// statement, which the engine prepares once. A row takes up to seven parameters, and all
/// rows share eight, which stays below the engine's limit of a hundred.
const MAX_ROWS_AS_VALUES: usize = 13;

/// The statement for the fast path, and its parameters. `None`: a row doesn't qualify. Rows
/// qualify if they follow each other directly and share their common values. Binding values
/// takes the engine half the time of reading the rows from JSON.
fn as_values(session_id: &Id, batch: &[NewRow<'_>]) -> Option<(String, Vec<SqlValue>)> {
    let first = &batch.first()?.columns;
    let follows = batch.windows(2).all(|pair| match pair {
        [before, row] => row.columns.follows(&before.columns),
        _ => false,
    });
    let is_plain = |row: &NewRow<'_>| {
        row.has_no_rare_values() && row.columns.message.is_none() && row.columns.is_alike(first)
    };
    if batch.len() > MAX_ROWS_AS_VALUES || !follows || !batch.iter().all(is_plain) {
        return None;
    }
    let rows = || batch.iter().map(|row| &row.columns);
    let has_column = [
        rows().any(|row| row.tool.is_some()),
        rows().any(|row| row.metadata.is_some()),
    ];
    let per_row = 5 + has_column.iter().filter(|has_column| **has_column).count();
    let mut sql = format!("{INSERT} VALUES ");
    let mut params = vec![
        session_id.as_str().into(),
        first.seq.into(),
        u32::from(first.id_indexed).into(),
        first.parent_seq.into(),
        first.parent_id.into(),
        u32::from(first.is_branch).into(),
        first.created_at.into(),
        first.written_at.into(),
    ];
    for (index, new) in batch.iter().enumerate() {
        let row = &new.columns;
        let id = params.len() + 1;
        let parent = match index.checked_sub(1) {
            None => "?4, ?5, ?6".to_owned(),
            Some(before) => format!("?2 + {before}, ?{}, 0", id - per_row),
        };
        let mut next = id + 4;
        let columns = has_column.map(|has_column| {
            if !has_column {
                "NULL".to_owned()
            } else {
                next += 1;
                format!("?{next}")
            }
        });
        let comma = if index == 0 { "" } else { ", " };
        sql.push_str(&format!(
            "{comma}(?1, ?2 + {index}, ?{id}, ?3, {parent}, ?{}, ?{}, {}, NULL, 0, 0, ?7, ?8, NULL, NULL, NULL, 0, ?{}, ?{}, 0, 0)",
            id + 1,
            id + 2,
            columns.join(", "),
            id + 3,
            id + 4,
        ));
        params.extend([
            row.id.into(),
            row.action.name().into(),
            row.content.into(),
            new.totals.messages.into(),
            new.totals.tokens.into(),
        ]);
        let bodies = [row.tool, row.metadata].into_iter().zip(has_column);
        let present = bodies.filter(|(_, has_column)| *has_column);
        params.extend(present.map(|(body, _)| SqlValue::from(body)));
    }
    Some((sql, params))
}
