//! Writes a turn's answer as Responses does: in events, or whole. Each text and each call of the
//! client's tools is an item of the output.

use serde_json::{Map, Value};

use super::said_beside::SaidBeside;
use crate::events::Calls;
use crate::numbers::{object, set};
use base::json::{self, JsonObject, json};
use chat::stream::answer_events::AnswerEvent;
use models::{AnswerPart, FinishReason, TokenUsage};

pub struct ResponsesAnswer {
    head: Map<String, Value>,
    /// What the ids of items begin with.
    name: String,
    calls: Calls,
    output: Vec<Value>,
    /// What the open item is, if one is open. It is the next of the output.
    open: Option<OpenItem>,
    usage: TokenUsage,
    beside: SaidBeside,
    finish: FinishReason,
    sequence: u64,
    has_begun: bool,
    out: Vec<String>,
}

/// A text of the answer.
struct OpenText {
    text: String,
    is_refusal: bool,
    annotations: Vec<Value>,
    logprobs: Vec<Value>,
}

impl OpenText {
    fn part(&self) -> Value {
        match self.is_refusal {
            true => json!({"type": "refusal", "refusal": self.text.as_str()}),
            false => json!({
                "type": "output_text",
                "annotations": self.annotations.clone(),
                "logprobs": self.logprobs.clone(),
                "text": self.text.as_str()
            }),
        }
    }
}

enum OpenItem {
    Text(OpenText),
    Call {
        call_id: String,
        name: String,
        arguments: String,
    },
}

impl ResponsesAnswer {
    /// `echo`: the fields that the answer repeats.
    pub fn new(
        (name, created_s, model): (String, i64, String),
        tools: impl Iterator<Item = String>,
        echo: Option<&JsonObject>,
    ) -> Self {
        let mut head = object(json!({
            "background": false,
            "created_at": created_s,
            "error": null,
            "id": format!("resp_{name}"),
            "incomplete_details": null,
            "instructions": null,
            "max_output_tokens": null,
            "max_tool_calls": null,
            "metadata": {},
            "model": model,
            "object": "response",
            "parallel_tool_calls": true,
            "previous_response_id": null,
            "reasoning": {"effort": null, "summary": null},
            "service_tier": "default",
            "store": true,
            "temperature": 1.0,
            "text": {"format": {"type": "text"}},
            "tool_choice": "auto",
            "tools": [],
            "top_logprobs": 0,
            "top_p": 1.0,
            "truncation": "disabled",
            "user": null
        }));
        let echo = echo.and_then(|echo| json::decode_tree(echo.as_str()).ok());
        head.extend(echo.map(object).unwrap_or_default());
        Self {
            head,
            name,
            calls: Calls::new(tools),
            output: Vec::new(),
            open: None,
            usage: TokenUsage::default(),
            beside: SaidBeside::default(),
            finish: FinishReason::Stop,
            sequence: 0,
            has_begun: false,
            out: Vec::new(),
        }
    }

    /// Takes what the model said. Returns the events that are to be sent, as JSON.
    pub fn take(&mut self, event: AnswerEvent) -> Vec<String> {
        match event {
            AnswerEvent::Step { .. } => {
                self.begin();
                self.close();
                self.calls.begin_step();
            }
            AnswerEvent::Part(part) => self.take_part(part),
        }
        std::mem::take(&mut self.out)
    }

    fn take_part(&mut self, part: AnswerPart) {
        match part {
            AnswerPart::Text(text) => self.take_text(&text),
            AnswerPart::CallStart { index, id, name } => {
                if self.calls.begin(index, id.clone(), &name).is_some() {
                    self.open(OpenItem::Call {
                        call_id: id,
                        name,
                        arguments: String::new(),
                    });
                }
            }
            AnswerPart::CallDelta { index, text } => self.take_arguments(index, &text),
            AnswerPart::Call {
                index, arguments, ..
            } => {
                let Some((_, has_pieces)) = self.calls.complete(index) else {
                    return;
                };
                if !has_pieces {
                    self.take_arguments(index, &arguments);
                }
                self.close();
            }
            AnswerPart::Usage(usage) => self.usage = self.usage.plus(usage),
            AnswerPart::Finish(reason) => {
                self.close();
                self.finish = reason;
            }
            AnswerPart::Event(json) => self.beside.take(&json),
            AnswerPart::Reasoning(_) | AnswerPart::Kept(_) | AnswerPart::Failed(_) => {}
        }
    }

