//! The trace of a turn: the headers of its calls, and its spans.

use std::rc::Rc;

use serde_json::{Value, json};

use crate::Alice;
use crate::chat::turns::{calls, define, text_answer, user};
use base::settings::Setting;
use base::testing::{ScriptedAnswer, wait_for};
use base::trace::export::{make_queue, send_spans};
use base::trace::header::{parse_parent, render_hex};
use base::trace::span::{MAX_WAITING, Span, SpanKind, SpanQueue};
use base::trace::{Trace, run_in};

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const CALLER: &str = "00f067aa0ba902b7";

impl Alice {
    /// An agent whose spans are sent to a collector.
    fn with_collector() -> Self {
        let alice = Self::with_model();
        alice.set(Setting::OtelEndpoint, "https://otel.example/");
        let queue = make_queue(&alice.outbound).unwrap();
        assert!(alice.outbound.spans.set(queue).is_ok());
        alice
    }

    fn set(&self, setting: Setting, value: &str) {
        let name = setting.name().to_owned();
        self.outbound
            .settings
            .borrow_mut()
            .insert(name, value.to_owned());
    }

    fn spans(&self) -> &SpanQueue {
        self.outbound.spans.get().unwrap()
    }

    fn trace_of(&self, flags: &str) -> Rc<Trace> {
        let header = format!("00-{TRACE}-{CALLER}-{flags}");
        let parent = parse_parent(Some(&header), Some("vendor=1"));
        Rc::new(
            Trace::of_request(
                parent,
                self.outbound.spans.get().map(|spans| spans.sampler),
                &self.host,
            )
            .unwrap(),
        )
    }

    /// Runs a turn whose request carried a trace.
    fn chat_text_in(&self, trace: &Rc<Trace>, text: &str) {
        let body = json!({"id": "s", "message": user(text)});
        let call = async { self.begin(&body).unwrap() };
        let started = wait_for(run_in(Some(Rc::clone(trace)), call));
        self.run_work(started.work.unwrap());
    }

    fn header(&self, call: usize, name: &str) -> Option<String> {
        let calls = self.outbound.calls.borrow();
        let mut headers = calls[call].headers.iter();
        headers
            .find(|(known, _)| known == name)
            .map(|(_, value)| value.clone())
    }
}

fn attribute(span: &Span, name: &str) -> String {
    let found = span.attributes.iter().find(|(known, _)| *known == name);
    format!("{:?}", found.map(|(_, value)| value))
}

fn find<'a>(spans: &'a [Span], name: &str) -> &'a Span {
    let names: Vec<&String> = spans.iter().map(|span| &span.name).collect();
    let found = spans.iter().find(|span| span.name == name);
    found.unwrap_or_else(|| panic!("{name} in {names:?}"))
}

#[test]
fn a_turn_and_its_calls_are_in_the_callers_trace() {
    let alice = Alice::with_collector();
    define(&alice, "weather", false);
    alice
        .outbound
        .answer(calls(&[("c1", "weather", json!({"city": "Atlantis"}))]));
    alice
        .outbound
        .answer(Ok(ScriptedAnswer::text(200, "It sank in Atlantis")));
    alice.outbound.answer(text_answer("It sank."));
    let request = alice.trace_of("01");
    alice.chat_text_in(&request, "How is Atlantis?");
    let parents: Vec<String> = (0..3)
        .map(|call| {
            let header = alice.header(call, "traceparent").unwrap();
            assert!(header.starts_with(&format!("00-{TRACE}-")) && header.ends_with("-01"));
            assert_eq!(
                alice.header(call, "tracestate").as_deref(),
                Some("vendor=1")
            );
            header
        })
        .collect();
    assert!(parents[0] != parents[1] && parents[1] != parents[2] && parents[0] != parents[2]);
    let spans = alice.spans().take_batch();
    let names: Vec<&str> = spans.iter().map(|span| span.name.as_str()).collect();
    assert_eq!(
        names,
        [
            "execute_tool weather",
            "chat m",
            "chat m",
            "invoke_agent alice"
        ]
    );
    let turn = find(&spans, "invoke_agent alice");
    assert_eq!(
        (turn.parent, turn.kind),
        (Some(request.span), SpanKind::Internal)
    );
    let spent = &alice.turns("s")[0]["usage"]["outputTokens"];
    assert_eq!(
        attribute(turn, "gen_ai.usage.output_tokens"),
        format!("Some(Number({spent}))")
    );
    assert_eq!(
        attribute(turn, "gen_ai.conversation.id"),
        "Some(Text(\"s\"))"
    );
    for span in &spans {
        assert_eq!(render_hex(&span.trace_id.0), TRACE);
        assert!(std::ptr::eq(span, turn) || span.parent == Some(turn.id));
        assert!(!format!("{span:?}").contains("Atlantis"), "{span:?}");
    }
    let chat = find(&spans, "chat m");
    assert_eq!(
        attribute(chat, "gen_ai.provider.name"),
        "Some(Text(\"openai\"))"
    );
    let tool = find(&spans, "execute_tool weather");
    assert_eq!(attribute(tool, "gen_ai.tool.call.id"), "Some(Text(\"c1\"))");
    let reply = &alice.turns("s")[0];
    assert_eq!(reply["traceId"], TRACE);
}

