//! A Worker in Rust that stores notes in Session Agent and searches them.
//!
//!   curl localhost:8788/notes -d 'Penguins swim.'
//!   curl 'localhost:8788/notes?query=penguin'

use serde_json::json;
use session_agent_client::{
    Agent, AppendMessage, Code, CreateSession, GetHistory, NewMessage, Search, UiMessage,
};
use worker::{Context, Env, Method, Request, Response, Result, event};

const NOTES: &str = "notes";
const MAX_NOTE_BYTES: usize = 16 * 1024;
const SHOWN: i64 = 20;

#[event(fetch)]
async fn fetch(mut request: Request, env: Env, _: Context) -> Result<Response> {
    if request.path() != "/notes" {
        return Response::error("POST a note to /notes, or GET /notes?query=…", 404);
    }
    // Each user has an agent. Replace this with your own authentication.
    let agent = open(&env, "demo")?;
    match request.method() {
        Method::Post => {
            let note = request.text().await?;
            if note.trim().is_empty() || note.len() > MAX_NOTE_BYTES {
                return Response::error("A note has 1 to 16384 bytes of text.", 400);
            }
            store(&agent, &note).await?;
            Response::ok("Noted.\n")
        }
        Method::Get => match query_of(&request)? {
            Some(query) => {
                let found = agent.call(&Search::new().query(query).limit(SHOWN)).await?;
                Response::from_json(&json!({"found": found.results}))
            }
            None => {
                let history = agent.call(&GetHistory::new(NOTES).limit(SHOWN)).await;
                let notes = match history {
                    Ok(page) => page.messages.iter().map(UiMessage::text).collect(),
                    Err(error) if error.is(&Code::SessionNotFound) => vec![],
                    Err(error) => return Err(error.into()),
                };
                Response::from_json(&json!({"notes": notes}))
            }
        },
        _ => Response::error("GET or POST.", 405),
    }
}

/// The agent `name` behind the service binding `MEMORY`.
fn open(env: &Env, name: &str) -> Result<Agent> {
    let agent = Agent::service(env.service("MEMORY")?, name)?;
    Ok(match env.secret("SESSION_AGENT_TOKEN") {
        Ok(secret) => agent.with_token(secret.to_string()),
        Err(_) => agent,
    })
}

/// Appends a note. The first note creates the session.
async fn store(agent: &Agent, note: &str) -> session_agent_client::Result<()> {
    // With an id, a note that is sent twice is stored once.
    let id = format!("note-{:x}", worker::Date::now().as_millis());
    let append = AppendMessage::new(NOTES, NewMessage::user(note).id(id));
    match agent.call(&append).await {
        Err(error) if error.is(&Code::SessionNotFound) => {
            agent
                .call(&CreateSession::new().id(NOTES).name("Notes"))
                .await?;
            agent.call(&append).await?;
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
