//! A Responses answer whose provider also uses Responses: the provider's events are passed
//! through. Calls of tools that run here are omitted, so the indexes of later items change.
//! One answer may consist of several requests to the model; their usage is added up.

use std::collections::{HashMap, VecDeque};

use serde_json::{Map, Value};

use super::responses_tools::APPROVAL_PREFIX;
use crate::events::Calls;
use crate::numbers::{add, object, set};
use base::json::json;

/// Fields of an answer that repeat its request, which the provider received in another
/// form.
const OF_REQUEST: &[&str] = &["instructions", "previous_response_id", "conversation"];

const FUNCTION_CALL: &str = "function_call";

pub fn kind_of(value: &Value) -> &str {
    value
        .get("type")
        .and_then(Value::as_str)
        .unwrap_or_default()
}

/// The state of an answer whose provider uses Responses.
pub struct NativeAnswer {
    /// The common part of the ids of items.
    name: String,
    wants_encrypted: bool,
    /// The fields that the answer repeats, as the caller sent them.
    request_fields: Map<String, Value>,
    /// The output indexes of the current request's items, by the provider's index. `None`:
    /// the item is omitted.
    output_indexes: HashMap<i64, Option<usize>>,
    /// The ids of items in the answer, by the provider's ids.
    ids: HashMap<String, String>,
    /// The output indexes of calls whose ids in the log are still unknown.
    unnamed: VecDeque<usize>,
    /// The ids of calls in the log, by their output indexes in the answer.
    call_ids: HashMap<usize, String>,
    /// An event that is not sent until the id of its call is known.
    pending: Option<Value>,
    usage: Option<Map<String, Value>>,
    /// The end of the newest request to the model: the whole answer without its items.
    end: Option<Value>,
    has_failed: bool,
}

impl NativeAnswer {
    pub fn new(name: String, request_fields: Map<String, Value>, wants_encrypted: bool) -> Self {
        Self {
            name,
            wants_encrypted,
            request_fields,
            output_indexes: HashMap::new(),
            ids: HashMap::new(),
            unnamed: VecDeque::new(),
            call_ids: HashMap::new(),
            pending: None,
            usage: None,
            end: None,
            has_failed: false,
        }
    }

    pub fn begin_step(&mut self) {
        self.output_indexes.clear();
        self.unnamed.clear();
        self.end = None;
    }

    pub fn has_failed(&self) -> bool {
        self.has_failed
    }

    /// The answer at its end, without its items.
    pub fn take_end(&mut self) -> Option<Value> {
        let mut end = self.end.take()?;
        let usage = self.usage.take().map_or(Value::Null, Value::Object);
        set(&mut end, "usage", usage);
        Some(end)
    }

    /// All fields of an answer except its items, in the form for the caller.
    pub fn head(&self, response: &Value, calls: &Calls) -> Map<String, Value> {
        let mut head = object(response.clone());
        head.insert("id".to_owned(), format!("resp_{}", self.name).into());
        head.insert("output".to_owned(), json!([]));
        for name in OF_REQUEST {
            if let Some(value) = self.request_fields.get(*name) {
                head.insert((*name).to_owned(), value.clone());
            }
        }
        if let Some(Value::Array(tools)) = head.get_mut("tools") {
            tools.retain(|tool| is_shown(tool, "function", calls));
        }
        head
    }

