//! A turn: from a user's message to the agent's answer, step by step. This state machine only
//! decides. It can be stored between any two steps, and continues from there after the object was
//! restarted.
//!
//! ```text
//! Ask ─► the model answers ─┬─ without calls ─────────────────► Finish
//!  ▲                        └─ with calls ─► Run ─┬─ all done ─► Ask, or Finish
//!  └──────────────────────────────────────────────┘               at the limit
//!                                                 └─ some are left to the client
//!                                                    or to the user ─► Finish
//! ```
//!
//! For a tool of the class that may need approval, the class decides before Run.

pub mod answer_position;
mod call;
mod length_feedback;
pub mod partial_answer;
pub mod report;
pub mod store;
pub mod window;

use std::rc::Rc;

use serde::{Deserialize, Serialize};

use crate::record::TurnRecord;
use crate::request::api_turn::{self, ApiTurn};
use crate::request::path_digest::{PathDigest, PathMessage};
use crate::turn::call::{CANCELLED, CUT_OFF, FAILED, decide};
pub use crate::turn::call::{
    CallState, LoggedCall, MAX_CALLS, ModelCall, ToolRunner, TurnCall, WholeOutput, WholeOutputs,
    result_event,
};
pub use crate::turn::length_feedback::LengthFeedback;
use ::store::limits::PrincipalLimits;
use access::{Authority, MemoryScope, PrincipalKind};
use base::action::Action;
use base::action::Role;
use base::error::Result;
use base::ids::Id;
use base::json;
use context::tools::untrusted::less_trusted;
use conversation::log::event::NewEvent;
use conversation::log::note::{MAX_REASONING_BYTES, Note, ProviderData, Question};
use conversation::log::tool::ToolCall;
use conversation::session::spending::TurnSpending;
use memory::origin::Origin;
use models::message::ContextMessage;
use models::{FinishReason, TokenUsage, ToolDefinition};

/// The most bytes of [`ProviderData`] in one turn, which is stored in one row. Later data is
/// dropped.
const MAX_TURN_PROVIDER_DATA_BYTES: usize = 256 << 10;

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Turn {
    /// The id by which clients know the turn: a socket's request id, or a new id.
    pub id: String,
    pub session_id: Id,
    /// The id of the assistant message that the turn writes or continues.
    pub message_id: String,
    pub is_continuation: bool,
    /// The event that the turn answers; `None`: the answer is a root. See
    /// `chat/turn/answer_position.rs`.
    pub parent_id: Option<Id>,
    /// The `seq` of the session's next event when the turn began; 0: not known.
    #[serde(default)]
    pub answer_seq: i64,
    pub max_steps: usize,
    /// The model that the request named; it overrides the agent's own.
    pub model: Option<String>,
    pub system_instructions: Vec<String>,
    pub client_tools: Vec<ToolDefinition>,
    /// The only session that the caller may reach, if the caller is limited to one.
    pub only_session: Option<Id>,
    /// Whether the model may write the agent's own blocks in spite of `only_session`.
    #[serde(default)]
    pub agent_memory: bool,
    /// Calls that the user has just declined. They are in the log already, but were not sent to the
    /// client yet.
    pub declined: Vec<String>,
    pub steps: Vec<TurnStep>,
    pub usage: TokenUsage,
    /// The cost of the turn so far, by the agent's prices.
    #[serde(default)]
    pub cost: f64,
    /// The model that was called last.
    #[serde(rename = "askedModel", default)]
    pub last_model: Option<String>,
    /// The estimate of the turn's input tokens.
    #[serde(default)]
    pub estimated: i64,
    /// Whether `runTurn` began the turn: the event that ends it then contains the whole report.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_run: bool,
    /// Whether no service is notified of the turn's end (`onTurnEnd`) and of what it writes to
    /// memory (`onMemoryChange`).
    #[serde(rename = "callsNobodyBack", default)]
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub skips_callbacks: bool,
    /// How the model reacted to the length of the request.
    #[serde(rename = "room", default)]
    #[serde(skip_serializing_if = "LengthFeedback::is_default")]
    pub length_feedback: LengthFeedback,
    /// The least trusted source of what the model has read, if any is untrusted. What the model
    /// writes into memory gets this source, unless the user's words support it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub untrusted: Option<Origin>,
    /// The limits of the token that began the turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limits: Option<PrincipalLimits>,
    #[serde(default)]
    pub record: TurnRecord,
    /// Set if a request in a provider's API began the turn.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        with = "api_turn::shared"
    )]
    pub api: Option<Rc<ApiTurn>>,
    /// The bytes of the state that was last stored.
    #[serde(skip)]
    pub stored_bytes: usize,
}

