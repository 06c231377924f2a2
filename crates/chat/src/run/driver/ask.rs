//! A request to the model: its context, and the model's answer.

use super::recording::{FinishedStep, parts_of};
use super::{Broken, TurnDriver};
use crate::run::replay::emit_outcome;
use crate::run::tracing::{chat_part, part_of};
use crate::stream::answer_events::AnswerEvent;
use crate::tools::turn_tools::TurnTools;
use crate::turn::answer_position::find_answer_position;
use crate::turn::partial_answer::PartialAnswer;
use crate::turn::window::{MAX_SENT_BYTES, RefusedRequest, TurnWindow, store_window};
use base::budget::{Reservation, TURNS};
use base::error::{Code, Error, Result};
use base::ids::Id;
use base::tokens;
use base::trace::run_in;
use context::compaction::fixed::tools_tokens;
use context::tools::untrusted::find_untrusted;
use context::working_context::budget::Budget;
use context::working_context::build::{ContextWindow, WorkingContext, message_tokens};
use context::working_context::fitting::build_fitting;
use conversation::log::slices::MAX_EVENT_BYTES;
use conversation::session::meter::Meter;
use memory::BlockScope;
use memory::frozen::{find_reminder, freeze, refresh};
use models::call::open;
use models::length::LengthRefusal;
use models::metered::{CallOutcome, EndedCall, settle};
use models::{AnswerPart, ModelRequest};
use store::config::Config;
use store::memory_use::MemoryUse;
use store::model_settings::PromptRefresh;

/// The most bytes of one answer of the model: the limit of an event, minus its other fields.
const MAX_ANSWER_TEXT_BYTES: usize = MAX_EVENT_BYTES - (64 << 10);

/// How often a turn waits, `WAIT_MS` each, for memory for its request to the model: half a minute
/// in all.
const MAX_WAITS: usize = 30;
const WAIT_MS: i64 = 1_000;

