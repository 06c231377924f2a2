//! A page is the same to the byte whether SQLite makes it or a walk reads it event by
//! event. The logs are random, with everything that keeps a page from being plain.

use serde_json::{Value, json};

use super::random_play::Dice;
use crate::Alice;
use base::columns::load_values;
use base::database::{Database as _, Delete};
use base::error::Result;
use base::ids::Id;
use messages::history::{MessagePage, WalkStart, load_newest, load_page, walk_page};
use messages::page::{HistoryCursor, PageAsk, PageForm};
use messages::tree::leaf::resolve_leaf;
use store::text_tables::EVENTS;

const GAMES: u64 = 24;

const TEXTS: [&str; 8] = [
    "",
    "plain",
    "quotes \" and \\ and /",
    "\u{0}\u{1}\u{8}\t\n\u{b}\u{c}\r\u{1f}\u{7f}",
    "\u{2028}\u{2029}\u{feff}",
    "😀 e\u{301} 東京 \u{10ffff}",
    "{\"a\": [1, 2]}",
    "'single' <html> & </script>",
];

/// One of the things that a log may hold.
pub fn append(alice: &Alice, dice: &mut Dice, number: usize, kinds: usize) {
    let text = TEXTS[dice.roll(TEXTS.len())];
    let event = |event: Value| {
        alice.ok("appendEvents", json!({"sessionId": "s", "events": [event]}));
    };
    let message = |message: Value| {
        alice.ok(
            // `appendMessage` refuses an empty message of a user, which older logs have.
            "appendMessages",
            json!({"sessionId": "s", "messages": [message]}),
        );
    };
    let parts = json!([{"type": "text", "text": text}]);
    match dice.roll(kinds) {
        0 => event(json!({"action": "user_message", "content": text})),
        1 => message(json!({"role": "user", "parts": parts})),
        2 => message(
            json!({"id": format!("m{number} é\""), "role": "assistant", "parts": parts, "metadata": {"n": 1.0}}),
        ),
        3 => message(json!({"role": "user", "parts": parts, "createdAt": "2026-01-01T00:00:00Z"})),
        4 => event(json!({"action": "system_instruction", "content": text, "createdAt": 5})),
        // From here on, nothing is plain.
        5 => event(json!({"action": "agent_message", "content": text})),
        6 => event(json!({"action": "user_message", "content": text, "metadata": {"a": text}})),
        7 => event(json!({"action": "tool_call_request", "toolCalls": [
            {"id": format!("c{number}"), "name": "echo", "arguments": {"a": text}},
        ]})),
        8 => event(
            json!({"action": "tool_result", "toolCallId": format!("c{}", number - 1), "toolName": "echo", "content": text}),
        ),
        9 => message(json!({"role": "user", "parts": [
            {"type": "file", "mediaType": "image/png", "url": format!("data:image/png;base64,{}", "A".repeat(6_000))},
        ]})),
        10 => event(
            json!({"action": "user_message", "content": "long ".repeat(2_000 + dice.roll(14_000))}),
        ),
        11 => message(
            json!({"role": "user", "parts": [{"type": "text", "text": "sliced".repeat(400_000)}]}),
        ),
        12 => {
            let ids = ids(alice);
            let doomed = (!ids.is_empty()).then(|| ids[dice.roll(ids.len())].clone());
            alice.ok(
                "deleteEvents",
                json!({"sessionId": "s", "eventIds": doomed.as_slice()}),
            );
        }
        13 => {
            let ids: Vec<Value> = messages(alice)
                .iter()
                .map(|message| message["id"].clone())
                .collect();
            if ids.len() > 2 {
                let from = dice.roll(ids.len() - 1);
                let summary = json!({"sessionId": "s", "summary": text.to_owned() + ".", "fromId": ids[from], "toId": ids[from + 1]});
                // A range that begins or ends in a summary is refused.
                let _ = alice.call("addCompaction", summary);
            }
        }
        _ => {
            let ids = ids(alice);
            if !ids.is_empty() {
                let parent = &ids[dice.roll(ids.len())];
                alice.ok(
                    "appendEvents",
                    json!({"sessionId": "s", "parentId": parent, "events": [
                        {"action": "user_message", "content": text},
                    ]}),
                );
            }
        }
    }
}

