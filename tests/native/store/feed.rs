//! The change feed: a client that follows it ends with the session's current contents, whenever and
//! however slowly it reads.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::shared::long::games;
use crate::{Alice, ids};
use base::database::Database;
use base::numbers::MAX_FILE_SEQ;
use base::testing::Dice;

/// A client with a copy of session `s` that reads only the feed.
#[derive(Default)]
struct Follower {
    cursor: i64,
    messages: BTreeMap<String, Value>,
    events: BTreeMap<String, Value>,
    compactions: BTreeMap<String, Value>,
    /// The cursors that the client received since its copy was last empty.
    seen: Vec<i64>,
    restarts: usize,
}

impl Follower {
    /// Reads one page of the feed. `false`: the page was empty.
    fn follow(&mut self, alice: &Alice, limit: usize) -> bool {
        let input = json!({"sessionId": "s", "since": self.cursor, "limit": limit});
        let page = alice.ok("getChanges", input.clone());
        let changes = page["changes"].as_array().unwrap();
        assert!(changes.len() <= limit);
        for change in changes {
            self.apply_change(alice, change);
        }
        let last = changes
            .last()
            .map_or(self.cursor, |change| change["cursor"].as_i64().unwrap());
        assert_eq!(page["cursor"], last, "{input}");
        self.cursor = last;
        !changes.is_empty()
    }

    fn apply_change(&mut self, alice: &Alice, change: &Value) {
        let cursor = change["cursor"].as_i64().unwrap();
        let is_restart = change["type"] == "clear" && cursor == first_cursor(alice);
        if is_restart {
            self.restarts += 1;
            self.seen.clear();
        }
        assert!(
            self.seen.last().is_none_or(|seen| *seen < cursor),
            "cursors grow: {change}"
        );
        assert!(cursor <= base::json::MAX_INTEGER);
        self.seen.push(cursor);
        let id = change["id"].as_str().unwrap_or_default().to_owned();
        let put = |copy: &mut BTreeMap<String, Value>, found: Option<Value>| match found {
            Some(found) => drop(copy.insert(id.clone(), found)),
            None => drop(copy.remove(&id)),
        };
        match change["type"].as_str().unwrap() {
            "append" | "update" => {
                let read = json!({"sessionId": "s", "messageId": id});
                let message = alice.ok("getMessage", read);
                put(&mut self.messages, Some(message).filter(|m| !m.is_null()));
                put(&mut self.events, events(alice).remove(&id));
            }
            "delete" => {
                self.messages.remove(&id);
                self.events.remove(&id);
            }
            "clear" => {
                self.messages.clear();
                self.events.clear();
                self.compactions.clear();
            }
            "compaction" => put(&mut self.compactions, compactions(alice).remove(&id)),
            other => panic!("a type of change: {other}"),
        }
    }

    fn catch_up(&mut self, alice: &Alice, limit: usize) {
        while self.follow(alice, limit) {}
    }

    fn check(&self, alice: &Alice, case: &str) {
        let events = events(alice);
        let message = |id: &String| {
            let read = json!({"sessionId": "s", "messageId": id});
            let message = alice.ok("getMessage", read);
            (!message.is_null()).then(|| (id.clone(), message))
        };
        let messages: BTreeMap<String, Value> = events.keys().filter_map(message).collect();
        assert_eq!(self.messages, messages, "{case}");
        assert_eq!(self.events, events, "{case}");
        assert_eq!(self.compactions, compactions(alice), "{case}");
    }
}

/// The cursor before all others in this lifetime of the session.
fn first_cursor(alice: &Alice) -> i64 {
    let sql = "SELECT feed_base FROM cf_agents_sessions WHERE id = 's'";
    alice.db.rows(sql, &[]).unwrap()[0].integer(0).unwrap()
}

/// The events by id, without their parents: the place of a deleted event's children
/// follows from the rule of deletes.
fn events(alice: &Alice) -> BTreeMap<String, Value> {
    let event = |mut event: Value| {
        event.as_object_mut().unwrap().remove("parentId");
        (event["id"].as_str().unwrap().to_owned(), event)
    };
    alice.events().into_iter().map(event).collect()
}

fn compactions(alice: &Alice) -> BTreeMap<String, Value> {
    let listed = alice.ok("getCompactions", json!({"sessionId": "s"}));
    let listed = listed["compactions"].as_array().unwrap().clone();
    let id = |overlay: &Value| overlay["id"].as_str().unwrap().to_owned();
    listed
        .into_iter()
        .map(|overlay| (id(&overlay), overlay))
        .collect()
}

