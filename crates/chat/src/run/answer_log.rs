//! Writes a client's answers to tool calls into the log, and finds the calls that may now
//! be made.

use std::collections::HashSet;

use crate::request::answers::{ApprovalAnswer, ClientAnswer, ClientOutcome, DECLINED};
use crate::request::known_messages::{KnownMessage, find_answers_end};
use crate::request::open_calls::{AnsweredCalls, call_of, find_client_call, own_rows};
use crate::request::plan::{AwaitedAnswer, RequestPlan};
use crate::tools::input::answers::read_answers;
use crate::turn::{CallState, LoggedCall, TurnCall, TurnStep, result_event};
use access::Authority;
use base::database::Database;
use base::error::Result;
use base::host::Host;
use base::ids::Id;
use base::json;
use conversation::log::append::{Parent, append};
use conversation::log::event::NewEvent;
use conversation::log::note::{Approval, Note, Question, get_note};
use conversation::messages::change::change_note;
use conversation::messages::tree::children::load_children;

/// The log of the session whose calls are answered.
pub struct AnswerLog<'a> {
    pub db: &'a dyn Database,
    pub host: &'a dyn Host,
    pub session_id: &'a Id,
    /// The authority of the caller who sent the answers.
    pub authority: &'a Authority,
}

impl AnswerLog<'_> {
    /// Writes the answers. Returns a step with the calls to make now: a call that was approved, or
    /// whose tool's questions were answered, is made when all calls of its message are answered.
    /// `before`: the answer that the turn continues or follows. Its calls may be deferred.
    pub fn store_answers(
        &self,
        planned: &RequestPlan<'_>,
        known: &[KnownMessage],
        before: Option<&KnownMessage>,
    ) -> Result<Vec<TurnStep>> {
        let is_deferred = !planned.still_open.is_empty();
        let find = |id: &str| known.iter().find(|known| known.stored.id == *id);
        let mut answered: Vec<&KnownMessage> = Vec::new();
        for answer in &planned.answers {
            let Some(known) = find(&answer.message_id) else {
                continue;
            };
            let call_id = answer.answer.tool_call_id.as_str();
            if awaits_input(known, call_id) {
                self.store_input(known, &answer.answer, is_deferred)?;
                answered.push(known);
                continue;
            }
            let call = find_client_call(
                self.db,
                self.session_id,
                &known.rows,
                known.copied_seq,
                call_id,
            )?;
            let (content, is_error, is_json) = match &answer.answer.outcome {
                ClientOutcome::Output(json) => match json::decode::<String>(json.get()) {
                    Ok(text) => (text, false, false),
                    Err(_) => (json.get().to_owned(), false, true),
                },
                ClientOutcome::Error(text) => (text.clone(), true, false),
            };
            let note = Note {
                is_json,
                provider_data: answer.answer.provider_data.clone(),
                ..Note::default()
            };
            self.append_within(
                known,
                result_event(call.id, call.name, content, is_error, note),
            )?;
            answered.push(known);
        }
        for answer in &planned.approvals {
            let Some(known) = find(&answer.message_id) else {
                continue;
            };
            self.store_approval(known, &answer.answer, is_deferred)?;
            answered.push(known);
        }
        let mut ready = Vec::new();
        let mut seen = HashSet::new();
        for known in answered {
            if is_deferred || !seen.insert(&known.stored.id) {
                continue;
            }
            ready.extend(self.load_ready(known, ReadyCalls::All)?);
        }
        if let Some(known) = before.filter(|known| known.stored.open.is_empty())
            && !seen.contains(&known.stored.id)
            && has_deferred(known)?
            && self.is_newest(known)?
        {
            ready.extend(self.load_ready(known, ReadyCalls::Deferred)?);
        }
        if ready.is_empty() {
            return Ok(Vec::new());
        }
        Ok(vec![TurnStep {
            calls: ready,
            is_logged: true,
            ..TurnStep::default()
        }])
    }

    /// Whether nothing follows a message.
    fn is_newest(&self, known: &KnownMessage) -> Result<bool> {
        let Some(last) = known.rows.last() else {
            return Ok(false);
        };
        let below = load_children(self.db, self.session_id, last.seq)?;
        Ok(below.is_empty())
    }

    fn append_within(&self, known: &KnownMessage, mut event: NewEvent) -> Result<()> {
        let message_authority = Authority {
            memory_scope: known.memory_scope()?,
            ..Authority::default()
        };
        let note = event.note.take().unwrap_or_default();
        event.note = Some(note.with_authority(message_authority.joined(self.authority.clone())));
        let last = find_answers_end(self.db, self.session_id, &known.stored.id)?
            .map_or(Parent::Leaf, Parent::After);
        append(self.db, self.host, self.session_id, &[event], &last, None).map(drop)
    }

    fn store_approval(
        &self,
        known: &KnownMessage,
        answer: &ApprovalAnswer,
        is_deferred: bool,
    ) -> Result<()> {
        let call_id = answer.tool_call_id.as_str();
        // Of several calls with one id, the newest is pending.
        let rows = own_rows(&known.rows, known.copied_seq).rev();
        for row in rows.filter(|row| row.has_note()) {
            // Loaded again, because an earlier answer may have changed the note.
            let mut note = get_note(self.db, self.session_id, row.seq)?;
            let Some(approval_id) = note.approvals.get(call_id).cloned() else {
                continue;
            };
            let approval = Approval {
                id: approval_id,
                approved: answer.approved,
                reason: answer.reason.clone(),
            };
            if answer.approved {
                note.decided.insert(call_id.to_owned(), approval);
                set_deferred(&mut note, call_id, is_deferred);
                return self.store_note(known, row.seq, &note);
            }
            let call = call_of(self.db, self.session_id, row, call_id)?;
            let content = match &answer.reason {
                Some(reason) => format!("{DECLINED} Reason: {reason}"),
                None => DECLINED.to_owned(),
            };
            let note = Note {
                approval: Some(approval),
                ..Note::default()
            };
            return self
                .append_within(known, result_event(call.id, call.name, content, true, note));
        }
        Ok(())
    }

    /// Stores the answers to the questions of a call's tool.
    fn store_input(
        &self,
        known: &KnownMessage,
        answer: &ClientAnswer,
        is_deferred: bool,
    ) -> Result<()> {
        let call_id = answer.tool_call_id.as_str();
        let Some((seq, mut note)) = self.find_question(known, call_id)? else {
            return Ok(());
        };
        if let Some(question) = note.questions.get_mut(call_id) {
            let answers = read_answers(question, &answer.outcome)
                .map_err(|error| error.with("toolCallId", call_id))?;
            if let Some(open) = &mut question.open {
                open.answers = Some(answers);
            }
        }
        set_deferred(&mut note, call_id, is_deferred);
        // The call is repeated with this caller's words, also if another caller answers the rest.
        let joined = note.authority().joined(self.authority.clone());
        let note = note.with_authority(joined);
        self.store_note(known, seq, &note)
    }

    /// The newest event whose call with this id waits for answers, and the event's note.
    fn find_question(&self, known: &KnownMessage, call_id: &str) -> Result<Option<(i64, Note)>> {
        let rows = own_rows(&known.rows, known.copied_seq).rev();
        for row in rows.filter(|row| row.has_note()) {
            let note = get_note(self.db, self.session_id, row.seq)?;
            let question = note.questions.get(call_id);
            if question.is_some_and(Question::awaits_answers) {
                return Ok(Some((row.seq, note)));
            }
        }
        Ok(None)
    }

    /// Whether an answer doesn't fit the questions that it answers.
    pub fn is_wrong(&self, known: &KnownMessage, answer: &ClientAnswer) -> Result<bool> {
        let call_id = answer.tool_call_id.as_str();
        if !awaits_input(known, call_id) {
            return Ok(false);
        }
        let Some((_, note)) = self.find_question(known, call_id)? else {
            return Ok(false);
        };
        let question = note.questions.get(call_id);
        Ok(question.is_some_and(|question| read_answers(question, &answer.outcome).is_err()))
    }

    /// Replaces the note of an event of a message.
    fn store_note(&self, known: &KnownMessage, seq: i64, note: &Note) -> Result<()> {
        change_note(
            self.db,
            self.host,
            self.session_id,
            &known.stored.id,
            seq,
            note,
        )
    }

    /// The calls of a message that were approved or answered, and have no result yet. They are not
    /// deferred any more: if their turn is lost, no other one makes them again.
    fn load_ready(&self, known: &KnownMessage, wanted: ReadyCalls) -> Result<Vec<TurnCall>> {
        let mut calls = Vec::new();
        let answered = AnsweredCalls::of(&known.rows, &known.continuations, known.copied_seq);
        for row in own_rows(&known.rows, known.copied_seq).filter(|row| row.has_note()) {
            let mut note = get_note(self.db, self.session_id, row.seq)?;
            let deferred = std::mem::take(&mut note.deferred);
            if !deferred.is_empty() {
                self.store_note(known, row.seq, &note)?;
            }
            let mut questions = std::mem::take(&mut note.questions);
            let decided = note.decided.keys();
            let mut ids: Vec<String> = decided.chain(questions.keys()).cloned().collect();
            ids.sort();
            ids.dedup();
            for call_id in ids {
                let question = questions.remove(&call_id).map(Box::new);
                let approval = note.decided.remove(&call_id);
                let is_ready = match &question {
                    // An approved call whose tool asks waits for the answers.
                    Some(question) => question.open.is_some() && !question.awaits_answers(),
                    // The call needed approval.
                    None => note.approvals.contains_key(&call_id),
                };
                let is_wanted = wanted == ReadyCalls::All || deferred.contains(&call_id);
                if !is_ready || !is_wanted || answered.has(row, &call_id) {
                    continue;
                }
                let call = call_of(self.db, self.session_id, row, &call_id)?;
                let open = question
                    .as_ref()
                    .and_then(|question| question.open.as_ref());
                let fingerprint = note.fingerprints.get(&call_id).cloned();
                calls.push(TurnCall {
                    id: call.id,
                    name: call.name,
                    arguments: call.arguments,
                    bad_arguments: None,
                    state: CallState::Waiting,
                    approval,
                    fingerprint: fingerprint
                        .or_else(|| open.and_then(|open| open.fingerprint.clone())),
                    skips_approval: open.is_some_and(|open| open.skips_approval),
                    logged: Some(LoggedCall {
                        seq: row.seq,
                        message_id: known.stored.id.clone(),
                    }),
                    answered: question,
                });
            }
        }
        Ok(calls)
    }
}

/// Which of a message's approved and answered calls a turn makes.
#[derive(Clone, Copy, PartialEq)]
enum ReadyCalls {
    All,
    Deferred,
}

/// Defers a call, or marks that a turn makes the calls of this event now.
fn set_deferred(note: &mut Note, call_id: &str, is_deferred: bool) {
    if is_deferred {
        note.deferred.insert(call_id.to_owned());
    } else {
        note.deferred.clear();
    }
}

fn has_deferred(known: &KnownMessage) -> Result<bool> {
    let rows = own_rows(&known.rows, known.copied_seq).filter(|row| row.has_note());
    for row in rows {
        if !row.note()?.deferred.is_empty() {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Whether the newest call with this id waits for answers to its tool's questions.
fn awaits_input(known: &KnownMessage, call_id: &str) -> bool {
    let mut open = known.stored.open.iter().rev();
    open.find(|open| open.tool_call_id == call_id)
        .is_some_and(|open| open.awaits == AwaitedAnswer::Input)
}
