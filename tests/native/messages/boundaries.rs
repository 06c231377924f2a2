//! The stored boundaries of messages, compared after any writes with boundaries computed from the
//! whole tree and all summaries.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::Alice;
use crate::shared::long::games;
use base::action::{Action, StoredAction};
use base::columns::{FromRow, load, load_values};
use base::database::Row;
use base::error::Error;
use base::testing::Dice;

/// The games of the quick and of the long form.
const GAMES: (u64, u64) = (100, 400);
const MOVES: usize = 24;

/// The properties that split a run at an event, read without the code under test.
struct Node {
    seq: i64,
    parent_seq: i64,
    is_member: bool,
    is_result: bool,
    splits_run: bool,
}

impl FromRow<'_> for Node {
    fn from_row(row: &Row) -> Result<Self, Error> {
        let action = StoredAction::parse(row.text(2)?);
        let is_agents = matches!(&action, StoredAction::Known(action) if action.is_agents());
        Ok(Self {
            seq: row.integer(0)?,
            parent_seq: row.integer(1)?,
            is_member: is_agents && row.find_text(3).is_none(),
            is_result: action == Action::ToolResult,
            splits_run: row.integer(4)? == 1,
        })
    }
}

fn nodes(alice: &Alice, session_id: &str) -> Vec<Node> {
    let sql = "SELECT seq, parent_seq, action, message, splits_run
                 FROM cf_agents_events
                WHERE session_id = ?1
                ORDER BY seq";
    load(&alice.db, sql, &[session_id.into()]).unwrap()
}

/// The numbers of the events that split a run, event by event.
fn expected(alice: &Alice, session_id: &str, nodes: &[Node]) -> Vec<i64> {
    let sql = "SELECT from_seq, to_seq FROM cf_agents_compactions WHERE session_id = ?1";
    let summaries: Vec<(i64, i64)> = load(&alice.db, sql, &[session_id.into()]).unwrap();
    let by_seq: BTreeMap<i64, &Node> = nodes.iter().map(|node| (node.seq, node)).collect();
    let splits = |node: &&Node| {
        let is_below_member = by_seq
            .get(&node.parent_seq)
            .is_some_and(|parent| parent.is_member);
        let has_other = nodes.iter().any(|other| {
            other.parent_seq == node.parent_seq
                && other.seq != node.seq
                && (!node.is_result || other.is_member)
        });
        let is_cut = summaries
            .iter()
            .any(|(from_seq, to_seq)| *to_seq == node.parent_seq || *from_seq == node.seq);
        node.is_member && is_below_member && (has_other || is_cut)
    };
    nodes.iter().filter(splits).map(|node| node.seq).collect()
}

/// Compares all sessions; returns how many events split a run.
fn compare(alice: &Alice, game: &str) -> usize {
    let sql = "SELECT DISTINCT session_id FROM cf_agents_events";
    let mut count = 0;
    for session_id in load_values::<String>(&alice.db, sql, &[]).unwrap() {
        let nodes = nodes(alice, &session_id);
        let stored = nodes.iter().filter(|node| node.splits_run);
        let stored: Vec<i64> = stored.map(|node| node.seq).collect();
        assert_eq!(
            stored,
            expected(alice, &session_id, &nodes),
            "{game}, {session_id}"
        );
        count += stored.len();
    }
    count
}

fn event(dice: &mut Dice) -> Value {
    match dice.roll(6) {
        0 => json!({"action": "user_message", "content": "?"}),
        1 => {
            json!({"action": "tool_call_request", "toolCalls": [{"id": "c", "name": "t", "arguments": {}}]})
        }
        2 | 3 => {
            json!({"action": "tool_result", "toolCallId": "c", "toolName": "t", "content": "r"})
        }
        _ => json!({"action": "agent_message", "content": "!"}),
    }
}

