//! The state of a call that waits for its client's answers.
//!
//! In the newest revision, the client stores the state. This object signs it: a state is only valid
//! for the same rights, tool, definition, session and arguments, and only for ten minutes.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::clients::{Clients, caller_text};
use super::message::{Request, RpcError};
use super::scope::Scope;
use crate::operation::Agent;
use base::error::Result;
use base::host::Host;
use base::ids::Id;
use base::json::{self, JsonObject, json};
use chat::tools::registered::RegisteredTool;

/// The name of the question whether the tool may be called.
const APPROVAL: &str = "approval";

/// How long a state is valid.
const STATE_MS: i64 = 10 * 60_000;

/// The longest state that is read.
const MAX_STATE_BYTES: usize = 128 << 10;

/// How many characters of the arguments the user sees.
const MAX_SHOWN_CHARS: usize = 2_000;

/// The most questions of one round, and their bytes including the tool's state.
pub const MAX_QUESTIONS: usize = 8;
pub const MAX_QUESTION_BYTES: usize = 64 << 10;

/// The requested call, and whether it may contain answers to questions that were not sent yet.
pub struct RequestedCall<'a> {
    pub name: &'a str,
    /// The text that the state of its questions is signed with.
    pub binding: String,
    pub accepts_early_answers: bool,
}

/// The questions of a tool, or our own.
pub struct Questions {
    pub requests: Map<String, Value>,
    /// The tool's own state.
    pub state: Option<String>,
}

/// One round of a call: the answers with which it continues.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CallRound {
    /// Unique to the call, the same in all of its rounds.
    key: String,
    number: u32,
    is_approved: bool,
    /// The questions that were sent last.
    #[serde(rename = "asked")]
    question_ids: Vec<String>,
    /// The tool's own state.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<String>,
    expires_at: i64,
    #[serde(skip)]
    answers: Option<Value>,
}

/// The user's answer, unless it is an approval.
pub enum Answer {
    Missing,
    Declined,
}

/// The text that a state is signed with.
pub fn binding(scope: &Scope<'_>, tool: &RegisteredTool, arguments: &JsonObject) -> String {
    let session = scope.session_id().map_or("", Id::as_str);
    json::text(&json!([
        scope.agent.name,
        caller_text(scope.agent),
        session,
        tool.definition.name,
        tool.fingerprint(),
        arguments.as_str(),
    ]))
}

/// The question whether the tool may be called.
pub fn question(tool: &RegisteredTool, arguments: &JsonObject) -> Questions {
    let name = &tool.definition.name;
    let show_arguments: String = show_arguments(arguments.as_str());
    let request = json!({"method": "elicitation/create", "params": {
        "message": format!("Approve the call of the tool `{name}` with these arguments? {show_arguments}"),
        "requestedSchema": {
            "type": "object",
            "properties": {"approve": {
                "type": "boolean",
                "title": "Approve this call",
                "default": false,
            }},
            "required": ["approve"],
        },
    }});
    let mut requests = Map::new();
    requests.insert(APPROVAL.to_owned(), request);
    Questions {
        requests,
        state: None,
    }
}

/// Arguments as shown to the user: invisible characters are escaped.
fn show_arguments(arguments: &str) -> String {
    let mut text = String::new();
    for letter in arguments.chars().take(MAX_SHOWN_CHARS) {
        match letter {
            ' '..='~' => text.push(letter),
            _ if letter.is_alphanumeric() => text.push(letter),
            _ => text.extend(letter.escape_unicode()),
        }
    }
    if arguments.chars().nth(MAX_SHOWN_CHARS).is_some() {
        text.push_str(" … (cut off)");
    }
    text
}

impl CallRound {
    pub fn first(host: &dyn Host) -> Self {
        Self {
            key: Id::mint_turn(host).as_str().to_owned(),
            number: 0,
            is_approved: false,
            question_ids: Vec::new(),
            state: None,
            expires_at: host.now_ms().saturating_add(STATE_MS),
            answers: None,
        }
    }