/// One answer of the model, and the outcomes of its calls.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TurnStep {
    pub text: String,
    pub reasoning: String,
    pub calls: Vec<TurnCall>,
    /// The step's calls are in the log already: they waited for the user's approval.
    pub is_logged: bool,
    pub finish_reason: Option<FinishReason>,
    /// The data that the provider requires again with the answer.
    #[serde(rename = "kept", default, skip_serializing_if = "Option::is_none")]
    pub provider_data: Option<ProviderData>,
}

/// The next thing to do.
#[derive(Debug, PartialEq)]
pub enum NextAction {
    AskModel,
    /// Compact the conversation: the model rejected its length.
    Compact,
    /// Let the class decide which of these calls of the newest step the user must approve.
    AskClass(Vec<usize>),
    /// Run these calls of the newest step, given by their index in the step.
    RunTools(Vec<usize>),
    Finish(TurnEnding),
}

impl NextAction {
    /// The phase that is reported to a class that extends this one.
    pub fn phase(&self) -> &'static str {
        match self {
            Self::AskModel => "thinking",
            Self::Compact => "compacting",
            Self::AskClass(_) | Self::RunTools(_) => "tools",
            Self::Finish(_) => "ending",
        }
    }
}

#[derive(Debug, PartialEq)]
pub enum TurnEnding {
    Answered(FinishReason),
    /// The client or the user must answer a call, or its tool's questions, first.
    LeftToClient,
    StepLimit,
}

impl Turn {
    /// The memory that this turn's model may read and write.
    pub fn memory_scope(&self) -> MemoryScope {
        match (&self.only_session, self.agent_memory) {
            (None, _) => MemoryScope::Agent,
            (Some(_), true) => MemoryScope::SessionAndMemory,
            (Some(_), false) => MemoryScope::Session,
        }
    }

    /// The authority of the caller who began the turn.
    pub fn authority(&self) -> Authority {
        let asked_by = self.record.asked_by.as_ref();
        Authority {
            is_token: asked_by.is_some_and(|by| by.kind == PrincipalKind::Token),
            memory_scope: self.memory_scope(),
            limits: self.limits.clone(),
        }
    }

    pub fn next(&self) -> NextAction {
        if self.length_feedback.is_needed {
            return NextAction::Compact;
        }
        let Some(step) = self.steps.last() else {
            return NextAction::AskModel;
        };
        let unsettled = step.calls_that(|state| matches!(state, CallState::Unsettled { .. }));
        if !unsettled.is_empty() {
            return NextAction::AskClass(unsettled);
        }
        let waiting = step.calls_that(|state| *state == CallState::Waiting);
        if !waiting.is_empty() {
            return NextAction::RunTools(waiting);
        }
        if step.calls.iter().any(|call| call.state.is_open()) {
            return NextAction::Finish(TurnEnding::LeftToClient);
        }
        if step.calls.is_empty() {
            return NextAction::Finish(TurnEnding::Answered(
                step.finish_reason.unwrap_or(FinishReason::Stop),
            ));
        }
        if self.answer_count() >= self.max_steps {
            return NextAction::Finish(TurnEnding::StepLimit);
        }
        NextAction::AskModel
    }

    /// The number of times that the model has answered in this turn: the index of the
    /// current step.
    pub fn answer_count(&self) -> usize {
        self.steps.iter().filter(|step| !step.is_logged).count()
    }

    /// Calls that the message had before this turn began: the client has them already.
    pub fn earlier_calls(&self) -> Vec<String> {
        let logged = self.steps.iter().filter(|step| step.is_logged);
        logged
            .flat_map(|step| &step.calls)
            .map(|call| call.id.as_str().to_owned())
            .chain(self.declined.iter().cloned())
            .collect()
    }

