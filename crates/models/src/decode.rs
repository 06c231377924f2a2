//! Decodes the bytes of an answer into [`AnswerPart`]s, for every provider and wherever the bytes
//! are split. A body is an event stream or one JSON value, even if a stream was requested. The
//! first byte that isn't blank determines which.
//!
//! An answer that is cut off ends with [`AnswerPart::Failed`], never silently.

use base::json;
use serde_json::Value;

use super::answer::AnswerBuilder;
use super::call_ids::CallIds;
use super::choice::Provider;
use super::http_error::{ProviderError, find_problem};
use super::repair::repair;
use super::responses_reader::{self, ResponsesReader};
use super::{AnswerPart, anthropic, openai, sse, workers_ai};

/// The most bytes of an answer with its events: a long answer of 32,000 tokens with about 300 bytes
/// per event, and a reserve of half as much.
pub const MAX_ANSWER_BYTES: usize = 16 << 20;

pub struct Decoder {
    provider: Provider,
    answer: AnswerBuilder,
    body: BodyFormat,
    too_long: Option<ProviderError>,
    /// Whether the events themselves are parts, too.
    emits_events: bool,
    /// The model that answers, as the provider names it.
    model: Option<String>,
    /// For an answer of OpenAI's Responses.
    responses: Option<ResponsesReader>,
}

/// The longest name of a model that is read from an answer.
const MAX_MODEL_BYTES: usize = 200;

enum BodyFormat {
    /// Only blanks so far.
    Unknown,
    Stream(sse::Parser),
    Whole(Vec<u8>),
}

impl Decoder {
    pub fn new(provider: Provider, ids: CallIds, emits_events: bool) -> Self {
        Self {
            provider,
            answer: AnswerBuilder::new(ids),
            body: BodyFormat::Unknown,
            too_long: None,
            emits_events,
            model: None,
            responses: None,
        }
    }

    /// Decodes an answer of OpenAI's Responses. Only a caller who uses Responses receives such an
    /// answer, so the events are parts.
    pub fn of_responses(ids: CallIds) -> Self {
        Self {
            responses: Some(ResponsesReader::default()),
            ..Self::new(Provider::OpenAi, ids, true)
        }
    }

    /// The parts that these bytes complete.
    pub fn push(&mut self, bytes: &[u8]) -> Vec<AnswerPart> {
        let mut bytes = bytes;
        if matches!(self.body, BodyFormat::Unknown) {
            let blank = bytes.iter().take_while(|byte| is_blank(**byte)).count();
            bytes = bytes.get(blank..).unwrap_or_default();
            self.body = match bytes.first() {
                None => BodyFormat::Unknown,
                Some(b'{' | b'[') => BodyFormat::Whole(Vec::new()),
                Some(_) => BodyFormat::Stream(sse::Parser::default()),
            };
        }
        match &mut self.body {
            BodyFormat::Unknown => {}
            BodyFormat::Whole(whole) if whole.len() + bytes.len() > MAX_ANSWER_BYTES => {
                self.fail_long();
            }
            BodyFormat::Whole(whole) => whole.extend_from_slice(bytes),
            BodyFormat::Stream(parser) => match parser.push(bytes) {
                Ok(events) => {
                    for event in events {
                        self.handle_event(&event.data);
                    }
                }
                Err(sse::TooLong) => self.fail_long(),
            },
        }
        self.answer.take_parts()
    }

    /// Ends the body and returns the last parts.
    pub fn end(&mut self) -> Vec<AnswerPart> {
        match std::mem::replace(&mut self.body, BodyFormat::Unknown) {
            BodyFormat::Unknown => self.fail("sent an empty answer"),
            BodyFormat::Whole(whole) => match parse(&String::from_utf8_lossy(&whole)) {
                Some(value) => {
                    self.handle_value(&value);
                    if self.answer.has_output() {
                        self.answer.close();
                    } else {
                        self.fail("sent an answer without content");
                    }
                }
                None => self.fail("sent an answer that is not valid JSON"),
            },
            BodyFormat::Stream(mut parser) => {
                let last = parser.end().ok().flatten();
                // A last event that is incomplete is dropped; the failure below reports that the
                // answer ended early.
                let last =
                    last.filter(|event| event.data.trim() == DONE || parse(&event.data).is_some());
                if let Some(event) = last {
                    self.handle_event(&event.data);
                }
                if self.answer.has_finish() {
                    self.answer.close();
                } else {
                    self.fail("ended its answer early");
                }
            }
        }
        self.answer.take_parts()
    }

