//! Calls of models with scripted answers: transports, keys, retries and failures.

use serde_json::json;

use crate::call::{CompletedCall, choose_model, complete, has_responses, open};
use crate::choice::{ModelName, choose};
use crate::message::ContextMessage;
use crate::{AnswerPart, ModelRequest};
use base::action::Role;
use base::error::Result;
use base::outbound::{CallFailure, Endpoint};
use base::testing::{Script, ScriptedAnswer, wait_for};

const TEXT: &str = "data: {\"choices\":[{\"delta\":{\"content\":\"Hi\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";
const OVERLOADED: &str = "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"usage\":{\"input_tokens\":1}}}\n\nevent: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\"}}\n\n";

fn script(settings: &[(&str, &str)], answers: Vec<ScriptedAnswer>) -> Script {
    let script = Script::default();
    for (name, value) in settings {
        let mut settings = script.settings.borrow_mut();
        settings.insert((*name).to_owned(), (*value).to_owned());
    }
    for answer in answers {
        script.answer(Ok(answer));
    }
    script
}

fn ask(script: &Script, model: Option<&str>) -> Result<Vec<AnswerPart>> {
    let messages = [ContextMessage::of_text(Role::User, "Hello".to_owned())];
    let request = ModelRequest {
        system: &[],
        messages: &messages,
        tools: &[],
        ..ModelRequest::default()
    };
    let choice = choose(model, None, true)?;
    wait_for(async {
        let mut stream = open(script, &choice, &request, true).await?;
        let mut parts = Vec::new();
        while let Some(part) = stream.next().await? {
            parts.push(part);
        }
        Ok(parts)
    })
}

fn hi() -> Vec<AnswerPart> {
    vec![
        AnswerPart::Text("Hi".to_owned()),
        AnswerPart::Finish(crate::FinishReason::Stop),
    ]
}

const KEY: &[(&str, &str)] = &[("OPENAI_API_KEY", "k"), ("ANTHROPIC_API_KEY", "k")];

#[test]
fn the_workers_model_applies_if_the_agent_has_none() {
    let outbound = script(&[("MODEL", "anthropic:claude")], vec![]);
    let chosen = |model| choose_model(&outbound, model).unwrap().name.to_string();
    assert_eq!(chosen(None), "anthropic:claude");
    assert_eq!(chosen(Some("demo")), "demo");
    let outbound = script(&[], vec![]);
    assert_eq!(choose_model(&outbound, None).unwrap().name, ModelName::Demo);
    outbound.bindings.borrow_mut().push("AI".to_owned());
    let choice = choose_model(&outbound, None).unwrap();
    assert!(choice.is_default && choice.name.served().is_some());
}

#[test]
fn openai_is_called_with_its_url_and_key() {
    let outbound = script(KEY, vec![ScriptedAnswer::stream(TEXT)]);
    assert_eq!(ask(&outbound, Some("openai:gpt-4o")), Ok(hi()));
    let calls = outbound.calls.borrow();
    let url = "https://api.openai.com/v1/chat/completions".to_owned();
    assert_eq!(calls[0].endpoint, Endpoint::Url(url));
    assert_eq!(
        calls[0].headers,
        [("authorization".to_owned(), "Bearer k".to_owned())]
    );
    assert_eq!(calls[0].limits.silence_ms, 60_000);
}

#[test]
fn a_custom_server_needs_no_key() {
    let settings = [("OPENAI_BASE_URL", "http://127.0.0.1:8080/v1")];
    let outbound = script(&settings, vec![ScriptedAnswer::stream(TEXT)]);
    assert_eq!(ask(&outbound, Some("openai:smol")), Ok(hi()));
    assert!(outbound.calls.borrow()[0].headers.is_empty());
}

#[test]
fn a_missing_key_is_reported_before_any_call() {
    for (model, binding) in [
        ("anthropic:claude", "ANTHROPIC_API_KEY"),
        ("openai:gpt", "OPENAI_API_KEY"),
    ] {
        let outbound = script(&[], vec![]);
        let error = ask(&outbound, Some(model)).unwrap_err();
        assert_eq!(error.code.name(), "not_configured");
        assert_eq!(error.details()["binding"], binding);
        assert!(outbound.calls.borrow().is_empty());
    }
}

