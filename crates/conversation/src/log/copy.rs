//! Copies a range of a session's log into another session: the events, which get new
//! numbers, and their slices.

use super::{slices, write};
use base::database::{Database, SqlValue};
use base::error::Result;
use base::ids::Id;

/// The events to copy, and the session that they are copied to.
pub struct Stretch<'a> {
    pub original_id: &'a Id,
    /// Both ends are included.
    pub from_seq: i64,
    pub to_seq: i64,
    pub id: &'a Id,
    /// The first copied event gets the number after this one.
    pub after_seq: i64,
}

impl Stretch<'_> {
    fn params(&self) -> [SqlValue; 5] {
        [
            self.original_id.as_str().into(),
            self.id.as_str().into(),
            self.from_seq.into(),
            self.to_seq.into(),
            self.after_seq.into(),
        ]
    }

    /// Copies the events into a linear log, in which no branch splits a run. A copy has the
    /// age of its original, so that a fork doesn't extend retention. An id whose embedded
    /// number no longer matches its event is added to the id index. Must run in a
    /// transaction.
    pub fn copy_rows(&self, db: &dyn Database) -> Result<()> {
        let sql = format!(
            "{INSERT}
             SELECT ?2, new_seq, id,
                    NOT (substr(id, 1, length(new_seq) + 2) = 'e' || new_seq || '-'
                         AND octet_length(id) = length(new_seq) + 18),
                    new_seq - 1, parent_id, 0, action, content, tool, metadata, message,
                    message_dated, sliced_bytes, created_at, written_at, media,
                    iif(instr(note, '\"questions\":') AND json_type(note, '$.questions') = 'object',
                        json_set(note, '$.questions',
                                 json((SELECT json_group_object(asked.key, json(json_remove(asked.value, '$.open')))
                                         FROM json_each(note, '$.questions') AS asked))),
                        note),
                    NULL, 0,
                    path_messages, path_tokens,
                    more_messages - iif(path_messages IS NULL, 0, splits_run), more_tokens
               FROM (SELECT e.*, CAST(?5 AS INTEGER) + row_number() OVER (ORDER BY e.seq) AS new_seq
                       FROM cf_agents_events AS e
                      WHERE e.session_id = ?1
                        AND e.seq BETWEEN ?3 AND ?4)",
            INSERT = write::INSERT
        );
        db.run(&sql, &self.params())
    }

    /// Copies the slices, in the same transaction as their rows.
    pub fn copy_slices(&self, db: &dyn Database) -> Result<()> {
        let sql = format!(
            "{INSERT}
             SELECT ?2, numbered.new_seq, slice.field, slice.part, slice.text
               FROM (SELECT e.seq, e.sliced_bytes,
                            CAST(?5 AS INTEGER) + row_number() OVER (ORDER BY e.seq) AS new_seq
                       FROM cf_agents_events AS e
                      WHERE e.session_id = ?1
                        AND e.seq BETWEEN ?3 AND ?4) AS numbered
              CROSS JOIN cf_agents_slices AS slice
                 ON slice.session_id = ?1
                AND slice.seq = numbered.seq
              WHERE numbered.sliced_bytes > 0",
            INSERT = slices::INSERT
        );
        db.run(&sql, &self.params())
    }
}

/// Records up to which event a session is a copy, and that nothing is learned from these
/// events. Must run in a transaction.
pub fn mark_copied(db: &dyn Database, id: &Id, seq: i64) -> Result<()> {
    db.run(
        "UPDATE cf_agents_sessions
            SET copied_seq = ?2,
                learned_seq = ?2
          WHERE id = ?1",
        &[id.as_str().into(), seq.into()],
    )
}

/// Copies the original's compaction settings, but not its past attempts and usage.
pub fn copy_settings(db: &dyn Database, original_id: &Id, id: &Id) -> Result<()> {
    db.run(
        "UPDATE cf_agents_sessions
            SET compaction = original.settings
           FROM (SELECT json_object('settings', compaction -> '$.settings') AS settings
                   FROM cf_agents_sessions
                  WHERE id = ?1
                    AND json_valid(compaction)
                    AND compaction ->> '$.settings' <> '{}') AS original
          WHERE id = ?2",
        &[original_id.as_str().into(), id.as_str().into()],
    )
}

/// Copies the original's retention rules. A pin applies to one session and is not copied.
pub fn copy_retention(db: &dyn Database, original_id: &Id, id: &Id) -> Result<()> {
    db.run(
        "UPDATE cf_agents_sessions
            SET retention = original.retention
           FROM (SELECT retention
                   FROM cf_agents_sessions
                  WHERE id = ?1
                    AND retention IS NOT NULL) AS original
          WHERE id = ?2",
        &[original_id.as_str().into(), id.as_str().into()],
    )
}