#[test]
fn a_model_span_names_the_model_and_its_server() {
    let alice = Alice::with_collector();
    alice.set(Setting::OpenAiBaseUrl, "https://models.example:8443/v1");
    let chunk = json!({"model": "m-2026-01-01", "choices": [{"delta": {"content": "Yes."}}]});
    let end =
        json!({"model": "m-2026-01-01", "choices": [{"delta": {}, "finish_reason": "length"}]});
    let answer = format!("data: {chunk}\n\ndata: {end}\n\ndata: [DONE]\n\n");
    alice.outbound.answer(Ok(ScriptedAnswer::stream(&answer)));
    alice.chat_text_in(&alice.trace_of("01"), "hi");
    let spans = alice.spans().take_batch();
    for name in ["chat m", "invoke_agent alice"] {
        let span = find(&spans, name);
        let reply = |attribute_name| attribute(span, attribute_name);
        assert_eq!(reply("gen_ai.request.model"), "Some(Text(\"m\"))");
        assert_eq!(
            reply("gen_ai.response.model"),
            "Some(Text(\"m-2026-01-01\"))"
        );
        assert_eq!(
            reply("gen_ai.response.finish_reasons"),
            "Some(Texts([\"length\"]))"
        );
    }
    let chat = find(&spans, "chat m");
    assert_eq!(
        attribute(chat, "server.address"),
        "Some(Text(\"models.example\"))"
    );
    assert_eq!(attribute(chat, "server.port"), "Some(Number(8443))");
    assert_eq!(
        alice.turns("s")[0]["steps"][0]["answeredBy"],
        "m-2026-01-01"
    );
}

#[test]
fn a_memory_span_names_its_block_and_entry() {
    let alice = Alice::with_collector();
    let trace = alice.trace_of("01");
    let spans_of = |operation: &str, body: Value| {
        let call = async { alice.ok(operation, body) };
        wait_for(run_in(Some(Rc::clone(&trace)), call));
        let noted = alice.spans().take_recorded(trace.span);
        let named = noted.iter().map(|(name, value)| {
            let name = name.strip_prefix("gen_ai.memory.").unwrap();
            format!("{name}={value:?}")
        });
        named.collect::<Vec<_>>().join(" ")
    };
    let answer = spans_of(
        "defineBlock",
        json!({"label": "facts", "kind": "searchable"}),
    );
    assert_eq!(answer, "store.id=Text(\"facts\")");
    let entry = json!({"label": "facts", "key": "tea", "content": "Alice likes tea."});
    let one = "store.id=Text(\"facts\") record.id=Text(\"tea\") record.count=Number(1)";
    assert_eq!(spans_of("setEntry", entry), one);
    let answer = spans_of("searchContext", json!({"label": "facts", "query": "tea"}));
    assert_eq!(answer, "store.id=Text(\"facts\") record.count=Number(1)");
    assert_eq!(
        spans_of("search", json!({"query": "tea"})),
        "record.count=Number(0)"
    );
    assert_eq!(
        spans_of("deleteEntry", json!({"label": "facts", "key": "tea"})),
        one
    );
    assert_eq!(spans_of("listSessions", json!({})), "");
    // Without a recorded trace, no span is noted.
    alice.ok("removeBlock", json!({"label": "facts"}));
    assert!(alice.spans().take_recorded(trace.span).is_empty());
}