    /// Processes an event about items. Returns the events to send, without sequence
    /// numbers. `output`: the items so far; an incomplete item is `null`.
    pub fn read_event(
        &mut self,
        mut event: Value,
        output: &mut Vec<Value>,
        calls: &Calls,
    ) -> Vec<Value> {
        let mut events = self.flush();
        let upstream = event.get("output_index").and_then(Value::as_i64);
        let Some(upstream) = upstream else {
            events.push(event);
            return events;
        };
        let item = event.get("item").unwrap_or(&Value::Null);
        let is_call = kind_of(item) == FUNCTION_CALL;
        let is_new = !self.output_indexes.contains_key(&upstream);
        if is_new {
            let output_index = is_shown(item, FUNCTION_CALL, calls).then(|| {
                output.push(Value::Null);
                output.len() - 1
            });
            self.output_indexes.insert(upstream, output_index);
            if let (Some(output_index), true) = (output_index, is_call) {
                self.unnamed.push_back(output_index);
            }
        }
        let Some(output_index) = self.output_indexes.get(&upstream).copied().flatten() else {
            return events;
        };
        let is_done = kind_of(&event) == "response.output_item.done";
        set(&mut event, "output_index", output_index.into());
        if let Some(item) = event.get_mut("item") {
            self.show(item, output_index);
            if let (Some(shown), true) = (output.get_mut(output_index), is_done) {
                *shown = item.clone();
            }
        }
        let known = event
            .get("item_id")
            .and_then(Value::as_str)
            .and_then(|id| self.ids.get(id));
        if let Some(id) = known.cloned() {
            set(&mut event, "item_id", id.into());
        }
        if is_new && is_call {
            self.pending = Some(event);
        } else {
            events.push(event);
        }
        events
    }

    /// The event that was not sent because the id of its call was unknown.
    pub fn flush(&mut self) -> Vec<Value> {
        let Some(mut event) = self.pending.take() else {
            return Vec::new();
        };
        let output_index = event.get("output_index").and_then(Value::as_u64);
        let output_index = output_index.and_then(|output_index| usize::try_from(output_index).ok());
        let id = output_index.and_then(|output_index| self.call_ids.get(&output_index));
        if let (Some(id), Some(item)) = (id, event.get_mut("item")) {
            set(item, "call_id", id.clone().into());
        }
        vec![event]
    }

    /// Sets the id in the log of a started call of a client tool.
    pub fn name_call(&mut self, id: &str, output: &mut [Value]) -> Vec<Value> {
        if let Some(output_index) = self.unnamed.pop_front() {
            self.call_ids.insert(output_index, id.to_owned());
            if let Some(item) = output.get_mut(output_index).filter(|item| !item.is_null()) {
                set(item, "call_id", id.into());
            }
        }
        self.flush()
    }

    /// Adds complete items. Returns their output indexes.
    pub fn add_items(
        &mut self,
        items: Vec<Value>,
        output: &mut Vec<Value>,
        calls: &Calls,
    ) -> Vec<usize> {
        let mut output_indexes = Vec::new();
        for mut item in items {
            if !is_shown(&item, FUNCTION_CALL, calls) {
                continue;
            }
            let output_index = output.len();
            self.show(&mut item, output_index);
            if kind_of(&item) == FUNCTION_CALL {
                self.unnamed.push_back(output_index);
            }
            output.push(item);
            output_indexes.push(output_index);
        }
        output_indexes
    }

    /// Processes the end of an answer, or a whole answer: its fields, without its items.
    pub fn handle_response(&mut self, response: &Value, calls: &Calls) {
        if let Some(Value::Object(usage)) = response.get("usage") {
            add(self.usage.get_or_insert_default(), usage);
        }
        self.end = Some(Value::Object(self.head(response, calls)));
    }

    pub fn fail(&mut self) {
        self.has_failed = true;
    }

    /// Sets an item's id in the answer.
    fn show(&mut self, item: &mut Value, output_index: usize) {
        if let Some(id) = item.get("id").and_then(Value::as_str) {
            let prefix = id.split('_').next().unwrap_or_default();
            if prefix != APPROVAL_PREFIX {
                let shown = format!("{}_{}_{output_index}", prefix_of(prefix, item), self.name);
                self.ids.insert(id.to_owned(), shown.clone());
                set(item, "id", shown.into());
            }
        }
        if let (Some(id), FUNCTION_CALL) = (self.call_ids.get(&output_index), kind_of(item)) {
            let id = id.clone();
            set(item, "call_id", id.into());
        }
        if let (false, Some(fields)) = (self.wants_encrypted, item.as_object_mut())
            && fields.get("type").and_then(Value::as_str) == Some("reasoning")
        {
            fields.remove("encrypted_content");
        }
    }
}

