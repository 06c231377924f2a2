//! Converts rows into messages. Pure: takes the rows of a path, newest first, and returns
//! messages.
//!
//! A row that was appended as a message is a message. So is each event of a user or the
//! system. Adjacent assistant and tool events form one message: their calls become
//! `tool-<name>` parts, and the results are added to these parts.

use crate::log::row::EventRow;
use crate::log::tool::RenderedTool;
use serde::Serialize;

use crate::log::note::Note;
use crate::messages::tree::overlays::Overlay;
use base::action::{Action, Role};
use base::budget::MAX_ANSWER_BYTES;
use base::error::{Error, Result};
use base::json::{self, JsonObject};
use base::part::{NewPart, NewToolPart, PartApproval, PartCall, PartResult};

/// The most events of one message. A longer run is split, and so is a run that exceeds the
/// longest answer. Reading a message is therefore bounded.
pub const MAX_RUN_EVENTS: usize = 1000;

/// A message as JSON, and its position in the log.
#[derive(Debug)]
pub struct Message {
    pub id: String,
    pub json: String,
    /// The message's first event.
    pub first_seq: i64,
    /// The event that the first event follows; 0: none.
    pub parent_seq: i64,
}

/// The prefix of a message id that represents an overlay, as in the stock SDK.
const COMPACTION_PREFIX: &str = "compaction_";

impl Message {
    /// The message that replaces the events that an overlay covers.
    pub fn from_overlay(overlay: &Overlay) -> Result<Self> {
        let id = format!("{COMPACTION_PREFIX}{}", overlay.id);
        let json = render(&RenderedMessage {
            id: &id,
            role: Role::Assistant,
            parts: &[NewPart::Text(&overlay.summary)],
            metadata: None,
            created_at: overlay.created_at,
        })?;
        Ok(Self {
            id,
            json,
            first_seq: overlay.range.from_seq,
            parent_seq: overlay.range.above_seq,
        })
    }
}

/// Builds messages, newest first, from a path's rows, newest first.
#[derive(Default)]
pub struct MessageGatherer {
    run: Vec<EventRow>,
    run_bytes: usize,
}

impl MessageGatherer {
    /// Adds the next row up the path. Returns the messages that the row completes, in
    /// order: the run below the row, then the row's own message.
    pub fn add(&mut self, row: EventRow) -> Result<[Option<Message>; 2]> {
        if row.is_run_member() {
            self.run_bytes += row.body_bytes();
            let is_full = self.run.len() >= MAX_RUN_EVENTS || self.run_bytes > MAX_ANSWER_BYTES;
            let is_complete = is_full || !self.is_within_run();
            let completed = if is_complete && !self.run.is_empty() {
                self.run_bytes = row.body_bytes();
                self.finish()?
            } else {
                None
            };
            self.run.push(row);
            return Ok([completed, None]);
        }
        let run = self.finish()?;
        Ok([run, Some(single(&row)?)])
    }

    /// Completes the open run, at the end of the path or when the reader stops.
    pub fn finish(&mut self) -> Result<Option<Message>> {
        self.run_bytes = 0;
        let mut run = std::mem::take(&mut self.run);
        run.reverse();
        if run.is_empty() {
            Ok(None)
        } else {
            joined(&run).map(Some)
        }
    }

    /// Whether the next row up the path may belong to the message of the last one.
    pub fn is_within_run(&self) -> bool {
        self.run.last().is_some_and(|oldest| !oldest.splits_run)
    }
}

