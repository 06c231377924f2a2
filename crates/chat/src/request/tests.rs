use super::*;

fn parse(body: &str) -> Result<ChatRequest> {
    parse_chat_request(body.as_bytes())
}

fn field(body: &str) -> String {
    let error = parse(body).unwrap_err();
    assert_eq!(error.code.name(), "invalid_request", "{body}");
    error.details()["field"].as_str().unwrap().to_owned()
}

fn ids(request: &ChatRequest) -> Vec<&str> {
    request.message_ids().map(Id::as_str).collect()
}

#[test]
fn a_single_message_is_a_valid_request() {
    let request = parse(
        r#"{"id":"s","message":{"id":"u1","role":"user","parts":[{"type":"text","text":"hi"}]}}"#,
    )
    .unwrap();
    assert_eq!(request.session_id.as_ref().unwrap().as_str(), "s");
    assert_eq!(request.trigger, Trigger::Submit { message_id: None });
    assert_eq!(ids(&request), ["u1"]);
    assert_eq!(request.messages[0].role, Some(Role::User));
    assert!(request.client_tools.is_empty() && request.system_instructions.is_empty());
}

#[test]
fn unknown_page_fields_are_ignored() {
    let request =
        parse(r#"{"messages":[],"mode":"fast","user":{"id":7},"temperature":0.2,"ip":"x"}"#);
    assert!(request.is_ok());
}

#[test]
fn a_message_is_kept_verbatim() {
    let text = r#"{"id":"u", "role":"user","parts":[],"x":1.0}"#;
    let request = parse(&format!(r#"{{"messages":[{text}]}}"#)).unwrap();
    assert_eq!(request.messages[0].text.as_str(), text);
}

#[test]
fn system_instructions_may_be_a_string_or_a_list() {
    let instructions = |text: &str| {
        parse(&format!(r#"{{"messages":[],"systemInstructions":{text}}}"#))
            .unwrap()
            .system_instructions
    };
    assert_eq!(instructions(r#""Be brief.""#), ["Be brief."]);
    assert_eq!(instructions(r#"["a","b"]"#), ["a", "b"]);
    assert!(instructions("null").is_empty() && instructions("[]").is_empty());
    let long = format!(
        r#"{{"messages":[],"systemInstructions":"{}"}}"#,
        "x".repeat(store::config::MAX_INSTRUCTIONS_BYTES + 1)
    );
    let error = parse(&long).unwrap_err();
    assert_eq!(error.code.name(), "payload_too_large");
    assert_eq!(error.details()["field"], "systemInstructions");
}

#[test]
fn tools_are_read_under_either_field_and_the_later_applies() {
    let request = parse(
        r#"{"messages":[],"tools":[{"name":"a"}],"clientTools":[{"name":"b","description":"2"}]}"#,
    )
    .unwrap();
    let names: Vec<&str> = request
        .client_tools
        .iter()
        .map(|tool| tool.name.as_str())
        .collect();
    assert_eq!(names, ["a", "b"]);
}

#[test]
fn regenerating_needs_no_message() {
    let request = parse(r#"{"trigger":"regenerate-message","messageId":"a1"}"#).unwrap();
    assert_eq!(ids(&request), ["a1"]);
    assert!(matches!(request.trigger, Trigger::Regenerate { .. }));
    assert!(parse(r#"{"trigger":"regenerate-message"}"#).is_ok());
}

#[test]
fn an_error_names_its_field() {
    for (body, named) in [
        ("", "messages"),
        ("{", "body"),
        ("[]", "body"),
        (r#"{"messages":{}}"#, "messages"),
        (r#"{"messages":["hi"]}"#, "messages[0]"),
        (r#"{"message":"hi"}"#, "message"),
        (r#"{"message":{"role":"user"},"messages":[]}"#, "message"),
        (r#"{"messages":[{"parts":[]}]}"#, "messages[0].role"),
        (r#"{"messages":[{"role":5}]}"#, "messages[0].role"),
        (r#"{"messages":[{"role":"user","id":5}]}"#, "messages[0].id"),
        (r#"{"message":{"role":"user","id":""}}"#, "message.id"),
        (r#"{"messages":[],"trigger":"submit"}"#, "trigger"),
        (r#"{"messages":[],"id":5}"#, "id"),
        (r#"{"messages":[],"model":{}}"#, "model"),
        (r#"{"messages":[],"messageId":""}"#, "messageId"),
        (r#"{"messages":[],"tools":5}"#, "tools"),
        (
            r#"{"messages":[],"clientTools":[{}]}"#,
            "clientTools[0].name",
        ),
        (
            r#"{"messages":[],"systemInstructions":5}"#,
            "systemInstructions",
        ),
        (
            r#"{"messages":[],"sytemInstructions":"a"}"#,
            "sytemInstructions",
        ),
        (r#"{"messages":[],"messageID":"a"}"#, "messageID"),
        (r#"{"mesages":[]}"#, "mesages"),
    ] {
        assert_eq!(field(body), named, "{body}");
    }
}

#[test]
fn an_unknown_id_is_ignored_unless_a_user_message_has_it() {
    let long = "x".repeat(201);
    let request = parse(&format!(
        r#"{{"messages":[{{"id":"{long}","role":"assistant","parts":[]}},{{"id":7,"role":"data"}},{{"id":null,"role":"user"}}]}}"#
    ))
    .unwrap();
    assert!(request.messages.iter().all(|message| message.id.is_none()));
    assert_eq!(request.messages[1].role, None);
    assert_eq!(
        field(&format!(
            r#"{{"messages":[{{"id":"{long}","role":"user"}}]}}"#
        )),
        "messages[0].id"
    );
}

#[test]
fn the_list_of_messages_is_limited() {
    let body = |count: usize| {
        let messages = vec![r#"{"role":"user"}"#; count].join(",");
        format!(r#"{{"messages":[{messages}]}}"#)
    };
    assert!(parse(&body(MAX_MESSAGES)).is_ok());
    assert_eq!(field(&body(MAX_MESSAGES + 1)), "messages");
}
