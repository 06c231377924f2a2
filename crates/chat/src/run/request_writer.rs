//! Makes a turn from a chat request. One transaction writes the new messages and the
//! client's answers to calls into the log, and the turn into its table. The transaction
//! is committed before any model is called.

use crate::record::{AskedBy, TurnRecord};
use crate::request::answers::CallAnswer;
use crate::request::known_messages::{
    KnownMessage, check_repeated, find_answers_end, find_known, find_last_id, find_leaf_id,
    load_known, load_newest,
};
use crate::request::plan::{
    Answered, NamedMessage, RequestPlan, TurnPosition, find_asking, find_repeated,
};
use crate::request::{ChatRequest, ClientMessage};
use crate::run::agent::Agent;
use crate::run::answer_log::AnswerLog;
use crate::run::planning::plan_request;
use crate::turn::store::{has_turn, insert_turn};
use crate::turn::{LengthFeedback, Turn};
use access::{Authority, MemoryScope, Principal};
use base::action::Action;
use base::database::{Database, atomically};
use base::error::{Code, Error, Result};
use base::host::Host;
use base::ids::Id;
use base::trace::StoredTrace;
use conversation::log::append::Parent;
use conversation::log::find::find_seqs;
use conversation::log::note::{Note, get_note};
use conversation::log::sessions::{ForgetImport, NewSession, create_session, session_exists};
use conversation::log::tip::get_tip;
use conversation::messages::append::append_message;
use conversation::messages::change::update_message;
use conversation::messages::parse::{MessageSource, NewMessage, parse_message};
use conversation::messages::run::get_run_event;
use conversation::session::meter::Meter;
use models::{TokenUsage, ToolDefinition};
use store::config::{Config, DeployedConfig, load_config};

const REPEATED_HINT: &str = "Send a new message with another id. To edit the stored message, pass its \
     id as `messageId`, too.";

pub struct WrittenRequest {
    /// `None`: calls still wait for the client, so the model can't continue.
    pub turn: Option<Turn>,
    /// The assistant's message that was answered or will be written.
    pub message_id: String,
    /// Whether the log changed, so that other clients must be notified.
    pub has_changed: bool,
}

/// The fields of a request about its turn, in addition to the messages.
struct TurnOptions<'a> {
    turn_id: &'a str,
    model: Option<&'a str>,
    system_instructions: &'a [String],
    client_tools: &'a [ToolDefinition],
    is_run: bool,
    skips_callbacks: bool,
    /// Whether limits may reject the turn. If nobody could be notified of the rejection, the turn
    /// begins, and ends with its first request to the model.
    is_limited: bool,
}

pub struct RequestWriter<'a> {
    pub db: &'a dyn Database,
    pub host: &'a dyn Host,
    pub deployed: &'a DeployedConfig,
    pub agent_name: &'a str,
    pub session_id: &'a Id,
    /// The caller that requests the turn.
    pub principal: Principal,
    forget_import: ForgetImport,
}

impl<'a> RequestWriter<'a> {
    pub fn of(agent: &Agent<'a>, session_id: &'a Id, principal: Principal) -> Self {
        Self {
            db: agent.db,
            host: agent.host,
            deployed: &agent.deployed.memory.config,
            agent_name: agent.name,
            session_id,
            principal,
            forget_import: agent.forget_import,
        }
    }
}

