use super::*;
use serde_json::{Value, json};

fn parse(frame: Value) -> Incoming {
    parse_frame(&frame.to_string())
}

fn chat_frame(body: &str) -> Value {
    json!({"type": "cf_agent_use_chat_request", "id": "r1", "init": {"method": "POST", "body": body}})
}

fn refused(incoming: Incoming) -> Value {
    let Incoming::Refused(frame) = incoming else {
        panic!("refused: {incoming:?}")
    };
    serde_json::from_str(&frame).unwrap()
}

#[test]
fn a_chat_request_carries_its_body_as_text() {
    let body = r#"{"messages":[{"id":"u1","role":"user","parts":[]}],"trigger":"submit-message"}"#;
    let Incoming::Chat { id, request } = parse(chat_frame(body)) else {
        panic!("a request")
    };
    assert_eq!(id, "r1");
    assert_eq!(request.messages.len(), 1);
}

#[test]
fn an_invalid_request_is_refused_under_its_id() {
    let error = refused(parse(chat_frame("{")));
    assert_eq!(
        error,
        json!({"type": "cf_agent_use_chat_response", "id": "r1", "done": true, "error": true,
            "outcome": "error", "body": "The body is not valid JSON: line 1, column 1."})
    );
    for init in [
        json!({"method": "GET"}),
        json!({"method": "POST"}),
        json!(null),
        json!(5),
    ] {
        let frame = json!({"type": "cf_agent_use_chat_request", "id": "r1", "init": init});
        assert_eq!(refused(parse(frame))["error"], true);
    }
}

