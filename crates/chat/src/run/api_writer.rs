//! Creates a turn from a request in a provider's API. One transaction writes the missing
//! part of the request's history, the caller's results, and the turn. The caller must have
//! looked up where the history continues in the log in the same synchronous section.
//!
//! Assistant messages in such a history are the caller's claims. They are stored with
//! `source: client` in their metadata, and what the model derives from them counts as
//! imported.

use std::rc::Rc;

use crate::record::TurnRecord;
use crate::request::answers::ClientAnswer;
use crate::request::api_turn::ApiTurn;
use crate::request::known_messages::{KnownMessage, event_id, find_answers_end, load_message};
use crate::request::plan::{Answered, RequestPlan, TurnPosition};
use crate::run::agent::Agent;
use crate::run::answer_log::AnswerLog;
use crate::run::request_writer::{RequestWriter, turn_in_progress};
use crate::run::start::check_client_tools;
use crate::run::watchers::broadcast_list;
use crate::run::work::TurnWork;
use crate::turn::store::{has_turn, insert_turn};
use crate::turn::{LengthFeedback, Turn};
use access::{MemoryScope, needs_allowance};
use base::database::atomically;
use base::error::{Error, Result};
use base::ids::Id;
use conversation::log::MAX_EVENTS;
use conversation::log::append::{Parent, append};
use conversation::log::event::NewEvent;
use conversation::log::find::find_seqs;
use conversation::log::sessions::session_exists;
use conversation::log::tip::get_tip;
use conversation::session::meter::Meter;
use conversation::session::path_digests;
use models::{TokenUsage, ToolDefinition};
use store::config::load_config;

/// Where the request's history continues in the log.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ApiPosition {
    /// The log has no part of the history.
    Root,
    /// The history continues after this event.
    After(i64),
}

/// A request in a provider's API, for a session.
pub struct ApiRequest {
    pub api: ApiTurn,
    /// The model, if the request names another one than the agent's.
    pub model: Option<Id>,
    pub system_instructions: Vec<String>,
    pub client_tools: Vec<ToolDefinition>,
    pub position: ApiPosition,
    /// The results of calls that wait for the caller at that position.
    pub answers: Vec<ClientAnswer>,
    /// The events that the log lacks, in order.
    pub events: Vec<NewEvent>,
}

/// Checks what the caller's token allows, writes the request, and starts its turn.
pub fn start_api(
    agent: &Agent<'_>,
    session_id: &Id,
    request: ApiRequest,
    turn_id: &str,
) -> Result<TurnWork> {
    let caller = agent.caller;
    if let Some(model) = &request.model
        && !caller.may_choose_model(model.as_str())
    {
        return Err(needs_allowance("model", "models"));
    }
    if !request.system_instructions.is_empty() && !caller.may_set_system_instructions() {
        return Err(needs_allowance("system", "systemInstructions"));
    }
    check_client_tools(caller, &request.client_tools, "tools")?;
    if agent.turns.find(session_id).is_some() || has_turn(agent.db, session_id)? {
        return Err(turn_in_progress());
    }
    let retained_bytes = retained_bytes(&request);
    let reservation = agent.turns.reserve(retained_bytes)?;
    let writer = RequestWriter::of(agent, session_id, agent.caller.principal());
    let turn = atomically(agent.db, || writer.write_api(&request, turn_id))?;
    // The turn is stored now: nothing below may prevent it from starting.
    let work = agent.begin(turn, reservation);
    broadcast_list(agent, session_id, Some(turn_id));
    Ok(work)
}

/// The bytes of the request that its turn keeps in memory.
fn retained_bytes(request: &ApiRequest) -> usize {
    let texts = request.system_instructions.iter().map(String::len);
    let tools = request.client_tools.iter();
    let tools = tools.map(|tool| tool.description.len() + tool.parameters.get().len());
    let caller = &request.api.caller;
    let given = caller.tools.values().chain(&caller.tool_list);
    let given = given.map(|tool| tool.get().len());
    let system = request
        .api
        .caller
        .system
        .iter()
        .map(|block| block.get().len());
    texts.chain(tools).chain(given).chain(system).sum::<usize>()
        + request.api.caller.fields.as_str().len()
}

