//! Chat turns. A turn is not an operation, because its answer is a stream, but the same
//! tokens allow turns under the name `chat`.

use std::rc::Rc;

use super::line::{line_up, take_waiting};
use super::listener::{TurnListener, left_to_client};
use super::operation::Agent;
use super::route::parse_session_id;
use super::turn_parts::{
    CHAT_RULE, accepting, begin, call_back, is_for_later, show_if_watched, show_updated,
    turn_context,
};
use crate::access::{Caller, permit};
use crate::base::database::{Database, atomically};
use crate::base::error::{Code, Error, Result};
use crate::base::ids::Id;
use crate::base::owner::work_for;
use crate::chat::request::delivery::Delivery;
use crate::chat::request::waiting;
use crate::chat::request::{ChatRequest, parse_chat_request};
use crate::chat::run::driver;
use crate::chat::run::early::{self, EarlyAnswer, find_oldest, forget};
use crate::chat::run::recover;
use crate::chat::run::running_turns::{AwaitedTurn, ClientReply};
use crate::chat::run::work::TurnWork;
use crate::chat::stream::recount::recount;
use crate::chat::turn::store::{MAX_TAKEN_UP, has_turn, load_sessions_cut_off};
use crate::messages::read::find_message;
use crate::models::ToolDefinition;
use crate::models::choice::ModelName;
use crate::store::last_turns::{MAX_FOUND, settle_surplus};

pub struct BegunTurn {
    pub listener: TurnListener,
    pub work: Option<TurnWork>,
}

/// Begins a turn. `session_id` comes from the address; a session in the body takes
/// precedence.
pub fn begin_chat(
    agent: &Agent<'_>,
    session_id: &str,
    body: impl Into<Vec<u8>>,
) -> Result<BegunTurn> {
    let begun = parse_and_begin(agent, session_id, body.into());
    #[cfg(test)]
    super::answers::hold_refusal(CHAT_RULE.operation, &begun);
    begun
}

fn parse_and_begin(agent: &Agent<'_>, session_id: &str, body: Vec<u8>) -> Result<BegunTurn> {
    let mut request = parse_chat_request(&body)?;
    drop(body);
    let session_id = match &request.session_id {
        Some(id) => id.clone(),
        None => parse_session_id(session_id)?,
    };
    let turn_id = Id::mint_turn(agent.host);
    let started = start(agent, &session_id, &mut request, turn_id.as_str())?;
    Ok(match started {
        Started::Turn(work) => BegunTurn {
            listener: TurnListener::to(Rc::clone(work.running())),
            work: Some(work),
        },
        Started::Queued(place) => BegunTurn {
            listener: TurnListener::from(place),
            work: None,
        },
        Started::LeftToClient { message_id } => BegunTurn {
            listener: left_to_client(message_id),
            work: None,
        },
    })
}

pub enum Started {
    Turn(TurnWork),
    /// The message waits for the end of another turn.
    Queued(Rc<AwaitedTurn>),
    /// Tool calls of this message still wait for the client's results.
    LeftToClient {
        message_id: String,
    },
}

/// Writes a request's messages to the log and begins the turn.
pub fn start(
    agent: &Agent<'_>,
    session_id: &Id,
    request: &mut ChatRequest,
    turn_id: &str,
) -> Result<Started> {
    permit(agent.caller, CHAT_RULE, Some(session_id))?;
    start_permitted(agent, session_id, request, turn_id)
}

/// Does the same for a caller who was permitted to run turns.
pub fn start_permitted(
    agent: &Agent<'_>,
    session_id: &Id,
    request: &mut ChatRequest,
    turn_id: &str,
) -> Result<Started> {
    check_wishes(agent.caller, request)?;
    if let Some(id) = &request.delivery_id {
        request.calls_nobody_back |= Delivery::of(agent.policy, agent.name, session_id).gave(id);
    }
    let request = &*request;
    if let Some(place) = line_up(agent, session_id, request, turn_id)? {
        return Ok(Started::Queued(place));
    }
    let reservation = agent.turns.reserve(request.kept_bytes())?;
    let accepting = accepting(agent, session_id, agent.caller.asker());
    let started = accepting.accept(request, turn_id)?;
    // The turn is stored now: nothing below may keep it from beginning.
    let work = started.turn.map(|turn| begin(agent, turn, reservation));
    if started.has_changed {
        show_if_watched(agent, session_id, Some(turn_id));
    }
    Ok(match work {
        Some(work) => Started::Turn(work),
        None => Started::LeftToClient {
            message_id: started.message_id,
        },
    })
}

