//! Writes the end of a turn into the log.

use crate::record::ended::{EndedRecord, FactsWithRecord};
use crate::record::{RecordedFailure, TurnFinish, TurnRecord};
use crate::request::api_turn::ApiTurn;
use crate::run::callbacks;
use crate::run::whole_outputs::{forget, load};
use crate::turn::Turn;
use crate::turn::answer_position::{find_answer_position, question_deleted};
use crate::turn::report::TurnReport;
use base::database::{Database, atomically};
use base::error::{Code, Error, Result};
use base::host::Host;
use base::ids::Id;
use base::json;
use conversation::log::append::{AppendOutcome, Parent, append};
use conversation::log::note::find_note;
use conversation::messages::change::change_note;
use conversation::session::last_turns::{LastTurn, end_open_turn, find_open_turn};
use conversation::session::learn_due::{NEVER_MS, PassTrigger, due_at, mark_due};
use conversation::session::path_digests;
use conversation::session::spending::TurnSpending;
use conversation::session::stored_turns::{self, StoredTurn, StoredTurnKind};
use conversation::session::usage_days::{DayUsage, count_for_agent};
use memory::Memory;
use store::config::load_config;

/// Writes the assistant's events, the usage and the end of the turn in one transaction. If
/// the answer's position in the log no longer exists, the turn ends without it. Returns
/// whether a callback about the turn's end must be sent.
pub fn write(
    memory: &Memory<'_>,
    turn: &Turn,
    report: &TurnReport,
    is_cancelled: bool,
) -> Result<bool> {
    let outcome = atomically(memory.db, || write_all(memory, turn, report));
    match outcome {
        Err(error) if matches!(error.code, Code::MessageNotFound | Code::SessionNotFound) => {
            let without = if is_cancelled {
                report.clone()
            } else {
                TurnReport::of_failure(turn, &question_deleted())
            };
            let has_callback = atomically(memory.db, || {
                let (db, host) = (memory.db, memory.host);
                let Some(open) = find_row(db, turn)? else {
                    // The session was deleted. The agent spent the tokens anyway.
                    let spent = DayUsage::of_turn(&report.spent, host.now_ms());
                    count_for_agent(db, &[spent])?;
                    return Ok(false);
                };
                end_open_turn(db, host, &turn.session_id, &open, report.spent.clone())?;
                forget(db, turn)?;
                store_record(memory, turn, &without, (host.now_ms(), None))?;
                callbacks::insert(memory, turn, &turn.message_id, report)
            })?;
            // Whoever canceled the turn already knows why it ended.
            if is_cancelled {
                return Ok(has_callback);
            }
            Err(question_deleted())
        }
        outcome => outcome,
    }
}

/// Must run in a transaction.
fn write_all(memory: &Memory<'_>, turn: &Turn, report: &TurnReport) -> Result<bool> {
    let (db, host) = (memory.db, memory.host);
    // The session may have been deleted in the meantime, and created again with another
    // turn.
    let open = find_row(db, turn)?.ok_or_else(question_deleted)?;
    let (spent, ended_at) = (&report.spent, host.now_ms());
    let mut events = turn.events(&load(db, turn)?)?;
    let mut message_id = turn.message_id.clone();
    let mut ends_by_itself = false;
    let mut answer = None;
    if let Some(first) = events.first_mut() {
        let position = find_answer_position(db, turn)?;
        let parent = match position.find_id(db, &turn.session_id)? {
            Some(id) => Parent::After(id),
            None => Parent::Root,
        };
        // Other messages were appended in the meantime, so the addition becomes a message
        // of its own.
        let recorded_id = (!position.has_moved).then_some(turn.message_id.as_str());
        let record = &report.record(turn, ended_at, recorded_id);
        let json = if turn.is_run {
            json::encode(&FactsWithRecord {
                facts: report,
                record,
            })
        } else {
            json::encode(&FactsWithRecord {
                facts: spent,
                record,
            })
        };
        first.ends_turn = Some(json?);
        let appended = append(db, host, &turn.session_id, &events, &parent, None)?;
        // If other messages were appended after the turn's message, the turn's addition
        // becomes a message of its own.
        if let (Some(first), true) = (appended.events.first(), position.has_moved) {
            message_id.clone_from(&first.id);
        }
        if let (Some(api), Some(last)) = (&turn.api, appended.events.last()) {
            record_path(db, turn, api, last.seq, report)?;
        }
        answer = appended.events.first().map(|first| first.seq);
        ends_by_itself = ends_by_its_answer(&open, &appended);
    }
    record_questions(db, host, turn)?;
    if !ends_by_itself {
        end_open_turn(db, host, &turn.session_id, &open, spent.clone())?;
    }
    forget(db, turn)?;
    schedule_learning(memory, turn)?;
    let answer = answer.map(|seq| (seq, message_id.as_str()));
    store_record(memory, turn, report, (ended_at, answer))?;
    callbacks::insert(memory, turn, &message_id, report)
}

