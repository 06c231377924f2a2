//! What a client and a tool exchange during a call: the tool's progress and logs go to the client,
//! and the client's user answers the tool's questions and approves calls that need approval.
//!
//! A client of the newest revision receives questions as the result of its request, and repeats the
//! call with the answers. A client with a handshake receives them on the stream of its request.

use std::cell::Cell;

use serde_json::{Map, Value};

use super::approval::{
    self, CallRound, MAX_QUESTION_BYTES, MAX_QUESTIONS, Questions, RequestedCall,
};
use super::capabilities::{Capabilities, is_question, needed_by};
use super::clients::Clients;
use super::content;
use super::level::Level;
use super::message::{Request, RpcError};
use super::outbox::Outbox;
use super::outcome::Outcome;
use super::revision::Revision;
use super::scope::Scope;
use base::json::{self, JsonObject, json};
use chat::tools::exchange::{ToolExchange, UserQuestions, asks_for_input};
use chat::tools::mcp::revision::CAPABILITIES;
use chat::tools::registered::RegisteredTool;
use chat::turn::CallState;

const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";

/// The error for a call that needs a capability that the client lacks.
const MISSING_CAPABILITY: i64 = -32_021;

/// The rounds of questions in one call over a stream.
const MAX_ROUNDS: u32 = 8;

/// The most notifications of one call that are passed on, and the most bytes of each.
const MAX_NOTIFICATIONS: u32 = 1_000;
const MAX_NOTIFICATION_BYTES: usize = 16 << 10;

/// The longest id of a session whose log level is stored.
const MAX_SESSION_BYTES: usize = 64;

/// The client of a request, and how to send messages to it.
pub struct Exchange<'a> {
    pub revision: Revision,
    /// The header `mcp-session-id`.
    pub session: Option<&'a str>,
    pub clients: &'a Clients,
    pub outbox: Option<&'a Outbox>,
}

