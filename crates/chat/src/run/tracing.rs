//! The spans of a turn, as OpenTelemetry's conventions for generative AI name them. They are
//! created from the turn's record after the turn's end, so the steps from before a death of the
//! object are included. The ids of the parts' spans are derived from the turn's id, since calls
//! carry them before the spans exist.

use std::rc::Rc;

use crate::record::ended::EndedRecord;
use crate::record::{CompactionRecord, RecordedFailure, StepRecord, ToolKind, ToolRecord};
use crate::turn::report::TurnReport;
use crate::turn::{CallState, Turn, TurnCall};
use base::action::Role;
use base::json::{self, json};
use base::outbound::Outbound;
use base::trace::export::{MAX_CONTENT_BYTES, shows_content};
use base::trace::span::{Span, SpanKind, SpanQueue};
use base::trace::{Trace, current};
use memory::Memory;
use models::call::find_server;

/// The names of a turn's parts. The ids of their spans are derived from these names.
pub fn chat_part(step: usize) -> String {
    format!("chat {step}")
}

pub fn tool_part(step: usize, index: usize) -> String {
    format!("tool {step} {index}")
}

pub fn compaction_part(number: usize) -> String {
    format!("compaction {number}")
}

/// A part of the running task's trace.
pub fn part_of(name: &str) -> Option<Rc<Trace>> {
    current().map(|trace| Rc::new(trace.part(name)))
}

/// Passes the spans of an ended turn to the operator's receiver.
pub fn trace_turn(memory: &Memory<'_>, turn: &Turn, report: &TurnReport, record: &EndedRecord) {
    let (Some(queue), Some(trace)) = (memory.outbound.spans(), turn.record.find_trace()) else {
        return;
    };
    if !trace.is_sampled {
        return;
    }
    TurnSpans {
        queue,
        outbound: memory.outbound,
        agent: memory.agent,
        turn,
        trace,
        shows_content: shows_content(memory.outbound),
    }
    .push(report, record);
}

struct TurnSpans<'a> {
    queue: &'a SpanQueue,
    outbound: &'a dyn Outbound,
    agent: &'a str,
    turn: &'a Turn,
    trace: Trace,
    shows_content: bool,
}

