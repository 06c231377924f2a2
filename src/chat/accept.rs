//! From a chat request to a turn: what of the request goes into the log, and
//! where the answer will stand. One transaction, committed before any model is
//! called.

use std::collections::HashSet;

use super::answers::{CallAnswer, ClientOutcome, DECLINED};
use super::open_calls::{answered_calls, call_of, find_client_call, open_calls, own_rows};
use super::plan::{Accepted, Answered, NamedMessage, TurnPosition, find_asking, plan};
use super::request::{ChatRequest, ClientMessage, Trigger};
use super::store::{has_turn, insert_turn};
use super::turn::{CallState, Turn, TurnCall, TurnStep, result_event};
use crate::access::ModelReach;
use crate::base::action::Action;
use crate::base::database::{Database, atomically};
use crate::base::error::{Code, Error, Result};
use crate::base::host::Host;
use crate::base::ids::Id;
use crate::log::append::{Parent, append};
use crate::log::event::NewEvent;
use crate::log::find::find_seqs;
use crate::log::note::{Approval, Note, get_note};
use crate::log::sessions::{NewSession, create_session, session_exists};
use crate::log::tip::get_tip;
use crate::messages::append::append_message;
use crate::messages::change::{change_note, update_message};
use crate::messages::parse::{MessageSource, parse_message};
use crate::messages::run::{RunEvent, get_run_event, load_run_around};
use crate::models::{TokenUsage, ToolDefinition};
use crate::store::config::{Config, load_config};

/// Messages of a request that are looked up at once, newest first. A client sends
/// all that it shows; what stands before a message that is stored is past.
const LOOKUP: usize = 64;

/// Messages of a request whose answers are held against the log.
const MAX_ANSWERING: usize = 8;

pub struct AcceptedRequest {
    /// `None`: calls still wait for the client, and the model can't go on.
    pub turn: Option<Turn>,
    /// The assistant's message that was answered or will be written.
    pub message_id: String,
    /// Whether the log took anything that other clients have to hear of.
    pub has_changed: bool,
}

/// The log's side of what a request names.
struct RequestedMessage {
    stored: NamedMessage,
    /// Without their contents.
    rows: Vec<RunEvent>,
    /// Events up to this one came with a file or a fork.
    copied_seq: i64,
}

impl RequestedMessage {
    /// How far the model reached that said any of it.
    fn reach(&self) -> Result<ModelReach> {
        let mut reach = ModelReach::Agent;
        for row in &self.rows {
            reach = reach.min(row.note()?.reach);
        }
        Ok(reach)
    }
}

/// What a request asks of the turn itself.
struct TurnOptions<'a> {
    turn_id: &'a str,
    model: Option<&'a str>,
    system_instructions: &'a [String],
    client_tools: &'a [ToolDefinition],
}

pub struct Accepting<'a> {
    pub db: &'a dyn Database,
    pub host: &'a dyn Host,
    pub agent_name: &'a str,
    pub session_id: &'a Id,
    /// How far the model reaches for this caller.
    pub reach: ModelReach,
}

