//! Driving a turn: what the machine decides is done here. A thin loop around the
//! model, the tools and the log; between any two of its awaits the object may die,
//! and what is stored then is enough to go on.

use crate::chat::room::Room;
use std::cell::RefCell;
use std::pin::pin;
use std::rc::Rc;

use futures_util::stream::{self, FuturesUnordered};
use futures_util::{StreamExt as _, future};

use super::chunks::Chunk;
use super::ending::{gone, write};
use super::frames::outgoing::{TurnOutcome, render_failed};
use super::kit::{Kit, MAX_OUTPUT_BYTES};
use super::live::Running;
use super::recover::{MAX_RECOVERIES, TakenUp};
use super::retell::{retell, tell_outcome};
use super::speaker::Speaker;
use super::store::{save_turn, state_bytes};
use super::turn::{AskedCall, CallState, Ending, Next, Turn, kept_bytes};
use crate::base::budget::{Hold, TURNS};
use crate::base::error::{Code, Error, Result};
use crate::base::ids::Id;
use crate::context::compaction::fixed::tools_tokens;
use crate::context::tools::{Toolbox, is_ours};
use crate::context::working_context::build::{Window, WorkingContext, build_working_context};
use crate::log::find::find_seqs;
use crate::log::slices::MAX_EVENT_BYTES;
use crate::memory::Scope;
use crate::memory::frozen::{find_reminder, freeze};
use crate::models::call::{choose_model, open};
use crate::models::{FinishReason, ModelRequest, Part, Usage};
use crate::store::calibration;
use crate::store::config::{Config, load_config};

/// Events that a turn's context is built from, at most.
const CONTEXT_EVENTS: usize = 1_000;

/// Bytes of one answer of a model's: an event's, less what else an event holds.
const MAX_SAID_BYTES: usize = MAX_EVENT_BYTES - (64 << 10);

/// Bytes of what a model is sent: twice that is two thirds of what all turns may hold.
const MAX_SENT_BYTES: usize = 8 << 20;

/// How often, and how long each time, a turn waits for room for what it sends to
/// its model: half a minute in all.
const MAX_WAITS: usize = 30;
const WAIT_MS: i64 = 1_000;

/// Why a turn ended before its end.
enum Broken {
    Cancelled,
    Failed(Error),
}

impl From<Error> for Broken {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

/// One turn while it is driven.
struct Drive<'a> {
    room: Room<'a>,
    running: &'a Running,
    turn: RefCell<Turn>,
    speaker: RefCell<Speaker>,
}

/// Runs a turn that has just begun.
pub async fn run(room: Room<'_>, running: &Running, turn: Turn) {
    let (speaker, begun) = retell(&turn);
    let drive = Drive {
        room,
        running,
        speaker: RefCell::new(speaker),
        turn: RefCell::new(turn),
    };
    drive.tell(begun);
    let outcome = drive.go().await;
    drive.finish(outcome).await;
}

/// Goes on with a turn that was taken up, or closes it.
pub async fn go_on(room: Room<'_>, taken: TakenUp) {
    let TakenUp {
        running,
        turn,
        recoveries,
        speaker,
    } = taken;
    let drive = Drive {
        room,
        running: &running,
        speaker: RefCell::new(speaker),
        turn: RefCell::new(turn),
    };
    let outcome = if recoveries > MAX_RECOVERIES {
        drive.say_that_it_was_interrupted();
        Err(Broken::Failed(Error::new(
            Code::ModelFailed,
            "The turn was interrupted again and again and could not be finished. Ask once more.",
        )))
    } else {
        drive.go().await
    };
    drive.finish(outcome).await;
}