impl TurnSpans<'_> {
    fn push(&self, report: &TurnReport, record: &EndedRecord) {
        // The record of a very long turn has only some of its entries.
        let steps = &self.turn.record.steps;
        for (number, step) in steps.iter().enumerate() {
            self.push_step(number, step);
        }
        for (number, compaction) in self.turn.record.compactions.iter().enumerate() {
            self.push_compaction(number, compaction);
        }
        let times = (self.turn.record.started_at, record.ended_at);
        let name = format!("invoke_agent {}", self.agent);
        let spent = &report.spent;
        let mut span = self
            .span(&self.trace, name, SpanKind::Internal, times)
            .text("gen_ai.operation.name", "invoke_agent")
            .maybe("gen_ai.request.model", spent.model.as_deref().map(bare))
            .text("gen_ai.provider.name", provider(spent.model.as_deref()))
            .maybe(
                "gen_ai.response.model",
                steps.last().and_then(|step| step.answered_by.as_deref()),
            )
            .number("gen_ai.usage.input_tokens", spent.input_tokens)
            .number("gen_ai.usage.output_tokens", spent.output_tokens)
            .number(
                "gen_ai.usage.cache_read.input_tokens",
                spent.cached_input_tokens,
            )
            .number("session_agent.turn.recoveries", record.turn.recoveries)
            .texts("gen_ai.response.finish_reasons", &[&finish_of(record)]);
        if spent.cost > 0.0 {
            span = span.real("session_agent.usage.cost", spent.cost);
        }
        self.queue.push(with_failure(span, record.failure.as_ref()));
    }

    fn push_step(&self, number: usize, step: &StepRecord) {
        let calls = self.calls_of(step);
        for (index, tool) in step.tools.iter().enumerate() {
            let call = calls.and_then(|calls| calls.get(index));
            self.push_tool(&self.trace.part(&tool_part(number, index)), tool, call);
        }
        let Some(model) = &step.model else {
            return;
        };
        let sent_at = step.started_at + step.prepared_ms;
        let times = (sent_at, step.started_at + step.duration_ms);
        let trace = self.trace.part(&chat_part(number));
        let mut span = self
            .span(
                &trace,
                format!("chat {}", bare(model)),
                SpanKind::Client,
                times,
            )
            .text("gen_ai.operation.name", "chat")
            .text("gen_ai.provider.name", provider(Some(model)))
            .text("gen_ai.request.model", bare(model))
            .maybe("gen_ai.response.model", step.answered_by.as_deref())
            .flag("gen_ai.request.stream", true)
            .number("gen_ai.usage.input_tokens", step.input_tokens)
            .number("gen_ai.usage.output_tokens", step.output_tokens)
            .number(
                "gen_ai.usage.cache_read.input_tokens",
                step.cached_input_tokens,
            )
            .number("session_agent.step.prepared_ms", step.prepared_ms);
        if let Some((host, port)) = find_server(self.outbound, model) {
            span = span
                .text("server.address", &host)
                .number("server.port", port);
        }
        if let Some(reason) = step.finish_reason {
            let reason = json::encode(&reason).unwrap_or_default();
            span = span.texts(
                "gen_ai.response.finish_reasons",
                &[reason.trim_matches('"')],
            );
        }
        if let Some(first_ms) = step.time_to_first_token_ms {
            span = span.real(
                "gen_ai.response.time_to_first_chunk",
                first_ms as f64 / 1_000.0,
            );
        }
        if let Some(context) = &step.context {
            span = span
                .number(
                    "session_agent.context.system_prompt_tokens",
                    context.system_prompt,
                )
                .number("session_agent.context.tools_tokens", context.tools)
                .number("session_agent.context.messages_tokens", context.messages)
                .number("session_agent.context.window_tokens", context.window_tokens)
                .number(
                    "session_agent.context.left_out_messages",
                    context.left_out_messages,
                );
        }
        if let (true, Some(answer)) = (self.shows_content, self.find_output(step)) {
            span = span.content("gen_ai.output.messages", &answer, MAX_CONTENT_BYTES);
        }
        self.queue.push(with_failure(span, step.failure.as_ref()));
    }

    fn push_tool(&self, trace: &Trace, tool: &ToolRecord, call: Option<&TurnCall>) {
        let Some(started_at) = tool.started_at else {
            return;
        };
        let times = (started_at, started_at + tool.duration_ms.unwrap_or(0));
        let kind = match tool.kind {
            ToolKind::Memory => "datastore",
            ToolKind::Mcp => "extension",
            ToolKind::Class | ToolKind::Client | ToolKind::Registered => "function",
        };
        let mut span = self
            .span(
                trace,
                format!("execute_tool {}", tool.name),
                SpanKind::Internal,
                times,
            )
            .text("gen_ai.operation.name", "execute_tool")
            .text("gen_ai.tool.name", &tool.name)
            .text("gen_ai.tool.call.id", &tool.tool_call_id)
            .text("gen_ai.tool.type", kind);
        if let (true, Some(call)) = (self.shows_content, call) {
            let arguments = call.arguments.as_str();
            span = span.content("gen_ai.tool.call.arguments", arguments, MAX_CONTENT_BYTES);
            if let CallState::Done { output, .. } = &call.state {
                span = span.content("gen_ai.tool.call.result", output, MAX_CONTENT_BYTES);
            }
        }
        self.queue.push(match &tool.error {
            Some(sentence) => span.failed("tool_failed", sentence),
            None => span,
        });
    }

    fn push_compaction(&self, number: usize, compaction: &CompactionRecord) {
        let CompactionRecord {
            started_at,
            duration_ms,
            ..
        } = *compaction;
        let trace = self.trace.part(&compaction_part(number));
        let times = (started_at, started_at + duration_ms);
        let mut span = self
            .span(&trace, "compact_context", SpanKind::Internal, times)
            .text("gen_ai.operation.name", "compact_context");
        for (name, tokens) in [
            (
                "session_agent.compaction.tokens_before",
                compaction.tokens_before,
            ),
            (
                "session_agent.compaction.tokens_after",
                compaction.tokens_after,
            ),
        ] {
            if let Some(tokens) = tokens {
                span = span.number(name, tokens);
            }
        }
        self.queue
            .push(with_failure(span, compaction.failure.as_ref()));
    }

    fn span(
        &self,
        trace: &Trace,
        name: impl Into<String>,
        kind: SpanKind,
        times: (i64, i64),
    ) -> Span {
        Span::new(trace, name, kind, times)
            .text("gen_ai.agent.name", self.agent)
            .text("gen_ai.conversation.id", self.turn.session_id.as_str())
    }

    /// The calls of a step: those of the turn's step that requested the same calls.
    fn calls_of(&self, step: &StepRecord) -> Option<&[TurnCall]> {
        let first = step.tools.first()?;
        let mut steps = self.turn.steps.iter().rev();
        let is_first = |call: &TurnCall| call.id.as_str() == first.tool_call_id;
        let found = steps.find(|step| step.calls.first().is_some_and(is_first));
        found.map(|step| step.calls.as_slice())
    }

    /// The model's text in a step, in the message format of the conventions.
    fn find_output(&self, step: &StepRecord) -> Option<String> {
        // The record has an entry for each request, and the turn a step for each answer.
        let answers = self.turn.record.steps.iter();
        let index = answers
            .filter(|other| other.model.is_some() && other.failure.is_none())
            .position(|other| std::ptr::eq(other, step))?;
        let answer = self
            .turn
            .steps
            .iter()
            .filter(|step| !step.is_logged)
            .nth(index)?;
        let mut parts = vec![json!({"type": "text", "content": answer.text})];
        for call in &answer.calls {
            let arguments = json::decode_tree(call.arguments.as_str()).ok();
            parts.push(json!({
                "type": "tool_call",
                "id": call.id.as_str(),
                "name": call.name.as_str(),
                "arguments": arguments,
            }));
        }
        Some(json::text(
            &json!([{"role": Role::Assistant.name(), "parts": parts}]),
        ))
    }
}

fn with_failure(span: Span, failure: Option<&RecordedFailure>) -> Span {
    match failure {
        Some(failure) => span.failed(&failure.code, &failure.message),
        None => span,
    }
}

fn finish_of(record: &EndedRecord) -> String {
    let reason = json::encode(&record.finish_reason).unwrap_or_default();
    reason.trim_matches('"').to_owned()
}

/// A model's name without its provider.
fn bare(model: &str) -> &str {
    model.split_once(':').map_or(model, |(_, name)| name)
}

/// The provider, under the conventions' name if they have one.
fn provider(model: Option<&str>) -> &str {
    let model = model.unwrap_or_default();
    match model
        .split_once(':')
        .map_or(model, |(provider, _)| provider)
    {
        "openai" => "openai",
        "anthropic" => "anthropic",
        "workers-ai" => "cloudflare.workers_ai",
        _ => "session_agent",
    }
}