impl Exchange<'_> {
    pub fn session(&self) -> Option<&str> {
        self.session
            .filter(|session| session.len() <= MAX_SESSION_BYTES)
    }

    /// The kinds of questions that this client can answer.
    pub fn capabilities(&self, request: &Request) -> Capabilities {
        match (self.revision, self.outbox) {
            (Revision::Stateless, _) => {
                Capabilities::read(request.meta(CAPABILITIES).unwrap_or(&Value::Null))
            }
            (Revision::Handshake, Some(_)) => Capabilities::of_session(self.session()),
            // A client that accepts no stream can't receive questions.
            (Revision::Handshake, None) => Capabilities::default(),
        }
    }

    /// The lowest level of the logs that the client wants. `None`: it wants no logs.
    fn level(&self, request: &Request) -> Option<Level> {
        match self.revision {
            Revision::Stateless => Level::find(request.meta(LOG_LEVEL)?.as_str()?),
            Revision::Handshake => {
                let session = self.session();
                let requested = session.and_then(|session| self.clients.level(session));
                Some(requested.unwrap_or(Level::DEFAULT))
            }
        }
    }

    /// Calls a registered tool.
    pub async fn call(
        &self,
        scope: &Scope<'_>,
        request: &Request,
        tool: &RegisteredTool,
        arguments: &JsonObject,
    ) -> Result<Outcome, RpcError> {
        let name = tool.definition.name.as_str();
        let call = RequestedCall {
            name,
            binding: approval::binding(scope, tool, arguments),
            // An approval must answer one of our own questions. A server of tools has a state of
            // its own.
            accepts_early_answers: !tool.needs_approval && tool.of_server.is_none(),
        };
        let can = self.capabilities(request);
        let notifier = Notifier::new(self, request, name);
        let notify = |method: &str, params: &Value| notifier.pass_on(method, params);
        let memory = scope.agent.memory();
        let ended = self
            .converse(scope, request, &call, async |round: &mut CallRound| {
                match round.needs_approval(tool) {
                    Some(approval::Answer::Declined) => {
                        let text = format!("The user did not approve the call of `{name}`.");
                        return Outcome::new(&content::of_text(&text, true)).map(Step::Done);
                    }
                    Some(approval::Answer::Missing) => {
                        return Ok(Step::Asks(approval::question(tool, arguments)));
                    }
                    None => {}
                }
                let exchange = ToolExchange {
                    responses: round.responses(),
                    state: round.state.as_deref(),
                    notify: Some(&notify),
                    asks: if can.accepts_forms() {
                        UserQuestions::Forms
                    } else {
                        UserQuestions::Nothing
                    },
                    round: round.number(),
                };
                let key = round.call_key();
                let state = tool
                    .call_with(&memory, scope.session_id(), arguments, &key, &exchange)
                    .await;
                if !asks_for_input(&state) {
                    Outcome::new(&content::of_state(state)).map(Step::Done)
                } else {
                    read_tools_questions(tool, &state).map(Step::Asks)
                }
            })
            .await?;
        match ended {
            Ended::With(outcome) => Ok(outcome),
            Ended::Without(text) => Outcome::new(&content::of_text(&text, true)),
        }
    }

    /// Runs a request's steps until one of them is done. The client answers the questions of the
    /// others.
    pub async fn converse(
        &self,
        scope: &Scope<'_>,
        request: &Request,
        call: &RequestedCall<'_>,
        mut run_step: impl AsyncFnMut(&mut CallRound) -> Result<Step, RpcError>,
    ) -> Result<Ended, RpcError> {
        let agent = scope.agent;
        let can = self.capabilities(request);
        let mut round = match self.revision {
            Revision::Stateless => CallRound::read(agent, self.clients, request, call)?,
            Revision::Handshake => CallRound::first(agent.host),
        };
        for _ in 0..MAX_ROUNDS {
            let questions = match run_step(&mut round).await? {
                Step::Done(outcome) => return Ok(Ended::With(outcome)),
                Step::Asks(questions) => questions.only_for(&can)?,
            };
            match self.outbox.filter(|_| self.revision == Revision::Handshake) {
                None => {
                    let next = round.next(questions.requests.keys().cloned(), questions.state);
                    let state = next.seal(agent, self.clients, &call.binding)?;
                    return Ok(Ended::With(Outcome {
                        is_question: true,
                        ..Outcome::new(&json!({
                            "inputRequests": questions.requests,
                            "requestState": state,
                        }))?
                    }));
                }
                Some(outbox) => {
                    let mut answers = Map::new();
                    for (name, question) in &questions.requests {
                        let method = question["method"].as_str().unwrap_or_default();
                        let params = &question["params"];
                        let answer = self.clients.ask(agent, outbox, method, params).await;
                        let Some(answer) = answer else {
                            let text = "The client did not answer in time.";
                            return Ok(Ended::Without(text.to_owned()));
                        };
                        answers.insert(name.clone(), answer);
                    }
                    round = round.next(questions.requests.keys().cloned(), questions.state);
                    round.add(&Value::Object(answers));
                }
            }
        }
        Ok(Ended::Without(format!(
            "`{}` failed: it asked for input more than {MAX_ROUNDS} times.",
            call.name
        )))
    }
}

/// A step of a request: its end, or questions to the client.
pub enum Step {
    Done(Outcome),
    Asks(Questions),
}

/// The end of a request that may have asked.
pub enum Ended {
    With(Outcome),
    /// The client did not answer, or was asked too often.
    Without(String),
}

impl Questions {
    /// The questions that this client can answer.
    fn only_for(mut self, can: &Capabilities) -> Result<Self, RpcError> {
        let method = |question: &Value| question["method"].as_str().unwrap_or_default().to_owned();
        let methods: Vec<String> = self.requests.values().map(method).collect();
        self.requests
            .retain(|_, question| can.include(&method(question), &question["params"]));
        if !self.requests.is_empty() {
            return Ok(self);
        }
        let needed = needed_by(methods.iter().map(String::as_str));
        Err(RpcError {
            data: Some(json!({"requiredCapabilities": needed})),
            status: Some(400),
            ..RpcError::new(
                MISSING_CAPABILITY,
                "The server asks for input that this client can't give.",
            )
        })
    }
}

/// The questions in a tool's answer.
fn read_tools_questions(tool: &RegisteredTool, state: &CallState) -> Result<Questions, RpcError> {
    let name = &tool.definition.name;
    let CallState::Done { output, .. } = state else {
        return Err(wrong_questions(name, "no questions"));
    };
    let mut questions = read_questions(name, output)?;
    let Some(of_server) = &tool.of_server else {
        return Ok(questions);
    };
    for value in questions.requests.values_mut() {
        let question: &Value = value;
        // A server is untrusted: it can only ask for a form, and the message names the server.
        let mode = question.pointer("/params/mode");
        if question["method"] != "elicitation/create" || mode.is_some_and(|mode| mode == "url") {
            let what = "a server can only ask for a form";
            return Err(wrong_questions(name, what));
        }
        let message = question.pointer("/params/message").and_then(Value::as_str);
        let message = message.unwrap_or_default();
        let message = format!("The server `{}` asks: {message}", of_server.server);
        let params = value.get_mut("params").and_then(Value::as_object_mut);
        if let Some(params) = params {
            params.insert("message".to_owned(), message.into());
        }
    }
    Ok(questions)
}

