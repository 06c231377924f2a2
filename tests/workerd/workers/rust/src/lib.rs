//! A user's Rust Worker that makes the calls of crates/client that a test requests, through a
//! service binding and through a Durable Object namespace.

mod tour;

use serde::Deserialize;
use serde_json::{Value, json};
use session_agent_client::{
    Action, Agent, AppendEvents, Code, Error, ListSessions, NewEvent, Refusal,
};
use worker::{Context, Env, Request, Response, Result, event};

#[derive(Deserialize)]
struct TestRequest {
    way: String,
    agent: String,
    token: Option<String>,
    #[serde(flatten)]
    what: What,
}

#[derive(Deserialize)]
#[serde(tag = "what", rename_all = "camelCase")]
enum What {
    /// Any operation, by its name.
    Call { operation: String, input: Value },
    /// A typed append that expects a leaf.
    Append { expected: Option<String> },
    /// Every kind of typed call.
    Tour,
    /// A session's file, forwarded to another agent as it arrives.
    Copy { to: String },
    /// The fault of an import whose file can't be read.
    Import { file: String },
}

#[event(fetch)]
async fn fetch(mut request: Request, env: Env, _: Context) -> Result<Response> {
    // The binding `SELF` leads here: what answers for Session Agent leads elsewhere.
    if request.path().starts_with("/agents/") {
        let elsewhere = request.url()?.join("/elsewhere?secret=1")?;
        return Response::redirect_with_status(elsewhere, 307);
    }
    let request: TestRequest = request.json().await?;
    let answer = match open(&env, &request, &request.agent) {
        Ok(agent) => run(&env, &request, &agent).await,
        Err(error) => Err(error),
    };
    Response::from_json(&match answer {
        Ok(answer) => json!({ "answer": answer }),
        Err(error) => json!({ "error": describe_error(&error) }),
    })
}

#[expect(
    clippy::disallowed_methods,
    reason = "this Worker has bindings of its own"
)]
fn open(env: &Env, request: &TestRequest, name: &str) -> session_agent_client::Result<Agent> {
    let missing = |_| Error::Invalid {
        message: "no such binding".to_owned(),
    };
    let agent = match request.way.as_str() {
        "namespace" => Agent::object(env.durable_object("OBJECT").map_err(missing)?, name)?,
        way => Agent::service(env.service(way).map_err(missing)?, name)?,
    };
    Ok(match &request.token {
        Some(token) => agent.with_token(token),
        None => agent,
    })
}

async fn run(
    env: &Env,
    request: &TestRequest,
    agent: &Agent,
) -> session_agent_client::Result<Value> {
    match &request.what {
        What::Call { operation, input } => agent.call_by_name(operation, input).await,
        What::Append { expected } => {
            let event = NewEvent::new(Action::UserMessage).content("Hello");
            let mut append = AppendEvents::new("s", vec![event]);
            append.expected_leaf_id = Some(expected.clone());
            match agent.call(&append).await {
                Ok(outcome) => Ok(json!({ "leafId": outcome.leaf_id })),
                // A program's reaction: it reads the session's leaf again.
                Err(error) if error.is(&Code::LeafMoved) => Ok(json!("the leaf has moved")),
                Err(error) => Err(error),
            }
        }
        What::Tour => tour::run(agent).await,
        What::Copy { to } => {
            let other = open(env, request, to)?;
            let file = agent.export_session("s").await?.into_body().into_stream();
            let file = file.ok_or_else(|| Error::Invalid {
                message: "no file".to_owned(),
            })?;
            let imported = other.import_session("s").stream(file).await?;
            let mut sessions = other.items(ListSessions::new());
            let first = sessions.next().await?;
            Ok(json!([imported.imported, first.map(|session| session.id)]))
        }
        What::Import { file } => {
            let imported = agent.import_session("s").file(file.as_str()).await?;
            Ok(json!(imported.imported))
        }
    }
}

/// What a program sees of an error.
fn describe_error(error: &Error) -> Value {
    let (kind, refusal) = match error {
        Error::Refused(refusal) => ("refused", Some(refusal.as_ref())),
        Error::Unreached { .. } => ("unreached", None),
        Error::Unreadable { .. } => ("unreadable", None),
        _ => ("invalid", None),
    };
    let fields = refusal.map(|refusal: &Refusal| {
        json!({
            "code": refusal.code,
            "isKnown": !matches!(refusal.code, Code::Unknown(_)),
            "status": refusal.status,
            "details": refusal.details,
            "operation": refusal.operation,
        })
    });
    json!({ "kind": kind, "message": error.to_string(), "refusal": fields })
}
