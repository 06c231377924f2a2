//! A socket's frames, answered. What a socket is (its seat) is kept with it, so
//! that it survives the object's sleep.

use serde::{Deserialize, Serialize};

use super::dispatch::dispatch;
use super::operation::{Agent, CHAT, Operation};
use super::operations::chat::CancelTurn;
use super::operations::messages::ClearMessages;
use super::route::parse_session_id;
use super::shown::load_shown;
use super::table::{is_operation, unknown_operation};
use super::turns::{self, Started, Work, start, take_up};
use crate::access::{Caller, Scope, permit};
use crate::base::error::{Code, Error, Result};
use crate::base::ids::Id;
use crate::chat::answers::Answer;
use crate::chat::early;
use crate::chat::frames::incoming::{Incoming, parse_frame};
use crate::chat::frames::outgoing::{
    TurnOutcome, render_clear, render_failed, render_first_messages, render_identity,
    render_messages, render_resume_none, render_resuming, render_rpc_error, render_rpc_result,
};
use crate::chat::live::ClientReply;
use crate::chat::request::ChatRequest;
use crate::chat::store::has_turn;
use crate::lifecycle::clear::clear_messages;
use crate::models::ToolDefinition;

/// What is kept with a socket.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Seat {
    /// The session that it speaks of.
    pub session_id: Id,
    /// What its token allows; `None`: everything.
    pub scope: Option<Scope>,
    /// The turn that it asked for last.
    #[serde(default)]
    pub asked: Option<String>,
    /// It was told of a turn and has not acknowledged: live chunks are withheld.
    #[serde(default)]
    pub is_held: bool,
    /// A turn ran when it was opened, of which it has heard nothing since.
    #[serde(default)]
    pub opened_in_turn: bool,
}

impl Seat {
    pub fn new(session_id: Id, caller: &Caller) -> Self {
        let scope = match caller {
            Caller::Owner => None,
            Caller::Scoped(scope) => Some(scope.clone()),
        };
        Self {
            session_id,
            scope,
            asked: None,
            is_held: false,
            opened_in_turn: false,
        }
    }

    pub fn caller(&self) -> Caller {
        match &self.scope {
            None => Caller::Owner,
            Some(scope) => Caller::Scoped(scope.clone()),
        }
    }

    pub fn has_expired(&self, now_ms: i64) -> bool {
        self.scope
            .as_ref()
            .is_some_and(|scope| scope.expires_at <= now_ms)
    }
}

/// Takes a seat: for who may chat in the session.
pub fn open(agent: &Agent<'_>, session_id: String) -> Result<Seat> {
    let session_id = parse_session_id(&session_id)?;
    permit(agent.caller, turns::CHAT_RULE, Some(&session_id))?;
    Ok(Seat {
        opened_in_turn: has_turn(agent.db, &session_id)?,
        ..Seat::new(session_id, agent.caller)
    })
}

/// Sockets that one session has open at once. Each is sent the session's newest
/// messages when it opens, and nobody sees how much of that its page has read.
pub const MAX_SESSION_SOCKETS: usize = 64;

/// Whether a session that has so many sockets open may have one more.
pub fn check_sockets(open: usize) -> Result<()> {
    if open < MAX_SESSION_SOCKETS {
        return Ok(());
    }
    Err(Error::new(
        Code::RateLimited,
        format!("This session has {MAX_SESSION_SOCKETS} sockets open, which is the limit. Close one, then open this one again."),
    )
    .with("retryAfter", 5))
}

/// What a socket is told first: whom it reached, and how the session stands. A
/// page that lost its socket while a turn ended hears of the answer by this alone.
pub fn greet(agent: &Agent<'_>, seat: &Seat) -> Result<Vec<String>> {
    let mut frames = vec![render_identity(agent.name)];
    let messages = load_shown(agent.db, &seat.session_id)?;
    // What a page has begun to say in an empty session is its own.
    if messages != "[]" {
        frames.push(render_first_messages(&messages));
    }
    Ok(frames)
}