impl Accepting<'_> {
    /// `turn_id`: by which the client knows the turn.
    pub fn accept(&self, request: &ChatRequest, turn_id: &str) -> Result<AcceptedRequest> {
        atomically(self.db, || {
            if !session_exists(self.db, self.session_id)? {
                self.create_session()?;
            }
            if has_turn(self.db, self.session_id)? {
                return Err(turn_in_progress());
            }
            let config = load_config(self.db)?;
            let known = self.load_known(request)?;
            let stored: Vec<NamedMessage> =
                known.iter().map(|known| known.stored.clone()).collect();
            let accepted = plan(&stored, request)?;
            let wishes = TurnOptions {
                turn_id,
                model: request.model.as_ref().map(Id::as_str),
                system_instructions: &request.system_instructions,
                client_tools: &request.client_tools,
            };
            self.take(&wishes, &config, &known, &accepted)
        })
    }

    /// An answer to one call of the newest message, from a socket. `None`: no call
    /// waits for it. Without `continues` the client asks for the turn by itself.
    pub fn accept_answer(
        &self,
        answer: CallAnswer,
        continues: bool,
        client_tools: &[ToolDefinition],
        turn_id: &str,
    ) -> Result<Option<AcceptedRequest>> {
        atomically(self.db, || {
            if !session_exists(self.db, self.session_id)? {
                return Ok(None);
            }
            if has_turn(self.db, self.session_id)? {
                return Err(turn_in_progress());
            }
            let config = load_config(self.db)?;
            let known = self.load_newest()?;
            let stored: Vec<NamedMessage> =
                known.iter().map(|known| known.stored.clone()).collect();
            let Some(asking) = find_asking(&stored, &answer) else {
                return Ok(None);
            };
            let message_id = asking.id.clone();
            let mut still_open: Vec<String> = asking
                .open
                .iter()
                .map(|open| open.tool_call_id.clone())
                .filter(|id| id != answer.tool_call_id())
                .collect();
            if !continues {
                still_open.push(answer.tool_call_id().to_owned());
            }
            let mut accepted = Accepted {
                place: TurnPosition::Within(message_id.clone()),
                new_user_messages: Vec::new(),
                edited: None,
                answers: Vec::new(),
                approvals: Vec::new(),
                still_open,
            };
            match answer {
                CallAnswer::Tool(answer) => accepted.answers.push(Answered { message_id, answer }),
                CallAnswer::Approval(answer) => {
                    accepted.approvals.push(Answered { message_id, answer });
                }
            }
            let wishes = TurnOptions {
                turn_id,
                model: None,
                system_instructions: &[],
                client_tools,
            };
            self.take(&wishes, &config, &known, &accepted).map(Some)
        })
    }

    /// The newest message of the path that the session follows.
    fn load_newest(&self) -> Result<Vec<RequestedMessage>> {
        let tip = get_tip(self.db, self.session_id)?;
        let seq = tip.leaf.map(|leaf| leaf.seq);
        seq.into_iter()
            .filter_map(|seq| self.load_message(seq, tip.copied_seq).transpose())
            .collect()
    }

    /// The messages that a request's answers may be for: the newest few that hold
    /// any, and the one that it names.
    fn answering<'r>(&self, request: &'r ChatRequest) -> HashSet<&'r str> {
        let named = match &request.trigger {
            Trigger::Submit { message_id } | Trigger::Regenerate { message_id } => message_id,
        };
        let holding = request
            .messages
            .iter()
            .rev()
            .take(LOOKUP)
            .filter(|message| !message.answers().is_empty())
            .take(MAX_ANSWERING);
        holding
            .filter_map(|message| message.id.as_ref())
            .chain(named)
            .map(Id::as_str)
            .collect()
    }

    fn load_message(&self, seq: i64, copied_seq: i64) -> Result<Option<RequestedMessage>> {
        let rows = load_run_around(self.db, self.session_id, seq)?.events;
        let Some(first) = rows.first() else {
            return Ok(None);
        };
        Ok(Some(RequestedMessage {
            stored: NamedMessage {
                id: first.id.clone(),
                is_users: first.action == Action::UserMessage,
                open: open_calls(&rows, copied_seq)?,
            },
            rows,
            copied_seq,
        }))
    }

    fn create_session(&self) -> Result<()> {
        let new = NewSession {
            id: Some(self.session_id.clone()),
            name: None,
            metadata: None,
            parent_session_id: None,
        };
        create_session(self.db, self.host, self.agent_name, &new).map(drop)
    }

    /// The newest stored messages among those that the request names, and the
    /// newest of the path that the session follows, which is last.
    fn load_known(&self, request: &ChatRequest) -> Result<Vec<RequestedMessage>> {
        let mut ids: Vec<&Id> = request.message_ids().collect();
        ids.reverse();
        let answering = self.answering(request);
        let mut seqs: Vec<i64> = Vec::new();
        for some in ids.chunks(LOOKUP) {
            let found = find_seqs(self.db, self.session_id, some.iter().copied())?;
            // The newest of them is where the request stands; others matter only
            // where they answer something. A message is not read for its id alone.
            let newest = some.iter().find(|id| found.contains_key(id.as_str()));
            let named = some.iter().filter(|id| answering.contains(id.as_str()));
            let wanted = newest.into_iter().chain(named);
            seqs.extend(wanted.filter_map(|id| found.get(id.as_str()).copied()));
            if !found.is_empty() {
                break;
            }
        }
        seqs.sort_unstable();
        seqs.dedup();
        let tip = get_tip(self.db, self.session_id)?;
        seqs.extend(tip.leaf.map(|leaf| leaf.seq));
        let mut known: Vec<RequestedMessage> = Vec::new();
        for seq in seqs {
            let Some(message) = self.load_message(seq, tip.copied_seq)? else {
                continue;
            };
            known.retain(|known| known.stored.id != message.stored.id);
            known.push(message);
        }
        Ok(known)
    }

    fn take(
        &self,
        wishes: &TurnOptions<'_>,
        config: &Config,
        known: &[RequestedMessage],
        accepted: &Accepted<'_>,
    ) -> Result<AcceptedRequest> {
        let find = |id: &str| known.iter().find(|known| known.stored.id == id);
        let has_changed = !accepted.is_continuation();
        if let Some(message) = accepted.edited {
            let message = self.parse(message, config)?;
            update_message(self.db, self.host, self.session_id, &message)?;
        }
        let approved = self.take_answers(accepted, known)?;
        let mut parent = self.parent(&accepted.place, known)?;
        for message in &accepted.new_user_messages {
            let message = self.parse(message, config)?;
            let after = match &parent {
                Some(id) => Parent::After(id.clone()),
                None => Parent::Root,
            };
            let appended =
                append_message(self.db, self.host, self.session_id, message, &after, None)?;
            parent = Some(Id::parse(appended.message.id).map_err(Error::storage)?);
        }
        let continued = match &accepted.place {
            TurnPosition::Within(id) => find(id),
            TurnPosition::AtLeaf if accepted.is_continuation() => {
                known.last().filter(|known| !known.stored.is_users)
            }
            _ => None,
        };
        let continued =
            continued.filter(|known| known.rows.last().is_some_and(|row| row.is_run_member));
        if let Some(known) = continued {
            parent = self.last_id(&known.stored.id)?;
        }
        if parent.is_none() && accepted.is_continuation() {
            return Err(Error::invalid(
                "messages",
                "There is nothing to answer: send a user's message in `message` or `messages`.",
            ));
        }
        let message_id = match continued {
            Some(known) => known.stored.id.clone(),
            None => {
                let seq = get_tip(self.db, self.session_id)?.last_seq() + 1;
                Id::mint_event(self.host, seq).as_str().to_owned()
            }
        };
        if !accepted.still_open.is_empty() && accepted.new_user_messages.is_empty() {
            return Ok(AcceptedRequest {
                turn: None,
                message_id,
                has_changed,
            });
        }
        let mut reach = self.reach;
        let answered = accepted.answered_messages().filter_map(find);
        for known in continued.into_iter().chain(answered) {
            reach = reach.min(known.reach()?);
        }
        let turn = Turn {
            id: wishes.turn_id.to_owned(),
            session_id: self.session_id.clone(),
            message_id: message_id.clone(),
            is_continuation: continued.is_some(),
            parent_id: parent,
            max_steps: usize::try_from(config.max_steps).unwrap_or(1),
            model: wishes.model.map(str::to_owned),
            system_instructions: wishes.system_instructions.to_vec(),
            client_tools: wishes.client_tools.to_vec(),
            only_session: (!reach.is_agent()).then(|| self.session_id.clone()),
            agent_memory: reach == ModelReach::SessionAndMemory,
            declined: accepted
                .approvals
                .iter()
                .filter(|answer| !answer.answer.approved)
                .map(|answer| answer.answer.tool_call_id.as_str().to_owned())
                .collect(),
            steps: approved,
            usage: TokenUsage::default(),
        };
        insert_turn(self.db, &turn)?;
        Ok(AcceptedRequest {
            turn: Some(turn),
            message_id,
            has_changed,
        })
    }

    fn parse(
        &self,
        message: &ClientMessage,
        config: &Config,
    ) -> Result<crate::messages::parse::NewMessage> {
        let parsed = parse_message(
            &message.text,
            MessageSource::Client,
            &config.reserved_metadata_keys,
        )?;
        // The plan lets nothing else through; this is the second lock.
        if parsed.action != Action::UserMessage {
            return Err(Error::invalid(
                "messages",
                "A chat request adds messages of the user's alone.",
            ));
        }
        Ok(parsed)
    }

    /// The event that the answer, or the first new message, follows.
    fn parent(&self, place: &TurnPosition, known: &[RequestedMessage]) -> Result<Option<Id>> {
        let find = |id: &str| known.iter().find(|known| known.stored.id == *id);
        match place {
            TurnPosition::AtLeaf => self.leaf_id(),
            TurnPosition::After(id) | TurnPosition::Within(id) => self.last_id(id),
            TurnPosition::Beside(id) => self.above(find(id)),
            TurnPosition::BesideNewest => match known.last() {
                Some(known) if !known.stored.is_users => self.above(Some(known)),
                _ => self.leaf_id(),
            },
        }
    }

    fn leaf_id(&self) -> Result<Option<Id>> {
        let leaf = get_tip(self.db, self.session_id)?.leaf;
        leaf.map(|leaf| Id::parse(leaf.id).map_err(Error::storage))
            .transpose()
    }

    /// The newest event of a message as it stands now.
    fn last_id(&self, message_id: &str) -> Result<Option<Id>> {
        let id = Id::parse(message_id.to_owned()).map_err(Error::storage)?;
        let found = find_seqs(self.db, self.session_id, std::iter::once(&id))?;
        let Some(seq) = found.get(message_id) else {
            return self.leaf_id();
        };
        let rows = load_run_around(self.db, self.session_id, *seq)?.events;
        let last = rows.last().map(|row| Id::parse(row.id.clone()));
        last.transpose().map_err(Error::storage)
    }

    /// The event right above a message; `None`: it is a root.
    fn above(&self, known: Option<&RequestedMessage>) -> Result<Option<Id>> {
        let first = known.and_then(|known| known.rows.first());
        let Some(first) = first.filter(|first| first.parent_seq != 0) else {
            return Ok(None);
        };
        let parent = get_run_event(self.db, self.session_id, first.parent_seq)?;
        Id::parse(parent.id).map(Some).map_err(Error::storage)
    }

    /// Writes what was answered. Gives the calls that may be made now, as a step:
    /// those that were approved, once nothing of their message waits any more.
    fn take_answers(
        &self,
        accepted: &Accepted<'_>,
        known: &[RequestedMessage],
    ) -> Result<Vec<TurnStep>> {
        let find = |id: &str| known.iter().find(|known| known.stored.id == *id);
        let mut answered: Vec<&RequestedMessage> = Vec::new();
        for answer in &accepted.answers {
            let Some(known) = find(&answer.message_id) else {
                continue;
            };
            let call_id = answer.answer.tool_call_id.as_str();
            let call = find_client_call(
                self.db,
                self.session_id,
                &known.rows,
                known.copied_seq,
                call_id,
            )?;
            let (content, is_error, is_json) = match &answer.answer.outcome {
                ClientOutcome::Output(json) => match serde_json::from_str::<String>(json.get()) {
                    Ok(text) => (text, false, false),
                    Err(_) => (json.get().to_owned(), false, true),
                },
                ClientOutcome::Error(text) => (text.clone(), true, false),
            };
            let note = Note {
                is_json,
                ..Note::default()
            };
            self.append_within(
                known,
                result_event(call.id, call.name, content, is_error, note),
            )?;
            answered.push(known);
        }
        for answer in &accepted.approvals {
            let Some(known) = find(&answer.message_id) else {
                continue;
            };
            self.take_approval(known, &answer.answer)?;
            answered.push(known);
        }
        let mut ready = Vec::new();
        let mut seen = HashSet::new();
        for known in answered {
            if !accepted.still_open.is_empty() || !seen.insert(&known.stored.id) {
                continue;
            }
            ready.extend(self.load_approved(known)?);
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

    fn append_within(&self, known: &RequestedMessage, event: NewEvent) -> Result<()> {
        let last = self
            .last_id(&known.stored.id)?
            .map_or(Parent::Leaf, Parent::After);
        append(self.db, self.host, self.session_id, &[event], &last, None).map(drop)
    }

    fn take_approval(
        &self,
        known: &RequestedMessage,
        answer: &super::answers::ApprovalAnswer,
    ) -> Result<()> {
        let call_id = answer.tool_call_id.as_str();
        for row in own_rows(&known.rows, known.copied_seq).filter(|row| row.has_note()) {
            // As it stands now: an answer before this one may have changed it.
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
                let message_id = &known.stored.id;
                return change_note(
                    self.db,
                    self.host,
                    self.session_id,
                    message_id,
                    row.seq,
                    &note,
                );
            }
            let call = call_of(self.db, self.session_id, row, call_id)?;
            let content = match &answer.reason {
                Some(reason) => format!("{DECLINED} They said: {reason}"),
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

    /// The approved calls of a message whose results are still to come.
    fn load_approved(&self, known: &RequestedMessage) -> Result<Vec<TurnCall>> {
        let mut calls = Vec::new();
        let answered = answered_calls(&known.rows, known.copied_seq);
        for row in own_rows(&known.rows, known.copied_seq).filter(|row| row.has_note()) {
            let note = get_note(self.db, self.session_id, row.seq)?;
            for (call_id, approval) in note.decided {
                // Nobody was asked for it, or it has its result.
                if !note.approvals.contains_key(&call_id) || answered.contains(call_id.as_str()) {
                    continue;
                }
                let call = call_of(self.db, self.session_id, row, &call_id)?;
                calls.push(TurnCall {
                    id: call.id,
                    name: call.name,
                    arguments: call.arguments,
                    bad_arguments: None,
                    state: CallState::Waiting,
                    approval: Some(approval),
                    asked_of: note.asked_of.get(&call_id).cloned(),
                });
            }
        }
        Ok(calls)
    }
}

pub fn turn_in_progress() -> Error {
    Error::new(
        Code::TurnInProgress,
        "A turn of this session is running. Wait for its end, or stop it with `cancelTurn`.",
    )
}
