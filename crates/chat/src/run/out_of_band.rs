//! Out-of-band tool results: results that arrive while the turn that made the call is still
//! running. Each is stored before its socket receives anything more. Once the turn is over,
//! one transaction deletes the result and writes it into the log. So an eviction in between
//! neither loses a result nor applies it twice.
//!
//! The same table stores a turn's long outputs, under negative numbers: see
//! `whole_outputs.rs`. If a turn leaves one behind, it is not a result, and is dropped like
//! an unreadable one.

use base::budget::MAX_ANSWER_BYTES;
use base::columns::{find, load};
use base::database::{Database, Delete, atomically};
use base::error::{Error, Result};
use base::ids::Id;
use base::json;
use base::{row, sql};
use conversation::log::slices::cut;
use conversation::session::last_turns::load_without_turn;

use crate::run::running_turns::ClientReply;
use crate::tables::EARLY_ANSWERS;
use crate::turn::MAX_CALLS;

/// A result that waits to be written into the log.
pub struct OutOfBandResult {
    pub number: i64,
    /// `None`: the stored result can't be read.
    pub reply: Option<ClientReply>,
}

row! {
    /// How much a session has stored of early answers. `?2`: a call's id.
    #[derive(Default)]
    struct StoredResults {
        calls: i64 = "count(DISTINCT number)",
        bytes: i64 = "coalesce(sum(octet_length(text)), 0)",
        /// The highest number; 0: there is no answer.
        newest: i64 = "coalesce(max(number), 0)",
        /// The rows of the call's answer.
        of_call: i64 = "coalesce(sum(tool_call_id = ?2), 0)",
    }
}

/// Stores a result until the turn ends. Only the first result of a call counts, because a
/// client that lost its socket sends it again.
pub fn insert(db: &dyn Database, session_id: &Id, reply: &ClientReply) -> Result<()> {
    let text = json::encode(reply)?;
    let call_id = reply.answer.tool_call_id();
    atomically(db, || {
        let stored: Option<StoredResults> = find(
            db,
            sql!(
                "SELECT ",
                StoredResults::COLUMNS,
                " FROM cf_agents_early_answers
                  WHERE session_id = ?1
                    AND number > 0"
            ),
            &[session_id.as_str().into(), call_id.into()],
        )?;
        let StoredResults {
            calls,
            bytes,
            newest,
            of_call,
        } = stored.unwrap_or_default();
        if of_call > 0 {
            return Ok(());
        }
        if calls >= MAX_CALLS as i64 {
            return Err(Error::invalid(
                "toolCallId",
                format!(
                    "More than {MAX_CALLS} calls were answered during the turn. Send this answer \
                     again when the turn has ended."
                ),
            ));
        }
        let total = usize::try_from(bytes)
            .unwrap_or(usize::MAX)
            .saturating_add(text.len());
        if total > MAX_ANSWER_BYTES {
            let what = "The size of the answers received during the turn (send this answer again \
                        when the turn has ended)";
            return Err(Error::payload_too_large(what, MAX_ANSWER_BYTES, total));
        }
        insert_parts(db, session_id, newest + 1, call_id, &text)
    })
}

/// Stores a text under a number, in as many rows as it needs.
pub fn insert_parts(
    db: &dyn Database,
    session_id: &Id,
    number: i64,
    call_id: &str,
    text: &str,
) -> Result<()> {
    for (part, piece) in cut(text).into_iter().enumerate() {
        db.run(
            "INSERT INTO cf_agents_early_answers (session_id, number, part, tool_call_id, text)
             VALUES (?1, ?2, ?3, ?4, ?5)",
            &[
                session_id.as_str().into(),
                number.into(),
                (part as i64 + 1).into(),
                call_id.into(),
                piece.into(),
            ],
        )?;
    }
    Ok(())
}

/// The oldest stored result of the session.
pub fn find_oldest(db: &dyn Database, session_id: &Id) -> Result<Option<OutOfBandResult>> {
    let parts: Vec<(i64, String)> = load(
        db,
        "SELECT number, text
           FROM cf_agents_early_answers
          WHERE session_id = ?1
            AND number = (SELECT min(number)
                            FROM cf_agents_early_answers
                           WHERE session_id = ?1)
          ORDER BY part",
        &[session_id.as_str().into()],
    )?;
    let Some((number, _)) = parts.first() else {
        return Ok(None);
    };
    let reply: String = parts.iter().map(|(_, text)| text.as_str()).collect();
    Ok(Some(OutOfBandResult {
        number: *number,
        reply: json::decode(&reply).ok(),
    }))
}

/// Deletes a result. Must run in the transaction that applies it.
pub fn forget(db: &dyn Database, session_id: &Id, number: i64) -> Result<()> {
    let row = [session_id.as_str().into(), number.into()];
    Delete::from(EARLY_ANSWERS, "session_id = ?1 AND number = ?2", &row).run(db)?;
    Ok(())
}

/// Sessions with remaining results, because the object was evicted after their turn ended.
pub fn load_sessions_left(db: &dyn Database) -> Result<Vec<Id>> {
    load_without_turn(db, "cf_agents_early_answers")
}