impl RequestWriter<'_> {
    /// Must run inside a transaction.
    fn write_api(&self, request: &ApiRequest, turn_id: &str) -> Result<Turn> {
        let (db, host) = (self.db, self.host);
        if !session_exists(db, self.session_id)? {
            self.create_session()?;
        }
        let config = load_config(db, self.deployed)?;
        let known = match request.position {
            ApiPosition::After(seq) => {
                let copied_seq = get_tip(db, self.session_id)?.copied_seq;
                load_message(db, self.session_id, seq, copied_seq)?
            }
            ApiPosition::Root => None,
        };
        let mut parent = match request.position {
            ApiPosition::Root => None,
            ApiPosition::After(seq) => Some(event_id(db, self.session_id, seq)?),
        };
        let mut memory_scope = self.principal.memory_scope;
        let mut continued: Option<&KnownMessage> = None;
        if let (Some(known), false) = (&known, request.answers.is_empty()) {
            self.write_answers(request, known)?;
            memory_scope = memory_scope.min(known.memory_scope()?);
            parent = find_answers_end(db, self.session_id, &known.stored.id)?;
            continued = Some(known).filter(|_| request.events.is_empty());
        }
        if request.events.is_empty()
            && let Some(last_id) = &parent
        {
            memory_scope = memory_scope.min(self.memory_scope_of(last_id)?);
        }
        for some in request.events.chunks(MAX_EVENTS) {
            let after = parent.map_or(Parent::Root, Parent::After);
            let appended = append(db, host, self.session_id, some, &after, None)?;
            let last = appended.events.into_iter().next_back();
            parent = last
                .map(|last| Id::parse(last.id))
                .transpose()
                .map_err(Error::storage)?;
        }
        let Some(last_id) = parent else {
            return Err(nothing_to_answer());
        };
        let seqs = find_seqs(db, self.session_id, std::iter::once(&last_id))?;
        let last_seq = seqs.get(last_id.as_str()).copied().unwrap_or_default();
        path_digests::record(db, self.session_id, &request.api.path, last_seq, false)?;
        let meter = Meter {
            db,
            host,
            config: &config,
            token: self.principal.limits.as_ref(),
            budget: None,
        };
        // A turn that continues after the caller's results is the same turn.
        meter.admit(continued.is_none())?;
        let answer_seq = get_tip(db, self.session_id)?.last_seq() + 1;
        let message_id = match continued {
            Some(known) => known.stored.id.clone(),
            None => Id::mint_event(host, answer_seq).as_str().to_owned(),
        };
        let mut turn = Turn {
            id: turn_id.to_owned(),
            session_id: self.session_id.clone(),
            message_id,
            is_continuation: continued.is_some(),
            parent_id: Some(last_id),
            answer_seq,
            max_steps: usize::try_from(config.max_steps.0).unwrap_or(1),
            model: request
                .model
                .as_ref()
                .map(|model| model.as_str().to_owned()),
            system_instructions: request.system_instructions.clone(),
            client_tools: request.client_tools.clone(),
            only_session: (!memory_scope.is_agent()).then(|| self.session_id.clone()),
            agent_memory: memory_scope == MemoryScope::SessionAndMemory,
            declined: Vec::new(),
            steps: Vec::new(),
            usage: TokenUsage::default(),
            cost: 0.0,
            last_model: None,
            estimated: 0,
            is_run: false,
            skips_callbacks: false,
            length_feedback: LengthFeedback::default(),
            untrusted: None,
            limits: self.principal.limits.clone(),
            record: TurnRecord {
                started_at: host.now_ms(),
                asked_by: self.asked_by(),
                trace: self.begin_trace(),
                ..TurnRecord::default()
            },
            api: Some(Rc::new(request.api.clone())),
            stored_bytes: 0,
        };
        insert_turn(db, &mut turn, answer_seq)?;
        Ok(turn)
    }

    fn write_answers(&self, request: &ApiRequest, known: &KnownMessage) -> Result<()> {
        let authority = self.principal.authority();
        let answers = AnswerLog {
            db: self.db,
            host: self.host,
            session_id: self.session_id,
            authority: &authority,
        };
        let message_id = &known.stored.id;
        let planned = RequestPlan {
            position: TurnPosition::Within(message_id.clone()),
            new_user_messages: Vec::new(),
            edited: None,
            answers: request
                .answers
                .iter()
                .map(|answer| Answered {
                    message_id: message_id.clone(),
                    answer: answer.clone(),
                    is_in_last_message: true,
                })
                .collect(),
            approvals: Vec::new(),
            still_open: Vec::new(),
        };
        answers
            .store_answers(&planned, std::slice::from_ref(known), None)
            .map(drop)
    }
}

fn nothing_to_answer() -> Error {
    Error::invalid(
        "messages",
        "`messages` contains no message to answer: send a user's message.",
    )
}