    /// The round with which a request continues: the first one, if it has no state.
    pub fn read(
        agent: &Agent<'_>,
        clients: &Clients,
        request: &Request,
        call: &RequestedCall<'_>,
    ) -> Result<Self, RpcError> {
        let Some(state) = request.find_text("requestState")? else {
            let mut round = Self::first(agent.host);
            if call.accepts_early_answers {
                round.add_early_answers(request.input_responses());
            }
            return Ok(round);
        };
        let binding = &call.binding;
        let invalid = || {
            let message = "`requestState` is not of this call, or has expired. Call the tool again \
                           without it.";
            RpcError::params("requestState", message)
        };
        if state.len() > MAX_STATE_BYTES {
            return Err(invalid());
        }
        let (content, given) = state.split_once('.').ok_or_else(invalid)?;
        let given = URL_SAFE_NO_PAD.decode(given).map_err(|_| invalid())?;
        let sealed = format!("{content}.{binding}");
        let activation_key = clients.key(agent.host);
        if !agent
            .policy
            .has_sealed_state(activation_key, &sealed, &given)
        {
            return Err(invalid());
        }
        let content = URL_SAFE_NO_PAD.decode(content).map_err(|_| invalid())?;
        let mut round: Self = json::decode_bytes(&content).map_err(|_| invalid())?;
        if round.expires_at <= agent.host.now_ms() {
            return Err(invalid());
        }
        round.add(request.input_responses());
        Ok(round)
    }

    /// The signed state that the client carries.
    pub fn seal(
        &self,
        agent: &Agent<'_>,
        clients: &Clients,
        binding: &str,
    ) -> Result<String, RpcError> {
        let content = URL_SAFE_NO_PAD.encode(json::encode(self)?);
        let sealed = format!("{content}.{binding}");
        let seal = agent.policy.seal_state(clients.key(agent.host), &sealed);
        Ok(format!("{content}.{}", URL_SAFE_NO_PAD.encode(seal)))
    }

    /// Accepts the answers to the questions that were sent. Other answers, and those that are not
    /// objects, are ignored.
    pub fn add(&mut self, given: &Value) {
        let mut answers = Map::new();
        for name in &self.question_ids {
            if let Some(answer) = given.get(name).filter(|answer| answer.is_object()) {
                answers.insert(name.clone(), answer.clone());
            }
        }
        self.answers = (!answers.is_empty()).then_some(Value::Object(answers));
    }

    /// Accepts answers that precede any question, from a client that knows the questions in
    /// advance. Ignores them if they are too many or too long.
    fn add_early_answers(&mut self, given: &Value) {
        let Value::Object(answers) = given else {
            return;
        };
        if answers.len() <= MAX_QUESTIONS && json::text(given).len() <= MAX_QUESTION_BYTES {
            self.question_ids = answers.keys().cloned().collect();
            self.add(given);
        }
    }

    /// The tool's answers.
    pub fn responses(&self) -> Option<&Value> {
        self.answers.as_ref()
    }

    /// The number of earlier rounds.
    pub fn number(&self) -> u32 {
        self.number
    }

    /// The key of this round's call. A repeated request has the same key.
    pub fn call_key(&self) -> String {
        match self.number {
            0 => self.key.clone(),
            number => format!("{}.{number}", self.key),
        }
    }

    /// What prevents the call in this round. `None`: nothing.
    pub fn needs_approval(&mut self, tool: &RegisteredTool) -> Option<Answer> {
        if !tool.needs_approval || self.is_approved {
            return None;
        }
        let answer = self.answers.take();
        let Some(answer) = answer.as_ref().and_then(|answers| answers.get(APPROVAL)) else {
            return Some(Answer::Missing);
        };
        if answer["action"] == "accept"
            && answer.pointer("/content/approve") == Some(&Value::Bool(true))
        {
            self.is_approved = true;
            return None;
        }
        Some(Answer::Declined)
    }

    /// The round after these questions.
    pub fn next(&self, question_ids: impl Iterator<Item = String>, state: Option<String>) -> Self {
        Self {
            key: self.key.clone(),
            number: self.number.saturating_add(1),
            is_approved: self.is_approved,
            question_ids: question_ids.collect(),
            state,
            expires_at: self.expires_at,
            answers: None,
        }
    }
}
