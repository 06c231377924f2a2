//! Session Agent, called from Rust over a service binding. Copy this file into your
//! Worker: it needs `worker`, `serde` and `serde_json`.
//!
//! [`Agent::call`] runs any operation of the reference. The methods below it are those
//! that most programs use; add yours in the same way.

use std::fmt;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use worker::{Env, Fetcher, Method, RequestInit, RequestRedirect};

/// One agent: a name behind the binding of Session Agent.
pub struct Agent {
    binding: Fetcher,
    name: String,
    token: Option<String>,
}

/// Why an operation gave no answer.
#[derive(Debug)]
pub enum CallError {
    /// The agent refused. `code` is stable; `message` says what would help.
    Refused { code: String, message: String, details: Value },
    /// The agent was not reached, or what answered was no Session Agent.
    Unreached(String),
}

impl fmt::Display for CallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused { code, message, .. } => write!(f, "{message} ({code})"),
            Self::Unreached(why) => write!(f, "Session Agent gave no answer: {why}"),
        }
    }
}

impl std::error::Error for CallError {}

impl From<worker::Error> for CallError {
    fn from(error: worker::Error) -> Self {
        Self::Unreached(error.to_string())
    }
}

impl From<serde_json::Error> for CallError {
    fn from(error: serde_json::Error) -> Self {
        Self::Unreached(error.to_string())
    }
}

impl From<CallError> for worker::Error {
    fn from(error: CallError) -> Self {
        Self::RustError(error.to_string())
    }
}

pub type Result<T> = std::result::Result<T, CallError>;

#[derive(Deserialize)]
struct Refusal {
    error: RefusalBody,
}

#[derive(Deserialize)]
struct RefusalBody {
    code: String,
    message: String,
    #[serde(default)]
    details: Value,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Session {
    pub id: String,
    pub name: Option<String>,
    pub updated_at: i64,
}

/// A message of the AI SDK. `parts` are its texts, files and tools.
#[derive(Debug, Deserialize, Serialize)]
pub struct Message {
    pub id: String,
    pub role: String,
    pub parts: Vec<Value>,
}

impl Message {
    /// What a user said. With an `id` of the caller's own, a repetition is stored once.
    pub fn user(id: impl Into<String>, text: &str) -> Self {
        Self {
            id: id.into(),
            role: "user".to_owned(),
            parts: vec![json!({"type": "text", "text": text})],
        }
    }

    pub fn text(&self) -> String {
        let texts = self.parts.iter().filter_map(|part| part["text"].as_str());
        texts.collect::<Vec<_>>().join("\n")
    }
}

#[derive(Debug, Deserialize)]
pub struct History {
    pub messages: Vec<Message>,
    /// Where the page above ends. `None`: this is the beginning.
    pub cursor: Option<String>,
}

#[derive(Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Found {
    pub session_id: String,
    pub id: String,
    pub snippet: String,
    pub score: f64,
}

impl Agent {
    /// The agent `name` behind the service binding `binding`.
    pub fn open(env: &Env, binding: &str, name: &str) -> Result<Self> {
        Ok(Self {
            binding: env.service(binding)?,
            name: name.to_owned(),
            token: env.secret("SESSION_AGENT_TOKEN").ok().map(|secret| secret.to_string()),
        })
    }

    /// Runs an operation. `Output` may be [`Value`].
    pub async fn call<Output: DeserializeOwned>(
        &self,
        operation: &str,
        input: &impl Serialize,
    ) -> Result<Output> {
        let url = address(&self.name, operation)?;
        let mut init = RequestInit::new();
        // Where a redirect leads, neither the token nor the input may go.
        init.with_method(Method::Post)
            .with_redirect(RequestRedirect::Manual)
            .with_body(Some(serde_json::to_string(input)?.into()));
        if let Some(token) = &self.token {
            init.headers.set("authorization", &format!("Bearer {token}"))?;
        }
        let mut response = self.binding.fetch(url, Some(init)).await?;
        let text = response.text().await?;
        if response.status_code() == 200 {
            return Ok(serde_json::from_str(&text)?);
        }
        match serde_json::from_str::<Refusal>(&text) {
            Ok(Refusal { error }) => Err(CallError::Refused {
                code: error.code,
                message: error.message,
                details: error.details,
            }),
            Err(_) => Err(CallError::Unreached(format!("status {}", response.status_code()))),
        }
    }

    pub async fn create_session(&self, id: &str, name: &str) -> Result<Session> {
        self.call("createSession", &json!({"id": id, "name": name})).await
    }

    pub async fn append_message(&self, session_id: &str, message: &Message) -> Result<Value> {
        let input = json!({"sessionId": session_id, "message": message});
        self.call("appendMessage", &input).await
    }

    /// The newest messages of a session, from the older to the newer.
    pub async fn get_history(&self, session_id: &str, limit: u32) -> Result<History> {
        self.call("getHistory", &json!({"sessionId": session_id, "limit": limit})).await
    }

    /// Finds words in every session of the agent, best first.
    pub async fn search(&self, query: &str, limit: u32) -> Result<Vec<Found>> {
        #[derive(Deserialize)]
        struct Results {
            results: Vec<Found>,
        }
        let input = json!({"query": query, "limit": limit});
        Ok(self.call::<Results>("search", &input).await?.results)
    }

    /// The system prompt: the same bytes until somebody refreshes it.
    pub async fn freeze_prompt(&self, session_id: &str) -> Result<String> {
        #[derive(Deserialize)]
        struct Frozen {
            prompt: String,
        }
        let input = json!({"sessionId": session_id});
        Ok(self.call::<Frozen>("freezePrompt", &input).await?.prompt)
    }
}

/// The address of an operation. A name that would lead elsewhere has none.
fn address(agent: &str, operation: &str) -> Result<String> {
    let is_operation = operation.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    if operation.is_empty() || !is_operation {
        return Err(CallError::Unreached("an operation's name is letters and digits".to_owned()));
    }
    // These are steps in a path, also where they are encoded.
    if matches!(agent, "" | "." | "..") {
        return Err(CallError::Unreached("an agent's name is neither empty nor `.` nor `..`".to_owned()));
    }
    let name = percent_encoded(agent);
    Ok(format!("https://session-agent/agents/session-agent/{name}/rpc/{operation}"))
}

/// A name as one step of a path.
fn percent_encoded(name: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte);
    let encode = |byte| if is_plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") };
    name.bytes().map(encode).collect()
}

#[cfg(test)]
mod tests {
    use super::address;

    #[test]
    fn no_name_leads_to_another_address() {
        let of = |name, operation| address(name, operation).ok();
        let expected = "https://session-agent/agents/session-agent/user%3A42%2F..%2Fbob/rpc/getSession";
        assert_eq!(of("user:42/../bob", "getSession").as_deref(), Some(expected));
        for operation in ["", ".", "..", "../../bob/rpc/listSessions", "a?b", "a#b", "%2e%2e", "a b", "é"] {
            assert_eq!(of("alice", operation), None, "{operation}");
        }
        for agent in ["", ".", ".."] {
            assert_eq!(of(agent, "listSessions"), None, "{agent}");
        }
    }
}