    /// The ids of all calls of the message that the turn knows.
    pub fn call_ids(&self) -> Vec<String> {
        let calls = self.steps.iter().flat_map(|step| &step.calls);
        calls
            .map(|call| call.id.as_str().to_owned())
            .chain(self.declined.iter().cloned())
            .collect()
    }

    /// Adds the model's answer as a step.
    pub fn add_answer(
        &mut self,
        text: String,
        mut reasoning: String,
        model_calls: Vec<ModelCall>,
        finish_reason: FinishReason,
        runner: &dyn Fn(&str) -> ToolRunner,
        mint: &mut dyn FnMut() -> String,
    ) {
        truncate(&mut reasoning, MAX_REASONING_BYTES);
        self.length_feedback = LengthFeedback::default();
        let calls = model_calls
            .into_iter()
            .enumerate()
            .filter_map(|(index, call)| decide(index, call, runner, mint))
            .collect();
        self.steps.push(TurnStep {
            text,
            reasoning,
            calls,
            is_logged: false,
            finish_reason: Some(finish_reason),
            provider_data: None,
        });
    }

    /// Stores the data that the provider requires again with the newest answer, a JSON object, if
    /// it fits.
    pub fn keep(&mut self, by: &str, parts: &str) {
        let provider_data = self
            .steps
            .iter()
            .filter_map(|step| step.provider_data.as_ref());
        let bytes: usize = provider_data
            .map(|provider_data| provider_data.parts.as_str().len())
            .sum();
        if bytes + parts.len() > MAX_TURN_PROVIDER_DATA_BYTES {
            return;
        }
        if let (Some(step), Ok(parts)) = (self.steps.last_mut(), json::decode(parts)) {
            let by = by.to_owned();
            step.provider_data = Some(ProviderData { by, parts });
        }
    }

    /// `estimated`: the estimate of the usage's input tokens. `model`: the model that was called,
    /// if one was.
    pub fn add_usage(&mut self, usage: TokenUsage, estimated: i64, model: Option<String>) {
        self.last_model = model.or(self.last_model.take());
        self.usage = self.usage.plus(usage);
        if usage.input_tokens > 0 {
            self.estimated += estimated;
        }
    }

    pub fn spent(&self) -> TurnSpending {
        TurnSpending {
            input_tokens: self.usage.input_tokens,
            output_tokens: self.usage.output_tokens,
            cached_input_tokens: self.usage.cached_input_tokens,
            cost: self.cost,
            model: self.last_model.clone(),
            estimated: self.estimated,
            has_failed: false,
        }
    }

    /// Marks calls as running. The turn must be stored before the calls are made.
    pub fn start_calls(&mut self, calls: &[usize]) {
        for (index, call) in self.newest_calls().iter_mut().enumerate() {
            if calls.contains(&index) {
                call.state = CallState::Running;
            }
        }
    }

    /// Stores the outcome of a call, or the questions of its tool.
    pub fn finish_call(&mut self, index: usize, state: CallState) {
        if let Some(call) = self.newest_calls().get_mut(index) {
            call.state = state;
            let read = call.origin_of_result();
            self.mark_untrusted(read);
        }
    }

    /// Records that the model reads something from this source.
    pub fn mark_untrusted(&mut self, source: Option<Origin>) {
        self.untrusted = less_trusted(self.untrusted, source);
    }

    /// The bytes of all outputs so far in the stored turn.
    pub fn output_bytes(&self) -> usize {
        let outputs = self.steps.iter().flat_map(|step| &step.calls);
        outputs
            .map(|call| match &call.state {
                CallState::Done { output, .. } => retained_bytes(output),
                _ => 0,
            })
            .sum()
    }

    /// The bytes of the whole outputs that are stored separately from the turn.
    pub fn whole_output_bytes(&self) -> usize {
        let calls = self.steps.iter().flat_map(|step| &step.calls);
        calls
            .map(|call| match &call.state {
                CallState::Done {
                    whole: Some(whole), ..
                } => whole.bytes,
                _ => 0,
            })
            .sum()
    }

    /// Adds the model's output from before the interruption.
    pub fn add_partial(&mut self, text: String, mut reasoning: String) {
        truncate(&mut reasoning, MAX_REASONING_BYTES);
        if text.is_empty() && reasoning.is_empty() {
            return;
        }
        self.steps.push(TurnStep {
            text,
            reasoning,
            ..TurnStep::default()
        });
    }

