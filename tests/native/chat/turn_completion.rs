//! The last turn of a session ends exactly once, and its spending is counted once, whatever happens
//! to its answer, its session and the object.

use serde_json::{Value, json};

use crate::Alice;
use crate::chat::turns::{calls_that_cost, define, text_answer, user};
use base::database::Database;
use base::testing::Dice;
use base::testing::{Failing, wait_for};
use chat::run::cycle::run;

/// The tokens of one answer, as [`text_answer`] reports them.
const ANSWER: (i64, i64) = (10, 2);

impl Alice {
    /// The usage of a session. Every operation that shows the session returns the same.
    fn used(&self, session: &str) -> (i64, i64) {
        let shown = self.ok("getSession", json!({"sessionId": session}));
        let listed = self.ok("listSessions", json!({}));
        let listed = listed["sessions"].as_array().unwrap().iter();
        let listed: Vec<_> = listed.filter(|listed| listed["id"] == session).collect();
        assert_eq!(listed, [&shown]);
        let file = self.export(session).unwrap();
        let line: Value = serde_json::from_str(file.lines().next().unwrap()).unwrap();
        let tokens = |usage: &Value| {
            let count = |name: &str| usage[name].as_i64().unwrap();
            (count("inputTokens"), count("outputTokens"))
        };
        assert_eq!(tokens(&line["usage"]), tokens(&shown["usage"]));
        tokens(&shown["usage"])
    }

    fn turn(&self, session: &str, text: &str) {
        self.outbound.answer(text_answer("Yes."));
        self.chat(json!({"id": session, "message": user(text)}));
    }

    /// The number of rows of last turns, and of those that still contain a state.
    fn last_turns(&self) -> (usize, usize) {
        let count = |sql: &str| self.db.rows(sql, &[]).unwrap().len();
        (
            count("SELECT 1 FROM cf_agents_last_turns"),
            count("SELECT 1 FROM cf_agents_last_turns WHERE state IS NOT NULL"),
        )
    }

    fn assert_nothing_interrupted(&mut self) {
        self.crash();
        let round = self.recover(&self.db);
        assert!(round.works.is_empty() && round.failures.is_empty());
    }
}

fn twice((input, output): (i64, i64)) -> (i64, i64) {
    (2 * input, 2 * output)
}

/// An event in a session whose turn has ended.
type SessionAction = fn(&mut Alice);

const ACTIONS: &[(&str, SessionAction)] = &[
    ("nothing", |_| {}),
    ("its answer is deleted", |alice| {
        let answer = alice.shown()[1]["id"].clone();
        alice.ok(
            "deleteMessages",
            json!({"sessionId": "s", "messageIds": [answer]}),
        );
        assert_eq!(alice.last_turns(), (1, 0), "its state is deleted");
    }),
    ("its event is deleted", |alice| {
        let answer = alice.events()[1]["id"].clone();
        alice.ok(
            "deleteEvents",
            json!({"sessionId": "s", "eventIds": [answer]}),
        );
    }),
    ("its question is deleted", |alice| {
        alice.ok(
            "deleteMessages",
            json!({"sessionId": "s", "messageIds": ["u-hi"]}),
        );
        assert_eq!(alice.last_turns(), (1, 0), "its state is deleted");
    }),
    ("its answer is edited", |alice| {
        let mut answer = alice.shown()[1].clone();
        answer["parts"] = json!([{"type": "text", "text": "No."}]);
        alice.ok(
            "updateMessage",
            json!({"sessionId": "s", "message": answer}),
        );
        assert_eq!(alice.last_turns(), (1, 0), "its state is deleted");
    }),
    ("its session is cleared", |alice| {
        alice.ok("clearMessages", json!({"sessionId": "s"}));
        assert_eq!(alice.last_turns(), (1, 0), "its state is deleted");
    }),
    ("more is appended", |alice| {
        alice.append_texts(&["more"]);
    }),
    ("another branch is chosen", |alice| {
        alice.ok("setLeaf", json!({"sessionId": "s", "id": "u-hi"}));
    }),
    ("it is summarized", |alice| {
        let answer = alice.events()[1]["id"].clone();
        let overlay = json!({"sessionId": "s", "summary": "Hi.", "fromId": "u-hi", "toId": answer});
        alice.ok("addCompaction", overlay);
    }),
    ("it is forked", |alice| {
        let fork = alice.ok("forkSession", json!({"sessionId": "s"}));
        let fork = fork["id"].as_str().unwrap();
        assert_eq!(alice.used(fork), (0, 0));
        alice.turn(fork, "in the fork");
        assert_eq!(alice.used(fork), ANSWER);
    }),
    ("it is exported and imported", |alice| {
        let file = alice.export("s").unwrap();
        let mut bob = Alice::with_model();
        bob.import("s", &file).unwrap();
        assert_eq!(bob.used("s"), ANSWER);
        bob.assert_nothing_interrupted();
        bob.turn("s", "after the move");
        assert_eq!(bob.used("s"), twice(ANSWER));
    }),
];