/// What came of a frame.
#[derive(Default)]
pub struct Heard {
    /// For the socket that it came from, in order.
    pub replies: Vec<String>,
    /// The seat, where it has changed.
    pub seat: Option<Seat>,
    pub work: Option<Work>,
    /// As a reply of an operation has them.
    pub grown: Option<Id>,
    pub indexing_goes_on: bool,
    pub empties_storage: bool,
}

impl Heard {
    fn reply(frame: String) -> Self {
        Self {
            replies: vec![frame],
            ..Self::default()
        }
    }
}

/// Answers one frame.
pub async fn hear(agent: &Agent<'_>, seat: &Seat, text: &str) -> Result<Heard> {
    match parse_frame(text) {
        Incoming::Chat { id, request } => Ok(ask(agent, seat, id, &request)),
        Incoming::Cancel { id } => {
            if may_cancel(agent, seat, &id) {
                cancel(agent, seat, Some(&id));
            }
            Ok(Heard::default())
        }
        Incoming::Clear => clear(agent, seat),
        Incoming::Answer {
            answer,
            continues,
            client_tools,
        } => take_answer(agent, seat, answer, continues, client_tools),
        Incoming::ResumeRequest { probe_id } => resume(agent, seat, probe_id.as_deref()),
        Incoming::ResumeAck { id } => Ok(replay(agent, seat, &id)),
        Incoming::Rpc {
            id,
            operation,
            input,
        } => Ok(call(agent, &id, &operation, input).await),
        Incoming::Refused(frame) => Ok(Heard::reply(frame)),
        Incoming::Ignored => Ok(Heard::default()),
    }
}

fn ask(agent: &Agent<'_>, seat: &Seat, id: String, request: &ChatRequest) -> Heard {
    // The seat's session, whatever name the page has for its chat.
    match start(agent, &seat.session_id, request, &id) {
        Ok(Started::Turn(work)) => Heard {
            seat: Some(Seat {
                asked: Some(id),
                is_held: false,
                ..seat.clone()
            }),
            work: Some(work),
            ..Heard::default()
        },
        Ok(Started::Waiting { .. }) => {
            let telling = crate::chat::frames::outgoing::Telling {
                id: &id,
                is_continuation: false,
                is_replay: false,
            };
            Heard::reply(telling.render_done(TurnOutcome::Completed))
        }
        Err(error) => Heard::reply(render_failed(&id, &error.message, false)),
    }
}

/// Who asked for a turn may stop it; another's takes what `cancelTurn` takes. The
/// frame has no answer that says why not: its page goes on hearing the turn.
fn may_cancel(agent: &Agent<'_>, seat: &Seat, request_id: &str) -> bool {
    seat.asked.as_deref() == Some(request_id)
        || permit(agent.caller, CancelTurn::RULE, Some(&seat.session_id)).is_ok()
}

/// Stops the turn that runs, if it is that one.
fn cancel(agent: &Agent<'_>, seat: &Seat, request_id: Option<&str>) {
    let running = agent.desk.find(&seat.session_id);
    let meant = running.filter(|running| request_id.is_none_or(|id| id == running.request_id));
    if let Some(running) = meant {
        running.cancel();
    }
}

fn clear(agent: &Agent<'_>, seat: &Seat) -> Result<Heard> {
    let id = &seat.session_id;
    if permit(agent.caller, ClearMessages::RULE, Some(id)).is_err() {
        // Its page shows none already, and its frame has no answer that says why: it
        // is shown what is still there.
        let messages = load_shown(agent.db, id)?;
        return Ok(Heard::reply(render_messages(&messages)));
    }
    cancel(agent, seat, None);
    match clear_messages(agent.db, agent.host, id) {
        Ok(_) => {}
        // It was never created: it is clear already.
        Err(error) if error.code == Code::SessionNotFound => {}
        Err(error) => return Err(error),
    }
    agent
        .audience
        .tell(id, &render_clear(), seat.asked.as_deref());
    Ok(Heard::default())
}

