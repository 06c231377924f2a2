//! One tool call in a turn: who runs it, its state, and its form in the log and in the
//! model's context.

use serde::{Deserialize, Serialize};

use crate::record::{ToolKind, ToolRecord};
use crate::stream::chunk_writer::{BAD_ARGUMENTS, parse_arguments};
use base::action::{Action, Role};
use base::ids::Id;
use base::json::{self, JsonObject};
use context::tools::untrusted::origin_of_result;
use conversation::log::event::NewEvent;
use conversation::log::note::{Approval, Note, Question};
use conversation::log::tool::ToolCall;
use memory::origin::Origin;
use models::message::ContextMessage;

/// The most calls per step; further calls of the step are refused.
pub const MAX_CALLS: usize = 64;

/// The text that a model receives as the result of an interrupted call.
pub const CUT_OFF: &str = "The tool was interrupted while it ran. It may or may not have taken \
                           effect; it was not called again.";
pub const CANCELLED: &str = "The user stopped the turn before the tool answered.";
pub const FAILED: &str = "The turn failed before the tool answered.";

pub const TOO_MANY: &str = "The tool was not called: too many calls in one step.";

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TurnCall {
    pub id: Id,
    pub name: Id,
    pub arguments: JsonObject,
    /// The arguments that the model sent, if they are not a JSON object.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bad_arguments: Option<String>,
    pub state: CallState,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approval: Option<Approval>,
    /// The fingerprint of the tool when the user approved the call. For a server's tool
    /// that needs no approval: when the model made the call.
    #[serde(rename = "askedOf", default, skip_serializing_if = "Option::is_none")]
    pub fingerprint: Option<String>,
    /// Whether the class decided that this call needs no approval.
    #[serde(rename = "isSpared", default)]
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub skips_approval: bool,
    /// The event of a call that an earlier turn made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub logged: Option<LoggedCall>,
    /// The questions that the call repeats with their answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answered: Option<Box<Question>>,
}

/// The event of a call, and its message.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LoggedCall {
    pub seq: i64,
    pub message_id: String,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum CallState {
    /// The class has not yet decided whether the user must approve the call.
    Unsettled {
        approval_id: String,
        /// The fingerprint of the tool.
        #[serde(rename = "asked_of")]
        fingerprint: String,
    },
    /// The call is not made yet.
    Waiting,
    /// The call is in progress. After a crash it is unknown whether it took effect.
    Running,
    Done {
        output: String,
        is_json: bool,
        /// The whole output, if `output` contains only its start and its end.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        whole: Option<WholeOutput>,
    },
    Failed {
        error: String,
    },
    /// The client must run the tool.
    LeftToClient,
    /// The call waits for the user's approval.
    LeftToUser {
        approval_id: String,
        /// The fingerprint of the tool: the approval is valid only for this tool.
        #[serde(rename = "asked_of", default)]
        fingerprint: Option<String>,
    },
    /// The tool asks the user. The call is repeated with the answers.
    AwaitsInput(Box<Question>),
}

/// An output that is too long for the turn's row: see `chat/run/whole_outputs.rs`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WholeOutput {
    /// Its number in its table.
    pub number: i64,
    pub bytes: usize,
    pub is_json: bool,
}

/// The whole outputs of a turn, read back from their table.
#[derive(Default)]
pub struct WholeOutputs(Vec<(i64, CallState)>);

impl WholeOutputs {
    pub fn add(&mut self, of: &WholeOutput, output: String) {
        let state = CallState::done(output, of.is_json);
        self.0.push((of.number, state));
    }

    /// The call's state with its whole output. If the output is no longer stored, the preview
    /// remains.
    pub fn state_of<'a>(&'a self, call: &'a TurnCall) -> &'a CallState {
        let CallState::Done {
            whole: Some(whole), ..
        } = &call.state
        else {
            return &call.state;
        };
        let mut stored = self.0.iter();
        let found = stored.find(|(number, _)| *number == whole.number);
        found.map_or(&call.state, |(_, state)| state)
    }
}

impl CallState {
    pub fn done(output: String, is_json: bool) -> Self {
        Self::Done {
            output,
            is_json,
            whole: None,
        }
    }

    pub fn failed(error: impl Into<String>) -> Self {
        Self::Failed {
            error: error.into(),
        }
    }

    pub fn is_open(&self) -> bool {
        matches!(
            self,
            Self::LeftToClient | Self::LeftToUser { .. } | Self::AwaitsInput(_)
        )
    }

    pub fn is_over(&self) -> bool {
        matches!(self, Self::Done { .. } | Self::Failed { .. })
    }

    /// The outcome as text; `None` while the call is open.
    fn outcome(&self) -> Option<(&str, bool)> {
        match self {
            Self::Done { output, .. } => Some((output, false)),
            Self::Failed { error } => Some((error, true)),
            _ => None,
        }
    }

    /// The error message for the turn's record. It excludes the tool's own text, which is
    /// only in its result.
    pub fn find_recorded_error(&self, was_made: bool) -> Option<String> {
        let Self::Failed { error } = self else {
            return None;
        };
        let own = [BAD_ARGUMENTS, TOO_MANY, CUT_OFF, CANCELLED, FAILED];
        let message = match own.into_iter().find(|own| error == own) {
            Some(own) => own,
            None if was_made => "The call failed. See its result in the log.",
            None => "The call was not made. See its result in the log.",
        };
        Some(message.to_owned())
    }
}

/// A call, as the model made it.
pub struct ModelCall {
    pub id: String,
    pub name: String,
    pub arguments: String,
}

