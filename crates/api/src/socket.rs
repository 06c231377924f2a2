//! Handles the frames of a socket. The runtime stores each socket's `SocketState` with the
//! socket, so that it survives hibernation.

use serde::{Deserialize, Serialize};

use super::dispatch::dispatch;
use super::operation::{Agent, Operation};
use super::operations::chat::CancelTurn;
use super::operations::message_writes::ClearMessages;
use super::session_address::parse_session_id;
use super::table::{is_operation, unknown_operation};
use access::{Caller, TokenScope, permit};
use base::budget::MAX_ANSWER_BYTES;
use base::error::{Code, Error, Result};
use base::ids::Id;
use base::trace::StoredTrace;
use chat::frames::incoming::{Incoming, SdkRequest, parse_frame};
use chat::frames::outgoing::{
    FrameHeader, TurnOutcome, render_clear, render_failed, render_first_messages, render_identity,
    render_messages, render_resume_none, render_resuming, render_rpc_error, render_rpc_result,
};
use chat::frames::sdk::{Resumed, SdkSocket, render_no_active, render_start};
use chat::request::ChatRequest;
use chat::request::answers::CallAnswer;
use chat::run::agent::{CHAT, CHAT_RULE};
use chat::run::broadcast_throttle::MessageChange;
use chat::run::out_of_band;
use chat::run::queue::withdraw;
use chat::run::replies;
use chat::run::resume::resume_turn;
use chat::run::running_turns::{ClientReply, RunningTurn};
use chat::run::start::{Started, check_client_tools, start};
use chat::run::watchers::load_shown;
use chat::run::work::TurnWork;
use chat::turn::store::has_turn;
use lifecycle::clear::clear_messages;
use models::ToolDefinition;
use store::erased::LeftPages;

/// The state that is stored with a socket.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SocketState {
    /// The session that the socket is connected to.
    pub session_id: Id,
    /// The rights of the socket's token; `None`: everything is allowed.
    pub scope: Option<TokenScope>,
    /// The request id of the turn that the socket requested last.
    #[serde(default, rename = "asked")]
    pub last_request_id: Option<String>,
    /// The request ids of earlier turns that the socket requested while others ran.
    #[serde(default, rename = "askedBefore", skip_serializing_if = "Vec::is_empty")]
    pub earlier_request_ids: Vec<String>,
    /// The socket was offered a running turn and has not acknowledged it. Until then it
    /// gets no live chunks.
    #[serde(default, rename = "isHeld")]
    pub awaits_replay: bool,
    /// A turn was running when the socket was opened, and the socket has received none of
    /// its chunks.
    #[serde(default)]
    pub opened_in_turn: bool,
    /// The approximate bytes sent to the socket since its page last sent anything. Stored,
    /// so that the number survives hibernation.
    #[serde(default, rename = "unheardBytes", skip_serializing_if = "is_nothing")]
    pub unacknowledged_bytes: usize,
    /// The trace of the request that opened the socket. Its frames are in this trace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<StoredTrace>,
    /// Set if the socket uses the protocol of the AI SDK's own transport.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sdk: Option<SdkSocket>,
}

// serde passes a reference.
fn is_nothing(bytes: &usize) -> bool {
    *bytes == 0
}