#[test]
fn an_mcp_message_carries_its_calls_span() {
    let alice = Alice::with_collector();
    let tools = json!([{"name": "a", "description": "A.", "inputSchema": {"type": "object"}}]);
    alice
        .define_server(&tools, &json!({"needsApproval": false}))
        .unwrap();
    // Without a trace, a message contains none.
    for call in alice.outbound.calls.borrow().iter() {
        assert!(!call.body.contains("_meta"), "{}", call.body);
    }
    alice.outbound.answer(calls(&[("c1", "gh_a", json!({}))]));
    let done = json!({"jsonrpc": "2.0", "id": 1, "result": {"content": []}});
    alice.outbound.answer(ScriptedAnswer::json(&done));
    alice.outbound.answer(text_answer("Done."));
    alice.chat_text_in(&alice.trace_of("01"), "go");
    let body: Value = {
        let calls = alice.outbound.calls.borrow();
        let mut sent = calls.iter().filter(|call| call.body.contains("tools/call"));
        serde_json::from_str(&sent.next().unwrap().body).unwrap()
    };
    let spans = alice.spans().take_batch();
    let tool = find(&spans, "execute_tool gh_a");
    let span = render_hex(&tool.id.0);
    assert_eq!(
        body["params"]["_meta"],
        json!({"traceparent": format!("00-{TRACE}-{span}-01"), "tracestate": "vendor=1"})
    );
    assert_eq!(body["params"]["name"], "a");
}

#[test]
fn content_is_recorded_only_if_enabled_and_then_bounded() {
    let alice = Alice::with_collector();
    alice.set(Setting::OtelCaptureContent, "true");
    define(&alice, "weather", false);
    alice
        .outbound
        .answer(calls(&[("c1", "weather", json!({"city": "Atlantis"}))]));
    let long = "It sank. ".repeat(10_000);
    alice.outbound.answer(Ok(ScriptedAnswer::text(200, &long)));
    alice.outbound.answer(text_answer("It sank."));
    alice.chat_text_in(&alice.trace_of("01"), "How is Atlantis?");
    let spans = alice.spans().take_batch();
    let tool = find(&spans, "execute_tool weather");
    assert!(attribute(tool, "gen_ai.tool.call.arguments").contains("Atlantis"));
    let result = attribute(tool, "gen_ai.tool.call.result");
    assert!(result.contains("It sank.") && result.len() < 9_000);
    let answers: Vec<String> = spans
        .iter()
        .filter(|span| span.name == "chat m")
        .map(|span| attribute(span, "gen_ai.output.messages"))
        .collect();
    assert!(answers[0].contains("tool_call") && answers[1].contains("It sank."));
}

#[test]
fn an_unsampled_trace_is_propagated_without_spans() {
    let alice = Alice::with_collector();
    alice.outbound.answer(text_answer("Yes."));
    alice.chat_text_in(&alice.trace_of("00"), "hi");
    assert!(alice.header(0, "traceparent").unwrap().ends_with("-00"));
    assert!(alice.spans().is_empty());
    // Without a collector, a trace is still propagated.
    let alice = Alice::with_model();
    alice.outbound.answer(text_answer("Yes."));
    alice.chat_text_in(&alice.trace_of("01"), "hi");
    assert!(alice.header(0, "traceparent").unwrap().ends_with("-01"));
    // Without a trace, none is propagated.
    alice.outbound.answer(text_answer("Yes."));
    alice.chat_text("hello");
    assert_eq!(alice.header(1, "traceparent"), None);
}

#[test]
fn a_resumed_turn_stays_in_its_trace() {
    let mut alice = Alice::with_collector();
    let body = json!({"id": "s", "message": user("Go.")});
    let request = alice.trace_of("01");
    let call = async { drop(alice.begin(&body).unwrap()) };
    wait_for(run_in(Some(Rc::clone(&request)), call));
    alice.crash();
    for work in alice.recover(&alice.db).works {
        alice.outbound.answer(text_answer("Here."));
        alice.run_work(work);
    }
    assert!(alice.header(0, "traceparent").unwrap().contains(TRACE));
    let spans = alice.spans().take_batch();
    let turn = find(&spans, "invoke_agent alice");
    assert_eq!(turn.parent, Some(request.span));
    assert_eq!(
        attribute(turn, "session_agent.turn.recoveries"),
        "Some(Number(1))"
    );
    assert_eq!(alice.turns("s")[0]["traceId"], TRACE);
}

