//! Messages that are written to a session while a turn runs: their position, the answer's position,
//! and that no message leaves the current branch.

use std::rc::Rc;

use serde_json::{Value, json};

use crate::Alice;
use crate::chat::turns::{calls, define, receive, text_answer, user};
use base::testing::Dice;
use chat::run::resume::resume_some_turns;

/// A moment in a turn at which another request writes.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Moment {
    /// The turn is stored, and its model is not yet called.
    BeforeTheModel,
    /// The model call is pending.
    WhileAsked,
    /// The model's tool runs; the model is called again afterwards.
    WhileTheToolRuns,
}

const MOMENTS: [Moment; 3] = [
    Moment::BeforeTheModel,
    Moment::WhileAsked,
    Moment::WhileTheToolRuns,
];

type Write = fn(&Alice);

/// `id<-parent` of every event. The turn's own events have the names `ask`, `call`,
/// `result` and `answer`.
fn log(alice: &Alice) -> Vec<String> {
    let events = alice.events();
    let name = |id: &Value| -> String {
        let Some(id) = id.as_str() else {
            return "root".to_owned();
        };
        let event = events.iter().find(|event| event["id"] == id);
        let Some(event) = event else {
            return format!("?{id}");
        };
        match (event["action"].as_str().unwrap(), event["content"].as_str()) {
            (_, Some("The answer.")) => "answer".to_owned(),
            ("tool_call_request", Some("Let me see.")) => "call".to_owned(),
            ("tool_result", Some("output")) => "result".to_owned(),
            (_, Some(content)) => content.to_owned(),
            (action, None) => action.to_owned(),
        }
    };
    events
        .iter()
        .map(|event| format!("{}<-{}", name(&event["id"]), name(&event["parentId"])))
        .collect()
}

/// The texts and outputs in the history.
fn view(alice: &Alice) -> Vec<String> {
    let mut texts = Vec::new();
    for message in alice.shown() {
        for part in message["parts"].as_array().unwrap() {
            let text = part["text"].as_str().or(part["output"].as_str());
            texts.extend(text.map(str::to_owned));
        }
    }
    texts
}

fn append(alice: &Alice, extra: Value) {
    let mut body = json!({"sessionId": "s"});
    for (field, value) in extra.as_object().unwrap() {
        body[field] = value.clone();
    }
    alice.ok("appendEvents", body);
}

fn event(action: &str, id: &str) -> Value {
    json!({"action": action, "id": id, "content": id})
}

fn message(alice: &Alice, role: &str, id: &str) {
    let message = json!({"id": id, "role": role, "parts": [{"type": "text", "text": id}]});
    alice.ok(
        "appendMessage",
        json!({"sessionId": "s", "message": message}),
    );
}

/// A turn over `old`, `ask`, with a write at one moment. The session has an older branch.
fn turn_with(moment: Moment, write: Write) -> (Rc<Alice>, Vec<Value>) {
    let alice = Rc::new(Alice::with_model());
    define(&alice, "echo", false);
    alice.ok("createSession", json!({"id": "s"}));
    message(&alice, "user", "old");
    message(&alice, "assistant", "older answer");
    append(
        &alice,
        json!({"parentId": "old", "events": [event("agent_message", "new answer")]}),
    );
    let ask = json!({"id": "ask", "role": "user", "parts": [{"type": "text", "text": "ask"}]});
    let started = alice.begin(&json!({"id": "s", "message": ask})).unwrap();
    if moment == Moment::BeforeTheModel {
        write(&alice);
    }
    if moment == Moment::WhileTheToolRuns {
        alice.outbound.answer(calls(&[("c1", "echo", json!({}))]));
        alice
            .outbound
            .answer(Ok(base::testing::ScriptedAnswer::text(200, "output")));
    }
    alice.outbound.answer(text_answer("The answer."));
    if moment != Moment::BeforeTheModel {
        let same = Rc::clone(&alice);
        let then = move || match moment {
            Moment::WhileTheToolRuns => {
                let again = Rc::clone(&same);
                *same.outbound.during_next_call.borrow_mut() =
                    Some(Box::new(move || write(&again)));
            }
            _ => write(&same),
        };
        *alice.outbound.during_next_call.borrow_mut() = Some(Box::new(then));
    }
    alice.run_work(started.work.unwrap());
    let chunks = receive(started.listener);
    (alice, chunks)
}

