//! Writes a turn's answer in the format of Messages: as events, or whole.
//!
//! If the model uses this API, its own events pass through, so that nothing is lost. Calls that run
//! here are removed from them, the blocks of several requests to the model make one answer, and
//! their usage is added up.

use std::collections::HashMap;

use serde_json::{Map, Value};

use crate::events::Calls;
use crate::numbers::{add, messages_usage, renew, set};
use base::json::{self, json};
use chat::stream::answer_events::AnswerEvent;
use models::{AnswerPart, FinishReason, TokenUsage};

pub struct MessagesAnswer {
    is_streamed: bool,
    id: String,
    model: String,
    calls: Calls,
    is_native: bool,
    has_started: bool,
    /// The blocks so far, of all requests to the model.
    blocks: usize,
    /// The number in the answer of each of the provider's blocks. `None`: its call runs here.
    numbers: HashMap<u64, Option<usize>>,
    /// The kind of the open block, where events are made from parts.
    open: Option<&'static str>,
    /// The usage of earlier requests to the model, and of the present one.
    earlier: Map<String, Value>,
    usage: Map<String, Value>,
    /// The start event of a call, until the call's id is known.
    pending: Option<Value>,
    /// Whether the end of this request to the model is withheld, because the turn continues by
    /// itself.
    is_withheld: bool,
    has_stopped: bool,
    stop: Option<&'static str>,
    /// The newest whole answer of the provider, and the blocks of all answers.
    native: Option<Value>,
    content: Vec<Value>,
    out: Vec<String>,
}

impl MessagesAnswer {
    pub fn new(
        (id, model): (String, String),
        tools: impl Iterator<Item = String>,
        is_streamed: bool,
    ) -> Self {
        Self {
            is_streamed,
            id,
            model,
            calls: Calls::new(tools),
            is_native: false,
            has_started: false,
            blocks: 0,
            numbers: HashMap::new(),
            open: None,
            earlier: Map::new(),
            usage: Map::new(),
            pending: None,
            is_withheld: false,
            has_stopped: false,
            stop: None,
            native: None,
            content: Vec::new(),
            out: Vec::new(),
        }
    }

