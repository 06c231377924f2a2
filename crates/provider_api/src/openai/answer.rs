//! Renders a turn's answer in the Chat Completions format, streamed or whole.
//!
//! If the model uses this API, its own chunks are forwarded, so that nothing of them is
//! lost. Calls that run here are removed from them, several model requests form one answer,
//! and their usage is summed up.

use serde_json::{Map, Value};

use crate::events::Calls;
use crate::numbers::{add, chat_usage, object, set};
use base::json::{self, json};
use chat::stream::answer_events::AnswerEvent;
use models::{AnswerPart, FinishReason};

/// The separator between the texts of two model requests.
const BETWEEN: &str = "\n\n";

pub struct ChatAnswer {
    is_streamed: bool,
    wants_usage: bool,
    /// The id, the time and the model of the answer, which each chunk repeats.
    head: Map<String, Value>,
    has_native_head: bool,
    calls: Calls,
    is_native: bool,
    has_started: bool,
    /// Whether the answer has text, and whether the current model request has.
    has_text: bool,
    has_step_text: bool,
    usage: Option<Map<String, Value>>,
    /// The provider's own chunk with the usage.
    usage_chunk: Option<Value>,
    /// A chunk that starts calls, until their ids are known.
    pending: Option<Value>,
    has_finished: bool,
    whole: Whole,
    out: Vec<String>,
}

/// The answer, if it is returned whole.
#[derive(Default)]
struct Whole {
    /// The provider's newest whole answer.
    native: Option<Value>,
    texts: Vec<String>,
    calls: Vec<Value>,
    finish: Option<Value>,
}

impl ChatAnswer {
    pub fn new(
        (id, created, model): (String, i64, String),
        tools: impl Iterator<Item = String>,
        (is_streamed, wants_usage): (bool, bool),
    ) -> Self {
        Self {
            is_streamed,
            wants_usage,
            head: object(json!({"id": id, "created": created, "model": model})),
            has_native_head: false,
            calls: Calls::new(tools),
            is_native: false,
            has_started: false,
            has_text: false,
            has_step_text: false,
            usage: None,
            usage_chunk: None,
            pending: None,
            has_finished: false,
            whole: Whole::default(),
            out: Vec::new(),
        }
    }

    /// Processes a part of the model's output. Returns the chunks to send, as JSON.
    pub fn handle(&mut self, event: AnswerEvent) -> Vec<String> {
        match event {
            AnswerEvent::Step { is_native } => {
                self.flush();
                self.is_native = is_native;
                self.calls.begin_step();
                self.has_step_text = false;
            }
            AnswerEvent::Part(AnswerPart::Event(json)) => {
                self.flush();
                if let Ok(value) = json::decode_tree(&json) {
                    self.handle_native(value);
                }
            }
            AnswerEvent::Part(part) => self.handle_part(part),
        }
        std::mem::take(&mut self.out)
    }

    /// Processes a provider's event. If its form differs from the requested one, the answer
    /// is built from parts instead.
    fn handle_native(&mut self, value: Value) {
        let choice = value.get("choices").and_then(|choices| choices.get(0));
        let is_whole = choice.is_some_and(|choice| choice.get("message").is_some());
        let is_of_stream = value.get("choices").is_some() && !is_whole;
        match (self.is_streamed, is_whole, is_of_stream) {
            (true, _, true) => self.handle_chunk(value),
            (false, true, _) => {
                self.read_head(&value);
                self.whole.native = Some(value);
            }
            _ => self.is_native = false,
        }
    }

    fn read_head(&mut self, value: &Value) {
        if self.has_native_head {
            return;
        }
        self.has_native_head = true;
        for name in ["id", "created", "model"] {
            if let Some(value) = value.get(name) {
                self.head.insert(name.to_owned(), value.clone());
            }
        }
    }

    fn handle_chunk(&mut self, mut chunk: Value) {
        self.read_head(&chunk);
        if let Some(Value::Object(usage)) = chunk.get_mut("usage").map(Value::take) {
            add(self.usage.get_or_insert_default(), &usage);
        }
        let Some(choice) = chunk
            .get_mut("choices")
            .and_then(|choices| choices.get_mut(0))
        else {
            // The answer's own usage chunk is sent at its end.
            self.usage_chunk = Some(chunk);
            return;
        };
        let begins_calls = choice
            .get("delta")
            .and_then(|delta| delta.get("tool_calls")?.as_array())
            .is_some_and(|calls| calls.iter().any(|call| call.get("id").is_some()));
        if begins_calls {
            self.pending = Some(chunk);
        } else {
            self.emit_chunk(chunk);
        }
    }

    /// Sends the chunk that waits for the ids of its calls.
    fn flush(&mut self) {
        if let Some(chunk) = self.pending.take() {
            self.emit_chunk(chunk);
        }
    }