impl Drive<'_> {
    async fn go(&self) -> Result<Ending, Broken> {
        loop {
            let next = self.turn.borrow().next();
            match next {
                Next::AskModel => self.ask().await?,
                Next::RunTools(calls) => self.run_tools(&calls).await?,
                Next::Finish(ending) => return Ok(ending),
            }
        }
    }

    fn config(&self) -> Result<Config> {
        load_config(self.room.memory.db)
    }

    /// Asks the model and hears its answer out.
    async fn ask(&self) -> Result<(), Broken> {
        let config = self.config()?;
        let turn = self.turn.borrow().clone();
        let kit = self.kit(&config, &turn)?;
        let begun = self.speaker.borrow_mut().start_step();
        self.tell(begun);
        let mut heard = Heard::default();
        let outcome = self
            .running
            .unless_cancelled(self.hear(&config, &turn, &kit, &mut heard))
            .await;
        self.turn.borrow_mut().add_usage(heard.usage);
        if heard.usage.input_tokens > 0 {
            let reported = heard.usage.input_tokens;
            calibration::record(self.room.memory.db, heard.estimated, reported)?;
        }
        let broken = match outcome {
            Some(Ok(())) => None,
            Some(Err(error)) => Some(Broken::Failed(error)),
            None => Some(Broken::Cancelled),
        };
        if let Some(broken) = broken {
            self.turn
                .borrow_mut()
                .take_partial(heard.text, heard.reasoning);
            return Err(broken);
        }
        let host = self.room.memory.host;
        self.turn.borrow_mut().take_answer(
            heard.text,
            heard.reasoning,
            heard.calls,
            heard.finish_reason,
            &|name| kit.runner(name),
            &mut || Id::mint_approval(host).as_str().to_owned(),
        );
        let mut told = Vec::new();
        for call in self.turn.borrow_mut().newest_calls() {
            let mut speaker = self.speaker.borrow_mut();
            told.extend(tell_outcome(&mut speaker, call));
        }
        self.tell(told);
        Ok(())
    }

    fn kit<'b>(&'b self, config: &'b Config, turn: &'b Turn) -> Result<Kit<'b>> {
        let toolbox = Toolbox {
            memory: self.room.memory,
            config,
            session_id: Some(&turn.session_id),
            turn_id: Some(&turn.id),
            only_session: turn.only_session.as_ref(),
            writes_agent: turn.reach().writes_agent(),
        };
        Kit::load(toolbox, turn)
    }

    async fn hear(
        &self,
        config: &Config,
        turn: &Turn,
        kit: &Kit<'_>,
        heard: &mut Heard,
    ) -> Result<()> {
        let memory = &self.room.memory;
        let scope = Scope::Session(&turn.session_id);
        let mut instructions = Vec::new();
        let frozen = freeze(memory, scope).await?;
        if !frozen.prompt.is_empty() {
            instructions.push(frozen.prompt);
        }
        instructions.extend(config.system_instructions.iter().cloned());
        instructions.extend(turn.system_instructions.iter().cloned());
        instructions.extend(find_reminder(memory, scope).await?);
        let leaf_seq = match &turn.parent_id {
            Some(id) => {
                let found = find_seqs(memory.db, &turn.session_id, std::iter::once(id))?;
                Some(*found.get(id.as_str()).ok_or_else(gone)?)
            }
            None => None,
        };
        let named = turn.model.as_deref().or(config.model.as_deref());
        let choice = choose_model(memory.outside, named)?;
        let kept_bytes = state_bytes(turn) + kit.bytes();
        self.running.keeps(kept_bytes);
        let mut stream = {
            // Let go as soon as the model answers.
            let (context, _held) = self.build_context(turn, &instructions, leaf_seq).await?;
            let request = ModelRequest {
                system: &context.system_instructions,
                messages: &context.messages,
                tools: &kit.definitions,
                max_output_tokens: None,
            };
            heard.estimated = context.tokens_estimate + tools_tokens(&kit.definitions);
            open(memory.outside, &choice, &request, true).await?
        };
        while let Some(part) = stream.next().await? {
            if let Part::Failed(sentence) = part {
                return Err(Error::new(Code::ModelFailed, sentence));
            }
            let chunks = self.speaker.borrow_mut().say(&part);
            self.tell(chunks);
            heard.take(part);
            self.running.keeps(kept_bytes + heard.bytes());
            if self.running.is_over_limit() || heard.bytes() > MAX_SAID_BYTES {
                // What is kept of it has to fit an event.
                let end = heard.text.floor_char_boundary(MAX_SAID_BYTES);
                heard.text.truncate(end);
                return Err(Error::new(
                    Code::ModelFailed,
                    "The answer grew beyond what one turn may say and was stopped.",
                ));
            }
        }
        Ok(())
    }

    /// What the model is sent, and room for it. Where there is none it is let go
    /// and built anew when others may have been answered.
    async fn build_context(
        &self,
        turn: &Turn,
        instructions: &[String],
        leaf_seq: Option<i64>,
    ) -> Result<(WorkingContext, Hold)> {
        let memory = &self.room.memory;
        let mut tries = 0;
        loop {
            let window = Window {
                leaf_seq,
                limit: CONTEXT_EVENTS,
                system_instructions: instructions.to_vec(),
                added: turn.messages(),
            };
            let context = build_working_context(memory.db, &turn.session_id, window)?;
            let bytes = context.bytes();
            if bytes > MAX_SENT_BYTES {
                let what = "What the model would be sent";
                return Err(Error::payload_too_large(what, MAX_SENT_BYTES, bytes));
            }
            // Itself, and once more as the provider takes it.
            match Hold::take(&TURNS, 2 * bytes, "The turns that run") {
                Ok(held) => return Ok((context, held)),
                Err(error) if tries == MAX_WAITS => return Err(error),
                Err(_) => tries += 1,
            }
            drop(context);
            memory.outside.sleep(WAIT_MS).await;
        }
    }

    /// Makes calls side by side. Each result is stored before the next step.
    async fn run_tools(&self, calls: &[usize]) -> Result<(), Broken> {
        let config = self.config()?;
        self.turn.borrow_mut().start_calls(calls);
        // Before any is made: what may have taken effect is never made again.
        self.save()?;
        let turn = self.turn.borrow().clone();
        let kit = self.kit(&config, &turn)?;
        let newest = turn.steps.last().map_or(&[][..], |step| &step.calls);
        let make = |index: usize| {
            let call = newest.get(index);
            let (kit, turn) = (&kit, &turn);
            async move {
                match call {
                    Some(call) => Some((index, kit.run(turn, call).await)),
                    None => None,
                }
            }
        };
        let is_memorys = |index: &usize| {
            let call = newest.get(*index);
            call.is_some_and(|call| is_ours(call.name.as_str()))
        };
        // The memory's own are made one after the other, since two of them may
        // change the same text elsewhere.
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
            if let CallState::Done { output, .. } = &state {
                let bytes = kept_bytes(output);
                output_bytes += bytes;
                if output_bytes > MAX_OUTPUT_BYTES {
                    output_bytes -= bytes;
                    state = CallState::failed(format!(
                        "The tool's output is {bytes} bytes; the outputs of one turn may have {MAX_OUTPUT_BYTES} together."
                    ));
                }
            }
            let mut turn = self.turn.borrow_mut();
            turn.finish_call(index, state);
            let call = turn.newest_calls().get(index);
            let told = call.map(|call| tell_outcome(&mut self.speaker.borrow_mut(), call));
            drop(turn);
            self.tell(told.unwrap_or_default());
            if left > 0 {
                self.save()?;
            }
        }
        let ended = self.speaker.borrow_mut().finish_step();
        self.tell(ended);
        if self.turn.borrow().next() == Next::AskModel {
            self.save()?;
        }
        Ok(())
    }

    /// Stores the turn as it stands.
    fn save(&self) -> Result<()> {
        save_turn(self.room.memory.db, &self.turn.borrow())
    }

    /// Tells whoever listens.
    fn tell(&self, chunks: Vec<Chunk>) {
        for chunk in chunks {
            let json: Rc<str> = chunk.json().into();
            let number = self.running.push(Rc::clone(&json));
            let session_id = &self.running.session_id;
            if self.room.audience.is_there(session_id) {
                let frame = self.running.telling(false).render_chunk(&json, number);
                self.room.audience.tell(session_id, &frame, None);
            }
        }
    }

    fn say_that_it_was_interrupted(&self) {
        let mut turn = self.turn.borrow_mut();
        turn.take_partial(
            "This answer was interrupted again and again and could not be finished.".to_owned(),
            String::new(),
        );
    }

    /// Writes what the turn said, then says that it is over.
    async fn finish(self, outcome: Result<Ending, Broken>) {
        match outcome {
            Ok(_) => {}
            Err(Broken::Cancelled) => self.turn.borrow_mut().cancel(),
            Err(Broken::Failed(_)) => self.turn.borrow_mut().fail(),
        }
        let written = write(
            &self.room.memory,
            &self.turn.borrow(),
            self.running.is_cancelled(),
        );
        let mut speaker = self.speaker.borrow_mut();
        let (chunks, told) = match (&written, &outcome) {
            (Err(error), _) | (Ok(()), Err(Broken::Failed(error))) => {
                (speaker.fail(&error.message), TurnOutcome::Error)
            }
            (Ok(()), Err(Broken::Cancelled)) => (speaker.abort(None), TurnOutcome::Aborted),
            (Ok(()), Ok(Ending::Said(reason))) => {
                (speaker.finish(*reason, None), TurnOutcome::Completed)
            }
            (Ok(()), Ok(Ending::LeftToClient)) => (
                speaker.finish(FinishReason::ToolCalls, None),
                TurnOutcome::Completed,
            ),
            (Ok(()), Ok(Ending::StepLimit)) => {
                let steps = self.turn.borrow().max_steps;
                let error = Error::new(
                    Code::StepLimitReached,
                    format!(
                        "The turn was stopped after {steps} steps, which is its limit (`maxSteps`)."
                    ),
                );
                (speaker.fail(&error.message), TurnOutcome::Error)
            }
        };
        drop(speaker);
        let failed = match (&written, &outcome) {
            (Err(error), _) | (Ok(()), Err(Broken::Failed(error))) => Some(error.message.clone()),
            _ => None,
        };
        self.tell(chunks);
        let session_id = &self.running.session_id;
        if self.room.audience.is_there(session_id) {
            let frame = match failed {
                Some(sentence) => render_failed(
                    &self.running.request_id,
                    &sentence,
                    self.running.is_continuation,
                ),
                None => self.running.telling(false).render_done(told),
            };
            self.room.audience.tell(session_id, &frame, None);
        }
        self.running.keeps(0);
        self.room.desk.end(self.running, told);
    }
}

/// What a model has said so far in one answer.
#[derive(Default)]
struct Heard {
    text: String,
    reasoning: String,
    calls: Vec<AskedCall>,
    usage: Usage,
    /// Tokens that it was sent, by our own count.
    estimated: i64,
    finish_reason: FinishReason,
}

impl Heard {
    fn bytes(&self) -> usize {
        let calls = self.calls.iter().map(|call| call.arguments.len());
        self.text.len() + self.reasoning.len() + calls.sum::<usize>()
    }

    fn take(&mut self, part: Part) {
        match part {
            Part::Text(text) => self.text.push_str(&text),
            Part::Reasoning(text) => self.reasoning.push_str(&text),
            Part::Call {
                id,
                name,
                arguments,
                ..
            } => self.calls.push(AskedCall {
                id,
                name,
                arguments,
            }),
            Part::Usage(usage) => self.usage = usage,
            Part::Finish(reason) => self.finish_reason = reason,
            Part::CallStart { .. } | Part::CallDelta { .. } | Part::Failed(_) => {}
        }
    }
}
