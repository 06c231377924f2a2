//! Invalid input is rejected with the right code and the field's name, writes nothing, and doesn't
//! harm the agent.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};

use crate::Alice;
use crate::api::examples::{Example, examples, populated};
use api::OPENAPI_JSON;
use base::packed::pack;

#[test]
fn invalid_input_is_refused_by_name_and_writes_nothing() {
    let alice = Alice::with_session();
    alice.append_texts(&["one"]);
    let before = alice.db.dump();
    let id_201 = "x".repeat(201);
    let one = || json!([{"action": "user_message", "content": "x"}]);
    let append = |event: Value| json!({"sessionId": "s", "events": [event]}).to_string();
    let table: Vec<(&str, String, &str)> = vec![
        ("appendEvents", "{".to_owned(), "body"),
        ("appendEvents", "[]".to_owned(), "body"),
        ("appendEvents", "null".to_owned(), "body"),
        ("appendEvents", "\u{feff}{}".to_owned(), "body"),
        ("appendEvents", json!({"sessionId": "s"}).to_string(), "events"),
        ("appendEvents", json!({"sessionId": "s", "events": []}).to_string(), "events"),
        ("appendEvents", json!({"sessionId": "s", "events": {}}).to_string(), "events"),
        ("appendEvents", json!({"sessionId": "s", "event": []}).to_string(), "event"),
        ("appendEvents", json!({"sessionId": 1, "events": one()}).to_string(), "sessionId"),
        ("appendEvents", json!({"sessionId": id_201, "events": one()}).to_string(), "sessionId"),
        ("appendEvents", json!({"sessionId": "", "events": one()}).to_string(), "sessionId"),
        ("appendEvents", json!({"sessionId": "s", "events": vec![json!({"action": "user_message", "content": "x"}); 1001]}).to_string(), "events"),
        ("appendEvents", append(json!("text")), "events[0]"),
        ("appendEvents", append(json!({"content": "x"})), "events[0].action"),
        ("appendEvents", append(json!({"action": "shout", "content": "x"})), "events[0].action"),
        ("appendEvents", append(json!({"action": "user_message", "content": 5})), "events[0].content"),
        ("appendEvents", append(json!({"action": "user_message", "contents": "x"})), "events[0].contents"),
        ("appendEvents", append(json!({"action": "user_message", "id": id_201})), "events[0].id"),
        ("appendEvents", append(json!({"action": "user_message", "id": 7})), "events[0].id"),
        ("appendEvents", append(json!({"action": "user_message", "metadata": "x"})), "events[0].metadata"),
        ("appendEvents", append(json!({"action": "user_message", "createdAt": -1})), "events[0].createdAt"),
        ("appendEvents", append(json!({"action": "user_message", "createdAt": 9_007_199_254_740_992_i64})), "events[0].createdAt"),
        ("appendEvents", append(json!({"action": "user_message", "createdAt": "now"})), "events[0].createdAt"),
        ("appendEvents", r#"{"sessionId":"s","events":[{"action":"user_message","content":"\ud800"}]}"#.to_owned(), "events"),
        ("appendEvents", format!(r#"{{"sessionId":"s","events":[{{"action":"user_message","metadata":{{"a":{}1{}}}}}]}}"#, "[".repeat(5000), "]".repeat(5000)), "events"),
        ("loadEvents", json!({"sessionId": "s", "limit": 1001}).to_string(), "limit"),
        ("loadEvents", json!({"sessionId": "s", "limit": 9_007_199_254_740_993_i64}).to_string(), "limit"),
        ("loadEvents", json!({"sessionId": "s", "actions": ["shout"]}).to_string(), "actions[0]"),
        ("loadEvents", json!({"sessionId": "s", "tail": "yes"}).to_string(), "tail"),
        ("loadEvents", json!({"sessionId": "s", "since": "2020-01-01"}).to_string(), "since"),
        ("deleteEvents", json!({"sessionId": "s", "eventIds": vec!["x"; 1001]}).to_string(), "eventIds"),
        ("deleteEvents", json!({"sessionId": "s", "eventIds": "x"}).to_string(), "eventIds"),
        ("createSession", json!({"name": "x".repeat(1001)}).to_string(), "name"),
        ("createSession", json!({"metadata": []}).to_string(), "metadata"),
        ("listSessions", json!({"limit": 501}).to_string(), "limit"),
    ];
    for (operation, body, field) in table {
        let error = alice
            .send(&alice.db, operation, body.as_bytes())
            .unwrap_err();
        let shown: String = body.chars().take(120).collect();
        assert_eq!(
            (error.code.name(), &error.details()["field"]),
            ("invalid_request", &json!(field)),
            "{shown}"
        );
        assert!(
            error.message.contains(field) || field == "body",
            "{}",
            error.message
        );
    }
    let error = alice
        .send(&alice.db, "appendEvents", b"{\"sessionId\":\"\xc3\x28\"}")
        .unwrap_err();
    assert_eq!(error.details()["field"], "body");
    assert_eq!(alice.db.dump(), before);
    alice.append_texts(&["still here"]);
}

#[test]
fn an_unknown_operation_suggests_the_nearest_name() {
    let alice = Alice::default();
    for (name, near) in [
        ("createSesion", Some("createSession")),
        ("loadevents", Some("loadEvents")),
        ("drop table", None),
        ("", None),
    ] {
        let error = alice.call(name, json!({})).unwrap_err();
        assert_eq!(error.code.name(), "unknown_operation");
        match near {
            Some(near) => assert!(
                error.message.contains(&format!("`{near}`")),
                "{}",
                error.message
            ),
            None => assert!(error.message.contains("openapi.json"), "{}", error.message),
        }
    }
}

#[test]
fn callers_text_never_becomes_sql() {
    let alice = Alice::with_session();
    let hostile = [
        "'; DROP TABLE cf_agents_events; --",
        "\" OR 1=1",
        "?1",
        "$.x",
        "%",
        "a\u{0}b",
        "\u{202e}",
    ];
    for text in hostile {
        let outcome = alice.ok("appendEvents", json!({"sessionId": "s", "events": [{"id": text, "action": "user_message", "content": text, "metadata": {text: text}}]}));
        assert_eq!(outcome["leafId"], text);
    }
    let read: Vec<_> = alice
        .events()
        .iter()
        .map(|event| event["content"].clone())
        .collect();
    assert_eq!(read, hostile);
    assert_eq!(
        alice.ok(
            "deleteEvents",
            json!({"sessionId": "s", "eventIds": ["' OR '1'='1"]})
        ),
        json!({"deleted": 0})
    );
}

/// Texts that are not issued cursors, some of them well-formed.
fn strange_cursors() -> Vec<String> {
    let mut cursors: Vec<String> = [
        "",
        "x",
        "0",
        "-1",
        "9223372036854775807",
        "-9223372036854775808",
        "9223372036854775808",
        "1.2",
        "0.0",
        "1-1",
        "9223372036854775807.9223372036854775807",
        "-9223372036854775808.-9223372036854775808",
        "-9223372036854775808.-9223372036854775808.s",
        "9223372036854775807-9223372036854775807",
        "1.1.'; DROP TABLE cf_agents_events; --",
        "s",
        "a\u{0}b",
        "\u{202e}\u{1F600}",
        "%",
        "{}",
        "[]",
        "null",
    ]
    .map(str::to_owned)
    .to_vec();
    cursors.push("A".repeat(100_000));
    cursors.push("\u{e9}".repeat(500));
    for key in [
        "[]",
        "[null]",
        "[-1]",
        "[1e300]",
        "[9223372036854775807]",
        r#"["","",0,0]"#,
    ] {
        for table in [0, 1, 2, 99, u64::MAX] {
            cursors.push(URL_SAFE_NO_PAD.encode(format!("[{table},{key}]")));
        }
    }
    const FAR: i64 = 1 << 52;
    for numbers in [
        vec![-1; 4],
        vec![FAR; 7],
        vec![-FAR; 7],
        vec![0, 0, 0, 0, 1, -FAR, -FAR],
        vec![FAR, FAR, FAR, FAR, 1, FAR, FAR, 1, FAR, FAR],
        vec![FAR, FAR, FAR, FAR, 2, 0, 0, 2, 0, 0],
    ] {
        cursors.push(pack(&numbers));
    }
    cursors
}

#[test]
fn an_invalid_cursor_is_refused_or_leads_to_a_page() {
    let alice = populated();
    let document: Value = serde_json::from_str(OPENAPI_JSON).unwrap();
    let mut pages = 0;
    for Example { operation, body } in examples() {
        let path = format!("/paths/~1agents~1session-agent~1{{agent}}~1rpc~1{operation}/post");
        let schema = "/requestBody/content/application~1json/schema/properties/cursor";
        if document.pointer(&path).unwrap().pointer(schema).is_none() {
            continue;
        }
        for cursor in strange_cursors() {
            let mut body = body.clone();
            body["cursor"] = cursor.as_str().into();
            pages += 1;
            let Err(error) = alice.call(operation, body) else {
                continue;
            };
            let shown: String = cursor.chars().take(80).collect();
            let answer = (error.code.name(), &error.details()["field"]);
            assert_eq!(
                answer,
                ("invalid_request", &json!("cursor")),
                "{operation}: {shown}"
            );
        }
    }
    assert!(pages > 500, "{pages}");
}