#[test]
fn an_rpc_frame_calls_an_operation_with_one_object() {
    let input = |args: Value| match parse(
        json!({"type": "rpc", "id": "1", "method": "getSession", "args": args}),
    ) {
        Incoming::Rpc {
            id,
            operation,
            input,
        } => {
            assert_eq!((id.as_str(), operation.as_str()), ("1", "getSession"));
            input
        }
        other => panic!("a call: {other:?}"),
    };
    assert_eq!(input(json!([{"sessionId": "s"}])), r#"{"sessionId":"s"}"#);
    assert_eq!(input(json!([])), "{}");
    assert_eq!(input(json!([null])), "{}");
    // The operation decides whether the argument must be an object.
    assert_eq!(input(json!(["s"])), r#""s""#);
}

#[test]
fn an_invalid_call_is_refused_under_its_id() {
    for frame in [
        json!({"type": "rpc", "id": "1", "args": []}),
        json!({"type": "rpc", "id": "1", "method": 5, "args": []}),
        json!({"type": "rpc", "id": "1", "method": "m", "args": {}}),
        json!({"type": "rpc", "id": "1", "method": "m", "args": [{}, {}]}),
    ] {
        let error = refused(parse(frame));
        assert_eq!(error["success"], false);
        assert_eq!(error["id"], "1");
        assert_eq!(error["code"], "invalid_request");
        assert!(error["error"].is_string());
    }
}

#[test]
fn a_tool_result_is_an_answer() {
    let frame = json!({"type": "cf_agent_tool_result", "toolCallId": "c1", "toolName": "place",
        "output": {"city": "Rome"}, "autoContinue": true, "clientTools": [{"name": "place"}]});
    let Incoming::Answer {
        answer: CallAnswer::Tool(answer),
        continues,
        client_tools,
    } = parse(frame)
    else {
        panic!("an answer")
    };
    assert_eq!(answer.tool_call_id.as_str(), "c1");
    assert!(
        matches!(answer.outcome, ClientOutcome::Output(value) if value.get() == r#"{"city":"Rome"}"#)
    );
    assert!(continues);
    assert_eq!(client_tools.len(), 1);
}

#[test]
fn a_failed_tool_reports_an_error_and_stops_the_turn() {
    let frame = json!({"type": "cf_agent_tool_result", "toolCallId": "c1", "toolName": "place",
        "state": "output-error", "errorText": "no GPS", "autoContinue": false});
    let Incoming::Answer {
        answer: CallAnswer::Tool(answer),
        continues,
        ..
    } = parse(frame)
    else {
        panic!("an answer")
    };
    assert!(matches!(answer.outcome, ClientOutcome::Error(text) if text == "no GPS"));
    assert!(!continues);
}

#[test]
fn only_a_literal_true_approves() {
    for (approved, expected) in [
        (json!(true), true),
        (json!(false), false),
        (json!("true"), false),
        (json!(null), false),
    ] {
        let frame = json!({"type": "cf_agent_tool_approval", "toolCallId": "c1", "approved": approved, "autoContinue": true});
        let Incoming::Answer {
            answer: CallAnswer::Approval(answer),
            ..
        } = parse(frame)
        else {
            panic!("an answer")
        };
        assert_eq!(answer.approved, expected);
    }
}

#[test]
fn the_frames_without_payload_are_parsed() {
    assert!(matches!(
        parse(json!({"type": "cf_agent_chat_clear"})),
        Incoming::Clear
    ));
    assert!(matches!(
        parse(json!({"type": "cf_agent_chat_request_cancel", "id": "r1"})),
        Incoming::Cancel { id } if id == "r1"
    ));
    assert!(matches!(
        parse(json!({"type": "cf_agent_stream_resume_ack", "id": "r1"})),
        Incoming::ResumeAck { id } if id == "r1"
    ));
    assert!(matches!(
        parse(json!({"type": "cf_agent_stream_resume_request", "probeId": "p"})),
        Incoming::ResumeRequest { probe_id: Some(id) } if id == "p"
    ));
    assert!(matches!(
        parse(json!({"type": "cf_agent_stream_resume_request"})),
        Incoming::ResumeRequest { probe_id: None }
    ));
    assert!(matches!(
        parse(
            json!({"type": "cf_agent_chat_messages", "messages": [{"role": "user", "parts": []}]})
        ),
        Incoming::Ignored
    ));
}

#[test]
fn a_state_frame_is_answered_with_a_state_error() {
    let error = refused(parse(json!({"type": "cf_agent_state", "state": {"a": 1}})));
    assert_eq!(error["type"], "cf_agent_state_error");
}

#[test]
fn foreign_and_malformed_frames_are_ignored() {
    for text in [
        "",
        "ping",
        "{",
        "null",
        "[]",
        r#"{"a":1}"#,
        r#"{"type":5}"#,
        r#"{"type":"cf_agent_from_the_future"}"#,
        r#"{"type":"rpc"}"#,
        r#"{"type":"rpc","id":5,"method":"m","args":[]}"#,
        r#"{"type":"cf_agent_use_chat_request"}"#,
        r#"{"type":"cf_agent_chat_request_cancel","id":""}"#,
        r#"{"type":"cf_agent_tool_result","output":1}"#,
        r#"{"type":"cf_agent_tool_result","toolCallId":"c","output":1,"clientTools":5}"#,
        r#"{"type":"cf_agent_tool_result","toolCallId":"c","output":"\ud800"}"#,
        r#"{"type":"cf_agent_chat_messages","messages":{}}"#,
        r#"{"type":"rpc","type":"rpc","id":"1"}"#,
    ] {
        assert!(matches!(parse_frame(text), Incoming::Ignored), "{text}");
    }
    let long = json!({"type": "rpc", "id": "x".repeat(201), "method": "m", "args": []});
    assert!(matches!(parse(long), Incoming::Ignored));
    let wide = format!(
        r#"{{"type":"cf_agent_chat_clear","x":"{}"}}"#,
        "x".repeat(MAX_FRAME_BYTES)
    );
    assert!(matches!(parse_frame(&wide), Incoming::Ignored));
}

#[test]
fn the_ai_sdk_transport_sends_resumes_and_aborts() {
    let send = json!({"type": "send", "requestId": "r1", "id": "page", "trigger": "submit-message",
        "messages": [{"id": "m", "role": "user", "parts": []}], "headers": {}, "body": {}});
    let Incoming::Sdk(SdkRequest::Send { id, request }) = parse(send.clone()) else {
        panic!("a request to send")
    };
    // The socket determines the session, not the page's chat id.
    assert_eq!((id.as_str(), request.messages.len()), ("r1", 1));
    assert_eq!(request.session_id, None);
    let resumes = parse(json!({"type": "resume", "requestId": "r1", "id": "page", "body": {}}));
    assert!(matches!(resumes, Incoming::Sdk(SdkRequest::Resume { id }) if id == "r1"));
    let aborts = parse(json!({"type": "abort", "requestId": "r1"}));
    assert!(matches!(aborts, Incoming::Sdk(SdkRequest::Abort { id }) if id == "r1"));
    for (field, value) in [
        ("messages", json!("none")),
        ("trigger", json!("later")),
        ("body", json!({"model": 5})),
        ("body", json!([])),
    ] {
        let mut wrong = send.clone();
        wrong[field] = value;
        let error = refused(parse(wrong));
        assert_eq!(
            (&error["type"], &error["requestId"]),
            (&json!("error"), &json!("r1"))
        );
    }
    for frame in [
        r#"{"type":"send"}"#,
        r#"{"type":"send","requestId":1}"#,
        r#"{"type":"resume","requestId":""}"#,
        r#"{"type":"abort"}"#,
    ] {
        assert!(matches!(parse_frame(frame), Incoming::Ignored), "{frame}");
    }
}
