//! Drives a turn: executes what [`Turn::next`] decides, in a thin loop around the model,
//! the tools and the log. The object may be evicted between any two awaits of the loop; the
//! stored state is sufficient to continue the turn.

mod ask;
mod ask_class;
mod finish;
mod recording;

use std::cell::RefCell;
use std::pin::pin;
use std::rc::Rc;

use futures_util::StreamExt as _;
use futures_util::stream::{self, FuturesUnordered};

use crate::run::context::TurnContext;
use crate::run::recover::{MAX_RECOVERIES, RecoveredTurn};
use crate::run::replay::{emit_outcome, replay};
use crate::run::running_turns::RunningTurn;
use crate::run::tracing::{compaction_part, part_of, tool_part};
use crate::run::whole_outputs::{MAX_WHOLE_OUTPUT_BYTES, store};
use crate::stream::chunk_writer::ChunkWriter;
use crate::stream::chunks::Chunk;
use crate::tools::input::question::{MAX_ASKING_CALLS, MAX_STEP_BYTES, stored_bytes};
use crate::tools::turn_tools::{MAX_OUTPUT_BYTES, TurnTools};
use crate::turn::answer_position::find_answer_position;
use crate::turn::store::save_turn;
use crate::turn::window::TurnWindow;
use crate::turn::{
    CallState, NextAction, Turn, TurnCall, TurnEnding, WholeOutputs, retained_bytes,
};
use access::MemoryScope;
use base::error::{Code, Error, Result};
use base::ids::Id;
use base::trace::run_in;
use context::compaction::act::Compactor;
use context::compaction::auto::compact_for_turn;
use context::compaction::configure::load_settings;
use context::compaction::fixed::load_fixed;
use context::compaction::summarizer::ModelSummarizer;
use context::tools::{Toolbox, is_ours};
use memory::Memory;
use models::TokenUsage;
use models::call::choose_model;
use models::choice::ModelChoice;
use store::config::{Config, load_config};
use store::limits::PrincipalLimits;

/// The reason why a turn ended early.
enum Broken {
    Cancelled,
    Failed(Error),
}

impl From<Error> for Broken {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

/// One turn while it runs. Work that waits reads from `running` and `caller` what no step changes,
/// so it needs no copy of the turn.
struct TurnDriver<'a> {
    context: TurnContext<'a>,
    running: &'a RunningTurn,
    caller: TurnCaller,
    turn: RefCell<Turn>,
    writer: RefCell<ChunkWriter>,
}

/// What the turn's caller allows.
struct TurnCaller {
    memory_scope: MemoryScope,
    limits: Option<PrincipalLimits>,
    skips_callbacks: bool,
}

/// Runs a new turn.
pub async fn run(context: TurnContext<'_>, running: &RunningTurn, turn: Turn) {
    let (writer, replayed) = replay(&turn, &WholeOutputs::default());
    let drive = TurnDriver::new(context, running, turn, writer);
    drive.emit(replayed);
    let outcome = drive.run_steps().await;
    drive.finish(outcome).await;
    context.notify_class(&running.session_id, "idle");
}

/// Continues an interrupted turn, or closes it after too many recoveries.
pub async fn resume(context: TurnContext<'_>, recovered: RecoveredTurn) {
    let RecoveredTurn {
        running,
        turn,
        recoveries,
        writer,
    } = recovered;
    let drive = TurnDriver::new(context, &running, turn, writer);
    let outcome = if recoveries > MAX_RECOVERIES {
        drive.emit_interrupted();
        Err(Broken::Failed(Error::new(
            Code::ModelFailed,
            "The turn was interrupted several times and could not be finished. Try again.",
        )))
    } else {
        drive.run_steps().await
    };
    drive.finish(outcome).await;
    context.notify_class(&running.session_id, "idle");
}

impl<'a> TurnDriver<'a> {
    fn new(
        context: TurnContext<'a>,
        running: &'a RunningTurn,
        turn: Turn,
        writer: ChunkWriter,
    ) -> Self {
        Self {
            context,
            running,
            caller: TurnCaller {
                memory_scope: turn.memory_scope(),
                limits: turn.limits.clone(),
                skips_callbacks: turn.skips_callbacks,
            },
            writer: RefCell::new(writer),
            turn: RefCell::new(turn),
        }
    }

    async fn run_steps(&self) -> Result<TurnEnding, Broken> {
        loop {
            let next = self.turn.borrow().next();
            self.context
                .notify_class(&self.running.session_id, next.phase());
            match next {
                NextAction::AskModel => self.ask().await?,
                NextAction::Compact => self.compact_for_turn().await?,
                NextAction::AskClass(calls) => self.ask_class(&calls).await?,
                NextAction::RunTools(calls) => self.run_tools(&calls).await?,
                NextAction::Finish(ending) => return Ok(ending),
            }
        }
    }

    fn config(&self) -> Result<Config> {
        let memory = &self.context.memory;
        load_config(memory.db, &memory.deployed.config)
    }

