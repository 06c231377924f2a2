//! A page is identical to the byte whether SQLite builds it or it is read event by event. The logs
//! are random and contain everything that prevents the fast path.

use serde_json::{Value, json};

use super::random_play::Dice;
use crate::Alice;
use crate::shared::long::games;
pub use crate::shared::random_logs::{append, ids};
use base::database::{Database as _, Delete};
use base::error::Result;
use base::ids::Id;
use conversation::messages::history::{MessagePage, WalkStart, load_newest, load_page, walk_page};
use conversation::messages::page::{HistoryCursor, PageForm, PageQuery};
use conversation::messages::tree::leaf::resolve_leaf;
use conversation::tables::EVENTS;

/// The games of the quick and of the long form.
const GAMES: (u64, u64) = (10, 24);

/// Compares all pages up from the leaf; returns their number.
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
            let request = PageQuery {
                limit,
                max_bytes,
                form,
            };
            let walked = text(walk_page(&alice.db, &id, start(), request).map(MessagePage::Read));
            let mut made = vec![text(load_page(&alice.db, &id, start(), request))];
            if before.is_none() {
                let newest = load_newest(&alice.db, &id, request).unwrap().unwrap();
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
fn a_page_is_the_same_from_the_fast_and_the_slow_path() {
    let mut pages = 0;
    let games = games(GAMES.0, GAMES.1);
    for seed in 1..=games {
        let mut dice = Dice(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        let alice = Alice::with_session();
        // Some logs contain only plain events, some everything except branches, some everything.
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
    assert!(pages > 16 * games as usize, "{pages}");
}

#[test]
fn a_long_session_is_read_in_several_chunks() {
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
fn a_corrupt_message_is_named_and_others_are_readable() {
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
fn a_corrupt_page_gives_the_same_error_as_a_walk() {
    let mut refused = 0;
    let id = Id::parse("s".to_owned()).unwrap();
    for seed in 1..=games(GAMES.0, GAMES.1) * 4 {
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
        let deleted = ids[dice.roll(ids.len())].as_str();
        alice.db.run(sql, &[damage.into(), deleted.into()]).unwrap();
        for limit in [1, 1 + dice.roll(40), 1000] {
            let request = PageQuery {
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
            let walked = text(walk_page(&alice.db, &id, start(), request).map(MessagePage::Read));
            assert_eq!(
                text(load_page(&alice.db, &id, start(), request)),
                walked,
                "{seed}"
            );
            let newest = load_newest(&alice.db, &id, request).map(Option::unwrap);
            assert_eq!(text(newest), walked, "{seed}");
            refused += u64::from(walked.is_err());
        }
    }
    assert!(refused > games(40, 50), "{refused}");
}

#[test]
fn a_page_with_a_missing_row_is_refused() {
    let alice = Alice::with_session();
    alice.append_texts(&["1", "2", "3"]);
    Delete::from(EVENTS, "seq = 2", &[]).run(&alice.db).unwrap();
    assert_eq!(
        alice.refused("getHistory", json!({"sessionId": "s"})),
        "storage_failed"
    );
}
