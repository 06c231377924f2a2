//! The queue of spans that wait to be sent. It is only in memory: an eviction loses unsent
//! spans. If the queue is full, new spans are dropped and counted.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;

use super::Trace;
use super::ids::{SpanId, TraceId};
use super::sampler::Sampler;

/// The most queued spans, and the most spans of one request.
pub const MAX_WAITING: usize = 2_048;
pub const MAX_BATCH: usize = 256;

/// The most bytes of one attribute's text.
const MAX_TEXT_BYTES: usize = 1 << 10;

/// The most attributes that are recorded for unfinished spans.
const MAX_RECORDED: usize = 256;

/// The most attributes of one span.
const MAX_ATTRIBUTES: usize = 32;

/// The kind of a span, with OpenTelemetry's numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpanKind {
    Internal = 1,
    Server = 2,
    Client = 3,
}

#[derive(Clone, Debug, PartialEq)]
pub enum AttributeValue {
    Text(String),
    Number(i64),
    Real(f64),
    Flag(bool),
    Texts(Vec<String>),
}

pub type Attribute = (&'static str, AttributeValue);

/// A finished span.
#[derive(Clone, Debug, PartialEq)]
pub struct Span {
    pub trace_id: TraceId,
    pub id: SpanId,
    pub parent: Option<SpanId>,
    pub name: String,
    pub kind: SpanKind,
    pub started_at_ms: i64,
    pub ended_at_ms: i64,
    pub attributes: Vec<Attribute>,
    /// The code and the message of a failure.
    pub failure: Option<(String, String)>,
}

impl Span {
    pub fn new(trace: &Trace, name: impl Into<String>, kind: SpanKind, times: (i64, i64)) -> Self {
        let mut name = name.into();
        cut(&mut name);
        Self {
            trace_id: trace.id,
            id: trace.span,
            parent: trace.parent,
            name,
            kind,
            started_at_ms: times.0,
            ended_at_ms: times.1.max(times.0),
            attributes: Vec::new(),
            failure: None,
        }
    }

    pub fn text(mut self, name: &'static str, text: &str) -> Self {
        let mut text = text.to_owned();
        cut(&mut text);
        self.push(name, AttributeValue::Text(text));
        self
    }

    /// Adds text of a message or of memory, truncated to `most` bytes. Only exported if a
    /// setting allows it.
    pub fn content(mut self, name: &'static str, text: &str, most: usize) -> Self {
        let end = text.floor_char_boundary(most);
        let text = text.get(..end).unwrap_or_default().to_owned();
        self.push(name, AttributeValue::Text(text));
        self
    }

    pub fn texts(mut self, name: &'static str, texts: &[&str]) -> Self {
        let texts = texts.iter().map(|text| (*text).to_owned()).collect();
        self.push(name, AttributeValue::Texts(texts));
        self
    }

    pub fn number(mut self, name: &'static str, number: i64) -> Self {
        self.push(name, AttributeValue::Number(number));
        self
    }

    pub fn real(mut self, name: &'static str, number: f64) -> Self {
        self.push(name, AttributeValue::Real(number));
        self
    }

    pub fn flag(mut self, name: &'static str, flag: bool) -> Self {
        self.push(name, AttributeValue::Flag(flag));
        self
    }

    /// Like [`Self::text`], if there is a text.
    pub fn maybe(self, name: &'static str, text: Option<&str>) -> Self {
        match text {
            Some(text) => self.text(name, text),
            None => self,
        }
    }

    /// Adds attributes that were recorded before the span ended.
    pub fn with(mut self, recorded: Vec<Attribute>) -> Self {
        for (name, value) in recorded {
            self.push(name, value);
        }
        self
    }

    pub fn failed(mut self, code: &str, sentence: &str) -> Self {
        let (mut code, mut sentence) = (code.to_owned(), sentence.to_owned());
        cut(&mut code);
        cut(&mut sentence);
        self.push("error.type", AttributeValue::Text(code.clone()));
        self.failure = Some((code, sentence));
        self
    }

    fn push(&mut self, name: &'static str, value: AttributeValue) {
        if self.attributes.len() < MAX_ATTRIBUTES {
            self.attributes.push((name, value));
        }
    }
}

fn cut(text: &mut String) {
    text.truncate(text.floor_char_boundary(MAX_TEXT_BYTES));
}

/// The queue of an object's spans.
#[derive(Debug, Default)]
pub struct SpanQueue {
    pub sampler: Sampler,
    waiting: RefCell<VecDeque<Span>>,
    dropped: Cell<u64>,
    /// Attributes of unfinished spans, oldest first.
    recorded: RefCell<VecDeque<(SpanId, Attribute)>>,
    /// Whether a request to the receiver is in progress.
    is_sending: Cell<bool>,
    /// No request is sent to the receiver before this time, because it failed.
    pub(super) paused_until_ms: Cell<i64>,
    pub(super) failures: Cell<u32>,
}

impl SpanQueue {
    pub fn new(sampler: Sampler) -> Self {
        Self {
            sampler,
            ..Self::default()
        }
    }

    pub fn push(&self, span: Span) {
        let mut waiting = self.waiting.borrow_mut();
        if waiting.len() < MAX_WAITING {
            waiting.push_back(span);
        } else {
            self.dropped.set(self.dropped.get() + 1);
        }
    }

    /// Records an attribute of an unfinished span.
    pub fn record(&self, span: SpanId, name: &'static str, mut value: AttributeValue) {
        if let AttributeValue::Text(text) = &mut value {
            cut(text);
        }
        let mut recorded = self.recorded.borrow_mut();
        // Drops the oldest: a request that was cut off never collects its attributes.
        if recorded.len() == MAX_RECORDED {
            recorded.pop_front();
        }
        recorded.push_back((span, (name, value)));
    }

    /// Removes and returns the attributes that were recorded for a span.
    pub fn take_recorded(&self, span: SpanId) -> Vec<Attribute> {
        let mut recorded = self.recorded.borrow_mut();
        let mut attributes = Vec::new();
        recorded.retain(|(id, attribute)| {
            let is_of_span = *id == span;
            if is_of_span {
                attributes.push(attribute.clone());
            }
            !is_of_span
        });
        attributes
    }

    pub fn is_empty(&self) -> bool {
        self.waiting.borrow().is_empty()
    }

    /// How many spans were dropped because the queue was full.
    pub fn dropped(&self) -> u64 {
        self.dropped.get()
    }

    /// Removes and returns the spans of the next request.
    pub fn take_batch(&self) -> Vec<Span> {
        let mut waiting = self.waiting.borrow_mut();
        let count = waiting.len().min(MAX_BATCH);
        waiting.drain(..count).collect()
    }

    /// Returns whether this caller may send; `false`: another one is already sending.
    pub fn begin_sending(&self) -> bool {
        !self.is_sending.replace(true)
    }

    pub fn end_sending(&self) {
        self.is_sending.set(false);
    }
}