/// The result of each write: the new rows of the log after `ask<-new answer`, and the history after
/// `ask`. `{turn}` stands for the turn's own events.
const WRITES: [(&str, Write, &[&str], &[&str]); 13] = [
    ("nothing", |_| {}, &["{turn}<-ask"], &["{turn}"]),
    (
        "a user's message",
        |alice| message(alice, "user", "note"),
        &["note<-ask", "{turn}<-note"],
        &["note", "{turn}"],
    ),
    (
        "a message of each role",
        |alice| {
            for (role, id) in [("system", "sys"), ("assistant", "said"), ("user", "mine")] {
                message(alice, role, id);
            }
        },
        &["sys<-ask", "said<-sys", "mine<-said", "{turn}<-mine"],
        &["sys", "said", "mine", "{turn}"],
    ),
    (
        "what an agent said, as an event",
        |alice| append(alice, json!({"events": [event("agent_message", "aside")]})),
        &["aside<-ask", "{turn}<-aside"],
        &["aside", "{turn}"],
    ),
    (
        "a call with its result",
        |alice| {
            append(
                alice,
                json!({"events": [
                {"action": "tool_call_request", "id": "req", "content": "req", "toolCalls": [{"id": "x1", "name": "other", "arguments": {}}]},
                {"action": "tool_result", "id": "res", "content": "res", "toolCallId": "x1", "toolName": "other"}]}),
            );
        },
        &["req<-ask", "res<-req", "{turn}<-res"],
        &["req", "res", "{turn}"],
    ),
    (
        "a branch on purpose behind the message that is answered",
        |alice| {
            message(alice, "user", "one");
            append(
                alice,
                json!({"parentId": "ask", "events": [event("user_message", "two")]}),
            );
        },
        &["one<-ask", "two<-ask", "{turn}<-two"],
        &["two", "{turn}"],
    ),
    (
        "a branch elsewhere",
        |alice| {
            message(alice, "user", "one");
            append(
                alice,
                json!({"parentId": "old", "events": [event("user_message", "two")]}),
            );
        },
        &["one<-ask", "two<-old", "{turn}<-one"],
        &["one", "{turn}"],
    ),
    (
        "another leaf is chosen",
        |alice| {
            message(alice, "user", "one");
            alice.ok("setLeaf", json!({"sessionId": "s", "id": "older answer"}));
            message(alice, "user", "two");
        },
        &["one<-ask", "two<-older answer", "{turn}<-one"],
        &["one", "{turn}"],
    ),
    (
        "the message that is answered is chosen",
        |alice| {
            message(alice, "user", "one");
            alice.ok("setLeaf", json!({"sessionId": "s", "id": "ask"}));
        },
        &["one<-ask", "{turn}<-ask"],
        &["{turn}"],
    ),
    (
        "what was appended is deleted",
        |alice| {
            message(alice, "user", "one");
            message(alice, "user", "two");
            alice.ok(
                "deleteEvents",
                json!({"sessionId": "s", "eventIds": ["two"]}),
            );
        },
        &["one<-ask", "{turn}<-one"],
        &["one", "{turn}"],
    ),
    (
        "the message that is answered is changed",
        |alice| {
            message(alice, "user", "one");
            let parts = json!([{"type": "text", "text": "ask"}, {"type": "text", "text": "more"}]);
            let changed = json!({"id": "ask", "role": "user", "parts": parts});
            alice.ok(
                "updateMessage",
                json!({"sessionId": "s", "message": changed}),
            );
        },
        &["one<-changed", "{turn}<-one"],
        &["more", "one", "{turn}"],
    ),
    (
        "a summary hides what was before",
        |alice| {
            message(alice, "user", "one");
            alice.ok(
                "addCompaction",
                json!({"sessionId": "s", "summary": "sum", "fromId": "old", "toId": "new answer"}),
            );
        },
        &["one<-ask", "{turn}<-one"],
        &["one", "{turn}"],
    ),
    (
        "the message that is answered is deleted",
        |alice| {
            message(alice, "user", "one");
            alice.ok(
                "deleteMessages",
                json!({"sessionId": "s", "messageIds": ["ask"]}),
            );
        },
        &["one<-new answer"],
        &["one"],
    ),
];

/// The turn's own events: names in the log, each with the name before it, and texts in the
/// view.
fn own(moment: Moment) -> (&'static [&'static str], &'static [&'static str]) {
    match moment {
        Moment::WhileTheToolRuns => (
            &["call", "result<-call", "answer<-result"],
            &["Let me see.", "output", "The answer."],
        ),
        _ => (&["answer"], &["The answer."]),
    }
}