/// Stores what the tools of earlier turns' calls asked in this turn. Questions that were answered
/// stay without the answers and without the tool's state. Must run in a transaction.
fn record_questions(db: &dyn Database, host: &dyn Host, turn: &Turn) -> Result<()> {
    let session_id = &turn.session_id;
    for (logged, call_id, question) in turn.logged_questions() {
        let Some(mut note) = find_note(db, session_id, logged.seq)? else {
            // The message was deleted.
            continue;
        };
        note.questions.insert(call_id.as_str().to_owned(), question);
        change_note(db, host, session_id, &logged.message_id, logged.seq, &note)?;
    }
    Ok(())
}

/// Stores where the path of a provider API's client ends after this answer. Must run in a
/// transaction.
fn record_path(
    db: &dyn Database,
    turn: &Turn,
    api: &ApiTurn,
    seq: i64,
    report: &TurnReport,
) -> Result<()> {
    let path = turn.visible_path(api);
    path_digests::record(db, &turn.session_id, path.as_str(), seq, true)?;
    if let Some(id) = &api.response_id {
        path_digests::record(db, &turn.session_id, id, seq, true)?;
    }
    if api.has_key && !report.spent.has_failed {
        path_digests::record(db, &turn.session_id, &api.request, seq, true)?;
    }
    Ok(())
}

/// Schedules a learning pass over the turn, if the agent learns. A turn that answers a
/// callback schedules none: learned facts cause callbacks, and the receiver's next turn
/// would be learned from in turn. Its events are covered by the session's next turn or by
/// `learn`.
fn schedule_learning(memory: &Memory<'_>, turn: &Turn) -> Result<()> {
    let config = load_config(memory.db, &memory.deployed.config)?;
    let Some(learn) = &config.learn else {
        return Ok(());
    };
    let due_at = if turn.skips_callbacks {
        NEVER_MS
    } else {
        due_at(learn, PassTrigger::TurnEnd, memory.host.now_ms())
    };
    mark_due(memory.db, &turn.session_id, due_at)
}

/// Stores the record of a turn that failed, or that no event records. `answer` is the event
/// that ended the turn, if any, and the message that it belongs to. Must run in a
/// transaction.
fn store_record(
    memory: &Memory<'_>,
    turn: &Turn,
    report: &TurnReport,
    (ended_at, answer): (i64, Option<(i64, &str)>),
) -> Result<()> {
    let kind = match (report.spent.has_failed, answer) {
        (true, _) => StoredTurnKind::Failure,
        (false, None) => StoredTurnKind::Silence,
        // The event contains the record.
        (false, Some(_)) => return Ok(()),
    };
    let record = &report.record(turn, ended_at, answer.map(|(_, id)| id));
    let facts = &report.spent;
    let stored = StoredTurn {
        session_id: turn.session_id.as_str().to_owned(),
        seq: answer.map_or(turn.answer_seq, |(seq, _)| seq),
        ended_at,
        has_answer: answer.is_some(),
        record: json::encode(&FactsWithRecord { facts, record })?,
    };
    stored_turns::insert(memory.db, &stored, kind)
}

/// Records the failure of a turn whose state can't be read. Must run in a transaction.
pub fn store_unreadable(
    db: &dyn Database,
    session_id: &Id,
    turn_id: &str,
    (ended_at, seq): (i64, i64),
    error: &Error,
) -> Result<()> {
    let record = &EndedRecord {
        request_id: turn_id.to_owned(),
        ended_at,
        finish_reason: TurnFinish::Error,
        failure: Some(RecordedFailure::of(error)),
        turn: TurnRecord {
            started_at: ended_at,
            ..TurnRecord::default()
        },
        ..EndedRecord::default()
    };
    let facts = &TurnSpending {
        has_failed: true,
        ..TurnSpending::default()
    };
    let stored = StoredTurn {
        session_id: session_id.as_str().to_owned(),
        seq,
        ended_at,
        has_answer: false,
        record: json::encode(&FactsWithRecord { facts, record })?,
    };
    stored_turns::insert(db, &stored, StoredTurnKind::Failure)
}

/// Whether the answer is at the position that the turn's row names. Then the answer ends
/// the turn, and the row needs no write.
fn ends_by_its_answer(open: &LastTurn, appended: &AppendOutcome) -> bool {
    let first = appended.events.first();
    first.is_some_and(|first| first.inserted && Some(first.seq) == open.answer_seq)
}

/// The row of this turn, while it is open.
fn find_row(db: &dyn Database, turn: &Turn) -> Result<Option<LastTurn>> {
    let open = find_open_turn(db, &turn.session_id)?;
    Ok(open.filter(|open| open.turn_id.as_ref() == Some(&turn.id)))
}