/// The ids of all events.
fn ids(alice: &Alice) -> Vec<String> {
    let sql = "SELECT id FROM cf_agents_events ORDER BY seq";
    load_values(&alice.db, sql, &[]).unwrap()
}

fn messages(alice: &Alice) -> Vec<Value> {
    let page = alice.ok("getHistory", json!({"sessionId": "s", "limit": 100}));
    page["messages"].as_array().unwrap().clone()
}

/// Compares all pages up from the leaf; gives how many there are.
fn compare(alice: &Alice, limit: usize, max_bytes: usize, game: &str) -> usize {
    let id = Id::parse("s".to_owned()).unwrap();
    let leaf = resolve_leaf(&alice.db, &id, "leafId", None).unwrap();
    let mut pages = 0;
    let mut before: Option<String> = None;
    loop {
        let start = || match &before {
            None => WalkStart::At(leaf.unwrap_or(0)),
            Some(cursor) => {
                let seq = HistoryCursor::parse(cursor)
                    .unwrap()
                    .resolve(&alice.db, &id)
                    .unwrap();
                WalkStart::within(&alice.db, &id, seq, leaf).unwrap()
            }
        };
        if matches!(start(), WalkStart::At(0)) {
            return pages;
        }
        let text = |page: Result<MessagePage>| page.unwrap().into_json().into_string();
        let pages_in = |form| {
            let ask = PageAsk {
                limit,
                max_bytes,
                form,
            };
            let walked = text(walk_page(&alice.db, &id, start(), ask).map(MessagePage::Read));
            let mut made = vec![text(load_page(&alice.db, &id, start(), ask))];
            if before.is_none() {
                let newest = load_newest(&alice.db, &id, ask).unwrap().unwrap();
                made.push(newest.into_json().into_string());
            }
            for made in made {
                assert!(
                    made == walked,
                    "{game}: {limit} {max_bytes} {before:?}\n{made:.2000}\n{walked:.2000}"
                );
            }
            serde_json::from_str::<Value>(&walked).unwrap()
        };
        let page = pages_in(PageForm::History);
        assert_eq!(pages_in(PageForm::List), page["messages"], "{game}");
        pages += 1;
        match page["cursor"].as_str() {
            Some(cursor) => before = Some(cursor.to_owned()),
            None => return pages,
        }
    }
}