impl TurnDriver<'_> {
    /// Sends a request to the model and reads its answer to the end.
    pub(super) async fn ask(&self) -> Result<(), Broken> {
        let started_at = self.now();
        let config = self.config()?;
        let mut turn_tools = self.turn_tools(&config)?;
        let refreshing = turn_tools.refresh(&self.turn.borrow());
        if let Some(refreshing) = refreshing {
            let refreshed = self.running.unless_cancelled(refreshing).await;
            refreshed.ok_or(Broken::Cancelled)??;
            turn_tools = self.turn_tools(&config)?;
        }
        let (refusals, steps_before) = {
            let turn = self.turn.borrow();
            (turn.length_feedback.refusals, turn.record.steps.len())
        };
        // A retried request belongs to the same step.
        if refusals == 0 || !self.writer.borrow().is_in_step() {
            let step_start = self.writer.borrow_mut().start_step();
            self.emit(step_start);
        }
        let mut received = PartialAnswer::default();
        let meter = self.meter(&config);
        let part = part_of(&chat_part(steps_before));
        let reading = self.read_answer(&meter, &turn_tools, &mut received);
        let outcome = self.running.unless_cancelled(run_in(part, reading)).await;
        let ended = EndedCall {
            usage: received.usage,
            received_tokens: received.tokens(),
            outcome: match &outcome {
                Some(Ok(())) => CallOutcome::Whole,
                Some(Err(error)) => CallOutcome::Failed(error),
                None => CallOutcome::Canceled,
            },
        };
        let model = received.model.take();
        // A request that was never sent spent nothing.
        let spent = model.as_ref().map(|_| ended.spent(received.sent));
        let spent = spent.unwrap_or_default();
        let counted = settle(&meter, received.reserved.as_ref(), spent);
        let outcome = outcome.map(|outcome| outcome.and(counted));
        self.count(&config, spent, received.estimated, model.clone());
        self.record_step(
            &config,
            &FinishedStep {
                started_at,
                received: &received,
                model: model.as_deref(),
                spent,
                outcome: outcome.as_ref(),
            },
        );
        let broken = match outcome {
            Some(Ok(())) => None,
            Some(Err(error)) => match self.handle_refusal(&received, error) {
                Ok(()) => return Ok(()),
                Err(error) => Some(Broken::Failed(error)),
            },
            None => Some(Broken::Cancelled),
        };
        if let Some(broken) = broken {
            self.turn
                .borrow_mut()
                .add_partial(received.text, received.reasoning);
            return Err(broken);
        }
        let host = self.context.memory.host;
        self.turn.borrow_mut().mark_untrusted(received.untrusted);
        self.turn.borrow_mut().add_answer(
            received.text,
            received.reasoning,
            received.calls,
            received.finish_reason,
            &|name| turn_tools.runner(name),
            &mut || Id::mint_approval(host).as_str().to_owned(),
        );
        if let (Some(provider_data), Some(by)) = (received.provider_data, &model) {
            self.turn.borrow_mut().keep(by, &provider_data);
        }
        self.record_calls(&turn_tools);
        let mut chunks = Vec::new();
        for call in self.turn.borrow_mut().newest_calls() {
            let mut writer = self.writer.borrow_mut();
            chunks.extend(emit_outcome(&mut writer, call));
        }
        self.emit(chunks);
        Ok(())
    }

    /// Learns from a refusal for length, so that the step is retried. Returns any other error.
    fn handle_refusal(&self, received: &PartialAnswer, error: Error) -> Result<()> {
        let Some(refusal) = LengthRefusal::of(&error).filter(|_| received.bytes() == 0) else {
            return Err(error);
        };
        let memory = &self.context.memory;
        let request = RefusedRequest {
            refusal,
            model: &received.refused_by,
            estimated: received.estimated,
            fixed: received.fixed,
        };
        request.learn(memory.db, memory.host, &mut self.turn.borrow_mut(), error)
    }

    /// The limits for the turn's requests.
    fn meter<'b>(&'b self, config: &'b Config) -> Meter<'b> {
        Meter {
            db: self.context.memory.db,
            host: self.context.memory.host,
            config,
            token: self.caller.limits.as_ref(),
            budget: None,
        }
    }

    async fn read_answer(
        &self,
        meter: &Meter<'_>,
        turn_tools: &TurnTools<'_>,
        received: &mut PartialAnswer,
    ) -> Result<()> {
        let config = meter.config;
        let memory = &self.context.memory;
        let session_id = &self.running.session_id;
        let scope = BlockScope::Session(session_id);
        let (answers, refusals, stored_bytes) = {
            let turn = self.turn.borrow();
            (
                turn.answer_count(),
                turn.length_feedback.refusals,
                turn.stored_bytes,
            )
        };
        let mut instructions = Vec::new();
        // The user's message is stored already, so a slow backend loses nothing.
        let api = self.running.api.as_deref();
        let has_memory = api.is_none_or(|api| api.memory != MemoryUse::Off);
        if has_memory {
            let frozen = match config.refresh_prompt {
                PromptRefresh::Turn if answers == 0 => refresh(memory, scope).await?,
                _ => freeze(memory, scope).await?,
            };
            if !frozen.prompt.is_empty() {
                instructions.push(frozen.prompt);
            }
        }
        instructions.extend(config.system_instructions.0.iter().cloned());
        instructions.extend_from_slice(&self.turn.borrow().system_instructions);
        let reminder = if has_memory {
            find_reminder(memory, scope).await?
        } else {
            None
        };
        let leaf_seq = find_answer_position(memory.db, &self.turn.borrow())?.seq;
        let choice = self.choice(config)?;
        let window = TurnWindow::load(memory.db, memory.host, session_id, config, &choice)?;
        let reminded = reminder.as_deref().map_or(0, tokens::estimate);
        let budget = || {
            let tools = &turn_tools.definitions;
            window.budget(memory.db, session_id, tools, reminded)
        };
        let request = ContextRequest {
            instructions: &instructions,
            leaf_seq,
            keep_media: usize::try_from(config.keep_media.0).unwrap_or(0),
            window: &window,
        };
        let retained_bytes = stored_bytes + turn_tools.bytes();
        self.running.set_retained_bytes(retained_bytes);
        let mut stream = {
            // The context and its reservation are dropped as soon as the model answers.
            let (mut context, hidden, _reservation) = self.build_context(&request, &budget).await?;
            // After a refusal for length, less comes back.
            let refused = i64::from(refusals > 0);
            context.return_provider_data(&choice.name.to_string(), window.tokens >> (2 * refused));
            let earlier_calls = self.turn.borrow().call_ids();
            let request = ModelRequest {
                system: &context.system_instructions,
                messages: &context.messages,
                earlier_calls: &earlier_calls,
                tools: &turn_tools.definitions,
                reminder: reminder.as_deref(),
                max_output_tokens: api
                    .and_then(|api| api.caller.max_tokens)
                    .or(window.answer_tokens),
                temperature: api
                    .and_then(|api| api.caller.temperature)
                    .or(config.temperature.map(|temperature| temperature.0)),
                reasoning_effort: config.reasoning_effort,
                caller: api.map(|api| &api.caller),
            };
            received.untrusted = find_untrusted(&context, reminder.as_deref());
            let tools = tools_tokens(&turn_tools.definitions);
            received.estimated = context.tokens_estimate + reminded + tools;
            let messages = context.messages.iter().map(message_tokens);
            received.fixed = received.estimated - messages.sum::<i64>();
            let overhead = (tools, reminded);
            received.context = Some(parts_of(&context, overhead, (window.tokens, hidden)));
            received.refused_by = choice.name.to_string();
            // Rejects the request if the day's tokens or money are spent.
            let sent = window.calibration.correct(received.estimated);
            received.reserved = meter.reserve(&received.refused_by, sent)?;
            received.sent = sent;
            received.model = Some(choice.name.to_string());
            received.sent_at = Some(self.now());
            open(memory.outbound, &choice, &request, true).await?
        };
        let is_native = api.is_some_and(|api| stream.is_in_api_of(&api.caller));
        self.running.push_event(AnswerEvent::Step { is_native });
        // The demo may have replaced the chosen model.
        received.model = Some(stream.model.clone());
        while let Some(part) = stream.next().await? {
            if received.answered_by.is_none() {
                received.answered_by.clone_from(&stream.answered_by);
            }
            if let AnswerPart::Failed(sentence) = part {
                return Err(Error::new(Code::ModelFailed, sentence));
            }
            if api.is_some() && AnswerEvent::is_for_listeners(&part) {
                self.running.push_event(AnswerEvent::Part(part.clone()));
            }
            let chunks = self.writer.borrow_mut().write_part(&part);
            self.emit(chunks);
            received.record_first(&part, self.now());
            received.add(part);
            self.running
                .set_retained_bytes(retained_bytes + received.bytes());
            if self.running.is_over_limit() || received.bytes() > MAX_ANSWER_TEXT_BYTES {
                // The stored text has to fit into an event.
                let end = received.text.floor_char_boundary(MAX_ANSWER_TEXT_BYTES);
                received.text.truncate(end);
                return Err(Error::new(
                    Code::ModelFailed,
                    "The answer exceeded the limit of one turn and was stopped.",
                ));
            }
        }
        // A client of a provider's API receives the provider's own answer.
        if api.is_some() {
            return Ok(());
        }
        // After a tool's result, also a client's, a model may have nothing to add.
        let turn = self.turn.borrow();
        let needs_content = turn.steps.is_empty() && !turn.is_continuation;
        received.find_silence(needs_content).map_or(Ok(()), Err)
    }

    /// Builds the context for the model, and reserves memory for it. If the memory is not free,
    /// drops the context, waits, and rebuilds it. Also returns about how many messages are left
    /// out.
    async fn build_context(
        &self,
        request: &ContextRequest<'_>,
        budget: &dyn Fn() -> Result<Budget<'static>>,
    ) -> Result<(WorkingContext, i64, Reservation)> {
        let memory = &self.context.memory;
        let session_id = &self.running.session_id;
        let mut tries = 0;
        loop {
            let window = ContextWindow {
                leaf_seq: request.leaf_seq,
                limit: usize::MAX,
                system_instructions: request.instructions.to_vec(),
                added: self.turn.borrow().messages(),
                keep_media: request.keep_media,
            };
            let fitted = build_fitting(memory.db, session_id, window, &budget()?)?;
            store_window(memory.db, session_id, &fitted)?;
            if request.window.is_filling(&fitted) {
                let compactions = self.context.compactions;
                compactions.mark_filling(session_id, request.window.tokens);
            }
            let (context, hidden) = (fitted.context, fitted.hidden);
            let bytes = context.bytes();
            if bytes > MAX_SENT_BYTES {
                let what = "The request to the model";
                return Err(Error::payload_too_large(what, MAX_SENT_BYTES, bytes));
            }
            // Twice: for the context, and for its copy in the provider's format.
            match Reservation::take(&TURNS, 2 * bytes, "Running turns") {
                Ok(reservation) => return Ok((context, hidden, reservation)),
                Err(error) if tries == MAX_WAITS => return Err(error),
                Err(_) => tries += 1,
            }
            drop(context);
            memory.outbound.sleep(WAIT_MS).await;
        }
    }
}

/// The part of a conversation to send to a model.
struct ContextRequest<'a> {
    instructions: &'a [String],
    leaf_seq: Option<i64>,
    keep_media: usize,
    window: &'a TurnWindow,
}