    pub fn newest_calls(&mut self) -> &mut [TurnCall] {
        match self.steps.last_mut() {
            Some(step) => &mut step.calls,
            None => &mut [],
        }
    }

    /// Prepares a turn to continue after the object was evicted: a call that was running is not
    /// made again.
    pub fn resume(&mut self) {
        self.close_running(CUT_OFF);
    }

    /// Closes all calls because the user canceled the turn.
    pub fn cancel(&mut self) {
        self.close_running(CANCELLED);
        self.close_waiting(CANCELLED);
    }

    /// Closes all calls because the turn failed: the log accepts no call without its outcome.
    pub fn fail(&mut self) {
        self.close_running(FAILED);
        self.close_waiting(FAILED);
    }

    fn close_running(&mut self, error: &str) {
        self.close(error, |state| *state == CallState::Running);
    }

    fn close_waiting(&mut self, error: &str) {
        self.close(error, |state| {
            matches!(state, CallState::Waiting | CallState::Unsettled { .. })
        });
    }

    fn close(&mut self, error: &str, is_closed: impl Fn(&CallState) -> bool) {
        let Some(step) = self.steps.last_mut() else {
            return;
        };
        for (index, call) in step.calls.iter_mut().enumerate() {
            if is_closed(&call.state) {
                call.state = CallState::failed(error);
                if let Some(tool) = self.record.tool_mut(index) {
                    tool.error = call.state.find_recorded_error(tool.started_at.is_some());
                }
            }
        }
    }

    /// The turn's text so far, as messages for the model.
    pub fn messages(&self) -> Vec<ContextMessage> {
        let mut messages = Vec::new();
        for step in &self.steps {
            if !step.is_logged && !step.is_empty() {
                let calls: Vec<ToolCall> = step.calls.iter().map(TurnCall::to_tool_call).collect();
                messages.push(ContextMessage {
                    tool_calls: (!calls.is_empty()).then_some(calls),
                    provider_data: step.provider_data.clone().map(Box::new),
                    ..ContextMessage::of_text(Role::Assistant, step.text.clone())
                });
            }
            messages.extend(step.calls.iter().filter_map(TurnCall::to_result_message));
        }
        messages
    }

    /// The path that the client has after this turn's answer: without the calls that ran here.
    pub fn visible_path(&self, api: &ApiTurn) -> PathDigest {
        let steps = self.steps.iter().filter(|step| !step.is_logged);
        let texts: Vec<&str> = steps.clone().map(|step| step.text.as_str()).collect();
        let calls = steps.flat_map(|step| &step.calls);
        let calls = calls.filter(|call| call.state == CallState::LeftToClient);
        let calls: Vec<(&str, &str)> = calls
            .map(|call| (call.id.as_str(), call.name.as_str()))
            .collect();
        PathDigest::from_text(api.path.clone()).then(&PathMessage::Assistant {
            text: &texts.join("\n"),
            calls: &calls,
        })
    }

    /// The turn's events for the log, in order. The first event has the message's id,
    /// unless the turn continues a message.
    pub fn events(&self, whole: &WholeOutputs) -> Result<Vec<NewEvent>> {
        let mut events = Vec::new();
        for step in &self.steps {
            if !step.is_logged {
                events.extend(step.to_event(self.untrusted));
            }
            let results = step.calls.iter();
            events.extend(results.filter_map(|call| call.to_result_event(whole)));
        }
        let authority = self.authority();
        for event in &mut events {
            let note = event.note.take().unwrap_or_default();
            event.note = Some(note.with_authority(authority.clone()));
        }
        if let (Some(first), false) = (events.first_mut(), self.is_continuation) {
            first.id = Id::parse(self.message_id.clone()).ok();
        }
        Ok(events)
    }
}

impl TurnStep {
    /// The indexes of the calls whose state matches.
    fn calls_that(&self, is_so: impl Fn(&CallState) -> bool) -> Vec<usize> {
        let calls = self.calls.iter().enumerate();
        calls
            .filter(|(_, call)| is_so(&call.state))
            .map(|(index, _)| index)
            .collect()
    }