/// The changes after `since`, each as `type:id`, and the cursor after them.
fn changes_since(alice: &Alice, since: i64) -> (Vec<String>, i64) {
    let input = json!({"sessionId": "s", "since": since, "limit": 1000});
    let page = alice.ok("getChanges", input);
    let render = |change: &Value| {
        let id = change["id"].as_str().unwrap_or("-");
        format!("{}:{id}", change["type"].as_str().unwrap())
    };
    let changes = page["changes"].as_array().unwrap().iter().map(render);
    (changes.collect(), page["cursor"].as_i64().unwrap())
}

fn agent_message(id: &str, text: &str) -> Value {
    json!({"id": id, "action": "agent_message", "content": text})
}

fn called(id: &str) -> [Value; 2] {
    [
        json!({"id": format!("{id}-call"), "action": "tool_call_request", "content": "", "toolCalls": [{"id": id, "name": "t", "arguments": {}}]}),
        json!({"id": format!("{id}-result"), "action": "tool_result", "toolCallId": id, "toolName": "t", "content": "r"}),
    ]
}

fn user_message(id: &str) -> Value {
    json!({"id": id, "action": "user_message", "content": id})
}

fn message(id: &str, role: &str, text: &str) -> Value {
    json!({"id": id, "role": role, "parts": [{"type": "text", "text": text}]})
}

impl Alice {
    pub fn append_events(&self, events: &[Value]) {
        self.ok("appendEvents", json!({"sessionId": "s", "events": events}));
    }

    pub fn append_events_after(&self, parent: &str, events: &[Value]) {
        self.ok(
            "appendEvents",
            json!({"sessionId": "s", "parentId": parent, "events": events}),
        );
    }
}

/// A session with a question, an answer of three events, and another question.
fn with_a_run() -> Alice {
    let alice = Alice::with_session();
    let [call, result] = called("c");
    alice.append_events(&[
        user_message("u1"),
        call,
        result,
        agent_message("a", "done"),
        user_message("u2"),
    ]);
    alice
}

#[test]
fn replacing_a_run_reports_each_of_its_events() {
    let alice = with_a_run();
    let (_, cursor) = changes_since(&alice, 0);
    alice.ok(
        "updateMessage",
        json!({"sessionId": "s", "message": message("c-call", "assistant", "other")}),
    );
    assert_eq!(
        changes_since(&alice, cursor).0,
        ["update:c-call", "delete:c-result", "delete:a"]
    );
}

#[test]
fn deleting_a_run_reports_each_of_its_events() {
    let alice = with_a_run();
    let (_, cursor) = changes_since(&alice, 0);
    alice.ok(
        "deleteMessages",
        json!({"sessionId": "s", "messageIds": ["u2", "c-call"]}),
    );
    assert_eq!(
        changes_since(&alice, cursor).0,
        ["delete:u2", "delete:c-call", "delete:c-result", "delete:a"]
    );
}

#[test]
fn deleting_events_of_a_run_reports_its_message() {
    let table = [
        // An event in the middle of the run, its last event, and its first, whose deletion changes
        // the id of the message.
        (vec!["c-result"], vec!["delete:c-result", "update:c-call"]),
        (vec!["a"], vec!["delete:a", "update:c-call"]),
        (vec!["c-call"], vec!["delete:c-call", "update:c-result"]),
        // The message between two runs: the second run becomes a part of the first.
        (vec!["u2"], vec!["delete:u2", "update:c-call", "update:b"]),
        // A message of one event.
        (vec!["u1"], vec!["delete:u1"]),
    ];
    for (deleted, expected) in table {
        let alice = with_a_run();
        alice.append_events(&[agent_message("b", "more")]);
        let (_, cursor) = changes_since(&alice, 0);
        alice.ok(
            "deleteEvents",
            json!({"sessionId": "s", "eventIds": deleted}),
        );
        assert_eq!(changes_since(&alice, cursor).0, expected, "{deleted:?}");
    }
}