#[test]
fn concurrent_writes_keep_their_position_before_the_answer() {
    for (case, write, rows, texts) in WRITES {
        for moment in MOMENTS {
            let (alice, chunks) = turn_with(moment, write);
            let (own_rows, own_texts) = own(moment);
            let mut expected = Vec::new();
            for row in rows {
                match row.strip_prefix("{turn}") {
                    Some(rest) => {
                        expected.push(format!("{}{rest}", own_rows[0]));
                        expected.extend(own_rows[1..].iter().map(|row| (*row).to_owned()));
                    }
                    None => expected.push((*row).to_owned()),
                }
            }
            let found = log(&alice);
            let is_changed = rows.iter().any(|row| row.contains("changed"));
            let found: Vec<String> = found
                .iter()
                .skip_while(|row| !row.ends_with("<-new answer"))
                .skip(usize::from(
                    case != "the message that is answered is deleted",
                ))
                .map(|row| {
                    if is_changed {
                        row.replace("<-askmore", "<-changed")
                            .replace("<-ask\nmore", "<-changed")
                    } else {
                        row.clone()
                    }
                })
                .collect();
            assert_eq!(found, expected, "{case}, {moment:?}");
            let seen = view(&alice);
            let after_ask: Vec<&str> = seen
                .iter()
                .map(String::as_str)
                .skip_while(|text| *text != "ask")
                .skip(1)
                .collect();
            let mut expected = Vec::new();
            for text in texts {
                match *text {
                    "{turn}" => expected.extend_from_slice(own_texts),
                    text => expected.push(text),
                }
            }
            if case == "the message that is answered is deleted" {
                assert_eq!(seen.last().map(String::as_str), Some("one"), "{moment:?}");
                assert_eq!(chunks.last().unwrap()["type"], "error", "{moment:?}");
            } else {
                assert_eq!(after_ask, expected, "{case}, {moment:?}");
            }
            assert!(!alice.has_turn_rows(), "{case}, {moment:?}");
        }
    }
}

#[test]
fn the_next_step_reads_what_was_appended_while_a_tool_ran() {
    let (alice, _) = turn_with(Moment::WhileTheToolRuns, |alice| {
        message(alice, "user", "note");
    });
    let request = alice.outbound.calls.borrow().last().unwrap().body.clone();
    let [note, call] = ["note", "Let me see."].map(|text| request.find(text).unwrap());
    assert!(note < call, "{request}");
}

#[test]
fn a_regenerated_answer_is_a_sibling_of_the_old_one() {
    let alice = Alice::with_model();
    alice.outbound.answer(text_answer("One."));
    alice.chat_text("hi");
    let old = alice.shown()[1].clone();
    let again = json!({"id": "s", "trigger": "regenerate-message", "messageId": old["id"], "messages": [user("hi")]});
    let started = alice.begin(&again).unwrap();
    message(&alice, "user", "note");
    alice.outbound.answer(text_answer("The answer."));
    alice.run_work(started.work.unwrap());
    assert_eq!(view(&alice), ["hi", "The answer."]);
    let leaf = json!({"sessionId": "s", "leafId": "note"});
    let page = alice.ok("getHistory", leaf);
    assert_eq!(page["messages"].as_array().unwrap().len(), 3);
    // A message directly after the user's message conflicts with the new answer.
    let again = json!({"id": "s", "trigger": "regenerate-message", "messages": [user("hi")]});
    let started = alice.begin(&again).unwrap();
    append(
        &alice,
        json!({"parentId": "u-hi", "events": [event("user_message", "aside")]}),
    );
    alice.outbound.answer(text_answer("Three."));
    alice.run_work(started.work.unwrap());
    assert_eq!(view(&alice), ["hi", "aside", "Three."]);
}

const CLIENT_TOOLS: &str =
    r#"[{"name": "where", "description": "Where am I?", "parameters": {"type": "object"}}]"#;

