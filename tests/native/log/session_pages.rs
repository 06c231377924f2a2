//! A listing that is read in pages during concurrent writes returns the same sessions as one read
//! of all.

use serde_json::{Value, json};

use crate::{Alice, ids};
use base::columns::load;
use base::database::Database;
use base::testing::Dice;
use conversation::log::sessions::ACTIVE_AT;
use conversation::session::activity::{IS_OUTSIDE_WINDOW, WINDOW};

const GAMES: u64 = 40;

/// All sessions with when they were active and their numbers, newest first.
fn all(alice: &Alice) -> Vec<(i64, i64, String)> {
    let sql = format!(
        "SELECT active_at, number, id
           FROM (SELECT {ACTIVE_AT} AS active_at, s.number, s.id FROM cf_agents_sessions AS s)
          ORDER BY active_at DESC, number DESC"
    );
    load(&alice.db, &sql, &[]).unwrap()
}

/// The page after `cursor`, and whether more sessions follow.
fn expected(alice: &Alice, limit: usize, cursor: &Value) -> (Vec<String>, bool) {
    let mut sessions = all(alice);
    if let Some(cursor) = cursor.as_str() {
        let mut parts = cursor.split('-').map(|part| part.parse::<i64>());
        let place = (
            parts.next().unwrap().unwrap(),
            parts.next().unwrap().unwrap(),
        );
        sessions.retain(|(active_at, number, _)| (*active_at, *number) < place);
    }
    let page = sessions.iter().take(limit).map(|(_, _, id)| id.clone());
    (page.collect(), sessions.len() > limit)
}

fn write(alice: &Alice, dice: &mut Dice) {
    alice.host.advance(dice.roll(2) as i64);
    let sessions = all(alice);
    let (_, _, id) = &sessions[dice.roll(sessions.len())];
    match dice.roll(8) {
        0 => drop(alice.ok("createSession", json!({}))),
        1 => drop(alice.ok("deleteSession", json!({"sessionId": id}))),
        2 => drop(alice.ok("updateSession", json!({"sessionId": id, "name": "renamed"}))),
        3 => {
            // A session that is recreated with its former activity.
            let file = alice.export(id).unwrap();
            alice.ok("deleteSession", json!({"sessionId": id}));
            alice.import(&format!("{id}-again"), &file).unwrap();
        }
        _ => {
            let event = json!({"action": "user_message", "content": "x"});
            alice.ok("appendEvents", json!({"sessionId": id, "events": [event]}));
        }
    }
    if all(alice).is_empty() {
        alice.ok("createSession", json!({}));
    }
}

#[test]
fn pages_match_the_whole_list() {
    let mut pages = 0;
    for seed in 1..=GAMES {
        let mut dice = Dice(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        let alice = Alice::default();
        for _ in 0..1 + dice.roll(60) {
            alice.host.advance(dice.roll(2) as i64);
            alice.ok("createSession", json!({}));
        }
        for _ in 0..6 {
            let limit = 1 + dice.roll(7);
            let is_busy = dice.roll(2) == 0;
            let mut cursor = Value::Null;
            loop {
                let (sessions, has_more) = expected(&alice, limit, &cursor);
                let page = alice.ok("listSessions", json!({"limit": limit, "cursor": cursor}));
                assert_eq!(
                    ids(&page["sessions"]),
                    sessions,
                    "seed {seed} {cursor} {:?}",
                    all(&alice)
                );
                assert_eq!(page["cursor"].is_string(), has_more, "seed {seed}");
                pages += 1;
                cursor = page["cursor"].clone();
                if cursor.is_null() {
                    break;
                }
                for _ in 0..dice.roll(4) * usize::from(is_busy) {
                    write(&alice, &mut dice);
                }
                // A cursor of an older build names no sessions.
                if dice.roll(10) == 0 {
                    let text = cursor.as_str().unwrap();
                    let parts: Vec<&str> = text.split('-').take(2).collect();
                    cursor = json!(parts.join("-"));
                }
            }
        }
    }
    assert!(pages > 1_000, "{pages}");
}

#[test]
fn paging_a_long_list_reads_few_sessions_twice() {
    let steps_of = |count: usize| {
        let alice = Alice::default();
        for _ in 0..count {
            alice.host.advance(1);
            alice.ok("createSession", json!({}));
        }
        alice.db.take_steps();
        let mut cursor = Value::Null;
        let mut listed = 0;
        loop {
            let page = alice.ok("listSessions", json!({"limit": 10, "cursor": cursor}));
            listed += ids(&page["sessions"]).len();
            cursor = page["cursor"].clone();
            if cursor.is_null() {
                break;
            }
        }
        assert_eq!(listed, count);
        f64::from(alice.db.take_steps()) / count as f64
    };
    // Reading all sessions for each page would read nine times as many.
    let [short, long] = [90, 900].map(steps_of);
    assert!(long < 4.0 * short, "{short} and {long} a session");
}

/// A session outside the window has its activity in its row, and the window stays small.
fn assert_settled(alice: &Alice, case: &str) {
    let sql = format!(
        "SELECT count(*) FILTER (WHERE {IS_OUTSIDE_WINDOW} AND s.settled_at <> {ACTIVE_AT}),
                count(*) FILTER (WHERE NOT coalesce({IS_OUTSIDE_WINDOW}, 0))
           FROM cf_agents_sessions AS s"
    );
    let rows = alice.db.rows(&sql, &[]).unwrap();
    assert_eq!(rows[0].integer(0).unwrap(), 0, "{case}");
    let window = rows[0].integer(1).unwrap();
    assert!(window <= 2 * WINDOW, "{case}: {window}");
}

/// More sessions than the window has, written to in any order, by a clock that may jump.
#[test]
fn pages_of_many_sessions_match_the_whole_list() {
    let mut pages = 0;
    for seed in 1..=5_u64 {
        let mut dice = Dice(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        let alice = Alice::default();
        alice.host.advance(1_000_000_000);
        for _ in 0..150 + dice.roll(150) {
            alice.host.advance(dice.roll(3) as i64);
            alice.ok("createSession", json!({}));
        }
        for round in 0..8 {
            let case = format!("seed {seed}, round {round}");
            if dice.roll(4) == 0 {
                let jump = 1 << dice.roll(29);
                alice.host.advance([jump, -jump][dice.roll(2)]);
            }
            for _ in 0..dice.roll(120) {
                write(&alice, &mut dice);
            }
            assert_settled(&alice, &case);
            let limit = 1 + dice.roll(90);
            let is_busy = dice.roll(2) == 0;
            let mut cursor = Value::Null;
            loop {
                let (sessions, has_more) = expected(&alice, limit, &cursor);
                let page = alice.ok("listSessions", json!({"limit": limit, "cursor": cursor}));
                assert_eq!(ids(&page["sessions"]), sessions, "{case} {cursor}");
                assert_eq!(page["cursor"].is_string(), has_more, "{case}");
                pages += 1;
                cursor = page["cursor"].clone();
                if cursor.is_null() {
                    break;
                }
                for _ in 0..dice.roll(3) * usize::from(is_busy) {
                    write(&alice, &mut dice);
                }
            }
        }
        alice.assert_consistent(&format!("seed {seed}"));
    }
    assert!(pages > 100, "{pages}");
}