impl RequestWriter<'_> {
    /// Accepts a chat request. The client identifies the turn by `turn_id`.
    pub fn write(&self, request: &ChatRequest, turn_id: &str) -> Result<WrittenRequest> {
        self.accept_request(request, turn_id, true)
    }

    /// Accepts a queued request. It counted against the limits when it arrived.
    pub fn write_waiting(&self, request: &ChatRequest, turn_id: &str) -> Result<WrittenRequest> {
        self.accept_request(request, turn_id, false)
    }

    fn accept_request(
        &self,
        request: &ChatRequest,
        turn_id: &str,
        is_limited: bool,
    ) -> Result<WrittenRequest> {
        atomically(self.db, || {
            if !session_exists(self.db, self.session_id)? {
                self.create_session()?;
            }
            if has_turn(self.db, self.session_id)? {
                return Err(turn_in_progress());
            }
            let config = load_config(self.db, self.deployed)?;
            let known = load_known(self.db, self.session_id, request)?;
            let mut stored: Vec<NamedMessage> =
                known.iter().map(|known| known.stored.clone()).collect();
            let authority = self.principal.authority();
            let answers = self.answer_log(&authority);
            let planned = plan_request(&answers, &mut stored, &known, request)?;
            if let Some(message) = find_repeated(&stored, request, &planned) {
                check_repeated(self.db, self.session_id, message, REPEATED_HINT)?;
            }
            let options = TurnOptions {
                turn_id,
                model: request.model.as_ref().map(Id::as_str),
                system_instructions: &request.system_instructions,
                client_tools: &request.client_tools,
                is_run: request.is_run,
                skips_callbacks: request.skips_callbacks,
                is_limited,
            };
            self.write_plan(&options, &config, &known, &planned)
        })
    }

    fn answer_log<'l>(&'l self, authority: &'l Authority) -> AnswerLog<'l> {
        AnswerLog {
            db: self.db,
            host: self.host,
            session_id: self.session_id,
            authority,
        }
    }

    /// Accepts an answer from a socket, to one call of the newest message. `None`: no call waits
    /// for this answer. Without `continues` the answer starts no turn: the client requests the turn
    /// later.
    pub fn write_answer(
        &self,
        answer: CallAnswer,
        continues: bool,
        client_tools: &[ToolDefinition],
        turn_id: &str,
    ) -> Result<Option<WrittenRequest>> {
        atomically(self.db, || {
            if !session_exists(self.db, self.session_id)? {
                return Ok(None);
            }
            if has_turn(self.db, self.session_id)? {
                return Err(turn_in_progress());
            }
            let config = load_config(self.db, self.deployed)?;
            let known = load_newest(self.db, self.session_id)?;
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
            let mut planned = RequestPlan {
                position: TurnPosition::Within(message_id.clone()),
                new_user_messages: Vec::new(),
                edited: None,
                answers: Vec::new(),
                approvals: Vec::new(),
                still_open,
            };
            match answer {
                CallAnswer::Tool(answer) => planned.answers.push(Answered {
                    message_id,
                    answer,
                    is_in_last_message: true,
                }),
                CallAnswer::Approval(answer) => planned.approvals.push(Answered {
                    message_id,
                    answer,
                    is_in_last_message: true,
                }),
            }
            let options = TurnOptions {
                turn_id,
                model: None,
                system_instructions: &[],
                client_tools,
                is_run: false,
                skips_callbacks: false,
                is_limited: false,
            };
            self.write_plan(&options, &config, &known, &planned)
                .map(Some)
        })
    }

    pub(super) fn asked_by(&self) -> Option<AskedBy> {
        let limits = self.principal.limits.as_ref();
        self.principal.kind.map(|kind| AskedBy {
            kind,
            holder: limits.map(|limits| limits.holder.clone()),
        })
    }

    /// The turn is a span below its request.
    pub(super) fn begin_trace(&self) -> Option<StoredTrace> {
        let of_request = self.principal.trace.as_ref()?.find_trace()?;
        Some(StoredTrace::of(&of_request.child(self.host)))
    }

    pub(super) fn create_session(&self) -> Result<()> {
        let new = NewSession {
            id: Some(self.session_id.clone()),
            ..NewSession::default()
        };
        create_session(
            self.db,
            self.host,
            self.agent_name,
            &new,
            self.forget_import,
        )
        .map(drop)
    }

    /// Writes the planned messages, and the turn.
    fn write_plan(
        &self,
        options: &TurnOptions<'_>,
        config: &Config,
        known: &[KnownMessage],
        planned: &RequestPlan<'_>,
    ) -> Result<WrittenRequest> {
        let has_changed = !planned.is_continuation();
        let authority = self.principal.authority();
        if let Some(message) = planned.edited {
            let mut message = self.parse(message, config)?;
            message.note = Note::of_caller(&authority);
            update_message(self.db, self.host, self.session_id, &message)?;
        }
        let continued = find_continued(planned, known);
        let approved = self.answer_log(&authority).store_answers(
            planned,
            known,
            find_followed(planned, known),
        )?;
        let mut parent = self.parent(&planned.position, known)?;
        let run_answer = if options.is_run {
            Some(self.find_run_answer(planned, known)?)
        } else {
            None
        };
        for message in &planned.new_user_messages {
            let message = self.parse(message, config)?;
            parent = Some(self.append(message, parent, run_answer.as_ref())?);
        }
        if let Some(known) = continued {
            parent = match &planned.position {
                TurnPosition::AtLeaf => find_leaf_id(self.db, self.session_id)?,
                _ => find_answers_end(self.db, self.session_id, &known.stored.id)?,
            };
        }
        if parent.is_none() && planned.is_continuation() {
            return Err(Error::invalid(
                "messages",
                "There is nothing to answer: send a user's message in `message` or `messages`.",
            ));
        }
        let answer_seq = get_tip(self.db, self.session_id)?.last_seq() + 1;
        let message_id = match (continued, run_answer) {
            (Some(known), _) => known.stored.id.clone(),
            (None, Some(id)) => id.as_str().to_owned(),
            (None, None) => Id::mint_event(self.host, answer_seq).as_str().to_owned(),
        };
        if !planned.still_open.is_empty() && planned.new_user_messages.is_empty() {
            return Ok(WrittenRequest {
                turn: None,
                message_id,
                has_changed,
            });
        }
        if options.is_limited {
            let meter = Meter {
                db: self.db,
                host: self.host,
                config,
                token: self.principal.limits.as_ref(),
                budget: None,
            };
            // A turn that continues after a client's answer is the same turn.
            meter.admit(!matches!(planned.position, TurnPosition::Within(_)))?;
        }
        let answered_id = parent
            .as_ref()
            .filter(|_| planned.new_user_messages.is_empty());
        let mut memory_scope = self.find_memory_scope(planned, known, continued)?;
        if let Some(answered_id) = answered_id {
            memory_scope = memory_scope.min(self.memory_scope_of(answered_id)?);
        }
        let mut turn = Turn {
            id: options.turn_id.to_owned(),
            session_id: self.session_id.clone(),
            message_id: message_id.clone(),
            is_continuation: continued.is_some(),
            parent_id: parent,
            answer_seq,
            max_steps: usize::try_from(config.max_steps.0).unwrap_or(1),
            model: options.model.map(str::to_owned),
            system_instructions: options.system_instructions.to_vec(),
            client_tools: options.client_tools.to_vec(),
            only_session: (!memory_scope.is_agent()).then(|| self.session_id.clone()),
            agent_memory: memory_scope == MemoryScope::SessionAndMemory,
            declined: planned
                .approvals
                .iter()
                .filter(|answer| !answer.answer.approved)
                .map(|answer| answer.answer.tool_call_id.as_str().to_owned())
                .collect(),
            steps: approved,
            usage: TokenUsage::default(),
            cost: 0.0,
            last_model: None,
            estimated: 0,
            is_run: options.is_run,
            skips_callbacks: options.skips_callbacks,
            api: None,
            length_feedback: LengthFeedback::default(),
            untrusted: None,
            limits: self.principal.limits.clone(),
            record: TurnRecord {
                started_at: self.host.now_ms(),
                asked_by: self.asked_by(),
                trace: self.begin_trace(),
                ..TurnRecord::default()
            },
            stored_bytes: 0,
        };
        insert_turn(self.db, &mut turn, answer_seq)?;
        Ok(WrittenRequest {
            turn: Some(turn),
            message_id,
            has_changed,
        })
    }

    /// Appends a user's message. `run_answer`: the message that will answer it.
    fn append(
        &self,
        mut message: NewMessage,
        parent: Option<Id>,
        run_answer: Option<&Id>,
    ) -> Result<Id> {
        message.note = Some(Note {
            run_answer: run_answer.map(|id| id.as_str().to_owned()),
            ..Note::of(self.principal.authority())
        });
        let parent = parent.map_or(Parent::Root, Parent::After);
        let parent_and_tip = (&parent, None);
        let appended = append_message(
            self.db,
            self.host,
            self.session_id,
            message,
            parent_and_tip,
            &|_| None,
        )?;
        Id::parse(appended.message.id).map_err(Error::storage)
    }

    /// The scope of the turn's model: no wider than that of its caller, and of whoever requested
    /// the messages that the turn continues.
    fn find_memory_scope(
        &self,
        planned: &RequestPlan<'_>,
        known: &[KnownMessage],
        continued: Option<&KnownMessage>,
    ) -> Result<MemoryScope> {
        let mut memory_scope = self.principal.memory_scope;
        let answered = planned.answered_messages();
        let answered = answered.filter_map(|id| find_known(known, id));
        for known in continued.into_iter().chain(answered) {
            memory_scope = memory_scope.min(known.memory_scope()?);
        }
        Ok(memory_scope)
    }

    /// The scope of the caller who wrote a stored message that the turn answers.
    pub(super) fn memory_scope_of(&self, event_id: &Id) -> Result<MemoryScope> {
        let found = find_seqs(self.db, self.session_id, std::iter::once(event_id))?;
        let seq = found.get(event_id.as_str()).copied();
        seq.map_or(Ok(MemoryScope::Agent), |seq| {
            Ok(get_note(self.db, self.session_id, seq)?.memory_scope)
        })
    }

    /// The id of the message that will answer a message of `runTurn`. If the message is stored
    /// already, its note has the id.
    fn find_run_answer(&self, planned: &RequestPlan<'_>, known: &[KnownMessage]) -> Result<Id> {
        if let TurnPosition::After(id) = &planned.position
            && planned.new_user_messages.is_empty()
            && let Some(message) = find_known(known, id)
            && let Some(first) = message.rows.first()
            && let Some(answer) = first.note()?.run_answer
        {
            return Id::parse(answer).map_err(Error::storage);
        }
        let last_seq = get_tip(self.db, self.session_id)?.last_seq();
        let messages = planned.new_user_messages.len() as i64;
        Ok(Id::mint_event(self.host, last_seq + messages + 1))
    }

    fn parse(&self, message: &ClientMessage, config: &Config) -> Result<NewMessage> {
        let parsed = parse_message(&message.text, MessageSource::Client, &|| {
            Ok(&config.reserved_metadata_keys.0)
        })?;
        // `plan` accepts only messages of users. This is a second check.
        if parsed.action != Action::UserMessage {
            return Err(Error::invalid(
                "messages",
                "A chat request can only add user messages.",
            ));
        }
        Ok(parsed)
    }

    /// The event that the answer, or the first new message, follows.
    fn parent(&self, position: &TurnPosition, known: &[KnownMessage]) -> Result<Option<Id>> {
        match position {
            TurnPosition::AtLeaf => find_leaf_id(self.db, self.session_id),
            TurnPosition::After(id) => find_last_id(self.db, self.session_id, id),
            TurnPosition::Within(id) => find_answers_end(self.db, self.session_id, id),
            TurnPosition::AlternativeTo(id) => self.above(find_known(known, id)),
            TurnPosition::AlternativeToNewest => match known.last() {
                Some(known) if !known.stored.is_users => self.above(Some(known)),
                _ => find_leaf_id(self.db, self.session_id),
            },
        }
    }

    /// The event right above a message; `None`: the message is a root.
    fn above(&self, known: Option<&KnownMessage>) -> Result<Option<Id>> {
        let first = known.and_then(|known| known.rows.first());
        let Some(first) = first.filter(|first| first.parent_seq != 0) else {
            return Ok(None);
        };
        let parent = get_run_event(self.db, self.session_id, first.parent_seq)?;
        Id::parse(parent.id).map(Some).map_err(Error::storage)
    }
}