    fn emit_chunk(&mut self, mut chunk: Value) {
        let is_ours = self.calls.are_all_ours();
        let (has_text, has_step_text) = (self.has_text, self.has_step_text);
        let Some(choice) = chunk
            .get_mut("choices")
            .and_then(|choices| choices.get_mut(0))
        else {
            return;
        };
        let is_withheld = is_ours && choice.get("finish_reason").is_some_and(|it| !it.is_null());
        let mut is_empty = true;
        let mut received_text = false;
        if let Some(delta) = choice.get_mut("delta").and_then(Value::as_object_mut) {
            if self.has_started {
                delta.remove("role");
            }
            if let Some(Value::String(text)) = delta.get_mut("content")
                && !text.is_empty()
            {
                received_text = true;
                if has_text && !has_step_text {
                    text.insert_str(0, BETWEEN);
                }
            }
            if let Some(Value::Array(calls)) = delta.get_mut("tool_calls") {
                calls.retain_mut(|call| rename(&self.calls, call));
                if calls.is_empty() {
                    delta.remove("tool_calls");
                    // Also drop the null fields that start a message with only calls.
                    delta.retain(|_, value| !value.is_null());
                }
            }
            is_empty = delta.is_empty();
        }
        self.has_text |= received_text;
        self.has_step_text |= received_text;
        if is_withheld {
            set(choice, "finish_reason", Value::Null);
        }
        let finishes = choice.get("finish_reason").is_some_and(|it| !it.is_null());
        if is_empty && !finishes {
            return;
        }
        self.has_started = true;
        self.has_finished |= finishes;
        if let Some(fields) = chunk.as_object_mut() {
            for (name, value) in &self.head {
                fields.insert(name.clone(), value.clone());
            }
            if !self.wants_usage {
                fields.remove("usage");
            }
        }
        self.out.push(json::text(&chunk));
    }

    fn handle_part(&mut self, part: AnswerPart) {
        match part {
            AnswerPart::Text(text) => self.add_text(text),
            AnswerPart::CallStart { index, id, name } => {
                let number = self.calls.begin(index, id.clone(), &name);
                if let (Some(number), true) = (number, self.emits_parts()) {
                    self.emit(json!({"tool_calls": [{
                        "index": number,
                        "id": id,
                        "type": "function",
                        "function": {"name": name, "arguments": ""}
                    }]}));
                }
            }
            AnswerPart::CallDelta { index, text } => {
                let number = self.calls.record_piece(index);
                if let (Some(number), true) = (number, self.emits_parts()) {
                    self.emit_arguments(number, &text);
                }
            }
            AnswerPart::Call {
                index,
                id,
                name,
                arguments,
            } => {
                let Some((number, has_pieces)) = self.calls.complete(index) else {
                    return;
                };
                if self.emits_parts() && !has_pieces {
                    self.emit_arguments(number, &arguments);
                }
                self.whole.calls.push(json!({
                    "id": id,
                    "type": "function",
                    "function": {"name": name, "arguments": arguments}
                }));
            }
            AnswerPart::Usage(usage) => {
                // In a native stream, the usage was already counted. In a whole answer, it
                // is counted here.
                let native = self.whole.native.as_ref().and_then(|it| it.get("usage"));
                let usage = match native.and_then(Value::as_object) {
                    Some(usage) if self.is_native => usage.clone(),
                    _ => chat_usage(usage),
                };
                if !self.is_native || !self.is_streamed {
                    add(self.usage.get_or_insert_default(), &usage);
                }
            }
            AnswerPart::Finish(reason) => {
                self.flush();
                if !self.calls.are_all_ours() {
                    self.finish(reason);
                }
            }
            AnswerPart::Reasoning(_)
            | AnswerPart::ProviderData(_)
            | AnswerPart::Event(_)
            | AnswerPart::Failed(_) => {}
        }
    }

    fn add_text(&mut self, text: String) {
        if !self.is_streamed {
            if !self.has_step_text {
                self.whole.texts.push(String::new());
            }
            if let Some(last) = self.whole.texts.last_mut() {
                last.push_str(&text);
            }
            self.has_step_text = true;
        } else if self.emits_parts() {
            let between = if self.has_text && !self.has_step_text {
                BETWEEN
            } else {
                ""
            };
            self.emit(json!({"content": format!("{between}{text}")}));
            self.has_text = true;
            self.has_step_text = true;
        }
    }

    /// Whether the chunks are built from parts.
    fn emits_parts(&self) -> bool {
        self.is_streamed && !self.is_native
    }

    fn emit_arguments(&mut self, number: usize, text: &str) {
        self.emit(json!({"tool_calls": [{"index": number, "function": {"arguments": text}}]}));
    }

    fn emit(&mut self, mut delta: Value) {
        if !self.has_started {
            set(&mut delta, "role", "assistant".into());
            if delta.get("content").is_none() {
                set(&mut delta, "content", Value::Null);
            }
        }
        self.has_started = true;
        let choice = json!({"index": 0, "delta": delta, "logprobs": null, "finish_reason": null});
        self.push(vec![choice], Value::Null);
    }