#[test]
fn a_page_is_the_same_however_it_is_made() {
    let mut pages = 0;
    for seed in 1..=GAMES {
        let mut dice = Dice(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        let alice = Alice::with_session();
        // Some logs hold only plain events, some all but branches, some all.
        let kinds = [5, 9, 14, 15][dice.roll(4)];
        for number in 1..=1 + dice.roll(90) {
            append(&alice, &mut dice, number, kinds);
        }
        for _ in 0..4 {
            let limit = [1, 2, 1 + dice.roll(30), 64, 65, 1000][dice.roll(6)];
            let max_bytes = [1, 400 + dice.roll(4_000), 40_000, 4 << 20, 32 << 20][dice.roll(5)];
            pages += compare(
                &alice,
                limit,
                max_bytes,
                &format!("seed {seed}, {kinds} kinds"),
            );
        }
    }
    assert!(pages > 400, "{pages}");
}

#[test]
fn a_long_session_comes_in_several_pieces() {
    let alice = Alice::with_session();
    for length in [10, 2_000, 30_000] {
        let events: Vec<Value> = (0..100)
            .map(|_| json!({"action": "user_message", "content": "é\"".repeat(length / 3)}))
            .collect();
        alice.ok("appendEvents", json!({"sessionId": "s", "events": events}));
        for limit in [64, 65, 200, 1000] {
            for max_bytes in [100_000, 32 << 20] {
                compare(&alice, limit, max_bytes, "long");
            }
        }
    }
}

#[test]
fn a_damaged_message_is_named_and_spares_the_others() {
    let alice = Alice::with_session();
    for number in 1..=3 {
        let message = json!({"id": format!("m{number}"), "role": "user", "parts": [{"type": "text", "text": "Hi"}]});
        alice.ok(
            "appendMessage",
            json!({"sessionId": "s", "message": message}),
        );
    }
    for damage in [
        "",
        "nonsense",
        r#""role":"user","parts":["#,
        r#""a":1}, {"b":2"#,
        "a:1",
    ] {
        let damage = [damage.into()];
        alice
            .db
            .run(
                "UPDATE cf_agents_events SET message = ?1 WHERE seq = 2",
                &damage,
            )
            .unwrap();
        let error = alice
            .call("getHistory", json!({"sessionId": "s"}))
            .unwrap_err();
        assert_eq!(
            (error.code.name(), &error.details()["id"]),
            ("corrupt_row", &json!("m2")),
            "{damage:?}"
        );
        let newest = alice.ok("getHistory", json!({"sessionId": "s", "limit": 1}));
        assert_eq!(newest["messages"][0]["id"], "m3");
    }
}

#[test]
fn a_damaged_page_says_what_a_walk_says() {
    let mut refused = 0;
    let id = Id::parse("s".to_owned()).unwrap();
    for seed in 1..=GAMES * 4 {
        let mut dice = Dice(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        let alice = Alice::with_session();
        let kinds = [5, 9, 14, 15][dice.roll(4)];
        for number in 1..=1 + dice.roll(40) {
            append(&alice, &mut dice, number, kinds);
        }
        let ids = ids(&alice);
        if ids.is_empty() {
            continue;
        }
        let damage = [
            "",
            r#""role":"user","parts":["#,
            r#""a":1}, {"b":2"#,
            r#""role":"user","parts":[{"type":"text","text":"a"b"}]"#,
            "\"role\":\"user\",\"parts\":[{\"type\":\"text\",\"text\":\"a\nb\"}]",
        ][dice.roll(5)];
        let sql = "UPDATE cf_agents_events SET message = ?1 WHERE id = ?2";
        let doomed = ids[dice.roll(ids.len())].as_str();
        alice.db.run(sql, &[damage.into(), doomed.into()]).unwrap();
        for limit in [1, 1 + dice.roll(40), 1000] {
            let ask = PageAsk {
                limit,
                max_bytes: [1, 1_000, 4 << 20][dice.roll(3)],
                form: PageForm::History,
            };
            let text = |page: Result<MessagePage>| {
                page.map(|page| page.into_json().into_string())
                    .map_err(|error| error.body())
            };
            let leaf = resolve_leaf(&alice.db, &id, "leafId", None).unwrap();
            let start = || WalkStart::At(leaf.unwrap());
            let walked = text(walk_page(&alice.db, &id, start(), ask).map(MessagePage::Read));
            assert_eq!(
                text(load_page(&alice.db, &id, start(), ask)),
                walked,
                "{seed}"
            );
            let newest = load_newest(&alice.db, &id, ask).map(Option::unwrap);
            assert_eq!(text(newest), walked, "{seed}");
            refused += i32::from(walked.is_err());
        }
    }
    assert!(refused > 50, "{refused}");
}

#[test]
fn a_page_with_a_missing_row_is_refused() {
    let alice = Alice::with_session();
    alice.say(&["1", "2", "3"]);
    Delete::from(EVENTS, "seq = 2", &[]).run(&alice.db).unwrap();
    assert_eq!(
        alice.refused("getHistory", json!({"sessionId": "s"})),
        "storage_failed"
    );
}