/// The assistant's message that the turn continues; `None`: the turn begins one.
fn find_continued<'k>(
    planned: &RequestPlan<'_>,
    known: &'k [KnownMessage],
) -> Option<&'k KnownMessage> {
    let continued = match &planned.position {
        TurnPosition::Within(id) => find_known(known, id),
        TurnPosition::AtLeaf if planned.is_continuation() => {
            known.last().filter(|known| !known.stored.is_users)
        }
        // The client's copy ends with the newest answer.
        TurnPosition::After(id) if planned.is_continuation() => known
            .last()
            .filter(|known| !known.stored.is_users && known.stored.id == *id),
        _ => None,
    };
    continued.filter(|known| known.rows.last().is_some_and(|row| row.is_run_member))
}

/// The newest answer of the path, if the turn continues or follows it.
fn find_followed<'k>(
    planned: &RequestPlan<'_>,
    known: &'k [KnownMessage],
) -> Option<&'k KnownMessage> {
    let newest = known.last().filter(|known| !known.stored.is_users)?;
    let is_followed = match &planned.position {
        TurnPosition::AtLeaf => true,
        TurnPosition::After(id) | TurnPosition::Within(id) => *id == newest.stored.id,
        TurnPosition::AlternativeTo(_) | TurnPosition::AlternativeToNewest => false,
    };
    is_followed.then_some(newest)
}

pub fn turn_in_progress() -> Error {
    Error::new(
        Code::TurnInProgress,
        "A turn of this session is running. Wait until it ends, or stop it with `cancelTurn`.",
    )
}

/// Whether a retry may succeed after this error.
pub fn is_temporary(code: Code) -> bool {
    matches!(
        code,
        Code::StorageFailed | Code::RateLimited | Code::TurnInProgress
    )
}