    /// Adds the usage of one of the turn's calls.
    fn count(&self, config: &Config, spent: TokenUsage, estimated: i64, model: Option<String>) {
        let mut turn = self.turn.borrow_mut();
        if let (Some(prices), Some(model)) = (&config.prices, &model) {
            turn.cost += spent.cost(prices, model);
        }
        turn.add_usage(spent, estimated, model);
    }

    /// Compacts the conversation, so that the request fits. If the summary fails, only its
    /// details are missing: the next request is shorter anyway.
    async fn compact_for_turn(&self) -> Result<(), Broken> {
        let config = self.config()?;
        let memory = &self.context.memory;
        let position = find_answer_position(memory.db, &self.turn.borrow())?;
        if let Some(leaf_seq) = position.seq {
            let session_id = &self.running.session_id;
            let turn_tools = self.turn_tools(&config)?;
            let choice = self.choice(&config)?;
            let (db, host) = (memory.db, memory.host);
            let window = TurnWindow::load(db, host, session_id, &config, &choice)?;
            let fixed = load_fixed(memory, session_id, &turn_tools.definitions)?;
            let deployed = &self.context.deployed.compaction;
            let settings = load_settings(db, deployed, Some(session_id))?;
            let summariser = ModelSummarizer::of(*memory, self.caller.limits.as_ref());
            let compactor = Compactor {
                db,
                host,
                summariser: &summariser,
            };
            let compactions = self.context.compactions;
            let made = compact_for_turn(
                compactions,
                &compactor,
                session_id,
                leaf_seq,
                settings,
                (&fixed, window.tokens),
            );
            let started_at = self.now();
            let compactions_before = self.turn.borrow().record.compactions.len();
            let part = part_of(&compaction_part(compactions_before));
            let made = self.running.unless_cancelled(run_in(part, made)).await;
            if let Some(made) = &made {
                self.record_compaction(started_at, made);
            }
            let Some(made) = made else {
                // The canceled request is counted here, because its summarizer no longer can.
                if let Some((model, sent)) = summariser.take_in_flight() {
                    let spent = TokenUsage {
                        input_tokens: sent,
                        ..TokenUsage::default()
                    };
                    self.count(&config, spent, sent, Some(model));
                }
                return Err(Broken::Cancelled);
            };
            made?;
        }
        self.turn.borrow_mut().length_feedback.record_compacted();
        Ok(())
    }

    fn choice(&self, config: &Config) -> Result<ModelChoice> {
        let turn = self.turn.borrow();
        let own = config.model.as_ref().map(Id::as_str);
        let named = turn.model.as_deref().or(own);
        choose_model(self.context.memory.outbound, named)
    }

    fn turn_tools<'b>(&'b self, config: &'b Config) -> Result<TurnTools<'b>> {
        let (running, caller) = (self.running, &self.caller);
        let turn = self.turn.borrow();
        let session_id = Some(&running.session_id);
        let toolbox = Toolbox {
            memory: Memory {
                payer: caller.limits.as_ref(),
                asking: session_id,
                ..self.context.memory
            },
            config,
            session_id,
            turn_id: Some(&running.request_id),
            event_id: Some(&running.message_id),
            is_silent: caller.skips_callbacks,
            untrusted: turn.untrusted,
            only_session: session_id.filter(|_| !caller.memory_scope.is_agent()),
            writes_agent: caller.memory_scope.writes_agent(),
        };
        TurnTools::load(toolbox, &self.context.deployed.tools, &turn)
    }

    /// These calls of the newest step, with their indexes.
    fn copy_calls(&self, indexes: &[usize]) -> Vec<(usize, TurnCall)> {
        let turn = self.turn.borrow();
        let newest = turn.steps.last().map_or(&[][..], |step| &step.calls);
        let calls = indexes.iter();
        calls
            .filter_map(|index| Some((*index, newest.get(*index)?.clone())))
            .collect()
    }

    /// Runs calls concurrently. Stores their results before the next step.
    async fn run_tools(&self, calls: &[usize]) -> Result<(), Broken> {
        let config = self.config()?;
        self.turn.borrow_mut().start_calls(calls);
        if self.has_approved() {
            self.record_approved(&self.turn_tools(&config)?);
        }
        self.record_start(calls);
        // Stored before any call is made, so that no call that may have taken effect is
        // repeated.
        self.save()?;
        let turn_tools = self.turn_tools(&config)?;
        let calls = self.copy_calls(calls);
        // The memory tools run one after the other, because two of them may change the same
        // text in an external backend.
        let (memory_calls, others): (Vec<_>, Vec<_>) = calls
            .iter()
            .partition(|(_, call)| is_ours(call.name.as_str()));
        let run = |called| self.run_call(&turn_tools, called);
        let memory_calls = pin!(stream::iter(memory_calls).then(run));
        let others: FuturesUnordered<_> = others.into_iter().map(run).collect();
        let mut made = stream::select(memory_calls, others);
        let mut left = calls.len();
        let mut output_bytes = self.turn.borrow().output_bytes();
        loop {
            let Some(next) = self.running.unless_cancelled(made.next()).await else {
                return Err(Broken::Cancelled);
            };
            let Some((index, call, mut state)) = next else {
                break;
            };
            left -= 1;
            self.fit_question(&mut state, &mut output_bytes);
            let shortened = self.shorten(&turn_tools, call, &mut state, &mut output_bytes)?;
            self.record_end(index, &state);
            let mut turn = self.turn.borrow_mut();
            turn.finish_call(index, state);
            let call = turn.newest_calls().get(index);
            let chunks = call.map(|call| emit_outcome(&mut self.writer.borrow_mut(), call));
            if let (Some(shortened), Some(call)) = (shortened, turn.newest_calls().get_mut(index)) {
                call.state = shortened;
            }
            drop(turn);
            self.emit(chunks.unwrap_or_default());
            if left > 0 {
                self.save()?;
            }
        }
        let ended = self.writer.borrow_mut().finish_step();
        self.emit(ended);
        if self.turn.borrow().next() == NextAction::AskModel {
            self.save()?;
        }
        Ok(())
    }