    fn begin(&mut self) {
        if self.has_begun {
            return;
        }
        self.has_begun = true;
        for kind in ["response.created", "response.in_progress"] {
            let response = self.response("in_progress");
            self.push(kind, json!({"response": response}));
        }
    }

    fn push(&mut self, kind: &str, mut event: Value) {
        if let Some(fields) = event.as_object_mut() {
            fields.insert("type".to_owned(), kind.into());
            fields.insert("sequence_number".to_owned(), self.sequence.into());
        }
        self.sequence += 1;
        self.out.push(json::text(&event));
    }

    /// The answer as it is so far.
    fn response(&self, status: &str) -> Value {
        let mut response = self.head.clone();
        response.insert("status".to_owned(), status.into());
        response.insert("output".to_owned(), Value::Array(self.output.clone()));
        let usage = match status {
            "in_progress" => Value::Null,
            _ => json!({
                "input_tokens": self.usage.input_tokens,
                "input_tokens_details": {"cached_tokens": self.usage.cached_input_tokens},
                "output_tokens": self.usage.output_tokens,
                "output_tokens_details": {"reasoning_tokens": self.beside.reasoning_tokens},
                "total_tokens": self.usage.input_tokens.saturating_add(self.usage.output_tokens)
            }),
        };
        response.insert("usage".to_owned(), usage);
        if let Some(tier) = &self.beside.service_tier {
            response.insert("service_tier".to_owned(), tier.clone());
        }
        if status == "incomplete" {
            let reason = match self.finish {
                FinishReason::ContentFilter => "content_filter",
                _ => "max_output_tokens",
            };
            response.insert("incomplete_details".to_owned(), json!({"reason": reason}));
        }
        Value::Object(response)
    }

    fn id_of_open(&self) -> String {
        let prefix = match &self.open {
            Some(OpenItem::Call { .. }) => "fc",
            _ => "msg",
        };
        format!("{prefix}_{}_{}", self.name, self.output.len())
    }

    /// The open item as it is so far.
    fn item(&self, status: &str) -> Value {
        let id = self.id_of_open();
        match &self.open {
            Some(OpenItem::Call {
                call_id,
                name,
                arguments,
            }) => json!({
                "id": id,
                "type": "function_call",
                "status": status,
                "call_id": call_id.as_str(),
                "name": name.as_str(),
                "arguments": arguments.as_str()
            }),
            Some(OpenItem::Text(text)) => {
                let content = match status {
                    "completed" => vec![text.part()],
                    _ => Vec::new(),
                };
                json!({
                    "id": id,
                    "type": "message",
                    "status": status,
                    "role": base::action::Role::Assistant.name(),
                    "content": content
                })
            }
            None => Value::Null,
        }
    }

    fn open(&mut self, item: OpenItem) {
        self.begin();
        self.close();
        let empty = match &item {
            OpenItem::Text(text) => Some(text.part()),
            OpenItem::Call { .. } => None,
        };
        self.open = Some(item);
        let at = self.output.len();
        let item = self.item("in_progress");
        self.push(
            "response.output_item.added",
            json!({"output_index": at, "item": item}),
        );
        if let Some(empty) = empty {
            let id = self.id_of_open();
            self.push(
                "response.content_part.added",
                json!({"item_id": id, "output_index": at, "content_index": 0, "part": empty}),
            );
        }
    }