#[test]
fn workers_ai_is_the_default_and_the_demo_locally() {
    let body = json!({"response": "Hi"});
    let outbound = script(&[], vec![ScriptedAnswer::json(&body).unwrap()]);
    assert_eq!(ask(&outbound, None), Ok(hi()));
    let (model, input) = outbound.ai_calls.borrow()[0].clone();
    assert_eq!(model, crate::choice::DEFAULT_WORKERS_AI_MODEL);
    assert!(input.contains(r#""stream":true"#));

    let remote_only = || CallFailure::RemoteOnly {
        binding: "AI".to_owned(),
    };
    let outbound = script(&[], vec![]);
    outbound.answer(Err(remote_only()));
    let parts = ask(&outbound, None).unwrap();
    assert!(parts.len() > 5 && matches!(parts.last(), Some(AnswerPart::Finish(_))));

    // One that was named does not.
    let outbound = script(&[], vec![]);
    outbound.answer(Err(remote_only()));
    let error = ask(&outbound, Some("workers-ai:@cf/x")).unwrap_err();
    assert_eq!(error.code.name(), "not_configured");
    assert_eq!(error.details()["binding"], "AI");
}

#[test]
fn an_overloaded_model_is_retried_with_growing_delays() {
    let outbound = script(
        KEY,
        vec![
            ScriptedAnswer::text(429, ""),
            ScriptedAnswer::text(503, ""),
            ScriptedAnswer::stream(TEXT),
        ],
    );
    assert_eq!(ask(&outbound, Some("openai:gpt")), Ok(hi()));
    assert_eq!(*outbound.pauses_ms.borrow(), [500, 1000]);
}

#[test]
fn an_overloaded_error_follows_three_attempts() {
    let outbound = script(
        KEY,
        vec![
            ScriptedAnswer::text(529, ""),
            ScriptedAnswer::text(529, ""),
            ScriptedAnswer::text(529, ""),
            ScriptedAnswer::stream(TEXT),
        ],
    );
    let error = ask(&outbound, Some("anthropic:claude")).unwrap_err();
    assert_eq!(error.code.name(), "model_overloaded");
    assert_eq!(outbound.calls.borrow().len(), 3);
}

#[test]
fn the_providers_retry_after_is_used_up_to_a_limit() {
    let answers = || vec![ScriptedAnswer::text(429, ""), ScriptedAnswer::stream(TEXT)];
    let outbound = script(KEY, answers());
    *outbound.retry_after.borrow_mut() = Some(10);
    assert_eq!(ask(&outbound, Some("openai:gpt")), Ok(hi()));
    assert_eq!(*outbound.pauses_ms.borrow(), [10_000]);

    let outbound = script(KEY, answers());
    *outbound.retry_after.borrow_mut() = Some(11);
    let error = ask(&outbound, Some("openai:gpt")).unwrap_err();
    assert_eq!(error.details()["retryAfter"], 11);
    assert!(outbound.pauses_ms.borrow().is_empty());
}

#[test]
fn an_overload_inside_a_200_stream_is_retried_before_the_first_token() {
    let text = "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"Hi\"}}\n\nevent: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"}}\n\n";
    let outbound = script(
        KEY,
        vec![
            ScriptedAnswer::stream(OVERLOADED),
            ScriptedAnswer::stream(text),
        ],
    );
    assert_eq!(ask(&outbound, Some("anthropic:claude")), Ok(hi()));

    // After the first token there is no retry, so no text is repeated.
    let late = text.split("event: message_delta").next().unwrap();
    let late = format!("{late}{OVERLOADED}");
    let outbound = script(
        KEY,
        vec![ScriptedAnswer::stream(&late), ScriptedAnswer::stream(text)],
    );
    let parts = ask(&outbound, Some("anthropic:claude")).unwrap();
    assert_eq!(parts[0], AnswerPart::Text("Hi".to_owned()));
    assert!(matches!(parts.last(), Some(AnswerPart::Failed(_))));
    assert_eq!(outbound.calls.borrow().len(), 1);

    let outbound = script(
        KEY,
        (0..3).map(|_| ScriptedAnswer::stream(OVERLOADED)).collect(),
    );
    let error = ask(&outbound, Some("anthropic:claude")).unwrap_err();
    assert_eq!(error.code.name(), "model_overloaded");
}

