//! A turn for a caller who wants its answer whole: a server, not a page.

use crate::json_schema::JsonSchema;
use std::rc::Rc;

use serde::{Deserialize, Serialize};

use crate::limits::EVENTS_BODY_BYTES;
use crate::operation::{Agent, Operation, Reply, RunWaiting};
use access::{Caller, Effect, Needs, permit_role};
use base::action::Role;
use base::error::{Code, Error, Result};
use base::ids::Id;
use base::json::{self, JsonObject, RawValue, optional_list};
use chat::request::client_tools::{MAX_CLIENT_TOOLS, parse_client_tools};
use chat::request::known_messages::check_repeated;
use chat::request::queued_requests::find_of_message;
use chat::request::{ChatRequest, ClientMessage, Trigger, parse_message};
use chat::run::resume::resume_turn;
use chat::run::running_turns::{AwaitedTurn, RunningTurn, TurnStart};
use chat::run::start::Started;
use chat::run::start::start_permitted;
use chat::turn::report::{TurnFinish, TurnReport, find_report};
use chat::turn::store::find_turn;
use conversation::log::find::find_seqs;
use conversation::log::note::get_note;
use conversation::log::sessions::session_exists;
use conversation::messages::read::find_message_around;
use conversation::session::spending::TurnUsage;
use store::config::{MAX_INSTRUCTIONS, check_instructions};
use store::when_busy::WhenBusy;

/// Writes a user's message, runs its turn, and returns when the turn ends.
///
/// A session that doesn't exist is created. If you repeat the call with the same message
/// id, it waits for the same turn, or returns the same answer; with another text it is
/// refused. The turn continues if the caller disconnects. If a turn fails, the call fails;
/// the turn's output so far stays in the session. A token needs the same permissions as for
/// a chat request.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RunTurn {
    session_id: Id,
    /// A user's message of the AI SDK. With an `id`, the call may be repeated safely.
    message: JsonObject,
    /// The model of this turn; see `configureAgent`.
    model: Option<Id>,
    /// Texts to add after the agent's own system instructions in this turn.
    #[serde(
        default,
        deserialize_with = "optional_list::<_, _, 0, MAX_INSTRUCTIONS>"
    )]
    #[schemars(length(max = MAX_INSTRUCTIONS))]
    system_instructions: Option<Vec<String>>,
    /// Tools of the caller: `{name, description, parameters}`. A turn that calls one ends
    /// with `tool-calls`.
    #[serde(
        default,
        deserialize_with = "optional_list::<_, _, 0, MAX_CLIENT_TOOLS>"
    )]
    #[schemars(length(max = MAX_CLIENT_TOOLS))]
    tools: Option<Vec<JsonObject>>,
    /// What to do with the message if a turn of the session is running. Default: the
    /// agent's setting. `replace` requires a token that can run `cancelTurn`.
    when_busy: Option<WhenBusy>,
    /// The `deliveryId` of the call of `onTurnEnd` or `onMemoryChange` that this request
    /// answers. The end of this turn, and its writes to memory, cause no further calls. An
    /// id that this agent did not issue for a turn of this session or for memory has no
    /// effect.
    delivery_id: Option<Id>,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TurnResult {
    /// The assistant's message; `null`: the turn had no output.
    #[schemars(with = "Option<JsonObject>")]
    message: Option<Box<RawValue>>,
    usage: TurnUsage,
    finish_reason: TurnFinish,
    /// The number of requests to the model.
    steps: usize,
}

impl Operation for RunTurn {
    const NAME: &'static str = "runTurn";
    const NEEDS: Needs = Needs::Session;
    const EFFECT: Effect = Effect::Messages;
    const MAX_BODY_BYTES: usize = EVENTS_BODY_BYTES;
    type Output = TurnResult;

    fn session_id(&self) -> Option<&Id> {
        Some(&self.session_id)
    }
}

impl RunWaiting for RunTurn {
    async fn run(self, agent: &Agent<'_>) -> Result<Reply> {
        let session_id = self.session_id.clone();
        let found = start_or_find(agent, &session_id, self.into_request(agent)?)?;
        // The turn may take minutes, and the message is stored now.
        agent.release_body();
        agent.starter.recover();
        let running = match found {
            FoundTurn::Over { answer_id, report } => {
                return answer(agent, &session_id, &answer_id, &report);
            }
            FoundTurn::Running(running) => running,
            FoundTurn::Waiting(awaited) => match awaited.wait_for_start().await {
                TurnStart::Running(running) => running,
                TurnStart::Never(Some(error)) => return Err(error),
                TurnStart::Never(None) => return Reply::json(&TurnResult::withdrawn()),
            },
        };
        let report = running.ends().await?;
        if running.has_lost_log() {
            return Reply::json(&TurnResult::of(None, &report));
        }
        let answer_id = Id::parse(running.message_id.clone()).map_err(Error::storage)?;
        answer(agent, &session_id, &answer_id, &report)
    }
}