    fn take_text(&mut self, text: &str) {
        let is_refusal = self.beside.is_refusal(text);
        let goes_on =
            matches!(&self.open, Some(OpenItem::Text(open)) if open.is_refusal == is_refusal);
        if !goes_on {
            self.open(OpenItem::Text(OpenText {
                text: String::new(),
                is_refusal,
                annotations: Vec::new(),
                logprobs: Vec::new(),
            }));
        }
        let logprobs = std::mem::take(&mut self.beside.logprobs);
        if let Some(OpenItem::Text(open)) = &mut self.open {
            open.text.push_str(text);
            open.logprobs.extend(logprobs.iter().cloned());
        }
        let (id, at) = (self.id_of_open(), self.output.len());
        let delta = json!({"item_id": id, "output_index": at, "content_index": 0, "delta": text});
        match is_refusal {
            true => self.push("response.refusal.delta", delta),
            false => {
                let mut delta = delta;
                set(&mut delta, "logprobs", Value::Array(logprobs));
                self.push("response.output_text.delta", delta);
            }
        }
    }

    fn take_arguments(&mut self, index: usize, text: &str) {
        if self.calls.take_piece(index).is_none() {
            return;
        }
        if let Some(OpenItem::Call { arguments, .. }) = &mut self.open {
            arguments.push_str(text);
        }
        let (id, at) = (self.id_of_open(), self.output.len());
        self.push(
            "response.function_call_arguments.delta",
            json!({"item_id": id, "output_index": at, "delta": text}),
        );
    }

    fn close(&mut self) {
        let (id, at) = (self.id_of_open(), self.output.len());
        match &mut self.open {
            None => return,
            Some(OpenItem::Text(open)) => {
                if !open.is_refusal {
                    open.annotations.append(&mut self.beside.annotations);
                }
                self.close_text(&id, at);
            }
            Some(OpenItem::Call { arguments, .. }) => {
                let whole =
                    json!({"item_id": id, "output_index": at, "arguments": arguments.as_str()});
                self.push("response.function_call_arguments.done", whole);
            }
        }
        let item = self.item("completed");
        self.open = None;
        self.output.push(item.clone());
        self.push(
            "response.output_item.done",
            json!({"output_index": at, "item": item}),
        );
    }

    /// The last events of the open text.
    fn close_text(&mut self, id: &str, at: usize) {
        let Some(OpenItem::Text(open)) = &self.open else {
            return;
        };
        let place = json!({"item_id": id, "output_index": at, "content_index": 0});
        let with = |name: &str, value: Value| {
            let mut event = place.clone();
            set(&mut event, name, value);
            event
        };
        let mut events = Vec::new();
        for (index, annotation) in open.annotations.iter().enumerate() {
            let mut event = with("annotation", annotation.clone());
            set(&mut event, "annotation_index", index.into());
            events.push(("response.output_text.annotation.added", event));
        }
        let text = Value::from(open.text.as_str());
        events.push(match open.is_refusal {
            true => ("response.refusal.done", with("refusal", text)),
            false => {
                let mut event = with("text", text);
                set(&mut event, "logprobs", Value::Array(open.logprobs.clone()));
                ("response.output_text.done", event)
            }
        });
        events.push(("response.content_part.done", with("part", open.part())));
        for (kind, event) in events {
            self.push(kind, event);
        }
    }

    fn status(&self) -> &'static str {
        match self.finish {
            FinishReason::Length | FinishReason::ContentFilter => "incomplete",
            _ => "completed",
        }
    }

    /// The last events of a turn that is over.
    pub fn end(&mut self) -> Vec<String> {
        self.begin();
        self.close();
        let status = self.status();
        let response = self.response(status);
        self.push(&format!("response.{status}"), json!({"response": response}));
        std::mem::take(&mut self.out)
    }

    /// The whole answer.
    pub fn whole(&mut self) -> Value {
        self.close();
        self.response(self.status())
    }
}