    fn push(&mut self, choices: Vec<Value>, usage: Value) {
        let mut chunk = self.head.clone();
        chunk.insert("object".to_owned(), "chat.completion.chunk".into());
        chunk.insert("choices".to_owned(), Value::Array(choices));
        if self.wants_usage {
            chunk.insert("usage".to_owned(), usage);
        }
        self.out.push(json::text(&Value::Object(chunk)));
    }

    fn finish(&mut self, reason: FinishReason) {
        let name = name_of(reason);
        self.whole.finish.get_or_insert_with(|| name.into());
        if self.has_finished || !self.emits_parts() {
            return;
        }
        self.has_finished = true;
        let choice = json!({"index": 0, "delta": {}, "logprobs": null, "finish_reason": name});
        self.push(vec![choice], Value::Null);
    }

    /// The last chunks of a finished turn.
    pub fn end(&mut self) -> Vec<String> {
        self.flush();
        self.is_native &= self.has_finished;
        self.finish(FinishReason::Stop);
        if self.wants_usage {
            let usage = Value::Object(self.usage.take().unwrap_or_default());
            match self.usage_chunk.take() {
                Some(mut chunk) => {
                    for (name, value) in &self.head {
                        set(&mut chunk, name, value.clone());
                    }
                    set(&mut chunk, "usage", usage);
                    self.out.push(json::text(&chunk));
                }
                None => self.push(Vec::new(), usage),
            }
        }
        self.out.push("[DONE]".to_owned());
        std::mem::take(&mut self.out)
    }

    /// The whole answer.
    pub fn whole(&mut self) -> Value {
        let whole = std::mem::take(&mut self.whole);
        let mut answer = whole.native.unwrap_or_else(|| {
            json!({
                "object": "chat.completion",
                "choices": [{
                    "index": 0,
                    "message": {"role": "assistant", "content": null, "refusal": null},
                    "logprobs": null,
                    "finish_reason": "stop"
                }]
            })
        });
        for (name, value) in &self.head {
            set(&mut answer, name, value.clone());
        }
        if let Some(usage) = self.usage.take() {
            set(&mut answer, "usage", Value::Object(usage));
        }
        let choice = answer
            .get_mut("choices")
            .and_then(|choices| choices.get_mut(0));
        if let Some(choice) = choice {
            if let Some(finish) = whole.finish {
                let is_finished = choice.get("finish_reason").is_some_and(|it| !it.is_null());
                if !self.is_native || !is_finished {
                    set(choice, "finish_reason", finish);
                }
            }
            if let Some(message) = choice.get_mut("message") {
                let is_refusal = message.get("refusal").is_some_and(Value::is_string);
                if !is_refusal && !whole.texts.is_empty() {
                    set(message, "content", whole.texts.join(BETWEEN).into());
                }
                add_calls(message, whole.calls, &self.calls);
            }
        }
        answer
    }
}

/// Reduces a message's calls to those of the client's tools, with the ids of the log.
/// `recorded` are these calls, for a model that uses another API.
fn add_calls(message: &mut Value, recorded: Vec<Value>, calls: &Calls) {
    let Some(message) = message.as_object_mut() else {
        return;
    };
    let native = message.remove("tool_calls");
    let native = native.as_ref().and_then(Value::as_array);
    let retained = native.map(|native| {
        let known = native.iter().zip(&calls.started);
        let clients = known.filter(|(_, known)| known.number.is_some());
        let renamed = clients.map(|(call, known)| {
            let mut call = call.clone();
            set(&mut call, "id", known.id.clone().into());
            call
        });
        renamed.collect()
    });
    let retained: Vec<Value> = retained.unwrap_or(recorded);
    if !retained.is_empty() {
        message.insert("tool_calls".to_owned(), Value::Array(retained));
    }
}

/// Sets the number and the id that part of a call has in the answer. `false`: the call runs
/// here.
fn rename(calls: &Calls, call: &mut Value) -> bool {
    let index = call.get("index").and_then(Value::as_u64).unwrap_or(0);
    let known = usize::try_from(index)
        .ok()
        .and_then(|index| calls.started.get(index));
    let Some(known) = known else {
        return false;
    };
    let Some(number) = known.number else {
        return false;
    };
    set(call, "index", number.into());
    if call.get("id").is_some_and(Value::is_string) {
        set(call, "id", known.id.clone().into());
    }
    true
}

fn name_of(reason: FinishReason) -> &'static str {
    match reason {
        FinishReason::Length => "length",
        FinishReason::ContentFilter => "content_filter",
        FinishReason::ToolCalls => "tool_calls",
        FinishReason::Stop | FinishReason::Error | FinishReason::Other => "stop",
    }
}
