//! Follows a turn and writes its answer in the API of the request: in events as the client reads
//! them, or whole.

use std::collections::VecDeque;
use std::rc::Rc;

use crate::anthropic::answer::{MessagesAnswer, event_name};
use crate::calls::ApiFamily;
use crate::openai::answer::ChatAnswer;
use crate::openai::responses_answer::ResponsesAnswer;
use crate::refusal;
use base::error::{Code, Error, Result};
use base::json::{self, JsonObject};
use chat::run::listener::EventSource;
use chat::run::running_turns::RunningTurn;
use chat::stream::answer_events::AnswerEvent;
use models::caller_fields::ProviderApi;

/// About how many bytes one write of a stream has.
const MAX_WRITE_BYTES: usize = 64 << 10;

/// The facts about its request that an answer needs.
#[derive(Clone)]
pub struct Head {
    pub api: ProviderApi,
    pub is_streamed: bool,
    pub wants_usage: bool,
    pub model: String,
    /// The names of the client's tools.
    pub tools: Vec<String>,
    pub created_s: i64,
    /// The fields that an answer of `Responses` repeats.
    pub echo: Option<JsonObject>,
    /// Whether such an answer has the encrypted form of thoughts.
    pub wants_encrypted: bool,
}

pub enum Source {
    Running(Rc<RunningTurn>),
    /// An answer from the log, and its name.
    Stored(String, Vec<AnswerEvent>),
}

enum AnswerWriter {
    Chat(Box<ChatAnswer>),
    Messages(Box<MessagesAnswer>),
    Responses(Box<ResponsesAnswer>),
}

impl AnswerWriter {
    fn new(head: Head, name: &str) -> Self {
        let Head {
            api,
            is_streamed,
            wants_usage,
            model,
            tools,
            created_s,
            echo,
            wants_encrypted,
        } = head;
        let tools = tools.into_iter();
        match api {
            ProviderApi::ChatCompletions => Self::Chat(Box::new(ChatAnswer::new(
                (format!("chatcmpl-{name}"), created_s, model),
                tools,
                (is_streamed, wants_usage),
            ))),
            ProviderApi::Responses => Self::Responses(Box::new(ResponsesAnswer::new(
                (name.to_owned(), created_s, model),
                tools,
                echo.as_ref(),
                wants_encrypted,
            ))),
            ProviderApi::Messages => Self::Messages(Box::new(MessagesAnswer::new(
                (format!("msg_{name}"), model),
                tools,
                is_streamed,
            ))),
        }
    }

    fn handle(&mut self, event: AnswerEvent) -> Vec<String> {
        match self {
            Self::Chat(answer) => answer.handle(event),
            Self::Messages(answer) => answer.handle(event),
            Self::Responses(answer) => answer.handle(event),
        }
    }

    fn end(&mut self) -> Vec<String> {
        match self {
            Self::Chat(answer) => answer.end(),
            Self::Messages(answer) => answer.end(),
            Self::Responses(answer) => answer.end(),
        }
    }

    fn whole(&mut self) -> String {
        json::text(&match self {
            Self::Chat(answer) => answer.whole(),
            Self::Messages(answer) => answer.whole(),
            Self::Responses(answer) => answer.whole(),
        })
    }

    /// Whether the answer reports that the provider has failed.
    fn has_failed(&self) -> bool {
        match self {
            Self::Chat(_) | Self::Messages(_) => false,
            Self::Responses(answer) => answer.has_failed(),
        }
    }

    fn family(&self) -> ApiFamily {
        match self {
            Self::Chat(_) | Self::Responses(_) => ApiFamily::OpenAi,
            Self::Messages(_) => ApiFamily::Anthropic,
        }
    }

    /// An event as it is sent.
    fn frame(&self, event: &str) -> String {
        match self {
            Self::Chat(_) => format!("data: {event}\n\n"),
            Self::Messages(_) | Self::Responses(_) => {
                format!("event: {}\ndata: {event}\n\n", event_name(event))
            }
        }
    }
}

pub struct ApiListener {
    source: Source,
    writer: AnswerWriter,
    next: usize,
    ready: VecDeque<String>,
    is_over: bool,
}

impl ApiListener {
    pub fn new(head: Head, source: Source) -> Self {
        let name = match &source {
            Source::Running(running) => running.request_id.clone(),
            Source::Stored(name, _) => name.clone(),
        };
        Self {
            source,
            writer: AnswerWriter::new(head, &name),
            next: 0,
            ready: VecDeque::new(),
            is_over: false,
        }
    }

    async fn next_event(&mut self) -> Option<AnswerEvent> {
        let index = self.next;
        self.next += 1;
        match &self.source {
            Source::Running(running) => {
                let event = running.listen_event(index).await;
                running.was_read();
                event
            }
            Source::Stored(_, events) => events.get(index).cloned(),
        }
    }

    /// Whether the turn has ended, and its answer is complete.
    async fn check(&self) -> Result<()> {
        let Source::Running(running) = &self.source else {
            return Ok(());
        };
        running.ends().await?.check()?;
        match running.problem() {
            Some(problem) => Err(Error::new(Code::RateLimited, problem.sentence())),
            None => Ok(()),
        }
    }

    /// Makes at least one event ready, or ends. An error: the turn failed, and nothing can
    /// follow.
    async fn prepare(&mut self) -> Result<()> {
        while self.ready.is_empty() && !self.is_over {
            let events = match self.next_event().await {
                Some(event) => self.writer.handle(event),
                None => {
                    self.is_over = true;
                    match self.check().await {
                        // The provider's own event has reported it.
                        Err(_) if self.writer.has_failed() => Vec::new(),
                        checked => {
                            checked?;
                            self.writer.end()
                        }
                    }
                }
            };
            self.ready.extend(events);
        }
        Ok(())
    }

    /// Waits for the first event. An error has a status of its own as long as nothing was sent.
    pub async fn begins(&mut self) -> Result<()> {
        self.prepare().await
    }

    /// The whole answer.
    pub async fn whole(mut self) -> Result<String> {
        while let Some(event) = self.next_event().await {
            self.writer.handle(event);
        }
        let checked = self.check().await;
        if !self.writer.has_failed() {
            checked?;
        }
        Ok(self.writer.whole())
    }
}

impl EventSource for ApiListener {
    async fn next_events(&mut self) -> Option<String> {
        if let Err(error) = self.prepare().await {
            let refused = refusal::render(self.writer.family(), &error);
            return Some(self.writer.frame(&refused.body));
        }
        let mut written = String::new();
        while let Some(event) = self.ready.pop_front() {
            written.push_str(&self.writer.frame(&event));
            if written.len() >= MAX_WRITE_BYTES {
                break;
            }
            // Events that are ready already join the same write.
            if self.ready.is_empty()
                && let Source::Running(running) = &self.source
                && let Some(event) = running.event(self.next)
            {
                self.next += 1;
                running.was_read();
                let events = self.writer.handle(event);
                self.ready.extend(events);
            }
        }
        (!written.is_empty()).then_some(written)
    }
}