    /// Makes a call. The memory tools are started one after the other.
    async fn run_call<'c>(
        &self,
        turn_tools: &TurnTools<'_>,
        (index, call): &'c (usize, TurnCall),
    ) -> (usize, &'c TurnCall, CallState) {
        self.record_start(&[*index]);
        let step = self.turn.borrow().record.steps.len().saturating_sub(1);
        let part = part_of(&tool_part(step, *index));
        (*index, call, run_in(part, turn_tools.run(call)).await)
    }

    /// Replaces questions that don't fit the step's event or the turn's row with a failure.
    fn fit_question(&self, state: &mut CallState, output_bytes: &mut usize) {
        let CallState::AwaitsInput(question) = &*state else {
            return;
        };
        let turn = self.turn.borrow();
        let step = turn.steps.last();
        let before = step.into_iter().flat_map(|step| &step.calls);
        let before = before.filter_map(|call| match &call.state {
            CallState::AwaitsInput(question) => Some(stored_bytes(question)),
            _ => None,
        });
        let (calls, stored) = before.fold((0, 0), |(calls, all), one| (calls + 1, all + one));
        let bytes = stored_bytes(question);
        if calls >= MAX_ASKING_CALLS
            || stored + bytes > MAX_STEP_BYTES
            || *output_bytes + bytes > MAX_OUTPUT_BYTES
        {
            *state = CallState::failed(
                "The tool was not carried out: too many tools ask the user at the same time. Call \
                 it again on its own.",
            );
        } else {
            *output_bytes += bytes;
        }
    }

    /// Stores an output separately if it is too long for the model or for the turn's row.
    /// Returns the state that the turn stores for such a call. `output_bytes` is the size
    /// of the turn's outputs.
    fn shorten(
        &self,
        tools: &TurnTools<'_>,
        call: &TurnCall,
        state: &mut CallState,
        output_bytes: &mut usize,
    ) -> Result<Option<CallState>> {
        let CallState::Done {
            output, is_json, ..
        } = &*state
        else {
            return Ok(None);
        };
        let bytes = retained_bytes(output);
        let shown_bytes = tools.shown_bytes(call.name.as_str());
        if output.len() <= shown_bytes && *output_bytes + bytes <= MAX_OUTPUT_BYTES {
            *output_bytes += bytes;
            return Ok(None);
        }
        let (db, session_id) = (self.context.memory.db, &self.running.session_id);
        let stored_bytes = self.turn.borrow().whole_output_bytes();
        let output = (output.as_str(), *is_json);
        let shortened = store(db, session_id, &call.id, output, stored_bytes)?;
        if let Some(CallState::Done { output, .. }) = &shortened
            && *output_bytes + retained_bytes(output) <= MAX_OUTPUT_BYTES
        {
            *output_bytes += retained_bytes(output);
            return Ok(shortened);
        }
        *state = CallState::failed(format!(
            "The tool's output of {bytes} bytes doesn't fit: the outputs of one turn can have at most {MAX_OUTPUT_BYTES} bytes in total, and outputs that are too long for the model at most {MAX_WHOLE_OUTPUT_BYTES}."
        ));
        Ok(None)
    }

    /// Stores the turn's current state.
    fn save(&self) -> Result<()> {
        save_turn(self.context.memory.db, &mut self.turn.borrow_mut())
    }

    /// Sends chunks to all listeners.
    fn emit(&self, chunks: Vec<Chunk>) {
        for chunk in chunks {
            let json: Rc<str> = chunk.json().into();
            let number = self.running.push(Rc::clone(&json));
            let session_id = &self.running.session_id;
            if self.context.audience.is_watching(session_id) {
                let frame = self.running.frame_header(false).render_chunk(&json, number);
                self.context.audience.send(session_id, &frame, None);
            }
        }
    }

    fn emit_interrupted(&self) {
        let mut turn = self.turn.borrow_mut();
        turn.add_partial(
            "This answer was interrupted several times and could not be finished.".to_owned(),
            String::new(),
        );
    }
}