    /// Whether the step has nothing that a model accepts.
    fn is_empty(&self) -> bool {
        self.calls.is_empty() && self.text.is_empty() && self.provider_data.is_none()
    }

    fn to_event(&self, untrusted: Option<Origin>) -> Option<NewEvent> {
        if self.is_empty() && self.reasoning.is_empty() {
            return None;
        }
        let mut note = Note {
            reasoning: self.reasoning.clone(),
            untrusted: untrusted.map(|source| source.name().to_owned()),
            provider_data: self.provider_data.clone(),
            ..Note::default()
        };
        for call in &self.calls {
            if let CallState::LeftToUser {
                approval_id,
                fingerprint,
            } = &call.state
            {
                let id = call.id.as_str().to_owned();
                if let Some(fingerprint) = fingerprint {
                    note.fingerprints.insert(id.clone(), fingerprint.clone());
                }
                note.approvals.insert(id, approval_id.clone());
            }
            if call.state == CallState::LeftToClient {
                note.client_calls.push(call.id.as_str().to_owned());
            }
            if let Some(question) = call.question() {
                let id = call.id.as_str().to_owned();
                note.questions.insert(id, question);
            }
            if let Some(text) = &call.bad_arguments {
                let id = call.id.as_str().to_owned();
                note.bad_arguments.insert(id, text.clone());
            }
        }
        let calls: Vec<ToolCall> = self.calls.iter().map(TurnCall::to_tool_call).collect();
        let action = if calls.is_empty() {
            Action::AgentMessage
        } else {
            Action::ToolCallRequest
        };
        Some(NewEvent {
            content: Some(self.text.clone()),
            tool_calls: (!calls.is_empty()).then_some(calls),
            note: Some(note),
            ..NewEvent::new(action)
        })
    }
}

impl Turn {
    /// The questions of calls that earlier turns made, as their events store them at the end of
    /// this turn.
    pub fn logged_questions(&self) -> impl Iterator<Item = (&LoggedCall, &Id, Question)> {
        let logged = self.steps.iter().filter(|step| step.is_logged);
        logged.flat_map(|step| &step.calls).filter_map(|call| {
            let logged = call.logged.as_ref()?;
            Some((logged, &call.id, call.question()?))
        })
    }
}

/// The bytes of a text as JSON: quotes and line breaks take two bytes each.
pub fn retained_bytes(text: &str) -> usize {
    let escaped = text.bytes().map(|byte| match byte {
        b'"' | b'\\' | b'\n' | b'\r' | b'\t' => 2,
        0..0x20 => 6,
        _ => 1,
    });
    escaped.sum()
}

