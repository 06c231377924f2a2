//! Replaces the content of a stored event: its bodies, or its note. Its position in the tree stays.

use super::media;
use super::row_draft::{NewRow, RowDraft};
use super::slices::{delete_slices, write_slices};
use super::tokens;
use crate::index;
use crate::tables::EVENTS;
use base::database::{Database, SqlValue};
use base::error::Result;
use base::ids::Id;
use base::json;
use store::erasing::{ErasingDatabase, Overwrite};

/// Replaces the bodies of a stored event. `media`: where media was cut out of its old message. Part
/// of a transaction. A caller that turns an event of a run into a message must also update the
/// event's children and its siblings (`boundary.rs`, `totals.rs`).
pub fn rewrite_bodies(
    db: &dyn Database,
    session_id: &Id,
    new: &NewRow<'_>,
    media: Option<&str>,
) -> Result<()> {
    let row = &new.columns;
    delete_slices(db, session_id, &[row.seq])?;
    db.run(
        "UPDATE cf_agents_events AS e
            SET action = ?3,
                content = ?4,
                tool = ?5,
                metadata = ?6,
                message = ?7,
                message_dated = ?8,
                sliced_bytes = ?9,
                created_at = ?10,
                media = ?11,
                note = ?12,
                path_tokens = iif(e.path_tokens IS NULL, NULL,
                                  iif(above.is_newest, above.path_tokens + ?13, e.path_tokens)),
                more_tokens = iif(e.path_tokens IS NULL OR above.is_newest, 0,
                                  above.path_tokens + ?13 - e.path_tokens)
           FROM (SELECT iif(own.parent_seq = 0, 0,
                            (SELECT parent.path_tokens
                               FROM cf_agents_events AS parent
                              WHERE parent.session_id = own.session_id
                                AND parent.seq = own.parent_seq)) AS path_tokens,
                        NOT EXISTS (SELECT 1
                                      FROM cf_agents_events AS later
                                     WHERE later.session_id = own.session_id
                                       AND later.seq > own.seq) AS is_newest
                   FROM cf_agents_events AS own
                  WHERE own.session_id = +?1
                    AND own.seq = +?2) AS above
          WHERE e.session_id = ?1
            AND e.seq = ?2",
        &[
            session_id.as_str().into(),
            row.seq.into(),
            row.action.name().into(),
            row.content.into(),
            row.tool.into(),
            row.metadata.into(),
            row.message.into(),
            u32::from(row.message_dated).into(),
            (new.sliced_bytes() as i64).into(),
            row.created_at.into(),
            row.media.into(),
            row.note.into(),
            row.tokens.into(),
        ],
    )?;
    write_slices(db, session_id, row.seq, &new.sliced)?;
    replace_media(db, session_id, row, media)?;
    if let Some(index) = index::find_index(db, session_id.as_str())? {
        index::remove(db, &index, &[row.seq])?;
        if index.covers(row.seq) {
            let mut writer = index::IndexWriter::new(db);
            writer.add(index.number, row.seq, &new.event_text())?;
            writer.flush()?;
        }
    }
    Ok(())
}

fn replace_media(
    db: &dyn Database,
    session_id: &Id,
    row: &RowDraft<'_>,
    before: Option<&str>,
) -> Result<()> {
    if before == row.media {
        return Ok(());
    }
    // Write the new media first, so that unchanged media is not deleted and rewritten.
    media::write(db, session_id, row.seq, row.payloads)?;
    let still_used: Vec<&str> = row
        .payloads
        .iter()
        .map(|payload| payload.hash.as_str())
        .collect();
    media::forget(
        db,
        session_id,
        before.map(|positions| (row.seq, positions)).as_slice(),
        &still_used,
    )
}

/// Erases the texts of these results, and replaces each with a sentence. Part of a transaction.
pub fn erase_texts(
    db: &ErasingDatabase<'_>,
    session_id: &Id,
    seqs: &[i64],
    sentence: &str,
) -> Result<()> {
    let [session, list] = [
        SqlValue::from(session_id.as_str()),
        SqlValue::Text(json::encode(&seqs)?),
    ];
    db.overwrite(&Overwrite {
        table: EVENTS,
        columns: &["content"],
        condition: "session_id = ?1
                    AND seq IN (SELECT value FROM json_each(?2))",
        params: &[session.clone(), list.clone()],
    })?;
    delete_slices(db, session_id, seqs)?;
    db.run(
        "UPDATE cf_agents_events AS e
            SET content = ?3,
                sliced_bytes = 0,
                note = iif(json_valid(note), json_remove(note, '$.isJson'), note),
                more_tokens = iif(e.path_tokens IS NULL, 0,
                                  iif(e.parent_seq = 0, 0,
                                      (SELECT parent.path_tokens
                                         FROM cf_agents_events AS parent
                                        WHERE parent.session_id = e.session_id
                                          AND parent.seq = e.parent_seq))
                                  + ?4 - e.path_tokens)
          WHERE session_id = ?1
            AND seq IN (SELECT value FROM json_each(?2))",
        &[
            session,
            list,
            sentence.into(),
            tokens::of_result(sentence).into(),
        ],
    )?;
    match index::find_index(db, session_id.as_str())? {
        Some(index) => index::remove(db, &index, seqs),
        None => Ok(()),
    }
}

/// Replaces an event's note. Part of a transaction.
pub fn rewrite_note(
    db: &dyn Database,
    session_id: &Id,
    seq: i64,
    note: Option<&str>,
) -> Result<()> {
    db.run(
        "UPDATE cf_agents_events
            SET note = ?3
          WHERE session_id = ?1
            AND seq = ?2",
        &[session_id.as_str().into(), seq.into(), note.into()],
    )
}