#[test]
fn a_finished_turn_stays_finished_and_is_counted_once() {
    for (name, action) in ACTIONS {
        let mut alice = Alice::with_model();
        alice.turn("s", "hi");
        assert_eq!(alice.used("s"), ANSWER, "{name}");
        action(&mut alice);
        assert_eq!(alice.used("s"), ANSWER, "{name}");
        assert!(!alice.has_turn_rows(), "{name}");
        alice.assert_nothing_interrupted();
        alice.turn("s", "more");
        assert_eq!(alice.used("s"), twice(ANSWER), "{name}");
        alice.assert_nothing_interrupted();
        assert_eq!(alice.used("s"), twice(ANSWER), "{name}");
    }
}

#[test]
fn an_appended_message_starts_no_turn() {
    let mut alice = Alice::with_model();
    alice.turn("s", "hi");
    alice.append_texts(&["unanswered"]);
    assert!(!alice.has_turn_rows());
    alice.assert_nothing_interrupted();
    assert_eq!(alice.shown().len(), 3);
}

#[test]
fn a_moved_answer_ends_its_turn_by_the_turn_row() {
    let mut alice = Alice::with_model();
    for n in 1..=2 {
        let body = json!({"id": "s", "message": user(&format!("go {n}"))});
        let started = alice.begin(&body).unwrap();
        // It takes the position of the answer.
        alice.append_texts(&["in between"]);
        assert!(alice.has_turn_rows());
        alice.outbound.answer(text_answer("Yes."));
        alice.run_work(started.work.unwrap());
        assert!(!alice.has_turn_rows());
        assert_eq!(alice.last_turns(), (1, 0));
        assert_eq!(alice.used("s"), (10 * n, 2 * n));
        alice.assert_nothing_interrupted();
    }
    assert_eq!(alice.events().len(), 6);
}

#[test]
fn a_turn_without_output_ends_by_the_turn_row() {
    let mut alice = Alice::with_model();
    alice.turn("s", "hi");
    let started = alice.begin(&json!({"id": "s", "message": user("stop")}));
    alice.ok("cancelTurn", json!({"sessionId": "s"}));
    alice.run_work(started.unwrap().work.unwrap());
    assert_eq!(alice.last_turns(), (1, 0));
    assert_eq!(alice.used("s"), ANSWER);
    alice.assert_nothing_interrupted();
}