/// A message made from a single row.
fn single(row: &EventRow) -> Result<Message> {
    let json = match &row.message {
        Some(fields) => {
            let date = if row.is_dated {
                String::new()
            } else {
                format!(r#","createdAt":{}"#, row.created_at)
            };
            // Join the pieces at once: growing by doubling takes three times the length.
            let json = [r#"{"id":"#, &json::quoted(&row.id), ",", fields, &date, "}"].concat();
            json::decode::<serde::de::IgnoredAny>(&json).map_err(|_| row.damaged())?;
            json
        }
        None => {
            let role = match row.action.role() {
                Role::User => Role::User,
                _ => Role::System,
            };
            let parts = vec![NewPart::Text(&row.content)];
            render_row(row, role, &parts, row.metadata.as_deref())?
        }
    };
    Ok(Message {
        id: row.id.clone(),
        json,
        first_seq: row.seq,
        parent_seq: row.parent_seq,
    })
}

/// Builds one assistant message from a run of events, oldest first.
fn joined(run: &[EventRow]) -> Result<Message> {
    let Some(first) = run.first() else {
        return Err(Error::storage("an empty run of events"));
    };
    let mut parts: Vec<NewPart<'_>> = Vec::new();
    // The index of each event's first part.
    let mut begins: Vec<usize> = Vec::new();
    for row in run {
        let note = row.note()?;
        let tool = match &row.tool {
            Some(tool) => Some(json::decode::<RenderedTool>(tool).map_err(|_| row.damaged())?),
            None => None,
        };
        if row.action == Action::ToolResult {
            add_result(&mut parts, &begins, row, tool, note)?;
            continue;
        }
        let mut note = note;
        begins.push(parts.len());
        if !note.reasoning.is_empty() {
            parts.push(NewPart::Reasoning(std::mem::take(&mut note.reasoning)));
        }
        if !row.content.is_empty() {
            parts.push(NewPart::Text(&row.content));
        }
        let mut input_requests = Vec::new();
        for call in tool
            .into_iter()
            .filter_map(|tool| tool.tool_calls)
            .flatten()
        {
            let question = note.questions.get(&call.id);
            input_requests.extend(question.map(|question| question.to_part(&call.id, &call.name)));
            parts.push(NewPart::Tool(NewToolPart::new(PartCall {
                approval: approval_of(&mut note, &call.id),
                raw_input: note.bad_arguments.remove(&call.id),
                id: call.id,
                tool_name: call.name,
                input: call.arguments,
            })));
        }
        parts.extend(input_requests.into_iter().map(NewPart::InputRequest));
    }
    let metadata = run.iter().rev().find_map(|row| row.metadata.as_deref());
    Ok(Message {
        id: first.id.clone(),
        json: render_row(first, Role::Assistant, &parts, metadata)?,
        first_seq: first.seq,
        parent_seq: first.parent_seq,
    })
}

fn approval_of(note: &mut Note, call_id: &str) -> Option<PartApproval> {
    // The user has approved the call, and its tool asks. A client repeats its request as soon as
    // every call of a step is approved.
    if note.questions.contains_key(call_id) {
        note.decided.remove(call_id);
        return None;
    }
    let requested = note.approvals.remove(call_id).map(|id| PartApproval {
        id: Some(id),
        ..PartApproval::default()
    });
    note.decided
        .remove(call_id)
        .map(PartApproval::from)
        .or(requested)
}

/// Adds a result to the part of its call. That is the call with this id in the newest event
/// that has an open one; within an event, the first. If the run doesn't contain the call,
/// the result becomes a part of its own. `begins` is the index of each event's first part.
fn add_result<'a>(
    parts: &mut Vec<NewPart<'a>>,
    begins: &[usize],
    row: &'a EventRow,
    tool: Option<RenderedTool>,
    note: Note,
) -> Result<()> {
    let Some(RenderedTool {
        tool_call_id: Some(id),
        tool_name,
        is_error,
        ..
    }) = tool
    else {
        return Err(row.damaged());
    };
    let awaits = |part: &NewPart<'_>| matches!(part, NewPart::Tool(part) if part.awaits(&id));
    let newest = parts.iter().rposition(awaits);
    let found = newest.and_then(|newest| {
        let event = begins.partition_point(|begin| *begin <= newest);
        let begin = begins.get(event.checked_sub(1)?).copied()?;
        let mut of_event = parts.iter().enumerate().skip(begin);
        of_event
            .find(|(_, part)| awaits(part))
            .map(|(index, _)| index)
    });
    let index = match found {
        Some(index) => index,
        None => {
            parts.push(NewPart::Tool(NewToolPart::new(PartCall {
                id,
                tool_name: tool_name.unwrap_or_default(),
                input: json::raw("{}".to_owned()).map_err(|_| row.damaged())?,
                raw_input: None,
                approval: None,
            })));
            parts.len() - 1
        }
    };
    if let Some(NewPart::Tool(part)) = parts.get_mut(index) {
        let result = PartResult {
            content: &row.content,
            is_json: note.is_json,
            is_error: is_error == Some(true),
            approval: note.approval.map(PartApproval::from),
        };
        part.set_result(result).map_err(|_| row.damaged())?;
    }
    Ok(())
}

fn render_row(
    row: &EventRow,
    role: Role,
    parts: &[NewPart<'_>],
    metadata: Option<&str>,
) -> Result<String> {
    let metadata = metadata
        .map(json::decode)
        .transpose()
        .map_err(|_| row.damaged())?;
    render(&RenderedMessage {
        id: &row.id,
        role,
        parts,
        metadata,
        created_at: row.created_at,
    })
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct RenderedMessage<'a> {
    id: &'a str,
    role: Role,
    parts: &'a [NewPart<'a>],
    #[serde(skip_serializing_if = "Option::is_none")]
    metadata: Option<JsonObject>,
    created_at: i64,
}

fn render(message: &RenderedMessage<'_>) -> Result<String> {
    json::encode(message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::action::StoredAction;
    use serde_json::{Value, json};

    fn row(seq: i64, action: &str, content: &str, tool: Option<Value>) -> EventRow {
        EventRow {
            seq,
            parent_seq: seq - 1,
            id: format!("e{seq}"),
            action: StoredAction::parse(action),
            tool: tool.map(|tool| tool.to_string()),
            metadata: None,
            is_dated: false,
            created_at: seq * 10,
            sliced_bytes: 0,
            note: None,
            media: None,
            content: content.to_owned(),
            message: None,
            splits_run: false,
        }
    }

    /// The messages of a path given oldest first, oldest first.
    fn gather(rows: Vec<EventRow>) -> Vec<Value> {
        let mut gatherer = MessageGatherer::default();
        let mut messages = Vec::new();
        for row in rows.into_iter().rev() {
            messages.extend(gatherer.add(row).unwrap().into_iter().flatten());
        }
        messages.extend(gatherer.finish().unwrap());
        messages.reverse();
        messages
            .iter()
            .map(|message| serde_json::from_str(&message.json).unwrap())
            .collect()
    }

    #[test]
    fn events_of_a_turn_form_one_message_with_tool_results() {
        let calls = json!({"toolCalls": [
            {"id": "c1", "name": "echo", "arguments": {"a": 1}},
            {"id": "c2", "name": "weather", "arguments": {}},
            {"id": "c3", "name": "slow", "arguments": {}}
        ]});
        let result = |id: &str, error: bool| {
            Some(json!({"toolCallId": id, "toolName": "echo", "isError": error}))
        };
        let messages = gather(vec![
            row(1, "user_message", "hi", None),
            row(2, "tool_call_request", "Let me see.", Some(calls)),
            row(3, "tool_result", "no weather", result("c2", true)),
            row(4, "tool_result", "1", result("c1", false)),
            row(5, "agent_message", "Done.", None),
            row(6, "user_message", "thanks", None),
        ]);
        assert_eq!(
            messages,
            [
                json!({"id": "e1", "role": "user", "parts": [{"type": "text", "text": "hi"}], "createdAt": 10}),
                json!({"id": "e2", "role": "assistant", "createdAt": 20, "parts": [
                    {"type": "text", "text": "Let me see."},
                    {"type": "tool-echo", "toolCallId": "c1", "state": "output-available", "input": {"a": 1}, "output": "1"},
                    {"type": "tool-weather", "toolCallId": "c2", "state": "output-error", "input": {}, "errorText": "no weather"},
                    {"type": "tool-slow", "toolCallId": "c3", "state": "input-available", "input": {}},
                    {"type": "text", "text": "Done."}
                ]}),
                json!({"id": "e6", "role": "user", "parts": [{"type": "text", "text": "thanks"}], "createdAt": 60}),
            ]
        );
    }

    #[test]
    fn calls_that_share_an_id_keep_their_own_results() {
        let calls = |inputs: &[i64]| {
            let call = |n: &i64| json!({"id": "c", "name": "echo", "arguments": {"n": n}});
            let calls: Vec<Value> = inputs.iter().map(call).collect();
            Some(json!({"toolCalls": calls}))
        };
        let result = || Some(json!({"toolCallId": "c", "toolName": "echo"}));
        let messages = gather(vec![
            row(1, "tool_call_request", "", calls(&[0])),
            row(2, "tool_call_request", "", calls(&[1, 2])),
            row(3, "tool_result", "1", result()),
            row(4, "tool_result", "2", result()),
            row(5, "tool_call_request", "", calls(&[3])),
            row(6, "tool_result", "3", result()),
        ]);
        let parts = messages[0]["parts"].as_array().unwrap();
        let read = parts
            .iter()
            .map(|part| (part["input"]["n"].clone(), part.get("output")));
        let read: Vec<_> = read.collect();
        let outputs = ["1", "2", "3"].map(Value::from);
        assert_eq!(
            read,
            [
                (json!(0), None),
                (json!(1), Some(&outputs[0])),
                (json!(2), Some(&outputs[1])),
                (json!(3), Some(&outputs[2])),
            ]
        );
    }

    #[test]
    fn a_result_without_a_call_is_its_own_message() {
        let messages = gather(vec![row(
            1,
            "tool_result",
            "lost",
            Some(json!({"toolCallId": "c", "toolName": "echo"})),
        )]);
        assert_eq!(
            messages[0]["parts"],
            json!([
                {"type": "tool-echo", "toolCallId": "c", "state": "output-available", "input": {}, "output": "lost"}
            ])
        );
    }

    #[test]
    fn a_stored_message_is_never_part_of_a_run() {
        let mut stored = row(2, "agent_message", "x", None);
        stored.message =
            Some(r#""role":"assistant","parts":[{"type":"text","text":"x"}]"#.to_owned());
        let messages = gather(vec![
            row(1, "agent_message", "a", None),
            stored,
            row(3, "agent_message", "b", None),
        ]);
        let ids: Vec<_> = messages
            .iter()
            .map(|message| message["id"].clone())
            .collect();
        assert_eq!(ids, ["e1", "e2", "e3"]);
        assert_eq!(
            messages[1],
            json!({"id": "e2", "role": "assistant", "parts": [{"type": "text", "text": "x"}], "createdAt": 20})
        );
    }

    #[test]
    fn a_split_run_is_two_messages() {
        let mut continuations = row(2, "agent_message", "b", None);
        continuations.splits_run = true;
        let messages = gather(vec![
            row(1, "agent_message", "a", None),
            continuations,
            row(3, "agent_message", "c", None),
        ]);
        let ids: Vec<_> = messages.iter().map(|message| &message["id"]).collect();
        assert_eq!(ids, ["e1", "e2"]);
    }

    #[test]
    fn an_endless_run_is_cut_off() {
        let rows = (1..=2500)
            .map(|seq| row(seq, "agent_message", "x", None))
            .collect();
        assert_eq!(gather(rows).len(), 3);
    }
}
