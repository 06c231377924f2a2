//! The entry points of chat over HTTP. A turn is not an operation, because its answer is a stream,
//! but tokens allow turns under the name `chat`.

use std::rc::Rc;

use super::session_address::parse_session_id;
use access::permit;
use base::error::Result;
use base::ids::Id;
use chat::request::parse_chat_request;
use chat::run::agent::{Agent, CHAT_RULE};
use chat::run::listener::{TurnListener, left_to_client};
use chat::run::resume::resume_turn;
use chat::run::start::{Started, start};
use chat::run::work::TurnWork;
use chat::stream::recount::recount;
use conversation::messages::read::find_message;

pub struct StartedTurn {
    pub listener: TurnListener,
    pub work: Option<TurnWork>,
}

/// Begins a turn. `session_id` comes from the URL; a session in the body takes precedence.
pub fn begin_chat(
    agent: &Agent<'_>,
    session_id: &str,
    body: impl Into<Vec<u8>>,
) -> Result<StartedTurn> {
    let started = parse_and_begin(agent, session_id, body.into());
    super::answers::assert_refusal_matches_schema(CHAT_RULE.operation, &started);
    started
}

fn parse_and_begin(agent: &Agent<'_>, session_id: &str, body: Vec<u8>) -> Result<StartedTurn> {
    let mut request = parse_chat_request(&body)?;
    drop(body);
    let session_id = match &request.session_id {
        Some(id) => id.clone(),
        None => parse_session_id(session_id)?,
    };
    let turn_id = Id::mint_turn(agent.host);
    let started = start(agent, &session_id, &mut request, turn_id.as_str())?;
    Ok(match started {
        Started::Turn(work) => StartedTurn {
            listener: TurnListener::to(Rc::clone(work.running())),
            work: Some(work),
        },
        Started::Queued(awaited) => StartedTurn {
            listener: TurnListener::from(awaited),
            work: None,
        },
        Started::LeftToClient { message_id } => StartedTurn {
            listener: left_to_client(message_id),
            work: None,
        },
    })
}

/// Follows the running turn from its beginning; `None`: no turn runs.
pub fn resume_chat(agent: &Agent<'_>, session_id: &str) -> Result<Option<StartedTurn>> {
    let session_id = parse_session_id(session_id)?;
    permit(agent.caller, CHAT_RULE, Some(&session_id))?;
    let work = resume_turn(agent, &session_id)?;
    let Some(running) = agent.turns.find(&session_id) else {
        return Ok(None);
    };
    let mut listener = TurnListener::to(Rc::clone(&running));
    if running.is_continuation
        && let Some(id) = Id::parse(running.message_id.clone()).ok()
        // A message that can't be read is omitted: the turn continues anyway.
        && let Ok(Some(message)) = find_message(agent.db, &session_id, &id)
    {
        let (chunks, _) = recount(&message.json);
        match listener.begin_with(&running, &chunks) {
            // A resumed turn continues in any case.
            Err(_) if work.is_some() => {}
            started => started?,
        }
    }
    Ok(Some(StartedTurn { listener, work }))
}
