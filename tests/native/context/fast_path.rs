//! A context is identical to the byte whether SQLite builds its messages or it is built event by
//! event.

use serde_json::{Value, json};

use crate::Alice;
use crate::shared::long::games;
use crate::shared::random_logs::append;
use api::dispatch::dispatch;
use base::database::Database;
use base::ids::Id;
use base::testing::Dice;
use context::working_context::budget::{Budget, WindowSteps};
use context::working_context::build::{ContextWindow, build_working_context};
use context::working_context::fast_path::FastPathContext;
use context::working_context::fitting::build_fitting;
use conversation::messages::tree::leaf::find_leaf;
use store::calibration::Calibration;

/// The games of the quick and of the long form.
const GAMES: (u64, u64) = (12, 40);

fn answer(alice: &Alice, body: &Value) -> Result<String, String> {
    let agent = alice.agent(&alice.db);
    let body = body.to_string();
    let reply = alice.finish(&agent, dispatch(&agent, "buildWorkingContext", body));
    reply
        .map(|reply| reply.body.into_string())
        .map_err(|error| format!("{:?}", error.body()))
}

/// Compares a context with the one that is built event by event. Returns whether SQLite built its
/// messages.
fn compare(alice: &Alice, limit: usize, max_tokens: Option<i64>, game: &str) -> bool {
    let session = Id::parse("s".to_owned()).unwrap();
    let leaf = find_leaf(&alice.db, &session, "leafId", None).unwrap();
    let leaf_seq = leaf.as_ref().map(|leaf| leaf.seq);
    let window = ContextWindow {
        leaf_seq,
        limit,
        system_instructions: vec!["Say \"hi\".".to_owned()],
        added: Vec::new(),
        keep_media: 4,
    };
    let built = match max_tokens {
        None => build_working_context(&alice.db, &session, window),
        Some(tokens) => {
            let budget = Budget {
                tokens,
                calibration: Calibration::default(),
                tools: 0,
                bytes: 4 << 20,
                events: limit,
                steps: WindowSteps::Round,
                field: "maxTokens",
                has_search: false,
            };
            build_fitting(&alice.db, &session, window, &budget).map(|fitted| fitted.context)
        }
    };
    let built = built
        .map(|context| serde_json::to_string(&context).unwrap())
        .map_err(|error| format!("{:?}", error.body()));
    let made = answer(
        alice,
        &json!({
            "sessionId": "s",
            "limit": limit,
            "maxTokens": max_tokens,
            "systemInstructions": ["Say \"hi\"."],
        }),
    );
    assert!(
        made == built,
        "{game}: {limit} {max_tokens:?}\n{made:?}\n{built:?}"
    );
    let newest = FastPathContext::find_newest(&alice.db, &session, limit).unwrap();
    let plain =
        leaf.and_then(|leaf| FastPathContext::find(&alice.db, &session, &leaf, limit).unwrap());
    let json = |plain: FastPathContext| plain.into_json(&[], 1).unwrap().into_string();
    assert_eq!(newest.is_some(), plain.is_some(), "{game}");
    let is_plain = plain.is_some();
    assert_eq!(newest.map(json), plain.map(json), "{game}");
    is_plain
}

