//! Summaries written by the agent's model, by the model for summaries, or by a service.

use std::cell::{Cell, OnceCell};

use super::act::{CompactionOutcome, CompactionReason, NewSummary, Summarizer};
use super::service;
use base::action::Role;
use base::error::Result;
use base::ids::Id;
use base::json::{self, json};
use base::outbound::{ClassNotice, LocalBoxFuture};
use base::tokens;
use conversation::session::meter::Meter;
use memory::block::Block;
use memory::frozen::find_frozen;
use memory::view::read_for_prompt;
use memory::{BlockScope, Memory};
use models::call::{CompletedCall, choose_model, complete};
use models::choice::ModelChoice;
use models::message::ContextMessage;
use models::metered::{CallOutcome, EndedCall, settle};
use models::{ModelRequest, TokenUsage};
use store::config::{Config, load_config};
use store::limits::PrincipalLimits;
use store::model_settings::PromptRefresh;

pub struct ModelSummarizer<'a> {
    memory: Memory<'a>,
    payer: SummaryPayer<'a>,
    /// The model that is being called, and the tokens of the request.
    in_flight: Cell<Option<(String, i64)>>,
    has_started: Cell<bool>,
}

/// Whose limits apply to a summary, in addition to the agent's own.
enum SummaryPayer<'a> {
    /// The principal of the token that requests it.
    Asking(Option<&'a PrincipalLimits>),
    /// Whoever let the session grow. Determined when a summary is needed: most appends need none.
    Growing {
        find: &'a dyn Fn() -> Result<Option<PrincipalLimits>>,
        found: OnceCell<Option<PrincipalLimits>>,
    },
}

impl SummaryPayer<'_> {
    fn limits(&self) -> Result<Option<&PrincipalLimits>> {
        match self {
            Self::Asking(limits) => Ok(*limits),
            Self::Growing { find, found } => {
                if found.get().is_none() {
                    // Nothing else sets it in the meantime: `find` does not await.
                    found.set(find()?).ok();
                }
                Ok(found.get().and_then(Option::as_ref))
            }
        }
    }
}

impl<'a> ModelSummarizer<'a> {
    pub fn of(memory: Memory<'a>, token: Option<&'a PrincipalLimits>) -> Self {
        Self::paid_by(memory, SummaryPayer::Asking(token))
    }

    /// The summaries that follow an append. `find` finds the limits of whoever appended.
    pub fn of_growth(
        memory: Memory<'a>,
        find: &'a dyn Fn() -> Result<Option<PrincipalLimits>>,
    ) -> Self {
        let found = OnceCell::new();
        Self::paid_by(memory, SummaryPayer::Growing { find, found })
    }

    fn paid_by(memory: Memory<'a>, payer: SummaryPayer<'a>) -> Self {
        Self {
            memory,
            payer,
            in_flight: Cell::default(),
            has_started: Cell::new(false),
        }
    }

    /// Whether a class was notified that a compaction begins.
    pub fn has_started(&self) -> bool {
        self.has_started.get()
    }

    /// The request that was in progress when the summary was canceled.
    pub fn take_in_flight(&self) -> Option<(String, i64)> {
        self.in_flight.take()
    }
}

