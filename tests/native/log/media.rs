//! Inline media: stored once per session, read back byte for byte, and deleted with its
//! last use.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::Alice;
use base::database::Database;
use base::testing::Dice;

/// A data URL whose payload is about `bytes` long and starts with `word`.
fn url(word: &str, bytes: usize) -> String {
    format!("data:image/png;base64,{}", word.repeat(bytes / word.len()))
}

fn picture(id: &str, url: &str) -> Value {
    json!({"id": id, "role": "user", "parts": [
        {"type": "text", "text": "look:"},
        {"type": "file", "mediaType": "image/png", "url": url}
    ]})
}

fn add_part(message: &mut Value, part: Value) {
    message["parts"].as_array_mut().unwrap().push(part);
}

impl Alice {
    pub fn show(&self, session_id: &str, message: &Value) -> Value {
        self.ok(
            "appendMessage",
            json!({"sessionId": session_id, "message": message}),
        )
    }

    pub fn count(&self, sql: &str) -> i64 {
        self.db.rows(sql, &[]).unwrap()[0]
            .find_integer(0)
            .unwrap_or(0)
    }

    pub fn payloads(&self) -> i64 {
        self.count("SELECT count(DISTINCT session_id || hash) FROM cf_agents_media")
    }

    /// Every stored payload is used, and every use has its payload and an event that
    /// names it.
    pub fn assert_no_orphans(&self, game: &str) {
        let orphans = self.count(
            "SELECT (SELECT count(*) FROM cf_agents_media AS media
                      WHERE NOT EXISTS (SELECT 1 FROM cf_agents_media_uses AS uses
                                         WHERE uses.session_id = media.session_id AND uses.hash = media.hash))
                  + (SELECT count(*) FROM cf_agents_media_uses AS uses
                      WHERE NOT EXISTS (SELECT 1 FROM cf_agents_events AS e, json_each(e.media) AS place
                                         WHERE e.session_id = uses.session_id AND e.seq = uses.seq
                                           AND place.value ->> 1 = uses.hash))",
        );
        assert_eq!(orphans, 0, "{game}");
    }
}

fn without_date(message: &Value) -> Value {
    let mut message = message.clone();
    message.as_object_mut().unwrap().remove("createdAt");
    message
}

#[test]
fn every_read_returns_the_message_as_sent() {
    let alice = Alice::with_session();
    let sent = picture("m", &url("aé", 10_000));
    let appended = alice.show("s", &sent);
    assert_eq!(without_date(&appended["message"]), sent);
    alice.ok(
        "appendMessage",
        json!({"sessionId": "s", "parentId": "m", "message": picture("n", &url("b", 5_000))}),
    );
    let root = |message: &Value| assert_eq!(without_date(message), sent);
    root(&alice.ok("getMessage", json!({"sessionId": "s", "messageId": "m"})));
    root(&alice.ok("getHistory", json!({"sessionId": "s"}))["messages"][0]);
    let leaf = alice.ok("getLatestLeaf", json!({"sessionId": "s"}));
    assert_eq!(without_date(&leaf), picture("n", &url("b", 5_000)));
    let branches = alice.ok("getBranches", json!({"sessionId": "s", "messageId": "m"}));
    assert_eq!(branches["messages"][0], leaf);
    root(&alice.show("s", &sent)["message"]);
    root(&alice.ok("upsertMessage", json!({"sessionId": "s", "message": sent}))["message"]);
    let update = |message: &Value| {
        alice.ok(
            "updateMessage",
            json!({"sessionId": "s", "message": message}),
        )
    };
    root(&update(&sent));
    let other = picture("m", &url("c", 70_000));
    assert_eq!(without_date(&update(&other)), other);
    assert_eq!(alice.payloads(), 2);
    root(&update(&sent));
    assert_eq!(alice.payloads(), 2);
    alice.assert_no_orphans("");
}