#[test]
fn fast_and_slow_paths_build_the_same_context() {
    let mut plain = 0;
    let mut others = 0;
    for seed in 1..=games(GAMES.0, GAMES.1) {
        let mut dice = Dice(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        let alice = Alice::with_session();
        // Some logs contain only plain events, some everything except branches, some everything.
        let kinds = [3, 7, 14, 15][dice.roll(4)];
        for number in 1..=1 + dice.roll(60) {
            append(&alice, &mut dice, number, kinds);
        }
        for _ in 0..8 {
            let limit = [1, 2, 1 + dice.roll(30), 50, 1000][dice.roll(5)];
            let tokens = [150, 400, 1_000, 100_000][dice.roll(4)];
            let max_tokens = [None, Some(tokens)][dice.roll(2)];
            let game = format!("seed {seed}, {kinds} kinds");
            if compare(&alice, limit, max_tokens, &game) {
                plain += 1;
            } else {
                others += 1;
            }
        }
    }
    let least = games(20, 80);
    assert!(plain > least && others > least, "{plain} {others}");
}

#[test]
fn all_message_shapes_are_read_alike() {
    let text = |text: &str| json!({"type": "text", "text": text});
    let user = |parts: Value| json!({"role": "user", "parts": parts});
    let agent = |parts: Value| json!({"role": "assistant", "parts": parts});
    let done = json!({"type": "text", "text": "Done.", "state": "done"});
    for (message, is_plain) in [
        (user(json!([text("Hi \"there\"\n")])), true),
        (user(json!([])), true),
        (user(json!([text("a"), text("b")])), true),
        (user(json!([text("say \"file\" and \"toolCallId\"")])), true),
        (
            json!({"role": "system", "parts": [text("Be brief.")], "metadata": {}}),
            true,
        ),
        (agent(json!([{"type": "step-start"}, done])), true),
        (agent(json!([text("one"), text("two")])), true),
        (
            agent(json!([{"type": "reasoning", "text": "hm"}, text("So.")])),
            true,
        ),
        (agent(json!([text("")])), false),
        (agent(json!([{"type": "step-start"}])), false),
        (
            agent(
                json!([{"type": "tool-echo", "toolCallId": "c", "state": "input-available", "input": {}}]),
            ),
            false,
        ),
        (
            user(
                json!([text("See."), {"type": "file", "mediaType": "image/png", "url": "https://example.com/a.png"}]),
            ),
            false,
        ),
        (user(json!([text(&"word ".repeat(3_000))])), false),
    ] {
        let alice = Alice::with_session();
        alice.append_texts(&["before"]);
        // `appendMessage` refuses an empty message of a user, which older logs have.
        let append = json!({"sessionId": "s", "messages": [message]});
        alice.ok("appendMessages", append);
        alice.append_texts(&["after"]);
        for max_tokens in [None, Some(100_000)] {
            let found = compare(&alice, 50, max_tokens, &message.to_string());
            assert_eq!(found, is_plain, "{message:.200}");
        }
    }
}

#[test]
fn a_message_with_one_text_is_read_alike() {
    for role in ["user", "assistant", "system"] {
        for text in [
            "",
            "plain",
            "\u{0}\u{1}\t\n\u{7f} \"\\/\u{2028}",
            "東京 😀",
            "\\u0066ile",
        ] {
            let alice = Alice::with_session();
            let text = Value::from(text);
            let body = format!(
                r#"{{"sessionId":"s","messages":[{{"id":"m","role":"{role}","parts":[{{"type":"text","text":{text}}}]}}]}}"#
            );
            let appended = alice.send(&alice.db, "appendMessages", body.as_bytes());
            appended.unwrap();
            let is_plain = compare(&alice, 50, None, &body);
            assert_eq!(is_plain, role != "assistant" || text != "", "{body}");
        }
    }
}

#[test]
fn an_escaped_key_does_not_hide_a_file() {
    let alice = Alice::with_session();
    let hidden = r#"{"sessionId":"s","message":{"role":"user","parts":[{"type":"\u0066ile","mediaType":"image/png","url":"https://example.com/a.png"}]}}"#;
    alice
        .send(&alice.db, "appendMessage", hidden.as_bytes())
        .unwrap();
    assert!(!compare(&alice, 50, None, "hidden"));
    let context = answer(&alice, &json!({"sessionId": "s"})).unwrap();
    assert!(context.contains("\"files\":["), "{context}");
}

#[test]
fn a_corrupt_message_is_named() {
    let alice = Alice::with_session();
    let message = json!({"id": "m1", "role": "user", "parts": [{"type": "text", "text": "Hi"}]});
    let append = json!({"sessionId": "s", "message": message});
    alice.ok("appendMessage", append);
    for damage in [
        "nonsense",
        r#""role":"user","parts":["#,
        r#""a":1}, {"b":2"#,
    ] {
        let sql = "UPDATE cf_agents_events SET message = ?1";
        alice.db.run(sql, &[damage.into()]).unwrap();
        let code = alice.refused("buildWorkingContext", json!({"sessionId": "s"}));
        assert_eq!(code, "corrupt_row", "{damage}");
    }
}