#[test]
fn a_continued_turn_follows_messages_appended_meanwhile() {
    let alice = Alice::with_model();
    let tools: Value = serde_json::from_str(CLIENT_TOOLS).unwrap();
    let call = |id: &str| calls(&[(id, "where", json!({}))]);
    alice.outbound.answer(call("c1"));
    alice.chat(json!({"id": "s", "message": user("where"), "tools": tools}));
    let mut call_message = alice.shown()[1].clone();
    let answer = |call_message: &mut Value, place: usize, output: &str| {
        call_message["parts"][place]["state"] = json!("output-available");
        call_message["parts"][place]["output"] = json!(output);
    };
    answer(&mut call_message, 1, "Rome");
    let body = json!({"id": "s", "messages": [user("where"), call_message], "tools": tools});
    let started = alice.begin(&body).unwrap();
    message(&alice, "user", "note");
    alice.outbound.answer(call("c2"));
    alice.run_work(started.work.unwrap());
    assert_eq!(
        view(&alice),
        ["where", "Let me see.", "Rome", "note", "Let me see."]
    );
    // The page's copy of the message contains both calls.
    let shown = alice.shown();
    let second = shown[3]["parts"][1].clone();
    assert_eq!(second["toolCallId"], "c2");
    call_message["parts"].as_array_mut().unwrap().push(second);
    let last = call_message["parts"].as_array().unwrap().len() - 1;
    answer(&mut call_message, last, "Paris");
    alice.outbound.answer(text_answer("The answer."));
    alice.chat(json!({"id": "s", "messages": [user("where"), call_message], "tools": tools}));
    assert_eq!(
        view(&alice),
        [
            "where",
            "Let me see.",
            "Rome",
            "note",
            "Let me see.",
            "Paris",
            "The answer."
        ]
    );
}

#[test]
fn run_turn_returns_the_message_with_its_answer() {
    let alice = Rc::new(Alice::with_model());
    let same = Rc::clone(&alice);
    *alice.outbound.during_next_call.borrow_mut() = Some(Box::new(move || {
        append(&same, json!({"events": [event("agent_message", "aside")]}));
    }));
    alice.outbound.answer(text_answer("The answer."));
    let body = json!({"sessionId": "s", "message": user("hi")});
    let ran = alice.ok("runTurn", body.clone());
    let texts = |ran: &Value| ran["message"]["parts"].to_string();
    assert!(
        texts(&ran).contains("aside") && texts(&ran).contains("The answer."),
        "{ran}"
    );
    assert_eq!(alice.ok("runTurn", body), ran);
}

/// Plays turns with and without tools, with appends and evictions at every moment.
#[test]
fn random_appends_stay_on_the_visible_path() {
    for seed in 1..=40_u64 {
        println!("seed {seed}");
        let mut dice = Dice(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        let mut alice = Alice::with_model();
        define(&alice, "echo", false);
        alice.ok("createSession", json!({"id": "s"}));
        let mut number = 0;
        let mut writes = |alice: &Alice, dice: &mut Dice| {
            for _ in 0..dice.roll(3) {
                number += 1;
                let id = format!("n{number}");
                match dice.roll(5) {
                    0 => message(alice, "user", &id),
                    1 => message(alice, "assistant", &id),
                    2 => message(alice, "system", &id),
                    3 => append(alice, json!({"events": [event("agent_message", &id)]})),
                    _ => append(
                        alice,
                        json!({"events": [event("user_message", &id), {"action": "agent_message", "content": "minted"}]}),
                    ),
                }
            }
        };
        for turn in 0..6 {
            writes(&alice, &mut dice);
            let body = json!({"id": "s", "message": user(&format!("ask{turn}"))});
            let mut work = alice.begin(&body).unwrap().work;
            writes(&alice, &mut dice);
            if dice.roll(3) == 0 {
                drop(work.take());
                alice.crash();
                writes(&alice, &mut dice);
                work = resume_some_turns(&alice.agent(&alice.db)).works.pop();
            }
            if dice.roll(2) == 0 {
                alice.outbound.answer(calls(&[("c", "echo", json!({}))]));
                alice
                    .outbound
                    .answer(Ok(base::testing::ScriptedAnswer::text(200, "output")));
            }
            match dice.roll(4) {
                // The model fails, and its text before the failure is stored.
                0 => alice
                    .outbound
                    .answer(Ok(base::testing::ScriptedAnswer::text(500, "no"))),
                _ => alice.outbound.answer(text_answer("The answer.")),
            }
            alice.run_work(work.unwrap());
            alice.outbound.answers.borrow_mut().clear();
        }
        let events = alice.events();
        let context = alice.ok("buildWorkingContext", json!({"sessionId": "s"}));
        let mut place = context["leafId"].clone();
        let mut length = 0;
        while let Some(event) = events.iter().find(|event| event["id"] == place) {
            place = event["parentId"].clone();
            length += 1;
        }
        assert_eq!(length, events.len(), "seed {seed}");
        let changes = alice.ok("getChanges", json!({"sessionId": "s", "limit": 1000}));
        let known: Vec<&str> = changes["changes"]
            .as_array()
            .unwrap()
            .iter()
            .filter_map(|change| change["id"].as_str())
            .collect();
        let shown = alice.shown();
        for message in &shown {
            let id = message["id"].as_str().unwrap();
            assert!(known.contains(&id), "seed {seed}: the feed lacks {id}");
        }
    }
}