impl RunTurn {
    fn into_request(self, agent: &Agent<'_>) -> Result<ChatRequest> {
        let message = parse_message("message", self.message)?;
        permit_role(
            agent.caller,
            message.role == Some(Role::User),
            "message.role",
        )?;
        if message.role != Some(Role::User) {
            return Err(Error::invalid(
                "message.role",
                "`message.role` must be `user`: a turn answers a user's message.",
            ));
        }
        let system_instructions = self.system_instructions.unwrap_or_default();
        check_instructions(&system_instructions)?;
        let client_tools = match self.tools {
            Some(tools) => {
                let tools = json::raw(json::encode(&tools)?)?;
                parse_client_tools("tools", &tools)?
            }
            None => Vec::new(),
        };
        Ok(ChatRequest {
            session_id: None,
            trigger: Trigger::Submit { message_id: None },
            messages: vec![message],
            client_tools,
            tools_field: "tools",
            model: self.model,
            system_instructions,
            when_busy: self.when_busy,
            is_run: true,
            is_shown: false,
            // A service that runs a turn before it answers is not notified of that turn: it would
            // run the next one. A page is not such a service.
            skips_callbacks: *agent.caller == Caller::Owner
                && agent.work.callbacks.is_of(&self.session_id),
            delivery_id: self.delivery_id,
        })
    }
}

enum FoundTurn {
    Running(Rc<RunningTurn>),
    Waiting(Rc<AwaitedTurn>),
    Over { answer_id: Id, report: TurnReport },
}

/// Begins the turn, or finds the turn that the same message began before.
fn start_or_find(
    agent: &Agent<'_>,
    session_id: &Id,
    mut request: ChatRequest,
) -> Result<FoundTurn> {
    if let [message] = request.messages.as_slice()
        && let Some(id) = &message.id
        && let Some(earlier) = find_earlier(agent, session_id, id, message)?
    {
        return Ok(earlier);
    }
    let turn_id = Id::mint_turn(agent.host);
    match start_permitted(agent, session_id, &mut request, turn_id.as_str())? {
        Started::Turn(work) => {
            let running = Rc::clone(work.running());
            agent.starter.begin(work);
            Ok(FoundTurn::Running(running))
        }
        Started::Queued(awaited) => Ok(FoundTurn::Waiting(awaited)),
        Started::LeftToClient { .. } => Err(Error::storage("a new message without a turn")),
    }
}

/// The outcome of an earlier call with this message. `None`: there was no such call, or
/// its turn ended without an answer, so the message is still to be answered.
fn find_earlier(
    agent: &Agent<'_>,
    session_id: &Id,
    message_id: &Id,
    message: &ClientMessage,
) -> Result<Option<FoundTurn>> {
    let db = agent.db;
    if let Some(queued) = find_of_message(db, session_id, message_id)? {
        let awaited = agent.turns.wait_for(session_id, &queued.turn_id);
        return Ok(Some(FoundTurn::Waiting(awaited)));
    }
    if !session_exists(db, session_id)? {
        return Ok(None);
    }
    let found = find_seqs(db, session_id, std::iter::once(message_id))?;
    let Some(seq) = found.get(message_id.as_str()) else {
        return Ok(None);
    };
    let Some(answer_id) = get_note(db, session_id, *seq)?.run_answer else {
        return Err(Error::new(
            Code::AlreadyExists,
            "This session already has a message with this id that `runTurn` didn't write. Send the \
             new message with another id.",
        )
        .with("id", message_id.as_str()));
    };
    let hint = "To repeat a call, send the same text. Send a new message with another id.";
    check_repeated(db, session_id, message, hint)?;
    if agent.turns.find(session_id).is_none()
        && find_turn(db, session_id)?.is_some_and(|turn| turn.message_id == answer_id)
        && let Some(work) = resume_turn(agent, session_id)?
    {
        agent.starter.begin(work);
    }
    let running = agent.turns.find(session_id);
    if let Some(running) = running.filter(|running| running.message_id == answer_id) {
        return Ok(Some(FoundTurn::Running(running)));
    }
    let answer_id = Id::parse(answer_id).map_err(Error::storage)?;
    let found = find_seqs(db, session_id, std::iter::once(&answer_id))?;
    let Some(seq) = found.get(answer_id.as_str()) else {
        return Ok(None);
    };
    let report = find_report(db, session_id, *seq)?;
    Ok(Some(FoundTurn::Over { answer_id, report }))
}

/// The answer of a finished turn. A turn that failed is an error.
fn answer(
    agent: &Agent<'_>,
    session_id: &Id,
    answer_id: &Id,
    report: &TurnReport,
) -> Result<Reply> {
    let message = if session_exists(agent.db, session_id)? {
        find_message_around(agent.db, session_id, answer_id)?
    } else {
        None
    };
    if let Err(error) = report.check() {
        return Err(match message {
            Some(_) => error.with("messageId", answer_id.as_str()),
            None => error,
        });
    }
    let message = message.map(|message| json::raw(message.json));
    Reply::json(&TurnResult::of(message.transpose()?, report))
}

impl TurnResult {
    fn of(message: Option<Box<RawValue>>, report: &TurnReport) -> Self {
        Self {
            message,
            usage: report.spent.usage(),
            finish_reason: report.finish_reason,
            steps: report.steps,
        }
    }

    /// The answer to a message that was withdrawn from the queue.
    fn withdrawn() -> Self {
        Self {
            message: None,
            usage: TurnUsage::default(),
            finish_reason: TurnFinish::Cancelled,
            steps: 0,
        }
    }
}
