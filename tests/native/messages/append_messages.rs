//! Several messages in one request: all or none are appended.

use serde_json::{Value, json};

use crate::Alice;
use base::error::Code;

fn message(id: &str, role: &str) -> Value {
    json!({"id": id, "role": role, "parts": [{"type": "text", "text": format!("says {id}")}]})
}

fn append(alice: &Alice, more: Value) -> Value {
    let mut body = json!({"sessionId": "s"});
    body.as_object_mut()
        .unwrap()
        .extend(more.as_object().unwrap().clone());
    alice.ok("appendMessages", body)
}

fn ids_of(alice: &Alice) -> Vec<String> {
    let history = alice.ok("getHistory", json!({"sessionId": "s"}));
    crate::ids(&history["messages"])
}

#[test]
fn messages_are_chained_and_a_repetition_writes_nothing() {
    let alice = Alice::with_session();
    let messages = json!([
        message("a", "user"),
        message("b", "assistant"),
        message("c", "user")
    ]);
    let answer = append(&alice, json!({"messages": messages}));
    assert_eq!(
        answer,
        json!({"messages": [{"id": "a", "seq": 1, "inserted": true},
                            {"id": "b", "seq": 2, "inserted": true},
                            {"id": "c", "seq": 3, "inserted": true}],
               "leafId": "c"})
    );
    assert_eq!(ids_of(&alice), ["a", "b", "c"]);
    let before = alice.db.dump();
    let again = append(&alice, json!({"messages": messages, "expectedLeafId": "b"}));
    assert_eq!(again["messages"][0]["inserted"], false);
    assert_eq!(again["leafId"], "c");
    assert_eq!(alice.db.dump(), before);
    append(
        &alice,
        json!({"messages": [message("d", "user"), message("e", "user")], "parentId": "b"}),
    );
    assert_eq!(ids_of(&alice), ["a", "b", "d", "e"]);
    append(
        &alice,
        json!({"messages": [message("f", "user")], "parentId": null}),
    );
    assert_eq!(ids_of(&alice), ["f"]);
    alice.assert_consistent("after appends");
}

#[test]
fn one_invalid_message_or_a_moved_leaf_writes_nothing() {
    let alice = Alice::with_session();
    append(&alice, json!({"messages": [message("a", "user")]}));
    let before = alice.db.dump();
    let refused = |more: Value| {
        let mut body = json!({"sessionId": "s"});
        body.as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        let error = alice.call("appendMessages", body).unwrap_err();
        assert_eq!(alice.db.dump(), before);
        error
    };
    let error = refused(json!({"messages": [message("b", "user"), message("c", "tool")]}));
    assert_eq!(error.code.name(), "invalid_request");
    assert_eq!(error.details()["field"], "messages[1].role");
    assert!(error.message.contains("`messages[1].role`"), "{error:?}");
    let long = "x".repeat((4 << 20) + 1);
    let error = refused(
        json!({"messages": [message("b", "user"), {"role": "user", "parts": [{"type": "text", "text": long}]}]}),
    );
    assert_eq!(error.code.name(), "payload_too_large");
    assert_eq!(error.details()["field"], "messages[1]");
    let error = refused(json!({"messages": [message("b", "user")], "expectedLeafId": null}));
    assert_eq!(error.code.name(), "leaf_moved");
    let error = refused(json!({"messages": [message("b", "user")], "parentId": "nobody"}));
    assert_eq!(error.details()["field"], "parentId");
    assert_eq!(
        refused(json!({"messages": []})).code.name(),
        "invalid_request"
    );
    let many: Vec<Value> = (0..1_001)
        .map(|_| json!({"role": "user", "parts": []}))
        .collect();
    assert_eq!(
        refused(json!({"messages": many})).code.name(),
        "invalid_request"
    );
}

#[test]
fn an_empty_user_message_is_refused_with_its_reason() {
    let alice = Alice::with_session();
    let empty = [
        json!([]),
        json!([{"type": "text", "text": ""}]),
        json!([{"type": "text", "text": " \n"}, {"type": "step-start"}]),
    ];
    for parts in empty {
        let message = json!({"id": "m", "role": "user", "parts": parts});
        for operation in ["appendMessage", "upsertMessage", "runTurn"] {
            let body = json!({"sessionId": "s", "message": message});
            let error = alice.call(operation, body).expect_err(operation);
            assert_eq!(error.code, Code::InvalidRequest);
            assert_eq!(error.details()["field"], "message.parts");
            assert!(
                error.message.starts_with("The message is empty."),
                "{}",
                error.message
            );
        }
    }
    let file =
        json!([{"type": "file", "mediaType": "image/png", "url": "https://a.example/a.png"}]);
    for (role, parts) in [
        ("user", file),
        ("assistant", json!([])),
        ("system", json!([])),
    ] {
        let message = json!({"role": role, "parts": parts});
        alice.ok(
            "appendMessage",
            json!({"sessionId": "s", "message": message}),
        );
    }
}