#[test]
fn events_appended_to_a_run_report_its_message_once_per_append() {
    let alice = with_a_run();
    assert_eq!(
        changes_since(&alice, 0).0,
        [
            "append:u1",
            "append:c-call",
            "append:c-result",
            "update:c-call",
            "append:a",
            "append:u2"
        ]
    );
    let (_, cursor) = changes_since(&alice, 0);
    alice.append_events(&[agent_message("b", "1")]);
    assert_eq!(changes_since(&alice, cursor).0, ["append:b"]);
    alice.append_events(&[agent_message("b2", "2")]);
    let (changes, end) = changes_since(&alice, cursor);
    assert_eq!(changes, ["append:b", "update:b", "append:b2"]);
    // Pages of one change lead to the same end as one page.
    let mut follower = Follower::default();
    follower.catch_up(&alice, 1);
    assert_eq!(follower.seen.len(), 8 + 1);
    assert_eq!(follower.cursor, end);
    follower.check(&alice, "by ones");
}

/// The result joins the call's message, and a user's message is its sibling.
#[test]
fn a_late_result_has_its_own_cursors() {
    let alice = Alice::with_session();
    let [call, result] = called("c");
    alice.append_events(&[user_message("u"), call, user_message("v")]);
    alice.append_events_after("c-call", &[result]);
    let expected = [
        "append:u",
        "append:c-call",
        "append:v",
        "update:c-call",
        "update:v",
        "append:c-result",
    ];
    assert_eq!(changes_since(&alice, 0).0, expected);
    for limit in 1..=6 {
        let mut follower = Follower::default();
        follower.catch_up(&alice, limit);
        assert_eq!(follower.seen.len(), expected.len(), "by {limit}");
        follower.check(&alice, "a late result");
    }
}

#[test]
fn a_run_too_long_for_a_message_is_reported_within_bounds() {
    let alice = Alice::with_session();
    for batch in 0..3 {
        let run: Vec<Value> = (0..900)
            .map(|n| agent_message(&format!("{batch}-{n}"), "x"))
            .collect();
        alice.append_events(&run);
    }
    let (_, cursor) = changes_since(&alice, 0);
    assert_eq!(changes_since(&alice, cursor).0.len(), 1000);
    alice.append_events(&[agent_message("last", "x")]);
    // The message that began at this cursor ended long before.
    let (changes, _) = changes_since(&alice, 2_700 << 20);
    assert_eq!(changes, ["append:last"]);
}

#[test]
fn deleting_a_run_keeps_events_written_in_between() {
    let alice = Alice::with_session();
    let [call, result] = called("c");
    alice.append_events(&[user_message("u1"), call]);
    alice.append_events_after("u1", &[user_message("elsewhere")]);
    alice.append_events_after("c-call", &[result]);
    alice.ok(
        "deleteMessages",
        json!({"sessionId": "s", "messageIds": ["c-call"]}),
    );
    assert_eq!(ids(&json!(alice.events())), ["u1", "elsewhere"]);

    let alice = Alice::with_session();
    let [call, result] = called("c");
    alice.append_events(&[user_message("u1"), call]);
    alice.append_events_after("u1", &[user_message("elsewhere")]);
    alice.append_events_after("c-call", &[result]);
    alice.ok(
        "updateMessage",
        json!({"sessionId": "s", "message": message("c-call", "assistant", "other")}),
    );
    assert_eq!(ids(&json!(alice.events())), ["u1", "c-call", "elsewhere"]);
}

#[test]
fn a_moved_overlay_is_reported() {
    let alice = Alice::with_session();
    alice.append_events(&["1", "2", "3", "4"].map(user_message));
    let cover = json!({"sessionId": "s", "summary": "S", "fromId": "2", "toId": "3"});
    let overlay = alice.ok("addCompaction", cover);
    let overlay = format!("compaction:{}", overlay["id"].as_str().unwrap());
    let (_, cursor) = changes_since(&alice, 0);
    alice.ok("deleteEvents", json!({"sessionId": "s", "eventIds": ["3"]}));
    let (changes, cursor) = changes_since(&alice, cursor);
    assert_eq!(changes, ["delete:3", &overlay]);
    // All covered messages are deleted, and the overlay with them.
    alice.ok("deleteEvents", json!({"sessionId": "s", "eventIds": ["2"]}));
    assert_eq!(changes_since(&alice, cursor).0, ["delete:2", &overlay]);
    assert_eq!(compactions(&alice), BTreeMap::new());
}

