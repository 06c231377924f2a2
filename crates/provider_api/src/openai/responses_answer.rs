//! Renders a turn's answer in the Responses format, streamed or whole. Each text and each
//! call of the client's tools is an item of the output. If the provider uses Responses, its
//! own items and events are forwarded: see `responses_native`.

use serde_json::{Map, Value};

use super::extra_output::ExtraOutput;
use super::responses_native::{NativeAnswer, events_of, kind_of};
use crate::events::Calls;
use crate::numbers::{object, set};
use base::json::{self, JsonObject, json};
use chat::stream::answer_events::AnswerEvent;
use models::caller_fields::find_items;
use models::{AnswerPart, FinishReason, TokenUsage};

pub struct ResponsesAnswer {
    head: Map<String, Value>,
    /// The base of the items' ids.
    name: String,
    calls: Calls,
    output: Vec<Value>,
    /// The open item, if any: the next item of the output.
    open: Option<OpenItem>,
    native: NativeAnswer,
    step: StepKind,
    /// The indexes of whole items that are sent when their calls have ids.
    unsent: Vec<usize>,
    usage: TokenUsage,
    extra: ExtraOutput,
    finish: FinishReason,
    sequence: u64,
    /// The initial events that were already sent.
    sent_starts: Vec<String>,
    out: Vec<String>,
}

/// The initial events of an answer.
const BEGINNINGS: [&str; 2] = ["response.created", "response.in_progress"];