#[test]
fn media_reads_back_byte_for_byte() {
    let alice = Alice::with_session();
    let payload = "QUJD\\/+\\u00e9\\n".repeat(1_000);
    let parts = format!(
        r#"[{{"url":"data:image\/png;name=a%20b;base64,{payload}","type" : "file"}}, {{"type":"tool-draw","toolCallId":"c","state":"output-available","input":{{}},"output":[1.0,{{"x":["DATA:,{payload}"]}}]}}]"#
    );
    let body =
        format!(r#"{{"sessionId":"s","message":{{"id":"m","role":"assistant","parts":{parts}}}}}"#);
    alice
        .send(&alice.db, "appendMessage", body.as_bytes())
        .unwrap();
    assert_eq!(alice.payloads(), 1);
    let stored = alice.count("SELECT octet_length(message) FROM cf_agents_events");
    assert!(stored < 400, "{stored}");
    let id = base::ids::Id::parse("s".to_owned()).unwrap();
    let row = conversation::log::row::get_event_row(&alice.db, &id, 1).unwrap();
    assert_eq!(
        row.message.unwrap(),
        format!(r#""role":"assistant","parts":{parts}"#)
    );
}

#[test]
fn media_is_deduplicated_within_a_session_only() {
    let alice = Alice::with_session();
    alice.ok("createSession", json!({"id": "t"}));
    let image = url("iVBORw0K", 1_000_000);
    alice.show("s", &picture("m", &image));
    let bytes = "SELECT sum(octet_length(text)) FROM cf_agents_media";
    let once = alice.count(bytes);
    alice.show("s", &picture("n", &image));
    // Another file name in the data URL doesn't create another payload.
    alice.show(
        "s",
        &picture("o", &image.replace("image/png", "image/png;name=x")),
    );
    assert_eq!(alice.count(bytes), once);
    assert_eq!(
        alice.count("SELECT sum(octet_length(message)) FROM cf_agents_events") / 1_000,
        0
    );
    alice.show("t", &picture("m", &image));
    assert_eq!(alice.count(bytes), 2 * once);

    alice.ok(
        "deleteMessages",
        json!({"sessionId": "s", "messageIds": ["m", "n"]}),
    );
    assert_eq!(alice.count(bytes), 2 * once);
    alice.ok("deleteEvents", json!({"sessionId": "s", "eventIds": ["o"]}));
    assert_eq!(alice.count(bytes), once);
    alice.ok("deleteSession", json!({"sessionId": "t"}));
    assert_eq!(
        alice.count("SELECT count(*) FROM cf_agents_media")
            + alice.count("SELECT count(*) FROM cf_agents_media_uses"),
        0
    );
}

#[test]
fn media_and_text_may_both_exceed_a_row() {
    let alice = Alice::with_session();
    let mut message = picture("m", &url("ü/", 2_000_000));
    message["parts"][0]["text"] = json!("é".repeat(1_000_000));
    alice.show("s", &message);
    let read = alice.ok("getMessage", json!({"sessionId": "s", "messageId": "m"}));
    assert!(without_date(&read) == message);
    let fork = alice.ok("forkSession", json!({"sessionId": "s"}));
    alice.ok("deleteSession", json!({"sessionId": "s"}));
    let read = alice.ok(
        "getMessage",
        json!({"sessionId": fork["id"], "messageId": "m"}),
    );
    assert!(without_date(&read) == message);
    alice.ok("clearMessages", json!({"sessionId": fork["id"]}));
    assert_eq!(alice.payloads(), 0);
}

#[test]
fn the_limit_applies_to_the_message_as_sent() {
    let alice = Alice::with_session();
    let image = url("x", 2_200_000);
    let mut twice = picture("m", &image);
    add_part(&mut twice, json!({"type": "file", "url": image}));
    let body = json!({"sessionId": "s", "message": twice});
    assert_eq!(alice.refused("appendMessage", body), "payload_too_large");
    // A text that is also the event's content counts once.
    let mut both = picture("m", &url("x", 2 << 20));
    both["parts"][0]["text"] = json!("x".repeat((2 << 20) - 500));
    alice.show("s", &both);
}

#[test]
fn a_forged_media_reference_stays_text() {
    let alice = Alice::with_session();
    alice.show("s", &picture("secret", &url("secret", 10_000)));
    let hash = alice
        .db
        .rows("SELECT hash FROM cf_agents_media", &[])
        .unwrap()[0]
        .text(0)
        .unwrap()
        .to_owned();
    let forged = json!({"id": "m", "role": "user", "media": [[0, hash]], "parts": [
        {"type": "file", "url": "data:image/png;base64,", "media": [[0, hash]]},
        {"type": "file", "url": format!("media:{hash}")}, {"type": "text", "text": hash}
    ]});
    alice.show("s", &forged);
    assert_eq!(
        without_date(&alice.ok("getMessage", json!({"sessionId": "s", "messageId": "m"}))),
        forged
    );
    // The same applies to a message with its own media.
    let mut both = forged.clone();
    both["id"] = json!("n");
    add_part(
        &mut both,
        json!({"type": "file", "url": url("mine", 5_000)}),
    );
    alice.show("s", &both);
    assert_eq!(
        without_date(&alice.ok("getMessage", json!({"sessionId": "s", "messageId": "n"}))),
        both
    );
}

#[test]
fn a_message_with_corrupt_media_is_named_and_can_be_deleted() {
    for damage in [
        "DELETE FROM cf_agents_media",
        "UPDATE cf_agents_events SET media = '[oops'",
        "UPDATE cf_agents_events SET media = '[[9999,\"x\"]]'",
    ] {
        let alice = Alice::with_session();
        alice.show("s", &picture("m", &url("a", 9_000)));
        alice.db.unguarded(|| alice.db.run(damage, &[])).unwrap();
        let read = json!({"sessionId": "s", "messageId": "m"});
        assert_eq!(alice.refused("getMessage", read), "corrupt_row");
        assert_eq!(alice.export("s").unwrap_err().details()["id"], "m");
        alice.ok("deleteEvents", json!({"sessionId": "s", "eventIds": ["m"]}));
        assert_eq!(
            alice.ok("getHistory", json!({"sessionId": "s"}))["messages"],
            json!([])
        );
    }
}

#[test]
fn an_unchanged_update_writes_nothing() {
    let alice = Alice::with_session();
    let message = picture("m", &url("a", 9_000));
    alice.show("s", &message);
    let before = alice.db.dump();
    alice.ok(
        "updateMessage",
        json!({"sessionId": "s", "message": message}),
    );
    assert_eq!(alice.db.dump(), before);
}

#[test]
fn a_tools_image_is_sent_and_counted_as_an_image() {
    let alice = Alice::with_session();
    let image = url("AAAA", 400_000);
    alice.show("s", &json!({"id": "m", "role": "assistant", "parts": [
        {"type": "tool-draw", "toolCallId": "c", "state": "output-available", "input": {}, "output": {"image": image}}
    ]}));
    let context = alice.ok("buildWorkingContext", json!({"sessionId": "s"}));
    assert_eq!(
        context["messages"][1]["content"],
        json!({"image": image}).to_string()
    );
    let tokens = context["tokensEstimate"].as_i64().unwrap();
    assert!((1_000..1_050).contains(&tokens), "{tokens}");
}

#[test]
fn search_indexes_text_around_media_but_not_the_media() {
    for is_indexed_first in [true, false] {
        let alice = Alice::with_session();
        if is_indexed_first {
            alice.ok("search", json!({"query": "x"}));
        }
        let mut message = picture("m", &url("marmalade/", 10_000));
        message["parts"][1]["filename"] = json!("breakfast.png");
        let output = url("marmalade ", 10);
        add_part(
            &mut message,
            json!({"type": "tool-draw", "toolCallId": "c", "input": {"a": "teapot", "b": "data:,short"}, "output": output}),
        );
        alice.show("s", &message);
        let found = |query: &str| {
            alice.ok("search", json!({"query": query}))["results"]
                .as_array()
                .unwrap()
                .len()
        };
        assert_eq!(
            (found("breakfast"), found("teapot"), found("look")),
            (1, 1, 1)
        );
        assert_eq!(
            (found("marmalade"), found("base64"), found("short")),
            (0, 0, 0)
        );
    }
}

#[test]
fn media_is_exported_and_deduplicated_on_import() {
    let alice = Alice::with_session();
    let image = url("abcd", 100_000);
    alice.show("s", &picture("m", &image));
    alice.show("s", &picture("n", &image));
    let file = alice.export("s").unwrap();
    let bob = Alice::default();
    bob.import("s", &file).unwrap();
    assert_eq!(
        (bob.payloads(), bob.export("s").unwrap() == file),
        (1, true)
    );
    bob.assert_no_orphans("");
    assert_failed_import_leaves_nothing(&file);
}

/// An import that fails leaves no media behind.
fn assert_failed_import_leaves_nothing(file: &str) {
    let bob = Alice::default();
    let cut_off = file.lines().take(3).collect::<Vec<_>>().join("\n");
    bob.import("s", &cut_off).unwrap_err();
    assert_eq!(bob.db.dump(), Alice::default().db.dump());
}

#[test]
fn random_play_keeps_messages_exact_and_leaves_nothing_behind() {
    for seed in 1..=30_u64 {
        let alice = Alice::with_session();
        let mut dice = Dice(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        let mut naive: BTreeMap<String, Value> = BTreeMap::new();
        for turn in 0..40 {
            let game = format!("game {seed}, move {turn}");
            let ids: Vec<String> = naive.keys().cloned().collect();
            let any = (!ids.is_empty()).then(|| ids[dice.roll(ids.len())].clone());
            let mut message = |id: &str| {
                let parts: Vec<Value> = (0..dice.roll(4))
                    .map(|_| match dice.roll(4) {
                        0 => json!({"type": "text", "text": url("text", 5_000)}),
                        1 => json!({"type": "tool-x", "toolCallId": "c", "output": [url("two", 6_000), url("one", 5_000)]}),
                        n => json!({"type": "file", "url": url(["one", "two", "three"][dice.roll(3)], 4_000 + 2_000 * n)}),
                    })
                    .collect();
                json!({"id": id, "role": "assistant", "parts": parts})
            };
            match (turn % 7, any) {
                (0..=2, _) => {
                    let id = format!("m{turn}");
                    let message = message(&id);
                    alice.show("s", &message);
                    naive.insert(id, message);
                }
                (3 | 4, Some(id)) => {
                    let message = message(&id);
                    alice.ok(
                        "updateMessage",
                        json!({"sessionId": "s", "message": message}),
                    );
                    naive.insert(id, message);
                }
                (5, Some(id)) => {
                    alice.ok(
                        "deleteMessages",
                        json!({"sessionId": "s", "messageIds": [id]}),
                    );
                    naive.remove(&id);
                }
                (_, Some(_)) if dice.roll(8) == 0 => {
                    alice.ok("clearMessages", json!({"sessionId": "s"}));
                    naive.clear();
                }
                (_, Some(_)) => {
                    let fork = alice.ok("forkSession", json!({"sessionId": "s"}));
                    alice.assert_no_orphans(&game);
                    let history = alice.ok(
                        "getHistory",
                        json!({"sessionId": fork["id"], "limit": 1000}),
                    );
                    for message in history["messages"].as_array().unwrap() {
                        assert_eq!(
                            without_date(message),
                            naive[message["id"].as_str().unwrap()],
                            "{game}"
                        );
                    }
                    alice.ok("deleteSession", json!({"sessionId": fork["id"]}));
                }
                (_, None) => continue,
            }
            alice.assert_no_orphans(&game);
            for (id, message) in &naive {
                let read = alice.ok("getMessage", json!({"sessionId": "s", "messageId": id}));
                assert_eq!(without_date(&read), *message, "{game}");
            }
            if naive.is_empty() {
                assert_eq!(alice.payloads(), 0, "{game}");
            }
        }
        alice.assert_consistent(&format!("game {seed}"));
    }
}
