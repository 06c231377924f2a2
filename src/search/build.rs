//! Reading events for the index: all of them at the first search, a fork's when
//! it is made. Bite by bite, so that memory stays flat whatever the history.

use super::document::EventText;
use super::index::{Place, Writer, is_in_use, set_in_use};
use crate::database::{Database, atomically};
use crate::error::Result;
use crate::ids::Id;
use crate::messages::read::get_event_text;
use crate::messages::view::{BODY_BYTES, COLUMNS, EventRow};
use crate::tree::path::INLINE_BYTES;

/// Events of one bite. With bodies of at most [`INLINE_BYTES`] each, 8 MiB.
const BITE: i64 = 128;

/// Sessions whose rows are held at a time.
const SESSIONS_BITE: i64 = 500;

/// Builds the index, unless it is kept already.
pub fn ensure_index(db: &dyn Database) -> Result<()> {
    if is_in_use(db)? {
        return Ok(());
    }
    atomically(db, || {
        let mut last_number = 0;
        loop {
            let sql = "SELECT number, id
                         FROM cf_agents_sessions
                        WHERE number > ?1
                        ORDER BY number
                        LIMIT ?2";
            let rows = db.rows(sql, &[last_number.into(), SESSIONS_BITE.into()])?;
            for row in &rows {
                last_number = row.integer(0)?;
                let place = Place {
                    number: last_number,
                };
                let id = Id::parse(row.text(1)?.to_owned());
                if let Ok(id) = id {
                    add_session(db, &id, &place)?;
                }
            }
            if (rows.len() as i64) < SESSIONS_BITE {
                return set_in_use(db);
            }
        }
    })
}

/// Puts all of a session's events in.
pub fn add_session(db: &dyn Database, session_id: &Id, place: &Place) -> Result<()> {
    let sql = format!(
        "SELECT e.seq, e.parent_seq, e.is_branch, {COLUMNS},
                iif({BODY_BYTES} <= {INLINE_BYTES}, e.content, NULL),
                iif({BODY_BYTES} <= {INLINE_BYTES}, e.message, NULL),
                {BODY_BYTES}
           FROM cf_agents_events AS e
          WHERE e.session_id = ?1
            AND e.seq > ?2
          ORDER BY e.seq
          LIMIT ?3"
    );
    let mut writer = Writer::new(db);
    let mut last_seq = 0;
    loop {
        let rows = db.rows(
            &sql,
            &[session_id.as_str().into(), last_seq.into(), BITE.into()],
        )?;
        for row in &rows {
            last_seq = row.integer(0)?;
            let event = if row.integer(14)? > INLINE_BYTES as i64 {
                get_event_text(db, session_id, last_seq)?
            } else {
                EventRow::from_row(row)?
            };
            writer.add(place, last_seq, &event_text(&event))?;
        }
        if (rows.len() as i64) < BITE {
            return writer.flush();
        }
    }
}

pub fn event_text(event: &EventRow) -> EventText<'_> {
    EventText {
        action: &event.action,
        content: &event.content,
        tool: event.tool.as_deref(),
        metadata: event.metadata.as_deref(),
        message: event.message.as_deref(),
        created_at: event.created_at,
        session_name: None,
    }
}