/// How the current model request's answer is read.
#[derive(Clone, Copy, PartialEq)]
enum StepKind {
    /// From its parts.
    Parts,
    /// From the provider's events.
    Events,
    /// From its stored items.
    Items,
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
        if self.is_refusal {
            json!({"type": "refusal", "refusal": self.text.as_str()})
        } else {
            json!({
                "type": "output_text",
                "annotations": self.annotations.clone(),
                "logprobs": self.logprobs.clone(),
                "text": self.text.as_str()
            })
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
    /// `echo`: the request fields that the answer repeats.
    pub fn new(
        (name, created_s, model): (String, i64, String),
        tools: impl Iterator<Item = String>,
        echo: Option<&JsonObject>,
        wants_encrypted: bool,
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
        let echo = echo.map(object).unwrap_or_default();
        head.extend(echo.clone());
        Self {
            head,
            native: NativeAnswer::new(name.clone(), echo, wants_encrypted),
            step: StepKind::Parts,
            unsent: Vec::new(),
            name,
            calls: Calls::new(tools),
            output: Vec::new(),
            open: None,
            usage: TokenUsage::default(),
            extra: ExtraOutput::default(),
            finish: FinishReason::Stop,
            sequence: 0,
            sent_starts: Vec::new(),
            out: Vec::new(),
        }
    }

    /// Processes a part of the model's output. Returns the events to send, as JSON.
    pub fn handle(&mut self, event: AnswerEvent) -> Vec<String> {
        match event {
            AnswerEvent::Step { is_native } => {
                self.settle();
                self.close();
                self.calls.begin_step();
                self.native.begin_step();
                self.step = if is_native {
                    StepKind::Events
                } else {
                    StepKind::Parts
                };
                if !is_native {
                    self.begin();
                }
            }
            AnswerEvent::Part(part) => self.handle_part(part),
        }
        std::mem::take(&mut self.out)
    }

    fn handle_part(&mut self, part: AnswerPart) {
        match (self.step, part) {
            (StepKind::Parts, AnswerPart::ProviderData(data)) => self.handle_provider_data(&data),
            (StepKind::Parts, part) => self.handle_emitted(part),
            (StepKind::Events, AnswerPart::Event(json)) => {
                if let Ok(value) = json::decode_tree(&json) {
                    self.handle_native(value);
                }
            }
            (_, AnswerPart::CallStart { index, id, name }) => self.name_call(index, id, &name),
            (_, AnswerPart::Usage(usage)) => self.usage = self.usage.plus(usage),
            (_, AnswerPart::Finish(reason)) => {
                self.settle();
                self.finish = reason;
            }
            _ => {}
        }
    }

    /// Sets the id from the log on the item of a started call.
    fn name_call(&mut self, index: usize, id: String, name: &str) {
        if self.calls.begin(index, id.clone(), name).is_some() {
            let events = self.native.name_call(&id, &mut self.output);
            self.push_all(events);
        }
    }

    /// Processes the items of an answer from the log.
    fn handle_provider_data(&mut self, data: &str) {
        let data: Option<JsonObject> = json::decode(data).ok();
        let Some(items) = data.as_ref().and_then(find_items) else {
            return;
        };
        self.step = StepKind::Items;
        let items = items.iter();
        let items = items.filter_map(|item| json::decode_tree(item.get()).ok());
        self.add_items(items.collect());
    }

    fn add_items(&mut self, items: Vec<Value>) {
        let indexes = self.native.add_items(items, &mut self.output, &self.calls);
        self.unsent.extend(indexes);
    }

    /// Sends what waited for the ids of calls.
    fn settle(&mut self) {
        let events = self.native.flush();
        self.push_all(events);
        for index in std::mem::take(&mut self.unsent) {
            let item = self.output.get(index);
            let events = item.map(|item| events_of(item, index)).unwrap_or_default();
            self.push_all(events);
        }
    }

    fn push_all(&mut self, events: Vec<Value>) {
        for event in events {
            let kind = kind_of(&event).to_owned();
            self.push(&kind, event);
        }
    }

    /// Processes an event of a provider that uses Responses, or its whole answer.
    fn handle_native(&mut self, mut value: Value) {
        let kind = kind_of(&value).to_owned();
        let response = value.get_mut("response").map(Value::take);
        match (kind.as_str(), response) {
            ("response.completed" | "response.incomplete", Some(response)) => {
                self.native.handle_response(&response, &self.calls);
            }
            ("response.failed", Some(response)) => {
                self.native.fail();
                self.native.handle_response(&response, &self.calls);
                self.settle();
                if let Some(failed) = self.end_of_native() {
                    self.push(&kind, json!({"response": failed}));
                }
            }
            (_, Some(response)) => self.handle_start(&kind, &response),
            // The turn fails and reports its own error.
            ("error", _) => {}
            ("", None) => self.handle_whole(&value),
            (_, None) => {
                let events = self.native.read_event(value, &mut self.output, &self.calls);
                self.push_all(events);
            }
        }
    }

    /// Processes an initial event. Each is sent once, even if the turn makes several requests.
    fn handle_start(&mut self, kind: &str, response: &Value) {
        if !self.sent_starts.iter().any(|sent| sent == kind) {
            self.sent_starts.push(kind.to_owned());
            let head = self.native.head(response, &self.calls);
            self.push(kind, json!({"response": Value::Object(head)}));
        }
    }

    fn handle_whole(&mut self, response: &Value) {
        let mut in_progress = response.clone();
        set(&mut in_progress, "status", "in_progress".into());
        set(&mut in_progress, "usage", Value::Null);
        for kind in BEGINNINGS {
            self.handle_start(kind, &in_progress);
        }
        let output = response.get("output").and_then(Value::as_array);
        self.add_items(output.cloned().unwrap_or_default());
        self.native.handle_response(response, &self.calls);
        if response.get("error").is_some_and(|error| !error.is_null()) {
            self.native.fail();
        }
    }

    /// The whole answer, as its provider completed it.
    fn end_of_native(&mut self) -> Option<Value> {
        let mut end = self.native.take_end()?;
        let items = self.output.iter().filter(|item| !item.is_null());
        set(&mut end, "output", items.cloned().collect());
        Some(end)
    }

    /// Whether the answer is the provider's failure.
    pub fn has_failed(&self) -> bool {
        self.native.has_failed()
    }

    fn handle_emitted(&mut self, part: AnswerPart) {
        match part {
            AnswerPart::Text(text) => self.add_text(&text),
            AnswerPart::CallStart { index, id, name } => {
                if self.calls.begin(index, id.clone(), &name).is_some() {
                    self.open(OpenItem::Call {
                        call_id: id,
                        name,
                        arguments: String::new(),
                    });
                }
            }
            AnswerPart::CallDelta { index, text } => self.add_arguments(index, &text),
            AnswerPart::Call {
                index, arguments, ..
            } => {
                let Some((_, has_pieces)) = self.calls.complete(index) else {
                    return;
                };
                if !has_pieces {
                    self.add_arguments(index, &arguments);
                }
                self.close();
            }
            AnswerPart::Usage(usage) => self.usage = self.usage.plus(usage),
            AnswerPart::Finish(reason) => {
                self.close();
                self.finish = reason;
            }
            AnswerPart::Event(json) => self.extra.add(&json),
            AnswerPart::Reasoning(_) | AnswerPart::ProviderData(_) | AnswerPart::Failed(_) => {}
        }
    }

    fn begin(&mut self) {
        if !self.sent_starts.is_empty() {
            return;
        }
        for kind in BEGINNINGS {
            self.sent_starts.push(kind.to_owned());
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

    /// The current state of the answer.
    fn response(&self, status: &str) -> Value {
        let mut response = self.head.clone();
        response.insert("status".to_owned(), status.into());
        let items = self.output.iter().filter(|item| !item.is_null());
        response.insert("output".to_owned(), items.cloned().collect());
        let usage = match status {
            "in_progress" => Value::Null,
            _ => json!({
                "input_tokens": self.usage.input_tokens,
                "input_tokens_details": {"cached_tokens": self.usage.cached_input_tokens},
                "output_tokens": self.usage.output_tokens,
                "output_tokens_details": {"reasoning_tokens": self.extra.reasoning_tokens},
                "total_tokens": self.usage.input_tokens.saturating_add(self.usage.output_tokens)
            }),
        };
        response.insert("usage".to_owned(), usage);
        if let Some(tier) = &self.extra.service_tier {
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

    /// The current state of the open item.
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

    fn add_text(&mut self, text: &str) {
        let is_refusal = self.extra.is_refusal(text);
        let continues =
            matches!(&self.open, Some(OpenItem::Text(open)) if open.is_refusal == is_refusal);
        if !continues {
            self.open(OpenItem::Text(OpenText {
                text: String::new(),
                is_refusal,
                annotations: Vec::new(),
                logprobs: Vec::new(),
            }));
        }
        let logprobs = std::mem::take(&mut self.extra.logprobs);
        if let Some(OpenItem::Text(open)) = &mut self.open {
            open.text.push_str(text);
            open.logprobs.extend(logprobs.iter().cloned());
        }
        let (id, at) = (self.id_of_open(), self.output.len());
        let delta = json!({"item_id": id, "output_index": at, "content_index": 0, "delta": text});
        if is_refusal {
            self.push("response.refusal.delta", delta);
        } else {
            let mut delta = delta;
            set(&mut delta, "logprobs", Value::Array(logprobs));
            self.push("response.output_text.delta", delta);
        }
    }

    fn add_arguments(&mut self, index: usize, text: &str) {
        if self.calls.record_piece(index).is_none() {
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
                    open.annotations.append(&mut self.extra.annotations);
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
        let position = json!({"item_id": id, "output_index": at, "content_index": 0});
        let with = |name: &str, value: Value| {
            let mut event = position.clone();
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
        events.push(if open.is_refusal {
            ("response.refusal.done", with("refusal", text))
        } else {
            let mut event = with("text", text);
            set(&mut event, "logprobs", Value::Array(open.logprobs.clone()));
            ("response.output_text.done", event)
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

    /// The last events of a finished turn.
    pub fn end(&mut self) -> Vec<String> {
        self.settle();
        if let Some(response) = self.end_of_native() {
            let status = response.get("status").and_then(Value::as_str);
            let kind = format!("response.{}", status.unwrap_or("completed"));
            self.push(&kind, json!({"response": response}));
            return std::mem::take(&mut self.out);
        }
        self.begin();
        self.close();
        let status = self.status();
        let response = self.response(status);
        self.push(&format!("response.{status}"), json!({"response": response}));
        std::mem::take(&mut self.out)
    }

    /// The whole answer.
    pub fn whole(&mut self) -> Value {
        self.settle();
        if let Some(response) = self.end_of_native() {
            return response;
        }
        self.close();
        self.response(self.status())
    }
}