fn truncate(text: &mut String, max_bytes: usize) {
    text.truncate(text.floor_char_boundary(max_bytes));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stream::chunk_writer::BAD_ARGUMENTS;
    use crate::turn::call::TOO_MANY;

    fn turn() -> Turn {
        Turn {
            id: "t".to_owned(),
            session_id: Id::parse("s".to_owned()).unwrap(),
            message_id: "m".to_owned(),
            is_continuation: false,
            parent_id: None,
            answer_seq: 0,
            max_steps: 3,
            model: None,
            system_instructions: Vec::new(),
            client_tools: Vec::new(),
            only_session: None,
            agent_memory: false,
            declined: Vec::new(),
            steps: Vec::new(),
            usage: TokenUsage::default(),
            cost: 0.0,
            last_model: None,
            estimated: 0,
            is_run: false,
            skips_callbacks: false,
            api: None,
            length_feedback: LengthFeedback::default(),
            untrusted: None,
            limits: None,
            record: TurnRecord::default(),
            stored_bytes: 0,
        }
    }

    /// Tools are named by their runners.
    fn runner(name: &str) -> ToolRunner {
        match name {
            "server" => ToolRunner::Server { fingerprint: None },
            "asks" => ToolRunner::ServerAfterApproval {
                fingerprint: "a tool".to_owned(),
            },
            "class" => ToolRunner::Class {
                fingerprint: "the class's tool".to_owned(),
            },
            "client" => ToolRunner::Client,
            _ => ToolRunner::Nobody("There is no such tool.".to_owned()),
        }
    }

    fn answer(turn: &mut Turn, text: &str, calls: &[&str]) {
        let model_calls = calls
            .iter()
            .enumerate()
            .map(|(index, name)| ModelCall {
                id: format!("c{index}"),
                name: (*name).to_owned(),
                arguments: "{}".to_owned(),
            })
            .collect();
        let reason = FinishReason::Stop;
        turn.add_answer(
            text.to_owned(),
            String::new(),
            model_calls,
            reason,
            &runner,
            &mut || "ap".to_owned(),
        );
    }

    fn done(output: &str) -> CallState {
        CallState::done(output.to_owned(), false)
    }

    fn actions(turn: &Turn) -> Vec<&'static str> {
        let events = turn.events(&WholeOutputs::default()).unwrap();
        events.iter().map(|event| event.action.name()).collect()
    }

    #[test]
    fn an_answer_without_calls_ends_the_turn() {
        let mut turn = turn();
        assert_eq!(turn.next(), NextAction::AskModel);
        answer(&mut turn, "Hi", &[]);
        assert_eq!(
            turn.next(),
            NextAction::Finish(TurnEnding::Answered(FinishReason::Stop))
        );
        let events = turn.events(&WholeOutputs::default()).unwrap();
        assert_eq!(events[0].id.as_ref().unwrap().as_str(), "m");
        assert_eq!(actions(&turn), ["agent_message"]);
    }

    #[test]
    fn the_model_is_called_again_after_its_tool_calls() {
        let mut turn = turn();
        answer(&mut turn, "Let me see.", &["server", "nobody", "server"]);
        assert_eq!(turn.next(), NextAction::RunTools(vec![0, 2]));
        turn.start_calls(&[0, 2]);
        turn.finish_call(0, done("one"));
        turn.finish_call(2, CallState::failed("no"));
        assert_eq!(turn.next(), NextAction::AskModel);
        assert_eq!(
            actions(&turn),
            [
                "tool_call_request",
                "tool_result",
                "tool_result",
                "tool_result"
            ]
        );
        let messages = turn.messages();
        assert_eq!(messages.len(), 4);
        assert_eq!(messages[2].content, "There is no such tool.");
        assert_eq!(messages[2].is_error, Some(true));
    }

    #[test]
    fn calls_left_to_others_end_the_turn_after_the_rest_ran() {
        let mut turn = turn();
        answer(&mut turn, "", &["client", "server", "asks"]);
        assert_eq!(turn.next(), NextAction::RunTools(vec![1]));
        turn.finish_call(1, done("x"));
        assert_eq!(turn.next(), NextAction::Finish(TurnEnding::LeftToClient));
        let events = turn.events(&WholeOutputs::default()).unwrap();
        assert_eq!(events.len(), 2);
        let note = events[0].note.as_ref().unwrap();
        assert_eq!(note.approvals["c2"], "ap");
    }

    #[test]
    fn the_class_decides_on_approval_before_any_call_runs() {
        let mut turn = turn();
        answer(&mut turn, "", &["class", "server", "class"]);
        assert_eq!(turn.next(), NextAction::AskClass(vec![0, 2]));
        // Calls undecided at the eviction are submitted to the class again.
        let stored = serde_json::to_string(&turn).unwrap();
        let mut turn: Turn = serde_json::from_str(&stored).unwrap();
        turn.resume();
        assert_eq!(turn.next(), NextAction::AskClass(vec![0, 2]));
        turn.newest_calls()[0].apply_decision(false);
        turn.newest_calls()[2].apply_decision(true);
        assert_eq!(turn.next(), NextAction::RunTools(vec![0, 1]));
        // Decided calls stay decided.
        let stored = serde_json::to_string(&turn).unwrap();
        let mut turn: Turn = serde_json::from_str(&stored).unwrap();
        turn.resume();
        assert!(turn.newest_calls()[0].skips_approval);
        turn.newest_calls()[1].apply_decision(true);
        assert_eq!(turn.next(), NextAction::RunTools(vec![0, 1]));
        turn.finish_call(0, done("x"));
        turn.finish_call(1, done("y"));
        assert_eq!(turn.next(), NextAction::Finish(TurnEnding::LeftToClient));
        let events = turn.events(&WholeOutputs::default()).unwrap();
        let note = events[0].note.as_ref().unwrap();
        assert_eq!(note.approvals.keys().collect::<Vec<_>>(), ["c2"]);
        assert_eq!(note.fingerprints["c2"], "the class's tool");
    }

    #[test]
    fn closing_a_turn_closes_its_open_calls() {
        for close in [Turn::cancel, Turn::fail] {
            let mut turn = turn();
            answer(&mut turn, "", &["class"]);
            close(&mut turn);
            assert_eq!(actions(&turn), ["tool_call_request", "tool_result"]);
        }
    }

    #[test]
    fn steps_are_counted() {
        let mut turn = turn();
        for _ in 0..3 {
            assert_eq!(turn.next(), NextAction::AskModel);
            answer(&mut turn, "", &["server"]);
            turn.finish_call(0, done("x"));
        }
        assert_eq!(turn.next(), NextAction::Finish(TurnEnding::StepLimit));
    }

    #[test]
    fn running_approved_calls_is_not_a_model_step() {
        let mut turn = turn();
        turn.is_continuation = true;
        let mut step = TurnStep {
            is_logged: true,
            ..TurnStep::default()
        };
        let mut source = self::turn();
        answer(&mut source, "", &["server"]);
        step.calls = source.steps.remove(0).calls;
        turn.steps.push(step);
        assert_eq!(turn.next(), NextAction::RunTools(vec![0]));
        turn.finish_call(0, done("paid"));
        assert_eq!(turn.next(), NextAction::AskModel);
        answer(&mut turn, "Done.", &[]);
        assert_eq!(actions(&turn), ["tool_result", "agent_message"]);
        assert!(
            turn.events(&WholeOutputs::default()).unwrap()[0]
                .id
                .is_none()
        );
        assert_eq!(turn.messages().len(), 2);
    }

    #[test]
    fn no_call_runs_twice_after_a_crash() {
        let mut turn = turn();
        answer(&mut turn, "", &["server", "server", "server"]);
        turn.start_calls(&[0, 1]);
        turn.finish_call(0, done("one"));
        let stored = serde_json::to_string(&turn).unwrap();
        let mut turn: Turn = serde_json::from_str(&stored).unwrap();
        turn.resume();
        assert_eq!(turn.next(), NextAction::RunTools(vec![2]));
        let calls = turn.newest_calls();
        assert_eq!(calls[0].state, done("one"));
        assert_eq!(calls[1].state, CallState::failed(CUT_OFF));
    }

    #[test]
    fn a_cancelled_turn_keeps_its_text_and_closes_its_calls() {
        let mut turn = turn();
        answer(&mut turn, "Let me", &["server", "server", "client"]);
        turn.start_calls(&[0]);
        turn.cancel();
        assert_eq!(
            actions(&turn),
            ["tool_call_request", "tool_result", "tool_result"]
        );
        let mut silent = self::turn();
        answer(&mut silent, "", &[]);
        assert_eq!(actions(&silent), [] as [&str; 0]);
    }

    #[test]
    fn arguments_that_are_not_an_object_are_reported_and_stored() {
        let mut turn = turn();
        let model_calls = vec![ModelCall {
            id: "c".to_owned(),
            name: "server".to_owned(),
            arguments: "[1".to_owned(),
        }];
        let reason = FinishReason::ToolCalls;
        turn.add_answer(
            String::new(),
            String::new(),
            model_calls,
            reason,
            &runner,
            &mut || String::new(),
        );
        assert_eq!(turn.next(), NextAction::AskModel);
        let events = turn.events(&WholeOutputs::default()).unwrap();
        assert_eq!(events[0].note.as_ref().unwrap().bad_arguments["c"], "[1");
        assert_eq!(events[1].content.as_deref(), Some(BAD_ARGUMENTS));
        assert_eq!(events[1].is_error, Some(true));
    }

    #[test]
    fn too_many_calls_are_refused_individually() {
        let mut turn = turn();
        answer(&mut turn, "", &["server"; 70]);
        assert_eq!(turn.next(), NextAction::RunTools((0..MAX_CALLS).collect()));
        assert_eq!(
            turn.newest_calls()[MAX_CALLS].state,
            CallState::failed(TOO_MANY)
        );
    }
}