/// The prefix of an item's id: the provider's prefix, if that is a short word.
fn prefix_of<'a>(prefix: &'a str, item: &Value) -> &'a str {
    const MAX_PREFIX_BYTES: usize = 8;
    let is_word = !prefix.is_empty()
        && prefix.len() <= MAX_PREFIX_BYTES
        && prefix.bytes().all(|byte| byte.is_ascii_lowercase());
    match (is_word, kind_of(item)) {
        (true, _) => prefix,
        (false, "message") => "msg",
        (false, FUNCTION_CALL) => "fc",
        (false, _) => "item",
    }
}

/// Whether an item or a tool is visible to the client: it is of another kind, or it is a
/// function of the client.
fn is_shown(value: &Value, function: &str, calls: &Calls) -> bool {
    let name = value.get("name").and_then(Value::as_str);
    kind_of(value) != function || name.is_some_and(|name| calls.is_clients(name))
}

/// The events of a complete item.
pub fn events_of(item: &Value, output_index: usize) -> Vec<Value> {
    let id = item.get("id").cloned().unwrap_or_default();
    let mut empty = item.clone();
    let mut inner = Vec::new();
    let event = |kind: &str, fields: Value| {
        let mut event = json!({"type": kind, "item_id": id.clone(), "output_index": output_index});
        if let (Some(event), Value::Object(fields)) = (event.as_object_mut(), fields) {
            event.extend(fields);
        }
        event
    };
    match kind_of(item) {
        "message" => {
            set(&mut empty, "status", "in_progress".into());
            set(&mut empty, "content", json!([]));
            let parts = item.get("content").and_then(Value::as_array);
            for (index, part) in parts.into_iter().flatten().enumerate() {
                inner.extend(
                    events_of_part(part, index)
                        .into_iter()
                        .map(|(kind, fields)| event(kind, fields)),
                );
            }
        }
        FUNCTION_CALL => {
            set(&mut empty, "status", "in_progress".into());
            set(&mut empty, "arguments", "".into());
            let arguments = item.get("arguments").cloned().unwrap_or_default();
            inner.push(event(
                "response.function_call_arguments.delta",
                json!({"delta": arguments}),
            ));
            inner.push(event(
                "response.function_call_arguments.done",
                json!({"arguments": arguments}),
            ));
        }
        _ => {}
    }
    let whole =
        |kind: &str, item: Value| json!({"type": kind, "output_index": output_index, "item": item});
    let mut events = vec![whole("response.output_item.added", empty)];
    events.append(&mut inner);
    events.push(whole("response.output_item.done", item.clone()));
    events
}

fn events_of_part(part: &Value, index: usize) -> Vec<(&'static str, Value)> {
    let mut empty = part.clone();
    let mut events = Vec::new();
    let text = |name: &str| part.get(name).cloned().unwrap_or_default();
    match kind_of(part) {
        "output_text" => {
            set(&mut empty, "text", "".into());
            let logprobs = part.get("logprobs").cloned().unwrap_or_else(|| json!([]));
            events.push((
                "response.output_text.delta",
                json!({"content_index": index, "delta": text("text"), "logprobs": logprobs}),
            ));
            events.push((
                "response.output_text.done",
                json!({"content_index": index, "text": text("text"), "logprobs": logprobs}),
            ));
        }
        "refusal" => {
            set(&mut empty, "refusal", "".into());
            events.push((
                "response.refusal.delta",
                json!({"content_index": index, "delta": text("refusal")}),
            ));
            events.push((
                "response.refusal.done",
                json!({"content_index": index, "refusal": text("refusal")}),
            ));
        }
        _ => {}
    }
    let added = json!({"content_index": index, "part": empty});
    events.insert(0, ("response.content_part.added", added));
    events.push((
        "response.content_part.done",
        json!({"content_index": index, "part": part}),
    ));
    events
}
