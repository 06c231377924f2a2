//! The stored answer of a finished turn, for a repeated request with the same idempotency
//! key.

use base::action::{Action, StoredAction};
use base::database::Database;
use base::error::{Error, Result};
use base::ids::Id;
use base::json;
use chat::stream::answer_events::AnswerEvent;
use chat::turn::report::find_report;
use conversation::log::event_facts::find_ends_turn;
use conversation::log::row::get_event_row;
use conversation::log::tool::CheckedTool;
use models::{AnswerPart, FinishReason, TokenUsage};

/// The most events of one turn that are read: 64 calls of 16 requests, each with a result.
const MAX_EVENTS: usize = 2_048;

/// An answer, and the model that generated it.
pub struct StoredAnswer {
    pub events: Vec<AnswerEvent>,
    pub model: Option<String>,
    pub tools: Vec<String>,
}

/// `seq` is the last event of the turn's answer.
pub fn find_stored(db: &dyn Database, session_id: &Id, seq: i64) -> Result<StoredAnswer> {
    let mut steps = Vec::new();
    let mut seq = seq;
    let mut has_calls = None;
    let mut report = None;
    for _ in 0..MAX_EVENTS {
        let row = get_event_row(db, session_id, seq)?;
        if matches!(
            row.action,
            StoredAction::Known(Action::AgentMessage | Action::ToolCallRequest)
        ) {
            let mut parts = Vec::new();
            let provider_data = row.note()?.provider_data;
            parts.extend(provider_data.map(|provider_data| {
                AnswerPart::ProviderData(provider_data.parts.as_str().to_owned())
            }));
            if !row.content.is_empty() {
                parts.push(AnswerPart::Text(row.content.clone()));
            }
            let calls = parts_of_calls(row.tool.as_deref(), &row.id)?;
            has_calls.get_or_insert(!calls.is_empty());
            parts.extend(calls);
            steps.push(parts);
        }
        if ends_turn(db, session_id, seq)? {
            report = Some(find_report(db, session_id, seq)?);
            break;
        }
        if row.parent_seq == 0 {
            break;
        }
        seq = row.parent_seq;
    }
    let mut tools = Vec::new();
    // The calls of the newest model request are the client's: with other calls the turn
    // would have continued.
    for part in steps.first().into_iter().flatten() {
        if let AnswerPart::CallStart { name, .. } = part {
            tools.push(name.clone());
        }
    }
    let mut events = Vec::new();
    for parts in steps.into_iter().rev() {
        events.push(AnswerEvent::Step { is_native: false });
        events.extend(parts.into_iter().map(AnswerEvent::Part));
    }
    let model = report
        .as_ref()
        .and_then(|report| report.spent.model.clone());
    if let Some(report) = report {
        let usage = TokenUsage {
            input_tokens: report.spent.input_tokens,
            output_tokens: report.spent.output_tokens,
            cached_input_tokens: report.spent.cached_input_tokens,
        };
        events.push(AnswerEvent::Part(AnswerPart::Usage(usage)));
    }
    let reason = match has_calls {
        Some(true) => FinishReason::ToolCalls,
        _ => FinishReason::Stop,
    };
    events.push(AnswerEvent::Part(AnswerPart::Finish(reason)));
    Ok(StoredAnswer {
        events,
        model,
        tools,
    })
}

/// Whether this event starts a turn's answer: the first event of an answer records the
/// turn's end.
fn ends_turn(db: &dyn Database, session_id: &Id, seq: i64) -> Result<bool> {
    Ok(find_ends_turn(db, session_id, seq)?.is_some())
}

fn parts_of_calls(tool: Option<&str>, id: &str) -> Result<Vec<AnswerPart>> {
    let Some(tool) = tool else {
        return Ok(Vec::new());
    };
    let called: CheckedTool =
        json::decode(tool).map_err(|_| Error::corrupt_row(id, "tool call"))?;
    let calls = called.tool_calls.into_iter().flatten().enumerate();
    let parts = calls.flat_map(|(index, call)| {
        let (id, name) = (call.id.as_str().to_owned(), call.name.as_str().to_owned());
        [
            AnswerPart::CallStart {
                index,
                id: id.clone(),
                name: name.clone(),
            },
            AnswerPart::Call {
                index,
                id,
                name,
                arguments: call.arguments.as_str().to_owned(),
            },
        ]
    });
    Ok(parts.collect())
}