#[test]
fn only_an_overload_is_retried() {
    for answer in [
        Ok(ScriptedAnswer::text(400, "")),
        Ok(ScriptedAnswer::text(500, "")),
        Ok(ScriptedAnswer::text(500, "AiError: 3036: used up")),
        Ok(ScriptedAnswer::text(302, "")),
        Err(CallFailure::TimedOut { silence_ms: 60_000 }),
        Err(CallFailure::Unreachable {
            cause: "hunter2".to_owned(),
        }),
    ] {
        let outbound = script(KEY, vec![]);
        outbound.answer(answer);
        outbound.answer(Ok(ScriptedAnswer::stream(TEXT)));
        let error = ask(&outbound, Some("workers-ai:@cf/x")).unwrap_err();
        assert!(error.code.name().starts_with("model_"), "{error:?}");
        assert!(!error.body().contains("hunter2"));
        assert_eq!(outbound.ai_calls.borrow().len(), 1);
    }
}

#[test]
fn a_full_queue_is_rate_limited() {
    let script = script(&[], Vec::new());
    script.answer(Err(CallFailure::Overloaded));
    let error = ask(&script, Some("workers-ai:@cf/m")).unwrap_err();
    assert_eq!(error.code.name(), "rate_limited");
    assert_eq!(error.details()["retryAfter"], 5);
    assert!(script.pauses_ms.borrow().is_empty());
}

#[test]
fn a_connection_lost_midway_is_an_error_after_the_partial_text() {
    let mut stream =
        ScriptedAnswer::stream("data: {\"choices\":[{\"delta\":{\"content\":\"Hi\"}}]}\n\n");
    stream
        .chunks
        .push(Err(CallFailure::TimedOut { silence_ms: 60_000 }));
    let outbound = script(KEY, vec![stream]);
    let messages = [];
    let request = ModelRequest {
        system: &[],
        messages: &messages,
        tools: &[],
        ..ModelRequest::default()
    };
    let choice = choose(Some("openai:gpt"), None, false).unwrap();
    wait_for(async {
        let mut stream = open(&outbound, &choice, &request, true).await.unwrap();
        assert_eq!(
            stream.next().await,
            Ok(Some(AnswerPart::Text("Hi".to_owned())))
        );
        let error = stream.next().await.unwrap_err();
        assert_eq!(error.code.name(), "model_failed");
        assert!(error.message.contains("60 s"));
        assert_eq!(stream.next().await, Ok(None));
    });
}

#[test]
fn an_answer_is_complete_or_an_error() {
    let request = ModelRequest {
        system: &[],
        messages: &[],
        tools: &[],
        max_output_tokens: Some(10),
        ..ModelRequest::default()
    };
    let choice = choose(Some("openai:gpt"), None, false).unwrap();
    let answer = json!({"choices": [{"message": {"content": "A summary."}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 3, "completion_tokens": 2}});
    let outbound = script(
        KEY,
        vec![
            ScriptedAnswer::json(&answer).unwrap(),
            ScriptedAnswer::stream("data: {}\n\n"),
        ],
    );
    let mut call = CompletedCall::default();
    let text = wait_for(complete(&outbound, &choice, &request, &mut call)).unwrap();
    assert_eq!((text.as_str(), call.usage.output_tokens), ("A summary.", 2));
    assert_eq!(call.model.as_deref(), Some("openai:gpt"));
    let error = wait_for(complete(&outbound, &choice, &request, &mut call)).unwrap_err();
    assert_eq!(error.code.name(), "model_failed");
}

#[test]
fn openai_uses_responses_and_others_only_if_configured() {
    for (settings, expected) in [
        (&[][..], Some(true)),
        (
            &[("OPENAI_BASE_URL", "https://api.openai.com/v1")],
            Some(true),
        ),
        (
            &[("OPENAI_BASE_URL", "https://api.openai.com.example/v1")],
            Some(false),
        ),
        (
            &[("OPENAI_BASE_URL", "http://localhost:11434/v1")],
            Some(false),
        ),
        (
            &[
                ("OPENAI_BASE_URL", "http://localhost:1/v1"),
                ("OPENAI_API", "responses"),
            ],
            Some(true),
        ),
        (&[("OPENAI_API", "chat-completions")], Some(false)),
        (&[("OPENAI_API", "")], Some(true)),
        (&[("OPENAI_API", "Responses")], None),
    ] {
        let outbound = script(settings, vec![]);
        assert_eq!(has_responses(&outbound).ok(), expected, "{settings:?}");
    }
}