/// Who runs a tool.
#[derive(Debug, PartialEq)]
pub enum ToolRunner {
    /// `fingerprint` is the fingerprint of the tool that the model saw, if its definition may
    /// change on its own.
    Server {
        fingerprint: Option<String>,
    },
    /// `fingerprint` is the tool's fingerprint: an approval isn't valid for another tool of
    /// the same name.
    ServerAfterApproval {
        fingerprint: String,
    },
    /// Like [`Self::ServerAfterApproval`], for a tool of the class: the class decides for
    /// each call whether the user must approve it.
    Class {
        fingerprint: String,
    },
    Client,
    /// The client runs it, and interprets its arguments itself, whatever they are.
    ApiClient,
    /// Nobody runs the tool: the text lists the tools that exist.
    Nobody(String),
}

impl TurnCall {
    pub fn to_tool_call(&self) -> ToolCall {
        ToolCall {
            id: self.id.clone(),
            name: self.name.clone(),
            arguments: self.arguments.clone(),
        }
    }

    /// The call's questions as its event stores them at the end of the turn. `None`: its tool did
    /// not ask.
    pub fn question(&self) -> Option<Question> {
        match (&self.state, &self.answered) {
            (CallState::AwaitsInput(question), _) => Some(Question::clone(question)),
            (_, Some(answered)) => Some(Question::clone(answered).closed()),
            (_, None) => None,
        }
    }

    /// The source of the call's result.
    pub fn origin_of_result(&self) -> Option<Origin> {
        let (output, _) = self.state.outcome()?;
        origin_of_result(Some(self.name.as_str()), output)
    }

    pub fn to_result_message(&self) -> Option<ContextMessage> {
        let (content, is_error) = self.state.outcome()?;
        Some(ContextMessage {
            tool_call_id: Some(self.id.clone()),
            tool_name: Some(self.name.clone()),
            is_error: is_error.then_some(true),
            ..ContextMessage::of_text(Role::Tool, content.to_owned())
        })
    }

    pub fn to_result_event(&self, whole: &WholeOutputs) -> Option<NewEvent> {
        let state = whole.state_of(self);
        let (content, is_error) = state.outcome()?;
        Some(result_event(
            self.id.clone(),
            self.name.clone(),
            content.to_owned(),
            is_error,
            Note {
                approval: self.approval.clone(),
                is_json: matches!(state, CallState::Done { is_json: true, .. }),
                ..Note::default()
            },
        ))
    }

    pub fn to_record(&self, kind: ToolKind) -> ToolRecord {
        ToolRecord {
            tool_call_id: self.id.as_str().to_owned(),
            name: self.name.as_str().to_owned(),
            kind,
            error: self.state.find_recorded_error(false),
            ..ToolRecord::default()
        }
    }

    pub fn is_over(&self) -> bool {
        self.state.is_over()
    }

    /// Applies the class's decision on whether the user must approve the call.
    pub fn apply_decision(&mut self, needs_approval: bool) {
        let CallState::Unsettled {
            approval_id,
            fingerprint,
        } = self.state.clone()
        else {
            return;
        };
        if needs_approval {
            self.state = CallState::LeftToUser {
                approval_id,
                fingerprint: Some(fingerprint),
            };
        } else {
            self.state = CallState::Waiting;
            self.fingerprint = Some(fingerprint);
            self.skips_approval = true;
        }
    }
}

pub fn result_event(id: Id, name: Id, content: String, is_error: bool, note: Note) -> NewEvent {
    NewEvent {
        content: Some(content),
        tool_call_id: Some(id),
        tool_name: Some(name),
        is_error: is_error.then_some(true),
        note: Some(note),
        ..NewEvent::new(Action::ToolResult)
    }
}

/// Decides the initial state of a call that the model made. `None`: the call's name or id
/// is not valid, which no model adapter produces.
pub fn decide(
    index: usize,
    call: ModelCall,
    runner: &dyn Fn(&str) -> ToolRunner,
    mint: &mut dyn FnMut() -> String,
) -> Option<TurnCall> {
    let empty = || json::decode::<JsonObject>("{}").ok();
    let (id, name) = (Id::parse(call.id).ok()?, Id::parse(call.name).ok()?);
    let (arguments, bad_arguments) = match parse_arguments(&call.arguments) {
        Some(arguments) => (arguments, None),
        None => (empty()?, Some(call.arguments)),
    };
    let mut seen = None;
    let runner = runner(name.as_str());
    let state = if runner == ToolRunner::ApiClient {
        CallState::LeftToClient
    } else if bad_arguments.is_some() {
        CallState::failed(BAD_ARGUMENTS)
    } else if index >= MAX_CALLS {
        CallState::failed(TOO_MANY)
    } else {
        match runner {
            ToolRunner::Server { fingerprint } => {
                seen = fingerprint;
                CallState::Waiting
            }
            ToolRunner::ServerAfterApproval { fingerprint } => CallState::LeftToUser {
                approval_id: mint(),
                fingerprint: Some(fingerprint),
            },
            ToolRunner::Class { fingerprint } => CallState::Unsettled {
                approval_id: mint(),
                fingerprint,
            },
            ToolRunner::Client | ToolRunner::ApiClient => CallState::LeftToClient,
            ToolRunner::Nobody(sentence) => CallState::failed(sentence),
        }
    };
    Some(TurnCall {
        id,
        name,
        arguments,
        bad_arguments,
        state,
        approval: None,
        fingerprint: seen,
        skips_approval: false,
        logged: None,
        answered: None,
    })
}