/// Checks that the caller's token allows the request's own model, system prompt and
/// tools.
fn check_wishes(caller: &Caller, request: &ChatRequest) -> Result<()> {
    if let Some(model) = &request.model {
        ModelName::parse("model", model.as_str())?;
        if !caller.may_choose_model(model.as_str()) {
            return Err(not_allowed("model", "models"));
        }
    }
    if !request.system_instructions.is_empty() && !caller.may_set_system_instructions() {
        return Err(not_allowed("systemInstructions", "systemInstructions"));
    }
    check_client_tools(caller, &request.client_tools, request.tools_field)
}

/// Checks that the caller may bring these tools.
pub fn check_client_tools(caller: &Caller, tools: &[ToolDefinition], field: &str) -> Result<()> {
    if tools.is_empty() || caller.may_bring_client_tools() {
        return Ok(());
    }
    Err(not_allowed(field, "clientTools"))
}

fn not_allowed(field: &str, allowance: &str) -> Error {
    Error::new(
        Code::Forbidden,
        format!("This token does not allow `{field}`: leave it out, or have a token minted whose `allow.{allowance}` says so."),
    )
    .with("field", field)
}

/// Follows the running turn from its beginning; `None`: no turn runs.
pub fn resume_chat(agent: &Agent<'_>, session_id: &str) -> Result<Option<BegunTurn>> {
    let session_id = parse_session_id(session_id)?;
    permit(agent.caller, CHAT_RULE, Some(&session_id))?;
    let work = take_up(agent, &session_id)?;
    let Some(running) = agent.turns.find(&session_id) else {
        return Ok(None);
    };
    let mut listener = TurnListener::to(Rc::clone(&running));
    if running.is_continuation
        && let Some(id) = Id::parse(running.message_id.clone()).ok()
        // A message that can't be read is left out: the turn goes on anyway.
        && let Ok(Some(message)) = find_message(agent.db, &session_id, &id)
    {
        let (chunks, _) = recount(&message.json);
        match listener.begin_with(&running, &chunks) {
            // A turn that was taken up goes on in any case.
            Err(_) if work.is_some() => {}
            begun => begun?,
        }
    }
    Ok(Some(BegunTurn { listener, work }))
}

/// Takes up a turn that was cut off; `None`: there is none, or the turn runs already.
pub fn take_up(agent: &Agent<'_>, session_id: &Id) -> Result<Option<TurnWork>> {
    if agent.turns.find(session_id).is_some() || !has_turn(agent.db, session_id)? {
        return Ok(None);
    }
    let taken = recover::take_up(turn_context(agent), session_id)?;
    Ok(taken.map(|taken| TurnWork::TakeUp(Box::new(taken))))
}

/// The result of a look for turns that were cut off.
#[derive(Default)]
pub struct RecoveryRound {
    pub works: Vec<TurnWork>,
    /// Why some turns could not be taken up. One failure does not stop the other turns.
    pub failures: Vec<Error>,
    /// More turns are left, for when these have ended or for the next look.
    pub is_more_left: bool,
}

