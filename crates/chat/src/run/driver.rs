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

use futures_util::stream::{self, FuturesUnordered};
use futures_util::{StreamExt as _, future};

use crate::run::context::TurnContext;
use crate::run::recover::{MAX_RECOVERIES, RecoveredTurn};
use crate::run::retell::{retell, tell_outcome};
use crate::run::running_turns::RunningTurn;
use crate::run::tracing::{compaction_part, part_of, tool_part};
use crate::run::whole_outputs::{MAX_WHOLE_OUTPUT_BYTES, store};
use crate::stream::chunk_writer::ChunkWriter;
use crate::stream::chunks::Chunk;
use crate::tools::turn_tools::{MAX_OUTPUT_BYTES, TurnTools};
use crate::turn::place::find_place;
use crate::turn::store::save_turn;
use crate::turn::window::TurnWindow;
use crate::turn::{CallState, NextAction, Turn, TurnCall, TurnEnding, kept_bytes};
use base::error::{Code, Error, Result};
use base::ids::Id;
use base::trace::run_in;
use context::compaction::act::Compactor;
use context::compaction::auto::make_room;
use context::compaction::configure::load_settings;
use context::compaction::fixed::load_fixed;
use context::compaction::summariser::ModelSummariser;
use context::tools::{Toolbox, is_ours};
use memory::Memory;
use models::TokenUsage;
use models::call::choose_model;
use models::choice::ModelChoice;
use store::config::{Config, load_config};

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

/// One turn while it runs.
struct TurnDriver<'a> {
    context: TurnContext<'a>,
    running: &'a RunningTurn,
    turn: RefCell<Turn>,
    writer: RefCell<ChunkWriter>,
}

/// Runs a new turn.
pub async fn run(context: TurnContext<'_>, running: &RunningTurn, turn: Turn) {
    let (writer, begun) = retell(&turn);
    let drive = TurnDriver {
        context,
        running,
        writer: RefCell::new(writer),
        turn: RefCell::new(turn),
    };
    drive.tell(begun);
    let outcome = drive.go().await;
    drive.finish(outcome).await;
    context.tell_class(&running.session_id, "idle");
}

/// Continues an interrupted turn, or closes it after too many recoveries.
pub async fn resume(context: TurnContext<'_>, taken: RecoveredTurn) {
    let RecoveredTurn {
        running,
        turn,
        recoveries,
        writer,
    } = taken;
    let drive = TurnDriver {
        context,
        running: &running,
        writer: RefCell::new(writer),
        turn: RefCell::new(turn),
    };
    let outcome = if recoveries > MAX_RECOVERIES {
        drive.say_that_it_was_interrupted();
        Err(Broken::Failed(Error::new(
            Code::ModelFailed,
            "The turn was interrupted several times and could not be finished. Try again.",
        )))
    } else {
        drive.go().await
    };
    drive.finish(outcome).await;
    context.tell_class(&running.session_id, "idle");
}