#[test]
fn a_forks_feed_reports_its_overlays() {
    let alice = Alice::with_session();
    alice.append_events(&["1", "2", "3", "4"].map(user_message));
    let cover = json!({"sessionId": "s", "summary": "S", "fromId": "2", "toId": "3"});
    alice.ok("addCompaction", cover);
    let fork = alice.ok("forkSession", json!({"sessionId": "s"}));
    let changes = alice.ok("getChanges", json!({"sessionId": fork["id"]}));
    let types: Vec<&Value> = changes["changes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|change| &change["type"])
        .collect();
    assert_eq!(
        types,
        ["append", "append", "append", "append", "compaction"]
    );
}

#[test]
fn a_cursor_of_an_earlier_lifetime_restarts_the_feed() {
    let alice = Alice::with_session();
    alice.append_events(&["1", "2", "3"].map(user_message));
    let (_, mut old) = changes_since(&alice, 0);
    let mut given = vec![1, 1 << 20, (1 << 20) + 1, 3 << 20, old];
    for lifetimes in 1..=5 {
        alice.ok("deleteSession", json!({"sessionId": "s"}));
        alice.ok("createSession", json!({"id": "s"}));
        assert_eq!(changes_since(&alice, 0), (vec![], 0));
        assert_eq!(
            changes_since(&alice, old),
            (vec!["clear:-".to_owned()], first_cursor(&alice))
        );
        alice.append_events(&["1", "2", "3", "4", "5"].map(user_message));
        alice.ok(
            "updateMessage",
            json!({"sessionId": "s", "message": message("1", "user", "new")}),
        );
        let (all, newest) = changes_since(&alice, 0);
        assert_eq!(all.len(), 6, "lifetime {lifetimes}");
        // Every cursor of earlier lifetimes, and cursors that were never issued.
        let never_issued = [newest + 1, base::json::MAX_INTEGER];
        for cursor in given.iter().copied().chain(never_issued) {
            let (changes, end) = changes_since(&alice, cursor);
            assert_eq!(changes[0], "clear:-", "lifetime {lifetimes}, {cursor}");
            assert_eq!(
                (&changes[1..], end),
                (&all[..], newest),
                "lifetime {lifetimes}, {cursor}"
            );
        }
        assert_eq!(changes_since(&alice, first_cursor(&alice)).0, all);
        assert_eq!(changes_since(&alice, newest).0.len(), 0);
        old = newest;
        let page = alice.ok("getChanges", json!({"sessionId": "s"}));
        let cursors = page["changes"].as_array().unwrap().iter();
        given.extend(cursors.map(|change| change["cursor"].as_i64().unwrap()));
    }
}

#[test]
fn a_restored_session_has_a_new_lifetime() {
    let alice = Alice::with_session();
    alice.append_events(&["1", "2", "3"].map(user_message));
    let file = alice.export("s").unwrap();
    let mut early = Follower::default();
    early.catch_up(&alice, 2);
    alice.append_events(&["4", "5"].map(user_message));
    alice.ok("deleteSession", json!({"sessionId": "s"}));
    alice.import("s", &file).unwrap();
    alice.append_events(&["6", "7", "8"].map(user_message));
    early.catch_up(&alice, 1);
    early.check(&alice, "from before");
    let mut late = Follower::default();
    late.catch_up(&alice, 2);
    late.check(&alice, "imported");
    assert_eq!((early.restarts, late.restarts), (1, 0));
    // In an agent that never had such a session, a reader continues.
    let bob = Alice::default();
    bob.import("s", &file).unwrap();
    assert_eq!(changes_since(&bob, 3 << 20), (vec![], 3 << 20));
}

/// A file with this `seq` for its last event, and this one before the next append.
fn file_up_to(file: &str, seq: i64) -> String {
    let last = file
        .lines()
        .rfind(|line| line.contains(r#""type":"event""#));
    let last: Value = serde_json::from_str(last.unwrap()).unwrap();
    file.replacen(
        &format!(r#""seq":{}"#, last["seq"]),
        &format!(r#""seq":{seq}"#),
        1,
    )
}

#[test]
fn imports_and_deletions_appear_only_in_their_sessions_feed() {
    let alice = Alice::with_session();
    alice.append_events(&["1", "2"].map(user_message));
    let file = alice.export("s").unwrap();
    let mut follower = Follower::default();
    follower.catch_up(&alice, 2);
    let before = changes_since(&alice, 0);
    for seq in [MAX_FILE_SEQ, MAX_FILE_SEQ - 1, 1 << 20, 3] {
        for _ in 0..3 {
            alice.import("other", &file_up_to(&file, seq)).unwrap();
            alice.ok("deleteSession", json!({"sessionId": "other"}));
            alice.append_events(&[agent_message("said", "x")]);
            follower.catch_up(&alice, 2);
            follower.check(&alice, "beside an import");
            alice.ok(
                "deleteEvents",
                json!({"sessionId": "s", "eventIds": ["said"]}),
            );
        }
    }
    assert_eq!(changes_since(&alice, 0).0[..2], before.0[..]);
    // And with the session deleted and recreated in the meantime.
    let mut other = Follower {
        cursor: follower.cursor,
        ..Follower::default()
    };
    alice.ok("deleteSession", json!({"sessionId": "s"}));
    alice
        .import("other", &file_up_to(&file, MAX_FILE_SEQ))
        .unwrap();
    alice.ok("deleteSession", json!({"sessionId": "other"}));
    alice.ok("createSession", json!({"id": "s"}));
    alice.append_events(&["3", "4", "5"].map(user_message));
    for follower in [&mut follower, &mut other] {
        follower.catch_up(&alice, 2);
        follower.check(&alice, "in the next life");
        assert_eq!(follower.restarts, 1);
    }
}

#[test]
fn a_million_changes_without_an_append_keep_cursors_ordered() {
    let alice = Alice::with_session();
    alice.append_events(&["1", "2"].map(user_message));
    // As after 2^20 - 3 changes.
    alice
        .db
        .run(
            "INSERT INTO cf_agents_changes (session_id, cursor, type, id, changed_at, number)
             VALUES ('s', ?1, 'update', '1', 1, 1048573)",
            &[((3 << 20) - 4_i64).into()],
        )
        .unwrap();
    let mut follower = Follower::default();
    follower.catch_up(&alice, 10);
    for n in 0..5 {
        alice.ok(
            "updateMessage",
            json!({"sessionId": "s", "message": message("1", "user", &format!("{n}"))}),
        );
        if n % 2 == 0 {
            alice.append_events(&[agent_message(&format!("a{n}"), "x")]);
        }
        follower.catch_up(&alice, 10);
    }
    follower.check(&alice, "every step");
    let mut late = Follower::default();
    late.catch_up(&alice, 1);
    late.check(&alice, "late");
}

#[test]
fn the_feed_keeps_only_the_newest_change_of_a_message() {
    let alice = Alice::with_session();
    alice.append_events(&["1", "2", "3"].map(user_message));
    let (_, start) = changes_since(&alice, 0);
    alice.ok("deleteEvents", json!({"sessionId": "s", "eventIds": ["3"]}));
    let mut slow = Follower {
        cursor: start,
        ..Follower::default()
    };
    for n in 0..10_000 {
        alice.ok(
            "updateMessage",
            json!({"sessionId": "s", "message": message("1", "user", &format!("{n}"))}),
        );
    }
    let rows = |sql: &str| alice.db.rows(sql, &[]).unwrap()[0].integer(0).unwrap();
    let stored = rows("SELECT count(*) FROM cf_agents_changes");
    assert!(stored <= 2_000, "{stored}");
    slow.catch_up(&alice, 1000);
    assert!(slow.messages.len() == 1 && slow.seen.len() <= 2_000);
    let deletes = rows("SELECT count(*) FROM cf_agents_changes WHERE type = 'delete'");
    assert_eq!(deletes, 1);
}

#[test]
fn a_feed_reader_converges_on_the_session() {
    for seed in 1..=games(12, 40) {
        play(seed, 24);
    }
}

/// How many changes the followers of a game request at once.
const LIMITS: [usize; 4] = [1, 2, 3, 100];

/// Random moves in a session, with a client for each limit that follows the feed from the
/// beginning, one that reads after every move, and others that join at any time.
fn play(seed: u64, moves: usize) {
    let alice = Alice::with_session();
    let mut dice = Dice(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15));
    let mut quick = Follower::default();
    let mut slow: Vec<(Follower, usize)> = LIMITS
        .map(|limit| (Follower::default(), limit))
        .into_iter()
        .collect();
    for turn in 0..moves {
        let game = format!("game {seed}, move {turn}");
        let there = ids(&json!(alice.events()));
        let any = |dice: &mut Dice| there.get(dice.roll(there.len().max(1))).cloned();
        let [call, result] = called(&format!("c{turn}"));
        let run = [call, result, agent_message(&format!("a{turn}"), "done")];
        match (dice.roll(20), any(&mut dice)) {
            (0 | 1, _) => alice.append_events(&[user_message(&format!("u{turn}"))]),
            (2..=4, _) => alice.append_events(&run[..1 + dice.roll(3)]),
            (5 | 6, Some(parent)) => alice.append_events_after(&parent, &run[dice.roll(2)..]),
            (7, Some(parent)) => {
                let body = json!({"sessionId": "s", "parentId": parent, "message": message(&format!("m{turn}"), "assistant", "m")});
                alice.ok("appendMessage", body);
            }
            (8 | 9, Some(id)) => {
                let role = ["assistant", "user"][dice.roll(2)];
                let body =
                    json!({"sessionId": "s", "message": message(&id, role, &format!("t{turn}"))});
                // A message keeps its role.
                drop(alice.call("updateMessage", body));
            }
            (10 | 11, Some(id)) => {
                let other = any(&mut dice);
                let purge = dice.roll(3) == 0;
                let body = json!({"sessionId": "s", "messageIds": [id, other], "purge": purge});
                alice.ok("deleteMessages", body);
            }
            (12 | 13, Some(id)) => {
                let other = any(&mut dice);
                let purge = dice.roll(3) == 0;
                let body = json!({"sessionId": "s", "eventIds": [id, other], "purge": purge});
                alice.ok("deleteEvents", body);
            }
            (14, Some(id)) => {
                let body = json!({"sessionId": "s", "summary": "S", "fromId": id, "toId": id});
                alice.ok("addCompaction", body);
                if let Some(id) = compactions(&alice)
                    .keys()
                    .next()
                    .filter(|_| dice.roll(3) == 0)
                {
                    let body = json!({"sessionId": "s", "compactionId": id});
                    alice.ok("deleteCompaction", body);
                }
            }
            (15, _) if dice.roll(3) == 0 => {
                alice.ok("clearMessages", json!({"sessionId": "s"}));
            }
            (15, _) => {
                // A new lifetime, empty or from a file, beside another session that is created and
                // deleted with seqs as high as a file may have.
                let file = alice.export("s").unwrap();
                let numbered = if there.is_empty() {
                    file.clone()
                } else {
                    file_up_to(&file, MAX_FILE_SEQ - dice.roll(3) as i64)
                };
                // A file's changes may come after its last event.
                if alice.import("other", &numbered).is_ok() {
                    alice.ok("deleteSession", json!({"sessionId": "other"}));
                }
                alice.ok("deleteSession", json!({"sessionId": "s"}));
                match dice.roll(2) {
                    0 => drop(alice.ok("createSession", json!({"id": "s"}))),
                    _ => drop(alice.import("s", &file).unwrap()),
                }
            }
            // A single event of any kind after any other, including a late result.
            (16.., Some(parent)) => {
                let alone = match dice.roll(4) {
                    0 => user_message(&format!("u{turn}")),
                    n => run[n - 1].clone(),
                };
                alice.append_events_after(&parent, &[alone]);
            }
            _ => {}
        }
        if turn % 6 == 5 {
            assert_ordered(&alice, &game);
        }
        quick.catch_up(&alice, 1 + dice.roll(3));
        quick.check(&alice, &game);
        for (follower, limit) in &mut slow {
            if dice.roll(4) == 0 {
                follower.follow(&alice, *limit);
            }
        }
        if dice.roll(12) == 0 {
            slow.push((Follower::default(), LIMITS[dice.roll(LIMITS.len())]));
        }
    }
    for (mut follower, limit) in slow {
        follower.catch_up(&alice, limit);
        follower.check(&alice, &format!("game {seed}, by {limit}"));
    }
    let mut late = Follower::default();
    late.catch_up(&alice, 3);
    late.check(&alice, &format!("game {seed}, late"));
    assert_eq!(late.restarts, 0);
    alice.assert_consistent(&format!("game {seed}"));
}

/// Each cursor of the feed is higher than the previous one, and pages of any size return the same.
fn assert_ordered(alice: &Alice, game: &str) {
    let page = |since: i64, limit: usize| {
        let input = json!({"sessionId": "s", "since": since, "limit": limit});
        let page = alice.ok("getChanges", input);
        page["changes"].as_array().unwrap().clone()
    };
    let cursor = |change: &Value| change["cursor"].as_i64().unwrap();
    let all = page(0, 1000);
    let is_grown = |pair: &[Value]| cursor(&pair[0]) < cursor(&pair[1]);
    assert!(all.windows(2).all(is_grown), "{game}: {all:?}");
    for limit in LIMITS {
        let mut paged: Vec<Value> = Vec::new();
        loop {
            let next = page(paged.last().map_or(0, cursor), limit);
            if next.is_empty() {
                break;
            }
            paged.extend(next);
        }
        assert_eq!(paged, all, "{game}, by {limit}");
    }
}