/// An append whose events may have any parent, including each other.
fn append(alice: &Alice, dice: &mut Dice, known: &[Value], game: &str) {
    let mut named: Vec<Value> = known.to_vec();
    let mut events: Vec<Value> = (0..1 + dice.roll(4)).map(|_| event(dice)).collect();
    for (index, event) in events.iter_mut().enumerate() {
        if dice.roll(2) == 0 {
            event["id"] = json!(format!("{game}-{index}"));
        }
        if dice.roll(4) == 0 && !named.is_empty() {
            event["parentId"] = named[dice.roll(named.len())].clone();
        }
        named.extend(event.get("id").cloned());
    }
    let mut body = json!({"sessionId": "s", "events": events});
    if dice.roll(2) == 0 && !known.is_empty() {
        body["parentId"] = known[dice.roll(known.len())].clone();
    }
    alice.ok("appendEvents", body);
}

/// One move in session `s`. The host's clock advances by a day, for retention.
fn play(alice: &Alice, dice: &mut Dice, game: &str) {
    alice.host.advance(24 * 60 * 60 * 1000);
    let known: Vec<Value> = alice
        .events()
        .iter()
        .map(|event| event["id"].clone())
        .collect();
    let any = |dice: &mut Dice| known[dice.roll(known.len())].clone();
    match dice.roll(20) {
        0..=7 => append(alice, dice, &known, game),
        _ if known.is_empty() => append(alice, dice, &known, game),
        8 => {
            let message = json!({"role": "assistant", "parts": [{"type": "text", "text": "m"}]});
            let body = json!({"sessionId": "s", "parentId": any(dice), "message": message});
            alice.ok("appendMessage", body);
        }
        9 | 10 => {
            let some: Vec<Value> = (0..1 + dice.roll(3)).map(|_| any(dice)).collect();
            alice.ok("deleteEvents", json!({"sessionId": "s", "eventIds": some}));
        }
        11 => {
            let body = json!({"sessionId": "s", "messageIds": [any(dice)]});
            alice.ok("deleteMessages", body);
        }
        12 | 13 => {
            let parts = json!([{"type": "text", "text": game}]);
            let message = json!({"id": any(dice), "role": "assistant", "parts": parts});
            let body = json!({"sessionId": "s", "message": message});
            // An event inside a run is no message.
            drop(alice.call("updateMessage", body));
        }
        14 | 15 => {
            let (from, to) = (any(dice), any(dice));
            let from = if dice.roll(2) == 0 { to.clone() } else { from };
            let body = json!({"sessionId": "s", "summary": "S", "fromId": from, "toId": to});
            // The two events may be on different paths.
            drop(alice.call("addCompaction", body));
        }
        16 | 17 => {
            let listed = alice.ok("getCompactions", json!({"sessionId": "s"}));
            let listed = listed["compactions"].as_array().unwrap();
            if !listed.is_empty() {
                let id = &listed[dice.roll(listed.len())]["id"];
                alice.ok(
                    "deleteCompaction",
                    json!({"sessionId": "s", "compactionId": id}),
                );
            }
        }
        18 => {
            if dice.roll(2) == 0 {
                alice.ok("setLeaf", json!({"sessionId": "s", "id": any(dice)}));
            } else {
                alice.ok("forkSession", json!({"sessionId": "s", "atId": any(dice)}));
            }
        }
        _ => match dice.roll(3) {
            0 => drop(alice.import(&format!("import-{game}"), &alice.export("s").unwrap())),
            1 => {
                let body = json!({"sessionId": "s", "retention": {"eventsDays": 15}});
                while alice.ok("applyRetention", body.clone())["complete"] != true {}
            }
            _ if dice.roll(4) == 0 => drop(alice.ok("clearMessages", json!({"sessionId": "s"}))),
            _ => {}
        },
    }
}

#[test]
fn stored_boundaries_match_the_tree_after_random_writes() {
    let mut splits = 0;
    let games = games(GAMES.0, GAMES.1);
    for seed in 1..=games {
        let mut dice = Dice(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        let alice = Alice::with_session();
        for turn in 0..MOVES {
            let game = format!("g{seed}-{turn}");
            play(&alice, &mut dice, &game);
            splits += compare(&alice, &game);
        }
        if seed % 10 == 0 {
            alice.assert_consistent(&format!("game {seed}"));
        }
    }
    assert!(splits > 25 * games as usize, "{splits}");
}
