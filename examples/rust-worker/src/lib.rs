//! A Worker in Rust that keeps notes in Session Agent and finds them again.
//!
//!   curl localhost:8788/notes -d 'Penguins swim.'
//!   curl 'localhost:8788/notes?query=penguin'

mod session_agent;

use serde_json::json;
use session_agent::{Agent, CallError, Message};
use worker::{Context, Env, Method, Request, Response, Result, event};

const MEMORY: &str = "MEMORY";
const NOTES: &str = "notes";
const MAX_NOTE_BYTES: usize = 16 * 1024;
const SHOWN: u32 = 20;

#[event(fetch)]
async fn fetch(mut request: Request, env: Env, _: Context) -> Result<Response> {
    if request.path() != "/notes" {
        return Response::error("POST a note to /notes, or GET /notes?query=…", 404);
    }
    // Each user has an agent. Put your own login here.
    let agent = Agent::open(&env, MEMORY, "demo")?;
    match request.method() {
        Method::Post => {
            let note = request.text().await?;
            if note.trim().is_empty() || note.len() > MAX_NOTE_BYTES {
                return Response::error("A note has 1 to 16384 bytes of text.", 400);
            }
            keep(&agent, &note).await?;
            Response::ok("Noted.\n")
        }
        Method::Get => match query_of(&request)? {
            Some(query) => {
                let found = agent.search(&query, SHOWN).await?;
                Response::from_json(&json!({"found": found}))
            }
            None => {
                let history = agent.get_history(NOTES, SHOWN).await;
                let notes = match history {
                    Ok(history) => history.messages.iter().map(Message::text).collect(),
                    Err(CallError::Refused { code, .. }) if code == "session_not_found" => vec![],
                    Err(error) => return Err(error.into()),
                };
                Response::from_json(&json!({"notes": notes}))
            }
        },
        _ => Response::error("GET or POST.", 405),
    }
}

/// Appends a note. The first note makes the session.
async fn keep(agent: &Agent, note: &str) -> session_agent::Result<()> {
    let id = format!("note-{:x}", worker::Date::now().as_millis());
    let message = Message::user(id, note);
    match agent.append_message(NOTES, &message).await {
        Err(CallError::Refused { code, .. }) if code == "session_not_found" => {
            agent.create_session(NOTES, "Notes").await?;
            agent.append_message(NOTES, &message).await?;
        }
        outcome => drop(outcome?),
    }
    Ok(())
}

fn query_of(request: &Request) -> Result<Option<String>> {
    let url = request.url()?;
    let mut pairs = url.query_pairs();
    Ok(pairs.find_map(|(name, value)| (name == "query").then(|| value.into_owned())))
}
