//! The record of a turn, with times: its model requests, its tool calls, the parts of its
//! context, its failure. A turn collects its record in its own state while it runs, so that
//! the record survives eviction. The event that ends the turn stores the record in
//! `ends_turn`. That row is written anyway. Imports never contain the column, and forks
//! don't copy it. A turn that failed, or that no event ended, has its own row
//! (`conversation/session/stored_turns.rs`).
//!
//! Invariant: a record contains names, numbers and this Worker's own sentences, and no text
//! of a message, an argument or an output.

pub mod ended;
pub mod failures;
pub mod page;
pub mod show;

use crate::json_schema::JsonSchema;
use serde::{Deserialize, Serialize};

use access::PrincipalKind;
use base::error::Error;
use base::json;
use base::trace::{StoredTrace, Trace};
use models::FinishReason;

/// The most bytes of a record, as JSON. Beyond that, the entries of its oldest steps are
/// dropped.
pub const MAX_RECORD_BYTES: usize = 12 << 10;

/// The most tool call entries of a running turn.
const MAX_TOOL_ENTRIES: usize = 256;

/// The most compaction entries. A request that is refused again after a compaction ends its
/// turn.
const MAX_COMPACTIONS: usize = 16;

/// The most bytes of a failure's message.
const MAX_SENTENCE_BYTES: usize = 1 << 10;

/// The reason why a turn ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TurnFinish {
    /// The model finished its answer.
    Stop,
    /// The model reached its output limit.
    Length,
    ContentFilter,
    /// A call waits for the client's output or the user's approval: the message's parts
    /// say which.
    ToolCalls,
    /// The turn was stopped by `cancelTurn`, by its page or by a later message.
    Cancelled,
    /// The turn failed.
    Error,
    #[default]
    Other,
}

impl From<FinishReason> for TurnFinish {
    fn from(reason: FinishReason) -> Self {
        match reason {
            FinishReason::Stop => Self::Stop,
            FinishReason::Length => Self::Length,
            FinishReason::ContentFilter => Self::ContentFilter,
            FinishReason::ToolCalls => Self::ToolCalls,
            FinishReason::Error => Self::Error,
            FinishReason::Other => Self::Other,
        }
    }
}

/// The record of a running or finished turn.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TurnRecord {
    pub started_at: i64,
    /// `None`: not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub asked_by: Option<AskedBy>,
    /// The turn's own span. It is stored, so that a turn that is resumed after an eviction
    /// stays in its trace.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trace: Option<StoredTrace>,
    /// The event that ended the session's previous turn, if known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before: Option<i64>,
    #[serde(skip_serializing_if = "is_none")]
    pub recoveries: i64,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<StepRecord>,
    #[serde(skip_serializing_if = "is_empty")]
    pub omitted_steps: usize,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub compactions: Vec<CompactionRecord>,
}

/// The caller who asked for a turn. Never a token itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AskedBy {
    pub kind: PrincipalKind,
    /// The name under which the turns of a token with limits are counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub holder: Option<String>,
}

/// The reason for a failure: an error code of this Worker, and a sentence.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RecordedFailure {
    pub code: String,
    pub message: String,
}

impl RecordedFailure {
    pub fn of(error: &Error) -> Self {
        let failure = Self {
            code: error.code.name().to_owned(),
            message: error.message.clone(),
        };
        failure.shortened()
    }

    pub fn shortened(mut self) -> Self {
        let end = self.message.floor_char_boundary(MAX_SENTENCE_BYTES);
        self.message.truncate(end);
        self
    }
}

/// One request to a model.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StepRecord {
    pub started_at: i64,
    /// From the step's start until its request was sent: reading memory from other sources,
    /// building the context, and waiting for capacity.
    pub prepared_ms: i64,
    /// From sending the request to the first part of the answer. `null`: there was no
    /// answer.
    pub time_to_first_token_ms: Option<i64>,
    /// From the step's start to the end of the answer.
    pub duration_ms: i64,
    /// `null`: no request was sent.
    pub model: Option<String>,
    /// The model that answered, as the provider names it: often a dated version of `model`. Absent:
    /// the provider did not name one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answered_by: Option<String>,
    pub input_tokens: i64,
    pub output_tokens: i64,
    pub cached_input_tokens: i64,
    pub cost: f64,
    /// `null`: the answer was interrupted.
    pub finish_reason: Option<TurnFinish>,
    /// The reason why the request failed. A request that was refused for its length is tried once
    /// more.
    pub failure: Option<RecordedFailure>,
    /// The parts of the request. `null`: the step ended before the request was made.
    pub context: Option<ContextRecord>,
    /// The tool calls in the answer, in order.
    pub tools: Vec<ToolRecord>,
    /// The number of calls that are left out of `tools`.
    pub omitted_tools: usize,
}

/// The parts of a request to a model, in estimated tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ContextRecord {
    /// The frozen prompt, instructions, and loaded documents that no message contains.
    pub system_prompt: i64,
    pub tools: i64,
    pub messages: i64,
    pub reminder: i64,
    pub total: i64,
    /// The maximum number of tokens of such a request.
    pub window_tokens: i64,
    pub sent_messages: i64,
    /// The approximate number of older messages that were neither sent nor part of a sent
    /// summary.
    pub left_out_messages: i64,
    /// The number of messages that were sent shortened.
    pub shortened_messages: i64,
}