impl Summarizer for ModelSummarizer<'_> {
    fn summarize<'a>(&'a self, prompt: String, max_tokens: i64) -> LocalBoxFuture<'a, NewSummary> {
        Box::pin(async move {
            let mut summarized = NewSummary {
                summary: Ok(String::new()),
                usage: TokenUsage::default(),
                cost: 0.0,
                model: None,
            };
            summarized.summary = self.ask(prompt, max_tokens, &mut summarized).await;
            summarized
        })
    }

    fn notify_started(&self, session_id: &Id) {
        let notice =
            || json::text(&json!({"sessionId": session_id.as_str(), "phase": "compacting"}));
        self.memory
            .outbound
            .notify_class(ClassNotice::Status, &notice);
        self.has_started.set(true);
    }

    fn notify(&self, session_id: &Id, outcome: &CompactionOutcome) {
        let error = outcome.error.as_ref().map(|error| {
            json!({"code": error.code.name(), "message": error.message, "details": error.details()})
        });
        if outcome.reason != CompactionReason::Compacted && error.is_none() {
            return;
        }
        let notice = || {
            json::text(&json!({
                "sessionId": session_id.as_str(),
                "covers": outcome.covers.as_ref().map(|covers| json!({
                    "fromId": covers.from_id, "toId": covers.to_id, "messages": covers.messages,
                })),
                "tokensBefore": outcome.tokens_before,
                "tokensAfter": outcome.tokens_after,
                "error": error,
            }))
        };
        let outbound = self.memory.outbound;
        outbound.notify_class(ClassNotice::Compaction, &notice);
    }

    fn refreshes_prompt(&self, session_id: &Id) -> Result<bool> {
        let scope = BlockScope::Session(session_id);
        Ok(self.config()?.refresh_prompt != PromptRefresh::Manual
            && find_frozen(self.memory.db, scope)?.is_some())
    }

    fn read_prompt<'a>(&'a self, session_id: &'a Id) -> LocalBoxFuture<'a, Result<Vec<Block>>> {
        let scope = BlockScope::Session(session_id);
        Box::pin(async move { read_for_prompt(&self.memory, scope).await })
    }
}

/// The writer of the summary.
enum SummaryWriter<'a> {
    Model(ModelChoice),
    Service(&'a str),
}

impl SummaryWriter<'_> {
    /// The name under which its tokens are counted.
    fn name(&self) -> String {
        match self {
            Self::Model(choice) => choice.name.to_string(),
            Self::Service(binding) => format!("service:{binding}"),
        }
    }
}

impl ModelSummarizer<'_> {
    fn config(&self) -> Result<Config> {
        load_config(self.memory.db, &self.memory.deployed.config)
    }

    async fn ask(
        &self,
        prompt: String,
        max_tokens: i64,
        summarized: &mut NewSummary,
    ) -> Result<String> {
        let config = self.config()?;
        let outbound = self.memory.outbound;
        let named = config.summarize.as_ref();
        let writer = match named.and_then(|named| named.service.as_ref()) {
            Some(binding) => SummaryWriter::Service(binding.as_str()),
            None => {
                let named = config.summary_model.as_ref().or(config.model.as_ref());
                SummaryWriter::Model(choose_model(outbound, named.map(Id::as_str))?)
            }
        };
        let model = writer.name();
        let sent = tokens::estimate(&prompt);
        let meter = Meter {
            db: self.memory.db,
            host: self.memory.host,
            config: &config,
            token: self.payer.limits()?,
            budget: None,
        };
        let reserved = meter.reserve(&model, sent)?;
        self.in_flight.replace(Some((model.clone(), sent)));
        let mut call = CompletedCall::default();
        let answer = match &writer {
            SummaryWriter::Service(binding) => {
                service::ask(&self.memory, binding, &prompt, max_tokens).await
            }
            SummaryWriter::Model(choice) => {
                let messages = [ContextMessage::of_text(Role::User, prompt)];
                let request = ModelRequest {
                    messages: &messages,
                    max_output_tokens: Some(max_tokens),
                    ..ModelRequest::default()
                };
                complete(outbound, choice, &request, &mut call).await
            }
        };
        let model = call.model.unwrap_or(model);
        let ended = EndedCall {
            usage: call.usage,
            received_tokens: answer.as_deref().map_or(0, tokens::estimate),
            outcome: match &answer {
                Ok(_) => CallOutcome::Whole,
                Err(error) => CallOutcome::Failed(error),
            },
        };
        self.in_flight.take();
        summarized.usage = ended.spent(sent);
        settle(&meter, reserved.as_ref(), summarized.usage)?;
        if let Some(prices) = &config.prices {
            summarized.cost = summarized.usage.cost(prices, &model);
        }
        summarized.model = Some(model);
        answer
    }
}