fn take_answer(
    agent: &Agent<'_>,
    seat: &Seat,
    answer: Answer,
    continues: bool,
    client_tools: Vec<ToolDefinition>,
) -> Result<Heard> {
    let session_id = &seat.session_id;
    permit(agent.caller, turns::CHAT_RULE, Some(session_id))?;
    turns::check_client_tools(agent.caller, &client_tools, "clientTools")?;
    let given = ClientReply {
        answer,
        continues,
        client_tools,
        reach: agent.caller.reach(),
    };
    if has_turn(agent.db, session_id)? {
        // Durable before anything more is sent; what the client hears of it is the
        // message, once the turn is over.
        early::keep(agent.db, session_id, &given)?;
        return Ok(Heard::default());
    }
    let Some(work) = turns::take_answer(agent, session_id, given)? else {
        return Ok(Heard::default());
    };
    let turn_id = work.running().request_id.clone();
    Ok(Heard {
        replies: vec![render_resuming(&turn_id, None)],
        seat: Some(Seat {
            asked: Some(turn_id),
            is_held: true,
            ..seat.clone()
        }),
        work: Some(work),
        ..Heard::default()
    })
}

fn resume(agent: &Agent<'_>, seat: &Seat, probe_id: Option<&str>) -> Result<Heard> {
    let work = take_up(agent, &seat.session_id)?;
    let Some(running) = agent.desk.find(&seat.session_id) else {
        return gone_since(agent, seat, probe_id);
    };
    Ok(Heard {
        replies: vec![render_resuming(&running.request_id, probe_id)],
        seat: Some(Seat {
            is_held: true,
            opened_in_turn: false,
            ..seat.clone()
        }),
        work,
        ..Heard::default()
    })
}

/// There is no turn. Where one has ended since the socket was opened, its answer
/// was in no frame.
fn gone_since(agent: &Agent<'_>, seat: &Seat, probe_id: Option<&str>) -> Result<Heard> {
    let mut heard = Heard::reply(render_resume_none(probe_id));
    if seat.opened_in_turn {
        let messages = load_shown(agent.db, &seat.session_id)?;
        heard.replies.push(render_first_messages(&messages));
        heard.seat = Some(Seat {
            opened_in_turn: false,
            ..seat.clone()
        });
    }
    Ok(heard)
}

/// All that the turn has said so far; what follows is told as it is said.
fn replay(agent: &Agent<'_>, seat: &Seat, request_id: &str) -> Heard {
    let running = agent.desk.find(&seat.session_id);
    let freed = Some(Seat {
        is_held: false,
        ..seat.clone()
    });
    let Some(running) = running.filter(|running| running.request_id == request_id) else {
        // It ended in the meantime: what it said is in the history.
        let telling = crate::chat::frames::outgoing::Telling {
            id: request_id,
            is_continuation: false,
            is_replay: true,
        };
        let mut replies = vec![telling.render_done(TurnOutcome::Completed)];
        if let Ok(messages) = load_shown(agent.db, &seat.session_id) {
            replies.push(render_messages(&messages));
        }
        return Heard {
            replies,
            seat: freed,
            ..Heard::default()
        };
    };
    if !seat.is_held {
        // It has acknowledged already.
        return Heard::default();
    }
    let telling = running.telling(true);
    let mut replies = Vec::new();
    for number in 0..running.chunks_so_far() {
        if let Some(chunk) = running.chunk(number) {
            replies.push(telling.render_chunk(&chunk, number));
        }
    }
    replies.push(telling.render_replay_complete());
    Heard {
        replies,
        seat: freed,
        ..Heard::default()
    }
}

async fn call(agent: &Agent<'_>, id: &str, operation: &str, input: String) -> Heard {
    if !is_operation(operation) || operation == CHAT {
        let error = unknown_operation(operation);
        return Heard::reply(render_rpc_error(id, &error));
    }
    match dispatch(agent, operation, input).await {
        Ok(reply) => Heard {
            replies: vec![render_rpc_result(id, &reply.body.into_string())],
            grown: reply.grown,
            indexing_goes_on: reply.indexing_goes_on,
            empties_storage: reply.empties_storage,
            ..Heard::default()
        },
        Err(error) => Heard::reply(render_rpc_error(id, &error)),
    }
}