/// The kind of a tool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum ToolKind {
    /// A tool on the agent's memory.
    Memory,
    /// A tool of a server of the Model Context Protocol.
    Mcp,
    /// A tool of the class that extends this one.
    Class,
    /// A tool of the client.
    Client,
    #[default]
    Registered,
}

/// One call of a tool.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ToolRecord {
    pub tool_call_id: String,
    pub name: String,
    pub kind: ToolKind,
    /// `null`: the call was not made. It was refused, or left to the client or the user.
    pub started_at: Option<i64>,
    /// `null`: the call was not made, or was interrupted.
    pub duration_ms: Option<i64>,
    /// The reason why the call failed: a sentence without its output. `null`: it did not fail.
    pub error: Option<String>,
}

/// A compaction that shortened the context for a request.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CompactionRecord {
    pub started_at: i64,
    pub duration_ms: i64,
    /// Estimated tokens of the conversation. `null`: nothing was compacted.
    pub tokens_before: Option<i64>,
    pub tokens_after: Option<i64>,
    /// The reason why there is no summary, or none by a model.
    pub failure: Option<RecordedFailure>,
}

impl TurnRecord {
    pub fn find_trace(&self) -> Option<Trace> {
        self.trace.as_ref().and_then(StoredTrace::find_trace)
    }

    /// Adds a step. If there are too many calls, only the newest steps keep their entries.
    pub fn add_step(&mut self, step: StepRecord) {
        self.steps.push(step);
        let mut left = MAX_TOOL_ENTRIES;
        for step in self.steps.iter_mut().rev() {
            let retained = step.tools.len().min(left);
            step.omitted_tools += step.tools.len() - retained;
            step.tools.truncate(retained);
            left -= retained;
        }
    }

    /// Sets the entries of the newest step's calls.
    pub fn record_calls(&mut self, tools: Vec<ToolRecord>) {
        if let Some(mut step) = self.steps.pop() {
            step.tools = tools;
            self.add_step(step);
        }
    }

    pub fn record_compaction(&mut self, compaction: CompactionRecord) {
        if self.compactions.len() < MAX_COMPACTIONS {
            self.compactions.push(compaction);
        }
    }

    /// The entry of a call in the newest step.
    pub fn tool_mut(&mut self, index: usize) -> Option<&mut ToolRecord> {
        self.steps.last_mut()?.tools.get_mut(index)
    }

    /// Drops entries of the oldest steps until the record fits.
    pub fn fit(&mut self) {
        while self.bytes() > MAX_RECORD_BYTES {
            if let Some(step) = self.steps.iter_mut().find(|step| !step.tools.is_empty()) {
                step.omitted_tools += step.tools.len();
                step.tools.clear();
            } else if !self.steps.is_empty() {
                // Drops several at once, because each check serializes the record.
                let dropped = (self.steps.len() / 4).max(1);
                self.steps.drain(..dropped);
                self.omitted_steps += dropped;
            } else if self.compactions.is_empty() {
                return;
            } else {
                self.compactions.clear();
            }
        }
    }

    fn bytes(&self) -> usize {
        json::encode(self).map_or(0, |json| json.len())
    }
}

// serde passes references.
fn is_none(number: &i64) -> bool {
    *number == 0
}

fn is_empty(number: &usize) -> bool {
    *number == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(calls: usize) -> StepRecord {
        let call = |index| ToolRecord {
            tool_call_id: format!("call-{index}"),
            name: "weather".to_owned(),
            error: Some("The call failed.".to_owned()),
            ..ToolRecord::default()
        };
        StepRecord {
            model: Some("openai:gpt-5-mini".to_owned()),
            context: Some(ContextRecord::default()),
            tools: (0..calls).map(call).collect(),
            ..StepRecord::default()
        }
    }

    #[test]
    fn a_short_record_is_stored_whole() {
        let mut record = TurnRecord::default();
        record.add_step(step(3));
        record.add_step(step(0));
        let original = record.clone();
        record.fit();
        assert_eq!(record, original);
    }

    #[test]
    fn a_long_record_drops_and_counts_its_oldest_entries() {
        let mut record = TurnRecord::default();
        for _ in 0..100 {
            record.add_step(step(64));
        }
        let tools: usize = record.steps.iter().map(|step| step.tools.len()).sum();
        assert_eq!(tools, MAX_TOOL_ENTRIES);
        assert_eq!(record.steps[0].omitted_tools, 64);
        record.fit();
        assert!(record.bytes() <= MAX_RECORD_BYTES);
        assert!(record.omitted_steps > 0 && !record.steps.is_empty());
        assert_eq!(record.omitted_steps + record.steps.len(), 100);
        let of_each = |step: &StepRecord| step.tools.len() + step.omitted_tools;
        assert!(record.steps.iter().all(|step| of_each(step) == 64));
    }

    #[test]
    fn a_record_round_trips() {
        let mut record = TurnRecord {
            started_at: 7,
            asked_by: Some(AskedBy {
                kind: PrincipalKind::Token,
                holder: Some("k-1".to_owned()),
            }),
            before: Some(3),
            recoveries: 1,
            ..TurnRecord::default()
        };
        record.add_step(step(2));
        record.compactions.push(CompactionRecord::default());
        let stored = json::encode(&record).unwrap();
        assert_eq!(json::decode::<TurnRecord>(&stored).unwrap(), record);
        let older: TurnRecord = json::decode("{}").unwrap();
        assert_eq!(older, TurnRecord::default());
    }
}