/// A turn of an earlier activation of the session that still runs.
#[test]
fn a_turn_writes_nothing_into_another_session() {
    let mut alice = Alice::with_model();
    let body = json!({"id": "s", "message": user("hi")});
    let stale = alice.begin(&body).unwrap();
    alice.crash();
    alice.ok("deleteSession", json!({"sessionId": "s"}));
    let started = alice.begin(&body).unwrap();
    alice.outbound.answer(text_answer("Too late."));
    wait_for(run(&alice.agent(&alice.db), stale.work.unwrap()));
    assert!(alice.has_turn_rows(), "the new turn continues");
    assert_eq!(alice.actions(), ["user_message"]);
    alice.outbound.answer(text_answer("Yes."));
    alice.run_work(started.work.unwrap());
    assert_eq!(alice.actions(), ["user_message", "agent_message"]);
    assert_eq!(alice.used("s"), ANSWER);
}

#[test]
fn an_interrupted_turn_counts_all_its_usage_once() {
    for passing in 0.. {
        let mut alice = Alice::with_model();
        define(&alice, "echo", false);
        alice.turn("s", "hi");
        let body = json!({"id": "s", "message": user("again")});
        let started = alice.begin(&body).unwrap();
        alice.outbound.answer(text_answer("Yes."));
        let failing = Failing::after(&alice.db, passing);
        wait_for(run(&alice.agent(&failing), started.work.unwrap()));
        let has_failed = failing.has_failed();
        alice.crash();
        alice.outbound.answers.borrow_mut().clear();
        alice.outbound.answer(text_answer("Yes."));
        for work in alice.recover(&alice.db).works {
            alice.run_work(work);
        }
        assert_eq!(alice.used("s"), twice(ANSWER), "statement {passing}");
        assert!(!alice.has_turn_rows(), "statement {passing}");
        assert_eq!(alice.actions().len(), 4, "statement {passing}");
        if !has_failed {
            assert!(passing > 15);
            break;
        }
    }
}

#[test]
fn old_rows_of_finished_turns_are_deleted() {
    let mut alice = Alice::with_model();
    let sessions: Vec<String> = (0..40).map(|n| format!("s{n}")).collect();
    for session in &sessions[..30] {
        alice.turn(session, "hi");
    }
    alice.assert_nothing_interrupted();
    assert_eq!(alice.last_turns().0, 30, "surplus rows are folded");
    for session in &sessions[30..] {
        alice.turn(session, "hi");
    }
    let body = json!({"id": "open", "message": user("hi")});
    drop(alice.begin(&body).unwrap());
    let shown = alice.ok("listSessions", json!({"limit": 100}));
    for passing in 0.. {
        let failing = Failing::after(&alice.db, passing);
        drop(alice.recover(&failing));
        assert_eq!(alice.ok("listSessions", json!({"limit": 100})), shown);
        if !failing.has_failed() {
            break;
        }
    }
    assert_eq!(alice.last_turns(), (1, 1), "the open turn remains");
    for session in &sessions {
        alice.turn(session, "more");
        assert_eq!(alice.used(session), twice(ANSWER));
    }
}

#[test]
fn calibration_uses_only_the_sessions_own_turns() {
    let alice = Alice::with_model();
    let estimate = |session: &str| {
        let context = alice.ok("buildWorkingContext", json!({"sessionId": session}));
        context["tokensEstimate"].as_f64().unwrap()
    };
    let long = "word ".repeat(2_000);
    let events = json!([{"action": "user_message", "content": long}]);
    for session in ["learns", "new"] {
        alice.ok("createSession", json!({"id": session}));
        let body = json!({"sessionId": session, "events": events});
        alice.ok("appendEvents", body);
    }
    let before = estimate("learns");
    let answer = || {
        let end = json!({"choices": [{"delta": {"content": "."}, "finish_reason": "stop"}], "usage": {"prompt_tokens": 5_000, "completion_tokens": 1}});
        Ok(base::testing::ScriptedAnswer::stream(&format!(
            "data: {end}\n\ndata: [DONE]\n\n"
        )))
    };
    alice.outbound.answer(answer());
    alice.chat(json!({"id": "learns", "message": user("one")}));
    let factor = estimate("learns") / before;
    assert!(factor > 1.5, "{factor}");
    let of_new = estimate("new");
    assert!((before - of_new).abs() < 1.0, "{before} {of_new}");
    // Another session doesn't learn it either when the next turn starts.
    alice.outbound.answer(answer());
    alice.chat(json!({"id": "learns", "message": user("two")}));
    assert!((before - estimate("new")).abs() < 1.0);
    let other = alice.ok("createSession", json!({}));
    assert_eq!(alice.used(other["id"].as_str().unwrap()), (0, 0));
}