    /// Processes an event of the turn. Returns the events to send, as JSON.
    pub fn handle(&mut self, event: AnswerEvent) -> Vec<String> {
        match event {
            AnswerEvent::Step { is_native } => {
                self.flush();
                self.close();
                self.is_native = is_native;
                self.is_withheld = false;
                self.calls.begin_step();
                self.numbers.clear();
                let used = std::mem::take(&mut self.usage);
                add(&mut self.earlier, &used);
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

    fn handle_native(&mut self, event: Value) {
        let kind = event
            .get("type")
            .and_then(Value::as_str)
            .unwrap_or_default();
        match (self.is_streamed, kind) {
            (false, "message") => self.native = Some(event),
            (true, "message") | (false, _) => self.is_native = false,
            (true, "content_block_start") if is_call(&event) => self.pending = Some(event),
            (true, _) => self.emit_native(event),
        }
    }

    /// Sends the event that waits for the id of its call.
    fn flush(&mut self) {
        if let Some(event) = self.pending.take() {
            self.emit_native(event);
        }
    }

    fn emit_native(&mut self, mut event: Value) {
        let kind = event
            .get("type")
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned();
        let index = event.get("index").and_then(Value::as_u64);
        match kind.as_str() {
            "message_start" => {
                let usage = event
                    .get("message")
                    .and_then(|message| message.get("usage"));
                if let Some(Value::Object(usage)) = usage {
                    renew(&mut self.usage, usage);
                }
                if self.has_started {
                    return;
                }
                self.has_started = true;
            }
            "content_block_start" => {
                let mut number = Some(self.blocks);
                if is_call(&event) {
                    let newest = self.calls.started.last();
                    let newest = newest.filter(|call| call.number.is_some());
                    match (newest, event.get_mut("content_block")) {
                        (Some(call), Some(block)) => set(block, "id", call.id.clone().into()),
                        _ => number = None,
                    }
                }
                self.blocks += usize::from(number.is_some());
                if let Some(index) = index {
                    self.numbers.insert(index, number);
                }
            }
            "message_delta" => {
                if let Some(Value::Object(usage)) = event.get("usage") {
                    renew(&mut self.usage, usage);
                }
                self.is_withheld = self.calls.are_all_ours();
                let mut usage = self.earlier.clone();
                add(&mut usage, &self.usage);
                if let Some(Value::Object(sent)) = event.get_mut("usage") {
                    for (name, value) in sent.iter_mut() {
                        if let Some(sum) = usage.get(name) {
                            value.clone_from(sum);
                        }
                    }
                }
                if self.is_withheld {
                    return;
                }
            }
            "message_stop" => {
                if self.is_withheld {
                    return;
                }
                self.has_stopped = true;
            }
            _ => {}
        }
        if let Some(index) = index {
            match self.numbers.get(&index) {
                Some(Some(number)) => set(&mut event, "index", (*number).into()),
                Some(None) => return,
                None => {}
            }
        }
        // A `ping` may come before the message begins, here as there.
        self.out.push(json::text(&event));
    }

    fn handle_part(&mut self, part: AnswerPart) {
        match part {
            AnswerPart::Text(text) if self.emits_parts() => {
                self.open_block("text", json!({"type": "text", "text": ""}));
                self.emit_delta(json!({"type": "text_delta", "text": text}));
            }
            AnswerPart::Text(text) if !self.is_streamed => self.collect_text(&text),
            AnswerPart::CallStart { index, id, name } => {
                let number = self.calls.begin(index, id.clone(), &name);
                if number.is_some() && self.emits_parts() {
                    self.close();
                    let block = json!({"type": "tool_use", "id": id, "name": name, "input": {}});
                    self.open_block("tool_use", block);
                }
            }
            AnswerPart::CallDelta { index, text } => {
                let is_clients = self.calls.record_piece(index).is_some();
                if is_clients && self.emits_parts() {
                    self.emit_delta(json!({"type": "input_json_delta", "partial_json": text}));
                }
            }
            AnswerPart::Call {
                index,
                id,
                name,
                arguments,
            } => {
                let Some((_, has_pieces)) = self.calls.complete(index) else {
                    return;
                };
                if self.emits_parts() {
                    if !has_pieces {
                        self.emit_delta(
                            json!({"type": "input_json_delta", "partial_json": arguments}),
                        );
                    }
                    self.close();
                } else if !self.is_streamed && !self.is_native {
                    let input = json::decode_tree(&arguments).unwrap_or_else(|_| json!({}));
                    self.content
                        .push(json!({"type": "tool_use", "id": id, "name": name, "input": input}));
                }
            }
            AnswerPart::Usage(usage) => self.add_usage(usage),
            AnswerPart::Finish(reason) => {
                self.flush();
                self.close();
                if self.native.is_some() && self.is_native {
                    self.collect_native();
                }
                if !self.calls.are_all_ours() {
                    self.stop = Some(name_of(reason));
                }
            }
            AnswerPart::Text(_)
            | AnswerPart::Reasoning(_)
            | AnswerPart::ProviderData(_)
            | AnswerPart::Event(_)
            | AnswerPart::Failed(_) => {}
        }
    }

    fn add_usage(&mut self, usage: TokenUsage) {
        let native = self.native.as_ref().filter(|_| self.is_native);
        match native.and_then(|native| native.get("usage")?.as_object()) {
            Some(usage) => self.usage = usage.clone(),
            // The events of this API have reported it.
            None if self.is_native => {}
            None => self.usage = messages_usage(usage),
        }
    }

    /// Whether events are made from parts.
    fn emits_parts(&self) -> bool {
        self.is_streamed && !self.is_native
    }

    fn begin(&mut self) {
        if self.has_started {
            return;
        }
        self.has_started = true;
        let message = self.bare(json!({"input_tokens": 0, "output_tokens": 0}));
        self.push(json!({"type": "message_start", "message": message}));
    }

    /// The message without content.
    fn bare(&self, usage: Value) -> Value {
        json!({
            "id": self.id,
            "type": "message",
            "role": "assistant",
            "model": self.model,
            "content": [],
            "stop_reason": null,
            "stop_sequence": null,
            "usage": usage
        })
    }

    fn open_block(&mut self, kind: &'static str, block: Value) {
        if self.open == Some(kind) {
            return;
        }
        self.begin();
        self.close();
        self.open = Some(kind);
        let index = self.blocks;
        self.push(json!({"type": "content_block_start", "index": index, "content_block": block}));
    }

    fn emit_delta(&mut self, delta: Value) {
        let index = self.blocks;
        self.push(json!({"type": "content_block_delta", "index": index, "delta": delta}));
    }

    fn close(&mut self) {
        if self.open.take().is_some() {
            let index = self.blocks;
            self.blocks += 1;
            self.push(json!({"type": "content_block_stop", "index": index}));
        }
    }

    fn push(&mut self, event: Value) {
        self.out.push(json::text(&event));
    }

    fn collect_text(&mut self, text: &str) {
        if self.is_native {
            // The whole answer contains it in its blocks.
            return;
        }
        let last = self
            .content
            .last_mut()
            .filter(|block| block.get("type") == Some(&"text".into()));
        match last.and_then(|block| block.get_mut("text")) {
            Some(Value::String(so_far)) => so_far.push_str(text),
            _ => self.content.push(json!({"type": "text", "text": text})),
        }
    }

    /// The blocks of a whole answer, without the calls that run here.
    fn collect_native(&mut self) {
        let content = self
            .native
            .as_mut()
            .and_then(|native| native.get_mut("content"));
        let Some(Value::Array(blocks)) = content.map(Value::take) else {
            return;
        };
        let mut started = self.calls.started.iter();
        for mut block in blocks {
            if block.get("type") == Some(&"tool_use".into()) {
                let known = started.next().filter(|call| call.number.is_some());
                let Some(call) = known else {
                    continue;
                };
                set(&mut block, "id", call.id.clone().into());
            }
            self.content.push(block);
        }
    }

    fn total(&self) -> Map<String, Value> {
        let mut usage = self.earlier.clone();
        add(&mut usage, &self.usage);
        usage
    }

    /// The last events of a finished turn.
    pub fn end(&mut self) -> Vec<String> {
        self.flush();
        if !self.has_stopped {
            self.has_stopped = true;
            self.begin();
            self.close();
            let stop = self.stop.unwrap_or("end_turn");
            let usage = Value::Object(self.total());
            self.push(json!({
                "type": "message_delta",
                "delta": {"stop_reason": stop, "stop_sequence": null},
                "usage": usage
            }));
            self.push(json!({"type": "message_stop"}));
        }
        std::mem::take(&mut self.out)
    }

    /// The whole answer.
    pub fn whole(&mut self) -> Value {
        let usage = Value::Object(self.total());
        let native = self.native.take().filter(|_| self.is_native);
        let is_native = native.is_some();
        let mut answer = native.unwrap_or_else(|| self.bare(json!({})));
        set(&mut answer, "usage", usage);
        set(
            &mut answer,
            "content",
            Value::Array(std::mem::take(&mut self.content)),
        );
        if !is_native {
            set(
                &mut answer,
                "stop_reason",
                self.stop.unwrap_or("end_turn").into(),
            );
        }
        answer
    }
}

fn is_call(event: &Value) -> bool {
    let block = event.get("content_block");
    block.is_some_and(|block| block.get("type") == Some(&"tool_use".into()))
}

fn name_of(reason: FinishReason) -> &'static str {
    match reason {
        FinishReason::Length => "max_tokens",
        FinishReason::ContentFilter => "refusal",
        FinishReason::ToolCalls => "tool_use",
        FinishReason::Stop | FinishReason::Error | FinishReason::Other => "end_turn",
    }
}

/// The name of an event in the stream.
pub fn event_name(event: &str) -> String {
    let kind = json::decode_tree(event).ok();
    let kind = kind.as_ref().and_then(|event| event.get("type")?.as_str());
    kind.unwrap_or("message").to_owned()
}