impl RecoveryRound {
    /// Takes what a few sessions' turns left.
    fn take_left(
        &mut self,
        agent: &Agent<'_>,
        load: fn(&dyn Database) -> Result<Vec<Id>>,
        take: fn(&Agent<'_>, &Id) -> Result<Option<TurnWork>>,
    ) {
        match load(agent.db) {
            Ok(sessions) => {
                self.is_more_left |= sessions.len() == MAX_FOUND;
                for session_id in sessions {
                    self.take(take(agent, &session_id));
                }
            }
            Err(error) => self.take(Err(error)),
        }
    }

    fn take(&mut self, outcome: Result<Option<TurnWork>>) {
        match outcome {
            Ok(work) => self.works.extend(work),
            // The turn was closed: a later look does not find it.
            Err(error) if error.code == Code::CorruptRow => self.failures.push(error),
            Err(error) => {
                self.failures.push(error);
                self.is_more_left = true;
            }
        }
    }
}

/// Takes up a few of the turns that were cut off, and early answers and waiting messages
/// that are left after a turn's end.
pub fn take_up_some(agent: &Agent<'_>) -> RecoveryRound {
    let mut look = RecoveryRound::default();
    let free = MAX_TAKEN_UP.saturating_sub(agent.turns.count_taken_up());
    match load_sessions_cut_off(agent.db, &agent.turns.sessions(), free + 1) {
        Ok(sessions) => {
            look.is_more_left = sessions.len() > free;
            for session_id in sessions.iter().take(free) {
                look.take(take_up(agent, session_id));
            }
        }
        Err(error) => look.take(Err(error)),
    }
    if let Err(error) = settle_surplus(agent.db) {
        look.take(Err(error));
    }
    look.take_left(agent, early::load_sessions_left, take_early_answers);
    look.take_left(agent, waiting::load_sessions_left, take_waiting);
    look
}

/// Runs a turn to its end; returns the session that grew.
pub async fn run(agent: &Agent<'_>, work: TurnWork) -> Id {
    let mut work = work;
    loop {
        let running = Rc::clone(work.running());
        work_for(running.session_id.as_str(), run_one(agent, work)).await;
        match find_next_work(agent, &running.session_id) {
            Ok(Some(next)) => work = next,
            // The next look retries what failed.
            Ok(None) | Err(_) => return running.session_id.clone(),
        }
    }
}

/// What goes on after a turn: a message that replaced the turn, an early answer that
/// continues the turn, or the next message that waits.
fn find_next_work(agent: &Agent<'_>, session_id: &Id) -> Result<Option<TurnWork>> {
    let first = waiting::find_first(agent.db, session_id)?;
    if !first.is_some_and(|place| place.goes_first())
        && let Some(work) = take_early_answers(agent, session_id)?
    {
        return Ok(Some(work));
    }
    take_waiting(agent, session_id)
}

async fn run_one(agent: &Agent<'_>, work: TurnWork) {
    let running = Rc::clone(work.running());
    match work {
        TurnWork::Begin(running, turn) => driver::run(turn_context(agent), &running, *turn).await,
        TurnWork::TakeUp(taken) => driver::go_on(turn_context(agent), *taken).await,
    }
    agent.turns.outlast(&running);
    call_back(agent);
    // The client that asked has the turn, but not what others wrote meanwhile.
    let has_all = !running.is_continuation && !running.has_news();
    let except = has_all.then_some(running.request_id.as_str());
    show_if_watched(agent, &running.session_id, except);
}

/// Takes the early answers, which came while a turn ran, in their order, until one makes
/// a turn go on. The rest wait for the end of that turn. An answer that no call asks for
/// any more, or that the log can't take, is dropped.
fn take_early_answers(agent: &Agent<'_>, session_id: &Id) -> Result<Option<TurnWork>> {
    while let Some(EarlyAnswer { number, reply }) = find_oldest(agent.db, session_id)? {
        let Some(reply) = reply else {
            forget(agent.db, session_id, number)?;
            continue;
        };
        match take_reply(agent, session_id, reply, Some(number)) {
            Ok(None) => {}
            Ok(work) => return Ok(work),
            Err(error) if is_for_later(error.code) => return Err(error),
            Err(_) => forget(agent.db, session_id, number)?,
        }
    }
    Ok(None)
}

/// Writes an answer to a tool call; returns the turn that goes on, if one does.
pub fn take_answer(
    agent: &Agent<'_>,
    session_id: &Id,
    given: ClientReply,
) -> Result<Option<TurnWork>> {
    take_reply(agent, session_id, given, None)
}

/// `early`: the number of the early answer that holds this reply until now.
fn take_reply(
    agent: &Agent<'_>,
    session_id: &Id,
    given: ClientReply,
    early: Option<i64>,
) -> Result<Option<TurnWork>> {
    let reservation = agent.turns.reserve(0)?;
    let accepting = accepting(agent, session_id, given.asker());
    let turn_id = Id::mint_turn(agent.host);
    let started = atomically(agent.db, || {
        if let Some(number) = early {
            forget(agent.db, session_id, number)?;
        }
        accepting.accept_answer(
            given.answer,
            given.continues,
            &given.client_tools,
            turn_id.as_str(),
        )
    })?;
    let Some(started) = started else {
        return Ok(None);
    };
    // The turn is stored now: nothing below may keep it from beginning.
    let work = started.turn.map(|turn| begin(agent, turn, reservation));
    show_updated(agent, session_id, &started.message_id);
    Ok(work)
}