fn wrong_questions(name: &str, what: &str) -> RpcError {
    let message = format!("`{name}` asked for input in a way that can't be passed on: {what}.");
    RpcError::new(super::message::INTERNAL_ERROR, message)
}

/// The questions in an answer that asks for input. `name`: the tool that answered.
pub fn read_questions(name: &str, output: &str) -> Result<Questions, RpcError> {
    let wrong = |what: &str| Err(wrong_questions(name, what));
    if output.len() > MAX_QUESTION_BYTES {
        return wrong("it is longer than 64 KiB");
    }
    let Ok(Value::Object(mut answer)) = json::decode_tree(output) else {
        return wrong("no object");
    };
    let Some(Value::Object(questions)) = answer.remove("inputRequests") else {
        return wrong("no `inputRequests`");
    };
    if !(1..=MAX_QUESTIONS).contains(&questions.len()) {
        return wrong("it needs 1 to 8 questions");
    }
    let mut requests = Map::new();
    for (key, question) in questions {
        let method = question.get("method").and_then(Value::as_str);
        let method = method.unwrap_or_default();
        let params = match question.get("params") {
            None | Some(Value::Null) => json!({}),
            Some(params @ Value::Object(_)) => params.clone(),
            Some(_) => return wrong("an unknown question"),
        };
        if !is_question(method) {
            return wrong("an unknown question");
        }
        requests.insert(key, json!({"method": method, "params": params}));
    }
    let state = answer.remove("requestState");
    let state = state.and_then(|state| state.as_str().map(str::to_owned));
    Ok(Questions { requests, state })
}

/// Passes a tool's notifications on to the client, if it requested them.
struct Notifier<'a> {
    outbox: Option<&'a Outbox>,
    progress_token: Option<Value>,
    level: Option<Level>,
    logger: &'a str,
    passed: Cell<u32>,
    progress: Cell<f64>,
}

impl<'a> Notifier<'a> {
    fn new(exchange: &Exchange<'a>, request: &Request, logger: &'a str) -> Self {
        let token = request.meta("progressToken");
        let token = token.filter(|token| token.is_string() || token.is_number());
        Self {
            outbox: exchange.outbox,
            progress_token: token.cloned(),
            level: exchange.level(request),
            logger,
            passed: Cell::new(0),
            progress: Cell::new(f64::NEG_INFINITY),
        }
    }

    fn pass_on(&self, method: &str, params: &Value) {
        let notification = match method {
            "notifications/progress" => self.progress(params),
            "notifications/message" => self.log(params),
            _ => None,
        };
        let (Some(notification), Some(outbox)) = (notification, self.outbox) else {
            return;
        };
        let message = json!({"jsonrpc": "2.0", "method": method, "params": notification});
        let is_short = json::text(&message).len() <= MAX_NOTIFICATION_BYTES;
        if is_short && self.passed.get() < MAX_NOTIFICATIONS {
            self.passed.set(self.passed.get() + 1);
            outbox.push(&message);
        }
    }

    /// Progress only increases, and has the token of the request.
    fn progress(&self, params: &Value) -> Option<Value> {
        let token = self.progress_token.as_ref()?;
        let done = params["progress"].as_f64()?;
        if done <= self.progress.get() {
            return None;
        }
        self.progress.set(done);
        let mut notification = json!({"progressToken": token, "progress": params["progress"]});
        let fields = notification.as_object_mut()?;
        if params["total"].is_number() {
            fields.insert("total".to_owned(), params["total"].clone());
        }
        if params["message"].is_string() {
            fields.insert("message".to_owned(), params["message"].clone());
        }
        Some(notification)
    }

    fn log(&self, params: &Value) -> Option<Value> {
        let name = params["level"].as_str()?;
        if Level::find(name)? < self.level? {
            return None;
        }
        let logger = params["logger"].as_str().unwrap_or(self.logger);
        Some(json!({"level": name, "logger": logger, "data": params["data"]}))
    }
}