impl TurnDriver<'_> {
    async fn go(&self) -> Result<TurnEnding, Broken> {
        loop {
            let next = self.turn.borrow().next();
            self.context
                .tell_class(&self.running.session_id, next.phase());
            match next {
                NextAction::AskModel => self.ask().await?,
                NextAction::MakeRoom => self.make_room().await?,
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
    async fn make_room(&self) -> Result<(), Broken> {
        let config = self.config()?;
        let turn = self.turn.borrow().clone();
        let memory = &self.context.memory;
        if let Some(leaf_seq) = find_place(memory.db, &turn)?.seq {
            let turn_tools = self.turn_tools(&config, &turn)?;
            let choice = self.choice(&config, &turn)?;
            let (db, host) = (memory.db, memory.host);
            let window = TurnWindow::load(db, host, &turn.session_id, &config, &choice)?;
            let fixed = load_fixed(memory, &turn.session_id, &turn_tools.definitions)?;
            let deployed = &self.context.deployed.compaction;
            let settings = load_settings(db, deployed, Some(&turn.session_id))?;
            let summariser = ModelSummariser::of(*memory, turn.limits.as_ref());
            let compactor = Compactor {
                db,
                host,
                summariser: &summariser,
            };
            let compactions = self.context.compactions;
            let made = make_room(
                compactions,
                &compactor,
                &turn.session_id,
                leaf_seq,
                settings,
                (&fixed, window.tokens),
            );
            let started_at = self.now();
            let part = part_of(&compaction_part(turn.record.compactions.len()));
            let made = self.running.unless_cancelled(run_in(part, made)).await;
            if let Some(made) = &made {
                self.note_compaction(started_at, made);
            }
            let Some(made) = made else {
                // The cancelled request is counted here, because its summariser no longer
                // can.
                if let Some((model, sent)) = summariser.take_under_way() {
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
        self.turn.borrow_mut().room.take_room();
        Ok(())
    }

    fn choice(&self, config: &Config, turn: &Turn) -> Result<ModelChoice> {
        let own = config.model.as_ref().map(Id::as_str);
        let named = turn.model.as_deref().or(own);
        choose_model(self.context.memory.outbound, named)
    }

    fn turn_tools<'b>(&'b self, config: &'b Config, turn: &'b Turn) -> Result<TurnTools<'b>> {
        let toolbox = Toolbox {
            memory: Memory {
                payer: turn.limits.as_ref(),
                asking: Some(&turn.session_id),
                ..self.context.memory
            },
            config,
            session_id: Some(&turn.session_id),
            turn_id: Some(&turn.id),
            event_id: Some(&turn.message_id),
            tells_nobody: turn.calls_nobody_back,
            untrusted: turn.untrusted,
            only_session: turn.only_session.as_ref(),
            writes_agent: turn.reach().writes_agent(),
        };
        TurnTools::load(toolbox, &self.context.deployed.tools, turn)
    }

    /// Runs calls concurrently. Stores their results before the next step.
    async fn run_tools(&self, calls: &[usize]) -> Result<(), Broken> {
        let config = self.config()?;
        self.turn.borrow_mut().start_calls(calls);
        if self.has_approved() {
            let turn = self.turn.borrow().clone();
            self.note_approved(&self.turn_tools(&config, &turn)?);
        }
        self.note_begun(calls);
        // Stored before any call is made, so that no call that may have taken effect is
        // repeated.
        self.save()?;
        let turn = self.turn.borrow().clone();
        let turn_tools = self.turn_tools(&config, &turn)?;
        let newest = turn.steps.last().map_or(&[][..], |step| &step.calls);
        let make = |index: usize| {
            let call = newest.get(index);
            let (turn_tools, turn) = (&turn_tools, &turn);
            async move {
                let call = call?;
                // The memory tools are started one after the other.
                self.note_begun(&[index]);
                let part = tool_part(turn.record.steps.len().saturating_sub(1), index);
                let made = run_in(part_of(&part), turn_tools.run(turn, call));
                Some((index, made.await))
            }
        };
        let is_memorys = |index: &usize| {
            let call = newest.get(*index);
            call.is_some_and(|call| is_ours(call.name.as_str()))
        };
        // The memory tools run one after the other, because two of them may change the same
        // text in an external backend.
        let (memorys, others): (Vec<usize>, Vec<usize>) = calls.iter().partition(|i| is_memorys(i));
        let memorys = pin!(stream::iter(memorys).filter_map(make));
        let others: FuturesUnordered<_> = others.into_iter().map(make).collect();
        let mut made = stream::select(memorys, others.filter_map(future::ready));
        let mut left = calls.len();
        let mut output_bytes = turn.output_bytes();
        loop {
            let Some(next) = self.running.unless_cancelled(made.next()).await else {
                return Err(Broken::Cancelled);
            };
            let Some((index, mut state)) = next else {
                break;
            };
            left -= 1;
            let shown = match newest.get(index) {
                Some(call) => self.shorten(&turn_tools, call, &mut state, &mut output_bytes)?,
                None => None,
            };
            self.note_ended(index, &state);
            let mut turn = self.turn.borrow_mut();
            turn.finish_call(index, state);
            let call = turn.newest_calls().get(index);
            let told = call.map(|call| tell_outcome(&mut self.writer.borrow_mut(), call));
            if let (Some(shown), Some(call)) = (shown, turn.newest_calls().get_mut(index)) {
                call.state = shown;
            }
            drop(turn);
            self.tell(told.unwrap_or_default());
            if left > 0 {
                self.save()?;
            }
        }
        let ended = self.writer.borrow_mut().finish_step();
        self.tell(ended);
        if self.turn.borrow().next() == NextAction::AskModel {
            self.save()?;
        }
        Ok(())
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
        let bytes = kept_bytes(output);
        let shown_bytes = tools.shown_bytes(call.name.as_str());
        if output.len() <= shown_bytes && *output_bytes + bytes <= MAX_OUTPUT_BYTES {
            *output_bytes += bytes;
            return Ok(None);
        }
        let (db, session_id, stored_bytes) = {
            let turn = self.turn.borrow();
            let stored_bytes = turn.whole_output_bytes();
            (
                self.context.memory.db,
                turn.session_id.clone(),
                stored_bytes,
            )
        };
        let output = (output.as_str(), *is_json);
        let shown = store(db, &session_id, &call.id, output, stored_bytes)?;
        if let Some(CallState::Done { output, .. }) = &shown
            && *output_bytes + kept_bytes(output) <= MAX_OUTPUT_BYTES
        {
            *output_bytes += kept_bytes(output);
            return Ok(shown);
        }
        *state = CallState::failed(format!(
            "The tool's output of {bytes} bytes doesn't fit: the outputs of one turn can have at most {MAX_OUTPUT_BYTES} bytes in total, and outputs that are too long for the model at most {MAX_WHOLE_OUTPUT_BYTES}."
        ));
        Ok(None)
    }

    /// Stores the turn's current state.
    fn save(&self) -> Result<()> {
        save_turn(self.context.memory.db, &self.turn.borrow())
    }

    /// Sends chunks to all listeners.
    fn tell(&self, chunks: Vec<Chunk>) {
        for chunk in chunks {
            let json: Rc<str> = chunk.json().into();
            let number = self.running.push(Rc::clone(&json));
            let session_id = &self.running.session_id;
            if self.context.audience.is_there(session_id) {
                let frame = self.running.frame_header(false).render_chunk(&json, number);
                self.context.audience.tell(session_id, &frame, None);
            }
        }
    }

    fn say_that_it_was_interrupted(&self) {
        let mut turn = self.turn.borrow_mut();
        turn.take_partial(
            "This answer was interrupted several times and could not be finished.".to_owned(),
            String::new(),
        );
    }
}