    /// Whether the rest of the body can be ignored.
    pub fn is_over(&self) -> bool {
        self.answer.is_over()
    }

    /// The failure that came instead of an answer, if the request is too long.
    pub fn too_long(&self) -> Option<&ProviderError> {
        self.too_long.as_ref()
    }

    /// The model that answers, once the provider has named it.
    pub fn model(&self) -> Option<&str> {
        self.model.as_deref()
    }

    /// Whether the answer failed because the provider is overloaded.
    pub fn is_overload(&self) -> bool {
        self.answer.is_overload()
    }

    fn handle_event(&mut self, data: &str) {
        if self.answer.is_over() {
            return;
        }
        if data.trim() == DONE {
            self.answer.close();
            return;
        }
        match parse(data) {
            Some(value) => self.handle_value(&value),
            // Some servers keep a connection open with an empty event.
            None if data.trim().is_empty() => {}
            None => self.fail("sent an event that is not valid JSON"),
        }
    }

    fn handle_value(&mut self, value: &Value) {
        let problem = match self.responses {
            Some(_) => responses_reader::find_problem(value),
            None => find_problem(value),
        };
        if let Some(problem) = problem {
            if self.responses.is_some() && problem.too_long.is_none() {
                self.answer.add_event(json::text(value));
            }
            let kind = problem.kind.as_ref();
            let named = kind.map(|kind| format!(" (`{kind}`)"));
            let named = named.unwrap_or_default();
            let title = self.provider.title();
            if problem.too_long.is_some() && !self.answer.has_output() {
                self.fail("refused the request for its length");
                self.too_long = Some(problem);
            } else if problem.is_overload {
                let sentence = format!("{title} is overloaded{named}. Try again in a moment.");
                self.answer.fail_overloaded(sentence);
            } else {
                self.fail(&format!("reported an error in its answer{named}"));
            }
            return;
        }
        if let Some(reader) = &mut self.responses {
            self.answer.add_event(reader.event(value));
        } else if self.emits_events {
            self.answer.add_event(json::text(value));
        }
        if self.model.is_none() {
            self.model = find_model(value);
        }
        if let Some(reader) = &mut self.responses {
            reader.read(value, &mut self.answer);
            return;
        }
        match self.provider {
            Provider::WorkersAi => workers_ai::read(value, &mut self.answer),
            Provider::OpenAi => openai::read(value, &mut self.answer),
            Provider::Own => openai::read_own(value, &mut self.answer),
            Provider::Anthropic => anthropic::read(value, &mut self.answer),
        }
    }

    fn fail_long(&mut self) {
        self.fail("sent an answer that is too long");
    }

    fn fail(&mut self, what: &str) {
        self.answer
            .fail(format!("{} {what}.", self.provider.title()));
    }
}

const DONE: &str = "[DONE]";

/// The model that an event names: at its top level, in its message or response, or in the result of
/// a binding.
fn find_model(value: &Value) -> Option<String> {
    let candidates = [
        Some(value),
        value.get("message"),
        value.get("result"),
        value.get("response"),
    ];
    let named = candidates
        .into_iter()
        .flatten()
        .find_map(|candidate| candidate.get("model")?.as_str());
    let named = named.filter(|name| !name.is_empty())?;
    named
        .get(..named.floor_char_boundary(MAX_MODEL_BYTES))
        .map(str::to_owned)
}

fn parse(json: &str) -> Option<Value> {
    let parsed = json::decode_tree(json);
    parsed.or_else(|_| json::decode_tree(&repair(json))).ok()
}

/// White space, or a byte of a byte order mark: neither begins an answer.
fn is_blank(byte: u8) -> bool {
    byte.is_ascii_whitespace() || matches!(byte, 0xEF | 0xBB | 0xBF)
}