/// Random actions: the session's spending is the sum of its answers' spending.
#[test]
fn each_answer_is_counted_once_whatever_follows() {
    for seed in 1..=30 {
        let mut alice = Alice::with_model();
        define(&alice, "echo", false);
        alice.ok("createSession", json!({"id": "s"}));
        let mut dice = Dice(0x9E37_79B9 * seed);
        let (mut input, mut output) = (0, 0);
        for n in 0..25 {
            let text = format!("{seed} {n}");
            let body = json!({"id": "s", "message": user(&text)});
            let events = alice.events();
            let event = match events.len() {
                0 => Value::Null,
                count => events[dice.roll(count)]["id"].clone(),
            };
            match dice.roll(11) {
                0 | 1 => {
                    alice.turn("s", &text);
                    (input, output) = (input + ANSWER.0, output + ANSWER.1);
                }
                2 => {
                    let cost = json!({"prompt_tokens": 3, "completion_tokens": 1});
                    let tool_call = calls_that_cost(&[("c1", "echo", json!({}))], cost);
                    alice.outbound.answer(tool_call);
                    alice
                        .outbound
                        .answer(Ok(base::testing::ScriptedAnswer::text(200, "x")));
                    alice.turn("s", &text);
                    (input, output) = (input + 3 + ANSWER.0, output + 1 + ANSWER.1);
                }
                3 => {
                    let started = alice.begin(&body).unwrap();
                    alice.append_texts(&["in between"]);
                    alice.outbound.answer(text_answer("Yes."));
                    alice.run_work(started.work.unwrap());
                    (input, output) = (input + ANSWER.0, output + ANSWER.1);
                }
                4 => {
                    drop(alice.begin(&body).unwrap());
                    alice.crash();
                    alice.outbound.answer(text_answer("Yes."));
                    for work in alice.recover(&alice.db).works {
                        alice.run_work(work);
                    }
                    (input, output) = (input + ANSWER.0, output + ANSWER.1);
                }
                5 => {
                    let started = alice.begin(&body).unwrap();
                    alice.ok("cancelTurn", json!({"sessionId": "s"}));
                    alice.run_work(started.work.unwrap());
                }
                6 if !event.is_null() => {
                    let ids = json!({"sessionId": "s", "eventIds": [event]});
                    alice.ok("deleteEvents", ids);
                }
                7 if !event.is_null() => {
                    let again = json!({"id": "s", "trigger": "regenerate-message"});
                    alice.outbound.answer(text_answer("Yes."));
                    alice.chat(again);
                    (input, output) = (input + ANSWER.0, output + ANSWER.1);
                }
                8 if dice.roll(4) == 0 => {
                    alice.ok("clearMessages", json!({"sessionId": "s"}));
                }
                9 => {
                    let more = json!({"sessionId": "s", "inputTokens": 5, "outputTokens": 1, "contextTokens": dice.roll(9)});
                    alice.ok("addUsage", more);
                    (input, output) = (input + 5, output + 1);
                }
                _ => {
                    alice.append_texts(&["more"]);
                }
            }
            assert_eq!(alice.used("s"), (input, output), "seed {seed}, move {n}");
            assert!(!alice.has_turn_rows(), "seed {seed}, move {n}");
        }
        alice.assert_nothing_interrupted();
        alice.assert_consistent(&format!("seed {seed}"));
    }
}