#[test]
fn a_failed_turn_has_an_error_span() {
    let alice = Alice::with_collector();
    alice.chat_text_in(&alice.trace_of("01"), "hi");
    let spans = alice.spans().take_batch();
    for name in ["invoke_agent alice", "chat m"] {
        let (code, sentence) = find(&spans, name).failure.clone().unwrap();
        assert_eq!(code, "model_failed");
        assert!(sentence.contains("could not be reached"), "{sentence}");
    }
}

#[test]
fn spans_are_sent_only_to_the_collector_with_its_headers() {
    let alice = Alice::with_collector();
    alice.set(Setting::OtelHeaders, "authorization=Bearer%20k");
    alice.set(Setting::OtelServiceName, "memory");
    alice.outbound.answer(text_answer("Yes."));
    alice.chat_text_in(&alice.trace_of("01"), "hi");
    alice.outbound.answer(Ok(ScriptedAnswer::text(200, "{}")));
    wait_for(send_spans(&alice.outbound, alice.spans(), &alice.host));
    let calls = alice.outbound.calls.borrow();
    let sent = calls.last().unwrap();
    let place = format!("{:?}", sent.endpoint);
    assert!(place.contains("https://otel.example/v1/traces"), "{place}");
    let headers: Vec<&str> = sent.headers.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(headers, ["authorization"], "the request is in no trace");
    let body: Value = serde_json::from_str(&sent.body).unwrap();
    let resource = &body["resourceSpans"][0];
    assert_eq!(
        resource["resource"]["attributes"][0]["value"]["stringValue"],
        "memory"
    );
    assert_eq!(
        resource["scopeSpans"][0]["spans"].as_array().unwrap().len(),
        2
    );
    assert!(alice.spans().is_empty());
}

#[test]
fn a_failing_collector_is_paused_and_loses_spans() {
    let alice = Alice::with_collector();
    let span = || Span::new(&alice.trace_of("01"), "x", SpanKind::Internal, (0, 1));
    let send = || wait_for(send_spans(&alice.outbound, alice.spans(), &alice.host));
    let count_calls = || alice.outbound.calls.borrow().len();
    alice.spans().push(span());
    alice
        .outbound
        .answer(Ok(ScriptedAnswer::text(503, "later")));
    send();
    assert_eq!((count_calls(), alice.spans().is_empty()), (1, true));
    alice.spans().push(span());
    send();
    assert_eq!((count_calls(), alice.spans().is_empty()), (1, true));
    alice.host.advance(5_001);
    alice.spans().push(span());
    alice.outbound.answer(Ok(ScriptedAnswer::text(200, "")));
    send();
    assert_eq!(count_calls(), 2);
    // The collector may request a longer pause, up to a limit.
    for (retry_after_s, rests_ms) in [(60, 60_000), (i64::MAX, 300_000)] {
        alice.spans().push(span());
        alice.outbound.retry_after.replace(Some(retry_after_s));
        alice.outbound.answer(Ok(ScriptedAnswer::text(429, "")));
        send();
        let before = count_calls();
        alice.host.advance(rests_ms - 1);
        alice.spans().push(span());
        send();
        assert_eq!(count_calls(), before);
        alice.host.advance(1);
        alice.spans().push(span());
        alice.outbound.answer(Ok(ScriptedAnswer::text(200, "")));
        send();
        assert_eq!(count_calls(), before + 1);
    }
    for _ in 0..MAX_WAITING + 3 {
        alice.spans().push(span());
    }
    assert_eq!(alice.spans().dropped(), 3);
}

#[test]
fn without_a_collector_or_a_known_sampler_nothing_is_recorded() {
    let alice = Alice::with_model();
    assert!(make_queue(&alice.outbound).is_none());
    for address in ["otel.example", "ftp://otel.example", "javascript:1"] {
        alice.set(Setting::OtelEndpoint, address);
        assert!(make_queue(&alice.outbound).is_none(), "{address}");
    }
    alice.set(Setting::OtelEndpoint, "http://127.0.0.1:4318");
    assert!(make_queue(&alice.outbound).is_some());
    alice.set(Setting::OtelTracesSampler, "sometimes");
    assert!(make_queue(&alice.outbound).is_none());
    alice.set(Setting::OtelTracesSampler, "always_off");
    let queue = make_queue(&alice.outbound).unwrap();
    let trace = Trace::of_request(None, Some(queue.sampler), &alice.host).unwrap();
    assert!(!trace.is_sampled);
}