impl SocketState {
    pub fn new(session_id: Id, caller: &Caller) -> Self {
        let scope = match caller {
            Caller::Owner => None,
            Caller::Scoped(scope) => Some(scope.clone()),
        };
        Self {
            session_id,
            scope,
            last_request_id: None,
            earlier_request_ids: Vec::new(),
            awaits_replay: false,
            opened_in_turn: false,
            unacknowledged_bytes: 0,
            trace: None,
            sdk: None,
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

/// The state of a new socket. Its caller must be allowed to chat in the session.
pub fn open(agent: &Agent<'_>, session_id: String) -> Result<SocketState> {
    let session_id = parse_session_id(&session_id)?;
    permit(agent.caller, CHAT_RULE, Some(&session_id))?;
    Ok(SocketState {
        opened_in_turn: has_turn(agent.db, &session_id)?,
        ..SocketState::new(session_id, agent.caller)
    })
}

/// The most earlier turns that a socket may still stop. The runtime stores only little with
/// a socket.
const MAX_EARLIER_REQUESTS: usize = 8;

/// The most bytes that are sent to a socket while its page sends nothing: one of the
/// longest lists. The object can't see how much a page has read, and the runtime buffers
/// the rest. A page that only receives must reconnect, which shows that it reads.
pub const MAX_UNACKNOWLEDGED_BYTES: usize = MAX_ANSWER_BYTES + (64 << 10);

/// Whether a frame may be sent to a socket, given the bytes sent since its page last sent
/// anything.
#[derive(Debug, PartialEq)]
pub enum Credit {
    /// The frame is sent. The new number of unacknowledged bytes.
    Left {
        unacknowledged_bytes: usize,
        /// Whether the number must be stored with the socket, because it has grown much.
        must_store: bool,
    },
    /// The socket is closed instead.
    UsedUp,
}

/// Unacknowledged bytes are stored each time they have grown by this much.
const STORED_STEP_BYTES: usize = 64 << 10;

impl Credit {
    /// The first list is always sent, because a single message may be longer than the
    /// limit.
    pub fn after(unacknowledged_bytes: usize, frame_bytes: usize) -> Self {
        let sum = unacknowledged_bytes.saturating_add(frame_bytes);
        if unacknowledged_bytes > 0 && sum > MAX_UNACKNOWLEDGED_BYTES {
            return Self::UsedUp;
        }
        Self::Left {
            unacknowledged_bytes: sum,
            must_store: sum / STORED_STEP_BYTES > unacknowledged_bytes / STORED_STEP_BYTES,
        }
    }
}

/// The most open sockets of one session. Each receives the session's newest messages when
/// it opens, and the object can't see how much its page has read.
pub const MAX_SESSION_SOCKETS: usize = 64;

/// Checks that a session with `open` sockets may open one more.
pub fn check_sockets(open: usize) -> Result<()> {
    if open < MAX_SESSION_SOCKETS {
        return Ok(());
    }
    Err(Error::new(
        Code::RateLimited,
        format!(
            "This session already has {MAX_SESSION_SOCKETS} open sockets, which is the limit. \
                 Close one, then try again."
        ),
    )
    .with_retry_after(5))
}

/// The first frames of a socket: the agent's identity and the session's messages. A page
/// that lost its socket while a turn ended gets the answer only from these frames.
pub fn greet(agent: &Agent<'_>, state: &SocketState) -> Result<Vec<String>> {
    let mut frames = vec![render_identity(agent.name)];
    let messages = load_shown(agent.db, &state.session_id)?.into_string();
    // In an empty session, the frame would overwrite a message that the page is about to
    // send.
    if messages != "[]" {
        frames.push(render_first_messages(&messages));
    }
    Ok(frames)
}

/// The result of a frame.
#[derive(Default)]
pub struct FrameOutcome {
    /// Frames to send to the same socket, in order.
    pub replies: Vec<String>,
    /// The socket's new state, if the frame changed it.
    pub state: Option<SocketState>,
    pub work: Option<TurnWork>,
    /// This field and the next four have the meaning of those in an operation's `Reply`.
    pub grown: Option<Id>,
    pub changed: Option<MessageChange>,
    pub indexing_continues: bool,
    pub empties_storage: bool,
    pub purged: LeftPages,
}

impl FrameOutcome {
    fn reply(frame: String) -> Self {
        Self {
            replies: vec![frame],
            ..Self::default()
        }
    }
}

/// Handles one frame.
pub async fn handle_frame(
    agent: &Agent<'_>,
    state: &SocketState,
    text: &str,
) -> Result<FrameOutcome> {
    match parse_frame(text) {
        Incoming::Chat { id, mut request } => Ok(ask(agent, state, id, &mut request)),
        Incoming::Cancel { id } => {
            stop(agent, state, &id)?;
            Ok(FrameOutcome::default())
        }
        Incoming::Sdk(request) => answer_sdk(agent, state, request),
        Incoming::Clear => clear(agent, state),
        Incoming::Answer {
            answer,
            continues,
            client_tools,
        } => handle_answer(agent, state, answer, continues, client_tools),
        Incoming::ResumeRequest { probe_id } => resume(agent, state, probe_id.as_deref()),
        Incoming::ResumeAck { id } => Ok(replay(agent, state, &id)),
        Incoming::Rpc {
            id,
            operation,
            input,
        } => Ok(call(agent, &id, &operation, input).await),
        Incoming::Refused(frame) => Ok(FrameOutcome::reply(frame)),
        Incoming::Ignored => Ok(FrameOutcome::default()),
    }
}

fn ask(
    agent: &Agent<'_>,
    state: &SocketState,
    id: String,
    request: &mut ChatRequest,
) -> FrameOutcome {
    // The session is always the socket's, even if the page sends another chat id.
    request.is_shown = true;
    match start(agent, &state.session_id, request, &id) {
        Ok(Started::Turn(work)) => FrameOutcome {
            state: Some(SocketState {
                last_request_id: Some(id),
                earlier_request_ids: Vec::new(),
                awaits_replay: false,
                ..state.clone()
            }),
            work: Some(work),
            ..FrameOutcome::default()
        },
        Ok(Started::Queued(_)) => {
            // The turn is queued. Its chunks are sent as soon as it starts.
            let mut earlier_request_ids = state.earlier_request_ids.clone();
            earlier_request_ids.extend(state.last_request_id.clone());
            let surplus = earlier_request_ids
                .len()
                .saturating_sub(MAX_EARLIER_REQUESTS);
            earlier_request_ids.drain(..surplus);
            FrameOutcome {
                state: Some(SocketState {
                    last_request_id: Some(id),
                    earlier_request_ids,
                    ..state.clone()
                }),
                ..FrameOutcome::default()
            }
        }
        Ok(Started::LeftToClient { .. }) => {
            let frame_header = FrameHeader {
                id: &id,
                is_continuation: false,
                is_replay: false,
            };
            FrameOutcome::reply(frame_header.render_done(TurnOutcome::Completed))
        }
        Err(error) => FrameOutcome::reply(render_failed(&id, &error.message, false)),
    }
}

/// Handles a request of the AI SDK's own transport. From now on, the socket's frames are
/// translated.
fn answer_sdk(agent: &Agent<'_>, state: &SocketState, request: SdkRequest) -> Result<FrameOutcome> {
    let sdk = state.sdk.clone().unwrap_or_default();
    let state = SocketState {
        sdk: Some(sdk.clone()),
        ..state.clone()
    };
    match request {
        SdkRequest::Send { id, mut request } => {
            let outcome = ask(agent, &state, id, &mut request);
            Ok(FrameOutcome {
                state: outcome.state.or(Some(state)),
                ..outcome
            })
        }
        SdkRequest::Resume { id } => resume_for_sdk(agent, &state, id),
        // A page that only follows a turn stops following it. The turn continues.
        SdkRequest::Abort { id } if sdk.resumed.is_some_and(|one| one.request_id == id) => {
            Ok(FrameOutcome {
                state: Some(SocketState {
                    sdk: Some(SdkSocket::default()),
                    ..state
                }),
                ..FrameOutcome::default()
            })
        }
        SdkRequest::Abort { id } => {
            stop(agent, &state, &id)?;
            Ok(FrameOutcome::default())
        }
    }
}

/// Sends the transport all chunks of the running turn. Later chunks follow live.
fn resume_for_sdk(agent: &Agent<'_>, state: &SocketState, id: String) -> Result<FrameOutcome> {
    let work = resume_turn(agent, &state.session_id)?;
    let Some(running) = agent.turns.find(&state.session_id) else {
        return Ok(FrameOutcome {
            replies: vec![render_no_active(&id)],
            state: Some(state.clone()),
            ..FrameOutcome::default()
        });
    };
    let turn_id = running.request_id.clone();
    let start = render_start(&id);
    let resumed = Some(Resumed {
        turn_id: turn_id.clone(),
        request_id: id,
    });
    let state = SocketState {
        awaits_replay: true,
        opened_in_turn: false,
        sdk: Some(SdkSocket { resumed }),
        ..state.clone()
    };
    let replayed = replay(agent, &state, &turn_id);
    Ok(FrameOutcome {
        replies: [vec![start], replayed.replies].concat(),
        state: replayed.state,
        work,
        ..FrameOutcome::default()
    })
}

/// A socket may stop a turn that it requested. To stop another turn, it needs the rights
/// for `cancelTurn`. The protocol has no frame for a refusal, so the page keeps receiving
/// the turn.
fn may_cancel(agent: &Agent<'_>, state: &SocketState, request_id: &str) -> bool {
    state.last_request_id.as_deref() == Some(request_id)
        || state.earlier_request_ids.iter().any(|id| id == request_id)
        || permit(agent.caller, CancelTurn::RULE, Some(&state.session_id)).is_ok()
}

/// Stops a running or queued turn, if the socket may.
fn stop(agent: &Agent<'_>, state: &SocketState, request_id: &str) -> Result<()> {
    if may_cancel(agent, state, request_id)
        && !withdraw(agent, &state.session_id, |queued| {
            queued.turn_id == request_id
        })?
    {
        cancel(agent, state, request_id);
    }
    Ok(())
}

/// Stops the running turn if its id is `request_id`.
fn cancel(agent: &Agent<'_>, state: &SocketState, request_id: &str) {
    let running = agent.turns.find(&state.session_id);
    if let Some(running) = running.filter(|running| request_id == running.request_id) {
        running.cancel();
    }
}

fn clear(agent: &Agent<'_>, state: &SocketState) -> Result<FrameOutcome> {
    let id = &state.session_id;
    if permit(agent.caller, ClearMessages::RULE, Some(id)).is_err() {
        // The page has already cleared its messages, and the protocol has no frame for a
        // refusal. So the page receives the messages that still exist.
        let messages = load_shown(agent.db, id)?.into_string();
        return Ok(FrameOutcome::reply(render_messages(&messages)));
    }
    agent.turns.cancel_with_waiting(id);
    match clear_messages(agent.db, agent.host, id) {
        Ok(_) => {}
        // A session that was never created has no messages.
        Err(error) if error.code == Code::SessionNotFound => {}
        Err(error) => return Err(error),
    }
    agent
        .audience
        .send(id, &render_clear(), state.last_request_id.as_deref());
    Ok(FrameOutcome::default())
}

fn handle_answer(
    agent: &Agent<'_>,
    state: &SocketState,
    answer: CallAnswer,
    continues: bool,
    client_tools: Vec<ToolDefinition>,
) -> Result<FrameOutcome> {
    let session_id = &state.session_id;
    permit(agent.caller, CHAT_RULE, Some(session_id))?;
    check_client_tools(agent.caller, &client_tools, "clientTools")?;
    let principal = agent.caller.principal();
    let given = ClientReply {
        answer,
        continues,
        client_tools,
        asked_by: principal.kind,
        memory_scope: principal.memory_scope,
        limits: principal.limits,
        trace: principal.trace,
    };
    if has_turn(agent.db, session_id)? {
        // The answer is stored before anything else is sent. The client sees it in the
        // updated message, once the turn is over.
        out_of_band::insert(agent.db, session_id, &given)?;
        return Ok(FrameOutcome::default());
    }
    let Some(work) = replies::accept_answer(agent, session_id, given)? else {
        return Ok(FrameOutcome::default());
    };
    let turn_id = work.running().request_id.clone();
    Ok(FrameOutcome {
        replies: vec![render_resuming(&turn_id, None)],
        state: Some(SocketState {
            last_request_id: Some(turn_id),
            awaits_replay: true,
            ..state.clone()
        }),
        work: Some(work),
        ..FrameOutcome::default()
    })
}

fn resume(agent: &Agent<'_>, state: &SocketState, probe_id: Option<&str>) -> Result<FrameOutcome> {
    let work = resume_turn(agent, &state.session_id)?;
    let Some(running) = agent.turns.find(&state.session_id) else {
        return find_change_since(agent, state, probe_id);
    };
    Ok(FrameOutcome {
        replies: vec![render_resuming(&running.request_id, probe_id)],
        state: Some(SocketState {
            awaits_replay: true,
            opened_in_turn: false,
            ..state.clone()
        }),
        work,
        ..FrameOutcome::default()
    })
}

/// Replies that no turn is running. If a turn has ended since the socket was opened, no
/// frame contained its answer, so the messages are sent, too.
fn find_change_since(
    agent: &Agent<'_>,
    state: &SocketState,
    probe_id: Option<&str>,
) -> Result<FrameOutcome> {
    let mut received = FrameOutcome::reply(render_resume_none(probe_id));
    if state.opened_in_turn {
        let messages = load_shown(agent.db, &state.session_id)?.into_string();
        received.replies.push(render_first_messages(&messages));
        received.state = Some(SocketState {
            opened_in_turn: false,
            ..state.clone()
        });
    }
    Ok(received)
}

/// Sends all chunks of the turn so far. Later chunks follow live.
fn replay(agent: &Agent<'_>, state: &SocketState, request_id: &str) -> FrameOutcome {
    let running = agent.turns.find(&state.session_id);
    let Some(running) = running.filter(|running| running.request_id == request_id) else {
        return replay_ended(agent, state, request_id);
    };
    if !state.awaits_replay {
        // The socket has already acknowledged the turn.
        return FrameOutcome::default();
    }
    let mut replies = render_chunks(&running);
    replies.push(running.frame_header(true).render_replay_complete());
    FrameOutcome {
        replies,
        state: Some(freed(state)),
        ..FrameOutcome::default()
    }
}

/// The turn ended before its socket acknowledged it. The page waits for the answer in the
/// turn's chunks, and ignores lists in the meantime. If the chunks are no longer available,
/// the list contains the answer.
fn replay_ended(agent: &Agent<'_>, state: &SocketState, request_id: &str) -> FrameOutcome {
    let ended = agent.turns.find_offered(&state.session_id, request_id);
    let ended = ended.filter(|_| state.awaits_replay);
    let mut replies = ended.as_deref().map(render_chunks).unwrap_or_default();
    let frame_header = FrameHeader {
        id: request_id,
        is_continuation: ended.as_ref().is_some_and(|turn| turn.is_continuation),
        is_replay: true,
    };
    let outcome = ended.and_then(|turn| turn.outcome());
    replies.push(frame_header.render_done(outcome.unwrap_or(TurnOutcome::Completed)));
    if let Ok(messages) = load_shown(agent.db, &state.session_id) {
        replies.push(render_messages(&messages.into_string()));
    }
    FrameOutcome {
        replies,
        state: Some(freed(state)),
        ..FrameOutcome::default()
    }
}

fn freed(state: &SocketState) -> SocketState {
    SocketState {
        awaits_replay: false,
        ..state.clone()
    }
}

fn render_chunks(turn: &RunningTurn) -> Vec<String> {
    let header = turn.frame_header(true);
    let render = |number| Some(header.render_chunk(&turn.chunk(number)?, number));
    (0..turn.chunks_so_far()).filter_map(render).collect()
}

async fn call(agent: &Agent<'_>, id: &str, operation: &str, input: String) -> FrameOutcome {
    if !is_operation(operation) || operation == CHAT {
        let error = unknown_operation(operation);
        return FrameOutcome::reply(render_rpc_error(id, &error));
    }
    match dispatch(agent, operation, input).await {
        Ok(reply) => FrameOutcome {
            replies: vec![render_rpc_result(id, &reply.body.into_string())],
            grown: reply.grown,
            changed: reply.changed,
            indexing_continues: reply.indexing_continues,
            empties_storage: reply.empties_storage,
            purged: reply.purged,
            ..FrameOutcome::default()
        },
        Err(error) => FrameOutcome::reply(render_rpc_error(id, &error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::json;

    #[test]
    fn a_socket_state_of_an_earlier_version_stays_readable() {
        let stored = r#"{"sessionId":"s","scope":null,"asked":"r2","askedBefore":["r1"],"isHeld":true,"openedInTurn":true,"unheardBytes":7}"#;
        let state: SocketState = json::decode(stored).unwrap();
        let expected = SocketState {
            last_request_id: Some("r2".to_owned()),
            earlier_request_ids: vec!["r1".to_owned()],
            awaits_replay: true,
            opened_in_turn: true,
            unacknowledged_bytes: 7,
            ..SocketState::new(Id::parse("s".to_owned()).unwrap(), &Caller::Owner)
        };
        assert_eq!(state, expected);
        assert_eq!(json::encode(&state).unwrap(), stored);
    }

    #[test]
    fn a_socket_that_acknowledges_nothing_has_bounded_credit() {
        let left = |unacknowledged_bytes, must_store| Credit::Left {
            unacknowledged_bytes,
            must_store,
        };
        assert_eq!(Credit::after(0, 100), left(100, false));
        assert_eq!(Credit::after(0, 10 << 20), left(10 << 20, true));
        assert_eq!(Credit::after(65_000, 1_000), left(66_000, true));
        assert_eq!(Credit::after(66_000, 1_000), left(67_000, false));
        let most = MAX_UNACKNOWLEDGED_BYTES;
        assert_eq!(Credit::after(most - 1, 1), left(most, true));
        assert_eq!(Credit::after(most, 1), Credit::UsedUp);
        assert_eq!(Credit::after(1, usize::MAX), Credit::UsedUp);
    }
}
